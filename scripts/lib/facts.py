"""Collects what can be known about CUDA on this machine, as plain data; judge.py decides what it
means.

Every tool is looked up on PATH and runs with a time limit, so nothing hangs. Absolute paths go
through CHECK_ENV_ROOT; CHECK_ENV_PROBE replaces the libcuda probe and CHECK_ENV_NVCC_CPU the CPU
backend's compiler: that is how the tests fake a machine. The schema is described in
docs/diagnosis.md. A fact that could not be found out is None.
"""

import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCHEMA = 1
ROOT = os.environ.get("CHECK_ENV_ROOT", "")
QUICK = float(
    os.environ.get("CHECK_ENV_TIMEOUT", "10")
)  # seconds for a query; compiling and importing get more
SLOW = QUICK * 9
KEPT_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "LD_LIBRARY_PATH",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_MODULE_LOADING",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CONDA_PREFIX",
)

# Runs in a child process: a broken driver may crash or hang. It prints what the driver itself says.
PROBE = r"""
import ctypes, json, re
r = {}
try:
    cu = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print(json.dumps({"load_error": str(error)}))
    raise SystemExit
for line in open("/proc/self/maps"):
    if re.search(r"/libcuda\.so", line):
        r["path"] = line.split(None, 5)[5].strip()
        break
n, v = ctypes.c_int(0), ctypes.c_int(0)
if cu.cuDriverGetVersion(ctypes.byref(v)) == 0:
    r["driver_version"] = v.value
r["init_error"] = cu.cuInit(0)
r["devices"] = []
if r["init_error"] == 0 and cu.cuDeviceGetCount(ctypes.byref(n)) == 0:
    r["device_count"] = n.value
    for i in range(n.value):
        d, name, mem = ctypes.c_int(0), ctypes.create_string_buffer(256), ctypes.c_size_t(0)
        if cu.cuDeviceGet(ctypes.byref(d), i) != 0:
            continue
        cu.cuDeviceGetName(name, 256, d)
        cu.cuDeviceTotalMem_v2(ctypes.byref(mem), d)
        def get(attribute):
            value = ctypes.c_int(-1)
            error = cu.cuDeviceGetAttribute(ctypes.byref(value), attribute, d)
            return value.value if error == 0 else None
        modes = {0: "Default", 2: "Prohibited", 3: "Exclusive_Process"}
        r["devices"].append({
            "index": i, "name": name.value.decode("utf-8", "replace"),
            "cc": "%s.%s" % (get(75), get(76)), "memory_mib": mem.value >> 20,
            "compute_mode": modes.get(get(20)), "concurrent_managed_access": get(89)})
print(json.dumps(r))
"""

TORCH_PROBE = r"""
import importlib.util, json
r = {"torch": None, "numba": None}
if importlib.util.find_spec("torch"):
    try:
        import torch
        r["torch"] = {"version": torch.__version__, "cuda": torch.version.cuda,
                      "hip": getattr(torch.version, "hip", None),
                      "available": torch.cuda.is_available()}
        try:
            flags = torch._C._cuda_getArchFlags()  # get_arch_list() is empty where there is no GPU
            r["torch"]["arch_list"] = flags.split() if flags else None
        except AttributeError:
            r["torch"]["arch_list"] = torch.cuda.get_arch_list() or None
    except Exception as error:
        r["torch"] = {"version": None, "error": str(error)[:500]}
if importlib.util.find_spec("numba"):
    try:
        import numba
        r["numba"] = {"version": numba.__version__}
        from numba import cuda
        r["numba"]["cuda_available"] = bool(cuda.is_available())
    except Exception as error:
        r["numba"] = dict(r["numba"] or {}, error=str(error)[:500])
print("FACTS" + json.dumps(r))
"""

TEST_KERNEL = r"""#include <cmath>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
__global__ void answer(int *out) { *out = 42; }
static int check(cudaError_t error)
{
    if (error != cudaSuccess)
        std::printf("CUDA error %d %s: %s\n", (int)error, cudaGetErrorName(error),
                    cudaGetErrorString(error));
    return error != cudaSuccess;
}
int main()
{
    std::vector<int> h_out(1, 0);
    int *d_out = nullptr;
    if (check(cudaMalloc((void **)&d_out, sizeof(int))))
        return 1;
    answer<<<1, 1>>>(d_out);
    if (check(cudaGetLastError()) || check(cudaDeviceSynchronize())
        || check(cudaMemcpy(h_out.data(), d_out, sizeof(int), cudaMemcpyDeviceToHost)))
        return 1;
    std::printf("%d\n", (int)std::sqrt((double)h_out[0] * h_out[0]));
    return h_out[0] == 42 ? 0 : 1;
}
"""


