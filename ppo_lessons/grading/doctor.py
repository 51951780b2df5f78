"""Does the sandbox hold on this machine? Probes run inside it and try to get out."""

from dataclasses import dataclass

from ppo_lessons.grading.sandbox import Isolation, Limits


@dataclass(frozen=True)
class Probe:
    """One attempt.

    Args:
        name: what was tried.
        holds: whether the sandbox held.
        detail: what happened.
    """

    name: str
    holds: bool
    detail: str


def examine(isolation: Isolation, limits: Limits | None = None) -> list[Probe]:
    """Run every probe inside the sandbox."""
    raise NotImplementedError


def doctor(name: str = "auto") -> int:
    """Print what holds.

    Returns:
        The exit status: 0 if all holds, 1 if anything got through, 2 if there is no sandbox.
    """
    raise NotImplementedError
