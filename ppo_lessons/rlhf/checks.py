"""What every answer and every setting must be; each refusal says what to do."""

from jaxtyping import Bool
from torch import Tensor

from ppo_lessons.shapes import check_bool


def check_answers(mask: Bool[Tensor, "B T"]) -> None:
    """Require a mask of shape [B, T] with at least one token in each row.

    Raises:
        ValueError: otherwise, with the first answer that has none.
        TypeError: if mask is not boolean.
    """
    check_bool(mask=mask)
    if mask.ndim != 2 or mask.numel() == 0:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; expected [B, T] with at least one answer and one "
            "token. Generate some answers first."
        )
    empty = ~mask.any(dim=1)
    if empty.any():
        row = int(empty.nonzero()[0])
        raise ValueError(
            f"answer {row} is empty: its mask is false everywhere; expected at least one token in "
            "each answer, the end-of-answer token at least. Leave empty answers out of the batch."
        )


def check_at_least_zero(**numbers: int | float) -> None:
    """Require finite numbers that are not negative.

    Raises:
        ValueError: if one is negative, infinite or NaN.
    """
    for name, number in numbers.items():
        if not 0 <= number < float("inf"):
            raise ValueError(
                f"{name} is {number}; expected a finite number of at least 0. Choose {name} so."
            )


def check_whole(**numbers: object) -> None:
    """Require whole numbers of at least 1.

    Raises:
        TypeError: if one is no int.
        ValueError: if one is below 1.
    """
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(
                f"{name} is {number!r}, a {type(number).__name__}; expected int. Give {name} as a "
                "whole number."
            )
        if number < 1:
            raise ValueError(
                f"{name} is {number}; expected a whole number of at least 1. Choose {name} so."
            )
