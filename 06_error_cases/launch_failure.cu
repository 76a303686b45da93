// launch_failure: kernels that start and then break. The launch itself reports success; the error
// comes back from a later call, and from then on from every call: the process is lost to CUDA.
//
// Predict before you run it: a kernel writes through a null pointer. Which line of the host program
// learns of it: the launch, cudaGetLastError() right after it, or cudaDeviceSynchronize()?
//
// usage: launch_failure [CASE] [--fixed]
#include "twins.h"
#include <assert.h>

enum { N = 1024 };

__global__ void fill(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

// Launches fill() on `pointer` and reports what the three places say at which an error may show.
static void launch_fill_and_look(int *pointer)
{
    fill<<<N / 256, 256>>>(pointer, N);
    STEP(cudaGetLastError());
    RESULT(cudaDeviceSynchronize());
    int *d_other;
    STEP(cudaMalloc(&d_other, 4)); // has nothing to do with the kernel, and fails as well
}

static void fill_and_verify(int *d_out)
{
    int h_out[N], wrong = 0;
    fill<<<N / 256, 256>>>(d_out, N);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong += h_out[i] != i;
    check_that(wrong == 0, "%d values are wrong", wrong);
}

// ---- null_pointer
static void null_pointer_broken(void)
{
    int *d_out = NULL; // cudaMalloc was forgotten
    launch_fill_and_look(d_out);
}

static void null_pointer_fixed(void)
{
    int *d_out = NULL;
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(int)));
    fill_and_verify(d_out);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- host_pointer
static void host_pointer_broken(void)
{
    if (!DEVICE_IS_CPU && device_attribute(cudaDevAttrPageableMemoryAccess))
        twin_waive("this system lets kernels follow host pointers (HMM or ATS): no error here");
    int *h_out = (int *)host_malloc(N * sizeof(int)); // memory of the host
    launch_fill_and_look(h_out);
    free(h_out);
}

static void host_pointer_fixed(void)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(int))); // memory of the device, copied back after
    fill_and_verify(d_out);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- freed_pointer
static void freed_pointer_broken(void)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, 64 << 20)); // large: small blocks stay mapped after cudaFree
    CUDA_CHECK(cudaFree(d_out));
    launch_fill_and_look(d_out);
}

static void freed_pointer_fixed(void)
{
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, 64 << 20));
    fill_and_verify(d_out); // the last use comes first
    CUDA_CHECK(cudaFree(d_out));
    d_out = NULL; // whoever uses it now meets the null pointer, which always shows
}

// ---- misaligned
__global__ void sum_of_four(const float *in, float *out)
{
    float4 v = *(const float4 *)in; // one 16-byte load: the address must be a multiple of 16
    *out = v.x + v.y + v.z + v.w;
}

static void misaligned_broken(void)
{
    float *d_in;
    CUDA_CHECK(cudaMalloc(&d_in, 32 * sizeof(float)));
    CUDA_CHECK(cudaMemset(d_in, 0, 32 * sizeof(float)));
    sum_of_four<<<1, 1>>>(d_in + 1, d_in + 16); // 4 bytes past an aligned address
    STEP(cudaGetLastError());
    RESULT(cudaDeviceSynchronize());
}

static void misaligned_fixed(void)
{
    float *d_in, sum = 1;
    CUDA_CHECK(cudaMalloc(&d_in, 32 * sizeof(float)));
    CUDA_CHECK(cudaMemset(d_in, 0, 32 * sizeof(float)));
    sum_of_four<<<1, 1>>>(d_in + 4, d_in + 16); // steps of four floats keep the alignment
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&sum, d_in + 16, sizeof(sum), cudaMemcpyDeviceToHost));
    check_that(sum == 0, "the sum is %g", sum);
    CUDA_CHECK(cudaFree(d_in));
}

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
    TWIN(null_pointer),  TWIN(host_pointer), TWIN(freed_pointer),  TWIN(misaligned),
    TWIN(device_assert), TWIN(trap),         TWIN(stack_overflow), TWIN(shared_overrun),
};

TWINS_MAIN("06_error_cases/launch_failure", "kernels that start and then break", twins)
