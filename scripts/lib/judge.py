"""Judges facts: a pure function from a dict of facts to a list of diagnoses. Asks no machine, reads no file.

Facts come in two shapes, described in docs/diagnosis.md: the full record that facts.py collects, and a short
report of a few texts as people write them (driver, toolkit, gcc, gpu, cc, torch, build_arch_flags, error_text).
Both become a View; the rules look only at that. A fact that is missing is None: a rule that needs it does not
fire, or says what it does not know. Facts that exclude each other are reported, not averaged.
"""

import re

import errors
import tables
from tables import dotted

REPORT_KEYS = ("driver", "toolkit", "gcc", "gpu", "cc", "torch", "build_arch_flags", "error_text", "glibc", "os", "notes")
FACT_KEYS = ("schema", "system", "driver", "gpus", "env", "toolkits", "host_compilers", "header_test", "libraries",
             "torch", "numba", "kernel_test", "build_arch_flags", "error_text", "cpu_backend")
PROBLEM, WARNING, NOTE, NO_GPU = "problem", "warning", "note", "no_gpu"


class BadFacts(Exception):
    """The facts cannot be used; str() is the one line to print."""


class Diagnosis:
    """What is wrong, why we think so, what to run, and what can stay as it is."""

    def __init__(self, code, what, why="", run="", keep="", severity=PROBLEM, sure=True, missing=""):
        self.code, self.what, self.why, self.run, self.keep = code, what, why, run, keep
        self.severity, self.sure, self.missing = severity, sure, missing

    def as_dict(self):
        return {"code": self.code, "severity": self.severity, "sure": self.sure, "what": self.what, "why": self.why,
                "run": self.run, "keep": self.keep, "missing": self.missing}


def known(value):
    """A report's cell as text; None for an empty one, '-' and the like."""
    text = "" if value is None else str(value).strip()
    return None if text.lower() in ("", "-", "--", "?", "n/a", "na", "none given", "unknown", "not stated") else text


class View:
    """The facts as the rules need them. Every attribute may be None: not known."""

    def __init__(self):
        self.report = False  # a short report, not a machine's record
        self.driver_text = self.driver_branch = self.driver_cuda = self.smi_cuda = None
        self.no_driver = None  # True: known to be absent
        self.module_version = self.library_version = self.module_license = self.module_loaded = None
        self.compat = self.stub = None  # path of such a libcuda, if it is what gets loaded
        self.loaded_libcuda = self.smi_error = None
        self.gpus = []  # dicts: name, cc, mig, mig_devices, compute_mode
        self.gpu_name = self.cc = self.cc_major = None
        self.pci_gpu = self.device_nodes = self.init_error = self.device_count = None
        self.visible_devices = None
        self.toolkits = []  # dicts: path, version, archs, gcc_max, first
        self.toolkit = None  # version of the nvcc in question
        self.toolkit_claimed = False
        self.toolkit_text = None
        self.gcc = self.gcc_text = None
        self.gcc_max = None
        self.glibc = None
        self.torch = None  # dict: version, cuda, arch_list, cpu
        self.numba = None
        self.flags = self.flags_text = None
        self.text = ""
        self.hints = ""
        self.container = self.wsl = self.windows = self.slurm = self.in_job = self.secure_boot = self.nouveau = None
        self.jetson = False
        self.header_test = self.kernel_test = None
        self.cuda_home = None
        self.has_cxx = self.cpu_backend = None


# --- from facts to the view

def view_of(facts):
    if not isinstance(facts, dict):
        raise BadFacts("the facts must be one JSON object, not %s" % type(facts).__name__)
    keys = set(facts)
    full = keys & {"schema", "system", "gpus", "toolkits", "host_compilers", "header_test", "env"} or isinstance(
        facts.get("driver"), dict) or isinstance(facts.get("torch"), dict)
    if full:
        if facts.get("schema", 1) != 1:
            raise BadFacts("the facts have schema %r; this check_env knows schema 1" % facts.get("schema"))
        return view_of_record(facts)
    if not keys & set(REPORT_KEYS):
        raise BadFacts("none of the known facts is in it; a short report has %s" % ", ".join(REPORT_KEYS[:8]))
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
    if re.search(r"\bdocker|container|podman|kubernetes|\bk8s|singularity|apptainer|\bimage\b(?! is)", re.sub(
            r"kernel image", "", text), re.IGNORECASE):
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
    if re.match(r"^(none\b|no\b|not installed|absent|missing|0$|0\.0)", text, re.IGNORECASE) or re.search(
            r"does not exist|no driver|not loaded", text, re.IGNORECASE):
        v.no_driver = True
        return
    module = re.search(r"module\D{0,20}(\d{3}[\d.]+)", text, re.IGNORECASE)
    library = re.search(r"(?:package|librar\w+|user|nvml|libcuda\S*)\D{0,20}(\d{3}[\d.]+)", text, re.IGNORECASE)
    v.module_version = module.group(1) if module else None
    v.library_version = library.group(1) if library else None
    match = re.search(r"(?<![\d.])(\d{3})(?=\.\d|\+|\b(?!\.))", text)
    if match and 300 <= int(match.group(1)) <= 999:
        v.driver_branch = int(match.group(1))
    stated = re.search(r"CUDA(?: version)?:?\s*(\d+\.\d+)|nvidia-smi(?: CUDA)?\s*(\d{1,2}\.\d+)\b", text, re.IGNORECASE)
    if stated:
        v.smi_cuda = tables.version(stated.group(1) or stated.group(2))
    elif not v.driver_branch and re.match(r"^(CUDA )?\d{1,2}\.\d$", text):
        v.smi_cuda = tables.version(text)
    settle_driver(v)


def settle_driver(v):
    """The CUDA version that counts: the driver's own. A compat library can make nvidia-smi show more."""
    own = tables.branch_cuda(v.driver_branch)
    v.driver_cuda = own or v.smi_cuda


def read_toolkit(v, text):
    v.toolkit_text = text
    if not text:
        return
    if re.search(r"\bcu\d{3}\b|wheel", text) or re.search(r"compat", text):
        return  # the version of a wheel or of a compat library is not an nvcc
    exact = re.search(r"V(\d+\.\d+)\.\d+", text)
    v.toolkit = tables.version(exact.group(1) if exact else text)
    v.toolkit_claimed = not exact
    if v.toolkit and not 5 <= v.toolkit[0] <= 30:
        v.toolkit = None
    if v.toolkit:
        v.toolkits = [{"path": None, "version": dotted(v.toolkit), "archs": None, "gcc_max": None, "first": True}]


def read_gcc(v, text):
    v.gcc_text = text
    match = re.match(r"^(?:g\+\+|gcc|gnu)?[\s-]*(\d{1,2})(?:\.\d+)*\b(?!\.)", text or "", re.IGNORECASE)
    if match and not re.match(r"^(ubuntu|debian|fedora|msvc)", text, re.IGNORECASE):
        v.gcc = int(match.group(1))


def read_cc(v, text, name):
    if text:
        match = re.search(r"(\d{1,2})\.(\d)\b", text)
        v.cc = (int(match.group(1)), int(match.group(2))) if match else tables.parse_cc(text.split()[0])
        major = re.match(r"^(\d{1,2})(?:\.x)?\b", text)
        v.cc_major = v.cc[0] if v.cc else int(major.group(1)) if major else None
    if v.cc is None and v.cc_major is None and name:
        match = re.search(r"\bsm_(\d{2,3})\b", name)
        v.cc = tables.parse_cc(match.group(1)) if match and not re.search(r"\bnot\b", name) else tables.cc_of_name(name)
        for word, major in tables.GENERATIONS:
            if v.cc is None and re.search(r"\b%s\b" % word, name, re.IGNORECASE):
                v.cc_major = major
    if v.cc:
        v.cc_major = v.cc[0]


def arch_words(text):
    """Architectures in a list like 'sm_50 sm_86 compute_90' or '7.0;8.6+PTX': [(kind, (8, 6), suffix)]."""
    found = []
    for kind, number, suffix, plus in re.findall(
            r"(?<![\w.+-])(sm_|compute_)?(\d{1,2}\.\d|\d{2,3})([af]?)(\+PTX)?(?=[\s;,'\"\])]|$)", text):
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
    wheel_in_toolkit = toolkit_text if toolkit_text and re.search(r"\bcu\d{3}\b|wheel", toolkit_text) else None
    if not text and not wheel_in_toolkit:
        return
    joined = " ".join(t for t in (text, wheel_in_toolkit) if t)
    listed = re.search(r"arch(?:itecture)?s?[ _]list[:=]?\s*(.*)$", text or "", re.IGNORECASE | re.DOTALL)
    arch_list = arch_words(listed.group(1)) if listed else []
    if not arch_list and flags_text and not re.search(r"TORCH_CUDA_ARCH_LIST|gencode|-arch|CMAKE", flags_text):
        arch_list = arch_words(flags_text) if len(arch_words(flags_text)) > 1 else []
    before = (text or "").split("arch")[0].strip(" ;,")
    number = re.match(r"^\D{0,12}?v?(\d+\.\d+(?:\.\d+)?\S*)", before)
    v.torch = {"version": number.group(1).rstrip(";,") if number else before or None, "cuda": wheel_cuda(joined),
               "arch_list": arch_list or None, "cpu": bool(re.search(r"\+cpu\b|\bcpu[ -]only|cpu wheel", joined))}


