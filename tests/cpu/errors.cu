// Each case is a process of its own: a faulting kernel, then what the next calls say.
#include <cassert>
#include "test.h"

__global__ void write_to(int *p)
{
    p[threadIdx.x] = 1;
}
__global__ void check(int x)
{
    assert(x > 3);
}
__global__ void give_up()
{
    __trap();
}
__global__ void nothing() {}
__global__ void __launch_bounds__(64) bounded(int *p)
{
    p[threadIdx.x] = 1;
}

static void say(const char *what, cudaError_t error)
{
    printf("%s: %d %s\n", what, error, cudaGetErrorName(error));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int *p, *q;
    OK(cudaMalloc(&p, 1024));
    if (!strcmp(name, "null"))
        write_to<<<1, 32>>>(nullptr);
    else if (!strcmp(name, "far"))
        write_to<<<1, 32>>>((int *)0x7000000000000000);
    else if (!strcmp(name, "host"))
        write_to<<<1, 32>>>((int *)malloc(1024));
    else if (!strcmp(name, "assert"))
        check<<<1, 2>>>(3);
    else if (!strcmp(name, "trap"))
        give_up<<<1, 1>>>();
    else if (!strcmp(name, "threads"))
        nothing<<<1, 1025>>>();
    else if (!strcmp(name, "bounds"))
        bounded<<<1, 128>>>(p);
    else if (!strcmp(name, "grid0"))
        nothing<<<0, 32>>>();
    else if (!strcmp(name, "gridy"))
        nothing<<<dim3(1, 70000), 32>>>();
    else if (!strcmp(name, "blockz"))
        nothing<<<1, dim3(1, 1, 128)>>>();
    else if (!strcmp(name, "shared"))
        nothing<<<1, 32, 50000>>>();
    else if (!strcmp(name,
                     "unread")) { // nobody reads the error of cudaMalloc: the launch gets the blame
        cudaMalloc(&q, (size_t)1 << 46);
        nothing<<<1, 32>>>();
    } else {
        return 64;
    }
    say("cudaGetLastError", cudaGetLastError());
    say("cudaDeviceSynchronize", cudaDeviceSynchronize());
    say("cudaGetLastError", cudaGetLastError());
    say("cudaGetLastError", cudaGetLastError());
    say("cudaMalloc", cudaMalloc(&q, 4));
    say("cudaDeviceReset", cudaDeviceReset());
    say("cudaMalloc", cudaMalloc(&q, 4));
    return finish();
}
