"""Stop and roll back: a gate that sees a proxy, a few limits, and a small judge who errs.

    the proxy says better than at the best checkpoint, the judge says worse than there    confirmed
    the judge says worse than the unmodified model                                        confirmed
    answers without an end, distance, length, entropy or age beyond its limit             at once

With the true verifier at hand a gate would be pointless: one would train on that. What it has is a
few labels for each evaluation. The best of many noisy numbers is too high, and the worst of many
too low. So a checkpoint that looks best is labelled again before it is believed; and before a run
is stopped, both checkpoints are, on prompts that were not used yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, isfinite
from typing import Literal

from torch import Generator

from ppo_lessons.evidence.counting import Count
from ppo_lessons.evidence.judge import Estimate, check_accuracy, draw_count, estimate_success

Action = Literal["continue", "roll back"]


@dataclass(frozen=True, kw_only=True)
class GateConfig:
    """What the gate knows, and how sure it must be."""

    num_labels: int = 64
    """Labels of the judge for each evaluation, at least 1."""
    accuracy: float = 0.85
    """Of the judge, in (0.5, 1]; measure it with `calibrate`."""
    z: float = 2.0
    """Standard errors by which the judge must see a loss, and see it again, above 0."""
    limits: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"no_eos": (0.0, 0.2)}
    )
    """Metrics that end a run at once where they leave [low, high]; a noise-free few."""

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ValueError: with the first field that is out of its range.
        """
        check_accuracy(self.accuracy)
        if self.num_labels < 1:
            raise ValueError(
                f"num_labels is {self.num_labels}; expected at least 1. A judge must see something."
            )
        if not self.z > 0:
            raise ValueError(f"z is {self.z}; expected a number above 0. 2 is usual.")
        for name, (low, high) in self.limits.items():
            if not low <= high:
                raise ValueError(
                    f"limits[{name!r}] is ({low}, {high}); expected low ≤ high. Swap the two."
                )


def check_score(score: float) -> None:
    """Require a finite score: nothing is above or below one that is none.

    Raises:
        ValueError: if it is NaN or infinite.
    """
    if not isfinite(score):
        raise ValueError(
            f"score is {score}; expected a finite number, or no later one could be compared with "
            "it. Look at what the reward model gave."
        )


