"""PartSwap: advantages and pushes by hand, the methods' own parts, and what a hand does."""

import pytest
import torch
from browsing import disagreements

from ppo_lessons.variants import board
from ppo_lessons.widgets import PartSwap
from ppo_lessons.widgets.part_swap import CLIPS, LENGTHS, MAX_LENGTH, methods, token_slopes

ADVANTAGES = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)


def test_grpo_by_hand():
    shown = PartSwap.at("grpo")
    spread = (4 * 0.25 / 3) ** 0.5  # of 1, 1, 0, 0
    assert shown.advantages == pytest.approx([x / (spread + 1e-4) for x in (0.5, 0.5, -0.5, -0.5)])
    assert shown.weights == pytest.approx([1 / (4 * length) for length in (3, 30, 3, 30)])
    assert shown.factor == pytest.approx(10)  # 30 tokens share what 3 tokens share
    assert repr(shown) == (
        "Parts of GRPO. At ratio 1.0 a token of answer 3 gets −0.0722, one of answer 4 −0.0072: "
        "10.00 times as hard."
    )


@pytest.mark.parametrize(
    ("state", "factor"),
    [("grpo", 10), ("dr_grpo", 1), ("rloo", 1), ("cispo", 1), ("no_baseline", None)],
)
def test_how_much_harder_the_short_answer_is_pushed(state, factor):
    assert PartSwap.at(state).factor == (None if factor is None else pytest.approx(factor))


def test_the_question_was_worked_by_hand():
    shown = PartSwap()  # scores 1, 1, 0.5, 0, mean 0.625: −0.125 over 3 tokens, −0.625 over 30
    assert shown.answer == pytest.approx((0.125 / 3) / (0.625 / 30))
    assert shown.answer == pytest.approx(2)


def test_without_a_baseline_a_wrong_answer_is_not_pushed_at_all():
    shown = PartSwap.at("no_baseline")
    assert shown.pushes == pytest.approx([1 / 66, 1 / 66, 0, 0])
    assert "at least one of them is not pushed" in repr(shown)


def test_rloo_compares_with_the_others():
    shown = PartSwap(baseline="others", spread="kept", scores=[1.0, 0.4, 0.1, 0.0])
    others = [(0.4 + 0.1) / 3, (1 + 0.1) / 3, (1 + 0.4) / 3, 1.5 / 3]
    assert shown.advantages == pytest.approx(
        [score - mean for score, mean in zip((1.0, 0.4, 0.1, 0.0), others, strict=True)]
    )


def test_one_right_answer_of_four_counts_more_where_the_spread_divides():
    rare = {"scores": [1.0, 0.0, 0.0, 0.0]}
    divided, kept = PartSwap(**rare), PartSwap(**rare, spread="kept")
    assert divided.advantages[0] / PartSwap.at("grpo").advantages[0] == pytest.approx(
        1.7321, abs=1e-3
    )
    assert kept.advantages[0] / PartSwap.at("dr_grpo").advantages[0] == pytest.approx(1.5)


def test_equal_scores_push_nobody():
    shown = PartSwap.at("equal")
    assert shown.pushes == [0, 0, 0, 0]
    assert shown.factor is None


def test_constant_weights_know_no_length():
    assert PartSwap(mode="constant").weights == [1 / (4 * MAX_LENGTH)] * 4
    assert PartSwap(mode="token_mean").weights == [1 / sum(LENGTHS)] * 4


def test_the_names_are_those_of_the_board():
    rows = {row.name: row for row in board()}
    left_out = {"PPO", "REINFORCE++", "REINFORCE++ baseline", "DPO"}  # no baseline of one group
    assert set(methods().values()) == set(rows) - left_out
    assert methods()["mean/divided/sequence_mean/loss/token"] == "GRPO"
    assert methods()["mean/divided/sequence_mean/none/answer"] == "GSPO"
    assert methods()["mean/divided/token_mean/none/wide"] == "DAPO"
    assert methods()["others/kept/sequence_sum/reward/none"] == "RLOO"
    assert rows["RLOO"].baseline == "mean of the others"
    shown = PartSwap(baseline="others", spread="divided")
    assert shown.method == ""
    assert repr(shown).startswith("Parts that no method of this lesson has together.")


@pytest.mark.parametrize(
    ("clip", "good", "bad"),
    [  # by hand, over ratios 0.7, 0.8, 1, 1.2, 1.3 and 2
        ("token", [0.7, 0.8, 1, 1.2, 0, 0], [0, -0.8, -1, -1.2, -1.3, -2]),
        ("wide", [0.7, 0.8, 1, 1.2, 0, 0], [0, -0.8, -1, -1.2, -1.3, -2]),
        ("answer", [0.7, 0.8, 1, 1.2, 0, 0], [0, -0.8, -1, -1.2, -1.3, -2]),
        ("limited", [0.7, 0.8, 1, 1.2, 1.2, 1.2], [-0.7, -0.8, -1, -1.2, -1.2, -1.2]),
        ("none", [1] * 6, [-1] * 6),
    ],
)
def test_where_each_clip_ends_the_push(clip, good, bad):
    found = [token_slopes(clip, ratio, ADVANTAGES).tolist() for ratio in (0.7, 0.8, 1, 1.2, 1.3, 2)]
    assert [numbers[0] for numbers in found] == pytest.approx(good)
    assert [numbers[1] for numbers in found] == pytest.approx(bad)
    assert [numbers[2] for numbers in found] == [0] * 6


