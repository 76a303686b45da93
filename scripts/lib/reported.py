"""What a reported error means together with the other facts: the rules that start from an error
text.

The same text has different causes on different machines: 'no kernel image' may be the fault of a
PyTorch wheel, a container image, an extension or the own build. Each rule takes the View and what
errors.py recognised, and returns a Diagnosis, or None to leave the word to the next one.
"""

import re

import errors
import tables
from tables import dotted
from view import arch_words

PROBLEM, WARNING, NOTE, NO_GPU = "problem", "warning", "note", "no_gpu"


class Diagnosis:
    """What is wrong, why we think so, what to run, and what can stay as it is."""

    def __init__(
        self, code, what, why="", run="", keep="", severity=PROBLEM, sure=True, missing=""
    ):
        self.code, self.what, self.why, self.run, self.keep = code, what, why, run, keep
        self.severity, self.sure, self.missing = severity, sure, missing

    def as_dict(self):
        return {
            "code": self.code,
            "severity": self.severity,
            "sure": self.sure,
            "what": self.what,
            "why": self.why,
            "run": self.run,
            "keep": self.keep,
            "missing": self.missing,
        }


# --- words for what is known


def gpu_words(v):
    name = v.gpu_name or "the GPU"
    return "%s (compute capability %s)" % (name, dotted(v.cc)) if v.cc else name


def sentence(text):
    return text[:1].upper() + text[1:]


def sm(cc):
    return "sm_" + tables.arch_number(cc)


def listed(images):
    words = [
        "%s%s%s" % ("compute_" if kind == "ptx" else "sm_", tables.arch_number(arch), suffix)
        for kind, arch, suffix in images
    ]
    return ", ".join(dict.fromkeys(words))


def covers(images, cc):
    """Does one of these images run on the GPU? None if either is not known."""
    if not images or not cc:
        return None
    return any(
        (
            tables.sass_runs_on(arch, suffix, cc)
            if kind == "sass"
            else tables.ptx_runs_on(arch, suffix, cc)
        )
        for kind, arch, suffix in images
    )


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
    d = Diagnosis(
        code or hit["code"],
        number + (hit["means"] or hit["text"]),
        why_first,
        hit["do"],
        hit["keep"],
    )
    for key, value in changes.items():
        setattr(d, key, value)
    return d


# --- what an error text means together with the facts


def judge_text(v):
    """The diagnosis for the reported error, or None if the text says nothing that is known."""
    hits = errors.recognise(v.text) if v.text else []
    if re.search(r"wrong (values?|results?)|NaN|no error", v.text, re.IGNORECASE) or not hits:
        extra = [
            h for h in errors.recognise(v.flags_text or "") if h["code"] == "UINT32_INDEX_OVERFLOW"
        ]
        if re.search(r"\bint\s+\w+\s*=\s*blockIdx", v.flags_text or "") and not hits:
            extra = errors.recognise("UINT32_INDEX_OVERFLOW")
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
        tables.arch_number(v.cc) if v.cc else "86 (your GPU's number)"
    )
    malformed = bool(re.search(r"ARCHITECTURES.{0,40}\bsm_", v.flags_text or ""))
    if v.flags and covers(v.flags, v.cc) and not malformed:
        return Diagnosis(
            "FACTS_CONTRADICT",
            "The build flags cover this GPU, and still its code is missing.",
            "%s runs on %s. So the file that failed was not built with these flags (a stale build"
            " folder or cache, another library), or the GPU is another one."
            % (listed(v.flags), gpu_words(v)),
            "scripts/inspect on the program and on each library it loads; then rebuild in a new"
            " folder",
            "The flags and the driver.",
            sure=False,
        )
    if v.flags_text:
        why = "Built for %s; the GPU is %s. " % (
            listed(v.flags) if v.flags else "'%s'" % v.flags_text,
            gpu_words(v),
        )
        if malformed:
            why += "CMake takes 70, not sm_70."
        elif v.flags:
            why += (
                "Machine code runs only inside its major version, on the same minor or a higher one"
                + (
                    "; PTX only on newer GPUs."
                    if any(k == "ptx" for k, _, _ in v.flags)
                    else "; there is no PTX."
                )
            )
        return Diagnosis(
            "BUILD_LACKS_ARCH",
            "The program was built without code for this GPU.",
            why,
            run,
            hit["keep"],
            sure=bool(v.cc and v.flags and not malformed),
            missing="" if v.cc else "the GPU's compute capability",
        )
    old = v.cc_major is not None and (v.cc or (v.cc_major, 0)) < (7, 5) and not v.toolkit
    if old or (v.container and not v.toolkit):
        code = "GPU_TOO_OLD_FOR_IMAGE" if old else "BUILD_LACKS_ARCH"
        return Diagnosis(
            code,
            "The prebuilt program or image has no code for %s."
            % ("a GPU this old" if old else gpu_words(v)),
            "%s." % gpu_words(v)
            + (
                " Newer builds leave out Maxwell, Pascal and Volta, and PTX does not go back to"
                " older GPUs."
                if old
                else ""
            ),
            "Use %s tag of the image, or build it yourself: make SMS=%s"
            % (
                "an older (legacy)" if old else "a newer",
                tables.arch_number(v.cc) if v.cc else "61 (your GPU's number)",
            ),
            "The driver.",
            sure=False,
            missing="what the file holds (scripts/inspect FILE)",
        )
    return Diagnosis(
        "BUILD_LACKS_ARCH",
        "The program holds no code for this GPU.",
        hit["means"],
        run,
        hit["keep"],
        sure=False,
        missing="what the file holds (scripts/inspect FILE)",
    )


