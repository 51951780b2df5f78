"""`ppo-lessons grade <verb>`: from the hand-out to the marks.

preview is for students and runs wherever the course runs. All else is the teacher's; what runs or
bakes answers needs Linux and the extra `test`.
"""

import argparse
import os
import platform
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ppo_lessons.grading.report import STATUS
from ppo_lessons.grading.types import Result

PROGRAM = f"{os.environ.get('PPO_LESSONS_CALL', 'ppo-lessons')} grade"
EXTRA = ("pytest", "nbval", "nbformat", "nbclient", "jupytext")  # what the extra `test` brings
USAGE = f"""usage: {PROGRAM} <verb> [options]

for students:
  preview NOTEBOOK        what the grader would find in it, and the visible checks

for teachers, in this order (Linux):
  doctor                  does the sandbox hold on this machine?
  build NN --out DIR      blank notebooks to hand out; one per student with --roster
  bake NN --out DIR       the private reference: hidden inputs, and what is right on them
  run FILES --reference DIR --out DIR
                          grade files, folders, zip files; goes on where it stopped
  merge DIR ... --out DIR put the shards of several machines together
  report DIR              write gradebook and pages of a run once more

  {PROGRAM} VERB --help says more; docs/grading.md goes through a class of 300
"""


def main(rest: Sequence[str]) -> int:
    """Run one verb: build, bake, run, merge, preview, doctor or report.

    Args:
        rest: the command line behind `grade`.

    Returns:
        0 if all went well, 1 if some student has no verdict or some answer does not pass, 2 if the
        input was wrong.

    Raises:
        ValueError: if the input was wrong, with what was expected.
    """
    verb, *words = [*rest] or ["--help"]
    if verb in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    verbs: dict[str, Callable[[Sequence[str]], int]] = {
        "build": build_verb,
        "bake": bake_verb,
        "run": run_verb,
        "merge": merge_verb,
        "preview": preview_verb,
        "doctor": doctor_verb,
        "report": report_verb,
    }
    if verb not in verbs:
        raise ValueError(
            f"grade has no verb {verb!r}; expected one of {', '.join(verbs)}. See {PROGRAM} --help."
        )
    if verb in ("build", "bake", "run", "doctor") and (missing := lacking()):
        raise ValueError(missing)
    if verb in ("bake", "run", "doctor") and platform.system() != "Linux":
        raise ValueError(
            f"{verb} needs Linux, and this is {platform.system()}; expected a Linux machine, a "
            "virtual one, or WSL2. Students can use preview everywhere."
        )
    return verbs[verb](words)


def lacking() -> str:
    """Say what is not installed; empty if all is there."""
    missing = [name for name in EXTRA if find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"{', '.join(missing)} is not installed; expected the extra `test`. Run: pip install -e "
        "'.[course,test]'"
    )


def parser(verb: str, words: str) -> argparse.ArgumentParser:
    """Make the parser of a verb."""
    return argparse.ArgumentParser(prog=f"{PROGRAM} {verb}", description=words)


# --- before the hand-out -------------------------------------------------------------------


def stem_of(word: str) -> str:
    """Turn a number, a name or a stem into the stem of an exercise."""
    from ppo_lessons.lessons import find_lesson

    return find_lesson(word.partition("_")[0] if word[:1].isdigit() else word).stem


def ids_in(roster: Path | None) -> list[str] | None:
    """Read the ids of a roster."""
    from ppo_lessons.grading.roster import read_roster

    return None if roster is None else list(read_roster(roster))


def build_verb(words: Sequence[str]) -> int:
    """Write blank notebooks."""
    options = parser("build", "Write the blank notebook of an assignment.")
    options.add_argument("assignment", help="number or name of the lesson, as 04")
    options.add_argument("--out", type=Path, required=True, help="folder for the notebooks")
    options.add_argument("--roster", type=Path, help="csv with id and name: personal questions too")
    options.add_argument("--secret", type=Path, help="file that personal numbers are derived from")
    given = options.parse_args(list(words))
    from ppo_lessons.grading.build import build_assignment

    stem, ids = stem_of(given.assignment), ids_in(given.roster)
    written = build_assignment(stem, given.out, ids, given.secret)
    print(f"{len(written)} notebook{'s' * (len(written) > 1)}, the first is {written[0]}")
    return 0


