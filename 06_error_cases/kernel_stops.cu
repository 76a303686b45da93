// kernel_stops: kernels that end themselves, or leave their own stack or shared memory.
//
// Predict before you run it: a kernel asserts that an index is in range, and it is not. What does
// the host see, and what is printed?
//
// usage: kernel_stops [CASE] [--fixed]
#include "twins.h"
#include <assert.h>

// ---- device_assert
__global__ void look_up(const int *table, int size, const int *index, int *out)
{
    assert(index[threadIdx.x] >= 0 && index[threadIdx.x] < size);
    out[threadIdx.x] = table[index[threadIdx.x]];
}

// Looks up one index that may lie outside of the table of 4; returns what the kernel's end says.
static cudaError_t look_up_index(int index, int *value)
{
    int *d_memory, h_memory[8] = {10, 11, 12, 13, index, 0, 0, 0};
    CUDA_CHECK(cudaMalloc(&d_memory, sizeof(h_memory)));
    CUDA_CHECK(cudaMemcpy(d_memory, h_memory, sizeof(h_memory), cudaMemcpyHostToDevice));
    look_up<<<1, 1>>>(d_memory, 4, d_memory + 4, d_memory + 5);
    STEP(cudaGetLastError());
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = cudaMemcpy(value, d_memory + 5, sizeof(int), cudaMemcpyDeviceToHost);
    if (error == cudaSuccess)
        CUDA_CHECK(cudaFree(d_memory));
    return error;
}

static void device_assert_broken(void)
{
    int value = 0;
    printf("  looking up entry 4 of a table that has the entries 0 to 3\n");
    RESULT(look_up_index(4, &value));
}

static void device_assert_fixed(void)
{
    int value = 0, index = 4;
    if (index >= 4) // the host can check what comes from outside before it launches
        index = 3;
    CUDA_CHECK(look_up_index(index, &value));
    check_that(value == 13, "entry 3 is %d", value);
}

// ---- trap
__global__ void square_root(float x, float *out)
{
    if (x < 0)
        __trap(); // ends the whole grid, with no word of who and why
    *out = sqrtf(x);
}

static cudaError_t root_on_device(float x)
{
    float *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(float)));
    square_root<<<1, 1>>>(x, d_out);
    STEP(cudaGetLastError());
    return cudaDeviceSynchronize();
}

static void trap_broken(void)
{
    RESULT(root_on_device(-1));
}

static void trap_fixed(void)
{
    CUDA_CHECK(root_on_device(4));
}

// ---- stack_overflow
__device__ __noinline__ int deep(int levels, int *frames)
{
    volatile int frame[16]; // lives on the thread's stack, in local memory
    frame[levels % 16] = levels;
    if (levels > 0 && frames)
        return deep(levels - 1, frames) + frame[levels % 16];
    return 0;
}

__global__ void recurse(int levels, int *out)
{
    *out = deep(levels, out);
}

__global__ void iterate(int levels, int *out)
{
    int sum = 0;
    for (int level = levels; level > 0; level--)
        sum += level;
    *out = sum;
}

static void stack_overflow_broken(void)
{
    int *d_out, levels = 10000;
    size_t stack = 0;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(int)));
    CUDA_CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    printf("  %d levels of recursion, %zu bytes of stack a thread\n", levels, stack);
    recurse<<<1, 1>>>(levels, d_out);
    STEP(cudaGetLastError());
    RESULT(cudaDeviceSynchronize());
}

static void stack_overflow_fixed(void)
{
    int *d_out, h_out = 0, levels = 10000;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(int)));
    iterate<<<1, 1>>>(levels, d_out);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&h_out, d_out, sizeof(int), cudaMemcpyDeviceToHost));
    check_that(h_out == levels * (levels + 1) / 2, "the sum is %d", h_out);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- shared_overrun
__global__ void rotate(int *out, int distance, int wrap)
{
    __shared__ int tile[256];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int from = threadIdx.x + distance;
    out[threadIdx.x] = tile[wrap ? from % 256 : from];
}

static cudaError_t rotate_on_device(int distance, int wrap, int *first)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, 256 * sizeof(int)));
    rotate<<<1, 256>>>(d_out, distance, wrap);
    STEP(cudaGetLastError());
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = cudaMemcpy(first, d_out, sizeof(int), cudaMemcpyDeviceToHost);
    return error;
}

static void shared_overrun_broken(void)
{
    int first = 0, distance = 16 << 20; // 64 MiB past the end: beyond every shared memory
    RESULT(rotate_on_device(distance, 0, &first));
}

static void shared_overrun_fixed(void)
{
    int first = 0;
    CUDA_CHECK(rotate_on_device((16 << 20) + 3, 1, &first));
    check_that(first == 3, "the first value is %d", first);
}

static const struct twin twins[] = {
    TWIN(device_assert),
    TWIN(trap),
    TWIN(stack_overflow),
    TWIN(shared_overrun),
};

TWINS_MAIN("06_error_cases/kernel_stops", "kernels that end themselves, or leave their stack",
           twins)
