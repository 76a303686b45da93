// cub_sum.h - the sum that ships with the CUDA toolkit (CUB's DeviceReduce), as a yardstick.
//
// CUB is a C++ template library: its header costs seconds of compile time, so only the lesson that
// compares with it includes this one. The CPU backend has no CUB: cub_sum_why_not says so.
#ifndef COMMON_CUB_SUM_H
#define COMMON_CUB_SUM_H

#include "check.h"

#if !defined(CUDA_CPU_BACKEND) && defined(__has_include)
#if __has_include(<cub/device/device_reduce.cuh>)
#define COMMON_HAS_CUB 1
#include <cub/device/device_reduce.cuh>
#endif
#endif

// Why there is no CUB here; NULL: there is one.
static inline const char *cub_sum_why_not(void)
{
#ifdef COMMON_HAS_CUB
    return NULL;
#elif defined(CUDA_CPU_BACKEND)
    return "CUB needs a GPU";
#else
    return "this toolkit has no cub/device/device_reduce.cuh";
#endif
}

// *out = sum of n floats. With temporary == NULL it only says how many bytes of device memory it
// needs; both calls are CUB's own convention.
static inline void cub_sum(void *temporary, size_t *bytes, const float *in, float *out, size_t n)
{
#ifdef COMMON_HAS_CUB
    CUDA_CHECK(cub::DeviceReduce::Sum(temporary, *bytes, in, out, n));
#else
    (void)temporary, (void)in, (void)out, (void)n;
    *bytes = 0;
#endif
}

#endif
