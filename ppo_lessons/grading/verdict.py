"""What do the outcomes of cells come to? Points, and the name of the mistake; when in doubt, none.

A check gives its points only if its cell ran and its text equals the stored one. The cells that
ran must be the cells of the graded notebooks, no more and no fewer; else nothing is scored, and
the row says so.
"""

from collections.abc import Mapping

from ppo_lessons.grading.types import CellOutcome, Manifest, Result, Transplanted


def judge_submission(
    manifest: Manifest,
    transplanted: Transplanted,
    outcomes: Mapping[str, Mapping[str, CellOutcome]],
) -> Result:
    """Turn outcomes into points.

    Args:
        manifest: of the reference.
        transplanted: the notebooks that were run.
        outcomes: by part, then by cell id.

    Returns:
        A result that carries no student's name yet: `graded`, `timeout`, or
        `infrastructure-error` if the cells are not those that were expected.
    """
    raise NotImplementedError


def sentence_of(question: str, mistake: str) -> str:
    """Say what the course knows about a mistake; empty if it knows no such name.

    Args:
        question: id of the exercise.
        mistake: its name.
    """
    raise NotImplementedError
