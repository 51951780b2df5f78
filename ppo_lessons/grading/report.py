"""What do teacher and students get? A gradebook, a page for each student, a page on the class.

Whatever came from a student (a name, a file's name, a traceback) is escaped, and the pages forbid
scripts. Of a hidden check only its title is said.
"""

import base64
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from statistics import mean, median
from typing import Any

from ppo_lessons.grading.results import file_name, write_whole
from ppo_lessons.grading.types import CheckResult, QuestionResult, Result
from ppo_lessons.grading.verdict import sentence_of
from ppo_lessons.lessons import find_lesson

SCORED = ("graded", "timeout")
FORMULA = ("=", "+", "-", "@")  # what a spreadsheet may run
STATUS = {
    "graded": "graded",
    "timeout": "graded up to the time limit",
    "rejected": "not readable",
    "infrastructure-error": "no verdict yet",
    "missing": "nothing handed in",
}
NO_VERDICT = (
    "The grader could not finish. This is no verdict about your answers: your teacher knows."
)
IN_ZIP = re.compile(r"(?<=\.zip)!", re.IGNORECASE)
THE_FILE, NOTHING = "the file ", "nothing was handed in"  # as the reading of files says it
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+.!|~&-])")


def write_reports(results: Sequence[Result], out: Path) -> list[Path]:
    """Write `gradebook.csv`, `feedback/<student>.html` and `.md`, and `class.html`.

    Args:
        results: of one assignment; at least one.
        out: the folder.

    Returns:
        What was written: gradebook, class page, then the pages of students.

    Raises:
        ValueError: if there is no result.
    """
    if not results:
        raise ValueError("there is no result; expected those of a run. Grade first.")
    ordered = sorted(results, key=lambda result: result.student)
    texts = {out / "gradebook.csv": "\ufeff" + gradebook(ordered)}  # Excel wants the mark
    texts[out / "class.html"] = class_page(ordered)
    for result in ordered:
        name = file_name(result.student)
        texts[out / "feedback" / f"{name}.html"] = feedback_html(result)
        texts[out / "feedback" / f"{name}.md"] = feedback_markdown(result)
    for path, text in texts.items():
        write_whole(path, text, synced=False)
    return list(texts)


# --- the gradebook -------------------------------------------------------------------------


def gradebook(results: Sequence[Result]) -> str:
    """Write the table: a row for each student, in order; no cell starts a formula.

    Args:
        results: of one assignment.

    Returns:
        CSV. The seconds stand last: nothing else differs between two runs.
    """
    ids = question_ids(results)
    head = ["student", "name", "assignment", "status", "points", "max_points", *ids, "reason"]
    tail = ["notes", "source", "submission_sha256", "reference_sha256", "environment", "seed"]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([safe(each) for each in [*head, *tail, "isolation", "key", "seconds"]])
    for result in results:
        by_id = {question.id: number(question.points) for question in result.questions}
        row = [
            *(result.student, result.name, result.assignment, result.status),
            number(result.points) if has_points(result) else "",
            number(result.max_points),
            *(by_id.get(id, "") for id in ids),
            *(result.reason, "; ".join(result.notes), result.source),
            *(result.submission_sha256, result.reference_sha256, result.environment),
            *(str(result.seed), result.isolation, result.key, f"{result.seconds:.1f}"),
        ]
        writer.writerow([safe(each) for each in row])
    return table.getvalue()


def question_ids(results: Iterable[Result]) -> list[str]:
    """List the questions of all results, in order."""
    return list(dict.fromkeys(each.id for result in results for each in result.questions))


