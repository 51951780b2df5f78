"""Lesson 03: a penalty that begins late, and a fence around a game of two rooms."""

from math import sqrt
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
    table,
    two_digits,
    two_rooms,
    until_tidy,
)
from ppo_lessons.mdp import mean_kl, state_kl, state_visits


def own_function(exercise: Exercise, random: Random) -> Item:
    """The surrogate as a loss, with a price on the part of the KL that lies beyond a limit."""
    constants = {
        "price": two_digits(random, 0.6, 4.5),
        "limit": round(random.uniform(0.012, 0.089), 3),
        "weight": two_digits(random, 0.3, 1.9),
    }
    price, limit, weight = constants.values()
    body = f"""
log_ratios = log_probs - log_probs_old.detach()
ratios = log_ratios.exp()
kl = (ratios - 1 - log_ratios).mean()
return -{weight} * (ratios * advantages.detach()).mean() + {price} * (kl - {limit}).clamp(min=0)
"""
    words = "Give the loss with a price that begins late."
    answer = function_answer("log_probs, log_probs_old, advantages", words, body)
    example = torch.tensor([-0.5, -1.5]), torch.tensor([-1.0, -1.0]), torch.tensor([1.0, -2.0])
    text = f"""
*Difficulty 3 of 5, importance 3 of 5, 15 minutes.*

Write a loss whose price begins late. The KL is estimated by the mean of ρ − 1 − log ρ over the
samples, with ρ the importance ratio. Up to **{limit}** nats it costs nothing; each nat beyond
costs **{price}**. The surrogate, the mean of ρ·Â, counts **{weight}** times; it is to become
large.

- The gradient flows through `log_probs`; `log_probs_old` and `advantages` are constants.
- All three have the same shape. What comes back is a tensor without dimensions. Put the three
  constants into the function.

To compare: log-probabilities −0.5 and −1.5 that were both −1, with advantages 1 and −2, give
{shown(run_solution(answer)(*example))}."""
    title = "A price that begins late"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Distances in two rooms, their mean, and the length of a step."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "old": [two_digits(random, 0.25, 0.75) for _ in range(2)],
            "new": [two_digits(random, 0.1, 0.9) for _ in range(2)],
            "gamma": two_digits(random, 0.6, 0.95),
            "fence": round(random.uniform(0.011, 0.049), 3),
            "pay": two_digits(random, 1.5, 9.0),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    old, new, gamma, fence, pay = constants.values()
    rooms = table(
        ["probability of going on", "in A", "in B"],
        [["old policy", *old], ["new policy", *new]],
    )
    text = f"""
A game begins in room A. To *stop* ends it; to
*go* leads to room B. There it ends whatever is done. Each room has a logit of its own.

{rooms}

- **a**: KL(π_old ‖ π_new) in room A, in nats;
- **b**: the same in room B;
- **c**: how often the old policy visits B in an episode, a visit one step later counting γ =
  **{gamma}** times;
- **d**: the mean KL: rooms weighted by those visits of the old policy, divided by their sum;

Now room A alone, with every episode in it. Going on pays **{pay}** more than stopping, so the
mean pay rises by pay·F for each unit of the logit, where F = p·(1 − p) is the Fisher number at
the old policy. Replace the KL by the parabola ½·F·x², where x is the step of the logit.

- **e**: the step x that is best inside a fence of **{fence}** nats;
- **f**: the price β at which the best step of pay·F·x − β·½·F·x² is the same."""
    return numbers_item(
        exercise,
        title="A fence around two rooms",
        difficulty=3,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *, old: list[float], new: list[float], gamma: float, fence: float, pay: float
) -> dict[str, float]:
    """Give the exact numbers."""
    mdp = two_rooms(0.0, 0.0, 0.0, 0.0)
    policy_old, policy = (
        torch.tensor([[1 - p, p] for p in row], dtype=torch.float64) for row in (old, new)
    )
    kl = state_kl(policy_old, policy)
    step = sqrt(2 * fence / (old[0] * (1 - old[0])))
    return {
        "a": float(kl[0]),
        "b": float(kl[1]),
        "c": float(state_visits(mdp, policy_old, gamma=gamma)[1]),
        "d": float(mean_kl(mdp, policy, policy_old, gamma=gamma)),
        "e": step,
        "f": pay / step,
    }
