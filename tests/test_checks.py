"""The checks: right answers pass, wrong ones are refused by name, and nothing outlives a call."""

import ast
import copy
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from answers import LESSONS, right_answers, wrong_answers
from answers.attacks import ATTACKS, DELETES_GLOBALS, ENDLESS, HostileObject

from ppo_lessons import progress
from ppo_lessons.checks import (
    CheckResult,
    check,
    compare,
    desk,
    exercises,
    find_exercise,
    hint,
    reveal,
    run,
    words,
)
from ppo_lessons.checks import judge as judging
from ppo_lessons.checks.answers import answer_path, load_answer
from ppo_lessons.checks.exercises import FunctionExercise, Outcome, SignsExercise
from ppo_lessons.checks.guard import OutOfTime, limited
from ppo_lessons.checks.judge import judge
from ppo_lessons.training_loop import Parts
from tools import build_checks

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = list(desk.all_exercises().values())
FUNCTIONS = [each for each in EXERCISES if isinstance(each, FunctionExercise)]


def answers(kind):
    """Every answer of a kind, with the exercise that it answers."""
    found = [
        (exercise, name, answer)
        for exercise in EXERCISES
        for name, answer in kind(exercise.lesson)[exercise.name].items()
    ]
    ids = [f"{exercise.name}-{name}" for exercise, name, _ in found]
    return pytest.mark.parametrize(("exercise", "name", "answer"), found, ids=ids)


each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)
each_function = pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda each: each.name)


@pytest.fixture(autouse=True)
def fresh_kernel(monkeypatch):
    """No store, nothing tried, no hints given."""
    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    monkeypatch.setattr(desk, "_tried", set())
    monkeypatch.setattr(desk, "_hints_given", {})
    monkeypatch.setattr(progress, "_session", {section: {} for section in progress.SECTIONS})


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path))
    return tmp_path


def right(name: str):
    """One right answer whose source can be read."""
    return list(right_answers("clip")[name].values())[1]


# --- right and wrong answers ---------------------------------------------------------------


@answers(right_answers)
def test_a_right_answer_in_any_style_passes(exercise, name, answer):
    result = judge(exercise, answer)
    assert result.passed, result


@answers(wrong_answers)
def test_a_named_mistake_is_refused_by_its_name(exercise, name, answer):
    result = judge(exercise, answer)
    assert not result.passed
    assert result.mistake == name.partition("#")[0], result


@each_exercise
def test_an_exercise_knows_eight_mistakes_and_three_styles(exercise):
    assert len(wrong_answers(exercise.lesson)[exercise.name]) >= 8
    assert len(right_answers(exercise.lesson)[exercise.name]) >= 3


@each_exercise
def test_each_mistake_is_explained_in_few_words(exercise):
    for name, sentence in exercise.mistakes.items():
        assert sentence.endswith((".", "?")), name
        assert 30 < len(sentence) < 300, name


def test_a_failure_shows_the_smallest_input_expected_and_got():
    result = check.clipped_surrogate(wrong_answers("clip")["clipped_surrogate"]["no_clip"])
    assert repr(result) == (
        "✘ clip.clipped_surrogate: not yet (stage: quadrants)\n"
        "  case      a good action that moved far enough\n"
        "  input     ratios [1.5], advantages [1], clip_epsilon 0.2\n"
        "  expected  1.2\n"
        "  got       1.5\n"
        "  mistake   no_clip. Nothing is clipped: ratio times advantage pays for every further "
        "step."
    )
    assert result.inputs["ratios"].tolist() == [1.5]


def test_of_many_samples_the_one_that_differs_is_shown():
    def wrong_when_large(ratios, advantages, *, clip_epsilon):
        terms = right("clipped_surrogate")(ratios, advantages, clip_epsilon=clip_epsilon)
        return torch.where(advantages.detach().abs() > 2.5, 0, terms)

    result = check.clipped_surrogate(wrong_when_large)
    (shown,) = (words for head, words in result.rows if head == "input")
    assert shown.count(",") == 2, "one ratio, one advantage, one option"
    assert result.mistake is None


