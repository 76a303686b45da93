// Texture objects: point and linear, the four ways to leave the picture, integers as fractions.
// No point lies on a border of two texels: there the rounding of a GPU decides.
#include "test.h"

__global__ void sample(cudaTextureObject_t t, const float2 *at, float *out, int n)
{
    int i = threadIdx.x;
    if (i < n)
        out[i] = tex2D<float>(t, at[i].x, at[i].y);
}
__global__ void sample_1d(cudaTextureObject_t linear, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(linear, (int)threadIdx.x - 1);
}
__global__ void sample_bytes(cudaTextureObject_t t, float *out)
{
    float4 v = tex2D<float4>(t, threadIdx.x + 0.5f, 0.5f);
    out[threadIdx.x] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
}

static const float2 points[] = {{0.5f, 0.5f},  {1.0f, 0.5f}, {1.25f, 1.5f}, {3.75f, 2.2f},
                                {-0.6f, 0.5f}, {4.8f, 1.2f}, {9.3f, -2.7f}, {2.1f, 7.9f}};

int main()
{
    enum { W = 4, H = 3, POINTS = sizeof points / sizeof points[0] };
    float picture[H][W], h[32];
    for (int i = 0; i < W * H; i++)
        picture[i / W][i % W] = (float)(i * i % 17);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    OK(cudaMallocArray(&array, &format, W, H));
    OK(cudaMemcpy2DToArray(array, 0, 0, picture, sizeof picture[0], sizeof picture[0], H,
                           cudaMemcpyHostToDevice));
    float2 *at, scaled[POINTS];
    float *out;
    OK(cudaMalloc(&at, sizeof points));
    OK(cudaMalloc(&out, sizeof h));

    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    const cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder,
                                            cudaAddressModeWrap, cudaAddressModeMirror};
    for (auto filter : {cudaFilterModePoint, cudaFilterModeLinear})
        for (auto mode : modes) {
            cudaTextureDesc d;
            cudaTextureObject_t t;
            memset(&d, 0, sizeof d);
            d.addressMode[0] = d.addressMode[1] = mode;
            d.filterMode = filter;
            d.normalizedCoords = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
            for (int i = 0; i < POINTS; i++) {
                scaled[i] = points[i];
                if (d.normalizedCoords)
                    scaled[i].x /= W, scaled[i].y /= H;
            }
            OK(cudaMemcpy(at, scaled, sizeof scaled, cudaMemcpyHostToDevice));
            OK(cudaCreateTextureObject(&t, &resource, &d, nullptr));
            sample<<<1, 32>>>(t, at, out, POINTS);
            OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
            for (int i = 0; i < POINTS; i++)
                printf("%.1f ", h[i]); // the texture unit weighs in steps of 1/256
            printf("\n");
            OK(cudaDestroyTextureObject(t));
        }

    // Linear memory: no filter, zero outside.
    float *line;
    OK(cudaMalloc(&line, 8 * sizeof *line));
    OK(cudaMemcpy(line, picture, 8 * sizeof *line, cudaMemcpyHostToDevice));
    cudaTextureDesc d;
    cudaTextureObject_t t;
    memset(&d, 0, sizeof d);
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = line;
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = 8 * sizeof *line;
    OK(cudaCreateTextureObject(&t, &resource, &d, nullptr));
    sample_1d<<<1, 10>>>(t, out);
    OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 10; i++)
        printf("%g ", h[i]);
    printf("\n");
    OK(cudaDestroyTextureObject(t));

    // Pitched memory of uchar4, read as fractions of 255.
    uchar4 *colours, in[W] = {{0, 51, 102, 255}, {255, 0, 0, 0}, {51, 51, 51, 51}, {0, 0, 0, 204}};
    size_t pitch;
    OK(cudaMallocPitch(&colours, &pitch, sizeof in, 1));
    OK(cudaMemcpy2D(colours, pitch, in, sizeof in, sizeof in, 1, cudaMemcpyHostToDevice));
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = colours;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = W;
    resource.res.pitch2D.height = 1;
    resource.res.pitch2D.pitchInBytes = pitch;
    d.readMode = cudaReadModeNormalizedFloat;
    OK(cudaCreateTextureObject(&t, &resource, &d, nullptr));
    sample_bytes<<<1, W>>>(t, out);
    OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < W; i++)
        printf("%.1f ", h[i]);
    printf("\n");
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeArray(array));
    OK(cudaFree(at));
    OK(cudaFree(out));
    OK(cudaFree(line));
    OK(cudaFree(colours));
    return finish();
}
