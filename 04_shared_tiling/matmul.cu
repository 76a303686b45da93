// matmul: C = A x B in fp32, nine times. Each rung of the ladder is a file matmul_N_*.cuh and one
// idea further than the one before; the last rung competes with the vendor's library.
//
// Predict before you run it: all rungs do the same multiplications. How much faster than rung 1 is
// rung 9, and which single rung brings most?
//
// usage: matmul [--size 4096 | --m M --n N --k K] [--kernel N] [--all]   (--help)
// sanitizer: --m 130 --n 260 --k 67
#include "../common/cublas.h"
#include "matmul.cuh"
#include "matmul_1_uncoalesced.cuh"
#include "matmul_2_coalesced.cuh"
#include "matmul_3_shared.cuh"
#include "matmul_4_column.cuh"
#include "matmul_5_rectangle.cuh"
#include "matmul_6_vector.cuh"
#include "matmul_7_overlapped.cuh"
#include "matmul_8_tuned.cuh"
#include "matmul_9_even_shares.cuh"

enum { MAX_SIDE = 1 << 20, RUNGS = 9, SAMPLED_ROWS = 16 };

struct rung {
    const char *name, *change;
    void (*launch)(int m, int n, int k, const float *a, const float *b, float *c);
    const void *kernel;
    int threads, shared_bytes, dynamic_bytes;
    int reuse_m, reuse_n; // the tile for which a float of A or B is fetched once
};
#define RUNG(i, name, reuse_m, reuse_n, dynamic_bytes, change)                                     \
    {                                                                                              \
        name, change, rung_##i::launch, (const void *)rung_##i::matmul, rung_##i::THREADS,         \
            rung_##i::SHARED_BYTES, dynamic_bytes, reuse_m, reuse_n                                \
    }
static const struct rung rungs[RUNGS] = {
    RUNG(1, "1 uncoalesced", 1, 1, 0, "one thread, one result; neighbours in different rows"),
    RUNG(2, "2 coalesced", 1, 1, 0, "neighbours side by side in a row: x and y exchanged"),
    RUNG(3, "3 shared tile", rung_3::TILE_M, rung_3::TILE_N, 0,
         "tiles are fetched once a block, and read from shared memory"),
    RUNG(4, "4 column a thread", rung_4::TILE_M, rung_4::TILE_N, 0,
         "8 results a thread: a float of B stays in a register for 8"),
    RUNG(5, "5 rectangle a thread", rung_5::TILE_M, rung_5::TILE_N, 0,
         "8 x 8 results a thread: 64 multiply-adds for 16 floats"),
    RUNG(6, "6 vector loads", rung_6::TILE_M, rung_6::TILE_N, 0,
         "16 bytes an instruction; the tile of A transposed"),
    RUNG(7, "7 overlapped loads", rung_7::TILE_M, rung_7::TILE_N, 0,
         "cp.async fills the next tiles while these are multiplied"),
    RUNG(8, "8 tuned shape", rung_8::TILE_M, rung_8::TILE_N, rung_8::SHARED_BYTES,
         "8 x 16 a thread, operands one step ahead"),
    RUNG(9, "9 even shares", rung_8::TILE_M, rung_8::TILE_N, rung_8::SHARED_BYTES,
         "tiles cut along k, so that no SM runs out of work"),
};

// The product in double, for all rows or, when that would take long, for some of them.
struct reference {
    size_t rows, m, n;
    double *values; // rows x n
};

static size_t reference_row(const struct reference *r, size_t i)
{
    return r->rows == r->m ? i : i * (r->m - 1) / (r->rows - 1); // first, last, evenly between
}

static struct reference reference_product(size_t m, size_t n, size_t k, const float *a,
                                          const float *b)
{
    const double few = 1 << 27; // multiply-adds: a fraction of a second
    struct reference r = {m, m, n, NULL};
    if ((double)m * n * k > few && m > SAMPLED_ROWS)
        r.rows = SAMPLED_ROWS;
    r.values = (double *)host_malloc(r.rows * n * sizeof(double));
    for (size_t e = 0; e < r.rows * n; e++)
        r.values[e] = 0;
    for (size_t l = 0; l < k; l++) // outermost, so that B is read once
        for (size_t i = 0; i < r.rows; i++) {
            double factor = a[reference_row(&r, i) * k + l];
            for (size_t j = 0; j < n; j++)
                r.values[i * n + j] += factor * b[l * n + j];
        }
    printf("reference: %zu of %zu rows in double%s\n", r.rows, m,
           r.rows == m ? "" : " (the first, the last, and evenly spread between them)");
    return r;
}

