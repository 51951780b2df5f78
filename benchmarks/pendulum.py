"""Does the same loop solve a task whose actions are real numbers, and which parts matter there?

    python -m benchmarks.pendulum --seeds 5

Pendulum, five seeds for each variant; the settings are the preset `pendulum`. They were chosen by a
handful of runs of the usual variant, so the others are not tuned. A variant is the usual run with
one thing changed. Solved: −250 or more over 100 episodes in which the policy takes its likeliest
action. Runs that are recorded with the same settings are not repeated.

The notebook shows what this recorded: `ppo_lessons/recorded/pendulum.json`.
"""

import argparse
import json
from dataclasses import asdict, replace
from typing import Any

import torch

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import BatchedEnvs, NormalizedEnvs
from ppo_lessons.envs.classic import Pendulum
from ppo_lessons.gae import compute_gae
from ppo_lessons.training_loop import PRESETS, Parts, PPOConfig, evaluate, train

SOLVED, TEST_EPISODES = -250, 100


def flags_merged(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):  # type: ignore[no-untyped-def]
    """Take every time limit for an end of the task: what comes after it counts 0."""
    ended = terminated | truncated
    return compute_gae(
        rewards, values, next_values, ended, truncated, gamma=gamma, gae_lambda=gae_lambda
    )


# name -> what is changed: how environments are wrapped, and the parts
VARIANTS: dict[str, tuple[dict[str, bool], Parts]] = {
    "usual": ({}, Parts()),
    "flags merged": ({}, Parts(advantages=flags_merged)),
    "rewards as paid": ({"rewards": False}, Parts()),
}


def one_run(variant: str, config: PPOConfig) -> dict[str, Any]:
    """Train once; give the curve, and the returns of greedy episodes at the end."""
    scaled, parts = VARIANTS[variant]
    envs = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma, **scaled)
    history = train(config, envs=envs, parts=parts)
    tests = envs.frozen(BatchedEnvs(Pendulum(), TEST_EPISODES))
    returns = evaluate(history.networks.policy, tests, seed=1000)
    kept = range(0, len(history), max(1, len(history) // 60))
    return {
        "seed": config.seed,
        "env_steps": [history["env_steps"][i] for i in kept],
        "episode_return": [rounded(history["episode_return"][i]) for i in kept],
        "entropy": [rounded(history["entropy"][i], 3) for i in kept],
        "final_greedy": rounded(returns.mean().item()),
        "final_worst_episode": rounded(returns.min().item()),
        "log_stds": [rounded(x, 3) for x in history.networks.policy.log_stds.tolist()],
    }


def rounded(number: float | None, digits: int = 1) -> float | None:
    """Round a number, or pass None on: no episode had ended yet."""
    return None if number is None else round(number, digits)


def recorded_runs() -> dict[str, list[dict[str, Any]]]:
    """Read the runs that are recorded already with the settings of today."""
    path = RECORDED / "pendulum.json"
    if not path.exists():
        return {}
    before = json.loads(path.read_text(encoding="utf-8"))
    return before["runs"] if before["config"] == settings() else {}


def settings() -> dict[str, Any]:
    """Give the settings of every run, except its seed."""
    numbers = asdict(PRESETS["pendulum"].config)
    return {name: list(n) if isinstance(n, tuple) else n for name, n in numbers.items()} | {
        "seed": None
    }


def save(runs: dict[str, list[dict[str, Any]]], command: str) -> None:
    """Write down what there is."""
    content = {"env": "Pendulum", "solved_at": SOLVED, "config": settings(), "runs": runs}
    write_result("pendulum", command, content, folder=RECORDED)


def main() -> None:
    """Run what is not recorded yet; write JSON after each run, so that nothing is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=list(VARIANTS), default=list(VARIANTS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    command = f"python -m benchmarks.pendulum --seeds {arguments.seeds}"
    runs = recorded_runs()
    for name in arguments.only:
        finished = runs.setdefault(name, [])
        for seed in range(len(finished) + 1, arguments.seeds + 1):
            finished.append(one_run(name, replace(PRESETS["pendulum"].config, seed=seed)))
            print(f"{name:22} {seed} {finished[-1]['final_greedy']:8.1f}", flush=True)
            save(runs, command)


if __name__ == "__main__":
    main()
