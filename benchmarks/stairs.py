"""The staircase: one environment, many seeds, one part more on each stair.

    python -m benchmarks.stairs --seeds 16            three stairs at one learning rate
    python -m benchmarks.stairs --tune                all six: which learning rate suits each?
    python -m benchmarks.stairs --whole --seeds 16    all six, each at its best learning rate

The notebooks show what this recorded: `stairs.json` and `staircase.json` in `ppo_lessons/recorded`.

The whole staircase gives every stair the same tuning: the same learning rates, tried on seeds of
their own. The first three stairs take one optimiser step per batch, the last three 32.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.record import RECORDED, RESULTS, write_result
from ppo_lessons.envs import Envs, make_envs
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.networks import Policy
from ppo_lessons.reinforce import reinforce_loss, rewards_to_go
from ppo_lessons.rollout import collect_rollout, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, train
from ppo_lessons.types import Carry, Rollout

WHOLE_ENV = "Acrobot-v1"  # on CartPole plain REINFORCE is good enough to hide every other stair
SOLVED = -100  # reward per episode
WINDOW = 8192  # environment steps over which returns are averaged
POINT = 4096  # a curve keeps one point per so many environment steps
TEST_EPISODES = 50
TUNED = "staircase_tuning"
LEARNING_RATES = (5e-4, 2e-3, 1e-2)
TUNING_SEEDS = range(101, 103)


def no_ratio(log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor) -> Tensor:
    """Use the batch again as if the policy had not moved."""
    return reinforce_loss(log_probs, advantages)


def collect_whole_episodes(
    envs: Envs, policy: Policy, carry: Carry, *, num_steps: int, generator: Generator
) -> tuple[Rollout, Carry]:
    """Play one whole episode in each environment, from a fresh start, in pieces of num_steps."""
    carry = start_carry(envs, seed=int(torch.randint(2**31, (), generator=generator)))
    pieces: list[Rollout] = []
    while not pieces or not torch.stack([piece.ended.any(0) for piece in pieces]).any(0).all():
        piece, carry = collect_rollout(
            envs, policy, carry, num_steps=num_steps, generator=generator
        )
        pieces.append(piece)
    names = [field.name for field in fields(Rollout)]
    rollout = Rollout(**{name: torch.cat([getattr(p, name) for p in pieces]) for name in names})
    before = rollout.ended.cumsum(0) - rollout.ended.long()  # ends before this row
    return replace(rollout, valid=rollout.valid & (before == 0)), carry


def returns_alone(
    rewards: Tensor, values: Tensor, next_values: Tensor, terminated: Tensor, truncated: Tensor,
    *, gamma: float,
) -> Tensor:  # fmt: skip
    """What came after each action; nobody was asked what to expect."""
    ended = terminated | truncated
    ended[-1] = True  # rows after the first end are not valid, so their cut changes nothing
    return rewards_to_go(rewards, ended, gamma=gamma)


def returns_minus_baseline(
    rewards: Tensor, values: Tensor, next_values: Tensor, terminated: Tensor, truncated: Tensor,
    *, gamma: float,
) -> Tensor:  # fmt: skip
    """What came, minus what the critic expected."""
    alone = returns_alone(rewards, values, next_values, terminated, truncated, gamma=gamma)
    return alone - values


def as_they_are(advantages: Tensor) -> Tensor:
    """Subtract no mean, which would be a baseline."""
    return advantages


def masked_reinforce(
    log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor, mask: Tensor
) -> Tensor:
    """The loss of REINFORCE on the rows that are steps."""
    return reinforce_loss(log_probs[mask], advantages[mask])


@dataclass(frozen=True)
class Stair:
    """One stair: its functions, how often it uses a batch, and how it collects."""

    parts: Parts
    num_epochs: int
    num_minibatches: int
    num_envs: int
    num_steps: int


FRESH = {"num_epochs": 1, "num_minibatches": 1}
EPISODES = {"num_envs": 8, "num_steps": 25}
REUSE = {"num_epochs": 8, "num_minibatches": 4}
ROLLOUTS = {"num_envs": 32, "num_steps": 64}
WHOLE: dict[str, Stair] = {
    "REINFORCE": Stair(
        Parts(
            collect=collect_whole_episodes, advantages=returns_alone, normalize=as_they_are,
            policy_loss=masked_reinforce,
        ), **FRESH, **EPISODES,
    ),
    "+ baseline": Stair(
        Parts(
            collect=collect_whole_episodes, advantages=returns_minus_baseline,
            policy_loss=masked_reinforce,
        ), **FRESH, **EPISODES,
    ),
    "+ GAE": Stair(Parts(policy_loss=masked_reinforce), **FRESH, **ROLLOUTS),
    "+ reuse without ratio": Stair(Parts(policy_loss=no_ratio), **REUSE, **ROLLOUTS),
    "+ ratio": Stair(Parts(policy_loss=surrogate_loss), **REUSE, **ROLLOUTS),
    "+ clip": Stair(Parts(), **REUSE, **ROLLOUTS),
}  # fmt: skip
STAIRS = {name.removeprefix("+ "): WHOLE[name].parts for name in list(WHOLE)[3:]}


def climb(config: PPOConfig, parts: Parts) -> dict[str, Any]:
    """Train one seed on one stair; keep its curve, and test it at the end."""
    history = train(config, parts=parts)
    tests = make_envs(config.env, 50)
    final = evaluate(history.networks.policy, tests, seed=10_000 + config.seed)
    return {
        "seed": config.seed,
        "final_greedy": round(final.mean().item(), 1),
        "env_steps": history["env_steps"],
        "episode_return": [
            None if value is None else round(value, 1) for value in history["episode_return"]
        ],
        "kl_k3": [float(f"{value:.3g}") for value in history["kl_k3"]],
    }


def climb_whole(stair: Stair, *, learning_rate: float, seed: int, steps: int) -> dict[str, Any]:
    """Train one seed on one stair of the whole staircase, with the clock of this process."""
    config = PPOConfig(
        env=WHOLE_ENV, seed=seed, learning_rate=learning_rate, final_learning_rate=1.0,
        total_steps=1000 * steps, num_epochs=stair.num_epochs, num_envs=stair.num_envs,
        num_minibatches=stair.num_minibatches, num_steps=stair.num_steps,
    )  # fmt: skip
    began, taken = time.process_time(), 0
    episodes: list[tuple[int, float]] = []  # when it ended, and its return
    curve: list[tuple[int, float, float | None]] = []

    def note(state: Any) -> bool:
        nonlocal taken
        rollout = state.rollout
        taken += int(rollout.valid.sum())  # a row after the end of an episode is no step
        ended = rollout.episode_returns[rollout.ended & rollout.valid]
        episodes.extend((taken, value) for value in ended.tolist())
        lately = [value for when, value in episodes if when > taken - WINDOW]
        mean = sum(lately) / len(lately) if lately else None
        curve.append((taken, time.process_time() - began, mean))
        return taken >= steps

    networks = train(config, parts=stair.parts, on_iteration=note).networks
    tests = make_envs(config.env, TEST_EPISODES)
    final = evaluate(networks.policy, tests, seed=10_000 + seed, greedy=False)
    first = next((row for row in curve if row[2] is not None and row[2] >= SOLVED), None)
    kept = [
        row for i, row in enumerate(curve) if i == 0 or row[0] // POINT > curve[i - 1][0] // POINT
    ]
    return {
        "seed": seed,
        "final_return": round(final.mean().item(), 1),
        "steps_to_solve": first and first[0],
        "cpu_seconds_to_solve": first and round(first[1], 3),
        "env_steps": [row[0] for row in kept],
        "cpu_seconds": [round(row[1], 3) for row in kept],
        "episode_return": [None if row[2] is None else round(row[2], 1) for row in kept],
    }


def score_of(run: dict[str, Any]) -> float:
    """What tuning maximises: the mean of the curve, so speed counts and so does the end."""
    known = [value for value in run["episode_return"] if value is not None]
    return sum(known) / len(known)


def tune(*, steps: int) -> dict[str, Any]:
    """Try every learning rate on every stair, on seeds that the staircase itself does not use."""
    tuning: dict[str, dict[str, float]] = {}
    for name, stair in WHOLE.items():
        tuning[name] = {}
        for learning_rate in LEARNING_RATES:
            runs = [
                climb_whole(stair, learning_rate=learning_rate, seed=seed, steps=steps)
                for seed in TUNING_SEEDS
            ]
            tuning[name][str(learning_rate)] = round(sum(map(score_of, runs)) / len(runs), 1)
            print(name, tuning[name], flush=True)
    return {"tuning_seeds": list(TUNING_SEEDS), "mean_of_curve": tuning}


def whole_staircase(tuned: dict[str, Any], seeds: Sequence[int], *, steps: int) -> dict[str, Any]:
    """Climb every stair with all seeds, each at the learning rate that tuning liked best."""
    tuning = tuned["mean_of_curve"]
    best = {name: float(max(rates, key=lambda rate: rates[rate])) for name, rates in tuning.items()}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in WHOLE}
    for seed in seeds:  # stairs in turn, so that a busy minute meets all of them
        for name, stair in WHOLE.items():
            runs[name].append(climb_whole(stair, learning_rate=best[name], seed=seed, steps=steps))
            run = runs[name][-1]
            print(seed, name, run["final_return"], run["steps_to_solve"], flush=True)
    return {
        "solved_at": SOLVED,
        "window": WINDOW,
        "learning_rates": best,
        "tuning": tuning,
        "tuning_seeds": tuned["tuning_seeds"],
        "runs": runs,
    }


def main() -> None:
    """Climb every stair with every seed and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--whole", action="store_true", help="all six stairs")
    parser.add_argument("--tune", action="store_true", help="their learning rates, first")
    parser.add_argument(
        "--steps", type=int, default=131_072, help="of each run (environment steps)"
    )
    arguments = parser.parse_args()
    command = " ".join(["python -m benchmarks.stairs", *sys.argv[1:]])
    seeds = range(1, arguments.seeds + 1)
    if arguments.tune:
        content = {"env": WHOLE_ENV, "steps": arguments.steps, **tune(steps=arguments.steps)}
        print(write_result(TUNED, command, content))
        return
    if arguments.whole:
        tuned = json.loads((RESULTS / f"{TUNED}.json").read_text(encoding="utf-8"))
        content = {"env": WHOLE_ENV, "steps": arguments.steps}
        content |= whole_staircase(tuned, seeds, steps=arguments.steps)
        print(write_result("staircase", command, content, folder=RECORDED))
        return
    # The learning rate stays: a falling one would hide what a missing clip does.
    config = PPOConfig(final_learning_rate=1.0)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STAIRS}
    for seed in seeds:
        for name, parts in STAIRS.items():
            runs[name].append(climb(replace(config, seed=seed), parts))
            print(seed, name, runs[name][-1]["final_greedy"], flush=True)
    content = {"env": config.env, "num_epochs": config.num_epochs, "runs": runs}
    print(write_result("stairs", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
