"""What teacher and students get: nothing of a student's runs in it, and nothing is missing."""

import base64
import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.text import Text

from ppo_lessons.figures.grading import checks_figure, points_figure
from ppo_lessons.grading import report
from ppo_lessons.grading.results import (
    file_name,
    from_text,
    read_result,
    read_results,
    to_text,
    write_result,
)
from ppo_lessons.grading.types import CheckResult, QuestionResult, Result

HOSTILE = "<script>alert('x')</script> & \"q\" `code` **b** [l](javascript:1) | $x$"


def check(title: str, passed: bool, *, hidden: bool = True) -> CheckResult:
    return CheckResult(
        title=title, hidden=hidden, passed=passed, points=4.0 * passed, max_points=4.0
    )


def question(**changed) -> QuestionResult:
    checks = (check("as in the notebook", True, hidden=False), check("an episode end", False))
    start = QuestionResult(
        id="clip.clipped_surrogate",
        title="The clipped surrogate",
        points=4,
        max_points=8,
        checks=checks,
        mistake="clamp_without_minimum",
    )
    return replace(start, **changed)


def result(student: str = "ada", **changed) -> Result:
    start = Result(
        student=student,
        name="Ada L.",
        assignment="04_clip",
        status="graded",
        points=4,
        max_points=8,
        questions=(question(),),
        notes=("Two cells answer clip.clipped_surrogate; the last one counts.",),
        source=f"{student}.ipynb",
        submission_sha256="ab" * 32,
        key="cd" * 32,
        isolation="bwrap",
        seconds=1.25,
    )
    return replace(start, **changed)


BROKEN = result(
    "max",
    name="Max",
    status="infrastructure-error",
    reason="no kernel",
    questions=(),
    points=0,
    notes=(),
)
MISSING = result("zoe", name="Zoe", status="missing", questions=(), points=0, notes=(), source="")
REJECTED = result("eve", status="rejected", reason="no JSON", questions=(), points=0)
CLASS = [result(), BROKEN, MISSING, REJECTED]


# --- the files of results ------------------------------------------------------------------


def test_a_result_is_read_as_it_was_written(tmp_path):
    every = [result(name="Zoë \ud800 李", notes=("a\nb",)), BROKEN, MISSING]
    for each in every:
        assert from_text(to_text(each)) == each
        assert read_result(write_result(tmp_path, each)) == each
    assert read_results([tmp_path]) == every


@pytest.mark.messages
@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"version": 0}', '{"version": 1}'])
def test_a_file_that_is_no_result_is_refused(tmp_path, text):
    path = tmp_path / "ada.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="expected a result of this version"):
        read_result(path)


def test_whatever_a_student_is_called_the_file_stays_in_its_folder_and_is_nobody_elses(tmp_path):
    names = ["ada", "Ada", "a/da", "a%2Fda", "../ada", "..", ".", "", "a" * 300, "a" * 301, "a\\b"]
    names += ["a\x00", "a\n", "李" * 90, "con", "-rf", "a b"]
    written = [write_result(tmp_path / "results", result(name)) for name in names]
    assert len({*written}) == len(names)
    assert {path.parent for path in written} == {tmp_path / "results"}
    assert len(list((tmp_path / "results").glob("[!.]*.json"))) == len(names)
    assert not any(file_name(name).startswith(".") for name in names)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = write_result(tmp_path, result())
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_result(tmp_path, result(points=0))
    assert read_result(path) == result()
    assert list(tmp_path.iterdir()) == [path]


# --- the gradebook -------------------------------------------------------------------------


def rows(results) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(report.gradebook(results))))


def test_the_gradebook_has_a_row_for_each_student_with_the_points_of_each_question():
    table = rows(CLASS)
    assert [row["student"] for row in table] == ["ada", "max", "zoe", "eve"]
    assert [row["status"] for row in table] == [each.status for each in CLASS]
    assert table[0]["clip.clipped_surrogate"] == "4"
    assert (table[0]["points"], table[0]["max_points"]) == ("4", "8")


def test_only_a_failure_of_the_machine_has_no_points():
    assert [row["points"] for row in rows(CLASS)] == ["4", "", "0", "0"]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "=cmd|' /C calc'!A0"]
)
def test_no_cell_starts_a_formula(text):
    row = rows([result(text, name=text, notes=(text,), source=text, reason=text)])[0]
    for column in ("student", "name", "notes", "source", "reason"):
        assert row[column].startswith("'")
        assert row[column][1:].strip() == text.strip()


def test_an_ordinary_cell_stays_as_it_is():
    row = rows([result(name="Jean-Luc O'Neil, the 2nd")])[0]
    assert row["name"] == "Jean-Luc O'Neil, the 2nd"


