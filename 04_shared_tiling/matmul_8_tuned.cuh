// Rung 8: the shape that fits the machine. The idea is rung 7's; what changed is who does how much.
//
//        A                B                C           one block: 128 x 256 results, 8 warps
//     +------+      +-----+-----+    +--+--+--+--+
//     | 128  |      |  256 wide |    |w0|w1|w2|w3|     one warp: 64 x 64 of them; its lanes stand
//     | x 16 |      |  16 deep  |    +--+--+--+--+     8 (down) x 4 (across), and lane (y, x) owns
//     +------+      +-----------+    |w4|w5|w6|w7|     rows y*4 + 0..3, and again 32 further down,
//                                    +--+--+--+--+     columns x*4 + 0..3, again every 16 columns:
//                                                      8 x 16 = 128 results in 128 registers
//     x: lane 0   1   2   3   0   1 ...
//        |xxxx|....|....|....|xxxx|.... y: lane row 0
//
// - 128 multiply-adds for 24 floats from shared memory (rung 7: 64 for 16).
// - The floats of step i + 1 are read from shared memory while step i computes, also across the
//   border between two tiles: no multiply-add waits for shared memory.
// - Three stages: a tile has the time of two tiles to arrive. One barrier a tile.
// - 250 registers a thread, one block an SM. Occupancy is 12.5 %, and that is right: what hides the
//   latency is not other warps but the independent multiply-adds of this one.
#include "matmul.cuh"
#include <cuda_pipeline.h>

