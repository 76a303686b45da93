// arrays.h - two arrays on the device, with their copies on the host, for kernels that are timed.
#ifndef ERROR_CASES_ARRAYS_H
#define ERROR_CASES_ARRAYS_H

#include "twins.h"

static inline size_t elements(void)
{
    return default_size((size_t)1 << 24, (size_t)1 << 14); // 2 x 64 MiB: more than an L2 cache
}

// Two arrays of elements() floats; the first holds 0, 1, ... 1023, 0, 1, ..., the second NaN.
struct arrays {
    size_t n;
    float *d_in, *d_out, *h_in, *h_out;
};

static inline struct arrays arrays_create(void)
{
    struct arrays a;
    a.n = elements();
    a.h_in = (float *)host_malloc(a.n * sizeof(float));
    a.h_out = (float *)host_malloc(a.n * sizeof(float));
    for (size_t i = 0; i < a.n; i++)
        a.h_in[i] = (float)(i % 1024);
    CUDA_CHECK(cudaMalloc(&a.d_in, a.n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&a.d_out, a.n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(a.d_in, a.h_in, a.n * sizeof(float), cudaMemcpyHostToDevice));
    POISON_DEVICE(a.d_out, a.n * sizeof(float));
    return a;
}

// Every output must be scale * input + shift; then the output is poisoned for the next variant.
static inline int arrays_check(struct arrays *a, const char *what, double scale, double shift)
{
    CUDA_CHECK(cudaMemcpy(a->h_out, a->d_out, a->n * sizeof(float), cudaMemcpyDeviceToHost));
    POISON_DEVICE(a->d_out, a->n * sizeof(float));
    struct verifier v = verify_begin(what, 1e-5, 1e-5);
    for (size_t i = 0; i < a->n; i++)
        verify_value(&v, i, a->h_out[i], scale * a->h_in[i] + shift);
    return verify_end(&v);
}

static inline void arrays_destroy(struct arrays *a)
{
    CUDA_CHECK(cudaFree(a->d_in));
    CUDA_CHECK(cudaFree(a->d_out));
    free(a->h_in);
    free(a->h_out);
}

static inline unsigned blocks_for(size_t n, int block)
{
    return (unsigned)((n + block - 1) / block);
}

#endif
