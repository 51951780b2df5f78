"""How targets, normalised advantages, ratios and losses go wrong. Lessons 02, 04, 05 and 08."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ppo_lessons.audit.losses import (
    LARGEST_CROSS,
    Mean,
    Norm,
    Ratio,
    Squares,
    Surrogate,
    Target,
    Total,
)
from ppo_lessons.audit.rules import Table

TARGET, NORM, RATIO, SURROGATE, SQUARES, MEAN, TOTAL = (Table() for _ in range(7))


def standardised(table: Tensor) -> Iterator[Tensor]:
    """Mean 0 and deviation 1, as numpy does it and as torch does it."""
    for correction in (0, 1)[: table.numel()]:  # one sample alone has no sample deviation
        yield (table - table.mean()) / (table.std(correction=correction) + 1e-8)


def crosswise(numbers: Tensor, shape: torch.Size | None) -> Tensor | None:
    """The samples of a [T, N] table in the other order; None if there is no table."""
    if shape is None or 1 in shape or numbers.numel() != shape.numel():
        return None
    return numbers.reshape(shape).T.flatten()


# --- returns ------------------------------------------------------------------------------------


@TARGET.mistake("gae", change="Add V to the advantages first, normalise a copy afterwards.")
def returns_from_normalized_advantages(target: Target) -> Iterator[Target]:
    """V is added to advantages that were normalised before: the sum is no return."""
    for advantages in standardised(target.advantages):
        yield replace(target, advantages=advantages)


@TARGET.mistake("critic", change="Add V: the target is Â + V.")
def advantages_for_returns(target: Target) -> Iterator[Target]:
    """The critic's target is the advantage alone."""
    yield replace(target, sign=0.0)


@TARGET.mistake("critic", change="Add V: the target is Â + V.")
def values_subtracted(target: Target) -> Iterator[Target]:
    """V is subtracted where it has to be added back."""
    yield replace(target, sign=-1.0)


@TARGET.mistake("critic", change="Add V of the state itself.")
def next_values_added(target: Target) -> Iterator[Target]:
    """V of the next state is added."""
    if target.next_values is not None:
        yield replace(target, values=target.next_values)


@TARGET.mistake("training_loop", change="Add the values of the scoring, once, before the epochs.")
def new_values_added(target: Target) -> Iterator[Target]:
    """The new critic's values are added: the target runs away from the critic."""
    if target.new_values is not None:
        yield replace(target, values=target.new_values)


@TARGET.mistake("critic", change="Leave targets in the unit of the reward, or scale V back.")
def returns_normalized(target: Target) -> Iterator[Target]:
    """The targets were shifted and scaled: V in the TD error has another unit."""
    for returns in standardised(target.advantages + target.values):
        yield replace(target, advantages=returns - target.values)


# --- normalised advantages ----------------------------------------------------------------------


@NORM.convention("gae")
def sample_deviation(norm: Norm) -> Iterator[Norm]:
    """The deviation divides by B − 1, torch's default."""
    if len(norm.pool) > 1:
        yield replace(norm, correction=1)


@NORM.convention("gae")
def another_small_number(norm: Norm) -> Iterator[Norm]:
    """The small number beside the deviation is not 10⁻⁸."""
    for exponent in (-3, -4, -5, -6, -7, -9, -10, -12):
        yield replace(norm, epsilon=10.0**exponent)


@NORM.convention("gae")
def normalized_over_the_batch(norm: Norm) -> Iterator[Norm]:
    """Mean and deviation are those of the whole batch, not of this minibatch."""
    if norm.batch is not None:
        yield replace(norm, pool=norm.batch)


@NORM.convention("gae")
def not_normalized(norm: Norm) -> Iterator[Norm]:
    """The advantages are left as they are."""
    yield replace(norm, pool=torch.tensor([-1.0, 1.0], dtype=torch.float64), epsilon=0.0)


@NORM.mistake("gae", change="Add 10⁻⁸ to the deviation: equal advantages would give 0 / 0.")
def small_number_left_out(norm: Norm) -> Iterator[Norm]:
    """Nothing is added to the deviation."""
    yield replace(norm, epsilon=0.0)


