"""Lesson 08: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import torch
from torch import Generator, Tensor, nn

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    Made,
    NumbersExercise,
    seeded,
)

UNEVEN, MANY = "sizes that do not divide", "many rows"
COEFFICIENTS, SIGNS = "coefficients", "signs"
LONG, STALE, SHAPES = "a gradient that is too long", "gradients left over", "several weights"
LIMITS = "other limits"
EPOCHS = "several epochs"
MANY_ROWS = 12  # from here on an order that is by chance the old one is too rare to matter


# --- minibatches ---------------------------------------------------------------------------


def deal(
    answer: Callable[..., Any], num_rows: Tensor, num_minibatches: Tensor, *, generator: Generator
) -> Any:
    """Let an answer deal rows several times, and say what came of it.

    Returns:
        Sizes, from large to small; how many rows came never, once, more often; how many indices
        are no row; and, as 1 or 0: rows mixed, another order the next time, the same order with
        the same seed whatever the global state is, another order with another seed. With few rows
        these are 1.
    """
    rows, count = int(num_rows), int(num_minibatches)
    start = generator.get_state()
    torch.manual_seed(1)
    first = read_minibatches(answer(rows, count, generator=generator), rows)
    if not isinstance(first, list):
        return first
    following = read_minibatches(answer(rows, count, generator=generator), rows)
    again = torch.Generator().manual_seed(0)
    again.set_state(start)
    torch.manual_seed(2)
    same = read_minibatches(answer(rows, count, generator=again), rows)
    other = read_minibatches(answer(rows, count, generator=Generator().manual_seed(77)), rows)
    order = torch.cat(first) if first else torch.zeros(0, dtype=torch.int64)
    is_row = (order >= 0) & (order < rows)
    uses = torch.bincount(order[is_row], minlength=rows)
    few = rows < MANY_ROWS
    return (
        torch.tensor(sorted(map(len, first), reverse=True), dtype=torch.float64),
        torch.stack([(uses == 0).sum(), (uses == 1).sum(), (uses > 1).sum()]).double(),
        float((~is_row).sum()),
        float(few or any(map(mixed, first))),
        float(few or not alike(first, following)),
        float(alike(first, same)),
        float(few or not alike(first, other)),
    )


def read_minibatches(returned: Any, num_rows: int) -> Any:
    """List the indices of each minibatch; what is no iterable of indices comes back as it is."""
    if not isinstance(returned, Iterable):
        return returned
    found = []
    for indices in islice(returned, num_rows + 2):
        made = torch.as_tensor(indices)
        if made.ndim != 1 or made.dtype.is_floating_point:
            return returned
        found.append(made.nonzero().flatten() if made.dtype == torch.bool else made.long())
    return found


def mixed(indices: Tensor) -> bool:
    """Whether a minibatch is more than a stretch of neighbouring rows."""
    ordered = indices.sort().values
    return bool((ordered.diff() != 1).any())


def alike(some: Any, others: Any) -> bool:
    """Whether two deals hold the same rows in the same minibatches."""
    return len(some) == len(others) and all(map(torch.equal, some, others))


def deal_case(stage: str, num_rows: int, num_minibatches: int, seed: int) -> Case:
    """One deal."""
    inputs = {"num_rows": num_rows, "num_minibatches": num_minibatches}
    name = f"{num_rows} rows, {num_minibatches} minibatch{'es' * (num_minibatches > 1)}"
    return Case(
        stage=stage,
        name=name,
        inputs=inputs,
        options={"generator": seeded(seed)},
        integers=tuple(inputs),
    )


DEAL_CASES = (
    deal_case(SMALLEST, 4, 2, 1),
    deal_case(SMALLEST, 3, 1, 2),
    deal_case(UNEVEN, 10, 4, 3),
    deal_case(UNEVEN, 5, 2, 4),
    deal_case(UNEVEN, 7, 7, 5),
    deal_case(MANY, 24, 3, 6),
    deal_case(MANY, 40, 6, 7),
    deal_case(MANY, 64, 4, 8),
)

# --- the sum of the losses -----------------------------------------------------------------


def total_case(
    stage: str, name: str, parts: Sequence[float], coefs: Sequence[float], **more: Any
) -> Case:
    """One sum: policy loss, value loss, entropy; c1, c2."""
    names = ["policy_loss", "value_loss", "entropy"]
    inputs = dict(zip(names, parts, strict=True))
    options = dict(zip(["value_coef", "entropy_coef"], coefs, strict=True))
    return Case(stage=stage, name=name, inputs=inputs, options=options, **more)


TOTAL_CASES = (
    total_case(SMALLEST, "the policy's loss alone", (0.5, 0.0, 0.0), (0.5, 0.01)),
    total_case(COEFFICIENTS, "the critic's loss alone", (0.0, 4.0, 0.0), (0.5, 0.1)),
    total_case(COEFFICIENTS, "the entropy alone", (0.0, 0.0, 0.7), (0.5, 0.1)),
    total_case(COEFFICIENTS, "all three", (-0.2, 3.0, 0.6), (0.25, 0.02)),
    total_case(SIGNS, "a policy loss below 0", (-2.0, 1.0, 0.5), (1.0, 1.0)),
    total_case(SIGNS, "an entropy below 0: continuous actions", (0.1, 1.0, -1.5), (0.5, 0.2)),
    total_case(EDGES, "no weight on the critic", (0.3, 5.0, 0.6), (0.0, 0.5)),
    total_case(EDGES, "no weight on the entropy", (0.3, 5.0, 0.6), (0.7, 0.0)),
    total_case(EDGES, "coefficients above 1", (0.3, 2.0, 0.6), (2.0, 3.0)),
    total_case(GRADIENTS, "all three", (-0.2, 3.0, 0.6), (0.25, 0.02), gradients=True),
    total_case(GRADIENTS, "no weights", (-0.2, 3.0, 0.6), (0.0, 0.0), gradients=True),
    total_case(
        SEEDED, "float32", (0.37, 2.9, 0.44), (0.6, 0.3), gradients=True, dtype=torch.float32
    ),
)

# --- one gradient step ---------------------------------------------------------------------


@dataclass(frozen=True)
class Slopes:
    """A loss whose gradient is the same everywhere: the sum of slope times weight.

    Args:
        slopes: one row for each tensor of weights.
    """

    slopes: tuple[tuple[float, ...], ...]

    def of(self, networks: nn.Module) -> Tensor:
        """Compute the loss."""
        pairs = zip(networks.parameters(), self.slopes, strict=True)
        return torch.stack(
            [(weights * weights.new_tensor(row)).sum() for weights, row in pairs]
        ).sum()


@dataclass(frozen=True)
class Weights:
    """What is trained.

    Args:
        start: rows of weights.
        stale: gradients that an earlier call left; none if it is empty.
    """

    start: tuple[tuple[float, ...], ...]
    stale: tuple[tuple[float, ...], ...] = ()

    def build(self) -> nn.ParameterList:
        """Make a module of them."""
        made = nn.ParameterList(
            nn.Parameter(torch.tensor(row, dtype=torch.float64)) for row in self.start
        )
        for weights, row in zip(made, self.stale, strict=False):
            weights.grad = torch.tensor(row, dtype=torch.float64)
        return made


@dataclass(frozen=True)
class Descent:
    """Plain gradient descent.

    Args:
        learning_rate: its step size.
        momentum: how much of the last step comes along.
    """

    learning_rate: float
    momentum: float = 0.0


def two_steps(
    answer: Callable[..., Any],
    loss: Slopes,
    networks: Weights,
    optimizer: Descent,
    *,
    max_grad_norm: float,
) -> Any:
    """Let an answer take two steps.

    Returns:
        The norm and the weights after each of them.
    """
    module = networks.build()
    descent = torch.optim.SGD(
        module.parameters(), lr=optimizer.learning_rate, momentum=optimizer.momentum
    )
    found: list[Any] = []
    for _ in range(2):
        norm = answer(loss.of(module), module, descent, max_grad_norm=max_grad_norm)
        if not isinstance(norm, Tensor) or norm.ndim:
            return norm
        weights = torch.cat([each.detach().flatten() for each in module])
        found += [norm.detach().clone(), weights]
    return tuple(found)


def step_case(
    stage: str,
    name: str,
    slopes: Sequence[Sequence[float]],
    limit: float,
    *,
    start: Sequence[Sequence[float]] = (),
    stale: Sequence[Sequence[float]] = (),
    learning_rate: float = 0.1,
    momentum: float = 0.0,
) -> Case:
    """Two steps along one gradient."""

    def rows(values: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
        return tuple(map(tuple, values))

    start = start or [[0.0] * len(row) for row in slopes]
    words = f"weights {[list(row) for row in start]}"
    if stale:
        words += f" with gradients {[list(row) for row in stale]} left over"
    by = f"gradient descent, learning rate {learning_rate:g}"
    if momentum:
        by += f", momentum {momentum:g}"
    gradient = f"a number whose gradient is {[list(row) for row in slopes]}"
    inputs = {
        "loss": Made(words=gradient, make=lambda: Slopes(rows(slopes))),
        "networks": Made(words=words, make=lambda: Weights(rows(start), rows(stale))),
        "optimizer": Made(words=by, make=lambda: Descent(learning_rate, momentum)),
    }
    return Case(stage=stage, name=name, inputs=inputs, options={"max_grad_norm": limit})


def draw_rows(seed: int, *lengths: int) -> list[list[float]]:
    """Draw rows of numbers with one digit."""
    random = Random(seed)
    return [[round(random.uniform(-3, 3), 1) for _ in range(length)] for length in lengths]


STEP_CASES = (
    step_case(SMALLEST, "a short gradient, one weight", [[0.4]], 0.5),
    step_case(
        SMALLEST, "a short gradient, the weights not 0", [[0.3, 0.4]], 0.8, start=[[2.0, 1.0]]
    ),
    step_case(LONG, "one weight", [[2.0]], 0.5),
    step_case(LONG, "two weights, of length 5", [[3.0, -4.0]], 1.0),
    step_case(LONG, "length 5, limit 2.5", [[3.0, 4.0]], 2.5, start=[[1.0, -1.0]]),
    step_case(STALE, "a short gradient", [[0.4]], 0.5, stale=[[0.3]]),
    step_case(STALE, "a long one", [[3.0, -4.0]], 1.0, stale=[[8.0, 6.0]]),
    step_case(SHAPES, "two tensors, 3 and 4", [[3.0], [4.0]], 1.0),
    step_case(SHAPES, "one long, one short", [[0.3, 0.0], [6.0]], 1.5, start=[[1.0, 2.0], [3.0]]),
    step_case(SHAPES, "momentum", [[3.0], [0.0, 4.0]], 2.0, momentum=0.9),
    step_case(
        SEEDED,
        "two tensors",
        draw_rows(1, 3, 2),
        1.2,
        start=draw_rows(2, 3, 2),
        stale=draw_rows(3, 3, 2),
        learning_rate=0.05,
    ),
    step_case(SEEDED, "a limit that is not reached", draw_rows(4, 2, 2), 20.0, learning_rate=0.01),
)

# --- when to stop --------------------------------------------------------------------------


def ask(answer: Callable[..., Any], kl_k1: Tensor, **options: float) -> Any:
    """Ask with a Python number, as the loop does; 0 and 1 are no and yes."""
    said = answer(float(kl_k1), **options)
    try:  # tensors and numpy have their own kinds of yes and no
        plain = said.item()
    except (AttributeError, RuntimeError, ValueError):
        plain = said
    return torch.tensor(bool(plain)) if type(plain) in (bool, int) else said


def stop_case(stage: str, kl: float, limit: float | None) -> Case:
    """One question; without a limit the loop's own way to ask, so that the default counts."""
    words = "the default limit" if limit is None else f"limit {limit:g}"
    options = {} if limit is None else {"max_kl": limit}
    return Case(stage=stage, name=f"{kl:g} nats, {words}", inputs={"kl_k1": kl}, options=options)


