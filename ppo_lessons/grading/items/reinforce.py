"""Lesson 01: sums for somebody who hates losses, and a game of two rooms."""

from math import log
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    column,
    function_answer,
    numbers_item,
    run_solution,
    shown,
    table,
    two_digits,
    two_rooms,
    until_printable,
    until_tidy,
)
from ppo_lessons.mdp import (
    advantages,
    expected_return,
    policy_gradient,
    softmax_policy,
    state_values,
    usual_update,
)


def own_function(exercise: Exercise, random: Random) -> Item:
    """Rewards-to-go in which a loss weighs more, and only the largest part of a gain counts."""

    def draw() -> tuple[dict[str, float], list[float]]:
        gamma, most = round(random.uniform(0.71, 0.97), 3), two_digits(random, 1.1, 2.6)
        made = {"gamma": gamma, "dislike": two_digits(random, 1.3, 2.9), "most": most}
        return made, [most, most * (1 + gamma)]

    constants = until_printable(draw)
    gamma, dislike, most = constants.values()
    body = f"""
felt = torch.where(rewards < 0, {dislike} * rewards, rewards.clamp(max={most}))
sums, following = [], torch.zeros_like(felt[0])
for t in reversed(range(len(felt))):
    following = felt[t] + {gamma} * following * ~ended[t]
    sums.insert(0, following)
return torch.stack(sums)
"""
    words = "Give what each step feels like from there on."
    answer = function_answer("rewards, ended", words, body, imports="import torch")
    example = column([1.0, -2.0, 3.0]), column([False, True, True])
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 15 minutes.*

Somebody hates losses. A negative reward counts **{dislike} times**; of a positive one
everything beyond **{most}** is not noticed. Write the sums of what they feel: for each step
what it feels like, and γ = **{gamma}** times what follows, to the end of the episode.

- `rewards` and `ended`, `[T, N]`: N environments side by side; `ended` is True on the last step
  of an episode, behind which another one begins.
- The result has the same shape. Put the three constants into the function.

To compare: rewards 1, −2, 3 in one environment, an episode's end after the second and the
third, give {shown(run_solution(answer)(*example))}."""
    title = "Felt sums"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Values, an advantage and two slopes of a game that has one logit."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "stop_a": two_digits(random, -1.0, 1.0),
            "go_a": two_digits(random, -2.0, 2.0),
            "stop_b": two_digits(random, -2.0, 2.0),
            "go_b": two_digits(random, -3.0, 3.0),
            "p": two_digits(random, 0.15, 0.85),
            "gamma": two_digits(random, 0.5, 0.95),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    stop_a, go_a, stop_b, go_b, p, gamma = constants.values()
    pays = table(["room", "stop", "go"], [["A", stop_a, go_a], ["B", stop_b, go_b]])
    text = f"""
A game begins in room A. To *stop* ends it; to *go* leads to room B. There
it ends whatever is done. This is what each choice pays:

{pays}

Both rooms look alike, so the policy has one parameter: a logit z, which gives the probability p
= 1 / (1 + e⁻ᶻ) of going on, in either room. At the moment p = **{p}**. The discount is γ =
**{gamma}**.

- **a**: V(B), the mean of what B pays;
- **b**: V(A), discounted;
- **c**: the advantage of going on, at A;
- **d**: the slope of the discounted J by z (dp/dz = p·(1 − p));
- **e**: the usual update, the mean of Σ ∂log π(a_t)/∂z · G_t with G_t the discounted
  reward-to-go; it forgets the γᵗ in front of the second step."""
    return numbers_item(
        exercise,
        title="Two rooms that look alike",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *, stop_a: float, go_a: float, stop_b: float, go_b: float, p: float, gamma: float
) -> dict[str, float]:
    """Solve the game exactly."""
    mdp = two_rooms(stop_a, go_a, stop_b, go_b, alike=True)
    logits = torch.tensor([[0.0, log(p / (1 - p))]], dtype=torch.float64)
    policy = softmax_policy(mdp, logits)
    return {
        "a": float(state_values(mdp, policy, gamma=gamma)[1]),
        "b": float(expected_return(mdp, policy, gamma=gamma)),
        "c": float(advantages(mdp, policy, gamma=gamma)[0, 1]),
        "d": float(policy_gradient(mdp, logits, gamma=gamma)[0, 1]),
        "e": float(usual_update(mdp, logits, gamma=gamma)[0, 1]),
    }