def read_flags(v, text):
    """What the build was told to make, as images: [(kind, arch, suffix)]; None if nothing is known."""
    v.flags_text = text
    if not text:
        return
    images = []
    rest = text
    for arch, code in re.findall(r"arch\s*=\s*(compute_\w+)\s*,\s*code\s*=\s*\[?((?:sm_\w+|compute_\w+|,)+)\]?", text):
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


def view_of_record(facts):
    """A machine's record. A part of the wrong type counts as missing: facts may have been edited by hand."""
    v = View()
    system, driver, env = as_dict(facts.get("system")), as_dict(facts.get("driver")), as_dict(facts.get("env"))
    v.text = str(facts.get("error_text") or "")
    v.container, v.wsl = system.get("container") or None, system.get("wsl")
    v.slurm, v.in_job = system.get("slurm"), system.get("slurm_job")
    v.secure_boot, v.nouveau, v.jetson = system.get("secure_boot"), system.get("nouveau"), bool(system.get("jetson"))
    v.glibc = tables.version(system.get("glibc"))
    v.pci_gpu = system.get("nvidia_pci_devices")
    v.module_version, v.library_version = text_of(driver.get("module_version")), text_of(driver.get("library_version"))
    v.module_license, v.module_loaded = text_of(driver.get("module_license")), driver.get("module_loaded")
    v.driver_text = text_of(driver.get("version")) or v.module_version
    v.driver_branch = tables.driver_branch(v.driver_text)
    v.smi_cuda = tables.version(driver.get("cuda"))
    settle_driver(v)
    loaded = as_dict(driver.get("loaded_libcuda"))
    v.loaded_libcuda = text_of(loaded.get("path"))
    v.stub = v.loaded_libcuda if loaded.get("kind") == "stub" else None
    v.compat = v.loaded_libcuda if loaded.get("kind") == "compat" else None
    v.init_error = driver.get("init_error") if isinstance(driver.get("init_error"), int) else None
    v.device_count = driver.get("device_count") if isinstance(driver.get("device_count"), int) else None
    v.device_nodes = driver.get("device_nodes")
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
    for toolkit in as_list(facts.get("toolkits")):
        v.toolkits.append(dict(toolkit, path=text_of(toolkit.get("path")), error=text_of(toolkit.get("error")),
                               version=toolkit["version"] if tables.version(text_of(toolkit.get("version"))) else None))
    first = next((t for t in v.toolkits if t.get("first")), None)
    if first:
        v.toolkit = tables.version(first.get("version"))
        v.gcc_max = first.get("gcc_max") if isinstance(first.get("gcc_max"), int) else None
    compilers = as_list(facts.get("host_compilers"))
    v.has_cxx = bool(compilers) if isinstance(facts.get("host_compilers"), list) else None
    for compiler in compilers:
        if compiler.get("first"):
            match = re.match(r"\d+", str(compiler.get("version") or ""))
            v.gcc = int(match.group()) if match and compiler.get("kind", "gcc") == "gcc" else None
            v.gcc_text = text_of(compiler.get("version"))
    v.header_test, v.kernel_test = as_dict(facts.get("header_test")) or None, as_dict(facts.get("kernel_test")) or None
    torch = facts.get("torch")
    if isinstance(torch, dict) and torch.get("version"):
        listed = torch.get("arch_list")
        archs = arch_words(" ".join(str(a) for a in listed)) if isinstance(listed, list) else []
        v.torch = {"version": str(torch["version"]), "cuda": tables.version(torch.get("cuda")), "arch_list": archs or None,
                   "cpu": "+cpu" in str(torch["version"]) or ("cuda" in torch and torch["cuda"] is None
                                                             and not torch.get("hip"))}
    v.numba = as_dict(facts.get("numba")) or None
    v.cpu_backend = as_dict(facts.get("cpu_backend")) or None
    if isinstance(facts.get("build_arch_flags"), str):
        read_flags(v, facts["build_arch_flags"])
    v.hints = " ".join([v.text, v.gpu_name or ""])
    return v


# --- words for what is known

def gpu_words(v):
    name = v.gpu_name or "the GPU"
    return "%s (compute capability %s)" % (name, dotted(v.cc)) if v.cc else name


def sm(cc):
    return "sm_" + tables.arch_number(cc)


def listed(images):
    words = ["%s%s%s" % ("compute_" if kind == "ptx" else "sm_", tables.arch_number(arch), suffix)
             for kind, arch, suffix in images]
    return ", ".join(dict.fromkeys(words))


def covers(images, cc):
    """Does one of these images run on the GPU? None if either is not known."""
    if not images or not cc:
        return None
    return any(tables.sass_runs_on(arch, suffix, cc) if kind == "sass" else tables.ptx_runs_on(arch, suffix, cc)
               for kind, arch, suffix in images)


def oldest(images):
    return min(arch for _, arch, _ in images)


def driver_words(v):
    if v.driver_branch and v.driver_cuda:
        return "driver %s, which offers CUDA %s" % (short_driver(v), dotted(v.driver_cuda))
    if v.driver_cuda:
        return "a driver that offers CUDA %s" % dotted(v.driver_cuda)
    return "driver %s" % short_driver(v) if v.driver_text else "a driver of unknown version"


def short_driver(v):
    match = re.search(r"\d{3}(\.\d+)*\+?", v.driver_text or "")
    return match.group(0) if match else str(v.driver_text or v.driver_branch)


def torch_words(v):
    cuda = " for CUDA %s" % dotted(v.torch["cuda"]) if v.torch["cuda"] else ""
    return "PyTorch%s%s" % (" " + v.torch["version"] if v.torch["version"] else "", cuda)


def from_table(hit, code=None, why_first="", **changes):
    """A diagnosis with the words of the error table."""
    number = "%d %s: " % (hit["number"], hit["name"]) if hit["number"] else ""
    d = Diagnosis(code or hit["code"], number + (hit["means"] or hit["text"]), why_first, hit["do"], hit["keep"])
    for key, value in changes.items():
        setattr(d, key, value)
    return d


# --- what an error text means together with the facts

def judge_text(v):
    """The diagnosis for the reported error, or None if the text says nothing that is known."""
    hits = errors.recognise(v.text) if v.text else []
    if re.search(r"wrong (values?|results?)|NaN|no error", v.text, re.IGNORECASE) or not hits:
        extra = [h for h in errors.recognise(v.flags_text or "") if h["code"] == "UINT32_INDEX_OVERFLOW"]
        if extra:
            return from_table(extra[0])
    for hit in hits:
        rule = TEXT_RULES.get(hit["number"]) or TEXT_RULES.get(hit["code"])
        found = rule(v, hit) if rule else from_table(hit)
        if found:
            return found
    return None


def no_image(v, hit):
    """209 and its family: whose code lacks the GPU, the wheel's, the image's or the own build's?"""
    if v.flags_text and re.search(r"TORCH_CUDA_ARCH_LIST", v.flags_text):
        return ext_lacks(v, hit)
    if v.torch:
        return ext_lacks(v, hit) if about_extension(v) else wheel_lacks(v, hit)
    run = "scripts/inspect FILE shows what is in the file. Rebuild: make SMS=%s" % (
        tables.arch_number(v.cc) if v.cc else "86 (your GPU's number)")
    malformed = bool(re.search(r"ARCHITECTURES.{0,40}\bsm_", v.flags_text or ""))
    if v.flags and covers(v.flags, v.cc) and not malformed:
        return Diagnosis(
            "FACTS_CONTRADICT", "The build flags cover this GPU, and still its code is missing.",
            "%s runs on %s. So the file that failed was not built with these flags (a stale build folder or cache, "
            "another library), or the GPU is another one." % (listed(v.flags), gpu_words(v)),
            "scripts/inspect on the program and on each library it loads; then rebuild in a new folder",
            "The flags and the driver.", sure=False)
    if v.flags_text:
        why = "Built for %s; the GPU is %s. " % (listed(v.flags) if v.flags else "'%s'" % v.flags_text, gpu_words(v))
        if malformed:
            why += "CMake takes 70, not sm_70."
        elif v.flags:
            why += "Machine code runs only inside its major version, on the same minor or a higher one" + (
                "; PTX only on newer GPUs." if any(k == "ptx" for k, _, _ in v.flags) else "; there is no PTX.")
        return Diagnosis("BUILD_LACKS_ARCH", "The program was built without code for this GPU.", why, run, hit["keep"],
                         sure=bool(v.cc and v.flags and not malformed),
                         missing="" if v.cc else "the GPU's compute capability")
    old = v.cc_major is not None and (v.cc or (v.cc_major, 0)) < (7, 5) and not v.toolkit
    if old or (v.container and not v.toolkit):
        code = "GPU_TOO_OLD_FOR_IMAGE" if old else "BUILD_LACKS_ARCH"
        return Diagnosis(code, "The prebuilt program or image has no code for %s." % (
            "a GPU this old" if old else gpu_words(v)), "%s." % gpu_words(v) + (
                " Newer builds leave out Maxwell, Pascal and Volta, and PTX does not go back to older GPUs." if old else ""),
            "Use %s tag of the image, or build it yourself: make SMS=%s" % (
                "an older (legacy)" if old else "a newer", tables.arch_number(v.cc) if v.cc else "61 (your GPU's number)"),
            "The driver.", sure=False, missing="what the file holds (scripts/inspect FILE)")
    return Diagnosis("BUILD_LACKS_ARCH", "The program holds no code for this GPU.", hit["means"], run, hit["keep"],
                     sure=False, missing="what the file holds (scripts/inspect FILE)")


