"""Which part did they replace, and what did it buy? Every method with the same samples.

    python -m benchmarks.variants             # resumes; --seconds 200 stops early
    python -m benchmarks.variants --record    # writes what the notebook shows

The verifier pays 1 for a right answer, β is 0, and a method sees 7,680 answers: 60 iterations of
128 online, or 960 prompts with 8 answers each that the reference drew once. Each method is tuned
with the same number of runs, three settings from the reference of seed 3; the best on the prompts
of the split "gate" is then run from the references of seeds 0, 1 and 2 and tested on the split
"release".
"""

import argparse
import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator

from benchmarks.record import RECORDED, write_result
from benchmarks.token_runs import (
    NUM_RELEASE,
    Run,
    held_out,
    later,
    online_run,
    read_runs,
    run_all,
    verified,
)
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.rlhf import RLHFConfig, critic_advantages
from ppo_lessons.tokens import Prompts, Responses, cached_reference, draw_prompts, generate
from ppo_lessons.training_loop import Parts
from ppo_lessons.variants import (
    accepted,
    cispo_loss,
    dapo_loss,
    dr_grpo_advantages,
    from_scores,
    group_advantages,
    make_pairs,
    plain_sequence_loss,
    plain_token_loss,
    reinforce_pp_baseline_slot,
    reinforce_pp_slot,
    rloo_advantages,
    scores_themselves,
    sequence_surrogate_loss,
    token_surrogate_loss,
    train_accepted,
    train_dpo,
    unchanged,
    warm_adam,
)

SEEDS, TUNING_SEED = (0, 1, 2), 3
NUM_ITERATIONS, BATCH_SIZE, GROUP_SIZE = 60, 128, 8
RATES = (2e-4, 4e-4, 8e-4)
MIDDLE = RATES[1]
COMMAND = "python -m benchmarks.variants"
GRPO = from_scores(group_advantages)


@dataclass(frozen=True)
class Online:
    """A method that draws from itself: what it puts into the slots of `train_tokens`."""

    advantages: Callable[..., Any]
    group_size: int = GROUP_SIZE
    policy_loss: Callable[..., Any] = clipped_surrogate_loss
    critic: bool = False
    clip_epsilon: float = 0.2
    tuned_as: str | None = None  # whose learning rate it takes; its own if None


CLIPPED = partial(token_surrogate_loss, mode="sequence_mean")
METHODS: dict[str, Online] = {
    "PPO": Online(partial(critic_advantages, gamma=1.0, gae_lambda=0.95), 1, critic=True),
    "GRPO": Online(GRPO),
    "RLOO": Online(from_scores(rloo_advantages)),
    "REINFORCE++": Online(partial(reinforce_pp_slot, gamma=1.0), 1),
    # one thing changed, at the learning rate of the row that it is named after
    "GRPO, mean of means": Online(GRPO, policy_loss=CLIPPED, tuned_as="GRPO"),
    "GRPO, groups of 4": Online(GRPO, 4, tuned_as="GRPO"),
    "GRPO, wide upper edge": Online(GRPO, policy_loss=dapo_loss, tuned_as="GRPO"),
    "Dr. GRPO": Online(
        from_scores(dr_grpo_advantages), tuned_as="GRPO",
        policy_loss=partial(token_surrogate_loss, mode="constant", max_length=10),
    ),
    "GSPO": Online(GRPO, policy_loss=sequence_surrogate_loss, tuned_as="GRPO", clip_epsilon=0.05),
    "CISPO": Online(GRPO, policy_loss=cispo_loss, tuned_as="GRPO"),
    "RLOO, whole answers": Online(
        from_scores(rloo_advantages), policy_loss=plain_sequence_loss, tuned_as="RLOO"
    ),
    # the pair in which nothing but the baseline differs
    "GRPO, no spread": Online(from_scores(dr_grpo_advantages), tuned_as="GRPO"),
    "GRPO, no spread, no baseline": Online(from_scores(scores_themselves), tuned_as="GRPO"),
    "REINFORCE++ baseline": Online(reinforce_pp_baseline_slot, tuned_as="REINFORCE++"),
    "Rejection sampling, online": Online(
        from_scores(scores_themselves), policy_loss=plain_token_loss, tuned_as="GRPO"
    ),
}  # fmt: skip
TUNED = [name for name, method in METHODS.items() if method.tuned_as is None]
# settings of the methods that learn from answers drawn once: three each
OFFLINE: dict[str, tuple[dict[str, Any], ...]] = {
    "DPO": (
        {"beta": 1.0, "learning_rate": 3e-4, "num_epochs": 2},
        {"beta": 0.3, "learning_rate": 1e-4, "num_epochs": 1},
        {"beta": 0.3, "learning_rate": 3e-4, "num_epochs": 2},
    ),
    "Rejection sampling": (
        {"learning_rate": 3e-4, "num_epochs": 1},
        {"learning_rate": 3e-4, "num_epochs": 3},
        {"learning_rate": 1e-3, "num_epochs": 3},
    ),
}
# what happens at small β, whatever the tuning says
SMALL_BETA = {
    name: {"learning_rate": 3e-4, "minibatch_size": 16, **setting}
    for name, setting in {
        "DPO, beta 1": {"beta": 1.0, "num_epochs": 2},
        "DPO, beta 0.1": {"beta": 0.1, "num_epochs": 1},
        "DPO, beta 0.1, 4 epochs": {"beta": 0.1, "num_epochs": 4},
    }.items()
}


