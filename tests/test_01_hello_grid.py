"""Lesson 01: who runs where, how a grid covers its data, and what a branch costs."""

import math
import re

import pytest

HELLO, QUERY = "01_hello_grid/hello_grid", "01_hello_grid/device_query"
MAPPING, STRIDE = "01_hello_grid/grid_mapping", "01_hello_grid/grid_stride"
SCALING, DIVERGENCE = "01_hello_grid/scaling", "01_hello_grid/divergence"


def rows_of(text):
    """The records that hello_grid printed: (turn, block, thread, in the grid, warp, lane)."""
    triple = r"\((\d+),(\d+),(\d+)\)"
    found = re.findall(rf"^ +(\d+) +{triple} +{triple} +{triple} +(\d+) +(\d+)", text, re.M)
    return [tuple(map(int, row)) for row in found]


# ---- hello_grid

@pytest.mark.parametrize("grid, block", [((1,), (1,)), ((3,), (33,)), ((2, 3), (5, 7)), ((2, 1, 3), (4, 3, 9)),
                                         ((1, 2, 2), (1, 1, 64)), ((7,), (1024,))])
def test_every_thread_says_who_it_is(lesson, grid, block):
    def text(sides):
        return ",".join(map(str, sides))

    grid, block = (grid + (1, 1))[:3], (block + (1, 1))[:3]
    threads, blocks = math.prod(block), math.prod(grid)
    result = lesson.run(HELLO, "--grid", text(grid), "--block", text(block), "--threads", "--rows", 10**6)
    assert result.code == 0, result
    rows = rows_of(result.out)
    assert sorted(row[0] for row in rows) == list(range(threads * blocks)), "each turn once"
    assert [row[0] for row in rows] == sorted(row[0] for row in rows), "printed in the order of the turns"
    seen = set()
    for _, bx, by, bz, tx, ty, tz, gx, gy, gz, warp, lane in rows:
        number = tx + block[0] * (ty + block[1] * tz)
        assert (warp, lane) == (number // 32, number % 32)
        assert (gx, gy, gz) == (bx * block[0] + tx, by * block[1] + ty, bz * block[2] + tz)
        assert bx < grid[0] and by < grid[1] and bz < grid[2] and number < threads
        seen.add((bx, by, bz, number))
    assert len(seen) == threads * blocks


def test_the_tour_shows_three_dimensions_and_the_refused_launch(lesson):
    result = lesson.run(HELLO)
    assert result.code == 0, result
    for launch in ("hello<<<(6,1,1), (40,1,1)>>>", "hello<<<(2,2,1), (16,4,1)>>>", "hello<<<(2,1,2), (4,4,4)>>>"):
        assert launch in result.out
    expected = [line for line in result.out.splitlines() if "expected" in line]
    assert len(expected) == 1 and re.search(r"error (1|9) cudaErrorInvalid", expected[0])
    assert "threads a block: 1025 asked, this device takes 1 to 1024" in result.out
    assert len(result.out.splitlines()) <= 60, "more than a projector shows"


def test_rows_are_truncated_with_a_count(lesson):
    few = lesson.run(HELLO, "--grid", 10, "--block", 70, "--rows", 4).out
    assert len(rows_of(few)) == 4 and "... and 26 more rows (--rows 30 shows all)" in few
    assert len(rows_of(lesson.run(HELLO, "--grid", 10, "--block", 70, "--rows", 30).out)) == 30
    assert "more rows" not in lesson.run(HELLO, "--grid", 10, "--block", 70, "--rows", 30).out
    assert {row[-1] for row in rows_of(few)} == {0}, "lane 0 of each warp"


@pytest.mark.parametrize("arguments, limit", [
    (("--block", "2048"), "threads a block: 2048 asked"),
    (("--block", "32,33"), "threads a block: 1056 asked"),
    (("--block", "1,1,65"), "block z: 65 asked, this device takes 1 to 64"),
    (("--block", "0"), "threads a block: 0 asked"),
    (("--grid", "0"), "grid x: 0 asked"),
    (("--grid", "1,65536"), "grid y: 65536 asked, this device takes 1 to 65535"),
    (("--grid", "1,1,65536"), "grid z: 65536 asked"),
])
def test_an_impossible_launch_is_refused_with_its_limit(lesson, arguments, limit):
    result = lesson.run(HELLO, *arguments)
    assert result.code == 1 and limit in result.out and limit in result.err, result
    assert re.search(r"expected: .*error (1|9) cudaErrorInvalid", result.out)
    assert "cudaDeviceSynchronize() gives 0" in result.out


@pytest.mark.parametrize("value", ["", "4,", "4,4,4,4", "x", "-1", "4;4", "99999999999", " 4"])
def test_a_wrong_shape_is_a_wrong_command_line(lesson, value):
    for option in ("--grid", "--block"):
        result = lesson.run(HELLO, option, value)
        assert result.code == 64 and result.err.count("\n") == 1 and option in result.err, result


def test_too_many_threads_to_remember(lesson):
    result = lesson.run(HELLO, "--grid", "2147483647", "--block", "1024")
    assert result.code == 1 and "needs" in result.err and "--grid" in result.err, result


def test_json_counts_threads_and_warps(lesson):
    values = lesson.json(HELLO, "--grid", "5", "--block", "33")["values"]
    assert values["launch1_threads"] == 165 and values["launch1_warps"] == 10
    if lesson.backend == "cuda":
        assert 1 <= values["launch1_sms_used"] <= 5
    else:
        assert values["launch1_sms_used"] is None


# ---- device_query

def test_the_table_of_the_card(lesson):
    result = lesson.run(QUERY)
    assert result.code == 0, result
    data = lesson.json(QUERY)
    values = data["values"]
    assert values["threads_per_block"] == 1024 and values["warp_size"] == 32
    assert values["block_z"] == 64 and values["grid_y"] == 65535 and values["grid_x"] == 2**31 - 1
    assert values["shared_per_block"] == 48 * 1024 <= values["shared_per_block_optin"] or lesson.backend == "cpu"
    assert values["memory_free_bytes"] <= values["memory_bytes"] == data["device"]["memory_bytes"]
    assert values["threads_resident"] == values["threads_per_sm"] * values["sms"]
    if lesson.backend == "cuda":
        sms = data["device"]["compute_capability"].replace(".", "")
        assert values["SMS"] == sms and f"make SMS={sms}" in result.out
        if values["memory_clock_khz"] and values["memory_bus_bits"]:  # double data rate, 8 bits a byte
            limit = values["memory_clock_khz"] * 1e3 * 2 * values["memory_bus_bits"] / 8 / 1e9
            assert values["memory_limit_gbs"] == pytest.approx(limit)
    else:
        assert "SMS=" not in result.out and "GB/s" not in result.out, "no limits of a GPU on a CPU"


def test_all_devices(lesson):
    data = lesson.json(QUERY, "--all")
    for device in range(int(data["values"]["devices"])):
        assert data["values"][f"device{device}_threads_per_block"] == 1024
    assert lesson.run(QUERY, "--device", 99).code == 64


# ---- grid_mapping

def read_ppm(path):
    content = path.read_bytes()
    header = re.match(rb"P6\n(\d+) (\d+)\n255\n", content)
    assert header, content[:20]
    width, height = int(header.group(1)), int(header.group(2))
    pixels = content[header.end():]
    assert len(pixels) == 3 * width * height
    return width, height, [[pixels[3 * (y * width + x):][:3] for x in range(width)] for y in range(height)]


@pytest.mark.parametrize("width, height, block", [(56, 20, (16, 16)), (1, 1, (16, 16)), (33, 17, (16, 16)),
                                                  (31, 7, (8, 4)), (5, 40, (1, 32)), (64, 32, (16, 16))])
def test_the_picture_shows_who_owns_each_pixel(lesson, tmp_path, width, height, block):
    target = tmp_path / "tiles.ppm"
    arguments = ("--width", width, "--height", height, "--block", "{},{}".format(*block), "--ppm", target)
    data = lesson.json(MAPPING, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["tiles.ppm"]
    blocks = (-(-width // block[0]), -(-height // block[1]))
    threads = math.prod(blocks) * math.prod(block)
    assert data["values"] == {"blocks": math.prod(blocks), "threads": threads, "idle_threads": threads - width * height}

    read_width, read_height, pixels = read_ppm(target)
    assert (read_width, read_height) == (width, height)
    # red tells odd from even tile columns, green rows: bright (128 to 255) or dark (a third of it)
    for y in range(height):
        for x in range(width):
            red, green, _ = pixels[y][x]
            assert (red >= 128) == (x // block[0] % 2 == 1), (x, y)
            assert (green >= 128) == (y // block[1] % 2 == 1), (x, y)
    # within a tile it becomes lighter with threadIdx.x
    if block[0] > 1 and width >= block[0]:
        assert max(pixels[0][block[0] - 1]) > max(pixels[0][0])


def test_the_text_picture_marks_threads_without_a_pixel(lesson):
    result = lesson.run(MAPPING, "--width", 19, "--height", 9, "--block", "8,8")
    assert result.code == 0, result
    lines = [line.strip() for line in result.out.splitlines() if re.fullmatch(r"  [A-Z.]+", line)]
    assert lines == ["A" * 8 + "B" * 8 + "C" * 3 + "." * 5] * 8 + ["D" * 8 + "E" * 8 + "F" * 3 + "." * 5] + ["." * 24] * 7
    assert "213 of 384 threads" in result.out
    wide = lesson.run(MAPPING, "--width", 3000, "--height", 2000).out
    assert max(len(line) for line in wide.splitlines() if re.fullmatch(r"  [A-Z.]+", line)) <= 66


@pytest.mark.parametrize("arguments", [("--width", 0), ("--height", -1), ("--width", "2M"), ("--block", "33,32"),
                                       ("--block", "4,4,2"), ("--block", "0"), ("--height", 70000, "--block", "8,1")])
def test_an_impossible_image_is_a_wrong_command_line(lesson, arguments):
    result = lesson.run(MAPPING, *arguments)
    assert result.code == 64 and result.err.count("\n") == 1, result


def test_a_picture_that_cannot_be_written(lesson, tmp_path):
    result = lesson.run(MAPPING, "--ppm", tmp_path / "no" / "x.ppm")
    assert result.code == 1 and "x.ppm" in result.err, result


# ---- grid_stride

@pytest.mark.parametrize("n", [0, 1, 31, 1024, 1025, 65537])
def test_any_n_with_any_grid(lesson, n):
    data = lesson.json(STRIDE, "--n", n, "--reps", 2)
    assert len(data["measurements"]) == 5 and {row["check"] for row in data["measurements"]} == {"ok"}
    for grid, block in ((1, 1), (7, 33)) if n < 1025 else ((1, 1024), (5000, 32)):
        data = lesson.json(STRIDE, "--n", n, "--grid", grid, "--block", block, "--reps", 1)
        [row] = data["measurements"]
        assert row["check"] == "ok" and row["elements/thread"] == pytest.approx(n / (grid * block))
        assert row.get("bytes", 0) == 2 * n


def test_the_32_bit_trap(lesson):
    result = lesson.run(STRIDE, "--n", 10)
    assert re.search(r"^ +blockIdx.x \* blockDim.x .*= 5$", result.out, re.M), result
    assert re.search(rf"^ +\(size_t\)blockIdx.x .*= {2**32 + 5}$", result.out, re.M), result


def test_more_than_2_31_elements(lesson):
    if lesson.backend == "cpu" or lesson.json(QUERY)["values"]["memory_free_bytes"] < 4 * 2**30:
        pytest.skip("needs a GPU with 4 GiB of free memory")
    data = lesson.json(STRIDE, "--n", 2**31 + 1025, "--grid", 1000, "--reps", 1)
    assert data["measurements"][0]["check"] == "ok"


# ---- scaling and divergence

@pytest.mark.parametrize("n", [1, 31, 1025, 100003])
def test_the_same_sum_from_one_thread_to_all(lesson, n):
    data = lesson.json(SCALING, "--n", n, "--reps", 2, "--block", 64)
    rows = {row["name"]: row for row in data["measurements"]}
    assert [row["threads"] for row in rows.values()][:4] == [0, 1, 32, 64]
    assert {row["check"] for row in rows.values()} == {"ok"}
    assert rows["one thread an element"]["threads"] == -(-n // 64) * 64
    for row in rows.values():
        assert row["ns/element"] == pytest.approx(row["milliseconds"]["median"] * 1e6 / row["elements"])
    if lesson.backend == "cuda" and n > 10**5:
        assert data["values"]["one_thread_ns"] > 10 * data["values"]["whole_grid_ns"]


@pytest.mark.parametrize("n, block, steps", [(1, 256, 3), (1025, 96, 1), (5000, 32, 17)])
def test_both_paths_give_what_the_cpu_gets(lesson, n, block, steps):
    data = lesson.json(DIVERGENCE, "--n", n, "--block", block, "--steps", steps, "--reps", 1)
    assert len(data["measurements"]) == 9
    assert {row["check"] for row in data["measurements"]} == {"ok"}


def test_a_branch_within_a_warp_costs_both_paths(lesson):
    data = lesson.json(DIVERGENCE)
    ratio = data["values"]["within_to_between"]
    if lesson.backend == "cpu":
        assert ratio is None, "threads of the CPU backend do not run in lock step"
    else:
        assert 1.6 < ratio < 2.4
