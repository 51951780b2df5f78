import io
import json
import os
import random
import stat
import sys
import time
import zipfile
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppo_lessons.grading import uploads
from ppo_lessons.grading.intake import read_submissions
from ppo_lessons.grading.parse import MAX_CODE, UnreadableError, parse_notebook
from ppo_lessons.grading.people import read_label
from ppo_lessons.grading.roster import RosterError, is_safe, read_roster
from ppo_lessons.grading.types import Rejected, Submission

IDS = ("clip.surrogate", "clip.signs")
ROSTER = {
    "s101": "Max Muster",
    "s102": "Müller, Jörg",
    "s103": "Anna Schmidt",
    "s104": "Anna Schmidt",
    "7": "Li",
}
DAY = (2026, 11, 30)


def notebook(answer="a", *, metadata=None, lesson="clip", minor=5):
    """A small solved notebook; `answer` makes its bytes differ."""
    source = f"# answer: {lesson}.surrogate\ndef surrogate():\n    return {answer!r}"
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# Exercises", "id": "title"},
        {
            "cell_type": "code", "id": "one", "source": source, "outputs": [],
            "metadata": {"ppo_lessons": {"answer": f"{lesson}.surrogate"}}, "execution_count": 3,
        },
    ]  # fmt: skip
    return {"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": minor}


def made(*args, **options):
    return json.dumps(notebook(*args, **options)).encode()


