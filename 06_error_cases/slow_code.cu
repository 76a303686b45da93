// slow_code: time lost between the source and the machine code: spilled registers, double literals,
// a debug build.
//
// Predict before you run it: a float kernel computes x * 0.999 + 0.5. In which type?
//
// usage: slow_code [CASE] [--fixed]
#include "timed_output.h"
#include <libgen.h>

// ---- register_spills
enum { LIVE = 96, ROUNDS = 64 }; // values a thread keeps at once

__device__ __forceinline__ float churn(float seed, int rounds)
{
    float v[LIVE], sum = 0;
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        v[k] = seed + k;
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int k = 0; k < LIVE; k++)
            v[k] = 0.5f * v[k] + 0.5f * v[(k + 1) % LIVE];
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        sum += v[k];
    return sum;
}

// Room for 1024 threads in a block leaves each 64 registers: the rest of v lives in memory.
__global__ void __launch_bounds__(1024) squeezed(float *out, int rounds)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = churn((float)(i % 64), rounds);
}

__global__ void __launch_bounds__(256) roomy(float *out, int rounds)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = churn((float)(i % 64), rounds);
}

// Averaging neighbours keeps the sum of seed + k over the ring: LIVE * seed + LIVE (LIVE - 1) / 2.
// (v[LIVE - 1] sees a v[0] that is new already, so the sum drifts; the reference does the same.)
static double want_churn(size_t i)
{
    static double wanted[64];
    static int known[64];
    size_t seed = i % 64;
    if (!known[seed]) {
        double v[LIVE];
        for (int k = 0; k < LIVE; k++)
            v[k] = (double)seed + k;
        for (int round = 0; round < ROUNDS; round++)
            for (int k = 0; k < LIVE; k++)
                v[k] = 0.5 * v[k] + 0.5 * v[(k + 1) % LIVE];
        for (int k = 0; k < LIVE; k++)
            wanted[seed] += v[k];
        known[seed] = 1;
    }
    return wanted[seed];
}

static struct timing time_churn(float *d_out, int squeeze)
{
    struct timing t;
    cudaFuncAttributes a;
    if (squeeze)
        CUDA_CHECK(cudaFuncGetAttributes(&a, squeezed));
    else
        CUDA_CHECK(cudaFuncGetAttributes(&a, roomy));
    MEASURE_GPU (t, common_options.reps) {
        if (squeeze)
            squeezed<<<grid(), BLOCK>>>(d_out, ROUNDS);
        else
            roomy<<<grid(), BLOCK>>>(d_out, ROUNDS);
        CUDA_CHECK_LAUNCH();
    }
    const char *name = squeeze ? "squeezed" : "roomy";
    report_extra(a.numRegs);
    report_extra((double)a.localSizeBytes);
    report_time(name, t, check_output(d_out, name, want_churn, 1e-3));
    return t;
}

static void register_spills_broken(void)
{
    float *d_out = poisoned_floats();
    report_table("96 values a thread", "registers", "local bytes", NULL);
    struct timing spilled = time_churn(d_out, 1);
    struct timing kept = time_churn(d_out, 0);
    RATIO(spilled, kept);
    CUDA_CHECK(cudaFree(d_out));
}

static void register_spills_fixed(void)
{
    float *d_out = poisoned_floats();
    report_table("96 values a thread", "registers", "local bytes", NULL);
    time_churn(d_out, 0);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- double_literals
enum { STEPS = 256 };

__global__ void with_double_literals(float *out)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float x = (float)(i % 64);
    for (int step = 0; step < STEPS; step++)
        x = x * 0.999 + 0.5; // x becomes double, the result float again
    out[i] = x;
}

__global__ void with_float_literals(float *out)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float x = (float)(i % 64);
    for (int step = 0; step < STEPS; step++)
        x = x * 0.999f + 0.5f;
    out[i] = x;
}

static double want_literals(size_t i)
{
    double x = (double)(i % 64);
    for (int step = 0; step < STEPS; step++)
        x = x * 0.999 + 0.5;
    return x;
}

static struct timing time_literals(float *d_out, int as_double)
{
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        if (as_double)
            with_double_literals<<<grid(), BLOCK>>>(d_out);
        else
            with_float_literals<<<grid(), BLOCK>>>(d_out);
        CUDA_CHECK_LAUNCH();
    }
    const char *name = as_double ? "x * 0.999 + 0.5" : "x * 0.999f + 0.5f";
    report_time(name, t, check_output(d_out, name, want_literals, 1e-4));
    return t;
}

static void double_literals_broken(void)
{
    float *d_out = poisoned_floats();
    report_table("the same formula on floats", NULL);
    struct timing doubles = time_literals(d_out, 1);
    struct timing floats = time_literals(d_out, 0);
    if (!DEVICE_IS_CPU)
        printf("  this device's fp64 units: 1 for %d fp32 units\n",
               device_attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio));
    RATIO(doubles, floats);
    CUDA_CHECK(cudaFree(d_out));
}

static void double_literals_fixed(void)
{
    float *d_out = poisoned_floats();
    report_table("the same formula on floats", NULL);
    time_literals(d_out, 0);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- debug_build
// images/build_plain and images/build_debug are one source, compiled without and with -G.
static double run_build(const char *name)
{
    char self[4000], command[4200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    int length_of_path = snprintf(command, sizeof(command), "%s/images/%s", dirname(self), name);
    if (access(command, X_OK) != 0)
        twin_waive("%s is not built: make BACKEND=cuda", command);
    snprintf(command + length_of_path, 16, " %d", common_options.device);
    double ms = -1;
    FILE *program = popen(command, "r");
    if (!program || fscanf(program, "%lf", &ms) != 1)
        ms = -1;
    if (program && pclose(program) != 0)
        ms = -1;
    printf("  images/%-12s %.4f ms\n", name, ms);
    check_that(ms > 0, "images/%s failed", name);
    return ms;
}

static void debug_build_broken(void)
{
    struct timing debug = timing_once(run_build("build_debug"));
    struct timing plain = timing_once(run_build("build_plain"));
    RATIO(debug, plain);
}

static void debug_build_fixed(void)
{
    run_build("build_plain");
}

static const struct twin twins[] = {
    TWIN(register_spills),
    TWIN(double_literals),
    TWIN(debug_build),
};

TWINS_MAIN("06_error_cases/slow_code", "time lost between source and machine code", twins)
