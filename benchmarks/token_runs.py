"""One run of a method on the sorting task, by seed, and what is written down of it.

The studies of lessons 15 and 16 are lists of such runs. They are resumable: what a result file
already holds is not run again.
"""

import copy
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from benchmarks.record import RESULTS, write_result
from ppo_lessons.rlhf import RLHFConfig, TokenPolicy, evaluate_answers, train_tokens
from ppo_lessons.tokens import Prompts, Responses, TokenCritic, cached_reference, draw_prompts
from ppo_lessons.tokens.language import is_correct
from ppo_lessons.variants import informative_groups

NUM_GATE, NUM_RELEASE = 256, 1024  # held-out prompts: on the way, and at the end
Run = dict[str, Any]


def verified(prompts: Prompts, responses: Responses) -> torch.Tensor:
    """Pay 1 for a right answer and 0 for a wrong one."""
    return is_correct(prompts, responses.tokens, responses.mask).float()


def held_out(policy: Any, *, split: str, count: int, reference: Any = None) -> dict[str, float]:
    """Ask a policy held-out prompts, the same for every run."""
    prompts = draw_prompts(count, generator=Generator().manual_seed(7), split=split)
    found = evaluate_answers(
        policy, prompts, config=RLHFConfig(), generator=Generator().manual_seed(8),
        reference=reference, reward=verified,
    )  # fmt: skip
    return {name: round(number, 4) for name, number in found.items()}


def online_run(
    config: RLHFConfig,
    *,
    reference_seed: int,
    look_every: int,
    wrap: Callable[[TokenPolicy], Any] = lambda policy: policy,
    advantages_of: Callable[[Any], Callable[..., Any]],
    critic: bool = False,
    **slots: Any,
) -> Run:
    """Train from the reference of one seed; look at held-out prompts on the way and at the end.

    Args:
        config: the numbers of the run.
        reference_seed: which reference it starts from.
        look_every: iterations between two looks.
        wrap: puts the policy into another, as `AgedPolicy` does.
        advantages_of: from that policy to the function for the slot `advantages`.
        critic: whether there is one.
        **slots: other arguments of `train_tokens`.

    Returns:
        What the run was, by iteration and at the end; CPU seconds leave the looks out.
    """
    reference = cached_reference(seed=reference_seed)
    inner = TokenPolicy(copy.deepcopy(reference))
    policy = wrap(inner)
    looks: list[dict[str, float]] = []
    equal: list[float] = []
    spent = {"looking": 0.0}

    def look(state: Any) -> None:
        began = time.process_time()
        scores, groups = state.scored.scores, state.answers.groups
        equal.append(1 - informative_groups(scores, groups).float().mean().item())
        if state.iteration % look_every == 0:
            seen = held_out(inner, split="gate", count=NUM_GATE)
            looks.append({"num_answers": state.iteration * config.batch_size, **seen})
        spent["looking"] += time.process_time() - began

    began = time.process_time()
    history = train_tokens(
        config, policy=policy, reference=reference, reward=verified,
        critic=TokenCritic(reference) if critic else None,
        advantages=advantages_of(policy), on_iteration=look, **slots,
    )  # fmt: skip
    seconds = time.process_time() - began - spent["looking"]
    kept = (
        "success", "kl_reference", "length", "no_eos", "entropy", "fraction_outside", "kl_k3",
        "max_ratio_deviation", "ev_lambda", "ev_monte_carlo",
    )  # fmt: skip
    curves = {name: history[name] for name in kept}
    if config.group_size > 1:
        curves["equal_groups"] = equal
    return {
        "final": held_out(inner, split="release", count=NUM_RELEASE, reference=reference),
        "looks": looks,
        "cpu_seconds": round(seconds, 2),
        "largest": {
            name: shortened(max(curve)) for name, curve in curves.items() if curve[0] is not None
        },
        "means": {
            name: shortened(sum(curve) / len(curve))
            for name, curve in curves.items()
            if curve[0] is not None
        },
        # the iterations of the looks only: a file that can be read, and compared
        "curves": {
            name: [shortened(number) for number in curve[look_every - 1 :: look_every]]
            for name, curve in curves.items()
            if curve[0] is not None
        },
    }


def shortened(number: float | None) -> float | None:
    """Four significant digits are enough for a curve."""
    return None if number is None else float(f"{number:.4g}")


# --- resumable lists of runs ---------------------------------------------------------------------


def run_all(
    name: str,
    command: str,
    jobs: Iterator[tuple[str, Callable[[], Run]]],
    *,
    seconds: float,
    about: dict[str, Any],
) -> bool:
    """Run what is not yet in the result file, until time is up.

    Args:
        name: of the result file.
        command: what makes it.
        jobs: key and function of each run.
        seconds: wall time after which no further run begins.
        about: what else the file should say.

    Returns:
        Whether every run is there.
    """
    began = time.time()
    for key, job in jobs:
        if key in read_runs(name):
            continue
        if time.time() - began > seconds:
            return False
        run = job()
        final = run.get("final", {})
        print(key, final.get("success"), final.get("greedy_success"), flush=True)
        # read again: another process may have added runs meanwhile
        write_result(name, command, {**about, "runs": {**read_runs(name), key: run}})
    return True


def read_runs(name: str) -> dict[str, Run]:
    """Read the runs of a result file; none if there is no file."""
    path: Path = RESULTS / f"{name}.json"
    return json.loads(path.read_text("utf-8"))["runs"] if path.is_file() else {}


def later(function: Callable[..., Run], *positional: Any, **keywords: Any) -> Callable[[], Run]:
    """Fix the arguments of a run."""
    return partial(function, *positional, **keywords)
