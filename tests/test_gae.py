"""Advantages where episodes end, against a double sum, a mixture of returns, and numbers by hand.

Algebra in float64 keeps 1e-12; chains with values of 100 lose two digits of it.
"""

from itertools import pairwise

import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import gae as mistakes
from mistakes import under_test
from oracles import column, examples, flags, float64
from torch.testing import assert_close

from ppo_lessons import gae

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN = float("nan")
FRACTIONS = st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0])
SEEDS, SIZES, WIDTHS = st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 3)

# What is claimed of the loop is claimed of its slow and its parallel form too.
FORMS = (gae.compute_gae, gae.gae_by_the_book, gae.gae_by_scan)
compute_gae = pytest.fixture(scope="module", name="compute_gae", params=FORMS)(
    lambda request: request.param
)
bootstrapped_returns = under_test(gae.bootstrapped_returns)
normalize_advantages = under_test(gae.normalize_advantages)


def flag_column(*steps: int):
    return flags(*steps).unsqueeze(-1)


def draw(seed: int = 0, num_steps: int = 7, num_envs: int = 3):
    return oracles.draw_rollout(seed, num_steps, num_envs)


def rows(rollout: dict, chosen) -> dict:
    return {name: table[chosen] for name, table in rollout.items()}


def clones(rollout: dict) -> dict:
    return {name: table.clone() for name, table in rollout.items()}


# --- The worked case -----------------------------------------------------------------------------

# Rewards 1, γ = .9, λ = .8; the second step is cut by a time limit. Its true last observation is
# worth 7; the row below it, worth 1, is the first of another episode. After the last row: 3.
WORKED = {
    "rewards": column(1, 1, 1, 1),
    "values": column(5, 6, 1, 2),
    "next_values": column(6, 7, 2, 3),
    "terminated": flag_column(0, 0, 0, 0),
    "truncated": flag_column(0, 1, 0, 0),
}
SETTINGS = {"gamma": 0.9, "gae_lambda": 0.8}


def test_the_worked_case_matches_the_hand(compute_gae):
    # δ: 1 + 5.4 − 5 = 1.4;  1 + 6.3 − 6 = 1.3;  1 + 1.8 − 1 = 1.8;  1 + 2.7 − 2 = 1.7
    # Â: 1.4 + .72·1.3 = 2.336;  1.3, cut;        1.8 + .72·1.7 = 3.024;  1.7
    advantages = compute_gae(**clones(WORKED), **SETTINGS)
    assert_close(advantages, column(2.336, 1.3, 3.024, 1.7), **EXACT)


@pytest.mark.parametrize(
    ("mistake", "first", "second"),
    [
        # 1.4 + .72·(−5);   1 − 6
        (mistakes.flags_merged, -2.2, -5.0),
        # 1.4 + .72·3.47728;   1.3 + .72·3.024
        (mistakes.truncated_ignored, 3.9036416, 3.47728),
        # 1.4 + .72·(−1.92272);   1 + .9·1 − 6 + .72·3.024
        (mistakes.truncated_ignored_after_the_reset, 0.0156416, -1.92272),
        # 1.4 + .72·(−4.1);   1 + .9·1 − 6
        (mistakes.next_value_after_the_reset, -1.552, -4.1),
    ],
)
def test_each_mistake_has_its_own_numbers_in_the_worked_case(mistake, first, second):
    advantages = mistake(**clones(WORKED), **SETTINGS)
    assert_close(advantages, column(first, second, 3.024, 1.7), **EXACT)


# --- Where an episode ends -----------------------------------------------------------------------


def test_truncation_keeps_the_bootstrap(compute_gae):
    # A chain of reward 1 is worth 100 at γ = .99, wherever we stop watching.
    hundred, no = column(*[100] * 5), flag_column(0, 0, 0, 0, 0)
    for gae_lambda in (0.0, 0.95, 1.0):
        advantages = compute_gae(
            column(*[1] * 5),
            hundred,
            hundred.clone(),
            no,
            flag_column(0, 0, 0, 0, 1),
            gamma=0.99,
            gae_lambda=gae_lambda,
        )
        assert_close(advantages, torch.zeros_like(hundred), rtol=0, atol=1e-10)


