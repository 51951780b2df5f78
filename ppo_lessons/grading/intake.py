"""What was handed in, and by whom? Files are parsed here; nothing of them is ever executed."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ppo_lessons.grading.types import Rejected, Submission


def read_submissions(
    paths: Sequence[Path],
    *,
    assignment: str,
    question_ids: Collection[str],
    roster: Mapping[str, str] | None = None,
) -> list[Submission | Rejected]:
    """Read everything that was handed in; one row per student, whatever the files hold.

    Args:
        paths: notebooks, folders, and zip files as learning platforms make them.
        assignment: stem of the exercise, as `04_clip`.
        question_ids: of its questions, `lesson.exercise`.
        roster: name by id, from `read_roster`.

    Returns:
        With a roster: its students in its order (`missing` if nothing came), then files that
        belong to nobody or to more than one. Without: by id. Each id is unique and can stand in
        a file's name.

    Raises:
        FileNotFoundError: if one of `paths` does not exist.
    """
    raise NotImplementedError
