"""Old rollouts: what ratio, clip and decoupled weights each repair, by age and seed.

    python -m benchmarks.staleness            # resumes; --seconds 200 stops early
    python -m benchmarks.staleness --record   # writes what the notebook shows

REINFORCE++ advantages on the verifier's reward, 128 answers an iteration. Two designs: one update
per batch (learning rate 10⁻³, 60 iterations), and 2 epochs of 2 minibatches (5·10⁻⁴, 48).
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from benchmarks.record import RECORDED, write_result
from benchmarks.token_runs import Run, later, online_run, read_runs, run_all
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.rlhf import RLHFConfig
from ppo_lessons.staleness import AgedPolicy, DecoupledPolicy
from ppo_lessons.training_loop import Parts
from ppo_lessons.variants import plain_token_loss, reinforce_pp_slot, unchanged, warm_adam

SEEDS = (0, 1, 2)
AGES = (0, 1, 4, 16)
COMMAND = "python -m benchmarks.staleness"
SCORED = partial(reinforce_pp_slot, gamma=1.0)
LOSSES: dict[str, Parts] = {
    "nothing": Parts(normalize=unchanged, policy_loss=plain_token_loss, optimizer=warm_adam),
    "ratio": Parts(normalize=unchanged, policy_loss=surrogate_loss, optimizer=warm_adam),
    "clip": Parts(normalize=unchanged, optimizer=warm_adam),
}
DESIGNS: dict[str, dict[str, Any]] = {
    "one update": {
        "num_epochs": 1, "num_minibatches": 1, "learning_rate": 1e-3, "num_iterations": 60,
    },
    "four updates": {
        "num_epochs": 2, "num_minibatches": 2, "learning_rate": 5e-4, "num_iterations": 48,
    },
}  # fmt: skip
ACCEPTANCE = {("one update", 0), ("one update", 4), ("one update", 16), ("four updates", 0)}


def config_of(design: str, seed: int) -> RLHFConfig:
    """Give the numbers of a run."""
    return RLHFConfig(seed=seed, beta=0.0, num_prompts=128, **DESIGNS[design])


def aged(correction: str, design: str, age: int, seed: int) -> Run:
    """Train on rollouts of one age, corrected in one way."""
    return online_run(
        config_of(design, seed), reference_seed=seed, look_every=6,
        wrap=partial(AgedPolicy, age=age), advantages_of=lambda _: SCORED,
        parts=LOSSES[correction],
    )  # fmt: skip


def decoupled(design: str, age: int, seed: int) -> Run:
    """Train on rollouts of one age, with the clip around π_prox and weights up to 2."""
    return online_run(
        config_of(design, seed), reference_seed=seed, look_every=6,
        wrap=partial(DecoupledPolicy, age=age, largest_weight=2.0),
        advantages_of=lambda policy: policy.weighing(SCORED), parts=LOSSES["clip"],
    )  # fmt: skip


def jobs() -> Iterator[tuple[str, Callable[[], Run]]]:
    """List all runs, those of the acceptance table first."""
    for first in (True, False):
        for seed in SEEDS:
            for design, correction, age in product(DESIGNS, (*LOSSES, "decoupled"), AGES):
                if (design, age) == ("one update", 0) and correction != "clip":
                    continue  # the ratio is 1: all are the same run
                if correction == "decoupled" and age < 4:
                    continue
                if ((design, age) in ACCEPTANCE) != first:
                    continue
                run = decoupled if correction == "decoupled" else partial(aged, correction)
                yield f"{design}/{correction}/{age}/{seed}", later(run, design, age, seed)


def record() -> None:
    """Write what the notebook shows: looks and alarms of each run."""
    runs = {}
    for key, run in read_runs("staleness").items():
        alarms = {name: run["curves"][name] for name in ("fraction_outside", "max_ratio_deviation")}
        runs[key] = {
            "final": run["final"],
            "success": [look["success"] for look in run["looks"]],
            "num_answers": [look["num_answers"] for look in run["looks"]],
            **alarms,
        }
    content = {"designs": DESIGNS, "seeds": SEEDS, "ages": AGES, "runs": runs}
    print(write_result("staleness", f"{COMMAND} --record", content, folder=RECORDED))


def main() -> None:
    """Run what is missing, or write the notebook's file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        record()
        return
    about = {"designs": DESIGNS, "seeds": SEEDS, "ages": AGES}
    complete = run_all("staleness", COMMAND, jobs(), seconds=arguments.seconds, about=about)
    print("complete" if complete else "to be continued")


if __name__ == "__main__":
    main()
