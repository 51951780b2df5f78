"""How fast does ClipRegion follow the hand, in headless Chromium and without a kernel?

    python -m benchmarks.widgets

A real pointer drags one sample through 50 positions. The time runs from the pointer event, seen
first by a listener in the capture phase, to the first change of the sample in the document; the
screen shows it at the next frame. Writes benchmarks/results/widgets.json.
"""

import math
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.record import write_result
from ppo_lessons.widgets import ClipRegion

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
SAMPLE = ".ppo-better .ppo-sample"
POSITIONS = 50

# One record for each pointer event: when it came, when the sample had changed, where it stood.
WATCH = """([selector, index]) => {
  const sample = document.querySelectorAll(selector)[index];
  window.moves = [];
  let came = null;
  window.addEventListener("pointermove", () => { came = performance.now(); }, true);
  new MutationObserver(() => {
    if (came === null) return;
    window.moves.push([performance.now() - came, Number(sample.getAttribute("aria-valuenow"))]);
    came = null;
  }).observe(sample, { attributes: true, attributeFilter: ["transform"] });
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


def drag(page: Page, ratios: Sequence[float], *, index: int = 0) -> list[tuple[float, float]]:
    """Drag one sample with advantage above 0 through ratios.

    Args:
        page: that shows ClipRegion.
        ratios: where to, in order.
        index: of the sample among those of its panel.

    Returns:
        For each change that was drawn: milliseconds from the event, and the ratio it stands at.
    """
    sample = page.locator(SAMPLE).nth(index)
    sample.scroll_into_view_if_needed()
    panel = page.locator("svg.ppo-better").bounding_box()
    edges = page.locator("svg.ppo-better .ppo-frame").bounding_box()
    hit = sample.locator(".ppo-hit").bounding_box()
    assert panel
    assert edges
    assert hit
    middle = hit["y"] + hit["height"] / 2
    page.evaluate(WATCH, [SAMPLE, index])
    page.mouse.move(hit["x"] + hit["width"] / 2, middle)
    page.mouse.down()
    for ratio in ratios:
        page.mouse.move(edges["x"] + ratio / 2.2 * edges["width"], middle)
    page.mouse.up()
    return [(ms, value) for ms, value in page.evaluate("window.moves")]


def fifty() -> list[float]:
    """Give 50 ratios over both edges of the band, no two alike after snapping."""
    return [0.405 + 0.03 * number for number in range(POSITIONS)]


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


def measure() -> dict[str, Any]:
    """Drag in each of the looks, with and without the answer shown."""
    looks: dict[str, dict[str, Any]] = {
        "revealed": {"state": "samples"},
        "before the guess": {"state": "guess"},
        "dark": {"state": "samples", "color_scheme": "dark"},
        "large text": {"state": "samples", "large": True},
    }
    rows = {}
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        path = Path(folder) / "clip_region.html"
        path.write_text(ClipRegion().to_html(), encoding="utf-8")
        for name, look in looks.items():
            context = browser.new_context(
                viewport={"width": 1200, "height": 900},
                color_scheme=look.get("color_scheme", "light"),
            )
            page = context.new_page()
            page.goto(f"{path.as_uri()}#{look['state']}")
            if look.get("large"):
                page.get_by_role("button", name="Large text").click()
            drag(page, [0.7, 1.1], index=1)  # the first events compile the script
            page.reload()
            rows[name] = summary([ms for ms, _ in drag(page, fifty())])
            context.close()
        return {"browser": browser.version, "size_of_page": path.stat().st_size, "looks": rows}


def main() -> None:
    """Measure and write."""
    content = measure()
    path = write_result("widgets", "python -m benchmarks.widgets", content)
    for name, row in content["looks"].items():
        print(f"{name:18} median {row['median_ms']} ms, p95 {row['p95_ms']} ms, {row['moves']}")
    print(path)


if __name__ == "__main__":
    main()
