"""Do two independent batches point the same way? The cosine between two estimates of one gradient.

The task is `two_state`: three steps between a valley and a hill. Mean and covariance of one
episode's estimate are exact, from the list of all episodes. The expected cosine has no closed form:
it is measured once, over many seeded batches, and kept as a grid.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.figures.gradient_agreement import gradient_agreement_figure
from ppo_lessons.mdp import (
    MDP,
    Trajectories,
    enumerate_trajectories,
    gradient_estimates,
    mean_and_covariance,
    policy_gradient,
    softmax_policy,
    state_values,
    two_state,
)
from ppo_lessons.reinforce import rewards_to_go
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, OneOf, Whole

SITUATIONS = ("first", "bonus", "later")
ESTIMATORS = ("full_return", "reward_to_go", "baseline")
BATCH_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
TARGET = 0.5
BATCHES = 8192  # the grid is measured on so many batches of each size
PAIRS = 24  # of which so many pairs are drawn one by one
BONUS = 1.0  # what each step pays more, as CartPole pays for each step
LATER_STEPS, LATER_RATE = 10, 0.5  # steps of exact gradient ascent behind the later policy
# Logit of "stay" in the valley and on the hill. With two actions the other logit moves the
# opposite way, so these two numbers are the whole gradient, and every cosine is that of all four.
STAY = (0, 2)
ROUNDING = 1e-9  # an estimate shorter than this has no direction


@dataclass(frozen=True, eq=False)
class Ground:
    """One situation, exactly.

    Args:
        mdp: the task.
        logits: of the policy that collects.
        episodes: all that can happen, with their probabilities.
        mean: of an estimate: the gradient of J, in the logits of "stay".
        estimates: by estimator, one vector for each episode, in the logits of "stay".
        noise_scale: by estimator, tr Σ / ‖mean‖² of one episode's estimate.
    """

    mdp: MDP
    logits: Tensor
    episodes: Trajectories
    mean: Tensor
    estimates: dict[str, Tensor]
    noise_scale: dict[str, float]


def weights_of(estimator: str, mdp: MDP, policy: Tensor, episodes: Trajectories) -> Tensor:
    """Give what each step's score is multiplied with, at γ = 1.

    Args:
        estimator: "full_return", the reward of the whole episode; "reward_to_go", what came after
            the action; "baseline", that minus V(s_t), the exact value of the state.
        mdp: the task.
        policy: that collected.
        episodes: listed or drawn.

    Returns:
        Weights (reward), shaped like the rewards.
    """
    returns = rewards_to_go(episodes.rewards, episodes.terminated, gamma=1.0)
    if estimator == "full_return":
        return returns[:1].expand_as(returns)
    if estimator == "reward_to_go":
        return returns
    return returns - state_values(mdp, policy, gamma=1.0)[episodes.states]


@cache
def ground(situation: str) -> Ground:
    """Set up a situation: "first" policy, "bonus" for each step, or a "later" policy."""
    mdp, logits = two_state(), torch.zeros(2, 2, dtype=torch.float64)
    if situation == "bonus":
        mdp = replace(mdp, rewards=mdp.rewards + BONUS)
    if situation == "later":
        for _ in range(LATER_STEPS):
            logits = logits + LATER_RATE * policy_gradient(mdp, logits, gamma=1.0)
    policy = softmax_policy(mdp, logits)
    episodes = enumerate_trajectories(mdp, policy)
    estimates, noise_scale = {}, {}
    for estimator in ESTIMATORS:
        weights = weights_of(estimator, mdp, policy, episodes)
        vectors = gradient_estimates(mdp, logits, episodes, weights)
        mean, covariance = mean_and_covariance(episodes.probabilities, vectors)
        estimates[estimator] = vectors[:, list(STAY)]
        noise_scale[estimator] = float(covariance.trace() / mean.square().sum())
    mean = policy_gradient(mdp, logits, gamma=1.0).flatten()[list(STAY)]
    return Ground(mdp, logits, episodes, mean, estimates, noise_scale)


@cache
def agreement() -> dict[str, Any]:
    """Measure how two batches agree, for each situation, estimator and batch size.

    All estimators see the same drawn episodes. A batch whose estimate is zero has no direction:
    its cosine counts as 0.

    Returns:
        `grid[situation][estimator]` with lists over the batch sizes: `cosine`, the mean over all
        pairs of batches; `low` and `high`, between which 80 of 100 pairs lie; `angles`, the
        directions of the first 2·24 batches in tenths of a degree, None without a direction.
        Beside them `exact`, the direction of the gradient, and `noise_scale`.
    """
    found, drawn = {}, {}
    for situation in SITUATIONS:
        here = ground(situation)
        # a bonus changes no probability: those batches are drawn once
        key = tuple(here.episodes.probabilities.tolist())
        counts = drawn[key] = drawn.get(key) or _drawn_counts(here.episodes.probabilities)
        x, y = here.mean.tolist()
        found[situation] = {"exact": _tenths(torch.tensor([[x, y]]))[0]}
        for estimator in ESTIMATORS:
            found[situation][estimator] = _agree(counts, here.estimates[estimator]) | {
                "noise_scale": here.noise_scale[estimator]
            }
    return {"batch_sizes": list(BATCH_SIZES), "grid": found}


def _drawn_counts(probabilities: Tensor) -> list[Tensor]:
    """Draw nested batches: how often each episode occurs in each batch, by batch size."""
    generator = torch.Generator().manual_seed(0)
    edges = probabilities.cumsum(0)[:-1].contiguous()
    counts = torch.zeros(BATCHES, len(probabilities), dtype=torch.float64)
    grown, former = [], 0
    for size in BATCH_SIZES:
        uniform = torch.rand(
            BATCHES, size - former, generator=generator, dtype=torch.float64, device="cpu"
        )
        drawn = torch.searchsorted(edges, uniform, right=True)
        counts.scatter_add_(1, drawn, torch.ones_like(uniform))
        grown.append(counts.clone())
        former = size
    return grown


def _agree(counts: list[Tensor], estimates: Tensor) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"cosine": [], "low": [], "high": [], "angles": []}
    for count in counts:
        units = _units(count @ estimates)
        total = units.sum(0)
        # Σ_{i≠j} u_i·u_j = ‖Σ u‖² − Σ ‖u‖²: all pairs at once
        pairs = len(units) * (len(units) - 1)
        found["cosine"].append(float((total.square().sum() - units.square().sum()) / pairs))
        cosines = (units[::2] * units[1::2]).sum(-1)
        low, high = cosines.quantile(torch.tensor([0.1, 0.9], dtype=torch.float64)).tolist()
        found["low"].append(low)
        found["high"].append(high)
        found["angles"].append(_tenths(units[: 2 * PAIRS]))
    rounded = {name: [round(value, 4) for value in found[name]] for name in ("low", "high")}
    return found | rounded | {"cosine": [round(value, 4) for value in found["cosine"]]}


def _units(vectors: Tensor) -> Tensor:
    lengths = vectors.norm(dim=-1, keepdim=True)
    return torch.where(lengths > ROUNDING, vectors / lengths.clamp(min=ROUNDING), 0.0)


def _tenths(vectors: Tensor) -> list[int | None]:
    """Give directions in tenths of a degree, None for a vector without one."""
    angles = torch.atan2(vectors[:, 1], vectors[:, 0]).rad2deg().mul(10).round().long()
    some = vectors.norm(dim=-1) > ROUNDING
    return [angle if there else None for angle, there in zip(angles.tolist(), some, strict=True)]


def cosine_between(one: int | None, two: int | None) -> float:
    """Give the cosine between two directions in tenths of a degree; 0 if one is missing."""
    if one is None or two is None:
        return 0.0
    return float(torch.tensor((one - two) / 10.0, dtype=torch.float64).deg2rad().cos())


def _start() -> dict[str, Any]:
    return {
        "situation": "first",
        "estimator": "full_return",
        "num_episodes": 4,
        "pair": 0,
        "guess": None,
        "revealed": False,
    }


def _shown(**changed: Any) -> dict[str, Any]:
    return _start() | {"revealed": True} | changed


class GradientAgreement(TeachingWidget):
    """Show two independent estimates of one gradient, and how their agreement grows.

        w = GradientAgreement(keep_as="reinforce.enough_episodes")
        w.guess, w.enough, w.noise_scale, w.expected_cosine, w.pair_cosine

    Args:
        situation: "first", the uniform policy on `two_state`; "bonus", each step pays 1 more;
            "later", the policy after ten steps of exact gradient ascent.
        estimator: "full_return", "reward_to_go" or "baseline" (reward-to-go minus V).
        num_episodes: episodes in each batch, one of `BATCH_SIZES`.
        pair: which of the drawn pairs is shown, from 0.
        guess: episodes from which on the expected cosine is at least 0.5, as the reader said; None
            while there is no guess.
        revealed: whether the curve is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "gradient_agreement"
    STATE = ("situation", "estimator", "num_episodes", "pair", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(),
        "full_return": _shown(),
        "reward_to_go": _shown(estimator="reward_to_go"),
        "baseline": _shown(estimator="baseline"),
        "bonus": _shown(situation="bonus", pair=3),
        "bonus_baseline": _shown(situation="bonus", estimator="baseline", pair=3),
        "later": _shown(situation="later", estimator="reward_to_go", num_episodes=24, pair=14),
        "agree": _shown(num_episodes=128),
    }
    PARTS = ("grid_slider", "gradient_compass", "gradient_agreement")
    GUESS_UNIT = "episodes"
    DRAGS: ClassVar = (
        Drag("full_return", "input[type=range]", 0.02, 0.98, values=len(BATCH_SIZES)),
    )

    situation = Choice("first", options=SITUATIONS)
    estimator = Choice("full_return", options=ESTIMATORS)
    num_episodes = OneOf(4, options=BATCH_SIZES)
    pair = Whole(0, low=0, high=PAIRS - 1)
    guess = Whole(None, low=1, high=BATCH_SIZES[-1])
    measured = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.measured = agreement()

    def _curve(self) -> dict[str, Any]:
        return self.measured["grid"][self.situation][self.estimator]

    def _at(self, name: str) -> Any:
        return self._curve()[name][BATCH_SIZES.index(self.num_episodes)]

    @property
    def mdp(self) -> MDP:
        """The task of this situation."""
        return ground(self.situation).mdp

    @property
    def logits(self) -> Tensor:
        """Parameters of the policy that collects."""
        return ground(self.situation).logits

    @property
    def noise_scale(self) -> float:
        """Exact: tr Σ / ‖mean‖² of one episode; with so many, noise is as long as the gradient."""
        return ground(self.situation).noise_scale[self.estimator]

    @property
    def expected_cosine(self) -> float:
        """Mean cosine between two batches of this size, measured."""
        return self._at("cosine")

    @property
    def pair_cosine(self) -> float:
        """Cosine of the pair that is shown."""
        return cosine_between(*self._pair())

    @property
    def enough(self) -> int:
        """Smallest measured batch size whose expected cosine is at least 0.5."""
        reached = zip(BATCH_SIZES, self._curve()["cosine"], strict=True)
        return next(size for size, cosine in reached if cosine >= TARGET)

    @property
    def answer(self) -> int:
        """What the guess is compared with: `enough`."""
        return self.enough

    def numbers(self) -> dict[str, Any]:
        """Compute what the script shows for the same state."""
        return {
            "pair_cosine": self.pair_cosine,
            "expected_cosine": self.expected_cosine,
            "enough": self.enough,
            "noise_scale": self.noise_scale,
        }

    def _pair(self) -> list[int | None]:
        return self._at("angles")[2 * self.pair : 2 * self.pair + 2]

    def sentence(self) -> str:
        """Say what the picture shows."""
        return self._say(
            "sentence",
            situation=self._say(f"situation_{self.situation}"),
            estimator=self._say(f"weight_{self.estimator}"),
            episodes=self._episodes(self.num_episodes),
            cosine=written(self.expected_cosine, 2),
            pair=written(self.pair_cosine, 2),
            enough=self._episodes(self.enough),
            noise=written(self.noise_scale, 2),
        )

    def _episodes(self, number: int) -> str:
        return self._say("episode" if number == 1 else "episodes", number=number)

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        curve = self._curve()
        others = {
            self._say(f"weight_{name}"): self.measured["grid"][self.situation][name]["cosine"]
            for name in ESTIMATORS
            if name != self.estimator
        }
        return gradient_agreement_figure(
            self._at("angles"),
            self.measured["grid"][self.situation]["exact"],
            pair=self.pair,
            batch_sizes=BATCH_SIZES,
            cosine=curve["cosine"],
            low=curve["low"],
            high=curve["high"],
            others=others,
            name=self._say(f"weight_{self.estimator}"),
            num_episodes=self.num_episodes,
            target=TARGET,
        )
