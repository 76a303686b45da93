"""scripts/inspect: what nvcc was asked for must be what the script reads, and its verdicts the
rules of compatibility."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INSPECT = ROOT / "scripts" / "inspect"
DATA = Path(__file__).resolve().parent / "data"
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import fatbin  # noqa: E402
import tables  # noqa: E402
import verdict  # noqa: E402

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(not NVCC, reason="needs nvcc")


def inspect(*arguments, env=None):
    done = subprocess.run(
        [sys.executable, str(INSPECT), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
        env={**os.environ, **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr


def as_json(*arguments, env=None):
    code, out, err = inspect(*arguments, "--json", env=env)
    return code, json.loads(out)


def nvcc(
    folder, *flags, source=DATA / "inspect_kernels.cu", output="out.fatbin", form=("-fatbin",)
):
    target = folder / output
    done = subprocess.run(
        [NVCC, *form, *flags, str(source), "-o", str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=120,
    )
    if done.returncode:
        pytest.skip("this nvcc cannot: " + done.stdout.strip().splitlines()[0])
    return target


def gencode(*pairs):
    return [
        flag
        for arch, code in pairs
        for flag in ("-gencode", "arch=compute_%s,code=%s" % (arch, code))
    ]


def images(data):
    return sorted((e["kind"], e["arch"]) for e in data["entries"])


# --- what is inside


@needs_nvcc
@pytest.mark.parametrize(
    "flags, expected",
    [
        (gencode(("80", "sm_80")), [("sass", "80")]),
        (
            gencode(("80", "sm_80"), ("90", "[sm_90,compute_90]")),
            [("ptx", "90"), ("sass", "80"), ("sass", "90")],
        ),
        (["-arch=compute_90"], [("ptx", "90")]),
        (["-arch=sm_90"], [("ptx", "90"), ("sass", "90")]),
        (["-arch=sm_90a"], [("ptx", "90"), ("ptx", "90a"), ("sass", "90a")]),
        (gencode(("90a", "sm_90a")), [("sass", "90a")]),
        (gencode(("100f", "sm_100f"), ("103a", "sm_103a")), [("sass", "100f"), ("sass", "103a")]),
        (
            gencode(("100f", "compute_100f"), ("120a", "compute_120a")),
            [("ptx", "100f"), ("ptx", "120a")],
        ),
        (gencode(("80", "sm_86"), ("75", "sm_75")), [("sass", "75"), ("sass", "86")]),
    ],
)
def test_what_was_asked_for(tmp_path, flags, expected):
    code, data = as_json(nvcc(tmp_path, *flags), "--gpu", "9.0")
    assert images(data) == expected
    assert all(
        e["kernels"] and (e["ptx_version"] is None) == (e["kind"] == "sass")
        for e in data["entries"]
    )
    version = re.search(
        r"release (\d+\.\d+)",
        subprocess.run([NVCC, "--version"], stdout=subprocess.PIPE, universal_newlines=True).stdout,
    )
    assert data["toolkit"] == version.group(1)


@needs_nvcc
def test_registers_are_those_of_ptxas(tmp_path):
    """Registers, shared memory and stack of each kernel against ptxas -v, on every architecture of
    this nvcc."""
    listed = subprocess.run(
        [NVCC, "--list-gpu-code"], stdout=subprocess.PIPE, universal_newlines=True
    ).stdout.split()
    flags = [
        flag
        for sm in listed
        for flag in ("-gencode", "arch=%s,code=%s" % (sm.replace("sm_", "compute_"), sm))
    ]
    done = subprocess.run(
        [
            NVCC,
            "-fatbin",
            "-Xptxas",
            "-v",
            *flags,
            str(DATA / "inspect_kernels.cu"),
            "-o",
            str(tmp_path / "all.fatbin"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=300,
        check=True,
    )
    told, key = {}, None
    for line in done.stdout.splitlines():
        match = re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line)
        if match:
            key = match.group(2), match.group(1)
        match = re.search(r"(\d+) bytes stack frame", line)
        if match and key:
            told[key] = {"local_bytes": int(match.group(1))}
        match = re.search(r"Used (\d+) registers", line)
        if match:
            shared = re.search(r"(\d+) bytes smem", line)
            told[key].update(
                registers=int(match.group(1)), shared_bytes=int(shared.group(1)) if shared else 0
            )
    _, data = as_json(tmp_path / "all.fatbin", "--gpu", "9.0")
    read = {
        (e["arch"], k["symbol"]): {
            name: k[name] for name in ("local_bytes", "registers", "shared_bytes")
        }
        for e in data["entries"]
        for k in e["kernels"]
    }
    assert read == told and len(told) == 4 * len(listed)
    assert {k["shared_bytes"] for k in read.values()} == {0, 4096} and any(
        k["local_bytes"] >= 400 for k in read.values()
    )


@needs_nvcc
@pytest.mark.parametrize("mode", ["default", "size", "speed", "balance", "none"])
def test_compression_changes_nothing(tmp_path, mode):
    flags = gencode(("80", "sm_80"), ("90", "[sm_90,compute_90]"))
    plain = as_json(nvcc(tmp_path, *flags, "-no-compress"), "--gpu", "9.0")[1]
    packed = as_json(
        nvcc(tmp_path, *flags, "-rdc=true", "-compress-mode=" + mode, output="packed.fatbin"),
        "--gpu",
        "9.0",
    )[1]
    strip = lambda data: [
        (e["kind"], e["arch"], [k["symbol"] for k in e["kernels"]]) for e in data["entries"]
    ]
    if any(e["unread"] for e in packed["entries"]):
        assert "libzstd" in packed["entries"][0]["unread"]
        return
    assert sorted(map(str, strip(plain))) == sorted(map(str, strip(packed)))
    assert all(
        k["registers"] for e in packed["entries"] if e["kind"] == "sass" for k in e["kernels"]
    )


@pytest.mark.parametrize(
    "name, archs", [("lz4.fatbin", ["80", "86", "86"]), ("zstd.fatbin", ["75", "75"])]
)
def test_recorded_files(name, archs):
    """Files of CUDA 13.0, so that the reader is tested where there is no nvcc."""
    code, data = as_json(DATA / name, "--gpu", "8.6")
    assert [e["arch"] for e in data["entries"]] == archs and data["entries"][-1]["kind"] == "ptx"
    assert data["entries"][-1]["ptx_version"] == "9.0" and data["type"] == "fatbin file"
    if not data["entries"][0]["unread"]:
        kernels = {k["symbol"]: k for k in data["entries"][0]["kernels"]}
        assert (
            kernels["_Z7reversePf"]["shared_bytes"] == 1024
            and kernels["_Z3addiPKfPf"]["registers"] == 10
        )
    if shutil.which("c++filt") and not data["entries"][0]["unread"]:
        assert kernels["_Z7reversePf"]["name"] == "reverse(float*)"


@pytest.mark.parametrize("name, arch", [("cuda118_sm80", "80"), ("cuda124_sm90a", "90a")])
def test_cubins_of_older_toolkits(name, arch):
    """Registers and shared memory as ptxas -v of CUDA 11.8 and 12.4 printed them."""
    code, data = as_json(DATA / (name + ".cubin"), "--gpu", "%s.%s" % (arch[0], arch[1]))
    kernels = {k["symbol"]: k for k in data["entries"][0]["kernels"]}
    assert code == 0 and data["entries"][0]["arch"] == arch
    add, reverse = kernels["_Z3addiPKfPf"], kernels["_Z7reversePf"]
    assert (add["registers"], add["shared_bytes"], add["local_bytes"]) == (10, 0, 0)
    assert (reverse["registers"], reverse["shared_bytes"], reverse["local_bytes"]) == (10, 1024, 0)


@needs_nvcc
def test_program_object_library_archive_cubin_ptx(tmp_path):
    main = tmp_path / "main.cu"
    main.write_text(
        '#include "%s"\nint main() { plain<<<1, 1>>>(0, 0, 0, 0); return 0; }\n'
        % (DATA / "inspect_kernels.cu")
    )
    flags = gencode(("90", "[sm_90,compute_90]"))
    program = nvcc(tmp_path, *flags, source=main, output="program", form=())
    obj = nvcc(tmp_path, *flags, source=main, output="k.o", form=("-c",))
    library = nvcc(
        tmp_path, *flags, "-Xcompiler", "-fPIC", source=main, output="libk.so", form=("-shared",)
    )
    cubin = nvcc(tmp_path, "-arch=sm_90a", output="k.cubin", form=("-cubin",))
    ptx = nvcc(tmp_path, "-arch=compute_90", output="k.ptx", form=("-ptx",))
    subprocess.run(["ar", "rc", str(tmp_path / "libk.a"), str(obj)], check=True)
    both = [("ptx", "90"), ("sass", "90")]
    for path, kind, expected in (
        (program, "executable", both),
        (obj, "object", both),
        (library, "shared library", both),
        (tmp_path / "libk.a", "archive", both),
        (cubin, "cubin", [("sass", "90a")]),
        (ptx, "PTX text", [("ptx", "90")]),
    ):
        code, data = as_json(path, "--gpu", "9.0")
        assert (code, data["type"], images(data)) == (0, kind, expected), path
        assert data["verdicts"][0]["result"] == ("jit" if path == ptx else "runs")
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
    assert images(as_json(stripped, "--gpu", "9.0")[1]) == both


@needs_nvcc
def test_relocatable_program(tmp_path):
    """With -rdc=true the linked machine code and the objects' PTX lie in different sections."""
    (tmp_path / "a.cu").write_text(
        "__device__ int f(int);\n__global__ void k(int *p) { *p = f(*p); }\nint main() { k<<<1,"
        " 1>>>(0); }\n"
    )
    (tmp_path / "b.cu").write_text("__device__ int f(int i) { return i + 1; }\n")
    target = tmp_path / "rdc"
    subprocess.run(
        [
            NVCC,
            "-rdc=true",
            *gencode(("80", "sm_80"), ("90", "[sm_90,compute_90]")),
            str(tmp_path / "a.cu"),
            str(tmp_path / "b.cu"),
            "-o",
            str(target),
        ],
        check=True,
        timeout=120,
    )
    results = {
        gpu: as_json(target, "--gpu", gpu)[1]["verdicts"][0]["result"]
        for gpu in ("8.6", "9.0", "12.0", "7.5")
    }
    assert results == {"8.6": "runs", "9.0": "runs", "12.0": "jit", "7.5": "fails"}


