"""Judges facts: a pure function from a dict of facts to a list of diagnoses. Asks no machine, reads
no file.

The rules of this file look at the machine itself, in the order in which faults hide each other:
driver, libraries, GPU, toolkit, compiler, PyTorch, and last a real kernel. A rule that lacks a fact
does not fire. Facts that exclude each other are reported, not averaged.
"""

import copy
import re

import errors
import reported
import tables
import view
from reported import (
    Diagnosis,
    NO_GPU,
    NOTE,
    PROBLEM,
    TEXT_RULES,
    WARNING,
    from_table,
    gpu_words,
    short_driver,
    sm,
)
from tables import dotted
from view import view_of


def rule_driver(v):
    """1. Is there a driver?"""
    if not v.no_driver:
        return None
    if v.report:
        return reported.missing_driver(v)
    hardware = bool(v.pci_gpu) or bool(v.gpus) or bool(v.module_version)
    if hardware or v.wsl:
        return reported.missing_driver(v)
    return None  # no driver and no GPU: rule_no_gpu says so


def rule_stub(v):
    """2. The stub library at run time."""
    if v.stub or v.init_error == 34:
        d = from_table(errors.recognise("34")[0])
        d.why = "Loaded: %s." % v.stub if v.stub else ""
        return d
    return None


def rule_module(v):
    """3. Kernel module against user library. A compat library differs on purpose."""
    if (
        v.module_version
        and v.library_version
        and v.module_version != v.library_version
        and not v.compat
    ):
        return reported.module_mismatch(v)
    return None


def rule_smi(v):
    """nvidia-smi is there and fails: its message says more than the numbers."""
    if not v.smi_error or v.no_driver or (v.pci_gpu == 0 and not v.gpus and not v.wsl):
        return None
    hits = [h for h in errors.recognise(v.smi_error) if not h["number"]]
    if hits:
        rule = TEXT_RULES.get(hits[0]["code"])
        return (rule(v, hits[0]) if rule else None) or from_table(hits[0])
    return Diagnosis(
        "NVIDIA_SMI_FAILS",
        "nvidia-smi fails, so the driver is in doubt.",
        "It says: %s" % errors.normal(v.smi_error)[:200],
        "sudo dmesg | grep -iE 'nvrm|xid'",
        "The toolkit.",
        severity=WARNING,
        sure=False,
    )


def rule_wsl(v):
    """A Linux driver inside WSL hides the one that comes from Windows."""
    linux_driver = re.search(r"nvidia-driver-\d|apt\S* .{0,20}nvidia|linux driver", v.hints, re.I)
    if v.wsl and (v.loaded_kind == "driver" and v.library_version or v.report and linux_driver):
        return Diagnosis(
            "WSL_LINUX_DRIVER",
            "A Linux NVIDIA driver is installed inside WSL%s."
            % (" (%s)" % v.loaded_libcuda if v.loaded_libcuda else ""),
            "In WSL the driver comes from Windows, in /usr/lib/wsl/lib; the Linux one hides it.",
            "sudo apt purge 'libnvidia-*' 'nvidia-driver-*'; in Windows: wsl --shutdown",
            "The Windows driver, the toolkit and the program.",
            sure=not v.report,
        )
    return None


