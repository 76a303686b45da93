// streams.h - bandwidth: the whole GPU reads from one memory. Part of memory_hierarchy.
//
// Each kernel adds up what it reads, modulo 2^32, so that the compiler cannot leave a load out and
// the host can check the sum. Loads are 16 bytes wide where the memory allows it, and unrolled, so
// that many are under way at once.
#ifndef MEMORY_HIERARCHY_STREAMS_H
#define MEMORY_HIERARCHY_STREAMS_H

#include "chains.h"

enum {
    TABLE_QUADS = 1024,  // of 16 bytes: the 16 KiB that the on-chip kernels read again and again
    LOCAL_WORDS = 64,    // private to each thread
    LOCAL_BLOCKS_SM = 2, // x 256 threads x 64 words: 128 KiB, which L1 can hold
    STREAM_BLOCK = 256,
    GLOBAL_BLOCK = 512, // of stream_global, with
    GLOBAL_LOADS = 4    // ... loads a thread
};

__device__ unsigned add_quad(uint4 v)
{
    return v.x + v.y + v.z + v.w;
}

__device__ size_t global_thread(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// Four independent multiply-adds: each reads three registers and writes one.
__global__ void stream_register(int passes, float a, float b, unsigned *sums)
{
    float v0 = threadIdx.x, v1 = v0 + 1, v2 = v0 + 2, v3 = v0 + 3;
#pragma unroll 16
    for (int i = 0; i < passes; i++) {
        v0 = v0 * a + b;
        v1 = v1 * a + b;
        v2 = v2 * a + b;
        v3 = v3 * a + b;
    }
    sums[global_thread()] = (unsigned)(v0 + v1 + v2 + v3);
}

__global__ void stream_shared(int passes, const uint4 *data, unsigned *sums)
{
    __shared__ uint4 table[TABLE_QUADS];
    for (int i = threadIdx.x; i < TABLE_QUADS; i += blockDim.x)
        table[i] = data[i];
    __syncthreads(); // all threads read what each has written
    unsigned sum = 0;
    for (int pass = 0; pass < passes; pass++)
#pragma unroll 4
        for (int i = 0; i < TABLE_QUADS; i++)
            sum += add_quad(table[(threadIdx.x + i) % TABLE_QUADS]);
    sums[global_thread()] = sum;
}

__global__ void stream_l1(int passes, const uint4 *data, unsigned *sums)
{
    unsigned sum = 0;
    for (int pass = 0; pass < passes; pass++)
#pragma unroll 4
        for (int i = 0; i < TABLE_QUADS; i++)
            sum += add_quad(__ldg(&data[(threadIdx.x + i) % TABLE_QUADS]));
    sums[global_thread()] = sum;
}

__global__ void stream_texture(int passes, cudaTextureObject_t texture, unsigned *sums)
{
    unsigned sum = 0;
    for (int pass = 0; pass < passes; pass++)
#pragma unroll 4
        for (int i = 0; i < TABLE_QUADS; i++)
            sum += add_quad(tex1Dfetch<uint4>(texture, (int)((threadIdx.x + i) % TABLE_QUADS)));
    sums[global_thread()] = sum;
}

__global__ void stream_local(int passes, const unsigned *data, unsigned *sums)
{
    unsigned table[LOCAL_WORDS], sum = 0;
    for (int i = 0; i < LOCAL_WORDS; i++)
        table[i] = data[i];
    for (int pass = 0; pass < passes; pass++)
#pragma unroll 8
        for (unsigned i = 0; i < LOCAL_WORDS; i++) // an index known only at run time
            sum += table[(i + (unsigned)passes) % LOCAL_WORDS];
    sums[global_thread()] = sum;
}

// spread 0: a warp reads one word in each step; 1: 32 different ones.
__global__ void stream_constant(int passes, int spread, unsigned *sums)
{
    unsigned first = threadIdx.x % 32 * spread, sum = 0;
    for (int pass = 0; pass < passes; pass++)
#pragma unroll 16
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            sum += constant_chain[(first + i) % CHAIN_WORDS];
    sums[global_thread()] = sum;
}

// The whole grid walks over the data `passes` times, past L1: small enough data stay in L2.
__global__ void stream_l2(int passes, size_t quads, const uint4 *data, unsigned *sums)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int pass = 0; pass < passes; pass++)
        for (size_t i = global_thread(); i < quads; i += step)
            sum += add_quad(__ldcg(&data[i]));
    sums[global_thread()] = sum;
}

