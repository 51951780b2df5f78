"""Widgets without a browser: numbers, states, words, static twins, and what they leave behind.

python tests/test_widgets.py      writes tests/fixtures/clip_region.json
"""

import gc
import json
import math
import os
import re
import subprocess
import sys
import weakref
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.manager import start_new_kernel

from ppo_lessons import LESSONS, cli, compare, progress
from ppo_lessons.clip import clip_fractions, clipped_surrogate
from ppo_lessons.figures.clip_region import TITLES
from ppo_lessons.widgets import ClipRegion, Predict, Quiz, find_widget
from ppo_lessons.widgets.clip_region import ADVANTAGES, RATIOS, pushes, ways_out
from ppo_lessons.widgets.html import write_pages
from ppo_lessons.widgets.messages import WORDS
from ppo_lessons.widgets.page import FOLDER

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "tests" / "fixtures" / "clip_region.json"
VIEW = "application/vnd.jupyter.widget-view+json"
QUIZ = "training_loop.review_ratio"  # its right option is c
MAKERS = {
    "clip_region": ClipRegion,
    "quiz": lambda: Quiz(QUIZ),
    "predict": lambda: Predict("clip.ratio", "How far does the ratio get?"),
}


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    for section in progress.SECTIONS:
        monkeypatch.setitem(progress._session, section, {})


@pytest.fixture(params=MAKERS)
def widget(request):
    made = MAKERS[request.param]()
    yield made
    made.close()


# --- ClipRegion: numbers ---------------------------------------------------------------------

# Worked by hand, ε = 0.2: ratio, advantage, objective, whether the gradient is alive.
BY_HAND = [
    (0.5, 1.0, 0.5, True),
    (1.0, 1.0, 1.0, True),
    (1.2, 1.0, 1.2, True),  # the edge itself still pushes
    (1.5, 1.0, 1.2, False),
    (0.5, -1.0, -0.8, False),
    (0.8, -1.0, -0.8, True),
    (1.0, -2.0, -2.0, True),
    (1.5, -1.0, -1.5, True),
]


@pytest.mark.parametrize(("ratio", "advantage", "objective", "alive"), BY_HAND)
def test_eight_points_worked_by_hand(ratio, advantage, objective, alive):
    shown = ClipRegion(ratios=[ratio], advantages=[advantage])
    assert shown.mean_objective == pytest.approx(objective, rel=1e-12)
    assert shown.pushing == [alive]


def test_the_two_fractions_of_the_first_picture_were_counted_by_hand():
    above = [(ratio, sign) for ratio, sign in zip(RATIOS, ADVANTAGES, strict=True) if ratio > 1.2]
    below = [(ratio, sign) for ratio, sign in zip(RATIOS, ADVANTAGES, strict=True) if ratio < 0.8]
    silent = [sign for _, sign in above if sign > 0] + [sign for _, sign in below if sign < 0]
    shown = ClipRegion()
    assert shown.fraction_outside == pytest.approx((len(above) + len(below)) / 24)
    assert shown.fraction_zero_gradient == pytest.approx(len(silent) / 24)
    assert (len(above), len(below), len(silent)) == (7, 6, 4)
    assert "4 of these no longer push. 20 of 24 still push, 9 of them back." in repr(shown)


@given(st.integers(0, 10**6), st.integers(5, 50))
def test_what_autograd_says_is_what_the_lesson_counts(seed, hundredths):
    epsilon = hundredths / 100
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(0, 219, (16,), generator=generator)
    shown = ClipRegion(
        ratios=[round(0.005 + step / 100, 3) for step in steps.tolist()],
        advantages=(torch.randn(16, generator=generator) + 0.001).tolist(),
        clip_epsilon=epsilon,
    )
    assert shown.fraction_zero_gradient == pytest.approx(1 - sum(shown.pushing) / 16)
    assert shown.fraction_zero_gradient <= shown.fraction_outside


def test_the_reader_recomputes_the_numbers_in_single_precision():
    shown = ClipRegion()
    ratios, advantages = torch.tensor(shown.ratios), torch.tensor(shown.advantages)
    objective = clipped_surrogate(ratios, advantages, clip_epsilon=shown.clip_epsilon).mean()
    both = clip_fractions(
        ratios.log(), torch.zeros(24), advantages, clip_epsilon=shown.clip_epsilon
    )
    assert objective.item() == pytest.approx(shown.mean_objective, rel=1e-5)
    fractions = shown.fraction_outside, shown.fraction_zero_gradient
    assert [each.item() for each in both] == pytest.approx(fractions)


