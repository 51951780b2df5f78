"""Lesson 13: a sampler with a floor, and a small batch of responses by hand."""

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

WORDS = ("first", "second", "third")


def own_function(exercise: Exercise, random: Random) -> Item:
    """Log-probabilities at a temperature, with a third word of a fixed logit, and a floor."""

    def draw() -> tuple[dict[str, float], list[float]]:
        made = {
            "temperature": two_digits(random, 0.41, 0.89),
            "third": two_digits(random, -0.9, 0.9),
            "floor": -two_digits(random, 1.6, 2.4),
        }
        return made, [made["floor"]]

    constants = until_printable(draw)
    temperature, third, floor = constants.values()
    body = f"""
words = torch.stack([chosen, other, torch.full_like(chosen, {third})])
log_probs = (words / {temperature}).log_softmax(dim=0)[0]
return log_probs.clamp(min={floor})
"""
    words = "Give the log-probability of each chosen word, with your three constants."
    answer = function_answer("chosen, other", words, body, imports="import torch")
    example = torch.tensor([1.0, 0.0, -2.0]), torch.tensor([0.0, 0.5, 2.0])
    text = f"""
*Difficulty 3 of 5, importance 4 of 5, 12 minutes.*

Your sampler knows three words. At each place it draws at temperature **{temperature}**, and the
logit of the third word is always **{third}**. The third word is never the one that was chosen.

- `chosen` holds the logit of the word that was chosen at each place, `other` the logit of the other
  one of the first two. Both carry a gradient; they have the same shape, and so has the result.
- Give the log-probability of the chosen word.
- At last, a log-probability below **{floor}** counts as {floor}, and has no gradient.

Put the three constants into the function.

To compare: chosen 1, 0 and −2 with other 0, 0.5 and 2 give
{shown(run_solution(answer)(*example))}.""".replace("**-", "**−").replace("as -", "as −")
    title = "A sampler with a floor"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """A sharper probability, two ratios, and two ways of taking a mean."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        first = two_digits(random, 0.5, 0.62)
        second = two_digits(random, 0.26, 0.33)
        constants = {
            "probabilities": [first, second, round(1 - first - second, 2)],
            "sharpness": random.choice((1.25, 1.6, 2.5)),
            "columns": random.randint(9, 16),
            "lengths": [random.randint(2, 4), random.randint(5, 6), random.randint(7, 8)],
            "entropies": [two_digits(random, 0.2, 0.6), two_digits(random, 0.8, 1.2), 1.5],
        }
        constants["entropies"][2] = two_digits(random, 1.4, 1.9)
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    probabilities, sharpness, columns, lengths, entropies = constants.values()
    rows = table(["word", *WORDS], [["probability", *probabilities]])
    batch = table(
        ["response", *WORDS],
        [["tokens, EOS included", *lengths], ["mean entropy of its tokens (nats)", *entropies]],
    )
    text = f"""
At one place a model gives three words these probabilities, at temperature 1:

{rows}

The sampler divides all logits by the temperature 1 / **{sharpness:g}**.

- **a**: with what probability does it draw the first word?
- **b**: whoever scores has forgotten the temperature. What is the ratio of the third word?
- **c**: another sampler works at temperature 1 and draws among the two likeliest words only. What
  is the mean of the log-ratio over its draws (nats)?

Three responses lie in rows of **{columns}** columns:

{batch}

- **d**: the mean entropy over all tokens that were drawn (nats);
- **e**: what comes out if somebody averages over all columns, where the padding holds 0 (nats)."""
    return numbers_item(
        exercise,
        title="A batch by hand",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    probabilities: list[float],
    sharpness: float,
    columns: int,
    lengths: list[int],
    entropies: list[float],
) -> dict[str, float]:
    """Give the exact numbers."""
    plain = torch.tensor(probabilities, dtype=torch.float64)
    sharp = (sharpness * plain.log()).softmax(dim=-1)
    total = sum(length * entropy for length, entropy in zip(lengths, entropies, strict=True))
    return {
        "a": sharp[0].item(),
        "b": (plain[2] / sharp[2]).item(),
        "c": plain[:2].sum().log().item(),
        "d": total / sum(lengths),
        "e": total / (columns * len(lengths)),
    }
