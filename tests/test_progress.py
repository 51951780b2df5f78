"""Predictions, quizzes and their store."""

import json
import math
import multiprocessing
import os
import re
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppo_lessons import progress, quizzes
from ppo_lessons.progress import compare, pass_check, predict, quiz, reset, summary
from ppo_lessons.quizzes import Quiz, all_quizzes, check_id, collect

SAMPLE = Quiz(
    id="clip.edge",
    question="Which way?",
    options={
        "a": ("Up", "It goes up, since one is more than zero.", True),
        "b": ("Down", "Down would need a minus sign.", False),
    },
)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Each test starts like a new kernel, without a store."""
    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    forget_session()
    monkeypatch.setattr(progress, "all_quizzes", lambda: {SAMPLE.id: SAMPLE})


def forget_session() -> None:
    for section in progress._session.values():
        section.clear()


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "progress.json"


# --- predict and compare -------------------------------------------------------------------


def test_a_prediction_is_kept_and_says_so():
    assert repr(predict("clip.ratio", 1.2)) == "kept: clip.ratio = 1.2"
    assert repr(predict("clip.steps", 500, unit="steps")) == "kept: clip.steps = 500 steps"
    assert repr(predict("clip.sign", "negative")) == "kept: clip.sign = negative"


def test_without_a_guess_the_reader_is_asked_for_one():
    assert "no guess yet" in repr(predict("clip.ratio", None))
    assert repr(compare("clip.ratio", 0.5)) == ("clip.ratio: measured 0.5; you made no prediction.")


def test_the_gap_is_said_in_words_and_not_judged():
    predict("clip.ratio", 0.5, unit="nats")
    assert repr(compare("clip.ratio", 0.80801)) == (
        "clip.ratio: you said 0.5 nats, measured 0.808 nats.\nThe measurement is higher by 0.308."
    )


@pytest.mark.parametrize(
    ("said", "measured", "words"),
    [
        (1.0, 4.0, "The measurement is higher by 3: it is 4 times your guess."),
        (4.0, 1.0, "The measurement is lower by 3: your guess is 4 times as large."),
        (-4.0, -1.0, "The measurement is higher by 3: your guess is 4 times as large."),
        (-1.0, 1.0, "The measurement is higher by 2."),
        (0.0, 1.0, "The measurement is higher by 1."),
        (2, 3, "The measurement is higher by 1."),
        (0.5, 0.50001, "The two agree to 3 digits."),
        ("up", "up", "The two agree."),
        ("up", "down", "The two differ."),
        (3, "down", "The two differ."),
        ("many", 3, "Your guess is no number, so nothing is compared."),
        (
            "3",
            3,
            "Your guess is a text, so nothing is compared. Write it without quotation marks.",
        ),
        (True, False, "The two differ."),
        (True, 1.0, "The two agree."),
        (1.0, math.nan, "The two differ."),
        (1.0, math.inf, "The two differ."),
        (1e300, 1e-300, "The measurement is lower by 1.00e+300."),
        (1e-300, 1e300, "The measurement is higher by 1.00e+300."),
        (5e-324, 1e-300, "The measurement is higher by 1.00e-300: it is 2.0e+23 times your guess."),
        (10**300, 1e-300, "The measurement is lower by 1.00e+300."),
        (1, 10**300, "The measurement is higher by 1.00e+300: it is 1.0e+300 times your guess."),
        (-1e308, 1e308, "The two differ."),
    ],
)
def test_gaps(said, measured, words):
    predict("clip.ratio", said)
    assert compare("clip.ratio", measured).gap() == words


def test_a_unit_that_does_not_fit_a_difference_is_left_out_of_it():
    predict("clip.ones", 12, unit="of 32")
    assert repr(compare("clip.ones", 9)) == (
        "clip.ones: you said 12 of 32, measured 9 of 32.\nThe measurement is lower by 3."
    )


def test_a_comparison_fits_on_a_terminal():
    unit = "steps of the environment"
    predict("clip.a_rather_long_name", "a guess in words", unit=unit)
    for line in repr(compare("clip.a_rather_long_name", 1.0)).splitlines():
        assert len(line) <= 79


@pytest.mark.messages
@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000], ids=["400", "-400", "5000"])
def test_a_number_that_no_float_can_hold_is_refused(store, value):
    for call in (predict, compare):
        with pytest.raises(ValueError, match=r"too large to compare; expected at most 1\.8e308"):
            call("clip.ratio", value)
    assert not store.exists()


def test_a_large_whole_number_is_written_short():
    assert repr(predict("clip.ratio", 10**300)) == "kept: clip.ratio = 1.00e+300"


def test_half_a_character_can_be_shown_and_stored(store):
    kept, compared = predict("clip.word", "\ud800"), compare("clip.word", "\ud800")
    assert repr(kept).encode() == rb"kept: clip.word = \ud800"
    assert rb"you said \ud800, measured \ud800." in repr(compared).encode()
    assert json.loads(store.read_text())["predictions"]["clip.word"]["value"] == "\ud800"


def test_tensors_and_arrays_become_plain_numbers():
    assert repr(predict("clip.ratio", torch.tensor(0.5))) == "kept: clip.ratio = 0.5"
    assert repr(predict("clip.ratio", np.float64(0.5))) == "kept: clip.ratio = 0.5"
    assert type(compare("clip.ratio", np.float64(0.5)).measured) is float


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.80801, 3, "0.808"),
        (466.51, 3, "467"),
        (12345.6, 3, "12346"),
        (0.5, 3, "0.5"),
        (-0.0, 3, "0"),
        (1.2345e-7, 2, "1.2e-07"),
        (9.9996, 4, "10"),
        (7, 1, "7"),
        (math.nan, 3, "nan"),
    ],
)
def test_numbers_are_written_with_few_digits(value, digits, text):
    assert progress.significant(value, digits=digits) == text


@given(st.floats(min_value=1e-4, max_value=1e6), st.integers(1, 4))
def test_a_written_number_is_within_half_a_digit_of_the_number(value, digits):
    written = float(progress.significant(value, digits=digits))
    assert abs(written - value) <= 0.5001 * 10 ** (math.floor(math.log10(value)) + 1 - digits)


@pytest.mark.messages
def test_what_cannot_be_kept_is_refused():
    with pytest.raises(TypeError, match="expected a number"):
        predict("clip.ratio", [1, 2])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="expected 1 to 4"):
        compare("clip.ratio", 1.0, digits=9)


@pytest.mark.messages
@pytest.mark.parametrize("id", ["ratio", "nolesson.ratio", "clip.", "Clip.ratio", "08.ratio", 3])
@pytest.mark.parametrize("call", [lambda id: predict(id, 1), reset, pass_check, quiz])
def test_an_id_must_name_a_lesson(id, call):
    with pytest.raises(ValueError, match=r"lesson|expected"):
        call(id)


# --- quizzes -------------------------------------------------------------------------------


def test_without_an_answer_the_question_and_its_options_are_shown():
    text = repr(quiz("clip.edge"))
    assert text.splitlines()[:3] == ["Which way?", "  a) Up", "  b) Down"]
    assert "more than zero" not in text
    assert "minus sign" not in text


def test_an_answer_is_judged_and_the_chosen_option_explained():
    right, wrong = quiz("clip.edge", "a"), quiz("clip.edge", " B ")
    assert repr(right) == "✔ right: a) Up\nIt goes up, since one is more than zero."
    assert repr(wrong) == "✘ not yet: b) Down\nDown would need a minus sign."
    assert "It goes up" not in repr(wrong)
    assert "Down would need a minus sign." in wrong._repr_markdown_()


@pytest.mark.messages
@pytest.mark.parametrize("answer", ["c", "", 1, "ab"])
def test_a_letter_that_is_no_option_is_refused(answer):
    with pytest.raises(ValueError, match="expected one of a, b"):
        quiz("clip.edge", answer)


@pytest.mark.messages
def test_an_unknown_quiz_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=re.escape("['clip.edge']")):
        quiz("clip.egde")


def options(*right: bool, **words: str):
    texts = {"text": "words", "explanation": "because"} | words
    return {
        letter: (texts["text"], texts["explanation"], is_right)
        for letter, is_right in zip("abcdef", right, strict=False)
    }


@pytest.mark.messages
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": options(False, False)}, "exactly one"),
        ({"options": options(True, True)}, "exactly one"),
        ({"options": options(True)}, "expected a, b"),
        ({"options": dict(reversed(options(True, False).items()))}, "expected a, b"),
        ({"options": options(True, False, explanation=" ")}, "expected words in both"),
        ({"options": options(True, False, text="")}, "expected words in both"),
        ({"question": ""}, "expected a question"),
        ({"id": "edge"}, "lesson.item"),
        ({"id": "cliip.edge"}, "'clip'"),
    ],
)
def test_a_malformed_quiz_is_refused(change, words):
    fields = {"id": "clip.x", "question": "Which?", "options": options(True, False)}
    Quiz(**fields)
    with pytest.raises(ValueError, match=words):
        Quiz(**(fields | change))


@pytest.mark.messages
def test_ids_of_quizzes_are_unique_and_stand_with_their_lesson():
    assert list(collect([SAMPLE], lesson="clip")) == ["clip.edge"]
    with pytest.raises(ValueError, match="unique"):
        collect([SAMPLE, SAMPLE])
    with pytest.raises(ValueError, match="stands among those of gae"):
        collect([SAMPLE], lesson="gae")


def test_the_quizzes_of_the_course_load():
    for id, item in all_quizzes().items():
        assert id == check_id(item.id)


def test_a_module_of_quizzes_is_found_by_its_lesson(tmp_path, monkeypatch):
    text = (
        "from ppo_lessons.quizzes import Quiz\n"
        "QUIZZES = (Quiz(id='staleness.age', question='How old?', "
        "options={'a': ('new', 'no', False), 'b': ('old', 'yes', True)}),)\n"
    )
    (tmp_path / "staleness.py").write_text(text)
    monkeypatch.setattr(quizzes, "__path__", [str(tmp_path)])
    monkeypatch.setitem(sys.modules, "ppo_lessons.quizzes.staleness", None)  # put back afterwards
    del sys.modules["ppo_lessons.quizzes.staleness"]
    assert list(all_quizzes.__wrapped__()) == ["staleness.age"]
    (tmp_path / "nolesson.py").write_text(text)
    with pytest.raises(ValueError, match="no lesson"):
        all_quizzes.__wrapped__()


# --- the store -----------------------------------------------------------------------------


def test_without_a_home_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    predict("clip.ratio", 1.2)
    quiz("clip.edge", "a")
    assert list(tmp_path.iterdir()) == []
    assert progress.store_path() is None
    assert "clip: 1 predictions, 1 of 1 quizzes right" in repr(summary())


def test_the_store_holds_what_happened_with_its_schema_version(store):
    predict("clip.ratio", 1.2, unit="x")
    quiz("clip.edge", "b")
    pass_check("gae.masks")
    assert json.loads(store.read_text()) == {
        "version": 1,
        "predictions": {"clip.ratio": {"value": 1.2, "unit": "x"}},
        "quizzes": {"clip.edge": {"answer": "b", "right": False}},
        "checks": {"gae.masks": {"passed": True}},
    }


def test_a_new_kernel_does_not_compare_with_an_earlier_guess(store):
    predict("clip.ratio", 1.2, unit="x")
    forget_session()
    assert repr(compare("clip.ratio", 1.5)) == "clip.ratio: measured 1.5; you made no prediction."
    assert json.loads(store.read_text())["predictions"]["clip.ratio"]["value"] == 1.2


def test_a_notebook_that_runs_from_the_top_shows_nothing_of_an_earlier_session(store):
    def run() -> list[str]:
        forget_session()
        return [
            repr(compare("clip.ratio", 1.5)),
            repr(predict("clip.ratio", None)),
            repr(compare("clip.ratio", 1.5)),
            repr(quiz("clip.edge")),
        ]

    clean = run()
    predict("clip.ratio", 1.2)
    quiz("clip.edge", "a")
    assert run() == clean
    assert json.loads(store.read_text())["predictions"]["clip.ratio"]["value"] == 1.2


def test_reset_forgets_in_the_session_and_in_the_store(store):
    predict("clip.ratio", 1.2)
    predict("clip.other", 1.3)
    assert repr(reset("clip.ratio")) == "forgotten: clip.ratio"
    assert list(json.loads(store.read_text())["predictions"]) == ["clip.other"]
    assert "no prediction" in repr(compare("clip.ratio", 1.5))
    assert "you said 1.3" in repr(compare("clip.other", 1.5))


def test_the_summary_counts_by_lesson_and_joins_store_and_session(store):
    predict("clip.ratio", 1.2)
    forget_session()
    predict("gae.sum", None)
    quiz("clip.edge", "b")
    pass_check("clip.mine")
    assert summary().rows == (("clip", 1, 0, 1, 1), ("gae", 0, 0, 0, 0))
    assert "| clip | 1 | 0 of 1 | 1 |" in summary()._repr_markdown_()


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'{"version": 99}',
        b'{"version": 1, "predictions": 3, "quizzes": {}, "checks": {}}',
        b'{"version": 1, "predictions": {"clip.ratio": 3}, "quizzes": {}, "checks": {}}',
        b'{"version": 1, "predictions": {}, "quizzes": {"clip.edge": {}}, "checks": {}}',
    ],
)
def test_a_damaged_store_is_moved_aside_and_never_deleted(store, content, capsys):
    for number in (1, 2):
        store.parent.mkdir(exist_ok=True)
        store.write_bytes(content)
        predict("clip.ratio", 1.2)
        aside = store.with_name(f"progress.damaged-{number}.json")
        assert aside.read_bytes() == content
        assert aside.name in capsys.readouterr().out
        assert json.loads(store.read_text())["predictions"]["clip.ratio"]["value"] == 1.2


def test_a_crash_while_writing_leaves_the_old_store(store, monkeypatch):
    predict("clip.ratio", 1.2)
    before = store.read_text()

    def crash(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        predict("clip.ratio", 9.9)
    assert store.read_text() == before
    assert not list(store.parent.glob("*.tmp")) + list(store.parent.glob(".*.tmp"))


def test_a_home_that_cannot_be_written_is_said_and_not_fatal(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path / "file"))
    assert repr(predict("clip.ratio", 1.2)) == "kept: clip.ratio = 1.2"
    assert "in memory only" in capsys.readouterr().out
    assert "you said 1.2" in repr(compare("clip.ratio", 1.5))


def _write_many(home: str, kernel: int) -> None:
    os.environ["PPO_LESSONS_HOME"] = home
    for number in range(20):
        predict(f"clip.kernel_{kernel}_{number}", number)


def test_two_kernels_do_not_lose_each_others_entries(store):
    context = multiprocessing.get_context("spawn")
    kernels = [
        context.Process(target=_write_many, args=(str(store.parent), kernel)) for kernel in (0, 1)
    ]
    for kernel in kernels:
        kernel.start()
    for kernel in kernels:
        kernel.join(timeout=120)
        assert kernel.exitcode == 0
    assert len(json.loads(store.read_text())["predictions"]) == 40
