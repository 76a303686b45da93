// The functions of the runtime API that the CPU backend has. What is missing here is
// missing on purpose: a program that needs it fails to compile, with the missing name in the message.
#pragma once
#pragma GCC system_header
#include "types.h"

#define CUDA_CPU_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Errors and the device.
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned flags, unsigned more);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned *flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device);
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *prop);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

// Memory.
cudaError_t cudaMalloc(void **p, size_t size, CUDA_CPU_AT);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height, CUDA_CPU_AT);
cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags = cudaMemAttachGlobal,
                              CUDA_CPU_AT);
cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags, CUDA_CPU_AT);
cudaError_t cudaMallocHost(void **p, size_t size, unsigned flags = 0, CUDA_CPU_AT);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaHostGetFlags(unsigned *flags, void *host);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *p, int value, size_t size);
cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, cudaMemLocation to, unsigned flags,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, int device,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise advice,
                          cudaMemLocation location);
cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise advice, int device);
cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream, CUDA_CPU_AT);
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream,
                                    CUDA_CPU_AT);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);

// Streams, events, host functions.
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned flags)
{
    return cudaEventCreateWithFlags(event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

// Graphs.
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t n,
                                   const cudaKernelNodeParams *params);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t n);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t n, void *dst,
                                     const void *src, size_t count, cudaMemcpyKind kind);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *bad,
                                 char *log, size_t size);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

namespace cuda_cpu
{
cudaError_t copy_symbol(const char *api, void *dst, const void *src, size_t size,
                        cudaMemcpyKind kind, const void *symbol, size_t offset,
                        cudaStream_t stream);
cudaError_t symbol_address(void **p, size_t *size, const void *symbol);
cudaError_t function_attributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t set_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t occupancy(int *blocks, const void *kernel, int block_size, size_t shared);
cudaError_t launch_kernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream, const char *file, int line);
} // namespace cuda_cpu

// The typed forms that CUDA's header has for C++.
template <class T> cudaError_t cudaMalloc(T **p, size_t size, CUDA_CPU_AT)
{
    return cudaMalloc((void **)p, size, file, line);
}
template <class T>
cudaError_t cudaMallocPitch(T **p, size_t *pitch, size_t width, size_t height, CUDA_CPU_AT)
{
    return cudaMallocPitch((void **)p, pitch, width, height, file, line);
}
template <class T>
cudaError_t cudaMallocManaged(T **p, size_t size, unsigned flags = cudaMemAttachGlobal, CUDA_CPU_AT)
{
    return cudaMallocManaged((void **)p, size, flags, file, line);
}
template <class T> cudaError_t cudaHostAlloc(T **p, size_t size, unsigned flags, CUDA_CPU_AT)
{
    return cudaHostAlloc((void **)p, size, flags, file, line);
}
template <class T> cudaError_t cudaMallocHost(T **p, size_t size, unsigned flags = 0, CUDA_CPU_AT)
{
    return cudaMallocHost((void **)p, size, flags, file, line);
}
template <class T> cudaError_t cudaMallocAsync(T **p, size_t size, cudaStream_t stream, CUDA_CPU_AT)
{
    return cudaMallocAsync((void **)p, size, stream, file, line);
}
template <class T>
cudaError_t cudaMallocAsync(T **p, size_t size, cudaMemPool_t pool, cudaStream_t stream,
                            CUDA_CPU_AT)
{
    return cudaMallocFromPoolAsync((void **)p, size, pool, stream, file, line);
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T **p, size_t size, cudaMemPool_t pool, cudaStream_t stream,
                                    CUDA_CPU_AT)
{
    return cudaMallocFromPoolAsync((void **)p, size, pool, stream, file, line);
}
template <class T> cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned flags)
{
    return cudaHostGetDevicePointer((void **)device, host, flags);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *src, size_t size, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return cuda_cpu::copy_symbol("cudaMemcpyToSymbol", nullptr, src, size, kind, &symbol, offset,
                                 nullptr);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t size, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return cuda_cpu::copy_symbol("cudaMemcpyFromSymbol", dst, nullptr, size, kind, &symbol, offset,
                                 nullptr);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr)
{
    return cuda_cpu::copy_symbol("cudaMemcpyToSymbolAsync", nullptr, src, size, kind, &symbol,
                                 offset, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t size, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr)
{
    return cuda_cpu::copy_symbol("cudaMemcpyFromSymbolAsync", dst, nullptr, size, kind, &symbol,
                                 offset, stream);
}
template <class T> cudaError_t cudaGetSymbolAddress(void **p, const T &symbol)
{
    return cuda_cpu::symbol_address(p, nullptr, &symbol);
}
template <class T> cudaError_t cudaGetSymbolSize(size_t *size, const T &symbol)
{
    return cuda_cpu::symbol_address(nullptr, size, &symbol);
}
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *kernel)
{
    return cuda_cpu::function_attributes(attributes, (const void *)kernel);
}
template <class F>
cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value)
{
    return cuda_cpu::set_function_attribute((const void *)kernel, attribute, value);
}
template <class F> cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache) { return cudaSuccess; }
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *kernel, int block_size,
                                                          size_t shared)
{
    return cuda_cpu::occupancy(blocks, (const void *)kernel, block_size, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, F *kernel,
                                                                   int block_size, size_t shared,
                                                                   unsigned)
{
    return cuda_cpu::occupancy(blocks, (const void *)kernel, block_size, shared);
}
template <class F>
cudaError_t cudaLaunchKernel(F *kernel, dim3 grid, dim3 block, void **arguments, size_t shared = 0,
                             cudaStream_t stream = nullptr, CUDA_CPU_AT)
{
    return cuda_cpu::launch_kernel((const void *)kernel, grid, block, arguments, shared, stream,
                                   file, line);
}

// The block size with the most threads a multiprocessor, and the smallest grid that fills the device with it.
template <class F, class SharedOf>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block_size, F *kernel,
                                                           SharedOf shared_of, int limit = 0)
{
    int best = 0, multiprocessors = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    if (limit <= 0 || limit > 1024) limit = 1024;
    for (int size = limit; size > 0 && error == cudaSuccess; size = (size - 1) / 32 * 32) {
        int blocks = 0;
        error = cuda_cpu::occupancy(&blocks, (const void *)kernel, size, shared_of(size));
        if (blocks * size > best)
            best = blocks * size, *block_size = size, *grid = blocks * multiprocessors;
    }
    return error;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block_size, F *kernel,
                                               size_t shared = 0, int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block_size, kernel, [=](int) { return shared; }, limit);
}