def test_the_last_row_bootstraps_without_any_flag(compute_gae):
    hundred, no = column(*[100] * 5), flag_column(0, 0, 0, 0, 0)
    advantages = compute_gae(
        column(*[1] * 5), hundred, hundred.clone(), no, no, gamma=0.99, gae_lambda=0.95
    )
    assert_close(advantages, torch.zeros_like(hundred), rtol=0, atol=1e-10)


@pytest.mark.parametrize("mistake", [mistakes.flags_merged, mistakes.no_bootstrap_at_the_last_row])
def test_a_forgotten_bootstrap_costs_the_whole_future(mistake):
    # −99 at the cut and −99·(.99·.95)⁴ = −77.46 four steps before it, where the truth is 0
    hundred, no = column(*[100] * 5), flag_column(0, 0, 0, 0, 0)
    advantages = mistake(
        column(*[1] * 5),
        hundred,
        hundred.clone(),
        no,
        flag_column(0, 0, 0, 0, 1),
        gamma=0.99,
        gae_lambda=0.95,
    )
    assert_close(advantages[[0, 4]], column(-77.46, -99), rtol=0, atol=5e-3)


# The second step ends an episode; the next one starts where the critic expects 50, and both
# critics are a little off. γ = .99, λ = .95.
TERMINAL = {
    "rewards": column(1, 1, 1, 1),
    "values": column(1, 1, 50, 50),
    "next_values": column(1, 50, 50, 50),
    "terminated": flag_column(0, 1, 0, 0),
    "truncated": flag_column(0, 0, 0, 0),
}


def test_termination_ends_bootstrap_and_sum(compute_gae):
    # δ: 1 + .99 − 1 = .99;  1 − 1 = 0;  1 + 49.5 − 50 = .5, twice.  Â_2 = .5 + .9405·.5 = .97025
    advantages = compute_gae(**clones(TERMINAL), gamma=0.99, gae_lambda=0.95)
    assert_close(advantages, column(0.99, 0, 0.97025, 0.5), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (mistakes.flags_late_by_one, (4.2, 3.4, -49, 0.5)),
        (mistakes.trace_not_reset, (1.85, 0.91, 0.97, 0.5)),
        (mistakes.bootstrap_kept_at_termination, (47.54, 49.5, 0.97, 0.5)),
    ],
)
def test_what_happens_when_a_termination_is_missed(mistake, expected):
    advantages = mistake(**clones(TERMINAL), gamma=0.99, gae_lambda=0.95)
    # the expected numbers are rounded to two digits
    assert_close(advantages, column(*expected), rtol=0, atol=5e-2)


def test_a_step_both_terminated_and_truncated_is_terminated(compute_gae):
    rollout = draw(1)
    both = clones(rollout)
    both["truncated"] = rollout["truncated"] | rollout["terminated"]
    assert both["truncated"].ne(rollout["truncated"]).any(), "the case must be there"
    assert_close(
        compute_gae(**both, **SETTINGS),
        oracles.gae_by_definition(**rollout, **SETTINGS),
        **EXACT,
    )


def nothing_after_an_end_matters(compute_gae, flag):
    end, shape = 3, (7, 1)
    rollout = draw(2, *shape)
    rollout["terminated"][:], rollout["truncated"][:] = False, False
    rollout[flag][end] = True
    if flag == "terminated":
        rollout["next_values"][end] = NAN  # what stands behind a final state may be anything
    plain = compute_gae(**clones(rollout), **SETTINGS)
    changed = clones(draw(3, *shape))
    for name, table in changed.items():
        table[: end + 1] = rollout[name][: end + 1]
    assert_close(compute_gae(**changed, **SETTINGS)[: end + 1], plain[: end + 1], **EXACT)
    assert plain[: end + 1].isfinite().all()


def test_nothing_after_a_truncation_matters(compute_gae):
    nothing_after_an_end_matters(compute_gae, "truncated")


def test_nothing_after_a_termination_matters_not_even_nan(compute_gae):
    nothing_after_an_end_matters(compute_gae, "terminated")