def test_a_wrong_sign_is_shown_without_the_right_one():
    result = check.gradient_signs(dict(zip("abcdef", (1, 0, 0, -1, 0, -1), strict=True)))
    assert "case c" in repr(result)
    assert "got       0; another sign is expected" in repr(result)
    assert "5 of 6" in repr(result)


# --- where the numbers come from -----------------------------------------------------------


def slow_surrogate(ratio, advantage, low, high, bound=math.inf):
    """Objective and slope of one sample, branch by branch."""
    if advantage > 0:
        return (ratio * advantage, advantage) if ratio <= high else (high * advantage, 0.0)
    if ratio < low:
        return low * advantage, 0.0
    if ratio > bound:
        return bound * advantage, 0.0
    return ratio * advantage, advantage


def expected_by_hand(exercise, case):
    """Values and the gradient of their sum, computed in plain Python."""
    rows = [words.flat(row) for row in case.inputs.values()]
    options = case.options
    if exercise.name == "asymmetric_dual_clip":
        edges = 1 - options["epsilon_low"], 1 + options["epsilon_high"], options["bound"]
    else:
        edges = 1 - options["clip_epsilon"], 1 + options["clip_epsilon"]
    if len(rows) == 2:
        pairs = [slow_surrogate(*row, *edges) for row in zip(*rows, strict=True)]
        return [value for value, _ in pairs], [slope for _, slope in pairs]
    ratios = [math.exp(new - old) for new, old, _ in zip(*rows, strict=True)]
    count, advantages = len(ratios), rows[2]
    if exercise.gives == "two numbers":
        outside = [not edges[0] <= ratio <= edges[1] for ratio in ratios]
        rows = zip(outside, ratios, advantages, strict=True)
        flat = [out and (ratio - 1) * advantage > 0 for out, ratio, advantage in rows]
        return [sum(outside) / count, sum(flat) / count], []
    pairs = [slow_surrogate(*row, *edges) for row in zip(ratios, advantages, strict=True)]
    slopes = [-slope * ratio / count for ratio, (_, slope) in zip(ratios, pairs, strict=True)]
    return [-sum(value for value, _ in pairs) / count], slopes


@each_function
def test_expected_values_agree_with_a_slow_definition(exercise):
    entries = exercises.data_of(exercise.lesson)[exercise.numbers_of or exercise.id]["cases"]
    for case, entry in zip(exercise.cases, entries, strict=True):
        values, slopes = expected_by_hand(exercise, case)
        assert entry["expected"]["values"] == pytest.approx(values, rel=2e-5, abs=2e-5), case.name
        if case.gradients:
            found = entry["expected"]["gradients"][exercise.learns[0]]
            assert found == pytest.approx(slopes, rel=2e-5, abs=2e-5), case.name


@each_function
def test_no_gradient_reaches_a_constant(exercise):
    for entry in exercises.data_of(exercise.lesson)[exercise.numbers_of or exercise.id]["cases"]:
        for name, row in entry["expected"].get("gradients", {}).items():
            assert name in exercise.learns or row is None


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_data_is_current(lesson):
    assert build_checks.difference(lesson) == ""


def test_data_that_is_not_current_is_found(tmp_path, monkeypatch):
    stored = copy.deepcopy(exercises.data_of("clip"))
    stored["clip.clipped_surrogate"]["cases"][3]["expected"]["values"][0] += 0.01
    monkeypatch.setattr(exercises, "DATA", tmp_path)
    assert "does not exist" in build_checks.difference("clip")
    build_checks.path_of("clip").write_text(json.dumps(stored), encoding="utf-8")
    assert "cases/3/expected/values/0" in build_checks.difference("clip")
    build_checks.path_of("clip").write_text("{", encoding="utf-8")
    assert "no JSON" in build_checks.difference("clip")


def test_the_builder_refuses_a_mistake_that_passes():
    exercise, wrong = find_exercise("clipped_surrogate"), wrong_answers("clip")["clipped_surrogate"]
    passing = {**wrong, "no_clip": right("clipped_surrogate")}
    with pytest.raises(build_checks.DataError, match="no case tells no_clip from a right answer"):
        build_checks.exercise_data(exercise, right("clipped_surrogate"), passing)


