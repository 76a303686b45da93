"""The small scripts: their answers with fake tools, without tools, and to wrong command lines."""

import os
import shutil
import subprocess

import pytest

from conftest import BACKENDS, ROOT, run_command

SCRIPTS = ["record", "run_lessons", "sanitize", "profile", "watch_gpu", "toolchain"]

SMI = """#!/bin/sh
case "$*" in
    *-L*) echo 'GPU 0: NVIDIA Test (UUID: GPU-1)' ;;
    *query-gpu*) echo '0, NVIDIA Test, 97, 1234, 8192, 1980, 3201, 55, 300.5' ;;
    *query-compute-apps*) echo '4711, 600, /home/someone/saxpy' ;;
esac
"""


@pytest.fixture
def fake(tmp_path):
    """Puts executable texts on a PATH of their own; returns run(script, *args)."""
    folder = tmp_path / "fake"
    folder.mkdir()

    def run(script, *arguments, path=True, **tools):
        for name, text in tools.items():
            (folder / name.replace("_", "-")).write_text(text)
            (folder / name.replace("_", "-")).chmod(0o755)
        env = {"PATH": f"{folder}:{os.environ['PATH']}"} if path else None
        return run_command([ROOT / "scripts" / script, *arguments], env=env, cwd=tmp_path)

    return run


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_and_a_wrong_option(script):
    shown = run_command([ROOT / "scripts" / script, "--help"], cwd="/")
    assert shown.code == 0 and shown.out.startswith(f"{script} - ") and len(shown.out) > 200, shown
    wrong = run_command([ROOT / "scripts" / script, "--no-such"], cwd="/")
    assert wrong.code == 64 and len(wrong.err.strip().splitlines()) == 1, wrong


# ---- watch_gpu

def test_watch_gpu_prints_load_memory_clocks_and_processes(fake):
    result = fake("watch_gpu", "--once", nvidia_smi=SMI)
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0].split()[:3] == ["time", "GPU", "name"]
    for word in ("NVIDIA Test", "97%", "1234 / 8192", "1980", "300.5"):
        assert word in lines[1]
    assert lines[2].split() == ["process", "4711,", "600", "MiB,", "saxpy"]


def test_watch_gpu_repeats_until_it_is_ended(fake, tmp_path):
    fake("watch_gpu", "--once", nvidia_smi=SMI)
    process = subprocess.Popen([ROOT / "scripts/watch_gpu", "--interval", "0.05"], stdout=subprocess.PIPE,
                               env={**os.environ, "PATH": f"{tmp_path}/fake:{os.environ['PATH']}"},
                               universal_newlines=True)
    lines = [process.stdout.readline() for _ in range(6)]
    process.terminate()
    process.wait(timeout=10)
    assert sum("NVIDIA Test" in line for line in lines) >= 2


def test_watch_gpu_without_a_gpu_or_with_a_broken_driver(fake):
    broken = fake("watch_gpu", "--once", nvidia_smi="#!/bin/sh\necho 'Driver/library version mismatch'\nexit 18\n")
    assert broken.code == 2 and "version mismatch" in broken.err
    assert fake("watch_gpu", "--interval", "soon", nvidia_smi=SMI).code == 64
    assert fake("watch_gpu", "--gpu", "x", nvidia_smi=SMI).code == 64


# ---- sanitize

SANITIZER = """#!/bin/sh
case "$*" in
    *memcheck*) echo '========= Invalid __global__ write of size 4 bytes'; exit 99 ;;
esac
exit 0
"""