@needs_nvcc
def test_one_file_of_several_lacks_the_gpu(tmp_path):
    """A program is as good as its worst translation unit."""
    (tmp_path / "a.cu").write_text(
        "__global__ void good() {}\nvoid other();\nint main() { good<<<1, 1>>>(); other(); }\n"
    )
    (tmp_path / "b.cu").write_text("__global__ void bad() {}\nvoid other() { bad<<<1, 1>>>(); }\n")
    objects = [
        nvcc(
            tmp_path,
            *gencode(*pairs),
            source=tmp_path / (name + ".cu"),
            output=name + ".o",
            form=("-c",)
        )
        for name, pairs in (("a", [("80", "sm_80"), ("90", "sm_90")]), ("b", [("80", "sm_80")]))
    ]
    subprocess.run(
        [NVCC, *map(str, objects), "-arch=sm_90", "-o", str(tmp_path / "mixed")],
        check=True,
        timeout=120,
    )
    code, data = as_json(tmp_path / "mixed", "--gpu", "9.0")
    assert (
        code == 1
        and data["verdicts"][0]["error"] == 209
        and "1 of its 2 parts" in data["verdicts"][0]["reason"]
    )
    assert as_json(tmp_path / "mixed", "--gpu", "8.0")[0] == 0


def many(kind, *units):
    made = [made_of(text)["units"][0] for text in units]
    return {"type": kind, "units": made, "needed": [], "cpu_backend": False}


