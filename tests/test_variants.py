"""Advantages without a critic, other clips, the weight of a token, DPO: each by hand or by a loop.

Algebra in float64 keeps 1e-12. The numbers of eight binary scores stand with three digits in
tables; here they are given as the fractions that they are.
"""

import math
from functools import partial
from statistics import mean, pstdev, stdev

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples, flags, float64, gradient
from torch.testing import assert_close

from ppo_lessons import variants

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN = float("nan")
SEEDS = st.integers(0, 10_000)

group_advantages = under_test(variants.group_advantages)
dr_grpo_advantages = under_test(variants.dr_grpo_advantages)
rloo_advantages = under_test(variants.rloo_advantages)
reinforce_pp_advantages = under_test(variants.reinforce_pp_advantages)
reinforce_pp_baseline_advantages = under_test(variants.reinforce_pp_baseline_advantages)
token_rewards_to_go = under_test(variants.token_rewards_to_go)
asymmetric_surrogate = under_test(variants.asymmetric_surrogate)
dual_clipped_surrogate = under_test(variants.dual_clipped_surrogate)
cispo_objective = under_test(variants.cispo_objective)
sequence_ratios = under_test(variants.sequence_ratios)
sequence_surrogate_loss = under_test(variants.sequence_surrogate_loss)
token_weights = under_test(variants.token_weights)
aggregate = under_test(variants.aggregate)
token_surrogate_loss = under_test(variants.token_surrogate_loss)
kl_loss = under_test(variants.kl_loss)
informative_groups = under_test(variants.informative_groups)
overlong_penalty = under_test(variants.overlong_penalty)
best_of_n = under_test(variants.best_of_n)
best_of_n_policy = under_test(variants.best_of_n_policy)
accepted = under_test(variants.accepted)
dpo_loss = under_test(variants.dpo_loss)
token_dpo_loss = under_test(variants.token_dpo_loss)
sequence_log_probs = under_test(variants.sequence_log_probs)
implicit_rewards = under_test(variants.implicit_rewards)
make_pairs = under_test(variants.make_pairs)


def eight(successes: int):
    """Eight responses to one prompt, the first few of them right."""
    return float64(*[1.0] * successes, *[0.0] * (8 - successes)), torch.zeros(8, dtype=torch.long)


def shuffled_groups(seed: int):
    """Three prompts, 2 to 4 responses each, in any order; the prompts differ in difficulty."""
    generator = torch.Generator().manual_seed(seed)
    groups = torch.tensor([5, 5, 5, 5, 2, 2, 9, 9, 9])
    scores = torch.randn(9, generator=generator, dtype=torch.float64) + groups
    order = torch.randperm(9, generator=generator)
    return scores[order], groups[order]


def members(scores, groups, i):
    """The scores of the group of response i, itself first, as plain numbers."""
    others = [
        score
        for j, (score, group) in enumerate(zip(scores.tolist(), groups.tolist(), strict=True))
        if j != i and group == groups[i]
    ]
    return [scores[i].item(), *others]


def up_to(*lengths: int, width: int = 6):
    """The mask of responses of these lengths."""
    return torch.arange(width).expand(len(lengths), width) < torch.tensor(lengths)[:, None]


def draw(seed: int, *lengths: int, width: int = 6):
    """Log-probabilities, old ones, advantages and mask of some responses."""
    generator = torch.Generator().manual_seed(seed)
    mask = up_to(*lengths, width=width)
    old = -3 * torch.rand(mask.shape, generator=generator, dtype=torch.float64) - 0.1
    new = old + 0.3 * torch.randn(mask.shape, generator=generator, dtype=torch.float64)
    advantages = torch.randn(mask.shape, generator=generator, dtype=torch.float64)
    return new, old, advantages, mask


# --- GRPO, Dr. GRPO, RLOO ------------------------------------------------------------------------


def test_grpo_of_eight_binary_scores_matches_the_hand(group_advantages):
    # k right of 8: mean k/8, sum of squares k(8−k)/8, deviation √(k(8−k)/56)
    for successes in (1, 4, 7):
        scores, groups = eight(successes)
        spread = math.sqrt(successes * (8 - successes) / 56)
        advantages = group_advantages(scores, groups, added_spread=1e-12)
        assert_close(advantages[0].item(), (1 - successes / 8) / spread, rtol=1e-9, atol=0)
        assert_close(advantages[-1].item(), -successes / 8 / spread, rtol=1e-9, atol=0)


def test_grpo_of_equal_scores_is_zero_and_not_nan(group_advantages):
    scores = float64(0.1, 0.1, 0.1, 1, 1)
    groups = torch.tensor([0, 0, 0, 1, 1])
    assert_close(group_advantages(scores, groups), torch.zeros(5, dtype=torch.float64), **EXACT)


