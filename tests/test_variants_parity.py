"""Advantages, aggregations, clips and KL over tokens against what other libraries answered.

`golden/parity_tokens.json` holds question, answers and versions; `benchmarks/parity_tokens.py`
wrote it. verl computes in float32; it and REINFORCE++'s own code divide by n − 1 in the deviation
of a batch, where `normalize_advantages` divides by n: a known factor, applied here.
"""

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from ppo_lessons import variants
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.rlhf import answer_kl, kl_terms, token_gae

GOLDEN = json.loads((Path(__file__).parent / "golden" / "parity_tokens.json").read_text("utf-8"))
SETTINGS, ANSWERS = GOLDEN["settings"], GOLDEN["answers"]
GIVEN = {name: torch.tensor(rows) for name, rows in GOLDEN["given"].items()}
MASK, GROUPS = GIVEN["mask"], GIVEN["groups"]
NEW, OLD, REFERENCE, REWARDS, VALUES, ADVANTAGES = (
    GIVEN[name].double()
    for name in (
        *("log_probs", "log_probs_old", "log_probs_reference"),
        *("rewards", "values", "advantages"),
    )
)
SCORES, RATIOS = REWARDS.sum(1), (NEW - OLD).exp()
NUM_TOKENS = int(MASK.sum())
BESSEL = ((NUM_TOKENS - 1) / NUM_TOKENS) ** 0.5
GAMMA, GAE_LAMBDA = SETTINGS["gamma"], SETTINGS["gae_lambda"]
EDGES = {"clip_low": SETTINGS["clip_low"], "clip_high": SETTINGS["clip_high"]}
CLOSE = {
    "torchrl": 1e-6,
    "trl": 1e-9,
    "verl": 2e-5,
}  # torchrl keeps the edges of its clip in float32


def tokens(advantages):
    return variants.for_every_token(advantages, MASK)


def loss(mode, terms=None):
    if terms is None:
        terms = variants.asymmetric_surrogate(RATIOS, ADVANTAGES, **EDGES)
    return -variants.aggregate(terms, MASK, mode=mode, max_length=SETTINGS["max_length"])


def gae():
    return token_gae(REWARDS, VALUES, MASK, gamma=GAMMA, gae_lambda=GAE_LAMBDA)


def whitened(values):
    chosen = values[MASK]
    return ((values - chosen.mean()) / (chosen.var() + 1e-8).sqrt()).masked_fill(~MASK, 0)


def spread():
    return ADVANTAGES.sum(1) / MASK.sum(1)


def sequence_terms():
    """GSPO's objective with two edges, per response."""
    ratios = variants.sequence_ratios(NEW, OLD, MASK)
    return tokens(variants.asymmetric_surrogate(ratios, spread(), **EDGES))


def cispo():
    return loss(
        "token_mean",
        variants.cispo_objective(NEW, OLD, ADVANTAGES, clip_high=SETTINGS["clip_high"]),
    )


def two_edges_and_dual_clip():
    """verl's default: an upper edge of its own, and a limit to the punishment."""
    terms = variants.asymmetric_surrogate(RATIOS, ADVANTAGES, **EDGES)
    dual = variants.dual_clipped_surrogate(
        RATIOS, ADVANTAGES, clip_epsilon=0.2, most_punished=SETTINGS["most_punished"]
    )
    return loss("token_mean", torch.where(ADVANTAGES < 0, dual, terms))


def kl(estimator):
    return kl_terms(NEW, REFERENCE, estimator=estimator).masked_fill(~MASK, 0)


def rloo_scores():
    """Scores minus the price of the distance of the whole answer, in two groups of four."""
    distance = answer_kl(OLD, REFERENCE, MASK, estimator="k1")
    return SCORES - SETTINGS["price"] * distance, torch.arange(8) // 4


def rloo_loss():
    """TRL clips the ratio of a whole answer, which is no geometric mean there."""
    ratios = (NEW - OLD).masked_fill(~MASK, 0).sum(1).exp()
    return -variants.asymmetric_surrogate(ratios, spread(), **EDGES).mean()


def dpo():
    policy, reference = ((each * MASK).sum(1).chunk(2) for each in (NEW, REFERENCE))
    return variants.dpo_loss(*policy, *reference, beta=SETTINGS["beta"])


def weighed(mode):
    return variants.aggregate(ADVANTAGES, MASK, mode=mode, max_length=SETTINGS["max_length"])


def symmetric(mode):
    return variants.token_surrogate_loss(
        NEW, OLD, ADVANTAGES, clip_epsilon=SETTINGS["clip_low"], mask=MASK, mode=mode
    )


