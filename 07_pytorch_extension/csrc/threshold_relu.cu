// threshold_relu.cu - the kernels of the plain library, and the C functions that launch them.
//
// The work is one comparison an element, so the only question is how many bytes are on their way
// at once. Each thread loads its packs of 16 bytes before it uses the first of them. What the packs
// do not cover (before the first 16-byte boundary, after the last) is done one by one.
#include "threshold_relu.h"
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

// From CUDA 12 on there is a comparison of two 16-bit elements: one instruction for half (sm_53 and
// later) and for bfloat16 (sm_90 and later). Elsewhere elements are compared one by one.
#if defined(__CUDA_ARCH__) && __CUDACC_VER_MAJOR__ >= 12
#include <cuda_bf16.h>
#define COMPARE_PAIRS
#endif

// g++ (CPU backend) does not see that what the kernel's first loop loads, its second loop uses.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Chosen by measuring on an H200: 32 bytes under way a thread, two packs of x forward, one of x and
// one of grad backward. Where a pack is one element, it takes more of them.
enum { BLOCK = 128, FORWARD_PACKS = 2, BACKWARD_PACKS = 1, NARROW_PACKS = 8 };

// ---- one comparison for each type: is x <= threshold? False for a NaN on either side.

// The upper half of a float. cuda_bf16.h has a type with arithmetic; a comparison needs this alone.
struct bfloat16 {
    uint16_t bits;
};

static inline __device__ bool at_most(float x, float threshold)
{
    return x <= threshold;
}

static inline __device__ bool at_most(double x, double threshold)
{
    return x <= threshold;
}

static inline __device__ bool at_most(__half x, float threshold)
{
    return __half2float(x) <= threshold;
}

static inline __device__ bool at_most(struct bfloat16 x, float threshold)
{
    return __uint_as_float((unsigned)x.bits << 16) <= threshold;
}

// ---- the kernel, for both directions

// WIDTH elements that are loaded and stored as one.
template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) pack {
    T element[WIDTH];
};

// The elements of `kept`, with 0 where that of `value` is at most the limit.
template <typename T, int WIDTH, typename Limit>
static __device__ __forceinline__ pack<T, WIDTH> drop(pack<T, WIDTH> kept, pack<T, WIDTH> value,
                                                      Limit limit)
{
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        if (at_most(value.element[e], limit))
            kept.element[e] = T();
    return kept;
}

#ifdef COMPARE_PAIRS
// 16-bit elements lie two in a register: the mask has 16 ones for each that is at most the limit.
static __device__ __forceinline__ unsigned mask_of(__half2 pair, float limit)
{
    return __hle2_mask(pair, __float2half2_rn(limit));
}

static __device__ __forceinline__ unsigned mask_of(__nv_bfloat162 pair, float limit)
{
    return __hle2_mask(pair, __float2bfloat162_rn(limit));
}

template <typename Pair, typename T>
static __device__ __forceinline__ pack<T, 8> drop_pairs(pack<T, 8> kept, pack<T, 8> value,
                                                        float limit)
{
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
        Pair pair;
        unsigned bits;
        memcpy(&pair, &value.element[e], sizeof(pair));
        memcpy(&bits, &kept.element[e], sizeof(bits));
        bits &= ~mask_of(pair, limit);
        memcpy(&kept.element[e], &bits, sizeof(bits));
    }
    return kept;
}

static __device__ __forceinline__ pack<__half, 8> drop(pack<__half, 8> kept, pack<__half, 8> value,
                                                       float limit)
{
    return drop_pairs<__half2>(kept, value, limit);
}

static __device__ __forceinline__ pack<struct bfloat16, 8>
drop(pack<struct bfloat16, 8> kept, pack<struct bfloat16, 8> value, float limit)
{
    return drop_pairs<__nv_bfloat162>(kept, value, limit);
}
#endif

// out = x <= limit ? 0 : source. Forward, the source is x itself, and is not loaded twice. Limit is
// float, or double for double.
// head: elements before the first pack; packs: how many follow; the rest of n is the tail.
template <typename T, int WIDTH, int PACKS, bool BACKWARD, typename Limit>
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
        if (i < packs)
            out_packs[i] = drop(BACKWARD ? kept[p] : value[p], value[p], limit);
    }

    // Head and tail together are fewer than two packs: the first threads of the grid do them.
    size_t body_end = head + packs * WIDTH;
    if (first < head + (n - body_end)) {
        size_t i = first < head ? first : body_end + (first - head);
        out[i] = at_most(x[i], limit) ? T() : source[i];
    }
}

// ---- launching

static const size_t PACK_BYTES = 16; // the widest load of one thread up to sm_90

template <typename T, int WIDTH, int PACKS, bool BACKWARD, typename Limit>
static cudaError_t launch_packs(size_t n, size_t head, const T *source, const T *x, T *out,
                                Limit limit, cudaStream_t stream)
{
    size_t packs = (n - head) / WIDTH;
    size_t blocks = packs / (BLOCK * PACKS) + 1; // at least one, for head and tail
    if (blocks > 0x7FFFFFFF)                     // gridDim.x ends at 2^31 - 1
        return cudaErrorInvalidValue;
    threshold_relu_kernel<T, WIDTH, PACKS, BACKWARD>
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
        return launch_packs<T, 1, NARROW_PACKS, BACKWARD>(n, 0, from, in, (T *)out, limit, stream);
    size_t head = (PACK_BYTES - at % PACK_BYTES) % PACK_BYTES / sizeof(T);
    if (head > n)
        head = n;
    const int PACKS = BACKWARD ? BACKWARD_PACKS : FORWARD_PACKS;
    return launch_packs<T, PACK_BYTES / sizeof(T), PACKS, BACKWARD>(n, head, from, in, (T *)out,
                                                                    limit, stream);
}

// The float that a bfloat16 holds after rounding to the nearest, ties to even.
static float round_to_bfloat16(float value)
{
    uint32_t bits;
    if (isnan(value))
        return value;
    memcpy(&bits, &value, sizeof(bits));
    bits += 0x7FFF + (bits >> 16 & 1); // a carry into the exponent is right, up to infinity
    bits &= 0xFFFF0000;
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

template <bool BACKWARD>
static cudaError_t launch_type(enum threshold_relu_type type, const void *source, const void *x,
                               void *out, size_t n, double threshold, cudaStream_t stream)
{
    float limit = (float)threshold;
    if (type == THRESHOLD_RELU_FLOAT16)
        limit = __half2float(__float2half(limit));
    if (type == THRESHOLD_RELU_BFLOAT16)
        limit = round_to_bfloat16(limit);
    if (type != THRESHOLD_RELU_FLOAT64 && isinf(limit) && !isinf(threshold))
        return cudaErrorInvalidValue; // as infinity it would drop what is to be kept
    switch (type) {
    case THRESHOLD_RELU_FLOAT32:
        return launch<float, BACKWARD>(n, source, x, out, limit, stream);
    case THRESHOLD_RELU_FLOAT64:
        return launch<double, BACKWARD>(n, source, x, out, threshold, stream);
    case THRESHOLD_RELU_FLOAT16:
        return launch<__half, BACKWARD>(n, source, x, out, limit, stream);
    case THRESHOLD_RELU_BFLOAT16:
        return launch<struct bfloat16, BACKWARD>(n, source, x, out, limit, stream);
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
