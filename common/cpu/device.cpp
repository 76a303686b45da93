// The device: how many, which one, its properties and limits.
#include "runtime.h"

#include <unistd.h>

using namespace cuda_cpu;

static thread_local int current_device = 0;

API(cudaGetDeviceCount, QUERY | NO_DEVICE, (int *count), (count)) // with an error it is 0
{
    if (!count) return cudaErrorInvalidValue;
    *count = state.forked ? 0 : settings().devices;
    return state.forked ? cudaErrorInitializationError : *count ? cudaSuccess : cudaErrorNoDevice;
}

API(cudaGetDevice, QUERY, (int *device), (device)) { return give(device, current_device); }

// All devices are alike.
API(cudaChooseDevice, 0, (int *d, const cudaDeviceProp *prop), (d, prop)) { return give(d, 0); }

API(cudaSetDevice, 0, (int device), (device))
{
    cudaError_t error = check_device(device);
    if (!error) current_device = device;
    return error;
}

// Hints, which change nothing here.
API(cudaSetDeviceFlags, 0, (unsigned flags), (flags)) { return cudaSuccess; }
API(cudaDeviceSetCacheConfig, 0, (cudaFuncCache config), (config)) { return cudaSuccess; }
API(cudaDeviceGetSharedMemConfig, 0, (cudaSharedMemConfig *config), (config))
{
    return give(config, cudaSharedMemBankSizeFourByte);
}
API(cudaDeviceSetSharedMemConfig, 0, (cudaSharedMemConfig config), (config)) { return cudaSuccess; }
API(cudaFuncSetCacheConfig, 0, (Kernel k, cudaFuncCache config), (k, config))
{
    return cudaSuccess;
}
API(cudaProfilerStart, 0, (), ()) { return cudaSuccess; }
API(cudaProfilerStop, 0, (), ()) { return cudaSuccess; }

API(cudaDeviceSynchronize, SYNC | NO_CAPTURE, (), ()) { return cudaSuccess; }

// After a sticky error CUDA resets with success, and yet only a new process can use the device again.
API(cudaDeviceReset, SYNC | QUERY, (), ())
{
    if (state.sticky) state.dead = true;
    state.sticky = state.pending = last_error = cudaSuccess;
    reset_memory();
    return cudaSuccess;
}

static size_t *find_limit(cudaLimit which)
{
    return which == cudaLimitStackSize        ? &limits.stack
           : which == cudaLimitPrintfFifoSize ? &limits.printf_fifo
           : which == cudaLimitMallocHeapSize ? &limits.heap
                                              : nullptr;
}
API(cudaDeviceGetLimit, 0, (size_t *value, cudaLimit which), (value, which))
{
    size_t *limit = find_limit(which);
    return limit ? give(value, *limit) : cudaErrorUnsupportedLimit;
}
API(cudaDeviceSetLimit, 0, (cudaLimit which, size_t value), (which, value))
{
    return find_limit(which) ? give(find_limit(which), value) : cudaErrorUnsupportedLimit;
}

API(cudaDriverGetVersion, QUERY | NO_DEVICE, (int *v), (v)) { return give(v, CUDART_VERSION); }
API(cudaRuntimeGetVersion, QUERY | NO_DEVICE, (int *v), (v)) { return give(v, CUDART_VERSION); }

API(cudaDeviceCanAccessPeer, 0, (int *can, int device, int peer), (can, device, peer))
{
    if (check_device(device) || check_device(peer)) return cudaErrorInvalidDevice;
    return give(can, 0);
}

API(cudaDeviceEnablePeerAccess, 0, (int peer, unsigned flags), (peer, flags))
{
    return check_device(peer) ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported;
}

API(cudaDeviceDisablePeerAccess, 0, (int peer), (peer))
{
    return check_device(peer) ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled;
}

API(cudaDeviceGetPCIBusId, QUERY, (char *id, int length, int device), (id, length, device))
{
    if (check_device(device)) return cudaErrorInvalidDevice;
    if (!id || length < 13) return cudaErrorInvalidValue;
    strcpy(id, "0000:00:00.0");
    return cudaSuccess;
}

static int cache_size()
{
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? (int)(size < 0x7fffffff ? size : 0x7fffffff) : 0;
}

API(cudaGetDeviceProperties, QUERY, (cudaDeviceProp *prop, int device), (prop, device))
{
    if (check_device(device)) return cudaErrorInvalidDevice;
    cudaDeviceProp p = {};
    snprintf(p.name, sizeof p.name, "CPU backend (%d threads)", settings().threads);
    memcpy(p.uuid.bytes, "nvcc-cpu backend", 16);
    p.totalGlobalMem = settings().memory;
#define CUDA_CPU_ATTR(number, attribute, value) [[maybe_unused]] const int attribute = value;
#define CUDA_CPU_PROP(number, attribute, type, field, value) p.field = value;
#include "properties.inc"
#undef CUDA_CPU_ATTR
#undef CUDA_CPU_PROP
    const int sizes[] = {MaxBlockDimX, MaxBlockDimY, MaxBlockDimZ,      MaxGridDimX,
                         MaxGridDimY,  MaxGridDimZ,  MaxTexture2DWidth, MaxTexture2DHeight};
    memcpy(p.maxThreadsDim, sizes, sizeof p.maxThreadsDim);
    memcpy(p.maxGridSize, sizes + 3, sizeof p.maxGridSize);
    memcpy(p.maxTexture2D, sizes + 6, sizeof p.maxTexture2D);
    return give(prop, p);
}

API(cudaDeviceGetAttribute, QUERY, (int *value, cudaDeviceAttr attr, int device),
    (value, attr, device))
{
    if (check_device(device)) return cudaErrorInvalidDevice;
    switch ((int)attr) {
#define CUDA_CPU_ATTR(number, attribute, result)                                                   \
    case number:                                                                                   \
        return give(value, (int)result);
#define CUDA_CPU_PROP(number, attribute, type, field, result)                                      \
    CUDA_CPU_ATTR(number, attribute, result)
#include "properties.inc"
#undef CUDA_CPU_ATTR
#undef CUDA_CPU_PROP
    }
    return (int)attr >= 1 && (int)attr <= 147 ? give(value, 0) : cudaErrorInvalidValue;
}
