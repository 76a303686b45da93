"""Which version goes with which: drivers, toolkits, PTX, architectures, compilers.

Only relations that NVIDIA publishes and that cannot be asked of the machine at hand stand here.
Whatever the machine can answer itself (the architectures of an nvcc, the limit in
crt/host_config.h, the list of a PyTorch wheel) is read from the machine, and these tables serve for
the explanation beside it. All versions are tuples of two ints; an unknown version is None, never a
guess.
"""

import re

# First driver branch of each CUDA version. A branch between two rows offers the lower one.
DRIVER_CUDA = [
    (367, (8, 0)), (384, (9, 0)), (387, (9, 1)), (396, (9, 2)), (410, (10, 0)), (418, (10, 1)),
    (440, (10, 2)), (450, (11, 0)), (455, (11, 1)), (460, (11, 2)), (465, (11, 3)), (470, (11, 4)),
    (495, (11, 5)), (510, (11, 6)), (515, (11, 7)), (520, (11, 8)), (525, (12, 0)), (530, (12, 1)),
    (535, (12, 2)), (545, (12, 3)), (550, (12, 4)), (555, (12, 5)), (560, (12, 6)), (565, (12, 7)),
    (570, (12, 8)), (575, (12, 9)), (580, (13, 0)), (590, (13, 1)), (595, (13, 2)),
]

NEWER_BRANCH = 600  # from here on the table knows nothing; nvidia-smi does

# The oldest branch that starts a program of each CUDA major (minor-version compatibility; SASS
# only).
MAJOR_MIN_BRANCH = {10: 410, 11: 450, 12: 525, 13: 580}

# PTX ISA version -> the first toolkit that writes it.
PTX_TOOLKIT = {
    (6, 0): (9, 0), (6, 1): (9, 1), (6, 2): (9, 2), (6, 3): (10, 0), (6, 4): (10, 1),
    (6, 5): (10, 2), (7, 0): (11, 0), (7, 1): (11, 1), (7, 2): (11, 2), (7, 3): (11, 3),
    (7, 4): (11, 4), (7, 5): (11, 5), (7, 6): (11, 6), (7, 7): (11, 7), (7, 8): (11, 8),
    (8, 0): (12, 0), (8, 1): (12, 1), (8, 2): (12, 2), (8, 3): (12, 3), (8, 4): (12, 4),
    (8, 5): (12, 5), (8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9),
    (9, 0): (13, 0), (9, 1): (13, 1),
}

# Compute capability -> (first toolkit, last toolkit or None while it is still supported).
ARCH_TOOLKITS = {
    (3, 0): ((5, 0), (10, 2)), (3, 5): ((5, 0), (11, 8)), (3, 7): ((6, 5), (11, 8)),
    (5, 0): ((6, 5), (12, 9)), (5, 2): ((6, 5), (12, 9)), (5, 3): ((7, 0), (12, 9)),
    (6, 0): ((8, 0), (12, 9)), (6, 1): ((8, 0), (12, 9)), (6, 2): ((8, 0), (12, 9)),
    (7, 0): ((9, 0), (12, 9)), (7, 2): ((9, 2), (12, 9)), (7, 5): ((10, 0), None),
    (8, 0): ((11, 0), None), (8, 6): ((11, 1), None), (8, 7): ((11, 4), None),
    (8, 8): ((13, 0), None), (8, 9): ((11, 8), None), (9, 0): ((11, 8), None),
    (10, 0): ((12, 8), None),
    (10, 1): ((12, 8), (12, 9)), (10, 3): ((12, 9), None), (11, 0): ((13, 0), None),
    (12, 0): ((12, 8), None), (12, 1): ((12, 9), None),
}

