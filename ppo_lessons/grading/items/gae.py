"""Lesson 06: surprises that are cut off, and four rows by hand."""

from random import Random
from typing import Any

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.gae import compute_gae
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    column,
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
    """Advantages by GAE whose TD errors are cut off before they are summed."""

    def draw() -> tuple[dict[str, float], list[float]]:
        gamma, gae_lambda = round(random.uniform(0.75, 0.98), 3), random.uniform(0.35, 0.95)
        made = {
            "gamma": gamma,
            "gae_lambda": round(gae_lambda, 3),
            "most": two_digits(random, 1.2, 2.8),
        }
        discount, most = gamma * made["gae_lambda"], made["most"]
        sums = [most * (1 + discount), most * (1 - discount)]
        return made, [sign * each for sign in (-1, 1) for each in (most, *sums)]

    constants = until_printable(draw)
    gamma, gae_lambda, most = constants.values()
    body = f"""
future = torch.where(terminated, 0.0, next_values)
surprises = (rewards + {gamma} * future - values).clamp(-{most}, {most})
ended = terminated | truncated
advantages, following = [], torch.zeros_like(rewards[0])
for t in reversed(range(len(rewards))):
    following = surprises[t] + {gamma} * {gae_lambda} * following * ~ended[t]
    advantages.insert(0, following)
return torch.stack(advantages)
"""
    signature = "rewards, values, next_values, terminated, truncated"
    words = "Give the advantages, with surprises that are cut off."
    answer = function_answer(signature, words, body, imports="import torch")
    example = (
        column([1.0, 9.0, 1.0]),
        column([2.0, 1.0, 3.0]),
        column([1.0, 4.0, 5.0]),
        column([False, False, False]),
        column([False, True, False]),
    )
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 15 minutes.*

One huge reward can upset a whole batch. Write the advantages of GAE with γ = **{gamma}** and λ
= **{gae_lambda}**, in which each TD error is cut off at −**{most}** and +**{most}** before the
sum is formed.

- All five arguments have shape `[T, N]`, and so has the result. `next_values[t]` is V of the
  state that step t reached, before any reset.
- `terminated` and `truncated` mean what they mean in the course: after which of them does a
  future count, and over which of them does the sum go on?
- Put the three constants into the function.

To compare: rewards 1, 9, 1, values 2, 1, 3, next values 1, 4, 5, truncated after the second
step, give {shown(run_solution(answer)(*example))}."""
    title = "Surprises that are cut off"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Four advantages and a return; one game ends on the way, the other is cut by the rollout."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "rewards": [two_digits(random, -2.0, 3.0) for _ in range(4)],
            "values": [two_digits(random, -2.0, 3.0) for _ in range(4)],
            "after": two_digits(random, 0.5, 3.0),
            "end": random.randint(1, 2),
            "gamma": two_digits(random, 0.7, 0.97),
            "gae_lambda": two_digits(random, 0.4, 0.95),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    rewards, values, after, end, gamma, gae_lambda = constants.values()
    rows = table(
        ["row", *"0123"],
        [
            ["reward", *rewards],
            ["value", *values],
            ["terminated", *(t == end for t in range(4))],
        ],
    )
    text = f"""
One environment, four steps. After row 3 the
rollout stops while the game goes on; the critic gives the state that was reached **{after}**. γ
is **{gamma}** and λ is **{gae_lambda}**.

{rows}

- **a** to **d**: the advantages of the rows 0 to 3;
- **e**: the critic's target in row 0, the λ-return."""
    return numbers_item(
        exercise,
        title="Four rows by hand",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    rewards: list[float],
    values: list[float],
    after: float,
    end: int,
    gamma: float,
    gae_lambda: float,
) -> dict[str, float]:
    """Give the exact numbers."""
    advantages = compute_gae(
        column(rewards),
        column(values),
        column([*values[1:], after]),
        column([t == end for t in range(4)]),
        column([False] * 4),
        gamma=gamma,
        gae_lambda=gae_lambda,
    )[:, 0].tolist()
    return {**dict(zip("abcd", advantages, strict=True)), "e": advantages[0] + values[0]}
