// timed_output.h - one array of results on the device, checked value by value, for the slow cases.
#ifndef ERROR_CASES_TIMED_OUTPUT_H
#define ERROR_CASES_TIMED_OUTPUT_H

#include "twins.h"

enum { BLOCK = 256 };

static inline size_t elements(void)
{
    return default_size((size_t)1 << 20, (size_t)1 << 12); // a multiple of BLOCK
}

static inline unsigned grid(void)
{
    return (unsigned)(elements() / BLOCK);
}

// d_out must hold want(i); the output is poisoned for the next variant.
static inline int check_output(float *d_out, const char *what, double (*want)(size_t),
                               double tolerance)
{
    float *h_out = (float *)host_malloc(elements() * sizeof(float));
    CUDA_CHECK(cudaMemcpy(h_out, d_out, elements() * sizeof(float), cudaMemcpyDeviceToHost));
    POISON_DEVICE(d_out, elements() * sizeof(float));
    struct verifier v = verify_begin(what, tolerance, tolerance);
    for (size_t i = 0; i < elements(); i++)
        verify_value(&v, i, h_out[i], want(i));
    free(h_out);
    return verify_end(&v);
}

static inline float *poisoned_floats(void)
{
    float *d_out;
    CUDA_CHECK(cudaMalloc(&d_out, elements() * sizeof(float)));
    POISON_DEVICE(d_out, elements() * sizeof(float));
    return d_out;
}

#endif
