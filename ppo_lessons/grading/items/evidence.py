"""Lesson 17: a judge with two kinds of error, and a release by numbers."""

from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.evidence import Count, mcnemar, pass_at_k, wilson
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
    """The success behind the labels of a judge who errs unequally."""
    constants = {
        "found": two_digits(random, 0.61, 0.89),
        "refused": two_digits(random, 0.71, 0.97),
        "floor": two_digits(random, 0.01, 0.09),
    }
    found, refused, floor = constants.values()
    body = f"""
shares = called / given
success = (shares - (1 - {refused})) / ({found} + {refused} - 1)
return success.clamp({floor}, 1)
"""
    words = "Give the success of each model behind the labels of your judge."
    answer = function_answer("called, given", words, body, imports="import torch")
    example = torch.tensor([30.0, 2.0, 40.0]), torch.tensor([60.0, 60.0, 40.0])
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 12 minutes.*

Your judge errs unequally. Of right answers it calls a share of **{found}** right; of wrong ones
it calls a share of **{refused}** wrong. Several models were labelled.

Give the success of each model, such that it is right on average.

- `called`: how many of its labels say "right"; `given`: how many labels it got. Both have the
  same shape, and so has the result.
- At last, a success below **{floor}** counts as {floor}, and one above 1 as 1.
- Put the three constants into the function.

Begin with the share that this judge calls right if a share p of the answers is right.

To compare: 30 of 60, 2 of 60 and 40 of 40 give {shown(run_solution(answer)(*example))}."""
    title = "A judge who errs unequally"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Two models on the same prompts, a judge, and several tries."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        total = random.randint(131, 599)
        constants = {
            "total": total,
            "both": random.randint(total // 4, total // 2),
            "gained": random.randint(9, 25),
            "lost": random.randint(2, 8),
            "accuracy": two_digits(random, 0.7, 0.95),
            "called": two_digits(random, 0.55, 0.69),
            "samples": random.randint(9, 17),
            "hits": random.randint(2, 6),
            "tries": random.randint(2, 3),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    total, both, gained, lost, accuracy, called, samples, hits, tries = constants.values()
    text = f"""
Two models answer the same **{total}** prompts. **{both}** are solved by both, **{gained}** by the
candidate only, **{lost}** by the baseline only, the others by neither.

- **a**: the lower end of Wilson's interval for the candidate's success, with z = 2;
- **b**: McNemar's exact p-value, two-sided;
- **c**: the lower end of the interval of the difference, candidate minus baseline, on the same
  prompts, with z = 2 (variance with n in the denominator);
- **d**: a judge of accuracy **{accuracy}** calls a share of **{called}** of a third model's
  answers right. What is its success?
- **e**: the candidate gives **{samples}** answers to a prompt, **{hits}** of them right.
  pass@{tries}?"""
    return numbers_item(
        exercise,
        title="A release by numbers",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    total: int,
    both: int,
    gained: int,
    lost: int,
    accuracy: float,
    called: float,
    samples: int,
    hits: int,
    tries: int,
) -> dict[str, float]:
    """Give the exact numbers."""
    two = 0.9544997361036416  # the share of a normal's draws within two standard errors
    mean = (gained - lost) / total
    half = 2 * (((gained + lost) / total - mean**2) / total) ** 0.5
    return {
        "a": wilson(Count(both + gained, total), confidence=two).low,
        "b": mcnemar(gained, lost),
        "c": mean - half,
        "d": (called - (1 - accuracy)) / (2 * accuracy - 1),
        "e": pass_at_k(hits, samples, tries),
    }
