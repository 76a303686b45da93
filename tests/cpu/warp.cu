// Within a warp: shuffles of every kind, votes, partial masks, and code that trusts lanes to move in step.
#include "test.h"

enum { ALL = 0xffffffff };

__global__ void shuffles(int *out)
{
    int lane = threadIdx.x, k = 0;
    out[32 * k++ + lane] = __shfl_sync(ALL, lane * 10, 5);
    out[32 * k++ + lane] = __shfl_sync(ALL, lane * 10, lane + 1, 8);
    out[32 * k++ + lane] = __shfl_up_sync(ALL, lane, 3);
    out[32 * k++ + lane] = __shfl_up_sync(ALL, lane, 3, 8);
    out[32 * k++ + lane] = __shfl_down_sync(ALL, lane, 5);
    out[32 * k++ + lane] = __shfl_down_sync(ALL, lane, 5, 16);
    out[32 * k++ + lane] = __shfl_xor_sync(ALL, lane, 9);
    out[32 * k++ + lane] = __shfl_xor_sync(ALL, lane, 3, 4);
    out[32 * k++ + lane] = (int)(__shfl_xor_sync(ALL, lane + 0.5, 1) * 2);
    out[32 * k++ + lane] = (int)(__shfl_down_sync(ALL, (long long)lane << 40, 1) >> 40);
    out[32 * k++ + lane] = (int)(__shfl_sync(ALL, lane * 0.25f, 7) * 100);
}

__global__ void votes(unsigned *out)
{
    int lane = threadIdx.x % 32;
    unsigned odd = __ballot_sync(ALL, lane % 2);
    int any = __any_sync(ALL, lane == 40), all = __all_sync(ALL, lane < 32);
    unsigned half = 0, sum = 0;
    if (lane < 16) { // a part of the warp with a mask of its own
        half = __ballot_sync(0xffff, lane > 3);
        sum = lane;
        for (int o = 8; o > 0; o /= 2)
            sum += __shfl_down_sync(0xffff, sum, o);
    } else {
        half = __ballot_sync(0xffff0000, lane > 20);
    }
    __syncwarp();
    if (threadIdx.x == 0)
        out[0] = odd, out[1] = any, out[2] = all, out[3] = half, out[4] = sum;
    if (threadIdx.x == 16)
        out[5] = half;
}

__global__ void sum_of_many(const int *in, int n,
                            int *out) // the warp-shuffle reduction of many programs
{
    __shared__ int of_warp[32];
    int sum = 0, lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int o = warpSize / 2; o > 0; o /= 2)
        sum += __shfl_down_sync(ALL, sum, o);
    if (lane == 0)
        of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < (blockDim.x + 31) / 32 ? of_warp[lane] : 0;
        for (int o = warpSize / 2; o > 0; o /= 2)
            sum += __shfl_xor_sync(ALL, sum, o);
        if (lane == 0)
            atomicAdd(out, sum);
    }
}

__device__ void last_warp(volatile int *s, int t) // as written before __syncwarp() existed
{
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}

__global__ void in_step(const int *in, int *out)
{
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < 64)
        s[t] += s[t + 64];
    __syncthreads();
    if (t < 32)
        last_warp(s, t);
    if (t == 0)
        out[0] = s[0];
}

__global__ void active(int *out) // as many as go the same way: the sum of 1 over them
{
    int lane = threadIdx.x;
    if (lane % 4 == 0)
        return;
    if (lane % 2) {
        unsigned mask = __activemask();
        if (lane == __ffs(mask) - 1)
            atomicAdd(&out[0], __popc(mask));
        atomicAdd(&out[1], 1);
    }
}

int main()
{
    int *d, *in, h[11 * 32], data[1000], want = 0;
    OK(cudaMalloc(&d, sizeof h));
    OK(cudaMalloc(&in, sizeof data));
    shuffles<<<1, 32>>>(d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 11; k++) {
        for (int lane = 0; lane < 32; lane++)
            if (k != 9 || lane < 31)
                printf("%d ", h[32 * k + lane]);
        printf("\n");
    }
    votes<<<1, 64>>>((unsigned *)d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 6; k++)
        printf("%x ", h[k]);
    printf("\n");

    for (int i = 0; i < 1000; i++)
        want += data[i] = i * 7 % 13;
    OK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    for (int threads = 32; threads <= 1024; threads *= 2) {
        OK(cudaMemset(d, 0, sizeof h));
        sum_of_many<<<3, threads>>>(in, 1000, d);
        OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
        EXPECT(h[0] == want);
    }
    in_step<<<1, 128>>>(in, d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    want = 0;
    for (int i = 0; i < 128; i++)
        want += data[i];
    EXPECT(h[0] == want);

    OK(cudaMemset(d, 0, sizeof h));
    active<<<1, 32>>>(d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == h[1] && h[1] == 16);
    OK(cudaFree(d));
    OK(cudaFree(in));
    return finish();
}
