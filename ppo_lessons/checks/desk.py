"""What does a notebook call? `check`, `hint` and `reveal`, for the exercises of all lessons."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from html import escape
from importlib import import_module
from typing import Any

from ppo_lessons import progress
from ppo_lessons.checks.answers import keep_answer
from ppo_lessons.checks.exercises import CheckResult, Exercise
from ppo_lessons.checks.judge import judge
from ppo_lessons.lessons import LESSONS, find_lesson

# What happened in this kernel: ids tried, and hints given so far.
_tried: set[str] = set()
_hints_given: dict[str, int] = {}


@dataclass(frozen=True)
class Words:
    """Text for the reader.

    Args:
        text: what is shown.
    """

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<div>{escape(self.text).replace(chr(10), '<br>')}</div>"


@cache
def all_exercises() -> Mapping[str, Exercise]:
    """Load the exercises of all lessons that have checks.

    Returns:
        The exercises by id, in the order of the lessons.
    """
    modules = [
        import_module(f"ppo_lessons.checks.{lesson.name}") for lesson in LESSONS if lesson.checks
    ]
    return {each.id: each for module in modules for each in module.EXERCISES}


def find_exercise(key: str) -> Exercise:
    """Look an exercise up by its id, or by its name where only one lesson has it.

    Args:
        key: as in "clip.clipped_surrogate" or "clipped_surrogate".

    Returns:
        The exercise.

    Raises:
        ValueError: if there is none.
    """
    exercises = all_exercises()
    found = [each for each in exercises.values() if key in (each.id, each.name)]
    if len(found) == 1:
        return found[0]
    near = get_close_matches(str(key), [*exercises, *(e.name for e in exercises.values())], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(exercises)}."
    raise ValueError(f"no exercise {key!r}; expected one that a lesson has; {hint}")


class Check:
    """Judges answers: `check.<exercise>(answer)`, or `check("lesson.exercise", answer)`."""

    def __call__(self, id: str, answer: Any) -> CheckResult:
        """Judge an answer, and keep it if it is right.

        Args:
            id: `lesson.exercise`.
            answer: the learner's function or data.

        Returns:
            The verdict; end the cell with it.

        Raises:
            ValueError: if there is no such exercise.
        """
        exercise = find_exercise(id)
        result = judge(exercise, answer)
        if result.mistake != "not_written":
            _tried.add(exercise.id)
        if result.passed:
            progress.pass_check(exercise.id)
            keep_answer(exercise.id, answer)
        return result

    def all(self, names: Mapping[str, Any] | None = None, *, lesson: str = "") -> Words:
        """Judge every answer that the notebook holds.

        Args:
            names: answers by name, such as `globals()`; by default those of the caller. What was
                imported from the package is no answer.
            lesson: number or name; all lessons by default.

        Returns:
            One line for each; end the cell with it.

        Raises:
            ValueError: if there is no such lesson.
        """
        if names is None:
            caller = sys._getframe(1)
            names = {**caller.f_globals, **caller.f_locals}
        only = find_lesson(lesson).name if lesson else ""
        lines = []
        for exercise in all_exercises().values():
            answer = names.get(exercise.name)
            home = str(getattr(answer, "__module__", ""))
            if (
                answer is None
                or home.startswith("ppo_lessons.")
                or only not in ("", exercise.lesson)
            ):
                continue
            result = self(exercise.id, answer)
            mistake = f" {result.mistake}" if result.mistake not in (None, "not_written") else ""
            lines.append((result.passed, result.verdict + mistake))
        if not lines:
            return Words("no answer yet: run the cell that defines one, then this one again")
        passed = sum(ok for ok, _ in lines)
        return Words("\n".join([*(line for _, line in lines), f"{passed} of {len(lines)} passed"]))

    def __getattr__(self, name: str) -> Callable[[Any], CheckResult]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            exercise = find_exercise(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None
        return lambda answer: self(exercise.id, answer)

    def __dir__(self) -> list[str]:
        return [each.name for each in all_exercises().values()]

    def __repr__(self) -> str:
        return "\n".join(f"check.{each.name}(your answer)" for each in all_exercises().values())


check = Check()


def hint(id: str) -> Words:
    """Give the next hint of an exercise; there are three, the last is a line of maths.

    Args:
        id: `lesson.exercise`.

    Returns:
        The hint; end the cell with it.

    Raises:
        ValueError: if there is no such exercise.
    """
    exercise = find_exercise(id)
    number = min(_hints_given.get(exercise.id, 0) + 1, len(exercise.hints))
    _hints_given[exercise.id] = number
    return Words(f"hint {number} of {len(exercise.hints)}: {exercise.hints[number - 1]}")


def reveal(id: str) -> Words:
    """Say where the solution is, once something has been tried.

    Args:
        id: `lesson.exercise`.

    Returns:
        Words; end the cell with them.

    Raises:
        ValueError: if there is no such exercise.
    """
    exercise = find_exercise(id)
    if exercise.id not in _tried:
        return Words(
            f"Try first: run check.{exercise.name}(...) on an attempt of yours. It may be wrong. "
            f'Or take a hint: hint("{exercise.id}").'
        )
    stem = find_lesson(exercise.lesson).stem
    return Words(
        f"The solution is in solutions/{stem}.ipynb, in the cell that begins with "
        f"# answer: {exercise.id}. Close it, then write it again from memory."
    )
