"""The price of a sample: how often should a rollout be used, if a step costs so much?

    python -m benchmarks.price --seeds 16

K epochs per rollout need fewer environment steps and more optimiser steps. Which K is quickest
depends on what a step costs. CartPole's own steps cost almost nothing, so the study adds a price:
the time until solved is what was measured, plus the price times the steps. Each K gets the same
tuning: the same learning rates, on seeds of their own.

The notebook shows what this recorded: `ppo_lessons/recorded/price.json`.
"""

import argparse
import sys
import time
from typing import Any

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import make_envs
from ppo_lessons.rollout import collect_rollout
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, train

EPOCHS = (1, 2, 4, 8, 16)
LEARNING_RATES = (1e-3, 2e-3, 4e-3, 8e-3)
TUNING_SEEDS = range(101, 105)
SOLVED, TEST_EPISODES = 475, 20
MOST_STEPS = 300_000


def until_solved(*, num_epochs: int, learning_rate: float, seed: int) -> dict[str, Any]:
    """Train until a greedy test reaches 475; tests count neither as steps nor as time.

    Returns:
        Steps, CPU seconds in all, and CPU seconds of the collect stage; steps are None if the test
        was never passed.
    """
    spent = {"collect": 0.0, "tests": 0.0}
    solved: list[int] = []

    # The arguments of the slot `collect`, so that it is offered what the original is offered.
    def timed_collect(envs, policy, carry, *, num_steps, generator, out=None):  # type: ignore[no-untyped-def]
        began = time.process_time()
        result = collect_rollout(
            envs, policy, carry, num_steps=num_steps, generator=generator, out=out
        )
        spent["collect"] += time.process_time() - began
        return result

    config = PPOConfig(
        seed=seed, num_epochs=num_epochs, learning_rate=learning_rate, final_learning_rate=1.0,
        total_steps=MOST_STEPS,
    )  # fmt: skip
    tests = make_envs(config.env, TEST_EPISODES)

    def test(state: Any) -> bool:
        began = time.process_time()
        mean = evaluate(state.networks.policy, tests, seed=10_000 + seed).mean().item()
        spent["tests"] += time.process_time() - began
        if mean >= SOLVED:
            solved.append(state.env_steps)
        return mean >= SOLVED

    began = time.process_time()
    train(config, parts=Parts(collect=timed_collect), on_iteration=test)
    seconds = time.process_time() - began - spent["tests"]
    return {
        "seed": seed,
        "env_steps": solved[0] if solved else None,
        "cpu_seconds": round(seconds, 3),
        "collect_seconds": round(spent["collect"], 3),
    }


def main() -> None:
    """Tune each K, run all seeds, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    arguments = parser.parse_args()
    tuning: dict[str, dict[str, float]] = {}
    for num_epochs in EPOCHS:
        rates = tuning[str(num_epochs)] = {}
        for learning_rate in LEARNING_RATES:
            runs = [
                until_solved(num_epochs=num_epochs, learning_rate=learning_rate, seed=seed)
                for seed in TUNING_SEEDS
            ]
            rates[str(learning_rate)] = sum(run["env_steps"] or MOST_STEPS for run in runs) / len(
                runs
            )
            print("K", num_epochs, learning_rate, rates[str(learning_rate)], flush=True)
    best = {epochs: min(rates, key=lambda rate: rates[rate]) for epochs, rates in tuning.items()}
    runs_of: dict[str, list[dict[str, Any]]] = {str(epochs): [] for epochs in EPOCHS}
    for seed in range(1, arguments.seeds + 1):  # all K in turn: a busy minute meets all of them
        for epochs in runs_of:
            run = until_solved(num_epochs=int(epochs), learning_rate=float(best[epochs]), seed=seed)
            runs_of[epochs].append(run)
            print(seed, "K", epochs, run, flush=True)
    content = {
        "env": PPOConfig().env,
        "solved_at": SOLVED,
        "most_steps": MOST_STEPS,
        "learning_rates": {epochs: float(rate) for epochs, rate in best.items()},
        "tuning": tuning,
        "tuning_seeds": list(TUNING_SEEDS),
        "runs": runs_of,
    }
    command = " ".join(["python -m benchmarks.price", *sys.argv[1:]])
    print(write_result("price", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
