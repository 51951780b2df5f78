"""`./course check 04`: which of my answers pass?

The answer cells of a notebook are those with a line `# answer: <lesson>.<exercise>`. They are
executed in a process of their own, one after the other, and judged like in the notebook. What
they print is not shown, and a cell that hangs or kills the process costs only its own exercise.
"""

import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppo_lessons.lessons import find_lesson

MARKER = re.compile(r"^\s*#\s*answer:\s*([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)\s*$", re.MULTILINE)
SECONDS_PER_ANSWER = 20.0  # for a cell and its check; the check itself stops after 5
SECONDS_TO_START = 90.0  # importing torch, on a cold disk
MAX_BYTES = 20_000_000
WORDS = {True: "passed", False: "not yet"}


@dataclass(frozen=True)
class Line:
    """The verdict on one exercise.

    Args:
        id: `lesson.exercise`.
        passed: whether it passed.
        words: what is said about it.
    """

    id: str
    passed: bool
    words: str

    def __str__(self) -> str:
        blank = self.words.startswith("not written")
        return f"{'✔' if self.passed else '·' if blank else '✘'} {self.id}: {self.words}"


# --- the notebook --------------------------------------------------------------------------


def notebook_path(word: str) -> Path:
    """Find the notebook that a word of the command line means.

    Args:
        word: a number or name of a lesson, or a path.

    Returns:
        The learner's copy of the exercise, or the path.

    Raises:
        ValueError: if there is no such lesson or file.
    """
    if word.endswith(".ipynb"):
        path = Path(word)
        if not path.is_file():
            raise ValueError(f"there is no file {word}; expected a notebook. Look at its path.")
        return path
    lesson = find_lesson(word)
    if not lesson.checks:
        raise ValueError(
            f"lesson {lesson.stem} has no checks yet; expected a lesson with an exercise. Give "
            "another number."
        )
    name = f"exercises/{lesson.stem}.ipynb"
    home = os.environ.get("PPO_LESSONS_HOME")
    folders = [Path(home)] if home else [Path("my_work"), Path(), Path("..")]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(
        f"there is no {name} in {' or '.join(map(str, folders))}; expected your copy of the "
        "exercise. Start ./course once, or give the notebook's path."
    )


def answer_cells(path: Path) -> dict[str, str]:
    """Read the answer cells of a notebook; of two with the same marker the last counts.

    Args:
        path: the notebook.

    Returns:
        Source by id, in the order of the notebook.

    Raises:
        ValueError: if the file is no notebook.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("it is larger than 20 MB; clear its outputs")
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); expected a notebook. Save it once more."
        ) from None
    found: dict[str, str] = {}
    for source in sources:
        if match := MARKER.search(source):
            found.pop(match[1], None)
            found[match[1]] = source
    return found


# --- the process that runs the answers -----------------------------------------------------


def judge_cells(cells: Mapping[str, str], results: Path) -> None:
    """Execute answers and write one line of JSON for each, as soon as it is judged.

    Args:
        cells: source by id.
        results: the file to which lines are appended.
    """
    from ppo_lessons.checks import check, hint, reveal

    # An answer cell may hold its check too.
    names = {"__name__": "__main__", "check": check, "hint": hint, "reveal": reveal}
    for id, source in cells.items():
        passed, words = judge_cell(id, source, names)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": id, "passed": passed, "words": words}) + "\n")


def judge_cell(id: str, source: str, names: dict[str, Any]) -> tuple[bool, str]:
    """Execute one answer cell and judge what it defines."""
    from ppo_lessons.checks import check, find_exercise
    from ppo_lessons.checks.guard import OutOfTime, limited, silent, state_kept

    try:
        name = find_exercise(id).name
    except ValueError:
        return False, "no exercise has this id; look at the line that begins with # answer:"
    file = f"<answer {id}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names.pop(name, None)
    try:
        code = compile(without_magics(source), file, "exec")
        with state_kept(), silent(), limited(SECONDS_PER_ANSWER / 2):
            exec(code, names)
    except SyntaxError as error:
        return False, f"line {error.lineno} of the cell is no Python: {error.msg}"
    except OutOfTime:
        return False, f"the cell itself takes longer than {SECONDS_PER_ANSWER / 2:g} s"
    except BaseException as error:
        return False, f"the cell stops with {type(error).__name__}: {first_line(str(error))}"
    if name not in names:
        return False, f"the cell defines no {name}"
    result = check(id, names[name])
    if result.passed:
        return True, WORDS[True]
    if result.mistake == "not_written":
        return False, "not written yet"
    last = result.rows[-1][1] if result.rows else ""
    return False, f"{WORDS[False]} (stage: {result.stage}). {last}"


def without_magics(source: str) -> str:
    """Turn the lines that only a notebook understands into comments."""
    return re.sub(r"^(\s*)[%!]", r"\1# ", source, flags=re.MULTILINE)


def first_line(text: str) -> str:
    """Cut an error's text down to what fits into a line."""
    return (text.splitlines() or [""])[0][:150]


