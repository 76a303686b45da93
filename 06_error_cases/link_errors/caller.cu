// caller.cu - a kernel that calls a __device__ function of another file, helper.cu.
__device__ int twice(int x);

__global__ void use_twice(int *out)
{
    *out = twice(21);
}

int main()
{
    use_twice<<<1, 1>>>(nullptr);
    return 0;
}
