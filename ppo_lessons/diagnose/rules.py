"""The rules: which numbers of a run are known from which bug.

A rule sees the whole run and speaks or is silent. Its thresholds have a reason, which stands beside
them: a bound that no right loop can pass, or a number that was seen on bugs and on healthy runs and
lies far from both. They were set on seeds 1 to 4; `benchmarks/results/diagnose.json` counts on
others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, isfinite, log, sqrt
from statistics import fmean, median

import torch

from ppo_lessons.debugging import lowest_entropy_of_two_softmaxes, mean_ratio_surprise
from ppo_lessons.diagnose.intake import Number, Run
from ppo_lessons.diagnose.report import Finding

USUAL_CLIP = 0.2  # where a run does not say its ε
STILL = 1e-5  # nats: below this KL a policy does not move; a slow healthy run has 1e-4
LONG = 25  # iterations: before, a critic may still be blind, and the first episodes are short ones
NOTHING = 1e-6  # of a policy loss with normalised advantages; a healthy one is 1e-4 and more


@dataclass(frozen=True)
class Numbers:
    """A run as the rules ask for it; a metric that is missing is an empty list."""

    run: Run

    def all_of(self, metric: str) -> list[float]:
        """The numbers of a metric, without those that are missing."""
        return [number for number in self.column(metric) if number is not None]

    def column(self, metric: str) -> Sequence[Number]:
        """One number per iteration, or None."""
        return self.run.table.get(metric, ())

    def share(self, metric: str, first: float, last: float) -> list[float]:
        """The numbers between two shares of the run, as 0.5 and 1.0 for the second half."""
        column = self.column(metric)
        low, high = round(first * len(column)), round(last * len(column))
        return [number for number in column[low:high] if number is not None]

    def working(self, metric: str) -> list[float]:
        """The first four fifths: after them a learning rate that falls to 0 stills everything."""
        return self.share(metric, 0.0, 0.8)

    def pairs(self, *metrics: str) -> list[tuple[float, ...]]:
        """Rows of the first four fifths in which none of these is missing."""
        columns = [self.column(metric) for metric in metrics]
        if not all(columns):
            return []
        rows = list(zip(*columns, strict=True))[: round(0.8 * len(columns[0]))]
        return [tuple(n for n in row if n is not None) for row in rows if None not in row]

    @cached_property
    def clip(self) -> float:
        """ε, or what is usual."""
        return self.run.clip_epsilon or USUAL_CLIP

    @cached_property
    def still(self) -> bool:
        """Whether the old and the new policy never part, as far as the KL says."""
        kl = self.share("kl_k3", 0.0, 0.3)
        return bool(kl) and max(map(abs, kl)) < STILL

    @cached_property
    def silent_loss(self) -> bool:
        """Whether the policy loss is 0, up to rounding."""
        losses = self.working("policy_loss")
        return bool(losses) and median(map(abs, losses)) < NOTHING

    @cached_property
    def entropy_moves(self) -> bool:
        """Whether the policy becomes surer, or less sure, by a twentieth of a nat."""
        entropy = self.working("entropy")
        return bool(entropy) and max(entropy) - min(entropy) > 0.05

    @cached_property
    def num_actions(self) -> int | None:
        """How many actions there are, if the first policy was nearly uniform; else None."""
        entropy = self.all_of("entropy")
        if not entropy or min(entropy) < 0:  # a density's entropy may be negative
            return None
        actions = round(exp(entropy[0]))
        near = actions >= 2 and 0.95 < entropy[0] / log(actions) < 1.001
        return actions if near else None

    @cached_property
    def critic_is_blind(self) -> bool:
        """Whether the critic explains nothing all along, and its error does not fall."""
        explained, losses = self.share("ev_lambda", 0.1, 1.0), self.all_of("value_loss")
        if len(self.run) < LONG or not explained or not losses:
            return False
        late = median(losses[len(losses) // 2 :])
        return sorted(explained)[int(0.9 * len(explained))] < 0.1 and late > 0.3 * losses[0]


Rule = Callable[[Numbers], Finding | None]


def not_finite(run: Numbers) -> Finding | None:
    """A number that is none."""
    for metric in run.run.table:
        column = run.column(metric)
        for place, number in enumerate(column):
            if number is not None and not isfinite(number):
                return Finding(
                    "not_finite",
                    metric,
                    f"{metric} is {number} from iteration {place + 1} on. A loss divided by 0, "
                    "took the logarithm of 0, or a step was so long that everything overflowed.",
                    "training_loop",
                )
    return None


def ratio_of_old_and_new(run: Numbers) -> Finding | None:
    """The policy loss is 0 all along: the ratio is 1 wherever it stands in the loss."""
    if not run.silent_loss:
        return None
    losses = run.working("policy_loss")
    moves = run.entropy_moves or not run.still
    if all(loss == 0 for loss in losses) and not moves:
        return Finding(
            "normalized_over_the_wrong_axis",
            "policy_loss",
            "policy_loss is exactly 0 in every iteration, and the policy does not move. So every "
            "advantage is 0 when it arrives in the loss: each sample is compared with itself.",
            "gae",
            ("normalized_over_the_wrong_axis",),
        )
    if moves:
        return Finding(
            "old_recomputed",
            "policy_loss",
            f"policy_loss stays at 0 (its median is {median(map(abs, losses)):.1g}) while the "
            "policy moves. With normalised advantages that happens where the ratio is 1 all along: "
            "the old log-probabilities are those of the new policy, and the clip never acts.",
            "importance",
            ("old_recomputed",),
        )
    return Finding(
        "old_on_the_graph",
        "policy_loss",
        f"policy_loss stays at 0 (its median is {median(map(abs, losses)):.1g}) and the policy "
        "does not move: no gradient reaches it. The old log-probabilities are the new ones, and "
        "hang on the graph.",
        "importance",
        ("old_on_the_graph", "normalized_over_the_wrong_axis"),
    )


def nothing_moves(run: Numbers) -> Finding | None:
    """There is a loss, and yet the policy stays where it is."""
    if not run.still or run.silent_loss:
        return None
    norms = run.working("gradient_norm")
    seen = f" The gradient is {median(norms):.2g} long before it is shortened." if norms else ""
    return Finding(
        "gradients_cut_to_nothing",
        "kl_k3",
        f"kl_k3 has the median {median(run.working('kl_k3')):.1g} nats: a whole iteration hardly "
        f"moves the policy.{seen} The steps are too short: gradients are shortened far too much, "
        "the learning rate is next to 0, or the optimiser holds other parameters.",
        "training_loop",
        ("gradients_cut_to_nothing",),
    )


def paid_beyond_the_clip(run: Numbers) -> Finding | None:
    """The objective pays more than a clip can.

    With advantages of mean 0 and deviation 1, min(ρÂ, clip(ρ)Â) is at most Â + ε·|Â|, and its mean
    at most ε.
    """
    losses = run.working("policy_loss")
    if not losses or min(losses) >= -1.05 * run.clip:
        return None
    outside = run.all_of("fraction_outside")
    if outside and max(outside) < 0.3:  # the clip acts; then advantages are not normalised
        return None
    return Finding(
        "clip_on_the_wrong_side",
        "policy_loss",
        f"policy_loss falls to {min(losses):.2g}. With a clip at ε = {run.clip:g} and normalised "
        f"advantages it cannot fall below −{run.clip:g}. The clip does not end the push: it is "
        "missing, or the maximum is taken instead of the minimum.",
        "clip",
        ("clip_on_the_wrong_side",),
    )


def steps_too_long(run: Numbers) -> Finding | None:
    """One iteration carries the policy far away. Healthy runs stay below 0.02 nats."""
    early = run.share("kl_k3", 0.0, 0.4)
    if not early or median(early) < 0.06:
        return None
    return Finding(
        "steps_too_long",
        "kl_k3",
        f"kl_k3 has the median {median(early):.2g} nats in the first two fifths of the run, and "
        "0.02 is already a lot. The steps are too long: lower the learning rate, or the number of "
        "epochs.",
        "training_loop",
        ("steps_too_long", "clip_on_the_wrong_side", "old_recomputed"),
    )


def mean_ratio(run: Numbers) -> Finding | None:
    """The mean ratio is not 1, or is far noisier than so many samples allow.

    The mean ratio less 1 is kl_k3 − kl_k1, and `mean_ratio_surprise` says how large it may be. Seen
    on right loops: 0.7 to 1.3.
    """
    steps = run.all_of("env_steps")
    exact = bool(run.column("max_ratio_deviation"))  # ours: means over all rows of an epoch
    rows = [(k1, k3) for k1, k3 in run.pairs("kl_k1", "kl_k3") if k3 > 1e-5]
    if len(rows) < 8 or median(k3 for _, k3 in rows) > 0.06 or len(steps) < 2:
        return None
    apart = median(abs(k3 - k1) for k1, k3 in rows)
    batch_size = (steps[-1] - steps[0]) / (len(steps) - 1)
    k1, k3 = torch.tensor(rows, dtype=torch.float64).unbind(dim=1)
    z = mean_ratio_surprise(k1, k3, batch_size=batch_size).item()
    if apart > 0.02 and (not exact or z > 6):
        return Finding(
            "observations_late",
            "kl_k1",
            f"kl_k1 and kl_k3 differ by {apart:.2g} as a rule. Their difference is the mean ratio "
            "less 1, which is 0 for actions that the old policy drew. The stored log-probabilities "
            "are not those of the stored observations and actions.",
            "rollout",
            ("observations_late",),
        )
    if exact and z > 1.9:
        return Finding(
            "rows_repeated",
            "kl_k1",
            f"The mean ratio, 1 + kl_k3 − kl_k1, is {z:.1f} times as far from 1 as "
            f"{batch_size:.0f} different samples allow: it is as noisy as that of "
            f"{batch_size / z**2:.0f}. The same rows are learned from again and again.",
            "training_loop",
            ("rows_repeated",),
        )
    return None


def pushed_the_wrong_way(run: Numbers) -> Finding | None:
    """Ratios leave the interval against their advantages.

    Most samples outside have been pushed there, so the clip has taken their gradient. Seen: 0.5 to
    0.7 of them; where the push has the wrong sign 0.2.
    """
    outside, silent = run.working("fraction_outside"), run.working("fraction_zero_gradient")
    if outside and silent and sum(outside) > 0.02 * len(outside) ** 0.5:
        share = sum(silent) / sum(outside)
        if share < 0.35:
            return Finding(
                "old_and_new_swapped",
                "fraction_zero_gradient",
                f"Of the samples whose ratio left the interval only {share:.0%} did so in the "
                "direction that their advantage asks for; more than half is usual. The push has "
                "the wrong sign: old and new are swapped in the ratio, or a minus is missing.",
                "importance",
                ("old_and_new_swapped",),
            )
    returns = run.all_of("episode_return")
    if len(returns) >= LONG and falls(returns):
        return Finding(
            "old_and_new_swapped",
            "episode_return",
            f"episode_return falls from {returns[0]:.4g} to {returns[-1]:.4g}, below all that was "
            "there at first, and stays there. The policy learns what is bad: a minus is missing, "
            "or old and new are swapped in the ratio.",
            "importance",
            ("old_and_new_swapped",),
        )
    return None


def falls(returns: Sequence[float]) -> bool:
    """Whether a return sinks and stays at the bottom, never having risen above its beginning.

    The mean of the last half must lie below the first tenth's lowest by a fifth of the first size,
    and no return may exceed the first tenth's highest by as much.
    """
    first = returns[: max(2, len(returns) // 10)]
    margin = 0.2 * abs(fmean(first))
    late = returns[len(returns) // 2 :]
    return max(late) < min(first) - margin and max(returns) < max(first) + margin


def target_is_a_guess(run: Numbers) -> Finding | None:
    """The value loss stays at ½: half the square of a normalised advantage.

    A normalised advantage has the mean square 1, so the first epoch starts at exactly ½; whatever
    the returns do, it comes back there.
    """
    losses = run.all_of("value_loss")
    if not losses or not all(0.3 < loss < 0.6 for loss in losses):
        return None
    return Finding(
        "normalized_too_early",
        "value_loss",
        f"value_loss stays between {min(losses):.2f} and {max(losses):.2f} from first to last. It "
        "is ½ where the critic's target is its own guess plus a normalised "
        "advantage: advantages are normalised before the returns are made of them.",
        "gae",
        ("normalized_too_early",),
    )


def blind_critic(run: Numbers) -> Finding | None:
    """The critic explains nothing, and its error does not fall."""
    if not run.critic_is_blind or run.still:
        return None
    explained = median(run.share("ev_lambda", 0.1, 1.0))
    rows = run.pairs("gradient_norm", "value_loss")
    # the gradient of half a square is as long as the error, times the critic's slope
    slopes = [norm / sqrt(loss) for norm, loss in rows if loss > 0]
    untrained = bool(slopes) and median(slopes) < 0.05
    told = f"ev_lambda has the median {explained:.2g} and value_loss does not fall"
    if untrained:
        return Finding(
            "critic_not_trained",
            "value_loss",
            f"{told}: it goes from {run.all_of('value_loss')[0]:.3g} to "
            f"{run.all_of('value_loss')[-1]:.3g}. And gradient_norm, with a median of "
            f"{median(run.working('gradient_norm')):.2g}, holds no gradient of such an error. The "
            "critic is not trained: its loss is not in the sum, or its parameters not in the "
            "optimiser.",
            "critic",
            ("critic_not_trained", "values_broadcast"),
        )
    return Finding(
        "values_broadcast",
        "ev_lambda",
        f"{told}: the critic says about the same everywhere. Values [N, 1] against returns [N] "
        "give N × N errors, whose best answer is one number; print both shapes. Or the critic is "
        "not trained at all.",
        "critic",
        ("values_broadcast", "critic_not_trained"),
    )


def no_end_ends_anything(run: Numbers) -> Finding | None:
    """The critic fits its targets and knows nothing of what came, though episodes end.

    Seen with the bug: |ev_monte_carlo| below 0.001, value_loss a thousandth of its first. A critic
    that is right where all episodes run into a limit has no ev_monte_carlo.
    """
    honest, losses = run.share("ev_monte_carlo", 0.5, 1.0), run.all_of("value_loss")
    late = run.share("value_loss", 0.5, 1.0)
    known = len(honest) > 0.6 * len(run.share("value_loss", 0.5, 1.0))
    if not known or not late or max(losses[:5]) <= 0:
        return None
    fits = median(late) < 0.01 * max(losses[:5])
    if not fits or median(map(abs, honest)) > 0.02:
        return None
    return Finding(
        "termination_ignored",
        "ev_monte_carlo",
        f"value_loss has fallen to {median(late):.1g}, so the critic fits its targets; and "
        f"ev_monte_carlo is {median(honest):.1g}, so it knows nothing of the episodes that ended. "
        "The targets go on where the task is over: `terminated` does not cut the bootstrap.",
        "gae",
        ("termination_ignored",),
    )


def limits_surprise_the_critic(run: Numbers) -> Finding | None:
    """All episodes run into the time limit, and the critic errs as much as when they did not."""
    late_loss, early_loss = run.share("value_loss", 0.75, 1.0), run.share("value_loss", 0.0, 0.25)
    if not late_loss or not early_loss or not runs_into_the_limit(run):
        return None
    explained = run.share("ev_lambda", 0.75, 1.0)
    ratio = median(late_loss) / median(early_loss)
    if ratio < 0.3 or not explained or median(explained) > 0.6:
        return None
    return Finding(
        "flags_merged",
        "value_loss",
        f"Episodes no longer end by themselves, yet value_loss is {ratio:.0%} of what it was at "
        "first, and "
        f"ev_lambda {median(explained):.2g}: something that no observation tells surprises the "
        "critic. A time limit is taken for the end of the task.",
        "rollout",
        ("flags_merged", "truncation_dropped"),
    )


def runs_into_the_limit(run: Numbers) -> bool:
    """Whether episodes end by a time limit in the last quarter, as far as the metrics say."""
    if not run.column("ev_lambda") or not run.column("ev_monte_carlo"):
        lengths = run.share("episode_length", 0.75, 1.0)
        return bool(lengths) and max(lengths) - min(lengths) < 0.01 * max(lengths)
    column = run.column("ev_monte_carlo")
    late = column[round(0.75 * len(column)) :]
    ended = [number for number in run.share("num_episodes", 0.75, 1.0) if number > 0]
    return bool(ended) and sum(number is None for number in late) > 0.5 * len(late)


def softmax_twice(run: Numbers) -> Finding | None:
    """The entropy lies on the floor that a softmax of probabilities has."""
    actions = run.num_actions
    if actions is None or len(run.run) < LONG:
        return None
    floor = lowest_entropy_of_two_softmaxes(actions)
    entropy, late = run.all_of("entropy"), run.share("entropy", 0.5, 1.0)
    height = log(actions) - floor
    lies = floor <= min(entropy) and median(late) < floor + 0.3 * height
    if not lies or max(late) - min(late) > 0.15 * height:
        return None
    return Finding(
        "probabilities_as_logits",
        "entropy",
        f"entropy falls to {min(entropy):.3f} nats and stays there. With {actions} actions "
        f"{floor:.3f} is the lowest that a softmax of probabilities can have: the network's output "
        "goes through two softmaxes.",
        "reinforce",
        ("probabilities_as_logits",),
    )


def nothing_to_learn_from(run: Numbers) -> Finding | None:
    """All episodes earn the same."""
    returns = run.all_of("episode_return")
    if not returns or max(returns) - min(returns) > 1e-3 * abs(fmean(returns)):
        return None
    return Finding(
        "all_returns_alike",
        "episode_return",
        f"episode_return is {returns[0]:.4g} all along. If no episode earns more than another, no "
        "action looks better than another, and PPO has nothing to learn from. That is no bug: the "
        "reward is not found. Look at exploration, or at the reward.",
        "training_loop",
        alarm=False,
    )


# In this order; the first of a group is the cause of what others would see.
CAUSES: tuple[tuple[Rule, ...], ...] = (
    (not_finite,),
    (paid_beyond_the_clip, ratio_of_old_and_new, nothing_moves, mean_ratio, steps_too_long),
    (pushed_the_wrong_way,),
    (target_is_a_guess, blind_critic, no_end_ends_anything, limits_surprise_the_critic),
    (softmax_twice,),
    (nothing_to_learn_from,),
)


def findings(run: Run) -> Iterator[Finding]:
    """Ask the rules: of each group at most one speaks."""
    numbers = Numbers(run)
    for group in CAUSES:
        for rule in group:
            found = rule(numbers)
            if found is not None:
                yield found
                break