# The GPUs that --all-gpus lists: compute capability and what a reader knows it by.
GPU_EXAMPLES = [
    ((5, 0), "GTX 750 Ti"), ((5, 2), "GTX 980"), ((5, 3), "Jetson Nano"), ((6, 0), "Tesla P100"),
    ((6, 1), "GTX 1080 Ti"), ((6, 2), "Jetson TX2"), ((7, 0), "V100"), ((7, 2), "Jetson Xavier"),
    ((7, 5), "T4, RTX 2080"), ((8, 0), "A100"), ((8, 6), "RTX 3090, A10"), ((8, 7), "Jetson Orin"),
    ((8, 9), "RTX 4090, L4"), ((9, 0), "H100, H200"), ((10, 0), "B200"), ((10, 3), "B300"),
    ((11, 0), "Jetson Thor"), ((12, 0), "RTX 5090"), ((12, 1), "DGX Spark"),
]

# NVIDIA promises binary compatibility inside a major version for desktop and server GPUs, not for
# these.
TEGRA = {(5, 3), (6, 2), (7, 2), (8, 7), (11, 0)}

# Newest gcc major that crt/host_config.h accepts, by toolkit.
GCC_MAX = [
    ((9, 0), 6), ((9, 2), 7), ((10, 1), 8), ((11, 0), 9), ((11, 1), 10), ((11, 4), 11),
    ((12, 0), 12), ((12, 4), 13), ((12, 8), 14), ((13, 0), 15),
]

# Part of a product name -> compute capability; the first that matches counts.
GPU_NAMES = [
    (r"GB10\b|DGX Spark", (12, 1)),
    (r"RTX\s*50[5-9]0|RTX PRO [2-6]\d00|\bRTX\s*5[5-9]00.*Blackwell", (12, 0)),
    (r"Thor", (11, 0)),
    (r"B300|GB300", (10, 3)),
    (r"B200|B100\b|GB200", (10, 0)),
    (r"\bG?H[128]00\b|\bH20\b", (9, 0)),
    (r"RTX\s*40[5-9]0|\bL40S?\b|\bL4\b|RTX\s*[2-6]\d{3}.*Ada", (8, 9)),
    (r"Orin", (8, 7)),
    (r"\bA100\b|\bA800\b|\bA30\b", (8, 0)),
    (r"RTX\s*30[5-9]0|RTX\s*2050|RTX\s*A[2-6]\d{3}|\bA10G?\b|\bA(2|16|40|[2456]000)\b", (8, 6)),
    (r"RTX\s*20[6-8]0|GTX\s*16[1-6]0|\bT4\b|TITAN RTX|Quadro RTX|\bT[46]00\b|\bT[12]000\b", (7, 5)),
    (r"Xavier", (7, 2)),
    (r"V100|TITAN V\b|Quadro GV100", (7, 0)),
    (r"TX2", (6, 2)),
    (r"GTX\s*10[1-8]0|\bGT\s*10[13]0|\bMX[123]50|TITAN Xp|\bP40\b|\bP4\b|\bP[2-6]000\b", (6, 1)),
    (r"P100\b|GP100", (6, 0)),
    (r"Jetson Nano|TX1", (5, 3)),
    (r"GTX\s*9[78]0M?\b|GTX\s*9[56]0\b|\bM40\b|\bM60\b|\bM4\b|Quadro M[456]000", (5, 2)),
    (r"GTX\s*750|GTX\s*9[456]0M|\b9[34]0MX?\b|Quadro K[126]?2?200|Quadro M[12]\d00", (5, 0)),
    (r"K80\b", (3, 7)),
    (r"K40|K20|TITAN Black|GTX\s*780", (3, 5)),
    (r"K4200|K5000|GTX\s*6[678]0|K520", (3, 0)),
]

# A word for a generation, where a report names only that.
GENERATIONS = [
    ("kepler", 3), ("maxwell", 5), ("pascal", 6), ("volta", 7), ("turing", 7), ("ampere", 8),
    ("ada", 8), ("hopper", 9), ("blackwell", None),
]


