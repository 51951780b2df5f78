"""Draw the pictures of the README anew, with the functions that the notebooks use.

python tools/make_pictures.py
"""

from pathlib import Path

import torch
from torch import Generator

from ppo_lessons.envs import make_envs
from ppo_lessons.figures import training_loop as figures
from ppo_lessons.figures.staircase import staircase
from ppo_lessons.networks import make_networks
from ppo_lessons.notebook import recorded
from ppo_lessons.training_loop import PPOConfig, record_episode, train

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def main() -> None:
    """Train once, draw, and write the files."""
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    envs = make_envs("CartPole-v1", num_envs=1)
    fresh = make_networks((4,), 2, hidden_sizes=(64, 64), generator=Generator().manual_seed(1))
    trained = train(PPOConfig()).networks
    strips = {
        "before": record_episode(fresh.policy, envs, seed=1, greedy=False).numpy(),
        "after": record_episode(trained.policy, envs, seed=1).numpy(),
    }
    for name, picture in {
        "four_stages": figures.four_stages(),
        "poles": figures.poles(strips, at=(0, 10, 20, 30, 150, 450)),
        "staircase": staircase(recorded("staircase"), upto="+ clip"),
    }.items():
        path = FOLDER / f"{name}.png"
        picture.savefig(path, dpi=110, metadata={"Software": None})
        print(path.relative_to(FOLDER.parent.parent))


if __name__ == "__main__":
    main()
