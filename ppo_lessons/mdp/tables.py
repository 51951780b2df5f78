"""What the tables of an MDP must be: dtype, shape, rows of probabilities."""

import torch
from torch import Tensor

ROUNDING = 1e-12  # a probability below this is zero


def check_table(
    name: str,
    table: Tensor,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    advice: str = "Give one entry for each state (or observation) and action of the MDP.",
) -> None:
    """Require a dtype and a shape."""
    if table.dtype != dtype:
        raise TypeError(
            f"{name} has dtype {table.dtype}; expected {dtype}. Convert it with {name}.to({dtype})."
        )
    if table.shape != shape:
        raise ValueError(f"{name} has shape {tuple(table.shape)}; expected {shape}. {advice}")


def check_rows(name: str, table: Tensor, *, at_least: float) -> None:
    """Require probabilities whose rows sum to between at_least and 1."""
    sums = table.sum(-1)
    right = (table >= 0).all(-1) & (sums >= at_least - ROUNDING) & (sums <= 1 + ROUNDING)
    if not right.all():
        place = tuple((~right).nonzero()[0].tolist())
        raise ValueError(
            f"{name} has the row {table[place].tolist()} at index {place}; expected probabilities "
            f"with sum {'1' if at_least else 'at most 1'}. Normalise the row, or start from "
            "softmax_policy."
        )


def check_count(name: str, number: int) -> None:
    """Require at least one."""
    if number < 1:
        raise ValueError(f"{name} is {number}; expected 1 or more. Choose {name} above 0.")


def one_hot(index: int, size: int) -> Tensor:
    """All probability on one entry."""
    return torch.eye(size, dtype=torch.float64)[index]
