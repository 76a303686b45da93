"""scripts/check_env: every reported environment, fake machines made of small shell scripts, and the
words it prints."""

import json
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHECK_ENV = ROOT / "scripts" / "check_env"
DATA = Path(__file__).resolve().parent / "data"
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import errors  # noqa: E402
import facts as collector  # noqa: E402
import judge  # noqa: E402
import view  # noqa: E402

REPORTS = json.loads((DATA / "environment_reports.json").read_text())
TEXTS = json.loads((DATA / "error_texts.json").read_text())


def check_env(*arguments, stdin="", env=None):
    done = subprocess.run(
        [sys.executable, str(CHECK_ENV), *map(str, arguments)],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
        env=env,
    )
    return done.returncode, done.stdout, done.stderr


def codes(facts):
    """The diagnosis codes for facts, the first to act on first."""
    return [d.code for d in judge.judge(facts)]


# --- reports: a few texts in, the right diagnosis first


@pytest.mark.parametrize("report", REPORTS, ids=lambda r: r["id"])
def test_report(report):
    found = judge.judge(report["facts"])
    assert found and found[0].code == report["code"], [d.code for d in found]
    assert found[0].what and (found[0].run or found[0].severity != "problem")


def test_report_through_the_command(tmp_path):
    report = next(r for r in REPORTS if r["id"] == "nvcc-124-smi-129")
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report["facts"]))
    code, out, err = check_env("--facts", file)
    assert code == 1 and err == ""
    assert (
        "TOOLKIT_TOO_OLD" in out
        and "12.8" in out
        and "nvidia-smi's CUDA 12.9 is the driver's" in out
    )
    code, out, err = check_env("--facts", file, "--json")
    assert (
        json.loads(out)["diagnoses"][0]["code"] == "TOOLKIT_TOO_OLD"
        and code == json.loads(out)["exit"] == 1
    )


def test_record_written_by_hand():
    """Parts of a record without the marks that facts.py sets, and cells of a report among them."""
    found = judge.judge(
        {
            "driver": {"version": "515.86.01"},
            "toolkits": [{"version": "11.8"}],
            "gpus": [{"name": "A100", "cc": "8.0"}],
            "error_text": "CUDA error 222",
        }
    )
    assert found[0].code == "DRIVER_TOO_OLD_FOR_PTX" and found[0].sure
    mixed = {"driver": "470.86", "toolkits": [{"version": "12.4"}], "gpu": "RTX 3090"}
    assert codes(mixed) == ["DRIVER_TOO_OLD"]
    mixed = {"schema": 1, "toolkit": "12.4", "gcc": "14.2", "torch": "2.5+cpu", "gpu": "RTX 3090"}
    assert codes(mixed) == ["HOST_GCC_TOO_NEW", "TORCH_CPU_WHEEL"]


def test_a_dash_is_a_missing_fact():
    assert codes(
        {
            "driver": "-",
            "toolkit": "-",
            "gcc": "-",
            "gpu": "-",
            "cc": "-",
            "torch": "-",
            "build_arch_flags": "-",
            "error_text": "nvcc: command not found",
        }
    ) == ["NVCC_NOT_ON_PATH"]


def test_numbers_are_facts_too():
    assert codes({"cc": 8.6, "toolkit": 11.0, "gpu": None}) == ["TOOLKIT_TOO_OLD"]
    assert codes({"cc": 12.0, "toolkit": 12.4}) == ["TOOLKIT_TOO_OLD"]


def test_a_sound_report_has_no_diagnosis():
    assert (
        codes(
            {
                "driver": "550.54.14 (CUDA 12.4)",
                "toolkit": "12.2",
                "gcc": "12.3.0",
                "gpu": "RTX 3090",
                "cc": "8.6",
            }
        )
        == []
    )


def test_uncertain_says_what_is_missing():
    found = judge.judge(
        {"error_text": "CUDA driver version is insufficient for CUDA runtime version"}
    )[0]
    assert not found.sure and "container" in found.missing


# --- facts that cannot be used


@pytest.mark.parametrize(
    "text, says",
    [
        ("{not json", "is not JSON"),
        ("[1, 2]", "must be one JSON object"),
        ("3", "must be one JSON object"),
        ("", "is not JSON"),
        ("{}", "none of the known facts"),
        ('{"colour": "red"}', "none of the known facts"),
        ('{"schema": 7}', "schema 7"),
        ("[" * 100000, "is not JSON"),
    ],
)
def test_bad_facts(tmp_path, text, says):
    file = tmp_path / "facts.json"
    file.write_text(text)
    code, out, err = check_env("--facts", file)
    assert code == 64 and out == "" and says in err and err.count("\n") == 1


def test_missing_and_binary_facts(tmp_path):
    code, out, err = check_env("--facts", tmp_path / "none.json")
    assert code == 64 and "No such file" in err and err.count("\n") == 1
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    code, out, err = check_env("--facts", tmp_path / "binary")
    assert code == 64 and "not a text file" in err


