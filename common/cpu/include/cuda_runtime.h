// The <cuda_runtime.h> of the CPU backend: CUDA's programming model on this machine's processor. nvcc-cpu
// includes it into every .cu file, as nvcc does with its own. Start reading in ../thread.h.
#pragma once
#pragma GCC system_header
#if !defined __cplusplus || __cplusplus < 201703L
#error "the CPU backend's headers need C++17 or newer: compile C files that include them as C++"
#endif
#define CUDA_CPU_BACKEND 1
#define __CUDA_RUNTIME_H__ // NVIDIA's helper_cuda.h has its macros only where these two are defined
#define __DRIVER_TYPES_H__

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utility>

#define __host__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __CUDACC__ // In a .cu file rewrite.cpp reads these; in a .cpp file, as with nvcc, they mean nothing.
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#endif

// Names that a program may have defined with -D keep out of the headers.
#pragma push_macro("A")
#pragma push_macro("F")
#undef A
#undef F
#include "../vector_types.h"
#include "../thread.h"
#include "../device.h"
#include "../intrinsics.h"
#include "../api.h"
#include "../texture.h"
#pragma pop_macro("A")
#pragma pop_macro("F")
