"""What do teacher and students get? A gradebook, a page for each student, a page on the class."""

from collections.abc import Sequence
from pathlib import Path

from ppo_lessons.grading.types import Result


def write_reports(results: Sequence[Result], out: Path) -> list[Path]:
    """Write `gradebook.csv`, `feedback/<student>.html` and `.md`, and `class.html`.

    Args:
        results: of one assignment.
        out: the folder.

    Returns:
        What was written.
    """
    raise NotImplementedError


def gradebook(results: Sequence[Result]) -> str:
    """Write the table: a row for each student, in order; no cell starts a formula."""
    raise NotImplementedError


def feedback_html(result: Result) -> str:
    """Write a student's page; whatever came from the student is escaped."""
    raise NotImplementedError


def feedback_markdown(result: Result) -> str:
    """Write the same as Markdown."""
    raise NotImplementedError


def class_page(results: Sequence[Result]) -> str:
    """Write the page on the class, with its pictures inside."""
    raise NotImplementedError
