"""One concept, one name: docs/notation.md holds for every name that this project defines.

The tables are read from the page. Names are read from syntax trees, so strings, comments and
the keywords of calls (which belong to whoever wrote the called function) are never checked.
A definition that another library dictates carries `# theirs: <library>` on its line.
"""

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ppo_lessons.envs.protocol import EnvStep
from ppo_lessons.training_loop import PPOConfig, train
from ppo_lessons.types import Batch, Carry, Rollout, UpdateStats

ROOT = Path(__file__).resolve().parents[1]
NOTATION = ROOT / "docs" / "notation.md"
FOLDERS = ("ppo_lessons", "tools", "tests", "notebooks/source", "exercises/source")
HEADER = ["name", "symbol", "shape", "unit", "meaning", "elsewhere (never use)"]
THEIRS = re.compile(r"#\s*theirs:\s*\w")
MUST_BE_LISTED = """
    observations next_observations actions rewards terminated truncated ended valid
    log_probs log_probs_old ratios values values_old next_values td_errors advantages returns
    rewards_to_go gamma gae_lambda clip_epsilon value_coef entropy_coef num_steps num_envs
    num_epochs num_minibatches num_iterations total_steps kl_k1 kl_k2 kl_k3 fraction_outside
    fraction_zero_gradient ev_lambda ev_monte_carlo collect score squeeze renew
    rollout batch minibatch iteration epoch
"""


class Entry(NamedTuple):
    """One row of a table: our name, and the names it replaces."""

    name: str
    meaning: str
    banned: list[str]


def parse_tables(text: str) -> list[Entry]:
    """Read every table whose header is HEADER; a malformed row is an error, not a skip."""
    entries, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells == HEADER:
            inside = True
        elif inside and set(line) - set("|-: "):
            if len(cells) != len(HEADER):
                raise ValueError(f"{len(cells)} cells, expected {len(HEADER)}: {line}")
            name = re.fullmatch(r"`([A-Za-z_]\w*)`", cells[0])
            if name is None:
                raise ValueError(f"first cell must be one name in backticks: {line}")
            entries.append(Entry(name[1], cells[4], re.findall(r"`([^`]+)`", cells[5])))
    return entries


ENTRIES = parse_tables(NOTATION.read_text(encoding="utf-8"))
BANNED = {word: entry.name for entry in ENTRIES for word in entry.banned}


def banned_word(name: str) -> str | None:
    """Return the banned word that `name` is, or has as whole parts; a single letter must match."""
    if len(name) == 1:
        return name if name in BANNED else None
    parts = "_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() + "_"
    return next((word for word in BANNED if len(word) > 1 and f"_{word}_" in parts), None)


def is_sentence(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a name tells what is claimed or what goes wrong, as tests and mistakes do."""
    marks = [ast.unparse(decorator) for decorator in function.decorator_list]
    return function.name.startswith("test_") or any(mark.startswith("breaks(") for mark in marks)


def bound_names(node: ast.AST) -> list[str | None]:
    """Names that this one node gives to something of ours."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [] if is_sentence(node) else [name]
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(asname=name) | ast.ExceptHandler(name=name):
            return [name]
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
            return [name]
    return []


def violations(source: str, where: str) -> Iterator[str]:
    """Yield one sentence for each banned name that `source` defines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        for name in filter(None, bound_names(node)):
            word = banned_word(name)
            if word and not THEIRS.search(lines[node.lineno - 1]):
                yield f"{where}:{node.lineno}: `{name}` uses `{word}`; write `{BANNED[word]}`"


def test_every_name_we_define_is_in_our_vocabulary():
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert Path(__file__).resolve() in files, "the walk no longer finds this very file"
    found = [
        sentence
        for path in files
        for sentence in violations(
            path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        )
    ]
    assert not found, "see docs/notation.md\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("snippet", "word"),
    [
        ("def f(rewards, dones): ...", "dones"),
        ("def f(*, lam): ...", "lam"),
        ("lambda adv: adv", "adv"),
        ("next_done = flags[-1]", "done"),
        ("normalised: list = (adv_mean := 0.0)", "adv"),
        ("self.clip_coef = 0.2", "clip_coef"),
        ("class DoneMask: ...", "done"),
        ("class Batch:\n    logp: float", "logp"),
        ("for r in ratios: ...", "r"),
        ("[obs for obs in rollout]", "obs"),
        ("import library.gae as lastgaelam", "lastgaelam"),
        ("def vf_coef(): ...", "vf_coef"),
        ("with run() as (values, dones): ...", "dones"),
        ("done = True  # theirs:", "done"),
        ("def test_work(done): ...", "done"),
        ("@breaks('compute_gae')\ndef flags_merged(values, dones): ...", "dones"),
        ("@cached\ndef old_values(): ...", "old_values"),
    ],
)
def test_a_banned_name_is_found(snippet, word):
    (sentence,) = violations(snippet, "snippet.py")
    assert f"uses `{word}`; write `{BANNED[word]}`" in sentence


@pytest.mark.parametrize(
    "snippet",
    [
        "theirs.GAE(lmbda=0.95)(done=ended)",
        "ended = theirs.next.done",
        "rows['done'] = ended",
        "def forward(obs): ...  # theirs: stable-baselines3",
        "def test_work_is_done_once(): ...",
        "@breaks('compute_gae')\ndef old_values_used_twice(values): ...",
        "returns = advantages + values",
        "gae_lambda, clip_fractions, valued, abandoned, R = range(5)",
        "theirs.config.clip_range = 0.2",
    ],
)
def test_names_of_other_libraries_and_longer_words_pass(snippet):
    assert not list(violations(snippet, "snippet.py"))


def test_the_vocabulary_names_each_concept_once():
    twice = [name for name, count in Counter(e.name for e in ENTRIES).items() if count > 1]
    assert not twice


def test_the_vocabulary_lists_what_the_project_relies_on():
    assert not set(MUST_BE_LISTED.split()) - {entry.name for entry in ENTRIES}


@pytest.mark.parametrize("record", [Rollout, Carry, Batch, UpdateStats, PPOConfig, EnvStep])
def test_every_field_of_the_loop_is_in_the_vocabulary(record):
    if dataclasses.is_dataclass(record):
        names = {field.name for field in dataclasses.fields(record)}
    else:
        names = set(record._fields)
    assert names
    assert not names - {entry.name for entry in ENTRIES}


def test_every_metric_of_a_run_is_in_the_vocabulary():
    (row,) = train(PPOConfig(num_envs=2, num_steps=8, total_steps=16, num_epochs=1)).rows
    assert not set(row) - {entry.name for entry in ENTRIES}


def test_every_entry_says_what_it_means():
    assert not [entry.name for entry in ENTRIES if len(entry.meaning) < 10]


def test_no_banned_word_hits_one_of_our_own_names():
    assert not {entry.name: word for entry in ENTRIES if (word := banned_word(entry.name))}


def test_every_banned_word_can_be_an_identifier():
    assert not [word for word in BANNED if not word.isidentifier()]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("| `ratios` | ρ | any | 1 | missing last cell |", "5 cells, expected 6"),
        ("| ratios, values | | | | two names at once | `r` |", "one name in backticks"),
    ],
)
def test_a_malformed_row_is_an_error(row, complaint):
    header = "| " + " | ".join(HEADER) + " |\n|---|---|---|---|---|---|\n"
    with pytest.raises(ValueError, match=complaint):
        parse_tables(header + row)