def test_equal_results_give_equal_bytes_apart_from_the_seconds():
    first, second = (report.gradebook([result(seconds=each)]) for each in (1.0, 2.0))
    assert first != second
    assert [line.rsplit(",", 1)[0] for line in first.splitlines()] == [
        line.rsplit(",", 1)[0] for line in second.splitlines()
    ]


# --- pages ---------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.addresses, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def hostile() -> Result:
    return result(
        HOSTILE,
        name=HOSTILE,
        source=HOSTILE,
        notes=(HOSTILE,),
        reason=HOSTILE,
        questions=(question(error=f"````\n{HOSTILE}\n</pre>", title=HOSTILE, notes=(HOSTILE,)),),
    )


@pytest.mark.parametrize("page", [report.feedback_html, lambda each: report.class_page([each])])
def test_what_a_student_wrote_is_text_on_every_page(page):
    read = Reader(page(hostile()))
    assert "script" not in read.tags
    assert HOSTILE in read.text
    assert all(each.startswith(("data:image/png;", "feedback/")) for each in read.addresses)
    assert "default-src 'none'" in page(hostile())


def test_what_a_student_wrote_is_text_in_markdown_too():
    text = report.feedback_markdown(hostile())
    fenced = re.search(r"^(`{5,})text\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)
    assert fenced
    assert HOSTILE in fenced[2]
    outside = text.replace(fenced[0], "")
    assert "<script" not in outside
    assert "**b**" not in outside
    assert "](" not in outside


@pytest.mark.parametrize("page", [report.feedback_html, report.feedback_markdown])
def test_feedback_says_what_passed_what_it_gave_and_which_mistake_it_looks_like(page):
    text = page(result())
    for words in ("4 of 8", "as in the notebook", "an episode end", "hidden", "passed"):
        assert words in text
    assert "clamp_without_minimum" in text
    assert "the sample cannot push it back" in text  # of the sentence that the course has
    assert "the last one counts" in text


def test_feedback_calls_an_empty_answer_empty_and_no_mistake():
    each = result(questions=(question(mistake="not_written"),))
    for page in (report.feedback_html, report.feedback_markdown):
        assert "You left this question as it was" in page(each)
        assert "Looks like" not in page(each)


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (BROKEN, "no verdict about your answers"),
        (MISSING, "No file of yours was found."),
        (replace(MISSING, reason="nothing was handed in"), "No file of yours was found."),
        (
            replace(MISSING, reason="a.ipynb is for 05_gae"),
            "No file of yours was found: a.ipynb is for 05_gae.",
        ),
        (REJECTED, "Your file could not be graded: no JSON."),
        (
            replace(REJECTED, reason="the file breaks off in line 3"),
            "Your file could not be read: it breaks off in line 3.",
        ),
        (
            replace(REJECTED, reason="the file cannot be read (no room)"),
            "Your file cannot be read (no room).",
        ),
        (replace(REJECTED, reason="Is it baked?"), "Your file could not be graded: Is it baked?"),
    ],
)
def test_feedback_without_a_graded_file_says_why_in_one_sentence(each, words):
    assert f">{words}<" in report.feedback_html(each) or words in report.NO_VERDICT
    assert words in report.feedback_markdown(each).replace("\\", "")
    for page in (report.feedback_html, report.feedback_markdown):
        said = re.sub(r"<[^>]*>|\*", "", page(each).partition("<body>")[2] or page(each))
        assert ("0 of 8 points" in said) == (each is not BROKEN)


FOLDER = "opt/new comer/"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("submissions.zip!Max_1/04_clip.ipynb", "submissions.zip!Max_1/04_clip.ipynb"),
        ("ada.ipynb", "ada.ipynb"),
        ("odd!name.ipynb", "odd!name.ipynb"),
        ("B.ZIP!inner.zip!a/b.ipynb", "B.ZIP!inner.zip!a/b.ipynb"),
    ],
)
@pytest.mark.parametrize("folder", ["", FOLDER, "a/"])
def test_no_page_shows_the_teachers_folder(source, shown, folder):
    other = f"{FOLDER}late/second.zip" if folder == FOLDER else "second.zip"
    note = f"{folder}{source} is damaged, like {other}; it is left out"
    each = result(source=folder + source, notes=(note,), status="timeout", reason=note)
    for page in (report.feedback_html(each), report.class_page([each])):
        text = Reader(page).text
        assert text.count(shown) >= 2
        assert FOLDER not in text
        assert f"{folder}{source}" not in text or not folder
    assert "new comer" not in report.feedback_markdown(each)
    assert rows([each])[0]["source"] == folder + source


def test_the_class_page_names_what_needs_a_teachers_eye():
    text = Reader(report.class_page([*CLASS, result("ivo", isolation="none")])).text
    assert "no kernel" in text
    assert "no JSON" in text
    assert "Nothing handed in" in text
    assert "1 of 5 were run without a sandbox" in text
    assert "isolation" not in Reader(report.class_page(CLASS)).text


