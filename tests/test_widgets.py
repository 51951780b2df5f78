"""Every widget keeps these promises, without a browser: states, words, pictures, no leaks.

A widget joins by its line in `ppo_lessons/widgets/registry.py`. What only one widget claims stands
in `test_widget_<name>.py`.
"""

import gc
import io
import json
import os
import re
import subprocess
import sys
import weakref
from html.parser import HTMLParser
from pathlib import Path

import pytest
import traitlets
from browsing import TEACHING, random_widgets
from jupyter_client.manager import start_new_kernel
from PIL import Image

from ppo_lessons import LESSONS, cli, compare, progress, widgets
from ppo_lessons.widgets import ClipRegion, LiveDashboard, Predict, Quiz, find_widget
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.html import write_pages
from ppo_lessons.widgets.messages import WORDS, written
from ppo_lessons.widgets.page import FOLDER
from ppo_lessons.widgets.registry import HOME, QUESTIONS
from ppo_lessons.widgets.traits import Choice, Choices, Number, Numbers, OneOf, Whole

ROOT = Path(__file__).resolve().parent.parent
VIEW = "application/vnd.jupyter.widget-view+json"
QUIZ = "training_loop.review_ratio"  # its right option is c
LARGEST_PAGE = 200_000  # bytes
LONGEST_SCRIPT = 200  # lines of a widget's own script
# widget -> lines that its longest script has, and why
LONGER_SCRIPTS = {"clip_region": 230}  # four views; the first widget there was
MAKERS = {name: find_widget(name) for name in TEACHING} | {
    "quiz": lambda: Quiz(QUIZ),
    "predict": lambda: Predict("clip.ratio", "How far does the ratio get?"),
    "live_dashboard": LiveDashboard,
}

pytestmark = pytest.mark.usefixtures("no_store")


@pytest.fixture(params=HOME.values())
def widget(request):
    made = MAKERS[request.param]()
    yield made
    made.close()


@pytest.fixture(params=TEACHING)
def made(request):
    """The class of each widget that teaches."""
    return find_widget(request.param)


# These take seconds for each widget: a few are tried each time, the others in full.
OFTEN = ("clip_region", "throughput_ledger", "quiz")


def some(names):
    """Mark all but a few names for the full run."""
    return [name if name in OFTEN else pytest.param(name, marks=pytest.mark.full) for name in names]


@pytest.fixture(params=some(TEACHING))
def often(request):
    """The class of a widget, for promises that take long to look at."""
    return find_widget(request.param)


@pytest.fixture(params=some(HOME.values()))
def maker(request):
    """What makes a widget, for promises of which many must be made."""
    return MAKERS[request.param]


# --- who is there ----------------------------------------------------------------------------


def test_each_widget_of_a_lesson_is_registered_and_belongs_to_one_lesson():
    belonging = [name for lesson in LESSONS for name in lesson.widgets]
    assert sorted(belonging) == sorted(set(belonging))
    assert set(belonging) == set(TEACHING)
    assert set(QUESTIONS) <= set(HOME.values())


def test_each_name_leads_to_its_class():
    for title, name in HOME.items():
        assert find_widget(name).__name__ == title
        assert name == find_widget(name).NAME
        assert (FOLDER / f"{name}.js").is_file()
    with pytest.raises(AttributeError, match="Nothing"):
        widgets.Nothing  # noqa: B018
    with pytest.raises(ValueError, match="no widget 'nothing'"):
        find_widget("nothing")


# --- states ----------------------------------------------------------------------------------


def test_a_state_makes_an_equal_widget(made):
    for shown in random_widgets(made.NAME, 5):
        again = made(**shown.state())
        assert json.loads(json.dumps(shown.state())) == shown.state() == again.state()
        assert repr(again) == repr(shown)
        assert again.numbers() == shown.numbers()


def test_the_states_of_a_lecture_begin_with_a_guess(made):
    assert issubclass(made, TeachingWidget)
    assert 4 <= len(made.STATES) <= 8
    first, *others = made.STATES.values()
    assert not first["revealed"]
    assert all(state["revealed"] for state in others)
    assert made().state() == first
    assert all(set(state) == set(made.STATE) for state in made.STATES.values())
    texts = [repr(made(**state)) for state in others]
    assert len(set(texts)) == len(texts)  # each shows something else


def test_each_named_state_says_and_draws_something(made):
    for name, state in made.STATES.items():
        shown = made.at(name)
        assert shown.state() == state
        assert len(shown.sentence().split()) >= 4
        assert shown.figure().axes


