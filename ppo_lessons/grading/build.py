"""What does a student get? The blank exercises of a lesson, personal questions included.

    build_assignment("04_clip", Path("handout"))                        # handout/04_clip.ipynb
    build_assignment("04_clip", Path("handout"), roster=["ada", "max"])  # handout/ada/04_clip.ipynb

The source is `exercises/source/<stem>.py`, the same that the course's own exercises are built from.
Answer cells carry their id thrice: in the line `# answer: lesson.exercise`, in
`metadata.ppo_lessons.answer` and as the cell's id. Cells that a student is not meant to change
carry `metadata.ppo_lessons.given`: the grader takes none of them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.items.deal import Item, personal_items, read_secret
from ppo_lessons.grading.items.questions import asked
from ppo_lessons.grading.sources import (
    KERNELSPEC,
    LANGUAGE_INFO,
    BuildError,
    assign_ids,
    read_cells,
    split_solution,
)
from ppo_lessons.grading.student_build import forbidden
from ppo_lessons.lessons import LESSONS, find_lesson

ROOT = Path(__file__).resolve().parents[2]
ANSWER = re.compile(r"^# answer: (?P<id>[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)$", re.MULTILINE)
BUILDS_ON = re.compile(r"^# builds on: (?P<ids>.+)$", re.MULTILINE)
NUMBERED = re.compile(r"^## \d+\. (?P<title>.+)$", re.MULTILINE)
EFFORT = re.compile(r"^\*Difficulty (\d of 5), importance (\d of 5), (\d+) minutes\.\*$", re.M)
LINK = re.compile(r"\[([^\]]*)\]\(\.\.?/[^)]*\)")
STUDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
SETUP = (
    "from ppo_lessons import check, hint, setup  # noqa: F401  hint waits in comments\n\nsetup()"
)
RULES = """
You hand this notebook in. Each question gives 10 points.

- Write your answers into the cells that begin with `# answer:`, and leave that line as it is:
  your answers are found by it.
- Let each answer cell hold all that it needs, imports included. From cells that you add,
  those imports, functions and constants are taken along that an answer uses.
- While your answers are graded, `ppo_lessons` lacks these modules, and an answer that imports one
  of them is no answer: {missing}.
- Where there is a cell with a check below an answer, it gives 2 of the 10 points. The other 8
  are for inputs that you do not see: other numbers, the same kinds of cases. For a row of
  predictions the check is all there is.