def test_an_episode_may_be_scored_alone(compute_gae):
    rollout = draw(4, num_envs=1)
    ends = (rollout["terminated"] | rollout["truncated"]).flatten().nonzero().flatten().tolist()
    assert len(ends) >= 2, "the case must be there"
    bounds = [0, *(end + 1 for end in ends), 7]
    parts = [
        compute_gae(**rows(clones(rollout), slice(start, stop)), **SETTINGS)
        for start, stop in pairwise(bounds)
        if start < stop
    ]
    assert_close(compute_gae(**clones(rollout), **SETTINGS), torch.cat(parts), **EXACT)


def test_a_cut_of_the_rollout_costs_the_discounted_advantage_behind_it(compute_gae):
    # No flag is set: Â_t = (Â_t of the first half alone) + (γλ)^{k−t}·Â_k
    rollout, cut = draw(5), 3
    rollout["terminated"][:], rollout["truncated"][:] = False, False
    rollout["next_values"][:-1] = rollout["values"][1:]
    whole = compute_gae(**clones(rollout), **SETTINGS)
    half = compute_gae(**rows(clones(rollout), slice(0, cut)), **SETTINGS)
    weights = column(*(0.72 ** (cut - t) for t in range(cut)))
    assert_close(whole[:cut], half + weights * whole[cut], **EXACT)


# --- λ -------------------------------------------------------------------------------------------


def test_lambda_zero_is_the_td_error(compute_gae):
    rollout = draw(6)
    facts = {name: table for name, table in rollout.items() if name != "truncated"}
    expected = oracles.td_errors(**facts, gamma=0.9)
    assert_close(compute_gae(**clones(rollout), gamma=0.9, gae_lambda=0.0), expected, **EXACT)


def test_lambda_one_is_the_bootstrapped_return_less_the_value(compute_gae):
    rollout = draw(7)
    facts = {name: table for name, table in rollout.items() if name != "values"}
    expected = oracles.bootstrapped_returns(**facts, gamma=0.9) - rollout["values"]
    assert_close(compute_gae(**clones(rollout), gamma=0.9, gae_lambda=1.0), expected, **EXACT)


def test_the_weights_are_powers_of_gamma_lambda(compute_gae):
    # Â_0 as a function of one δ at a time: 1, .9405, .8845, .8319 at γ = .99, λ = .95
    no = flag_column(0, 0, 0, 0)
    nothing = column(0, 0, 0, 0)
    weights = [
        compute_gae(
            reward.unsqueeze(-1), nothing, nothing.clone(), no, no, gamma=0.99, gae_lambda=0.95
        )[0, 0].item()
        for reward in torch.eye(4, dtype=torch.float64)
    ]
    assert weights == pytest.approx([1, 0.9405, 0.88454, 0.83191], abs=5e-6)


def test_the_missing_parenthesis_has_other_weights():
    no, nothing = flag_column(0, 0, 0, 0), column(0, 0, 0, 0)
    weights = [
        mistakes.missing_parenthesis(
            reward.unsqueeze(-1), nothing, nothing, no, no, gamma=0.99, gae_lambda=0.95
        )[0, 0].item()
        for reward in torch.eye(4, dtype=torch.float64)
    ]
    assert weights == pytest.approx([0.99, 0.9405, 0.8935, 0.8488], abs=5e-5)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=FRACTIONS, gae_lambda=FRACTIONS)
def test_the_recursion_is_the_double_sum(seed, num_steps, num_envs, gamma, gae_lambda, compute_gae):
    rollout = draw(seed, num_steps, num_envs)
    expected = oracles.gae_by_definition(**rollout, gamma=gamma, gae_lambda=gae_lambda)
    advantages = compute_gae(**rollout, gamma=gamma, gae_lambda=gae_lambda)
    assert_close(advantages, expected, **EXACT)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=FRACTIONS, gae_lambda=FRACTIONS)
def test_the_recursion_is_the_mixture_of_n_step_advantages(
    seed, num_steps, num_envs, gamma, gae_lambda, compute_gae
):
    rollout = draw(seed, num_steps, num_envs)
    expected = oracles.gae_as_mixture(**rollout, gamma=gamma, gae_lambda=gae_lambda)
    advantages = compute_gae(**rollout, gamma=gamma, gae_lambda=gae_lambda)
    assert_close(advantages, expected, **EXACT)


