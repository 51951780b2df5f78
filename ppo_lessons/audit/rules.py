"""A rule is one way in which numbers may come about otherwise: a mistake, or another convention.

A stage (`Scan`, `Surrogate`, ...) holds what a formula is fed. A rule yields changed stages, so two
rules in a row are two mistakes at once.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Vary = Callable[[Any], Iterator[Any]]


@dataclass(frozen=True)
class Rule:
    """One way to compute a quantity otherwise.

    Attributes:
        name: of the function, a sentence in few words.
        sentence: what such numbers do.
        change: what to change in the code; empty for a convention.
        lesson: name of the lesson to read.
        vary: stage → the stages that this rule makes of it; none if it does not apply.
    """

    name: str
    sentence: str
    change: str
    lesson: str
    vary: Vary

    @property
    def convention(self) -> bool:
        """Right in its own way, though the course does it otherwise."""
        return not self.change


class Table:
    """The rules of one stage, in the order in which they are tried."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def mistake(self, lesson: str, *, change: str) -> Callable[[Vary], Vary]:
        """Add a mistake; the docstring of the function is its sentence.

        Args:
            lesson: where it is explained.
            change: what to do about it.

        Returns:
            The decorator.
        """

        def add(vary: Vary) -> Vary:
            self.rules.append(Rule(vary.__name__, inspect.getdoc(vary) or "", change, lesson, vary))
            return vary

        return add

    def convention(self, lesson: str) -> Callable[[Vary], Vary]:
        """Add a convention: numbers that differ from ours and are no mistake."""
        return self.mistake(lesson, change="")
