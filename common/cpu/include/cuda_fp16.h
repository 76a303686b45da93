// __half as a storage type: 16 bits in memory, arithmetic in float. Rounding is to nearest even.
#pragma once
#pragma GCC system_header
#include "cuda_runtime.h"

// 16 bits: sign, 5 of exponent, 10 of mantissa. Below 2^-14 the exponent stays, and the steps are those of 2^-24.
inline unsigned short cuda_cpu_to_half(float f)
{
    float size = fabsf(f);
    int exponent = size < 0x1p-14f ? -14 : ilogbf(size), bits = 0x7fff; // NaN
    if (size >= 65520) bits = 0x7c00;                                   // infinity
    if (size < 65520) bits = ((exponent + 14) << 10) + (int)rintf(ldexpf(size, 10 - exponent));
    return (unsigned short)(bits | (signbit(f) ? 0x8000 : 0));
}
inline float cuda_cpu_from_half(unsigned short h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    float size = exponent ? ldexpf(1024 + mantissa, exponent - 25) : ldexpf(mantissa, -24);
    if (exponent == 31) size = mantissa ? NAN : INFINITY;
    return h & 0x8000 ? -size : size;
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
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half __ushort_as_half(unsigned short bits)
{
    __half h;
    h.bits = bits;
    return h;
}
