// stencil_1d: out[i] = the weighted sum of in[i - radius] ... in[i + radius]. Neighbouring threads need
// almost the same inputs; a tile in shared memory with a halo at both ends fetches each once.
//
//     block 0       |  block 1                    |  block 2            radius 2, 8 threads a block
//     . . . . . . h h 0 1 2 3 4 5 6 7 h h . . . .
//                 halo: loaded by block 1 too, owned by its neighbours
//
// Predict before you run it: with radius 8 the kernel without a tile reads 17 floats a thread, the one
// with a tile a little more than one. How many times faster is it?
//
// usage: stencil_1d [--n N] [--radius R]   (--help)
// sanitizer: --n 1001
#include "../common/lesson.h"

enum { BLOCK = 256, MAX_RADIUS = 8 };
enum { EACH = 4, SPAN = BLOCK * EACH }; // unrolled: elements a thread, and a block

// Constant memory: all threads of a warp read the same weight at the same time, which it does at once.
__constant__ float weights[2 * MAX_RADIUS + 1];

// Elements outside of the array count as 0.
__global__ void stencil_global(size_t n, int radius, const float *in, float *out)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    // size_t knows no -1: the first and last neighbour are found by comparing, then subtracting
    int first = i < (size_t)radius ? -(int)i : -radius;
    int last = n - 1 - i < (size_t)radius ? (int)(n - 1 - i) : radius;
    float sum = 0;
    for (int d = first; d <= last; d++)
        sum += weights[radius + d] * in[i + d];
    out[i] = sum;
}

