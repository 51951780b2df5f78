"""One action that is a real number: two bell curves, and the ratio of every action.

Means, log σ and the action are traits. Log-probabilities, ratio, KL, the actions whose ratio lies
inside the clip interval, and what lies beyond the limits of the environment follow from them.
"""

from math import erf, exp, inf, isinf, log, sqrt
from typing import Any, ClassVar

import torch

from ppo_lessons.continuous import gaussian_kl
from ppo_lessons.figures.gaussian_policy import gaussian_policy_figure
from ppo_lessons.importance import importance_ratios
from ppo_lessons.networks import gaussian_log_probs
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Number

LIMIT = 2.0  # the environment cuts actions at ±2, as Pendulum does
CLIP_EPSILON = 0.2
LARGEST_RATIO = 1000.0  # from here on the words say "over 1000"
Interval = tuple[float, float]


def below(x: float, *, mean: float, log_std: float) -> float:
    """Probability of an action below x, under a Gaussian; x may be infinite."""
    return 0.5 * (1 + erf((x - mean) / (exp(log_std) * sqrt(2))))


def ratio_inside(
    low: float, high: float, *, old: tuple[float, float], new: tuple[float, float]
) -> list[Interval]:
    """Find the actions whose log-ratio lies between two numbers.

    log π(a) − log π_old(a) = q₂·a² + q₁·a + q₀ is a straight line if both spreads are equal, and a
    parabola if not. So the actions are one interval, two, or none.

    Args:
        low: lower end of the log-ratio; may be −∞.
        high: upper end, above `low`.
        old: mean and log σ of the policy that drew.
        new: mean and log σ of the policy now.

    Returns:
        The intervals from left to right; [(−∞, ∞)] if every action belongs to it.
    """
    precision_old, precision = exp(-2 * old[1]), exp(-2 * new[1])
    q2 = (precision_old - precision) / 2
    q1 = new[0] * precision - old[0] * precision_old
    q0 = (old[0] * old[0] * precision_old - new[0] * new[0] * precision) / 2 + old[1] - new[1]
    if q2 == 0 and q1 == 0:
        return [(-inf, inf)] if low <= q0 <= high else []
    if q2 == 0:
        ends = sorted(((low - q0) / q1, (high - q0) / q1))
        return [(ends[0], ends[1])]
    if q2 < 0:
        q2, q1, q0, low, high = -q2, -q1, -q0, -high, -low
    middle = -q1 / (2 * q2)
    lowest = q0 - q1 * q1 / (4 * q2)
    if lowest > high:
        return []
    outer = sqrt((high - lowest) / q2)
    if lowest >= low:
        return [(middle - outer, middle + outer)]
    inner = sqrt((low - lowest) / q2)
    return [(middle - outer, middle - inner), (middle + inner, middle + outer)]


def _start(**changes: Any) -> dict[str, Any]:
    state = {"mean_old": 0.0, "log_std_old": 0.0, "mean": 0.5, "log_std": 0.0, "action": 1.0}
    return state | {"guess": None, "revealed": True} | changes


