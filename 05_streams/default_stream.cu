// default_stream: three kernels that have nothing to do with each other, in three streams. When
// one of them is launched without naming a stream, the other two wait for it.
//
// Predict before you run it: each kernel takes the time T and a tiny part of the GPU. How long do
// A, B and C take together when B goes into the default stream? In which order do they run?
//
// usage: default_stream [--steps 1M]
// sanitizer: --steps 1k
#include "../common/lesson.h"
#include "../common/timeline.h"

enum { KERNELS = 3, THREADS = 32, MAX_STEPS = 1 << 22 };

// One warp, busy for `steps` dependent multiply-adds: long, but it leaves the GPU almost empty.
// With one = 1 the result is x + steps, exact in float below 2^24.
__global__ void count_up(int steps, float one, float *x)
{
    float value = x[threadIdx.x];
    for (int i = 0; i < steps; i++)
        value = value * one + 1.0f;
    x[threadIdx.x] = value;
}

struct example {
    const char *title;
    cudaStream_t stream[KERNELS];
};

static void launch_all(const struct example *e, int steps, float *d_x[], struct timeline *t)
{
    const char letters[] = "abc";
    for (int k = 0; k < KERNELS; k++)
        TIMELINE_SPAN (t, k, e->stream[k], letters[k]) {
            count_up<<<1, THREADS, 0, e->stream[k]>>>(steps, 1.0f, d_x[k]);
            CUDA_CHECK_LAUNCH();
        }
}

static void reset(float *d_x[])
{
    float h_x[THREADS];
    for (int i = 0; i < THREADS; i++)
        h_x[i] = (float)i;
    for (int k = 0; k < KERNELS; k++)
        CUDA_CHECK(cudaMemcpy(d_x[k], h_x, sizeof(h_x), cudaMemcpyHostToDevice));
}

static int verify_all(const char *what, int steps, float *d_x[])
{
    float h_x[THREADS];
    struct verifier v = verify_begin(what, 0, 0);
    for (int k = 0; k < KERNELS; k++) {
        CUDA_CHECK(cudaMemcpy(h_x, d_x[k], sizeof(h_x), cudaMemcpyDeviceToHost));
        for (int i = 0; i < THREADS; i++)
            verify_value(&v, (size_t)(k * THREADS + i), h_x[i], (double)i + steps);
    }
    return verify_end(&v);
}

// As MEASURE_HOST does it, but with the reset outside the time.
static struct timing measure(const struct example *e, int steps, float *d_x[])
{
    static double samples_ms[TIMER_MAX_REPS];
    for (int rep = 0; rep < common_options.reps; rep++) {
        reset(d_x);
        CUDA_CHECK_SYNC();
        double start = host_seconds();
        launch_all(e, steps, d_x, NULL);
        CUDA_CHECK_SYNC();
        samples_ms[rep] = 1e3 * (host_seconds() - start);
    }
    return timing_of(samples_ms, common_options.reps);
}

int main(int argc, char **argv)
{
    size_t steps = default_size(1 << 20, 1 << 15);
    const struct option_spec options[] = {
        OPTION_SIZE("steps", &steps, 1, MAX_STEPS, "multiply-adds a thread: how long a kernel is"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/default_stream", "who waits for the default stream",
                 options);
    overlap_print();

    float *d_x[KERNELS];
    cudaStream_t plain[2], free_running[2], third;
    for (int k = 0; k < KERNELS; k++)
        CUDA_CHECK(cudaMalloc(&d_x[k], THREADS * sizeof(float)));
    for (int s = 0; s < 2; s++) {
        CUDA_CHECK(cudaStreamCreate(&plain[s]));
        CUDA_CHECK(cudaStreamCreateWithFlags(&free_running[s], cudaStreamNonBlocking));
    }
    CUDA_CHECK(cudaStreamCreate(&third));

    // cudaStreamLegacy is what stream 0, and a launch without a stream, mean in a program compiled
    // as usual; cudaStreamPerThread is what they mean with nvcc --default-stream per-thread.
    const struct example examples[] = {
        {"A, B, C in created streams", {plain[0], third, plain[1]}},
        {"B in the default stream", {plain[0], cudaStreamLegacy, plain[1]}},
        {"... and A, C non-blocking", {free_running[0], cudaStreamLegacy, free_running[1]}},
        {"B in the per-thread stream", {plain[0], cudaStreamPerThread, plain[1]}},
    };
    enum { EXAMPLES = sizeof(examples) / sizeof(examples[0]) };
    struct timeline timelines[EXAMPLES];
    struct timing times[EXAMPLES], one;

    // The first launch loads the kernel, and loading can make all streams wait: not now.
    reset(d_x);
    MEASURE_HOST (one, common_options.reps) {
        count_up<<<1, THREADS, 0, plain[0]>>>((int)steps, 1.0f, d_x[0]);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK_SYNC();
    }
    report_table("three independent kernels", "x one", NULL);
    report_extra(1);
    report_time("one kernel", one, CHECK_NONE);
    double longest = 0;
    for (int e = 0; e < EXAMPLES; e++) {
        launch_all(&examples[e], (int)steps, d_x,
                   NULL); // the per-thread stream is made on first use
        CUDA_CHECK_SYNC();
        reset(d_x);
        timeline_begin(&timelines[e], examples[e].title, "stream");
        launch_all(&examples[e], (int)steps, d_x, &timelines[e]);
        timeline_finish(&timelines[e]);
        int ok = verify_all(examples[e].title, (int)steps, d_x);
        times[e] = measure(&examples[e], (int)steps, d_x);
        ok &= verify_all(examples[e].title, (int)steps, d_x);
        report_extra(round(100 * times[e].median_ms / one.median_ms) / 100);
        report_time(examples[e].title, times[e], ok);
        longest = fmax(longest, timelines[e].total_ms);
    }
    printf("\n");
    for (int e = 0; e < EXAMPLES; e++) {
        timeline_print(&timelines[e], longest);
        timeline_free(&timelines[e]);
    }
    if (!DEVICE_IS_CPU && times[0].median_ms > 2 * one.median_ms)
        printf("\neven A, B, C in created streams ran one after another: CUDA_LAUNCH_BLOCKING=1, a "
               "debugger or a sanitizer.\n");
    else if (!DEVICE_IS_CPU)
        printf(
            "\nnaming no stream for B made A, B and C %.1f times slower (%.3f ms, not %.3f ms): "
            "work in the legacy\ndefault stream waits for all streams of cudaStreamCreate, and "
            "they wait for it. Non-blocking\nstreams (%.3f ms) and the per-thread default stream "
            "(%.3f ms) do not.\n",
            times[1].median_ms / times[0].median_ms, times[1].median_ms, times[0].median_ms,
            times[2].median_ms, times[3].median_ms);

    for (int s = 0; s < 2; s++) {
        CUDA_CHECK(cudaStreamDestroy(plain[s]));
        CUDA_CHECK(cudaStreamDestroy(free_running[s]));
    }
    CUDA_CHECK(cudaStreamDestroy(third));
    for (int k = 0; k < KERNELS; k++)
        CUDA_CHECK(cudaFree(d_x[k]));
    return lesson_end();
}