def test_grpo_does_not_care_how_large_the_scores_are(group_advantages):
    scores, groups = shuffled_groups(0)
    small = group_advantages(scores, groups, added_spread=1e-12)
    large = group_advantages(1000 * scores + 7, groups, added_spread=1e-12)
    assert_close(small, large, rtol=1e-8, atol=1e-8)


@examples
@given(seed=SEEDS)
def test_grpo_is_the_loop_over_groups(seed, group_advantages):
    scores, groups = shuffled_groups(seed)
    expected = []
    for i in range(len(scores)):
        group = members(scores, groups, i)
        expected.append((group[0] - mean(group)) / (stdev(group) + 0.01))
    found = group_advantages(scores, groups, added_spread=0.01)
    assert_close(found, float64(*expected), rtol=1e-9, atol=1e-9)


def test_dr_grpo_of_eight_binary_scores_matches_the_hand(dr_grpo_advantages):
    for successes in (1, 4, 7):
        advantages = dr_grpo_advantages(*eight(successes))
        assert advantages[0].item() == pytest.approx(1 - successes / 8, abs=1e-12)
        assert advantages[-1].item() == pytest.approx(-successes / 8, abs=1e-12)


@examples
@given(seed=SEEDS)
def test_dr_grpo_adds_up_to_zero_in_each_group(seed, dr_grpo_advantages):
    scores, groups = shuffled_groups(seed)
    advantages = dr_grpo_advantages(scores, groups)
    for group in (2, 5, 9):
        assert advantages[groups == group].sum().item() == pytest.approx(0, abs=1e-9)
    assert (advantages * (scores - groups)).sum() > 0


def test_rloo_of_eight_binary_scores_matches_the_hand(rloo_advantages):
    for successes in (1, 4, 7):
        advantages = rloo_advantages(*eight(successes))
        assert advantages[0].item() == pytest.approx(1 - (successes - 1) / 7, abs=1e-12)
        assert advantages[-1].item() == pytest.approx(-successes / 7, abs=1e-12)


@examples
@given(seed=SEEDS)
def test_rloo_compares_with_the_others_alone(seed, rloo_advantages):
    scores, groups = shuffled_groups(seed)
    expected = [scores[i].item() - mean(members(scores, groups, i)[1:]) for i in range(len(scores))]
    assert_close(rloo_advantages(scores, groups), float64(*expected), rtol=1e-9, atol=1e-9)


def test_leave_one_out_is_dr_grpo_enlarged_by_a_known_factor():
    scores, groups = shuffled_groups(3)
    size = torch.tensor([len(members(scores, groups, i)) for i in range(9)], dtype=torch.float64)
    enlarged = size / (size - 1) * variants.dr_grpo_advantages(scores, groups)
    assert_close(variants.rloo_advantages(scores, groups), enlarged, **EXACT)


def test_grpo_favours_prompts_that_are_nearly_always_or_nearly_never_solved():
    # 1 / √(p(1−p)): 3.33 at p = 0.1 and 0.9 against 2 at p = 0.5
    for p, weight in ((0.1, 10 / 3), (0.5, 2.0), (0.9, 10 / 3)):
        scores = torch.zeros(1000, dtype=torch.float64)
        scores[: int(1000 * p)] = 1
        groups = torch.zeros(1000, dtype=torch.long)
        scaled = variants.group_advantages(scores, groups, added_spread=1e-12)
        plain = variants.dr_grpo_advantages(scores, groups)
        assert (scaled / plain)[0].item() == pytest.approx(weight, rel=1e-3)  # n − 1 for n


@pytest.mark.messages
@pytest.mark.parametrize(
    "function",
    [variants.group_advantages, variants.dr_grpo_advantages, variants.rloo_advantages],
)
def test_a_group_of_one_and_bad_scores_are_refused(function):
    groups = torch.tensor([0, 0, 3])
    with pytest.raises(ValueError, match="group 3 has one response"):
        function(float64(1, 0, 1), groups)
    with pytest.raises(ValueError, match="scores holds nan"):
        function(float64(1, NAN, 1), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"groups has shape \(2,\)"):
        function(float64(1, 0, 1), groups[:2])


# --- REINFORCE++ ---------------------------------------------------------------------------------


