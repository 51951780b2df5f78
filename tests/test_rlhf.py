"""Rewards per token, their advantages, the price and its optimum: by hand, by loop, by listing all.

Algebra in float64 keeps 1e-12.
"""

import math
from functools import partial

import pytest
import torch
from mistakes import under_test
from oracles import flags, float64
from torch import Generator
from torch.nn import functional
from torch.testing import assert_close

from ppo_lessons import rlhf
from ppo_lessons.rlhf import TRANSFORMERS, Transformer
from ppo_lessons.tokens import LanguageModel, ModelConfig, TokenCritic

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN, INF = float("nan"), float("inf")

bradley_terry_loss = under_test(rlhf.bradley_terry_loss)
kl_terms = under_test(rlhf.kl_terms)
answer_kl = under_test(rlhf.answer_kl)
token_rewards = under_test(rlhf.token_rewards)
last_tokens = under_test(rlhf.last_tokens)
token_gae = under_test(rlhf.token_gae)
critic_advantages = under_test(rlhf.critic_advantages)
adaptive_beta = under_test(rlhf.adaptive_beta)
tilted_log_probs = under_test(rlhf.tilted_log_probs)
regularized_return = under_test(rlhf.regularized_return)
num_weights = under_test(rlhf.num_weights)
cache_bytes = under_test(rlhf.cache_bytes)


def normal(*shape: int, seed: int = 0):
    return torch.randn(shape, generator=Generator().manual_seed(seed), dtype=torch.float64)


# --- preferences ---------------------------------------------------------------------------------


def test_equal_scores_cost_log_2(bradley_terry_loss):
    assert_close(bradley_terry_loss(float64(1, -3), float64(1, -3)), float64(math.log(2))[0])


def test_the_loss_of_two_pairs_by_hand(bradley_terry_loss):
    loss = bradley_terry_loss(float64(2, 0), float64(1, 1))
    by_hand = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(1))) / 2
    assert loss.item() == pytest.approx(by_hand, rel=1e-12)


def test_only_differences_of_scores_count(bradley_terry_loss):
    chosen, rejected = normal(6), normal(6, seed=1)
    assert_close(
        bradley_terry_loss(chosen + 7, rejected + 7), bradley_terry_loss(chosen, rejected), **EXACT
    )


def test_it_is_a_classification_of_differences(bradley_terry_loss):
    chosen, rejected = normal(6), normal(6, seed=1)
    theirs = functional.binary_cross_entropy_with_logits(chosen - rejected, torch.ones(6).double())
    assert_close(bradley_terry_loss(chosen, rejected), theirs, **EXACT)


def test_a_pair_far_the_wrong_way_costs_its_difference(bradley_terry_loss):
    loss = bradley_terry_loss(torch.tensor([-200.0]), torch.tensor([0.0]))
    assert loss.item() == pytest.approx(200, rel=1e-6)


def test_a_settled_pair_hardly_pushes(bradley_terry_loss):
    chosen = float64(10, 0).requires_grad_()
    bradley_terry_loss(chosen, float64(0, 0)).backward()
    expected = float64(-1 / (1 + math.exp(10)) / 2, -1 / 4)
    assert chosen.grad is not None
    assert_close(chosen.grad, expected, **EXACT)


# --- distance from the reference -----------------------------------------------------------------

# a policy over three tokens and its reference, all probabilities known
POLICY, REFERENCE = float64(0.5, 0.3, 0.2), float64(0.2, 0.3, 0.5)
KL = (POLICY * (POLICY / REFERENCE).log()).sum()


def expected_terms(kl_terms, estimator, policy=POLICY):
    terms = kl_terms(policy.log(), REFERENCE.log(), estimator=estimator)
    return (policy.detach() * terms).sum()


def test_the_terms_by_hand(kl_terms):
    up, down = float64(math.log(2)), float64(-math.log(2))  # twice, half as likely as before
    zero = torch.zeros_like(up)
    for estimator, when_up, when_down in (
        ("k1", math.log(2), -math.log(2)),
        ("k2", math.log(2) ** 2 / 2, math.log(2) ** 2 / 2),
        ("k3", 0.5 - 1 + math.log(2), 2 - 1 - math.log(2)),
    ):
        assert_close(kl_terms(up, zero, estimator=estimator), float64(when_up), **EXACT)
        assert_close(kl_terms(down, zero, estimator=estimator), float64(when_down), **EXACT)


