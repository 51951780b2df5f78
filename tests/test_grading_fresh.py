"""Hidden inputs tell right answers from wrong ones, and what is printed hurts no honest student.

Every named wrong answer of the course loses points in the hidden cells, every right one keeps them
all, in float32 too. The sample of a normal run takes some of each; `--full` takes all.
"""

import json
import logging
import math
import os
import re
import subprocess
import sys
import time
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from answers import right_answers, wrong_answers
from answers.attacks import ENDLESS, UNFIT

from ppo_lessons.checks.compare import TOLERANCE
from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.exercises import (
    SEEDED,
    SMALLEST,
    FunctionExercise,
    HashedExercise,
    Made,
    NumbersExercise,
    Outcome,
    leaves,
)
from ppo_lessons.checks.judge import judge
from ppo_lessons.grading import ask as asking
from ppo_lessons.grading.ask import (
    ask,
    ask_hashed,
    cases_of,
    good_seed,
    lines_of,
    margin_ok,
    number_text,
    outcomes_of,
    shifts_of,
    tell,
    text_of,
)
from ppo_lessons.grading.fresh import fresh_cases, stages_of

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = list(all_exercises().values())
FUNCTIONS = [each for each in EXERCISES if isinstance(each, FunctionExercise)]
HASHED = [each for each in EXERCISES if isinstance(each, HashedExercise)]
CLIP = "clip.clipped_surrogate"
SAMPLE = 8  # one answer in so many in a normal run

each_function = pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda each: each.id)
each_hashed = pytest.mark.parametrize("exercise", HASHED, ids=lambda each: each.id)


@pytest.fixture(scope="module", autouse=True)
def optimizers_loaded():
    """The first optimiser imports for seconds, which belong to no answer."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.0)


def function_of(id: str) -> FunctionExercise:
    exercise = all_exercises()[id]
    assert isinstance(exercise, FunctionExercise)
    return exercise


def rights_of(exercise):
    return right_answers(exercise.lesson)[exercise.name]


def wrongs_of(exercise):
    return wrong_answers(exercise.lesson)[exercise.name]


def first_right(exercise):
    return next(iter(rights_of(exercise).values()))


@cache
def hidden_cells(id, start):
    """The cases of each hidden cell, and what a right answer prints there."""
    exercise, found = function_of(id), {}
    for stage in stages_of(exercise):
        seed = good_seed(exercise, first_right(exercise), stage=stage, start=start)
        cases = fresh_cases(exercise, stage=stage, seed=seed)
        found[stage] = cases, lines_of(exercise, first_right(exercise), cases)
    return found


def stages_lost(exercise, answer, start):
    """Yield the hidden stages in which an answer does not print what it should."""
    for stage, (cases, lines) in hidden_cells(exercise.id, start).items():
        if lines_of(exercise, answer, cases) != lines:
            yield stage


def public_lines(exercise, answer):
    outcomes = outcomes_of(exercise, answer, exercise.cases)
    return list(map(text_of, outcomes, shifts_of(exercise, exercise.cases)))


def in_float32(answer):
    """The same answer, which makes float32 of all that it gets."""

    def cast(value):
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.float() if floating else value

    def function(*tensors, **options):
        return answer(*map(cast, tensors), **{name: cast(each) for name, each in options.items()})

    return function


# --- the proof -----------------------------------------------------------------------------


def prove(exercise, *, start, every=1):
    """Hold one answer in so many against the hidden cells of one seed."""
    turn = start % every
    for name in [*rights_of(exercise)][turn::every]:
        answer = rights_of(exercise)[name]
        assert not [*stages_lost(exercise, answer, start)], f"right: {name}"
        if judge(exercise, in_float32(answer)).passed:
            lost = [*stages_lost(exercise, in_float32(answer), start)]
            assert not lost, f"right, in float32: {name}"
    for name in [*wrongs_of(exercise)][turn::every]:
        lost = stages_lost(exercise, wrongs_of(exercise)[name], start)
        assert next(lost, None), f"wrong, and loses nothing: {name}"


@each_function
def test_hidden_cells_tell_right_from_wrong(exercise):
    prove(exercise, start=3_000_001, every=SAMPLE)


@pytest.mark.full
@pytest.mark.parametrize("start", [1_000, 2_000_000, 900_000_000])
@each_function
def test_all_right_answers_keep_all_points_and_all_wrong_ones_lose_some(exercise, start):
    prove(exercise, start=start)


@each_function
def test_public_cells_tell_right_from_wrong(exercise):
    lines = public_lines(exercise, first_right(exercise))
    for name in [*rights_of(exercise)][1::2]:
        assert public_lines(exercise, rights_of(exercise)[name]) == lines, name
    for name in [*wrongs_of(exercise)][::SAMPLE]:
        assert public_lines(exercise, wrongs_of(exercise)[name]) != lines, name


def nearly(answer, share):
    """The same answer, off by some of what the course's own check allows."""

    def off(value):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            sizes = value.detach().abs().clamp(min=1.0).nan_to_num(0.0, 0.0, 0.0)
            return value + share * TOLERANCE * sizes
        return tuple(map(off, value)) if isinstance(value, tuple) else value

    return lambda *tensors, **options: off(answer(*tensors, **options))


