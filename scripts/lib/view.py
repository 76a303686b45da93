"""Facts in, a View out: what the rules of judge.py look at, whatever shape the facts came in.

Two shapes, both described in docs/diagnosis.md: the full record that facts.py collects, and a short
report of a few texts as people write them (driver, toolkit, gcc, gpu, cc, torch, build_arch_flags,
error_text). What is missing, or of a type that makes no sense, is None in the View.
"""

import re

import tables
from tables import dotted

REPORT_KEYS = (
    "driver",
    "toolkit",
    "gcc",
    "gpu",
    "cc",
    "torch",
    "build_arch_flags",
    "error_text",
    "glibc",
    "os",
    "notes",
)
FACT_KEYS = (
    "schema",
    "system",
    "driver",
    "gpus",
    "env",
    "toolkits",
    "host_compilers",
    "header_test",
    "libraries",
    "torch",
    "numba",
    "kernel_test",
    "build_arch_flags",
    "error_text",
    "cpu_backend",
)


class BadFacts(Exception):
    """The facts cannot be used; str() is the one line to print."""


def known(value):
    """A report's cell as text; None for an empty one, '-' and the like."""
    text = "" if value is None else str(value).strip()
    return (
        None
        if text.lower() in ("", "-", "--", "?", "n/a", "na", "none given", "unknown", "not stated")
        else text
    )


class View:
    """The facts as the rules need them. Every attribute may be None: not known."""

    def __init__(self):
        self.report = False  # a short report, not a machine's record
        self.driver_text = self.driver_branch = self.driver_cuda = self.smi_cuda = None
        self.no_driver = None  # True: known to be absent
        self.module_version = self.library_version = self.module_license = self.module_loaded = None
        self.compat = self.stub = None  # path of such a libcuda, if it is what gets loaded
        self.loaded_libcuda = self.loaded_kind = self.smi_error = None
        self.gpus = []  # dicts: name, cc, mig, mig_devices, compute_mode
        self.gpu_name = self.cc = self.cc_major = None
        self.cc_from_name = False
        self.pci_gpu = self.init_error = self.device_count = None
        self.visible_devices = None
        self.toolkits = []  # dicts: path, version, archs, gcc_max, first
        self.toolkit = None  # version of the nvcc in question
        self.gcc = None
        self.gcc_max = None
        self.glibc = None
        self.torch = None  # dict: version, cuda, arch_list, cpu
        self.numba = None
        self.flags = self.flags_text = None
        self.text = ""
        self.hints = ""
        self.container = self.wsl = self.windows = self.slurm = self.in_job = self.secure_boot = (
            self.nouveau
        ) = None
        self.jetson = False
        self.header_test = self.kernel_test = None
        self.cuda_home = None
        self.has_cxx = self.cpu_backend = None


# --- from facts to the view


def view_of(facts):
    if not isinstance(facts, dict):
        raise BadFacts("the facts must be one JSON object, not %s" % type(facts).__name__)
    keys = set(facts)
    full = (
        keys & {"schema", "system", "gpus", "toolkits", "host_compilers", "header_test", "env"}
        or isinstance(facts.get("driver"), dict)
        or isinstance(facts.get("torch"), dict)
    )
    if full:
        if facts.get("schema", 1) != 1:
            raise BadFacts(
                "the facts have schema %r; this check_env knows schema 1" % facts.get("schema")
            )
        return view_of_record(facts)
    if not keys & set(REPORT_KEYS):
        raise BadFacts(
            "none of the known facts is in it; a short report has %s" % ", ".join(REPORT_KEYS[:8])
        )
    return view_of_report(facts)


def view_of_report(facts):
    v = View()
    v.report = True
    cell = {key: known(facts.get(key)) for key in REPORT_KEYS}
    v.text = cell["error_text"] or ""
    v.hints = " ".join(text for text in list(cell.values()) + [known(facts.get("link"))] if text)
    read_driver(v, cell["driver"])
    read_toolkit(v, cell["toolkit"])
    read_gcc(v, cell["gcc"])
    v.gpu_name = None if re.match(r"^(not|un)\b|^not ", cell["gpu"] or "") else cell["gpu"]
    read_cc(v, cell["cc"], cell["gpu"])
    read_torch(v, cell["torch"], cell["toolkit"], cell["build_arch_flags"])
    read_flags(v, cell["build_arch_flags"])
    v.glibc = tables.version(cell["glibc"])
    if v.gpu_name or v.cc:
        v.gpus = [{"name": v.gpu_name, "cc": v.cc}]
    read_hints(v)
    return v


