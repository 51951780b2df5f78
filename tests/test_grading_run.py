"""Answers are run in the sandbox, and compared outside of it; a tiny assignment shows how."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("nbval", reason="needs nbval")

from toy_assignment import DOUBLE, job, make_build, notebook, points

from ppo_lessons.grading import nbval_plugin, run
from ppo_lessons.grading.run import InfrastructureError, run_jobs
from ppo_lessons.grading.sandbox import (
    MIB,
    IsolationMissing,
    Limits,
    Places,
    bwrap,
    choose,
    kernel_environment,
)
from ppo_lessons.grading.sandbox.bwrap import Bubblewrap
from ppo_lessons.grading.sandbox.none import NoIsolation

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Limits(cell=3.0, notebook=20.0, disk=16 * MIB, resident=500 * MIB)
NOTHING = NoIsolation()


@pytest.fixture(scope="module")
def sandbox():
    """A sandbox that works here; CI must have it."""
    try:
        return choose("bwrap")
    except IsolationMissing as missing:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"{missing}, and CI must have it")
        pytest.skip(f"needs bubblewrap: {missing}")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return make_build(tmp_path_factory.mktemp("build"))


# --- answers of many kinds, in one batch ---------------------------------------------------

LOOP = "while True:\n    pass"
STUBBORN = """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
FORKS = """
import os, time
children = []
try:
    for _ in range(400):
        children.append(os.fork())
        if not children[-1]:
            time.sleep(99)
            os._exit(0)
except OSError:
    pass
assert len(children) < 64
"""
DISK = """
for folder in ("/tmp", "/dev/shm", "/student"):
    try:
        for number in range(9):
            open(f"{folder}/{number}", "wb").write(bytes(8 << 20))
        raise SystemError(folder)
    except OSError:
        pass
"""
LONG = """
for _ in range(20):
    print("x" * 10_000_000, flush=True)
import os
os.write(1, b"y" * 3_000_000)
"""
NONSENSE = """
import json
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.session import DELIM

app = IPKernelApp.instance()
parent = json.dumps(app.kernel.get_parent()["header"], default=str).encode()
head = json.dumps({"msg_type": "stream"}).encode()
for text in (b"[" * 100_000, b"{}", b"no", b"1" * 5000, b'{"name": "stdout", "text": 5}'):
    app.iopub_thread.send_multipart([b"x", DELIM, b"", head, parent, b"{}", text])
    app.iopub_thread.send_multipart([b"x", DELIM, b"", text[:9999], parent, b"{}", b"{}"])
    app.iopub_thread.send_multipart([b"x", DELIM, text])
    app.iopub_thread.send_multipart([text])
"""
TOO_LARGE = """
from ipykernel.kernelapp import IPKernelApp

piece = b"x" * 3_900_000
IPKernelApp.instance().iopub_thread.send_multipart([piece] * 900, copy=False)
"""
END_OTHERS = """
import os
for process in (1, os.getppid()):
    try:
        os.kill(process, 9)
    except OSError:
        pass
"""
NOISY = """
import sys, warnings

def double(x):
    warnings.warn("soon")
    print("to nobody", file=sys.stderr)
    return 2 * x
"""
MEMORY = "held = []\nwhile True:\n    held.append(b'x' * (32 << 20))"
MARKED = "# NBVAL_SKIP\n# NBVAL_IGNORE_OUTPUT\n" + DOUBLE
WITHOUT = "import tqdm.auto\n" + DOUBLE
HALF = f"{DOUBLE}\nimport os\nos._exit(0)"