@examples
@given(seed=SEEDS, gamma=FRACTIONS, gae_lambda=FRACTIONS)
def test_float32_agrees_to_five_digits(seed, gamma, gae_lambda, compute_gae):
    rollout = draw(seed)
    expected = oracles.gae_by_definition(**rollout, gamma=gamma, gae_lambda=gae_lambda)
    single = {n: t.float() if t.is_floating_point() else t for n, t in rollout.items()}
    advantages = compute_gae(**single, gamma=gamma, gae_lambda=gae_lambda)
    assert_close(advantages, expected.float(), rtol=1e-5, atol=1e-5)


# --- What must not make a difference -------------------------------------------------------------


def test_advantages_are_linear_in_rewards_and_values(compute_gae):
    first, second = draw(8), draw(9)
    ends = {"terminated": first["terminated"], "truncated": first["truncated"]}
    names = ("rewards", "values", "next_values")

    def scored(**tables):
        return compute_gae(**clones(tables), **ends, **SETTINGS)

    mixed = scored(**{name: 2 * first[name] - 3 * second[name] for name in names})
    parts = [scored(**{name: table[name] for name in names}) for table in (first, second)]
    assert_close(mixed, 2 * parts[0] - 3 * parts[1], **EXACT)


def test_environments_do_not_hear_of_each_other(compute_gae):
    rollout, order = draw(10), [2, 0, 1]
    plain = compute_gae(**clones(rollout), **SETTINGS)
    permuted = compute_gae(**rows(rollout, (slice(None), order)), **SETTINGS)
    assert_close(permuted, plain[:, order], **EXACT)
    alone = compute_gae(**rows(rollout, (slice(None), [1])), **SETTINGS)
    assert_close(alone, plain[:, [1]], **EXACT)


def test_the_inputs_stay_as_they_were_and_a_second_call_agrees(compute_gae):
    rollout = draw(11)
    before = clones(rollout)
    first, second = (compute_gae(**rollout, **SETTINGS) for _ in range(2))
    assert_close(first, second, **EXACT)
    for name, table in rollout.items():
        assert torch.equal(table, before[name]), f"{name} was changed"


@pytest.mark.messages
@pytest.mark.parametrize("compute_gae", [gae.compute_gae, gae.gae_by_scan], indirect=True)
def test_bad_input_to_gae_is_refused(compute_gae):
    def scored(gamma=0.9, gae_lambda=0.8, **changed):
        return compute_gae(**{**WORKED, **changed}, gamma=gamma, gae_lambda=gae_lambda)

    with pytest.raises(ValueError, match=r"values has shape \(3, 1\); expected \(4, 1\) like rew"):
        scored(values=column(1, 2, 3))
    with pytest.raises(ValueError, match=r"truncated has shape \(4,\); expected \(4, 1\)"):
        scored(truncated=flags(0, 0, 0, 0))
    with pytest.raises(TypeError, match=r"truncated has dtype torch.float64; expected torch.bool"):
        scored(truncated=column(0, 0, 0, 0))
    with pytest.raises(ValueError, match=r"rewards holds nan at index \(2, 0\)"):
        scored(rewards=column(1, 1, NAN, 1))
    with pytest.raises(ValueError, match=r"next_values holds nan at index \(1, 0\)"):
        scored(next_values=column(6, NAN, 2, 3))
    with pytest.raises(ValueError, match=r"gae_lambda is 1.1; expected a number in \[0, 1\]"):
        scored(gae_lambda=1.1)
    with pytest.raises(ValueError, match=r"gamma is nan; expected a number in \[0, 1\]"):
        scored(gamma=NAN)


# --- Bootstrapped returns ------------------------------------------------------------------------


def test_bootstrapped_returns_match_the_hand(bootstrapped_returns):
    # 1 + .9·(1 + .9·7) = 7.57;  1 + 6.3 = 7.3;  1 + .9·(1 + .9·3) = 4.33;  1 + 2.7 = 3.7
    facts = {name: table for name, table in clones(WORKED).items() if name != "values"}
    returns = bootstrapped_returns(**facts, gamma=0.9)
    assert_close(returns, column(7.57, 7.3, 4.33, 3.7), **EXACT)