def at_root(path):
    return ROOT + path


def run(command, timeout=None, env=None):
    """Runs a command: a dict with rc, out, err, timed_out; rc is None if it did not start."""
    timeout = timeout or QUICK
    result = {"rc": None, "out": "", "err": "", "timed_out": False}
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        result["err"] = str(error)
        return result
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        result["timed_out"] = True
        try:
            os.killpg(child.pid, signal.SIGKILL)  # its children hold the pipe open
            out, err = child.communicate(timeout=2)
        except (OSError, subprocess.TimeoutExpired):
            out, err = b"", b""
    result["rc"] = child.returncode
    result["out"], result["err"] = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    return result


def read_text(path):
    try:
        with open(at_root(path), errors="replace") as file:
            return file.read()
    except OSError:
        return None


def first_match(pattern, text):
    match = re.search(pattern, text or "", re.MULTILINE)
    return match.group(1) if match else None


# --- the parts


def collect_system():
    env = os.environ
    version = read_text("/proc/version") or ""
    cgroup = read_text("/proc/1/cgroup") or ""
    container = None
    if os.path.exists(at_root("/.dockerenv")):
        container = "docker"
    elif os.path.exists(at_root("/run/.containerenv")):
        container = "podman"
    elif not ROOT and (env.get("APPTAINER_NAME") or env.get("SINGULARITY_NAME")):
        container = "apptainer"
    elif "KUBERNETES_SERVICE_HOST" in env:
        container = "kubernetes"
    elif re.search(r"docker|kubepods|containerd|lxc", cgroup):
        container = "container"
    pci = None
    if os.path.isdir(at_root("/sys/bus/pci/devices")):
        pci = 0
        for folder in glob.glob(at_root("/sys/bus/pci/devices/*")):
            try:
                with open(folder + "/vendor") as vendor, open(folder + "/class") as kind:
                    pci += vendor.read().strip() == "0x10de" and kind.read().startswith("0x03")
            except OSError:
                continue
    modules = read_text("/proc/modules")
    secure = None
    if shutil.which("mokutil"):
        state = run(["mokutil", "--sb-state"])["out"]
        secure = (
            True
            if "SecureBoot enabled" in state
            else False if "SecureBoot disabled" in state else None
        )
    return {
        "os": first_match(r'^PRETTY_NAME="?([^"\n]*)', read_text("/etc/os-release")),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "glibc": glibc_version(),
        "container": container,
        "wsl": (
            bool(re.search(r"microsoft", version, re.IGNORECASE))
            or os.path.exists(at_root("/dev/dxg"))
        ),
        "slurm": bool(shutil.which("srun")),
        "slurm_job": "SLURM_JOB_ID" in env,
        "secure_boot": secure,
        "nouveau": (
            None if modules is None else bool(re.search(r"^nouveau ", modules, re.MULTILINE))
        ),
        "jetson": os.path.exists(at_root("/etc/nv_tegra_release")),
        "nvidia_pci_devices": pci,
    }


def glibc_version():
    try:
        return first_match(r"(\d+\.\d+)", os.confstr("CS_GNU_LIBC_VERSION"))
    except (ValueError, OSError, AttributeError):
        return None


def find_libcuda():
    """Every libcuda.so.1 the loader could take, in its order: LD_LIBRARY_PATH, the linker's cache,
    the usual folders."""
    found = []

    def add(path):
        real = os.path.realpath(path)
        if os.path.exists(path) and real not in [f["real"] for f in found]:
            both = path + " " + real
            kind = (
                "stub"
                if "/stubs" in both
                else "compat" if "/compat" in both else "wsl" if "/wsl/" in both else "driver"
            )
            shown = path[len(ROOT) :] if ROOT and path.startswith(ROOT) else path
            found.append(
                {
                    "path": shown,
                    "real": real,
                    "kind": kind,
                    "version": first_match(r"\.so\.(\d{3}[\d.]*)$", real),
                }
            )

    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            add(os.path.join(folder, "libcuda.so.1"))
    for _, path in linker_cache(r"libcuda\.so\.1"):
        add(at_root(path))
    for folder in (
        "/usr/lib/wsl/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu/tegra",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
    ):
        add(at_root(folder + "/libcuda.so.1"))
    for entry in found:
        del entry["real"]
    return found


_cache = {}