def about_extension(v):
    """Is the missing code more likely an extension's than the wheel's? Official wheels of CUDA 11.7 and newer have
    machine code for 7.5 to 8.9, those of 11.8 and newer for 9.0, as far as known; the list, if given, decides."""
    if re.search(r"extension|setup\.py|docker build|\.so\b|mmcv|\bext\b", v.hints):
        return True
    if v.torch["arch_list"]:
        return bool(covers(v.torch["arch_list"], v.cc))
    version = tables.version(v.torch["version"])
    cuda = v.torch["cuda"] or ((11, 7) if version and version >= (1, 13) else None)
    if not cuda or not v.cc or re.search(r"nightly", v.hints):
        return False
    return (7, 5) <= v.cc < (9, 0) and cuda >= (11, 7) or v.cc == (9, 0) and cuda >= (11, 8)


def wheel_lacks(v, hit):
    """A PyTorch wheel meets a GPU that it may not know."""
    named = re.search(r"\bsm_(\d{2,3})\b is not compatible", v.text)
    cc = v.cc or (tables.parse_cc(named.group(1)) if named else None)
    images = v.torch["arch_list"] if v.torch else None
    supports = re.search(r"supports CUDA capabilities ([\w ]+)", v.text)
    if supports and not images:
        images = arch_words(supports.group(1)) or None
    torch = torch_words(v) if v.torch else "The installed PyTorch"
    has = " Its list: %s." % listed(images) if images else ""
    too_old = hit and hit["code"] == "GPU_TOO_OLD_FOR_WHEEL"
    minimum = re.search(r"minimum cuda capability supported by this library is (\d+\.\d)", v.text, re.IGNORECASE)
    keep = "The driver and the system's toolkit; the wheel brings its own libraries."
    if images and cc and covers(images, cc):
        if named or too_old:
            return Diagnosis("FACTS_CONTRADICT", "The wheel's list has code for this GPU, and PyTorch says it has not.",
                             "%s runs on %s.%s Two PyTorch installations, or a report of two machines?" % (torch, sm(cc), has),
                             "python -c 'import torch; print(torch.__file__, torch.__version__, torch.cuda.get_arch_list())'",
                             keep, sure=False)
        if hit and hit["number"] in (98, 209):
            return ext_lacks(v, hit)
        return None
    limit = tables.version(minimum.group(1)) if minimum else oldest(images) if images else None
    major = cc[0] if cc else v.cc_major
    old_by_tag = (v.torch and not images and major is not None and v.torch["cuda"] is not None
                  and v.torch["cuda"] >= (12, 8) and major < 7)
    if too_old or old_by_tag or (cc and limit and cc < limit) or (limit and major is not None and major < limit[0]) or (
            not images and major is not None and major < 7 and not named):
        why = "%s: %s." % (torch, "its oldest architecture is %s" % dotted(limit) if limit else
                           "newer wheels leave out GPUs of this age")
        return Diagnosis("GPU_TOO_OLD_FOR_WHEEL", "This GPU is too old for the installed PyTorch wheel.",
                         "%s %s is older%s; PTX, if there is any, goes forward only.%s" % (
                             why, gpu_words(v), "" if limit else "", has),
                         "pip install torch --index-url https://download.pytorch.org/whl/cu126 (the last wheels with Maxwell and "
                         "Pascal), then print torch.cuda.get_arch_list()", keep, sure=bool(images and cc) or bool(too_old))
    new = cc and cc[0] >= 10
    if new and v.torch and v.torch["cuda"] and v.torch["cuda"] >= (12, 8) and not images:
        has = (" Wheels for CUDA 12.8 and newer have this GPU, as far as known: another PyTorch may be the one that is imported, or "
               "another library lacks the GPU.")
    return Diagnosis("WHEEL_LACKS_ARCH", "The installed PyTorch wheel has no code for this GPU%s." % (" (%s)" % sm(cc) if cc else ""),
                     "%s.%s%s" % (torch, has, " Machine code for another major version does not run, and there is no PTX that could "
                                  "be compiled." if images else ""),
                     "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/%s, then print "
                     "torch.cuda.get_arch_list(): it must show %s" % ("cu128" if new else "cu126", sm(cc) if cc else "your GPU"),
                     keep, sure=bool(images and cc) or bool(named),
                     missing="" if images else "torch.cuda.get_arch_list()")


def ext_lacks(v, hit):
    told = "It was told %s. " % v.flags_text if v.flags_text else ""
    return Diagnosis("EXT_BUILT_WITHOUT_ARCH", "A compiled extension holds no code for this GPU; PyTorch itself is not the cause.",
                     told + "The value did not reach the compiler (another layer of the image, an old build cache), or the list lacks "
                     "%s. In docker build there is no GPU, so it cannot be detected there." % (sm(v.cc) if v.cc else "the GPU"),
                     "scripts/inspect on the extension's .so; delete its build folder; TORCH_CUDA_ARCH_LIST=%s pip install "
                     "--no-build-isolation --force-reinstall ." % (dotted(v.cc) if v.cc else "8.6"),
                     "PyTorch, the driver and the toolkit.", sure=False, missing="what the .so holds")


def old_ptx(v, hit):
    """222: the usual advice is right only if the toolkit really is newer than the driver."""
    if v.toolkit and v.driver_cuda and v.toolkit <= v.driver_cuda:
        return Diagnosis("FACTS_CONTRADICT", "The toolkit (%s) is not newer than the driver (%s): its PTX cannot be the cause."
                         % (dotted(v.toolkit), dotted(v.driver_cuda)),
                         "Error 222 means PTX from a newer toolkit. So another file carries it: a wheel, a second toolkit's library, "
                         "something compiled at run time (NVRTC).",
                         "scripts/inspect on the program and on every .so it loads (lsof -p PID, or ldd): look for a PTX version above "
                         "CUDA %s" % dotted(v.driver_cuda), "The toolkit and the driver, until that file is found.", sure=False)
    text = driver_words(v)
    made = "The program was built with CUDA %s" % dotted(v.toolkit) if v.toolkit else "The program's PTX comes from a newer toolkit"
    branch = tables.cuda_branch(v.toolkit)
    return Diagnosis("DRIVER_TOO_OLD_FOR_PTX", "The driver is too old to compile this program's PTX, and the program has no machine "
                     "code for the GPU.", "%s; %s." % (made, text),
                     "Build machine code: make SMS=%s; or update the driver%s" % (
                         tables.arch_number(v.cc) if v.cc else "86 (your GPU's number)",
                         " to %d or newer" % branch if branch else ""),
                     hit["keep"], sure=bool(v.toolkit and v.driver_cuda),
                     missing=", ".join(name for name, value in (("the toolkit's version", v.toolkit),
                                                                ("the driver's version", v.driver_cuda)) if not value))


def ptx_jit_failed(v, hit):
    target = [arch for kind, arch, _ in v.flags or [] if kind == "ptx"] or [arch for _, arch, _ in v.flags or []]
    if target and v.cc and min(target) > v.cc:
        return Diagnosis("BUILD_LACKS_ARCH", "The PTX is made for a newer GPU than this one.",
                         "It targets %s; the GPU is %s. PTX goes forward only." % (listed(v.flags), gpu_words(v)),
                         "Build for this GPU: compute_%s" % tables.arch_number(v.cc), hit["keep"])
    return from_table(hit)


