// local_memory: what does not fit into registers lands in local memory: private to the thread like
// a register, but an address in the device's memory, reached through the caches. Two ways to get
// there by accident, and the cure of each. `cudaFuncGetAttributes` tells before anything runs.
//
// 1. An array whose index the compiler does not know: registers have no addresses.
// 2. More live values than the registers that __launch_bounds__ leaves to a thread: spilled.
//
// Predict before you run it: in each pair both kernels do the same comparisons or multiply-adds on
// the same values. Which of the two accidents costs more time?
//
// usage: local_memory [--n threads]
// sanitizer: --n 1k
#include "../common/lesson.h"

#ifdef __CUDACC_DEBUG__ // nvcc -G keeps every variable in local memory, for the debugger
enum { BUILT_FOR_DEBUGGER = 1 };
#else
enum { BUILT_FOR_DEBUGGER = 0 };
#endif

enum { BLOCK = 256, ITEMS = 16, VALUES = 128, ROUNDS = 16 };

// ---- 1. Every thread sorts ITEMS numbers: odd-even transposition, the same exchanges in both
// kernels.

__device__ void order(float *a, float *b)
{
    float low = fminf(*a, *b), high = fmaxf(*a, *b);
    *a = low;
    *b = high;
}

// `items` is always ITEMS, but the compiler does not know it: the loops stay loops, the index stays
// unknown, and `v` needs addresses: local memory.
__global__ void sort_unknown_index(size_t n, int items, const float *x, float *y)
{
    size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float v[ITEMS];
    if (t >= n)
        return;
    for (int i = 0; i < items; i++)
        v[i] = x[i * n + t]; // item i of all threads side by side: coalesced
    for (int pass = 0; pass < items; pass++)
        for (int i = pass % 2; i + 1 < items; i += 2)
            order(&v[i], &v[i + 1]);
    for (int i = 0; i < items; i++)
        y[i * n + t] = v[i];
}

