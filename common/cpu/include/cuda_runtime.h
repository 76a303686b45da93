// The <cuda_runtime.h> of the CPU backend: CUDA's programming model on this machine's processor. nvcc-cpu
// includes it into every .cu file, as nvcc does with its own. Start reading in ../thread.h.
#pragma once
#pragma GCC system_header
#ifndef __cplusplus
#error "the CPU backend's cuda_runtime.h is for C++ (.cu, .cpp): compile C files that need it as C++"
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

// In a .cu file rewrite.cpp reads the qualifiers; in a .cpp file, as with nvcc, they mean nothing.
#ifndef __CUDACC__
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#endif
#define CUDARTAPI

#include "../vector_types.h"
#include "../thread.h"
#include "../device.h"
#include "../intrinsics.h"
#include "../api.h"
#include "../texture.h"
