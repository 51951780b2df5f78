"""What the notebooks call: setup, budget, show, show_source."""

import base64
import io
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

import ppo_lessons
from ppo_lessons import notebook
from ppo_lessons.notebook import Problem, SetupReport, budget, show, show_source

# --- setup ---------------------------------------------------------------------------------


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_setup_sets_one_torch_thread_and_says_so(capsys):
    assert torch.get_num_threads() == 2
    ppo_lessons.setup()
    assert torch.get_num_threads() == 1
    words = capsys.readouterr().out
    assert "one torch thread" in words
    assert torch.__version__ in words


def test_a_fine_environment_is_one_green_line():
    report = SetupReport("Python 3.11")
    assert repr(report) == "✔ ready: Python 3.11"
    bundle = report._repr_mimebundle_()
    assert bundle["text/plain"] == repr(report)
    assert "✔" in bundle["text/html"]
    assert "table" not in bundle["text/html"]


def test_each_problem_comes_with_a_command():
    report = SetupReport("Python 3.9", (Problem("a < b", "install a"), Problem("c", "install c")))
    assert repr(report).splitlines() == [
        "✘ not ready (2 to fix): Python 3.9",
        "  - a < b",
        "    try: install a",
        "  - c",
        "    try: install c",
    ]
    html = report._repr_mimebundle_()["text/html"]
    assert html.count("<tr>") == 3
    assert "a &lt; b" in html


def test_a_missing_and_an_old_package_are_found_and_a_good_one_is_not():
    found = notebook.requirement_problems(["torch>=1", "torch<1", "no-such-package-here>=2"])
    assert [problem.what for problem in found] == [
        f"torch is {torch.__version__}; expected torch<1",
        "no-such-package-here is missing; expected no-such-package-here>=2",
    ]
    assert 'pip install "torch<1"' in found[0].command


def test_requirements_of_extras_are_not_asked_for():
    line = 'no-such-package-here>=2; extra == "bench"'
    assert notebook.requirement_problems([line]) == []


def test_a_package_that_is_not_installed_is_one_problem(monkeypatch):
    monkeypatch.setattr(notebook, "DISTRIBUTION", "no-such-package-here")
    (problem,) = notebook.requirement_problems()
    assert "pip install -e ." in problem.command


def test_a_python_outside_the_range_is_found():
    assert notebook.python_problems(sys.version_info[:3]) == []
    (problem,) = notebook.python_problems((3, 8, 0))
    assert "3.8.0" in problem.what


def environment(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / ".made-by-course").touch()
    return folder


def test_another_interpreter_is_a_problem_only_when_the_course_has_its_own(tmp_path):
    own, other = environment(tmp_path / "course/.venv"), environment(tmp_path / "other")
    assert notebook.interpreter_problems(own, [own]) == []
    assert notebook.interpreter_problems(other, []) == []
    (problem,) = notebook.interpreter_problems(other, [own])
    assert "./course" in problem.command


@pytest.mark.parametrize("work", [".", "my_work"])
def test_the_environment_that_the_launcher_marked_is_found(tmp_path, monkeypatch, work):
    home = tmp_path.resolve()
    monkeypatch.setenv("PPO_LESSONS_HOME", str(home / work))
    before = notebook.course_environments()
    own = environment(home / ".venv")
    assert notebook.course_environments() == [*before, own]
    (own / ".made-by-course").unlink()
    assert notebook.course_environments() == before


def test_setup_runs_in_a_process_without_jupyter():
    code = "import ppo_lessons; ppo_lessons.setup(); print('end')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" in run.stdout
    assert run.stdout.endswith("end\n")
    assert run.stderr == ""


# --- budget --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected"),
    [(None, 16), ("", 16), ("0", 16), ("false", 16), ("1", 2), ("True", 2), ("yes", 2)],
)
def test_the_budget_is_fast_only_when_asked_for(monkeypatch, word, expected):
    monkeypatch.delenv("PPO_LESSONS_FAST", raising=False)
    if word is not None:
        monkeypatch.setenv("PPO_LESSONS_FAST", word)
    assert budget(16, 2) == expected


