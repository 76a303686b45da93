"""How fast is the operator, beside PyTorch's own threshold? Forward and backward, all dtypes.

    python3 benchmark.py [--max-mib 128] [--reps 10] [--markdown]

Two different questions, answered apart:
  device time  what the GPU works on one call. Many calls are recorded in a CUDA graph and replayed,
               so that Python does not stand between them. Median of the replays, both taken in turns.
  call time    what the host needs to issue one call from Python; below some size that is all one sees.
Rates count each array that must be read or written once, and stand beside the memory's limit.
A GPU keeps small arrays in its L2 cache: their rates may lie above the memory's limit.
"""

import argparse
import ctypes
import statistics
import sys
import time

import torch
from torch.nn import functional

from threshold_relu import threshold_relu

THRESHOLD = 0.25
OURS, TORCH = 0, 1
FORWARD = (threshold_relu, lambda x, t: functional.threshold(x, t, 0.0))
BACKWARD = (torch.ops.threshold_relu.backward, torch.ops.aten.threshold_backward)
# cuDeviceGetAttribute's numbers for the memory clock in kHz and the bus width in bits
MEMORY_CLOCK, BUS_WIDTH = 36, 37


def memory_limit():
    """Bytes a second: memory clock x 2 (double data rate) x bus width."""
    driver, values = ctypes.CDLL("libcuda.so.1"), []
    for attribute in (MEMORY_CLOCK, BUS_WIDTH):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, torch.cuda.current_device())
        values.append(value.value)
    return values[0] * 1e3 * 2 * values[1] / 8


def record(call, calls):
    """A CUDA graph of `calls` calls. Run once outside of it first, as capturing asks for."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def device_seconds(both, nbytes, reps):
    """Median seconds of one call, for each of both; the replays alternate."""
    calls = max(1, min(100, (1 << 30) // max(1, nbytes)))  # about 0.2 ms or more a replay
    graphs = [record(call, calls) for call in both]
    times = ([], [])
    for rep in range(reps + 1):  # the first is the warm-up
        for which in (OURS, TORCH) if rep % 2 else (TORCH, OURS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[which].replay()
            end.record()
            end.synchronize()
            if rep:
                times[which].append(start.elapsed_time(end) * 1e-3 / calls)
    return [statistics.median(t) for t in times]


def call_seconds(call, calls=2000):
    """Seconds of the host for one call, while the GPU keeps up easily."""
    for _ in range(100):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = (time.perf_counter() - start) / calls
    torch.cuda.synchronize()
    return seconds


def check(both):
    ours, theirs = both[OURS](), both[TORCH]()
    if not torch.equal(ours, theirs):
        sys.exit("the two results differ")


def device_table(options, row):
    limit, slower = memory_limit(), 0
    row("dtype", "pass", "elements", "ours us", "torch us", "speed-up", "GB/s", "% limit")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for exponent in range(10, 32, 2):
            n = 1 << exponent
            if n * dtype.itemsize > options.max_mib << 20:
                break
            x = torch.randn(n, device="cuda", dtype=dtype)
            grad = torch.randn(n, device="cuda", dtype=dtype)
            for name, arrays, both in (
                    ("forward", 2, [lambda f=f: f(x, THRESHOLD) for f in FORWARD]),
                    ("backward", 3, [lambda f=f: f(grad, x, THRESHOLD) for f in BACKWARD])):
                check(both)
                nbytes = arrays * n * dtype.itemsize
                ours, theirs = device_seconds(both, nbytes, options.reps)
                rate = nbytes / ours
                slower += n >= 1 << 20 and ours > 1.02 * theirs
                row(str(dtype)[6:], name, f"2^{exponent}", f"{ours * 1e6:.2f}",
                    f"{theirs * 1e6:.2f}", f"{theirs / ours:.2f}", f"{rate / 1e9:.0f}",
                    f"{100 * rate / limit:.0f}" if limit else "unknown")
            del x, grad, both
            torch.cuda.empty_cache()
    return slower


def call_table(row):
    row("one call from Python, 1024 elements", "ours us", "torch us")
    x = torch.randn(1024, device="cuda")
    wants = x.clone().requires_grad_()
    with torch.no_grad():
        row("forward, no gradient wanted",
            *(f"{1e6 * call_seconds(lambda: f(x, THRESHOLD)):.1f}" for f in FORWARD))
    row("forward, gradient wanted",
        *(f"{1e6 * call_seconds(lambda: f(wants, THRESHOLD)):.1f}" for f in FORWARD))
    row("forward and backward",
        *(f"{1e6 * call_seconds(lambda: f(wants, THRESHOLD).backward(x)):.1f}" for f in FORWARD))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-mib", type=int, default=128, help="largest array, in MiB")
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--markdown", action="store_true", help="tables for a .md file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("waived: PyTorch sees no GPU; a comparison on a CPU would say nothing about one",
              file=sys.stderr)
        return 2
    begun = []

    def row(*cells):
        if options.markdown:
            print("| " + " | ".join(cells) + " |")
            if not begun:
                print("|" + "---|" * len(cells))
        else:
            print(" ".join(f"{cell:>{9 if i else (10 if len(cells) > 4 else 36)}}"
                           for i, cell in enumerate(cells)))
        begun.append(cells)

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"memory limit {memory_limit() / 1e9:.0f} GB/s\n")
    slower = device_table(options, row)
    print(f"\nfrom 2^20 elements on, more than 2 % slower than PyTorch: {slower} rows\n")
    begun.clear()
    call_table(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
