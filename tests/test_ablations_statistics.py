"""Statistics of a few runs: numbers by hand, all redraws one by one, and rliable's numbers."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from mistakes import under_test

from ppo_lessons.ablations import statistics

interquartile_mean = under_test(statistics.interquartile_mean)
stratified_bootstrap = under_test(statistics.stratified_bootstrap)
bootstrap_difference = under_test(statistics.bootstrap_difference)
probability_of_improvement = under_test(statistics.probability_of_improvement)
performance_profile = under_test(statistics.performance_profile)
apart = under_test(statistics.apart)
judge_settings = under_test(statistics.judge_settings)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "statistics.json").read_text("utf-8"))
EXACT: Any = {"rel": 0.0, "abs": 1e-12}  # float64


def f64(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def mean(drawn):
    return drawn.mean(dim=-1)


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


def usual(seed=1, *, resamples=20_000, confidence=0.9) -> Any:
    return {"resamples": resamples, "confidence": confidence, "generator": seeded(seed)}


def all_redraws(*tasks):
    """Every list of runs that a stratified bootstrap can draw, all equally likely."""
    each = [list(itertools.product(task, repeat=len(task))) for task in tasks]
    return [[run for part in drawn for run in part] for drawn in itertools.product(*each)]


def middle_of(numbers, inside):
    """The ends between which this share of sorted numbers lies."""
    ordered = sorted(numbers)
    out = (1 - inside) / 2 * (len(ordered) - 1)
    return ordered[round(out)], ordered[round(len(ordered) - 1 - out)]


# --- the middle half ---------------------------------------------------------------------------


def test_the_middle_half_of_eight_by_hand(interquartile_mean):
    scores = f64(7, 1, 100, 5, 2, 6, 3, 4)  # sorted: 1 2 | 3 4 5 6 | 7 100
    assert interquartile_mean(scores).item() == pytest.approx(4.5, **EXACT)


def test_with_ten_runs_two_are_left_out_at_each_end(interquartile_mean):
    scores = f64(0, 0, 1, 1, 2, 9, 9, 9, 50, 50)  # 1 1 2 9 9 9
    assert interquartile_mean(scores).item() == pytest.approx(31 / 6, **EXACT)


def test_three_runs_are_averaged(interquartile_mean):
    assert interquartile_mean(f64(0, 1, 8)).item() == pytest.approx(3, **EXACT)


def test_the_worst_and_best_quarter_may_be_anything(interquartile_mean):
    scores = f64(-1e6, -1e5, 1, 2, 4, 9, 1e5, 1e6)
    assert interquartile_mean(scores).item() == pytest.approx(4, **EXACT)


def test_each_row_is_a_question_of_its_own(interquartile_mean):
    scores = torch.stack([f64(0, 1, 3, 9), f64(0, 10, 30, 90)])
    assert interquartile_mean(scores).tolist() == pytest.approx([2, 20], **EXACT)


def test_the_order_of_the_seeds_is_nothing(interquartile_mean):
    rows = torch.stack([f64(*order) for order in itertools.permutations((1, 2, 4, 9, 20))])
    assert interquartile_mean(rows).tolist() == pytest.approx([5] * len(rows), **EXACT)


# --- drawing the runs again --------------------------------------------------------------------


def test_two_runs_by_hand(stratified_bootstrap):
    # means of two draws from {0, 1}: 0, ½, ½, 1; a quarter of them lies at each end
    inner = stratified_bootstrap(f64(0, 1), mean, **usual(confidence=0.4))
    outer = stratified_bootstrap(f64(0, 1), mean, **usual(confidence=0.6))
    assert inner == pytest.approx((0.5, 0.5), **EXACT)
    assert outer == pytest.approx((0, 1), **EXACT)


def test_the_interval_is_that_of_all_redraws(stratified_bootstrap):
    runs = (0.0, 1.0, 3.0, 10.0, 11.0)
    exact = middle_of([sum(drawn) / 5 for drawn in all_redraws(runs)], 0.9)
    found = stratified_bootstrap(f64(*runs), mean, **usual())
    assert found == pytest.approx(exact, abs=0.21)  # the next mean is 0.2 away


def test_each_task_keeps_its_number_of_runs(stratified_bootstrap):
    tasks = [f64(0, 0, 0), f64(100, 100, 100, 100, 100)]
    assert stratified_bootstrap(tasks, mean, **usual()) == pytest.approx((62.5, 62.5), **EXACT)


def test_the_statistic_is_the_one_that_was_asked_for(stratified_bootstrap):
    runs = f64(0, 1, 5)
    low, high = stratified_bootstrap(runs, lambda drawn: drawn.amax(dim=-1), **usual())
    assert (low, high) == (1, 5)  # all three are 0 once in 27: less than 5 %


def test_the_same_generator_gives_the_same_interval(stratified_bootstrap):
    runs = torch.rand(30, generator=seeded(5), dtype=torch.float64)
    first, second = (stratified_bootstrap(runs, mean, **usual(resamples=50)) for _ in range(2))
    assert first == second


def test_the_difference_is_that_of_all_redraws_of_both(bootstrap_difference):
    one, two = (0.0, 4.0, 5.0), (1.0, 2.0, 9.0, 3.0)
    gaps = [
        sum(x) / 3 - sum(y) / 4 for x, y in itertools.product(all_redraws(one), all_redraws(two))
    ]
    found = bootstrap_difference(f64(*one), f64(*two), mean, **usual())
    assert found == pytest.approx(middle_of(gaps, 0.9), abs=0.17)  # gaps are twelfths


def test_the_difference_of_the_first_to_the_second(bootstrap_difference):
    sure = bootstrap_difference(f64(3, 3), f64(1, 1), mean, **usual(resamples=20))
    assert sure == pytest.approx((2, 2), **EXACT)


def test_equal_seeds_are_no_pairs(bootstrap_difference):
    runs = f64(0, 10, 20, 30)
    low, high = bootstrap_difference(runs, runs, mean, **usual())
    assert low < -5
    assert high > 5


# --- pairs of runs -----------------------------------------------------------------------------


def test_pairs_by_hand(probability_of_improvement):
    # 5 beats both, 1 beats none, 3 beats one: three of six pairs
    assert probability_of_improvement(f64(5, 1, 3), f64(2, 4)) == pytest.approx(0.5, **EXACT)
    assert probability_of_improvement(f64(5, 3), f64(1, 4, 0)) == pytest.approx(5 / 6, **EXACT)


def test_a_setting_is_no_better_than_itself(probability_of_improvement):
    runs = f64(1, 2, 2, 7)
    assert probability_of_improvement(runs, runs) == pytest.approx(0.5, **EXACT)


def test_one_run_that_is_far_better_is_one_run(probability_of_improvement):
    assert probability_of_improvement(f64(0, 0, 0, 1000), f64(1, 1, 1, 1)) == pytest.approx(0.25)


def test_tasks_are_compared_each_with_itself(probability_of_improvement):
    first, second = [f64(1, 2), f64(100, 200)], [f64(3, 4), f64(10, 110)]
    assert probability_of_improvement(first, second) == pytest.approx(0.375, **EXACT)


# --- shares above a threshold ------------------------------------------------------------------


def test_a_profile_by_hand(performance_profile):
    profile = performance_profile(f64(10, 20, 20, 40), f64(0, 10, 20, 30, 40))
    assert profile.tolist() == pytest.approx([1, 0.75, 0.25, 0.25, 0], **EXACT)


def test_tasks_count_alike_in_a_profile(performance_profile):
    tasks = [f64(0, 0, 0, 0), f64(1, 1)]
    assert performance_profile(tasks, f64(0.5)).tolist() == pytest.approx([0.5], **EXACT)


# --- verdicts ----------------------------------------------------------------------------------


def test_intervals_that_lie_apart(apart):
    assert apart((5, 6), (1, 4)) == "above"
    assert apart((1, 4), (5, 6)) == "below"


def test_intervals_that_overlap_or_touch_say_nothing(apart):
    for first, second in [((1, 5), (4, 6)), ((4, 6), (1, 5)), ((1, 9), (3, 4)), ((1, 2), (2, 3))]:
        assert apart(first, second) == "inconclusive"
    assert apart((2, 3), (1, 2)) == "inconclusive"


def test_a_middle_outside_is_not_apart(apart):
    assert apart((3, 9), (1, 5)) == "inconclusive"


def test_each_setting_is_judged_against_the_base(judge_settings):
    scores = {"low": f64(1, 2, 2, 3), "base": f64(8, 9, 9, 10), "near": f64(9, 9, 8, 11)}
    low, base, near = judge_settings(scores, base="base", **usual(confidence=0.95, resamples=500))
    assert [row.verdict for row in (low, base, near)] == ["below", "base", "inconclusive"]
    assert [row.name for row in (low, base, near)] == list(scores)
    assert (low.middle, base.middle, near.middle) == (2, 9, 9)
    assert 1 <= low.interval.low <= 2 <= low.interval.high <= 3


# --- against rliable ---------------------------------------------------------------------------


def golden(name):
    return torch.tensor(GOLDEN[name], dtype=torch.float64)


def test_rliable_gives_the_same_numbers():
    first, second = golden("first"), golden("second")
    middles = [statistics.interquartile_mean(each.flatten()).item() for each in (first, second)]
    assert middles == pytest.approx(GOLDEN["iqm"], **EXACT)
    improvement = statistics.probability_of_improvement(first, second)
    assert improvement == pytest.approx(GOLDEN["improvement"], **EXACT)
    profile = statistics.performance_profile(first, golden("thresholds"))
    assert profile.tolist() == pytest.approx(GOLDEN["profile"], **EXACT)


@pytest.mark.parametrize(
    ("name", "statistic"), [("iqm", statistics.interquartile_mean), ("mean", mean)]
)
def test_rliable_gives_the_same_intervals(name, statistic):
    found = statistics.stratified_bootstrap(
        golden("first"), statistic, resamples=20_000, confidence=0.95, generator=seeded(3)
    )
    # Both are drawn; the quantile of 20,000 draws has a standard error near 0.07.
    assert found == pytest.approx(GOLDEN["intervals"][name], abs=0.4)


@pytest.mark.parity
def test_scipy_gives_the_same_numbers():
    scipy = pytest.importorskip("scipy.stats")
    draw = seeded(4)
    for runs in (1, 3, 4, 7, 16, 33):
        x, y = (torch.randint(9, (count,), generator=draw).double() for count in (runs, runs + 2))
        middle = statistics.interquartile_mean(x).item()
        assert middle == pytest.approx(scipy.trim_mean(x.numpy(), 0.25), **EXACT)
        pairs = scipy.mannwhitneyu(x.numpy(), y.numpy()).statistic / (len(x) * len(y))
        assert statistics.probability_of_improvement(x, y) == pytest.approx(pairs, **EXACT)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.messages
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: statistics.interquartile_mean(f64()), "at least one run"),
        (lambda: statistics.interquartile_mean(f64(1, float("nan"))), "expected finite"),
        (lambda: statistics.performance_profile([], f64(1)), "at least one task"),
        (lambda: statistics.performance_profile([torch.ones(2, 2)], f64(1)), r"\[seeds\]"),
        (lambda: statistics.performance_profile(torch.ones(1, 2, 3), f64(1)), r"\[tasks, seeds\]"),
        (lambda: statistics.probability_of_improvement(torch.ones(2, 3), f64(1)), "same tasks"),
        (lambda: statistics.apart((2, 1), (0, 1)), "lower end first"),
        (
            lambda: statistics.judge_settings({"a": f64(1)}, base="b", **usual()),
            "no setting 'b'; expected one of a",
        ),
        (
            lambda: statistics.stratified_bootstrap(f64(1), mean, **usual(resamples=0)),
            "2000 is usual",
        ),
        (
            lambda: statistics.stratified_bootstrap(f64(1), mean, **usual(confidence=95)),
            "0.95 is usual",
        ),
    ],
)
def test_an_error_says_what_to_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.messages
def test_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="floating-point"):
        statistics.interquartile_mean(torch.arange(4))


def test_the_global_state_is_not_touched():
    before = torch.get_rng_state()
    statistics.stratified_bootstrap(f64(1, 2), mean, **usual(resamples=10))
    assert torch.equal(before, torch.get_rng_state())
