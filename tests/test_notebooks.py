"""The sources of the notebooks keep the rules of the course, and each rule catches its offender."""

import ast
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import jupytext
import nbformat
import pytest

from ppo_lessons import LESSONS, find_lesson
from tools import build_notebooks as builder

ROOT = Path(__file__).resolve().parent.parent
LESSON_SOURCES = sorted((ROOT / "notebooks/source").glob("*.py"))
EXERCISE_SOURCES = sorted((ROOT / "exercises/source").glob("*.py"))

MAX_LINES = 15
MAX_MEDIAN = 6
MAX_CODE_CELLS_IN_A_ROW = 2
IGNORE_TAG = "nbval-ignore-output"
# Tags that nbval acts on; it ignores every other spelling, NBVAL_IGNORE_OUTPUT as a tag too.
# Those for cells that raise are not known: a stored traceback holds paths of the machine.
KNOWN_TAGS = {IGNORE_TAG, "nbval-check-output"}

# word -> why it goes
BANNED_WORDS = {
    "simply": "what is simple to the author may not be to the reader",
    "obviously": "if it is, leave the word out; if not, explain",
    "clearly": "if it is, leave the word out; if not, explain",
    "of course": "if it is, leave the words out; if not, explain",
    "trivial": "nothing is, the first time",
    "trivially": "nothing is, the first time",
    "easily": "say how it is done",
    "just": "a filler",
    "basically": "a filler",
    "actually": "a filler",
    "very": "give the number",
    "note that": "say it",
    "let us": "second person: say what the reader does",
    "let's": "second person: say what the reader does",
    "we will see": "second person, present tense",
}
BANNED = re.compile(
    r"(?<![\w-])(?:" + "|".join(map(re.escape, BANNED_WORDS)) + r")(?![\w-])", re.IGNORECASE
)
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b50-\u2b55\ufe0f]")
ALLOWED_EMOJI = "✔✘"
FORBIDDEN_CODE = {
    "filterwarnings": re.compile(r"\b(?:filterwarnings|simplefilter|catch_warnings)\b"),
    "sys.path": re.compile(r"\bsys\.path\b"),
    "pip": re.compile(r"^\s*#?\s*[!%]\s*(?:\S*/)?pip\b", re.MULTILINE),
    "shell": re.compile(r"^\s*[!%]", re.MULTILINE),
}
LINK = re.compile(
    r"!?\[[^\]]*\]\(<?(?P<target>[^)\s>]+)>?[^)]*\)|(?:src|href)=\"(?P<html>[^\"]+)\""
)


@dataclass(frozen=True)
class Source:
    """A py:percent source, read."""

    stem: str
    folder: Path  # where the built notebook lies
    cells: tuple[nbformat.NotebookNode, ...]

    @classmethod
    def read(cls, text: str, stem: str, folder: Path) -> "Source":
        cells = jupytext.reads(text, fmt="py:percent").cells
        return cls(stem, folder, tuple(cell for cell in cells if cell.source.strip()))

    @property
    def code(self) -> list[str]:
        return [cell.source for cell in self.cells if cell.cell_type == "code"]

    @property
    def prose(self) -> list[str]:
        return [cell.source for cell in self.cells if cell.cell_type == "markdown"]


# --- the rules -----------------------------------------------------------------------------


def count_lines(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())


def long_cells(source: Source) -> Iterator[str]:
    for code in source.code:
        if (lines := count_lines(code)) > MAX_LINES:
            yield f"a cell of {lines} lines, more than {MAX_LINES}: {first_line(code)}"


def high_median(source: Source) -> Iterator[str]:
    median = statistics.median(map(count_lines, source.code)) if source.code else 0
    if median > MAX_MEDIAN:
        yield f"half of the code cells have more than {median:g} lines; aim at 5"


def code_without_prose(source: Source) -> Iterator[str]:
    run = MAX_CODE_CELLS_IN_A_ROW  # so that the first cell must be prose
    for cell in source.cells:
        run = run + 1 if cell.cell_type == "code" else 0
        if run > MAX_CODE_CELLS_IN_A_ROW:
            yield f"no prose before: {first_line(cell.source)}"


def no_title(source: Source) -> Iterator[str]:
    if not (source.prose and source.prose[0].startswith("# ")):
        yield "the first markdown cell must start with a title: # ..."


def late_imports(source: Source) -> Iterator[str]:
    for code in source.code[1:]:
        if any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(parse(code))):
            yield f"an import after the first code cell: {first_line(code)}"


def no_setup(source: Source) -> Iterator[str]:
    cells = [cell for cell in source.cells if cell.cell_type == "code"]
    if not cells or "setup" not in called_names(cells[0].source):
        yield "the first code cell must call setup()"
    elif not ignores_output(cells[0]):
        yield f'the cell with setup() must carry tags=["{IGNORE_TAG}"]'


