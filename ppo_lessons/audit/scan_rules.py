"""How advantages go wrong: flags, next values, rewards, weights, rows. Lessons 06 and 07."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ppo_lessons.audit.rules import Table
from ppo_lessons.audit.scan import Scan

SCAN = Table()
Scans = Iterator[Scan]


def earlier(table: Tensor, first: Tensor) -> Tensor:
    """Each row holds what the row before held."""
    return torch.cat([first[None], table[:-1]])


def later(table: Tensor, last: Tensor) -> Tensor:
    """Each row holds what the row after held."""
    return torch.cat([table[1:], last[None]])


def without(scan: Scan, *rows: int) -> Tensor:
    """Where it is known what is predicted, except in these rows."""
    known = scan.known.clone()
    known[list(rows)] = False
    return known


def everywhere(scan: Scan) -> Tensor:
    """Where the row after is known: nowhere is the last observation of an episode needed."""
    known = torch.ones_like(scan.known)
    known[-1] = scan.last_known
    return known


# --- what is right in another way ---------------------------------------------------------------


@SCAN.convention("rollout")
def time_limit_in_the_rewards(scan: Scan) -> Scans:
    """The rewards hold γ·V(last observation) where a time limit struck, as in Stable-Baselines3."""
    cut = scan.truncated & ~scan.terminated
    if not cut.any() or cut.all():
        return
    usual, special = scan.rewards[~cut], scan.rewards[cut]
    low, high = usual.min() - 1e-6, usual.max() + 1e-6
    outside = bool(((special < low) | (special > high)).all())
    if scan.known[cut].all():
        plain = special - scan.gamma * scan.next_values[cut]
        outside = outside and bool(((plain >= low) & (plain <= high)).all())
    if outside:
        yield replace(scan, cut_future=scan.cut_future | cut, known=scan.known | cut)


@SCAN.convention("rollout")
def every_end_is_a_time_limit(scan: Scan) -> Scans:
    """V of the true last observation counts behind every end: right if all are time limits."""
    ends = scan.terminated & ~scan.truncated
    apart = (scan.next_values - scan.following).abs() > 1e-6 * (1 + scan.next_values.abs())
    if not scan.truncated.any() and (apart & ends & scan.known).any():
        yield replace(scan, cut_future=torch.zeros_like(scan.cut_future))


@SCAN.convention("rollout")
def rewards_clipped(scan: Scan) -> Scans:
    """The rewards were clipped to [−1, 1] before the sum, as for Atari games."""
    yield replace(scan, rewards=scan.rewards.clamp(-1, 1))
    yield replace(scan, rewards=scan.rewards.sign())


# --- where an episode ends ----------------------------------------------------------------------


@SCAN.mistake("rollout", change="Cut the bootstrap with `terminated` alone, the trace with both.")
def flags_merged(scan: Scan) -> Scans:
    """A time limit is taken for the end of the task: the future that it hides counts 0."""
    ended = scan.terminated | scan.truncated
    yield replace(scan, cut_future=ended, known=scan.known | ended)


@SCAN.mistake("rollout", change="Stop the sum at every end: multiply it by 1 − ended.")
def truncated_ignored(scan: Scan) -> Scans:
    """V' is right behind a time limit, but the sum runs on into the next episode."""
    yield replace(scan, cut_trace=scan.terminated)


@SCAN.mistake(
    "rollout",
    change="Keep both flags: V of the last observation behind a time limit, no sum across it.",
)
def truncated_ignored_after_the_reset(scan: Scan) -> Scans:
    """`truncated` is not looked at: value and sum both come from the next episode."""
    yield replace(
        scan, cut_trace=scan.terminated, next_values=scan.following, known=everywhere(scan)
    )


@SCAN.mistake("rollout", change="Ask the critic about the last observation, from before the reset.")
def next_value_after_the_reset(scan: Scan) -> Scans:
    """Behind a time limit stands V of the next episode's first observation."""
    yield replace(scan, next_values=scan.following, known=everywhere(scan))


@SCAN.mistake("rollout", change="Ask the critic about the observation that the step led to.")
def next_value_of_the_state_before(scan: Scan) -> Scans:
    """Behind a time limit stands V of the observation in which the last action was chosen."""
    cut = scan.truncated & ~scan.terminated
    after = torch.where(cut, scan.values, scan.next_values)
    yield replace(scan, next_values=after, known=scan.known | cut)


@SCAN.mistake("rollout", change="Add γ·V to the reward, or bootstrap: one of the two.")
def time_limit_counted_twice(scan: Scan) -> Scans:
    """Behind a time limit V' counts twice, in the reward and in the bootstrap."""
    cut = scan.truncated & ~scan.terminated
    yield replace(scan, rewards=scan.rewards + scan.gamma * scan.next_values.masked_fill(~cut, 0))


