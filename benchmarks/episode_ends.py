"""What PPO learns when the end of an episode is handled wrongly, over many seeds.

    python -m benchmarks.episode_ends --seeds 16

The lighthouse pays 1 per step for ever, and we stop watching after six steps. Its keeper climbs, or
takes an offer that is worth less. Notebook 07 shows what this recorded, `episode_ends.json` in
`ppo_lessons/recorded`.
"""

import argparse
from dataclasses import replace
from typing import Any

import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from torch import Generator, Tensor

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import Envs, GymEnvs, Lighthouse
from ppo_lessons.envs.lighthouse import CLIMB
from ppo_lessons.networks import Policy
from ppo_lessons.rollout import ENDINGS, collect_rollout
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.types import Carry, Rollout

LIMIT = 6  # steps of an episode until we stop watching
OFFER = 7.0  # climbing is worth 0.9² · 10 = 8.1
EVERY = 2  # iterations from one point of a curve to the next
CONFIG = PPOConfig(
    num_envs=8,
    num_steps=32,
    total_steps=8192,
    num_epochs=4,
    num_minibatches=2,
    learning_rate=1e-2,
    gamma=0.9,
    gae_lambda=0.8,
    hidden_sizes=(16,),
)
JUNK = "the row of the reset is learned"


def lighthouses(mode: AutoresetMode) -> GymEnvs:
    """N lighthouses, watched for LIMIT steps each."""
    makers = [lambda: TimeLimit(Lighthouse(OFFER), LIMIT)] * CONFIG.num_envs
    return GymEnvs(SyncVectorEnv(makers, autoreset_mode=mode))


def collect_all_rows_as_valid(
    envs: Envs, policy: Policy, carry: Carry, *, num_steps: int, generator: Generator
) -> tuple[Rollout, Carry]:
    """Learn from the rows in which a NEXT_STEP environment only reset itself, too."""
    rollout, carry = collect_rollout(envs, policy, carry, num_steps=num_steps, generator=generator)
    return replace(rollout, valid=torch.ones_like(rollout.valid)), carry


def one_run(parts: Parts, mode: AutoresetMode, *, seed: int) -> dict[str, Any]:
    """Train once, look at the foot now and then, and at all heights in the end."""
    heights = torch.tensor([[0.0], [1.0], [2.0]])
    climbs: list[float] = []

    def watch(state: Any) -> None:
        if state.iteration % EVERY == 0:
            climbs.append(round(chance_of_climbing(state.networks.policy, heights), 4))

    history = train(
        replace(CONFIG, seed=seed), envs=lighthouses(mode), parts=parts, on_iteration=watch
    )
    with torch.no_grad():
        values = history.networks.critic(heights)
    return {"seed": seed, "climbs": climbs, "values": [round(v, 4) for v in values.tolist()]}


def chance_of_climbing(policy: Policy, heights: Tensor) -> float:
    """π(climb | foot)."""
    log_probs, _ = policy.evaluate(heights[:1], torch.tensor([CLIMB]))
    return log_probs.exp().item()


def main() -> None:
    """Run every way of handling ends over the seeds, and write the result."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=16)
    seeds = range(1, arguments.parse_args().seeds + 1)
    ways: dict[str, tuple[Parts, AutoresetMode]] = {
        name: (Parts(advantages=function), AutoresetMode.SAME_STEP)
        for name, function in ENDINGS.items()
    }
    ways[JUNK] = (Parts(collect=collect_all_rows_as_valid), AutoresetMode.NEXT_STEP)
    runs: dict[str, list[dict[str, Any]]] = {}
    for name, (parts, mode) in ways.items():
        runs[name] = [one_run(parts, mode, seed=seed) for seed in seeds]
        print(f"{name:48}", [run["climbs"][-1] for run in runs[name]], flush=True)
    settings = {
        "limit": LIMIT,
        "offer": OFFER,
        "gamma": CONFIG.gamma,
        "gae_lambda": CONFIG.gae_lambda,
        "env_steps": list(
            range(EVERY * CONFIG.batch_size, CONFIG.total_steps + 1, EVERY * CONFIG.batch_size)
        ),
    }
    command = f"python -m benchmarks.episode_ends --seeds {len(seeds)}"
    write_result("episode_ends", command, {**settings, "runs": runs}, folder=RECORDED)


if __name__ == "__main__":
    main()
