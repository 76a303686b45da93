// The settings, the error state and when it shows, fault injection, the log: what every API function goes through.
#include "runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

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

ErrorState &state = *new ErrorState();
thread_local cudaError_t last_error = cudaSuccess;

bool ends_context(int error)
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

cudaError_t injected(const char *name)
{
    static auto &list = *new std::vector<Injection>(read_injections());
    for (Injection &i : list)
        if (i.name == name && --i.countdown == 0) return (cudaError_t)i.error;
    return cudaSuccess;
}

static void at_first_call()
{
    install_handlers();
    pthread_atfork(nullptr, nullptr, [] { state.forked = true; });
}

cudaError_t api_begin(const char *name, int flags)
{
    static bool once = (at_first_call(), true);
    (void)once;
    if (cudaError_t error = injected(name)) return error;
    if (flags & NO_DEVICE) return cudaSuccess;
    if (state.forked) return cudaErrorInitializationError;
    if (settings().devices == 0) return cudaErrorNoDevice;
    if (flags & SYNC) {
        flush_printf();
        if (state.pending) state.sticky = state.pending;
        state.pending = cudaSuccess;
    }
    if (flags & QUERY) return cudaSuccess;
    if (state.dead) return cudaErrorDevicesUnavailable;
    if (state.sticky) return state.sticky;
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
} // namespace cuda_cpu

using namespace cuda_cpu;

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
    if (!error) error = last_error; // reading clears it even after a sticky error, as on a GPU
    if (clear) last_error = cudaSuccess;
    if (settings().log)
        message("%s() -> %d%s%s", name, error, error ? " " : "",
                error ? cudaGetErrorName(error) : "");
    return error;
}
cudaError_t cudaGetLastError() { return get_last_error("cudaGetLastError", true); }
cudaError_t cudaPeekAtLastError() { return get_last_error("cudaPeekAtLastError", false); }