def test_samples_are_told_apart_from_the_back_of_a_hall():
    ordered = sorted(RATIOS)
    assert min(b - a for a, b in pairwise(ordered)) > 0.0199
    assert min(abs(ratio - edge) for ratio in RATIOS for edge in (0.8, 1.2)) > 0.0299


def test_picture_and_page_have_the_same_headings():
    words = WORDS["en"]["clip_region"]
    assert [title.lower() for title in TITLES.values()] == [words["better"], words["worse"]]


def test_no_sample_lies_where_rounding_decides():
    edges = [1 + sign * hundredths / 100 for hundredths in range(5, 51) for sign in (1, -1)]
    assert min(abs(ratio - edge) for ratio in RATIOS for edge in edges) > 0.004


# --- ClipRegion: two ways out, one blind spot ------------------------------------------------


def test_one_big_step_lands_at_2_77():
    path = ways_out()["one_step"]
    # The ratio's slope is p(1 − p)/p_old = 0.8 for one logit and −0.8 for the other.
    difference = math.log(0.2 / 0.8) + 1.6
    landed = 1 / (1 + math.exp(-difference)) / 0.2
    assert path["ratios"] == pytest.approx([1.0, landed], rel=1e-12)
    assert f"{landed:.2f}" == "2.77"
    assert path["pushes"] == [True, False]


def test_momentum_crosses_the_edge_at_step_4_and_goes_on_to_1_68():
    path = ways_out()["momentum"]
    expected = adam_by_hand(len(path["ratios"]) - 1)
    assert path["ratios"] == pytest.approx(expected, rel=1e-9)
    crossed = next(step for step, ratio in enumerate(path["ratios"]) if ratio > 1.2)
    assert crossed == 4
    assert all(path["pushes"][:4])
    assert not any(path["pushes"][4:])
    assert f"{path['ratios'][-1]:.2f}" == "1.68"


def adam_by_hand(steps):
    """Adam on the difference of two logits, which move by the same amount in opposite ways."""
    half, first, second, ratios = math.log(0.2 / 0.8) / 2, 0.0, 0.0, []
    for step in range(steps + 1):
        probability = 1 / (1 + math.exp(-2 * half))
        ratios.append(probability / 0.2)
        slope = probability * (1 - probability) / 0.2 if ratios[-1] <= 1.2 else 0.0
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, spread = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        half += 0.03 * mean / (math.sqrt(spread) + 1e-8)
    return ratios


def test_the_clip_sees_nothing_of_an_action_that_was_not_drawn():
    path = ways_out()["unsampled"]
    assert path["probabilities"][-1] == pytest.approx([0.4, 0.4, 0.2])
    assert path["ratios"][-1][:2] == pytest.approx([0.4 / 0.495] * 2)
    assert set(path["outside"]) == {0.0}
    by_hand = 0.99 * math.log(0.495 / 0.4) + 0.01 * math.log(0.01 / 0.2)
    assert path["kl"][-1] == pytest.approx(by_hand, rel=1e-12)
    assert f"{by_hand:.2f}" == "0.18"
    assert path["kl"] == sorted(path["kl"])
    assert f"{path['miss']:.2f}" == "0.53"


def test_a_sampled_rare_action_would_be_seen():
    rare = ways_out()["unsampled"]["ratios"][-1][2]
    assert rare == pytest.approx(20)  # the control: were c in the batch, it would stand far outside


# --- ClipRegion: state -----------------------------------------------------------------------


def test_a_state_makes_an_equal_widget():
    shown = ClipRegion(clip_epsilon=0.3, guess=7, view="momentum", step=4)
    shown.ratios = [0.905, *shown.ratios[1:]]
    again = ClipRegion(**shown.state())
    assert again.state() == shown.state()
    assert repr(again) == repr(shown)
    assert json.loads(json.dumps(shown.state())) == shown.state()


@pytest.mark.parametrize("name", ClipRegion.STATES)
def test_each_named_state_says_and_draws_something(name):
    shown = ClipRegion(**ClipRegion.STATES[name])
    assert shown.state() == ClipRegion.STATES[name]
    assert len(shown.sentence().split()) >= 4
    assert len(shown.figure().axes) in (1, 2)


