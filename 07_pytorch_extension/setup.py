"""The first way in: an installable package.

    pip install . --no-build-isolation          isolated, the build would not see PyTorch
    python3 setup.py build_ext --inplace        only beside the sources, as `make torch` does

SMS="80 90" or TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX" name the GPUs; BACKEND=cpu leaves CUDA out.
"""

import os
import sys

from setuptools import setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # pip does not put it there
import extension  # noqa: E402

try:
    backend, why = extension.choose()
except extension.CannotBuild as reason:
    sys.exit(f"threshold_relu: {reason}. With pip it may only be hidden: add --no-build-isolation")
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension  # noqa: E402

print(f"threshold_relu: extension for {backend} ({why})")
sources, flags = extension.settings(backend)
kind = CUDAExtension if backend == "cuda" else CppExtension
setup(
    name="threshold_relu",
    version="1.0",
    description="A thresholded ReLU as a PyTorch operator",
    packages=["threshold_relu"],
    package_data={"threshold_relu": ["py.typed"]},
    # The library calls nothing of Python (py_limited_api), so one build serves every version of it.
    # It does depend on the version of PyTorch.
    ext_modules=[kind("threshold_relu._C", sources, extra_compile_args=flags, py_limited_api=True)],
    cmdclass={"build_ext": BuildExtension},
    zip_safe=False,
)
