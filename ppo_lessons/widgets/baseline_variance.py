"""Which baseline leaves the least noise? Two or three levers, and the exact variance of a push.

The policy has one parameter, the logit of lever 1: its score is 1 − π(1), that of any other lever
is −π(1). What the levers pay, how often lever 1 is pulled and the baseline are traits.
"""

from typing import Any

import torch
from torch import Tensor

from ppo_lessons.critic import optimal_baseline
from ppo_lessons.figures.baseline_variance import baseline_variance_figure
from ppo_lessons.mdp import mean_and_covariance
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Number, Numbers, OneOf

LARGEST = 20.0  # pays and baselines lie between −20 and 20
# The levers of lesson 05; the third joins them in one state.
LESSON = (1.0, 10.0, -8.0)


def _start(**changes: Any) -> dict[str, Any]:
    state = {
        "levers": 2,
        "pays": list(LESSON),
        "chance": 0.1,
        "baseline": 0.0,
        "guess": None,
        "revealed": True,
    }
    return state | changes


class BaselineVariance(TeachingWidget):
    """Show the variance of a push over the baseline, and let pays and policy be moved.

        w = BaselineVariance(keep_as="critic.moved_baseline")
        w.probabilities, w.scores, w.baseline, w.variance, w.best

    Args:
        levers: 2 or 3.
        pays: of three levers, from −20 to 20 (reward); with two, the last is left out.
        chance: probability of lever 1, from 0.02 to 0.98; the others share the rest evenly.
        baseline: b, subtracted from whatever a lever pays, from −20 to 20 (reward).
        guess: the baseline with the least variance, as the reader said; None while there is none.
        revealed: whether the variance is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "baseline_variance"
    STATE = ("levers", "pays", "chance", "baseline", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(pays=[2.0, 6.0, 4.0], chance=0.25, revealed=False),
        "none": _start(),
        "value": _start(baseline=1.9),
        "best": _start(baseline=9.1),
        "bad": _start(baseline=-20.0),
        "learned": _start(chance=0.9, baseline=9.1),
        "three": _start(levers=3, chance=0.3, baseline=5.9),
    }
    DRAGS = (
        Drag("none", ".ppo-handle", 0.05, 0.95, index=2),
        Drag("learned", ".ppo-handle", 0.05, 0.95, index=1, values=36),
    )
    GUESS_UNIT = "reward"

    levers = OneOf(2, options=(2, 3))
    pays = Numbers((2.0, 6.0, 4.0), low=-LARGEST, high=LARGEST, step=1)
    chance = Number(0.25, low=0.02, high=0.98, step=0.01)
    baseline = Number(0.0, low=-LARGEST, high=LARGEST, step=0.1)
    guess = Number(None, low=-LARGEST, high=LARGEST)

    @property
    def paid(self) -> list[float]:
        """What each lever pays that there is (reward)."""
        return self.pays[: self.levers]

    @property
    def probabilities(self) -> list[float]:
        """π of each lever."""
        others = (1 - self.chance) / (self.levers - 1)
        return [self.chance if lever == 1 else others for lever in range(self.levers)]

    @property
    def scores(self) -> list[float]:
        """∇log π of each lever, in the logit of lever 1."""
        return [(lever == 1) - self.chance for lever in range(self.levers)]

    def pushes(self, baseline: float | None = None) -> list[float]:
        """Give what a pull of each lever adds to the gradient: score·(pay − b).

        Args:
            baseline: b (reward); the widget's own if it is left out.

        Returns:
            One push for each lever (reward per unit of the logit).
        """
        b = self.baseline if baseline is None else baseline
        return [s * (pay - b) for s, pay in zip(self.scores, self.paid, strict=True)]

    def _moments(self, baseline: float | None = None) -> tuple[float, float]:
        mean, covariance = mean_and_covariance(
            _vector(self.probabilities), _vector(self.pushes(baseline)).unsqueeze(-1)
        )
        return mean.item(), covariance.item()

    def variance_at(self, baseline: float) -> float:
        """Give the exact variance of a push with another baseline (reward²)."""
        return self._moments(baseline)[1]

    @property
    def mean(self) -> float:
        """Mean push, which no baseline moves: the gradient of the mean pay."""
        return self._moments()[0]

    @property
    def variance(self) -> float:
        """Variance of a push with the chosen baseline."""
        return self._moments()[1]

    @property
    def value(self) -> float:
        """V: what the policy earns on average (reward)."""
        return float(_vector(self.probabilities) @ _vector(self.paid))

    @property
    def best(self) -> float:
        """b*: the baseline that leaves the least variance (reward)."""
        probabilities, scores = _vector(self.probabilities), _vector(self.scores).unsqueeze(-1)
        return optimal_baseline(probabilities, scores, _vector(self.paid)).item()

    @property
    def answer(self) -> float:
        """What the guess is compared with: `best`."""
        return min(max(self.best, -LARGEST), LARGEST)  # rounding may go beyond the ends

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "probabilities": self.probabilities,
            "pushes": self.pushes(),
            "mean": self.mean,
            "variance": self.variance,
            "value": self.value,
            "best": self.best,
            "without": self.variance_at(0.0),
            "at_value": self.variance_at(self.value),
            "at_best": self.variance_at(self.best),
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        return self._say(
            "sentence",
            pays=", ".join(short(pay) for pay in self.paid),
            chance=written(self.chance, 2),
            baseline=written(self.baseline, 1),
            mean=neat(self.mean),
            variance=neat(self.variance),
            value=neat(self.value),
            at_value=neat(self.variance_at(self.value)),
            best=neat(self.best),
            at_best=neat(self.variance_at(self.best)),
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        line = torch.linspace(-LARGEST, LARGEST, 201, dtype=torch.float64).tolist()
        return baseline_variance_figure(
            line,
            [self.pushes(b) for b in line],
            [self.variance_at(b) for b in line],
            paid=self.paid,
            mean=self.mean,
            baseline=self.baseline,
            variance=self.variance,
            marks={"V": (self.value, self.variance_at(self.value)), "b*": (self.best, 0.0)},
            tallest=tallest(self.variance_at(0.0), self.variance_at(self.value)),
            names=[
                self._say("lever", number=lever, chance=written(share, 2))
                for lever, share in enumerate(self.probabilities)
            ],
        )


ENDS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 100, 150, 200, 300, 500)


def tallest(*variances: float) -> int:
    """Choose the end of the axis of variances: it holds what it must, and does not depend on b."""
    return next((end for end in ENDS if end >= 1.25 * max(variances)), ENDS[-1])


def neat(value: float) -> str:
    """Write with two digits; first without the rounding noise that differs from the script's."""
    return written(round(value, 9), 2)


def short(value: float) -> str:
    """Write with at most two digits."""
    return neat(value).rstrip("0").removesuffix(".")


def _vector(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)