def read_hints(v):
    """What a report says about its surroundings in passing."""
    text = v.hints
    if re.search(
        r"\bdocker|container|podman|kubernetes|\bk8s|singularity|apptainer|\bimage\b(?! is)",
        re.sub(r"kernel image", "", text),
        re.IGNORECASE,
    ):
        v.container = True
    if re.search(r"\bWSL", text, re.IGNORECASE):
        v.wsl = True
    if re.search(r"windows|MSVC|WDDM|visual studio", text, re.IGNORECASE):
        v.windows = True
    if re.search(r"jetson|L4T|tegra|orin|xavier", text, re.IGNORECASE):
        v.jetson = True
    if re.search(r"nouveau", text, re.IGNORECASE):
        v.nouveau = True
    match = re.search(r"CUDA_VISIBLE_DEVICES\s*=\s*(\S*)", text)
    if match:
        v.visible_devices = match.group(1).strip("\"'")
    match = re.search(r"(\S*/compat)\b", text)
    if match or re.search(r"\bcompat on LD_LIBRARY_PATH|cuda-compat", text):
        v.compat = match.group(1) if match else "a cuda-compat folder"
    match = re.search(r"(\S*/stubs)\b", text)
    if match:
        v.stub = match.group(1)
    match = re.search(r"glibc\s*(\d+\.\d+)", text, re.IGNORECASE)
    if match and not v.glibc:
        v.glibc = tables.version(match.group(1))


def read_driver(v, text):
    v.driver_text = text
    if not text:
        return
    if re.match(
        r"^(none\b|no\b|not installed|absent|missing|0$|0\.0)", text, re.IGNORECASE
    ) or re.search(r"does not exist|no driver|not loaded", text, re.IGNORECASE):
        v.no_driver = True
        return
    module = re.search(r"module\D{0,20}(\d{3}[\d.]+)", text, re.IGNORECASE)
    library = re.search(
        r"(?:package|librar\w+|user|nvml|libcuda\S*)\D{0,20}(\d{3}[\d.]+)", text, re.IGNORECASE
    )
    module = module or re.search(r"(\d{3}[\d.]+)\s*\(?(?:kernel|module)", text, re.IGNORECASE)
    library = library or re.search(
        r"(\d{3}[\d.]+)\s*\(?(?:package|librar|user|nvml)", text, re.IGNORECASE
    )
    v.module_version = module.group(1) if module else None
    v.library_version = library.group(1) if library else None
    match = re.search(r"(?<![\d.])(\d{3})(?=\.\d|\+|\b(?!\.))", text)
    if match and 300 <= int(match.group(1)) <= 999:
        v.driver_branch = int(match.group(1))
    stated = re.search(
        r"CUDA(?: version)?:?\s*(\d+\.\d+)|nvidia-smi(?: CUDA)?\s*(\d{1,2}\.\d+)\b",
        text,
        re.IGNORECASE,
    )
    if stated:
        v.smi_cuda = tables.version(stated.group(1) or stated.group(2))
    elif not v.driver_branch and re.match(r"^(CUDA )?\d{1,2}\.\d$", text):
        v.smi_cuda = tables.version(text)
    settle_driver(v)


def settle_driver(v):
    """The CUDA version that counts: the driver's own. A compat library can make nvidia-smi show
    more."""
    own = tables.branch_cuda(v.driver_branch)
    v.driver_cuda = own or v.smi_cuda


def read_toolkit(v, text):
    if not text:
        return
    if re.search(r"\bcu\d{3}\b|wheel", text) or re.search(r"compat", text):
        return  # the version of a wheel or of a compat library is not an nvcc
    exact = re.search(r"V(\d+\.\d+)\.\d+", text)
    v.toolkit = tables.version(exact.group(1) if exact else text)
    if v.toolkit and not 5 <= v.toolkit[0] <= 30:
        v.toolkit = None
    if v.toolkit:
        v.toolkits = [
            {
                "path": None,
                "version": dotted(v.toolkit),
                "archs": None,
                "gcc_max": None,
                "first": True,
            }
        ]


