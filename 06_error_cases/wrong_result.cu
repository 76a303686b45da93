// wrong_result: no error is reported and the numbers are wrong - or right by luck. What finds these
// is compute-sanitizer (memcheck, initcheck) or the CPU backend's checks.
//
// Predict before you run it: a kernel writes 24 floats past the end of a cudaMalloc of 4000 bytes.
// What does cudaDeviceSynchronize() return?
//
// usage: wrong_result [CASE] [--fixed];   compute-sanitizer ./wrong_result CASE
#include "twins.h"

// ---- bounds_check
__global__ void fill_all(float *out, float value)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = value; // 4 blocks of 256 are 1024 threads, whatever n is
}

__global__ void fill_n(float *out, size_t n, float value)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) // the last block is rarely full
        out[i] = value;
}

enum { N = 1000, GRID = 4, BLOCK = 256 };

// Two arrays in one allocation, as every pool and every framework lays them out.
static int neighbours_overwritten(int check_bounds)
{
    float *d_pair, h_neighbour[N];
    int overwritten = 0;
    CUDA_CHECK(cudaMalloc(&d_pair, 2 * N * sizeof(float)));
    CUDA_CHECK(cudaMemset(d_pair, 0, 2 * N * sizeof(float)));
    if (check_bounds)
        fill_n<<<GRID, BLOCK>>>(d_pair, N, 7.0f);
    else
        fill_all<<<GRID, BLOCK>>>(d_pair, 7.0f);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_neighbour, d_pair + N, sizeof(h_neighbour), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        overwritten += h_neighbour[i] != 0;
    CUDA_CHECK(cudaFree(d_pair));
    return overwritten;
}

static void bounds_check_broken(void)
{
    int overwritten = neighbours_overwritten(0);
    float *d_alone;
    CUDA_CHECK(cudaMalloc(&d_alone, N * sizeof(float)));
    fill_all<<<GRID, BLOCK>>>(d_alone, 7.0f); // the same past the end of an allocation
    STEP(cudaGetLastError());
    STEP(cudaDeviceSynchronize()); // memory is mapped in large pages: 96 bytes are not noticed
    SYMPTOM(overwritten == GRID * BLOCK - N, "%d values of the array behind it were overwritten",
            overwritten);
    cudaFree(d_alone);
}

static void bounds_check_fixed(void)
{
    check_that(neighbours_overwritten(1) == 0, "the neighbour was overwritten");
    float *d_alone;
    CUDA_CHECK(cudaMalloc(&d_alone, N * sizeof(float)));
    fill_n<<<GRID, BLOCK>>>(d_alone, N, 7.0f);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaFree(d_alone));
}

// ---- index_overflow
// The index of thread `thread` in block `block` of a grid that has more than 2^32 threads; the same
// arithmetic as with blockIdx, blockDim and threadIdx, which are unsigned as well.
__global__ void indices(unsigned block, unsigned block_dim, unsigned thread, long long *narrow,
                        size_t *wide)
{
    *narrow = block * block_dim + thread; // a 32-bit product, widened when it is too late
    *wide = (size_t)block * block_dim + thread;
}

static void compute_indices(long long *narrow, size_t *wide)
{
    unsigned block = 20000000, block_dim = 256, thread = 5; // index 5,120,000,005
    long long *d_narrow;
    size_t *d_wide;
    CUDA_CHECK(cudaMalloc(&d_narrow, sizeof(*d_narrow)));
    CUDA_CHECK(cudaMalloc(&d_wide, sizeof(*d_wide)));
    indices<<<1, 1>>>(block, block_dim, thread, d_narrow, d_wide);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(narrow, d_narrow, sizeof(*narrow), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(wide, d_wide, sizeof(*wide), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_narrow));
    CUDA_CHECK(cudaFree(d_wide));
}

static void index_overflow_broken(void)
{
    long long narrow;
    size_t wide;
    compute_indices(&narrow, &wide);
    SYMPTOM((size_t)narrow != wide, "block 20000000, thread 5 would work on element %lld", narrow);
}

static void index_overflow_fixed(void)
{
    long long narrow;
    size_t wide;
    compute_indices(&narrow, &wide);
    printf("  with (size_t) before the product: element %zu\n", wide);
    check_that(wide == (size_t)20000000 * 256 + 5, "the index is %zu", wide);
}

// ---- uninitialized
__global__ void count_digits(const int *numbers, int n, int *counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[numbers[i] % 10], 1); // adds to whatever is there
}

// Counts the last digits of 0 to 999: 100 of each. Returns how many of the 10 counts are wrong.
static int wrong_counts(int clear_first)
{
    int *d_numbers, *d_counts, *d_before, h_numbers[N], h_counts[10], wrong = 0;
    for (int i = 0; i < N; i++)
        h_numbers[i] = i;
    CUDA_CHECK(cudaMalloc(&d_numbers, sizeof(h_numbers)));
    CUDA_CHECK(cudaMemcpy(d_numbers, h_numbers, sizeof(h_numbers), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMalloc(&d_before, sizeof(h_counts))); // somebody used this memory before us
    CUDA_CHECK(cudaMemset(d_before, 0x11, sizeof(h_counts)));
    CUDA_CHECK(cudaFree(d_before));
    CUDA_CHECK(cudaMalloc(&d_counts, sizeof(h_counts)));
    if (clear_first)
        CUDA_CHECK(cudaMemset(d_counts, 0, sizeof(h_counts)));
    count_digits<<<GRID, BLOCK>>>(d_numbers, N, d_counts);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_counts, d_counts, sizeof(h_counts), cudaMemcpyDeviceToHost));
    printf("  the last digit 0 was counted %d times, 100 is right\n", h_counts[0]);
    for (int i = 0; i < 10; i++)
        wrong += h_counts[i] != 100;
    CUDA_CHECK(cudaFree(d_numbers));
    CUDA_CHECK(cudaFree(d_counts));
    return wrong;
}

static void uninitialized_broken(void)
{
    int wrong = wrong_counts(0);
    SYMPTOM(wrong > 0, "%d of 10 counts are wrong", wrong);
}

static void uninitialized_fixed(void)
{
    check_that(wrong_counts(1) == 0, "counts are wrong");
}

static const struct twin twins[] = {
    TWIN(bounds_check),
    TWIN(index_overflow),
    TWIN(uninitialized),
};

TWINS_MAIN("06_error_cases/wrong_result", "no error, and wrong numbers", twins)
