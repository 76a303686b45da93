// Planted bugs, each with its correct twin: bugs NAME good|bad. The tests read the line numbers of the marks.
#include "test.h"

enum { N = 64 };

__global__ void past_the_end(int *x, int n)
{
    x[blockIdx.x * blockDim.x + threadIdx.x + n] = 1; // mark: past
}

__global__ void shared_past_the_end(int n)
{
    __shared__ int t[N];
    extern __shared__ int e[];
    t[threadIdx.x + (n == 1)] = 1; // mark: shared
    e[threadIdx.x + (n == 2)] = 1; // mark: extern
}

template <bool BARRIER> __global__ void reverse(int *x)
{
    __shared__ int t[N];
    t[threadIdx.x] = x[threadIdx.x]; // mark: write
    if (BARRIER)
        __syncthreads();
    x[threadIdx.x] = t[N - 1 - threadIdx.x]; // mark: read
}

__global__ void divergent(int limit)
{
    if (threadIdx.x < limit)
        __syncthreads(); // mark: barrier
}

__global__ void two_barriers(int limit)
{
    if (threadIdx.x < limit)
        __syncthreads(); // mark: one
    else
        __syncthreads(); // mark: other
}

__global__ void warp_waits(int limit)
{
    if (threadIdx.x < limit)
        __syncwarp(); // mark: warp
    else
        __syncthreads(); // mark: others
}

__global__ void uninitialised(float *out)
{
    __shared__ float s[N];
    if (threadIdx.x > 0)
        s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    auto is = [&](const char *name) { return strcmp(argv[1], name) == 0; };
    bool bad = strcmp(argv[2], "bad") == 0;
    int *x, h[N];
    for (int i = 0; i < N; i++)
        h[i] = i;
    OK(cudaMalloc(&x, sizeof h)); // mark: allocated
    OK(cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice));
    if (is("past"))
        past_the_end<<<1, N>>>(x, bad);
    else if (is("shared"))
        shared_past_the_end<<<1, N, N * sizeof(int)>>>(bad ? 1 : 0);
    else if (is("extern"))
        shared_past_the_end<<<1, N, N * sizeof(int)>>>(bad ? 2 : 0);
    else if (is("host"))
        h[0] = bad ? x[1] : 0; // mark: host
    else if (is("freed")) {
        int *y;
        OK(cudaMalloc(&y, sizeof h));
        if (bad)
            OK(cudaFree(y)); // mark: freed
        past_the_end<<<1, N>>>(y, 0);
        if (!bad)
            OK(cudaFree(y));
    } else if (is("race")) {
        if (bad)
            reverse<false><<<1, N>>>(x);
        else
            reverse<true><<<1, N>>>(x);
    } else if (is("divergent"))
        divergent<<<2, N>>>(bad ? 16 : N);
    else if (is("two"))
        two_barriers<<<1, N>>>(bad ? 32 : N);
    else if (is("warp"))
        warp_waits<<<1, N>>>(bad ? 8 : N);
    else if (is("uninitialised")) {
        float *f, hf[N];
        OK(cudaMalloc(&f, sizeof hf));
        uninitialised<<<1, N>>>(f);
        OK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
        printf("%f %f\n", hf[0], hf[1]);
        OK(cudaFree(f));
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("%d\n", error);
    if (error == cudaSuccess) {
        OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; i += 21)
            printf("%d ", h[i]);
        printf("\n");
    }
    if (!(is("leak") && bad))
        cudaFree(x);
    return error != cudaSuccess;
}
