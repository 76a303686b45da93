// device.h - which device the lesson runs on, and what that device can do at most.
//
// Every figure is read from the device with cudaDeviceGetAttribute, which works alike from CUDA
// 11.8 to 13.x (cudaDeviceProp lost fields in 13.0). A limit that cannot be known is 0 and is
// printed as "unknown"; no percentage is then printed either.
#ifndef COMMON_DEVICE_H
#define COMMON_DEVICE_H

#include "check.h"
#include <unistd.h>

#ifdef CUDA_CPU_BACKEND
enum { DEVICE_IS_CPU = 1 };
#else
enum { DEVICE_IS_CPU = 0 };
#endif

struct device_facts {
    int id;
    char name[256];
    int major, minor; // compute capability
    int sm_count;
    size_t memory_bytes; // the whole device memory
    size_t l2_bytes;
    double memory_limit_gbs;  // GB/s (1e9 bytes): memory clock x 2 (double data rate) x bus width
    double fp32_limit_gflops; // SM clock x SMs x fp32 lanes an SM x 2 (a multiply-add counts two)
};
static struct device_facts device_facts;

// The default problem size: `gpu` elements on a GPU, `cpu` on the CPU backend.
static inline size_t default_size(size_t gpu, size_t cpu)
{
    return DEVICE_IS_CPU ? cpu : gpu;
}

static inline int device_attribute(enum cudaDeviceAttr attribute)
{
    int value = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device_facts.id));
    return value;
}

// fp32 lanes an SM has; 0 for an architecture newer than this table.
// Source: CUDA C++ Programming Guide, "Compute Capabilities", arithmetic throughput table.
static inline int fp32_lanes_per_sm(int major, int minor)
{
    switch (major) {
    case 5:
        return 128;
    case 6:
        return minor == 0 ? 64 : 128;
    case 7:
        return 64;
    case 8:
        return minor == 0 ? 64 : 128;
    case 9:
        return minor == 0 ? 128 : 0;
    case 10:
    case 11:
    case 12:
        return 128;
    default:
        return 0;
    }
}

// GB/s each way of the bus between host and device, from the link's speed and width in sysfs:
// GT/s x lanes / 8 bits, less the line coding (8b/10b in PCIe 1 and 2, 128b/130b from 3 on). The
// speed is the card's: a slower slot is not seen. 0 where the system does not say (WSL, many
// virtual machines, links that are not PCIe).
static inline double bus_limit_gbs(void)
{
    char id[32] = "", path[128];
    double speed = 0, width = 0;
    if (DEVICE_IS_CPU || cudaDeviceGetPCIBusId(id, sizeof(id), device_facts.id) != cudaSuccess)
        return 0;
    for (char *c = id; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c); // sysfs writes lower case
    const char *const files[] = {"max_link_speed", "current_link_width"};
    double *const values[] = {&speed, &width};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", id, files[i]);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%lf", values[i]) != 1)
            *values[i] = 0; // "Unknown"
        if (f)
            fclose(f);
    }
    double coding = speed < 8 ? 8.0 / 10 : 128.0 / 130;
    return width > 32 ? 0 : speed * width / 8 * coding; // 63 and 255 stand for "no such link"
}

// An empty kernel: can this program's code run here at all? Found out before anything else, so
// that error 209 does not come out of the middle of a lesson.
static __global__ void device_probe_kernel(void) {}

static inline void device_require_code(void)
{
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, device_probe_kernel));
}

// No usable GPU is no failure of the lesson: one line that tells the causes apart, exit code 2.
static inline void device_waive(cudaError_t error)
{
    char hint[512];
    cuda_hint(error, hint, sizeof(hint));
    cudaGetLastError();
    lesson_exit(EXIT_WAIVED, "waived: no usable GPU (error %d %s): %s", (int)error,
                cudaGetErrorName(error), hint);
}