def test_the_builder_refuses_two_mistakes_that_nothing_tells_apart():
    exercise, wrong = find_exercise("clipped_surrogate"), wrong_answers("clip")["clipped_surrogate"]
    doubled = {**wrong, "no_clip": wrong["one_sided_clip"]}
    with pytest.raises(build_checks.DataError, match="no case tells"):
        build_checks.exercise_data(exercise, right("clipped_surrogate"), doubled)


def test_the_builder_refuses_a_mistake_without_words():
    exercise, wrong = find_exercise("clipped_surrogate"), wrong_answers("clip")["clipped_surrogate"]
    with pytest.raises(build_checks.DataError, match="words"):
        build_checks.exercise_data(exercise, right("clipped_surrogate"), {**wrong, "other": None})


def test_the_checks_import_no_right_answer():
    for path in (ROOT / "ppo_lessons/checks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("ppo_lessons."):
                    assert name.split(".")[1] in {"checks", "progress", "lessons"}, path.name


def test_the_data_holds_no_sign():
    text = json.dumps(exercises.data_of("clip")["clip.gradient_signs"])
    assert not any(f": {sign}" in text for sign in (-1, 0, 1))


# --- the notebooks -------------------------------------------------------------------------


def cells_of(folder):
    return run.answer_cells(ROOT / folder / "04_clip.ipynb")


def verdicts(cells):
    names: dict = {}
    found = {}
    for id, source in cells.items():
        exec(source, names)
        found[id] = judge(find_exercise(id), names[find_exercise(id).name])
    return found


def test_every_exercise_has_an_answer_cell_in_blank_and_solution():
    ids = {each.id for each in EXERCISES if each.lesson == "clip"}
    assert set(cells_of("exercises")) == set(cells_of("solutions")) == ids


def test_the_solutions_pass():
    assert all(result.passed for result in verdicts(cells_of("solutions")).values())


def test_a_blank_is_not_written_yet_and_the_bug_of_the_lesson_is_named():
    for id, result in verdicts(cells_of("exercises")).items():
        if id == "clip.mended_loss":
            assert result.mistake == "maximum_for_bad_actions"
        else:
            assert result.mistake == "not_written"
            assert repr(result).startswith(f"· {id}: not written yet\n")


def test_an_answer_cell_holds_all_that_it_needs():
    for id, source in cells_of("solutions").items():
        names: dict = {}
        exec(source, names)
        assert judge(find_exercise(id), names[find_exercise(id).name]).passed


def test_the_blank_shows_no_line_of_the_solution():
    for id, source in cells_of("solutions").items():
        given = cells_of("exercises")[id]
        written = [line.strip() for line in source.splitlines() if line not in given.splitlines()]
        assert written
        assert not [line for line in written if line in given], id


def test_difficulty_importance_and_minutes_stand_on_each_exercise():
    notebook = nbformat.read(ROOT / "exercises/04_clip.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert text.count("*Difficulty ") == len(EXERCISES)


# --- nothing comes through, and state stays ------------------------------------------------


def state():
    return (
        torch.get_rng_state().tolist(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.is_anomaly_enabled(),
        str(torch.get_default_device()),
        str(np.random.get_state()),  # noqa: NPY002  old answers use it
        random.getstate(),
        signal.getsignal(signal.SIGALRM),
        signal.getsignal(signal.SIGINT),
        list(warnings.filters),
        sys.stdout,
        sys.stderr,
        sys.getrecursionlimit(),
        Path.cwd(),
        dict(os.environ),
        torch.minimum,
        torch.Tensor.clamp,
        len,
        threading.active_count(),
    )


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(judging, "SECONDS", 0.4)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_wrong_answer_never_raises_and_leaves_state_as_it_was(attack, short, capsys):
    answer, mistake = ATTACKS[attack]
    before = state()
    result = check.clipped_surrogate(answer)
    assert state() == before
    assert isinstance(result, CheckResult)
    assert not result.passed
    assert mistake in (result.mistake, None), result
    assert "Traceback" not in repr(result)
    assert capsys.readouterr() == ("", "")


def test_globals_that_an_answer_deletes_come_back():
    check.clipped_surrogate(DELETES_GLOBALS)
    assert DELETES_GLOBALS.__globals__["torch"] is torch
    assert DELETES_GLOBALS.__globals__["__builtins__"]


def test_an_error_names_the_line_of_the_answer():
    def misspelt(ratios, advantages, *, clip_epsilon):
        return ratios.clampp(1, 2)

    words = repr(check.clipped_surrogate(misspelt))
    assert "AttributeError: 'Tensor' object has no attribute 'clampp'." in words
    assert "The line: return ratios.clampp(1, 2)" in words


def test_numbers_without_a_gradient_are_named():
    def cut_off(ratios, advantages, *, clip_epsilon):
        term = right("clipped_surrogate")(ratios, advantages, clip_epsilon=clip_epsilon)
        return torch.tensor(term.tolist())

    result = check.clipped_surrogate(cut_off)
    assert (result.stage, result.mistake) == ("gradients", "gradient_lost")


def test_detaching_the_callers_tensor_is_a_change_of_the_inputs():
    def detaches_in_place(ratios, advantages, *, clip_epsilon):
        advantages.detach_()
        return right("clipped_surrogate")(ratios, advantages, clip_epsilon=clip_epsilon)

    assert check.clipped_surrogate(detaches_in_place).mistake == "changes_its_inputs"


def test_gradients_into_several_constants_are_named_together():
    def nothing_detached(log_probs, log_probs_old, advantages, *, clip_epsilon):
        ratios = (log_probs - log_probs_old).exp()
        clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
        return -torch.minimum(ratios * advantages, clipped * advantages).mean()

    result = check.clipped_surrogate_loss(nothing_detached)
    assert result.mistake == "gradient_into_constants"
    assert "flows into log_probs_old and advantages" in repr(result)


def test_a_constant_factor_is_named_with_its_size():
    def halved(ratios, advantages, *, clip_epsilon):
        return right("clipped_surrogate")(ratios, advantages, clip_epsilon=clip_epsilon) / 2

    assert "constant_factor. Every number is 0.5 times the right one." in repr(
        check.clipped_surrogate(halved)
    )


def other_ratios(make):
    """A loss that is right but for its ratios."""
    surrogate = right("clipped_surrogate")

    def loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
        ratios = make(log_probs.exp(), log_probs_old.detach().exp())
        return -surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()

    return loss


def other_advantages(make):
    """A loss that is right but for its advantages."""

    def loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
        return right("clipped_surrogate_loss")(
            log_probs, log_probs_old, make(advantages.detach()), clip_epsilon=clip_epsilon
        )

    return loss


def normalise(advantages):
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (other_ratios(lambda new, old: new / (old + 1e-8)), "probabilities_divided"),
        (other_ratios(lambda new, old: new / (old + 1e-6)), "probabilities_divided"),
        (other_ratios(lambda new, old: new / old.clamp(min=1e-8)), "probabilities_divided"),
        (other_ratios(lambda new, old: torch.nan_to_num(new / old)), "probabilities_divided"),
        (other_ratios(lambda new, old: (new + 1e-8) / (old + 1e-8)), "probabilities_divided"),
        (other_advantages(normalise), "advantages_normalised"),
        (
            other_advantages(lambda each: normalise(each) if each.numel() > 1 else each),
            "advantages_normalised",
        ),
        (
            other_advantages(lambda each: (each - each.mean()) / each.std()),
            "advantages_normalised",
        ),
    ],
)
def test_another_spelling_of_a_mistake_has_its_name(answer, name):
    result = check.clipped_surrogate_loss(answer)
    assert (result.passed, result.mistake) == (False, name), result


def test_a_good_action_does_not_feel_a_bound_below_the_upper_edge():
    capped = wrong_answers("clip")["asymmetric_dual_clip"]["ratio_capped_at_the_bound"]
    text = repr(check.asymmetric_dual_clip(capped))
    assert "ratios [1.25], advantages [1], epsilon_low 0.2, epsilon_high 0.3, bound 1.1" in text
    assert "expected  1.25\n  got       1.1\n" in text


def test_without_a_name_the_number_of_right_cases_is_shown():
    def wrong_far_out(ratios, advantages, *, clip_epsilon):
        terms = right("clipped_surrogate")(ratios, advantages, clip_epsilon=clip_epsilon)
        return torch.where(ratios > 9, 2 * terms + 1, terms)

    result = check.clipped_surrogate(wrong_far_out)
    assert result.mistake is None
    count = len(find_exercise("clipped_surrogate").cases)
    assert result.rows[-1] == ("right", f"{count - 1} of {count} cases")


def test_a_known_mistake_with_the_sign_turned_is_named_with_both():
    def summed_objective(log_probs, log_probs_old, advantages, *, clip_epsilon):
        return -wrong_answers("clip")["clipped_surrogate_loss"]["sum_over_the_batch"](
            log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon
        )

    result = check.clipped_surrogate_loss(summed_objective)
    assert result.mistake == "sum_over_the_batch"
    assert result.rows[-1] == ("also", "the sign is turned.")


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda each: each.name)
def test_a_right_answer_that_fails_in_one_case_gets_no_name_of_a_usual_mistake(exercise):
    right_one = next(iter(right_answers("clip")[exercise.name].values()))
    calls = []

    def fails_once(*tensors, **options):
        calls.append(1)
        if len(calls) == 7:
            raise ValueError("once")
        return right_one(*tensors, **options)

    assert judge(exercise, fails_once).mistake == "raises"


