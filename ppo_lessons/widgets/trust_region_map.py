"""How far does each step go? One state, three actions: every policy is a point of a triangle.

The old policy and its advantages are fixed in each situation. The KL ball, its best points and the
penalty steps have no closed form: they are grids, computed here once. The plain and the natural
step have one, which the script computes, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.clip import clipped_surrogate
from ppo_lessons.figures.trust_region_map import clip_map_figure, step_map_figure
from ppo_lessons.mdp import bandit, fisher_matrix, policy_gradient, softmax_policy, state_kl
from ppo_lessons.trust_region import natural_gradient_step
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number, OneOf

VIEWS = ("steps", "clip")
SITUATIONS = ("middle", "corner", "unseen")
RADII = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # δ, nats
RATES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # learning rates of the plain step
PRICES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)  # β, reward per nat
CLIP_EPSILON = 0.2
EDGE_POINTS = 96  # corners of the drawn ball
SMALLEST = 0.001  # smallest probability that a hand can give
ACTIONS = "abc"


@dataclass(frozen=True, eq=False)
class Ground:
    """One state, what was done there, and how it turned out.

    Args:
        policy_old: probabilities of the three actions.
        advantages: of each; 0 where the batch holds no sample of the action.
        sampled: whether the batch holds the action.
    """

    policy_old: Tensor
    advantages: Tensor
    sampled: tuple[bool, bool, bool]

    @property
    def surrogate_old(self) -> float:
        """L at the old policy."""
        return float(self.policy_old @ self.advantages)

    def gain(self, policy: Tensor) -> float:
        """L(π) − L(π_old), where L = Σ_a π(a)·A(a) (reward)."""
        return float(policy @ self.advantages) - self.surrogate_old

    def kl(self, policy: Tensor) -> float:
        """KL(π_old ‖ π), in nats."""
        return float(state_kl(self.policy_old.unsqueeze(0), policy.unsqueeze(0)).squeeze())


@cache
def ground(situation: str) -> Ground:
    """Set up a situation.

    "middle": no action is rare. "corner": one action has 0.91. Both know their advantages exactly,
    for rewards 0, 1 and 2. "unseen": a and b were drawn and were bad, c was not drawn.
    """
    if situation == "unseen":
        old = torch.tensor([0.495, 0.495, 0.01], dtype=torch.float64)
        bad = torch.tensor([-1.0, -1.0, 0.0], dtype=torch.float64)
        return Ground(old, bad, (True, True, False))
    # no hundredth lies on an edge of the clip, where rounding would decide
    table = {"middle": (0.47, 0.29, 0.24), "corner": (0.91, 0.08, 0.01)}
    old = torch.tensor(table[situation], dtype=torch.float64)
    rewards = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    return Ground(old, rewards - old @ rewards, (True, True, True))


def plain_step(here: Ground, *, learning_rate: float) -> Tensor:
    """Give the policy after one step of gradient ascent on the logits."""
    mdp, logits, gradient = _slope(here)
    return softmax_policy(mdp, (logits + learning_rate * gradient).unsqueeze(0))[0]


def natural_step(here: Ground, *, max_kl: float) -> Tensor:
    """Give the policy after the natural-gradient step, without a line search."""
    mdp, logits, gradient = _slope(here)
    fisher = fisher_matrix(mdp, logits.unsqueeze(0), gamma=1.0)
    step = natural_gradient_step(gradient, fisher, max_kl=max_kl)
    return softmax_policy(mdp, (logits + step).unsqueeze(0))[0]


def _slope(here: Ground) -> tuple[Any, Tensor, Tensor]:
    mdp, logits = bandit(here.advantages.tolist()), here.policy_old.log()
    return mdp, logits, policy_gradient(mdp, logits.unsqueeze(0), gamma=1.0)[0]


def penalty_step(here: Ground, *, beta: float) -> Tensor:
    """Give the policy that maximises L(π) − β·KL(π_old ‖ π).

        π(a) = β·π_old(a) / (λ − A(a)),    λ such that the sum is 1

    This KL has the old policy in front, as in the penalty of PPO. With the new policy in front the
    answer would be π_old·exp(A / β), normalised: another policy.

    Args:
        here: old policy and advantages.
        beta: β, the price (reward per nat).

    Returns:
        The probabilities; λ comes from bisection.
    """
    old, advantages = here.policy_old.tolist(), here.advantages.tolist()
    low, high = max(advantages), max(advantages) + beta  # at the upper end the sum is at most 1
    for _ in range(80):  # plain floats: thousands of these make the grids
        middle = (low + high) / 2
        gaps = [middle - advantage for advantage in advantages]
        enough = min(gaps) > 0
        far = enough and sum(beta * p / gap for p, gap in zip(old, gaps, strict=True)) <= 1
        low, high = (low, middle) if far else (middle, high)
    policy = torch.tensor(
        [beta * p / (high - advantage) for p, advantage in zip(old, advantages, strict=True)],
        dtype=torch.float64,
    )
    return policy / policy.sum()


def ball_edge(here: Ground, *, max_kl: float) -> list[list[float]]:
    """Trace the edge of {π : KL(π_old ‖ π) ≤ δ}, going around the old policy.

    Args:
        here: gives the old policy.
        max_kl: δ, nats.

    Returns:
        Corners of a closed line, as probabilities of a and b.
    """
    turn = torch.arange(EDGE_POINTS, dtype=torch.float64) * (2 * torch.pi / EDGE_POINTS)
    # two axes of the triangle's plane, as drawn: along the side ab, and up to c
    across = torch.tensor([-0.5, 0.5, 0.0], dtype=torch.float64)
    upward = torch.tensor([-0.5, -0.5, 1.0], dtype=torch.float64) / 3**0.5
    rays = turn.cos()[:, None] * across + turn.sin()[:, None] * upward
    # the ray leaves the triangle where the first probability is 0; there the KL is infinite
    far = torch.where(rays < 0, here.policy_old / -rays, torch.inf).amin(-1)
    low, high = torch.zeros_like(far), far
    for _ in range(100):
        middle = (low + high) / 2
        policies = (here.policy_old + middle[:, None] * rays).clamp(min=0)
        kl = (here.policy_old * (here.policy_old.log() - policies.log())).sum(-1)
        low, high = torch.where(kl < max_kl, middle, low), torch.where(kl < max_kl, high, middle)
    edge = here.policy_old + low[:, None] * rays
    return [[round(a, 4), round(b, 4)] for a, b, _ in edge.tolist()]


def best_in_ball(here: Ground, *, max_kl: float) -> tuple[float, Tensor]:
    """Find the point of the ball with the largest L, and the β whose penalty step it is."""
    low, high = 1e-3, 1e3  # a higher price, a shorter step
    for _ in range(60):
        middle = (low * high) ** 0.5
        far = here.kl(penalty_step(here, beta=middle)) > max_kl
        low, high = (middle, high) if far else (low, middle)
    return high, penalty_step(here, beta=high)


@cache
def grids() -> dict[str, Any]:
    """Compute what the script looks up.

    Returns:
        `radii`, `rates`, `prices` (what the sliders reach), `clip_epsilon`, and `by` situation:
        `policy_old`, `advantages`, `sampled`, `balls` (by radius), `penalty` (policies by price),
        `edge_beta` (by radius: the price whose penalty step is the best point of the ball), `front`
        (KL and gain of penalty steps, from a high price to a low one).
    """
    found = {}
    for situation in SITUATIONS:
        here = ground(situation)
        front = [penalty_step(here, beta=float(beta)) for beta in torch.logspace(2.3, -0.6, 59)]
        found[situation] = {
            "policy_old": here.policy_old.tolist(),
            "advantages": here.advantages.tolist(),
            "sampled": list(here.sampled),
            "balls": [ball_edge(here, max_kl=radius) for radius in RADII],
            "penalty": [penalty_step(here, beta=beta).tolist() for beta in PRICES],
            "edge_beta": [round(best_in_ball(here, max_kl=radius)[0], 4) for radius in RADII],
            "front": [[round(here.kl(each), 6), round(here.gain(each), 5)] for each in front],
        }
    lists = {"radii": list(RADII), "rates": list(RATES), "prices": list(PRICES)}
    return {**lists, "clip_epsilon": CLIP_EPSILON, "by": found}


def _start() -> dict[str, Any]:
    return {
        "view": "steps",
        "situation": "middle",
        "max_kl": 0.05,
        "learning_rate": 2.0,
        "beta": 2.0,
        "moved": [0.4, 0.4, 0.2],
        "guess": None,
        "revealed": False,
    }


def _shown(**changed: Any) -> dict[str, Any]:
    return _start() | {"revealed": True} | changed


class Probabilities(traitlets.List):
    """Three probabilities that sum to 1, none of them below `SMALLEST`."""

    def __init__(self, default: Sequence[float]):
        super().__init__(default_value=list(default))

    def validate(self, obj: Any, value: Any) -> list[float]:
        """Take lists, tuples and tensors."""
        policy = torch.as_tensor(value, dtype=torch.float64)
        wanted = f"three probabilities of at least {SMALLEST} that sum to 1"
        if policy.shape != (3,) or not (policy >= SMALLEST).all():
            raise ValueError(f"{self.name} is {value!r}; expected {wanted}")
        if not abs(float(policy.sum()) - 1) <= 1e-12:
            raise ValueError(f"{self.name} has the sum {float(policy.sum()):g}; expected {wanted}")
        return policy.tolist()


class TrustRegion(TeachingWidget):
    """Show where three kinds of step end, the KL ball, and where the clip's incentive has ended.

        w = TrustRegion(keep_as="trust_region.plain_step")
        w.guess, w.kl_plain, w.kl_natural, w.kl_penalty, w.policy_old, w.advantages

    Args:
        view: "steps", three steps against the ball; "clip", a policy that is moved by hand against
            the region where the clip's incentive has ended.
        situation: "middle", "corner" or "unseen"; see `ground`.
        max_kl: δ, the radius of the ball, one of `RADII` (nats).
        learning_rate: of the plain step, one of `RATES`.
        beta: β, the price of the penalty step, one of `PRICES` (reward per nat).
        moved: the policy that a hand moves, three probabilities.
        guess: the KL of the plain step as a multiple of δ, as the reader said; None while there is
            no guess.
        revealed: whether the plain step is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "trust_region_map"
    STATE = (
        *("view", "situation", "max_kl", "learning_rate", "beta", "moved", "guess", "revealed"),
    )
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(),
        "middle": _shown(),
        "same_rate": _shown(situation="corner"),
        "fast": _shown(situation="corner", learning_rate=10.0),
        "natural_far": _shown(situation="unseen", learning_rate=10.0, beta=1.0),
        "clip": _shown(view="clip", moved=[0.34, 0.36, 0.3]),
        "unseen": _shown(view="clip", situation="unseen"),
    }
    PARTS = ("grid_slider", "trust_region_map", "trust_region_steps", "trust_region_clip")
    GUESS_UNIT = "times δ"
    DRAGS: ClassVar = (
        Drag("middle", "input[type=range]", 0.02, 0.98, values=len(RADII)),
        Drag("clip", ".ppo-handle", 0.17, 0.83),
    )

    view = Choice("steps", options=VIEWS)
    situation = Choice("middle", options=SITUATIONS)
    max_kl = OneOf(0.05, options=RADII)
    learning_rate = OneOf(2.0, options=RATES)
    beta = OneOf(2.0, options=PRICES)
    moved = Probabilities((0.4, 0.4, 0.2)).tag(sync=True)
    guess = Number(None, low=0, high=1000)
    grids = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.grids = grids()

    @property
    def policy_old(self) -> Tensor:
        """Probabilities under the old policy."""
        return ground(self.situation).policy_old

    @property
    def advantages(self) -> Tensor:
        """Advantage of each action; 0 where the batch holds none."""
        return ground(self.situation).advantages

    @property
    def plain(self) -> Tensor:
        """The policy after the plain step."""
        return plain_step(ground(self.situation), learning_rate=self.learning_rate)

    @property
    def natural(self) -> Tensor:
        """The policy after the natural-gradient step."""
        return natural_step(ground(self.situation), max_kl=self.max_kl)

    @property
    def penalty(self) -> Tensor:
        """The policy after the penalty step."""
        return penalty_step(ground(self.situation), beta=self.beta)

    @property
    def kl_plain(self) -> float:
        """KL(π_old ‖ π) of the plain step, exact (nats)."""
        return ground(self.situation).kl(self.plain)

    @property
    def kl_natural(self) -> float:
        """KL(π_old ‖ π) of the natural step, exact (nats); its quadratic form is δ."""
        return ground(self.situation).kl(self.natural)

    @property
    def kl_penalty(self) -> float:
        """KL(π_old ‖ π) of the penalty step, exact (nats)."""
        return ground(self.situation).kl(self.penalty)

    @property
    def kl_moved(self) -> float:
        """KL(π_old ‖ π) of the policy that a hand moved, exact (nats)."""
        return ground(self.situation).kl(torch.tensor(self.moved, dtype=torch.float64))

    @property
    def edge_beta(self) -> float:
        """The β whose penalty step is the best point of the ball."""
        return self.grids["by"][self.situation]["edge_beta"][RADII.index(self.max_kl)]

    @property
    def ratios(self) -> Tensor:
        """π / π_old of the policy that a hand moved."""
        return torch.tensor(self.moved, dtype=torch.float64) / self.policy_old

    @property
    def incentive_ended(self) -> list[bool | None]:
        """For each action, whether the clip removed its gradient; None where it was not drawn."""
        here = ground(self.situation)
        with torch.enable_grad():
            ratios = self.ratios.requires_grad_()
            objective = clipped_surrogate(ratios, here.advantages, clip_epsilon=CLIP_EPSILON).sum()
            slopes = torch.autograd.grad(objective, ratios)[0].tolist()
        pairs = zip(slopes, here.sampled, strict=True)
        return [slope == 0 if sampled else None for slope, sampled in pairs]

    @property
    def answer(self) -> float:
        """What the guess is compared with: the KL of the plain step over δ."""
        return self.kl_plain / self.max_kl

    def numbers(self) -> dict[str, Any]:
        """Compute what the script shows for the same state."""
        here = ground(self.situation)
        steps = {"plain": self.plain, "natural": self.natural, "penalty": self.penalty}
        found: dict[str, Any] = {}
        for name, policy in steps.items():
            found[name] = policy.tolist()
            found[f"kl_{name}"], found[f"gain_{name}"] = here.kl(policy), here.gain(policy)
        return found | {
            "times": self.answer,
            "edge_beta": self.edge_beta,
            "kl_moved": self.kl_moved,
            "ratios": self.ratios.tolist(),
            "ended": self.incentive_ended,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        start = self._say(
            "old", policy=_policy(self.policy_old.tolist()), radius=f"{self.max_kl:g}"
        )
        if self.view == "clip":
            return f"{start} {self._clip_sentence()}"
        parts = [
            self._say(
                f"{name}_sentence",
                setting=f"{setting:g}",
                kl=short(kl),
                where=self._say("inside" if kl <= self.max_kl else "outside"),
            )
            for name, setting, kl in (
                ("plain", self.learning_rate, self.kl_plain),
                ("natural", self.max_kl, self.kl_natural),
                ("penalty", self.beta, self.kl_penalty),
            )
        ]
        return " ".join([start, *parts])

    def _clip_sentence(self) -> str:
        ended = self.incentive_ended
        parts = zip(ACTIONS, self.ratios.tolist(), ended, strict=True)
        ratios = [
            self._say("ratio_unseen", action=action)
            if over is None
            else self._say("ratio_ended" if over else "ratio_open", action=action, ratio=short(at))
            for action, at, over in parts
        ]
        return self._say(
            "clip_sentence",
            policy=_policy(self.moved),
            kl=short(self.kl_moved),
            where=self._say("inside" if self.kl_moved <= self.max_kl else "outside"),
            ratios=", ".join(ratios),
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        here = ground(self.situation)
        ball = ball_edge(here, max_kl=self.max_kl)
        if self.view == "clip":
            return clip_map_figure(
                here.policy_old.tolist(),
                here.advantages.tolist(),
                here.sampled,
                self.moved,
                ball,
                self.ratios.tolist(),
                self.incentive_ended,
                max_kl=self.max_kl,
                clip_epsilon=CLIP_EPSILON,
            )
        policies = {"plain": self.plain, "natural": self.natural, "penalty": self.penalty}
        return step_map_figure(
            here.policy_old.tolist(),
            ball,
            {self._say(f"{name}_name"): policy.tolist() for name, policy in policies.items()},
            [(here.kl(policy), here.gain(policy)) for policy in policies.values()],
            self.grids["by"][self.situation]["front"],
            max_kl=self.max_kl,
        )


def _policy(policy: list[float]) -> str:
    return f"({', '.join(written(each, 3).rstrip('0') for each in policy)})"


def short(value: float) -> str:
    """Write a KL or a ratio with three or four digits that count, as the script does."""
    return written(value, 3 if value >= 0.1 else 4 if value >= 0.01 else 5)
