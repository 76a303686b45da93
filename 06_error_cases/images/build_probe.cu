// build_probe: the time of one kernel in milliseconds, on one line. lesson.mk compiles it twice,
// as images/build_plain and, with -G, as images/build_debug.
#include "../../common/check.h"

enum { N = 1 << 20, BLOCK = 256, REPS = 5 };

__global__ void polynomial(float *out)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float x = (float)(i % 64) / 64, sum = 0;
    for (int k = 0; k < 256; k++)
        sum = sum * x + 1;
    out[i] = sum;
}

int main(int argc, char **argv)
{
    float *d_out, last = 0, best = 0;
    cudaEvent_t start, stop;
    if (argc > 1) // the device
        CUDA_CHECK(cudaSetDevice(atoi(argv[1])));
    CUDA_CHECK(cudaMalloc(&d_out, N * sizeof(float)));
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    for (int rep = 0; rep <= REPS; rep++) { // run 0 is the warm-up
        float ms;
        CUDA_CHECK(cudaEventRecord(start));
        polynomial<<<N / BLOCK, BLOCK>>>(d_out);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(cudaEventRecord(stop));
        CUDA_CHECK(cudaEventSynchronize(stop));
        CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (rep == 1 || (rep > 1 && ms < best))
            best = ms;
    }
    CUDA_CHECK(cudaMemcpy(&last, d_out, sizeof(float), cudaMemcpyDeviceToHost)); // x = 0: sum is 1
    printf("%.4f\n", best);
    return last == 1.0f ? EXIT_OK : EXIT_FAILED;
}
