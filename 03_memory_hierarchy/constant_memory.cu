// constant_memory: 64 KiB that the host writes and kernels read, through a cache that hands one
// word to all 32 lanes of a warp at once. A polynomial whose coefficients come from constant
// memory, from global memory through __ldg, and from the kernel's argument.
//
// Predict before you run it: which of the three is fastest when all lanes use the same coefficient?
// Which when each lane uses another one? And which when the kernel waits for its data anyway?
//
// usage: constant_memory [--n threads] [--stream floats] [--block threads]
// sanitizer: --n 1k --stream 10k
#include "../common/lesson.h"

enum { TERMS = 256, ROUNDS = 4 }; // coefficients, more than a thread has registers; repetitions

struct coefficients {
    float c[TERMS];
};

__constant__ struct coefficients d_constant;

__device__ size_t thread_index(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// v = p(v), ROUNDS times, by Horner's rule; `coefficient` is number k. Written as a macro, because
// the kernels below differ only in the memory space that this one expression names.
#define POLYNOMIAL(v, coefficient)                                                                 \
    for (int round = 0; round < ROUNDS; round++) {                                                 \
        float sum_ = 0;                                                                            \
        _Pragma("unroll 32") for (int k = 0; k < TERMS; k++) sum_ = sum_ * v + (coefficient);      \
        v = sum_;                                                                                  \
    }

// ---- the same coefficient for all lanes: k alone decides

__global__ void same_constant(size_t n, const float *x, float *y)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, d_constant.c[k]);
    y[thread_index()] = v;
}

__global__ void same_global(size_t n, const float *x, float *y, const float *c)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, __ldg(&c[k]));
    y[thread_index()] = v;
}

// An argument lies in constant memory too: the driver puts it there at each launch (4 KiB at least).
__global__ void same_argument(size_t n, const float *x, float *y, const struct coefficients a)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, a.c[k]);
    y[thread_index()] = v;
}

// ---- another one for each lane: the 32 lanes of a warp want 32 different words

__global__ void different_constant(size_t n, const float *x, float *y)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, d_constant.c[(k + threadIdx.x) % TERMS]);
    y[thread_index()] = v;
}

__global__ void different_global(size_t n, const float *x, float *y, const float *c)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, __ldg(&c[(k + threadIdx.x) % TERMS]));
    y[thread_index()] = v;
}

__global__ void different_argument(size_t n, const float *x, float *y, const struct coefficients a)
{
    if (thread_index() >= n)
        return;
    float v = x[thread_index()];
    POLYNOMIAL(v, a.c[(k + threadIdx.x) % TERMS]);
    y[thread_index()] = v;
}

// ---- two coefficients, and a kernel that waits for x and y

__global__ void stream_constant(size_t n, const float *x, float *y)
{
    if (thread_index() < n)
        y[thread_index()] = d_constant.c[0] * x[thread_index()] + d_constant.c[1];
}

__global__ void stream_global(size_t n, const float *x, float *y, const float *c)
{
    if (thread_index() < n)
        y[thread_index()] = __ldg(&c[0]) * x[thread_index()] + __ldg(&c[1]);
}

__global__ void stream_argument(size_t n, const float *x, float *y, const struct coefficients a)
{
    if (thread_index() < n)
        y[thread_index()] = a.c[0] * x[thread_index()] + a.c[1];
}

// ---- the host's side

enum access { SAME, DIFFERENT, STREAM, ACCESSES };
enum source { CONSTANT, GLOBAL, ARGUMENT, SOURCES };

static struct coefficients h_c;
static float *d_c, *d_x, *d_y, *h_x, *h_y, *h_first;

static void launch(int access, int source, unsigned grid, int block, size_t n)
{
    if (access == SAME && source == CONSTANT)
        same_constant<<<grid, block>>>(n, d_x, d_y);
    else if (access == SAME && source == GLOBAL)
        same_global<<<grid, block>>>(n, d_x, d_y, d_c);
    else if (access == SAME)
        same_argument<<<grid, block>>>(n, d_x, d_y, h_c);
    else if (access == DIFFERENT && source == CONSTANT)
        different_constant<<<grid, block>>>(n, d_x, d_y);
    else if (access == DIFFERENT && source == GLOBAL)
        different_global<<<grid, block>>>(n, d_x, d_y, d_c);
    else if (access == DIFFERENT)
        different_argument<<<grid, block>>>(n, d_x, d_y, h_c);
    else if (source == CONSTANT)
        stream_constant<<<grid, block>>>(n, d_x, d_y);
    else if (source == GLOBAL)
        stream_global<<<grid, block>>>(n, d_x, d_y, d_c);
    else
        stream_argument<<<grid, block>>>(n, d_x, d_y, h_c);
    CUDA_CHECK_LAUNCH();
}

