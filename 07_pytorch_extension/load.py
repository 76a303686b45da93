"""The second way in: compiled by the program that needs it, at its first run.

    python3 load.py

load() writes a build.ninja, runs ninja (which must be installed) and loads the library; a later
run finds it unchanged and only loads it. What it made stands in ~/.cache/torch_extensions, or
where TORCH_EXTENSIONS_DIR points. Good for trying things; for others, install a package.
"""

import os
import sys
import time

import extension


def load_operators(verbose=False):
    """Compiles (if anything changed) and registers torch.ops.threshold_relu; returns the seconds."""
    backend, _ = extension.choose()
    from torch.utils.cpp_extension import load
    sources, flags = extension.settings(backend)
    start = time.perf_counter()
    load(
        name=f"threshold_relu_{backend}",
        sources=[os.path.join(extension.HERE, source) for source in sources],
        extra_cflags=flags["cxx"],
        extra_cuda_cflags=flags.get("nvcc"),
        with_cuda=backend == "cuda",
        is_python_module=False,  # operators for PyTorch, not a module for Python
        verbose=verbose,
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    try:
        seconds = load_operators()
    except extension.CannotBuild as reason:
        print(f"waived: {reason}", file=sys.stderr)
        sys.exit(extension.EXIT_WAIVED)
    import torch
    from threshold_relu import threshold_relu  # finds the operators registered: needs no build
    x = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    print(f"load() took {seconds:.1f} s")
    print(f"threshold_relu({x.tolist()}, 0.5) = {threshold_relu(x, 0.5).tolist()}")