STOP_CASES = (
    stop_case(SMALLEST, 0.001, 0.03),
    stop_case(SMALLEST, 0.05, 0.03),
    stop_case(SIGNS, -0.001, 0.03),
    stop_case(SIGNS, -0.4, 0.03),
    stop_case(SIGNS, 0.0, 0.03),
    stop_case(LIMITS, 0.04, 0.1),
    stop_case(LIMITS, 0.012, 0.01),
    stop_case(LIMITS, 0.008, 0.01),
    stop_case(LIMITS, 0.5, 0.3),
    stop_case(LIMITS, 0.0025, 0.002),
    stop_case(LIMITS, 0.25, 0.3),
    stop_case(LIMITS, 2.0, 1.8),
    stop_case(EDGES, 0.25, 0.25),
    stop_case(EDGES, 0.02, 0.03),
    stop_case(EDGES, 0.031, None),
    stop_case(EDGES, 0.029, None),
)

# --- the loop with a bug -------------------------------------------------------------------


def loop_case(
    stage: str,
    name: str,
    logits: Sequence[float],
    actions: Sequence[int],
    old: Sequence[float],
    advantages: Sequence[float],
    num_epochs: int,
    *,
    epsilon: float = 0.2,
    learning_rate: float = 1.0,
) -> Case:
    """One squeeze."""
    return Case(
        stage=stage,
        name=name,
        inputs={
            "logits": list(logits),
            "actions": list(actions),
            "log_probs_old": list(old),
            "advantages": list(advantages),
        },
        options={
            "num_epochs": num_epochs,
            "clip_epsilon": epsilon,
            "learning_rate": learning_rate,
        },
        integers=("actions",),
    )


