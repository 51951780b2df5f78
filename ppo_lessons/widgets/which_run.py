"""Which run is failing? Six recorded RLHF runs without a name, each beside a healthy one.

The runs come from `python -m benchmarks.rlhf`, their first 24 iterations. Five panels show what a
training run shows; the sixth, the share of right answers on held-out prompts, stays closed until
the reader has said what is the matter.
"""

from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.which_run import which_run_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Whole

# letter -> setting and seed in the record, what is the matter, and the panel in which it shows
RUNS = {
    "a": ("beta 0", "0", "hacked", "kl_reference"),
    "b": ("beta 1", "2", "healthy", ""),
    "c": ("4x4, beta 0.3, no clip", "0", "too_far", "fraction_outside"),
    "d": ("beta 3", "0", "held_back", "score"),
    "e": ("beta 0, clip 0.05", "1", "hacked", "kl_reference"),
    "f": ("beta 0.3, no clip", "1", "healthy", ""),
}
HEALTHY = ("beta 0.3", "2")  # the run that all are drawn beside
VERDICTS = ("healthy", "hacked", "too_far", "held_back")
ITERATIONS = (1, *range(2, 25, 2))  # at which the record looks
# panel -> digits that are shown
DIGITS = {
    "score": 2,
    "kl_reference": 2,
    "length": 1,
    "fraction_outside": 2,
    "ev_monte_carlo": 2,
    "success": 2,
}
CLOSED = "success"  # the panel that stays closed until the reader has spoken


@cache
def runs() -> dict[str, dict[str, list[float]]]:
    """Read what the panels show, of the healthy run and of the six by letter.

    Returns:
        For each run and panel one number per look; 0 where none could be computed.
    """
    study = recorded("rlhf")["runs"]
    places = {"healthy": HEALTHY} | {letter: each[:2] for letter, each in RUNS.items()}
    return {letter: panels_of(study[name][seed]) for letter, (name, seed) in places.items()}


def panels_of(run: dict[str, Any]) -> dict[str, list[float]]:
    """Give what the panels show of one run at the looks up to iteration 24."""
    curves = run["curves"]
    return {
        metric: [round(number or 0.0, 4) for number in curves[metric][: len(ITERATIONS)]]
        for metric in DIGITS
    }


def verdict(panels: dict[str, list[float]], start: float) -> str:
    """Say what is the matter with a run, from its held-out answers and the clip's range.

    Args:
        panels: as `panels_of` gives them.
        start: share of right answers before training.

    Returns:
        "healthy" if the share of right answers ends 0.15 or more above the start, "held_back" if
        it has moved less. If it ends 0.1 or more below: "too_far" if over the first four looks
        nearly half of the samples were outside of the clip's range, else "hacked".
    """
    end, outside = panels["success"][-1], panels["fraction_outside"][:4]
    if end < start - 0.1:
        return "too_far" if sum(outside) / len(outside) > 0.45 else "hacked"
    return "healthy" if end > start + 0.15 else "held_back"


def _start(**changes: Any) -> dict[str, Any]:
    return {"run": "a", "look": 7, "guess": None, "revealed": True} | changes


class WhichRun(TeachingWidget):
    """Show the dials of an RLHF run beside a healthy one, and ask what is the matter with it.

        w = WhichRun(keep_as="evidence.which_run")
        w.run, w.look, w.iteration, w.verdict, w.pairs()

    Args:
        run: one of "a" to "f".
        look: at which the numbers are read off, from 1 to 13; the iterations are 1, 2, 4, …, 24.
        guess: what is the matter, as the reader said, one of `VERDICTS`; None while there is none.
        revealed: whether the verdict, the setting and the held-out answers are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "which_run"
    STATE = ("run", "look", "guess", "revealed")
    STATES = {"guess": _start(revealed=False)} | {
        letter: _start(run=letter, look=len(ITERATIONS) - 1) for letter in RUNS
    }
    PARTS = ("which_run_panels", "which_run")
    DRAGS: ClassVar = (Drag("a", "input[type=range]", 0.02, 0.98, values=len(ITERATIONS)),)

    run = Choice("a", options=tuple(RUNS))
    look = Whole(7, low=1, high=len(ITERATIONS))
    guess = Choice(None, options=VERDICTS)
    study = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.study = {
            "runs": runs(),
            "verdicts": {letter: list(each[2:]) for letter, each in RUNS.items()},
            "iterations": list(ITERATIONS),
        }

    @property
    def iteration(self) -> int:
        """The iteration of this look."""
        return ITERATIONS[self.look - 1]

    @property
    def verdict(self) -> str:
        """What is the matter with this run, one of `VERDICTS`."""
        return RUNS[self.run][2]

    @property
    def answer(self) -> str:
        """What the guess is compared with."""
        return self.verdict

    def pairs(self) -> dict[str, tuple[float, float]]:
        """Give each panel's numbers at this look, of the healthy run and of this one."""
        both = self.study["runs"]["healthy"], self.study["runs"][self.run]
        at = self.look - 1
        return {metric: (both[0][metric][at], both[1][metric][at]) for metric in DIGITS}

    def numbers(self) -> dict[str, Any]:
        """Compute what the script shows for the same state."""
        return {metric: list(pair) for metric, pair in self.pairs().items()}

    def sentence(self) -> str:
        """Say what is the matter, in which dial it shows, and how many answers are right."""
        panel = RUNS[self.run][3]
        one, two = (written(number, DIGITS[panel or "score"]) for number in self._pair(panel))
        before, right = (written(100 * number, 0) for number in self._pair("success"))
        return self._say(
            "sentence" if panel else "sentence_nowhere",
            run=self._say(f"run_{self.run}"),
            verdict=self._say(f"verdict_{self.verdict}"),
            setting=self._say(f"setting_{self.run}"),
            panel=self._say(f"panel_{panel}") if panel else "",
            iteration=self.iteration,
            one=one,
            two=two,
            right=right,
            before=before,
        )

    def _pair(self, panel: str) -> tuple[float, float]:
        return self.pairs()[panel or "score"]

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return which_run_figure(
            self.study["runs"]["healthy"],
            self.study["runs"][self.run],
            look=self.look,
            iterations=ITERATIONS,
            names={metric: self._say(f"panel_{metric}") for metric in DIGITS},
            betrayed_by=RUNS[self.run][3],
            title=f"{self._say('run')} {self._say(f'run_{self.run}')}: "
            f"{self._say(f'verdict_{self.verdict}')} ({self._say(f'setting_{self.run}')})",
        )