def test_a_tensor_of_ratios_is_taken():
    shown = ClipRegion(ratios=torch.tensor([0.5, 1.5]), advantages=torch.tensor([1.0, -1.0]))
    assert shown.ratios == [0.5, 1.5]


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"ratios": [1.0]}, "ratios holds 1 numbers, advantages 24"),
        ({"ratios": [3.0], "advantages": [1.0]}, "ratios holds 3.0; expected numbers above 0"),
        ({"ratios": [0.0], "advantages": [1.0]}, "ratios holds 0.0"),
        ({"ratios": [math.nan], "advantages": [1.0]}, "ratios holds nan"),
        ({"ratios": [1.0], "advantages": [0.0]}, "advantages holds a 0"),
        ({"ratios": [], "advantages": []}, "ratios holds 0 numbers; expected 1 to 64"),
        ({"clip_epsilon": 0.0}, "clip_epsilon is 0.0; expected a number above 0 and below 1"),
        ({"clip_epsilon": 1.0}, "clip_epsilon is 1.0"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ClipRegion(**state)


def test_a_guess_is_kept_as_a_prediction_when_asked():
    shown = ClipRegion(keep_as="clip.still_push")
    shown.guess = 17
    assert compare("clip.still_push", 20).predicted is None  # not before it is revealed
    shown.revealed = True
    assert repr(compare("clip.still_push", shown.still_push)).startswith(
        "clip.still_push: you said 17 samples, measured 20 samples"
    )


def test_a_guess_is_not_kept_unless_asked():
    ClipRegion().set_trait("guess", 3)
    shown = ClipRegion(guess=3)
    shown.revealed = True
    assert not progress._session["predictions"]


# --- Quiz and Predict store with the functions of the text versions --------------------------


def test_an_answer_is_judged_and_kept_like_that_of_a_cell():
    asked = Quiz(QUIZ)
    assert repr(asked) == repr(progress.quiz(QUIZ))
    asked.answer = "c"
    assert progress._session["quizzes"][QUIZ] == {"answer": "c", "right": True}
    assert repr(asked) == repr(progress.quiz(QUIZ, "c"))
    asked.answer = ""
    assert repr(asked) == repr(progress.quiz(QUIZ))


@pytest.mark.messages
def test_an_unknown_quiz_and_an_unknown_option_are_refused():
    with pytest.raises(ValueError, match="no quiz"):
        Quiz("training_loop.nothing")
    with pytest.raises(ValueError, match="got the answer 'z'; expected one of a, b, c"):
        Quiz(QUIZ).answer = "z"


def test_a_guess_is_kept_and_compared_like_that_of_a_cell():
    asked = Predict("clip.ratio", "How far?", unit="times")
    asked.guess = 1.2
    assert compare("clip.ratio", 2.4).predicted == 1.2
    asked.measured = 2.4
    assert repr(asked) == "How far?\n" + repr(compare("clip.ratio", 2.4))


@pytest.mark.messages
def test_a_guess_outside_the_options_is_refused():
    asked = Predict("clip.direction", "Which way?", options=["up", "down"])
    asked.guess = "up"
    with pytest.raises(ValueError, match="guess is 'left'; expected one of up, down"):
        asked.guess = "left"
    with pytest.raises(ValueError, match="no lesson"):
        Predict("nothing.here")


@pytest.mark.parametrize("asked", [Quiz(QUIZ, answer="a"), Predict("clip.x", "?", guess=1.0)])
def test_questions_make_an_equal_widget_from_their_state(asked):
    assert type(asked)(**asked.state()).state() == asked.state()


# --- what a notebook stores ------------------------------------------------------------------


def test_an_output_holds_a_view_a_static_twin_and_a_sentence(widget):
    parts, about = widget._repr_mimebundle_()
    assert parts[VIEW]["model_id"] == widget.model_id
    assert parts["text/plain"] == repr(widget)
    assert "image/png" in parts or "text/markdown" in parts
    if "image/png" in parts:
        assert about == {"image/png": {"alt": repr(widget)}}


def test_outputs_are_the_same_bytes_each_time_and_hold_no_address(widget):
    name = widget.NAME
    parts, _ = widget._repr_mimebundle_()
    again, _ = MAKERS[name]()._repr_mimebundle_()
    parts.pop(VIEW), again.pop(VIEW)
    assert parts == again
    assert "0x" not in parts["text/plain"]
    assert widget.model_id not in json.dumps(parts)


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


def test_fifty_closed_widgets_are_forgotten(widget):
    refs = []
    for _ in range(50):
        made = MAKERS[widget.NAME]()
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


def test_a_cell_run_fifty_times_leaves_one_widget(tmp_path):
    counted = run_in_kernel([shows_as("widget")] * 50 + [COUNT], tmp_path)
    assert counted.split() == ["1", "2"]  # one widget; open are it and its layout


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

SCRIPTS = {
    "base": ("base",),
    "clip_region": ("clip_region", "clip_region_ways"),
    "quiz": ("quiz",),
    "predict": ("predict",),
}


def script_text(names):
    return "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in names)


def test_each_script_finds_its_words():
    for table in WORDS.values():
        for name, files in SCRIPTS.items():
            used = set(re.findall(r"words\.([a-z_]+)", script_text(files)))
            used |= set(re.findall(r"(?:say\(words, |button\()\"([a-z_]+)\"", script_text(files)))
            known = set(table["base"]) | set(table[name])
            assert used - known - {"title", "question"} == set()


def test_no_word_is_left_over():
    texts = script_text([file for files in SCRIPTS.values() for file in files])
    texts += "".join(path.read_text("utf-8") for path in FOLDER.glob("*.py"))
    texts = texts.replace((FOLDER / "messages.py").read_text("utf-8"), "")
    composed = ("state_", "view_", "_intro", "_picture")
    for name, table in WORDS["en"].items():
        for key in table:
            built = any(part in key for part in composed)
            assert built or re.search(rf"\b{key}\b", texts), f"{name}.{key}"


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


def test_each_state_has_a_title_and_each_view_its_words():
    for name in ("clip_region",):
        made = find_widget(name)
        assert {f"state_{state}" for state in made.STATES} <= set(WORDS["en"][name])
    for view in ("one_step", "momentum", "unsampled"):
        assert f"{view}_intro" in WORDS["en"]["clip_region"]


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
    assert {f"04_clip_clip_region.html#{state}" for state in ClipRegion.STATES} <= links


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


# --- the fixture that holds the script to Python ---------------------------------------------


def fixture_content():
    """What the script must compute: single samples on both edges, and whole batches."""
    points = []
    for epsilon in (0.05, 0.1, 0.2, 0.5):
        edges = [0.0, 1 - epsilon, 1 + epsilon]
        for ratio in (*edges[1:], 0.005, 0.3, 0.795, 0.995, 1.005, 1.205, 1.7, 2.195):
            for advantage in (1.0, -1.0, 2.5, -0.3):
                pair = [torch.tensor([each], dtype=torch.float64) for each in (ratio, advantage)]
                points.append(
                    {
                        "ratio": ratio,
                        "advantage": advantage,
                        "epsilon": epsilon,
                        "objective": clipped_surrogate(*pair, clip_epsilon=epsilon).item(),
                        "pushes": pushes(*pair, clip_epsilon=epsilon).item(),
                    }
                )
    batches = []
    for seed, epsilon in enumerate((0.05, 0.13, 0.2, 0.2, 0.31, 0.5)):
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(20, 200, (4 * (seed + 1),), generator=generator).tolist()
        signs = torch.randn(len(steps), generator=generator, dtype=torch.float64).tolist()
        ratios = [round(0.005 + step / 100, 3) for step in steps]
        shown = ClipRegion(ratios=ratios, advantages=signs, clip_epsilon=epsilon)
        batches.append(
            {
                **shown.state(),
                "fraction_outside": shown.fraction_outside,
                "fraction_zero_gradient": shown.fraction_zero_gradient,
                "mean_objective": shown.mean_objective,
                "still_push": shown.still_push,
            }
        )
    return {"points": points, "batches": batches}


def test_the_fixture_is_what_python_computes():
    stored = json.loads(FIXTURE.read_text(encoding="utf-8"))
    now = fixture_content()
    assert len(stored["points"]) == len(now["points"]) == 160
    for have, want in zip(stored["points"], now["points"], strict=True):
        assert have == pytest.approx(want, rel=1e-12, abs=1e-15)
    for have, want in zip(stored["batches"], now["batches"], strict=True):
        for name in ("fraction_outside", "fraction_zero_gradient", "mean_objective"):
            assert have[name] == pytest.approx(want[name], rel=1e-12, abs=1e-15)
        assert have["ratios"] == want["ratios"]


if __name__ == "__main__":
    text = json.dumps(fixture_content(), indent=1)
    FIXTURE.write_text(text + "\n", encoding="utf-8")