@dataclass(frozen=True)
class Evaluation:
    """What the gate sees of one checkpoint.

    Attributes:
        iteration: of the run.
        score: mean of the proxy reward on the gate's prompts (reward).
        labels: of the judge, on the gate's prompts.
        metrics: whatever `GateConfig.limits` names.
    """

    iteration: int
    score: float
    labels: Count
    metrics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Require a score that can be compared.

        Raises:
            ValueError: if it is NaN or infinite.
        """
        check_score(self.score)


@dataclass(frozen=True)
class Decision:
    """What to do now.

    Attributes:
        action: "continue", or "roll back" to the checkpoint of `best`.
        iteration: of the evaluation that it was made on.
        best: the iteration whose checkpoint is to be kept; 0 is the unmodified model.
        reasons: sentences; empty while nothing is wrong.
    """

    action: Action
    iteration: int
    best: int
    reasons: tuple[str, ...] = ()


Relabel = Callable[[int], Count]
"""Fresh labels of the checkpoint of an iteration (0: the unmodified model), on unused prompts."""


class Gate:
    """Watches a run, evaluation by evaluation.

    Args:
        config: what it knows, how sure it must be.
        baseline: labels of the unmodified model on fresh prompts; the more, the better.
        score: mean proxy reward of the unmodified model on the gate's prompts (reward).
    """

    def __init__(self, config: GateConfig, *, baseline: Count, score: float):
        check_score(score)
        self.config = config
        self.baseline = self._estimate(baseline)
        self.best, self.best_iteration, self.best_score = self.baseline, 0, score
        self.stopped = False

    def update(self, evaluation: Evaluation, relabel: Relabel) -> Decision:
        """Look at one more checkpoint.

        Args:
            evaluation: what is seen of it.
            relabel: asked for fresh labels where this checkpoint looks better than the best one so
                far, and of both checkpoints before a run is stopped.

        Returns:
            What to do.

        Raises:
            ValueError: if the gate has stopped the run already, or a metric that has a limit is
                missing.
        """
        if self.stopped:
            raise ValueError(
                "the gate has stopped this run; expected no further evaluation. Roll back, and "
                "make a new gate for what is trained from there."
            )
        reasons = self._beyond_limits(evaluation) or self._confirmed_loss(evaluation, relabel)
        if reasons:
            self.stopped = True
            return Decision("roll back", evaluation.iteration, self.best_iteration, tuple(reasons))
        if self._estimate(evaluation.labels).success > self.best.success:
            # Chosen because its labels came out high: only fresh ones say how good it is.
            self.best = self._estimate(relabel(evaluation.iteration))
            self.best_score, self.best_iteration = evaluation.score, evaluation.iteration
        return Decision("continue", evaluation.iteration, self.best_iteration)

    def _confirmed_loss(self, evaluation: Evaluation, relabel: Relabel) -> list[str]:
        """Look for a loss twice, the second time with fresh labels on both sides."""
        seen = self._estimate(evaluation.labels)
        below_best = evaluation.score > self.best_score and self._worse(seen, self.best)
        below_baseline = self._worse(seen, self.baseline)
        if not (below_best or below_baseline):
            return []
        seen, reasons = self._estimate(relabel(evaluation.iteration)), []
        if below_best:
            self.best = self._estimate(relabel(self.best_iteration))
            if self._worse(seen, self.best):
                reasons.append(
                    f"the score rose from {self.best_score:.2f} to {evaluation.score:.2f} while "
                    f"the judged success fell from {self.best.success:.2f} to {seen.success:.2f}"
                )
        if below_baseline:
            baseline = self._estimate(relabel(0))
            if self._worse(seen, baseline):
                reasons.append(
                    f"the judged success {seen.success:.2f} lies below {baseline.success:.2f}, "
                    "that of the unmodified model"
                )
        return reasons

    def _estimate(self, labels: Count) -> Estimate:
        return estimate_success(labels, accuracy=self.config.accuracy)

    def _worse(self, seen: Estimate, before: Estimate) -> bool:
        """Say whether the judge sees a loss that noise would seldom make."""
        noise = hypot(seen.standard_error, before.standard_error)
        return seen.success < before.success - self.config.z * noise

    def _beyond_limits(self, evaluation: Evaluation) -> list[str]:
        found = []
        for name, (low, high) in self.config.limits.items():
            if name not in evaluation.metrics:
                raise ValueError(
                    f"the evaluation of iteration {evaluation.iteration} has no metric {name!r}; "
                    "expected every metric that has a limit. Measure it, or take its limit away."
                )
            value = evaluation.metrics[name]
            if not low <= value <= high:  # NaN is beyond every limit
                found.append(f"{name} is {value:.3g}, outside of {low:g} to {high:g}")
        return found


@dataclass(frozen=True)
class RecordedRun:
    """A run whose true success was measured at each evaluation, to be replayed.

    Attributes:
        iterations: of each evaluation.
        scores: mean proxy reward (reward).
        successes: true success, in [0, 1].
        metrics: further columns, by name.
        baseline_score: of the unmodified model (reward).
        baseline_success: of the unmodified model.
    """

    iterations: Sequence[int]
    scores: Sequence[float]
    successes: Sequence[float]
    metrics: Mapping[str, Sequence[float]]
    baseline_score: float
    baseline_success: float


def replay(
    run: RecordedRun,
    config: GateConfig,
    *,
    baseline_labels: int,
    generator: Generator,
    gate: Callable[..., Gate] = Gate,
) -> Decision | None:
    """Let a gate watch a recorded run, with labels that are drawn anew.

    Args:
        run: with its true success, which only the judge's labels let through.
        config: of the gate.
        baseline_labels: labels of the unmodified model, at least 1.
        generator: draws the labels.
        gate: makes the gate that watches: (config | baseline, score).

    Returns:
        The decision to roll back; None if the gate stayed silent.

    Raises:
        ValueError: if the columns of the run differ in length.
    """
    columns = (run.scores, run.successes, *run.metrics.values())
    if any(len(column) != len(run.iterations) for column in columns):
        raise ValueError(
            f"the run has {len(run.iterations)} iterations and columns of "
            f"{sorted({len(column) for column in columns})}; expected one entry for each. Record "
            "all of them at each evaluation."
        )

    truth = dict(zip(run.iterations, run.successes, strict=True)) | {0: run.baseline_success}

    def draw(iteration: int, num_labels: int) -> Count:
        return draw_count(
            truth[iteration], num_labels=num_labels, accuracy=config.accuracy, generator=generator
        )

    def relabel(iteration: int) -> Count:
        return draw(iteration, config.num_labels)

    baseline = draw(0, baseline_labels)
    watching = gate(config, baseline=baseline, score=run.baseline_score)
    for row, iteration in enumerate(run.iterations):
        seen = Evaluation(
            iteration,
            run.scores[row],
            relabel(iteration),
            {name: column[row] for name, column in run.metrics.items()},
        )
        decision = watching.update(seen, relabel)
        if decision.action == "roll back":
            return decision
    return None