def test_k1_and_k3_are_the_kl_on_average(kl_terms):
    for estimator in ("k1", "k3"):
        assert_close(expected_terms(kl_terms, estimator), KL, **EXACT)


def test_as_a_loss_k1_teaches_nothing_and_k2_the_kl_and_k3_another_kl(kl_terms):
    def gradient(estimator):
        logits = POLICY.log().clone().requires_grad_()
        expected_terms(kl_terms, estimator, logits.softmax(-1)).backward()
        return logits.grad

    def of(divergence):
        logits = POLICY.log().clone().requires_grad_()
        divergence(logits.log_softmax(-1)).backward()
        return logits.grad

    reverse = of(lambda new: (new.exp() * (new - REFERENCE.log())).sum())
    forward = of(lambda new: (REFERENCE * (REFERENCE.log() - new)).sum())
    assert_close(gradient("k1"), torch.zeros(3).double(), **EXACT)
    assert_close(gradient("k2"), reverse, **EXACT)
    assert_close(gradient("k3"), forward, **EXACT)
    assert (reverse - forward).abs().max() > 0.05


def test_the_kl_of_an_answer_is_a_sum_over_its_tokens(answer_kl):
    log_probs, reference = float64(-1, -2, 9).unsqueeze(0), float64(-1.5, -1, 2).unsqueeze(0)
    mask = flags(1, 1, 0).unsqueeze(0)
    assert_close(answer_kl(log_probs, reference, mask, estimator="k1"), float64(0.5 - 1), **EXACT)
    assert_close(
        answer_kl(log_probs, reference, mask, estimator="k2"), float64(0.125 + 0.5), **EXACT
    )


# --- one reward per token ------------------------------------------------------------------------

LOG_PROBS = torch.stack([float64(-1, -2, -0.5, -3), float64(-1, -1, 8, 8)])
LOG_REFERENCE = torch.stack([float64(-1.5, -1, -0.5, -1), float64(-2, -1, 3, 9)])
MASK = torch.stack([flags(1, 1, 1, 1), flags(1, 1, 0, 0)])
GAP = torch.stack([flags(1, 0, 0, 1), flags(0, 1, 1, 0)])
SCORES = float64(2, -1)


def test_price_and_score_by_hand(token_rewards):
    found = token_rewards(SCORES, LOG_PROBS, LOG_REFERENCE, MASK, beta=0.1)
    by_hand = torch.stack([float64(-0.05, 0.1, 0, 0.2 + 2), float64(-0.1, -1, 0, 0)])
    assert_close(found, by_hand, **EXACT)


def test_an_answer_earns_its_score_minus_the_price_of_its_distance(token_rewards):
    log_probs, reference = normal(2, 4), normal(2, 4, seed=1)
    found = token_rewards(SCORES, log_probs, reference, MASK, beta=0.3)
    sums = [
        score - 0.3 * sum(d for d, counts in zip(row, mask, strict=True) if counts)
        for score, row, mask in zip(
            SCORES.tolist(), (log_probs - reference).tolist(), MASK.tolist(), strict=True
        )
    ]
    assert_close(found.sum(dim=1), float64(*sums), **EXACT)


def test_nothing_in_padding_is_paid_or_priced(token_rewards):
    junk = LOG_PROBS.masked_fill(~MASK, 1e6)
    found = token_rewards(SCORES, junk, LOG_REFERENCE.masked_fill(~MASK, NAN), MASK, beta=0.1)
    assert_close(
        found, token_rewards(SCORES, LOG_PROBS, LOG_REFERENCE, MASK, beta=0.1), equal_nan=True
    )
    assert (found[1, 2:] == 0).all()


def test_the_limit_cuts_scores_and_never_the_price(token_rewards):
    far = LOG_PROBS - 100  # 100 nats below the reference: a large gain, not to be cut
    found = token_rewards(
        float64(50, -50), far, LOG_PROBS, torch.ones_like(MASK), beta=1, reward_limit=5
    )
    by_hand = torch.stack([float64(100, 100, 100, 105), float64(100, 100, 100, 95)])
    assert_close(found, by_hand, **EXACT)