HALF, THIRD = -0.693147, -1.098612
LOOP_CASES = (
    loop_case(SMALLEST, "one epoch", [0.0, 0.0], [0, 1], [HALF] * 2, [1.0, -1.0], 1),
    loop_case(SMALLEST, "no epoch", [0.5, 0.0], [0, 1], [HALF] * 2, [1.0, -1.0], 0),
    loop_case(
        SMALLEST,
        "one epoch, four samples",
        [0.0, 0.0, 0.0],
        [0, 1, 2, 0],
        [THIRD] * 4,
        [1.0, -1.0, 0.5, 2.0],
        1,
    ),
    loop_case(EPOCHS, "two epochs", [0.0, 0.0], [0, 1], [HALF] * 2, [1.0, -1.0], 2),
    loop_case(EPOCHS, "five epochs", [0.0, 0.0], [0, 1], [HALF] * 2, [1.0, -1.0], 5),
    loop_case(
        EPOCHS,
        "three epochs, five samples",
        [0.0, 0.0, 0.0],
        [0, 1, 2, 0, 1],
        [THIRD] * 5,
        [1.0, -1.0, 0.5, 2.0, -0.4],
        3,
    ),
    loop_case(
        EDGES,
        "a batch of another policy",
        [0.2, 0.0, -0.4],
        [0, 2, 1, 1],
        [-0.9, -1.3, -1.1, -1.1],
        [1.0, -2.0, 0.7, 0.3],
        2,
    ),
    loop_case(
        EDGES,
        "a wide clip",
        [0.0, 0.0],
        [0, 1, 0],
        [HALF] * 3,
        [1.0, -0.5, 0.4],
        4,
        epsilon=0.9,
        learning_rate=0.5,
    ),
    loop_case(
        EDGES,
        "small steps",
        [0.0, 1.0],
        [1, 0, 0, 1],
        [-0.313262, -1.313262, -1.313262, -0.313262],
        [0.5, 1.5, -1.0, 2.0],
        6,
        learning_rate=0.1,
    ),
    loop_case(
        SEEDED,
        "10 samples, 8 epochs",
        draw_rows(5, 3)[0],
        [0, 1, 2, 2, 1, 0, 0, 1, 2, 0],
        [round(-0.4 - abs(each) / 2, 2) for each in draw_rows(6, 10)[0]],
        draw_rows(7, 10)[0],
        8,
        learning_rate=0.3,
    ),
)

