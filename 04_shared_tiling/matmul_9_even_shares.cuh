// Rung 9: every SM gets the same amount of work. 4096 x 4352 results are 544 tiles; dealt to 132 SMs
// they take five rounds, and in the fifth 116 SMs have nothing to do: 18 % of the machine.
//
// So there are as many blocks as fit, and each works until nothing is left. Tiles that do not fill a
// round, and those of one full round more, are cut; not across C, but along k:
//
//     the cut tiles   |  tile 0  |  tile 1  |  tile 2  | ...      steps of TILE_K in a row
//     the shares      | share 0 | share 1 | share 2 | sh ...      one a block, all alike
//
// Tile 1 is then summed by two blocks or three. The one with its end (the last k) leaves its sum in C;
// the one before waits for that and adds its own. The order is fixed, hence also the result: no
// atomics, no further memory, the same bits every time. Published as "stream-K" (Osama et al., 2023).
//
// Tile, threads, fetch, multiply and write_c are those of rung 8; new is who computes which part. Where
// cutting would not pay (128 tiles on 132 SMs), rung 8 does it. And for 4097 columns there is no tile
// with one useful column: edge_columns() sums the last few by themselves.
#include "matmul_8_tuned.cuh"

namespace rung_9
{

using namespace rung_8;

enum { MAX_BLOCKS = 1024 };
enum { PATCH_STEPS = 8 }; // so many steps take as long as adding two parts of a tile in C

// For each cut tile: from which step on its sum is in C. 0 before the launch, and again after it.
static __device__ int summed_from[2 * MAX_BLOCKS];

struct plan {
    int tiles_x, tiles, steps; // tiles in a row of C and in all, steps for one tile
    int cut, begin, end;       // tiles 0 .. cut - 1 are cut; my share of all their steps
};

struct piece {
    int tile, first, last; // steps first .. last - 1 of a tile
};

// Are the steps that nobody would do, if whole tiles were dealt in rounds, worth the adding?
static bool worth_cutting(int tiles, int steps, int blocks)
{
    long long idle = ((long long)divide_up(tiles, blocks) * blocks - tiles) * steps;
    return idle > (long long)PATCH_STEPS * blocks;
}

static __device__ __forceinline__ struct plan make_plan(int m, int n, int k)
{
    int blocks = gridDim.x, tiles = m / TILE_M * (n / TILE_N), rounds = divide_up(tiles, blocks);
    struct plan p = {n / TILE_N, tiles, k / TILE_K, 0, 0, 0};
    p.cut = rounds > 1 ? tiles - (rounds - 2) * blocks : tiles;
    // Shares are numbered against the blocks: who waits, waits for a block with a lower number
    long long all = (long long)p.cut * p.steps, shares = min((long long)blocks, all / PATCH_STEPS);
    long long share = shares - 1 - blockIdx.x;
    if (share >= 0) {
        p.begin = (int)(all * share / shares);
        p.end = (int)(all * (share + 1) / shares);
    }
    return p;
}

static __device__ __forceinline__ struct piece piece_at(const struct plan *p, int tile, int first)
{
    int last = tile < p->cut ? min(p->steps, p->end - tile * p->steps) : p->steps;
    struct piece at = {tile, first, last};
    return at;
}

// First the tiles of my share, then whole ones in turn; none is left when piece.tile >= plan.tiles.
static __device__ __forceinline__ struct piece next_piece(const struct plan *p, int tile)
{
    if (tile >= p->cut)
        tile += gridDim.x;
    else if (++tile * p->steps >= p->end)
        tile = p->cut + blockIdx.x;
    return piece_at(p, tile, 0);
}

// A step of `load` is fetched, and a and b stand at the next; after its last one, at the next piece.
static __device__ __forceinline__ void move_on(const struct plan *p, struct piece *load,
                                               const float *a0, const float *b0, int k,
                                               const float **a, const float **b)
{
    if (++load->first == load->last) {
        *load = next_piece(p, load->tile);
        *a = a0 + (size_t)(load->tile / p->tiles_x * TILE_M) * k;
        *b = b0 + load->tile % p->tiles_x * TILE_N;
    }
}

// A, B: whole tiles, m x k and k x n. C: any size.
__global__ void __launch_bounds__(THREADS, 1)
    matmul(int m, int n, int k, const float *a0, const float *b0, int c_rows, int c_cols, float *c)
{
    extern __shared__ float4 shared[];
    struct tiles *stages = (struct tiles *)shared;
    struct registers my;
    struct plan p = make_plan(m, n, k);
    struct piece at = p.begin < p.end ? piece_at(&p, p.begin / p.steps, p.begin % p.steps)
                                      : piece_at(&p, p.cut + blockIdx.x, 0);
    if (at.tile >= p.tiles)
        return;
    struct piece load = at; // runs ahead of `at`, across pieces: nobody waits between two tiles
    int now = 0, to = STAGES - 1;
    a0 += (size_t)(threadIdx.x / 2) * k + threadIdx.x % 2 * 4;
    b0 += (size_t)(threadIdx.x / B_ROW) * n + threadIdx.x % B_ROW * 4;
    const float *a = a0 + (size_t)(at.tile / p.tiles_x * TILE_M) * k + at.first * TILE_K;
    const float *b = b0 + (size_t)at.first * TILE_K * n + at.tile % p.tiles_x * TILE_N;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (load.tile < p.tiles) {
            fetch(my.a_next, &stages[s], &a, &b, n);
            move_on(&p, &load, a0, b0, k, &a, &b);
            store_a(&stages[s], my.a_next);
        }
        __pipeline_commit();
    }
    begin(&my, stages);
    for (; at.tile < p.tiles; at = next_piece(&p, at.tile)) {
        for (int step = at.first; step < at.last; step++) {
            if (load.tile < p.tiles) {
                fetch(my.a_next, &stages[to], &a, &b, n);
                move_on(&p, &load, a0, b0, k, &a, &b);
            }
            __pipeline_commit();
            now = now + 1 == STAGES ? 0 : now + 1;
            multiply(&my, &stages[to], &stages[now]);
            to = to + 1 == STAGES ? 0 : to + 1;
        }
        bool add = at.last < p.steps; // the sum of the steps from at.last on is in C, or will be
        volatile int *flag = &summed_from[at.tile];
        if (add) {
            if (threadIdx.x == 0)
                while (*flag != at.last) {
                }
            __threadfence(); // what the other block wrote before its flag is visible after this
            __syncthreads();
        }
        write_c(&my, c, c_rows, c_cols, at.tile / p.tiles_x * TILE_M, at.tile % p.tiles_x * TILE_N,
                add);
        if (add || at.first > 0) {
            __threadfence(); // first the sums, then the flag that announces them
            __syncthreads();
            if (threadIdx.x == 0)
                *flag = at.first;
        }
    }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    int edge = n > TILE_N && n % TILE_N <= EDGE ? n % TILE_N : 0, inner = n - edge, blocks = 0;
    int tiles_m = round_up(m, TILE_M), tiles_n = round_up(inner, TILE_N);
    int tiles_k = round_up(k, TILE_K);
    dim3 tiles(tiles_n / TILE_N, tiles_m / TILE_M);
    const float *whole_a = whole_tiles(a, m, k, k, tiles_m, tiles_k);
    const float *whole_b = whole_tiles(b, k, inner, n, tiles_k, tiles_n);
    allow_shared((const void *)matmul, SHARED_BYTES);
    allow_shared((const void *)rung_8::matmul, SHARED_BYTES);
    CUDA_CHECK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, matmul, THREADS, SHARED_BYTES));
    blocks *= device_facts.sm_count; // no more than run at once: a block may wait for another
    if (blocks > MAX_BLOCKS)
        blocks = MAX_BLOCKS;
    if (worth_cutting(tiles.x * tiles.y, tiles_k / TILE_K, blocks))
        matmul<<<blocks, THREADS, SHARED_BYTES>>>(tiles_m, tiles_n, tiles_k, whole_a, whole_b, m, n,
                                                  c);
    else
        rung_8::matmul<<<tiles, THREADS, SHARED_BYTES>>>(tiles_n, tiles_k, whole_a, whole_b, m, n,
                                                         c);
    CUDA_CHECK_LAUNCH();
    if (edge) {
        edge_columns<<<divide_up(m, EDGE_ROWS), EDGE_BLOCK>>>(m, n, k, inner, a, b, c);
        CUDA_CHECK_LAUNCH();
    }
    give_back(whole_a, a);
    give_back(whole_b, b);
}

} // namespace rung_9
