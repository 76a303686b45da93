// saxpy_variants: y = a*x + y written in three ways, beside cuBLAS, and over all block sizes. The
// work is the same 12 bytes an element; what changes is how many are in flight at once.
//
// Predict before you run it: does a thread that takes four elements in one 16-byte load beat four
// threads that take one each? And is a block of 32 threads as good as one of 256?
//
// usage: saxpy_variants [--n SIZE] [--block N] [--offset K] [--brief]
// sanitizer: --n 10003
#include "../common/cublas.h"
#include "../common/lesson.h"
#include <limits.h>

__global__ void saxpy_one(size_t n, float a, const float *x, float *y)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// Any grid will do: each thread walks on by the number of threads in the grid.
__global__ void saxpy_grid_stride(size_t n, float a, const float *x, float *y)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = a * x[i] + y[i];
}

// Four elements a thread as one float4. x and y must lie on 16-byte boundaries (cudaMalloc's do),
// otherwise the load is error 716, misaligned address.
__global__ void saxpy_float4(size_t n, float a, const float *x, float *y)
{
    size_t i = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 xs = *(const float4 *)(x + i), ys = *(float4 *)(y + i);
        ys.x = a * xs.x + ys.x;
        ys.y = a * xs.y + ys.y;
        ys.z = a * xs.z + ys.z;
        ys.w = a * xs.w + ys.w;
        *(float4 *)(y + i) = ys;
    } else { // the last thread with work has one to three elements left, the ones after it none
        for (; i < n; i++)
            y[i] = a * x[i] + y[i];
    }
}

enum variant { ONE, GRID_STRIDE, FLOAT4, CUBLAS };

static const float a = 2.0f;
static struct cublas_library blas;

// Whole numbers, never 0: every element changes with every launch, and float holds all results
// exactly (at most 1002 launches of 2 * 1024, which is below 2^24).
static float x_at(size_t i)
{
    return (float)(1 + (i * 2654435761u >> 7) % 1024);
}

static float y_at(size_t i)
{
    return (float)(i % 1000);
}

static size_t blocks_for(enum variant v, size_t n, int block)
{
    size_t resident = (size_t)device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / block;
    if (v == GRID_STRIDE) // as many threads as the GPU can hold at once
        return (size_t)device_facts.sm_count * (resident ? resident : 1);
    size_t per_block = v == FLOAT4 ? 4 * (size_t)block : (size_t)block;
    return (n + per_block - 1) / per_block;
}

static void launch(enum variant v, size_t n, int block, const float *d_x, float *d_y)
{
    unsigned grid = (unsigned)blocks_for(v, n, block);
    if (v == ONE)
        saxpy_one<<<grid, block>>>(n, a, d_x, d_y);
    else if (v == GRID_STRIDE)
        saxpy_grid_stride<<<grid, block>>>(n, a, d_x, d_y);
    else if (v == FLOAT4)
        saxpy_float4<<<grid, block>>>(n, a, d_x, d_y);
    else
        CUBLAS_CHECK(blas.saxpy(blas.handle, (int)n, &a, d_x, 1, d_y, 1));
    CUDA_CHECK_LAUNCH();
}

struct vectors {
    size_t n;
    float *h_y0, *h_y, *d_x, *d_y; // h_y0: what y is before each variant
};

