// The <cuda_runtime.h> of the CPU backend: CUDA's programming model on this machine's processor. nvcc-cpu
// includes it into every .cu file, as nvcc does with its own. Start reading in ../thread.h.
#pragma once
#pragma GCC system_header
#ifndef __cplusplus
#error                                                                                             \
    "the CPU backend's cuda_runtime.h is for C++ (.cu, .cpp): compile C files that need it as C++"
#endif
#if __cplusplus < 201703L
#error "the CPU backend needs C++17 or newer"
#endif
#define CUDA_CPU_BACKEND 1

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utility>

#define __host__
#define __grid_constant__
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __CUDACC__ // In a .cu file rewrite.cpp reads these; in a .cpp file, as with nvcc, they mean nothing.
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#endif
#define CUDARTAPI

// Short names that a program may have defined with -D keep out of the headers.
#pragma push_macro("A")
#pragma push_macro("B")
#pragma push_macro("F")
#pragma push_macro("I")
#pragma push_macro("N")
#pragma push_macro("P")
#pragma push_macro("T")
#undef A
#undef B
#undef F
#undef I
#undef N
#undef P
#undef T
#include "../vector_types.h"
#include "../thread.h"
#include "../device.h"
#include "../intrinsics.h"
#include "../api.h"
#include "../texture.h"
#pragma pop_macro("A")
#pragma pop_macro("B")
#pragma pop_macro("F")
#pragma pop_macro("I")
#pragma pop_macro("N")
#pragma pop_macro("P")
#pragma pop_macro("T")
