"""The package against numbers that other libraries computed, and against those that are installed.

The numbers and the versions that gave them stand in `golden/parity.json`; `tools/make_golden.py`
wrote it. Another library is a cross-check, never the oracle: it may be wrong with us.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from oracles import gradient
from torch.testing import assert_close

from ppo_lessons.clip import clip_fractions, clipped_surrogate_loss
from ppo_lessons.critic import explained_variance
from ppo_lessons.envs.breakout import Breakout
from ppo_lessons.gae import compute_gae
from ppo_lessons.importance import approximate_kl, effective_sample_size, importance_ratios
from tools import make_golden

GOLDEN = json.loads((Path(__file__).parent / "golden" / "parity.json").read_text("utf-8"))
MODULES = {"minatar": "minatar", "stable-baselines3": "stable_baselines3", "torchrl": "torchrl"}

# Stable-Baselines3 computes advantages in float32, with values near 10: five digits. torchrl is
# given float64, but makes γ·(1 − terminated) and the bounds of the clip in float32: six digits.
FIVE_DIGITS, SIX_DIGITS = {"rtol": 1e-5, "atol": 1e-5}, {"rtol": 1e-6, "atol": 1e-6}
FLOAT64 = {"rtol": 1e-12, "atol": 1e-12}
EXACT = {"rtol": 0.0, "atol": 0.0}


def our_gae(given):
    gamma, gae_lambda = GOLDEN["settings"]["gamma"], GOLDEN["settings"]["gae_lambda"]
    advantages = compute_gae(**given, gamma=gamma, gae_lambda=gae_lambda)
    return {"advantages": advantages, "returns": advantages + given["values"]}


def our_clip(given):
    logits = given["logits"].clone().requires_grad_()
    log_probs, log_probs_old = (
        make_golden.log_probs_of(table, given["actions"]) for table in (logits, given["logits_old"])
    )
    clip_epsilon = GOLDEN["settings"]["clip_epsilon"]
    loss = clipped_surrogate_loss(
        log_probs, log_probs_old, given["advantages"], clip_epsilon=clip_epsilon
    )
    slope = gradient(loss, logits)
    log_probs = log_probs.detach()
    ratios = importance_ratios(log_probs, log_probs_old)
    return {
        "loss": loss.detach(),
        "slope": slope,
        "fraction_outside": clip_fractions(
            log_probs, log_probs_old, given["advantages"], clip_epsilon=clip_epsilon
        )[0],
        "kl_k1": approximate_kl(log_probs, log_probs_old, estimator="k1"),
        "effective_share": effective_sample_size(ratios) / len(ratios),
    }


def our_explained_variance(given):
    return {"explained_variance": explained_variance(**given)}


def our_breakout(given):
    """One step of `Breakout` from every state; `seen` is a checksum of the four boards."""
    task = Breakout(sticky=0)
    bricks = torch.zeros(len(given["row"]), 10, 10, dtype=torch.bool)
    bricks[:, 1:4] = (given["bricks"][:, None] >> torch.arange(30) & 1).bool().reshape(-1, 3, 10)
    state = {name: given[name] for name in given if name not in ("bricks", "actions")}
    state |= {"bricks": bricks, "action": torch.zeros_like(given["actions"])}
    reached, rewards, terminated = task.advance(
        state, given["actions"], generator=torch.Generator()
    )
    boards = task.observe(reached).flatten(1).long()
    packed = reached["bricks"][:, 1:4].flatten(1).long() << torch.arange(30)
    answer = {name: reached[name] for name in reached if name not in ("bricks", "action")}
    return answer | {
        "bricks": packed.sum(-1),
        "rewards": rewards,
        "terminated": terminated,
        "seen": (boards << torch.arange(400) % 62).sum(-1),
    }


# name of a case: our answer and how near it must come
OURS = {
    "gae, terminations": (our_gae, FIVE_DIGITS),
    "gae, truncations in the rewards": (our_gae, FIVE_DIGITS),
    "gae, two flags": (our_gae, SIX_DIGITS),
    "clipped surrogate": (our_clip, SIX_DIGITS),
    "explained variance": (our_explained_variance, FLOAT64),
    "breakout": (our_breakout, EXACT),
}
EVERY_CASE = pytest.mark.parametrize("name", GOLDEN["cases"])


def read(lists: dict) -> dict:
    """JSON's numbers as float64, its whole numbers and flags as what they are."""
    with_kind = {name: torch.tensor(numbers) for name, numbers in lists.items()}
    return {
        name: torch.tensor(lists[name], dtype=torch.float64) if t.is_floating_point() else t
        for name, t in with_kind.items()
    }


def agree(ours: dict, theirs: dict, tolerance: dict) -> None:
    assert set(ours) == set(theirs)
    for name, expected in theirs.items():
        close = torch.allclose(ours[name].double(), expected.double(), **tolerance)
        assert close, f"{name}: {ours[name]} against {expected}"


@EVERY_CASE
def test_we_agree_with_what_the_library_answered(name):
    ours, tolerance = OURS[name]
    case = GOLDEN["cases"][name]
    agree(ours(read(case["given"])), read(case["answer"]), tolerance)


@pytest.mark.parity
@EVERY_CASE
def test_we_agree_with_the_library_itself(name):
    library, ask, draw = make_golden.CASES[name]
    if find_spec(MODULES[library]) is None:
        pytest.skip(f"{library} is not installed")
    ours, tolerance = OURS[name]
    given = read(GOLDEN["cases"][name]["given"])
    agree(ours(given), ask(draw()), tolerance)


@EVERY_CASE
def test_the_stored_question_is_the_one_that_is_drawn(name):
    _, _, draw = make_golden.CASES[name]
    given, drawn = read(GOLDEN["cases"][name]["given"]), draw()
    assert set(given) == set(drawn)
    for table, tensor in given.items():
        # softmax and multinomial may differ in the last digit on another processor
        assert_close(tensor, drawn[table].to(tensor.dtype), rtol=1e-12, atol=1e-12)


def test_every_case_is_stored_and_has_an_answer_of_ours():
    assert set(GOLDEN["cases"]) == set(make_golden.CASES) == set(OURS)
    assert set(MODULES) == {library for library, _, _ in make_golden.CASES.values()}
    assert set(MODULES) < set(GOLDEN["versions"])


def test_the_flags_of_every_kind_are_in_the_cases():
    terminated_only = read(GOLDEN["cases"]["gae, terminations"]["given"])
    assert terminated_only["terminated"].any()
    assert not terminated_only["truncated"].any()
    for name in ("gae, truncations in the rewards", "gae, two flags"):
        given = read(GOLDEN["cases"][name]["given"])
        both = given["terminated"] & given["truncated"]
        assert both.any(), "a step with both flags"
        assert (given["truncated"] & ~both)[:-1].any(), "a truncation inside"
        assert not (given["truncated"] | given["terminated"])[-1].all(), "a last row that runs on"


def test_an_answer_that_is_off_is_noticed():
    # The control: the third digit changed somewhere, and the comparison fails.
    ours, tolerance = OURS["gae, two flags"]
    case = GOLDEN["cases"]["gae, two flags"]
    theirs = read(case["answer"])
    theirs["advantages"][4, 1] += 1e-3
    with pytest.raises(AssertionError, match="advantages"):
        agree(ours(read(case["given"])), theirs, tolerance)
