"""List every claim of the notebooks with its negative control: `docs/claims.md`.

python tools/list_claims.py build | check
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jupytext

from ppo_lessons.lessons import find_lesson

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "claims.md"
HEAD = """# Claims

Each sentence is checked by the cell of the notebook in which it stands. So is the changed sentence
beside it, which has to fail. `./course test` runs all of them. This page is made by
`python tools/list_claims.py build`.
"""


class Found(NamedTuple):
    """A claim as it stands in a source.

    Args:
        stem: of the source, as in "04_clip".
        id: `lesson.item`.
        text: the sentence.
        control: the changed sentence.
    """

    stem: str
    id: str
    text: str
    control: str


def claims_of(text: str, stem: str) -> Iterator[Found]:
    """Find the calls of `claim` in a py:percent source, in order.

    Args:
        text: the source.
        stem: of its file.

    Returns:
        The claims.

    Raises:
        ValueError: if a call's id or sentences are not written out as text.
    """
    cells = jupytext.reads(text, fmt="py:percent").cells
    for cell in cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim":
                yield _read(node, stem)


def _read(node: ast.Call, stem: str) -> Found:
    control = next((word.value for word in node.keywords if word.arg == "control"), None)
    written = [*node.args[:2], *(control.elts[:1] if isinstance(control, ast.Tuple) else [])]
    values = [part.value for part in written if isinstance(part, ast.Constant)]
    words = [value for value in values if isinstance(value, str)]
    if len(words) != 3:
        raise ValueError(
            f"{stem}: a claim has {len(words)} of id, sentence and changed sentence as plain text; "
            "expected all three. Write them out where claim is called."
        )
    return Found(stem, *words)


def all_claims(root: Path = ROOT) -> list[Found]:
    """The claims of all notebooks, in the order of the lessons."""
    sources = sorted((root / "notebooks" / "source").glob("*.py"))
    return [
        claim
        for path in sources
        for claim in claims_of(path.read_text(encoding="utf-8"), path.stem)
    ]


def page(claims: list[Found]) -> str:
    """Write the list as Markdown, a table per lesson."""
    lines = [HEAD]
    for stem in dict.fromkeys(claim.stem for claim in claims):
        title = find_lesson(stem).title
        lines += [f"## [{stem[:2]} {title}](../notebooks/{stem}.ipynb)", ""]
        lines += ["| id | claim | changed claim, which fails |", "| --- | --- | --- |"]
        lines += [
            f"| `{claim.id}` | {_cell(claim.text)} | {_cell(claim.control)} |"
            for claim in claims
            if claim.stem == stem
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Build the page, or say whether it is current."""
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in ("build", "check"):
        print("usage: python tools/list_claims.py build | check", file=sys.stderr)
        return 2
    text = page(all_claims())
    if verb == "build":
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/claims.md is not current: python tools/list_claims.py build", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
