"""How are the answers of many students run, and what became of each cell?

One trusted pytest process runs a batch of notebooks one after another, each against a kernel of
its own in the sandbox. nbval compares what a check cell prints with the text stored in the
reference, which the kernel can't see.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ppo_lessons.grading.sandbox import Isolation, Limits, Places
from ppo_lessons.grading.types import CellOutcome, Manifest, Transplanted

PACKAGE = Path(__file__).resolve().parents[2]
FORGOTTEN = 6 * 3600  # seconds after which a folder without a process is nobody's


class InfrastructureError(RuntimeError):
    """The machine failed, not the student: to be tried again, then listed; never zero points."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The answers of one student.

    Args:
        student: for messages.
        manifest: of the reference they were put into.
        transplanted: notebooks by part.
        build: folder that holds `ppo_lessons` as students have it (`student_build`).
        secret: folders that the kernel must not see, as the reference's.
    """

    student: str
    manifest: Manifest
    transplanted: Transplanted
    build: Path
    secret: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of the cells of one job.

    Args:
        cells: outcome by part and cell id; every code cell of every part is there.
        timed_out: whether a part was given up because its time was over.
        notes: what happened to kernels, in sentences for the student and the teacher.
        seconds: wall time.
    """

    cells: Mapping[str, Mapping[str, CellOutcome]]
    timed_out: bool = False
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def run_jobs(
    jobs: Sequence[Job],
    *,
    isolation: Isolation,
    limits: Limits | None = None,
    stop: threading.Event | None = None,
) -> list[Ran | InfrastructureError]:
    """Run a batch in one trusted process.

    Args:
        jobs: any number; ten share the cost of starting pytest well.
        isolation: from `sandbox.choose`.
        limits: what each part of each job may use.
        stop: once it is set, by another thread, the processes are ended.

    Returns:
        For each job, in order, what became of it; errors are returned, not raised.
    """
    limits = limits or Limits()
    found: list[Ran | InfrastructureError | None] = [None] * len(jobs)
    sweep()
    prefix = prefix_of(os.getpid())
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as homes,
    ):
        work = Path(name)
        notebooks: list[Notebook] = []
        for number, job in enumerate(jobs):
            try:
                check_job(job)
                notebooks += notebooks_of(job, number, work, Path(homes), isolation, limits)
            except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
                found[number] = InfrastructureError(f"{job.student}: {error!r}")
        report = run_notebooks(notebooks, work, limits, stop or threading.Event())
        for number, job in enumerate(jobs):
            own = [each for each in notebooks if each.job == number]
            found[number] = found[number] or ran(job, own, report)
    return [each for each in found if each is not None]


def prefix_of(process: int) -> str:
    """Begin the names of the folders of a process that grades."""
    return f"ppo-grade-{process}-"


def sweep() -> None:
    """Remove folders of graders that were killed: they hold what checks should print."""
    for folder in Path(tempfile.gettempdir()).glob("ppo-grade-*-*"):
        number = folder.name.split("-")[2]
        with contextlib.suppress(OSError):  # other containers may have processes of their own here
            old = time.time() - folder.stat().st_mtime > FORGOTTEN
            if old and number.isdigit() and not Path(f"/proc/{number}").exists():
                shutil.rmtree(folder, ignore_errors=True)


# --- before --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """One part of one job, on the disk."""

    job: int
    part: str
    name: str
    file: Path
    cells: tuple[str, ...]
    roles: Mapping[str, str]
    plan: Mapping[str, Any]


def check_job(job: Job) -> None:
    """Make sure that each check cell will be compared, and with what.

    Raises:
        ValueError: if the reference is broken; a cell without stored text would always pass.
    """
    parts = job.transplanted.parts
    if set(parts) != set(job.manifest.parts):
        raise ValueError("the notebooks are not those of the manifest")
    for question in job.manifest.questions:
        cells = {cell["id"]: cell for cell in code_cells(parts[question.part])}
        for check in question.checks:
            cell = cells.get(check.cell, {})
            outputs = cell.get("outputs", [])
            texts = [each.get("text") for each in outputs if each.get("name") == "stdout"]
            if not isinstance(cell.get("execution_count"), int) or len(texts) != len(outputs):
                raise ValueError(f"the check cell {check.cell} has no stored text of its own")
            if not any(texts):
                raise ValueError(f"the check cell {check.cell} prints nothing")


