"""RatioFromLogits: ratios by hand and from torch's distributions, and what one logit moves."""

import math

import pytest
import torch
from browsing import disagreements, random_widgets
from torch.distributions import Categorical, kl_divergence

from ppo_lessons.importance import effective_sample_size, importance_ratios
from ppo_lessons.widgets import RatioFromLogits


def distributions(shown):
    both = (shown.logits, shown.logits_old)
    return [Categorical(logits=torch.tensor(each, dtype=torch.float64)) for each in both]


def test_probabilities_ratios_and_kl_are_those_of_torch_s_distributions():
    for shown in random_widgets("ratio_from_logits", 30):
        new, old = distributions(shown)
        assert shown.probabilities == pytest.approx(new.probs.tolist(), rel=1e-12)
        assert shown.probabilities_old == pytest.approx(old.probs.tolist(), rel=1e-12)
        assert shown.ratios == pytest.approx((new.probs / old.probs).tolist(), rel=1e-12)
        assert shown.kl == pytest.approx(kl_divergence(old, new).item(), rel=1e-9, abs=1e-15)
        assert shown.mean_ratio == pytest.approx(1, rel=1e-12)


def test_one_logit_moves_every_ratio():
    shown = RatioFromLogits.at("one_logit")
    total_old = math.exp(1) + math.exp(0.5) + 1 + math.exp(-1)
    total = math.exp(1) + math.exp(1.5) + 1 + math.exp(-1)
    others = total_old / total  # the same factor for all that did not move
    assert shown.ratios == pytest.approx([others, math.e * others, others, others], rel=1e-12)
    assert shown.moved == shown.answer == 4
    assert f"{others:.2f}" == "0.67"


def test_a_shift_of_all_logits_moves_nothing():
    shown = RatioFromLogits.at("shift")
    assert shown.ratios == pytest.approx([1] * 4, abs=1e-12)
    assert shown.moved == 0
    assert shown.kl == pytest.approx(0, abs=1e-12)
    assert shown.effective_share == pytest.approx(1)


def test_the_share_is_the_effective_sample_size_of_a_batch_drawn_in_exact_shares():
    counts = torch.tensor([5, 3, 1, 1])
    old = (counts / counts.sum()).to(torch.float64)
    shown = RatioFromLogits(logits_old=old.log(), logits=[0.0, 0.0, 0.0, 0.0])
    actions = torch.repeat_interleave(torch.arange(4), counts)
    weights = torch.tensor(shown.ratios, dtype=torch.float64)[actions]
    assert shown.effective_share == pytest.approx(effective_sample_size(weights).item() / 10)
    assert (
        effective_sample_size(torch.ones(10)).item() == 10
    )  # the control: equal weights lose none


def test_a_rare_action_that_becomes_likely_leaves_few_samples():
    shown = RatioFromLogits.at("rare")
    rare = math.exp(-3) / (3 * math.e + math.exp(-3))
    assert shown.ratios[3] == pytest.approx(0.25 / rare)
    assert shown.effective_share == pytest.approx(
        1 / (3 * 0.25**2 / ((1 - rare) / 3) + 0.25**2 / rare)
    )
    assert shown.effective_share < 0.1


def test_the_small_step_stays_within_a_fifth():
    assert all(0.8 < ratio < 1.2 for ratio in RatioFromLogits.at("small_step").ratios)


def test_the_reader_recomputes_the_ratio_in_single_precision():
    shown = RatioFromLogits()
    new, old = (torch.tensor(each).log_softmax(-1) for each in (shown.logits, shown.logits_old))
    ratios = importance_ratios(new, old)
    assert ratios.tolist() == pytest.approx(shown.ratios, rel=1e-5)
    assert (1 / (old.exp() * ratios**2).sum()).item() == pytest.approx(shown.effective_share)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"logits": [0.0] * 3}, "logits holds 3 numbers; expected 4"),
        ({"logits_old": [9.0, 0, 0, 0]}, "logits_old holds 9.0; expected numbers from -3.0 to 3.0"),
        ({"chosen": 4}, "chosen is 4; expected a whole number from 0 to 3"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        RatioFromLogits(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.exp(each - log_probs_old[a])", "Math.exp(logits[a] - logits_old[a])"),
        ("log_probs_old[a] - log_probs[a]", "log_probs[a] - log_probs_old[a]"),
        ("1 / mean((a) => ratios[a] ** 2)", "mean((a) => ratios[a]) ** 2"),
        ("Math.abs(ratio - 1) > UNCHANGED", "ratio > 1"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    script = RatioFromLogits._esm
    assert right in script
    shown = [RatioFromLogits.at("one_logit")]
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=script.replace(right, wrong))


def ratio_labels(seen):
    texts = seen.page.locator(".ppo-panels svg").nth(1).locator(".ppo-axes ~ g text")
    return texts.all_text_contents()


def test_a_dragged_bar_moves_all_four_ratios(visit):
    from benchmarks.widgets import move

    with visit(RatioFromLogits(), state="shift") as seen:
        assert ratio_labels(seen) == ["1.00"] * 4
        drawn = move(seen.page, ".ppo-new-logits .ppo-handle", [0.9, 0.75], along="y", index=2)
        assert drawn[-1][1] == 1.5  # three quarters of the way from −3 to 3
        shown = RatioFromLogits.at("shift", logits=[2.0, 1.5, 1.5, 0.0])
        assert seen.status() == repr(shown)
        assert ratio_labels(seen) == [f"{ratio:.2f}" for ratio in shown.ratios]
        assert "1.00" not in ratio_labels(seen)


def test_old_bars_are_dragged_apart_from_new_ones(visit):
    from benchmarks.widgets import move

    with visit(RatioFromLogits(), state="one_logit") as seen:
        move(seen.page, ".ppo-old-logits .ppo-handle", [0.75], along="y", index=1)
        assert seen.status() == repr(RatioFromLogits(logits_old=[1.0, 1.5, 0.0, -1.0]))
        assert seen.page.get_by_text("0 of 4 ratios differ from 1.", exact=True).is_visible()


def test_the_chosen_action_is_the_one_of_the_sentence(visit):
    with visit(RatioFromLogits(), state="one_logit") as seen:
        seen.button("d").click()
        assert seen.status() == repr(RatioFromLogits(chosen=3))
        assert seen.button("d").get_attribute("aria-pressed") == "true"


def test_the_new_probabilities_are_not_drawn_before_the_guess(visit):
    with visit(RatioFromLogits()) as seen:
        assert ratio_labels(seen) == ["?"] * 4
        bars = seen.page.locator(".ppo-panels svg").nth(1).locator(".ppo-bar-new")
        assert {bar.get_attribute("height") for bar in bars.all()} == {"0.00"}
        seen.page.get_by_role("spinbutton").fill("1")
        seen.page.keyboard.press("Enter")
        assert seen.page.get_by_text("You said 1; 4 of 4 differ from 1.").is_visible()
