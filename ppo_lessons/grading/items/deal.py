"""How are a student's own questions drawn?"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.items.questions import OWN
from ppo_lessons.lessons import find_lesson

ROOT = Path(__file__).resolve().parents[3]
SHORTEST = 16  # bytes


@dataclass(frozen=True, kw_only=True)
class Item:
    """One personal question.

    Args:
        exercise: how it is asked; its id is `lesson.own_function` or `lesson.own_numbers`.
        title: its heading.
        text: the task in Markdown, with the student's constants.
        answer: source of the answer cell with solution marks, as in `exercises/source`.
        constants: what was drawn, by name; for tests.
    """

    exercise: Exercise
    title: str
    text: str
    answer: str
    constants: Mapping[str, Any]


# --- the secret ----------------------------------------------------------------------------


def default_secret_path() -> Path:
    """Say where the secret lies if none is named: in the user's own settings."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "ppo-lessons" / "grading-secret"


def read_secret(secret: Path | bytes | None) -> bytes:
    """Read the secret; a file that is missing is made, readable by its owner only.

    Args:
        secret: a file, or the bytes themselves; by default the file of `default_secret_path`.

    Raises:
        ValueError: if the file lies inside the project, or is too short to be a secret.
    """
    if isinstance(secret, bytes):
        return long_enough(secret, "the secret")
    path = Path(secret) if secret is not None else default_secret_path()
    if path.resolve().is_relative_to(ROOT):
        raise ValueError(f"the secret may not lie in the project, as {path}; give a file outside.")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    return long_enough(path.read_bytes().strip(), str(path))


def long_enough(secret: bytes, name: str) -> bytes:
    """Refuse a secret that can be guessed."""
    if len(secret) < SHORTEST:
        raise ValueError(
            f"{name} has {len(secret)} bytes; expected at least {SHORTEST}. Delete the file, and a "
            "new one is made."
        )
    return secret


# --- drawing -------------------------------------------------------------------------------


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
    lesson = find_lesson(assignment).name
    exercises = {each.name: each for each in OWN if each.lesson == lesson}
    if not exercises:
        raise ValueError(f"lesson {assignment} has no personal questions; build without a roster.")
    module = import_module(f"ppo_lessons.grading.items.{lesson}")
    return tuple(
        make(exercises[make.__name__], randomness(assignment, student, make.__name__, secret))
        for make in (module.own_function, module.own_numbers)
    )


Maker = Callable[[Exercise, Random], Item]


def randomness(assignment: str, student: str, question: str, secret: bytes) -> Random:
    """Give the random numbers of one student and question; nobody without the secret has them."""
    words = f"{assignment}|{student}|{question}".encode()
    return Random(hmac.new(secret, words, hashlib.sha256).digest())
