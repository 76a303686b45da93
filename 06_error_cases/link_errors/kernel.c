/* kernel.c - a launch in a file that ends in .c. */
#include <cuda_runtime.h>

__global__ void nothing(void) {}

int main(void)
{
    nothing<<<1, 1>>>();
    return 0;
}
