// Rung 7: load the next tiles while computing with these. There are two copies of each tile: the
// threads multiply from one, and meanwhile the hardware fills the other.
//
//     rung 6   load 0 | compute 0 | load 1 | compute 1 | load 2 | ...
//     rung 7   load 0 | compute 0          | compute 1          | ...
//                     | load 1             | load 2             | ...
//
// __pipeline_memcpy_async (cp.async, compute capability 8.0 and up; a plain copy on older GPUs)
// moves 4 or 16 bytes from global to shared memory without passing through a register, and does
// not wait. It is told where to put each float, so the transposition of A costs nothing more.
#include "matmul.cuh"
#include <cuda_pipeline.h>

namespace rung_7
{

enum { TILE_M = 128, TILE_N = 128, TILE_K = 8, STAGES = 2 };
enum { ROWS = 8, COLS = 8 };                                   // results a thread
enum { THREADS_Y = TILE_M / ROWS, THREADS_X = TILE_N / COLS }; // 16 x 16
enum { THREADS = THREADS_Y * THREADS_X };
enum { A_PITCH = TILE_M + 4 }; // as in rung 6
enum { SHARED_BYTES = STAGES * (TILE_K * A_PITCH + TILE_K * TILE_N) * sizeof(float) };

struct tiles {
    float a[TILE_K][A_PITCH], b[TILE_K][TILE_N];
};

// Begins to copy four floats, of which only the first `left` exist; the others become 0.
static __device__ void copy4_async(float *to, const float *from, int left, bool aligned)
{
    if (aligned && left >= 4)
        __pipeline_memcpy_async(to, from, 16);
    else
        for (int i = 0; i < 4; i++)
            if (i < left)
                __pipeline_memcpy_async(to + i, from + i, 4);
            else
                to[i] = 0;
}

static __device__ void store4(float *p, int left, bool aligned, const float *values)
{
    if (aligned && left >= 4)
        *(float4 *)p = make_float4(values[0], values[1], values[2], values[3]);
    else
        for (int i = 0; i < 4; i++)
            if (i < left)
                p[i] = values[i];
}

// Begins to load the tiles of A and B that start at row0, col0 and k0.
static __device__ void load_tiles(struct tiles *to, int m, int n, int k, const float *a,
                                  const float *b, int row0, int col0, int k0)
{
    int t = threadIdx.x;
    for (int e = 0; e < TILE_M * TILE_K; e += THREADS) { // 8 neighbours read 8 neighbours of a row
        int y = (e + t) / TILE_K, x = (e + t) % TILE_K;
        if (row0 + y < m && k0 + x < k)
            __pipeline_memcpy_async(&to->a[x][y], a + (size_t)(row0 + y) * k + k0 + x, 4);
        else
            to->a[x][y] = 0;
    }
    for (int e = 0; e < TILE_K * TILE_N; e += 4 * THREADS) {
        int y = (e / 4 + t) / (TILE_N / 4), x = (e / 4 + t) % (TILE_N / 4) * 4;
        int left = k0 + y < k ? n - (col0 + x) : 0;
        copy4_async(&to->b[y][x], b + (size_t)(k0 + y) * n + col0 + x, left, n % 4 == 0);
    }
    __pipeline_commit();
}

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ __align__(16) struct tiles stages[STAGES];
    int t = threadIdx.x, ty = t / THREADS_X, tx = t % THREADS_X;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N; // of the tile
    float sum[ROWS][COLS] = {};
    load_tiles(&stages[0], m, n, k, a, b, row0, col0, 0);
    for (int k0 = 0, now = 0; k0 < k; k0 += TILE_K, now = 1 - now) {
        __pipeline_wait_prior(0); // my own copies have arrived
        __syncthreads();          // everyone's have; and everyone is done with the other stage
        if (k0 + TILE_K < k)
            load_tiles(&stages[1 - now], m, n, k, a, b, row0, col0, k0 + TILE_K);
        for (int i = 0; i < TILE_K; i++) {
            float a_part[ROWS], b_part[COLS]; // registers: every index below is a constant
            for (int r = 0; r < ROWS; r += 4)
                *(float4 *)&a_part[r] = *(float4 *)&stages[now].a[i][ty * 4 + r * THREADS_Y];
            for (int s = 0; s < COLS; s += 4)
                *(float4 *)&b_part[s] = *(float4 *)&stages[now].b[i][tx * 4 + s * THREADS_X];
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < COLS; s++)
                    sum[r][s] += a_part[r] * b_part[s];
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLS; s += 4) {
            int row = row0 + ty * 4 + r % 4 + r / 4 * 4 * THREADS_Y;
            int col = col0 + tx * 4 + s * THREADS_X;
            if (row < m)
                store4(c + (size_t)row * n + col, n - col, n % 4 == 0, &sum[r][s]);
        }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, THREADS>>>(m, n, k, a, b, c);
}

} // namespace rung_7
