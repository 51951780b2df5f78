"""Lesson 02: what the answers to its exercises must satisfy, and the usual mistakes in words."""

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

MOVED, RARE, SPREAD = "which way it moved", "rare actions", "spread"
ESTIMATORS, STEPS, ENDS = "estimators", "several steps", "ends of episodes"


# --- numbers that are drawn ----------------------------------------------------------------


def logs(probabilities: Any) -> Any:
    """Take logarithms of nested lists, to six digits."""
    if isinstance(probabilities, list):
        return [logs(each) for each in probabilities]
    return round(log(probabilities), 6)


# --- cases ---------------------------------------------------------------------------------


def ratio_case(stage: str, name: str, new: Any, old: Any, **more: Any) -> Case:
    """One call with log-probabilities; the old ones get no gradient, so both ways pass."""
    inputs = {"log_probs": new, "log_probs_old": old}
    return Case(stage=stage, name=name, inputs=inputs, constants=("log_probs_old",), **more)


RATIO_CASES = (
    ratio_case(SMALLEST, "nothing has moved", logs([0.5]), logs([0.5])),
    ratio_case(MOVED, "from 0.25 to 0.5", logs([0.5]), logs([0.25])),
    ratio_case(MOVED, "from 0.5 to 0.1", logs([0.1]), logs([0.5])),
    ratio_case(MOVED, "two samples", logs([0.9, 0.3]), logs([0.6, 0.6])),
    ratio_case(MOVED, "a new policy that is sure", [0.0], logs([0.5])),
    ratio_case(RARE, "from e⁻²⁰ to e⁻²¹", [-21.0], [-20.0]),
    ratio_case(RARE, "probabilities too small for a float", [-800.5], [-800.0]),
    ratio_case(RARE, "a density above 1: continuous actions", [1.5], [0.5]),
    ratio_case(RARE, "15 times as likely", logs([0.9]), logs([0.06])),
    ratio_case(EDGES, "no axis", -1.0, -1.5),
    ratio_case(EDGES, "two axes", logs([[0.5, 0.1], [0.2, 0.4]]), logs([[0.4, 0.2], [0.2, 0.1]])),
    ratio_case(GRADIENTS, "nothing has moved", logs([0.5]), logs([0.5]), gradients=True),
    ratio_case(GRADIENTS, "from 0.25 to 0.5", logs([0.5]), logs([0.25]), gradients=True),
    ratio_case(
        SEEDED,
        "12 samples",
        draw(Random(1), 12, low=-3, high=-0.1),
        draw(Random(2), 12, low=-3, high=-0.1),
        gradients=True,
    ),
    ratio_case(
        SEEDED,
        "float32, 3 steps, 4 environments",
        draw(Random(3), 3, 4, low=-3, high=-0.1),
        draw(Random(4), 3, 4, low=-3, high=-0.1),
        gradients=True,
        dtype=torch.float32,
    ),
)


def weights_case(stage: str, name: str, weights: Sequence[float], **more: Any) -> Case:
    """One call with weights."""
    return Case(stage=stage, name=name, inputs={"weights": list(weights)}, **more)


WEIGHT_CASES = (
    weights_case(SMALLEST, "one sample", [1.0]),
    weights_case(SMALLEST, "four equal weights", [1.0, 1.0, 1.0, 1.0]),
    weights_case(SPREAD, "equal weights of another size", [3.0, 3.0]),
    weights_case(SPREAD, "3 and 1", [3.0, 1.0]),
    weights_case(SPREAD, "one weighs nothing", [2.0, 2.0, 0.0]),
    weights_case(SPREAD, "one sample has it all", [5.0, 0.0, 0.0, 0.0]),
    weights_case(SPREAD, "six of 1.65 and four of 0.025", [1.65] * 6 + [0.025] * 4),
    weights_case(EDGES, "one weighs nearly nothing", [1.0, 1.0, 1e-9]),
    weights_case(EDGES, "tiny weights", [2e-30, 1e-30, 1e-30], dtype=torch.float32),
    weights_case(EDGES, "squares too large for a float", [2e30, 1e30], dtype=torch.float32),
    weights_case(SEEDED, "12 weights", draw(Random(5), 12, low=0.1, high=3)),
    weights_case(
        SEEDED, "float32, 20 weights", draw(Random(6), 20, low=0.1, high=9), dtype=torch.float32
    ),
)


