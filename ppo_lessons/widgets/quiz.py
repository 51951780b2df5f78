"""A question with its options: the same that `ppo_lessons.quiz` asks in text."""

from typing import Any

import traitlets

from ppo_lessons.progress import Question, answer_quiz, quiz
from ppo_lessons.widgets.base import Widget


class Quiz(Widget):
    """Ask a question of a lesson; an answer is judged at once and kept.

    Args:
        id: of the quiz, as in "clip.upper_edge".
        answer: letter of the option chosen; "" while there is none.
    """

    NAME = "quiz"
    STATE = ("id", "answer")

    id = traitlets.Unicode().tag(sync=True)
    answer = traitlets.Unicode("").tag(sync=True)
    asked = traitlets.Unicode("").tag(sync=True)
    options = traitlets.List().tag(sync=True)

    def __init__(self, id: str, *, answer: str = "", **state: Any):
        question = quiz(id)
        assert isinstance(question, Question)
        self._question = question
        options = [
            {"letter": letter, "text": text, "why": why, "right": right}
            for letter, (text, why, right) in question.quiz.options.items()
        ]
        super().__init__(
            id=id, answer=answer, asked=question.quiz.question, options=options, **state
        )

    @traitlets.validate("answer")
    def _answer_is_an_option(self, proposal: Any) -> str:
        letter, known = proposal["value"], list(self._question.quiz.options)
        if letter and letter not in known:
            raise ValueError(
                f"quiz {self._question.quiz.id} got the answer {letter!r}; expected one of "
                f"{', '.join(known)}"
            )
        return letter

    @traitlets.observe("answer")
    def _keep_answer(self, _: Any) -> None:
        # May run on another thread while a cell is busy: it stores, and touches nothing else.
        if self.answer:
            answer_quiz(self._question.quiz, self.answer)

    def sentence(self) -> str:
        """Say the question, or the verdict, in the words of `ppo_lessons.quiz`."""
        return repr(self._shown())

    def title(self) -> str:
        """Name the widget for people."""
        return f"{super().title()}: {self.id}"

    def _static_parts(self) -> dict[str, str]:
        return {"text/markdown": self._shown()._repr_markdown_()}

    def _shown(self) -> Any:
        return quiz(self.id, self.answer) if self.answer else self._question
