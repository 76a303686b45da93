"""common/: unit tests in CUDA C, compiled by every compiler that this machine has."""

import pytest

from conftest import HAS_NVCC, ROOT, run_command, toolchain

COMPILERS = {"cpu": ROOT / "scripts/nvcc-cpu"}
if HAS_NVCC:
    COMPILERS["nvcc"] = toolchain(BACKEND="cuda")["NVCC"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_headers_keep_their_word(compiler, tmp_path):
    program = tmp_path / "common_test"
    built = run_command([COMPILERS[compiler], "-Xcompiler", "-Wall,-Wextra", "-o", program,
                         ROOT / "tests/common/common_test.cu"])
    assert built.code == 0 and "warning" not in built.err, built
    result = run_command([program, tmp_path])
    assert result.code == 0, result
    rows = result.out[result.out.index("\nrates"):].splitlines()
    assert "50.0 %" in rows[2] and "200.0 %" in rows[3], rows
    assert ["above the limit" in row for row in rows[2:6]] == [False, False, True, False], rows


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("header", sorted(path.name for path in (ROOT / "common").glob("*.h")))
def test_each_header_stands_alone_and_compiles_as_cxx14(compiler, header, tmp_path):
    """CUDA 11 compiles as C++14 with older host compilers."""
    source = tmp_path / "alone.cu"
    source.write_text(f'#include "{ROOT}/common/{header}"\n#include "{ROOT}/common/{header}"\n'
                      "int main(void) { return 0; }\n")
    if header == "cub_sum.h":
        standard = []  # CUB of CUDA 13 wants C++17
    else:
        standard = ["-std=c++14"] if compiler == "nvcc" else []
    result = run_command([COMPILERS[compiler], *standard, "-Xcompiler", "-Wall,-Wextra", "-c", "-o",
                          tmp_path / "alone.o", source])
    assert result.code == 0 and not result.err, result
