"""Lesson 07: a critic that is half believed, and five rows with two kinds of end."""

from random import Random
from typing import Any

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.gae import bootstrapped_returns, compute_gae
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.draw import (
    column,
    function_answer,
    numbers_item,
    run_solution,
    shown,
    table,
    two_digits,
    until_tidy,
)


def own_function(exercise: Exercise, random: Random) -> Item:
    """Returns whose guess for the rest counts in part: more at a cut, less at a time limit."""
    constants = {
        "gamma": round(random.uniform(0.75, 0.98), 3),
        "at_limit": two_digits(random, 0.25, 0.65),
        "at_cut": two_digits(random, 0.7, 0.97),
    }
    gamma, at_limit, at_cut = constants.values()
    body = f"""
following, returns = {at_cut} * next_values[-1], []
for t in reversed(range(len(rewards))):
    following = torch.where(truncated[t], {at_limit} * next_values[t], following)
    following = rewards[t] + {gamma} * torch.where(terminated[t], 0.0, following)
    returns.insert(0, following)
return torch.stack(returns)
"""
    signature = "rewards, next_values, terminated, truncated"
    words = "Give the returns, with guesses that count in part."
    answer = function_answer(signature, words, body, imports="import torch")
    example = (
        column([1.0, 2.0, 3.0]),
        column([5.0, 4.0, 6.0]),
        column([False, False, False]),
        column([False, True, False]),
    )
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 15 minutes.*

You believe your critic in part. Write the returns: for each step its reward, and γ =
**{gamma}** times what follows.

- After a step that is `terminated` nothing follows, whatever else is flagged.
- After a step that is `truncated` and not terminated, **{at_limit}** times `next_values` of
  that step follows.
- After the last row, if it has ended in neither way, **{at_cut}** times its `next_values`
  follows.
- After any other step follows the return of the next row.

All four arguments have shape `[T, N]`, and so has the result; `next_values[t]` is V of the
state that step t reached. Put the three constants into the function.

To compare: rewards 1, 2, 3 and next values 5, 4, 6, truncated after the second step, give
{shown(run_solution(answer)(*example))}."""
    title = "A critic that you believe in part"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Advantages around a true end, a time limit and the cut of the rollout."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "rewards": [two_digits(random, -1.0, 3.0) for _ in range(5)],
            "values": [two_digits(random, 0.5, 4.0) for _ in range(5)],
            "final": two_digits(random, 1.0, 4.0),
            "after": two_digits(random, 1.0, 4.0),
            "truncated_first": random.random() < 0.5,
            "gamma": two_digits(random, 0.7, 0.97),
            "gae_lambda": two_digits(random, 0.4, 0.95),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    rewards, values, final, after, truncated_first, gamma, gae_lambda = constants.values()
    ends = (3, 1) if truncated_first else (1, 3)  # terminated, truncated
    rows = table(
        ["row", *"01234"],
        [
            ["reward", *rewards],
            ["value", *values],
            ["terminated", *(t == ends[0] for t in range(5))],
            ["truncated", *(t == ends[1] for t in range(5))],
        ],
    )
    text = f"""
One environment, five steps, autoreset: behind an
end the next row belongs to a new episode. The critic gives the last observation of the
truncated episode **{final}**, and the state that row 4 reached **{after}**. γ is **{gamma}**
and λ is **{gae_lambda}**.

{rows}

- **a**: the advantage of row 0;
- **b**: the advantage of row 2;
- **c**: the advantage of row 3;
- **d**: the advantage of row 4;
- **e**: the return of row 0 as lesson 07 computes it, with a guess for the rest and no λ."""
    return numbers_item(
        exercise,
        title="Two kinds of end by hand",
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
    final: float,
    after: float,
    truncated_first: bool,
    gamma: float,
    gae_lambda: float,
) -> dict[str, float]:
    """Give the exact numbers."""
    true_end, limit = (3, 1) if truncated_first else (1, 3)
    next_values = [*values[1:], after]
    next_values[limit] = final
    given = column(rewards), column(next_values)
    ends = column([t == true_end for t in range(5)]), column([t == limit for t in range(5)])
    advantages = compute_gae(
        given[0], column(values), given[1], *ends, gamma=gamma, gae_lambda=gae_lambda
    )[:, 0].tolist()
    returns = bootstrapped_returns(given[0], *ends, given[1], gamma=gamma)
    return {
        "a": advantages[0],
        "b": advantages[2],
        "c": advantages[3],
        "d": advantages[4],
        "e": float(returns[0, 0]),
    }
