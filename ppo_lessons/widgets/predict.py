"""A guess before the measurement: the same that `ppo_lessons.predict` keeps from a cell."""

from typing import Any

import traitlets

from ppo_lessons.progress import Comparison, Kept, predict
from ppo_lessons.quizzes import check_id
from ppo_lessons.widgets.base import Widget
from ppo_lessons.widgets.messages import say


class Predict(Widget):
    """Ask for a guess, keep it, and compare once the measurement is known.

        w = Predict("clip.ratio", "How far does the ratio get?")
        w.guess                              the guess, None before
        w.measured = 1.68                    shows both

    Args:
        id: `lesson.item`.
        question: what is to be guessed.
        options: words to choose from; a number is asked for if there are none.
        unit: what the number counts.
        guess: the reader's guess; None while there is none.
        measured: what came out; None while it is not known.
    """

    NAME = "predict"
    STATE = ("id", "question", "options", "unit", "guess", "measured")

    id = traitlets.Unicode().tag(sync=True)
    question = traitlets.Unicode("").tag(sync=True)
    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    unit = traitlets.Unicode("").tag(sync=True)
    guess = traitlets.Union(
        [traitlets.Float(), traitlets.Unicode()], allow_none=True, default_value=None
    ).tag(sync=True)
    measured = traitlets.Union(
        [traitlets.Float(), traitlets.Unicode()], allow_none=True, default_value=None
    ).tag(sync=True)

    def __init__(self, id: str, question: str = "", **state: Any):
        super().__init__(id=check_id(id), question=question, **state)

    @traitlets.validate("guess", "measured")
    def _a_known_option(self, proposal: Any) -> Any:
        value = proposal["value"]
        if self.options and value is not None and value not in self.options:
            raise ValueError(
                f"{proposal['trait'].name} is {value!r}; expected one of {', '.join(self.options)}"
            )
        return value

    @traitlets.observe("guess")
    def _keep_guess(self, _: Any) -> None:
        # May run on another thread while a cell is busy: it stores, and touches nothing else.
        if self.guess is not None:
            predict(self.id, self.guess, unit=self.unit)

    def sentence(self) -> str:
        """Say the question and what became of it, in the words of `ppo_lessons.predict`."""
        if self.measured is not None:
            words = repr(Comparison(self.id, self.guess, self.measured, self.unit))
        elif self.guess is not None:
            words = repr(Kept(self.id, self.guess, self.unit))
        else:
            words = say(self.NAME, "not_yet", language=self.language, id=self.id)
        return f"{self.question}\n{words}".strip()

    def _static_parts(self) -> dict[str, str]:
        return {"text/markdown": self.sentence().replace("\n", "\n\n")}

    def title(self) -> str:
        """Name the widget for people."""
        return f"{super().title()}: {self.id}"
