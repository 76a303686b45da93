// Rung 8: the shape that fits the machine. The idea is rung 7's; what changed is who does how much.
//
//        A              B                 C             one block: 128 x 256 results, 8 warps
//     +------+    +-----------+     +--+--+--+--+
//     | 128  |    | 256 wide  |     |w0|w1|w2|w3|       one warp: 64 x 64 of them. Its lanes stand
//     | x 16 |    | 16 deep   |     +--+--+--+--+       8 down and 4 across; lane (y, x) owns rows
//     |      |    +-----------+     |w4|w5|w6|w7|       y*4 + 0..3 and again 32 further down, and
//     +------+                      +--+--+--+--+       columns x*4 + 0..3, again every 16 columns:
//                                                       8 x 16 results in 128 registers
//     columns of lane x in a warp: |0000|1111|2222|3333|0000|1111|...
//
// - 24 floats from shared memory serve 128 multiply-adds (rung 7: 16 serve 64).
// - The floats of step i + 1 are read while step i computes, also across the border between two tiles:
//   no multiply-add waits for shared memory.
// - B goes straight to shared memory; A passes through registers, which turn it (store_a). Three
//   stages: the copies of a tile have the time of two tiles.
// - More than 200 registers a thread, one block an SM, 12.5 % occupancy. That is enough: not other
//   warps hide the latency here, but the 128 independent multiply-adds of this one.
#ifndef MATMUL_8_TUNED_CUH // rung 9 includes it too
#define MATMUL_8_TUNED_CUH

#include "matmul.cuh"
#include <cuda_pipeline.h>

namespace rung_8
{

enum { TILE_M = 128, TILE_N = 256, TILE_K = 16, STAGES = 3 };
enum { WARP_M = 64, WARP_N = 64, WARPS_X = TILE_N / WARP_N, WARPS = TILE_M / WARP_M * WARPS_X };
enum { LANES_Y = 8, LANES_X = 4, THREADS = WARPS * LANES_Y * LANES_X };
enum { ROWS = WARP_M / LANES_Y, COLS = WARP_N / LANES_X }; // results a thread: 8 x 16
enum { GROUP_M = 4 * LANES_Y, GROUP_N = 4 * LANES_X };     // from one group of four to the next
enum { A_PITCH = TILE_M + 4 };                             // as in rung 6
enum { A_SPAN = 8, A_LOADS = TILE_K / A_SPAN }; // two threads a row of A, 4 + 4 floats at a time
enum { B_ROW = TILE_N / 4, B_STEP = THREADS / B_ROW }; // threads a row of B, rows at a time
enum { HALF = TILE_K / 2 };                            // steps unrolled: the loop fits the cache

struct tiles {
    float a[TILE_K][A_PITCH], b[TILE_K][TILE_N]; // a is stored transposed
};
enum { SHARED_BYTES = STAGES * sizeof(struct tiles) };

// Begins to load the next tiles, A into registers, B on its way into shared memory, and moves a and b on.
static __device__ __forceinline__ void fetch(float4 *a_next, struct tiles *to, const float **a,
                                             const float **b, int n)
{
    int y = threadIdx.x / B_ROW, x = threadIdx.x % B_ROW * 4;
#pragma unroll
    for (int e = 0; e < A_LOADS; e++)
        a_next[e] = *(const float4 *)(*a + e * A_SPAN);
#pragma unroll
    for (int e = 0; e < TILE_K; e += B_STEP)
        __pipeline_memcpy_async(&to->b[y + e][x], *b + (size_t)e * n, 16);
    *a += TILE_K;
    *b += (size_t)TILE_K * n;
}

// Four k of a row of A become four rows of the tile.
static __device__ __forceinline__ void store_a(struct tiles *to, const float4 *a_next)
{
    int row = threadIdx.x / 2, k = threadIdx.x % 2 * 4;
#pragma unroll
    for (int e = 0; e < A_LOADS; e++) {
        to->a[k + e * A_SPAN + 0][row] = a_next[e].x;
        to->a[k + e * A_SPAN + 1][row] = a_next[e].y;
        to->a[k + e * A_SPAN + 2][row] = a_next[e].z;
        to->a[k + e * A_SPAN + 3][row] = a_next[e].w;
    }
}

// What a thread needs for one step: ROWS floats of A and COLS of B.
static __device__ __forceinline__ void read_parts(float *a_part, float *b_part, const float *a_at,
                                                  const float *b_at)
{
#pragma unroll
    for (int r = 0; r < ROWS; r += 4)
        *(float4 *)&a_part[r] = *(const float4 *)(a_at + r / 4 * GROUP_M);
#pragma unroll
    for (int s = 0; s < COLS; s += 4)
        *(float4 *)&b_part[s] = *(const float4 *)(b_at + s / 4 * GROUP_N);
}

// A thread's sums, and the operands of the step it computes and of the one after.
struct registers {
    float sum[ROWS][COLS], a_part[2][ROWS], b_part[2][COLS];
    float4 a_next[A_LOADS];   // on the way from global memory to stage `to`
    const float *a_at, *b_at; // where this thread reads its operands
    int y, x;                 // its first row and column in the tile
};

static __device__ __forceinline__ void begin(struct registers *my, struct tiles *stages)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    my->y = warp / WARPS_X * WARP_M + lane / LANES_X * 4;
    my->x = warp % WARPS_X * WARP_N + lane % LANES_X * 4;
    __pipeline_wait_prior(STAGES - 2); // my part of the first tiles is there
    __syncthreads();                   // everyone's is
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int s = 0; s < COLS; s++)
            my->sum[r][s] = 0;
    my->a_at = &stages[0].a[0][my->y];
    my->b_at = &stages[0].b[0][my->x];
    read_parts(my->a_part[0], my->b_part[0], my->a_at, my->b_at);
}

