"""Lesson 12: a metric of one's own for an update, and the values of a probe by hand."""

from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    function_answer,
    numbers_item,
    run_solution,
    shown,
    two_digits,
    until_tidy,
)


def own_function(exercise: Exercise, random: Random) -> Item:
    """How well an update did as its advantages asked, less a price for moving at all."""
    constants = {
        "farthest": two_digits(random, 0.31, 0.55),
        "largest": two_digits(random, 0.8, 1.9),
        "price": two_digits(random, 0.11, 0.59),
    }
    farthest, largest, price = constants.values()
    body = f"""
moves = (log_probs - log_probs_old).clamp(-{farthest}, {farthest})
wishes = advantages.clamp(-{largest}, {largest})
return (moves * wishes).mean() - {price} * moves.abs().mean()
"""
    words = "Say how well an update did as it was asked, with your three constants."
    answer = function_answer("log_probs, log_probs_old, advantages", words, body)
    example = (
        torch.tensor([-0.2, -1.0, -1.0]),
        torch.tensor([-1.2, -0.9, -0.8]),
        torch.tensor([0.5, -3.0, 0.6]),
    )
    text = f"""
*Difficulty 2 of 5, importance 4 of 5, 10 minutes.*

Your group watches a metric of its own: did an update do as the advantages asked?

1. A sample's move is by how much its log-probability rose. A move farther than **{farthest:g}**,
   up or down, counts as {farthest:g}.
2. What was asked for is its advantage. One larger than **{largest:g}** in size counts as
   {largest:g}, with its sign.
3. The metric is the mean of move times advantage, less **{price:g}** times the mean size of the
   moves as they count.

Give this number.

- `log_probs`, `log_probs_old`: of the actions after the squeeze and before it (nats);
- `advantages`: what was asked for.

All three have one dimension and the same length. The result is one number, a tensor of shape
`()`. Put the three constants into the function.

To compare: log-probabilities −0.2, −1 and −1, before −1.2, −0.9 and −0.8, advantages 0.5, −3 and
0.6 give {shown(run_solution(answer)(*example))}."""
    title = "Did it do as it was asked?"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A corridor and a room: true values, and what a critic learns with three bugs."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "pays": [two_digits(random, 0.3, 2.9) for _ in range(3)],
            "gamma": two_digits(random, 0.61, 0.89),
            "night": two_digits(random, 0.3, 1.4),
            "limit": random.randint(3, 9),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    pays, gamma, night, limit = constants.values()
    text = f"""
Two probes, with γ = **{gamma:g}**. Actions do not matter.

**A corridor.** An episode has three steps; they pay **{pays[0]:g}**, **{pays[1]:g}** and
**{pays[2]:g}**, and then the task is over. Each step has an observation of its own: 0, 1 and 2.

**A room.** There is one observation, each step pays **{night:g}**, and the world goes on for
ever. A time limit cuts an episode after **{limit}** steps.

- **a**: V at observation 0 of the corridor;
- **b**: what a critic learns there if each row of the rollout holds the reward of the row before
  it, and episodes follow one another without a gap;
- **c**: V in the room;
- **d**: what a critic learns in the room with λ = 0, if the program takes a time limit for the end
  of the task;
- **e**: what a critic learns everywhere in the corridor, if the value loss compares each value
  with all returns of the batch. (Rewards are in their right rows; all three observations are
  equally frequent, and the targets are the true V.)"""
    return numbers_item(
        exercise,
        title="A probe by hand",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(*, pays: list[float], gamma: float, night: float, limit: int) -> dict[str, float]:
    """Give the exact numbers."""
    first, second, third = pays
    values = [first + gamma * (second + gamma * third), second + gamma * third, third]
    return {
        "a": values[0],
        "b": third + gamma * (first + gamma * second),
        "c": night / (1 - gamma),
        "d": night / (1 - gamma * (limit - 1) / limit),
        "e": sum(values) / 3,
    }
