"""What was measured over three seeds: the record is today's, and its verdicts can be refused."""

import copy

import pytest

from benchmarks import rlhf as study
from ppo_lessons.notebook import recorded

RECORD = recorded("rlhf")
SEEDS = ["0", "1", "2"]


def final(name: str, metric: str) -> list[float]:
    return [RECORD["runs"][name][seed]["final"][metric] for seed in SEEDS]


def test_the_record_was_made_with_the_settings_of_today():
    assert RECORD["settings"] == {name: study.settings(name) for name in study.RUNS}
    assert all(list(by_seed) == SEEDS for by_seed in RECORD["runs"].values())


def test_without_a_price_the_judge_is_fooled_after_a_rise():
    assert max(final("beta 0", "success")) <= 0.05
    assert min(final("beta 0", "score")) >= 2
    for seed in SEEDS:
        curve = RECORD["runs"]["beta 0"][seed]["curves"]["success"]
        assert max(curve) >= 0.5
        assert 0 < curve.index(max(curve)) < len(curve) / 2


def test_a_price_cures_it_and_a_tighter_clip_does_not():
    assert min(final("beta 0.3", "success")) >= 0.6
    assert max(final("beta 0.3", "kl_reference")) <= 3
    assert max(final("beta 0, clip 0.05", "success")) <= 0.15
    assert min(final("beta 0.3, no clip", "success")) >= 0.6


def test_a_price_that_adapts_meets_its_target():
    assert all(0.67 < kl < 1.33 for kl in final("adaptive beta", "kl_reference"))
    for seed in SEEDS:
        prices = RECORD["runs"]["adaptive beta"][seed]["curves"]["beta"]
        assert max(prices) > 3 * prices[0]  # it began too low, and rose


def test_under_heavy_reuse_the_clip_decides():
    assert min(final("4x4, clip", "success")) >= 0.35
    assert max(final("4x4, no clip", "success")) <= 0.1


def test_a_price_does_not_stand_in_for_the_clip_under_heavy_reuse():
    assert min(final("4x4, beta 0.3, clip", "success")) >= 0.3
    assert max(final("4x4, beta 0.3, no clip", "success")) <= 0.1
    assert min(final("4x4, beta 0.3, no clip", "kl_reference")) > 10


def test_a_higher_price_keeps_the_policy_nearer():
    names = ["beta 0.1", "beta 0.2", "beta 0.3", "beta 1", "beta 3"]
    for seed in range(3):
        distances = [final(name, "kl_reference")[seed] for name in names]
        assert distances == sorted(distances, reverse=True)


def test_the_table_holds_and_finds_a_run_that_does_not():
    rows = study.acceptance(RECORD["starts"], RECORD["runs"])
    assert len(rows) == 18
    assert all(row["holds"] for row in rows)
    assert [row["claim"] for row in rows] == [row["claim"] for row in RECORD["acceptance"]]
    spoiled = copy.deepcopy(RECORD["runs"])
    spoiled["beta 0.3"]["1"]["final"]["success"] = 0.4
    failed = [
        row["claim"] for row in study.acceptance(RECORD["starts"], spoiled) if not row["holds"]
    ]
    assert failed == [
        "beta 0.3: success ends at 0.60 or more",
        "beta 1: success ends between the reference and beta 0.3",
    ]


def test_a_missing_run_leaves_its_claims_out():
    runs = {name: run for name, run in RECORD["runs"].items() if name != "beta 1"}
    claims = [row["claim"] for row in study.acceptance(RECORD["starts"], runs)]
    assert not [claim for claim in claims if claim.startswith("beta 1")]


def test_lists_on_one_line_hold_the_same(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n  "a": [\n    1.5,\n    "x [y]"\n  ],\n  "b": [\n    2,\n    3\n  ]\n}\n')
    study.flatten_lists(path)
    assert '"b": [2, 3]' in path.read_text()


@pytest.mark.full
def test_a_price_of_nothing_is_hacked_and_one_of_three_tenths_is_not():
    free, held = (study.one_run(name, 0) for name in ("beta 0", "beta 0.3"))
    assert max(free["curves"]["success"]) >= 0.5
    assert free["final"]["success"] <= 0.05
    assert free["final"]["score"] >= 2
    assert held["final"]["success"] >= 0.6
    assert held["final"]["kl_reference"] <= 3