OURS = {
    "torchrl": {
        "gae": gae,
        "gae, returns": lambda: (gae() + VALUES).masked_fill(~MASK, 0),
        "token_mean": lambda: clipped_surrogate_loss(
            NEW, OLD, ADVANTAGES, clip_epsilon=SETTINGS["clip_low"], mask=MASK
        ),
        "sequence_mean": lambda: symmetric("sequence_mean"),
        "two edges": lambda: loss("token_mean"),
    },
    "trl": {
        "grpo": lambda: loss("sequence_mean"),
        "bnpo": lambda: loss("token_mean"),
        "dr_grpo": lambda: loss("constant"),
        "dapo": lambda: loss("token_mean"),
        "cispo": cispo,
        "sequence": lambda: loss("sequence_mean", sequence_terms()),
        "grpo with k3": lambda: (
            loss("sequence_mean")
            + 0.3 * variants.kl_loss(NEW, REFERENCE, MASK, estimator="k3", mode="sequence_mean")
        ),
        "rloo, advantages": lambda: variants.rloo_advantages(*rloo_scores()),
        "rloo, loss": rloo_loss,
        "dpo": dpo,
    },
    "verl": {
        "gae, whitened": lambda: whitened(gae()),
        "gae, returns": lambda: (gae() + VALUES).masked_fill(~MASK, 0),
        "grpo": lambda: tokens(variants.group_advantages(SCORES, GROUPS, added_spread=1e-6)),
        "dr_grpo": lambda: tokens(variants.dr_grpo_advantages(SCORES, GROUPS)),
        "rloo": lambda: tokens(variants.rloo_advantages(SCORES, GROUPS)),
        "reinforce_pp": lambda: (
            variants.reinforce_pp_advantages(REWARDS, MASK, gamma=GAMMA) * BESSEL
        ),
        "reinforce_pp_baseline": lambda: (
            variants.reinforce_pp_baseline_advantages(SCORES, GROUPS, MASK) * BESSEL
        ),
        "aggregate, token-mean": lambda: weighed("token_mean"),
        "aggregate, seq-mean-token-mean": lambda: weighed("sequence_mean"),
        "aggregate, seq-mean-token-sum": lambda: weighed("sequence_sum"),
        "aggregate, seq-mean-token-sum-norm": lambda: weighed("constant"),
        "two edges and dual clip": two_edges_and_dual_clip,
        "gspo": lambda: loss("sequence_mean", sequence_terms()),
        "cispo": cispo,
        "kl, k1": lambda: kl("k1"),
        "kl, k2": lambda: kl("k2"),
        "kl, k3": lambda: kl("k3"),
    },
}
CASES = [(library, name) for library, answers in ANSWERS.items() for name in answers]


@pytest.mark.parametrize(("library", "name"), CASES)
def test_we_agree_with_what_the_library_answered(library, name):
    theirs = torch.tensor(ANSWERS[library][name], dtype=torch.float64)
    close = CLOSE[library]
    assert_close(OURS[library][name](), theirs, rtol=close, atol=close, check_dtype=False)


def test_every_answer_has_ours_beside_it_and_a_version():
    assert {(library, name) for library in OURS for name in OURS[library]} == set(CASES)
    assert set(OURS) < set(GOLDEN["versions"])


def test_the_batch_leaves_the_clip_on_both_sides_and_uses_the_dual_clip():
    inside = MASK & (ADVANTAGES != 0)
    assert ((RATIOS > 1.28) & (ADVANTAGES > 0) & inside).any()
    assert ((RATIOS < 0.8) & (ADVANTAGES < 0) & inside).any()
    assert ((SETTINGS["most_punished"] < RATIOS) & (ADVANTAGES < 0) & inside).any()


def test_other_answers_would_be_noticed():
    assert abs(loss("token_mean") - loss("sequence_mean")) > 0.01
    assert abs(loss("token_mean") - symmetric("token_mean")) > 0.001
    assert abs(two_edges_and_dual_clip() - loss("token_mean")) > 0.001
    rloo, dr_grpo = (
        function(SCORES, GROUPS)
        for function in (variants.rloo_advantages, variants.dr_grpo_advantages)
    )
    assert (rloo - dr_grpo).abs().max() > 0.1
    scores, groups = rloo_scores()
    priced = variants.rloo_advantages(scores, groups) - variants.rloo_advantages(SCORES, groups)
    assert priced.abs().max() > 0.01
    assert abs(dpo() - variants.dpo_loss(*(NEW * MASK).sum(1).chunk(2), *[torch.zeros(4)] * 2,
                                         beta=SETTINGS["beta"])) > 0.01  # fmt: skip
