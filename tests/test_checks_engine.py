"""How the checks work, on the exercises of lesson 04 and on toys: nothing outlives a call.

What every exercise of every lesson promises is in `test_checks.py`.
"""

import copy
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from answers import right_answers, wrong_answers
from answers.attacks import ATTACKS, DELETES_GLOBALS, ENDLESS, HostileObject
from answers.kernel import fresh_kernel  # noqa: F401  a fixture

from ppo_lessons import progress
from ppo_lessons.checks import (
    CheckResult,
    check,
    compare,
    desk,
    exercises,
    find_exercise,
    hashed,
    hint,
    reveal,
    run,
    words,
)
from ppo_lessons.checks import judge as judging
from ppo_lessons.checks.answers import answer_path, load_answer
from ppo_lessons.checks.exercises import (
    Case,
    FunctionExercise,
    NumbersExercise,
    Outcome,
    seeded,
    tables,
)
from ppo_lessons.checks.guard import OutOfTime, limited
from ppo_lessons.checks.judge import judge
from ppo_lessons.training_loop import Parts
from tools import build_checks

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = [each for each in desk.all_exercises().values() if each.lesson == "clip"]
FUNCTIONS = [each for each in EXERCISES if isinstance(each, FunctionExercise)]
pytestmark = pytest.mark.usefixtures("fresh_kernel")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path))
    return tmp_path


def right(name: str):
    """One right answer whose source can be read."""
    return list(right_answers("clip")[name].values())[1]


def cells_of(folder):
    return run.answer_cells(ROOT / folder / "04_clip.ipynb")


# --- what is said --------------------------------------------------------------------------


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


# --- what the builder refuses --------------------------------------------------------------


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


def test_the_builder_refuses_a_right_answer_that_stops():
    exercise, wrong = find_exercise("clipped_surrogate"), wrong_answers("clip")["clipped_surrogate"]
    with pytest.raises(build_checks.DataError, match="right answer fails in 'inside the interval'"):
        build_checks.exercise_data(exercise, lambda *tensors, clip_epsilon: 1 / 0, wrong)


def test_the_builder_refuses_a_mistake_without_words():
    exercise, wrong = find_exercise("clipped_surrogate"), wrong_answers("clip")["clipped_surrogate"]
    with pytest.raises(build_checks.DataError, match="words"):
        build_checks.exercise_data(exercise, right("clipped_surrogate"), {**wrong, "other": None})


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
        "sign_turned",
        "not_exact_enough",
    }


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


def test_a_passed_check_counts_as_progress(store):
    check.clip_fractions(wrong_answers("clip")["clip_fractions"]["percent"])
    assert progress.summary().rows == ()
    check.clip_fractions(right("clip_fractions"))
    check.gradient_signs(right_answers("clip")["gradient_signs"]["numbers"])
    ((lesson, *_, checks),) = progress.summary().rows
    assert (lesson, checks) == ("clip", 2)


# --- answers that stay ---------------------------------------------------------------------


def own_surrogate(ratios, advantages, *, clip_epsilon):
    clipped = torch.clamp(ratios, 1 - clip_epsilon, 1 + clip_epsilon)
    return torch.min(ratios * advantages.detach(), clipped * advantages.detach())


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
        ("00", "has no checks yet"),
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


# --- what a function may be given, and give back -------------------------------------------


@pytest.fixture
def toy(monkeypatch):
    """Make an exercise with data of its own."""

    def make(right, wrong, form=FunctionExercise, **more):
        words = {name: f"{name}: the sentence of a toy." for name in wrong}
        exercise = form(id="toy.answer", hints=("a", "b", "c"), mistakes=words, **more)
        found = json.loads(json.dumps(build_checks.exercise_data(exercise, right, wrong)))
        for module in (judging, hashed):
            monkeypatch.setattr(module, "data_of", lambda lesson: {"toy.answer": found})
        return exercise

    return make


