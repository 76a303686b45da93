// verify.h - is the result right? Comparisons that NaN cannot pass, and data worth comparing.
//
//     struct verifier v = verify_begin("y", 1e-6, 0);      // relative, absolute tolerance
//     for (size_t i = 0; i < n; i++)
//         verify_value(&v, i, y[i], expected_in_double(i));
//     int ok = verify_end(&v);                             // prints the first wrong value
//
// A failed check is printed on stderr and makes lesson_end() return 1; the lesson goes on.
#ifndef COMMON_VERIFY_H
#define COMMON_VERIFY_H

#include "check.h"
#include <math.h>
#include <stdint.h>

static struct {
    int done, failed;
} checks;

struct verifier {
    const char *what;
    double relative, absolute;
    size_t compared, wrong, first_index;
    double first_got, first_want;
    double worst; // largest |got - want| seen
};

// A value is right when |got - want| <= absolute + relative * |want|.
static inline struct verifier verify_begin(const char *what, double relative, double absolute)
{
    struct verifier v = {what, relative, absolute, 0, 0, 0, 0, 0, 0};
    return v;
}

static inline void verify_value(struct verifier *v, size_t index, double got, double want)
{
    double error = fabs(got - want);
    v->compared++;
    if (error > v->worst)
        v->worst = error;
    if (got == want || error <= v->absolute + v->relative * fabs(want))
        return; // NaN comes out of both comparisons as false
    if (v->wrong++ == 0) {
        v->first_index = index;
        v->first_got = got;
        v->first_want = want;
    }
}

// Counts one check; prints the line when it failed. Returns whether it held.
__attribute__((format(printf, 2, 3))) static inline int check_that(int holds, const char *format,
                                                                   ...)
{
    checks.done++;
    if (holds)
        return 1;
    checks.failed++;
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "check failed: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return 0;
}

static inline int verify_end(const struct verifier *v)
{
    return check_that(v->wrong == 0,
                      "%s: %zu of %zu values are wrong, the first at [%zu]: got %.9g, "
                      "expected %.9g",
                      v->what, v->wrong, v->compared, v->first_index, v->first_got, v->first_want);
}

// Fills device memory with 0xFF bytes, which are NaN as float and double, -1 as int: a value that
// no thread writes cannot pass as a result.
#define POISON_DEVICE(d_pointer, bytes) CUDA_CHECK(cudaMemset((d_pointer), 0xFF, (bytes)))

// The next number of the xorshift64* sequence (Vigna, 2016); *state must not be 0.
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

// n floats spread evenly over [-1, 1), the same for the same seed on every machine.
static inline void fill_random(float *values, size_t n, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(random_next(&state) >> 40) / 8388608.0f - 1.0f; // 24 bits: exact
}

#endif