def test_the_score_is_paid_at_the_last_token_of_ones_own(token_rewards):
    found = token_rewards(SCORES, LOG_PROBS, LOG_PROBS, GAP, beta=0.1)
    assert_close(found, torch.stack([float64(0, 0, 0, 2), float64(0, 0, -1, 0)]), **EXACT)


def test_a_reward_carries_no_gradient(token_rewards):
    log_probs = LOG_PROBS.clone().requires_grad_()
    assert not token_rewards(SCORES, log_probs, LOG_REFERENCE, MASK, beta=0.1).requires_grad


def test_the_last_token_is_found_behind_a_gap(last_tokens):
    assert last_tokens(torch.cat([MASK, GAP])).tolist() == [3, 1, 3, 2]


# --- advantages of tokens ------------------------------------------------------------------------


def slow_gae(rewards, values, mask, gamma, gae_lambda):
    """Every own token's TD errors, added up one by one."""
    found = []
    for row in zip(rewards.tolist(), values.tolist(), mask.tolist(), strict=True):
        own = [t for t, counts in enumerate(row[2]) if counts]
        r, v = [row[0][t] for t in own], [row[1][t] for t in own] + [0.0]  # theirs: the papers'
        errors = [r[i] + gamma * v[i + 1] - v[i] for i in range(len(own))]
        line = [0.0] * len(row[2])
        for i, t in enumerate(own):
            line[t] = sum((gamma * gae_lambda) ** (k - i) * errors[k] for k in range(i, len(own)))
        found.append(line)
    return torch.tensor(found, dtype=torch.float64)


def test_advantages_are_sums_of_td_errors(token_gae):
    rewards, values = normal(2, 4), normal(2, 4, seed=1)
    found = token_gae(rewards, values, MASK, gamma=0.9, gae_lambda=0.8)
    assert_close(found, slow_gae(rewards, values, MASK, 0.9, 0.8), **EXACT)


def test_a_step_leads_over_the_words_of_others(token_gae):
    rewards, values = normal(2, 4), normal(2, 4, seed=1)
    found = token_gae(rewards, values, GAP, gamma=0.9, gae_lambda=0.8)
    assert_close(found, slow_gae(rewards, values, GAP, 0.9, 0.8), **EXACT)


def test_without_discount_everything_that_comes_counts(token_gae):
    rewards, values = normal(2, 4), normal(2, 4, seed=1)
    found = token_gae(rewards, values, MASK, gamma=1.0, gae_lambda=1.0)
    left = rewards.masked_fill(~MASK, 0).flip(1).cumsum(1).flip(1)
    assert_close(found, (left - values).masked_fill(~MASK, 0), **EXACT)


def test_nothing_comes_after_the_last_token(token_gae):
    one = torch.ones(1, 1, dtype=torch.float64)
    short = token_gae(5 * one, 2 * one, one.bool(), gamma=1.0, gae_lambda=1.0)
    assert short.item() == pytest.approx(3)
    wide = token_gae(
        torch.cat([5 * one, one], 1), torch.cat([2 * one, 9 * one], 1),
        flags(1, 0).unsqueeze(0), gamma=1.0, gae_lambda=1.0,
    )  # fmt: skip
    assert_close(wide, float64(3, 0).unsqueeze(0), **EXACT)


def test_what_stands_in_padding_changes_no_advantage(token_gae):
    rewards, values = normal(2, 4), normal(2, 4, seed=1)
    found = token_gae(
        rewards.masked_fill(~MASK, NAN), values.masked_fill(~MASK, NAN), MASK,
        gamma=1.0, gae_lambda=0.95,
    )  # fmt: skip
    expected = token_gae(
        rewards.masked_fill(~MASK, 0), values.masked_fill(~MASK, 0), MASK,
        gamma=1.0, gae_lambda=0.95,
    )  # fmt: skip
    assert_close(found, expected, **EXACT)
    assert (found[~MASK] == 0).all()