def case(*, stage="smallest case", **more):
    return Case(stage=stage, name="a toy", **more)


def test_flags_are_booleans_and_actions_integers(toy):
    def right(values, terminated, actions):
        assert (terminated.dtype, actions.dtype) == (torch.bool, torch.int64)
        return torch.where(terminated, 0, values) + actions

    inputs = {"values": [1.5, 2.0], "terminated": [True, False], "actions": [0, 1]}
    cases = (
        case(inputs=inputs, integers=("actions",)),
        case(inputs=inputs, integers=("actions",), gradients=True),
    )
    wrong = {"flag_ignored": lambda values, terminated, actions: values + actions}
    exercise = toy(right, wrong, cases=cases, gives="same shape", learns=("values",))
    assert judge(exercise, right).passed
    result = judge(exercise, wrong["flag_ignored"])
    assert result.mistake == "flag_ignored"
    assert dict(result.rows)["input"] == "values [1.5], terminated [True], actions [0]"

    def flips(values, terminated, actions):
        return right(values, terminated.logical_not_(), actions)

    assert judge(exercise, flips).mistake == "changes_its_inputs"


def test_of_independent_rows_the_one_that_differs_is_shown(toy):
    def right(logits, actions):
        return logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def first_action(logits, actions):
        return right(logits, actions * 0)

    inputs = {"logits": [[0.0, 0.0], [0.0, 1.0]], "actions": [0, 1]}
    cases = (case(inputs=inputs, integers=("actions",)),)
    exercise = toy(right, {"first_action": first_action}, cases=cases, gives="one per row")
    rows = dict(judge(exercise, first_action).rows)
    assert rows["input"] == "logits [[0, 1]], actions [1]"
    assert (rows["expected"], rows["got"]) == ("-0.313262", "-1.31326")
    keeps_the_axis = judge(exercise, lambda logits, actions: right(logits, actions)[:, None])
    assert (keeps_the_axis.stage, keeps_the_axis.mistake) == ("type and shape", "wrong_shape")


def test_several_results_are_told_apart_by_their_names(toy):
    def right(rewards, values):
        return rewards - values, (rewards - values).mean()

    def second_doubled(rewards, values):
        return rewards - values, 2 * (rewards - values).mean()

    inputs = {"rewards": [[1.0, 2.0]], "values": [[0.5, 0.0]]}
    cases = (case(inputs=inputs), case(inputs=inputs, gradients=True))
    more = {"gives": "several", "parts": ("advantages", "mean"), "learns": ("rewards", "values")}
    exercise = toy(right, {"second_doubled": second_doubled}, cases=cases, **more)
    assert judge(exercise, right).passed
    assert judge(exercise, lambda rewards, values: list(right(rewards, values))).passed
    result = judge(exercise, second_doubled)
    assert result.mistake == "second_doubled"
    assert dict(result.rows)["expected"] == "mean 1.25"
    assert "2 results, as in `return advantages, mean`" in repr(
        judge(exercise, lambda rewards, values: rewards)
    )

    def value_detached(rewards, values):
        return right(rewards, values.detach())

    result = judge(exercise, value_detached)
    assert (result.stage, result.passed) == ("smallest case", False)
    assert dict(result.rows)["expected"].startswith("gradient to values [[")


def test_one_number_may_be_pythons_or_a_tensor(toy):
    def right(weights, *, power):
        return float((weights**power).sum())

    cases = (case(inputs={"weights": [1.0, 2.0]}, options={"power": 2}),)
    wrong = {"power_ignored": lambda weights, *, power: weights.sum().item()}
    exercise = toy(right, wrong, cases=cases, gives="number")
    for form in (float, torch.tensor, np.float64, round, lambda x: torch.tensor([x])):
        assert judge(exercise, lambda w, *, power, form=form: form(right(w, power=power))).passed
    assert judge(exercise, lambda weights, *, power: "5").mistake == "wrong_type"
    assert judge(exercise, lambda weights, *, power: weights).mistake == "wrong_type"


