"""LiveDashboard: how much it keeps and sends, what is left after an interrupt, what is drawn."""

import json
import os
import signal
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from browsing import CONTRAST, LOOKS, OVERLAPS
from test_widgets import run_in_kernel

from ppo_lessons.notebook import Pace, progress_line
from ppo_lessons.training_loop import PPOConfig, train
from ppo_lessons.widgets import LiveDashboard
from ppo_lessons.widgets.live_dashboard import METRICS, MOST_POINTS, thinned

SMALL = PPOConfig(
    num_envs=2, num_steps=8, total_steps=16 * 6, num_epochs=1, num_minibatches=1, hidden_sizes=(4,)
)


def row(iteration, *, batch_size=16):
    metrics = {name: 1 / (iteration + 1) for name in METRICS}
    return metrics | {
        "iteration": iteration,
        "env_steps": iteration * batch_size,
        "seconds": 0.001,
        "episode_return": None if iteration < 3 else float(iteration),
        "fraction_zero_gradient": 0.3 / (iteration + 1),
        "ev_lambda": 1 - 2 / iteration,
        "ev_monte_carlo": None if iteration % 3 else 0.7 - 2 / iteration,
    }


class Run:
    """A run that costs nothing, with a clock that is moved by hand."""

    def __init__(self, num_iterations):
        self.time = 0.0
        self.config = SimpleNamespace(num_iterations=num_iterations, batch_size=16)
        self.history = SimpleNamespace(rows=[])

    @property
    def iteration(self):
        return len(self.history.rows)

    def step(self, seconds):
        self.time += seconds
        self.history.rows.append(row(len(self.history.rows) + 1))
        return self


def watched(run):
    """A board for a run, and the times at which it sends."""
    board = LiveDashboard(pace=Pace(clock=lambda: run.time))
    times = []
    board.observe(lambda change: times.append(run.time), "now")
    return board, times


# --- how much --------------------------------------------------------------------------------


def test_a_hundred_thousand_calls_send_at_most_ten_messages_a_second_and_keep_few_points():
    run = Run(99_999)
    board, times = watched(run)
    for _ in range(99_999):
        board(run.step(0.001))
    assert len(times) <= 10 * run.time + 2  # the first and the last are sent in any case
    assert min(b - a for a, b in pairwise(times[:-1])) >= 0.1 - 1e-9
    assert times[-1] == run.time
    kept = board.points
    assert sum(len(series) for series in kept.values()) <= MOST_POINTS
    assert {name: series[-1] for name, series in kept.items()} == pytest.approx(
        {name: run.history.rows[-1][name] for name in METRICS}, rel=1e-3
    )
    assert len(json.dumps(kept)) < 30_000  # bytes of a message


def test_one_update_is_one_message(monkeypatch):
    run = Run(100)
    board, _ = watched(run)
    sent = []
    monkeypatch.setattr(type(board), "send_state", lambda self, key: sent.append(set(key)))
    board(run.step(0.01))
    assert sent == [{"points", "now"}]


@pytest.mark.parametrize("length", [0, 1, 2, 221, 222, 223, 1000, 5000])
def test_what_is_kept_is_evenly_spaced_and_ends_with_the_newest(length):
    rows = [row(number) for number in range(1, length + 1)]
    kept = thinned(rows)
    assert sum(map(len, kept.values())) <= MOST_POINTS
    steps = kept["env_steps"]
    assert len(set(steps)) == len(steps)
    if length:
        assert (steps[0], steps[-1]) == (16, 16 * length)
        gaps = {b - a for a, b in pairwise(steps[:-1])}
        assert len(gaps) <= 1


# --- with a real run -------------------------------------------------------------------------


def test_the_last_row_is_that_of_the_history(capsys):
    board = LiveDashboard(SMALL)
    assert repr(board) == "LiveDashboard of 0 iterations"
    history = train(SMALL, on_iteration=board)
    assert board._rows is history.rows
    assert board.points["env_steps"][-1] == history["env_steps"][-1]
    assert board.points["entropy"][-1] == pytest.approx(history["entropy"][-1], rel=1e-3)
    assert repr(board) == "LiveDashboard of 6 iterations"
    assert not board.now["running"]
    lines = capsys.readouterr().out.splitlines()  # in a terminal it prints, as Watch does
    assert 2 <= len(lines) <= 6
    assert "100%" in lines[-1]
    speed = board._pace.steps_per_second
    assert lines[-1] == progress_line(history.rows[-1], total=96, speed=speed)


def test_another_run_takes_its_place():
    board = LiveDashboard(SMALL)
    train(SMALL, on_iteration=board)
    history = train(replace(SMALL, seed=2, total_steps=32), on_iteration=board)
    assert board.points["env_steps"] == history["env_steps"] == [16, 32]
    assert board.now["num_iterations"] == 2


def test_an_interrupt_leaves_a_valid_history_and_a_valid_board():
    # The clock stands still: of this run only the first message is due.
    board = LiveDashboard(SMALL, pace=Pace(clock=lambda: 0.0))

    def stop_in_the_third(state):
        board(state)
        if state.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    history = train(SMALL, on_iteration=stop_in_the_third)
    assert history.stopped == "interrupted"
    assert len(history) == 3
    assert repr(board) == "LiveDashboard of 3 iterations"
    assert len(board.points["env_steps"]) == 1
    board.finish()
    assert board.points["env_steps"] == history["env_steps"]
    assert not board.now["running"]
    assert board.figure().axes


def test_no_thread_is_started():
    before = threading.active_count()
    train(SMALL, on_iteration=LiveDashboard(SMALL))
    assert threading.active_count() == before


# --- in a kernel -----------------------------------------------------------------------------