def rule_compat(v):
    """4. A compat library in place of the driver's own."""
    if v.no_driver:
        return None
    own = tables.branch_cuda(v.driver_branch)
    higher = own and v.smi_cuda and v.smi_cuda > own and not (v.jetson or v.wsl)
    if v.init_error == 804:
        return reported.compat_on_geforce(v, errors.recognise("804")[0])
    if v.init_error == 803:
        return reported.driver_mismatch(v, errors.recognise("803")[0])
    allowed = tables.forward_compat_allowed(v.gpu_name)
    if (v.compat or higher) and allowed is False:
        return reported.compat_on_geforce(v, None)
    if (
        v.compat
        and v.library_version
        and v.driver_branch
        and (tables.driver_branch(v.library_version) or 999) < v.driver_branch
    ):
        return Diagnosis(
            "COMPAT_LIB_SHADOWS_DRIVER",
            "An older libcuda from %s comes before the driver's own." % v.compat,
            "It is %s; the driver is %s, which needs no compat library."
            % (v.library_version, short_driver(v)),
            "Take %s off LD_LIBRARY_PATH; check: ldconfig -p | grep libcuda" % v.compat,
            "The driver and the toolkit.",
        )
    if v.compat or higher:
        return Diagnosis(
            "COMPAT_LIB_IN_USE",
            "A forward-compatibility libcuda is in use%s."
            % (" (%s)" % v.compat if v.compat else ""),
            (
                "nvidia-smi shows CUDA %s; driver %s by itself offers %s. That is allowed on"
                " data-centre GPUs." % (dotted(v.smi_cuda), short_driver(v), dotted(own))
                if higher
                else "That is allowed on data-centre GPUs."
            ),
            severity=WARNING,
            sure=False,
        )
    return None


def rule_devices(v):
    """5. A driver, but no GPU to be seen."""
    found = reported.dropped_gpu(v) or reported.old_driver_for_gpu(v)
    if found:
        return found
    if v.no_driver or v.report:
        return None
    zero = v.device_count == 0 or v.init_error == 100
    if zero and v.visible_devices is not None:
        return reported.hidden_gpu(v)
    if any(g.get("mig") and not g.get("mig_devices") for g in v.gpus) and zero:
        return Diagnosis(
            "MIG",
            "The GPU is in MIG mode and has no slice, so CUDA sees no device.",
            "MIG is enabled, and nvidia-smi -L shows no MIG device.",
            "Ask the administrator for a slice (sudo nvidia-smi mig -cgi ... -C), or for MIG to be"
            " switched off",
            "The driver and the toolkit.",
        )
    if zero and v.slurm and not v.in_job:
        return None
    if zero and (v.pci_gpu or v.gpus):
        if v.module_license and re.search("nvidia", v.module_license, re.IGNORECASE):
            d = from_table(next(h for h in errors.recognise("No devices were found")))
            d.why = "The loaded module is the proprietary one (licence %s)." % v.module_license
            d.sure = False
            return d
        d = from_table(errors.recognise("100")[0])
        d.sure = False
        return d
    return None


def rule_init(v):
    """6. The driver answers with an error of its own."""
    if v.init_error in (None, 0, 34, 100, 803, 804) or v.no_driver:
        return None
    hits = errors.recognise(str(v.init_error))
    if not hits:
        return Diagnosis(
            "CUDA_ERROR_%d" % v.init_error,
            "cuInit fails with error %d, which is not in the table." % v.init_error,
            "",
            "sudo dmesg | grep -iE 'nvrm|xid'",
            "",
            sure=False,
        )
    hit = next((h for h in hits if not h["old_number"]), hits[0])
    rule = TEXT_RULES.get(hit["number"])
    return rule(v, hit) if rule else from_table(hit)


def rule_mode(v):
    modes = [str(g.get("compute_mode") or "").lower() for g in v.gpus]
    if modes and all("prohibited" in m for m in modes):
        return reported.busy(v, errors.recognise("46")[0])
    return None


def builds_for(toolkit, cc):
    """Can this nvcc make anything that runs on the GPU directly? (exact, can, None) by its own list
    or by the table."""
    archs = toolkit.get("archs")
    known_archs = (
        [tables.parse_cc(a) for a in archs if tables.parse_cc(a)]
        if isinstance(archs, list)
        else None
    )
    if not known_archs:
        version = tables.version(toolkit.get("version"))
        known_archs = tables.toolkit_archs(version) if version else None
    if not known_archs or not cc:
        return None, None, known_archs
    return cc in known_archs, any(a[0] == cc[0] and a <= cc for a in known_archs), known_archs


