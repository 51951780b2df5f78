"""Lesson 04: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    QUADRANTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    SignsExercise,
)

# --- cases ---------------------------------------------------------------------------------

# The eight points of the gradient table: two inside the interval and two outside, twice.
EIGHT_RATIOS = [0.5, 0.9, 1.1, 1.5, 0.5, 0.9, 1.1, 1.5]
EIGHT_ADVANTAGES = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]


def draw_ratios(seed: int, count: int, edges: Sequence[float]) -> list[float]:
    """Draw ratios that keep away from the edges, where right answers may differ in rounding."""
    random, found = Random(seed), []
    while len(found) < count:
        ratio = round(exp(random.gauss(0, 0.45)), 2)
        if all(abs(ratio - edge) > 0.015 for edge in edges):
            found.append(ratio)
    return found


def draw_advantages(seed: int, count: int) -> list[float]:
    """Draw advantages of both signs, none of them near 0."""
    random = Random(seed)
    return [round(random.choice((-1, 1)) * random.uniform(0.2, 3), 2) for _ in range(count)]


def split(values: Sequence[float], columns: int) -> list[list[float]]:
    """Cut a row into rows."""
    return [list(values[i : i + columns]) for i in range(0, len(values), columns)]


def point(ratio: float, advantage: float) -> str:
    """Name a case with one sample."""
    return f"ratio {ratio:g}, advantage {advantage:+g}"


def surrogate_case(
    stage: str, name: str, ratios: Any, advantages: Any, options: Mapping[str, float], **more: Any
) -> Case:
    """One call with ratios."""
    inputs = {"ratios": ratios, "advantages": advantages}
    return Case(stage=stage, name=name, inputs=inputs, options=options, **more)


def loss_case(
    stage: str,
    name: str,
    ratios: Sequence[float],
    advantages: Sequence[float],
    epsilon: float = 0.2,
    **more: Any,
) -> Case:
    """One call with log-probabilities; under the old policy each action had probability 0.5."""
    inputs = {
        "log_probs": [round(log(0.5 * ratio), 6) for ratio in ratios],
        "log_probs_old": [round(log(0.5), 6)] * len(ratios),
        "advantages": list(advantages),
    }
    return Case(stage=stage, name=name, inputs=inputs, options={"clip_epsilon": epsilon}, **more)


def reshaped(case: Case, columns: int) -> Case:
    """Give the inputs of a case a second axis."""
    inputs = {name: split(row, columns) for name, row in case.inputs.items()}
    return Case(
        stage=case.stage,
        name=case.name,
        inputs=inputs,
        options=case.options,
        gradients=case.gradients,
        dtype=case.dtype,
    )


EPSILON = {"clip_epsilon": 0.2}
SURROGATE_CASES = (
    surrogate_case(SMALLEST, "inside the interval", [1.1], [1.0], EPSILON),
    surrogate_case(QUADRANTS, "a good action that moved far enough", [1.5], [1.0], EPSILON),
    surrogate_case(QUADRANTS, "a good action that moved the wrong way", [0.5], [1.0], EPSILON),
    surrogate_case(QUADRANTS, "a bad action that moved far enough", [0.5], [-1.0], EPSILON),
    surrogate_case(QUADRANTS, "a bad action that moved the wrong way", [1.5], [-1.0], EPSILON),
    surrogate_case(EDGES, "the upper edge", [1.2], [1.0], EPSILON),
    surrogate_case(EDGES, "the lower edge", [0.8], [-1.0], EPSILON),
    surrogate_case(EDGES, "an advantage of 0", [1.5], [0.0], EPSILON),
    surrogate_case(EDGES, "a bad action far out", [50.0], [-1.0], EPSILON),
    surrogate_case(EDGES, "a bad action that has all but gone", [0.1], [-1.0], EPSILON),
    surrogate_case(EDGES, "another ε", [1.4, 0.4], [1.0, -1.0], {"clip_epsilon": 0.5}),
    surrogate_case(EDGES, "no axis", 1.3, -2.0, EPSILON),
    surrogate_case(EDGES, "two axes", [[1.3, 0.6], [0.7, 1.05]], [[2, -2], [3, -3]], EPSILON),
    *(
        surrogate_case(
            GRADIENTS,
            f"ratio {ratio:g}, advantage {sign:+g}",
            [ratio],
            [sign],
            EPSILON,
            gradients=True,
        )
        for ratio, sign in zip(EIGHT_RATIOS, EIGHT_ADVANTAGES, strict=True)
    ),
    surrogate_case(
        SEEDED,
        "12 samples",
        draw_ratios(1, 12, (0.7, 1.3)),
        draw_advantages(2, 12),
        {"clip_epsilon": 0.3},
        gradients=True,
    ),
    surrogate_case(
        SEEDED,
        "float32, two axes",
        split(draw_ratios(3, 12, (0.9, 1.1)), 4),
        split(draw_advantages(4, 12), 4),
        {"clip_epsilon": 0.1},
        gradients=True,
        dtype=torch.float32,
    ),
)
LOSS_CASES = (
    loss_case(SMALLEST, "one sample, from 0.5 to 0.55", [1.1], [1.0]),
    loss_case(QUADRANTS, "a good action, from 0.5 to 0.75", [1.5], [1.0]),
    loss_case(QUADRANTS, "a good action, from 0.5 to 0.25", [0.5], [1.0]),
    loss_case(QUADRANTS, "a bad action, from 0.5 to 0.25", [0.5], [-1.0]),
    loss_case(QUADRANTS, "a bad action, from 0.5 to 0.75", [1.5], [-1.0]),
    loss_case(EDGES, "two samples, one clipped", [1.5, 0.9], [1.0, -2.0]),
    loss_case(EDGES, "the same two samples twice", [1.5, 0.9, 1.5, 0.9], [1.0, -2.0, 1.0, -2.0]),
    loss_case(EDGES, "both signs, both outside", [1.6, 1.6], [2.0, -1.0]),
    loss_case(EDGES, "an advantage of 0", [1.1, 1.1], [1.0, 0.0]),
    loss_case(EDGES, "a bad action that has all but gone", [0.1], [-1.0]),
    loss_case(EDGES, "another ε", [1.4, 0.4], [1.0, -1.0], 0.5),
    Case(
        stage=EDGES,
        name="probabilities too small for a float",
        inputs={"log_probs": [-800.1], "log_probs_old": [-800.0], "advantages": [1.0]},
        options=EPSILON,
    ),
    reshaped(loss_case(EDGES, "two axes", [1.5, 0.9, 0.6, 1.1], [1.0, -2.0, 2.0, 0.5]), 2),
    loss_case(GRADIENTS, "nothing has moved yet", [1.0], [2.0], gradients=True),
    *(
        loss_case(GRADIENTS, point(ratio, sign), [ratio], [sign], gradients=True)
        for ratio, sign in zip(EIGHT_RATIOS, EIGHT_ADVANTAGES, strict=True)
    ),
    loss_case(
        SEEDED,
        "12 samples",
        draw_ratios(5, 12, (0.7, 1.3)),
        draw_advantages(6, 12),
        0.3,
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "float32, 16 samples",
        draw_ratios(7, 16, (0.9, 1.1)),
        draw_advantages(8, 16),
        0.1,
        gradients=True,
        dtype=torch.float32,
    ),
)
FRACTION_CASES = (
    loss_case(SMALLEST, "one sample inside", [1.1], [1.0]),
    loss_case(QUADRANTS, "a good action that moved far enough", [1.5], [1.0]),
    loss_case(QUADRANTS, "a good action that moved the wrong way", [0.5], [1.0]),
    loss_case(QUADRANTS, "a bad action that moved far enough", [0.5], [-1.0]),
    loss_case(QUADRANTS, "a bad action that moved the wrong way", [1.5], [-1.0]),
    loss_case(EDGES, "a bad action inside", [0.9], [-1.0]),
    loss_case(EDGES, "a ratio of 1.21", [1.21], [1.0]),
    loss_case(EDGES, "a ratio of 0.81", [0.81], [-1.0]),
    loss_case(EDGES, "an advantage of 0", [1.5, 0.5], [0.0, 0.0]),
    loss_case(EDGES, "two of four are 0", [1.5, 1.1, 0.9, 1.4], [1.0, 0.0, 0.0, -1.0]),
    loss_case(EDGES, "another ε", [1.4, 1.7], [1.0, 1.0], 0.5),
    loss_case(EDGES, "one of two", [1.5, 1.1], [2.0, 2.0]),
    loss_case(EDGES, "one of four", [1.5, 1.1, 0.5, 1.0], [0.5, 2.0, 3.0, -1.0]),
    reshaped(loss_case(EDGES, "two axes", [1.5, 0.9, 0.6, 1.4], [1.0, -2.0, -2.0, -0.5]), 2),
    loss_case(SEEDED, "15 samples", draw_ratios(9, 15, (0.7, 1.3)), draw_advantages(10, 15), 0.3),
    loss_case(
        SEEDED,
        "float32, 20 samples",
        draw_ratios(11, 20, (0.9, 1.1)),
        draw_advantages(12, 20),
        0.1,
        dtype=torch.float32,
    ),
)
DUAL = {"epsilon_low": 0.2, "epsilon_high": 0.3, "bound": 3.0}
OTHER_DUAL = {"epsilon_low": 0.1, "epsilon_high": 0.4, "bound": 2.0}
# The bound lies inside the interval: it stops bad actions there, and good ones go on.
LOW_BOUND = {"epsilon_low": 0.2, "epsilon_high": 0.3, "bound": 1.1}
DUAL_CASES = (
    surrogate_case(SMALLEST, "inside the interval", [1.1], [1.0], DUAL),
    surrogate_case(QUADRANTS, "a good action, inside the wider side", [1.25], [1.0], DUAL),
    surrogate_case(QUADRANTS, "a good action that moved far enough", [1.5], [1.0], DUAL),
    surrogate_case(QUADRANTS, "a good action that moved the wrong way", [0.5], [1.0], DUAL),
    surrogate_case(QUADRANTS, "a bad action that moved far enough", [0.5], [-1.0], DUAL),
    surrogate_case(QUADRANTS, "a bad action that moved the wrong way", [2.0], [-1.0], DUAL),
    surrogate_case(QUADRANTS, "a bad action beyond the bound", [5.0], [-1.0], DUAL),
    surrogate_case(EDGES, "a good action beyond the bound", [5.0], [1.0], DUAL),
    surrogate_case(EDGES, "an advantage of −2 beyond the bound", [4.0], [-2.0], DUAL),
    surrogate_case(EDGES, "a bad action at 0.75", [0.75], [-1.0], DUAL),
    surrogate_case(EDGES, "a bad action that has all but gone", [0.1], [-1.0], DUAL),
    surrogate_case(EDGES, "an advantage of 0", [5.0], [0.0], DUAL),
    surrogate_case(EDGES, "a good action above a low bound", [1.25], [1.0], LOW_BOUND),
    surrogate_case(EDGES, "a bad action above a low bound", [1.25], [-1.0], LOW_BOUND),
    surrogate_case(EDGES, "a low bound, far out", [2.0, 2.0], [1.0, -1.0], LOW_BOUND),
    surrogate_case(EDGES, "other edges", [1.35, 0.85, 2.5], [1.0, -1.0, -0.5], OTHER_DUAL),
    surrogate_case(EDGES, "two axes", [[1.5, 0.6], [0.7, 6.0]], [[2, -2], [3, -3]], DUAL),
    *(
        surrogate_case(
            GRADIENTS,
            f"ratio {ratio:g}, advantage {sign:+g}",
            [ratio],
            [sign],
            DUAL,
            gradients=True,
        )
        for ratio in (0.5, 0.9, 1.1, 1.25, 1.5, 5.0)
        for sign in (1.0, -1.0)
    ),
    surrogate_case(GRADIENTS, "a low bound", [1.25, 1.25], [1.0, -1.0], LOW_BOUND, gradients=True),
    surrogate_case(
        SEEDED,
        "12 samples",
        [*draw_ratios(13, 9, (0.9, 1.4, 2.0)), 2.4, 3.1, 4.5],
        [*draw_advantages(14, 9), -0.7, -2.5, 1.3],
        OTHER_DUAL,
        gradients=True,
    ),
    surrogate_case(
        SEEDED,
        "float32, two axes",
        split([*draw_ratios(15, 9, (0.8, 1.3)), 2.4, 3.6, 7.5], 4),
        split([*draw_advantages(16, 9), -0.7, -2.5, -1.1], 4),
        DUAL,
        gradients=True,
        dtype=torch.float32,
    ),
)

# --- mistakes in words ---------------------------------------------------------------------

MINIMUM = (
    "You clip and leave the minimum out. Where the ratio moved the wrong way, the clipped term is "
    "flat: the sample cannot push it back. Take the smaller of the plain and the clipped term."
)
MAXIMUM_FOR_BAD = (
    "It takes the larger term where the advantage is negative (as does a minimum of two ratios, "
    "multiplied afterwards). The smaller term is right for both signs: ratio 1.5 with advantage −1 "
    "must give −1.5, so that the action is pushed down again."
)
MAXIMUM = (
    "It takes the larger of the two terms; perhaps the sign was turned before the minimum was "
    "taken. The smaller term of the objective counts, for good and for bad actions."
)
NO_CLIP = "Nothing is clipped: ratio times advantage pays for every further step."
LOG_CLIP = (
    "It clips the logarithm of the ratio to ±ε, so the edges are e^−ε and e^ε. Clip the ratio "
    "itself, to 1 − ε and 1 + ε."
)
ABOVE_ONLY = (
    "Only the upper edge is there (one at −ε is never reached): a bad action is pushed down "
    "without end. The lower edge is at 1 − ε."
)
BELOW_ONLY = (
    "Only the lower edge is there: a good action is pushed up without end. Clip at 1 + ε too."
)
AROUND_ZERO = "It clips the ratio to ±ε, as if no change were 0. No change is a ratio of 1."
OUTSIDE_DROPPED = (
    "It gives 0 to every sample outside the interval. The clipped value is a constant and not 0, "
    "and on the wrong side the sample must still push back."
)
PRODUCT_CLIPPED = (
    "It clips the product of ratio and advantage. Clip the ratio first, then multiply by the "
    "advantage."
)
LEAK = (
    "The numbers are right, and a gradient flows into the advantages: the critic would be trained "
    "to make actions look good. Detach the advantages."
)
EPSILON_IGNORED = "It uses 0.2 whatever ε is given. Use the argument clip_epsilon."
SIGN_OF_ADVANTAGE = "It uses only the sign of the advantage. How large it is matters too."
HALF_GRADIENT = (
    "The ratio inside the clip is detached: inside the interval, where both terms are equal, half "
    "of the gradient is lost. Leave the ratio attached in both terms."
)
OBJECTIVE = (
    "The sign is that of an objective. A loss is minimised: give minus the mean of the objective."
)
SUM = "It adds up over the batch, so the step grows with the batch. Take the mean."
UPPER_FOR_BOTH = (
    "The upper edge is used for both signs. A bad action stops at the lower edge, 1 − ε: there it "
    "has become rare enough."
)
CEILING = (
    "For bad actions the ratio is kept below 1 − ε. The lower edge is a floor: it holds the ratio "
    "up, it does not press it down."
)
NO_ADVANTAGE = (
    "The advantage is missing. Multiply both ratios by it before you take the smaller term: its "
    "sign decides which one that is."
)
ADVANTAGE_CLIPPED = "It clips the advantage. What is clipped is the ratio."
NORMALISED = (
    "It normalises the advantages (one sample has no deviation: 0 or NaN comes out). That happens "
    "before, once per minibatch; here they are taken as they are."
)
GOOD_OUTSIDE = (
    "Good actions outside always get the upper edge, also below the lower one. There the plain "
    "term is the smaller one: ratio 0.5 with advantage +1 gives 0.5."
)
ZEROS_LEFT_OUT = (
    "Samples whose advantage is 0 are left out of the count that you divide by; where no other is "
    "left, 0/0 is NaN. Divide by the number of all samples."
)
AVERAGE = (
    "It takes the average of the two terms: outside, half of the gradient is still there. Take the "
    "smaller term alone."
)
MEANS_FIRST = (
    "It averages first and takes the minimum of two means. The minimum belongs to each sample, "
    "the mean comes last."
)

# One sample's rule, wrong in the same way in the surrogate and in the two losses.
RULE_MISTAKES = {
    "clamp_without_minimum": MINIMUM,
    "maximum_for_bad_actions": MAXIMUM_FOR_BAD,
    "maximum_everywhere": MAXIMUM,
    "condition_turned": "It takes the larger term for good actions. The smaller one counts, for "
    "good and for bad actions.",
    "chosen_by_the_ratio": "It chooses by the ratio, which gives good actions the clipped term and "
    "bad ones the plain term. The smaller term counts always; no choice by hand is needed.",
    "no_clip": NO_CLIP,
    "clip_on_the_log_ratio": LOG_CLIP,
    "one_sided_clip": ABOVE_ONLY,
    "lower_edge_only": BELOW_ONLY,
    "lower_edge_as_a_ceiling": CEILING,
    "lower_edge_at_epsilon": "The lower edge is ε. It lies below 1 by ε: at 1 − ε.",
    "upper_edge_for_good_actions_outside": GOOD_OUTSIDE,
    "lower_edge_is_a_quotient": "The lower edge is 1/(1 + ε). The interval is symmetric in the "
    "ratio: 1 − ε.",
    "upper_edge_for_both_signs": UPPER_FOR_BOTH,
    "clip_always_at_the_lower_edge": "The clipped ratio is 1 − ε whatever comes in: the two edges "
    "are swapped, or something else than the ratio is clipped.",
    "clip_around_zero": AROUND_ZERO,
    "ratio_minus_one": "It uses ratio − 1, clipped to ±ε. The objective takes the ratio itself, "
    "clipped to 1 − ε and 1 + ε: inside, it is ratio times advantage.",
    "outside_thrown_away": OUTSIDE_DROPPED,
    "flat_samples_dropped": "Samples whose gradient the clip takes get 0. The gradient is right, "
    "and the objective is not: it stays at the edge times the advantage.",
    "half_the_width": "The interval is half as wide as asked for: ε is the distance from 1 to "
    "either edge.",
    "ratio_taken_for_its_logarithm": "It takes exp of the ratio. What comes in is a ratio.",
    "clipped_term_times_the_ratio": "The clipped term is multiplied by the ratio once more. It is "
    "clipped ratio times advantage.",
    "ratio_detached_in_the_plain_term": "The ratio of the plain term is detached: where it is the "
    "smaller one, the gradient is lost.",
    "product_clipped": PRODUCT_CLIPPED,
    "epsilon_ignored": EPSILON_IGNORED,
    "sign_of_the_advantage_only": SIGN_OF_ADVANTAGE,
    "absolute_advantage": "It uses the size of the advantage without its sign (or turns the sign "
    "of bad actions): they are made likely. The smaller term, as it is, counts for them too.",
    "bad_actions_ignored": "Bad actions do not count at all. They must be made rare: take the "
    "smaller term for them too.",
    "clipped_for_bad_actions": "Bad actions always take the clipped term: at ratio 1.5 nothing "
    "pushes them down again. The smaller term does.",
    "advantage_forgotten": NO_ADVANTAGE,
    "advantage_clipped": ADVANTAGE_CLIPPED,
    "advantages_normalised": NORMALISED,
    "advantages_centred": "It subtracts the mean of the advantages: the only sample of a batch "
    "gets advantage 0. Here they are taken as they are.",
    "average_of_the_terms": AVERAGE,
    "ratio_detached_in_the_clip": HALF_GRADIENT,
}
SURROGATE_MISTAKES = RULE_MISTAKES | {
    "sign_turned": "The sign is that of a loss. The objective of a good action is positive.",
    "gradient_through_the_advantages": LEAK,
    "mean_over_the_batch": "It averages. Here each sample keeps its own value; the loss takes the "
    "mean later.",
    "smallest_of_all_samples": "It takes the smallest number of the whole batch. Compare the two "
    "terms sample by sample: torch.minimum(plain, clipped).",
}
LOSS_MISTAKES = RULE_MISTAKES | {
    "objective_called_a_loss": OBJECTIVE,
    "sum_over_the_batch": SUM,
    "not_averaged": "It gives one number per sample. A loss is one number: take the mean.",
    "smallest_of_all_samples": "It takes the smallest number of the whole batch. Compare the two "
    "terms sample by sample, and take the mean of what is left.",
    "minimum_of_the_means": MEANS_FIRST,
    "mean_over_the_unclipped": "Clipped samples are left out of the mean; where no other is left, "
    "0/0 is NaN. They have no gradient and still count: the mean goes over every sample.",
    "zero_advantages_left_out": ZEROS_LEFT_OUT,
    "means_multiplied": "It averages ratios and advantages apart and multiplies the means. Each "
    "sample has its own ratio and its own advantage: multiply first, average last.",
    "old_log_probs_with_gradient": "The numbers are right, and a gradient flows into the old "
    "log-probabilities. They were written down while sampling: detach them.",
    "critic_trained_through_the_policy_loss": LEAK,
    "ratio_of_a_tensor_with_itself": "The ratio is 1 for every sample: it is made from log_probs "
    "alone. Subtract log_probs_old.",
    "ratio_upside_down": "The ratio is upside down: old over new. It is new over old, "
    "exp(log_probs − log_probs_old).",
    "exponential_missing": "It uses the difference of the logarithms as the ratio. Take exp of it.",
    "logarithms_added": "It adds the two logarithms. The ratio is exp of their difference.",
    "one_ratio_for_the_batch": "It makes one ratio from the sums over the batch. Each sample has "
    "its own ratio and its own minimum; the mean comes last.",
    "one_plus_the_log_ratio": "It uses 1 + the difference of the logarithms, which is close to the "
    "ratio near 1 only. Take exp of the difference.",
    "old_policy_forgotten": "It uses the new probability as the ratio. Divide by the old one: "
    "subtract log_probs_old before exp.",
    "probabilities_divided": "It divides two probabilities. Small ones become 0, and 0/0 is NaN; "
    "an added 1e-8 or nan_to_num hides that, and the ratio is lost. Subtract the logarithms first, "
    "then take exp.",
    "difference_of_probabilities": "It subtracts two probabilities. The ratio is their quotient: "
    "exp(log_probs − log_probs_old).",
    "quotient_of_the_logarithms": "It divides the logarithms. The ratio is the exp of their "
    "difference.",
    "ratio_forgotten": "This is the loss of REINFORCE, log-probability times advantage: it has no "
    "ratio and no clip.",
    "log_prob_times_a_constant_ratio": "It multiplies log-probability, advantage and a "
    "clipped ratio without gradient. Here the gradient comes from the ratio itself.",
    "penalty_added": "Something is added to the clipped surrogate, such as a mean of log-ratios. "
    "The clip stands here alone.",
}
FRACTION_MISTAKES = {
    "outside_reported_twice": "It counts every sample outside as one without gradient. On the "
    "wrong side the gradient is alive and pulls the ratio back.",
    "log_ratio_for_the_ratio": "It compares the logarithm of the ratio with ε. Take exp first: "
    "the edges are 1 − ε and 1 + ε.",
    "sides_swapped": "It counts the samples that are pulled back. The gradient is gone where the "
    "ratio went the way the advantage asks for: up with a good action, down with a bad one.",
    "above_only": "It forgets the lower edge: a ratio below 1 − ε is outside too.",
    "below_only": "It forgets the upper edge: a ratio above 1 + ε is outside too.",
    "counted_instead_of_averaged": "It counts samples. A fraction is the mean over all of them.",
    "inside_counted": "The first number is the share inside. Asked for is the share outside.",
    "both_complements": "Both numbers are 1 minus what is asked for: the share inside, and the "
    "share that keeps its gradient.",
    "living_gradient_counted": "The second number is the share that keeps its gradient. Asked for "
    "is the share whose gradient the clip has taken away.",
    "complement_for_the_second": "The second number is 1 minus the first. Asked for are those "
    "outside that have lost their gradient.",
    "order_of_the_two": "The two numbers are in the other order: outside first, then those "
    "without gradient.",
    "zero_advantage_counted": "It counts samples whose advantage is 0. They had no gradient that "
    "the clip could take away: compare with > and <.",
    "share_of_those_outside": "The second number is divided by the samples outside (0/0 where none "
    "is). Divide both by all samples.",
    "zero_advantages_left_out": ZEROS_LEFT_OUT,
    "percent": "It gives percent. A fraction lies between 0 and 1.",
    "ratio_compared_with_epsilon": "It compares the ratio with ε. The edges are 1 − ε and 1 + ε.",
    "good_actions_only": "The second number counts good actions only. A bad action whose ratio "
    "fell below 1 − ε has lost its gradient too.",
    "outside_and_good": "The second number counts good actions outside, on whichever side. A good "
    "action has lost its gradient above 1 + ε only, a bad one below 1 − ε.",
    "equal_terms_counted": "It counts the samples whose two terms are equal: those inside. Count "
    "those where the clipped term differs.",
    "ratio_upside_down": "The ratio is upside down: old over new. It is new over old.",
    "quotient_of_the_logarithms": "It divides the logarithms. The ratio is the exp of their "
    "difference.",
    "bad_actions_only": "The second number counts bad actions only. A good action whose ratio rose "
    "above 1 + ε has lost its gradient too.",
    "outside_and_bad": "The second number counts bad actions outside, on whichever side. A bad "
    "action has lost its gradient below 1 − ε only, a good one above 1 + ε.",
    "whether_instead_of_how_many": "It says whether there is one such sample. Asked for is "
    "their share: take the mean.",
    "product_compared_with_epsilon": "It compares (ratio − 1) times advantage with ε. How far the "
    "ratio went does not depend on the size of the advantage: compare the ratio, and look at the "
    "sign of the advantage.",
    "epsilon_ignored": EPSILON_IGNORED,
}
MENDED_MISTAKES = LOSS_MISTAKES | {
    "maximum_for_bad_actions": "The line still does what it did: the larger term for bad actions. "
    "Put in ratio 1.5 and advantage −1: which of the two terms should count, if the action is to "
    "become rare again?",
    "condition_turned": "Now it is wrong for good actions and right for bad ones. The smaller term "
    "counts for both signs, so no condition is needed.",
    "one_sided_clip": "Bad actions are no longer clipped: below 1 − ε they are pushed down without "
    "end. The smaller term stops that.",
}
SIGN_MISTAKES = {
    "signs_of_the_loss": "These are the signs of the loss. The question is about the objective, "
    "which is maximised.",
    "outside_is_always_flat": "You take every sample outside the interval for a flat one. Write "
    "down both terms for case c: the plain one is smaller, and it has a slope.",
    "inverted_for_bad_actions": "For bad actions you took the larger term. The smaller one counts "
    "for both signs.",
    "pulled_back": "You have the clip pull the ratio back into the interval. It only stops paying: "
    "where the smaller term is flat, the slope is 0.",
    "sign_of_the_advantage": "You gave the sign of the advantage: the slope without a clip. In two "
    "of the six cases the clipped term is the smaller one, and it is flat.",
    "good_actions_clipped_only": "You clip good actions only. A bad action that has become rare "
    "enough is not pushed further either.",
    "bad_actions_clipped_only": "You clip bad actions only. A good action that has become likely "
    "enough is not pushed further either.",
    "sides_swapped": "You put the flat stretches on the wrong sides. The slope is gone where the "
    "ratio went the way the advantage asks for.",
    "direction_of_the_ratio": "You gave the direction in which the ratio moved. The slope of the "
    "objective depends on the advantage and on which term is smaller.",
    "advantage_times_direction": "You multiplied the sign of the advantage by the direction in "
    "which the ratio moved. The slope asks what happens if the ratio grows, wherever it is.",
    "all_flat": "You expect no slope anywhere. Inside the interval the plain term counts, and its "
    "slope is the advantage.",
    "one_for_negative_too": "You have bad actions pushed up. A negative advantage gives a negative "
    "slope wherever the plain term counts.",
}
DUAL_MISTAKES = {
    "symmetric_low": "Both edges use epsilon_low. The upper edge is 1 + epsilon_high.",
    "symmetric_high": "Both edges use epsilon_high. The lower edge is 1 − epsilon_low.",
    "edges_swapped": "The two widths are swapped: epsilon_low belongs to the lower edge.",
    "bound_missing": "The bound has no effect: a bad action at ratio 5 must give 3 times its "
    "advantage, not 5 times.",
    "ratio_capped_at_the_bound": "The ratio is kept below the bound before the terms are compared. "
    "The bound may lie below 1 + epsilon_high: good actions must not feel it, and for bad ones it "
    "comes after the minimum.",
    "floor_before_the_clip": "The floor is applied before the minimum, so a bound below "
    "1 + epsilon_high does not hold. First the clipped minimum, then the floor.",
    "bound_for_good_actions_too": "The bound acts on good actions too: there the maximum makes "
    "their objective bound times advantage. It is for negative advantages only.",
    "minimum_with_the_bound": "You take the minimum with the bound. For a negative advantage the "
    "bound is a floor: take the maximum.",
    "edges_without_one": "The edges are epsilon_low and epsilon_high. The interval lies around 1: "
    "from 1 − epsilon_low to 1 + epsilon_high.",
    "lower_edge_without_one": "The lower edge is epsilon_low. It lies below 1 by that much: at "
    "1 − epsilon_low.",
    "upper_edge_without_one": "The upper edge is epsilon_high. It lies above 1 by that much: at "
    "1 + epsilon_high.",
    "upper_edge_for_good_actions_outside": GOOD_OUTSIDE,
    "floor_at_the_advantage": "The floor is the advantage itself. It is bound times the advantage.",
    "bound_as_a_factor": "It multiplies the objective of bad actions by the bound. The bound is a "
    "floor: nothing changes above it.",
    "bound_without_the_advantage": "The floor is −bound. It scales with the advantage: bound times "
    "advantage.",
    "upper_edge_at_the_bound": "The bound replaced the upper edge of the clip. Both exist: the "
    "edge for good actions, the bound for bad ones.",
    "clamp_without_minimum": MINIMUM,
    "maximum_for_bad_actions": MAXIMUM_FOR_BAD,
    "sign_turned": "The sign is that of a loss. The objective of a good action is positive.",
    "gradient_through_the_advantages": LEAK,
    "bound_added_to_one": "The floor is at ratio 1 + bound. The bound is itself a ratio.",
    "floor_on_the_clipped_term": "The floor is bound times the clipped term. It is bound times the "
    "advantage.",
    "plain_for_bad_actions": "Bad actions have the floor and have lost the clip: below "
    "1 − epsilon_low they are pushed down without end. Keep the minimum inside the maximum.",
    "floor_turned_positive": "The floor is −bound times the advantage, which is positive for bad "
    "actions. It is bound times the advantage.",
    "floor_for_good_actions_only": "The condition is turned: the floor is for negative advantages.",
    "clipped_for_bad_actions": "Bad actions always take the clipped term: they stop at "
    "1 + epsilon_high, and a bound above that is not used. Take the smaller term for them too; "
    "only then comes the floor, bound times advantage.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="clip.clipped_surrogate",
        cases=SURROGATE_CASES,
        gives="same shape",
        learns=("ratios",),
        mistakes=SURROGATE_MISTAKES,
        hints=(
            "Two terms: the plain one, ratio times advantage, and the same with a clipped ratio. "
            "What is left is to choose between them, sample by sample.",
            "Never pay for more than the clipped term allows, and always let a sample push back. "
            "Both wishes are one rule: the more pessimistic term. The advantages are constants.",
            "min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â )",
        ),
    ),
    FunctionExercise(
        id="clip.clipped_surrogate_loss",
        cases=LOSS_CASES,
        gives="scalar",
        learns=("log_probs",),
        mistakes=LOSS_MISTAKES,
        hints=(
            "Three steps: the ratio from two logarithms, the objective of each sample, one number "
            "to be minimised.",
            "What was written down while sampling is a constant: log_probs_old and the advantages. "
            "The mean comes after the minimum, and the sign turns last.",
            "−mean( min( ρ·Â, clip(ρ, 1 − ε, 1 + ε)·Â ) ),  ρ = exp(log π − log π_old)",
        ),
    ),
    FunctionExercise(
        id="clip.clip_fractions",
        cases=FRACTION_CASES,
        gives="two numbers",
        mistakes=FRACTION_MISTAKES,
        hints=(
            "Two questions for each sample, each answered by yes or no: has its ratio left the "
            "interval, and has the clip taken its gradient?",
            "A sample outside has two possible sides. Which side lost its gradient depends on the "
            "sign of the advantage. The mean of yes and no, as 1 and 0, is the fraction.",
            "outside: |ρ − 1| > ε;   zero gradient: (ρ > 1 + ε and Â > 0) or (ρ < 1 − ε and Â < 0)",
        ),
    ),
    SignsExercise(
        id="clip.gradient_signs",
        questions={
            "a": ("ratio 1.1, advantage +1", "The ratio lies inside: both terms are the same."),
            "b": ("ratio 1.3, advantage +1", "Write down both terms. Which one is smaller?"),
            "c": ("ratio 0.7, advantage +1", "Write down both terms. Which one is smaller?"),
            "d": ("ratio 1.3, advantage −1", "Compare −1.3 with −1.2. Which one is smaller?"),
            "e": ("ratio 0.7, advantage −1", "Compare −0.7 with −0.8. Which one is smaller?"),
            "f": ("ratio 0.9, advantage −1", "The ratio lies inside: both terms are the same."),
        },
        mistakes=SIGN_MISTAKES,
        hints=(
            "For each case write down two numbers: ratio times advantage, and clipped ratio times "
            "advantage. The smaller one is the objective.",
            "If the smaller one is the clipped term and the ratio lies outside, moving the ratio a "
            "little changes nothing. Otherwise the slope is the advantage.",
            "∂/∂ρ min(ρ·Â, clip(ρ)·Â) = 0 if clip(ρ)·Â < ρ·Â, else Â",
        ),
    ),
    FunctionExercise(
        id="clip.mended_loss",
        cases=LOSS_CASES,
        numbers_of="clip.clipped_surrogate_loss",
        starts_with="maximum_for_bad_actions",
        gives="scalar",
        learns=("log_probs",),
        mistakes=MENDED_MISTAKES,
        hints=(
            "Run the loss on one sample: ratio 1.5, advantage −1. Which way does a step down push "
            "the ratio?",
            "Good actions are treated right. Compare the two terms of a bad action at ratio 1.5, "
            "and see which of them can push it down.",
            "−mean( min( ρ·Â, clip(ρ, 1 − ε, 1 + ε)·Â ) ) for both signs of Â",
        ),
    ),
    FunctionExercise(
        id="clip.asymmetric_dual_clip",
        cases=DUAL_CASES,
        gives="same shape",
        learns=("ratios",),
        mistakes=DUAL_MISTAKES,
        hints=(
            "Start from the clipped surrogate with two different edges. Then change what happens "
            "to negative advantages, and to them only.",
            "For a bad action the objective falls without end as its ratio grows. The bound is the "
            "floor under it: a maximum around the minimum.",
            "Â < 0: max( min( ρ·Â, clip(ρ, 1 − ε_low, 1 + ε_high)·Â ), bound·Â )",
        ),
    ),
)