// The rounding errors of k additions grow like k x 2^-24 x the sum's typical size over sqrt(k); with
// factors in [-1, 1) that stays below k x 2^-22. One product left out is about 0.25.
static int verify_product(const char *name, const struct reference *r, size_t k, const float *d_c)
{
    struct verifier v = verify_begin(name, 0, ldexp((double)k, -22));
    float *row = (float *)host_malloc(r->n * sizeof(float));
    for (size_t i = 0; i < r->rows; i++) {
        size_t first = reference_row(r, i) * r->n;
        CUDA_CHECK(cudaMemcpy(row, d_c + first, r->n * sizeof(float), cudaMemcpyDeviceToHost));
        for (size_t j = 0; j < r->n; j++)
            verify_value(&v, first + j, row[j], r->values[i * r->n + j]);
    }
    free(row);
    return verify_end(&v);
}

// Slow rungs get fewer timed runs: about two seconds in all.
static int reps_for(double seconds_a_run)
{
    const double budget = 2;
    double fit = seconds_a_run > 0 ? budget / seconds_a_run : common_options.reps;
    return fit >= common_options.reps ? common_options.reps : fit < 1 ? 1 : (int)fit;
}

static double percent(double part, double whole)
{
    return part > 0 && whole > 0 ? 100 * part / whole : NAN;
}

static float *matrix_on_device(float *h, size_t elements, uint64_t seed)
{
    float *d;
    fill_random(h, elements, seed);
    CUDA_CHECK(cudaMalloc(&d, elements * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d, h, elements * sizeof(float), cudaMemcpyHostToDevice));
    return d;
}

static struct timing time_cublas(struct cublas_library *blas, int m, int n, int k, const float *a,
                                 const float *b, float *c)
{
    struct timing t;
    const float one = 1, zero = 0;
    MEASURE_GPU (t, common_options.reps) // row-major C = A x B is column-major C' = B' x A'
        CUBLAS_CHECK(blas->sgemm(blas->handle, 0, 0, n, m, k, &one, b, n, a, k, &zero, c, n));
    return t;
}

static void print_resources(const struct rung *r)
{
    cudaFuncAttributes attributes;
    int blocks = 0, sm_threads = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, r->kernel));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, r->kernel, r->threads,
                                                             (size_t)r->dynamic_bytes));
    double intensity = 2.0 * r->reuse_m * r->reuse_n / (4.0 * (r->reuse_m + r->reuse_n));
    double occupancy = 100.0 * blocks * r->threads / sm_threads;
    printf("%-21s %6.2f %7d %7d", r->name, intensity, r->shared_bytes, r->threads);
    if (DEVICE_IS_CPU)
        printf(" %5s %7s", "-", "-");
    else
        printf(" %5d %5.1f %%", attributes.numRegs, occupancy);
    printf("  %s\n", r->change);
    const struct {
        const char *key;
        double value;
    } values[] = {{"flop per byte", intensity},
                  {"shared bytes", (double)r->shared_bytes},
                  {"registers", DEVICE_IS_CPU ? NAN : (double)attributes.numRegs},
                  {"occupancy percent", DEVICE_IS_CPU ? NAN : occupancy}};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "rung %.1s %s", r->name, values[i].key);
        report_number(name, values[i].value);
    }
}

