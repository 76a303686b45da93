"""Lesson 06: every case is shown, or waived with a reason; a twin that does not do what is expected is
noticed; and nothing is left behind, however the runner ends."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BACKENDS, BUILD_DIR, ROOT, Lesson, make, needs_nvcc, run_command

FOLDER = ROOT / "06_error_cases"
TABLE = (FOLDER / "cases.h").read_text()
RUNNER = "06_error_cases/error_cases"

# name -> (topic, program), from the table itself
CASES = {name: (topic, program) for name, topic, program in
         re.findall(r'^    \{"(\w+)", "(\w+)", "(\w+)"', TABLE, re.M)}
LINK_CASES = re.findall(r'LINK_CASE\("(\w+)"', TABLE)
CASES.update({name: ("build_and_link", "link_errors") for name in LINK_CASES})
TWINS = [name for name in CASES if name not in LINK_CASES]

# What an H200 gives; other GPUs and toolkits may give another number that the table accepts.
ERRORS = {
    "other_major": 209, "newer_ptx": 209, "arch_specific": 209, "ptx_version": 222, "jit_disabled": 223,
    "jit_forced": 209, "when_it_shows": 209, "too_large": 2, "leak": 2, "fragmentation": 2,
    "int_overflow": 2, "unread_error": 2, "data_larger_than_device": 2, "smaller_type": 2,
    "block_too_large": 1, "empty_grid": 1, "shared_opt_in": 1, "too_many_registers": 701, "wrong_copy": 1,
    "null_pointer": 700, "host_pointer": 700, "freed_pointer": 700, "misaligned": 716,
    "device_assert": 710, "trap": 719, "stack_overflow": 700, "shared_overrun": 715, "sticky": 46,
    "fork_after_cuda": 3,
}
# What the CPU backend has to show; all else must be waived there.
ON_CPU = {
    "too_large", "leak", "int_overflow", "unread_error", "data_larger_than_device", "smaller_type",
    "block_too_large", "empty_grid", "shared_opt_in", "unchecked_launch", "wrong_copy", "null_pointer",
    "host_pointer", "freed_pointer", "device_assert", "trap", "sticky", "bounds_check", "index_overflow",
    "missing_syncthreads", "divergent_barrier", "uninitialized", "float_compare", "nan_check",
    "missing_syncwarp", "fragmentation", "device_malloc", "printf_without_sync", "fork_after_cuda",
}


@pytest.fixture(scope="module", params=BACKENDS)
def everything(request, tmp_path_factory):
    """One run of --all for each backend: the lesson, the result, the JSON, the folder for temporary files."""
    lesson = Lesson(request.param)
    temporary, home = tmp_path_factory.mktemp("tmp"), tmp_path_factory.mktemp("home")
    report = tmp_path_factory.mktemp("json") / "all.json"
    start = time.monotonic()
    result = lesson.run(RUNNER, "--all", "--json", report, env={"TMPDIR": temporary, "HOME": home},
                        timeout=300)
    seconds = time.monotonic() - start
    assert result.code == 0, result
    return lesson, result, json.loads(report.read_text()), temporary, home, seconds


def block_of(text, case):
    """What the runner printed about one case."""
    match = re.search(r"^== %s \(.*?(?=^== |^\d+ shown)" % case, text, re.M | re.S)
    assert match, case
    return match.group(0)


@pytest.mark.parametrize("case", CASES)
def test_case(everything, case):
    lesson, result, report, *_ = everything
    outcome, block = report["values"][case], block_of(result.out, case)
    if outcome.startswith("waived: "):
        reason = re.search(r"^waived: %s: (.{12,})$" % case, block, re.M)
        assert reason, block
        assert "ok: " not in block
        allowed = (set(LINK_CASES) if lesson.backend == "cpu" else set()) | {
            "higher_minor", "framework", "host_pointer", "divergent_barrier", "newer_ptx", "too_large"}
        assert case in allowed or (lesson.backend == "cpu" and case not in ON_CPU), block
        return
    assert outcome == "shown"
    assert "ok: %s behaves as expected" % case in block
    assert "expected" in block
    if case in LINK_CASES:
        assert "got it" in block and "fixed:" in block and "why:" in block
        return
    for word in ("expected:  ", "broken:    ", "as expected", "why:       (", "fix:       ", "fixed:     ",
                 "passes"):
        assert word in block, word
    if case in ERRORS:
        assert report["values"][case + ".error"] == ERRORS[case]
        assert report["values"][case + ".call"]


def test_all_is_quick_and_counts_right(everything):
    lesson, result, report, *_, seconds = everything
    shown, failed, waived = map(int, re.search(r"^(\d+) shown, (\d+) failed, (\d+) waived", result.out,
                                               re.M).groups())
    assert failed == 0 and shown + waived == len(CASES)
    assert waived == sum(str(v).startswith("waived: ") for v in report["values"].values())
    assert report["status"] == "ok" and report["lesson"] == "06_error_cases"
    if lesson.backend == "cuda":
        assert seconds < 60


def test_all_leaves_nothing_behind(everything):
    lesson, _, _, temporary, home, _ = everything
    assert os.listdir(temporary) == [] and os.listdir(home) == []
    assert processes_below(lesson.folder) == []


def processes_below(folder):
    """Command lines of running processes that are programs of this build."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                program = os.readlink("/proc/%s/exe" % entry)
            except OSError:
                continue
            if program.startswith(str(folder) + "/06_error_cases/"):
                found.append(program)
    return found


