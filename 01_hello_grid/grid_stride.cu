// grid_stride: one kernel that is right for any n and any grid, because each thread walks on by the
// size of the whole grid until it is past the end.
//
// Predict before you run it: which is faster, a grid that just fills the GPU, whose threads take
// many elements each, or one thread an element? And does a grid larger than the data do harm?
//
// usage: grid_stride [--n SIZE] [--grid N] [--block N]     try --n 0, --n 1, --n 3G
// sanitizer: --n 10003
#include "../common/lesson.h"

// What one visit adds to element i: 1 to 128, never 0. An element left out or visited twice has
// another value than one visited once.
static __host__ __device__ unsigned char mark_of(size_t i)
{
    return (unsigned char)(1 + ((i ^ i >> 7) & 127));
}

__global__ void add_mark(size_t n, unsigned char *data)
{
    size_t stride = (size_t)gridDim.x * blockDim.x; // how many threads the grid has
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = (unsigned char)(data[i] + mark_of(i));
}

// The number of a thread, calculated in 32 bits (what blockIdx.x * blockDim.x + threadIdx.x is)
// and in 64. The arguments have the types of the built-in variables.
__global__ void number_of_thread(unsigned block, unsigned block_size, unsigned thread,
                                 unsigned *in_32_bits, size_t *in_64_bits)
{
    *in_32_bits = block * block_size + thread;
    *in_64_bits = (size_t)block * block_size + thread;
}

// Every element after `visits` runs of the kernel, from all-zero memory.
static int verify_visits(const char *when, size_t n, const unsigned char *data, int visits)
{
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < n; i++)
        if (data[i] != (unsigned char)(visits * mark_of(i)) && wrong++ == 0)
            first = i;
    return check_that(wrong == 0, "%s: %zu of %zu elements are wrong, the first at [%zu]", when,
                      wrong, n, first);
}

static double measure_grid(const char *name, unsigned grid, int block, size_t n,
                           unsigned char *d_data, unsigned char *h_data)
{
    struct timing t;
    CUDA_CHECK(cudaMemset(d_data, 0, n));
    // n = 0 needs no special case: the grid has its blocks, and no thread enters the loop
    add_mark<<<grid, block>>>(n, d_data);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemcpy(h_data, d_data, n, cudaMemcpyDeviceToHost));
    int right = verify_visits(name, n, h_data, 1);

    MEASURE_GPU (t, common_options.reps) {
        add_mark<<<grid, block>>>(n, d_data);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpy(h_data, d_data, n, cudaMemcpyDeviceToHost));
    right &= verify_visits(name, n, h_data, common_options.reps + 2);
    report_extra(grid);
    report_extra((double)n / ((double)grid * block));
    report_bandwidth(name, t, 2.0 * (double)n, right); // a byte read and a byte written
    return t.median_ms;
}

static void show_32_bit_trap(void)
{
    unsigned *d_32, in_32_bits;
    size_t *d_64, in_64_bits;
    unsigned block_size = 1024, block = (unsigned)(((size_t)UINT32_MAX + 1) / block_size);
    CUDA_CHECK(cudaMalloc(&d_32, sizeof(*d_32)));
    CUDA_CHECK(cudaMalloc(&d_64, sizeof(*d_64)));
    number_of_thread<<<1, 1>>>(block, block_size, 5, d_32, d_64);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&in_32_bits, d_32, sizeof(in_32_bits), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&in_64_bits, d_64, sizeof(in_64_bits), cudaMemcpyDeviceToHost));
    printf("\nthe 32-bit trap: thread 5 of block %u, blocks of %u threads\n", block, block_size);
    printf("  blockIdx.x * blockDim.x + threadIdx.x          = %u\n", in_32_bits);
    printf("  (size_t)blockIdx.x * blockDim.x + threadIdx.x  = %zu\n", in_64_bits);
    printf("  The built-in variables are 32-bit: their product wraps at 2^32 (an int index already "
           "at 2^31).\n");
    check_that(in_64_bits == (size_t)block * block_size + 5 && in_32_bits == 5,
               "the kernel calculated %u and %zu", in_32_bits, in_64_bits);
    CUDA_CHECK(cudaFree(d_32));
    CUDA_CHECK(cudaFree(d_64));
}

int main(int argc, char **argv)
{
    size_t n = default_size(((size_t)1 << 26) + 3, (1 << 18) + 3);
    int block = 256, only = 0;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 0, MAX_ELEMENTS, "elements, one byte each"),
        OPTION_INT("grid", &only, 0, 2147483647, "blocks of the grid; 0: several grids in turn"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/grid_stride", "any n with any grid", options);
    require_device_memory(n, 1, "--n");
    unsigned char *d_data, *h_data = (unsigned char *)host_malloc(n);
    CUDA_CHECK(cudaMalloc(&d_data, n ? n : 1)); // of 0 bytes CUDA makes a null pointer

    size_t cover = (n + block - 1) / block, most = (size_t)device_attribute(cudaDevAttrMaxGridDimX);
    size_t sms = (size_t)device_facts.sm_count;
    size_t resident = (size_t)device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / block;
    const struct {
        const char *name;
        size_t blocks;
    } grids[5] = {
        {"one block", 1}, // for small n only: it would take seconds
        {"one block an SM", sms},
        {"as many as are resident at once", sms * (resident ? resident : 1)},
        {"one element a thread", cover},
        {"twice as many threads as elements", 2 * cover},
    };
    double ms[5] = {0};
    report_table("bytes read + written", "blocks", "elements/thread", NULL);
    if (only)
        measure_grid("--grid", (unsigned)only, block, n, d_data, h_data);
    for (size_t i = 0; !only && i < 5; i++) {
        size_t blocks = grids[i].blocks ? grids[i].blocks : 1; // a grid has at least one block
        if ((i == 0 && n > ((size_t)1 << 22)) || blocks > most)
            continue;
        ms[i] = measure_grid(grids[i].name, (unsigned)blocks, block, n, d_data, h_data);
    }
    if (!DEVICE_IS_CPU && ms[2] > 0 && ms[4] > 0) // otherwise too few measured to compare
        printf("\nEvery grid gave the same result. The one that just fits the GPU took %.2f times "
               "the time of one thread\nan element, the one with twice as many threads as elements "
               "%.2f times: starting blocks costs, too.\n",
               ms[2] / ms[3], ms[4] / ms[3]);
    show_32_bit_trap();
    CUDA_CHECK(cudaFree(d_data));
    free(h_data);
    return lesson_end();
}
