"""How fast does a widget follow the hand, in headless Chromium and without a kernel?

    python -m benchmarks.widgets                    every widget that lists a drag
    python -m benchmarks.widgets clip_region        one of them

A real pointer drags one handle through 50 positions. The time runs from the pointer event, seen
first by a listener in the capture phase, to the first change of the handle in the document; the
screen shows it at the next frame. Writes benchmarks/results/widgets.json, where the rows of other
widgets stay.
"""

import json
import math
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.record import RESULTS, write_result
from ppo_lessons.widgets import find_widget
from ppo_lessons.widgets.base import Drag, Widget
from ppo_lessons.widgets.registry import HOME

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
POSITIONS = 50
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "large text": {"large": True},
}

# One record for each pointer event: when it came, when something had changed, where the handle
# stood. A handle is watched itself; a native slider tells nothing, so the drawing is watched.
WATCH = """([selector, index]) => {
  const handle = document.querySelectorAll(selector)[index];
  const native = handle.tagName === "INPUT";
  const value = () => Number(native ? handle.value : handle.getAttribute("aria-valuenow"));
  window.moves = [];
  let came = null;
  window.addEventListener("pointermove", () => { came = performance.now(); }, true);
  new MutationObserver(() => {
    if (came === null) return;
    window.moves.push([performance.now() - came, value()]);
    came = null;
  }).observe(native ? handle.closest(".ppo-body") : handle,
    { attributes: true, subtree: true, childList: true, characterData: true });
}"""
# Where the pointer goes: the frame of the handle's panel, or the input itself.
PLACES = """([selector, index]) => {
  const handle = document.querySelectorAll(selector)[index];
  handle.scrollIntoView({ block: "center" });
  const box = (node) => (({ left, top, width, height }) => [left, top, width, height])(
    node.getBoundingClientRect());
  const frame = handle.closest("svg")?.querySelector(".ppo-frame") ?? handle;
  return [box(frame), box(handle.querySelector(".ppo-hit") ?? handle)];
}"""


def find_chromium() -> str | None:
    """Find a browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def fractions(drag: Drag) -> list[float]:
    """Give the 50 places of a drag, as fractions of its panel."""
    return [
        drag.start + (drag.end - drag.start) * number / (POSITIONS - 1)
        for number in range(POSITIONS)
    ]


def move(
    page: Page, handle: str, places: Sequence[float], *, along: str = "x", index: int = 0
) -> list[tuple[float, float]]:
    """Drag one handle through places.

    Args:
        page: that shows the widget.
        handle: its selector.
        places: where to, in order, as fractions of the panel or of the input.
        along: "x" or "y".
        index: which one of those that the selector finds.

    Returns:
        For each change that was drawn: milliseconds from the event, and the value it stands at.
    """
    frame, hit = page.evaluate(PLACES, [handle, index])
    x, y = hit[0] + hit[2] / 2, hit[1] + hit[3] / 2
    page.evaluate(WATCH, [handle, index])
    page.mouse.move(x, y)
    page.mouse.down()
    for place in places:
        if along == "x":
            page.mouse.move(frame[0] + place * frame[2], y)
        else:
            page.mouse.move(x, frame[1] + (1 - place) * frame[3])
    page.mouse.up()
    return [(ms, value) for ms, value in page.evaluate("window.moves")]


def play(page: Page, drag: Drag) -> list[tuple[float, float]]:
    """Do the drag that a widget lists."""
    return move(page, drag.handle, fractions(drag), along=drag.along, index=drag.index)


def summary(times: Sequence[float]) -> dict[str, float]:
    """Give median, 95th percentile and extremes, in milliseconds."""
    ordered = sorted(times)
    return {
        "moves": len(ordered),
        "median_ms": round(statistics.median(ordered), 2),
        "p95_ms": round(ordered[math.ceil(0.95 * len(ordered)) - 1], 2),
        "fastest_ms": round(ordered[0], 2),
        "slowest_ms": round(ordered[-1], 2),
    }


def measure(browser: Browser, made: type[Widget], folder: Path) -> dict[str, Any]:
    """Do each drag of a widget in each look."""
    path = folder / f"{made.NAME}.html"
    path.write_text(made().to_html(), encoding="utf-8")
    rows = {}
    for drag in made.DRAGS:
        for look, settings in LOOKS.items():
            context = browser.new_context(
                viewport={"width": 1200, "height": 900},
                color_scheme=settings.get("color_scheme", "light"),
            )
            page = context.new_page()
            page.goto(f"{path.as_uri()}#{drag.state}{'?large' if settings.get('large') else ''}")
            play(page, drag)  # the first events compile the script
            page.reload()
            rows[f"{drag.state}, {look}"] = summary([ms for ms, _ in play(page, drag)])
            context.close()
    return {"size_of_page": path.stat().st_size, "looks": rows}


def main() -> None:
    """Measure and write."""
    names = sys.argv[1:] or [name for name in HOME.values() if find_widget(name).DRAGS]
    stored = RESULTS / "widgets.json"
    former = json.loads(stored.read_text("utf-8")).get("widgets", {}) if stored.exists() else {}
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        found = {name: measure(browser, find_widget(name), Path(folder)) for name in names}
        version = browser.version
    widgets = {name: row for name, row in (former | found).items() if name in HOME.values()}
    content = {"browser": version, "widgets": dict(sorted(widgets.items()))}
    path = write_result("widgets", "python -m benchmarks.widgets", content)
    for name, about in found.items():
        for look, row in about["looks"].items():
            times = f"median {row['median_ms']} ms, p95 {row['p95_ms']} ms, {row['moves']} moves"
            print(f"{name:18} {look:28} {times}")
    print(path)


if __name__ == "__main__":
    main()
