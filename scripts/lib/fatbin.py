"""Reads the GPU code inside a file: the fat binary of an executable, object, library or archive.

nvcc puts the code for every translation unit into a fat binary (magic 0xBA55ED50): a header, then
one image after another. An image is machine code for one architecture (SASS, itself an ELF file, a
cubin), or PTX, the text that the driver compiles when no machine code fits (JIT), or LTO IR, which
is not yet either. This module finds the images and reads their architecture, PTX version and
kernels. It decides nothing.
"""

import ctypes
import ctypes.util
import mmap
import os
import re
import struct

FATBIN_MAGIC = 0xBA55ED50
KINDS = {1: "ptx", 2: "sass", 8: "ltoir"}
FLAG_LZ4 = 0x2000
FLAG_ZSTD = 0x8000
FLAG_ARCH_SPECIFIC = 0x100000  # sm_90a
FLAG_FAMILY_SPECIFIC = 0x200000  # sm_100f
EM_CUDA = 190
EF_ACCELERATORS = 0x800
MAX_UNPACKED = 256 << 20  # refuse to unpack more: a damaged header can ask for any size

# Attributes in a cubin's .nv.info: (symbol index, value) pairs.
EIATTR_REGCOUNT = 0x2F
EIATTR_FRAME_SIZE = 0x11
EIATTR_MIN_STACK_SIZE = 0x12
# From compute capability 9.0 on, the toolkit keeps the first KiB of a block's shared memory for
# itself.
RESERVED_SHARED = 1024


class NotABinary(Exception):
    """The file cannot hold GPU code; str() is the one line to print."""


