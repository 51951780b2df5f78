"""How is a py:percent source of exercises read? The builder of notebooks and the grader share this.

What a learner writes stands between two comment lines:

    ### BEGIN SOLUTION                 -> raise NotImplementedError("exercise 5.1")
    ### BEGIN SOLUTION: the two masks  -> raise NotImplementedError("exercise 5.1: the two masks")
    ### BEGIN SOLUTION stub: x = None  -> x = None
    ### END SOLUTION
"""

import re
from collections import Counter
from collections.abc import Sequence

import jupytext
import nbformat
from nbformat import NotebookNode

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE_INFO = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}


class BuildError(ValueError):
    """A source that cannot become a notebook, with what to do about it."""


# --- cells ---------------------------------------------------------------------------------


def read_cells(text: str, *, name: str) -> list[NotebookNode]:
    """Read a source: its cells with source, tags and the wish for an id.

    Args:
        text: of a py:percent file.
        name: of the file, for errors.

    Returns:
        The cells; `id` is empty where the source asks for none.

    Raises:
        BuildError: if the first cell is no title.
    """
    read = jupytext.reads(text, fmt="py:percent")
    cells = [_clean_cell(cell) for cell in read.cells if cell.source.strip()]
    if not cells or cells[0].cell_type != "markdown":
        raise BuildError(f"{name}: the first cell must be markdown with the title")
    return cells


def _clean_cell(cell: NotebookNode) -> NotebookNode:
    """Keep source, tags and the wish for an id; forget the random id."""
    wish = cell.metadata.get("id", "")
    tags = cell.metadata.get("tags")
    make = {
        "markdown": nbformat.v4.new_markdown_cell,
        "code": nbformat.v4.new_code_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[cell.cell_type]
    clean = make(cell.source.strip("\n"), metadata={"tags": tags} if tags else {})
    clean.id = wish
    return clean


def assign_ids(cells: Sequence[NotebookNode], *, name: str) -> None:
    """Give each cell its wish, or the last heading and a counter within that section.

    An inserted cell then renames at most the cells after it in its own section.

    Args:
        cells: as `read_cells` gives them; changed in place.
        name: of the file, for errors.

    Raises:
        BuildError: if an id is no id, or appears twice.
    """
    wishes = Counter(cell.id for cell in cells if cell.id)
    section, counts = "start", Counter()
    for cell in cells:
        section = _heading_slug(cell) or section
        if not cell.id:
            counts[section] += 1
            cell.id = f"{section}-{counts[section]:02d}"
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell.id):
            raise BuildError(f"{name}: id {cell.id!r} is not 1-64 letters, digits, - or _")
    doubled = [id for id, count in Counter(cell.id for cell in cells).items() if count > 1]
    doubled += [id for id, count in wishes.items() if count > 1]
    if doubled:
        raise BuildError(f"{name}: these cell ids appear twice: {sorted(set(doubled))}")


def _heading_slug(cell: NotebookNode) -> str:
    if cell.cell_type != "markdown":
        return ""
    match = re.search(r"^#{1,6} +(.+)$", cell.source, flags=re.MULTILINE)
    if match is None:
        return ""
    words = re.sub(r"[^a-z0-9]+", "-", match.group(1).lower()).strip("-")
    return words[:40].strip("-")


# --- answers -------------------------------------------------------------------------------

BEGIN = re.compile(
    r"^(?P<indent>[ ]*)### BEGIN SOLUTION(?:: *(?P<words>.+)| +stub: *(?P<stub>.+))?\s*$"
)
END = re.compile(r"^[ ]*### END SOLUTION\s*$")
MARKER_LIKE = re.compile(r"#+ *(?:BEGIN|END) +SOLUTION", flags=re.IGNORECASE)


def split_solution(source: str, *, number: int, count: int, blank: bool) -> tuple[str, int]:
    """Rewrite one code cell of an exercise.

    Args:
        source: the cell's text.
        number: number of the lesson.
        count: answers seen in the cells before.
        blank: whether the answers are replaced; otherwise only the markers go.

    Returns:
        The new text, and the number of answers seen so far.

    Raises:
        BuildError: if markers do not pair up or are misspelt.
    """
    lines: list[str] = []
    inside = False
    for line in source.splitlines():
        begin, end = BEGIN.match(line), END.match(line)
        if (begin and inside) or (end and not inside) or _misspelt(line, begin or end):
            raise BuildError(
                f"markers do not pair up at {line!r}: expected ### BEGIN SOLUTION, then "
                "### END SOLUTION"
            )
        if begin:
            inside, count = True, count + 1
            lines += [_stub(begin, f"exercise {number}.{count}")] if blank else []
        elif end:
            inside = False
        elif not (blank and inside):
            lines.append(line)
    if inside:
        raise BuildError("### BEGIN SOLUTION has no ### END SOLUTION in the same cell")
    return "\n".join(lines), count


def _misspelt(line: str, marker: re.Match[str] | None) -> bool:
    return marker is None and MARKER_LIKE.search(line) is not None


def _stub(begin: re.Match[str], label: str) -> str:
    if begin["stub"]:
        return begin["indent"] + begin["stub"].rstrip()
    message = f"{label}: {begin['words'].strip()}" if begin["words"] else label
    quoted = message.replace("\\", "\\\\").replace('"', '\\"')
    return f'{begin["indent"]}raise NotImplementedError("{quoted}")'