@SCAN.mistake("rollout", change="Multiply V of the last observation by γ like any other V'.")
def time_limit_not_discounted(scan: Scan) -> Scans:
    """Behind a time limit V' counts whole, without γ."""
    cut = scan.truncated & ~scan.terminated
    if scan.gamma:
        after = torch.where(cut, scan.next_values / scan.gamma, scan.next_values)
        yield replace(scan, next_values=after)


@SCAN.mistake("rollout", change="Cut V' where `terminated` is true: nothing follows a final state.")
def bootstrap_kept_at_termination(scan: Scan) -> Scans:
    """A future is counted behind a final state."""
    nowhere = torch.zeros_like(scan.cut_future)
    after = torch.where(scan.terminated, scan.following, scan.next_values)
    yield replace(scan, cut_future=nowhere, next_values=after)
    yield replace(scan, cut_future=nowhere)


@SCAN.mistake("gae", change="Stop the sum at every end: multiply it by 1 − ended.")
def trace_not_reset(scan: Scan) -> Scans:
    """The sum runs through every end, into another episode."""
    yield replace(scan, cut_trace=torch.zeros_like(scan.cut_trace))


@SCAN.mistake(
    "gae", change="Multiply by 1 − ended once: in the row that ended, not before it as well."
)
def trace_cut_a_row_early_too(scan: Scan) -> Scans:
    """The sum stops at the step that ended an episode, and once more one row before it."""
    early = later(scan.cut_trace, torch.zeros_like(scan.cut_trace[0]))
    yield replace(scan, cut_trace=scan.cut_trace | early)


@SCAN.mistake(
    "rollout", change="Keep the last step: it has a reward and, at a time limit, a future."
)
def last_step_left_out(scan: Scan) -> Scans:
    """The step with which a time limit, or any end, came has no advantage: it is set to 0."""
    for cut in (scan.truncated & ~scan.terminated, scan.truncated | scan.terminated):
        yield replace(scan, written=scan.written & ~cut, known=scan.known | cut)


@SCAN.mistake("rollout", change="Use the flags in both places: in the TD error and in the sum.")
def flags_ignored(scan: Scan) -> Scans:
    """No flag is looked at: value and sum both come from the next episode."""
    nowhere = torch.zeros_like(scan.cut_future)
    yield replace(
        scan, cut_future=nowhere, cut_trace=nowhere, next_values=scan.following,
        known=everywhere(scan),
    )  # fmt: skip


@SCAN.mistake("rollout", change="Use 1 − flag as the factor, not the flag itself.")
def mask_inverted(scan: Scan) -> Scans:
    """The flag is used where its opposite belongs: only ends have a future."""
    turned = replace(scan, next_values=scan.following, known=everywhere(scan))
    for base in (scan, turned):
        yield replace(base, cut_future=~scan.cut_future, cut_trace=~scan.cut_trace)
        yield replace(base, cut_future=~scan.cut_future)
        yield replace(base, cut_trace=~scan.cut_trace)


@SCAN.mistake(
    "rollout",
    change="Row t needs the flag of its own step, t → t+1. If your flags say that a row begins an "
    "episode (CleanRL's `dones`), name them `starts`.",
)
def flags_late(scan: Scan) -> Scans:
    """Row t uses the flag of the step before, so an end acts one row too late."""
    false = torch.zeros_like(scan.cut_future[0])
    known = without(scan, 0, -1)
    for base in (scan, replace(scan, next_values=scan.following)):
        future, trace = earlier(scan.cut_future, false), earlier(scan.cut_trace, false)
        yield replace(base, cut_future=future, cut_trace=trace, known=known)
        yield replace(base, cut_trace=trace, known=known)
        yield replace(base, cut_future=future, known=known)


@SCAN.mistake(
    "rollout",
    change="Row t needs the flag of its own step, t → t+1: index t, not t + 1.",
)
def flags_early(scan: Scan) -> Scans:
    """Row t uses the flag of the step after, so an end acts one row too early."""
    false = torch.zeros_like(scan.cut_future[0])
    known = without(scan, -1)
    for base in (scan, replace(scan, next_values=scan.following)):
        future, trace = later(scan.cut_future, false), later(scan.cut_trace, false)
        yield replace(base, cut_future=future, cut_trace=trace, known=known)
        yield replace(base, cut_trace=trace, known=known)
        yield replace(base, cut_future=future, known=known)


@SCAN.mistake("gae", change="Mask with this rollout's last flag as well.")
def last_flag_ignored(scan: Scan) -> Scans:
    """The flag of the last row is not looked at: V' counts behind its end."""
    future = scan.cut_future.clone()
    future[-1] = False
    yield replace(scan, cut_future=future)


