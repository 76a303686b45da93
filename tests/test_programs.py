"""What every program of every lesson promises, whatever it teaches."""

import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BACKENDS, BUILD_DIR, PROGRAMS, ROOT, build_all, make, need, run_command

KNOWN_STATES = {0: "ok", 1: "failed", 2: "waived"}


def read_source(program):
    return (ROOT / f"{program}.cu").read_text()


# 06's programs that run alone are frames of their own; these use the common one
FRAMED = [program for program in PROGRAMS if "lesson_begin(" in read_source(program)]


def numeric_options(lesson, program):
    """The options of --help that take a number or a size."""
    text = lesson.run(program, "--help").out
    return re.findall(r"^  --([\w-]+) (?:SIZE|N|X) ", text, re.M)


@pytest.mark.parametrize("program", FRAMED)
def test_the_program_names_itself_as_its_file_does(program):
    assert f'"{program}"' in read_source(program)


@pytest.mark.parametrize("program", FRAMED)
def test_help_says_what_it_takes(lesson, program):
    result = lesson.run(program, "--help")
    assert result.code == 0 and result.err == "", result
    for word in ("usage:", "--device", "--json", "--reps", "--help", "Exit codes"):
        assert word in result.out
    assert max(map(len, result.out.splitlines())) <= 132, "help is too wide"


@pytest.mark.parametrize("program", FRAMED)
def test_a_wrong_command_line_is_one_line_and_64(lesson, program):
    wrong = [["--no-such-option"], ["-x"], ["--json"], ["--device", "9999"], ["--device", "-1"]]
    wrong += [["--device", "1000"]]  # a fair number, but no such device
    for option in numeric_options(lesson, program):
        wrong += [[f"--{option}", value] for value in ("12abc", "-1x", "1e99", "", " 5", "0x10")]
    for arguments in wrong:
        result = lesson.run(program, *arguments)
        assert result.code == 64, (arguments, result)
        assert len(result.err.strip().splitlines()) == 1 and result.out == "", (arguments, result)
        assert arguments[0].lstrip("-")[:6] in result.err, (arguments, result)


