// device_query: the table of this card: what it is, what a block may ask of it, and the SMS= value
// to build for it.
//
// Predict before you run it: how many threads can be resident on this card at the same time, all
// SMs together? (threads an SM x SMs; the last line of the first part tells)
//
// usage: device_query [--device N] [--all]
#include "../common/lesson.h"

enum unit { COUNT, BYTES, KHZ, BITS, YES_NO };

struct fact {
    const char *label, *key; // key: the name in the JSON; NULL: the line is a heading
    enum cudaDeviceAttr attribute;
    enum unit unit;
};

#define HEADING(text)                                                                              \
    {                                                                                              \
        text, NULL, cudaDevAttrWarpSize, COUNT                                                     \
    }

// cudaDeviceGetAttribute, not the fields of cudaDeviceProp: some left the struct in CUDA 13.
static const struct fact facts[] = {
    HEADING("a block may have at most"),
    {"threads", "threads_per_block", cudaDevAttrMaxThreadsPerBlock, COUNT},
    {"threads in x", "block_x", cudaDevAttrMaxBlockDimX, COUNT},
    {"threads in y", "block_y", cudaDevAttrMaxBlockDimY, COUNT},
    {"threads in z", "block_z", cudaDevAttrMaxBlockDimZ, COUNT},
    {"registers of 32 bits", "registers_per_block", cudaDevAttrMaxRegistersPerBlock, COUNT},
    {"shared memory", "shared_per_block", cudaDevAttrMaxSharedMemoryPerBlock, BYTES},
    {"shared memory, if it asks (*)", "shared_per_block_optin",
     cudaDevAttrMaxSharedMemoryPerBlockOptin, BYTES},
    HEADING("a grid may have at most"),
    {"blocks in x", "grid_x", cudaDevAttrMaxGridDimX, COUNT},
    {"blocks in y", "grid_y", cudaDevAttrMaxGridDimY, COUNT},
    {"blocks in z", "grid_z", cudaDevAttrMaxGridDimZ, COUNT},
    HEADING("an SM (streaming multiprocessor) has"),
    {"threads resident", "threads_per_sm", cudaDevAttrMaxThreadsPerMultiProcessor, COUNT},
    {"blocks resident", "blocks_per_sm", cudaDevAttrMaxBlocksPerMultiprocessor, COUNT},
    {"threads in a warp", "warp_size", cudaDevAttrWarpSize, COUNT},
    {"registers of 32 bits", "registers_per_sm", cudaDevAttrMaxRegistersPerMultiprocessor, COUNT},
    {"shared memory", "shared_per_sm", cudaDevAttrMaxSharedMemoryPerMultiprocessor, BYTES},
    {"shared memory CUDA keeps, a block", "shared_reserved",
     cudaDevAttrReservedSharedMemoryPerBlock, BYTES},
    {"clock", "sm_clock_khz", cudaDevAttrClockRate, KHZ},
    HEADING("memory"),
    {"L2 cache", "l2", cudaDevAttrL2CacheSize, BYTES},
    {"L2 that can be set aside", "l2_persisting", cudaDevAttrMaxPersistingL2CacheSize, BYTES},
    {"constant memory", "constant", cudaDevAttrTotalConstantMemory, BYTES},
    {"memory clock", "memory_clock_khz", cudaDevAttrMemoryClockRate, KHZ},
    {"memory bus", "memory_bus_bits", cudaDevAttrGlobalMemoryBusWidth, BITS},
    {"ECC", "ecc", cudaDevAttrEccEnabled, YES_NO},
    HEADING("what it can do"),
    {"copy engines", "copy_engines", cudaDevAttrAsyncEngineCount, COUNT},
    {"several kernels at once", "concurrent_kernels", cudaDevAttrConcurrentKernels, YES_NO},
    {"mapped host memory", "mapped_host_memory", cudaDevAttrCanMapHostMemory, YES_NO},
    {"managed memory", "managed_memory", cudaDevAttrManagedMemory, YES_NO},
    {"managed, host and GPU at once", "concurrent_managed_access",
     cudaDevAttrConcurrentManagedAccess, YES_NO},
    {"plain malloc memory in kernels", "pageable_memory_access", cudaDevAttrPageableMemoryAccess,
     YES_NO},
    {"memory pools", "memory_pools", cudaDevAttrMemoryPoolsSupported, YES_NO},
    {"cooperative launch", "cooperative_launch", cudaDevAttrCooperativeLaunch, YES_NO},
    {"thread block clusters", "cluster_launch", cudaDevAttrClusterLaunch, YES_NO},
    {"shares the host's memory", "integrated", cudaDevAttrIntegrated, YES_NO},
    {"kernels are cut off (display)", "kernel_timeout", cudaDevAttrKernelExecTimeout, YES_NO},
};

// 1 and the value; 0 when this driver does not know the attribute.
static int ask(enum cudaDeviceAttr attribute, int device, int *value)
{
    cudaError_t error = cudaDeviceGetAttribute(value, attribute, device);
    if (error == cudaErrorInvalidValue || error == cudaErrorNotSupported) {
        cudaGetLastError(); // the error was expected: do not leave it to the next launch check
        return 0;
    }
    CUDA_CHECK(error);
    return 1;
}

// With --all the JSON holds several devices: "device1_threads_per_block".
static const char *json_key(char text[64], const char *key, int all)
{
    if (all)
        snprintf(text, 64, "device%d_%s", device_facts.id, key);
    else
        snprintf(text, 64, "%s", key);
    return text;
}