@NORM.mistake("gae", change="Subtract the mean first.")
def not_centred(norm: Norm) -> Iterator[Norm]:
    """The mean is not subtracted."""
    yield replace(norm, centred=False)


@NORM.mistake("gae", change="Set the parenthesis around Â − mean, then divide.")
def parenthesis_left_out(norm: Norm) -> Iterator[Norm]:
    """Only the mean is divided by the deviation: Â − mean / deviation."""
    for correction in (0, 1)[: norm.pool.numel()]:
        for epsilon in (1e-8, 1e-5):
            spread = norm.pool.std(correction=correction) + epsilon
            advantages = norm.advantages + norm.pool.mean() * (1 - 1 / spread)
            yield replace(norm, advantages=advantages, power=0.0, epsilon=0.0)


@NORM.mistake("gae", change="Divide by the deviation.")
def not_scaled(norm: Norm) -> Iterator[Norm]:
    """The mean is subtracted, and nothing is divided."""
    yield replace(norm, power=0.0, epsilon=0.0)


@NORM.mistake("gae", change="Divide by the root of the variance.")
def variance_for_deviation(norm: Norm) -> Iterator[Norm]:
    """It is divided by the variance: the result has the unit 1 / reward."""
    yield replace(norm, power=1.0)


@NORM.mistake("gae", change="Divide by the deviation.")
def multiplied_by_the_deviation(norm: Norm) -> Iterator[Norm]:
    """It is multiplied by the deviation."""
    yield replace(norm, power=-0.5, epsilon=0.0)


@NORM.mistake("gae", change="Take one mean and one deviation over all samples of the minibatch.")
def normalized_along_one_axis(norm: Norm) -> Iterator[Norm]:
    """Each environment, or each step, is normalised by itself."""
    if norm.table is not None and 1 not in norm.table.shape:
        yield replace(norm, axis=0)
        yield replace(norm, axis=1)


@NORM.mistake("gae", change="Leave rows that are no steps out of mean and deviation.")
def padding_in_the_mean(norm: Norm) -> Iterator[Norm]:
    """Rows that are no steps pull at mean and deviation."""
    yield replace(norm, pool=norm.advantages)


@NORM.mistake("training_loop", change="Pick advantages with the same indices as everything else.")
def rows_of_another_minibatch(norm: Norm) -> Iterator[Norm]:
    """The advantages are those of other rows: a slice of the batch that was not shuffled."""
    size = len(norm.advantages)
    if norm.batch is None:
        return
    for start in range(0, len(norm.batch) - size + 1, size):
        rows = norm.batch[start : start + size]
        for correction in (0, 1)[:size]:
            yield replace(norm, advantages=rows, pool=rows, correction=correction, mask=None)


# --- ratios -------------------------------------------------------------------------------------


@RATIO.convention("clip")
def clipped_ratios(ratio: Ratio) -> Iterator[Ratio]:
    """The ratios are written down after the clip."""
    yield replace(ratio, how="clipped")


@RATIO.mistake("importance", change="Use exp(log π − log π_old): the new policy on top.")
def old_and_new_swapped(ratio: Ratio) -> Iterator[Ratio]:
    """The old policy stands on top."""
    yield replace(ratio, log_probs=ratio.log_probs_old, log_probs_old=ratio.log_probs)


@RATIO.mistake("importance", change="Take the exponential of the difference.")
def exponential_left_out(ratio: Ratio) -> Iterator[Ratio]:
    """The ratio is the difference of log-probabilities: no change gives 0 instead of 1."""
    yield replace(ratio, how="difference")


@RATIO.mistake("importance", change="Subtract log-probabilities, then take the exponential.")
def quotient_of_logarithms(ratio: Ratio) -> Iterator[Ratio]:
    """Log-probabilities are divided by each other."""
    yield replace(ratio, how="quotient")


@RATIO.mistake("importance", change="Bring both log-probabilities to one shape, (B,), before.")
def ratios_of_all_pairs(ratio: Ratio) -> Iterator[Ratio]:
    """(B, 1) minus (B,) is (B, B): each action is compared with every other's log-probability."""
    if len(ratio.log_probs) <= LARGEST_CROSS:
        yield replace(ratio, how="pairs")
        yield replace(ratio, how="pairs turned")