def version(text):
    """(major, minor) of the first number like 12.8 in text, or None."""
    match = re.search(r"(\d+)\.(\d+)", str(text or ""))
    return (int(match.group(1)), int(match.group(2))) if match else None


def dotted(pair):
    return "unknown" if pair is None else "%d.%d" % pair[:2]


def parse_cc(text):
    """The compute capability in '8.6', '86', 'sm_86' or 'compute_120'; None if there is none."""
    text = str(text).strip().lower()
    match = re.match(r"^(\d{1,2})\.(\d)$", text)
    if match:
        return int(match.group(1)), int(match.group(2))
    match = re.match(r"^(?:sm_?|compute_?)?(\d{1,2})(\d)$", text)
    return (int(match.group(1)), int(match.group(2))) if match else None


def parse_arch(text):
    """'90a' or 'sm_90a' or '9.0a' -> ((9, 0), 'a'); None if it is not an architecture."""
    match = re.match(r"^(?:sm_?|compute_?)?(\d{1,2})\.?(\d)([af]?)$", str(text).strip().lower())
    return ((int(match.group(1)), int(match.group(2))), match.group(3)) if match else None


def arch_number(cc):
    """(8, 6) -> '86', as in sm_86."""
    return "%d%d" % cc


def sass_runs_on(arch, suffix, cc):
    """Machine code runs inside one major version, on the same minor or a higher one."""
    if suffix == "a":
        return arch == cc
    return arch[0] == cc[0] and arch[1] <= cc[1]


def ptx_runs_on(arch, suffix, cc):
    """PTX compiles for its own architecture and every later one; the suffixes narrow that."""
    if suffix == "a":
        return arch == cc
    if suffix == "f":
        return arch[0] == cc[0] and arch[1] <= cc[1]
    return arch <= cc


def driver_branch(text):
    """580 of '580.82.07'; None if there is no driver version in text."""
    match = re.search(r"\b(\d{3})\.\d+", str(text or ""))
    return int(match.group(1)) if match else None


def branch_cuda(branch):
    """The CUDA version a driver branch offers by itself; None for one outside of the table."""
    best = None
    for first, cuda in DRIVER_CUDA:
        if branch is not None and first <= branch < NEWER_BRANCH:
            best = cuda
    return best


def cuda_branch(cuda):
    """The first driver branch that offers this CUDA version, or None if the table ends before
    it."""
    for branch, offered in DRIVER_CUDA:
        if cuda is not None and offered >= cuda:
            return branch
    return None


def gpu_min_branch(cc):
    """The first driver branch that knows this GPU: that of the first toolkit that builds for it."""
    toolkits = ARCH_TOOLKITS.get(cc)
    return cuda_branch(toolkits[0]) if toolkits else None


def toolkit_archs(toolkit):
    """Compute capabilities that a toolkit can build for, by the table."""
    return [cc for cc, (first, last) in sorted(ARCH_TOOLKITS.items())
            if first <= toolkit and (last is None or toolkit <= last)]


def gcc_limit(toolkit):
    """Newest gcc major for a toolkit, by the table; None for one older than the table."""
    best = None
    for first, gcc in GCC_MAX:
        if toolkit is not None and toolkit >= first:
            best = gcc
    return best


def cc_of_name(name):
    """Compute capability of a product name, None if it is not in the table."""
    for pattern, cc in GPU_NAMES:
        if re.search(pattern, str(name or ""), re.IGNORECASE):
            return cc
    return None


def forward_compat_allowed(name):
    """False for GeForce and Titan cards, True for data-centre GPUs, None where it is not known."""
    geforce = r"geforce|titan|\b[GR]TX\s*\d{3,4}|\bMX\d{3}|\bGT\s*\d{3,4}"
    if re.search(geforce, str(name or ""), re.IGNORECASE):
        return False
    if re.search(r"\b[ABHLPTV]\d{1,3}S?\b|tesla|\bG[BH]\d{3}", str(name or ""), re.IGNORECASE):
        return True
    return None
