"""What is handed out holds no answer; what is baked tells answers from blanks, and says how."""

import json
import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from ppo_lessons.grading.bake import (
    Asking,
    bake,
    bake_task,
    check_place,
    compose_parts,
    execute,
    lint,
    rehearse,
    shared,
)
from ppo_lessons.grading.build import build_assignment, compose_blank, read_assignment
from ppo_lessons.grading.manifest import (
    manifest_from_json,
    manifest_to_json,
    read_class,
    read_reference,
    reference_sha256,
)
from ppo_lessons.grading.types import MAIN, CheckCell

ROOT = Path(__file__).resolve().parent.parent
SECRET = b"thirty-two bytes that nobody has"
STEMS = sorted(path.stem for path in (ROOT / "exercises/source").glob("*.py"))
ROSTER = ["ada", "max.m", "eve-2"]

CHAIN = """
# %% [markdown]
# # 04 Two that hang together

# %% [markdown]
# ## 1. The objective
#
# As in [the lesson](../notebooks/04_clip.ipynb).

# %%
# answer: clip.clipped_surrogate
import torch


def clipped_surrogate(ratios, advantages, *, clip_epsilon):
    ### BEGIN SOLUTION: two terms
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)
    ### END SOLUTION


# %%
check.clipped_surrogate(clipped_surrogate)

# %% [markdown]
# ## 2. The loss

# %%
# answer: clip.clipped_surrogate_loss
# builds on: clip.clipped_surrogate


def clipped_surrogate_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ### BEGIN SOLUTION
    ratios = (log_probs - log_probs_old.detach()).exp()
    return -clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()
    ### END SOLUTION


# %%
check.clipped_surrogate_loss(clipped_surrogate_loss)

# %% [markdown]
# ## Train
#
# Not graded.

# %%
secret_training_cell = 1
"""


@pytest.fixture(scope="module")
def common(tmp_path_factory) -> Path:
    """A reference of lesson 04 for everybody."""
    return bake("04_clip", tmp_path_factory.mktemp("baked") / "reference", 48151)


@pytest.fixture(scope="module")
def personal(tmp_path_factory) -> Path:
    """A reference of lesson 06 for three students."""
    place = tmp_path_factory.mktemp("baked") / "reference"
    return bake("06_gae", place, 48151, roster=ROSTER, secret=SECRET)


@pytest.fixture
def chain(tmp_path) -> Path:
    """A project whose second question builds on the first."""
    source = tmp_path / "project/exercises/source/04_clip.py"
    source.parent.mkdir(parents=True)
    source.write_text(CHAIN, encoding="utf-8")
    return tmp_path / "project"


