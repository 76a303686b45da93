// binding.cpp - makes the plain library an operator of PyTorch.
//
//     schema      what the operator takes and returns; PyTorch checks the argument types by it
//     CPU, CUDA   what computes it where the tensor lies; the dispatcher chooses
//     Meta        the result's shape, type and strides without data: torch.compile plans with it
//     Autograd    how the gradient is computed, and the gradient of that
//
// It is the only file here that includes PyTorch's headers, and only those it needs:
// torch/extension.h would bring them all. Nothing here needs Python either, so one library serves
// every Python version, and C++ programs as well.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#ifdef WITH_CUDA // set by setup.py and load.py when there is an nvcc to compile the kernels
#include "threshold_relu.h"
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace
{

using at::Tensor;

// ---- what is taken, and what is said when something else comes

void check_input(const Tensor &t, const char *name)
{
    TORCH_CHECK(t.layout() == at::kStrided, "threshold_relu: ", name, " has layout ", t.layout(),
                "; it takes dense (strided) tensors: call .to_dense() first");
    TORCH_CHECK_TYPE(t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble ||
                         t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16,
                     "threshold_relu: ", name, " has dtype ", t.scalar_type(),
                     "; it takes float32, float64, float16 and bfloat16");
}

// Text without C++ streams: with one compiler whose library was not the one that PyTorch was using,
// a number sent through a stream ended the process with a segmentation fault.
std::string number_text(double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%g", value);
    return text;
}

std::string shape_text(const Tensor &t)
{
    std::string text;
    for (const c10::SymInt &size : t.sym_sizes()) {
        auto number = size.maybe_as_int(); // none where torch.compile has a symbol for it
        text += (text.empty() ? "" : ", ") + (number ? std::to_string(*number) : "?");
    }
    return "[" + text + "]";
}

// A finite threshold that the type cannot hold would turn into infinity, and drop what it must not.
void check_threshold(const Tensor &x, double threshold)
{
    double rounded = 0, largest = 0;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "threshold", [&] {
        rounded = static_cast<double>(static_cast<scalar_t>(threshold));
        largest = static_cast<double>(std::numeric_limits<scalar_t>::max());
    });
    TORCH_CHECK_VALUE(std::isinf(threshold) || !std::isinf(rounded), "threshold_relu: threshold ",
                      number_text(threshold), " does not fit ", x.scalar_type(),
                      ", the dtype of x, whose largest value is ", number_text(largest));
}

void check_forward(const Tensor &x, double threshold)
{
    check_input(x, "x");
    check_threshold(x, threshold);
}

void check_backward(const Tensor &grad, const Tensor &x, double threshold)
{
    check_input(grad, "grad");
    check_forward(x, threshold);
    TORCH_CHECK(grad.device() == x.device(), "threshold_relu: grad is on ", grad.device(),
                ", x on ", x.device(), "; both must be on one device");
    TORCH_CHECK_TYPE(grad.scalar_type() == x.scalar_type(), "threshold_relu: grad has dtype ",
                     grad.scalar_type(), ", x has ", x.scalar_type(), "; both must be the same");
    TORCH_CHECK_VALUE(grad.sym_sizes() == x.sym_sizes(), "threshold_relu: grad has shape ",
                      shape_text(grad), ", x has ", shape_text(x), "; both must be the same");
}

// ---- layout: the kernels see one run of n elements, in whatever order they lie in memory

// x itself when its elements lie without gaps (also transposed or channels_last), else a copy.
Tensor without_gaps(const Tensor &x)
{
    return x.is_non_overlapping_and_dense() ? x : x.clone();
}

// t with its elements in the same order in memory as those of x, which has no gaps.
Tensor in_order_of(const Tensor &t, const Tensor &x)
{
    bool same = (t.is_contiguous() && x.is_contiguous()) || t.sym_strides() == x.sym_strides();
    return same ? t : at::empty_like(x).copy_(t);
}

// ---- CPU

// out = x <= threshold ? 0 : source, spread over PyTorch's threads.
void compute_on_cpu(const Tensor &source, const Tensor &x, Tensor &out, double threshold)
{
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "threshold_relu", [&] {
            const scalar_t limit = static_cast<scalar_t>(threshold), zero = 0;
            const scalar_t *from = source.const_data_ptr<scalar_t>();
            const scalar_t *in = x.const_data_ptr<scalar_t>();
            scalar_t *to = out.mutable_data_ptr<scalar_t>();
            at::parallel_for(0, x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; i++)
                    to[i] = in[i] <= limit ? zero : from[i]; // false for NaN: it passes
            });
        });
}

Tensor forward_cpu(const Tensor &x, double threshold)
{
    check_forward(x, threshold);
    Tensor in = without_gaps(x), y = at::empty_like(in);
    compute_on_cpu(in, in, y, threshold);
    return y;
}

Tensor backward_cpu(const Tensor &grad, const Tensor &x, double threshold)
{
    check_backward(grad, x, threshold);
    Tensor in = without_gaps(x), grad_x = at::empty_like(in);
    compute_on_cpu(in_order_of(grad, in), in, grad_x, threshold);
    return grad_x;
}

// ---- CUDA

