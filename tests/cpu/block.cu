// Within a block: shared memory in all its declarations, barriers and their votes.
#include "test.h"

enum { N = 256 };

extern __shared__ int at_file_scope[];

__device__ int sum_in_block(int value) // a barrier inside of a device function
{
    static __shared__ int partial[N];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = N / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    int sum = partial[0];
    __syncthreads();
    return sum;
}

__global__ void sums(int *out)
{
    int twice = sum_in_block(threadIdx.x) + sum_in_block(1);
    if (threadIdx.x == 0)
        out[blockIdx.x] = twice + blockIdx.x;
}

__global__ void declarations(int *out)
{
    __shared__ int matrix[4][N / 4 + 1], one, other;
    __shared__ __align__(16) unsigned char bytes[N];
    __shared__ struct {
        int a;
        float b;
    } pair;
    volatile __shared__ int flag;
    int t = threadIdx.x;
    matrix[t % 4][t / 4] = t;
    bytes[t] = (unsigned char)t;
    if (t == 0) {
        one = 1;
        other = 2;
        pair.a = 3;
        pair.b = 4.0f;
        flag = 5;
    }
    __syncthreads();
    out[t] =
        matrix[(t + 1) % 4][t / 4] + bytes[N - 1 - t] + one + other + pair.a + (int)pair.b + flag;
    if (t == 0 && (size_t)bytes % 16 != 0)
        out[0] = -1;
}

template <typename T, int COUNT> __global__ void typed(T *out)
{
    __shared__ T box[COUNT];
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
        box[i] = (T)(i / 2.0);
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = box[COUNT - 1];
}

__global__ void dynamic(int *out, int n) // two arrays carved out of one
{
    extern __shared__ float floats[];
    int *ints = (int *)&floats[n];
    floats[threadIdx.x] = threadIdx.x * 0.5f;
    ints[threadIdx.x] = threadIdx.x * 2;
    __syncthreads();
    out[threadIdx.x] = (int)(floats[n - 1 - threadIdx.x] * 2) + ints[threadIdx.x];
}

__global__ void dynamic_at_file_scope(int *out)
{
    at_file_scope[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = at_file_scope[blockDim.x - 1 - threadIdx.x];
}

__global__ void votes(int *out)
{
    int t = threadIdx.x;
    int count = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < N),
        any = __syncthreads_or(t == 17);
    int none = __syncthreads_or(t > N), not_all = __syncthreads_and(t != 5);
    if (t == 9)
        out[0] = count, out[1] = all != 0, out[2] = any != 0, out[3] = none != 0,
        out[4] = not_all != 0;
}

int main()
{
    int *d, h[N];
    OK(cudaMalloc(&d, sizeof h));
    auto fetch = [&] { OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost)); };

    sums<<<4, N>>>(d);
    fetch();
    for (int b = 0; b < 4; b++)
        EXPECT(h[b] == N * (N - 1) / 2 + N + b);
    declarations<<<1, N>>>(d);
    fetch();
    for (int t = 0; t < N; t++)
        EXPECT(h[t] == t / 4 * 4 + (t + 1) % 4 + N - 1 - t + 15);

    float *f;
    OK(cudaMalloc(&f, sizeof *f));
    float last;
    typed<float, 1000><<<1, 64>>>(f);
    OK(cudaMemcpy(&last, f, sizeof last, cudaMemcpyDeviceToHost));
    EXPECT(last == 499.5f);
    typed<int, 100><<<1, 64>>>(d);
    fetch();
    EXPECT(h[0] == 49);

    dynamic<<<1, N, N *(sizeof(float) + sizeof(int))>>>(d, N);
    fetch();
    for (int t = 0; t < N; t++)
        EXPECT(h[t] == N - 1 - t + 2 * t);
    dynamic_at_file_scope<<<2, 128, 128 * sizeof(int)>>>(d);
    fetch();
    EXPECT(h[0] == 127 && h[127] == 0);

    dynamic_at_file_scope<<<1, 32, 64 << 10>>>(d); // more than 48 KiB needs permission
    FAILS(cudaErrorInvalidValue, cudaPeekAtLastError());
    OK(cudaFuncSetAttribute(dynamic_at_file_scope, cudaFuncAttributeMaxDynamicSharedMemorySize,
                            64 << 10));
    dynamic_at_file_scope<<<1, 32, 64 << 10>>>(d);
    OK(cudaDeviceSynchronize());

    votes<<<1, N>>>(d);
    fetch();
    printf("votes: %d %d %d %d %d\n", h[0], h[1], h[2], h[3], h[4]);
    OK(cudaFree(d));
    OK(cudaFree(f));
    return finish();
}