def rule_toolkit(v):
    """7. Which nvcc, and does it know the GPU?"""
    if v.report:
        if v.toolkit and v.cc and not v.flags:
            return toolkit_against_gpu(v, v.toolkits[0])
        return None
    first = next((t for t in v.toolkits if t.get("first")), None)
    if first and not first.get("version"):
        return Diagnosis(
            "NVCC_FAILS",
            "The first nvcc on PATH (%s) does not answer." % first.get("path"),
            "It says: %s" % (errors.normal(first.get("error") or "nothing")[:200]),
            "Remove it from PATH or repair it; others here: %s"
            % (", ".join(str(t.get("path")) for t in v.toolkits if t is not first) or "none"),
            "The driver.",
        )
    if first is None:
        if v.toolkits:
            folder = str(v.toolkits[0].get("path") or "/usr/local/cuda/bin/nvcc").rsplit("/", 1)[0]
            return Diagnosis(
                "NVCC_NOT_ON_PATH",
                "nvcc is installed, but not on PATH.",
                "Found: %s." % ", ".join(str(t.get("path")) for t in v.toolkits),
                "export PATH=%s:$PATH (and put it into ~/.bashrc)" % folder,
                "Nothing needs to be installed.",
            )
        if v.gpus:
            return Diagnosis(
                "NO_NVCC",
                "There is a GPU and a driver, and no CUDA compiler (nvcc).",
                "nvidia-smi's CUDA version is what the driver can run; it does not bring a"
                " compiler.%s"
                % (" PyTorch's own CUDA libraries do not either." if v.torch else ""),
                "Install the toolkit (https://developer.nvidia.com/cuda-downloads), at most CUDA %s"
                " for this driver; until then make BACKEND=cpu" % dotted(v.driver_cuda),
                "The driver.",
            )
        return None
    return toolkit_against_gpu(v, first)


def toolkit_against_gpu(v, first):
    exact, can, archs = builds_for(first, v.cc)
    if exact is not False:
        return None
    version, name = first.get("version") or "of unknown version", gpu_words(v)
    other = next((t for t in v.toolkits if t is not first and builds_for(t, v.cc)[0]), None)
    path = (
        "export PATH=%s:$PATH (the nvcc there is %s and knows it)"
        % (str(other.get("path")).rsplit("/", 1)[0], other.get("version"))
        if other
        else ""
    )
    want = tables.ARCH_TOOLKITS.get(v.cc)
    where = " (%s)" % first["path"] if first.get("path") else ""
    if v.cc < min(archs):
        return Diagnosis(
            "TOOLKIT_DROPPED_ARCH",
            "nvcc %s%s no longer builds for %s." % (version, where, name),
            "Its oldest architecture is %s%s."
            % (
                sm(min(archs)),
                (
                    "; CUDA %s was the last one with %s" % (dotted(want[1]), sm(v.cc))
                    if want and want[1]
                    else ""
                ),
            ),
            path
            or (
                "Install toolkit %s beside it" % dotted(want[1])
                if want and want[1]
                else "Use an older toolkit"
            ),
            "The driver.",
        )
    if not want:
        return Diagnosis(
            "GPU_NOT_KNOWN_HERE",
            "nvcc %s does not list %s." % (version, name),
            "Compute capability %s is not in this script's tables either." % dotted(v.cc),
            "nvcc --list-gpu-arch; look for a newer toolkit",
            "The driver.",
            sure=False,
        )
    near = [a for a in archs if a[0] == v.cc[0] and a < v.cc and a not in tables.TEGRA]
    older = [a for a in archs if a < v.cc and a not in tables.TEGRA]
    hint = (
        "; until then build for sm_%s, which runs on it: make SMS=%s"
        % ((tables.arch_number(max(near)),) * 2)
        if near
        else (
            "; until then PTX for compute_%s, which the driver compiles: nvcc -arch=compute_%s"
            % ((tables.arch_number(max(older)),) * 2)
            if older
            else ""
        )
    )
    return Diagnosis(
        "TOOLKIT_TOO_OLD",
        "nvcc %s%s is too old for %s." % (version, where, name),
        "%s exists since CUDA %s.%s"
        % (
            sm(v.cc),
            dotted(want[0]),
            (
                " nvidia-smi's CUDA %s is the driver's, not the compiler's." % dotted(v.smi_cuda)
                if v.smi_cuda and v.smi_cuda >= want[0]
                else ""
            ),
        ),
        (path or "Install toolkit %s or newer" % dotted(want[0])) + hint,
        "The driver.",
    )


