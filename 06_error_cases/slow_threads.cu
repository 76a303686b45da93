// slow_threads: right results, no error, and the threads are used badly. Each case runs both twins,
// checks both, and prints how many times slower the broken one is.
//
// Predict before you run it: one block of 256 threads does the work of a full grid. How many times
// slower: about as many as there are SMs?
//
// usage: slow_threads [CASE] [--fixed]
#include "arrays.h"

// ---- small_grid
__global__ void scale_grid_stride(const float *in, float *out, size_t n)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = 2 * in[i];
}

static struct timing time_grid(struct arrays *a, unsigned grid, int block)
{
    struct timing t;
    char name[64];
    snprintf(name, sizeof(name), "%u block%s of %d threads", grid, grid == 1 ? "" : "s", block);
    MEASURE_GPU (t, 3) {
        scale_grid_stride<<<grid, block>>>(a->d_in, a->d_out, a->n);
        CUDA_CHECK_LAUNCH();
    }
    report_bandwidth(name, t, 2.0 * a->n * sizeof(float), arrays_check(a, name, 2, 0));
    return t;
}

static void small_grid_broken(void)
{
    struct arrays a = arrays_create();
    unsigned sms = (unsigned)device_facts.sm_count;
    report_table("the same work, other grids", NULL);
    struct timing one = time_grid(&a, 1, 256); // one block is on one SM: the others have nothing
    time_grid(&a, sms, 32);                    // one warp an SM: its waiting hides behind nothing
    time_grid(&a, sms, 256);
    struct timing full = time_grid(&a, 8 * sms, 256);
    RATIO(one, full);
    arrays_destroy(&a);
}

static void small_grid_fixed(void)
{
    struct arrays a = arrays_create();
    report_table("a grid that fills the device", NULL);
    time_grid(&a, 8 * (unsigned)device_facts.sm_count, 256);
    arrays_destroy(&a);
}

// ---- divergence
// Two long branches. With group 1, neighbours in a warp take different ones, and each warp walks
// through both; with group 32 every warp takes one of them.
__global__ void branches(const float *in, float *out, size_t n, unsigned group)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    if (threadIdx.x / group % 2 == 0)
        for (int k = 0; k < 200; k++)
            x = sqrtf(x * x + 1); // after 200 steps: sqrt(in^2 + 200)
    else
        for (int k = 0; k < 200; k++)
            x = sqrtf(x * x + 2) - 1e-9f;
    out[i] = x > -1 ? in[i] : 0; // x is never negative; the compiler does not know
}

static struct timing time_branches(struct arrays *a, unsigned group, const char *name)
{
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        branches<<<blocks_for(a->n, 256), 256>>>(a->d_in, a->d_out, a->n, group);
        CUDA_CHECK_LAUNCH();
    }
    report_time(name, t, arrays_check(a, name, 1, 0));
    return t;
}

static void divergence_broken(void)
{
    struct arrays a = arrays_create();
    report_table("half of the threads in each branch", NULL);
    struct timing mixed = time_branches(&a, 1, "branches mixed within a warp");
    struct timing split = time_branches(&a, 32, "branches along warp borders");
    RATIO(mixed, split);
    arrays_destroy(&a);
}

static void divergence_fixed(void)
{
    struct arrays a = arrays_create();
    report_table("half of the threads in each branch", NULL);
    time_branches(&a, 32, "branches along warp borders");
    arrays_destroy(&a);
}

static const struct twin twins[] = {
    TWIN(small_grid),
    TWIN(divergence),
};

TWINS_MAIN("06_error_cases/slow_threads", "right, and slow for the sake of threads", twins)
