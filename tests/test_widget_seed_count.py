"""SeedCount: intervals against the package's, numbers by hand, what other seeds change."""

import pytest
import torch
from browsing import disagreements, random_widgets

from ppo_lessons.ablations.statistics import interquartile_mean, stratified_bootstrap
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import SeedCount
from ppo_lessons.widgets.seed_count import DRAWS, NAMES, NUM_SEEDS, SEEDS, recording, redrawn


def by_hand(runs):
    ordered, cut = sorted(runs), len(runs) // 4
    kept = ordered[cut : len(runs) - cut]
    return sum(kept) / len(kept)


# --- what was run ----------------------------------------------------------------------------


def test_every_setting_was_run_with_64_seeds():
    found = recorded("seed_count")
    assert tuple(found["scores"]) == NAMES
    assert all(len(runs) == SEEDS for runs in found["scores"].values())
    assert all(0 <= score <= 500 for runs in found["scores"].values() for score in runs)
    assert found["command"].startswith("python -m benchmarks.seed_count")
    assert found["expectation"]


def test_each_draw_holds_every_seed_once():
    orders = recording()["orders"]
    assert all(sorted(order) == list(range(SEEDS)) for order in orders)
    assert len({tuple(order) for order in orders}) == len(DRAWS)


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["three", "sixteen", "near_all"])
def test_the_grid_holds_the_packages_intervals(state):
    shown = SeedCount.at(state)
    for runs, interval in (
        (shown.first_scores, shown.first_interval),
        (shown.second_scores, shown.second_interval),
    ):
        runs = torch.tensor(runs, dtype=torch.float64)
        found = stratified_bootstrap(runs, interquartile_mean, **redrawn(shown.draw))
        assert interval == pytest.approx(found, abs=1e-3)


def test_middles_and_pairs_by_hand():
    for shown in random_widgets("seed_count", 10):
        first, second = shown.first_scores, shown.second_scores
        assert len(first) == len(second) == shown.num_seeds
        assert shown.first_iqm == pytest.approx(by_hand(first))
        assert shown.second_iqm == pytest.approx(by_hand(second))
        won = sum((x > y) + (x == y) / 2 for x in first for y in second)
        assert shown.improvement == pytest.approx(won / shown.num_seeds**2)


def test_the_verdict_is_what_the_ends_say():
    for shown in random_widgets("seed_count", 20):
        (low, high), (other_low, other_high) = shown.first_interval, shown.second_interval
        said = "above" if low > other_high else "below" if high < other_low else "inconclusive"
        assert shown.verdict == said


def test_the_tally_counts_the_draws():
    for shown in random_widgets("seed_count", 5):
        state = shown.state() | {"guess": None}
        said = [SeedCount(**state | {"draw": draw}).verdict for draw in DRAWS]
        assert shown.tally == [said.count(each) for each in ("above", "below", "inconclusive")]
        assert sum(shown.tally) == len(DRAWS)


def test_a_setting_against_itself_takes_other_seeds_up_to_32():
    for num_seeds in NUM_SEEDS:
        shown = SeedCount(first="no clip", second="no clip", num_seeds=num_seeds)
        order = recording()["orders"][0]
        shared = set(order[:num_seeds]) & set(order[::-1][:num_seeds])
        assert bool(shared) == (num_seeds > 32)
        assert shown.first_scores != shown.second_scores or num_seeds == SEEDS


def test_with_more_seeds_intervals_are_narrower_on_the_whole():
    for name in NAMES:
        few, many = (
            sum(
                high - low
                for draw in DRAWS
                for low, high in [SeedCount(first=name, draw=draw, num_seeds=n).first_interval]
            )
            for n in (8, 64)
        )
        assert many < 0.7 * few


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"num_seeds": 5}, "num_seeds is 5; expected one of 3, 4"),
        ({"first": "clip 9"}, "first is 'clip 9'; expected one of clip 0.2"),
        ({"draw": 9}, "draw is 9; expected one of 1, 2"),
        ({"guess": "better"}, "guess is 'better'; expected one of above, below, inconclusive"),
    ],
)
def test_what_was_not_run_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        SeedCount(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.floor(runs.length / 4)", "Math.ceil(runs.length / 4)"),
        ("(a, b) => a - b", "(a, b) => b - b"),
        ("x === y ? 0.5 : 0", "0"),
        ("if (low > otherHigh)", "if (low > otherLow)"),
        ("side ? [...order].reverse() : order", "order"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = random_widgets("seed_count", 30)
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_other_seeds_and_another_setting_are_chosen(visit):
    with visit(SeedCount(), state="three") as seen:
        sliders = seen.page.get_by_role("slider", name="other seeds")
        sliders.focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(SeedCount.at("three", draw=2))
        seen.page.get_by_role("group", name="second").get_by_role("button", name="λ = 1").click()
        assert seen.status() == repr(SeedCount.at("three", draw=2, second="λ = 1"))


def test_nothing_is_told_before_the_guess(visit):
    with visit(SeedCount()) as seen:
        assert "Say what their intervals" in seen.status()
        seen.page.get_by_role("combobox").select_option("inconclusive")
        seen.button("Reveal").click()
        assert seen.page.get_by_text("You said: they cannot be told apart.").is_visible()
        assert seen.status() == repr(SeedCount(revealed=True))