static double expected(int access, size_t i, int block)
{
    double v = h_x[i];
    if (access == STREAM)
        return (double)h_c.c[0] * v + h_c.c[1];
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        for (size_t k = 0; k < TERMS; k++)
            sum = sum * v + h_c.c[access == SAME ? k : (k + i % (size_t)block) % TERMS];
        v = sum;
    }
    return v;
}

// The three sources on one access pattern; ms[SOURCES] gets the medians.
static void show_access(const char *title, int access, size_t n, int block, double *ms)
{
    static const char *const names[] = {"__constant__", "global, __ldg", "kernel argument"};
    unsigned grid = (unsigned)((n + block - 1) / block);
    size_t checked_step = n > 1 << 16 ? 61 : 1; // the reference in double is slow: a part of them
    report_table(title, NULL);
    for (int source = 0; source < SOURCES; source++) {
        struct timing t;
        POISON_DEVICE(d_y, n * sizeof(float));
        MEASURE_GPU (t, common_options.reps)
            launch(access, source, grid, block, n);
        CUDA_CHECK(cudaMemcpy(h_y, d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
        struct verifier v = verify_begin(names[source], 1e-4, 1e-6);
        for (size_t i = 0; i < n; i += checked_step)
            verify_value(&v, i, h_y[i], expected(access, i, block));
        int right = verify_end(&v);
        if (source == CONSTANT) // the others must agree with the first in every value
            memcpy(h_first, h_y, n * sizeof(float));
        v = verify_begin(names[source], 1e-4, 1e-6);
        for (size_t i = 0; i < n; i++)
            verify_value(&v, i, h_y[i], h_first[i]);
        right &= verify_end(&v);
        ms[source] = t.median_ms;
        if (access == STREAM)
            report_bandwidth(names[source], t, 2.0 * (double)n * sizeof(float), right);
        else
            report_flops(names[source], t, 2.0 * TERMS * ROUNDS * (double)n, right);
    }
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 22, 1 << 10), stream = default_size(1 << 26, 1 << 18);
    int block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, 1 << 28, "threads that apply the polynomial"),
        OPTION_SIZE("stream", &stream, 1, 1 << 30, "floats of the kernel that waits for memory"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/constant_memory",
                 "coefficients from constant memory, from global memory, from the argument",
                 options);
    size_t most = n > stream ? n : stream, bytes = most * sizeof(float);
    require_device_memory(most, 2 * sizeof(float), n > stream ? "--n" : "--stream");
    h_x = (float *)host_malloc(bytes);
    h_y = (float *)host_malloc(bytes);
    h_first = (float *)host_malloc(bytes);
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    CUDA_CHECK(cudaMalloc(&d_c, sizeof(h_c)));
    fill_random(h_x, most, 1);
    fill_random(h_c.c, TERMS, 2);
    for (int k = 0; k < TERMS; k++) // |p(v)| < 1 for |v| < 1: the rounds stay within range
        h_c.c[k] /= TERMS;
    CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_c, &h_c, sizeof(h_c), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpyToSymbol(d_constant, &h_c, sizeof(h_c)));

    double ms[ACCESSES][SOURCES];
    show_access("all lanes the same coefficient", SAME, n, block, ms[SAME]);
    show_access("each lane another one", DIFFERENT, n, block, ms[DIFFERENT]);
    show_access("a kernel that waits for memory", STREAM, stream, block, ms[STREAM]);
    if (DEVICE_IS_CPU) {
        printf(
            "\nThe values are right. A CPU has no constant cache: its times do not tell the three "
            "apart.\n");
    } else {
        double same = ms[SAME][GLOBAL] / ms[SAME][CONSTANT];
        double different = ms[DIFFERENT][CONSTANT] / ms[DIFFERENT][GLOBAL];
        double streaming = ms[STREAM][CONSTANT] / ms[STREAM][GLOBAL];
        const char *streamed = fabs(streaming - 1) < 0.05 ? "it brings nothing" : "it matters here";
        printf(
            "\nAll lanes the same: global memory takes %.2f times as long as constant memory. Each "
            "lane another one:\nconstant memory takes %.2f times as long as global memory. While "
            "the "
            "kernel waits for memory: %.2f times,\n%s.\n",
            same, different, streaming, streamed);
        report_number("same_global_over_constant", same);
        report_number("different_constant_over_global", different);
        report_number("stream_constant_over_global", streaming);
    }
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    CUDA_CHECK(cudaFree(d_c));
    free(h_x);
    free(h_y);
    free(h_first);
    return lesson_end();
}