def rule_two_toolkits(v):
    """Two toolkits are no fault, but a frequent surprise."""
    versions = {t.get("version") for t in v.toolkits if t.get("version")}
    first = next((t for t in v.toolkits if t.get("first")), None)
    home = next(
        (t for t in v.toolkits if v.cuda_home and str(t.get("path")).startswith(v.cuda_home + "/")),
        None,
    )
    if first and home and home is not first and home.get("version") != first.get("version"):
        return Diagnosis(
            "TWO_TOOLKITS",
            "CUDA_HOME names toolkit %s, and the first nvcc on PATH is %s (%s)."
            % (home.get("version"), first.get("version"), first.get("path")),
            "Make and the shell take the one on PATH, PyTorch and some build "
            "systems the one of CUDA_HOME.",
            "export CUDA_HOME=<folder of the one you want> PATH=$CUDA_HOME/bin:$PATH",
            "",
            severity=WARNING,
        )
    if len(versions) > 1 and first:
        others = ", ".join(
            "%s (%s)" % (t.get("version"), t.get("path")) for t in v.toolkits if t is not first
        )
        return Diagnosis(
            "TWO_TOOLKITS",
            "Several toolkits are installed; the first on PATH counts: %s (%s)."
            % (first.get("version"), first.get("path")),
            "Also here: %s." % others,
            "export PATH=<folder of the one you want>/bin:$PATH",
            "",
            severity=WARNING,
        )
    return None


def rule_host_compiler(v):
    """8. gcc against host_config.h, then a real compile."""
    test = v.header_test
    if test and test.get("ok") is True:
        return None
    if v.has_cxx is False:
        return Diagnosis(
            "HOST_COMPILER_MISSING",
            "There is no C++ compiler.",
            "nvcc needs one for the CPU's part, and so does the CPU backend.",
            "sudo apt install g++ make (or the distribution's packages)",
            "The driver and the toolkit.",
        )
    if test and test.get("ok") is False and test.get("error"):
        text = str(test["error"])
        for hit in errors.recognise(text):
            if hit["code"] in ("GLIBC_HEADER_CLASH", "HOST_GCC_TOO_NEW"):
                saved, v.text = v.text, text
                try:
                    return TEXT_RULES[hit["code"]](v, hit)
                finally:
                    v.text = saved
            return from_table(hit, why_first="nvcc says: " + hit["quote"])
        return Diagnosis(
            "COMPILE_TEST_FAILS",
            "nvcc cannot compile a file that only includes <cmath> and <vector>.",
            "It says: " + errors.normal(text)[:300],
            "nvcc -c on such a file shows the whole message",
            "The driver.",
            sure=False,
        )
    limit = v.gcc_max or tables.gcc_limit(v.toolkit)
    if v.gcc and limit and v.gcc > limit:
        d = reported.gcc_too_new(v, None)
        d.sure = v.gcc_max is not None
        d.missing = "" if d.sure else "the limit in this toolkit's own crt/host_config.h"
        return d
    if (
        v.report
        and v.glibc
        and v.toolkit
        and (
            (v.glibc >= (2, 41) and v.toolkit < (13, 0))
            or (v.glibc >= (2, 42) and v.toolkit < (13, 2))
        )
    ):
        d = reported.glibc_clash(v, None)
        d.what, d.sure, d.missing = (
            "glibc %s is newer than the headers of CUDA %s expect."
            % (dotted(v.glibc), dotted(v.toolkit)),
            False,
            "a real compile; distributions patch the headers",
        )
        return d
    return None


def rule_cpu_backend(v):
    """Without a GPU the CPU backend is what runs."""
    if v.cpu_backend and v.cpu_backend.get("ok") is False and v.has_cxx:
        return Diagnosis(
            "CPU_BACKEND_FAILS",
            "The CPU backend cannot build or run a small kernel.",
            "It says: %s" % errors.normal(v.cpu_backend.get("error") or "nothing")[:300],
            "make -C 02_saxpy BACKEND=cpu shows the whole message",
            "The driver.",
        )
    return None


