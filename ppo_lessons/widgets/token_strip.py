"""What is written down about each token of a response? And which bookkeeping is this?

One response of a small language model, scored in the ways of `ppo_lessons.tokens.bookkeeping`, and
the ratios of a thousand others: `token_strip.json` in `ppo_lessons/recorded`, from
`python -m benchmarks.tokens`. What follows from the record is computed here.
"""

import math
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from ppo_lessons.figures.token_strip import token_strip_figure
from ppo_lessons.importance import importance_ratios
from ppo_lessons.notebook import recorded
from ppo_lessons.shapes import masked_mean
from ppo_lessons.tokens.bookkeeping import WAYS
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Whole

OFF = 1e-3  # a ratio farther from 1 than this is off; rounding in float32 reaches 1e-5
MOST_TOKENS = 16


@cache
def recording() -> dict[str, Any]:
    """Read what was recorded.

    Returns:
        `prompt` and `response`, texts of tokens; `ways` by name, each with `positions`, `mask`,
        `log_probs_old` and `log_probs`; `shares` by name, of ratios in bins of their logarithm,
        which go from −`reach` to `reach`.
    """
    found = recorded("token_strip")
    return {name: found[name] for name in ("prompt", "response", "ways", "shares", "reach")}


def _start(**changes: Any) -> dict[str, Any]:
    return {"way": "right", "token": 1, "guess": None, "revealed": True} | changes


