"""The staircase: one environment, many seeds, one part more on each stair.

    python -m benchmarks.stairs --seeds 16

The notebooks show what this recorded: `ppo_lessons/recorded/stairs.json`.
"""

import argparse
import sys
from dataclasses import replace
from typing import Any

from torch import Tensor

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import make_envs
from ppo_lessons.importance import importance_ratios
from ppo_lessons.reinforce import reinforce_loss
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, train


def no_ratio(log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor) -> Tensor:
    """Use the batch again as if the policy had not moved."""
    return reinforce_loss(log_probs, advantages)


def ratio_without_clip(log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor) -> Tensor:
    """Correct for the move, and let it go on."""
    return -(importance_ratios(log_probs, log_probs_old) * advantages).mean()


STAIRS: dict[str, Parts] = {
    "reuse without ratio": Parts(policy_loss=no_ratio),
    "ratio": Parts(policy_loss=ratio_without_clip),
    "clip": Parts(),
}


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


def main() -> None:
    """Climb every stair with every seed and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    arguments = parser.parse_args()
    # The learning rate stays: a falling one would hide what a missing clip does.
    config = PPOConfig(final_learning_rate=1.0)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STAIRS}
    for seed in range(1, arguments.seeds + 1):
        for name, parts in STAIRS.items():
            runs[name].append(climb(replace(config, seed=seed), parts))
            print(seed, name, runs[name][-1]["final_greedy"], flush=True)
    command = f"python -m benchmarks.stairs {' '.join(sys.argv[1:])}"
    content = {"env": config.env, "num_epochs": config.num_epochs, "runs": runs}
    print(write_result("stairs", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