def test_results_may_be_yes_or_no_or_integers(toy):
    inputs = {"values": [1.0, -1.0]}
    wrong = {"turned": lambda values: values < 0}
    more = {"cases": (case(inputs=inputs),), "gives": "same shape"}
    exercise = toy(lambda values: values > 0, wrong, kind="yes or no", **more)
    assert judge(exercise, lambda values: values.sign()).mistake == "wrong_dtype"
    assert judge(exercise, lambda values: values > 0).passed
    assert dict(judge(exercise, wrong["turned"]).rows)["expected"] == "True"
    result = judge(exercise, lambda values: values)
    assert "expected yes or no" in repr(result)
    exercise = replace(exercise, kind="integers")
    assert judge(exercise, lambda values: (values > 0).long()).passed


def test_generators_tables_options_and_none_are_passed_as_they_are(toy):
    def right(mdp, mask, *, generator, estimator, weights):
        assert mask is None
        assert estimator == "k3"
        noise = torch.randn(2, generator=generator, dtype=torch.float64)
        return mdp.rewards[0] * mdp.gamma + weights + 0 * noise + noise.sign()

    def global_noise(mdp, mask, *, generator, estimator, weights):
        return mdp.rewards[0] + weights

    world = tables("a world of one state", rewards=[[1.0, 2.0]], observation_of=[0], gamma=0.5)
    options = {"generator": seeded(3), "estimator": "k3", "weights": [0.5, 1.0]}
    cases = (case(inputs={"mdp": world, "mask": None}, options=options),)
    exercise = toy(right, {"global_noise": global_noise}, cases=cases, gives="tensor")
    assert judge(exercise, right).passed
    assert judge(exercise, right).passed, "the generator starts anew"
    shown = dict(judge(exercise, global_noise).rows)["input"]
    assert shown == (
        "mdp a world of one state, mask None, generator a generator with seed 3, "
        "estimator 'k3', weights [0.5, 1]"
    )

    def changes_the_tables(mdp, mask, *, generator, estimator, weights):
        mdp.rewards.mul_(2)
        return weights

    result = judge(exercise, changes_the_tables)
    assert result.mistake == "changes_its_inputs"
    assert "mdp.rewards" in repr(result)


def test_a_gradient_that_a_plain_sum_would_hide_is_compared(toy):
    """The sum of probabilities is 1 whatever the logits are; so results are weighted."""

    def right(logits):
        return logits.softmax(-1)

    def turned_upside_down(logits):
        return (2 * logits.detach() - logits).softmax(-1)

    cases = (case(inputs={"logits": [0.0, 1.0, 3.0]}, gradients=True),)
    wrong = {"turned_upside_down": turned_upside_down}
    exercise = toy(right, wrong, cases=cases, gives="tensor", learns=("logits",))
    assert judge(exercise, right).passed
    assert judge(exercise, turned_upside_down).mistake == "turned_upside_down"