def test_computing_the_returns_leaves_the_rewards(bootstrapped_returns):
    facts = {name: table for name, table in clones(WORKED).items() if name != "values"}
    bootstrapped_returns(**facts, gamma=0.9)
    for name, table in facts.items():
        assert torch.equal(table, WORKED[name]), f"{name} was changed"


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=FRACTIONS)
def test_bootstrapped_returns_are_the_longest_n_step_returns(
    seed, num_steps, num_envs, gamma, bootstrapped_returns
):
    rollout = draw(seed, num_steps, num_envs)
    del rollout["values"]
    expected = oracles.bootstrapped_returns(**rollout, gamma=gamma)
    assert_close(bootstrapped_returns(**rollout, gamma=gamma), expected, **EXACT)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=FRACTIONS)
def test_lambda_one_plus_values_is_the_bootstrapped_return(
    seed, num_steps, num_envs, gamma, compute_gae, bootstrapped_returns
):
    rollout = draw(seed, num_steps, num_envs)
    returns = compute_gae(**rollout, gamma=gamma, gae_lambda=1.0) + rollout["values"]
    del rollout["values"]
    assert_close(bootstrapped_returns(**rollout, gamma=gamma), returns, **EXACT)


@pytest.mark.messages
def test_bad_input_to_bootstrapped_returns_is_refused(bootstrapped_returns):
    def summed(gamma=0.9, **changed):
        facts = {name: table for name, table in WORKED.items() if name != "values"}
        return bootstrapped_returns(**{**facts, **changed}, gamma=gamma)

    with pytest.raises(ValueError, match=r"truncated has shape \(1, 1\); expected \(4, 1\)"):
        summed(truncated=flag_column(0))
    with pytest.raises(TypeError, match=r"truncated has dtype torch.int64; expected torch.bool"):
        summed(truncated=flag_column(0, 0, 0, 0).long())
    with pytest.raises(ValueError, match=r"next_values holds nan at index \(3, 0\)"):
        summed(next_values=column(6, 7, 2, NAN))
    with pytest.raises(ValueError, match=r"gamma is 2; expected a number in \[0, 1\]"):
        summed(gamma=2)


# --- Normalising ---------------------------------------------------------------------------------


def test_normalised_advantages_have_mean_zero_and_deviation_one(normalize_advantages):
    # (1, 2, 3, 6): mean 3, deviations −2, −1, 0, 3, variance 14/4
    normalised = normalize_advantages(float64(1, 2, 3, 6))
    # 10⁻⁸ is added to the deviation
    assert_close(normalised, float64(-2, -1, 0, 3) / 3.5**0.5, rtol=1e-7, atol=1e-12)


def test_one_sample_gives_zero_and_not_nan(normalize_advantages):
    assert normalize_advantages(float64(5)).tolist() == [0]
    assert normalize_advantages(float64(5, 1), mask=flags(1, 0))[0] == 0


def test_equal_advantages_push_nothing(normalize_advantages):
    # The mean of equal float32 numbers is off by rounding, and a deviation of 0 would blow that up
    # to ±1 for every sample. What is left stays below one in a hundred.
    for constant in (0.1, 100.1, 1e4 / 3):
        normalised = normalize_advantages(torch.full((7,), constant))
        assert normalised.abs().max() < 0.01


def test_a_minibatch_may_turn_the_sign(normalize_advantages):
    # Both were better than expected; within their minibatch one is now worse than average.
    assert_close(normalize_advantages(float64(5, 4)), float64(1, -1), rtol=1e-7, atol=0)


def test_masked_advantages_do_not_count(normalize_advantages):
    expected = float64(-2, -1, 0, 3) / 3.5**0.5
    for junk in (NAN, 1e9):
        normalised = normalize_advantages(float64(1, 2, 3, 6, junk), mask=flags(1, 1, 1, 1, 0))
        assert_close(normalised[:4], expected, rtol=1e-7, atol=1e-12)


def test_normalising_leaves_the_advantages_from_which_returns_are_built(normalize_advantages):
    # V = 100, Â = 5, 3: the targets are 105, 103, not 101, 99
    advantages, values = float64(5, 3), float64(100, 100)
    normalize_advantages(advantages)
    assert_close(advantages + values, float64(105, 103), **EXACT)