@each_function
def test_the_grader_is_no_stricter_than_the_check(exercise):
    if exercise.through is None:
        for share in (-0.95, 0.95):
            answer = nearly(first_right(exercise), share)
            assert not [*stages_lost(exercise, answer, 3_000_001)], share


@pytest.mark.full
@each_function
def test_public_cells_tell_all_right_answers_from_all_wrong_ones(exercise):
    lines = public_lines(exercise, first_right(exercise))
    assert all(public_lines(exercise, each) == lines for each in rights_of(exercise).values())
    assert all(public_lines(exercise, each) != lines for each in wrongs_of(exercise).values())


def known_by_heart(exercise):
    """An answer that looks its inputs up among the public ones, and else says what it said last."""
    right, known = first_right(exercise), {}

    def key(tensors, options):
        given = [*tensors, *options.values()]
        plain = [x.tolist() if isinstance(x, torch.Tensor) else x for x in given]
        return repr([x for x in plain if not callable(x) or isinstance(x, list)])

    for case in exercise.cases:
        inputs, options = case.arguments()
        if exercise.through is None:
            known[key(inputs.values(), options)] = right(*inputs.values(), **options)
    last = [*known.values()][-1:] or [None]

    def answer(*tensors, **options):
        return known.get(key(tensors, options), last[0])

    return answer


@each_function
def test_public_values_by_heart_gain_nothing(exercise):
    lost = [*stages_lost(exercise, known_by_heart(exercise), 3_000_001)]
    assert lost == [*stages_of(exercise)]


@each_function
def test_a_constant_gains_nothing(exercise):
    inputs, options = exercise.cases[0].arguments()
    if exercise.through is None:
        result = first_right(exercise)(*inputs.values(), **options)
    else:
        result = None
    for constant in (result, True, 0.0):
        lost = [*stages_lost(exercise, lambda *_, c=constant, **__: c, 3_000_001)]
        assert lost == [*stages_of(exercise)], constant


# --- the inputs ----------------------------------------------------------------------------


def templates_of(exercise, stage):
    """The public case behind each fresh one."""
    repeats = 1 if stage == SEEDED else 2
    return [
        *(case for case in exercise.cases if case.stage == SMALLEST),
        *(case for case in exercise.cases if case.stage == stage for _ in range(repeats)),
    ]


@pytest.fixture(params=[11, 12, 13])
def fresh_pairs(request):
    """Every fresh case of every exercise, with its public case."""
    return [
        (exercise, public, fresh)
        for exercise in FUNCTIONS
        for stage in stages_of(exercise)
        for public, fresh in zip(
            templates_of(exercise, stage),
            fresh_cases(exercise, stage=stage, seed=request.param),
            strict=True,
        )
    ]


