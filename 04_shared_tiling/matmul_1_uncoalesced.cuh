// Rung 1: one thread computes one result.
//
// threadIdx.x counts rows, so the 32 threads of a warp sit in 32 different rows of A and of C:
//
//        A              B            C          thread 0 reads A[0][i], thread 1 A[1][i] ...
//     t0 ----->       i |||         t0          k floats apart: 32 separate pieces of memory for
//     t1 ----->       i |||         t1          one load, of which 4 bytes each are wanted.
//     t2 ----->       i vvv         t2
#include "matmul.cuh"

namespace rung_1
{

enum { TILE_M = 32, TILE_N = 32, THREADS = TILE_M * TILE_N, SHARED_BYTES = 0 };

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    int row = blockIdx.x * TILE_M + threadIdx.x;
    int col = blockIdx.y * TILE_N + threadIdx.y;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    c[(size_t)row * n + col] = sum;
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 block(TILE_M, TILE_N), grid(divide_up(m, TILE_M), divide_up(n, TILE_N));
    matmul<<<grid, block>>>(m, n, k, a, b, c);
}

} // namespace rung_1
