"""Put a student's answers into the instructor's notebooks. Parses; executes nothing.

An answer cell is found by its line `# answer: lesson.exercise`; if that is gone by its metadata,
then by its cell id, then by what it defines. Of several the last one counts that is not blank.

Of all other cells only those imports, definitions and assignments are taken that an answer uses,
wherever they stand: they travel in front of it, in its own cell. So a helper comes along, while
experiments, training and edited checks stay behind. Two answers that use one name for different
things each get a namespace of their own, since all of them are checked at the end.
"""

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppo_lessons.grading.cell_text import (
    Needs,
    Shelf,
    Unit,
    meanings,
    needs_of,
    parse_code,
    units_of,
    without_calls,
    without_magics,
    without_marks,
)
from ppo_lessons.grading.parse import MARKER, marked
from ppo_lessons.grading.types import Cell, Manifest, Question, Submission, Transplanted

MAX_UNITS = 20_000  # statements of a notebook among which helpers are looked for
MAX_CARRIED = 100_000  # characters
MAX_NOTES = 40
# What the course's own notebooks call, and a graded one lacks.
COURSE_CALLS = frozenset({"check", "hint", "reveal", "setup"})
BLANK = re.compile(r"raise NotImplementedError\(.?exercise \d+\.\d+")
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOUND_BY = {
    "metadata": "found by the cell's metadata: its line `# answer:` is gone",
    "cell id": "found by the cell's id: its line `# answer:` is gone",
    "name": "found by what it defines: no cell has its line `# answer:`",
    "other answer": "which answers another question and defines this one too",
}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A cell, or the part of a cell that answers one question.

    Args:
        text: its code.
        cell: number of the cell in the student's file, from 1.
        kind: of that cell.
        defined: names that it gives a meaning at its left margin.
        ids: questions whose line `# answer:` it has.
        marker: question in the cell's metadata.
        cell_id: of that cell.
    """

    text: str
    cell: int
    kind: str
    defined: frozenset[str]
    ids: tuple[str, ...] = ()
    marker: str = ""
    cell_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What goes into an answer cell.

    Args:
        question: that it answers.
        text: its code, with what travels along.
        space: whether it gets a namespace of its own.
    """

    question: Question
    text: str
    space: bool = False


