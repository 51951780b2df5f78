"""Which samples still push the policy? Twenty-four of them on the clipped objective.

The samples, ε and the guess are traits. Beside them stand two ways out of the box and one blind
spot, computed here once: a big step, momentum, and an action that the batch does not hold.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import traitlets
from torch import Tensor

from ppo_lessons.clip import clip_fractions, clipped_surrogate, clipped_surrogate_loss
from ppo_lessons.figures.clip_region import clip_region_figure, path_figure, unsampled_figure
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number, Numbers, Whole

LARGEST_RATIO = 2.2
MOST_SAMPLES = 64
VIEWS = ("samples", "one_step", "momentum", "unsampled")
# Odd multiples of 0.005: ε is a multiple of 0.01, so that no sample lies on an edge, where rounding
# would decide. At least 0.03 from 0.8 and 1.2 and 0.02 from each other, to be told apart from the
# back of a hall. All four corners are there.
RATIOS = (
    *(1.035, 0.845, 1.485, 0.755, 0.715, 1.005, 0.675, 1.255, 1.165, 0.635, 0.965, 1.085),
    *(0.935, 1.565, 1.065, 0.985, 1.365, 1.315, 0.735, 0.655, 1.275, 1.235, 0.865, 1.145),
)
ADVANTAGES = (1.0,) * 12 + (-1.0,) * 12
MOMENTUM_STEPS = 40
RARE_STEPS = 19


def pushes(ratios: Tensor, advantages: Tensor, *, clip_epsilon: float) -> Tensor:
    """Say for each sample whether its gradient is not zero, by asking autograd."""
    leaf = ratios.detach().clone().requires_grad_()
    objective = clipped_surrogate(leaf, advantages, clip_epsilon=clip_epsilon).sum()
    return torch.autograd.grad(objective, leaf)[0] != 0


@cache
def ways_out() -> dict[str, dict[str, Any]]:
    """Compute two ways out of the box and what the clip cannot see.

    `one_step` and `momentum`: two actions, softmax over two logits, one sample with advantage 1 of
    the action whose probability is 0.2, ε = 0.2. `unsampled`: three actions, of which the batch
    holds the first two; the policy goes from (.495, .495, .01) to (.4, .4, .2).

    Returns:
        By name: lists over the steps. Numbers are those of float64.
    """
    with torch.enable_grad():
        return {
            "one_step": _climb(torch.optim.SGD, learning_rate=1.0, steps=1),
            "momentum": _climb(torch.optim.Adam, learning_rate=0.03, steps=MOMENTUM_STEPS),
            "unsampled": _unsampled(),
        }


def _climb(optimizer_class: Any, *, learning_rate: float, steps: int) -> dict[str, list[Any]]:
    """Follow one sample of an action with probability 0.2 up the clipped objective."""
    logits = torch.tensor([0.2, 0.8], dtype=torch.float64).log().requires_grad_()
    log_prob_old = logits.detach().log_softmax(0)[:1]
    optimizer = optimizer_class([logits], lr=learning_rate)
    path: dict[str, list[Any]] = {"ratios": [], "probabilities": [], "gradients": [], "pushes": []}
    for _ in range(steps + 1):
        log_prob = logits.log_softmax(0)[:1]
        loss = clipped_surrogate_loss(
            log_prob, log_prob_old, torch.ones_like(log_prob), clip_epsilon=0.2
        )
        optimizer.zero_grad()
        loss.backward()
        gradient = float(logits.grad.norm()) if logits.grad is not None else 0.0
        path["ratios"].append(float((log_prob - log_prob_old).detach().exp()))
        path["probabilities"].append(float(log_prob.detach().exp()))
        path["gradients"].append(gradient)
        path["pushes"].append(gradient != 0)
        optimizer.step()
    return path


def _unsampled() -> dict[str, Any]:
    """Grow the probability of an action that the batch does not hold."""
    old = torch.tensor([0.495, 0.495, 0.01], dtype=torch.float64)
    path: dict[str, Any] = {"old": old.tolist(), "miss": (1 - 0.01) ** 64}
    path |= {"rare": [], "probabilities": [], "ratios": [], "outside": [], "kl": []}
    for step in range(RARE_STEPS + 1):
        rare = 0.01 * (step + 1)
        new = torch.tensor([(1 - rare) / 2, (1 - rare) / 2, rare], dtype=torch.float64)
        log_probs, log_probs_old = new[:2].log(), old[:2].log()
        outside, _ = clip_fractions(
            log_probs, log_probs_old, torch.ones_like(log_probs), clip_epsilon=0.2
        )
        path["rare"].append(rare)
        path["probabilities"].append(new.tolist())
        path["ratios"].append((new / old).tolist())
        path["outside"].append(float(outside))
        path["kl"].append(float((old * (old / new).log()).sum()))
    return path


def _start() -> dict[str, Any]:
    return {
        "ratios": list(RATIOS),
        "advantages": list(ADVANTAGES),
        "clip_epsilon": 0.2,
        "view": "samples",
        "step": 0,
        "guess": None,
        "revealed": False,
    }


class ClipRegion(TeachingWidget):
    """Show which samples still push the policy, and let them be dragged.

        w = ClipRegion(keep_as="clip.still_push")
        w.guess, w.fraction_outside, w.fraction_zero_gradient, w.mean_objective

    Args:
        ratios: π / π_old of each sample, above 0 and at most 2.2.
        advantages: one for each sample, not zero.
        clip_epsilon: ε, above 0 and below 1.
        view: "samples", "one_step", "momentum" or "unsampled".
        step: place on the path of the last three views.
        guess: how many samples push, as the reader said; None while there is no guess.
        revealed: whether the samples show what they do.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "clip_region"
    STATE = ("ratios", "advantages", "clip_epsilon", "view", "step", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(),
        "samples": _start() | {"revealed": True},
        "narrow": _start() | {"revealed": True, "clip_epsilon": 0.1},
        "wide": _start() | {"revealed": True, "clip_epsilon": 0.4},
        "one_step": _start() | {"view": "one_step", "step": 1, "revealed": True},
        "momentum_edge": _start() | {"view": "momentum", "step": 4, "revealed": True},
        "momentum": _start() | {"view": "momentum", "step": MOMENTUM_STEPS, "revealed": True},
        "unsampled": _start() | {"view": "unsampled", "step": RARE_STEPS, "revealed": True},
    }
    PARTS = ("clip_region_ways", "clip_region")
    DRAGS = (Drag("samples", ".ppo-better .ppo-handle", start=0.405 / 2.2, end=1.875 / 2.2),)
    GUESS_UNIT = "samples"

    ratios = Numbers(RATIOS, low=0, high=LARGEST_RATIO, open_low=True, fewest=1, most=MOST_SAMPLES)
    advantages = Numbers(ADVANTAGES, low=-1e6, high=1e6, fewest=1, most=MOST_SAMPLES)
    clip_epsilon = Number(0.2, low=0, high=1, open_low=True, open_high=True, step=0.01)
    view = Choice("samples", options=VIEWS)
    step = Whole(0, low=0, high=MOMENTUM_STEPS)
    guess = Whole(None, low=0, high=MOST_SAMPLES)
    ways = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(ways=ways_out(), **state)
        _check_samples(self.ratios, self.advantages)

    def _tensors(self) -> tuple[Tensor, Tensor]:
        return (
            torch.tensor(self.ratios, dtype=torch.float64),
            torch.tensor(self.advantages, dtype=torch.float64),
        )

    def _fractions(self) -> tuple[float, float]:
        ratios, advantages = self._tensors()
        outside, silent = clip_fractions(
            ratios.log(), torch.zeros_like(ratios), advantages, clip_epsilon=self.clip_epsilon
        )
        return float(outside), float(silent)

    @property
    def pushing(self) -> list[bool]:
        """For each sample, whether its gradient is not zero."""
        return pushes(*self._tensors(), clip_epsilon=self.clip_epsilon).tolist()

    @property
    def still_push(self) -> int:
        """How many samples have a gradient."""
        return sum(self.pushing)

    @property
    def answer(self) -> int:
        """What the guess is compared with."""
        return self.still_push

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "fraction_outside": self.fraction_outside,
            "fraction_zero_gradient": self.fraction_zero_gradient,
            "mean_objective": self.mean_objective,
            "still_push": self.still_push,
        }

    @property
    def fraction_outside(self) -> float:
        """Share of samples whose ratio left the band."""
        return self._fractions()[0]

    @property
    def fraction_zero_gradient(self) -> float:
        """Share of samples whose gradient the clip removed."""
        return self._fractions()[1]

    @property
    def mean_objective(self) -> float:
        """Mean of the clipped surrogate over the samples."""
        return float(clipped_surrogate(*self._tensors(), clip_epsilon=self.clip_epsilon).mean())

    def sentence(self) -> str:
        """Say what the picture shows."""
        if self.view == "samples":
            return self._samples_sentence()
        if self.view == "unsampled":
            return self._unsampled_sentence()
        path = self.ways[self.view]
        step = min(self.step, len(path["ratios"]) - 1)
        words = "gradient_on" if path["pushes"][step] else "gradient_off"
        return say(
            self.NAME,
            "path_sentence",
            language=self.language,
            step=step,
            probability=f"{path['probabilities'][step]:.3f}",
            ratio=f"{path['ratios'][step]:.3f}",
            gradient=self._say(words, gradient=f"{path['gradients'][step]:.3f}"),
        )

    def _samples_sentence(self) -> str:
        total, pushing = len(self.ratios), self.still_push
        outside = round(self.fraction_outside * total)
        silent = round(self.fraction_zero_gradient * total)
        return self._say(
            "sentence",
            epsilon=f"{self.clip_epsilon:.2f}",
            low=f"{1 - self.clip_epsilon:.2f}",
            high=f"{1 + self.clip_epsilon:.2f}",
            total=total,
            outside=outside,
            silent=silent,
            back=outside - silent,
            pushing=pushing,
            objective=written(self.mean_objective, 4),
        )

    def _unsampled_sentence(self) -> str:
        path = self.ways["unsampled"]
        step = min(self.step, len(path["rare"]) - 1)
        return self._say(
            "unsampled_sentence",
            probability=f"{path['rare'][step]:.2f}",
            ratio=f"{path['ratios'][step][0]:.3f}",
            outside=f"{path['outside'][step]:.0f}",
            kl=f"{path['kl'][step]:.3f}",
            miss=f"{path['miss']:.2f}",
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        if self.view == "samples":
            ratios, advantages = self._tensors()
            objectives = clipped_surrogate(
                ratios, advantages.sign(), clip_epsilon=self.clip_epsilon
            )
            return clip_region_figure(
                self.ratios,
                objectives.tolist(),
                self.pushing,
                clip_epsilon=self.clip_epsilon,
                largest_ratio=LARGEST_RATIO,
            )
        path = self.ways[self.view]
        if self.view == "unsampled":
            return unsampled_figure(
                path["rare"],
                path["kl"],
                path["outside"],
                step=min(self.step, len(path["rare"]) - 1),
                title=self._say("kl_title"),
            )
        return path_figure(
            path["ratios"],
            path["pushes"],
            clip_epsilon=0.2,
            step=min(self.step, len(path["ratios"]) - 1),
            title=self._say(f"{self.view}_picture"),
        )


def _check_samples(ratios: Sequence[float], advantages: Sequence[float]) -> None:
    """Refuse samples whose sign is not known."""
    if len(ratios) != len(advantages):
        raise ValueError(
            f"ratios holds {len(ratios)} numbers, advantages {len(advantages)}; expected one "
            "advantage for each ratio. Give both, of equal length."
        )
    if not all(abs(advantage) > 0 for advantage in advantages):
        raise ValueError(
            "advantages holds a 0 or a number that is none; expected numbers above or below 0: "
            "the sign says which way a sample pushes"
        )