def test_targets_are_raw_advantages_and_what_was_expected(critic_advantages):
    rewards, values = normal(2, 4).masked_fill(~MASK, 0), normal(2, 4, seed=1)
    groups = torch.arange(2)
    advantages, returns = critic_advantages(
        rewards, values, MASK, groups, gamma=1.0, gae_lambda=0.95
    )
    slow = slow_gae(rewards, values, MASK, 1.0, 0.95)
    assert_close(advantages, slow, **EXACT)
    assert_close(returns, (slow + values).masked_fill(~MASK, 0), **EXACT)


# --- the price -----------------------------------------------------------------------------------


def test_the_price_moves_by_hand(adaptive_beta):
    move = partial(adaptive_beta, 0.1, num_samples=128, kl_horizon=1280, target_kl=2.0)
    assert move(2.2) == pytest.approx(0.1 * 1.01)
    assert move(1.8) == pytest.approx(0.1 * 0.99)
    assert move(40.0) == pytest.approx(0.1 * 1.02)  # at most a fifth of the share of answers
    assert move(-3.0) == pytest.approx(0.1 * 0.98)  # an estimate may be negative
    assert move(2.0) == pytest.approx(0.1)


# --- the optimum ---------------------------------------------------------------------------------


def test_the_best_policy_by_hand(tilted_log_probs):
    reference, rewards = float64(0.5, 0.25, 0.25).log(), 0.5 * math.log(2) * float64(0, 1, 2)
    best = tilted_log_probs(reference, rewards, beta=0.5)
    assert_close(best.exp(), float64(0.25, 0.25, 0.5), **EXACT)


def test_no_other_policy_earns_more(tilted_log_probs):
    reference, rewards = normal(7).log_softmax(-1), normal(7, seed=1)
    best = tilted_log_probs(reference, rewards, beta=0.4)
    others = (best + 0.3 * normal(200, 7, seed=2)).log_softmax(-1)

    def earned(log_probs):
        return (log_probs.exp() * (rewards - 0.4 * (log_probs - reference))).sum(-1)

    assert (earned(others) < earned(best)).all()
    assert_close(best.exp().sum(), float64(1)[0], **EXACT)


def test_what_the_reference_never_says_stays_unsaid(tilted_log_probs):
    best = tilted_log_probs(float64(0.5, 0.5, 0).log(), float64(0, 0, 50), beta=1.0)
    assert_close(best.exp(), float64(0.5, 0.5, 0), **EXACT)


def test_a_bonus_for_everything_changes_nothing(tilted_log_probs):
    reference, rewards = normal(5).log_softmax(-1), normal(5, seed=1)
    more = tilted_log_probs(reference, rewards + 3, beta=0.2)
    less = tilted_log_probs(reference, rewards, beta=0.2)
    assert_close(more, less, **EXACT)
    assert_close(tilted_log_probs(reference, rewards, beta=1e9), reference, rtol=1e-7, atol=1e-7)


def test_what_is_maximised_by_hand(regularized_return):
    found = regularized_return(POLICY.log(), REFERENCE.log(), float64(1, 2, 3), beta=0.5)
    assert_close(found, 0.5 + 0.6 + 0.6 - 0.5 * KL, **EXACT)


def test_a_word_that_is_never_said_costs_nothing(regularized_return):
    policy, reference = float64(1, 0).log(), float64(0.5, 0.5).log()
    found = regularized_return(policy, reference, float64(1, 9), beta=0.5)
    assert_close(found, float64(1 - 0.5 * math.log(2))[0], **EXACT)


def test_the_gap_to_the_best_is_its_kl_times_the_price():
    reference, rewards = normal(7).log_softmax(-1), normal(7, seed=1)
    policy = normal(7, seed=2).log_softmax(-1)
    best = rlhf.tilted_log_probs(reference, rewards, beta=0.4)
    log_z = (reference + rewards / 0.4).logsumexp(-1)
    distance = (policy.exp() * (policy - best)).sum()
    found = rlhf.regularized_return(policy, reference, rewards, beta=0.4)
    assert_close(found, 0.4 * log_z - 0.4 * distance, **EXACT)


# --- memory --------------------------------------------------------------------------------------


def test_public_models_have_the_weights_that_their_makers_state(num_weights):
    assert num_weights(TRANSFORMERS["8 B"]) == 8_030_261_248
    assert num_weights(TRANSFORMERS["70 B"]) == 70_553_706_496
    assert num_weights(TRANSFORMERS["0.5 B"]) == 494_032_768