__global__ void stencil_tiled(size_t n, int radius, const float *in, float *out)
{
    __shared__ float tile[BLOCK + 2 * MAX_RADIUS];
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    int t = threadIdx.x, at = t + radius; // tile[at] is in[i]
    tile[at] = i < n ? in[i] : 0;
    if (t < radius) { // the first threads load both halos, one radius before and one block after
        tile[t] = i >= (size_t)radius ? in[i - radius] : 0;
        tile[at + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0;
    }
    __syncthreads(); // before anyone reads what its neighbours have loaded
    if (i >= n)      // not earlier: these threads, too, load and must reach the barrier
        return;
    float sum = 0;
    for (int d = -radius; d <= radius; d++)
        sum += weights[radius + d] * tile[at + d];
    out[i] = sum;
}

// The tile alone gains little: what the two kernels above wait for is instructions. Here the compiler
// knows the radius, so no loop is left, and a thread computes 4 neighbours: it reads their 4 + 2 radius
// inputs once, 16 bytes at a time. The halo is whole float4s, so that those are aligned.
template <int RADIUS> __global__ void stencil_unrolled(size_t n, int, const float *in, float *out)
{
    enum { HALO = (RADIUS + 3) / 4 * 4 };
    __shared__ float4 tile[(SPAN + 2 * HALO) / 4]; // float j of it is in[begin + j - HALO]
    size_t begin = (size_t)blockIdx.x * SPAN;
    int t = threadIdx.x;
#pragma unroll
    for (int j = t; j < SPAN + 2 * HALO; j += BLOCK) {
        size_t i = begin + j - HALO; // below 0 it becomes very large, and fails the test as well
        ((float *)tile)[j] = i < n ? in[i] : 0;
    }
    __syncthreads(); // before anyone reads what its neighbours have loaded
    float part[EACH + 2 * HALO], sum[EACH] = {};
#pragma unroll
    for (int q = 0; q < EACH + 2 * HALO; q += 4) {
        float4 four = tile[t + q / 4];
        part[q] = four.x, part[q + 1] = four.y, part[q + 2] = four.z, part[q + 3] = four.w;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int d = -RADIUS; d <= RADIUS; d++)
            sum[e] += weights[RADIUS + d] * part[HALO + e + d];
    size_t first = begin + t * EACH;
    if (first + EACH <= n)
        *(float4 *)(out + first) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    else
        for (int e = 0; e < EACH; e++)
            if (first + e < n)
                out[first + e] = sum[e];
}

typedef void (*stencil)(size_t n, int radius, const float *in, float *out);
static const stencil unrolled[MAX_RADIUS + 1] = {
    NULL,
    stencil_unrolled<1>,
    stencil_unrolled<2>,
    stencil_unrolled<3>,
    stencil_unrolled<4>,
    stencil_unrolled<5>,
    stencil_unrolled<6>,
    stencil_unrolled<7>,
    stencil_unrolled<8>,
};

static void reference_stencil(size_t n, int radius, const float *w, const float *in, double *want)
{
    for (size_t i = 0; i < n; i++) {
        want[i] = 0;
        for (int d = -radius; d <= radius; d++)
            if (d < 0 ? i >= (size_t)-d : i + d < n)
                want[i] += (double)w[d + radius] * in[i + d];
    }
}

static int verify_stencil(const char *name, size_t n, const double *want, const float *d_got,
                          float *h_got)
{
    struct verifier v = verify_begin(name, 0, 1e-5);
    CUDA_CHECK(cudaMemcpy(h_got, d_got, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, h_got[i], want[i]);
    return verify_end(&v);
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 25, 1 << 15);
    int only = 0;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 0, (size_t)1 << 38, "elements"),
        OPTION_INT("radius", &only, 0, MAX_RADIUS, "neighbours on each side, 0: 1, 2, 4 and 8"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "04_shared_tiling/stencil_1d", "a stencil with halo cells", options);
    if (n == 0) {
        printf("no elements: nothing to do\n");
        return lesson_end();
    }
    size_t bytes = n * sizeof(float);
    require_device_memory(n, 2 * sizeof(float), "--n");
    float *h_in = (float *)host_malloc(bytes), *h_out = (float *)host_malloc(bytes), *d_in, *d_out;
    double *want = (double *)host_malloc(n * sizeof(double));
    fill_random(h_in, n, 1);
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));

    enum { KERNELS = 3 };
    struct timing times[KERNELS];
    // loads: floats that are asked of global memory for each result
    report_table("kernel", "radius", "loads", NULL);
    int measured = 0; // the last radius
    for (int radius = only ? only : 1; radius <= (only ? only : MAX_RADIUS); radius *= 2) {
        const int halo = (radius + 3) / 4 * 4;
        measured = radius;
        const struct {
            const char *name;
            stencil run;
            int span; // results a block
            double loads;
        } kernels[KERNELS] = {
            {"without a tile", stencil_global, BLOCK, 2.0 * radius + 1},
            {"tile and halo", stencil_tiled, BLOCK, 1 + 2.0 * radius / BLOCK},
            {"4 a thread, unrolled", unrolled[radius], SPAN, 1 + 2.0 * halo / SPAN},
        };
        float h_weights[2 * MAX_RADIUS + 1] = {};
        for (int i = 0; i <= 2 * radius; i++) // no two alike: a shifted tile cannot pass as right
            h_weights[i] = (float)(i + 1) / (float)((2 * radius + 1) * (radius + 1));
        CUDA_CHECK(cudaMemcpyToSymbol(weights, h_weights, sizeof(h_weights)));
        reference_stencil(n, radius, h_weights, h_in, want);
        for (int k = 0; k < KERNELS; k++) {
            const unsigned grid = (unsigned)((n + kernels[k].span - 1) / kernels[k].span);
            POISON_DEVICE(d_out, bytes);
            kernels[k].run<<<grid, BLOCK>>>(n, radius, d_in, d_out);
            CUDA_CHECK_LAUNCH();
            int right = verify_stencil(kernels[k].name, n, want, d_out, h_out);
            POISON_DEVICE(d_out, bytes);
            MEASURE_GPU (times[k], common_options.reps) {
                kernels[k].run<<<grid, BLOCK>>>(n, radius, d_in, d_out);
                CUDA_CHECK_LAUNCH();
            }
            right &= verify_stencil(kernels[k].name, n, want, d_out, h_out);
            report_extra(radius);
            report_extra(kernels[k].loads);
            report_bandwidth(kernels[k].name, times[k], 2.0 * bytes, right);
        }
    }
    if (!DEVICE_IS_CPU)
        printf(
            "radius %d: with the tile %.0f %% of the time without one; unrolled as well, %.0f %%\n",
            measured, 100 * times[1].median_ms / times[0].median_ms,
            100 * times[2].median_ms / times[0].median_ms);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    free(h_in);
    free(h_out);
    free(want);
    return lesson_end();
}
