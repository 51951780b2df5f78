"""Right answers in many styles, and named wrong ones, for every exercise.

`RIGHT[exercise][name]` must pass the check, `WRONG[exercise][name]` must be refused under its own
name. `tools/build_checks.py` writes what the wrong ones give into the data of the checks. The
first right answer of an exercise gives the expected values; it is the package's own function
where there is one. `ORACLES[exercise]` is a slow definition in plain Python that takes nested lists
and knows nothing of either; the expected values are held against it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ppo_lessons import lessons

Answer = Any
Catalogue = dict[str, dict[str, Answer]]
LESSONS = tuple(lesson.name for lesson in lessons.LESSONS if lesson.checks)


def new_catalogue(*exercises: str) -> tuple[Catalogue, Callable[..., Callable[..., Answer]]]:
    """Give an empty catalogue and the decorator that fills it: `@breaks("exercise", ...)`."""
    catalogue: Catalogue = {exercise: {} for exercise in exercises}

    def register(*targets: str) -> Callable[[Answer], Answer]:
        def enter(function: Answer) -> Answer:
            for target in targets:
                catalogue[target][function.__name__] = function
            return function

        return enter

    return catalogue, register


def right_answers(lesson: str) -> Mapping[str, Mapping[str, Answer]]:
    return import_module(f"answers.{lesson}").RIGHT


def wrong_answers(lesson: str) -> Mapping[str, Mapping[str, Answer]]:
    return import_module(f"answers.{lesson}").WRONG


def oracles(lesson: str) -> Mapping[str, Callable[..., Any]]:
    return import_module(f"answers.{lesson}").ORACLES
