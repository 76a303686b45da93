"""The third way in: the plain library through ctypes, with nothing of PyTorch compiled at all.

    python3 ctypes_demo.py [libthreshold_relu.so]        built before by: make -C 07_pytorch_extension

PyTorch only provides the memory here. It shows what the operator of the other two ways adds:
gradients, and an answer for tensors that the bare pointer cannot describe.
"""

import ctypes
import os
import sys

FLOAT32 = 0  # enum threshold_relu_type in csrc/threshold_relu.h
HERE = os.path.dirname(os.path.abspath(__file__))


def open_library(path):
    library = ctypes.CDLL(path)
    # Without argtypes ctypes passes every number as a 32-bit int: pointers would lose their upper half.
    library.threshold_relu_forward.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double,
        ctypes.c_void_p]
    library.threshold_relu_forward.restype = ctypes.c_int
    return library


def forward(torch, library, x, threshold):
    """y for a float32 tensor x that lies in memory without gaps: nothing here checks that it does."""
    y = torch.empty(x.shape, device=x.device)
    stream = torch.cuda.current_stream().cuda_stream
    error = library.threshold_relu_forward(FLOAT32, x.data_ptr(), y.data_ptr(), x.numel(),
                                           threshold, stream)
    if error:
        raise RuntimeError(f"threshold_relu_forward returned CUDA error {error}")
    return y


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "libthreshold_relu.so")
    try:
        import torch
    except ImportError:
        print("waived: PyTorch is not installed for " + sys.executable, file=sys.stderr)
        return 2
    if not os.path.exists(path):
        print(f"waived: {path} is not built: make -C 07_pytorch_extension", file=sys.stderr)
        return 2
    with open(path, "rb") as file:
        for_gpu = b".nv_fatbin" in file.read()
    if not for_gpu or not torch.cuda.is_available():
        print("waived: this needs a GPU that PyTorch sees, and the library built for it (make "
              "BACKEND=cuda); the CPU backend takes no pointers to PyTorch's memory", file=sys.stderr)
        return 2

    library = open_library(path)
    x = torch.randn(300, 200, device="cuda")
    expected = torch.nn.functional.threshold(x, 0.5, 0.0)
    right = torch.equal(forward(torch, library, x, 0.5), expected)
    print(f"{os.path.basename(path)}, float32 on {x.device}")
    print(f"a contiguous tensor: {'right' if right else 'WRONG'}")

    x.requires_grad_()
    y = forward(torch, library, x, 0.5)
    print(f"its gradient: y.requires_grad is {y.requires_grad}; backward() cannot pass through here")

    turned = x.detach().t()
    y = forward(torch, library, turned, 0.5)
    wrong = (y != torch.nn.functional.threshold(turned, 0.5, 0.0)).sum().item()
    print(f"its transpose: {wrong} of {y.numel()} values are wrong, and no error was reported")
    return 0 if right and not y.requires_grad and wrong else 1


if __name__ == "__main__":
    sys.exit(main())