@RATIO.mistake("importance", change="Subtract the log-probabilities that were stored.")
def old_policy_left_out(ratio: Ratio) -> Iterator[Ratio]:
    """The ratio is the new probability alone."""
    yield replace(ratio, how="new")


@RATIO.mistake("training_loop", change="Store log π_old while sampling; do not recompute it.")
def log_probs_recomputed(ratio: Ratio) -> Iterator[Ratio]:
    """Every ratio is 1, though the log-probabilities differ: the policy is divided by itself."""
    yield replace(ratio, how="one")


@RATIO.mistake("continuous", change="Sum log-probabilities over the dimensions of an action.")
def log_probs_not_summed(ratio: Ratio) -> Iterator[Ratio]:
    """Each dimension of an action has a ratio of its own."""
    if ratio.differences is not None:
        yield replace(ratio, how="parts")


@RATIO.mistake("continuous", change="Sum log-probabilities over the dimensions of an action.")
def log_probs_averaged(ratio: Ratio) -> Iterator[Ratio]:
    """Log-probabilities are averaged over the dimensions of an action."""
    if ratio.differences is not None:
        yield replace(ratio, how="averaged")


# --- policy loss --------------------------------------------------------------------------------


@SURROGATE.convention("gae")
def normalized_inside(loss: Surrogate) -> Iterator[Surrogate]:
    """The loss normalises the advantages itself."""
    if loss.raw is None:
        for advantages in standardised(loss.advantages):
            yield replace(loss, advantages=advantages)


@SURROGATE.convention("variants")
def dual_clip(loss: Surrogate) -> Iterator[Surrogate]:
    """Where Â < 0 the loss is bounded by 3·Â: the dual clip."""
    yield replace(loss, combine="dual")


@SURROGATE.mistake("clip", change="Minimise minus the mean.")
def loss_sign_turned(loss: Surrogate) -> Iterator[Surrogate]:
    """The objective itself is minimised: good actions become rare."""
    yield replace(loss, sign=-loss.sign)


@SURROGATE.mistake("clip", change="Take the minimum of ratio·Â and clipped ratio·Â.")
def minimum_left_out(loss: Surrogate) -> Iterator[Surrogate]:
    """The ratio is clipped and nothing else: outside, no gradient leads back."""
    yield replace(loss, combine="clipped")


@SURROGATE.mistake("clip", change="Take the minimum of objectives, or the maximum of losses.")
def maximum_for_minimum(loss: Surrogate) -> Iterator[Surrogate]:
    """The larger of the two objectives is taken: the clip stops nothing."""
    yield replace(loss, combine="max")


@SURROGATE.mistake("clip", change="Take the minimum whatever the sign of Â.")
def clip_on_the_wrong_side(loss: Surrogate) -> Iterator[Surrogate]:
    """Where Â < 0 the maximum is taken: it pushes where it should stop, and stops where not."""
    yield replace(loss, combine="inverted")


@SURROGATE.mistake("clip", change="Clip the ratio to [1 − ε, 1 + ε], and take the minimum.")
def clip_left_out(loss: Surrogate) -> Iterator[Surrogate]:
    """There is no clip: every ratio counts whole."""
    yield replace(loss, combine="plain")


@SURROGATE.mistake("clip", change="Keep samples outside the interval: the minimum handles them.")
def outside_thrown_away(loss: Surrogate) -> Iterator[Surrogate]:
    """Samples outside the interval are dropped, and with them the pull back."""
    yield replace(loss, combine="inside")


@SURROGATE.mistake("clip", change="Clip at both edges, 1 − ε and 1 + ε.")
def clip_at_one_edge(loss: Surrogate) -> Iterator[Surrogate]:
    """One edge of the clip is missing, or stands at 1."""
    for low, high in ((-1e30, loss.high), (loss.low, 1e30), (1.0, loss.high), (loss.low, 1.0)):
        yield replace(loss, low=low, high=high)


