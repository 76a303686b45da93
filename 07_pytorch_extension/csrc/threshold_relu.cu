// threshold_relu.cu - the kernels of the plain library, and the C functions that launch them.
//
// The work is one comparison an element, so the only question is how many bytes are on their way
// at once. Each thread loads several packs of 16 bytes before it uses the first of them. What the
// packs do not cover (before the first 16-byte boundary, after the last) is done one by one.
#include "threshold_relu.h"
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

enum { BLOCK = 256, PACKS = 4 }; // threads a block; packs a thread has under way at once

// ---- one comparison for each type: is x <= threshold?

static inline __device__ bool at_most(float x, float threshold)
{
    return x <= threshold; // false for a NaN on either side
}

static inline __device__ bool at_most(double x, double threshold)
{
    return x <= threshold;
}

// The two 16-bit types are compared as their bits; no arithmetic type is needed. A float is stored
// as sign and magnitude. Where the sign is set, flip the other bits, and the numbers order as
// signed integers do, with NaN at both ends:
//
//     (NaN) -infinity ... -2 ... -1 ... -0 +0 ... 1 ... 2 ... +infinity (NaN)
//
// so "x <= threshold" says that the key of x lies between those of -infinity and the threshold.
struct key_range {
    int lowest;     // key of -infinity
    unsigned count; // keys from there to the threshold's, both included; 0: everything passes
};

static inline __host__ __device__ int order_key(uint16_t bits)
{
    int value = (int16_t)bits;
    return value ^ ((value >> 15) & 0x7FFF); // the shift gives 0, or all ones below 0
}

static inline __device__ bool at_most(uint16_t x, struct key_range range)
{
    return (unsigned)(order_key(x) - range.lowest) < range.count; // below lowest: wraps to large
}

// ---- the kernel, for both directions

// WIDTH elements that are loaded and stored as one.
template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) pack {
    T element[WIDTH];
};

// out = x <= limit ? 0 : source. Forward, the source is x itself, and is not loaded twice.
// head: elements before the first pack; packs: how many follow; the rest of n is the tail.
template <typename T, int WIDTH, bool BACKWARD, typename Limit>
__global__ void __launch_bounds__(BLOCK)
    threshold_relu_kernel(size_t n, size_t head, size_t packs, const T *source, const T *x, T *out,
                          Limit limit)
{
    typedef pack<T, WIDTH> Pack;
    const Pack *x_packs = (const Pack *)(x + head), *source_packs = (const Pack *)(source + head);
    Pack *out_packs = (Pack *)(out + head);
    Pack value[PACKS], kept[PACKS];

    // Neighbouring threads take neighbouring packs: pack p of a thread is p * BLOCK further on.
    size_t first = (size_t)blockIdx.x * (BLOCK * PACKS) + threadIdx.x;
#pragma unroll
    for (int p = 0; p < PACKS; p++) { // loads only: all of them are under way together
        size_t i = first + (size_t)p * BLOCK;
        if (i < packs) {
            value[p] = x_packs[i];
            if (BACKWARD)
                kept[p] = source_packs[i];
        }
    }
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        size_t i = first + (size_t)p * BLOCK;
        if (i < packs) {
            Pack result = BACKWARD ? kept[p] : value[p];
            for (int e = 0; e < WIDTH; e++)
                if (at_most(value[p].element[e], limit))
                    result.element[e] = 0;
            out_packs[i] = result;
        }
    }

    // Head and tail together are fewer than two packs: the first threads of the grid do them.
    size_t body_end = head + packs * WIDTH;
    if (first < head + (n - body_end)) {
        size_t i = first < head ? first : body_end + (first - head);
        out[i] = at_most(x[i], limit) ? (T)0 : source[i];
    }
}

// ---- launching

static const size_t PACK_BYTES = 16; // the widest load of one thread up to sm_90

template <typename T, int WIDTH, bool BACKWARD, typename Limit>
static cudaError_t launch_width(size_t n, size_t head, const T *source, const T *x, T *out,
                                Limit limit, cudaStream_t stream)
{
    size_t packs = (n - head) / WIDTH;
    size_t blocks = packs / (BLOCK * PACKS) + 1; // at least one, for head and tail
    if (blocks > 0x7FFFFFFF)                     // gridDim.x ends at 2^31 - 1
        return cudaErrorInvalidValue;
    threshold_relu_kernel<T, WIDTH, BACKWARD>
        <<<(unsigned)blocks, BLOCK, 0, stream>>>(n, head, packs, source, x, out, limit);
    return cudaGetLastError();
}

