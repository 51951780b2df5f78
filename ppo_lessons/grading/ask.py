"""What does a check cell run? It prints what an answer gives, and knows nothing of what it should.

    ask("clip.clipped_surrogate", globals().get("clipped_surrogate"))     # the public cases
    ask("clip.clipped_surrogate", globals().get("clipped_surrogate"), stage="edges", seed=48151)
    ask_hashed("clip.gradient_signs", globals().get("gradient_signs"))    # predictions
    tell("clip.clipped_surrogate", globals().get("clipped_surrogate"))    # which mistake it is
"""

from collections.abc import Sequence
from typing import Any

from ppo_lessons.checks.exercises import Case, FunctionExercise


def ask(id: str, answer: Any, *, stage: str | None = None, seed: int | None = None) -> None:
    """Print what a function gives, one line for each case.

    Args:
        id: `lesson.exercise`, of a function.
        answer: whatever the notebook holds under its name; may be None.
        stage: one of `stages_of`; the public cases may be asked all at once.
        seed: of the hidden inputs; the public cases if it is None.
    """
    raise NotImplementedError


def ask_hashed(id: str, answer: Any) -> None:
    """Print predictions, one line for each letter; those within the tolerance print alike.

    Args:
        id: `lesson.exercise`, of predictions.
        answer: whatever the notebook holds under its name; may be None.
    """
    raise NotImplementedError


def tell(id: str, answer: Any) -> None:
    """Print one line of JSON: the usual mistake, and the stage in which it showed; null if none.

    Args:
        id: `lesson.exercise`.
        answer: whatever the notebook holds under its name; may be None.
    """
    raise NotImplementedError


def lines_of(exercise: FunctionExercise, answer: Any, cases: Sequence[Case]) -> list[str]:
    """Give what `ask` prints for cases of one's own, such as those of a personal question."""
    raise NotImplementedError


def margin_ok(
    exercise: FunctionExercise, answer: Any, *, stage: str | None = None, seed: int | None = None
) -> bool:
    """Whether a right answer prints the same text on any machine, and in float32.

    Args:
        exercise: what is asked.
        answer: a right one.
        stage: as for `ask`.
        seed: as for `ask`; try another one if this gives False.
    """
    raise NotImplementedError