def test_a_library_may_hold_parts_for_some_gpus_only():
    units = ["sass90 sass80"] * 5 + ["sass100"]
    found = verdict.judge(many("shared library", *units), (9, 0))
    assert found["result"] == "runs" and "1 of its 6 parts" in found["reason"]
    assert verdict.judge(many("executable", *units), (9, 0))["error"] == 209
    assert (
        verdict.judge(many("shared library", *["sass80"] * 2, *["sass90"] * 2), (9, 0))["error"]
        == 209
    )


def test_magic_number_by_chance(tmp_path):
    """A program that holds the number itself, such as nvcc's fatbinary, has no GPU code."""
    source = tmp_path / "main.c"
    source.write_text(
        "unsigned n[] = {0xBA55ED50, 0x00100001, 0xFFFF, 0, 0xBA55ED50, 0x00100001, 16, 0};\n"
        "int main(void) { return n[0] == 1; }\n"
    )
    subprocess.run(["gcc", str(source), "-o", str(tmp_path / "main")], check=True)
    code, out, err = inspect(tmp_path / "main")
    assert code == 1 and "holds no GPU code" in err


@needs_nvcc
def test_code_in_plain_data(tmp_path):
    """Some libraries keep their fat binaries as data and load them themselves."""
    shutil.copy(str(DATA / "lz4.fatbin"), str(tmp_path / "code.bin"))
    source = tmp_path / "main.c"
    source.write_text(
        '__asm__(".section .rodata\\n.balign 8\\n.incbin \\"%s\\"\\n.text");\n'
        "int main(void) { return 0; }\n" % (tmp_path / "code.bin")
    )
    subprocess.run(["gcc", str(source), "-o", str(tmp_path / "main")], check=True)
    code, data = as_json(tmp_path / "main", "--gpu", "8.6")
    assert code == 0 and images(data) == [("ptx", "86"), ("sass", "80"), ("sass", "86")]