def test_an_answer_is_checked_with_gradients_whatever_the_notebook_set():
    with torch.no_grad():
        assert check.clipped_surrogate(right("clipped_surrogate")).passed
    with torch.inference_mode():
        assert check.clipped_surrogate(right("clipped_surrogate")).passed


def test_the_time_limit_holds_on_another_thread(monkeypatch):
    monkeypatch.setattr(judging, "SECONDS", 0.3)
    found = []
    thread = threading.Thread(target=lambda: found.append(check.clipped_surrogate(ENDLESS)))
    thread.start()
    thread.join(20)
    assert [result.mistake for result in found] == ["too_slow"]


def test_another_thread_judges_like_the_first():
    results = []
    wrong = wrong_answers("clip")["clipped_surrogate"]["one_sided_clip"]
    for answer in (wrong, right("clipped_surrogate")):
        thread = threading.Thread(target=lambda a=answer: results.append(judge(EXERCISES[0], a)))
        thread.start()
        thread.join()
    assert [result.mistake for result in results] == ["one_sided_clip", None]
    assert results[1].passed


def test_the_timer_of_somebody_else_goes_on():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    earlier = signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        assert check.clipped_surrogate(right("clipped_surrogate")).passed
        left = signal.getitimer(signal.ITIMER_REAL)[0]
        assert 0 < left <= 0.5
        deadline = time.monotonic() + 5
        while not rung and time.monotonic() < deadline:
            time.sleep(0.01)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, *earlier)
        signal.signal(signal.SIGALRM, before)


