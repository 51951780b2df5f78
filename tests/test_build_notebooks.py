"""The builder turns sources into notebooks that hold nothing of the machine."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest

from tools import build_notebooks as builder

REPOSITORY = Path(__file__).resolve().parent.parent

LESSON = """
# %% [markdown]
# # Reinforce
#
# A first sentence.

# %% tags=["nbval-ignore-output"]
import ppo_lessons
from matplotlib.figure import Figure

ppo_lessons.setup()

# %% [markdown]
# ## A picture
#
# Look at it.

# %%
figure = Figure(figsize=(3, 2))
figure.subplots().plot([0, 1], [1, 0])
ppo_lessons.show(figure, alt="A line falls from one to zero.")

# %% id="last-word"
import os

print("one", flush=True)
print(sorted(name for name in os.environ if name.startswith("PPO_LESSONS")))
"""

EXERCISE = '''
# %% [markdown]
# # Exercise

# %%
def double(x):
    """Return twice x."""
    ### BEGIN SOLUTION: twice
    return 2 * x
    ### END SOLUTION


# %%
### BEGIN SOLUTION stub: answer = None
answer = double(2)
### END SOLUTION
print("checked:", answer in (None, 4))
'''


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def run(root: Path, *words: str) -> int:
    return builder.main(["--root", str(root), *words])


def lesson_target(root: Path) -> builder.Target:
    return builder.find_targets(root)[0]


def lesson_from(root: Path, text: str) -> builder.Target:
    write(root, "notebooks/source/01_reinforce.py", text)
    return lesson_target(root)


def markdown(text: str) -> str:
    return "\n# %% [markdown]\n" + "\n".join(f"# {line}" for line in text.splitlines()) + "\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory):
    """Build a small project once; tests that change it copy it first."""
    root = tmp_path_factory.mktemp("project")
    write(root, "notebooks/source/01_reinforce.py", LESSON)
    write(root, "exercises/source/01_reinforce.py", EXERCISE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        patch.setenv("PPO_LESSONS_FAST", "1")
        patch.setenv("PPO_LESSONS_HOME", str(root / "store"))
        assert run(root, "build") == 0
        yield root


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "copy"))


@pytest.fixture
def lesson(built: Path) -> nbformat.NotebookNode:
    return nbformat.read(built / "notebooks/01_reinforce.ipynb", as_version=4)


# --- building ------------------------------------------------------------------------------


def test_building_twice_gives_the_same_bytes(built, tmp_path):
    again = tmp_path / "again"
    for folder in ("notebooks/source", "exercises/source"):
        shutil.copytree(built / folder, again / folder)
    assert run(again, "build") == 0
    for path in ("notebooks", "exercises", "solutions"):
        file = f"{path}/01_reinforce.ipynb"
        assert (built / file).read_bytes() == (again / file).read_bytes()


def test_the_built_notebook_holds_a_picture(lesson):
    outputs = [output for cell in lesson.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 1
    assert pictures[0].metadata["image/png"]["alt"] == "A line falls from one to zero."
    assert pictures[0].data["text/plain"] == "A line falls from one to zero."


def test_a_notebook_is_built_with_full_budgets_and_without_a_store(lesson):
    assert os.environ["PPO_LESSONS_FAST"] == "1"
    assert lesson.cells[-1].outputs[0].text == "one\n[]\n"


def test_metadata_are_fixed_and_name_the_source(lesson):
    assert set(lesson.metadata) == {"kernelspec", "language_info", "ppo_lessons"}
    assert lesson.metadata.kernelspec.name == "python3"
    assert "version" not in lesson.metadata.language_info
    assert lesson.metadata.ppo_lessons.source == "notebooks/source/01_reinforce.py"
    assert "notebooks/source/01_reinforce.py" in lesson.cells[0].source.splitlines()[0]


def test_tags_stay_and_nothing_else_does(lesson):
    assert lesson.cells[1].metadata == {"tags": ["nbval-ignore-output"]}
    assert all(set(cell.metadata) <= {"tags"} for cell in lesson.cells)


def test_the_working_folder_is_the_notebooks(tmp_path):
    where = markdown("# Title") + "\n# %%\nfrom pathlib import Path\nprint(Path.cwd().name)\n"
    target = lesson_from(tmp_path, where)
    builder.build(target, tmp_path, run=True, timeout=60)
    stored = nbformat.read(tmp_path / target.path, as_version=4)
    assert stored.cells[1].outputs[0].text == "notebooks\n"


def test_settings_of_the_user_do_not_reach_a_notebook(tmp_path, monkeypatch):
    write(tmp_path, "mpl/matplotlibrc", "axes.facecolor: red\n")
    write(tmp_path, "ipython/profile_default/startup/00.py", "print('started')\n")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "mpl"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLBACKEND", "svg")
    look = (
        "\n# %%\nimport matplotlib\nprint(matplotlib.rcParams['axes.facecolor'])\n"
        "print('inline' in matplotlib.get_backend())\n"
        "print(get_ipython().ipython_dir.endswith('ipython'))\n"
    )
    target = lesson_from(tmp_path, markdown("# T") + look)
    builder.build(target, tmp_path, run=True, timeout=60)
    stored = nbformat.read(tmp_path / target.path, as_version=4)
    assert stored.cells[1].outputs[0].text == "white\nTrue\nFalse\n"


def test_a_failing_cell_fails_the_build_and_leaves_the_old_notebook(project, capsys):
    before = (project / "notebooks/01_reinforce.ipynb").read_bytes()
    lesson_from(project, LESSON + "\n# %%\n1 / 0\n")
    assert run(project, "build", "1") == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert (project / "notebooks/01_reinforce.ipynb").read_bytes() == before


def test_a_cell_that_writes_to_stderr_fails_the_build(tmp_path, capsys):
    lesson_from(tmp_path, markdown("# T") + "\n# %%\nimport warnings\nwarnings.warn('careful')\n")
    assert run(tmp_path, "build") == 1
    assert "stderr" in capsys.readouterr().out
    assert not (tmp_path / "notebooks/01_reinforce.ipynb").exists()


def test_a_cell_that_takes_too_long_fails_the_build(tmp_path, capsys):
    lesson_from(tmp_path, markdown("# T") + "\n# %%\nimport time\ntime.sleep(30)\n")
    assert run(tmp_path, "build", "--timeout", "1") == 1
    assert "CellTimeoutError" in capsys.readouterr().out


NBVAL_LESSON = """
# %% [markdown]
# # Reinforce

