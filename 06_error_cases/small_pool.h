// small_pool.h - a device of 64 MiB inside the real one: a memory pool that refuses to grow beyond
// its cap. With it a program runs out of memory in earnest while the card, and the desktop that may
// be drawn by it, keep all the memory they have.
#ifndef ERROR_CASES_SMALL_POOL_H
#define ERROR_CASES_SMALL_POOL_H

#include "twins.h"

#define MIB ((size_t)1 << 20)
enum { POOL_MIB = 64 };

// A pool on this device; cap_bytes 0: no cap.
static inline cudaMemPool_t pool_create(size_t cap_bytes)
{
    cudaMemPool_t pool = NULL;
#if CUDART_VERSION >= 12020
    if (!device_attribute(cudaDevAttrMemoryPoolsSupported))
        twin_waive("this device has no memory pools (cudaMallocAsync)");
    cudaMemPoolProps props;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device_facts.id;
    props.maxSize = cap_bytes;
    CUDA_CHECK(cudaMemPoolCreate(&pool, &props));
#else
    (void)cap_bytes;
    twin_waive("a pool with a cap needs CUDA 12.2 or newer");
#endif
    return pool;
}

static inline cudaMemPool_t small_pool(void)
{
    printf("  a device of %d MiB: a memory pool with that cap\n", POOL_MIB);
    return pool_create(POOL_MIB * MIB);
}

#endif