def unsupported_arch(v, hit):
    match = re.search(r"(?:compute_|sm_)(\d{2,3})[af]?\b", v.text) or re.search(r"arch[^\d]{0,20}(\d{1,2}\.\d)", v.text)
    arch = tables.parse_cc(match.group(1)) if match else None
    if arch is None and v.flags:
        arch = v.flags[0][1]
    if arch is None:
        return from_table(hit, sure=False, missing="which architecture was refused")
    first, last = tables.ARCH_TOOLKITS.get(arch, (None, None))
    name, keep = sm(arch), hit["keep"]
    if arch == (10, 1) and v.toolkit and v.toolkit >= (13, 0):
        return Diagnosis("TOOLKIT_DROPPED_ARCH", "CUDA 13 calls sm_101 by a new name: sm_110.",
                         "The toolkit is %s." % dotted(v.toolkit), "Build for 110 (make SMS=110).", keep)
    dropped = last and (v.toolkit is None or v.toolkit > last)
    if v.toolkit is None and last is None and first is None:
        return from_table(hit, sure=False, missing="the toolkit's version")
    if first and v.toolkit and v.toolkit < first:
        near = [cc for cc in tables.toolkit_archs(v.toolkit) if cc[0] == arch[0] and cc < arch and cc not in tables.TEGRA]
        hint = " Meanwhile SMS=%s builds machine code that runs on it." % tables.arch_number(near[-1]) if near else ""
        more = ""
        if v.smi_cuda and v.smi_cuda >= first:
            more = " nvidia-smi's CUDA %s is the driver's, not the compiler's." % dotted(v.smi_cuda)
        return Diagnosis("TOOLKIT_TOO_OLD", "nvcc %s is too old for %s." % (dotted(v.toolkit), name),
                         "%s exists since CUDA %s.%s" % (name, dotted(first), more),
                         "Install toolkit %s or newer, or put it first: ls /usr/local/cuda*/bin/nvcc; export "
                         "PATH=/usr/local/cuda-%s/bin:$PATH.%s" % (dotted(first), dotted(first), hint), keep)
    if dropped:
        since = "" if v.toolkit else " (the toolkit's version was not stated)"
        return Diagnosis("TOOLKIT_DROPPED_ARCH", "nvcc %s no longer builds for %s." % (dotted(v.toolkit) if v.toolkit else "here", name),
                         "CUDA %s was the last toolkit with it%s." % (dotted(last), since),
                         "Remove %s from the list of architectures if your GPU is newer; for a GPU that old use toolkit %s" % (
                             name, dotted(last)), "The driver, as long as it supports the GPU.", sure=v.toolkit is not None,
                         missing="" if v.toolkit else "the toolkit's version")
    if v.toolkit and first and v.toolkit >= first:
        return Diagnosis("NVCC_ON_PATH_IS_NOT_THE_CLAIMED_ONE", "CUDA %s knows %s, so another nvcc than that one ran." % (
            dotted(v.toolkit), name), "%s exists since CUDA %s. An older nvcc stands earlier on PATH, or the build system remembers one."
            % (name, dotted(first)), "type -a nvcc; nvcc --version; ls /usr/local/cuda*/bin/nvcc; delete CMakeCache.txt",
            "The driver and the newer toolkit.", sure=False)
    return Diagnosis("TOOLKIT_TOO_OLD", "This nvcc does not know %s." % name,
                     "%s exists since CUDA %s; the toolkit's version was not stated." % (name, dotted(first)) if first else
                     "%s is in no toolkit known here." % name, hit["do"], keep, sure=False, missing="nvcc --version")


def torch_mismatch(v, hit):
    pair = re.search(r"CUDA version \((\d+\.\d+)\).{0,120}?\((\d+\.\d+)\)", errors.normal(v.text))
    nvcc, torch = (tables.version(pair.group(1)), tables.version(pair.group(2))) if pair else (
        v.toolkit, v.torch["cuda"] if v.torch else None)
    d = from_table(hit)
    if nvcc and torch:
        d.what = "nvcc is CUDA %s, PyTorch was built with CUDA %s." % (dotted(nvcc), dotted(torch))
        d.why = "Extensions need the same major version." if nvcc[0] != torch[0] else (
            "The major versions agree, so the extension can be built.")
        d.run = ("ls -d /usr/local/cuda-%d*; export CUDA_HOME=<that folder> PATH=<that folder>/bin:$PATH; or install the PyTorch wheel "
                 "for CUDA %d" % (torch[0], nvcc[0]))
        if nvcc[0] == torch[0] and nvcc != torch:
            d.code, d.severity, d.run = "TORCH_TOOLKIT_MINOR_MISMATCH", WARNING, "Nothing; it is only a warning."
    return d


def gcc_too_new(v, hit):
    said = re.search(r"later than (\d+)", v.text)
    limit = int(said.group(1)) if said else v.gcc_max or tables.gcc_limit(v.toolkit)
    if limit and v.gcc and v.gcc <= limit and said:
        return Diagnosis("FACTS_CONTRADICT", "gcc %d is within the limit of %d, so nvcc used another gcc." % (v.gcc, limit),
                         "The first gcc on PATH, or one given with -ccbin, is newer.", "type -a gcc g++ cc; echo $NVCC_CCBIN; nvcc "
                         "-ccbin g++-%d" % limit, "The toolkit.", sure=False)
    return Diagnosis("HOST_GCC_TOO_NEW", "gcc%s is newer than this toolkit accepts%s." % (
        " %d" % v.gcc if v.gcc else "", " (%d at most)" % limit if limit else ""),
        "nvcc%s checks the major version of gcc in crt/host_config.h." % (" " + dotted(v.toolkit) if v.toolkit else ""),
        "sudo apt install g++-%s; nvcc -ccbin g++-%s (or export NVCC_CCBIN=g++-%s)" % ((limit or 12,) * 3), hit["keep"] if hit else
        "The driver.")


def glibc_clash(v, hit):
    function = re.search(r"function \W{0,6}(\w+)|\b(cospi|sinpi|rsqrt)f?\b", v.text)
    name = (function.group(1) or function.group(2)) if function else None
    d = from_table(hit) if hit else Diagnosis("GLIBC_HEADER_CLASH", "")
    rsqrt = name and name.startswith("rsqrt")
    since, fixed = ("2.42", "13.2") if rsqrt else ("2.41", "13.0")
    d.what = "glibc and the CUDA headers declare %s differently." % (name or "the same function")
    d.why = "%s has it since glibc %s; the toolkit's headers agree with that from CUDA %s on, as far as known%s. %s" % (
        name or "cospi", since, fixed, " (here: CUDA %s%s)" % (dotted(v.toolkit), ", glibc %s" % dotted(v.glibc) if v.glibc else "")
        if v.toolkit else "", "Another gcc meets the same headers.")
    d.run = "Use toolkit %s or newer, or build in a container with glibc older than %s (ldd --version)" % (fixed, since)
    d.keep = "gcc and the driver."
    return d


def compat_on_geforce(v, hit):
    allowed = tables.forward_compat_allowed(v.gpu_name)
    d = from_table(hit) if hit else Diagnosis("COMPAT_LIB_ON_GEFORCE", "", "", errors.EXPLAIN[804][2], errors.EXPLAIN[804][3])
    own = tables.branch_cuda(v.driver_branch)
    d.code = "COMPAT_LIB_ON_GEFORCE"
    d.what = "A cuda-compat libcuda was loaded%s, and it does not work on %s." % (
        " from " + v.compat if v.compat else "", gpu_words(v) if v.gpu_name else "this GPU")
    d.why = "Forward compatibility is for data-centre GPUs." + (
        " nvidia-smi shows CUDA %s, and driver %d by itself offers %s: a compat library is in use." % (
            dotted(v.smi_cuda), v.driver_branch, dotted(own)) if own and v.smi_cuda and v.smi_cuda > own else
        " The driver offers CUDA %s; the image is newer." % dotted(own) if own else "")
    d.sure = hit is not None and allowed is not True
    if allowed:
        d.why += " %s is a data-centre GPU, so it may be the driver's branch that compat does not support." % v.gpu_name
    return d


def driver_mismatch(v, hit):
    if v.module_version and v.library_version and v.module_version != v.library_version and not v.compat:
        return module_mismatch(v)
    d = from_table(hit)
    if v.compat:
        d.why = "The loaded libcuda is %s. " % v.compat
    if v.driver_text:
        d.why += "The kernel module is %s." % short_driver(v)
    if not v.container and not v.compat:
        d.sure, d.missing = False, "whether a container or a compat folder is in use, and whether the driver was just updated"
    return d


def module_mismatch(v, hit=None):
    known_both = v.module_version and v.library_version
    if known_both and v.module_version == v.library_version and hit:
        return Diagnosis("FACTS_CONTRADICT", "Module and libraries are both %s, and the driver says that they differ." % v.module_version,
                         "A second copy of the libraries is loaded, or the facts are from after a reboot.",
                         "ldconfig -p | grep -E 'libcuda|libnvidia-ml'; cat /proc/driver/nvidia/version", "The toolkit.", sure=False)
    which = "the module is %s, the libraries are %s" % (v.module_version, v.library_version) if known_both else "their versions differ"
    return Diagnosis("DRIVER_MODULE_MISMATCH", "The loaded kernel module and the driver's libraries do not belong together.",
                     "%s: an update replaced the files, and the old module is still in memory." % (which[0].upper() + which[1:]),
                     "Reboot. If that does not help, the packages are mixed: dpkg -l | grep nvidia (or rpm -qa | grep nvidia)",
                     "The toolkit, PyTorch and the program.")


