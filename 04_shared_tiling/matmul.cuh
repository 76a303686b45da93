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

static __host__ __device__ inline int divide_up(int a, int b)
{
    return a / b + (a % b > 0); // (a + b - 1) / b could overflow
}

static inline int round_up(int a, int b)
{
    return divide_up(a, b) * b;
}

// ---- whole tiles, for rungs 8 and 9
//
// Those rungs load only whole tiles, 16 bytes at a time, without a question about edges. A matrix
// whose sides do not fit is therefore first copied into a larger one with zeros on the right and
// below; zeros add nothing to any sum. For 4096 x 4096 that moves 2 x 64 MiB: about 1 % of the time
// of the product, which grows faster than its matrices.

enum { PAD_BLOCK = 256, PAD_EACH = 4 }; // elements a thread

static __global__ void pad_rows(int rows, int cols, const float *in, int padded_cols, float *out)
{
    int row = blockIdx.y, first = blockIdx.x * PAD_BLOCK * PAD_EACH + threadIdx.x;
#pragma unroll
    for (int e = 0; e < PAD_EACH; e++) {
        int col = first + e * PAD_BLOCK;
        if (col < padded_cols)
            out[(size_t)row * padded_cols + col] =
                row < rows && col < cols ? in[(size_t)row * cols + col] : 0;
    }
}

// `in` itself when it consists of whole tiles; else a padded copy, for give_back() later.
static inline const float *whole_tiles(const float *in, int rows, int cols, int padded_rows,
                                       int padded_cols)
{
    if ((rows == padded_rows && cols == padded_cols) || padded_rows == 0 || padded_cols == 0)
        return in;
    float *out;
    enum { ROWS_A_LAUNCH = 65535 }; // the limit of gridDim.y
    CUDA_CHECK(
        cudaMallocAsync((void **)&out, (size_t)padded_rows * padded_cols * sizeof(float), 0));
    for (int row = 0; row < padded_rows; row += ROWS_A_LAUNCH) {
        int left = padded_rows - row;
        dim3 grid(divide_up(padded_cols, PAD_BLOCK * PAD_EACH),
                  left < ROWS_A_LAUNCH ? left : ROWS_A_LAUNCH);
        pad_rows<<<grid, PAD_BLOCK>>>(rows - row, cols, in + (size_t)row * cols, padded_cols,
                                      out + (size_t)row * padded_cols);
        CUDA_CHECK_LAUNCH();
    }
    return out;
}

static inline void give_back(const float *tiles, const float *in)
{
    if (tiles != in) // in the order of the stream: after the kernel that reads it
        CUDA_CHECK(cudaFreeAsync((void *)tiles, 0));
}

#endif
