"""Lesson 04: a clip with three edges of one's own, and five samples by hand."""

from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.clip import clip_fractions, clipped_surrogate
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    function_answer,
    numbers_item,
    run_solution,
    shown,
    table,
    two_digits,
    until_printable,
    until_tidy,
)


def own_function(exercise: Exercise, random: Random) -> Item:
    """The clip with two widths, a floor under bad actions, and advantages that are capped."""

    def draw() -> tuple[dict[str, float], list[float]]:
        low, high = two_digits(random, 0.11, 0.39), two_digits(random, 0.12, 0.55)
        bound, most = two_digits(random, 1.8, 4.5), two_digits(random, 1.2, 3.2)
        made = {"low": low, "high": high, "bound": bound, "most": most}
        return made, [sign * most * (1 + high) for sign in (-1, 1)] + [
            -most * bound,
            -most * (1 - low),
        ]

    constants = until_printable(draw)
    low, high, bound, most = constants.values()
    body = f"""
advantages = advantages.detach().clamp(-{most}, {most})
clipped = ratios.clamp({round(1 - low, 2)}, {round(1 + high, 2)})
objective = torch.minimum(ratios * advantages, clipped * advantages)
return torch.where(advantages < 0, torch.maximum(objective, {bound} * advantages), objective)
"""
    words = "Give the objective of each sample, with your four constants."
    answer = function_answer("ratios, advantages", words, body, imports="import torch")
    example = torch.tensor([3.0, 3.0, 0.5, 9.0]), torch.tensor([1.0, -1.0, -1.0, -5.0])
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 15 minutes.*

Write the clipped surrogate objective of each sample, with four constants of your own:

- the interval of the clip goes from 1 − **{low}** to 1 + **{high}**;
- advantages count up to a size of **{most}**, in both directions;
- for negative advantages the objective never falls below **{bound}** times the advantage as it
  counts.

`ratios` carry the gradient, `advantages` are constants; both have the same shape, and so has
the result. Put the four constants into the function.

To compare: ratios 3, 3, 0.5 and 9 with advantages 1, −1, −1 and −5 give
{shown(run_solution(answer)(*example))}."""
    title = "A clip of your own"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Two objectives, two sums and one slope of a batch of five."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        old = [two_digits(random, 0.2, 0.6) for _ in range(5)]
        constants = {
            "old": old,
            "new": [two_digits(random, 0.5 * p, 1.5 * p) for p in old],
            "advantages": [random.choice((-1, 1)) * two_digits(random, 0.4, 2.5) for _ in old],
            "epsilon": two_digits(random, 0.12, 0.32),
        }
        numbers = solved(**constants)
        # the last sample must have a slope, and the clip something to hold and something to leave
        outside, silent = held(**constants)
        busy = outside > silent > 0 and numbers["e"] != 0 and off_edges(**constants)
        return constants, numbers if busy else dict.fromkeys("abcde", 0.0)

    constants, numbers = until_tidy(draw)
    old, new, advantages, epsilon = constants.values()
    batch = table(
        ["sample", *"12345"],
        [["old probability", *old], ["new probability", *new], ["advantage", *advantages]],
    )
    text = f"""
A batch has five samples, and ε is **{epsilon}**.

{batch}

- **a**: the mean of the clipped surrogate objective over the batch;
- **b**: the mean of the plain surrogate objective, ratio times advantage;
- **c**: the sum of the ratios of those samples that lie outside the interval;
- **d**: the sum of the advantages of those samples whose gradient the clip has taken away;
- **e**: the slope of the *loss* (minus the mean of the clipped objective) by the
  log-probability of sample 5. The ratio is the exp of a difference: how fast does it change
  with the log-probability?"""
    return numbers_item(
        exercise,
        title="Five samples by hand",
        difficulty=2,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def held(
    *, old: list[float], new: list[float], advantages: list[float], epsilon: float
) -> tuple[float, float]:
    """Give the fraction outside, and the fraction without gradient."""
    rows = (torch.tensor(row, dtype=torch.float64) for row in (new, old, advantages))
    log_probs, log_probs_old, kept = (row if i == 2 else row.log() for i, row in enumerate(rows))
    outside, silent = clip_fractions(log_probs, log_probs_old, kept, clip_epsilon=epsilon)
    return float(outside), float(silent)


def off_edges(
    *, old: list[float], new: list[float], advantages: list[float], epsilon: float
) -> bool:
    """Whether no ratio lies so near to an edge that rounding it moves it across."""
    ratios = [b / a for a, b in zip(old, new, strict=True)]
    return all(abs(abs(ratio - 1) - epsilon) > 0.02 for ratio in ratios)


def solved(
    *, old: list[float], new: list[float], advantages: list[float], epsilon: float
) -> dict[str, float]:
    """Give the exact numbers."""
    log_probs_old, log_probs = (torch.tensor(row, dtype=torch.float64).log() for row in (old, new))
    log_probs.requires_grad_()
    kept = torch.tensor(advantages, dtype=torch.float64)
    ratios = (log_probs - log_probs_old).exp()
    objective = clipped_surrogate(ratios, kept, clip_epsilon=epsilon).mean()
    (slopes,) = torch.autograd.grad(-objective, log_probs)
    outside = (ratios - 1).abs() > epsilon
    return {
        "a": objective.item(),
        "b": (ratios * kept).mean().item(),
        "c": ratios[outside].sum().item(),
        "d": kept[outside & (slopes == 0)].sum().item(),
        "e": slopes[-1].item(),
    }