def loss_case(stage: str, name: str, new: Any, old: Any, advantages: Any, **more: Any) -> Case:
    """One call of the surrogate's loss."""
    inputs = {"log_probs": new, "log_probs_old": old, "advantages": advantages}
    return Case(stage=stage, name=name, inputs=inputs, **more)


LOSS_CASES = (
    loss_case(SMALLEST, "nothing has moved", logs([0.5]), logs([0.5]), [2.0]),
    loss_case(MOVED, "a good action, from 0.25 to 0.5", logs([0.5]), logs([0.25]), [1.0]),
    loss_case(MOVED, "a bad action, from 0.25 to 0.5", logs([0.5]), logs([0.25]), [-1.0]),
    loss_case(MOVED, "two samples", logs([0.5, 0.1]), logs([0.25, 0.2]), [1.0, 3.0]),
    loss_case(MOVED, "an advantage of 0", logs([0.5, 0.1]), logs([0.25, 0.2]), [1.0, 0.0]),
    loss_case(
        EDGES,
        "the same two samples twice",
        logs([0.5, 0.1] * 2),
        logs([0.25, 0.2] * 2),
        [1.0, 3.0] * 2,
    ),
    loss_case(EDGES, "far away: from 0.05 to 0.9", logs([0.9]), logs([0.05]), [1.0]),
    loss_case(EDGES, "two equal advantages", logs([0.5, 0.1]), logs([0.25, 0.2]), [2.0, 2.0]),
    loss_case(EDGES, "probabilities too small for a float", [-800.5], [-800.0], [1.0]),
    loss_case(
        EDGES,
        "two axes",
        logs([[0.5, 0.1, 0.2], [0.3, 0.4, 0.6]]),
        logs([[0.25, 0.2, 0.2], [0.6, 0.1, 0.5]]),
        [[1.0, 3.0, -1.0], [2.0, -2.0, 0.5]],
    ),
    loss_case(GRADIENTS, "nothing has moved", logs([0.5]), logs([0.5]), [2.0], gradients=True),
    loss_case(GRADIENTS, "from 0.25 to 0.5", logs([0.5]), logs([0.25]), [2.0], gradients=True),
    loss_case(
        GRADIENTS, "two samples", logs([0.5, 0.1]), logs([0.25, 0.2]), [1.0, -3.0], gradients=True
    ),
    loss_case(
        SEEDED,
        "12 samples",
        draw(Random(7), 12, low=-3, high=-0.1),
        draw(Random(8), 12, low=-3, high=-0.1),
        draw(Random(9), 12, low=-3, high=3),
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(10), 4, 3, low=-3, high=-0.1),
        draw(Random(11), 4, 3, low=-3, high=-0.1),
        draw(Random(12), 4, 3, low=-3, high=3),
        gradients=True,
        dtype=torch.float32,
    ),
)


def kl_cases(stage: str, name: str, new: Any, old: Any, **more: Any) -> tuple[Case, ...]:
    """One call with each estimator."""
    inputs = {"log_probs": new, "log_probs_old": old}
    return tuple(
        Case(
            stage=stage,
            name=f"{name}, {estimator}",
            inputs=inputs,
            options={"estimator": estimator},
            **more,
        )
        for estimator in ("k1", "k2", "k3")
    )


