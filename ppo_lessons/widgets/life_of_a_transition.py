"""What happens to one sample? Four of them, followed through collect, score, squeeze and renew.

They were recorded in a run on CartPole: `life_of_a_transition.json` in `ppo_lessons/recorded`, from
`python -m benchmarks.squeeze`. What follows from the record is computed here, by the functions of
the lessons.
"""

from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.clip import clip_fractions
from ppo_lessons.critic import td_errors
from ppo_lessons.figures.life_of_a_transition import life_of_a_transition_figure
from ppo_lessons.gae import compute_gae
from ppo_lessons.importance import importance_ratios
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Whole

SAMPLES = ("good", "bad", "clipped", "last")
STAGES = ("collect", "score", "squeeze", "renew")
NUM_EPOCHS = 8
ACTIONS = ("left", "right")


@cache
def lives() -> dict[str, Any]:
    """Read what was recorded.

    Returns:
        `gamma`, `gae_lambda`, `clip_epsilon`, and `samples` by name: what `_life` of
        `benchmarks.squeeze` wrote down.
    """
    found = recorded("life_of_a_transition")
    return {name: found[name] for name in ("gamma", "gae_lambda", "clip_epsilon", "samples")}


def _start(**changes: Any) -> dict[str, Any]:
    state = {"sample": "clipped", "stage": "squeeze", "epoch": NUM_EPOCHS}
    return state | {"guess": None, "revealed": True} | changes


