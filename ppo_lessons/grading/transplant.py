"""Put a student's answers into the instructor's notebooks. Parses; executes nothing."""

from collections.abc import Mapping
from typing import Any

from ppo_lessons.grading.types import Manifest, Submission, Transplanted


def transplant(
    submission: Submission, manifest: Manifest, reference: Mapping[str, dict[str, Any]]
) -> Transplanted:
    """Replace each answer cell of the reference by the student's.

    Args:
        submission: what the student sent.
        manifest: of the reference.
        reference: its notebooks, nbformat 4 as dictionaries, by part.

    Returns:
        Copies of the notebooks: same cells, same ids, same order; only answer cells differ, and
        they are un-run.

    Raises:
        ValueError: if reference and manifest do not belong together; never because of what a
            student sent.
    """
    raise NotImplementedError
