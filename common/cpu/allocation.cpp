// Device memory: an address range of its own size, of which only the allocated pages can be touched. Under
// AddressSanitizer each allocation comes from malloc instead, so that ASan sees where it ends and when it was freed.
#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>

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
    return (const char *)p < a->first + a->second.size ? a : allocations.end();
}

void Range::reserve(size_t bytes)
{
    void *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    base = free_from = (char *)p;
    size = bytes;
}

void *Range::take(size_t bytes)
{
    char *p = free_from, *end = base + size;
    for (auto a = allocations.lower_bound(p); a != allocations.end() && a->first < end; ++a) {
        if (a->first - p >= (long)bytes) break;
        p = (char *)a->first + round_up(a->second.size);
    }
    if (end - p < (long)bytes || mprotect(p, bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
    if (p == free_from) free_from += bytes;
    return p;
}

void Range::give(char *p, size_t bytes)
{
    mprotect(p, bytes, PROT_NONE);
    madvise(p, bytes, MADV_DONTNEED);
    free_from = std::min(free_from, p);
}

// What an allocation's bytes are taken from: the range of its pool, the device's, or (null) the C library's memory.
static Range *range_of(const Allocation &a)
{
    if (a.pool && a.pool->maximum) return &a.pool->range;
    return a.owner == DEVICE && !with_asan() ? &device : nullptr;
}
// Managed memory has pages of its own, so that a pointer that was freed faults.
static bool own_pages(const Allocation &a) { return a.owner == MANAGED && !with_asan(); }

// On a GPU the host cannot read device memory. Here it can, which hides a mistake, unless the program is built
// for ASan, or CUDA_CPU_STRICT is set: then device memory is open to kernels and copies only.
static void set_access(const char *p, const Allocation &a, bool open)
{
    if (a.owner != DEVICE || in_kernel()) return;
    if (!range_of(a))
        (open ? __asan_unpoison_memory_region : __asan_poison_memory_region)(p, a.size);
    else if (settings().strict)
        mprotect((void *)p, round_up(a.size), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static int device_open = 0; // how many need it

void open_device(bool open)
{
    bool first = device_open == 0;
    device_open += open ? 1 : -1;
    if ((first || device_open == 0) && (with_asan() || settings().strict))
        for (auto &[p, a] : allocations) set_access(p, a, open);
}

static void *take(const Allocation &a)
{
    if (Range *range = range_of(a)) return range->take(round_up(a.size));
    void *memory = nullptr;
    if (own_pages(a)) {
        memory = mmap(nullptr, round_up(a.size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return memory == MAP_FAILED ? nullptr : memory;
    }
    return posix_memalign(&memory, with_asan() ? 512 : PAGE, a.size) == 0 ? memory : nullptr;
}

cudaError_t allocate(Out p, size_t size, Owner owner, At at, cudaMemPool_t pool)
{
    if (!p.p) return cudaErrorInvalidValue;
    *p.p = nullptr;
    if (size == 0) return cudaSuccess;
    size_t total = settings().memory, whole = round_up(size);
    if (!device.base) device.reserve(round_up(total));
    if (whole < size || (owner == DEVICE && (whole > total || device_used + whole > total)) ||
        (pool && pool->maximum && pool->used + whole > pool->maximum))
        return cudaErrorMemoryAllocation;
    Allocation a = {size, owner, pool, at};
    void *memory = take(a);
    if (!memory) return cudaErrorMemoryAllocation;
    if (owner == DEVICE) device_used += whole;
    if (pool) pool->used += whole;
    poison(memory, size);
    allocations[(const char *)memory] = a;
    if (!device_open) set_access((const char *)memory, a, false);
    *p.p = memory;
    return cudaSuccess;
}

cudaError_t release(void *p, bool pinned)
{
    if (!p) return cudaSuccess;
    auto found = allocations.find((const char *)p);
    if (found == allocations.end()) return cudaErrorInvalidValue;
    Allocation a = found->second;
    if (pinned != (a.owner == PINNED) || a.owner == REGISTERED) return cudaErrorInvalidValue;
    set_access((const char *)p, a, true);
    allocations.erase(found);
    size_t whole = round_up(a.size);
    if (a.owner == DEVICE) device_used -= whole;
    if (a.pool) a.pool->used -= whole;
    if (Range *range = range_of(a))
        range->give((char *)p, whole);
    else if (own_pages(a))
        munmap(p, whole);
    else
        free(p);
    return cudaSuccess;
}

// Memory of the host alone? A pointer just outside of an allocation belongs to it: programs pass the end of an array,
// too. And where freed memory is used ASan tells itself.
bool is_host_pointer(const void *pointer)
{
    const char *p = (const char *)pointer;
    const long near = 4096;
    auto after = allocations.upper_bound(p + near);
    if (after != allocations.begin()) {
        auto &[start, a] = *std::prev(after);
        if (p - start < (long)a.size + near) return false;
    }
    return p && !find_symbol(p) && !in_device_region(p) &&
           !(with_asan() && __asan_address_is_poisoned(p));
}
bool in_device_region(const void *p) { return device.contains(p); }

bool report_leaks()
{
    bool any = false;
    for (auto &[p, a] : allocations) {
        if (a.owner == REGISTERED) continue;
        message("leak: %zu bytes of %s memory, allocated at %s:%d, never freed", a.size,
                owner_names[a.owner], a.at.file, a.at.line);
        any = true;
    }
    return any;
}

void reset_memory()
{
    for (auto &[p, a] : Allocations(allocations)) release((void *)p, a.owner == PINNED);
    allocations.clear(); // registered memory stays the program's
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

static bool may_copy(const void *dst, size_t to_size, const void *src, size_t from_size,
                     cudaMemcpyKind kind)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool any = kind == cudaMemcpyDefault;
    return (valid_side(dst, to_size, to_device) || (any && valid_side(dst, to_size, true))) &&
           (valid_side(src, from_size, from_device) || (any && valid_side(src, from_size, true)));
}

cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                    size_t height, cudaMemcpyKind kind)
{
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > dpitch || width > spitch) return cudaErrorInvalidPitchValue;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    DeviceOpen open;
    size_t before_last = height - 1;
    if (!may_copy(dst, dpitch * before_last + width, src, spitch * before_last + width, kind))
        return cudaErrorInvalidValue;
    for (size_t y = 0; y < height; y++)
        memmove((char *)dst + y * dpitch, (const char *)src + y * spitch, width);
    return cudaSuccess;
}
} // namespace cuda_cpu