def test_unknown_facts_are_named(tmp_path):
    file = tmp_path / "facts.json"
    file.write_text(json.dumps({"error_text": "error 209", "colour": "red"}))
    code, out, err = check_env("--facts", file)
    assert code == 1 and "colour" in err and "BUILD_LACKS_ARCH" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["extra"],
        ["--save"],
        ["--facts"],
        ["--explain", "209", "--save", "x"],
        ["--save", "-"],
    ],
)
def test_wrong_command_line(arguments):
    code, out, err = check_env(*arguments)
    assert code == 64 and out == "" and err.startswith("check_env: ") and err.count("\n") == 1


def test_facts_from_stdin():
    code, out, err = check_env(
        "--facts", "-", stdin='{"error_text": "code=222( cudaErrorUnsupportedPtxVersion )"}'
    )
    assert code == 1 and "DRIVER_TOO_OLD_FOR_PTX" in out


# --- explain


@pytest.mark.parametrize("case", TEXTS, ids=lambda c: c["text"][:40])
def test_explain(case):
    hits = errors.recognise(case["text"])
    if case["first"] is None:
        assert hits == []
    else:
        assert hits and case["first"] in (hits[0]["number"], hits[0]["code"]), hits
    if "second" in case:
        assert case["second"] in (hits[1]["number"], hits[1]["code"])


def test_explain_command():
    code, out, err = check_env("--explain", "209")
    assert (
        code == 0
        and out.startswith("209 cudaErrorNoKernelImageForDevice: no kernel image")
        and "scripts/inspect" in out
        and err == ""
    )
    code, out, err = check_env("--explain", "hello world")
    assert code == 1 and out == "" and "hello world" in err and err.count("\n") == 1
    code, out, err = check_env("--explain", "")
    assert code == 64 and err.count("\n") == 1


def test_explain_a_log_from_stdin():
    log = (
        "gcc -c main.c\nnvcc -c k.cu\nmake: *** [k.o] Error 1\nTraceback:\n  x.py line 209\nCUDA"
        " error at k.cu:12 code=700\n"
    )
    code, out, err = check_env("--explain", stdin=log)
    assert code == 0 and out.startswith("700 cudaErrorIllegalAddress") and "found in" in out
    code, out, err = check_env("--explain", "-", "--json", stdin=log)
    data = json.loads(out)
    assert data["known"] and [m["number"] for m in data["matches"]] == [700]


def test_explain_together_with_facts(tmp_path):
    file = tmp_path / "facts.json"
    file.write_text(json.dumps({"driver": "510.60.02 (CUDA 11.6)", "toolkit": "11.3"}))
    code, out, err = check_env("--facts", file, "--explain", "error 222")
    assert code == 1 and "FACTS_CONTRADICT" in out


def test_every_error_has_its_own_text():
    for number, (name, text) in errors.TABLE.items():
        if text == "device kernel image is invalid":  # 200 and 300 share it
            continue
        hits = errors.recognise("CUDA error: " + text)
        assert number in [h["number"] for h in hits], (number, text, hits)
        assert errors.recognise(name)[0]["number"] == number
        assert errors.recognise(str(number))[0]["number"] == number


def test_error_table_is_the_toolkits(tmp_path):
    """Names and texts of the table against cudaGetErrorName and cudaGetErrorString, where nvcc is
    there."""
    first = next((t for t in collector.collect_toolkits() if t["first"]), None)
    if not first or not (first["version"] or "").startswith("13."):
        pytest.skip("needs nvcc 13")
    source = tmp_path / "names.cu"
    source.write_text(
        "#include <cstdio>\nint main() { for (int i = 1; i < 1000; i++)"
        ' std::printf("%d\\t%s\\t%s\\n", i, cudaGetErrorName((cudaError_t)i),'
        " cudaGetErrorString((cudaError_t)i)); }\n"
    )
    subprocess.run(
        [first["path"], str(source), "-o", str(tmp_path / "names")], check=True, timeout=120
    )
    out = subprocess.run(
        [str(tmp_path / "names")],
        stdout=subprocess.PIPE,
        universal_newlines=True,
        check=True,
        timeout=60,
    ).stdout
    for line in out.splitlines():
        number, name, text = line.split("\t")
        if name != "unrecognized error code":
            assert errors.TABLE.get(int(number)) == (name, text)
        else:
            assert int(number) not in errors.TABLE


def test_explanations_are_complete():
    assert len(errors.EXPLAIN) > 40 and len(errors.MESSAGES) > 40
    for entry in errors.ENTRIES:
        assert (
            entry.means.endswith(".") and entry.do and entry.code == entry.code.upper()
        ), entry.code
        assert (entry.number in errors.TABLE) != bool(entry.pattern), entry.code


# --- fake machines