# Turns may be longer, and the id that ends a response may be another.
GROWING = ("tokens.actions_of_turns", "tokens.response_mask")


def between(low: float, value: Any, high: float) -> bool:
    return low < value < high


def given(case):
    return {**case.inputs, **case.options}


def test_a_case_is_called_and_read_as_its_template(fresh_pairs):
    for _, public, fresh in fresh_pairs:
        assert list(fresh.inputs) == list(public.inputs)
        assert list(fresh.options) == list(public.options)
        assert (fresh.gradients, fresh.dtype) == (public.gradients, public.dtype)
        assert (fresh.integers, fresh.constants) == (public.integers, public.constants)


def test_inputs_are_new(fresh_pairs):
    for exercise, public, fresh in fresh_pairs:
        inputs = [leaf for value in public.inputs.values() for leaf in leaves(value)]
        if any(isinstance(leaf, float | Made) for leaf in inputs):  # of flags there are but a few
            assert given(fresh) != given(public), (exercise.id, public.name)


def test_probabilities_sum_to_one_and_zeros_stay(fresh_pairs):
    for exercise, public, fresh in fresh_pairs:
        for name in ("policy", "policy_old", "probabilities"):
            if name in fresh.inputs:
                table = torch.tensor(fresh.inputs[name], dtype=torch.float64)
                assert bool((table >= 0).all()), exercise.id
                assert torch.allclose(table.sum(-1), torch.ones(()).double(), rtol=0, atol=1e-12)
                assert torch.equal(table == 0, torch.tensor(public.inputs[name]) == 0)
                assert bool((table.float().sum(-1) == 1).all())


def test_numbers_stay_in_their_range(fresh_pairs):
    for exercise, public, fresh in fresh_pairs:
        for name, value in given(fresh).items():
            before = given(public)[name]
            if name in ("log_probs", "log_probs_old") and max(leaves(before)) <= 0:
                assert max(leaves(value)) <= 0, exercise.id
            if name in ("gamma", "gae_lambda"):
                assert value == before if before in (0, 1) else between(0, value, 1)
            if name in public.integers and isinstance(value, list):
                most = 99 if exercise.id in GROWING else max(leaves(before))
                assert 0 <= min(leaves(value)) <= max(leaves(value)) <= most
                assert all(type(leaf) is int for leaf in leaves(value))
            if name in ("max_kl", "beta", "learning_rate", "clip_epsilon", "target_kl"):
                assert between(0, value, 10 * before)
            if name in ("num_steps", "num_epochs", "max_tries"):
                assert type(value) is int
                assert 0 <= value <= 30


def test_the_fisher_matrix_has_an_inverse(fresh_pairs):
    for _, _, fresh in fresh_pairs:
        if "fisher" in fresh.inputs:
            matrix = torch.tensor(fresh.inputs["fisher"], dtype=torch.float64)
            assert torch.equal(matrix, matrix.T)
            assert torch.linalg.eigvalsh(matrix).min() > 1e-4


def test_a_number_stays_on_its_side_of_an_edge(fresh_pairs):
    def side(ratio, options):
        low = 1 - options.get("clip_epsilon", options.get("epsilon_low"))
        high = 1 + options.get("clip_epsilon", options.get("epsilon_high"))
        edges = [low, high, *([options["bound"]] if "bound" in options else [])]
        return [0 if math.isclose(ratio, x, abs_tol=1e-6) else ratio > x or -1 for x in edges]

    seen = 0
    for exercise, public, fresh in fresh_pairs:
        if exercise.lesson == "clip" and "ratios" in public.inputs:
            pairs = zip(
                leaves(public.inputs["ratios"]), leaves(fresh.inputs["ratios"]), strict=True
            )
            for before, now in pairs:
                assert side(before, public.options) == side(now, fresh.options), public.name
                seen += 1
    assert seen > 100


