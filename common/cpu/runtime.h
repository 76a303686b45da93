// What the files of the runtime share with each other; programs never see it.
#pragma once
#include <stdarg.h>
#include <stdio.h>

#include <functional>
#include <mutex>
#include <string>

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
    QUERY = 1,      // answers even after a sticky error
    SYNC = 2,       // waits for kernels: prints what they printed, reports their faults
    NO_CAPTURE = 4, // is not allowed while a stream is being captured
    NO_DEVICE = 8,  // works without a device
};
cudaError_t api_begin(const char *name, int flags);
cudaError_t api_end(const char *name, cudaError_t error, const std::string &arguments);
[[gnu::format(printf, 1, 2)]] std::string arguments(const char *format,
                                                    ...); // empty unless logging
extern std::recursive_mutex &api_mutex;

template <class F> cudaError_t api(const char *name, int flags, const std::string &args, F body)
{
    if (in_kernel()) kernel_fault(cudaErrorLaunchFailure, "%s is called in a kernel", name);
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    cudaError_t error = api_begin(name, flags);
    if (error == cudaSuccess) error = body();
    return api_end(name, error, args);
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
bool ends_context(int error);               // is it a fault that sticks?
cudaError_t injected(const char *api);      // what CUDA_CPU_FAIL wants of this call

// launch.cpp, device_libc.cpp
const int DEFAULT_SHARED = 48 << 10, MOST_SHARED = 227 << 10;
struct Limits {
    size_t printf_fifo = 8 << 20, heap = 8 << 20, stack = 1024;
};
extern Limits limits;
void flush_printf();

// memory.cpp
bool with_asan();
bool is_host_pointer(const void *p); // memory that belongs to the host alone
bool in_device_region(const void *p);
bool report_leaks();
cudaError_t copy(void *dst, const void *src, size_t size, cudaMemcpyKind kind);
void poison(void *p, size_t size);
void reset_memory();
struct DeviceOpen { // device memory can be touched while one of these exists
    DeviceOpen();
    ~DeviceOpen();
};

// stream.cpp: runs an operation, or records it when the stream is being captured
cudaError_t check_stream(cudaStream_t stream);
cudaError_t stream_operation(cudaStream_t stream, std::function<cudaError_t()> operation);
cudaError_t
start_kernel(const Launch &launch); // of runtime.cpp: runs it, and keeps its fault for later
bool is_capturing(cudaStream_t stream);
cudaError_t capture_kernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                           size_t shared, std::function<cudaError_t()> *operation);
bool capture_forbids(); // true, and the capture is spoilt, when one is under way
} // namespace cuda_cpu