# --- verdicts: (images, GPU, driver's CUDA or None, environment) -> result, error, driver

RULES = [
    ("sass80", "8.0", None, {}, "runs", None),
    ("sass80", "8.6", None, {}, "runs", None),
    ("sass86", "8.0", None, {}, "fails", 209),
    ("sass80", "9.0", None, {}, "fails", 209),
    ("sass90", "12.0", None, {}, "fails", 209),
    ("sass75", "7.0", None, {}, "fails", 209),
    ("ptx80", "8.0", None, {}, "jit", None),
    ("ptx80", "12.0", None, {}, "jit", None),
    ("ptx90", "8.6", None, {}, "fails", 209),
    ("sass90a", "9.0", None, {}, "runs", None),
    ("sass90a", "10.0", None, {}, "fails", 209),
    ("ptx90a", "10.0", None, {}, "fails", 209),
    ("ptx90a", "9.0", None, {}, "jit", None),
    ("sass100a", "10.3", None, {}, "fails", 209),
    ("sass100f", "10.3", None, {}, "runs", None),
    ("sass103f", "10.0", None, {}, "fails", 209),
    ("sass100f", "12.0", None, {}, "fails", 209),
    ("ptx100f", "10.3", None, {}, "jit", None),
    ("ptx100f", "11.0", None, {}, "fails", 209),
    ("sass120", "12.1", None, {}, "runs", None),
    ("sass80 ptx80", "9.0", None, {}, "jit", None),
    ("sass80 ptx90", "9.0", None, {}, "jit", None),
    ("sass80 ptx90", "8.6", None, {}, "runs", None),
    ("ptx80@7.4", "8.6", (11, 2), {}, "fails", 222),
    ("ptx80@7.4", "8.6", (11, 4), {}, "jit", None),
    ("ptx80@8.7", "9.0", (12, 8), {}, "jit", None),
    ("ptx80@8.7", "9.0", (12, 6), {}, "fails", 222),
    ("sass80 ptx80@8.7", "8.6", (12, 0), {}, "runs", None),
    ("ptx80@8.7", "8.6", (11, 8), {}, "fails", 35),
    ("sass80 ptx80@8.7", "8.6", (11, 8), {}, "fails", 35),
    ("ptx80", "8.6", None, {"CUDA_DISABLE_PTX_JIT": "1"}, "fails", 223),
    ("sass80 ptx80", "8.6", None, {"CUDA_DISABLE_PTX_JIT": "1"}, "runs", None),
    ("sass80", "8.6", None, {"CUDA_FORCE_PTX_JIT": "1"}, "fails", 209),
    ("sass80 ptx80", "8.6", None, {"CUDA_FORCE_PTX_JIT": "1"}, "jit", None),
    ("ltoir80", "8.6", None, {}, "fails", 209),
]


def made_of(text):
    """A binary of one unit: 'sass80 ptx90@8.7' names its images and PTX versions."""
    unit = []
    for word in text.split():
        kind, arch, iso = re.match(r"(sass|ptx|ltoir)(\w+?)(?:@([\d.]+))?$", word).groups()
        unit.append(
            {
                "kind": kind,
                "arch": arch,
                "ptx_version": (iso or "7.0") if kind == "ptx" else None,
                "toolkit": None,
                "kernels": [{"symbol": "k"}],
                "unread": None,
            }
        )
    return {
        "type": "executable",
        "units": [{"relocatable": False, "images": unit}],
        "needed": [],
        "cpu_backend": False,
    }


@pytest.mark.parametrize("text, gpu, driver, env, result, error", RULES)
def test_rules(text, gpu, driver, env, result, error):
    found = verdict.judge(made_of(text), tables.parse_cc(gpu), driver, env)
    assert (found["result"], found["error"]) == (result, error), found
    assert found["reason"]


