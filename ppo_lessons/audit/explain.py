"""Which rule, or which two, reproduce the numbers?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.audit.rules import Rule


@dataclass(frozen=True)
class Prediction:
    """What a formula says the numbers are.

    Attributes:
        numbers: the prediction, of the shape of what was given.
        slack: how far rounding may carry a number from it.
        known: false where the facts do not suffice to predict; None if they do everywhere.
    """

    numbers: Tensor
    slack: Tensor
    known: Tensor | None = None

    def parts_from(self, given: Tensor) -> Tensor:
        """Say at which places the given numbers are others."""
        equal = (given == self.numbers) | (given.isnan() & self.numbers.isnan())
        apart = ~(equal | ((given - self.numbers).abs() <= self.slack))
        return apart if self.known is None else apart & self.known

    @property
    def complete(self) -> bool:
        """Whether every number could be predicted."""
        return self.known is None or bool(self.known.all())

    def differs(self, right: "Prediction") -> bool:
        """Say whether this is another prediction than the right one, or knows more rows."""
        apart = self.parts_from(right.numbers)
        if right.known is None:
            return bool(apart.any())
        more = ~right.known if self.known is None else self.known & ~right.known
        return bool((apart & right.known | more).any())

    def reproduces(self, given: Tensor) -> bool:
        """Say whether these are the numbers, wherever that can be known."""
        if self.numbers.shape != given.shape:
            return False
        seen = self.known is None or bool(self.known.any())
        return seen and not bool(self.parts_from(given).any())


Predict = Callable[[Any], Prediction]
Hopeful = Callable[[Any], bool]


@dataclass(frozen=True)
class Explanation:
    """How given numbers came about.

    Attributes:
        found: the rules that reproduce them; empty if the right formula does, None if nothing does.
        also: other single rules that give the same numbers.
        unseen: mistakes that would have given the right numbers here, so nothing is known of them.
        tried: number of mistakes that were tried.
    """

    found: tuple[Rule, ...] | None
    also: tuple[Rule, ...] = ()
    unseen: tuple[Rule, ...] = ()
    tried: int = 0


def always(stage: Any) -> bool:
    """Look at every stage in full."""
    return True


def explain(
    given: Tensor,
    start: Any,
    predict: Predict,
    rules: Sequence[Rule],
    *,
    hopeful: Hopeful = always,
) -> Explanation:
    """Look for the formula behind given numbers: the right one, one rule, two rules.

    A rule that changes nothing on these data is left out: it explains no difference, and a right
    number says nothing about it.

    Args:
        given: the numbers.
        start: the stage as it should be.
        predict: stage → what it predicts.
        rules: what may be otherwise; where several fit, the first is named.
        hopeful: a quick look, which says no where it is certain that a stage does not fit.

    Returns:
        What was found.
    """
    right = predict(start)
    tried = [(rule, list(rule.vary(start))) for rule in rules]
    varied = [(rule, [s for s in made if matters(predict(s), right)]) for rule, made in tried]
    unseen = tuple(
        rule
        for (rule, made), (_, effective) in zip(tried, varied, strict=True)
        if made and not effective and not rule.convention
    )
    varied = [(rule, made) for rule, made in varied if made]
    agrees = right.reproduces(given)
    if agrees and right.complete:
        return Explanation((), unseen=unseen)
    fits = [
        rule for rule, made in varied if any(predict(stage).reproduces(given) for stage in made)
    ]
    if fits:
        first = next((rule for rule in fits if rule.convention), fits[0])
        also = tuple(rule for rule in fits if rule is not first and not first.convention)
        return Explanation((first,), also=also)
    if agrees:
        return Explanation((), unseen=unseen)
    pairs = two_rules(given, predict, varied, hopeful)
    found = pairs[0] if pairs else None
    also = {rule.name: rule for pair in pairs for rule in pair if rule not in (found or ())}
    count = sum(not rule.convention for rule in rules)
    blamed = tuple(rule for rule in also.values() if not rule.convention)
    return Explanation(found, also=blamed, tried=count)


def matters(seen: Prediction, right: Prediction) -> bool:
    """Whether a prediction is another one than the right one, or knows more."""
    return seen.numbers.shape != right.numbers.shape or seen.differs(right)


def two_rules(
    given: Tensor,
    predict: Predict,
    varied: Sequence[tuple[Rule, Sequence[Any]]],
    hopeful: Hopeful,
) -> list[tuple[Rule, Rule]]:
    """Try one rule after another; conventions first, since they explain without blame.

    Of pairs with a convention all that fit are given, of pairs of mistakes the first one.
    """

    def blame(pair: Sequence[tuple[Rule, Sequence[Any]]]) -> int:
        return sum(not rule.convention for rule, _ in pair)

    found: list[tuple[Rule, Rule]] = []
    for pair in sorted(combinations(varied, 2), key=blame):
        (first, stages), (second, _) = pair
        if found and (
            blame(pair) == 2 or blame(pair) > sum(not rule.convention for rule in found[0])
        ):
            break
        lasts = (last for stage in stages for last in second.vary(stage))
        if any(hopeful(last) and predict(last).reproduces(given) for last in lasts):
            found.append((first, second))
    return found


def first_place(apart: Tensor) -> tuple[int, ...] | None:
    """The smallest index at which something is true."""
    places = torch.nonzero(apart)
    return tuple(places[0].tolist()) if len(places) else None
