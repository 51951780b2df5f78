"""Widgets in a browser, from one file and without a network: hand, keyboard, looks, numbers."""

import json
import os
from pathlib import Path

import pytest

from ppo_lessons.widgets import ClipRegion, Predict, Quiz
from ppo_lessons.widgets.page import script_of

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
from benchmarks import widgets as bench  # noqa: E402  (it imports playwright)

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "tests" / "fixtures" / "clip_region.json"
# The author of a widget looks at these: PPO_LESSONS_PICTURES=/tmp/pictures pytest -k picture
PICTURES = os.environ.get("PPO_LESSONS_PICTURES")
QUIZ = "training_loop.review_ratio"  # its right option is c

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    if bench.find_chromium() is None:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail("chromium is missing, and CI must have it: apt-get install chromium")
        pytest.skip("needs chromium, which is not installed")
    with bench.launched() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The file of each widget."""
    folder = tmp_path_factory.mktemp("pages")
    widgets = {
        "clip_region": ClipRegion(),
        "quiz": Quiz(QUIZ),
        "predict": Predict("clip.ratio", "How far does the ratio get?", unit="times"),
        "choice": Predict("clip.direction", "Which way?", options=["up", "down"]),
        "measured": Predict("clip.ratio", "How far?", guess=1.2, measured=2.766),
    }
    files = {}
    for name, widget in widgets.items():
        files[name] = folder / f"{name}.html"
        files[name].write_text(widget.to_html(), encoding="utf-8")
    return files


class Visit:
    """A page, offline, with everything that it complained about or asked for."""

    def __init__(self, browser, file, *, state="", **look):
        look = {"viewport": {"width": 1200, "height": 900}} | look
        self.context = browser.new_context(**look)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = file.as_uri()
        self.page.goto(self.address + (f"#{state}" if state else ""))

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        complaints = list(self.complaints)
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        self.context.close()
        if kind is None:  # each test also holds this
            assert complaints == []
            assert outside == []

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True)

    def status(self):
        return self.page.get_by_role("status").inner_text()

    def wait_for_address(self, name):
        self.page.wait_for_function("name => location.hash === `#${name}`", arg=name)

    def ratios(self):
        return self.page.eval_on_selector_all(
            ".ppo-sample", "nodes => nodes.map(node => node.getAttribute('aria-valuenow'))"
        )

    def kinds(self):
        return self.page.eval_on_selector_all(
            ".ppo-sample .ppo-mark", "nodes => nodes.map(node => node.dataset.kind)"
        )

    def focused(self):
        return self.page.evaluate(
            "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"
        )


@pytest.fixture
def visit(browser, pages):
    return lambda name="clip_region", **look: Visit(browser, pages[name], **look)


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
    script = script_of("clip_region", ClipRegion.STATES, parts=("clip_region_ways", "clip_region"))
    assert right in script
    cases = json.loads(FIXTURE.read_text(encoding="utf-8"))
    assert compared(browser, script.replace(right, wrong), cases)


@pytest.mark.parametrize("name", [name for name in ClipRegion.STATES if name != "guess"])
def test_page_and_python_say_the_same_sentence(visit, name):
    with visit(state=name) as seen:
        assert seen.status() == repr(ClipRegion(**ClipRegion.STATES[name]))


# --- the hand --------------------------------------------------------------------------------


def test_a_drag_through_fifty_positions_draws_each_of_them(visit):
    with visit(state="samples") as seen:
        drawn = [ratio for _, ratio in bench.drag(seen.page, bench.fifty())]
        assert len(set(drawn)) == bench.POSITIONS
        assert drawn == pytest.approx(bench.fifty(), abs=0.011)  # a pixel is 0.005 wide


def test_a_sample_past_the_edge_becomes_a_cross_and_the_sentence_changes(visit):
    with visit(state="samples") as seen:
        assert seen.kinds()[0] == "push"
        before = seen.status()
        bench.drag(seen.page, [1.1, 1.6])
        assert seen.kinds()[0] == "silent"
        assert "14 of 24 samples left" in seen.status()
        assert seen.status() != before


def test_where_samples_overlap_the_nearest_one_follows(visit):
    with visit(state="samples") as seen:
        before = seen.ratios()
        bench.drag(seen.page, [1.9], index=5)  # 1.005, between 0.965 and 1.035
        pairs = zip(before, seen.ratios(), strict=True)
        assert [index for index, (was, now) in enumerate(pairs) if was != now] == [5]


def test_epsilon_moves_the_band_and_the_fractions(visit):
    with visit(state="samples") as seen:
        slider = seen.page.get_by_role("slider", name="clip_epsilon ε")
        slider.focus()
        for _ in range(20):
            seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(ClipRegion(clip_epsilon=0.4))


def test_a_thousand_updates_leave_the_page_as_large_as_it_was(visit):
    with visit(state="samples") as seen:
        count = "document.querySelectorAll('*').length"
        bench.drag(seen.page, bench.fifty())
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


def plain_traits(widget):
    return {name: getattr(widget, name) for name in widget.synced()}


# --- predict, then reveal --------------------------------------------------------------------


def test_nothing_tells_the_answer_before_the_guess(visit):
    with visit() as seen:
        assert set(seen.kinds()) == {"hidden"}
        text = seen.page.locator("main").inner_text()
        assert "20 of 24" not in text
        assert "0.167" not in text
        assert not any("pushes" in name for name in value_texts(seen))
        names = seen.page.locator("text.ppo-curve-name")
        assert names.count() == 2
        assert not any(name.is_visible() for name in names.all())


def value_texts(seen):
    return seen.page.eval_on_selector_all(
        ".ppo-sample", "nodes => nodes.map(node => node.getAttribute('aria-valuetext'))"
    )


def test_a_guess_is_put_beside_the_answer(visit):
    with visit() as seen:
        seen.page.get_by_label("How many of the 24 samples still push?").fill("17")
        seen.page.keyboard.press("Enter")
        assert seen.page.get_by_text("You said 17; 20 of 24 still push.").is_visible()
        assert seen.kinds().count("silent") == 4
        assert seen.kinds().count("back") == 9
        seen.button("Guess again").click()
        assert set(seen.kinds()) == {"hidden"}
        assert seen.page.get_by_role("spinbutton").input_value() == ""


def test_the_next_state_keeps_what_stands_in_the_box(visit):
    with visit() as seen:
        seen.page.get_by_role("spinbutton").fill("17")
        seen.page.keyboard.press("PageDown")
        assert seen.page.get_by_text("You said 17; 20 of 24 still push.").is_visible()


@pytest.mark.parametrize("number", ["99", "-3", "2.5"])
def test_a_number_that_cannot_be_is_not_taken(visit, number):
    with visit() as seen:
        seen.page.get_by_role("spinbutton").fill(number)
        seen.button("Reveal").click()
        assert seen.status() == "Give a whole number between 0 and 24."
        assert set(seen.kinds()) == {"hidden"}
        seen.page.keyboard.press("PageDown")
        assert seen.page.get_by_text("You said").count() == 0


# --- the ways out ----------------------------------------------------------------------------


def test_momentum_plays_to_its_end(visit):
    with visit(reduced_motion="no-preference") as seen:
        seen.button("Momentum").click()
        seen.button("Play").click()
        seen.page.get_by_text("Step 40: probability 0.336, ratio 1.682, gradient 0.").wait_for()
        seen.page.get_by_role("slider", name="step").fill("3")
        assert "gradient 1.2" in seen.status()


def test_who_wants_no_motion_sees_the_end_at_once(visit):
    with visit(reduced_motion="reduce") as seen:
        seen.button("Momentum").click()
        seen.button("Play").click()
        assert seen.status().startswith("Step 40:")
        seen.button("One big step").click()
        assert "ratio 2.766" in seen.status()


# --- states by name, stepping ----------------------------------------------------------------


def test_each_state_opens_by_its_name(visit):
    for name, state in ClipRegion.STATES.items():
        with visit(state=name) as seen:
            pressed = seen.page.locator("button[aria-pressed=true]")
            assert pressed.count() == 1
            views = {"samples": "Samples", "one_step": "One big step", "momentum": "Momentum"}
            assert pressed.inner_text() == views.get(state["view"], "Unsampled action")


def test_a_clicker_steps_through_the_states(visit):
    with visit() as seen:
        names = list(ClipRegion.STATES)
        for name in names[1:]:
            seen.page.keyboard.press("PageDown")
            seen.wait_for_address(name)
        seen.page.keyboard.press("PageDown")  # stays at the end
        seen.wait_for_address(names[-1])
        seen.page.keyboard.press("PageUp")
        seen.wait_for_address(names[-2])


def test_arrows_step_unless_a_control_moves_with_them(visit):
    with visit() as seen:
        seen.page.keyboard.press("ArrowRight")
        seen.wait_for_address("samples")
        seen.page.get_by_role("slider", name="clip_epsilon ε").focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(ClipRegion(clip_epsilon=0.21))
        seen.button("Next state").focus()
        seen.page.keyboard.press("ArrowLeft")
        seen.wait_for_address("guess")


def test_a_view_button_opens_the_first_state_of_its_view(visit):
    with visit() as seen:
        seen.button("Momentum").click()
        assert seen.page.get_by_text("6 of 8").is_visible()
        assert seen.status().startswith("Step 4:")
        seen.page.keyboard.press("PageDown")
        seen.wait_for_address("momentum")
        seen.button("Samples").click()
        assert seen.page.get_by_text("1 of 8").is_visible()
        assert set(seen.kinds()) == {"hidden"}


@pytest.mark.parametrize("wrong", ["nothing", "%E0%A4%A", "?"])
def test_an_unknown_address_becomes_that_of_what_is_shown(visit, wrong):
    with visit(state=wrong) as seen:
        seen.wait_for_address("guess")


def test_large_text_stays_in_the_address(visit):
    with visit(state="momentum?large") as seen:
        assert seen.status().startswith("Step 40:")
        assert seen.page.locator(".ppo-large").count() == 1
        seen.page.keyboard.press("PageDown")
        seen.wait_for_address("unsampled?large")
        seen.page.reload()
        assert seen.page.locator(".ppo-large").count() == 1
        seen.button("Large text").click()
        seen.wait_for_address("unsampled")


def test_a_changed_address_changes_the_state(visit):
    with visit() as seen:
        seen.page.evaluate("location.hash = 'momentum_edge'")
        seen.page.get_by_text("Step 4: probability").wait_for()


def test_full_screen_fills_the_projector_and_comes_back(visit):
    with visit(viewport={"width": 1600, "height": 900}) as seen:
        seen.button("Full screen").click()
        seen.page.locator(".ppo.ppo-full").wait_for()
        width = seen.page.locator(".ppo-panels").bounding_box()["width"]
        assert width > 1500
        seen.page.keyboard.press("PageDown")
        assert seen.page.get_by_text("2 of 8").is_visible()
        seen.button("Leave full screen").click()
        seen.page.locator(".ppo:not(.ppo-full)").wait_for()


# --- the keyboard ----------------------------------------------------------------------------


def tab_through(seen):
    """Names of what Tab reaches, in order, until it leaves the page."""
    names = []
    for _ in range(40):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("document.activeElement === document.body"):
            break
        names.append(seen.focused() or seen.page.evaluate("document.activeElement.tagName"))
    return names


def test_tab_reaches_every_control_and_stops_once_for_each_group(visit):
    with visit(state="samples") as seen:
        names = tab_through(seen)
        assert sum(name.startswith("Sample ") for name in names) == 2  # one for each panel
        for wanted in ("Large text", "Full screen", "Samples", "Momentum", "Guess again"):
            assert wanted in names
        shown = seen.page.locator("button:visible:not(:disabled), input:visible").count()
        assert len(names) == shown + 2


def test_keys_move_a_sample_and_choose_another(visit):
    with visit(state="samples") as seen:
        first = seen.page.locator(".ppo-better .ppo-sample[tabindex='0']")
        first.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Shift+ArrowRight"):
            seen.page.keyboard.press(key)
        assert seen.ratios()[0] == "1.145"
        seen.page.keyboard.press("ArrowUp")
        assert seen.focused() == "Sample 9, advantage 1"  # 1.165 is the next larger ratio
        seen.page.keyboard.press("ArrowDown")
        assert seen.focused() == "Sample 1, advantage 1"


def test_escape_leaves(visit):
    with visit(state="samples") as seen:
        seen.page.locator(".ppo-sample[tabindex='0']").first.focus()
        seen.page.keyboard.press("Escape")
        assert seen.page.evaluate("document.activeElement === document.body")


@pytest.mark.parametrize(
    ("key", "passes"),
    [
        ("Control+s", True),
        ("Meta+s", True),
        ("Control+Enter", True),
        ("Alt+ArrowRight", True),
        ("F2", True),
        ("Tab", True),
        ("Escape", True),
        ("b", False),  # a new cell, in JupyterLab
        ("ArrowRight", False),
        ("ArrowUp", False),
        ("Enter", False),
    ],
)
def test_only_what_the_widget_uses_is_kept_from_the_notebook(visit, key, passes):
    with visit(state="samples") as seen:
        seen.page.evaluate(
            "window.heard = []; document.body.addEventListener('keydown', (event) => {"
            " window.heard.push(event.key); if (event.ctrlKey) event.preventDefault(); })"
        )
        seen.page.locator(".ppo-sample[tabindex='0']").first.focus()
        seen.page.keyboard.press(key)
        last = key.rpartition("+")[2]
        assert (last in seen.page.evaluate("window.heard")) == passes


# --- names and roles -------------------------------------------------------------------------

INTERACTIVE = {"button", "slider", "spinbutton", "radio", "combobox", "checkbox", "textbox"}


def accessible_nodes(seen):
    client = seen.context.new_cdp_session(seen.page)
    client.send("Accessibility.enable")
    nodes = client.send("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]


@pytest.mark.parametrize("name", ["clip_region", "quiz", "predict", "choice", "measured"])
def test_every_control_has_a_name(visit, name):
    with visit(name) as seen:
        nodes = accessible_nodes(seen)
        nameless = [role for role, words in nodes if role in INTERACTIVE and not words.strip()]
        assert nameless == []
        assert any(role in INTERACTIVE for role, _ in nodes)
        assert [role for role, _ in nodes].count("status") == 1


def test_a_reader_hears_ratio_and_fate_of_a_sample_and_no_tick_of_an_axis(visit):
    with visit(state="samples") as seen:
        nodes = accessible_nodes(seen)
        sliders = [words for role, words in nodes if role == "slider"]
        assert sliders.count("Sample 3, advantage 1") == 1
        assert len(sliders) == 24 + 1
        assert value_texts(seen)[2] == "ratio 1.485, no gradient"
        assert value_texts(seen)[3] == "ratio 0.755, pushes back"
        assert ("group", "Samples with advantage above 0") in nodes
        assert not {"0.5", "1.5", "−1.5", "1 ± ε"} & {words for _, words in nodes}


def test_ids_are_not_repeated_and_labels_hold_their_input(visit):
    with visit() as seen:
        ids = seen.page.eval_on_selector_all("[id]", "nodes => nodes.map(node => node.id)")
        assert len(ids) == len(set(ids))
        loose = "label:not(:has(input, select))"
        assert seen.page.locator(loose).count() == 0


# --- Quiz and Predict ------------------------------------------------------------------------


def test_a_question_is_answered_with_keys_and_explained(visit):
    with visit("quiz") as seen:
        seen.page.get_by_role("radio").first.focus()
        seen.page.keyboard.press("Space")
        seen.button("Answer").click()
        assert seen.status().startswith("✘ not yet: a) 0.25.")
        assert seen.page.get_by_text("four times as likely").is_visible()
        seen.button("Answer again").click()
        seen.page.get_by_label("c) 4").check()
        seen.button("Answer").click()
        assert seen.status().startswith("✔ right: c) 4.")


def test_a_question_without_a_choice_asks_for_one(visit):
    with visit("quiz") as seen:
        seen.button("Answer").click()
        assert seen.status() == "Choose an option, then press Answer."


def test_a_guess_is_kept_and_compared(visit):
    with visit("predict") as seen:
        assert seen.status() == "No guess yet."
        seen.page.get_by_label("Your guess in times").fill("1.2")
        seen.page.keyboard.press("Enter")
        assert seen.status() == "Kept: 1.2 times."
    with visit("choice") as seen:
        seen.page.get_by_role("combobox").select_option("up")
        seen.button("Keep my guess").click()
        assert seen.status() == "Kept: up."
    with visit("measured") as seen:
        assert seen.status() == "You said 1.2, measured 2.77."


# --- looks -----------------------------------------------------------------------------------

LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "large": {"viewport": {"width": 1600, "height": 900}},
    "narrow": {"viewport": {"width": 420, "height": 1000}},
}
# Rectangles of texts in each drawing, and how far they leave it or cover each other.
OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll(".ppo-panels svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((node) => node.textContent
      && getComputedStyle(node).visibility !== "hidden");
    const boxes = texts.map((node) => [node.textContent, node.getBoundingClientRect()]);
    boxes.forEach(([words, a], index) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1
        || a.bottom > frame.bottom + 1) found.push(`${words} is cut`);
      for (const [other, b] of boxes.slice(index + 1)) {
        const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (width > 2 && height > 0.3 * Math.min(a.height, b.height)) {
          found.push(`${words} covers ${other}`);
        }
      }
    });
  }
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
  return found;
}"""


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", ClipRegion.STATES)
def test_in_every_picture_no_label_is_cut_or_covered(visit, tmp_path, state, look):
    with visit(state=state, **LOOKS[look]) as seen:
        if look == "large":
            seen.button("Large text").click()
            seen.page.mouse.move(0, 0)
        assert seen.page.evaluate(OVERLAPS) == []
        folder = Path(PICTURES or tmp_path)
        folder.mkdir(exist_ok=True)
        seen.page.screenshot(path=folder / f"{state}_{look}.png", full_page=True)