int main(int argc, char **argv)
{
    size_t size = default_size(4096, 160);
    size_t sides[3] = {SIZE_NOT_GIVEN, SIZE_NOT_GIVEN, SIZE_NOT_GIVEN};
    int only = 0, all = 0;
    const struct option_spec options[] = {
        OPTION_SIZE("size", &size, 0, MAX_SIDE, "m, n and k alike"),
        OPTION_SIZE("m", &sides[0], 0, MAX_SIDE, "rows of A and C"),
        OPTION_SIZE("n", &sides[1], 0, MAX_SIDE, "columns of B and C"),
        OPTION_SIZE("k", &sides[2], 0, MAX_SIDE, "columns of A, rows of B"),
        OPTION_INT("kernel", &only, 0, RUNGS, "one rung only, 0: the whole ladder"),
        OPTION_FLAG("all", &all, "also rungs that take seconds a run at this size"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "04_shared_tiling/matmul", "C = A x B, a ladder of kernels", options);
    for (int i = 0; i < 3; i++)
        if (sides[i] == SIZE_NOT_GIVEN)
            sides[i] = size;
    int m = (int)sides[0], n = (int)sides[1], k = (int)sides[2];
    size_t a_size = sides[0] * sides[2], b_size = sides[2] * sides[1], c_size = sides[0] * sides[1];
    double flops = 2.0 * m * n * k; // a multiply-add counts two
    printf("C (%d x %d) = A (%d x %d) x B (%d x %d), %.4g flop\n", m, n, m, k, k, n, flops);
    if (c_size == 0) {
        printf("C has no elements: nothing to do\n");
        return lesson_end();
    }

    size_t largest_a = (size_t)round_up(m, rung_8::TILE_M) * round_up(k, rung_8::TILE_K);
    size_t largest_b = (size_t)round_up(k, rung_8::TILE_K) * round_up(n, rung_8::TILE_N);
    require_device_memory(a_size + b_size + c_size + largest_a + largest_b, sizeof(float),
                          "--size");
    float *h_a = (float *)host_malloc(a_size * sizeof(float));
    float *h_b = (float *)host_malloc(b_size * sizeof(float));
    float *d_a = matrix_on_device(h_a, a_size, 1), *d_b = matrix_on_device(h_b, b_size, 2), *d_c;
    CUDA_CHECK(cudaMalloc(&d_c, c_size * sizeof(float)));
    struct reference reference = reference_product(m, n, k, h_a, h_b);

    struct cublas_library blas;
    struct timing library = {0, 0, 0, 0};
    cublas_load(&blas);
    if (DEVICE_IS_CPU) // which rung is faster there says nothing about a GPU
        report_table("the ladder", NULL);
    else // step: times faster than the rung before
        report_table("the ladder", "% cuBLAS", "step", NULL);
    if (blas.handle && k > 0) {
        library = time_cublas(&blas, m, n, k, d_a, d_b, d_c);
        report_extra(100);
        report_flops("cublasSgemm (fp32)", library, flops,
                     verify_product("cublasSgemm", &reference, sides[2], d_c));
    }
    struct timing times[RUNGS] = {};
    for (int i = 0; i < RUNGS; i++) {
        const struct rung *r = &rungs[i];
        const double long_run = 1e12; // flop: beyond this rung 1 takes seconds
        if (only && only != i + 1)
            continue;
        if (i == 0 && flops > long_run && !all && !only) {
            printf("  %-32s left out at this size: --all runs it\n", r->name);
            continue;
        }
        int limit = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
        if (r->shared_bytes > limit) {
            printf("  %-32s needs %d bytes of shared memory a block, this device has %d\n", r->name,
                   r->shared_bytes, limit);
            continue;
        }
        POISON_DEVICE(d_c, c_size * sizeof(float));
        double begin = host_seconds();
        r->launch(m, n, k, d_a, d_b, d_c);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK_SYNC();
        int reps = reps_for(host_seconds() - begin);
        int right = verify_product(r->name, &reference, sides[2], d_c);
        POISON_DEVICE(d_c, c_size * sizeof(float));
        MEASURE_GPU (times[i], reps) {
            r->launch(m, n, k, d_a, d_b, d_c);
            CUDA_CHECK_LAUNCH();
        }
        right &= verify_product(r->name, &reference, sides[2], d_c);
        report_extra(percent(library.median_ms, times[i].median_ms));
        report_extra(i > 0 ? percent(times[i - 1].median_ms, times[i].median_ms) / 100 : NAN);
        report_flops(r->name, times[i], flops, right);
    }
    if (!blas.handle)
        printf("%% cuBLAS is empty: %s\n", blas.why_not);

    printf("\n%-21s %6s %7s %7s %5s %7s  what it changed\n", "what a rung takes", "flop/B",
           "shared", "threads", "regs", "occup.");
    for (int i = 0; i < RUNGS; i++)
        if (!only || only == i + 1)
            print_resources(&rungs[i]);
    printf(
        "flop/B: operations for one byte that a block fetches from global memory; shared: bytes a "
        "block\n");
    if (!DEVICE_IS_CPU && times[0].median_ms > 0 && times[RUNGS - 1].median_ms > 0)
        printf("\nThe same multiplications, %.0f times faster from rung 1 to rung %d.\n",
               times[0].median_ms / times[RUNGS - 1].median_ms, RUNGS);

    cublas_unload(&blas);
    CUDA_CHECK(cudaFree(d_a));
    CUDA_CHECK(cudaFree(d_b));
    CUDA_CHECK(cudaFree(d_c));
    free(h_a);
    free(h_b);
    free(reference.values);
    return lesson_end();
}
