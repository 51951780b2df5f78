"""How is a row of signs judged, whose right answers the data holds only as hashes?"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ppo_lessons.checks.exercises import CALLABLE, SHAPE, CheckResult, SignsExercise, data_of
from ppo_lessons.checks.words import GENERAL, kind_of


def sign_of(value: Any) -> int | None:
    """Read the sign of a number; text is none, whatever it says.

    Raises:
        ValueError: if it is no number.
    """
    if value is None:
        return None
    if not issubclass(type(value), (str, bytes, bytearray, bool)):
        number = float(value)
        if not math.isnan(number):
            return (number > 0) - (number < 0)
    raise ValueError(f"{value!r} is no sign")


def sign_hash(id: str, letter: str, sign: int) -> str:
    """Hash one answer, so that the data shows none."""
    return hashlib.sha256(f"{id}/{letter}/{sign}".encode()).hexdigest()[:12]


def judge_signs(exercise: SignsExercise, answer: Any) -> CheckResult:
    """Compare signs with the hashes of the right ones."""

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
    signs: dict[str, int] = {}
    for letter in letters:
        try:
            sign = sign_of(given[letter])
        except BaseException:
            sign = None
        if sign is None:
            text = issubclass(type(given[letter]), (str, bytes, bytearray))
            form = "the number 1, 0 or -1, without quotation marks" if text else "1, 0 or -1"
            words = f"case {letter} holds {kind_of(given[letter])}; expected {form}."
            return failed(SHAPE, "wrong_type", ("mistake", f"wrong_type. {words}"))
        signs[letter] = sign
    return compare_signs(exercise, signs)


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


def compare_signs(exercise: SignsExercise, signs: Mapping[str, int]) -> CheckResult:
    """Report the first wrong sign without giving the right one away."""
    data = data_of(exercise.lesson)[exercise.id]
    hashes = {letter: sign_hash(exercise.id, letter, sign) for letter, sign in signs.items()}
    wrong = [letter for letter in signs if hashes[letter] != data["expected"][letter]]
    if not wrong:
        return CheckResult(exercise=exercise.id, passed=True)
    mistake = nearest(hashes, data, wrong[0])
    question, look = exercise.questions[wrong[0]]
    words = exercise.mistakes[mistake] if mistake else look
    named = f"{mistake}. {words}" if mistake else f"none of the usual ones. {words}"
    return CheckResult(
        exercise=exercise.id,
        passed=False,
        stage="signs",
        mistake=mistake,
        rows=(
            ("input", f"case {wrong[0]}: {question}"),
            ("got", f"{signs[wrong[0]]:+d}; another sign is expected".replace("+0", "0")),
            ("right", f"{len(signs) - len(wrong)} of {len(signs)}"),
            ("mistake", named),
        ),
    )


def nearest(hashes: Mapping[str, str], data: Mapping[str, Any], first: str) -> str | None:
    """Find the mistake that answers alike, in all cases or in all but one."""
    best, best_count = None, len(hashes) - 2
    for name in sorted(data["mistakes"]):
        theirs = data["mistakes"][name]
        count = sum(hashes[letter] == theirs[letter] for letter in hashes)
        if count > best_count and hashes[first] == theirs[first]:
            best, best_count = name, count
    return best
