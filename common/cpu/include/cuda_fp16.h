// __half as a storage type: 16 bits in memory, arithmetic in float. Rounding is to nearest even.
#pragma once
#pragma GCC system_header
#include "cuda_runtime.h"

inline unsigned short cuda_cpu_to_half(float f)
{
    unsigned x = __float_as_uint(f), sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    if (a > 0x7f800000) return (unsigned short)(sign | 0x7fff); // NaN
    if (a >= 0x47800000 - 0x1000)
        return (unsigned short)(sign | 0x7c00); // 65520 and more: infinity
    if (a < 0x38800000) {                       // below 2^-14: steps of 2^-24
        float steps = __uint_as_float(a) * 16777216.0f;
        return (unsigned short)(sign | (unsigned)rintf(steps));
    }
    unsigned rounded = a + 0xfff + (a >> 13 & 1);
    return (unsigned short)(sign | ((rounded >> 13) - (112 << 10)));
}
inline float cuda_cpu_from_half(unsigned short h)
{
    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | mantissa << 13);
    float value = exponent ? __uint_as_float((exponent + 112) << 23 | mantissa << 13)
                           : (float)mantissa / 16777216.0f;
    return sign ? -value : value;
}

struct __half {
    unsigned short bits;
    __half() = default;
    __half(float f) : bits(cuda_cpu_to_half(f)) {}
    __half(double f) : __half((float)f) {}
    __half(int i) : __half((float)i) {}
    operator float() const { return cuda_cpu_from_half(bits); }
};
typedef __half half;

#define CUDA_CPU_HALF(op, name)                                                                    \
    inline __half name(__half a, __half b) { return (float)a op(float) b; }                        \
    inline __half operator op(__half a, __half b) { return name(a, b); }                           \
    inline __half &operator op##=(__half &a, __half b) { return a = name(a, b); }
CUDA_CPU_HALF(+, __hadd)
CUDA_CPU_HALF(-, __hsub)
CUDA_CPU_HALF(*, __hmul)
CUDA_CPU_HALF(/, __hdiv)
inline __half __hfma(__half a, __half b, __half c) { return fmaf(a, b, c); }
inline float __half2float(__half h) { return h; }
inline __half __float2half(float f) { return f; }
inline __half __float2half_rn(float f) { return f; }