def rule_runtime(v):
    """9. The toolkit's runtime against the driver."""
    made, whose = v.toolkit, "nvcc %s" % dotted(v.toolkit)
    if v.report and made is None and v.torch and v.torch["cuda"]:
        made, whose = v.torch["cuda"], reported.torch_words(v)
    if not made or not v.driver_cuda or v.no_driver:
        return None
    if v.driver_cuda[0] < made[0]:
        return Diagnosis(
            "DRIVER_TOO_OLD",
            "The driver is too old for programs from %s." % whose,
            "%s offers CUDA %s; CUDA %d programs need driver %s or newer (error 35)."
            % (
                "Driver " + short_driver(v) if v.driver_text else "The driver",
                dotted(v.driver_cuda),
                made[0],
                tables.MAJOR_MIN_BRANCH.get(made[0], "of that version"),
            ),
            "Update the driver, or use a toolkit of CUDA %d (%s or older)"
            % (v.driver_cuda[0], dotted(v.driver_cuda)),
            "The GPU and the source.",
        )
    if v.driver_cuda < made and not (v.compat or (v.smi_cuda and v.smi_cuda >= made)):
        return Diagnosis(
            "DRIVER_TOO_OLD_FOR_PTX",
            "The driver is older than %s, inside the same major version." % whose,
            "Machine code runs; PTX from CUDA %s does not (error 222), because the driver compiles"
            " PTX up to CUDA %s." % (dotted(made), dotted(v.driver_cuda)),
            "Build machine code for your GPU: make SMS=%s (make does that by itself where it sees"
            " the GPU)" % (tables.arch_number(v.cc) if v.cc else "86"),
            "Driver and toolkit can stay.",
            severity=WARNING,
        )
    return None


def rule_build(v):
    """10. The flags of the build against the GPU (in a report; scripts/inspect does it for a
    file)."""
    if (
        v.flags
        and v.cc
        and not (v.torch and v.torch["arch_list"])
        and reported.covers(v.flags, v.cc) is False
    ):
        return reported.no_image(v, errors.recognise("209")[0])
    return None


def rule_torch(v):
    """11. PyTorch: a CPU wheel, a list without the GPU, another CUDA major than nvcc."""
    if not v.torch:
        return None
    if v.torch["cpu"]:
        if not v.gpus and not v.report:
            return None
        return Diagnosis(
            "TORCH_CPU_WHEEL",
            "The installed PyTorch (%s) is built for the CPU only." % v.torch["version"],
            "It cannot use any GPU, whatever driver and toolkit are there.",
            "pip uninstall torch; pip install torch --index-url https://download.pytorch.org/whl/%s"
            % wheel_tag(v),
            "The driver and the toolkit.",
        )
    if (
        v.torch["arch_list"]
        and (v.cc or v.cc_major is not None)
        and reported.covers(v.torch["arch_list"], v.cc) is not True
    ):
        found = reported.wheel_lacks(v, None)
        if found:
            return found
    if v.report and not v.torch["arch_list"] and v.torch["cuda"] and v.cc_major is not None:
        tag, cc = v.torch["cuda"], v.cc or (v.cc_major, 0)
        if (cc[0] >= 12 or cc[0] == 10) and tag < (12, 8) or cc[0] < 7 and tag >= (12, 8):
            return reported.wheel_lacks(v, None)
    if v.torch["cuda"] and v.toolkit and v.torch["cuda"][0] != v.toolkit[0]:
        return Diagnosis(
            "TORCH_TOOLKIT_MAJOR_MISMATCH",
            "PyTorch is built with CUDA %s, nvcc is %s."
            % (dotted(v.torch["cuda"]), dotted(v.toolkit)),
            "PyTorch itself runs. Extensions refuse to build: they need the same major version.",
            "For extensions only: export CUDA_HOME=/usr/local/cuda-%d.x of PyTorch's major version,"
            " or the PyTorch wheel for CUDA %d" % (v.torch["cuda"][0], v.toolkit[0]),
            "The driver.",
            severity=WARNING,
        )
    return None


