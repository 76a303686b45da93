// divergence: half of the threads take one path, half the other. The work is the same in every row;
// what changes is which threads take which path: every second lane, every second pair, ... every
// second warp.
//
// Predict before you run it: the lanes of a warp share one instruction at a time. From which group
// size on does the branch cost nothing? And what does it cost below that?
//
// usage: divergence [--n SIZE] [--steps N] [--block N]
// sanitizer: --n 5000 --steps 33
#include "../common/lesson.h"

// Two loops of equal length that no compiler can make one of: p and q come as arguments, so that
// nothing can be calculated in advance.
static __host__ __device__ unsigned path_a(unsigned v, int steps, unsigned p, unsigned q)
{
    for (int s = 0; s < steps; s++)
        v = v * p + q;
    return v;
}

static __host__ __device__ unsigned path_b(unsigned v, int steps, unsigned q)
{
    for (int s = 0; s < steps; s++)
        v = v * v + q;
    return v;
}

__global__ void two_paths(size_t n, unsigned group, int steps, unsigned p, unsigned q,
                          const unsigned *in, unsigned *out)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    // Neighbours in groups: group = 1 sends even lanes one way and odd lanes the other, group = 32
    // whole warps. Where both ways are taken inside one warp, it walks one after the other, with the
    // lanes of the other switched off.
    if (threadIdx.x / group % 2 == 0)
        out[i] = path_a(in[i], steps, p, q);
    else
        out[i] = path_b(in[i], steps, q);
}

enum { INPUTS = 1024 }; // different inputs; more would only make the reference slower

// Any two odd numbers do; these are from Numerical Recipes' random generator.
static const unsigned factor = 1664525u, addend = 1013904223u;

static unsigned input_at(size_t i)
{
    return (unsigned)(i % INPUTS) * 2654435761u; // spread over all 32 bits
}

// Runs the kernel with this group size, checks it, adds the row; returns the median time.
static double measure_group(unsigned group, const char *name, size_t n, int block, int steps,
                            const unsigned *d_in, unsigned *d_out, unsigned *h_out)
{
    static unsigned want[2][INPUTS];
    unsigned grid = (unsigned)((n + block - 1) / block);
    struct timing t;
    for (unsigned k = 0; k < INPUTS; k++) {
        want[0][k] = path_a(input_at(k), steps, factor, addend);
        want[1][k] = path_b(input_at(k), steps, addend);
    }
    POISON_DEVICE(d_out, n * sizeof(unsigned));
    MEASURE_GPU (t, common_options.reps) {
        two_paths<<<grid, block>>>(n, group, steps, factor, addend, d_in, d_out);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpy(h_out, d_out, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin(name, 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, h_out[i], want[i % block / group % 2][i % INPUTS]);
    report_extra(group < (unsigned)block ? (double)group : NAN);
    report_rate(name, t, (double)n * steps, "steps", "Gstep/s", 1e9, 0, verify_end(&v));
    return t.median_ms;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 22, 1 << 14);
    int steps = (int)default_size(4096, 256), block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, (size_t)1 << 30, "threads"),
        OPTION_INT("steps", &steps, 1, 1 << 20, "steps of each path"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/divergence", "a branch within a warp and between warps",
                 options);
    size_t bytes = n * sizeof(unsigned);
    require_device_memory(n, 2 * sizeof(unsigned), "--n");
    unsigned *d_in, *d_out, *h_in = (unsigned *)host_malloc(bytes);
    unsigned *h_out = (unsigned *)host_malloc(bytes);
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    for (size_t i = 0; i < n; i++)
        h_in[i] = input_at(i);
    CUDA_CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));

    unsigned warp = (unsigned)device_attribute(cudaDevAttrWarpSize);
    double within = 0, between = 0;
    report_table("the two paths alternate every", "threads", NULL);
    for (unsigned group = 1; group <= 4 * warp; group *= 2) {
        char name[64];
        if (group < warp)
            snprintf(name, sizeof(name), "%u thread%s", group, group == 1 ? "" : "s");
        else
            snprintf(name, sizeof(name), "%u warp%s", group / warp, group == warp ? "" : "s");
        double ms = measure_group(group, name, n, block, steps, d_in, d_out, h_out);
        within = group < warp && ms > within ? ms : within;
        between = group == warp ? ms : between;
    }
    measure_group(1 << 30, "never: all take the same path", n, block, steps, d_in, d_out, h_out);

    double ratio = within / between;
    if (DEVICE_IS_CPU)
        printf(
            "\nOn the CPU backend threads run one after the other, each on its own path: nothing "
            "diverges,\nand the times mean nothing. On a GPU the rows above 1 warp and those below "
            "it differ.\n");
    else
        printf(
            "\nA branch inside a warp costs up to %.2f times the time of one along the borders of "
            "warps:\na warp that takes both paths walks both, one after the other.\n",
            ratio);
    report_number("within_to_between", DEVICE_IS_CPU ? NAN : ratio);
    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    free(h_in);
    free(h_out);
    return lesson_end();
}
