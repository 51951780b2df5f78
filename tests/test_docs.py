"""What the written pages promise: links lead somewhere, tables are true, the prose keeps its rules.

The documents are README.md, CONTRIBUTING.md, CHANGELOG.md and docs/*.md. Code, inline or fenced,
is taken out before prose and links are read.
"""

import ast
import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from mistakes import mistakes_of

from ppo_lessons import LESSONS, lesson_table, route_table
from ppo_lessons.lessons import find_lesson
from ppo_lessons.training_loop import Parts
from tools import list_claims, list_details, list_mistakes
from tools.list_details import BESIDE, GROUPS, Detail
from tools.run_tests import STAGES

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
DOCUMENTS = [ROOT / name for name in NAMES] + sorted((ROOT / "docs").glob("*.md"))
IDS = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*<?([^\s>]+)|(?:src|href|srcset)=[\"']([^\"']+)",
    re.MULTILINE,
)
LAZY_WORDS = re.compile(r"\b(simply|obviously|just|trivially|of course)\b", re.IGNORECASE)
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u26ff\u2705\u2728\u274c\u2b50]")
A_HOME = re.compile(r"(?<![\w.])(?:/home/|/Users/|/root\b|[A-Z]:\\Users\\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


NOTATION = read(ROOT / "docs" / "notation.md")


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "`code`", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The fragments that GitHub gives to the headings of a page, and explicit ids."""
    found: set[str] = set(re.findall(r"\bid=[\"']([^\"']+)", text))
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken_links(text: str, page: Path) -> Iterator[str]:
    """Yield each relative link of `text`, read as `page`, that leads nowhere."""
    for match in LINK.finditer(without_code(text)):
        link = unquote(next(filter(None, match.groups())))
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, fragment = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.is_relative_to(ROOT) or not target.exists():
            yield link
        elif fragment and target.suffix == ".md":
            body = text if target == page else read(target)
            if fragment not in anchors(body):
                yield link


def change_table(text: str) -> list[tuple[str, str]]:
    """The rows (what, where) of the table headed "to change", without its header."""
    table = re.search(r"^\| to change \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    if table is None:
        raise ValueError("no table whose first column is headed 'to change'")
    rows = [line.strip("|").split("|") for line in table[1].splitlines()]
    return [(cells[0].strip(), cells[1].strip()) for cells in rows]


def wrong_places(rows: list[tuple[str, str]], root: Path) -> Iterator[str]:
    """Yield each place that does not exist, unless the row says "(planned)" after it."""
    for what, where in rows:
        places = re.findall(r"`([^`]+)`( \(planned\))?", where)
        if not places:
            yield f"{what}: no place is named"
        for place, planned in places:
            pattern = re.sub(r"<\w+>|NN", "*", place).rstrip("/")
            if not planned and not any(root.glob(pattern)):
                yield f"{what}: {place} does not exist; mark it (planned) or correct it"


@pytest.mark.parametrize("page", DOCUMENTS, ids=IDS)
def test_relative_links_lead_somewhere(page):
    assert not list(broken_links(read(page), page))


@pytest.mark.parametrize(
    "text",
    [
        "[gone](docs/gone.md)",
        "![picture](docs/gone.png)",
        '<img src="docs/gone.png" alt="a picture">',
        "[outside](../outside.md)",
        "[no such heading](#no-such-heading)",
        "[no such heading](docs/notation.md#no-such-heading)",
        "[ref]: docs/gone.md",
    ],
)
def test_a_broken_link_is_found(text):
    assert len(list(broken_links("# A heading\n" + text, ROOT / "README.md"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[here](#a-heading)",
        "[table](docs/notation.md#two-masks)",
        "[web](https://example.org/gone)",
        "`[not a link](gone.md)`",
        "```\n[not a link](gone.md)\n```",
    ],
)
def test_a_sound_link_passes(text):
    assert not list(broken_links("# A heading\n" + text, ROOT / "README.md"))


@pytest.mark.parametrize("page", DOCUMENTS, ids=IDS)
def test_prose_does_not_call_hard_things_easy(page):
    assert not [match[0] for match in LAZY_WORDS.finditer(without_code(read(page)))]


@pytest.mark.parametrize("page", DOCUMENTS, ids=IDS)
def test_pages_hold_no_emoji_and_no_home_folder(page):
    text = read(page)
    assert not EMOJI.findall(text)
    assert not A_HOME.findall(text)


def test_the_prose_rules_can_fail():
    assert LAZY_WORDS.search("You Just call it.")
    assert not LAZY_WORDS.search("an adjusted, justified mean")
    assert EMOJI.search("well done \N{ROCKET}")
    assert A_HOME.search("saved in /home/ada/runs")


@pytest.mark.parametrize("page", DOCUMENTS, ids=IDS)
def test_python_in_a_page_is_valid_python(page):
    for language, code in FENCE.findall(read(page)):
        if language == "python":
            ast.parse(code)


def test_the_examples_of_the_guide_run_and_one_refuses_the_other():
    page = read(ROOT / "CONTRIBUTING.md")
    blocks = [code for _, code in FENCE.findall(page) if "\nfrom ppo_lessons" in "\n" + code]
    names: dict[str, Any] = {}
    for code in blocks:
        exec(code, names)
    assert len(names["history"]) == 2
    claim = names["test_the_future_of_a_truncated_step_counts"]
    claim()
    with pytest.raises(AssertionError):
        claim(names["flags_merged"])


def test_every_slot_of_parts_is_named_in_the_guide():
    text = read(ROOT / "CONTRIBUTING.md")
    assert not [slot.name for slot in fields(Parts) if f"`{slot.name}`" not in text]


def test_the_stages_that_the_guide_runs_alone_exist():
    named = re.findall(r"`\./course test --only ([^`]+)`", read(ROOT / "CONTRIBUTING.md"))
    assert named
    assert set(named) <= {stage.name for stage in STAGES}


def test_the_table_of_places_is_true():
    rows = change_table(read(ROOT / "CONTRIBUTING.md"))
    assert len(rows) >= 8
    assert not list(wrong_places(rows, ROOT))


def test_a_wrong_place_is_found():
    text = (
        "| to change | edit |\n|---|---|\n| maths | `ppo_lessons/gone.py` |\n"
        "| later | `gone/` (planned) |\n| page | `docs/<page>.md` |\n| nothing | nowhere |\n"
    )
    wrong = list(wrong_places(change_table(text), ROOT))
    assert [sentence.split(":")[0] for sentence in wrong] == ["maths", "nothing"]


def test_the_worked_case_of_the_notation_follows_from_its_formulas():
    rewards, values = [1.0] * 4, [5.0, 6.0, 1.0, 2.0]
    none, cut = [0, 0, 0, 0], [0, 1, 0, 0]
    before_reset, after_reset = [6.0, 7.0, 2.0, 3.0], [6.0, 1.0, 2.0, 3.0]

    def advantages(next_values, terminated, ended):
        total, backwards = 0.0, []
        for t in (3, 2, 1, 0):
            td_error = rewards[t] + 0.9 * (1 - terminated[t]) * next_values[t] - values[t]
            total = td_error + 0.9 * 0.8 * (1 - ended[t]) * total
            backwards.append(f"{total:.3f}".replace("-", "\N{MINUS SIGN}"))
        return backwards[::-1]

    cases = [
        advantages(before_reset, none, cut),
        advantages(before_reset, cut, cut),
        advantages(before_reset, none, none),
        advantages(after_reset, none, none),
        advantages(after_reset, none, cut),
    ]
    number = r"(\N{MINUS SIGN}?\d\.\d{3})"
    shown = re.findall(rf"^\|[^|]+\| \**{number}, {number}\** \|", NOTATION, re.MULTILINE)
    assert shown == [tuple(case[:2]) for case in cases]
    assert {tuple(case[2:]) for case in cases} == {("3.024", "1.700")}
    assert "3.024 and 1.700 under every rule" in NOTATION


def test_pre_commit_downloads_nothing():
    config = yaml.safe_load(read(ROOT / ".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    ran = [" ".join(hook["entry"].split()[:2]) for hook in hooks]
    assert ran == [
        "ruff check",
        "ruff format",
        "basedpyright",
        "codespell",
        "python tools/build_notebooks.py",
    ]


def test_the_tools_of_pre_commit_come_with_the_test_extra():
    config = yaml.safe_load(read(ROOT / ".pre-commit-config.yaml"))
    tools = {hook["entry"].split()[0] for hook in config["repos"][0]["hooks"]} - {"python"}
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    test_extra = {re.split(r"[<>=]", line)[0] for line in project["optional-dependencies"]["test"]}
    assert tools | {"pre-commit"} <= test_extra


def test_the_readme_shows_the_lessons_and_routes_as_they_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert str(lesson_table()) in text
    assert str(route_table()) in text


# --- Half truths ---------------------------------------------------------------------------

HALF_TRUTHS = read(ROOT / "docs" / "half_truths.md")
LATER = "Not yet shown"


def half_truths(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield heading, what is said, and the answer, for each boxed sentence of the page."""
    for section in text.split("\n## ")[1:]:
        heading, *boxes = re.split(r"\n> ", section)
        for box in boxes:
            said, _, answer = box.partition("\n\n")
            yield heading.split("\n")[0], said, answer.strip()


def badly_answered(text: str, stems: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with each half truth; `stems` says where each claim stands."""
    for heading, said, answer in half_truths(text):
        shown = answer.partition("Shown by ")[2]
        links = re.findall(r"\[`([^`]+)`\]\(\.\./notebooks/(\w+)\.ipynb\)", shown)
        later = re.search(rf"{LATER}: lesson (\d\d), ([^.]+)\.$", answer)
        if (later is None) != (heading != LATER) or (later is None) != bool(links):
            yield f"{said}: name claims, or under '{LATER}' the lesson that will have them"
        for name, stem in links:
            if stems.get(name) != stem:
                yield f"{said}: {name} is no claim of {stem}; {stems.get(name, 'nowhere')} has it"
        if links and sum(map(len, re.findall(r"`", shown))) != 2 * len(links):
            yield f"{said}: a claim is named without a link"
        if later and (find_lesson(later[1]).title != later[2] or find_lesson(later[1]).notebook):
            yield f"{said}: lesson {later[1]} has another title, or is written: name its claims"


CLAIMS = {found.id: found.stem for found in list_claims.all_claims()}


def test_every_half_truth_is_answered_by_claims_that_exist_or_is_not_yet_shown():
    assert len(list(half_truths(HALF_TRUTHS))) > 60
    assert list(badly_answered(HALF_TRUTHS, CLAIMS)) == []


@pytest.mark.parametrize(
    ("heading", "answer"),
    [
        ("04 The clip", "It is not."),
        ("04 The clip", "Shown by `clip.capped`."),
        ("04 The clip", "Shown by [`clip.gone`](../notebooks/04_clip.ipynb)."),
        ("04 The clip", "Shown by [`clip.capped`](../notebooks/06_gae.ipynb)."),
        ("04 The clip", "Shown by [`clip.capped`](../notebooks/04_clip.ipynb) and `clip.edges`."),
        ("04 The clip", "Not yet shown: lesson 14, RLHF."),
        (LATER, "Shown by [`clip.capped`](../notebooks/04_clip.ipynb)."),
        (LATER, "Not yet shown: lesson 04, The clip."),
        (LATER, "Not yet shown: lesson 14, Nothing."),
    ],
)
def test_a_half_truth_without_its_claims_is_found(heading, answer):
    page = f"# Half truths\n\n## {heading}\n\n> It is so.\n\nIt is not. {answer}\n"
    assert list(badly_answered(page, {"clip.capped": "04_clip"}))


def test_a_half_truth_with_its_claims_passes():
    shown = "Shown by [`clip.capped`](../notebooks/04_clip.ipynb)."
    page = f"# Half truths\n\n## 04 The clip\n\n> It is so.\n\nIt is not. {shown}\n"
    assert not list(badly_answered(page, {"clip.capped": "04_clip"}))


def test_half_truths_stand_in_the_order_of_the_lessons():
    headings = re.findall(r"^## (.+)$", HALF_TRUTHS, re.MULTILINE)
    written = [f"{each.number:02d} {each.title}" for each in LESSONS if each.notebook]
    assert headings == [*written[1:], LATER]


# --- The 37 details ------------------------------------------------------------------------


def missing(detail: Detail) -> Iterator[str]:
    """Yield each function, test and lesson of a detail that does not exist."""
    for function in detail.functions:
        module, *names = function.split(".")
        thing = importlib.import_module(f"ppo_lessons.{module}")
        for name in names:
            thing = getattr(thing, name, None)
        if thing is None:
            yield function
    for test in detail.tests:
        module, name = test.split(".")
        path = ROOT / "tests" / f"{module}.py"
        if not path.exists() or f"\ndef {name}(" not in read(path):
            yield test
    if detail.lesson and detail.lesson not in {lesson.name for lesson in LESSONS}:
        yield detail.lesson


def test_there_are_thirty_seven_details_in_the_groups_of_their_source():
    assert [len(group) for group in GROUPS.values()] == [13, 9, 9, 5, 1]


@pytest.mark.parametrize(
    "detail", [*BESIDE, *sum(GROUPS.values(), ())], ids=lambda detail: detail.title
)
def test_what_a_detail_names_exists(detail):
    assert list(missing(detail)) == []
    assert bool(detail.functions) == bool(detail.tests), (
        "a function without a test, or a test alone"
    )


def test_a_detail_that_names_what_does_not_exist_is_found():
    wrong = Detail("", "", "gone", ("gae.gone", "gae.compute_gae"), ("test_gae.test_gone",))
    assert list(missing(wrong)) == ["gae.gone", "test_gae.test_gone", "gone"]


def test_a_lesson_that_is_written_leaves_none_of_its_details_planned():
    planned = {
        each.lesson for group in GROUPS.values() for each in group if each.state == "planned"
    }
    assert not [name for name in planned if find_lesson(name).notebook]


# --- What can go wrong ---------------------------------------------------------------------


def test_every_named_mistake_is_on_the_page_of_what_can_go_wrong():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)\.(\w+)` \|", read(list_mistakes.PAGE), re.MULTILINE)
    known = {
        (mistake.name, mistake.breaks)
        for path in (ROOT / "tests" / "mistakes").glob("[a-z]*.py")
        for mistake in mistakes_of(path.stem)
    }
    assert {(name, function) for name, _, function in rows} == known
    for _, module, function in rows:
        assert hasattr(importlib.import_module(f"ppo_lessons.{module}"), function)


def test_a_mistake_that_breaks_no_function_is_refused():
    with pytest.raises(ValueError, match=r"expected a function of ppo_lessons\.gae"):
        list_mistakes.home_of("gae", "compute_gone")


# --- Pages that are made by a tool ---------------------------------------------------------


@pytest.mark.parametrize("tool", [list_details, list_mistakes], ids=lambda tool: tool.__name__)
def test_the_page_of_a_tool_is_current(tool):
    made_by = f"python {tool.__name__.replace('.', '/')}.py build"
    assert read(tool.PAGE) == tool.page(), f"run {made_by}"
    assert f"`{made_by}`" in tool.page()


@pytest.mark.parametrize("tool", [list_details, list_mistakes], ids=lambda tool: tool.__name__)
def test_a_page_is_built_and_a_change_of_it_is_noticed(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "PAGE", tmp_path / "page.md")

    def run(verb):
        if tool is list_mistakes:
            return tool.main([verb])
        monkeypatch.setattr("sys.argv", ["tool", verb])
        return tool.main()

    assert (run("check"), run("build"), run("check")) == (1, 0, 0)
    tool.PAGE.write_text("changed", encoding="utf-8")
    assert run("check") == 1
    assert "is not current" in capsys.readouterr().err