def test_the_toys_weights_are_counted_as_they_are(num_weights):
    config = ModelConfig(width=24, num_heads=3, num_layers=3)
    model = LanguageModel(config, Generator().manual_seed(0))
    shape = rlhf.transformer_of(config)
    assert num_weights(shape) == sum(p.numel() for p in model.parameters())
    judge = TokenCritic(model)
    assert num_weights(shape, scalar_head=True) == sum(p.numel() for p in judge.parameters())


def test_the_cache_holds_keys_and_values_of_stored_heads(cache_bytes):
    shape = Transformer(layers=3, width=8, heads=4, key_heads=2, mlp_width=16, vocabulary=9)
    stored = torch.zeros(3, 2, 5, 2, 7, 2, dtype=torch.bfloat16)  # layer, k/v, answer, head, token
    assert cache_bytes(shape, num_answers=5, num_tokens=7) == stored.nbytes


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.messages
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rlhf.bradley_terry_loss(normal(0), normal(0)), "chosen is empty"),
        (lambda: rlhf.bradley_terry_loss(normal(3), normal(2)), r"rejected has shape \(2,\)"),
        (lambda: rlhf.bradley_terry_loss(normal(3), NAN * normal(3)), "rejected holds nan"),
        (
            lambda: rlhf.token_rewards(NAN * SCORES, LOG_PROBS, LOG_PROBS, MASK, beta=0.1),
            r"scores holds nan at index \(0,\)",
        ),
        (
            lambda: rlhf.adaptive_beta(0.1, NAN, target_kl=1.0, num_samples=8, kl_horizon=80),
            "kl is nan; expected a finite number",
        ),
        (
            lambda: rlhf.regularized_return(normal(3), normal(3), normal(3), beta=-1.0),
            r"beta is -1\.0; expected a finite number of at least 0",
        ),
        (
            lambda: rlhf.tilted_log_probs(torch.full((2, 3), -torch.inf), normal(2, 3), beta=1.0),
            "log_probs_reference is −inf for all answers",
        ),
        (lambda: rlhf.kl_terms(normal(2), normal(2), estimator="k4"), "'k4'; expected 'k1'"),
        (
            lambda: rlhf.token_rewards(SCORES, LOG_PROBS, LOG_PROBS, MASK & ~MASK, beta=0.1),
            "answer 0 is empty",
        ),
        (
            lambda: rlhf.token_rewards(normal(2, 4), LOG_PROBS, LOG_PROBS, MASK, beta=0.1),
            "one score for each answer",
        ),
        (
            lambda: rlhf.token_rewards(SCORES, LOG_PROBS, LOG_PROBS, MASK, beta=-0.1),
            r"beta is -0.1; expected a finite number of at least 0",
        ),
        (
            lambda: rlhf.token_rewards(
                SCORES, LOG_PROBS, LOG_PROBS, MASK, beta=0.1, reward_limit=0
            ),
            "reward_limit is 0",
        ),
        (
            lambda: rlhf.token_gae(
                normal(2, 0), normal(2, 0), normal(2, 0).bool(), gamma=1.0, gae_lambda=1.0
            ),
            "at least one answer and one token",
        ),
        (
            lambda: rlhf.critic_advantages(
                LOG_PROBS, None, MASK, torch.arange(2), gamma=1.0, gae_lambda=1.0
            ),
            "values is None",
        ),
        (
            lambda: rlhf.adaptive_beta(0.1, 1.0, target_kl=1.0, num_samples=128, kl_horizon=20),
            "kl_horizon is 20 for 128 answers",
        ),
        (lambda: rlhf.tilted_log_probs(normal(3), normal(3), beta=0.0), "beta is 0.0"),
        (
            lambda: Transformer(layers=1, width=8, heads=4, key_heads=3, mlp_width=8, vocabulary=9),
            "key_heads is 3 for 4 heads",
        ),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.messages
def test_a_tree_that_is_too_large_is_refused_before_it_is_built():
    with pytest.raises(ValueError, match="2 words and 1000000 tokens make more than 100000"):
        rlhf.AnswerTree(2, 10**6)
