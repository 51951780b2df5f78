"""How is a row of predictions judged, whose right answers the data holds only as hashes?

A sign is hashed as it is. A number is hashed as its place on a grid that is ten times finer than
the tolerance, and the places around a given number are tried.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ppo_lessons.checks.exercises import (
    CALLABLE,
    SHAPE,
    CheckResult,
    HashedExercise,
    NumbersExercise,
    data_of,
)
from ppo_lessons.checks.words import GENERAL, kind_of, number_text

GRID = 10  # steps of the grid within the tolerance
NEAR = 10  # tolerances away: right, but for the rounding


# --- one answer ----------------------------------------------------------------------------


def number_of(value: Any) -> float:
    """Read a number; text is none, whatever it says.

    Raises:
        ValueError: if it is no number.
    """
    if not issubclass(type(value), (str, bytes, bytearray, bool)):
        number = float(value)
        if not math.isnan(number):
            return number
    raise ValueError(f"{value!r} is no number")


def places(exercise: HashedExercise, number: float, *, reach: int = 1) -> list[int | str]:
    """List what may be hashed for a number, the nearest first.

    Args:
        exercise: what is asked.
        number: what was given.
        reach: in tolerances.
    """
    if not isinstance(exercise, NumbersExercise):
        return [(number > 0) - (number < 0)]
    if math.isinf(number):
        return [str(number)]
    middle = round(number * GRID / exercise.tolerance)
    steps = range(1, reach * GRID + 1)
    return [middle, *(middle + side * step for step in steps for side in (-1, 1))]


def hash_of(id: str, letter: str, place: int | str) -> str:
    """Hash one answer, so that the data shows none."""
    return hashlib.sha256(f"{id}/{letter}/{place}".encode()).hexdigest()[:12]


def matches(
    exercise: HashedExercise, letter: str, number: float, stored: str, *, reach: int = 1
) -> bool:
    """Whether a number is the one that was hashed."""
    found = places(exercise, number, reach=reach)
    return any(hash_of(exercise.id, letter, place) == stored for place in found)


# --- the row -------------------------------------------------------------------------------


def judge_hashed(exercise: HashedExercise, answer: Any) -> CheckResult:
    """Compare predictions with the hashes of the right ones."""

    def failed(stage: str, mistake: str | None, *rows: tuple[str, str]) -> CheckResult:
        return CheckResult(
            exercise=exercise.id, passed=False, stage=stage, mistake=mistake, rows=rows
        )

    letters = list(exercise.questions)
    try:
        given = by_letter(answer, letters)
    except BaseException:
        keys = f"{letters[0]} to {letters[-1]}"
        words = f"expected a dict with the keys {keys}, or a list in this order; got "
        words += kind_of(answer)
        return failed(SHAPE, "wrong_type", ("mistake", f"wrong_type. {words}."))
    if given is None or all(value is None for value in given.values()):
        return failed(CALLABLE, "not_written", ("next", GENERAL["not_written"]))
    numbers: dict[str, float] = {}
    for letter in letters:
        try:
            numbers[letter] = number_of(given[letter])
        except BaseException:
            text = issubclass(type(given[letter]), (str, bytes, bytearray))
            words = f"case {letter} holds {kind_of(given[letter])}; expected "
            words += form_of(exercise, quoted=text)
            return failed(SHAPE, "wrong_type", ("mistake", f"wrong_type. {words}."))
    return compare_with_hashes(exercise, numbers)


def form_of(exercise: HashedExercise, *, quoted: bool) -> str:
    """Say what a single prediction looks like."""
    if isinstance(exercise, NumbersExercise):
        return "a number, without quotation marks" if quoted else "a number"
    return "the number 1, 0 or -1, without quotation marks" if quoted else "1, 0 or -1"


def by_letter(answer: Any, letters: Sequence[str]) -> dict[str, Any] | None:
    """Read a dict, or a row of answers in order.

    Raises:
        ValueError: if it is neither, or answers are missing.
    """
    if answer is None:
        return None
    if isinstance(answer, Mapping):
        given = {str(key).strip().lower(): value for key, value in answer.items()}
    else:
        given = dict(zip(letters, answer, strict=True))
    if set(given) != set(letters):
        raise ValueError("other keys")
    return given


def compare_with_hashes(exercise: HashedExercise, numbers: Mapping[str, float]) -> CheckResult:
    """Report the first wrong prediction without giving the right one away."""
    data = data_of(exercise.lesson)[exercise.id]
    expected = data["expected"]
    wrong = [
        letter
        for letter in numbers
        if not matches(exercise, letter, numbers[letter], expected[letter])
    ]
    if not wrong:
        return CheckResult(exercise=exercise.id, passed=True)
    first = wrong[0]
    question, look = exercise.questions[first]
    mistake, words = name_of(exercise, numbers, data, wrong)
    named = f"{mistake}. {words}" if mistake else f"none of the usual ones. {look}"
    signs = not isinstance(exercise, NumbersExercise)
    got = f"{int(numbers[first] > 0) - int(numbers[first] < 0):+d}" if signs else ""
    got = got.replace("+0", "0") or number_text(numbers[first])
    other = "another sign" if signs else "another number"
    return CheckResult(
        exercise=exercise.id,
        passed=False,
        stage="signs" if signs else "numbers",
        mistake=mistake,
        rows=(
            ("input", f"case {first}: {question}"),
            ("got", f"{got}; {other} is expected"),
            ("right", f"{len(numbers) - len(wrong)} of {len(numbers)}"),
            ("mistake", named),
        ),
    )


def name_of(
    exercise: HashedExercise,
    numbers: Mapping[str, float],
    data: Mapping[str, Any],
    wrong: Sequence[str],
) -> tuple[str | None, str]:
    """Name the mistake, and say it in words."""
    mistake = nearest(exercise, numbers, data["mistakes"], wrong)
    if mistake:
        return mistake, exercise.mistakes[mistake]
    if not isinstance(exercise, NumbersExercise):
        return None, ""

    def all_wrong_are(change: Callable[[float], float], reach: int) -> bool:
        return all(
            matches(exercise, key, change(numbers[key]), data["expected"][key], reach=reach)
            for key in wrong
        )

    if all_wrong_are(lambda number: number, NEAR):
        allowed = number_text(exercise.tolerance)
        return "not_exact_enough", GENERAL["not_exact_enough"].format(allowed)
    if all_wrong_are(lambda number: -number, 1):
        return "sign_turned", GENERAL["sign_turned"]
    return None, ""


def nearest(
    exercise: HashedExercise,
    numbers: Mapping[str, float],
    mistakes: Mapping[str, Mapping[str, str]],
    wrong: Sequence[str],
) -> str | None:
    """Find the mistake that answers alike.

    Of signs, in all cases or in all but one. A number tells more: the mistake that explains most
    of the wrong ones, the first of them included.
    """
    single = isinstance(exercise, NumbersExercise)
    best, best_count = None, 0 if single else len(numbers) - 2
    for name in sorted(mistakes):
        alike = {
            letter
            for letter, stored in mistakes[name].items()
            if matches(exercise, letter, numbers[letter], stored)
        }
        if len(alike) > best_count and wrong[0] in alike:
            best, best_count = name.partition("#")[0], len(alike)
    return best