def test_the_class_page_counts_mistakes_and_orders_checks_by_those_who_passed():
    good = question(mistake="", checks=(check("a", True), check("b", True), check("c", False)))
    bad = question(checks=(check("a", True), check("b", False), check("c", False)))
    every = [result(f"s{n}", questions=(good if n else bad,)) for n in range(4)]
    found = report.hardest_checks(report.failed_checks(every))
    assert [(title[-10:], share) for title, share in found] == [
        ("c (hidden)", 0),
        ("b (hidden)", 0.75),
    ]
    assert "clamp_without_minimum" in report.class_page(every)


def test_the_class_page_says_how_many_of_the_hardest_checks_it_leaves_out():
    def page(count: int) -> str:
        checks = tuple(check(f"check {n}", False) for n in range(count))
        return report.class_page([result(questions=(question(checks=checks),))])

    assert "more check" not in page(3)
    assert "1 more check was not passed by everybody" in page(4)
    assert "3 more checks were not passed by everybody" in page(6)


def test_what_was_left_blank_is_no_common_mistake():
    text = report.class_page([result(questions=(question(mistake="not_written"),))])
    assert "not_written" not in text
    assert "Commonest mistakes" not in text


def test_the_class_page_says_of_whom_mean_and_median_are_and_counts_one_student_as_one():
    text = Reader(report.class_page([*CLASS, result("ivo", points=8)])).text
    assert "mean of the 2 graded, of 8 points" in text
    assert "median of the 2 graded, of 8 points" in text
    assert "All 5 students" in text
    alone = report.class_page([result()])
    assert "1 students" not in alone
    assert "1student<" in alone.replace("</strong>", "").replace("\n", "")
    assert "<summary>1 student</summary>" in alone


def test_code_in_a_sentence_of_the_course_is_shown_as_code():
    each = result(questions=(question(mistake="python_choice"),))
    for page in (report.feedback_html(each), report.class_page([each])):
        assert "<code>if</code>" in page
        assert "`" not in page.partition("<body>")[2]


def test_a_class_in_which_nobody_was_graded_has_a_page():
    assert "picture" not in Reader(report.class_page([BROKEN, MISSING])).tags


def test_equal_classes_give_equal_pages():
    assert report.class_page(CLASS) == report.class_page(list(CLASS))


def test_reports_are_written_for_all_and_every_link_leads_to_one(tmp_path):
    every = [*CLASS, result("a/b c%d"), result("=x")]
    written = report.write_reports(every, tmp_path)
    assert len(written) == 2 + 2 * len(every)
    assert all(path.is_file() for path in written)
    addresses = Reader((tmp_path / "class.html").read_text("utf-8")).addresses
    for address in [each for each in addresses if each.startswith("feedback/")]:
        assert (tmp_path / unquote(address)).is_file()
    assert (tmp_path / "gradebook.csv").read_bytes().startswith(b"\xef\xbb\xbfstudent,")


@pytest.mark.messages
def test_no_result_at_all_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Grade first"):
        report.write_reports([], tmp_path)


# --- pictures ------------------------------------------------------------------------------


def test_bars_count_each_student_once_also_those_with_full_points():
    axes = points_figure([0.0, 5.9, 6.0, 59.9, 60.0, 60.0], 60).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert axes.get_title(loc="left") == "Half of the 6 graded have 32.95 of 60 points or more"
    axes = points_figure([7.0], 60).axes[0]
    assert axes.get_title(loc="left") == "The one that was graded has 7 of 60 points"


def test_the_name_of_the_median_covers_no_bar():
    picture = points_figure([1.0] * 9 + [59.0] * 9, 60)
    picture.draw_without_rendering()
    axes = picture.axes[0]
    written = {str(text.get_text()): text for text in picture.findobj(Text)}
    title = written[axes.get_title(loc="left")].get_window_extent()
    median = written["median"].get_window_extent()
    assert median.y0 >= axes.get_window_extent().y1 - 1
    assert not median.overlaps(title)


def test_bars_of_checks_have_the_lengths_of_their_shares():
    axes = checks_figure(["b", "a" * 200], [0.25, 0.5]).axes[0]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [25, 50])


def test_both_pictures_differ_in_their_paper_and_a_page_holds_both():
    light, dark = (checks_figure(["a"], [0.5], dark=dark) for dark in (False, True))
    assert light.get_facecolor() != dark.get_facecolor()
    addresses = [a for a in Reader(report.class_page(CLASS)).addresses if a.startswith("data:")]
    assert len({*addresses}) == 4
    for address in addresses:
        assert base64.b64decode(address.partition(",")[2]).startswith(b"\x89PNG")
