"""Four runs on CartPole, to be looked at iteration by iteration.

    python -m benchmarks.runs

Two good seeds, one without the clip, one with 25 times the learning rate. After each iteration the
policy and the critic are asked about a grid of pole angles and angular velocities. The widget
RunScrubber shows what this recorded, `runs.json` in `ppo_lessons/recorded`.
"""

from dataclasses import asdict, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.record import RECORDED, write_result
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.training_loop import Parts, PPOConfig, TrainState, train

ANGLES = [round(0.04 * step, 2) for step in range(-5, 6)]  # rad; an episode ends at 0.21
VELOCITIES = [0.5 * step for step in range(-4, 5)]  # rad/s
RIGHT = 1  # the action that pushes the cart to the right
METRICS = (
    *("env_steps", "episode_return", "kl_k3", "fraction_outside", "fraction_zero_gradient"),
    *("entropy", "value_loss", "ev_lambda"),
)
CONFIG = PPOConfig()


# name -> settings and parts
RUNS = {
    "seed_1": (CONFIG, Parts()),
    "seed_2": (replace(CONFIG, seed=2), Parts()),
    "no_clip": (CONFIG, Parts(policy_loss=surrogate_loss)),
    "large_rate": (replace(CONFIG, learning_rate=0.05), Parts()),
}


def grid() -> Float[Tensor, "rows columns 4"]:
    """Make the states that are asked about: a cart that stands in the middle, any pole."""
    velocity, angle = torch.meshgrid(torch.tensor(VELOCITIES), torch.tensor(ANGLES), indexing="ij")
    zero = torch.zeros_like(angle)
    return torch.stack([zero, zero, angle, velocity], dim=-1)


@torch.no_grad()
def maps(networks: Any) -> dict[str, str]:
    """Ask policy and critic about the grid: whole numbers in a text, row by row.

    Args:
        networks: with `policy` and `critic`.

    Returns:
        `policy`, the chance of a push to the right in percent; `values`, V in discounted reward.
    """
    states = grid().flatten(0, 1)
    chance = networks.policy.all_log_probs(states)[:, RIGHT].exp() * 100
    found = {"policy": chance, "values": networks.critic(states)}
    return {
        name: " ".join(str(round(number)) for number in numbers.tolist())
        for name, numbers in found.items()
    }


def short(number: float | None) -> float | None:
    """Keep four significant digits; whole numbers stay as they are."""
    return number if number is None or isinstance(number, int) else float(f"{number:.4g}")


def record(name: str, *, iterations: int | None = None) -> dict[str, Any]:
    """Train once.

    Args:
        name: one of `RUNS`.
        iterations: where to stop; all if left out.

    Returns:
        A list for each metric and map, over the iterations.
    """
    config, parts = RUNS[name]
    asked: list[dict[str, str]] = []

    def ask(state: TrainState) -> bool:
        asked.append(maps(state.networks))
        return state.iteration == iterations

    history = train(config, parts=parts, on_iteration=ask)
    numbers = {metric: [short(number) for number in history[metric]] for metric in METRICS}
    return numbers | {key: [each[key] for each in asked] for key in ("policy", "values")}


def main() -> None:
    """Train all of them, and write the result."""
    runs = {}
    for name in RUNS:
        runs[name] = record(name)
        print(f"{name:12}", runs[name]["episode_return"][-1], flush=True)
    about = {
        "config": asdict(CONFIG),
        "learning_rates": {name: config.learning_rate for name, (config, _) in RUNS.items()},
        "angles": ANGLES,
        "velocities": VELOCITIES,
    }
    write_result("runs", "python -m benchmarks.runs", {**about, "runs": runs}, folder=RECORDED)


if __name__ == "__main__":
    main()