def test_a_following_value_is_that_of_the_next_row(fresh_pairs):
    seen = 0
    for _, _, fresh in fresh_pairs:
        if {"values", "next_values", "truncated"} <= set(fresh.inputs):
            table = SimpleNamespace(**fresh.inputs)
            for t in range(len(table.values) - 1):
                for n in range(len(table.values[0])):
                    if not (table.terminated[t][n] or table.truncated[t][n]):
                        assert table.next_values[t][n] == table.values[t + 1][n]
                        seen += 1
    assert seen > 100


def test_episodes_of_complete_rollouts_end_in_the_last_row(fresh_pairs):
    for exercise, _, fresh in fresh_pairs:
        if exercise.lesson == "reinforce" and "ended" in fresh.inputs:
            assert all(fresh.inputs["ended"][-1])


def test_the_row_behind_a_reset_ends_nothing(fresh_pairs):
    for exercise, _, fresh in fresh_pairs:
        if exercise.id == "rollout.valid_rows":
            columns = zip(
                fresh.inputs["ended_before"],
                zip(*fresh.inputs["terminated"], strict=True),
                zip(*fresh.inputs["truncated"], strict=True),
                strict=True,
            )
            for before, terminated, truncated in columns:
                ended = [before, *(a or b for a, b in zip(terminated, truncated, strict=True))]
                assert not any(one and two for one, two in pairwise(ended))


@each_function
def test_equal_seeds_give_equal_inputs_and_others_give_others(exercise):
    def values(seed):
        cases = [
            case
            for stage in stages_of(exercise)
            for case in fresh_cases(exercise, stage=stage, seed=seed)
        ]
        return repr([sorted(given(case).items()) for case in cases if not through(case)])

    def through(case):
        return any(callable(getattr(each, "make", None)) for each in given(case).values())

    numbers = [lines_of(exercise, first_right(exercise), cases_of(exercise, seed=7)) for _ in "ab"]
    assert numbers[0] == numbers[1]
    assert values(7) == values(7)
    if values(7) != "[]":
        assert values(7) != values(8)


def test_a_stage_begins_with_the_smallest_case_and_is_no_stage_itself():
    for exercise in FUNCTIONS:
        assert SMALLEST not in stages_of(exercise)
        assert 2 <= len(stages_of(exercise)) <= 5
        for stage in stages_of(exercise):
            assert fresh_cases(exercise, stage=stage, seed=1)[0].stage == SMALLEST


def test_predictions_have_no_hidden_stage():
    assert all(stages_of(exercise) == () for exercise in HASHED)


def test_an_unknown_stage_is_refused():
    for stage in (SMALLEST, "no such stage"):
        with pytest.raises(ValueError, match="has no hidden stage"):
            fresh_cases(function_of(CLIP), stage=stage, seed=1)
    with pytest.raises(ValueError, match="has no stage"):
        cases_of(function_of(CLIP), stage="no such stage")


