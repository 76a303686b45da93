"""A thresholded ReLU: y = x where x > threshold (or x is NaN), else 0. On the CPU and on CUDA.

    from threshold_relu import ThresholdReLU, threshold_relu

The operators behind it are torch.ops.threshold_relu.forward and .backward.
"""

from __future__ import annotations

import glob
import os

import torch
from torch import Tensor, nn

__all__ = ["ThresholdReLU", "threshold_relu"]


def _load_operators() -> None:
    if hasattr(torch.ops.threshold_relu, "forward"):
        return  # somebody has loaded them already, as load.py does
    libraries = glob.glob(os.path.join(os.path.dirname(__file__), "_C*.so"))
    if not libraries:
        raise ImportError(
            f"threshold_relu in {os.path.dirname(__file__)} is not built. Build it there: make "
            "torch. Or install it (pip install . --no-build-isolation) and start Python elsewhere")
    torch.ops.load_library(libraries[0])


_load_operators()


def threshold_relu(x: Tensor, threshold: float = 0.0) -> Tensor:
    """Keeps what is above the threshold, and puts 0 in place of the rest.

    The same as ``torch.nn.functional.threshold(x, threshold, 0)``, also for NaN, which is kept,
    and for the threshold itself, which is not. The gradient passes where x was kept; there is
    none for the threshold. Gradients of any order, torch.compile and autocast work; under
    autocast the result has the dtype of x.

    Args:
        x: a tensor of any shape, including empty, and any strides, on the CPU or a CUDA device;
            float32, float64, float16 or bfloat16.
        threshold: one number, rounded to the dtype of x before it is compared.

    Returns:
        A new tensor with the shape, dtype, device and order of dimensions of x.

    Raises:
        TypeError: x has another dtype.
        ValueError: the threshold is finite and x's dtype has no such large number.
        RuntimeError: x is sparse.
    """
    return torch.ops.threshold_relu.forward(x, threshold)


class ThresholdReLU(nn.Module):
    """threshold_relu() as a layer; it has no parameters.

    Shape: any, the same for the result.
    """

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = float(threshold)

    def forward(self, x: Tensor) -> Tensor:
        return threshold_relu(x, self.threshold)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold:g}"