def insufficient_driver(v, hit):
    """35, and PyTorch's 'driver on your system is too old (found version 11040)'."""
    found = re.search(r"found version (\d{4,6})", v.text)
    have = (int(found.group(1)) // 1000, int(found.group(1)) % 1000 // 10) if found else v.driver_cuda
    needs = re.search(r"cuda\s*>=\s*(\d+\.\d+)", v.text)
    need = tables.version(needs.group(1)) if needs else v.toolkit or (v.torch["cuda"] if v.torch else None)
    if v.no_driver or (have is None and v.driver_branch is None and not v.toolkit and not found and not needs):
        return missing_driver(v, stated=bool(v.no_driver))
    if have and need and have[0] >= need[0] and not found and not needs:
        if v.container:
            return missing_driver(v, stated=False)
        return Diagnosis("FACTS_CONTRADICT", "The driver (CUDA %s) is new enough for CUDA %s, and the runtime found none or an older one."
                         % (dotted(have), dotted(need)), "The program sees another libcuda than nvidia-smi, or none: a container without "
                         "--gpus, another machine, a compat or stub folder on LD_LIBRARY_PATH.",
                         "ldconfig -p | grep libcuda; echo $LD_LIBRARY_PATH; in a container: docker run --gpus all", "The driver.", sure=False)
    if have is None and v.driver_branch is None:
        return missing_driver(v, stated=False)
    branch = tables.MAJOR_MIN_BRANCH.get(need[0]) if need else None
    jit = tables.cuda_branch(need)
    return Diagnosis("DRIVER_TOO_OLD", "The driver is too old for this program.",
                     "It offers CUDA %s%s; %s." % (dotted(have), " (%s)" % short_driver(v) if v.driver_text else "",
                                                  "the program needs CUDA %s" % dotted(need) if need else "the program was built with a "
                                                  "newer major version, which was not stated"),
                     "Update the driver%s; or take a build for CUDA %s" % (
                         " to %d or newer%s" % (branch, ", and to %d for its PTX" % jit if jit and jit > branch else "") if branch else
                         " (CUDA 12 needs 525, CUDA 13 needs 580)", dotted(have)), "The source and the GPU.", sure=bool(have),
                     missing="" if need else "the CUDA version of the program or wheel")


def missing_driver(v, stated=True):
    """No libcuda, or no kernel module: where is this, and who has to act?"""
    keep = "The program and the toolkit."
    if v.wsl:
        return Diagnosis("WSL_WITHOUT_DRIVER", "WSL sees no NVIDIA driver.", "In WSL the driver comes from Windows "
                         "(/usr/lib/wsl/lib/libcuda.so.1).", "Install or update the NVIDIA driver in Windows, then wsl --update and "
                         "wsl --shutdown", "Never install a Linux driver inside WSL.", sure=stated)
    if v.container or not stated:
        return Diagnosis("CONTAINER_WITHOUT_GPU", "There is no NVIDIA driver library (libcuda.so.1) for the program.",
                         ("This is a container, and it was started without GPU access." if v.container else "Nothing is known of the "
                          "driver; with error 35 that mostly means that there is none. If this is a container, it was started without "
                          "GPU access; if not, no driver is installed.") + " The text about an old driver is misleading.",
                         "docker run --gpus all ... (Podman: --device nvidia.com/gpu=all; Apptainer: --nv)"
                         + ("" if v.container else "; outside of a container: nvidia-smi, and install the driver if it fails"),
                         keep, sure=bool(v.container) and stated, missing="" if v.container else "whether this is a container, and what nvidia-smi says")
    if v.module_version and not v.loaded_libcuda:
        return Diagnosis("NO_DRIVER_LIBRARY", "The kernel module (%s) is loaded, and the driver's library libcuda.so.1 is missing."
                         % v.module_version, "A driver package without its CUDA part (a headless or server variant), or a removed one.",
                         "Install the matching library package (Ubuntu: libnvidia-compute-%s, Fedora and RHEL: nvidia-driver-cuda)"
                         % v.module_version.split(".")[0], keep)
    if v.nouveau:
        return Diagnosis("NOUVEAU_IN_USE", "The open nouveau driver holds the GPU, so the NVIDIA module cannot.", "Only one of them can.",
                         "Install the distribution's NVIDIA driver package (it blocks nouveau) and reboot.", keep)
    if v.secure_boot and v.module_loaded is False:
        return Diagnosis("SECURE_BOOT_BLOCKS_MODULE", "The NVIDIA kernel module is not loaded, and Secure Boot is on.", "Secure Boot loads "
                         "signed modules only.", "sudo dmesg | grep -i 'key was rejected'; enrol the key with mokutil or use the "
                         "distribution's signed driver", keep, sure=False)
    return Diagnosis("NO_KERNEL_DRIVER", "The NVIDIA kernel module is not loaded.",
                     "/proc/driver/nvidia/version does not exist." + (" The libcuda that was found (%s) is only a library; it needs the module."
                                                                     % (v.compat or v.loaded_libcuda) if v.compat or v.loaded_libcuda else ""),
                     "lsmod | grep nvidia; sudo dmesg | grep -iE 'nvidia|nouveau'; then install the driver (Ubuntu: sudo ubuntu-drivers install) "
                     "and reboot", keep)


def no_device(v, hit):
    if v.no_driver:
        return missing_driver(v)
    dropped = dropped_gpu(v)
    if dropped:
        return dropped
    if v.visible_devices is not None:
        return hidden_gpu(v)
    d = from_table(hit)
    d.sure, d.missing = False, "CUDA_VISIBLE_DEVICES, and whether nvidia-smi -L lists the GPU"
    return d


def hidden_gpu(v):
    value = str(v.visible_devices)
    shown = "empty" if value == "" else "'%s'" % value
    return Diagnosis("CUDA_VISIBLE_DEVICES_HIDES_GPU", "CUDA_VISIBLE_DEVICES is %s, so the program sees no GPU." % shown,
                     "An entry that does not exist hides itself and all that follow; an empty value hides every GPU.",
                     "unset CUDA_VISIBLE_DEVICES (or set it to a number that nvidia-smi -L shows)", "The driver, the toolkit and the program.")


def dropped_gpu(v):
    """Drivers from 590 on support compute capability 7.5 and newer."""
    if v.driver_branch and v.driver_branch >= 590 and v.cc_major is not None and (v.cc or (v.cc_major, 9)) < (7, 5):
        return Diagnosis("DRIVER_DROPPED_GPU", "Driver %s no longer supports %s." % (short_driver(v), gpu_words(v)),
                         "From branch 590 on it needs compute capability 7.5; Maxwell, Pascal and Volta end with branch 580.",
                         "Install the 580 branch (Ubuntu: sudo apt install nvidia-driver-580) and reboot", "The card is not broken; toolkits "
                         "up to 12.9 build for it.")
    return None


def old_driver_for_gpu(v):
    need = tables.gpu_min_branch(v.cc) if v.cc else None
    if need and v.driver_branch and v.driver_branch < need and v.cc >= (7, 5):
        return Diagnosis("DRIVER_TOO_OLD", "Driver %s is older than %s and does not know it." % (short_driver(v), gpu_words(v)),
                         "That GPU came with driver branch %d." % need, "Update the driver to %d or newer" % need, "The toolkit.")
    return None


def smi_fails(v, hit):
    """nvidia-smi cannot reach the driver, or sees no device."""
    found = dropped_gpu(v) or old_driver_for_gpu(v)
    if found:
        return found
    if re.search(r"Key was rejected|secure boot", v.hints, re.IGNORECASE):
        return from_table(next(h for h in errors.recognise("Key was rejected by service")))
    if hit["code"] == "CHECK_OPEN_MODULES":
        d = from_table(hit)
        if v.cc_major is not None and v.cc_major >= 10:
            d.why = "%s is a Blackwell GPU: it works with the open modules only%s." % (
                gpu_words(v), "; the loaded module's licence is %s" % v.module_license if v.module_license else "")
        else:
            d.sure, d.missing = False, "the NVRM lines of dmesg"
        return d
    if v.container:
        return missing_driver(v, stated=True)
    d = from_table(hit)
    d.sure, d.missing = False, "what dmesg says about nvidia, and the GPU's name" if not v.cc_major else "what dmesg says about nvidia"
    return d


def unknown_error(v, hit):
    if v.windows or re.search(r"screen|black|TDR|watchdog|cudaDeviceSynchronize", v.text, re.IGNORECASE):
        return Diagnosis("TDR_TIMEOUT", "The kernel ran longer than the display's watchdog allows, and the driver was restarted.",
                         "Windows reports that as 999 or 702; the screen goes black for a second.",
                         "Make each launch shorter than 2 seconds (split the loop or the grid); or a second GPU for the display; or raise "
                         "TdrDelay in the registry", "The driver and the toolkit.", sure=bool(re.search(r"screen|TDR", v.text, re.IGNORECASE)))
    if v.container:
        return Diagnosis("UVM_NODE_MISSING", "The container lacks /dev/nvidia-uvm, or the host's nvidia_uvm module is not loaded.",
                         "CUDA needs that device file besides /dev/nvidia0.", "On the host: sudo modprobe nvidia_uvm && nvidia-modprobe -u -c=0; "
                         "then start the container again with --gpus all", "The image and the toolkit.", sure=False,
                         missing="ls -l /dev/nvidia-uvm inside the container")
    d = from_table(hit, code="UVM_BROKEN_AFTER_SUSPEND")
    d.sure, d.missing = False, "whether the machine slept since the last boot, and sudo dmesg | grep -iE 'nvrm|xid'"
    return d


def out_of_memory(v, hit):
    managed = re.search(r"managed", v.hints, re.IGNORECASE)
    if managed:
        return Diagnosis("WSL_NO_OVERSUBSCRIPTION", "Managed memory cannot be larger than what the GPU has free here.",
                         "Oversubscribing works on Linux from compute capability 6.0 on, not on Windows and WSL%s." % (
                             "" if v.wsl or v.windows else " (the system was not stated; on plain Linux look for another user of the memory)"),
                         "cudaMalloc with sizes from cudaMemGetInfo, and work in chunks", "The driver and the toolkit.",
                         sure=bool(v.wsl or v.windows), missing="" if v.wsl or v.windows else "whether this is Windows or WSL")
    return from_table(hit)


def busy(v, hit):
    modes = [str(g.get("compute_mode") or "") for g in v.gpus]
    d = from_table(hit)
    if any("prohibited" in m.lower() for m in modes):
        return Diagnosis("COMPUTE_PROHIBITED", "The GPU is in compute mode Prohibited.", "The administrator forbids CUDA on it.",
                         "Ask the administrator (sudo nvidia-smi -c 0 lifts it), or use another GPU", "The driver and the toolkit.")
    if not any("exclusive" in m.lower() for m in modes):
        d.sure, d.missing = False, "nvidia-smi -q -d COMPUTE, and the processes that nvidia-smi lists"
    return d


def mig_text(v, hit):
    d = from_table(hit)
    if not re.search(r"\bMIG\b", v.hints) and not any(g.get("mig") for g in v.gpus):
        d.sure, d.missing = False, "whether MIG is on (nvidia-smi -L)"
    return d


def segfault(v, hit):
    if v.wsl or v.windows or looks_like_windows_driver(v):
        return Diagnosis("CONCURRENT_MANAGED_ACCESS=0", "Probably the CPU touched managed memory while a kernel was running.",
                         "%s: there the attribute concurrentManagedAccess is 0, and that access is a segmentation fault, in whatever library "
                         "happens to make it." % ("This is WSL or Windows" if v.wsl or v.windows else
                                                  "Driver %s has a Windows number, so this seems to be WSL" % short_driver(v)),
                         "cudaDeviceSynchronize() before the CPU uses managed memory, or cudaMalloc with copies; check the attribute with "
                         "cudaDeviceGetAttribute", "The driver, the toolkit and the library that crashed.", sure=False,
                         missing="whether the program uses cudaMallocManaged")
    return from_table(hit)


def looks_like_windows_driver(v):
    """Windows drivers have two parts (596.49), Linux ones of the last years three (595.71.05)."""
    return bool(v.driver_branch and v.driver_branch >= 520 and re.match(r"^\d{3}\.\d{2}\b(?!\.)", v.driver_text or ""))


def fabric(v, hit):
    if re.search(r"uvm_pmm_gpu|err -34|nokaslr|uvm_disable_hmm", v.hints):
        return from_table(errors.recognise("uvm_disable_hmm")[0])
    return from_table(hit)


def no_libcuda(v, hit):
    return missing_driver(v, stated=bool(v.no_driver or v.container))


def dropped_text(v, hit):
    return dropped_gpu(v) or from_table(hit)


TEXT_RULES = {
    98: no_image, 209: no_image, 200: None, 222: old_ptx, 218: ptx_jit_failed, 35: insufficient_driver, 100: no_device,
    803: driver_mismatch, 804: compat_on_geforce, 802: fabric, 999: unknown_error, 2: out_of_memory, 46: busy,
    "WHEEL_LACKS_ARCH": wheel_lacks, "GPU_TOO_OLD_FOR_WHEEL": wheel_lacks, "TOOLKIT_TOO_OLD": unsupported_arch,
    "TORCH_TOOLKIT_MAJOR_MISMATCH": torch_mismatch, "HOST_GCC_TOO_NEW": gcc_too_new, "GLIBC_HEADER_CLASH": glibc_clash,
    "DRIVER_MODULE_MISMATCH": module_mismatch, "DRIVER_TOO_OLD": insufficient_driver, "NO_KERNEL_DRIVER": smi_fails,
    "CHECK_OPEN_MODULES": smi_fails, "DRIVER_DROPPED_GPU": dropped_text, "UVM_BROKEN_AFTER_SUSPEND": unknown_error, "MIG": mig_text,
    "HOST_SEGFAULT": segfault, "NO_LIBCUDA": no_libcuda,
}


# --- what is wrong with the machine itself, in this order

def rule_driver(v):
    """1. Is there a driver?"""
    if not v.no_driver:
        return None
    if v.report:
        return missing_driver(v)
    hardware = bool(v.pci_gpu) or bool(v.gpus) or bool(v.module_version)
    if hardware or v.wsl:
        return missing_driver(v)
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
    if v.module_version and v.library_version and v.module_version != v.library_version and not v.compat:
        return module_mismatch(v)
    return None


def rule_smi(v):
    """nvidia-smi is there and fails: its message says more than the numbers."""
    if not v.smi_error or v.no_driver:
        return None
    hits = [h for h in errors.recognise(v.smi_error) if not h["number"]]
    if hits:
        rule = TEXT_RULES.get(hits[0]["code"])
        return (rule(v, hits[0]) if rule else None) or from_table(hits[0])
    return Diagnosis("NVIDIA_SMI_FAILS", "nvidia-smi fails, so the driver is in doubt.", "It says: %s" % errors.normal(v.smi_error)[:200],
                     "sudo dmesg | grep -iE 'nvrm|xid'", "The toolkit.", severity=WARNING, sure=False)


def rule_compat(v):
    """4. A compat library in place of the driver's own."""
    if v.no_driver:
        return None
    own = tables.branch_cuda(v.driver_branch)
    higher = own and v.smi_cuda and v.smi_cuda > own and not (v.jetson or v.wsl)
    if v.init_error == 804:
        return compat_on_geforce(v, errors.recognise("804")[0])
    if v.init_error == 803:
        return driver_mismatch(v, errors.recognise("803")[0])
    allowed = tables.forward_compat_allowed(v.gpu_name)
    if (v.compat or higher) and allowed is False:
        return compat_on_geforce(v, None)
    if v.compat and v.library_version and v.driver_branch and (tables.driver_branch(v.library_version) or 999) < v.driver_branch:
        return Diagnosis("COMPAT_LIB_SHADOWS_DRIVER", "An older libcuda from %s comes before the driver's own." % v.compat,
                         "It is %s; the driver is %s, which needs no compat library." % (v.library_version, short_driver(v)),
                         "Take %s off LD_LIBRARY_PATH; check: ldconfig -p | grep libcuda" % v.compat, "The driver and the toolkit.")
    if v.compat or higher:
        return Diagnosis("COMPAT_LIB_IN_USE", "A forward-compatibility libcuda is in use%s." % (" (%s)" % v.compat if v.compat else ""),
                         "nvidia-smi shows CUDA %s; driver %s by itself offers %s. That is allowed on data-centre GPUs." % (
                             dotted(v.smi_cuda), short_driver(v), dotted(own)) if higher else "That is allowed on data-centre GPUs.",
                         "", "", severity=WARNING if allowed else PROBLEM if v.report and higher and allowed is False else WARNING, sure=False)
    return None


def rule_devices(v):
    """5. A driver, but no GPU to be seen."""
    found = dropped_gpu(v) or old_driver_for_gpu(v)
    if found:
        return found
    if v.no_driver or v.report:
        return None
    zero = v.device_count == 0 or v.init_error == 100
    if zero and v.visible_devices is not None:
        return hidden_gpu(v)
    if any(g.get("mig") and not g.get("mig_devices") for g in v.gpus) and zero:
        return Diagnosis("MIG", "The GPU is in MIG mode and has no slice, so CUDA sees no device.", "MIG is enabled, and nvidia-smi -L shows no "
                         "MIG device.", "Ask the administrator for a slice (sudo nvidia-smi mig -cgi ... -C), or for MIG to be switched off",
                         "The driver and the toolkit.")
    if zero and v.slurm and not v.in_job:
        return None
    if zero and (v.pci_gpu or v.gpus):
        if v.module_license and re.search("nvidia", v.module_license, re.IGNORECASE):
            d = from_table(next(h for h in errors.recognise("No devices were found")))
            d.why, d.sure = "The loaded module is the proprietary one (licence %s)." % v.module_license, False
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
        return Diagnosis("CUDA_ERROR_%d" % v.init_error, "cuInit fails with error %d, which is not in the table." % v.init_error, "",
                         "sudo dmesg | grep -iE 'nvrm|xid'", "", sure=False)
    hit = next((h for h in hits if not h["old_number"]), hits[0])
    rule = TEXT_RULES.get(hit["number"])
    return rule(v, hit) if rule else from_table(hit)


def rule_mode(v):
    modes = [str(g.get("compute_mode") or "").lower() for g in v.gpus]
    if modes and all("prohibited" in m for m in modes):
        return busy(v, errors.recognise("46")[0])
    return None


def builds_for(toolkit, cc):
    """Can this nvcc make anything that runs on the GPU directly? (exact, can, None) by its own list or by the table."""
    archs = toolkit.get("archs")
    known_archs = [tables.parse_cc(a) for a in archs if tables.parse_cc(a)] if isinstance(archs, list) else None
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
        return Diagnosis("NVCC_FAILS", "The first nvcc on PATH (%s) does not answer." % first.get("path"), "It says: %s" % (
            errors.normal(first.get("error") or "nothing")[:200]), "Remove it from PATH or repair it; others here: %s" % (", ".join(
                str(t.get("path")) for t in v.toolkits if t is not first) or "none"), "The driver.")
    if first is None:
        if v.toolkits:
            folder = str(v.toolkits[0].get("path") or "/usr/local/cuda/bin/nvcc").rsplit("/", 1)[0]
            return Diagnosis("NVCC_NOT_ON_PATH", "nvcc is installed, but not on PATH.", "Found: %s." % ", ".join(
                str(t.get("path")) for t in v.toolkits), "export PATH=%s:$PATH (and put it into ~/.bashrc)" % folder, "Nothing needs to be installed.")
        if v.gpus:
            return Diagnosis("NO_NVCC", "There is a GPU and a driver, and no CUDA compiler (nvcc).",
                             "nvidia-smi's CUDA version is what the driver can run; it does not bring a compiler.%s" % (
                                 " PyTorch's own CUDA libraries do not either." if v.torch else ""),
                             "Install the toolkit (https://developer.nvidia.com/cuda-downloads), at most CUDA %s for this driver; until then "
                             "make BACKEND=cpu" % dotted(v.driver_cuda), "The driver.")
        return None
    return toolkit_against_gpu(v, first)


def toolkit_against_gpu(v, first):
    exact, can, archs = builds_for(first, v.cc)
    if exact is not False:
        return None
    version, name = first.get("version") or "of unknown version", gpu_words(v)
    other = next((t for t in v.toolkits if t is not first and builds_for(t, v.cc)[0]), None)
    path = "export PATH=%s:$PATH: the nvcc there is %s and knows it" % (str(other.get("path")).rsplit("/", 1)[0], other.get("version")) if other else ""
    want = tables.ARCH_TOOLKITS.get(v.cc)
    where = " (%s)" % first["path"] if first.get("path") else ""
    if v.cc < min(archs):
        return Diagnosis("TOOLKIT_DROPPED_ARCH", "nvcc %s%s no longer builds for %s." % (version, where, name),
                         "Its oldest architecture is %s%s." % (sm(min(archs)), "; CUDA %s was the last one with %s" % (
                             dotted(want[1]), sm(v.cc)) if want and want[1] else ""),
                         path or ("Install toolkit %s beside it" % dotted(want[1]) if want and want[1] else "Use an older toolkit"),
                         "The driver.")
    if not want:
        return Diagnosis("GPU_NOT_KNOWN_HERE", "nvcc %s does not list %s." % (version, name), "Compute capability %s is not in this script's tables "
                         "either." % dotted(v.cc), "nvcc --list-gpu-arch; look for a newer toolkit", "The driver.", sure=False)
    near = [a for a in archs if a[0] == v.cc[0] and a < v.cc and a not in tables.TEGRA]
    older = [a for a in archs if a < v.cc and a not in tables.TEGRA]
    hint = ("; until then build for sm_%s, which runs on it: make SMS=%s" % ((tables.arch_number(max(near)),) * 2) if near else
            "; until then PTX for compute_%s, which the driver compiles: nvcc -arch=compute_%s" % ((tables.arch_number(max(older)),) * 2) if older else "")
    return Diagnosis("TOOLKIT_TOO_OLD", "nvcc %s%s is too old for %s." % (version, where, name),
                     "%s exists since CUDA %s.%s" % (sm(v.cc), dotted(want[0]), " nvidia-smi's CUDA %s is the driver's, not the compiler's." % dotted(
                         v.smi_cuda) if v.smi_cuda and v.smi_cuda >= want[0] else ""),
                     (path or "Install toolkit %s or newer" % dotted(want[0])) + hint, "The driver.")


def rule_two_toolkits(v):
    """Two toolkits are no fault, but a frequent surprise."""
    versions = {t.get("version") for t in v.toolkits if t.get("version")}
    first = next((t for t in v.toolkits if t.get("first")), None)
    home = next((t for t in v.toolkits if v.cuda_home and str(t.get("path")).startswith(v.cuda_home + "/")), None)
    if first and home and home is not first and home.get("version") != first.get("version"):
        return Diagnosis("TWO_TOOLKITS", "CUDA_HOME names toolkit %s, and the first nvcc on PATH is %s (%s)." % (
            home.get("version"), first.get("version"), first.get("path")), "Make and the shell take the one on PATH, PyTorch and some build "
            "systems the one of CUDA_HOME.", "export CUDA_HOME=<folder of the one you want> PATH=$CUDA_HOME/bin:$PATH", "", severity=WARNING)
    if len(versions) > 1 and first:
        others = ", ".join("%s (%s)" % (t.get("version"), t.get("path")) for t in v.toolkits if t is not first)
        return Diagnosis("TWO_TOOLKITS", "Several toolkits are installed; the first on PATH counts: %s (%s)." % (first.get("version"), first.get("path")),
                         "Also here: %s." % others, "export PATH=<folder of the one you want>/bin:$PATH", "", severity=WARNING)
    return None


def rule_host_compiler(v):
    """8. gcc against host_config.h, then a real compile."""
    test = v.header_test
    if test and test.get("ok") is True:
        return None
    if v.has_cxx is False:
        return Diagnosis("HOST_COMPILER_MISSING", "There is no C++ compiler.", "nvcc needs one for the CPU's part, and so does the CPU backend.",
                         "sudo apt install g++ make (or the distribution's packages)", "The driver and the toolkit.")
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
        return Diagnosis("COMPILE_TEST_FAILS", "nvcc cannot compile a file that only includes <cmath> and <vector>.", "It says: " + errors.normal(text)[:300],
                         "nvcc -c on such a file shows the whole message", "The driver.", sure=False)
    limit = v.gcc_max or tables.gcc_limit(v.toolkit)
    if v.gcc and limit and v.gcc > limit:
        d = gcc_too_new(v, None)
        d.sure = v.gcc_max is not None
        d.missing = "" if d.sure else "the limit in this toolkit's own crt/host_config.h"
        return d
    if v.report and v.glibc and v.toolkit and ((v.glibc >= (2, 41) and v.toolkit < (13, 0)) or (v.glibc >= (2, 42) and v.toolkit < (13, 2))):
        d = glibc_clash(v, None)
        d.what, d.sure, d.missing = "glibc %s is newer than the headers of CUDA %s expect." % (dotted(v.glibc), dotted(v.toolkit)), False, (
            "a real compile; distributions patch the headers")
        return d
    return None


def rule_cpu_backend(v):
    """Without a GPU the CPU backend is what runs."""
    if v.cpu_backend and v.cpu_backend.get("ok") is False and v.has_cxx:
        return Diagnosis("CPU_BACKEND_FAILS", "The CPU backend cannot build or run a small kernel.", "It says: %s" % errors.normal(
            v.cpu_backend.get("error") or "nothing")[:300], "make -C 02_saxpy BACKEND=cpu shows the whole message", "The driver.")
    return None


def rule_runtime(v):
    """9. The toolkit's runtime against the driver."""
    made, whose = v.toolkit, "nvcc %s" % dotted(v.toolkit)
    if v.report and made is None and v.torch and v.torch["cuda"]:
        made, whose = v.torch["cuda"], torch_words(v)
    if not made or not v.driver_cuda or v.no_driver:
        return None
    if v.driver_cuda[0] < made[0]:
        return Diagnosis("DRIVER_TOO_OLD", "The driver is too old for programs from %s." % whose,
                         "%s offers CUDA %s; CUDA %d programs need driver %s or newer (error 35)." % (
                             "Driver " + short_driver(v) if v.driver_text else "The driver", dotted(v.driver_cuda), made[0],
                             tables.MAJOR_MIN_BRANCH.get(made[0], "of that version")),
                         "Update the driver, or use a toolkit of CUDA %d (%s or older)" % (v.driver_cuda[0], dotted(v.driver_cuda)), "The GPU and the source.")
    if v.driver_cuda < made and not (v.compat or (v.smi_cuda and v.smi_cuda >= made)):
        return Diagnosis("DRIVER_TOO_OLD_FOR_PTX", "The driver is older than %s, inside the same major version." % whose,
                         "Machine code runs; PTX from CUDA %s does not (error 222), because the driver compiles PTX up to CUDA %s." % (
                             dotted(made), dotted(v.driver_cuda)),
                         "Build machine code for your GPU: make SMS=%s (make does that by itself where it sees the GPU)" % (
                             tables.arch_number(v.cc) if v.cc else "86"), "Driver and toolkit can stay.", severity=WARNING)
    return None


def rule_build(v):
    """10. The flags of the build against the GPU (in a report; scripts/inspect does it for a file)."""
    if v.flags and v.cc and not (v.torch and v.torch["arch_list"]) and covers(v.flags, v.cc) is False:
        return no_image(v, errors.recognise("209")[0])
    return None


def rule_torch(v):
    """11. PyTorch: a CPU wheel, a list without the GPU, another CUDA major than nvcc."""
    if not v.torch:
        return None
    if v.torch["cpu"]:
        if not v.gpus and not v.report:
            return None
        return Diagnosis("TORCH_CPU_WHEEL", "The installed PyTorch (%s) is built for the CPU only." % v.torch["version"],
                         "It cannot use any GPU, whatever driver and toolkit are there.",
                         "pip uninstall torch; pip install torch --index-url https://download.pytorch.org/whl/%s" % wheel_tag(v), "The driver and the toolkit.")
    if v.torch["arch_list"] and (v.cc or v.cc_major is not None) and covers(v.torch["arch_list"], v.cc) is not True:
        found = wheel_lacks(v, None)
        if found:
            return found
    if v.report and not v.torch["arch_list"] and v.torch["cuda"] and v.cc_major is not None:
        tag, cc = v.torch["cuda"], v.cc or (v.cc_major, 0)
        if (cc[0] >= 12 or cc[0] == 10) and tag < (12, 8) or cc[0] < 7 and tag >= (12, 8):
            return wheel_lacks(v, None)
    if v.torch["cuda"] and v.toolkit and v.torch["cuda"][0] != v.toolkit[0]:
        return Diagnosis("TORCH_TOOLKIT_MAJOR_MISMATCH", "PyTorch is built with CUDA %s, nvcc is %s." % (dotted(v.torch["cuda"]), dotted(v.toolkit)),
                         "PyTorch itself runs. Extensions refuse to build: they need the same major version.",
                         "For extensions only: export CUDA_HOME=/usr/local/cuda-%d.x of PyTorch's major version, or the PyTorch wheel for CUDA %d" % (
                             v.torch["cuda"][0], v.toolkit[0]), "The driver.", severity=WARNING)
    return None


def wheel_tag(v):
    if v.cc and v.cc[0] >= 10:
        return "cu128"
    return "cu126"


def rule_numba(v):
    if v.numba and v.gpus and v.numba.get("version") and v.numba.get("cuda_available") is False:
        return Diagnosis("NUMBA_SEES_NO_GPU", "numba %s does not find a usable CUDA." % v.numba["version"], str(v.numba.get("error") or "It needs the toolkit's libnvvm and "
                         "a driver that is not older."), "python -m numba -s | grep -i -A12 cuda; pip install numba-cuda", "The driver.", severity=WARNING)
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
    return Diagnosis("TEST_KERNEL_FAILS", "Everything looks right, and a one-thread kernel still does not run.",
                     "It says: %s" % (errors.normal(test.get("error") or "nothing")[:300]), "sudo dmesg | grep -iE 'nvrm|xid'; reboot; try another GPU with "
                     "CUDA_VISIBLE_DEVICES=1", "", sure=False)


def rule_contradictions(v):
    """Facts that exclude each other."""
    by_name = tables.cc_of_name(v.gpu_name) if v.gpu_name else None
    if v.cc and by_name and by_name != v.cc and not re.search(r"\bnot\b", v.gpu_name or ""):
        return Diagnosis("FACTS_CONTRADICT", "%s has compute capability %s; the facts say %s." % (v.gpu_name, dotted(by_name), dotted(v.cc)),
                         "One of the two is from another GPU.", "nvidia-smi --query-gpu=name,compute_cap --format=csv", "", severity=WARNING, sure=False)
    if v.no_driver and not v.report and any(g.get("memory_mib") for g in v.gpus):
        return Diagnosis("FACTS_CONTRADICT", "The facts list a GPU with its memory and say that there is no driver.", "Only a driver can tell the memory.",
                         "scripts/check_env --save FILE on that machine, once more", "", severity=WARNING, sure=False)
    if v.driver_branch and v.smi_cuda and not v.compat:
        own = tables.branch_cuda(v.driver_branch)
        if own and v.smi_cuda < own and v.smi_cuda[0] < own[0]:
            return Diagnosis("FACTS_CONTRADICT", "Driver %s offers CUDA %s by itself; the facts say %s." % (short_driver(v), dotted(own), dotted(v.smi_cuda)),
                             "Two machines or a number from elsewhere?", "nvidia-smi", "", severity=WARNING, sure=False)
    if v.kernel_test and v.kernel_test.get("ok") is True and v.no_driver:
        return Diagnosis("FACTS_CONTRADICT", "A kernel ran, and the facts say that there is no driver.", "", "scripts/check_env --save FILE, once more", "",
                         severity=WARNING, sure=False)
    return None


def rule_no_gpu(v):
    """Nothing broken: a machine without a GPU, on which building works."""
    if v.pci_gpu or v.module_version or (v.wsl and v.no_driver):
        return None
    if v.report or v.gpus or (v.device_count or 0) > 0 or (v.kernel_test and v.kernel_test.get("ok")):
        return None
    if v.driver_text is None and v.no_driver is None and v.device_count is None and v.pci_gpu is None:
        return None
    first = next((t for t in v.toolkits if t.get("first")), None)
    build = ("nvcc %s builds for GPUs elsewhere: make BACKEND=cuda SMS=\"80 90\"; " % first.get("version") if first else "")
    run = build + "make builds and runs every lesson on the CPU backend (BACKEND=cpu)"
    keep = "Nothing needs to be installed for that."
    if v.slurm:
        job = " in this job" if v.in_job else " on this login node"
        return Diagnosis("LOGIN_NODE" if not v.in_job else "JOB_WITHOUT_GPU", "There is no GPU%s; Slurm hands them out." % job,
                         "Slurm's commands are here, and no NVIDIA GPU is.", "srun --gres=gpu:1 --pty bash (your site may want --partition or --account), "
                         "then check_env again there; here: " + run, keep, severity=NO_GPU)
    why = "No NVIDIA device on the PCI bus and no driver." if v.no_driver else "The driver shows no device."
    if v.container:
        why += " This is a container (%s): if its host has a GPU, the container was started without it." % v.container
        run = run + ". With a GPU in the host: docker run --gpus all"
    return Diagnosis("NO_GPU", "This machine has no NVIDIA GPU that can be seen.", why, run, keep, severity=NO_GPU)


ORDER = [rule_driver, rule_stub, rule_module, rule_smi, rule_compat, rule_devices, rule_init, rule_mode, rule_toolkit, rule_host_compiler,
         rule_cpu_backend, rule_runtime, rule_build, rule_torch, rule_kernel, rule_no_gpu, rule_two_toolkits, rule_numba, rule_contradictions]


def judge(facts):
    """The diagnoses, the one to act on first. Raises BadFacts for facts of no known shape."""
    v = view_of(facts)
    found = []
    if v.text:
        first = judge_text(v)
        if first:
            found.append(first)
    for rule in ORDER:
        d = rule(v)
        if d and d.code not in [f.code for f in found] and not (d.code == "FACTS_CONTRADICT" and any(
                f.what == d.what for f in found)):
            found.append(d)
    if v.text and not (found and found[0].severity == PROBLEM) and not errors.recognise(v.text):
        found.append(Diagnosis("UNDECIDED", "The error text is not one that is known here, and the other facts show no fault.",
                               "Not given: %s." % (", ".join(not_given(v)) or "nothing"), "Send more lines of the output, from the first error on; "
                               "scripts/check_env --save facts.json on that machine", "", sure=False))
    found.sort(key=lambda d: 0 if d.severity in (PROBLEM,) else 1)  # stable: keeps the order of the rules
    return found


def not_given(v):
    names = (("driver", v.driver_text or v.no_driver), ("toolkit", v.toolkit), ("gcc", v.gcc), ("GPU", v.gpu_name),
             ("compute capability", v.cc or v.cc_major), ("PyTorch", v.torch), ("build flags", v.flags_text))
    return [name for name, value in names if not value]


def exit_code(diagnoses):
    if any(d.severity == PROBLEM for d in diagnoses):
        return 1
    return 2 if any(d.severity == NO_GPU for d in diagnoses) else 0