// The cure: constant bounds, unrolled. Each v[i] is a register with a name of its own.
__global__ void sort_known_index(size_t n, const float *x, float *y)
{
    size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float v[ITEMS];
    if (t >= n)
        return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        v[i] = x[i * n + t];
#pragma unroll
    for (int pass = 0; pass < ITEMS; pass++)
#pragma unroll
        for (int i = pass % 2; i + 1 < ITEMS; i += 2)
            order(&v[i], &v[i + 1]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        y[i * n + t] = v[i];
}

// ---- 2. VALUES numbers that are all needed in every round.

__device__ __forceinline__ void mix_values(size_t n, int rounds, const float *x, float *y)
{
    size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float v[VALUES];
    if (t >= n)
        return;
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        v[i] = x[t] + i;
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            v[i] = 0.5f * v[i] + 0.25f * v[(i + 7) % VALUES];
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        sum += v[i];
    y[t] = sum;
}

// "A block may have 1024 threads": all of them must fit into the 65536 registers of an SM, which
// leaves 64 registers to each. (Without __launch_bounds__ the compiler takes up to 255, and it is
// the launch of 1024 threads that fails, with error 701.)
__global__ void __launch_bounds__(1024) mix_spilled(size_t n, int rounds, const float *x, float *y)
{
    mix_values(n, rounds, x, y);
}

// The cure: promise only the block size that is really used, and the compiler takes what it needs.
__global__ void __launch_bounds__(BLOCK)
    mix_in_registers(size_t n, int rounds, const float *x, float *y)
{
    mix_values(n, rounds, x, y);
}

// ---- the host's side

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int check_sorted(const char *what, size_t n, const float *h_x, const float *h_y)
{
    struct verifier v = verify_begin(what, 0, 0);
    for (size_t t = 0; t<n; t += n> 1 << 16 ? 17 : 1) {
        float items[ITEMS];
        for (size_t i = 0; i < ITEMS; i++)
            items[i] = h_x[i * n + t];
        qsort(items, ITEMS, sizeof(float), compare_floats);
        for (size_t i = 0; i < ITEMS; i++)
            verify_value(&v, i * n + t, h_y[i * n + t], items[i]);
    }
    return verify_end(&v);
}

static int check_mixed(const char *what, size_t n, const float *h_x, const float *h_y)
{
    struct verifier check = verify_begin(what, 1e-4, 1e-6);
    for (size_t t = 0; t<n; t += n> 1 << 16 ? 61 : 1) {
        double v[VALUES], sum = 0;
        for (int i = 0; i < VALUES; i++)
            v[i] = (double)h_x[t] + i;
        for (int r = 0; r < ROUNDS; r++)
            for (int i = 0; i < VALUES; i++)
                v[i] = 0.5 * v[i] + 0.25 * v[(i + 7) % VALUES];
        for (int i = 0; i < VALUES; i++)
            sum += v[i];
        verify_value(&check, t, h_y[t], sum);
    }
    return verify_end(&check);
}

// Registers and bytes of local memory of a kernel, as the compiler laid it out, into the next row.
static int show_attributes(const void *kernel)
{
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    report_extra(attributes.numRegs);
    report_extra((double)attributes.localSizeBytes);
    return (int)attributes.localSizeBytes;
}

static void begin_table(const char *title)
{
    if (DEVICE_IS_CPU)
        report_table(title, NULL);
    else
        report_table(title, "registers", "local B", NULL);
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 22, 1 << 12);
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, 1 << 26, "threads"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/local_memory",
                 "arrays and values that do not fit into registers", options);
    size_t count = n * ITEMS, bytes = count * sizeof(float);
    unsigned grid = (unsigned)((n + BLOCK - 1) / BLOCK);
    require_device_memory(n, 2 * ITEMS * sizeof(float), "--n");
    float *h_x = (float *)host_malloc(bytes), *h_y = (float *)host_malloc(bytes), *d_x, *d_y;
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    fill_random(h_x, count, 1);
    CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));

    static const char *const names[] = {"unknown index: local memory", "known index: registers",
                                        "bounds too tight: spilled",
                                        "as many registers as it needs"};
    const void *const kernels[] = {(const void *)sort_unknown_index, (const void *)sort_known_index,
                                   (const void *)mix_spilled, (const void *)mix_in_registers};
    double ms[4];
    int local[4];
    for (int k = 0; k < 4; k++) {
        struct timing t;
        if (k % 2 == 0)
            begin_table(k == 0 ? "16 numbers sorted by each thread" : "128 live values a thread");
        POISON_DEVICE(d_y, bytes);
        MEASURE_GPU (t, common_options.reps) {
            if (k == 0)
                sort_unknown_index<<<grid, BLOCK>>>(n, ITEMS, d_x, d_y);
            else if (k == 1)
                sort_known_index<<<grid, BLOCK>>>(n, d_x, d_y);
            else if (k == 2)
                mix_spilled<<<grid, BLOCK>>>(n, ROUNDS, d_x, d_y);
            else
                mix_in_registers<<<grid, BLOCK>>>(n, ROUNDS, d_x, d_y);
            CUDA_CHECK_LAUNCH();
        }
        CUDA_CHECK(cudaMemcpy(h_y, d_y, bytes, cudaMemcpyDeviceToHost));
        local[k] = show_attributes(kernels[k]);
        ms[k] = t.median_ms;
        if (k < 2) // x in, y out; what local memory moves besides is the price, not the work
            report_bandwidth(names[k], t, 2.0 * (double)bytes, check_sorted(names[k], n, h_x, h_y));
        else
            report_flops(names[k], t, (double)n * ROUNDS * VALUES * 3,
                         check_mixed(names[k], n, h_x, h_y));
    }
    if (DEVICE_IS_CPU) {
        printf("\nThe results are right. Registers and local memory are the GPU compiler's choice: "
               "on the "
               "CPU there is\nnothing to show of them.\n");
    } else {
        if (!BUILT_FOR_DEBUGGER)
            check_that(local[0] > 0 && local[1] == 0 && local[2] > 0 && local[3] == 0,
                       "local memory: %d, %d, %d, %d bytes; expected some, none, some, none",
                       local[0], local[1], local[2], local[3]);
        printf("\nAn unknown index makes the sort take %.1f times as long; the spilled registers "
               "make the "
               "mix take %.1f times\nas long. nvcc -Xptxas -v tells both when it compiles.\n",
               ms[0] / ms[1], ms[2] / ms[3]);
        report_number("unknown_index_slowdown", ms[0] / ms[1]);
        report_number("spill_slowdown", ms[2] / ms[3]);
    }
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    free(h_x);
    free(h_y);
    return lesson_end();
}
