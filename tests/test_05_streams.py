"""Lesson 05: right results whatever overlaps, and a picture, a trace and times that agree."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from conftest import ROOT, run_command

LETTERS = {"copy in": "i", "kernel": "k", "copy out": "o"}


# ---- the trace file and the text timeline of the same run

def read_trace(path):
    """{process name: {row: [(begin, end, letter), ...] in order of time}}, in microseconds."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    processes = {name: {} for name in names.values()}
    assert len(processes) == len(names), "two processes of one name"
    for e in events:
        assert e["ph"] in ("M", "X")
        if e["ph"] == "X":
            assert (e["pid"], e["tid"]) in rows, "a row without a name"
            assert e["dur"] >= 0 and e["ts"] >= 0 and e["args"]["waited_us"] >= 0
            row = processes[names[e["pid"]]].setdefault(e["tid"], [])
            row.append((e["ts"], e["ts"] + e["dur"], LETTERS[e["name"]]))
    for process in processes.values():
        for spans in process.values():
            spans.sort(key=lambda span: span[:2])
    return processes


def read_pictures(text):
    """{title: (total ms, ms a character, {row: line})}"""
    pictures, title = {}, None
    for line in text.splitlines():
        head = re.match(r"(.*): (?:the first [\d.]+ of )?([\d.]+) ms, one character is ([\d.]+) ms$", line)
        row = re.match(r"  stream (\d+) \|(.+)\|$", line)
        if head:
            title = head.group(1)
            pictures[title] = (float(head.group(2)), float(head.group(3)), {})
        elif row:
            pictures[title][2][int(row.group(1))] = row.group(2)
    return pictures


def overlap_within_a_row(process):
    return [(row, a, b) for row, spans in process.items() for a, b in zip(spans, spans[1:])
            if a[1] > b[0] + 1e-6]  # the sum of two decimal fractions is not exact


def disagreement(picture, process):
    """The first (row, column, what) where the text does not show what the trace says, or None."""
    total_ms, ms, lines = picture
    if set(lines) != set(process):
        return f"rows {sorted(lines)} and {sorted(process)}"
    for row, line in lines.items():
        spans = [(begin / 1e3 / ms, end / 1e3 / ms, letter) for begin, end, letter in process[row]]
        for begin, end, letter in spans:  # of a long run only the beginning is drawn
            if end < len(line) and end - begin > 2.5 and letter not in line[int(begin):int(end) + 1]:
                return row, begin, f"no {letter}"
        for column, shown in enumerate(line):
            # the width of a character is printed with few digits: the error grows along the line
            slack = 1.01 + 0.01 * column
            near = {s for begin, end, s in spans if begin - slack < column + 0.5 < end + slack}
            covered = any(begin < column - slack and column + 1 + slack < end for begin, end, s in spans)
            if (shown != "." and shown not in near) or (shown == "." and covered):
                return row, column, shown
    return None


def run_with_trace(lesson, tmp_path, *arguments):
    trace = tmp_path / "trace.json"
    n = "16M" if lesson.backend == "cuda" else "256k"  # what the GPU takes at once must fill a picture
    result = lesson.run("05_streams/streams", "--reps", "1", "--n", n, "--trace", trace, *arguments)
    assert result.code == 0, result
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    return read_trace(trace), read_pictures(result.out)


