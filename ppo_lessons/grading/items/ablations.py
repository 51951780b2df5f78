"""Lesson 11: a score of one's own for a few runs, and two settings by numbers."""

from math import sqrt
from random import Random
from typing import Any

import torch

from ppo_lessons.ablations.statistics import interquartile_mean
from ppo_lessons.ablations.statistics import probability_of_improvement as improvement
from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    function_answer,
    numbers_item,
    run_solution,
    shown,
    two_digits,
    until_printable,
    until_tidy,
)


def own_function(exercise: Exercise, random: Random) -> Item:
    """A mean without some runs at each end, less a price for what still differs."""

    def draw() -> tuple[dict[str, float], list[float]]:
        constants = {
            "lowest": random.randint(1, 2),
            "highest": random.randint(1, 2),
            "floor": two_digits(random, 0.6, 2.4),
            "price": two_digits(random, 0.11, 0.59),
        }
        return constants, [constants["floor"]]  # what runs below the floor give

    constants = until_printable(draw)
    lowest, highest, floor, price = constants.values()
    body = f"""
runs = scores.clamp(min={floor}).sort().values
kept = runs[{lowest} : len(runs) - {highest}]
return kept.mean() - {price} * (kept.max() - kept.min())
"""
    words = "Give the score of a setting, by your rule."
    answer = function_answer("scores", words, body)
    example = torch.tensor([7.0, -3.0, 5.0, 9.0, 1.0, 6.0])
    text = f"""
*Difficulty 2 of 5, importance 4 of 5, 10 minutes.*

Your group has a rule of its own for what a setting is worth, given the scores of its runs.

1. A score below **{floor:g}** counts as {floor:g}.
2. Then the **{lowest}** lowest and the **{highest}** highest runs are left out.
3. The rest is averaged, and **{price:g}** times the distance between the highest and the lowest
   run of that rest is taken off.

Give this number.

- `scores`: one number for each run, in the order of the seeds; there are at least six.

The result is one number, a tensor of shape `()`. Put the four constants into the function.

To compare: 7, −3, 5, 9, 1, 6 give {shown(run_solution(answer)(example))}."""
    title = "Your group's rule"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Middles, pairs, many comparisons, and the width of an interval."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "first": [round(random.uniform(11, 99), 1) for _ in range(random.randint(8, 10))],
            "second": [round(random.uniform(11, 99), 1) for _ in range(random.randint(5, 7))],
            "chance": random.randint(21, 98) / 1000,
            "comparisons": random.randint(7, 29),
            "seeds": random.randint(12, 32),
            "width": two_digits(random, 11, 39),
            "more": random.randint(41, 99),
        }
        constants["second"][1] = constants["first"][2]  # a tie
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    first, second, chance, comparisons, seeds, width, more = constants.values()
    text = f"""
The runs of a first setting scored {", ".join(f"**{run:g}**" for run in first)}.
Those of a second scored {", ".join(f"**{run:g}**" for run in second)}.

- **a**: the interquartile mean of the first (from n runs, n // 4 are left out at each end);
- **b**: the mean of the second;
- **c**: the probability that a run of the first beats one of the second; a tie counts half.

A base is compared with **{comparisons}** settings that are in truth all as good as it. Each
comparison calls them apart with probability **{chance:g}**, independently of the others.

- **d**: the probability that at least one is called apart.

With **{seeds}** seeds the interval of a mean is **{width:g}** wide.

- **e**: how wide it will be with **{more}** seeds, about: it falls with the root of their
  number."""
    return numbers_item(
        exercise,
        title="A study by numbers",
        difficulty=2,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    first: list[float],
    second: list[float],
    chance: float,
    comparisons: int,
    seeds: int,
    width: float,
    more: int,
) -> dict[str, float]:
    """Judge the runs, and count chances."""
    runs, others = (torch.tensor(scores, dtype=torch.float64) for scores in (first, second))
    return {
        "a": interquartile_mean(runs).item(),
        "b": others.mean().item(),
        "c": improvement(runs, others),
        "d": 1 - (1 - chance) ** comparisons,
        "e": width * sqrt(seeds / more),
    }
