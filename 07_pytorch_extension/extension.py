"""What setup.py and load.py compile, and for which GPUs: one place, so that they cannot differ.

Run by itself it checks this machine and says in one line what would be built, or what is missing:

    python3 extension.py        exit code 0: it can be built; 2: it cannot, and why
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXIT_WAIVED = 2


class CannotBuild(Exception):
    """The reason, and what to do about it, in one line."""


def import_torch():
    try:
        import torch
    except ImportError as error:
        if getattr(error, "name", None) != "torch":
            raise CannotBuild(f"PyTorch is installed in {sys.executable} but does not start: {error}")
        raise CannotBuild(f"PyTorch is not installed in {sys.executable}: choose another one "
                          "(make torch PYTHON=...), or install it: https://pytorch.org/get-started")
    return torch


def nvcc_version(cuda_home):
    """The version of the toolkit, as (13, 0); None when there is none."""
    try:
        text = subprocess.run([os.path.join(cuda_home or "", "bin", "nvcc"), "--version"],
                              stdout=subprocess.PIPE, universal_newlines=True).stdout
    except OSError:
        return None
    match = re.search(r"release (\d+)\.(\d+)", text)
    return match and (int(match.group(1)), int(match.group(2)))


def arch_list(sms):
    """TORCH_CUDA_ARCH_LIST for the suite's SMS: "80 90a" is "8.0;9.0a", PTX for the last plain one.

    The same choice as scripts/toolchain makes for the other lessons.
    """
    entries, plain = [], None
    for sm in sorted(sms.replace(",", " ").split(), key=lambda sm: int(re.sub(r"\D", "", sm) or 0)):
        match = re.match(r"^(?:sm_)?(\d{1,2})\.?(\d)([af]?)$", sm)
        if not match:
            raise CannotBuild(f"SMS: '{sm}' is no architecture; examples: SMS=90, SMS=\"75 80 90a\"")
        if not match.group(3):
            plain = len(entries)
        entries.append("{}.{}{}".format(*match.groups()))
    if plain is not None:
        entries[plain] += "+PTX"
    return ";".join(entries)


def choose():
    """("cuda" or "cpu", why). Sets TORCH_CUDA_ARCH_LIST where the user named SMS instead.

    Without a GPU and without a list PyTorch cannot guess: then it is the CPU alone.
    """
    torch = import_torch()
    if os.environ.get("BACKEND") == "cpu":
        return "cpu", "BACKEND=cpu (as asked)"
    if torch.version.cuda is None:
        return "cpu", f"PyTorch {torch.__version__} is a build without CUDA"
    from torch.utils.cpp_extension import CUDA_HOME
    have = nvcc_version(CUDA_HOME)
    if have is None:
        return "cpu", f"nvcc was not found (CUDA_HOME={CUDA_HOME})"
    if os.environ.get("SMS"):
        os.environ["TORCH_CUDA_ARCH_LIST"] = arch_list(os.environ["SMS"])
    elif not os.environ.get("TORCH_CUDA_ARCH_LIST") and not torch.cuda.is_available():
        return "cpu", "no GPU here; for GPUs elsewhere name them: SMS=90"
    if have[0] != int(torch.version.cuda.split(".")[0]):
        raise CannotBuild(
            f"PyTorch {torch.__version__} was built with CUDA {torch.version.cuda}, the toolkit "
            f"in {CUDA_HOME} is {have[0]}.{have[1]}: the first number must be the same. Point "
            "CUDA_HOME to such a toolkit, or install a PyTorch for yours, or BACKEND=cpu")
    return "cuda", "TORCH_CUDA_ARCH_LIST=%s, nvcc %d.%d" % (
        os.environ.get("TORCH_CUDA_ARCH_LIST", "the GPUs here"), *have)


def settings(backend):
    """The arguments that both ways in pass to PyTorch: (sources, compiler flags)."""
    sources = ["csrc/binding.cpp"]
    # -g0: Python's own flags ask for debug symbols, megabytes of them
    # -Wno-...: gcc 13 warns of accesses inside PyTorch's headers
    flags = {"cxx": ["-O3", "-g0", "-Wno-array-bounds", "-Wno-stringop-overflow"]}
    if backend == "cuda":
        sources.append("csrc/threshold_relu.cu") # includes nothing of PyTorch: compiles in seconds
        flags["cxx"].append("-DWITH_CUDA")
        flags["nvcc"] = ["-O3", "-lineinfo"]
    return sources, flags


def main():
    try:
        torch = import_torch()
        backend, why = choose()
        if not shutil.which(os.environ.get("CXX", "c++").split()[0]):
            raise CannotBuild("no C++ compiler was found: install g++, or name yours with CXX")
    except CannotBuild as reason:
        print(f"waived: {reason}", file=sys.stderr)
        return EXIT_WAIVED
    ninja = "" if shutil.which("ninja") else "; without ninja the files compile one after another"
    print(f"PyTorch {torch.__version__}, extension for {backend} ({why}){ninja}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
