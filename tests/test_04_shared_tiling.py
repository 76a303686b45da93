"""Lesson 04: every kernel is right for every shape, and the programs say what they saw."""

import json
import re
import xml.etree.ElementTree

import pytest

from conftest import ROOT, run_command

MATMUL, TRANSPOSE = "04_shared_tiling/matmul", "04_shared_tiling/transpose"
REDUCTION, STENCIL = "04_shared_tiling/reduction", "04_shared_tiling/stencil_1d"
MISSING_SYNC = "04_shared_tiling/missing_sync"
RUNGS = sorted(int(re.match(r"matmul_(\d+)_", path.name).group(1))
               for path in (ROOT / "04_shared_tiling").glob("matmul_[0-9]*.cuh"))


def all_ok(data):
    """Every measured row was compared and is right, and no check failed."""
    states = {row["check"] for row in data["measurements"]}
    return states == {"ok"} and data["checks"]["failed"] == 0 and data["checks"]["done"] > 0


def own_rows(data):
    return [row for row in data["measurements"] if not row["name"].lower().startswith(("cublas", "cub "))]


# ---- matmul

# one element; one row, column or inner step; primes; one more and one less than each tile; four
# divides k but not n, and n but not k; as many columns beyond a tile as rung 9 sums by themselves, and
# one more; whole tiles only
SHAPES = [(1, 1, 1), (1, 67, 13), (67, 1, 13), (67, 13, 1), (31, 37, 41), (33, 31, 32), (65, 63, 9), (127, 129, 17),
          (129, 257, 33), (130, 254, 20), (101, 260, 7), (65, 272, 300), (66, 273, 300), (128, 256, 64), (256, 512, 16)]


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_every_rung_is_right_for_every_shape(lesson, m, n, k):
    data = lesson.json(MATMUL, "--m", m, "--n", n, "--k", k, "--reps", 1)
    assert all_ok(data)
    assert [int(row["name"].split()[0]) for row in own_rows(data)] == RUNGS
    assert {row["flops"] for row in own_rows(data)} == {2 * m * n * k}


# few tiles and a long k: the tiles are cut, and up to all blocks add to one of them
@pytest.mark.parametrize("m, n, k", [(300, 200, 700), (640, 200, 1000), (1, 1, 5000), (128, 256, 3001)])
def test_tiles_that_several_blocks_share(lesson, m, n, k):
    data = lesson.json(MATMUL, "--m", m, "--n", n, "--k", k, "--kernel", 9, "--reps", 3)
    assert all_ok(data)


@pytest.mark.parametrize("m, n, k", [(0, 5, 5), (5, 0, 5), (0, 0, 0)])
def test_no_elements_is_nothing_to_do(lesson, m, n, k):
    result = lesson.run(MATMUL, "--m", m, "--n", n, "--k", k)
    assert result.code == 0 and "nothing to do" in result.out and result.err == "", result


def test_an_inner_dimension_of_zero_makes_zeros(lesson):
    """The empty sum is 0, and C is poisoned before: a kernel that writes nothing fails here."""
    data = lesson.json(MATMUL, "--m", 130, "--n", 258, "--k", 0, "--reps", 1)
    assert data["checks"]["failed"] == 0 and len(own_rows(data)) == len(RUNGS)


@pytest.mark.parametrize("number", RUNGS)
def test_one_rung_alone(lesson, number):
    data = lesson.json(MATMUL, "--size", 40, "--kernel", number, "--reps", 1)
    assert [int(row["name"].split()[0]) for row in own_rows(data)] == [number]


def test_a_large_product_is_checked_on_sampled_rows_and_says_so(lesson):
    result = lesson.run(MATMUL, "--m", 2100, "--n", 256, "--k", 256, "--kernel", RUNGS[-1], "--reps", 1)
    assert result.code == 0 and "reference: 16 of 2100 rows" in result.out, result


def test_the_ladder_climbs_in_arithmetic_intensity(lesson):
    values = lesson.json(MATMUL, "--size", 40, "--reps", 1)["values"]
    intensity = [values[f"rung {number} flop per byte"] for number in RUNGS]
    assert intensity == sorted(intensity) and intensity[2] == 8


@pytest.mark.parametrize("arguments", [("--kernel", RUNGS[-1] + 1), ("--kernel", -1), ("--size", "2M"), ("--m", ""),
                                       ("--size", "1e3"), ("7",)])
def test_a_wrong_command_line(lesson, arguments):
    result = lesson.run(MATMUL, *arguments)
    assert result.code == 64 and result.err.count("\n") == 1 and result.out == "", result


def test_what_does_not_fit_is_one_line(lesson):
    result = lesson.run(MATMUL, "--m", "1M", "--n", "1M", "--k", 1)
    assert result.code == 1 and result.err.count("\n") == 1 and "GiB of device memory" in result.err, result


def test_the_rungs_can_be_compared():
    """Each rung is one file with its own namespace, and says in its first line which one it is."""
    assert RUNGS == list(range(1, len(RUNGS) + 1))
    for path in (ROOT / "04_shared_tiling").glob("matmul_[0-9]*.cuh"):
        number = path.name.split("_")[1]
        text = path.read_text()
        assert text.startswith(f"// Rung {number}: ") and re.search(rf"^namespace rung_{number}\s*{{", text, re.M), path
        code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]
        assert len(code) <= 170, path