def bake_verb(words: Sequence[str]) -> int:
    """Write the private reference."""
    options = parser("bake", "Write the private reference, on the machine that grades.")
    options.add_argument("assignment", help="number or name of the lesson, as 04")
    options.add_argument("--out", type=Path, required=True, help="an empty folder outside")
    options.add_argument("--seed", type=int, help="of the hidden inputs; drawn if left out")
    options.add_argument("--roster", type=Path, help="the one that build was given")
    options.add_argument("--secret", type=Path, help="the one that build was given")
    given = options.parse_args(list(words))
    from ppo_lessons.grading.bake import bake

    stem, ids = stem_of(given.assignment), ids_in(given.roster)
    seed = given.seed
    if seed is None:
        refuse_to_replace(given.out)
        seed = secrets.randbelow(10**12)
    with Progress(len(ids or [""]), "references") as progress:
        folder = bake(stem, given.out, seed, ids, given.secret, on_student=progress.step)
    print(f"reference of {stem}, seed {seed}, in {folder}: keep it to yourself")
    return 0


def refuse_to_replace(folder: Path) -> None:
    """Keep a reference from being replaced by one with other hidden inputs, unless that is said.

    Raises:
        ValueError: if the folder holds a reference.
    """
    if (folder / "class.json").exists():
        raise ValueError(
            f"{folder} holds a reference already, and what was graded by it belongs to its hidden "
            "inputs; expected a new folder. Choose another --out, or say --seed to replace it."
        )


# --- grading -------------------------------------------------------------------------------


def shard(text: str) -> tuple[int, int]:
    """Read `2/3`."""
    i, slash, n = text.partition("/")
    if not (slash and i.isdigit() and n.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard; expected as in 2/3")
    return int(i), int(n)


def run_verb(words: Sequence[str]) -> int:
    """Grade."""
    options = parser("run", "Grade submissions; a second call goes on where the first stopped.")
    options.add_argument("submissions", type=Path, nargs="+", help="notebooks, folders, zip files")
    options.add_argument("--reference", type=Path, required=True, help="what bake wrote")
    options.add_argument("--out", type=Path, required=True, help="folder for the results")
    options.add_argument("--roster", type=Path, help="csv with id and name: who is missing?")
    options.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8))
    options.add_argument("--chunk", type=int, default=10, help="submissions per pytest process")
    options.add_argument("--shard", type=shard, default=(1, 1), help="2/3: the second of three")
    options.add_argument("--isolation", default="auto", help="auto, bwrap; none: no sandbox at all")
    options.add_argument("--again", action="store_true", help="also what has a verdict already")
    given = options.parse_args(list(words))
    from ppo_lessons.grading.batch import Batch, collect, grade
    from ppo_lessons.grading.report import write_reports
    from ppo_lessons.grading.sandbox import IsolationMissing

    if given.isolation == "none":
        print("no sandbox: what is graded can do whatever you can do", file=sys.stderr)
    with Progress(0, "students") as progress:
        try:
            results = grade(Batch(**vars(given)), on_plan=progress.plan, on_result=progress.step)
        except IsolationMissing as error:
            raise ValueError(str(error)) from None
    if given.shard != (1, 1):
        print(f"shard {given.shard[0]} of {given.shard[1]}: {counted(results)}")
        print(f"when all have ended: {PROGRAM} merge {given.out} (and the others) --out DIR")
    else:
        results = collect([given.out])
        announce(results, write_reports(results, given.out))
    return without_verdict(results)


def merge_verb(words: Sequence[str]) -> int:
    """Put shards together."""
    options = parser("merge", "Write gradebook and pages of a run that was cut into shards.")
    options.add_argument("folders", type=Path, nargs="+", help="what the shards had as --out")
    options.add_argument("--out", type=Path, required=True, help="for gradebook and pages")
    given = options.parse_args(list(words))
    return write(given.folders, given.out)