class Machine:
    """A machine of fake files under root and fake tools in one folder; the real PATH is not
    seen."""

    def __init__(self, folder):
        self.root, self.bin = folder / "root", folder / "bin"
        for path in (self.root, self.bin):
            path.mkdir()
        self.env = {
            "PATH": str(self.bin),
            "HOME": str(folder),
            "CHECK_ENV_ROOT": str(self.root),
            "CHECK_ENV_TIMEOUT": "4",
            "CHECK_ENV_NVCC_CPU": str(self.tool("nvcc-cpu", self.compiler(), self.bin)),
        }
        self.file("/proc/version", "Linux version 6.8.0 (gcc 13)\n")
        self.file("/proc/modules", "ext4 1 0\n")
        self.file("/etc/os-release", 'PRETTY_NAME="Ubuntu 24.04 LTS"\n')
        (self.root / "sys/bus/pci/devices").mkdir(parents=True)
        self.cache = []

    def file(self, path, text=""):
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def tool(self, name, script, folder=None):
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    @staticmethod
    def compiler(error=None, prints="42", code=0):
        """Shell lines that act as a compiler: they fail with a message, or write a program that
        prints a text."""
        if error:
            return "echo '%s' >&2\nexit 1\n" % error.replace("'", '"')
        return (
            'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
            'printf \'#!/bin/sh\\necho "%s"\\nexit %d\\n\' > "$out"\n/bin/chmod +x "$out"\nexit 0\n'
            % (prints, code)
        )

    def pci(self):
        folder = self.root / "sys/bus/pci/devices/0000:01:00.0"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x10de\n")
        (folder / "class").write_text("0x030000\n")

    def gcc(self, version="12.3.0"):
        self.tool(
            "g++",
            'case "$1" in --version) echo "g++ (GCC) %s";; -dump*) echo %s;; esac\n'
            % (version, version),
        )

    def nvcc(
        self,
        version="12.4",
        archs="50 60 70 75 80 86 87 89 90",
        folder=None,
        gcc_max=13,
        **compiler
    ):
        """A toolkit; in the fake /usr/local/cuda-X.Y unless a folder is named, and on PATH if that
        is its bin."""
        home = folder or self.root / ("usr/local/cuda-" + version)
        header = home / "include/crt/host_config.h"
        header.parent.mkdir(parents=True)
        header.write_text("#if __GNUC__ > %d\n#error\n#endif\n" % gcc_max)
        lines = "\n".join("compute_" + a for a in archs.split())
        self.tool(
            "nvcc",
            'case "$1" in\n--version) echo "Cuda compilation tools, release %s, V%s.99"; exit 0;;\n'
            "--list-gpu-arch) echo '%s'; exit 0;;\nesac\n" % (version, version, lines)
            + self.compiler(**compiler),
            home / "bin",
        )
        return home

    def on_path(self, home):
        self.env["PATH"] += ":%s/bin" % home

    def libcuda(self, version, folder="/usr/lib/x86_64-linux-gnu"):
        self.file(folder + "/libcuda.so." + version)
        link = self.root / folder.lstrip("/") / "libcuda.so.1"
        link.symlink_to("libcuda.so." + version)
        return link

    def module(self, version, open_module=True):
        kind = "Open Kernel Module for x86_64" if open_module else "x86_64 Kernel Module"
        self.file(
            "/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX %s  %s  Release Build\n" % (kind, version),
        )
        self.file("/proc/modules", "nvidia 1 0\nnvidia_uvm 1 0\n")

    def smi(
        self,
        driver="550.54.14",
        cuda="12.4",
        gpus=("NVIDIA GeForce RTX 3090, 8.6",),
        mig="[N/A]",
        mode="Default",
        slices="",
    ):
        rows = "\n".join(
            "%d, %s, %s, 24576, %s, %s, %s"
            % (i, g.split(", ")[0], driver, mode, mig, g.split(", ")[1])
            for i, g in enumerate(gpus)
        )
        self.tool(
            "nvidia-smi",
            "case \"$1\" in\n--query*) echo '%s';;\n-L) echo '%s';;\n*) echo \"| Driver Version: %s"
            '  CUDA Version: %s |";;\nesac\n' % (rows, slices, driver, cuda),
        )

    def probe(self, **answer):
        self.env["CHECK_ENV_PROBE"] = str(self.tool("probe", "echo '%s'\n" % json.dumps(answer)))

    def torch(self, **torch):
        self.tool("python3", "echo 'FACTS%s'\n" % json.dumps({"torch": torch, "numba": None}))

    def driver(
        self, version="550.54.14", cuda="12.4", gpus=("NVIDIA GeForce RTX 3090, 8.6",), **smi
    ):
        """A sound driver with GPUs."""
        self.pci()
        self.module(version)
        self.libcuda(version)
        self.smi(version, cuda, gpus, **smi)
        number = int(cuda.split(".")[0]) * 1000 + int(cuda.split(".")[1]) * 10
        self.probe(driver_version=number, init_error=0, device_count=len(gpus), devices=[])

    def run(self, *arguments):
        return check_env(*arguments, env=self.env)

    def judged(self):
        """(exit code, [diagnosis codes], the whole JSON), and the text form must agree."""
        code, out, err = self.run("--json")
        data = json.loads(out)
        assert data["exit"] == code and err == ""
        text_code, text, _ = self.run()
        assert text_code == code and all(d["code"] in text for d in data["diagnoses"])
        return code, [d["code"] for d in data["diagnoses"]], data


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def sound(machine, **nvcc):
    machine.driver()
    machine.gcc()
    machine.on_path(machine.nvcc(**nvcc))


