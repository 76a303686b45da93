"""Lesson 07 without PyTorch: the plain library, the demo, and what is said when PyTorch is missing.

The operator itself is tested in test_07_operator.py.
"""

import ctypes
import re
import shutil
import sys

import pytest

from conftest import BUILD_DIR, ROOT, make, needs_nvcc, run_command

LESSON = ROOT / "07_pytorch_extension"
DEMO = "07_pytorch_extension/threshold_relu_demo"

def python(*arguments, env=None, cwd=LESSON, timeout=600):
    return run_command([sys.executable, *arguments], env=env, cwd=cwd, timeout=timeout)


# ---- the plain library and the demo: no PyTorch needed


@pytest.fixture(scope="module", params=["cpu"] + (["cuda"] if shutil.which("nvidia-smi") else []))
def demo_folder(request):
    """The lesson's folder as make builds it, for one backend."""
    folder = BUILD_DIR / f"07_{request.param}"
    result = make(f"BACKEND={request.param}", f"O={folder}", "LESSONS=07_pytorch_extension")
    assert result.code == 0, result
    return folder


def test_demo_is_right_on_every_pattern(demo_folder):
    result = run_command([demo_folder / DEMO, "--reps", "2"])
    assert result.code in (0, 2), result
    if result.code == 0:
        assert len(re.findall(r" ok$", result.out, re.M)) == 12 and result.err == "", result


def test_root_make_does_not_build_the_lesson():
    result = make("-n", "BACKEND=cpu")
    assert result.code == 0 and "07_pytorch" not in result.out, result


def test_library_answers_wrong_arguments_with_an_error_code(demo_folder):
    library = ctypes.CDLL(str(demo_folder / "07_pytorch_extension" / "libthreshold_relu.so"))
    forward = library.threshold_relu_forward
    forward.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                        ctypes.c_double, ctypes.c_void_p]
    invalid = 1  # cudaErrorInvalidValue
    assert forward(0, 4096, 4096, 0, 0.0, None) == 0, "nothing to do is no error"
    assert forward(9, 4096, 4096, 8, 0.0, None) == invalid, "no such type"
    assert forward(0, 4098, 4096, 8, 0.0, None) == invalid, "not aligned to an element"
    assert forward(0, 4096, 4096, 8, 1e39, None) == invalid, "threshold beyond float32"
    assert forward(2, 4096, 4096, 8, 65520.0, None) == invalid, "threshold beyond float16"
    assert forward(1, 4096, 4096, 1 << 60, 0.0, None) == invalid, "more blocks than a grid has"


ROUNDING = """
#include "%s/csrc/threshold_relu.cu"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    uint16_t *d_x, h_x[2] = {(uint16_t)strtol(argv[3], NULL, 16), 0};
    h_x[1] = h_x[0] + 1; // the next larger number
    cudaMalloc((void **)&d_x, sizeof(h_x));
    cudaMemcpy(d_x, h_x, sizeof(h_x), cudaMemcpyHostToDevice);
    int error = threshold_relu_forward((enum threshold_relu_type)atoi(argv[1]), d_x, d_x, 2, atof(argv[2]), 0);
    cudaMemcpy(h_x, d_x, sizeof(h_x), cudaMemcpyDeviceToHost);
    cudaFree(d_x);
    return printf("%%d %%x %%x", error, h_x[0], h_x[1]) < 0 || argc != 4;
}
"""


def test_thresholds_are_rounded_to_the_nearest_even(tmp_path):
    """The pattern that a threshold becomes is dropped, and the next one above is kept."""
    (tmp_path / "rounding.cu").write_text(ROUNDING % LESSON)
    built = run_command([ROOT / "scripts" / "nvcc-cpu", tmp_path / "rounding.cu", "-o", tmp_path / "rounding"])
    assert built.code == 0, built
    half, bfloat16 = 2, 3
    for kind, threshold, bits in [
            (half, "0.1", 0x2e66), (half, "2049", 0x6800), (half, "2051", 0x6802), (half, "0", 0x0000),
            (half, "65519", 0x7bff), (half, "7e-8", 0x0001), (half, "inf", 0x7c00),
            (bfloat16, "0.1", 0x3dcd), (bfloat16, "257", 0x4380), (bfloat16, "259", 0x4382),
            (bfloat16, "0", 0x0000), (bfloat16, "inf", 0x7f80)]:
        result = run_command([tmp_path / "rounding", kind, threshold, f"{bits:x}"])
        assert result.out == f"0 0 {bits + 1:x}", (threshold, result)


@needs_nvcc
def test_bare_nvcc_builds_the_demo(tmp_path):
    result = run_command(["nvcc", LESSON / "threshold_relu_demo.cu", "-o", tmp_path / "demo"])
    assert result.code == 0 and result.err == "", result


# ---- without PyTorch, and with one that does not fit


def fake_python(folder, torch_source):
    """Environment for a Python that finds this file as its torch."""
    (folder / "torch.py").write_text(torch_source)
    return {"PYTHONPATH": folder, "SMS": "", "BACKEND": "", "TORCH_CUDA_ARCH_LIST": ""}


def test_missing_pytorch_is_one_line_and_waived(tmp_path):
    env = fake_python(tmp_path, "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    result = python("extension.py", env=env)
    assert result.code == 2 and len(result.err.splitlines()) == 1, result
    assert "PyTorch is not installed" in result.err and sys.executable in result.err


def test_broken_pytorch_is_told_apart_from_a_missing_one(tmp_path):
    env = fake_python(tmp_path, "raise ImportError('libcudart.so.13: cannot open shared object file')")
    result = python("extension.py", env=env)
    assert result.code == 2 and "does not start: libcudart.so.13" in result.err, result


@pytest.mark.parametrize("sms, expected", [
    ("90", "9.0+PTX"), ("80 90a", "8.0+PTX;9.0a"), ("120 75", "7.5;12.0+PTX"), ("8.6", "8.6+PTX"),
    ("sm_90", "9.0+PTX"), ("90a", "9.0a"), ("100f", "10.0f")])
def test_sms_becomes_the_architecture_list(sms, expected):
    result = python("-c", f"import extension; print(extension.arch_list({sms!r}))")
    assert result.out.strip() == expected, result


@pytest.mark.parametrize("sms", ["ninety", "9", "9.0.0", "90x"])
def test_a_wrong_sms_is_named(sms):
    result = python("-c", f"import extension; extension.arch_list({sms!r})")
    assert result.code == 1 and f"'{sms}' is no architecture" in result.err, result
