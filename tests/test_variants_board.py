"""The board says what the functions do: rows known from the papers, and functions nobody named.

The last part trains on pairs and on accepted answers, with models of a few hundred weights.
"""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Generator

from ppo_lessons import variants
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.rlhf import RLHFConfig, train_tokens
from ppo_lessons.tokens import LanguageModel, ModelConfig, Responses, encode_prompts
from ppo_lessons.training_loop import Parts
from ppo_lessons.variants import METHODS, board, changes, describe, find_method

ROWS = {row.name: row for row in board()}


# --- Rows that are known -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "baseline", "scale", "aggregation"),
    [
        ("PPO", "critic", "spread of the batch", "token_mean"),
        ("RLOO", "mean of the others", "none", "sequence_sum"),
        ("GRPO", "mean of the group", "spread of the group", "sequence_mean"),
        ("Dr. GRPO", "mean of the group", "none", "constant"),
        ("DAPO", "mean of the group", "spread of the group", "token_mean"),
        ("REINFORCE++", "mean of the batch", "spread of the batch", "token_mean"),
        ("REINFORCE++ baseline", "mean of the group", "spread of the batch", "token_mean"),
        ("GSPO", "mean of the group", "spread of the group", "sequence_mean"),
        ("Rejection sampling", "none", "none", "token_mean"),
    ],
)
def test_the_board_finds_out_what_is_published(name, baseline, scale, aggregation):
    row = ROWS[name]
    assert (row.baseline, row.scale, row.aggregation) == (baseline, scale, aggregation)


def test_the_board_finds_each_edge_of_each_clip():
    assert ROWS["PPO"].clip == "good: silent above 1.2; bad: silent below 0.8"
    assert ROWS["DAPO"].clip == "good: silent above 1.28; bad: silent below 0.8"
    assert ROWS["CISPO"].clip == "good: limited to 1.2; bad: no edge"
    assert {ROWS[name].ratio for name in ("PPO", "GRPO", "CISPO")} == {"of the token"}
    assert ROWS["GSPO"].ratio == "of the response"
    assert {ROWS[name].ratio for name in ("RLOO", "Rejection sampling")} == {"–"}


def test_changes_lists_the_places_that_differ_and_no_others():
    assert set(changes("PPO")) == set()
    assert set(changes("REINFORCE++")) == {"baseline"}
    assert changes("Dr. GRPO", against="GRPO") == {
        "scale": ("none", "spread of the group"),
        "kl": ("none", "loss"),
        "aggregation": ("constant", "sequence_mean"),
    }
    with pytest.raises(ValueError, match="no method 'PPOO'; expected one of: PPO, RLOO"):
        changes("PPOO")


# --- Functions that the board has never seen -----------------------------------------------------


def test_an_unseen_algorithm_is_classified_by_what_it_does():
    def others_then_batch(scores, groups):
        advantages = variants.rloo_advantages(scores, groups)
        return advantages / advantages.std()

    def dual(log_probs, log_probs_old, advantages, *, mask):
        ratios = (log_probs - log_probs_old).exp()
        terms = variants.dual_clipped_surrogate(
            ratios, advantages, clip_epsilon=0.1, most_punished=3.0
        )
        return -variants.aggregate(terms, mask, mode="sequence_mean")

    unseen = replace(
        find_method("GRPO"),
        name="unseen",
        advantages=variants.from_scores(others_then_batch),
        policy_loss=dual,
    )
    row = describe(unseen)
    assert row.scale == "spread of the batch"
    assert row.aggregation == "sequence_mean"
    assert row.clip == "good: silent above 1.1; bad: silent below 0.9; bad: silent above 3"


def test_a_group_that_is_scaled_by_its_own_spread_is_no_reinforce_pp():
    per_group = replace(
        find_method("REINFORCE++ baseline"),
        advantages=variants.from_scores(variants.group_advantages),
    )
    assert describe(per_group).scale == "spread of the group"
    assert describe(find_method("REINFORCE++ baseline")).scale == "spread of the batch"


def test_a_surrogate_without_a_clip_has_no_edge():
    row = describe(replace(find_method("PPO"), policy_loss=surrogate_loss))
    assert row.clip == "good: no edge; bad: no edge"
    assert row.ratio == "of the token"


def test_no_baseline_is_told_from_a_baseline_of_the_batch():
    plain = replace(
        find_method("GRPO"), advantages=variants.from_scores(variants.scores_themselves)
    )
    assert describe(plain).baseline == "none"
    batch = replace(plain, advantages=variants.from_scores(lambda s, _: s - s.mean()))
    assert describe(batch).baseline == "mean of the batch"


# --- The rows run --------------------------------------------------------------------------------

CONFIG = ModelConfig(width=8, num_layers=1, num_heads=2)


