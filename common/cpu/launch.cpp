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
    auto found = dynamic_limit.find(kernel);
    if (found != dynamic_limit.end()) return (size_t)found->second;
    int most = DEFAULT_SHARED;
    if (!kernel) // a template whose address is unknown: the largest that was asked for
        for (auto &[k, limit] : dynamic_limit) most = max(limit, most);
    return (size_t)most;
}

static const KernelEntry *find_kernel(const void *kernel)
{
    const KernelEntry *k = kernels;
    while (k && k->address != kernel) k = k->next;
    return k;
}

static unsigned most_threads(const void *kernel)
{
    const KernelEntry *k = find_kernel(kernel);
    return k ? k->most_threads : 1024;
}

static cudaError_t check_configuration(const Launch &l)
{
    uint64_t threads = (uint64_t)l.block.x * l.block.y * l.block.z;
    if (!l.grid.x || !l.grid.y || !l.grid.z || !threads || l.grid.x > 0x7fffffff ||
        l.grid.y > 65535 || l.grid.z > 65535 || l.block.x > 1024 || l.block.y > 1024 ||
        l.block.z > 64 || threads > 1024 || l.shared > shared_limit(l.kernel))
        return cudaErrorInvalidValue;
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

static cudaError_t start_kernel(const Launch &l)
{
    if (state.pending || state.sticky) return cudaSuccess;
    DeviceOpen open;
    state.pending = run_grid(l); // shows at the next synchronise
    return cudaSuccess;
}

// The launch as an operation that can run later, with its own copy of the arguments.
static Operation kept(const Launch &l)
{
    std::shared_ptr<const void> body(l.clone(l.body), l.destroy);
    return [copy = l, body]() mutable {
        copy.body = body.get();
        return start_kernel(copy);
    };
}

static thread_local Operation *keep_in = nullptr; // for launch_operation

// Is it a fault of a kernel, which sticks? (CUDA_CPU_FAIL=kernel:1:700)
static bool is_fault(int error)
{
    return error >= 700 && error <= 719 && error != 701 && (error < 703 || error > 709);
}

void launch(const Launch &l)
{
    int host = std::exchange(host_argument, 0);
    if (keep_in) {
        *keep_in = kept(l);
        return;
    }
    if (in_kernel())
        kernel_fault(cudaErrorNotSupported, "a kernel cannot launch a kernel on the CPU backend");
    std::lock_guard<std::recursive_mutex> lock(api_mutex);
    cudaError_t error = api_begin("cudaLaunchKernel", 0);
    if (is_fault(error) && error != state.sticky) {
        state.pending = error;
        error = cudaSuccess;
    } else if (!error) {
        error = check_configuration(l);
        if (!error && host) {
            message("kernel %s launched at %s:%d: argument %d points to memory of the host, which "
                    "a GPU cannot reach",
                    l.name, l.file, l.line, host);
            state.pending = cudaErrorIllegalAddress;
        } else if (!error) {
            error = is_capturing(l.stream) ? enqueue(l.stream, kept(l))
                                           : enqueue(l.stream, [&l] { return start_kernel(l); });
        }
    }
    std::string call;
    if (settings().log)
        call = l.name + ("<<<" + log_text(l.grid, l.block, l.shared, l.stream) + ">>>");
    api_end("cudaLaunchKernel", 0, error, call);
}

cudaError_t launch_operation(const cudaKernelNodeParams &p, Operation *operation)
{
    const KernelEntry *k = find_kernel(p.func);
    if (!k) return cudaErrorInvalidDeviceFunction;
    Launch l = {p.gridDim, p.blockDim, p.sharedMemBytes, nullptr, "graph", 0, k->name, p.func};
    if (cudaError_t error = check_configuration(l)) return error;
    keep_in = operation;
    k->launch(l, p.kernelParams);
    keep_in = nullptr;
    return cudaSuccess;
}
} // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaLaunchKernel(Kernel kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream, At at)
{
    const KernelEntry *k = find_kernel(kernel.address);
    if (!k) return api("cudaLaunchKernel", 0, "", [] { return cudaErrorInvalidDeviceFunction; });
    cudaError_t before = std::exchange(last_error, cudaSuccess);
    k->launch({grid, block, shared, stream, at.file, at.line, k->name, kernel.address}, args);
    cudaError_t error = last_error;
    if (!error) last_error = before;
    return error;
}

API(cudaFuncGetAttributes, 0, (cudaFuncAttributes *attributes, Kernel kernel),
    (attributes, kernel))
{
    if (!kernel.address) return cudaErrorInvalidValue;
    cudaFuncAttributes a = {};
    a.maxThreadsPerBlock = (int)most_threads(kernel.address);
    a.maxDynamicSharedSizeBytes = (int)shared_limit(kernel.address);
    return give(attributes, a);
}

API(cudaFuncSetAttribute, 0, (Kernel kernel, cudaFuncAttribute attribute, int value),
    (kernel, attribute, value))
{
    if (!kernel.address) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > MOST_SHARED)
        return cudaErrorInvalidValue;
    dynamic_limit[kernel.address] = value;
    return cudaSuccess;
}

// By threads (2048), blocks (32) and shared memory (228 KiB, 1 KiB a block for the system) of a multiprocessor.
static int blocks_at_once(int block_size, size_t shared)
{
    int by_threads = 64 / ((block_size + 31) / 32),
        by_shared = (int)((228 << 10) / (shared + 1024));
    return block_size > 1024 ? 0 : min(32, min(by_threads, by_shared));
}

API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 0,
    (int *blocks, Kernel kernel, int block_size, size_t shared),
    (blocks, kernel, block_size, shared))
{
    if (!kernel.address || block_size <= 0) return cudaErrorInvalidValue;
    return give(blocks, blocks_at_once(block_size, shared));
}

// The block size with the most threads a multiprocessor, and the smallest grid that fills the device with it.
API(cudaOccupancyMaxPotentialBlockSize, 0,
    (int *grid, int *block_size, Kernel kernel, size_t shared, int limit),
    (grid, block_size, kernel, shared, limit))
{
    if (!grid || !block_size || !kernel.address) return cudaErrorInvalidValue;
    int best = 0;
    for (int size = limit > 0 ? min(limit, 1024) : 1024; size > 0; size = (size - 1) / 32 * 32) {
        int blocks = blocks_at_once(size, shared);
        if (blocks * size <= best) continue;
        best = blocks * size;
        *block_size = size;
        *grid = blocks * settings().threads;
    }
    return cudaSuccess;
}
