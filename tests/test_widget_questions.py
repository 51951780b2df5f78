"""Quiz and Predict: what they store, what they say, and how they are answered."""

import pytest

from ppo_lessons import compare, progress
from ppo_lessons.widgets import Predict, Quiz

QUIZ = "training_loop.review_ratio"  # its right option is c

pytestmark = pytest.mark.usefixtures("no_store")


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


# --- in a browser ----------------------------------------------------------------------------


def test_a_question_is_answered_with_keys_and_explained(visit):
    with visit(Quiz(QUIZ)) as seen:
        seen.page.get_by_role("radio").first.focus()
        seen.page.keyboard.press("Space")
        seen.button("Answer").click()
        assert seen.status().startswith("✘ not yet: a) 0.25.")
        assert seen.page.get_by_text("four times as likely").is_visible()
        seen.button("Answer again").click()
        seen.page.get_by_label("c) 4").check()
        seen.button("Answer").click()
        assert seen.status().startswith("✔ right: c) 4.")


def test_a_question_without_a_choice_asks_for_one(visit):
    with visit(Quiz(QUIZ)) as seen:
        seen.button("Answer").click()
        assert seen.status() == "Choose an option, then press Answer."


def test_a_guess_is_kept_and_compared(visit):
    with visit(Predict("clip.ratio", "How far does the ratio get?", unit="times")) as seen:
        assert seen.status() == "No guess yet."
        seen.page.get_by_label("Your guess in times").fill("1.2")
        seen.page.keyboard.press("Enter")
        assert seen.status() == "Kept: 1.2 times."
    with visit(Predict("clip.direction", "Which way?", options=["up", "down"])) as seen:
        seen.page.get_by_role("combobox").select_option("up")
        seen.button("Keep my guess").click()
        assert seen.status() == "Kept: up."
    with visit(Predict("clip.ratio", "How far?", guess=1.2, measured=2.766)) as seen:
        assert seen.status() == "You said 1.2, measured 2.77."
