// The runtime's own state: settings, errors and when they show, fault injection, the log, launches, printf from
// kernels, the device and its attributes.
#include "runtime.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace cuda_cpu
{
std::recursive_mutex &api_mutex = *new std::recursive_mutex();

void message(const char *format, ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuda-cpu: %s\n", text);
}

// ---- Settings ----

[[noreturn]] static void bad_setting(const char *name, const char *value, const char *takes)
{
    message("%s='%s': takes %s", name, value, takes);
    fflush(nullptr);
    _exit(64);
}

static size_t number_setting(const char *name, size_t otherwise, size_t low, size_t high,
                             const char *takes)
{
    const char *value = getenv(name);
    if (!value || !*value) return otherwise;
    char *end;
    unsigned long long n = strtoull(value, &end, 10);
    unsigned shift = *end == 'k' || *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift) end++;
    if (!isdigit((unsigned char)*value) || *end || n > (SIZE_MAX >> shift) || n << shift < low ||
        n << shift > high)
        bad_setting(name, value, takes);
    return (size_t)n << shift;
}

static bool flag_setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

static Settings read_settings()
{
    Settings s;
    cpu_set_t set;
    s.threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    s.threads = (int)number_setting("CUDA_CPU_THREADS", (size_t)(s.threads < 64 ? s.threads : 64),
                                    1, 256, "a number of threads, 1 to 256");
    s.memory = number_setting("CUDA_CPU_MEMORY", s.memory, 1 << 20, (size_t)1 << 44,
                              "a size such as 64M or 2G");
    s.devices = (int)number_setting("CUDA_CPU_DEVICES", 1, 0, 16, "a number of devices, 0 to 16");
    s.log = flag_setting("CUDA_CPU_LOG");
    s.strict = flag_setting("CUDA_CPU_STRICT");
    s.leak_check =
        flag_setting("CUDA_CPU_LEAKCHECK") || (with_asan() && !getenv("CUDA_CPU_LEAKCHECK"));
    const char *value = getenv("CUDA_CPU_SCHEDULE");
    if (value && *value) {
        char *end = nullptr;
        if (strcmp(value, "reverse") == 0)
            s.schedule = Settings::REVERSE;
        else if (strncmp(value, "random:", 7) == 0 && isdigit((unsigned char)value[7]) &&
                 (s.seed = (unsigned)strtoul(value + 7, &end, 10), !*end))
            s.schedule = Settings::RANDOM;
        else if (strcmp(value, "forward") != 0)
            bad_setting("CUDA_CPU_SCHEDULE", value, "forward, reverse or random:SEED");
    }
    value = getenv("CUDA_CPU_BARRIER");
    if (value && strcmp(value, "exited") == 0)
        s.early_exit = true;
    else if (value && *value && strcmp(value, "strict") != 0)
        bad_setting("CUDA_CPU_BARRIER", value, "strict or exited");
    return s;
}

const Settings &settings()
{
    static const Settings s = read_settings();
    return s;
}

// ---- Errors ----

static thread_local cudaError_t last_error = cudaSuccess;
static thread_local int current_device = 0;
static cudaError_t pending = cudaSuccess; // a kernel's fault that no call has reported yet
static cudaError_t sticky = cudaSuccess;  // a kernel's fault that every call reports from now on
static bool forked = false, dead = false; // dead: reset after a sticky error

static bool ends_context(int error)
{
    return (error >= 700 && error <= 719 && error != 701 && (error < 703 || error > 709));
}

// CUDA_CPU_FAIL=NAME:N[:ERROR][,...] makes the N-th call of NAME fail.
struct Injection {
    std::string name;
    long countdown;
    int error;
};

static int plausible_error(const std::string &name)
{
    auto has = [&](const char *part) { return name.find(part) != std::string::npos; };
    if (has("Malloc") || has("HostAlloc") || has("Create") || has("HostRegister") ||
        has("Instantiate"))
        return cudaErrorMemoryAllocation;
    if (has("LaunchKernel")) return cudaErrorLaunchOutOfResources;
    if (has("Synchronize") || has("Query")) return cudaErrorLaunchFailure;
    if (has("GetDeviceCount")) return cudaErrorNoDevice;
    if (has("SetDevice") || has("DeviceGetAttribute") || has("Properties"))
        return cudaErrorInvalidDevice;
    if (has("Symbol")) return cudaErrorInvalidSymbol;
    return has("GetLastError") || has("PeekAt") ? cudaErrorLaunchOutOfResources
                                                : cudaErrorInvalidValue;
}

