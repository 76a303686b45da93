"""Recognises an error in any text and says what it means: for check_env --explain and for the
diagnoses.

cuda_errors.txt has every CUDA error by number, name and text; errors.txt explains those that people
meet, together with the messages of nvcc, gcc, PyTorch and the driver's tools. This module reads
both.
"""

import os
import re

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Entry:
    """One paragraph of errors.txt."""

    def __init__(self, fields):
        code = fields["code"][0]
        self.weak = code.endswith(" (weak)")
        self.code = code.replace(" (weak)", "")
        self.number = int(fields["number"][0]) if "number" in fields else None
        self.means, self.do = fields["means"][0], fields["do"][0]
        self.keep = fields.get("keep", [""])[0]
        patterns = [pattern.replace(" ", r"\s+") for pattern in fields.get("match", [])]
        self.pattern = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def read_table():
    """{number: (name, text)} of cuda_errors.txt."""
    table = {}
    with open(os.path.join(FOLDER, "cuda_errors.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                number, name, text = line.rstrip("\n").split(" ", 2)
                table[int(number)] = ("cudaError" + name, text)
    return table


def read_entries():
    """The entries of errors.txt, in its order."""
    with open(os.path.join(FOLDER, "errors.txt"), encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE)
    entries = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        fields, key = {}, None
        for line in paragraph.splitlines():
            if line.startswith("       "):
                fields[key][-1] += " " + line.strip()
            else:
                key, value = line.split(None, 1)
                fields.setdefault(key, []).append(value)
        entries.append(Entry(fields))
    return entries


TABLE = read_table()
ENTRIES = read_entries()
EXPLAIN = {entry.number: entry for entry in ENTRIES if entry.number}
MESSAGES = [entry for entry in ENTRIES if not entry.number]

# Other wordings of the same errors: of older toolkits, of frameworks, or the part that does not
# change.
OTHER_TEXTS = [
    (46, "all CUDA-capable devices are busy or unavailable"), (209, "no kernel image"),
    (209, "No device code available for GPU ISA"), (100, "no CUDA-capable device"),
    (222, "PTX was compiled with an unsupported toolchain"), (700, "illegal memory access"),
    (2, "CUDA out of memory"), (804, "forward compatibility was attempted"),
    (803, "unsupported display driver"), (710, "device-side assert"),
    (701, "too many resources requested"),
]

# The driver API's names that are not built like the runtime's.
DRIVER_NAMES = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": 209, "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_NOT_INITIALIZED": 3, "CUDA_ERROR_DEINITIALIZED": 4,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": 46, "CUDA_ERROR_INVALID_IMAGE": 200,
    "CUDA_ERROR_INVALID_CONTEXT": 201, "CUDA_ERROR_INVALID_HANDLE": 400,
    "CUDA_ERROR_NOT_FOUND": 500, "CUDA_ERROR_LAUNCH_FAILED": 719,
    "CUDA_ERROR_MAP_FAILED": 205, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": 216,
    "ERROR_JIT_COMPILER_NOT_FOUND": 221,
}

# Numbers that meant something else before CUDA 10.1; old posts still use them.
OLD_NUMBERS = {
    4: 719, 6: 702, 7: 701, 8: 98, 10: 101, 11: 1, 29: 4, 30: 999, 33: 400, 34: 600, 38: 100,
    39: 214, 47: 200, 48: 209, 59: 710, 72: 714, 73: 715, 74: 716, 76: 718, 77: 700, 78: 218,
    82: 720,
}
# Of these the old meaning is the likely one in a log: nobody meets the new one.
MOSTLY_OLD = {4, 6, 7, 8}

# Texts so common elsewhere that they count only on a line that speaks of CUDA, or as the whole
# input.
GENERIC = {
    1, 2, 3, 16, 101, 200, 201, 205, 206, 300, 301, 304, 400, 401, 500, 600, 701, 714, 715, 716,
    718, 719, 800, 801, 909, 999,
}
ABOUT_CUDA = re.compile(r"cud|gpu|nvidia|kernel|launch|torch|cuinit|culaunch|cumem", re.IGNORECASE)
NUMBER_IN_LOG = re.compile(
    r"(?:cuda[\w ]{0,24}?(?:error|failure|failed with error|code)"
    r"|\berr(?:or)?(?: code| number)?|\bcode|cudaError(?:_t)?|CUresult|returned|status|context)"
    r"\s*(?:[:=#(]|is|was)?\s*\(?(\d{1,3})\b(?![.\d])"
    r"|\((\d{1,3}) vs\. 0\)",  # the check macro of Caffe and others
    re.IGNORECASE)


def all_names():
    """{lower-case name: number}, of the runtime's and of the driver's API."""
    names = {name.lower(): number for name, number in DRIVER_NAMES.items()}
    for number, (name, _) in TABLE.items():
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[len("cudaError"):])
        names[name.lower()] = number
        names.setdefault("cuda_error_" + words.lower(), number)
    return names


