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

static int verify_stencil(const char *name, size_t n, int radius, const float *w, const float *in,
                          const float *got)
{
    struct verifier v = verify_begin(name, 0, 1e-5);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int d = -radius; d <= radius; d++)
            if (d < 0 ? i >= (size_t)-d : i + d < n)
                sum += (double)w[d + radius] * in[i + d];
        verify_value(&v, i, got[i], sum);
    }
    return verify_end(&v);
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 15);
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
    fill_random(h_in, n, 1);
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));

    const struct {
        const char *name;
        void (*run)(size_t n, int radius, const float *in, float *out);
    } kernels[] = {{"without a tile", stencil_global}, {"tile and halo", stencil_tiled}};
    const unsigned grid = (unsigned)((n + BLOCK - 1) / BLOCK);
    double ratio = 0;
    report_table("kernel", "radius", "loads",
                 NULL); // loads: floats a thread asks global memory for
    for (int radius = only ? only : 1; radius <= (only ? only : MAX_RADIUS); radius *= 2) {
        float h_weights[2 * MAX_RADIUS + 1];
        struct timing times[2];
        for (int i = 0; i <= 2 * radius; i++) // no two alike: a shifted tile cannot pass as right
            h_weights[i] = (float)(i + 1) / (float)((2 * radius + 1) * (radius + 1));
        CUDA_CHECK(cudaMemcpyToSymbol(weights, h_weights, sizeof(h_weights)));
        for (int i = 0; i < 2; i++) {
            POISON_DEVICE(d_out, bytes);
            MEASURE_GPU (times[i], common_options.reps) {
                kernels[i].run<<<grid, BLOCK>>>(n, radius, d_in, d_out);
                CUDA_CHECK_LAUNCH();
            }
            CUDA_CHECK(cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost));
            report_extra(radius);
            report_extra(i == 0 ? 2 * radius + 1 : 1 + 2.0 * radius / BLOCK);
            report_bandwidth(kernels[i].name, times[i], 2.0 * bytes,
                             verify_stencil(kernels[i].name, n, radius, h_weights, h_in, h_out));
        }
        ratio = times[0].median_ms / times[1].median_ms;
    }
    if (!DEVICE_IS_CPU)
        printf("at the largest radius the tile makes it %.2f times faster%s\n", ratio,
               ratio < 2 ? ": the L1 cache already serves most of the repeated loads" : "");

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    free(h_in);
    free(h_out);
    return lesson_end();
}
