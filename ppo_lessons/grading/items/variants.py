"""Lesson 15: a baseline of one's own for a group, and a group by numbers."""

from math import exp
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
    """A baseline between the others' mean and a fixed score, a softened spread, mild blame."""
    constants = {
        "share": two_digits(random, 0.61, 0.89),
        "usual": two_digits(random, 0.21, 0.49),
        "added": two_digits(random, 0.31, 0.79),
        "blame": two_digits(random, 0.31, 0.79),
    }
    share, usual, added, blame = constants.values()
    body = f"""
others = (scores.sum() - scores) / (len(scores) - 1)
baseline = {share} * others + (1 - {share}) * {usual}
advantages = (scores - baseline) / (scores.std() + {added})
return torch.where(advantages < 0, {blame} * advantages, advantages)
"""
    words = "Compare each answer to one prompt, in your way."
    answer = function_answer("scores", words, body, imports="import torch")
    example = (torch.tensor([1.0, 0.0, 0.5]),)
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 12 minutes.*

A method of your own, for the answers to one prompt. The baseline of an answer is **{share}** times
the mean of the *others*, plus 1 − {share} times a usual score of **{usual}**. What is left of its
score is divided by the spread of all answers (n − 1 in the denominator) plus **{added}**. At last
a negative result is multiplied by **{blame}**.

Give one advantage for each answer.

- `scores` holds at least two scores, and the result is as long.
- Put the four constants into the function.

To compare: scores of 1, 0 and 0.5 have the advantages {shown(run_solution(answer)(*example))}."""
    title = "A baseline of your own"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A group, silent groups, two lengths, and a pair."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        size = random.randint(7, 16)
        constants = {
            "size": size,
            "right": random.randint(2, size - 3),
            "chance": two_digits(random, 0.81, 0.93),
            "drawn": random.randint(4, 7),
            "short": random.randint(5, 11),
            "long": random.randint(37, 89),
            "beta": two_digits(random, 0.15, 0.45),
            "up": two_digits(random, 0.4, 1.9),
            "down": two_digits(random, -3.9, -0.7),
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    size, right, chance, drawn, short, long, beta, up, down = constants.values()
    text = f"""
Of **{size}** answers to a prompt **{right}** are right (score 1), the others are wrong (score 0).

- **a**: GRPO's advantage of a right one, with nothing added to the spread;
- **b**: RLOO's advantage of a wrong one;
- **c**: another prompt is answered rightly with probability **{chance}**. Which share of groups of
  **{drawn}** has equal scores?
- **d**: two wrong answers have **{short}** and **{long}** tokens. In the mean of means, how many
  times less does a token of the long one weigh?
- **e**: DPO at β = **{beta}**: log π − log π_ref is **{up}** for the chosen and **{down}** for the
  rejected answer. With which probability do the implied rewards prefer the chosen one?"""
    return numbers_item(
        exercise,
        title="A group by numbers",
        difficulty=2,
        importance=4,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    size: int,
    right: int,
    chance: float,
    drawn: int,
    short: int,
    long: int,
    beta: float,
    up: float,
    down: float,
) -> dict[str, float]:
    """Give the exact numbers."""
    spread = (right * (size - right) / (size * (size - 1))) ** 0.5
    return {
        "a": (1 - right / size) / spread,
        "b": -right / (size - 1),
        "c": chance**drawn + (1 - chance) ** drawn,
        "d": long / short,
        "e": 1 / (1 + exp(-beta * (up - down))),
    }
