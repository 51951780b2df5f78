"""The table of lessons and the routes through it."""

import dataclasses
from pathlib import Path

import pytest

from ppo_lessons import LESSONS, ROUTES, find_lesson, lesson_table, lessons, route_table
from ppo_lessons.lessons import Lesson, Route

ROOT = Path(__file__).resolve().parent.parent

NAMES = [lesson.name for lesson in LESSONS]


def misplaced(lessons) -> list[str]:
    """Lessons that come before one of their prerequisites."""
    names = [lesson.name for lesson in lessons]
    return [
        lesson.name
        for position, lesson in enumerate(lessons)
        if not set(lesson.prerequisites) <= set(names[:position])
    ]


def gaps(route: Route) -> list[str]:
    """Prerequisites that a route neither holds earlier nor takes on trust."""
    return [
        f"{name} needs {needed}"
        for position, name in enumerate(route.lessons)
        for needed in find_lesson(name).prerequisites
        if needed not in route.lessons[:position] and needed not in route.assumed
    ]


# --- lessons -------------------------------------------------------------------------------


def test_the_lessons_are_00_to_17_in_the_order_of_the_design():
    names = [lesson.name for lesson in LESSONS]
    assert names == [
        *("start_here", "reinforce", "importance", "trust_region", "clip", "critic", "gae"),
        *("rollout", "training_loop", "continuous", "gpu_run", "ablations", "debugging"),
        *("tokens", "rlhf", "variants", "staleness", "evidence"),
    ]


def test_the_position_is_the_number():
    assert [lesson.number for lesson in LESSONS] == list(range(18))
    assert find_lesson("training_loop").stem == "08_training_loop"


def test_a_lesson_takes_between_15_and_60_minutes():
    assert all(15 <= lesson.minutes <= 60 for lesson in LESSONS)


def test_each_prerequisite_is_an_earlier_lesson():
    assert misplaced(LESSONS) == []
    assert misplaced(LESSONS[::-1]) != []


def test_each_lesson_asks_a_question_and_has_a_title():
    assert all(lesson.question.endswith("?") and lesson.title for lesson in LESSONS)
    assert len({lesson.title for lesson in LESSONS}) == len(LESSONS)


def test_only_start_here_never_has_a_module():
    assert not find_lesson("start_here").module
    assert find_lesson("start_here").notebook


def test_a_lesson_lists_the_files_of_each_part():
    full = Lesson(
        name="gae",
        title="",
        question="",
        minutes=20,
        module=True,
        notebook=True,
        exercise=True,
        widgets=("lambda_dial",),
        figures=True,
        checks=True,
    )
    assert set(full.files()) == {
        "ppo_lessons/gae.py",
        "notebooks/source/06_gae.py",
        "notebooks/06_gae.ipynb",
        "exercises/source/06_gae.py",
        "exercises/06_gae.ipynb",
        "solutions/06_gae.ipynb",
        "ppo_lessons/widgets/lambda_dial.py",
        "ppo_lessons/figures/lambda_dial.py",
        "ppo_lessons/figures/gae.py",
        "ppo_lessons/checks/gae.py",
    }
    assert Lesson(name="gae", title="", question="", minutes=20).files() == ()


def test_a_lesson_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LESSONS[0].minutes = 1  # pyright: ignore[reportAttributeAccessIssue]


# --- look-up -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [8, "8", "08", "training_loop", "08_training_loop"])
def test_a_lesson_is_found_by_number_or_name(key):
    assert find_lesson(key).name == "training_loop"


@pytest.mark.messages
@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("trainingloop", "'training_loop'"),
        (18, "from 0 to 17"),
        (-1, "0 to 17"),
        ("", "start_here"),
    ],
)
def test_an_unknown_lesson_is_refused_with_what_there_is(key, words):
    with pytest.raises(ValueError, match="no lesson") as error:
        find_lesson(key)
    assert words in str(error.value)


# --- routes --------------------------------------------------------------------------------