CHILD = """
import json, sys
from pathlib import Path
from ppo_lessons.checks.run import judge_cells
import torch
import ppo_lessons.checks
torch.set_num_threads(1)
task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
results = Path(sys.argv[2])
with results.open("a", encoding="utf-8") as file:
    file.write(json.dumps({"ready": True}) + "\\n")
judge_cells(task, results)
"""


def run_answers(
    cells: Mapping[str, str], *, folder: Path, package: Path | None = None
) -> Iterator[Line]:
    """Judge answers in processes that may hang or die.

    Args:
        cells: source by id.
        folder: working folder of the answers.
        package: folder with another copy of the package for them, where nothing is kept.

    Yields:
        One verdict for each, in order.
    """
    left = dict(cells)
    while left:
        judged, broken = one_process(left, folder, environment(package))
        for line in judged:
            del left[line.id]
            yield line
        if left:
            id = next(iter(left))
            del left[id]
            yield Line(id, False, f"not yet. {broken}")


def one_process(
    cells: Mapping[str, str], folder: Path, env: Mapping[str, str]
) -> tuple[list[Line], str]:
    """Run one process until it ends or hangs: what it judged, and how it broke off."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        task, results = Path(place) / "task.json", Path(place) / "results.jsonl"
        task.write_text(json.dumps(dict(cells)), encoding="utf-8")
        results.touch()
        # -P: a file of the learner's must not hide a module of the same name.
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, str(task), str(results)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            broken = wait(process, results)
        finally:
            process.kill()
            process.wait()
        entries = [json.loads(line) for line in complete_lines(results)]
    lines = [Line(e["id"], e["passed"], e["words"]) for e in entries if "id" in e]
    return lines, broken


def environment(package: Path | None = None) -> dict[str, str]:
    """Let the process find this package, or another copy of it, wherever it runs."""
    root = str(package or Path(__file__).resolve().parents[2])
    search = [root, os.environ.get("PYTHONPATH", "")]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search))}
    if package:
        found.pop("PPO_LESSONS_HOME", None)
    return found


def wait(process: "subprocess.Popen[bytes]", results: Path) -> str:
    """Wait as long as results come; say how it ended."""
    count, deadline = 0, time.monotonic() + SECONDS_TO_START
    while process.poll() is None:
        time.sleep(0.02)
        if (seen := len(complete_lines(results))) > count:
            count, deadline = seen, time.monotonic() + SECONDS_PER_ANSWER
        if time.monotonic() > deadline:
            return f"It was stopped: no result within {SECONDS_PER_ANSWER:g} s."
    return f"The answer ended the process (code {process.returncode})."


def complete_lines(path: Path) -> list[str]:
    """Read lines that are written to their end."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


# --- the verb ------------------------------------------------------------------------------


def check_notebook(words: Sequence[str]) -> int:
    """Check each notebook that is named, and print a line for each exercise.

    Args:
        words: numbers or names of lessons, or paths.

    Returns:
        0 if every exercise passed, else 1.

    Raises:
        ValueError: if a word names nothing that can be checked.
    """
    if not words:
        raise ValueError("check got no lesson; expected a number or a path. Try: check 04")
    verdicts = [check_one(path) for path in map(notebook_path, words)]
    return 0 if all(verdicts) else 1


def check_one(path: Path) -> bool:
    """Check one notebook; whether all of it passed."""
    cells = answer_cells(path)
    if not cells:
        raise ValueError(
            f"{path} holds no answers; expected cells with a line like "
            "`# answer: clip.clipped_surrogate`. Is it the exercise, and not the lesson?"
        )
    print(path, flush=True)
    passed = 0
    for line in run_answers(cells, folder=path.resolve().parent):
        passed += line.passed
        print(f"  {line}", flush=True)
    missing = missing_from(cells)
    for id in missing:
        print(f"  · {id}: no cell has the line `# answer: {id}`", flush=True)
    total = len(cells) + len(missing)
    print(f"{passed} of {total} passed")
    return passed == total


def missing_from(cells: Mapping[str, str]) -> list[str]:
    """List exercises of the same lessons that the notebook lacks."""
    from ppo_lessons.checks.desk import all_exercises

    lessons = {id.partition(".")[0] for id in cells}
    known = all_exercises().items()
    return [id for id, each in known if each.lesson in lessons and id not in cells]
