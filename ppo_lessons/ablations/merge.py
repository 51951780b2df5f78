"""Join result files of one study from several machines."""

from collections.abc import Sequence
from pathlib import Path

from ppo_lessons.ablations.study import StudyResult


def merge_studies(files: Sequence[str | Path | StudyResult]) -> StudyResult:
    """Pool the runs of one study that several machines have run with seeds of their own.

    Args:
        files: paths of JSON files, or results.

    Returns:
        One result with the runs of all.

    Raises:
        ValueError: if a run stands in two files, or a setting differs between them.
    """
    raise NotImplementedError
