"""What do the stages of grading hand to each other?

build, bake -> `Manifest` and reference notebooks; intake -> `Submission` or `Rejected`;
transplant -> `Transplanted`; run -> `CellOutcome`s; verdict -> `Result`; report reads results.
All of it is plain data that JSON can hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["graded", "timeout", "rejected", "infrastructure-error", "missing"]
MAIN = "main"  # the part with every question that builds on no other


@dataclass(frozen=True, kw_only=True)
class CheckCell:
    """One cell that prints rounded values; its expected text is stored in the reference only.

    Args:
        cell: its cell id.
        title: what it is about; all that feedback says of a hidden one.
        points: what a clean pass gives.
        hidden: whether its inputs are unknown to students.
    """

    cell: str
    title: str
    points: float
    hidden: bool


@dataclass(frozen=True, kw_only=True)
class Question:
    """One exercise of an assignment.

    Args:
        id: `lesson.exercise`, as in the line `# answer: lesson.exercise`.
        name: what the answer cell defines.
        title: its heading.
        answer: cell id of the answer cell.
        part: the notebook in which it is checked: `MAIN`, or its own if it builds on others.
        builds_on: ids of questions whose reference answers it is checked with.
        tell: cell id of the cell that says which usual mistake it is; worth no points.
        checks: in order.
    """

    id: str
    name: str
    title: str
    answer: str
    part: str = MAIN
    builds_on: tuple[str, ...] = ()
    tell: str | None = None
    checks: tuple[CheckCell, ...]

    @property
    def points(self) -> float:
        """Most points that it can give."""
        return sum(check.points for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a reference consists of: exactly these cells may be run, and exactly these give points.

    Args:
        assignment: stem of the exercise, as `04_clip`.
        title: its first heading.
        student: whose personal reference it is; empty if it serves everyone.
        seed: of the hidden inputs.
        forbid: modules that the student build must not have.
        parts: SHA-256 of each part's notebook `<part>.ipynb`, by part.
        environment: versions with which the reference was made.
        questions: in order.
    """

    assignment: str
    title: str
    student: str = ""
    seed: int
    forbid: tuple[str, ...] = ()
    parts: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[Question, ...]

    @property
    def points(self) -> float:
        """Most points that the assignment can give."""
        return sum(question.points for question in self.questions)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is taken from a cell of a student's file: no outputs, no other metadata.

    Args:
        kind: of the cell.
        source: its text.
        id: its cell id, if the file had one.
        marker: `metadata.ppo_lessons.answer`, if it was there.
    """

    kind: Literal["code", "markdown", "raw"]
    source: str
    id: str = ""
    marker: str = ""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A file that could be read.

    Args:
        student: id, from the roster, else from the file's name.
        name: as the roster has it, or empty.
        source: which file it was, for the teacher; names inside zip files after `!`.
        sha256: of the file's bytes.
        cells: in order.
        built_for: whose personal copy it is by its own metadata; empty if of no one.
        notes: what intake had to mend or decide, for the student and the teacher.
    """

    student: str
    name: str = ""
    source: str
    sha256: str
    cells: tuple[Cell, ...]
    built_for: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A file that could not be read, or a student of the roster without one (then `missing`)."""

    student: str
    name: str = ""
    source: str = ""
    sha256: str = ""
    reason: str
    missing: bool = False


@dataclass(frozen=True, kw_only=True)
class Transplanted:
    """The instructor's notebooks with a student's answers in them.

    Args:
        parts: nbformat 4 notebooks as dictionaries, by part.
        absent: ids of the questions for which no answer cell was found; a stub raises there.
        notes: how cells were found, and what was left out.
    """

    parts: Mapping[str, dict[str, Any]]
    absent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CellOutcome:
    """What became of one code cell of a graded notebook.

    Args:
        state: `passed` only if it ran and its text equals the stored one.
        said: text of the failure, or what a `tell` cell printed; student-controlled, untrusted.
    """

    state: Literal["passed", "failed", "skipped", "absent"]
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Whether one check was passed, and what it gave."""

    title: str
    hidden: bool
    passed: bool
    points: float
    max_points: float


@dataclass(frozen=True, kw_only=True)
class QuestionResult:
    """How one question went.

    Args:
        mistake: name of the usual mistake, only if the course knows that name.
        error: the student's own traceback, cut; untrusted text.
        notes: for instance that an earlier answer was replaced by the reference's.
    """

    id: str
    title: str
    points: float
    max_points: float
    checks: tuple[CheckResult, ...]
    mistake: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row of the gradebook, and all that feedback is made of.

    Args:
        status: only `graded` and `timeout` carry points; an infrastructure error never is zero
            points, it is retried and then listed.
        reason: why it was not graded, in one sentence.
        isolation: the name of the sandbox; `none` marks the row.
        key: hash of answers, reference and environment: equal keys give equal results.
        seconds: wall time; the only field that may differ between two runs.
    """

    student: str
    name: str = ""
    assignment: str
    status: Status
    reason: str = ""
    points: float = 0.0
    max_points: float
    questions: tuple[QuestionResult, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    submission_sha256: str = ""
    reference_sha256: str = ""
    environment: str = ""
    seed: int = 0
    isolation: str = ""
    key: str = ""
    seconds: float = 0.0
