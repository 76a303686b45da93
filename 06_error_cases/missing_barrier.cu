// missing_barrier: threads that read what others write, with no barrier or the wrong one between.
// What finds these is compute-sanitizer (racecheck, synccheck) or the CPU backend's checks.
//
// Predict before you run it: the lanes of one warp exchange values through shared memory, without
// __syncwarp(). They run in lockstep - or do they?
//
// usage: missing_barrier [CASE] [--fixed]
//        compute-sanitizer --tool racecheck ./missing_barrier CASE
#include "twins.h"

// Every thread waits about this many clock ticks at most: long enough to make an order certain.
enum { DELAY_TICKS = 200000 };

__device__ void wait_a_while(void)
{
    long long start = clock64();
    while (clock64() - start < DELAY_TICKS)
        ;
}

enum { BLOCK = 256, LANES = 32 };

// ---- missing_syncthreads
// Each thread writes its slot, then reads that of the thread one warp further on. Warp 0 is slow.
__global__ void pass_to_neighbour_warp(int *out, int with_barrier)
{
    __shared__ int slot[BLOCK];
    slot[threadIdx.x] = -1;
    __syncthreads();
    if (threadIdx.x < warpSize)
        wait_a_while();
    slot[threadIdx.x] = threadIdx.x;
    if (with_barrier) // the same answer in every thread of the block, so all or none arrive here
        __syncthreads();
    out[threadIdx.x] = slot[(threadIdx.x + warpSize) % BLOCK];
}

static int stale_values(int with_barrier)
{
    int *d_out, h_out[BLOCK], stale = 0;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(h_out)));
    pass_to_neighbour_warp<<<1, BLOCK>>>(d_out, with_barrier);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++)
        stale += h_out[i] != (i + 32) % BLOCK;
    CUDA_CHECK(cudaFree(d_out));
    return stale;
}

static void missing_syncthreads_broken(void)
{
    int stale = stale_values(0);
    SYMPTOM(stale > 0, "%d of %d threads read a slot before it was written", stale, BLOCK);
}

static void missing_syncthreads_fixed(void)
{
    check_that(stale_values(1) == 0, "stale values in spite of the barrier");
}

// ---- divergent_barrier
// A barrier in each branch: no thread meets the barrier of the other half. The hardware counts
// arrivals and not places, so this one ends. The same with branches within a warp hung on an H200.
__global__ void barrier_in_branch(int *out)
{
    __shared__ int slot[BLOCK];
    int half = BLOCK / 2, i = threadIdx.x;
    slot[i] = i;
    if (i < half) {
        __syncthreads();
        out[i] = slot[i + half];
    } else {
        wait_a_while();
        __syncthreads();
        out[i] = -slot[i - half];
    }
}

__global__ void barrier_for_all(int *out)
{
    __shared__ int slot[BLOCK];
    int half = BLOCK / 2, i = threadIdx.x;
    slot[i] = i;
    if (i >= half)
        wait_a_while();
    __syncthreads(); // outside of the branch: one barrier, and every thread of the block arrives
    out[i] = i < half ? slot[i + half] : -slot[i - half];
}

static void divergent_barrier_broken(void)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, BLOCK * sizeof(int)));
    barrier_in_branch<<<1, BLOCK>>>(d_out);
    STEP(cudaGetLastError());
    RESULT(cudaDeviceSynchronize());
}

static void divergent_barrier_fixed(void)
{
    int *d_out, h_out[BLOCK], wrong = 0;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(h_out)));
    CUDA_CHECK(cudaMemset(d_out, 0, sizeof(h_out)));
    barrier_for_all<<<1, BLOCK>>>(d_out);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++)
        wrong += h_out[i] != (i < BLOCK / 2 ? i + BLOCK / 2 : BLOCK / 2 - i);
    check_that(wrong == 0, "%d values are wrong", wrong);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- missing_syncwarp
// The halves of a warp take different branches; each writes its slots and reads the other half's.
// Since sm_70 each thread has its own program counter: the halves run one after the other, in an
// order that nobody promises. Whichever comes first reads slots that are not written yet.
__global__ void swap_halves(int *out, int with_syncwarp)
{
    __shared__ int slot[LANES];
    int lane = threadIdx.x, half = LANES / 2;
    slot[lane] = -1;
    __syncwarp();
    if (lane < half) {
        wait_a_while();
        slot[lane] = 100 + lane;
        if (!with_syncwarp)
            out[lane] = slot[lane + half];
    } else {
        wait_a_while();
        slot[lane] = 200 + lane;
        if (!with_syncwarp)
            out[lane] = slot[lane - half];
    }
    __syncwarp(); // the halves meet, and see each other's writes
    if (with_syncwarp)
        out[lane] = slot[(lane + half) % LANES];
}

static int stale_lanes(int with_syncwarp)
{
    int *d_out, h_out[LANES], stale = 0;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(h_out)));
    swap_halves<<<1, LANES>>>(d_out, with_syncwarp);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < LANES; i++) {
        int from = (i + LANES / 2) % LANES;
        stale += h_out[i] != (from < LANES / 2 ? 100 : 200) + from;
    }
    CUDA_CHECK(cudaFree(d_out));
    return stale;
}

static void missing_syncwarp_broken(void)
{
    int stale = stale_lanes(0);
    SYMPTOM(stale > 0, "%d of %d lanes read a slot before it was written", stale, LANES);
}

static void missing_syncwarp_fixed(void)
{
    check_that(stale_lanes(1) == 0, "stale values in spite of __syncwarp");
}

static const struct twin twins[] = {
    TWIN(missing_syncthreads),
    TWIN(divergent_barrier),
    TWIN(missing_syncwarp),
};

TWINS_MAIN("06_error_cases/missing_barrier", "reading what others write, without waiting", twins)
