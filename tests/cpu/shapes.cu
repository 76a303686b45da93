// Random launch shapes against a plain loop: every thread of every block runs once and knows who it is.
#include <vector>
#include "test.h"

__global__ void mark(unsigned *out)
{
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned who = blockIdx.x * 3 + blockIdx.y * 5 + blockIdx.z * 7 + threadIdx.x * 11 +
                   threadIdx.y * 13 + threadIdx.z * 17;
    atomicAdd(&out[block * (blockDim.x * blockDim.y * blockDim.z) + thread], who + 1);
}

// The same with a barrier: each thread reports what its neighbour left for it.
__global__ void pass_on(unsigned *out)
{
    __shared__ unsigned box[1024];
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    box[(thread + 1) % threads] = block * 1000 + thread;
    __syncthreads();
    out[block * threads + thread] = box[thread];
}

static unsigned seed = 12345;
static unsigned random_below(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

int main(int argc, char **argv)
{
    int shapes = argc > 1 ? atoi(argv[1]) : 1000, checked = 0;
    unsigned *d, most = 1 << 16;
    std::vector<unsigned> h(most);
    OK(cudaMalloc(&d, most * sizeof *d));
    while (checked < shapes && !failures) {
        dim3 b(1 + random_below(random_below(8) ? 40 : 1024), 1 + random_below(8),
               1 + random_below(4));
        dim3 g(1 + random_below(6), 1 + random_below(4), 1 + random_below(3));
        unsigned threads = b.x * b.y * b.z, total = threads * g.x * g.y * g.z;
        if (threads > 1024 || total > most)
            continue;
        checked++;
        OK(cudaMemset(d, 0, total * sizeof *d));
        mark<<<g, b>>>(d);
        OK(cudaMemcpy(h.data(), d, total * sizeof *d, cudaMemcpyDeviceToHost));
        unsigned i = 0, wrong = 0;
        for (unsigned bz = 0; bz < g.z; bz++)
            for (unsigned by = 0; by < g.y; by++)
                for (unsigned bx = 0; bx < g.x; bx++)
                    for (unsigned tz = 0; tz < b.z; tz++)
                        for (unsigned ty = 0; ty < b.y; ty++)
                            for (unsigned tx = 0; tx < b.x; tx++)
                                wrong += h[i++] !=
                                         bx * 3 + by * 5 + bz * 7 + tx * 11 + ty * 13 + tz * 17 + 1;
        EXPECT(wrong == 0);
        if (checked % 10)
            continue;
        pass_on<<<g, b>>>(d);
        OK(cudaMemcpy(h.data(), d, total * sizeof *d, cudaMemcpyDeviceToHost));
        for (i = 0; i < total; i++)
            wrong += h[i] != i / threads * 1000 + (i % threads + threads - 1) % threads;
        EXPECT(wrong == 0);
    }
    printf("%d shapes\n", checked);
    OK(cudaFree(d));
    return finish();
}
