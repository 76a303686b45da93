// The functions of the runtime API that the CPU backend has. What is missing here is
// missing on purpose: a program that needs it fails to compile, with the missing name in the message.
#pragma once
#pragma GCC system_header
#include "types.h"

namespace cuda_cpu
{
// Where a pointer is to be left: CUDA takes a void**, and in C++ a T** of any type.
struct Out {
    void **p;
    template <class T> Out(T **q) : p((void **)q) {}
    Out(decltype(nullptr)) : p(nullptr) {}
};
struct Kernel { // as an argument: any function
    const void *address;
    template <class F> Kernel(F *f) : address((const void *)f) {}
    Kernel(decltype(nullptr)) : address(nullptr) {}
};
struct Symbol { // as an argument: a __device__, __constant__ or __managed__ variable
    const void *address;
    template <class T> Symbol(const T &variable) : address((const void *)&variable) {}
};
struct At { // where in the program an allocation was made
    const char *file;
    int line;
};
} // namespace cuda_cpu

#define CUDA_CPU_AT cuda_cpu::At at = {__builtin_FILE(), __builtin_LINE()}
#define CUDA_CPU_PAIR(name, ...) /* a function, and its twin that takes a stream */                \
    cudaError_t name(__VA_ARGS__);                                                                 \
    cudaError_t name##Async(__VA_ARGS__, cudaStream_t stream = nullptr);

// Errors and the device.
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device);
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *prop);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

// Memory.
cudaError_t cudaMalloc(cuda_cpu::Out p, size_t size, CUDA_CPU_AT);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocPitch(cuda_cpu::Out p, size_t *pitch, size_t width, size_t height,
                            CUDA_CPU_AT);
cudaError_t cudaMallocManaged(cuda_cpu::Out p, size_t size, unsigned flags = cudaMemAttachGlobal,
                              CUDA_CPU_AT);
cudaError_t cudaHostAlloc(cuda_cpu::Out p, size_t size, unsigned flags, CUDA_CPU_AT);
cudaError_t cudaMallocHost(cuda_cpu::Out p, size_t size, unsigned flags = 0, CUDA_CPU_AT);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaHostGetDevicePointer(cuda_cpu::Out device, void *host, unsigned flags);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
CUDA_CPU_PAIR(cudaMemcpy, void *dst, const void *src, size_t size, cudaMemcpyKind kind)
CUDA_CPU_PAIR(cudaMemcpyPeer, void *dst, int dst_device, const void *src, int src_device,
              size_t size)
CUDA_CPU_PAIR(cudaMemcpy2D, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
              size_t height, cudaMemcpyKind kind)
CUDA_CPU_PAIR(cudaMemset, void *p, int value, size_t size)
CUDA_CPU_PAIR(cudaMemset2D, void *p, size_t pitch, int value, size_t width, size_t height)
CUDA_CPU_PAIR(cudaMemcpyToSymbol, cuda_cpu::Symbol symbol, const void *src, size_t size,
              size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice)
CUDA_CPU_PAIR(cudaMemcpyFromSymbol, void *dst, cuda_cpu::Symbol symbol, size_t size,
              size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
cudaError_t cudaGetSymbolAddress(cuda_cpu::Out p, cuda_cpu::Symbol symbol);
cudaError_t cudaGetSymbolSize(size_t *size, cuda_cpu::Symbol symbol);
cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, cudaMemLocation to, unsigned flags,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise advice, cudaMemLocation to);
cudaError_t cudaMallocAsync(cuda_cpu::Out p, size_t size, cudaStream_t stream, CUDA_CPU_AT);
cudaError_t cudaMallocFromPoolAsync(cuda_cpu::Out p, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream, CUDA_CPU_AT);
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);

// Streams, events, host functions.
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

// Graphs.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t n,
                                   const cudaKernelNodeParams *params);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

// Kernels.
cudaError_t cudaLaunchKernel(cuda_cpu::Kernel kernel, dim3 grid, dim3 block, void **arguments,
                             size_t shared = 0, cudaStream_t stream = nullptr, CUDA_CPU_AT);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, cuda_cpu::Kernel kernel);
cudaError_t cudaFuncSetAttribute(cuda_cpu::Kernel kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(cuda_cpu::Kernel kernel, cudaFuncCache config);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cuda_cpu::Kernel kernel,
                                                          int block_size, size_t shared);
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block_size, cuda_cpu::Kernel kernel,
                                               size_t shared = 0, int limit = 0);

// Their forms before CUDA 12 and 13.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *,
                                        char *, size_t)
{
    return cudaGraphInstantiate(exec, graph);
}
inline cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, int device,
                                        cudaStream_t stream = nullptr)
{
    return cudaMemPrefetchAsync(p, size, {cudaMemLocationTypeDevice, device}, 0, stream);
}
inline cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise advice, int device)
{
    return cudaMemAdvise(p, size, advice, cudaMemLocation{cudaMemLocationTypeDevice, device});
}

// Names that CUDA has removed or replaced.
#ifdef __clang__
#define CUDA_CPU_MESSAGE(text) clang::unavailable(text)
#else
#define CUDA_CPU_MESSAGE(text) gnu::error(text)
#endif
#define CUDA_CPU_GONE(name, instead)                                                               \
    template <class... A>                                                                          \
    [[CUDA_CPU_MESSAGE(#name " is gone from CUDA: use " #instead)]] cudaError_t name(A &&...);
CUDA_CPU_GONE(cudaThreadSynchronize, cudaDeviceSynchronize)
CUDA_CPU_GONE(cudaThreadExit, cudaDeviceReset)
CUDA_CPU_GONE(cudaBindTexture, cudaCreateTextureObject)
CUDA_CPU_GONE(cudaBindTexture2D, cudaCreateTextureObject)
CUDA_CPU_GONE(cudaBindTextureToArray, cudaCreateTextureObject)
CUDA_CPU_GONE(cudaUnbindTexture, cudaDestroyTextureObject)
CUDA_CPU_GONE(__shfl, __shfl_sync)
CUDA_CPU_GONE(__shfl_up, __shfl_up_sync)
CUDA_CPU_GONE(__shfl_down, __shfl_down_sync)
CUDA_CPU_GONE(__shfl_xor, __shfl_xor_sync)
CUDA_CPU_GONE(__ballot, __ballot_sync)
CUDA_CPU_GONE(__any, __any_sync)
CUDA_CPU_GONE(__all, __all_sync)
template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture {
    static_assert(sizeof(T) == 0, "texture references are gone from CUDA: use "
                                  "cudaCreateTextureObject and tex2D<T>(object, x, y)");
};
