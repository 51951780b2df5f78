"""Lesson 16: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Sequence
from math import log
from random import Random

import torch

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
)

CAPS, AGED, PADDED, LONG = "caps", "old data", "padding", "long answers"
RATIOS, WEIGHTS = (0.5, 0.7, 0.93, 1.1, 1.45, 1.8), (0.2, 0.6, 0.9, 1.3, 1.7, 2.6, 4.0)


# --- a weight with a cap ------------------------------------------------------------------


def weight_case(
    stage: str, name: str, weights: Sequence[float], cap: float = 2.0, start: float = 0.2
) -> Case:
    """Actions to which μ gave the probability `start`."""
    inputs = {
        "log_probs_proximal": [round(log(start * weight), 6) for weight in weights],
        "log_probs_behaviour": [round(log(start), 6)] * len(weights),
    }
    return Case(stage=stage, name=name, inputs=inputs, options={"largest_weight": cap})


WEIGHT_CASES = (
    weight_case(SMALLEST, "one action, as probable as before", [1.0]),
    weight_case(SMALLEST, "one action, half as probable", [0.5]),
    weight_case(CAPS, "below the cap", [1.5]),
    weight_case(CAPS, "above the cap", [3.0]),
    weight_case(CAPS, "hardly done any more", [0.05]),
    weight_case(CAPS, "thirty times as probable", [30.0], start=0.02),
    weight_case(CAPS, "on both sides", [0.3, 1.4, 4.0, 2.5]),
    weight_case(CAPS, "a cap of 1.5", [1.3, 1.7, 0.4], 1.5),
    weight_case(CAPS, "a cap of 4", [3.0, 4.8, 0.15], 4.0),
    weight_case(CAPS, "a cap below 1", [0.9, 0.3, 0.65], 0.8),
    Case(
        stage=EDGES,
        name="probabilities too small for a float",
        inputs={"log_probs_proximal": [-800.5, -801.0], "log_probs_behaviour": [-800.0, -803.0]},
        options={"largest_weight": 2.0},
    ),
    Case(
        stage=EDGES,
        name="two axes",
        inputs={
            "log_probs_proximal": [[-1.2, -0.4, -2.0], [-0.9, -1.6, -0.7]],
            "log_probs_behaviour": [[-0.8, -1.5, -1.7], [-1.3, -0.5, -2.4]],
        },
        options={"largest_weight": 2.0},
    ),
    weight_case(SEEDED, "seven actions", WEIGHTS, 2.2, 0.24),
    weight_case(SEEDED, "six actions", RATIOS, 1.6, 0.5),
)
WEIGHT_MISTAKES = {
    "never_capped": "Nothing is cut: one sample may decide a batch.",
    "turned_over": "It divides μ by π_prox: what was drawn too often counts even more.",
    "thrown_away_beyond_the_cap": "What lies beyond C gets 0. It gets C.",
    "cut_below_too": "Small weights are raised to 1/C. What π_prox would not do must not count.",
    "clipped_around_one": "It is cut to 1 ± (C − 1). There is no lower edge here.",
    "logarithm_capped": "It is the logarithm that is cut at C. Cut the weight itself.",
    "exponential_missing": "It gives the difference of the logarithms. Take exp of it.",
    "cap_always_two": "It cuts at 2 whatever C is given.",
    "cap_on_the_probability": "It cuts π_prox / μ at 1 + C: no change is a weight of 1, and C is "
    "the largest weight itself.",
    "scaled_to_mean_one": "The weights are divided by their mean. One action alone would always "
    "weigh 1.",
    "quotient_of_probabilities": "It divides two probabilities, and both may be 0 in a float. "
    "Subtract the logarithms first.",
}

# --- the decoupled loss ---------------------------------------------------------------------


def stale_case(
    stage: str,
    name: str,
    ratios: Sequence[float],
    weights: Sequence[float],
    advantages: Sequence[float],
    *,
    epsilon: float = 0.2,
    cap: float = 2.0,
    start: float = 0.2,
    gradients: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Samples by π / π_prox and π_prox / μ; μ gave each the probability `start`."""
    behaviour = [round(log(start), 6)] * len(ratios)
    proximal = [round(log(start * weight), 6) for weight in weights]
    new = [round(now + log(ratio), 6) for now, ratio in zip(proximal, ratios, strict=True)]
    inputs = {
        "log_probs": new,
        "log_probs_proximal": proximal,
        "log_probs_behaviour": behaviour,
        "advantages": list(advantages),
    }
    options = {"clip_epsilon": epsilon, "largest_weight": cap}
    return Case(
        stage=stage, name=name, inputs=inputs, options=options, gradients=gradients, dtype=dtype
    )


