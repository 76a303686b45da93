// chains.h - latency: chains of dependent loads, one in each memory. Part of memory_hierarchy.
//
// A chain holds just what its load instruction needs as the next address: a pointer in device
// memory, a byte offset in shared, local and constant memory, an index in a texture. Then no
// arithmetic stands between two loads, and the time of a step is the latency of the memory alone.
#ifndef MEMORY_HIERARCHY_CHAINS_H
#define MEMORY_HIERARCHY_CHAINS_H

#include "../common/lesson.h"

enum {
    CHAIN_WORDS = 512,     // of the chains in shared, local, constant memory and the texture: 2 KiB
    CHAIN_LINE = 128,      // bytes between two nodes in device memory: one cache line each
    L1_AT_MOST = 512 << 10 // bytes: no SM has a larger L1
};

struct chase_state {
    unsigned long long at; // where the next load reads: a launch goes on where the last one stopped
    long long cycles;      // that the timed loads took
};

// `warm` loads that only fill the cache, then `steps` timed ones; `load` reads through `at`.
#define CHASE(state, warm, steps, at, load)                                                        \
    do {                                                                                           \
        for (int i_ = 0; i_ < (warm); i_++)                                                        \
            at = (load);                                                                           \
        long long start_ = clock64();                                                              \
        _Pragma("unroll 32") for (int i_ = 0; i_ < (steps); i_++) at = (load);                     \
        long long end_ = clock64();                                                                \
        if (threadIdx.x == 0) {                                                                    \
            (state)->at = (unsigned long long)at;                                                  \
            (state)->cycles = end_ - start_;                                                       \
        }                                                                                          \
    } while (0)

#define WORD_AT(table, byte) (*(const unsigned *)((const char *)(table) + (byte)))

// No load: a register's latency is that of the instruction which uses it.
__global__ void chase_register(int warm, int steps, float a, float b, struct chase_state *state)
{
    float at = (float)state->at;
    CHASE(state, warm, steps, at, at * a + b);
}

__global__ void chase_shared(int warm, int steps, const unsigned *chain, struct chase_state *state)
{
    __shared__ unsigned table[CHAIN_WORDS];
    for (int i = 0; i < CHAIN_WORDS; i++)
        table[i] = chain[i];
    unsigned at = (unsigned)state->at;
    CHASE(state, warm, steps, at, WORD_AT(table, at));
}

// The compiler cannot keep an array in registers when its index is known only at run time.
__global__ void chase_local(int warm, int steps, const unsigned *chain, struct chase_state *state)
{
    unsigned table[CHAIN_WORDS];
    for (int i = 0; i < CHAIN_WORDS; i++)
        table[i] = chain[i];
    unsigned at = (unsigned)state->at;
    CHASE(state, warm, steps, at, WORD_AT(table, at));
}

__constant__ unsigned constant_chain[CHAIN_WORDS];

// spread 0: the 32 lanes read the same word; 1: 32 different words in every step.
__global__ void chase_constant(int warm, int steps, int spread, struct chase_state *state)
{
    unsigned at = (unsigned)state->at + threadIdx.x * spread * (unsigned)sizeof(unsigned);
    CHASE(state, warm, steps, at, WORD_AT(constant_chain, at));
}

__global__ void chase_texture(int warm, int steps, cudaTextureObject_t texture,
                              struct chase_state *state)
{
    int at = (int)state->at;
    CHASE(state, warm, steps, at, tex1Dfetch<int>(texture, at));
}

// __ldg, as any load of read-only data, may hit in L1. __ldcg goes past L1, to L2 and beyond.
__global__ void chase_l1(int warm, int steps, struct chase_state *state)
{
    unsigned long long at = state->at;
    CHASE(state, warm, steps, at, __ldg((const unsigned long long *)at));
}

__global__ void chase_l2(int warm, int steps, struct chase_state *state)
{
    unsigned long long at = state->at;
    CHASE(state, warm, steps, at, __ldcg((const unsigned long long *)at));
}

// ---- the host's side

static struct chase_state *d_state;

static void chase_start(unsigned long long at)
{
    struct chase_state start = {at, 0};
    if (!d_state)
        CUDA_CHECK(cudaMalloc(&d_state, sizeof(*d_state)));
    CUDA_CHECK(cudaMemcpy(d_state, &start, sizeof(start), cudaMemcpyHostToDevice));
}

static struct chase_state chase_result(void)
{
    struct chase_state state;
    CUDA_CHECK(cudaMemcpy(&state, d_state, sizeof(state), cudaMemcpyDeviceToHost));
    return state;
}

