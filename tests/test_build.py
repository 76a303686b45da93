"""make: what is built for what, when it is built again, and what it says when it cannot."""

import os
import re
import shutil
import time

import pytest

from conftest import HAS_NVCC, LESSONS, PROGRAMS, ROOT, make, need, needs_nvcc, run_command, toolchain

FAKE_NVCC = """#!/bin/sh
case "$*" in
    *--version*) echo 'Cuda compilation tools, release {version}, V{version}.1' ;;
    *--list-gpu-code*) printf '%s\\n' {codes} ;;
    *) while [ $# -gt 0 ]; do [ "$1" = -o ] && echo fake > "$2"; shift; done ;;
esac
"""
FAKE_SMI = """#!/bin/sh
{body}
"""


def tool(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def fakes(tmp_path):
    """Makes fake tools; returns a function of (nvcc version, codes, gpus) that gives toolchain()."""

    def build(version=None, codes=(), smi=None, smi_code=0, **variables):
        bin_dir = tmp_path / "bin"
        for name in ("bash", "sh", "env", "dirname", "sed", "sort", "xargs", "head", "tr", "uniq", "paste",
                     "timeout", "cat", "printf", "echo", "g++", "ls"):
            if shutil.which(name):
                bin_dir.mkdir(exist_ok=True)
                if not (bin_dir / name).exists():
                    (bin_dir / name).symlink_to(shutil.which(name))
        if version:
            # 13.0 does not list in numeric order; neither does the fake
            tool(bin_dir, "nvcc", FAKE_NVCC.format(version=version, codes=" ".join(f"sm_{c}" for c in codes)))
        if smi is not None:
            lines = "\n".join(f"echo '{line}'" for line in smi)
            tool(bin_dir, "nvidia-smi", FAKE_SMI.format(body=f"{lines}\nexit {smi_code}"))
        return toolchain(PATH=str(bin_dir), TOOLCHAIN_ROOT=str(tmp_path / "root"), CUDA_HOME="",
                         CONDA_PREFIX="", **variables)

    return build


OLD = [50, 52, 60, 61, 70, 75, 80, 86, 87, 89, 90]          # as CUDA 11.8 to 12.7
NEW = [75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121]  # as CUDA 13.0 prints them


def test_nothing_but_a_compiler_chooses_the_cpu(fakes):
    found = fakes()
    assert found["BACKEND"] == "cpu" and not found["ERROR"]
    assert "no nvcc" in found["WHY"]


def test_nvcc_without_gpu_chooses_the_cpu_and_says_how_to_build_for_gpus(fakes):
    found = fakes("13.0", NEW)
    assert found["BACKEND"] == "cpu" and "SMS=" in found["WHY"]


def test_nvcc_and_gpus_choose_their_architectures(fakes):
    found = fakes("13.0", NEW, smi=["12.0, NVIDIA GeForce RTX 5090", "8.6, NVIDIA RTX A2000",
                                    "8.6, NVIDIA RTX A2000"])
    assert (found["BACKEND"], found["SMS"]) == ("cuda", "86 120")
    assert "code=compute_120" in found["GENCODE"] and "code=compute_86" not in found["GENCODE"]


def test_a_gpu_newer_than_the_toolkit_gets_ptx(fakes):
    found = fakes("12.4", OLD, smi=["12.0, NVIDIA GeForce RTX 5060"])
    assert (found["BACKEND"], found["SMS"]) == ("cuda", "90")
    assert "arch=compute_90,code=compute_90" in found["GENCODE"]
    assert "older than the GPU" in found["WHY"] and "translates" in found["WHY"]
    same_major = fakes("12.8", OLD + [100, 120], smi=["12.1, NVIDIA GB10"])
    assert same_major["SMS"] == "120" and "as it is" in same_major["WHY"]


def test_a_gpu_that_the_toolkit_dropped_falls_back_to_the_cpu(fakes):
    found = fakes("13.0", NEW, smi=["6.1, NVIDIA GeForce GTX 1060"])
    assert found["BACKEND"] == "cpu" and "12.9" in found["WHY"] and "GTX 1060" in found["WHY"]


def test_a_broken_nvidia_smi_is_no_gpu_and_is_named(fakes):
    found = fakes("13.0", NEW, smi=["Failed to initialize NVML: Driver/library version mismatch"],
                  smi_code=18)
    assert found["BACKEND"] == "cpu" and "version mismatch" in found["WHY"]


@pytest.mark.parametrize("text, sms, ptx", [
    ("75 80 90 100 120", "75 80 90 100 120", "120"),  # by number: as text 90 would be the highest
    ("120,75", "75 120", "120"),
    ("sm_90 compute_80", "80 90", "90"),
    ("8.6", "86", "86"),
    ("75 80 90a", "75 80 90a", "80"),
    ("120f 90", "90 120f", "90"),
    ("90a", "90a", None),
    ("90 90", "90", "90"),
])
def test_spellings_of_sms(fakes, text, sms, ptx):
    found = fakes("13.0", NEW, SMS=text)
    assert found["SMS"] == sms
    assert re.findall(r"code=compute_(\w+)", found["GENCODE"]) == ([ptx] if ptx else [])
    assert re.findall(r"code=sm_(\w+)", found["GENCODE"]) == sms.split()


def test_all_and_all_major_and_native(fakes):
    assert fakes("13.0", NEW, SMS="all")["SMS"] == "75 80 86 87 88 89 90 100 103 110 120 121"
    assert fakes("13.0", NEW, SMS="all-major")["SMS"] == "75 80 90 100 110 120"
    assert "no GPU" in fakes("13.0", NEW, SMS="native")["ERROR"]
    assert fakes("13.0", NEW, SMS="native", smi=["9.0, NVIDIA H200"])["SMS"] == "90"


@pytest.mark.parametrize("version, codes, text, words", [
    ("13.0", NEW, "61", ["13.0", "61", "dropped", "12.9", "75 80"]),
    ("12.4", OLD, "120", ["12.4", "120", "too old", "12.8"]),
    ("11.8", OLD, "100", ["too old", "12.8"]),
    ("13.0", NEW, "150", ["does not know"]),
    ("13.0", NEW, "81", ["no such architecture"]),
    ("13.0", NEW, "80a", ["suffix a"]),
    ("12.8", OLD + [100, 120], "100f", ["suffix f"]),
    ("13.0", NEW, "fast", ["'fast'", "examples"]),
    ("13.0", NEW, ",", ["empty"]),
])
def test_an_architecture_that_nvcc_lacks_is_one_message(fakes, version, codes, text, words):
    error = fakes(version, codes, SMS=text)["ERROR"]
    for word in words:
        assert word in error


def test_wrong_backend_and_missing_tools(fakes):
    assert "cuda or cpu" in fakes(BACKEND="gpu")["ERROR"]
    assert "nvcc was not found" in fakes(BACKEND="cuda")["ERROR"]
    assert "nvcc was not found" in fakes(SMS="90")["ERROR"]
    assert "no C++ compiler" in fakes(BACKEND="cpu", CXX="no-such-compiler")["ERROR"]
    assert "bin/nvcc" in fakes(CUDA_PATH="/nowhere")["ERROR"]
    assert "CCBIN=" in fakes("13.0", NEW, SMS="90", CXX="no-such-compiler")["ERROR"]
    assert not fakes(BACKEND="cpu")["ERROR"]
    assert "not a program" in fakes(NVCC="no-such-nvcc")["ERROR"]


def test_the_newest_toolkit_of_usr_local_is_found(fakes, tmp_path):
    for version in ("9.2", "12.4", "11.8"):
        tool(tmp_path / "root/usr/local" / f"cuda-{version}" / "bin", "nvcc",
             FAKE_NVCC.format(version=version, codes="sm_90"))
    found = fakes(SMS="90")
    assert "cuda-12.4" in found["NVCC"]


# ---- make itself, on a copy of the project that holds one lesson

@pytest.fixture
def project(tmp_path):
    """A small copy of the project: common, scripts, and lesson 02's saxpy alone."""
    copy = tmp_path / "project"
    copy.mkdir()
    for name in ("Makefile", "common", "scripts"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
    lesson = copy / "02_saxpy"
    lesson.mkdir()
    for name in ("saxpy.cu", "Makefile"):
        shutil.copy(ROOT / "02_saxpy" / name, lesson / name)
    return copy


def builds(result):
    """The programs a make has built, from its short lines."""
    assert result.code == 0, result
    return re.findall(r"^  (?:CPU |CUDA)  (\S+)$", result.out, re.M)


def test_a_second_make_does_nothing_and_changes_rebuild_what_they_affect(project):
    def cpu(*more):
        return builds(make("BACKEND=cpu", *more, cwd=project))

    shutil.copy(project / "02_saxpy/saxpy.cu", project / "02_saxpy/other.cu")
    both = ["02_saxpy/other", "02_saxpy/saxpy"]
    assert sorted(cpu()) == both
    assert cpu() == []
    time.sleep(0.01)
    (project / "02_saxpy/other.cu").touch()
    assert cpu() == ["02_saxpy/other"]
    (project / "common/timer.h").touch()
    assert sorted(cpu()) == both
    assert sorted(cpu("EXTRA_NVCCFLAGS=-DX=1")) == both
    assert cpu("EXTRA_NVCCFLAGS=-DX=1") == []
    assert sorted(cpu("dbg=1")) == both
    assert cpu("dbg=1", "-j4") == []
    assert make("info", "BACKEND=cpu", "EXTRA_NVCCFLAGS=-DX=2", cwd=project).code == 0  # asking changes nothing
    assert cpu("dbg=1") == []


def test_out_of_tree_builds_of_both_backends_stand_side_by_side(project, tmp_path):
    def cpu():
        return builds(make("BACKEND=cpu", f"O={tmp_path}/cpu", cwd=project))

    assert cpu() == [f"{tmp_path}/cpu/02_saxpy/saxpy"]
    if HAS_NVCC:
        gpu = make("SMS=90", f"O={tmp_path}/gpu", cwd=project)
        assert builds(gpu) == [f"{tmp_path}/gpu/02_saxpy/saxpy"]
    assert cpu() == []
    assert sorted(p.name for p in (project / "02_saxpy").iterdir()) == ["Makefile", "saxpy.cu"]


def test_a_lesson_folder_works_alone(project):
    folder = project / "02_saxpy"
    assert builds(make("BACKEND=cpu", cwd=folder)) == ["02_saxpy/saxpy"]
    assert builds(make("BACKEND=cpu", "saxpy", cwd=folder)) == []
    ran = make("BACKEND=cpu", "run", "ARGS=--n 1k", cwd=folder)
    assert ran.code == 0 and "SUM=" in ran.out and "1 passed, 0 failed, 0 waived" in ran.out
    assert builds(make("BACKEND=cpu", f"O={project}/elsewhere", "saxpy", cwd=folder)) == [
        f"{project}/elsewhere/02_saxpy/saxpy"]
    assert make("clean", cwd=folder).code == 0
    assert not (folder / "saxpy").exists()


def test_make_run_counts_and_fails(project):
    (project / "02_saxpy/saxpy.cu").write_text("int main(void) { return 2; }\n")
    (project / "02_saxpy/bad.cu").write_text("int main(void) { return 3; }\n")
    result = make("BACKEND=cpu", "run", cwd=project)
    assert result.code != 0
    assert "0 passed, 1 failed, 1 waived" in result.out
    assert "FAILED  02_saxpy/bad (exit code 3)" in result.out


def test_a_failed_compile_leaves_no_program(project):
    make("BACKEND=cpu", cwd=project)
    (project / "02_saxpy/saxpy.cu").write_text("this is not C\n")
    result = make("BACKEND=cpu", cwd=project)
    assert result.code != 0 and "saxpy.cu" in result.err
    (project / "02_saxpy/saxpy.cu").write_text("int main(void) { return 0; }\n")
    assert builds(make("BACKEND=cpu", cwd=project)) == ["02_saxpy/saxpy"]


def test_an_interrupted_compile_leaves_no_program(project, tmp_path):
    """A compiler that dies after writing half a program."""
    fake = tool(tmp_path / "fake", "nvcc", FAKE_NVCC.format(version="13.0", codes="sm_90").replace(
        'echo fake > "$2"', 'echo half > "$2" && kill -TERM $$'))
    result = make("SMS=90", f"NVCC={fake}", cwd=project)
    assert result.code != 0
    assert not (project / "02_saxpy/saxpy").exists()


def test_a_path_with_a_space_is_one_clear_message(project, tmp_path):
    spaced = tmp_path / "my project"
    project.rename(spaced)
    result = make("BACKEND=cpu", cwd=spaced)
    assert result.code == 2 and "contains a space" in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert "contains a space" in make("O=a b", cwd=ROOT).err


def test_an_old_make_is_one_clear_message(project):
    for folder in (project, project / "02_saxpy"):
        result = make("MAKE_VERSION=3.82", cwd=folder)
        assert result.code == 2 and "this is 3.82" in result.err and len(result.err.splitlines()) == 1, result


@pytest.mark.parametrize("variable, words", [
    ("LESSONS=09_nothing", ["09_nothing", "02_saxpy"]),
    ("dbg=yes", ["dbg='yes'", "1 or 0"]),
    ("V=2", ["V='2'", "1 or 0"]),
    ("O=/proc/nowhere", ["/proc/nowhere", "O=DIR"]),
    ("BACKEND=gpu", ["cuda or cpu"]),
    ("CCBIN=no-such-compiler", ["no-such-compiler", "g++"]),
])
def test_a_wrong_variable_is_one_message(project, variable, words):
    result = make(*(["BACKEND=cpu"] if "BACKEND" not in variable else []), variable, cwd=project)
    assert result.code == 2 and result.out == "", result
    assert result.err.count("***") == 1, result
    for word in words:
        assert word in result.err, result


def test_flags_with_characters_special_to_make_build_once(project):
    flags = "EXTRA_NVCCFLAGS=-DX='\"a(b,c\"'"
    assert builds(make("BACKEND=cpu", flags, cwd=project)) == ["02_saxpy/saxpy"]
    assert builds(make("BACKEND=cpu", flags, cwd=project)) == []


def test_an_unknown_architecture_stops_make_before_it_compiles(project):
    if not HAS_NVCC:
        pytest.skip("nvcc is not installed")
    result = make("SMS=35", cwd=project)
    assert result.code == 2 and len(result.err.strip().splitlines()) == 1
    assert "SMS" in result.err and result.out == ""


def test_help_and_info_and_clean_need_no_toolchain_to_answer():
    assert "BACKEND=cuda|cpu" in make("help").out
    info = make("info")
    assert info.code == 0 and "would build:" in info.out


def test_variables_with_quotes_in_the_reason_do_not_break_make(project, tmp_path):
    fake = tmp_path / "fake"
    tool(fake, "nvidia-smi", "#!/bin/sh\necho \"couldn't talk to the driver (\\$HOME) #1\"\nexit 9\n")
    tool(fake, "nvcc", FAKE_NVCC.format(version="13.0", codes="sm_90"))
    result = make(cwd=project, env={"PATH": f"{fake}:{os.environ['PATH']}"})
    assert result.code == 0 and "couldn't talk to the driver ($HOME) #1" in result.out


@needs_nvcc
def test_what_the_fat_binary_holds(project, tmp_path):
    result = make("SMS=80 90 120", f"O={tmp_path}/o", cwd=project)
    assert result.code == 0, result
    shown = run_command([ROOT / "scripts/inspect", tmp_path / "o/02_saxpy/saxpy", "--json"])
    import json
    entries = json.loads(shown.out)["entries"]
    kinds = {(entry["kind"], entry["arch"]) for entry in entries}
    assert kinds == {("sass", "80"), ("sass", "90"), ("sass", "120"), ("ptx", "120")}


@needs_nvcc
@pytest.mark.slow
def test_every_lesson_compiles_for_gpus_without_a_warning(tmp_path):
    sms = toolchain(BACKEND="cuda", SMS="all-major")["SMS"].split()
    result = make(f"SMS={sms[0]} 90", f"O={tmp_path}/o", "--keep-going")
    assert result.code == 0, result
    assert "warning" not in (result.out + result.err).lower(), result
    assert len(builds(result)) >= len(PROGRAMS)


@needs_nvcc
@pytest.mark.parametrize("lesson_name", LESSONS)
def test_a_bare_nvcc_builds_a_lesson_s_main_program(lesson_name, tmp_path):
    name = lesson_name.split("_", 1)[1]
    source = ROOT / lesson_name / f"{name}.cu"
    if not source.exists():  # a lesson without a program of its own name: its first one
        source = sorted((ROOT / lesson_name).glob("*.cu"))[0]
    nvcc = toolchain(BACKEND="cuda")["NVCC"]
    result = run_command([nvcc, source, "-o", tmp_path / name])
    assert result.code == 0 and not result.err, result


def test_shell_scripts_are_clean():
    shellcheck = need("shellcheck")
    scripts = [path for path in [*(ROOT / "scripts").rglob("*"), ROOT / ".ci/run"]
               if path.is_file() and path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))]
    assert scripts
    result = run_command([shellcheck, *scripts])
    assert result.code == 0, result