@examples
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]))
def test_reinforce_pp_is_normalised_over_all_tokens(seed, gamma, reinforce_pp_advantages):
    _, _, rewards, mask = draw(seed, 2, 6, 4)
    rewards = rewards.masked_fill(~mask, 1e6)
    expected = []
    for row, counted in zip(rewards.tolist(), mask.tolist(), strict=True):
        own = [reward for reward, real in zip(row, counted, strict=True) if real]
        expected += [
            sum(gamma ** (k - t) * own[k] for k in range(t, len(own))) for t in range(len(own))
        ]
    centre, spread = mean(expected), pstdev(expected)
    expected = [(value - centre) / spread for value in expected]
    advantages = reinforce_pp_advantages(rewards, mask, gamma=gamma)
    assert_close(advantages[mask], float64(*expected), rtol=1e-6, atol=1e-6)
    assert (advantages[~mask] == 0).all()


def test_reinforce_pp_tells_good_responses_from_bad_ones(reinforce_pp_advantages):
    rewards = torch.zeros(2, 4, dtype=torch.float64)
    rewards[0, -1] = 1
    advantages = reinforce_pp_advantages(rewards, up_to(4, 4, width=4), gamma=1.0)
    # eight tokens, half with 1 and half with 0: mean ½, deviation ½
    assert_close(advantages, torch.tensor([[1.0] * 4, [-1.0] * 4]).double(), rtol=1e-6, atol=1e-6)


@examples
@given(seed=SEEDS)
def test_the_baseline_form_is_normalised_after_the_group_mean(
    seed, reinforce_pp_baseline_advantages
):
    scores, groups = shuffled_groups(seed)
    mask = up_to(1, 2, 3, 4, 5, 6, 1, 2, 3)
    tokens = [
        members(scores, groups, i)[0] - mean(members(scores, groups, i))
        for i in range(9)
        for _ in range(int(mask[i].sum()))
    ]
    expected = [(token - mean(tokens)) / pstdev(tokens) for token in tokens]
    advantages = reinforce_pp_baseline_advantages(scores, groups, mask)
    assert_close(advantages[mask], float64(*expected), rtol=1e-6, atol=1e-6)
    assert (advantages[~mask] == 0).all()


def test_what_a_token_earns_is_what_follows_in_its_own_response(token_rewards_to_go):
    rewards = torch.tensor([[1.0, 2.0, 4.0, 1e6], [3.0, 1e6, 1e6, 1e6]]).double()
    found = token_rewards_to_go(rewards, up_to(3, 1, width=4), gamma=0.5)
    assert_close(found, torch.tensor([[3.0, 4, 4, 0], [3.0, 0, 0, 0]]).double(), **EXACT)


def test_a_gap_of_another_speaker_neither_earns_nor_discounts(token_rewards_to_go):
    rewards = torch.tensor([[1.0, 1e6, 4.0]]).double()
    found = token_rewards_to_go(rewards, flags(1, 0, 1)[None], gamma=0.5)
    assert_close(found, torch.tensor([[3.0, 0, 4.0]]).double(), **EXACT)


# --- Clips ---------------------------------------------------------------------------------------


def slopes(function, ratios, advantages, **keywords):
    ratios = ratios.clone().requires_grad_()
    return gradient(function(ratios, advantages, **keywords).sum(), ratios)


def test_the_upper_edge_and_the_lower_edge_are_their_own(asymmetric_surrogate):
    ratios = float64(0.5, 0.75, 0.9, 1.1, 1.25, 1.5)
    one = torch.ones_like(ratios)
    edges = {"clip_low": 0.2, "clip_high": 0.28}
    assert_close(
        slopes(asymmetric_surrogate, ratios, one, **edges), float64(1, 1, 1, 1, 1, 0), **EXACT
    )
    assert_close(
        slopes(asymmetric_surrogate, ratios, -one, **edges), -float64(0, 0, 1, 1, 1, 1), **EXACT
    )
    values = asymmetric_surrogate(ratios, one, **edges)
    assert_close(values, float64(0.5, 0.75, 0.9, 1.1, 1.25, 1.28), **EXACT)


def test_with_equal_edges_the_surrogate_is_the_usual_one():
    new, old, advantages, _ = draw(1, 6, 6, 6)
    ratios = (new - old).exp()
    theirs = variants.asymmetric_surrogate(ratios, advantages, clip_low=0.2, clip_high=0.2)
    expected = [
        min(ratio * a, min(max(ratio, 0.8), 1.2) * a)
        for ratio, a in zip(ratios.flatten().tolist(), advantages.flatten().tolist(), strict=True)
    ]
    assert_close(theirs.flatten(), float64(*expected), **EXACT)


def test_advantages_of_the_two_edged_clip_are_constants(asymmetric_surrogate):
    advantages = float64(1, -1).requires_grad_()
    ratios = float64(1.1, 0.9).requires_grad_()
    total = asymmetric_surrogate(ratios, advantages, clip_low=0.2, clip_high=0.28).sum()
    assert gradient(total, advantages).count_nonzero() == 0


