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
    int bytes, channels; // of one element; elements in a texel
    cudaTextureDesc desc;
    bool linear_memory;
};
static auto &textures = *new Handles<Texture>();

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
    if (t.format.f == cudaChannelFormatKindFloat) {
        float f;
        memcpy(&f, p, 4);
        return f;
    }
    bool is_signed = t.format.f == cudaChannelFormatKindSigned;
    float scale = (float)((1u << (8 * t.bytes - (is_signed ? 1 : 0))) - 1);
    float value =
        t.bytes == 1
            ? (is_signed ? (float)*(const signed char *)p : (float)*(const unsigned char *)p)
            : (is_signed ? (float)*(const short *)p : (float)*(const unsigned short *)p);
    return fmaxf(value / scale, -1.0f);
}

// Position of a sample: the texel below it, and the weight of the next one in steps of 1/256.
static long split(float x, float *weight)
{
    float below = floorf(x);
    *weight = floorf((x - below) * 256.0f + 0.5f) / 256.0f;
    return (long)below;
}

void texture_read(cudaTextureObject_t object, Coordinates c, float x, float y, int index,
                  bool as_float, int bytes, int channels, void *out)
{
    const Texture &t = *(const Texture *)object;
    bool fraction =
        t.desc.readMode == cudaReadModeNormalizedFloat || t.format.f == cudaChannelFormatKindFloat;
    if (!object || fraction != as_float || channels != t.channels ||
        (!fraction && bytes != t.bytes))
        kernel_fault(cudaErrorLaunchFailure, "the type of this texture fetch is not the texture's");
    float *numbers = (float *)out;
    const char *p;
    if (c == texture_index) {
        p = index >= 0 && index < t.width ? t.data + (size_t)index * (size_t)(t.bytes * t.channels)
                                          : nullptr;
        if (!p) {
            memset(out, 0, (size_t)(bytes * channels));
            return;
        }
    } else {
        if (t.desc.normalizedCoords) x *= (float)t.width, y *= (float)t.height;
        if (c == texture_1d) y = 0.5f;
        if (t.desc.filterMode == cudaFilterModeLinear) {
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
        p = texel(t, (long)floorf(x), (long)floorf(y));
    }
    if (fraction)
        for (int k = 0; k < channels; k++) numbers[k] = number(t, p, k);
    else if (p)
        memcpy(out, p, (size_t)(bytes * channels));
    else
        memset(out, 0, (size_t)(bytes * channels));
}

// Can this be a texture? Fills t in as far as it goes.
static bool describe(Texture &t, const cudaResourceDesc &r, const cudaTextureDesc &d)
{
    t.desc = d;
    t.height = 1;
    if (r.resType == cudaResourceTypeArray && r.res.array.array) {
        const cudaArray &a = *r.res.array.array;
        t.data = (const char *)a.data;
        t.format = a.desc;
        t.width = (long)a.width;
        t.height = (long)a.height;
        t.pitch = a.width * a.texel;
    } else if (r.resType == cudaResourceTypeLinear) {
        t.data = (const char *)r.res.linear.devPtr;
        t.format = r.res.linear.desc;
        t.linear_memory = true;
    } else if (r.resType == cudaResourceTypePitch2D) {
        t.data = (const char *)r.res.pitch2D.devPtr;
        t.format = r.res.pitch2D.desc;
        t.width = (long)r.res.pitch2D.width;
        t.height = (long)r.res.pitch2D.height;
        t.pitch = r.res.pitch2D.pitchInBytes;
        if (t.pitch % 32) return false;
    } else {
        return false;
    }
    if (!valid_format(t.format) || !t.data || is_host_pointer(t.data) || (size_t)t.data % 512)
        return false;
    t.bytes = t.format.x / 8;
    t.channels = channels_of(t.format);
    if (t.linear_memory)
        t.width = (long)(r.res.linear.sizeInBytes / (size_t)(t.bytes * t.channels));
    bool integers = t.format.f != cudaChannelFormatKindFloat;
    if (integers && d.readMode == cudaReadModeNormalizedFloat && t.bytes == 4) return false;
    if (integers && d.readMode == cudaReadModeElementType && d.filterMode == cudaFilterModeLinear)
        return false;
    for (cudaTextureAddressMode &mode :
         t.desc.addressMode) // wrap and mirror exist for normalised coordinates only
        if (!d.normalizedCoords && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
            mode = cudaAddressModeClamp;
    return true;
}
} // namespace cuda_cpu

using namespace cuda_cpu;

API(cudaCreateTextureObject, 0,
    (cudaTextureObject_t * object, const cudaResourceDesc *resource, const cudaTextureDesc *desc,
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
    return object ? textures.destroy((Texture *)object, cudaErrorInvalidValue) : cudaSuccess;
}

API(cudaMallocArray, NO_CAPTURE,
    (cudaArray_t * array, const cudaChannelFormatDesc *desc, size_t width, size_t height,
     unsigned flags, const char *file, int line),
    (array, desc, width, height, flags, file, line))
{
    if (!array || !desc || !valid_format(*desc) || !width || flags) return cudaErrorInvalidValue;
    size_t texel = (size_t)(channels_of(*desc) * desc->x / 8), rows = height ? height : 1;
    cudaArray a = {*desc, width, rows, texel, nullptr};
    cudaError_t error = allocate(&a.data, width * rows * texel, DEVICE, nullptr, file, line);
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

API(cudaMemcpy2DFromArray, SYNC | NO_CAPTURE,
    (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
     size_t height, cudaMemcpyKind kind),
    (dst, dpitch, src, x, y, width, height, kind))
{
    char *p = inside(src, x, y, width, height);
    return p ? copy_2d(dst, dpitch, p, src->width * src->texel, width, height, kind)
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