def safe(text: str) -> str:
    """Write a cell on one line, and keep a spreadsheet from running what a student wrote."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return f"'{line}" if line.lstrip().startswith(FORMULA) else line


def number(value: float) -> str:
    """Write points."""
    return f"{round(value, 2) + 0.0:g}"


# --- a student's page ----------------------------------------------------------------------


def heading(result: Result) -> str:
    """Name the assignment in words."""
    try:
        lesson = find_lesson(result.assignment.partition("_")[0])
    except ValueError:
        return result.assignment
    return f"Exercises {lesson.number:02d}: {lesson.title}"


def has_points(result: Result) -> bool:
    """Whether a row counts; what was not handed in or not readable counts zero."""
    return result.status != "infrastructure-error"


def verdict_of(result: Result) -> str:
    """Say in one sentence what became of the file."""
    if result.status == "infrastructure-error":
        return NO_VERDICT
    told = without_folder(result.reason, result)
    reason = told.strip().rstrip(".")
    if result.status == "missing":
        said, known = "No file of yours was found", reason in ("", NOTHING)
        return ended(said if known else f"{said}: {reason}")
    if result.status == "rejected":
        what, problem = "graded", reason
        if reason.startswith(THE_FILE):
            what, problem = "read", f"it {reason.removeprefix(THE_FILE)}"
        if problem.startswith("it cannot be read"):
            return ended(f"Your file {problem.removeprefix('it ')}")
        return ended(f"Your file could not be {what}{f': {problem}' if problem else ''}")
    return told


def ended(sentence: str) -> str:
    """Put a full stop behind a sentence that has no end yet."""
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def file_of(result: Result) -> str:
    """Name a file without the teacher's folders: its name, and where it lies inside a zip file."""
    outer, *inside = IN_ZIP.split(result.source, maxsplit=1)
    return "!".join([outer.rpartition("/")[2], *inside])


def without_folder(text: str, result: Result) -> str:
    """Leave the teacher's folders out where a sentence names a file: the one, or those around."""
    folder = result.source.removesuffix(file_of(result))
    ends = [place for place, sign in enumerate(folder, 1) if sign == "/" and place > 1]
    around = "|".join(re.escape(folder[:end]) for end in reversed(ends))
    return re.sub(rf"(?<![\w/.!])(?:{around})", "", text) if around else text


def counted(count: int, thing: str) -> str:
    """Write how many there are: 1 student, 2 students."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def mark_of(check: CheckResult) -> str:
    """Say in a sign and a word whether a check was passed."""
    return "✔ passed" if check.passed else "✘ not passed"


def mistake_of(question: QuestionResult) -> tuple[str, str]:
    """Say which usual mistake an answer makes: a few words, and what is known about it."""
    if question.mistake == "not_written":
        return "", "You left this question as it was."
    sentence = sentence_of(question.id, question.mistake) if question.mistake else ""
    return (f"Looks like `{question.mistake}`." if sentence else "", sentence)


def prose(text: str) -> str:
    """Write a sentence of the course, in which code stands between backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def feedback_html(result: Result) -> str:
    """Write a student's page; whatever came from the student is escaped.

    Args:
        result: of one student.

    Returns:
        A page that needs no network and runs no script.
    """
    who = result.name or result.student
    parts = [f'<p class="who">{escape(who)}</p>', f"<h1>{escape(heading(result))}</h1>"]
    if has_points(result):
        parts.append(score_html(result))
    if verdict := verdict_of(result):
        parts.append(f'<p class="notice">{escape(verdict)}</p>')
    if result.notes:
        parts.append(
            "<h2>What was noted</h2>" + list_html(without_folder(n, result) for n in result.notes)
        )
    parts += [question_html(each, n) for n, each in enumerate(result.questions, 1)]
    if result.questions:
        parts.append(ABOUT_HIDDEN)
    parts.append(footer_html(result))
    return page_html(f"{who}: {heading(result)}", "\n".join(parts))


ABOUT_HIDDEN = (
    '<p class="small">A <em>hidden</em> check calls your answer with other numbers than the check '
    "of the notebook does. A right answer passes both; one that fits only the numbers of the "
    "notebook passes the visible one.</p>"
)


def score_html(result: Result) -> str:
    """Write the points as a number and as a bar."""
    share = 100 * result.points / result.max_points if result.max_points else 0
    return (
        f'<p class="score"><strong>{number(result.points)}</strong> of '
        f"{number(result.max_points)} points</p>"
        f'<div class="bar" aria-hidden="true"><span style="width:{share:.1f}%"></span></div>'
    )