def sources(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def answered(stem: str) -> dict[str, str]:
    return {task.exercise.id: task.solution for task in read_assignment(stem).tasks}


# --- the blank -----------------------------------------------------------------------------


@pytest.mark.parametrize("stem", STEMS)
def test_a_blank_is_a_notebook_without_answers_and_outputs(stem, tmp_path):
    (path,) = build_assignment(stem, tmp_path)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = path.read_text()
    for task in read_assignment(stem).tasks:
        assert task.blank in sources(path)
        assert task.solution not in text
        assert all(words not in text for words in ("BEGIN SOLUTION", "END SOLUTION"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_an_answer_cell_is_marked_three_times(tmp_path):
    (path,) = build_assignment("04_clip", tmp_path)
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    for task in read_assignment("04_clip").tasks:
        cell = cells[task.answer.id]
        assert cell.source.startswith(f"# answer: {task.exercise.id}\n")
        assert cell.metadata["ppo_lessons"] == {"answer": task.exercise.id}


def test_answer_cells_have_the_ids_that_they_have_in_the_courses_own_exercises(tmp_path):
    (path,) = build_assignment("04_clip", tmp_path)
    ours = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    course = nbformat.read(ROOT / "exercises/04_clip.ipynb", as_version=4)
    answers = {cell.id: cell.source for cell in course.cells if "# answer: " in cell.source[:20]}
    assert len(answers) == 6
    assert answers.items() <= ours.items()


def test_cells_that_are_given_say_so_and_no_link_leaves_the_file(tmp_path):
    (path,) = build_assignment("04_clip", tmp_path)
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert set(cell.metadata["ppo_lessons"]) in ({"answer"}, {"given"})
        assert "](../" not in cell.source


def test_training_and_solutions_are_not_handed_out(chain, tmp_path):
    (path,) = build_assignment("04_clip", tmp_path, root=chain)
    assert not any("secret_training_cell" in source for source in sources(path))
    (path,) = build_assignment("08_training_loop", tmp_path)
    assert not any("reveal(" in source for source in sources(path))


def test_each_student_gets_a_file_with_their_name_and_questions(tmp_path):
    paths = build_assignment("06_gae", tmp_path, roster=ROSTER, secret=SECRET)
    assert paths == [tmp_path / student / "06_gae.ipynb" for student in ROSTER]
    for path, student in zip(paths, ROSTER, strict=True):
        about = nbformat.read(path, as_version=4).metadata["ppo_lessons"]
        assert about == {"assignment": "06_gae", "student": student}
    assert len({sources(path)[-2] for path in paths}) == 3  # own_numbers: the text


def test_building_twice_gives_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        build_assignment("06_gae", tmp_path / folder, roster=ROSTER, secret=SECRET)
    for path in (tmp_path / "a").rglob("*.ipynb"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


@pytest.mark.parametrize("id", ["", "a/b", "..", ".hidden", "a b", "x" * 65, "ä", "a\n"])
def test_an_id_that_cannot_name_a_folder_is_refused(id, tmp_path):
    with pytest.raises(ValueError, match="cannot be a student's id"):
        build_assignment("06_gae", tmp_path, roster=[id], secret=SECRET)


def test_a_student_who_is_listed_twice_or_nobody_is_refused(tmp_path):
    with pytest.raises(ValueError, match="twice"):
        build_assignment("06_gae", tmp_path, roster=["ada", "Ada"], secret=SECRET)
    with pytest.raises(ValueError, match="empty"):
        build_assignment("06_gae", tmp_path, roster=[], secret=SECRET)


@pytest.mark.parametrize("stem", ["99_nothing", "../04_clip", "04", "clip"])
def test_an_unknown_exercise_is_refused_and_the_known_ones_are_listed(stem, tmp_path):
    with pytest.raises(ValueError, match="04_clip"):
        build_assignment(stem, tmp_path)


def test_a_section_with_two_answers_is_refused(chain, tmp_path):
    source = chain / "exercises/source/04_clip.py"
    source.write_text(source.read_text().replace("# ## 2. The loss", "# Still the first."))
    with pytest.raises(ValueError, match="2 answer cells"):
        build_assignment("04_clip", tmp_path, root=chain)


# --- the reference -------------------------------------------------------------------------


def test_what_may_give_points_is_listed_and_adds_up(common):
    manifest, parts = read_reference(common)
    assert (manifest.assignment, manifest.student, manifest.seed) == ("04_clip", "", 48151)
    assert manifest.points == pytest.approx(60)
    for question in manifest.questions:
        assert question.points == pytest.approx(10)
        ids = {cell["id"] for cell in parts[question.part]["cells"]}
        assert {question.answer, question.tell, *(check.cell for check in question.checks)} <= ids
    shown = [c.points for q in manifest.questions for c in q.checks if not c.hidden and q.id != ""]
    assert shown.count(2.0) == 5


def test_only_check_cells_count_as_run_and_hidden_ones_are_last(common):
    manifest, parts = read_reference(common)
    checks = {check.cell: check for question in manifest.questions for check in question.checks}
    tells = {question.tell for question in manifest.questions}
    kinds = []
    for cell in parts[MAIN]["cells"]:
        if cell["id"] in checks:
            assert cell["execution_count"]
            assert cell["outputs"][0]["text"]
            kinds.append(1 + checks[cell["id"]].hidden)
        elif cell["id"] in tells:
            assert cell["execution_count"]
            assert cell["metadata"]["tags"] == ["nbval-ignore-output"]
            kinds.append(1)
        else:
            assert cell["execution_count"] is None
            assert not cell["outputs"]
            kinds.append(0)
    assert kinds == sorted(kinds)
    assert kinds.count(2) == len([check for check in checks.values() if check.hidden])


def test_a_check_cell_holds_nothing_of_what_it_prints(common):
    manifest, parts = read_reference(common)
    cells = {cell["id"]: cell for cell in parts[MAIN]["cells"]}
    for question in manifest.questions:
        for check in question.checks:
            comment, line = cells[check.cell]["source"].splitlines()
            assert comment.startswith("# ")
            assert re.fullmatch(r'_ask(_hashed)?\("[\w.]+", globals\(\)\.get\("\w+"\).*\)', line)
            assert not re.search(r"\d\.\d", line)


def test_solutions_pass_in_one_notebook(common, personal):
    for folder, student in ((common, ""), *((personal, student) for student in ROSTER)):
        _, parts = read_reference(folder, student)
        assert [rehearse(part) for part in parts.values()] == [[]]


def test_another_answer_prints_something_else(common):
    _, parts = read_reference(common)
    for cell in parts[MAIN]["cells"]:
        if cell["source"].startswith("# answer: clip.clip_fractions"):
            cell["source"] = cell["source"].replace("1 - clip_epsilon", "2 - clip_epsilon")
    wrong = rehearse(parts[MAIN])
    assert wrong
    assert all("clip_fractions" in id for id in wrong)


@pytest.mark.parametrize("stem", ["04_clip", "06_gae"])
def test_a_blank_gets_no_point(stem, common, personal):
    folder, student = {"04_clip": (common, ""), "06_gae": (personal, "ada")}[stem]
    manifest, parts = read_reference(folder, student)
    blanks = {task.answer.id: task.blank for task in read_assignment(stem).tasks}
    names: dict = {"__name__": "__main__"}
    checks = {check.cell for question in manifest.questions for check in question.checks}
    for cell in parts[MAIN]["cells"]:
        own = cell["metadata"].get("ppo_lessons", {}).get("answer", "")
        source = blanks.get(cell["id"], "own = None" if "own_" in own else cell["source"])
        printed = execute(source, names, "blank")
        if cell["id"] in checks:
            assert printed != cell["outputs"][0]["text"], cell["id"]


def test_stages_that_the_given_bug_passes_give_no_points(personal):
    manifest, _ = read_reference(personal, "ada")
    by_id = {question.id: question for question in manifest.questions}
    full = {check.title for check in by_id["gae.compute_gae"].checks}
    assert {check.title for check in by_id["gae.mended_gae"].checks} <= full
    assert by_id["gae.mended_gae"].points == pytest.approx(10)


def test_the_same_seed_gives_the_same_reference_and_another_one_does_not(common, tmp_path):
    again = bake("04_clip", tmp_path / "again", 48151)
    other = bake("04_clip", tmp_path / "other", 48152)
    hashes = [reference_sha256(read_reference(each)[0]) for each in (common, again, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_each_student_is_held_to_their_own_numbers(personal):
    about = read_class(personal)
    assert about.personal
    assert sorted(about.students) == sorted(ROSTER)
    printed = set()
    for student in ROSTER:
        manifest, parts = read_reference(personal, student)
        assert manifest.student == student
        assert [question.id for question in manifest.questions][-2:] == [
            "gae.own_function",
            "gae.own_numbers",
        ]
        assert [question.tell for question in manifest.questions][-2:] == [None, None]
        own = [c for c in parts[MAIN]["cells"] if c["id"].startswith("hidden-own_function")]
        assert len(own) == 4
        printed.add("".join(cell["outputs"][0]["text"] for cell in own))
    assert len(printed) == len(ROSTER)


def test_common_questions_are_the_same_for_all(personal):
    texts = [
        [c for c in read_reference(personal, s)[1][MAIN]["cells"] if "own_" not in c["source"]]
        for s in ROSTER
    ]
    assert texts[0] == texts[1] == texts[2]


def test_personal_answers_are_those_of_the_handed_out_questions(personal, tmp_path):
    paths = build_assignment("06_gae", tmp_path, roster=ROSTER, secret=SECRET)
    for path, student in zip(paths, ROSTER, strict=True):
        text = "\n".join(sources(path))
        _, parts = read_reference(personal, student)
        answer = next(
            c["source"] for c in parts[MAIN]["cells"] if "def own_function" in c["source"]
        )
        constants = set(re.findall(r"\d\.\d{2,3}", answer))
        assert len(constants) >= 3
        assert all(f"**{constant}**" in text for constant in constants)


# --- a question that builds on another -----------------------------------------------------


def test_a_question_that_builds_on_another_is_checked_apart(chain, tmp_path):
    manifest, parts = read_reference(bake("04_clip", tmp_path / "reference", 3, root=chain))
    loss = manifest.questions[1]
    assert (loss.part, loss.builds_on) == ("clipped_surrogate_loss", ("clip.clipped_surrogate",))
    assert set(parts) == {MAIN, "clipped_surrogate_loss"}
    own = {cell["id"]: cell["source"] for cell in parts["clipped_surrogate_loss"]["cells"]}
    assert "torch.minimum" in own["given-clipped_surrogate"]
    assert not any("def clipped_surrogate_loss" in c["source"] for c in parts[MAIN]["cells"])
    # No check of the first question where its solution is given.
    assert not any(id == "check-clipped_surrogate" for id in own)
    assert rehearse(parts["clipped_surrogate_loss"]) == []


def test_two_answers_that_share_a_helpers_name_are_found(chain, tmp_path):
    source = chain / "exercises/source/04_clip.py"
    text = source.read_text().replace("# builds on: clip.clipped_surrogate\n", "")
    text = text.replace(
        "    advantages = advantages.detach()\n", "    advantages = helper(advantages)\n"
    )
    text = text.replace("import torch\n", "import torch\ndef helper(x): return x.detach()\n")
    text = text.replace(
        "-clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)",
        "-helper(ratios, advantages, clip_epsilon)",
    ).replace(
        "\n\ndef clipped_surrogate_loss",
        "\nimport torch\ndef helper(r, a, e):\n"
        "    a = a.detach()\n    return torch.minimum(r * a, r.clamp(1 - e, 1 + e) * a)\n"
        "\n\ndef clipped_surrogate_loss",
    )
    source.write_text(text)
    with pytest.raises(ValueError, match="helper's name"):
        bake("04_clip", tmp_path / "reference", 3, root=chain)


# --- rules for check cells -----------------------------------------------------------------


def problems(source: str, *, printed: str = "1 (2,) 0.125\n", title: str = "edges, other inputs"):
    task = read_assignment("04_clip").tasks[0]
    check = CheckCell(cell="hidden-1", title=title, points=2.0, hidden=True)
    return lint(Asking(check=check, source=source, printed=printed), task)


GOOD = '# edges\n_ask("clip.clipped_surrogate", globals().get("clipped_surrogate"), seed=48151)'


def test_a_good_check_cell_breaks_no_rule():
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (GOOD + "\nassert True", "2 lines"),
        ("assert clipped_surrogate(1, 2) == 3  # seed=1", "something else than to ask"),
        ('_ask("clip.x", globals().get("x"), seed=1) == 0.125', "something else than to ask"),
        ('print("0.125", "seed=")', "calls print"),
        ('_ask("clip.x", clipped_surrogate, seed=1)', "more than constants"),
        ('_ask("clip.x", globals().get("x"), seed=1, stage=secret())', "more than constants"),
        (GOOD.replace("edges", "gives 0.125"), "holds what it is to print"),
        (GOOD.replace(", seed=48151", ""), "has no seed"),
        (GOOD + "(", "is no Python"),
    ],
)
def test_a_check_cell_that_breaks_a_rule_is_found(source, words):
    assert any(words in problem for problem in problems(source))


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("ratio 1.5, advantage 2", "holds a number"),
        ("no axis, other inputs", "names the case"),
        ("a bad action far out", "names the case"),
    ],
)
def test_a_title_that_gives_an_input_away_is_found(title, words):
    assert any(words in problem for problem in problems(GOOD, title=title))


def test_a_cell_that_prints_nothing_is_found():
    assert any("prints nothing" in problem for problem in problems(GOOD, printed="\n"))


def test_points_are_shared_in_hundredths_and_add_up():
    for count in range(1, 12):
        assert sum(shared(8.0, count)) == pytest.approx(8.0, abs=1e-12)
        assert max(shared(8.0, count)) - min(shared(8.0, count)) < 0.0101
    assert shared(8.0, 0) == []


def test_a_question_whose_blank_is_right_cannot_be_baked(chain, tmp_path):
    source = chain / "exercises/source/04_clip.py"
    text = source.read_text()
    begin, end = text.index("    ### BEGIN"), text.index("    ### END")
    body = text[begin:end].partition("\n")[2]
    source.write_text(text.replace(text[begin:end], body + "    ### BEGIN SOLUTION stub: pass\n"))
    with pytest.raises(ValueError, match="the blank passes"):
        bake("04_clip", tmp_path / "reference", 3, root=chain)


def test_a_solution_that_fails_cannot_be_baked(chain, tmp_path):
    source = chain / "exercises/source/04_clip.py"
    source.write_text(source.read_text().replace("torch.minimum", "torch.minus"))
    with pytest.raises(ValueError, match="a right answer fails"):
        bake("04_clip", tmp_path / "reference", 3, root=chain)


# --- where it lies -------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["reference", "exercises/reference", "."])
def test_a_reference_may_not_lie_in_the_project(inside):
    with pytest.raises(ValueError, match="outside"):
        check_place(ROOT / inside, "04_clip")
    with pytest.raises(ValueError, match="outside"):
        check_place(ROOT.parent, "04_clip")


def test_a_link_into_the_project_is_seen_through(tmp_path):
    (tmp_path / "link").symlink_to(ROOT)
    with pytest.raises(ValueError, match="outside"):
        check_place(tmp_path / "link" / "reference", "04_clip")


def test_only_a_reference_of_the_same_assignment_is_replaced(common, tmp_path):
    copy = Path(shutil.copytree(common, tmp_path / "reference"))
    assert check_place(copy, "04_clip") == copy
    with pytest.raises(ValueError, match="04_clip"):
        check_place(copy, "06_gae")
    (tmp_path / "homework").mkdir()
    (tmp_path / "homework/thesis.txt").touch()
    with pytest.raises(ValueError, match="no reference"):
        check_place(tmp_path / "homework", "04_clip")
    with pytest.raises(ValueError, match="is a file"):
        check_place(tmp_path / "homework/thesis.txt", "04_clip")


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX file modes")
def test_only_its_owner_reads_a_reference(personal):
    for path in (personal, *personal.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_nothing_half_baked_stays_behind(chain, tmp_path):
    source = chain / "exercises/source/04_clip.py"
    source.write_text(source.read_text().replace("torch.minimum", "torch.minus"))
    with pytest.raises(ValueError, match="fails"):
        bake("04_clip", tmp_path / "place/reference", 3, root=chain)
    assert list(tmp_path.glob("place/*")) == []


# --- reading it back -----------------------------------------------------------------------


def test_a_manifest_survives_being_written(personal):
    manifest, _ = read_reference(personal, "ada")
    assert manifest_from_json(json.loads(json.dumps(manifest_to_json(manifest)))) == manifest
    assert {"python", "torch", "numpy", "nbval", "pytest"} <= set(manifest.environment)


def test_a_changed_reference_is_refused(common, tmp_path):
    copy = Path(shutil.copytree(common, tmp_path / "reference"))
    path = copy / "common/main.ipynb"
    path.write_text(path.read_text().replace("1.200", "1.201", 1))
    with pytest.raises(ValueError, match="not what was baked"):
        read_reference(copy)


def test_a_missing_or_broken_file_is_refused(common, tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_reference(tmp_path / "nowhere")
    copy = Path(shutil.copytree(common, tmp_path / "reference"))
    (copy / "common/main.ipynb").unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        read_reference(copy)
    (copy / "common/manifest.json").write_text("[]")
    with pytest.raises(ValueError, match="cannot be read"):
        read_reference(copy)
    (copy / "common/manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="no manifest"):
        read_reference(copy)


def test_a_stranger_has_no_personal_reference(personal):
    with pytest.raises(ValueError, match="no student 'mallory'"):
        read_reference(personal, "mallory")
    with pytest.raises(ValueError, match="no student"):
        read_reference(personal)


def test_the_reference_of_another_student_is_refused(personal, tmp_path):
    copy = Path(shutil.copytree(personal, tmp_path / "reference"))
    shutil.rmtree(copy / "students/ada")
    shutil.copytree(copy / "students/max.m", copy / "students/ada")
    with pytest.raises(ValueError, match="another reference's"):
        read_reference(copy, "ada")


@pytest.mark.full
@pytest.mark.parametrize("stem", STEMS)
def test_every_lesson_bakes_for_a_class(stem, tmp_path):
    roster = [f"s{number}" for number in range(8)]
    place = bake(stem, tmp_path / "reference", 7, roster=roster, secret=SECRET)
    for student in roster:
        manifest, parts = read_reference(place, student)
        assert manifest.points == pytest.approx(10 * len(manifest.questions))
        assert rehearse(parts[MAIN]) == []


@pytest.mark.parametrize("stem", STEMS)
def test_each_solution_stands_alone(stem):
    assignment = read_assignment(stem)
    given = {task.exercise.id: task for task in assignment.tasks}
    task = assignment.tasks[-1]
    baked = bake_task(task, given=given, assignment=stem, seed=1)
    parts = compose_parts([baked], given, assignment=stem)
    assert rehearse(parts[MAIN]) == []
    assert compose_blank(assignment)["metadata"]["ppo_lessons"]["student"] == ""
