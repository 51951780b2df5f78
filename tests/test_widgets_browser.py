"""Every widget keeps these promises in a browser, from one file and without a network.

A widget joins by its line in `ppo_lessons/widgets/registry.py`. What only one widget claims stands
in `test_widget_<name>.py`, and how all of them look in `test_widgets_looks.py`.
"""

import pytest
from browsing import (
    INTERACTIVE,
    TEACHING,
    disagreements,
    plain_traits,
    random_widgets,
)

from ppo_lessons.widgets import ClipRegion, LiveDashboard, Predict, Quiz, find_widget
from ppo_lessons.widgets.registry import HOME

QUIZ = "training_loop.review_ratio"
MAKERS = {name: find_widget(name) for name in TEACHING} | {
    "quiz": lambda: Quiz(QUIZ),
    "predict": lambda: Predict("clip.ratio", "How far does the ratio get?"),
    "live_dashboard": LiveDashboard,
}
SLOWEST_MS = 50  # from the hand's move to the drawing, 95th percentile


@pytest.fixture(params=TEACHING)
def made(request):
    """The class of each widget that teaches."""
    return find_widget(request.param)


# What the shared shell does it does for all of them: one is tried each time, the others in full.
IN_FULL = [pytest.param(name, marks=pytest.mark.full) for name in TEACHING if name != "clip_region"]


@pytest.fixture(params=["clip_region", *IN_FULL])
def shell_of(request):
    """The class of a widget, for promises that its shell keeps."""
    return find_widget(request.param)


# These take seconds for each widget: two are tried each time, the others in full.
OFTEN = ("clip_region", "throughput_ledger")


@pytest.fixture(
    params=[
        name if name in OFTEN else pytest.param(name, marks=pytest.mark.full) for name in TEACHING
    ]
)
def often(request):
    """The class of a widget, for promises that take long to look at."""
    return find_widget(request.param)


@pytest.fixture(params=HOME.values())
def widget(request):
    shown = MAKERS[request.param]()
    yield shown
    shown.close()


def revealed_states(made):
    return list(made.STATES)[1:]


# --- the script's numbers are Python's -------------------------------------------------------


def test_page_and_python_compute_and_say_the_same_in_named_and_random_states(browser, made):
    named = [made.at(name) for name in revealed_states(made)]
    assert disagreements(browser, named + random_widgets(made.NAME, 40)) == []


def test_a_page_that_computes_something_else_is_found(browser, shell_of):
    widgets = random_widgets(shell_of.NAME, 3)
    wrong = "return [compute ? compute(traits)"
    assert wrong not in widgets[0]._esm
    script = widgets[0]._esm.replace(
        "value.toFixed(digits)", "(value * 1.01 + 0.1).toFixed(digits)"
    )
    assert disagreements(browser, widgets, script=script)


# --- the hand --------------------------------------------------------------------------------


def test_a_drag_draws_every_position_at_the_speed_of_the_hand(visit, often):
    from benchmarks.widgets import play, summary

    for drag in often.DRAGS:
        times = []
        for _ in range(3):  # something else may run on the machine: the best of three
            with visit(often(), state=drag.state) as seen:
                height = seen.height()
                drawn = play(seen.page, drag)
                assert len({value for _, value in drawn}) >= drag.values
                assert seen.height() == pytest.approx(height, abs=1)  # nothing jumps
            times.append(summary([ms for ms, _ in drawn])["p95_ms"])
            if times[-1] < SLOWEST_MS:
                break
        assert min(times) < SLOWEST_MS


def test_messages_to_the_kernel_keep_forty_milliseconds_apart(browser):
    page = browser.new_page()
    counts = page.evaluate(
        """async ([script, traits]) => {
          const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
          const widget = (await import(address)).default;
          const sent = [];
          const model = {
            get: (key) => traits[key], set: (key, value) => { traits[key] = value; },
            on() {}, off() {}, save_changes: () => sent.push(performance.now()),
          };
          const dispose = widget.render({ model, el: document.body });
          const slider = document.querySelector("input[type=range]");
          const end = performance.now() + 400;
          let inputs = 0;
          while (performance.now() < end) {
            slider.value = 0.05 + (inputs % 40) / 100;
            slider.dispatchEvent(new Event("input"));
            inputs += 1;
            await new Promise((go) => setTimeout(go, 4));
          }
          slider.value = 0.33;
          slider.dispatchEvent(new Event("input"));
          dispose();
          const gaps = sent.slice(1, -1).map((at, index) => at - sent[index]);
          return { inputs, sent: sent.length, gap: Math.min(...gaps), last: traits.clip_epsilon,
            left: document.body.children.length };
        }""",
        [ClipRegion._esm, plain_traits(ClipRegion())],
    )
    page.close()
    assert counts["sent"] <= 12
    assert counts["gap"] >= 39
    assert counts["last"] == 0.33  # what was set last is sent, also when the view goes
    assert counts["left"] == 0  # the cleanup takes everything away


