"""Lesson 09: a bell with two widths, and an action of two dimensions by hand."""

from math import log, pi
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.continuous import gaussian_kl
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
from ppo_lessons.networks import gaussian_entropies, gaussian_log_probs


def own_function(exercise: Exercise, random: Random) -> Item:
    """A log-density with one width to each side, in which far actions are as far as a limit."""

    def draw() -> tuple[dict[str, float], list[float]]:
        made = {
            "below": two_digits(random, 0.3, 0.9),
            "above": two_digits(random, 1.0, 1.9),
            "most": two_digits(random, 1.2, 2.1),
        }
        peak = 0.5 * log(2 / pi) - log(made["below"] + made["above"])
        return made, [peak - made["most"] ** 2 / 2]

    constants = until_printable(draw)
    below, above, most = constants.values()
    body = f"""
sigmas = torch.full_like(means, {above}).masked_fill(actions < means, {below})
distances = ((actions - means) / sigmas).clamp(-{most}, {most})
return 0.5 * math.log(2 / math.pi) - math.log({below} + {above}) - 0.5 * distances**2
"""
    words = "Give the log-density of each action, with your three constants."
    answer = function_answer("actions, means", words, body, imports="import math\n\nimport torch")
    example = torch.tensor([0.5, 0.0, 9.0]), torch.tensor([0.0, 0.5, 0.0])
    text = f"""
*Difficulty 3 of 5, importance 3 of 5, 15 minutes.*

A motor that is dearer in one direction is given a policy with two widths: below its mean the
bell falls off with σ = **{below}**, above it with σ = **{above}**. The two halves meet at the
mean, and the area under both together is 1 (until the last rule cuts it off).

- Give the logarithm of the density of each action.
- At last, an action that is farther than **{most}** of its own σ from the mean counts as if it were
  exactly that far, and has no gradient.
- `actions` and `means` both carry a gradient; they have one dimension and the same shape, and
  so has the result. Put the three constants into the function.

A hint for the height of the peak: a whole bell of width σ has area σ·√(2π) times its height.

To compare: actions 0.5, 0 and 9 with means 0, 0.5 and 0 give
{shown(run_solution(answer)(*example))}."""
    title = "A bell with two widths"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A density, a ratio, a distance and an entropy, and what storing the cut action does."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        limit = two_digits(random, 1.1, 1.9)
        constants = {
            "means": [two_digits(random, -1.0, 1.0), two_digits(random, -1.0, 1.0)],
            "sigmas": [two_digits(random, 0.4, 1.3), two_digits(random, 0.4, 1.3)],
            "action": [two_digits(random, -1.0, 1.0), two_digits(random, limit + 0.1, limit + 0.9)],
            "step": two_digits(random, 0.11, 0.49),
            "limit": limit,
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    means, sigmas, action, step, limit = constants.values()
    rows = table(
        ["", "first", "second"],
        [["mean", *means], ["σ", *sigmas], ["action drawn", *action]],
    )
    text = f"""
A Gaussian policy has drawn an action of two dimensions:

{rows}

The environment cuts each dimension to ±**{limit}**. Then the first mean is moved up by
**{step}**; all else stays as it is.

- **a**: the log-probability of the action, before the step (nats);
- **b**: the ratio of the action, after the step;
- **c**: the KL from the policy before the step to the one after it (nats);
- **d**: the entropy of the policy (nats);
- **e**: somebody has stored the action that was *sent*, beside the log-probability of the one
  that was drawn. What is the ratio of this sample before the step?

Logarithms are natural ones."""
    return numbers_item(
        exercise,
        title="Two dimensions by hand",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    means: list[float],
    sigmas: list[float],
    action: list[float],
    step: float,
    limit: float,
) -> dict[str, float]:
    """Give the exact numbers."""
    drawn, old, spread = (
        torch.tensor([row], dtype=torch.float64) for row in (action, means, sigmas)
    )
    new, log_stds = old + torch.tensor([[step, 0.0]], dtype=torch.float64), spread[0].log()
    log_prob_old = gaussian_log_probs(drawn, old, log_stds)
    sent = drawn.clamp(-limit, limit)
    return {
        "a": log_prob_old.item(),
        "b": (gaussian_log_probs(drawn, new, log_stds) - log_prob_old).exp().item(),
        "c": gaussian_kl(new, log_stds, old, log_stds).item(),
        "d": gaussian_entropies(log_stds).item(),
        "e": (gaussian_log_probs(sent, old, log_stds) - log_prob_old).exp().item(),
    }
