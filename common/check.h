// check.h - every CUDA call is checked, and a failure explains itself.
//
// CUDA_CHECK(call)      the call's own error; evaluated once, never compiled out
// CUDA_CHECK_LAUNCH()   right after kernel<<<...>>>: was the launch itself accepted?
// CUDA_CHECK_SYNC()     waits for the device: did everything before run to its end?
//
// A failure prints file:line, the expression, number, name and text of the error and, for the
// well-known ones, a hint with this machine's own numbers; then the program exits with 1.
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <cuda_runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_WAIVED = 2, EXIT_BAD_USAGE = 64 };

#define CUDA_CHECK(call) check_cuda((call), #call, __FILE__, __LINE__)
#define CUDA_CHECK_LAUNCH() check_cuda(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)
#define CUDA_CHECK_SYNC()                                                                          \
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize()", __FILE__, __LINE__)

#define CHECK_GIB(bytes) ((double)(bytes) / (1024.0 * 1024.0 * 1024.0))

// What the program will say about itself when it ends; report.h writes it into the JSON.
struct lesson_outcome {
    int exit_code;
    char message[1024];
    size_t bytes_needed; // what require_device_memory() was last asked for; 0: never asked
};
static struct lesson_outcome lesson_outcome;

// Ends the program with `code` after one line on stderr (printf-style).
__attribute__((format(printf, 2, 3), noreturn)) static inline void
lesson_exit(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(lesson_outcome.message, sizeof(lesson_outcome.message), format, args);
    va_end(args);
    lesson_outcome.exit_code = code;
    fflush(stdout);
    fprintf(stderr, "%s\n", lesson_outcome.message);
    exit(code);
}

// The code this program was compiled for, as nvcc saw it: "75 90", or "?" before CUDA 11.5.
// SASS or PTX is not told apart here; scripts/inspect reads the binary itself.
static inline const char *compiled_architectures(void)
{
#ifdef __CUDA_ARCH_LIST__
    static char text[128];
    const int list[] = {__CUDA_ARCH_LIST__};
    size_t used = 0;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]) && used + 8 < sizeof(text); i++)
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "", list[i] / 10);
    return text;
#else
    return "?";
#endif
}

static inline void hint_memory(char *text, size_t size)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        snprintf(text, size, "the device has too little free memory: choose a smaller size");
        return;
    }
    int used = 0;
    if (lesson_outcome.bytes_needed)
        used = snprintf(text, size, "this program needs %.2f GiB in all; ",
                        CHECK_GIB(lesson_outcome.bytes_needed));
    snprintf(text + used, size - (size_t)used,
             "%.2f of %.2f GiB are free now: choose a smaller --n, or see who else uses the GPU "
             "with nvidia-smi",
             CHECK_GIB(free_bytes), CHECK_GIB(total_bytes));
}

static inline void hint_no_image(char *text, size_t size)
{
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    snprintf(text, size,
             "GPU %d is sm_%d%d; this program was compiled for: %s. Rebuild it: make SMS=%d%d",
             device, major, minor, compiled_architectures(), major, minor);
}

// What a launch may ask for, from the device at hand.
static inline void hint_launch(char *text, size_t size)
{
    int device = 0, threads = 0, shared = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
    cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlock, device);
    snprintf(text, size,
             "if this is a launch: a block has at most %d threads here, a grid at least 1 block, "
             "and more than %d KiB of shared memory needs cudaFuncSetAttribute; all limits: "
             "./01_hello_grid/device_query. With driver 575 or newer, CUDA_LOG_FILE=stderr names "
             "the argument",
             threads, shared / 1024);
}