def test_driver_needed():
    judge = lambda text, gpu: verdict.judge(made_of(text), tables.parse_cc(gpu))["driver_needed"]
    assert judge("ptx80@8.7", "8.6") == 570
    assert (
        judge("sass80 ptx80@8.7", "8.6") == 525
    )  # machine code: the first driver of the same major
    assert judge("sass120 ptx120@8.7", "12.0") == 570  # and no driver before the GPU
    assert judge("ptx80@9.9", "8.6") is None  # a PTX version not known here


@pytest.mark.parametrize(
    "text, cc", [("8.6", (8, 6)), ("86", (8, 6)), ("sm_120", (12, 0)), ("12.1", (12, 1))]
)
def test_gpu_spellings(text, cc):
    assert tables.parse_cc(text) == cc


# --- the command


def test_gpu_and_exit_codes():
    assert as_json(DATA / "lz4.fatbin", "--gpu", "8.6")[0] == 0
    code, data = as_json(DATA / "lz4.fatbin", "--gpu", "7.5")
    assert code == 1 and data["verdicts"] == [
        {
            "gpu": "7.5",
            "result": "fails",
            "error": 209,
            "driver_needed": None,
            "reason": data["verdicts"][0]["reason"],
        }
    ]
    code, out, err = inspect(DATA / "lz4.fatbin", "--gpu", "7.5")
    assert code == 1 and "fails 209" in out and "compute_75,code=sm_75" in out and err == ""
    code, data = as_json(DATA / "lz4.fatbin", "--gpu", "8.9", "--driver", "535.171.04")
    assert code == 1 and data["verdicts"][0]["error"] == 35


def test_all_gpus():
    code, out, err = inspect(DATA / "lz4.fatbin", "--all-gpus")
    rows = dict(re.findall(r"^  (\d+\.\d) .*?(runs|jit|fails 209) ", out, re.M))
    assert code == 0 and len(rows) == len(tables.GPU_EXAMPLES)
    assert (
        rows["7.5"] == "fails 209"
        and rows["8.0"] == rows["8.9"] == "runs"
        and rows["9.0"] == rows["12.1"] == "jit"
    )


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--gpu", "banana"], "--gpu"),
        (["--gpu", "8"], "--gpu"),
        (["--gpu", "8.66"], "--gpu"),
        (["--gpu", "-1"], "--gpu"),
        (["--gpu", ""], "--gpu"),
        (["--gpu", "0.1"], "--gpu"),
        (["--driver", "x"], "--driver"),
        (["--driver", "12.4"], "--driver"),
        (["--gpu", "8.6", "--all-gpus"], "--all-gpus"),
        (["--nonsense"], "--nonsense"),
        (["--gpu"], "--gpu"),
    ],
)
def test_wrong_command_line(arguments, says):
    code, out, err = inspect(DATA / "lz4.fatbin", *arguments)
    assert code == 64 and out == "" and says in err and err.count("\n") == 1


def test_no_file():
    code, out, err = inspect()
    assert code == 64 and "file" in err
    code, out, err = inspect("/nowhere/x")
    assert code == 1 and err == "inspect: /nowhere/x: No such file or directory\n" and out == ""


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "is empty"),
        (b"hello\n", "neither an ELF file"),
        (b"\x7fELF", "damaged"),
        (b"\x7fELF" + bytes(100), "not a 64-bit"),
        (b"!<arch>\n" + b"x" * 100, "damaged"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\xff" * 8, "damaged"),
        (b"#!/bin/sh\necho CPU backend\n", "neither an ELF file"),
    ],
)
def test_not_a_binary(tmp_path, content, says):
    (tmp_path / "file").write_bytes(content)
    code, out, err = inspect(tmp_path / "file")
    assert code == 1 and out == "" and says in err and err.count("\n") == 1
    code, data = as_json(tmp_path / "file")
    assert code == 1 and data["entries"] == [] and says in data["error"]


def test_a_folder(tmp_path):
    code, out, err = inspect(tmp_path)
    assert code == 1 and "is a directory" in err


def test_program_without_gpu_code():
    code, out, err = inspect("/bin/sh")
    assert code == 1 and "holds no GPU code" in err and err.count("\n") == 1


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_program_of_the_cpu_backend(tmp_path):
    (tmp_path / "main.c").write_text(
        'const char *name = "CPU backend";\nint main(void) { return name[0] == 0; }\n'
    )
    subprocess.run(["gcc", str(tmp_path / "main.c"), "-o", str(tmp_path / "main")], check=True)
    code, out, err = inspect(tmp_path / "main")
    assert code == 1 and "CPU backend" in err and "without a GPU" in err
    assert as_json(tmp_path / "main")[1]["cpu_backend"] is True