def wheel_tag(v):
    if v.cc and v.cc[0] >= 10:
        return "cu128"
    return "cu126"


def rule_numba(v):
    if v.numba and v.gpus and v.numba.get("version") and v.numba.get("cuda_available") is False:
        return Diagnosis(
            "NUMBA_SEES_NO_GPU",
            "numba %s does not find a usable CUDA." % v.numba["version"],
            str(
                v.numba.get("error")
                or "It needs the toolkit's libnvvm and a driver that is not older."
            ),
            "python -m numba -s | grep -i -A12 cuda; pip install numba-cuda",
            "The driver.",
            severity=WARNING,
        )
    return None


def rule_kernel(v):
    """12. The proof: a real kernel."""
    test = v.kernel_test
    if not test or test.get("ok") is not False:
        return None
    hits = errors.recognise(str(test.get("error") or ""))
    if hits:
        rule = TEXT_RULES.get(hits[0]["number"]) or TEXT_RULES.get(hits[0]["code"])
        d = (rule(v, hits[0]) if rule else None) or from_table(hits[0])
        d.why = ("A one-thread kernel fails with: %s. " % hits[0]["quote"]) + d.why
        return d
    return Diagnosis(
        "TEST_KERNEL_FAILS",
        "Everything looks right, and a one-thread kernel still does not run.",
        "It says: %s" % (errors.normal(test.get("error") or "nothing")[:300]),
        "sudo dmesg | grep -iE 'nvrm|xid'; reboot; try another GPU with CUDA_VISIBLE_DEVICES=1",
        "",
        sure=False,
    )


def rule_contradictions(v):
    """Facts that exclude each other."""
    by_name = tables.cc_of_name(v.gpu_name) if v.gpu_name else None
    if v.cc and by_name and by_name != v.cc and not re.search(r"\bnot\b", v.gpu_name or ""):
        return Diagnosis(
            "FACTS_CONTRADICT",
            "%s has compute capability %s; the facts say %s."
            % (v.gpu_name, dotted(by_name), dotted(v.cc)),
            "One of the two is from another GPU.",
            "nvidia-smi --query-gpu=name,compute_cap --format=csv",
            "",
            severity=WARNING,
            sure=False,
        )
    if v.no_driver and not v.report and any(g.get("memory_mib") for g in v.gpus):
        return Diagnosis(
            "FACTS_CONTRADICT",
            "The facts list a GPU with its memory and say that there is no driver.",
            "Only a driver can tell the memory.",
            "scripts/check_env --save FILE on that machine, once more",
            "",
            severity=WARNING,
            sure=False,
        )
    if v.driver_branch and v.smi_cuda and not v.compat:
        own = tables.branch_cuda(v.driver_branch)
        if own and v.smi_cuda < own and v.smi_cuda[0] < own[0]:
            return Diagnosis(
                "FACTS_CONTRADICT",
                "Driver %s offers CUDA %s by itself; the facts say %s."
                % (short_driver(v), dotted(own), dotted(v.smi_cuda)),
                "Two machines or a number from elsewhere?",
                "nvidia-smi",
                "",
                severity=WARNING,
                sure=False,
            )
    if v.kernel_test and v.kernel_test.get("ok") is True and v.no_driver:
        return Diagnosis(
            "FACTS_CONTRADICT",
            "A kernel ran, and the facts say that there is no driver.",
            "",
            "scripts/check_env --save FILE, once more",
            "",
            severity=WARNING,
            sure=False,
        )
    return None


