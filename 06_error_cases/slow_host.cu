// slow_host: time lost around a kernel that is fast: copies inside the loop, and a first launch
// that is timed.
//
// Predict before you run it: 20 steps on an array, with a copy there and back in each step or only
// before the first and after the last. How many times slower?
//
// usage: slow_host [CASE] [--fixed]
#include "timed_output.h"

// ---- copies_in_loop
__global__ void step_once(float *x)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 0.5f * x[i] + 1;
}

enum { ITERATIONS = 20 };

static double want_steps(size_t i)
{
    double x = (double)(i % 64);
    for (int k = 0; k < ITERATIONS; k++)
        x = 0.5 * x + 1;
    return x;
}

static struct timing time_iterations(float *d_x, float *h_x, int copy_each_time)
{
    struct timing t;
    size_t bytes = elements() * sizeof(float);
    MEASURE_HOST (t, common_options.reps) {
        for (size_t i = 0; i < elements(); i++)
            h_x[i] = (float)(i % 64);
        CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
        for (int k = 0; k < ITERATIONS; k++) {
            step_once<<<grid(), BLOCK>>>(d_x);
            CUDA_CHECK_LAUNCH();
            if (copy_each_time) {
                CUDA_CHECK(cudaMemcpy(h_x, d_x, bytes, cudaMemcpyDeviceToHost));
                CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
            }
        }
        CUDA_CHECK(cudaMemcpy(h_x, d_x, bytes, cudaMemcpyDeviceToHost));
    }
    const char *name = copy_each_time ? "copies in each of 20 steps" : "copies before and after";
    report_time(name, t, check_output(d_x, name, want_steps, 1e-6));
    return t;
}

static void copies_in_loop_broken(void)
{
    float *d_x = poisoned_floats(), *h_x = (float *)host_malloc(elements() * sizeof(float));
    report_table("20 steps (host's clock)", NULL);
    struct timing each = time_iterations(d_x, h_x, 1);
    struct timing once = time_iterations(d_x, h_x, 0);
    RATIO(each, once);
    CUDA_CHECK(cudaFree(d_x));
    free(h_x);
}

static void copies_in_loop_fixed(void)
{
    float *d_x = poisoned_floats(), *h_x = (float *)host_malloc(elements() * sizeof(float));
    report_table("20 steps (host's clock)", NULL);
    time_iterations(d_x, h_x, 0);
    CUDA_CHECK(cudaFree(d_x));
    free(h_x);
}

// ---- first_launch_timed
static double milliseconds_of_one_launch(float *d_x)
{
    double start = host_seconds();
    step_once<<<grid(), BLOCK>>>(d_x);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    return 1e3 * (host_seconds() - start);
}

static struct timing time_later_launches(float *d_x)
{
    double samples[20];
    for (int i = 0; i < 20; i++)
        samples[i] = milliseconds_of_one_launch(d_x);
    return timing_of(samples, 20);
}

static void first_launch_timed_broken(void)
{
    float *d_x = poisoned_floats();
    report_table("one launch (host's clock)", NULL);
    struct timing first = timing_once(milliseconds_of_one_launch(d_x)); // loads the kernel's code
    report_time("the first", first, CHECK_NONE);
    struct timing later = time_later_launches(d_x);
    report_time("later ones", later, CHECK_NONE);
    RATIO(first, later);
    CUDA_CHECK(cudaFree(d_x));
}

static void first_launch_timed_fixed(void)
{
    float *d_x = poisoned_floats();
    milliseconds_of_one_launch(d_x); // the warm-up, which is not counted
    report_table("one launch (host's clock)", NULL);
    struct timing t = time_later_launches(d_x);
    report_time("after a warm-up", t, CHECK_NONE);
    check_that(t.median_ms > 0, "no time was measured");
    CUDA_CHECK(cudaFree(d_x));
}

static const struct twin twins[] = {
    TWIN(copies_in_loop),
    TWIN(first_launch_timed),
};

TWINS_MAIN("06_error_cases/slow_host", "time lost around a fast kernel", twins)