# what a student sent, and the points; 10 for each question
ANSWERS = {
    "honest": ({}, 20),
    "wrong": ({"double": "def double(x):\n    return 2.001 * x"}, 10),
    "hard-coded": ({"double": "double = {1: 2, 2: 4}.get"}, 12),
    "nothing": ({"double": "", "triple": ""}, 0),
    "a syntax error": ({"double": "def double(x:"}, 10),
    "half a character": ({"double": "x = '\ud800'"}, 10),
    "half a character in an error": ({"double": "raise ValueError(chr(0xD800))"}, 10),
    "warnings": ({"double": NOISY}, 20),
    "markers of nbval": ({"double": MARKED, "triple": "# NBVAL_SKIP"}, 10),
    "the end of the kernel after a right answer": ({"double": HALF}, 10),
    "the end of the kernel in a call": ({"double": "import os\ndouble = os._exit"}, 10),
    "sys.exit": ({"double": f"{DOUBLE}\nimport sys\nsys.exit()"}, 20),
    "KeyboardInterrupt": ({"double": "raise KeyboardInterrupt"}, 10),
    "a loop": ({"double": LOOP}, 10),
    "a loop that holds on": ({"double": STUBBORN}, 10),
    "two loops": ({"double": LOOP, "triple": LOOP}, 0),
    "forks": ({"double": FORKS + DOUBLE}, 20),
    "a full disk": ({"double": DISK + DOUBLE}, 20),
    "memory": ({"double": MEMORY}, 10),
    "output": ({"double": LONG + DOUBLE}, 20),
    "messages that are none": ({"double": NONSENSE + DOUBLE}, 20),
    "a message that is too large": ({"double": TOO_LARGE + DOUBLE}, 10),
    "the end of all others": ({"double": END_OTHERS + DOUBLE}, 20),
    "a forbidden package": ({"double": WITHOUT}, 10),
}


@pytest.fixture(scope="module")
def batch(sandbox, build):
    """Run them all, once; half a minute, so what asks for it is `full` (attacks are not)."""
    jobs = [job(build, forbid=("tqdm",), **answers) for answers, _ in ANSWERS.values()]
    results = run_jobs(jobs, isolation=sandbox, limits=LIMITS)
    return dict(zip(ANSWERS, results, strict=True))


@pytest.mark.full
@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_gets_what_it_deserves(batch, name):
    assert points(batch[name]) == ANSWERS[name][1], batch[name]


@pytest.mark.full
def test_each_code_cell_has_an_outcome(batch):
    cells = [each["id"] for each in notebook()["cells"] if each["cell_type"] == "code"]
    for result in batch.values():
        assert list(result.cells) == ["main"]
        assert set(result.cells["main"]) == set(cells)


@pytest.mark.full
def test_what_is_told_comes_through(batch):
    assert batch["honest"].cells["main"]["t-triple"].said == '{"mistake": "triple"}\n'


@pytest.mark.full
def test_a_traceback_of_the_student_is_kept_and_nothing_of_the_expected_text(batch):
    said = batch["a syntax error"].cells["main"]["a-double"].said
    assert "SyntaxError" in said
    assert "\x1b" not in said
    batch["half a character in an error"].cells["main"]["a-double"].said.encode("utf-8")
    assert batch["wrong"].cells["main"]["h-double"].said == "It printed something else."


@pytest.mark.full
def test_after_the_second_loop_the_rest_is_absent(batch):
    cells = batch["two loops"].cells["main"]
    assert cells["h-double"].state == cells["t-double"].state == "absent"
    assert batch["two loops"].timed_out
    assert not batch["a loop"].timed_out


@pytest.mark.full
def test_the_loss_of_a_kernel_is_told(batch):
    assert any("died" in note and "double" in note for note in batch["memory"].notes)
    assert any("too long" in note for note in batch["a loop"].notes)
    assert batch["honest"].notes == ()


@pytest.mark.full
def test_no_process_and_no_file_is_left(batch):
    over = time.monotonic() + 5
    while kernels() and time.monotonic() < over:
        time.sleep(0.1)
    assert kernels() == []
    assert not list(Path("/tmp").glob(f"{run.prefix_of(os.getpid())}*"))


def kernels(of: str = "") -> list[int]:
    """Kernels that run below this process, or of some other."""
    below = nbval_plugin.family(int(of or os.getpid()))[1:]
    return [each for each in below if "kernel.py" in command_line(each)]


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text("utf-8", "replace")
    except OSError:
        return ""


# --- the oracle lies outside ---------------------------------------------------------------


