"""Lesson 14: a price of one's own, and an iteration of RLHF by hand."""

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
from ppo_lessons.rlhf import adaptive_beta, tilted_log_probs, token_gae, token_rewards


def own_function(exercise: Exercise, random: Random) -> Item:
    """What tokens pay for distance: a price, a part of it given back, and a dearest token."""

    def draw() -> tuple[dict[str, float], list[float]]:
        made = {
            "price": two_digits(random, 0.21, 0.79),
            "given_back": two_digits(random, 0.31, 0.79),
            "most": two_digits(random, 1.11, 1.69),
        }
        return made, [-made["price"] * made["most"]]

    constants = until_printable(draw)
    price, given_back, most = constants.values()
    body = f"""
distance = log_probs - log_probs_reference
counted = torch.where(distance > 0, distance.clamp(max={most}), {given_back} * distance)
return -{price} * counted
"""
    words = "Give what each token is paid for its distance, with your three constants."
    answer = function_answer("log_probs, log_probs_reference", words, body, imports="import torch")
    example = torch.tensor([-0.5, -2.0, -0.1]), torch.tensor([-1.0, -1.0, -4.1])
    text = f"""
*Difficulty 2 of 5, importance 4 of 5, 10 minutes.*

In your loop a token costs **{price}** per nat of distance log π − log π_ref, with two rules of your
own:

- A distance above **{most}** nats costs as much as {most} nats.
- A token that the reference likes better has a distance below 0, so it is paid. Of what it would
  be paid it gets only the share **{given_back}**.

`log_probs` and `log_probs_reference` have the same shape, and so has the result: the reward of each
token, without any score. Put the three constants into the function.

To compare: distances of 0.5, −1 and 4 nats give {shown(run_solution(answer)(*example))}."""
    title = "A price of your own"
    return Item(exercise=exercise, title=title, text=text, answer=answer, constants=constants)


def own_numbers(exercise: Exercise, random: Random) -> Item:
    """Rewards and an advantage, a preference, a tilted policy and a new price."""

    def draw() -> tuple[dict[str, Any], dict[str, float]]:
        target = two_digits(random, 3.1, 4.9)
        horizon = random.randint(101, 149)
        constants = {
            "log_probs": [-two_digits(random, 0.1, 1.4) for _ in range(3)],
            "reference": [-two_digits(random, 0.1, 3.4) for _ in range(3)],
            "values": [two_digits(random, 0.2, 1.4) for _ in range(3)],
            "score": two_digits(random, 1.6, 2.9),
            "beta": two_digits(random, 0.21, 0.59),
            "gae_lambda": two_digits(random, 0.6, 0.94),
            "judged": [two_digits(random, 1.1, 1.9), two_digits(random, -0.9, 0.9)],
            "share": two_digits(random, 0.11, 0.29),
            "pays": two_digits(random, 0.31, 0.79),
            "target": target,
            "kl": round(target * random.choice((0.4, 0.6, 1.5, 1.9)), 2),
            "answers": random.randint(150, 300),
            "horizon": horizon,
        }
        return constants, solved(**constants)

    constants, numbers = until_tidy(draw)
    (
        log_probs, reference, values, score, beta, gae_lambda, judged, share, pays, target, kl,
        answers, horizon,
    ) = constants.values()  # fmt: skip
    rows = table(
        ["token", "first", "second", "last"],
        [["log π", *log_probs], ["log π_ref", *reference], ["V before it", *values]],
    )
    text = f"""
An answer of three tokens:

{rows}

Its score is **{score}**, β is **{beta}**, γ is 1 and λ is **{gae_lambda}**.

- **a**: the sum of the rewards of the three tokens;
- **b**: the advantage of the first token;
- **c**: a judge scores two answers **{judged[0]}** and **{judged[1]}**. With which probability does
  a rater prefer the first, as it says?
- **d**: the reference gives one of two answers with probability **{share}**. That one is paid
  **{pays}**, the other 0. What is its probability under the policy that is best at your β?
- **e**: the target of the controller is **{target}** nats, the KL was **{kl}** nats, and
  **{answers}** answers were drawn; the horizon is **{horizon}**, and the error is cut to ± 0.2.
  What is the next β?""".replace("**-", "**−")
    return numbers_item(
        exercise,
        title="An iteration by hand",
        difficulty=3,
        importance=5,
        text=text,
        numbers=numbers,
        constants=constants,
    )


def solved(
    *,
    log_probs: list[float],
    reference: list[float],
    values: list[float],
    score: float,
    beta: float,
    gae_lambda: float,
    judged: list[float],
    share: float,
    pays: float,
    target: float,
    kl: float,
    answers: int,
    horizon: int,
) -> dict[str, float]:
    """Give the exact numbers."""
    new, old, expected = (
        torch.tensor([row], dtype=torch.float64) for row in (log_probs, reference, values)
    )
    scores = torch.tensor([score], dtype=torch.float64)
    mask = torch.ones_like(new, dtype=torch.bool)
    rewards = token_rewards(scores, new, old, mask, beta=beta)
    advantages = token_gae(rewards, expected, mask, gamma=1.0, gae_lambda=gae_lambda)
    best = tilted_log_probs(
        torch.tensor([share, 1 - share], dtype=torch.float64).log(),
        torch.tensor([pays, 0.0], dtype=torch.float64),
        beta=beta,
    )
    gap = torch.tensor(judged[0] - judged[1], dtype=torch.float64)
    return {
        "a": rewards.sum().item(),
        "b": advantages[0, 0].item(),
        "c": gap.sigmoid().item(),
        "d": best[0].exp().item(),
        "e": adaptive_beta(beta, kl, target_kl=target, num_samples=answers, kl_horizon=horizon),
    }