def read_gcc(v, text):
    match = re.match(
        r"^(?:g\+\+|gcc|gnu)?[\s-]*(\d{1,2})(?:\.\d+)*\b(?!\.)", text or "", re.IGNORECASE
    )
    if match and not re.match(r"^(ubuntu|debian|fedora|msvc)", text, re.IGNORECASE):
        v.gcc = int(match.group(1))


def read_cc(v, text, name):
    if text:
        match = re.search(r"(\d{1,2})\.(\d)\b", text)
        v.cc = (
            (int(match.group(1)), int(match.group(2)))
            if match
            else tables.parse_cc(text.split()[0])
        )
        major = re.match(r"^(\d{1,2})(?:\.x)?\b", text)
        v.cc_major = v.cc[0] if v.cc else int(major.group(1)) if major else None
    if v.cc is None and v.cc_major is None and name:
        match = re.search(r"\bsm_(\d{2,3})\b", name)
        v.cc = (
            tables.parse_cc(match.group(1))
            if match and not re.search(r"\bnot\b", name)
            else tables.cc_of_name(name)
        )
        v.cc_from_name = bool(v.cc)
        for word, major in tables.GENERATIONS:
            if v.cc is None and re.search(r"\b%s\b" % word, name, re.IGNORECASE):
                v.cc_major = major
    if v.cc:
        v.cc_major = v.cc[0]


def arch_words(text):
    """Architectures in a list like 'sm_50 sm_86 compute_90' or '7.0;8.6+PTX': [(kind, (8, 6),
    suffix)]."""
    found = []
    for kind, number, suffix, plus in re.findall(
        r"(?<![\w.+-])(sm_|compute_)?(\d{1,2}\.\d|\d{2,3})([af]?)(\+PTX)?(?=[\s;,'\"\])]|$)", text
    ):
        arch = tables.parse_arch(number + suffix)
        if arch and (kind or 3 <= arch[0][0] <= 13) and arch[0][0] <= 20:
            found.append(("ptx" if kind == "compute_" else "sass",) + arch)
            if plus:
                found.append(("ptx",) + arch)
    return found


def wheel_cuda(text):
    """(12, 8) of 'cu128' or '+cu118'."""
    match = re.search(r"\bcu(\d{2})(\d)\b", str(text or ""))
    return (int(match.group(1)), int(match.group(2))) if match else None


def read_torch(v, text, toolkit_text, flags_text):
    """A report's torch cell, or the wheel named where the toolkit should stand."""
    wheel_in_toolkit = (
        toolkit_text if toolkit_text and re.search(r"\bcu\d{3}\b|wheel", toolkit_text) else None
    )
    if not text and not wheel_in_toolkit:
        return
    joined = " ".join(t for t in (text, wheel_in_toolkit) if t)
    listed = re.search(
        r"arch(?:itecture)?s?[ _]list[:=]?\s*(.*)$", text or "", re.IGNORECASE | re.DOTALL
    )
    arch_list = arch_words(listed.group(1)) if listed else []
    if (
        not arch_list
        and flags_text
        and not re.search(r"TORCH_CUDA_ARCH_LIST|gencode|-arch|CMAKE", flags_text)
    ):
        arch_list = arch_words(flags_text) if len(arch_words(flags_text)) > 1 else []
    before = (text or "").split("arch")[0].strip(" ;,")
    number = re.match(r"^\D{0,12}?v?(\d+\.\d+(?:\.\d+)?\S*)", before)
    v.torch = {
        "version": number.group(1).rstrip(";,") if number else before or None,
        "cuda": wheel_cuda(joined),
        "arch_list": arch_list or None,
        "cpu": bool(re.search(r"\+cpu\b|\bcpu[ -]only|cpu wheel", joined)),
    }


