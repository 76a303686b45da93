"""What every test shares: the lessons, built once for each backend that this machine can run.

A test that takes the fixture `lesson` runs once on each backend:

    def test_sum(lesson):
        result = lesson.run("02_saxpy/saxpy", 5)      # .code .out .err
        data = lesson.json("02_saxpy/saxpy", 5)       # the parsed --json, exit code 0 asserted
        if lesson.backend == "cuda": ...

TEST_BACKENDS="cpu cuda" names the backends by hand; BUILD_DIR keeps the builds elsewhere.
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD_DIR = Path(os.environ.get("BUILD_DIR", ROOT / "build" / "tests"))
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background: programs would not hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)
TIMEOUT = 120  # seconds; nothing in the suite may take that long, so a hang is a failure


class Result:
    """How a command ended: code, out, err; negative codes are signals."""

    def __init__(self, code, out, err, command):
        self.code, self.out, self.err, self.command = code, out, err, command

    def __repr__(self):
        return f"{self.command}\nexit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run_command(command, env=None, cwd=ROOT, timeout=TIMEOUT, stdin=None):
    """Runs a command (a list) to its end and returns a Result; env is added to the environment."""
    command = [str(part) for part in command]
    done = subprocess.run(
        command, cwd=str(cwd), env={**os.environ, **{k: str(v) for k, v in (env or {}).items()}},
        stdin=subprocess.DEVNULL if stdin is None else None, input=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, universal_newlines=True,
        errors="replace")
    return Result(done.returncode, done.stdout, done.stderr, " ".join(command))


def toolchain(**variables):
    """What scripts/toolchain says: a dict without the TC_ prefix."""
    env = {name: "" for name in ("NVCC", "CUDA_PATH", "BACKEND", "SMS", "CXX")}
    env.update(variables)
    lines = run_command([ROOT / "scripts" / "toolchain"], env=env).out.splitlines()
    return {key[3:]: value for key, _, value in (line.partition(" := ") for line in lines)}


def available_backends():
    if os.environ.get("TEST_BACKENDS"):
        return os.environ["TEST_BACKENDS"].split()
    return ["cpu"] + (["cuda"] if toolchain().get("BACKEND") == "cuda" else [])


BACKENDS = available_backends()
HAS_NVCC = bool(toolchain(BACKEND="cuda").get("GENCODE"))
LESSONS = sorted({path.parent.name for path in ROOT.glob("[0-9][0-9]_*/*.cu")
                  if not path.parent.name.startswith("07_")})
PROGRAMS = sorted(f"{path.parent.name}/{path.stem}" for lesson in LESSONS
                  for path in (ROOT / lesson).glob("*.cu"))


def make(*arguments, env=None, cwd=ROOT, timeout=1800):
    """make with a clean environment: variables of an outer make do not leak in."""
    clean = {name: "" for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "SMS", "BACKEND", "NVCC",
                                   "CUDA_PATH", "CCBIN", "EXTRA_NVCCFLAGS", "ARGS", "O", "LESSONS",
                                   "dbg", "V")}
    return run_command(["make", *arguments], env={**clean, **(env or {})}, cwd=cwd, timeout=timeout)


_built = {}


def build_all(backend):
    """Builds every lesson for a backend, once a session; returns its folder."""
    if backend not in _built:
        folder = BUILD_DIR / backend
        result = make(f"BACKEND={backend}", f"O={folder}", "--keep-going",
                      *(["SMS=native"] if backend == "cuda" else []))
        _built[backend] = (folder, result)
    return _built[backend]


class Lesson:
    """The programs of the suite on one backend."""

    def __init__(self, backend):
        self.backend = backend
        self.folder, self.build_result = build_all(backend)

    def path(self, program):
        binary = self.folder / program
        assert binary.is_file(), f"{program} was not built for {self.backend}\n{self.build_result}"
        return binary

    def run(self, program, *arguments, **kwargs):
        return run_command([self.path(program), *arguments], **kwargs)

    def json(self, program, *arguments, code=0, **kwargs):
        result = self.run(program, *arguments, "--json", "-", **kwargs)
        assert result.code == code, result
        return json.loads(result.out)


@pytest.fixture(params=BACKENDS)
def lesson(request):
    return Lesson(request.param)


@pytest.fixture
def cpu():
    """The lessons on the CPU backend, whatever else is here: for fault injection and the like."""
    return Lesson("cpu")


def need(tool):
    """Skips the test, saying why, when a tool is missing."""
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    return shutil.which(tool)


needs_nvcc = pytest.mark.skipif(not HAS_NVCC, reason="nvcc is not installed")
