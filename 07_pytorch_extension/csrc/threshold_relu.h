// threshold_relu.h - the plain library: a thresholded ReLU and its gradient, without PyTorch.
//
//     forward     y[i]      = x[i] <= threshold ? 0 : x[i]
//     backward    grad_x[i] = x[i] <= threshold ? 0 : grad[i]
//
// - NaN is not <= anything: a NaN in x, and the gradient that belongs to it, passes through.
// - The threshold is rounded to the type of the elements before it is compared. With a NaN as the
//   threshold everything passes; a finite one beyond the type's range is cudaErrorInvalidValue.
// - Pointers are device pointers, aligned to one element; the result may be one of the inputs.
// - The functions only queue the work on `stream` and return cudaSuccess, or why that failed.
#ifndef THRESHOLD_RELU_H
#define THRESHOLD_RELU_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" { // C names: any language can call them, with no C++ name mangling to match
#endif

enum threshold_relu_type {
    THRESHOLD_RELU_FLOAT32,
    THRESHOLD_RELU_FLOAT64,
    THRESHOLD_RELU_FLOAT16,
    THRESHOLD_RELU_BFLOAT16
};

cudaError_t threshold_relu_forward(enum threshold_relu_type type, const void *x, void *y, size_t n,
                                   double threshold, cudaStream_t stream);

cudaError_t threshold_relu_backward(enum threshold_relu_type type, const void *grad, const void *x,
                                    void *grad_x, size_t n, double threshold, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
