"""Where in time does each policy of the loss live? A generator, a trainer, a buffer between them.

Room in the buffer moves μ away from π_prox; updates for each batch move π away from it. Beside the
two lanes stands what such data did in the runs of `python -m benchmarks.staleness`.
"""

from functools import cache
from statistics import median
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.figures.staleness_timeline import staleness_timeline_figure
from ppo_lessons.importance import importance_ratios, surrogate_loss
from ppo_lessons.notebook import recorded
from ppo_lessons.staleness import VersionedBuffer, decoupled_loss, truncated_weights
from ppo_lessons.variants import plain_token_loss
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.beta_slider import percent
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, OneOf, Whole

CORRECTIONS = ("nothing", "ratio", "clip", "decoupled")
UPDATES = (1, 4)
BATCHES = 21  # on the timeline
MOST_ROOM = 17
FALL = 0.1  # what one update takes from the logit of the bad word
CLIP_EPSILON = 0.2
LARGEST_WEIGHT = 2.0


@cache
def recording() -> dict[str, dict[str, list[list[float]]]]:
    """Read what the recorded runs came to, whichever there are.

    Returns:
        "updates/correction/age" → success at the end, and mean share outside of the clip, of each
        seed that was run.
    """
    study = recorded("staleness")
    updates = {
        name: design["num_epochs"] * design["num_minibatches"]
        for name, design in study["designs"].items()
    }
    cells: dict[str, dict[str, list[list[float]]]] = {}
    for key, run in sorted(study["runs"].items()):
        design, correction, age, _ = key.split("/")
        cell = cells.setdefault(f"{updates[design]}/{correction}", {}).setdefault(age, [[], []])
        cell[0].append(run["final"]["success"])
        cell[1].append(sum(run["fraction_outside"]) / len(run["fraction_outside"]))
    return cells


@cache
def versions_met(capacity: int, updates: int) -> tuple[list[int], list[list[int]]]:
    """Let a fast generator and a trainer meet at a buffer.

    Args:
        capacity: room of the buffer, which is full before each update (batches).
        updates: updates for each batch.

    Returns:
        For each batch in its order: the version that drew it, and the versions of those that wait
        while it is used, oldest first.
    """
    buffer: VersionedBuffer[None] = VersionedBuffer(capacity)
    drawn, waiting = [], []
    for version in range(0, BATCHES * updates, updates):
        while not buffer.full:
            buffer.push(None, version=version)
        taken = buffer.pop(version=version, max_age=version)
        assert taken is not None  # none is older than the first version
        drawn.append(version - taken[1])
        ages = buffer.ages(version=version).items()
        waiting.append(sorted(version - age for age, count in ages for _ in range(count)))
    return drawn, waiting


def log_prob(logit: Tensor) -> Tensor:
    """Give the log-probability of the bad word, as one token of one answer."""
    return torch.nn.functional.logsigmoid(logit).reshape(1, 1)


def _start(**changes: Any) -> dict[str, Any]:
    start = {"capacity": 5, "updates": 1, "version": 10, "correction": "decoupled"}
    return start | {"guess": None, "revealed": True} | changes


