"""Lesson 10: the limits of one's own machine, and a run by numbers."""

from math import sqrt
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.gpu_run import combine_moments
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    function_answer,
    numbers_item,
    run_solution,
    shown,
    table,
    two_digits,
    until_tidy,
)

MILLION = 1e6
FLOAT_BYTES, BOOL_BYTES = 4, 1


def own_function(exercise: Exercise, random: Random) -> Item:
    """The least time of some pieces of work, on a machine with three limits."""
    constants = {
        "speed": round(random.uniform(21, 89), 1),
        "width": round(random.uniform(6, 29), 1),
        "launch": two_digits(random, 2.1, 8.9),
    }
    speed, width, launch = constants.values()
    body = f"""
arithmetic, memory, calls = flops / {speed}, moved / {width}, launches * {launch} / 1000
return torch.maximum(torch.maximum(arithmetic, memory), calls)
"""
    words = "Give the least time of each piece of work, on your machine."
    answer = function_answer("flops, moved, launches", words, body, imports="import torch")
    example = (
        torch.tensor([900.0, 10.0, 10.0]),
        torch.tensor([10.0, 300.0, 1.0]),
        torch.tensor([50.0, 50.0, 2000.0]),
    )
    text = f"""
*Difficulty 2 of 5, importance 4 of 5, 10 minutes.*

Your machine does **{speed}** thousand million FLOPs a second, moves **{width}** thousand
million bytes a second, and a launch costs it **{launch}** µs. It does all three at once, so a
piece of work takes at least as long as the one of them that takes longest.

Give that least time of each piece, in milliseconds.

- `flops`: its FLOPs, in millions;
- `moved`: the bytes that it moves, in millions;
- `launches`: how many launches it needs.

All three have the same shape, and so has the result. Put the three constants into the
function.

To compare: FLOPs 900, 10 and 10, bytes 10, 300 and 1, launches 50, 50 and 2000 give
{shown(run_solution(answer)(*example))}."""
    title = "Your machine's limits"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Bytes of a rollout in two forms, steps of the optimiser, and the moments of two ranks."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "num_envs": 16 * random.randint(11, 99),
            "num_steps": random.randint(17, 99),
            "num_epochs": random.randint(4, 9),
            "num_minibatches": random.randint(4, 16),
            "cells": 10 * random.randint(11, 49),
            "counts": [random.randint(41, 99), random.randint(11, 39)],
            "means": [two_digits(random, -2.0, -0.2), two_digits(random, 0.2, 2.0)],
            "spreads": [two_digits(random, 0.4, 1.9), two_digits(random, 0.4, 1.9)],
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    envs, steps, epochs, minibatches, cells, counts, means, spreads = constants.values()
    rows = table(
        ["", "rank 0", "rank 1"],
        [["samples", *counts], ["mean", *means], ["standard deviation", *spreads]],
    )
    text = f"""
A run has **{envs}** environments, **{steps}** steps of each per rollout, **{epochs}** epochs and
**{minibatches}** minibatches. An observation is a board of **{cells}** cells. A rollout keeps
the observation of each step, and the one that the step reached.

- **a**: how many million bytes do these observations take, as numbers of float32?
- **b**: how many do they take as true and false, a byte each?
- **c**: how many steps of the optimiser are taken in a million environment steps? (As a
  quotient, whole or not.)

Two ranks have computed advantages; a standard deviation is that of the population:

{rows}

- **d**: the mean of all of them together;
- **e**: the standard deviation of all of them together."""
    return numbers_item(
        exercise,
        title="A run by numbers",
        difficulty=2,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    num_envs: int,
    num_steps: int,
    num_epochs: int,
    num_minibatches: int,
    cells: int,
    counts: list[int],
    means: list[float],
    spreads: list[float],
) -> dict[str, float]:
    """Count, and put the two ranks together."""
    samples = num_envs * num_steps
    kept = 2 * samples * cells / MILLION
    ranks = zip(counts, means, spreads, strict=True)
    rows = [[count, mean, count * spread**2] for count, mean, spread in ranks]
    count, mean, m2 = combine_moments(torch.tensor(rows, dtype=torch.float64)).tolist()
    return {
        "a": FLOAT_BYTES * kept,
        "b": BOOL_BYTES * kept,
        "c": MILLION / samples * num_epochs * num_minibatches,
        "d": mean,
        "e": sqrt(m2 / count),
    }