namespace rung_8
{

enum { TILE_M = 128, TILE_N = 256, TILE_K = 16, STAGES = 3 };
enum { WARP_M = 64, WARP_N = 64, WARPS_X = TILE_N / WARP_N, WARPS = TILE_M / WARP_M * WARPS_X };
enum { LANES_Y = 8, LANES_X = 4, THREADS = WARPS * LANES_Y * LANES_X };
enum { ROWS = WARP_M / LANES_Y, COLS = WARP_N / LANES_X }; // results a thread: 8 x 16
enum { GROUP_M = 4 * LANES_Y, GROUP_N = 4 * LANES_X };     // from one group of four to the next
enum { A_PITCH = TILE_M + 4 };                             // keeps copies of 8 k out of one bank

struct tiles {
    float a[TILE_K][A_PITCH], b[TILE_K][TILE_N]; // a is stored transposed
};
enum { SHARED_BYTES = STAGES * sizeof(struct tiles) };

// Begins to load the tiles of A and B that start at row0, col0 and k0.
static __device__ void load_tiles(struct tiles *to, int m, int n, int k, const float *a,
                                  const float *b, int row0, int col0, int k0)
{
    enum { SPAN = 8, A_STEP = THREADS / SPAN, B_STEP = THREADS / (TILE_N / 4) };
    int t = threadIdx.x, ay = t / SPAN, ax = t % SPAN; // 8 neighbours take 8 k of one row of A
    int by = t / (TILE_N / 4), bx = t % (TILE_N / 4) * 4;
    bool whole = row0 + TILE_M <= m && col0 + TILE_N <= n && k0 + TILE_K <= k && n % 4 == 0;
    const float *a_from = a + (size_t)(row0 + ay) * k + k0 + ax;
    const float *b_from = b + (size_t)(k0 + by) * n + col0 + bx;
    if (whole) {
        for (int y = 0; y < TILE_M; y += A_STEP)
            for (int x = 0; x < TILE_K; x += SPAN)
                __pipeline_memcpy_async(&to->a[ax + x][ay + y], a_from + (size_t)y * k + x, 4);
        for (int y = 0; y < TILE_K; y += B_STEP)
            __pipeline_memcpy_async(&to->b[by + y][bx], b_from + (size_t)y * n, 16);
    } else { // at an edge, or rows off the 16-byte boundaries: float by float
        for (int y = 0; y < TILE_M; y += A_STEP)
            for (int x = 0; x < TILE_K; x += SPAN)
                if (row0 + ay + y < m && k0 + ax + x < k)
                    __pipeline_memcpy_async(&to->a[ax + x][ay + y], a_from + (size_t)y * k + x, 4);
                else
                    to->a[ax + x][ay + y] = 0;
        for (int y = 0; y < TILE_K; y += B_STEP)
            for (int x = 0; x < 4; x++)
                if (k0 + by + y < k && col0 + bx + x < n)
                    __pipeline_memcpy_async(&to->b[by + y][bx + x], b_from + (size_t)y * n + x, 4);
                else
                    to->b[by + y][bx + x] = 0;
    }
}

__global__ void __launch_bounds__(THREADS, 1)
    matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    extern __shared__ float4 shared[]; // float4: on a 16-byte boundary
    struct tiles *stages = (struct tiles *)shared;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Lanes 2i and 2i + 1 differ in y, lanes i and i + 2 in x
    int y = warp / WARPS_X * WARP_M + 4 * ((lane & 1) | (lane >> 1 & 6));
    int x = warp % WARPS_X * WARP_N + 4 * ((lane >> 1 & 1) | (lane >> 3 & 2));
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N; // of the tile
    float sum[ROWS][COLS] = {}, a_part[2][ROWS], b_part[2][COLS];
    int load_k = 0, load_to = 0; // what is loaded next, and into which stage
    for (int s = 0; s < STAGES - 1; s++, load_k += TILE_K, load_to++) {
        if (load_k < k)
            load_tiles(&stages[load_to], m, n, k, a, b, row0, col0, load_k);
        __pipeline_commit(); // also when empty, so that the number of a batch tells its tile
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    const struct tiles *now = stages;
#pragma unroll
    for (int r = 0; r < ROWS; r += 4)
        *(float4 *)&a_part[0][r] = *(const float4 *)&now->a[0][y + r / 4 * GROUP_M];
#pragma unroll
    for (int s = 0; s < COLS; s += 4)
        *(float4 *)&b_part[0][s] = *(const float4 *)&now->b[0][x + s / 4 * GROUP_N];
    int stage = 0;
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        if (load_k < k)
            load_tiles(&stages[load_to], m, n, k, a, b, row0, col0, load_k);
        __pipeline_commit();
        load_k += TILE_K;
        load_to = load_to + 1 == STAGES ? 0 : load_to + 1;
#pragma unroll
        for (int i = 0; i < TILE_K; i++) {
            if (i == TILE_K - 1) {
                __pipeline_wait_prior(STAGES - 2);
                __syncthreads();
                stage = stage + 1 == STAGES ? 0 : stage + 1;
                now = &stages[stage];
            }
            int next = (i + 1) % TILE_K;
#pragma unroll
            for (int r = 0; r < ROWS; r += 4)
                *(float4 *)&a_part[(i + 1) % 2][r] =
                    *(const float4 *)&now->a[next][y + r / 4 * GROUP_M];
#pragma unroll
            for (int s = 0; s < COLS; s += 4)
                *(float4 *)&b_part[(i + 1) % 2][s] =
                    *(const float4 *)&now->b[next][x + s / 4 * GROUP_N];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int s = 0; s < COLS; s++)
                    sum[r][s] += a_part[i % 2][r] * b_part[i % 2][s];
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int s = 0; s < COLS; s += 4) {
            int row = row0 + y + r / 4 * GROUP_M + r % 4, col = col0 + x + s / 4 * GROUP_N;
            float *to = c + (size_t)row * n + col;
            if (row < m && col < n && n % 4 == 0)
                *(float4 *)to = make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]);
            else
                for (int i = 0; i < 4; i++)
                    if (row < m && col + i < n)
                        to[i] = sum[r][s + i];
        }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    CUDA_CHECK(
        cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
    matmul<<<grid, THREADS, SHARED_BYTES>>>(m, n, k, a, b, c);
}

} // namespace rung_8