def tiny(seed: int = 0) -> LanguageModel:
    return LanguageModel(CONFIG, Generator().manual_seed(seed))


@pytest.mark.parametrize("method", [m for m in METHODS if m.advantages and not m.critic])
def test_each_row_fits_the_loop_of_lesson_14(method):
    policy = tiny()
    before = [parameter.clone() for parameter in policy.parameters()]
    config = RLHFConfig(
        num_iterations=1, num_prompts=4, group_size=max(2, method.group_size // 2), beta=0.0,
        max_new_tokens=4, num_minibatches=2,
    )  # fmt: skip

    def short(prompts, responses):
        return -responses.lengths.float() + responses.tokens[:, 0] / 10

    train_tokens(
        config, policy=policy, reference=tiny(1), reward=short, advantages=method.advantages,
        parts=Parts(normalize=method.normalize, policy_loss=method.policy_loss),
    )  # fmt: skip
    moved = [(a - b).abs().max().item() for a, b in zip(before, policy.parameters(), strict=True)]
    assert max(moved) > 0


def test_grpo_at_its_first_step_has_loss_zero_and_a_gradient():
    mask = torch.ones(4, 3, dtype=torch.bool)
    log_probs = torch.full((4, 3), -1.0, dtype=torch.float64).requires_grad_()
    advantages = variants.for_every_token(
        variants.group_advantages(torch.tensor([1.0, 0, 0, 1]).double(), torch.zeros(4).long()),
        mask,
    )
    loss = partial(clipped_surrogate_loss, clip_epsilon=0.2)(
        log_probs, log_probs.detach(), advantages, mask=mask
    )
    assert loss.item() == pytest.approx(0, abs=1e-12)
    loss.backward()
    assert log_probs.grad is not None
    assert log_probs.grad.abs().min() > 0.05


# --- Data that were drawn once -------------------------------------------------------------------


def one_word(tokens: list[int]) -> Responses:
    rows = torch.tensor(tokens)[:, None]
    end = torch.full_like(rows, 2)
    both = torch.cat([rows, end], dim=1)
    mask = torch.ones_like(both, dtype=torch.bool)
    return Responses(both, mask, torch.zeros(both.shape))


def test_dpo_raises_the_margin_and_leaves_the_reference_alone():
    reference, policy = tiny(), tiny()
    known = [parameter.clone() for parameter in reference.parameters()]
    prompts = encode_prompts([[1, 2, 3]] * 8)
    rows = variants.train_dpo(
        policy, reference, prompts, one_word([6] * 8), one_word([7] * 8),
        beta=0.5, learning_rate=1e-2, num_epochs=6, minibatch_size=4,
        generator=Generator().manual_seed(0),
    )  # fmt: skip
    assert rows[0]["loss"] > rows[-1]["loss"] + 0.1
    assert rows[-1]["accuracy"] == 1
    assert rows[-1]["chosen_log_ratio"] > rows[-1]["rejected_log_ratio"] + 1
    assert all(torch.equal(a, b) for a, b in zip(known, reference.parameters(), strict=True))


def test_accepted_answers_become_likelier():
    policy = tiny()
    rows = variants.train_accepted(
        policy, encode_prompts([[1, 2, 3]] * 8), one_word([6] * 8),
        learning_rate=1e-2, num_epochs=6, minibatch_size=4, generator=Generator().manual_seed(0),
    )  # fmt: skip
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.3


@pytest.mark.messages
def test_learning_from_nothing_is_refused():
    nothing = one_word([6]).rows(torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match="num_rows is 0"):
        variants.train_accepted(
            tiny(), encode_prompts([[1, 2, 3]]), nothing,
            learning_rate=1e-2, num_epochs=1, minibatch_size=4, generator=Generator(),
        )  # fmt: skip


# --- The optimiser -------------------------------------------------------------------------------


def test_the_first_steps_are_short_and_each_group_keeps_its_own_rate():
    weights = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    optimizer = variants.warm_adam(
        torch.nn.ParameterList(weights), learning_rate=0.1, warmup_steps=4
    )
    optimizer.param_groups[0]["params"] = [weights[0]]
    optimizer.add_param_group({"params": [weights[1]], "lr": 0.4, "betas": (0.9, 0.95)})
    places = []
    for _ in range(6):
        for weight in weights:
            weight.grad = torch.ones(2)
        optimizer.step()
        places.append([weight[0].item() for weight in weights])
    # a constant gradient: each step of Adam is as long as its step size
    for column, rate in ((0, 0.1), (1, 0.4)):
        steps = [-places[0][column]]
        steps += [places[k - 1][column] - places[k][column] for k in range(1, 6)]
        expected = [rate * share for share in (0.25, 0.5, 0.75, 1, 1, 1)]
        assert steps == pytest.approx(expected, rel=1e-3)