IN_KERNEL = """
from ppo_lessons.widgets import LiveDashboard
from ppo_lessons.training_loop import PPOConfig, train
config = PPOConfig(num_envs=2, num_steps=8, total_steps=96, num_epochs=1, num_minibatches=1,
                   hidden_sizes=(4,))
board = LiveDashboard(config)
history = train(config, on_iteration=board)
"""
AFTER = (
    "print(board, board._handle is not None, board._pictured, board._sent, board.now['running'])"
)


@pytest.mark.full
def test_in_a_kernel_it_shows_itself_prints_nothing_and_ends_with_a_picture_of_all(tmp_path):
    assert run_in_kernel([IN_KERNEL], tmp_path) == ""
    said = run_in_kernel([IN_KERNEL, AFTER], tmp_path)
    assert said.strip() == "LiveDashboard of 6 iterations True 6 6 False"


@pytest.mark.full
def test_a_built_notebook_holds_the_last_picture_and_the_sentence(tmp_path):
    from tools import build_notebooks

    notebook = build_notebooks.nbformat.v4.new_notebook(
        cells=[build_notebooks.nbformat.v4.new_code_cell(IN_KERNEL.strip())]
    )
    root = build_notebooks.Path(build_notebooks.__file__).resolve().parent.parent
    build_notebooks.execute(notebook, folder=tmp_path, root=root, timeout=60)
    build_notebooks.clean_outputs(notebook)
    assert build_notebooks.output_problems(notebook) == []
    (output,) = notebook.cells[0].outputs
    assert output.data["text/plain"] == "LiveDashboard of 6 iterations"
    assert set(output.data) == {"image/png", "text/plain"}


# --- in a browser ----------------------------------------------------------------------------

# Render with a model that is fed from here; what the curves and the line say.
FEED = """async ([script, traits, updates]) => {
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  const heard = new Map();
  const model = { get: (key) => traits[key], set: (key, value) => { traits[key] = value; },
    on: (name, act) => heard.set(name, act), off: (name) => heard.delete(name), save_changes() {} };
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  window.dispose = widget.render({ model, el });
  const seen = [];
  for (const update of updates) {
    if (update === "pause") el.querySelectorAll(".ppo-body button")[0].click();
    else if (update === "pin") el.querySelectorAll(".ppo-body button")[1].click();
    else {
      Object.assign(traits, update);
      for (const name of Object.keys(update)) heard.get(`change:${name}`)();
    }
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    seen.push({ curve: el.querySelector(".ppo-new").getAttribute("d"),
      pinned: el.querySelector(".ppo-unclipped").getAttribute("d"),
      line: el.querySelector(".ppo-body .ppo-value").textContent,
      said: el.querySelector("[role=status]").textContent });
  }
  window.dispose();
  return seen;
}"""


def update(length, total=40):
    rows = [row(number) for number in range(1, length + 1)]
    now = {"iteration": length, "num_iterations": total, "total_steps": 16 * total}
    now |= {"speed": 1600, "running": length < total}
    return {"points": thinned(rows), "now": now}


def fed(browser, updates):
    page = browser.new_page()
    board = LiveDashboard()
    traits = {name: getattr(board, name) for name in board.synced()}
    try:
        return page.evaluate(FEED, [board._esm, traits, updates])
    finally:
        page.close()


def test_the_page_draws_what_comes(browser):
    ten, twenty, whole = fed(browser, [update(10), update(20), update(40)])
    assert 1 + ten["curve"].count("L") == 8  # the first two iterations had no episode
    assert 1 + twenty["curve"].count("L") == 18
    assert ten["line"] == "iteration 10 of 40, 1,600 steps per second, 0 s left"
    assert (
        ten["said"] == twenty["said"] == "The run is training."
    )  # not read out ten times a second
    assert whole["line"] == "iteration 40 of 40"
    assert whole["said"] == "LiveDashboard of 40 iterations"


def test_an_axis_holds_every_value_of_a_return_below_zero(browser):
    below = update(40)
    below["points"]["episode_return"] = [-500.0 + 10 * number for number in range(40)]
    (seen,) = fed(browser, [below])
    heights = [float(part.split(",")[1]) for part in seen["curve"][1:].split("L")]
    assert 0 < min(heights) < max(heights) < 380 / 3  # within the first of three strips


def test_a_paused_view_stands_still_and_then_catches_up(browser):
    before, _, later, after = fed(browser, [update(10), "pause", update(20), "pause"])
    assert later["curve"] == before["curve"]
    assert 1 + after["curve"].count("L") == 18


def test_a_pinned_run_stays_beside_the_next_one(browser):
    first, pinned, second, gone = fed(browser, [update(40), "pin", update(10), "pin"])
    assert first["pinned"] == ""
    assert pinned["pinned"] == pinned["curve"]
    assert second["pinned"] != second["curve"]
    assert 1 + second["pinned"].count("L") == 38
    assert gone["pinned"] == ""


def test_no_label_is_cut_or_covered(visit, tmp_path):
    folder = Path(os.environ.get("PPO_LESSONS_PICTURES") or tmp_path)
    folder.mkdir(exist_ok=True)
    board = LiveDashboard()
    board.points, board.now = update(33)["points"], update(33)["now"]
    for look, settings in LOOKS.items():
        with visit(board, **settings) as seen:
            if look == "large":
                seen.button("Large text").click()
            assert seen.page.evaluate(OVERLAPS) == [], look
            if look in ("light", "dark"):
                assert seen.page.evaluate(CONTRAST) == [], look
            if look == "grey":
                seen.page.add_style_tag(content="html { filter: grayscale(1); }")
            seen.page.screenshot(path=folder / f"live_dashboard_{look}.png", full_page=True)
