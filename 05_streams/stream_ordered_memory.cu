// stream_ordered_memory: temporary memory in a loop. cudaMalloc and cudaFree are calls to the whole
// device; cudaMallocAsync and cudaFreeAsync are operations in a stream, served from a pool.
//
// Predict before you run it: the pool gives memory that nobody uses back to the system at every
// synchronise, unless it is told to keep it. What does that do to a loop with a synchronise in it?
//
// usage: stream_ordered_memory [--n 4M] [--rounds 50]
// sanitizer: --n 64k --rounds 3
#include "../common/lesson.h"

enum { BLOCK = 256, MAX_ROUNDS = 10000 };

__global__ void twice(size_t n, const float *x, float *temporary)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        temporary[i] = 2.0f * x[i];
}

__global__ void add(size_t n, const float *temporary, float *sum)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += temporary[i];
}

struct work {
    size_t n;
    int rounds;
    float *d_x, *d_sum;
    cudaStream_t stream;
};

// sum += 2 * x, through a temporary array that lives for one round only.
static void loop_malloc(const struct work *w)
{
    unsigned grid = (unsigned)((w->n + BLOCK - 1) / BLOCK);
    for (int round = 0; round < w->rounds; round++) {
        float *d_temporary;
        CUDA_CHECK(cudaMalloc(&d_temporary, w->n * sizeof(float)));
        twice<<<grid, BLOCK, 0, w->stream>>>(w->n, w->d_x, d_temporary);
        add<<<grid, BLOCK, 0, w->stream>>>(w->n, d_temporary, w->d_sum);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(cudaFree(d_temporary)); // waits until the kernels have finished
    }
}

static void loop_async(const struct work *w, int synchronise)
{
    unsigned grid = (unsigned)((w->n + BLOCK - 1) / BLOCK);
    for (int round = 0; round < w->rounds; round++) {
        float *d_temporary;
        CUDA_CHECK(cudaMallocAsync((void **)&d_temporary, w->n * sizeof(float), w->stream));
        twice<<<grid, BLOCK, 0, w->stream>>>(w->n, w->d_x, d_temporary);
        add<<<grid, BLOCK, 0, w->stream>>>(w->n, d_temporary, w->d_sum);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(cudaFreeAsync(d_temporary, w->stream)); // takes its turn after the kernels
        if (synchronise) // stands for whatever a real program must wait for in each round
            CUDA_CHECK(cudaStreamSynchronize(w->stream));
    }
}

static int verify_sum(const struct work *w, const char *what, int runs)
{
    float *h_sum = (float *)host_malloc(w->n * sizeof(float));
    CUDA_CHECK(cudaMemcpy(h_sum, w->d_sum, w->n * sizeof(float), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin(what, 0, 0); // whole numbers: exact
    for (size_t i = 0; i < w->n; i++)
        verify_value(&v, i, h_sum[i], 2.0 * (double)(i % 8) * w->rounds * runs);
    free(h_sum);
    return verify_end(&v);
}

static void report_loop(const struct work *w, const char *name, struct timing t, double kept,
                        int ok)
{
    report_extra(round(1e4 * t.median_ms / w->rounds) / 10);
    report_extra(kept);
    report_time(name, t, ok);
}

int main(int argc, char **argv)
{
    struct work w;
    w.n = default_size(4 << 20, 64 << 10);
    w.rounds = 50;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &w.n, 1, MAX_ELEMENTS, "elements of the temporary array"),
        OPTION_INT("rounds", &w.rounds, 1, MAX_ROUNDS, "allocations in one run"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/stream_ordered_memory", "allocate inside a stream",
                 options);
    if (!device_attribute(cudaDevAttrMemoryPoolsSupported))
        lesson_waive("this device has no memory pools (they need driver 470 or newer, and a GPU "
                     "outside a vGPU that forbids them): use cudaMalloc once, before the loop");
    require_device_memory(w.n, 3 * sizeof(float), "--n");
    require_grid(w.n, BLOCK);
    size_t bytes = w.n * sizeof(float);
    float *h_x = (float *)host_malloc(bytes);
    for (size_t i = 0; i < w.n; i++)
        h_x[i] = (float)(i % 8);
    CUDA_CHECK(cudaMalloc(&w.d_x, bytes));
    CUDA_CHECK(cudaMalloc(&w.d_sum, bytes));
    CUDA_CHECK(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMemcpy(w.d_x, h_x, bytes, cudaMemcpyHostToDevice));

    int reps = common_options.reps, runs = reps + 1; // with the warm-up
    struct timing t, loops[4];
    report_table("temporary memory in a loop", "us a round", "kept MiB", NULL);
    CUDA_CHECK(cudaMemset(w.d_sum, 0, bytes));
    MEASURE_HOST (t, reps) {
        loop_malloc(&w);
        CUDA_CHECK_SYNC();
    }
    report_loop(&w, "cudaMalloc, cudaFree", t, 0, verify_sum(&w, "cudaMalloc", runs));

    // The release threshold: how many bytes the pool may keep when nobody uses them.
    const char *const names[] = {"async, synchronise each round", "async, synchronise at the end",
                                 "... each round, pool keeps all",
                                 "... at the end, pool keeps all"};
    cudaMemPool_t pool;
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device_facts.id));
    for (int k = 0; k < 4; k++) {
        uint64_t threshold = k < 2 ? 0 : UINT64_MAX, kept = 0; // 0 is the default
        CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
        CUDA_CHECK(cudaMemset(w.d_sum, 0, bytes));
        MEASURE_HOST (t, reps) {
            loop_async(&w, k % 2 == 0);
            CUDA_CHECK_SYNC();
        }
        CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &kept));
        report_loop(&w, names[k], t, (double)kept / (1 << 20), verify_sum(&w, names[k], runs));
        CUDA_CHECK(cudaMemPoolTrimTo(pool, 0)); // all back to the system
        loops[k] = t;
    }
    double us = 1e3 / w.rounds, plain_us = 0;
    plain_us = us * report.rows[0].time.median_ms;
    report_number("speed_up", plain_us / (us * loops[2].median_ms));
    if (DEVICE_IS_CPU)
        printf("\nCPU backend: the results are right; the times are those of the host's memory.\n");
    else
        printf(
            "\na round takes %.1f us with cudaMalloc and cudaFree, %.1f us from a pool that gives "
            "its memory back at each\nsynchronise, %.1f us from one that keeps it, and %.1f us "
            "when "
            "the host does not wait in between.\n",
            plain_us, us * loops[0].median_ms, us * loops[2].median_ms, us * loops[3].median_ms);
    CUDA_CHECK(cudaStreamDestroy(w.stream));
    CUDA_CHECK(cudaFree(w.d_x));
    CUDA_CHECK(cudaFree(w.d_sum));
    free(h_x);
    return lesson_end();
}
