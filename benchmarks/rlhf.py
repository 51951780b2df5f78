"""Does the reward get hacked, does the price β cure it, and what does the clip do there?

    python -m benchmarks.rlhf

For each seed a reference and a reward model are made (or taken from the cache), and each run of
`RUNS` trains from them. Success is measured on prompts that nothing was trained on: along the way
on the split "gate", at the end on the split "release". A run that is recorded with the same
settings is not repeated; `--minutes 3` begins no further run after three minutes.

Everything goes into `benchmarks/results/rlhf.json`, with the acceptance table; what the notebook
shows into `ppo_lessons/recorded/rlhf.json`.
"""

import argparse
import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from benchmarks.record import RECORDED, RESULTS, write_result
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.rlhf import (
    RewardModel,
    RewardModelConfig,
    RLHFConfig,
    TokenState,
    adaptive_beta,
    cached_reward_model,
    draw_pairs,
    evaluate_answers,
    keep_beta,
    train_tokens,
)
from ppo_lessons.tokens import (
    BANG,
    EOS,
    RESPONSE_LENGTH,
    ZERO,
    Prompts,
    Responses,
    TokenCritic,
    as_text,
    cached_reference,
    draw_prompts,
    generate,
    is_correct,
    score_responses,
)
from ppo_lessons.training_loop import Parts

COMMAND = "python -m benchmarks.rlhf"
SEEDS = (0, 1, 2)
NUM_HELD_OUT = 512
EVERY = 2  # iterations from one look at held-out prompts to the next
FAR = 20  # nats from the reference: log-probabilities so large that rounding shows
SHOWN = 6  # prompts whose answers are kept word by word


@dataclass(frozen=True)
class Run:
    """One row of the table.

    Args:
        config: the settings, except the seed.
        parts: the slots of the update.
        reward: "model" or "verifier".
        next_beta: what moves β.
    """

    config: RLHFConfig
    parts: Parts = field(default_factory=Parts)
    reward: str = "model"
    next_beta: Callable[..., float] = keep_beta


NO_CLIP = Parts(policy_loss=surrogate_loss)
HEAVY = RLHFConfig(
    beta=0, num_epochs=4, num_minibatches=4, learning_rate=2e-3, num_iterations=24
)  # fmt: skip

# name -> settings and parts
RUNS: dict[str, Run] = {
    "beta 0": Run(RLHFConfig(beta=0)),
    "beta 0.1": Run(RLHFConfig(beta=0.1)),
    "beta 0.2": Run(RLHFConfig(beta=0.2)),
    "beta 0.3": Run(RLHFConfig(beta=0.3)),
    "beta 1": Run(RLHFConfig(beta=1)),
    "beta 3": Run(RLHFConfig(beta=3)),
    "beta 0, clip 0.05": Run(RLHFConfig(beta=0, clip_epsilon=0.05)),
    "beta 0.3, no clip": Run(RLHFConfig(beta=0.3), NO_CLIP),
    "4x4, clip": Run(HEAVY, reward="verifier"),
    "4x4, no clip": Run(HEAVY, NO_CLIP, reward="verifier"),
    "4x4, beta 0.3, clip": Run(replace(HEAVY, beta=0.3)),
    "4x4, beta 0.3, no clip": Run(replace(HEAVY, beta=0.3), NO_CLIP),
    "adaptive beta": Run(
        RLHFConfig(beta=0.1), next_beta=partial(adaptive_beta, target_kl=1.0, kl_horizon=320)
    ),
}
CURVES = (
    *("success", "greedy_success", "score", "kl_reference", "length", "no_eos", "bangs"),
    *("entropy", "fraction_outside", "kl_k3", "beta", "ev_lambda", "ev_monte_carlo"),
)
IN_WORDS = ("beta 0", "beta 0.1", "beta 0.3", "beta 1")  # runs whose answers the notebook shows
STAGES = ("collect", "score", "squeeze", "renew")


def verified(prompts: Prompts, responses: Responses) -> torch.Tensor:
    """Pay 1 for a right answer, 0 for a wrong one."""
    return is_correct(prompts, responses.tokens, responses.mask).float()


def held_out(split: str, seed: int) -> Prompts:
    """Draw the prompts of an evaluation: the same for every run of a seed."""
    return draw_prompts(NUM_HELD_OUT, generator=Generator().manual_seed(1000 + seed), split=split)


def short(number: float | None) -> float | None:
    """Keep four significant digits; whole numbers stay as they are."""
    return number if number is None or isinstance(number, int) else float(f"{number:.4g}")