@SURROGATE.mistake("clip", change="Clip the ratio to [1 − ε, 1 + ε].")
def clip_around_zero(loss: Surrogate) -> Iterator[Surrogate]:
    """The ratio is clipped to [−ε, ε], as if no change were 0."""
    yield replace(loss, low=-loss.clip_epsilon, high=loss.clip_epsilon)


@SURROGATE.mistake("clip", change="Clip the ratio to [1 − ε, 1 + ε], not its logarithm to [−ε, ε].")
def clip_of_the_logarithm(loss: Surrogate) -> Iterator[Surrogate]:
    """The logarithm of the ratio is clipped: the edges are e^−ε and e^ε."""
    edge = torch.tensor(loss.clip_epsilon, dtype=torch.float64).exp().item()
    yield replace(loss, low=1 / edge, high=edge)


@SURROGATE.mistake("clip", change="Clip to [1 − ε, 1 + ε], with the ε of your settings.")
def clip_of_another_width(loss: Surrogate) -> Iterator[Surrogate]:
    """The edges are others: half or twice ε, 1 / (1 + ε), 1 / (1 − ε), or 0.1, 0.2, 0.3."""
    width = loss.clip_epsilon
    yield replace(loss, low=1 / (1 + width))
    if width < 1:
        yield replace(loss, high=1 / (1 - width))
    for other in (width / 2, 2 * width, 0.1, 0.2, 0.3):
        yield replace(loss, low=1 - other, high=1 + other)
        yield replace(loss, low=1 - other)
        yield replace(loss, high=1 + other)


@SURROGATE.mistake("importance", change="Use exp(log π − log π_old): the new policy on top.")
def ratios_swapped(loss: Surrogate) -> Iterator[Surrogate]:
    """The old policy stands on top of the ratio."""
    yield replace(loss, ratios=1 / loss.ratios)


@SURROGATE.mistake("importance", change="Take the exponential of the difference.")
def logarithms_for_ratios(loss: Surrogate) -> Iterator[Surrogate]:
    """The difference of log-probabilities stands where the ratio belongs."""
    yield replace(loss, ratios=loss.ratios.log())


@SURROGATE.mistake("training_loop", change="Store log π_old while sampling; do not recompute it.")
def ratios_all_one(loss: Surrogate) -> Iterator[Surrogate]:
    """The loss is that of ratios that are all 1: the policy is divided by itself."""
    yield replace(loss, ratios=torch.ones_like(loss.ratios))


@SURROGATE.mistake("importance", change="Multiply Â by the ratio, not by log π.")
def log_probs_for_ratios(loss: Surrogate) -> Iterator[Surrogate]:
    """There is log π where the ratio belongs, as in REINFORCE: right for fresh data alone."""
    if loss.log_probs is not None:
        yield replace(loss, ratios=loss.log_probs, combine="plain")


@SURROGATE.mistake("continuous", change="Sum log-probabilities over the dimensions of an action.")
def dimensions_not_summed(loss: Surrogate) -> Iterator[Surrogate]:
    """Each dimension of an action has a ratio of its own."""
    if loss.differences is not None:
        ratios = loss.differences.exp()
        yield replace(loss, ratios=ratios, advantages=loss.advantages[:, None], mask=None)
        yield replace(loss, ratios=loss.differences.mean(-1).exp())


@SURROGATE.mistake("training_loop", change="Divide by the number of samples: take the mean.")
def sum_for_mean(loss: Surrogate) -> Iterator[Surrogate]:
    """The loss is summed: the step grows with the size of the minibatch."""
    yield replace(loss, summed=True)


@SURROGATE.mistake("critic", change="Bring ratios and advantages to one shape, (B,), before.")
def broadcast_over_pairs(loss: Surrogate) -> Iterator[Surrogate]:
    """(B, 1) meets (B,): every ratio is multiplied by every advantage."""
    yield replace(loss, crossed=True)


@SURROGATE.mistake("gae", change="Use the normalised advantages that you computed.")
def raw_advantages_used(loss: Surrogate) -> Iterator[Surrogate]:
    """The loss uses the advantages from before they were normalised."""
    if loss.raw is not None and loss.ratios.ndim == 1:
        yield replace(loss, advantages=loss.raw)