// Names that CUDA has removed or replaced.
#define CUDA_CPU_GONE(name, instead)                                                               \
    template <class... A>                                                                          \
    [[gnu::error(#name " is gone from CUDA: use " instead)]] cudaError_t name(A &&...);
#ifdef __clang__
#undef CUDA_CPU_GONE
#define CUDA_CPU_GONE(name, instead)                                                               \
    template <class... A>                                                                          \
    [[clang::unavailable(#name " is gone from CUDA: use " instead)]] cudaError_t name(A &&...);
#endif
CUDA_CPU_GONE(cudaThreadSynchronize, "cudaDeviceSynchronize")
CUDA_CPU_GONE(cudaThreadExit, "cudaDeviceReset")
CUDA_CPU_GONE(cudaThreadGetLimit, "cudaDeviceGetLimit")
CUDA_CPU_GONE(cudaThreadSetLimit, "cudaDeviceSetLimit")
CUDA_CPU_GONE(cudaThreadSetCacheConfig, "cudaDeviceSetCacheConfig")
CUDA_CPU_GONE(cudaBindTexture, "cudaCreateTextureObject")
CUDA_CPU_GONE(cudaBindTexture2D, "cudaCreateTextureObject")
CUDA_CPU_GONE(cudaBindTextureToArray, "cudaCreateTextureObject")
CUDA_CPU_GONE(cudaUnbindTexture, "cudaDestroyTextureObject")
CUDA_CPU_GONE(cudaSetupArgument, "cudaLaunchKernel")
CUDA_CPU_GONE(cudaConfigureCall, "cudaLaunchKernel")
CUDA_CPU_GONE(cudaLaunch, "cudaLaunchKernel")
CUDA_CPU_GONE(__shfl, "__shfl_sync")
CUDA_CPU_GONE(__shfl_up, "__shfl_up_sync")
CUDA_CPU_GONE(__shfl_down, "__shfl_down_sync")
CUDA_CPU_GONE(__shfl_xor, "__shfl_xor_sync")
CUDA_CPU_GONE(__ballot, "__ballot_sync")
CUDA_CPU_GONE(__any, "__any_sync")
CUDA_CPU_GONE(__all, "__all_sync")
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture {
    static_assert(sizeof(T) == 0, "texture references are gone from CUDA: use "
                                  "cudaCreateTextureObject and tex2D<T>(object, x, y)");
};