def test_sanitize_runs_the_four_tools_and_shows_what_they_found(fake, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    result = fake("sanitize", "./program", nvidia_smi=SMI, compute_sanitizer=SANITIZER)
    assert result.code == 1, result
    assert "memcheck   FOUND" in result.out and "Invalid __global__ write" in result.out
    for tool in ("racecheck", "initcheck", "synccheck"):
        assert f"{tool}  " in result.out and "nothing found" in result.out


def test_sanitize_on_the_cpu_finds_the_overrun_and_the_race(tmp_path):
    clean = run_command([ROOT / "scripts/sanitize", "--cpu", "02_saxpy/saxpy", "--n", "1025", "--reps", "1"])
    assert clean.code == 0 and clean.out.count("nothing found") == 2, clean
    (tmp_path / "bad.cu").write_text("""
__global__ void overrun(float *x) { x[threadIdx.x + 1] = 1; }
__global__ void race(int *out) {
    __shared__ int last;
    last = threadIdx.x;
    out[threadIdx.x] = last;
}
int main(void) {
    float *x; int *y;
    cudaMalloc(&x, 32 * sizeof(float)); cudaMalloc(&y, 32 * sizeof(int));
    overrun<<<1, 32>>>(x); race<<<1, 32>>>(y);
    int code = cudaDeviceSynchronize(); cudaFree(x); cudaFree(y);
    return code != 0;
}
""")
    found = run_command([ROOT / "scripts/sanitize", "--cpu", tmp_path / "bad.cu"])
    assert found.code == 1 and found.out.count("FOUND") == 2, found
    assert "bad.cu:2" in found.out and "bad.cu:5" in found.out, found


def test_sanitize_says_what_it_needs(tmp_path):
    missing = run_command([ROOT / "scripts/sanitize", "--cpu", "no/such"], cwd=tmp_path)
    assert missing.code == 64 and "no/such" in missing.err
    (tmp_path / "broken.cu").write_text("this is not C\n")
    broken = run_command([ROOT / "scripts/sanitize", "--cpu", tmp_path / "broken.cu"])
    assert broken.code == 2 and "cannot be compiled" in broken.err


# ---- profile

NCU = """#!/bin/sh
case "$*" in
    *--import*) printf '%s\\n' \\
        '"ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread","sm__throughput.avg.pct_of_peak_sustained_elapsed"' \\
        '"","","ns","register/thread","%"' '"0","saxpy(unsigned long, float)","1,234","16","3.5"' ;;
    *) while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2.ncu-rep"; shift; done ;;
esac
"""


def test_profile_prints_a_table_of_the_kernels(fake, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    result = fake("profile", "--tool", "ncu", "./program", nvidia_smi=SMI, ncu=NCU)
    assert result.code == 0, result
    row = [line for line in result.out.splitlines() if line.startswith("saxpy")][0].split()
    assert row == ["saxpy", "1.2", "-", "-", "3.5", "-", "16.0"]


def test_profile_explains_the_permission_error_and_missing_tools(fake, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    denied = fake("profile", "--tool", "ncu", "./program", nvidia_smi=SMI,
                  ncu="#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1\n")
    assert denied.code == 1 and "NVreg_RestrictProfilingToAdminUsers=0" in denied.err
    no_kernel = fake("profile", "--tool", "ncu", "--kernel", "x", "./program", nvidia_smi=SMI,
                     ncu="#!/bin/sh\necho '==WARNING== No kernels were profiled.'\n")
    assert no_kernel.code == 1 and "no kernel named x" in no_kernel.err
    missing = run_command([ROOT / "scripts/profile", "--tool", "nsys", program], env={"PATH": "/usr/bin:/bin"})
    if not os.path.exists("/usr/local/cuda/bin/nsys") and not os.path.exists("/usr/bin/nsys"):
        assert missing.code == 2 and "install" in missing.err.lower()


# ---- record, run_lessons, slurm

def test_record_writes_a_page_and_passes_failures_on(tmp_path):
    page = tmp_path / "page.md"
    good = run_command([ROOT / "scripts/record", page, "Title", "echo out; echo err >&2", "exit 2"])
    text = page.read_text()
    assert good.code == 0 and "# Title" in text and "out\nerr" in text and "exit code 2" in text
    assert run_command([ROOT / "scripts/record", page, "Title", "false"]).code == 1
    assert run_command([ROOT / "scripts/record", page]).code == 64


def test_run_lessons_knows_the_exit_codes(tmp_path):
    folder = tmp_path / "01_x"
    folder.mkdir()
    for name, code in (("x", 0), ("y", 1), ("z", 2), ("crash", None)):
        body = "kill -SEGV $$" if code is None else f"echo args: $*; exit {code}"
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    result = run_command([ROOT / "scripts/run_lessons", *(folder / n for n in ("x", "y", "z", "crash"))])
    assert result.code == 1 and "1 passed, 2 failed, 1 waived" in result.out
    main = run_command([ROOT / "scripts/run_lessons", "--main", "--args", "--n 5", folder / "x", folder / "y"])
    assert main.code == 0 and "args: --n 5" in main.out and "1 passed, 0 failed, 0 waived" in main.out
    no_namesake = run_command([ROOT / "scripts/run_lessons", "--main", folder / "z", folder / "y"])
    assert no_namesake.code == 0 and "0 passed, 0 failed, 1 waived" in no_namesake.out


def test_the_slurm_job_builds_and_runs(tmp_path):
    """As Slurm runs it: from the submit folder, with a copy of the script elsewhere."""
    job = tmp_path / "slurm_script"
    job.write_bytes((ROOT / "scripts/slurm/lessons.sbatch").read_bytes())
    env = {"SLURM_SUBMIT_DIR": tmp_path, "LESSONS": "02_saxpy"}
    wrong = run_command(["bash", job], env=env)
    assert wrong.code == 64 and "project's folder" in wrong.err
    if "cuda" not in BACKENDS:
        done = run_command(["bash", job], timeout=300, env={
            "SLURM_SUBMIT_DIR": ROOT, "SLURM_JOB_ID": "test", "SLURM_CPUS_PER_TASK": 2,
            "LESSONS": "02_saxpy", "BACKEND": "cpu", "MAKEFLAGS": "", "MAKELEVEL": ""})
        shutil.rmtree(ROOT / "build/slurm-test", ignore_errors=True)
        assert done.code == 0 and " passed, 0 failed" in done.out, done
