"""How often is each sample used? A batch of N × T samples, K epochs of M minibatches.

Who is dealt into which minibatch, and how far the ratios spread, is recorded from real squeeze
stages on CartPole: `batch_ledger.json` in `ppo_lessons/recorded`, from `python -m
benchmarks.squeeze`.
"""

from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.batch_ledger import batch_ledger_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import OneOf, Whole

NUM_ENVS, NUM_STEPS, NUM_MINIBATCHES = (4, 8), (8, 16), (1, 2, 4, 8)
MOST_EPOCHS = 8
MOST_UPDATES = MOST_EPOCHS * NUM_MINIBATCHES[-1]


@cache
def squeezes() -> dict[str, Any]:
    """Read what was recorded.

    Returns:
        `clip_epsilon`, and `squeezes` by "N,T,M": `dealt`, for each epoch one digit for each
        sample, the minibatch that it was in; `ratios`, before the first step and after each, the
        lowest, the first tenth, the last tenth and the highest ratio of the batch.
    """
    found = recorded("batch_ledger")
    return {name: found[name] for name in ("clip_epsilon", "squeezes")}


def _start(**changes: Any) -> dict[str, Any]:
    state = {"num_envs": 8, "num_steps": 16, "num_epochs": 4, "num_minibatches": 4, "step": 6}
    return state | {"guess": None, "revealed": True} | changes


class BatchLedger(TeachingWidget):
    """Show how often each sample of a batch has been used, and how far the ratios have spread.

        w = BatchLedger(keep_as="training_loop.how_many_steps")
        w.samples, w.updates, w.minibatch_size, w.visits

    Args:
        num_envs: N, 4 or 8.
        num_steps: T, 8 or 16.
        num_epochs: K, from 1 to 8.
        num_minibatches: M, 1, 2, 4 or 8.
        step: optimiser steps that are made, from 0; those beyond the last are not counted.
        guess: optimiser steps in all, as the reader said; None while there is no guess.
        revealed: whether the ledger is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "batch_ledger"
    STATE = (
        "num_envs",
        "num_steps",
        "num_epochs",
        "num_minibatches",
        "step",
        "guess",
        "revealed",
    )
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "untouched": _start(step=0),
        "first": _start(step=1),
        "middle": _start(),
        "all": _start(step=16),
        "large": _start(num_minibatches=1, num_epochs=8, step=8),
        "small": _start(num_minibatches=8, num_epochs=8, step=29),
    }
    PARTS = ("grid_slider", "batch_ledger")
    GUESS_UNIT = "steps"
    DRAGS: ClassVar = (Drag("small", "input[type=range]", 0.01, 0.99, index=2, values=45),)

    num_envs = OneOf(8, options=NUM_ENVS)
    num_steps = OneOf(16, options=NUM_STEPS)
    num_epochs = Whole(4, low=1, high=MOST_EPOCHS)
    num_minibatches = OneOf(4, options=NUM_MINIBATCHES)
    step = Whole(6, low=0, high=MOST_UPDATES)
    guess = Whole(None, low=1, high=10_000)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = squeezes()

    def _squeeze(self) -> dict[str, Any]:
        key = f"{self.num_envs},{self.num_steps},{self.num_minibatches}"
        return self.recording["squeezes"][key]

    @property
    def samples(self) -> int:
        """T·N, the size of the batch."""
        return self.num_steps * self.num_envs

    @property
    def updates(self) -> int:
        """K·M, optimiser steps on this batch."""
        return self.num_epochs * self.num_minibatches

    @property
    def minibatch_size(self) -> int:
        """Samples of one optimiser step."""
        return self.samples // self.num_minibatches

    @property
    def made(self) -> int:
        """Optimiser steps that have been made."""
        return min(self.step, self.updates)

    @property
    def visits(self) -> list[int]:
        """How often each sample was used so far; time first, then environments."""
        epochs, begun = divmod(self.made, self.num_minibatches)
        if begun == 0:
            return [epochs] * self.samples
        return [epochs + (int(place) < begun) for place in self._squeeze()["dealt"][epochs]]

    @property
    def latest(self) -> list[bool]:
        """Whether each sample was in the minibatch of the latest step."""
        if self.made == 0:
            return [False] * self.samples
        epoch, place = divmod(self.made - 1, self.num_minibatches)
        return [int(each) == place for each in self._squeeze()["dealt"][epoch]]

    @property
    def ratios(self) -> list[float]:
        """Lowest ratio, first tenth, last tenth, highest ratio, after the steps that are made."""
        return self._squeeze()["ratios"][self.made]

    @property
    def answer(self) -> int:
        """What the guess is compared with: `updates`."""
        return self.updates

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "samples": self.samples,
            "updates": self.updates,
            "minibatch_size": self.minibatch_size,
            "made": self.made,
            "visits": self.visits,
            "latest": self.latest,
            "ratios": self.ratios,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        visits = self.visits
        most = max(visits)
        ahead = visits.count(most)
        return self._say(
            "sentence",
            num_envs=self.num_envs,
            num_steps=self.num_steps,
            num_epochs=self.num_epochs,
            num_minibatches=self.num_minibatches,
            samples=self.samples,
            minibatch_size=self.minibatch_size,
            updates=self.updates,
            made=self.made,
            used=self._say("used_all", times=most)
            if ahead == self.samples
            else self._say(
                "used_some", ahead=ahead, times=most, others=self.samples - ahead, less=most - 1
            ),
            low=written(self.ratios[0], 2),
            high=written(self.ratios[3], 2),
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return batch_ledger_figure(
            self.visits,
            self.latest,
            self._squeeze()["ratios"][: self.updates + 1],
            num_envs=self.num_envs,
            num_epochs=self.num_epochs,
            made=self.made,
            clip_epsilon=self.recording["clip_epsilon"],
        )
