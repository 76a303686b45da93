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

static std::string text_setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static bool flag_setting(const char *name) { return text_setting(name, "0") != "0"; }

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
    std::string value = text_setting("CUDA_CPU_SCHEDULE", "forward");
    if (value == "reverse")
        s.schedule = Settings::REVERSE;
    else if (value.compare(0, 7, "random:") == 0 && value.size() > 7 &&
             value.find_first_not_of("0123456789", 7) == std::string::npos)
        s.schedule = Settings::RANDOM, s.seed = (unsigned)strtoul(&value[7], nullptr, 10);
    else if (value != "forward")
        bad_setting("CUDA_CPU_SCHEDULE", value.c_str(), "forward, reverse or random:SEED");
    value = text_setting("CUDA_CPU_BARRIER", "strict");
    s.early_exit = value == "exited";
    if (!s.early_exit && value != "strict")
        bad_setting("CUDA_CPU_BARRIER", value.c_str(), "strict or exited");
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

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
#define CUDA_CPU_ERROR(number, name, text) {number, #name, text},
#include "errors.inc"
#undef CUDA_CPU_ERROR
};

// CUDA_CPU_FAIL=NAME:N[:ERROR][,...] makes the N-th call of NAME fail.
struct Injection {
    std::string name;
    long countdown;
    int error;
};

// The error that a function with this name gives most often.
static int plausible_error(const std::string &name)
{
    static const struct {
        cudaError_t error;
        std::vector<const char *> parts;
    } list[] = {
        {cudaErrorMemoryAllocation, {"Malloc", "Alloc", "Create", "HostRegister", "Instantiate"}},
        {cudaErrorLaunchOutOfResources, {"LaunchKernel", "LastError"}},
        {cudaErrorLaunchFailure, {"Synchronize", "Query"}},
        {cudaErrorNoDevice, {"GetDeviceCount"}},
        {cudaErrorInvalidDevice, {"SetDevice", "DeviceGetAttribute", "Properties"}},
        {cudaErrorInvalidSymbol, {"Symbol"}},
    };
    for (auto &[error, parts] : list)
        for (const char *part : parts)
            if (name.find(part) != std::string::npos) return error;
    return cudaErrorInvalidValue;
}

static int error_by_name(const std::string &text)
{
    for (auto &e : errors)
        if (text == e.name || text == std::to_string(e.number)) return e.number;
    return -1;
}

static std::vector<Injection> read_injections()
{
    std::vector<Injection> list;
    std::string value = text_setting("CUDA_CPU_FAIL", ""), item;
    for (std::istringstream items(value); std::getline(items, item, ',');) {
        char name[64] = "", error[64] = "";
        long n = 0;
        int parts = sscanf(item.c_str(), "%63[^:]:%ld:%63s", name, &n, error);
        if (strcmp(name, "kernel") == 0) strcpy(name, "cudaLaunchKernel");
        list.push_back({name, n, parts == 3 ? error_by_name(error) : plausible_error(name)});
        if (n < 1 || list.back().error < 1)
            bad_setting("CUDA_CPU_FAIL", value.c_str(),
                        "NAME:N[:ERROR], as in cudaMalloc:2 or kernel:1:700");
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

static bool at_first_call()
{
    install_handlers();
    return pthread_atfork(nullptr, nullptr, [] { state.forked = true; }) == 0;
}

cudaError_t api_begin(const char *name, int flags)
{
    static bool once = at_first_call();
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

cudaError_t api_end(const char *name, int flags, cudaError_t error, const std::string &arguments)
{
    if (error && error != cudaErrorNotReady && !(flags & LAST_ERROR)) last_error = error;
    if (settings().log)
        message("%s(%s) -> %d%s%s", name, arguments.c_str(), error, error ? " " : "",
                error ? cudaGetErrorName(error) : "");
    return error;
}
} // namespace cuda_cpu

using namespace cuda_cpu;

const char *cudaGetErrorName(cudaError_t error)
{
    for (auto &e : errors)
        if (e.number == error) return e.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (auto &e : errors)
        if (e.number == error) return e.text;
    return "unrecognized error code";
}

API(cudaPeekAtLastError, NO_DEVICE | LAST_ERROR, (), ()) { return last_error; }

// Reading clears it, even after a sticky error.
API(cudaGetLastError, NO_DEVICE | LAST_ERROR, (), ())
{
    return std::exchange(last_error, cudaSuccess);
}