def test_stop_pressed_by_the_reader_stops_the_check():
    def waits(ratios, advantages, *, clip_epsilon):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        check.clipped_surrogate(waits)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_limit_ends_what_it_surrounds_and_nothing_else():
    with pytest.raises(OutOfTime), limited(0.05):
        time.sleep(5)
    with limited(5.0):
        pass
    time.sleep(0.1)  # no alarm is left


@pytest.mark.parametrize(
    "given",
    [
        "abc",
        7,
        [1, 0],
        {"a": 1},
        dict.fromkeys("abcdef", "?"),
        dict.fromkeys("abcdef", True),
        dict.fromkeys("abcdef", float("nan")),
        {**dict.fromkeys("abcdef", 1), "f": None},
        [[1]] * 6,
        object(),
        iter(()),
    ],
    ids=lambda given: type(given).__name__,
)
def test_signs_in_a_form_that_cannot_be_read_are_refused_in_words(given):
    result = check.gradient_signs(given)
    assert (result.passed, result.mistake) == (False, "wrong_type")
    assert "expected" in repr(result)


@pytest.mark.parametrize("form", [str, "{:+d}".format, lambda sign: str(sign).encode()])
def test_right_signs_as_text_are_refused_because_numbers_are_expected(form):
    signs = right_answers("clip")["gradient_signs"]["numbers"]
    for given in (
        {key: form(sign) for key, sign in signs.items()},
        list(map(form, signs.values())),
    ):
        result = check.gradient_signs(given)
        assert (result.passed, result.mistake) == (False, "wrong_type")
        assert "expected the number 1, 0 or -1, without quotation marks" in repr(result)