# ---- transpose

@pytest.mark.parametrize("rows, cols", [(1, 1), (1, 1000), (1000, 1), (31, 33), (32, 32), (64, 64), (63, 65), (68, 132),
                                        (4, 4), (101, 67), (8, 1026)])
def test_transpose_of_every_shape(lesson, rows, cols):
    data = lesson.json(TRANSPOSE, "--rows", rows, "--cols", cols, "--reps", 1)
    assert all_ok(data)
    fours = rows % 4 == 0 and cols % 4 == 0
    assert any("wide" in row["name"] for row in data["measurements"]) == fours
    assert {row["bytes"] for row in data["measurements"]} == {8 * rows * cols}


def test_transpose_of_nothing(lesson):
    assert "nothing to do" in lesson.run(TRANSPOSE, "--rows", 0).out


# ---- reduction

@pytest.mark.parametrize("n", [1, 2, 3, 5, 31, 255, 256, 257, 512, 513, 1023, 65537])
def test_sums_of_every_length(lesson, n):
    """Each kernel's sum of whole numbers is compared exactly; so one lost element fails."""
    data = lesson.json(REDUCTION, "--n", n, "--reps", 1)
    assert data["checks"]["failed"] == 0 and data["checks"]["done"] >= 11
    assert all(row["check"] == "ok" and row["rel. error"] <= 1e-5 for row in own_rows(data))


def test_the_sum_of_nothing(lesson):
    assert "the sum is 0" in lesson.run(REDUCTION, "--n", 0).out


def test_a_float_loop_stops_growing(lesson):
    """2^26 numbers of about 0.5 in float, one by one: the sum stays at 2^24."""
    if lesson.backend == "cpu":
        pytest.skip("2^26 elements take minutes on the CPU backend")
    values = lesson.json(REDUCTION, "--n", "64M", "--reps", 1)["values"]
    assert values["one by one relative error"] == pytest.approx(0.5, abs=0.01)


# ---- stencil_1d

@pytest.mark.parametrize("n", [1, 2, 8, 9, 255, 256, 257, 1000, 4099])
@pytest.mark.parametrize("radius", [1, 3, 8])
def test_the_stencil_at_every_edge(lesson, n, radius):
    data = lesson.json(STENCIL, "--n", n, "--radius", radius, "--reps", 1)
    assert all_ok(data) and [row["radius"] for row in data["measurements"]] == [radius] * 3


def test_the_stencil_of_nothing(lesson):
    assert "nothing to do" in lesson.run(STENCIL, "--n", 0).out
    assert lesson.run(STENCIL, "--radius", 9).code == 64


# ---- missing_sync

@pytest.mark.parametrize("late", [0, 2, 7])
def test_the_missing_barrier_shows_every_time(lesson, late):
    for _ in range(3):
        result = lesson.run(MISSING_SYNC, "--late", late)
        assert result.code == 0 and "expected" in result.out and result.err == "", result
        lost = re.search(r"lost in every block: positions (.*)", result.out).group(1)
        if lesson.backend == "cpu":  # threads run in order there: the first half reads too early
            assert lost == "0 to 127", result
        else:
            assert lost == f"{256 - 32 * (late + 1)} to {255 - 32 * late}", result


def test_with_the_barrier_nothing_is_lost(lesson):
    values = lesson.json(MISSING_SYNC)["values"]
    assert values["wrong with barrier"] == 0 and values["wrong without barrier"] > 0


# ---- the plot

def test_the_ladder_is_drawn_from_the_json(tmp_path):
    rows = [{"name": "cublasSgemm (fp32)", "rate": 50.0, "unit": "TFLOP/s", "limit": 66.9, "% cuBLAS": 100},
            {"name": "1 uncoalesced", "rate": 0.5, "unit": "TFLOP/s", "limit": 66.9, "% cuBLAS": 1},
            {"name": "2 coalesced", "rate": 25.0, "unit": "TFLOP/s", "limit": 66.9, "% cuBLAS": 50}]
    data = {"device": {"name": "A & B"}, "parameters": {"m": 1, "n": 2, "k": 3}, "measurements": rows}
    file = tmp_path / "ladder.json"
    file.write_text(json.dumps(data))
    result = run_command([ROOT / "scripts/plot_ladder", file])
    assert result.code == 0 and result.err == "", result
    root = xml.etree.ElementTree.fromstring(result.out)
    widths = [float(bar.get("width")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths[1] == pytest.approx(50 * widths[0], rel=0.02) and widths[2] == pytest.approx(2 * widths[1], rel=0.02)
    assert "50.0 % of cuBLAS" in result.out and "A &amp; B" in result.out


def test_the_plot_refuses_what_is_no_ladder(tmp_path):
    file = tmp_path / "other.json"
    file.write_text('{"measurements": []}')
    for path in (file, tmp_path / "missing.json"):
        result = run_command([ROOT / "scripts/plot_ladder", path])
        assert result.code == 1 and result.out == "" and result.err.count("\n") == 1, result