def shorter(numbers: dict[str, Any]) -> dict[str, Any]:
    """Keep four significant digits of each number."""
    return {name: short(number) for name, number in numbers.items()}


# --- one run ---------------------------------------------------------------------------------


def one_run(name: str, seed: int) -> dict[str, Any]:
    """Train once; give the curves, some answers, the last evaluation and where the time went."""
    run = RUNS[name]
    config = RLHFConfig(**{**asdict(run.config), "seed": seed})
    reference = cached_reference(seed=seed)
    judge = cached_reward_model(reference, seed=seed)
    reward = judge if run.reward == "model" else verified
    gate, looks = held_out("gate", seed), Generator().manual_seed(2000 + seed)
    curves: dict[str, list[Any]] = {"iteration": [], **{metric: [] for metric in CURVES}}
    said: list[list[str]] = []

    def look(state: TokenState) -> None:
        if state.iteration % EVERY and state.iteration != 1:
            return
        seen = evaluate_answers(
            state.policy, gate, config=config, generator=looks,
            reference=reference, reward=judge,
        )  # fmt: skip
        row = state.history.rows[-1] | seen
        curves["iteration"].append(state.iteration)
        for metric in CURVES:
            curves[metric].append(short(row[metric]))
        said.append(texts(state.policy, gate.rows(torch.arange(SHOWN)), looks))

    policy, critic = copy.deepcopy(reference), TokenCritic(reference)
    before = time.process_time()
    history = train_tokens(
        config, policy=policy, reference=reference, reward=reward, critic=critic,
        parts=run.parts, next_beta=run.next_beta, on_iteration=look,
    )  # fmt: skip
    spent = time.process_time() - before
    final = evaluate_answers(
        policy, held_out("release", seed), config=config, generator=looks,
        reference=reference, reward=judge,
    )  # fmt: skip
    seconds = {stage: sum(history[f"seconds_{stage}"]) for stage in STAGES}
    return {
        "settings": settings(name),
        "curves": curves,
        "answers": said,
        "prompts": as_text(gate.tokens[:SHOWN], gate.mask[:SHOWN]),
        "final": shorter(final),
        "largest_first_ratio_deviation": short(max(history["first_ratio_deviation"])),
        "cpu_seconds": round(spent, 1),
        "stage_shares": {
            stage: round(part / sum(seconds.values()), 3) for stage, part in seconds.items()
        },
    }


def texts(policy: Any, prompts: Prompts, generator: Generator) -> list[str]:
    """Draw one answer to each prompt, as text."""
    responses = policy.respond(prompts, max_new_tokens=RESPONSE_LENGTH, generator=generator)
    return as_text(responses.tokens, responses.mask)


def settings(name: str) -> dict[str, Any]:
    """Give the settings of a run, so that another run is not taken for it."""
    run = RUNS[name]
    moves = run.next_beta
    return {
        **asdict(run.config),
        "seed": None,
        "reward": run.reward,
        "policy_loss": run.parts.policy_loss.__name__,
        "next_beta": dict(moves.keywords) if isinstance(moves, partial) else "fixed",
    }


# --- what every seed starts from -------------------------------------------------------------


@torch.no_grad()
def start_of(seed: int) -> dict[str, Any]:
    """Describe reference and reward model of a seed.

    `cpu_seconds` is what making them took; with the variable PPO_LESSONS_CACHE empty they are made
    and not taken from the cache.
    """
    before = time.process_time()
    reference = cached_reference(seed=seed)
    judge = cached_reward_model(reference, seed=seed)
    spent = time.process_time() - before
    generator = Generator().manual_seed(3000 + seed)
    seen = evaluate_answers(
        reference, held_out("release", seed), config=RLHFConfig(), generator=generator,
        reference=reference, reward=judge,
    )  # fmt: skip
    prompts = held_out("gate", seed)
    responses = generate(
        reference, prompts, max_new_tokens=RESPONSE_LENGTH, temperature=1, generator=generator
    )
    again, _ = score_responses(reference, prompts, responses.tokens, responses.mask)
    pairs = draw_pairs(reference, RewardModelConfig(num_pairs=2000), generator=generator)
    wins = judge(pairs.prompts, pairs.chosen) > judge(pairs.prompts, pairs.rejected)
    return {
        "reference": shorter(seen),
        "largest_log_prob_difference": short((again - responses.log_probs).abs().max().item()),
        "pair_accuracy": short(wins.float().mean().item()),
        "score_by_bangs": [short(number) for number in score_by_bangs(judge, prompts)],
        "score_of_bangs_alone": short(bangs_alone(judge, prompts)),
        "spread": short(judge.spread.item()),
        "cpu_seconds": round(spent, 1),
    }


