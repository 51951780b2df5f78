"""Breakout on a board of 10 x 10, after MinAtar (Young and Tian, 2019), as a batched `Task`.

A ball moves along diagonals. Three rows of bricks hang below the ceiling; each that is struck earns
1. A paddle in the last row sends the ball up again; where it does not, the episode is over. Step by
step it is MinAtar's own game (`tests/test_envs_breakout.py`), with the three actions that matter.
"""

from functools import cache
from typing import Any

import torch
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ppo_lessons.envs.batched import State

SIZE = 10
PADDLE, BALL, TRAIL, BRICKS = range(4)  # channels of an observation
BRICK_ROWS = slice(1, 4)
# Directions: 0 up left, 1 up right, 2 down right, 3 down left.
COLUMN_STEP, ROW_STEP = (-1, 1, 1, -1), (-1, -1, 1, 1)
TURNED_AT_A_SIDE = (1, 0, 3, 2)
TURNED_UPSIDE_DOWN = (3, 2, 1, 0)
TURNED_BACK = (2, 3, 0, 1)
FIRST_COLUMN, FIRST_DIRECTION = (0, 9), (2, 3)


class Breakout:
    """Breakout: stay (0), left (1) or right (2).

    Args:
        sticky: probability that the last action is taken once more, whatever was chosen.
        time_limit: steps; MinAtar itself has none.

    Raises:
        ValueError: if sticky is no probability.
    """

    observation_space: Space[Any]
    action_space: Space[Any]

    def __init__(self, *, sticky: int | float = 0.1, time_limit: int = 1000):
        if not 0 <= sticky <= 1:
            raise ValueError(f"sticky is {sticky}; expected a probability. Choose sticky=0.1.")
        self.sticky = sticky
        self.time_limit = time_limit
        self.observation_space = Box(0, 1, (SIZE, SIZE, 4), dtype=bool)  # pyright: ignore  (theirs: gymnasium)
        self.action_space = Discrete(3)

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Put the ball into one of two corners in the lowest row of the bricks, flying inwards."""
        device = generator.device
        corner = torch.randint(2, (num_envs,), generator=generator, device=device)
        row = torch.full_like(corner, 3)
        column = look_up(FIRST_COLUMN, corner)
        bricks = torch.zeros(num_envs, SIZE, SIZE, dtype=torch.bool, device=device)
        bricks[:, BRICK_ROWS] = True
        return {
            "row": row,
            "column": column,
            "trail_row": row,
            "trail_column": column,
            "direction": look_up(FIRST_DIRECTION, corner),
            "paddle": torch.full_like(corner, 4),
            "bricks": bricks,
            "struck": torch.zeros_like(corner, dtype=torch.bool),  # by the last step
            "action": torch.zeros_like(corner),
        }

    def advance(
        self, state: State, actions: Int[Tensor, " N"], *, generator: Generator
    ) -> tuple[State, Float[Tensor, " N"], Bool[Tensor, " N"]]:
        """Move the paddle, then the ball."""
        sticks = torch.rand(actions.shape, generator=generator, device=actions.device)
        actions = torch.where(sticks < self.sticky, state["action"], actions)
        shift = (actions == 2).long() - (actions == 1).long()
        paddle = (state["paddle"] + shift).clamp(0, SIZE - 1)

        before_row, before_column = state["row"], state["column"]
        direction, bricks = state["direction"], state["bricks"]
        row = before_row + look_up(ROW_STEP, direction)
        column = before_column + look_up(COLUMN_STEP, direction)
        at_side = (column < 0) | (column >= SIZE)
        column = column.clamp(0, SIZE - 1)
        direction = torch.where(at_side, look_up(TURNED_AT_A_SIDE, direction), direction)

        at_ceiling = row < 0
        row = row.clamp(min=0)
        copies = torch.arange(len(row), device=row.device)
        on_brick = bricks[copies, row, column] & ~at_ceiling
        breaks = on_brick & ~state["struck"]  # never two in a row
        at_floor = (row == SIZE - 1) & ~at_ceiling & ~on_brick
        meets = at_floor & (before_column == paddle)
        catches = at_floor & ~meets & (column == paddle)

        place = torch.zeros_like(bricks)
        place[copies, row, column] = breaks
        cleared = at_floor & ~bricks.flatten(1).any(dim=1)
        full = torch.zeros_like(bricks)
        full[:, BRICK_ROWS] = True
        bricks = torch.where(cleared[:, None, None], full, bricks & ~place)

        upside_down = at_ceiling | breaks | meets
        direction = torch.where(upside_down, look_up(TURNED_UPSIDE_DOWN, direction), direction)
        direction = torch.where(catches, look_up(TURNED_BACK, direction), direction)
        reached = {
            "row": torch.where(breaks | meets | catches, before_row, row),
            "column": column,
            "trail_row": before_row,
            "trail_column": before_column,
            "direction": direction,
            "paddle": paddle,
            "bricks": bricks,
            "struck": on_brick,
            "action": actions,
        }
        return reached, breaks.float(), at_floor & ~meets & ~catches

    def observe(self, state: State) -> Bool[Tensor, "N 10 10 4"]:
        """Four boards: paddle, ball, where the ball came from, bricks."""
        seen = torch.zeros(*state["bricks"].shape, 4, dtype=torch.bool, device=state["row"].device)
        copies = torch.arange(len(seen), device=seen.device)
        here = torch.ones_like(
            copies, dtype=torch.bool
        )  # a True of Python's would be sent each time
        seen[copies, SIZE - 1, state["paddle"], PADDLE] = here
        seen[copies, state["row"], state["column"], BALL] = here
        seen[copies, state["trail_row"], state["trail_column"], TRAIL] = here
        seen[..., BRICKS] = state["bricks"]
        return seen


def look_up(table: tuple[int, ...], places: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    """Read a small table at N places."""
    return on_device(table, places.device)[places]


@cache
def on_device(table: tuple[int, ...], device: torch.device) -> Int[Tensor, " places"]:
    """Put a table there once: each copy from the host would wait, and no graph could hold it."""
    return torch.tensor(table, device=device)