def test_the_dual_clip_limits_the_punishment_and_nothing_else(dual_clipped_surrogate):
    ratios = float64(0.5, 1.0, 2.0, 3.5, 10.0)
    one = torch.ones_like(ratios)
    edges = {"clip_epsilon": 0.2, "most_punished": 3.0}
    punished = dual_clipped_surrogate(ratios, -one, **edges)
    assert_close(punished, -float64(0.8, 1, 2, 3, 3), **EXACT)
    assert_close(
        slopes(dual_clipped_surrogate, ratios, -one, **edges), -float64(0, 1, 1, 0, 0), **EXACT
    )
    praised = dual_clipped_surrogate(ratios, one, **edges)
    assert_close(praised, float64(0.5, 1, 1.2, 1.2, 1.2), **EXACT)


@pytest.mark.messages
def test_edges_out_of_range_are_refused():
    ratio = float64(1)
    with pytest.raises(ValueError, match=r"clip_low is 1\.5"):
        variants.asymmetric_surrogate(ratio, ratio, clip_low=1.5, clip_high=0.2)
    with pytest.raises(ValueError, match=r"most_punished is 1\.1"):
        variants.dual_clipped_surrogate(ratio, ratio, clip_epsilon=0.2, most_punished=1.1)


def test_cispo_pushes_every_token_by_its_cut_weight(cispo_objective):
    ratios, advantages = float64(0.5, 1.0, 1.2, 5.0, 5.0), float64(1, 2, 1, 1, -1)
    old = torch.full((5,), -2.0, dtype=torch.float64)
    log_probs = (old + ratios.log()).requires_grad_()
    objective = cispo_objective(log_probs, old, advantages, clip_high=0.28)
    pushed = gradient(objective.sum(), log_probs)
    assert_close(pushed, float64(0.5, 2, 1.2, 1.28, -1.28), **EXACT)


# --- Sequence ratios -----------------------------------------------------------------------------


def test_the_ratio_of_a_response_is_a_geometric_mean(sequence_ratios):
    old = torch.full((3, 4), -1.0, dtype=torch.float64)
    ratios = torch.tensor([[2.0, 0.5, 4.0, NAN], [3.0, NAN, NAN, NAN], [1, 2, 1, 8]]).double()
    found = sequence_ratios(old + ratios.log(), old, up_to(3, 1, 4, width=4))
    assert_close(found, float64(4 ** (1 / 3), 3, 16 ** (1 / 4)), **EXACT)


def test_a_long_response_does_not_leave_the_interval_for_being_long(sequence_ratios):
    old = torch.zeros(1, 100, dtype=torch.float64)
    ratio = sequence_ratios(old + 0.012, old, torch.ones(1, 100, dtype=torch.bool))
    assert ratio.item() == pytest.approx(math.exp(0.012), abs=1e-12)  # not e^1.2 = 3.3


def gspo_by_hand(new, old, advantages, mask, epsilon):
    """Lists in, loss out."""
    terms = []
    for n, o, a, m in zip(new, old, advantages, mask, strict=True):
        places = [i for i, real in enumerate(m) if real]
        ratio = math.exp(mean([n[i] - o[i] for i in places]))
        advantage = mean([a[i] for i in places])
        terms.append(min(ratio * advantage, min(max(ratio, 1 - epsilon), 1 + epsilon) * advantage))
    return -mean(terms)


@examples
@given(seed=SEEDS)
def test_the_loss_of_whole_responses_is_the_loop(seed, sequence_surrogate_loss):
    tables = draw(seed, 2, 6, 4, 1)
    found = sequence_surrogate_loss(*tables[:3], clip_epsilon=0.1, mask=tables[3])
    expected = gspo_by_hand(*(table.tolist() for table in tables), 0.1)
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_a_response_is_silenced_as_a_whole(sequence_surrogate_loss):
    mask = up_to(2, 2, width=2)
    old = torch.full((2, 2), -1.0, dtype=torch.float64)
    # mean log-ratio 0.25 and 0.05: only the first is beyond log 1.2
    log_probs = (old + torch.tensor([[0.5, 0.0], [0.1, 0.0]]).double()).requires_grad_()
    loss = sequence_surrogate_loss(
        log_probs, old, torch.ones(2, 2).double(), clip_epsilon=0.2, mask=mask
    )
    pushed = -gradient(loss, log_probs)
    assert (pushed[0] == 0).all()
    assert_close(pushed[1], torch.full((2,), math.exp(0.05) / 4).double(), rtol=1e-7, atol=1e-9)


# --- The weight of a token -----------------------------------------------------------------------


