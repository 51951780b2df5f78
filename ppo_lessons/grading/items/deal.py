"""How are a student's own questions drawn?"""

from dataclasses import dataclass
from pathlib import Path

from ppo_lessons.checks.exercises import Exercise


@dataclass(frozen=True, kw_only=True)
class Item:
    """One personal question.

    Args:
        exercise: how it is asked; its id is `lesson.own_function` or `lesson.own_numbers`.
        title: its heading.
        text: the task in Markdown, with the student's constants.
        answer: source of the answer cell with solution marks, as in `exercises/source`.
    """

    exercise: Exercise
    title: str
    text: str
    answer: str


def default_secret_path() -> Path:
    """Say where the secret lies if none is named: in the user's own settings."""
    raise NotImplementedError


def read_secret(secret: Path | bytes | None) -> bytes:
    """Read the secret; a file that is missing is made, readable by its owner only.

    Raises:
        ValueError: if the file lies inside the project, or is too short to be a secret.
    """
    raise NotImplementedError


def personal_items(assignment: str, student: str, secret: bytes) -> tuple[Item, ...]:
    """Derive the personal questions of one student.

    Args:
        assignment: stem of the exercise.
        student: id.
        secret: the class's.

    Returns:
        The same two questions whenever secret, assignment and student are the same.

    Raises:
        ValueError: if the lesson has no personal questions.
    """
    raise NotImplementedError