def about_extension(v):
    """Is the missing code more likely an extension's than the wheel's? Official wheels of CUDA 11.7
    and newer have machine code for 7.5 to 8.9, those of 11.8 and newer for 9.0, as far as known;
    the list, if given, decides.
    """
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
    named = re.search(r"\bsm_(\d{2,3})\b is not compatible|of cuda capability (\d+\.\d)", v.text)
    cc = v.cc or (tables.parse_cc(named.group(1) or named.group(2)) if named else None)
    images = v.torch["arch_list"] if v.torch else None
    supports = re.search(r"supports CUDA capabilities ([\w ]+)", v.text)
    if supports and not images:
        images = arch_words(supports.group(1)) or None
    torch = torch_words(v) if v.torch else "The installed PyTorch"
    has = " Its list: %s." % listed(images) if images else ""
    between = re.search(
        r"minimum and maximum cuda capability"
        r" supported[\s\S]{0,60}?\((\d+\.\d)\)\s*-\s*\((\d+\.\d)\)",
        v.text,
        re.IGNORECASE,
    )
    minimum = between or re.search(
        r"minimum cuda capability (?:supported by this library|that we support) is (\d+\.\d)",
        v.text,
        re.IGNORECASE,
    )
    newest = tables.version(between.group(2)) if between else None
    if (
        newest and cc and cc > newest and not images
    ):  # the same message serves for a GPU that is too new
        if tables.sass_runs_on(newest, "", cc):
            return Diagnosis(
                "TORCH_WARNING_ONLY",
                "PyTorch warns, and its code runs on this GPU all the same.",
                "Machine code for %s runs on %s: same major version, higher minor."
                % (sm(newest), gpu_words(v)),
                "Nothing. A newer wheel would not warn.",
                "Everything.",
                severity=NOTE,
            )
        hit = minimum = None
    too_old = hit and hit["code"] == "GPU_TOO_OLD_FOR_WHEEL"
    keep = "The driver and the system's toolkit; the wheel brings its own libraries."
    if images and cc and covers(images, cc):
        if named and "not compatible" in v.text or too_old:
            return Diagnosis(
                "FACTS_CONTRADICT",
                "The wheel's list has code for this GPU, and PyTorch says it has not.",
                "%s runs on %s.%s Two PyTorch installations, or a report of two machines?"
                % (torch, sm(cc), has),
                "python -c 'import torch; print(torch.__file__, torch.__version__,"
                " torch.cuda.get_arch_list())'",
                keep,
                sure=False,
            )
        if hit and hit["number"] in (98, 209):
            return ext_lacks(v, hit)
        return None
    limit = tables.version(minimum.group(1)) if minimum else oldest(images) if images else None
    major = cc[0] if cc else v.cc_major
    old_by_tag = (
        v.torch
        and not images
        and major is not None
        and v.torch["cuda"] is not None
        and v.torch["cuda"] >= (12, 8)
        and major < 7
    )
    if (
        too_old
        or old_by_tag
        or (cc and limit and cc < limit)
        or (limit and major is not None and major < limit[0])
        or (not images and major is not None and major < 7 and not named)
    ):
        why = "%s: %s. " % (
            torch,
            (
                "its oldest architecture is %s" % dotted(limit)
                if limit
                else "newer wheels leave out GPUs of this age"
            ),
        )
        return Diagnosis(
            "GPU_TOO_OLD_FOR_WHEEL",
            "This GPU is too old for the installed PyTorch wheel.",
            why
            + sentence(
                "%s is older; PTX, if there is any, goes forward only.%s" % (gpu_words(v), has)
            ),
            "pip install torch --index-url https://download.pytorch.org/whl/cu126 (the last wheels"
            " with Maxwell and Pascal), then print torch.cuda.get_arch_list()",
            keep,
            sure=bool(images and cc) or bool(too_old),
        )
    new = cc and cc[0] >= 10
    if new and v.torch and v.torch["cuda"] and v.torch["cuda"] >= (12, 8) and not images:
        has = (
            " Wheels for CUDA 12.8 and newer have this GPU, as far as known: another PyTorch may be"
            " the one that is imported, or another library lacks the GPU."
        )
    return Diagnosis(
        "WHEEL_LACKS_ARCH",
        "The installed PyTorch wheel has no code for this GPU%s."
        % (" (%s)" % sm(cc) if cc else ""),
        "%s.%s%s"
        % (
            torch,
            has,
            (
                " Machine code for another major version does not run, and there is no PTX that"
                " could be compiled."
                if images
                else ""
            ),
        ),
        "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/%s, then"
        " print torch.cuda.get_arch_list(): it must show %s"
        % ("cu128" if new else "cu126", sm(cc) if cc else "your GPU"),
        keep,
        sure=bool(images and cc) or bool(named),
        missing="" if images else "torch.cuda.get_arch_list()",
    )


