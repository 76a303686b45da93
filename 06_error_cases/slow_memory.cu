// slow_memory: right results, no error, and the memory is used badly. Each case runs both twins,
// checks both, and prints how many times slower the broken one is.
//
// Predict before you run it: the same copy, but the threads of a warp take every 32nd float instead
// of neighbours. How many times slower?
//
// usage: slow_memory [CASE] [--fixed]
#include "arrays.h"

// ---- uncoalesced
// stride 1: neighbours in a warp copy neighbours in memory. stride 32: they are 32 floats apart,
// and each of the 32 accesses of a warp moves a sector of 32 bytes for 4.
__global__ void copy_strided(const float *in, float *out, size_t n, size_t stride)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t rows = n / stride; // a permutation of 0 .. n - 1; n is a multiple of the stride
    if (i < n)
        out[i % rows * stride + i / rows] = in[i % rows * stride + i / rows];
}

static struct timing time_copy(struct arrays *a, size_t stride, const char *name)
{
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        copy_strided<<<blocks_for(a->n, 256), 256>>>(a->d_in, a->d_out, a->n, stride);
        CUDA_CHECK_LAUNCH();
    }
    report_bandwidth(name, t, 2.0 * a->n * sizeof(float), arrays_check(a, name, 1, 0));
    return t;
}

static void uncoalesced_broken(void)
{
    struct arrays a = arrays_create();
    report_table("copy of the same bytes", NULL);
    struct timing apart = time_copy(&a, 32, "threads 32 floats apart");
    struct timing together = time_copy(&a, 1, "threads on neighbours");
    RATIO(apart, together);
    arrays_destroy(&a);
}

static void uncoalesced_fixed(void)
{
    struct arrays a = arrays_create();
    report_table("copy", NULL);
    time_copy(&a, 1, "threads on neighbours");
    arrays_destroy(&a);
}

// ---- low_intensity
// out = 16 in + 15: four passes of 2x + 1, each of which reads and writes all of the memory ...
__global__ void double_plus_one(const float *in, float *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i] + 1;
}

// ... or one pass that keeps the number in a register between the four steps.
__global__ void four_steps(const float *in, float *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = in[i];
        for (int step = 0; step < 4; step++)
            x = 2 * x + 1;
        out[i] = x;
    }
}

static struct timing time_fused(struct arrays *a)
{
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        four_steps<<<blocks_for(a->n, 256), 256>>>(a->d_in, a->d_out, a->n);
        CUDA_CHECK_LAUNCH();
    }
    report_flops("one kernel, four steps", t, 8.0 * a->n, arrays_check(a, "fused", 16, 15));
    return t;
}

static void print_roofline(double flops_per_byte)
{
    const struct device_facts *d = &device_facts;
    if (d->memory_limit_gbs > 0 && d->fp32_limit_gflops > 0)
        printf(
            "  roofline: %.2f flops a byte x %.0f GB/s allow %.2f of the %.1f TFLOP/s; from %.0f "
            "flops a byte on, the arithmetic is the limit\n",
            flops_per_byte, d->memory_limit_gbs, flops_per_byte * d->memory_limit_gbs / 1e3,
            d->fp32_limit_gflops / 1e3, d->fp32_limit_gflops / d->memory_limit_gbs);
}

static void low_intensity_broken(void)
{
    struct arrays a = arrays_create();
    unsigned grid = blocks_for(a.n, 256);
    struct timing passes;
    report_table("16 x + 15", NULL);
    MEASURE_GPU (passes, common_options.reps) {
        double_plus_one<<<grid, 256>>>(a.d_in, a.d_out, a.n);
        for (int step = 1; step < 4; step++)
            double_plus_one<<<grid, 256>>>(a.d_out, a.d_out, a.n);
        CUDA_CHECK_LAUNCH();
    }
    report_flops("four kernels, a step each", passes, 8.0 * a.n,
                 arrays_check(&a, "four passes", 16, 15));
    struct timing fused = time_fused(&a);
    print_roofline(2.0 / 8);
    print_roofline(8.0 / 8);
    RATIO(passes, fused);
    arrays_destroy(&a);
}

static void low_intensity_fixed(void)
{
    struct arrays a = arrays_create();
    report_table("16 x + 15", NULL);
    time_fused(&a);
    arrays_destroy(&a);
}

// ---- bank_conflict
enum { TILE = 32, ROUNDS = 64 };

// A column of a tile: with rows of 32 floats all its elements lie in one of the 32 banks and are
// read one after the other; with rows of 33 each lies in a bank of its own. `width` is 32 or 33.
__global__ void read_columns(const float *in, float *out, size_t n, int width)
{
    __shared__ float tile[TILE * (TILE + 1)];
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    int column = threadIdx.x / TILE, row = threadIdx.x % TILE;
    tile[row * width + column] = i < n ? in[i] : 0;
    __syncthreads();
    float sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        sum += tile[row * width + (column + round) % TILE]; // lanes differ in the row
        __syncthreads();                                    // so that the reads stay where they are
    }
    tile[row * width + column] = sum > -1 ? tile[row * width + column] : 0; // sum is never negative
    __syncthreads();
    if (i < n)
        out[i] = tile[row * width + column];
}

static struct timing time_columns(struct arrays *a, int width, const char *name)
{
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        read_columns<<<blocks_for(a->n, TILE * TILE), TILE * TILE>>>(a->d_in, a->d_out, a->n,
                                                                     width);
        CUDA_CHECK_LAUNCH();
    }
    report_time(name, t, arrays_check(a, name, 1, 0));
    return t;
}

static void bank_conflict_broken(void)
{
    struct arrays a = arrays_create();
    report_table("columns of a shared tile", NULL);
    struct timing conflicts = time_columns(&a, TILE, "rows of 32: 32 lanes, 1 bank");
    struct timing padded = time_columns(&a, TILE + 1, "rows of 33: 32 lanes, 32 banks");
    printf("  both are right: a bank conflict costs time and nothing else\n");
    RATIO(conflicts, padded);
    arrays_destroy(&a);
}

static void bank_conflict_fixed(void)
{
    struct arrays a = arrays_create();
    report_table("columns of a shared tile", NULL);
    time_columns(&a, TILE + 1, "rows of 33");
    arrays_destroy(&a);
}

static const struct twin twins[] = {
    TWIN(uncoalesced),
    TWIN(low_intensity),
    TWIN(bank_conflict),
};

TWINS_MAIN("06_error_cases/slow_memory", "right, and slow for the sake of memory", twins)
