// Launches: what is checked before a kernel runs, and what is known about kernels.
#include "runtime.h"

#include <map>
#include <memory>

namespace cuda_cpu
{
static auto &dynamic_limit = *new std::map<const void *, int>(); // from cudaFuncSetAttribute
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
    if (state.pending || state.sticky) return cudaSuccess;
    DeviceOpen open;
    state.pending = run_grid(l);
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
    bool fault = error && ends_context(error) && error != state.sticky; // injected
    if (fault) state.pending = error;
    if (!error) error = check_configuration(l);
    if (!error && host) {
        message("kernel %s launched at %s:%d: argument %d points to memory of the host, which a "
                "GPU cannot reach",
                l.name, l.file, l.line, host);
        state.pending = cudaErrorIllegalAddress;
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
} // namespace cuda_cpu
