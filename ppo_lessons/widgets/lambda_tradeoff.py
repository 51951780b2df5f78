"""How does λ trade bias for variance? Exactly, on a walk of seven places, with a critic that errs.

The critic says V(s) + size·error(s). The mean of the gradient that one episode estimates is linear
in the size, its covariance and the square of each bias are quadratic. So three sizes, solved with
`gae_moments` at each λ, give every size without an approximation: that is the grid.
"""

from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons import mdp as exact
from ppo_lessons.figures.lambda_tradeoff import lambda_tradeoff_figure
from ppo_lessons.mdp import MDP
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number, OneOf

SHAPES = ("share", "constant", "turns")
GAMMAS = (1.0, 0.95)
BATCH_SIZES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
POINTS = 100  # λ = 0, 0.01, … 1
LARGEST_ERROR = 0.6  # of a constant error and of one that takes turns, at size 1
WEIGHTS = 12  # weights that are drawn one by one
DIGITS = 10  # after the point, in the grid
Curve = list[float]


@cache
def ground() -> tuple[MDP, Tensor]:
    """Give the walk, and the logits of a coin: seven places and the goal."""
    return exact.random_walk(7, noise=0.0), torch.zeros(8, 2, dtype=torch.float64)


def critic_of(gamma: float, shape: str, size: float) -> Float64[Tensor, " S"]:
    """Give what the critic says of each place.

    Args:
        gamma: discount per step.
        shape: "share", all values too low by a share; "constant", all too high by the same number;
            "turns", too high and too low from place to place.
        size: of the error, from 0 (exact) to 1.

    Returns:
        V(s) + size·error(s) (discounted reward).
    """
    mdp, logits = ground()
    values = exact.state_values(mdp, exact.softmax_policy(mdp, logits), gamma=gamma)
    turns = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(len(values) // 2)
    error = {
        "share": -values,
        "constant": LARGEST_ERROR * torch.ones_like(values),
        "turns": LARGEST_ERROR * turns,
    }[shape]
    return values + size * error


@cache
def wanted() -> tuple[Tensor, Tensor, Tensor]:
    """Give what estimates are compared with, all at γ = 1: what counts is the sum of rewards.

    Returns:
        Gradient of J, flat; A(s, a); the share of the policy's steps that each s, a has.
    """
    mdp, logits = ground()
    policy = exact.softmax_policy(mdp, logits)
    visits = exact.state_visits(mdp, policy, gamma=1.0)
    return (
        exact.policy_gradient(mdp, logits, gamma=1.0).flatten(),
        exact.advantages(mdp, policy, gamma=1.0),
        visits.unsqueeze(-1) * policy / visits.sum(),
    )


def judge(gamma: float, critic: Tensor, gae_lambda: float) -> tuple[float, float, float]:
    """Solve one point.

    Args:
        gamma: discount per step, inside GAE.
        critic: what it says of each place (discounted reward).
        gae_lambda: λ.

    Returns:
        Square of the gradient's bias, variance of one episode's gradient (trace of the covariance),
        mean square of the advantage's bias over the steps that the policy takes.
    """
    found = exact.gae_moments(*ground(), critic, gamma=gamma, gae_lambda=gae_lambda)
    gradient, advantages, share = wanted()
    astray = found.gradient_mean - gradient
    wrong_by = found.advantage_mean - advantages
    return (
        float(astray @ astray),
        float(found.gradient_covariance.trace()),
        float((share * wrong_by**2).sum()),
    )


@cache
def grid() -> list[dict[str, Any]]:
    """Solve every λ for each γ and each shape of the error.

    Returns:
        For each γ: `exact`, three curves over λ as `judge` gives them, of a critic without error;
        and for each shape three pairs of curves, what the size and its square add to them.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads on tables this small wait for each other
    try:
        return [
            {"exact": _curves(gamma, "share", 0.0)}
            | {shape: _added(gamma, shape) for shape in SHAPES}
            for gamma in GAMMAS
        ]
    finally:
        torch.set_num_threads(before)


@cache
def _curves(gamma: float, shape: str, size: float) -> list[Curve]:
    critic = critic_of(gamma, shape, size)
    points = [judge(gamma, critic, number / POINTS) for number in range(POINTS + 1)]
    return [[round(point[kind], DIGITS) for point in points] for kind in range(3)]


def _added(gamma: float, shape: str) -> list[list[Curve]]:
    """Give the quadratic through sizes 0, ½ and 1, without its constant."""
    found = []
    sizes = [_curves(gamma, shape, size) for size in (0.5, 1.0)]
    for none, half, whole in zip(_curves(gamma, "share", 0.0), *sizes, strict=True):
        square = [2 * (a - 2 * b + c) for a, b, c in zip(none, half, whole, strict=True)]
        linear = [c - a - d for a, c, d in zip(none, whole, square, strict=True)]
        found.append([[round(x, DIGITS) for x in curve] for curve in (linear, square)])
    return found


def nearest(gae_lambda: float) -> int:
    """Find the point of the grid next to λ; nothing is interpolated."""
    return int(gae_lambda * POINTS + 0.5)


def _start(**changed: Any) -> dict[str, Any]:
    return {
        "error_shape": "share",
        "error_size": 0.5,
        "gamma": 1.0,
        "num_episodes": 10,
        "gae_lambda": 0.95,
        "guess": None,
        "revealed": True,
    } | changed


class LambdaTradeoff(TeachingWidget):
    """Show what λ costs: bias, variance, and the error of a gradient from a batch.

        w = LambdaTradeoff(keep_as="gae.best_lambda_here")
        w.guess, w.best_lambda, w.squared_error, w.critic

    Args:
        error_shape: "share", the critic says a share of V; "constant", V and the same number more;
            "turns", in turns too much and too little.
        error_size: from 0, an exact critic, to 1; 0.5 is half of V, V + 0.3 or V ± 0.3.
        gamma: γ inside GAE, 1 or 0.95. What is wanted is the gradient at γ = 1.
        num_episodes: episodes in the batch, one of `BATCH_SIZES`.
        gae_lambda: λ; the nearest hundredth is shown.
        guess: λ with the least squared error, as the reader said; None while there is no guess.
        revealed: whether the errors are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "lambda_tradeoff"
    STATE = (
        "error_shape", "error_size", "gamma", "num_episodes", "gae_lambda", "guess", "revealed",
    )  # fmt: skip
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "ten_episodes": _start(),
        "one_episode": _start(num_episodes=1),
        "thousand_episodes": _start(num_episodes=1000),
        "exact_critic": _start(error_size=0.0),
        "constant": _start(error_shape="constant", num_episodes=100, gae_lambda=0.8),
        "turns": _start(error_shape="turns", gae_lambda=0.2),
        "discounted": _start(error_size=0.0, gamma=0.95, num_episodes=1000, gae_lambda=1.0),
    }
    PARTS = ("grid_slider", "lambda_tradeoff_panels", "lambda_tradeoff")
    DRAGS: ClassVar = (
        Drag("ten_episodes", ".ppo-handle", 0.01, 0.99),
        Drag("thousand_episodes", "input[type=range]", 0.02, 0.98, index=2, values=20),
    )

    error_shape = Choice("share", options=SHAPES)
    error_size = Number(0.5, low=0, high=1, step=0.05)
    gamma = OneOf(1.0, options=GAMMAS)
    num_episodes = OneOf(10, options=BATCH_SIZES)
    gae_lambda = Number(0.95, low=0, high=1, step=0.01)
    guess = Number(None, low=0, high=1)
    grid = traitlets.List().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.grid = grid()

    @property
    def mdp(self) -> MDP:
        """The walk."""
        return ground()[0]

    @property
    def logits(self) -> Float64[Tensor, "S A"]:
        """Parameters of the policy, which throws a coin."""
        return ground()[1]

    @property
    def critic(self) -> Float64[Tensor, " S"]:
        """What the critic says of each place (discounted reward)."""
        return critic_of(self.gamma, self.error_shape, self.error_size)

    def curves(self) -> list[Curve]:
        """Give gradient bias², variance of one episode and advantage bias² at each λ."""
        here = self.grid[GAMMAS.index(self.gamma)]
        size = self.error_size
        return [
            [
                max(a + size * (b + size * c), 0.0)
                for a, b, c in zip(none, linear, square, strict=True)
            ]
            for none, (linear, square) in zip(here["exact"], here[self.error_shape], strict=True)
        ]

    def squared_errors(self) -> Curve:
        """Give bias² + variance / n at each λ."""
        bias_squared, variance, _ = self.curves()
        return [a + b / self.num_episodes for a, b in zip(bias_squared, variance, strict=True)]

    @property
    def squared_error(self) -> float:
        """Of the mean gradient of the batch, at λ."""
        return self.squared_errors()[nearest(self.gae_lambda)]

    @property
    def best_lambda(self) -> float:
        """λ of the least squared error, in hundredths."""
        errors = self.squared_errors()
        return errors.index(min(errors)) / POINTS

    @property
    def answer(self) -> float:
        """What the guess is compared with: `best_lambda`."""
        return self.best_lambda

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        bias_squared, variance, advantage = (
            curve[nearest(self.gae_lambda)] for curve in self.curves()
        )
        weight = nearest(self.gae_lambda) / POINTS
        return {
            "bias_squared": bias_squared,
            "variance": variance,
            "squared_error": self.squared_error,
            "best_lambda": self.best_lambda,
            "best_error": min(self.squared_errors()),
            "gradient_bias": bias_squared**0.5,
            "advantage_bias": advantage**0.5,
            "return_weights": [(1 - weight) * weight**k for k in range(WEIGHTS)],
            "later_weight": weight**WEIGHTS,
            "trace_weights": [(self.gamma * weight) ** k for k in range(WEIGHTS)],
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        found = self.numbers()
        return self._say(
            "sentence",
            critic=self._critic_words(),
            gamma=f"{self.gamma:g}",
            episodes=self._episodes(),
            weight=written(nearest(self.gae_lambda) / POINTS, 2),
            bias=written(found["bias_squared"], 4),
            variance=written(found["variance"] / self.num_episodes, 4),
            error=written(found["squared_error"], 4),
            best=written(found["best_lambda"], 2),
            least=written(found["best_error"], 4),
            gradient=written(found["gradient_bias"], 3),
            advantage=written(found["advantage_bias"], 3),
        )

    def _critic_words(self) -> str:
        if self.error_size == 0:
            return self._say("says_exact")
        if self.error_shape == "share":
            return self._say("says_share", percent=written(100 * (1 - self.error_size), 0))
        number = written(LARGEST_ERROR * self.error_size, 2)
        return self._say(f"says_{self.error_shape}", number=number)

    def _episodes(self) -> str:
        many = self.num_episodes > 1
        return self._say("episodes" if many else "episode", number=self.num_episodes)

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        bias_squared, variance, advantage = self.curves()
        found = self.numbers()
        return lambda_tradeoff_figure(
            bias_squared,
            [each / self.num_episodes for each in variance],
            advantage,
            gae_lambda=nearest(self.gae_lambda) / POINTS,
            return_weights=found["return_weights"],
            later_weight=found["later_weight"],
            trace_weights=found["trace_weights"],
            title=f"{self._critic_words()}, {self._episodes()}",
        )