static int error_by_name(const std::string &text)
{
#define CUDA_CPU_ERROR(number, name, description)                                                  \
    if (text == #name || text == #number) return number;
#include "errors.inc"
#undef CUDA_CPU_ERROR
    return -1;
}

static std::vector<Injection> read_injections()
{
    std::vector<Injection> list;
    const char *value = getenv("CUDA_CPU_FAIL");
    for (const char *p = value; p && *p;) {
        std::string item(p, strcspn(p, ","));
        p += item.size() + (p[item.size()] == ',');
        size_t first = item.find(':'),
               second = first == std::string::npos ? first : item.find(':', first + 1);
        Injection i{item.substr(0, first), 0, 0};
        if (i.name == "kernel") i.name = "cudaLaunchKernel";
        if (first != std::string::npos) i.countdown = atol(item.c_str() + first + 1);
        i.error = second == std::string::npos ? plausible_error(i.name)
                                              : error_by_name(item.substr(second + 1));
        if (i.countdown < 1 || i.error < 1)
            bad_setting("CUDA_CPU_FAIL", value,
                        "NAME:N[:ERROR], as in cudaMalloc:2 or kernel:1:700");
        list.push_back(i);
    }
    return list;
}

static cudaError_t injected(const char *name)
{
    static auto &list = *new std::vector<Injection>(read_injections());
    for (Injection &i : list)
        if (i.name == name && --i.countdown == 0) return (cudaError_t)i.error;
    return cudaSuccess;
}

static void flush_printf();

static void at_first_call()
{
    install_handlers();
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

cudaError_t api_begin(const char *name, int flags)
{
    static bool once = (at_first_call(), true);
    (void)once;
    if (cudaError_t error = injected(name)) return error;
    if (flags & NO_DEVICE) return cudaSuccess;
    if (forked) return cudaErrorInitializationError;
    if (settings().devices == 0) return cudaErrorNoDevice;
    if (flags & SYNC) {
        flush_printf();
        if (pending) sticky = pending;
        pending = cudaSuccess;
    }
    if (flags & QUERY) return cudaSuccess;
    if (dead) return cudaErrorDevicesUnavailable;
    if (sticky) return sticky;
    return flags & NO_CAPTURE && capture_forbids() ? cudaErrorStreamCaptureUnsupported
                                                   : cudaSuccess;
}

cudaError_t api_end(const char *name, cudaError_t error, const std::string &args)
{
    if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
    if (settings().log)
        message("%s(%s) -> %d%s%s", name, args.c_str(), error, error ? " " : "",
                error ? cudaGetErrorName(error) : "");
    return error;
}

std::string arguments(const char *format, ...)
{
    if (!settings().log) return "";
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return text;
}

// ---- Launches ----

static auto &dynamic_limit = *new std::map<const void *, int>(); // from cudaFuncSetAttribute
const int DEFAULT_SHARED = 48 << 10, MOST_SHARED = 227 << 10;
static KernelEntry *kernels = nullptr;

void register_kernel(KernelEntry *entry)
{
    entry->next = kernels;
    kernels = entry;
}

static size_t shared_limit(const void *kernel)
{
    if (kernel) {
        auto found = dynamic_limit.find(kernel);
        return (size_t)(found == dynamic_limit.end() ? DEFAULT_SHARED : found->second);
    }
    int most =
        DEFAULT_SHARED; // a template whose address is unknown: the largest that was asked for
    for (auto &[k, limit] : dynamic_limit) most = limit > most ? limit : most;
    return (size_t)most;
}

static const KernelEntry *find_kernel(const void *kernel)
{
    for (KernelEntry *k = kernels; k; k = k->next)
        if (k->address == kernel) return k;
    return nullptr;
}

static unsigned most_threads(const void *kernel)
{
    const KernelEntry *k = find_kernel(kernel);
    return k ? k->most_threads : 1024;
}

static cudaError_t check_configuration(const Launch &l)
{
    uint64_t threads = (uint64_t)l.block.x * l.block.y * l.block.z;
    if (!l.grid.x || !l.grid.y || !l.grid.z || !threads) return cudaErrorInvalidValue;
    if (l.grid.x > 0x7fffffff || l.grid.y > 65535 || l.grid.z > 65535) return cudaErrorInvalidValue;
    if (l.block.x > 1024 || l.block.y > 1024 || l.block.z > 64 || threads > 1024)
        return cudaErrorInvalidValue;
    if (l.shared > shared_limit(l.kernel)) return cudaErrorInvalidValue;
    if (threads > most_threads(l.kernel)) return cudaErrorLaunchOutOfResources;
    return check_stream(l.stream);
}

// On a GPU a host pointer faults when the kernel follows it; here the launch itself is refused, with that error.
static thread_local int host_argument = 0;

void check_pointer(const Launch &, int position, const void *pointer)
{
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    if (!host_argument && is_host_pointer(pointer)) host_argument = position;
}

cudaError_t start_kernel(const Launch &l)
{
    if (pending || sticky) return cudaSuccess;
    DeviceOpen open;
    pending = run_grid(l);
    return cudaSuccess;
}

static thread_local std::function<cudaError_t()> *capture_target = nullptr;

// The launch as an operation that can run later, with its own copy of the arguments.
static std::function<cudaError_t()> kept(const Launch &l)
{
    std::shared_ptr<const void> body(l.clone(l.body), l.destroy);
    return [copy = l, body]() mutable {
        copy.body = body.get();
        return start_kernel(copy);
    };
}

void launch(const Launch &l)
{
    if (capture_target) {
        *capture_target = kept(l);
        host_argument = 0;
        return;
    }
    int host = host_argument;
    host_argument = 0;
    std::string config =
        arguments("%s<<<(%u,%u,%u), (%u,%u,%u), %zu, %p>>>", l.name, l.grid.x, l.grid.y, l.grid.z,
                  l.block.x, l.block.y, l.block.z, l.shared, (void *)l.stream);
    if (in_kernel())
        kernel_fault(cudaErrorNotSupported, "a kernel cannot launch a kernel on the CPU backend");
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    cudaError_t error = api_begin("cudaLaunchKernel", 0);
    bool fault = error && ends_context(error) && error != sticky; // injected
    if (fault) pending = error;
    if (!error) error = check_configuration(l);
    if (!error && host) {
        message("kernel %s launched at %s:%d: argument %d points to memory of the host, which a "
                "GPU cannot reach",
                l.name, l.file, l.line, host);
        pending = cudaErrorIllegalAddress;
    } else if (!error) {
        if (is_capturing(l.stream))
            error = stream_operation(l.stream, kept(l));
        else
            error = stream_operation(l.stream, [&l] { return start_kernel(l); });
    }
    api_end("cudaLaunchKernel", fault ? cudaSuccess : error, config);
}

cudaError_t capture_kernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                           std::function<cudaError_t()> *operation)
{
    const KernelEntry *k = find_kernel(kernel);
    if (!k) return cudaErrorInvalidDeviceFunction;
    Launch l = {grid, block, shared, nullptr, "graph", 0, k->name, kernel};
    if (cudaError_t error = check_configuration(l)) return error;
    capture_target = operation;
    k->launch(l, args);
    capture_target = nullptr;
    return cudaSuccess;
}

cudaError_t launch_kernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                          cudaStream_t stream, const char *file, int line)
{
    if (const KernelEntry *k = find_kernel(kernel)) {
        Launch l = {grid, block, shared, stream, file, line, k->name, kernel};
        cudaError_t before = last_error;
        last_error = cudaSuccess;
        k->launch(l, args);
        cudaError_t error = last_error;
        if (!error) last_error = before;
        return error;
    }
    return api("cudaLaunchKernel", 0, "", [] { return cudaErrorInvalidDeviceFunction; });
}

