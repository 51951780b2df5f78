"""Lesson 08: a bonus that fades, and the numbers of one's own run."""

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
    """The loss of a minibatch, whose entropy bonus fades during the run and has a ceiling."""
    constants = {
        "value_coef": two_digits(random, 0.2, 1.4),
        "first": round(random.uniform(0.11, 0.49), 3),
        "last": round(random.uniform(0.01, 0.09), 3),
        "enough": two_digits(random, 0.4, 1.05),
    }
    value_coef, first, last, enough = constants.values()
    body = f"""
entropy_coef = {first} + progress * ({last} - {first})
bonus = entropy_coef * entropy.clamp(max={enough})
return policy_loss + {value_coef} * value_loss - bonus
"""
    signature = "policy_loss, value_loss, entropy, *, progress"
    answer = function_answer(signature, "Add up what is minimised.", body)
    example = [torch.tensor(number) for number in (0.5, 2.0, 0.3)]
    text = f"""
*Difficulty 2 of 5, importance 3 of 5, 10 minutes.*

Write the one number that the optimiser minimises, for a run in which curiosity fades.

- The policy's loss has weight 1, the critic's **{value_coef}**.
- The weight of the entropy bonus falls on a straight line from **{first}** at the beginning of
  the run to **{last}** at its end. `progress`, a Python number from 0 to 1, says how much of
  the run is over.
- An entropy beyond **{enough}** nats earns no more than {enough} nats do, and has no gradient.

`policy_loss`, `value_loss` and `entropy` are tensors without dimensions, and so is the result.
Put the four constants into the function.

To compare: 0.5, 2 and 0.3 in the middle of the run give
{shown(run_solution(answer)(*example, progress=0.5))}."""
    title = "A bonus that fades"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Counts, a share of time and a price."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        constants = {
            "num_envs": random.randint(5, 40),
            "num_steps": random.randint(30, 250),
            "num_epochs": random.randint(3, 12),
            "num_minibatches": random.randint(3, 16),
            "total_steps": 1000 * random.randint(300, 2000),
            "step_ms": two_digits(random, 0.1, 3.0),
            "update_ms": two_digits(random, 3.0, 20.0),
            "few": 1000 * random.randint(50, 90),
            "many": 1000 * random.randint(15, 35),
            "epochs": [2, random.randint(8, 15)],
        }
        numbers = solved(**constants)
        sensible = 0.05 < numbers["e"] < 5 and 0.05 < numbers["d"] < 0.95
        return constants, numbers if sensible else dict.fromkeys(numbers, 0.0)

    constants, numbers = until_tidy(draw)
    envs, steps, epochs, minibatches, total, step, update, few, many, pair = constants.values()
    text = f"""
A run has **{envs}** environments, **{steps}**
steps of each per rollout, **{epochs}** epochs, **{minibatches}** minibatches and a budget of
**{total:,}** environment steps. An incomplete last iteration is left out.

- **a**: how many samples has one iteration?
- **b**: how many iterations has the run?
- **c**: how many steps of the optimiser does it take?
- **d**: an environment step (of one environment) costs {step:g} ms, a step of the optimiser
  {update:g} ms, and all else nothing. Which share of the time is spent on collecting, from 0 to
  1?
- **e**: with K = {pair[0]} epochs the task is solved after {few:,} environment steps, with K =
  {pair[1]} after {many:,}, all else as above. At which price of an environment step, in ms, are
  the two equally fast? (A step of the optimiser costs {update:g} ms. Count the iterations as
  the quotient of two numbers of samples, whole or not.)"""
    return numbers_item(
        exercise,
        title="The numbers of your run",
        difficulty=3,
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
    total_steps: int,
    step_ms: float,
    update_ms: float,
    few: int,
    many: int,
    epochs: list[int],
) -> dict[str, float]:
    """Count."""
    samples = num_envs * num_steps
    iterations = total_steps // samples
    updates = iterations * num_epochs * num_minibatches
    collecting = step_ms * iterations * samples
    per_step = [update_ms * num_minibatches * each / samples for each in epochs]
    return {
        "a": samples,
        "b": iterations,
        "c": updates,
        "d": collecting / (collecting + update_ms * updates),
        "e": (many * per_step[1] - few * per_step[0]) / (few - many),
    }
