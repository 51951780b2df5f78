"""ClipRegion in a real JupyterLab: run, drag, scroll, save, reload, a busy kernel, no kernel.

LiveDashboard, too: it is there for a busy kernel.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest

from tools import build_notebooks

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
from benchmarks import widgets as bench  # noqa: E402  (it needs playwright, too)

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "course"
BUSY = "import time\nend = time.time() + 10\nwhile time.time() < end: pass\nprint('free again')"
COUNT = (
    "import gc\ngc.collect()\n"
    "print('live:', sum(issubclass(type(each), ClipRegion) for each in gc.get_objects()))"
)
STATE = "print('state:', widget.clip_epsilon, widget.ratios[2], round(widget.mean_objective, 4))"
SAMPLE = ".ppo-better .ppo-handle"
FIFTY = [0.405 + 0.03 * number for number in range(50)]
SHOWN = "from ppo_lessons.widgets import ClipRegion\nwidget = ClipRegion(revealed=True)\nwidget"

pytestmark = [pytest.mark.full, pytest.mark.timeout(240)]


def drag(seen, ratios):
    """Drag the third sample; the ratios that were drawn."""
    places = [ratio / 2.2 for ratio in ratios]
    return [ratio for _, ratio in bench.move(seen.page, SAMPLE, places, index=2)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Address and folder of a JupyterLab that knows nothing of the user's settings."""
    folder = tmp_path_factory.mktemp("lab")
    work = folder / "work"
    work.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    homes = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *(f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}"),
            *(f"--ServerApp.root_dir={work}", "--LabApp.expose_app_in_browser=True"),
            f"--LabApp.workspaces_dir={folder / 'workspaces'}",
            f"--LabApp.user_settings_dir={folder / 'settings'}",
        ],
        env={**os.environ, **homes, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=(folder / "log").open("w"),
        stderr=subprocess.STDOUT,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{address}/api/status?token={TOKEN}"), seconds=60)
        yield address, work
    finally:
        process.terminate()
        process.wait(30)


def answers(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def wait_for(condition, *, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.1)
    raise AssertionError(f"{condition} did not come true within {seconds} s")


class Lab:
    """One notebook, open in JupyterLab."""

    def __init__(self, browser, lab, name, cells):
        self.address, self.folder = lab
        self.path = self.folder / f"{name}.ipynb"
        text = "\n\n".join(["A line of text."] * 4)
        filler = [nbformat.v4.new_markdown_cell(text) for _ in range(30)]
        notebook = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_code_cell(SHOWN),
                *filler,
                *map(nbformat.v4.new_code_cell, cells),
            ],
            metadata={
                "kernelspec": build_notebooks.KERNELSPEC,
                "language_info": build_notebooks.LANGUAGE_INFO,
            },
        )
        nbformat.write(notebook, self.path)
        self.context = browser.new_context(viewport={"width": 1400, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("dialog", lambda dialog: dialog.accept())  # "leave the page?"
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.open()

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.context.close()
        self.stop_kernels()
        if kind is None:
            assert self.errors == []

    def open(self):
        self.page.goto(f"{self.address}/lab/tree/{self.path.name}?token={TOKEN}&reset")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(
            timeout=60_000
        )

    def command(self, name):
        # void: what a command returns is not for this side, and may never come
        self.page.evaluate(f"void window.jupyterapp.commands.execute('{name}')")

    def run(self, *, first):
        """Run the cell whose source starts with these words; leave it running."""
        scroll(self, 0 if first in SHOWN else 1e6)  # cells far away are not in the page
        cell = self.page.locator(".jp-CodeCell", has_text=first).first
        cell.locator(".jp-InputArea-prompt").click()
        self.page.keyboard.press("Control+Enter")

    def run_and_read(self, *, first, words):
        """Run a cell and return the line that it prints, which starts with these words."""
        self.run(first=first)
        line = self.page.locator(".jp-OutputArea-output pre", has_text=words)
        line.wait_for(timeout=60_000)
        self.idle()
        return line.last.inner_text().strip()

    def idle(self):
        self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(
            timeout=60_000
        )

    def show(self):
        """Run the widget's cell; again if JupyterLab has swallowed the keys, as it may at first."""
        samples = self.page.locator(".ppo-handle")
        # On a busy machine the first keys may come before the kernel, and JupyterLab asks for one.
        chosen = self.page.locator(".jp-Dialog:has-text('Select Kernel') .jp-mod-accept")
        for _ in range(4):
            if chosen.count():
                chosen.click()
            self.run(first="from ppo_lessons.widgets")
            with contextlib.suppress(playwright.TimeoutError):
                samples.first.wait_for(state="attached", timeout=25_000)
                break
        assert samples.count() > 0
        self.idle()

    def shown(self):
        """Number of the widget's third sample, as the page has it."""
        sample = self.page.locator(SAMPLE).nth(2)
        sample.wait_for(timeout=60_000)
        return float(sample.get_attribute("aria-valuenow"))

    def stored(self):
        return json.loads(self.path.read_text(encoding="utf-8"))

    def stop_kernels(self):
        for kernel in json.load(self.request("/api/kernels")):
            self.request(f"/api/kernels/{kernel['id']}", method="DELETE")
        for session in json.load(self.request("/api/sessions")):
            self.request(f"/api/sessions/{session['id']}", method="DELETE")

    def request(self, path, method="GET"):
        headers = {"Authorization": f"token {TOKEN}"}
        return urllib.request.urlopen(
            urllib.request.Request(self.address + path, method=method, headers=headers)
        )


def test_drag_scroll_away_save_with_the_keyboard_and_reload(browser, lab):
    with Lab(browser, lab, "whole", [STATE]) as seen:
        seen.show()
        scroll(seen, 0)
        drawn = drag(seen, FIFTY)
        assert len(set(drawn)) == 50
        last = seen.shown()
        assert last == pytest.approx(FIFTY[-1], abs=0.011)

        # The kernel gets the value at rest.
        line = seen.run_and_read(first="print('state:'", words="state:")
        assert line.split()[:3] == ["state:", "0.2", str(last)]

        scroll(seen, 1e6)
        seen.page.wait_for_timeout(300)
        scroll(seen, 0)
        assert seen.shown() == last

        # Ctrl+S with the focus inside of the widget saves the notebook.
        seen.page.locator(f"{SAMPLE}[tabindex='0']").focus()
        seen.page.keyboard.press("Control+s")
        wait_for(lambda: seen.stored()["cells"][0]["outputs"])

        seen.page.reload()
        seen.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        assert seen.shown() == last


def scroll(seen, top):
    seen.page.evaluate(
        "(top) => { document.querySelector('.jp-WindowedPanel-outer').scrollTop = top; }", top
    )
    seen.page.wait_for_timeout(300)


def test_it_follows_the_hand_while_the_kernel_is_busy(browser, lab):
    with Lab(browser, lab, "busy", [BUSY, STATE]) as seen:
        seen.show()
        seen.run(first="import time")
        seen.page.locator(".jp-Notebook-ExecutionIndicator[data-status=busy]").wait_for()
        scroll(seen, 0)
        positions = FIFTY[::2]
        drawn = drag(seen, positions)
        busy = seen.page.locator(".jp-Notebook-ExecutionIndicator[data-status=busy]")
        assert busy.count() == 1, "the drag took longer than the busy cell"
        assert len(set(drawn)) == len(positions)
        last = seen.shown()
        seen.page.locator(".jp-OutputArea-output pre", has_text="free again").wait_for(
            timeout=60_000
        )
        line = seen.run_and_read(first="print('state:'", words="state:")
        assert line.split()[2] == str(last)


def test_a_cell_run_again_and_again_leaves_one_widget(browser, lab):
    with Lab(browser, lab, "again", [COUNT]) as seen:
        seen.show()
        for _ in range(6):
            seen.run(first="from ppo_lessons.widgets")
            seen.idle()
        seen.page.wait_for_timeout(500)
        assert seen.page.locator(".ppo").count() == 1
        assert seen.run_and_read(first="import gc", words="live:") == "live: 1"


def test_a_built_notebook_opened_without_running_shows_the_picture(browser, lab):
    with Lab(browser, lab, "built", [STATE]) as seen:
        seen.show()
        seen.command("docmanager:save")
        wait_for(lambda: seen.stored()["cells"][0]["outputs"])
        seen.page.goto("about:blank")
        seen.stop_kernels()
        notebook = nbformat.read(seen.path, as_version=4)
        build_notebooks.clean_outputs(notebook)  # as the builder stores it
        nbformat.write(notebook, seen.path)
        seen.open()
        picture = seen.page.locator(".jp-OutputArea-output img")
        picture.wait_for()
        assert picture.evaluate("image => image.naturalWidth") > 500
        # JupyterLab 4.6 gives an image no alternative text; it stands in the file for who does.
        assert "13 of 24 samples left" in notebook.cells[0].outputs[0].metadata["image/png"]["alt"]
        assert seen.page.get_by_text("Error displaying widget").count() == 0
        assert seen.page.get_by_text("model not found").count() == 0


def test_the_dark_theme_reaches_the_widget(browser, lab, tmp_path):
    with Lab(browser, lab, "dark", [STATE]) as seen:
        seen.show()
        seen.page.evaluate(
            "void window.jupyterapp.commands.execute("
            "'apputils:change-theme', { theme: 'JupyterLab Dark' })"
        )
        seen.page.locator("[data-jp-theme-light=false]").wait_for(state="attached")
        style = "getComputedStyle(document.querySelector('.ppo'))"
        wait_for(lambda: seen.page.evaluate(f"{style}.colorScheme") == "dark")
        scroll(seen, 0)
        folder = Path(os.environ.get("PPO_LESSONS_PICTURES") or tmp_path)
        seen.page.screenshot(path=folder / "jupyterlab_dark.png")


LONG = """from ppo_lessons.widgets import LiveDashboard
from ppo_lessons.training_loop import PPOConfig, train
config = PPOConfig(total_steps=400_000)
board = LiveDashboard(config)
history = train(config, on_iteration=board)"""
LENGTH = "print('rows:', len(history), history.stopped, board)"


def test_a_run_is_seen_while_its_cell_is_busy_and_the_stop_button_leaves_all_valid(browser, lab):
    with Lab(browser, lab, "live", [LONG, LENGTH]) as seen:
        seen.show()
        seen.run(first="from ppo_lessons.widgets import LiveDashboard")
        board = seen.page.get_by_role("group", name="Live dashboard")
        board.wait_for(timeout=60_000)
        progress = board.locator(".ppo-body .ppo-value")
        lines = set()
        for _ in range(60):
            lines.add(progress.inner_text())
            seen.page.wait_for_timeout(100)
        busy = seen.page.locator(".jp-Notebook-ExecutionIndicator[data-status=busy]")
        assert busy.count() == 1
        assert len(lines) > 4, lines
        folder = Path(os.environ.get("PPO_LESSONS_PICTURES") or lab[1])
        seen.page.screenshot(path=folder / "jupyterlab_live.png")
        seen.command("notebook:interrupt-kernel")
        seen.idle()
        said = seen.run_and_read(first="print('rows:'", words="rows:").split(maxsplit=3)
        assert said[2:] == ["interrupted", f"LiveDashboard of {said[1]} iterations"]
        assert board.count() == 1
        assert board.get_by_role("status").inner_text() == said[3]