# %%
# NBVAL_IGNORE_OUTPUT
import ppo_lessons
from matplotlib.figure import Figure

ppo_lessons.setup()

# %%
ppo_lessons.predict("reinforce.sum", None)

# %% [markdown]
# Now look.

# %%
figure = Figure(figsize=(3, 2))
figure.subplots().plot([0, ppo_lessons.budget(9, 1)])
ppo_lessons.show(figure, alt="A line goes up from zero.")
print("solved")
print("and printed")

# %%
ppo_lessons.compare("reinforce.sum", 0.5)

# %% [markdown]
# Read the source.

# %%
ppo_lessons.show_source(ppo_lessons.budget)

# %%
ppo_lessons.lesson_table(folder="")
"""


def nbval(root: Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    options = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={root}"]
    environment = os.environ | {
        "PYTHONPATH": str(REPOSITORY),
        "PPO_LESSONS_FAST": "1",
        "PPO_LESSONS_HOME": str(home),
    }
    return subprocess.run(
        [*command, *options, str(root / "notebooks/01_reinforce.ipynb")],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_nbval_agrees_at_fast_budgets_and_with_a_readers_store(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    lesson_from(tmp_path, NBVAL_LESSON)
    assert run(tmp_path, "build") == 0
    home = tmp_path / "home"
    entry = {"reinforce.sum": {"value": 7, "unit": ""}}
    store = {"version": 1, "predictions": entry, "quizzes": {}, "checks": {}}
    write(tmp_path, "home/progress.json", json.dumps(store))
    good = nbval(tmp_path, home)
    assert "6 passed" in good.stdout, good.stdout
    edit(tmp_path / "notebooks/01_reinforce.ipynb", _set_alt)
    bad = nbval(tmp_path, home)
    assert "1 failed, 5 passed" in bad.stdout, bad.stdout


def _set_alt(notebook):
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    (picture,) = (output for output in outputs if "image/png" in output.get("data", {}))
    picture["data"]["text/plain"] = ["A line goes down to zero."]


# --- ids -----------------------------------------------------------------------------------


def ids(root: Path, text: str) -> list[str]:
    return [cell.id for cell in builder.compose(lesson_from(root, text), root).cells]


def test_an_id_is_the_wish_of_the_source_or_follows_the_heading(tmp_path):
    assert ids(tmp_path, LESSON) == [
        "reinforce-01",
        "reinforce-02",
        "a-picture-01",
        "a-picture-02",
        "last-word",
    ]


def test_an_inserted_cell_keeps_the_ids_of_other_sections(tmp_path):
    before = ids(tmp_path, LESSON)
    after = ids(tmp_path, LESSON.replace("# %% tags", "# %%\n1 + 1\n\n# %% tags"))
    assert len(after) == len(before) + 1
    assert set(before) <= set(after)


@pytest.mark.parametrize(
    "cells",
    [
        '\n# %% id="a"\n1\n\n# %% id="a"\n2\n',
        '\n# %% id="not good"\n1\n',
        '\n# %% id="t-01"\n1\n',
    ],
)
def test_doubled_and_malformed_ids_are_refused(tmp_path, cells):
    with pytest.raises(builder.BuildError, match="id"):
        ids(tmp_path, markdown("# T") + cells)


def test_two_sections_with_the_same_heading_get_different_ids(tmp_path):
    found = ids(tmp_path, markdown("# T") + markdown("## Try") + markdown("## Try"))
    assert found == ["t-01", "try-01", "try-02"]


# --- rules for outputs ---------------------------------------------------------------------


def notebook_with(*outputs: nbformat.NotebookNode) -> nbformat.NotebookNode:
    cell = nbformat.v4.new_code_cell("1", id="cell", outputs=list(outputs), execution_count=1)
    return nbformat.v4.new_notebook(cells=[cell])


def data_output(metadata: dict | None = None, **data: str) -> nbformat.NotebookNode:
    keys = {"plain": "text/plain", "png": "image/png", "html": "text/html"}
    bundle = {keys.get(key, key): value for key, value in data.items()}
    return nbformat.v4.new_output("display_data", data=bundle, metadata=metadata or {})


def stream(text: str, name: str = "stdout") -> nbformat.NotebookNode:
    return nbformat.v4.new_output("stream", text=text, name=name)


BAD_OUTPUTS = {
    "stderr": stream("a warning", name="stderr"),
    "address": stream("<object at 0x7f12ab34cd56>"),
    "path": data_output(plain="PosixPath('/home/somebody/x.py')"),
    "windows path": stream("C:\\Users\\somebody"),
    "path in html": data_output(plain="fine", html="<a href='/tmp/x'>x</a>"),
    "picture without words": data_output(png="AAAA"),
    "picture with a repr": data_output(png="AAAA", plain="<Figure size 300x200 with 1 Axes>"),
    "picture with two words": data_output({"image/png": {"alt": "a line"}}, png="AAAA"),
    "widget view": data_output(**{"plain": "a widget", builder.WIDGET_VIEW: "{}"}),
    "error": nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[]),
    "setup": data_output(plain="✘ not ready (1 to fix): torch is missing"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_what_must_not_be_stored_is_reported(name):
    assert len(builder.output_problems(notebook_with(BAD_OUTPUTS[name]))) == 1


def test_an_innocent_output_is_not_reported():
    outputs = [
        stream("the ratio is 4/5, see docs/notation.md and https://example.org/home/x"),
        data_output(png="AAAA", plain="A line falls to zero."),
        data_output({"image/png": {"alt": "A line falls to zero."}}, png="AAAA"),
    ]
    assert builder.output_problems(notebook_with(*outputs)) == []


def test_cleaning_takes_out_widgets_and_metadata_but_keeps_alternative_text():
    view = data_output(**{"plain": "slider", builder.WIDGET_VIEW: "{}"})
    only_view = data_output(**{builder.WIDGET_VIEW: "{}"})
    picture = data_output({"image/png": {"alt": "a", "width": 3}, "other": 1}, png="AAAA")
    notebook = notebook_with(view, only_view, picture)
    notebook.metadata["widgets"] = {"state": {}}
    builder.clean_outputs(notebook)
    assert "widgets" not in notebook.metadata
    kept = notebook.cells[0].outputs
    assert [dict(output.data) for output in kept] == [
        {"text/plain": "slider"},
        {"image/png": "AAAA"},
    ]
    assert kept[1].metadata == {"image/png": {"alt": "a"}}


# --- exercises -----------------------------------------------------------------------------


def test_a_blank_asks_for_the_answer_and_holds_no_outputs(built):
    blank = nbformat.read(built / "exercises/01_reinforce.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in blank.cells)
    assert '    raise NotImplementedError("exercise 1.1: twice")' in text
    assert "answer = None" in text
    assert "2 * x" not in text
    assert "double(2)" not in text
    assert "SOLUTION" not in text
    code = [cell for cell in blank.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_a_solution_holds_the_answer_and_its_outputs(built):
    solution = nbformat.read(built / "solutions/01_reinforce.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in solution.cells)
    assert "return 2 * x" in text
    assert "SOLUTION" not in text
    assert solution.cells[-1].outputs[0].text == "checked: True\n"


@pytest.mark.parametrize(
    "source",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION",
        "# BEGIN SOLUTION\nx = 1\n### END SOLUTION",
        "### BEGIN SOLUTION twice\nx = 1\n### END SOLUTION",
    ],
)
def test_markers_that_would_leak_an_answer_are_refused(source):
    with pytest.raises(builder.BuildError, match="SOLUTION"):
        builder.split_solution(source, number=1, count=0, blank=True)


def test_an_exercise_without_an_answer_is_refused(tmp_path):
    write(tmp_path, "notebooks/source/01_reinforce.py", LESSON)
    write(tmp_path, "exercises/source/01_reinforce.py", LESSON)
    with pytest.raises(builder.BuildError, match="BEGIN SOLUTION"):
        builder.compose(builder.find_targets(tmp_path)[1], tmp_path)


# --- check and stale -----------------------------------------------------------------------


def test_check_passes_on_what_was_just_built(built, capsys):
    assert run(built, "check") == 0
    assert "✔" in capsys.readouterr().out


def test_check_fails_when_it_finds_no_source(tmp_path, capsys):
    assert run(tmp_path, "check") == 1
    assert "no source found" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path",
    [
        "notebooks/source/01_reinforce.py",
        "ppo_lessons/reinforce.py",
        "ppo_lessons/figures/reinforce.py",
        "ppo_lessons/quizzes/reinforce.py",
    ],
)
def test_check_says_stale_when_a_part_changed(project, path, capsys):
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as text:
        text.write("\n# changed\n")
    assert run(project, "check") == 1
    lines = capsys.readouterr().out
    assert "is stale" in lines
    assert "python tools/build_notebooks.py build 01_reinforce" in lines


def test_a_lesson_is_not_stale_when_another_lesson_changed(project):
    write(project, "ppo_lessons/figures/gae.py", "x = 1")
    write(project, "ppo_lessons/gae.py", "x = 1")
    assert run(project, "check") == 0


def test_a_module_that_the_source_imports_counts(tmp_path):
    write(tmp_path, "ppo_lessons/gae.py", "x = 1")
    write(tmp_path, "ppo_lessons/lessons.py", "x = 1")
    write(tmp_path, "ppo_lessons/figures/__init__.py", "")
    write(tmp_path, "ppo_lessons/figures/gae.py", "x = 1")
    write(tmp_path, "ppo_lessons/figures/clip.py", "x = 1")
    imports = (
        "\n# %%\nfrom ppo_lessons import lesson_table\nfrom ppo_lessons.gae import x\n"
        "from ppo_lessons.figures import gae\n"
    )
    target = lesson_from(tmp_path, markdown("# T") + imports)
    found = [
        path.relative_to(tmp_path).as_posix() for path in builder.dependencies(target, tmp_path)
    ]
    assert found == [
        "notebooks/source/01_reinforce.py",
        "ppo_lessons/figures/__init__.py",
        "ppo_lessons/figures/gae.py",
        "ppo_lessons/gae.py",
        "ppo_lessons/lessons.py",
    ]


def test_the_hash_does_not_depend_on_line_endings(tmp_path):
    target = lesson_from(tmp_path, LESSON)
    before = builder.fingerprint(target, tmp_path)
    file = tmp_path / target.source
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert builder.fingerprint(target, tmp_path) == before


def edit(file: Path, change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def _set_source(notebook):
    notebook["cells"][1]["source"] = "by hand"


def _set_id(notebook):
    notebook["cells"][1]["id"] = "other"


def _drop_cell(notebook):
    notebook["cells"].pop()


def _add_metadata(notebook):
    notebook["metadata"]["widgets"] = {}


def _unexecute(notebook):
    notebook["cells"][1]["execution_count"] = None


EDITS = {
    "source": _set_source,
    "id": _set_id,
    "cells": _drop_cell,
    "metadata": _add_metadata,
    "not executed": _unexecute,
}


@pytest.mark.parametrize("words", EDITS)
def test_check_finds_a_notebook_edited_by_hand(project, words, capsys):
    edit(project / "notebooks/01_reinforce.ipynb", EDITS[words])
    assert run(project, "check") == 1
    assert words in capsys.readouterr().out


def test_check_finds_outputs_in_a_blank(project, capsys):
    def execute(notebook):
        notebook["cells"][1]["execution_count"] = 1

    edit(project / "exercises/01_reinforce.ipynb", execute)
    assert run(project, "check") == 1
    assert "outputs" in capsys.readouterr().out


def test_check_finds_missing_and_orphaned_notebooks(project, capsys):
    (project / "notebooks/01_reinforce.ipynb").rename(project / "notebooks/02_importance.ipynb")
    assert run(project, "check") == 1
    lines = capsys.readouterr().out
    assert "notebooks/01_reinforce.ipynb does not exist" in lines
    assert "notebooks/02_importance.ipynb has no source" in lines


def test_stale_builds_only_what_changed(project, capsys):
    with (project / "exercises/source/01_reinforce.py").open("a") as text:
        text.write("\n# %%\nprint('more')\n")
    assert run(project, "build", "--stale") == 0
    lines = capsys.readouterr().out
    assert "notebooks/" not in lines
    assert "exercises/01_reinforce.ipynb: written" in lines
    assert "solutions/01_reinforce.ipynb: written" in lines
    assert run(project, "check") == 0
    capsys.readouterr()
    assert run(project, "build", "--stale") == 0
    assert "nothing to build" in capsys.readouterr().out


def test_without_execution_a_notebook_has_no_outputs_and_check_asks_for_them(project, capsys):
    assert run(project, "build", "reinforce", "--no-execute") == 0
    stored = nbformat.read(project / "notebooks/01_reinforce.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in stored.cells)
    assert "notebooks/01_reinforce.ipynb: written" in capsys.readouterr().out
    assert run(project, "build", "reinforce", "--no-execute") == 0
    assert "notebooks/01_reinforce.ipynb: unchanged" in capsys.readouterr().out
    assert run(project, "check") == 1
    assert "not executed" in capsys.readouterr().out


# --- selection and names -------------------------------------------------------------------


@pytest.mark.parametrize("word", ["1", "01", "reinforce", "01_reinforce"])
def test_a_notebook_is_selected_by_number_or_name(built, word):
    chosen = builder.select(builder.find_targets(built), [word])
    assert {target.stem for target in chosen} == {"01_reinforce"}
    assert len(chosen) == 3


def test_an_unknown_selection_is_refused_with_the_names_there_are(built, capsys):
    assert run(built, "build", "99") == 1
    assert "01_reinforce" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("reinforce.py", LESSON, "08_training_loop.py"),
        ("01_reinforce.py", "\n# %%\n1\n", "first cell must be markdown"),
        ("01_reinforce.py", markdown("# T") + "\n# %%\n1 +\n", "no Python"),
    ],
)
def test_a_source_that_cannot_be_built_is_refused(tmp_path, name, text, words, capsys):
    write(tmp_path, f"notebooks/source/{name}", text)
    assert run(tmp_path, "build") == 1
    assert words in capsys.readouterr().out