def test_the_four_weights_match_the_hand(token_weights):
    mask = up_to(2, 6)  # eight tokens, two responses
    expected = {
        "token_mean": (1 / 8, 1 / 8),
        "sequence_mean": (1 / 4, 1 / 12),
        "sequence_sum": (1 / 2, 1 / 2),
        "constant": (1 / 20, 1 / 20),
    }
    for mode, (short, long) in expected.items():
        weights = token_weights(mask, mode=mode, max_length=10)
        assert_close(weights[0, :2].double(), float64(short, short), rtol=1e-6, atol=0)
        assert_close(weights[1].double(), torch.full((6,), long).double(), rtol=1e-6, atol=0)
        assert (weights[0, 2:] == 0).all()


def test_a_long_wrong_answer_is_punished_less_per_token_by_means_of_means(token_weights):
    # 3 against 30 tokens: ten times less
    weights = token_weights(up_to(3, 30, width=30), mode="sequence_mean", max_length=30)
    assert (weights[0, 0] / weights[1, 0]).item() == pytest.approx(10, rel=1e-6)
    same = token_weights(up_to(3, 30, width=30), mode="token_mean", max_length=30)
    assert same[0, 0] == same[1, 0]
    assert same[0, 0].item() == pytest.approx(1 / 33)


def test_the_four_aggregates_match_the_hand(aggregate):
    terms = torch.tensor([[1.0, 1, NAN, NAN], [3, 3, 3, 3]]).double()
    mask = up_to(2, 4, width=4)
    expected = {"token_mean": 14 / 6, "sequence_mean": 2.0, "sequence_sum": 7.0, "constant": 1.4}
    for mode, value in expected.items():
        found = aggregate(terms, mask, mode=mode, max_length=5)
        assert found.item() == pytest.approx(value, rel=1e-6), mode


@examples
@given(seed=SEEDS, mode=st.sampled_from(["token_mean", "sequence_sum", "sequence_mean"]))
def test_pieces_of_a_batch_add_up_if_the_weights_are_those_of_the_whole(
    seed, mode, token_surrogate_loss
):
    new, old, advantages, mask = draw(seed, 1, 6, 4, 2)
    new, old = new.clone().requires_grad_(), old.clone().requires_grad_()
    loss = token_surrogate_loss(new, old, advantages, clip_epsilon=0.2, mask=mask, mode=mode)
    lengths = mask.sum(1).tolist()
    weight = {
        "token_mean": [1 / 13] * 4,
        "sequence_sum": [1 / 4] * 4,
        "sequence_mean": [1 / (4 * length) for length in lengths],
    }[mode]
    expected = 0.0
    for i, length in enumerate(lengths):
        for t in range(length):
            ratio, a = math.exp((new - old)[i, t].item()), advantages[i, t].item()
            expected -= weight[i] * min(ratio * a, min(max(ratio, 0.8), 1.2) * a)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert gradient(loss, old).count_nonzero() == 0


def test_weights_made_anew_from_each_piece_change_the_gradient():
    terms = torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 1]]).double()
    mask = up_to(1, 4, width=4)
    whole = variants.aggregate(terms, mask, mode="token_mean")
    pieces = [
        variants.aggregate(terms[i : i + 1], mask[i : i + 1], mode="token_mean") for i in (0, 1)
    ]
    assert whole.item() == pytest.approx(1)
    weights = variants.token_weights(mask, mode="token_mean")
    apart = [(weights[i] * mask[i]).sum().item() for i in (0, 1)]
    assert apart == pytest.approx([0.2, 0.8])
    assert [piece.item() / 2 for piece in pieces] == pytest.approx([0.5, 0.5])


@pytest.mark.messages
def test_unknown_modes_are_refused():
    mask = up_to(2)
    with pytest.raises(ValueError, match="mode is 'mean'; expected one of token_mean"):
        variants.token_weights(mask, mode="mean")
    with pytest.raises(ValueError, match="max_length is None"):
        variants.token_weights(mask, mode="constant")
    with pytest.raises(TypeError, match="mask has dtype"):
        variants.token_weights(mask.float(), mode="token_mean")


# --- KL in the loss ------------------------------------------------------------------------------


def expected_gradient(kl_loss, estimator):
    """Exact mean gradient over all tokens that a policy of five tokens draws; and both KLs'."""
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(5, generator=generator, dtype=torch.float64).requires_grad_()
    reference = torch.randn(5, generator=generator, dtype=torch.float64).log_softmax(0)
    log_probs = logits.log_softmax(0)
    probabilities = log_probs.exp().detach()
    one = torch.ones(1, 1, dtype=torch.bool)
    loss = sum(
        p * kl_loss(
            own.reshape(1, 1), known.reshape(1, 1), one, estimator=estimator, mode="token_mean"
        )
        for p, own, known in zip(probabilities, log_probs, reference, strict=True)
    )  # fmt: skip
    reverse = (log_probs.exp() * (log_probs - reference)).sum()
    forward = (reference.exp() * (reference - log_probs)).sum()
    return [
        torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (loss, reverse, forward)
    ]