def read_flags(v, text):
    """What the build was told to make, as images: [(kind, arch, suffix)]; None if nothing is
    known."""
    v.flags_text = text
    if not text:
        return
    images = []
    rest = text
    for arch, code in re.findall(
        r"arch\s*=\s*(compute_\w+)\s*,\s*code\s*=\s*\[?((?:sm_\w+|compute_\w+|,)+)\]?", text
    ):
        for word in code.split(","):
            found = tables.parse_arch(word)
            if found:
                images.append(("ptx" if word.startswith("compute") else "sass",) + found)
        rest = rest.replace(arch, "")
    rest = re.sub(r"code\s*=\s*\[?[\w,]+\]?", "", rest)
    for virtual, real in re.findall(r"compute_(\w+),\s*sm_(\w+)", rest):
        found = tables.parse_arch(real)
        if found:
            images.append(("sass",) + found)
    rest = re.sub(r"compute_\w+,\s*sm_\w+", "", rest)
    for word in re.findall(r"-arch[= ](?:sm_)(\w+)", rest):
        found = tables.parse_arch(word)
        if found:
            images += [("sass",) + found, ("ptx",) + found]
    rest = re.sub(r"-arch[= ]sm_\w+", "", rest)
    cmake = re.search(r"CUDA_ARCHITECTURES\S*\s*[= ]\s*[\"']?([\w;\-]+)", rest)
    if cmake:
        for word in cmake.group(1).split(";"):
            found = tables.parse_arch(word.replace("-real", "").replace("-virtual", ""))
            if found:
                if "-virtual" not in word:
                    images.append(("sass",) + found)
                if "-real" not in word:
                    images.append(("ptx",) + found)
    else:
        images += arch_words(re.sub(r"TORCH_CUDA_ARCH_LIST\s*=\s*[\"']?", " ", rest))
    v.flags = images or None


def text_of(value):
    return value if isinstance(value, str) else None


def as_list(value):
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_dict(value):
    return value if isinstance(value, dict) else {}


def first_marked(items):
    """A list written by hand may not say which entry comes first on PATH: then it is the first."""
    if items and not any("first" in item for item in items):
        return [dict(items[0], first=True)] + items[1:]
    return items


def view_of_record(facts):
    """A machine's record. A part of the wrong type counts as missing: facts may have been edited by
    hand."""
    v = View()
    system, driver, env = (
        as_dict(facts.get("system")),
        as_dict(facts.get("driver")),
        as_dict(facts.get("env")),
    )
    v.text = str(facts.get("error_text") or "")
    v.container, v.wsl = system.get("container") or None, system.get("wsl")
    v.slurm, v.in_job = system.get("slurm"), system.get("slurm_job")
    v.secure_boot, v.nouveau, v.jetson = (
        system.get("secure_boot"),
        system.get("nouveau"),
        bool(system.get("jetson")),
    )
    v.glibc = tables.version(system.get("glibc"))
    v.pci_gpu = system.get("nvidia_pci_devices")
    v.module_version, v.library_version = text_of(driver.get("module_version")), text_of(
        driver.get("library_version")
    )
    v.module_license, v.module_loaded = text_of(driver.get("module_license")), driver.get(
        "module_loaded"
    )
    v.driver_text = text_of(driver.get("version")) or v.module_version
    v.driver_branch = tables.driver_branch(v.driver_text)
    v.smi_cuda = tables.version(driver.get("cuda"))
    settle_driver(v)
    loaded = as_dict(driver.get("loaded_libcuda"))
    v.loaded_libcuda = text_of(loaded.get("path"))
    v.loaded_kind = loaded.get("kind")
    v.stub = v.loaded_libcuda if loaded.get("kind") == "stub" else None
    v.compat = v.loaded_libcuda if loaded.get("kind") == "compat" else None
    v.init_error = driver.get("init_error") if isinstance(driver.get("init_error"), int) else None
    v.device_count = (
        driver.get("device_count") if isinstance(driver.get("device_count"), int) else None
    )
    v.smi_error = text_of(as_dict(driver.get("smi")).get("error"))
    if driver.get("present") is False:
        v.no_driver = True
    for gpu in as_list(facts.get("gpus")):
        v.gpus.append(dict(gpu, name=text_of(gpu.get("name")), cc=tables.parse_cc(gpu.get("cc"))))
    if v.gpus:
        v.gpu_name = text_of(v.gpus[0].get("name"))
        v.cc = v.gpus[0]["cc"] or tables.cc_of_name(v.gpu_name)
        v.cc_major = v.cc[0] if v.cc else None
    if "CUDA_VISIBLE_DEVICES" in env:
        v.visible_devices = env["CUDA_VISIBLE_DEVICES"]
    v.cuda_home = text_of(env.get("CUDA_HOME"))
    for toolkit in first_marked(as_list(facts.get("toolkits"))):
        v.toolkits.append(
            dict(
                toolkit,
                path=text_of(toolkit.get("path")),
                error=text_of(toolkit.get("error")),
                version=(
                    toolkit["version"] if tables.version(text_of(toolkit.get("version"))) else None
                ),
            )
        )
    first = next((t for t in v.toolkits if t.get("first")), None)
    if first:
        v.toolkit = tables.version(first.get("version"))
        v.gcc_max = first.get("gcc_max") if isinstance(first.get("gcc_max"), int) else None
    compilers = first_marked(as_list(facts.get("host_compilers")))
    v.has_cxx = bool(compilers) if isinstance(facts.get("host_compilers"), list) else None
    for compiler in compilers:
        if compiler.get("first"):
            match = re.match(r"\d+", str(compiler.get("version") or ""))
            v.gcc = int(match.group()) if match and compiler.get("kind", "gcc") == "gcc" else None
    v.header_test, v.kernel_test = (
        as_dict(facts.get("header_test")) or None,
        as_dict(facts.get("kernel_test")) or None,
    )
    torch = facts.get("torch")
    if isinstance(torch, dict) and torch.get("version"):
        listed = torch.get("arch_list")
        archs = arch_words(" ".join(str(a) for a in listed)) if isinstance(listed, list) else []
        v.torch = {
            "version": str(torch["version"]),
            "cuda": tables.version(torch.get("cuda")),
            "arch_list": archs or None,
            "cpu": (
                "+cpu" in str(torch["version"])
                or ("cuda" in torch and torch["cuda"] is None and not torch.get("hip"))
            ),
        }
    v.numba = as_dict(facts.get("numba")) or None
    v.cpu_backend = as_dict(facts.get("cpu_backend")) or None
    if isinstance(facts.get("build_arch_flags"), str):
        read_flags(v, facts["build_arch_flags"])
    words = {key: known(facts[key]) for key in REPORT_KEYS if isinstance(facts.get(key), str)}
    v.hints = " ".join(text for text in [v.gpu_name] + list(words.values()) if text)
    add_words(v, words)
    return v


