"""Speed and memory beside Stable-Baselines3: the same settings, one thread, alternating runs.

    python -m benchmarks.against_sb3

Each run is a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

from benchmarks.record import write_result

STEPS = 40_960
# Stable-Baselines3 learns in multiples of 512 steps here, as the classic preset does.
SETTINGS = {"num_envs": 4, "num_steps": 128, "num_epochs": 4, "num_minibatches": 4}


def run_ours() -> None:
    """Train the classic preset."""
    from dataclasses import replace

    from ppo_lessons.training_loop import PRESETS, train

    config, parts = PRESETS["classic"]
    train(replace(config, total_steps=STEPS), parts=parts)


def run_quick() -> None:
    """Train the quick preset."""
    from ppo_lessons.training_loop import PPOConfig, train

    train(PPOConfig(total_steps=STEPS))


def run_sb3() -> None:
    """Train Stable-Baselines3 with the settings of the classic preset."""
    import torch

    # In the extra `bench`, which the tests do not install.
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.env_util import (  # pyright: ignore[reportMissingImports]
        make_vec_env,
    )

    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=4), n_steps=128, batch_size=128,
        n_epochs=4, learning_rate=lambda left: 2.5e-4 * left, clip_range=0.2, clip_range_vf=0.2,
        ent_coef=0.01, vf_coef=0.5, max_grad_norm=0.5, gamma=0.99, gae_lambda=0.95, device="cpu",
        seed=1,
    )  # fmt: skip
    model.learn(total_timesteps=STEPS)


RUNS = {"ours, classic": run_ours, "ours, quick": run_quick, "sb3, classic settings": run_sb3}


def measure(name: str) -> dict[str, Any]:
    """Run one of `RUNS` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.against_sb3", "--run", name]
    return json.loads(subprocess.check_output(command, text=True).splitlines()[-1])


def run_here(name: str) -> None:
    """Run in this process and print what it took."""
    began = time.process_time()
    RUNS[name]()
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_seconds": seconds, "peak_mib": peak}))


def medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Speed and peak memory of some runs."""
    seconds = statistics.median(run["cpu_seconds"] for run in runs)
    peak = statistics.median(run["peak_mib"] for run in runs)
    return {"steps_per_cpu_second": round(STEPS / seconds), "peak_mib": round(peak, 1)}


def main() -> None:
    """Measure in turn, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", choices=list(RUNS))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.run:
        run_here(arguments.run)
        return
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in RUNS}
    for _ in range(arguments.rounds):
        for name in RUNS:
            taken[name].append(measure(name))
            print(name, taken[name][-1], flush=True)
    table = {
        name: {
            "steps_per_cpu_second": round(
                STEPS / statistics.median(r["cpu_seconds"] for r in runs)
            ),
            "peak_mib": round(statistics.median(r["peak_mib"] for r in runs), 1),
        }
        for name, runs in taken.items()
    }
    sb3 = table["sb3, classic settings"]
    content = {
        "peer": {"stable-baselines3": version("stable-baselines3")},
        "env": "CartPole-v1",
        "env_steps": STEPS,
        "classic_settings": SETTINGS,
        "includes": "imports and start-up",
        "rounds": arguments.rounds,
        "median": table,
        "speed_ratio_to_sb3": {
            name: round(row["steps_per_cpu_second"] / sb3["steps_per_cpu_second"], 2)
            for name, row in table.items()
        },
        "peak_mib_over_sb3": {
            name: round(row["peak_mib"] - sb3["peak_mib"], 1) for name, row in table.items()
        },
    }
    print(write_result("against_sb3", "python -m benchmarks.against_sb3", content))


if __name__ == "__main__":
    main()
