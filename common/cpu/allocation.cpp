// Device memory: an address range of its own size, of which only the allocated pages can be touched. Under
// AddressSanitizer each allocation comes from malloc instead, so that ASan sees where it ends and when it was freed.
#include "memory.h"

#include <stdlib.h>

extern "C" { // present when the program is linked with -fsanitize=address
void __asan_init() __attribute__((weak));
int __asan_address_is_poisoned(const void *p) __attribute__((weak));
void __asan_poison_memory_region(const void *p, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const void *p, size_t size) __attribute__((weak));
}

namespace cuda_cpu
{

const size_t PAGE = 4096;
size_t round_up(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

bool with_asan() { return __asan_init != nullptr; }

// 0xfffafffa: a NaN as float and as half, and twice of it as double; -327686 as int.
void poison(void *p, size_t size)
{
    unsigned *words = (unsigned *)p;
    for (size_t i = 0; i < size / 4; i++) words[i] = 0xfffafffau;
    memset((char *)p + size / 4 * 4, 0xff, size % 4);
}

static const char *const owner_names[] = {"device", "managed", "pinned host", "registered host"};
// Never destroyed: programs free memory, and leaks are looked for, after main has ended.
Allocations &allocations = *new Allocations();
static Range &device = *new Range();
size_t device_used = 0;
CUmemPoolHandle_st &default_pool = *new CUmemPoolHandle_st{};
static RegisterSymbol *symbols = nullptr;

RegisterSymbol::RegisterSymbol(const void *a, size_t s, bool m, const char *n)
    : address(a), size(s), managed(m), name(n), next(symbols)
{
    symbols = this;
}

const RegisterSymbol *find_symbol(const void *p)
{
    for (RegisterSymbol *s = symbols; s; s = s->next)
        if (p >= s->address && p < (const char *)s->address + s->size) return s;
    return nullptr;
}

// The allocation that holds p.
Allocations::iterator find(const void *p)
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

cudaError_t allocate(void **p, size_t size, Owner owner, CUmemPoolHandle_st *pool, const char *file,
                     int line, unsigned flags)
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

cudaError_t release(void *p, bool host)
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
bool valid_side(const void *p, size_t size, bool on_device)
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

cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
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

cudaError_t set_2d(void *p, size_t pitch, int value, size_t width, size_t height)
{
    if (width == 0 || height == 0) return cudaSuccess;
    if (height > 1 && width > pitch) return cudaErrorInvalidValue;
    DeviceOpen open;
    if (!valid_side(p, pitch * (height - 1) + width, true)) return cudaErrorInvalidValue;
    for (size_t y = 0; y < height; y++) memset((char *)p + y * pitch, value, width);
    return cudaSuccess;
}
} // namespace cuda_cpu
