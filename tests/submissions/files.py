"""Files that editors, platforms and accidents make, and files that were made to do harm."""

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable
from itertools import count
from typing import Any

import nbformat

from submissions import (
    ALL,
    ANY,
    EXERCISES,
    NONE,
    ROOT,
    Notebook,
    Odd,
    answer_of,
    as_bytes,
    blank,
    changes,
    code_cell,
    enter,
    place_of,
    put_answer,
    solved,
    source_of,
    with_wrong_answers,
)

REJECTED = ("rejected",)


def file(name: str, about: str, make: Callable[[], bytes], **more: Any) -> None:
    """Enter a submission by its bytes."""
    enter(Odd(name=name, make=make, about=about, **more))


def crlf() -> bytes:
    notebook = solved()
    for cell in notebook["cells"]:
        cell["source"] = source_of(cell).replace("\n", "\r\n")
    return as_bytes(notebook).replace(b"\n", b"\r\n")


def zipped(*members: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


def huge(megabytes: int) -> bytes:
    notebook = solved()
    words = {"output_type": "stream", "name": "stdout", "text": "x" * (megabytes * 1_000_000)}
    notebook["cells"][place_of(notebook, EXERCISES[0])]["outputs"] = [words]
    return as_bytes(notebook)


def third_format() -> bytes:
    node = nbformat.reads(json.dumps(solved()), as_version=4)
    return nbformat.writes(nbformat.convert(node, 3), version=3).encode()


# --- honest: other editors -----------------------------------------------------------------


@changes("no_ids", "as nbformat 4.4 writes it")
def _no_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        cell.pop("id", None)


@changes("old_minor_format", "as nbformat 4.0 writes it, without a kernel")
def _old_minor(notebook: Notebook) -> None:
    _no_ids(notebook)
    notebook["nbformat_minor"], notebook["metadata"] = 0, {}


@changes("metadata_stripped", "no metadata, other ids")
def _metadata_stripped(notebook: Notebook) -> None:
    numbers = count()
    notebook["metadata"] = {}
    for cell in notebook["cells"]:
        cell["metadata"], cell["id"] = {}, f"x{next(numbers):07d}"


@changes("markers_removed", "the marker lines are gone, ids are there")
def _markers_removed(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = re.sub(r"^# answer: .*\n", "", source_of(cell))


@changes(
    "only_names_left",
    "no markers, no ids, no metadata: only what is defined tells",
    shares={"gradient_signs": ANY},
)
def _only_names(notebook: Notebook) -> None:
    _markers_removed(notebook)
    _metadata_stripped(notebook)


@changes("reordered", "the answers stand in the other order")
def _reordered(notebook: Notebook) -> None:
    places = [place_of(notebook, exercise) for exercise in EXERCISES]
    cells = [notebook["cells"][place] for place in places]
    for place, cell in zip(places, reversed(cells), strict=True):
        notebook["cells"][place] = cell


@changes(
    "blank_copy_before", "a blank copy stands before the answer", says="last|copies|several|twice"
)
def _blank_copy(notebook: Notebook) -> None:
    given = blank()
    cell = copy.deepcopy(given["cells"][place_of(given, EXERCISES[0])])
    notebook["cells"].insert(place_of(notebook, EXERCISES[0]), cell | {"id": "copy"})


@changes(
    "answer_as_markdown", "an answer cell was toggled to text", says="code|toggled|text|markdown"
)
def _as_markdown(notebook: Notebook) -> None:
    cell = notebook["cells"][place_of(notebook, EXERCISES[1])]
    source = cell["source"]
    cell.clear()
    cell |= {"cell_type": "markdown", "metadata": {}, "source": source, "id": "toggled"}


@changes("sources_as_lists", "sources are lists of lines")
def _as_lists(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = source_of(cell).splitlines(keepends=True)


@changes("other_kernel", "made with a kernel that is not installed", rest=ALL)
def _other_kernel(notebook: Notebook) -> None:
    notebook["metadata"] = {
        "kernelspec": {"name": "my-env", "display_name": "My env", "language": "python"},
        "language_info": {"name": "python", "version": "3.9.1"},
        "colab": {"provenance": []},
    }


@changes("big_output", "three megabytes of a picture are stored")
def _big_output(notebook: Notebook) -> None:
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": "A" * 3_000_000},
    }
    notebook["cells"][place_of(notebook, EXERCISES[0])]["outputs"] = [picture]


file(
    "third_format",
    "nbformat 3: read, or refused with its name",
    third_format,
    statuses=("graded", "rejected"),
    rest=ANY,
)
file("with_mark_and_returns", "byte order mark, CRLF", lambda: b"\xef\xbb\xbf" + crlf())
file("in_sixteen_bits", "UTF-16", lambda: json.dumps(solved()).encode("utf-16"))
file("on_one_line", "compact JSON", lambda: json.dumps(solved()).encode())


# --- broken --------------------------------------------------------------------------------

file("half_a_file", "cut in the middle", lambda: as_bytes(solved())[:9000], statuses=REJECTED)
file("empty_file", "no bytes", lambda: b"", statuses=REJECTED)
file("a_list", "JSON, no notebook", lambda: b"[1, 2]", statuses=REJECTED)
file("a_word_file", "a zip file that is none of ours", lambda: b"PK\3\4 nothing", statuses=REJECTED)
file(
    "in_latin_1",
    "bytes that are no text",
    lambda: json.dumps(solved(), ensure_ascii=False).encode("latin-1", "replace") + b"\xe9",
    statuses=REJECTED,
)
file(
    "other_assignment",
    "the exercise of another lesson",
    lambda: (ROOT / "solutions" / "05_critic.ipynb").read_bytes(),
    statuses=("rejected", "missing"),
    rest=NONE,
)

# --- made to harm --------------------------------------------------------------------------

file(
    "nested_deeply",
    "JSON of a hundred thousand levels",
    lambda: b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    hostile=True,
    statuses=REJECTED,
)
file(
    "huge_output",
    "forty megabytes stored",
    lambda: huge(40),
    hostile=True,
    statuses=("rejected", "graded"),
    rest=ANY,
)
file(
    "numbers_without_end",
    "integers of a million digits, NaN, duplicate keys",
    lambda: b'{"nbformat": 4, "nbformat": ' + b"9" * 1_000_000 + b', "x": NaN, "cells": []}',
    hostile=True,
    statuses=REJECTED,
)


@changes(
    "types_mixed_up",
    "fields of the wrong type in every cell that is no answer",
    hostile=True,
    statuses=("graded", "rejected"),
    rest=ANY,
)
def _types(notebook: Notebook) -> None:
    odd = (None, 5, [], {}, "x", [[1]], True, {"source": {"x": 1}})
    notebook["cells"] += list(odd)
    for value in odd:
        for key in ("source", "metadata", "cell_type", "id", "outputs"):
            notebook["cells"].append(code_cell("1", "odd") | {key: value})


@changes("cells_without_number", "twenty thousand copies of a wrong answer before the right one",
         hostile=True, statuses=("graded", "rejected"), rest=ANY)  # fmt: skip
def _many_cells(notebook: Notebook) -> None:
    marker = "# answer: clip.clipped_surrogate\nclipped_surrogate = max"
    place = place_of(notebook, EXERCISES[0])
    notebook["cells"][place:place] = [code_cell(marker, f"n{each}") for each in range(20_000)]


def with_surrogates() -> bytes:
    notebook = solved()
    answer = answer_of(notebook, EXERCISES[0])
    put_answer(notebook, EXERCISES[0], answer + "\nword = 'SURROGATE'\n")
    return as_bytes(notebook).replace(b"SURROGATE", b"\\ud800\\udfff \\u0000")


file(
    "surrogates_in_source",
    "characters that no file can hold, in an answer",
    with_surrogates,
    hostile=True,
    statuses=("graded", "rejected"),
    shares={"clipped_surrogate": ANY},
)


@changes("markers_that_lead_elsewhere", "wrong answers under markers with paths and other ids",
         right=False, hostile=True, rest=NONE)  # fmt: skip
def _markers_elsewhere(notebook: Notebook) -> None:
    for name in ("../../etc/passwd", "clip.", "clip.no_such", "gae.compute_gae", "*", "x" * 5000):
        notebook["cells"].append(code_cell(f"# answer: {name}\nprint(1)", "other"))


file(
    "zip_bomb",
    "a small zip file with 200 MB inside",
    lambda: zipped(("04_clip.ipynb", b" " * 200_000_000)),
    hostile=True,
    statuses=REJECTED,
    ending=".zip",
)
file(
    "zip_with_ways_out",
    "members that lie outside",
    lambda: zipped(
        ("../../ppo_lessons_was_here.ipynb", as_bytes(solved())),
        ("/tmp/ppo_lessons_was_here.ipynb", as_bytes(with_wrong_answers(solved()))),
    ),
    hostile=True,
    statuses=("rejected", "graded"),
    rest=ANY,
    ending=".zip",
)