@pytest.mark.messages
def test_an_unknown_state_or_setting_is_refused_with_those_that_there_are(made):
    first = next(iter(made.STATES))
    with pytest.raises(ValueError, match=f"no state 'nowhere'; its states are {first}"):
        made.at("nowhere")
    with pytest.raises(ValueError, match="got gama; expected some of "):
        made(gama=1)


def test_what_cannot_be_drawn_is_refused_in_words(made):
    for name in made.STATE:
        trait = made.class_traits()[name]
        for value in bad_values(trait):
            with pytest.raises((ValueError, traitlets.TraitError)) as refused:
                made(**{name: value})
            assert name in str(refused.value)
            assert "0x" not in str(refused.value)


def bad_values(trait):
    if isinstance(trait, Numbers):
        yield from ([], "text", 7)
        for wrong in (float("nan"), float("inf"), trait.range.high + 1, trait.range.low - 1, "1"):
            yield [wrong, *trait.default_numbers[1:]]
    elif isinstance(trait, (Number, Whole)):
        yield from (float("nan"), float("inf"), "text", [1.0], True)
        yield from (trait.range.high + 1, trait.range.low - 1)
        yield from () if isinstance(trait, Number) else (trait.range.low + 0.5,)
    elif isinstance(trait, Choice):
        yield from ("no such choice", 3)
    elif isinstance(trait, Choices):
        yield from ("text", 3, trait.default_words[1:], ["nothing", *trait.default_words[1:]])
    elif isinstance(trait, OneOf):
        yield from (float("nan"), "text", [1.0], True, 1.001 * trait.values[-1])
    elif isinstance(trait, traitlets.Bool):
        yield "text"


def test_a_refused_value_from_the_page_is_said_there(made):
    shown = made()
    before = shown.state()
    shown.set_state({"revealed": "perhaps"})
    assert "revealed" in shown.error
    assert shown.state() == before
    shown.set_state({"revealed": True})
    assert shown.error == ""


def test_numbers_are_plain_and_finite(made):
    for shown in random_widgets(made.NAME, 3):
        numbers = shown.numbers()
        assert numbers  # without a number, nothing can be recomputed
        json.dumps(numbers, allow_nan=False)


# --- the guess -------------------------------------------------------------------------------


def example_guess(made):
    trait = made.class_traits()["guess"]
    return trait.values[0] if isinstance(trait, Choice) else trait.range.low


def test_a_guess_is_kept_as_a_prediction_when_asked_and_not_before_it_is_revealed(made):
    shown, guess = made(keep_as="clip.something"), example_guess(made)
    shown.guess = guess
    assert compare("clip.something", shown.answer).predicted is None
    shown.revealed = True
    assert compare("clip.something", shown.answer).predicted == guess
    made(guess=guess).revealed = True
    assert list(progress._session["predictions"]) == ["clip.something"]


def test_the_answer_is_a_possible_guess(made):
    for name in made.STATES:
        shown = made.at(name)
        shown.guess = shown.answer
        assert shown.guess == shown.answer


# --- numbers as both sides write them --------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.125, 2, "0.13"), (-0.125, 2, "−0.13"), (-0.001, 2, "0.00"), (2, 0, "2"), (2.5, 0, "3")],
)
def test_a_number_is_written_as_the_page_writes_it(value, digits, text):
    assert written(value, digits) == text


# --- what a notebook stores ------------------------------------------------------------------


def test_an_output_holds_a_view_a_static_twin_and_a_sentence(widget):
    parts, about = widget._repr_mimebundle_()
    assert parts[VIEW]["model_id"] == widget.model_id
    assert parts["text/plain"] == repr(widget)
    assert "image/png" in parts or "text/markdown" in parts
    if "image/png" in parts:
        assert about == {"image/png": {"alt": repr(widget)}}


def test_outputs_are_the_same_bytes_each_time_and_hold_no_address(maker):
    widget = maker()
    parts, _ = widget._repr_mimebundle_()
    again, _ = maker()._repr_mimebundle_()
    parts.pop(VIEW), again.pop(VIEW)
    assert parts == again
    assert "0x" not in parts["text/plain"]
    assert widget.model_id not in json.dumps(parts)