def transplant(
    submission: Submission, manifest: Manifest, reference: Mapping[str, dict[str, Any]]
) -> Transplanted:
    """Replace each answer cell of the reference by the student's.

    Args:
        submission: what the student sent.
        manifest: of the reference.
        reference: its notebooks, nbformat 4 as dictionaries, by part.

    Returns:
        Copies of the notebooks: same cells, same ids, same order; only answer cells differ, and
        they are un-run. Notes about one question begin with its id.

    Raises:
        ValueError: if reference and manifest do not belong together; never because of what a
            student sent.
    """
    parts = {part: copy.deepcopy(notebook) for part, notebook in reference.items()}
    homes = {question.id: answer_cell(parts, question) for question in manifest.questions}
    notes: list[str] = []
    try:
        sources = answer_sources(submission.cells, manifest, parts, notes)
    except Exception as error:  # one student's file must not stop the others
        sources, notes = {}, [f"the answers cannot be taken out ({type(error).__name__})"]
    for question in manifest.questions:
        source = sources.get(question.id) or stub(question)
        homes[question.id] |= {"source": source, "outputs": [], "execution_count": None}
    absent = tuple(question.id for question in manifest.questions if question.id not in sources)
    notes += [f"{id}: no answer cell was found" for id in absent]
    if len(notes) > MAX_NOTES:
        notes = [*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more"]
    return Transplanted(parts=parts, absent=absent, notes=tuple(notes))


def answer_sources(
    cells: Sequence[Cell],
    manifest: Manifest,
    parts: Mapping[str, Mapping[str, Any]],
    notes: list[str],
) -> dict[str, str]:
    """Write the answer cells.

    Args:
        cells: of the student's file.
        manifest: of the reference.
        parts: the reference's notebooks.
        notes: get what was decided.

    Returns:
        Sources by question, of those that were answered.
    """
    texts = clean_texts(cells, notes)
    pieces = list(pieces_of(cells, texts, manifest.questions, notes))
    found = {
        question.id: piece
        for question in manifest.questions
        if (piece := find_answer(question, pieces, notes))
    }
    shelf, starts = shelf_of(cells, texts, notes)
    answers: list[Answer] = []
    for question in manifest.questions:
        if piece := found.get(question.id):
            there = names_there(question, manifest.questions, found)
            text = with_helpers(question, piece, shelf, starts, there, notes)
            answers.append(Answer(question=question, text=text))
    sources: dict[str, str] = {}
    for part, notebook in parts.items():
        here = [answer for answer in answers if answer.question.part == part]
        for answer in with_spaces(here, names_of_checks(notebook, manifest), notes):
            sources[answer.question.id] = cell_source(answer)
    return sources


def answer_cell(parts: Mapping[str, dict[str, Any]], question: Question) -> dict[str, Any]:
    """Find the cell that a question's answer goes into; the reference is trusted, but checked."""
    cells = parts.get(question.part, {}).get("cells", [])
    homes = [cell for cell in cells if cell.get("id") == question.answer]
    if len(homes) != 1 or homes[0].get("cell_type") != "code":
        raise ValueError(
            f"the reference has {len(homes)} cells {question.answer!r} in its part "
            f"{question.part!r}; expected one code cell for {question.id}. Bake it again"
        )
    return homes[0]


def stub(question: Question) -> str:
    """Write the cell of a question that was not answered."""
    words = f"no answer cell for {question.id} was found in this notebook"
    return f"# answer: {question.id}\nraise NotImplementedError({words!r})"


# --- from cells to answers -----------------------------------------------------------------


def clean_texts(cells: Sequence[Cell], notes: list[str]) -> list[str]:
    """Give the code of each cell, without what only a notebook understands."""
    texts = []
    for number, cell in enumerate(cells, start=1):
        text = cell.source if cell.kind == "code" else unfenced(cell.source)
        text, changed = without_magics(text)
        if changed and cell.kind == "code":
            notes.append(f"cell {number}: lines beginning with %, ! or ? are taken as comments")
        texts.append(text)
    return texts


def pieces_of(
    cells: Sequence[Cell], texts: Sequence[str], questions: Sequence[Question], notes: list[str]
) -> Iterator[Piece]:
    """Cut cells where they name several answers.

    Args:
        cells: of the student's file.
        texts: their code.
        questions: of the assignment.
        notes: get what was decided.

    Yields:
        Pieces in order.
    """
    known = {question.id.lower(): question.id for question in questions}
    names = {question.name for question in questions}
    for number, (cell, text) in enumerate(zip(cells, texts, strict=True), start=1):
        ids = own_ids(number, cell, known, notes)
        about = {"cell": number, "kind": cell.kind, "cell_id": cell.id}
        marker = known.get(cell.marker.lower(), "")
        if len(ids) > 1 and (cuts := cut(text, known)):
            notes.append(f"cell {number} holds {len(cuts)} answers; it is cut at their first lines")
            for id, part in cuts:
                yield Piece(text=part, ids=(id,), defined=given_names(part, names), **about)
        elif ids or marker or cell.kind == "code" or cell.id:
            defined = given_names(text, names)
            yield Piece(text=text, ids=ids, marker=marker, defined=defined, **about)


def own_ids(number: int, cell: Cell, known: Mapping[str, str], notes: list[str]) -> tuple[str, ...]:
    """Give the questions that a cell says to answer; a note names those that do not exist."""
    named = dict.fromkeys(marked(cell.source))
    lessons = {id.partition(".")[0] for id in known}
    for name in named:
        if name not in known and name.partition(".")[0] in lessons:
            notes.append(f"cell {number}: `# answer: {name[:80]}` names no question")
    return tuple(dict.fromkeys(known[name] for name in named if name in known))


def given_names(text: str, names: Iterable[str]) -> frozenset[str]:
    """Say which of some names code gives a meaning at its left margin, even if it is no Python."""
    names = [name for name in names if name in text]
    if not names:
        return frozenset()
    if parse_code(text) is not None:
        bound = {name for unit in units_of(text) for name in unit.binds}
        return frozenset(bound.intersection(names))
    patterns = {
        name: rf"^(?:(?:async )?def {re.escape(name)}\b|{re.escape(name)} *=[^=])" for name in names
    }
    return frozenset(n for n, pattern in patterns.items() if re.search(pattern, text, re.MULTILINE))


def unfenced(source: str) -> str:
    """Take code out of a cell that had become text."""
    blocks = FENCED.findall(source)
    return "\n".join(blocks) if blocks else source


def cut(text: str, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Cut a cell at the lines that name answers; nothing if a part would be no Python."""
    marks = [
        (found.start(), known[name])
        for found in MARKER.finditer(text)
        if (name := found.group(1).rstrip(".").lower()) in known
    ]
    marks = [mark for n, mark in enumerate(marks) if n == 0 or mark[1] != marks[n - 1][1]]
    starts = [0, *(start for start, _ in marks[1:])]
    ends = [*starts[1:], len(text)]
    parts = [(id, text[start:end]) for (_, id), start, end in zip(marks, starts, ends, strict=True)]
    whole = parse_code(text) is not None
    return [] if whole and any(parse_code(part) is None for _, part in parts) else parts


def find_answer(question: Question, pieces: Sequence[Piece], notes: list[str]) -> Piece | None:
    """Find the piece that answers a question.

    Args:
        question: that is looked for.
        pieces: of the student's file.
        notes: get how it was found, if not by its line.

    Returns:
        The last piece of the best kind that is not blank; else a blank one, if there is any.
    """
    blank: tuple[Piece, str] | None = None
    for is_code in (True, False):
        some = [piece for piece in pieces if (piece.kind == "code") == is_code]
        for way, found in candidates(question, some):
            live = [piece for piece in found if not is_blank(piece, question.name)]
            if live:
                notes += how_found(question, way, live[-1], len(found), skipped=blank is not None)
                return live[-1]
            if found and blank is None:
                blank = (found[-1], way)
    if blank:
        notes += how_found(question, blank[1], blank[0], 1, skipped=False)
        return blank[0]
    return None


def candidates(question: Question, pieces: Sequence[Piece]) -> Iterator[tuple[str, list[Piece]]]:
    """Yield the pieces that may answer a question, from the surest way to find them."""
    yield "line", [piece for piece in pieces if question.id in piece.ids]
    others = [piece for piece in pieces if not piece.ids]
    own = [piece for piece in others if not is_of_another(piece, question)]
    yield "metadata", [piece for piece in own if piece.marker == question.id]
    yield "cell id", [piece for piece in own if piece.cell_id == question.answer]
    if pieces and pieces[0].kind == "code":
        yield "name", [piece for piece in others if question.name in piece.defined]
        inside = [piece for piece in pieces if piece.ids and question.name in piece.defined]
        yield "other answer", [piece for piece in inside if question.id not in piece.ids]


def is_of_another(piece: Piece, question: Question) -> bool:
    """Whether a cell without its line defines what another question asks for, and not this."""
    if piece.marker != question.id and piece.cell_id != question.answer:
        return False
    return bool(piece.defined) and question.name not in piece.defined


def is_blank(piece: Piece, name: str) -> bool:
    """Whether a cell is as it was handed out, or empty, as far as that can be seen."""
    tree = parse_code(piece.text)
    if BLANK.search(piece.text) or tree is None:
        return tree is not None
    if name not in piece.defined:
        return True
    for statement in reversed(tree.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                return holds_nothing(value)
    return False


def holds_nothing(value: ast.expr) -> bool:
    """Whether an expression is None, or a row of None and nothing else."""
    values = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [value])
    return bool(values) and all(
        isinstance(each, ast.Constant) and each.value is None for each in values
    )


def how_found(
    question: Question, way: str, piece: Piece, count: int, *, skipped: bool
) -> Iterator[str]:
    """Say how an answer was found, if not as it should be."""
    if way in FOUND_BY:
        words = "its own cell is blank; this one defines it" if skipped else FOUND_BY[way]
        yield f"{question.id}: cell {piece.cell} is taken, {words}"
    if count > 1:
        which = f"the last that is not blank counts, cell {piece.cell}"
        yield f"{question.id}: {count} answer cells; {which}"
    if piece.kind != "code":
        yield f"{question.id}: cell {piece.cell} had become {piece.kind}; it is taken as code"


# --- what travels along --------------------------------------------------------------------


def shelf_of(
    cells: Sequence[Cell], texts: Sequence[str], notes: list[str]
) -> tuple[Shelf, list[int]]:
    """Gather the statements of all code cells.

    Args:
        cells: of the student's file.
        texts: their code.
        notes: get a word if there are too many.

    Returns:
        The statements, and how many stand before each cell.
    """
    units: list[Unit] = []
    starts = []
    for cell, text in zip(cells, texts, strict=True):
        starts.append(len(units))
        if cell.kind == "code" and len(units) <= MAX_UNITS:
            units += units_of(text)
    if len(units) > MAX_UNITS:
        notes.append(f"helpers are looked for in the first {MAX_UNITS} statements only")
        units = units[:MAX_UNITS]
    return Shelf(units), starts


def names_there(
    question: Question, questions: Sequence[Question], found: Mapping[str, Piece]
) -> set[str]:
    """Give the names that other answers define in the notebook where this one is checked."""
    return {
        other.name
        for other in questions
        if other.id in question.builds_on
        or (other.part == question.part and other.id in found and other.id != question.id)
    }


def with_helpers(
    question: Question,
    piece: Piece,
    shelf: Shelf,
    starts: Sequence[int],
    there: set[str],
    notes: list[str],
) -> str:
    """Put in front of an answer what it uses from other cells.

    Args:
        question: that it answers.
        piece: the answer.
        shelf: statements of all cells.
        starts: how many of them stand before each cell.
        there: names that are defined anyway.
        notes: get what travels along.

    Returns:
        Code for one cell.
    """
    bound = {name for unit in units_of(piece.text) for name in unit.fixed if not unit.imports}
    text, changed = without_calls(piece.text, COURSE_CALLS - bound)
    if changed:
        notes.append(f"{question.id}: calls of check, hint, reveal or setup are left out")
    own = units_of(text)
    bound = {name for unit in own for name in unit.binds}
    needed = needs_of(text).outside - there
    before = min(starts[piece.cell - 1], len(shelf.units))
    chosen = shelf.gather(needed, before=before, left_out=there | bound)
    missing = {name for name in needed if name not in shelf.homes}
    stars = [
        n for n, unit in enumerate(shelf.units) if unit.star and "ppo_lessons" not in unit.text
    ]
    carried = sorted({*chosen, *(stars[:5] if missing else ())})
    lines = [shelf.units[n].text for n in carried if not shelf.units[n].future]
    if sum(map(len, lines)) > MAX_CARRIED:
        notes.append(f"{question.id}: what it uses from other cells is too long, and left out")
        lines = []
    elif lines:
        names = sorted({name for n in carried for name in shelf.units[n].binds})
        notes.append(f"{question.id}: {', '.join(names[:8])} from other cells comes along")
    futures = [] if any(unit.future for unit in own) else [u.text for u in shelf.units if u.future]
    head = max((unit.last for unit in own if unit.future), default=0)
    body = text.split("\n")
    return "\n".join([*dict.fromkeys(futures), *body[:head], *dict.fromkeys(lines), *body[head:]])


# --- namespaces ----------------------------------------------------------------------------


def names_of_checks(notebook: Mapping[str, Any], manifest: Manifest) -> set[str]:
    """Give the names that the instructor's check cells use."""
    ids = {check.cell for question in manifest.questions for check in question.checks}
    ids |= {question.tell for question in manifest.questions if question.tell}
    texts = ["".join(cell["source"]) for cell in notebook.get("cells", []) if cell.get("id") in ids]
    trees = [tree for text in texts if (tree := parse_code(text))]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def with_spaces(
    answers: Sequence[Answer], reserved: set[str], notes: list[str]
) -> Iterator[Answer]:
    """Give a namespace to answers that use one name for different things.

    Args:
        answers: of one notebook.
        reserved: names that its checks use.
        notes: get which were separated.

    Yields:
        The answers, some with `space`.
    """
    defined = [meanings(units_of(answer.text)) for answer in answers]
    needs = [needs_of(answer.text) for answer in answers]
    owners = {answer.question.name for answer in answers}
    for number, answer in enumerate(answers):
        clashes = {
            name
            for name, meaning in defined[number].items()
            if name != answer.question.name
            and (name in reserved - owners or clash(name, meaning, number, defined, needs, owners))
        }
        if clashes and answer.question.name in defined[number]:
            some = ", ".join(sorted(clashes)[:5])
            notes.append(
                f"{answer.question.id}: other cells use {some} for something else; each answer "
                "sees its own"
            )
            yield replace(answer, space=True)
        else:
            yield answer


def clash(
    name: str,
    meaning: Sequence[str],
    number: int,
    defined: Sequence[Mapping[str, Sequence[str]]],
    needs: Sequence[Needs],
    owners: Iterable[str],
) -> bool:
    """Whether an answer's name means something else in another answer, and one would notice."""
    others = [n for n in range(len(defined)) if n != number and name in defined[n]]
    different = [n for n in others if defined[n][name] != meaning]
    return bool(different) and (
        name in owners or any(name in needs[n].later for n in (number, *different))
    )


def cell_source(answer: Answer) -> str:
    """Write the source of an answer cell."""
    text = without_marks(answer.text)
    if not answer.space:
        return text
    question = answer.question
    lines = "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True))
    return f"""# answer: {question.id}, in a namespace of its own
_answer_text = (
{lines}
)
_answer_space = dict(globals())
__import__("linecache").cache["<{question.id}>"] = (
    len(_answer_text), None, _answer_text.splitlines(True), "<{question.id}>"
)
exec(compile(_answer_text, "<{question.id}>", "exec", dont_inherit=True), _answer_space)
{question.name} = _answer_space["{question.name}"]"""
