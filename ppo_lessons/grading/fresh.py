"""What is an answer called with, that its author has not seen?

The public cases are the templates. Their structure is kept: shapes, flags, zeros, signs, on which
side of an edge a number lies. Their numbers are drawn anew, twice: once so that equal numbers
stay equal ("the same two samples twice"), once without that. In the last stage flags and integers
are drawn too. Each stage begins with the smallest case: what fails there has nothing to show.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, hypot, isclose, log
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.ablations import drawn_intervals
from ppo_lessons.checks.debugging import alarm_drawn
from ppo_lessons.checks.exercises import (
    SEEDED,
    SMALLEST,
    Case,
    Exercise,
    FunctionExercise,
    Made,
    leaves,
    seeded,
)
from ppo_lessons.checks.gae import drawn_rollout
from ppo_lessons.checks.reinforce import draw_ends
from ppo_lessons.checks.rollout import blank_but, resets_drawn, running_drawn
from ppo_lessons.checks.tokens import drawn_mask
from ppo_lessons.checks.training_loop import Descent, Slopes, Weights
from ppo_lessons.grading.items.questions import drawn_cases, is_own

Arguments = MutableMapping[str, Any]


def stages_of(exercise: Exercise) -> tuple[str, ...]:
    """List the stages that have hidden inputs, in order.

    Args:
        exercise: any; a row of predictions has none, since its questions are public.
    """
    if not isinstance(exercise, FunctionExercise):
        return ()
    return tuple(dict.fromkeys(case.stage for case in exercise.cases if case.stage != SMALLEST))


def fresh_cases(exercise: FunctionExercise, *, stage: str, seed: int) -> tuple[Case, ...]:
    """Draw new inputs for one stage: the same for the same exercise, stage and seed.

    Args:
        exercise: whose public cases are the templates.
        stage: one of `stages_of(exercise)`.
        seed: any whole number.

    Raises:
        ValueError: if the exercise has no such stage.
    """
    if stage not in stages_of(exercise):
        raise ValueError(f"{exercise.id} has no hidden stage {stage!r}")
    random = Random(f"{exercise.id}/{stage}/{seed}")
    if is_own(exercise.id):
        return drawn_cases(exercise, stage, random)
    smallest = [case for case in exercise.cases if case.stage == SMALLEST]
    found = [varied(exercise, case, Hand(random, kept=False)) for case in smallest]
    for case in [case for case in exercise.cases if case.stage == stage]:
        for kept in (False,) if stage == SEEDED else (True, False):
            found.append(varied(exercise, case, Hand(random, kept=kept)))
    return tuple(found)


def varied(exercise: Exercise, case: Case, hand: "Hand") -> Case:
    """Draw the numbers of a case anew; in the last stage integers and flags as well."""
    inputs, options = dict(case.inputs), dict(case.options)
    if case.stage == SEEDED:
        for name in case.integers:
            values = leaves(inputs[name])
            inputs[name] = each(inputs[name], lambda _, values=values: hand.random.choice(values))
        DRAWN_ANEW.get(exercise.id, nothing)(hand, inputs, options)
    for rule in RULES[exercise.id]:
        rule(hand, inputs, options)
    return replace(case, name=f"like: {case.name}", inputs=inputs, options=options)


# --- numbers -------------------------------------------------------------------------------


class Hand:
    """Draws the numbers of one case.

    Args:
        random: where they come from.
        kept: whether equal numbers stay equal.
    """

    def __init__(self, random: Random, *, kept: bool):
        self.random, self.kept = random, kept
        self.drawn: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Make something; if equal numbers stay equal, once for each key."""
        if not self.kept:
            return make()
        if key not in self.drawn:
            self.drawn[key] = make()
        return self.drawn[key]

    def near(self, number: float, low: float = 0.7, high: float = 1.4) -> float:
        """Draw a number of the same sign and about the same size; 0 stays 0."""
        return digits(number * self.random.uniform(low, high), 3)

    def dyadic(self, low: float, high: float) -> float:
        """Draw a number that a float32 holds exactly, also behind a thousand."""
        return round(self.random.uniform(low, high) * 64) / 64

    def count(self, number: int) -> int:
        """Draw a number of repetitions: none and one stay."""
        return number if number < 2 else number + self.random.randrange(3)


Rule = Callable[[Hand, Arguments, Arguments], None]


