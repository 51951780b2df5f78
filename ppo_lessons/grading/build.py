"""What does a student get? The blank exercises of a lesson, personal questions included.

    build_assignment("04_clip", Path("handout"))                        # handout/04_clip.ipynb
    build_assignment("04_clip", Path("handout"), roster=["ada", "max"])  # handout/ada/04_clip.ipynb

The source is `exercises/source/<stem>.py`, the same that the course's own exercises are built from.
Answer cells carry their id thrice: in the line `# answer: lesson.exercise`, in
`metadata.ppo_lessons.answer` and as the cell's id. Cells that a student is not meant to change
carry `metadata.ppo_lessons.given`: the grader takes none of them.
"""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
    raise NotImplementedError