// CUDA's version numbers: 13000 is 13.0, 11080 is 11.8.
static inline void hint_versions(cudaError_t error, char *text, size_t size)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaErrorInsufficientDriver && driver == 0)
        snprintf(text, size,
                 "no NVIDIA driver library (libcuda.so.1) was found. On a cluster: srun "
                 "--gres=gpu:1; in a container: --gpus all; no GPU at all: make BACKEND=cpu");
    else
        snprintf(text, size,
                 "the driver offers CUDA %d.%d, this program was built with %d.%d: update the "
                 "driver, or build with an older toolkit",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

// Writes into text what the user can do about `error`; an empty string when we know nothing
// that the error's own text does not say.
static inline void cuda_hint(cudaError_t error, char *text, size_t size)
{
    text[0] = '\0';
    switch ((int)error) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
        hint_launch(text, size);
        break;
    case cudaErrorMemoryAllocation:
        hint_memory(text, size);
        break;
    case cudaErrorInitializationError:
        snprintf(text, size,
                 "CUDA was used before fork(): start child processes before the "
                 "first CUDA call");
        break;
    case cudaErrorInsufficientDriver:
    case cudaErrorUnsupportedPtxVersion:
        hint_versions(error, text, size);
        break;
    case cudaErrorStubLibrary:
        snprintf(text, size,
                 "the stub libcuda.so of the toolkit was loaded: take .../stubs out of "
                 "LD_LIBRARY_PATH (now: %s)",
                 getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : "not set");
        break;
    case cudaErrorDevicesUnavailable:
        snprintf(text, size,
                 "another process owns the GPU alone (compute mode): nvidia-smi -q -d "
                 "COMPUTE");
        break;
    case cudaErrorNoDevice: {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        snprintf(text, size,
                 "the driver is there but shows no GPU (CUDA_VISIBLE_DEVICES %s%.64s%s): on a "
                 "cluster ask for one (srun --gres=gpu:1), or run on the CPU: make BACKEND=cpu",
                 visible ? "is '" : "is not set", visible ? visible : "",
                 visible ? "': unset it if you set it" : "");
        break;
    }
    case cudaErrorInvalidDeviceFunction:  // 98
    case cudaErrorNoKernelImageForDevice: // 209
        hint_no_image(text, size);
        break;
    case cudaErrorECCUncorrectable:
        snprintf(text, size,
                 "a memory cell of the GPU failed; tell the machine's owner: "
                 "nvidia-smi -q -d ECC,ROW_REMAPPER");
        break;
    case cudaErrorIllegalAddress:    // 700
    case cudaErrorMisalignedAddress: // 716
    case cudaErrorAssert:            // 710
    case cudaErrorLaunchFailure:     // 719
        snprintf(text, size,
                 "a kernel launched earlier failed; this process cannot use CUDA any "
                 "more. Who and where: compute-sanitizer ./program");
        break;
    case cudaErrorLaunchOutOfResources: // 701
        snprintf(text, size,
                 "registers a thread x threads a block exceed the SM's register file: "
                 "use smaller blocks, or __launch_bounds__ on the kernel (-Xptxas -v "
                 "prints the registers; a dbg=1 build needs more)");
        break;
    case cudaErrorLaunchTimeout:
        snprintf(text, size,
                 "the display's watchdog ended the kernel: make it shorter, or use a "
                 "GPU without a display");
        break;
    case cudaErrorNotSupported: // 801
        snprintf(text, size,
                 "this GPU or system lacks the feature; ./01_hello_grid/device_query "
                 "lists what it has");
        break;
    case cudaErrorSystemNotReady: // 802
        snprintf(text, size,
                 "servers with NVSwitch need the service nvidia-fabricmanager running "
                 "on the host, in the driver's version; a container cannot start it");
        break;
    case cudaErrorSystemDriverMismatch: // 803
        snprintf(text, size,
                 "the loaded libcuda and the kernel module differ in version: reboot "
                 "after a driver update, or take cuda-compat off the library path. "
                 "scripts/check_env shows both");
        break;
    case cudaErrorCompatNotSupportedOnDevice: // 804
        snprintf(text, size,
                 "a cuda-compat libcuda is loaded, which works on data-centre GPUs "
                 "only: take it off LD_LIBRARY_PATH. scripts/check_env shows where it "
                 "is");
        break;
    case cudaErrorUnknown: // 999
        snprintf(text, size,
                 "often the nvidia_uvm module is missing or broken after a suspend "
                 "(close CUDA programs, then: sudo modprobe -r nvidia_uvm && sudo "
                 "modprobe nvidia_uvm); scripts/check_env looks");
        break;
    default:
        break;
    }
}

static inline void check_cuda(cudaError_t error, const char *expression, const char *file, int line)
{
    if (error == cudaSuccess)
        return;
    char hint[512];
    cuda_hint(error, hint, sizeof(hint));
    lesson_exit(EXIT_FAILED, "%s:%d: %s\n  error %d %s: %s%s%s", file, line, expression, (int)error,
                cudaGetErrorName(error), cudaGetErrorString(error), hint[0] ? "\n  hint: " : "",
                hint);
}

// malloc that ends the program, with one clear line, instead of returning NULL.
static inline void *host_malloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        lesson_exit(EXIT_FAILED, "no host memory: %.2f GiB asked", CHECK_GIB(bytes));
    return memory;
}

// Call before allocating: ends the program when count x bytes_each bytes (beyond what size_t holds,
// too) are more than the device has free. `option` is the one to make smaller, such as "--n".
static inline void require_device_memory(size_t count, size_t bytes_each, const char *option)
{
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (bytes_each && count > free_bytes / bytes_each)
        lesson_exit(EXIT_FAILED,
                    "%s %zu needs %.2f GiB of device memory, %.2f of %.2f GiB are free: choose a "
                    "smaller %s",
                    option, count, CHECK_GIB(count) * (double)bytes_each, CHECK_GIB(free_bytes),
                    CHECK_GIB(total_bytes), option);
    lesson_outcome.bytes_needed = count * bytes_each;
}

#endif
