"""How are the answers of many students run, and what became of each cell?

One trusted pytest process runs a batch of notebooks one after another, each against a kernel of
its own in the sandbox. nbval compares what a check cell prints with the text stored in the
reference, which the kernel can't see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppo_lessons.grading.sandbox import Isolation, Limits
from ppo_lessons.grading.types import CellOutcome, Manifest, Transplanted


class InfrastructureError(RuntimeError):
    """The machine failed, not the student: to be tried again, then listed; never zero points."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The answers of one student.

    Args:
        student: for messages.
        manifest: of the reference they were put into.
        transplanted: notebooks by part.
        build: folder that holds `ppo_lessons` as students have it (`student_build`).
        secret: folders that the kernel must not see, as the reference's.
    """

    student: str
    manifest: Manifest
    transplanted: Transplanted
    build: Path
    secret: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of the cells of one job.

    Args:
        cells: outcome by part and cell id; every code cell of every part is there.
        timed_out: whether a part was given up because its time was over.
        notes: what happened to kernels, in sentences for the student and the teacher.
        seconds: wall time.
    """

    cells: Mapping[str, Mapping[str, CellOutcome]]
    timed_out: bool = False
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def run_jobs(
    jobs: Sequence[Job], *, isolation: Isolation, limits: Limits | None = None
) -> list[Ran | InfrastructureError]:
    """Run a batch in one trusted process.

    Args:
        jobs: any number; ten share the cost of starting pytest well.
        isolation: from `sandbox.choose`.
        limits: what each part of each job may use.

    Returns:
        For each job, in order, what became of it; errors are returned, not raised.
    """
    raise NotImplementedError
