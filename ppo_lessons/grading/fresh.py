"""What is an answer called with, that its author has not seen?

The public cases are the templates: their structure is kept, their numbers are drawn anew.
"""

from ppo_lessons.checks.exercises import Case, Exercise, FunctionExercise


def stages_of(exercise: Exercise) -> tuple[str, ...]:
    """List the stages that have hidden inputs, in order.

    Args:
        exercise: any; a row of predictions has none, since its questions are public.
    """
    raise NotImplementedError


def fresh_cases(exercise: FunctionExercise, *, stage: str, seed: int) -> tuple[Case, ...]:
    """Draw new inputs for one stage: the same for the same exercise, stage and seed.

    Args:
        exercise: whose public cases are the templates.
        stage: one of `stages_of(exercise)`.
        seed: any whole number.

    Raises:
        ValueError: if the exercise has no such stage.
    """
    raise NotImplementedError
