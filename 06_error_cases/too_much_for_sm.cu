// too_much_for_sm: blocks of a legal size that ask an SM for more than it gives: shared memory, or
// registers.
//
// Predict before you run it: a kernel uses 102 registers. How many threads may its blocks have,
// when an SM has 65536 registers?
//
// usage: too_much_for_sm [CASE] [--fixed]
#include "twins.h"

enum { N = 1000 };

// ---- shared_opt_in
__global__ void reverse_in_shared(int *out, int n)
{
    extern __shared__ int tile[]; // its size is the launch's third argument
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        tile[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = tile[n - 1 - i];
}

static size_t shared_bytes_over_default(void)
{
    int plain = device_attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    printf("  shared memory a block: %d bytes, after opting in %d; asking for all of it\n", plain,
           most);
    if (most <= plain)
        twin_waive("this device has no shared memory beyond the default");
    return (size_t)most;
}

static void shared_opt_in_broken(void)
{
    size_t bytes = shared_bytes_over_default();
    int *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(int)));
    reverse_in_shared<<<1, 256, bytes>>>(d_out, N);
    RESULT(cudaGetLastError());
    CUDA_CHECK(cudaFree(d_out));
}

static void shared_opt_in_fixed(void)
{
    size_t bytes = shared_bytes_over_default();
    int *d_out, h_first = 0;
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(int)));
    POISON_DEVICE(d_out, N * sizeof(int));
    CUDA_CHECK(cudaFuncSetAttribute(reverse_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)bytes));
    reverse_in_shared<<<1, 256, bytes>>>(d_out, N);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&h_first, d_out, sizeof(int), cudaMemcpyDeviceToHost));
    check_that(h_first == N - 1, "the first value is %d", h_first);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- too_many_registers
enum { LIVE = 96 }; // values a thread keeps at once: each one is a register

__device__ __forceinline__ float churn(float seed, int rounds)
{
    float v[LIVE], sum = 0;
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        v[k] = seed + k;
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int k = 0; k < LIVE; k++)
            v[k] = v[k] * 0.5f + v[(k + 1) % LIVE];
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        sum += v[k];
    return sum;
}

__global__ void greedy(float *out, int rounds)
{
    out[threadIdx.x] = churn((float)threadIdx.x, rounds);
}

// The promise of at most 1024 threads a block makes the compiler fit 65536 / 1024 registers.
__global__ void __launch_bounds__(1024) modest(float *out, int rounds)
{
    out[threadIdx.x] = churn((float)threadIdx.x, rounds);
}

static void print_registers(const char *name, const cudaFuncAttributes *a)
{
    printf("  %s: %d registers x 1024 threads = %d, the block may have %d\n", name, a->numRegs,
           a->numRegs * 1024, device_attribute(cudaDevAttrMaxRegistersPerBlock));
}

static void too_many_registers_broken(void)
{
    float *d_out;
    cudaFuncAttributes a;
    CUDA_CHECK(cudaMalloc(&d_out, 1024 * sizeof(float)));
    CUDA_CHECK(cudaFuncGetAttributes(&a, greedy));
    print_registers("greedy", &a);
    greedy<<<1, 1024>>>(d_out, 1);
    RESULT(cudaGetLastError());
    CUDA_CHECK(cudaFree(d_out));
}

static void too_many_registers_fixed(void)
{
    float *d_out, h_wide[1024], h_narrow[256];
    cudaFuncAttributes a;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(h_wide)));
    CUDA_CHECK(cudaFuncGetAttributes(&a, modest));
    print_registers("modest", &a);
    modest<<<1, 1024>>>(d_out, 1);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_wide, d_out, sizeof(h_wide), cudaMemcpyDeviceToHost));
    greedy<<<1, 256>>>(d_out, 1); // the other cure: smaller blocks
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_narrow, d_out, sizeof(h_narrow), cudaMemcpyDeviceToHost));
    check_that(fabs(h_wide[255] - h_narrow[255]) <= 1e-5 * fabs(h_wide[255]),
               "the two cures disagree: %g and %g", h_wide[255], h_narrow[255]);
    CUDA_CHECK(cudaFree(d_out));
}

static const struct twin twins[] = {
    TWIN(shared_opt_in),
    TWIN(too_many_registers),
};

TWINS_MAIN("06_error_cases/too_much_for_sm", "blocks that ask for more than an SM gives", twins)
