// image_probe: the smallest program whose kernel may or may not have code for this GPU. It is
// compiled many times, for one architecture each (see lesson.mk), and prints what each call
// returns: the call, then number, name and text of the error.
//
// usage: images/sass_90 [DEVICE], images/ptx_75 [DEVICE], ...
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__global__ void answer(int *out)
{
    *out = 42;
}

static cudaError_t say(const char *call, cudaError_t error)
{
    printf("%s %d %s: %s\n", call, (int)error, cudaGetErrorName(error), cudaGetErrorString(error));
    return error;
}

int main(int argc, char **argv)
{
    int *d_out = NULL, h_out = 0;
    struct timespec start, end;
    if (argc > 1)
        cudaSetDevice(atoi(argv[1]));
    say("cudaMalloc", cudaMalloc(&d_out, sizeof(int)));
    say("cudaMemset", cudaMemset(d_out, 0, sizeof(int)));
    clock_gettime(CLOCK_MONOTONIC, &start);
    answer<<<1, 1>>>(d_out);
    cudaError_t launch = say("launch", cudaGetLastError()); // the code is looked for only now
    say("cudaDeviceSynchronize", cudaDeviceSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &end);
    cudaMemcpy(&h_out, d_out, sizeof(int), cudaMemcpyDeviceToHost);
    printf("milliseconds %.3f\n", 1e3 * (double)(end.tv_sec - start.tv_sec) +
                                      1e-6 * (double)(end.tv_nsec - start.tv_nsec));
    cudaFree(d_out);
    return launch == cudaSuccess && h_out == 42 ? 0 : 1;
}