def add_words(v, words):
    """Cells of a report in the middle of a record: somebody added what he was told."""
    if "driver" in words:
        read_driver(v, words["driver"])
    if "toolkit" in words and not v.toolkits:
        read_toolkit(v, words["toolkit"])
    if "gcc" in words and v.gcc is None:
        read_gcc(v, words["gcc"])
    if "torch" in words and v.torch is None:
        read_torch(v, words["torch"], None, None)
    if ("gpu" in words or "cc" in words) and not v.gpus:
        v.gpu_name = words.get("gpu")
        read_cc(v, words.get("cc"), v.gpu_name)
        v.gpus = [{"name": v.gpu_name, "cc": v.cc}]


# --- back to words: what was understood, so that a reader can object


def given(v):
    """[(fact, value as understood)] of what a report says."""
    cuda = "CUDA %s" % dotted(v.driver_cuda) if v.driver_cuda else "CUDA version unknown"
    major = v.cc_major and "%d.x" % v.cc_major
    driver = v.driver_text
    if driver and "CUDA" not in driver:
        driver = "%s (%s)" % (driver, cuda)
    from_name = " (of that name)" if v.cc_from_name else ""
    torch = v.torch or {}
    rows = [
        ("driver", "none" if v.no_driver else driver),
        ("toolkit", v.toolkit and "nvcc %s" % dotted(v.toolkit)),
        ("gcc", v.gcc and "gcc %d" % v.gcc),
        ("glibc", v.glibc and dotted(v.glibc)),
        ("GPU", v.gpu_name),
        ("compute capability", dotted(v.cc) + from_name if v.cc else major),
        (
            "PyTorch",
            v.torch
            and "%s, CUDA %s, %s architectures listed"
            % (
                torch["version"] or "version unknown",
                dotted(torch["cuda"]),
                len(torch["arch_list"]) if torch["arch_list"] else "no",
            ),
        ),
        ("build flags", v.flags_text),
        ("error", v.text),
    ]
    return [(name, str(value)) for name, value in rows if value]


def not_given(v):
    """The facts of a report that are missing."""
    names = [name for name, _ in given(v)]
    wanted = ("driver", "toolkit", "gcc", "GPU", "compute capability", "PyTorch", "build flags")
    return [name for name in wanted if name not in names]