def rule_no_gpu(v):
    """Nothing broken: a machine without a GPU, on which building works."""
    if v.pci_gpu or v.module_version or (v.wsl and v.no_driver):
        return None
    if (
        v.report
        or v.gpus
        or (v.device_count or 0) > 0
        or (v.kernel_test and v.kernel_test.get("ok"))
    ):
        return None
    if (
        v.driver_text is None
        and v.no_driver is None
        and v.device_count is None
        and v.pci_gpu is None
    ):
        return None
    first = next((t for t in v.toolkits if t.get("first")), None)
    run = "make BACKEND=cpu run (builds and runs every lesson on this CPU)"
    if first:
        run += '; make BACKEND=cuda SMS="80 90" (nvcc %s builds for GPUs elsewhere)' % first.get(
            "version"
        )
    keep = "Nothing needs to be installed for that."
    if v.slurm:
        job = " in this job" if v.in_job else " on this login node"
        return Diagnosis(
            "LOGIN_NODE" if not v.in_job else "JOB_WITHOUT_GPU",
            "There is no GPU%s; Slurm hands them out." % job,
            "Slurm's commands are here, and no NVIDIA GPU is.",
            "srun --gres=gpu:1 --pty bash (your site may want --partition or --account), "
            "then check_env again there; here: " + run,
            keep,
            severity=NO_GPU,
        )
    why = (
        "No NVIDIA device on the PCI bus and no driver."
        if v.no_driver
        else "The driver shows no device."
    )
    if v.container:
        why += (
            " This is a container (%s): if its host has a GPU, the container was started"
            " without it." % v.container
        )
        run += "; with a GPU in the host: docker run --gpus all"
    return Diagnosis(
        "NO_GPU",
        "This machine has no NVIDIA GPU that can be seen.",
        why,
        run,
        keep,
        severity=NO_GPU,
    )


def rule_other_gpus(v):
    """The rules above look at the first GPU; the others may be of another kind."""
    for gpu in v.gpus[1:]:
        if gpu["cc"] in (None, v.cc):
            continue
        other = copy.copy(v)
        other.gpu_name, other.cc, other.cc_major = gpu["name"], gpu["cc"], gpu["cc"][0]
        for rule in (reported.dropped_gpu, reported.old_driver_for_gpu, rule_toolkit, rule_torch):
            found = rule(other)
            if found and found.severity == PROBLEM:
                found.severity = WARNING
                return found
    return None


ORDER = [
    rule_driver,
    rule_stub,
    rule_wsl,
    rule_module,
    rule_smi,
    rule_compat,
    rule_devices,
    rule_init,
    rule_mode,
    rule_toolkit,
    rule_host_compiler,
    rule_cpu_backend,
    rule_runtime,
    rule_build,
    rule_torch,
    rule_other_gpus,
    rule_kernel,
    rule_no_gpu,
    rule_two_toolkits,
    rule_numba,
    rule_contradictions,
]


def judge(facts):
    """The diagnoses, the one to act on first. Raises BadFacts for facts of no known shape."""
    v = view_of(facts)
    found = []
    if v.text:
        first = reported.judge_text(v)
        if first:
            found.append(first)
    for rule in ORDER:
        if rule is rule_numba and any(f.severity == PROBLEM for f in found):
            continue  # it would only repeat what hides the GPU
        d = rule(v)
        if (
            d
            and d.code not in [f.code for f in found]
            and not (d.code == "FACTS_CONTRADICT" and any(f.what == d.what for f in found))
        ):
            found.append(d)
    if v.text and not any(d.severity == PROBLEM for d in found):
        found += [from_table(hit) for hit in errors.recognise(v.text)[:1] if not found]
    unknown_text = v.text and not errors.recognise(v.text)
    if unknown_text and not any(d.severity == PROBLEM for d in found):
        found.append(
            Diagnosis(
                "UNDECIDED",
                "The error text is not one that is known here, and the other facts show no fault.",
                "Not given: %s." % (", ".join(view.not_given(v)) or "nothing"),
                "Send more lines of the output, from the first error on; scripts/check_env --save"
                " facts.json on that machine",
                sure=False,
            )
        )
    elif unknown_text:
        found.append(
            Diagnosis(
                "TEXT_NOT_KNOWN",
                "The error text is not one that is known here; the diagnosis rests on the other"
                " facts.",
                severity=NOTE,
                sure=False,
            )
        )
    found.sort(
        key=lambda d: 0 if d.severity in (PROBLEM,) else 1
    )  # stable: keeps the order of the rules
    return found


def exit_code(diagnoses):
    if any(d.severity == PROBLEM for d in diagnoses):
        return 1
    return 2 if any(d.severity == NO_GPU for d in diagnoses) else 0
