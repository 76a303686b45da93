// bad_launch: launches and calls that the runtime refuses. Nothing runs on the device, the process
// stays usable, and the error waits in cudaGetLastError() until somebody reads it.
//
// Predict before you run it: a kernel is launched with 1025 threads a block and nobody checks the
// launch. What does the cudaMemcpy that fetches the result return?
//
// usage: bad_launch [CASE] [--fixed]
#include "twins.h"

enum { N = 1000 };

__global__ void fill(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

static int *poisoned_ints(void)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(int)));
    POISON_DEVICE(d_out, N * sizeof(int)); // every int is -1 until a thread writes it
    return d_out;
}

// How many of the N values are not what fill() writes.
static int count_wrong(const int *d_out)
{
    int wrong = 0, h_out[N];
    CUDA_CHECK(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong += h_out[i] != i;
    return wrong;
}

static void fill_in_legal_blocks(int *d_out, int n)
{
    int block = 256, grid = (n + block - 1) / block;
    if (n > 0) { // nothing to do is no launch
        fill<<<grid, block>>>(d_out, n);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK_SYNC();
}

// ---- block_too_large
static void block_too_large_broken(void)
{
    int *d_out = poisoned_ints();
    int limit = device_attribute(cudaDevAttrMaxThreadsPerBlock);
    printf("  launching blocks of %d threads; this device takes %d\n", limit + 1, limit);
    fill<<<1, limit + 1>>>(d_out, N);
    RESULT(cudaGetLastError());
    STEP(cudaDeviceSynchronize()); // nothing was started, so there is nothing that failed
    CUDA_CHECK(cudaFree(d_out));
}

static void block_too_large_fixed(void)
{
    int *d_out = poisoned_ints();
    fill_in_legal_blocks(d_out, N); // more blocks instead of larger ones
    check_that(count_wrong(d_out) == 0, "values are wrong");
    CUDA_CHECK(cudaFree(d_out));
}

// ---- empty_grid
static void empty_grid_broken(void)
{
    int n = 0, block = 256, grid = (n + block - 1) / block;
    printf("  n = %d: the usual (n + block - 1) / block gives a grid of %d blocks\n", n, grid);
    fill<<<grid, block>>>(NULL, n);
    RESULT(cudaGetLastError());
}

static void empty_grid_fixed(void)
{
    fill_in_legal_blocks(NULL, 0);
    check_that(cudaGetLastError() == cudaSuccess, "an error is left");
}

// ---- unchecked_launch
static void unchecked_launch_broken(void)
{
    int *d_out = poisoned_ints(), h_out[N];
    fill<<<1, 4096>>>(d_out, N); // and no cudaGetLastError() after it
    cudaError_t sync = STEP(cudaDeviceSynchronize());
    cudaError_t copy = STEP(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    int untouched = 0;
    for (int i = 0; i < N; i++)
        untouched += h_out[i] == -1;
    SYMPTOM(sync == cudaSuccess && copy == cudaSuccess && untouched == N,
            "each call that was checked succeeded, and %d of %d values were never written",
            untouched, N);
    CUDA_CHECK(cudaFree(d_out));
}

static void unchecked_launch_fixed(void)
{
    int *d_out = poisoned_ints();
    fill<<<1, 4096>>>(d_out, N);
    cudaError_t launch = STEP(cudaGetLastError()); // the one line that was missing
    check_that(launch != cudaSuccess, "the bad launch went unnoticed");
    fill_in_legal_blocks(d_out, N);
    check_that(count_wrong(d_out) == 0, "values are wrong");
    CUDA_CHECK(cudaFree(d_out));
}

// ---- wrong_copy
enum { COPY_BYTES = 1 << 20 };

static void wrong_copy_broken(void)
{
    char *d_buffer, *h_buffer = (char *)host_malloc(4 * COPY_BYTES);
    CUDA_CHECK(cudaMalloc(&d_buffer, COPY_BYTES));
    STEP(cudaMemcpy(d_buffer, h_buffer, COPY_BYTES, cudaMemcpyDeviceToHost)); // wrong direction
    RESULT(cudaMemcpy(d_buffer, h_buffer, 4 * COPY_BYTES, cudaMemcpyHostToDevice)); // too long
    CUDA_CHECK(cudaFree(d_buffer));
    STEP(cudaFree(d_buffer)); // once more
    free(h_buffer);
}

static void wrong_copy_fixed(void)
{
    char *d_buffer, *h_buffer = (char *)calloc(COPY_BYTES, 1), first = 1;
    CUDA_CHECK(cudaMalloc(&d_buffer, COPY_BYTES));
    CUDA_CHECK(cudaMemcpy(d_buffer, h_buffer, COPY_BYTES, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(&first, d_buffer, 1, cudaMemcpyDeviceToHost));
    check_that(first == 0, "the copy brought %d", first);
    CUDA_CHECK(cudaFree(d_buffer));
    d_buffer = NULL; // cudaFree(NULL) does nothing: a second free becomes harmless
    CUDA_CHECK(cudaFree(d_buffer));
    free(h_buffer);
}

static const struct twin twins[] = {
    TWIN(block_too_large),
    TWIN(empty_grid),
    TWIN(unchecked_launch),
    TWIN(wrong_copy),
};

TWINS_MAIN("06_error_cases/bad_launch", "launches and calls that the runtime refuses", twins)
