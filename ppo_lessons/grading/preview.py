"""What would the grader find in my notebook? The same reading, the visible checks, no marks.

For students, on their own machine and system: no sandbox, no nbval, no private reference. What the
grader reads is read by the same code, answers are put into the same places, and they run with the
same package, from which the lesson's own module is missing.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.run import Line, answer_cells, run_answers
from ppo_lessons.grading.intake import read_submissions
from ppo_lessons.grading.items.questions import asked
from ppo_lessons.grading.student_build import forbidden, student_build
from ppo_lessons.grading.transplant import transplant
from ppo_lessons.grading.types import MAIN, Manifest, Question, Rejected
from ppo_lessons.grading.verdict import is_untouched
from ppo_lessons.lessons import Lesson, find_lesson

ROOT = Path(__file__).resolve().parents[2]
PERSONAL = ("own_function", "own_numbers")
MARKER = re.compile(r"^# answer: ([a-z]\w*\.[a-z]\w*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the grader reads in a notebook.

    Args:
        lesson: that the notebook is about.
        notes: what had to be mended or decided.
        absent: ids of the questions for which no cell was found.
        answers: source by id of the question.
    """

    lesson: Lesson
    notes: tuple[str, ...]
    absent: tuple[str, ...]
    answers: Mapping[str, str]


def read_notebook(path: Path, assignment: str = "") -> Reading:
    """Read a notebook as the grader does.

    Args:
        path: what would be handed in.
        assignment: number, name or stem of the exercise; if left out, the notebook says it.

    Returns:
        What was found.

    Raises:
        ValueError: if the grader would reject the file, or it is not clear which exercise it is.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}; expected a notebook. Look at its path.")
    lesson = find_lesson(assignment.partition("_")[0] or lesson_named_in(path))
    manifest, reference = public_reference(lesson, personal=is_personal(path))
    found = read_submissions(
        [path], assignment=lesson.stem, question_ids=[each.id for each in manifest.questions]
    )
    if len(found) != 1 or isinstance(found[0], Rejected):
        reasons = "; ".join(each.reason for each in found if isinstance(each, Rejected))
        raise ValueError(f"the grader would reject {path}: {reasons or 'it is no notebook'}")
    transplanted = transplant(found[0], manifest, reference)
    sources = {cell["id"]: cell["source"] for cell in transplanted.parts[MAIN]["cells"]}
    answers = {
        each.id: "".join(sources[each.answer])
        for each in manifest.questions
        if each.id not in transplanted.absent
    }
    notes = (*found[0].notes, *transplanted.notes)
    return Reading(lesson=lesson, notes=notes, absent=transplanted.absent, answers=answers)


def preview(reading: Reading) -> Iterator[Line]:
    """Run the visible checks of a notebook, with the package that graded answers find.

    Args:
        reading: as `read_notebook` gives it.

    Yields:
        One verdict for each question, in order; absent ones last.
    """
    personal = [id for id in reading.answers if id.partition(".")[2] in PERSONAL]
    public = {id: source for id, source in reading.answers.items() if id not in personal}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        student_build(public_manifest(reading.lesson, ()), Path(place))
        work = Path(place) / "work"
        work.mkdir()
        yield from run_answers(public, folder=work, package=Path(place))
    for id in personal:
        if is_untouched(reading.answers[id], asked(id).name):
            yield Line(id, False, "not written yet")
        else:
            yield Line(id, True, "found; only the grader can check it")
    for id in reading.absent:
        yield Line(id, False, f"no cell has the line `# answer: {id}`")


# --- which exercise it is ------------------------------------------------------------------


def lesson_named_in(path: Path) -> str:
    """Find out which exercise a notebook is, by its answers or by its name.

    Raises:
        ValueError: if neither tells.
    """
    try:
        ids = list(answer_cells(path))
    except ValueError:
        ids = []  # the grader says better why it cannot be read
    lessons = {id.partition(".")[0] for id in ids}
    number = re.search(r"(?<!\d)(\d\d)_[a-z]", path.name)
    if len(lessons) != 1 and number is None:
        raise ValueError(
            f"{path} does not say which exercise it is; expected cells with a line like "
            "`# answer: clip.clipped_surrogate`. Give --assignment NN."
        )
    return lessons.pop() if len(lessons) == 1 else str(number and number[1])


def is_personal(path: Path) -> bool:
    """Whether a notebook was made for one student."""
    try:
        about = json.loads(path.read_text(encoding="utf-8-sig"))["metadata"]["ppo_lessons"]
        return bool(about["student"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


# --- a reference without answers -----------------------------------------------------------


def public_reference(
    lesson: Lesson, *, personal: bool
) -> tuple[Manifest, dict[str, dict[str, Any]]]:
    """Make a reference of what everyone may know: where answers go, and nothing that checks them.

    Args:
        lesson: of the exercise.
        personal: whether the notebook has questions of its student's own.

    Returns:
        The manifest, and the one notebook with empty places.

    Raises:
        ValueError: if the lesson has no checks.
    """
    ids = [each.id for each in all_exercises().values() if each.lesson == lesson.name]
    if not ids:
        raise ValueError(
            f"lesson {lesson.stem} has no checks yet; expected a lesson with an exercise. Give "
            "another --assignment."
        )
    ids += [f"{lesson.name}.{name}" for name in PERSONAL if personal]
    places = answer_places(lesson)
    questions = tuple(
        Question(
            id=id,
            name=asked(id).name,
            title=id,
            answer=places.get(id, f"answer-{asked(id).name}"),
            checks=(),
        )
        for id in ids
    )
    cells = [
        {
            "cell_type": "code",
            "id": each.answer,
            "source": f"# answer: {each.id}",
            "metadata": {"ppo_lessons": {"answer": each.id}},
            "execution_count": None,
            "outputs": [],
        }
        for each in questions
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return public_manifest(lesson, questions), {MAIN: notebook}


def public_manifest(lesson: Lesson, questions: tuple[Question, ...]) -> Manifest:
    """Say what is forbidden, and which questions there are."""
    return Manifest(
        assignment=lesson.stem,
        title=lesson.title,
        seed=0,
        forbid=forbidden(lesson.name),
        parts={MAIN: ""},
        questions=questions,
    )


def answer_places(lesson: Lesson) -> dict[str, str]:
    """Read the cell ids of the answers in the course's own blank, where its files are there."""
    try:
        blank = json.loads((ROOT / f"exercises/{lesson.stem}.ipynb").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = [(MARKER.search("".join(cell["source"])), cell["id"]) for cell in blank["cells"]]
    return {marker[1]: cell for marker, cell in found if marker}