static int verify_launches(const char *name, const struct vectors *s, int launches)
{
    CUDA_CHECK(cudaMemcpy(s->h_y, s->d_y, s->n * sizeof(float), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin(name, 0, 0);
    for (size_t i = 0; i < s->n; i++)
        verify_value(&v, i, s->h_y[i], (double)launches * a * x_at(i) + y_at(i));
    return verify_end(&v);
}

// Returns GB/s; 0 when this variant cannot run, with a line that says why.
static double measure(enum variant v, const char *name, int block, const struct vectors *s)
{
    struct timing t;
    const char *why_not = NULL;
    if (v == CUBLAS && !blas.handle)
        why_not = blas.why_not;
    else if (v == CUBLAS && s->n > INT_MAX)
        why_not = "cublasSaxpy counts its elements in an int (CUDA 12 added cublasSaxpy_64)";
    else if (v == FLOAT4 &&
             ((uintptr_t)s->d_x % sizeof(float4) || (uintptr_t)s->d_y % sizeof(float4)))
        why_not = "x and y do not lie on a 16-byte boundary";
    else if (v != CUBLAS &&
             blocks_for(v, s->n, block) > (size_t)device_attribute(cudaDevAttrMaxGridDimX))
        why_not = "it needs more blocks than a grid can have";
    if (why_not) {
        printf("  %-32s left out: %s\n", name, why_not);
        return 0;
    }
    CUDA_CHECK(cudaMemcpy(s->d_y, s->h_y0, s->n * sizeof(float), cudaMemcpyHostToDevice));
    launch(v, s->n, block, s->d_x, s->d_y);
    int right = verify_launches(name, s, 1);
    MEASURE_GPU (t, common_options.reps) {
        launch(v, s->n, block, s->d_x, s->d_y);
    }
    right &= verify_launches(name, s, common_options.reps + 2);
    double bytes = 3.0 * sizeof(float) * (double)s->n; // reads x and y, writes y
    double blocks = (double)blocks_for(v, s->n, block);
    report_extra(v == CUBLAS ? NAN : block); // cuBLAS makes its own choice
    report_extra(v == CUBLAS ? NAN : blocks / (1e3 * t.median_ms));
    report_bandwidth(name, t, bytes, right);
    return bytes / (t.median_ms * 1e6);
}

static void sweep_blocks(enum variant v, const char *title, const struct vectors *s)
{
    int most = device_attribute(cudaDevAttrMaxThreadsPerBlock);
    int warp = device_attribute(cudaDevAttrWarpSize);
    double started[2] = {0}; // blocks a second in the first two rows
    report_table(title, "block", "blocks/us", NULL);
    for (int block = warp; block <= most; block *= 2) {
        char name[64];
        snprintf(name, sizeof(name), "%d threads", block);
        double rate = measure(v, name, block, s);
        if (block <= 2 * warp)
            started[block / warp - 1] = rate / block;
    }
    // Twice the block and still as many blocks a second: their start is what takes the time.
    if (!DEVICE_IS_CPU && started[0] > 0 && fabs(started[1] / started[0] - 1) < 0.1)
        printf("  The smallest blocks start at the same rate: starting them is the bottleneck, not "
               "the memory.\n");
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 18), offset = 0;
    int block = 256, brief = 0;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, MAX_ELEMENTS, "elements"),
        OPTION_INT("block", &block, 1, 1024, "threads a block in the first table"),
        OPTION_SIZE("offset", &offset, 0, 1024, "x and y begin this many floats behind a boundary"),
        OPTION_FLAG("brief", &brief, "the first table only"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "02_saxpy/saxpy_variants", "y = a*x + y in three ways, and cuBLAS",
                 options);
    struct vectors s = {n, NULL, NULL, NULL, NULL};
    float *d_x, *d_y, *h_x = (float *)host_malloc(n * sizeof(float));
    require_device_memory(n + offset, 2 * sizeof(float), "--n");
    s.h_y0 = (float *)host_malloc(n * sizeof(float));
    s.h_y = (float *)host_malloc(n * sizeof(float));
    CUDA_CHECK(cudaMalloc(&d_x, (n + offset) * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_y, (n + offset) * sizeof(float)));
    s.d_x = d_x + offset;
    s.d_y = d_y + offset;
    for (size_t i = 0; i < n; i++) {
        h_x[i] = x_at(i);
        s.h_y0[i] = y_at(i);
    }
    CUDA_CHECK(cudaMemcpy(s.d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice));

    cublas_load(&blas);
    report_table("four ways", "block", "blocks/us", NULL);
    double one = measure(ONE, "one element a thread", block, &s);
    measure(GRID_STRIDE, "grid-stride loop", block, &s);
    double wide = measure(FLOAT4, "float4: four elements a thread", block, &s);
    double library = measure(CUBLAS, "cublasSaxpy", block, &s);
    cublas_unload(&blas);

    if (!brief) {
        sweep_blocks(ONE, "one element a thread, blocks of", &s);
        sweep_blocks(FLOAT4, "float4, blocks of", &s);
    }

    if (wide > 0) {
        printf("\nfloat4 is %.2f times as fast as one element a thread", wide / one);
        report_number("float4_to_one", wide / one);
        if (library > 0) {
            printf(", %.2f times as fast as cublasSaxpy", wide / library);
            report_number("float4_to_cublas", wide / library);
        }
        if (device_facts.memory_limit_gbs > 0)
            printf(", at %.1f %% of what the memory can move",
                   100 * wide / device_facts.memory_limit_gbs);
        printf(DEVICE_IS_CPU ? " on this CPU; a GPU gives other ratios.\n" : ".\n");
    }

    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    free(h_x);
    free(s.h_y0);
    free(s.h_y);
    return lesson_end();
}
