"""ClipRegion: its numbers by hand, its ways out of the box, and what a hand does to it.

python tests/test_widget_clip_region.py      writes tests/fixtures/clip_region.json
"""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppo_lessons.clip import clip_fractions, clipped_surrogate
from ppo_lessons.figures.clip_region import TITLES
from ppo_lessons.widgets import ClipRegion
from ppo_lessons.widgets.clip_region import ADVANTAGES, RATIOS, pushes, ways_out
from ppo_lessons.widgets.messages import WORDS

FIXTURE = Path(__file__).resolve().parent / "fixtures" / "clip_region.json"
BETTER = ".ppo-better .ppo-handle"

# --- numbers ---------------------------------------------------------------------

# Worked by hand, ε = 0.2: ratio, advantage, objective, whether the gradient is alive.
BY_HAND = [
    (0.5, 1.0, 0.5, True),
    (1.0, 1.0, 1.0, True),
    (1.2, 1.0, 1.2, True),  # the edge itself still pushes
    (1.5, 1.0, 1.2, False),
    (0.5, -1.0, -0.8, False),
    (0.8, -1.0, -0.8, True),
    (1.0, -2.0, -2.0, True),
    (1.5, -1.0, -1.5, True),
]


@pytest.mark.parametrize(("ratio", "advantage", "objective", "alive"), BY_HAND)
def test_eight_points_worked_by_hand(ratio, advantage, objective, alive):
    shown = ClipRegion(ratios=[ratio], advantages=[advantage])
    assert shown.mean_objective == pytest.approx(objective, rel=1e-12)
    assert shown.pushing == [alive]


def test_the_two_fractions_of_the_first_picture_were_counted_by_hand():
    above = [(ratio, sign) for ratio, sign in zip(RATIOS, ADVANTAGES, strict=True) if ratio > 1.2]
    below = [(ratio, sign) for ratio, sign in zip(RATIOS, ADVANTAGES, strict=True) if ratio < 0.8]
    silent = [sign for _, sign in above if sign > 0] + [sign for _, sign in below if sign < 0]
    shown = ClipRegion()
    assert shown.fraction_outside == pytest.approx((len(above) + len(below)) / 24)
    assert shown.fraction_zero_gradient == pytest.approx(len(silent) / 24)
    assert (len(above), len(below), len(silent)) == (7, 6, 4)
    assert "4 of these no longer push. 20 of 24 still push, 9 of them back." in repr(shown)


@given(st.integers(0, 10**6), st.integers(5, 50))
def test_what_autograd_says_is_what_the_lesson_counts(seed, hundredths):
    epsilon = hundredths / 100
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(0, 219, (16,), generator=generator)
    shown = ClipRegion(
        ratios=[round(0.005 + step / 100, 3) for step in steps.tolist()],
        advantages=(torch.randn(16, generator=generator) + 0.001).tolist(),
        clip_epsilon=epsilon,
    )
    assert shown.fraction_zero_gradient == pytest.approx(1 - sum(shown.pushing) / 16)
    assert shown.fraction_zero_gradient <= shown.fraction_outside


def test_the_reader_recomputes_the_numbers_in_single_precision():
    shown = ClipRegion()
    ratios, advantages = torch.tensor(shown.ratios), torch.tensor(shown.advantages)
    objective = clipped_surrogate(ratios, advantages, clip_epsilon=shown.clip_epsilon).mean()
    both = clip_fractions(
        ratios.log(), torch.zeros(24), advantages, clip_epsilon=shown.clip_epsilon
    )
    assert objective.item() == pytest.approx(shown.mean_objective, rel=1e-5)
    fractions = shown.fraction_outside, shown.fraction_zero_gradient
    assert [each.item() for each in both] == pytest.approx(fractions)


def test_samples_are_told_apart_from_the_back_of_a_hall():
    ordered = sorted(RATIOS)
    assert min(b - a for a, b in pairwise(ordered)) > 0.0199
    assert min(abs(ratio - edge) for ratio in RATIOS for edge in (0.8, 1.2)) > 0.0299


def test_picture_and_page_have_the_same_headings():
    words = WORDS["en"]["clip_region"]
    assert [title.lower() for title in TITLES.values()] == [words["better"], words["worse"]]


def test_no_sample_lies_where_rounding_decides():
    edges = [1 + sign * hundredths / 100 for hundredths in range(5, 51) for sign in (1, -1)]
    assert min(abs(ratio - edge) for ratio in RATIOS for edge in edges) > 0.004


# --- two ways out, one blind spot ------------------------------------------------


