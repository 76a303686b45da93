// dependencies: a diamond of four kernels in four streams. B and C need the result of A, D needs
// both of theirs. Events say so; without them everything starts at once and the result is wrong.
//
//          A            stream 0
//        /   \.
//       B     C         streams 1, 2
//        \   /
//          D            stream 3
//
// Predict before you run it: each kernel takes the time T. How long does the diamond take with
// the right waits, and how long without any?
//
// usage: dependencies [--steps 512k]
// sanitizer: --steps 1k
#include "../common/lesson.h"
#include "../common/timeline.h"

enum { THREADS = 32, MAX_STEPS = 1 << 21 };

// Reads its inputs first and writes its result after `steps` dependent multiply-adds: whoever
// reads `out` too early is certain to find the old value. out = a + b + steps, exact below 2^24.
__global__ void node(int steps, float one, const float *a, const float *b, float *out)
{
    int i = threadIdx.x; // one block is all there is
    float value = a[i] + b[i];
    for (int step = 0; step < steps; step++)
        value = value * one + 1.0f;
    out[i] = value;
}

struct diamond {
    int steps;
    float *d_in, *d_a, *d_b, *d_c, *d_d;
    cudaStream_t stream[4];
    cudaEvent_t a_done, b_done, c_done;
};

static void launch_node(const struct diamond *d, int s, const float *x, const float *y, float *out)
{
    node<<<1, THREADS, 0, d->stream[s]>>>(d->steps, 1.0f, x, y, out);
    CUDA_CHECK_LAUNCH();
}

static void launch_diamond(const struct diamond *d, int with_waits, struct timeline *t)
{
    TIMELINE_SPAN (t, 0, d->stream[0], 'a')
        launch_node(d, 0, d->d_in, d->d_in, d->d_a);
    if (with_waits) {
        CUDA_CHECK(cudaEventRecord(d->a_done, d->stream[0]));
        CUDA_CHECK(cudaStreamWaitEvent(d->stream[1], d->a_done, 0)); // the stream waits,
        CUDA_CHECK(cudaStreamWaitEvent(d->stream[2], d->a_done, 0)); // the host does not
    }
    TIMELINE_SPAN (t, 1, d->stream[1], 'b')
        launch_node(d, 1, d->d_a, d->d_in, d->d_b);
    TIMELINE_SPAN (t, 2, d->stream[2], 'c')
        launch_node(d, 2, d->d_a, d->d_in, d->d_c);
    if (with_waits) {
        CUDA_CHECK(cudaEventRecord(d->b_done, d->stream[1]));
        CUDA_CHECK(cudaEventRecord(d->c_done, d->stream[2]));
        CUDA_CHECK(cudaStreamWaitEvent(d->stream[3], d->b_done, 0));
        CUDA_CHECK(cudaStreamWaitEvent(d->stream[3], d->c_done, 0));
    }
    TIMELINE_SPAN (t, 3, d->stream[3], 'd')
        launch_node(d, 3, d->d_b, d->d_c, d->d_d);
}

// Runs the diamond on poisoned memory; how many of D's values are right?
static int run(const struct diamond *d, int with_waits, struct timeline *t, const char *title)
{
    float h_d[THREADS];
    float *const results[] = {d->d_a, d->d_b, d->d_c, d->d_d};
    for (int k = 0; k < 4; k++)
        POISON_DEVICE(results[k], THREADS * sizeof(float));
    timeline_begin(t, title, "stream");
    launch_diamond(d, with_waits, t);
    timeline_finish(t);
    CUDA_CHECK(cudaMemcpy(h_d, d->d_d, sizeof(h_d), cudaMemcpyDeviceToHost));
    int right = 0;
    for (int i = 0; i < THREADS; i++) // A = 2i + steps, B = C = A + i + steps, D = B + C + steps
        right += (double)h_d[i] == 6.0 * i + 5.0 * d->steps;
    return right;
}

int main(int argc, char **argv)
{
    size_t steps = default_size(512 << 10, 1 << 15);
    const struct option_spec options[] = {
        OPTION_SIZE("steps", &steps, 1, MAX_STEPS, "multiply-adds a thread: how long a kernel is"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/dependencies", "a diamond of work in four streams",
                 options);
    overlap_print();

    struct diamond d;
    d.steps = (int)steps;
    float h_in[THREADS];
    float **const arrays[] = {&d.d_in, &d.d_a, &d.d_b, &d.d_c, &d.d_d};
    for (int k = 0; k < 5; k++)
        CUDA_CHECK(cudaMalloc(arrays[k], sizeof(h_in)));
    for (int i = 0; i < THREADS; i++)
        h_in[i] = (float)i;
    CUDA_CHECK(cudaMemcpy(d.d_in, h_in, sizeof(h_in), cudaMemcpyHostToDevice));
    for (int s = 0; s < 4; s++)
        CUDA_CHECK(cudaStreamCreateWithFlags(&d.stream[s], cudaStreamNonBlocking));
    cudaEvent_t *const events[] = {&d.a_done, &d.b_done, &d.c_done};
    for (int e = 0; e < 3; e++) // without timing an event is cheaper, and order is all we need
        CUDA_CHECK(cudaEventCreateWithFlags(events[e], cudaEventDisableTiming));
    launch_diamond(&d, 1, NULL); // the first launch loads the kernel, which can make streams wait
    CUDA_CHECK_SYNC();           // cudaMemset below does not wait for non-blocking streams

    struct timeline without, with;
    int right_without = run(&d, 0, &without, "without waits");
    int right_with = run(&d, 1, &with, "with cudaStreamWaitEvent");
    printf("\n");
    double longest = fmax(without.total_ms, with.total_ms);
    timeline_print(&without, longest);
    printf("  %d of %d values of D are right\n", right_without, THREADS);
    timeline_print(&with, longest);
    printf("  %d of %d values of D are right\n", right_with, THREADS);
    check_that(right_with == THREADS, "with the waits only %d of %d values are right", right_with,
               THREADS);
    if (right_without == THREADS)
        printf(
            "\nwithout waits the result happened to be right: nothing overlapped. So it is on the "
            "CPU backend, with\nCUDA_LAUNCH_BLOCKING=1 or CUDA_DEVICE_MAX_CONNECTIONS=1, and in "
            "debuggers; the mistake is there all the same.\n");
    else
        printf("\nwithout waits D was done after %.3f ms, but it read what B and C had not written "
               "yet.\n",
               without.total_ms);
    report_number("right_without_waits", right_without);
    report_number("right_with_waits", right_with);
    report_number("without_waits_ms", without.total_ms);
    report_number("with_waits_ms", with.total_ms);
    timeline_free(&without);
    timeline_free(&with);
    for (int e = 0; e < 3; e++)
        CUDA_CHECK(cudaEventDestroy(*events[e]));
    for (int s = 0; s < 4; s++)
        CUDA_CHECK(cudaStreamDestroy(d.stream[s]));
    for (int k = 0; k < 5; k++)
        CUDA_CHECK(cudaFree(*arrays[k]));
    return lesson_end();
}
