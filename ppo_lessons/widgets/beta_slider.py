"""What is a nat worth? Recorded runs of RLHF at six prices of distance, three seeds each.

The runs come from `python -m benchmarks.rlhf`: what the judge says, how many answers are right, how
far the policy is from its reference, and how long its answers are.
"""

import math
from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.beta_slider import beta_slider_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import OneOf, Whole

BETAS = (0.0, 0.1, 0.2, 0.3, 1.0, 3.0)
SEEDS = ("0", "1", "2")
METRICS = ("score", "success", "kl_reference", "length")


@cache
def recording() -> dict[str, Any]:
    """Read the recorded runs, without what tells of the machine.

    Returns:
        `iterations`, and `runs`: for each price a dict of metrics, each a list of three curves.
    """
    runs = [recorded("rlhf")["runs"][f"beta {beta:g}"] for beta in BETAS]
    curves = [[seeds[seed]["curves"] for seed in SEEDS] for seeds in runs]
    return {
        "iterations": curves[0][0]["iteration"],
        "runs": [{name: [each[name] for each in row] for name in METRICS} for row in curves],
    }


def percent(share: float) -> int:
    """Give a share in whole per cent; halves go up."""
    return math.floor(100 * share + 0.5)


def _start(**changes: Any) -> dict[str, Any]:
    return {"beta": 0.0, "guess": None, "revealed": True} | changes


class BetaSlider(TeachingWidget):
    """Show recorded runs at a price of distance, and let the price be moved.

        w = BetaSlider(keep_as="rlhf.price_of_nothing")
        w.beta, w.answer, w.best, w.ends("kl_reference")

    Args:
        beta: β, one of `BETAS` (reward per nat).
        guess: right answers at the end (%), as the reader said; None while there is no guess.
        revealed: whether the curve of right answers is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "beta_slider"
    STATE = ("beta", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "free": _start(),
        "cheap": _start(beta=0.1),
        "better": _start(beta=0.2),
        "held": _start(beta=0.3),
        "dear": _start(beta=3.0),
    }
    PARTS = ("grid_slider", "beta_slider")
    GUESS_UNIT = "%"
    DRAGS: ClassVar = (Drag("free", "input[type=range]", 0.01, 0.99, values=len(BETAS)),)

    beta = OneOf(0.0, options=BETAS)
    guess = Whole(None, low=0, high=100)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = recording()

    @property
    def curves(self) -> dict[str, list[list[float]]]:
        """Three curves of each metric, at this price."""
        return self.recording["runs"][BETAS.index(self.beta)]

    def ends(self, metric: str) -> list[float]:
        """Give a metric in the last iteration, of three seeds."""
        return [curve[-1] for curve in self.curves[metric]]

    @property
    def answer(self) -> int:
        """What the guess is compared with: right answers at the end, middle seed (%)."""
        return percent(sorted(self.ends("success"))[1])

    @property
    def best(self) -> int:
        """The most right answers on the way, middle seed (%)."""
        return percent(sorted(max(curve) for curve in self.curves["success"])[1])

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {name: self.ends(name) for name in METRICS} | {
            "answer": self.answer,
            "best": self.best,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        score, kl, length = (
            written(sorted(self.ends(name))[1], digits)
            for name, digits in (("score", 1), ("kl_reference", 1), ("length", 1))
        )
        return say(
            self.NAME,
            "sentence",
            language=self.language,
            beta=written(self.beta, 1),
            score=score,
            kl=kl,
            length=length,
            answer=self.answer,
            best=self.best,
        )

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        names = {name: say(self.NAME, f"strip_{name}", language=self.language) for name in METRICS}
        return beta_slider_figure(
            self.recording["iterations"],
            {names[name]: self.curves[name] for name in METRICS},
            log=(names["kl_reference"],),
            title=say(
                self.NAME, "picture_title", language=self.language, beta=written(self.beta, 1)
            ),
            xlabel=say(self.NAME, "iteration", language=self.language),
        )
