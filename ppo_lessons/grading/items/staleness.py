"""Lesson 16: a weight with a soft cap, and old data by numbers."""

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
    """Weights that believe the ratio in part, with a cap that gives way."""
    constants = {
        "power": two_digits(random, 0.61, 0.93),
        "cap": two_digits(random, 1.15, 1.65),
        "share": two_digits(random, 0.11, 0.39),
    }
    power, cap, share = constants.values()
    body = f"""
weights = ({power} * (log_probs_proximal - log_probs_behaviour)).exp()
return weights.clamp(max={cap}) + {share} * (weights - {cap}).clamp(min=0)
"""
    words = "Weigh each sample by who drew it, in your way."
    answer = function_answer("log_probs_proximal, log_probs_behaviour", words, body)
    example = torch.log(torch.tensor([0.3, 0.6])), torch.log(torch.tensor([0.4, 0.1]))
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 12 minutes.*

Your trainer weighs old samples by (π_prox / μ)^**{power}**, which is nearer to 1 than π_prox / μ.
Its cap gives way: of what a weight has above **{cap}**, a share of **{share}** still counts.

Give the weight of each sample.

- `log_probs_proximal` and `log_probs_behaviour` have the same shape, and so has the result.
- Put the three constants into the function.

To compare: an action from 0.4 under μ to 0.3, and one from 0.1 to 0.6, have the weights
{shown(run_solution(answer)(*example))}."""
    title = "A cap that gives way"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """One sample under three policies, a long answer, and what is left of four samples."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        behaviour = two_digits(random, 0.11, 0.19)
        proximal = two_digits(random, 0.36, 0.48)
        constants = {
            "behaviour": behaviour,
            "proximal": proximal,
            "now": round(proximal * random.uniform(1.03, 1.12), 2),
            "advantage": two_digits(random, 0.6, 2.9),
            "epsilon": two_digits(random, 0.15, 0.35),
            "cap": two_digits(random, 1.3, 1.7),
            "length": random.randint(21, 59),
            "drift": random.choice((0.01, 0.02, 0.03, 0.04)),
            "weights": [two_digits(random, 0.2, 3.0) for _ in range(4)],
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    behaviour, proximal, now, advantage, epsilon, cap, length, drift, weights = constants.values()
    text = f"""
An action had probability **{behaviour}** under the policy that drew it, and **{proximal}** at the
start of the update. Now it has **{now}**. Its advantage is **{advantage}**, ε is **{epsilon}**, no
weight is above **{cap}**.

- **a**: the weight of this sample;
- **b**: its decoupled objective;
- **c**: its clipped objective around the policy that drew it;
- **d**: another answer has **{length}** tokens, and log π − log μ is **{drift}** at each. The ratio
  of the whole answer?
- **e**: four samples have the weights **{", ".join(map(str, weights))}**. Which share of them is
  left?"""
    return numbers_item(
        exercise,
        title="Old data by numbers",
        difficulty=2,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    behaviour: float,
    proximal: float,
    now: float,
    advantage: float,
    epsilon: float,
    cap: float,
    length: int,
    drift: float,
    weights: list[float],
) -> dict[str, float]:
    """Give the exact numbers."""
    weight = min(proximal / behaviour, cap)
    ratio, stale = now / proximal, now / behaviour
    squares = sum(each**2 for each in weights)
    return {
        "a": weight,
        "b": weight * min(ratio, 1 + epsilon) * advantage,
        "c": min(stale, 1 + epsilon) * advantage,
        "d": float(torch.tensor(length * drift, dtype=torch.float64).exp()),
        "e": sum(weights) ** 2 / (len(weights) * squares),
    }
