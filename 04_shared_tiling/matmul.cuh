// matmul.cuh - what the rungs of the ladder share. Each rung is one file with its own namespace, so
// that the same things have the same names in all of them and two files can be compared:
//
//     diff matmul_2_coalesced.cuh matmul_3_shared.cuh
//
// All compute C = A x B for row-major A (m x k), B (k x n), C (m x n) of any size. The sides are
// int, as in BLAS; a product of two of them is an index and therefore size_t.
#ifndef MATMUL_CUH
#define MATMUL_CUH

#include "../common/lesson.h"

static inline int divide_up(int a, int b)
{
    return a / b + (a % b > 0); // (a + b - 1) / b could overflow
}

#endif