def test_k2_in_the_loss_pulls_back_to_the_reference_and_k3_from_the_other_side(kl_loss):
    found, reverse, _ = expected_gradient(kl_loss, "k2")
    assert_close(found, reverse, **EXACT)
    found, reverse, forward = expected_gradient(kl_loss, "k3")
    assert_close(found, forward, **EXACT)
    assert (found - reverse).abs().max() > 0.01


def test_k1_in_the_loss_teaches_nothing(kl_loss):
    found, reverse, _ = expected_gradient(kl_loss, "k1")
    assert found.abs().max() < 1e-12 < reverse.abs().max()


def test_the_reference_gets_no_gradient(kl_loss):
    reference = float64(-1, -2)[None].requires_grad_()
    log_probs = float64(-1.5, -0.5)[None].requires_grad_()
    loss = kl_loss(log_probs, reference, flags(1, 1)[None], estimator="k2", mode="token_mean")
    # ½·((½)² + (1½)²) / 2
    assert loss.item() == pytest.approx(0.625)
    assert gradient(loss, reference).count_nonzero() == 0


# --- Sampling ------------------------------------------------------------------------------------


def test_groups_that_teach_nothing_are_left_out(informative_groups):
    scores = float64(1, 0, 1, 1, 0, 0, 1, 1)
    groups = torch.tensor([0, 0, 1, 1, 2, 2, 0, 1])
    kept = informative_groups(scores, groups)
    assert kept.tolist() == [True, True, False, False, False, False, True, False]


def test_the_penalty_grows_over_the_margin_and_ends_at_one(overlong_penalty):
    found = overlong_penalty(torch.tensor([3, 6, 7, 8, 10, 14]), max_length=10, margin=4)
    assert_close(found.double(), float64(0, 0, -0.25, -0.5, -1, -1), rtol=0, atol=1e-6)


@pytest.mark.messages
def test_a_margin_out_of_range_is_refused():
    with pytest.raises(ValueError, match="margin is 11; expected 1 to max_length = 10"):
        variants.overlong_penalty(torch.tensor([3]), max_length=10, margin=11)


def test_best_of_n_gives_one_index_per_group_and_the_first_of_equals(best_of_n):
    scores = float64(5, 0, 1, 2, 2, -3, -1)
    groups = torch.tensor([7, 2, 2, 2, 2, 4, 4])
    assert best_of_n(scores, groups).tolist() == [3, 6, 0]


def test_best_of_two_is_the_table_of_all_pairs(best_of_n_policy):
    policy, scores = float64(0.5, 0.2, 0.3), float64(1, 3, 2)
    expected = [0.0] * 3
    for i in range(3):
        for j in range(3):
            expected[max((i, j), key=lambda k: scores[k].item())] += (policy[i] * policy[j]).item()
    assert_close(best_of_n_policy(policy, scores, num_draws=2), float64(*expected), **EXACT)


def test_the_distance_of_best_of_n_stays_below_its_bound():
    generator = torch.Generator().manual_seed(0)
    policy = torch.rand(50, generator=generator, dtype=torch.float64)
    policy = policy / policy.sum()
    scores = torch.randn(50, generator=generator, dtype=torch.float64)
    for num_draws in (1, 2, 4, 8):
        best = variants.best_of_n_policy(policy, scores, num_draws=num_draws)
        distance = torch.where(best > 0, best * (best / policy).log(), 0).sum().item()
        bound = math.log(num_draws) - (num_draws - 1) / num_draws
        assert variants.best_of_n_kl(num_draws) == pytest.approx(bound, abs=1e-12)
        assert 0.8 * bound - 1e-9 <= distance <= bound + 1e-9


def test_what_reaches_the_bar_is_imitated(accepted):
    assert accepted(float64(0.2, 1, 2), at_least=1.0).tolist() == [False, True, True]
    assert accepted(float64(1, 1), at_least=1.0).all()


# --- DPO -----------------------------------------------------------------------------------------

PAIR = (float64(-1.0, -4.0), float64(-2.0, -3.0), float64(-1.5, -3.0), float64(-1.0, -3.5))


