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

// A kernel may have more than 48 KiB of shared memory a block, but it must be asked for.
static inline void allow_shared(const void *kernel, int bytes)
{
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// ---- whole tiles, for rungs 8 and 9
//
// Those rungs load only whole tiles, 16 bytes at a time, without a question about edges. A matrix
// whose sides do not fit is therefore first copied into a larger one with zeros on the right and
// below; zeros add nothing to any sum. For 4096 x 4096 that moves 2 x 64 MiB: about 1 % of the time
// of the product, which grows faster than its matrices.

enum { PAD_BLOCK = 256, PAD_EACH = 4 }; // elements a thread: they are written together

static __global__ void pad_rows(int rows, int cols, int pitch, const float *in, int padded_cols,
                                float *out)
{
    int row = blockIdx.y, col = (blockIdx.x * PAD_BLOCK + threadIdx.x) * PAD_EACH;
    const float *from = in + (size_t)row * pitch + col;
    if (col >= padded_cols) // which is divisible by PAD_EACH
        return;
    float v[PAD_EACH];
#pragma unroll
    for (int e = 0; e < PAD_EACH; e++)
        v[e] = row < rows && col + e < cols ? from[e] : 0;
    *(float4 *)(out + (size_t)row * padded_cols + col) = make_float4(v[0], v[1], v[2], v[3]);
}

// The first `cols` columns of `in`, whose rows are `pitch` long: `in` itself when it consists of whole
// tiles; else a padded copy, for give_back() later.
static inline const float *whole_tiles(const float *in, int rows, int cols, int pitch,
                                       int padded_rows, int padded_cols)
{
    if ((rows == padded_rows && pitch == padded_cols) || padded_rows == 0 || padded_cols == 0)
        return in;
    float *out;
    enum { ROWS_A_LAUNCH = 65535 }; // the limit of gridDim.y
    CUDA_CHECK(
        cudaMallocAsync((void **)&out, (size_t)padded_rows * padded_cols * sizeof(float), 0));
    for (int row = 0; row < padded_rows; row += ROWS_A_LAUNCH) {
        int left = padded_rows - row;
        dim3 grid(divide_up(padded_cols, PAD_BLOCK * PAD_EACH),
                  left < ROWS_A_LAUNCH ? left : ROWS_A_LAUNCH);
        pad_rows<<<grid, PAD_BLOCK>>>(rows - row, cols, pitch, in + (size_t)row * pitch,
                                      padded_cols, out + (size_t)row * padded_cols);
        CUDA_CHECK_LAUNCH();
    }
    return out;
}

static inline void give_back(const float *tiles, const float *in)
{
    if (tiles != in) // in the order of the stream: after the kernel that reads it
        CUDA_CHECK(cudaFreeAsync((void *)tiles, 0));
}

// Four neighbouring results to C (rows x cols) from row, col on, or added to what is there; 16 bytes at
// once where C allows it, and only those that lie inside of it.
static __device__ __forceinline__ void write_four(float *c, int rows, int cols, int row, int col,
                                                  const float *v, bool add)
{
    float *to = c + (size_t)row * cols + col;
    if (row < rows && col < cols && cols % 4 == 0) {
        float4 old = add ? *(float4 *)to : make_float4(0, 0, 0, 0);
        *(float4 *)to = make_float4(old.x + v[0], old.y + v[1], old.z + v[2], old.w + v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (row < rows && col + i < cols)
                to[i] = (add ? to[i] : 0) + v[i];
    }
}

// ---- the last few columns
//
// 4097 columns are 16 tiles of 256 and one column more. A tile for it would be 6 % more work; summed
// by itself it takes as long as reading A.

enum { EDGE = 16, EDGE_ROWS = 4, EDGE_BLOCK = 256, EDGE_WARPS = EDGE_BLOCK / 32 };

// Columns first .. n - 1 of C, at most EDGE. A block: EDGE_ROWS rows; the threads share the sums along k.
static __global__ void edge_columns(int m, int n, int k, int first, const float *a, const float *b,
                                    float *c)
{
    __shared__ float parts[EDGE_WARPS][EDGE_ROWS][EDGE];
    int row0 = blockIdx.x * EDGE_ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum[EDGE_ROWS][EDGE] = {};
    for (int i = threadIdx.x; i < k; i += EDGE_BLOCK) {
        float a_part[EDGE_ROWS];
#pragma unroll
        for (int r = 0; r < EDGE_ROWS; r++)
            a_part[r] = row0 + r < m ? a[(size_t)(row0 + r) * k + i] : 0;
#pragma unroll
        for (int s = 0; s < EDGE; s++)
            if (first + s < n) { // the same for all threads
                float b_part = b[(size_t)i * n + first + s];
#pragma unroll
                for (int r = 0; r < EDGE_ROWS; r++)
                    sum[r][s] += a_part[r] * b_part;
            }
    }
#pragma unroll
    for (int s = 0; s < EDGE; s++)
        if (first + s < n)
#pragma unroll
            for (int r = 0; r < EDGE_ROWS; r++) {
                for (int d = 16; d > 0; d /= 2)
                    sum[r][s] += __shfl_down_sync(0xffffffff, sum[r][s], d);
                if (lane == 0)
                    parts[warp][r][s] = sum[r][s];
            }
    __syncthreads(); // the parts of all warps are there
    int r = threadIdx.x / EDGE, s = threadIdx.x % EDGE;
    if (r < EDGE_ROWS && row0 + r < m && first + s < n) {
        float total = 0;
        for (int w = 0; w < EDGE_WARPS; w++)
            total += parts[w][r][s];
        c[(size_t)(row0 + r) * n + first + s] = total;
    }
}

#endif