def test_all_well(machine):
    sound(machine)
    code, found, data = machine.judged()
    assert (code, found) == (0, [])
    assert data["facts"]["kernel_test"]["ran"] and {c["status"] for c in data["checks"]} == {"ok"}
    assert "All is well" in machine.run()[1]


def test_kernel_fails(machine):
    sound(machine, prints="CUDA error 999 cudaErrorUnknown: unknown error", code=1)
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "UVM_BROKEN_AFTER_SUSPEND"
        and "one-thread kernel" in data["diagnoses"][0]["why"]
    )


def test_kernel_gives_a_wrong_result(machine):
    sound(machine, prints="0", code=1)
    assert machine.judged()[:2] == (1, ["TEST_KERNEL_FAILS"])


def test_old_driver(machine):
    machine.driver("470.223.02", "11.4")
    machine.gcc()
    machine.on_path(machine.nvcc("12.4"))
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "DRIVER_TOO_OLD" and "525" in data["diagnoses"][0]["why"]
    assert data["facts"]["kernel_test"] is None


def test_driver_older_than_toolkit_in_the_same_major(machine):
    machine.driver("525.147.05", "12.0")
    machine.gcc()
    machine.on_path(machine.nvcc("12.4"))
    code, found, _ = machine.judged()
    assert (code, found) == (0, ["DRIVER_TOO_OLD_FOR_PTX"])  # a warning: machine code runs


def test_two_toolkits(machine):
    machine.driver(gpus=("NVIDIA GeForce RTX 4090, 8.9",))
    machine.gcc("11.4.0")
    machine.on_path(
        machine.nvcc("11.5", "50 60 70 75 80 86", folder=machine.root / "usr", gcc_max=11)
    )
    machine.nvcc("12.4")
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "TOOLKIT_TOO_OLD" and "TWO_TOOLKITS" in found
    assert "cuda-12.4/bin" in data["diagnoses"][0]["run"]
    assert [t["version"] for t in data["facts"]["toolkits"]] == ["11.5", "12.4"]


def test_cuda_home_is_another_toolkit(machine):
    sound(machine)
    machine.env["CUDA_HOME"] = str(machine.nvcc("11.8"))
    code, found, data = machine.judged()
    assert (code, found) == (0, ["TWO_TOOLKITS"]) and "CUDA_HOME" in data["diagnoses"][0]["what"]


def test_nvcc_off_path(machine):
    machine.driver()
    machine.gcc()
    machine.nvcc("12.4")
    code, found, data = machine.judged()
    assert (
        code == 1
        and found == ["NVCC_NOT_ON_PATH"]
        and "cuda-12.4/bin" in data["diagnoses"][0]["run"]
    )


def test_no_nvcc_but_a_gpu(machine):
    machine.driver()
    machine.gcc()
    code, found, data = machine.judged()
    assert (code, found) == (1, ["NO_NVCC"]) and "BACKEND=cpu" in data["diagnoses"][0]["run"]


def test_broken_nvcc(machine):
    sound(machine)
    machine.tool("nvcc", "echo 'cannot execute' >&2\nexit 126\n")
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "NVCC_FAILS" and "cuda-12.4" in data["diagnoses"][0]["run"]


def test_nvcc_dropped_the_gpu(machine):
    machine.driver("580.82.07", "13.0", gpus=("Tesla P100-PCIE-16GB, 6.0",))
    machine.gcc()
    machine.on_path(machine.nvcc("13.0", "75 80 86 89 90 100 120", gcc_max=15))
    code, found, data = machine.judged()
    assert (
        code == 1 and found[0] == "TOOLKIT_DROPPED_ARCH" and "12.9" in data["diagnoses"][0]["run"]
    )


def test_nvcc_too_old_for_blackwell(machine):
    machine.driver("570.86.10", "12.8", gpus=("NVIDIA GeForce RTX 5090, 12.0",))
    machine.gcc()
    machine.on_path(machine.nvcc("12.4"))
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "TOOLKIT_TOO_OLD"
    assert "12.8" in data["diagnoses"][0]["run"] and "compute_90" in data["diagnoses"][0]["run"]


def test_login_node(machine):
    machine.gcc()
    machine.on_path(machine.nvcc())
    machine.tool("srun", "exit 0\n")
    code, found, data = machine.judged()
    assert (code, found) == (2, ["LOGIN_NODE"]) and "srun" in data["diagnoses"][0]["run"]


def test_nvcc_and_no_gpu(machine):
    machine.gcc()
    machine.on_path(machine.nvcc())
    code, found, data = machine.judged()
    assert (code, found) == (2, ["NO_GPU"]) and "BACKEND=cpu" in data["diagnoses"][0]["run"]


def test_only_gcc(machine):
    machine.gcc()
    code, found, data = machine.judged()
    assert (code, found) == (2, ["NO_GPU"]) and data["facts"]["cpu_backend"]["ok"]
    assert "nvcc" not in data["diagnoses"][0]["run"]


def test_cpu_backend_fails(machine):
    machine.gcc()
    machine.tool("nvcc-cpu", machine.compiler(error="answer.cu:5: no such header"))
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "CPU_BACKEND_FAILS"
        and "no such header" in data["diagnoses"][0]["why"]
    )


