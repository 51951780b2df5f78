"""The folder that `ppo-lessons html` writes: a page for each widget, the questions, an index.

For a projector, for the web, and for a reader without Python.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from ppo_lessons.lessons import LESSONS, Lesson
from ppo_lessons.quizzes import all_quizzes
from ppo_lessons.widgets import find_widget
from ppo_lessons.widgets.messages import say
from ppo_lessons.widgets.page import frame, page
from ppo_lessons.widgets.quiz import Quiz


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
    index.write_text(frame(title, body), encoding="utf-8")
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
        yield (
            f"{lesson.stem}_questions.html",
            title,
            page(widgets, title=heading, back="index.html"),
            {},
        )
        for widget in widgets:
            widget.close()


def _entry(name: str, title: str, states: dict[str, str]) -> str:
    links = ", ".join(
        f'<a href="{escape(name)}#{escape(state)}">{escape(words)}</a>'
        for state, words in states.items()
    )
    more = f"<br>{escape(say('html', 'states'))}: {links}" if links else ""
    return f'<li><a href="{escape(name)}">{escape(title)}</a>{more}</li>'