// Makes device `id` the current one and reads its facts into device_facts.
static inline void device_select(int id)
{
    int count = 0; // not written by the runtime when there is no driver
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver)
        device_waive(error);
    CUDA_CHECK(error);
    if (count == 0)
        device_waive(cudaErrorNoDevice);
    if (id < 0 || id >= count)
        lesson_exit(EXIT_BAD_USAGE, "--device %d: this machine has %d device%s, numbered from 0",
                    id, count, count == 1 ? "" : "s");
    CUDA_CHECK(cudaSetDevice(id));

    struct device_facts *d = &device_facts;
    d->id = id;
    static cudaDeviceProp properties; // 1 KiB: not on the stack
    CUDA_CHECK(cudaGetDeviceProperties(&properties, id));
    snprintf(d->name, sizeof(d->name), "%s", properties.name);
    d->memory_bytes = properties.totalGlobalMem;
    d->major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    d->minor = device_attribute(cudaDevAttrComputeCapabilityMinor);
    d->sm_count = device_attribute(cudaDevAttrMultiProcessorCount);
    d->l2_bytes = (size_t)device_attribute(cudaDevAttrL2CacheSize);
    if (DEVICE_IS_CPU)
        return; // the limits of a GPU have no meaning there: they stay unknown
    double memory_khz = device_attribute(cudaDevAttrMemoryClockRate);
    double bus_bits = device_attribute(cudaDevAttrGlobalMemoryBusWidth);
    double sm_khz = device_attribute(cudaDevAttrClockRate);
    d->memory_limit_gbs = memory_khz * 1e3 * 2 * bus_bits / 8 / 1e9;
    d->fp32_limit_gflops =
        sm_khz * 1e3 * d->sm_count * fp32_lanes_per_sm(d->major, d->minor) * 2 / 1e9;
    device_require_code();
}

// Which limit of the device would kernel<<<grid, block>>> break? Writes it into `text` and returns
// 1; returns 0 when the launch is within all of them (registers and shared memory aside).
static inline int launch_breaks_limit(dim3 grid, dim3 block, char *text, size_t size)
{
    const struct {
        const char *what;
        size_t asked;
        enum cudaDeviceAttr limit;
    } sides[] = {
        {"threads a block", (size_t)block.x * block.y * block.z, cudaDevAttrMaxThreadsPerBlock},
        {"block x", block.x, cudaDevAttrMaxBlockDimX},
        {"block y", block.y, cudaDevAttrMaxBlockDimY},
        {"block z", block.z, cudaDevAttrMaxBlockDimZ},
        {"grid x", grid.x, cudaDevAttrMaxGridDimX},
        {"grid y", grid.y, cudaDevAttrMaxGridDimY},
        {"grid z", grid.z, cudaDevAttrMaxGridDimZ},
    };
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        size_t limit = (size_t)device_attribute(sides[i].limit);
        if (sides[i].asked >= 1 && sides[i].asked <= limit)
            continue;
        snprintf(text, size, "%s: %zu asked, this device takes 1 to %zu", sides[i].what,
                 sides[i].asked, limit);
        return 1;
    }
    return 0;
}

// Ends the program when no grid can cover n elements with one element a thread.
static inline void require_grid(size_t n, int block)
{
    size_t blocks = n / (size_t)block + (n % (size_t)block != 0);
    size_t most = (size_t)device_attribute(cudaDevAttrMaxGridDimX);
    if (blocks > most)
        lesson_exit(EXIT_FAILED,
                    "--n %zu needs %zu blocks of %d threads, a grid of this device has at most "
                    "%zu: choose a larger --block",
                    n, blocks, block, most);
}

// The SM that runs the calling thread, from the PTX register %smid; always 0 on the CPU backend.
static inline __device__ unsigned sm_id(void)
{
    unsigned id = 0;
#ifndef CUDA_CPU_BACKEND
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id)); // volatile: preemption may move a thread
#endif
    return id;
}

// Does this machine look as if a GPU could be used, although the program was built for the CPU?
static inline int nvidia_driver_present(void)
{
    return access("/proc/driver/nvidia/version", R_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 ||
           access("/usr/lib/wsl/lib/libcuda.so.1", R_OK) == 0;
}

// One line: the device and its limits.
static inline void device_print(void)
{
    const struct device_facts *d = &device_facts;
    if (DEVICE_IS_CPU) {
        printf("device %d: %s. This program runs on the CPU; its times say nothing about a GPU.\n",
               d->id, d->name);
        if (nvidia_driver_present())
            printf("note: this machine has an NVIDIA driver. To use its GPU: make BACKEND=cuda\n");
        return;
    }
    printf("device %d: %s, sm_%d%d, %d SMs, %.1f GiB, limits: ", d->id, d->name, d->major, d->minor,
           d->sm_count, CHECK_GIB(d->memory_bytes));
    if (d->memory_limit_gbs > 0)
        printf("memory %.0f GB/s, ", d->memory_limit_gbs);
    else
        printf("memory unknown, ");
    if (d->fp32_limit_gflops > 0)
        printf("fp32 %.1f TFLOP/s\n", d->fp32_limit_gflops / 1e3);
    else
        printf("fp32 unknown\n");
}

#endif
