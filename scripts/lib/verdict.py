"""Can this GPU run what is in that file? Rules of the CUDA compatibility guides, applied to
fatbin.read().

A file is as good as its worst translation unit: each has its own fat binary, and the runtime looks
for a usable image in that one only.
"""

import re

import tables


def groups(binary):
    """The images that the runtime can choose from, one list for every translation unit with
    kernels."""
    linked = [
        u["images"] for u in binary["units"] if not u["relocatable"] and has_kernels(u["images"])
    ]
    relocatable = [
        u["images"] for u in binary["units"] if u["relocatable"] and has_kernels(u["images"])
    ]
    if binary["type"] in ("object", "archive"):
        return linked + relocatable
    # In a program built with -rdc=true the linked machine code stands alone; the PTX stays with the
    # objects.
    ptx = [[i for i in images if i["kind"] == "ptx"] for images in relocatable]
    if not linked:
        return [images for images in ptx if images]
    result = []
    for images in linked:
        symbols = {k["symbol"] for i in images for k in i["kernels"] or []}
        extra = [
            i for unit in ptx for i in unit if symbols & {k["symbol"] for k in i["kernels"] or []}
        ]
        result.append(images + extra)
    return result


def has_kernels(images):
    """True if the unit has kernels, or if that cannot be read. nvcc's link step adds units without
    any."""
    return any(i["kernels"] is None or i["kernels"] for i in images)


def toolkit_of(images):
    """The newest toolkit that made one of the images, as far as they say."""
    found = [tables.version(i["toolkit"]) for i in images if i["toolkit"]]
    found += [
        tables.PTX_TOOLKIT.get(tables.version(i["ptx_version"])) for i in images if i["ptx_version"]
    ]
    return max([t for t in found if t], default=None)


def split(image):
    return tables.parse_arch(image["arch"]) or (None, "")


def judge(binary, cc, driver_cuda=None, env=None):
    """The verdict for one GPU: dict with gpu, result, error, reason, driver_needed (a branch or
    None).

    driver_cuda is the CUDA version that the driver offers, None if the driver is not known.
    env holds the two variables that change how the driver chooses.
    """
    parts = [judge_unit(images, cc, driver_cuda, env or {}) for images in groups(binary)]
    verdict = {
        "gpu": tables.dotted(cc),
        "result": "runs",
        "error": None,
        "driver_needed": None,
        "reason": "it holds no kernel, so there is nothing that could fail",
    }
    if not parts:
        return verdict
    lacking = [part for part in parts if part["result"] == "fails"]
    library = binary["type"] in ("shared library", "archive")
    if library and 0 < len(lacking) <= len(parts) / 3:
        # Big libraries hold kernels for some GPUs only, and choose by the GPU they meet.
        parts = [part for part in parts if part["result"] != "fails"]
    order = {"runs": 0, "jit": 1, "fails": 2}
    worst = max(parts, key=lambda part: order[part["result"]])
    verdict.update(worst)
    needed = [part["driver_needed"] for part in parts]
    verdict["driver_needed"] = None if None in needed else max(needed)
    same = [part for part in parts if part["result"] == worst["result"]]
    if len(same) < len(parts):
        verdict["reason"] = "%d of its %d parts: %s" % (len(same), len(parts), worst["reason"])
    if lacking and worst["result"] != "fails":
        verdict["reason"] += "; %d of its %d parts have nothing for this GPU (209 if used)" % (
            len(lacking),
            len(lacking) + len(parts),
        )
    return verdict


