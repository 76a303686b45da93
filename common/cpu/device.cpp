// The device: how many, which one, its properties and limits.
#include "runtime.h"

#include <unistd.h>

#include <map>

using namespace cuda_cpu;

static thread_local int current_device = 0;

cudaError_t cudaGetDeviceCount(int *count)
{
    if (count) *count = 0;
    return api("cudaGetDeviceCount", QUERY, "", [&]() -> cudaError_t {
        if (!count) return cudaErrorInvalidValue;
        *count = settings().devices;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device)
{
    return api("cudaGetDevice", QUERY, "", [&]() -> cudaError_t {
        if (!device) return cudaErrorInvalidValue;
        *device = current_device;
        return cudaSuccess;
    });
}

static cudaError_t check_device(int device)
{
    return device < 0 || device >= settings().devices ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return api("cudaSetDevice", 0, arguments("%d", device), [&] {
        cudaError_t error = check_device(device);
        if (!error) current_device = device;
        return error;
    });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
    return api("cudaInitDevice", 0, arguments("%d", device), [&] { return check_device(device); });
}
cudaError_t cudaSetDeviceFlags(unsigned)
{
    return api("cudaSetDeviceFlags", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    return api("cudaGetDeviceFlags", 0, "",
               [&] { return *flags = cudaDeviceMapHost, cudaSuccess; });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return api("cudaDeviceSetCacheConfig", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaProfilerStart()
{
    return api("cudaProfilerStart", 0, "", [] { return cudaSuccess; });
}
cudaError_t cudaProfilerStop()
{
    return api("cudaProfilerStop", 0, "", [] { return cudaSuccess; });
}

cudaError_t cudaDeviceSynchronize()
{
    return api("cudaDeviceSynchronize", SYNC | NO_CAPTURE, "", [] { return cudaSuccess; });
}

// After a sticky error CUDA resets with success, and yet only a new process can use the device again.
cudaError_t cudaDeviceReset()
{
    return api("cudaDeviceReset", SYNC | QUERY, "", [] {
        if (state.sticky) state.dead = true;
        state.sticky = state.pending = last_error = cudaSuccess;
        reset_memory();
        return cudaSuccess;
    });
}

static cudaError_t limit(const char *name, cudaLimit which, size_t *get, const size_t *set)
{
    return api(name, 0, arguments("%d", which), [&]() -> cudaError_t {
        size_t *value = which == cudaLimitStackSize        ? &limits.stack
                        : which == cudaLimitPrintfFifoSize ? &limits.printf_fifo
                        : which == cudaLimitMallocHeapSize ? &limits.heap
                                                           : nullptr;
        if (!value) return cudaErrorUnsupportedLimit;
        if (set)
            *value = *set;
        else if (get)
            *get = *value;
        else
            return cudaErrorInvalidValue;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit which)
{
    return limit("cudaDeviceGetLimit", which, value, nullptr);
}
cudaError_t cudaDeviceSetLimit(cudaLimit which, size_t value)
{
    return limit("cudaDeviceSetLimit", which, nullptr, &value);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return api("cudaDriverGetVersion", QUERY | NO_DEVICE, "", [&] {
        return version ? *version = CUDART_VERSION, cudaSuccess : cudaErrorInvalidValue;
    });
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    return api("cudaRuntimeGetVersion", QUERY | NO_DEVICE, "", [&] {
        return version ? *version = CUDART_VERSION, cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return api("cudaDeviceCanAccessPeer", 0, arguments("%d, %d", device, peer),
               [&]() -> cudaError_t {
                   if (!can) return cudaErrorInvalidValue;
                   *can = 0;
                   return check_device(device) ? check_device(device) : check_device(peer);
               });
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    return api("cudaDeviceGetPCIBusId", QUERY, "", [&]() -> cudaError_t {
        if (check_device(device)) return cudaErrorInvalidDevice;
        if (!id || length < 13) return cudaErrorInvalidValue;
        strcpy(id, "0000:00:00.0");
        return cudaSuccess;
    });
}

// A multiprocessor is one OS thread. Zero stands for what a CPU cannot say: clocks, bus width, registers in use.
static cudaDeviceProp properties()
{
    cudaDeviceProp p = {};
    snprintf(p.name, sizeof p.name, "CPU backend (%d threads)", settings().threads);
    memcpy(p.uuid.bytes, "nvcc-cpu backend", 16);
    p.totalGlobalMem = settings().memory;
    p.sharedMemPerBlock = DEFAULT_SHARED;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.warpSize = 32;
    p.memPitch = 0x7fffffff;
    p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = 64 << 10;
    p.major = 9;
    p.minor = 0;
    p.textureAlignment = 512;
    p.texturePitchAlignment = 32;
    p.multiProcessorCount = settings().threads;
    p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
    p.maxTexture1D = p.maxTexture2D[0] = 131072;
    p.maxTexture2D[1] = 65536;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.sharedMemPerMultiprocessor = 228 << 10;
    p.sharedMemPerBlockOptin = MOST_SHARED;
    p.reservedSharedMemPerBlock = 1024;
    p.hostNativeAtomicSupported = p.hostRegisterSupported = p.canUseHostPointerForRegisteredMem =
        p.memoryPoolsSupported = 1;
    p.streamPrioritiesSupported = 1;
    p.singleToDoublePrecisionPerfRatio = 1;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    p.l2CacheSize = cache > 0 ? (int)(cache < 0x7fffffff ? cache : 0x7fffffff) : 0;
    return p;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    return api("cudaGetDeviceProperties", QUERY, arguments("%d", device), [&]() -> cudaError_t {
        if (check_device(device)) return cudaErrorInvalidDevice;
        if (!prop) return cudaErrorInvalidValue;
        *prop = properties();
        return cudaSuccess;
    });
}

cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *)
{
    return api("cudaChooseDevice", 0, "", [&] { return *device = 0, cudaSuccess; });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    return api("cudaDeviceGetAttribute", QUERY, arguments("%d, %d", attr, device),
               [&]() -> cudaError_t {
                   if (check_device(device)) return cudaErrorInvalidDevice;
                   if (!value) return cudaErrorInvalidValue;
                   static const cudaDeviceProp p = properties();
                   static const std::map<int, int> known = {
                       {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
                       {cudaDevAttrMaxBlockDimX, 1024},
                       {cudaDevAttrMaxBlockDimY, 1024},
                       {cudaDevAttrMaxBlockDimZ, 64},
                       {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
                       {cudaDevAttrMaxGridDimY, 65535},
                       {cudaDevAttrMaxGridDimZ, 65535},
                       {cudaDevAttrMaxSharedMemoryPerBlock, DEFAULT_SHARED},
                       {cudaDevAttrTotalConstantMemory, 64 << 10},
                       {cudaDevAttrWarpSize, 32},
                       {cudaDevAttrMaxPitch, 0x7fffffff},
                       {cudaDevAttrMaxRegistersPerBlock, 65536},
                       {cudaDevAttrTextureAlignment, 512},
                       {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
                       {cudaDevAttrCanMapHostMemory, 1},
                       {cudaDevAttrMaxTexture1DWidth, p.maxTexture1D},
                       {cudaDevAttrMaxTexture2DWidth, p.maxTexture2D[0]},
                       {cudaDevAttrMaxTexture2DHeight, p.maxTexture2D[1]},
                       {cudaDevAttrL2CacheSize, p.l2CacheSize},
                       {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                       {cudaDevAttrUnifiedAddressing, 1},
                       {cudaDevAttrTexturePitchAlignment, 32},
                       {cudaDevAttrMaxTexture1DLinearWidth, 1 << 27},
                       {cudaDevAttrComputeCapabilityMajor, p.major},
                       {cudaDevAttrComputeCapabilityMinor, p.minor},
                       {cudaDevAttrStreamPrioritiesSupported, 1},
                       {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
                       {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
                       {cudaDevAttrManagedMemory, 1},
                       {cudaDevAttrHostNativeAtomicSupported, 1},
                       {cudaDevAttrSingleToDoublePrecisionPerfRatio, 1},
                       {cudaDevAttrConcurrentManagedAccess, 1},
                       {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
                       {cudaDevAttrMaxSharedMemoryPerBlockOptin, MOST_SHARED},
                       {cudaDevAttrHostRegisterSupported, 1},
                       {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
                       {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
                       {cudaDevAttrMemoryPoolsSupported, 1},
                   };
                   auto found = known.find(attr);
                   if ((int)attr < 1 || (int)attr > 147) return cudaErrorInvalidValue;
                   *value = found == known.end() ? 0 : found->second;
                   return cudaSuccess;
               });
}