@SURROGATE.mistake("gae", change="Normalise once, before both products.")
def half_of_it_normalized(loss: Surrogate) -> Iterator[Surrogate]:
    """Of the two products one has normalised advantages, and the other has not."""
    if loss.raw is not None and loss.ratios.ndim == 1:
        yield replace(loss, half=loss.raw)
        yield replace(loss, advantages=loss.raw, half=loss.advantages)


@SURROGATE.mistake("critic", change="Weigh the ratios by advantages.")
def returns_for_advantages(loss: Surrogate) -> Iterator[Surrogate]:
    """Returns stand where advantages belong."""
    if loss.returns is not None and loss.ratios.ndim == 1:
        for advantages in (loss.returns, *standardised(loss.returns)):
            yield replace(loss, advantages=advantages)


@SURROGATE.mistake("training_loop", change="Flatten all tensors in the same order.")
def samples_misaligned(loss: Surrogate) -> Iterator[Surrogate]:
    """Ratios and advantages are flattened in two orders: each ratio has another's advantage."""
    turned = crosswise(loss.advantages, loss.table)
    if turned is not None and loss.ratios.ndim == 1:
        yield replace(loss, advantages=turned)


@SURROGATE.mistake("clip", change="Multiply the clipped ratio by Â as well.")
def advantage_left_out(loss: Surrogate) -> Iterator[Surrogate]:
    """The clipped ratio stands alone, without Â, beside the product of ratio and Â."""
    yield replace(loss, half=torch.ones_like(loss.advantages))


@SURROGATE.mistake("clip", change="Take the minimum for each sample, and the mean afterwards.")
def mean_before_the_minimum(loss: Surrogate) -> Iterator[Surrogate]:
    """The mean is taken first, of Â or of the products, and the minimum of two means afterwards."""
    if loss.ratios.ndim == 1:
        yield replace(loss, combine="means")
        yield replace(loss, combine="means", centre=True)


@SURROGATE.mistake("rollout", change="Leave rows that are no steps out of the mean.")
def padding_counted(loss: Surrogate) -> Iterator[Surrogate]:
    """Rows that are no steps count in the mean."""
    yield replace(loss, mask=None)


@SURROGATE.mistake("rollout", change="Divide by the number of rows that are steps.")
def padding_in_the_divisor(loss: Surrogate) -> Iterator[Surrogate]:
    """The sum leaves rows out that are no steps, and is divided by the number of all rows."""
    if loss.mask is not None:
        yield replace(loss, diluted=True)


# --- value loss ---------------------------------------------------------------------------------


@SQUARES.convention("critic")
def whole_square(loss: Squares) -> Iterator[Squares]:
    """The whole square, not the half: value_coef then weighs twice as much."""
    yield replace(loss, factor=2 * loss.factor)


@SQUARES.convention("critic")
def values_held_near_the_old(loss: Squares) -> Iterator[Squares]:
    """With value clipping: the larger of two errors counts."""
    if loss.values is not None and loss.clip_epsilon is not None:
        yield replace(loss, square="max")


@SQUARES.convention("critic")
def clipped_error_alone(loss: Squares) -> Iterator[Squares]:
    """With value clipping and no maximum, as in Stable-Baselines3: outside nothing leads back."""
    if loss.values is not None and loss.clip_epsilon is not None:
        yield replace(loss, square="moved")


@SQUARES.convention("critic")
def coefficient_inside(loss: Squares) -> Iterator[Squares]:
    """value_coef is in the loss already."""
    if loss.value_coef is not None:
        yield replace(loss, factor=loss.factor * loss.value_coef)


@SQUARES.convention("critic")
def huber_loss(loss: Squares) -> Iterator[Squares]:
    """Huber's loss: squares up to an error of 1, the error's size beyond."""
    yield replace(loss, power=1.5, factor=2 * loss.factor)


@SQUARES.mistake("critic", change="Bring values and returns to one shape, (B,), before.")
def column_against_row(loss: Squares) -> Iterator[Squares]:
    """(B, 1) minus (B,) is (B, B): every value is pulled to the mean of all returns."""
    yield replace(loss, crossed="values")
    yield replace(loss, crossed="targets")