def test_dpo_matches_the_hand(dpo_loss):
    # margins β·((0.5) − (−1)) and β·((−1) − (0.5)), β = 0.4: 0.6 and −0.6
    expected = (math.log(1 + math.exp(-0.6)) + math.log(1 + math.exp(0.6))) / 2
    assert dpo_loss(*PAIR, beta=0.4).item() == pytest.approx(expected, abs=1e-12)
    # the first pair alone, so that the two cannot cancel
    first = [column[:1] for column in PAIR]
    assert dpo_loss(*first, beta=0.4).item() == pytest.approx(math.log(1 + math.exp(-0.6)))


def test_dpo_starts_at_log_two_and_pulls_both_by_half_of_beta(dpo_loss):
    chosen, rejected = float64(-1.0, -4.0).requires_grad_(), float64(-2.0, -3.0).requires_grad_()
    loss = dpo_loss(chosen, rejected, chosen.detach(), rejected.detach(), beta=0.5)
    assert loss.item() == pytest.approx(math.log(2), abs=1e-12)
    # mean of two pairs: β/2/2 each
    up, down = torch.autograd.grad(loss, (chosen, rejected))
    assert_close(up, float64(-0.125, -0.125), **EXACT)
    assert_close(down, float64(0.125, 0.125), **EXACT)


def test_dpo_sees_the_margin_only(dpo_loss):
    lower = (PAIR[0] - 5, PAIR[1] - 5, PAIR[2], PAIR[3])
    assert dpo_loss(*lower, beta=0.4).item() == pytest.approx(dpo_loss(*PAIR, beta=0.4).item())
    apart = (PAIR[0], PAIR[1] - 5, PAIR[2], PAIR[3])
    assert dpo_loss(*apart, beta=0.4) < dpo_loss(*PAIR, beta=0.4) - 0.1


def test_the_reference_of_dpo_is_a_constant(dpo_loss):
    columns = [column.clone().requires_grad_() for column in PAIR]
    loss = dpo_loss(*columns, beta=0.4)
    slopes = torch.autograd.grad(loss, columns, allow_unused=True)
    learned = [slope is not None and bool(slope.any()) for slope in slopes]
    assert learned == [True, True, False, False]


def test_dpo_is_bradley_terry_with_the_implicit_rewards():
    from torch.nn.functional import binary_cross_entropy_with_logits

    rewards = [variants.implicit_rewards(PAIR[i], PAIR[i + 2], beta=0.7) for i in (0, 1)]
    margin = rewards[0] - rewards[1]
    expected = binary_cross_entropy_with_logits(margin, torch.ones(2, dtype=torch.float64))
    assert_close(variants.dpo_loss(*PAIR, beta=0.7), expected, **EXACT)


def test_the_optimum_of_the_penalised_reward_minimises_dpo():
    # four responses to one prompt, preferences by Bradley-Terry: the exact mean loss over all pairs
    reference = float64(0.4, 0.3, 0.2, 0.1).log()
    rewards, beta = float64(0.0, 1.0, -0.5, 2.0), 0.8
    optimum = (reference + rewards / beta).log_softmax(0)

    def loss_of(log_probs):
        total = 0.0
        for i in range(4):
            for j in range(4):
                preferred = torch.sigmoid(rewards[i] - rewards[j])
                one = [column.reshape(1) for column in (log_probs[i], log_probs[j])]
                known = [column.reshape(1) for column in (reference[i], reference[j])]
                total = total + preferred * variants.dpo_loss(*one, *known, beta=beta)
        return total

    logits = optimum.clone().requires_grad_()
    assert gradient(loss_of(logits.log_softmax(0)), logits).abs().max() < 1e-12
    start = reference.clone().requires_grad_()
    assert gradient(loss_of(start.log_softmax(0)), start).abs().max() > 0.1
    found = variants.implicit_rewards(optimum, reference, beta=beta)
    assert_close(found - found[0], rewards - rewards[0], **EXACT)


def test_each_response_of_a_pair_has_its_own_mask(token_dpo_loss):
    chosen = torch.tensor([[-1.0, -2.0, -7.0, -7.0]]).double()
    rejected = torch.tensor([[-0.5, -0.5, -0.5, -9.0]]).double()
    masks = {"chosen_mask": up_to(2, width=4), "rejected_mask": up_to(3, width=4)}
    zero = torch.zeros(1, 4, dtype=torch.float64)
    loss = token_dpo_loss(chosen, rejected, zero, zero, beta=1.0, **masks)
    # −3 against −1.5
    assert loss.item() == pytest.approx(math.log(1 + math.exp(1.5)), abs=1e-12)


def test_the_log_probability_of_a_response_is_a_sum_with_its_end(sequence_log_probs):
    log_probs = torch.tensor([[-1.0, -2.0, NAN], [-0.5, -0.25, -4.0]]).double()
    assert_close(sequence_log_probs(log_probs, up_to(2, 3, width=3)), float64(-3, -4.75), **EXACT)


