// launch_failure: kernels that start and then break. The launch itself reports success; the error
// comes back from a later call, and from then on from every call: the process is lost to CUDA.
//
// Predict before you run it: a kernel writes through a null pointer. Which line of the host program
// learns of it: the launch, cudaGetLastError() right after it, or cudaDeviceSynchronize()?
//
// usage: launch_failure [CASE] [--fixed]
#include "twins.h"

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

static const struct twin twins[] = {
    TWIN(null_pointer),
    TWIN(host_pointer),
    TWIN(freed_pointer),
    TWIN(misaligned),
};

TWINS_MAIN("06_error_cases/launch_failure", "kernels that start and then follow a wrong pointer",
           twins)
