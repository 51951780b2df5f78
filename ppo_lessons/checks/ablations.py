"""Lesson 11: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from torch import Tensor

from ppo_lessons.checks.exercises import (
    EDGES,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
    draw,
)

ORDER, PARTS, WILD = "the order of the seeds", "quarters that are no whole number", "wild runs"
TAILS, RUNS_AGAIN = "how much lies outside", "runs that are drawn twice"
TIES, COUNTS = "ties", "more runs on one side"
BOTH_SIDES, TOUCH = "above and below", "intervals that overlap or touch"
APART = "other draws for each"


def drawn_runs(seed: int, runs: int, low: float = 20.0, high: float = 500.0) -> list[float]:
    """Draw scores of some runs."""
    return draw(Random(seed), runs, low=low, high=high)


# --- the middle half -------------------------------------------------------------------------


def iqm_case(stage: str, name: str, *scores: float, **more: Any) -> Case:
    """The scores of one setting."""
    return Case(stage=stage, name=name, inputs={"scores": list(map(float, scores))}, **more)


IQM_CASES = (
    iqm_case(SMALLEST, "one run", 7),
    iqm_case(SMALLEST, "three runs", 1, 2, 9),
    iqm_case(SMALLEST, "four runs in order", 1, 3, 4, 12),
    iqm_case(ORDER, "four runs, the worst in the middle", 9, 1, 30, 4),
    iqm_case(ORDER, "eight runs", 7, 1, 100, 5, 2, 6, 3, 4),
    iqm_case(PARTS, "five runs", 10, 0, 2, 3, 40),
    iqm_case(PARTS, "seven runs", 5, 1, 2, 50, 4, 8, 3),
    iqm_case(PARTS, "ten runs", 0, 9, 1, 50, 2, 9, 0, 50, 1, 9),
    iqm_case(WILD, "one run that failed", 480, 490, 20, 470, 500, 485, 495, 460),
    iqm_case(WILD, "half of them failed", 20, 480, 30, 490, 25, 500, 22, 470),
    iqm_case(EDGES, "scores below 0", -200, -110, -90, -150, -85, -200),
    iqm_case(EDGES, "all the same", 500, 500, 500, 500, 500),
    iqm_case(SEEDED, "16 runs", *drawn_runs(1, 16)),
    iqm_case(SEEDED, "33 runs", *drawn_runs(2, 33)),
)

# --- what redrawn runs say -------------------------------------------------------------------


def redraw(seed: int, rows: int, runs: int) -> list[list[int]]:
    """Draw places of runs, with replacement."""
    random = Random(seed)
    return [[random.randrange(runs) for _ in range(runs)] for _ in range(rows)]


def interval_case(
    stage: str,
    name: str,
    scores: Sequence[float],
    draws: Sequence[Sequence[int]],
    confidence: float,
    **more: Any,
) -> Case:
    """Scores, and which of them are drawn again."""
    return Case(
        stage=stage,
        name=name,
        inputs={"scores": list(map(float, scores)), "draws": [list(row) for row in draws]},
        options={"confidence": confidence},
        integers=("draws",),
        **more,
    )


INTERVAL_CASES = (
    interval_case(SMALLEST, "one redraw", [1, 4], [[0, 1]], 0.9),
    interval_case(SMALLEST, "two redraws", [0, 10], [[0, 0], [0, 1]], 0.5),
    interval_case(
        TAILS, "five redraws, half of them inside", [0, 8],
        [[0, 0], [0, 1], [1, 1], [0, 1], [0, 0]], 0.5,
    ),
    interval_case(
        TAILS, "the same, 90 % inside", [0, 8], [[0, 0], [0, 1], [1, 1], [0, 1], [0, 0]], 0.9
    ),
    interval_case(
        RUNS_AGAIN, "a run is drawn three times", [1, 2, 12],
        [[2, 2, 2], [0, 1, 2], [0, 0, 1], [1, 2, 2]], 0.8,
    ),
    interval_case(
        RUNS_AGAIN, "redraws that are alike", [3, 9, 30],
        [[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1], [2, 2, 2], [1, 1, 2]], 0.6,
    ),
    interval_case(EDGES, "scores below 0", [-200, -90, -150], redraw(3, 8, 3), 0.75),
    interval_case(EDGES, "runs that do not differ", [500] * 4, redraw(4, 6, 4), 0.95),
    interval_case(SEEDED, "40 redraws of 6 runs", drawn_runs(5, 6), redraw(5, 40, 6), 0.9),
    interval_case(SEEDED, "25 redraws of 9 runs", drawn_runs(6, 9), redraw(6, 25, 9), 0.68),
)  # fmt: skip

# --- pairs of runs ---------------------------------------------------------------------------


def pairs_case(
    stage: str, name: str, first: Sequence[float], second: Sequence[float], **more: Any
) -> Case:
    """Scores of two settings."""
    return Case(
        stage=stage,
        name=name,
        inputs={"first": list(map(float, first)), "second": list(map(float, second))},
        **more,
    )


def near_runs(seed: int, runs: int) -> list[float]:
    """Draw scores that often tie."""
    random = Random(seed)
    return [float(random.randint(1, 6)) for _ in range(runs)]


PAIRS_CASES = (
    pairs_case(SMALLEST, "one run each", [3], [1]),
    pairs_case(SMALLEST, "two runs each", [3, 1], [2, 0]),
    pairs_case(SMALLEST, "the first is worse", [1, 2, 6], [5, 4, 3]),
    pairs_case(TIES, "one tie", [2], [2]),
    pairs_case(TIES, "a setting against itself", [1, 2, 2, 7], [1, 2, 2, 7]),
    pairs_case(TIES, "all at the largest return", [500, 500, 300], [500, 200, 500]),
    pairs_case(COUNTS, "three against two", [5, 1, 3], [2, 4]),
    pairs_case(COUNTS, "two against five", [5, 3], [1, 4, 0, 9, 3]),
    pairs_case(EDGES, "one run is far better", [0, 0, 0, 1000], [1, 1, 1, 1]),
    pairs_case(EDGES, "scores below 0", [-100, -200, -90], [-150, -110]),
    pairs_case(SEEDED, "16 against 16, with ties", near_runs(1, 16), near_runs(2, 16)),
    pairs_case(SEEDED, "9 against 14", drawn_runs(3, 9), drawn_runs(4, 14)),
)

# --- verdicts --------------------------------------------------------------------------------


def as_doubles(answer: Callable[..., Any], lows: Tensor, highs: Tensor, *, base: int) -> Any:
    """Call an answer, and read whole numbers as numbers."""
    returned = answer(lows, highs, base=base)
    return returned.double() if isinstance(returned, Tensor) else returned


def verdict_case(
    stage: str, name: str, intervals: Sequence[tuple[float, float]], base: int, **more: Any
) -> Case:
    """The interval of each setting, and which of them is compared with."""
    return Case(
        stage=stage,
        name=name,
        inputs={
            "lows": [float(low) for low, _ in intervals],
            "highs": [float(high) for _, high in intervals],
        },
        options={"base": base},
        **more,
    )


def drawn_intervals(seed: int, settings: int) -> list[tuple[float, float]]:
    """Draw intervals around 300."""
    random = Random(seed)
    lows = [round(random.uniform(100, 400), 1) for _ in range(settings)]
    return [(low, round(low + random.uniform(10, 120), 1)) for low in lows]


VERDICT_CASES = (
    verdict_case(SMALLEST, "the base alone", [(1, 2)], 0),
    verdict_case(SMALLEST, "one above", [(1, 2), (4, 6)], 0),
    verdict_case(BOTH_SIDES, "one below", [(4, 6), (1, 2)], 0),
    verdict_case(BOTH_SIDES, "one of each", [(7, 9), (4, 6), (1, 3)], 1),
    verdict_case(BOTH_SIDES, "the base is the last", [(1, 2), (8, 9), (4, 6)], 2),
    verdict_case(TOUCH, "a small overlap", [(4, 6), (5.9, 9), (1, 4.2)], 0),
    verdict_case(TOUCH, "a middle beyond the end", [(4, 6), (5, 30), (-30, 5)], 0),
    verdict_case(TOUCH, "ends that are equal", [(4, 6), (6, 9), (1, 4)], 0),
    verdict_case(TOUCH, "one inside the other", [(4, 6), (1, 9), (4.5, 5)], 0),
    verdict_case(EDGES, "scores below 0", [(-120, -110), (-200, -150), (-100, -90)], 0),
    verdict_case(EDGES, "intervals without width", [(5, 5), (5, 5), (6, 6), (4, 4)], 0),
    verdict_case(SEEDED, "eight settings", drawn_intervals(1, 8), 3),
    verdict_case(SEEDED, "eleven settings", drawn_intervals(2, 11), 0),
)

# --- a difference, redrawn -------------------------------------------------------------------


def difference_case(
    stage: str,
    name: str,
    first: Sequence[float],
    second: Sequence[float],
    first_draws: Sequence[Sequence[int]],
    second_draws: Sequence[Sequence[int]],
    confidence: float,
) -> Case:
    """Scores of two settings, and which of them are drawn again."""
    return Case(
        stage=stage,
        name=name,
        inputs={
            "first": list(map(float, first)),
            "second": list(map(float, second)),
            "first_draws": [list(row) for row in first_draws],
            "second_draws": [list(row) for row in second_draws],
        },
        options={"confidence": confidence},
        integers=("first_draws", "second_draws"),
    )


DIFFERENCE_CASES = (
    difference_case(SMALLEST, "one redraw", [5, 9], [1, 2], [[0, 1]], [[0, 1]], 0.9),
    difference_case(SMALLEST, "nothing varies", [5, 5], [2, 2], [[0, 1]] * 2, [[1, 0]] * 2, 0.5),
    difference_case(
        APART, "one redraw each, other places", [5, 9], [1, 3], [[0, 0]], [[1, 1]], 0.8
    ),
    difference_case(
        APART, "four redraws each", [0, 10], [1, 5],
        [[0, 0], [0, 1], [1, 1], [0, 1]], [[1, 1], [0, 0], [0, 1], [1, 1]], 0.5,
    ),
    difference_case(
        APART, "a setting against itself", [0, 10, 40], [0, 10, 40],
        redraw(1, 6, 3), redraw(2, 6, 3), 0.9,
    ),
    difference_case(
        COUNTS, "three against two", [0, 4, 9], [1, 5], redraw(3, 7, 3), redraw(4, 7, 2), 0.8
    ),
    difference_case(
        EDGES, "the second is better", [-200, -150], [-90, -100], redraw(5, 5, 2),
        redraw(6, 5, 2), 0.7,
    ),
    difference_case(
        SEEDED, "30 redraws", drawn_runs(7, 6), drawn_runs(8, 6), redraw(7, 30, 6),
        redraw(8, 30, 6), 0.95,
    ),
    difference_case(
        SEEDED, "24 redraws, 5 against 8", drawn_runs(9, 5), drawn_runs(10, 8),
        redraw(9, 24, 5), redraw(10, 24, 8), 0.68,
    ),
)  # fmt: skip

# --- mistakes in words -----------------------------------------------------------------------

IQM_MISTAKES = {
    "plain_mean": "All runs are averaged. The lowest and the highest quarter are to be left out.",
    "median": "You gave the median: one run in the middle, or two. Asked for is the mean of the "
    "middle half.",
    "not_sorted": "What is left out are the first and the last seeds. Sort by score first.",
    "best_kept": "The best quarter is still there. It is left out like the worst.",
    "worst_kept": "The worst quarter is still there. It is left out like the best.",
    "outside_instead": "You averaged what is to be left out.",
    "a_quarter_in_all": "You left out a quarter in all, an eighth at each end. It is a quarter at "
    "each end.",
    "one_at_each_end": "One run is left out at each end, however many there are.",
    "rounded_up": "Where n/4 is no whole number, it is rounded down.",
    "clamped": "The outer quarters are moved to the nearest run that is left, and counted. Leave "
    "them out.",
    "divided_by_all": "The sum of the middle half is divided by the number of all runs.",
    "mean_of_the_quartiles": "You averaged the two ends of the middle half, not what lies between.",
    "best_half": "You averaged the better half. It is the middle one.",
}
INTERVAL_MISTAKES = {
    "whole_remainder_at_each_end": "1 − confidence is cut off at each end. Half of it is.",
    "confidence_for_the_tail": "What lies inside and what lies outside are exchanged.",
    "quantiles_of_the_runs": "These are quantiles of the runs: where a run falls. Asked for is "
    "where their mean falls.",
    "draws_pooled": "All redrawn runs are thrown together. Each row is one study: it has a mean of "
    "its own.",
    "along_the_wrong_axis": "The means run over the redraws. Each row is one study.",
    "medians_of_redraws": "Each redraw gives its median here. Its mean is asked for.",
    "smallest_and_largest": "These are the smallest and the largest mean, whatever the confidence.",
    "two_standard_errors": "A mean plus and minus some standard errors is another interval. Take "
    "quantiles of the redrawn means.",
    "high_first": "The upper end comes first. It is (low, high).",
    "each_run_once": "A run that is drawn twice counts twice.",
    "alike_redraws_once": "Redraws that are alike all count.",
    "from_below_only": "Nothing is cut off at the lower end.",
    "from_above_only": "Nothing is cut off at the upper end.",
    "around_the_mean": "The interval is laid around the mean of the runs. It is what the quantiles "
    "are, and need not be symmetric.",
}
PAIRS_MISTAKES = {
    "ties_lost": "A tie counts for nobody. Half of it belongs to each.",
    "ties_won": "A tie counts as won. Half of it belongs to each.",
    "ties_left_out": "Pairs that tie are left out of the count.",
    "second_for_first": "This is the probability that the second beats the first.",
    "seed_against_seed": "Only runs at the same place meet. Their seeds have nothing to do with "
    "each other: all pairs count.",
    "best_against_best": "Best meets best, second meets second. All pairs count.",
    "means_compared": "You asked whose mean is larger. Asked for is how often a run is.",
    "medians_compared": "You asked whose median is larger. Asked for is how often a run is.",
    "beats_the_mean": "Each run of the first meets the mean of the second, and not its runs.",
    "beats_all": "A run counts only if it beats every run of the second.",
    "pairs_counted": "This is the number of pairs that are won. Divide by how many there are.",
    "divided_by_the_first": "The pairs that are won are divided by the runs of the first only.",
    "gap_for_share": "You averaged by how much it is better. Asked for is how often.",
    "won_minus_lost": "Won minus lost lies between −1 and 1. Asked for is a probability.",
}
VERDICT_MISTAKES = {
    "middles_compared": "The middles differ, and that is no verdict: the intervals overlap.",
    "signs_exchanged": "A setting that lies above the base gets +1.",
    "touching_is_apart": "Ends that are equal are not apart.",
    "low_ends_compared": "You compared lower end with lower end. The lower end of one must lie "
    "beyond the upper end of the other.",
    "high_ends_compared": "You compared upper end with upper end. The upper end of one must lie "
    "beyond the lower end of the other.",
    "middle_beyond_the_end": "The middle lies outside the base's interval, and that is not yet "
    "apart: the whole interval must.",
    "outside_the_middle_of_the_base": "The interval leaves out the middle of the base. It must "
    "leave out all of its interval.",
    "never_below": "A setting that is surely worse gets −1.",
    "never_above": "A setting that is surely better gets +1.",
    "first_is_the_base": "You compared with the first setting. The base is at the place `base`.",
    "wider_is_worse": "You compared widths. It matters where the ends lie.",
    "far_ends_compared": "Any part beyond the base's interval is enough here. All of the interval "
    "must lie beyond.",
    "against_the_best": "You compared with the best setting, not with the base.",
}
DIFFERENCE_MISTAKES = {
    "same_draws_for_both": "Both settings are drawn at the same places, as if seed 3 of one "
    "belonged to seed 3 of the other. Each has draws of its own.",
    "second_minus_first": "It is the first minus the second.",
    "ends_subtracted": "You subtracted the ends of two intervals, low from low. Subtract the means "
    "of each redraw, then take quantiles.",
    "far_ends_subtracted": "You subtracted the far ends of two intervals. That is too wide: both "
    "seldom err away from each other.",
    "second_held_fixed": "The second setting is not drawn again.",
    "first_held_fixed": "The first setting is not drawn again.",
    "absolute_difference": "The sign of the difference is lost.",
    "whole_remainder_at_each_end": "1 − confidence is cut off at each end. Half of it is.",
    "high_first": "The upper end comes first. It is (low, high).",
    "all_pairs_of_redraws": "Each redraw of the first meets each redraw of the second. Row i meets "
    "row i.",
    "shift_forgotten": "The difference of the plain means is taken off. The interval is then "
    "around 0.",
}
HAND_MISTAKES = {
    "mean_for_iqm": "For a you averaged all eight runs.",
    "median_for_iqm": "For a you took the median of the eight.",
    "one_left_out": "For a you left out one run at each end. A quarter of eight is two.",
    "failed_run_left_out": "For b you left out the run that failed. The mean takes all.",
    "tie_lost": "For c the tie counts half: you left it out.",
    "tie_won": "For c the tie counts half, not whole.",
    "pairs_by_seed": "For c all six pairs count, not only those at the same place.",
    "second_first": "For c you counted how often the second wins.",
    "chances_added": "For d the chances are not to be added: they may happen together.",
    "all_of_them": "For d you gave the chance that all 20 are called apart.",
    "none_of_them": "For d you gave the chance that none is.",
    "half_the_width_twice_the_seeds": "For e twice the seeds make the width smaller by √2 only.",
    "additional_seeds": "For e you counted the seeds that are added. Asked for is how many in all.",
    "other_exponent": "For e the width falls with the root of the number of seeds.",
    "one_certain_run": "For f the three may be the same in three ways.",
    "permutations": "For f runs are drawn with replacement: 27 lists, not 6.",
    "in_order_only": "For g the two of three may be any two.",
    "all_three": "For g two wrong pairs are enough.",
    "one_pair": "For g you gave the chance that one pair is wrong.",
    "expected_number_as_chance": "For h you gave a chance. Asked for is how many on average.",
    "expected_right": "For h you counted those that are rightly called open.",
}

# --- exercises -------------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="ablations.interquartile_mean",
        cases=IQM_CASES,
        gives="scalar",
        mistakes=IQM_MISTAKES,
        hints=(
            "Which runs are left? Sort them first, then count off at both ends.",
            "n // 4 runs are left out at each end; with fewer than four that is none. A slice from "
            "there to n minus there also works if nothing is left out.",
            "IQM = mean of s₍ₖ₊₁₎ … s₍ₙ₋ₖ₎ of the sorted scores, k = ⌊n/4⌋",
        ),
    ),
    FunctionExercise(
        id="ablations.redrawn_interval",
        cases=INTERVAL_CASES,
        gives="two numbers",
        mistakes=INTERVAL_MISTAKES,
        hints=(
            "Each row of draws is one study that might have been. What is its mean?",
            "A tensor of places picks runs: scores[draws] has a row for each study. Then two "
            "quantiles of the means, with half of what lies outside at each end.",
            "m_i = mean(scores[draws_i]);  low = quantile(m, (1 − c)/2);  "
            "high = quantile(m, (1 + c)/2)",
        ),
    ),
    FunctionExercise(
        id="ablations.probability_of_improvement",
        cases=PAIRS_CASES,
        gives="scalar",
        mistakes=PAIRS_MISTAKES,
        hints=(
            "Let every run of the first meet every run of the second. How many pairs are there?",
            "A column minus a row gives all differences at once. Those above 0 count one, those "
            "that are 0 a half.",
            "P = Σᵢ Σⱼ ( 1[xᵢ > yⱼ] + ½·1[xᵢ = yⱼ] ) / (n·m)",
        ),
    ),
    FunctionExercise(
        id="ablations.verdicts",
        cases=VERDICT_CASES,
        gives="same shape",
        returns="a torch.Tensor with 1, −1 or 0 for each setting",
        through=as_doubles,
        mistakes=VERDICT_MISTAKES,
        hints=(
            "When does all of one interval lie above all of another? Two ends decide it.",
            "Two comparisons give two tensors of yes and no, and their difference is 1, −1 or 0.",
            "+1 ⇔ lowᵢ > high_base;  −1 ⇔ highᵢ < low_base;  else 0",
        ),
    ),
    FunctionExercise(
        id="ablations.mended_difference",
        cases=DIFFERENCE_CASES,
        gives="two numbers",
        mistakes=DIFFERENCE_MISTAKES,
        starts_with="same_draws_for_both",
        hints=(
            "Let a setting be compared with itself, and look at what the function gives.",
            "A seed is no bond between two settings: with another setting it leads to other games. "
            "Which runs of the second are drawn must not depend on which of the first are.",
            "gap_i = mean(x[draws_i]) − mean(y[draws'_i]), with draws and draws' independent",
        ),
    ),
    NumbersExercise(
        id="ablations.study_by_hand",
        questions={
            "a": ("the interquartile mean of the eight scores", "Sort, and count off two."),
            "b": ("their mean", "All eight."),
            "c": ("the probability of improvement", "Six pairs, one of them a tie."),
            "d": (
                "the chance that at least one of 20 is called apart",
                "What is the chance that none is?",
            ),
            "e": ("seeds for an interval of half the width", "The root of the number of seeds."),
            "f": (
                "the chance that a redraw of three runs holds one of them three times",
                "How many lists are there, and how many of them hold one run only?",
            ),
            "g": (
                "the chance that at least two of three comparisons mislead",
                "Add the chances of two wrong ones and of three.",
            ),
            "h": ("how many of 20 are called apart, on average", "Averages may be added."),
        },
        tolerance=0.002,
        mistakes=HAND_MISTAKES,
        hints=(
            "Write down the list of what can happen before you compute a chance.",
            "For d and g count what must not happen, or add up what may. For e ask how the "
            "standard error of a mean depends on n.",
            "d = 1 − 0.95²⁰;  e = 16·2²;  f = 3 / 3³;  g = 3·q²·(1 − q) + q³",
        ),
    ),
)
