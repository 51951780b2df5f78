"""What the widget ThroughputLedger needs: costs of an iteration by size, and what this core can do.

    python -m benchmarks.ledger

FLOPs, bytes and launches are linear in the sizes of a run, so a few iterations give all of them;
`tests/test_widget_throughput_ledger.py` holds them to `iteration_cost`. What was measured, and what
was counted, stands in `throughput_ledger.json` in `ppo_lessons/recorded`.
"""

from dataclasses import asdict
from typing import Any

import torch

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import CartPole
from ppo_lessons.gpu_run import iteration_cost, limits
from ppo_lessons.gpu_run.accounting import Cost
from ppo_lessons.training_loop import PPOConfig

HIDDEN = (32, 64, 128, 256, 512)
NUM_STEPS = (16, 32, 64, 128)
STAGES = ("collect", "score", "squeeze")
SECONDS = 15.0  # of measuring


def cost(
    hidden: int = 64, *, num_envs: int = 8, num_steps: int = 16, num_epochs: int = 1,
    num_minibatches: int = 1,
) -> Cost:  # fmt: skip
    """Cost of one iteration of CartPole."""
    config = PPOConfig(
        num_envs=num_envs, num_steps=num_steps, num_epochs=num_epochs,
        num_minibatches=num_minibatches, hidden_sizes=(hidden, hidden),
        total_steps=num_envs * num_steps,
    )  # fmt: skip
    return iteration_cost(config, 4, 2, CartPole())


def of_width(hidden: int) -> dict[str, list[int]]:
    """FLOPs and bytes for each sample, and bytes for each pass over the weights, by stage.

    In the squeeze a sample counts once for each epoch.
    """
    one, two = cost(hidden), cost(hidden, num_envs=16)
    samples = one.env_steps
    found: dict[str, list[int]] = {"flops": [], "bytes": [], "bytes_of_weights": []}
    for name in STAGES:
        stage, larger = one.stages[name], two.stages[name]
        per_sample = (larger.bytes - stage.bytes) // samples
        passes = 16 if name == "collect" else 1  # the weights are read in each of T = 16 steps
        found["flops"].append(stage.flops // samples)
        found["bytes"].append(per_sample)
        found["bytes_of_weights"].append((stage.bytes - per_sample * samples) // passes)
    return found


def of_launches() -> dict[str, Any]:
    """Launches of collect and score by the number of steps; of each epoch and minibatch."""
    costs = {steps: cost(num_steps=steps) for steps in NUM_STEPS}
    once, minibatches, epochs = cost(), cost(num_minibatches=2), cost(num_epochs=2)
    first, more, again = (each.stages["squeeze"].launches for each in (once, minibatches, epochs))
    minibatch, epoch = more - first, again - first
    return {
        "collect": {str(steps): each.stages["collect"].launches for steps, each in costs.items()},
        "score": {str(steps): each.stages["score"].launches for steps, each in costs.items()},
        "minibatch": minibatch,
        "epoch": epoch - minibatch,
        "squeeze": first - epoch,
    }


def main() -> None:
    """Count, measure, write JSON."""
    torch.set_num_threads(1)
    content = {
        "core": asdict(limits("cpu", seconds=SECONDS)),
        "launches": of_launches(),
        "widths": {str(hidden): of_width(hidden) for hidden in HIDDEN},
    }
    path = write_result(
        "throughput_ledger", "python -m benchmarks.ledger", content, folder=RECORDED
    )
    print(path)


if __name__ == "__main__":
    main()
