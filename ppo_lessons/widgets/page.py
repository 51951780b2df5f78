"""Script and style of a widget as text, and the page that holds them: no kernel, no network.

A state is opened by its name behind the address, and Page Up and Page Down step through the
states, as a clicker sends them.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ppo_lessons.widgets.messages import say, words_of

FOLDER = Path(__file__).resolve().parent
STYLE = (FOLDER / "base.css").read_text(encoding="utf-8")
PAGE_SCRIPT = (FOLDER / "page.js").read_text(encoding="utf-8")


def script_of(name: str, states: Mapping[str, Mapping[str, Any]], *, parts: tuple[str, ...]) -> str:
    """Join the shared script, the words, the named states and the widget's own script.

    It is text, not a path: a path would make anywidget watch the file and keep every instance
    of the widget alive (anywidget issue 929).

    Args:
        name: of the widget.
        states: its named states.
        parts: the files of its own script, in order, without their ending.

    Returns:
        One module without imports.
    """
    texts = [(FOLDER / f"{part}.js").read_text(encoding="utf-8") for part in ("base", *parts)]
    constants = {
        "WORDS": words_of(name),
        "STATES": [{"name": key, "patch": dict(state)} for key, state in states.items()],
    }
    lines = [f"const {key} = {to_json(value)};" for key, value in constants.items()]
    return "\n".join([texts[0], *lines, *texts[1:]])


def to_json(value: Any) -> str:
    """Write JSON that may stand inside a script element, the same bytes each time."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def page(widgets: Sequence[Any], *, title: str, back: str = "") -> str:
    """Write one page.

    Args:
        widgets: what it shows, in order.
        title: of the page.
        back: address of the index; no link if it is left out.

    Returns:
        HTML; equal widgets give equal bytes.
    """
    link = f'<p><a href="{escape(back)}">{escape(say("html", "back"))}</a></p>' if back else ""
    parts = [link]
    for number, widget in enumerate(widgets):
        parts += [f'<div id="widget-{number}"></div>', _script(widget, f"widget-{number}")]
    return frame(title, "\n".join(parts))


def _script(widget: Any, place: str) -> str:
    """Give the widget's module with its traits, and what runs it without a kernel."""
    traits = {name: getattr(widget, name) for name in widget.synced()}
    constants = f"const PLACE = {to_json(place)};\nconst TRAITS = {to_json(traits)};"
    return f'<script type="module">\n{widget._esm}\n{constants}\n{PAGE_SCRIPT}</script>'


def frame(title: str, body: str) -> str:
    """Put head and style around the body of a page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{STYLE}</style>
</head>
<body class="ppo-page">
<main>
{body}
</main>
</body>
</html>
"""
