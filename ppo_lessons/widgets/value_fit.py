"""What does a critic's grade say? A shift, a wrong scale and noise, seen by two grades and a loss.

Episodes of ten steps, in a high place that pays 2 a step or in a low one that pays 0, and luck
with the standard deviation 1 on top. The place changes after one step of ten, so V is known. A
critic says

    centre + shift + scale·(V − centre) + noise·z,   centre: the mean of V over all samples

where z is one fixed number for each state. It is held against the returns that came, and against
its own one-step targets.
"""

from functools import cache
from typing import Any

import torch
import traitlets
from torch import Generator, Tensor

from ppo_lessons.critic import explained_variance, value_loss
from ppo_lessons.figures.value_fit import value_fit_figure
from ppo_lessons.mdp import MDP, sample_trajectories, state_values, unroll
from ppo_lessons.reinforce import rewards_to_go
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number

NUM_EPISODES, NUM_STEPS = 16, 10
STAY = 0.9  # probability that the next step finds the same place
HIGH_PAYS = 2.0
FAULTS = ("shift", "scale", "noise")
TARGETS = ("returns", "own")


@cache
def samples() -> dict[str, Any]:
    """Draw 16 episodes of ten steps and look up what the critics need.

    Returns:
        Tables by step and episode, flattened: `rewards`, `returns` (of the rest of the episode),
        `values` and `next_values` (exact V of the state, and of the next; 0 after the last step),
        `noise` and `next_noise` (z of these states, 0 after the last), `last` (1 on the last step,
        else 0); and `centre`, the mean of `values`.
    """
    changes = torch.tensor([[[STAY, 1 - STAY]], [[1 - STAY, STAY]]], dtype=torch.float64)
    pays = torch.tensor([[0.0], [HIGH_PAYS]], dtype=torch.float64)
    start = torch.tensor([0.5, 0.5], dtype=torch.float64)
    game = unroll(MDP("two places", changes, pays, start, torch.arange(2)), horizon=NUM_STEPS)
    policy = torch.ones(2 * NUM_STEPS, 1, dtype=torch.float64)  # there is one action
    generator = Generator().manual_seed(1)
    drawn = sample_trajectories(game, policy, num_trajectories=NUM_EPISODES, generator=generator)
    luck = torch.randn(drawn.rewards.shape, generator=generator, dtype=torch.float64)
    rewards = drawn.rewards + luck
    exact = state_values(game, policy, gamma=1.0)
    wrong = torch.randn(2 * NUM_STEPS, generator=generator, dtype=torch.float64)
    wrong = _unlike(exact, wrong, drawn.states.flatten())
    last = drawn.terminated
    tables = {
        "rewards": rewards,
        "returns": rewards_to_go(rewards, last, gamma=1.0),
        "values": exact[drawn.states],
        "next_values": exact[drawn.next_states] * ~last,
        "noise": wrong[drawn.states],
        "next_noise": wrong[drawn.next_states] * ~last,
        "last": last.double(),
    }
    centre = float(exact[drawn.states].mean())
    return {name: table.flatten().tolist() for name, table in tables.items()} | {"centre": centre}


def _unlike(exact: Tensor, wrong: Tensor, states: Tensor) -> Tensor:
    """Take out of z what is a shift or a scale of V; on the samples its standard deviation is 1."""
    known = torch.stack([torch.ones_like(exact), exact], dim=-1)
    found = torch.linalg.lstsq(known[states], wrong[states].unsqueeze(-1)).solution
    rest = wrong - (known @ found).squeeze(-1)
    return rest / rest[states].std(correction=0)


def _start(**changes: Any) -> dict[str, Any]:
    state = {"shift": 0.0, "scale": 1.0, "noise": 0.0, "target": "returns"}
    return state | {"guess": None, "revealed": True} | changes


