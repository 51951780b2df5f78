"""Lesson 01: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Sequence
from math import log
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
    draw,
)

ACTIONS, ENDS, WEIGHTS = "which action", "ends of episodes", "weights"
DISCOUNT, MASKS = "discount", "rows that are no steps"


# --- numbers that are drawn ----------------------------------------------------------------


def draw_integers(random: Random, *shape: int, below: int) -> Any:
    """Draw nested lists of integers from 0 on."""
    if not shape:
        return random.randrange(below)
    return [draw_integers(random, *shape[1:], below=below) for _ in range(shape[0])]


def draw_ends(random: Random, num_steps: int, num_envs: int) -> list[list[bool]]:
    """Draw flags: an episode ends at one step in three, and every one at the last."""
    rows = [[random.random() < 1 / 3 for _ in range(num_envs)] for _ in range(num_steps - 1)]
    return [*rows, [True] * num_envs]


# --- cases ---------------------------------------------------------------------------------


def log_prob_case(stage: str, name: str, logits: Any, actions: list[int], **more: Any) -> Case:
    """One call with logits [B, A] and actions [B]."""
    inputs = {"logits": logits, "actions": actions}
    return Case(stage=stage, name=name, inputs=inputs, integers=("actions",), **more)


LOG_3 = round(log(3), 6)
LOG_PROB_CASES = (
    log_prob_case(SMALLEST, "two equal actions", [[0.0, 0.0]], [0]),
    log_prob_case(ACTIONS, "probabilities 1/4 and 3/4, the second", [[0.0, LOG_3]], [1]),
    log_prob_case(ACTIONS, "probabilities 1/4 and 3/4, the first", [[0.0, LOG_3]], [0]),
    log_prob_case(ACTIONS, "the same, all logits larger by 2", [[2.0, 2 + LOG_3]], [1]),
    log_prob_case(ACTIONS, "three actions, the last", [[0.0, 1.0, -1.0]], [2]),
    log_prob_case(ACTIONS, "two rows", [[0.0, 1.0, 0.5], [2.0, 0.0, 1.0]], [0, 2]),
    log_prob_case(EDGES, "as many rows as actions", [[0.0, 1.0], [3.0, 0.0]], [1, 1]),
    log_prob_case(EDGES, "large logits", [[1000.0, 999.0]], [1]),
    log_prob_case(EDGES, "large negative logits", [[-1000.0, -999.0]], [0]),
    log_prob_case(EDGES, "an action that is all but impossible", [[1000.0, 0.0]], [1]),
    log_prob_case(GRADIENTS, "two equal actions", [[0.0, 0.0]], [1], gradients=True),
    log_prob_case(
        GRADIENTS, "two rows", [[0.0, 1.0, 0.5], [2.0, 0.0, 1.0]], [0, 2], gradients=True
    ),
    log_prob_case(GRADIENTS, "an action at e⁻⁴⁰", [[40.0, 0.0]], [1], gradients=True),
    log_prob_case(
        SEEDED,
        "6 rows, 4 actions",
        draw(Random(1), 6, 4),
        draw_integers(Random(2), 6, below=4),
        gradients=True,
    ),
    log_prob_case(
        SEEDED,
        "float32, 5 rows, 3 actions",
        draw(Random(3), 5, 3, low=-4, high=4),
        draw_integers(Random(4), 5, below=3),
        gradients=True,
        dtype=torch.float32,
    ),
)


def returns_case(
    stage: str, name: str, rewards: Any, ended: Any, gamma: float, **more: Any
) -> Case:
    """One call with rewards and flags [T, N]."""
    inputs = {"rewards": rewards, "ended": ended}
    return Case(stage=stage, name=name, inputs=inputs, options={"gamma": gamma}, **more)


def column(*values: Any) -> list[list[Any]]:
    """Steps of one environment: [T, 1]."""
    return [[value] for value in values]


RETURNS_CASES = (
    returns_case(SMALLEST, "one step", [[2.0]], [[True]], 0.5),
    returns_case(SMALLEST, "two steps, γ 1", column(1.0, 2.0), column(False, True), 1.0),
    returns_case(DISCOUNT, "two steps, γ 0.5", column(1.0, 2.0), column(False, True), 0.5),
    returns_case(
        DISCOUNT,
        "a reward three steps later",
        column(0.0, 0.0, 0.0, 8.0),
        column(False, False, False, True),
        0.5,
    ),
    returns_case(DISCOUNT, "γ 0", column(3.0, -1.0, 2.0), column(False, False, True), 0.0),
    returns_case(
        ENDS,
        "two episodes, one after the other",
        column(1.0, 4.0, -2.0, 2.0, 6.0),
        column(False, False, True, False, True),
        0.5,
    ),
    returns_case(
        ENDS, "every step ends an episode", column(1.0, 2.0, 3.0), column(True, True, True), 0.9
    ),
    returns_case(
        ENDS,
        "an episode of one step, then one of two",
        column(5.0, 1.0, 1.0),
        column(True, False, True),
        1.0,
    ),
    returns_case(
        ENDS,
        "two environments that end at other times",
        [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]],
        [[False, True], [True, False], [True, True]],
        0.5,
    ),
    returns_case(
        EDGES,
        "more environments than steps",
        [[1.0, 0.0, -1.0], [1.0, 2.0, 4.0]],
        [[False, False, True], [True, True, True]],
        0.9,
    ),
    returns_case(
        EDGES,
        "losses count as much as gains",
        column(-1.0, -1.0, 3.0),
        [[False]] * 2 + [[True]],
        1.0,
    ),
    returns_case(
        SEEDED, "9 steps, 3 environments", draw(Random(5), 9, 3), draw_ends(Random(6), 9, 3), 0.9
    ),
    returns_case(
        SEEDED,
        "float32, 12 steps, 2 environments",
        draw(Random(7), 12, 2),
        draw_ends(Random(8), 12, 2),
        0.99,
        dtype=torch.float32,
    ),
)


def loss_case(stage: str, name: str, log_probs: Any, weights: Any, **more: Any) -> Case:
    """One call of the loss."""
    inputs = {"log_probs": log_probs, "weights": weights}
    return Case(stage=stage, name=name, inputs=inputs, **more)


HALF, TENTH = round(log(0.5), 6), round(log(0.1), 6)
LOSS_CASES = (
    loss_case(SMALLEST, "one action of probability 0.5, weight 1", [HALF], [1.0]),
    loss_case(WEIGHTS, "weight 3", [HALF], [3.0]),
    loss_case(WEIGHTS, "a bad action", [HALF], [-1.0]),
    loss_case(WEIGHTS, "a good and a bad action", [HALF, TENTH], [2.0, -1.0]),
    loss_case(WEIGHTS, "one of two weights is 0", [HALF, TENTH], [2.0, 0.0]),
    loss_case(EDGES, "the same two samples twice", [HALF, TENTH] * 2, [2.0, -1.0] * 2),
    loss_case(EDGES, "two equal weights", [HALF, TENTH], [2.0, 2.0]),
    loss_case(EDGES, "both weights are large", [HALF, TENTH], [102.0, 101.0]),
    loss_case(EDGES, "a probability too small for a float", [-800.0], [1.0]),
    loss_case(
        EDGES, "two axes", [[HALF, TENTH, HALF], [TENTH, HALF, TENTH]], [[1.0, 2, -3], [4, -5, 6]]
    ),
    loss_case(GRADIENTS, "one good action", [HALF], [2.0], gradients=True),
    loss_case(GRADIENTS, "one bad action", [TENTH], [-2.0], gradients=True),
    loss_case(GRADIENTS, "two actions", [HALF, TENTH], [2.0, -1.0], gradients=True),
    loss_case(
        GRADIENTS,
        "two axes",
        [[HALF, TENTH], [TENTH, HALF]],
        [[1.0, 2.0], [-3.0, 4.0]],
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "12 samples",
        draw(Random(9), 12, low=-3, high=-0.1),
        draw(Random(10), 12, low=-3, high=3),
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(11), 4, 3, low=-3, high=-0.1),
        draw(Random(12), 4, 3, low=-3, high=3),
        gradients=True,
        dtype=torch.float32,
    ),
)


def whole_case(
    stage: str, name: str, logits: Any, actions: Any, rewards: Any, ended: Any, **more: Any
) -> Case:
    """One call with logits [T, N, A] and the rest [T, N]."""
    inputs = {"logits": logits, "actions": actions, "rewards": rewards, "ended": ended}
    options = {"gamma": more.pop("gamma", 0.5)}
    return Case(
        stage=stage, name=name, inputs=inputs, options=options, integers=("actions",), **more
    )


def drawn_episodes(stage: str, name: str, shape: Sequence[int], seed: int, **more: Any) -> Case:
    """One call with drawn numbers; the shape is [T, N, A]."""
    random, (T, N, A) = Random(seed), shape
    logits, actions = draw(random, T, N, A), draw_integers(random, T, N, below=A)
    rewards, ended = draw(random, T, N), draw_ends(random, T, N)
    return whole_case(stage, name, logits, actions, rewards, ended, **more)


TWO_ENDS = (column(1.0, 4.0, -2.0), column(True, False, True))
WHOLE_CASES = (
    whole_case(
        SMALLEST, "one step, two actions far apart", [[[4.0, 0.0]]], [[0]], [[1.0]], [[True]]
    ),
    whole_case(SMALLEST, "the other action", [[[4.0, 0.0]]], [[1]], [[1.0]], [[True]]),
    whole_case(SMALLEST, "a reward of −3", [[[0.0, 1.0]]], [[1]], [[-3.0]], [[True]]),
    whole_case(ACTIONS, "three actions", [[[0.0, 1.0, 3.0]]], [[2]], [[2.0]], [[True]]),
    whole_case(
        ENDS,
        "two steps",
        [[[0.0, 1.0]], [[2.0, 0.0]]],
        column(1, 0),
        column(1.0, 2.0),
        column(False, True),
    ),
    whole_case(ENDS, "two episodes", [[[0.0, 1.0]]] * 3, column(1, 0, 1), *TWO_ENDS),
    whole_case(
        ENDS,
        "two environments",
        [[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 0.5]]],
        [[1, 1], [0, 1]],
        [[1.0, -2.0], [2.0, 4.0]],
        [[False, True], [True, True]],
    ),
    whole_case(EDGES, "large logits", [[[1000.0, 990.0]]], [[1]], [[1.0]], [[True]]),
    whole_case(GRADIENTS, "one step", [[[1.0, 0.0]]], [[1]], [[2.0]], [[True]], gradients=True),
    whole_case(
        GRADIENTS,
        "two episodes",
        [[[0.0, 1.0]]] * 3,
        column(1, 0, 1),
        *TWO_ENDS,
        gradients=True,
    ),
    drawn_episodes(SEEDED, "5 steps, 2 environments", (5, 2, 3), 13, gamma=0.9, gradients=True),
    drawn_episodes(
        SEEDED,
        "float32, 6 steps, 3 environments",
        (6, 3, 4),
        14,
        gamma=0.99,
        gradients=True,
        dtype=torch.float32,
    ),
)


def estimate_case(
    stage: str,
    name: str,
    logits: Any,
    observations: Any,
    actions: Any,
    weights: Any,
    valid: Any,
    **more: Any,
) -> Case:
    """One call with logits [K, A] and the rest [T, N]."""
    inputs = {
        "logits": logits,
        "observations": observations,
        "actions": actions,
        "weights": weights,
        "valid": valid,
    }
    return Case(stage=stage, name=name, inputs=inputs, integers=("observations", "actions"), **more)


def drawn_estimates(name: str, shape: Sequence[int], seed: int, **more: Any) -> Case:
    """One call with drawn numbers; the shape is [T, N, K, A], and episodes have other lengths."""
    random, (T, N, K, A) = Random(seed), shape
    lengths = [random.randint(1, T) for _ in range(N - 1)] + [T]
    return estimate_case(
        SEEDED,
        name,
        draw(random, K, A),
        draw_integers(random, T, N, below=K),
        draw_integers(random, T, N, below=A),
        draw(random, T, N),
        [[t < length for length in lengths] for t in range(T)],
        **more,
    )


YES = [[True]]
ESTIMATE_CASES = (
    estimate_case(SMALLEST, "one step", [[0.0, 0.0]], [[0]], [[0]], [[2.0]], YES),
    estimate_case(ACTIONS, "the other action", [[0.0, 0.0]], [[0]], [[1]], [[2.0]], YES),
    estimate_case(ACTIONS, "probabilities 1/4 and 3/4", [[0.0, LOG_3]], [[0]], [[1]], [[4.0]], YES),
    estimate_case(ACTIONS, "three actions", [[0.0, 1.0, 2.0]], [[0]], [[0]], [[1.0]], YES),
    estimate_case(
        ACTIONS,
        "the second of two observations",
        [[1.0, 0.0], [0.0, LOG_3]],
        [[1]],
        [[0]],
        [[1.0]],
        YES,
    ),
    estimate_case(
        WEIGHTS,
        "two steps of one episode, two observations",
        [[0.0, 0.0], [0.0, LOG_3]],
        column(0, 1),
        column(1, 0),
        column(3.0, 1.0),
        column(True, True),
    ),
    estimate_case(
        WEIGHTS,
        "two steps that look alike",
        [[0.0, LOG_3]],
        column(0, 0),
        column(1, 0),
        column(3.0, -1.0),
        column(True, True),
    ),
    estimate_case(
        WEIGHTS,
        "two episodes",
        [[0.0, LOG_3]],
        [[0, 0]],
        [[1, 0]],
        [[4.0, -1.0]],
        [[True, True]],
    ),
    estimate_case(
        MASKS,
        "a padded row whose weight is not 0",
        [[0.0, 0.0]],
        column(0, 0),
        column(1, 0),
        column(3.0, 7.0),
        column(True, False),
    ),
    estimate_case(
        MASKS,
        "two episodes, one of them shorter",
        [[0.0, 1.0], [0.5, 0.0]],
        [[0, 1], [1, 0], [0, 0]],
        [[1, 0], [0, 1], [1, 1]],
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        [[True, True], [True, False], [True, False]],
    ),
    estimate_case(EDGES, "large logits", [[1000.0, 999.0]], [[0]], [[1]], [[1.0]], YES),
    drawn_estimates("4 steps, 3 episodes, 2 observations, 3 actions", (4, 3, 2, 3), 15),
    drawn_estimates("float32, 6 steps, 2 episodes", (6, 2, 3, 2), 16, dtype=torch.float32),
)

# --- mistakes in words ---------------------------------------------------------------------

LOG_PROB_MISTAKES = {
    "probability_without_the_logarithm": "It gives the probability. Asked for is its logarithm, "
    "which is never above 0.",
    "softmax_twice": "The softmax is taken twice: probabilities are put where logits belong. "
    "Then no action is ever sure, whatever the logits are.",
    "logit_itself": "It gives the logit. A logit is a log-probability only after the logarithm of "
    "the sum over all actions has been subtracted.",
    "exponential_overflows": "The exponential of a large logit is infinite, and ∞/∞ is NaN. Take "
    "the logarithm of the softmax in one step: it subtracts the largest logit first.",
    "logarithm_of_zero": "The probability of a rare action is 0 in a float, and its logarithm −∞ "
    "(or that of the small number that was added). Never leave the logarithms.",
    "softmax_over_the_rows": "The probabilities of a column sum to 1. They must sum to 1 over the "
    "actions of a row: the last axis.",
    "all_actions_returned": "It gives all actions. Asked for is one number per row: that of the "
    "action which was taken.",
    "axis_kept": "The shape is [B, 1]. Take the last axis away: next to weights of shape [B] it "
    "would broadcast to [B, B].",
    "likeliest_action": "It gives the most likely action of each row. Asked for is the one that "
    "was taken.",
    "every_row_with_every_action": "It picks all taken actions in every row, which is [B, B]. Row "
    "i goes with action i.",
    "averaged_over_the_rows": "It averages over the rows. Each row keeps its own number; the mean "
    "belongs to the loss.",
    "summed_over_the_rows": "It adds the rows up. Each row keeps its own number.",
    "cross_entropy_kept": "The sign is that of a cross-entropy, which is minus the "
    "log-probability.",
    "action_off_by_one": "It looks up the action before the one that was taken. Actions count "
    "from 0.",
    "logarithm_to_base_two": "These are bits. The natural logarithm is asked for: nats.",
    "divided_by_the_sum_of_logits": "It divides logits by their sum. Probabilities are "
    "exponentials of logits, divided by the sum of these.",
    "sigmoid_per_action": "A sigmoid looks at each logit alone. The softmax compares all actions "
    "of a row.",
    "taken_against_not_taken": "It gives the log-odds: taken against all others. Subtract the "
    "logarithm of the sum over all actions, the taken one included.",
}
RETURNS_MISTAKES = {
    "full_return": "Every step gets the return of its whole episode. What was earned before an "
    "action is not its merit: sum from its own step on.",
    "rewards_so_far": "It sums what came before the action. Sum what came after it.",
    "not_reset_at_an_end": "The sum runs on into the next episode. Where an episode ended, nothing "
    "of the rows after it counts.",
    "discount_off_by_one": "The reward that the action earns at once is discounted too. It counts "
    "in full; γ begins with the reward after it.",
    "discounted_from_the_start": "It discounts from the start of the episode. The discount begins "
    "anew at each step: k is counted from the step itself.",
    "flag_late_by_one": "It reads the flag of the row before. The flag at index t says that step t "
    "was the last of its episode.",
    "flag_early_by_one": "It reads the flag of the row after. The flag at index t says that step t "
    "was the last of its episode.",
    "gamma_ignored": "Nothing is discounted. A reward k steps later counts γᵏ.",
    "gamma_not_compounded": "All later rewards count γ. A reward k steps later counts γᵏ.",
    "own_reward_left_out": "The reward of the step itself is missing. It was earned by the action "
    "of this step.",
    "last_reward_lost": "The reward of the last step of each episode is lost. The flag stops what "
    "comes after it; the step itself counts.",
    "environments_mixed": "It adds up over the environments. Each column is a world of its own.",
    "next_reward_only": "It looks one step ahead only. Sum to the end of the episode.",
    "returns_centred": "It subtracts the mean. That is a baseline, and comes later; here the sums "
    "are asked for as they are.",
    "returns_normalised": "It normalises the sums. That comes later, if at all; here they are "
    "asked for as they are.",
    "time_left_reversed": "The sums are right and stand in reversed order: the last step first.",
    "averaged_over_the_steps": "It divides by the number of steps that are left. Asked for is the "
    "sum.",
    "first_end_stops_everything": "After the first end of a column nothing counts any more. A "
    "column may hold several episodes, one after the other.",
    "environments_end_together": "The end of one environment ends all of them. Each column has its "
    "own flags.",
    "gamma_squared": "It discounts twice: γ²ᵏ for a reward k steps later.",
}
LOSS_MISTAKES = {
    "sign_turned": "The sign is that of an objective. A loss is minimised: give minus the mean.",
    "sum_over_the_batch": "It adds up over the batch, so the step grows with the batch. Take the "
    "mean.",
    "gradient_through_the_weights": "The numbers are right, and a gradient flows into the weights: "
    "whatever computed them would be trained to make them large. They are constants: detach.",
    "probabilities_for_logarithms": "It multiplies the weight by the probability. That is another "
    "gradient: a rare action hardly gets a push. Use the logarithm as it is given.",
    "squared": "It squares. This loss is no error that should become 0, and a square loses the "
    "sign: good and bad actions would be treated alike.",
    "means_multiplied": "It averages first and multiplies two means. Each action goes with its own "
    "weight; the mean comes last.",
    "not_averaged": "It gives one number per sample. Asked for is one number: the mean.",
    "weights_ignored": "The weights are missing: every action that was taken becomes more likely.",
    "absolute_weights": "It uses the size of the weights and loses their sign: bad actions become "
    "more likely too.",
    "bad_actions_ignored": "Negative weights count as 0. An action that turned out bad must become "
    "less likely.",
    "sign_of_the_weights": "It uses only the sign of the weights. How large they are matters too.",
    "weights_normalised": "It normalises the weights. That is another loss; here they are taken as "
    "they are.",
    "weights_centred": "It subtracts the mean of the weights: a baseline. Here they are taken as "
    "they are.",
    "divided_by_the_weights": "It divides by the sum of the weights. That is a weighted mean; "
    "asked for is the plain mean over all samples.",
    "zero_weights_left_out": "Samples whose weight is 0 are left out of the count that you divide "
    "by. Divide by the number of all samples.",
    "value_of_the_surrogate": "The gradient is right and the number is another one: that of the "
    "ratio to itself, times the weight. Here the logarithm times the weight is asked for.",
    "log_prob_detached_too": "Nothing is left that could be learned: the log-probabilities are "
    "detached as well. Detach the weights alone.",
    "last_axis_only": "It averages over one axis. The mean goes over all samples, whatever the "
    "shape is.",
    "difference_squared": "It draws the log-probabilities towards the weights, as if these were "
    "targets. A weight says how hard to push: multiply.",
    "logarithm_taken_again": "It takes the logarithm of the log-probability. They are logarithms "
    "already.",
}
WHOLE_MISTAKES = {
    "softmax_before_logits": "The line still hands probabilities to an argument that wants logits; "
    "a second softmax is taken of them. Compare the two probabilities at logits 4 and 0.",
    "logits_as_probabilities": "It divides logits by their sum, as if they were probabilities. "
    "They may be negative, and only their differences matter.",
    "sigmoid_per_action": "A sigmoid looks at each action alone. The softmax compares all actions "
    "of a row.",
    "logits_turned": "The sign of the logits is turned: what was likely is now rare.",
    "softmax_over_time": "The probabilities sum to 1 over the steps. They must sum to 1 over the "
    "actions: the last axis.",
    "softmax_over_the_environments": "The probabilities sum to 1 over the environments. They must "
    "sum to 1 over the actions: the last axis.",
    "logits_detached": "The numbers are right, and no gradient reaches the logits: nothing would "
    "be learned.",
    "probability_for_the_logarithm": "It multiplies the weights by probabilities. The loss needs "
    "their logarithms.",
    "logit_of_the_action": "It takes the logit for the log-probability. The logarithm of the sum "
    "over all actions is missing.",
    "objective_called_a_loss": "The sign is that of an objective. A loss is minimised. It was "
    "right in the given lines.",
    "summed": "It adds up; the given lines took the mean, and were right.",
    "sum_runs_into_the_next_episode": "The sum of rewards runs on into the next episode. It was "
    "right in the given lines: leave the loop as it stood.",
    "reward_of_the_step_alone": "It weights each action by its own reward. It was right in the "
    "given lines: the weight is all that follows, discounted.",
    "not_discounted": "Nothing is discounted. It was right in the given lines.",
    "likeliest_actions": "It takes the most likely action for the one that was chosen. Keep the "
    "line with log_prob(actions).",
    "entropy_for_log_prob": "It weights the entropy of the policy. The log-probability of the "
    "action that was taken is what a return pushes.",
    "first_action": "It takes the first action everywhere. The actions are given.",
    "exponential_overflows": "The exponential of a large logit is infinite. Hand the logits over "
    "as they are.",
}
NUMBER_MISTAKES = {
    "full_return": "You gave every step the return of its whole episode. Sum from the step on.",
    "rewards_so_far": "You summed what came before the step. Sum what comes after it.",
    "not_reset_at_an_end": "Your sum runs on into the next episode. The first one ends with its "
    "third step.",
    "not_discounted": "You left γ out of the sums. A reward k steps later counts γᵏ.",
    "discount_off_by_one": "You discounted the step's own reward too. It counts in full.",
    "own_reward_left_out": "You left the step's own reward out. It was earned by the action of "
    "this step.",
    "discounted_from_the_start": "You discounted from the start of the episode. The discount "
    "begins anew at each step.",
    "gamma_not_compounded": "You multiplied all later rewards by γ once. A reward k steps later "
    "counts γᵏ.",
    "last_reward_lost": "You lost the reward of the last step of each episode. The flag stops what "
    "comes after it.",
    "flag_late_by_one": "You let the flag stop the row after. The flag at a step says that this "
    "step was the last of its episode.",
    "usual_for_the_discounted": "For the discounted J you forgot that the second step carries γ in "
    "front as well. That is the usual update.",
    "gamma_in_front_too": "The usual update has no γ in front of the second step. With it, it is "
    "the gradient of the discounted J.",
    "usual_for_the_undiscounted": "For the undiscounted J you discounted inside the returns. There "
    "γ is 1 everywhere.",
    "undiscounted_for_the_usual": "The usual update discounts inside the returns: what follows the "
    "first step counts γ there.",
    "slope_to_the_probability": "You gave slopes with respect to p. Asked for is the logit: at "
    "p = ½ the probability moves by ¼ of the logit's step.",
    "one_p_held_constant": "The second step is reached with probability p and its action taken "
    "with p: the square moves twice. You moved one of the two.",
    "value_for_the_slope": "You gave the J's themselves. Asked for is how they change with the "
    "logit.",
    "second_step_forgotten": "You looked at the first step only. The same logit chooses in the "
    "second step too.",
}
ESTIMATE_MISTAKES = {
    "padding_counted": "Rows that are not valid count. They are no steps: their weight is to be "
    "left out, whatever it is.",
    "summed_over_the_episodes": "It gives one sum for all episodes. Asked for is one estimate per "
    "episode, [N, K, A]: how far they differ is the point.",
    "averaged_over_the_episodes": "It averages over the episodes. Asked for is one estimate per "
    "episode, [N, K, A].",
    "averaged_over_the_steps": "It averages over the steps. The gradient of J is a sum over the "
    "steps of an episode.",
    "expectation_not_subtracted": "The score of the taken action is 1 and all others 0. Subtract "
    "the probabilities: the score is [a = taken] − π(a).",
    "sign_turned": "The sign is turned: probabilities minus the taken action. It is the push of a "
    "loss; the gradient of J makes a good action likelier.",
    "weights_ignored": "The weights are missing: it is the sum of the scores.",
    "weights_summed_first": "It multiplies the sum of the scores by the sum of the weights. Each "
    "step has its own weight.",
    "observation_ignored": "Every step pushes the first row of the logits. Its observation says "
    "which row it pushes.",
    "every_row_pushed": "Every step pushes all rows. A step says something about the row of its "
    "own observation only.",
    "first_step_only": "It uses the first step of each episode only. Sum over all of them.",
    "taken_action_only": "Only the entry of the taken action moves. The others must fall in "
    "exchange: the entries of a score sum to 0.",
    "probability_not_its_logarithm": "It differentiates the probability: there is one factor π(a) "
    "too many. Asked for is the gradient of its logarithm.",
    "softmax_over_the_observations": "The probabilities sum to 1 over the observations. They must "
    "sum to 1 over the actions: the last axis.",
    "exponential_overflows": "The exponential of a large logit is infinite. Use a softmax, which "
    "subtracts the largest logit first.",
    "last_visit_wins": "A step overwrites what an earlier one with the same observation has "
    "pushed. Add them up.",
    "divided_by_the_valid_steps": "It divides by the length of the episode. The gradient of J is a "
    "sum over the steps of an episode.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="reinforce.log_prob",
        cases=LOG_PROB_CASES,
        gives="one per row",
        returns="a torch.Tensor of shape [B], one log-probability for each row",
        learns=("logits",),
        mistakes=LOG_PROB_MISTAKES,
        hints=(
            "Two steps: log-probabilities of all actions of a row, then the one that was taken.",
            "A log-probability is the logit minus one number per row. That number is the logarithm "
            "of a sum of exponentials; subtract the largest logit before you take them, or use "
            "the function that does.",
            "log π(a) = z_a − m − log Σ_b e^(z_b − m),  m the largest z of the row",
        ),
    ),
    FunctionExercise(
        id="reinforce.rewards_to_go",
        cases=RETURNS_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=RETURNS_MISTAKES,
        hints=(
            "Begin at the last row and go backwards: what follows a step is known before the step "
            "is looked at.",
            "Carry one number for each environment: what follows. At each step it is the reward "
            "plus γ times itself, unless the step was the last of its episode.",
            "G_t = r_t + γ·(1 − ended_t)·G_{t+1}",
        ),
    ),
    FunctionExercise(
        id="reinforce.reinforce_loss",
        cases=LOSS_CASES,
        gives="scalar",
        learns=("log_probs",),
        mistakes=LOSS_MISTAKES,
        hints=(
            "What should rise when you maximise? Log-probabilities of actions, each in proportion "
            "to its weight. A loss is minimised.",
            "One product per sample, one mean over all of them, one sign. The weights are "
            "constants.",
            "−mean( log π(a | s) · w )",
        ),
    ),
    NumbersExercise(
        id="reinforce.seven_numbers",
        questions={
            "a": ("the sum from step 0 on", "Begin at the end of the first episode."),
            "b": ("the sum from step 1 on", "Its own reward, and half of what follows."),
            "c": ("the sum from step 2 on", "The episode ends here. What can still follow?"),
            "d": ("the sum from step 3 on", "A new episode begins here."),
            "e": (
                "the slope of the discounted J",
                "Write J as a function of p: what the first step pays, and γ times what the second "
                "does. Then differentiate, and multiply by dp/dz.",
            ),
            "f": (
                "the slope of the undiscounted J",
                "As for the discounted J, with γ = 1.",
            ),
            "g": (
                "the usual update",
                "List the three kinds of episodes with their probabilities. In each, sum slope of "
                "log π times the discounted return over the steps.",
            ),
        },
        tolerance=0.001,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "For the sums begin at the end of each episode. For the slopes write p for the "
            "probability of pushing and J as a function of p.",
            "At z = 0 the slope of log π is +½ for pushing and −½ for leaving. The usual update is "
            "the mean over episodes of the sum over steps of this slope times what follows, "
            "discounted from that step on.",
            "J = p·1 + γ·p²·(−1.6),  dp/dz = p·(1 − p);  usual: E Σ_t ∂log π(a_t)/∂z · G_t",
        ),
    ),
    FunctionExercise(
        id="reinforce.mended_reinforce",
        cases=WHOLE_CASES,
        gives="scalar",
        learns=("logits",),
        mistakes=WHOLE_MISTAKES,
        starts_with="softmax_before_logits",
        hints=(
            "Give it one step with the logits 4 and 0, and compare the log-probability that it "
            "uses with the one you compute.",
            "The loop over the rewards is right, and so is the last line. What does the policy "
            "expect in the argument that it is given?",
            "log π(a) = z_a − log Σ_b e^(z_b): one softmax from logits to probabilities",
        ),
    ),
    FunctionExercise(
        id="reinforce.episode_gradients",
        cases=ESTIMATE_CASES,
        gives="tensor",
        returns="a torch.Tensor of shape [N, K, A], one estimate per episode",
        mistakes=ESTIMATE_MISTAKES,
        hints=(
            "First the score of one step: how does log π(taken) change with each logit of its row? "
            "All other rows have the score 0.",
            "The score is 1 at the taken action, minus the probabilities. Times the weight, it is "
            "added to the row of the observation, in the table of its own episode.",
            "g_n[k, b] = Σ_t [valid]·[o_t = k]·w_t·( [a_t = b] − π(b | k) )",
        ),
    ),
)