def test_signs_may_come_as_a_list_from_a_to_f():
    signs = list(right_answers("clip")["gradient_signs"]["numbers"].values())
    assert check.gradient_signs(signs).passed
    assert not check.gradient_signs(signs[::-1]).passed
    short = check.gradient_signs(signs[:5])
    assert (short.passed, short.mistake) == (False, "wrong_type")
    assert "a to f, or a list in this order; got a list of 5." in repr(short)


def test_hostile_signs_are_refused_in_words():
    assert check.gradient_signs(HostileObject()).mistake == "wrong_type"
    hostile = {**dict.fromkeys("abcdef", 1), "c": HostileObject()}
    assert check.gradient_signs(hostile).mistake == "wrong_type"


@pytest.mark.parametrize("given", [None, dict.fromkeys("abcdef"), dict.fromkeys("abcdef", "")])
def test_signs_that_are_missing_are_not_written_yet(given):
    result = check.gradient_signs(given)
    assert result.mistake in ("not_written", "wrong_type")
    assert not result.passed


# --- the text ------------------------------------------------------------------------------


def test_every_general_mistake_is_met_by_a_test():
    met = {mistake for _, mistake in ATTACKS.values()}
    assert set(words.GENERAL) <= met | {
        "gradient_lost",
        "gradient_into_constants",
        "constant_factor",
    }


def test_the_text_is_the_same_in_every_process():
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/tests']\n"
        "from answers import wrong_answers\n"
        "from ppo_lessons import check\n"
        "for name, answer in wrong_answers('clip')['mended_loss'].items():\n"
        "    print(check.mended_loss(answer))\n"
        "print(check.clipped_surrogate(object()), check.clipped_surrogate(lambda: 1))\n"
    )
    command = [sys.executable, "-c", code, str(ROOT)]
    texts = {
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "ATEN_CPU_CAPABILITY": capability},
        ).stdout
        for seed, capability in (("1", "default"), ("2", ""))
    }
    assert len(texts) == 1
    assert "0x" not in texts.pop()


def test_the_html_twin_says_the_same_and_is_escaped():
    def tagged(ratios, advantages, *, clip_epsilon):
        raise ValueError("<b>bold</b>")

    result = check.clipped_surrogate(tagged)
    html = result._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "<b>" not in html
    for head, _ in result.rows:
        assert head in html
    assert check.clipped_surrogate(right("clipped_surrogate"))._repr_html_().count("passed") == 1


# --- what a notebook calls -----------------------------------------------------------------


def test_exercises_are_found_by_attribute_and_by_id():
    assert check("clip.clip_fractions", right("clip_fractions")).passed
    assert "clipped_surrogate" in dir(check)
    assert "check.mended_loss(your answer)" in repr(check)
    with pytest.raises(AttributeError, match="did you mean 'clipped_surrogate'"):
        check.cliped_surrogate  # noqa: B018
    with pytest.raises(ValueError, match="no exercise 'gae'"):
        check("gae", None)


def test_the_package_offers_check_hint_and_reveal():
    import ppo_lessons

    assert ppo_lessons.check is check
    assert ppo_lessons.hint is hint
    assert ppo_lessons.reveal is reveal


@each_exercise
def test_hints_come_one_at_a_time_and_the_last_stays(exercise):
    texts = [repr(hint(exercise.id)) for _ in range(4)]
    assert [text[:11] for text in texts] == [f"hint {n} of 3" for n in (1, 2, 3, 3)]
    assert texts[2] == texts[3]


@each_exercise
def test_the_last_hint_is_maths_and_no_code(exercise):
    assert any(sign in exercise.hints[-1] for sign in "·ρ∂")
    assert not any(word in "".join(exercise.hints) for word in ("torch", "clamp", "**"))


@each_exercise
def test_the_solution_is_revealed_after_an_attempt(exercise):
    assert "Try first" in repr(reveal(exercise.id))
    check(exercise.id, None)
    assert "Try first" in repr(reveal(exercise.id)), "a blank is no attempt"
    check(exercise.id, 3)
    assert f"solutions/04_clip.ipynb, in the cell that begins with # answer: {exercise.id}" in repr(
        reveal(exercise.id)
    )