# --- what is printed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (-0.0002, "0.000"),
        (1.0, "1.000"),
        (-2.5, "-2.50"),
        (0.0625, "0.065"),
        (1 / 3, "0.335"),
        (9.9999999, "10.00"),
        (10.0, "10.00"),
        (1234.2, "1235"),
        (-71234.4, "-71000"),
        (3e200, "3.00e+200"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_number_is_rounded_to_a_shifted_grid(number, text):
    assert number_text(number) == text


def test_numbers_within_the_rounding_of_float32_are_shown_alike():
    for number in (1.0, 10.0, 100.0, 1000.0, 0.5, 0.125, 0.0625, 1 / 3, 2 / 3, 480.0, -7.0):
        nearby = float(torch.tensor(number, dtype=torch.float32))
        texts = {number_text(number * (1 + k * 1e-6)) for k in (-1, 0, 1)} | {number_text(nearby)}
        assert len(texts) == 1, number


def test_a_difference_that_a_check_would_name_is_seen():
    for number in (0.3, 1.0, 5.0, 77.0, 3000.0):
        assert number_text(number) != number_text(number + 1e-2 * max(1, number))


def test_an_outcome_is_written_with_its_shape_and_gradients():
    outcome = Outcome(shape=(2,), values=(1.0, -0.5), gradients={"a": (0.25, 3.0), "b": None})
    assert text_of(outcome) == "(2,) 1.000 -0.500 | a: 0.250 3.00 | b: none"
    assert text_of(Outcome(shape=(), values=(7.0,), gradients={"a": (0.0, -0.0)})).endswith("none")


def test_no_gradient_and_a_gradient_of_zero_are_written_alike():
    texts = {text_of(Outcome(values=(1.0,), gradients={"a": row})) for row in (None, (0.0, 0.0))}
    assert len(texts) == 1


def first_case(answer):
    exercise = function_of(CLIP)
    return lines_of(exercise, answer, exercise.cases[:1])[0]


def test_what_fails_is_written_in_one_word():
    def blank(ratios, advantages, *, clip_epsilon):
        raise NotImplementedError("exercise clip.clipped_surrogate")

    def breaks(ratios, advantages, *, clip_epsilon):
        raise ValueError(f"words of a learner {ratios}")

    assert first_case(None) == first_case(blank) == "1 no answer"
    assert first_case(breaks) == first_case(lambda *_, **__: None) == "1 raises"


@pytest.mark.parametrize("name", UNFIT)
def test_no_answer_that_fits_nothing_stops_the_cell(name):
    assert first_case(UNFIT[name][0]) in ("1 no answer", "1 raises")


def test_an_endless_loop_costs_its_cell_some_seconds(monkeypatch):
    monkeypatch.setattr(asking, "SECONDS", 0.3)
    exercise = function_of(CLIP)
    start = time.monotonic()
    lines = lines_of(exercise, ENDLESS, exercise.cases[:5])
    assert lines == [f"{number} out of time" for number in range(1, 6)]
    assert time.monotonic() - start < 10


def test_cases_before_the_time_is_over_still_count(monkeypatch):
    monkeypatch.setattr(asking, "SECONDS", 0.5)
    exercise, calls = function_of(CLIP), []

    def slow(ratios, advantages, *, clip_epsilon):
        calls.append(1)
        if len(calls) > 2:
            time.sleep(60)
        return ratios * advantages.detach()

    lines = lines_of(exercise, slow, exercise.cases[:4])
    assert lines[0] == "1 (1,) 1.100"
    assert lines[2:] == ["3 out of time", "4 out of time"]


def test_ask_prints_one_line_for_each_case_and_nothing_else(capsys):
    ask(CLIP, first_right(function_of(CLIP)))
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == len(function_of(CLIP).cases)
    assert printed.err == ""
    ask(CLIP, first_right(function_of(CLIP)), stage="edges", seed=5)
    lines = capsys.readouterr().out.splitlines()
    assert lines == lines_of(
        function_of(CLIP),
        first_right(function_of(CLIP)),
        fresh_cases(function_of(CLIP), stage="edges", seed=5),
    )


def test_each_question_is_asked_by_its_own_function():
    with pytest.raises(ValueError, match="use ask_hashed"):
        ask("clip.gradient_signs", {})
    with pytest.raises(ValueError, match="use ask"):
        ask_hashed(CLIP, None)
    with pytest.raises(ValueError, match="no question"):
        ask("clip.no_such", None)


@each_function
def test_lines_stay_short(exercise):
    for cases, lines in hidden_cells(exercise.id, 3_000_001).values():
        assert len(cases) <= 40
        assert sum(map(len, lines)) < 4000


def test_a_result_of_a_million_numbers_is_cut():
    assert len(first_case(lambda *_, **__: torch.ones(10**6))) < 20_000


# --- which seeds are good ------------------------------------------------------------------


def test_a_value_near_an_edge_is_no_good():
    exercise = function_of("critic.leave_one_out_baseline")
    seed = good_seed(exercise, first_right(exercise), stage="edges", start=1)
    assert margin_ok(exercise, first_right(exercise), stage="edges", seed=seed)

    def shifted(by):
        return lambda returns: torch.full_like(returns, 0.005 * (0.5 - asking.SHIFT) + by)

    assert not margin_ok(exercise, shifted(5e-5), stage="edges", seed=seed)
    assert margin_ok(exercise, shifted(5e-4), stage="edges", seed=seed)


def test_an_answer_that_differs_in_float32_is_no_good():
    exercise = function_of("critic.leave_one_out_baseline")

    def as_wide_as_its_numbers(returns):
        return torch.full_like(returns, returns.element_size())

    assert not margin_ok(exercise, as_wide_as_its_numbers, stage="edges", seed=1)


def test_no_seed_is_good_for_an_answer_that_fails():
    with pytest.raises(ValueError, match="a right answer fails in"):
        good_seed(function_of(CLIP), lambda *_, **__: None, stage="edges", start=1)


@each_function
def test_public_values_keep_off_the_edges(exercise):
    """Also of float32; the grid lies where the public values leave room."""
    assert margin_ok(exercise, first_right(exercise))


# --- predictions ---------------------------------------------------------------------------


@each_hashed
def test_predictions_within_the_tolerance_print_alike(exercise, capsys):
    def printed(answer):
        ask_hashed(exercise.id, answer)
        return capsys.readouterr().out

    right = first_right(exercise)
    lines = printed(right)
    assert len(lines.splitlines()) == len(exercise.questions)
    for name, answer in rights_of(exercise).items():
        assert printed(answer) == lines, name
    for name, answer in wrongs_of(exercise).items():
        assert printed(answer) != lines, name
    if isinstance(exercise, NumbersExercise):
        for side in (-0.9, 0.9):
            moved = {letter: x + side * exercise.tolerance for letter, x in right.items()}
            assert printed(moved) == lines
        far = {letter: x + 3 * exercise.tolerance for letter, x in right.items()}
        pairs = zip(printed(far).splitlines(), lines.splitlines(), strict=True)
        assert all(one != other for one, other in pairs)


@each_hashed
def test_what_is_no_prediction_is_no_answer(exercise, capsys):
    for answer in (None, 3, "text", {}, {"a": None}, [1, 2], UNFIT["a_hostile_object"][0]):
        ask_hashed(exercise.id, answer)
        lines = capsys.readouterr().out.splitlines()
        assert all(line.endswith("no answer") for line in lines), answer
    letters = list(exercise.questions)
    ask_hashed(exercise.id, {letter: "1" for letter in letters})
    assert all(line.endswith("no number") for line in capsys.readouterr().out.splitlines())


# --- which mistake it is -------------------------------------------------------------------


def told(id, answer, capsys):
    tell(id, answer)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def test_tell_names_the_mistake_in_one_line_of_json(capsys):
    wrong = wrongs_of(function_of(CLIP))["clamp_without_minimum"]
    words = {"mistake": "clamp_without_minimum", "stage": "quadrants", "error": None}
    assert told(CLIP, wrong, capsys) == words
    right = {"mistake": None, "stage": None, "error": None}
    assert told(CLIP, first_right(function_of(CLIP)), capsys) == right


def test_tell_says_what_was_raised(capsys):
    def breaks(ratios, advantages, *, clip_epsilon):
        print("a learner's own line")
        raise ValueError("the learner's own words\nand more " + 10_000 * "x")

    words = told(CLIP, breaks, capsys)
    assert words["mistake"] == "raises"
    assert "the learner's own words" in words["error"]
    assert len(words["error"]) <= 500


def test_tell_says_which_name_is_missing(capsys):
    def forgets(ratios, advantages, *, clip_epsilon):
        return ratios * eval("missing")

    words = told(CLIP, forgets, capsys)
    assert words["mistake"] == "name_missing"
    assert "missing" in words["error"]


# --- nothing that an honest student does costs points --------------------------------------


def noisy(answer):
    """The same answer with much said on every way."""

    def function(*tensors, **options):
        print("many words " * 1000)
        print("to the other stream", file=sys.stderr)
        warnings.warn("a warning", UserWarning, stacklevel=1)
        logging.getLogger("learner").error("a line in the log")
        sys.stdout.write("directly")
        return answer(*tensors, **options)

    return function


HABITS = {
    "float64": lambda: torch.set_default_dtype(torch.float64),
    "no gradients": lambda: torch.set_grad_enabled(False),
    "print options": lambda: torch.set_printoptions(precision=1, sci_mode=True),
    "warnings are errors": lambda: warnings.simplefilter("error"),
    "a seed": lambda: torch.manual_seed(99),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
}


@pytest.fixture
def habits_undone():
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    with warnings.catch_warnings():
        yield
    torch.set_grad_enabled(grad)
    torch.set_default_dtype(dtype)
    torch.set_printoptions(profile="default")
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("habits_undone")
@pytest.mark.parametrize("habit", HABITS)
def test_habits_of_a_notebook_cost_nothing(habit):
    HABITS[habit]()
    for exercise in FUNCTIONS[list(HABITS).index(habit) % 3 :: 3]:
        answer = first_right(exercise)
        assert not [*stages_lost(exercise, answer, 3_000_001)], exercise.id


@pytest.mark.full
@pytest.mark.usefixtures("habits_undone")
@each_function
def test_a_default_dtype_of_float64_costs_no_style_anything(exercise):
    cells = hidden_cells(exercise.id, 1_000)
    torch.set_default_dtype(torch.float64)
    for name, answer in rights_of(exercise).items():
        if judge(exercise, answer).passed:
            assert not [*stages_lost(exercise, answer, 1_000)], name
    assert cells


def test_what_an_answer_prints_is_not_shown(capfd):
    handler = logging.StreamHandler(sys.stderr)  # holds the stream itself
    logging.getLogger().addHandler(handler)
    try:
        right = first_right(function_of(CLIP))
        ask(CLIP, right, stage="edges", seed=5)
        quiet = capfd.readouterr()
        ask(CLIP, noisy(right), stage="edges", seed=5)
        tell(CLIP, noisy(right))
        loud = capfd.readouterr()
    finally:
        logging.getLogger().removeHandler(handler)
    assert loud.out.startswith(quiet.out)
    assert loud.out.count("\n") == quiet.out.count("\n") + 1
    assert loud.err == ""
    assert logging.root.manager.disable == 0


def test_nothing_is_displayed_and_no_figure_is_left():
    """In a notebook both would be outputs of the check cell."""
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import clear_output, display
shell = InteractiveShell.instance()
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from ppo_lessons.grading.ask import ask, open_figures

def clipped_surrogate(ratios, advantages, *, clip_epsilon):
    display(ratios)
    clear_output()
    plt.plot([1, 2])
    return ratios * advantages

plt.figure(7)
publisher = shell.display_pub
ask("clip.clipped_surrogate", clipped_surrogate, stage="edges", seed=5)
assert shell.display_pub is publisher
assert open_figures() == {7}, open_figures()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(re.match(r"\d+ \(", line) for line in ran.stdout.splitlines())


def test_state_is_as_it_was():
    def careless(ratios, advantages, *, clip_epsilon):
        torch.manual_seed(3)
        torch.set_default_dtype(torch.float64)
        os.environ["LEFT_BY_A_LEARNER"] = "1"
        torch.exp = None
        return ratios * advantages

    before, exp = torch.get_rng_state(), torch.exp
    first_case(careless)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32
    assert "LEFT_BY_A_LEARNER" not in os.environ
    assert torch.exp is exp


def test_what_a_check_cell_calls_imports_no_lesson():
    """It must work where the modules that are graded are not there."""
    code = (
        "import sys, ppo_lessons.grading.ask\n"
        "print(*sorted({name.split('.')[1] for name in sys.modules "
        "if name.startswith('ppo_lessons.')}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"checks", "grading", "lessons", "progress", "quizzes"}
