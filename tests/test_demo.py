"""scripts/demo: every lesson's demo on the CPU backend, its references to the source, its keys and errors."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

import pytest

from conftest import LESSONS, ROOT, run_command

DEMO = ROOT / "scripts" / "demo"
DEMOS = sorted(path.parent.name for path in ROOT.glob("[0-9][0-9]_*/demo.txt"))
WIDE = """\
to the device                       call us host free %  median ms            min .. max       rate    limit  check
  pinned, cudaMemcpyAsync               7.8        99.8     4.8705      4.8521 .. 4.8787 55.11 GB/s   87.5 %  ok
    warning: above the limit. The data sits in a cache, or the count is wrong.
  pageable, cudaMemcpy                36597           0    36.6088    33.1194 .. 42.5653  7.33 GB/s   11.6 %  ok

a picture
  stream 0 |{0}{1}|
  stream 1 |{1}{0}|

{2}
""".format("i" * 48, "k" * 48, "word " * 50)


@pytest.fixture
def project(tmp_path):
    """A project with a copy of the script and one lesson; project(text, ...) writes its demo.txt."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(DEMO, tmp_path / "scripts" / "demo")
    folder = tmp_path / "01_test"
    folder.mkdir()
    (folder / "test.cu").write_text(
        "// what the kernel\n// is about\n__global__ void kernel(int *x)\n{\n    *x = 1;\n}\n\n"
        "static void\n    __other(void);\n\nint main(void)\n{\n    kernel(0);\n    return 0; // end\n}\n")
    (tmp_path / "Makefile").write_text("all:\n\t@echo built $(LESSONS)\n")

    class Project:
        root = tmp_path
        script = tmp_path / "scripts" / "demo"

        def write(self, text):
            (folder / "demo.txt").write_text(text)
            return self

        def run(self, *arguments, **kwargs):
            return run_command([self.script, *arguments], cwd="/", **kwargs)

    return Project()


THREE = """\
# a comment
step: first
ask:  what comes out,
      and why?
show: test.cu: kernel()
say:  before
run:  echo one-$((1 + 1))
look: after
step: second
show: test.cu: "int main" .. "}"
show: test.cu: "// end"
run:  echo two; exit 3
exit: 3
step: third
run:  echo three-$((1 + 2))
"""


# ---- the lessons' demos

def test_every_lesson_has_a_demo():
    assert set(LESSONS) <= set(DEMOS)


@pytest.mark.parametrize("name", DEMOS)
def test_references_lead_to_the_source_and_fit_a_screen(name):
    listed = run_command([DEMO, "--list", name], cwd="/")
    assert listed.code == 0, listed
    steps = len(re.findall(r"^\d  ", listed.out, re.M))
    text = (ROOT / name / "demo.txt").read_text()
    assert 5 <= steps <= 9 and steps == text.count("step:"), name
    assert text.count("\nask:") >= steps - 1 and text.count("\nlook:") >= steps - 1, name
    assert max(map(len, text.splitlines())) <= 110, name
    for program in re.findall(r"(?<![\w/])(\d\d_\w+/\w+)", "\n".join(re.findall(r"^run:.*", text, re.M))):
        assert (ROOT / (program + ".cu")).exists(), program