def test_the_wide_edge_lies_between_two_places_of_the_slider():
    assert token_slopes("wide", 1.27, ADVANTAGES)[0] == pytest.approx(1.27)
    assert token_slopes("token", 1.27, ADVANTAGES)[0] == 0


def test_past_the_edge_only_the_wrong_answers_are_pushed():
    shown = PartSwap.at("past_the_edge")
    assert shown.pushes[:2] == [0, 0]
    assert shown.pushes[2] == pytest.approx(1.3 * PartSwap.at("grpo").pushes[2])


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"ratio": 1.25}, "ratio is 1.25; expected one of 0.5, 0.6"),
        ({"kl": "k3"}, "kl is 'k3'; expected one of reward, loss, none"),
        ({"mode": "mean"}, "mode is 'mean'; expected one of token_mean, sequence_mean"),
        ({"scores": [1.0]}, "scores holds 1 numbers; expected 4"),
        ({"scores": [2.0] * 4}, "scores holds 2.0; expected numbers from 0"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        PartSwap(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("((score - mean) * count) / (count - 1)", "score - mean"),
        ("squares / (count - 1)", "squares / count"),
        ("1 / length / count", "1 / length"),
        ("1 / (count * longest)", "1 / longest"),
        ("ratio <= edge", "ratio < 2"),
        ("ratio >= 1 - 0.2", "ratio > 0"),
        ("Math.min(ratio, edge) * advantage", "ratio * advantage"),
        ("inside ? ratio * advantage", "inside ? advantage"),
        ('clip === "none") return', 'clip === "nothing") return'),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    script = PartSwap._esm
    assert right in script
    shown = [PartSwap.at(name) for name in ("grpo", "dr_grpo", "rloo", "cispo")]
    shown += [PartSwap.at("grpo", clip=clip, ratio=ratio) for clip in CLIPS for ratio in (0.7, 1.5)]
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=script.replace(right, wrong))


def test_a_part_is_swapped_with_a_button_and_the_name_follows(visit):
    with visit(PartSwap(), state="grpo") as seen:
        seen.button("stays").click()
        seen.button("1 / (answers·40)").click()
        assert seen.status().startswith("Parts that no method of this lesson has together.")
        seen.page.get_by_role("group", name="KL").get_by_role("button", name="none").click()
        assert seen.status() == repr(PartSwap.at("dr_grpo"))
        seen.button("mean of others").click()
        assert seen.status().startswith("Parts that no method of this lesson has together.")


def test_the_loss_is_written_from_the_choices(visit):
    with visit(PartSwap(), state="grpo") as seen:
        shown = seen.page.get_by_text("loss = − Σ weight · ")
        clipped = "loss = − Σ weight · min(ρ·Â, clip(ρ, 0.8, 1.2)·Â)"
        assert shown.text_content() == (
            f"{clipped} + β·k3, Â_i = (r_i − r̄) / (s + 10⁻⁴), r_i = score, "
            "weight = 1 / (4 · length)"
        )
        seen.button("mean of others").click()
        seen.button("stays").click()
        seen.button("1 / tokens").click()
        seen.button("in reward").click()
        assert shown.text_content() == (
            f"{clipped}, Â_i = r_i − r̄ of the others, r_i = score − β·KL, weight = 1 / 66"
        )
        for group in ("baseline", "KL", "ratio"):
            row = seen.page.get_by_role("group", name=group)
            row.get_by_role("button", name="none").click()
        seen.button("divides").click()
        assert shown.text_content() == (
            "loss = − Σ weight · Â·log π, Â_i = r_i / (s + 10⁻⁴), r_i = score, weight = 1 / 66"
        )


def test_the_ratio_is_moved_past_the_edge(visit):
    with visit(PartSwap(), state="grpo") as seen:
        seen.page.get_by_role("slider", name="of every token").fill("8")  # 1.3
        assert seen.status() == repr(PartSwap.at("past_the_edge"))


def test_an_advantage_beyond_the_panel_is_told_as_a_number(visit):
    shown = PartSwap.at("equal", baseline="none")
    assert shown.advantages == pytest.approx([1e4] * 4)
    with visit(shown) as seen:
        assert seen.page.locator("main svg").first.get_by_text("10000.00").count() == 4


def test_a_score_is_dragged(visit):
    from benchmarks.widgets import move

    with visit(PartSwap(), state="grpo") as seen:
        drawn = move(seen.page, ".ppo-handle", [0.55, 0.625], along="y", index=2)
        assert drawn[-1][1] == 0.5  # five eighths of the way from −2 to 2
        assert seen.status() == repr(PartSwap(scores=[1.0, 1.0, 0.5, 0.0], revealed=True))


def test_pushes_are_not_drawn_before_the_guess(visit):
    heights = "nodes => nodes.map((node) => Number(node.getAttribute('height')))"
    bars = ".ppo-panels svg:nth-child(2) rect"
    with visit(PartSwap()) as seen:
        assert set(seen.page.eval_on_selector_all(bars, heights)) == {0}
        assert "2.00" not in seen.page.locator("main").inner_text()
        seen.page.get_by_role("spinbutton").fill("10")
        seen.page.keyboard.press("Enter")
        assert max(seen.page.eval_on_selector_all(bars, heights)) > 50
        assert seen.page.get_by_text("You said 10. Answer: 2.00 times.").is_visible()


def test_where_nobody_is_pushed_the_answer_says_so(visit):
    with visit(PartSwap.at("no_baseline"), state="no_baseline") as seen:
        text = seen.page.locator(".ppo-guess").last.inner_text()
        assert "one of the two is not pushed at all" in text