class LifeOfATransition(TeachingWidget):
    """Show one sample from the step that made it to the end of its use.

        w = LifeOfATransition(keep_as="training_loop.still_pushes")
        w.td_errors, w.advantage, w.ratios, w.pushes, w.answer

    Args:
        sample: "good", a little better than expected; "bad", worse; "clipped", much better, which
            falls silent for a while; "last", the step with which a pole fell.
        stage: "collect", "score", "squeeze" or "renew".
        epoch: of the squeeze stage, from 1 to 8.
        guess: in how many of the epochs it pushes, as the reader said; None while there is none.
        revealed: whether the last two stages are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "life_of_a_transition"
    STATE = ("sample", "stage", "epoch", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "collect": _start(stage="collect"),
        "score": _start(stage="score"),
        "squeeze": _start(epoch=5),
        "renew": _start(stage="renew"),
        "good": _start(sample="good"),
        "bad": _start(sample="bad"),
        "last": _start(sample="last", stage="score"),
    }
    PARTS = ("life_of_a_transition_panels", "life_of_a_transition")
    GUESS_UNIT = "epochs"
    DRAGS: ClassVar = (Drag("squeeze", "input[type=range]", 0.02, 0.98, values=8),)

    sample = Choice("clipped", options=SAMPLES)
    stage = Choice("squeeze", options=STAGES)
    epoch = Whole(NUM_EPOCHS, low=1, high=NUM_EPOCHS)
    guess = Whole(None, low=0, high=NUM_EPOCHS)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = lives()

    @property
    def record(self) -> dict[str, Any]:
        """What was written down of this sample."""
        return self.recording["samples"][self.sample]

    @property
    def action(self) -> str:
        """What the policy did: "left" or "right"."""
        return ACTIONS[self.record["action"]]

    def _scored(self) -> dict[str, Tensor]:
        """Lay the rest of its episode out as a rollout of one environment."""
        rest = {
            name: torch.tensor(self.record[name], dtype=torch.float64).unsqueeze(-1)
            for name in ("rewards", "values", "next_values")
        }
        flags = torch.zeros_like(rest["rewards"], dtype=torch.bool)
        flags[-1] = self.record["terminated"]
        return rest | {"terminated": flags}

    @property
    def td_errors(self) -> list[float]:
        """δ of this step and of those that follow in its episode."""
        return td_errors(**self._scored(), gamma=self.recording["gamma"]).flatten().tolist()

    @property
    def weighted(self) -> list[float]:
        """(γλ)ˡ·δ: what each TD error adds to the advantage."""
        weight = self.recording["gamma"] * self.recording["gae_lambda"]
        return [weight**later * each for later, each in enumerate(self.td_errors)]

    @property
    def advantage(self) -> float:
        """Â of this sample, before it is normalised."""
        scored = self._scored()
        none = torch.zeros_like(scored["terminated"])
        settings = {name: self.recording[name] for name in ("gamma", "gae_lambda")}
        return compute_gae(**scored, truncated=none, **settings)[0, 0].item()

    @property
    def target(self) -> float:
        """Â + V: what the critic should have said."""
        return self.advantage + self.record["values"][0]

    def _visited(self, name: str) -> Tensor:
        return torch.tensor([each[name] for each in self.record["visits"]], dtype=torch.float64)

    @property
    def ratios(self) -> list[float]:
        """π / π_old each time it is used, before the step that uses it."""
        new = self._visited("log_prob")
        return importance_ratios(new, torch.full_like(new, self.record["log_prob_old"])).tolist()

    @property
    def pushes(self) -> list[bool]:
        """Whether it still had a gradient, each time it was used."""
        found = []
        old = torch.tensor([self.record["log_prob_old"]], dtype=torch.float64)
        for new, advantage in zip(
            self._visited("log_prob").split(1),
            self._visited("normalized_advantage").split(1),
            strict=True,
        ):
            epsilon = self.recording["clip_epsilon"]
            _, silent = clip_fractions(new, old, advantage, clip_epsilon=epsilon)
            found.append(silent.item() == 0)
        return found

    @property
    def answer(self) -> int:
        """What the guess is compared with: in how many epochs it pushes."""
        return sum(self.pushes)

    def _probability(self, name: str) -> float:
        return torch.tensor(self.record[name], dtype=torch.float64).exp().item()

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "td_errors": self.td_errors,
            "weighted": self.weighted,
            "advantage": self.advantage,
            "target": self.target,
            "ratios": self.ratios,
            "pushes": self.pushes,
            "total": self.answer,
            "before": self._probability("log_prob_old"),
            "after": self._probability("log_prob_new"),
        }

    def _facts(self) -> dict[str, Any]:
        record, epoch = self.record, self.epoch
        normalized = record["visits"][epoch - 1]["normalized_advantage"]
        did = "silent" if not self.pushes[epoch - 1] else "up" if normalized > 0 else "down"
        return {
            "t": record["t"],
            "n": record["n"],
            "action": self._say(self.action),
            "angle": written(record["observation"][2], 3),
            "before": neat(self._probability("log_prob_old")),
            "after": neat(self._probability("log_prob_new")),
            "log_prob_old": neat(record["log_prob_old"]),
            "reward": written(record["rewards"][0], 0),
            "ending": self._say("fell" if self._falls() else "goes_on"),
            "value": neat(record["values"][0]),
            "following": neat(record["next_values"][0]),
            "td_error": neat(self.td_errors[0]),
            "count": len(self.td_errors) - 1,
            "advantage": neat(self.advantage),
            "target": neat(self.target),
            "epoch": epoch,
            "ratio": neat(self.ratios[epoch - 1]),
            "normalized": neat(normalized),
            "did": self._say(f"did_{did}"),
            "pushed": sum(self.pushes[:epoch]),
        }

    def _falls(self) -> bool:
        return self.record["terminated"] and len(self.record["rewards"]) == 1

    def sentence(self) -> str:
        """Say what the picture shows."""
        last = "_last" if self.stage == "score" and self._falls() else ""
        return self._say(f"sentence_{self.stage}{last}", **self._facts())

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        facts = self._facts()
        shown = STAGES[: STAGES.index(self.stage) + 1]
        return life_of_a_transition_figure(
            self.stage,
            [
                (self._say(stage), self._say(f"row_{stage}", **facts) if stage in shown else "…")
                for stage in STAGES
            ],
            numbers=self.numbers(),
            epoch=self.epoch,
            action=self.action,
            clip_epsilon=self.recording["clip_epsilon"],
        )


def neat(value: float) -> str:
    """Write with two digits; first without the rounding noise that differs from the script's."""
    return written(round(value, 9), 2)
