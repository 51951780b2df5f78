"""What are answers held to? A reference, baked on the machine that grades.

    bake("04_clip", Path("../reference"), seed=48151)

A reference notebook holds the solutions, cells that ask them, and as stored outputs what they
print. It lies outside of the project, readable by its owner only:

    reference/class.json                     assignment, whether it is personal, folder by student
    reference/common/manifest.json           what may run and what gives points
    reference/common/main.ipynb              setup, answers, check cells, hidden ones last
    reference/common/<question>.ipynb        a question that builds on others, with their solutions
    reference/students/<folder>/...          the same, if it is personal
"""

from collections.abc import Iterable
from pathlib import Path

from ppo_lessons.grading.build import ROOT


def bake(
    stem: str,
    reference_dir: Path,
    seed: int,
    roster: Iterable[str] | None = None,
    secret: Path | bytes | None = None,
    *,
    root: Path = ROOT,
) -> Path:
    """Write the reference of an assignment: solutions, and what they print on hidden inputs.

    Args:
        stem: of the exercise, as `04_clip`.
        reference_dir: an empty or missing folder outside of the project, or an older reference of
            the same assignment, which is replaced.
        seed: of the hidden inputs.
        roster: ids of students, if the assignment was handed out with personal questions.
        secret: the one that `build_assignment` was given.
        root: the project's root.

    Returns:
        The folder.

    Raises:
        ValueError: if the folder lies inside the project or holds something else, there is no such
            exercise, or a solution breaks a rule for check cells.
    """
    raise NotImplementedError