def words_of(text):
    """A pattern for a text, whatever white space is between its words."""
    words = [re.escape(word) for word in text.rstrip(".").split()]
    return re.compile(r"(?<!\w)" + r"\s+".join(words) + r"(?!\w)", re.IGNORECASE)


NAMES = all_names()
TEXTS = [(number, text, words_of(text))
         for number, text in [(n, entry[1]) for n, entry in TABLE.items()] + OTHER_TEXTS]


def normal(text):
    """One space between words, quotes of one kind: how texts are compared."""
    text = re.sub("[\u2018\u2019`]", "'", str(text))
    return re.sub(r"\s+", " ", text).strip()


def line_at(text, position):
    """The line of text around a position, cut to a length that fits on a screen."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = normal(text[start:end if end >= 0 else len(text)])
    return line if len(line) <= 160 else line[:157] + "..."


def numbers_alone(text):
    """The input is nothing but a number: its meaning today, and before CUDA 10.1."""
    number = int(text, 0) if text.startswith("0x") else int(text)
    hits = [(0, number, None)] if number in TABLE else []
    if number in OLD_NUMBERS:
        hits.append((0, OLD_NUMBERS[number], number))
    return hits


def cuda_hits(text):
    """(position, number, old number or None) of every CUDA error that a text names, first to
    last."""
    whole = normal(text).rstrip(".")
    if re.match(r"^(0x[0-9a-fA-F]+|[1-9]\d*|0)$", whole):
        return numbers_alone(whole)
    hits = []
    for match in re.finditer(r"\b(?:cuda)?_?error\w+", text, re.IGNORECASE):
        if match.group().lower() in NAMES:
            hits.append((match.start(), NAMES[match.group().lower()], None))
    for number, wanted, pattern in TEXTS:
        for match in pattern.finditer(text):
            alone = whole.lower() == wanted.lower().rstrip(".")
            if alone or number not in GENERIC or ABOUT_CUDA.search(line_at(text, match.start())):
                hits.append((match.start(), number, None))
                break
    for match in NUMBER_IN_LOG.finditer(text):
        number = int(match.group(1) or match.group(2))
        alone = re.match(r"^(error|err|code)( code| number)?[ :=#]*\d+$", whole, re.IGNORECASE)
        line = line_at(text, match.start(match.lastindex))
        about = alone or match.group(2) or ABOUT_CUDA.search(line)
        if about and number in TABLE and number not in MOSTLY_OLD:  # make has error numbers, too
            hits.append((match.start(), number, None))
        elif about and number in OLD_NUMBERS:
            hits.append((match.start(), OLD_NUMBERS[number], number))
    return sorted(hits, key=lambda hit: hit[0])


def hit_of(entry, number, old, quote):
    """What recognise() returns for one error."""
    name, text = TABLE[number] if number else (None, None)
    hit = {"number": number, "name": name, "text": text, "old_number": old, "quote": quote}
    if entry:
        return dict(hit, code=entry.code, means=entry.means, do=entry.do, keep=entry.keep)
    return dict(hit, code="CUDA_ERROR_%d" % number, means="", do="", keep="")


def recognise(text):
    """The errors that a text is about, the most telling first: messages, then CUDA errors."""
    text = str(text)[:200000]
    found = []
    for entry in ENTRIES:
        if entry.code == text.strip():  # the code of a diagnosis, as check_env prints it
            found.append(hit_of(entry, entry.number, None, entry.code))
    if found:
        return found

    def add_messages(weak):
        for entry in MESSAGES:
            match = entry.pattern.search(text) if entry.weak == weak else None
            if match and entry.code not in [hit["code"] for hit in found]:
                found.append(hit_of(entry, None, None, line_at(text, match.start())))

    if not text.strip().isdigit():
        add_messages(weak=False)
    for position, number, old in cuda_hits(text):
        if number not in [hit["number"] for hit in found]:
            found.append(hit_of(EXPLAIN.get(number), number, old, line_at(text, position)))
    if not found:
        add_messages(weak=True)
    return found