# --- predict, then reveal --------------------------------------------------------------------


def fill_guess(seen):
    """Give some guess: the smallest number, or the first option."""
    box = seen.page.locator(".ppo-guess :is(input, select)")
    if box.evaluate("node => node.tagName") == "SELECT":
        box.select_option(index=1)
    else:
        box.fill(box.get_attribute("min"))
    return box


def test_a_guess_reveals_and_is_taken_back(visit, made):
    with visit(made()) as seen:
        hidden = seen.status()
        assert hidden not in [repr(made.at(name)) for name in made.STATES]
        fill_guess(seen)
        seen.button("Reveal").focus()
        seen.page.keyboard.press("Enter")
        first = next(iter(made.STATES))
        assert seen.status() == repr(made.at(first, revealed=True))
        assert seen.page.locator(".ppo-guess :is(input, select)").is_hidden()
        seen.button("Guess again").click()
        assert seen.status() == hidden
        assert seen.page.locator(".ppo-guess :is(input, select)").input_value() == ""


def test_what_is_revealed_is_not_in_the_page_before(visit, made):
    with visit(made()) as seen:
        before = seen.page.locator("main").inner_text() + " ".join(map(str, seen.texts()))
        seen.button("Reveal").click()
        after = seen.page.locator(".ppo-guess").last.inner_text()
        said = after.replace("Guess again", "").strip()
        assert said
        assert said not in before


def test_the_next_state_keeps_what_stands_in_the_box(visit, shell_of):
    with visit(shell_of()) as seen:
        fill_guess(seen)
        seen.page.keyboard.press("PageDown")
        seen.wait_for_address(revealed_states(shell_of)[0])
        assert seen.page.locator(".ppo-guess").last.is_visible()
        hidden_again = seen.page.locator(".ppo-guess").first.is_hidden()
        assert hidden_again


# --- states by name, stepping ----------------------------------------------------------------


def test_each_state_opens_by_its_name_and_says_what_python_says(visit, made):
    with visit(made()) as seen:
        for name in revealed_states(made):
            seen.open(name)
            assert seen.status() == repr(made.at(name))


def test_a_clicker_steps_through_the_states(visit, shell_of):
    with visit(shell_of()) as seen:
        names = list(shell_of.STATES)
        for name in names[1:]:
            seen.page.keyboard.press("PageDown")
            seen.wait_for_address(name)
        seen.page.keyboard.press("PageDown")  # stays at the end
        seen.wait_for_address(names[-1])
        seen.page.keyboard.press("PageUp")
        seen.wait_for_address(names[-2])


@pytest.mark.parametrize("wrong", ["nothing", "%E0%A4%A", "?"])
def test_an_unknown_address_becomes_that_of_what_is_shown(visit, shell_of, wrong):
    with visit(shell_of(), state=wrong) as seen:
        seen.wait_for_address(next(iter(shell_of.STATES)))


def test_large_text_stays_in_the_address(visit, shell_of):
    name, following = revealed_states(shell_of)[:2]
    with visit(shell_of(), state=f"{name}?large") as seen:
        assert seen.status() == repr(shell_of.at(name))
        assert seen.page.locator(".ppo-large").count() == 1
        seen.page.keyboard.press("PageDown")
        seen.wait_for_address(f"{following}?large")
        seen.page.reload()
        assert seen.page.locator(".ppo-large").count() == 1
        seen.button("Large text").click()
        seen.wait_for_address(following)


def test_full_screen_fills_the_projector_and_comes_back(visit, shell_of):
    with visit(shell_of(), viewport={"width": 1600, "height": 900}) as seen:
        seen.button("Full screen").click()
        seen.page.locator(".ppo.ppo-full").wait_for()
        width = seen.page.locator(".ppo-panels").bounding_box()["width"]
        assert width > 1500
        seen.page.keyboard.press("PageDown")
        assert seen.page.get_by_text(f"2 of {len(shell_of.STATES)}").is_visible()
        seen.button("Leave full screen").click()
        seen.page.locator(".ppo:not(.ppo-full)").wait_for()


# --- the keyboard ----------------------------------------------------------------------------

