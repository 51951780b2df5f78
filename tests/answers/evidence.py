"""Answers to the exercises of lesson 17."""

from itertools import combinations
from math import comb, hypot, sqrt
from statistics import NormalDist, fmean

import torch

from answers import new_catalogue
from ppo_lessons import evidence
from ppo_lessons.evidence import Count

EXERCISES = (
    "share_interval",
    "one_of_k",
    "judged_success",
    "paired_interval",
    "mended_excess",
    "evidence_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)


def confidence_of(z):
    """The confidence whose interval reaches z standard errors to each side."""
    return 2 * NormalDist().cdf(z) - 1


# --- an interval for a share ----------------------------------------------------------------


@passes("share_interval")
def package_wilson(right, *, z):
    found = evidence.wilson(Count(int(right.sum()), len(right)), confidence=confidence_of(z))
    return tuple(found)


@passes("share_interval")
def roots_of_a_quadratic(right, *, z):
    n, p = len(right), right.double().mean().item()
    # (1 + z²/n)·x² − (2p + z²/n)·x + p² = 0
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


@passes("share_interval")
def as_tensors(right, z):
    n = torch.tensor(float(len(right)), dtype=torch.float64)
    p, w = right.double().mean(), z * z / n
    half = (w * p * (1 - p) + w * w / 4).sqrt()
    return torch.stack([p + w / 2 - half, p + w / 2 + half]) / (1 + w)


def interval(
    counted=lambda right: right.sum().item(),
    *,
    middle=lambda k, n, z: (k + z * z / 2) / (n + z * z),
    half=lambda k, n, z: z * sqrt(k * (n - k) / n + z * z / 4) / (n + z * z),
    ends=lambda low, high: (low, high),
):
    """Right but for one thing."""

    def function(right, *, z):
        k, n = counted(right), len(right)
        return ends(middle(k, n, z) - half(k, n, z), middle(k, n, z) + half(k, n, z))

    return function


def usual_half(k, n, z):
    return z * sqrt(k * (n - k) / n) / n


WRONG["share_interval"] |= {
    "root_at_the_observed_share": interval(middle=lambda k, n, z: k / n, half=usual_half),
    "middle_not_moved": interval(middle=lambda k, n, z: k / n),
    "width_at_the_observed_share": interval(
        half=lambda k, n, z: z * sqrt(k * (n - k) / n) / (n + z * z)
    ),
    "divided_by_n": interval(
        middle=lambda k, n, z: (k + z * z / 2) / n,
        half=lambda k, n, z: z * sqrt(k * (n - k) / n + z * z / 4) / n,
    ),
    "z_not_squared": interval(
        middle=lambda k, n, z: (k + z / 2) / (n + z),
        half=lambda k, n, z: z * sqrt(k * (n - k) / n + z / 4) / (n + z),
    ),
    "whole_z_squared_in_the_root": interval(
        half=lambda k, n, z: z * sqrt(k * (n - k) / n + z * z) / (n + z * z)
    ),
    "one_z_forgotten": interval(
        half=lambda k, n, z: sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    ),
    "wrong_ones_counted": interval(lambda right: len(right) - right.sum().item()),
    "ends_exchanged": interval(ends=lambda low, high: (high, low)),
    "half_the_width": interval(
        half=lambda k, n, z: z * sqrt(k * (n - k) / n + z * z / 4) / (n + z * z) / 2
    ),
}

# --- one of k tries ---------------------------------------------------------------------------


@passes("one_of_k")
def package_pass(right, *, k):
    return evidence.mean_pass_at_k(right, k)


@passes("one_of_k")
def factor_by_factor(right, *, k):
    n, found = right.shape[1], []
    for row in right:
        none = 1.0
        for drawn in range(k):
            none *= max(n - row.sum().item() - drawn, 0) / (n - drawn)
        found.append(1 - none)
    return torch.tensor(found, dtype=torch.float64).mean()


@passes("one_of_k")
def every_choice(right, k):
    chosen = torch.tensor(list(combinations(range(right.shape[1]), k)))
    return right[:, chosen].any(dim=2).double().mean().item()


def tries(of_one, *, mean=fmean):
    """The mean over prompts of a function of right ones, answers and tries."""

    def function(right, *, k):
        return mean([of_one(int(row.sum()), right.shape[1], k) for row in right])

    return function


def pooled(right, *, k):
    c, n = int(right.sum()), right.numel()
    return 1 - comb(n - c, k) / comb(n, k)


WRONG["one_of_k"] |= {
    "put_back": tries(lambda c, n, k: 1 - (1 - c / n) ** k),
    "first_k_only": lambda right, *, k: right[:, :k].any(dim=1).double().mean().item(),
    "share_times_k": tries(lambda c, n, k: min(1.0, k * c / n)),
    "share_of_one": tries(lambda c, n, k: c / n),
    "all_tries_right": tries(lambda c, n, k: comb(c, k) / comb(n, k)),
    "none_right_given": tries(lambda c, n, k: comb(n - c, k) / comb(n, k)),
    "prompts_pooled": pooled,
    "right_and_wrong_exchanged": tries(lambda c, n, k: 1 - comb(c, k) / comb(n, k)),
    "summed_over_prompts": tries(lambda c, n, k: 1 - comb(n - c, k) / comb(n, k), mean=sum),
}

# --- a judge who errs -------------------------------------------------------------------------


@passes("judged_success")
def package_estimate(labels, *, accuracy):
    found = evidence.estimate_success(Count(int(labels.sum()), len(labels)), accuracy=accuracy)
    return found.success, found.standard_error


@passes("judged_success")
def by_a_line_through_two_points(labels, *, accuracy):
    # the judge calls 1 − a right where nothing is, and a where everything is
    n, low, high = len(labels), 1 - accuracy, accuracy
    q = (labels.double().sum() + 1) / (n + 2)
    success = (labels.double().mean() - low) / (high - low)
    return success, (q - q * q).sqrt() / n**0.5 / (high - low)


@passes("judged_success")
def counted_one_by_one(labels, accuracy):
    k = sum(1 for label in labels.tolist() if label)
    n = len(labels)
    return [
        (k / n + accuracy - 1) / (accuracy - (1 - accuracy)),
        ((k + 1) * (n - k + 1) / n) ** 0.5 / (n + 2) / (2 * accuracy - 1),
    ]


def judged(
    success=lambda share, a: (share - (1 - a)) / (2 * a - 1),
    *,
    stretch=lambda a: 1 / (2 * a - 1),
    noise=lambda k, n: sqrt((k + 1) * (n - k + 1) / n) / (n + 2),
    given=lambda success, error: (success, error),
):
    """Right but for one thing."""

    def function(labels, *, accuracy):
        k, n = int(labels.sum()), len(labels)
        return given(success(k / n, accuracy), stretch(accuracy) * noise(k, n))

    return function


WRONG["judged_success"] |= {
    "judge_believed": judged(lambda share, a: share, stretch=lambda a: 1),
    "divided_by_accuracy": judged(lambda share, a: share / a),
    "errors_not_taken_away": judged(lambda share, a: share / (2 * a - 1)),
    "accuracy_taken_away": judged(lambda share, a: (share - a) / (2 * a - 1)),
    "not_stretched": judged(lambda share, a: share - (1 - a)),
    "noise_of_a_sure_judge": judged(stretch=lambda a: 1),
    "noise_stretched_twice": judged(stretch=lambda a: 1 / (2 * a - 1) ** 2),
    "noise_by_accuracy": judged(stretch=lambda a: 1 / a),
    "certain_if_all_agree": judged(noise=lambda k, n: sqrt(k * (n - k) / n) / n),
    "variance_given": judged(given=lambda success, error: (success, error**2)),
    "results_exchanged": judged(given=lambda success, error: (error, success)),
}

# --- the same prompts -------------------------------------------------------------------------


@passes("paired_interval")
def package_comparison(baseline_right, candidate_right, *, z):
    found = evidence.compare_on_same_prompts(
        baseline_right, candidate_right, confidence=confidence_of(z)
    )
    return tuple(found.difference)


@passes("paired_interval")
def gained_and_lost(baseline_right, candidate_right, *, z):
    n = len(baseline_right)
    gained = int((candidate_right & ~baseline_right).sum())
    lost = int((baseline_right & ~candidate_right).sum())
    mean = (gained - lost) / n
    half = z * sqrt(((gained + lost) / n - mean**2) / n)
    return mean - half, mean + half


@passes("paired_interval")
def by_the_spread_of_a_tensor(baseline_right, candidate_right, z):
    gaps = candidate_right.float() - baseline_right.float()
    half = z * gaps.std(unbiased=False) / len(gaps) ** 0.5
    return torch.stack([gaps.mean() - half, gaps.mean() + half])


def paired(
    differences=lambda old, new: new - old,
    *,
    centre=lambda gaps: gaps.mean().item(),
    variance=lambda gaps: gaps.var(unbiased=False).item() / len(gaps),
    times=lambda z: z,
    scale=lambda gaps: 1,
    ends=lambda low, high: (low, high),
):
    """Right but for one thing."""

    def function(baseline_right, candidate_right, *, z):
        gaps = differences(baseline_right.double(), candidate_right.double())
        middle, half = centre(gaps), times(z) * sqrt(max(variance(gaps), 0.0))
        return ends(scale(gaps) * (middle - half), scale(gaps) * (middle + half))

    return function


def as_strangers(baseline_right, candidate_right, *, z):
    n, old, new = (
        len(baseline_right), *(x.double().mean().item() for x in (baseline_right, candidate_right))
    )  # fmt: skip
    half = z * sqrt((old * (1 - old) + new * (1 - new)) / n)
    return new - old - half, new - old + half


def differing(gaps):
    return max(int((gaps != 0).sum()), 1)


WRONG["paired_interval"] |= {
    "compared_as_strangers": as_strangers,
    "sign_turned": paired(lambda old, new: old - new),
    "gains_only": paired(lambda old, new: (new - old).clamp(min=0)),
    "over_those_that_differ": paired(
        centre=lambda gaps: gaps.sum().item() / differing(gaps),
        variance=lambda gaps: (1 - (gaps.sum().item() / differing(gaps)) ** 2) / differing(gaps)
        * bool((gaps != 0).any()),
    ),
    "mean_square_not_taken_away": paired(
        variance=lambda gaps: gaps.square().mean().item() / len(gaps)
    ),
    "sum_for_the_mean": paired(scale=len),
    "root_of_n_forgotten": paired(variance=lambda gaps: gaps.var(unbiased=False).item()),
    "one_z_forgotten": paired(times=lambda z: 1),
    "sorted_first": paired(lambda old, new: new.sort().values - old.sort().values),
    "ends_exchanged": paired(ends=lambda low, high: (high, low)),
}  # fmt: skip

# --- a loss beyond noise ----------------------------------------------------------------------


def success_of(labels, accuracy):
    return (labels.double().mean().item() - 1 + accuracy) / (2 * accuracy - 1)


def error_of(labels, accuracy):
    k, n = int(labels.sum()), len(labels)
    return sqrt((k + 1) * (n - k + 1) / n) / (n + 2) / (2 * accuracy - 1)


def excess(
    noise=lambda best, now, a: hypot(error_of(best, a), error_of(now, a)),
    *,
    success=success_of,
    sign=1,
    factor=lambda z: z,
):
    """Right but for one thing."""

    def function(best_labels, labels, *, accuracy, z):
        loss = success(best_labels, accuracy) - success(labels, accuracy)
        return sign * loss - factor(z) * noise(best_labels, labels, accuracy)

    return function


RIGHT["mended_excess"]["in_quadrature"] = excess()


@passes("mended_excess")
def by_the_packages_estimates(best_labels, labels, *, accuracy, z):
    best, now = (
        evidence.estimate_success(Count(int(each.sum()), len(each)), accuracy=accuracy)
        for each in (best_labels, labels)
    )
    variance = best.standard_error**2 + now.standard_error**2
    return best.success - now.success - z * variance**0.5


@passes("mended_excess")
def everything_in_one_tensor(best_labels, labels, accuracy, z):
    total = torch.zeros((), dtype=torch.float64)
    variance = torch.zeros((), dtype=torch.float64)
    for sign, given in ((1, best_labels), (-1, labels)):
        total += sign * given.double().mean()
        share = (given.double().sum() + 1) / (len(given) + 2)
        variance += share * (1 - share) / len(given)
    return (total - z * variance.sqrt()) / (2 * accuracy - 1)


WRONG["mended_excess"] |= {
    "errors_added": excess(lambda best, now, a: error_of(best, a) + error_of(now, a)),
    "noise_of_the_best_only": excess(lambda best, now, a: error_of(best, a)),
    "noise_of_now_only": excess(lambda best, now, a: error_of(now, a)),
    "gain_for_loss": excess(sign=-1),
    "judge_believed": excess(success=lambda labels, a: labels.double().mean().item()),
    "noise_not_stretched": excess(
        lambda best, now, a: (2 * a - 1) * hypot(error_of(best, a), error_of(now, a))
    ),
    "noise_added_on": excess(factor=lambda z: -z),
    "z_forgotten": excess(factor=lambda z: 1),
    "variances_not_rooted": excess(
        lambda best, now, a: error_of(best, a) ** 2 + error_of(now, a) ** 2
    ),
    "labels_in_one_heap": excess(lambda best, now, a: error_of(torch.cat([best, now]), a)),
}

# --- by hand ------------------------------------------------------------------------------------

SOLVED = {"a": 0.2, "b": 0.34, "c": 0.6, "d": 4.0, "e": 0.0625, "f": 0.7, "g": 1800.0}
RIGHT["evidence_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["evidence_by_hand"] = {
    "certain_at_none": SOLVED | {"a": 0.0},
    "half_of_z_squared": SOLVED | {"a": 2 / 20},
    "right_ones_only": SOLVED | {"b": 0.27},
    "errors_exchanged": SOLVED | {"b": 0.3 * 0.1 + 0.7 * 0.9},
    "divided_by_accuracy": SOLVED | {"c": 0.58 / 0.9},
    "not_stretched": SOLVED | {"c": 0.48},
    "noise_for_labels": SOLVED | {"d": 2.0},
    "by_accuracy": SOLVED | {"d": 1 / 0.75**2},
    "one_side": SOLVED | {"e": 1 / 32},
    "put_back": SOLVED | {"f": 1 - 0.6**2},
    "twice_the_share": SOLVED | {"f": 0.8},
    "both_right": SOLVED | {"f": 0.1},
    "all_prompts_given": SOLVED | {"g": 2000.0},
    "root_of_ten": SOLVED | {"g": 19800.0},
}

# --- slow definitions ---------------------------------------------------------------------------


def slow_interval(right, *, z):
    """Halve the way, from a share that is surely inside to one that is surely not."""
    share, n = sum(right) / len(right), len(right)
    found = []
    for inside, outside in ((share, 0.0), (share, 1.0)):
        for _ in range(200):
            middle = (inside + outside) / 2
            if abs(share - middle) <= z * sqrt(middle * (1 - middle) / n):
                inside = middle
            else:
                outside = middle
        found.append(inside)
    return found


def slow_one_of_k(right, *, k):
    found = []
    for row in right:
        draws = list(combinations(row, k))
        found.append(sum(any(draw) for draw in draws) / len(draws))
    return sum(found) / len(found)


def slow_judged(labels, *, accuracy):
    n, k = len(labels), sum(labels)
    # walk along the line q(p) = p·a + (1 − p)·(1 − a)
    at_none, at_all = 1 - accuracy, accuracy
    q = (k + 1) / (n + 2)
    return [(k / n - at_none) / (at_all - at_none), sqrt(q * (1 - q) / n) / (at_all - at_none)]


def slow_paired(baseline_right, candidate_right, *, z):
    gaps = [int(new) - int(old) for old, new in zip(baseline_right, candidate_right, strict=True)]
    mean = sum(gaps) / len(gaps)
    half = z * sqrt(sum((gap - mean) ** 2 for gap in gaps)) / len(gaps)
    return [mean - half, mean + half]


def slow_loss(best_labels, labels, *, accuracy, z):
    best, now = (slow_judged(each, accuracy=accuracy) for each in (best_labels, labels))
    return best[0] - now[0] - z * sqrt(best[1] ** 2 + now[1] ** 2)


ORACLES = {
    "share_interval": slow_interval,
    "one_of_k": slow_one_of_k,
    "judged_success": slow_judged,
    "paired_interval": slow_paired,
    "mended_excess": slow_loss,
}