STALE_CASES = (
    stale_case(SMALLEST, "one sample, nothing has moved", [1.0], [1.0], [1.0]),
    stale_case(SMALLEST, "one sample, age 0", [1.1], [1.0], [1.0]),
    stale_case(AGED, "a weight of 1.5", [1.0], [1.5], [1.0]),
    stale_case(AGED, "a weight of 0.5", [1.1], [0.5], [-2.0]),
    stale_case(AGED, "a weight beyond the cap", [0.9], [3.0], [1.0]),
    stale_case(AGED, "a good action that moved far enough", [1.5], [1.3], [1.0]),
    stale_case(AGED, "a bad action that moved the wrong way", [1.5], [1.3], [-1.0]),
    stale_case(AGED, "a good action that moved the wrong way", [0.6], [1.7], [1.0]),
    stale_case(AGED, "a bad action that moved far enough", [0.5], [0.6], [-1.0]),
    stale_case(EDGES, "back where μ was", [0.7], [1.0 / 0.7], [-1.5]),
    stale_case(EDGES, "two samples", [1.3, 0.9], [0.4, 2.8], [1.0, -2.0]),
    stale_case(EDGES, "another ε", [1.3, 0.6], [1.5, 0.7], [1.0, -1.0], epsilon=0.5),
    stale_case(EDGES, "another C", [1.1, 0.9], [1.8, 4.0], [1.0, -1.0], cap=1.4),
    stale_case(EDGES, "a high C", [1.1, 0.9], [1.8, 3.5], [1.0, -1.0], cap=4.5),
    stale_case(EDGES, "an advantage of 0", [1.3, 1.1], [0.4, 1.8], [0.0, 1.0]),
    stale_case(GRADIENTS, "nothing has moved", [1.0], [1.5], [1.0], gradients=True),
    stale_case(
        GRADIENTS, "two samples", [0.93, 1.1], [0.6, 2.6], [1.0, -2.0], gradients=True
    ),
    stale_case(
        GRADIENTS, "four samples", [1.4, 1.4, 0.6, 0.6], [0.5, 1.6, 3.0, 0.8],
        [1.0, -1.0, 2.0, -0.5], gradients=True,
    ),
    stale_case(
        SEEDED, "six samples", RATIOS, [1.7, 0.5, 2.6, 0.9, 1.2, 0.3],
        [1.2, -0.8, 0.5, -1.7, 2.1, -0.4], epsilon=0.33, gradients=True,
    ),
    stale_case(
        SEEDED, "float32, six samples", RATIOS, [0.4, 2.9, 0.8, 1.4, 0.6, 1.1],
        [-1.1, 0.7, 1.9, -0.3, -2.2, 0.6], epsilon=0.12, cap=1.6, gradients=True,
        dtype=torch.float32,
    ),
)  # fmt: skip
STALE_MISTAKES = {
    "clip_around_the_behaviour": "The ratio is π / μ, and there is no weight. On old data it is "
    "outside before the first step.",
    "weight_left_out": "The weight is missing: nobody asks who drew the data.",
    "corrected_twice": "The ratio is π / μ, and π_prox / μ stands in front of it: the age is "
    "corrected twice.",
    "weight_turned_over": "The weight is μ / π_prox: upside down.",
    "weight_never_capped": "The weight is not cut at C: one sample may decide a batch.",
    "thrown_away_beyond_the_cap": "Samples whose weight is beyond C get 0. It is cut to C.",
    "minimum_left_out": "You clip and leave the minimum out. A sample that moved the wrong way "
    "cannot push back.",
    "nothing_clipped": "The ratio is not clipped: every further step is paid.",
    "product_capped": "Weight and ratio are multiplied first, and the product is cut at C. The cap "
    "is for the weight.",
    "weights_that_learn": "The numbers are right, and a gradient flows into the weights: they are "
    "made of π_prox and μ, which are constants.",
    "gradient_into_the_proximal_policy": "The numbers are right, and a gradient flows into π_prox, "
    "through the ratio. In a loop that is the same network, and both cancel.",
    "critic_trained_through_the_policy_loss": "The numbers are right, and a gradient flows into "
    "the advantages. Detach them.",
    "objective_called_a_loss": "The sign is that of an objective. A loss is minimised.",
    "sum_over_the_batch": "It adds up over the batch. Take the mean.",
    "divided_by_the_weights": "It divides by the sum of the weights. The mean goes over samples: "
    "data that π_prox hardly draws shall count little.",
}

