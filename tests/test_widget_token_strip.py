"""TokenStrip: ratios by hand, what each way of keeping books does, strips of other lessons."""

import math

import pytest
import torch
from browsing import disagreements, random_widgets

from ppo_lessons.tokens.bookkeeping import WAYS
from ppo_lessons.widgets import TokenStrip
from ppo_lessons.widgets.token_strip import recording

OWN = {
    "prompt": ["<bos>", "7", "="],
    "response": ["7", "<eos>"],
    "ways": {
        "right": {
            "positions": [0, 1, 2, 3, 4],
            "mask": [True, True],
            "log_probs_old": [-1.0, -0.5],
            "log_probs": [-0.8, -0.75],
        }
    },
    "rows": {"advantage": [0.5, -0.25], "KL": [0.02, 0.03]},
}


def test_ratios_are_those_of_the_record_by_hand():
    for way, books in recording()["ways"].items():
        shown = TokenStrip(way=way, revealed=True)
        by_hand = [
            math.exp(new) / math.exp(old)
            for new, old, action in zip(
                books["log_probs"], books["log_probs_old"], books["mask"], strict=True
            )
            if action
        ]
        assert shown.ratios == pytest.approx(by_hand, rel=1e-12)
        assert shown.mean_ratio == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-12)
        assert shown.num_off == sum(not 0.999 < ratio < 1.001 for ratio in by_hand)


def test_only_the_first_way_is_right_in_ratios_positions_and_mask():
    right = recording()["ways"]["right"]
    for way, books in recording()["ways"].items():
        shown = TokenStrip(way=way, revealed=True)
        same = all(books[name] == right[name] for name in ("positions", "mask"))
        assert (shown.num_off == 0 and same) == (way == "right"), way


def test_the_first_sampler_is_sharper_and_the_second_leaves_words_out():
    likely = TokenStrip(way="temperature_forgotten")
    assert min(likely.ratios) < 1 < max(likely.ratios)
    cut = TokenStrip(way="few_words_only")
    assert max(cut.ratios) < 1  # each ratio is the mass of the words that were kept


def test_shares_of_a_histogram_add_up_and_their_middle_is_one():
    shares = recording()["shares"]
    assert set(shares) == set(WAYS)
    for way, row in shares.items():
        assert sum(row) == pytest.approx(1, abs=1e-4)
        right = way in ("right", "eos_left_out", "padding_as_actions")
        assert (row[len(row) // 2] == 1) == right, way


def test_the_record_is_what_the_package_computes():
    from benchmarks.tokens import strip
    from ppo_lessons.tokens import LanguageModel, ModelConfig

    # another model: the reference takes long to train; lines and masks do not depend on it
    model = LanguageModel(ModelConfig(), torch.Generator().manual_seed(0))
    ways = {name: way for name, way in WAYS.items() if name != "few_words_only"}
    made = strip(model, ways)
    for name in ("prompt", "response"):
        assert made[name] == recording()[name]
    for name in ways:
        for line in ("positions", "mask"):
            assert made["ways"][name][line] == recording()["ways"][name][line]


def test_another_lesson_shows_its_own_response_and_asks_nothing():
    shown = TokenStrip(strip=OWN)
    assert shown.revealed
    assert shown.ratios == pytest.approx([math.exp(0.2), math.exp(-0.25)])
    assert shown.figure().axes
    assert "2 actions; 2 ratios are not 1" in repr(shown)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"way": "left"}, "way is 'left'; expected one of right, one_place_late"),
        ({"token": 0}, "token is 0; expected a whole number from 1 to 16"),
        ({"strip": {"prompt": []}}, "strip lacks response, ways"),
        ({"strip": OWN | {"ways": {"mine": {}}}}, "strip has the ways"),
        ({"strip": OWN | {"rows": {"KL": [0.1]}}}, "KL has 1 numbers; expected 2"),
        ({"strip": OWN | {"response": []}}, "strip has 0 tokens in its response"),
    ],
)
def test_what_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        TokenStrip(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("now - log_probs_old[t]", "log_probs_old[t] - now"),
        ("ratios.filter((_, t) => mask[t])", "ratios"),
        ("Math.abs(Math.log(ratio))", "Math.log(ratio)"),
        ("Math.min(token, ratios.length) - 1", "Math.min(token, ratios.length - 1)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = random_widgets("token_strip", 40)
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_nothing_is_told_before_the_guess(visit):
    crosses = "nodes => nodes.filter((node) => node.textContent.includes('✕')).length"
    with visit(TokenStrip()) as seen:
        assert "say what the program did" in seen.status()
        assert seen.page.eval_on_selector_all(".ppo-panels text", crosses) == 0
        seen.page.get_by_role("combobox").select_option("dropout_left_on")
        seen.button("Reveal").click()
        said = "You said: dropout left on. It is: padding counted in positions."
        assert seen.page.get_by_text(said).is_visible()
        assert seen.page.eval_on_selector_all(".ppo-panels text", crosses) > 10


def test_a_program_and_a_token_are_chosen(visit):
    with visit(TokenStrip(), state="right") as seen:
        seen.button("EOS left out of the mask").click()
        seen.page.get_by_role("slider", name="token").fill("5")
        assert seen.status() == repr(TokenStrip.at("right", way="eos_left_out", token=5))


def test_rows_of_another_lesson_are_drawn(visit):
    with visit(TokenStrip(strip=OWN)) as seen:
        texts = seen.page.locator(".ppo-panels").inner_text() or seen.page.eval_on_selector_all(
            ".ppo-panels text", "nodes => nodes.map((node) => node.textContent).join(' ')"
        )
        for words in ("advantage", "−0.25", "KL", "0.03"):
            assert words in texts
        assert seen.page.get_by_role("combobox").count() == 0
        assert seen.status() == repr(TokenStrip(strip=OWN))