@SCAN.mistake("critic", change="Mask V', not V: the value of the state itself always counts.")
def value_masked_too(scan: Scan) -> Scans:
    """On the last step of an episode V(s_t) is left out together with V'."""
    yield replace(scan, baseline=(~scan.cut_future).double() * scan.baseline)


@SCAN.mistake("rollout", change="Keep the reward of the last step: it was earned.")
def reward_of_the_last_step_lost(scan: Scan) -> Scans:
    """The reward of a step that ended an episode counts 0."""
    yield replace(scan, rewards=scan.rewards.masked_fill(scan.terminated | scan.truncated, 0))


# --- the cut of the rollout ---------------------------------------------------------------------


@SCAN.mistake("gae", change="Ask the critic about the observation after the last row.")
def no_bootstrap_at_the_cut(scan: Scan) -> Scans:
    """The end of the rollout is taken for the end of the task: V' counts 0 there."""
    future = scan.cut_future.clone()
    future[-1] = True
    known = scan.known.clone()
    known[-1] = True
    yield replace(scan, cut_future=future, known=known)


@SCAN.mistake("gae", change="Ask the critic about the observation after the last row.")
def value_of_the_last_row_repeated(scan: Scan) -> Scans:
    """Behind the last row stands V of the last row itself."""
    after = torch.cat([scan.next_values[:-1], scan.values[-1:]])
    yield replace(scan, next_values=after)


@SCAN.mistake("gae", change="Let the loop begin at the last row, T − 1.")
def last_row_left_out(scan: Scan) -> Scans:
    """The loop begins one row too late: the last row has no advantage."""
    written = scan.written.clone()
    written[-1] = False
    yield replace(scan, written=written)


@SCAN.mistake("gae", change="Let the loop run down to row 0.")
def first_row_left_out(scan: Scan) -> Scans:
    """The loop ends one row too early: the first row has no advantage."""
    written = scan.written.clone()
    written[0] = False
    yield replace(scan, written=written)


# --- what is next, and what was earned ----------------------------------------------------------


@SCAN.mistake("critic", change="Use V of the state that the step led to: values[t + 1].")
def next_value_is_this_value(scan: Scan) -> Scans:
    """V(s_t) stands where V(s_{t+1}) belongs."""
    yield replace(scan, next_values=scan.values, known=torch.ones_like(scan.known))
    inner = torch.cat([scan.values[:-1], scan.next_values[-1:]])
    yield replace(scan, next_values=inner, known=everywhere(scan))


@SCAN.mistake("critic", change="Use V of the state that the step led to: values[t + 1].")
def next_value_two_rows_on(scan: Scan) -> Scans:
    """V(s_{t+2}) stands where V(s_{t+1}) belongs."""
    after = later(scan.following, scan.following[-1])
    yield replace(scan, next_values=after, known=without(scan, -1))


@SCAN.mistake("critic", change="Add γ·V(s_{t+1}) to the reward.")
def next_value_left_out(scan: Scan) -> Scans:
    """No V' is added anywhere: the critic is asked about the past alone."""
    yield replace(scan, discount=0.0, known=torch.ones_like(scan.known))


@SCAN.mistake("critic", change="Add γ·V(s_{t+1}), subtract V(s_t).")
def next_value_subtracted(scan: Scan) -> Scans:
    """V' has the wrong sign."""
    yield replace(scan, discount=-scan.discount)


@SCAN.mistake("critic", change="Subtract V(s_t): what was expected before the step.")
def value_added(scan: Scan) -> Scans:
    """V(s_t) has the wrong sign."""
    yield replace(scan, baseline=-scan.baseline)


@SCAN.mistake("critic", change="Subtract V(s_t): what was expected before the step.")
def value_not_subtracted(scan: Scan) -> Scans:
    """V(s_t) is not subtracted."""
    yield replace(scan, baseline=0.0)


@SCAN.mistake("critic", change="Surprise is what came minus what was expected.")
def sign_turned(scan: Scan) -> Scans:
    """Every advantage has the wrong sign."""
    yield replace(scan, scale=-scan.scale)


@SCAN.mistake("rollout", change="Store r_t beside a_t, which earned it.")
def rewards_late(scan: Scan) -> Scans:
    """Row t uses the reward of the step before."""
    yield replace(scan, rewards=earlier(scan.rewards, scan.rewards[0]), known=without(scan, 0))


@SCAN.mistake("rollout", change="Store r_t beside a_t, which earned it.")
def rewards_early(scan: Scan) -> Scans:
    """Row t uses the reward of the step after."""
    yield replace(scan, rewards=later(scan.rewards, scan.rewards[-1]), known=without(scan, -1))