# --- what is left of the data ------------------------------------------------------------------


def share_case(
    stage: str,
    name: str,
    log_ratios: Sequence[Sequence[float]],
    lengths: Sequence[int] | None = None,
) -> Case:
    """Answers, and how many of their tokens count."""
    width = len(log_ratios[0])
    counted = lengths or [width] * len(log_ratios)
    mask = [[place < count for place in range(width)] for count in counted]
    return Case(
        stage=stage,
        name=name,
        inputs={"log_ratios": [list(row) for row in log_ratios], "mask": mask},
    )


def log_ratios_drawn(seed: int, answers: int, tokens: int, spread: float) -> list[list[float]]:
    """Draw log-ratios of both signs."""
    random = Random(seed)
    return [[round(random.gauss(0, spread), 3) for _ in range(tokens)] for _ in range(answers)]


SHARE_CASES = (
    share_case(SMALLEST, "one answer of one token", [[0.3]]),
    share_case(SMALLEST, "two answers of one token, ratios 1 and 3", [[0.0], [1.098612]]),
    share_case(SMALLEST, "two answers of two tokens", [[0.4, -0.2], [-0.5, 0.1]]),
    share_case(EDGES, "equal ratios", [[0.7, 0.7], [0.7, 0.7], [0.7, 0.7]]),
    share_case(EDGES, "ratios that cancel in an answer", [[0.8, -0.8], [0.0, 0.0]]),
    share_case(EDGES, "ratios that add up in an answer", [[0.6, 0.6, 0.6], [0.0, 0.0, 0.0]]),
    share_case(PADDED, "a short answer", [[0.5, -0.3, 1.7], [0.2, 0.9, -0.4]], [1, 3]),
    share_case(
        PADDED, "three lengths", [[0.2, 0.6, 0.5], [-0.7, 0.0, 2.5], [1.1, -0.3, 0.4]], [3, 1, 2]
    ),
    share_case(
        LONG, "ratios above any float",
        [[300.0, 300.0, 300.5], [300.4, 300.0, 299.9], [299.8, 300.1, 300.0]],
    ),
    share_case(SEEDED, "5 answers of 4 tokens", log_ratios_drawn(3, 5, 4, 0.4), [4, 2, 3, 4, 1]),
    share_case(
        SEEDED, "7 answers of 6 tokens", log_ratios_drawn(4, 7, 6, 0.3), [6, 3, 5, 1, 2, 6, 4]
    ),
)  # fmt: skip
SHARE_MISTAKES = {
    "mean_for_product": "The log-ratios of an answer are averaged. Its ratio is the product of "
    "those of its tokens: add the logarithms up.",
    "padding_counted": "Padding counts as tokens that the policy chose.",
    "padding_in_the_answers": "The tokens are counted well, and the padding is in the ratios of "
    "the answers.",
    "size_for_share": "It gives effective sizes. Divide by the number of samples.",
    "share_of_tokens_twice": "Both numbers are the share of the tokens.",
    "results_exchanged": "The two numbers are exchanged: tokens first.",
    "ratios_added": "The ratio of an answer is made by adding ratios. They multiply.",
    "logarithms_as_weights": "The weights are log-ratios. Take exp of them.",
    "first_token_only": "An answer has the ratio of its first token. All its tokens count.",
    "sum_not_squared": "The sum above the line is not squared.",
    "out_of_log_space": "Large ratios overflow to NaN. Subtract the largest logarithm before exp: "
    "the share does not change.",
    "mean_weight_taken_for_one": "It is 1/mean(w²), which holds if the mean weight is 1. In a "
    "sample it is not.",
}

# --- by hand -----------------------------------------------------------------------------------