def ext_lacks(v, hit):
    if v.flags_text:
        why = (
            "It was told %s. That did not reach the compiler (another layer of the image, an old"
            " build cache), or it lacks %s." % (v.flags_text, sm(v.cc) if v.cc else "the GPU")
        )
    else:
        why = (
            "It was built for other GPUs, or where no GPU could be seen (docker build, a login"
            " node)."
        )
    return Diagnosis(
        "EXT_BUILT_WITHOUT_ARCH",
        "A compiled extension holds no code for this GPU; PyTorch itself is not the cause.",
        why,
        "scripts/inspect on the extension's .so; delete its build folder; TORCH_CUDA_ARCH_LIST=%s"
        " pip install --no-build-isolation --force-reinstall ." % (dotted(v.cc) if v.cc else "8.6"),
        "PyTorch, the driver and the toolkit.",
        sure=False,
        missing="what the .so holds",
    )


def old_ptx(v, hit):
    """222: the usual advice is right only if the toolkit really is newer than the driver."""
    if v.toolkit and v.driver_cuda and v.toolkit <= v.driver_cuda:
        return Diagnosis(
            "FACTS_CONTRADICT",
            "The toolkit (%s) is not newer than the driver (%s): its PTX cannot be the cause."
            % (dotted(v.toolkit), dotted(v.driver_cuda)),
            "Error 222 means PTX from a newer toolkit. So another file carries it: a wheel, a"
            " second toolkit's library, something compiled at run time (NVRTC).",
            "scripts/inspect on the program and on every .so it loads (lsof -p PID, or ldd): look"
            " for a PTX version above CUDA %s" % dotted(v.driver_cuda),
            "The toolkit and the driver, until that file is found.",
            sure=False,
        )
    text = driver_words(v)
    made = (
        "The program was built with CUDA %s" % dotted(v.toolkit)
        if v.toolkit
        else "The program's PTX comes from a newer toolkit"
    )
    branch = tables.cuda_branch(v.toolkit)
    return Diagnosis(
        "DRIVER_TOO_OLD_FOR_PTX",
        "The driver is too old to compile this program's PTX, and the program has no machine "
        "code for the GPU.",
        "%s; %s." % (made, text),
        "Build machine code: make SMS=%s; or update the driver%s"
        % (
            tables.arch_number(v.cc) if v.cc else "86 (your GPU's number)",
            " to %d or newer" % branch if branch else "",
        ),
        hit["keep"],
        sure=bool(v.toolkit and v.driver_cuda),
        missing=", ".join(
            name
            for name, value in (
                ("the toolkit's version", v.toolkit),
                ("the driver's version", v.driver_cuda),
            )
            if not value
        ),
    )


def ptx_jit_failed(v, hit):
    target = [arch for kind, arch, _ in v.flags or [] if kind == "ptx"] or [
        arch for _, arch, _ in v.flags or []
    ]
    if target and v.cc and min(target) > v.cc:
        return Diagnosis(
            "BUILD_LACKS_ARCH",
            "The PTX is made for a newer GPU than this one.",
            "It targets %s; the GPU is %s. PTX goes forward only."
            % (listed(v.flags), gpu_words(v)),
            "Build for this GPU: compute_%s" % tables.arch_number(v.cc),
            hit["keep"],
        )
    return from_table(hit)


