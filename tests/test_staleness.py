"""Old rollouts: weights and clips against lists, and unbiasedness where all outcomes can be listed.

Algebra in float64 keeps 1e-12.
"""

import copy
import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples, flags, float64, gradient
from torch import Generator
from torch.testing import assert_close

from ppo_lessons import staleness
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.rlhf import RLHFConfig, TokenPolicy, pack, train_tokens
from ppo_lessons.tokens import LanguageModel, ModelConfig, encode_prompts
from ppo_lessons.training_loop import Parts
from ppo_lessons.variants import reinforce_pp_slot, unchanged

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN = float("nan")
SEEDS = st.integers(0, 10_000)

truncated_weights = under_test(staleness.truncated_weights)
decoupled_loss = under_test(staleness.decoupled_loss)
effective_share = under_test(staleness.effective_share)
VersionedBuffer = under_test(staleness.VersionedBuffer)


def draw(seed: int, size: int = 10):
    """log π, log π_prox, log μ and advantages, each a step away from the other."""
    generator = Generator().manual_seed(seed)

    def normal():
        return torch.randn(size, generator=generator, dtype=torch.float64)

    behaviour = -1 - normal().abs()
    proximal = behaviour + 0.6 * normal()
    return proximal + 0.3 * normal(), proximal, behaviour, normal()


# --- Weights -------------------------------------------------------------------------------------


def test_weights_match_the_hand_and_are_cut_above_only(truncated_weights):
    behaviour = float64(0.5, 0.1, 0.4, 0.8).log()
    proximal = float64(0.5, 0.4, 0.6, 0.08).log()
    weights = truncated_weights(proximal, behaviour, largest_weight=2.0)
    assert_close(weights, float64(1, 2, 1.5, 0.1), **EXACT)


def test_no_gradient_flows_through_the_weights(truncated_weights):
    proximal = float64(-1, -2).requires_grad_()
    total = truncated_weights(proximal, float64(-1.5, -1), largest_weight=10.0).sum()
    assert gradient(total, proximal).count_nonzero() == 0


def test_without_a_cap_the_weights_are_unbiased_and_with_one_they_lean_to_the_old_policy():
    # two tokens of two words each: all four responses listed, exact expectations
    old, new = (0.7, 0.4), (0.5, 0.8)  # probability of word 1 at the first, at the second token
    reward = {(0, 0): 0.0, (0, 1): 1.0, (1, 0): -2.0, (1, 1): 5.0}

    def log_prob(policy, words):
        return sum(math.log(p if word else 1 - p) for p, word in zip(policy, words, strict=True))

    wanted = sum(math.exp(log_prob(new, words)) * reward[words] for words in reward)
    found = {}
    for cap in (math.inf, 2.0, 1.0):
        found[cap] = 0.0
        for words in product((0, 1), repeat=2):
            weights = staleness.truncated_weights(
                float64(log_prob(new, words)), float64(log_prob(old, words)), largest_weight=cap
            )
            found[cap] += math.exp(log_prob(old, words)) * weights.item() * reward[words]
    assert found[math.inf] == pytest.approx(wanted, abs=1e-12)
    errors = [abs(found[cap] - wanted) for cap in (math.inf, 2.0, 1.0)]
    assert errors == sorted(errors)
    assert errors[2] > 0.1


@pytest.mark.messages
def test_a_cap_of_zero_is_refused():
    with pytest.raises(ValueError, match="largest_weight is 0"):
        staleness.truncated_weights(float64(0), float64(0), largest_weight=0)


# --- The decoupled loss --------------------------------------------------------------------------


@examples
@given(seed=SEEDS)
def test_the_loss_is_the_loop_with_three_policies(seed, decoupled_loss):
    columns = draw(seed)
    terms = []
    for new, proximal, behaviour, advantage in zip(*(c.tolist() for c in columns), strict=True):
        ratio = math.exp(new - proximal)
        term = min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
        terms.append(min(math.exp(proximal - behaviour), 1.5) * term)
    found = decoupled_loss(*columns, clip_epsilon=0.2, largest_weight=1.5)
    assert found.item() == pytest.approx(-sum(terms) / len(terms), abs=1e-12)


def test_at_age_zero_the_loss_is_the_coupled_one(decoupled_loss):
    new, _, behaviour, advantages = draw(1)
    found = decoupled_loss(
        new, behaviour, behaviour, advantages, clip_epsilon=0.2, largest_weight=2.0
    )
    expected = clipped_surrogate_loss(new, behaviour, advantages, clip_epsilon=0.2)
    assert_close(found, expected, **EXACT)