def question_html(question: QuestionResult, place: int) -> str:
    """Write one question: its checks, what is known of the mistake, the student's own error."""
    rows = "".join(
        f'<tr class="{"yes" if check.passed else "no"}"><td>{mark_of(check)}</td>'
        f"<td>{escape(check.title)}"
        f"{' <span class=tag>hidden</span>' if check.hidden else ''}</td>"
        f'<td class="number">{number(check.points)} of {number(check.max_points)}</td></tr>'
        for check in question.checks
    )
    points = f"{number(question.points)} of {number(question.max_points)}"
    parts = [
        f'<section><h2>{place}. {escape(question.title)} <span class="points">{points}</span></h2>'
    ]
    parts += [f'<p class="small">{escape(note)}</p>' for note in question.notes]
    words, sentence = mistake_of(question)
    if sentence:
        parts.append(f'<p class="notice"><strong>{prose(words)}</strong> {prose(sentence)}</p>')
    if question.error:
        parts.append(f"<p>Your cell stopped:</p><pre>{escape(question.error)}</pre>")
    return "\n".join([*parts, f"<table>{rows}</table></section>"])


def list_html(lines: Iterable[str]) -> str:
    """Write a list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def footer_html(result: Result) -> str:
    """Write what a teacher needs to find this verdict again."""
    return f'<p class="small foot">{escape(trace(result))}</p>'


def trace(result: Result) -> str:
    """Name file, reference and verdict by their hashes."""
    parts = {
        "file": file_of(result),
        "its SHA-256": result.submission_sha256[:12],
        "verdict": result.key[:12],
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


def feedback_markdown(result: Result) -> str:
    """Write the same as Markdown.

    Args:
        result: of one student.

    Returns:
        Text in which nothing of the student's is markup.
    """
    lines = [f"# {plain(heading(result))}", "", plain(result.name or result.student), ""]
    if has_points(result):
        lines += [f"**{number(result.points)} of {number(result.max_points)} points**", ""]
    if verdict := verdict_of(result):
        lines += [f"> {plain(verdict)}", ""]
    if result.notes:
        lines += ["## What was noted", "", ""]
        lines += [*(f"- {plain(without_folder(n, result))}" for n in result.notes), ""]
    for place, question in enumerate(result.questions, 1):
        lines += question_markdown(question, place)
    return "\n".join([*lines, plain(trace(result)), ""])


def question_markdown(question: QuestionResult, place: int) -> list[str]:
    """Write one question."""
    points = f"{number(question.points)} of {number(question.max_points)}"
    lines = [f"## {place}. {plain(question.title)} ({points})", ""]
    for note in question.notes:
        lines += [plain(note), ""]
    words, sentence = mistake_of(question)
    if sentence:
        lines += [f"{words} {plain(sentence)}".strip(), ""]
    if question.error:
        fence = "`" * (max(map(len, re.findall("`+", question.error)), default=0) + 3)
        lines += ["Your cell stopped:", "", f"{fence}text", question.error, fence, ""]
    for check in question.checks:
        hidden = " (hidden)" if check.hidden else ""
        given = f"{number(check.points)} of {number(check.max_points)}"
        lines.append(f"- {mark_of(check)}: {plain(check.title)}{hidden}, {given}")
    return [*lines, ""]


def plain(text: str) -> str:
    """Make Markdown show a text as it is."""
    return (
        MARKDOWN.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\&", "&amp;")
    )


# --- the page on the class -----------------------------------------------------------------


def class_page(results: Sequence[Result]) -> str:
    """Write the page on the class, with its pictures inside.

    Args:
        results: of one assignment; at least one.

    Returns:
        A page that needs no network and runs no script.
    """
    scored = [result for result in results if result.status in SCORED]
    parts = [f"<h1>{escape(heading(results[0]))}</h1>", numbers_html(results, scored)]
    parts += attention_html(results)
    if scored:
        parts += [*pictures_html(scored), mistakes_html(scored)]
    parts.append(students_html(results))
    return page_html(f"Class report: {heading(results[0])}", "\n".join(parts))


def numbers_html(results: Sequence[Result], scored: Sequence[Result]) -> str:
    """Write how many there are, and the middle of their points."""
    counts = Counter(result.status for result in results)
    tiles = [(str(len(results)), "student" if len(results) == 1 else "students")]
    tiles += [(str(counts[status]), words) for status, words in STATUS.items() if counts[status]]
    if scored:
        points, most = [result.points for result in scored], number(scored[0].max_points)
        who = f"of the {len(scored)} graded, of {most} points"
        tiles.append((f"{mean(points):.1f}", f"mean {who}"))
        tiles.append((f"{median(points):.1f}", f"median {who}"))
    shown = "".join(f"<div><strong>{value}</strong>{words}</div>" for value, words in tiles)
    return f'<div class="tiles">{shown}</div>'


def attention_html(results: Sequence[Result]) -> Iterator[str]:
    """Write what a teacher must look at: rows without a verdict, and rows without a sandbox."""
    loose = [result for result in results if result.isolation == "none"]
    if loose:
        yield (
            f'<p class="notice">{len(loose)} of {len(results)} were run without a sandbox '
            "(isolation none). Whoever wrote such a file could read and change whatever the "
            "grader's account can.</p>"
        )
    rows = [
        [
            *(result.student, result.name, STATUS[result.status]),
            *(without_folder(result.reason, result), file_of(result)),
        ]
        for result in results
        if result.status not in ("graded", "missing")
    ]
    if rows:
        yield "<h2>Look at these</h2>"
        yield table_html(["student", "name", "status", "reason", "file"], rows)
    missing = [result.name or result.student for result in results if result.status == "missing"]
    if missing:
        yield f"<h2>Nothing handed in</h2><p>{escape(', '.join(missing))}</p>"


def pictures_html(scored: Sequence[Result]) -> Iterator[str]:
    """Draw the points and the hardest checks."""
    from ppo_lessons.figures.grading import checks_figure, points_figure

    points, most = [result.points for result in scored], scored[0].max_points
    who = counted(len(points), "graded student")
    words = f"Points of {who}: median {median(points):.1f} of {number(most)}."
    yield "<h2>Points</h2>"
    yield picture_html(lambda dark: points_figure(points, most, dark=dark), words)
    failed = failed_checks(scored)
    hardest = hardest_checks(failed)[:12]
    if hardest:
        titles, shares = [title for title, _ in hardest], [share for _, share in hardest]
        words = "; ".join(f"{title}: {100 * share:.0f} %" for title, share in hardest)
        yield "<h2>Hardest checks</h2>"
        yield picture_html(lambda dark: checks_figure(titles, shares, dark=dark), words)
        if more := sum(map(len, failed)) - len(hardest):
            lot = f"{more} more check was" if more == 1 else f"{more} more checks were"
            yield (
                f'<p class="small">{lot} not passed by everybody. The picture shows at most three '
                "of each question, and twelve in all.</p>"
            )


def failed_checks(scored: Sequence[Result]) -> list[list[tuple[str, float]]]:
    """List the checks that not everybody passed, with the share of students that did.

    Args:
        scored: results with points.

    Returns:
        One list for each question, hardest first.
    """
    passed: dict[str, dict[str, list[bool]]] = {}
    for result in scored:
        for question in result.questions:
            of_question = passed.setdefault(question.title, {})
            for check in question.checks:
                title = f"{check.title}{' (hidden)' if check.hidden else ''}"
                of_question.setdefault(title, []).append(check.passed)
    found = []
    for question, checks in passed.items():
        shares = [(f"{question}: {title}", mean(map(int, each))) for title, each in checks.items()]
        found.append(sorted([each for each in shares if each[1] < 1], key=lambda each: each[1]))
    return found


def hardest_checks(failed: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
    """List at most three checks of each question, hardest first."""
    return sorted([each for checks in failed for each in checks[:3]], key=lambda each: each[1])


def picture_html(draw: Any, words: str) -> str:
    """Draw for light and for dark pages; the browser takes the one that fits."""
    light, dark = (png(draw(dark)) for dark in (False, True))
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(words)}"></picture>'
    )


def png(figure: Any) -> str:
    """Write a figure as an address that holds it; equal figures give equal text."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=144, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def mistakes_html(scored: Sequence[Result]) -> str:
    """Write which mistakes are common, with the sentence that students read."""
    counts = Counter(
        (question.title, question.id, question.mistake)
        for result in scored
        for question in result.questions
        if question.mistake not in ("", "not_written")  # not to have tried is no mistake
    )
    if not counts:
        return ""
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:12]
    rows = "".join(
        f'<tr><td class="count">{count}</td><td>{escape(title)}: <code>{escape(mistake)}</code>'
        f"<br>{prose(sentence_of(id, mistake))}</td></tr>"
        for (title, id, mistake), count in common
    )
    return f"<h2>Commonest mistakes</h2><table><tr><th>students</th><th></th></tr>{rows}</table>"


