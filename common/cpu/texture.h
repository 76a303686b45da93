// Texture objects over linear memory, pitched memory and arrays, in one and two dimensions. The filtering is done
// in texture.cpp; here are the descriptions and the typed fetch functions.
#pragma once
#pragma GCC system_header
#include "api.h"

struct cudaChannelFormatDesc {
    int x, y, z, w; // bits of each channel
    cudaChannelFormatKind f;
};
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        // clang-format off
        struct { cudaArray_t array; } array;
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
        struct { void *devPtr; cudaChannelFormatDesc desc;
                 size_t width, height, pitchInBytes; } pitch2D;
        // clang-format on
    } res;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
};
struct cudaResourceViewDesc;

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                            size_t height = 0, unsigned flags = 0, CUDA_CPU_AT);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch,
                                size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t size,
                              cudaMemcpyKind kind);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *desc, const cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);

namespace cuda_cpu
{
enum Coordinates { texture_index, texture_1d, texture_2d }; // tex1Dfetch, tex1D, tex2D
// Reads `channels` elements of `bytes` bytes each.
void texture_read(cudaTextureObject_t texture, Coordinates c, double x, float y, bool as_float,
                  int bytes, int channels, void *out);

template <class T, bool = std::is_arithmetic_v<T>> struct Texel {
    typedef T Element;
    static constexpr int channels = 1;
};
template <class T> struct Texel<T, false> {
    typedef decltype(T::x) Element;
    static constexpr int channels = sizeof(T) / sizeof(Element);
    static_assert(channels != 3, "a texture has 1, 2 or 4 channels");
};

template <class T> T fetch(cudaTextureObject_t texture, Coordinates c, double x, float y)
{
    typedef typename Texel<T>::Element Element;
    T value;
    texture_read(texture, c, x, y, std::is_floating_point_v<Element>, sizeof(Element),
                 Texel<T>::channels, &value);
    return value;
}
} // namespace cuda_cpu

template <class T> cudaChannelFormatDesc cudaCreateChannelDesc()
{
    typedef typename cuda_cpu::Texel<T>::Element Element;
    constexpr int bits = 8 * sizeof(Element), n = cuda_cpu::Texel<T>::channels;
    return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
            std::is_floating_point_v<Element> ? cudaChannelFormatKindFloat
            : std::is_signed_v<Element>       ? cudaChannelFormatKindSigned
                                              : cudaChannelFormatKindUnsigned};
}
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind f)
{
    return {x, y, z, w, f};
}

template <class T> T tex1Dfetch(cudaTextureObject_t t, int i)
{
    return cuda_cpu::fetch<T>(t, cuda_cpu::texture_index, i, 0);
}
template <class T> T tex1D(cudaTextureObject_t t, float x)
{
    return cuda_cpu::fetch<T>(t, cuda_cpu::texture_1d, x, 0.5f);
}
template <class T> T tex2D(cudaTextureObject_t t, float x, float y)
{
    return cuda_cpu::fetch<T>(t, cuda_cpu::texture_2d, x, y);
}
