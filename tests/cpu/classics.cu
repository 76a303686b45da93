// Patterns from textbooks, each against a plain loop: a lock between blocks, the last block adds up, two scans,
// a sort, a tiled product in integers, a stencil with coefficients in constant memory.
#include <algorithm>
#include <vector>
#include "test.h"

__device__ int lock = 0;
__device__ unsigned blocks_done = 0;
__constant__ int weights[3];

__global__ void add_under_lock(const int *x, int n, int *total)
{
    int sum = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    while (atomicCAS(&lock, 0, 1) != 0)
        ;
    __threadfence();
    *total += sum; // one thread of the grid at a time
    __threadfence();
    atomicExch(&lock, 0);
}

__global__ void last_block_adds(const int *x, int n, volatile int *partial, int *total)
{
    __shared__ int sums[128];
    __shared__ bool last;
    int t = threadIdx.x, sum = 0;
    for (int i = t + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    sums[t] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half)
            sums[t] += sums[t + half];
    }
    if (t == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence(); // the sum is there before the count says so
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            sum += partial[b];
        *total = sum;
    }
}

__global__ void scan_step_doubling(const int *in, int *out, int n) // inclusive, two buffers
{
    extern __shared__ int buffer[];
    int t = threadIdx.x, from = 0, to = n;
    buffer[t] = in[t];
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        buffer[to + t] = buffer[from + t] + (t >= step ? buffer[from + t - step] : 0);
        int swap = from;
        from = to;
        to = swap;
        __syncthreads();
    }
    out[t] = buffer[from + t];
}

__global__ void scan_up_and_down(const int *in, int *out, int n) // exclusive, n a power of two
{
    extern __shared__ int tree[];
    int t = threadIdx.x, stride = 1;
    tree[2 * t] = in[2 * t];
    tree[2 * t + 1] = in[2 * t + 1];
    for (int nodes = n / 2; nodes > 0; nodes /= 2, stride *= 2) {
        __syncthreads();
        if (t < nodes)
            tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
    }
    if (t == 0)
        tree[n - 1] = 0;
    for (int nodes = 1; nodes < n; nodes *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < nodes) {
            int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1, sum = tree[left];
            tree[left] = tree[right];
            tree[right] += sum;
        }
    }
    __syncthreads();
    out[2 * t] = tree[2 * t];
    out[2 * t + 1] = tree[2 * t + 1];
}

__global__ void bitonic_step(int *x, int distance, int run)
{
    unsigned i = threadIdx.x + blockDim.x * blockIdx.x, other = i ^ distance;
    if (other <= i)
        return;
    bool upwards = (i & run) == 0;
    if (upwards == (x[i] > x[other])) {
        int swap = x[i];
        x[i] = x[other];
        x[other] = swap;
    }
}

template <int TILE> __global__ void product(int n, const int *a, const int *b, int *c)
{
    __shared__ int s[TILE][TILE], u[TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y,
        column = blockIdx.x * TILE + x, sum = 0;
    for (int k = 0; k < n; k += TILE) {
        s[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        u[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum += s[y][i] * u[i][x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}

__global__ void stencil(const int *in, int *out, int n)
{
    __shared__ int cells[64 + 2];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
    cells[t] = i < n ? in[i] : 0;
    if (threadIdx.x == 0)
        cells[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == blockDim.x - 1)
        cells[t + 1] = i + 1 < n ? in[i + 1] : 0;
    __syncthreads();
    if (i < n)
        out[i] = weights[0] * cells[t - 1] + weights[1] * cells[t] + weights[2] * cells[t + 1];
}

int main()
{
    enum { N = 1000, SORTED = 1 << 10, SCAN = 256, M = 50 };
    std::vector<int> x(4096), y(4096);
    int *d, *e, *f, sum = 0, total = 0;
    for (size_t i = 0; i < x.size(); i++)
        x[i] = (int)(i * 2654435761u >> 20) % 1000 - 500;
    for (int i = 0; i < N; i++)
        sum += x[i];
    OK(cudaMalloc(&d, 4096 * sizeof(int)));
    OK(cudaMalloc(&e, 4096 * sizeof(int)));
    OK(cudaMalloc(&f, 4096 * sizeof(int)));
    OK(cudaMemcpy(d, x.data(), 4096 * sizeof(int), cudaMemcpyHostToDevice));

    OK(cudaMemset(e, 0, sizeof(int)));
    add_under_lock<<<8, 1>>>(d, N, e);
    OK(cudaMemcpy(&total, e, sizeof total, cudaMemcpyDeviceToHost));
    EXPECT(total == sum);
    for (int again = 0; again < 2; again++) {
        last_block_adds<<<7, 128>>>(d, N, f, e);
        OK(cudaMemcpy(&total, e, sizeof total, cudaMemcpyDeviceToHost));
        EXPECT(total == sum);
    }

    scan_step_doubling<<<1, SCAN, 2 * SCAN * sizeof(int)>>>(d, e, SCAN);
    scan_up_and_down<<<1, SCAN / 2, SCAN * sizeof(int)>>>(d, f, SCAN);
    std::vector<int> inclusive(SCAN), exclusive(SCAN);
    OK(cudaMemcpy(inclusive.data(), e, SCAN * sizeof(int), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(exclusive.data(), f, SCAN * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0, before = 0; i < SCAN; i++) {
        EXPECT(exclusive[i] == before);
        before += x[i];
        EXPECT(inclusive[i] == before);
    }

    OK(cudaMemcpy(e, d, SORTED * sizeof(int), cudaMemcpyDeviceToDevice));
    for (int run = 2; run <= SORTED; run *= 2)
        for (int distance = run / 2; distance > 0; distance /= 2)
            bitonic_step<<<SORTED / 256, 256>>>(e, distance, run);
    OK(cudaMemcpy(y.data(), e, SORTED * sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<int> sorted(x.begin(), x.begin() + SORTED);
    std::sort(sorted.begin(), sorted.end());
    EXPECT(std::equal(sorted.begin(), sorted.end(), y.begin()));

    dim3 tiles((M + 15) / 16, (M + 15) / 16), threads(16, 16);
    product<16><<<tiles, threads>>>(M, d, d + 1, e);
    OK(cudaMemcpy(y.data(), e, M * M * sizeof(int), cudaMemcpyDeviceToHost));
    for (int r = 0; r < M; r++)
        for (int c = 0; c < M; c++) {
            int want = 0;
            for (int k = 0; k < M; k++)
                want += x[r * M + k] * x[1 + k * M + c];
            EXPECT(y[r * M + c] == want);
        }

    int w[] = {2, -3, 5};
    OK(cudaMemcpyToSymbol(weights, w, sizeof w));
    stencil<<<(N + 63) / 64, 64>>>(d, e, N);
    OK(cudaMemcpy(y.data(), e, N * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        EXPECT(y[i] == (i > 0 ? 2 * x[i - 1] : 0) - 3 * x[i] + (i + 1 < N ? 5 * x[i + 1] : 0));

    OK(cudaFree(d));
    OK(cudaFree(e));
    OK(cudaFree(f));
    return finish();
}