# --- one run -------------------------------------------------------------------------------------


def online(name: str, learning_rate: float, seed: int) -> Run:
    """Train one method from the reference of one seed."""
    method = METHODS[name]
    config = RLHFConfig(
        seed=seed, beta=0.0, num_iterations=NUM_ITERATIONS, learning_rate=learning_rate,
        num_prompts=BATCH_SIZE // method.group_size, group_size=method.group_size,
        clip_epsilon=method.clip_epsilon,
    )  # fmt: skip
    run = online_run(
        config, reference_seed=seed, look_every=10, critic=method.critic,
        advantages_of=lambda _: method.advantages,
        parts=Parts(
            optimizer=warm_adam, policy_loss=method.policy_loss,
            **({} if method.critic else {"normalize": unchanged}),
        ),
    )  # fmt: skip
    return {"learning_rate": learning_rate, **run}


def drawn_once(seed: int) -> tuple[Any, Prompts, Responses, torch.Tensor, torch.Tensor]:
    """Draw 960 prompts and 8 answers to each from the reference, and pay them."""
    reference, generator = cached_reference(seed=seed), Generator().manual_seed(100 + seed)
    num_prompts = NUM_ITERATIONS * BATCH_SIZE // GROUP_SIZE
    prompts = draw_prompts(num_prompts, generator=generator).repeated(GROUP_SIZE)
    responses = generate(
        reference, prompts, max_new_tokens=10, temperature=1.0, generator=generator
    )
    groups = torch.arange(num_prompts).repeat_interleave(GROUP_SIZE)
    return reference, prompts, responses, verified(prompts, responses), groups


def offline(name: str, setting: dict[str, Any], seed: int) -> Run:
    """Learn from what the reference drew once: pairs, or the right answers."""
    began = time.process_time()
    reference, prompts, responses, scores, groups = drawn_once(seed)
    policy, generator = copy.deepcopy(reference), Generator().manual_seed(seed)
    shared = {"minibatch_size": 64, **setting, "generator": generator}
    if name.startswith("DPO"):
        chosen, rejected = make_pairs(scores, groups)
        epochs = train_dpo(
            policy, reference, prompts.rows(chosen), responses.rows(chosen),
            responses.rows(rejected), **shared,
        )  # fmt: skip
        num_rows = len(chosen)
    else:
        kept = accepted(scores, at_least=1.0).nonzero().squeeze(-1)
        epochs = train_accepted(policy, prompts.rows(kept), responses.rows(kept), **shared)
        num_rows = len(kept)
    seconds = time.process_time() - began
    return {
        **setting,
        "final": held_out(policy, split="release", count=NUM_RELEASE, reference=reference),
        "looks": [held_out(policy, split="gate", count=256)],
        "cpu_seconds": round(seconds, 2),
        "num_rows": num_rows,
        "epochs": [{name: round(number, 4) for name, number in row.items()} for row in epochs],
    }