@pytest.mark.parametrize("program", FRAMED)
def test_json_is_all_that_stands_on_stdout(lesson, program):
    result = lesson.run(program, "--json", "-", "--reps", "2")
    assert result.code in (0, 2), result
    data = json.loads(result.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert f"{data['lesson']}/{data['program']}" == program
    assert data["backend"] == lesson.backend
    assert data["status"] == KNOWN_STATES[result.code]
    assert result.code == 2 or data["device"]["name"]
    assert isinstance(data["parameters"]["reps"], int)
    assert data["checks"]["failed"] == 0
    for row in data["measurements"]:
        times = row["milliseconds"]
        assert times["min"] <= times["median"] <= times["max"], row
        assert row["check"] in ("ok", None), row
        if lesson.backend == "cpu":
            assert row.get("percent") is None, "no percentage of a GPU's limit on a CPU"


@pytest.mark.parametrize("program", FRAMED)
def test_the_default_run_is_right_quick_and_silent_on_stderr(lesson, program):
    result = lesson.run(program, timeout=60, env={"CUDA_CPU_LEAKCHECK": 1})  # device memory never freed: 23
    assert result.code in (0, 2), result
    if result.code == 0:
        assert result.err == "", result
        assert re.search(r"^ok: \d+ checks?$", result.out, re.M), "a lesson that checks nothing"
    else:
        assert result.err.startswith("waived: ") and len(result.err.splitlines()) == 1
    if lesson.backend == "cpu":
        assert "runs on the CPU" in result.out
    assert max(map(len, result.out.splitlines())) <= 132, "too wide for a projector"


def test_a_json_file_appears_whole_or_not_at_all(lesson, tmp_path):
    target = tmp_path / "out.json"
    assert lesson.run("02_saxpy/saxpy", "1000", "--json", target).code == 0
    assert json.loads(target.read_text())["values"]["sum"] is not None
    missing = tmp_path / "no" / "such" / "folder.json"
    result = lesson.run("02_saxpy/saxpy", "1000", "--json", missing)
    assert result.code == 1 and len(result.err.splitlines()) == 1 and str(missing) in result.err
    assert lesson.run("02_saxpy/saxpy", "--n", "x", "--json", tmp_path / "usage.json").code == 64
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_full_disk_is_not_silent(lesson):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([lesson.path("02_saxpy/saxpy"), "1000", "--json", "-"], stdout=full,
                              stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 1 and "could not be written" in done.stderr


def test_a_size_beyond_the_memory_is_one_line_before_anything_is_allocated(lesson):
    env = {"CUDA_CPU_MEMORY": "64M", "CUDA_CPU_LOG": "1"}
    result = lesson.run("02_saxpy/saxpy", "--n", "1024G", env=env)
    assert result.code == 1, result
    own = [line for line in result.err.splitlines() if not line.startswith("cuda-cpu:")]
    assert len(own) == 1 and "needs" in own[0] and "are free" in own[0] and "--n" in own[0]
    assert "cudaMalloc" not in result.err


# ---- without a GPU

@pytest.mark.parametrize("program", FRAMED)
def test_no_gpu_is_waived_with_a_reason(cpu, program):
    result = cpu.run(program, env={"CUDA_CPU_DEVICES": 0})
    assert result.code == 2, result
    assert result.err.startswith("waived: no usable GPU (error 100") and result.err.count("\n") == 1


@pytest.mark.parametrize("env, words", [
    ({"CUDA_CPU_DEVICES": 0, "CUDA_VISIBLE_DEVICES": "7"}, ["error 100", "CUDA_VISIBLE_DEVICES is '7'", "unset"]),
    ({"CUDA_CPU_FAIL": "cudaGetDeviceCount:1:35"}, ["error 35", "the driver offers CUDA", "was built with"]),
])
def test_the_reasons_for_no_gpu_are_told_apart(cpu, env, words):
    result = cpu.run("02_saxpy/saxpy", env=env)
    assert result.code == 2 and result.err.count("\n") == 1, result
    for word in words:
        assert word in result.err, result


def test_a_waived_run_still_writes_its_json(cpu):
    data = cpu.json("02_saxpy/saxpy", code=2, env={"CUDA_CPU_DEVICES": 0})
    assert data["status"] == "waived" and "no usable GPU" in data["message"]


def test_the_real_runtime_without_a_driver_is_told_apart(tmp_path):
    """Error 35 with driver version 0: only where nvcc is and a driver is not."""
    if "cuda" in BACKENDS or not os.path.exists("/usr/local/cuda/bin/nvcc") or \
            os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("needs nvcc and no driver")
    result = make("SMS=90", f"O={tmp_path}", f"{tmp_path}/02_saxpy/saxpy")
    assert result.code == 0, result
    result = run_command([tmp_path / "02_saxpy/saxpy"])
    assert result.code == 2 and "libcuda.so.1" in result.err and result.err.count("\n") == 1
    for advice in ("srun", "--gpus all", "BACKEND=cpu"):
        assert advice in result.err


# ---- every CUDA call fails once

def logged_calls(cpu, program, arguments):
    """{API name: number of calls} of a run, from CUDA_CPU_LOG."""
    result = cpu.run(program, *arguments, env={"CUDA_CPU_LOG": 1})
    assert result.code == 0, result
    calls = {}
    for name in re.findall(r"^cuda-cpu: (cuda\w+)\(", result.err, re.M):
        calls[name] = calls.get(name, 0) + 1
    return calls


# asking for an error never fails; these return no cudaError_t that a program could check
NEVER_FAIL = {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName", "cudaGetErrorString"}
# the frame may go on without these: it asks for advice only, or probes for a limit
MAY_GO_ON = {"cudaDriverGetVersion", "cudaRuntimeGetVersion", "cudaDeviceGetPCIBusId"}


def fault_points(cpu, program, arguments):
    for name, count in sorted(logged_calls(cpu, program, arguments).items()):
        if name not in NEVER_FAIL | MAY_GO_ON:
            # every call; of an API called in a long loop the first five, one in the middle and the last
            chosen = range(1, count + 1) if count <= 20 else (1, 2, 3, 4, 5, (count + 1) // 2, count)
            yield from ((name, n) for n in chosen)


@pytest.mark.parametrize("program", [p for p in FRAMED if not p.startswith("06_")])
def test_a_failing_call_is_reported_and_ends_the_program(cpu, program):
    arguments = ["--reps", "1"]
    if cpu.run(program, *arguments).code == 2:
        pytest.skip("waived on the CPU backend")
    points = list(fault_points(cpu, program, arguments))
    assert points
    for name, n in points:
        result = cpu.run(program, *arguments, env={"CUDA_CPU_FAIL": f"{name}:{n}"})
        assert result.code in (1, 2), (name, n, result)
        if result.code == 2:  # only "no device" and a missing feature are no failures
            assert result.err.startswith("waived: "), (name, n, result)
        else:
            assert re.search(r"error \d+ cuda|is not|failed", result.err), (name, n, result)


@pytest.fixture(scope="module")
def asan():
    """Lessons 01 and 02 under AddressSanitizer, which also looks for host memory that nobody freed."""
    result = make("BACKEND=cpu", "LESSONS=01_hello_grid 02_saxpy", f"O={BUILD_DIR}/asan",
                  "EXTRA_NVCCFLAGS=-O1 -fsanitize=address")
    assert result.code == 0, result
    return BUILD_DIR / "asan"


@pytest.mark.parametrize("program", [p for p in FRAMED if p[:2] in ("01", "02")])
def test_no_leak_and_no_wrong_access(asan, program):
    # the second time with the odd sizes: where n fills its last block, no thread stands beyond the end
    for arguments in (["--reps", "1"], small_arguments(program)):
        result = run_command([asan / program, *arguments])
        assert result.code == 0 and result.err == "", result


def test_a_failing_call_leaves_no_wrong_access_behind(asan, cpu):
    """Host memory and addresses; the device's memory goes back when the failed program ends."""
    for name, n in fault_points(cpu, "02_saxpy/saxpy", ["1025", "--reps", "2"]):
        result = run_command([asan / "02_saxpy/saxpy", "1025", "--reps", "2"],
                             env={"CUDA_CPU_FAIL": f"{name}:{n}", "CUDA_CPU_LEAKCHECK": 0})
        assert result.code in (1, 2) and "Sanitizer" not in result.err, (name, n, result)


def test_interrupt_leaves_no_file_behind(lesson, tmp_path):
    process = subprocess.Popen([lesson.path("02_saxpy/saxpy"), "--reps", "1000", "--json",
                                tmp_path / "x.json"], stdout=subprocess.DEVNULL)
    try:
        process.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["x.json"])


@pytest.mark.skipif("cuda" not in BACKENDS, reason="no GPU")
@pytest.mark.sanitizer
@pytest.mark.parametrize("check", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize("program", [p for p in FRAMED if not p.startswith("06_")])
def test_compute_sanitizer_finds_nothing(program, check):
    sanitizer = need("compute-sanitizer")
    folder, _ = build_all("cuda")
    result = run_command([sanitizer, "--tool", check, "--error-exitcode", "99", folder / program,
                          *small_arguments(program)], timeout=300)
    if (program, check) == ("04_shared_tiling/missing_sync", "racecheck"):
        assert result.code == 99 and "hazard" in result.out + result.err, result  # its lesson
    else:
        assert result.code in (0, 2), result


def small_arguments(program):
    """Sizes that keep a sanitizer run short, from a line `// sanitizer: --n 1k ...` in the program."""
    found = re.search(r"^// sanitizer: (.*)$", read_source(program), re.M)
    return (found.group(1).split() if found else []) + ["--reps", "1"]
