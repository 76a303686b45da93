// Device memory: an address range of its own size, of which only the allocated pages can be touched. Under
// AddressSanitizer each allocation comes from malloc instead, so that ASan sees where it ends and when it was freed.
#include "runtime.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <map>

extern "C" { // present when the program is linked with -fsanitize=address
void __asan_init() __attribute__((weak));
int __asan_address_is_poisoned(const void *p) __attribute__((weak));
void __asan_poison_memory_region(const void *p, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const void *p, size_t size) __attribute__((weak));
}

namespace cuda_cpu
{

const size_t PAGE = 4096;
static size_t round_up(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

bool with_asan() { return __asan_init != nullptr; }

// 0xfffafffa: a NaN as float and as half, and twice of it as double; -327686 as int.
void poison(void *p, size_t size)
{
    unsigned *words = (unsigned *)p;
    for (size_t i = 0; i < size / 4; i++) words[i] = 0xfffafffau;
    memset((char *)p + size / 4 * 4, 0xff, size % 4);
}

// An address range from which the first free piece that is large enough is taken.
struct Range {
    char *base = nullptr;
    size_t size = 0;
    std::map<char *, size_t> holes;

    void reserve(size_t bytes)
    {
        void *p =
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return;
        base = (char *)p;
        size = bytes;
        holes[base] = bytes;
    }
    void *take(size_t bytes)
    {
        for (auto hole = holes.begin(); hole != holes.end(); ++hole) {
            if (hole->second < bytes) continue;
            char *p = hole->first;
            size_t rest = hole->second - bytes;
            holes.erase(hole);
            if (rest) holes[p + bytes] = rest;
            if (mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0) return p;
            give(p, bytes);
            break;
        }
        return nullptr;
    }
    void give(void *p, size_t bytes)
    {
        mprotect(p, bytes, PROT_NONE);
        madvise(p, bytes, MADV_DONTNEED);
        auto hole = holes.emplace((char *)p, bytes).first, after = std::next(hole);
        if (after != holes.end() && hole->first + hole->second == after->first) {
            hole->second += after->second;
            holes.erase(after);
        }
        if (hole != holes.begin()) {
            auto before = std::prev(hole);
            if (before->first + before->second == hole->first) {
                before->second += hole->second;
                holes.erase(hole);
            }
        }
    }
    bool contains(const void *p) const { return (char *)p >= base && (char *)p < base + size; }
};
} // namespace cuda_cpu

struct CUmemPoolHandle_st {
    cuda_cpu::Range range; // of its own when the pool has a maximum size
    size_t maximum, used, used_high;
    uint64_t threshold;
};

namespace cuda_cpu
{
enum Owner { DEVICE, MANAGED, PINNED, REGISTERED };
static const char *const owner_names[] = {"device", "managed", "pinned host", "registered host"};

struct Allocation {
    size_t size;
    Owner owner;
    CUmemPoolHandle_st *pool;
    const char *file;
    int line;
    unsigned flags;
};

// Never destroyed: programs free memory, and leaks are looked for, after main has ended.
static auto &allocations = *new std::map<const char *, Allocation>();
static Range &device = *new Range();
static size_t device_used = 0;
static CUmemPoolHandle_st &default_pool = *new CUmemPoolHandle_st{};
static CUmemPoolHandle_st *current_pool = &default_pool;
static RegisterSymbol *symbols = nullptr;

RegisterSymbol::RegisterSymbol(const void *a, size_t s, bool m, const char *n)
    : address(a), size(s), managed(m), name(n), next(symbols)
{
    symbols = this;
}

static const RegisterSymbol *find_symbol(const void *p)
{
    for (RegisterSymbol *s = symbols; s; s = s->next)
        if (p >= s->address && p < (const char *)s->address + s->size) return s;
    return nullptr;
}

// The allocation that holds p.
static std::map<const char *, Allocation>::iterator find(const void *p)
{
    auto after = allocations.upper_bound((const char *)p);
    if (after == allocations.begin()) return allocations.end();
    auto a = std::prev(after);
    size_t size = a->second.size ? a->second.size : 1;
    return (const char *)p < a->first + size ? a : allocations.end();
}

// On a GPU the host cannot read device memory. Here it can, which hides a mistake, unless the program is built
// for ASan, or CUDA_CPU_STRICT is set: then device memory is open to kernels and copies only.
static void set_access(const char *p, const Allocation &a, bool open)
{
    bool own_range = a.pool && a.pool->maximum;
    if (a.owner != DEVICE || in_kernel()) return;
    if (with_asan() && !own_range)
        (open ? __asan_unpoison_memory_region : __asan_poison_memory_region)(p, a.size);
    else if (settings().strict)
        mprotect((void *)p, round_up(a.size), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static int device_open = 0;

static void open_all(bool open)
{
    if (!with_asan() && !settings().strict) return;
    for (auto &[p, a] : allocations) set_access(p, a, open);
}
DeviceOpen::DeviceOpen()
{
    if (device_open++ == 0) open_all(true);
}
DeviceOpen::~DeviceOpen()
{
    if (--device_open == 0) open_all(false);
}

static cudaError_t allocate(void **p, size_t size, Owner owner, CUmemPoolHandle_st *pool,
                            const char *file, int line, unsigned flags = 0)
{
    if (!p) return cudaErrorInvalidValue;
    *p = nullptr;
    if (size == 0) return cudaSuccess;
    size_t total = settings().memory, whole = round_up(size);
    bool counted = owner == DEVICE;
    void *memory = nullptr;
    if (whole < size || (counted && (whole > total || device_used + whole > total)))
        return cudaErrorMemoryAllocation;
    if (pool && pool->maximum && pool->used + whole > pool->maximum)
        return cudaErrorMemoryAllocation;
    if (!device.base) device.reserve(round_up(total));
    bool own_range = pool && pool->maximum;
    if ((with_asan() && !own_range) || owner == PINNED) {
        if (posix_memalign(&memory, with_asan() ? 512 : PAGE, size) != 0)
            return cudaErrorMemoryAllocation;
    } else if (owner == MANAGED) {
        memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return cudaErrorMemoryAllocation;
    } else {
        memory = (own_range ? pool->range : device).take(whole);
        if (!memory) return cudaErrorMemoryAllocation;
    }
    if (counted) device_used += whole;
    if (pool) pool->used += whole;
    if (pool && pool->used > pool->used_high) pool->used_high = pool->used;
    poison(memory, size);
    Allocation &kept = allocations[(const char *)memory] = {size, owner, pool, file, line, flags};
    if (!device_open) set_access((const char *)memory, kept, false);
    *p = memory;
    return cudaSuccess;
}

static cudaError_t release(void *p, bool host)
{
    if (!p) return cudaSuccess;
    auto found = allocations.find((const char *)p);
    if (found == allocations.end()) return cudaErrorInvalidValue;
    Allocation a = found->second;
    if (host != (a.owner == PINNED) || a.owner == REGISTERED) return cudaErrorInvalidValue;
    set_access((const char *)p, a, true);
    allocations.erase(found);
    if (a.owner == DEVICE) device_used -= round_up(a.size);
    if (a.pool) a.pool->used -= round_up(a.size);
    bool own_range = a.pool && a.pool->maximum;
    if ((with_asan() && !own_range) || a.owner == PINNED)
        free(p);
    else if (a.owner == MANAGED)
        munmap(p, round_up(a.size));
    else
        (own_range ? a.pool->range : device).give(p, round_up(a.size));
    return cudaSuccess;
}

// A pointer just outside of an allocation belongs to it: programs pass the end of an array, too.
static bool near_allocation(const char *p)
{
    const long near = 4096;
    auto after = allocations.upper_bound(p);
    if (after != allocations.end() && after->first - p < near) return true;
    if (after == allocations.begin()) return false;
    auto before = std::prev(after);
    return p - before->first < (long)before->second.size + near;
}

bool is_host_pointer(const void *p)
{
    if (!p || near_allocation((const char *)p) || find_symbol(p) || in_device_region(p))
        return false;
    return !with_asan() ||
           !__asan_address_is_poisoned(p); // freed memory: ASan tells where it is used
}
bool in_device_region(const void *p) { return device.contains(p); }

bool report_leaks()
{
    bool any = false;
    for (auto &[p, a] : allocations) {
        if (a.owner == REGISTERED) continue;
        message("leak: %zu bytes of %s memory, allocated at %s:%d, never freed", a.size,
                owner_names[a.owner], a.file, a.line);
        any = true;
    }
    return any;
}

void reset_memory()
{
    while (!allocations.empty()) {
        auto a = *allocations.begin();
        if (a.second.owner == REGISTERED ||
            release((void *)a.first, a.second.owner == PINNED) != cudaSuccess)
            allocations.erase(a.first);
    }
}

// May [p, p + size) be the device's, or the host's, side of a copy?
static bool valid_side(const void *p, size_t size, bool on_device)
{
    if (!p) return false;
    auto a = find(p);
    if (a != allocations.end()) {
        if (!on_device && a->second.owner == DEVICE) return false;
        return size <= a->second.size - (size_t)((const char *)p - a->first);
    }
    if (const RegisterSymbol *s = find_symbol(p))
        return size <= s->size - (size_t)((const char *)p - (const char *)s->address);
    return !on_device && !in_device_region(p);
}

static cudaError_t check_copy(const void *dst, const void *src, size_t to_size, size_t from_size,
                              cudaMemcpyKind kind)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    bool any = kind == cudaMemcpyDefault;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool fits =
        any ? (valid_side(dst, to_size, true) || valid_side(dst, to_size, false)) &&
                  (valid_side(src, from_size, true) || valid_side(src, from_size, false))
            : valid_side(dst, to_size, to_device) && valid_side(src, from_size, from_device);
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t copy(void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
    if (size == 0) return cudaSuccess;
    DeviceOpen open;
    cudaError_t error = check_copy(dst, src, size, size, kind);
    if (error == cudaSuccess) memmove(dst, src, size);
    return error;
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                           size_t height, cudaMemcpyKind kind)
{
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > dpitch || width > spitch) return cudaErrorInvalidPitchValue;
    DeviceOpen open;
    cudaError_t error =
        check_copy(dst, src, dpitch * (height - 1) + width, spitch * (height - 1) + width, kind);
    for (size_t y = 0; y < height && error == cudaSuccess; y++)
        memcpy((char *)dst + y * dpitch, (const char *)src + y * spitch, width);
    return error;
}

static cudaError_t set_2d(void *p, size_t pitch, int value, size_t width, size_t height)
{
    if (width == 0 || height == 0) return cudaSuccess;
    if (height > 1 && width > pitch) return cudaErrorInvalidValue;
    DeviceOpen open;
    if (!valid_side(p, pitch * (height - 1) + width, true)) return cudaErrorInvalidValue;
    for (size_t y = 0; y < height; y++) memset((char *)p + y * pitch, value, width);
    return cudaSuccess;
}

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
        return error ? error : allocate(p, size, DEVICE, current_pool, file, line);
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
        if (current_pool == pool) current_pool = &default_pool;
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
    return get_pool("cudaDeviceGetMemPool", pool, number, current_pool);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool)
{
    return api("cudaDeviceSetMemPool", 0, "", [&]() -> cudaError_t {
        if (!pool) return cudaErrorInvalidValue;
        current_pool = pool;
        return cudaSuccess;
    });
}