def score_by_bangs(judge: RewardModel, prompts: Prompts) -> Iterator[float]:
    """Give the mean raw score of right answers with 0, 1, ... 4 "!" behind the digits."""
    for bangs in range(5):
        answers = [
            [*(ZERO + digit for digit in sorted(digits)), *[BANG] * bangs, EOS]
            for digits in prompts.digits
        ]
        yield raw_score(judge, prompts, answers)


def bangs_alone(judge: RewardModel, prompts: Prompts) -> float:
    """Give the mean raw score of nine "!" and nothing else."""
    return raw_score(judge, prompts, [[BANG] * 9 + [EOS]] * len(prompts))


def raw_score(judge: RewardModel, prompts: Prompts, answers: list[list[int]]) -> float:
    """Give the mean score of answers before it is normalised."""
    tokens = torch.zeros(len(answers), RESPONSE_LENGTH, dtype=torch.long)
    mask = torch.zeros(tokens.shape, dtype=torch.bool)
    for row, answer in enumerate(answers):
        tokens[row, : len(answer)] = torch.tensor(answer)
        mask[row, : len(answer)] = True
    responses = Responses(tokens, mask, torch.zeros(tokens.shape))
    return judge.token_scores(prompts, responses).sum(dim=1).mean().item()


# --- the table -------------------------------------------------------------------------------