@pytest.mark.parametrize("case", [c for c in TWINS if c in ON_CPU])
@pytest.mark.parametrize("twin", ["broken", "fixed"])
def test_program_alone(lesson, case, twin):
    program = "06_error_cases/" + CASES[case][1]
    if lesson.backend == "cuda" and case not in ("null_pointer", "leak", "nan_check"):
        pytest.skip("on a GPU test_case covers it: each start there costs half a second")
    result = lesson.run(program, case, *(["--fixed"] if twin == "fixed" else []))
    assert result.code == 0, result
    assert ("as expected" in result.out) == (twin == "broken")
    assert "NOT as expected" not in result.out


@pytest.mark.parametrize("case", [c for c in TWINS if CASES[c][0] == "slow_kernel" and c != "debug_build"])
def test_slow_twins_are_right(cpu, case):
    program = "06_error_cases/" + CASES[case][1]
    for arguments, code in (([case], 2), ([case, "--fixed"], 0)):
        result = cpu.run(program, *arguments, "--reps", 1)
        assert result.code == code, result
        assert "check failed" not in result.err and "FAILED" not in result.out


def test_programs_list_their_cases(lesson):
    listed = []
    for program in sorted({program for _, program in CASES.values()} - {"link_errors"}):
        result = lesson.run("06_error_cases/" + program)
        assert result.code == 0, result
        names = re.findall(r"^  (\w+)  +\S", result.out, re.M)
        assert all(CASES[name][1] == program for name in names)
        listed += names
    assert sorted(listed) == sorted(TWINS)


def test_runner_lists_all_cases(lesson):
    result = lesson.run(RUNNER)
    assert result.code == 0
    assert re.findall(r"^  (\w+)  +\S", result.out, re.M) == list(CASES)


# ---- a twin that does not do what is expected is noticed

@pytest.mark.parametrize("how, words", [
    ("pass", "the broken twin did not fail as expected"),
    ("crash", "crashed: signal 6"),
    ("hang", "ended by the time limit"),
])
def test_runner_notices(lesson, how, words):
    start = time.monotonic()
    result = lesson.run(RUNNER, "block_too_large", "--limit", "1.5", env={"ERROR_CASES_SABOTAGE": how})
    assert result.code == 1, result
    assert words in result.out + result.err
    assert "0 shown, 1 failed, 0 waived" in result.out
    assert time.monotonic() - start < 20
    assert processes_below(lesson.folder) == []


def test_wrong_number_is_noticed(cpu):
    """The runner's out-of-memory case on a device that never runs out: another error, or none."""
    result = cpu.run(RUNNER, "unread_error", env={"CUDA_CPU_FAIL": "cudaMalloc:1"})
    assert result.code == 1, result


# ---- the command line

@pytest.mark.parametrize("arguments", [
    ["no_such_case"], ["--explain", "no_such_case"], ["--topic", "no_such_topic"], ["--all", "leak"],
    ["--all", "--topic", "slow_kernel"], ["--limit", "0"], ["--limit", "soon"], ["--surprise"], [""],
    ["leak", "too_large"], ["leak", "--device", "999"],
])
def test_wrong_usage(lesson, arguments):
    result = lesson.run(RUNNER, *arguments)
    assert result.code == 64, result
    assert len(result.err.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["no_such_case"], ["null_pointer", "--fixed", "--surprise"], ["leak"]])
def test_wrong_usage_of_a_program(lesson, arguments):
    assert lesson.run("06_error_cases/launch_failure", *arguments).code == 64


def test_topic(lesson):
    result = lesson.run(RUNNER, "--topic", "launch_failure")
    assert result.code == 0, result
    shown = re.findall(r"^== (\w+) \((\w+)\)", result.out, re.M)
    assert {topic for _, topic in shown} == {"launch_failure"}
    assert [name for name, _ in shown] == [n for n in CASES if CASES[n][0] == "launch_failure"]


def test_waived_case_alone_is_waived(cpu):
    result = cpu.run(RUNNER, "other_major")
    assert result.code == 2 and "waived: other_major: " in result.out
    data = json.loads(cpu.run(RUNNER, "other_major", "--json", "-").out)
    assert data["status"] == "waived"


# ---- --explain shows the source as it is

@pytest.mark.parametrize("case", CASES)
def test_explain(lesson, case):
    result = lesson.run(RUNNER, "--explain", case)
    assert result.code == 0, result
    path, first = re.search(r"^(\S+?):(\d+)$", result.out, re.M).groups()
    source = (ROOT / path).read_text().splitlines()
    numbered = re.findall(r"^ *(\d+)  (.*)$", result.out, re.M)
    assert int(numbered[0][0]) == int(first) and len(numbered) > 4
    for number, line in numbered:
        assert source[int(number) - 1] == line
    text = "\n".join(line for _, line in numbered)
    if case in LINK_CASES:
        assert case + "() {" in text and "wrong " in text and "right " in text
    else:
        assert case + "_broken(void)" in text and case + "_fixed(void)" in text
        assert "why:       (" in result.out and "fix: " in result.out


