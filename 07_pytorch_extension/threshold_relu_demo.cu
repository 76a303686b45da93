// threshold_relu_demo: the kernels of the PyTorch extension as an ordinary program. y = x where x
// is above a threshold, else 0, and its gradient; in four types, bit for bit against the CPU.
//
// Predict before you run it: both forward versions move the same bytes. One gives each thread one
// element, the other two packs of 16 bytes. How much faster is the second for float64 (8 bytes an
// element), and how much for float16 (2 bytes)?
//
// usage: threshold_relu_demo [--bytes SIZE]
#include "../common/lesson.h"
#include "csrc/threshold_relu.cu" // the library itself: what is checked here is what PyTorch calls

// The version to compare with: one element a thread.
template <typename T, typename Limit>
__global__ void one_element(size_t n, const T *x, T *y, Limit limit)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = at_most(x[i], limit) ? T() : x[i];
}

static const double threshold = 0.25; // exact in all four types
static const char *const type_name[] = {"float32", "float64", "float16", "bfloat16"};
static double value_of[65536]; // of the 16-bit type at work: the number for each pattern

struct arrays {
    char *d_x, *d_grad, *d_out;  // device
    char *x, *grad, *want, *got; // host
};

// Fills value_of, taking the bits apart field by field: the reference shares no code with the
// kernels.
static void list_values(int mantissa_bits)
{
    int largest_exponent = (1 << (15 - mantissa_bits)) - 1, bias = largest_exponent / 2;
    for (int bits = 0; bits < 65536; bits++) {
        int exponent = (bits & 0x7FFF) >> mantissa_bits;
        int fraction = bits & ((1 << mantissa_bits) - 1);
        double magnitude =
            exponent == 0 ? ldexp(fraction, 1 - bias - mantissa_bits)
                          : ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
        if (exponent == largest_exponent)
            magnitude = fraction ? NAN : INFINITY;
        value_of[bits] = bits & 0x8000 ? -magnitude : magnitude;
    }
}

// What x holds: the special values among numbers in [-1, 1).
static double number_at(size_t i)
{
    const double special[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, threshold, -threshold};
    uint64_t state = 2 * i + 1;
    if (i % 61 < 8)
        return special[i % 61];
    return (double)(random_next(&state) >> 40) / 8388608.0 - 1;
}

static uint16_t bits_at(size_t i)
{
    return (uint16_t)(i * 40503u); // an odd factor: all 65536 patterns, then all again
}

// Element i, in the type of the first argument; and back to a number, exactly.
static float value_at(float, size_t i)
{
    return (float)number_at(i);
}

static double value_at(double, size_t i)
{
    return number_at(i);
}

static __half value_at(__half, size_t i)
{
    return __ushort_as_half(bits_at(i));
}

static struct bfloat16 value_at(struct bfloat16, size_t i)
{
    return {bits_at(i)};
}

static double number(double x) // takes float too
{
    return x;
}

static double number(__half x)
{
    return value_of[__half_as_ushort(x)];
}

static double number(struct bfloat16 x)
{
    return value_of[x.bits];
}

// want = x <= limit ? 0 : from, compared in double; `from` is kept as it is, NaN included.
template <typename T>
static void reference(const T *from, const T *x, T *want, size_t n, double limit)
{
    for (size_t i = 0; i < n; i++)
        want[i] = number(x[i]) <= limit ? T() : from[i];
}

static int verify_bytes(const char *name, const struct arrays *a, size_t bytes)
{
    CUDA_CHECK(cudaMemcpy(a->got, a->d_out, bytes, cudaMemcpyDeviceToHost));
    return check_that(memcmp(a->got, a->want, bytes) == 0, "%s: differs from the CPU", name);
}

// Sizes around the packs, and pointers off the 16-byte boundaries: all alike, or the result alone
// on one. What lies before and behind the result must stay as it was.
template <typename T> static void check_edges(enum threshold_relu_type type, const struct arrays *a)
{
    const size_t sizes[] = {0, 1, 2, 7, 8, 9, 31, 33, 255}, window = 4096;
    const double limits[] = {threshold, -0.0, NAN, -INFINITY};
    for (size_t shift = 0; shift < 2 * 16 / sizeof(T); shift++) {
        size_t in = shift % (16 / sizeof(T)), out = shift == in ? in : 0;
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            double limit = limits[(shift + s) % 4];
            POISON_DEVICE(a->d_out, window);
            memset(a->want, 0xFF, window);
            CUDA_CHECK(threshold_relu_backward(type, (T *)a->d_grad + in, (T *)a->d_x + in,
                                               (T *)a->d_out + out, sizes[s], limit, 0));
            reference((T *)a->grad + in, (T *)a->x + in, (T *)a->want + out, sizes[s], limit);
            char name[96];
            snprintf(name, sizeof(name), "%s, %zu elements, inputs at element %zu, result at %zu",
                     type_name[type], sizes[s], in, out);
            verify_bytes(name, a, window);
        }
    }
}

