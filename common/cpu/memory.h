// The allocations of the device and of pinned host memory: allocation.cpp keeps the books, memory.cpp is the API.
#pragma once
#include <sys/mman.h>

#include <map>

#include "runtime.h"

namespace cuda_cpu
{
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
    size_t maximum, used;
    uint64_t threshold;
};

namespace cuda_cpu
{
enum Owner { DEVICE, MANAGED, PINNED, REGISTERED };

struct Allocation {
    size_t size;
    Owner owner;
    cudaMemPool_t pool;
    const char *file;
    int line;
};
typedef std::map<const char *, Allocation> Allocations;
extern Allocations &allocations; // by address
extern size_t device_used;
extern CUmemPoolHandle_st &default_pool;

size_t round_up(size_t size);              // to whole pages
Allocations::iterator find(const void *p); // the allocation that holds p
const RegisterSymbol *find_symbol(const void *p);
cudaError_t allocate(Out p, size_t size, Owner owner, cudaMemPool_t pool, const char *file,
                     int line);
cudaError_t release(void *p, bool pinned);
bool valid_side(const void *p, size_t size, bool on_device); // of a copy
cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                    size_t height, cudaMemcpyKind kind);
} // namespace cuda_cpu