def students_html(results: Sequence[Result]) -> str:
    """Write all students, each with a link to the page."""
    rows = "".join(
        f'<tr><td><a href="feedback/{escape(link(result.student))}.html">'
        f"{escape(result.student)}</a></td><td>{escape(result.name)}</td>"
        f"<td>{STATUS[result.status]}</td>"
        f'<td class="number">{number(result.points) if has_points(result) else "–"}</td>'
        f'<td class="text">{escape(without_folder("; ".join(result.notes), result))}</td></tr>'
        for result in results
    )
    head = "".join(f"<th>{name}</th>" for name in ("student", "name", "status", "points", "notes"))
    who = f"{'All ' if len(results) > 1 else ''}{counted(len(results), 'student')}"
    return (
        f"<details><summary>{who}</summary>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div></details>'
    )


def link(student: str) -> str:
    """Write a file's name as part of an address; its own percent signs are escaped once more."""
    return file_name(student).replace("%", "%25").replace(" ", "%20")


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of texts."""
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f'<td class="text">{escape(cell)}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>{body}</table></div>'


# --- how the pages look --------------------------------------------------------------------


def page_html(title: str, body: str) -> str:
    """Put head and style around the body of a page; it may load nothing and run nothing."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""


STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #5b636d; --paper: #ffffff;
  --line: #d8dde3; --wash: #f4f6f8; --good: #006b4d; --bad: #a84300; --bar: #0072b2;
  --notice: #fff6e5; --edge: #d98a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #a8b0ba; --paper: #1b1d21;
  --line: #3a3f47; --wash: #25282d; --good: #4fc79a; --bad: #ff9d5c; --bar: #56b4e9;
  --notice: #33291a; --edge: #d98a00; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
