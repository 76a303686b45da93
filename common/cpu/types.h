// The types and constants of the runtime API, as far as the CPU backend has them.
#pragma once
#pragma GCC system_header
#include <stddef.h>
#include <string.h>

#include "thread.h"

#define CUDART_VERSION 13000
#define CUDART_CB

enum cudaError {
#define CUDA_CPU_ERROR(number, name, text) name = number,
#include "errors.inc"
#undef CUDA_CPU_ERROR
};
typedef enum cudaError cudaError_t;

// Handles. What is behind them only the runtime knows.
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef unsigned long long cudaTextureObject_t;
typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

// clang-format off
// Flags, which the functions take as unsigned.
enum { cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming };
enum { cudaEventWaitDefault };
enum { cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped,
       cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault, cudaHostRegisterPortable, cudaHostRegisterMapped };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost };
enum { cudaDeviceScheduleAuto, cudaDeviceScheduleSpin, cudaDeviceScheduleYield,
       cudaDeviceScheduleBlockingSync = 4, cudaDeviceBlockingSync = 4, cudaDeviceMapHost = 8 };
enum { cudaArrayDefault };
enum { cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2 };
enum { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0,
       cudaSharedmemCarveoutMaxShared = 100 };

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                      cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly,
                        cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation,
                        cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
enum cudaMemLocationType { cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice,
                           cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma,
                           cudaMemLocationTypeHostNumaCurrent };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice,
                      cudaMemoryTypeManaged };
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5,
                       cudaMemPoolAttrUsedMemCurrent = 7 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1,
                     cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte,
                           cudaSharedMemBankSizeEightByte };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
                         cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaComputeMode { cudaComputeModeDefault, cudaComputeModeExclusive, cudaComputeModeProhibited,
                       cudaComputeModeExclusiveProcess };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                             cudaStreamCaptureModeRelaxed };
enum cudaChannelFormatKind { cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned,
                             cudaChannelFormatKindFloat, cudaChannelFormatKindNone };
enum cudaResourceType { cudaResourceTypeArray, cudaResourceTypeMipmappedArray,
                        cudaResourceTypeLinear, cudaResourceTypePitch2D };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror,
                              cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
// clang-format on

enum cudaDeviceAttr {
#define CUDA_CPU_ATTR(number, attribute, value) cudaDevAttr##attribute = number,
#define CUDA_CPU_PROP(number, attribute, type, field, value) cudaDevAttr##attribute = number,
#include "properties.inc"
#undef CUDA_CPU_ATTR
#undef CUDA_CPU_PROP
};

struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int maxThreadsDim[3], maxGridSize[3];
    int maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3];
#define CUDA_CPU_ATTR(number, attribute, value)
#define CUDA_CPU_PROP(number, attribute, type, field, value) type field;
#include "properties.inc"
#undef CUDA_CPU_ATTR
#undef CUDA_CPU_PROP
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
