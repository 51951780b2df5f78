"""Run every stage of the course's tests and close with one line of totals.

`./course test` makes the environment and calls this file. A stage is one row of `STAGES`: to add
one, add a row. All stages run, whatever the earlier ones said. The last line reads
`N passed, N failed, N skipped`: tests of the pytest stages, and one for each other stage.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MINUTES = 60.0
NO_TESTS = 5  # pytest's exit code when it collected nothing


class Stage(NamedTuple):
    """One command; words starting with `@` stand for lists of files, see `FILES`."""

    name: str
    command: str
    needs: str = ""  # a path or an `@` list; while it is absent the stage is skipped by name
    environment: str = ""  # NAME=value, separated by blanks
    full: bool = False  # only under --full
    minutes: float = 10  # a stage that runs longer has failed

    @property
    def counts_tests(self) -> bool:
        """Whether pytest runs it."""
        return self.command.startswith("pytest ")


# One cell of nbval is one test; `loadscope` keeps the cells of a notebook together and in order.
NBVAL = "pytest --nbval --nbval-current-env -p no:cacheprovider -n 2 --dist loadscope -q @notebooks"
FAST = "PPO_LESSONS_FAST=1"

STAGES = (
    Stage("lint", "ruff check ."),
    Stage("format", "ruff format --check ."),
    Stage("types", "basedpyright --pythonpath @python"),
    Stage("spelling", "codespell"),
    Stage(
        "tests",
        "pytest tests -m 'not full and not parity' -n 2 --dist loadfile -q",
        needs="tests",
        minutes=20,
    ),
    Stage(
        "annotations",  # the same tests once more, with every annotated shape enforced
        "pytest @module_tests --jaxtyping-packages=ppo_lessons,beartype.beartype "
        "-m 'not messages and not full and not parity' -n 2 --dist loadfile -q",
        needs="@module_tests",
    ),
    Stage("built files", "python tools/build_notebooks.py check", needs="tools/build_notebooks.py"),
    Stage("notebooks", NBVAL, needs="@notebooks", environment=FAST),
    Stage(
        "full tests",
        "pytest tests -m 'full or parity' --ignore tests/test_jupyterlab.py -n 2 --dist loadfile "
        "-q --timeout 1800",
        needs="tests",
        full=True,
        minutes=45,
    ),
    Stage(  # alone: a person's hand is not slower because a class is being graded
        "JupyterLab",
        "pytest tests/test_jupyterlab.py -m 'full or parity' -q --timeout 1800",
        needs="tests/test_jupyterlab.py",
        full=True,
    ),
    Stage(
        "notebooks, other processor",
        NBVAL,
        needs="@notebooks",
        environment=FAST + " ATEN_CPU_CAPABILITY=default",
        full=True,
    ),
    Stage("notebooks, full budgets", NBVAL, needs="@notebooks", full=True, minutes=45),
)


# They take what learners and pages give: lists, words, functions. No shape is annotated there.
WITHOUT_SHAPES = ("test_checks.py", "test_widgets.py")


def module_tests() -> list[str]:
    """List the tests named after a module of the package: `tests/test_gae.py` for `gae.py`."""
    package = ROOT / "ppo_lessons"
    return [
        f"tests/{path.name}"
        for path in sorted((ROOT / "tests").glob("test_*.py"))
        if ((package / path.name[5:]).exists() or (package / path.stem[5:]).is_dir())
        and path.name not in WITHOUT_SHAPES
    ]


def notebooks() -> list[str]:
    """List the executed notebooks."""
    return [
        f"{folder}/{path.name}"
        for folder in ("notebooks", "solutions")
        for path in sorted((ROOT / folder).glob("*.ipynb"))
    ]


FILES = {
    "@module_tests": module_tests,
    "@notebooks": notebooks,
    "@python": lambda: [sys.executable],
}


class Counts(NamedTuple):
    """What one stage adds to the last line."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: "Counts") -> "Counts":
        """Add two counts."""
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run_stage(stage: Stage) -> Counts:
    """Run one stage under its heading and count."""
    print(f"\n=== {stage.name} ===", flush=True)
    if stage.needs and not there(stage.needs):
        print(f"skipped: there is no {stage.needs.lstrip('@')} yet")
        return Counts(skipped=1)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run_command(stage, report)
        counts = count_tests(code, report) if stage.counts_tests else count_command(code)
    print(f"--- {stage.name}: {counts}, {time.monotonic() - start:.0f} s", flush=True)
    return counts


def there(needs: str) -> bool:
    """Whether a path exists, or a list of files is not empty."""
    return bool(FILES[needs]()) if needs in FILES else (ROOT / needs).exists()


def run_command(stage: Stage, report: Path) -> int:
    """Run a stage's command; a command past its time is ended and counts as failed."""
    words = words_of(stage) + ([f"--junit-xml={report}"] if stage.counts_tests else [])
    # Two threads for each of two workers on two cores cost more than they bring.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for pair in stage.environment.split():
        name, _, value = pair.partition("=")
        environment[name] = value
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    try:
        return process.wait(stage.minutes * MINUTES)
    except subprocess.TimeoutExpired:
        print(f"{stage.name} took more than {stage.minutes:g} minutes", flush=True)
        return 1
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def words_of(stage: Stage) -> list[str]:
    """Split a command; every tool is run by this Python, so that PATH does not matter."""
    words = [sys.executable]
    for number, word in enumerate(shlex.split(stage.command)):
        if number == 0:
            words += [] if word == "python" else ["-m", module_of(word)]
        else:
            words += FILES[word]() if word in FILES else [word]
    return words


def module_of(tool: str) -> str:
    """Name the module that runs a tool."""
    return {"codespell": "codespell_lib"}.get(tool, tool)


def count_command(code: int) -> Counts:
    """Count a stage that is one check."""
    return Counts(failed=1) if code else Counts(passed=1)


def count_tests(code: int, report: Path) -> Counts:
    """Read pytest's report; a run that failed without naming a failed test is one failure."""
    if code == NO_TESTS:
        return Counts(skipped=1)
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return Counts(failed=1)
    totals = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    failed = totals["failures"] + totals["errors"]
    passed = max(totals["tests"] - failed - totals["skipped"], 0)
    if code and not failed:
        failed = 1
    return Counts(passed, failed, totals["skipped"])


def chosen(full: bool, only: list[str]) -> list[Stage]:
    """Select stages."""
    if only:
        return [stage for stage in STAGES if stage.name in only]
    return [stage for stage in STAGES if full or not stage.full]


def main(argv: list[str] | None = None) -> int:
    """Run the chosen stages; the exit code says whether any of them failed."""
    parser = argparse.ArgumentParser(prog="./course test", description=__doc__)
    parser.add_argument("--full", action="store_true", help="everything; up to 75 minutes")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="STAGE",
        choices=[stage.name for stage in STAGES],
        help="one stage, repeatable: " + ", ".join(stage.name for stage in STAGES),
    )
    options = parser.parse_args(argv)
    total, broken = Counts(), []
    for stage in chosen(options.full, options.only):
        counts = run_stage(stage)
        total = total.plus(counts)
        broken += [stage.name] if counts.failed else []
    print()
    if broken:
        again = " ".join(f"--only {name!r}" for name in broken)
        print(f"failed: {', '.join(broken)}. To run these alone: ./course test {again}")
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