# --- mistakes in words ---------------------------------------------------------------------

DEAL_MISTAKES = {
    "not_shuffled": "The rows come in their old order. Neighbouring rows are neighbouring steps: "
    "shuffle them before you deal.",
    "global_randomness": "It draws from torch's global generator: the same seed does not give the "
    "same run. Draw from the generator that is given.",
    "same_order_every_time": "Each epoch gets the same order. Draw a new one at each call, and let "
    "the generator move on.",
    "drawn_with_replacement": "Some rows come twice and others not at all. Each row comes exactly "
    "once in an epoch.",
    "last_rows_dropped": "The rows that are left over are dropped. Every row comes once; let some "
    "minibatches be larger by one.",
    "one_minibatch_too_many": "The rows that are left over make a minibatch of their own: there is "
    "one too many. Let some minibatches be larger by one.",
    "blocks_shuffled": "It shuffles the minibatches, and inside each the rows are neighbours as "
    "before. Shuffle the rows.",
    "shuffled_inside_the_blocks": "It shuffles inside each minibatch only, so the same rows always "
    "meet. Shuffle first, deal afterwards.",
    "number_taken_for_size": "It makes minibatches of that size. Asked for is that many of them.",
    "counted_from_one": "The first row is 0, and there is none with the number num_rows.",
    "sizes_uneven": "The sizes differ by more than one: the last minibatch is the small rest.",
    "last_row_missing": "The last row never comes. There are num_rows of them, from 0 on.",
    "minibatches_overlap": "Neighbouring minibatches share a row. A slice ends before its end.",
    "one_minibatch_only": "It gives one minibatch and stops. Give all of them.",
    "one_row_each": "Each minibatch holds a single row.",
    "whole_batch_each_time": "Each minibatch is the whole batch. Deal the rows out.",
    "batch_not_dealt": "It gives the shuffled rows as one minibatch. Cut them into several.",
}
TOTAL_MISTAKES = {
    "entropy_sign_turned": "The entropy is added. What is added to a loss is made small; an "
    "undecided policy is to be rewarded.",
    "value_sign_turned": "The value loss is subtracted: the critic would learn to be wrong.",
    "policy_sign_turned": "The policy's loss has its sign turned. It is a loss already.",
    "objective_for_the_loss": "All signs are those of an objective. This is minimised.",
    "value_coef_missing": "The value loss has no coefficient.",
    "entropy_coef_missing": "The entropy has no coefficient.",
    "coefficients_exchanged": "The two coefficients are exchanged.",
    "coefficients_missing": "Both coefficients are missing. They say how much each part weighs.",
    "halved_again": "The value loss is halved. The half is in it already.",
    "value_forgotten": "The value loss is missing, so the critic never learns.",
    "entropy_forgotten": "The entropy is missing: nothing rewards an undecided policy.",
    "policy_forgotten": "The policy's loss is missing: the policy would not learn.",
    "mean_of_three": "It divides by 3. The loss is a sum.",
    "coefficients_fixed": "It uses coefficients of its own, and not those that are given.",
    "entropy_without_gradient": "The number is right, and no gradient reaches the entropy: it "
    "would be a number in the log and nothing more.",
    "value_without_gradient": "The number is right, and no gradient reaches the value loss: the "
    "critic would not learn.",
    "absolute_value": "It takes the size of the policy's loss. That may be below 0, and often is.",
    "coefficient_on_the_policy": "A coefficient stands before the policy's loss, too.",
    "weights_made_to_sum_to_one": "It divides by the sum of the coefficients. Add up as it stands.",
}
STEP_MISTAKES = {
    "clipped_before_backward": "It shortens before there is a gradient. backward() makes it.",
    "gradients_added_up": "Old gradients are not taken away: backward() adds to what is there. "
    "Clear them first.",
    "cleared_after_backward": "It clears the gradients that backward() has made: the step has "
    "nothing to go by.",
    "cleared_at_the_end": "It clears gradients after the step, so what was there before the first "
    "call is counted. Clear them before backward().",
    "not_clipped_in_time": "The step goes along the whole gradient, however long it is. It must be "
    "shortened, and before the step.",
    "each_number_clipped": "It cuts each number of the gradient by itself, and so turns its "
    "direction. Shorten the whole gradient.",
    "each_tensor_by_itself": "It shortens each tensor of weights by itself. There is one gradient, "
    "and its length is that of all tensors together.",
    "always_brought_to_the_limit": "A short gradient is made longer. Only those beyond the limit "
    "are changed.",
    "always_of_length_one": "It gives every gradient the length 1. Shorten those beyond the limit, "
    "to the limit.",
    "norm_after_clipping": "It returns the length after shortening. The one before is the "
    "diagnostic.",
    "loss_returned": "It returns the loss. Asked for is the length of the gradient.",
    "step_forgotten": "No step is taken, so nothing is learned.",
    "backward_forgotten": "backward() is missing: there is no gradient.",
    "uphill": "It climbs. The optimiser goes down the loss that is given; leave its sign.",
    "one_step_late": "It steps before backward(), along the gradient of the last call.",
    "two_steps_for_one": "It takes two steps with the optimiser. One call is one step.",
    "squared_norm": "It returns the square of the length.",
    "loss_clipped": "It cuts the loss off. Too long is the gradient, whatever the loss is.",
    "limit_ignored": "It uses a limit of its own. Use max_grad_norm.",
    "norm_of_the_weights": "It measures the weights. Asked for is the length of their gradient.",
    "largest_number": "It takes the largest number of the gradient for its length. The length is "
    "the root of the sum of the squares.",
    "weights_clipped": "It shortens the weights themselves. Shorten their gradient.",
}
STOP_MISTAKES = {
    "stops_when_near": "It stops while the policy is near and goes on when it is far.",
    "absolute_value": "It takes the size. An estimate below 0 is noise around a small distance, "
    "and no reason to stop.",
    "stops_at_the_limit": "Exactly at the limit the epochs go on.",
    "limit_ignored": "It has a limit of its own. Use max_kl.",
    "one_and_a_half_times": "It allows one and a half times the limit. Some programs do so; here "
    "the limit is max_kl.",
    "half_the_limit": "It stops at half the limit. Use max_kl as it is.",
    "never": "It never stops, however far the policy has gone.",
    "always": "It always stops: each batch is used once.",
    "sign_turned_before": "It turns the sign first. kl_k1 is minus the mean log-ratio already.",
    "any_move": "It stops as soon as the estimate is above 0.",
    "squared": "It squares the estimate first. Compare nats with nats.",
    "in_bits": "It changes nats into bits first. Both numbers are in nats.",
    "root_taken": "It takes the root first. Compare nats with nats.",
}
LOOP_MISTAKES = {
    "old_policy_renewed_each_epoch": "Every epoch begins with ratios of 1, so the clip measures "
    "the way from the last epoch. The old log-probabilities were written down once, while "
    "sampling.",
    "old_policy_renewed_each_step": "Every ratio is 1, so the clip never acts: what is left is "
    "REINFORCE. The old log-probabilities were written down once, while sampling.",
    "old_policy_renewed_at_the_start": "It recomputes the old log-probabilities before the first "
    "epoch. That is right as long as the batch is its own; the given ones were written down by "
    "the policy that drew it.",
    "not_clipped": "The clip is gone. It was right in the given lines.",
    "minimum_forgotten": "The minimum is gone, so a sample that went the wrong way is never pulled "
    "back. It was right in the given lines.",
    "climbs_down": "The sign is turned. It was right in the given lines.",
    "summed": "It adds up over the minibatch. The given lines took the mean.",
    "one_epoch_only": "It does the work of one epoch: it stops after it, or starts anew each time.",
    "first_minibatch_only": "It uses the first minibatch of each epoch and no other.",
    "whole_batch_at_once": "It takes one step per epoch, on the whole batch. There are two "
    "minibatches.",
    "rows_of_the_wrong_minibatch": "The old log-probabilities are those of the first rows, "
    "whichever rows the minibatch holds.",
    "old_policy_is_uniform": "It takes all actions for equally likely under the old policy.",
    "one_epoch_behind": "The old policy is that of one epoch ago. It is the one that drew the "
    "batch.",
}
NUMBER_MISTAKES = {
    "environments_forgotten": "You counted the steps of one environment. All N of them step.",
    "rounded_up": "You counted an iteration that no longer fits into the budget. The incomplete "
    "one is left out.",
    "budget_taken_as_used": "You gave the budget. What is used are whole iterations.",
    "epochs_forgotten": "You counted the optimiser steps of one epoch per iteration.",
    "size_taken_for_number": "You took the size of a minibatch for the number of minibatches.",
    "minibatches_counted": "You multiplied by the number of minibatches. In one epoch a sample is "
    "in one of them.",
    "each_epoch_starts_at_one": "You counted one per epoch. From the first step on, the policy is "
    "no longer the one that drew the batch.",
    "first_epoch_all_ones": "You counted the whole first epoch. Its second minibatch comes after a "
    "step.",
    "step_priced_once_for_all": "You paid once for all N environments. Each step of each has its "
    "price.",
    "share_of_the_squeeze": "You gave the share of squeezing. Asked for is that of collecting.",
    "ratio_of_the_two": "You divided the one time by the other. A share is a part of both "
    "together.",
    "squeeze_forgotten_for_few_epochs": "You forgot that K = 2 squeezes, too.",
    "per_iteration": "You compared one iteration of each. They need different numbers of "
    "iterations.",
    "in_seconds": "You gave seconds. Milliseconds are asked for.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="training_loop.shuffled_minibatches",
        cases=DEAL_CASES,
        gives="several",
        parts=(
            "sizes",
            "rows that come never, once, more often",
            "indices that are no row",
            "rows mixed (1 yes, 0 no)",
            "another order at the next call (1 yes, 0 no)",
            "the same order for the same seed (1 yes, 0 no)",
            "another order for another seed (1 yes, 0 no)",
        ),
        returns="something to loop over that gives the indices of each minibatch: one-dimensional "
        "tensors of integers",
        through=deal,
        mistakes=DEAL_MISTAKES,
        hints=(
            "Two steps: bring the numbers from 0 to B − 1 into a random order, then cut that row "
            "into pieces.",
            "There is a function for a random permutation, which takes a generator. And a tensor "
            "can be split into a number of parts whose sizes differ by at most one.",
            "permutation of (0, …, B − 1), cut into M parts: sizes ⌈B/M⌉ or ⌊B/M⌋, Σ sizes = B",
        ),
    ),
    FunctionExercise(
        id="training_loop.ppo_loss",
        cases=TOTAL_CASES,
        gives="scalar",
        learns=("policy_loss", "value_loss", "entropy"),
        mistakes=TOTAL_MISTAKES,
        hints=(
            "Two of the three are losses already, and one is something you want more of.",
            "What you want more of is subtracted from what is made small.",
            "loss = policy loss + c₁·value loss − c₂·entropy",
        ),
    ),
    FunctionExercise(
        id="training_loop.clipped_gradient_step",
        cases=STEP_CASES,
        gives="several",
        parts=(
            "norm at the first call",
            "weights after it",
            "norm at the second call",
            "weights after it",
        ),
        returns="the length of the gradient before it was shortened, a tensor of shape ()",
        through=two_steps,
        mistakes=STEP_MISTAKES,
        hints=(
            "Four things happen, each in one line. Which of them needs the result of which?",
            "Clear, then make the gradient, then shorten it, then step. What the library has to "
            "shorten it gives the length that was there before.",
            "g ← g·min(1, c / |g|),  |g| = √(Σ g²) over all weights together",
        ),
    ),
    FunctionExercise(
        id="training_loop.stop_epochs",
        cases=STOP_CASES,
        gives="tensor",
        kind="yes or no",
        returns="True or False",
        through=ask,
        mistakes=STOP_MISTAKES,
        hints=(
            "What makes a further epoch dangerous: that the policy is near, or that it is far?",
            "The estimate is a mean over an epoch and may lie below 0. Then the policy is near.",
            "stop ⇔ k1 − max_kl lies above 0; at k1 = max_kl it goes on",
        ),
    ),
    FunctionExercise(
        id="training_loop.mended_epochs",
        cases=LOOP_CASES,
        gives="tensor",
        returns="the logits after all epochs, a torch.Tensor of the shape of those given",
        mistakes=LOOP_MISTAKES,
        starts_with="old_policy_renewed_each_epoch",
        hints=(
            "Print the ratios on the first minibatch of each epoch. On how many should all be 1?",
            "π_old is the policy that drew the batch. Which line makes it another one?",
            "ρ = exp( log π − log π_old ), with the same log π_old in every epoch",
        ),
    ),
    NumbersExercise(
        id="training_loop.numbers_of_a_run",
        questions={
            "a": ("samples of one iteration", "How many environments step, and how often?"),
            "b": ("iterations of the run", "How many whole rollouts fit into the budget?"),
            "c": (
                "environment steps that the run really takes",
                "Whole iterations only, each with as many samples as in a.",
            ),
            "d": (
                "optimiser steps of the run",
                "One for each minibatch, in each epoch, in each iteration.",
            ),
            "e": ("how often a sample is used before it is thrown away", "Once in each epoch."),
            "f": (
                "minibatches of the run on which all ratios are 1",
                "When is the policy exactly the one that drew the batch?",
            ),
            "g": (
                "share of collecting",
                "Time for all samples of an iteration, over that plus the time for its optimiser "
                "steps.",
            ),
            "h": (
                "price of a step at which K = 2 and K = 10 are equally fast",
                "For each K: steps times (price + squeezing per sample). Set the two equal.",
            ),
        },
        tolerance=0.002,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "Begin with the samples of one iteration and the optimiser steps of one iteration. "
            "All else is made from these two.",
            "For h, write the time of a whole run as steps times what one step costs: its price, "
            "and its share of the squeeze.",
            "h: S₂·(c + 2·M·u / B) = S₁₀·(c + 10·M·u / B), with u for one optimiser step",
        ),
    ),
)