def test_a_passed_check_counts_as_progress(store):
    check.clip_fractions(wrong_answers("clip")["clip_fractions"]["percent"])
    assert progress.summary().rows == ()
    check.clip_fractions(right("clip_fractions"))
    check.gradient_signs(right_answers("clip")["gradient_signs"]["numbers"])
    ((lesson, *_, checks),) = progress.summary().rows
    assert (lesson, checks) == ("clip", 2)


# --- answers that stay ---------------------------------------------------------------------


def own_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = torch.exp(log_probs - log_probs_old.detach())
    clipped = torch.clamp(ratios, 1 - clip_epsilon, 1 + clip_epsilon)
    return -torch.min(ratios * advantages.detach(), clipped * advantages.detach()).mean()


def own_fractions(log_probs, log_probs_old, advantages, *, clip_epsilon):
    change = (log_probs - log_probs_old).exp() - 1
    outside = change.abs() > clip_epsilon
    return outside.float().mean(), (outside & (change * advantages > 0)).float().mean()


def other_fractions(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return own_fractions(log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon)


def test_a_right_answer_is_kept_and_can_be_trained_with(store):
    assert load_answer("clip.clipped_surrogate_loss") is None
    check.clipped_surrogate_loss(own_loss)
    kept = load_answer("clip.clipped_surrogate_loss")
    assert check.clipped_surrogate_loss(kept).passed
    assert Parts(policy_loss=kept).policy_loss is kept


def test_a_kept_answer_brings_imports_constants_and_helpers(store):
    names: dict = {}
    source = (
        "import math\nimport torch as t\nfrom torch.nn import functional as F\nSCALE = 1.0\n"
        "def inner(x):\n    return x * SCALE\n"
        "def helper(x):\n    return inner(F.relu(x)) - inner(F.relu(-x)) + math.log(1)\n"
        "def mine(ratios, advantages, *, clip_epsilon):\n"
        "    clipped = t.clamp(ratios, 1 - clip_epsilon, 1 + clip_epsilon)\n"
        "    advantages = advantages.detach()\n"
        "    return helper(t.minimum(ratios * advantages, clipped * advantages))\n"
    )
    file = "<cell of a notebook>"
    run.linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    assert check.clipped_surrogate(names["mine"]).passed
    text = answer_path("clip.clipped_surrogate").read_text("utf-8")
    assert text.startswith("# answer: clip.clipped_surrogate\n")
    kept = load_answer("clip.clipped_surrogate")
    assert kept.__name__ == "mine"
    assert judge(find_exercise("clipped_surrogate"), kept).passed


def test_an_older_answer_is_put_aside_and_an_equal_one_is_not_written_twice(store):
    folder = store / "answers"
    check.clip_fractions(own_fractions)
    before = (folder / "clip.clip_fractions.py").read_text("utf-8")
    check.clip_fractions(own_fractions)
    assert [path.name for path in folder.iterdir()] == ["clip.clip_fractions.py"]
    check.clip_fractions(other_fractions)
    assert (folder / "clip.clip_fractions.old-1.py").read_text("utf-8") == before
    assert (folder / "clip.clip_fractions.py").read_text("utf-8") != before


def test_nothing_is_kept_without_a_store_or_a_pass(store, monkeypatch, tmp_path):
    check.clip_fractions(wrong_answers("clip")["clip_fractions"]["percent"])
    check.gradient_signs(right_answers("clip")["gradient_signs"]["numbers"])
    assert not (store / "answers").exists()
    monkeypatch.delenv("PPO_LESSONS_HOME")
    monkeypatch.chdir(tmp_path)
    check.clip_fractions(right("clip_fractions"))
    assert not (tmp_path / "answers").exists()


def test_a_store_that_cannot_be_written_costs_a_line_and_no_verdict(store, capsys):
    (store / "answers").write_text("in the way", encoding="utf-8")
    assert check.clip_fractions(own_fractions).passed
    assert "the answer is not kept" in capsys.readouterr().out


def test_an_answer_without_source_passes_and_is_not_kept(store):
    exec_only: dict = {}
    exec(cells_of("solutions")["clip.clip_fractions"], exec_only)
    assert check.clip_fractions(exec_only["clip_fractions"]).passed
    assert not (store / "answers" / "clip.clip_fractions.py").exists()


# --- ./course check ------------------------------------------------------------------------


def notebook(path: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_the_command_says_what_passes_and_survives_what_does_not(tmp_path, capfd, monkeypatch):
    from ppo_lessons import cli

    monkeypatch.setattr(run, "SECONDS_PER_ANSWER", 6.0)
    solution = cells_of("solutions")
    dying = "# answer: clip.clip_fractions\nimport os\nos._exit(3)"
    stuck = (
        "# answer: clip.mended_loss\nimport time\nwhile True:\n    try:\n        time.sleep(9)\n"
        "    except BaseException:\n        pass"
    )
    path = notebook(
        tmp_path / "mine.ipynb",
        solution["clip.clipped_surrogate"].replace("plain, clipped", "clipped, clipped"),
        "print('no answer')",
        "%matplotlib inline\n" + solution["clip.clipped_surrogate"] + "\nprint('x' * 10_000)",
        solution["clip.clipped_surrogate_loss"].replace("-torch.minimum", "torch.minimum")
        + "\ncheck.clipped_surrogate_loss(clipped_surrogate_loss)",
        dying,
        "# answer: clip.gradient_signs\ngradient_signs = {",
        stuck,
    )
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path / "store"))
    assert cli.main(["check", str(path)]) == 1
    out = capfd.readouterr().out
    assert out.splitlines()[1:] == [
        "  ✔ clip.clipped_surrogate: passed",
        "  ✘ clip.clipped_surrogate_loss: not yet (stage: smallest case). objective_called_a_loss. "
        "The sign is that of an objective. A loss is minimised: give minus the mean of the "
        "objective.",
        "  ✘ clip.clip_fractions: not yet. The answer ended the process (code 3).",
        "  ✘ clip.gradient_signs: line 2 of the cell is no Python: '{' was never closed",
        "  ✘ clip.mended_loss: not yet. It was stopped: no result within 6 s.",
        "  · clip.asymmetric_dual_clip: no cell has the line `# answer: clip.asymmetric_dual_clip`",
        "1 of 6 passed",
    ]
    assert (tmp_path / "store/answers/clip.clipped_surrogate.py").exists()