@SQUARES.mistake(
    "critic", change="Hold V near the values of the scoring, not near V or the target."
)
def values_not_clipped(loss: Squares) -> Iterator[Squares]:
    """There is no value clipping, or none that ever acts, though `value_clip_epsilon` is given."""
    if loss.clipped:
        yield replace(loss, square="plain")


@SQUARES.mistake("critic", change="Take the larger of the two errors.")
def minimum_for_maximum(loss: Squares) -> Iterator[Squares]:
    """Value clipping takes the smaller error: a value that strayed is not brought back."""
    if loss.values is not None and loss.clip_epsilon is not None:
        yield replace(loss, square="min")


@SQUARES.mistake("critic", change="Hold V within ε of V_old: V_old + clip(V − V_old, −ε, ε).")
def values_clipped_wrongly(loss: Squares) -> Iterator[Squares]:
    """V is held around V_old by a factor, V_old is not added back, or the maximum comes first."""
    if loss.values is not None and loss.clip_epsilon is not None:
        yield replace(loss, square="factor")
        yield replace(loss, square="uncentred")
        yield replace(loss, square="before")


@SQUARES.mistake("critic", change="Square the error.")
def error_not_squared(loss: Squares) -> Iterator[Squares]:
    """The error is not squared, or its root is taken again."""
    yield replace(loss, power=1.0)
    yield replace(loss, power=0.0)
    yield replace(loss, power=1.0, factor=-loss.factor)
    yield replace(loss, root=True)
    yield replace(loss, root=True, factor=1.0)


@SQUARES.mistake("critic", change="Minimise the squared error.")
def value_loss_sign_turned(loss: Squares) -> Iterator[Squares]:
    """The error is maximised."""
    yield replace(loss, factor=-loss.factor)


@SQUARES.mistake("critic", change="Learn from returns, Â + V.")
def advantages_for_targets(loss: Squares) -> Iterator[Squares]:
    """V learns the advantages."""
    if loss.advantages is not None:
        for targets in (loss.advantages, *standardised(loss.advantages)):
            yield replace(loss, targets=targets)


@SQUARES.mistake("critic", change="Learn from returns, Â + V.")
def rewards_for_targets(loss: Squares) -> Iterator[Squares]:
    """V learns the rewards of single steps."""
    if loss.rewards is not None:
        yield replace(loss, targets=loss.rewards)


@SQUARES.mistake("critic", change="Leave targets in the unit of the reward, or scale V back.")
def normalized_targets(loss: Squares) -> Iterator[Squares]:
    """V learns returns that were shifted and scaled."""
    for targets in standardised(loss.targets):
        yield replace(loss, targets=targets)


@SQUARES.mistake("training_loop", change="Ask the critic anew in each minibatch.")
def stored_values_used(loss: Squares) -> Iterator[Squares]:
    """The loss uses the values of the scoring, through which no gradient flows."""
    if loss.values is not None:
        yield replace(loss, new_values=loss.values)


@SQUARES.mistake("training_loop", change="Compute targets once, with the values of the scoring.")
def target_follows_the_critic(loss: Squares) -> Iterator[Squares]:
    """The target is Â plus the new value: it runs away from the critic by every step it makes."""
    if loss.advantages is not None:
        yield replace(loss, targets=loss.advantages + loss.new_values)


@SQUARES.mistake("training_loop", change="Flatten all tensors in the same order.")
def targets_misaligned(loss: Squares) -> Iterator[Squares]:
    """Values and targets are flattened in two orders: each value learns another's target."""
    turned = crosswise(loss.targets, loss.table)
    if turned is not None:
        yield replace(loss, targets=turned)


@SQUARES.mistake("training_loop", change="Divide by the number of samples: take the mean.")
def squares_summed(loss: Squares) -> Iterator[Squares]:
    """The squares are summed: the step grows with the size of the minibatch."""
    yield replace(loss, summed=True)


@SQUARES.mistake("rollout", change="Leave rows that are no steps out of the mean.")
def padding_learned(loss: Squares) -> Iterator[Squares]:
    """Rows that are no steps count in the mean."""
    yield replace(loss, mask=None)


