"""Lesson 03: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Callable, Mapping, Sequence
from math import log
from random import Random
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    Made,
    NumbersExercise,
    draw,
)

DIRECTION, ZEROS, STATES = "which policy stands first", "probabilities of 0", "several states"
LENGTH, MATRIX = "how long the step is", "several parameters"
MOVED, PRICE = "which way it moved", "the price"
OUTSIDE, INSIDE, NOISE = "outside the band", "inside the band", "estimates below 0"
LIMIT, GAIN, TRIES = "the KL", "the improvement", "running out of tries"
ACTIONS, VISITS = "actions", "visits"


# --- numbers that are drawn ----------------------------------------------------------------


def draw_policy(random: Random, num_states: int, num_actions: int) -> list[list[float]]:
    """Draw rows of probabilities with three digits, none of them near 0."""
    rows = []
    for _ in range(num_states):
        weights = [random.uniform(0.2, 2) for _ in range(num_actions)]
        row = [round(weight / sum(weights), 3) for weight in weights[1:]]
        rows.append([round(1 - sum(row), 3), *row])
    return rows


def draw_fisher(random: Random, size: int) -> list[list[float]]:
    """Draw a symmetric matrix that has an inverse, with four digits."""
    factor = draw(random, size, size, low=-1, high=1)
    return [
        [
            round(sum(a * b for a, b in zip(one, other, strict=True)) + 0.3 * (i == j), 4)
            for j, other in enumerate(factor)
        ]
        for i, one in enumerate(factor)
    ]


def logs(probabilities: Any) -> Any:
    """Take logarithms of nested lists, to six digits."""
    if isinstance(probabilities, list):
        return [logs(each) for each in probabilities]
    return round(log(probabilities), 6)


# --- cases ---------------------------------------------------------------------------------


def kl_case(stage: str, name: str, old: Any, new: Any, **more: Any) -> Case:
    """One call with two policies [S, A], the old one first."""
    return Case(stage=stage, name=name, inputs={"policy_old": old, "policy": new}, **more)


KL_CASES = (
    kl_case(SMALLEST, "nothing has moved", [[0.5, 0.5]], [[0.5, 0.5]]),
    kl_case(SMALLEST, "from 0.5 to 0.8", [[0.5, 0.5]], [[0.8, 0.2]]),
    kl_case(DIRECTION, "from 0.8 to 0.5", [[0.8, 0.2]], [[0.5, 0.5]]),
    kl_case(DIRECTION, "three actions", [[0.7, 0.2, 0.1]], [[0.2, 0.5, 0.3]]),
    kl_case(STATES, "two states", [[0.5, 0.5], [0.9, 0.1]], [[0.8, 0.2], [0.6, 0.4]]),
    kl_case(
        STATES,
        "two states, three actions",
        [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]],
        [[0.2, 0.4, 0.4], [0.3, 0.3, 0.4]],
    ),
    kl_case(
        STATES,
        "three states, the first of them the same",
        [[0.5, 0.5], [0.2, 0.8], [0.6, 0.4]],
        [[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]],
    ),
    kl_case(ZEROS, "an action that the old policy never took", [[1.0, 0.0]], [[0.8, 0.2]]),
    kl_case(ZEROS, "an action that neither takes", [[0.5, 0.5, 0.0]], [[0.8, 0.2, 0.0]]),
    kl_case(ZEROS, "the new policy has given an action up", [[0.5, 0.5]], [[1.0, 0.0]]),
    kl_case(
        ZEROS,
        "given up in one state of two",
        [[0.5, 0.5], [0.5, 0.5]],
        [[0.0, 1.0], [0.8, 0.2]],
    ),
    kl_case(EDGES, "an action at 10⁻¹²", [[0.5, 0.5]], [[1 - 1e-12, 1e-12]]),
    kl_case(
        SEEDED, "5 states, 3 actions", draw_policy(Random(1), 5, 3), draw_policy(Random(2), 5, 3)
    ),
    kl_case(
        SEEDED,
        "float32, 3 states, 4 actions",
        draw_policy(Random(3), 3, 4),
        draw_policy(Random(4), 3, 4),
        dtype=torch.float32,
    ),
)


def step_case(
    stage: str, name: str, gradient: Sequence[float], fisher: Any, max_kl: float, **more: Any
) -> Case:
    """One call with a gradient [P] and a matrix [P, P]."""
    inputs = {"gradient": list(gradient), "fisher": fisher}
    return Case(stage=stage, name=name, inputs=inputs, options={"max_kl": max_kl}, **more)


STEP_CASES = (
    step_case(SMALLEST, "one parameter, F is 1", [1.0], [[1.0]], 0.5),
    step_case(LENGTH, "one parameter, F is 4", [1.0], [[4.0]], 0.5),
    step_case(LENGTH, "a gradient three times as long", [3.0], [[4.0]], 0.5),
    step_case(LENGTH, "a slope that falls", [-2.0], [[4.0]], 0.5),
    step_case(LENGTH, "a smaller ball", [1.0], [[4.0]], 0.02),
    step_case(LENGTH, "a policy that is nearly certain", [0.01], [[0.0004]], 0.02),
    step_case(MATRIX, "two that act alone", [1.0, 1.0], [[4.0, 0.0], [0.0, 1.0]], 0.5),
    step_case(MATRIX, "two that act together", [1.0, 0.0], [[2.0, 1.0], [1.0, 2.0]], 0.5),
    step_case(
        MATRIX,
        "three",
        [1.0, -2.0, 0.5],
        [[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 4.0]],
        0.02,
    ),
    step_case(EDGES, "a gradient of zero", [0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]], 0.5),
    step_case(
        EDGES, "one that hardly changes the policy", [1.0, 0.02], [[1.0, 0.0], [0.0, 0.0005]], 0.1
    ),
    step_case(EDGES, "a long gradient", [300.0, 100.0], [[2.0, 1.0], [1.0, 2.0]], 0.02),
    step_case(SEEDED, "4 parameters", draw(Random(5), 4), draw_fisher(Random(6), 4), 0.05),
    step_case(
        SEEDED,
        "float32, 3 parameters",
        draw(Random(7), 3),
        draw_fisher(Random(8), 3),
        0.3,
        dtype=torch.float32,
    ),
)


def loss_case(
    stage: str, name: str, new: Any, old: Any, advantages: Any, beta: float, **more: Any
) -> Case:
    """One call of the loss with a price."""
    inputs = {"log_probs": new, "log_probs_old": old, "advantages": advantages}
    return Case(stage=stage, name=name, inputs=inputs, options={"beta": beta}, **more)


UP, DOWN = (logs([0.5]), logs([0.25])), (logs([0.25]), logs([0.5]))
PAIR = (logs([0.5, 0.1]), logs([0.25, 0.2]))
TWO_AXES = (logs([[0.5, 0.1, 0.2], [0.3, 0.4, 0.6]]), logs([[0.25, 0.2, 0.2], [0.6, 0.1, 0.5]]))
LOSS_CASES = (
    loss_case(SMALLEST, "nothing has moved", logs([0.5]), logs([0.5]), [2.0], 1.0),
    loss_case(MOVED, "a good action, from 0.25 to 0.5", *UP, [1.0], 1.0),
    loss_case(MOVED, "a good action, from 0.5 to 0.25", *DOWN, [1.0], 1.0),
    loss_case(MOVED, "a bad action, from 0.25 to 0.5", *UP, [-1.0], 1.0),
    loss_case(PRICE, "a price of 4", *UP, [1.0], 4.0),
    loss_case(PRICE, "a price of 0.5, an advantage of 3", *DOWN, [3.0], 0.5),
    loss_case(PRICE, "an advantage of 0", *UP, [0.0], 2.0),
    loss_case(EDGES, "two samples", *PAIR, [1.0, 3.0], 2.0),
    loss_case(
        EDGES,
        "the same two samples twice",
        logs([0.5, 0.1] * 2),
        logs([0.25, 0.2] * 2),
        [1.0, 3.0] * 2,
        2.0,
    ),
    loss_case(EDGES, "two equal advantages", *PAIR, [2.0, 2.0], 2.0),
    loss_case(EDGES, "far away: from 0.05 to 0.9", logs([0.9]), logs([0.05]), [1.0], 0.5),
    loss_case(EDGES, "probabilities too small for a float", [-800.5], [-800.0], [1.0], 3.0),
    loss_case(EDGES, "two axes", *TWO_AXES, [[1.0, 3.0, -1.0], [2.0, -2.0, 0.5]], 2.0),
    loss_case(GRADIENTS, "nothing has moved", logs([0.5]), logs([0.5]), [2.0], 3.0, gradients=True),
    loss_case(GRADIENTS, "from 0.25 to 0.5", *UP, [2.0], 3.0, gradients=True),
    loss_case(GRADIENTS, "from 0.5 to 0.25", *DOWN, [2.0], 3.0, gradients=True),
    loss_case(GRADIENTS, "two samples", *PAIR, [1.0, -3.0], 2.0, gradients=True),
    loss_case(
        SEEDED,
        "12 samples",
        draw(Random(9), 12, low=-3, high=-0.1),
        draw(Random(10), 12, low=-3, high=-0.1),
        draw(Random(11), 12, low=-3, high=3),
        1.5,
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(12), 4, 3, low=-3, high=-0.1),
        draw(Random(13), 4, 3, low=-3, high=-0.1),
        draw(Random(14), 4, 3, low=-3, high=3),
        0.7,
        gradients=True,
        dtype=torch.float32,
    ),
)


def beta_case(stage: str, name: str, beta: float, kl: float, target_kl: float) -> Case:
    """One call with Python numbers."""
    options = {"beta": beta, "kl": kl, "target_kl": target_kl}
    return Case(stage=stage, name=name, inputs={}, options=options)


BETA_CASES = (
    beta_case(SMALLEST, "as wanted", 1.0, 0.01, 0.01),
    beta_case(OUTSIDE, "much too far", 1.0, 0.05, 0.01),
    beta_case(OUTSIDE, "much too near", 1.0, 0.001, 0.01),
    beta_case(OUTSIDE, "a little outside, too far", 3.0, 0.016, 0.01),
    beta_case(OUTSIDE, "a little outside, too near", 3.0, 0.0064, 0.01),
    beta_case(INSIDE, "a little farther than wanted", 3.0, 0.014, 0.01),
    beta_case(INSIDE, "a little nearer than wanted", 3.0, 0.007, 0.01),
    beta_case(INSIDE, "at the upper edge", 5.0, 1.5, 1.0),
    beta_case(INSIDE, "at the lower edge", 5.0, 2.0, 3.0),
    beta_case(NOISE, "an estimate of 0", 8.0, 0.0, 0.01),
    beta_case(NOISE, "an estimate a little below 0", 8.0, -0.01, 0.01),
    beta_case(NOISE, "an estimate far below 0", 8.0, -0.05, 0.01),
    beta_case(EDGES, "a high price, too far", 1000.0, 0.2, 0.05),
    beta_case(EDGES, "a low price, too near", 0.001, 0.001, 0.05),
    beta_case(SEEDED, "a large target, too far", 0.7, 3.9, 2.0),
    beta_case(SEEDED, "a large target, too near", 0.7, 1.2, 2.0),
    beta_case(SEEDED, "a small target, inside", 12.5, 0.0028, 0.002),
)


def curve(words: str, function: Callable[[Tensor], Tensor]) -> Made:
    """Give a function of the parameters."""
    return Made(words=words, make=lambda: function)


def search_case(
    stage: str,
    name: str,
    parameters: Sequence[float],
    step: Sequence[float],
    improvement: Made,
    kl: Made,
    **settings: Any,
) -> Case:
    """One search along a step; two callables come by keyword."""
    options = {"max_kl": 0.1, "shrink": 0.5, "max_tries": 4} | settings
    more = {"dtype": options.pop("dtype")} if "dtype" in options else {}
    return Case(
        stage=stage,
        name=name,
        inputs={"parameters": list(parameters), "step": list(step)},
        options={"improvement": improvement, "kl": kl, **options},
        **more,
    )


STRAIGHT = curve("θ", lambda theta: theta.sum())
BENT = curve("θ − 2·θ²", lambda theta: theta.sum() - 2 * (theta**2).sum())
HUMP = curve("θ·(1.2 − θ)", lambda theta: (theta * (1.2 - theta)).sum())
VALLEY = curve("θ·(θ − 1.2)", lambda theta: (theta * (theta - 1.2)).sum())
FALLING = curve("−θ", lambda theta: -theta.sum())
FLAT = curve("0", lambda theta: 0 * theta.sum())
SMALL = curve("0.05·θ²", lambda theta: 0.05 * (theta**2).sum())
SQUARE = curve("θ²", lambda theta: (theta**2).sum())
START, AWAY = [1.0, 2.0], [0.5, -1.0]
AROUND = curve(
    "the sum of (θ − [1, 2])²", lambda theta: ((theta - theta.new_tensor(START)) ** 2).sum()
)
FIRST = curve(
    "the first θ − 1 − (the first θ − 1)²·1.9",
    lambda theta: theta[0] - 1 - 1.9 * (theta[0] - 1) ** 2,
)
SEARCH_CASES = (
    search_case(SMALLEST, "the full step passes", [0.0], [1.0], STRAIGHT, SMALL),
    search_case(LIMIT, "the full step is too far", [0.0], [1.0], STRAIGHT, SQUARE, max_kl=0.3),
    search_case(LIMIT, "an eighth passes", [0.0], [1.0], STRAIGHT, SQUARE, max_kl=0.02),
    search_case(LIMIT, "the KL is the limit itself", [0.0], [1.0], STRAIGHT, SQUARE, max_kl=0.25),
    search_case(GAIN, "L rises near the start only", [0.0], [1.0], BENT, SMALL),
    search_case(GAIN, "L falls everywhere", [0.0], [1.0], FALLING, SMALL),
    search_case(GAIN, "L rises beyond the step only", [0.0], [1.0], VALLEY, SMALL, max_kl=1.0),
    search_case(GAIN, "L does not move", [0.0], [1.0], FLAT, SMALL),
    search_case(GAIN, "half of the step would gain more", [0.0], [1.0], HUMP, SMALL),
    search_case(TRIES, "none is near enough", [0.0], [1.0], STRAIGHT, SQUARE, max_kl=0.01),
    search_case(TRIES, "one try, and it fails", [0.0], [1.0], STRAIGHT, SQUARE, max_tries=1),
    search_case(
        TRIES, "the third of three", [0.0], [1.0], STRAIGHT, SQUARE, max_kl=0.07, max_tries=3
    ),
    search_case(
        EDGES,
        "a factor of 0.8",
        [0.0],
        [1.0],
        STRAIGHT,
        SQUARE,
        shrink=0.8,
        max_tries=8,
        max_kl=0.2,
    ),
    search_case(EDGES, "another start", START, AWAY, FIRST, AROUND, max_kl=0.9),
    search_case(EDGES, "another start, and near only", START, AWAY, FIRST, AROUND, max_kl=0.05),
    search_case(
        SEEDED,
        "a factor of 0.7, float32",
        START,
        [0.9, 0.4],
        FIRST,
        AROUND,
        max_kl=0.11,
        shrink=0.7,
        max_tries=9,
        dtype=torch.float32,
    ),
)


def product_case(
    stage: str, name: str, logits: Any, visits: Sequence[float], vector: Any, **more: Any
) -> Case:
    """One call with logits [S, A], visits [S] and a vector [S, A]."""
    inputs = {"logits": logits, "state_visits": list(visits), "vector": vector}
    return Case(stage=stage, name=name, inputs=inputs, **more)


LOG_3 = round(log(3), 6)
PRODUCT_CASES = (
    product_case(SMALLEST, "one state, two equal actions", [[0.0, 0.0]], [1.0], [[1.0, 0.0]]),
    product_case(ACTIONS, "the same number for both", [[0.0, 0.0]], [1.0], [[2.0, 2.0]]),
    product_case(ACTIONS, "probabilities 1/4 and 3/4", [[0.0, LOG_3]], [1.0], [[4.0, 0.0]]),
    product_case(ACTIONS, "1/4 and 3/4, both moved", [[0.0, LOG_3]], [1.0], [[1.0, -3.0]]),
    product_case(ACTIONS, "three actions", [[0.0, 1.0, -1.0]], [1.0], [[1.0, 2.0, -1.0]]),
    product_case(VISITS, "four visits of the only state", [[0.0, 0.0]], [4.0], [[1.0, 0.0]]),
    product_case(
        VISITS,
        "two states, one of them visited three times as often",
        [[0.0, 0.0], [0.0, LOG_3]],
        [1.0, 3.0],
        [[1.0, 0.0], [4.0, 1.0]],
    ),
    product_case(
        VISITS,
        "a state that is never visited",
        [[0.0, 0.0], [0.0, LOG_3]],
        [2.0, 0.0],
        [[1.0, 0.0], [4.0, 1.0]],
    ),
    product_case(EDGES, "large logits", [[1000.0, 999.0]], [1.0], [[1.0, 0.0]]),
    product_case(EDGES, "a long vector", [[0.0, 1.0]], [1.0], [[300.0, -100.0]]),
    product_case(
        EDGES,
        "three states, two actions",
        [[0.0, 1.0], [0.5, 0.0], [2.0, 0.0]],
        [1.0, 0.5, 2.0],
        [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]],
    ),
    product_case(
        SEEDED,
        "4 states, 3 actions",
        draw(Random(15), 4, 3),
        draw(Random(16), 4, low=0.1, high=3),
        draw(Random(17), 4, 3),
    ),
    product_case(
        SEEDED,
        "float32, 2 states, 5 actions",
        draw(Random(18), 2, 5),
        draw(Random(19), 2, low=0.1, high=3),
        draw(Random(20), 2, 5),
        dtype=torch.float32,
    ),
)

# --- mistakes in words ---------------------------------------------------------------------

KL_MISTAKES = {
    "order_exchanged": "It is the KL of the other order. The old policy stands first: its "
    "probabilities weight the sum, and it grows without limit where an old action dies.",
    "weighted_by_the_new_policy": "The logarithms are weighted with the new policy. The old one "
    "drew the actions, so its probabilities weight them.",
    "not_weighted": "Every action counts once. Weight each by how often the old policy takes it.",
    "sign_turned": "The sign is turned. A KL is never below 0: log old minus log new.",
    "averaged_over_the_actions": "It divides by the number of actions. The probabilities are the "
    "weights of the mean already: add up.",
    "summed_over_the_states": "It adds up over the states. Asked for is one KL per state: the sum "
    "runs over the actions, the last axis.",
    "averaged_over_the_states": "It averages over the states. Asked for is one KL per state; how "
    "they are weighted is decided later.",
    "both_orders_averaged": "It averages both orders. Asked for is the one in which the old policy "
    "stands first.",
    "in_bits": "These are bits. Natural logarithms give nats.",
    "cross_entropy": "It is the mean of −log π. Subtract the same of the old policy itself: where "
    "nothing has moved, 0 must come out.",
    "zero_times_infinity": "It gives NaN where a probability is 0: 0 times infinity, or infinity "
    "minus infinity. An action that the old policy never takes counts 0, whatever the new one "
    "does.",
    "infinity_hidden": "A small number was added, or something was cut off, to keep the logarithm "
    "of 0 away. Where the new policy gives up an old action, the KL is infinite: that is what you "
    "want to be told.",
    "half_the_squares": "It is the parabola that the KL looks like nearby, half the mean of the "
    "squared relative change. Further away the logarithms are needed.",
    "absolute_difference": "It adds up differences of probabilities. From 0.01 to 0.02 is a larger "
    "change of behaviour than from 0.50 to 0.51: compare logarithms.",
    "difference_of_entropies": "It subtracts two entropies. A policy that prefers another action "
    "as strongly has the same entropy, and is not the same.",
    "softmax_of_probabilities": "It takes a softmax of probabilities. They are probabilities "
    "already.",
    "probability_for_the_logarithm": "The new probability stands where its logarithm belongs: "
    "torch's kl_div wants a logarithm first.",
    "one_action_only": "It looks at one action. The sum runs over all actions of a state.",
    "squared_log_ratio": "It is half the mean of the squared logarithm: the estimate k2, near the "
    "KL and not equal to it.",
}
STEP_MISTAKES = {
    "plain_direction": "The direction is the plain gradient's. F says which directions are cheap: "
    "solve F·d = g for the direction.",
    "multiplied_by_fisher": "It multiplies by F. The direction is F⁻¹·g: where behaviour changes "
    "fast, step less.",
    "diagonal_only": "It uses the diagonal of F alone. Parameters that act together are taken for "
    "independent ones.",
    "entries_inverted": "It inverts each entry of F. The inverse of a matrix is another thing: "
    "solve F·d = g.",
    "heavily_damped": "Something was added to the diagonal of F. Here F has an inverse, and what "
    "is added changes the direction.",
    "half_forgotten": "The half of the parabola is missing: the KL comes out half as large as "
    "allowed. ½·d·F·d is the KL.",
    "root_forgotten": "The square root is missing: with a gradient three times as long the step "
    "changes. A KL grows with the square of a step.",
    "length_in_parameters": "The length is measured in parameters. Measure it in behaviour: with "
    "the parabola of the KL.",
    "not_scaled": "It is F⁻¹·g itself, of whatever length. Stretch it until its KL is as large as "
    "allowed.",
    "downhill": "It goes down. The gradient is that of an objective: add the step to climb.",
    "zero_over_zero": "Where the gradient is zero it gives NaN. There is nowhere to go: the step "
    "is zero.",
    "two_outside_the_root": "The 2 stands outside the root. It belongs under it, with the KL.",
    "radius_as_a_learning_rate": "The radius is used as a learning rate. It is a KL: the length "
    "of the step follows from it.",
    "length_upside_down": "The fraction under the root is upside down. A longer direction must be "
    "shortened more.",
    "length_of_the_gradient": "Direction and length do not belong together: the KL is that of the "
    "step, so put the direction F⁻¹·g into the parabola, not the gradient.",
    "radius_squared": "The radius is a KL already, which is a square of a length. Do not square "
    "it; take the root.",
}
OLD_IS_CONSTANT = (
    "The numbers are right, and a gradient flows into log_probs_old: the policies' pushes cancel. "
    "The old policy is what it was: a constant."
)
LOSS_MISTAKES = {
    "distance_rewarded": "The sign of the penalty is turned: it pays for distance. Distance makes "
    "a loss larger.",
    "objective_called_a_loss": "The sign is that of an objective. A loss is minimised: minus the "
    "surrogate, plus the price.",
    "squared_log_ratio": "The distance is k2, half of (log ρ)². Its value is nearly right, and its "
    "gradient is another vector. Here k3 is asked for.",
    "single_log_ratio": "The distance is k1, −log ρ. It is right on average, may be negative, and "
    "pushes every sample even where nothing has moved. Here k3 is asked for.",
    "other_direction": "The distance is that of the other order: the ratio in it is old over new. "
    "It is new over old, as in the surrogate.",
    "penalty_without_gradient": "The number is right, and the penalty has no gradient: nothing "
    "holds the policy. The price must be felt in the gradient.",
    "old_policy_with_gradient": OLD_IS_CONSTANT,
    "critic_trained_through_the_penalty_loss": "The numbers are right, and a gradient flows into "
    "the advantages: the critic would be trained to make actions look good. They are constants.",
    "sum_over_the_batch": "It adds up over the batch, so the step grows with the batch. Take the "
    "mean.",
    "price_on_everything": "β multiplies the surrogate as well. It is the price of distance alone.",
    "price_on_the_surrogate": "β stands at the surrogate. It is the price of distance: it belongs "
    "to the other term.",
    "price_forgotten": "β has no effect. It multiplies the distance.",
    "penalty_forgotten": "The distance is missing: this is the surrogate alone, which never says "
    "stop.",
    "divided_by_the_price": "It divides the distance by β. A higher price makes distance dearer: "
    "multiply.",
    "log_prob_in_place_of_the_ratio": "The advantage is multiplied by the log-probability. The "
    "batch is old: the ratio belongs there.",
    "one_not_subtracted": "The 1 in the distance is missing. Where nothing has moved, the distance "
    "is 0, and the ratio is 1.",
    "log_ratio_not_subtracted": "The logarithm in the distance is missing: ρ − 1 is 0 on average, "
    "whatever the policy does.",
    "penalty_times_the_advantage": "The distance is multiplied by the advantage, so for bad "
    "actions it pays to go far. The price is the same for all.",
    "ratio_upside_down": "The ratio is upside down in both terms: old over new. It is new over "
    "old.",
    "surrogate_ratio_upside_down": "The ratio of the surrogate is upside down. It is new over old, "
    "as in the distance.",
    "not_averaged": "It gives one number per sample. Asked for is one number: the mean.",
    "distance_of_the_mean": "It averages the logarithms first and makes one distance of the mean. "
    "Each sample has its own; the mean comes last.",
    "squared_change": "The distance is half of (ρ − 1)². It is near k3 for small changes, and far "
    "away it is not.",
    "quotient_of_probabilities": "It divides probabilities. Where both are too small for a float "
    "that is 0/0. Take the difference of the logarithms first.",
    "absolute_log_ratio": "The distance is the size of log ρ. It has a kink where nothing has "
    "moved; k3 is smooth there.",
    "clip_added": "Something is clipped. That is another idea, and the next lesson's: here the "
    "price alone holds the policy.",
}
BETA_MISTAKES = {
    "cheaper_after_a_large_step": "The two directions are exchanged. Too far: distance must become "
    "dearer, so that the next step is shorter.",
    "no_rest": "The price changes at every iteration. Between the two edges it stays what it is.",
    "numbers_exchanged": "The numbers are exchanged: 1.5 belongs to the edges, and 2 to the price.",
    "only_upwards": "The price never falls again. After a step that stayed too near, halve it.",
    "only_downwards": "The price never rises. After a step that went too far, double it.",
    "target_in_proportion": "The price is set in proportion to the KL: one noisy estimate changes "
    "it tenfold. Double it, halve it, or leave it.",
    "lower_edge_at_half": "The lower edge is at half of the target. It is the target divided by "
    "1.5.",
    "lower_edge_at_the_target": "Everything below the target counts as too near. The lower edge is "
    "the target divided by 1.5.",
    "upper_edge_at_the_target": "Everything above the target counts as too far. The upper edge is "
    "1.5 times the target.",
    "estimate_made_positive": "It takes the size of the estimate. One below 0 is noise around a "
    "small KL: too near, not too far.",
    "estimate_below_zero_ignored": "An estimate below 0 changes nothing. It says that the policy "
    "has hardly moved: halve the price.",
    "edges_count_as_outside": "At the edges themselves the price changes. It changes beyond them "
    "only.",
    "target_forgotten": "It compares the KL itself with 1.5. Compare it with the target.",
    "target_squared": "The target is squared. A KL is compared with a KL.",
    "added_instead_of_multiplied": "It adds and subtracts. A price of 1000 would need an age to "
    "get down: double it and halve it.",
    "multiplied_by_one_and_a_half": "The price changes by the factor 1.5. That is the number of "
    "the edges; the price doubles or halves.",
    "price_cut_off": "The price is kept in a range. It may become as high or as low as it must.",
    "price_forgotten": "The old price is not used. The new one is 2 times it, half of it, or the "
    "same.",
}
NUMBER_MISTAKES = {
    "orders_exchanged": "The two KLs are exchanged. The policy that stands first weights the sum.",
    "not_weighted": "You added the logarithms up without weights. Weight each action with the "
    "policy that stands first.",
    "in_bits": "These are bits. Natural logarithms give nats.",
    "ratio_turned": "You took log(second / first), which gives minus the KL. First over second.",
    "same_in_both_orders": "You gave the same number twice. A KL is not symmetric: other weights, "
    "other logarithms.",
    "chance_for_the_curvature": "F is no probability. It is the mean of the squared slope of log "
    "π: p·(1 − p)² + (1 − p)·p².",
    "rare_part_only": "You squared the slope for the good arm alone. The mean goes over both arms.",
    "slope_not_squared": "You averaged the size of the slope without squaring it.",
    "half_forgotten": "The ½ of the parabola is missing. The KL of a step x is ½·F·x².",
    "root_forgotten": "The square root is missing: ½·F·x² = δ has to be solved for x.",
    "length_in_parameters": "F is missing in the step. A radius in nats becomes a step in logits "
    "by way of F.",
    "plain_step": "You took the slope for the step. The slope says which way, δ and F say how far.",
    "halved_price": "At the top of g·x − β·½·F·x² the slope is zero: g = β·F·x. The half and the "
    "square cancel.",
    "price_upside_down": "The price is upside down: the shorter the step is to be, the higher.",
    "slope_forgotten": "The price contains the slope: a surrogate that is steeper by ten needs a "
    "price higher by ten.",
    "two_for_four": "You took 2 where the theorem has 4.",
    "horizon_not_squared": "The square is missing: (1 − γ)² stands below.",
    "discount_forgotten": "The γ above the line is missing.",
    "mean_advantage": "The theorem takes the largest size of an advantage, and not its mean over "
    "the actions.",
    "pay_for_the_advantage": "You put the pay in. An advantage is what an arm pays beyond the mean "
    "of the policy.",
    "bad_arm_taken": "You took the advantage of the bad arm. The largest size of both counts.",
    "root_of_the_prices": "You took the root of the quotient. With line and parabola the best step "
    "is g / (β·F): it falls like 1/β.",
    "quotient_upside_down": "You gave the share. Asked for is how many times shorter.",
}
SEARCH_MISTAKES = {
    "goes_on_from_the_last_try": "Each shorter step is still added to the last try, so the search "
    "goes further and further. From where must each try start?",
    "looks_at_the_kl_only": "It takes a step that stays near and makes things worse. The condition "
    "was right: both must hold.",
    "looks_at_the_improvement_only": "It takes a step that leaves the region. The condition was "
    "right: both must hold.",
    "one_of_the_two_is_enough": "Near, or better: one of the two is enough for it. The condition "
    "was right: both must hold.",
    "last_try_taken": "When the tries are used up, it takes the last one, though that did not pass "
    "either. The last line was right: stay where you are.",
    "full_step_never_tried": "The full step is never tried. The powers were right: they begin with "
    "shrink⁰ = 1.",
    "no_gain_is_enough": "It accepts a step that gains nothing. The condition was right: L must "
    "rise.",
    "shrinks_evenly": "Each try is shorter by the same amount. It was right: each by the same "
    "factor.",
    "limit_excluded": "A KL that is the limit itself is refused. It was right: at most max_kl.",
    "best_try_taken": "It takes the best of all tries. The first that passes is asked for: later "
    "ones are not even looked at.",
    "step_returned": "It gives the step. Asked for are parameters: the old ones plus the step.",
    "downhill": "It steps backwards. The step was right: added to the parameters.",
    "one_try_too_many": "It tries once more than max_tries. The range was right.",
    "one_try_too_few": "It tries once less than max_tries. The range was right.",
    "kl_of_the_step": "It asks for the KL at the step, as if the step were a policy's parameters. "
    "Ask at the parameters that are tried.",
    "shrinks_twice": "The step shrinks twice from one try to the next. The k-th power does it "
    "alone: leave the step itself as it is.",
    "never_shrinks": "All tries are the same. Each must be shorter by the factor shrink.",
    "factor_instead_of_the_power": "The second try already misses: it is multiplied by k times "
    "shrink. The k-th power is wanted, and shrink⁰ is 1.",
}
PRODUCT_MISTAKES = {
    "mean_not_subtracted": "It is π·v. Each entry counts relative to the mean of v under the "
    "policy: the same number for all actions changes no probability, so it must give 0.",
    "plain_mean_subtracted": "The mean of v is taken with equal weights. Take it under the policy.",
    "mean_over_all_states": "One mean is taken over all states. Each state has its own.",
    "visits_not_normalised": "The visits are used as they are. The mean KL divides by their sum: "
    "four visits of the only state are the same as one.",
    "visits_forgotten": "The visits are missing. A state that is visited often counts more.",
    "states_equally_weighted": "All states count alike. Weight each by its share of the visits.",
    "visits_squared": "The visits count twice. The vector is not weighted by them.",
    "not_weighted_by_the_policy": "The centred vector is not multiplied by π. An action that is "
    "rare changes behaviour little.",
    "policy_squared": "π stands there twice. One π weights the mean, one the result, and that is "
    "all.",
    "first_derivative": "It is 0 everywhere: the KL has no slope at the old policy. Multiply the "
    "slope by v and differentiate once more, and mind what is held constant.",
    "curvature_of_the_objective": "It is one score times v, without the mean over actions. F is "
    "the mean of score times score over what the policy does.",
    "summed_over_the_states": "It adds up over the states. The result has the shape of the vector.",
    "softmax_over_the_states": "The probabilities of a column sum to 1. They must sum to 1 over "
    "the actions: the last axis.",
    "logits_as_probabilities": "It uses the logits as probabilities. Take a softmax over the "
    "actions.",
    "sign_turned": "The sign is turned: v minus its mean. F never points against v.",
    "one_number_for_the_curvature": "It is v·F·v spread out, or that number alone. Asked for is "
    "the vector F·v.",
    "fisher_of_the_probabilities": "It is the curvature by the probabilities, v/π. The parameters "
    "here are logits.",
    "exponential_overflows": "The exponential of a large logit is infinite, and ∞/∞ is NaN. Use a "
    "softmax, which subtracts the largest logit first.",
    "half_of_the_curvature": "It is half of F·v. The ½ belongs to the KL; F is its second "
    "derivative.",
}

# --- exercises -----------------------------------------------------------------------------

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "a": ("the KL with the old policy first", "The weights are those of the fair coin."),
    "b": ("the KL with the new policy first", "The weights are those of the new policy."),
    "c": (
        "F at p = 0.2",
        "The slope of log π by z is 1 − p for the good arm and −p for the other. Square both, and "
        "take the mean under the policy.",
    ),
    "d": ("the natural step", "Solve ½·F·x² = δ for x."),
    "e": ("the price that leads to the same step", "Where is the slope of g·x − β·½·F·x² zero?"),
    "f": ("the price C of the theorem", "Which of the two advantages is larger in size?"),
    "g": (
        "how many times shorter",
        "How does the best step of line and parabola depend on the price?",
    ),
}
EXERCISES = (
    FunctionExercise(
        id="trust_region.state_kl",
        cases=KL_CASES,
        gives="one per row",
        returns="a torch.Tensor of shape [S], one KL for each state",
        mistakes=KL_MISTAKES,
        hints=(
            "A KL is a mean: over the actions of the policy that stands first, of the logarithm of "
            "first over second.",
            "The weights are the old probabilities, the sum runs over the last axis. Where a "
            "weight is 0, the term is 0: choose it there, or use a function that knows 0·log 0.",
            "KL(s) = Σ_a π_old(a|s)·( log π_old(a|s) − log π(a|s) ),  0·log 0 = 0",
        ),
    ),
    FunctionExercise(
        id="trust_region.natural_gradient_step",
        cases=STEP_CASES,
        gives="tensor",
        returns="a torch.Tensor of shape [P], like the gradient",
        mistakes=STEP_MISTAKES,
        hints=(
            "First the direction, then its length. The direction that climbs most for its KL is "
            "not the gradient, unless all parameters change behaviour alike.",
            "Solve F·d = g. Then find the number by which d must be multiplied so that the "
            "parabola, at the step, has the value max_kl. Think of a gradient of zero.",
            "d = F⁻¹·g,  step = d·√( 2·δ / (d·F·d) )",
        ),
    ),
    FunctionExercise(
        id="trust_region.penalty_loss",
        cases=LOSS_CASES,
        gives="scalar",
        learns=("log_probs",),
        mistakes=LOSS_MISTAKES,
        hints=(
            "Two means: what the surrogate promises, and how far the policy has gone. A loss goes "
            "down where the first rises, and up where the second does.",
            "Both use the same ratio, new over old. The price multiplies the distance alone, and "
            "the old policy and the advantages are constants.",
            "−mean( ρ·Â ) + β·mean( ρ − 1 − log ρ ),  ρ = exp( log π − log π_old )",
        ),
    ),
    FunctionExercise(
        id="trust_region.adapt_beta",
        cases=BETA_CASES,
        gives="number",
        mistakes=BETA_MISTAKES,
        hints=(
            "A thermostat: three answers, and which of them depends on two edges around the "
            "target.",
            "Too far makes distance dearer, too near makes it cheaper. An estimate below 0 is as "
            "near as can be.",
            "KL > 1.5·target: 2·β;   KL < target / 1.5: β / 2;   else β",
        ),
    ),
    NumbersExercise(
        id="trust_region.fence_and_price",
        questions=QUESTIONS,
        tolerance=0.001,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "For the KLs write down four logarithms. For the rest replace the surrogate by a line "
            "and the KL by a parabola, as in the lesson.",
            "F is the mean of the squared slope of log π. A fence says ½·F·x² = δ; a price says "
            "that the slope of line minus parabola is zero. Both can be solved for x.",
            "x = √(2·δ / F);   x = g / (β·F);   C = 4·γ·max|A| / (1 − γ)²",
        ),
    ),
    FunctionExercise(
        id="trust_region.mended_line_search",
        cases=SEARCH_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the parameters",
        mistakes=SEARCH_MISTAKES,
        starts_with="goes_on_from_the_last_try",
        hints=(
            "Print what is tried, for a start of 0, a step of 1, a factor of 0.5, and a KL that "
            "refuses everything.",
            "The condition, the range and the last line are right. Each try is meant to be shorter "
            "than the one before. What does the line add its step to?",
            "θ = θ_old + shrinkᵏ·step,   k = 0, 1, 2, …",
        ),
    ),
    FunctionExercise(
        id="trust_region.fisher_vector_product",
        cases=PRODUCT_CASES,
        gives="tensor",
        returns="a torch.Tensor of shape [S, A], like the vector",
        mistakes=PRODUCT_MISTAKES,
        hints=(
            "Two ways. By hand: F is a mean of score times score, and a score times v is one "
            "number. Or by two backward passes through the mean KL, as in the lesson.",
            "By hand: the score of action a is [a = b] − π(b), so its product with v is v(a) minus "
            "the mean of v under the policy. Multiply by the score again and take the mean.",
            "(F·v)(s, a) = d(s)/Σd · π(a|s)·( v(s, a) − Σ_b π(b|s)·v(s, b) )",
        ),
    ),
)