@torch.no_grad()
def best_of(seed: int) -> Run:
    """Draw n answers a prompt and keep the best by the verifier: nothing is trained.

    It is an upper bound for best-of-n, since in use nobody knows which answer is right; and the
    n draws are paid again for every prompt.
    """
    reference, generator = cached_reference(seed=seed), Generator().manual_seed(9)
    prompts = draw_prompts(512, generator=Generator().manual_seed(7), split="release")
    draws = [
        verified(
            prompts,
            generate(reference, prompts, max_new_tokens=10, temperature=1.0, generator=generator),
        )
        for _ in range(16)
    ]
    right = torch.stack(draws).sum(0)
    return {"final": {}, "coverage": {str(n): coverage(right, 16, n) for n in (1, 2, 4, 8, 16)}}


def coverage(right: torch.Tensor, num_drawn: int, count: int) -> float:
    """Estimate without bias the chance that one of `count` answers is right, from more draws."""
    wrong = [math.comb(num_drawn - int(k), count) / math.comb(num_drawn, count) for k in right]
    return round(1 - sum(wrong) / len(wrong), 4)


# --- the list ------------------------------------------------------------------------------------


Job = tuple[str, Callable[[], Run]]


def jobs() -> Iterator[Job]:
    """List all runs: everybody at the middle learning rate first, then tuning, then the rest."""
    for seed in SEEDS:
        for name in TUNED:
            yield online_job(name, MIDDLE, seed)
        for name, setting in SMALL_BETA.items():
            yield f"{name}/{seed}", later(offline, name, setting, seed)
        yield f"best of n/{seed}", later(best_of, seed)
    for name in TUNED:
        for rate in RATES:
            yield online_job(name, rate, TUNING_SEED)
    for name, settings in OFFLINE.items():
        for number, setting in enumerate(settings):
            yield f"{name}/{number}/{TUNING_SEED}", later(offline, name, setting, TUNING_SEED)
    yield from tuned_jobs()


def tuned_jobs() -> Iterator[Job]:
    """List the runs whose settings tuning has chosen, and those with one thing changed."""
    for seed in SEEDS:
        for name, method in METHODS.items():
            yield online_job(name, tuned_rate(method.tuned_as or name), seed)
        for name in OFFLINE:
            number = tuned_setting(name)
            job = later(offline, name, OFFLINE[name][number], seed)
            yield f"{name}/{number}/{seed}", job


def online_job(name: str, rate: float, seed: int) -> Job:
    """Name an online run by method, learning rate and seed."""
    return f"{name}/{rate}/{seed}", later(online, name, rate, seed)


def tuned_rate(name: str) -> float:
    """Give the learning rate that did best in tuning."""
    return max(RATES, key=lambda rate: gate_success(f"{name}/{rate}/{TUNING_SEED}"))


def tuned_setting(name: str) -> int:
    """Give the number of the setting that did best in tuning."""
    numbers = range(len(OFFLINE[name]))
    return max(numbers, key=lambda number: gate_success(f"{name}/{number}/{TUNING_SEED}"))


def gate_success(key: str) -> float:
    """Success on the gate's prompts at the end of a tuning run; 0 before it has been run."""
    run = read_runs("variants").get(key)
    return run["looks"][-1]["success"] if run else 0.0


def record() -> None:
    """Write what the notebook shows: the end of each run and its way there."""
    runs = {}
    for key, run in read_runs("variants").items():
        kept = {name: run[name] for name in run if name not in ("looks", "curves")}
        if "curves" in run:
            kept["num_answers"] = [look["num_answers"] for look in run["looks"]]
            kept["success"] = [look["success"] for look in run["looks"]]
            shown = ("equal_groups", "ev_monte_carlo", "ev_lambda", "fraction_outside")
            kept |= {name: run["curves"][name] for name in shown if name in run["curves"]}
        runs[key] = kept
    content = {"seeds": SEEDS, "tuning_seed": TUNING_SEED, "rates": RATES, "runs": runs}
    print(write_result("variants", f"{COMMAND} --record", content, folder=RECORDED))


def main() -> None:
    """Run what is missing, or write the notebook's file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        record()
        return
    about = {"seeds": SEEDS, "tuning_seed": TUNING_SEED, "rates": RATES}
    complete = run_all("variants", COMMAND, jobs(), seconds=arguments.seconds, about=about)
    print("complete" if complete else "to be continued")


if __name__ == "__main__":
    main()
