"""Answers to the exercises of lesson 11."""

import math
from itertools import product
from statistics import fmean

import torch

from answers import new_catalogue
from ppo_lessons.ablations import statistics

EXERCISES = (
    "interquartile_mean",
    "redrawn_interval",
    "probability_of_improvement",
    "verdicts",
    "mended_difference",
    "study_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
RIGHT["interquartile_mean"]["package"] = statistics.interquartile_mean


# --- the middle half -------------------------------------------------------------------------


@passes("interquartile_mean")
def slice_of_the_sorted(scores):
    left_out = len(scores) // 4
    return torch.sort(scores)[0][left_out : len(scores) - left_out].mean()


@passes("interquartile_mean")
def as_a_list(scores):
    runs = sorted(scores.tolist())
    for _ in range(len(runs) // 4):
        runs = runs[1:-1]
    return torch.tensor(sum(runs) / len(runs), dtype=scores.dtype)


@passes("interquartile_mean")
def by_ranks(scores, dim=-1):
    ranks = scores.argsort(dim=dim).argsort(dim=dim)
    cut = int(0.25 * scores.numel())
    kept = (ranks >= cut) & (ranks < scores.numel() - cut)
    return (scores * kept).sum() / kept.sum()


@passes("interquartile_mean")
def sums_of_the_ends_taken_off(scores):
    runs, cut = len(scores), len(scores) // 4
    if cut == 0:
        return scores.mean()
    outside = scores.topk(cut).values.sum() + scores.topk(cut, largest=False).values.sum()
    return (scores.sum() - outside) / (runs - 2 * cut)


def middle(*, cut=lambda runs: (runs // 4, runs // 4), of=lambda kept, scores: kept.mean()):
    """Right but for one thing."""

    def function(scores):
        low, high = cut(len(scores))
        return of(scores.sort().values[low : len(scores) - high], scores)

    return function


def _not_sorted(scores):
    cut = len(scores) // 4
    return scores[cut : len(scores) - cut].mean()


def _outside(scores):
    cut, ordered = len(scores) // 4, scores.sort().values
    kept = torch.cat([ordered[:cut], ordered[len(scores) - cut :]])
    return kept.mean() if len(kept) else scores.mean()


def _clamped(scores):
    cut, ordered = len(scores) // 4, scores.sort().values
    return ordered.clamp(ordered[cut], ordered[len(scores) - 1 - cut]).mean()


WRONG["interquartile_mean"] |= {
    "plain_mean": lambda scores: scores.mean(),
    "median": lambda scores: scores.quantile(0.5),
    "median#1": lambda scores: scores.median(),
    "not_sorted": _not_sorted,
    "best_kept": middle(cut=lambda runs: (runs // 4, 0)),
    "worst_kept": middle(cut=lambda runs: (0, runs // 4)),
    "outside_instead": _outside,
    "a_quarter_in_all": middle(cut=lambda runs: (runs // 8, runs // 8)),
    "one_at_each_end": middle(cut=lambda runs: (1, 1) if runs > 2 else (0, 0)),
    "rounded_up": middle(cut=lambda runs: (min(-(-runs // 4), (runs - 1) // 2),) * 2),
    "clamped": _clamped,
    "divided_by_all": middle(of=lambda kept, scores: kept.sum() / len(scores)),
    "mean_of_the_quartiles": middle(of=lambda kept, scores: (kept[0] + kept[-1]) / 2),
    "best_half": middle(cut=lambda runs: (runs // 2, 0)),
}

# --- what redrawn runs say -------------------------------------------------------------------


@passes("redrawn_interval")
def means_then_quantiles(scores, draws, *, confidence):
    means = scores[draws].mean(dim=-1)
    tail = (1 - confidence) / 2
    return means.quantile(tail), means.quantile(1 - tail)


@passes("redrawn_interval")
def both_ends_at_once(scores, draws, *, confidence):
    ends = torch.tensor([0.5 - confidence / 2, 0.5 + confidence / 2], dtype=scores.dtype)
    return tuple(torch.quantile(scores.take(draws).sum(dim=1) / len(scores), ends))


@passes("redrawn_interval")
def line_between_neighbours(scores, draws, confidence=0.95):
    means = sorted(fmean(scores[place].item() for place in row) for row in draws)

    def at(share):
        place = share * (len(means) - 1)
        below = math.floor(place + 1e-12)
        above = min(below + 1, len(means) - 1)
        return means[below] + (place - below) * (means[above] - means[below])

    return at((1 - confidence) / 2), at((1 + confidence) / 2)


@passes("redrawn_interval")
def counts_of_each_run(scores, draws, *, confidence):
    runs = len(scores)
    times = torch.stack([(draws == place).sum(dim=1) for place in range(runs)], dim=1)
    means = (times.to(scores.dtype) @ scores) / runs
    tail = (1 - confidence) / 2
    return [torch.quantile(means, tail).item(), torch.quantile(means, 1 - tail).item()]


def between(
    *,
    of=lambda scores, draws: scores[draws].mean(dim=1),
    tails=lambda outside: (outside / 2, 1 - outside / 2),
    after=lambda low, high, scores: (low, high),
):
    """Right but for one thing."""

    def function(scores, draws, *, confidence):
        means = of(scores, draws)
        low, high = tails(1 - confidence)
        return after(means.quantile(low), means.quantile(high), scores)

    return function


def _two_errors(scores, draws, *, confidence):
    means = scores[draws].mean(dim=1)
    error = means.std(correction=0)
    return means.mean() - 1.96 * error, means.mean() + 1.96 * error


def _each_once(scores, draws):
    return torch.stack([scores[row.unique()].mean() for row in draws])


def _around(low, high, scores):
    half = (high - low) / 2
    return scores.mean() - half, scores.mean() + half


def _whole_tails(outside):
    return min(outside, 1.0), max(1 - outside, 0.0)


WRONG["redrawn_interval"] |= {
    "whole_remainder_at_each_end": between(tails=_whole_tails),
    "confidence_for_the_tail": between(tails=lambda out: ((1 - out) / 2, 1 - (1 - out) / 2)),
    "quantiles_of_the_runs": between(of=lambda scores, draws: scores),
    "draws_pooled": between(of=lambda scores, draws: scores[draws].flatten()),
    "along_the_wrong_axis": between(of=lambda scores, draws: scores[draws].mean(dim=0)),
    "medians_of_redraws": between(of=lambda scores, draws: scores[draws].quantile(0.5, dim=1)),
    "medians_of_redraws#1": between(of=lambda scores, draws: scores[draws].median(dim=1).values),
    "smallest_and_largest": between(tails=lambda out: (0.0, 1.0)),
    "two_standard_errors": _two_errors,
    "high_first": between(after=lambda low, high, scores: (high, low)),
    "each_run_once": between(of=_each_once),
    "alike_redraws_once": between(of=lambda scores, draws: scores[draws].mean(dim=1).unique()),
    "from_below_only": between(tails=lambda out: (0.0, 1 - out)),
    "from_above_only": between(tails=lambda out: (out, 1.0)),
    "around_the_mean": between(after=_around),
}

# --- pairs of runs ---------------------------------------------------------------------------


@passes("probability_of_improvement")
def column_minus_row(first, second):
    gaps = first.unsqueeze(1) - second.unsqueeze(0)
    return ((gaps > 0).double() + 0.5 * (gaps == 0).double()).mean()


@passes("probability_of_improvement")
def signs(first, second):
    return ((first[:, None] - second[None]).sign().mean() + 1) / 2


@passes("probability_of_improvement")
def pair_by_pair(first, second):
    won = 0.0
    for x in first.tolist():
        for y in second.tolist():
            won += 1.0 if x > y else 0.5 if x == y else 0.0
    return torch.tensor(won / (len(first) * len(second)))


@passes("probability_of_improvement")
def by_ranks_of_all(first, second, ties=0.5):
    runs = torch.cat([first, second])
    ranks = (runs[:, None] > runs).sum(1) + (1 + (runs[:, None] == runs).sum(1)) / 2
    n, m = len(first), len(second)
    return (ranks[:n].sum() - n * (n + 1) / 2) / (n * m)


def paired(
    *,
    pairs=lambda first, second: first.unsqueeze(1) - second,
    won=lambda gaps: (gaps > 0) + 0.5 * (gaps == 0),
    share=lambda counts: counts.double().mean(),
):
    """Right but for one thing."""

    def function(first, second):
        return share(won(pairs(first, second)))

    return function


def _by_place(first, second):
    runs = min(len(first), len(second))
    return first[:runs] - second[:runs]


def _best_first(first, second):
    return _by_place(first.sort(descending=True).values, second.sort(descending=True).values)


def _without_ties(first, second):
    gaps = first.unsqueeze(1) - second
    kept = gaps[gaps != 0]
    return (kept > 0).double().mean() if len(kept) else torch.tensor(0.5, dtype=first.dtype)


def _beats_all(first, second):
    gaps = first.unsqueeze(1) - second
    return ((gaps > 0) + 0.5 * (gaps == 0)).amin(dim=1).double().mean()


WRONG["probability_of_improvement"] |= {
    "ties_lost": paired(won=lambda gaps: gaps > 0),
    "ties_won": paired(won=lambda gaps: gaps >= 0),
    "ties_left_out": _without_ties,
    "second_for_first": paired(pairs=lambda first, second: second.unsqueeze(1) - first),
    "seed_against_seed": paired(pairs=_by_place),
    "best_against_best": paired(pairs=_best_first),
    "means_compared": paired(pairs=lambda first, second: first.mean() - second.mean()),
    "medians_compared": paired(
        pairs=lambda first, second: first.quantile(0.5) - second.quantile(0.5)
    ),
    "beats_the_mean": paired(pairs=lambda first, second: first - second.mean()),
    "beats_all": _beats_all,
    "pairs_counted": paired(share=lambda counts: counts.double().sum()),
    "divided_by_the_first": paired(
        share=lambda counts: counts.double().sum() / counts.shape[0],
    ),
    "gap_for_share": paired(won=lambda gaps: gaps),
    "won_minus_lost": paired(won=lambda gaps: gaps.sign()),
}

# --- verdicts --------------------------------------------------------------------------------


@passes("verdicts")
def above_minus_below(lows, highs, *, base):
    return (lows > highs[base]).double() - (highs < lows[base]).double()


@passes("verdicts")
def whole_numbers(lows, highs, *, base):
    return torch.where(lows > highs[base], 1, torch.where(highs < lows[base], -1, 0))


@passes("verdicts")
def one_by_one(lows, highs, base=0):
    found = torch.zeros_like(lows)
    for place, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low > highs[base]:
            found[place] = 1.0
        elif high < lows[base]:
            found[place] = -1.0
    return found


@passes("verdicts")
def with_the_package(lows, highs, *, base):
    words = {"above": 1.0, "below": -1.0, "inconclusive": 0.0}
    pairs = [statistics.Interval(*pair) for pair in zip(lows.tolist(), highs.tolist(), strict=True)]
    return torch.tensor([words[statistics.apart(pair, pairs[base])] for pair in pairs])


def said(above, below):
    """Say +1 and −1 by two rules, each of (lows, highs, low and high of the base)."""

    def function(lows, highs, *, base):
        ends = lows[base], highs[base]
        return above(lows, highs, *ends).double() - below(lows, highs, *ends).double()

    return function


def over(lows, highs, low, high):
    return lows > high


def under(lows, highs, low, high):
    return highs < low


def never(lows, highs, low, high):
    return torch.zeros_like(lows, dtype=torch.bool)


def _first_base(lows, highs, *, base):
    return said(over, under)(lows, highs, base=0)


def _best_base(lows, highs, *, base):
    return said(over, under)(lows, highs, base=int((lows + highs).argmax()))


WRONG["verdicts"] |= {
    "middles_compared": said(
        lambda lows, highs, low, high: lows + highs > low + high,
        lambda lows, highs, low, high: lows + highs < low + high,
    ),
    "signs_exchanged": said(under, over),
    "touching_is_apart": said(
        lambda lows, highs, low, high: lows >= high, lambda lows, highs, low, high: highs <= low
    ),
    "low_ends_compared": said(
        lambda lows, highs, low, high: lows > low, lambda lows, highs, low, high: lows < low
    ),
    "high_ends_compared": said(
        lambda lows, highs, low, high: highs > high, lambda lows, highs, low, high: highs < high
    ),
    "middle_beyond_the_end": said(
        lambda lows, highs, low, high: (lows + highs) / 2 > high,
        lambda lows, highs, low, high: (lows + highs) / 2 < low,
    ),
    "outside_the_middle_of_the_base": said(
        lambda lows, highs, low, high: lows > (low + high) / 2,
        lambda lows, highs, low, high: highs < (low + high) / 2,
    ),
    "never_below": said(over, never),
    "never_above": said(never, under),
    "first_is_the_base": _first_base,
    "wider_is_worse": said(
        lambda lows, highs, low, high: highs - lows < high - low,
        lambda lows, highs, low, high: highs - lows > high - low,
    ),
    "far_ends_compared": said(
        lambda lows, highs, low, high: highs > high,
        lambda lows, highs, low, high: lows < low,
    ),
    "against_the_best": _best_base,
}

# --- a difference, redrawn -------------------------------------------------------------------


@passes("mended_difference")
def each_with_its_own(first, second, first_draws, second_draws, *, confidence):
    gaps = first[first_draws].mean(dim=1) - second[second_draws].mean(dim=1)
    tail = (1 - confidence) / 2
    return torch.quantile(gaps, tail), torch.quantile(gaps, 1 - tail)


@passes("mended_difference")
def one_redraw_after_the_other(first, second, first_draws, second_draws, *, confidence):
    gaps = [
        first[mine].mean() - second[other].mean()
        for mine, other in zip(first_draws, second_draws, strict=True)
    ]
    ends = torch.tensor([(1 - confidence) / 2, (1 + confidence) / 2], dtype=first.dtype)
    return tuple(torch.stack(gaps).quantile(ends).tolist())


@passes("mended_difference")
def turned_twice(first, second, first_draws, second_draws, confidence):
    gaps = second.take(second_draws).mean(1) - first.take(first_draws).mean(1)
    tail = (1 - confidence) / 2
    return -gaps.quantile(1 - tail), -gaps.quantile(tail)


def differing(
    *,
    gaps_of=lambda one, two, first, second: one - two,
    two_of=lambda second, first_draws, second_draws: second[second_draws].mean(dim=1),
    tails=lambda outside: (outside / 2, 1 - outside / 2),
    after=lambda low, high: (low, high),
):
    """Right but for one thing."""

    def function(first, second, first_draws, second_draws, *, confidence):
        one = first[first_draws].mean(dim=1)
        two = two_of(second, first_draws, second_draws)
        gaps = gaps_of(one, two, first, second)
        low, high = tails(1 - confidence)
        return after(gaps.quantile(low), gaps.quantile(high))

    return function


def _ends(pick):
    def function(first, second, first_draws, second_draws, *, confidence):
        tail = (1 - confidence) / 2
        ends = torch.tensor([tail, 1 - tail], dtype=first.dtype)
        mine = first[first_draws].mean(dim=1).quantile(ends)
        other = second[second_draws].mean(dim=1).quantile(ends)
        return pick(mine, other)

    return function


WRONG["mended_difference"] |= {
    "same_draws_for_both": differing(
        two_of=lambda second, first_draws, second_draws: second[first_draws % len(second)].mean(
            dim=1
        )
    ),
    "second_minus_first": differing(gaps_of=lambda one, two, first, second: two - one),
    "ends_subtracted": _ends(lambda mine, other: (mine[0] - other[0], mine[1] - other[1])),
    "far_ends_subtracted": _ends(lambda mine, other: (mine[0] - other[1], mine[1] - other[0])),
    "second_held_fixed": differing(gaps_of=lambda one, two, first, second: one - second.mean()),
    "first_held_fixed": differing(gaps_of=lambda one, two, first, second: first.mean() - two),
    "absolute_difference": differing(gaps_of=lambda one, two, first, second: (one - two).abs()),
    "whole_remainder_at_each_end": differing(tails=_whole_tails),
    "high_first": differing(after=lambda low, high: (high, low)),
    "all_pairs_of_redraws": differing(
        gaps_of=lambda one, two, first, second: (one[:, None] - two).flatten()
    ),
    "shift_forgotten": differing(
        gaps_of=lambda one, two, first, second: one - two - (first.mean() - second.mean())
    ),
}

# --- numbers by hand -------------------------------------------------------------------------

RUNS = sorted((480, 20, 490, 500, 470, 500, 460, 496))
WRONG_PAIR = 0.3

SOLVED = {
    "a": fmean(RUNS[2:6]),
    "b": fmean(RUNS),
    "c": 4.5 / 6,
    "d": 1 - 0.95**20,
    "e": 64,
    "f": 3 / 27,
    "g": 3 * WRONG_PAIR**2 * (1 - WRONG_PAIR) + WRONG_PAIR**3,
    "h": 20 * 0.05,
}
RIGHT["study_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {letter: round(number, 3) for letter, number in SOLVED.items()},
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["study_by_hand"] = {
    "mean_for_iqm": SOLVED | {"a": fmean(RUNS)},
    "median_for_iqm": SOLVED | {"a": fmean(RUNS[3:5])},
    "one_left_out": SOLVED | {"a": fmean(RUNS[1:7])},
    "failed_run_left_out": SOLVED | {"b": fmean(RUNS[1:])},
    "tie_lost": SOLVED | {"c": 4 / 6},
    "tie_won": SOLVED | {"c": 5 / 6},
    "pairs_by_seed": SOLVED | {"c": 1 / 2},
    "second_first": SOLVED | {"c": 1.5 / 6},
    "chances_added": SOLVED | {"d": 20 * 0.05},
    "all_of_them": SOLVED | {"d": 0.05**20},
    "none_of_them": SOLVED | {"d": 0.95**20},
    "half_the_width_twice_the_seeds": SOLVED | {"e": 32},
    "additional_seeds": SOLVED | {"e": 48},
    "other_exponent": SOLVED | {"e": 256},
    "one_certain_run": SOLVED | {"f": 1 / 27},
    "permutations": SOLVED | {"f": 3 / 6},
    "in_order_only": SOLVED | {"g": WRONG_PAIR**2 * (1 - WRONG_PAIR) + WRONG_PAIR**3},
    "all_three": SOLVED | {"g": WRONG_PAIR**3},
    "one_pair": SOLVED | {"g": WRONG_PAIR},
    "expected_number_as_chance": SOLVED | {"h": 0.05},
    "expected_right": SOLVED | {"h": 19},
}


# --- slow definitions ------------------------------------------------------------------------


def slow_iqm(scores):
    """Take off the lowest and the highest, as often as there is a whole quarter."""
    left = list(scores)
    for _ in range(len(scores) // 4):
        left.remove(min(left))
        left.remove(max(left))
    return math.fsum(left) / len(left)


def quantile_of(numbers, share):
    """A line through the sorted numbers, the first at 0 and the last at 1."""
    ordered = sorted(numbers)
    for place in range(len(ordered) - 1):
        left, right = place / (len(ordered) - 1), (place + 1) / (len(ordered) - 1)
        if left <= share <= right:
            along = (share - left) / (right - left)
            return (1 - along) * ordered[place] + along * ordered[place + 1]
    return ordered[0]


def slow_interval(scores, draws, *, confidence):
    means = [math.fsum(scores[place] for place in row) / len(row) for row in draws]
    return quantile_of(means, (1 - confidence) / 2), quantile_of(means, (1 + confidence) / 2)


def slow_improvement(first, second):
    won = sum(1 for x, y in product(first, second) if x > y)
    tied = sum(1 for x, y in product(first, second) if x == y)
    return (won + tied / 2) / (len(first) * len(second))


def slow_verdicts(lows, highs, *, base):
    found = []
    for low, high in zip(lows, highs, strict=True):
        if low > highs[base]:
            found.append(1)
        else:
            found.append(-1 if high < lows[base] else 0)
    return found


def slow_difference(first, second, first_draws, second_draws, *, confidence):
    gaps = [
        math.fsum(first[place] for place in mine) / len(mine)
        - math.fsum(second[place] for place in other) / len(other)
        for mine, other in zip(first_draws, second_draws, strict=True)
    ]
    return quantile_of(gaps, (1 - confidence) / 2), quantile_of(gaps, (1 + confidence) / 2)


ORACLES = {
    "interquartile_mean": slow_iqm,
    "redrawn_interval": slow_interval,
    "probability_of_improvement": slow_improvement,
    "verdicts": slow_verdicts,
    "mended_difference": slow_difference,
}