@pytest.mark.parametrize("streams, chunks", [(1, 4), (3, 7), (4, 32), (8, 3)])
def test_the_trace_is_complete_and_the_picture_agrees(lesson, tmp_path, streams, chunks):
    trace, pictures = run_with_trace(lesson, tmp_path, "--streams", streams, "--chunks", chunks)
    assert list(trace) == list(pictures) and len(trace) == 3
    for title, process in trace.items():
        by_phase = title.startswith("a stream a phase")
        wanted = 1 if title == "1 stream, 1 chunk" else chunks
        rows = 1 if wanted == 1 else 3 if by_phase else min(streams, chunks)
        assert sorted(process) == list(range(rows))
        letters = {row: "".join(span[2] for span in spans) for row, spans in process.items()}
        if by_phase:
            assert letters == {0: "i" * wanted, 1: "k" * wanted, 2: "o" * wanted}
        else:  # in every stream the order of the three holds
            assert all(row == "iko" * (len(row) // 3) for row in letters.values())
            assert sum(map(len, letters.values())) == 3 * wanted
        assert not overlap_within_a_row(process)
        end = max(span[1] for spans in process.values() for span in spans)
        assert abs(end / 1e3 - pictures[title][0]) < 0.0011
        assert disagreement(pictures[title], process) is None, (title, pictures[title], process)


def test_the_trace_keeps_the_order_of_each_chunk(lesson, tmp_path):
    """With a stream a phase: the n-th kernel follows the n-th copy in, and so on, by events."""
    trace, _ = run_with_trace(lesson, tmp_path, "--chunks", 8)
    process = trace["a stream a phase, 8 chunks"]
    for arrival, kernel, departure in zip(process[0], process[1], process[2]):
        assert arrival[1] <= kernel[0] + 1e-6 and kernel[1] <= departure[0] + 1e-6


def test_the_judges_above_see_a_wrong_picture():
    process = {0: [(0, 10, "i"), (10, 40, "k"), (40, 100, "o")]}
    right = (0.1, 0.01, {0: "ikkkoooooo"})
    assert disagreement(right, process) is None and not overlap_within_a_row(process)
    for line in ("iiiiiiiooo", "ik......oo", "ooooookkki", "ikkkiiiiii"):
        assert disagreement((0.1, 0.01, {0: line}), process) is not None, line
    assert disagreement(right, {**process, 1: []}) is not None
    assert overlap_within_a_row({0: [(0, 10, "i"), (9, 12, "k")]})


def test_copies_of_one_direction_do_not_overlap(lesson, tmp_path):
    trace, _ = run_with_trace(lesson, tmp_path, "--chunks", "16")
    for process in trace.values():
        for letter in "io":
            copies = sorted(s[:2] for spans in process.values() for s in spans if s[2] == letter)
            assert all(a[1] <= b[0] + 1e-6 for a, b in zip(copies, copies[1:]))


def test_a_trace_that_cannot_be_written_is_one_line(lesson, tmp_path):
    missing = tmp_path / "no" / "folder" / "t.json"
    result = lesson.run("05_streams/streams", "--trace", missing)
    assert result.code == 1 and str(missing) in result.err and len(result.err.splitlines()) == 1
    if os.path.exists("/dev/full"):
        result = lesson.run("05_streams/streams", "--n", "1k", "--trace", "/dev/full")
        assert result.code == 1 and "could not be written" in result.err
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode), "a device was replaced by a file"


def test_interrupt_leaves_no_half_written_trace(lesson, tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [lesson.path("05_streams/streams"), "--sweep", "--reps", "1000", "--work", "4096",
             "--trace", tmp_path / "trace.json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tmp_path.glob("*.part")), "the trace was not opened in time"
        process.send_signal(number)
        assert process.wait(timeout=20) == -number, process.stderr.read()
        assert not list(tmp_path.iterdir())


# ---- streams

@pytest.mark.parametrize("n", [1, 5, 1000, 65537])
@pytest.mark.parametrize("streams, chunks", [(1, 1), (3, 7), (32, 1024)])
def test_every_size_is_right_in_any_number_of_pieces(lesson, n, streams, chunks):
    data = lesson.json("05_streams/streams", "--n", n, "--streams", streams, "--chunks", chunks,
                       "--work", "7", "--reps", "1")
    assert data["checks"] == {"done": 9, "failed": 0}
    rows = [row for row in data["measurements"] if row["check"] == "ok"]
    assert [(row["streams"], row["chunks"]) for row in rows] == [(1, 1), (streams, chunks),
                                                                 (3, chunks)]


def test_sweep_names_its_own_best(lesson):
    data = lesson.json("05_streams/streams", "--sweep", "--n", "16k", "--reps", "2")
    rows = [row for row in data["measurements"] if row["table"] == "sweep"]
    rows += [row for row in data["measurements"] if row["name"] == "1 stream, 1 chunk"]
    assert len({row["name"] for row in rows}) == len(rows) == 6 * 6 + 1
    best = min(rows, key=lambda row: row["milliseconds"]["median"])
    assert (data["values"]["best"], data["values"]["best_ms"]) == \
        (best["name"], best["milliseconds"]["median"])


def test_streams_overlap_on_a_gpu(lesson, tmp_path):
    if lesson.backend != "cuda":
        pytest.skip("nothing overlaps on the CPU backend")
    result = lesson.run("05_streams/streams", "--json", tmp_path / "streams.json")
    values = json.loads((tmp_path / "streams.json").read_text())["values"]
    with_events = [picture[0] for picture in read_pictures(result.out).values()]
    without = [float(ms) for ms in re.findall(r"that drew this picture: ([\d.]+) ms", result.out)]
    assert len(with_events) == len(without) == 3
    assert all(0.9 < a / b < 1.25 for a, b in zip(with_events, without)), "the events changed the run"
    if "a copy in, a kernel and a copy out can overlap" in result.out:
        assert values["speed_up"] > 1.3 and 0.97 < values["times_limit"] < 1.3, values


# ---- the other programs

@pytest.mark.parametrize("program", ["async_copy", "streams", "default_stream", "dependencies",
                                     "priorities"])
def test_the_cpu_backend_says_that_nothing_overlaps(cpu, program):
    result = cpu.run(f"05_streams/{program}", "--reps", "1")
    assert result.code == 0 and "nothing overlaps here" in result.out.replace("\n", " "), result


def test_timing_trap(lesson):
    data = lesson.json("05_streams/timing_trap")
    assert data["values"]["lines_with_synchronise"] == 1
    trap, synced, events = data["measurements"][:3]
    if lesson.backend == "cuda":
        assert data["values"]["lines_without_synchronise"] == 0
        assert trap["milliseconds"]["median"] < 0.5 * events["milliseconds"]["median"]
        assert synced["milliseconds"]["median"] >= 0.9 * events["milliseconds"]["median"]


def test_async_copy_only_leaves_the_host_free_when_pinned(lesson):
    data = lesson.json("05_streams/async_copy", "--n", "8M" if lesson.backend == "cuda" else "64k")
    rows = {(row["table"], row["name"]): row for row in data["measurements"]}
    assert len(rows) == 9
    if lesson.backend == "cuda":
        for table in ("to the device", "from the device"):
            assert rows[table, "pinned, cudaMemcpyAsync"]["host free %"] > 90
            assert rows[table, "pinned, cudaMemcpy"]["host free %"] < 10


def test_default_stream_serialises(lesson):
    data = lesson.json("05_streams/default_stream")
    rows = {row["name"]: row for row in data["measurements"]}
    assert len(rows) == 5
    if lesson.backend == "cuda":
        factor = {name: row["x one"] for name, row in rows.items()}
        assert factor.pop("B in the default stream") > 2.7
        assert all(value < 1.5 for value in factor.values()), factor


def test_dependencies(lesson):
    result = lesson.run("05_streams/dependencies")
    pictures = read_pictures(result.out)
    values = lesson.json("05_streams/dependencies")["values"]
    assert values["right_with_waits"] == 32
    _, _, lines = pictures["with cudaStreamWaitEvent"]
    for before, after in [(0, 1), (0, 2), (1, 3), (2, 3)]:
        end = len(lines[before].rstrip("."))
        start = len(lines[after]) - len(lines[after].lstrip("."))
        assert start >= end - 1, lines
    if lesson.backend == "cuda":
        assert values["right_without_waits"] == 0, "wrong on purpose, and every time"


def test_priorities(lesson):
    values = lesson.json("05_streams/priorities")["values"]
    if lesson.backend == "cuda" and values["lowest_priority"] != values["highest_priority"]:
        assert values["highest_priority_ms"] < 0.5 * values["equal_priority_ms"]


@pytest.mark.parametrize("n", [1, 255, 257])
@pytest.mark.parametrize("kernels", [1, 2, 500])
def test_graphs_repeat_the_chain(lesson, n, kernels):
    data = lesson.json("05_streams/graphs", "--n", n, "--kernels", kernels, "--reps", "2")
    assert [row["check"] for row in data["measurements"]] == ["ok"] * 3


def test_graphs_are_cheaper_on_a_gpu(lesson):
    if lesson.backend != "cuda":
        pytest.skip("a graph saves nothing on the CPU backend")
    values = lesson.json("05_streams/graphs")["values"]
    assert values["host_factor"] > 2 and values["total_factor"] > 1.2, values


@pytest.mark.parametrize("n, rounds", [(1, 1), (257, 3), (65537, 2)])
def test_stream_ordered_memory(lesson, n, rounds):
    data = lesson.json("05_streams/stream_ordered_memory", "--n", n, "--rounds", rounds, "--reps", "2")
    assert len(data["measurements"]) == 5
    assert all(row["check"] == "ok" for row in data["measurements"])


# ---- the checks of the programs can fail: each is broken once

BROKEN = [
    ("streams", "x = a * x + b;", "x = a * x;"),
    ("streams", "copy_out(job, c, job->stream[s]);", "if (c.first) copy_out(job, c, job->stream[s]);"),
    ("streams", "copy_out(job, c, stream[2]);", "copy_out(job, c, stream[2]); c.first += 1;"),
    ("default_stream", "value * one + 1.0f", "value * one + 2.0f"),
    ("dependencies", "x, y, out);", "x, x, out);"),
    ("priorities", "step < steps", "step < steps - 1"),
    ("graphs", "k < c->kernels; k++) {\n        CUDA_CHECK(cudaGraphAdd",
     "k < c->kernels - 1; k++) {\n        CUDA_CHECK(cudaGraphAdd"),
    ("stream_ordered_memory", "sum[i] += temporary[i];", "sum[i] = temporary[i];"),
    ("async_copy", "b->bytes, kind, b->stream", "b->bytes - 4, kind, b->stream"),
    ("timing_trap", "y[i] = a * x[i];", "y[i] = a;"),
]


@pytest.mark.parametrize("program, old, new", BROKEN, ids=[f"{b[0]}-{n}" for n, b in enumerate(BROKEN)])
def test_a_broken_program_fails_its_own_checks(tmp_path, program, old, new):
    source = (ROOT / "05_streams" / f"{program}.cu").read_text()
    assert source.count(old) == 1, "the program has changed: change this test with it"
    shutil.copytree(ROOT / "common", tmp_path / "common")
    folder = tmp_path / "05_streams"
    folder.mkdir()
    (folder / f"{program}.cu").write_text(source.replace(old, new))
    binary = folder / program
    built = run_command([ROOT / "scripts" / "nvcc-cpu", folder / f"{program}.cu", "-o", binary])
    assert built.code == 0, built
    result = run_command([binary, "--reps", "1"])
    assert result.code == 1 and "check failed" in result.err, result