section { border-top: 1px solid var(--line); margin-top: 1.8rem; }
section h2 { display: flex; justify-content: space-between; gap: 1rem; margin-top: 1.2rem; }
.who { color: var(--soft); margin: 0; }
.points { font-weight: 400; color: var(--soft); white-space: nowrap; }
.score { font-size: 1.1rem; margin: 0 0 .4rem; }
.score strong { font-size: 2rem; }
.bar { height: .6rem; border-radius: .3rem; background: var(--wash);
  border: 1px solid var(--line); overflow: hidden; }
.bar span { display: block; height: 100%; background: var(--bar); }
.notice { background: var(--notice); border-left: 4px solid var(--edge); padding: .6rem .9rem;
  margin: .8rem 0; border-radius: 0 4px 4px 0; overflow-wrap: anywhere; }
.small { font-size: .875rem; color: var(--soft); }
.foot { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .8rem;
  overflow-wrap: anywhere; }
.tag { font-size: .75rem; border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem;
  color: var(--soft); margin-left: .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem 1rem .35rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; white-space: nowrap; }
.count { width: 5rem; font-weight: 600; font-size: 1.1rem; }
section td:first-child { width: 8.5rem; white-space: nowrap; font-weight: 600; }
.yes td:first-child { color: var(--good); }
.no td:first-child { color: var(--bad); }
.number { text-align: right; white-space: nowrap; padding-right: 0; }
.wide { overflow-x: auto; }
.wide .number { padding-right: 1rem; }
.wide td { max-width: 22rem; }
.wide td:not(.text) { white-space: nowrap; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 4px; padding: .8rem;
  overflow-x: auto; font-size: .82rem; line-height: 1.4; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0 1.5rem; }
.tiles div { border: 1px solid var(--line); border-radius: 6px; padding: .6rem 1rem;
  color: var(--soft); font-size: .875rem; min-width: 6.5rem; }
.tiles strong { display: block; font-size: 1.5rem; line-height: 1.2; color: var(--ink); }
picture img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
details { margin-top: 2rem; }
summary { cursor: pointer; font-weight: 600; }
a { color: var(--bar); }
@media print { details > * { display: block; } .notice { border: 1px solid var(--edge); } }
"""