def test_no_compiler_at_all(machine):
    code, found, _ = machine.judged()
    assert code == 1 and found[0] == "HOST_COMPILER_MISSING"


def test_gpu_without_driver(machine):
    machine.pci()
    machine.gcc()
    machine.on_path(machine.nvcc())
    code, found, _ = machine.judged()
    assert code == 1 and found[0] == "NO_KERNEL_DRIVER"


def test_secure_boot(machine):
    machine.pci()
    machine.gcc()
    machine.tool("mokutil", "echo 'SecureBoot enabled'\n")
    assert machine.judged()[:2] == (1, ["SECURE_BOOT_BLOCKS_MODULE"])


def test_nouveau(machine):
    machine.pci()
    machine.gcc()
    machine.file("/proc/modules", "nouveau 1 0\n")
    assert machine.judged()[:2] == (1, ["NOUVEAU_IN_USE"])


def test_container_without_gpu(machine):
    machine.pci()
    machine.module("550.54.14")  # /proc is the host's
    machine.file("/.dockerenv")
    machine.gcc()
    machine.on_path(machine.nvcc())
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "CONTAINER_WITHOUT_GPU"
        and "--gpus all" in data["diagnoses"][0]["run"]
    )


def test_module_without_library(machine):
    machine.pci()
    machine.module("550.54.14")
    machine.gcc()
    assert machine.judged()[:2] == (1, ["NO_DRIVER_LIBRARY"])


def test_wsl_without_windows_driver(machine):
    machine.file("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n")
    machine.gcc()
    code, found, data = machine.judged()
    assert (
        code == 1
        and found == ["WSL_WITHOUT_DRIVER"]
        and "Never install a Linux driver" in data["diagnoses"][0]["keep"]
    )


def test_wsl_with_driver(machine):
    machine.file("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n")
    machine.file("/dev/dxg")
    machine.file("/usr/lib/wsl/lib/libcuda.so.1")
    machine.smi("560.94", "12.6")
    machine.probe(driver_version=12060, init_error=0, device_count=1, devices=[])
    machine.gcc()
    machine.on_path(machine.nvcc())
    code, found, data = machine.judged()
    assert (code, found) == (0, []) and data["facts"]["system"]["wsl"]


def test_linux_driver_inside_wsl(machine):
    machine.file("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n")
    machine.file("/dev/dxg")
    machine.libcuda("535.183.01")
    machine.file("/usr/lib/wsl/lib/libcuda.so.1")
    line = "libcuda.so.1 (libc6,x86-64) => %s/libcuda.so.1"
    folders = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib")
    machine.tool("ldconfig", "".join("echo '\t%s'\n" % (line % folder) for folder in folders))
    machine.gcc()
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "WSL_LINUX_DRIVER"
    assert "/usr/lib/x86_64-linux-gnu/libcuda.so.1" in data["diagnoses"][0]["what"]


def test_stub_on_the_loader_path(machine, tmp_path):
    sound(machine)
    stubs = tmp_path / "cuda/lib64/stubs"
    stubs.mkdir(parents=True)
    (stubs / "libcuda.so.1").write_text("")
    machine.env["LD_LIBRARY_PATH"] = str(stubs)
    machine.probe(path=str(stubs / "libcuda.so.1"), init_error=34, driver_version=0)
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "STUB_LIBRARY" and str(stubs) in data["diagnoses"][0]["why"]


def test_compat_library_on_geforce(machine, tmp_path):
    machine.driver("470.57.02", "11.4", gpus=("NVIDIA GeForce RTX 2080 Ti, 7.5",))
    machine.gcc()
    compat = tmp_path / "cuda/compat"
    compat.mkdir(parents=True)
    (compat / "libcuda.so.530.30.02").write_text("")
    (compat / "libcuda.so.1").symlink_to("libcuda.so.530.30.02")
    machine.env["LD_LIBRARY_PATH"] = str(compat)
    machine.probe(path=str(compat / "libcuda.so.530.30.02"), driver_version=12010, init_error=804)
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "COMPAT_LIB_ON_GEFORCE"
        and str(compat) in data["diagnoses"][0]["what"]
    )


def test_older_compat_library_shadows_the_driver(machine, tmp_path):
    machine.driver("580.82.07", "13.0", gpus=("NVIDIA H100 80GB HBM3, 9.0",))
    machine.gcc()
    compat = tmp_path / "cuda/compat"
    compat.mkdir(parents=True)
    (compat / "libcuda.so.550.54.15").write_text("")
    (compat / "libcuda.so.1").symlink_to("libcuda.so.550.54.15")
    machine.env["LD_LIBRARY_PATH"] = str(compat)
    machine.probe(path=str(compat / "libcuda.so.550.54.15"), driver_version=12040, init_error=803)
    code, found, _ = machine.judged()
    assert code == 1 and found[0] == "COMPAT_LIB_SHADOWS_DRIVER"


def test_module_and_library_differ(machine):
    machine.pci()
    machine.module("550.90.07")
    machine.libcuda("550.107.02")
    machine.tool(
        "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"
    )
    machine.gcc()
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "DRIVER_MODULE_MISMATCH"
    assert (
        "550.90.07" in data["diagnoses"][0]["why"] and "550.107.02" in data["diagnoses"][0]["why"]
    )