def test_with_another_stored_text_nobody_scores(build):
    texts = dict.fromkeys(("v-double", "h-double", "v-triple", "h-triple"), "1.0\n2.0\n")
    [result] = run_jobs([job(build, printed=texts)], isolation=NOTHING, limits=LIMITS)
    assert points(result) == 0


def test_a_marker_in_a_check_cell_does_not_turn_it_off(build):
    marked = notebook(double="double = abs")
    for cell in marked["cells"]:
        if cell["id"].startswith(("v-", "h-")):
            cell["source"] = "# NBVAL_SKIP\n# NBVAL_RAISES_EXCEPTION\n" + cell["source"]
            cell["metadata"] = {"tags": ["nbval-ignore-output", "nbval-skip"]}
    [result] = run_jobs([job(build, parts={"main": marked})], isolation=NOTHING, limits=LIMITS)
    assert points(result) == 10


def without_text(cell):
    cell["execution_count"], cell["outputs"] = None, []


def with_empty_text(cell):
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ""}]


def with_a_picture(cell):
    cell["outputs"] = [{"output_type": "display_data", "data": {"image/png": ""}, "metadata": {}}]


@pytest.mark.parametrize("spoil", [without_text, with_empty_text, with_a_picture])
def test_a_check_cell_that_compares_nothing_is_refused(build, spoil):
    broken = notebook()
    spoil(next(cell for cell in broken["cells"] if cell["id"] == "h-double"))
    [result] = run_jobs([job(build, parts={"main": broken})], isolation=NOTHING)
    assert isinstance(result, InfrastructureError)
    assert "h-double" in str(result)


def test_the_kernel_starts_in_a_folder_of_its_own_and_finds_the_students_build(build, tmp_path):
    look = """
import os, ppo_lessons
around = [name for _, _, names in os.walk("..") for name in names if name.endswith("ipynb")]
print(os.listdir("."), around, ppo_lessons.__file__)
"""
    told = notebook()
    next(cell for cell in told["cells"] if cell["id"] == "t-double")["source"] = look
    [result] = run_jobs([job(build, parts={"main": told})], isolation=NOTHING, limits=LIMITS)
    said = result.cells["main"]["t-double"].said
    assert said == f"['.ipython'] [] {build}/ppo_lessons/__init__.py\n"


# --- the machine's failures are not the student's ------------------------------------------


# what is started instead of a kernel
STRANGE = {
    "ends": ["false"],
    "sleeps": ["sleep", "60"],
    "lacks": ["no-such-program"],
    "kills": ["sh", "-c", "kill -9 $PPID"],
    "stops": ["sh", "-c", "kill -STOP $PPID; sleep 60"],
}


class Strange(NoIsolation):
    """Starts something else for builds that bear a strange name."""

    def command(self, places, limits):
        return STRANGE.get(places.build.name) or super().command(places, limits)


@pytest.mark.parametrize(
    "names",
    [
        ("ends", "lacks"),
        pytest.param(("sleeps", "kills"), marks=pytest.mark.full),
        pytest.param(("stops",), marks=pytest.mark.full),
    ],
)
def test_what_happens_to_one_job_changes_no_other(build, tmp_path, names):
    jobs = [job(build)]
    if names != ("stops",):
        jobs += [job(build, double=7), job(build)]  # a notebook that cannot be read
    for name in names:
        jobs += [job(make_build(tmp_path / name)), job(build)]
    limits = Limits(start=8, wall=30)
    results = run_jobs(jobs, isolation=Strange(), limits=limits)
    for number, result in enumerate(results):
        if number % 2:
            assert isinstance(result, InfrastructureError)
        else:
            assert points(result) == 20


def test_a_failure_of_the_setup_is_nobodys_zero(tmp_path):
    (tmp_path / "ppo_lessons").mkdir()
    [result] = run_jobs([job(tmp_path)], isolation=NOTHING, limits=LIMITS)
    assert isinstance(result, InfrastructureError)
    assert "ppo_lessons.toy" in str(result)