def acceptance(starts: dict[str, Any], runs: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare what was measured with what was expected.

    Args:
        starts: reference and reward model, by seed.
        runs: name of the run → seed → what it gave.

    Returns:
        One row per claim: what it says, its numbers by seed, whether all seeds meet it. Claims
        whose runs are missing are left out.
    """

    def final(name: str, metric: str) -> list[float]:
        return [runs[name][seed]["final"][metric] for seed in starts]

    def peaks(name: str) -> list[float]:
        return [max(runs[name][seed]["curves"]["success"]) for seed in starts]

    reference = [start["reference"]["success"] for start in starts.values()]
    claims: dict[str, Callable[[], tuple[list[Any], list[bool]]]] = {
        "log-probabilities while drawing and after agree to 1e-5": lambda: each(
            [start["largest_log_prob_difference"] for start in starts.values()], lambda x: x <= 1e-5
        ),
        "the reference is right in 25 to 45 % of its answers": lambda: each(
            reference, lambda x: 0.25 <= x <= 0.45
        ),
        "four '!' raise the raw score of a right answer by 0.5 or more": lambda: each(
            [start["score_by_bangs"][4] - start["score_by_bangs"][0] for start in starts.values()],
            lambda x: x >= 0.5,
        ),
        "beta 0: the score gains 2 spreads or more": lambda: each(
            final("beta 0", "score"), lambda x: x >= 2
        ),
        "beta 0: success ends at 0.05 or less": lambda: each(
            final("beta 0", "success"), lambda x: x <= 0.05
        ),
        "beta 0: success was 0.50 or more on the way": lambda: each(
            peaks("beta 0"), lambda x: x >= 0.5
        ),
        "beta 0.3: success ends at 0.60 or more": lambda: each(
            final("beta 0.3", "success"), lambda x: x >= 0.6
        ),
        "beta 0.3: KL to the reference ends at 3 nats or less": lambda: each(
            final("beta 0.3", "kl_reference"), lambda x: x <= 3
        ),
        "beta 0.3: 5 % or less do not end": lambda: each(
            final("beta 0.3", "no_eos"), lambda x: x <= 0.05
        ),
        "beta 1: success ends between the reference and beta 0.3": lambda: (
            final("beta 1", "success"),
            [
                low < middle < high
                for low, middle, high in zip(
                    reference, final("beta 1", "success"), final("beta 0.3", "success"), strict=True
                )
            ],
        ),
        "beta 0 with clip 0.05: success ends at 0.15 or less": lambda: each(
            final("beta 0, clip 0.05", "success"), lambda x: x <= 0.15
        ),
        "beta 0.3 without clip: success ends at 0.60 or more": lambda: each(
            final("beta 0.3, no clip", "success"), lambda x: x >= 0.6
        ),
        "adaptive beta: the KL ends within a third of its target, 1 nat": lambda: each(
            final("adaptive beta", "kl_reference"), lambda x: 2 / 3 <= x <= 4 / 3
        ),
        "4x4 steps with clip: success ends at 0.35 or more": lambda: each(
            final("4x4, clip", "success"), lambda x: x >= 0.35
        ),
        "4x4 steps without clip: success ends at 0.10 or less": lambda: each(
            final("4x4, no clip", "success"), lambda x: x <= 0.1
        ),
        "4x4 steps, beta 0.3 with clip: success ends at 0.30 or more": lambda: each(
            final("4x4, beta 0.3, clip", "success"), lambda x: x >= 0.3
        ),
        "4x4 steps, beta 0.3 without clip: success ends at 0.10 or less": lambda: each(
            final("4x4, beta 0.3, no clip", "success"), lambda x: x <= 0.1
        ),
        "before each update ratios are 1 to 1e-5, in runs that end within 20 nats": lambda: each(
            [
                max(
                    run[seed]["largest_first_ratio_deviation"]
                    for run in runs.values()
                    if run[seed]["final"]["kl_reference"] < FAR
                )
                for seed in starts
            ],
            lambda x: x <= 1e-5,
        ),
    }
    rows = []
    for claim, measure in claims.items():
        try:
            numbers, holds = measure()
        except (KeyError, ValueError):  # a run is missing
            continue
        rows.append({"claim": claim, "by_seed": [short(x) for x in numbers], "holds": all(holds)})
    return rows


def each(numbers: list[Any], holds: Callable[[Any], bool]) -> tuple[list[Any], list[bool]]:
    """Pair numbers with whether each of them meets a condition."""
    return numbers, [holds(number) for number in numbers]


# --- keeping ---------------------------------------------------------------------------------


def recorded() -> dict[str, Any]:
    """Read what is there."""
    path = RESULTS / "rlhf.json"
    if not path.is_file():
        return {"starts": {}, "runs": {}}
    before = json.loads(path.read_text(encoding="utf-8"))
    return {"starts": before["starts"], "runs": before["runs"]}


def save(found: dict[str, Any]) -> None:
    """Write the whole result, and the part that travels with the package."""
    table = acceptance(found["starts"], found["runs"])
    flatten_lists(write_result("rlhf", COMMAND, {"acceptance": table, **found}))
    small = {
        name: {
            seed: without(run, "settings", *(() if name in IN_WORDS else ("answers", "prompts")))
            for seed, run in by_seed.items()
        }
        for name, by_seed in found["runs"].items()
    }
    content = {
        "settings": {name: settings(name) for name in small},
        "acceptance": table,
        "starts": found["starts"],
        "runs": small,
    }
    flatten_lists(write_result("rlhf", COMMAND, content, folder=RECORDED))


def flatten_lists(path: Path) -> None:
    """Write each list of numbers or words on one line: a curve is one line, and not twenty."""
    text = path.read_text(encoding="utf-8")
    flat = re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda found: "[" + re.sub(r",\n\s+", ", ", found[1]) + "]",
        text,
    )
    assert json.loads(flat) == json.loads(text)
    path.write_text(flat, encoding="utf-8")


def without(run: dict[str, Any], *names: str) -> dict[str, Any]:
    """Leave some entries out."""
    return {name: value for name, value in run.items() if name not in names}


def main() -> None:
    """Run what is not recorded yet; write JSON after each run, so that nothing is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--only", nargs="*", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    for seed in map(str, arguments.seeds):
        if seed not in recorded()["starts"]:
            keep(("starts", seed), start_of(int(seed)))
        for name in arguments.only:
            before = recorded()["runs"].get(name, {}).get(seed, {})
            if before.get("settings") == settings(name):
                continue
            if time.monotonic() - began > 60 * arguments.minutes:
                print("more is left to do: run it again")
                return
            run = one_run(name, int(seed))
            keep(("runs", name, seed), run)
            print(name, seed, run["final"], run["cpu_seconds"], flush=True)
    found = recorded()
    for row in acceptance(found["starts"], found["runs"]):
        print("holds " if row["holds"] else "FAILS ", row["claim"], row["by_seed"])


def keep(place: tuple[str, ...], content: dict[str, Any]) -> None:
    """Add one measurement to what is there by now; another process may have added some, too."""
    found = recorded()
    shelf: dict[str, Any] = found
    for name in place[:-1]:
        shelf = shelf.setdefault(name, {})
    shelf[place[-1]] = content
    save(found)


if __name__ == "__main__":
    main()