KL_CASES = (
    *kl_cases(SMALLEST, "nothing has moved", logs([0.5]), logs([0.5])),
    *kl_cases(ESTIMATORS, "from 0.25 to 0.5", logs([0.5]), logs([0.25])),
    *kl_cases(ESTIMATORS, "from 0.5 to 0.25", logs([0.25]), logs([0.5])),
    *kl_cases(ESTIMATORS, "two samples", logs([0.5, 0.1]), logs([0.25, 0.2])),
    *kl_cases(EDGES, "three samples, one far away", logs([0.9, 0.3, 0.3]), logs([0.06, 0.3, 0.4])),
    *kl_cases(EDGES, "probabilities too small for a float", [-800.5], [-800.0]),
    *kl_cases(
        EDGES,
        "two axes",
        logs([[0.5, 0.1, 0.2], [0.3, 0.4, 0.6]]),
        logs([[0.25, 0.2, 0.2], [0.6, 0.1, 0.5]]),
    ),
    *kl_cases(
        SEEDED,
        "12 samples",
        draw(Random(13), 12, low=-3, high=-0.1),
        draw(Random(14), 12, low=-3, high=-0.1),
    ),
    *kl_cases(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(15), 4, 3, low=-3, high=-0.1),
        draw(Random(16), 4, 3, low=-3, high=-0.1),
        dtype=torch.float32,
    ),
)


def squeeze_case(
    stage: str, name: str, logits: Any, actions: list[int], advantages: Any, **more: Any
) -> Case:
    """One call with a batch and a number of steps."""
    inputs = {"logits": logits, "actions": actions, "advantages": advantages}
    options = {"num_steps": more.pop("num_steps"), "learning_rate": more.pop("learning_rate", 0.5)}
    return Case(
        stage=stage, name=name, inputs=inputs, options=options, integers=("actions",), **more
    )


BATCH = ([0.0, 0.0, 1.0], [0, 0, 1, 2], [0.5, 0.5, 1.0, -1.0])
SQUEEZE_CASES = (
    squeeze_case(SMALLEST, "one step, one sample", [0.0, 0.0], [1], [1.0], num_steps=1),
    squeeze_case(SMALLEST, "no step", *BATCH, num_steps=0),
    squeeze_case(SMALLEST, "one step", *BATCH, num_steps=1),
    squeeze_case(STEPS, "two steps", *BATCH, num_steps=2),
    squeeze_case(STEPS, "five steps", *BATCH, num_steps=5),
    squeeze_case(STEPS, "a small learning rate", *BATCH, num_steps=5, learning_rate=0.05),
    squeeze_case(EDGES, "one bad action", [1.0, 0.0], [0], [-2.0], num_steps=4),
    squeeze_case(
        EDGES,
        "a rare action",
        [0.0, 3.0],
        [0, 1, 1],
        [2.0, 0.5, -0.5],
        num_steps=3,
        learning_rate=1.0,
    ),
    squeeze_case(
        SEEDED,
        "20 steps, 10 samples",
        draw(Random(17), 4),
        [Random(18).randrange(4) for _ in range(3)] + [0, 1, 2, 3, 3, 0, 1],
        draw(Random(19), 10),
        num_steps=20,
    ),
    squeeze_case(
        SEEDED,
        "float32, 8 steps",
        draw(Random(20), 3),
        [0, 1, 2, 1, 0],
        draw(Random(21), 5),
        num_steps=8,
        dtype=torch.float32,
    ),
)


def trajectory_case(stage: str, name: str, new: Any, old: Any, ended: Any, **more: Any) -> Case:
    """One call with log-probabilities and flags [T, N]."""
    inputs = {"log_probs": new, "log_probs_old": old, "ended": ended}
    return Case(stage=stage, name=name, inputs=inputs, **more)


def column(*values: Any) -> list[list[Any]]:
    """Steps of one environment: [T, 1]."""
    return [[value] for value in values]


def draw_ends(random: Random, num_steps: int, num_envs: int) -> list[list[bool]]:
    """Draw flags: an episode ends at one step in three."""
    return [[random.random() < 1 / 3 for _ in range(num_envs)] for _ in range(num_steps)]


