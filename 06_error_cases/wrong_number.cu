// wrong_number: the kernel may even be right; the reading or the comparison of its result is not.
//
// Predict before you run it: one of 1000 results is NaN. How many errors does
// `if (fabs(got - want) > tolerance) errors++;` count?
//
// usage: wrong_number [CASE] [--fixed]
#include "twins.h"

enum { N = 1 << 16, BLOCK = 256 };

// ---- float_compare
// Sums each block's part in a tree: another order than a loop's, and so another rounding.
__global__ void block_sums(const float *in, float *sums)
{
    __shared__ float part[BLOCK];
    part[threadIdx.x] = in[blockIdx.x * BLOCK + threadIdx.x];
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads(); // the parts of the round before are written
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}

struct sums {
    float device, host;   // the same numbers added in two orders
    double exact, spread; // in double; sum of the magnitudes: what rounding errors scale with
};

static struct sums sum_both_ways(void)
{
    struct sums s = {0, 0, 0, 0};
    float *h_in = (float *)host_malloc(N * sizeof(float)), h_sums[N / BLOCK], *d_in, *d_sums;
    fill_random(h_in, N, 6);
    CUDA_CHECK(cudaMalloc(&d_in, N * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_sums, sizeof(h_sums)));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, N * sizeof(float), cudaMemcpyHostToDevice));
    block_sums<<<N / BLOCK, BLOCK>>>(d_in, d_sums);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_sums, d_sums, sizeof(h_sums), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N / BLOCK; i++)
        s.device += h_sums[i];
    for (int i = 0; i < N; i++) {
        s.host += h_in[i];
        s.exact += h_in[i];
        s.spread += fabs(h_in[i]);
    }
    printf("  on the device %.9g, in a loop on the host %.9g, in double %.9g\n", s.device, s.host,
           s.exact);
    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_sums));
    free(h_in);
    return s;
}

static void float_compare_broken(void)
{
    struct sums s = sum_both_ways();
    SYMPTOM(s.device != s.host && fabs(s.device - s.exact) < 1e-5 * s.spread,
            "== says wrong, yet the device is %.2g from the exact sum and the host's loop %.2g",
            fabs(s.device - s.exact), fabs(s.host - s.exact));
}

static void float_compare_fixed(void)
{
    struct sums s = sum_both_ways();
    // A bound from the arithmetic: float's rounding unit x additions in a row x magnitude.
    double tolerance = 6e-8 * (8 + N / BLOCK) * s.spread;
    check_that(fabs(s.device - s.exact) <= tolerance, "the sum is off by more than %g", tolerance);
}

// ---- nan_check
__global__ void ratios(const float *a, const float *b, float *out, int guard)
{
    int i = threadIdx.x;
    out[i] = guard && b[i] == 0 ? 0 : a[i] / b[i]; // 0 / 0 is NaN
}

static void run_ratios(float out[BLOCK], int guard)
{
    float h_in[2 * BLOCK], *d_in;
    for (int i = 0; i < BLOCK; i++)
        h_in[i] = h_in[BLOCK + i] = (float)i; // i / i is 1, except for the first
    CUDA_CHECK(cudaMalloc(&d_in, 3 * BLOCK * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, sizeof(h_in), cudaMemcpyHostToDevice));
    ratios<<<1, BLOCK>>>(d_in, d_in + BLOCK, d_in + 2 * BLOCK, guard);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(out, d_in + 2 * BLOCK, BLOCK * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_in));
}

static void nan_check_broken(void)
{
    float out[BLOCK];
    int errors = 0, nans = 0;
    run_ratios(out, 0);
    for (int i = 0; i < BLOCK; i++) {
        float want = i == 0 ? 0 : 1;
        if (fabs(out[i] - want) > 1e-6) // a comparison with NaN is false: NaN passes
            errors++;
        nans += isnan(out[i]) != 0;
    }
    SYMPTOM(errors == 0 && nans > 0, "%d errors counted, and %d NaN among the results", errors,
            nans);
}

static void nan_check_fixed(void)
{
    float out[BLOCK];
    int errors_before = 0, errors_after = 0;
    run_ratios(out, 0);
    for (int i = 0; i < BLOCK; i++)
        errors_before += !(fabs(out[i] - (i == 0 ? 0 : 1)) <= 1e-6); // what is not right is wrong
    run_ratios(out, 1);
    for (int i = 0; i < BLOCK; i++)
        errors_after += !(fabs(out[i] - (i == 0 ? 0 : 1)) <= 1e-6);
    printf("  !(difference <= tolerance) counts %d error; with the kernel corrected, %d\n",
           errors_before, errors_after);
    check_that(errors_before == 1 && errors_after == 0, "the check does not tell NaN from right");
}

// ---- read_before_sync
__global__ void slow_answer(volatile int *answer)
{
    long long start = clock64();
    while (clock64() - start < 20000000) // about 10 ms
        ;
    *answer = 42;
}

// Pinned memory that host and device see under one pointer; *value is what the host reads from it.
static void ask_for_answer(int synchronize, int *value)
{
    volatile int *answer;
    CUDA_CHECK(cudaHostAlloc((void **)&answer, sizeof(int), cudaHostAllocMapped));
    *answer = -1;
    slow_answer<<<1, 1>>>(answer); // returns at once; the kernel runs on
    CUDA_CHECK_LAUNCH();
    if (synchronize)
        CUDA_CHECK_SYNC();
    *value = *answer;
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaFreeHost((void *)answer));
}

static void read_before_sync_broken(void)
{
    int value;
    ask_for_answer(0, &value);
    SYMPTOM(value == -1, "the host read %d, before the kernel wrote 42", value);
}

static void read_before_sync_fixed(void)
{
    int value;
    ask_for_answer(1, &value);
    check_that(value == 42, "the host read %d", value);
}

static const struct twin twins[] = {
    TWIN(float_compare),
    TWIN(nan_check),
    TWIN(read_before_sync),
};

TWINS_MAIN("06_error_cases/wrong_number", "results that are read or compared wrongly", twins)