// Device memory: each block reads one piece once and ends, so that the pieces follow each other in
// the order of the addresses. Four loads under way in each thread; __ldcs: will not be read again.
__global__ void stream_global(size_t quads, const uint4 *data, unsigned *sums)
{
    size_t first = (size_t)blockIdx.x * GLOBAL_BLOCK * GLOBAL_LOADS + threadIdx.x;
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < GLOBAL_LOADS; k++)
        if (first + k * GLOBAL_BLOCK < quads)
            sum += add_quad(__ldcs(&data[first + k * GLOBAL_BLOCK]));
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance); // lane 0 gets the sum of the warp
    if (threadIdx.x % 32 == 0)
        sums[global_thread() / 32] = sum; // one a warp: writing 4 bytes a thread would cost 6 %
}

// ---- the host's side

static struct {
    unsigned *h_data, *d_data; // the same words on both sides
    size_t words;
    unsigned *h_sums, *d_sums;
    size_t threads; // of one launch of `grid` blocks
    unsigned grid, global_grid;
    size_t global_warps; // of a launch of stream_global
} stream;

// The sum of the first `words` words, modulo 2^32.
static unsigned sum_words(const unsigned *data, size_t words)
{
    unsigned sum = 0;
    for (size_t i = 0; i < words; i++)
        sum += data[i];
    return sum;
}

static void stream_setup(size_t words)
{
    int threads_sm = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    int blocks_sm = (int)default_size((size_t)threads_sm / STREAM_BLOCK, LOCAL_BLOCKS_SM);
    stream.grid = (unsigned)(device_facts.sm_count * blocks_sm);
    stream.threads = (size_t)stream.grid * STREAM_BLOCK;
    stream.words = words;
    size_t piece = (size_t)GLOBAL_BLOCK * GLOBAL_LOADS * 4;
    stream.global_grid = (unsigned)((words + piece - 1) / piece);
    stream.global_warps = (size_t)stream.global_grid * GLOBAL_BLOCK / 32;
    size_t most = stream.threads > stream.global_warps ? stream.threads : stream.global_warps;
    stream.h_data = (unsigned *)host_malloc(words * sizeof(unsigned));
    stream.h_sums = (unsigned *)host_malloc(most * sizeof(unsigned));
    CUDA_CHECK(cudaMalloc(&stream.d_data, words * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&stream.d_sums, most * sizeof(unsigned)));
    POISON_DEVICE(stream.d_sums, most * sizeof(unsigned));
    for (size_t i = 0; i < words; i++)
        stream.h_data[i] = (unsigned)i * 2654435761u; // Knuth's multiplicative hash: all bits vary
    CUDA_CHECK(
        cudaMemcpy(stream.d_data, stream.h_data, words * sizeof(unsigned), cudaMemcpyHostToDevice));
}

static void stream_free(void)
{
    CUDA_CHECK(cudaFree(stream.d_data));
    CUDA_CHECK(cudaFree(stream.d_sums));
    free(stream.h_data);
    free(stream.h_sums);
}

// After a launch that left `count` sums: compares the sum of them all with
// `expected`, and gives the GB/s of `bytes` in the time t. Poisons the sums for the next kernel.
static double stream_rate(const char *what, struct timing t, double bytes, size_t count,
                          unsigned expected)
{
    size_t size = count * sizeof(unsigned);
    CUDA_CHECK(cudaMemcpy(stream.h_sums, stream.d_sums, size, cudaMemcpyDeviceToHost));
    POISON_DEVICE(stream.d_sums, size);
    unsigned sum = sum_words(stream.h_sums, count);
    check_that(sum == expected, "%s: the sum is %u, expected %u", what, sum, expected);
    return bytes / (t.median_ms * 1e-3) / 1e9;
}

#endif