TRAJECTORY_CASES = (
    trajectory_case(SMALLEST, "one step", logs([[0.5]]), logs([[0.25]]), [[True]]),
    trajectory_case(
        SMALLEST,
        "three steps of one episode",
        logs(column(0.5, 0.2, 0.9)),
        logs(column(0.25, 0.4, 0.3)),
        column(False, False, True),
    ),
    trajectory_case(
        ENDS,
        "two episodes, one after the other",
        logs(column(0.5, 0.5, 0.2, 0.6, 0.5)),
        logs(column(0.25, 0.1, 0.4, 0.2, 0.25)),
        column(False, True, False, False, True),
    ),
    trajectory_case(
        ENDS,
        "every step ends an episode",
        logs(column(0.5, 0.5, 0.2)),
        logs(column(0.25, 0.1, 0.4)),
        column(True, True, True),
    ),
    trajectory_case(
        ENDS,
        "an episode that still runs at the last row",
        logs(column(0.5, 0.5, 0.2)),
        logs(column(0.25, 0.1, 0.4)),
        column(True, False, False),
    ),
    trajectory_case(
        ENDS,
        "two environments that end at other times",
        logs([[0.5, 0.3], [0.5, 0.6], [0.2, 0.9]]),
        logs([[0.25, 0.3], [0.1, 0.2], [0.4, 0.3]]),
        [[False, True], [True, False], [False, False]],
    ),
    trajectory_case(
        RARE,
        "down to e⁻⁸⁰⁰ and back",
        column(-801.0, -1.0),
        column(-1.0, -801.0),
        column(False, False),
    ),
    trajectory_case(
        RARE,
        "a far step at the end of an episode",
        column(-801.0, -1.0),
        column(-1.0, -2.0),
        column(True, False),
    ),
    trajectory_case(
        RARE,
        "probabilities too small for a float",
        column(-800.5, -1.0),
        column(-800.0, -2.0),
        column(False, True),
    ),
    trajectory_case(
        SEEDED,
        "8 steps, 3 environments",
        draw(Random(22), 8, 3, low=-2, high=-0.1),
        draw(Random(23), 8, 3, low=-2, high=-0.1),
        draw_ends(Random(24), 8, 3),
    ),
    trajectory_case(
        SEEDED,
        "float32, 10 steps, 2 environments",
        draw(Random(25), 10, 2, low=-2, high=-0.1),
        draw(Random(26), 10, 2, low=-2, high=-0.1),
        draw_ends(Random(27), 10, 2),
        dtype=torch.float32,
    ),
)

# --- mistakes in words ---------------------------------------------------------------------