def test_weighing_the_advantages_is_the_same_loss():
    new, proximal, behaviour, advantages = draw(2)
    weights = staleness.truncated_weights(proximal, behaviour, largest_weight=2.0)
    expected = clipped_surrogate_loss(new, proximal, weights * advantages, clip_epsilon=0.2)
    found = staleness.decoupled_loss(
        new, proximal, behaviour, advantages, clip_epsilon=0.2, largest_weight=2.0
    )
    assert_close(found, expected, **EXACT)


def test_at_the_first_step_the_gradient_is_the_weight_times_the_advantage(decoupled_loss):
    # π = π_prox: the ratio is 1, nothing is clipped, whatever μ was
    behaviour, proximal = float64(0.1, 0.8).log(), float64(0.4, 0.2).log().requires_grad_()
    advantages = float64(1, -1)
    loss = decoupled_loss(
        proximal, proximal, behaviour, advantages, clip_epsilon=0.2, largest_weight=2.0
    )
    # weights min(4, 2) = 2 and 0.25; mean over two
    assert_close(gradient(loss, proximal), float64(-1.0, 0.125), **EXACT)


def test_padding_has_no_effect_on_the_loss(decoupled_loss):
    columns = [torch.cat([column, float64(NAN)]) for column in draw(3)]
    mask = flags(*[1] * 10, 0)
    found = decoupled_loss(*columns, clip_epsilon=0.2, largest_weight=2.0, mask=mask)
    weights = staleness.truncated_weights(*draw(3)[1:3], largest_weight=2.0)
    new, proximal, _, advantages = draw(3)
    expected = clipped_surrogate_loss(new, proximal, weights * advantages, clip_epsilon=0.2)
    assert_close(found, expected, **EXACT)


# --- The effective share -------------------------------------------------------------------------


def test_shares_match_the_hand(effective_share):
    ratios = torch.tensor([[2.0, 2.0, NAN], [1.0, 1.0, 1.0]]).double()
    mask = flags(1, 1, 0, 1, 1, 1).view(2, 3)
    # tokens 2 2 1 1 1: 49 / (5·11);  responses 4 and 1: 25 / (2·17)
    assert effective_share(ratios.log(), mask, level="token").item() == pytest.approx(49 / 55)
    assert effective_share(ratios.log(), mask, level="response").item() == pytest.approx(25 / 34)


def test_whole_responses_lose_their_worth_long_before_tokens_do(effective_share):
    # two responses of 1000 tokens, one likelier by 1 nat a token: e¹⁰⁰⁰ does not fit a float
    log_ratios = torch.stack([torch.ones(1000), torch.zeros(1000)]).double()
    mask = torch.ones(2, 1000, dtype=torch.bool)
    assert effective_share(log_ratios, mask, level="response").item() == pytest.approx(0.5)
    tokens = effective_share(log_ratios, mask, level="token").item()
    assert tokens == pytest.approx((1 + math.e) ** 2 / (2 * (1 + math.e**2)))


@pytest.mark.messages
def test_nothing_that_counts_and_unknown_levels_are_refused():
    zeros = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="mask is false everywhere"):
        staleness.effective_share(zeros, flags(0, 0)[None], level="token")
    with pytest.raises(ValueError, match="level is 'word'"):
        staleness.effective_share(zeros, flags(1, 1)[None], level="word")


# --- The buffer ----------------------------------------------------------------------------------


def test_the_oldest_batch_that_is_allowed_comes_first_and_knows_its_age(VersionedBuffer):
    buffer = VersionedBuffer(8)
    for version, batch in ((3, "a"), (3, "b"), (4, "c"), (6, "d")):
        buffer.push(batch, version=version)
    assert buffer.ages(version=7) == {1: 1, 3: 1, 4: 2}
    assert buffer.pop(version=7, max_age=4) == ("a", 4)
    assert buffer.pop(version=8, max_age=4) == ("c", 4)  # b is 5 versions old
    assert buffer.dropped == 1
    assert len(buffer) == 1
    assert buffer.pop(version=20, max_age=4) is None
    assert buffer.dropped == 2


def test_a_generator_that_is_ahead_has_to_wait(VersionedBuffer):
    buffer = VersionedBuffer(2)
    buffer.push("a", version=0)
    assert not buffer.full
    buffer.push("b", version=0)
    assert buffer.full
    buffer.pop(version=1, max_age=1)
    assert not buffer.full