def test_the_first_optimizer_of_a_process_costs_no_answer_its_time():
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/tests']\n"
        "from answers import right_answers\n"
        "from ppo_lessons.checks import check, judge\n"
        "judge.SECONDS = 1.0\n"
        "answer = right_answers('importance')['mended_squeeze']['with_an_optimizer']\n"
        "print(check('importance.mended_squeeze', answer))\n"
    )
    command = [sys.executable, "-c", code, str(ROOT)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout == "✔ importance.mended_squeeze: passed\n"


def test_a_constant_may_be_cut_off_or_not(toy):
    """Where both are right, the argument carries no gradient."""

    def right(new, old):
        return (new - old).exp()

    cases = (
        case(inputs={"new": [0.0], "old": [1.0]}, constants=("old",)),
        case(inputs={"new": [0.0], "old": [1.0]}, constants=("old",), gradients=True),
    )
    wrong = {"turned": lambda new, old: (old - new).exp()}
    exercise = toy(right, wrong, cases=cases, gives="same shape", learns=("new",))
    assert judge(exercise, right).passed
    assert judge(exercise, lambda new, old: (new - old.detach()).exp()).passed
    assert judge(exercise, lambda new, old: (new.detach() - old).exp()).mistake == "gradient_lost"


# --- numbers that are predicted ------------------------------------------------------------


@pytest.fixture
def prediction(toy):
    questions = {"a": ("one", "Look at one."), "b": ("two", "Look at two.")}
    wrong = {"gamma_squared": {"a": 0.81, "b": 2.5}, "not_discounted": {"a": 1.0, "b": 3.0}}
    right = {"a": 0.9, "b": 2.5}
    return toy(right, wrong, form=NumbersExercise, questions=questions, tolerance=0.01)


@pytest.mark.parametrize("given", [{"a": 0.9, "b": 2.5}, [0.9, 2.5], [0.905, torch.tensor(2.495)]])
def test_predicted_numbers_within_the_tolerance_pass(prediction, given):
    assert judge(prediction, given).passed


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ([0.81, 2.5], "gamma_squared"),
        ([1.0, 3.0], "not_discounted"),
        ([1.0, 7.0], "not_discounted"),
        ([7.0, 3.0], None),
        ([0.93, 2.5], "not_exact_enough"),
        ([-0.9, -2.5], "sign_turned"),
        ([float("inf"), 2.5], None),
        ([0.9, None], "wrong_type"),
        (["0.9", 2.5], "wrong_type"),
        ([0.9], "wrong_type"),
        ([float("nan"), 2.5], "wrong_type"),
        (None, "not_written"),
        ([None, None], "not_written"),
    ],
)
def test_predicted_numbers_that_are_wrong_are_named(prediction, given, mistake):
    result = judge(prediction, given)
    assert (result.passed, result.mistake) == (False, mistake)


def test_hostile_numbers_are_refused_in_words(prediction):
    for given in (HostileObject(), [HostileObject(), 2.5]):
        assert judge(prediction, given).mistake == "wrong_type"


def test_a_wrong_number_is_shown_without_the_right_one(prediction):
    text = repr(judge(prediction, [7.0, 2.5]))
    assert "case a: one" in text
    assert "7; another number is expected" in text
    assert "none of the usual ones. Look at one." in text
    assert "0.9" not in text


def test_the_builder_refuses_a_wrong_number_that_would_pass(prediction):
    wrong = {"gamma_squared": {"a": 0.92, "b": 2.5}, "not_discounted": {"a": 1.0, "b": 3.0}}
    with pytest.raises(build_checks.DataError, match="gamma_squared and a right answer"):
        build_checks.exercise_data(prediction, {"a": 0.9, "b": 2.5}, wrong)


# --- all at once ---------------------------------------------------------------------------


def test_all_answers_of_a_notebook_are_judged_in_one_line_each(store):
    cell = "mine = 1\nfound = check.all(lesson='clip')"
    names = {
        "check": check,
        "clipped_surrogate": own_surrogate,
        "clip_fractions": wrong_answers("clip")["clip_fractions"]["percent"],
        "gradient_signs": dict.fromkeys("abcdef"),
    }
    exec(cell, names)
    found = repr(names["found"])
    assert found == (
        "✔ clip.clipped_surrogate: passed\n"
        "✘ clip.clip_fractions: not yet (stage: quadrants) percent\n"
        "· clip.gradient_signs: not written yet\n"
        "1 of 3 passed"
    )
    assert answer_path("clip.clipped_surrogate").is_file()


def test_what_the_package_has_is_no_answer():
    from ppo_lessons.clip import clip_fractions

    names = {"clip_fractions": clip_fractions}
    assert repr(check.all(names)).startswith("no answer yet")
    with pytest.raises(ValueError, match="lesson"):
        check.all(names, lesson="clop")