def report_verb(words: Sequence[str]) -> int:
    """Write the reports once more."""
    options = parser("report", "Write gradebook and pages from the results of a run.")
    options.add_argument("folder", type=Path, help="what run had as --out")
    given = options.parse_args(list(words))
    return write([given.folder], given.folder)


def write(folders: Sequence[Path], out: Path) -> int:
    """Write the reports of a batch."""
    from ppo_lessons.grading.batch import collect
    from ppo_lessons.grading.report import write_reports

    results = collect(folders)
    announce(results, write_reports(results, out))
    return without_verdict(results)


def announce(results: Sequence[Result], written: Sequence[Path]) -> None:
    """Say what was written, and which students have no verdict."""
    print(counted(results))
    for result in results:
        if result.status == "infrastructure-error":
            print(f"  no verdict: {printable(result.student)}: {printable(result.reason)}")
    print(f"gradebook {written[0]}, class report {written[1]}, pages in {written[-1].parent}")


def counted(results: Sequence[Result]) -> str:
    """Count results by their status."""
    counts = Counter(result.status for result in results)
    known = [f"{counts[status]} {words}" for status, words in STATUS.items() if counts[status]]
    loose = sum(result.isolation == "none" for result in results)
    known += [f"{loose} of them without a sandbox"] if loose else []
    return f"{len(results)} student{'s' * (len(results) != 1)}: {', '.join(known)}"


def printable(text: str) -> str:
    """Keep a file's name from writing to the terminal what it likes."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def without_verdict(results: Sequence[Result]) -> int:
    """Give the exit status."""
    return int(any(result.status == "infrastructure-error" for result in results))


def doctor_verb(words: Sequence[str]) -> int:
    """Try to break out of the sandbox."""
    options = parser("doctor", "Run probes inside the sandbox that try to get out.")
    options.add_argument("--isolation", default="auto", help="auto, bwrap or none")
    given = options.parse_args(list(words))
    from ppo_lessons.grading.doctor import doctor

    return doctor(given.isolation)


# --- for students --------------------------------------------------------------------------


def preview_verb(words: Sequence[str]) -> int:
    """Say what the grader would find."""
    options = parser("preview", "Read a notebook as the grader does, and run its visible checks.")
    options.add_argument("notebook", type=Path, help="what you are about to hand in")
    options.add_argument("--assignment", default="", help="number or name of the lesson, as 04")
    given = options.parse_args(list(words))
    from ppo_lessons.grading.preview import preview, read_notebook

    reading = read_notebook(given.notebook, given.assignment)
    print(f"{given.notebook}: exercises of lesson {reading.lesson.stem}", flush=True)
    for note in reading.notes:
        print(f"  note: {printable(note)}")
    lines = []
    for line in preview(reading):
        lines.append(line)
        print(f"  {printable(str(line))}", flush=True)
    passed = sum(line.passed for line in lines)
    print(f"{passed} of {len(lines)} pass what can be seen. Hidden checks call the same functions")
    print("with other numbers, and give most of the points.")
    return int(passed < len(lines))


# --- progress ------------------------------------------------------------------------------


class Progress:
    """A bar with the time left; a line now and then where no terminal is.

    Args:
        total: how many there are.
        unit: of what.
    """

    def __init__(self, total: int, unit: str):
        from tqdm import tqdm

        self.bar = tqdm(total=total, unit=f" {unit}", dynamic_ncols=True, disable=None)
        self.unit, self.count, self.total, self.told = unit, 0, total, time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def plan(self, total: int) -> None:
        """Learn how many there are."""
        self.total = self.bar.total = total
        self.bar.refresh()

    def step(self, _: Any = None) -> None:
        """Count one."""
        self.count += 1
        self.bar.update()
        if self.bar.disable and time.monotonic() - self.told > 10:
            self.told = time.monotonic()
            print(f"{self.count} of {self.total} {self.unit}", flush=True)
