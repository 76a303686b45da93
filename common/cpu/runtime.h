// What the files of the runtime share with each other; programs never see it.
#pragma once
#include <stdarg.h>
#include <stdio.h>

#include <functional>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "api.h"
#include "device.h"
#include "intrinsics.h"

namespace cuda_cpu
{

// Settings from the environment, read once.
struct Settings {
    size_t memory = (size_t)1 << 30;                      // CUDA_CPU_MEMORY
    int devices = 1;                                      // CUDA_CPU_DEVICES
    int threads = 1;                                      // CUDA_CPU_THREADS
    bool log = false;                                     // CUDA_CPU_LOG
    bool leak_check = false;                              // CUDA_CPU_LEAKCHECK
    enum { FORWARD, REVERSE, RANDOM } schedule = FORWARD; // CUDA_CPU_SCHEDULE
    unsigned seed = 1;
    bool strict = false;     // CUDA_CPU_STRICT: the host cannot touch device memory
    bool early_exit = false; // CUDA_CPU_BARRIER=exited: a returned thread counts as arrived
};
const Settings &settings();
[[gnu::format(printf, 1, 2)]] void message(const char *format, ...); // "cuda-cpu: ..." on stderr

// grid.cpp, block.cpp, fault.cpp
cudaError_t run_grid(const Launch &launch); // the fault that ended it, or success
inline bool in_kernel() { return block.serial != 0; }
void install_handlers(); // for SIGSEGV and the like, in kernels
[[noreturn]] void kernel_fault(cudaError_t error, const char *format, ...);
std::string where(); // "kernel k<<<...>>> (file:line), block (..), thread (..)"

// The body of every API function runs in here: one lock, fault injection, the error state, the log.
enum {
    QUERY = 1,       // answers even after a sticky error
    SYNC = 2,        // waits for kernels: prints what they printed, reports their faults
    NO_CAPTURE = 4,  // is not allowed while a stream is being captured
    NO_DEVICE = 8,   // works without a device
    LAST_ERROR = 16, // its result is the last error, not a new one
};
cudaError_t api_begin(const char *name, int flags);
cudaError_t api_end(const char *name, int flags, cudaError_t error, const std::string &arguments);
extern std::recursive_mutex &api_mutex;

template <class F>
cudaError_t api(const char *name, int flags, const std::string &arguments, F body)
{
    if (in_kernel()) kernel_fault(cudaErrorLaunchFailure, "%s is called in a kernel", name);
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    cudaError_t error = api_begin(name, flags);
    return api_end(name, flags, error ? error : body(), arguments);
}

// API(name, flags, (parameters), (arguments)) { ... } defines a function of the API: what stands in the braces is
// do_NAME, which NAME calls in api(). Parameters and arguments are the same, with types and without.
#define API(name, flags, parameters, arguments)                                                    \
    static cudaError_t do_##name parameters;                                                       \
    cudaError_t name parameters                                                                    \
    {                                                                                              \
        return api(#name, flags, log_text arguments, [&] { return do_##name arguments; });         \
    }                                                                                              \
    static cudaError_t do_##name parameters

// The same, and NAMEAsync, which does it when its stream comes to it.
#define API_PAIR(name, flags, parameters, arguments)                                               \
    static cudaError_t do_##name parameters;                                                       \
    API(name##Async, 0, (API_LIST parameters, cudaStream_t stream), (API_LIST arguments, stream))  \
    {                                                                                              \
        return enqueue(stream, [=] { return do_##name arguments; });                               \
    }                                                                                              \
    API(name, flags, parameters, arguments)
#define API_LIST(...) __VA_ARGS__

// A call's arguments, for the log.
inline std::ostream &operator<<(std::ostream &out, dim3 d)
{
    return out << "(" << d.x << "," << d.y << "," << d.z << ")";
}
inline std::ostream &operator<<(std::ostream &out, char *result) { return out << (void *)result; }
inline std::ostream &operator<<(std::ostream &out, Out o) { return out << (void *)o.p; }
inline std::ostream &operator<<(std::ostream &out, Kernel k) { return out << k.address; }
inline std::ostream &operator<<(std::ostream &out, Symbol s) { return out << s.address; }
inline std::ostream &operator<<(std::ostream &out, cudaMemLocation l) { return out << l.id; }
inline std::ostream &operator<<(std::ostream &out, At a) { return out << a.file << ":" << a.line; }
template <class... A> std::string log_text(const A &...arguments)
{
    if (!settings().log) return "";
    std::ostringstream text;
    [[maybe_unused]] const char *comma = "";
    ((text << comma << arguments, comma = ", "), ...);
    return text.str();
}

// The objects of one kind that a program has created and not destroyed.
template <class T> struct Handles : std::set<T *> {
    cudaError_t unknown; // the error for another handle
    Handles(cudaError_t unknown_) : unknown(unknown_) {}
    cudaError_t create(T **handle, const T &value)
    {
        if (!handle) return cudaErrorInvalidValue;
        this->insert(*handle = new T(value));
        return cudaSuccess;
    }
    cudaError_t destroy(T *handle)
    {
        if (!this->erase(handle)) return unknown;
        delete handle;
        return cudaSuccess;
    }
};

template <class T> cudaError_t give(T *result, T value)
{
    if (!result) return cudaErrorInvalidValue;
    *result = value;
    return cudaSuccess;
}

// runtime.cpp
struct ErrorState {
    cudaError_t pending = cudaSuccess; // a kernel's fault that no call has reported yet
    cudaError_t sticky = cudaSuccess;  // a kernel's fault that every call reports from now on
    bool dead = false;                 // reset after a sticky error: only a new process helps
    bool forked = false;               // a child of the process that used the device
};
extern ErrorState &state;
extern thread_local cudaError_t last_error; // what cudaGetLastError gives

inline cudaError_t check_device(int device)
{
    return device < 0 || device >= settings().devices ? cudaErrorInvalidDevice : cudaSuccess;
}

// launch.cpp, device_libc.cpp
const int DEFAULT_SHARED = 48 << 10, MOST_SHARED = 227 << 10;
struct Limits {
    size_t printf_fifo = 8 << 20, heap = 8 << 20, stack = 1024;
};
extern Limits limits;
void flush_printf();

// allocation.cpp
bool with_asan();
bool is_host_pointer(const void *p); // memory that belongs to the host alone
bool in_device_region(const void *p);
bool report_leaks();
void poison(void *p, size_t size);
void reset_memory();
void open_device(bool open);
struct DeviceOpen { // device memory can be touched while one of these exists
    DeviceOpen() { open_device(true); }
    ~DeviceOpen() { open_device(false); }
};

// stream.cpp, launch.cpp
typedef std::function<cudaError_t()> Operation;
cudaError_t check_stream(cudaStream_t stream);
bool is_capturing(cudaStream_t stream);
cudaError_t enqueue(cudaStream_t stream, const Operation &operation); // runs or captures it
bool capture_forbids(); // true, and the capture is spoilt, when one is under way
// A launch as an operation for later, with its own copy of the arguments.
cudaError_t launch_operation(const cudaKernelNodeParams &params, Operation *operation);
} // namespace cuda_cpu
