"""Lesson 02: softened weights with a ceiling, and three arms under two policies."""

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
    until_printable,
    until_tidy,
)
from ppo_lessons.mdp import bandit, expected_return, state_kl


def own_function(exercise: Exercise, random: Random) -> Item:
    """Ratios to a power, under a ceiling that also stops the gradient."""

    def draw() -> tuple[dict[str, float], list[float]]:
        power, most = two_digits(random, 0.35, 0.85), two_digits(random, 1.6, 3.4)
        gain = two_digits(random, 0.5, 1.9)
        return {"power": power, "most": most, "gain": gain}, [gain * most]

    constants = until_printable(draw)
    power, most, gain = constants.values()
    body = f"""
weights = ({power} * (log_probs - log_probs_old.detach())).exp()
return {gain} * weights.clamp(max={most})
"""
    words = "Give the softened weight of each sample."
    answer = function_answer("log_probs, log_probs_old", words, body)
    example = torch.tensor([-1.0, -0.2, -3.0]), torch.tensor([-1.0, -3.0, -1.0])
    text = f"""
*Difficulty 2 of 5, importance 4 of 5, 10 minutes.*

Ratios that explode are often tamed. Yours are tamed twice: take the importance ratio to the
power **{power}**, cut it off at **{most}** from above, then multiply by **{gain}**.

- `log_probs` are those of the policy now; the gradient flows through them, and beyond the
  cut-off there is none. `log_probs_old` were written down while sampling: they are constants.
- Both have the same shape, whatever it is. The result has it too. Put the three constants into
  the function.

To compare: log-probabilities −1, −0.2, −3 that were −1, −3, −1 give
{shown(run_solution(answer)(*example))}."""
    title = "Softened weights"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A ratio, a mean, a variance, a share and a distance."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "old": shares(random),
            "new": shares(random),
            "pays": [two_digits(random, -2.0, 4.0) for _ in range(3)],
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    arms = table(
        ["", "arm 1", "arm 2", "arm 3"],
        [
            ["old policy", *constants["old"]],
            ["new policy", *constants["new"]],
            ["pay", *constants["pays"]],
        ],
    )
    text = f"""
A bandit has three arms, each with a fixed pay.
The samples are the old policy's, and you want to know the new one.

{arms}

- **a**: the ratio of a sample of arm 2;
- **b**: the mean of ratio times pay over the old policy's samples;
- **c**: the variance of ratio times pay over the old policy's samples, exactly;
- **d**: which share of a large batch is left, by the effective sample size: 1 / E[ratio²];
- **e**: KL(π_old ‖ π_new), in nats."""
    return numbers_item(
        exercise,
        title="Three arms, two policies",
        difficulty=3,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def shares(random: Random) -> list[float]:
    """Draw three probabilities with two digits."""
    first, second = random.randint(15, 60), random.randint(10, 25)
    found = [first / 100, second / 100, (100 - first - second) / 100]
    random.shuffle(found)
    return found


def solved(*, old: list[float], new: list[float], pays: list[float]) -> dict[str, float]:
    """Give the exact numbers."""
    mdp = bandit(pays)
    policy_old, policy = (torch.tensor([row], dtype=torch.float64) for row in (old, new))
    ratios = policy / policy_old
    weighted = (ratios * mdp.rewards)[0]
    mean = float(expected_return(mdp, policy, gamma=1.0))
    return {
        "a": float(ratios[0, 1]),
        "b": mean,
        "c": float((policy_old[0] * (weighted - mean) ** 2).sum()),
        "d": 1 / float((policy_old * ratios**2).sum()),
        "e": float(state_kl(policy_old, policy)[0]),
    }