@SCAN.mistake("critic", change="Begin with the reward: r + γ·V' − V.")
def rewards_left_out(scan: Scan) -> Scans:
    """No reward is added."""
    yield replace(scan, rewards=torch.zeros_like(scan.rewards))


# --- the weights --------------------------------------------------------------------------------


@SCAN.mistake("gae", change="Discount V' by γ and the sum by γ·λ.")
def gamma_left_out(scan: Scan) -> Scans:
    """γ is missing in the TD error, in the weights of the sum, or in both."""
    yield replace(scan, discount=1.0)
    if scan.gamma:
        yield replace(scan, carried=scan.carried / scan.gamma)
        yield replace(scan, discount=1.0, carried=scan.carried / scan.gamma)


@SCAN.mistake("gae", change="Weigh the Â of the row after by γ·λ.")
def lambda_left_out(scan: Scan) -> Scans:
    """λ is missing: the sum is weighted by γ alone, as with λ = 1."""
    if scan.gae_lambda:
        yield replace(scan, carried=scan.carried / scan.gae_lambda)


@SCAN.mistake("gae", change="Add γ·λ·Â of the row after.")
def trace_left_out(scan: Scan) -> Scans:
    """There is no sum: each row is its own TD error, as with λ = 0."""
    yield replace(scan, carried=0.0)


@SCAN.mistake("gae", change="γ discounts V'; λ stands in the weights of the sum alone.")
def gamma_and_lambda_swapped(scan: Scan) -> Scans:
    """λ stands where γ belongs."""
    yield replace(scan, discount=scan.gae_lambda)
    yield replace(scan, discount=scan.gae_lambda, carried=scan.gae_lambda)


@SCAN.mistake("gae", change="Weigh δ by 1, and the Â of the row after by γ·λ.")
def lambda_on_the_td_error(scan: Scan) -> Scans:
    """λ weighs the TD error, or V' in it."""
    for carried in (scan.gamma * scan.gae_lambda, scan.gamma):
        yield replace(scan, scale=scan.gae_lambda, carried=carried)
        yield replace(scan, scale=1 - scan.gae_lambda, carried=carried)
        yield replace(scan, discount=scan.gamma * scan.gae_lambda, carried=carried)


@SCAN.mistake("gae", change="Weigh δ_{t+l} by (γ·λ)ˡ: the parenthesis belongs around both.")
def missing_parenthesis(scan: Scan) -> Scans:
    """δ_{t+l} is weighted by γ·λˡ in place of (γ·λ)ˡ."""
    yield replace(scan, scale=scan.gamma, carried=scan.gae_lambda)


# --- the order of the rows ----------------------------------------------------------------------


@SCAN.mistake("gae", change="Run over time for each environment by itself; flatten afterwards.")
def flattened_too_early(scan: Scan) -> Scans:
    """The table is run through as one long column: environments hear of each other's future."""
    size, (rows, columns) = scan.values.numel(), scan.values.shape
    if columns == 1 or rows == 1:
        return
    along = (torch.arange(size) + 1).reshape(rows, columns)
    down = rows_to_the_next_column(rows, columns)
    for after in (along, down):
        turned = replace(scan, after=after)
        yield turned
        last = (after == scan.after) | (after >= size)
        yield replace(turned, next_values=torch.where(
            last, scan.next_values, turned.following
        ))  # fmt: skip


@SCAN.mistake("gae", change="Run from the last row to the first: what counts comes after.")
def sum_over_the_past(scan: Scan) -> Scans:
    """The sum runs forward: each row adds what came before it, and not what came after."""
    size, columns = scan.values.numel(), scan.values.shape[1]
    after = (torch.arange(size) - columns).reshape(scan.values.shape)
    after[0] = size
    false = torch.zeros_like(scan.cut_trace[0])
    yield replace(scan, after=after, cut_trace=earlier(scan.cut_trace, false))


@SCAN.mistake("gae", change="Let the loop run over time: the first axis of [T, N].")
def scanned_across_environments(scan: Scan) -> Scans:
    """The loop runs over the environments in place of time."""
    size, (rows, columns) = scan.values.numel(), scan.values.shape
    if columns == 1 or rows == 1:
        return
    after = (torch.arange(size) + 1).reshape(rows, columns)
    after[:, -1] = size
    turned = replace(scan, after=after)
    known = scan.known.clone()
    known[:, -1] = False  # what such a program takes for the value after the last environment
    yield replace(turned, next_values=turned.following, known=known)
    yield turned


def rows_to_the_next_column(rows: int, columns: int) -> Tensor:
    """The row below; below the last row, the first one of the next environment."""
    size = rows * columns
    after = (torch.arange(size) + columns).reshape(rows, columns)
    after[-1] = torch.arange(1, columns + 1)
    after[-1, -1] = size
    return after
