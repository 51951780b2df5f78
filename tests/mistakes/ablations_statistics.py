"""Wrong ways to conclude from a few runs."""

import torch

from mistakes import new_catalogue
from ppo_lessons.ablations import statistics

MISTAKES, breaks = new_catalogue()
HOME = "ablations.statistics"  # a module of a lesson that is a package


# --- the middle half ---------------------------------------------------------------------------


@breaks("interquartile_mean")
def plain_mean(scores):
    """The mean of all runs: one outlier moves it."""
    return scores.mean(dim=-1)


@breaks("interquartile_mean")
def median_for_the_middle_half(scores):
    """One run in the middle, instead of the mean of the middle half."""
    return scores.quantile(0.5, dim=-1)


@breaks("interquartile_mean")
def not_sorted(scores):
    """The first and the last quarter of the seeds are left out, whatever they scored."""
    cut = scores.shape[-1] // 4
    return scores[..., cut : scores.shape[-1] - cut].mean(dim=-1)


@breaks("interquartile_mean")
def best_kept(scores):
    """Only the worst quarter is left out."""
    return scores.sort(dim=-1).values[..., scores.shape[-1] // 4 :].mean(dim=-1)


@breaks("interquartile_mean")
def half_at_each_end(scores):
    """Half of the runs is left out at each end, or all but the middle."""
    runs = scores.shape[-1]
    cut = max((runs - 1) // 2, 0)
    return scores.sort(dim=-1).values[..., cut : runs - cut].mean(dim=-1)


@breaks("interquartile_mean")
def outer_quarters_clamped(scores):
    """The outer quarters are moved to the quartiles and counted: a winsorised mean."""
    runs = scores.shape[-1]
    ordered, cut = scores.sort(dim=-1).values, runs // 4
    return ordered.clamp(ordered[..., [cut]], ordered[..., [runs - 1 - cut]]).mean(dim=-1)


@breaks("interquartile_mean")
def rounded_up(scores):
    """A part of a run is left out as a whole one."""
    runs = scores.shape[-1]
    cut = min(-(-runs // 4), (runs - 1) // 2)
    return scores.sort(dim=-1).values[..., cut : runs - cut].mean(dim=-1)


@breaks("interquartile_mean")
def all_batches_pooled(scores):
    """Rows that are separate questions are thrown together."""
    flat = scores.flatten().sort().values
    cut = len(flat) // 4
    middle = flat[cut : len(flat) - cut].mean()
    return middle.expand(scores.shape[:-1])


# --- drawing the runs again --------------------------------------------------------------------


def bootstrap(
    *,
    draw=statistics._redrawn,
    tail=lambda confidence: (1 - confidence) / 2,
    prepare=statistics._by_task,
):
    """Right but for one thing."""

    def function(scores, statistic, *, resamples, confidence, generator):
        found = statistic(draw(prepare(scores), resamples, generator))
        share = tail(confidence)
        return statistics.Interval(found.quantile(share).item(), found.quantile(1 - share).item())

    return function


def _pooled(tasks, resamples, generator):
    runs = torch.cat(tasks)
    return runs[torch.randint(len(runs), (resamples, len(runs)), generator=generator)]


def _shuffled(tasks, resamples, generator):
    runs = torch.cat(tasks)
    return torch.stack(
        [runs[torch.randperm(len(runs), generator=generator)] for _ in range(resamples)]
    )


def _half_as_many(tasks, resamples, generator):
    return statistics._redrawn(tasks, resamples, generator)[:, ::2]


def _without_generator(tasks, resamples, generator):
    return statistics._redrawn(tasks, resamples, torch.Generator().manual_seed(torch.seed() >> 1))


@breaks("stratified_bootstrap")
def pooled_over_tasks(scores, statistic, *, resamples, confidence, generator):
    """Runs are drawn from all tasks together: how many come from each is left to chance."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(draw=_pooled)(scores, statistic, **settings)


@breaks("stratified_bootstrap")
def without_replacement(scores, statistic, *, resamples, confidence, generator):
    """Each draw is a shuffle of the same runs, so nothing varies."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(draw=_shuffled)(scores, statistic, **settings)


@breaks("stratified_bootstrap")
def fewer_runs_redrawn(scores, statistic, *, resamples, confidence, generator):
    """Half as many runs are drawn as there are: the interval is too wide."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(draw=_half_as_many)(scores, statistic, **settings)


@breaks("stratified_bootstrap")
def both_tails_in_each(scores, statistic, *, resamples, confidence, generator):
    """1 − confidence is cut off at each end instead of half of it."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(tail=lambda confidence: min(1 - confidence, 0.5))(
        scores, statistic, **settings
    )


@breaks("stratified_bootstrap")
def confidence_for_the_tail(scores, statistic, *, resamples, confidence, generator):
    """The share that is to be inside is left out."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(tail=lambda confidence: confidence / 2)(scores, statistic, **settings)


@breaks("stratified_bootstrap")
def spread_of_the_runs(scores, statistic, *, resamples, confidence, generator):
    """Quantiles of the runs: where a run falls, not where the statistic does."""
    runs = torch.cat(statistics._by_task(scores))
    tail = (1 - confidence) / 2
    return statistics.Interval(runs.quantile(tail).item(), runs.quantile(1 - tail).item())


@breaks("stratified_bootstrap")
def mean_whatever_is_asked(scores, statistic, *, resamples, confidence, generator):
    """The interval of the mean, whatever the statistic is."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap()(scores, lambda drawn: drawn.mean(dim=-1), **settings)


@breaks("stratified_bootstrap")
def generator_not_used(scores, statistic, *, resamples, confidence, generator):
    """The draws come from elsewhere: the same generator gives another interval."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return bootstrap(draw=_without_generator)(scores, statistic, **settings)


@breaks("bootstrap_difference")
def other_way_round(first, second, statistic, *, resamples, confidence, generator):
    """Second minus first."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    return statistics.bootstrap_difference(second, first, statistic, **settings)


@breaks("bootstrap_difference")
def ends_subtracted(first, second, statistic, *, resamples, confidence, generator):
    """End minus end of two intervals, as if both always erred the same way."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    one = statistics.stratified_bootstrap(first, statistic, **settings)
    two = statistics.stratified_bootstrap(second, statistic, **settings)
    low, high = sorted((one.low - two.low, one.high - two.high))
    return statistics.Interval(low, high)


@breaks("bootstrap_difference")
def far_ends_subtracted(first, second, statistic, *, resamples, confidence, generator):
    """Low minus high and high minus low: as if both always erred away from each other."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    one = statistics.stratified_bootstrap(first, statistic, **settings)
    two = statistics.stratified_bootstrap(second, statistic, **settings)
    return statistics.Interval(one.low - two.high, one.high - two.low)


@breaks("bootstrap_difference")
def second_held_fixed(first, second, statistic, *, resamples, confidence, generator):
    """Only the first setting is run again."""
    settings = {"resamples": resamples, "confidence": confidence, "generator": generator}
    fixed = statistic(torch.cat(statistics._by_task(second))[None]).item()
    low, high = statistics.stratified_bootstrap(first, statistic, **settings)
    return statistics.Interval(low - fixed, high - fixed)


@breaks("bootstrap_difference")
def same_seeds_paired(first, second, statistic, *, resamples, confidence, generator):
    """The same places are drawn from both, as if seed 3 of one belonged to seed 3 of the other."""
    runs = min(len(first), len(second))
    gaps = first[:runs] - second[:runs]
    return statistics.stratified_bootstrap(
        gaps, statistic, resamples=resamples, confidence=confidence, generator=generator
    )


# --- pairs of runs -----------------------------------------------------------------------------


def improvement(*, of_pairs=lambda gaps: (gaps > 0).double() + 0.5 * (gaps == 0), pool=False):
    """Right but for one thing."""

    def function(first, second):
        tasks, others = statistics._by_task(first), statistics._by_task(second)
        if pool:
            tasks, others = [torch.cat(tasks)], [torch.cat(others)]
        pairs = zip(tasks, others, strict=True)
        shares = [of_pairs(x.unsqueeze(1) - y).double().mean() for x, y in pairs]
        return torch.stack(shares).mean().item()

    return function


@breaks("probability_of_improvement")
def ties_lost(first, second):
    """A tie counts for nobody, so a setting against itself is worse than itself."""
    return improvement(of_pairs=lambda gaps: gaps > 0)(first, second)


@breaks("probability_of_improvement")
def ties_won(first, second):
    """A tie counts as won."""
    return improvement(of_pairs=lambda gaps: gaps >= 0)(first, second)


@breaks("probability_of_improvement")
def second_for_first(first, second):
    """The probability that the second beats the first."""
    return improvement()(second, first)


@breaks("probability_of_improvement")
def tasks_pooled(first, second):
    """Runs of one task are compared with runs of another."""
    return improvement(pool=True)(first, second)


@breaks("probability_of_improvement")
def seed_against_seed(first, second):
    """Only runs with the same seed meet."""
    return improvement(of_pairs=lambda gaps: (gaps.diagonal() > 0) + 0.5 * (gaps.diagonal() == 0))(
        first, second
    )


@breaks("probability_of_improvement")
def better_on_average(first, second):
    """Whether the mean is larger, instead of how often a run is."""
    return improvement(of_pairs=lambda gaps: (gaps.mean() > 0).double() + 0.5 * (gaps.mean() == 0))(
        first, second
    )


# --- shares above a threshold ------------------------------------------------------------------


@breaks("performance_profile")
def at_least(scores, thresholds):
    """A run that ends exactly at the threshold counts as above it."""
    tasks = statistics._by_task(scores)
    return torch.stack(
        [(task >= thresholds[:, None]).to(thresholds.dtype).mean(-1) for task in tasks]
    ).mean(0)


@breaks("performance_profile")
def share_below(scores, thresholds):
    """The share of runs that end below."""
    return 1 - statistics.performance_profile(scores, thresholds)


@breaks("performance_profile")
def all_runs_pooled(scores, thresholds):
    """A task with more seeds counts more."""
    return statistics.performance_profile(torch.cat(statistics._by_task(scores)), thresholds)


@breaks("performance_profile")
def means_of_tasks(scores, thresholds):
    """The share of tasks whose mean lies above, instead of the share of runs."""
    means = torch.stack([task.mean() for task in statistics._by_task(scores)])
    return statistics.performance_profile(means, thresholds)


@breaks("performance_profile")
def counted(scores, thresholds):
    """Numbers of runs instead of shares."""
    runs = sum(len(task) for task in statistics._by_task(scores))
    return statistics.performance_profile(scores, thresholds) * runs


# --- verdicts ----------------------------------------------------------------------------------


@breaks("apart")
def middles_compared(first, second):
    """The middles differ, and that is taken for a result."""
    gap = sum(first) - sum(second)
    return "above" if gap > 0 else "below" if gap < 0 else "inconclusive"


@breaks("apart")
def words_exchanged(first, second):
    """Says of the first what holds for the second."""
    return statistics.apart(second, first)


@breaks("apart")
def touching_is_apart(first, second):
    """Ends that are equal count as apart."""
    return (
        "above" if first[0] >= second[1] else "below" if first[1] <= second[0] else "inconclusive"
    )


@breaks("apart")
def low_ends_compared(first, second):
    """Only the lower ends are compared."""
    return "above" if first[0] > second[0] else "below" if first[0] < second[0] else "inconclusive"


@breaks("apart")
def middle_outside_is_enough(first, second):
    """The middle of one lies outside the other: that is not yet apart."""
    middle = sum(first) / 2
    return "above" if middle > second[1] else "below" if middle < second[0] else "inconclusive"


@breaks("apart")
def never_below(first, second):
    """A setting that is surely worse is called inconclusive."""
    return "above" if first[0] > second[1] else "inconclusive"


# --- a table ---------------------------------------------------------------------------------


@breaks("judge_settings")
def first_row_is_the_base(scores, *, base, resamples, confidence, generator):
    """Every setting is compared with the first row, whichever the base is."""
    rows = statistics.judge_settings(
        scores, base=base, resamples=resamples, confidence=confidence, generator=generator
    )
    against = rows[0].interval
    return [
        row._replace(
            verdict="base" if row.name == base else statistics.apart(row.interval, against)
        )
        for row in rows
    ]


@breaks("judge_settings")
def base_against_setting(scores, *, base, resamples, confidence, generator):
    """The verdict is that of the base against the setting."""
    rows = statistics.judge_settings(
        scores, base=base, resamples=resamples, confidence=confidence, generator=generator
    )
    turned = {"above": "below", "below": "above"}
    return [row._replace(verdict=turned.get(row.verdict, row.verdict)) for row in rows]
