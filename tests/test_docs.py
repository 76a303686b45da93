"""The documents: each in two languages, with the same commands and figures, and no dead links."""

import re
from pathlib import Path

import pytest

from conftest import PROGRAMS, ROOT, make

SKIPPED = {".venv", "build", ".git", ".pytest_cache"}
ENGLISH = sorted(path for path in ROOT.rglob("*.md")
                 if not path.name.endswith(".zh-CN.md") and not SKIPPED & set(path.relative_to(ROOT).parts))
PAIRED = [path for path in ENGLISH if path.name == "README.md" or
          path.with_name(path.stem + ".zh-CN.md").exists()]
ALL = ENGLISH + [path.with_name(path.stem + ".zh-CN.md") for path in PAIRED]


def name(path):
    return str(path.relative_to(ROOT))


def blocks(text):
    """Fenced blocks, as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)


def prose(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def figures(text):
    """Numbers that state a measurement: with a decimal point, a percent sign or a unit behind them."""
    found = re.findall(r"(?<![\w.])(\d+(?:\.\d+)+|\d+(?= ?(?:%|GB/s|TFLOP/s|GiB|MiB|KiB|ms|us|ns|µs)))", prose(text))
    return sorted(set(found))


@pytest.mark.parametrize("path", PAIRED, ids=name)
def test_both_languages_show_the_same_commands_and_figures(path):
    english = path.read_text(encoding="utf-8")
    twin = path.with_name(path.stem + ".zh-CN.md")
    assert twin.exists(), f"{name(path)} has no Chinese twin"
    chinese = twin.read_text(encoding="utf-8")
    strip = lambda found: [(kind, re.sub(r"\s*#.*$", "", body, flags=re.M) if kind in ("sh", "bash") else body)
                           for kind, body in found]
    assert strip(blocks(english)) == strip(blocks(chinese))
    assert figures(english) == figures(chinese)
    assert len(re.findall(r"[\u4e00-\u9fff]", chinese)) > 100, "not Chinese"
    assert len(re.findall(r"[\u4e00-\u9fff]", english)) < 20, "not English"


@pytest.mark.parametrize("path", ALL, ids=name)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(text)):
        if not re.match(r"https?://|mailto:", target):
            assert (path.parent / target).exists(), f"{name(path)}: {target}"


@pytest.mark.parametrize("path", ALL, ids=name)
def test_commands_name_programs_and_targets_that_exist(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)) | set(PROGRAMS)
    for kind, body in blocks(path.read_text(encoding="utf-8")):
        if kind not in ("sh", "bash"):
            continue
        for program in re.findall(r"(?<![\w/.])(?:\./)?(\d\d_\w+/\w+)(?![\w./])", body):
            folder, _, stem = program.partition("/")
            assert list((ROOT / folder).glob(f"{stem}*")), f"{name(path)}: {program}"
        for script in re.findall(r"(?<![\w/])(scripts/[\w-]+)", body):
            assert (ROOT / script).exists(), f"{name(path)}: {script}"
        for line in body.splitlines():
            found = re.match(r"(?:\$ )?make((?: -C \w+| [A-Z]\w*=(?:\"[^\"]*\"|\S+)| -j\d*| \w+=\d)*) ([a-z][\w-]*)\b(?!/|=)", line)
            if found and "-C" not in found.group(1):
                assert found.group(2) in targets | {"torch"}, f"{name(path)}: {line}"


def test_the_map_of_lessons_is_complete():
    for readme in ("README.md", "README.zh-CN.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        for program in PROGRAMS:
            folder = program.split("/")[0]
            assert f"({folder}/README" in text, f"{readme}: {folder}"
    for program in PROGRAMS:
        folder, stem = program.split("/")
        for language in ("README.md", "README.zh-CN.md"):
            assert stem in (ROOT / folder / language).read_text(encoding="utf-8"), program


def test_make_help_names_every_target():
    text = make("help").out
    for target in re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[0].split():
        assert re.search(rf"^  {target}\b", text, re.M) or target == "help", target