cudaError_t function_attributes(cudaFuncAttributes *a, const void *kernel)
{
    return api("cudaFuncGetAttributes", 0, "", [&]() -> cudaError_t {
        if (!a || !kernel) return cudaErrorInvalidValue;
        *a = {};
        a->maxThreadsPerBlock = (int)most_threads(kernel);
        a->maxDynamicSharedSizeBytes = (int)shared_limit(kernel);
        return cudaSuccess;
    });
}

cudaError_t set_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    return api("cudaFuncSetAttribute", 0, arguments("%d, %d", attribute, value),
               [&]() -> cudaError_t {
                   if (!kernel) return cudaErrorInvalidDeviceFunction;
                   if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
                       return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
                   if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
                       value > MOST_SHARED)
                       return cudaErrorInvalidValue;
                   dynamic_limit[kernel] = value;
                   return cudaSuccess;
               });
}

// By threads (2048), blocks (32) and shared memory (228 KiB, 1 KiB a block for the system) of a multiprocessor.
cudaError_t occupancy(int *blocks, const void *kernel, int block_size, size_t shared)
{
    return api("cudaOccupancyMaxActiveBlocksPerMultiprocessor", 0,
               arguments("%d, %zu", block_size, shared), [&]() -> cudaError_t {
                   if (!blocks || !kernel || block_size <= 0) return cudaErrorInvalidValue;
                   int warps = (block_size + 31) / 32, by_threads = 64 / warps,
                       by_shared = (int)((228 << 10) / (shared + 1024));
                   *blocks = block_size > 1024 ? 0 : min(32, min(by_threads, by_shared));
                   return cudaSuccess;
               });
}

