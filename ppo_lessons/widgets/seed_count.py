"""Which setting is better, and how many seeds say so? Intervals that shrink as seeds are added.

Each setting was run with 64 seeds on CartPole, once: `seed_count.json` in `ppo_lessons/recorded`,
from `python -m benchmarks.seed_count`. The reader draws some of the seeds, as somebody does who has
time for a few runs. Intervals have no closed form, so they are a grid: for every setting, draw and
number of seeds, `stratified_bootstrap` with the generator of that draw.
"""

from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.ablations.statistics import (
    Interval,
    apart,
    interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
)
from ppo_lessons.figures.seed_count import seed_count_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, OneOf

NAMES = ("clip 0.2", "clip 0.1", "clip 0.3", "no clip", "fixed penalty", "λ = 1")
NUM_SEEDS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
DRAWS = tuple(range(1, 9))
SEEDS, RESAMPLES, CONFIDENCE, DIGITS = 64, 1000, 0.95, 4
VERDICTS = ("above", "below", "inconclusive")


def redrawn(draw: int) -> dict[str, Any]:
    """Give the settings with which the intervals of a draw were computed.

    Args:
        draw: its number.
    """
    generator = torch.Generator().manual_seed(draw)
    return {"resamples": RESAMPLES, "confidence": CONFIDENCE, "generator": generator}


@cache
def recording() -> dict[str, Any]:
    """Read what was run, and compute the intervals.

    Returns:
        `scores`, 64 for each setting; `orders`, in which each draw goes through them; `intervals`
        by setting, side (the second goes backwards), draw and number of seeds.
    """
    scores = [recorded("seed_count")["scores"][name] for name in NAMES]
    orders = [
        torch.randperm(SEEDS, generator=torch.Generator().manual_seed(draw)).tolist()
        for draw in DRAWS
    ]
    intervals = [
        [
            [_intervals(torch.tensor(runs, dtype=torch.float64)[order], draw) for draw, order in
             zip(DRAWS, side, strict=True)]
            for side in (orders, [order[::-1] for order in orders])
        ]
        for runs in scores
    ]  # fmt: skip
    return {"scores": scores, "orders": orders, "intervals": intervals}


def _intervals(runs: Tensor, draw: int) -> list[list[float]]:
    """Intervals of the interquartile mean of the first few runs, for each number of them."""
    found = [
        stratified_bootstrap(runs[:count], interquartile_mean, **redrawn(draw))
        for count in NUM_SEEDS
    ]
    return [[round(end, DIGITS) for end in interval] for interval in found]


def _start(**changes: Any) -> dict[str, Any]:
    state = {"first": "clip 0.2", "second": "no clip", "num_seeds": 3, "draw": 1}
    return state | {"guess": None, "revealed": True} | changes