def unsupported_arch(v, hit):
    match = re.search(r"(?:compute_|sm_)(\d{2,3})[af]?\b", v.text) or re.search(
        r"arch[^\d]{0,20}(\d{1,2}\.\d)", v.text
    )
    arch = tables.parse_cc(match.group(1)) if match else None
    if arch is None and v.flags:
        arch = v.flags[0][1]
    if arch is None:
        return from_table(hit, sure=False, missing="which architecture was refused")
    first, last = tables.ARCH_TOOLKITS.get(arch, (None, None))
    name, keep = sm(arch), hit["keep"]
    if arch == (10, 1) and v.toolkit and v.toolkit >= (13, 0):
        return Diagnosis(
            "TOOLKIT_DROPPED_ARCH",
            "CUDA 13 calls sm_101 by a new name: sm_110.",
            "The toolkit is %s." % dotted(v.toolkit),
            "Build for 110 (make SMS=110).",
            keep,
        )
    dropped = last and (v.toolkit is None or v.toolkit > last)
    if v.toolkit is None and last is None and first is None:
        return from_table(hit, sure=False, missing="the toolkit's version")
    if first and v.toolkit and v.toolkit < first:
        near = [
            cc
            for cc in tables.toolkit_archs(v.toolkit)
            if cc[0] == arch[0] and cc < arch and cc not in tables.TEGRA
        ]
        hint = (
            " Meanwhile SMS=%s builds machine code that runs on it." % tables.arch_number(near[-1])
            if near
            else ""
        )
        more = ""
        if v.smi_cuda and v.smi_cuda >= first:
            more = " nvidia-smi's CUDA %s is the driver's, not the compiler's." % dotted(v.smi_cuda)
        return Diagnosis(
            "TOOLKIT_TOO_OLD",
            "nvcc %s is too old for %s." % (dotted(v.toolkit), name),
            "%s exists since CUDA %s.%s" % (name, dotted(first), more),
            "Install toolkit %s or newer, or put it first: ls /usr/local/cuda*/bin/nvcc; export "
            "PATH=/usr/local/cuda-%s/bin:$PATH.%s" % (dotted(first), dotted(first), hint),
            keep,
        )
    if dropped:
        since = "" if v.toolkit else " (the toolkit's version was not stated)"
        return Diagnosis(
            "TOOLKIT_DROPPED_ARCH",
            "nvcc %s no longer builds for %s." % (dotted(v.toolkit) if v.toolkit else "here", name),
            "CUDA %s was the last toolkit with it%s." % (dotted(last), since),
            "Remove %s from the list of architectures if your GPU is newer; for a GPU that old use"
            " toolkit %s" % (name, dotted(last)),
            "The driver, as long as it supports the GPU.",
            sure=v.toolkit is not None,
            missing="" if v.toolkit else "the toolkit's version",
        )
    if v.toolkit and first and v.toolkit >= first:
        return Diagnosis(
            "NVCC_ON_PATH_IS_NOT_THE_CLAIMED_ONE",
            "CUDA %s knows %s, so another nvcc than that one ran." % (dotted(v.toolkit), name),
            (
                "%s is known from CUDA %s to %s." % (name, dotted(first), dotted(last))
                if last
                else "%s exists since CUDA %s." % (name, dotted(first))
            )
            + " Another nvcc stands earlier on PATH, or the build system remembers one.",
            "type -a nvcc; nvcc --version; ls /usr/local/cuda*/bin/nvcc; delete CMakeCache.txt",
            "The driver and the newer toolkit.",
            sure=False,
        )
    return Diagnosis(
        "TOOLKIT_TOO_OLD",
        "This nvcc does not know %s." % name,
        (
            "%s exists since CUDA %s; the toolkit's version was not stated." % (name, dotted(first))
            if first
            else "%s is in no toolkit known here." % name
        ),
        hit["do"],
        keep,
        sure=False,
        missing="nvcc --version",
    )


def torch_mismatch(v, hit):
    pair = re.search(r"CUDA version \((\d+\.\d+)\).{0,120}?\((\d+\.\d+)\)", errors.normal(v.text))
    nvcc, torch = (
        (tables.version(pair.group(1)), tables.version(pair.group(2)))
        if pair
        else (v.toolkit, v.torch["cuda"] if v.torch else None)
    )
    d = from_table(hit)
    if nvcc and torch:
        d.what = "nvcc is CUDA %s, PyTorch was built with CUDA %s." % (dotted(nvcc), dotted(torch))
        d.why = (
            "Extensions need the same major version."
            if nvcc[0] != torch[0]
            else ("The major versions agree, so the extension can be built.")
        )
        d.run = (
            "ls -d /usr/local/cuda-%d*; export CUDA_HOME=<that folder> PATH=<that"
            " folder>/bin:$PATH; or install the PyTorch wheel for CUDA %d" % (torch[0], nvcc[0])
        )
        if nvcc[0] == torch[0] and nvcc != torch:
            d.code, d.severity, d.run = (
                "TORCH_TOOLKIT_MINOR_MISMATCH",
                WARNING,
                "Nothing; it is only a warning.",
            )
    return d


def gcc_too_new(v, hit):
    said = re.search(r"later than (\d+)", v.text)
    limit = int(said.group(1)) if said else v.gcc_max or tables.gcc_limit(v.toolkit)
    if limit and v.gcc and v.gcc <= limit and said:
        return Diagnosis(
            "FACTS_CONTRADICT",
            "gcc %d is within the limit of %d, so nvcc used another gcc." % (v.gcc, limit),
            "The first gcc on PATH, or one given with -ccbin, is newer.",
            "type -a gcc g++ cc; echo $NVCC_CCBIN; nvcc -ccbin g++-%d" % limit,
            "The toolkit.",
            sure=False,
        )
    return Diagnosis(
        "HOST_GCC_TOO_NEW",
        "gcc%s is newer than this toolkit accepts%s."
        % (" %d" % v.gcc if v.gcc else "", " (%d at most)" % limit if limit else ""),
        "nvcc%s checks the major version of gcc in crt/host_config.h."
        % (" " + dotted(v.toolkit) if v.toolkit else ""),
        "sudo apt install g++-%s; nvcc -ccbin g++-%s (or export NVCC_CCBIN=g++-%s)"
        % ((limit or 12,) * 3),
        hit["keep"] if hit else "The driver.",
    )


