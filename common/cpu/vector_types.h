// The vector types: dim3, and char1 to double4 with their make_ functions. Sizes and alignments are those
// of CUDA, so that a float4 is one 16-byte access here too.
#pragma once
#pragma GCC system_header

#define CUDA_CPU_ALIGN(n) __attribute__((aligned((n) < 16 ? (n) : 16)))
#define CUDA_CPU_VECTOR(T, V)                                                                      \
    struct V##1 { T x; };                                                                          \
    struct CUDA_CPU_ALIGN(2 * sizeof(T)) V##2 { T x, y; };                                         \
    struct V##3 { T x, y, z; };                                                                    \
    struct CUDA_CPU_ALIGN(4 * sizeof(T)) V##4 { T x, y, z, w; };                                   \
    constexpr V##1 make_##V##1(T x) { return {x}; }                                                \
    constexpr V##2 make_##V##2(T x, T y) { return {x, y}; }                                        \
    constexpr V##3 make_##V##3(T x, T y, T z) { return {x, y, z}; }                                \
    constexpr V##4 make_##V##4(T x, T y, T z, T w) { return {x, y, z, w}; }

// clang-format off
CUDA_CPU_VECTOR(signed char, char)    CUDA_CPU_VECTOR(unsigned char, uchar)
CUDA_CPU_VECTOR(short, short)         CUDA_CPU_VECTOR(unsigned short, ushort)
CUDA_CPU_VECTOR(int, int)             CUDA_CPU_VECTOR(unsigned, uint)
CUDA_CPU_VECTOR(long, long)           CUDA_CPU_VECTOR(unsigned long, ulong)
CUDA_CPU_VECTOR(long long, longlong)  CUDA_CPU_VECTOR(unsigned long long, ulonglong)
CUDA_CPU_VECTOR(float, float)         CUDA_CPU_VECTOR(double, double)
    // clang-format on

    struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
