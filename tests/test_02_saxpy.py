"""Lesson 02: saxpy is right for every n, in every variant and with every kind of memory."""

import re

import pytest

from conftest import ROOT, needs_nvcc, run_command, toolchain

SAXPY, VARIANTS, UNIFIED = "02_saxpy/saxpy", "02_saxpy/saxpy_variants", "02_saxpy/unified_memory"


def expected_sum(n):
    """The sum of 2*x[i] + y[i] in closed form: x repeats every 2048 elements, y every 1024."""

    def ramp(n, period, first):  # of first, first + 1, ... repeated every `period`
        whole, rest = divmod(n, period)
        return whole * (period * first + period * (period - 1) // 2) + rest * first + rest * (rest - 1) // 2

    # 2 * ((i % 2048) - 1024) * 0.5 + (i % 1024) - 512
    return ramp(n, 2048, -1024) + ramp(n, 1024, -512)


def test_the_closed_form_is_the_sum():
    for n in (0, 1, 31, 2049, 5000):
        assert expected_sum(n) == sum(2 * ((i % 2048) - 1024) * 0.5 + (i % 1024) - 512 for i in range(n))


@pytest.mark.parametrize("n", [0, 1, 31, 1024, 1025, 2**20, 2**20 + 3])
def test_the_homework_contract(lesson, n):
    result = lesson.run(SAXPY, n, "--reps", 2)
    assert result.code == 0 and result.err == "", result
    assert re.findall(r"^SUM=(.*)$", result.out, re.M) == [str(expected_sum(n))]
    assert lesson.json(SAXPY, "--n", n, "--reps", 1)["values"]["sum"] == expected_sum(n)


@pytest.mark.parametrize("block", [1, 32, 33, 1000, 1024])
def test_any_block_covers_any_n(lesson, block):
    data = lesson.json(SAXPY, 10007, "--block", block, "--reps", 1)
    assert data["values"]["sum"] == expected_sum(10007)


def test_where_the_time_goes(lesson):
    data = lesson.json(SAXPY, "--n", "256k")
    n = 2**18
    rows = {row["name"].split(" (")[0]: row for row in data["measurements"]}
    assert [row["bytes"] for row in rows.values()] == [8 * n, 12 * n, 4 * n]
    assert list(rows) == ["copy in", "kernel", "copy back"]
    for row in rows.values():
        assert row["rate"] == pytest.approx(row["bytes"] / row["milliseconds"]["median"] / 1e6)


@pytest.mark.parametrize("arguments", [("-5",), ("5", "6"), ("",), ("1e6",), ("5x",), ("--block", 0), ("--block", 1025),
                                       ("--n",)])
def test_a_wrong_command_line(lesson, arguments):
    result = lesson.run(SAXPY, *arguments)
    assert result.code == 64 and result.err.count("\n") == 1 and result.out == "", result


@needs_nvcc
def test_the_source_compiles_as_the_homework_does(tmp_path):
    result = run_command([toolchain(BACKEND="cuda")["NVCC"], "-O2", "-std=c++17", "-arch=sm_90", ROOT / "02_saxpy/saxpy.cu",
                          "-o", tmp_path / "saxpy"])
    assert result.code == 0 and result.err == "", result


# ---- saxpy_variants

@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 31, 1025, 65539])
def test_every_variant_is_right_for_every_tail(lesson, n):
    data = lesson.json(VARIANTS, "--n", n, "--reps", 2)
    assert {row["check"] for row in data["measurements"]} == {"ok"}
    assert [row["block"] for row in data["measurements"] if "float4, blocks" in row["table"]] == [32, 64, 128, 256, 512, 1024]
    assert {row["bytes"] for row in data["measurements"]} == {12 * n}


@pytest.mark.parametrize("offset, fits", [(0, True), (1, False), (2, False), (3, False), (4, True)])
def test_float4_needs_its_boundary(lesson, offset, fits):
    result = lesson.run(VARIANTS, "--n", 5003, "--offset", offset, "--reps", 1)
    assert result.code == 0, result
    assert ("float4 is" in result.out) == fits
    assert ("left out: x and y do not lie on a 16-byte boundary" in result.out) != fits


def test_cublas_is_there_or_the_row_says_why(lesson):
    result = lesson.run(VARIANTS, "--n", 5003, "--reps", 1)
    [line] = re.findall(r"^ +cublasSaxpy .*$", result.out, re.M)
    assert "left out: " in line or line.endswith("ok"), line


def test_brief_is_the_first_table_alone(lesson):
    data = lesson.json(VARIANTS, "--n", 1000, "--reps", 1, "--brief")
    assert {row["table"] for row in data["measurements"]} == {"four ways"}


def test_blocks_started_a_microsecond(lesson):
    for row in lesson.json(VARIANTS, "--n", 10001, "--reps", 1)["measurements"]:
        if row["table"].startswith("float4"):
            blocks = -(-10001 // (4 * row["block"]))
            assert row["blocks/us"] == pytest.approx(blocks / row["milliseconds"]["median"] / 1e3)


def test_more_than_2_31_elements(lesson):
    if lesson.backend == "cpu" or lesson.json("01_hello_grid/device_query")["values"]["memory_free_bytes"] < 20 * 2**30:
        pytest.skip("needs a GPU with 20 GiB of free memory")
    n = 2**31 + 1027
    result = lesson.run(SAXPY, n, "--reps", 1)
    assert result.code == 0 and f"SUM={expected_sum(n)}\n" in result.out, result


# ---- unified_memory

@pytest.mark.parametrize("n", [1, 31, 1025, 100003])
def test_five_kinds_of_memory_one_result(lesson, n):
    result = lesson.run(UNIFIED, "--n", n, "--reps", 2)
    assert result.code == 0, result
    data = lesson.json(UNIFIED, "--n", n, "--reps", 2)
    assert {row["check"] for row in data["measurements"]} == {"ok"}
    left_out = len(re.findall(r"left out: ", result.out))
    assert len(data["measurements"]) + left_out == 5 and left_out <= 3
    assert data["measurements"][0]["speed-up"] == 1


def test_never_more_managed_memory_than_is_free(lesson):
    result = lesson.run(UNIFIED, "--n", "1024G")
    assert result.code == 1 and "are free" in result.err and result.err.count("\n") == 1, result