def glibc_clash(v, hit):
    function = re.search(r"function \W{0,6}(\w+)|\b(cospi|sinpi|rsqrt)f?\b", v.text)
    name = (function.group(1) or function.group(2)) if function else None
    d = from_table(hit) if hit else Diagnosis("GLIBC_HEADER_CLASH", "")
    rsqrt = name and name.startswith("rsqrt")
    since, fixed = ("2.42", "13.2") if rsqrt else ("2.41", "13.0")
    d.what = "glibc and the CUDA headers declare %s differently." % (name or "the same function")
    d.why = (
        "%s has it since glibc %s; the toolkit's headers agree with that from CUDA %s on, as far as"
        " known%s. %s"
        % (
            name or "cospi",
            since,
            fixed,
            (
                " (here: CUDA %s%s)"
                % (dotted(v.toolkit), ", glibc %s" % dotted(v.glibc) if v.glibc else "")
                if v.toolkit
                else ""
            ),
            "Another gcc meets the same headers.",
        )
    )
    d.run = (
        "Use toolkit %s or newer, or build in a container with glibc older than %s (ldd --version)"
        % (fixed, since)
    )
    d.keep = "gcc and the driver."
    return d


def compat_on_geforce(v, hit):
    allowed = tables.forward_compat_allowed(v.gpu_name)
    d = (
        from_table(hit)
        if hit
        else Diagnosis(
            "COMPAT_LIB_ON_GEFORCE", "", "", errors.EXPLAIN[804].do, errors.EXPLAIN[804].keep
        )
    )
    own = tables.branch_cuda(v.driver_branch)
    d.code = "COMPAT_LIB_ON_GEFORCE"
    d.what = "A cuda-compat libcuda was loaded%s, and it does not work on %s." % (
        " from " + v.compat if v.compat else "",
        gpu_words(v) if v.gpu_name else "this GPU",
    )
    d.why = "Forward compatibility is for data-centre GPUs." + (
        " nvidia-smi shows CUDA %s, and driver %d by itself offers %s: a compat library is in use."
        % (dotted(v.smi_cuda), v.driver_branch, dotted(own))
        if own and v.smi_cuda and v.smi_cuda > own
        else " The driver offers CUDA %s; the image is newer." % dotted(own) if own else ""
    )
    d.sure = hit is not None and allowed is not True
    if allowed:
        d.why += (
            " %s is a data-centre GPU, so it may be the driver's branch that compat does not"
            " support." % v.gpu_name
        )
    return d


def driver_mismatch(v, hit):
    if (
        v.module_version
        and v.library_version
        and v.module_version != v.library_version
        and not v.compat
    ):
        return module_mismatch(v)
    d = from_table(hit)
    if v.compat:
        d.why = "The loaded libcuda is %s. " % v.compat
    if v.driver_text:
        d.why += "The kernel module is %s." % short_driver(v)
    if not v.container and not v.compat:
        d.sure, d.missing = (
            False,
            (
                "whether a container or a compat folder is in use, and whether the driver was just"
                " updated"
            ),
        )
    return d


def module_mismatch(v, hit=None):
    known_both = v.module_version and v.library_version
    if known_both and v.module_version == v.library_version and hit:
        return Diagnosis(
            "FACTS_CONTRADICT",
            "Module and libraries are both %s, and the driver says that they differ."
            % v.module_version,
            "A second copy of the libraries is loaded, or the facts are from after a reboot.",
            "ldconfig -p | grep -E 'libcuda|libnvidia-ml'; cat /proc/driver/nvidia/version",
            "The toolkit.",
            sure=False,
        )
    which = (
        "the module is %s, the libraries are %s" % (v.module_version, v.library_version)
        if known_both
        else "their versions differ"
    )
    return Diagnosis(
        "DRIVER_MODULE_MISMATCH",
        "The loaded kernel module and the driver's libraries do not belong together.",
        "%s: an update replaced the files, and the old module is still in memory."
        % (which[0].upper() + which[1:]),
        "Reboot. If that does not help, the packages are mixed: dpkg -l | grep nvidia (or rpm -qa |"
        " grep nvidia)",
        "The toolkit, PyTorch and the program.",
    )