@pytest.mark.messages
def test_a_full_buffer_and_versions_that_go_back_are_refused():
    buffer = staleness.VersionedBuffer(2)
    with pytest.raises(ValueError, match="version is -1; expected at least 0"):
        buffer.push("a", version=-1)
    buffer.push("a", version=3)
    with pytest.raises(ValueError, match="version is 2; expected at least 3"):
        buffer.push("b", version=2)
    buffer.push("b", version=3)
    with pytest.raises(ValueError, match="the buffer holds 2 of 2"):
        buffer.push("c", version=3)
    with pytest.raises(ValueError, match="no data from the future"):
        buffer.pop(version=2, max_age=1)
    assert len(buffer) == 2  # nothing is lost by asking
    with pytest.raises(ValueError, match="max_age is -1"):
        buffer.pop(version=3, max_age=-1)


# --- Policies that answer as they were -----------------------------------------------------------


def tiny_policy(seed: int = 0):
    config = ModelConfig(width=8, num_layers=1, num_heads=2)
    return TokenPolicy(LanguageModel(config, Generator().manual_seed(seed)))


PROMPTS = encode_prompts([[3, 1, 2], [5, 4, 9, 9]])


def answer(policy, seed=3):
    return policy.respond(PROMPTS, max_new_tokens=4, generator=Generator().manual_seed(seed))


def move(policy, amount):
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += amount * torch.randn(
                parameter.shape, generator=Generator().manual_seed(len(parameter))
            )


@pytest.mark.parametrize("age", [0, 1, 3])
def test_an_aged_policy_answers_as_it_was_so_many_versions_ago(age):
    policy = tiny_policy()
    aged = staleness.AgedPolicy(policy, age=age)
    versions = []
    for _ in range(6):
        versions.append(copy.deepcopy(policy))
        drawn = answer(aged)
        expected = answer(versions[max(0, len(versions) - 1 - age)])
        assert torch.equal(drawn.tokens, expected.tokens)
        assert_close(drawn.log_probs, expected.log_probs)
        move(policy, 0.3)


def test_only_the_policy_of_today_learns():
    policy = tiny_policy()
    aged = staleness.AgedPolicy(policy, age=2)
    assert {id(p) for p in aged.parameters()} == {id(p) for p in policy.parameters()}


def test_a_decoupled_policy_starts_at_ratio_one_and_weighs_by_age():
    policy = tiny_policy()
    aged = staleness.DecoupledPolicy(policy, age=1, largest_weight=2.0)
    answer(aged)
    move(policy, 0.3)
    drawn = answer(aged)
    before = answer(staleness.AgedPolicy(tiny_policy(), age=0))
    assert torch.equal(drawn.tokens, before.tokens)
    rated, _ = policy.evaluate(pack(PROMPTS, drawn), drawn.tokens)
    assert_close(drawn.log_probs[drawn.mask], rated[drawn.mask].detach())
    weights = (drawn.log_probs - before.log_probs).exp().clamp(max=2)
    assert aged.weights is not None
    assert_close(aged.weights[drawn.mask], weights[drawn.mask])

    def ones(rewards, values, mask, groups):
        return torch.ones_like(rewards), None

    found, _ = aged.weighing(ones)(weights, None, drawn.mask, torch.arange(2))
    assert_close(found, weights.masked_fill(~drawn.mask, 0))


def test_the_loop_measures_how_old_its_data_are():
    config = RLHFConfig(
        num_iterations=4, num_prompts=8, beta=0.0, num_epochs=1, num_minibatches=1,
        learning_rate=0.01, max_new_tokens=4,
    )  # fmt: skip
    deviations = {}
    for age in (0, 2):
        policy = tiny_policy()
        aged = staleness.AgedPolicy(policy, age=age)

        def short(prompts, responses):
            return -responses.lengths.float()

        history = train_tokens(
            config, policy=aged, reference=tiny_policy(1), reward=short,
            advantages=reinforce_pp_slot, parts=Parts(normalize=unchanged),
        )  # fmt: skip
        deviations[age] = history["first_ratio_deviation"]
    assert max(deviations[0]) < 1e-5
    assert deviations[2][0] < 1e-5 < 0.01 < min(deviations[2][1:])


@pytest.mark.messages
def test_a_negative_age_is_refused():
    with pytest.raises(ValueError, match="age is -1"):
        staleness.AgedPolicy(tiny_policy(), age=-1)