// Repeats a launch and takes the median of the cycles a step took: MEASURE_CHASE(cycles, steps)
// { kernel<<<...>>>(...); }. Each repetition goes on along the chain.
struct chase_loop {
    double *result, samples[TIMER_MAX_REPS];
    int runs, steps;
};

static int chase_next(struct chase_loop *loop)
{
    if (loop->runs > 0) {
        CUDA_CHECK_LAUNCH();
        loop->samples[loop->runs - 1] = (double)chase_result().cycles / loop->steps;
    }
    if (loop->runs++ < common_options.reps)
        return 1;
    *loop->result = timing_of(loop->samples, common_options.reps).median_ms;
    return 0;
}

#define MEASURE_CHASE(cycles, steps)                                                               \
    for (struct chase_loop loop_ = {&(cycles), {0}, 0, steps}; chase_next(&loop_);)

// A random cyclic permutation of `count` entries, in windows of `window`: all entries of one window
// in random order, then the next window. Random, so that nothing can be fetched ahead; in windows,
// so that the translation of addresses (the TLB) is not measured along with the memory.
static void make_ring(size_t *next, size_t count, size_t window)
{
    uint64_t random = 1;
    size_t *order = (size_t *)host_malloc(count * sizeof(size_t));
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t first = 0; first < count; first += window) {
        size_t length = count - first < window ? count - first : window;
        for (size_t i = length - 1; i > 0; i--) { // Fisher and Yates
            size_t j = first + random_next(&random) % (i + 1), t = order[first + i];
            order[first + i] = order[j];
            order[j] = t;
        }
    }
    for (size_t i = 0; i < count; i++)
        next[order[i]] = order[(i + 1) % count];
    free(order);
}

static size_t walk_ring(const size_t *next, size_t at, size_t steps)
{
    for (size_t i = 0; i < steps; i++)
        at = next[at];
    return at;
}

static void check_chain(const char *what, unsigned long long expected)
{
    unsigned long long at = chase_result().at;
    check_that(at == expected, "%s: the chain ends at %llu, expected %llu", what, at, expected);
}

// How a chain in device memory, or in mapped host memory, is walked.
struct walk {
    const char *what;
    size_t bytes, window; // of the chain; within which it jumps about
    int steps;            // timed loads of one launch
    int through_l1;       // may a load hit in L1?
};

// Fills h_memory with the chain as the device sees it at d_memory, copies it there unless the two
// are the same memory, and walks along it. Returns the cycles of a step.
static double chase_memory(struct walk w, void *d_memory, char *h_memory)
{
    size_t count = w.bytes / CHAIN_LINE, *next = (size_t *)host_malloc(count * sizeof(size_t));
    unsigned long long base = (unsigned long long)(uintptr_t)d_memory;
    make_ring(next, count, w.window / CHAIN_LINE);
    for (size_t i = 0; i < count; i++)
        *(unsigned long long *)(h_memory + i * CHAIN_LINE) = base + next[i] * CHAIN_LINE;
    if (h_memory != d_memory)
        CUDA_CHECK(cudaMemcpy(d_memory, h_memory, count * CHAIN_LINE, cudaMemcpyDefault));

    // L1 is empty at the start of a kernel: a chain that may fit is walked along in each launch. L2
    // keeps its data: once is enough. A chain far longer than L2 needs nothing: each launch goes on
    // where the last one stopped, at lines that no cache holds.
    int each = w.through_l1 && w.bytes <= L1_AT_MOST ? (int)count : 0;
    int on_device = h_memory != d_memory, fits = w.bytes <= 2 * device_facts.l2_bytes;
    int once = on_device && !each && fits ? (int)count : 0;
    double cycles = 0;
    chase_start(base);
    chase_l2<<<1, 1>>>(once, 0, d_state);
    CUDA_CHECK_LAUNCH();
    MEASURE_CHASE(cycles, w.steps)
    {
        if (w.through_l1)
            chase_l1<<<1, 1>>>(each, w.steps, d_state);
        else
            chase_l2<<<1, 1>>>(each, w.steps, d_state);
    }
    size_t total = (size_t)once + (size_t)common_options.reps * (size_t)(each + w.steps);
    check_chain(w.what, base + walk_ring(next, 0, total % count) * CHAIN_LINE);
    free(next);
    return cycles;
}

static double chase_device(struct walk w)
{
    char *h_memory = (char *)host_malloc(w.bytes);
    void *d_memory;
    CUDA_CHECK(cudaMalloc(&d_memory, w.bytes));
    double cycles = chase_memory(w, d_memory, h_memory);
    CUDA_CHECK(cudaFree(d_memory));
    free(h_memory);
    return cycles;
}

#endif