def test_the_static_picture_is_read_without_colour(often):
    """Light paper, dark ink; in grey some of it is neither, so marks and lines are there."""
    for name in often.STATES:
        picture = often.at(name).figure()
        buffer = io.BytesIO()
        picture.savefig(buffer, format="png", dpi=60)
        tones = Image.open(buffer).convert("L").histogram()
        total = sum(tones)
        assert sum(tones[240:]) > 0.5 * total
        assert 0.005 * total < sum(tones[:200]) < 0.5 * total


@pytest.mark.full
def test_the_builder_keeps_picture_and_sentence_and_drops_the_view(tmp_path):
    from tools import build_notebooks

    notebook = build_notebooks.nbformat.v4.new_notebook(
        cells=[
            build_notebooks.nbformat.v4.new_code_cell(
                "from ppo_lessons.widgets import ClipRegion\n\nClipRegion()"
            )
        ]
    )
    build_notebooks.execute(notebook, folder=tmp_path, root=ROOT, timeout=60)
    build_notebooks.clean_outputs(notebook)
    assert build_notebooks.output_problems(notebook) == []
    (output,) = notebook.cells[0].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.data["text/plain"] == repr(ClipRegion())
    assert output.metadata["image/png"]["alt"] == repr(ClipRegion())


# --- what stays behind -----------------------------------------------------------------------


def test_fifty_closed_widgets_are_forgotten(maker):
    refs = []
    for _ in range(50):
        made = maker()
        refs.append(weakref.ref(made))
        made.close()
    del made
    gc.collect()
    assert sum(ref() is not None for ref in refs) == 0


def test_the_script_is_text_since_a_path_would_keep_every_instance_alive(widget):
    assert type(widget._esm) is str
    assert type(widget._css) is str


def shows_as(variable):
    """A cell that makes a widget and shows it."""
    return f"from ppo_lessons.widgets import ClipRegion\n{variable} = ClipRegion()\n{variable}"


COUNT = """import gc
gc.collect()
from ipywidgets.widgets.widget import _instances
print(sum(issubclass(type(each), ClipRegion) for each in gc.get_objects()), len(_instances))"""


@pytest.mark.full
def test_a_cell_run_fifty_times_leaves_one_widget(tmp_path):
    counted = run_in_kernel([shows_as("widget")] * 50 + [COUNT], tmp_path)
    assert counted.split() == ["1", "2"]  # one widget; open are it and its layout


@pytest.mark.full
def test_two_cells_keep_a_widget_each(tmp_path):
    first, second = shows_as("widget"), shows_as("another")
    counted = run_in_kernel([first, second, first, COUNT], tmp_path)
    assert counted.split()[0] == "2"


UPDATES = """
import gc
from pathlib import Path
def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1])
def update(times):
    for step in range(times):
        widget.clip_epsilon = 0.1 + 0.3 * (step % 100) / 100
        widget.ratios = [ratio + 0.001 * (step % 7) for ratio in start]
        repr(widget)
start = list(widget.ratios)
update(200)
before = resident()
update(1000)
print(round(100 * (resident() / before - 1), 2))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.full
def test_a_thousand_updates_hardly_grow_the_kernel(tmp_path):
    grown = run_in_kernel([shows_as("widget"), UPDATES], tmp_path)
    assert float(grown) < 2, f"the kernel grew by {grown} %"


def run_in_kernel(cells, folder):
    """Run cells one after the other in a kernel of their own; what the last one prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    manager, client = start_new_kernel(cwd=str(folder), env=environment)
    printed: list[str] = []
    try:
        for code in cells:
            printed.clear()
            reply = client.execute_interactive(
                code, timeout=60, output_hook=lambda message: collect(message, printed)
            )
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(printed)


def collect(message, printed):
    if message["msg_type"] == "stream":
        printed.append(message["content"]["text"])


# --- words -----------------------------------------------------------------------------------


def scripts_of(name):
    """The files of a widget's own script."""
    return find_widget(name).PARTS or (name,)


SCRIPTS = {"base": ("base",)} | {name: scripts_of(name) for name in HOME.values()}


def script_text(names):
    return "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in names)


def test_a_script_stays_short_and_a_page_small(widget):
    allowed = LONGER_SCRIPTS.get(widget.NAME, LONGEST_SCRIPT)
    for file in scripts_of(widget.NAME):
        assert len(script_text([file]).splitlines()) <= allowed, file
    assert len(widget.to_html().encode()) <= LARGEST_PAGE


def test_a_script_loads_nothing_and_says_nothing_of_its_own(widget):
    text = script_text(scripts_of(widget.NAME))
    assert not re.search(r"^\s*import\b|\bfetch\(|XMLHttpRequest|console\.", text, re.M)
    loose = re.findall(r'write\([\w.]+, "[A-Za-z]', text)
    assert loose == []  # words stand in words/, where they can be translated


