"""Answers to the exercises of lesson 07."""

import torch
from mistakes import mistakes_of

from answers import gae as gae_answers
from answers import new_catalogue
from answers.gae import everywhere, late, never
from ppo_lessons import gae

EXERCISES = (
    "next_values",
    "bootstrapped_returns",
    "valid_rows",
    "ends_by_hand",
    "mended_ends",
    "episode_returns",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

for mistake in mistakes_of("gae"):
    if mistake.breaks == "bootstrapped_returns" and mistake.name != "returns_changed_in_place":
        WRONG[mistake.breaks][mistake.name] = mistake.function


# --- V of what a step reached --------------------------------------------------------------


@passes("next_values")
def shifted_and_filled(values, final_values, terminated, truncated):
    found = values.roll(-1, dims=0)
    elsewhere = terminated | truncated
    elsewhere[-1] = True
    found[elsewhere] = final_values[elsewhere]
    return found


@passes("next_values")
def chosen_row_by_row(values, final_values, terminated, truncated):
    rows = [
        torch.where(terminated[t] | truncated[t], final_values[t], values[t + 1])
        for t in range(len(values) - 1)
    ]
    return torch.stack([*rows, final_values[-1]])


@passes("next_values")
def number_by_number(values, final_values, terminated, truncated):
    found = torch.zeros(values.shape)
    T, N = values.shape
    for n in range(N):
        for t in range(T):
            over = bool(terminated[t, n]) or bool(truncated[t, n]) or t == T - 1
            found[t, n] = final_values[t, n] if over else values[t + 1, n]
    return found


@passes("next_values")
def final_ones_added(values, final_values, terminated, truncated, mask=None):
    kept = ~(terminated | truncated)[:-1]
    return final_values + torch.cat([values[1:] * kept, torch.zeros_like(values[:1])])


@passes("next_values")
def with_where(values, final_values, terminated, truncated):
    ended = terminated.logical_or(truncated)
    following = torch.cat((values[1:], final_values[-1:]), dim=0)
    return torch.where(ended, final_values, following).float()


def next_row(values, final_values):
    return torch.cat([values[1:], final_values[-1:]])


def at_ends(choice, flags=lambda terminated, truncated: terminated | truncated):
    """The next row, but for rows with a flag, where something else is chosen."""

    def function(values, final_values, terminated, truncated):
        following = next_row(values, final_values)
        return torch.where(
            flags(terminated, truncated), choice(values, final_values, following), following
        )

    return function


def behind_the_last(last):
    """Right but for the last row, where there is no flag."""

    def function(values, final_values, terminated, truncated):
        found = shifted_and_filled(values, final_values, terminated, truncated)
        ended = (terminated | truncated)[-1:]
        chosen = torch.where(ended, final_values[-1:], last(values))
        return torch.cat([found[:-1], chosen])

    return function


def _final_one_row_late(values, final_values, terminated, truncated):
    following = next_row(values, final_values)
    behind = late(terminated | truncated)
    return torch.where(behind, final_values.roll(1, 0), following)


def _zero_last(values, final_values, terminated, truncated):
    found = shifted_and_filled(values, final_values, terminated, truncated)
    return torch.cat([found[:-1], torch.zeros_like(found[-1:])])


def first(values, final_values, following):
    return final_values


def nothing(values, final_values, following):
    return torch.zeros_like(values)


WRONG["next_values"] |= {
    "next_row_everywhere": at_ends(first, lambda terminated, truncated: never(terminated)),
    "terminated_only": at_ends(first, lambda terminated, truncated: terminated),
    "truncated_only": at_ends(first, lambda terminated, truncated: truncated),
    "nothing_behind_the_last_row": behind_the_last(lambda values: torch.zeros_like(values[-1:])),
    "nothing_behind_the_last_row#flag_or_not": _zero_last,
    "last_row_repeated": behind_the_last(lambda values: values[-1:]),
    "last_row_wraps_around": behind_the_last(lambda values: values[:1]),
    "final_values_everywhere": lambda values, final_values, terminated, truncated: (
        final_values.clone()
    ),
    "terminated_counts_zero": lambda values, final_values, terminated, truncated: (
        shifted_and_filled(values, final_values, terminated, truncated) * ~terminated
    ),
    "ended_counts_zero": at_ends(nothing),
    "own_value_at_an_end": at_ends(lambda values, final_values, following: values),
    "final_value_one_row_late": _final_one_row_late,
    "values_of_the_row": lambda values, final_values, terminated, truncated: values.clone(),
    "row_before": lambda values, final_values, terminated, truncated: values.roll(1, 0),
    "environments_end_together": at_ends(
        first, lambda terminated, truncated: everywhere(terminated | truncated)
    ),
    "added_up": at_ends(lambda values, final_values, following: final_values + following),
}

# --- returns with a guess for the rest -----------------------------------------------------

RIGHT["bootstrapped_returns"]["package"] = gae.bootstrapped_returns


@passes("bootstrapped_returns")
def backwards(rewards, terminated, truncated, next_values, *, gamma):
    returns, following = torch.zeros_like(rewards), next_values[-1]
    for t in reversed(range(len(rewards))):
        ahead = torch.where(truncated[t], next_values[t], following)
        following = rewards[t] + gamma * ahead.masked_fill(terminated[t], 0)
        returns[t] = following
    return returns


@passes("bootstrapped_returns")
def advantages_plus_values(rewards, terminated, truncated, next_values, *, gamma):
    ended = terminated | truncated
    values = torch.cat([0 * rewards[:1], next_values[:-1]]).masked_fill(late(ended), 5.0)
    given = (rewards, values, next_values, terminated, truncated)
    return gae.compute_gae(*given, gamma=gamma, gae_lambda=1.0) + values


@passes("bootstrapped_returns")
def guesses_put_into_the_rewards(rewards, terminated, truncated, next_values, gamma=0.99):
    stops = terminated | truncated
    speaks = truncated & ~terminated
    speaks[-1] = ~terminated[-1]
    returns = rewards + gamma * next_values * speaks
    for t in range(len(rewards) - 2, -1, -1):
        returns[t] += gamma * returns[t + 1] * ~stops[t]
    return returns


@passes("bootstrapped_returns")
def looking_ahead_from_each_row(rewards, terminated, truncated, next_values, *, gamma):
    T, N = rewards.shape
    returns = torch.zeros(T, N)
    for n in range(N):
        for t in range(T):
            factor = 1.0
            for k in range(t, T):
                returns[t, n] += factor * rewards[k, n]
                factor *= gamma
                if terminated[k, n]:
                    break
                if truncated[k, n] or k == T - 1:
                    returns[t, n] += factor * next_values[k, n]
                    break
    return returns


def summed(
    guess=lambda terminated, truncated: truncated & ~terminated,
    stops=lambda terminated, truncated: terminated | truncated,
    last=lambda terminated, truncated: ~terminated,
    value_gamma=lambda gamma: gamma,
    sum_gamma=lambda gamma: gamma,
):
    """Right but for one thing: where V speaks, where the sum stops, what the last row does."""

    def function(rewards, terminated, truncated, next_values, *, gamma):
        speaks = guess(terminated, truncated).clone()
        speaks[-1] = last(terminated, truncated)[-1]
        returns = rewards + value_gamma(gamma) * next_values * speaks
        stopped = stops(terminated, truncated)
        for t in reversed(range(len(rewards) - 1)):
            returns[t] += sum_gamma(gamma) * returns[t + 1] * ~stopped[t]
        return returns

    return function


WRONG["bootstrapped_returns"] |= {
    "returns_run_through_every_end": summed(
        guess=lambda terminated, truncated: never(terminated),
        stops=lambda terminated, truncated: never(terminated),
    ),
    "value_counted_behind_the_end": summed(
        guess=lambda terminated, truncated: terminated | truncated,
        last=lambda terminated, truncated: ~never(terminated),
    ),
    "truncation_wins_over_termination": summed(
        guess=lambda terminated, truncated: truncated,
        last=lambda terminated, truncated: ~terminated | truncated,
    ),
    "value_at_every_step": summed(guess=lambda terminated, truncated: ~terminated),
    "value_not_discounted": summed(value_gamma=lambda gamma: 1.0),
    "gamma_left_out": summed(value_gamma=lambda gamma: 1.0, sum_gamma=lambda gamma: 1.0),
    "flags_late_by_one": summed(
        guess=lambda terminated, truncated: late(truncated & ~terminated),
        stops=lambda terminated, truncated: late(terminated | truncated),
        last=lambda terminated, truncated: ~late(terminated),
    ),
    "value_and_next_row": summed(stops=lambda terminated, truncated: terminated),
    "last_row_never_ends": summed(last=lambda terminated, truncated: ~never(terminated)),
    "environments_end_together": summed(
        guess=lambda terminated, truncated: everywhere(truncated) & ~everywhere(terminated),
        stops=lambda terminated, truncated: everywhere(terminated | truncated),
        last=lambda terminated, truncated: ~everywhere(terminated),
    ),
}

# --- rows that are steps -------------------------------------------------------------------


@passes("valid_rows")
def not_ended_before(terminated, truncated, ended_before):
    ended = terminated | truncated
    return ~torch.cat([ended_before.unsqueeze(0), ended[:-1]])


@passes("valid_rows")
def row_by_row(terminated, truncated, ended_before):
    rows, before = [], ended_before
    for t in range(len(terminated)):
        rows.append(torch.logical_not(before))
        before = torch.logical_or(terminated[t], truncated[t])
    return torch.stack(rows)


@passes("valid_rows")
def flags_set_one_by_one(terminated, truncated, ended_before):
    found = torch.ones(terminated.shape, dtype=torch.bool)
    for t in range(terminated.shape[0]):
        for n in range(terminated.shape[1]):
            if t == 0:
                over = bool(ended_before[n])
            else:
                over = bool(terminated[t - 1, n] or truncated[t - 1, n])
            if over:
                found[t, n] = False
    return found


@passes("valid_rows")
def filled_in_place(terminated, truncated, ended_before, num_steps=None):
    found = torch.empty_like(terminated)
    found[0] = ended_before == 0
    found[1:] = (terminated.int() + truncated.int())[:-1] == 0
    return found


@passes("valid_rows")
def rolled_and_mended(terminated, truncated, ended_before):
    ended = (terminated + truncated).roll(1, dims=0)
    ended[0] = ended_before
    return ended.logical_not()


def validity(ended=lambda terminated, truncated: terminated | truncated, *, first=None, after=None):
    """Right but for one thing."""

    def function(terminated, truncated, ended_before):
        happened = ended(terminated, truncated)
        begin = ended_before if first is None else first(ended_before, happened)
        found = ~torch.cat([begin.unsqueeze(0), happened[:-1]])
        return found if after is None else after(found, happened, ended_before)

    return function


WRONG["valid_rows"] |= {
    "row_of_the_end_left_out": validity(after=lambda found, happened, before: ~happened),
    "row_before_the_end": validity(
        after=lambda found, happened, before: ~torch.cat([happened[1:], never(happened[:1])])
    ),
    "two_rows_late": validity(after=lambda found, happened, before: ~late(~found)),
    "first_row_always_valid": validity(first=lambda before, happened: never(before)),
    "first_row_never_valid": validity(first=lambda before, happened: ~never(before)),
    "last_row_wraps_around": validity(first=lambda before, happened: happened[-1]),
    "terminated_only": validity(lambda terminated, truncated: terminated),
    "truncated_only": validity(lambda terminated, truncated: truncated),
    "both_at_once_only": validity(lambda terminated, truncated: terminated & truncated),
    "turned": validity(after=lambda found, happened, before: ~found),
    "valid_until_the_first_end": validity(
        after=lambda found, happened, before: found.long().cumprod(0).bool()
    ),
    "environments_end_together": validity(
        lambda terminated, truncated: everywhere(terminated | truncated)
    ),
    "before_counts_for_all_rows": validity(after=lambda found, happened, before: found & ~before),
    "all_valid": validity(after=lambda found, happened, before: ~never(found)),
    "rows_dropped": validity(after=lambda found, happened, before: found[1:]),
    "rows_dropped#one_more": validity(
        after=lambda found, happened, before: torch.cat([found, ~happened[-1:]])
    ),
}

# --- numbers by hand -----------------------------------------------------------------------

REWARDS, VALUES = (3.0, 3.0, 2.0, 5.0, 1.0), (4.0, 6.0, 2.0, 8.0, 2.0)
REACHED = (6.0, 10.0, 8.0, 0.0, 6.0)


def by_hand(*, reached=REACHED, stops=(1, 3), weight=0.25, gamma=0.5, factor=1.0, **others):
    """The advantages of five rows by the recursion, and three numbers more."""
    found, following = [], 0.0
    for t in (4, 3, 2, 1, 0):
        surprise = REWARDS[t] + gamma * reached[t] - VALUES[t]
        following = surprise + (0.0 if t in stops else weight * following)
        found.insert(0, factor * following)
    numbers = dict(zip("abcde", found, strict=True))
    return numbers | {"f": 18, "g": 5, "h": 1 / (1 - 0.8 * 0.8)} | others


NIGHTS = [sum(0.8**k for k in range(left)) for left in range(1, 6)]

RIGHT["ends_by_hand"] = {"numbers": by_hand()}
WRONG["ends_by_hand"] = {
    "flags_merged": by_hand(reached=(6, 0, 8, 0, 6)),
    "truncated_ignored": by_hand(stops=(3,)),
    "truncated_ignored_after_the_reset": by_hand(reached=(6, 2, 8, 0, 6), stops=(3,)),
    "next_value_after_the_reset": by_hand(reached=(6, 2, 8, 0, 6)),
    "nothing_behind_the_last_row": by_hand(reached=(6, 10, 8, 0, 0)),
    "value_counted_behind_the_end": by_hand(reached=(6, 10, 8, 2, 6)),
    "terminated_row_runs_on": by_hand(stops=(1,)),
    "trace_not_reset": by_hand(stops=()),
    "masks_swapped": by_hand(reached=(6, 0, 8, 2, 6)),
    "flags_late_by_one": by_hand(reached=(6, 2, 8, 2, 0), stops=(2, 4)),
    "missing_parenthesis": by_hand(weight=0.5, factor=0.5),
    "lambda_left_out": by_hand(weight=0.5),
    "gamma_left_out": by_hand(gamma=1.0, weight=0.5),
    "td_errors_alone": by_hand(stops=(0, 1, 2, 3, 4)),
    "all_rows_valid": by_hand(f=22),
    "unfinished_episode_reset": by_hand(f=17),
    "ends_left_out": by_hand(f=14),
    "limit_taken_for_the_end": by_hand(g=NIGHTS[-1]),
    "tonight_forgotten": by_hand(g=4),
    "merged_as_a_sum": by_hand(h=NIGHTS[-1]),
    "merged_as_a_mean": by_hand(h=sum(NIGHTS) / 5),
    "merged_off_by_one": by_hand(h=1 / (1 - 0.8 * 5 / 6)),
    "merged_without_effect": by_hand(h=5),
}

# --- a bug at an end -----------------------------------------------------------------------

RIGHT["mended_ends"] = {
    name: answer for name, answer in gae_answers.RIGHT["compute_gae"].items() if name != "package"
}
WRONG["mended_ends"] = dict(gae_answers.WRONG["compute_gae"])

# --- what the running episodes have earned -------------------------------------------------


@passes("episode_returns")
def forwards(rewards, terminated, truncated, valid, carried):
    table, running = torch.zeros_like(rewards), carried.clone()
    for t in range(len(rewards)):
        running = running + rewards[t] * valid[t]
        table[t] = running
        running = running * ~(terminated[t] | truncated[t])
    return table, running


@passes("episode_returns")
def column_by_column(rewards, terminated, truncated, valid, carried):
    T, N = rewards.shape
    table, left = [[0.0] * N for _ in range(T)], []
    for n in range(N):
        total = float(carried[n])
        for t in range(T):
            if valid[t, n]:
                total += float(rewards[t, n])
            table[t][n] = total
            if terminated[t, n] or truncated[t, n]:
                total = 0.0
        left.append(total)
    return torch.tensor(table), torch.tensor(left)


@passes("episode_returns")
def sums_minus_what_was_before(rewards, terminated, truncated, valid, carried):
    ended = terminated | truncated
    earned = torch.where(valid, rewards, 0.0)
    total = carried + earned.cumsum(0)
    table = total.clone()
    begun = torch.zeros_like(carried)  # what the earlier episodes of the column had earned
    for t in range(len(rewards)):
        table[t] = total[t] - begun
        begun = torch.where(ended[t], total[t], begun)
    return table, total[-1] - begun


@passes("episode_returns")
def by_a_matrix_of_pairs(rewards, terminated, truncated, valid, carried, mask=None):
    episode = late(terminated | truncated).long().cumsum(0)
    time = torch.arange(len(rewards))
    pairs = (episode[:, None] == episode[None]) & (time[:, None] >= time[None])[..., None]
    table = torch.einsum("tkn,kn->tn", pairs.to(rewards), rewards * valid)
    table = table + carried * (episode == 0)
    return [table, torch.where(terminated[-1] | truncated[-1], 0.0, table[-1])]


@passes("episode_returns")
def summed_in_float32(rewards, terminated, truncated, valid, carried):
    rows, running = [], carried.float()
    flags = (terminated | truncated).float()
    for reward, flag, step in zip(rewards.float(), flags, valid.float(), strict=True):
        rows.append(running + reward * step)
        running = rows[-1] * (1 - flag)
    return torch.stack(rows), running


def running(
    ended=lambda terminated, truncated: terminated | truncated,
    *,
    start=lambda carried: carried,
    earned=lambda rewards, valid: rewards * valid,
    shown=lambda total, before, over, reward: total,
    reset=lambda total, over, carried, reward: total * ~over,
    after=lambda table, left, given: (table, left),
):
    """Right but for one thing."""

    def function(rewards, terminated, truncated, valid, carried):
        table, left = torch.zeros_like(rewards), start(carried)
        flags = ended(terminated, truncated)
        gains = earned(rewards, valid)
        for t in range(len(rewards)):
            total = left + gains[t]
            table[t] = shown(total, left, flags[t], gains[t])
            left = reset(total, flags[t], carried, gains[t])
        given = {"carried": carried, "ended": flags, "rewards": gains}
        return after(table, left, given)

    return function


def _reset_a_row_late(rewards, terminated, truncated, valid, carried):
    function = running(lambda first, second: late(first | second))
    return function(rewards, terminated, truncated, valid, carried)


WRONG["episode_returns"] |= {
    "carry_ignored": running(start=torch.zeros_like),
    "carry_in_every_episode": running(
        reset=lambda total, over, carried, reward: torch.where(over, carried, total)
    ),
    "carry_in_every_row": running(
        shown=lambda total, before, over, reward: total,
        after=lambda table, left, given: (
            table + torch.arange(len(table))[:, None] * given["carried"],
            left,
        ),
    ),
    "carry_not_reset": running(after=lambda table, left, given: (table, table[-1])),
    "carry_given_back": running(after=lambda table, left, given: (table, given["carried"])),
    "not_reset_at_an_end": running(lambda first, second: never(first)),
    "reset_a_row_early": running(
        shown=lambda total, before, over, reward: torch.where(over, reward, total),
        reset=lambda total, over, carried, reward: torch.where(over, reward, total),
    ),
    "reset_a_row_late": _reset_a_row_late,
    "terminated_only": running(lambda first, second: first),
    "truncated_only": running(lambda first, second: second),
    "rows_of_the_reset_counted": running(earned=lambda rewards, valid: rewards),
    "only_at_ends": running(shown=lambda total, before, over, reward: total * over),
    "zero_at_ends": running(shown=lambda total, before, over, reward: total * ~over),
    "only_the_carry": running(shown=lambda total, before, over, reward: reward),
    "environments_added_up": running(
        after=lambda table, left, given: (
            table.sum(1, keepdim=True).expand_as(table),
            left.sum().expand_as(left),
        )
    ),
    "environments_end_together": running(lambda first, second: everywhere(first | second)),
    "results_swapped": running(after=lambda table, left, given: (left, table)),
    "own_reward_left_out": running(shown=lambda total, before, over, reward: before),
}


# --- slow definitions ----------------------------------------------------------------------


def each(rows, function):
    """A table of the same shape, by row and column."""
    return [[function(t, n) for n in range(len(rows[0]))] for t in range(len(rows))]


def slow_next_values(values, final_values, terminated, truncated):
    def number(t, n):
        over = terminated[t][n] or truncated[t][n] or t == len(values) - 1
        return final_values[t][n] if over else values[t + 1][n]

    return each(values, number)


def slow_returns(rewards, terminated, truncated, next_values, *, gamma):
    def number(t, n):
        total, k = 0.0, t
        while True:
            total += gamma ** (k - t) * rewards[k][n]
            if terminated[k][n]:
                return total
            if truncated[k][n] or k == len(rewards) - 1:
                return total + gamma ** (k - t + 1) * next_values[k][n]
            k += 1

    return each(rewards, number)


def slow_valid(terminated, truncated, ended_before):
    def flag(t, n):
        before = ended_before[n] if t == 0 else terminated[t - 1][n] or truncated[t - 1][n]
        return not before

    return each(terminated, flag)


def slow_episode_returns(rewards, terminated, truncated, valid, carried):
    def over(t, n):
        return terminated[t][n] or truncated[t][n]

    def number(t, n):
        begins = max((k + 1 for k in range(t) if over(k, n)), default=0)
        steps = [rewards[k][n] for k in range(begins, t + 1) if valid[k][n]]
        return sum(steps) + (carried[n] if begins == 0 else 0.0)

    table, last = each(rewards, number), len(rewards) - 1
    return table, [0.0 if over(last, n) else table[last][n] for n in range(len(carried))]


ORACLES = {
    "next_values": slow_next_values,
    "bootstrapped_returns": slow_returns,
    "valid_rows": slow_valid,
    "mended_ends": gae_answers.slow_gae,
    "episode_returns": slow_episode_returns,
}