# How a focused element shows it: an outline, or the ring of a handle.
FOCUS_SHOWS = """() => {
  const node = document.activeElement;
  const ring = node.querySelector(".ppo-ring");
  const style = getComputedStyle(ring ?? node);
  return ring ? style.stroke !== "none" && !/, 0\\)$/.test(style.stroke)
    : style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
}"""


def test_tab_reaches_every_control_once_and_the_focus_is_seen(visit, often):
    with visit(often()) as seen:
        for name in often.STATES:
            seen.open(name)
            seen.page.reload()  # the next Tab starts at the top
            shown = seen.page.locator(
                "button:visible:not(:disabled), input:visible, select:visible"
            ).count()
            groups = seen.page.locator(".ppo-panels [role=group]:has(.ppo-handle)").count()
            seen.page.evaluate("window.reached = new Set()")
            for _ in range(shown + groups):
                seen.page.keyboard.press("Tab")
                seen.page.evaluate("window.reached.add(document.activeElement)")
                assert seen.page.evaluate(FOCUS_SHOWS), f"{name}: the focus on {seen.focused()}"
            assert seen.page.evaluate("window.reached.size") == shown + groups, name


def test_the_arrows_move_each_handle_and_each_slider(visit, made):
    drag = made.DRAGS[0]
    with visit(made(), state=drag.state) as seen:
        handle = seen.page.locator(drag.handle).nth(drag.index)
        native = handle.evaluate("node => node.tagName") == "INPUT"
        value = "node => node.value ?? node.getAttribute('aria-valuenow')"
        before = handle.evaluate(value)
        handle.focus()
        seen.page.keyboard.press("ArrowRight" if native or drag.along == "x" else "ArrowUp")
        assert handle.evaluate(value) != before
        assert seen.page.locator(".ppo-where").get_attribute("data-state") == drag.state


def test_escape_leaves(visit, shell_of):
    with visit(shell_of(), state=shell_of.DRAGS[0].state) as seen:
        seen.page.locator(shell_of.DRAGS[0].handle).first.focus()
        assert not seen.page.evaluate("document.activeElement === document.body")
        seen.page.keyboard.press("Escape")
        assert seen.page.evaluate("document.activeElement === document.body")


KEYS = {
    **dict.fromkeys(("Control+s", "Meta+s", "Control+Enter", "Alt+ArrowRight"), True),
    **dict.fromkeys(("F2", "Tab", "Escape"), True),
    # "b" makes a new cell in JupyterLab, Enter opens one
    **dict.fromkeys(("b", "ArrowRight", "ArrowUp", "Enter"), False),
}


def test_only_what_the_widget_uses_is_kept_from_the_notebook(visit, shell_of):
    with visit(shell_of(), state=shell_of.DRAGS[0].state) as seen:
        seen.page.evaluate(
            "window.heard = []; document.body.addEventListener('keydown', (event) => {"
            " window.heard.push(event.key); if (event.ctrlKey) event.preventDefault(); })"
        )
        for key, passes in KEYS.items():
            seen.page.evaluate("window.heard = []")
            seen.page.locator(shell_of.DRAGS[0].handle).first.focus()
            seen.page.keyboard.press(key)
            last = key.rpartition("+")[2]
            assert (last in seen.page.evaluate("window.heard")) == passes, key


# --- names and roles -------------------------------------------------------------------------


def test_controls_have_names_of_their_own_and_one_line_is_read_aloud(visit, widget):
    with visit(widget) as seen:
        nodes = seen.accessible_nodes()
        nameless = [role for role, words in nodes if role in INTERACTIVE and not words.strip()]
        assert nameless == []
        assert any(role in INTERACTIVE for role, _ in nodes)
        assert [role for role, _ in nodes].count("status") == 1
        ids = seen.page.eval_on_selector_all("[id]", "nodes => nodes.map(node => node.id)")
        assert len(ids) == len(set(ids))
        assert seen.page.locator("label:not(:has(input, select))").count() == 0


def test_what_is_drawn_is_not_read_out_tick_by_tick(visit, made):
    with visit(made(), state=revealed_states(made)[0]) as seen:
        read = seen.page.eval_on_selector_all(
            ".ppo svg text",
            "nodes => nodes.filter((node) => !node.closest('[aria-hidden=true]')).length",
        )
        assert read == 0
        handles = "nodes => nodes.map((n) => [n.getAttribute('aria-label'), n.ariaValueText])"
        said = seen.page.eval_on_selector_all(".ppo-handle", handles)
        assert all(name and value for name, value in said)
        groups = seen.page.locator("[role=group]:not([aria-label])").count()
        assert groups == 0