def linker_cache(pattern):
    """(name, path) of libraries that ldconfig knows."""
    if "text" not in _cache:
        tool = shutil.which("ldconfig") or next(
            (p for p in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if not ROOT and os.path.exists(p)),
            None,
        )
        _cache["text"] = run([tool, "-p"])["out"] if tool else ""
    return re.findall(r"^\s*(%s) .*=> (\S+)" % pattern, _cache["text"], re.MULTILINE)


def probe_driver():
    """What libcuda itself says; None if it was not asked."""
    if os.environ.get("CHECK_ENV_PROBE"):
        command = [os.environ["CHECK_ENV_PROBE"]]
    elif ROOT:
        return None
    else:
        command = [sys.executable, "-c", PROBE]
    done = run(command, timeout=QUICK * 3)
    try:
        found = json.loads(done["out"].strip().splitlines()[-1])
        return found if isinstance(found, dict) else None
    except (ValueError, IndexError):
        return {"timed_out": True} if done["timed_out"] else None


def collect_smi():
    """nvidia-smi: is it there, what does it say, and the GPUs as it lists them."""
    smi = {"path": shutil.which("nvidia-smi"), "ok": None, "error": None, "cuda": None}
    if not smi["path"] and os.path.exists(at_root("/usr/lib/wsl/lib/nvidia-smi")):
        smi["path"] = at_root("/usr/lib/wsl/lib/nvidia-smi")
    gpus = []
    if not smi["path"]:
        return smi, gpus, None
    plain = run([smi["path"]])
    smi["ok"] = plain["rc"] == 0
    smi["cuda"] = first_match(r"CUDA Version:\s*(\d+\.\d+)", plain["out"])
    if not smi["ok"]:
        said = (plain["out"] + plain["err"]).strip()
        smi["error"] = (
            "no answer within %g s" % QUICK
            if plain["timed_out"]
            else said[:600] or "exit code %s" % plain["rc"]
        )
        return smi, gpus, None
    fields = [
        "index",
        "name",
        "driver_version",
        "memory.total",
        "compute_mode",
        "mig.mode.current",
        "compute_cap",
    ]
    version = None
    for count in (7, 6, 5):  # older drivers do not know the last ones
        done = run(
            [
                smi["path"],
                "--query-gpu=" + ",".join(fields[:count]),
                "--format=csv,noheader,nounits",
            ]
        )
        if done["rc"] == 0:
            break
    slices = run([smi["path"], "-L"])["out"]
    mig_devices = len(re.findall(r"^\s+MIG ", slices, re.MULTILINE))
    for line in done["out"].splitlines() if done["rc"] == 0 else []:
        cells = [c.strip() for c in line.split(",")]
        if len(cells) < 5:
            continue
        version = cells[2]
        gpu = {
            "index": int(cells[0]) if cells[0].isdigit() else None,
            "name": cells[1],
            "memory_mib": int(cells[3]) if cells[3].isdigit() else None,
            "compute_mode": cells[4],
            "mig": cells[5] == "Enabled" if len(cells) > 5 else None,
            "cc": cells[6] if len(cells) > 6 and re.match(r"\d+\.\d", cells[6]) else None,
        }
        gpu["mig_devices"] = mig_devices if gpu["mig"] else None
        gpus.append(gpu)
    return smi, gpus, version