// ---- printf and malloc in kernels ----

static std::mutex printf_mutex;
static std::string &printf_fifo = *new std::string(), &assert_text = *new std::string();
static size_t printf_limit = 8 << 20, heap_size = 8 << 20, stack_size = 1024;
static std::atomic<size_t> heap_used{0};

// Kernels print into a FIFO, as on the GPU: it reaches stdout when the host synchronises. What does not fit is lost.
void printf_append(const char *format, va_list list, bool to_stderr)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, list);
    std::lock_guard<std::mutex> lock(printf_mutex);
    std::string &fifo = to_stderr ? assert_text : printf_fifo;
    if (fifo.size() + strlen(text) <= printf_limit) fifo += text;
}

static void flush_printf()
{
    std::lock_guard<std::mutex> lock(printf_mutex);
    fwrite(printf_fifo.data(), 1, printf_fifo.size(), stdout);
    fwrite(assert_text.data(), 1, assert_text.size(), stderr);
    printf_fifo.clear();
    assert_text.clear();
}

static void append(bool to_stderr, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf_append(format, list, to_stderr);
    va_end(list);
}

// At exit: what is left in the FIFO is lost, as on a GPU; memory that was never freed is reported.
__attribute__((destructor)) static void at_exit()
{
    if (!settings().leak_check || dead || sticky || pending || forked) return;
    if (!report_leaks()) return;
    fflush(nullptr);
    _exit(23);
}
} // namespace cuda_cpu

using namespace cuda_cpu;

// The linker sends the program's calls of these functions here (--wrap): in a kernel they are the device's.
extern "C" {
void *__real_malloc(size_t size);
void __real_free(void *p);
clock_t __real_clock();
[[noreturn]] void __real___assert_fail(const char *expression, const char *file, unsigned line,
                                       const char *function);
size_t malloc_usable_size(void *p);

int __wrap_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = 0;
    if (in_kernel())
        printf_append(format, list, false);
    else
        n = vprintf(format, list);
    va_end(list);
    return n;
}

int __wrap___printf_chk(int, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = 0;
    if (in_kernel())
        printf_append(format, list, false);
    else
        n = vprintf(format, list);
    va_end(list);
    return n;
}

void *__wrap_malloc(size_t size)
{
    if (!in_kernel()) return __real_malloc(size);
    if (size > heap_size || heap_used + size > heap_size) return nullptr;
    void *p = __real_malloc(size);
    heap_used += malloc_usable_size(p);
    return p;
}

void __wrap_free(void *p)
{
    if (in_kernel()) heap_used -= malloc_usable_size(p);
    __real_free(p);
}

clock_t __wrap_clock() { return in_kernel() ? (clock_t)clock64() : __real_clock(); }

void __wrap___assert_fail(const char *expression, const char *file, unsigned line,
                          const char *function)
{
    if (!in_kernel()) __real___assert_fail(expression, file, line, function);
    append(true, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
           line, function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
           threadIdx.z, expression);
    kernel_fault(cudaErrorAssert, nullptr);
}
}

// ---- Errors and the device ----

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define CUDA_CPU_ERROR(number, name, text)                                                         \
    case number:                                                                                   \
        return #name;
#include "errors.inc"
#undef CUDA_CPU_ERROR
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define CUDA_CPU_ERROR(number, name, text)                                                         \
    case number:                                                                                   \
        return text;
#include "errors.inc"
#undef CUDA_CPU_ERROR
    }
    return "unrecognized error code";
}

