"""How is a reference stored, and is it still what was baked?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppo_lessons.grading.types import Manifest


@dataclass(frozen=True, kw_only=True)
class ClassReference:
    """What `class.json` says.

    Args:
        assignment: stem of the exercise.
        personal: whether each student has a reference of their own.
        students: folder below the reference by student's id; empty if it is not personal.
    """

    assignment: str
    personal: bool
    students: Mapping[str, str]


def read_class(reference_dir: Path) -> ClassReference:
    """Read what a reference is for.

    Raises:
        ValueError: if there is none, or it cannot be read.
    """
    raise NotImplementedError


def read_reference(
    reference_dir: Path, student: str = ""
) -> tuple[Manifest, dict[str, dict[str, Any]]]:
    """Read the reference that a student is graded by, and make sure that nobody changed it.

    Args:
        reference_dir: the folder that `bake` wrote.
        student: id; matters only if the reference is personal.

    Returns:
        The manifest, and its notebooks as dictionaries by part.

    Raises:
        ValueError: if a file is missing or differs from what was baked, or the student is unknown
            to a personal reference.
    """
    raise NotImplementedError


def reference_sha256(manifest: Manifest) -> str:
    """Hash a manifest, and with it all that it stands for."""
    raise NotImplementedError


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Turn a manifest into plain data."""
    raise NotImplementedError


def manifest_from_json(plain: Mapping[str, Any]) -> Manifest:
    """Turn plain data into a manifest.

    Raises:
        ValueError: if it is none.
    """
    raise NotImplementedError


def environment_now() -> dict[str, str]:
    """Versions of what the printed values depend on."""
    raise NotImplementedError