def collect_driver(system):
    smi, gpus, version = collect_smi()
    probe = probe_driver()
    text = read_text("/proc/driver/nvidia/version")
    module = first_match(r"Kernel Module.*?\s(\d{3}\.\d+(?:\.\d+)?)\b", text)
    modules = read_text("/proc/modules")
    libraries = find_libcuda()
    loaded = libraries[0] if libraries else None
    if probe and probe.get("path"):
        kinds = {entry["path"]: entry for entry in libraries}
        real = {os.path.realpath(entry["path"]): entry for entry in libraries}
        loaded = (
            kinds.get(probe["path"])
            or real.get(os.path.realpath(probe["path"]))
            or {
                "path": probe["path"],
                "kind": (
                    "compat"
                    if "/compat" in probe["path"]
                    else "stub" if "/stubs" in probe["path"] else "driver"
                ),
                "version": first_match(r"\.so\.(\d{3}[\d.]*)$", probe["path"]),
            }
        )
    if probe and probe.get("load_error"):
        loaded = None
    licence = None
    if text and "Open Kernel Module" in text:
        licence = "Dual MIT/GPL"
    elif shutil.which("modinfo") and (module or system["nvidia_pci_devices"]):
        licence = run(["modinfo", "-F", "license", "nvidia"])["out"].strip() or None
    number = (probe or {}).get("driver_version")
    cuda = "%d.%d" % (number // 1000, number % 1000 // 10) if number else smi["cuda"]
    init = (probe or {}).get("init_error")
    count = (probe or {}).get("device_count")
    usable = any(entry["kind"] != "stub" for entry in libraries) or bool(number)
    kernel_side = bool(module) or system["wsl"] or system["jetson"]
    present = smi["ok"] is True or init == 0 or (usable and kernel_side)
    if not gpus:
        gpus = list((probe or {}).get("devices") or [])
    for gpu in gpus:
        if (
            gpu.get("cc") is None
        ):  # an old nvidia-smi: the driver itself knows, if it lists the same card
            same = [d for d in (probe or {}).get("devices") or [] if d["name"] == gpu["name"]]
            gpu["cc"] = same[0]["cc"] if same else None
    driver = {
        "present": present,
        "version": version or module,
        "cuda": cuda,
        "module_version": module,
        "module_loaded": (
            None if modules is None else bool(re.search(r"^nvidia ", modules, re.MULTILINE))
        ),
        "uvm_loaded": (
            None if modules is None else bool(re.search(r"^nvidia_uvm ", modules, re.MULTILINE))
        ),
        "module_license": licence,
        "library_version": (loaded or {}).get("version"),
        "loaded_libcuda": loaded,
        "libcuda": libraries,
        "device_nodes": sorted(os.path.basename(p) for p in glob.glob(at_root("/dev/nvidia*"))),
        "init_error": init,
        "device_count": count,
        "probe_timed_out": bool((probe or {}).get("timed_out")),
        "smi": smi,
    }
    return driver, gpus


def nvcc_candidates():
    paths = [
        os.path.join(folder, "nvcc")
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder
    ]
    on_path = len(paths)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            paths.append(os.path.join(os.environ[name], "bin", "nvcc"))
    for pattern in (
        "/usr/local/cuda*/bin/nvcc",
        "/opt/cuda*/bin/nvcc",
        "/usr/lib/cuda/bin/nvcc",
        "/usr/lib/nvidia-cuda-toolkit/bin/nvcc",
    ):
        paths += sorted(glob.glob(at_root(pattern)))
    seen, found = set(), []
    for position, path in enumerate(paths):
        real = os.path.realpath(path)
        if os.path.isfile(real) and os.access(real, os.X_OK) and real not in seen:
            seen.add(real)
            found.append((path, real, position < on_path))
    return found[:8]


def collect_toolkits():
    toolkits = []
    for path, real, on_path in nvcc_candidates():
        text = run([path, "--version"])
        release = first_match(r"release (\d+\.\d+)", text["out"])
        archs = re.findall(r"compute_(\d+)", run([path, "--list-gpu-arch"])["out"])
        if not archs and release:  # before 11.5 the option does not exist
            archs = sorted(set(re.findall(r"'compute_(\d+)'", run([path, "--help"])["out"])))
        home = os.path.dirname(os.path.dirname(real))
        limit = None
        for header in (
            [home + "/include/crt/host_config.h"]
            + glob.glob(home + "/targets/*/include/crt/host_config.h")
            + [at_root("/usr/include/crt/host_config.h")]
        ):
            try:
                with open(header, errors="replace") as file:
                    limit = first_match(r"__GNUC__ > (\d+)", file.read())
                break
            except OSError:
                continue
        toolkits.append(
            {
                "path": path,
                "version": release,
                "build": first_match(r"V(\d+\.\d+\.\d+)", text["out"]),
                "first": on_path and not any(t["first"] for t in toolkits),
                "archs": archs or None,
                "gcc_max": int(limit) if limit else None,
                "error": (
                    None
                    if release
                    else (
                        "no answer within %g s" % QUICK
                        if text["timed_out"]
                        else (text["out"] + text["err"]).strip()[:300] or "no version"
                    )
                ),
            }
        )
    return toolkits


def collect_compilers():
    """The host compilers; the first is the one nvcc takes."""
    wanted = [os.environ["NVCC_CCBIN"]] if os.environ.get("NVCC_CCBIN") else []
    wanted += ["g++", "clang++"] + ["g++-%d" % n for n in range(15, 8, -1)]
    found = []
    for name in wanted:
        path = shutil.which(name)
        if not path or os.path.realpath(path) in [f["real"] for f in found]:
            continue
        text = run([path, "--version"])["out"]
        version = run([path, "-dumpfullversion", "-dumpversion"])["out"].strip() or first_match(
            r"(\d+\.\d+\.\d+)", text
        )
        found.append(
            {
                "name": name,
                "path": path,
                "version": version,
                "kind": "clang" if "clang" in text else "gcc",
                "first": not found,
                "real": os.path.realpath(path),
            }
        )
    for entry in found:
        del entry["real"]
    return found


def compile_and_run(command, run_it):
    """Compiles the test kernel with a compiler command; ok, error, seconds."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check_env.") as folder:
        source, target = os.path.join(folder, "answer.cu"), os.path.join(folder, "answer")
        with open(source, "w") as file:
            file.write(TEST_KERNEL)
        done = run(command + [source, "-o", target] + ([] if run_it else ["-c"]), timeout=SLOW)
        result = {"ok": done["rc"] == 0, "ran": False, "error": None}
        if not result["ok"]:
            text = (done["err"] + "\n" + done["out"]).replace(folder + "/", "").strip()
            result["error"] = "no end within %g s" % SLOW if done["timed_out"] else text[:3000]
        elif run_it:
            done = run([target], timeout=SLOW)
            result["ran"] = True
            result["ok"] = done["rc"] == 0 and done["out"].strip().endswith("42")
            if not result["ok"]:
                result["error"] = (
                    "no end within %g s" % SLOW
                    if done["timed_out"]
                    else (done["out"] + done["err"]).strip()[:600]
                    or ("it ended with code %s" % done["rc"])
                )
        result["seconds"] = round(time.monotonic() - start, 1)
    return result


def header_test(facts):
    """Does nvcc compile a file with <cmath> and <vector>? None without nvcc or host compiler."""
    first = next((t for t in facts["toolkits"] if t["first"] and t["version"]), None)
    return compile_and_run([first["path"]], False) if first and facts["host_compilers"] else None


def kernel_test(facts):
    """One real kernel, built as machine code for the GPUs here where nvcc can."""
    first = next((t for t in facts["toolkits"] if t["first"] and t["version"]), None)
    if not first or not facts["gpus"]:
        return None
    numbers = {(gpu.get("cc") or "").replace(".", "") for gpu in facts["gpus"]}
    flags = []
    for number in sorted(numbers & set(first["archs"] or [])):
        flags += ["-gencode", "arch=compute_%s,code=sm_%s" % (number, number)]
    return compile_and_run([first["path"]] + flags, True)


def cpu_backend_test():
    """The same kernel with the suite's CPU backend; None where its compiler script is missing."""
    script = os.environ.get("CHECK_ENV_NVCC_CPU") or os.path.join(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "nvcc-cpu"
    )
    if not os.path.exists(script) or not shutil.which("g++"):
        return None
    return compile_and_run([script], True)


def collect_python():
    """PyTorch and numba of the first python3 on PATH."""
    python = shutil.which("python3") or shutil.which("python")
    if not python:
        return None, None
    done = run([python, "-c", TORCH_PROBE], timeout=SLOW)
    text = first_match(r"^FACTS(.*)$", done["out"])
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = {}
    if done["timed_out"]:
        return {"version": None, "error": "importing it took longer than %g s" % SLOW}, None
    return found.get("torch"), found.get("numba")


def collect_libraries():
    return [
        {"name": name, "path": path}
        for name, path in linker_cache(r"lib(?:cudart|cublas|cudnn|nvrtc)\.so\.\d+")
    ]


def collect():
    """All facts but the final kernel, which runs only when nothing else is wrong."""
    system = collect_system()
    driver, gpus = collect_driver(system)
    facts = {
        "schema": SCHEMA,
        "system": system,
        "driver": driver,
        "gpus": gpus,
        "env": {name: os.environ[name] for name in KEPT_ENV if name in os.environ},
        "toolkits": collect_toolkits(),
        "host_compilers": collect_compilers(),
        "libraries": collect_libraries(),
    }
    facts["torch"], facts["numba"] = collect_python()
    facts["header_test"] = header_test(facts)
    facts["kernel_test"] = None
    facts["cpu_backend"] = cpu_backend_test() if not gpus else None
    return facts


def anonymous(value, home=None, user=None):
    """The same facts without names: home folders become ~, the user name <user>."""
    home = home if home is not None else os.path.expanduser("~")
    user = user if user is not None else os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if isinstance(value, dict):
        return {key: anonymous(item, home, user) for key, item in value.items()}
    if isinstance(value, list):
        return [anonymous(item, home, user) for item in value]
    if isinstance(value, str):
        if len(home) > 1:
            value = value.replace(home, "~")
        value = re.sub(r"/(home|Users|users|scratch|work|data)/[^/\s:]+", "~", value)
        if len(user) > 2 and user != "root":
            value = re.sub(r"(?<![\w-])%s(?![\w-])" % re.escape(user), "<user>", value)
        value = re.sub(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}", r"\1-<uuid>", value)
    return value