#ifdef WITH_CUDA
enum threshold_relu_type library_type(const Tensor &t)
{
    switch (t.scalar_type()) {
    case at::kDouble:
        return THRESHOLD_RELU_FLOAT64;
    case at::kHalf:
        return THRESHOLD_RELU_FLOAT16;
    case at::kBFloat16:
        return THRESHOLD_RELU_BFLOAT16;
    default:
        return THRESHOLD_RELU_FLOAT32; // check_input let nothing else through
    }
}

// The guard makes the device of x the current one until the function returns: the caller may have
// another. The stream is the caller's current one: the result is ordered with the caller's other
// work, and PyTorch's allocator knows on which stream the memory is in use.
Tensor forward_cuda(const Tensor &x, double threshold)
{
    check_forward(x, threshold);
    c10::cuda::CUDAGuard guard(x.device());
    Tensor in = without_gaps(x), y = at::empty_like(in);
    // The library returns what cudaGetLastError() said after its launch, which is what
    // C10_CUDA_KERNEL_LAUNCH_CHECK() would ask for where the <<<>>> stands.
    C10_CUDA_CHECK(threshold_relu_forward(library_type(in), in.const_data_ptr(),
                                          y.mutable_data_ptr(), in.numel(), threshold,
                                          c10::cuda::getCurrentCUDAStream()));
    return y;
}

Tensor backward_cuda(const Tensor &grad, const Tensor &x, double threshold)
{
    check_backward(grad, x, threshold);
    c10::cuda::CUDAGuard guard(x.device());
    Tensor in = without_gaps(x), ordered = in_order_of(grad, in), grad_x = at::empty_like(in);
    C10_CUDA_CHECK(threshold_relu_backward(
        library_type(in), ordered.const_data_ptr(), in.const_data_ptr(), grad_x.mutable_data_ptr(),
        in.numel(), threshold, c10::cuda::getCurrentCUDAStream()));
    return grad_x;
}
#endif

// ---- Meta

Tensor forward_meta(const Tensor &x, double threshold)
{
    check_forward(x, threshold);
    return at::empty_like(x); // keeps the order of the dimensions, as without_gaps() does
}

Tensor backward_meta(const Tensor &grad, const Tensor &x, double threshold)
{
    check_backward(grad, x, threshold);
    return at::empty_like(x);
}

// ---- Autograd

// These go through the dispatcher, once more from the top: below autograd they find CPU or CUDA.
Tensor call_forward(const Tensor &x, double threshold)
{
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("threshold_relu::forward", "")
                         .typed<Tensor(const Tensor &, double)>();
    return op.call(x, threshold);
}

Tensor call_backward(const Tensor &grad, const Tensor &x, double threshold)
{
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("threshold_relu::backward", "")
                         .typed<Tensor(const Tensor &, const Tensor &, double)>();
    return op.call(grad, x, threshold);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Forward : torch::autograd::Function<Forward> {
    static Tensor forward(AutogradContext *ctx, const Tensor &x, double threshold)
    {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        ctx->save_for_backward({x});
        ctx->saved_data["threshold"] = threshold;
        return call_forward(x, threshold);
    }

    static variable_list backward(AutogradContext *ctx, variable_list grads)
    {
        Tensor x = ctx->get_saved_variables()[0];
        double threshold = ctx->saved_data["threshold"].toDouble();
        return {call_backward(grads[0], x, threshold), Tensor()}; // none for the threshold
    }
};

// The gradient is linear in grad, with the same mask, and does not change with x: the gradient of
// the gradient is backward once more.
struct Backward : torch::autograd::Function<Backward> {
    static Tensor forward(AutogradContext *ctx, const Tensor &grad, const Tensor &x,
                          double threshold)
    {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        ctx->save_for_backward({x});
        ctx->saved_data["threshold"] = threshold;
        return call_backward(grad, x, threshold);
    }

    static variable_list backward(AutogradContext *ctx, variable_list grads)
    {
        Tensor x = ctx->get_saved_variables()[0];
        double threshold = ctx->saved_data["threshold"].toDouble();
        return {call_backward(grads[0], x, threshold), Tensor(), Tensor()};
    }
};

// Wrong input is told here already: sparse tensors and mixed devices would never reach a kernel,
// and the dispatcher's own message does not name the argument.
Tensor forward_autograd(const Tensor &x, double threshold)
{
    check_forward(x, threshold);
    return Forward::apply(x, threshold);
}

Tensor backward_autograd(const Tensor &grad, const Tensor &x, double threshold)
{
    check_backward(grad, x, threshold);
    return Backward::apply(grad, x, threshold);
}

} // namespace

TORCH_LIBRARY(threshold_relu, m)
{
    m.def("forward(Tensor x, float threshold=0.) -> Tensor", {at::Tag::pt2_compliant_tag});
    m.def("backward(Tensor grad, Tensor x, float threshold=0.) -> Tensor",
          {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(threshold_relu, CPU, m)
{
    m.impl("forward", &forward_cpu);
    m.impl("backward", &backward_cpu);
}

#ifdef WITH_CUDA
TORCH_LIBRARY_IMPL(threshold_relu, CUDA, m)
{
    m.impl("forward", &forward_cuda);
    m.impl("backward", &backward_cuda);
}
#endif

TORCH_LIBRARY_IMPL(threshold_relu, Meta, m)
{
    m.impl("forward", &forward_meta);
    m.impl("backward", &backward_meta);
}

TORCH_LIBRARY_IMPL(threshold_relu, Autograd, m)
{
    m.impl("forward", &forward_autograd);
    m.impl("backward", &backward_autograd);
}
