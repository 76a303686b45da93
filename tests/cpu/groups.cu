// Cooperative groups within a block, asynchronous copies into shared memory, printf, malloc in a kernel, PTX registers.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include "test.h"

namespace cg = cooperative_groups;

__device__ int sum_of(cg::thread_group g, int *room, int value)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        room[lane] = value;
        g.sync();
        if (lane < i)
            value += room[lane + i];
        g.sync();
    }
    return value;
}

__global__ void block_sum(int *out)
{
    __shared__ int room[128];
    cg::thread_block block = cg::this_thread_block();
    int sum = sum_of(block, room, threadIdx.x);
    if (block.thread_rank() == 0)
        out[0] = sum;
}

__global__ void tile_sums(int *out)
{
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    int sum = threadIdx.x;
    for (int i = tile.size() / 2; i > 0; i /= 2)
        sum += tile.shfl_down(sum, i);
    if (tile.thread_rank() == 0)
        out[tile.meta_group_rank()] = sum + 1000 * tile.any(threadIdx.x == 9);
}

__global__ void whole_grid(unsigned *out)
{
    auto grid = cg::this_grid();
    out[grid.thread_rank()] = grid.size() - grid.thread_rank();
}

__global__ void staged(const int *in, int *out)
{
    __shared__ __align__(16) int stage[2][4 * 32];
    int t = threadIdx.x;
    for (int s = 0; s < 2; s++) {
        __pipeline_memcpy_async(&stage[s][4 * t], &in[s * 128 + 4 * t], 16);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    int first = stage[0][127 - t];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = first + stage[1][t];
}

__global__ void heap(int *out)
{
    int *p = (int *)malloc(4 * sizeof *p);
    out[0] = p != nullptr;
    free(p);
    p = (int *)malloc((size_t)512 << 20); // more than the heap has
    out[1] = p != nullptr;
}

__global__ void registers(unsigned *out)
{
    unsigned lane, sm;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    out[threadIdx.x] = lane + (sm < 10000 ? 0 : 1000);
}

__global__ void speak()
{
    printf("hello from thread %u of block %u, %s\n", threadIdx.x, blockIdx.x, "in turn");
}

int main()
{
    int *d, *in, h[256];
    OK(cudaMalloc(&d, sizeof h));
    OK(cudaMalloc(&in, sizeof h));
    for (int i = 0; i < 256; i++)
        h[i] = i;
    OK(cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice));
    block_sum<<<1, 128>>>(d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 127 * 64);
    whole_grid<<<dim3(2, 2), dim3(8, 4)>>>((unsigned *)d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 128 && h[37] == 91 && h[127] == 1);
    tile_sums<<<1, 64>>>(d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        printf("%d ", h[i]);
    staged<<<1, 32>>>(in, d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int t = 0; t < 32; t++)
        EXPECT(h[t] == 127 - t + 128 + t);
    heap<<<1, 1>>>(d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 1 && h[1] == 0);
    registers<<<1, 64>>>((unsigned *)d);
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 0 && h[31] == 31 && h[33] == 1);
    printf("before\n");
    speak<<<1, 3>>>();
    OK(cudaDeviceSynchronize());
    printf("after\n");
    OK(cudaFree(d));
    OK(cudaFree(in));
    int result = finish();
    fflush(stdout);
    speak<<<1, 3>>>(); // nobody waits: never printed
    return result;
}
