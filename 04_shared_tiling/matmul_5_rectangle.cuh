// Rung 5: a thread computes a rectangle of 8 x 8 results: 16 floats read from shared memory serve
// 64 multiply-adds. (A column of 8 needs 9 for 8.)
//
//     a_tile 128x8         b_tile 8x128               C tile 128x128
//       . . i . .                                       x . . x . . x . .   thread (ty, tx) owns
//       . . i . .            x . . x . . x . .  row i   . . . . . . . . .   rows ty, ty + 16, ...
//       . . i . .                                       x . . x . . x . .   columns tx, tx + 16, ...
//
// Its columns lie 16 apart, so that 16 neighbouring threads read 16 neighbouring floats of b_tile:
// were a thread's columns side by side, the threads would meet in the same shared memory banks.
#include "matmul.cuh"

namespace rung_5
{

enum { TILE_M = 128, TILE_N = 128, TILE_K = 8 };
enum { ROWS = 8, COLS = 8 };                                   // results a thread
enum { THREADS_Y = TILE_M / ROWS, THREADS_X = TILE_N / COLS }; // 16 x 16
enum { THREADS = THREADS_Y * THREADS_X };
enum { SHARED_BYTES = (TILE_M * TILE_K + TILE_K * TILE_N) * sizeof(float) };

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float a_tile[TILE_M][TILE_K], b_tile[TILE_K][TILE_N];
    int t = threadIdx.x, ty = t / THREADS_X, tx = t % THREADS_X;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N; // of the tile
    float sum[ROWS][COLS] = {};
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
            float a_part[ROWS], b_part[COLS]; // registers: every index below is a constant
            for (int r = 0; r < ROWS; r++)
                a_part[r] = a_tile[ty + r * THREADS_Y][i];
            for (int s = 0; s < COLS; s++)
                b_part[s] = b_tile[i][tx + s * THREADS_X];
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < COLS; s++)
                    sum[r][s] += a_part[r] * b_part[s];
        }
        __syncthreads(); // everyone has read them before anyone overwrites them
    }
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLS; s++) {
            int row = row0 + ty + r * THREADS_Y, col = col0 + tx + s * THREADS_X;
            if (row < m && col < n)
                c[(size_t)row * n + col] = sum[r][s];
        }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, THREADS>>>(m, n, k, a, b, c);
}

} // namespace rung_5