// Multiplies the tiles of one stage. On the way it puts the A that was fetched meanwhile into stage
// `to`, and before its last step it waits for the stage `after` this one, to read from there already.
static __device__ __forceinline__ void multiply(struct registers *my, struct tiles *to,
                                                struct tiles *after)
{
#pragma unroll 1
    for (int half = 0; half < TILE_K; half += HALF) {
        if (half + HALF == TILE_K) // late: by now the loads have arrived
            store_a(to, my->a_next);
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            if (i == HALF - 1 && half + HALF == TILE_K) {
                __pipeline_wait_prior(STAGES - 2); // my part of the next tiles is there
                __syncthreads();                   // everyone's is, and nobody reads the old ones
                my->a_at = &after->a[0][my->y] - HALF * A_PITCH;
                my->b_at = &after->b[0][my->x] - HALF * TILE_N;
            }
            read_parts(my->a_part[(i + 1) % 2], my->b_part[(i + 1) % 2],
                       my->a_at + (i + 1) * A_PITCH, my->b_at + (i + 1) * TILE_N);
#pragma unroll
            for (int s = 0; s < COLS; s++) // down and up: neighbours share an operand
#pragma unroll
                for (int j = 0; j < ROWS; j++) {
                    const int r = s % 2 ? ROWS - 1 - j : j;
                    my->sum[r][s] += my->a_part[i % 2][r] * my->b_part[i % 2][s];
                }
        }
        my->a_at += HALF * A_PITCH;
        my->b_at += HALF * TILE_N;
    }
}

// Writes the sums of the tile at row0, col0 to C, or adds them to what is there; then they are 0.
static __device__ __forceinline__ void write_c(struct registers *my, float *c, int rows, int cols,
                                               int row0, int col0, bool add)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int s = 0; s < COLS; s += 4) {
            int row = row0 + my->y + r / 4 * GROUP_M + r % 4;
            int col = col0 + my->x + s / 4 * GROUP_N;
            write_four(c, rows, cols, row, col, &my->sum[r][s], add);
#pragma unroll
            for (int i = 0; i < 4; i++)
                my->sum[r][s + i] = 0;
        }
}

// A, B: whole tiles, n and k columns wide. C: any size.
__global__ void __launch_bounds__(THREADS, 1)
    matmul(int n, int k, const float *a, const float *b, int c_rows, int c_cols, float *c)
{
    extern __shared__ float4 shared[]; // float4: on a 16-byte boundary
    struct tiles *stages = (struct tiles *)shared;
    struct registers my;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;      // of the tile
    a += (size_t)(row0 + threadIdx.x / 2) * k + threadIdx.x % 2 * 4; // what this thread loads first
    b += (size_t)(threadIdx.x / B_ROW) * n + col0 + threadIdx.x % B_ROW * 4;
    int steps = k / TILE_K, fetched = 0, now = 0;
#pragma unroll
    for (int to = 0; to < STAGES - 1; to++) {
        if (fetched < steps) {
            fetch(my.a_next, &stages[to], &a, &b, n);
            fetched++;
            store_a(&stages[to], my.a_next);
        }
        __pipeline_commit(); // also when empty, so that the number of a batch tells its tile
    }
    begin(&my, stages);
    for (int step = 0, to = STAGES - 1; step < steps; step++) {
        if (fetched < steps) {
            fetch(my.a_next, &stages[to], &a, &b, n);
            fetched++;
        }
        __pipeline_commit();
        now = now + 1 == STAGES ? 0 : now + 1;
        multiply(&my, &stages[to], &stages[now]);
        to = to + 1 == STAGES ? 0 : to + 1;
    }
    write_c(&my, c, c_rows, c_cols, row0, col0, false);
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    int tiles_m = round_up(m, TILE_M), tiles_n = round_up(n, TILE_N), tiles_k = round_up(k, TILE_K);
    const float *whole_a = whole_tiles(a, m, k, k, tiles_m, tiles_k);
    const float *whole_b = whole_tiles(b, k, n, n, tiles_k, tiles_n);
    dim3 grid(tiles_n / TILE_N, tiles_m / TILE_M);
    allow_shared((const void *)matmul, SHARED_BYTES);
    matmul<<<grid, THREADS, SHARED_BYTES>>>(tiles_n, tiles_k, whole_a, whole_b, m, n, c);
    CUDA_CHECK_LAUNCH();
    give_back(whole_a, a);
    give_back(whole_b, b);
}

} // namespace rung_8

#endif
