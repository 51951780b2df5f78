"""BatchLedger: counts by hand, the recording against a new squeeze, and what the hand scrubs."""

import json
from collections import Counter

import pytest
from browsing import disagreements

from benchmarks.squeeze import squeeze
from ppo_lessons.training_loop.parts import shuffled_minibatches
from ppo_lessons.widgets import BatchLedger
from ppo_lessons.widgets.batch_ledger import MOST_EPOCHS, squeezes

KEYS = list(squeezes()["squeezes"])


# --- the recording ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_each_epoch_deals_every_sample_once_into_minibatches_of_one_size(key):
    num_envs, num_steps, num_minibatches = map(int, key.split(","))
    recorded = squeezes()["squeezes"][key]
    assert len(recorded["dealt"]) == MOST_EPOCHS
    assert len(recorded["ratios"]) == MOST_EPOCHS * num_minibatches + 1
    for epoch in recorded["dealt"]:
        counts = Counter(epoch)
        assert set(counts) == {str(place) for place in range(num_minibatches)}
        assert set(counts.values()) == {num_envs * num_steps // num_minibatches}


@pytest.mark.parametrize("key", KEYS)
def test_ratios_begin_at_one_are_ordered_and_leave_it_after_one_step(key):
    ratios = squeezes()["squeezes"][key]["ratios"]
    assert ratios[0] == [1, 1, 1, 1]
    assert all(row == sorted(row) for row in ratios)
    assert ratios[1][0] < 1 < ratios[1][3]


def test_epochs_deal_anew():
    dealt = squeezes()["squeezes"]["8,16,4"]["dealt"]
    assert len(set(dealt)) == MOST_EPOCHS


@pytest.mark.parametrize("key", ["4,8,2", "8,16,4"])
def test_a_new_squeeze_gives_what_was_recorded(key):
    recorded, again = squeezes()["squeezes"][key], squeeze(*map(int, key.split(",")))
    assert again["dealt"] == recorded["dealt"]
    # other processors round differently, and 32 steps of Adam make more of it
    pairs = zip(again["ratios"], recorded["ratios"], strict=True)
    assert max(abs(a - b) for row in pairs for a, b in zip(*row, strict=True)) < 0.05
    assert again["ratios"][1] == pytest.approx(recorded["ratios"][1], abs=1e-3)


def test_the_recording_is_small():
    assert len(json.dumps(squeezes())) < 200_000


# --- counts ----------------------------------------------------------------------------------


def test_the_first_picture_was_counted_by_hand():
    shown = BatchLedger()
    assert (shown.samples, shown.minibatch_size, shown.updates) == (128, 32, 16)
    # six steps: one whole epoch of four, and two minibatches of 32 in the second
    assert Counter(shown.visits) == {2: 64, 1: 64}
    assert sum(shown.visits) == 6 * 32
    assert sum(shown.latest) == 32


@pytest.mark.parametrize("num_minibatches", [1, 2, 4, 8])
@pytest.mark.parametrize("num_epochs", [1, 3, 8])
def test_in_the_end_every_sample_was_used_once_an_epoch(num_epochs, num_minibatches):
    shown = BatchLedger(num_epochs=num_epochs, num_minibatches=num_minibatches, step=64)
    assert shown.made == shown.updates == num_epochs * num_minibatches
    assert shown.visits == [num_epochs] * shown.samples
    shown.step = 0
    assert shown.visits == [0] * shown.samples
    assert not any(shown.latest)


def test_a_step_adds_one_to_those_of_its_minibatch():
    shown = BatchLedger(num_minibatches=8, num_epochs=2, step=0)
    before = shown.visits
    for step in range(1, shown.updates + 1):
        shown.step = step
        added = [new - old for new, old in zip(shown.visits, before, strict=True)]
        assert added == [int(new) for new in shown.latest]
        before = shown.visits


def test_sizes_are_those_of_the_function_that_deals():
    import torch

    dealt = list(shuffled_minibatches(128, 4, generator=torch.Generator().manual_seed(0)))
    shown = BatchLedger()
    assert len(dealt) == shown.num_minibatches
    assert {len(each) for each in dealt} == {shown.minibatch_size}


def test_the_sentence_of_the_default():
    assert repr(BatchLedger()).startswith(
        "8 × 16 = 128 samples; 4 epochs of 4 × 32 make 16 optimiser steps. After 6 of them "
        "64 samples have been used 2×, 64 1×; the ratios lie between 0."
    )
    assert "each sample has been used 4×" in repr(BatchLedger.at("all"))


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"num_envs": 5}, "num_envs is 5; expected one of 4, 8"),
        ({"num_epochs": 9}, "num_epochs is 9; expected a whole number from 1 to 8"),
        ({"num_minibatches": 3}, "num_minibatches is 3; expected one of 1, 2, 4, 8"),
    ],
)
def test_a_state_that_was_not_recorded_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        BatchLedger(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("place < begun ? 1 : 0", "place <= begun ? 1 : 0"),
        (
            "num_epochs * num_minibatches;\n  const made",
            "num_epochs + num_minibatches;\n  const made",
        ),
        ("place === (made - 1) % num_minibatches", "place === made % num_minibatches"),
        ("squeeze.ratios[made]", "squeeze.ratios[step]"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [BatchLedger.at("middle"), BatchLedger.at("all", num_epochs=2)]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def digits(seen):
    texts = seen.page.locator(".ppo-panels svg").first.locator("g:not(.ppo-axes) text")
    return [int(text) for text in texts.all_text_contents() if text]


def test_every_sample_carries_its_count(visit):
    with visit(BatchLedger(), state="middle") as seen:
        assert digits(seen) == BatchLedger().visits
        slider = seen.page.get_by_role("slider", name="optimiser steps done")
        slider.focus()
        seen.page.keyboard.press("ArrowRight")
        assert digits(seen) == BatchLedger(step=7).visits
        seen.page.keyboard.press("End")
        assert digits(seen) == [4] * 128
        assert seen.status() == repr(BatchLedger.at("all"))


def test_nothing_is_counted_before_the_guess(visit):
    with visit(BatchLedger()) as seen:
        assert digits(seen) == []
        assert seen.page.get_by_role("slider", name="optimiser steps done").is_hidden()
        seen.page.get_by_role("spinbutton").fill("512")
        seen.button("Reveal").click()
        told = "You said 512; it makes K·M = 16, and each sample is used 4 times."
        assert seen.page.get_by_text(told).is_visible()
        assert digits(seen) == BatchLedger().visits


def test_the_batch_is_resized(visit):
    with visit(BatchLedger(), state="all") as seen:
        seen.page.get_by_role("group", name="environments N").get_by_role(
            "button", name="4"
        ).click()
        assert len(digits(seen)) == 64
        seen.page.get_by_role("slider", name="epochs K").fill("1")
        assert seen.status() == repr(BatchLedger.at("all", num_envs=4, num_epochs=1))


def test_play_uses_the_batch_up(visit):
    with visit(BatchLedger(), state="untouched", reduced_motion="reduce") as seen:
        seen.button("Play").click()
        assert seen.status() == repr(BatchLedger.at("all"))