def code_cells(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the code cells of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def notebooks_of(
    job: Job, number: int, work: Path, homes: Path, isolation: Isolation, limits: Limits
) -> list[Notebook]:
    """Write the notebooks of a job, and how each is to be run.

    Args:
        job: whose.
        number: of the job.
        work: folder for what is trusted.
        homes: folder for what a kernel without sandbox finds around it.
        isolation: where the kernel runs.
        limits: what it may use.
    """
    made = []
    for count, (part, notebook) in enumerate(sorted(job.transplanted.parts.items())):
        name = f"n{number}-{count}"
        folder, scratch = work / name, homes / name
        folder.mkdir()
        scratch.mkdir()
        file = folder / "part.ipynb"
        file.write_text(json.dumps(notebook), encoding="utf-8")
        cells = tuple(cell["id"] for cell in code_cells(notebook))
        roles, groups = roles_of(job.manifest, part, cells)
        places = Places(
            build=job.build,
            scratch=scratch,
            forbid=job.manifest.forbid,
            secret=(*job.secret, folder),
        )
        plan = {
            "name": name,
            "command": isolation.command(places, limits),
            "told": {
                "paths": isolation.modules(places),
                "more": [each for each in sys.path if each.endswith("-packages")],
                "limits": kernel_limits(limits, contains=isolation.contains),
                "output": limits.output,
                "filter": isolation.contains,
            },
            "roles": roles,
            "groups": groups,
            "limits": asdict(limits),
        }
        made.append(
            Notebook(
                job=number, part=part, name=name, file=file, cells=cells, roles=roles, plan=plan
            )
        )
    return made


def roles_of(
    manifest: Manifest, part: str, cells: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Say what each code cell is for, and to which question it belongs, if to any."""
    roles: dict[str, str] = {}
    groups: dict[str, str] = {}
    for question in manifest.questions:
        if question.part != part:
            continue
        mine = {question.answer: "answer"}
        mine |= {question.tell: "tell"} if question.tell else {}
        mine |= {check.cell: "check" for check in question.checks}
        roles |= mine
        groups |= dict.fromkeys(mine, question.id)
    first = min((n for n, cell in enumerate(cells) if cell in roles), default=len(cells))
    others = {
        cell: "setup" if number < first else "answer"
        for number, cell in enumerate(cells)
        if cell not in roles
    }
    return roles | others, groups


def kernel_limits(limits: Limits, *, contains: bool) -> dict[str, int]:
    """List what `setrlimit` is told in the kernel.

    Args:
        limits: what is allowed.
        contains: whether processes can be counted: without a sandbox ours would be among them.
    """
    seconds = int(2 * (limits.start + limits.notebook))
    processes = {"NPROC": limits.processes} if contains else {}
    return {
        **{"AS": limits.memory, "FSIZE": limits.disk, "NOFILE": limits.files, "CORE": 0},
        **{"CPU": seconds, "MSGQUEUE": 0, "MEMLOCK": 0, **processes},
    }


# --- the trusted process -------------------------------------------------------------------

Report = dict[str, list[dict[str, Any]]]  # news by the notebook's name


def run_notebooks(
    notebooks: Sequence[Notebook], work: Path, limits: Limits, stop: threading.Event
) -> Report:
    """Run all notebooks; if the process ends or hangs in one of them, go on after that one."""
    report: Report = {}
    left, tries = list(notebooks), 0
    while left and tries <= len(notebooks) and not stop.is_set():
        tries += 1
        news = run_pytest(left, work / f"run{tries}", limits, stop)
        report |= news
        left = [each for each in left if each.name not in news]
    return report


def run_pytest(
    notebooks: Sequence[Notebook], folder: Path, limits: Limits, stop: threading.Event
) -> Report:
    """Run pytest once.

    Returns:
        What it reported on each notebook that it came to, each with an event "broken" if something
        is missing, or differs from what JUnit's file says.
    """
    folder.mkdir()
    batch, told, junit = folder / "batch.json", folder / "report.jsonl", folder / "junit.xml"
    plans = {str(each.file.parent): each.plan for each in notebooks}
    batch.write_text(json.dumps({"plans": plans, "report": str(told)}), encoding="utf-8")
    told.touch()
    words = [
        *(sys.executable, "-s", "-P", "-m", "pytest", "-q", "-c", os.devnull, "--noconftest"),
        *("--rootdir", str(folder.parent), "-p", "no:cacheprovider", "--assert=plain"),
        "--continue-on-collection-errors",
        *("-p", "nbval.plugin", "-p", "ppo_lessons.grading.nbval_plugin", "--nbval"),
        *("--ppo-batch", str(batch), f"--junitxml={junit}", "--tb=no", "--color=no"),
        f"--nbval-kernel-startup-timeout={limits.start}",
        *(str(each.file) for each in notebooks),
    ]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
        )
        try:
            watch(process, told, limits.wall, stop)
        finally:
            end(process)
    report: Report = {}
    for line in told.read_text("utf-8").splitlines():
        with contextlib.suppress(ValueError):  # the last one may be cut off
            news = json.loads(line)
            report.setdefault(news["name"], []).append(news)
    if not report:  # it did not even start; nothing would change the next time
        report = {each.name: [] for each in notebooks}
        return broken(report, "pytest did not start. " + tail(folder / "said"))
    passed = passed_cells(junit)
    if passed is None:  # it was ended in the last one, the others are run again
        report = dict([list(report.items())[-1]])
        return broken(report, "the trusted process was ended. " + tail(folder / "said"))
    for each in notebooks:
        news = report.setdefault(each.name, [])
        if problem := disagreement(each, news, passed):
            broken({each.name: news}, problem + tail(folder / "said"))
    return report


def broken(report: Report, said: str) -> Report:
    """Note that what a report says of its notebooks can't be relied on."""
    for news in report.values():
        news.append({"event": "broken", "said": said})
    return report


def environment(folder: Path) -> dict[str, str]:
    """Give all environment variables of the trusted process."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(PACKAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def watch(
    process: "subprocess.Popen[bytes]", told: Path, wall: float, stop: threading.Event
) -> None:
    """Wait until a process ends, or reports nothing for too long, or is no longer wanted."""
    size, heard = -1, time.monotonic()
    while process.poll() is None and not stop.is_set():
        if (now := told.stat().st_size) != size:
            size, heard = now, time.monotonic()
        elif time.monotonic() - heard > wall:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its group; kernels in a sandbox end with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(file: Path) -> str:
    """Give the end of what was said."""
    return file.read_text("utf-8", "replace")[-1500:].strip()


# --- after ---------------------------------------------------------------------------------


def passed_cells(junit: Path) -> dict[tuple[str, int], bool] | None:
    """Read whether each cell passed, by the notebook's name and the number of the cell.

    None if the file was not written to its end.
    """
    try:
        root = ElementTree.parse(junit).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    found: dict[tuple[str, int], bool] = {}
    for case in root.iter("testcase"):
        name, number = case.get("classname", "").split(".")[0], case.get("name", "")
        if number.startswith("Cell "):
            key = (name, int(number.removeprefix("Cell ")))
            found[key] = key not in found and len(case) == 0
    return found


def disagreement(
    notebook: Notebook,
    news: Sequence[Mapping[str, Any]],
    passed: Mapping[tuple[str, int], bool],
) -> str:
    """Say in what the report and JUnit's file differ; empty if they agree on all cells."""
    states = {each["cell"]: each["state"] for each in news if each["event"] == "cell"}
    if set(states) != set(notebook.cells):
        return "not every cell was reported. "
    for number, cell in enumerate(notebook.cells):
        if passed.get((notebook.name, number)) != (states[cell] == "passed"):
            return f"two reports differ on the cell {cell}. "
    return ""


def ran(job: Job, notebooks: Sequence[Notebook], report: Report) -> Ran | InfrastructureError:
    """Put together what became of a job."""
    cells: dict[str, dict[str, CellOutcome]] = {}
    notes: list[str] = []
    seconds, timed_out = 0.0, False
    for notebook in notebooks:
        news = report.get(notebook.name, [])
        if problem := infrastructure_problem(notebook, news):
            return InfrastructureError(f"{job.student}: {problem}")
        cells[notebook.part] = {
            each["cell"]: CellOutcome(state=each["state"], said=readable(each["said"]))
            for each in news
            if each["event"] == "cell"
        }
        timed_out |= any(each.state == "absent" for each in cells[notebook.part].values())
        notes += notes_of(job.manifest, notebook, news)
        seconds += news[-1]["at"] - news[0]["at"]
    return Ran(cells=cells, timed_out=timed_out, notes=tuple(notes), seconds=round(seconds, 2))


def readable(text: str) -> str:
    """Replace halves of characters, which no file could hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def infrastructure_problem(notebook: Notebook, news: Sequence[Mapping[str, Any]]) -> str:
    """Say what failed that was not the student's; empty if nothing did."""
    if not news:
        return "its notebook was never run"
    for each in news:
        if each["event"] in ("broken", "no kernel"):
            return each["said"]
        setup = each["event"] == "cell" and notebook.roles[each["cell"]] == "setup"
        if setup and each["state"] != "passed":
            return "a cell of the reference failed before any answer: " + each["said"][-500:]
    return ""


def notes_of(
    manifest: Manifest, notebook: Notebook, news: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Say what happened to kernels."""
    titles = {question.id: question.title for question in manifest.questions}
    groups = notebook.plan["groups"]
    words = {
        "lost": "The kernel died while a cell of “{}” ran; the rest went on without that cell.",
        "timeout": "A cell of “{}” took too long and was interrupted.",
    }
    seen = {
        words[each["event"]].format(titles.get(groups.get(each["cell"], ""), "another cell"))
        for each in news
        if each["event"] in words
    }
    yield from sorted(seen)
