"""The other side of the trade: designs in which a critic may be worth its price.

    python -m benchmarks.critic_wins          # resumes; --seconds 200 stops early
    python -m benchmarks.critic_wins --record # writes what the notebook shows

Expectation, written down before the first run: with one reward at the end of five tokens a critic
wins nothing (`benchmarks.variants`). It should win where rewards arrive token by token, since then
it can say which part of the return a token is not responsible for.

    dense      1 / (digits + 1) for each token that stands in its right place, the end included
    shaped     the verifier's 0 or 1 at the end, plus the change of a potential: the share of the
               answer that is right so far. The changes add up to 0, so a method that looks at the
               sum of an answer alone cannot see them
    long       24 tokens from an untrained model, 1 / 24 for each that is the one wanted

Every method runs with the same two learning rates on the same five seeds, and all of it is kept.
"""

import argparse
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.record import RECORDED, write_result
from benchmarks.token_runs import Run, later, read_runs, run_all, shortened, verified
from ppo_lessons.rlhf import RLHFConfig, critic_advantages, train_tokens
from ppo_lessons.tokens import (
    DIGITS,
    EOS,
    LanguageModel,
    ModelConfig,
    Prompts,
    Responses,
    TokenCritic,
    cached_reference,
    is_correct,
)
from ppo_lessons.training_loop import Parts
from ppo_lessons.variants import (
    from_scores,
    group_advantages,
    reinforce_pp_slot,
    unchanged,
    warm_adam,
)

COMMAND = "python -m benchmarks.critic_wins"
SEEDS, RATES, BATCH_SIZE, NUM_ITERATIONS = (0, 1, 2, 3, 4), (4e-4, 8e-4), 128, 40
LONG = 24
DESIGNS = ("dense", "shaped", "long")


# --- rewards by token ----------------------------------------------------------------------------


def wanted(prompts: Prompts, width: int) -> tuple[Tensor, Tensor]:
    """Give the right answer to each prompt, with its end, and how many tokens it has."""
    rows = [[*(DIGITS[digit] for digit in sorted(each)), EOS] for each in prompts.digits]
    tokens = torch.full((len(rows), width), -1)
    for tokens_of_row, row in zip(tokens, rows, strict=True):
        tokens_of_row[: len(row)] = torch.tensor(row)
    return tokens, torch.tensor([len(row) for row in rows])


def dense(prompts: Prompts, responses: Responses) -> Tensor:
    """Pay each token that stands in its right place."""
    right, count = wanted(prompts, responses.tokens.shape[1])
    return (right == responses.tokens).float() / count[:, None]


def shaped(prompts: Prompts, responses: Responses) -> Tensor:
    """Pay the verifier's score at the end, and on the way what the potential gains."""
    right, count = wanted(prompts, responses.tokens.shape[1])
    so_far = (right == responses.tokens).cumprod(1).sum(1, keepdim=True)
    places = torch.arange(1, responses.tokens.shape[1] + 1)
    potential = torch.minimum(places, so_far).float() / count[:, None]
    last = responses.lengths[:, None] - 1
    potential = potential.masked_fill(places - 1 >= last, 0)  # nothing is left after the end
    gained = potential - torch.cat([torch.zeros(len(last), 1), potential[:, :-1]], dim=1)
    return gained.scatter_add(1, last, verified(prompts, responses)[:, None])


def long(prompts: Prompts, responses: Responses) -> Tensor:
    """Pay each token that is the one wanted: the digits in turn, whatever the prompt."""
    goal = torch.tensor([DIGITS[t % 10] for t in range(responses.tokens.shape[1])])
    return (responses.tokens == goal).float() / LONG


