// helper.cu - the __device__ function that caller.cu calls.
__device__ int twice(int x)
{
    return 2 * x;
}