@SQUARES.mistake("rollout", change="Divide by the number of rows that are steps.")
def padding_divides(loss: Squares) -> Iterator[Squares]:
    """The sum leaves rows out that are no steps, and is divided by the number of all rows."""
    if loss.mask is not None:
        yield replace(loss, diluted=True)
        yield replace(loss, diluted=True, factor=2 * loss.factor)


# --- entropy and the sum ------------------------------------------------------------------------


@MEAN.convention("training_loop")
def entropy_as_a_loss(mean: Mean) -> Iterator[Mean]:
    """Minus the entropy, as Stable-Baselines3 logs it; it is added to the sum."""
    yield replace(mean, factor=-1.0)


@MEAN.mistake("training_loop", change="Take the mean over the samples.")
def entropies_summed(mean: Mean) -> Iterator[Mean]:
    """The entropies are summed."""
    yield replace(mean, factor=float(mean.entropies.numel()))


@MEAN.mistake("rollout", change="Leave rows that are no steps out of the mean.")
def padding_in_the_entropy(mean: Mean) -> Iterator[Mean]:
    """Rows that are no steps count in the mean."""
    yield replace(mean, mask=None)


@TOTAL.convention("training_loop")
def coefficient_already_inside(total: Total) -> Iterator[Total]:
    """The value loss is added as it is, since it holds value_coef already."""
    if total.value == total.value_coef and total.value_loss_holds_coef:
        yield replace(total, value=1.0)


@TOTAL.mistake("training_loop", change="Subtract the entropy bonus from what is minimised.")
def entropy_sign_turned(total: Total) -> Iterator[Total]:
    """Entropy is punished: the policy is driven to certainty."""
    yield replace(total, bonus=-total.bonus)


@TOTAL.mistake("training_loop", change="Subtract entropy_coef times the mean entropy.")
def entropy_left_out(total: Total) -> Iterator[Total]:
    """There is no entropy bonus, though entropy_coef is not 0."""
    yield replace(total, bonus=0.0)


@TOTAL.mistake("training_loop", change="Multiply the entropy by entropy_coef.")
def entropy_coef_left_out(total: Total) -> Iterator[Total]:
    """The entropy counts whole."""
    yield replace(total, bonus=-1.0)
    yield replace(total, bonus=1.0)


@TOTAL.mistake("training_loop", change="Add value_coef times the value loss.")
def value_loss_left_out(total: Total) -> Iterator[Total]:
    """The critic is not trained."""
    yield replace(total, value=0.0)


@TOTAL.mistake("training_loop", change="Add value_coef times the value loss.")
def value_sign_turned(total: Total) -> Iterator[Total]:
    """The critic is driven away from its target."""
    yield replace(total, value=-total.value)


@TOTAL.mistake("training_loop", change="Multiply the value loss by value_coef.")
def value_coef_left_out(total: Total) -> Iterator[Total]:
    """The value loss counts whole."""
    yield replace(total, value=1.0)


@TOTAL.mistake("training_loop", change="Use each factor once: the half, and value_coef.")
def value_coef_twice(total: Total) -> Iterator[Total]:
    """The value loss is multiplied by value_coef, or by the half, once more."""
    yield replace(total, value=total.value * total.value_coef)
    yield replace(total, value=total.value / 2)


@TOTAL.mistake(
    "training_loop", change="value_coef weighs the value loss, entropy_coef the entropy."
)
def coefficients_swapped(total: Total) -> Iterator[Total]:
    """The two coefficients stand in each other's place."""
    turned = -total.value_coef if total.bonus < 0 else total.value_coef
    yield replace(total, value=total.entropy_coef, bonus=turned)


@TOTAL.mistake("training_loop", change="Add the policy loss as it is: it has its minus already.")
def policy_sign_turned(total: Total) -> Iterator[Total]:
    """The policy loss is subtracted."""
    yield replace(total, policy=-total.policy)


@TOTAL.mistake("training_loop", change="Add the policy loss.")
def policy_loss_left_out(total: Total) -> Iterator[Total]:
    """The policy is not trained."""
    yield replace(total, policy=0.0)
