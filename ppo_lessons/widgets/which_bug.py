"""Which bug is it? Seven recorded runs without a name, each beside the healthy run of its seed.

The runs come from `python -m benchmarks.debugging`, the bugs from `ppo_lessons.debugging`.
"""

from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.which_bug import which_bug_figure
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Whole

# letter -> the bug, and the panel in which it shows; "" if in none
RUNS = {
    "a": ("steps_too_long", "kl_k3"),
    "b": ("old_on_the_graph", "kl_k3"),
    "c": ("values_broadcast", "ev_lambda"),
    "d": ("probabilities_as_logits", "entropy"),
    "e": ("old_and_new_swapped", "silent_share"),
    "f": ("normalized_too_early", "value_loss"),
    "g": ("rewards_shifted", ""),
}
OTHERS = ("nothing", "critic_not_trained", "entropy_punished")  # that no run here has
DIAGNOSES = (*(bug for bug, _ in RUNS.values()), *OTHERS)
# bug -> the line as it should be, and as it is; "" where there should be none
LINES = {
    "steps_too_long": ("", 'group["lr"] *= 30'),
    "old_on_the_graph": (
        "ratios = importance_ratios(log_probs, log_probs_old)",
        "ratios = (log_probs - log_probs.clone()).exp()",
    ),
    "values_broadcast": (
        "return (values - returns).square().mean() / 2",
        "return (values.unsqueeze(-1) - returns).square().mean() / 2",
    ),
    "probabilities_as_logits": (
        "return self.body(observations).log_softmax(dim=-1)",
        "return self.body(observations).softmax(dim=-1).log_softmax(dim=-1)",
    ),
    "old_and_new_swapped": (
        "ratios = importance_ratios(log_probs, log_probs_old)",
        "ratios = importance_ratios(log_probs_old, log_probs)",
    ),
    "normalized_too_early": ("return advantages", "return normalize_advantages(advantages)"),
    "rewards_shifted": ("", "late = rewards.roll(1, dims=0)"),
}
NUM_ITERATIONS = 48
FEWEST_OUTSIDE = 0.01  # of the samples; where fewer are outside their share is shown as 0
# panel -> digits that are shown
DIGITS = {
    "episode_return": 0,
    "kl_k3": 4,
    "silent_share": 2,
    "entropy": 2,
    "value_loss": 2,
    "ev_lambda": 2,
}


@cache
def runs() -> dict[str, dict[str, list[float]]]:
    """Read the metrics of the healthy run and of the seven, by letter.

    Returns:
        For each run and panel one number per iteration; 0 where none could be computed.
    """
    study = recorded("debugging")["runs"]
    names = {"healthy": "healthy"} | {letter: bug for letter, (bug, _) in RUNS.items()}
    return {letter: panels_of(study[name]) for letter, name in names.items()}


def panels_of(run: dict[str, list[float | None]]) -> dict[str, list[float]]:
    """Give what the panels show of one run."""
    shares = zip(run["fraction_zero_gradient"], run["fraction_outside"], strict=True)
    found = {
        metric: [number or 0.0 for number in run[metric]]
        for metric in DIGITS
        if metric != "silent_share"
    }
    found["silent_share"] = [
        round(silent / outside, 3) if silent and outside and outside > FEWEST_OUTSIDE else 0.0
        for silent, outside in shares
    ]
    return found


def _start(**changes: Any) -> dict[str, Any]:
    return {"run": "a", "iteration": 8, "guess": None, "revealed": True} | changes


class WhichBug(TeachingWidget):
    """Show a run with a hidden bug beside a healthy one, and ask which bug it is.

        w = WhichBug(keep_as="debugging.which_bug")
        w.run, w.iteration, w.bug, w.pairs()

    Args:
        run: one of "a" to "g".
        iteration: at which the numbers are read off, from 1 to 48.
        guess: the diagnosis, as the reader said, one of `DIAGNOSES`; None while there is none.
        revealed: whether bug, line and panel are shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "which_bug"
    STATE = ("run", "iteration", "guess", "revealed")
    STATES = {"guess": _start(revealed=False)} | {letter: _start(run=letter) for letter in RUNS}
    PARTS = ("which_bug_panels", "which_bug")
    DRAGS: ClassVar = (Drag("a", "input[type=range]", 0.02, 0.98, values=NUM_ITERATIONS),)

    run = Choice("a", options=tuple(RUNS))
    iteration = Whole(8, low=1, high=NUM_ITERATIONS)
    guess = Choice(None, options=DIAGNOSES)
    study = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.study = {
            "runs": runs(),
            "bugs": {letter: list(each) for letter, each in RUNS.items()},
            "lines": {bug: list(lines) for bug, lines in LINES.items()},
        }

    @property
    def bug(self) -> str:
        """The name of this run's bug in `BUGS`."""
        return RUNS[self.run][0]

    @property
    def answer(self) -> str:
        """What the guess is compared with."""
        return self.bug

    def pairs(self) -> dict[str, tuple[float, float]]:
        """Give each panel's numbers at this iteration, of the healthy run and of this one."""
        both = self.study["runs"]["healthy"], self.study["runs"][self.run]
        at = self.iteration - 1
        return {metric: (both[0][metric][at], both[1][metric][at]) for metric in DIGITS}

    def numbers(self) -> dict[str, Any]:
        """Compute what the script shows for the same state."""
        return {metric: list(pair) for metric, pair in self.pairs().items()}

    def sentence(self) -> str:
        """Say which bug it is, where it shows, and two numbers of this iteration."""
        _, panel = RUNS[self.run]
        pair = self.pairs()[panel or "episode_return"]
        one, two = (written(number, DIGITS[panel or "episode_return"]) for number in pair)
        return self._say(
            "sentence" if panel else "sentence_nowhere",
            run=self._say(f"run_{self.run}"),
            bug=self._say(f"bug_{self.bug}"),
            what=self._say(f"what_{self.bug}"),
            panel=self._say(f"panel_{panel}") if panel else "",
            iteration=self.iteration,
            one=one,
            two=two,
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        _, panel = RUNS[self.run]
        return which_bug_figure(
            self.study["runs"]["healthy"],
            self.study["runs"][self.run],
            iteration=self.iteration,
            names={metric: self._say(f"panel_{metric}") for metric in DIGITS},
            betrayed_by=panel,
            title=f"{self._say('run')} {self._say(f'run_{self.run}')}: "
            f"{self._say(f'bug_{self.bug}')}",
            lines=LINES[self.bug],
        )
