// priorities: the GPU is full of work when a small urgent kernel arrives. A stream of high
// priority lets its blocks take the next free places; it does not stop blocks that run.
//
// Predict before you run it: the background kernel has many times more blocks than fit on the GPU
// at once. How much of it must the urgent kernel wait for, with equal and with higher priority?
//
// usage: priorities [--steps 64k]
// sanitizer: --steps 1k
#include "../common/lesson.h"
#include "../common/timeline.h"

enum { URGENT_THREADS = 32, THREADS = 1024, BLOCKS_PER_SM = 32, MAX_STEPS = 1 << 20 };

// Busy for `steps` dependent multiply-adds. With one = 1: x + steps, exact in float below 2^24.
__global__ void count_up(int steps, float one, float *x)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int step = 0; step < steps; step++)
        value = value * one + 1.0f;
    x[i] = value;
}

// Every value began as zero and has become `steps`.
static int verify_steps(const char *what, int steps, const float *d_x, size_t count)
{
    float *h_x = (float *)host_malloc(count * sizeof(float));
    CUDA_CHECK(cudaMemcpy(h_x, d_x, count * sizeof(float), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin(what, 0, 0);
    for (size_t i = 0; i < count; i++)
        verify_value(&v, i, h_x[i], steps);
    free(h_x);
    return verify_end(&v);
}

struct experiment {
    int steps, blocks; // of the background kernel: many times what fits at once
    size_t count;      // its threads
    float *d_busy, *d_urgent;
};

// Milliseconds from the moment the urgent stream was ready until its kernel was done.
static double run(const struct experiment *e, int low, int priority, const char *title)
{
    struct timeline t;
    cudaStream_t background, urgent;
    CUDA_CHECK(cudaStreamCreateWithPriority(&background, cudaStreamNonBlocking, low));
    CUDA_CHECK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, priority));
    CUDA_CHECK(cudaMemset(e->d_busy, 0, e->count * sizeof(float)));
    CUDA_CHECK(cudaMemset(e->d_urgent, 0, URGENT_THREADS * sizeof(float)));
    timeline_begin(&t, title, "stream");
    TIMELINE_SPAN (&t, 0, background, 'b') {
        count_up<<<e->blocks, THREADS, 0, background>>>(e->steps, 1.0f, e->d_busy);
        CUDA_CHECK_LAUNCH();
    }
    TIMELINE_SPAN (&t, 1, urgent, 'u') {
        count_up<<<1, URGENT_THREADS, 0, urgent>>>(e->steps, 1.0f, e->d_urgent);
        CUDA_CHECK_LAUNCH();
    }
    timeline_finish(&t);
    timeline_print(&t, t.total_ms);
    double ms = t.spans[1].end_ms - t.spans[1].begin_ms;
    verify_steps("the background kernel", e->steps, e->d_busy, e->count);
    verify_steps("the urgent kernel", e->steps, e->d_urgent, URGENT_THREADS);
    timeline_free(&t);
    CUDA_CHECK(cudaStreamDestroy(background));
    CUDA_CHECK(cudaStreamDestroy(urgent));
    return ms;
}

int main(int argc, char **argv)
{
    size_t steps = default_size(64 << 10, 1 << 10);
    int low = 0, high = 0;
    const struct option_spec options[] = {
        OPTION_SIZE("steps", &steps, 1, MAX_STEPS, "multiply-adds a thread: how long a block runs"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/priorities", "an urgent kernel on a full GPU", options);
    overlap_print();
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&low, &high)); // the smaller, the more urgent
    if (low == high)
        printf("this device has no stream priorities: both runs below use the same one\n");

    struct experiment e;
    e.steps = (int)steps;
    e.blocks = device_facts.sm_count * BLOCKS_PER_SM;
    e.count = (size_t)e.blocks * THREADS;
    CUDA_CHECK(cudaMalloc(&e.d_busy, e.count * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&e.d_urgent, URGENT_THREADS * sizeof(float)));

    // The first launch loads the kernel, which can make streams wait for each other: not now.
    CUDA_CHECK(cudaMemset(e.d_urgent, 0, URGENT_THREADS * sizeof(float)));
    count_up<<<1, URGENT_THREADS>>>(e.steps, 1.0f, e.d_urgent);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();

    printf("\nb: %d blocks of %d threads fill the GPU; u: one warp, launched right after and drawn "
           "from then on\n",
           e.blocks, THREADS);
    double equal = run(&e, low, low, "u has the same priority as b");
    double urgent = run(&e, low, high, "u has the highest priority");
    if (!DEVICE_IS_CPU && low != high)
        printf("\nu is done %.3f ms after its launch with equal priority, %.3f ms with priority %d "
               "instead of %d: its\nblock gets the first place that becomes free. Blocks that run "
               "are not interrupted.\n",
               equal, urgent, high, low);
    report_number("lowest_priority", low);
    report_number("highest_priority", high);
    report_number("equal_priority_ms", equal);
    report_number("highest_priority_ms", urgent);
    CUDA_CHECK(cudaFree(e.d_busy));
    CUDA_CHECK(cudaFree(e.d_urgent));
    return lesson_end();
}
