// The runtime API's memory functions, from cudaMalloc to pools.
#include "memory.h"

#include <sys/mman.h>

using namespace cuda_cpu;

API(cudaMalloc, NO_CAPTURE, (Out p, size_t size, At at), (p, size, at))
{
    return allocate(p, size, DEVICE, at);
}

API(cudaFree, SYNC | NO_CAPTURE, (void *p), (p)) { return release(p, false); }

API(cudaMallocPitch, NO_CAPTURE, (Out p, size_t *pitch, size_t width, size_t height, At at),
    (p, pitch, width, height, at))
{
    if (!pitch) return cudaErrorInvalidValue;
    *pitch = (width + 511) / 512 * 512;
    if (height && *pitch > SIZE_MAX / height) return cudaErrorMemoryAllocation;
    return allocate(p, *pitch * height, DEVICE, at);
}

API(cudaMallocManaged, NO_CAPTURE, (Out p, size_t size, unsigned flags, At at),
    (p, size, flags, at))
{
    if (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudaErrorInvalidValue;
    return allocate(p, size, MANAGED, at);
}

API(cudaHostAlloc, NO_CAPTURE, (Out p, size_t size, unsigned flags, At at), (p, size, flags, at))
{
    return allocate(p, size, PINNED, at);
}

API(cudaMallocHost, NO_CAPTURE, (Out p, size_t size, unsigned flags, At at), (p, size, flags, at))
{
    return allocate(p, size, PINNED, at);
}

API(cudaFreeHost, SYNC | NO_CAPTURE, (void *p), (p)) { return release(p, true); }

API(cudaHostRegister, 0, (void *p, size_t size, unsigned flags), (p, size, flags))
{
    if (!p || !size) return cudaErrorInvalidValue;
    if (find(p) != allocations.end()) return cudaErrorHostMemoryAlreadyRegistered;
    allocations[(const char *)p] = {size, REGISTERED, nullptr, {}};
    return cudaSuccess;
}

API(cudaHostUnregister, SYNC, (void *p), (p))
{
    auto a = allocations.find((const char *)p);
    if (a == allocations.end() || a->second.owner != REGISTERED)
        return cudaErrorHostMemoryNotRegistered;
    allocations.erase(a);
    return cudaSuccess;
}

API(cudaHostGetDevicePointer, 0, (Out device_pointer, void *host, unsigned flags),
    (device_pointer, host, flags))
{
    auto a = find(host);
    if (a == allocations.end() || a->second.owner < PINNED) return cudaErrorInvalidValue;
    return give(device_pointer.p, host);
}

API(cudaPointerGetAttributes, 0, (cudaPointerAttributes * what, const void *p), (what, p))
{
    auto a = find(p);
    void *q = (void *)p;
    if (a == allocations.end() && !find_symbol(p))
        return give(what, {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, q});
    Owner owner = a == allocations.end() ? DEVICE : a->second.owner;
    if (owner == DEVICE) return give(what, {cudaMemoryTypeDevice, 0, q, nullptr});
    return give(what, {owner == MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost, 0, q, q});
}

API(cudaMemGetInfo, 0, (size_t *free, size_t *total), (free, total))
{
    if (total) *total = settings().memory;
    if (free) *free = settings().memory - device_used;
    return cudaSuccess;
}

// ---- Copies ----

API_PAIR(cudaMemcpy, SYNC | NO_CAPTURE,
         (void *dst, const void *src, size_t size, cudaMemcpyKind kind), (dst, src, size, kind))
{
    return copy_2d(dst, size, src, size, size, 1, kind);
}

API_PAIR(cudaMemcpyPeer, SYNC | NO_CAPTURE,
         (void *dst, int dst_device, const void *src, int src_device, size_t size),
         (dst, dst_device, src, src_device, size))
{
    if (check_device(dst_device) || check_device(src_device)) return cudaErrorInvalidDevice;
    return copy_2d(dst, size, src, size, size, 1, cudaMemcpyDeviceToDevice);
}

API_PAIR(cudaMemcpy2D, SYNC | NO_CAPTURE,
         (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
          cudaMemcpyKind kind),
         (dst, dpitch, src, spitch, width, height, kind))
{
    return copy_2d(dst, dpitch, src, spitch, width, height, kind);
}

API_PAIR(cudaMemset2D, NO_CAPTURE, (void *p, size_t pitch, int value, size_t width, size_t height),
         (p, pitch, value, width, height))
{
    if (width == 0 || height == 0) return cudaSuccess;
    if (height > 1 && width > pitch) return cudaErrorInvalidValue;
    DeviceOpen open;
    if (!valid_side(p, pitch * (height - 1) + width, true)) return cudaErrorInvalidValue;
    for (size_t y = 0; y < height; y++) memset((char *)p + y * pitch, value, width);
    return cudaSuccess;
}

API_PAIR(cudaMemset, NO_CAPTURE, (void *p, int value, size_t size), (p, value, size))
{
    return do_cudaMemset2D(p, size, value, size, 1);
}

static cudaError_t check_symbol(Symbol symbol, size_t offset, size_t size)
{
    const RegisterSymbol *s = find_symbol(symbol.address);
    if (!s || s->address != symbol.address) return cudaErrorInvalidSymbol;
    return offset > s->size || size > s->size - offset ? cudaErrorInvalidValue : cudaSuccess;
}

API_PAIR(cudaMemcpyToSymbol, SYNC | NO_CAPTURE,
         (Symbol symbol, const void *src, size_t size, size_t offset, cudaMemcpyKind kind),
         (symbol, src, size, offset, kind))
{
    if (cudaError_t error = check_symbol(symbol, offset, size)) return error;
    return copy_2d((char *)symbol.address + offset, size, src, size, size, 1, kind);
}

API_PAIR(cudaMemcpyFromSymbol, SYNC | NO_CAPTURE,
         (void *dst, Symbol symbol, size_t size, size_t offset, cudaMemcpyKind kind),
         (dst, symbol, size, offset, kind))
{
    if (cudaError_t error = check_symbol(symbol, offset, size)) return error;
    return copy_2d(dst, size, (const char *)symbol.address + offset, size, size, 1, kind);
}

API(cudaGetSymbolAddress, 0, (Out p, Symbol symbol), (p, symbol))
{
    cudaError_t error = check_symbol(symbol, 0, 0);
    return error ? error : give(p.p, (void *)symbol.address);
}

API(cudaGetSymbolSize, 0, (size_t *size, Symbol symbol), (size, symbol))
{
    cudaError_t error = check_symbol(symbol, 0, 0);
    return error ? error : give(size, find_symbol(symbol.address)->size);
}

// Managed memory needs no moving here, but the arguments are checked.
static cudaError_t check_managed(const void *p, size_t size, cudaMemLocation to)
{
    auto a = find(p);
    if (to.type == cudaMemLocationTypeDevice && to.id != cudaCpuDeviceId && check_device(to.id))
        return cudaErrorInvalidDevice;
    bool managed = a != allocations.end() && a->second.owner == MANAGED;
    return managed && valid_side(p, size, true) ? cudaSuccess : cudaErrorInvalidValue;
}

API(cudaMemPrefetchAsync, 0,
    (const void *p, size_t size, cudaMemLocation to, unsigned flags, cudaStream_t stream),
    (p, size, to, flags, stream))
{
    cudaError_t error = check_managed(p, size, to);
    return error ? error : enqueue(stream, [] { return cudaSuccess; });
}
API(cudaMemAdvise, 0, (const void *p, size_t size, cudaMemoryAdvise advice, cudaMemLocation to),
    (p, size, advice, to))
{
    return check_managed(p, size, to);
}

// ---- Memory in stream order, and pools ----

API(cudaMallocFromPoolAsync, NO_CAPTURE,
    (Out p, size_t size, cudaMemPool_t pool, cudaStream_t stream, At at),
    (p, size, pool, stream, at))
{
    cudaError_t error = pool ? check_stream(stream) : cudaErrorInvalidValue;
    return error ? error : allocate(p, size, DEVICE, at, pool);
}

API(cudaMallocAsync, NO_CAPTURE, (Out p, size_t size, cudaStream_t stream, At at),
    (p, size, stream, at))
{
    return do_cudaMallocFromPoolAsync(p, size, &default_pool, stream, at);
}

API(cudaFreeAsync, NO_CAPTURE, (void *p, cudaStream_t stream), (p, stream))
{
    cudaError_t error = check_stream(stream);
    return error ? error : release(p, false);
}

API(cudaMemPoolCreate, 0, (cudaMemPool_t *pool, const cudaMemPoolProps *props), (pool, props))
{
    if (!pool || !props || props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice)
        return cudaErrorInvalidValue;
    *pool = new CUmemPoolHandle_st{};
    (*pool)->maximum = round_up(props->maxSize);
    if (props->maxSize) (*pool)->range.reserve((*pool)->maximum);
    return cudaSuccess;
}

API(cudaMemPoolDestroy, SYNC, (cudaMemPool_t pool), (pool))
{
    if (!pool || pool == &default_pool) return cudaErrorInvalidValue;
    if (pool->used) return cudaSuccess; // lives on until its memory is freed
    if (pool->maximum) munmap(pool->range.base, pool->range.size);
    delete pool;
    return cudaSuccess;
}

API(cudaMemPoolSetAttribute, 0, (cudaMemPool_t pool, cudaMemPoolAttr attr, void *value),
    (pool, attr, value))
{
    if (!pool || !value || attr != cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
    pool->threshold = *(uint64_t *)value;
    return cudaSuccess;
}

// What was freed goes back at once, so what the pool has reserved is what is used.
API(cudaMemPoolGetAttribute, 0, (cudaMemPool_t pool, cudaMemPoolAttr attr, void *value),
    (pool, attr, value))
{
    if (!pool) return cudaErrorInvalidValue;
    return give((uint64_t *)value,
                attr == cudaMemPoolAttrReleaseThreshold ? pool->threshold : (uint64_t)pool->used);
}

API(cudaMemPoolTrimTo, 0, (cudaMemPool_t pool, size_t keep), (pool, keep))
{
    return pool ? cudaSuccess : cudaErrorInvalidValue;
}

API(cudaDeviceGetDefaultMemPool, 0, (cudaMemPool_t *pool, int device), (pool, device))
{
    cudaError_t error = check_device(device);
    return error ? error : give(pool, &default_pool);
}
