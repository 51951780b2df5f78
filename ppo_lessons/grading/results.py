"""How is a result kept? One file of JSON for each student, written at once or not at all."""

from collections.abc import Iterable
from pathlib import Path

from ppo_lessons.grading.types import Result


def write_result(folder: Path, result: Result) -> Path:
    """Write `folder/<student>.json` by an atomic rename."""
    raise NotImplementedError


def read_result(path: Path) -> Result:
    """Read one result.

    Raises:
        ValueError: if the file is no result of this version.
    """
    raise NotImplementedError


def read_results(folders: Iterable[Path]) -> list[Result]:
    """Read the results of several runs, ordered by student.

    Raises:
        ValueError: if two folders disagree about a student.
    """
    raise NotImplementedError