def test_several_files():
    code, data = as_json(DATA / "lz4.fatbin", DATA / "zstd.fatbin", "--gpu", "7.5")
    assert code == 1 and [d["verdicts"][0]["result"] for d in data] == ["fails", "runs"]


def test_present_gpu_and_driver(tmp_path):
    """Without --gpu the GPU and the driver that nvidia-smi names count, and the two variables that
    change the choice."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho '9.0, 580.82.07'\necho '9.0, 580.82.07'\n")
    smi.chmod(0o755)
    env = {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
    code, data = as_json(DATA / "lz4.fatbin", env=env)
    assert code == 0 and [(v["gpu"], v["result"]) for v in data["verdicts"]] == [("9.0", "jit")]
    assert (
        as_json(DATA / "lz4.fatbin", env=dict(env, CUDA_DISABLE_PTX_JIT="1"))[1]["verdicts"][0][
            "error"
        ]
        == 223
    )
    smi.write_text("#!/bin/sh\necho '8.6, 470.57.02'\n")
    assert as_json(DATA / "lz4.fatbin", env=env)[1]["verdicts"][0]["error"] == 35
    smi.write_text("#!/bin/sh\nexit 9\n")
    code, out, err = inspect(DATA / "lz4.fatbin", env=env)
    assert code == 0 and "No GPU here to judge for" in out


def test_cuobjdump_helps_where_an_image_cannot_be_unpacked(tmp_path, monkeypatch):
    tool = tmp_path / "cuobjdump"
    tool.write_text(
        "#!/bin/sh\ncat <<'END'\n\nFatbin elf code:\n================\narch = sm_75\nResource"
        " usage:\n Common:\n  GLOBAL:0\n Function _Z7reversePf:\n  REG:11 STACK:8 SHARED:1024"
        " LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0\nEND\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:/usr/bin:/bin" % tmp_path)  # without the real one
    monkeypatch.setattr(fatbin, "_libzstd", False)
    script = {"__name__": "inspect_script", "__file__": str(INSPECT)}
    exec(compile(INSPECT.read_text(), str(INSPECT), "exec"), script)
    report = script["inspect_file"](str(DATA / "zstd.fatbin"), [(7, 5)], None, {})
    kernel = report["entries"][0]["kernels"][0]
    assert (
        kernel["symbol"],
        kernel["registers"],
        kernel["shared_bytes"],
        kernel["local_bytes"],
    ) == ("_Z7reversePf", 11, 1024, 8)
    tool.unlink()
    report = script["inspect_file"](str(DATA / "zstd.fatbin"), [(7, 5)], None, {})
    assert report["entries"][0]["kernels"] == [] and "libzstd" in report["entries"][0]["unread"]
    assert report["verdicts"][0]["result"] == "runs"  # the architectures are known all the same


def test_damaged_files_never_crash(tmp_path):
    rng = random.Random(5)
    source = [(DATA / name).read_bytes() for name in ("lz4.fatbin", "zstd.fatbin")]
    if NVCC:
        source.append(nvcc(tmp_path, "-arch=sm_90", output="k.o", form=("-c",)).read_bytes())
        source.append(
            nvcc(tmp_path, "-arch=sm_90", output="k.cubin", form=("-cubin",)).read_bytes()
        )
    path = tmp_path / "damaged"
    for _ in range(400):
        data = bytearray(rng.choice(source))
        if rng.random() < 0.4:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.randrange(20)):
            if data:
                data[rng.randrange(len(data) if rng.random() < 0.5 else min(len(data), 400))] = (
                    rng.randrange(256)
                )
        path.write_bytes(bytes(data))
        try:
            binary = fatbin.read(str(path))
        except fatbin.NotABinary as error:
            assert str(error) and "\n" not in str(error)
            continue
        assert verdict.judge(binary, (9, 0))["result"] in ("runs", "jit", "fails")


def test_lz4():
    assert fatbin.lz4_block(b"\x50hello", 5) == b"hello"
    assert fatbin.lz4_block(b"\x1aa\x01\x00\x50bcdef", 20) == b"a" * 15 + b"bcdef"
    for damaged in (b"", b"\xf0", b"\x10a\x05\x00", b"\x10a\x00\x00"):
        with pytest.raises(ValueError):
            fatbin.lz4_block(damaged, 9)


def test_help_and_permissions():
    code, out, err = inspect("--help")
    assert code == 0 and "--all-gpus" in out and os.access(str(INSPECT), os.X_OK)
