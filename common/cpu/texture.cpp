// What a texture unit does: coordinates out of range (clamp, wrap, mirror, border), integers read as fractions,
// and linear filtering with weights of 8 bits, as in the hardware.
#include "texture.h"

#include <math.h>

#include "memory.h"

struct cudaArray {
    cudaChannelFormatDesc desc;
    size_t width, height, texel; // texel: bytes
    void *data;
};

namespace cuda_cpu
{
struct Texture {
    const char *data;
    long width, height;
    size_t pitch;
    cudaChannelFormatDesc format;
    cudaTextureDesc desc = {};
    int bytes = 0, channels = 0; // of one element; elements in a texel
    bool as_float = false;       // a fetch gives floats: what the elements are, or fractions
};
static auto &textures = *new Handles<Texture>(cudaErrorInvalidValue);

static int channels_of(const cudaChannelFormatDesc &d)
{
    return d.w ? 4 : d.z ? 3 : d.y ? 2 : d.x ? 1 : 0;
}

static bool valid_format(const cudaChannelFormatDesc &d)
{
    int n = channels_of(d);
    bool same = (n < 2 || d.y == d.x) && (n < 4 || (d.z == d.x && d.w == d.x));
    bool bits = d.x == 8 || d.x == 16 || d.x == 32;
    return n && n != 3 && same && bits && (d.f != cudaChannelFormatKindFloat || d.x == 32) &&
           d.f != cudaChannelFormatKindNone;
}

// The texel that coordinate i means, or -1 for the border.
static long address(long i, long size, cudaTextureAddressMode mode)
{
    if (i >= 0 && i < size) return i;
    if (mode == cudaAddressModeBorder) return -1;
    if (mode == cudaAddressModeClamp) return i < 0 ? 0 : size - 1;
    long period = mode == cudaAddressModeWrap ? size : 2 * size, k = (i % period + period) % period;
    return k < size ? k : period - 1 - k;
}

static const char *texel(const Texture &t, long x, long y)
{
    x = address(x, t.width, t.desc.addressMode[0]);
    y = address(y, t.height, t.desc.addressMode[1]);
    return x < 0 || y < 0 ? nullptr
                          : t.data + (size_t)y * t.pitch + (size_t)(x * t.bytes * t.channels);
}

// Element c of a texel as a number: integers as fractions when the read mode says so.
static float number(const Texture &t, const char *p, int c)
{
    if (!p) return t.desc.borderColor[c];
    p += c * t.bytes;
    if (t.format.f == cudaChannelFormatKindFloat) return *(const float *)p;
    if (t.format.f == cudaChannelFormatKindUnsigned)
        return t.bytes == 1 ? *(const unsigned char *)p / 255.0f
                            : *(const unsigned short *)p / 65535.0f;
    return fmaxf(t.bytes == 1 ? *(const signed char *)p / 127.0f : *(const short *)p / 32767.0f,
                 -1.0f);
}

// Position of a sample: the texel below it, and the weight of the next one in steps of 1/256.
static long split(float x, float *weight)
{
    float below = floorf(x);
    *weight = floorf((x - below) * 256.0f + 0.5f) / 256.0f;
    return (long)below;
}

void texture_read(cudaTextureObject_t object, Coordinates c, double x_or_index, float y,
                  bool as_float, int bytes, int channels, void *out)
{
    const Texture &t = *(const Texture *)object;
    if (!object || t.as_float != as_float || channels != t.channels ||
        (!as_float && bytes != t.bytes))
        kernel_fault(cudaErrorLaunchFailure, "the type of this texture fetch is not the texture's");
    float *numbers = (float *)out, x = (float)x_or_index;
    if (t.desc.normalizedCoords) x *= (float)t.width, y *= (float)t.height;
    if (c == texture_1d) y = 0.5f;
    if (c != texture_index && t.desc.filterMode == cudaFilterModeLinear) {
        float a, b;
        long i = split(x - 0.5f, &a), j = split(y - 0.5f, &b);
        const char *p00 = texel(t, i, j), *p10 = texel(t, i + 1, j), *p01 = texel(t, i, j + 1),
                   *p11 = texel(t, i + 1, j + 1);
        if (b == 0) p01 = p00, p11 = p10; // so that infinity or NaN beyond does not leak in
        if (a == 0) p10 = p00, p11 = p01;
        for (int k = 0; k < channels; k++)
            numbers[k] = (1 - b) * ((1 - a) * number(t, p00, k) + a * number(t, p10, k)) +
                         b * ((1 - a) * number(t, p01, k) + a * number(t, p11, k));
        return;
    }
    long i = (long)x_or_index;
    bool outside = c == texture_index && (i < 0 || i >= t.width); // reads 0
    const char *p = c == texture_index ? t.data + i * t.bytes * channels
                                       : texel(t, (long)floorf(x), (long)floorf(y));
    if (outside || (!p && !as_float))
        memset(out, 0, (size_t)(bytes * channels));
    else if (as_float)
        for (int k = 0; k < channels; k++) numbers[k] = number(t, p, k);
    else
        memcpy(out, p, (size_t)(bytes * channels));
}

// Can this be a texture? Fills t in as far as it goes.
static bool describe(Texture &t, const cudaResourceDesc &r, const cudaTextureDesc &d)
{
    if (r.resType == cudaResourceTypeArray && r.res.array.array) {
        const cudaArray &a = *r.res.array.array;
        t = {(char *)a.data, (long)a.width, (long)a.height, a.width * a.texel, a.desc};
    } else if (r.resType == cudaResourceTypeLinear) {
        auto &l = r.res.linear;
        int bits = l.desc.x * channels_of(l.desc);
        t = {(char *)l.devPtr, bits ? (long)(l.sizeInBytes * 8 / (size_t)bits) : 0, 1, 0, l.desc};
    } else if (r.resType == cudaResourceTypePitch2D && r.res.pitch2D.pitchInBytes % 32 == 0) {
        auto &p = r.res.pitch2D;
        t = {(char *)p.devPtr, (long)p.width, (long)p.height, p.pitchInBytes, p.desc};
    }
    if (!t.data || !valid_format(t.format) || is_host_pointer(t.data) || (size_t)t.data % 512)
        return false;
    bool is_float = t.format.f == cudaChannelFormatKindFloat;
    t.desc = d;
    t.bytes = t.format.x / 8;
    t.channels = channels_of(t.format);
    t.as_float = is_float || d.readMode == cudaReadModeNormalizedFloat;
    for (cudaTextureAddressMode &mode : t.desc.addressMode) // exist for normalised coordinates only
        if (!d.normalizedCoords && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
            mode = cudaAddressModeClamp;
    if (t.as_float) return is_float || t.bytes < 4;
    return d.filterMode == cudaFilterModePoint;
}
} // namespace cuda_cpu

using namespace cuda_cpu;

API(cudaCreateTextureObject, 0,
    (cudaTextureObject_t *object, const cudaResourceDesc *resource, const cudaTextureDesc *desc,
     const cudaResourceViewDesc *view),
    (object, resource, desc, view))
{
    Texture t = {};
    if (!object || !resource || !desc || view || !describe(t, *resource, *desc))
        return cudaErrorInvalidValue;
    return textures.create((Texture **)object, t);
}

API(cudaDestroyTextureObject, 0, (cudaTextureObject_t object), (object))
{
    return object ? textures.destroy((Texture *)object) : cudaSuccess;
}

API(cudaMallocArray, NO_CAPTURE,
    (cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width, size_t height,
     unsigned flags, At at),
    (array, desc, width, height, flags, at))
{
    if (!array || !desc || !valid_format(*desc) || !width || flags) return cudaErrorInvalidValue;
    size_t texel = (size_t)(channels_of(*desc) * desc->x / 8), rows = height ? height : 1;
    cudaArray a = {*desc, width, rows, texel, nullptr};
    cudaError_t error = allocate(&a.data, width * rows * texel, DEVICE, at);
    if (!error) *array = new cudaArray(a);
    return error;
}

API(cudaFreeArray, SYNC | NO_CAPTURE, (cudaArray_t array), (array))
{
    if (!array) return cudaSuccess;
    cudaError_t error = release(array->data, false);
    if (!error) delete array;
    return error;
}

// Where in the array a copy begins, null when it does not fit. x and width count bytes.
static char *inside(const cudaArray *a, size_t x, size_t y, size_t width, size_t height)
{
    if (!a || x + width > a->width * a->texel || y + height > a->height) return nullptr;
    return (char *)a->data + y * a->width * a->texel + x;
}

API(cudaMemcpy2DToArray, SYNC | NO_CAPTURE,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
     size_t height, cudaMemcpyKind kind),
    (dst, x, y, src, spitch, width, height, kind))
{
    char *p = inside(dst, x, y, width, height);
    return p ? copy_2d(p, dst->width * dst->texel, src, spitch, width, height, kind)
             : cudaErrorInvalidValue;
}

// Rows lie one after another without a gap; copy_2d checks the end of the array.
API(cudaMemcpyToArray, SYNC | NO_CAPTURE,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t size, cudaMemcpyKind kind),
    (dst, x, y, src, size, kind))
{
    char *p = inside(dst, x, y, 0, 0);
    return p ? copy_2d(p, size, src, size, size, 1, kind) : cudaErrorInvalidValue;
}
