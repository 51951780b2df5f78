"""Lesson 05: a loss that minds one side more, and what a baseline leaves."""

from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.critic import explained_variance, value_loss
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
from ppo_lessons.mdp import bandit, score_table, softmax_policy


def own_function(exercise: Exercise, random: Random) -> Item:
    """A loss of a critic that minds guesses on one side more, and large errors less."""
    constants = {
        "over": two_digits(random, 0.4, 2.9),
        "under": two_digits(random, 0.4, 2.9),
        "knee": two_digits(random, 0.6, 1.4),
    }
    over, under, knee = constants.values()
    body = f"""
errors = values - returns.detach()
sizes = errors.abs()
losses = torch.where(sizes < {knee}, errors**2 / 2, {knee} * (sizes - {knee} / 2))
return torch.where(errors > 0, {over} * losses, {under} * losses).mean()
"""
    words = "Give the loss of a critic that minds one side more."
    answer = function_answer("values, returns", words, body, imports="import torch")
    example = torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0.5, 1.5, 6.0])
    text = f"""
*Difficulty 3 of 5, importance 3 of 5, 15 minutes.*

Write the loss of a critic whose errors do not count alike.

- An error up to **{knee}** costs half its square. A larger one costs {knee} times what is left
  of its size when half of {knee} is taken away, so the curve goes on as a straight line.
- A guess that is too high counts **{over}** times, one that is too low **{under}** times.
- The loss is the mean over all samples, a tensor without dimensions.

`values` carry the gradient, `returns` are constants; both have the same shape. Put the three
constants into the function.

To compare: three values of 1 with returns 0.5, 1.5 and 6 give
{shown(run_solution(answer)(*example))}."""
    title = "A critic that minds one side"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A loss, a grade and a baseline of four games, then three numbers of a bandit."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        returns = [two_digits(random, -2.0, 4.0) for _ in range(4)]
        constants = {
            "values": [round(each + random.uniform(-0.9, 0.9), 2) for each in returns],
            "returns": returns,
            "p": two_digits(random, 0.12, 0.88),
            "pays": [two_digits(random, -1.0, 3.0) for _ in range(2)],
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    values, returns, p, pays = constants.values()
    games = table(["game", *"1234"], [["value", *values], ["return", *returns]])
    text = f"""
**Four games** from one start, with what the
critic said before and what came:

{games}

- **a**: the critic's loss, half the mean squared error;
- **b**: its explained variance, with the returns as targets;
- **c**: the leave-one-out baseline of game 1: the mean return of the others.

**Two arms.** Arm 1 pays {pays[0]:g}, arm 2 pays {pays[1]:g}, always. The policy has one logit z
and takes arm 2 with probability p = 1 / (1 + e⁻ᶻ) = **{p}**. One sample estimates the gradient
by ∂log π(a)/∂z · (pay − b), with a baseline b.

- **d**: the value, the mean pay;
- **e**: the b that makes the variance of the estimate smallest;
- **f**: the variance of the estimate if b is the value."""
    return numbers_item(
        exercise,
        title="Games and arms by hand",
        difficulty=3,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *, values: list[float], returns: list[float], p: float, pays: list[float]
) -> dict[str, float]:
    """Give the exact numbers."""
    guessed, came = (torch.tensor(row, dtype=torch.float64) for row in (values, returns))
    mdp = bandit(pays)
    logits = torch.tensor([[0.0, p / (1 - p)]], dtype=torch.float64)
    logits[0, 1] = logits[0, 1].log()
    chances = softmax_policy(mdp, logits)[0]
    scores = score_table(mdp, logits)[0, :, 1]  # by the logit of arm 2
    rewards = mdp.rewards[0]
    value = (chances * rewards).sum()
    best = (chances * scores**2 * rewards).sum() / (chances * scores**2).sum()
    estimates = scores * (rewards - value)
    mean = (chances * estimates).sum()
    return {
        "a": float(value_loss(guessed, came)),
        "b": float(explained_variance(guessed, came)),
        "c": float(came[1:].mean()),
        "d": float(value),
        "e": float(best),
        "f": float((chances * (estimates - mean) ** 2).sum()),
    }