def zipped(files, when=(*DAY, 12, 0, 0), utf8=True):
    """A zip file from bytes by name; a value may be a pair of bytes and a time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            content, time = content if isinstance(content, tuple) else (content, when)
            member = zipfile.ZipInfo(name, time)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return buffer.getvalue()


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1e9, 1e9))
    return folder


def read(paths, roster=ROSTER):
    paths = paths if isinstance(paths, list) else [paths]
    rows = read_submissions(paths, assignment="04_clip", question_ids=IDS, roster=roster)
    ids = [row.student for row in rows]
    assert len({id.casefold() for id in ids}) == len(ids), "two rows for one student"
    assert all(map(is_safe, ids))
    if roster is not None:
        assert ids[: len(roster)] == list(roster)
    return rows


def from_zip(tmp_path, files, roster=ROSTER, **options):
    path = tmp_path / "download.zip"
    path.write_bytes(zipped(files, **options))
    return {row.student: row for row in read(path, roster)}


def came(rows):
    return {id for id, row in rows.items() if isinstance(row, Submission)}


def text_of(row):
    return "\n".join(cell.source for cell in row.cells)


# --- one notebook --------------------------------------------------------------------------


def test_only_texts_ids_and_our_marks_are_taken(tmp_path):
    content = notebook(metadata={"ppo_lessons": {"assignment": "04_clip", "student": "s101"}})
    content["cells"][1]["outputs"] = [{"output_type": "stream", "text": "secret"}]
    path = tmp_path / "s101.ipynb"
    path.write_text(json.dumps(content))
    row = read(path)[0]
    assert isinstance(row, Submission)
    assert (row.student, row.name, row.built_for) == ("s101", "Max Muster", "s101")
    assert [cell.kind for cell in row.cells] == ["markdown", "code"]
    assert (row.cells[1].id, row.cells[1].marker) == ("one", "clip.surrogate")
    assert "secret" not in repr(row)
    assert row.notes == ()


@pytest.mark.parametrize("minor", range(6))
def test_every_minor_of_the_format_is_read(minor):
    content = notebook(minor=minor)
    if minor < 5:
        for cell in content["cells"]:
            del cell["id"]
    parsed = parse_notebook(nbformat.writes(nbformat.from_dict(content)).encode())
    assert "def surrogate" in parsed.cells[1].source
    assert parsed.cells[1].id == ("one" if minor == 5 else "")


def test_the_old_format_is_read_with_a_note():
    cells = [
        {"cell_type": "heading", "level": 1, "source": "Exercises"},
        {"cell_type": "code", "input": ["# answer: clip.surrogate\n", "x = 1"], "outputs": []},
    ]
    old = {"nbformat": 3, "worksheets": [{"cells": cells}, {"cells": 3}, None], "metadata": {}}
    parsed = parse_notebook(json.dumps(old).encode())
    assert parsed.cells[1].source == "# answer: clip.surrogate\nx = 1"
    assert "nbformat 3" in parsed.notes[0]


def encoded(text, encoding):
    marks = {"utf-16": "", "utf-16-le": "\ufeff", "utf-32": "", "utf-16-be": "\ufeff"}
    return (marks.get(encoding, "") + text).encode(encoding)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_every_encoding_of_unicode_is_read(encoding):
    text = json.dumps(notebook("grün ✓"), ensure_ascii=False)
    assert "grün ✓" in parse_notebook(encoded(text, encoding)).cells[1].source


def test_line_ends_of_windows_and_of_old_macs_are_read():
    for end in ("\r\n", "\r"):
        content = notebook()
        source = content["cells"][1]["source"]
        content["cells"][1]["source"] = source.replace("\n", end)
        text = json.dumps(content, indent=1).replace("\n", "\r\n")
        assert parse_notebook(text.encode()).cells[1].source == source


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (["a = 1\n", "b = 2"], "a = 1\nb = 2"),
        (["a = 1", "b = 2"], "a = 1\nb = 2"),
        (["a = 1"], "a = 1"),
        ([], ""),
        (None, ""),
        ("x = '\ud800'", "x = '\ufffd'"),
        ("x\0y", "x\ufffdy"),
    ],
)
def test_a_source_may_be_a_text_or_lines(source, wanted):
    content = notebook()
    content["cells"][1]["source"] = source
    assert parse_notebook(json.dumps(content).encode()).cells[1].source == wanted


@pytest.mark.parametrize("source", [3, {"a": 1}, [1, 2], ["a", None], True, 1.5, [["a"]]])
def test_a_source_that_is_no_text_costs_only_its_cell(source):
    content = notebook()
    content["cells"][0]["source"] = source
    parsed = parse_notebook(json.dumps(content).encode())
    assert [cell.id for cell in parsed.cells] == ["one"]
    assert "cell 1" in parsed.notes[0]


def test_what_colab_and_other_editors_save_is_read():
    content = notebook(minor=0)
    for cell in content["cells"]:
        cell["metadata"] = {"id": "Xy_1-z", "colab": {"base_uri": "https://x"}, "outputId": "q"}
        del cell["id"]
    content["cells"].append({"cell_type": "code", "source": "x", "metadata": None, "outputs": None})
    content["cells"].append({"source": "y", "execution_count": None})
    content["metadata"] = {"colab": {"provenance": []}, "kernelspec": {"name": "evil"}}
    parsed = parse_notebook(json.dumps(content).encode())
    assert [cell.id for cell in parsed.cells] == ["Xy_1-z", "Xy_1-z", "", ""]
    assert parsed.notes == ()


def test_a_giant_cell_is_left_out_and_a_picture_in_a_text_is_not_kept():
    content = notebook()
    giant = {"cell_type": "code", "source": "#" * (MAX_CODE + 1), "metadata": {}}
    picture = {"cell_type": "markdown", "source": "x" * 3_000_000, "metadata": {}}
    content["cells"] += [giant, picture]
    parsed = parse_notebook(json.dumps(content).encode())
    assert len(parsed.cells) == 3
    assert len(parsed.cells[2].source) < MAX_CODE
    assert "cell 3: left out" in parsed.notes[0]


DEEP = b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\0", "empty"),
        (b"\xff\xfe\xff\xfe\xff", "UTF-16"),
        (json.dumps(notebook("grün"), ensure_ascii=False).encode("latin-1"), "UTF-8"),
        (made()[:-40], "breaks off"),
        (made()[:80], "breaks off"),
        (b"{not json}", "no JSON"),
        (b'<<<<<<< HEAD\n{"cells": []}\n>>>>>>> x', "merge"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        (DEEP, "deeply"),
        (b'{"cells": [' + b"[]," * 1_000_001 + b"[]]}", "too much"),
        (b"[1, 2]", "no notebook"),
        (b"3", "no notebook"),
        (b"NaN", "no notebook"),
        (b"9" * 5_000, "digits"),
        (b"{}", "no cells"),
        (b'{"worksheets": 3}', "no cells"),
        (b'{"cells": {"a": 1}}', "no list"),
        (b'{"cells": NaN}', "no list"),
        (b'{"cells": "x"}', "no list"),
        (b'{"cells": []}', "without cells"),
        (
            b'{"cells": [3, null, [], {"cell_type": 7}, {"cell_type": "code", "source": 1}]}',
            "without",
        ),
        (
            json.dumps({"cells": [{"cell_type": "code", "source": "x"}] * 2_001}).encode(),
            "2001 cells",
        ),
        (
            json.dumps({"cells": [{"cell_type": "code", "source": "x" * 99_000}] * 3}).encode(),
            "code",
        ),
    ],
)
def test_what_is_no_notebook_is_refused_with_its_reason(content, reason):
    with pytest.raises(UnreadableError, match=reason):
        parse_notebook(content)


@pytest.mark.parametrize(
    "value", [3, None, [], {"answer": 3}, {"answer": ["x"]}, "x", {"answer": "a\nb"}]
)
def test_marks_of_the_wrong_type_are_no_marks(value):
    content = notebook(metadata={"ppo_lessons": value})
    content["cells"][1]["metadata"] = {"ppo_lessons": value, "id": value}
    content["cells"][1]["id"] = value
    parsed = parse_notebook(json.dumps(content).encode())
    assert (parsed.student, parsed.assignment) == ("", "")
    assert parsed.cells[1].marker == ""


# --- learning platforms --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Muster Max_123456_assignsubmission_file_", ("Moodle", "123456", "Muster Max")),
        ("Muster Max_123456_assignsubmission_file", ("Moodle", "123456", "Muster Max")),
        ("Group 1-Li_9_assignsubmission_file_my_x.ipynb", ("Moodle", "9", "Group 1-Li")),
        ("a_b_9_assignsubmission_onlinetext_x", ("Moodle", "9", "a_b")),
        ("mustermax_12345_678901_04_clip.ipynb", ("Canvas", "12345", "mustermax")),
        ("mustermax_LATE_12345_678901_04_clip-1.ipynb", ("Canvas", "12345", "mustermax")),
        ("anonymous_aB3xY_678901_file.ipynb", ("Canvas", "aB3xY", "anonymous")),
        ("HW 4_s101_attempt_2026-11-30-09-08-07_04_clip.ipynb", ("Blackboard", "s101", "")),
        ("40461-48265 - Max Muster - Nov 30, 2026 1159 PM", ("Brightspace", "40461", "Max Muster")),
        ("04_clip.ipynb", None),
        ("ws_2024_2025_clip.ipynb", None),
        ("s101_04_clip.ipynb", None),
        ("", None),
    ],
)
def test_labels_of_platforms_are_read(name, wanted):
    label = read_label(name)
    assert (label and (label.platform, label.id, label.name)) == wanted


def test_folders_of_moodle_are_matched_by_name(tmp_path):
    rows = from_zip(
        tmp_path,
        {
            "Max Muster_11_assignsubmission_file_/04_clip.ipynb": made(1),
            "Jörg Müller_12_assignsubmission_file_/my work.ipynb": made(2),
            "Max Muster_11_assignsubmission_onlinetext_/onlinetext.html": b"<p>hello</p>",
        },
    )
    assert came(rows) == {"s101", "s102"}
    assert rows["s103"].missing
    assert rows["7"].reason == "nothing was handed in"


def test_flat_files_of_moodle_are_matched_by_name(tmp_path):
    rows = from_zip(
        tmp_path,
        {
            "Muster Max_11_assignsubmission_file_04_clip.ipynb": made(1),
            "Mueller Joerg_12_assignsubmission_file_s101.ipynb": made(2),
        },
    )
    assert came(rows) == {"s101", "s102"}
    assert "return 1" in text_of(rows["s101"])


def test_a_name_that_two_students_have_is_unclear(tmp_path):
    rows = from_zip(tmp_path, {"Anna Schmidt_11_assignsubmission_file_/04_clip.ipynb": made()})
    assert came(rows) == set()
    (row,) = [row for id, row in rows.items() if id not in ROSTER]
    assert "s103 and s104" in row.reason
    assert "Anna Schmidt_11" in rows["s103"].reason
    assert rows["s103"].missing


def test_two_of_one_name_are_told_apart_by_their_own_copies(tmp_path):
    files = {
        f"Anna Schmidt_{n}_assignsubmission_file_/04_clip.ipynb": made(
            n, metadata={"ppo_lessons": {"student": f"s10{n}"}}
        )
        for n in (3, 4)
    }
    rows = from_zip(tmp_path, files)
    assert came(rows) == {"s103", "s104"}
    assert any("owner can edit" in note for note in rows["s103"].notes)


def test_files_of_canvas_are_matched_by_name_and_by_number(tmp_path):
    rows = from_zip(
        tmp_path,
        {
            "mustermax_LATE_555_9000_04_clip-1.ipynb": made("late"),
            "mustermax_555_8000_04_clip.ipynb": made("early"),
            "mullerjorg_556_8001_04_clip.ipynb": made(2),
        },
    )
    assert came(rows) == {"s101", "s102"}
    assert "'late'" in text_of(rows["s101"])
    assert any("late" in note for note in rows["s101"].notes)
    assert any("2 attempts" in note for note in rows["s101"].notes)
    assert rows["s102"].notes == ()


def test_attempts_of_blackboard_are_ordered_by_their_time(tmp_path):
    attempt = "HW_{}_attempt_2026-11-{}-10-00-00_{}.ipynb"
    rows = from_zip(
        tmp_path,
        {
            attempt.format("s101", "09", "b"): made("first"),
            attempt.format("s101", "10", "a"): made("second"),
            "HW_s101_attempt_2026-11-10-10-00-00.txt": b"Name: Max",
            attempt.format("s999", "10", "a"): made("stranger"),
        },
    )
    assert "'second'" in text_of(rows["s101"])
    (row,) = [row for id, row in rows.items() if id not in ROSTER]
    assert "s999 (Blackboard) is not in the roster" in row.reason


def test_a_student_cannot_write_into_anothers_row(tmp_path):
    own = {"s101/04_clip.ipynb": made("max"), "s102/04_clip.ipynb": made("jörg")}
    hostile = {
        "s103/s101_04_clip.ipynb": made("evil"),
        "s103/s101/04_clip (9).ipynb": (made("evil"), (2030, 1, 1, 1, 1, 2)),
        "Evil E_9_assignsubmission_file_/s101.ipynb": made("evil"),
        "s101_s102.ipynb": made("evil"),
        "note of s101 v99.ipynb": (made("evil"), (2030, 1, 1, 1, 1, 2)),
        "x.ipynb": made("evil", metadata={"ppo_lessons": {"student": "s101"}}),
    }
    rows = from_zip(tmp_path, own | hostile)
    for student, name in (("s101", "max"), ("s102", "jörg")):
        assert repr(name) in text_of(rows[student])
        assert "evil" not in text_of(rows[student])


# --- folders, ids, names -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "s101/04_clip.ipynb",
        "S101/x.ipynb",
        "s101.ipynb",
        "04_clip_s101.ipynb",
        "04-clip (s101) final.ipynb",
        "section A/s101/mine/04_clip.ipynb",
        "Max Muster/04_clip.ipynb",
        "04_clip_muster_max.ipynb",
        "Max Muster - 04_clip.ipynb",
        "lab-s101/04_clip.ipynb",
    ],
)
def test_a_student_is_found_in_a_path(tmp_path, name):
    folder = write(tmp_path / "class", {name: made(), "s103/04_clip.ipynb": made(2)})
    rows = {row.student: row for row in read(folder)}
    assert came(rows) == {"s101", "s103"}


@pytest.mark.parametrize(
    "name", ["04_clip_7.ipynb", "04_clip-s1011.ipynb", "04_clip.ipynb", "ü.ipynb"]
)
def test_what_only_looks_like_an_id_is_none(tmp_path, name):
    rows = from_zip(tmp_path, {name: made(), "s103/04_clip.ipynb": made(2)})
    assert came(rows) == {"s103"}
    (row,) = [row for id, row in rows.items() if id not in ROSTER]
    assert "no id and no name of the roster" in row.reason


def test_a_short_id_counts_as_a_whole_name(tmp_path):
    assert came(from_zip(tmp_path, {"7/04_clip (1).ipynb": made()})) == {"7"}


def test_an_id_within_a_longer_one_is_not_found(tmp_path):
    roster = {"anna": "", "anna-maria": "", "max": ""}
    files = {"anna-maria_04.ipynb": made(1), "anna_04.ipynb": made(2)}
    assert came(from_zip(tmp_path, files, roster)) == {"anna", "anna-maria"}


def test_a_folder_of_two_students_is_opened_for_their_own_names(tmp_path):
    files = {"s101 s102/s102.ipynb": made(1), "s101 s102/x.ipynb": made(2)}
    rows = from_zip(tmp_path, files | {"s103/04_clip.ipynb": made(3)})
    assert came(rows) == {"s102", "s103"}
    assert "perhaps" in rows["s101"].reason


def test_the_name_of_what_was_given_helps_if_nothing_else_does(tmp_path):
    (tmp_path / "s102.zip").write_bytes(zipped({"work/04_clip.ipynb": made()}))
    assert came({row.student: row for row in read(tmp_path / "s102.zip")}) == {"s102"}
    folder = write(tmp_path / "s101", {"04_clip.ipynb": made()})
    assert came({row.student: row for row in read(folder)}) == {"s101"}
    assert came({row.student: row for row in read(folder / "04_clip.ipynb")}) == {"s101"}


def test_several_paths_are_one_class(tmp_path):
    write(tmp_path, {"s101/04_clip.ipynb": made(1), "s102/04_clip.ipynb": made(2)})
    (tmp_path / "s103.zip").write_bytes(zipped({"04_clip.ipynb": made(3)}))
    paths = [tmp_path / "s101/04_clip.ipynb", tmp_path / "s102", tmp_path / "s103.zip"]
    assert came({row.student: row for row in read(paths)}) == {"s101", "s102", "s103"}
    assert len(read([paths[0], paths[0]])) == len(ROSTER)


def test_what_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.zip does not exist"):
        read(tmp_path / "nothing.zip")


def test_an_empty_class_is_missing(tmp_path):
    rows = read(tmp_path)
    assert all(isinstance(row, Rejected) and row.missing for row in rows)
    assert read([]) == rows
    assert read(tmp_path, roster=None) == []


# --- several files of one student ----------------------------------------------------------


def test_the_last_attempt_counts_with_a_note(tmp_path):
    files = {
        "s101/04_clip.ipynb": (made("old"), (*DAY, 10, 0, 0)),
        "s101/04_clip_b.ipynb": (made("new"), (*DAY, 11, 0, 0)),
        "s102/04_clip.ipynb": made("one"),
        "s102/04_clip (1).ipynb": made("two"),
        "s103/a.ipynb": made("one"),
        "s103/b.ipynb": made("two"),
    }
    rows = from_zip(tmp_path, files)
    assert "'new'" in text_of(rows["s101"])
    assert "2 attempts" in rows["s101"].notes[0]
    assert "'two'" in text_of(rows["s102"])
    assert isinstance(rows["s103"], Rejected)
    assert "nothing says which is the last" in rows["s103"].reason


def test_the_same_file_twice_is_one(tmp_path):
    rows = from_zip(tmp_path, {"s101/a.ipynb": made(), "s101/b.ipynb": made()})
    assert rows["s101"].notes == ("the same file was handed in more than once",)


def test_a_later_file_that_cannot_be_read_does_not_cost_the_earlier_one(tmp_path):
    files = {"s101/04_clip.ipynb": made(), "s101/04_clip (1).ipynb": made()[:99]}
    rows = from_zip(tmp_path, files)
    assert came(rows) == {"s101"}
    assert "(1).ipynb breaks off" in rows["s101"].notes[0]


def test_of_a_copy_of_the_course_the_own_work_counts(tmp_path):
    files = {
        "s101/exercises/04_clip.ipynb": made("blank"),
        "s101/solutions/04_clip.ipynb": made("solution"),
        "s101/my_work/exercises/04_clip.ipynb": made("mine"),
        "s102/exercises/04_clip.ipynb": made("mine"),
        "s102/solutions/04_clip.ipynb": made("solution"),
    }
    rows = from_zip(tmp_path, files)
    assert "'mine'" in text_of(rows["s101"])
    assert "'mine'" in text_of(rows["s102"])


# --- several assignments in one place ------------------------------------------------------


def test_other_assignments_are_passed_over(tmp_path):
    lesson = {"ppo_lessons": {"source": "notebooks/source/04_clip.py"}}
    plain = {"cells": [{"cell_type": "code", "source": "x = 1"}]}
    files = {
        "s101/04_clip.ipynb": made(1),
        "s101/05_critic.ipynb": made(2, lesson="critic"),
        "s101/notebooks/04_clip.ipynb": json.dumps(plain | {"metadata": lesson}).encode(),
        "s102/05_critic.ipynb": made(2, lesson="critic"),
        "s103/work.ipynb": json.dumps(plain).encode(),
        "zed/05_critic.ipynb": made(2, lesson="critic"),
        "s104/essay.pdf": b"%PDF",
    }
    rows = from_zip(tmp_path, files)
    assert came(rows) == {"s101"}
    assert rows["s101"].notes == ()
    assert rows["s102"].missing
    assert "is for critic" in rows["s102"].reason
    assert not rows["s103"].missing
    assert "answers no question" in rows["s103"].reason
    assert "essay.pdf" in rows["s104"].reason
    assert list(rows) == list(ROSTER)


@pytest.mark.parametrize(
    "content",
    [
        notebook(metadata={"ppo_lessons": {"assignment": "05_critic"}}),
        {"cells": [{"cell_type": "code", "source": "def surrogate(): pass"}]},
        {"cells": [{"cell_type": "markdown", "source": "# answer: clip.signs"}]},
        {
            "cells": [{"cell_type": "code", "source": "x"}],
            "metadata": {"ppo_lessons": {"source": "exercises/source/04_clip.py"}},
        },
        {
            "cells": [
                {
                    "cell_type": "code",
                    "source": "x",
                    "metadata": {"ppo_lessons": {"answer": "clip.signs"}},
                }
            ]
        },
    ],
)
def test_one_sign_of_the_assignment_is_enough(tmp_path, content):
    assert came(from_zip(tmp_path, {"s101/a.ipynb": json.dumps(content).encode()})) == {"s101"}


def test_a_notebook_by_its_name_alone_is_taken(tmp_path):
    content = json.dumps({"cells": [{"cell_type": "code", "source": "x"}]}).encode()
    assert came(from_zip(tmp_path, {"s101/04-clip.ipynb": content})) == {"s101"}


# --- what systems leave behind, and hostile files ------------------------------------------


def test_what_systems_leave_behind_is_passed_over(tmp_path):
    junk = (
        "__MACOSX/s101/._04_clip.ipynb .DS_Store s101/.ipynb_checkpoints/04_clip-checkpoint.ipynb "
        "s101/Thumbs.db s101/04_clip.ipynb:Zone.Identifier s101/~$x.ipynb s101/.git/x.ipynb "
        "s101/04_clip.ipynb~ __pycache__/x.ipynb ._x.ipynb"
    )
    files = dict.fromkeys(junk.split(), b"junk")
    rows = from_zip(tmp_path, files | {"s101/04_clip.ipynb": made()})
    assert list(rows) == list(ROSTER)
    assert rows["s101"].notes == ()


def test_names_of_macs_and_windows_are_understood(tmp_path):
    decomposed = "Jo\u0308rg Mu\u0308ller_1_assignsubmission_file_\\04_clip.ipynb"
    rows = from_zip(tmp_path, {decomposed: made(), "s101\\a.ipynb": made()})
    assert came(rows) == {"s101", "s102"}


def test_utf8_names_without_their_flag_are_understood(tmp_path):
    content = zipped({"J#rg M#ller/04_clip.ipynb": made()})
    assert b"J#rg M#ller" in content
    bad = content.replace(b"J#rg M#ller", "Jörg Mül".encode() + b"l")  # 11 bytes as before
    path = tmp_path / "a.zip"
    path.write_bytes(bad)
    assert any("Jörg Mül" in row.source for row in read(path))


@pytest.mark.parametrize(
    "name", ["04_clip.ipynb.txt", "04_clip.ipynb.json", "04_clip.IPYNB", "a.json"]
)
def test_a_notebook_under_another_ending_is_read(tmp_path, name):
    assert came(from_zip(tmp_path, {f"s101/{name}": made()})) == {"s101"}


def test_zip_files_of_students_are_opened_two_deep(tmp_path):
    inner = zipped({"work/04_clip.ipynb": made()})
    files = {
        "s101/a.zip": inner,
        "s102/a.zip": zipped({"b.zip": inner}),
        "s103/a.zip": zipped({"b.zip": zipped({"c.zip": inner})}),
        "s104/04_clip.ipynb": inner,
    }
    rows = from_zip(tmp_path, files)
    assert came(rows) == {"s101", "s102", "s104"}
    assert "zip file inside zip files" in rows["s103"].reason
    assert rows["s102"].source == "download.zip!s102/a.zip!b.zip!work/04_clip.ipynb"


@pytest.mark.parametrize(
    "name",
    [
        "../s101/x.ipynb",
        "/s101/x.ipynb",
        "s101/../../x.ipynb",
        "C:/s101/x.ipynb",
        "C:\\s101\\x.ipynb",
    ],
)
def test_names_that_lead_out_are_not_opened(tmp_path, name):
    rows = from_zip(tmp_path, {name: made("evil"), "s102/04_clip.ipynb": made()})
    assert came(rows) == {"s102"}
    assert any("leads out" in row.reason for row in rows.values() if isinstance(row, Rejected))
    assert [path.name for path in tmp_path.iterdir()] == ["download.zip"]


def member(name, content=b"x" * 10, **about):
    one = zipfile.ZipInfo(name, (*DAY, 1, 1, 2))
    for field, value in about.items():
        setattr(one, field, value)
    return one, content


def hostile_zip(kind):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if kind == "link":
            one, _ = member("s101/04_clip.ipynb", external_attr=(stat.S_IFLNK | 0o777) << 16)
            archive.writestr(one, "/etc/passwd")
        elif kind == "bomb":
            archive.writestr("s101/04_clip.ipynb", b" " * 9_000_000)
        elif kind == "large":
            archive.writestr("s101/04_clip.ipynb", random.Random(1).randbytes(11_000_000))
        elif kind == "lzma":
            one, content = member("s101/04_clip.ipynb", compress_type=zipfile.ZIP_LZMA)
            archive.writestr(one, content)
        elif kind == "damaged":
            archive.writestr("s101/04_clip.ipynb", made())
    content = buffer.getvalue()
    if kind == "locked":
        content = bytearray(zipped({"s101/04_clip.ipynb": made()}))
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
    return (
        bytes(content[:45] + b"\xff\xff\xff" + content[48:])
        if kind == "damaged"
        else bytes(content)
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("link", "link"),
        ("bomb", "zip bombs"),
        ("large", "clear the outputs"),
        ("lzma", "unusual way"),
        ("locked", "password"),
        ("damaged", "damaged"),
    ],
)
def test_hostile_members_are_refused_with_their_reason(tmp_path, kind, reason):
    (tmp_path / "a.zip").write_bytes(hostile_zip(kind))
    row = read(tmp_path / "a.zip")[0]
    assert isinstance(row, Rejected)
    assert reason in row.reason
    assert not row.missing


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\x03\x04" + b"\0" * 50, b"not a zip", b"PK\x05\x06" + b"\0" * 18]
)
def test_a_zip_file_that_is_none_is_a_row(tmp_path, content):
    write(tmp_path, {"s101/a.zip": content, "s102/04_clip.ipynb": made()})
    rows = {row.student: row for row in read(tmp_path)}
    assert came(rows) == {"s102"}
    assert "zip file" in rows["s101"].reason


def test_zip_files_cannot_unpack_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 3_000_000)
    noise = random.Random(1)
    many = {f"{n}.ipynb": noise.randbytes(900_000) for n in range(9)}
    rows = from_zip(tmp_path, {"s101/a.zip": zipped(many), "s102/04_clip.ipynb": made()})
    assert came(rows) == {"s102"}
    found = list(uploads.find_uploads([tmp_path / "download.zip"]))
    assert sum(len(upload.data) for upload in found) <= 3_000_000
    assert any("more files than one zip file may" in upload.problem for upload in found)


def test_zip_files_inside_share_the_limit_of_the_one_around(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 3_000_000)
    noise = random.Random(1)
    inner = {f"{n}.zip": zipped({"a.ipynb": noise.randbytes(700_000)}) for n in range(9)}
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"s101/a.zip": zipped(inner)}))
    found = list(uploads.find_uploads([path]))
    assert sum(len(upload.data) for upload in found) <= 1_500_000


def test_a_zip_file_with_too_many_files_is_refused(tmp_path):
    many = dict.fromkeys((f"{n}.txt" for n in range(1_001)), b"")
    rows = from_zip(tmp_path, {"s101/a.zip": zipped(many)})
    assert "more than 1000 files" in rows["s101"].reason


def test_links_and_devices_are_not_followed(tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_bytes(made("secret"))
    folder = write(tmp_path / "class", {"s101/readme.txt": b""})
    (folder / "s101/04_clip.ipynb").symlink_to(secret)
    (folder / "s102").symlink_to(tmp_path)
    (folder / "s103").mkdir()
    os.mkfifo(folder / "s103/04_clip.ipynb")
    (folder / "s104").mkdir()
    (folder / "s104/loop").symlink_to(folder)
    rows = {row.student: row for row in read(folder)}
    assert came(rows) == set()
    assert "link" in rows["s101"].reason
    assert "link" in rows["s102"].reason
    assert "ordinary" in rows["s103"].reason
    (tmp_path / "s101").symlink_to(folder)
    assert came({row.student: row for row in read(tmp_path / "s101")}) == set()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_read_is_a_row(tmp_path):
    folder = write(tmp_path / "class", {"s101/04_clip.ipynb": made()})
    (folder / "s101").chmod(0)
    try:
        assert "cannot be read" in read(folder)[0].reason
    finally:
        (folder / "s101").chmod(0o700)


def test_large_files_are_refused_fast(tmp_path):
    path = tmp_path / "s101.ipynb"
    with path.open("wb") as file:
        file.truncate(3 * 2**30)
    start = time.process_time()
    row = read(path)[0]
    assert "clear the outputs" in row.reason
    assert time.process_time() - start < 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_text_are_shown_all_the_same(tmp_path):
    folder = os.fsencode(tmp_path) + b"/s101_\xff\n\x1b[31m"
    os.mkdir(folder)  # noqa: PTH102  bytes
    Path(os.fsdecode(folder), "04_clip.ipynb").write_bytes(made())
    row = read(tmp_path)[0]
    assert isinstance(row, Submission)
    assert row.source.isprintable()


# --- without a roster ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ("alice/04_clip.ipynb bob/04_clip.ipynb", "alice bob"),
        ("alice/04_clip.ipynb alice/04_clip_(1).ipynb bob/x.ipynb", "alice bob"),
        ("alice.ipynb bob.ipynb", "alice bob"),
        ("04_clip_alice.ipynb 04_clip_bob-final.ipynb", "alice bob"),
        ("A/alice/04_clip.ipynb B/bob/exercises/04_clip.ipynb", "A-alice B-bob"),
        ("A/alice.ipynb A/bob.ipynb B/alice.ipynb", "A-alice A-bob B"),
        ("wrap/alice/04_clip.ipynb", "alice"),
        ("04_clip.ipynb", "04_clip"),
        ("ws_2024_1130_alice.ipynb ww_2024_1130_bob.ipynb", "ws-2024-1130-alice ww-2024-1130-bob"),
        ("M-M_11_assignsubmission_file_/a.ipynb L_12_assignsubmission_file_/a.ipynb", "11 12"),
        ("mm_55_678_a.ipynb mm_LATE_55_679_b.ipynb ll_56_680_a.ipynb", "55 56"),
    ],
)
def test_without_a_roster_names_say_who(tmp_path, files, wanted):
    rows = from_zip(tmp_path, {name: made(name) for name in files.split()}, roster=None)
    assert list(rows) == wanted.split()


def test_without_a_roster_the_notebook_may_say_who(tmp_path):
    content = made(metadata={"ppo_lessons": {"student": "ada", "assignment": "04_clip"}})
    assert list(from_zip(tmp_path, {"04_clip.ipynb": content}, roster=None)) == ["ada"]


def test_without_a_roster_who_sent_no_notebook_is_seen_by_the_platform(tmp_path):
    files = {"Li_7_assignsubmission_file_/x.pdf": b"", "readme.txt": b"", "a/04_clip.ipynb": made()}
    rows = from_zip(tmp_path, files, roster=None)
    assert list(rows) == ["7", "a"]
    assert "x.pdf" in rows["7"].reason


def test_rows_do_not_depend_on_the_order_of_paths(tmp_path):
    write(tmp_path, {f"s10{n}/04_clip.ipynb": made(n) for n in range(1, 5)})
    paths = sorted(tmp_path.iterdir())
    for roster in (ROSTER, None):
        assert read(paths, roster) == read(paths[::-1], roster)


# --- the roster ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "id,name\ns1,Max Muster\n007,Jörg\n",
        "id;name\r\ns1;Max Muster\r\n007;Jörg\r\n",
        "Name\tID\tMail\nMax Muster\ts1\tx\nJörg\t007\ty\n",
        '\ufeff"id","name"\n"s1","Max  Muster"\n\n007 ,"Jörg"\n,,\n',
        "sep=;\nid;name\ns1;Max Muster\n007;Jörg",
        " ID | Name \ns1|Max Muster\n007|Jörg",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_rosters_of_spreadsheets_are_read(tmp_path, text, encoding):
    path = tmp_path / "roster.csv"
    path.write_bytes(text.lstrip("\ufeff" if encoding != "utf-8" else "").encode(encoding))
    assert read_roster(path) == {"s1": "Max Muster", "007": "Jörg"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "names of columns"),
        (b"s1,Max\ns2,Li\n", "names of columns"),
        (b"id,name\n", "names no student"),
        (b"id,name\ns1,Max\n,Li\n", "line 3: no id for 'Li'"),
        (b"id,name\ns1,Max\ns1,Li\n", "line 3: the id 's1' is there twice"),
        (b"id,name\nAda,Max\nada,Li\n", "differ by capitals"),
        (b"id,name\n../x,Max\n", "file's name"),
        (b"id,name\na/b,Max\n", "file's name"),
        (b"id,name\n.x,Max\n", "file's name"),
        (b"id,name\nnul,Max\n", "file's name"),
        (b"id,name\n" + b"x" * 81 + b",Max\n", "file's name"),
        (b"id,name\n\x00\x01,Max\n", "no text"),
        (b"\xff\xfe\x00", "no text"),
        (b"PK\x03\x04\x14\x00\x06\x00", "no text"),
    ],
)
def test_a_roster_that_cannot_be_used_says_why(tmp_path, content, reason):
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    with pytest.raises(RosterError, match=reason):
        read_roster(path)


def test_a_roster_that_is_not_there_says_so(tmp_path):
    with pytest.raises(RosterError, match="cannot be read"):
        read_roster(tmp_path / "x.csv")
    with pytest.raises(RosterError, match="cannot be read"):
        read_roster(tmp_path)


def test_ids_of_a_mapping_are_held_to_the_same(tmp_path):
    with pytest.raises(RosterError, match="file's name"):
        read(tmp_path, {"../x": "Max"})


# --- whatever comes in ---------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["cells", "source", "cell_type", "metadata", "id", "ppo_lessons", "answer"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
CELLS = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {},
        optional={
            "cell_type": st.sampled_from(["code", "markdown", "raw", "heading", "x", 3]),
            "source": VALUES
            | st.just("# answer: clip.surrogate\n")
            | st.lists(st.text(max_size=5)),
            "id": VALUES,
            "metadata": VALUES,
            "outputs": VALUES,
        },
    ),
)
NOTEBOOKS = st.fixed_dictionaries(
    {"cells": st.lists(CELLS, max_size=5) | VALUES},
    optional={"metadata": VALUES, "nbformat": VALUES},
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    NOTEBOOKS.map(lambda value: json.dumps(value).encode()),
    st.just(made()),
    st.just(zipped({"a.ipynb": made()})),
)
PARTS = st.sampled_from(
    ["s101", "s102", "Max Muster", "04_clip", "..", "", "C:", "~", "a" * 99, "s101 s102", "\u202e",
     "x_12_assignsubmission_file_", "li_12_345_x", "con", "7", "\ud800", "ü", "\n", ".x"]
)  # fmt: skip
NAMES = st.builds(
    lambda parts, ending: "/".join(parts) + ending,
    st.lists(PARTS | st.text(max_size=6), min_size=1, max_size=4),
    st.sampled_from([".ipynb", ".zip", ".json", ".txt", "", "/"]),
)


@settings(deadline=None, max_examples=150)
@given(NOTEBOOKS.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200))
def test_any_bytes_are_a_notebook_or_have_a_reason(content):
    try:
        parsed = parse_notebook(content)
    except UnreadableError:
        return
    assert parsed.cells
    for cell in parsed.cells:
        assert cell.kind in ("code", "markdown", "raw")
        cell.source.encode()
        assert cell.id.isascii()
        assert cell.marker.isprintable()


def check_any(path, names_of_roster):
    for roster in (names_of_roster, None):
        rows = read(path, roster)
        for row in rows:
            assert isinstance(row, (Submission, Rejected))
            assert row.source.isprintable()
            if isinstance(row, Rejected):
                assert row.reason


@settings(
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.dictionaries(NAMES, CONTENTS, max_size=6), st.data())
def test_any_zip_file_becomes_rows_with_reasons(tmp_path, files, data):
    names = {name.encode("utf-8", "replace").decode(): each for name, each in files.items()}
    content = bytearray(zipped({name: each for name, each in names.items() if "\0" not in name}))
    for _ in range(data.draw(st.integers(0, 6))):  # flips after which it may be no zip file
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "a.zip"
    path.write_bytes(bytes(content))
    check_any(path, ROSTER)