def test_the_command_finds_the_copy_in_the_store(store, capfd):
    from ppo_lessons import cli

    (store / "exercises").mkdir()
    text = (ROOT / "solutions/04_clip.ipynb").read_text("utf-8")
    (store / "exercises/04_clip.ipynb").write_text(text, encoding="utf-8")
    assert cli.main(["check", "4"]) == 0
    assert capfd.readouterr().out.endswith("6 of 6 passed\n")
    assert {path.stem for path in (store / "answers").iterdir()} == {each.id for each in FUNCTIONS}
    assert json.loads((store / "progress.json").read_text("utf-8"))["checks"].keys() == {
        each.id for each in EXERCISES
    }


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("99", "no lesson"),
        ("08", "has no checks yet"),
        ("04", "there is no exercises/04_clip.ipynb"),
        ("gone.ipynb", "there is no file"),
        ("half.ipynb", "cannot be read"),
        ("list.ipynb", "cannot be read"),
        ("lesson.ipynb", "holds no answers"),
    ],
)
def test_the_command_says_what_it_cannot_check(store, monkeypatch, capsys, word, complaint):
    from ppo_lessons import cli

    monkeypatch.chdir(store)
    (store / "half.ipynb").write_text('{"cells": [', encoding="utf-8")
    (store / "list.ipynb").write_text("[]", encoding="utf-8")
    notebook(store / "lesson.ipynb", "print(1)")
    assert cli.main(["check", word]) == 2
    assert complaint in capsys.readouterr().err


def test_outcomes_with_gradients_agree_only_if_these_do():
    one = Outcome(shape=(1,), values=(1.0,), gradients={"ratios": (1.0,)})
    assert compare.agree(one, one)
    assert not compare.agree(Outcome(shape=(1,), values=(1.0,), gradients={"ratios": None}), one)
    assert not compare.agree(Outcome(shape=(), values=(1.0,), gradients={"ratios": (1.0,)}), one)


def test_signs_are_an_exercise_without_a_function():
    assert isinstance(find_exercise("gradient_signs"), SignsExercise)
