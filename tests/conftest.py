"""One torch thread, properties without a clock, one browser: a busy machine fails no test."""

import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# The tree under test comes first, whatever is installed; `tools` is no installed package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

torch.set_num_threads(1)
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Whatever uses the browser is marked so."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def browser():
    """Headless chromium. One per module: its loop would disturb other modules' loops."""
    pytest.importorskip("playwright.sync_api", reason="needs playwright")
    from benchmarks import widgets as bench

    if bench.find_chromium() is None:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail("chromium is missing, and CI must have it: apt-get install chromium")
        pytest.skip("needs chromium, which is not installed")
    with bench.launched() as running:
        yield running


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a widget: `with visit(ClipRegion(), state="samples") as seen`."""
    from browsing import Visit

    def open_page(widget, **look):
        file = tmp_path / "page.html"
        file.write_text(widget.to_html(), encoding="utf-8")
        return Visit(browser, file, **look)

    return open_page


@pytest.fixture
def no_store(monkeypatch):
    """Predictions and answers stay in this test."""
    from ppo_lessons import progress

    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    for section in progress.SECTIONS:
        monkeypatch.setitem(progress._session, section, {})