// Packs need all pointers at the same distance from a 16-byte boundary. Where they differ (x[1:]
// into a fresh tensor), packs of one element do the same work with narrower loads.
template <typename T, bool BACKWARD, typename Limit>
static cudaError_t launch(size_t n, const void *source, const void *x, void *out, Limit limit,
                          cudaStream_t stream)
{
    uintptr_t at = (uintptr_t)out;
    uintptr_t differ = (at ^ (uintptr_t)x) | (at ^ (uintptr_t)source);
    if (n == 0)
        return cudaSuccess; // a grid of no blocks would be an error
    if ((at | differ) % sizeof(T))
        return cudaErrorInvalidValue; // the kernel would end with error 716, misaligned address
    const T *from = (const T *)source, *in = (const T *)x;
    if (differ % PACK_BYTES)
        return launch_width<T, 1, BACKWARD>(n, 0, from, in, (T *)out, limit, stream);
    size_t head = (PACK_BYTES - at % PACK_BYTES) % PACK_BYTES / sizeof(T);
    if (head > n)
        head = n;
    return launch_width<T, PACK_BYTES / sizeof(T), BACKWARD>(n, head, from, in, (T *)out, limit,
                                                             stream);
}

// A 16-bit format: half has 10 mantissa bits, bfloat16 has 7; what is left is the exponent.
static const int HALF_MANTISSA = 10, BFLOAT16_MANTISSA = 7;

// The bits of the 16-bit float nearest to value, ties to even, as every conversion rounds.
static uint16_t float16_bits(double value, int mantissa_bits)
{
    int bias = (1 << (14 - mantissa_bits)) - 1, exponent = 0;
    unsigned sign = signbit(value) ? 0x8000u : 0, infinity = (0x7FFFu >> mantissa_bits)
                                                             << mantissa_bits;
    if (isnan(value))
        return (uint16_t)(sign | 0x7FFF);
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    frexp(value, &exponent); // value = m * 2^exponent with 0.5 <= m < 1
    exponent -= 1;
    if (value == 0 || exponent < 1 - bias)
        exponent = 1 - bias; // zero and subnormal: the steps get no smaller
    // In steps of the last mantissa bit. A normal number has its leading 1 in there, which adds one
    // to the exponent field; rounding up to the next power of two carries into it as well.
    unsigned steps = (unsigned)nearbyint(ldexp(fabs(value), mantissa_bits - exponent));
    unsigned bits = ((unsigned)(exponent + bias - 1) << mantissa_bits) + steps;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

// The keys of all numbers up to the threshold; returns 0 when it is beyond the type's range.
static int key_range_to(double threshold, int mantissa_bits, struct key_range *range)
{
    uint16_t infinity = (uint16_t)((0x7FFFu >> mantissa_bits) << mantissa_bits);
    uint16_t bits = float16_bits(threshold, mantissa_bits);
    if (bits == 0x8000)
        bits = 0; // -0 and +0 are equal, and +0 has the higher key
    range->lowest = order_key((uint16_t)(infinity | 0x8000));
    range->count = isnan(threshold) ? 0 : (unsigned)(order_key(bits) - range->lowest) + 1;
    return isnan(threshold) || isinf(threshold) || (bits & 0x7FFF) != infinity;
}

template <bool BACKWARD>
static cudaError_t launch_type(enum threshold_relu_type type, const void *source, const void *x,
                               void *out, size_t n, double threshold, cudaStream_t stream)
{
    struct key_range range;
    switch (type) {
    case THRESHOLD_RELU_FLOAT32:
        if (isinf((float)threshold) && !isinf(threshold))
            return cudaErrorInvalidValue;
        return launch<float, BACKWARD>(n, source, x, out, (float)threshold, stream);
    case THRESHOLD_RELU_FLOAT64:
        return launch<double, BACKWARD>(n, source, x, out, threshold, stream);
    case THRESHOLD_RELU_FLOAT16:
        if (!key_range_to(threshold, HALF_MANTISSA, &range))
            return cudaErrorInvalidValue;
        return launch<uint16_t, BACKWARD>(n, source, x, out, range, stream);
    case THRESHOLD_RELU_BFLOAT16:
        if (!key_range_to(threshold, BFLOAT16_MANTISSA, &range))
            return cudaErrorInvalidValue;
        return launch<uint16_t, BACKWARD>(n, source, x, out, range, stream);
    }
    return cudaErrorInvalidValue;
}

extern "C" cudaError_t threshold_relu_forward(enum threshold_relu_type type, const void *x, void *y,
                                              size_t n, double threshold, cudaStream_t stream)
{
    return launch_type<false>(type, x, x, y, n, threshold, stream);
}

extern "C" cudaError_t threshold_relu_backward(enum threshold_relu_type type, const void *grad,
                                               const void *x, void *grad_x, size_t n,
                                               double threshold, cudaStream_t stream)
{
    return launch_type<true>(type, grad, x, grad_x, n, threshold, stream);
}