def unknown_tags(source: Source) -> Iterator[str]:
    for cell in source.cells:
        for tag in set(cell.metadata.get("tags", [])) - KNOWN_TAGS:
            yield f"tag {tag!r} does nothing; known are {sorted(KNOWN_TAGS)}"


def forbidden_code(source: Source) -> Iterator[str]:
    for code in source.code:
        for name, pattern in FORBIDDEN_CODE.items():
            if pattern.search(code):
                yield f"{name}: {first_line(code)}"


def trailing_semicolons(source: Source) -> Iterator[str]:
    for code in source.code:
        if code.rstrip().endswith(";"):
            yield f"a trailing ; which formatting deletes: {first_line(code)}"


def redefinitions(source: Source) -> Iterator[str]:
    for code in source.code:
        nodes = list(ast.walk(parse(code)))
        methods = {
            id(part) for node in nodes if isinstance(node, ast.ClassDef) for part in node.body
        }
        for node in nodes:
            if id(node) in methods:  # a task of one's own has the names that all tasks have
                continue
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in package_names():
                yield f"{node.name} is the package's: import it, show it with show_source"


def banned_words(source: Source) -> Iterator[str]:
    comments = [
        line.partition("#")[2] for code in source.code for line in code.splitlines() if "# " in line
    ]
    for text in [*map(without_code, source.prose), *comments]:
        for match in BANNED.finditer(text):
            yield f"{match.group()!r}: {BANNED_WORDS[match.group().lower()]}"


def broken_links(source: Source) -> Iterator[str]:
    for text in source.prose:
        for match in LINK.finditer(without_code(text)):
            target = match["target"] or match["html"]
            path = unquote(target.partition("#")[0])
            if re.match(r"[a-z]+:", target) or not path:
                continue
            if not (source.folder / path).exists():
                yield f"link to {target} leads nowhere"


def emoji(source: Source) -> Iterator[str]:
    for cell in source.cells:
        for found in set(EMOJI.findall(cell.source)) - set(ALLOWED_EMOJI):
            yield f"{found!r}: only {' '.join(ALLOWED_EMOJI)} are used"


def machine_paths(source: Source) -> Iterator[str]:
    for cell in source.cells:
        if match := builder.MACHINE_PATH.search(cell.source):
            yield f"a path of a machine: {cell.source[match.start() :][:40]}"


Rule = Callable[[Source], Iterator[str]]
RULES_FOR_ALL: tuple[Rule, ...] = (
    *(no_title, unknown_tags, forbidden_code, trailing_semicolons),
    *(banned_words, broken_links, emoji, machine_paths),
)
RULES: tuple[Rule, ...] = (
    *(long_cells, high_median, code_without_prose, late_imports, no_setup, redefinitions),
    *RULES_FOR_ALL,
)


def first_line(code: str) -> str:
    return code.strip().splitlines()[0]


