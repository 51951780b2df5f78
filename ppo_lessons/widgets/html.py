"""One file per widget: a page that needs no kernel, no network and no installation.

For a projector, for the web, and for a reader without Python. A state is opened by its name behind
the address, and Page Up and Page Down step through the states, as a clicker sends them.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ppo_lessons.lessons import LESSONS, Lesson
from ppo_lessons.quizzes import all_quizzes
from ppo_lessons.widgets import find_widget
from ppo_lessons.widgets.base import FOLDER, STYLE, Widget, to_json
from ppo_lessons.widgets.messages import say
from ppo_lessons.widgets.quiz import Quiz

PAGE_SCRIPT = (FOLDER / "page.js").read_text(encoding="utf-8")


def page(widgets: Sequence[Widget], *, title: str, back: str = "") -> str:
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
    return _frame(title, "\n".join(parts))


def _script(widget: Widget, place: str) -> str:
    """Give the widget's module with its traits, and what runs it without a kernel."""
    names = [name for name in widget.trait_names(sync=True) if not name.startswith("_")]
    inherited = set(Widget.__mro__[1].class_trait_names())
    traits = {name: getattr(widget, name) for name in sorted(set(names) - inherited)}
    constants = f"const PLACE = {to_json(place)};\nconst TRAITS = {to_json(traits)};"
    return f'<script type="module">\n{widget._esm}\n{constants}\n{PAGE_SCRIPT}</script>'


def _frame(title: str, body: str) -> str:
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


def write_pages(folder: Path) -> list[Path]:
    """Write a page for each widget of the lessons, for the questions, and an index.

    Args:
        folder: where; it is made if it is not there.

    Returns:
        The files, the index last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written, sections = [], []
    for lesson in LESSONS:
        entries = []
        for name, title, text, states in _pages_of(lesson):
            path = folder / name
            path.write_text(text, encoding="utf-8")
            written.append(path)
            entries.append(_entry(name, title, states))
        if entries:
            heading = say("html", "lesson", number=f"{lesson.number:02d}", title=lesson.title)
            sections += [f"<h2>{escape(heading)}</h2>", f"<p>{escape(lesson.question)}</p>"]
            sections += ["<ul>", *entries, "</ul>"]
    title, intro = say("html", "index_title"), say("html", "index_intro")
    body = "\n".join([f"<h1>{escape(title)}</h1>", f"<p>{escape(intro)}</p>", *sections])
    index = folder / "index.html"
    index.write_text(_frame(title, body), encoding="utf-8")
    return [*written, index]


def _pages_of(lesson: Lesson) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Give file name, title, text and named states of each page of a lesson."""
    for name in lesson.widgets:
        widget = find_widget(name)()
        title = widget.title()
        text = page([widget], title=title, back="index.html")
        yield f"{lesson.stem}_{name}.html", title, text, widget.state_titles()
        widget.close()
    asked = [item.id for item in all_quizzes().values() if item.lesson == lesson.name]
    if asked:
        widgets = [Quiz(id) for id in asked]
        title = say("html", "quiz_page")
        heading = f"{title}: {lesson.title}"
        yield f"{lesson.stem}_questions.html", title, page(
            widgets, title=heading, back="index.html"
        ), {}
        for widget in widgets:
            widget.close()


def _entry(name: str, title: str, states: dict[str, str]) -> str:
    links = ", ".join(
        f'<a href="{escape(name)}#{escape(state)}">{escape(words)}</a>'
        for state, words in states.items()
    )
    more = f"<br>{escape(say('html', 'states'))}: {links}" if links else ""
    return f'<li><a href="{escape(name)}">{escape(title)}</a>{more}</li>'
