"""Answers to the exercises of lesson 10."""

import math
from itertools import pairwise

import torch

from answers import new_catalogue
from ppo_lessons import gpu_run

EXERCISES = (
    "autoreset",
    "flops_per_env_step",
    "combine_moments",
    "averaged_gradient",
    "mended_scan",
    "ledger_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
RIGHT["combine_moments"]["package"] = gpu_run.combine_moments


# --- a step that starts anew ---------------------------------------------------------------


@passes("autoreset")
def chosen_with_where(reached, fresh, terminated, elapsed, *, time_limit):
    elapsed = elapsed + 1
    truncated = elapsed >= time_limit
    ended = terminated | truncated
    observations = torch.where(ended[:, None], fresh, reached)
    return observations, reached, truncated, elapsed.masked_fill(ended, 0)


@passes("autoreset")
def copy_by_copy(reached, fresh, terminated, elapsed, *, time_limit):
    observations, truncated, clocks = reached.clone(), [], []
    for n in range(len(reached)):
        clock = int(elapsed[n]) + 1
        truncated.append(clock >= time_limit)
        if terminated[n] or truncated[-1]:
            observations[n] = fresh[n]
            clock = 0
        clocks.append(clock)
    return observations, reached, torch.tensor(truncated), torch.tensor(clocks)


@passes("autoreset")
def by_masks_and_products(reached, fresh, terminated, elapsed, time_limit, **ignored):
    clock = elapsed + 1
    truncated = clock == time_limit
    running = 1 - torch.logical_or(terminated, truncated).to(reached)
    rows = running.unsqueeze(-1)
    return [rows * reached + (1 - rows) * fresh, reached.clone(), truncated, clock * running.long()]


@passes("autoreset")
def by_indices(reached, fresh, terminated, elapsed, *, time_limit):
    clock, observations = elapsed.add(1), reached.clone()
    truncated = clock > time_limit - 1
    ended = torch.nonzero(terminated + truncated).flatten()
    observations[ended] = fresh[ended]
    clock[ended] = 0
    return observations, reached, truncated.int(), clock.float()


def anew(
    clock=lambda elapsed: elapsed + 1,
    *,
    over=lambda clock, limit: clock >= limit,
    flag=lambda over, terminated: over,
    starts=lambda terminated, over: terminated | over,
    shown=lambda observations, reached, ended: (observations, reached),
    set_back=lambda clock, terminated, over: clock.masked_fill(terminated | over, 0),
):
    """Right but for one thing."""

    def function(reached, fresh, terminated, elapsed, *, time_limit):
        now = clock(elapsed)
        limit = over(now, time_limit)
        observations = torch.where(starts(terminated, limit)[:, None], fresh, reached)
        tables = shown(observations, reached, terminated | limit)
        return *tables, flag(limit, terminated), set_back(now, terminated, limit)

    return function


WRONG["autoreset"] |= {
    "final_observation_lost": anew(shown=lambda observations, reached, ended: (observations,) * 2),
    "new_episode_not_seen": anew(shown=lambda observations, reached, ended: (reached,) * 2),
    "results_exchanged": anew(shown=lambda observations, reached, ended: (reached, observations)),
    "clock_not_counted": anew(
        over=lambda clock, limit: clock + 1 >= limit, clock=lambda elapsed: elapsed
    ),
    "clock_not_reset": anew(set_back=lambda clock, terminated, over: clock),
    "clock_reset_at_limits_only": anew(
        set_back=lambda clock, terminated, over: clock.masked_fill(over, 0)
    ),
    "clock_reset_at_terminations_only": anew(
        set_back=lambda clock, terminated, over: clock.masked_fill(terminated, 0)
    ),
    "clock_starts_at_one": anew(
        set_back=lambda clock, terminated, over: clock.masked_fill(terminated | over, 1)
    ),
    "limit_one_step_late": anew(over=lambda clock, limit: clock > limit),
    "limit_one_step_early": anew(over=lambda clock, limit: clock >= limit - 1),
    "never_truncated": anew(flag=lambda over, terminated: torch.zeros_like(over)),
    "ended_for_truncated": anew(flag=lambda over, terminated: over | terminated),
    "truncated_unless_terminated": anew(flag=lambda over, terminated: over & ~terminated),
    "all_start_anew_together": anew(
        starts=lambda terminated, over: (terminated | over).any().expand_as(over)
    ),
    "only_the_terminated_start_anew": anew(starts=lambda terminated, over: terminated),
    "only_the_truncated_start_anew": anew(starts=lambda terminated, over: over),
    "turned": anew(starts=lambda terminated, over: ~(terminated | over)),
    "reached_kept_at_ends_only": anew(
        shown=lambda observations, reached, ended: (observations, reached * ended[:, None])
    ),
}

# --- arithmetic of a step ------------------------------------------------------------------


@passes("flops_per_env_step")
def layer_by_layer(policy_sizes, critic_sizes, *, num_epochs):
    def forwards(sizes):
        return sum(2 * m * n for m, n in pairwise(sizes))

    def backwards(sizes):
        return 2 * forwards(sizes) - 2 * sizes[0] * sizes[1]

    squeeze = sum(forwards(sizes) + backwards(sizes) for sizes in (policy_sizes, critic_sizes))
    return forwards(policy_sizes) + 2 * forwards(critic_sizes) + num_epochs * squeeze


@passes("flops_per_env_step")
def counted_in_loops(policy_sizes, critic_sizes, num_epochs):
    total = 0
    for sizes, asked in ((policy_sizes, 1), (critic_sizes, 2)):
        for layer in range(1, len(sizes)):
            product = 2 * sizes[layer - 1] * sizes[layer]
            total += asked * product
            total += num_epochs * product * (2 if layer == 1 else 3)
    return total


@passes("flops_per_env_step")
def as_a_tensor(policy_sizes, critic_sizes, *, num_epochs, multiply_add=2):
    policy, critic = (
        torch.tensor([m * n for m, n in pairwise(sizes)], dtype=torch.float64)
        for sizes in (policy_sizes, critic_sizes)
    )
    asked = policy.sum() + 2 * critic.sum()
    learned = 3 * (policy.sum() + critic.sum()) - policy[0] - critic[0]
    return multiply_add * (asked + num_epochs * learned)


def counted(
    products=lambda sizes: [2.0 * m * n for m, n in pairwise(sizes)],
    *,
    backwards=lambda layers: 2 * sum(layers) - layers[0],
    collect=lambda policy: sum(policy),
    score=lambda policy, critic: 2 * sum(critic),
    learners=lambda policy, critic: (policy, critic),
    times=lambda once, squeeze, num_epochs: once + num_epochs * squeeze,
):
    """Right but for one thing."""

    def function(policy_sizes, critic_sizes, *, num_epochs):
        policy, critic = products(policy_sizes), products(critic_sizes)
        squeeze = sum(sum(each) + backwards(each) for each in learners(policy, critic))
        return times(collect(policy) + score(policy, critic), squeeze, num_epochs)

    return function


WRONG["flops_per_env_step"] |= {
    "multiply_add_counted_once": counted(lambda sizes: [1.0 * m * n for m, n in pairwise(sizes)]),
    "backward_forgotten": counted(backwards=lambda layers: 0),
    "backward_as_dear_as_forward": counted(backwards=sum),
    "first_layer_in_full": counted(backwards=lambda layers: 2 * sum(layers)),
    "epochs_forgotten": counted(times=lambda once, squeeze, num_epochs: once + squeeze),
    "epochs_on_everything": counted(
        times=lambda once, squeeze, num_epochs: num_epochs * (once + squeeze)
    ),
    "critic_asked_once": counted(score=lambda policy, critic: sum(critic)),
    "critic_never_squeezed": counted(learners=lambda policy, critic: (policy,)),
    "policy_never_squeezed": counted(learners=lambda policy, critic: (critic,)),
    "collect_forgotten": counted(collect=lambda policy: 0),
    "score_forgotten": counted(score=lambda policy, critic: 0),
    "last_layer_forgotten": counted(
        lambda sizes: [2.0 * m * n for m, n in pairwise(sizes[:-1])] or [0.0]
    ),
    "widths_added": counted(lambda sizes: [2.0 * (m + n) for m, n in pairwise(sizes)]),
    "policy_asked_with_the_critic": counted(
        score=lambda policy, critic: 2 * sum(critic) + 2 * sum(policy)
    ),
}

# --- statistics of several ranks -----------------------------------------------------------


@passes("combine_moments")
def around_the_mean_of_all(moments):
    counts, means, spreads = moments.unbind(-1)
    count = counts.sum()
    mean = (counts * means).sum() / count
    return torch.stack([count, mean, (spreads + counts * (means - mean) ** 2).sum()])


@passes("combine_moments")
def one_rank_after_the_other(moments):
    count, mean, spread = moments[0]
    for other_count, other_mean, other_spread in moments[1:]:
        total = count + other_count
        distance = other_mean - mean
        spread = spread + other_spread + distance**2 * count * other_count / total
        mean = mean + distance * other_count / total
        count = total
    return torch.stack([count, mean, spread])


@passes("combine_moments")
def by_sums_of_squares(moments):
    counts, means, spreads = moments[:, 0], moments[:, 1], moments[:, 2]
    shift = means[-1]  # near the numbers, so that little cancels
    total, sums = counts.sum(), (counts * (means - shift)).sum()
    squares = (spreads + counts * (means - shift) ** 2).sum()
    return torch.tensor([total, shift + sums / total, squares - sums * sums / total])


@passes("combine_moments")
def in_plain_numbers(moments):
    rows = moments.tolist()
    count = sum(row[0] for row in rows)
    mean = sum(row[0] * row[1] for row in rows) / count
    between = sum(row[0] * (row[1] - mean) ** 2 for row in rows)
    return torch.tensor([count, mean, sum(row[2] for row in rows) + between])


def combined(
    *,
    mean_of=lambda counts, means: (counts * means).sum() / counts.sum(),
    spread=lambda counts, means, within, mean: (within + counts * (means - mean) ** 2).sum(),
    after=lambda count, mean, m2, moments: (count, mean, m2),
):
    """Right but for one thing."""

    def function(moments):
        counts, means, within = moments.unbind(-1)
        mean = mean_of(counts, means)
        m2 = spread(counts, means, within, mean)
        return torch.stack(after(counts.sum(), mean, m2, moments))

    return function


def _largest(count, mean, m2, moments):
    return tuple(moments[moments[:, 0].argmax()])


WRONG["combine_moments"] |= {
    "means_averaged": combined(mean_of=lambda counts, means: means.mean()),
    "spread_between_forgotten": combined(spread=lambda counts, means, within, mean: within.sum()),
    "spread_between_not_weighted": combined(
        spread=lambda counts, means, within, mean: (within + (means - mean) ** 2).sum()
    ),
    "spread_around_zero": combined(
        spread=lambda counts, means, within, mean: (within + counts * means**2).sum()
    ),
    "spread_subtracted": combined(
        spread=lambda counts, means, within, mean: (within - counts * (means - mean) ** 2).sum()
    ),
    "counts_averaged": combined(
        after=lambda count, mean, m2, moments: (count / len(moments), mean, m2)
    ),
    "count_of_ranks": combined(
        after=lambda count, mean, m2, moments: (torch.ones_like(count) * len(moments), mean, m2)
    ),
    "spread_averaged": combined(
        after=lambda count, mean, m2, moments: (count, mean, m2 / len(moments))
    ),
    "variance_for_the_sum": combined(
        after=lambda count, mean, m2, moments: (count, mean, m2 / count)
    ),
    "sum_for_the_mean": combined(after=lambda count, mean, m2, moments: (count, mean * count, m2)),
    "largest_rank_only": combined(after=_largest),
    "distance_not_squared": combined(
        spread=lambda counts, means, within, mean: (within + counts * (means - mean).abs()).sum()
    ),
}

# --- one gradient for all ------------------------------------------------------------------


@passes("averaged_gradient")
def mean_then_clip(gradients, *, max_grad_norm):
    mean = gradients.mean(0)
    return mean * (max_grad_norm / mean.norm()).clamp(max=1.0)


@passes("averaged_gradient")
def with_the_librarys_clip(gradients, *, max_grad_norm):
    weight = torch.nn.Parameter(torch.zeros_like(gradients[0]))
    weight.grad = gradients.sum(dim=0) / gradients.shape[0]
    torch.nn.utils.clip_grad_norm_([weight], max_grad_norm)
    return weight.grad


@passes("averaged_gradient")
def number_by_number(gradients, max_grad_norm):
    ranks = gradients.tolist()
    mean = [sum(numbers) / len(ranks) for numbers in zip(*ranks, strict=True)]
    length = math.hypot(*mean)
    if length > max_grad_norm:
        mean = [number * max_grad_norm / length for number in mean]
    return torch.tensor(mean)


@passes("averaged_gradient")
def added_one_by_one(gradients, *, max_grad_norm, group=None):
    flat = torch.zeros_like(gradients[0])
    for one in gradients:
        flat = flat + one / len(gradients)
    length = (flat * flat).sum().sqrt()
    return flat if length <= max_grad_norm else flat / length * max_grad_norm


def shortened(gradient, limit, length=lambda gradient: gradient.norm()):
    return gradient * (limit / length(gradient)).clamp(max=1.0)


@breaks("averaged_gradient")
def summed(gradients, *, max_grad_norm):
    return shortened(gradients.sum(0), max_grad_norm)


@breaks("averaged_gradient")
def clipped_before_averaging(gradients, *, max_grad_norm):
    return torch.stack([shortened(each, max_grad_norm) for each in gradients]).mean(0)


@breaks("averaged_gradient")
def never_clipped(gradients, *, max_grad_norm):
    return gradients.mean(0)


@breaks("averaged_gradient")
def each_number_clipped(gradients, *, max_grad_norm):
    return gradients.mean(0).clamp(-max_grad_norm, max_grad_norm)


@breaks("averaged_gradient")
def own_gradient_only(gradients, *, max_grad_norm):
    return shortened(gradients[0], max_grad_norm)


@breaks("averaged_gradient")
def always_at_the_limit(gradients, *, max_grad_norm):
    mean = gradients.mean(0)
    return mean / mean.norm() * max_grad_norm


@breaks("averaged_gradient")
def divided_twice(gradients, *, max_grad_norm):
    return shortened(gradients.mean(0) / len(gradients), max_grad_norm)


@breaks("averaged_gradient")
def limit_times_ranks(gradients, *, max_grad_norm):
    return shortened(gradients.mean(0), max_grad_norm * len(gradients))


@breaks("averaged_gradient")
def length_of_the_largest_number(gradients, *, max_grad_norm):
    return shortened(gradients.mean(0), max_grad_norm, lambda gradient: gradient.abs().max())


@breaks("averaged_gradient")
def averaged_over_numbers(gradients, *, max_grad_norm):
    return shortened(gradients.mean(1), max_grad_norm)


@breaks("averaged_gradient")
def length_of_all_ranks(gradients, *, max_grad_norm):
    return shortened(gradients.mean(0), max_grad_norm, lambda gradient: gradients.norm())


@breaks("averaged_gradient")
def squared_length(gradients, *, max_grad_norm):
    return shortened(gradients.mean(0), max_grad_norm, lambda gradient: (gradient**2).sum())


# --- a recurrence in a few passes ----------------------------------------------------------


@passes("mended_scan")
def from_the_end(td_errors, decays):
    table, following = torch.zeros_like(td_errors), torch.zeros_like(td_errors[0])
    for t in reversed(range(len(td_errors))):
        following = td_errors[t] + decays[t] * following
        table[t] = following
    return table


def behind(table, distance):
    """What lies so many rows further on; nothing behind the last."""
    return torch.cat([table[distance:], torch.zeros_like(table[:distance])])


@passes("mended_scan")
def by_doubling(td_errors, decays):
    sums, weights, distance = td_errors, decays, 1
    while distance < len(td_errors):
        sums, weights = (
            sums + weights * behind(sums, distance),
            weights * behind(weights, distance),
        )
        distance *= 2
    return sums


@passes("mended_scan")
def by_a_matrix(td_errors, decays):
    steps = len(td_errors)
    columns = []
    for n in range(td_errors.shape[1]):
        step = torch.diag(decays[:-1, n], 1)
        columns.append(
            torch.linalg.solve(torch.eye(steps, dtype=td_errors.dtype) - step, td_errors[:, n])
        )
    return torch.stack(columns, dim=1)


@passes("mended_scan")
def halves_joined(td_errors, decays):
    def joined(first, last):
        if last - first == 1:
            return td_errors[first:last], decays[first:last]
        middle = (first + last) // 2
        (sums, weights), (later, later_weights) = joined(first, middle), joined(middle, last)
        return (
            torch.cat([sums + weights * later[:1], later]),
            torch.cat([weights * later_weights[:1], later_weights]),
        )

    return joined(0, len(td_errors))[0]


@passes("mended_scan")
def summed_up_term_by_term(td_errors, decays):
    table = torch.zeros_like(td_errors)
    for t in range(len(td_errors)):
        weight = torch.ones_like(td_errors[0])
        for k in range(t, len(td_errors)):
            table[t] += weight * td_errors[k]
            weight = weight * decays[k]
    return table


def doubled(
    *,
    prepare=lambda td_errors, decays: (td_errors, decays),
    later=behind,
    sums_of=lambda sums, weights, later_sums, later_weights: sums + weights * later_sums,
    weights_of=lambda weights, later_weights: weights * later_weights,
    first=1,
    further=lambda distance: distance * 2,
    goes_on=lambda distance, steps: distance < steps,
):
    """Right but for one thing."""

    def function(td_errors, decays):
        sums, weights = prepare(td_errors, decays)
        distance = first
        while goes_on(distance, len(sums)):
            later_sums, later_weights = later(sums, distance), later(weights, distance)
            sums = sums_of(sums, weights, later_sums, later_weights)
            weights = weights_of(weights, later_weights)
            distance = further(distance)
        return sums

    return function


def _without_ends(td_errors, decays):
    return td_errors, torch.where(decays == 0, decays.max(), decays)


def _forwards(td_errors, decays):
    return doubled()(td_errors.flip(0), decays.flip(0)).flip(0)


def _squared(weights, later_weights):
    return weights * weights


WRONG["mended_scan"] |= {
    "weights_squared": doubled(weights_of=_squared),
    "weights_kept": doubled(weights_of=lambda weights, later_weights: weights),
    "weights_moved_first": doubled(
        sums_of=lambda sums, weights, later_sums, later_weights: (
            sums + weights * later_weights * later_sums
        )
    ),
    "distance_grows_by_one": doubled(further=lambda distance: distance + 1),
    "one_pass_only": doubled(goes_on=lambda distance, steps: distance == 1 and steps > 1),
    "one_pass_too_few": doubled(goes_on=lambda distance, steps: 2 * distance < steps),
    "wraps_around": doubled(later=lambda table, distance: table.roll(-distance, 0)),
    "runs_forwards": _forwards,
    "decay_of_the_next_row": doubled(
        prepare=lambda td_errors, decays: (td_errors, behind(decays, 1))
    ),
    "decays_left_out": doubled(
        prepare=lambda td_errors, decays: (td_errors, torch.ones_like(decays))
    ),
    "nothing_added": lambda td_errors, decays: td_errors.clone(),
    "ends_ignored": doubled(prepare=_without_ends),
    "decays_squared": doubled(prepare=lambda td_errors, decays: (td_errors, decays**2)),
    "first_distance_two": doubled(first=2),
}

# --- numbers by hand -----------------------------------------------------------------------

T, N, CELLS = 64, 256, 400
BOARDS = 2 * T * N * CELLS / 1e6  # MB with one byte for each cell
PER_SECOND, PER_STEP = 48e9, 240e3  # operations
STEPS, LAUNCHES = 32 * 4096, 4096
ENVIRONMENT, LEARNING = 1.0, 9.0  # µs a step
ITERATION, REDUCTIONS, REDUCTION = 20.0, 16, 0.25  # ms

SOLVED = {
    "a": BOARDS,
    "b": 4 * BOARDS,
    "c": PER_SECOND / PER_STEP / 1e3,
    "d": STEPS / (LAUNCHES * 5.0),
    "e": STEPS / (LAUNCHES * 1.25),
    "f": 1e3 / (ENVIRONMENT + LEARNING),
    "g": (ENVIRONMENT + LEARNING) / LEARNING,
    "h": 2 * ITERATION / (ITERATION + REDUCTIONS * REDUCTION),
}
RIGHT["ledger_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {letter: round(number, 3) for letter, number in SOLVED.items()},
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["ledger_by_hand"] = {
    "reached_boards_forgotten": SOLVED | {"a": BOARDS / 2, "b": 2 * BOARDS},
    "channels_forgotten": SOLVED | {"a": BOARDS / 4, "b": BOARDS},
    "powers_of_two": SOLVED | {"a": BOARDS * 1e6 / 2**20, "b": 4 * BOARDS * 1e6 / 2**20},
    "bits_for_bytes": SOLVED | {"a": BOARDS / 8},
    "doubles": SOLVED | {"b": 8 * BOARDS},
    "arithmetic_per_iteration": SOLVED | {"c": PER_SECOND / PER_STEP / 1e3 * 4096},
    "multiply_adds": SOLVED | {"c": 2 * PER_SECOND / PER_STEP / 1e3},
    "launch_per_step": SOLVED | {"d": 1 / 5.0, "e": 1 / 1.25},
    "steps_of_one_copy": SOLVED | {"d": 32 / (LAUNCHES * 5.0), "e": 32 / (LAUNCHES * 1.25)},
    "graph_without_nodes": SOLVED | {"e": STEPS / 1.25},
    "difference_of_launches": SOLVED | {"e": STEPS / (LAUNCHES * 3.75)},
    "environment_alone": SOLVED | {"f": 1e3 / ENVIRONMENT},
    "slower_of_the_two": SOLVED | {"f": 1e3 / LEARNING},
    "speeds_averaged": SOLVED | {"f": (1e3 / ENVIRONMENT + 1e3 / LEARNING) / 2},
    "ratio_of_the_parts": SOLVED | {"g": LEARNING / ENVIRONMENT},
    "share_added": SOLVED | {"g": 1 + ENVIRONMENT / (ENVIRONMENT + LEARNING)},
    "reduction_free": SOLVED | {"h": 2.0},
    "one_reduction": SOLVED | {"h": 2 * ITERATION / (ITERATION + REDUCTION)},
    "work_split": SOLVED | {"h": ITERATION / (ITERATION / 2 + REDUCTIONS * REDUCTION)},
    "per_gpu": SOLVED | {"h": ITERATION / (ITERATION + REDUCTIONS * REDUCTION)},
}


# --- slow definitions ----------------------------------------------------------------------


def slow_autoreset(reached, fresh, terminated, elapsed, *, time_limit):
    observations, truncated, clocks = [], [], []
    for row, start, over, clock in zip(reached, fresh, terminated, elapsed, strict=True):
        late = clock + 1 == time_limit
        anew = over or late
        observations.append(start if anew else row)
        truncated.append(1 if late else 0)
        clocks.append(0 if anew else clock + 1)
    return observations, reached, truncated, clocks


def slow_flops(policy_sizes, critic_sizes, *, num_epochs):
    """Count multiplications and additions one by one, for each pair of numbers."""
    total = 0
    for sizes, asked in ((policy_sizes, 1), (critic_sizes, 2)):
        for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
            for _ in range(inputs):
                total += asked * 2 * outputs  # forwards, outside the squeeze
                total += num_epochs * 2 * outputs  # forwards
                total += num_epochs * 2 * outputs  # slope of the weights
                total += num_epochs * 2 * outputs if layer else 0  # slope of the inputs
    return total


def slow_moments(moments):
    """Make samples with these statistics: two of each rank at the same distance from its mean."""
    count, total = 0.0, 0.0
    for number, mean, _ in moments:
        count += number
        total += number * mean
    mean = total / count
    spread = 0.0
    for number, own, within in moments:
        for side in (-1, 1):
            distance = math.sqrt(within / number) if number else 0.0
            spread += number / 2 * (own + side * distance - mean) ** 2
    return [count, mean, spread]


def slow_gradient(gradients, *, max_grad_norm):
    mean = [math.fsum(column) / len(column) for column in zip(*gradients, strict=True)]
    length = math.sqrt(math.fsum(number * number for number in mean))
    return [number * min(1.0, max_grad_norm / length) for number in mean]


def slow_scan(td_errors, decays):
    steps, envs = len(td_errors), len(td_errors[0])
    table = [[0.0] * envs for _ in range(steps)]
    for t in range(steps):
        for n in range(envs):
            for k in range(t, steps):
                weight = math.prod(decays[j][n] for j in range(t, k))
                table[t][n] += weight * td_errors[k][n]
    return table


ORACLES = {
    "autoreset": slow_autoreset,
    "flops_per_env_step": slow_flops,
    "combine_moments": slow_moments,
    "averaged_gradient": slow_gradient,
    "mended_scan": slow_scan,
}
