"""How many steps until it is solved, and how good is it at the end? Over seeds, never one.

python -m benchmarks.learning --env CartPole-v1 --seeds 10 --goal 475
python -m benchmarks.learning --env Acrobot-v1 --seeds 5 --goal -90 --total-steps 500000
"""

import argparse
import statistics
import sys
import time
from typing import Any

from benchmarks.record import write_result
from ppo_lessons.envs import make_envs
from ppo_lessons.training_loop import PPOConfig, TrainState, evaluate, train

EPISODES = 100


def learn(config: PPOConfig, *, goal: float, every: int) -> dict[str, Any]:
    """Train one seed; test it with greedy episodes on the way and at the end.

    Args:
        config: of the run.
        goal: mean return that counts as solved (reward).
        every: iterations between two tests.

    Returns:
        First step at which a test reached the goal (None if none did), the final greedy and
        sampled returns, and the seconds that training took.
    """
    tests = make_envs(config.env, EPISODES)
    first_hit: list[int] = []
    testing = [0.0]

    def on_iteration(state: TrainState) -> None:
        if first_hit or state.iteration % every:
            return
        began = time.process_time()
        mean = evaluate(state.networks.policy, tests, seed=state.config.seed).mean().item()
        testing[0] += time.process_time() - began
        if mean >= goal:
            first_hit.append(state.env_steps)

    began = time.process_time()
    history = train(config, on_iteration=on_iteration)
    seconds = time.process_time() - began - testing[0]
    policy = history.networks.policy
    final = evaluate(policy, tests, seed=10_000 + config.seed)
    sampled = evaluate(policy, tests, seed=10_000 + config.seed, greedy=False)
    return {
        "seed": config.seed,
        "env_steps": history["env_steps"][-1],
        "first_hit": first_hit[0] if first_hit else None,
        "final_greedy": round(final.mean().item(), 2),
        "final_sampled": round(sampled.mean().item(), 2),
        "cpu_seconds": round(seconds, 2),
    }


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--goal", type=float, default=475.0)
    parser.add_argument("--total-steps", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=1, help="iterations between two tests")
    arguments = parser.parse_args()
    rows = []
    for seed in range(1, arguments.seeds + 1):
        config = PPOConfig(env=arguments.env, seed=seed, total_steps=arguments.total_steps)
        rows.append(learn(config, goal=arguments.goal, every=arguments.every))
        print(rows[-1], flush=True)
    hits = [row["first_hit"] for row in rows if row["first_hit"] is not None]
    content = {
        "preset": "quick",
        "env": arguments.env,
        "goal": arguments.goal,
        "tested_every_steps": arguments.every * PPOConfig().batch_size,
        "greedy_episodes_per_test": EPISODES,
        "solved_at_end": sum(row["final_greedy"] >= arguments.goal for row in rows),
        "seeds": len(rows),
        "median_first_hit": statistics.median(hits) if len(hits) == len(rows) else None,
        "worst_first_hit": max(hits) if len(hits) == len(rows) else None,
        "runs": rows,
    }
    command = f"python -m benchmarks.learning {' '.join(sys.argv[1:])}"
    print(write_result(f"learning_{arguments.env}", command, content))


if __name__ == "__main__":
    main()
