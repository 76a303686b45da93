// memory_cures: the data does not fit - and still the work gets done: in pieces, or in a smaller
// type.
//
// Predict before you run it: 96 MiB of data go through a device of 64 MiB in chunks of 8 MiB. How
// much device memory is in use at most?
//
// usage: memory_cures [CASE] [--fixed]
#include "small_pool.h"

// ---- data_larger_than_device
__global__ void square(const float *in, float *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * in[i];
}

static void data_larger_than_device_broken(void)
{
    cudaMemPool_t pool = small_pool();
    float *d_in;
    printf("  the data set: 96 MiB\n");
    RESULT(cudaMallocFromPoolAsync((void **)&d_in, 96 * MIB, pool, 0));
}

static void data_larger_than_device_fixed(void)
{
    size_t n = 96 * MIB / sizeof(float), chunk = 8 * MIB / sizeof(float);
    cudaMemPool_t pool = small_pool();
    float *h_data = (float *)host_malloc(n * sizeof(float)), *d_in, *d_out;
    for (size_t i = 0; i < n; i++)
        h_data[i] = (float)(i % 1000);
    CUDA_CHECK(cudaMallocFromPoolAsync((void **)&d_in, chunk * sizeof(float), pool, 0));
    CUDA_CHECK(cudaMallocFromPoolAsync((void **)&d_out, chunk * sizeof(float), pool, 0));
    for (size_t first = 0; first < n; first += chunk) { // n is a multiple of the chunk
        CUDA_CHECK(cudaMemcpy(d_in, h_data + first, chunk * sizeof(float), cudaMemcpyHostToDevice));
        square<<<(unsigned)((chunk + 255) / 256), 256>>>(d_in, d_out, chunk);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(
            cudaMemcpy(h_data + first, d_out, chunk * sizeof(float), cudaMemcpyDeviceToHost));
    }
    struct verifier v = verify_begin("squares", 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, h_data[i], (double)(i % 1000) * (double)(i % 1000));
    verify_end(&v);
    printf("  96 MiB through two buffers of 8 MiB, %zu chunks (lesson 05 overlaps their copies)\n",
           n / chunk);
    CUDA_CHECK(cudaFreeAsync(d_in, 0));
    CUDA_CHECK(cudaFreeAsync(d_out, 0));
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemPoolDestroy(pool));
    free(h_data);
}

// ---- smaller_type
// bfloat16 is the upper half of a float: 8 bits of exponent, 7 of mantissa. Adding half of the last
// kept bit before cutting rounds to nearest. (cuda_bf16.h and cuda_fp16.h have the real types.)
__device__ unsigned short to_bf16(float x)
{
    return (unsigned short)((__float_as_uint(x) + 0x8000u) >> 16);
}

__global__ void fill_bf16(unsigned short *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = to_bf16((float)(i % 1000));
}

static const size_t values = 20 * MIB; // 80 MiB as float, 40 MiB in 16 bits

static void smaller_type_broken(void)
{
    cudaMemPool_t pool = small_pool();
    float *d_values;
    printf("  %zu values as float: %zu MiB\n", values, values * sizeof(float) / MIB);
    RESULT(cudaMallocFromPoolAsync((void **)&d_values, values * sizeof(float), pool, 0));
}

static void smaller_type_fixed(void)
{
    cudaMemPool_t pool = small_pool();
    unsigned short *d_values, h_values[1000];
    CUDA_CHECK(
        cudaMallocFromPoolAsync((void **)&d_values, values * sizeof(unsigned short), pool, 0));
    fill_bf16<<<(unsigned)((values + 255) / 256), 256>>>(d_values, values);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_values, d_values, sizeof(h_values), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin("bfloat16", 1.0 / 256, 0); // half of the last of 8 bits
    for (size_t i = 0; i < 1000; i++) {
        unsigned bits = (unsigned)h_values[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof(x));
        verify_value(&v, i, x, (double)i);
    }
    verify_end(&v);
    printf("  %zu values in 16 bits: %zu MiB, right to %.1g of the value\n", values,
           values * sizeof(unsigned short) / MIB, 1.0 / 256);
    CUDA_CHECK(cudaFreeAsync(d_values, 0));
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

static const struct twin twins[] = {
    TWIN(data_larger_than_device),
    TWIN(smaller_type),
};

TWINS_MAIN("06_error_cases/memory_cures", "the data does not fit, and still the work gets done",
           twins)