class GaussianPolicy(TeachingWidget):
    """Show two Gaussian policies, the ratio of every action, and which actions the clip lets push.

        w = GaussianPolicy(keep_as="continuous.share_inside")
        w.guess, w.ratio, w.kl, w.share_inside

    Args:
        mean_old: μ of the policy that drew the data, from −2 to 2.
        log_std_old: its log σ, from −1.5 to 0.5.
        mean: μ of the policy as it is now.
        log_std: its log σ.
        action: the action that is looked at, from −3.5 to 3.5; as drawn, not cut.
        guess: how many of 100 draws of the old policy have a ratio inside 1 ± 0.2, as the reader
            said; None while there is no guess.
        revealed: whether ratios and the actions inside are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "gaussian_policy"
    STATE = ("mean_old", "log_std_old", "mean", "log_std", "action", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "mean_moved": _start(),
        "same_policy": _start(mean=0.0),
        "small_step": _start(mean=0.2),
        "narrow": _start(log_std_old=-1.5, log_std=-1.5, mean=0.2, action=0.25),
        "sigma_shrunk": _start(mean=0.0, log_std=-0.5, action=1.5),
        "sigma_grown": _start(mean=0.0, log_std=0.5, action=1.8),
        "beyond": _start(mean_old=1.5, mean=2.0, action=3.0),
    }
    PARTS = ("gaussian_policy", "gaussian_policy_panels")
    DRAGS: ClassVar = (
        Drag("mean_moved", ".ppo-action .ppo-handle", 0.1, 0.9),
        Drag("sigma_shrunk", ".ppo-new-policy .ppo-handle", 0.3, 0.7),
    )
    GUESS_UNIT = "of 100"

    mean_old = Number(0, low=-2, high=2, step=0.05)
    log_std_old = Number(0, low=-1.5, high=0.5, step=0.05)
    mean = Number(0.5, low=-2, high=2, step=0.05)
    log_std = Number(0, low=-1.5, high=0.5, step=0.05)
    action = Number(1, low=-3.5, high=3.5, step=0.05)
    guess = Number(None, low=0, high=100)

    @property
    def std(self) -> float:
        """σ of the policy now."""
        return exp(self.log_std)

    @property
    def std_old(self) -> float:
        """σ of the policy that drew."""
        return exp(self.log_std_old)

    @property
    def log_prob(self) -> float:
        """Log π of the action now (nats)."""
        return self._log_prob(self.mean, self.log_std)

    @property
    def log_prob_old(self) -> float:
        """Log π_old of the action (nats)."""
        return self._log_prob(self.mean_old, self.log_std_old)

    def _log_prob(self, mean: float, log_std: float) -> float:
        action, mu, log_stds = (
            torch.tensor([each], dtype=torch.float64) for each in (self.action, mean, log_std)
        )
        return float(gaussian_log_probs(action, mu, log_stds))

    @property
    def ratio(self) -> float:
        """π / π_old of the action."""
        both = (
            torch.tensor(each, dtype=torch.float64) for each in (self.log_prob, self.log_prob_old)
        )
        return float(importance_ratios(*both))

    @property
    def kl(self) -> float:
        """KL(π_old ‖ π), exact (nats).

        log(σ / σ_old) + (σ_old² + (μ_old − μ)²) / (2σ²) − ½
        """
        mu, log_stds, mu_old, log_stds_old = (
            torch.tensor([each], dtype=torch.float64)
            for each in (self.mean, self.log_std, self.mean_old, self.log_std_old)
        )
        return float(gaussian_kl(mu, log_stds, mu_old, log_stds_old))

    @property
    def inside(self) -> list[Interval]:
        """Where the ratio lies inside 1 ± 0.2: intervals of actions; their ends may be infinite."""
        return ratio_inside(
            log(1 - CLIP_EPSILON),
            log(1 + CLIP_EPSILON),
            old=(self.mean_old, self.log_std_old),
            new=(self.mean, self.log_std),
        )

    @property
    def share_inside(self) -> float:
        """Share of the old policy's draws whose ratio lies inside."""
        old = {"mean": self.mean_old, "log_std": self.log_std_old}
        return sum(below(high, **old) - below(low, **old) for low, high in self.inside)

    @property
    def beyond(self) -> float:
        """Probability under π of an action that the environment cuts."""
        return self._beyond(self.mean, self.log_std)

    @property
    def beyond_old(self) -> float:
        """Probability under π_old of an action that the environment cuts."""
        return self._beyond(self.mean_old, self.log_std_old)

    def _beyond(self, mean: float, log_std: float) -> float:
        under, over = (below(side * LIMIT, mean=mean, log_std=log_std) for side in (-1, 1))
        return under + 1 - over

    @property
    def answer(self) -> float:
        """What the guess is compared with."""
        return 100 * self.share_inside

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too; an infinite end is None."""
        return {
            "log_prob": self.log_prob,
            "log_prob_old": self.log_prob_old,
            "ratio": self.ratio,
            "kl": self.kl,
            "inside": [[None if isinf(end) else end for end in each] for each in self.inside],
            "share_inside": self.share_inside,
            "beyond": self.beyond,
            "beyond_old": self.beyond_old,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        return self._say(
            "sentence",
            mean_old=written(self.mean_old, 2),
            std_old=written(self.std_old, 2),
            mean=written(self.mean, 2),
            std=written(self.std, 2),
            action=written(self.action, 2),
            old=written(self.log_prob_old, 3),
            new=written(self.log_prob, 3),
            ratio=ratio_text(self.ratio),
            where=self._where(),
            share=written(100 * self.share_inside, 1),
            kl=written(self.kl, 3),
            beyond=written(100 * self.beyond, 1),
            beyond_old=written(100 * self.beyond_old, 1),
        )

    def _where(self) -> str:
        if not self.inside:
            return self._say("nowhere")
        if isinf(self.inside[0][0]):
            return self._say("everywhere")
        parts = [
            self._say("between", low=written(low, 2), high=written(high, 2))
            for low, high in self.inside
        ]
        return self._say("and").join(parts)

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return gaussian_policy_figure(
            old=(self.mean_old, self.log_std_old),
            new=(self.mean, self.log_std),
            action=self.action,
            ratio=self.ratio,
            inside=self.inside,
            share_inside=self.share_inside,
            kl=self.kl,
            limit=LIMIT,
            clip_epsilon=CLIP_EPSILON,
        )


def ratio_text(ratio: float) -> str:
    """Write a ratio, as the script does."""
    return written(ratio, 3) if ratio < LARGEST_RATIO else f"> {LARGEST_RATIO:g}"
