"""Six settings on CartPole with 64 seeds each: what the widget SeedCount draws from.

    python -m benchmarks.seed_count

Batches are used hard (8 epochs of 4 minibatches), so that the settings differ, and the budget is
short, so that seeds do. What it records is `seed_count.json` in `ppo_lessons/recorded`.
"""

import argparse
import sys
from dataclasses import asdict, replace
from functools import partial

from benchmarks.record import RECORDED, write_result
from ppo_lessons.ablations import SCORE, Setting, Study, run_study
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.training_loop import Parts, PPOConfig
from ppo_lessons.trust_region import penalty_loss

CONFIG = PPOConfig(
    env="CartPole", num_envs=16, num_steps=64, learning_rate=5e-3, total_steps=12_288,
)  # fmt: skip
SETTINGS = (
    Setting("clip 0.2", CONFIG),
    Setting("clip 0.1", replace(CONFIG, clip_epsilon=0.1)),
    Setting("clip 0.3", replace(CONFIG, clip_epsilon=0.3)),
    Setting("no clip", CONFIG, Parts(policy_loss=surrogate_loss)),
    Setting("fixed penalty", CONFIG, Parts(policy_loss=partial(penalty_loss, beta=1.0))),
    Setting("λ = 1", replace(CONFIG, gae_lambda=1.0)),
)


def main() -> None:
    """Train all of them and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    study = Study(
        name="seed_count",
        question="Which of six ways to hold the policy back learns CartPole best in 12,288 steps?",
        expectation="Without a clip it is worst. The others lie too near to be told apart.",
        settings=SETTINGS,
        seeds=range(1, arguments.seeds + 1),
    )
    result = run_study(study, workers=arguments.workers)
    scores = {
        name: [round(score, 2) for score in result.scores(name).tolist()]
        for name in result.settings
    }
    content = {
        "question": study.question,
        "expectation": study.expectation,
        "score": SCORE,
        "config": asdict(CONFIG),
        "scores": scores,
    }
    command = " ".join(["python -m benchmarks.seed_count", *sys.argv[1:]])
    print(write_result("seed_count", command, content, folder=RECORDED))


if __name__ == "__main__":
    main()
