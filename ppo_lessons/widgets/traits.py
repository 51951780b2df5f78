"""The parts of a state: numbers in a range, lists of them, choices. Each refuses in plain words.

All of them are sent to the script. A default of None means that there may be no value.
"""

import math
from collections.abc import Sequence
from typing import Any

import traitlets


def in_words(low: int | float, high: int | float, *, open_low: bool, open_high: bool) -> str:
    """Say a range: "from 0 to 1", "above 0 and at most 2.2"."""
    if not (open_low or open_high):
        return f"from {low} to {high}"
    return (
        f"{'above' if open_low else 'at least'} {low} and {'below' if open_high else 'at most'} "
        f"{high}"
    )


class _Range:
    """Ends of a range, and whether a value lies in it."""

    def __init__(
        self, low: int | float, high: int | float, open_low: bool, open_high: bool
    ) -> None:
        self.low, self.high, self.open_low, self.open_high = low, high, open_low, open_high

    def __str__(self) -> str:
        return in_words(self.low, self.high, open_low=self.open_low, open_high=self.open_high)

    def holds(self, value: Any) -> bool:
        if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
            return False
        above = self.low < value if self.open_low else self.low <= value
        return above and (value < self.high if self.open_high else value <= self.high)


class Number(traitlets.Float):
    """A number in a range.

    Args:
        default: what holds if nothing is given; None if there may be none.
        low: lower end.
        high: upper end.
        open_low: whether the lower end itself is refused.
        open_high: whether the upper end itself is refused.
        step: distance between the values that the page can reach.
    """

    def __init__(
        self,
        default: int | float | None,
        *,
        low: int | float,
        high: int | float,
        open_low: bool = False,
        open_high: bool = False,
        step: int | float | None = None,
    ):
        super().__init__(default)
        self.allow_none = default is None
        self.range, self.step = _Range(low, high, open_low, open_high), step
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take numbers, tensors and arrays of one number; refuse what the picture cannot show."""
        if value is None and self.allow_none:
            return None
        value = _plain(value)
        if not self.range.holds(value):
            raise ValueError(f"{self.name} is {value!r}; expected a number {self.range}")
        return float(value)


class Whole(traitlets.Int):
    """A whole number in a range.

    Args:
        default: what holds if nothing is given; None if there may be none.
        low: smallest.
        high: largest.
    """

    def __init__(self, default: int | None, *, low: int, high: int):
        super().__init__(default)
        self.allow_none = default is None
        self.range, self.step = _Range(low, high, False, False), 1
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take whole numbers, also those of a tensor."""
        if value is None and self.allow_none:
            return None
        value = _plain(value)
        if not (self.range.holds(value) and value == int(value)):
            raise ValueError(f"{self.name} is {value!r}; expected a whole number {self.range}")
        return int(value)


class Numbers(traitlets.List):
    """A list of numbers in a range.

    Args:
        default: what holds if nothing is given.
        low: lower end.
        high: upper end.
        open_low: whether the lower end itself is refused.
        open_high: whether the upper end itself is refused.
        step: distance between the values that the page can reach.
        fewest: shortest list; as long as the default if left out.
        most: longest list; as long as the default if left out.
    """

    def __init__(
        self,
        default: Sequence[int | float],
        *,
        low: int | float,
        high: int | float,
        open_low: bool = False,
        open_high: bool = False,
        step: int | float | None = None,
        fewest: int | None = None,
        most: int | None = None,
    ):
        self.default_numbers = [float(each) for each in default]
        super().__init__(default_value=self.default_numbers)
        self.range, self.step = _Range(low, high, open_low, open_high), step
        self.fewest = len(default) if fewest is None else fewest
        self.most = len(default) if most is None else most
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take lists, tuples, tensors and arrays of one dimension."""
        value = _plain(value)
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{self.name} is {value!r}; expected a list of numbers {self.range}")
        if not self.fewest <= len(value) <= self.most:
            count = f"{self.fewest} to {self.most}" if self.fewest < self.most else self.most
            raise ValueError(f"{self.name} holds {len(value)} numbers; expected {count}")
        if wrong := [each for each in value if not self.range.holds(each)]:
            raise ValueError(f"{self.name} holds {wrong[0]!r}; expected numbers {self.range}")
        return [float(each) for each in value]


class Choice(traitlets.Enum):
    """One of a few words.

    Args:
        default: what holds if nothing is given; None if there may be none.
        options: the words.
    """

    def __init__(self, default: str | None, *, options: Sequence[str]):
        super().__init__(tuple(options), default_value=default, allow_none=default is None)
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take one of the words."""
        if (value is None and self.allow_none) or value in (self.values or ()):
            return value
        raise ValueError(
            f"{self.name} is {value!r}; expected one of {', '.join(self.values or ())}"
        )


class Choices(traitlets.List):
    """A list in which each entry is one of a few words.

    Args:
        default: what holds if nothing is given; every list is as long.
        options: the words.
    """

    def __init__(self, default: Sequence[str], *, options: Sequence[str]):
        self.default_words, self.values = list(default), tuple(options)
        super().__init__(default_value=self.default_words)
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take lists and tuples of those words."""
        if not isinstance(value, (list, tuple)) or len(value) != len(self.default_words):
            raise ValueError(
                f"{self.name} is {value!r}; expected a list of {len(self.default_words)} words"
            )
        if wrong := [each for each in value if each not in self.values]:
            raise ValueError(
                f"{self.name} holds {wrong[0]!r}; expected some of {', '.join(self.values)}"
            )
        return list(value)


class OneOf(traitlets.Enum):
    """One of a few numbers: the places where something was computed.

    Args:
        default: what holds if nothing is given.
        options: the numbers, in order.
    """

    def __init__(self, default: int | float, *, options: Sequence[int | float]):
        super().__init__(tuple(options), default_value=default)
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Take one of the numbers, also that of a tensor."""
        value, options = _plain(value), self.values or ()
        if not isinstance(value, bool) and value in options:
            return options[options.index(value)]
        known = ", ".join(f"{option:g}" for option in options)
        raise ValueError(f"{self.name} is {value!r}; expected one of {known}")


def _plain(value: Any) -> Any:
    """Give what a tensor or an array holds; anything else as it is."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and math.isfinite(value) and value == 0:
        return 0.0  # no minus before 0
    return value