UPSIDE_DOWN = "The ratio is upside down: old over new. It is new over old."
QUOTIENT = (
    "It divides probabilities. Where both are too small for a float that is 0/0 (or what a guard "
    "against it makes of it). Take the difference of the logarithms first."
)
QUOTIENT_OF_LOGS = "It divides the logarithms. The ratio is the exponential of their difference."
LOG_KEPT = "The exponential is missing: no change gives 0 where it must give 1."
ADDED = "It adds the logarithms. Dividing is subtracting: new minus old."
ONE_PLUS = (
    "It gives 1 + the logarithm of the ratio. That is close while nothing has moved far, and wrong "
    "afterwards."
)
RECOMPUTED = (
    "The old log-probabilities are not used: every ratio is 1 whatever the policy does. They were "
    "written down while sampling; divide by those."
)
CLIPPED = "It cuts the ratio off. That is a later idea; here the ratio is wanted as large as it is."
RATIO_MISTAKES = {
    "inverse_ratio": UPSIDE_DOWN,
    "quotient_of_probabilities": QUOTIENT,
    "quotient_of_the_logarithms": QUOTIENT_OF_LOGS,
    "logarithm_kept": LOG_KEPT,
    "old_log_probs_recomputed": RECOMPUTED,
    "old_log_probs_not_used_as_given": "It averages the old log-probabilities over the batch. Each "
    "sample is divided by its own.",
    "logarithms_added": ADDED,
    "one_plus_the_log_ratio": ONE_PLUS,
    "old_policy_forgotten": "It gives the new probability. Divide by the old one.",
    "difference_of_probabilities": "It subtracts probabilities. A ratio divides them: 1 means that "
    "nothing has moved.",
    "ratios_normalised": "The ratios are made to have the mean 1. Here each is wanted as it is.",
    "ratio_clipped": CLIPPED,
    "averaged": "It averages over the batch. Each sample keeps its own ratio.",
    "whole_batch_as_one_episode": "It multiplies over the batch. Each sample keeps its own ratio.",
    "never_below_one": "It gives the larger of ratio and inverse. An action that became rarer has "
    "a ratio below 1.",
    "minus_one": "It gives the ratio minus 1. No change is a ratio of 1, and not of 0.",
    "power_of_ten": "It raises 10 to the difference. The logarithms are natural ones.",
}
WEIGHT_MISTAKES = {
    "share_instead_of_samples": "It gives a share of the batch. Asked for is a number of samples: "
    "do not divide by their count.",
    "squares_not_summed": "It squares the sum below as well, which always gives 1. Below stands "
    "the sum of the squares.",
    "samples_with_weight": "It counts the weights that are not 0, however small. A small weight is "
    "worth little.",
    "squares_overflow": "The squares of large weights (or of tiny ones) leave the range of a "
    "float. Divide by the largest weight first: the result does not depend on the scale.",
    "upside_down": "It is upside down: the sum of the squares stands below.",
    "sum_over_the_largest": "It divides the sum by the largest weight. Related, and another "
    "number: look at the weights 3 and 1.",
    "perplexity": "It gives the exponential of the entropy of the weights. It is another count of "
    "the same kind; here squares are asked for.",
    "number_of_samples": "It counts all samples. Weights that differ are worth less.",
    "not_squared_above": "The sum above is not squared. As it stands, the scale of the weights "
    "matters.",
    "mean_taken_for_one": "It takes the mean of the weights for 1. In a batch it is not, and "
    "weights may have any scale: look at the case 3 and 3.",
    "sum_of_the_weights": "It gives the sum of the weights. Weights of another size would then be "
    "worth more samples.",
    "square_root_taken": "It takes the square root. Four equal weights are worth four samples.",
    "deviation_for_the_variance": "It uses the standard deviation where the variance belongs.",
    "sample_variance": "It divides the variance by B − 1. The formula has the mean of the squared "
    "differences: divide by B.",
    "weights_taken_for_logarithms": "It takes the exponential of the weights. They are ratios "
    "already.",
}
LOSS_MISTAKES = {
    "log_prob_in_place_of_the_ratio": "It is the loss of REINFORCE: it counts what was drawn "
    "often, however often the policy would draw it now. The ratio belongs there.",
    "surrogate_called_a_loss": "The sign is that of an objective. A loss is minimised: give minus "
    "the mean.",
    "old_policy_not_detached": "The numbers are right, and a gradient flows into log_probs_old: "
    "the old policy is what it was. It is a constant.",
    "advantages_not_detached": "The numbers are right, and a gradient flows into the advantages: "
    "the critic would be trained to make actions look good. They are constants.",
    "log_ratio_as_weight": "It multiplies by the logarithm of the ratio: the right slope at the "
    "start, and never another. Take the exponential.",
    "ratio_as_a_constant_weight": "The slope is right and the number is not: a constant ratio "
    "times log π. Let the gradient flow through the ratio itself.",
    "weights_made_to_sum_to_one": "It divides by the sum of the ratios. That is another estimator "
    "with another gradient; here divide by the number of samples.",
    "summed_over_the_batch": "It adds up over the batch, so the step grows with the batch. Take "
    "the mean.",
    "ratio_upside_down": UPSIDE_DOWN,
    "probabilities_divided": QUOTIENT,
    "quotient_of_the_logarithms": QUOTIENT_OF_LOGS,
    "one_plus_the_log_ratio": ONE_PLUS,
    "old_policy_forgotten": "It weights by the new probability alone. Divide by the old one: rare "
    "actions were drawn rarely.",
    "old_log_probs_recomputed": RECOMPUTED,
    "old_policy_on_both_sides": "The ratio is detached, so nothing can be learned: no gradient "
    "reaches log_probs. Detach the old log-probabilities alone.",
    "not_averaged": "It gives one number per sample. Asked for is one number: the mean.",
    "means_multiplied": "It averages ratios and advantages before it multiplies. Each ratio "
    "belongs to its own advantage.",
    "one_ratio_for_the_batch": "It multiplies the ratios of the batch. Each sample has its own.",
    "advantages_normalised": "It normalises the advantages. That happens before, once; here they "
    "are taken as they are.",
    "absolute_advantages": "It loses the sign of the advantages: bad actions become likelier too.",
    "ratio_clipped": CLIPPED,
    "zero_advantages_left_out": "Samples whose advantage is 0 are left out of the count that you "
    "divide by. Divide by the number of all samples.",
    "last_axis_only": "It averages over one axis. The mean goes over all samples, whatever the "
    "shape is.",
    "ratio_minus_one": "It uses the ratio minus 1. The gradient is the same; the number that was "
    "asked for has the ratio.",
}
KL_MISTAKES = {
    "direction_swapped": "The ratio is upside down. The samples come from the old policy, and they "
    "estimate KL(π_old ‖ π) with the ratio new over old.",
    "k3_sign_turned": "In k3 the logarithm is added. It is subtracted: then no term is negative.",
    "k3_without_minus_one": "In k3 the −1 is missing: equal policies would be one nat apart.",
    "k1_sign_turned": "k1 has its sign turned. It is minus the mean of the log-ratio.",
    "k2_without_the_half": "In k2 the half is missing: it is half the mean of the squares.",
    "k1_made_positive": "k1 is made positive, term by term. It may be negative; that is the price "
    "of being right on average.",
    "summed": "It adds up over the batch. An estimate of a mean is a mean.",
    "not_averaged": "It gives one number per sample. Asked for is one number: the mean.",
    "square_of_the_mean": "In k2 the mean is squared. Square each term first.",
    "k2_from_the_ratio": "In k2 the ratio minus 1 is squared. Square its logarithm.",
    "always_k1": "It gives k1 whatever is asked for.",
    "always_k3": "It gives k3 whatever is asked for.",
    "k1_and_k3_exchanged": "k1 and k3 are exchanged: k1 is the one without an exponential.",
    "k3_without_the_logarithm": "In k3 the logarithm is missing: the mean of ratio − 1 is 0 for "
    "any two policies.",
    "weighted_by_the_ratio": "k1 is weighted by the ratio: an estimate of KL(π ‖ π_old). Asked for "
    "is the direction that starts at the old policy.",
    "weighted_by_the_probability": "Each term is weighted by its old probability once more. The "
    "samples were drawn with it already: take the plain mean.",
    "probabilities_divided": QUOTIENT,
    "in_bits": "These are bits. Natural logarithms give nats.",
    "absolute_difference": "k2 takes absolute values. It is half the square.",
}
SQUEEZE_MISTAKES = {
    "old_policy_recomputed": "The ratio is still 1 at every step, since it divides the policy of "
    "the moment by itself. What is the policy that drew the batch?",
    "ratio_upside_down": UPSIDE_DOWN,
    "one_step_behind": "The old policy is renewed after each step. The batch was drawn once: its "
    "policy stays what it was before the first step.",
    "both_follow_the_parameters": "Both logarithms are those of the moment and both carry the "
    "gradient: the ratio is 1 and its slope 0. The old ones belong in front of the loop.",
    "ratio_without_gradient": "No gradient is left in the ratio. Only the old log-probabilities "
    "are constants.",
    "old_policy_forgotten": "It weights by the probability of the moment. Divide by that of the "
    "policy that drew the batch.",
    "quotient_of_the_logarithms": QUOTIENT_OF_LOGS,
    "ratio_clipped": CLIPPED,
    "climbs_down": "The sign is turned: good actions become rare. It was right in the given lines.",
    "summed": "It adds up; the given lines took the mean, and were right.",
    "one_step_only": "It takes one step and stops. The loop was right in the given lines.",
    "ratios_normalised": "It divides by the mean ratio. That is another estimator.",
    "uniform_old_policy": "It takes all actions for equally likely under the old policy. The old "
    "policy is the one with the logits that are given.",
    "logits_for_logarithms": "It subtracts logits. They are log-probabilities only after the "
    "logarithm of the sum has been taken off, and that sum moves too.",
    "means_multiplied": "It averages ratios and advantages before it multiplies.",
    "averaged_old_policy": "It averages the old log-probabilities over the batch. Each sample is "
    "divided by its own.",
}
TRAJECTORY_MISTAKES = {
    "not_reset_at_an_end": "The product runs on into the next episode. Each one begins with 1.",
    "reset_one_row_early": "The last step of an episode is cut off from its own episode. The flag "
    "at index t says that step t was the last: the row after it starts anew.",
    "reset_one_row_late": "The first step of an episode still belongs to the one before it. The "
    "flag at index t says that step t was the last.",
    "single_ratios": "It gives the ratio of each step. Asked for is the product from the start of "
    "the episode on.",
    "own_step_left_out": "The ratio of the step itself is missing. The product includes it.",
    "ratios_added": "It adds the ratios. Probabilities of steps multiply.",
    "weight_of_the_whole_episode": "Every step gets the weight of its whole episode. What comes "
    "after a step does not belong to its weight.",
    "from_the_end": "It multiplies from the step to the end. Multiply from the start to the step.",
    "product_underflows": "It multiplies ratios: one that is 0 in a float (or infinite) spoils "
    "everything after it. Add logarithms and take the exponential at the end.",
    "geometric_mean": "It takes the root of as many steps. The weight is the product itself.",
    "logarithm_kept": "It gives the logarithm of the weight. Take the exponential at the end.",
    "upside_down": UPSIDE_DOWN,
    "multiplied_over_the_environments": "It multiplies over the environments. Time is the first "
    "axis.",
    "environments_end_together": "The end of one environment starts all of them anew. Each column "
    "has its own flags.",
    "weights_normalised": "The weights of a step are made to have the mean 1. Here they are wanted "
    "as they are.",
    "new_policy_alone": "It gives the probability of the episode so far under the new policy. "
    "Divide by that under the old one.",
    "clipped_at_one": "It cuts the ratios off at 1 (truncated weights). That is a later idea; here "
    "they are wanted as large as they are.",
    "first_episode_only": "After the first end of a column nothing is multiplied any more. A "
    "column may hold several episodes.",
}
NUMBER_MISTAKES = {
    "ratio_upside_down": "Your ratios are old over new. A ratio is new over old.",
    "difference_of_probabilities": "You subtracted probabilities. A ratio divides them.",
    "share_for_samples": "You gave the effective sample size as a share of the batch. Give a "
    "number of samples.",
    "sum_over_the_largest": "You divided the sum of the weights by the largest. Square the sum, "
    "and divide by the sum of the squares.",
    "objective_for_the_loss": "You gave the surrogate itself. The loss is minus that.",
    "ratio_forgotten": "You averaged the advantages. Each counts with its ratio.",
    "divided_by_the_weights": "You divided by the sum of the ratios. Divide by how many draws "
    "there are.",
    "summed": "You added up over the draws. These are means.",
    "k1_made_positive": "You took k1 for a number that cannot be negative. It is minus the mean of "
    "the log-ratio, and in a small batch anything may come out.",
    "k3_without_minus_one": "The −1 is missing in k3: it is 0 where nothing has moved.",
    "k3_sign_turned": "You added the logarithm in k3. It is subtracted: no term is then negative.",
    "k2_for_k3": "You gave half the mean squared log-ratio: k2.",
    "ratios_added": "You added the ratios of the steps. The probabilities of steps multiply.",
    "mean_of_the_ratios": "You averaged the ratios of the steps. The probabilities of steps "
    "multiply.",
    "log_weight_kept": "You added the logarithms and left it there. Take the exponential.",
    "other_direction": "You gave the KL that starts at the new policy. Weight with the old "
    "probabilities, and put the old one on top.",
    "estimate_for_the_divergence": "You gave the estimate from the four draws. The KL itself is a "
    "sum over the three actions, weighted with the old policy.",
    "in_bits": "These are bits. Natural logarithms give nats.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="importance.importance_ratios",
        cases=RATIO_CASES,
        gives="same shape",
        learns=("log_probs",),
        mistakes=RATIO_MISTAKES,
        hints=(
            "How much more likely is the action now than when it was drawn? That is a division, "
            "and you are given logarithms.",
            "Dividing is subtracting in logarithms. Leave them at the very end, once.",
            "ρ = exp( log π − log π_old )",
        ),
    ),
    FunctionExercise(
        id="importance.effective_sample_size",
        cases=WEIGHT_CASES,
        gives="number",
        mistakes=WEIGHT_MISTAKES,
        hints=(
            "Begin with equal weights: what must come out for B of them, whatever their size?",
            "Square of the sum, over sum of the squares. The scale cancels, so divide all weights "
            "by the largest before you square.",
            "ESS = (Σ w)² / Σ w²",
        ),
    ),
    FunctionExercise(
        id="importance.surrogate_loss",
        cases=LOSS_CASES,
        gives="scalar",
        learns=("log_probs",),
        mistakes=LOSS_MISTAKES,
        hints=(
            "Start from the loss of REINFORCE. What takes the place of log π, so that a draw "
            "counts as often as the policy of the moment would draw it?",
            "The ratio carries the gradient. What was written down while sampling is a constant, "
            "and so are the advantages.",
            "−mean( ρ·Â ),  ρ = exp(log π − log π_old)",
        ),
    ),
    FunctionExercise(
        id="importance.approximate_kl",
        cases=KL_CASES,
        gives="scalar",
        mistakes=KL_MISTAKES,
        hints=(
            "All three are means over the batch of something made from the log-ratio alone.",
            "k1 is minus the log-ratio, k2 half its square, k3 the ratio minus 1 minus the "
            "log-ratio. The samples were drawn by the old policy, so nothing else is weighted.",
            "k1 = mean(−log ρ),  k2 = mean(½·(log ρ)²),  k3 = mean(ρ − 1 − log ρ)",
        ),
    ),
    NumbersExercise(
        id="importance.four_draws",
        questions={
            "a": ("the ratio of the second draw", "Divide the new probability by the old one."),
            "b": (
                "the effective sample size",
                "Write down the four ratios. Square their sum, and divide by the sum of their "
                "squares.",
            ),
            "c": (
                "the surrogate loss",
                "Multiply each ratio by its advantage, take the mean, turn the sign.",
            ),
            "d": ("k1", "Take the logarithm of each ratio; minus their mean."),
            "e": (
                "k3",
                "For each draw: ratio minus 1 minus logarithm of the ratio. Then the mean.",
            ),
            "f": (
                "the weight of an episode with these four steps",
                "How likely was the episode then, how likely is it now? Probabilities multiply.",
            ),
            "g": (
                "KL(π_old ‖ π) itself",
                "A sum over the actions: old probability times the logarithm of old over new.",
            ),
        },
        tolerance=0.0005,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "Write a table first: for each draw the ratio, its logarithm, ratio times advantage.",
            "b needs the sum of the ratios and that of their squares; c, d and e are means over "
            "the four draws; f is a product; g looks at the policies and at no draw.",
            "g = Σ_a π_old(a)·log( π_old(a) / π(a) )",
        ),
    ),
    FunctionExercise(
        id="importance.mended_squeeze",
        cases=SQUEEZE_CASES,
        gives="tensor",
        returns="the logits after all steps, a torch.Tensor of the shape of those given",
        mistakes=SQUEEZE_MISTAKES,
        starts_with="old_policy_recomputed",
        hints=(
            "Print the ratios at the second step. What should they be after the policy has moved?",
            "Two log-probabilities meet in the ratio. One belongs to the policy of the moment, the "
            "other to the policy that drew the batch.",
            "ρ_k = exp( log π_k − log π_0 ) at step k: the old one stays π_0",
        ),
    ),
    FunctionExercise(
        id="importance.trajectory_weights",
        cases=TRAJECTORY_CASES,
        gives="tensor",
        returns="a torch.Tensor of shape [T, N], the weight of each episode up to each step",
        mistakes=TRAJECTORY_MISTAKES,
        hints=(
            "Take logarithms first: the product becomes a running sum of log-ratios.",
            "Go forwards and carry one sum per environment. It starts at 0, and starts anew on the "
            "row after an end. The exponential comes last.",
            "ℓ_t = (1 − ended_{t−1})·ℓ_{t−1} + log π_t − log π_old,t;  w_t = e^(ℓ_t)",
        ),
    ),
)