class SeedCount(TeachingWidget):
    """Show two settings, some of their runs, and what may be concluded from these.

        w = SeedCount(keep_as="ablations.what_three_seeds_say")
        w.first_iqm, w.first_interval, w.improvement, w.verdict

    Args:
        first: name of a setting, one of `NAMES`.
        second: name of a setting; the same one compares it with itself, on other seeds.
        num_seeds: how many runs of each, from 3 to 64.
        draw: which of the seeds, from 1 to 8.
        guess: what may be said of the first; None while there is no guess.
        revealed: whether the intervals are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "seed_count"
    STATE = ("first", "second", "num_seeds", "draw", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "three": _start(),
        "sixteen": _start(num_seeds=16),
        "all": _start(num_seeds=64),
        "near": _start(second="clip 0.3", num_seeds=16),
        "near_all": _start(second="clip 0.3", num_seeds=64),
        "same": _start(second="clip 0.2", num_seeds=3),
    }
    PARTS = ("grid_slider", "seed_count")
    DRAGS: ClassVar = (Drag("three", "input[type=range]", 0.01, 0.99, index=0, values=10),)

    first = Choice("clip 0.2", options=NAMES)
    second = Choice("no clip", options=NAMES)
    num_seeds = OneOf(3, options=NUM_SEEDS)
    draw = OneOf(1, options=DRAWS)
    guess = Choice(None, options=VERDICTS)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = recording()

    def _scores(self, name: str, *, backwards: bool) -> list[float]:
        """The runs that are drawn, of one side."""
        order = self.recording["orders"][self.draw - 1]
        runs = self.recording["scores"][NAMES.index(name)]
        return [runs[place] for place in (order[::-1] if backwards else order)][: self.num_seeds]

    def _curve(self, name: str, *, backwards: bool) -> list[list[float]]:
        """The intervals for each number of seeds, of one side."""
        return self.recording["intervals"][NAMES.index(name)][int(backwards)][self.draw - 1]

    @property
    def first_scores(self) -> list[float]:
        """Of the runs of the first setting that are drawn (reward)."""
        return self._scores(self.first, backwards=False)

    @property
    def second_scores(self) -> list[float]:
        """Of the runs of the second setting that are drawn (reward)."""
        return self._scores(self.second, backwards=True)

    @property
    def first_iqm(self) -> float:
        """Interquartile mean of `first_scores` (reward)."""
        return _iqm(self.first_scores)

    @property
    def second_iqm(self) -> float:
        """Interquartile mean of `second_scores` (reward)."""
        return _iqm(self.second_scores)

    @property
    def curves(self) -> list[list[list[float]]]:
        """Intervals of the first and of the second, for each number of seeds (reward)."""
        return [self._curve(self.first, backwards=False), self._curve(self.second, backwards=True)]

    @property
    def first_interval(self) -> list[float]:
        """Interval of `first_iqm` (reward)."""
        return self.curves[0][NUM_SEEDS.index(self.num_seeds)]

    @property
    def second_interval(self) -> list[float]:
        """Interval of `second_iqm` (reward)."""
        return self.curves[1][NUM_SEEDS.index(self.num_seeds)]

    @property
    def verdict(self) -> str:
        """What the intervals say of the first: above, below or inconclusive."""
        return apart(Interval(*self.first_interval), Interval(*self.second_interval))

    @property
    def improvement(self) -> float:
        """Probability that a run of the first beats one of the second, among those drawn."""
        drawn = (self.first_scores, self.second_scores)
        return probability_of_improvement(*(torch.tensor(runs).double() for runs in drawn))

    @property
    def tally(self) -> list[int]:
        """How many of the draws, with as many seeds, say above, below, inconclusive."""
        place, intervals = NUM_SEEDS.index(self.num_seeds), self.recording["intervals"]
        said = [
            apart(Interval(*one[place]), Interval(*two[place]))
            for one, two in zip(
                intervals[NAMES.index(self.first)][0],
                intervals[NAMES.index(self.second)][1],
                strict=True,
            )
        ]
        return [said.count(verdict) for verdict in VERDICTS]

    @property
    def answer(self) -> str:
        """What the guess is compared with: `verdict`."""
        return self.verdict

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        names = ("first_scores", "second_scores", "first_iqm", "second_iqm", "first_interval")
        more = ("second_interval", "verdict", "improvement", "tally", "curves")
        return {name: getattr(self, name) for name in (*names, *more)}

    def sentence(self) -> str:
        """Say what the picture shows."""
        first, second = self.first_interval, self.second_interval
        above, below, open_ = self.tally
        return self._say(
            "sentence",
            num_seeds=self.num_seeds,
            first=self.first,
            second=self.second,
            first_interval=self._between(first),
            second_interval=self._between(second),
            verdict=self._say(f"verdict_{self.verdict}"),
            above=above,
            below=below,
            open=open_,
        )

    def _between(self, interval: list[float]) -> str:
        low, high = (written(end, 0) for end in interval)
        return self._say("between", low=low, high=high)

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return seed_count_figure(
            [self.first_scores, self.second_scores],
            [self.first_iqm, self.second_iqm],
            self.curves,
            all_num_seeds=NUM_SEEDS,
            num_seeds=self.num_seeds,
            names=[
                self._say("side_first", setting=self.first),
                self._say("side_second", setting=self.second),
            ],
            verdict=self._say(f"verdict_{self.verdict}"),
        )


def _iqm(runs: list[float]) -> float:
    return interquartile_mean(torch.tensor(runs, dtype=torch.float64)).item()