class StalenessTimeline(TeachingWidget):
    """Show which version drew a batch, where its update began, which one learns, and what came out.

        w = StalenessTimeline(keep_as="staleness.decoupled_at_four")
        w.capacity, w.behaviour, w.proximal, w.now, w.weight, w.answer

    Args:
        capacity: room of the buffer (batches); a batch gets one less old.
        updates: updates for each batch, one of `UPDATES`.
        version: updates that the policy which learns has seen.
        correction: what the loss does about age, one of `CORRECTIONS`.
        guess: right answers at the end (%), as the reader said; None while there is no guess.
        revealed: whether the recorded runs are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "staleness_timeline"
    STATE = ("capacity", "updates", "version", "correction", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "apart": _start(),
        "around": _start(correction="clip"),
        "older": _start(correction="clip", capacity=17, version=19),
        "fresh": _start(correction="clip", capacity=1),
        "reuse": _start(correction="clip", capacity=1, updates=4, version=43),
        "bare": _start(correction="nothing", updates=4, version=43),
    }
    PARTS = ("staleness_timeline_panels", "staleness_timeline")
    GUESS_UNIT = "%"
    DRAGS: ClassVar = (Drag("apart", "input[type=range]", 0.01, 0.99, values=MOST_ROOM),)

    capacity = Whole(5, low=1, high=MOST_ROOM)
    updates = OneOf(1, options=UPDATES)
    version = Whole(10, low=0, high=BATCHES * UPDATES[-1] - 1)
    correction = Choice("decoupled", options=CORRECTIONS)
    guess = Whole(None, low=0, high=100)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = recording()

    # --- versions ----------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The version of π, which learns; the timeline ends after `BATCHES` batches."""
        return min(self.version, BATCHES * self.updates - 1)

    @property
    def proximal(self) -> int:
        """The version of π_prox, where the update on this batch began."""
        return self.now - self.now % self.updates

    @property
    def behaviour(self) -> int:
        """The version of μ, which drew this batch."""
        return self.drawn[self.now // self.updates]

    @property
    def drawn(self) -> list[int]:
        """The version that drew each batch of the timeline."""
        return versions_met(self.capacity, self.updates)[0]

    @property
    def waiting(self) -> list[int]:
        """The versions that drew what waits in the buffer, oldest first."""
        return versions_met(self.capacity, self.updates)[1][self.now // self.updates]

    # --- a bad word --------------------------------------------------------------------------

    def at_version(self, version: int) -> Tensor:
        """Give the log-probability of the bad word under a version, [1, 1] (nats)."""
        return log_prob(torch.tensor(-FALL * version, dtype=torch.float64))

    @property
    def weight(self) -> float:
        """The bad word's weight min(π_prox / μ, C)."""
        pair = self.at_version(self.proximal), self.at_version(self.behaviour)
        return truncated_weights(*pair, largest_weight=LARGEST_WEIGHT).item()

    def ratio_to(self, version: int) -> float:
        """Give the bad word's ratio of π to a version."""
        return importance_ratios(self.at_version(self.now), self.at_version(version)).item()

    @property
    def push(self) -> float:
        """The gradient of the loss by the bad word's logit, Â = −1: above 0 pushes it down."""
        logit = torch.tensor(-FALL * self.now, dtype=torch.float64, requires_grad=True)
        learned, old = log_prob(logit), self.at_version(self.behaviour)
        bad, one = -torch.ones_like(old), torch.ones_like(old, dtype=torch.bool)
        if self.correction == "nothing":
            loss = plain_token_loss(learned, old, bad, mask=one)
        elif self.correction == "ratio":
            loss = surrogate_loss(learned, old, bad, mask=one)
        elif self.correction == "clip":
            loss = clipped_surrogate_loss(learned, old, bad, clip_epsilon=CLIP_EPSILON, mask=one)
        else:
            loss = decoupled_loss(
                learned, self.at_version(self.proximal), old, bad, clip_epsilon=CLIP_EPSILON,
                largest_weight=LARGEST_WEIGHT, mask=one,
            )  # fmt: skip
        return torch.autograd.grad(loss, logit)[0].item()

    # --- what was recorded -------------------------------------------------------------------

    @property
    def cells(self) -> dict[str, list[list[float]]]:
        """What this loss came to, by age: success and share outside of each seed."""
        return self.recording.get(f"{self.updates}/{self.correction}", {})

    @property
    def recorded_age(self) -> int | None:
        """The age that was run and lies nearest (batches); None if this loss was not run."""
        age = self.capacity - 1
        return min(map(int, self.cells), key=lambda each: (abs(each - age), each), default=None)

    @property
    def answer(self) -> int | None:
        """What the guess is compared with: right answers at the end, middle seed (%)."""
        return None if self.recorded_age is None else percent(self._middle(0))

    @property
    def outside(self) -> float | None:
        """Mean share of the ratios outside of the clip, middle seed (%)."""
        return None if self.recorded_age is None else 100 * self._middle(1)

    @property
    def fresh(self) -> int | None:
        """Right answers at the end on fresh data, ratio and clip, middle seed (%)."""
        found = self.recording.get(f"{self.updates}/clip", {}).get("0")
        return None if found is None else percent(median(found[0]))

    def _middle(self, which: int) -> float:
        return median(self.cells[str(self.recorded_age)][which])

    # --- for the script and for people -------------------------------------------------------

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        ratios = {
            "ratio_proximal": self.ratio_to(self.proximal),
            "ratio_behaviour": self.ratio_to(self.behaviour),
        }
        names = (
            "now", "proximal", "behaviour", "drawn", "waiting", "weight", "push", "recorded_age",
            "answer", "outside", "fresh",
        )  # fmt: skip
        return ratios | {name: getattr(self, name) for name in names}

    def say(self, key: str, **values: Any) -> str:
        """Fill one of its sentences."""
        return say(self.NAME, key, language=self.language, **values)

    def outcome(self) -> str:
        """Say what the recorded runs came to."""
        if self.outside is None:
            return self.say("outcome_none")
        seeds = len(self.cells[str(self.recorded_age)][0])
        here = self.recorded_age == self.capacity - 1
        return self.say(
            "outcome",
            where=self.say("here" if here else "near", age=self.recorded_age),
            many=self.say("one" if seeds == 1 else "some", seeds=seeds),
            answer=self.answer,
            outside=written(self.outside, 1),
        )

    def sentence(self) -> str:
        """Say what the picture shows."""
        loss = self.say(
            f"loss_{self.correction}",
            both=self.now - self.behaviour,
            weighed=self.proximal - self.behaviour,
            clipped=self.now - self.proximal,
        )
        return self.say(
            "sentence",
            capacity=self.capacity,
            updates=self.updates,
            now=self.now,
            behaviour=self.behaviour,
            proximal=self.proximal,
            loss=loss,
            outcome=self.outcome(),
        )

    def spans(self) -> list[tuple[str, int, int]]:
        """List what the loss compares: words, first and last version."""
        if self.correction == "nothing":
            return [(self.say("span_none"), self.behaviour, self.behaviour)]
        ends = [("span_behaviour", self.behaviour, self.now)]
        if self.correction == "decoupled":
            ends = [
                ("span_weight", self.behaviour, self.proximal),
                ("span_clip", self.proximal, self.now),
            ]
        return [(self.say(key, versions=high - low), low, high) for key, low, high in ends]

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        shares = {
            name: {int(age): cell[0] for age, cell in cells.items()}
            for name in CORRECTIONS
            if (cells := self.recording.get(f"{self.updates}/{name}"))
        }
        return staleness_timeline_figure(
            self.drawn,
            updates=self.updates,
            versions=(self.behaviour, self.proximal, self.now),
            waiting=len(self.waiting),
            spans=self.spans(),
            shares=shares,
            chosen=(self.correction, self.capacity - 1),
        )