def nothing(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Leave all as it is."""


def digits(number: float, count: int) -> float:
    """Round to some significant digits."""
    return float(f"{number:.{count}g}")


def each(table: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the numbers of nested lists."""
    if isinstance(table, list):
        return [each(part, function) for part in table]
    return function(table)


def rows(table: Any, function: Callable[[list[float]], list[float]]) -> Any:
    """Apply a function to the last axis of nested lists."""
    if isinstance(table[0], list):
        return [rows(part, function) for part in table]
    return function(table)


def together(function: Callable[..., tuple[Any, ...]], *tables: Any) -> tuple[Any, ...]:
    """Apply a function to the numbers at the same place of several nested lists."""
    if isinstance(tables[0], list):
        parts = [together(function, *part) for part in zip(*tables, strict=True)]
        return tuple(map(list, zip(*parts, strict=True)))
    return function(*tables)


def beside(hand: Hand, number: float, edges: Sequence[float], now: Sequence[float]) -> float:
    """Draw a number on the same sides of some edges, which may have moved; on one it stays there.

    Args:
        hand: draws.
        number: above 0.
        edges: where they were, in order, above 0.
        now: where they are.
    """
    for edge, new in zip(edges, now, strict=True):
        if isclose(number, edge, rel_tol=1e-9):
            return new
    place = bisect_left(edges, number)
    if place == 0:
        gap = (1 - number / edges[0]) * hand.random.uniform(0.7, 1.2)
        return now[0] * (1 - min(gap, 0.95))
    low = edges[place - 1]
    if place == len(edges):
        return now[-1] + (number - low) * hand.random.uniform(0.7, 1.4)
    share = (number - low) / (edges[place] - low) + hand.random.uniform(-0.25, 0.25)
    return now[place - 1] + min(max(share, 0.08), 0.92) * (now[place] - now[place - 1])


# --- rules for one argument ----------------------------------------------------------------


def real(*names: str) -> Rule:
    """Numbers of the same sign and size; those of arguments listed together share their map."""

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        for given in (inputs, options):
            for name in [name for name in names if given.get(name) is not None]:
                given[name] = each(
                    given[name], lambda x: hand.once((names, x), lambda: hand.near(x))
                )

    return rule


def fraction(*names: str) -> Rule:
    """Numbers in (0, 1), as γ; 0 and 1 stay."""

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        for name in names:
            gap = (1 - options[name]) * hand.random.uniform(0.6, 1.5)
            if options[name] not in (0, 1):
                options[name] = round(1 - gap, 3)

    return rule


def repetitions(name: str) -> Rule:
    """How many steps or epochs."""

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        options[name] = hand.count(options[name])

    return rule


def logits(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Rows of logits; large ones stay large together."""
    inputs["logits"] = rows(
        inputs["logits"], lambda row: hand.once(tuple(row), lambda: logit_row(hand, row))
    )


def logit_row(hand: Hand, row: Sequence[float]) -> list[float]:
    """Draw one row of logits."""
    top = max(row) if abs(max(row)) > 10 else 0.0
    moved = top + hand.dyadic(-0.1, 0.1) * abs(top)
    scale = hand.random.uniform
    return [moved + round(((x - top) * scale(0.8, 1.25) + scale(-0.4, 0.4)) * 64) / 64 for x in row]


def policies(*names: str) -> Rule:
    """Rows of probabilities; zeros, and what is all but 0, stay."""

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        for name in names:
            inputs[name] = rows(
                inputs[name], lambda row: hand.once(tuple(row), lambda: policy_row(hand, row))
            )

    return rule


def policy_row(hand: Hand, row: Sequence[float]) -> list[float]:
    """Draw one row of probabilities, in units of 1/1024: its sum is exactly 1 in float32 too."""
    weights = [x * hand.random.uniform(0.6, 1.6) if x > 1e-6 else 0.0 for x in row]
    found = [max(round(1024 * w / sum(weights)), 1) / 1024 if w else 0.0 for w in weights]
    largest = weights.index(max(weights))
    found[largest] += 1 - sum(found)
    found = [y if w else x for w, x, y in zip(weights, row, found, strict=True)]
    return [y - sum(x for x in row if x <= 1e-6) * (i == largest) for i, y in enumerate(found)]


def fisher(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A symmetric matrix that has an inverse: rows and columns are scaled."""
    matrix = inputs["fisher"]
    scales = [hand.random.uniform(0.85, 1.2) for _ in matrix]
    lower = [
        [digits(x * scales[i] * scales[j], 4) for j, x in enumerate(row[: i + 1])]
        for i, row in enumerate(matrix)
    ]
    size = range(len(matrix))
    inputs["fisher"] = [[lower[max(i, j)][min(i, j)] for j in size] for i in size]


# --- rules for several arguments -----------------------------------------------------------


def log_prob_pairs(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Log-probabilities, new and old; what is too small for a float stays so.

    Beside such numbers all are multiples of 1/64, which a float32 adds up exactly.
    """
    tiny = min(leaves([inputs["log_probs"], inputs["log_probs_old"]])) < -100

    def draw(new: float, old: float) -> tuple[float, ...]:
        pair = log_prob_pair(hand, new, old)
        return tuple(round(x * 64) / 64 for x in pair) if tiny else pair

    inputs["log_probs"], inputs["log_probs_old"] = together(
        lambda new, old: hand.once((new, old), lambda: draw(new, old)),
        inputs["log_probs"],
        inputs["log_probs_old"],
    )


def log_prob_pair(hand: Hand, new: float, old: float) -> tuple[float, float]:
    """Draw one pair."""
    change = new - old
    if abs(change) > 100:  # two that cancel must do so still
        near = hand.dyadic(-3, -0.5)
        far = near - abs(change) * (1 + 1 / 64)
        return (far, near) if change < 0 else (near, far)
    if old < -100:
        start = old - hand.dyadic(0, 50)
        return start + moved(hand, change), start
    start = hand.near(old)
    if new == 0:
        return 0.0, start
    ratio = moved(hand, change)
    if new < 0:
        start = min(start, -ratio - hand.random.uniform(0.02, 0.2))
    return round(start + ratio, 6), round(start, 6)


def moved(hand: Hand, change: float) -> float:
    """Draw how far a number moved; one that had not moved may do so unless equal stays equal."""
    if change or hand.kept:
        return change * hand.random.uniform(0.7, 1.4)
    return hand.random.choice([-1, 1]) * hand.random.uniform(0.1, 0.4)


def log_probs(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Log-probabilities alone."""

    def draw(x: float) -> float:
        return x - hand.dyadic(0, 50) if x < -100 else hand.near(x)

    inputs["log_probs"] = each(inputs["log_probs"], lambda x: hand.once(x, lambda: draw(x)))


def clipped_ratios(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Ratios on their side of the edges; edges other than the usual ones move."""
    edges, now = clip_edges(hand, options)

    def draw(ratio: float) -> float:
        if ratio == 1 and not hand.kept:
            ratio = 1 + hand.random.choice([-0.02, 0.02])
        return round(beside(hand, ratio, edges, now), 4)

    if "ratios" in inputs:
        inputs["ratios"] = each(inputs["ratios"], lambda x: hand.once(x, lambda: draw(x)))
        return

    def pair(new: float, old: float) -> tuple[float, float]:
        ratio = log(draw(round(exp(new - old), 5)))
        start = log(hand.random.uniform(0.15, 0.6))
        start = old - hand.dyadic(0, 50) if old < -100 else min(start, -ratio - 0.02)
        return round(start + ratio, 6), round(start, 6)

    inputs["log_probs"], inputs["log_probs_old"] = together(
        lambda new, old: hand.once((new, old), lambda: pair(new, old)),
        inputs["log_probs"],
        inputs["log_probs_old"],
    )


USUAL = (
    {"clip_epsilon": 0.2},
    {"epsilon_low": 0.2, "epsilon_high": 0.3, "bound": 3.0},
)


def clip_edges(hand: Hand, options: Arguments) -> tuple[list[float], list[float]]:
    """Say where the edges were, and move them in the options if they are not the usual ones."""

    def edges_of(given: Mapping[str, float]) -> dict[str, float]:
        low, high = (
            given.get(name, given.get("clip_epsilon", 0.0))
            for name in ("epsilon_low", "epsilon_high")
        )
        edges = {"low": 1 - low, "one": 1.0, "high": 1 + high}
        return edges | ({"bound": given["bound"]} if "bound" in given else {})

    before = edges_of(options)
    order = sorted(before, key=before.__getitem__)
    places = [before[name] for name in order]
    if dict(options) in USUAL:
        return places, places
    while True:
        drawn = {name: digits(x * hand.random.uniform(0.8, 1.2), 2) for name, x in options.items()}
        now = [edges_of(drawn)[name] for name in order]
        if all(one + 0.03 < other for one, other in pairwise(now)):
            options.update(drawn)
            return places, now


def scored_values(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """V of the states and of those behind them: the same where a row follows in its episode."""
    before = dict(inputs)
    real("values", "next_values")(hand, inputs, options)
    if "values" not in before:
        return
    over = [
        [any(flags) for flags in zip(*each_row, strict=True)]
        for each_row in zip(
            before["terminated"], before.get("truncated", before["terminated"]), strict=True
        )
    ]
    for t, row in enumerate(inputs["next_values"][:-1]):
        for n in range(len(row)):
            if before["next_values"][t][n] == before["values"][t + 1][n] and not over[t][n]:
                row[n] = inputs["values"][t + 1][n]


def advantages_that_count(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Advantages; where only one counts all stay equal, since nobody says what 0/0 is."""
    counted = sum(leaves(options.get("mask", [True, True])))
    alike = len(set(leaves(inputs["advantages"]))) == 1
    real("advantages")(hand if counted > 1 else Hand(hand.random, kept=True), inputs, options)
    if alike:  # in halves, whose mean is exact in float32 too: a spread of 0 stays 0
        inputs["advantages"] = each(inputs["advantages"], lambda x: round(2 * x) / 2)


def whole_critic(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Observations and weights, and returns that are missed by about as much as before."""

    def predicted() -> list[float]:
        weights = [row[0] for row in inputs["weights"]]
        return [
            sum(x * w for x, w in zip(row, weights, strict=True)) for row in inputs["observations"]
        ]

    missed = [y - x for x, y in zip(predicted(), inputs["returns"], strict=True)]
    real("observations")(hand, inputs, options)
    real("weights")(hand, inputs, options)
    inputs["returns"] = [
        round(x + hand.once(miss, lambda miss=miss: moved(hand, miss)), 4)
        for x, miss in zip(predicted(), missed, strict=True)
    ]


def clipped_values(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Values before and now, and returns, with the same term the larger one."""
    epsilon = options["clip_epsilon"]
    if epsilon != 0.5:
        options["clip_epsilon"] = hand.near(epsilon, 0.8, 1.2)
    now = options["clip_epsilon"]

    def sides(value: float, target: float, old: float, epsilon: float) -> list[float]:
        change = value - old
        clipped = min(max(change, -epsilon), epsilon)
        middle = (change + clipped) / 2
        return [change - epsilon, change + epsilon, target - value, target - old - middle]

    def draw(value: float, target: float, old: float) -> tuple[float, float, float]:
        before = [digits(x, 6) for x in sides(value, target, old, epsilon)]
        for _ in range(300):
            start = hand.near(old)
            here = round(start + moved(hand, value - old), 3)
            there = round(start + (target - old) * hand.random.uniform(0.7, 1.4), 3)
            there = here if target == value else there
            pairs = zip(before, sides(here, there, start, now), strict=True)
            if all(abs(x) < 1e-9 if x0 == 0 else x * x0 > 0.01 * abs(x0) for x0, x in pairs):
                return here, there, start
        return value, target, old

    inputs["values"], inputs["returns"], options["values_old"] = together(
        lambda *three: hand.once(three, lambda: draw(*three)),
        inputs["values"],
        inputs["returns"],
        options["values_old"],
    )


def straight_line(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Values and returns; if the values lay on a straight line over the returns, they do so now."""
    xs, ys = leaves(inputs["returns"]), leaves(inputs["values"])
    slope = (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if xs[-1] != xs[0] else 0.0
    shift = ys[0] - slope * xs[0]
    line = all(isclose(y, slope * x + shift, abs_tol=1e-9) for x, y in zip(xs, ys, strict=True))
    real("values", "returns")(hand, inputs, options)
    if line and slope and hand.kept:
        slope, shift = (slope if slope == 1 else hand.near(slope)), hand.near(shift)
        inputs["values"] = each(inputs["returns"], lambda x: round(slope * x + shift, 4))


def batch_of_a_policy(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Logits, and the log-probabilities of old; where these were of that policy they are so now."""

    def of_policy() -> list[float]:
        total = log(sum(exp(x) for x in inputs["logits"]))
        return [round(inputs["logits"][action] - total, 6) for action in inputs["actions"]]

    old = inputs["log_probs_old"]
    own = all(isclose(x, y, abs_tol=1e-4) for x, y in zip(of_policy(), old, strict=True))
    logits(hand, inputs, options)
    inputs["log_probs_old"] = (
        of_policy() if own else each(old, lambda x: hand.once(x, lambda: hand.near(x)))
    )


def band(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A price, a KL and a target, on the same sides of the band around the target."""
    kl, target = options["kl"], options["target_kl"]
    edges = [2 / 3, 1.0, 1.5]
    options["beta"] = hand.near(options["beta"])
    if any(isclose(kl / target, edge) for edge in (edges[0], edges[2])):
        scale = hand.random.choice([0.25, 0.5, 2.0, 4.0])
        options["kl"], options["target_kl"] = kl * scale, target * scale
        return
    options["target_kl"] = hand.near(target)
    ratio = 1.02 if kl == target and not hand.kept else kl / target
    ratio = beside(hand, ratio, edges, edges) if ratio > 0 else hand.near(ratio)
    options["kl"] = digits(ratio * options["target_kl"], 5)


def limit(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A KL and its limit, on the same side of it; 0.03 is the default."""
    before = options.get("max_kl", 0.03)
    kl, edges = inputs["kl_k1"], [0.8, 1.0, 1.5]
    scale = hand.random.choice([0.25, 0.5, 2.0, 4.0])
    if kl == before:
        inputs["kl_k1"], options["max_kl"] = kl * scale, before * scale
        return
    now = hand.near(before) if "max_kl" in options else before
    if "max_kl" in options:
        options["max_kl"] = now
    ratio = kl / before
    ratio = beside(hand, ratio, edges, edges) if ratio > 0 else hand.near(ratio)
    inputs["kl_k1"] = digits(ratio * now, 5)


def resets(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Flags of environments whose row behind an end is no step."""
    random = hand.random
    steps, before = len(inputs["terminated"]), inputs["ended_before"]
    if len(before) > 1:
        made = resets_drawn(random.randrange(10**6), steps + random.randrange(3), len(before))
        inputs["terminated"], inputs["truncated"], inputs["ended_before"] = made
        return
    kinds = [
        "terminated" if terminated else "truncated"
        for (terminated,), (truncated,) in zip(
            inputs["terminated"], inputs["truncated"], strict=True
        )
        if terminated or truncated
    ]
    at_last = inputs["terminated"][-1][0] or inputs["truncated"][-1][0]
    while True:
        now = steps + random.randrange(4)
        places = sorted(random.sample(range(now), min(now, len(kinds))))
        apart = all(two > one + 1 for one, two in pairwise(places))
        last_as_before = (now - 1 in places) == at_last
        if (
            apart
            and last_as_before
            and len(places) == len(kinds)
            and not (before[0] and 0 in places)
        ):
            break
    for name in ("terminated", "truncated"):
        at = [place for place, kind in zip(places, kinds, strict=True) if kind == name]
        inputs[name] = [[t in at] for t in range(now)]


# --- rules for what is no tensor -----------------------------------------------------------


def minibatches(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Numbers of rows and minibatches, that divide or do not."""
    num_rows, count, random = inputs["num_rows"], inputs["num_minibatches"], hand.random
    few = num_rows < 12
    while True:
        parts = 1 if count == 1 else random.randint(2, 9)
        size = 1 if num_rows == count else random.randint(2, 6 if few else 14)
        left = random.randint(1, parts - 1) if num_rows % count and parts > 1 else 0
        total = parts * size + left
        if (total < 12) == few and total > 2 and bool(num_rows % count) == bool(left):
            break
    inputs["num_rows"], inputs["num_minibatches"] = total, parts
    options["generator"] = seeded(random.randrange(10**6))


def gradient_steps(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A loss with other slopes, and other weights; what was too long a gradient still is."""

    def redrawn(table: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(hand.once(x, lambda x=x: hand.near(x)) for x in row) for row in table)

    old_slopes = inputs["loss"].make().slopes
    weights, descent = inputs["networks"].make(), inputs["optimizer"].make()
    slopes = Slopes(redrawn(old_slopes))
    before, now = (hypot(*leaves(table)) for table in (old_slopes, slopes.slopes))
    ratio = beside(hand, options["max_grad_norm"] / before, [1.0], [1.0])
    start, stale = redrawn(weights.start), redrawn(weights.stale)
    rate = hand.near(descent.learning_rate)
    inputs["loss"] = made(slopes)
    inputs["networks"] = made(Weights(start, stale))
    inputs["optimizer"] = made(Descent(rate, descent.momentum))
    options["max_grad_norm"] = digits(ratio * now, 4)


def cut_actions(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Draws on their side of the limits, which move if they are not the usual ones."""
    limits = options["low"], options["high"]
    if limits != (-2.0, 2.0):
        options["low"], options["high"] = map(hand.near, limits)
    now = options["low"], options["high"]
    before = inputs["log_stds"]
    after = [hand.once(x, lambda x=x: hand.near(x)) for x in before]

    def pair(mean: float, noise: float, old: float, new: float) -> tuple[float, float]:
        side = bisect_left(limits, mean + exp(old) * noise)
        for _ in range(300):
            here, push = hand.near(mean), hand.near(noise)
            action = here + exp(new) * push
            if bisect_left(now, action) == side and all(abs(action - x) > 0.05 for x in now):
                return here, push
        return mean, noise

    olds, news = ([row] * len(inputs["means"]) for row in (before, after))
    inputs["means"], inputs["noise"] = together(
        lambda *four: hand.once(four, lambda: pair(*four)),
        inputs["means"],
        inputs["noise"],
        olds,
        news,
    )
    inputs["log_stds"] = after


def counted(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A whole number of observations before; none and one stay."""
    inputs["count"] = float(hand.count(int(inputs["count"])))


def made(thing: Any) -> Made:
    """Give the same thing for each call."""
    return Made(words=str(thing), make=lambda: thing)


def line_search(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """The same landscape in other units, and somewhere else: the same try succeeds.

    All factors are powers of two, so that a KL that equals its limit still does.
    """
    random = hand.random
    start, step = inputs["parameters"], inputs["step"]
    unit, price, gain = (random.choice([0.5, 1.0, 2.0, 4.0]) for _ in range(3))
    origin = [hand.dyadic(-3, 3) for _ in start]
    inputs["parameters"], inputs["step"] = origin, [unit * x for x in step]
    options["max_kl"] = options["max_kl"] * price
    for name, scale in (("improvement", gain), ("kl", price)):
        options[name] = elsewhere(options[name], start, origin, unit, scale)


def elsewhere(
    curve: Made, start: Sequence[float], origin: Sequence[float], unit: float, scale: float
) -> Made:
    """Move and stretch a function of parameters."""
    inner = curve.make()

    def outer(theta: Any) -> Any:
        there, here = theta.new_tensor(start), theta.new_tensor(origin)
        return scale * inner((theta - here) / unit + there)

    return Made(words=f"{curve.words}, elsewhere", make=lambda: outer)


def layer_widths(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Networks with as many layers, for the same observations; one output stays one."""
    observed = 0
    for name, given in inputs.items():
        widths = [x if x == 1 else hand.random.randint(2, 2 * x + 2) for x in given.make()]
        observed = observed or widths[0]
        inputs[name] = made([observed, *widths[1:]])


def rank_moments(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Statistics of as many ranks; a rank without a sample stays so."""

    def redrawn(count: float, mean: float, spread: float) -> list[float]:
        more = float(hand.count(int(count)))
        return [more, hand.near(mean), hand.near(spread)]

    inputs["moments"] = [
        hand.once(tuple(row), lambda row=row: redrawn(*row)) for row in inputs["moments"]
    ]


def rank_gradients(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Gradients of as many ranks; what was too long on average still is."""

    def length(table: Sequence[Sequence[float]]) -> float:
        return hypot(*(sum(column) / len(table) for column in zip(*table, strict=True)))

    before = length(inputs["gradients"])
    real("gradients")(hand, inputs, options)
    ratio = beside(hand, options["max_grad_norm"] / before, [1.0], [1.0])
    options["max_grad_norm"] = digits(ratio * length(inputs["gradients"]), 4)


def decays(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """How much of the future counts, in each row; ends stay ends."""

    def draw(x: float) -> float:
        return round(1 - (1 - x) * hand.random.uniform(0.6, 1.15), 3) if x else 0.0

    inputs["decays"] = each(inputs["decays"], lambda x: hand.once(x, lambda: draw(x)))


def elsewhere_on_the_scale(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Intervals stretched and moved together: who lies above whom stays, and which ends touch."""
    scale, shift = hand.random.choice([0.5, 1.0, 2.0, 4.0]), hand.dyadic(-20, 20)
    for name in ("lows", "highs"):
        inputs[name] = each(inputs[name], lambda x: scale * x + shift)


def beside_seeds(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A run and healthy ones in another unit, and in another order of seeds: the same alarm."""
    scale, shift = hand.random.choice([0.5, 1.0, 2.0, 4.0]), hand.dyadic(-3, 3)
    for name in ("metric", "healthy"):
        inputs[name] = each(inputs[name], lambda x: scale * x + shift)
    inputs["healthy"] = hand.random.sample(inputs["healthy"], len(inputs["healthy"]))


# --- what is drawn in the last stage -------------------------------------------------------


def shape_of(hand: Hand) -> tuple[int, int]:
    """Draw a number of steps and of environments."""
    return hand.random.randint(5, 9), hand.random.randint(2, 3)


def rollout_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A scored rollout with ends of both kinds."""
    often = hand.random.choice([0.1, 0.25])
    drawn = drawn_rollout(hand.random.randrange(10**6), *shape_of(hand), often=often)
    flags = drawn["terminated"], drawn["truncated"]
    drawn["final_values"] = blank_but(drawn["next_values"], *flags)
    inputs.update({name: drawn[name] for name in inputs})


def ends_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Flags of complete episodes."""
    ended = inputs["ended"]
    inputs["ended"] = draw_ends(hand.random, len(ended), len(ended[0]))


def fewer_episodes(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Complete episodes, few enough for a seed to be found."""
    for name in inputs:
        inputs[name] = [row[:2] for row in inputs[name][:5]]
    ends_drawn(hand, inputs, options)


def some_ends_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Flags of episodes, the last of which may still run."""
    inputs["ended"] = each(inputs["ended"], lambda _: hand.random.random() < 1 / 3)


def mask_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Which rows count; some do."""
    while "mask" in options:
        options["mask"] = each(options["mask"], lambda _: hand.random.random() < 0.7)
        if sum(leaves(options["mask"])) > 2:
            break


def episodes_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A rollout of environments whose row behind an end is no step."""
    steps, envs = shape_of(hand)
    inputs.update(running_drawn("", hand.random.randrange(10**6), steps, envs).inputs)


def renamed_words(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Ids of tokens, all moved by the same number; EOS moves along."""
    by = hand.random.randint(1, 9)
    inputs["tokens"] = each(inputs["tokens"], lambda token: token + by)
    options["eos"] += by


def longer_turns(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Turns that are there get longer; the padding of the longest conversation stays."""
    padding = options["total_length"] - max(map(sum, inputs["lengths"]))
    inputs["lengths"] = each(
        inputs["lengths"],
        lambda length: hand.once(length, lambda: length and length + hand.random.randrange(3)),
    )
    options["total_length"] = padding + max(map(sum, inputs["lengths"]))


def turns_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Who writes each turn but the first, and room for what they write."""
    inputs["own"] = [
        [False, *(hand.random.random() < 0.5 for _ in row[1:])] for row in inputs["own"]
    ]
    options["total_length"] = max(map(sum, inputs["lengths"])) + hand.random.randint(1, 3)


def padding_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Where padding stands, in front and inside."""
    rows, length = len(inputs["mask"]), len(inputs["mask"][0])
    inputs["mask"] = drawn_mask(hand.random.randrange(10**9), rows, length)


def lengths_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """How many tokens of each response count; of the longest all do."""
    length = len(inputs["mask"][0])
    counts = [length, *(hand.random.randint(1, length - 1) for _ in inputs["mask"][1:])]
    hand.random.shuffle(counts)
    inputs["mask"] = [[place < count for place in range(length)] for count in counts]


def terminations_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Which copies terminated."""
    inputs["terminated"] = each(inputs["terminated"], lambda _: hand.random.random() < 0.4)


def dealt_anew(*names: str) -> Rule:
    """True and false in another order, along the last axis."""

    def shuffled(hand: Hand, given: list[Any]) -> list[Any]:
        if isinstance(given[0], list):
            return [shuffled(hand, row) for row in given]
        return hand.random.sample(given, len(given))

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        for name in names:
            inputs[name] = shuffled(hand, inputs[name])

    return rule


def groups_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Which prompt each answer belongs to; each prompt has at least two."""
    count = len(inputs["groups"])
    numbers = sorted(set(inputs["groups"]))[: count // 2]
    twice = numbers * 2
    more = [hand.random.choice(numbers) for _ in range(count - len(twice))]
    inputs["groups"] = hand.random.sample([*twice, *more], count)


def flags_drawn(*names: str) -> Rule:
    """True and false anew."""

    def rule(hand: Hand, inputs: Arguments, options: Arguments) -> None:
        for name in names:
            inputs[name] = each(inputs[name], lambda _: hand.random.random() < 0.6)

    return rule


def controller(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A price, a KL and its target, on the same sides of where the error is cut."""
    kl, target = options["kl"], options["target_kl"]
    edges = [0.8, 1.0, 1.2]
    options["beta"], options["target_kl"] = hand.near(options["beta"]), hand.near(target)
    ratio = 1.04 if kl == target and not hand.kept else kl / target
    ratio = beside(hand, ratio, edges, edges) if ratio > 0 else hand.near(ratio)
    options["kl"] = digits(ratio * options["target_kl"], 5)
    for name in ("num_samples", "kl_horizon"):
        options[name] = round(options[name] * hand.random.uniform(0.8, 1.25))


def judge_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """A judge of another accuracy; one who is never wrong stays so."""
    if options["accuracy"] < 1:
        options["accuracy"] = round(hand.random.uniform(0.6, 0.97), 3)


def three_policies(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Weights on their side of 1 and of a cap that moves; ratios on their side of a clip, too."""
    old_cap = options["largest_weight"]
    options["largest_weight"] = cap = digits(old_cap * hand.random.uniform(0.87, 1.13), 3)
    order = sorted([(1.0, 1.0), (old_cap, cap)])
    edges, now = [old for old, _ in order], [new for _, new in order]

    def pair(new: float, old: float) -> tuple[float, float]:
        start = old - hand.dyadic(0, 50) if old < -100 else hand.near(old)
        weight = beside(hand, exp(new - old), edges, now)
        return round(start + log(weight), 6), round(start, 6)

    def quotients(new: str, old: str) -> Any:
        return together(lambda x, y: (x - y,), inputs[new], inputs[old])[0]

    steps = quotients("log_probs", "log_probs_proximal") if "log_probs" in inputs else None
    inputs["log_probs_proximal"], inputs["log_probs_behaviour"] = together(
        lambda new, old: hand.once((new, old), lambda: pair(new, old)),
        inputs["log_probs_proximal"],
        inputs["log_probs_behaviour"],
    )
    if steps is not None:
        clip = {"clip_epsilon": options["clip_epsilon"]}
        before, after = clip_edges(hand, clip)
        options.update(clip)
        inputs["log_probs"] = together(
            lambda step, start: (round(start + log(beside(hand, exp(step), before, after)), 6),),
            steps,
            inputs["log_probs_proximal"],
        )[0]
    names = [name for name in inputs if name.startswith("log_probs")]
    above = max(leaves([inputs[name] for name in names]))
    if above > 0:  # no probability is above 1; all move down together, so no quotient does
        for name in names:
            inputs[name] = each(inputs[name], lambda x: round(x - above - 0.01, 6))


def token_log_ratios(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Log-ratios of tokens; those of ratios too large for a float stay so, and close together."""
    if max(leaves(inputs["log_ratios"])) < 100:
        real("log_ratios")(hand, inputs, options)
        return
    by = hand.dyadic(-20, 60)
    inputs["log_ratios"] = each(
        inputs["log_ratios"], lambda x: round(x + by + hand.random.uniform(-0.2, 0.2), 3)
    )


def intervals_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Intervals of as many settings, some above, some below, most of them open."""
    pairs = drawn_intervals(hand.random.randrange(2**32), len(inputs["lows"]))
    inputs["lows"], inputs["highs"] = map(list, zip(*pairs, strict=True))


def alarms_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Healthy runs, and one that leaves them for good."""
    iterations, seeds = len(inputs["metric"]) + hand.random.randrange(5), len(inputs["healthy"])
    inputs.update(alarm_drawn(hand.random, iterations, seeds, options["patience"]))


def some_rows_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Which rows are steps; some are."""
    rows = range(len(inputs["valid"]))
    steps = hand.random.sample(rows, hand.random.randint(len(rows) // 2, len(rows) - 2))
    inputs["valid"] = [row in steps for row in rows]


def step_ends_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """How the steps of one environment ended."""
    kinds = [hand.random.choice(["", "", "terminated", "truncated"]) for _ in inputs["rewards"]]
    for name in ("terminated", "truncated"):
        inputs[name] = [kind == name for kind in kinds]


def search_drawn(hand: Hand, inputs: Arguments, options: Arguments) -> None:
    """Another factor, limit and number of tries, none of them near a decision."""
    start, step = (torch.tensor(inputs[name], dtype=torch.float64) for name in inputs)
    gain, kl = options["improvement"].make(), options["kl"].make()
    for _ in range(1000):
        shrink, tries = round(hand.random.uniform(0.4, 0.85), 2), hand.random.randint(3, 9)
        most = digits(options["max_kl"] * hand.random.uniform(0.2, 2), 2)
        places = [start + shrink**number * step for number in range(tries)]
        gains, kls = ([float(curve(place)) for place in places] for curve in (gain, kl))
        clear = all(abs(x - most) > 0.03 * most for x in kls) and all(abs(x) > 0.01 for x in gains)
        passing = [x < most and y > 0 for x, y in zip(kls, gains, strict=True)]
        if clear and any(passing) and not passing[0]:
            options.update(shrink=shrink, max_tries=tries, max_kl=most)
            return


# --- which rules an exercise has -----------------------------------------------------------

OF_GAE = (real("rewards"), scored_values, fraction("gamma", "gae_lambda"))
OF_CLIP = (clipped_ratios, real("advantages"))
OF_PAIRS = (log_prob_pairs, real("advantages"))
OF_ANSWERS = (real("log_probs", "log_probs_reference"),)
OF_OLD_DATA = (three_policies, real("advantages"))
OF_GAUSSIANS = (real("actions", "means"), real("log_stds"))
RULES: Mapping[str, tuple[Rule, ...]] = {
    "reinforce.log_prob": (logits,),
    "reinforce.rewards_to_go": (real("rewards"), fraction("gamma")),
    "reinforce.reinforce_loss": (log_probs, real("weights")),
    "reinforce.mended_reinforce": (logits, real("rewards"), fraction("gamma")),
    "reinforce.episode_gradients": (logits, real("weights")),
    "importance.importance_ratios": (log_prob_pairs,),
    "importance.effective_sample_size": (real("weights"),),
    "importance.surrogate_loss": OF_PAIRS,
    "importance.approximate_kl": (log_prob_pairs,),
    "importance.mended_squeeze": (
        logits,
        real("advantages"),
        real("learning_rate"),
        repetitions("num_steps"),
    ),
    "importance.trajectory_weights": (log_prob_pairs,),
    "trust_region.state_kl": (policies("policy_old", "policy"),),
    "trust_region.natural_gradient_step": (real("gradient"), fisher, real("max_kl")),
    "trust_region.penalty_loss": (*OF_PAIRS, real("beta")),
    "trust_region.adapt_beta": (band,),
    "trust_region.mended_line_search": (line_search,),
    "trust_region.fisher_vector_product": (logits, real("state_visits"), real("vector")),
    "clip.clipped_surrogate": OF_CLIP,
    "clip.clipped_surrogate_loss": OF_CLIP,
    "clip.clip_fractions": OF_CLIP,
    "clip.mended_loss": OF_CLIP,
    "clip.asymmetric_dual_clip": OF_CLIP,
    "critic.optimal_baseline": (policies("probabilities"), real("scores"), real("returns")),
    "critic.leave_one_out_baseline": (real("returns"),),
    "critic.value_loss": (real("values", "returns"),),
    "critic.mended_value_loss": (whole_critic,),
    "critic.clipped_value_loss": (clipped_values,),
    "critic.explained_variance": (straight_line,),
    "critic.actor_critic_gradients": (logits, real("values", "returns"), real("value_coef")),
    "gae.td_errors": (real("rewards"), scored_values, fraction("gamma")),
    "gae.compute_gae": OF_GAE,
    "gae.normalize_advantages": (advantages_that_count,),
    "gae.value_loss_from_advantages": (real("values", "values_old"), real("advantages")),
    "gae.mended_gae": OF_GAE,
    "gae.lambda_returns": OF_GAE,
    "rollout.next_values": (real("values"), real("final_values")),
    "rollout.bootstrapped_returns": (real("rewards"), scored_values, fraction("gamma")),
    "rollout.valid_rows": (resets,),
    "rollout.mended_ends": OF_GAE,
    "rollout.episode_returns": (real("rewards"), real("carried")),
    "training_loop.shuffled_minibatches": (minibatches,),
    "training_loop.ppo_loss": (
        *map(real, ("policy_loss", "value_loss", "entropy", "value_coef", "entropy_coef")),
    ),
    "training_loop.clipped_gradient_step": (gradient_steps,),
    "training_loop.stop_epochs": (limit,),
    "training_loop.mended_epochs": (
        batch_of_a_policy,
        real("advantages"),
        real("learning_rate"),
        repetitions("num_epochs"),
    ),
    "continuous.gaussian_log_probs": OF_GAUSSIANS,
    "continuous.gaussian_scores": OF_GAUSSIANS,
    "continuous.squashed_log_probs": (real("drawn", "means"), real("log_stds")),
    "continuous.mended_actions": (cut_actions,),
    "continuous.merge_moments": (counted, real("mean", "observations"), real("m2")),
    "continuous.scaled_rewards": (real("rewards"), fraction("gamma")),
    "gpu_run.autoreset": (real("reached", "fresh"),),
    "gpu_run.flops_per_env_step": (layer_widths, repetitions("num_epochs")),
    "gpu_run.combine_moments": (rank_moments,),
    "gpu_run.averaged_gradient": (rank_gradients,),
    "gpu_run.mended_scan": (real("td_errors"), decays),
    "ablations.interquartile_mean": (real("scores"),),
    "ablations.redrawn_interval": (real("scores"),),
    "ablations.probability_of_improvement": (real("first", "second"),),
    "ablations.verdicts": (elsewhere_on_the_scale,),
    "ablations.mended_difference": (real("first", "second"),),
    "tokens.positions": (nothing,),
    "tokens.token_log_probs": (logits, real("temperature")),
    "tokens.response_mask": (renamed_words,),
    "tokens.actions_of_turns": (longer_turns,),
    "tokens.masked_mean": (real("values"),),
    "rlhf.preference_loss": (real("chosen", "rejected"),),
    "rlhf.token_rewards": (*OF_ANSWERS, real("scores"), real("beta")),
    "rlhf.token_advantages": (real("rewards"), real("values"), fraction("gamma", "gae_lambda")),
    "rlhf.kl_of_answers": OF_ANSWERS,
    "rlhf.next_price": (controller,),
    "rlhf.mended_scoring": (
        *OF_ANSWERS,
        real("scores"),
        real("values"),
        real("beta"),
        fraction("gae_lambda"),
    ),
    "staleness.capped_weights": (three_policies,),
    "staleness.decoupled_loss": OF_OLD_DATA,
    "staleness.effective_shares": (token_log_ratios,),
    "staleness.mended_stale_loss": OF_OLD_DATA,
    "variants.compared_in_group": (real("scores"), real("added_spread")),
    "variants.compared_with_others": (real("scores"),),
    "variants.mended_mean": (real("terms"),),
    "variants.policy_preference_loss": (
        real("chosen", "rejected", "chosen_reference", "rejected_reference"),
        real("beta"),
    ),
    "evidence.share_interval": (dealt_anew("right"), real("z")),
    "evidence.one_of_k": (dealt_anew("right"),),
    "evidence.judged_success": (dealt_anew("labels"), judge_drawn),
    "evidence.paired_interval": (dealt_anew("baseline_right", "candidate_right"), real("z")),
    "evidence.mended_excess": (dealt_anew("best_labels", "labels"), judge_drawn, real("z")),
    "debugging.first_alarm": (beside_seeds,),
    "debugging.update_agreement": (log_prob_pairs, real("advantages")),
    "debugging.mended_iteration": (
        logits,
        real("critic"),
        real("rewards"),
        real("learning_rate"),
        fraction("gamma", "gae_lambda"),
        repetitions("num_epochs"),
    ),
}
DRAWN_ANEW: Mapping[str, Rule] = {
    "reinforce.rewards_to_go": ends_drawn,
    "reinforce.mended_reinforce": fewer_episodes,
    "importance.trajectory_weights": some_ends_drawn,
    "trust_region.mended_line_search": search_drawn,
    "gae.td_errors": rollout_drawn,
    "gae.compute_gae": rollout_drawn,
    "gae.normalize_advantages": mask_drawn,
    "gae.mended_gae": rollout_drawn,
    "gae.lambda_returns": rollout_drawn,
    "rollout.next_values": rollout_drawn,
    "rollout.bootstrapped_returns": rollout_drawn,
    "rollout.mended_ends": rollout_drawn,
    "rollout.episode_returns": episodes_drawn,
    "gpu_run.autoreset": terminations_drawn,
    "continuous.scaled_rewards": some_ends_drawn,
    "ablations.verdicts": intervals_drawn,
    "rlhf.token_rewards": lengths_drawn,
    "rlhf.token_advantages": lengths_drawn,
    "rlhf.kl_of_answers": lengths_drawn,
    "rlhf.mended_scoring": lengths_drawn,
    "staleness.effective_shares": lengths_drawn,
    "variants.compared_in_group": groups_drawn,
    "variants.compared_with_others": groups_drawn,
    "variants.mended_mean": lengths_drawn,
    "evidence.share_interval": flags_drawn("right"),
    "evidence.one_of_k": flags_drawn("right"),
    "evidence.judged_success": flags_drawn("labels"),
    "evidence.paired_interval": flags_drawn("baseline_right", "candidate_right"),
    "evidence.mended_excess": flags_drawn("best_labels", "labels"),
    "tokens.positions": padding_drawn,
    "tokens.actions_of_turns": turns_drawn,
    "tokens.masked_mean": lengths_drawn,
    "debugging.first_alarm": alarms_drawn,
    "debugging.update_agreement": some_rows_drawn,
    "debugging.mended_iteration": step_ends_drawn,
}