template <typename T, typename Limit>
static void one_type(enum threshold_relu_type type, const struct arrays *a, size_t bytes,
                     Limit limit)
{
    size_t n = bytes / sizeof(T);
    char name[64];
    struct timing simple, packs, backward;
    for (size_t i = 0; i < n; i++) {
        ((T *)a->x)[i] = value_at(T(), i);
        ((T *)a->grad)[i] = value_at(T(), i + 7); // another number than x holds
    }
    CUDA_CHECK(cudaMemcpy(a->d_x, a->x, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(a->d_grad, a->grad, bytes, cudaMemcpyHostToDevice));
    check_edges<T>(type, a);

    reference((T *)a->x, (T *)a->x, (T *)a->want, n, threshold);
    POISON_DEVICE(a->d_out, bytes);
    unsigned grid = (unsigned)((n + BLOCK - 1) / BLOCK);
    MEASURE_GPU (simple, common_options.reps) {
        one_element<<<grid, BLOCK>>>(n, (const T *)a->d_x, (T *)a->d_out, limit);
        CUDA_CHECK_LAUNCH();
    }
    snprintf(name, sizeof(name), "%s forward, 1 element", type_name[type]);
    report_bandwidth(name, simple, 2.0 * bytes, verify_bytes(name, a, bytes));

    POISON_DEVICE(a->d_out, bytes);
    MEASURE_GPU (packs, common_options.reps) {
        CUDA_CHECK(threshold_relu_forward(type, a->d_x, a->d_out, n, threshold, 0));
    }
    snprintf(name, sizeof(name), "%s forward, packs", type_name[type]);
    report_bandwidth(name, packs, 2.0 * bytes, verify_bytes(name, a, bytes));

    reference((T *)a->grad, (T *)a->x, (T *)a->want, n, threshold);
    POISON_DEVICE(a->d_out, bytes);
    MEASURE_GPU (backward, common_options.reps) {
        CUDA_CHECK(threshold_relu_backward(type, a->d_grad, a->d_x, a->d_out, n, threshold, 0));
    }
    snprintf(name, sizeof(name), "%s backward, packs", type_name[type]);
    report_bandwidth(name, backward, 3.0 * bytes, verify_bytes(name, a, bytes));

    snprintf(name, sizeof(name), "speedup_%s", type_name[type]);
    report_number(name, simple.median_ms / packs.median_ms);
    if (!DEVICE_IS_CPU)
        printf("    %zu bytes a thread before, %zu now: %.2f times as fast\n", sizeof(T),
               FORWARD_PACKS * PACK_BYTES, simple.median_ms / packs.median_ms);
}

int main(int argc, char **argv)
{
    size_t bytes = default_size(128 << 20, 1 << 20);
    const struct option_spec options[] = {
        OPTION_SIZE("bytes", &bytes, 8192, MAX_ELEMENTS, "bytes of each of the three arrays"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "07_pytorch_extension/threshold_relu_demo",
                 "y = x above a threshold, else 0, and its gradient", options);
    bytes -= bytes % 16;
    require_device_memory(bytes, 3, "--bytes");
    struct arrays a;
    char **d_arrays[] = {&a.d_x, &a.d_grad, &a.d_out},
         **h_arrays[] = {&a.x, &a.grad, &a.want, &a.got};
    for (int i = 0; i < 3; i++)
        CUDA_CHECK(cudaMalloc(d_arrays[i], bytes));
    for (int i = 0; i < 4; i++)
        *h_arrays[i] = (char *)host_malloc(bytes);

    report_table("bytes read and written", NULL);
    one_type<float>(THRESHOLD_RELU_FLOAT32, &a, bytes, (float)threshold);
    one_type<double>(THRESHOLD_RELU_FLOAT64, &a, bytes, threshold);
    list_values(10);
    one_type<__half>(THRESHOLD_RELU_FLOAT16, &a, bytes, (float)threshold);
    list_values(7);
    one_type<struct bfloat16>(THRESHOLD_RELU_BFLOAT16, &a, bytes, (float)threshold);

    for (int i = 0; i < 3; i++)
        CUDA_CHECK(cudaFree(*d_arrays[i]));
    for (int i = 0; i < 4; i++)
        free(*h_arrays[i]);
    return lesson_end();
}