def lz4_block(data, size):
    """Unpacks one LZ4 block of known size. Raises ValueError on damaged data."""
    out = bytearray()
    at = 0
    try:
        while at < len(data) and len(out) < size:
            token = data[at]
            at += 1
            literals = token >> 4
            if literals == 15:
                while True:
                    more = data[at]
                    at += 1
                    literals += more
                    if more != 255:
                        break
            out += data[at : at + literals]
            at += literals
            if len(out) >= size or at >= len(data):
                break
            offset = data[at] | data[at + 1] << 8
            at += 2
            length = (token & 15) + 4
            if length == 19:
                while True:
                    more = data[at]
                    at += 1
                    length += more
                    if more != 255:
                        break
            if offset == 0 or offset > len(out):
                raise ValueError("damaged LZ4 data")
            start = len(out) - offset
            if offset >= length:
                out += out[start : start + length]
            else:  # the copy overlaps itself: a repeated pattern
                pattern = bytes(out[start:])
                out += (pattern * (length // offset + 1))[:length]
    except IndexError:
        raise ValueError("damaged LZ4 data")
    if len(out) != size:
        raise ValueError("damaged LZ4 data")
    return bytes(out)


_libzstd = None


def zstd_frame(data, size):
    """Unpacks one zstd frame with the system's libzstd. Returns None where there is no libzstd."""
    global _libzstd
    if _libzstd is None:
        for name in ("libzstd.so.1", ctypes.util.find_library("zstd")):
            try:
                lib = ctypes.CDLL(name) if name else False
                if lib:
                    lib.ZSTD_decompress.restype = ctypes.c_size_t
                    lib.ZSTD_decompress.argtypes = [
                        ctypes.c_void_p,
                        ctypes.c_size_t,
                        ctypes.c_char_p,
                        ctypes.c_size_t,
                    ]
                    lib.ZSTD_findFrameCompressedSize.restype = ctypes.c_size_t
                    lib.ZSTD_findFrameCompressedSize.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
                    _libzstd = lib
                    break
            except (OSError, AttributeError):
                continue
        else:
            _libzstd = False
    if not _libzstd:
        return None
    frame = _libzstd.ZSTD_findFrameCompressedSize(
        data, len(data)
    )  # images are padded behind the frame
    if frame > len(data):
        raise ValueError("damaged zstd data")
    out = ctypes.create_string_buffer(size)
    if _libzstd.ZSTD_decompress(out, size, data, frame) != size:
        raise ValueError("damaged zstd data")
    return out.raw


def sections(data, base=0):
    """The sections of a 64-bit little-endian ELF file as dicts. Raises ValueError on damaged
    data."""
    try:
        offset = struct.unpack_from("<Q", data, base + 0x28)[0]
        entry, count, names = struct.unpack_from("<HHH", data, base + 0x3A)
        if offset == 0 or entry < 64:
            return []
        raw = [
            struct.unpack_from("<IIQQQQIIQQ", data, base + offset + i * entry) for i in range(count)
        ]
        found = []
        for name, kind, _, _, start, size, link, info, _, step in raw:
            text = base + raw[names][4] + name if names < count else -1
            end = data.find(b"\0", text) if text >= 0 else -1
            found.append(
                {
                    "name": bytes(data[text:end]).decode("latin-1") if end >= 0 else "",
                    "type": kind,
                    "offset": base + start,
                    "size": size,
                    "link": link,
                    "info": info,
                    "entry": step,
                }
            )
        return found
    except struct.error:
        raise ValueError("damaged ELF file")


def cubin_kernels(cubin):
    """The kernels of a cubin: symbol, registers, static shared memory and stack of a thread, in
    bytes."""
    secs = sections(cubin)
    symtab = next((s for s in secs if s["name"] == ".symtab"), None)
    if symtab is None:
        return []
    strings = secs[symtab["link"]] if symtab["link"] < len(secs) else None
    kernels, by_index = [], {}
    for index in range(symtab["size"] // 24):
        name, info, other, where = struct.unpack_from("<IBBH", cubin, symtab["offset"] + 24 * index)
        if (
            info & 15 != 2 or not other & 0x10 or strings is None
        ):  # a function that the host can launch
            continue
        start = strings["offset"] + name
        symbol = bytes(cubin[start : cubin.find(b"\0", start)]).decode("latin-1")
        kernel = {"symbol": symbol, "registers": None, "shared_bytes": 0, "local_bytes": None}
        if (
            where < len(secs) and secs[where]["info"] >> 24
        ):  # older cubins: registers in the section header
            kernel["registers"] = secs[where]["info"] >> 24
        kernels.append(kernel)
        by_index[index] = kernel
    arch = cubin_arch(cubin)
    for sec in secs:
        if sec["name"].startswith(".nv.shared."):
            for kernel in kernels:
                if sec["name"] == ".nv.shared." + kernel["symbol"]:
                    reserved = (
                        RESERVED_SHARED if arch and int(re.match(r"\d+", arch).group()) >= 90 else 0
                    )
                    kernel["shared_bytes"] = max(0, sec["size"] - reserved)
        elif sec["name"] == ".nv.info":
            for attribute, symbol, value in nv_info(cubin, sec):
                kernel = by_index.get(symbol)
                if kernel is None:
                    continue
                if attribute == EIATTR_REGCOUNT:
                    kernel["registers"] = value
                elif attribute == EIATTR_FRAME_SIZE and kernel["local_bytes"] is None:
                    kernel["local_bytes"] = value
                elif (
                    attribute == EIATTR_MIN_STACK_SIZE
                ):  # with the functions it calls; unknown if they recurse
                    kernel["local_bytes"] = value if value < 0x80000000 else None
    return kernels


def nv_info(cubin, sec):
    """(attribute, symbol index, value) of every pair in a .nv.info section."""
    at, end = sec["offset"], min(sec["offset"] + sec["size"], len(cubin))
    while at + 4 <= end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if (
            form == 4
        ):  # a value of its own size follows; the other forms carry theirs in these 4 bytes
            if size == 8 and at + 8 <= end:
                symbol, value = struct.unpack_from("<II", cubin, at)
                yield attribute, symbol, value
            at += size


def cubin_arch(cubin):
    """'90a' of a cubin, from its ELF flags; newer ones keep the suffix only in ptxas's own note."""
    flags = struct.unpack_from("<I", cubin, 0x30)[0]
    if cubin[8] < 8:  # the ABI of CUDA 12 and older
        return "%d%s" % (flags & 0xFF, "a" if flags & EF_ACCELERATORS else "") if flags else None
    number = flags >> 8 & 0xFF
    note = re.search(rb"-arch sm_%d([af])\b" % number, bytes(cubin))
    return "%d%s" % (number, note.group(1).decode() if note else "") if number else None


def cubin_toolkit(cubin):
    note = re.search(rb"Cuda compilation tools, release (\d+\.\d+)", bytes(cubin))
    return note.group(1).decode() if note else None


def ptx_kernels(text):
    """Kernels of PTX text. Registers are decided later, by the driver's compiler."""
    names = re.findall(rb"\.entry\s+([\w$%]+)", text)
    return [
        {
            "symbol": name.decode("latin-1"),
            "registers": None,
            "shared_bytes": None,
            "local_bytes": None,
        }
        for name in dict.fromkeys(names)
    ]


def ptx_header(text):
    """(version, architecture) of PTX text, None for what it does not say."""
    iso = re.search(rb"^\s*\.version\s+(\d+\.\d+)", text, re.MULTILINE)
    target = re.search(rb"^\s*\.target\s+sm_(\d+[af]?)", text, re.MULTILINE)
    return iso and iso.group(1).decode(), target and target.group(1).decode()


def read_image(data, at, end):
    """The image at offset at, as a dict, and the offset of the next. Raises ValueError on damaged
    data."""
    if at + 64 > end:
        raise ValueError("the fat binary ends in the middle of an image")
    kind, _, header, size, packed = struct.unpack_from("<HHIQI", data, at)
    minor, major, arch = struct.unpack_from("<HHI", data, at + 24)
    flags = struct.unpack_from("<Q", data, at + 40)[0]
    unpacked = struct.unpack_from("<Q", data, at + 56)[0]
    if header < 64 or at + header + size > end:
        raise ValueError("the fat binary ends in the middle of an image")
    suffix = "a" if flags & FLAG_ARCH_SPECIFIC else "f" if flags & FLAG_FAMILY_SPECIFIC else ""
    image = {
        "kind": KINDS.get(kind, "kind %d" % kind),
        "arch": "%d%s" % (arch, suffix),
        "ptx_version": "%d.%d" % (major, minor) if kind == 1 else None,
        "toolkit": None,
        "compression": "zstd" if flags & FLAG_ZSTD else "lz4" if flags & FLAG_LZ4 else None,
        "kernels": None,
        "unread": None,
    }
    payload = b"" if kind not in (1, 2) else bytes(data[at + header : at + header + size])
    try:
        if kind not in (1, 2):  # LTO IR has no kernels that could run
            return image, at + header + size
        if image["compression"]:
            if unpacked > MAX_UNPACKED:
                raise ValueError("an image claims to be %d bytes when unpacked" % unpacked)
            packed_bytes = payload[:packed] if 0 < packed <= len(payload) else payload
            payload = (zstd_frame if flags & FLAG_ZSTD else lz4_block)(packed_bytes, unpacked)
        if payload is None:
            image["unread"] = "it is packed with zstd, and this machine has no libzstd.so.1"
        elif kind == 2:
            if payload[:4] != b"\x7fELF":
                raise ValueError("an image that should be machine code is not")
            image["kernels"] = cubin_kernels(payload)
            image["toolkit"] = cubin_toolkit(payload)
        elif kind == 1:
            image["kernels"] = ptx_kernels(payload)
    except (ValueError, struct.error, IndexError) as error:
        image["unread"] = str(error) or "damaged"
    return image, at + header + size


def read_fatbins(data, start, end, searching=False):
    """All fat binaries between two offsets: a list of lists of images, one a translation unit.

    searching: the range is any data, where the magic number may stand by chance.
    """
    units, at, magic = [], start, struct.pack("<I", FATBIN_MAGIC)
    while True:
        at = data.find(magic, at, end)
        if at < 0 or at + 16 > end:
            return units
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        inner, stop = at + header, at + header + size
        if version != 1 or header < 16 or (stop > end and searching):
            at += 4
            continue
        if stop > end:
            raise ValueError("the fat binary is cut off")
        images = []
        try:
            while inner < stop:
                image, inner = read_image(data, inner, stop)
                images.append(image)
        except ValueError:
            if not searching:
                raise
            images, stop = [], at + 4
        if images:
            units.append(images)
        at = stop


def archive_members(data):
    """(name, offset, size) of the members of an ar archive."""
    at = 8
    while at + 60 <= len(data):
        try:
            size = int(data[at + 48 : at + 58])
        except ValueError:
            raise ValueError("damaged archive")
        yield bytes(data[at : at + 16]).decode("latin-1").strip().rstrip("/"), at + 60, size
        at += 60 + size + (size & 1)


def read_elf(data, base, end):
    """Units of one host ELF file inside data."""
    if data[base + 4] != 2 or data[base + 5] != 1:
        raise NotABinary("is not a 64-bit little-endian ELF file; CUDA 11 and later make no other")
    secs = sections(data, base)
    units = []
    for name in (".nv_fatbin", "__nv_relfatbin"):
        for sec in secs:
            if sec["name"] == name and sec["type"] != 8:
                if sec["offset"] + sec["size"] > end:
                    raise ValueError("the file is cut off: its section %s ends beyond it" % name)
                for images in read_fatbins(data, sec["offset"], sec["offset"] + sec["size"]):
                    units.append({"relocatable": name == "__nv_relfatbin", "images": images})
    if not any(image["kernels"] != [] for unit in units for image in unit["images"]):
        # No section headers, or the code lies in plain data (libcufft): the magic number finds it.
        found = read_fatbins(data, base, end, searching=True)
        units = [{"relocatable": False, "images": images} for images in found]
    return units


def needed_libraries(data):
    """Names of the shared libraries an ELF file asks for."""
    secs = sections(data)
    names = []
    for sec in secs:
        if sec["name"] == ".dynamic" and sec["link"] < len(secs):
            strings = secs[sec["link"]]["offset"]
            for at in range(sec["offset"], sec["offset"] + sec["size"] - 15, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == 1:
                    start = strings + value
                    names.append(bytes(data[start : data.find(b"\0", start)]).decode("latin-1"))
    return names


def read(path):
    """Everything this module knows of a file. Raises NotABinary or OSError, whose text is one
    line."""
    if os.path.isdir(path):
        raise NotABinary("is a directory, not a binary")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise NotABinary("is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return read_mapped(data)
            except (ValueError, struct.error, IndexError) as error:
                raise NotABinary(
                    "is damaged: %s" % (error or "a header points outside of the file")
                )


def read_mapped(data):
    result = {"type": None, "units": [], "needed": [], "cpu_backend": False}
    head = bytes(data[:64])
    if head[:4] == b"\x7fELF" and len(head) < 64:
        raise ValueError("it ends inside of its ELF header")
    if head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] == EM_CUDA:
        cubin = bytes(data)
        result["type"] = "cubin"
        result["units"] = [
            {
                "relocatable": False,
                "images": [
                    {
                        "kind": "sass",
                        "arch": cubin_arch(cubin),
                        "ptx_version": None,
                        "toolkit": cubin_toolkit(cubin),
                        "compression": None,
                        "kernels": cubin_kernels(cubin),
                        "unread": None,
                    }
                ],
            }
        ]
    elif head[:4] == b"\x7fELF":
        kinds = {1: "object", 2: "executable", 3: "executable or shared library"}
        result["type"] = kinds.get(struct.unpack_from("<H", head, 16)[0], "ELF file")
        result["units"] = read_elf(data, 0, len(data))
        result["needed"] = needed_libraries(data)
        if struct.unpack_from("<H", head, 16)[0] == 3:
            names = {sec["name"] for sec in sections(data)}
            if names:
                result["type"] = "executable" if ".interp" in names else "shared library"
        if not result["units"]:
            result["cpu_backend"] = data.find(b"CPU backend") >= 0
    elif head[:8] == b"!<arch>\n":
        result["type"] = "archive"
        for name, start, size in archive_members(data):
            if start + size > len(data):
                raise ValueError("its member %s is cut off" % name)
            if bytes(data[start : start + 4]) == b"\x7fELF":
                result["units"] += read_elf(data, start, start + size)
    elif len(head) >= 16 and struct.unpack_from("<I", head)[0] == FATBIN_MAGIC:
        result["type"] = "fatbin file"
        result["units"] = [
            {"relocatable": False, "images": i} for i in read_fatbins(data, 0, len(data))
        ]
    elif re.search(
        rb"^\s*\.version\s+\d+\.\d+\s*$[\s\S]*^\s*\.target\s+sm_",
        bytes(data[: 1 << 16]),
        re.MULTILINE,
    ):
        text = bytes(data)
        iso, arch = ptx_header(text)
        result["type"] = "PTX text"
        result["units"] = [
            {
                "relocatable": False,
                "images": [
                    {
                        "kind": "ptx",
                        "arch": arch,
                        "ptx_version": iso,
                        "toolkit": None,
                        "compression": None,
                        "kernels": ptx_kernels(text),
                        "unread": None,
                    }
                ],
            }
        ]
    else:
        raise NotABinary(
            "is neither an ELF file (program, object, library) nor an archive, fatbin, cubin or PTX"
        )
    return result