def test_the_optional_lesson_is_waived_without_pytorch(tmp_path):
    """Its commands end with 2, and the demo takes that as expected: no Python here has PyTorch."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec "%s" -S -B "$@"\n' % sys.executable)  # -S: no site-packages
    python.chmod(0o755)
    result = run_command([DEMO, "--from", "2", "--auto", "0", "--build", tmp_path, "07"],
                         env={"PYTHON": python, "PYTHONPATH": ""})
    assert result.code == 0 and result.out.count("(exit code 2, as expected") >= 3, result


@pytest.mark.parametrize("name", [name for name in DEMOS if name in LESSONS])
def test_the_demo_runs_on_the_cpu(name, cpu):
    result = run_command([DEMO, "--auto", "0", "--notes", "--build", cpu.folder, name], cwd="/", timeout=300)
    assert result.code == 0, result
    assert "end of the demo of " + name in result.out
    wide = [line for line in result.out.splitlines() if len(line) > 100]
    assert not wide, wide
    for field in ("Predict: ", "  say:  ", "  look: "):
        assert field in result.out
    assert "CPU backend" in result.out


# ---- what a step shows

def test_a_step_shows_title_question_numbered_source_and_output(project):
    result = project.write(THREE).run("--auto", "0", "1")
    assert result.code == 0, result
    assert "building: make LESSONS=01_test" in result.out and "built 01_test" in result.out
    assert "step 1 of 3: first" in result.out
    assert "Predict: what comes out, and why?" in result.out
    shown = "1  // what the kernel\n2  // is about\n3  __global__ void kernel(int *x)\n4  {\n5      *x = 1;\n6  }\n"
    assert shown in result.out
    assert "11  int main(void)\n12  {\n13      kernel(0);\n14      return 0; // end\n15  }\n" in result.out
    assert result.out.index("Predict") < result.out.index("\none-2\n") < result.out.index("\nthree-3\n")
    assert "(exit code 3, as expected)" in result.out
    assert "before" not in result.out and "after" not in result.out
    notes = project.run("--auto", "0", "--notes", "1").out
    assert notes.index("say:  before") < notes.index("\none-2\n") < notes.index("look: after")


def test_wide_output_keeps_its_tables_and_pictures(project):
    (project.root / "wide").write_text(WIDE)
    lines = project.write("step: wide\nrun: cat wide\n").run("--auto", "0", "1").out.splitlines()
    assert max(map(len, lines)) <= 100
    table = [line for line in lines if re.search("median ms|pinned|pageable", line)]
    assert len(table) == 3 and len({line.rstrip().rfind(" ") for line in table}) == 1
    assert [line.split() for line in table] == [WIDE.splitlines()[row].split() for row in (0, 1, 3)]
    rows = [line.strip() for line in lines if "stream" in line]
    assert rows == ["stream 0 |%s|" % ("i" * 48), "stream 1 |%s|" % ("k" * 48),
                    "stream 0 |%s|" % ("k" * 48), "stream 1 |%s|" % ("i" * 48)]
    assert sum(line.count("word") for line in lines) == 50


def test_a_reference_that_leads_nowhere_is_told(project):
    for reference, message in (("test.cu: gone()", "no function gone()"), ("test.cu: __other()", "no function"),
                               ("no.cu: kernel()", "No such file"), ('test.cu: "no such text"', "no line with"),
                               ('test.cu: "kernel"', "is in 3 lines"), ("test.cu: 3", "show: takes")):
        project.write("step: a\nshow: %s\nrun: echo ran\n" % reference)
        listed = project.run("--list", "1")
        assert listed.code == 1 and message in listed.err and "01_test/demo.txt:2" in listed.err, listed
        shown = project.run("--auto", "0", "1")
        assert shown.code == 1 and "\nran\n" in shown.out, shown  # the demo goes on


def test_an_unexpected_exit_code_is_shown_and_the_demo_goes_on(project):
    text = THREE.replace("exit: 3\n", "")
    rehearsal = project.write(text).run("--auto", "0", "1")
    assert rehearsal.code == 1 and "(exit code 3, expected: 0)" in rehearsal.out and "\nthree-3\n" in rehearsal.out
    assert "step 2: exit code 3" in rehearsal.err
    crash = project.write("step: a\nrun: kill -SEGV $$\n").run("--auto", "0", "1")
    assert crash.code == 1 and "signal 11" in crash.out
    in_class = project.write(text).run("1", stdin="\n" * 7)
    assert in_class.code == 0 and "(exit code 3, expected: 0)" in in_class.out


def test_programs_are_taken_from_the_build_folder(project, tmp_path):
    place = tmp_path / "else where" / "01_test"
    place.mkdir(parents=True)
    (place / "test").write_text("#!/bin/sh\necho built elsewhere; pwd\n")
    (place / "test").chmod(0o755)
    (project.root / "Makefile").write_text("all:\n\tfalse\n")
    project.write("step: a\nrun: ./01_test/test\n")
    result = project.run("--auto", "0", "--build", place.parent, "1")
    assert result.code == 0 and "\nbuilt elsewhere\n%s\n" % project.root in result.out, result
    assert "$ '%s'/01_test/test" % place.parent in result.out.replace("\n      ", " ")
    unbuilt = project.run("--auto", "0", "1")
    assert unbuilt.code == 1 and "make LESSONS=01_test failed" in unbuilt.err and "false" in unbuilt.out


# ---- keys

def test_lines_are_keys_where_there_is_no_terminal(project):
    project.write(THREE)
    back = project.run("--build", "/tmp", "1", stdin="n\nn\nb\n3\nr\nr\n?\nq\n")
    assert back.code == 0, back
    titles = re.findall(r"step \d of 3: (\w+)", back.out)
    assert titles == ["first", "second", "first", "third"]
    assert back.out.count("\none-2\n") == 1 and back.out.count("\nthree-3\n") == 2 and "b back" in back.out
    assert "\ntwo\n" not in back.out  # a step that was left before its command
    ended = project.run("--build", "/tmp", "--from", "2", "1", stdin="")
    assert ended.code == 0 and "second" in ended.out and "\ntwo\n" not in ended.out
    notes = project.run("--build", "/tmp", "1", stdin="t\n\nt\nq\n").out
    assert notes.count("say:  before") == 2 and notes.count("look: after") == 1


class Terminal:
    """The demo in a terminal of its own."""

    def __init__(self, project, *arguments):
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([str(project.script), *arguments], stdin=self.theirs, stdout=self.theirs,
                                        stderr=self.theirs, cwd="/", start_new_session=True)
        self.text = ""

    def wait_for(self, words, seconds=20, keep=False):
        end = time.time() + seconds
        while words not in self.text:
            assert time.time() < end, "no '%s' in\n%s" % (words, self.text)
            if select.select([self.ours], [], [], 0.1)[0]:
                self.text += os.read(self.ours, 65536).decode().replace("\r\n", "\n")
        if not keep:
            self.text = self.text[self.text.index(words) + len(words):]

    def key(self, data):
        os.write(self.ours, data.encode())

    def end(self):
        end = time.time() + 20
        while self.process.poll() is None:  # it cannot end before somebody has read what it still writes
            assert time.time() < end, "the demo does not end"
            if select.select([self.ours], [], [], 0.05)[0]:
                os.read(self.ours, 65536)
        code = self.process.returncode
        after = termios.tcgetattr(self.theirs)
        os.close(self.ours)
        os.close(self.theirs)
        assert after == self.before, "the terminal was not restored"
        return code


def test_keys_in_a_terminal(project):
    terminal = Terminal(project.write(THREE), "1")
    terminal.wait_for("n: run")
    terminal.key(" ")
    terminal.wait_for("\none-2\n")
    terminal.wait_for("n: next")
    terminal.key("\n")
    terminal.wait_for("step 2 of 3")
    terminal.wait_for("n: run")
    terminal.key("b")
    terminal.wait_for("step 1 of 3")
    terminal.wait_for("n: run")
    terminal.key("3")
    terminal.wait_for("step 3 of 3")
    terminal.wait_for("n: run")
    terminal.key("x")
    terminal.wait_for("q quit")
    terminal.wait_for("n: run")  # keys before the prompt are dropped
    terminal.key("q")
    assert terminal.end() == 0


def test_ctrl_c_stops_the_command_and_not_the_demo(project):
    project.write("step: slow\nrun: trap '' INT; echo pid $$; sleep 60 & wait\nstep: next\nrun: echo done\n")
    terminal = Terminal(project, "1")
    terminal.wait_for("n: run")
    terminal.key("n")
    terminal.wait_for("\npid ")
    terminal.wait_for("\n", keep=True)
    command = int(terminal.text.split()[0])
    assert termios.tcgetattr(terminal.theirs) == terminal.before, "a command runs in the terminal as it was"
    os.kill(terminal.process.pid, signal.SIGINT)  # what the terminal sends for Ctrl-C
    terminal.wait_for("(stopped)")
    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)
    terminal.wait_for("n: next")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("once more")
    terminal.wait_for("n: next")
    terminal.key("n")
    terminal.wait_for("step 2 of 2")
    terminal.wait_for("n: run")
    for words in ("once more", ""):
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.wait_for(words)
    assert terminal.end() == 130


def test_a_terminated_demo_restores_the_terminal(project):
    terminal = Terminal(project.write(THREE), "1")
    terminal.wait_for("n: run")
    time.sleep(0.2)  # now it waits for a key
    terminal.process.terminate()
    assert terminal.end() == 128 + signal.SIGTERM


# ---- the command line

def test_help_and_the_list(project):
    shown = run_command([DEMO, "--help"], cwd="/")
    assert shown.code == 0 and shown.out.startswith("demo - ") and "demo.txt" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 110
    listed = run_command([DEMO, "--list"], cwd="/")
    assert listed.code == 0 and [line.split()[0] for line in listed.out.splitlines()] == DEMOS
    steps = project.write(THREE).run("--list", "01_test/")
    assert steps.code == 0 and re.findall(r"^\d  (\w+)", steps.out, re.M) == ["first", "second", "third"]


@pytest.mark.parametrize("arguments", [
    (), ("--no-such", "1"), ("99",), ("lesson",), ("1", "2"), ("--from", "0", "1"), ("--from", "x", "1"), ("--from",),
    ("--from", "4", "1"), ("--auto", "soon", "1"), ("--auto", "-1", "1"), ("--build", "/no/such", "1"),
    ("--notes=1", "1")], ids=" ".join)
def test_a_wrong_command_line_is_64(project, arguments):
    result = project.write(THREE).run(*arguments)
    assert result.code == 64 and len(result.err.strip().splitlines()) == 1, result


@pytest.mark.parametrize("text, message", [
    ("step: a\n", "without run"), ("run: echo\n", "before the first step"), ("title: a\n", "begins with one of"),
    ("step: a\nrun: x\nrun: y\n", "a second command"), ("step: a\nrun: x\nexit: one\n", "takes numbers"),
    ("step: a\nrun: x\n" * 10, "10 steps"), ("", "0 steps")])
def test_a_broken_demo_file_is_told(project, text, message):
    result = project.write(text).run("--auto", "0", "1")
    assert result.code == 1 and message in result.err and "01_test/demo.txt" in result.err, result


def test_it_is_python_3_8(tmp_path):
    import ast
    ast.parse(DEMO.read_text(), feature_version=(3, 8))
    assert sys.version_info >= (3, 8)
