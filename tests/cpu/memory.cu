// Memory of every kind, copies and their checks, symbols, pools.
#include <cstdint>
#include "test.h"

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter = 5, table[8];
__managed__ int shared_by_both = 1;

__global__ void use_symbols(float *out)
{
    out[threadIdx.x] = coefficients[threadIdx.x];
    if (threadIdx.x == 0) {
        atomicAdd(&counter, 2);
        table[3] = 33;
        shared_by_both += 10;
    }
}
__global__ void increment(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1;
}

int main()
{
    enum { N = 100 };
    int *d, h[N], back[N];
    for (int i = 0; i < N; i++)
        h[i] = i;

    // Copies: both directions, between device buffers, and what they refuse.
    OK(cudaMalloc(&d, sizeof h));
    OK(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice));
    increment<<<1, 128>>>(d, N);
    OK(cudaMemcpy(back, d, sizeof h, cudaMemcpyDefault));
    EXPECT(back[99] == 100);
    FAILS(cudaErrorInvalidValue, cudaMemcpy(d, h, sizeof h + (4 << 20), cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(h, back, sizeof h, cudaMemcpyDeviceToHost));
    FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d, h, sizeof h, (cudaMemcpyKind)9));
    FAILS(cudaErrorInvalidValue, cudaFree(h));
    OK(cudaMemset(d, 0xff, sizeof h));
    OK(cudaMemcpy(back, d, sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(back[0] == -1 && back[99] == -1);
    OK(cudaFree(d));
    FAILS(cudaErrorInvalidValue, cudaFree(d));
    OK(cudaFree(nullptr));
    OK(cudaMalloc(&d, 0));
    EXPECT(d == nullptr);
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&d, (size_t)1 << 46));
    EXPECT(d == nullptr);

    // Two dimensions.
    char *rows, in[6][10], out[6][10] = {};
    size_t pitch;
    for (int i = 0; i < 60; i++)
        in[i / 10][i % 10] = (char)i;
    OK(cudaMallocPitch(&rows, &pitch, 10, 6));
    EXPECT(pitch >= 10 && pitch % 32 == 0);
    OK(cudaMemset2D(rows, pitch, 7, 10, 6));
    OK(cudaMemcpy2D(rows, pitch, in, 10, 5, 6, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(out, 10, rows, pitch, 10, 6, cudaMemcpyDeviceToHost));
    EXPECT(out[5][4] == 54 && out[5][5] == 7);
    FAILS(cudaErrorInvalidPitchValue, cudaMemcpy2D(rows, 4, in, 10, 5, 6, cudaMemcpyHostToDevice));
    OK(cudaFree(rows));

    // Pinned, mapped, managed memory.
    int *pinned, *mapped, *managed;
    OK(cudaHostAlloc(&pinned, sizeof h, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    OK(cudaMallocManaged(&managed, sizeof h));
    for (int i = 0; i < N; i++)
        pinned[i] = managed[i] = i;
    increment<<<1, 128>>>(mapped, N);
    increment<<<1, 128>>>(managed, N);
    OK(cudaDeviceSynchronize());
    EXPECT(pinned[50] == 51 && managed[50] == 51);

    // What a pointer points to: also into the middle, at a symbol, at what CUDA knows nothing of.
    cudaPointerAttributes about;
    OK(cudaPointerGetAttributes(&about, pinned + 1));
    EXPECT(about.type == cudaMemoryTypeHost && about.hostPointer == pinned + 1);
    OK(cudaPointerGetAttributes(&about, managed + 1));
    EXPECT(about.type == cudaMemoryTypeManaged && about.devicePointer == managed + 1);
    OK(cudaGetSymbolAddress((void **)&mapped, table));
    OK(cudaPointerGetAttributes(&about, mapped));
    EXPECT(about.type == cudaMemoryTypeDevice && about.device == 0 &&
           about.devicePointer == mapped);
    OK(cudaPointerGetAttributes(&about, h));
    EXPECT(about.type == cudaMemoryTypeUnregistered && about.devicePointer == nullptr);
    OK(cudaFreeHost(pinned));
    OK(cudaFree(managed));

    // Symbols.
    float *f, hf[4], changed[] = {9, 8};
    int count;
    void *address;
    size_t size;
    OK(cudaMalloc(&f, sizeof hf));
    OK(cudaMemcpyToSymbol(coefficients, changed, sizeof changed, 2 * sizeof(float)));
    use_symbols<<<1, 4>>>(f);
    OK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
    EXPECT(hf[0] == 1 && hf[1] == 2 && hf[2] == 9 && hf[3] == 8);
    OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 7 && shared_by_both == 11);
    OK(cudaGetSymbolSize(&size, table));
    OK(cudaGetSymbolAddress(&address, table));
    EXPECT(size == sizeof table);
    OK(cudaMemcpy(&count, (int *)address + 3, sizeof count, cudaMemcpyDeviceToHost));
    EXPECT(count == 33);
    FAILS(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, h, 100));
    FAILS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(failures, h, 4));
    OK(cudaFree(f));

    // Pools with a limit: full, fragmented, and well again.
    cudaMemPoolProps props;
    cudaMemPool_t pool;
    char *blocks[32], *big;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.maxSize = 64 << 20;
    OK(cudaMemPoolCreate(&pool, &props));
    FAILS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&big, 128 << 20, pool, 0));
    for (int i = 0; i < 32; i++)
        OK(cudaMallocFromPoolAsync(&blocks[i], 2 << 20, pool, 0));
    for (int i = 0; i < 32; i += 2)
        OK(cudaFreeAsync(blocks[i], 0));
    OK(cudaStreamSynchronize(0));
    FAILS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&big, 4 << 20, pool, 0));
    for (int i = 1; i < 32; i += 2)
        OK(cudaFreeAsync(blocks[i], 0));
    OK(cudaStreamSynchronize(0));
    OK(cudaMallocFromPoolAsync(&big, 4 << 20, pool, 0));
    uint64_t used = 0;
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT(used == 4 << 20);
    OK(cudaFreeAsync(big, 0));
    OK(cudaStreamSynchronize(0));
    OK(cudaMemPoolDestroy(pool));
    return finish();
}