@pytest.mark.parametrize("size", [(1280, 720), (1600, 900)])
@pytest.mark.parametrize("state", ClipRegion.STATES)
def test_large_text_fits_a_projector_and_leaves_room_for_the_plot(visit, state, size):
    width, height = size
    look = {"viewport": {"width": width, "height": height}}
    with visit(state=f"{state}?large", **look) as seen:
        assert seen.page.evaluate("document.documentElement.scrollHeight") <= height
        panel = seen.page.locator(".ppo-panels svg").first.bounding_box()
        assert panel["height"] > 0.5 * height


CONTRAST = """() => {
  const channel = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const paper = getComputedStyle(document.querySelector(".ppo")).backgroundColor;
  const seen = {};
  for (const node of document.querySelectorAll(".ppo :is(p, dt, dd, label, .ppo-key, svg text)")) {
    const style = getComputedStyle(node);
    if (!node.textContent.trim() || style.visibility === "hidden") continue;
    const color = node instanceof SVGElement ? style.fill : style.color;
    seen[node.textContent.slice(0, 40)] = ratio(color, paper);
  }
  for (const node of document.querySelectorAll(".ppo .ppo-curve:not(text)")) {
    const { stroke } = getComputedStyle(node);
    seen[`curve ${stroke}`] = ratio(stroke, paper) + 1.5;
  }
  return Object.entries(seen).filter(([, value]) => value < 4.5);
}"""


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("state", ["guess", "samples", "momentum", "unsampled"])
def test_words_and_curves_stand_out_from_the_paper(visit, state, look):
    with visit(state=state, **LOOKS[look]) as seen:
        assert seen.page.evaluate(CONTRAST) == []  # 4.5 for words, 3 for curves (WCAG AA)


def test_without_colours_shapes_still_tell_the_samples_apart(visit):
    with visit(state="samples") as seen:
        shapes = seen.page.eval_on_selector_all(
            ".ppo-sample .ppo-mark",
            "nodes => nodes.map(n => [n.dataset.kind, n.getAttribute('d')])",
        )
        by_kind = {}
        for kind, shape in shapes:
            by_kind.setdefault(kind, set()).add(shape)
        assert all(len(each) == 1 for each in by_kind.values())
        assert len(set().union(*by_kind.values())) == len(by_kind) == 3


def test_the_theme_of_the_notebook_comes_first(visit):
    with visit(state="samples") as seen:
        seen.page.evaluate(
            "document.body.classList.remove('ppo-page');"
            "document.body.dataset.jpThemeLight = 'false';"
            "document.body.style.setProperty('--jp-layout-color0', 'rgb(17, 17, 17)')"
        )
        style = "getComputedStyle(document.querySelector('.ppo'))"
        assert seen.page.evaluate(f"{style}.backgroundColor") == "rgb(17, 17, 17)"
        assert seen.page.evaluate(f"{style}.colorScheme") == "dark"
