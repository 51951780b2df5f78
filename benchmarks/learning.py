"""How many steps until it is solved, and how good is it at the end? Over seeds, never one.

python -m benchmarks.learning --env CartPole-v1 --seeds 10 --goal 475
python -m benchmarks.learning --env Acrobot-v1 --seeds 5 --goal -90 --total-steps 500000
python -m benchmarks.learning --batched CartPole Acrobot MountainCar

The last trains in environments of our own, `BatchedEnvs`, and tests at the end in gymnasium's.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from typing import Any, NamedTuple

from benchmarks.record import RESULTS, write_result
from ppo_lessons.envs import TASKS, BatchedEnvs, Envs, make_envs
from ppo_lessons.training_loop import PRESETS, PPOConfig, TrainState, evaluate, train

EPISODES = 100
BATCHED = PRESETS["batched"].config


class Goal(NamedTuple):
    """A batched task, and what is to be reached there.

    Args:
        env: gymnasium's environment of the same rules, for the test at the end.
        seeds: how many runs.
        reward: mean return that counts as solved.
        config: of a run.
    """

    env: str
    seeds: int
    reward: float
    config: PPOConfig


GOALS = {
    "CartPole": Goal("CartPole-v1", 10, 475, replace(BATCHED, total_steps=100_000)),
    "Acrobot": Goal("Acrobot-v1", 5, -90, replace(BATCHED, total_steps=200_000)),
    # No reward before the goal, and chance does not find it: PPO stays where it began.
    "MountainCar": Goal("MountainCar-v0", 3, -110, replace(BATCHED, total_steps=100_000)),
}


def learn(
    config: PPOConfig,
    *,
    goal: float,
    every: int,
    envs: Envs | None = None,
    tests: Envs | None = None,
) -> dict[str, Any]:
    """Train one seed; test it with greedy episodes on the way and at the end.

    Args:
        config: of the run.
        goal: mean return that counts as solved (reward).
        every: iterations between two tests.
        envs: to train in; gymnasium's if left out.
        tests: for the tests on the way; gymnasium's, as at the end, if left out.

    Returns:
        First step at which a test reached the goal (None if none did), the final greedy and
        sampled returns, and the seconds that training took.
    """
    finals = make_envs(config.env, EPISODES)
    tests = finals if tests is None else tests
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
    history = train(config, envs=envs, on_iteration=on_iteration)
    seconds = time.process_time() - began - testing[0]
    policy = history.networks.policy
    final = evaluate(policy, finals, seed=10_000 + config.seed)
    sampled = evaluate(policy, finals, seed=10_000 + config.seed, greedy=False)
    return {
        "seed": config.seed,
        "env_steps": history["env_steps"][-1],
        "first_hit": first_hit[0] if first_hit else None,
        "final_greedy": round(final.mean().item(), 2),
        "final_sampled": round(sampled.mean().item(), 2),
        "cpu_seconds": round(seconds, 2),
    }


def summary(rows: list[dict[str, Any]], goal: float) -> dict[str, Any]:
    """Say how many runs reached a goal, and after how many steps."""
    hits = [row["first_hit"] for row in rows if row["first_hit"] is not None]
    return {
        "goal": goal,
        "greedy_episodes_per_test": EPISODES,
        "solved_at_end": sum(row["final_greedy"] >= goal for row in rows),
        "seeds": len(rows),
        "median_first_hit": statistics.median(hits) if len(hits) == len(rows) else None,
        "worst_first_hit": max(hits) if len(hits) == len(rows) else None,
        "runs": rows,
    }


def learn_batched(name: str, every: int) -> dict[str, Any]:
    """Train all seeds of one batched task.

    Args:
        name: one of `GOALS`.
        every: iterations between two tests.

    Returns:
        What was reached.
    """
    goal, rows = GOALS[name], []
    tests = BatchedEnvs(TASKS[name](), EPISODES)
    for seed in range(1, goal.seeds + 1):
        config = replace(goal.config, env=goal.env, seed=seed)
        envs = BatchedEnvs(TASKS[name](), config.num_envs)
        rows.append(learn(config, goal=goal.reward, every=every, envs=envs, tests=tests))
        print(name, rows[-1], flush=True)
    steps = goal.config.batch_size * every
    about = {"tested_at_the_end_in": goal.env, "tested_every_steps": steps}
    return {**about, "config": str(goal.config), **summary(rows, goal.reward)}


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--goal", type=float, default=475.0)
    parser.add_argument("--total-steps", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=1, help="iterations between two tests")
    parser.add_argument("--batched", nargs="+", choices=GOALS, metavar="TASK", default=[])
    arguments = parser.parse_args()
    if arguments.batched:
        path = RESULTS / "learning_batched.json"
        before = json.loads(path.read_text("utf-8"))["tasks"] if path.exists() else {}
        found = {name: learn_batched(name, arguments.every) for name in arguments.batched}
        command = f"python -m benchmarks.learning --batched {' '.join(GOALS)}"
        print(write_result("learning_batched", command, {"tasks": {**before, **found}}))
        return
    rows = []
    for seed in range(1, arguments.seeds + 1):
        config = PPOConfig(env=arguments.env, seed=seed, total_steps=arguments.total_steps)
        rows.append(learn(config, goal=arguments.goal, every=arguments.every))
        print(rows[-1], flush=True)
    content = {
        "preset": "quick",
        "env": arguments.env,
        "tested_every_steps": arguments.every * PPOConfig().batch_size,
        **summary(rows, arguments.goal),
    }
    command = f"python -m benchmarks.learning {' '.join(sys.argv[1:])}"
    print(write_result(f"learning_{arguments.env}", command, content))


if __name__ == "__main__":
    main()