def test_the_reward_that_a_policy_implies_is_in_units_of_reward(implicit_rewards):
    found = implicit_rewards(float64(-1, -3), float64(-2, -2), beta=0.5)
    assert_close(found, float64(0.5, -0.5), **EXACT)


def test_pairs_stay_within_a_prompt_and_use_each_response_once(make_pairs):
    scores = float64(1, 0, 1, 0, 0, 1, 1, 1, 0.5)
    groups = torch.tensor([3, 3, 3, 3, 3, 1, 1, 1, 1])
    chosen, rejected = make_pairs(scores, groups)
    assert (scores[chosen] > scores[rejected]).all()
    assert (groups[chosen] == groups[rejected]).all()
    used = torch.cat([chosen, rejected]).tolist()
    assert len(used) == len(set(used)) == 6  # two pairs of the first prompt, one of the second


def test_equal_scores_make_no_pair(make_pairs):
    chosen, rejected = make_pairs(float64(1, 1, 0, 0), torch.tensor([0, 0, 1, 1]))
    assert len(chosen) == len(rejected) == 0
    # a prompt of one response has no partner, and a worse one of another prompt is none
    chosen, rejected = make_pairs(float64(1, 0, 2), torch.tensor([0, 0, 1]))
    assert (chosen.tolist(), rejected.tolist()) == ([0], [1])


# --- Half precision, junk, nothing ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite(dtype):
    scores, groups = torch.tensor([1, 1, 0, 1, 0.5, 0.5], dtype=dtype), torch.arange(6) // 2
    for function in (
        variants.group_advantages,
        variants.dr_grpo_advantages,
        variants.rloo_advantages,
    ):
        found = function(scores, groups)
        assert found.dtype == dtype
        assert found.isfinite().all()
    new, old, advantages, mask = draw(5, 2, 6, 4)
    new = new.to(dtype).requires_grad_()
    for mode in variants.MODES:
        loss = variants.token_surrogate_loss(
            new, old.to(dtype), advantages.to(dtype),
            clip_epsilon=0.2, mask=mask, mode=mode, max_length=6,
        )  # fmt: skip
        assert loss.isfinite()
        assert gradient(loss, new).isfinite().all()


def test_junk_in_padding_changes_no_loss_and_no_gradient():
    new, old, advantages, mask = draw(6, 2, 6, 4)
    losses = (
        *(
            partial(variants.token_surrogate_loss, clip_epsilon=0.2, mode=mode, max_length=6)
            for mode in variants.MODES
        ),
        partial(variants.sequence_surrogate_loss, clip_epsilon=0.2),
        partial(variants.cispo_loss, clip_epsilon=0.2),
        variants.dapo_loss, variants.plain_token_loss, variants.plain_sequence_loss,
    )  # fmt: skip
    for loss in losses:
        found = []
        for junk in (0.0, NAN, -1e30):
            columns = [column.masked_fill(~mask, junk) for column in (new, old, advantages)]
            columns[0].requires_grad_()
            value = loss(*columns, mask=mask)
            found.append((value.item(), gradient(value, columns[0])))
        for value, slope in found[1:]:
            assert value == found[0][0]
            assert torch.equal(slope, found[0][1])


def test_a_batch_without_a_token_weighs_nothing():
    mask = torch.zeros(2, 3, dtype=torch.bool)
    for mode in variants.MODES:
        assert variants.aggregate(torch.ones(2, 3), mask, mode=mode, max_length=3) == 0


@pytest.mark.messages
def test_pairs_and_probabilities_that_are_none_are_refused():
    nothing = torch.zeros(0)
    with pytest.raises(ValueError, match="chosen is empty; expected at least one pair"):
        variants.dpo_loss(nothing, nothing, nothing, nothing, beta=1.0)
    for policy in ([0.5, 0.6], [1.5, -0.5]):
        with pytest.raises(ValueError, match=r"policy adds up to 1\.\d000; expected prob"):
            variants.best_of_n_policy(float64(*policy), float64(0, 1), num_draws=2)
    with pytest.raises(ValueError, match="policy adds up to nan"):
        variants.best_of_n_policy(float64(math.nan, 0.5), float64(0, 1), num_draws=2)


@pytest.mark.messages
def test_rewards_to_go_of_no_discount_and_of_whole_numbers_are_refused():
    rewards, mask = torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool)
    for gamma in (2.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="expected a number in \\[0, 1\\]"):
            variants.token_rewards_to_go(rewards, mask, gamma=gamma)
    with pytest.raises(TypeError, match="rewards"):
        variants.token_rewards_to_go(rewards.long(), mask, gamma=0.5)
