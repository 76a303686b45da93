// Device functions on numbers: CUDA's single-precision and intrinsic names, integer intrinsics, reinterpreting
// and converting. The fast ones (__sinf ...) are exact here, so a GPU's result may differ in the last digits.
#pragma once
#pragma GCC system_header
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

// min and max, as CUDA has them in the global namespace. min(1, 2u) is the unsigned one.
#define CUDA_CPU_MINMAX(R, A, B)                                                                   \
    constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }                                \
    constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
CUDA_CPU_MINMAX(int, int, int)
CUDA_CPU_MINMAX(unsigned, unsigned, unsigned)
CUDA_CPU_MINMAX(unsigned, int, unsigned)
CUDA_CPU_MINMAX(unsigned, unsigned, int)
CUDA_CPU_MINMAX(long, long, long)
CUDA_CPU_MINMAX(unsigned long, unsigned long, unsigned long)
CUDA_CPU_MINMAX(unsigned long, long, unsigned long)
CUDA_CPU_MINMAX(unsigned long, unsigned long, long)
CUDA_CPU_MINMAX(long long, long long, long long)
CUDA_CPU_MINMAX(unsigned long long, unsigned long long, unsigned long long)
CUDA_CPU_MINMAX(unsigned long long, long long, unsigned long long)
CUDA_CPU_MINMAX(unsigned long long, unsigned long long, long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

// Names that CUDA adds to <math.h>.
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float sinpif(float x) { return (float)sin(M_PI * fmod((double)x, 2.0)); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline float cospif(float x) { return (float)cos(M_PI * fmod((double)x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline void sincospif(float x, float *s, float *c)
{
    *s = sinpif(x);
    *c = cospif(x);
}
inline float normf(int n, const float *v)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += (double)v[i] * v[i];
    return (float)sqrt(s);
}
inline float norm3df(float a, float b, float c)
{
    return (float)sqrt((double)a * a + (double)b * b + (double)c * c);
}
inline double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
inline float fdividef(float a, float b) { return a / b; }

// Intrinsics.
inline float __saturatef(float x) { return x >= 0 ? (x <= 1 ? x : 1) : 0; } // NaN: 0
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float *s, float *c)
{
    *s = sinf(x);
    *c = cosf(x);
}
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b)
{
    return (int)((unsigned)((a << 8) >> 8) * (unsigned)((b << 8) >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline unsigned __sad(int a, int b, unsigned c)
{
    return c + (a > b ? (unsigned)a - b : (unsigned)b - a);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned pick = s >> 4 * i & 15, byte = (unsigned)(bytes >> 8 * (pick & 7)) & 255;
        r |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return n &= 31, (unsigned)(((unsigned long long)hi << 32 | lo) << n >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return n &= 31, (unsigned)(((unsigned long long)hi << 32 | lo) >> n);
}

template <class To, class From> inline To cuda_cpu_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline int __float_as_int(float x) { return cuda_cpu_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return cuda_cpu_bits<unsigned>(x); }
inline float __int_as_float(int x) { return cuda_cpu_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return cuda_cpu_bits<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_cpu_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_cpu_bits<double>(x); }
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }

// Conversions: a value out of range becomes the nearest one in range, NaN becomes 0, as on the GPU (a plain
// cast is undefined in C++). rn: to nearest even, rz: towards zero, ru: up, rd: down.
template <class To, class From> inline To cuda_cpu_convert(From x, To low, To high)
{
    return x != x ? 0 : x <= (From)low ? low : x >= (From)high ? high : (To)x;
}
#define CUDA_CPU_CONVERT(From, from, To, to, low, high)                                            \
    inline To __##from##2##to##_rn(From x) { return cuda_cpu_convert<To>(rint(x), low, high); }    \
    inline To __##from##2##to##_rz(From x) { return cuda_cpu_convert<To>(trunc(x), low, high); }   \
    inline To __##from##2##to##_ru(From x) { return cuda_cpu_convert<To>(ceil(x), low, high); }    \
    inline To __##from##2##to##_rd(From x) { return cuda_cpu_convert<To>(floor(x), low, high); }
CUDA_CPU_CONVERT(float, float, int, int, INT_MIN, INT_MAX)
CUDA_CPU_CONVERT(float, float, unsigned, uint, 0u, UINT_MAX)
CUDA_CPU_CONVERT(float, float, long long, ll, LLONG_MIN, LLONG_MAX)
CUDA_CPU_CONVERT(float, float, unsigned long long, ull, 0ull, ULLONG_MAX)
CUDA_CPU_CONVERT(double, double, int, int, INT_MIN, INT_MAX)
CUDA_CPU_CONVERT(double, double, unsigned, uint, 0u, UINT_MAX)
CUDA_CPU_CONVERT(double, double, long long, ll, LLONG_MIN, LLONG_MAX)
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return (double)x; }