def test_one_big_step_lands_at_2_77():
    path = ways_out()["one_step"]
    # The ratio's slope is p(1 − p)/p_old = 0.8 for one logit and −0.8 for the other.
    difference = math.log(0.2 / 0.8) + 1.6
    landed = 1 / (1 + math.exp(-difference)) / 0.2
    assert path["ratios"] == pytest.approx([1.0, landed], rel=1e-12)
    assert f"{landed:.2f}" == "2.77"
    assert path["pushes"] == [True, False]


def test_momentum_crosses_the_edge_at_step_4_and_goes_on_to_1_68():
    path = ways_out()["momentum"]
    expected = adam_by_hand(len(path["ratios"]) - 1)
    assert path["ratios"] == pytest.approx(expected, rel=1e-9)
    crossed = next(step for step, ratio in enumerate(path["ratios"]) if ratio > 1.2)
    assert crossed == 4
    assert all(path["pushes"][:4])
    assert not any(path["pushes"][4:])
    assert f"{path['ratios'][-1]:.2f}" == "1.68"


def adam_by_hand(steps):
    """Adam on the difference of two logits, which move by the same amount in opposite ways."""
    half, first, second, ratios = math.log(0.2 / 0.8) / 2, 0.0, 0.0, []
    for step in range(steps + 1):
        probability = 1 / (1 + math.exp(-2 * half))
        ratios.append(probability / 0.2)
        slope = probability * (1 - probability) / 0.2 if ratios[-1] <= 1.2 else 0.0
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, spread = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        half += 0.03 * mean / (math.sqrt(spread) + 1e-8)
    return ratios


def test_the_clip_sees_nothing_of_an_action_that_was_not_drawn():
    path = ways_out()["unsampled"]
    assert path["probabilities"][-1] == pytest.approx([0.4, 0.4, 0.2])
    assert path["ratios"][-1][:2] == pytest.approx([0.4 / 0.495] * 2)
    assert set(path["outside"]) == {0.0}
    by_hand = 0.99 * math.log(0.495 / 0.4) + 0.01 * math.log(0.01 / 0.2)
    assert path["kl"][-1] == pytest.approx(by_hand, rel=1e-12)
    assert f"{by_hand:.2f}" == "0.18"
    assert path["kl"] == sorted(path["kl"])
    assert f"{path['miss']:.2f}" == "0.53"


def test_a_sampled_rare_action_would_be_seen():
    rare = ways_out()["unsampled"]["ratios"][-1][2]
    assert rare == pytest.approx(20)  # the control: were c in the batch, it would stand far outside


# --- state -----------------------------------------------------------------------


def test_a_state_makes_an_equal_widget():
    shown = ClipRegion(clip_epsilon=0.3, guess=7, view="momentum", step=4)
    shown.ratios = [0.905, *shown.ratios[1:]]
    again = ClipRegion(**shown.state())
    assert again.state() == shown.state()
    assert repr(again) == repr(shown)
    assert json.loads(json.dumps(shown.state())) == shown.state()


@pytest.mark.parametrize("name", ClipRegion.STATES)
def test_each_named_state_says_and_draws_something(name):
    shown = ClipRegion(**ClipRegion.STATES[name])
    assert shown.state() == ClipRegion.STATES[name]
    assert len(shown.sentence().split()) >= 4
    assert len(shown.figure().axes) in (1, 2)