def parse(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError:  # a shell command: forbidden_code reports it
        return ast.Module(body=[], type_ignores=[])


def called_names(code: str) -> set[str]:
    calls = [node.func for node in ast.walk(parse(code)) if isinstance(node, ast.Call)]
    names = {call.attr for call in calls if isinstance(call, ast.Attribute)}
    return names | {call.id for call in calls if isinstance(call, ast.Name)}


def ignores_output(cell: nbformat.NotebookNode) -> bool:
    comments = {line.strip().lstrip("#").strip() for line in cell.source.splitlines()}
    return IGNORE_TAG in cell.metadata.get("tags", []) or "NBVAL_IGNORE_OUTPUT" in comments


def without_code(text: str) -> str:
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


@cache
def package_names() -> frozenset[str]:
    """Public functions and classes at the top level of the package's modules.

    The grader and the benchmark are left out: no notebook imports them.
    """
    package = ROOT / "ppo_lessons"
    apart = {package / "grading", package / "bench"}
    files = [path for path in package.rglob("*.py") if apart.isdisjoint(path.parents)]
    trees = [ast.parse(path.read_text("utf-8")) for path in files]
    nodes = [node for tree in trees for node in tree.body]
    defined = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return frozenset(node.name for node in defined if not node.name.startswith("_"))


# --- each rule catches its offender --------------------------------------------------------

GOOD = """
# %% [markdown]
# # A title
#
# You see `just` in code, a justified mean, and a [link](../README.md#top).

# %% tags=["nbval-ignore-output"]
import ppo_lessons

ppo_lessons.setup()

# %% [markdown]
# Count to two. ✔

# %%
count = 2

# %%
print(count)
"""


def prose(text: str) -> str:
    return f"\n# %% [markdown]\n# {text}\n"


def cell(code: str) -> str:
    return prose("Words.") + f"\n# %%\n{code}\n"


OFFENDERS: dict[Rule, tuple[str, ...]] = {
    long_cells: (GOOD + cell("\n".join(f"x = {n}" for n in range(16))),),
    high_median: (GOOD + 9 * cell("\n".join(f"x = {n}" for n in range(7))),),
    code_without_prose: (
        GOOD + "\n# %%\nprint(3)\n",
        "\n# %%\nfirst = 1\n" + GOOD,
    ),
    no_title: (GOOD.replace("# # A title", "# ## A title"),),
    late_imports: (
        GOOD + cell("import math"),
        GOOD + cell("def f():\n    from math import pi\n    return pi"),
    ),
    no_setup: (
        GOOD.replace("ppo_lessons.setup()", "ppo_lessons"),
        GOOD.replace('tags=["nbval-ignore-output"]', ""),
        GOOD.replace('tags=["nbval-ignore-output"]', 'tags=["NBVAL_IGNORE_OUTPUT"]'),
        prose("# A title"),
    ),
    unknown_tags: (GOOD.replace("# %%\ncount", '# %% tags=["NBVAL_IGNORE_OUTPUT"]\ncount'),),
    forbidden_code: (
        GOOD + cell('warnings.filterwarnings("ignore")'),
        GOOD + cell("sys.path.insert(0, '..')"),
        GOOD + cell("!pip install torch"),
        GOOD + cell("%matplotlib inline"),
    ),
    trailing_semicolons: (GOOD + cell("axes.plot(count);"),),
    redefinitions: (
        GOOD + cell("def budget(full, fast):\n    return fast"),
        GOOD + cell("class Lesson:\n    pass"),
    ),
    banned_words: (
        *(GOOD + prose(f"It {word} works.") for word in BANNED_WORDS),
        GOOD + prose("Simply run it."),
        GOOD + cell("x = 1  # obviously"),
    ),
    broken_links: (
        GOOD + prose("[gone](gone.md)"),
        GOOD + prose("![gone](pictures/gone.png)"),
        GOOD + prose('<img src="gone.png">'),
    ),
    emoji: (GOOD + prose("Well done \N{ROCKET}"), GOOD + cell('print("\N{SPARKLES}")')),
    machine_paths: (GOOD + cell('open("/home/ada/x")'),),
}


def problems(rule: Rule, text: str) -> list[str]:
    return list(rule(Source.read(text, "01_reinforce", ROOT / "tests")))


def test_each_rule_has_an_offender():
    assert set(OFFENDERS) == set(RULES)


@pytest.mark.parametrize(
    ("rule", "text"),
    [(rule, text) for rule, texts in OFFENDERS.items() for text in texts],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_rule_catches_its_offender(rule, text):
    assert problems(rule, text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_source_passes_every_rule(rule):
    assert problems(rule, GOOD) == []


def test_the_comment_that_nbval_reads_counts_like_the_tag():
    text = GOOD.replace(' tags=["nbval-ignore-output"]', "\n# NBVAL_IGNORE_OUTPUT")
    assert problems(no_setup, text) == []


def test_code_in_prose_is_not_read_as_prose():
    text = GOOD + prose("```\n# just a [link](gone.md)\n# ```")
    assert problems(banned_words, text) == []
    assert problems(broken_links, text) == []


# --- the real sources ----------------------------------------------------------------------


def read_source(path: Path) -> Source:
    return Source.read(path.read_text("utf-8"), path.stem, path.parent.parent)


def test_there_are_sources():
    """The tests below run once per source: without any they would pass unseen."""
    assert LESSON_SOURCES, "expected notebooks/source/NN_name.py"


SOURCES_AND_RULES = [
    *((path, rule) for path in LESSON_SOURCES for rule in RULES),
    *((path, rule) for path in EXERCISE_SOURCES for rule in RULES_FOR_ALL),
]


@pytest.mark.parametrize(
    ("path", "rule"),
    SOURCES_AND_RULES,
    ids=[
        f"{path.parent.parent.name}-{path.stem}-{rule.__name__}" for path, rule in SOURCES_AND_RULES
    ],
)
def test_a_source_keeps_the_rule(path, rule):
    assert list(rule(read_source(path))) == []


@pytest.mark.parametrize("path", [*LESSON_SOURCES, *EXERCISE_SOURCES], ids=lambda path: path.stem)
def test_a_source_has_the_number_of_its_lesson(path):
    assert path.stem == find_lesson(path.stem[3:]).stem


def test_the_built_notebooks_are_current():
    assert builder.check(ROOT) == []


def test_every_lesson_with_a_notebook_is_checked_here():
    ready = {lesson.stem for lesson in LESSONS if lesson.notebook}
    assert ready == {path.stem for path in LESSON_SOURCES}