def test_two_reports_must_agree(tmp_path):
    junit = tmp_path / "junit.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="n0-0.part.ipynb" name="Cell 0"/>'
        '<testcase classname="n0-0.part.ipynb" name="Cell 1"><failure/></testcase>'
        "</testsuite></testsuites>"
    )
    passed = run.passed_cells(junit)
    one = run.Notebook(
        job=0, part="main", name="n0-0", file=tmp_path, cells=("a", "b"), roles={}, plan={}
    )

    def news(**states):
        return [{"event": "cell", "cell": cell, "state": state} for cell, state in states.items()]

    assert run.disagreement(one, news(a="passed", b="failed"), passed) == ""
    assert run.disagreement(one, news(a="passed", b="passed"), passed)
    assert run.disagreement(one, news(a="failed", b="failed"), passed)
    assert run.disagreement(one, news(a="passed"), passed)
    assert run.disagreement(one, news(a="passed", b="failed", c="passed"), passed)


# --- nothing outlives the grader -----------------------------------------------------------

KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from toy_assignment import job
from ppo_lessons.grading.run import run_jobs
from ppo_lessons.grading.sandbox import choose
slow = job(Path({build!r}), double="import time\\ntime.sleep(60)")
run_jobs([slow], isolation=choose({name!r}))
"""


@pytest.mark.parametrize("name", ["bwrap", "none"])
def test_a_killed_grader_leaves_no_process(sandbox, build, name):
    script = KILLED.format(tests=str(ROOT / "tests"), build=str(build), name=name)
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    try:
        over = time.monotonic() + 60
        script_name = "kernel.py" if name == "bwrap" else "inside.py"
        while time.monotonic() < over:
            members = nbval_plugin.family(process.pid)
            if script_name in command_line(members[-1]) and "bwrap" not in command_line(
                members[-1]
            ):
                break
            time.sleep(0.1)
        else:
            pytest.fail("no kernel was started")
        if name == "bwrap":
            status = Path(f"/proc/{members[-1]}/status").read_text()
            user = status.split("Uid:")[1].split()[0]
            assert user != "0", "root's kernel is root"
    finally:
        process.kill()
        process.wait()
    over = time.monotonic() + 10
    while (left := [each for each in members if is_running(each)]) and time.monotonic() < over:
        time.sleep(0.05)
    assert not left


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- an ordinary user ----------------------------------------------------------------------


def as_ordinary_user(words: list[str]) -> list[str]:
    """Wrap a command so that it runs without rights; for root only.

    The interpreter may lie in a folder that only root may enter; it is shown again.
    """
    words = ["env", "HOME=/nonexistent", "PYTHONDONTWRITEBYTECODE=1", *words]
    if os.geteuid() != 0:
        return words
    closed = [
        path
        for each in {sys.base_prefix, sys.prefix}
        for path in Path(each).resolve().parents
        if not path.stat().st_mode & 0o001
    ]
    show = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    for top in sorted(set(closed), key=lambda path: len(path.parts))[:1]:
        show += ["--perms", "0755", "--tmpfs", str(top)]
        below = [each for each in bwrap.visible_folders() if top in each.parents]
        for each in below:
            for parent in reversed(each.parents):
                if top in parent.parents:
                    show += ["--perms", "0755", "--dir", str(parent)]
            show += ["--ro-bind", str(each), str(each)]
    nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all"]
    return [*show, "--", "setpriv", *nobody, "--inh-caps=-all", *words]


ORDINARY = """
import os, sys, tempfile
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_grading_run import END_OTHERS, FORKS, LIMITS
from toy_assignment import DOUBLE, job, make_build, points
from ppo_lessons.grading.run import run_jobs
from ppo_lessons.grading.sandbox import choose
assert os.geteuid() != 0
build = make_build(Path(tempfile.mkdtemp()))
jobs = [job(build), job(build, double=FORKS + END_OTHERS + DOUBLE), job(build, double="1 / 0")]
print(*map(points, run_jobs(jobs, isolation=choose("bwrap"), limits=LIMITS)))
"""


@pytest.mark.full
def test_an_ordinary_user_has_the_same_sandbox(sandbox):
    script = ORDINARY.format(tests=str(ROOT / "tests"))
    words = as_ordinary_user([sys.executable, "-c", script])
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.split() == ["20", "20", "10"], result.stderr


# --- choosing ------------------------------------------------------------------------------


def test_without_a_sandbox_nothing_is_graded_unless_it_is_spelled_out(monkeypatch):
    bwrap.reason_against.cache_clear()
    monkeypatch.setattr(bwrap.shutil, "which", lambda name: None)
    with pytest.raises(IsolationMissing, match=r"not installed.*--isolation none"):
        choose("auto")
    assert choose("none").contains is False
    bwrap.reason_against.cache_clear()


def test_an_unknown_sandbox_is_refused():
    with pytest.raises(ValueError, match="expected one of auto, bwrap, none"):
        choose("docker")


def test_an_old_bubblewrap_is_refused(monkeypatch):
    bwrap.reason_against.cache_clear()
    said = subprocess.CompletedProcess([], 0, stdout="bubblewrap 0.6.1\n", stderr="")
    monkeypatch.setattr(bwrap.subprocess, "run", lambda *words, **named: said)
    monkeypatch.setattr(bwrap.shutil, "which", lambda name: name)
    assert "0.6.1 is too old" in str(Bubblewrap().available())
    bwrap.reason_against.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_reference_inside_of_python_is_refused(tmp_path):
    inside = Path(sys.prefix) / "reference"
    places = Places(build=tmp_path, scratch=tmp_path, secret=(inside,))
    with pytest.raises(ValueError, match="would be visible to students"):
        Bubblewrap().command(places, Limits())
    Bubblewrap().command(Places(build=tmp_path, scratch=tmp_path, secret=(tmp_path,)), Limits())


def test_a_kernel_gets_no_variable_of_the_grader(monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_SECRET", "x")
    assert "PPO_LESSONS_SECRET" not in kernel_environment("/")
    assert "PPO_LESSONS_SECRET" not in run.environment(Path("/"))


# --- what nbval must be --------------------------------------------------------------------


def test_nbval_is_the_one_that_the_plugin_was_made_for():
    assert nbval_plugin.changes_of_nbval() == ""


def test_a_changed_nbval_is_noticed(monkeypatch):
    def await_reply(self, msg_id):
        """Lack the time limit."""

    monkeypatch.setattr(nbval_plugin.nbval.kernel.RunningKernel, "await_reply", await_reply)
    assert "await_reply" in nbval_plugin.changes_of_nbval()


def test_a_changed_run_of_cells_is_noticed(monkeypatch):
    def runtest(self):
        """Compare nothing."""

    monkeypatch.setattr(nbval_plugin.nbval.plugin.IPyNbCell, "runtest", runtest)
    assert "run of a cell" in nbval_plugin.changes_of_nbval()


# --- the clock -----------------------------------------------------------------------------


def test_waiting_for_a_processor_does_not_count_but_an_eighth_does(monkeypatch):
    now, waited = [0.0], [5.0]
    monkeypatch.setattr(nbval_plugin.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(nbval_plugin.Clock, "waited", lambda clock: waited[0])
    clock = nbval_plugin.Clock(1)
    now[0], waited[0] = 12.0, 9.0
    assert clock.passed() == pytest.approx(12 - 4)
    waited[0] = 16.0
    assert clock.passed() == pytest.approx(1.5)


def test_time_in_which_the_reader_of_a_kernel_waits_does_not_count_either(monkeypatch):
    now, waited = [0.0], {1: 2.0, os.getpid(): 3.0}
    monkeypatch.setattr(nbval_plugin.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(nbval_plugin, "waited_by", lambda process: waited[process])
    clock = nbval_plugin.Clock(1)
    now[0], waited[1], waited[os.getpid()] = 12.0, 4.0, 6.0
    assert clock.passed() == pytest.approx(12 - 2 - 3)


def test_processes_that_share_memory_are_not_counted_twice():
    held = bytearray(os.urandom(1)) * (60 * MIB)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        children.append(child)
    try:
        family = [os.getpid(), *children]
        assert sum(map(nbval_plugin.share, family)) < sum(map(nbval_plugin.resident, family)) / 2
        assert nbval_plugin.held(family, 0) > len(held)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
