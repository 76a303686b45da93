"""scripts/report: the page stands alone, shows what was measured, and says when something is missing."""

import html.parser
import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, build_all, run_command

ROW = {"table": "sweep", "reps": 1, "check": "ok", "bytes": 1, "rate": 100.0, "unit": "GB/s", "limit": 400.0,
       "percent": 25.0, "milliseconds": {"median": 1.0, "min": 1.0, "max": 1.0}}


def result(lesson, program, rows=(), **more):
    return {"lesson": lesson, "program": program, "backend": "cuda", "status": "ok", "message": None,
            "device": {"id": 0, "name": "Test <GPU>", "compute_capability": "9.0", "sms": 132,
                       "memory_limit_gbs": 400.0, "fp32_limit_gflops": 4000.0},
            "parameters": {"reps": 1}, "checks": {"done": 1, "failed": 0}, "values": {}, "measurements": list(rows), **more}


def write(folder, *results):
    for data in results:
        (folder / f"{data['lesson']}-{data['program']}.json").write_text(json.dumps(data))


def report(folder, *arguments):
    out = folder / "page.html"
    done = run_command([ROOT / "scripts/report", "--from", folder, "--out", out, *arguments], cwd=folder)
    return done, out.read_text() if out.exists() else ""


class Links(html.parser.HTMLParser):
    """Collects what a browser would fetch, and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.fetched, self.open = [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("src", "href", "data"):
            value = attributes.get(name)
            if value and not value.startswith(("#", "data:")):
                self.fetched.append(value)
        if tag not in ("meta", "link", "script"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag != "script":
            assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
            self.open.pop()


def test_the_page_is_whole_and_fetches_nothing(tmp_path):
    steps = [dict(ROW, name=f"stride {n}", rate=400.0 / n) for n in (1, 2, 4, 8)]
    kinds = [dict(ROW, table="kinds", name=name) for name in ("a", "b")]
    write(tmp_path, result("03_memory_hierarchy", "coalescing", steps + kinds))
    done, page = report(tmp_path)
    assert done.code == 0, done
    links = Links()
    links.feed(page)
    assert links.fetched == [] and links.open == []
    assert not re.search(r"url\(|@import|https?://", page)
    assert "Test &lt;GPU&gt;" in page and "Test <GPU>" not in page.split("<script")[0]
    assert page.count("<polyline") == 2, "a curve and its limit"
    assert page.count('class="bars"') == 1
    raw = re.search(r"<script type='application/json' id='data'>(.*?)</script>", page, re.S).group(1)
    assert json.loads(raw)["results"]["03_memory_hierarchy/coalescing"]["measurements"][0]["name"] == "stride 1"


def test_roofline_timeline_and_memory_table(tmp_path):
    rung = dict(ROW, table="the ladder", name="1 uncoalesced", unit="TFLOP/s", rate=0.5, limit=4.0)
    write(tmp_path,
          result("04_shared_tiling", "matmul", [rung], values={"rung 1 flop per byte": 0.25}),
          result("03_memory_hierarchy", "memory_hierarchy", values={"l2_cycles": 280.0, "l2_gbs": 8000.0, "clock_ghz": 2.0}),
          result("05_streams", "streams"))
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "one stream"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "stream 0"}},
        {"ph": "X", "name": "kernel", "pid": 1, "tid": 0, "ts": 0, "dur": 1000}]}))
    done, page = report(tmp_path)
    assert done.code == 0, done
    assert "flop a byte" in page and "1 uncoalesced: 0.5 TFLOP/s" in page
    assert "<td>280</td><td>140</td><td>8,000</td>" in page
    assert "kernel: 1.000 ms" in page and "stream 0" in page


def test_failures_and_the_cpu_are_named(tmp_path):
    bad = result("02_saxpy", "saxpy", status="failed", message="02_saxpy/saxpy.cu:61: out of memory")
    cpu = result("01_hello_grid", "scaling", [dict(ROW, name="x", limit=None, percent=None)], backend="cpu")
    write(tmp_path, bad, cpu)
    done, page = report(tmp_path)
    assert done.code == 1 and "02_saxpy/saxpy" in done.out
    assert "class='bad'>failed: 02_saxpy/saxpy.cu:61: out of memory" in page
    assert "Their times say nothing about a GPU" in page and "100 GB/s (CPU)" in page


def test_what_it_cannot_do_is_one_line_and_64(tmp_path):
    for arguments in (["--from", tmp_path / "none"], ["--lessons", "99"], ["--build", tmp_path / "none"],
                      ["--out", tmp_path / "no/page.html", "--from", tmp_path], ["--from", tmp_path], ["--what"]):
        done = run_command([ROOT / "scripts/report", "--out", tmp_path / "x.html", *arguments])
        assert done.code == 64 and len(done.err.strip().splitlines()) == 1, done
    assert not list(tmp_path.glob("*.html*"))


@pytest.mark.parametrize("backend", ["cpu"])
def test_a_real_run_and_a_missing_program(tmp_path, backend):
    folder, _ = build_all(backend)
    done = run_command([ROOT / "scripts/report", "--build", folder, "--lessons", "01 02", "--out", tmp_path / "p.html",
                        "--keep", tmp_path / "kept"], timeout=120)
    assert done.code == 0, done
    assert re.search(r"^\[1/\d+\] 01_hello_grid/", done.err, re.M), "no progress shown"
    assert len(list((tmp_path / "kept").glob("*.json"))) >= 9
    missing = run_command([ROOT / "scripts/report", "--build", tmp_path, "--lessons", "02", "--out", tmp_path / "q.html"])
    assert missing.code == 1 and "was not built" in (tmp_path / "q.html").read_text()


def test_a_real_browser_has_no_complaint(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium is installed")
    write(tmp_path, result("03_memory_hierarchy", "coalescing", [dict(ROW, name=f"stride {n}") for n in (1, 2, 4, 8)]))
    _, _ = report(tmp_path)
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                           f"--screenshot={tmp_path}/page.png", "--window-size=390,1200", f"file://{tmp_path}/page.html"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert (tmp_path / "page.png").stat().st_size > 5000