- What an answer prints, and its stored output, are not looked at. Nor are changed checks."""
OWN_RULE = """
- The last two questions are yours alone: nobody else has the same numbers. There is no check
  below them."""


# --- reading the source --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question as its author wrote it.

    Args:
        exercise: how its answer is asked.
        title: its heading, without the number.
        text: cells of Markdown in front of the answer.
        answer: cell with the answer, marks of the solution included.
        check: cells between this answer and the next question: what the student runs.
        builds_on: ids of questions whose answers it calls.
        count: how many answers stand in front of it.
        number: of the lesson.
        personal: whether it is this student's alone.
    """

    exercise: Exercise
    title: str
    text: tuple[NotebookNode, ...]
    answer: NotebookNode
    check: tuple[NotebookNode, ...] = ()
    builds_on: tuple[str, ...] = ()
    count: int
    number: int
    personal: bool = False

    @property
    def blank(self) -> str:
        """What the student finds in the answer cell."""
        return split_solution(self.answer.source, number=self.number, count=self.count, blank=True)[
            0
        ]

    @property
    def solution(self) -> str:
        """What the reference holds there."""
        return split_solution(
            self.answer.source, number=self.number, count=self.count, blank=False
        )[0]


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The questions of an assignment.

    Args:
        stem: of the exercise, as `04_clip`.
        title: its first heading.
        table: rows of the table of its exercises, or nothing.
        tasks: in order.
    """

    stem: str
    title: str
    table: str
    tasks: tuple[Task, ...]


def read_assignment(stem: str, *, root: Path = ROOT) -> Assignment:
    """Read the questions of a lesson's exercises.

    Args:
        stem: as `04_clip`.
        root: the project's root.

    Returns:
        The questions without personal ones; what is no question, as training at the end, is left
        out.

    Raises:
        ValueError: if there is no such source, or it breaks a rule of the builder.
    """
    folder = root / "exercises/source"
    path = folder / f"{stem}.py"
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", stem) or not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.py"))) or "none"
        raise ValueError(f"no exercises {stem!r} in {folder}; expected one of: {known}.")
    cells = read_cells(path.read_text(encoding="utf-8"), name=path.name)
    assign_ids(cells, name=path.name)
    head = cells[0].source
    title = re.search(r"^# (.+)$", head, re.MULTILINE)
    if title is None:
        raise BuildError(f"{path.name}: the first cell needs a title, as in `# 04 Exercises`")
    table = re.search(r"(?:^\|.*\n)+", head + "\n", re.MULTILINE)
    return Assignment(
        stem=stem,
        title=title[1],
        table=table[0].strip() if table else "",
        tasks=tuple(_tasks(cells, number=int(stem[:2]), name=path.name)),
    )


def _tasks(cells: Sequence[NotebookNode], *, number: int, name: str) -> Iterable[Task]:
    count = 0
    for start, cell in enumerate(cells):
        heading = NUMBERED.search(cell.source) if cell.cell_type == "markdown" else None
        if heading is None:
            continue
        section = _section(cells[start:])
        answers = [i for i, each in enumerate(section) if ANSWER.search(each.source)]
        if len(answers) != 1 or any(each.cell_type != "markdown" for each in section[: answers[0]]):
            raise BuildError(
                f"{name}: section {heading[0]!r} has {len(answers)} answer cells; expected text, "
                "one cell that begins with `# answer:`, then its check"
            )
        answer = section[answers[0]]
        found, builds_on = ANSWER.search(answer.source), BUILDS_ON.search(answer.source)
        assert found is not None
        yield Task(
            exercise=asked(found["id"]),
            title=heading["title"],
            text=tuple(section[: answers[0]]),
            answer=answer,
            check=tuple(section[answers[0] + 1 :]),
            builds_on=tuple(builds_on["ids"].replace(",", " ").split()) if builds_on else (),
            count=count,
            number=number,
        )
        _, count = split_solution(answer.source, number=number, count=count, blank=True)


def _section(cells: Sequence[NotebookNode]) -> Sequence[NotebookNode]:
    """Cut at the next heading of the same level."""
    for end, cell in enumerate(cells[1:], start=1):
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.MULTILINE):
            return cells[:end]
    return cells


# --- personal questions --------------------------------------------------------------------


def with_items(assignment: Assignment, items: Sequence[Item]) -> Assignment:
    """Append a student's own questions.

    Args:
        assignment: as `read_assignment` gives it.
        items: as `personal_items` gives them.

    Returns:
        The assignment with them at its end.
    """
    tasks, table = list(assignment.tasks), assignment.table
    number = int(assignment.stem[:2])
    count = sum(task.answer.source.count("### BEGIN SOLUTION") for task in tasks)
    for item in items:
        place = len(tasks) + 1
        slug = item.exercise.name.replace("_", "-")
        text = nbformat.v4.new_markdown_cell(f"## {place}. {item.title}\n\n{item.text.strip()}")
        answer = nbformat.v4.new_code_cell(f"# answer: {item.exercise.id}\n{item.answer.strip()}")
        text.id, answer.id = slug, f"{slug}-answer"
        tasks.append(
            Task(
                exercise=item.exercise,
                title=item.title,
                text=(text,),
                answer=answer,
                count=count,
                number=number,
                personal=True,
            )
        )
        count += 1
        if table:
            found = EFFORT.search(item.text)
            assert found is not None, f"{item.exercise.id} says no difficulty"
            table += f"\n| {place}. {item.title} | {' | '.join(found.groups())} |"
    return Assignment(stem=assignment.stem, title=assignment.title, table=table, tasks=tuple(tasks))


# --- writing -------------------------------------------------------------------------------


def build_assignment(
    stem: str,
    out: Path,
    roster: Iterable[str] | None = None,
    secret: Path | bytes | None = None,
    *,
    root: Path = ROOT,
) -> list[Path]:
    """Write the blank notebook of an assignment, or one for each student.

    Args:
        stem: of the exercise, as `04_clip`.
        out: folder for the notebooks.
        roster: ids of students; each gets personal questions, in `out/<student>/<stem>.ipynb`.
        secret: from which personal constants are derived: a file, made if it is missing, or its
            bytes; by default the file of `default_secret_path`. Not used without a roster.
        root: the project's root.

    Returns:
        The files, in order.

    Raises:
        ValueError: if there is no such exercise, or an id cannot be a student's.
    """
    assignment = read_assignment(stem, root=root)
    if roster is None:
        return [_write(Path(out) / f"{stem}.ipynb", compose_blank(assignment))]
    students, key = check_students(roster), read_secret(secret)
    return [
        _write(
            Path(out) / student / f"{stem}.ipynb",
            compose_blank(with_items(assignment, personal_items(stem, student, key)), student),
        )
        for student in students
    ]


def check_students(roster: Iterable[str]) -> list[str]:
    """Make sure that each id can name a folder, and is there once.

    Raises:
        ValueError: if one cannot, or there is none.
    """
    students = list(roster)
    for student in students:
        if not isinstance(student, str) or not STUDENT.fullmatch(student):
            raise ValueError(
                f"{student!r} cannot be a student's id; expected up to 64 letters, digits and "
                "._@+- beginning with a letter or a digit."
            )
    # Two ids that differ in case only are one folder on some disks.
    if len({student.lower() for student in students}) != len(students):
        raise ValueError("the roster names a student twice; expected each id once.")
    if not students:
        raise ValueError("the roster is empty; expected at least one id.")
    return students


def _write(path: Path, notebook: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook_text(notebook), encoding="utf-8", newline="\n")
    return path


def notebook_text(notebook: dict[str, Any]) -> str:
    """Write a notebook as text, the same each time.

    Raises:
        nbformat.ValidationError: if it is none.
    """
    node = nbformat.from_dict(notebook)
    nbformat.validate(node)
    return nbformat.writes(node) + "\n"


def compose_blank(assignment: Assignment, student: str = "") -> dict[str, Any]:
    """Put the blank notebook of a student together.

    Args:
        assignment: with the personal questions, if there are any.
        student: id, or nothing.

    Returns:
        A notebook of nbformat 4, without outputs.
    """
    personal = any(task.personal for task in assignment.tasks)
    made_for = f", made for **{student}**" if student else ""
    head = f"# {assignment.title}\n\n*Assignment `{assignment.stem}`{made_for}.*\n\n"
    head += f"{assignment.table}\n" if assignment.table else ""
    head += RULES.format(missing=missing_modules(assignment.stem))
    head += OWN_RULE if personal else ""
    cells = [
        markdown_cell("start-01", head),
        code_cell("start-02", SETUP, {"given": True}, tags=["nbval-ignore-output"]),
    ]
    for task in assignment.tasks:
        cells += [markdown_cell(each.id, LINK.sub(r"\1", each.source)) for each in task.text]
        cells.append(code_cell(task.answer.id, task.blank, {"answer": task.exercise.id}))
        cells[-1]["metadata"]["deletable"] = False
        for each in task.check:
            if each.cell_type == "code":
                cells.append(code_cell(each.id, each.source, {"given": True}))
            else:
                cells.append(markdown_cell(each.id, LINK.sub(r"\1", each.source)))
    about = {"assignment": assignment.stem, "student": student}
    return notebook_of(cells, about)


def missing_modules(stem: str) -> str:
    """Name the modules that a student might have thought of, and must do without."""
    thought_of = [*(lesson.name for lesson in LESSONS), "mdp"]
    modules = forbidden(lesson_of(stem))
    return ", ".join(f"`{name}`" for name in thought_of if f"ppo_lessons.{name}" in modules)


def notebook_of(cells: Sequence[dict[str, Any]], about: dict[str, Any]) -> dict[str, Any]:
    """Make a notebook of cells."""
    return {
        "cells": list(cells),
        "metadata": {
            "kernelspec": KERNELSPEC,
            "language_info": LANGUAGE_INFO,
            "ppo_lessons": about,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def markdown_cell(id: str, source: str) -> dict[str, Any]:
    """Make a cell of text."""
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": source}


def code_cell(
    id: str,
    source: str,
    about: dict[str, Any] | None = None,
    *,
    tags: Sequence[str] = (),
    number: int | None = None,
    printed: str = "",
) -> dict[str, Any]:
    """Make a cell of code.

    Args:
        id: of the cell.
        source: its text.
        about: what `metadata.ppo_lessons` holds.
        tags: its tags.
        number: its execution count, if it counts as run.
        printed: what it has printed.
    """
    metadata: dict[str, Any] = {"ppo_lessons": about} if about else {}
    if tags:
        metadata["tags"] = list(tags)
    outputs = [{"name": "stdout", "output_type": "stream", "text": printed}] if printed else []
    return {
        "cell_type": "code",
        "execution_count": number,
        "id": id,
        "metadata": metadata,
        "outputs": outputs,
        "source": source,
    }


def lesson_of(stem: str) -> str:
    """Give the name of the lesson that an assignment belongs to.

    Raises:
        ValueError: if there is no such lesson.
    """
    return find_lesson(stem).name
