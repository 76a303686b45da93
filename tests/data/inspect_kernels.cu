struct vec {
    float x, y, z, w;
};
__global__ void plain(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
__global__ void shared_4k(float *out)
{
    __shared__ float tile[1024];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[1023 - threadIdx.x];
}
__global__ void shared_dynamic(float *out)
{
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x] = out[0];
    __syncthreads();
    out[1] = dynamic[threadIdx.x ^ 1];
}
__global__ void local_array(const float *in, float *out, const int *where)
{
    float a[100];
    for (int i = 0; i < 100; i++)
        a[where[i] % 100] = in[i];
    float sum = 0;
    for (int i = 0; i < 100; i++)
        sum += a[where[i + 7] % 100] * i;
    out[threadIdx.x] = sum;
}
