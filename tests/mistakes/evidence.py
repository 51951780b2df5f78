"""Classic mistakes with evidence: certain at none of ten, draws put back, a judge believed."""

from math import comb, sqrt

from mistakes import new_catalogue
from ppo_lessons.ablations.statistics import Interval
from ppo_lessons.evidence import Comparison, Estimate

MISTAKES, breaks = new_catalogue()
Z95 = 1.959963984540054


def sign_test(gained, lost):
    """McNemar's exact p."""
    tail = sum(comb(gained + lost, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2 ** (gained + lost))


@breaks("wilson")
def certain_at_none(count, *, confidence):
    """Puts the standard error at the observed share: 0 of n gives an interval of width 0."""
    p = count.hits / count.total
    half = Z95 * sqrt(p * (1 - p) / count.total)
    return Interval(max(0.0, p - half), min(1.0, p + half))


@breaks("wilson")
def one_standard_error(count, *, confidence):
    """Takes one standard error to each side, whatever the confidence."""
    k, n = count.hits, count.total
    half = sqrt(k * (n - k) / n + 1 / 4)
    return Interval((k + 0.5 - half) / (n + 1), (k + 0.5 + half) / (n + 1))


@breaks("mcnemar")
def one_side_only(gained, lost):
    """Counts the splits that are as uneven in one direction only."""
    return sign_test(gained, lost) / 2 if gained != lost else 1.0


@breaks("mcnemar")
def only_gains_count(gained, lost):
    """Asks how often a coin gains so many, and a loss passes for no surprise."""
    flips = gained + lost
    return min(1.0, 2 * sum(comb(flips, k) for k in range(gained, flips + 1)) / 2**flips)


@breaks("pass_at_k")
def drawn_with_replacement(num_right, num_samples, k):
    """Puts each answer back before the next is drawn: too low on average."""
    return 1 - (1 - num_right / num_samples) ** k


@breaks("pass_at_k")
def first_k_only(num_right, num_samples, k):
    """Takes the share of right answers for the probability of one among k."""
    return min(1.0, k * num_right / num_samples)


@breaks("estimate_success")
def judge_believed(labels, *, accuracy):
    """Takes the judge's share for the truth: 15 % of errors pull it towards one half."""
    share = labels.hits / labels.total
    return Estimate(share, sqrt(share * (1 - share) / labels.total))


@breaks("estimate_success")
def divided_by_accuracy(labels, *, accuracy):
    """Divides by the accuracy, as if the judge called no wrong answer right."""
    share = labels.hits / labels.total
    return Estimate(share / accuracy, sqrt(share * (1 - share) / labels.total) / accuracy)


@breaks("estimate_success")
def noise_of_a_sure_judge(labels, *, accuracy):
    """Mends the mean and keeps the standard error of a judge who never errs."""
    mended = (labels.share - (1 - accuracy)) / (2 * accuracy - 1)
    return Estimate(mended, sqrt(labels.share * (1 - labels.share) / labels.total))


@breaks("compare_on_same_prompts")
def compared_as_strangers(baseline_right, candidate_right, *, confidence):
    """Treats the two as if they had answered different prompts: the interval is too wide."""
    total = len(baseline_right)
    old, new = (each.double().mean().item() for each in (baseline_right, candidate_right))
    half = Z95 * sqrt((old * (1 - old) + new * (1 - new)) / total)
    gained = int((candidate_right & ~baseline_right).sum())
    lost = int((baseline_right & ~candidate_right).sum())
    interval = Interval(new - old - half, new - old + half)
    return Comparison(gained, lost, total, sign_test(gained, lost), interval)


@breaks("compare_on_same_prompts")
def all_prompts_flip_a_coin(baseline_right, candidate_right, *, confidence):
    """Lets prompts that both solve, or neither, count for the p-value."""
    total = len(baseline_right)
    gained = int((candidate_right & ~baseline_right).sum())
    lost = int((baseline_right & ~candidate_right).sum())
    gaps = candidate_right.double() - baseline_right.double()
    half = Z95 * sqrt(gaps.var(unbiased=False).item() / total)
    interval = Interval(gaps.mean().item() - half, gaps.mean().item() + half)
    ties = total - gained - lost
    p_value = sign_test(gained + ties // 2, lost + ties - ties // 2)
    return Comparison(gained, lost, total, p_value, interval)


@breaks("compare_on_same_prompts")
def one_prompt_apart(baseline_right, candidate_right, *, confidence):
    """Compares each prompt with the next one: an index that began at 1 on one side."""
    new = candidate_right.roll(1)
    gained, lost = int((new & ~baseline_right).sum()), int((baseline_right & ~new).sum())
    gaps = new.double() - baseline_right.double()
    half = Z95 * sqrt(gaps.var(unbiased=False).item() / len(gaps))
    interval = Interval(gaps.mean().item() - half, gaps.mean().item() + half)
    return Comparison(gained, lost, len(gaps), sign_test(gained, lost), interval)


@breaks("compare_on_same_prompts")
def sorted_before_comparing(baseline_right, candidate_right, *, confidence):
    """Sorts each model's answers first: which prompt was which is lost."""
    old, new = (each.sort().values for each in (baseline_right, candidate_right))
    gained, lost = int((new & ~old).sum()), int((old & ~new).sum())
    gaps = new.double() - old.double()
    half = Z95 * sqrt(gaps.var(unbiased=False).item() / len(gaps))
    interval = Interval(gaps.mean().item() - half, gaps.mean().item() + half)
    return Comparison(gained, lost, len(gaps), sign_test(gained, lost), interval)