def insufficient_driver(v, hit):
    """35, and PyTorch's 'driver on your system is too old (found version 11040)'."""
    found = re.search(r"found version (\d{4,6})", v.text)
    have = (
        (int(found.group(1)) // 1000, int(found.group(1)) % 1000 // 10) if found else v.driver_cuda
    )
    needs = re.search(r"cuda\s*>=\s*(\d+\.\d+)", v.text)
    need = (
        tables.version(needs.group(1))
        if needs
        else v.toolkit or (v.torch["cuda"] if v.torch else None)
    )
    if v.no_driver or (
        have is None and v.driver_branch is None and not v.toolkit and not found and not needs
    ):
        return missing_driver(v, stated=bool(v.no_driver))
    if have and need and have[0] >= need[0] and not found and not needs:
        if v.container:
            return missing_driver(v, stated=False)
        return Diagnosis(
            "FACTS_CONTRADICT",
            "The driver (CUDA %s) is new enough for CUDA %s, and the runtime found none or an older"
            " one." % (dotted(have), dotted(need)),
            "The program sees another libcuda than nvidia-smi, or none: a container without "
            "--gpus, another machine, a compat or stub folder on LD_LIBRARY_PATH.",
            "ldconfig -p | grep libcuda; echo $LD_LIBRARY_PATH; in a container: docker run"
            " --gpus all",
            "The driver.",
            sure=False,
        )
    if have is None and v.driver_branch is None:
        return missing_driver(v, stated=False)
    branch = tables.MAJOR_MIN_BRANCH.get(need[0]) if need else None
    jit = tables.cuda_branch(need)
    return Diagnosis(
        "DRIVER_TOO_OLD",
        "The driver is too old for this program.",
        "It offers CUDA %s%s; %s."
        % (
            dotted(have),
            " (%s)" % short_driver(v) if v.driver_text else "",
            (
                "the program needs CUDA %s" % dotted(need)
                if need
                else "the program was built with a newer major version, which was not stated"
            ),
        ),
        "Update the driver%s; or take a build for CUDA %s"
        % (
            (
                " to %d or newer%s"
                % (branch, ", and to %d for its PTX" % jit if jit and jit > branch else "")
                if branch
                else " (CUDA 12 needs 525, CUDA 13 needs 580)"
            ),
            dotted(have),
        ),
        "The source and the GPU.",
        sure=bool(have),
        missing="" if need else "the CUDA version of the program or wheel",
    )


def missing_driver(v, stated=True):
    """No libcuda, or no kernel module: where is this, and who has to act?"""
    keep = "The program and the toolkit."
    known = (
        "The driver (%s) is somewhere" % v.driver_text
        if v.driver_text
        else ("Nothing is known of the driver")
    )
    if v.wsl:
        return Diagnosis(
            "WSL_WITHOUT_DRIVER",
            "WSL sees no NVIDIA driver.",
            "In WSL the driver comes from Windows (/usr/lib/wsl/lib/libcuda.so.1).",
            "Install or update the NVIDIA driver in Windows, then wsl --update and wsl --shutdown",
            "Never install a Linux driver inside WSL.",
            sure=stated,
        )
    if v.container or not stated:
        return Diagnosis(
            "CONTAINER_WITHOUT_GPU",
            "There is no NVIDIA driver library (libcuda.so.1) for the program.",
            (
                "This is a container, and it was started without GPU access."
                if v.container
                else (
                    known + ", and this message mostly means that there is none where the program"
                    " runs. If this is a container, it was started without GPU access; if not, no"
                    " driver is installed."
                )
            )
            + (" The text about an old driver is misleading." if "insufficient" in v.text else ""),
            "docker run --gpus all ... (Podman: --device nvidia.com/gpu=all; Apptainer: --nv)"
            + (
                ""
                if v.container
                else "; outside of a container: nvidia-smi, and install the driver if it fails"
            ),
            keep,
            sure=bool(v.container) and stated,
            missing="" if v.container else "whether this is a container, and what nvidia-smi says",
        )
    if v.module_version and not v.loaded_libcuda:
        return Diagnosis(
            "NO_DRIVER_LIBRARY",
            "The kernel module (%s) is loaded, and the driver's library libcuda.so.1 is missing."
            % v.module_version,
            "A driver package without its CUDA part (a headless or server variant), or a removed"
            " one.",
            "Install the matching library package (Ubuntu: libnvidia-compute-%s, Fedora and RHEL:"
            " nvidia-driver-cuda)" % v.module_version.split(".")[0],
            keep,
        )
    if v.nouveau:
        return Diagnosis(
            "NOUVEAU_IN_USE",
            "The open nouveau driver holds the GPU, so the NVIDIA module cannot.",
            "Only one of them can.",
            "Install the distribution's NVIDIA driver package (it blocks nouveau) and reboot.",
            keep,
        )
    if v.secure_boot and v.module_loaded is False:
        return Diagnosis(
            "SECURE_BOOT_BLOCKS_MODULE",
            "The NVIDIA kernel module is not loaded, and Secure Boot is on.",
            "Secure Boot loads signed modules only.",
            "sudo dmesg | grep -i 'key was rejected'; enrol the key with mokutil or use the "
            "distribution's signed driver",
            keep,
            sure=False,
        )
    return Diagnosis(
        "NO_KERNEL_DRIVER",
        "The NVIDIA kernel module is not loaded.",
        "/proc/driver/nvidia/version does not exist."
        + (
            " The libcuda that was found (%s) is only a library; it needs the module."
            % (v.compat or v.loaded_libcuda)
            if v.compat or v.loaded_libcuda
            else ""
        ),
        "lsmod | grep nvidia; sudo dmesg | grep -iE 'nvidia|nouveau'; then install the driver"
        " (Ubuntu: sudo ubuntu-drivers install) and reboot",
        keep,
    )


def no_device(v, hit):
    if v.no_driver:
        return missing_driver(v)
    dropped = dropped_gpu(v)
    if dropped:
        return dropped
    if v.visible_devices is not None:
        return hidden_gpu(v)
    if re.search(r"\bMIG\b", v.hints):
        return from_table(errors.recognise("MIG")[0])
    d = from_table(hit)
    d.sure, d.missing = False, "CUDA_VISIBLE_DEVICES, and whether nvidia-smi -L lists the GPU"
    return d


def hidden_gpu(v):
    value = str(v.visible_devices)
    shown = "empty" if value == "" else "'%s'" % value
    return Diagnosis(
        "CUDA_VISIBLE_DEVICES_HIDES_GPU",
        "CUDA_VISIBLE_DEVICES is %s, so the program sees no GPU." % shown,
        "An entry that does not exist hides itself and all that follow; an empty value hides every"
        " GPU.",
        "unset CUDA_VISIBLE_DEVICES (or set it to a number that nvidia-smi -L shows)",
        "The driver, the toolkit and the program.",
    )


def dropped_gpu(v):
    """Drivers from 590 on support compute capability 7.5 and newer."""
    if (
        v.driver_branch
        and v.driver_branch >= 590
        and v.cc_major is not None
        and (v.cc or (v.cc_major, 9)) < (7, 5)
    ):
        return Diagnosis(
            "DRIVER_DROPPED_GPU",
            "Driver %s no longer supports %s." % (short_driver(v), gpu_words(v)),
            "From branch 590 on it needs compute capability 7.5; Maxwell, Pascal and Volta end with"
            " branch 580.",
            "Install the 580 branch (Ubuntu: sudo apt install nvidia-driver-580) and reboot",
            "The card is not broken; toolkits up to 12.9 build for it.",
        )
    return None


def old_driver_for_gpu(v):
    need = tables.gpu_min_branch(v.cc) if v.cc else None
    if need and v.driver_branch and v.driver_branch < need and v.cc >= (7, 5):
        return Diagnosis(
            "DRIVER_TOO_OLD",
            "Driver %s is older than %s and does not know it." % (short_driver(v), gpu_words(v)),
            "That GPU came with driver branch %d." % need,
            "Update the driver to %d or newer" % need,
            "The toolkit.",
        )
    return None


def smi_fails(v, hit):
    """nvidia-smi cannot reach the driver, or sees no device."""
    found = dropped_gpu(v) or old_driver_for_gpu(v)
    if found:
        return found
    if re.search(
        r"Key was rejected|secure ?boot\W{0,3}(is |state |: )?(on|enabled)", v.hints, re.IGNORECASE
    ):
        return from_table(next(h for h in errors.recognise("Key was rejected by service")))
    if hit["code"] == "CHECK_OPEN_MODULES":
        d = from_table(hit)
        if v.cc_major is not None and v.cc_major >= 10:
            d.why = "%s is a Blackwell GPU: it works with the open modules only%s." % (
                gpu_words(v),
                (
                    "; the loaded module's licence is %s" % v.module_license
                    if v.module_license
                    else ""
                ),
            )
        else:
            d.sure, d.missing = False, "the NVRM lines of dmesg"
        return d
    if v.container or v.nouveau:
        return missing_driver(v, stated=True)
    d = from_table(hit)
    d.sure, d.missing = False, (
        "what dmesg says about nvidia, and the GPU's name"
        if not v.cc_major
        else "what dmesg says about nvidia"
    )
    return d


def unknown_error(v, hit):
    if v.windows or re.search(
        r"screen|black|TDR|watchdog|cudaDeviceSynchronize", v.text, re.IGNORECASE
    ):
        return Diagnosis(
            "TDR_TIMEOUT",
            "The kernel ran longer than the display's watchdog allows, and the driver was"
            " restarted.",
            "Windows reports that as 999 or 702; the screen goes black for a second.",
            "Make each launch shorter than 2 seconds (split the loop or the grid); or a second GPU"
            " for the display; or raise TdrDelay in the registry",
            "The driver and the toolkit.",
            sure=bool(re.search(r"screen|TDR", v.text, re.IGNORECASE)),
        )
    if v.container:
        return Diagnosis(
            "UVM_NODE_MISSING",
            "The container lacks /dev/nvidia-uvm, or the host's nvidia_uvm module is not loaded.",
            "CUDA needs that device file besides /dev/nvidia0.",
            "On the host: sudo modprobe nvidia_uvm && nvidia-modprobe -u -c=0; "
            "then start the container again with --gpus all",
            "The image and the toolkit.",
            sure=False,
            missing="ls -l /dev/nvidia-uvm inside the container",
        )
    d = from_table(hit, code="UVM_BROKEN_AFTER_SUSPEND")
    d.sure, d.missing = (
        False,
        "whether the machine slept since the last boot, and sudo dmesg | grep -iE 'nvrm|xid'",
    )
    return d


def out_of_memory(v, hit):
    managed = re.search(r"managed", v.hints, re.IGNORECASE)
    if managed:
        return Diagnosis(
            "WSL_NO_OVERSUBSCRIPTION",
            "Managed memory cannot be larger than what the GPU has free here.",
            "Oversubscribing works on Linux from compute capability 6.0 on, not on Windows and"
            " WSL%s."
            % (
                ""
                if v.wsl or v.windows
                else (
                    " (the system was not stated; on plain Linux look for another user of the"
                    " memory)"
                )
            ),
            "cudaMalloc with sizes from cudaMemGetInfo, and work in chunks",
            "The driver and the toolkit.",
            sure=bool(v.wsl or v.windows),
            missing="" if v.wsl or v.windows else "whether this is Windows or WSL",
        )
    d = from_table(hit)
    asked = memory_mib(r"Tried to allocate ([\d.]+) ([KMG]iB)", v.text)
    unused = memory_mib(r"([\d.]+) ([KMG]iB) is reserved by PyTorch but unallocated", v.text)
    if unused is None:  # the wording of older versions
        taken = memory_mib(r"([\d.]+) ([KMG]iB) already allocated", v.text)
        reserved = memory_mib(r"([\d.]+) ([KMG]iB) reserved in total", v.text)
        unused = None if taken is None or reserved is None else reserved - taken
    if asked is not None and unused is not None:
        d.why = "Asked for: %.0f MiB; PyTorch holds %.0f MiB unused." % (asked, unused)
        if unused >= asked:
            d = from_table(errors.recognise("OOM_FRAGMENTATION")[0], why_first=d.why)
    return d


def memory_mib(pattern, text):
    """The amount of memory that a pattern finds in a text, in MiB."""
    match = re.search(pattern, text, re.IGNORECASE)
    units = {"kib": 1 / 1024.0, "mib": 1.0, "gib": 1024.0}
    return float(match.group(1)) * units[match.group(2).lower()] if match else None


def busy(v, hit):
    modes = [str(g.get("compute_mode") or "") for g in v.gpus]
    d = from_table(hit)
    if any("prohibited" in m.lower() for m in modes):
        return Diagnosis(
            "COMPUTE_PROHIBITED",
            "The GPU is in compute mode Prohibited.",
            "The administrator forbids CUDA on it.",
            "Ask the administrator (sudo nvidia-smi -c 0 lifts it), or use another GPU",
            "The driver and the toolkit.",
        )
    if not any("exclusive" in m.lower() for m in modes):
        d.sure, d.missing = (
            False,
            "nvidia-smi -q -d COMPUTE, and the processes that nvidia-smi lists",
        )
    return d


def mig_text(v, hit):
    d = from_table(hit)
    if not re.search(r"\bMIG\b", v.hints) and not any(g.get("mig") for g in v.gpus):
        d.sure, d.missing = False, "whether MIG is on (nvidia-smi -L)"
    return d


def segfault(v, hit):
    if v.wsl or v.windows or looks_like_windows_driver(v):
        return Diagnosis(
            "CONCURRENT_MANAGED_ACCESS=0",
            "Probably the CPU touched managed memory while a kernel was running.",
            "%s: there the attribute concurrentManagedAccess is 0, and that access is a"
            " segmentation fault, in whatever library happens to make it."
            % (
                "This is WSL or Windows"
                if v.wsl or v.windows
                else "Driver %s has a Windows number, so this seems to be WSL" % short_driver(v)
            ),
            "cudaDeviceSynchronize() before the CPU uses managed memory, or cudaMalloc with copies;"
            " check the attribute with cudaDeviceGetAttribute",
            "The driver, the toolkit and the library that crashed.",
            sure=False,
            missing="whether the program uses cudaMallocManaged",
        )
    return from_table(hit)


def looks_like_windows_driver(v):
    """Windows drivers have two parts (596.49), Linux ones of the last years three (595.71.05)."""
    return bool(
        v.driver_branch
        and v.driver_branch >= 520
        and re.match(r"^\d{3}\.\d{2}\b(?!\.)", v.driver_text or "")
    )


def fabric(v, hit):
    if re.search(r"uvm_pmm_gpu|err -34|nokaslr|uvm_disable_hmm", v.hints):
        return from_table(errors.recognise("uvm_disable_hmm")[0])
    return from_table(hit)


def no_libcuda(v, hit):
    return missing_driver(v, stated=bool(v.no_driver or v.container))


def dropped_text(v, hit):
    return dropped_gpu(v) or from_table(hit)


TEXT_RULES = {
    98: no_image,
    209: no_image,
    200: None,
    222: old_ptx,
    218: ptx_jit_failed,
    35: insufficient_driver,
    100: no_device,
    803: driver_mismatch,
    804: compat_on_geforce,
    802: fabric,
    999: unknown_error,
    2: out_of_memory,
    46: busy,
    "WHEEL_LACKS_ARCH": wheel_lacks,
    "GPU_TOO_OLD_FOR_WHEEL": wheel_lacks,
    "TOOLKIT_TOO_OLD": unsupported_arch,
    "TORCH_TOOLKIT_MAJOR_MISMATCH": torch_mismatch,
    "HOST_GCC_TOO_NEW": gcc_too_new,
    "GLIBC_HEADER_CLASH": glibc_clash,
    "DRIVER_MODULE_MISMATCH": module_mismatch,
    "DRIVER_TOO_OLD": insufficient_driver,
    "NO_KERNEL_DRIVER": smi_fails,
    "CHECK_OPEN_MODULES": smi_fails,
    "DRIVER_DROPPED_GPU": dropped_text,
    "UVM_BROKEN_AFTER_SUSPEND": unknown_error,
    "MIG": mig_text,
    "HOST_SEGFAULT": segfault,
    "TORCH_SEES_NO_GPU": lambda v, hit: None,  # the other facts tell why
    "NO_LIBCUDA": no_libcuda,
}
