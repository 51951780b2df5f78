"""REINFORCE alone: whole episodes, one step of the optimiser, and the episodes are thrown away.

    python -m benchmarks.reinforce --seeds 10

Lesson 01 shows what this recorded: `ppo_lessons/recorded/reinforce.json`.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor
from torch.optim import Adam

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import make_envs
from ppo_lessons.networks import make_networks
from ppo_lessons.reinforce import play_episodes, reinforce_loss, rewards_to_go
from ppo_lessons.training_loop import evaluate

SETTINGS: dict[str, Any] = {
    "env": "CartPole-v1",
    "total_steps": 98_304,  # as in benchmarks.stairs
    "episodes_per_update": 32,
    "learning_rate": 0.01,
    "gamma": 0.99,
}


def full_return(rewards: Tensor, ended: Tensor) -> Tensor:
    """Give every action of an episode the same weight: all that the episode earned."""
    return rewards_to_go(rewards, ended, gamma=SETTINGS["gamma"])[0].expand_as(rewards)


def reward_to_go(rewards: Tensor, ended: Tensor) -> Tensor:
    """Give an action what came after it."""
    return rewards_to_go(rewards, ended, gamma=SETTINGS["gamma"])


WEIGHTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "full return": full_return,
    "reward-to-go": reward_to_go,
}


def climb(seed: int, weigh: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Any]:
    """Train one seed; keep its curve, and test it at the end."""
    generator = Generator().manual_seed(seed)
    policy = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator).policy
    optimizer = Adam(policy.parameters(), lr=SETTINGS["learning_rate"], eps=1e-5)
    envs = make_envs(SETTINGS["env"], SETTINGS["episodes_per_update"])
    run: dict[str, Any] = {"seed": seed, "env_steps": [], "episode_return": [], "policy_loss": []}
    env_steps = 0
    while env_steps < SETTINGS["total_steps"]:
        episodes = play_episodes(envs, policy, generator=generator)
        weights, valid = weigh(episodes.rewards, episodes.ended), episodes.valid
        log_probs, _ = policy.evaluate(episodes.observations[valid], episodes.actions[valid])
        loss = reinforce_loss(log_probs, weights[valid])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        env_steps += int(valid.sum())
        run["env_steps"].append(env_steps)
        run["episode_return"].append(round(episodes.episode_returns[-1].mean().item(), 1))
        run["policy_loss"].append(round(loss.item(), 3))
    tests = make_envs(SETTINGS["env"], 50)
    run["final_greedy"] = round(evaluate(policy, tests, seed=10_000 + seed).mean().item(), 1)
    return run


def main() -> None:
    """Train every seed with each weight and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in WEIGHTS}
    for seed in range(1, arguments.seeds + 1):
        for name, weigh in WEIGHTS.items():
            runs[name].append(climb(seed, weigh))
            print(
                seed,
                name,
                len(runs[name][-1]["env_steps"]),
                runs[name][-1]["final_greedy"],
                flush=True,
            )
    command = f"python -m benchmarks.reinforce {' '.join(sys.argv[1:])}"
    print(write_result("reinforce", command, {**SETTINGS, "runs": runs}, folder=RECORDED))


if __name__ == "__main__":
    main()
