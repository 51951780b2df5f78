"""How many environments side by side? Steps and CPU seconds until CartPole is solved.

    python -m benchmarks.environments --seeds 5

One core, N copies of the batched CartPole, T = 32, the same epochs and minibatches for all N. After
each iteration the likeliest actions are tested; the tests are not counted. A run is over when three
tests in a row are passed, and counts up to the first of them: one alone may be luck. The notebook
of lesson 10 shows what this recorded, `environments.json` in `ppo_lessons/recorded`.
"""

import argparse
import sys
import time
from dataclasses import asdict, replace
from typing import Any

from benchmarks.record import RECORDED, write_result
from ppo_lessons.envs import BatchedEnvs, CartPole
from ppo_lessons.training_loop import PPOConfig, TrainState, evaluate, train

NUM_ENVS = (8, 32, 128, 512, 2048)
SOLVED = 475.0  # mean return of the test episodes
TEST_EPISODES = 50
IN_A_ROW = 3
MOST_ITERATIONS = 400
CONFIG = PPOConfig(
    env="CartPole", num_steps=32, num_epochs=4, num_minibatches=4, learning_rate=2.5e-3,
    final_learning_rate=1.0,
)  # fmt: skip


def solve(num_envs: int, seed: int) -> dict[str, Any]:
    """Train until a test is passed.

    Args:
        num_envs: N.
        seed: of everything random.

    Returns:
        Environment steps and CPU seconds until then; None where no test was passed.
    """
    config = replace(
        CONFIG, num_envs=num_envs, seed=seed, total_steps=MOST_ITERATIONS * 32 * num_envs
    )
    tests = BatchedEnvs(CartPole(), TEST_EPISODES)
    began, testing = time.process_time(), 0.0
    passed: list[tuple[int, float]] = []  # iteration and CPU seconds of the tests in a row

    def on_iteration(state: TrainState) -> bool:
        nonlocal testing
        now = time.process_time()
        returns = evaluate(state.networks.policy, tests, seed=state.iteration)
        if returns.mean() >= SOLVED:
            passed.append((state.iteration, now - began - testing))
        else:
            passed.clear()
        testing += time.process_time() - now
        return len(passed) == IN_A_ROW

    train(config, envs=BatchedEnvs(CartPole(), num_envs), on_iteration=on_iteration)
    solved = len(passed) == IN_A_ROW
    iteration, seconds = passed[0] if solved else (0, 0.0)
    return {
        "seed": seed,
        "env_steps": iteration * config.batch_size if solved else None,
        "iterations": iteration if solved else None,
        "cpu_seconds": round(seconds, 3) if solved else None,
    }


def main() -> None:
    """Train all of them and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    runs: dict[str, list[dict[str, Any]]] = {str(num_envs): [] for num_envs in NUM_ENVS}
    for seed in range(1, arguments.seeds + 1):  # N in turn, so that a busy minute meets all
        for num_envs in NUM_ENVS:
            runs[str(num_envs)].append(solve(num_envs, seed))
            print(num_envs, runs[str(num_envs)][-1], flush=True)
    content = {"config": asdict(CONFIG), "solved_at": SOLVED, "in_a_row": IN_A_ROW, "runs": runs}
    command = " ".join(["python -m benchmarks.environments", *sys.argv[1:]])
    print(write_result("environments", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