def test_a_tensor_of_ratios_is_taken():
    shown = ClipRegion(ratios=torch.tensor([0.5, 1.5]), advantages=torch.tensor([1.0, -1.0]))
    assert shown.ratios == [0.5, 1.5]


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"ratios": [1.0]}, "ratios holds 1 numbers, advantages 24"),
        ({"ratios": [3.0], "advantages": [1.0]}, "ratios holds 3.0; expected numbers above 0"),
        ({"ratios": [0.0], "advantages": [1.0]}, "ratios holds 0.0"),
        ({"ratios": [math.nan], "advantages": [1.0]}, "ratios holds nan"),
        ({"ratios": [1.0], "advantages": [0.0]}, "advantages holds a 0"),
        ({"ratios": [], "advantages": []}, "ratios holds 0 numbers; expected 1 to 64"),
        ({"clip_epsilon": 0.0}, "clip_epsilon is 0.0; expected a number above 0 and below 1"),
        ({"clip_epsilon": 1.0}, "clip_epsilon is 1.0"),
        ({"view": "sample"}, "view is 'sample'; expected one of samples, one_step"),
        ({"step": 41}, "step is 41; expected a whole number from 0 to 40"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ClipRegion(**state)


def test_each_view_has_its_words():
    for view in ("one_step", "momentum", "unsampled"):
        assert f"{view}_intro" in WORDS["en"]["clip_region"]


# --- the fixture that holds the script to Python ---------------------------------------------


def fixture_content():
    """What the script must compute: single samples on both edges, and whole batches."""
    points = []
    for epsilon in (0.05, 0.1, 0.2, 0.5):
        edges = [0.0, 1 - epsilon, 1 + epsilon]
        for ratio in (*edges[1:], 0.005, 0.3, 0.795, 0.995, 1.005, 1.205, 1.7, 2.195):
            for advantage in (1.0, -1.0, 2.5, -0.3):
                pair = [torch.tensor([each], dtype=torch.float64) for each in (ratio, advantage)]
                points.append(
                    {
                        "ratio": ratio,
                        "advantage": advantage,
                        "epsilon": epsilon,
                        "objective": clipped_surrogate(*pair, clip_epsilon=epsilon).item(),
                        "pushes": pushes(*pair, clip_epsilon=epsilon).item(),
                    }
                )
    batches = []
    for seed, epsilon in enumerate((0.05, 0.13, 0.2, 0.2, 0.31, 0.5)):
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(20, 200, (4 * (seed + 1),), generator=generator).tolist()
        signs = torch.randn(len(steps), generator=generator, dtype=torch.float64).tolist()
        ratios = [round(0.005 + step / 100, 3) for step in steps]
        shown = ClipRegion(ratios=ratios, advantages=signs, clip_epsilon=epsilon)
        batches.append(
            {
                **shown.state(),
                "fraction_outside": shown.fraction_outside,
                "fraction_zero_gradient": shown.fraction_zero_gradient,
                "mean_objective": shown.mean_objective,
                "still_push": shown.still_push,
            }
        )
    return {"points": points, "batches": batches}


def test_the_fixture_is_what_python_computes():
    stored = json.loads(FIXTURE.read_text(encoding="utf-8"))
    now = fixture_content()
    assert len(stored["points"]) == len(now["points"]) == 160
    for have, want in zip(stored["points"], now["points"], strict=True):
        assert have == pytest.approx(want, rel=1e-12, abs=1e-15)
    for have, want in zip(stored["batches"], now["batches"], strict=True):
        for name in ("fraction_outside", "fraction_zero_gradient", "mean_objective"):
            assert have[name] == pytest.approx(want[name], rel=1e-12, abs=1e-15)
        assert have["ratios"] == want["ratios"]


# --- in a browser ----------------------------------------------------------------------------


def drag(seen, ratios, *, index=0):
    """Drag a sample with advantage above 0; the ratios that were drawn."""
    from benchmarks.widgets import move

    return [at for _, at in move(seen.page, BETTER, [each / 2.2 for each in ratios], index=index)]


def kinds(seen):
    return seen.page.eval_on_selector_all(
        ".ppo-handle .ppo-mark", "nodes => nodes.map(node => node.dataset.kind)"
    )


# 50 ratios over both edges of the band, no two alike after snapping.
FIFTY = [0.405 + 0.03 * number for number in range(50)]


# --- the script's numbers are Python's -------------------------------------------------------

COMPARE = """async ([script, cases]) => {
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { clipObjective, stillPushes, isOutside, summarize, snap } = await import(address);
  const wrong = [];
  const near = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));
  for (const p of cases.points) {
    const got = clipObjective(p.ratio, p.advantage, p.epsilon);
    if (!near(got, p.objective)) wrong.push([p, got]);
    if (stillPushes(p.ratio, p.advantage, p.epsilon) !== p.pushes) wrong.push([p, "pushes"]);
    if (!p.pushes && !isOutside(p.ratio, p.epsilon)) wrong.push([p, "outside"]);
  }
  for (const b of cases.batches) {
    const got = summarize(b.ratios, b.advantages, b.clip_epsilon);
    if (!near(got.fractionOutside, b.fraction_outside)) wrong.push([b, got]);
    if (!near(got.fractionZeroGradient, b.fraction_zero_gradient)) wrong.push([b, got]);
    if (!near(got.meanObjective, b.mean_objective)) wrong.push([b, got]);
    if (got.pushing !== b.still_push) wrong.push([b, got]);
    if (b.ratios.some((ratio) => snap(ratio) !== ratio)) wrong.push([b, "snap"]);
  }
  return wrong;
}"""


def compared(browser, script, cases):
    page = browser.new_page()
    try:
        return page.evaluate(COMPARE, [script, cases])
    finally:
        page.close()


def test_the_script_computes_what_python_computes(browser):
    cases = json.loads(FIXTURE.read_text(encoding="utf-8"))
    assert compared(browser, ClipRegion._esm, cases) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.min(ratio * advantage, clamp(", "Math.max(ratio * advantage, clamp("),
        ("advantage > 0 ? ratio <= 1 + epsilon", "advantage > 0 ? ratio < 1 + epsilon"),
        ("silent += !stillPushes", "silent += isOutside(ratio, epsilon) || !stillPushes"),
        ("meanObjective: sum / total", "meanObjective: sum / (total + 1)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    script = ClipRegion._esm
    assert right in script
    cases = json.loads(FIXTURE.read_text(encoding="utf-8"))
    assert compared(browser, script.replace(right, wrong), cases)


def test_a_drag_through_fifty_positions_draws_each_of_them(visit):
    with visit(ClipRegion(), state="samples") as seen:
        drawn = drag(seen, FIFTY)
        assert len(set(drawn)) == 50
        assert drawn == pytest.approx(FIFTY, abs=0.011)  # a pixel is 0.005 wide


def test_a_sample_past_the_edge_becomes_a_cross_and_the_sentence_changes(visit):
    with visit(ClipRegion(), state="samples") as seen:
        assert kinds(seen)[0] == "push"
        before = seen.status()
        drag(seen, [1.1, 1.6])
        assert kinds(seen)[0] == "silent"
        assert "14 of 24 samples left" in seen.status()
        assert seen.status() != before


def test_where_samples_overlap_the_nearest_one_follows(visit):
    with visit(ClipRegion(), state="samples") as seen:
        before = seen.values()
        drag(seen, [1.9], index=5)  # 1.005, between 0.965 and 1.035
        pairs = zip(before, seen.values(), strict=True)
        assert [index for index, (was, now) in enumerate(pairs) if was != now] == [5]


def test_epsilon_moves_the_band_and_the_fractions(visit):
    with visit(ClipRegion(), state="samples") as seen:
        slider = seen.page.get_by_role("slider", name="clip_epsilon ε")
        slider.focus()
        for _ in range(20):
            seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(ClipRegion(clip_epsilon=0.4))


def test_a_thousand_updates_leave_the_page_as_large_as_it_was(visit):
    with visit(ClipRegion(), state="samples") as seen:
        count = "document.querySelectorAll('*').length"
        drag(seen, FIFTY)
        seen.button("Samples").click()  # now the helpers of the test are in the page, too
        before = seen.page.evaluate(count)
        heap = js_heap(seen)
        slider = "document.querySelector('input[type=range]')"
        seen.page.evaluate(
            f"""for (let n = 0; n < 1000; n += 1) {{
              {slider}.value = 0.05 + (n % 40) / 100;
              {slider}.dispatchEvent(new Event("input"));
            }}"""
        )
        for name in ("One big step", "Samples") * 10:
            seen.button(name).click()
        assert seen.page.evaluate(count) <= before * 1.02
        assert js_heap(seen) <= heap * 1.25  # a heap of 2 MB is noisy; a leak is far more


def js_heap(seen):
    client = seen.context.new_cdp_session(seen.page)
    client.send("HeapProfiler.collectGarbage")
    return client.send("Runtime.getHeapUsage")["usedSize"]


# --- predict, then reveal --------------------------------------------------------------------


def test_nothing_tells_the_answer_before_the_guess(visit):
    with visit(ClipRegion()) as seen:
        assert set(kinds(seen)) == {"hidden"}
        text = seen.page.locator("main").inner_text()
        assert "20 of 24" not in text
        assert "0.167" not in text
        assert not any("pushes" in name for name in seen.texts())
        names = seen.page.locator("text.ppo-curve-name")
        assert names.count() == 2
        assert not any(name.is_visible() for name in names.all())


def test_a_guess_is_put_beside_the_answer(visit):
    with visit(ClipRegion()) as seen:
        seen.page.get_by_label("How many of the 24 samples still push?").fill("17")
        seen.page.keyboard.press("Enter")
        assert seen.page.get_by_text("You said 17; 20 of 24 still push.").is_visible()
        assert kinds(seen).count("silent") == 4
        assert kinds(seen).count("back") == 9
        seen.button("Guess again").click()
        assert set(kinds(seen)) == {"hidden"}
        assert seen.page.get_by_role("spinbutton").input_value() == ""


@pytest.mark.parametrize("number", ["99", "-3", "2.5"])
def test_a_number_that_cannot_be_is_not_taken(visit, number):
    with visit(ClipRegion()) as seen:
        seen.page.get_by_role("spinbutton").fill(number)
        seen.button("Reveal").click()
        assert seen.status() == "Give a whole number between 0 and 24."
        assert set(kinds(seen)) == {"hidden"}
        seen.page.keyboard.press("PageDown")
        assert seen.page.get_by_text("You said").count() == 0


# --- the ways out ----------------------------------------------------------------------------


def test_momentum_plays_to_its_end(visit):
    with visit(ClipRegion(), reduced_motion="no-preference") as seen:
        seen.button("Momentum").click()
        seen.button("Play").click()
        seen.page.get_by_text("Step 40: probability 0.336, ratio 1.682, gradient 0.").wait_for()
        seen.page.get_by_role("slider", name="step").fill("3")
        assert "gradient 1.2" in seen.status()


def test_who_wants_no_motion_sees_the_end_at_once(visit):
    with visit(ClipRegion(), reduced_motion="reduce") as seen:
        seen.button("Momentum").click()
        seen.button("Play").click()
        assert seen.status().startswith("Step 40:")
        seen.button("One big step").click()
        assert "ratio 2.766" in seen.status()


def test_each_state_opens_by_its_name(visit):
    for name, state in ClipRegion.STATES.items():
        with visit(ClipRegion(), state=name) as seen:
            pressed = seen.page.locator("button[aria-pressed=true]")
            assert pressed.count() == 1
            views = {"samples": "Samples", "one_step": "One big step", "momentum": "Momentum"}
            assert pressed.inner_text() == views.get(state["view"], "Unsampled action")


def test_arrows_step_unless_a_control_moves_with_them(visit):
    with visit(ClipRegion()) as seen:
        seen.page.keyboard.press("ArrowRight")
        seen.wait_for_address("samples")
        seen.page.get_by_role("slider", name="clip_epsilon ε").focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(ClipRegion(clip_epsilon=0.21))
        seen.button("Next state").focus()
        seen.page.keyboard.press("ArrowLeft")
        seen.wait_for_address("guess")


def test_a_view_button_opens_the_first_state_of_its_view(visit):
    with visit(ClipRegion()) as seen:
        seen.button("Momentum").click()
        assert seen.page.get_by_text("6 of 8").is_visible()
        assert seen.status().startswith("Step 4:")
        seen.page.keyboard.press("PageDown")
        seen.wait_for_address("momentum")
        seen.button("Samples").click()
        assert seen.page.get_by_text("1 of 8").is_visible()
        assert set(kinds(seen)) == {"hidden"}


def test_keys_move_a_sample_and_choose_another(visit):
    with visit(ClipRegion(), state="samples") as seen:
        first = seen.page.locator(".ppo-better .ppo-handle[tabindex='0']")
        first.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Shift+ArrowRight"):
            seen.page.keyboard.press(key)
        assert seen.values()[0] == 1.145
        seen.page.keyboard.press("ArrowUp")
        assert seen.focused() == "Sample 9, advantage 1"  # 1.165 is the next larger ratio
        seen.page.keyboard.press("ArrowDown")
        assert seen.focused() == "Sample 1, advantage 1"


def test_a_reader_hears_ratio_and_fate_of_a_sample_and_no_tick_of_an_axis(visit):
    with visit(ClipRegion(), state="samples") as seen:
        nodes = seen.accessible_nodes()
        sliders = [words for role, words in nodes if role == "slider"]
        assert sliders.count("Sample 3, advantage 1") == 1
        assert len(sliders) == 24 + 1
        assert seen.texts()[2] == "ratio 1.485, no gradient"
        assert seen.texts()[3] == "ratio 0.755, pushes back"
        assert ("group", "Samples with advantage above 0") in nodes
        assert not {"0.5", "1.5", "−1.5", "1 ± ε"} & {words for _, words in nodes}


def test_without_colours_shapes_still_tell_the_samples_apart(visit):
    with visit(ClipRegion(), state="samples") as seen:
        shapes = seen.page.eval_on_selector_all(
            ".ppo-handle .ppo-mark",
            "nodes => nodes.map(n => [n.dataset.kind, n.getAttribute('d')])",
        )
        by_kind = {}
        for kind, shape in shapes:
            by_kind.setdefault(kind, set()).add(shape)
        assert all(len(each) == 1 for each in by_kind.values())
        assert len(set().union(*by_kind.values())) == len(by_kind) == 3


if __name__ == "__main__":
    text = json.dumps(fixture_content(), indent=1)
    FIXTURE.write_text(text + "\n", encoding="utf-8")