HAND_MISTAKES = {
    "never_capped": "In a, no weight may be larger than C.",
    "thrown_away": "In a, what is beyond C weighs C, not 0.",
    "raised_to_one_over_c": "In b, a small weight stays small: only large ones are cut.",
    "turned_over": "In b, the weight is upside down.",
    "sum_of_logarithms": "c is a ratio. You gave its logarithm.",
    "mean_token": "In c, the ratios of the tokens multiply; you gave that of one.",
    "size_for_share": "d is a share: divide the effective size by 4.",
    "sum_not_squared": "In d, the sum of the weights is squared.",
    "weight_left_out": "In e, the weight π_prox / μ is missing.",
    "corrected_twice": "In e, the ratio is π / μ, with the weight in front of it: corrected twice.",
    "clip_around_the_behaviour": "In e, you gave the clipped objective around μ. That is f.",
    "nothing_clipped": "In f, the ratio π / μ is outside of the clip.",
    "room_for_age": "In g, the batch that was put in last has age 0 and waits behind all others.",
    "newest_first": "In g, the trainer takes the batch that waits longest.",
}

EXERCISES = (
    FunctionExercise(
        id="staleness.capped_weights",
        cases=WEIGHT_CASES,
        gives="same shape",
        mistakes=WEIGHT_MISTAKES,
        hints=(
            "How much more often would π_prox have drawn this action than μ did?",
            "π_prox / μ is exp of a difference of logarithms. Only what is too large is cut.",
            "min( exp(log π_prox − log μ), C )",
        ),
    ),
    FunctionExercise(
        id="staleness.decoupled_loss",
        cases=STALE_CASES,
        gives="scalar",
        learns=("log_probs",),
        mistakes=STALE_MISTAKES,
        hints=(
            "Two factors for two reasons: one says who drew the data, one how far this update has "
            "gone.",
            "The ratio that is clipped starts at 1 in each update. The weight does not change "
            "during it.",
            "−mean( min(π_prox/μ, C) · min( ρ·Â, clip(ρ, 1 − ε, 1 + ε)·Â ) ) with ρ = π/π_prox",
        ),
    ),
    FunctionExercise(
        id="staleness.effective_shares",
        cases=SHARE_CASES,
        gives="two numbers",
        mistakes=SHARE_MISTAKES,
        hints=(
            "Write the share for a row of weights first. Then ask what the weights are at each of "
            "the two levels.",
            "The logarithm of a product is a sum. Padding adds 0. A common factor of all weights "
            "changes no share.",
            "logs of tokens: log_ratios[mask]; of answers: the masked sum over tokens; weights: "
            "exp(logs − largest)",
        ),
    ),
    FunctionExercise(
        id="staleness.mended_stale_loss",
        cases=STALE_CASES,
        numbers_of="staleness.decoupled_loss",
        gives="scalar",
        learns=("log_probs",),
        mistakes=STALE_MISTAKES,
        starts_with="corrected_twice",
        hints=(
            "Let π be π_prox. Which ratio do you expect, and which one does the function compute?",
            "Weight times ratio should be π / μ where nothing is cut.",
            "The clip has its centre at the start of the update: ratio = π / π_prox.",
        ),
    ),
    NumbersExercise(
        id="staleness.stale_by_hand",
        questions={
            "a": ("weight of an action from 0.2 to 0.6", "Divide, then compare with C."),
            "b": ("weight of an action from 0.4 to 0.1", "Divide, then compare with C."),
            "c": ("ratio of an answer of 100 tokens", "Add the logarithms up, then take exp."),
            "d": ("share of four samples", "(Σw)² over 4·Σw²."),
            "e": ("decoupled objective", "First π / π_prox and its clip, then the weight."),
            "f": ("clipped objective around μ", "One ratio, π / μ."),
            "g": ("age of a batch from a buffer with room for 6", "Who stands in front of it?"),
        },
        tolerance=0.002,
        mistakes=HAND_MISTAKES,
        hints=(
            "Each of them is one line. Write down the three probabilities first where there are "
            "three.",
            "e: π / π_prox = 1.2 lies inside 1 ± 0.3. f: π / μ = 1.8 does not.",
            "c = e^(100·0.02);  d = 36 / (4·12);  e = 1.5·1.2·2;  f = 1.3·2",
        ),
    ),
)