def judge_unit(images, cc, driver_cuda, env):
    arch_images = [(split(i), i) for i in images if split(i)[0]]
    sass = [
        (arch, i)
        for (arch, suffix), i in arch_images
        if i["kind"] == "sass" and tables.sass_runs_on(arch, suffix, cc)
    ]
    ptx = [
        (arch, i)
        for (arch, suffix), i in arch_images
        if i["kind"] == "ptx" and tables.ptx_runs_on(arch, suffix, cc)
    ]
    toolkit = toolkit_of(images)
    gpu_branch = tables.gpu_min_branch(cc)
    if env.get("CUDA_FORCE_PTX_JIT") == "1":
        sass = []
    if driver_cuda and toolkit and driver_cuda[0] < toolkit[0]:
        needed = highest(gpu_branch, tables.MAJOR_MIN_BRANCH.get(toolkit[0]))
        return part(
            "fails",
            35,
            needed,
            "made by CUDA %s, and the driver offers only CUDA %s"
            % (tables.dotted(toolkit), tables.dotted(driver_cuda)),
        )
    if sass:
        image = max(sass, key=lambda pair: (pair[0], len(pair[1]["arch"])))[1]
        needed = (
            highest(gpu_branch, tables.MAJOR_MIN_BRANCH.get(toolkit[0])) if toolkit else gpu_branch
        )
        note = ""
        if cc in tables.TEGRA and split(image)[0] != cc:
            note = "; not promised for Jetson: build for %s" % name(cc)
        return part("runs", None, needed, "SASS sm_%s%s" % (image["arch"], note))
    if ptx:
        image = max(ptx, key=lambda pair: pair[0])[1]
        made = tables.PTX_TOOLKIT.get(tables.version(image["ptx_version"]))
        needed = highest(gpu_branch, tables.cuda_branch(made)) if made else None
        what = "PTX compute_%s, version %s" % (image["arch"], image["ptx_version"] or "unknown")
        if driver_cuda and made and driver_cuda < made:
            return part(
                "fails",
                222,
                needed,
                "%s (CUDA %s): the driver compiles up to CUDA %s"
                % (what, tables.dotted(made), tables.dotted(driver_cuda)),
            )
        if env.get("CUDA_DISABLE_PTX_JIT") == "1":
            return part(
                "fails",
                223,
                needed,
                what + ", and CUDA_DISABLE_PTX_JIT=1 forbids compiling it "
                "(it still runs if the compute cache has it)",
            )
        return part("jit", None, needed, what + "; compiled at first start")
    return part("fails", 209, None, why_not(images, cc, env))


def part(result, error, needed, reason):
    return {"result": result, "error": error, "driver_needed": needed, "reason": reason}


def highest(*branches):
    return max([b for b in branches if b], default=None)


def name(cc):
    return "sm_" + tables.arch_number(cc)


def why_not(images, cc, env):
    """A few words for each kind of image that is there and cannot be used."""
    says = []
    sass = [(split(i), i["arch"]) for i in images if i["kind"] == "sass"]
    ptx = [(split(i), i["arch"]) for i in images if i["kind"] == "ptx"]
    if sass:
        archs = [pair for pair, _ in sass if pair[0]]
        if any(tables.sass_runs_on(arch, suffix, cc) for arch, suffix in archs):
            why = "CUDA_FORCE_PTX_JIT=1 forbids it"
        elif any(suffix == "a" and arch[0] == cc[0] for arch, suffix in archs):
            why = "the a means: that GPU only"
        elif any(arch[0] == cc[0] for arch, _ in archs):
            why = "newer"
        else:
            why = "other major"
        names = ", ".join("sm_" + number for number in unique(number for _, number in sass))
        says.append("SASS %s (%s)" % (names, why))
    if ptx:
        tied = any(arch and arch <= cc for (arch, _), _ in ptx)
        why = "its suffix ties it to its own GPUs" if tied else "newer"
        names = ", ".join("compute_" + number for number in unique(number for _, number in ptx))
        says.append("PTX %s (%s)" % (names, why))
    elif sass:
        says.append("no PTX")
    if not sass and not ptx and any(i["kind"] == "ltoir" for i in images):
        says.append("only LTO IR, which becomes GPU code when nvcc -dlto links it")
    return "; ".join(says) or "nothing in it is meant for a GPU of this kind"


def unique(items):
    return sorted(set(items), key=lambda a: (int(re.match(r"\d+", a).group()), a))


def how_to_build(cc):
    """How to build for a GPU: nvcc's command, make's, and which toolkits know it."""
    first, last = tables.ARCH_TOOLKITS.get(cc, (None, None))
    number = tables.arch_number(cc)
    toolkits = " (nvcc %s or newer)" % tables.dotted(first) if first else ""
    if last:
        toolkits = " (nvcc %s to %s)" % (tables.dotted(first), tables.dotted(last))
    flags = "nvcc -gencode arch=compute_%s,code=sm_%s" % (number, number)
    return flags, "make SMS=%s" % number, toolkits