static void print_bytes(double bytes)
{
    if (bytes >= 1 << 30)
        printf("%.1f GiB\n", bytes / (1 << 30));
    else if (bytes >= 1 << 20)
        printf("%.0f MiB\n", bytes / (1 << 20));
    else
        printf("%.0f KiB\n", bytes / 1024);
}

static void print_fact(const struct fact *f, int all)
{
    char key[64];
    int value = 0;
    if (!f->key) {
        printf("%s\n", f->label);
        return;
    }
    printf("  %-36s ", f->label);
    int known = ask(f->attribute, device_facts.id, &value);
    if ((f->unit == KHZ || f->unit == BITS) && value == 0)
        known = 0; // no clock stands still: the driver (or the CPU backend) does not tell
    report_number(json_key(key, f->key, all), known ? (double)value : NAN);
    if (!known)
        printf("unknown\n");
    else if (f->unit == BYTES)
        print_bytes(value);
    else if (f->unit == KHZ)
        printf("%.0f MHz\n", value / 1e3);
    else if (f->unit == YES_NO)
        printf("%s\n", value ? "yes" : "no");
    else
        printf("%d%s\n", value, f->unit == BITS ? " bits" : "");
}

static void print_number(const char *label, const char *key, double value, const char *unit,
                         int all)
{
    char text[64];
    report_number(json_key(text, key, all), value > 0 ? value : NAN);
    if (value > 0)
        printf("  %-36s %.0f%s\n", label, value, unit);
    else
        printf("  %-36s unknown\n", label);
}

// The same facts from the older interface, cudaDeviceProp: both must agree.
static void verify_facts(void)
{
    static cudaDeviceProp p; // 1 KiB: not on the stack
    CUDA_CHECK(cudaGetDeviceProperties(&p, device_facts.id));
    const struct {
        const char *name;
        enum cudaDeviceAttr attribute;
        size_t in_struct;
    } both[] = {
        {"maxThreadsPerBlock", cudaDevAttrMaxThreadsPerBlock, (size_t)p.maxThreadsPerBlock},
        {"sharedMemPerBlock", cudaDevAttrMaxSharedMemoryPerBlock, p.sharedMemPerBlock},
        {"regsPerBlock", cudaDevAttrMaxRegistersPerBlock, (size_t)p.regsPerBlock},
        {"warpSize", cudaDevAttrWarpSize, (size_t)p.warpSize},
        {"multiProcessorCount", cudaDevAttrMultiProcessorCount, (size_t)p.multiProcessorCount},
    };
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        int value = device_attribute(both[i].attribute);
        check_that((size_t)value == both[i].in_struct, "%s: the attribute says %d, the struct %zu",
                   both[i].name, value, both[i].in_struct);
    }
}

static void print_device(int all)
{
    const struct device_facts *d = &device_facts;
    char sms[32], key[64], name[128];
    int threads = 0;
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    snprintf(sms, sizeof(sms), "%d%d", d->major, d->minor);

    printf(all ? "\ndevice %d: %s\n" : "\n", d->id, d->name);
    snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, d->name);
    report_text(json_key(key, "name", all), name);
    if (!DEVICE_IS_CPU) {
        printf("  %-36s %d.%d\n", "compute capability", d->major, d->minor);
        printf("  %-36s make SMS=%s\n", "to build for it", sms);
        report_text(json_key(key, "SMS", all), sms);
    }
    print_number(DEVICE_IS_CPU ? "SMs (here: threads of the CPU)" : "SMs", "sms", d->sm_count, "",
                 all);
    printf("  %-36s %.1f GiB, %.1f GiB are free\n", "memory", CHECK_GIB(total_bytes),
           CHECK_GIB(free_bytes));
    report_number(json_key(key, "memory_bytes", all), (double)total_bytes);
    report_number(json_key(key, "memory_free_bytes", all), (double)free_bytes);
    if (!DEVICE_IS_CPU) {
        print_number("memory can move at most", "memory_limit_gbs", d->memory_limit_gbs, " GB/s",
                     all);
        print_number("fp32 can compute at most", "fp32_limit_gflops", d->fp32_limit_gflops,
                     " GFLOP/s", all);
        print_number("the bus can move at most, each way", "bus_limit_gbs", bus_limit_gbs(),
                     " GB/s", all);
    }
    if (ask(cudaDevAttrMaxThreadsPerMultiProcessor, d->id, &threads))
        print_number("threads resident at the same time", "threads_resident",
                     (double)threads * d->sm_count, "", all);
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        print_fact(&facts[i], all);
}

int main(int argc, char **argv)
{
    int all = 0, count = 0, driver = 0, runtime = 0;
    const struct option_spec options[] = {
        OPTION_FLAG("all", &all, "every device of this machine, not one"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/device_query", "the table of this card", options);
    CUDA_CHECK(cudaGetDeviceCount(&count));
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));

    if (!DEVICE_IS_CPU)
        printf("the driver offers CUDA %d.%d; this program was built with %d.%d\n", driver / 1000,
               driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    report_number("devices", count);
    report_number("driver_cuda", driver);
    report_number("runtime_cuda", runtime);
    for (int id = 0; id < count; id++) {
        if (!all && id != common_options.device)
            continue;
        if (all)
            device_select(id);
        print_device(all);
        verify_facts();
    }
    printf("(*) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ...)\n");
    if (count > 1 && !all)
        printf("this machine has %d devices: --device 0 to %d, or --all\n", count, count - 1);
    return lesson_end();
}
