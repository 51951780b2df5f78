"""What happens during training? Two recorded runs side by side, iteration by iteration.

The runs come from `python -m benchmarks.runs`: return, KL, clip fractions and entropy, and what
policy and critic say of a grid of poles. The first run is always seed 1 with the usual settings.
"""

from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.run_scrubber import run_scrubber_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Whole

REFERENCE = "seed_1"
OTHERS = ("large_rate", "no_clip", "seed_2")
JUMP = 0.05  # nats; the KL of one iteration that is asked for
NUM_ITERATIONS = 48
# metric -> digits that are shown
DIGITS = {
    "episode_return": 0,
    "kl_k3": 4,
    "fraction_outside": 2,
    "fraction_zero_gradient": 2,
    "entropy": 2,
}


@cache
def runs() -> dict[str, Any]:
    """Read the recorded runs, without what tells of the machine.

    Returns:
        `angles` (rad), `velocities` (rad/s), and `runs`: for each name lists over the iterations.
    """
    study = recorded("runs")
    kept = (*DIGITS, "policy", "values")
    series = {
        name: {key: study["runs"][name][key] for key in kept} for name in (REFERENCE, *OTHERS)
    }
    return {"angles": study["angles"], "velocities": study["velocities"], "runs": series}


def first_above(numbers: list[float], limit: float) -> int:
    """Find the first iteration, from 1, whose number is above a limit; 0 if there is none."""
    return next((at for at, number in enumerate(numbers, 1) if number > limit), 0)


def _start(**changes: Any) -> dict[str, Any]:
    state = {"other": "large_rate", "iteration": 15, "guess": None, "revealed": True}
    return state | changes


class RunScrubber(TeachingWidget):
    """Show two recorded runs at one iteration, and let it be moved.

        w = RunScrubber(keep_as="training_loop.first_jump")
        w.other, w.iteration, w.first_jump, w.at("kl_k3")

    Args:
        other: the run beside seed 1: "large_rate", learning rate 0.05; "no_clip", the ratio
            without the clip; "seed_2", the same settings with another seed.
        iteration: after which the two are looked at, from 1 to 48.
        guess: the first iteration of the other run with kl_k3 > 0.05, as the reader said; 0 for
            never, None while there is no guess.
        revealed: whether KL is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "run_scrubber"
    STATE = ("other", "iteration", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "ahead": _start(),
        "jump": _start(iteration=10),
        "fallen": _start(iteration=25),
        "no_clip": _start(other="no_clip", iteration=1),
        "no_clip_end": _start(other="no_clip", iteration=48),
        "seed_2": _start(other="seed_2", iteration=48),
    }
    PARTS = ("run_scrubber_strips", "run_scrubber_maps", "run_scrubber")
    GUESS_UNIT = "iterations"
    DRAGS: ClassVar = (Drag("ahead", "input[type=range]", 0.02, 0.98, values=NUM_ITERATIONS),)

    other = Choice("large_rate", options=OTHERS)
    iteration = Whole(15, low=1, high=NUM_ITERATIONS)
    guess = Whole(None, low=0, high=NUM_ITERATIONS)
    study = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.study = runs()

    def pair(self, metric: str) -> list[Any]:
        """Give a metric after this iteration, of seed 1 and of the other run."""
        both = (REFERENCE, self.other)
        return [self.study["runs"][name][metric][self.iteration - 1] for name in both]

    @property
    def first_jump(self) -> int:
        """First iteration of the other run with kl_k3 > 0.05; 0 if there is none."""
        return first_above(self.study["runs"][self.other]["kl_k3"], JUMP)

    @property
    def answer(self) -> int:
        """What the guess is compared with: `first_jump`."""
        return self.first_jump

    def numbers(self) -> dict[str, Any]:
        """Compute what the script shows for the same state."""
        return {metric: self.pair(metric) for metric in DIGITS} | {"first_jump": self.first_jump}

    def sentence(self) -> str:
        """Say what the picture shows."""
        shown = {
            metric: [written(number, digits) for number in self.pair(metric)]
            for metric, digits in DIGITS.items()
        }
        return self._say(
            "sentence" if self.first_jump else "sentence_never",
            other=self._say(f"run_{self.other}"),
            iteration=self.iteration,
            return_one=shown["episode_return"][0],
            return_two=shown["episode_return"][1],
            kl_one=shown["kl_k3"][0],
            kl_two=shown["kl_k3"][1],
            entropy_one=shown["entropy"][0],
            entropy_two=shown["entropy"][1],
            jump=self.first_jump,
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        names = [REFERENCE, self.other]
        return run_scrubber_figure(
            {self._say(f"run_{name}"): self.study["runs"][name] for name in names},
            iteration=self.iteration,
            angles=self.study["angles"],
            velocities=self.study["velocities"],
            limit=JUMP,
        )