def test_smi_message_against_the_numbers(machine):
    """Files say that module and library are alike, nvidia-smi says that they are not: a
    contradiction, and it is said."""
    sound(machine)
    machine.tool(
        "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"
    )
    assert machine.judged()[1][0] == "FACTS_CONTRADICT"


def test_smi_message_alone_is_enough(machine):
    sound(machine)
    machine.file("/proc/driver/nvidia/version", "of a kind not known yet\n")
    machine.tool(
        "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"
    )
    assert machine.judged()[1][0] == "DRIVER_MODULE_MISMATCH"


@pytest.mark.parametrize("value", ["", "-1", "99", "GPU-wrong"])
def test_visible_devices(machine, value):
    sound(machine)
    machine.env["CUDA_VISIBLE_DEVICES"] = value
    machine.probe(driver_version=12040, init_error=100)
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "CUDA_VISIBLE_DEVICES_HIDES_GPU"
    assert ("empty" if value == "" else value) in data["diagnoses"][0]["what"]


def test_mig_without_a_slice(machine):
    machine.driver("550.54.14", "12.4", gpus=("NVIDIA A100-SXM4-40GB, 8.0",), mig="Enabled")
    machine.probe(driver_version=12040, init_error=0, device_count=0, devices=[])
    machine.gcc()
    machine.on_path(machine.nvcc())
    assert machine.judged()[1][0] == "MIG"


@pytest.mark.parametrize(
    "error, code",
    [
        (802, "FABRIC_MANAGER"),
        (999, "UVM_BROKEN_AFTER_SUSPEND"),
        (46, "EXCLUSIVE_PROCESS"),
        (3, "FORK_AFTER_INIT"),
        (12345, "CUDA_ERROR_12345"),
    ],
)
def test_the_driver_answers_with_an_error(machine, error, code):
    sound(machine)
    machine.probe(driver_version=12040, init_error=error)
    assert machine.judged()[1][0] == code


def test_second_gpu_of_another_kind(machine):
    machine.driver("580.82.07", "13.0", ("NVIDIA H100 PCIe, 9.0", "Tesla P100-PCIE-16GB, 6.0"))
    machine.gcc()
    machine.on_path(machine.nvcc("13.0", "75 80 86 89 90 100 120", gcc_max=15))
    code, found, data = machine.judged()
    assert (code, found) == (0, ["TOOLKIT_DROPPED_ARCH"])
    assert "P100" in data["diagnoses"][0]["what"] and data["facts"]["kernel_test"]["ok"]


def test_login_node_with_a_driver_but_no_gpu(machine):
    machine.module("550.54.14")
    (machine.root / "proc/driver/nvidia/version").unlink()
    machine.libcuda("550.54.14")
    machine.tool("nvidia-smi", "echo 'No devices were found'\nexit 6\n")
    machine.probe(driver_version=12040, init_error=100)
    machine.tool("srun", "exit 0\n")
    machine.gcc()
    assert machine.judged()[:2] == (2, ["LOGIN_NODE"])


def test_bytes_that_are_no_text(machine):
    done = subprocess.run(
        [sys.executable, str(CHECK_ENV), "--explain"],
        input=b"\xff\xfe CUDA error 209\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C", PYTHONUTF8="0"),
    )
    assert done.returncode == 0 and b"cudaErrorNoKernelImageForDevice" in done.stdout
    done = subprocess.run(
        [sys.executable, str(CHECK_ENV), "--facts", "-"],
        input=b'{"gpu": "\\ud800", "error_text": "\xe6\x98\xbe"}',
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C", PYTHONUTF8="0"),
    )
    assert done.returncode == 1 and b"Traceback" not in done.stderr


def test_proprietary_module_on_blackwell(machine):
    machine.pci()
    machine.module("575.51.03", open_module=False)
    machine.libcuda("575.51.03")
    machine.tool("nvidia-smi", "echo 'No devices were found'\nexit 6\n")
    machine.tool("modinfo", "echo NVIDIA\n")
    machine.probe(driver_version=12090, init_error=100)
    machine.gcc()
    assert machine.judged()[1][0] == "CHECK_OPEN_MODULES"


def test_numba(machine):
    sound(machine)
    numba = {"torch": None, "numba": {"version": "0.61.0", "cuda_available": False}}
    machine.tool("python3", "echo 'FACTS%s'\n" % json.dumps(numba))
    assert machine.judged()[:2] == (0, ["NUMBA_SEES_NO_GPU"])
    machine.env["CUDA_VISIBLE_DEVICES"] = ""
    machine.probe(driver_version=12040, init_error=100)
    assert machine.judged()[:2] == (1, ["CUDA_VISIBLE_DEVICES_HIDES_GPU"])


def test_driver_newer_than_the_tables(machine):
    machine.driver("655.10.01", "14.7")
    machine.gcc()
    machine.on_path(machine.nvcc())
    assert machine.judged()[:2] == (0, [])


