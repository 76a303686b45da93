// scaling: the same vector addition by the CPU, by one GPU thread, by one block, by one block an SM
// and by the whole GPU.
//
// Predict before you run it: one GPU thread against one CPU core: which is faster, and by how much?
// And how many times faster than one GPU thread is the whole GPU?
//
// usage: scaling [--n SIZE] [--block N]
// sanitizer: --n 10003
#include "../common/lesson.h"

__global__ void add(size_t n, const float *a, const float *b, float *c)
{
    // A grid-stride loop: the same code is right with one thread and with a million.
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

static void add_on_cpu(size_t n, const float *a, const float *b, float *c)
{
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

struct vectors {
    size_t n; // elements allocated
    float *h_a, *h_b, *h_c, *d_a, *d_b, *d_c;
};

static int verify_sum(const char *what, size_t n, const struct vectors *v)
{
    // One rounding of a sum below 2, where floats lie 2^-23 apart: at most 2^-24 = 6e-8.
    struct verifier check = verify_begin(what, 0, 6e-8);
    for (size_t i = 0; i < n; i++)
        verify_value(&check, i, v->h_c[i], (double)v->h_a[i] + v->h_b[i]);
    return verify_end(&check);
}

// Returns ns an element.
static double report_run(const char *name, double threads, size_t n, struct timing t, int right)
{
    double ns = t.median_ms * 1e6 / (double)n;
    report_extra((double)n);
    report_extra(threads);
    report_extra(ns);
    if (threads > 0)
        report_bandwidth(name, t, 3.0 * sizeof(float) * (double)n, right);
    else // the limit of the device's memory says nothing about the host's
        report_rate(name, t, 3.0 * sizeof(float) * (double)n, "bytes", "GB/s", 1e9, 0, right);
    return ns;
}

static double run_on_cpu(size_t n, struct vectors *v)
{
    struct timing t;
    memset(v->h_c, 0xFF, n * sizeof(float)); // NaN
    add_on_cpu(n, v->h_a, v->h_b, v->h_c);
    int right = verify_sum("CPU", n, v);
    MEASURE_HOST (t, common_options.reps) {
        add_on_cpu(n, v->h_a, v->h_b, v->h_c);
    }
    return report_run("the CPU, one core", 0, n, t, right);
}

static double run_on_gpu(const char *name, unsigned grid, int block, size_t n, struct vectors *v)
{
    struct timing t;
    size_t bytes = n * sizeof(float);
    POISON_DEVICE(v->d_c, bytes);
    add<<<grid, block>>>(n, v->d_a, v->d_b, v->d_c);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(v->h_c, v->d_c, bytes, cudaMemcpyDeviceToHost));
    int right = verify_sum(name, n, v);
    POISON_DEVICE(v->d_c, bytes);
    MEASURE_GPU (t, common_options.reps) {
        add<<<grid, block>>>(n, v->d_a, v->d_b, v->d_c);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpy(v->h_c, v->d_c, bytes, cudaMemcpyDeviceToHost));
    right &= verify_sum(name, n, v);
    return report_run(name, (double)grid * block, n, t, right);
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 18);
    int block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, MAX_ELEMENTS, "elements for the CPU and for the whole GPU"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/scaling", "one vector addition, ever more threads",
                 options);
    size_t cover = (n + block - 1) / block, bytes = n * sizeof(float);
    require_device_memory(n, 3 * sizeof(float), "--n");
    require_grid(n, block);

    struct vectors v = {n, NULL, NULL, NULL, NULL, NULL, NULL};
    v.h_a = (float *)host_malloc(bytes);
    v.h_b = (float *)host_malloc(bytes);
    v.h_c = (float *)host_malloc(bytes);
    fill_random(v.h_a, n, 1);
    fill_random(v.h_b, n, 2);
    CUDA_CHECK(cudaMalloc(&v.d_a, bytes));
    CUDA_CHECK(cudaMalloc(&v.d_b, bytes));
    CUDA_CHECK(cudaMalloc(&v.d_c, bytes));
    CUDA_CHECK(cudaMemcpy(v.d_a, v.h_a, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(v.d_b, v.h_b, bytes, cudaMemcpyHostToDevice));

    // Few threads get fewer elements, or they would be at it for minutes. Compare ns/element.
    unsigned warp = (unsigned)device_attribute(cudaDevAttrWarpSize);
    report_table("c = a + b", "elements", "threads", "ns/element", NULL);
    double cpu = run_on_cpu(n, &v);
    double thread = run_on_gpu("one thread", 1, 1, at_most(n, 1 << 16), &v);
    run_on_gpu("one warp", 1, (int)warp, at_most(n, 1 << 20), &v);
    run_on_gpu("one block", 1, block, at_most(n, 1 << 22), &v);
    run_on_gpu("one block an SM", (unsigned)device_facts.sm_count, block, n, &v);
    double whole = run_on_gpu("one thread an element", (unsigned)cover, block, n, &v);

    if (DEVICE_IS_CPU)
        printf("\nOn a GPU the column ns/element falls by orders of magnitude; here every row is "
               "this CPU.\n");
    else
        printf("\nOne GPU thread takes %.0f times as long as one CPU core; the whole GPU is %.0f "
               "times as fast as one of\nits threads, and %.1f times as fast as the core.\n",
               thread / cpu, thread / whole, cpu / whole);
    report_number("cpu_ns", cpu);
    report_number("one_thread_ns", thread);
    report_number("whole_grid_ns", whole);

    CUDA_CHECK(cudaFree(v.d_a));
    CUDA_CHECK(cudaFree(v.d_b));
    CUDA_CHECK(cudaFree(v.d_c));
    free(v.h_a);
    free(v.h_b);
    free(v.h_c);
    return lesson_end();
}
