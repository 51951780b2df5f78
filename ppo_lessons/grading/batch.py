"""How are three hundred submissions graded? In chunks, in several workers, each result at once.

What is finished is kept: a run that is killed goes on where it stood, and what did not change is
not run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppo_lessons.grading.types import Result


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What one run grades, and how.

    Args:
        submissions: files, folders, zip files.
        reference: the folder that `bake` wrote.
        out: where results go; `results/<student>.json` for each student.
        roster: csv with the columns id and name.
        workers: how many pytest processes run side by side.
        chunk: how many submissions one of them gets.
        shard: `(i, n)`, this run grades each n-th student from the i-th on; counted from 1.
        isolation: name of the sandbox, or `auto`.
        again: whether students are graded anew whose result is there already.
    """

    submissions: Sequence[Path]
    reference: Path
    out: Path
    roster: Path | None = None
    workers: int = 2
    chunk: int = 10
    shard: tuple[int, int] = (1, 1)
    isolation: str = "auto"
    again: bool = False


def grade(batch: Batch, *, on_result: Callable[[Result], None] | None = None) -> list[Result]:
    """Grade all that this shard holds; each result is written as soon as it is known.

    Args:
        batch: what, and how.
        on_result: called after each result is on the disk, from the calling thread.

    Returns:
        The results of this shard, ordered by student.
    """
    raise NotImplementedError