def test_driver_dropped_pascal(machine):
    machine.driver("590.44.01", "13.1", gpus=("NVIDIA GeForce GTX 1050, 6.1",))
    machine.gcc()
    assert machine.judged()[1][0] == "DRIVER_DROPPED_GPU"


def test_gcc_too_new(machine):
    machine.driver()
    machine.gcc("14.2.0")
    machine.on_path(
        machine.nvcc(
            error=(
                "host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later"
                " than 13 are not supported!"
            )
        )
    )
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "HOST_GCC_TOO_NEW"
        and "-ccbin g++-13" in data["diagnoses"][0]["run"]
    )


def test_gcc_over_the_limit_but_it_compiles(machine):
    machine.driver()
    machine.gcc("14.2.0")
    machine.on_path(machine.nvcc())  # e.g. NVCC_PREPEND_FLAGS names an older one
    assert machine.judged()[:2] == (0, [])


def test_glibc_against_headers(machine):
    sound(
        machine,
        error=(
            "math_functions.h(2629): error: exception specification is incompatible with that of"
            ' previous function "cospi"'
        ),
    )
    code, found, data = machine.judged()
    assert code == 1 and found[0] == "GLIBC_HEADER_CLASH" and "13.0" in data["diagnoses"][0]["run"]
    assert "gcc" in data["diagnoses"][0]["keep"]


def test_compile_test_with_an_unknown_message(machine):
    sound(machine, error="something new is wrong")
    code, found, data = machine.judged()
    assert (
        code == 1
        and found[0] == "COMPILE_TEST_FAILS"
        and "something new is wrong" in data["diagnoses"][0]["why"]
    )


