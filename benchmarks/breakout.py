"""Breakout from its board, on one core: how far does PPO come in 15 minutes?

    python -m benchmarks.breakout

Two kinds of networks. "flat" takes each of the 400 cells for a number of its own: three seeds, each
with at most 15 minutes of CPU time, tests on the way not counted. "filters" looks at the board
through small filters, `pixel_networks`: one seed, five minutes, to compare. The notebook of lesson
10 shows what this recorded, `breakout.json` in `ppo_lessons/recorded`, and in it one whole game of
a trained agent.
"""

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Generator, Tensor, nn

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.envs.breakout import BRICKS, Breakout
from ppo_lessons.figures.gpu_run import pack_boards
from ppo_lessons.networks import Networks, make_networks, pixel_networks
from ppo_lessons.training_loop import (
    Parts,
    PPOConfig,
    TrainState,
    evaluate,
    record_episode,
    train,
)

POINT = 30.0  # CPU seconds between two tests
TEST_EPISODES = 64
LAST_EPISODES = 256
GAMES = 15  # from which the recorded one is chosen


class Flat(nn.Module):
    """Lay boards out as rows of numbers: [..., H, W, C] → [..., H·W·C]."""

    def forward(self, boards: Tensor) -> Tensor:
        """Every cell is a number of its own, 0 or 1."""
        return boards.flatten(-3).float()


def flat_networks(
    observation_shape: Sequence[int],
    action_space: Any,
    *,
    hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:
    """Make the course's usual networks for a board laid flat, with max(x, 0) in place of tanh."""
    networks = make_networks(
        (prod(observation_shape),), action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    for network in (networks.policy, networks.critic):
        layers = [nn.ReLU() if isinstance(layer, nn.Tanh) else layer for layer in network.body]
        network.body = nn.Sequential(Flat(), *layers)
    return networks


CONFIG = PPOConfig(
    env="Breakout", total_steps=26_000_000, num_envs=128, num_steps=64, num_epochs=4,
    num_minibatches=8, learning_rate=1e-3, entropy_coef=0.01, hidden_sizes=(128, 128),
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """Networks, the settings that suit them, and how long they are tried.

    Args:
        config: all but the seed.
        parts: with the networks.
        seeds: how many.
        seconds: CPU seconds of training for each.
    """

    config: PPOConfig
    parts: Parts
    seeds: int
    seconds: float


KINDS = {
    "flat": Kind(CONFIG, Parts(networks=flat_networks), seeds=3, seconds=900.0),
    "filters": Kind(
        replace(CONFIG, total_steps=5_000_000, num_epochs=3, hidden_sizes=(64,)),
        Parts(networks=pixel_networks),
        seeds=1,
        seconds=300.0,
    ),
}


def mean_return(policy: Any, *, seed: int, greedy: bool, episodes: int = TEST_EPISODES) -> float:
    """Play some whole episodes, and average what they earned."""
    tests = BatchedEnvs(Breakout(), episodes)
    return round(evaluate(policy, tests, seed=seed, greedy=greedy).mean().item(), 2)


def learn(kind: str, seed: int, *, seconds: float) -> dict[str, Any]:
    """Train one seed until its steps or its CPU seconds are used up.

    Args:
        kind: one of `KINDS`.
        seed: of everything random.
        seconds: CPU seconds, tests not counted.

    Returns:
        Points of the curve, returns at the end, and one game, neither the best nor the worst.
    """
    config = replace(KINDS[kind].config, seed=seed)
    points: list[dict[str, Any]] = []
    began, testing = time.process_time(), 0.0

    def on_iteration(state: TrainState) -> bool:
        nonlocal testing
        now = time.process_time()
        trained = now - began - testing
        last = trained >= seconds or state.iteration == config.num_iterations
        if last or trained >= POINT * (len(points) + 1):
            policy, test_seed = state.networks.policy, 10_000 + state.iteration
            points.append(
                {
                    "cpu_seconds": round(trained, 1),
                    "env_steps": state.env_steps,
                    "episode_return": round(state.history["episode_return"][-1], 2),
                    "sampled": mean_return(policy, seed=test_seed, greedy=False),
                    "greedy": mean_return(policy, seed=test_seed, greedy=True),
                }
            )
            testing += time.process_time() - now
            print(kind, seed, points[-1], flush=True)
        return trained >= seconds

    envs = BatchedEnvs(Breakout(), config.num_envs)
    history = train(config, envs=envs, parts=KINDS[kind].parts, on_iteration=on_iteration)
    policy = history.networks.policy
    last: dict[str, Any] = {"seed": 20_000 + seed, "episodes": LAST_EPISODES}
    return {
        "seed": seed,
        "env_steps": history["env_steps"][-1],
        "cpu_seconds": points[-1]["cpu_seconds"],
        "points": points,
        "final_sampled": mean_return(policy, greedy=False, **last),
        "final_greedy": mean_return(policy, greedy=True, **last),
        "game": median_game(policy),
    }


def median_game(policy: Any) -> str:
    """Play some games with drawn actions, and keep the one of the median number of bricks."""
    games = [
        record_episode(policy, BatchedEnvs(Breakout(), 1), seed=seed, greedy=False)
        for seed in range(1, GAMES + 1)
    ]
    ordered = sorted(games, key=bricks_struck)
    return pack_boards(ordered[GAMES // 2].numpy())


def bricks_struck(boards: Tensor) -> int:
    """How many bricks a game took away; a new wall takes none."""
    left = boards[..., BRICKS].flatten(1).sum(dim=1)
    return int((left[:-1] - left[1:]).clamp(min=0).sum())


def random_return() -> float:
    """What a player earns who presses keys at random."""
    networks = flat_networks((10, 10, 4), 3, hidden_sizes=(), generator=Generator())
    for parameter in networks.parameters():
        nn.init.zeros_(parameter)
    return mean_return(networks.policy, seed=1, greedy=False, episodes=LAST_EPISODES)


def content_of(kind: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Put together what is recorded of one kind of networks."""
    middle = sorted(runs, key=lambda run: run["final_sampled"])[len(runs) // 2]
    return {
        "config": asdict(KINDS[kind].config),
        "cpu_seconds_at_most": KINDS[kind].seconds,
        "median_final_sampled": statistics.median(run["final_sampled"] for run in runs),
        "runs": [{name: run[name] for name in run if name != "game"} for run in runs],
        "game": {"seed": middle["seed"], "boards": middle["game"]},
    }


def main() -> None:
    """Train all seeds and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=1, help="seeds side by side")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("spawn")
    content: dict[str, Any] = {
        "episodes_per_test": TEST_EPISODES,
        "episodes_at_the_end": LAST_EPISODES,
        "random_return": random_return(),
    }
    with ProcessPoolExecutor(arguments.at_once, mp_context=context) as pool:
        for name, kind in KINDS.items():
            one = partial(learn, name, seconds=kind.seconds)
            content[name] = content_of(name, list(pool.map(one, range(1, kind.seeds + 1))))
    command = " ".join(["python -m benchmarks.breakout", *sys.argv[1:]])
    print(write_result("breakout", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
