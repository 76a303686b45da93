// Rung 2: rung 1 with x and y exchanged; nothing else.
//
// threadIdx.x counts columns, so the 32 threads of a warp sit side by side in one row of C:
//
//        A              B            C          All 32 read the same A[row][i] (one broadcast) and
//     ------->        ttt           ttt         32 neighbours B[i][col]: one piece of 128 bytes.
//                     012 ...       012 ...
#include "matmul.cuh"

namespace rung_2
{

enum { TILE_M = 32, TILE_N = 32, THREADS = TILE_M * TILE_N, SHARED_BYTES = 0 };

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    int row = blockIdx.y * TILE_M + threadIdx.y;
    int col = blockIdx.x * TILE_N + threadIdx.x;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    c[(size_t)row * n + col] = sum;
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 block(TILE_N, TILE_M), grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, block>>>(m, n, k, a, b, c);
}

} // namespace rung_2