def test_the_routes_are_those_of_the_design():
    routes = {route.name: route.lessons for route in ROUTES}
    assert list(routes) == ["ninety_minutes", "language_models", "everything"]
    assert routes["ninety_minutes"] == ("reinforce", "clip", "gae", "training_loop")
    assert routes["language_models"] == tuple(NAMES[1:7] + NAMES[13:18])
    assert routes["everything"] == tuple(NAMES)


def test_ninety_minutes_take_ninety_minutes():
    (route,) = (route for route in ROUTES if route.name == "ninety_minutes")
    assert route.minutes == 90


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_the_times_of_a_route_add_up(route):
    whole = sum(each.minutes for each in LESSONS if each.name in route.lessons)
    assert route.minutes == whole - sum(route.saved.values())
    assert set(route.saved) == set(route.skips) <= set(route.lessons)
    assert len(set(route.lessons)) == len(route.lessons)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_holds_each_prerequisite_or_declares_it_assumed(route):
    assert gaps(route) == []


def test_a_gap_in_a_route_is_found():
    (route,) = (route for route in ROUTES if route.name == "ninety_minutes")
    assert gaps(dataclasses.replace(route, assumed={})) == [
        "clip needs importance",
        "clip needs trust_region",
        "gae needs critic",
        "training_loop needs rollout",
    ]
    backwards = dataclasses.replace(route, lessons=("training_loop", "clip"))
    assert "training_loop needs clip" in gaps(backwards)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_what_a_route_assumes_is_needed_left_out_and_said_in_a_sentence(route):
    needed = {each for name in route.lessons for each in find_lesson(name).prerequisites}
    assert set(route.assumed) <= needed - set(route.lessons)
    assert all(words.endswith(".") for words in route.assumed.values())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_what_a_route_leaves_out_of_a_lesson_stands_in_its_notebook(route):
    for name, headings in route.skips.items():
        source = ROOT / "notebooks" / "source" / f"{find_lesson(name).stem}.py"
        lines = source.read_text(encoding="utf-8").splitlines()
        sections = {line.lstrip("# ") for line in lines if line.startswith(("# ## ", "# ### "))}
        assert [heading for heading in headings if heading not in sections] == []


# --- tables --------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_lesson_with_time_and_status():
    rows = lesson_table().splitlines()[2:]
    assert len(rows) == len(LESSONS)
    for number, (row, lesson) in enumerate(zip(rows, LESSONS, strict=True)):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[0] == f"{number:02d}"
        assert lesson.title in cells[1]
        assert cells[2:] == [lesson.question, str(lesson.minutes), lesson.status]


def test_only_a_lesson_with_a_notebook_is_ready_and_linked():
    for row, lesson in zip(lesson_table().splitlines()[2:], LESSONS, strict=True):
        assert ("ready" in row) == (".ipynb" in row) == lesson.notebook


def test_links_start_where_the_page_lies():
    assert "(notebooks/08_training_loop.ipynb)" in lesson_table()
    assert "(08_training_loop.ipynb)" in lesson_table(folder="")
    assert "(../notebooks/08_training_loop.ipynb)" in lesson_table(folder="../notebooks/")


def test_a_table_shows_as_markdown_and_prints_as_it_stands():
    table = lesson_table()
    assert repr(table) == str(table) == table._repr_markdown_()


def table_rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_the_table_of_routes_gives_hours_and_minutes():
    table = route_table()
    assert "| Ninety minutes |" in table
    assert "1 h 30 min" in table
    assert all(route.title in table for route in ROUTES)


def test_the_table_of_routes_says_how_many_lessons_can_be_opened_today():
    head, _, *rows = table_rows(route_table())
    assert head.endswith("| ready today |")
    for route, row in zip(ROUTES, rows, strict=True):
        ready = len([each for each in LESSONS if each.name in route.lessons and each.notebook])
        assert row.endswith(f"| {ready} of {len(route.lessons)} |")


def test_a_lesson_that_gets_its_notebook_is_counted_as_ready(monkeypatch):
    planned = tuple(dataclasses.replace(each, notebook=each.name == "gae") for each in LESSONS)
    monkeypatch.setattr(lessons, "LESSONS", planned)
    assert [row.split(" | ")[-1] for row in table_rows(route_table())[2:]] == [
        *("1 of 4 |", "1 of 11 |", "1 of 18 |")
    ]