class TokenStrip(TeachingWidget):
    """Show a response token by token, and ask which bookkeeping is at work.

        w = TokenStrip(keep_as="tokens.which_books")
        w.ratios, w.num_actions, w.num_off, w.mean_ratio, w.answer
        TokenStrip(strip={"prompt": [...], "response": [...], "ways": {"right": {...}},
                          "rows": {"advantage Â": [...], "KL": [...]}})

    Args:
        way: one of `WAYS`; "right" is right.
        token: of the response, from 1 on; the one whose numbers are spelled out.
        guess: the way, as the reader said; None while there is no guess.
        revealed: whether the page says which way it is.
        strip: another response in the place of the recorded one. It has at most 16 tokens. `rows`
            holds further lines, a name and one number for each token of the response; `shares`
            and `reach` may be left out. With the way "right" alone nothing is asked.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "token_strip"
    STATE = ("way", "token", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(way="padding_in_positions", revealed=False),
        "right": _start(),
        "one_place_late": _start(way="one_place_late"),
        "padding_in_positions": _start(way="padding_in_positions"),
        "temperature_forgotten": _start(way="temperature_forgotten"),
        "few_words_only": _start(way="few_words_only"),
        "eos_left_out": _start(way="eos_left_out", token=5),
        "padding_as_actions": _start(way="padding_as_actions", token=7),
    }
    DRAGS: ClassVar = (Drag("right", "input[type=range]", 0.02, 0.98, values=8),)
    PARTS = ("token_strip_panel", "token_strip")

    way = Choice("padding_in_positions", options=tuple(WAYS))
    token = Whole(1, low=1, high=MOST_TOKENS)
    guess = Choice(None, options=tuple(WAYS))
    strip = traitlets.Dict()
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        if self.strip:
            _check(self.strip)
            self.way = next(iter(self.strip["ways"]))
            self.revealed = self.revealed or len(self.strip["ways"]) == 1
        self.recording = {"rows": {}, **(dict(self.strip) or recording())}

    @classmethod
    def settings(cls) -> list[str]:
        """List what may be given: the traits of the state, `strip`, `keep_as`, and the others."""
        return [*super().settings(), "strip"]

    @property
    def books(self) -> dict[str, Any]:
        """What this way has written down."""
        return self.recording["ways"][self.way]

    def _of(self, name: str) -> Tensor:
        return torch.tensor(self.books[name], dtype=torch.float64)

    @property
    def mask(self) -> Tensor:
        """Which tokens it takes for actions."""
        return self._of("mask").bool()

    @property
    def all_ratios(self) -> Tensor:
        """π / π_old of each token of the response, before any update."""
        return importance_ratios(self._of("log_probs"), self._of("log_probs_old"))

    @property
    def ratios(self) -> list[float]:
        """π / π_old of each action."""
        return self.all_ratios[self.mask].tolist()

    @property
    def num_actions(self) -> int:
        """How many tokens it takes for actions."""
        return int(self.mask.sum())

    @property
    def num_off(self) -> int:
        """How many of their ratios are not 1."""
        return sum(abs(ratio - 1) > OFF for ratio in self.ratios)

    @property
    def mean_ratio(self) -> float:
        """Mean ratio of the actions."""
        return masked_mean(self.all_ratios, self.mask).item()

    @property
    def farthest(self) -> float:
        """The ratio that is farthest from 1."""
        return max(self.ratios, key=lambda ratio: abs(math.log(ratio)), default=1.0)

    @property
    def place(self) -> int:
        """Index of the token whose numbers are spelled out; a shorter response has fewer."""
        return min(self.token, len(self.recording["response"])) - 1

    @property
    def answer(self) -> str:
        """What the guess is compared with."""
        return self.way

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "ratios": self.all_ratios.tolist(),
            "actions": self.num_actions,
            "off": self.num_off,
            "mean": self.mean_ratio,
            "farthest": self.farthest,
            "place": self.place,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        place = self.place
        about = {
            "way": self._say(f"way_{self.way}"),
            "belief": self._say(f"belief_{self.way}"),
            "actions": self.num_actions,
            "off": self.num_off,
            "farthest": fine(self.farthest),
            "number": place + 1,
            "text": self.recording["response"][place],
            "old": fine(self.books["log_probs_old"][place]),
            "new": fine(self.books["log_probs"][place]),
            "ratio": fine(self.all_ratios[place].item()),
        }
        token = self._say("sentence_token" if self.mask[place] else "sentence_no_action", **about)
        ratios = self._say("sentence_off" if self.num_off else "sentence_all_one", **about)
        return self._say("sentence", ratios=ratios, token=token, **about)

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        right = self.recording["ways"].get("right", self.books)
        return token_strip_figure(
            self.recording["prompt"],
            self.recording["response"],
            positions=self.books["positions"],
            mask=self.books["mask"],
            log_probs_old=self.books["log_probs_old"],
            log_probs=self.books["log_probs"],
            ratios=self.all_ratios.tolist(),
            rows=self.recording["rows"],
            changed_positions=_changed(self.books["positions"], right["positions"]),
            changed_mask=_changed(self.books["mask"], right["mask"]),
            shares=self.recording.get("shares", {}).get(self.way),
            reach=self.recording.get("reach", 2.0),
            title=self._say("picture_title", way=self._say(f"way_{self.way}")),
            names=[self._say(f"line_{name}") for name in LINES],
            off=OFF,
        )


LINES = ("token", "position", "action", "old", "new", "ratio")


def fine(number: float) -> str:
    """Write with about three figures."""
    size = abs(number)
    small = 5 if size < 0.00995 else 3
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else small if 0 < size < 0.0995 else 2
    return written(number, digits)


def _changed(some: list[Any], others: list[Any]) -> list[bool]:
    return [one != other for one, other in zip(some, others, strict=True)]


def _check(strip: dict[str, Any]) -> None:
    """Require a strip that can be drawn.

    Raises:
        ValueError: if a part is missing, a way unknown, or a line has another length.
    """
    if missing := {"prompt", "response", "ways"} - set(strip):
        raise ValueError(f"strip lacks {', '.join(sorted(missing))}; expected texts and ways.")
    if unknown := set(strip["ways"]) - set(WAYS):
        raise ValueError(f"strip has the ways {sorted(unknown)}; expected some of {list(WAYS)}.")
    length, whole = len(strip["response"]), len(strip["prompt"]) + len(strip["response"])
    if not 1 <= length <= MOST_TOKENS or not strip["ways"]:
        raise ValueError(
            f"strip has {length} tokens in its response; expected 1 to {MOST_TOKENS}, and one way."
        )
    lines = {name: row for name, row in strip.get("rows", {}).items()}
    for way in strip["ways"].values():
        lines |= {name: way[name] for name in ("mask", "log_probs_old", "log_probs")}
        if len(way["positions"]) != whole:
            raise ValueError(f"positions has {len(way['positions'])} entries; expected {whole}.")
        for name, row in lines.items():
            if len(row) != length:
                raise ValueError(f"{name} has {len(row)} numbers; expected {length}.")
