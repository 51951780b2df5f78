"""Which package does a graded answer find? One without what it is asked to write."""

from pathlib import Path

from ppo_lessons.grading.types import Manifest

# Other people's solutions; none of them is needed.
FOREIGN = ("cleanrl", "cleanrl_utils", "minatar", "sb3_contrib", "stable_baselines3", "tianshou")


def forbidden(lesson: str) -> tuple[str, ...]:
    """List the modules that must be missing while a lesson is graded.

    Args:
        lesson: its name, as `clip`.

    Returns:
        Dotted names: those of the package begin with `ppo_lessons.`, all others are site packages.
    """
    raise NotImplementedError


def student_build(manifest: Manifest, folder: Path) -> Path:
    """Copy the package to `folder/ppo_lessons`; forbidden modules raise an `ImportError` there.

    Args:
        manifest: of the assignment.
        folder: where the copy goes; one that lies there is replaced.

    Returns:
        `folder/ppo_lessons`, to be bound over the package.
    """
    raise NotImplementedError
