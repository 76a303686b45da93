// Rung 3: the block loads a 32x32 tile of A and one of B into shared memory, once, and all its
// threads read them from there: each float fetched from global memory is now used 32 times.
//
//        A                  B                C
//     [1][2][3]            [1]              one 32x32 tile of results a block;
//                          [2]              step i multiplies tile i of A with tile i of B
//                          [3]              and adds the product to the sums in registers
#include "matmul.cuh"

namespace rung_3
{

enum { TILE_M = 32, TILE_N = 32, TILE_K = 32, THREADS = TILE_M * TILE_N };
enum { SHARED_BYTES = (TILE_M * TILE_K + TILE_K * TILE_N) * sizeof(float) };

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float a_tile[TILE_M][TILE_K], b_tile[TILE_K][TILE_N];
    int ty = threadIdx.y, tx = threadIdx.x;
    int row = blockIdx.y * TILE_M + ty;
    int col = blockIdx.x * TILE_N + tx;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        // Nobody returns early, also not outside of C: every thread is needed for loading and at
        // the barriers. What lies outside of A or B counts as 0 and changes no sum.
        a_tile[ty][tx] = row < m && k0 + tx < k ? a[(size_t)row * k + k0 + tx] : 0;
        b_tile[ty][tx] = k0 + ty < k && col < n ? b[(size_t)(k0 + ty) * n + col] : 0;
        __syncthreads(); // the tiles are complete before anyone reads them
        for (int i = 0; i < TILE_K; i++)
            sum += a_tile[ty][i] * b_tile[i][tx];
        __syncthreads(); // everyone has read them before anyone overwrites them
    }
    if (row < m && col < n)
        c[(size_t)row * n + col] = sum;
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 block(TILE_N, TILE_M), grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, block>>>(m, n, k, a, b, c);
}

} // namespace rung_3
