// The allocations of the device and of pinned host memory: allocation.cpp keeps the books, memory.cpp is the API.
#pragma once
#include <map>

#include "runtime.h"

namespace cuda_cpu
{
// An address range for the allocations of the device, or of a pool with a maximum size.
struct Range {
    char *base = nullptr, *free_from = nullptr; // nothing is free before
    size_t size = 0;
    void reserve(size_t bytes);
    void *take(size_t bytes); // the first gap that is large enough; null when there is none
    void give(char *p, size_t bytes);
    bool contains(const void *p) const { return (char *)p >= base && (char *)p < base + size; }
};
} // namespace cuda_cpu

struct CUmemPoolHandle_st {
    cuda_cpu::Range range; // when the pool has a maximum size
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
    At at;
};
typedef std::map<const char *, Allocation> Allocations;
extern Allocations &allocations; // by address
extern size_t device_used;
extern CUmemPoolHandle_st &default_pool;

size_t round_up(size_t size);              // to whole pages
Allocations::iterator find(const void *p); // the allocation that holds p
const RegisterSymbol *find_symbol(const void *p);
cudaError_t allocate(Out p, size_t size, Owner owner, At at, cudaMemPool_t pool = nullptr);
cudaError_t release(void *p, bool pinned);
bool valid_side(const void *p, size_t size, bool on_device); // of a copy
cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                    size_t height, cudaMemcpyKind kind);
} // namespace cuda_cpu