def test_a_budget_need_not_be_a_number(monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_FAST", "1")
    assert budget((1, 2, 3), (1,)) == (1,)


@pytest.mark.messages
@pytest.mark.parametrize(("full", "fast"), [(2, 16), (2, 0), (-1, -2)])
def test_a_fast_budget_above_the_full_one_is_refused(full, fast):
    with pytest.raises(ValueError, match="expected 0 < fast <= full"):
        budget(full, fast)


@pytest.mark.messages
def test_a_budget_of_two_kinds_and_an_unknown_word_are_refused(monkeypatch):
    with pytest.raises(TypeError, match="of different types"):
        budget(16, 2.0)
    monkeypatch.setenv("PPO_LESSONS_FAST", "perhaps")
    with pytest.raises(ValueError, match="expected 1 or 0"):
        budget(16, 2)


# --- show_source ---------------------------------------------------------------------------


def test_the_source_shown_is_the_source_that_runs():
    shown = show_source(budget)
    assert repr(shown).startswith("def budget(full: T, fast: T) -> T:")
    assert repr(shown).endswith("return fast if word in TRUE_WORDS else full")
    assert shown._repr_markdown_() == f"```python\n{shown}\n```"


def test_a_class_can_be_shown():
    assert "class Problem:" in repr(show_source(Problem))


@pytest.mark.messages
def test_only_code_of_the_package_is_shown():
    with pytest.raises(ValueError, match="expected code of ppo_lessons"):
        show_source(base64.b64encode)
    with pytest.raises(TypeError, match="without calling it"):
        show_source(3)  # pyright: ignore[reportArgumentType]


# --- show ----------------------------------------------------------------------------------


class Recorder:
    """Stands for a notebook: keeps what was displayed."""

    def __init__(self, monkeypatch):
        self.data: list[dict] = []
        self.metadata: list[dict] = []
        monkeypatch.setattr(notebook, "_in_notebook", lambda: True)
        monkeypatch.setattr("IPython.display.display", self)

    def __call__(self, data, *, raw, metadata):
        assert raw
        self.data.append(data)
        self.metadata.append(metadata)


def line_figure(end: float = 0.0) -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1], [1, end])
    return figure


def test_a_figure_is_shown_with_its_sentence_twice(monkeypatch):
    recorder = Recorder(monkeypatch)
    show(line_figure(), alt="A line  falls\nto zero.")
    assert recorder.data[0]["text/plain"] == "A line falls to zero."
    assert recorder.metadata[0] == {"image/png": {"alt": "A line falls to zero."}}
    assert base64.b64decode(recorder.data[0]["image/png"]).startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes_and_another_does_not(monkeypatch):
    recorder = Recorder(monkeypatch)
    for end in (0.0, 0.0, 0.5):
        show(line_figure(end), alt="A line falls to zero.")
    first, second, third = (data["image/png"] for data in recorder.data)
    assert first == second
    assert first != third
    assert b"Software" not in base64.b64decode(first)


def test_a_figure_of_pyplot_is_closed_so_that_it_is_not_drawn_twice(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    Recorder(monkeypatch)
    plt.switch_backend("agg")
    figure = plt.figure()
    show(figure, alt="An empty figure is shown.")
    assert not plt.fignum_exists(figure.number)


def test_in_a_terminal_the_sentence_is_printed(capsys):
    show(line_figure(), alt="A line falls to zero.")
    assert capsys.readouterr().out == "A line falls to zero.\n"


@pytest.mark.messages
def test_a_picture_without_words_and_a_thing_that_is_no_picture_are_refused():
    with pytest.raises(ValueError, match="at least four words"):
        show(line_figure(), alt="a line")
    with pytest.raises(TypeError, match="expected a matplotlib Figure"):
        show(io.BytesIO(), alt="A line falls to zero.")  # pyright: ignore[reportArgumentType]