class ValueFit(TeachingWidget):
    """Show a critic with three faults beside its loss and its explained variance.

        w = ValueFit(keep_as="critic.forgiven")
        w.values, w.returns, w.ev_monte_carlo, w.loss_monte_carlo, w.ev_own

    Args:
        shift: added to all values, from −10 to 10 (reward).
        scale: of their distance to their mean, from −1 to 3; 1 is right.
        noise: standard deviation of what is wrong with single states, from 0 to 6 (reward).
        target: what is drawn: "returns", which came, or "own", reward plus the critic's own value
            of the next state.
        guess: which fault the explained variance forgives, as the reader said: "shift", "scale" or
            "noise"; None while there is no guess.
        revealed: whether grades and errors are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "value_fit"
    STATE = ("shift", "scale", "noise", "target", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "exact": _start(),
        "shifted": _start(shift=5.0),
        "scaled": _start(scale=2.0),
        "noisy": _start(noise=3.0),
        "constant": _start(scale=0.0),
        "flattered": _start(scale=2.0, target="own"),
    }
    DRAGS = (Drag("exact", "input[type=range]", 0.02, 0.98, values=36),)

    shift = Number(0.0, low=-10, high=10, step=0.5)
    scale = Number(1.0, low=-1, high=3, step=0.1)
    noise = Number(0.0, low=0, high=6, step=0.5)
    target = Choice("returns", options=TARGETS)
    guess = Choice(None, options=FAULTS)
    samples = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.samples = samples()

    def _table(self, name: str) -> Tensor:
        return torch.tensor(self.samples[name], dtype=torch.float64)

    def _says(self, values: str, noise: str) -> Tensor:
        centre = self.samples["centre"]
        distance = self._table(values) - centre
        return centre + self.shift + self.scale * distance + self.noise * self._table(noise)

    @property
    def values(self) -> list[float]:
        """What the critic says of each sample."""
        return self._says("values", "noise").tolist()

    @property
    def returns(self) -> list[float]:
        """What came after each sample, up to the end of its episode."""
        return list(self.samples["returns"])

    @property
    def own_targets(self) -> list[float]:
        """Reward plus the critic's own value of the next state; after the last step that is 0."""
        following = self._says("next_values", "next_noise") * (1 - self._table("last"))
        return (self._table("rewards") + following).tolist()

    def _grades(self, targets: list[float]) -> tuple[float, float]:
        values = torch.tensor(self.values, dtype=torch.float64)
        held = torch.tensor(targets, dtype=torch.float64)
        return explained_variance(values, held).item(), value_loss(values, held).item()

    @property
    def ev_monte_carlo(self) -> float:
        """Explained variance against what came: the honest grade."""
        return self._grades(self.returns)[0]

    @property
    def loss_monte_carlo(self) -> float:
        """Half the mean squared error against what came (reward²)."""
        return self._grades(self.returns)[1]

    @property
    def ev_own(self) -> float:
        """Explained variance against the critic's own one-step targets."""
        return self._grades(self.own_targets)[0]

    @property
    def loss_own(self) -> float:
        """Half the mean squared error against its own one-step targets (reward²)."""
        return self._grades(self.own_targets)[1]

    @property
    def drawn(self) -> list[float]:
        """The targets that are drawn."""
        return self.returns if self.target == "returns" else self.own_targets

    @property
    def errors(self) -> list[float]:
        """Target minus value, of each sample, for the targets that are drawn."""
        return [target - value for target, value in zip(self.drawn, self.values, strict=True)]

    @property
    def mean_error(self) -> float:
        """Mean of the errors (reward): what the explained variance does not see."""
        return sum(self.errors) / len(self.errors)

    @property
    def answer(self) -> str:
        """What the guess is compared with."""
        return "shift"

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "ev_monte_carlo": self.ev_monte_carlo,
            "loss_monte_carlo": self.loss_monte_carlo,
            "ev_own": self.ev_own,
            "loss_own": self.loss_own,
            "mean_error": self.mean_error,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        return self._say(
            "sentence",
            shift=written(self.shift, 1),
            scale=written(self.scale, 1),
            noise=written(self.noise, 1),
            ev=neat(self.ev_monte_carlo),
            loss=neat(self.loss_monte_carlo),
            ev_own=neat(self.ev_own),
            loss_own=neat(self.loss_own),
            drawn=self._say(f"drawn_{self.target}"),
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        grade, loss = self._grades(self.drawn)
        return value_fit_figure(
            self.values,
            self.drawn,
            target=self._say(f"target_{self.target}"),
            grade=f"explained variance {neat(grade)}, loss {neat(loss)}",
        )


def neat(value: float) -> str:
    """Write with two digits; first without the rounding noise that differs from the script's."""
    return written(round(value, 9), 2)
