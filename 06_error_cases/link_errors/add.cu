// add.cu - a kernel, and a host function around it that other files call.
#include <cstdio>

__global__ void add(int a, int b, int *sum)
{
    *sum = a + b;
}

#ifdef WITH_EXTERN_C
extern "C" // the plain C name; without it the linker sees _Z7gpu_addii
#endif
    int
    gpu_add(int a, int b)
{
    int *d_sum, h_sum = 0;
    if (cudaMalloc(&d_sum, sizeof(int)) != cudaSuccess)
        return 0; // no GPU: these files are only linked, not run
    add<<<1, 1>>>(a, b, d_sum);
    cudaMemcpy(&h_sum, d_sum, sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(d_sum);
    return h_sum;
}

#ifdef WITH_MAIN
int main()
{
    std::printf("1 + 2 = %d\n", gpu_add(1, 2));
}
#endif