class ByToken:
    """A reward function of `train_tokens` that keeps what each token earned.

    Args:
        rewards_of: (prompts, responses) → rewards [B, T].
    """

    def __init__(self, rewards_of: Callable[[Prompts, Responses], Tensor]):
        self.rewards_of = rewards_of
        self.rewards = torch.zeros(0)

    def __call__(self, prompts: Prompts, responses: Responses) -> Tensor:
        """Give the sum of each answer."""
        self.rewards = self.rewards_of(prompts, responses).masked_fill(~responses.mask, 0)
        return self.rewards.sum(1)

    def before(self, advantages: Callable[..., Any]) -> Callable[..., Any]:
        """Make an advantage function that sees the rewards where they were earned."""

        def slot(rewards: Tensor, values: Tensor | None, mask: Tensor, groups: Tensor) -> Any:
            return advantages(self.rewards, values, mask, groups)

        return slot


# --- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """What a method puts into the slots."""

    advantages: Callable[..., Any]
    group_size: int = 1
    critic: bool = False


METHODS = {
    "PPO": Method(partial(critic_advantages, gamma=1.0, gae_lambda=0.95), critic=True),
    "REINFORCE++": Method(partial(reinforce_pp_slot, gamma=1.0)),
    "GRPO": Method(from_scores(group_advantages), group_size=8),
}
REWARDS = {"dense": dense, "shaped": shaped, "long": long}


def start_of(design: str, seed: int) -> LanguageModel:
    """Give the model that a design starts from."""
    if design != "long":
        return cached_reference(seed=seed)
    config = ModelConfig(context_length=7 + LONG)
    return LanguageModel(config, Generator().manual_seed(seed))


def one_run(design: str, name: str, learning_rate: float, seed: int) -> Run:
    """Train one method in one design; give its learning curve."""
    method, reward = METHODS[name], ByToken(REWARDS[design])
    start = start_of(design, seed)
    config = RLHFConfig(
        seed=seed, beta=0.0, num_iterations=NUM_ITERATIONS, learning_rate=learning_rate,
        num_prompts=BATCH_SIZE // method.group_size, group_size=method.group_size,
        max_new_tokens=LONG if design == "long" else 10,
    )  # fmt: skip
    began = time.process_time()
    history = train_tokens(
        config, policy=copy.deepcopy(start), reference=start, reward=reward,
        critic=TokenCritic(start) if method.critic else None,
        advantages=reward.before(method.advantages),
        verifier=None if design == "long" else is_correct,
        parts=Parts(optimizer=warm_adam, **({} if method.critic else {"normalize": unchanged})),
    )  # fmt: skip
    curves = {
        name: [shortened(row[name]) for row in history]
        for name in ("score", "success", "ev_monte_carlo", "length")
    }
    late = max(1, NUM_ITERATIONS // 10)
    measure = "score" if design == "long" else "success"
    return {
        "final": {measure: sum(row[measure] for row in history.rows[-late:]) / late},
        "mean": sum(row[measure] for row in history) / len(history),
        "cpu_seconds": round(time.process_time() - began, 2),
        "curves": {name: curve for name, curve in curves.items() if curve[0] is not None},
    }


def jobs() -> Iterator[tuple[str, Callable[[], Run]]]:
    """List all runs: every seed of one learning rate, then of the other."""
    for rate in RATES:
        for seed in SEEDS:
            for design in DESIGNS:
                for name in METHODS:
                    key = f"{design}/{name}/{rate}/{seed}"
                    yield key, later(one_run, design, name, rate, seed)


def record() -> None:
    """Write what the notebook shows: every run's end, its mean, and a short curve."""
    runs = {}
    for key, run in read_runs("critic_wins").items():
        curves = {name: curve[3::4] for name, curve in run["curves"].items()}
        runs[key] = {**{name: run[name] for name in ("final", "mean", "cpu_seconds")}, **curves}
    content = {"seeds": SEEDS, "rates": RATES, "designs": DESIGNS, "runs": runs}
    print(write_result("critic_wins", f"{COMMAND} --record", content, folder=RECORDED))


def main() -> None:
    """Run what is missing, or write the notebook's file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        record()
        return
    about = {"seeds": SEEDS, "rates": RATES, "designs": DESIGNS}
    complete = run_all("critic_wins", COMMAND, jobs(), seconds=arguments.seconds, about=about)
    print("complete" if complete else "to be continued")


if __name__ == "__main__":
    main()