def test_torch_wheel_lacks_the_gpu(machine):
    machine.driver("580.82.07", "13.0", gpus=("NVIDIA GeForce RTX 5090, 12.0",))
    machine.gcc()
    machine.on_path(machine.nvcc("12.8", "75 80 86 89 90 100 120", gcc_max=14))
    machine.torch(
        version="2.5.1+cu124",
        cuda="12.4",
        arch_list=["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
    )
    code, found, data = machine.judged()
    assert code == 1 and found == ["WHEEL_LACKS_ARCH"] and "cu128" in data["diagnoses"][0]["run"]


def test_torch_cpu_wheel(machine):
    sound(machine)
    machine.torch(version="2.5.1+cpu", cuda=None, arch_list=None)
    assert machine.judged()[:2] == (1, ["TORCH_CPU_WHEEL"])


def test_torch_cpu_wheel_is_right_without_a_gpu(machine):
    machine.gcc()
    machine.torch(version="2.5.1+cpu", cuda=None, arch_list=None)
    assert machine.judged()[:2] == (2, ["NO_GPU"])


def test_torch_ptx_counts(machine):
    machine.driver("580.82.07", "13.0", gpus=("NVIDIA GeForce RTX 5090, 12.0",))
    machine.gcc()
    machine.on_path(machine.nvcc("12.8", "75 80 86 89 90 100 120", gcc_max=14))
    machine.torch(version="2.6.0", cuda="12.4", arch_list=["sm_80", "sm_90", "compute_90"])
    assert machine.judged()[:2] == (0, [])


def test_slow_tools_do_not_hang(machine):
    machine.env["CHECK_ENV_TIMEOUT"] = "0.5"
    machine.gcc()
    for name in ("nvidia-smi", "nvcc", "ldconfig", "mokutil", "python3"):
        machine.tool(name, "/bin/sleep 600 & echo $! >> '%s/pids'\n/bin/sleep 600\n" % machine.bin)
    machine.env["CHECK_ENV_PROBE"] = str(machine.tool("probe", "/bin/sleep 600\n"))
    start = time.monotonic()
    code, out, err = machine.run("--json")
    assert time.monotonic() - start < 40
    data = json.loads(out)
    assert code == 1 and "no answer within" in data["facts"]["toolkits"][0]["error"]
    assert "no answer within" in data["facts"]["driver"]["smi"]["error"]
    for pid in (machine.bin / "pids").read_text().split():  # their children are gone, too
        stat = Path("/proc/%s/stat" % pid)
        assert not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_save_has_no_names(machine, tmp_path):
    sound(machine)
    machine.env.update(
        HOME="/home/ada.lovelace",
        USER="ada.lovelace",
        LD_LIBRARY_PATH="/home/ada.lovelace/lib:/home/grace/lib",
        CUDA_HOME="/home/ada.lovelace/cuda",
    )
    code, out, err = machine.run("--save", tmp_path / "facts.json")
    text = (tmp_path / "facts.json").read_text()
    assert "lovelace" not in text and "grace" not in text and '"~/cuda"' in text
    again, out, err = check_env("--facts", tmp_path / "facts.json")
    assert again == code == 0


def test_save_into_a_missing_folder(machine):
    code, out, err = machine.run("--save", "/nowhere/facts.json")
    assert code == 64 and "--save /nowhere/facts.json" in err


def test_anonymous():
    facts = {"a": ["/home/ada/x", "/Users/ada", "ada runs", "readable"], "b": 3}
    assert collector.anonymous(facts, home="/root/x", user="ada") == {
        "a": ["~/x", "~", "<user> runs", "readable"],
        "b": 3,
    }


def test_this_machine():
    """Whatever this machine is: an answer, valid JSON, and the text form agrees."""
    code, out, err = check_env("--json")
    data = json.loads(out)
    assert code in (0, 1, 2) and data["exit"] == code and err == ""
    assert code == 0 or data["diagnoses"]
    assert (
        judge.exit_code(judge.judge(data["facts"])) == code
    )  # the facts in the JSON are enough to judge again


# --- any facts at all: an answer or BadFacts, never a crash

JUNK = [
    None,
    "",
    "-",
    "unknown",
    0,
    -1,
    3.7,
    True,
    [],
    {},
    [None],
    "12.8",
    "cu128",
    "sm_90a",
    "8.6",
    "x" * 500,
    "\u663e\u5361",
    ["sm_90", 5, None],
    "none",
    "module 1, package",
    "RTX 5090",
    "580.82.07",
    "error 209",
    "code=222(",
    "compute_",
    "arch=compute_90,code=[sm_90,compute_90]",
    "(",
    "[",
    {"ok": False, "error": None},
    {"version": None},
    {"path": 5, "version": "12.x", "first": True, "archs": ["zz", None]},
    99999999999999999999,
]
PARTS = {
    "system": [
        "container",
        "wsl",
        "slurm",
        "slurm_job",
        "secure_boot",
        "nouveau",
        "nvidia_pci_devices",
        "glibc",
        "jetson",
    ],
    "driver": [
        "present",
        "version",
        "cuda",
        "module_version",
        "library_version",
        "module_loaded",
        "loaded_libcuda",
        "init_error",
        "device_count",
        "smi",
        "module_license",
    ],
    "env": ["CUDA_VISIBLE_DEVICES", "CUDA_HOME"],
    "torch": ["version", "cuda", "arch_list"],
    "numba": ["version", "cuda_available"],
    "header_test": ["ok", "error"],
    "kernel_test": ["ok", "error"],
    "cpu_backend": ["ok", "error"],
}
LISTS = {
    "gpus": ["name", "cc", "mig", "mig_devices", "compute_mode", "memory_mib"],
    "toolkits": ["path", "version", "archs", "gcc_max", "first"],
    "host_compilers": ["name", "version", "kind", "first"],
}


def random_facts(rng):
    kind = rng.random()
    if kind < 0.4:  # cells of different reports in one: plausible each, contradictory together
        return {key: rng.choice(REPORTS)["facts"].get(key) for key in view.REPORT_KEYS}
    if kind < 0.6:
        return {
            key: rng.choice(JUNK)
            for key in rng.sample(view.REPORT_KEYS, rng.randint(1, len(view.REPORT_KEYS)))
        }
    facts = {"schema": 1}
    for key, inner in PARTS.items():
        if rng.random() < 0.8:
            facts[key] = (
                rng.choice(JUNK)
                if rng.random() < 0.1
                else {i: rng.choice(JUNK) for i in inner if rng.random() < 0.7}
            )
    for key, inner in LISTS.items():
        if rng.random() < 0.8:
            facts[key] = (
                rng.choice(JUNK)
                if rng.random() < 0.1
                else [
                    {i: rng.choice(JUNK) for i in inner if rng.random() < 0.7}
                    for _ in range(rng.randint(0, 3))
                ]
            )
    return facts


def test_random_facts_never_crash():
    rng = random.Random(20240607)
    answers = set()
    for _ in range(1500):
        facts = random_facts(rng)
        before = json.dumps(facts, default=str)
        try:
            found = judge.judge(facts)
        except view.BadFacts:
            continue
        assert json.dumps(facts, default=str) == before  # a pure function leaves its input alone
        for d in found:
            json.dumps(d.as_dict())
            assert d.code and d.what and d.severity in ("problem", "warning", "note", "no_gpu")
        answers.update(d.code for d in found)
    assert len(answers) > 40  # and they reach most of the rules


def test_random_facts_print(tmp_path):
    rng = random.Random(7)
    for _ in range(12):
        facts = random_facts(rng)
        (tmp_path / "facts.json").write_text(json.dumps(facts))
        code, out, err = check_env("--facts", tmp_path / "facts.json")
        assert code in (0, 1, 2, 64) and "Traceback" not in err, (facts, err)
        code, out, err = check_env("--facts", tmp_path / "facts.json", "--json")
        assert code == 64 or json.loads(out)["exit"] == code


def test_contradictions_are_said():
    assert codes({"gpu": "RTX 4090", "cc": "12.0"}) == ["FACTS_CONTRADICT"]
    assert "FACTS_CONTRADICT" in codes(
        {
            "schema": 1,
            "driver": {"present": False},
            "gpus": [{"name": "RTX 3090", "cc": "8.6", "memory_mib": 24576}],
        }
    )
    assert "FACTS_CONTRADICT" in codes(
        {"schema": 1, "driver": {"present": False}, "kernel_test": {"ok": True}}
    )


def test_script_is_executable():
    assert os.stat(str(CHECK_ENV)).st_mode & stat.S_IXUSR


def test_help():
    code, out, err = check_env("--help")
    assert code == 0 and "--explain" in out and "Exit code" in out