static cudaError_t get_last_error(const char *name, bool clear)
{
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    cudaError_t error = injected(name);
    if (!error) error = sticky && !dead ? sticky : last_error;
    if (clear) last_error = cudaSuccess;
    if (settings().log)
        message("%s() -> %d%s%s", name, error, error ? " " : "",
                error ? cudaGetErrorName(error) : "");
    return error;
}
cudaError_t cudaGetLastError() { return get_last_error("cudaGetLastError", true); }
cudaError_t cudaPeekAtLastError() { return get_last_error("cudaPeekAtLastError", false); }

cudaError_t cudaGetDeviceCount(int *count)
{
    if (count) *count = 0;
    return api("cudaGetDeviceCount", QUERY, "", [&]() -> cudaError_t {
        if (!count) return cudaErrorInvalidValue;
        *count = settings().devices;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device)
{
    return api("cudaGetDevice", QUERY, "", [&]() -> cudaError_t {
        if (!device) return cudaErrorInvalidValue;
        *device = current_device;
        return cudaSuccess;
    });
}

static cudaError_t check_device(int device)
{
    return device < 0 || device >= settings().devices ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return api("cudaSetDevice", 0, arguments("%d", device), [&] {
        cudaError_t error = check_device(device);
        if (!error) current_device = device;
        return error;
    });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
    return api("cudaInitDevice", 0, arguments("%d", device), [&] { return check_device(device); });
}
cudaError_t cudaSetDeviceFlags(unsigned)
{
    return api("cudaSetDeviceFlags", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    return api("cudaGetDeviceFlags", 0, "",
               [&] { return *flags = cudaDeviceMapHost, cudaSuccess; });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return api("cudaDeviceSetCacheConfig", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaProfilerStart()
{
    return api("cudaProfilerStart", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaProfilerStop()
{
    return api("cudaProfilerStop", 0, "", [] { return cudaSuccess; });
}

cudaError_t cudaDeviceSynchronize()
{
    return api("cudaDeviceSynchronize", SYNC | NO_CAPTURE, "", [] { return cudaSuccess; });
}

// After a sticky error CUDA resets with success, and yet only a new process can use the device again.
cudaError_t cudaDeviceReset()
{
    return api("cudaDeviceReset", SYNC | QUERY, "", [] {
        if (sticky) dead = true;
        sticky = pending = last_error = cudaSuccess;
        reset_memory();
        return cudaSuccess;
    });
}

static cudaError_t limit(const char *name, cudaLimit which, size_t *get, const size_t *set)
{
    return api(name, 0, arguments("%d", which), [&]() -> cudaError_t {
        size_t *value = which == cudaLimitStackSize        ? &stack_size
                        : which == cudaLimitPrintfFifoSize ? &printf_limit
                        : which == cudaLimitMallocHeapSize ? &heap_size
                                                           : nullptr;
        if (!value) return cudaErrorUnsupportedLimit;
        if (set)
            *value = *set;
        else if (get)
            *get = *value;
        else
            return cudaErrorInvalidValue;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit which)
{
    return limit("cudaDeviceGetLimit", which, value, nullptr);
}
cudaError_t cudaDeviceSetLimit(cudaLimit which, size_t value)
{
    return limit("cudaDeviceSetLimit", which, nullptr, &value);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return api("cudaDriverGetVersion", QUERY | NO_DEVICE, "", [&] {
        return version ? *version = CUDART_VERSION, cudaSuccess : cudaErrorInvalidValue;
    });
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    return api("cudaRuntimeGetVersion", QUERY | NO_DEVICE, "", [&] {
        return version ? *version = CUDART_VERSION, cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return api("cudaDeviceCanAccessPeer", 0, arguments("%d, %d", device, peer),
               [&]() -> cudaError_t {
                   if (!can) return cudaErrorInvalidValue;
                   *can = 0;
                   return check_device(device) ? check_device(device) : check_device(peer);
               });
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    return api("cudaDeviceGetPCIBusId", QUERY, "", [&]() -> cudaError_t {
        if (check_device(device)) return cudaErrorInvalidDevice;
        if (!id || length < 13) return cudaErrorInvalidValue;
        strcpy(id, "0000:00:00.0");
        return cudaSuccess;
    });
}

// A multiprocessor is one OS thread. Zero stands for what a CPU cannot say: clocks, bus width, registers in use.
static cudaDeviceProp properties()
{
    cudaDeviceProp p = {};
    snprintf(p.name, sizeof p.name, "CPU backend (%d threads)", settings().threads);
    memcpy(p.uuid.bytes, "nvcc-cpu backend", 16);
    p.totalGlobalMem = settings().memory;
    p.sharedMemPerBlock = DEFAULT_SHARED;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.warpSize = 32;
    p.memPitch = 0x7fffffff;
    p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = 64 << 10;
    p.major = 9;
    p.minor = 0;
    p.textureAlignment = 512;
    p.texturePitchAlignment = 32;
    p.multiProcessorCount = settings().threads;
    p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
    p.maxTexture1D = p.maxTexture2D[0] = 131072;
    p.maxTexture2D[1] = 65536;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.sharedMemPerMultiprocessor = 228 << 10;
    p.sharedMemPerBlockOptin = MOST_SHARED;
    p.reservedSharedMemPerBlock = 1024;
    p.hostNativeAtomicSupported = p.hostRegisterSupported = p.canUseHostPointerForRegisteredMem =
        p.memoryPoolsSupported = 1;
    p.streamPrioritiesSupported = 1;
    p.singleToDoublePrecisionPerfRatio = 1;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    p.l2CacheSize = cache > 0 ? (int)(cache < 0x7fffffff ? cache : 0x7fffffff) : 0;
    return p;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    return api("cudaGetDeviceProperties", QUERY, arguments("%d", device), [&]() -> cudaError_t {
        if (check_device(device)) return cudaErrorInvalidDevice;
        if (!prop) return cudaErrorInvalidValue;
        *prop = properties();
        return cudaSuccess;
    });
}

cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *)
{
    return api("cudaChooseDevice", 0, "", [&] { return *device = 0, cudaSuccess; });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    return api("cudaDeviceGetAttribute", QUERY, arguments("%d, %d", attr, device),
               [&]() -> cudaError_t {
                   if (check_device(device)) return cudaErrorInvalidDevice;
                   if (!value) return cudaErrorInvalidValue;
                   static const cudaDeviceProp p = properties();
                   static const std::map<int, int> known = {
                       {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
                       {cudaDevAttrMaxBlockDimX, 1024},
                       {cudaDevAttrMaxBlockDimY, 1024},
                       {cudaDevAttrMaxBlockDimZ, 64},
                       {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
                       {cudaDevAttrMaxGridDimY, 65535},
                       {cudaDevAttrMaxGridDimZ, 65535},
                       {cudaDevAttrMaxSharedMemoryPerBlock, DEFAULT_SHARED},
                       {cudaDevAttrTotalConstantMemory, 64 << 10},
                       {cudaDevAttrWarpSize, 32},
                       {cudaDevAttrMaxPitch, 0x7fffffff},
                       {cudaDevAttrMaxRegistersPerBlock, 65536},
                       {cudaDevAttrTextureAlignment, 512},
                       {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
                       {cudaDevAttrCanMapHostMemory, 1},
                       {cudaDevAttrMaxTexture1DWidth, p.maxTexture1D},
                       {cudaDevAttrMaxTexture2DWidth, p.maxTexture2D[0]},
                       {cudaDevAttrMaxTexture2DHeight, p.maxTexture2D[1]},
                       {cudaDevAttrL2CacheSize, p.l2CacheSize},
                       {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                       {cudaDevAttrUnifiedAddressing, 1},
                       {cudaDevAttrTexturePitchAlignment, 32},
                       {cudaDevAttrMaxTexture1DLinearWidth, 1 << 27},
                       {cudaDevAttrComputeCapabilityMajor, p.major},
                       {cudaDevAttrComputeCapabilityMinor, p.minor},
                       {cudaDevAttrStreamPrioritiesSupported, 1},
                       {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
                       {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
                       {cudaDevAttrManagedMemory, 1},
                       {cudaDevAttrHostNativeAtomicSupported, 1},
                       {cudaDevAttrSingleToDoublePrecisionPerfRatio, 1},
                       {cudaDevAttrConcurrentManagedAccess, 1},
                       {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
                       {cudaDevAttrMaxSharedMemoryPerBlockOptin, MOST_SHARED},
                       {cudaDevAttrHostRegisterSupported, 1},
                       {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
                       {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
                       {cudaDevAttrMemoryPoolsSupported, 1},
                   };
                   auto found = known.find(attr);
                   if ((int)attr < 1 || (int)attr > 147) return cudaErrorInvalidValue;
                   *value = found == known.end() ? 0 : found->second;
                   return cudaSuccess;
               });
}