# ---- nothing is left behind, however it ends

def start_hanging(lesson, tmp_path):
    process = subprocess.Popen(
        [str(lesson.path(RUNNER)), "--topic", "launch_failure", "--limit", "100"],
        env={**os.environ, "ERROR_CASES_SABOTAGE": "hang", "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    for _ in range(400):
        if any(p.endswith("bad_launch") for p in processes_below(lesson.folder)):
            return process
        time.sleep(0.05)
    process.kill()
    pytest.fail("no child was started")


def test_environment_of_the_user_does_not_change_the_cases(lesson):
    result = lesson.run(RUNNER, "null_pointer", env={"CUDA_LAUNCH_BLOCKING": "1"})
    assert result.code == 0, result
    assert re.search(r"cudaGetLastError\(\) +-> 0 cudaSuccess", result.out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_stopped_runner_leaves_nothing(lesson, tmp_path, number):
    process = start_hanging(lesson, tmp_path)
    process.send_signal(number)
    assert process.wait(timeout=20) == -number
    for _ in range(200):
        if not processes_below(lesson.folder):
            break
        time.sleep(0.05)
    assert processes_below(lesson.folder) == []
    if number != signal.SIGKILL:  # nobody can clean up after that
        assert os.listdir(tmp_path) == []


def test_closed_pipe_leaves_nothing(cpu, tmp_path):
    command = "'%s' --topic launch_failure | head -n 1" % cpu.path(RUNNER)
    result = run_command(["sh", "-c", command], env={"TMPDIR": tmp_path})
    assert len(result.out.splitlines()) == 1
    for _ in range(100):
        if not os.listdir(tmp_path):
            break
        time.sleep(0.05)
    assert os.listdir(tmp_path) == [] and processes_below(cpu.folder) == []


def test_no_place_for_temporary_files(cpu):
    result = cpu.run(RUNNER, "leak", env={"TMPDIR": "/no/such/folder"})
    assert result.code == 1 and "TMPDIR" in result.err


# ---- build and link

def test_link_errors_make_list():
    result = make("-s", "list", cwd=FOLDER / "link_errors")
    assert result.out.split() == LINK_CASES


def test_link_errors_without_nvcc():
    for case in LINK_CASES:
        result = run_command([FOLDER / "link_errors" / "show", case], env={"NVCC": "/no/such/nvcc"})
        assert result.code == 2 and result.out.startswith("waived: %s needs nvcc" % case), result
    assert run_command([FOLDER / "link_errors" / "show", "--all"], env={"NVCC": "/no/such/nvcc"}).code == 2
    for arguments in (["no_such_case"], [], ["a", "b"]):
        assert run_command([FOLDER / "link_errors" / "show", *arguments]).code == 64


def test_link_errors_notice_a_build_that_works(tmp_path):
    """A fake nvcc that builds anything: no case may be called shown."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudart.so").write_text("")
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\necho '#$ LIBRARIES=  \"-L%s/lib\"'\n" % tmp_path)
    fake.chmod(0o755)
    result = run_command([FOLDER / "link_errors" / "show", "device_linking"], env={"NVCC": fake})
    assert result.code == 1 and "got: no error" in result.out, result


# ---- what the images hold: the rules of images.h against scripts/inspect, which reads the files

@needs_nvcc
def test_image_rules_agree_with_inspect():
    folder = BUILD_DIR / "images"
    result = make("BACKEND=cuda", "SMS=90", "LESSONS=06_error_cases", f"O={folder}", "images-06",
                  f"{folder}/06_error_cases/image_matrix")
    assert result.code == 0, result
    program = folder / "06_error_cases" / "image_matrix"
    result = run_command([program, "image_rules"])
    assert result.code == 0, result
    gpus = re.search(r"^ +GPU: +(.*)$", result.out, re.M).group(1).split()
    rows = re.findall(r"^  ((?:sass|ptx)_\w+) +(.*)$", result.out, re.M)
    assert len(rows) >= 5
    for name, cells in rows:
        arguments = [part for gpu in gpus for part in ("--gpu", gpu)]
        inspected = run_command([ROOT / "scripts" / "inspect", program.parent / "images" / name, "--json",
                                 *arguments])
        verdicts = json.loads(inspected.out)["verdicts"]
        seen = ["209" if v["error"] == 209 else "JIT" if name.startswith("ptx") else "runs" for v in verdicts]
        assert [v["gpu"] for v in verdicts] == gpus and seen == cells.split(), name
    assert run_command([program, "image_rules", "--fixed"]).code == 0


# ---- the READMEs

@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_readme_leads_from_each_message_to_its_case(readme):
    text = (FOLDER / readme).read_text()
    missing = [case for case in CASES if "`%s`" % case not in text]
    assert not missing, missing
    for case in re.findall(r"`error_cases (\w+)`", text):
        assert case in CASES, case