def test_each_script_finds_its_words():
    for table in WORDS.values():
        for name, files in SCRIPTS.items():
            used = set(re.findall(r"words\.([a-z_0-9]+)", script_text(files)))
            used |= set(
                re.findall(r"(?:say\(words, |button\()\"([a-z_0-9]+)\"", script_text(files))
            )
            known = set(table["base"]) | set(table[name])
            assert used - known - {"title", "question"} == set(), name


def test_no_word_is_left_over():
    texts = script_text([file for files in SCRIPTS.values() for file in files])
    texts += "".join(path.read_text("utf-8") for path in FOLDER.glob("*.py"))
    # Keys put together: `view_${view}` in a script, f"{view}_intro" in Python.
    composed = re.findall(r"[`\"](\w*)\$?\{[\w.]+\}(\w*)[`\"]", texts)
    built = [(a, z) for a, z in composed if len(a + z) > 2]
    for name in ("base", "html", *HOME.values()):
        for key in WORDS["en"][name]:
            put_together = any(key.startswith(a) and key.endswith(z) for a, z in built)
            assert put_together or re.search(rf"\b{key}\b", texts), f"{name}.{key}"


def test_each_language_has_the_same_words_with_the_same_places():
    places = {
        language: {
            (name, key): sorted(re.findall(r"\{\w+\}", text))
            for name, table in tables.items()
            for key, text in table.items()
        }
        for language, tables in WORDS.items()
    }
    assert all(each == places["en"] for each in places.values())


def test_each_widget_has_a_title_a_question_and_a_name_for_each_state(made):
    for table in WORDS.values():
        wanted = {"title", "question", *(f"state_{state}" for state in made.STATES)}
        assert wanted <= set(table[made.NAME])


def test_a_drag_starts_in_a_named_state(made):
    assert made.DRAGS  # a widget moves under the hand
    for drag in made.DRAGS:
        assert isinstance(drag, Drag)
        assert drag.state in made.STATES
        assert drag.along in ("x", "y")


# --- pages -----------------------------------------------------------------------------------


class Links(HTMLParser):
    """Addresses in a page, and whatever a browser would load."""

    def __init__(self):
        super().__init__()
        self.links, self.loaded = [], []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if tag == "a" and name == "href":
                self.links.append(value)
            elif name in ("src", "href", "srcset", "data", "poster"):
                self.loaded.append(value)


def links_of(path):
    parser = Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_pages(tmp_path_factory.mktemp("site") / "html")


def test_the_index_lists_every_widget_of_every_lesson(site):
    links = {link.partition("#")[0] for link in links_of(site[-1]).links}
    assert links == {path.name for path in site[:-1]}
    for lesson in LESSONS:
        for name in lesson.widgets:
            assert f"{lesson.stem}_{name}.html" in links


def test_each_named_state_is_linked(site):
    links = set(links_of(site[-1]).links)
    for lesson in LESSONS:
        for name in lesson.widgets:
            states = find_widget(name).STATES
            assert {f"{lesson.stem}_{name}.html#{state}" for state in states} <= links


def test_no_page_loads_anything(site):
    for path in site:
        assert links_of(path).loaded == ["data:,"]
        text = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\s\"'`<]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"^\s*import\b|\bfetch\(|XMLHttpRequest|@import|url\(", text, re.M)


def test_pages_are_the_same_bytes_each_time(site, tmp_path):
    again = write_pages(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in site]


def test_a_page_cannot_be_broken_by_its_words():
    text = Predict("clip.x", "</script><b>bold</b>").to_html()
    assert "</script><b>" not in text


def test_the_verb_writes_into_the_folder_that_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["html", "--out", "pages"]) == 0
    assert (tmp_path / "pages" / "index.html").is_file()
    assert "index.html" in capsys.readouterr().out


def test_without_a_folder_the_pages_join_the_reader_s_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_work").mkdir()
    assert cli.main(["html"]) == 0
    assert (tmp_path / "my_work" / "html" / "index.html").is_file()


def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert cli.main(["html", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("ppo-lessons: ")


def test_without_anywidget_the_import_says_what_to_install():
    code = "import sys; sys.modules['anywidget'] = None\nimport ppo_lessons.widgets.base"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "pip install 'ppo-lessons[course]'" in run.stderr
