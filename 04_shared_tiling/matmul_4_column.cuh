// Rung 4: a thread computes a column of 8 results. Rung 3 reads two floats from shared memory for
// one multiply-add; here the one of B stays in a register and serves 8 of them.
//
//     a_tile 64x8          b_tile 8x64                C tile 64x64
//       . . i . .                                       . . . x . .   <- thread (ty, tx) owns
//       . . i . .            . . . x . .   row i        . . . x . .      rows ty*8 ... ty*8 + 7
//       . . i . .                                       . . . x . .      of column tx
#include "matmul.cuh"

namespace rung_4
{

enum { TILE_M = 64, TILE_N = 64, TILE_K = 8 };
enum { ROWS = 8, THREADS = TILE_M / ROWS * TILE_N }; // results a thread; 512 threads
enum { SHARED_BYTES = (TILE_M * TILE_K + TILE_K * TILE_N) * sizeof(float) };

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float a_tile[TILE_M][TILE_K], b_tile[TILE_K][TILE_N];
    int t = threadIdx.x, ty = t / TILE_N, tx = t % TILE_N;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N; // of the tile
    float sum[ROWS] = {};
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        for (int e = 0; e < TILE_M * TILE_K; e += THREADS) { // element e + t, row by row
            int y = (e + t) / TILE_K, x = (e + t) % TILE_K;
            a_tile[y][x] = row0 + y < m && k0 + x < k ? a[(size_t)(row0 + y) * k + k0 + x] : 0;
        }
        for (int e = 0; e < TILE_K * TILE_N; e += THREADS) {
            int y = (e + t) / TILE_N, x = (e + t) % TILE_N;
            b_tile[y][x] = k0 + y < k && col0 + x < n ? b[(size_t)(k0 + y) * n + col0 + x] : 0;
        }
        __syncthreads(); // the tiles are complete before anyone reads them
        for (int i = 0; i < TILE_K; i++) {
            float b_value = b_tile[i][tx];
            for (int r = 0; r < ROWS; r++)
                sum[r] += a_tile[ty * ROWS + r][i] * b_value;
        }
        __syncthreads(); // everyone has read them before anyone overwrites them
    }
    for (int r = 0; r < ROWS; r++) {
        int row = row0 + ty * ROWS + r, col = col0 + tx;
        if (row < m && col < n)
            c[(size_t)row * n + col] = sum[r];
    }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, THREADS>>>(m, n, k, a, b, c);
}

} // namespace rung_4
