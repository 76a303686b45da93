// Device functions on numbers: CUDA's single-precision and intrinsic names, integer intrinsics, reinterpreting
// and converting. The fast ones (__sinf ...) are exact here, so a GPU's result may differ in the last digits.
#pragma once
#pragma GCC system_header
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

// clang-format off

// ---- min and max ----
// As CUDA has them in the global namespace. min(1, 2u) is the unsigned one.
#define CUDA_CPU_MINMAX(R, A, B)                                                                   \
    constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }                                \
    constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
#define CUDA_CPU_MINMAX_INTEGER(S, U)                                                              \
    CUDA_CPU_MINMAX(S, S, S) CUDA_CPU_MINMAX(U, U, U)                                              \
    CUDA_CPU_MINMAX(U, S, U) CUDA_CPU_MINMAX(U, U, S)
#define CUDA_CPU_MINMAX_FLOAT(R, A, B, f)                                                          \
    inline R min(A a, B b) { return fmin##f(a, b); }                                               \
    inline R max(A a, B b) { return fmax##f(a, b); }
CUDA_CPU_MINMAX_INTEGER(int, unsigned)
CUDA_CPU_MINMAX_INTEGER(long, unsigned long)
CUDA_CPU_MINMAX_INTEGER(long long, unsigned long long)
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
CUDA_CPU_MINMAX_FLOAT(float, float, float, f)  CUDA_CPU_MINMAX_FLOAT(double, double, double, )
CUDA_CPU_MINMAX_FLOAT(double, float, double, ) CUDA_CPU_MINMAX_FLOAT(double, double, float, )

// ---- Functions of one, two or three numbers of one type ----
#define CUDA_CPU_F1(name, ...) inline float name(float x) { return __VA_ARGS__; }
#define CUDA_CPU_F2(name, ...) inline float name(float x, float y) { return __VA_ARGS__; }
#define CUDA_CPU_F3(name, ...) inline float name(float x, float y, float z) { return __VA_ARGS__; }
#define CUDA_CPU_D1(name, ...) inline double name(double x) { return __VA_ARGS__; }
#define CUDA_CPU_D2(name, ...) inline double name(double x, double y) { return __VA_ARGS__; }
#define CUDA_CPU_D3(name, ...)                                                                     \
    inline double name(double x, double y, double z) { return __VA_ARGS__; }

// Names that CUDA adds to <math.h>.
CUDA_CPU_D1(rsqrt, 1 / sqrt(x))                  CUDA_CPU_F1(rsqrtf, 1 / sqrtf(x))
CUDA_CPU_D1(sinpi, sin(M_PI * fmod(x, 2)))       CUDA_CPU_F1(sinpif, (float)sinpi(x))
CUDA_CPU_D1(cospi, cos(M_PI * fmod(x, 2)))       CUDA_CPU_F1(cospif, (float)cospi(x))
CUDA_CPU_D1(normcdf, 0.5 * erfc(-x * M_SQRT1_2)) CUDA_CPU_F1(normcdff, (float)normcdf(x))
CUDA_CPU_D3(norm3d, hypot(hypot(x, y), z))       CUDA_CPU_F3(norm3df, (float)norm3d(x, y, z))

// Intrinsics.
CUDA_CPU_F1(__sinf, sinf(x))     CUDA_CPU_F1(__cosf, cosf(x))       CUDA_CPU_F1(__tanf, tanf(x))
CUDA_CPU_F1(__expf, expf(x))     CUDA_CPU_F1(__exp10f, powf(10, x)) CUDA_CPU_F2(__powf, powf(x, y))
CUDA_CPU_F1(__logf, logf(x))     CUDA_CPU_F1(__log2f, log2f(x))     CUDA_CPU_F1(__log10f, log10f(x))
CUDA_CPU_F2(fdividef, x / y)     CUDA_CPU_F2(__fdividef, x / y)     CUDA_CPU_F1(__frcp_rn, 1 / x)
CUDA_CPU_F1(__fsqrt_rn, sqrtf(x)) CUDA_CPU_F1(__frsqrt_rn, rsqrtf(x))
CUDA_CPU_F2(__fadd_rn, x + y)    CUDA_CPU_F2(__fsub_rn, x - y)      CUDA_CPU_F2(__fmul_rn, x * y)
CUDA_CPU_F2(__fdiv_rn, x / y)    CUDA_CPU_F3(__fmaf_rn, fmaf(x, y, z))
CUDA_CPU_D1(__dsqrt_rn, sqrt(x)) CUDA_CPU_D1(__drcp_rn, 1 / x)
CUDA_CPU_D2(__dadd_rn, x + y)    CUDA_CPU_D2(__dsub_rn, x - y)      CUDA_CPU_D2(__dmul_rn, x * y)
CUDA_CPU_D2(__ddiv_rn, x / y)    CUDA_CPU_D3(__fma_rn, fma(x, y, z))
inline float __saturatef(float x) { return x > 0 ? fminf(x, 1) : 0; } // NaN: 0
inline void __sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
// clang-format on
inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }

// ---- Integers ----
typedef unsigned long long cuda_cpu_ull;

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(cuda_cpu_ull x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((cuda_cpu_ull)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((cuda_cpu_ull)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline cuda_cpu_ull __umul64hi(cuda_cpu_ull a, cuda_cpu_ull b)
{
    return (cuda_cpu_ull)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b)
{
    return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline unsigned __sad(int a, int b, unsigned c)
{
    return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    cuda_cpu_ull bytes = (cuda_cpu_ull)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned pick = s >> 4 * i & 15, byte = (unsigned)(bytes >> 8 * (pick & 7)) & 255;
        r |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((cuda_cpu_ull)hi << 32 | lo) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((cuda_cpu_ull)hi << 32 | lo) >> (n & 31));
}

// ---- The same bits as another type ----
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

// ---- Conversions ----
// A value out of range becomes the nearest one in range, NaN becomes 0, as on the GPU (a plain cast is undefined in
// C++). rn: to nearest even, rz: towards zero, ru: up, rd: down.
template <class To, class From> inline To cuda_cpu_convert(From x, To low, To high)
{
    return x != x ? 0 : x <= (From)low ? low : x >= (From)high ? high : (To)x;
}
#define CUDA_CPU_ROUND(From, To, to, low, high)                                                    \
    inline To __##From##2##to##_rn(From x) { return cuda_cpu_convert<To>(rint(x), low, high); }    \
    inline To __##From##2##to##_rz(From x) { return cuda_cpu_convert<To>(trunc(x), low, high); }   \
    inline To __##From##2##to##_ru(From x) { return cuda_cpu_convert<To>(ceil(x), low, high); }    \
    inline To __##From##2##to##_rd(From x) { return cuda_cpu_convert<To>(floor(x), low, high); }
#define CUDA_CPU_CONVERT(From)                                                                     \
    CUDA_CPU_ROUND(From, int, int, INT_MIN, INT_MAX)                                               \
    CUDA_CPU_ROUND(From, unsigned, uint, 0u, UINT_MAX)                                             \
    CUDA_CPU_ROUND(From, long long, ll, LLONG_MIN, LLONG_MAX)                                      \
    CUDA_CPU_ROUND(From, cuda_cpu_ull, ull, 0ull, ULLONG_MAX)                                      \
    inline From __int2##From##_rn(int x) { return (From)x; }                                       \
    inline From __uint2##From##_rn(unsigned x) { return (From)x; }                                 \
    inline From __ll2##From##_rn(long long x) { return (From)x; }                                  \
    inline From __ull2##From##_rn(cuda_cpu_ull x) { return (From)x; }
CUDA_CPU_CONVERT(float)
CUDA_CPU_CONVERT(double)
inline float __double2float_rn(double x) { return (float)x; }
