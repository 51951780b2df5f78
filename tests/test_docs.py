"""What the written pages promise: links lead somewhere, tables are true, the prose keeps its rules.

The documents are README.md, CONTRIBUTING.md, CHANGELOG.md and docs/*.md. Code, inline or fenced,
is taken out before prose and links are read.
"""

import ast
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

from ppo_lessons import lesson_table, route_table
from ppo_lessons.training_loop import Parts
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
