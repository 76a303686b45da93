// The runtime API's memory functions, from cudaMalloc to pools.
#include "memory.h"

namespace cuda_cpu
{
cudaError_t copy_symbol(const char *name, void *dst, const void *src, size_t size,
                        cudaMemcpyKind kind, const void *symbol, size_t offset, cudaStream_t stream)
{
    return api(name, stream ? 0 : SYNC, arguments("%zu bytes", size), [&]() -> cudaError_t {
        const RegisterSymbol *s = find_symbol(symbol);
        if (!s || s->address != symbol) return cudaErrorInvalidSymbol;
        if (offset > s->size || size > s->size - offset) return cudaErrorInvalidValue;
        char *p = (char *)symbol + offset;
        return stream_operation(
            stream, [=] { return dst ? copy(dst, p, size, kind) : copy(p, src, size, kind); });
    });
}

cudaError_t symbol_address(void **p, size_t *size, const void *symbol)
{
    return api(p ? "cudaGetSymbolAddress" : "cudaGetSymbolSize", 0, "", [&]() -> cudaError_t {
        const RegisterSymbol *s = find_symbol(symbol);
        if (!s || s->address != symbol) return cudaErrorInvalidSymbol;
        if (p) *p = (void *)symbol;
        if (size) *size = s->size;
        return cudaSuccess;
    });
}
} // namespace cuda_cpu

using namespace cuda_cpu;

static CUmemPoolHandle_st *current_pool = nullptr; // null: the default pool

cudaError_t cudaMalloc(void **p, size_t size, const char *file, int line)
{
    return api("cudaMalloc", NO_CAPTURE, arguments("%zu", size),
               [&] { return allocate(p, size, DEVICE, nullptr, file, line); });
}

cudaError_t cudaFree(void *p)
{
    return api("cudaFree", SYNC | NO_CAPTURE, arguments("%p", p),
               [&] { return release(p, false); });
}

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height, const char *file,
                            int line)
{
    return api("cudaMallocPitch", NO_CAPTURE, arguments("%zu, %zu", width, height),
               [&]() -> cudaError_t {
                   if (!pitch) return cudaErrorInvalidValue;
                   *pitch = (width + 511) / 512 * 512;
                   if (height && *pitch > SIZE_MAX / height) return cudaErrorMemoryAllocation;
                   return allocate(p, *pitch * height, DEVICE, nullptr, file, line);
               });
}

cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags, const char *file, int line)
{
    return api("cudaMallocManaged", NO_CAPTURE, arguments("%zu", size), [&]() -> cudaError_t {
        if (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
            return cudaErrorInvalidValue;
        return allocate(p, size, MANAGED, nullptr, file, line);
    });
}

cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags, const char *file, int line)
{
    return api("cudaHostAlloc", NO_CAPTURE, arguments("%zu", size),
               [&] { return allocate(p, size, PINNED, nullptr, file, line, flags); });
}

cudaError_t cudaMallocHost(void **p, size_t size, unsigned flags, const char *file, int line)
{
    return api("cudaMallocHost", NO_CAPTURE, arguments("%zu", size),
               [&] { return allocate(p, size, PINNED, nullptr, file, line, flags); });
}

cudaError_t cudaFreeHost(void *p)
{
    return api("cudaFreeHost", SYNC | NO_CAPTURE, arguments("%p", p),
               [&] { return release(p, true); });
}

cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags)
{
    return api("cudaHostRegister", 0, arguments("%p, %zu", p, size), [&]() -> cudaError_t {
        if (!p || !size) return cudaErrorInvalidValue;
        if (find(p) != allocations.end()) return cudaErrorHostMemoryAlreadyRegistered;
        allocations[(const char *)p] = {size, REGISTERED, nullptr, "", 0, flags};
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void *p)
{
    return api("cudaHostUnregister", SYNC, arguments("%p", p), [&]() -> cudaError_t {
        auto a = allocations.find((const char *)p);
        if (a == allocations.end() || a->second.owner != REGISTERED)
            return cudaErrorHostMemoryNotRegistered;
        allocations.erase(a);
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned)
{
    return api("cudaHostGetDevicePointer", 0, arguments("%p", host), [&]() -> cudaError_t {
        auto a = find(host);
        if (!device_pointer || a == allocations.end() || a->second.owner < PINNED)
            return cudaErrorInvalidValue;
        *device_pointer = host;
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host)
{
    return api("cudaHostGetFlags", 0, arguments("%p", host), [&]() -> cudaError_t {
        auto a = find(host);
        if (!flags || a == allocations.end() || a->second.owner < PINNED)
            return cudaErrorInvalidValue;
        *flags = a->second.flags;
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    return api("cudaMemGetInfo", 0, "", [&] {
        if (total) *total = settings().memory;
        if (free) *free = settings().memory - device_used;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p)
{
    return api("cudaPointerGetAttributes", 0, arguments("%p", p), [&]() -> cudaError_t {
        if (!attributes) return cudaErrorInvalidValue;
        *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, (void *)p};
        auto a = find(p);
        if (a != allocations.end()) {
            Owner owner = a->second.owner;
            attributes->type = owner == DEVICE    ? cudaMemoryTypeDevice
                               : owner == MANAGED ? cudaMemoryTypeManaged
                                                  : cudaMemoryTypeHost;
            attributes->device = 0;
            attributes->devicePointer = (void *)p;
            if (owner == DEVICE) attributes->hostPointer = nullptr;
        } else if (find_symbol(p)) {
            *attributes = {cudaMemoryTypeDevice, 0, (void *)p, nullptr};
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
    return api("cudaMemcpy", SYNC | NO_CAPTURE, arguments("%p, %p, %zu, %d", dst, src, size, kind),
               [&] { return copy(dst, src, size, kind); });
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return api("cudaMemcpyAsync", 0,
               arguments("%p, %p, %zu, %d, %p", dst, src, size, kind, (void *)stream), [&] {
                   return stream_operation(stream, [=] { return copy(dst, src, size, kind); });
               });
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind)
{
    return api("cudaMemcpy2D", SYNC | NO_CAPTURE, arguments("%zu, %zu", width, height),
               [&] { return copy_2d(dst, dpitch, src, spitch, width, height, kind); });
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return api("cudaMemcpy2DAsync", 0, arguments("%zu, %zu", width, height), [&] {
        return stream_operation(
            stream, [=] { return copy_2d(dst, dpitch, src, spitch, width, height, kind); });
    });
}

cudaError_t cudaMemset(void *p, int value, size_t size)
{
    return api("cudaMemset", NO_CAPTURE, arguments("%p, %d, %zu", p, value, size),
               [&] { return set_2d(p, size, value, size, size != 0); });
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream)
{
    return api("cudaMemsetAsync", 0, arguments("%p, %d, %zu, %p", p, value, size, (void *)stream),
               [&] {
                   return stream_operation(stream,
                                           [=] { return set_2d(p, size, value, size, size != 0); });
               });
}

cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height)
{
    return api("cudaMemset2D", NO_CAPTURE, arguments("%zu, %zu", width, height),
               [&] { return set_2d(p, pitch, value, width, height); });
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return api("cudaMemset2DAsync", 0, arguments("%zu, %zu", width, height), [&] {
        return stream_operation(stream, [=] { return set_2d(p, pitch, value, width, height); });
    });
}

// Managed memory needs no moving here, but the arguments are checked.
static cudaError_t managed_hint(const char *name, const void *p, size_t size, cudaStream_t stream,
                                int device_number)
{
    return api(name, 0, arguments("%p, %zu", p, size), [&]() -> cudaError_t {
        auto a = find(p);
        if (device_number < cudaCpuDeviceId || device_number >= settings().devices)
            return cudaErrorInvalidDevice;
        if (a == allocations.end() || a->second.owner != MANAGED || !valid_side(p, size, true))
            return cudaErrorInvalidValue;
        return stream_operation(stream, [] { return cudaSuccess; });
    });
}
static int number_of(cudaMemLocation l)
{
    return l.type == cudaMemLocationTypeDevice ? l.id : cudaCpuDeviceId;
}
cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, cudaMemLocation to, unsigned,
                                 cudaStream_t stream)
{
    return managed_hint("cudaMemPrefetchAsync", p, size, stream, number_of(to));
}
cudaError_t cudaMemPrefetchAsync(const void *p, size_t size, int to, cudaStream_t stream)
{
    return managed_hint("cudaMemPrefetchAsync", p, size, stream, to);
}
cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise, cudaMemLocation l)
{
    return managed_hint("cudaMemAdvise", p, size, nullptr, number_of(l));
}
cudaError_t cudaMemAdvise(const void *p, size_t size, cudaMemoryAdvise, int to)
{
    return managed_hint("cudaMemAdvise", p, size, nullptr, to);
}

// ---- Memory in stream order, and pools ----

cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream,
                                    const char *file, int line)
{
    return api("cudaMallocFromPoolAsync", NO_CAPTURE, arguments("%zu", size), [&]() -> cudaError_t {
        cudaError_t error = check_stream(stream);
        if (!pool) error = cudaErrorInvalidValue;
        return error ? error : allocate(p, size, DEVICE, pool, file, line);
    });
}

cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream, const char *file, int line)
{
    return api("cudaMallocAsync", NO_CAPTURE, arguments("%zu", size), [&]() -> cudaError_t {
        cudaError_t error = check_stream(stream);
        return error ? error
                     : allocate(p, size, DEVICE, current_pool ? current_pool : &default_pool, file,
                                line);
    });
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    return api("cudaFreeAsync", NO_CAPTURE, arguments("%p", p), [&]() -> cudaError_t {
        cudaError_t error = check_stream(stream);
        return error ? error : release(p, false);
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
    return api("cudaMemPoolCreate", 0, arguments("%zu", props ? props->maxSize : 0),
               [&]() -> cudaError_t {
                   if (!pool || !props || props->allocType != cudaMemAllocationTypePinned ||
                       props->location.type != cudaMemLocationTypeDevice)
                       return cudaErrorInvalidValue;
                   *pool = new CUmemPoolHandle_st{};
                   (*pool)->maximum = round_up(props->maxSize);
                   if (props->maxSize) (*pool)->range.reserve((*pool)->maximum);
                   return cudaSuccess;
               });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return api("cudaMemPoolDestroy", SYNC, "", [&]() -> cudaError_t {
        if (!pool || pool == &default_pool) return cudaErrorInvalidValue;
        if (current_pool == pool) current_pool = nullptr;
        for (auto &[p, a] : allocations)
            if (a.pool == pool) return cudaSuccess; // lives on until its memory is freed
        if (pool->maximum) munmap(pool->range.base, pool->range.size);
        delete pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
    return api("cudaMemPoolSetAttribute", 0, arguments("%d", attr), [&]() -> cudaError_t {
        if (!pool || !value) return cudaErrorInvalidValue;
        if (attr == cudaMemPoolAttrReleaseThreshold) pool->threshold = *(uint64_t *)value;
        if (attr == cudaMemPoolAttrUsedMemHigh || attr == cudaMemPoolAttrReservedMemHigh)
            pool->used_high = pool->used;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
    return api("cudaMemPoolGetAttribute", 0, arguments("%d", attr), [&]() -> cudaError_t {
        if (!pool || !value) return cudaErrorInvalidValue;
        switch (attr) {
        case cudaMemPoolAttrReleaseThreshold: *(uint64_t *)value = pool->threshold; break;
        case cudaMemPoolAttrUsedMemCurrent:
        case cudaMemPoolAttrReservedMemCurrent: *(uint64_t *)value = pool->used; break;
        case cudaMemPoolAttrUsedMemHigh:
        case cudaMemPoolAttrReservedMemHigh: *(uint64_t *)value = pool->used_high; break;
        default: *(int *)value = 1;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t)
{
    return api("cudaMemPoolTrimTo", 0, "",
               [&] { return pool ? cudaSuccess : cudaErrorInvalidValue; });
}

static cudaError_t get_pool(const char *name, cudaMemPool_t *pool, int number, cudaMemPool_t which)
{
    return api(name, 0, "", [&]() -> cudaError_t {
        if (number < 0 || number >= settings().devices) return cudaErrorInvalidDevice;
        if (!pool) return cudaErrorInvalidValue;
        *pool = which;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int number)
{
    return get_pool("cudaDeviceGetDefaultMemPool", pool, number, &default_pool);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int number)
{
    return get_pool("cudaDeviceGetMemPool", pool, number,
                    current_pool ? current_pool : &default_pool);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool)
{
    return api("cudaDeviceSetMemPool", 0, "", [&]() -> cudaError_t {
        if (!pool) return cudaErrorInvalidValue;
        current_pool = pool;
        return cudaSuccess;
    });
}
