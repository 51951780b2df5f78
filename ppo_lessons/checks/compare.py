"""Do two outcomes agree, and which of the usual mistakes gives the same as an answer?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ppo_lessons.checks.exercises import Outcome

TOLERANCE = 1e-4  # an answer may compute in float32; mistakes differ by more than ten times this


def close(one: float, other: float) -> bool:
    """Whether two numbers agree; NaN agrees with NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return one == other or abs(one - other) <= TOLERANCE * max(1.0, abs(other))


def all_close(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two rows of numbers agree."""
    return len(some) == len(others) and all(map(close, some, others))


def same_gradient(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    """Whether two gradients agree; none at all is zero."""
    filled = [0.0] * len(one or other or ())
    return all_close(one or filled, other or filled)


def agree(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same, gradients included."""
    if one.problem or other.problem:
        return one.problem == other.problem
    return same_values(one, other) and not wrong_gradients(one, other)


def same_values(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes have the same numbers in the same shape."""
    return one.shape == other.shape and all_close(one.values, other.values)


def wrong_gradients(one: Outcome, other: Outcome) -> list[str]:
    """Name the arguments whose gradients differ."""
    return [
        name
        for name in other.gradients
        if not same_gradient(one.gradients.get(name), other.gradients[name])
    ]


def from_data(entry: Mapping[str, Any]) -> Outcome:
    """Read an outcome as `tools/build_checks.py` writes it."""
    if "problem" in entry:
        return Outcome(problem=entry["problem"])
    gradients = {
        name: None if row is None else tuple(map(float, row))
        for name, row in entry.get("gradients", {}).items()
    }
    return Outcome(
        shape=shape_of(entry["shape"]),
        values=tuple(map(float, entry["values"])),
        gradients=gradients,
    )


def shape_of(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Turn lists of sizes, or of such lists, into tuples."""
    return tuple(shape_of(size) if isinstance(size, list) else size for size in sizes)


# --- naming the mistake --------------------------------------------------------------------


def name_mistake(
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    entries: Sequence[Mapping[str, Any]],
    *,
    turned: bool = False,
) -> str | None:
    """Find the mistake that gives the same as the answer.

    Args:
        outcomes: what the answer gave, case by case; may end early.
        expected: what a right answer gives.
        entries: the data of the cases, with what each mistake gives where it differs.
        turned: whether the answer is first multiplied by −1.

    Returns:
        The mistake that agrees in every case (`name#1` and `name#2` are one mistake); else one
        that has all the same numbers and other gradients, or that agrees in at least four of five
        cases where one of the two is wrong; else None.
    """
    names = sorted({name for entry in entries for name in entry["mistakes"]})
    best, best_score = None, 0.8
    outcomes = list(map(negative, outcomes)) if turned else outcomes
    for name in names:
        theirs = [
            from_data(entry["mistakes"][name]) if name in entry["mistakes"] else right
            for entry, right in zip(entries, expected, strict=True)
        ]
        if turned and all(map(same_values, map(negative, theirs), expected)):
            continue  # the mistake is the sign itself
        score = likeness(outcomes, theirs, expected)
        if score > best_score:
            best, best_score = name.partition("#")[0], score
    return best


def negative(outcome: Outcome) -> Outcome:
    """Turn the sign of values and gradients."""
    gradients = {
        name: None if row is None else tuple(-value for value in row)
        for name, row in outcome.gradients.items()
    }
    values = tuple(-value for value in outcome.values)
    return replace(outcome, values=values, gradients=gradients)


def constant_factor(outcomes: Sequence[Outcome], expected: Sequence[Outcome]) -> float | None:
    """Find the one number by which all values are too large; None if there is none."""
    pairs = [
        pair
        for mine, right in zip(outcomes, expected, strict=False)
        for pair in zip(mine.values, right.values, strict=False)
    ]
    factors = [mine / right for mine, right in pairs if right and math.isfinite(mine)]
    shapes = [(mine.shape, right.shape) for mine, right in zip(outcomes, expected, strict=False)]
    if not factors or any(mine != right for mine, right in shapes):
        return None
    factor = factors[0]
    same = all(close(mine, factor * right) for mine, right in pairs)
    return factor if same and factor and not close(factor, 1.0) else None


def likeness(
    outcomes: Sequence[Outcome], theirs: Sequence[Outcome], expected: Sequence[Outcome]
) -> float:
    """Score how much an answer resembles a mistake: 2 when nothing tells them apart."""
    triples = list(zip(outcomes, theirs, expected, strict=False))
    if all(agree(mine, other) for mine, other, _ in triples):
        return 2.0
    off = [t for t in triples if not agree(t[1], t[2]) or not agree(t[0], t[2])]
    first = next((t for t in off if not agree(t[0], t[2])), None)
    if first is None or first[0].problem or not same_values(first[0], first[1]):
        return 0.0
    numbers_only = [triple for triple in triples if not triple[0].problem]
    same = all(same_values(mine, other) for mine, other, _ in numbers_only)
    if same and not all(same_values(other, right) for _, other, right in numbers_only):
        return 1.5
    if not agree(first[0], first[1]):
        return 0.0
    return sum(agree(mine, other) for mine, other, _ in off) / len(off)
