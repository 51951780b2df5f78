"""Lesson 09: what the answers to its exercises must satisfy, and the usual mistakes in words."""

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
    draw,
)

SPREADS, DIMENSIONS = "spreads", "several dimensions"
FAR, CUTS, WEIGHTS, ENDS = "far out", "beyond the limits", "old against new", "ends of episodes"
LOG_2 = round(log(2), 6)
ONE_PER_ACTION = "a torch.Tensor with one number for each action"


# --- cases: one batch of actions -----------------------------------------------------------


def gaussian_case(
    stage: str, name: str, actions: Any, means: Any, log_stds: Sequence[float], **more: Any
) -> Case:
    """One call with actions [B, A], means [B, A] and log_stds [A]."""
    inputs = {"actions": actions, "means": means, "log_stds": list(log_stds)}
    return Case(stage=stage, name=name, inputs=inputs, constants=("actions",), **more)


LOG_PROB_CASES = (
    gaussian_case(SMALLEST, "one action, at its mean, σ = 1", [[0.5]], [[0.5]], [0.0]),
    gaussian_case(SMALLEST, "one away from the mean", [[1.5]], [[0.5]], [0.0]),
    gaussian_case(SPREADS, "σ = 2, at the mean", [[0.5]], [[0.5]], [LOG_2]),
    gaussian_case(SPREADS, "σ = 2, three below the mean", [[-1.0]], [[2.0]], [LOG_2]),
    gaussian_case(SPREADS, "σ = 1/2: a density above 1", [[0.1]], [[0.0]], [-LOG_2]),
    gaussian_case(DIMENSIONS, "two dimensions", [[1.0, -1.0]], [[0.0, 0.0]], [0.0, LOG_2]),
    gaussian_case(
        DIMENSIONS, "three actions, one dimension", [[1.0], [0.0], [3.0]], [[0.0]] * 3, [0.5]
    ),
    gaussian_case(
        DIMENSIONS,
        "three actions, two dimensions",
        [[1.0, 0.5], [0.0, -2.0], [2.0, 2.0]],
        [[0.0, 0.5], [1.0, -1.0], [2.0, 0.0]],
        [0.5, -1.0],
    ),
    gaussian_case(
        DIMENSIONS, "two actions, three dimensions", draw(Random(1), 2, 3), draw(Random(2), 2, 3),
        [0.3, -0.6, 0.1],
    ),
    gaussian_case(EDGES, "so far out that the density is 0 in a float", [[60.0]], [[0.0]], [0.0]),
    gaussian_case(EDGES, "σ = e⁻⁵", [[0.0, 0.01]], [[0.0, 0.0]], [-5.0, -5.0]),
    gaussian_case(GRADIENTS, "one action", [[1.0]], [[0.0]], [LOG_2], gradients=True),
    gaussian_case(
        GRADIENTS,
        "three actions, two dimensions",
        [[1.0, 0.5], [0.0, -2.0], [2.0, 2.0]],
        [[0.0, 0.5], [1.0, -1.0], [2.0, 0.0]],
        [0.5, -1.0],
        gradients=True,
    ),
    gaussian_case(
        SEEDED,
        "5 actions, 3 dimensions",
        draw(Random(3), 5, 3),
        draw(Random(4), 5, 3),
        draw(Random(5), 3, low=-1, high=0.6),
        gradients=True,
    ),
    gaussian_case(
        SEEDED,
        "float32, 4 actions, 6 dimensions",
        draw(Random(6), 4, 6),
        draw(Random(7), 4, 6),
        draw(Random(8), 6, low=-1, high=0.6),
        gradients=True,
        dtype=torch.float32,
    ),
)  # fmt: skip
SCORE_CASES = (
    gaussian_case(SMALLEST, "one action, two above its mean, σ = 1", [[2.0]], [[0.0]], [0.0]),
    gaussian_case(SPREADS, "at the mean, σ = 1", [[0.5]], [[0.5]], [0.0]),
    gaussian_case(SPREADS, "two above, σ = 2", [[2.0]], [[0.0]], [LOG_2]),
    gaussian_case(SPREADS, "three below, σ = 2", [[-2.0]], [[1.0]], [LOG_2]),
    gaussian_case(SPREADS, "one below, σ = 1/2", [[0.0]], [[1.0]], [-LOG_2]),
    gaussian_case(DIMENSIONS, "two dimensions", [[1.0, -3.0]], [[0.0, 0.0]], [0.0, LOG_2]),
    gaussian_case(DIMENSIONS, "three actions", [[1.0], [0.0], [3.0]], [[0.0], [2.0], [1.0]], [0.5]),
    gaussian_case(
        DIMENSIONS,
        "three actions, two dimensions",
        [[1.0, 0.5], [0.0, -2.0], [2.0, 2.5]],
        [[0.0, 0.0], [1.0, -1.0], [2.5, 0.0]],
        [0.5, -1.0],
    ),
    gaussian_case(EDGES, "σ = e⁻³: far from the mean is soon", [[0.25]], [[0.0]], [-3.0]),
    gaussian_case(
        SEEDED,
        "5 actions, 3 dimensions",
        draw(Random(9), 5, 3),
        draw(Random(10), 5, 3),
        draw(Random(11), 3, low=-1, high=0.6),
    ),
    gaussian_case(
        SEEDED,
        "float32, 2 actions, 4 dimensions",
        draw(Random(12), 2, 4),
        draw(Random(13), 2, 4),
        draw(Random(14), 4, low=-0.7, high=0.6),
        dtype=torch.float32,
    ),
)


def squashed_case(
    stage: str, name: str, drawn: Any, means: Any, log_stds: Sequence[float], **more: Any
) -> Case:
    """One call with what was drawn before the tanh [B, A], means [B, A] and log_stds [A]."""
    inputs = {"drawn": drawn, "means": means, "log_stds": list(log_stds)}
    return Case(stage=stage, name=name, inputs=inputs, constants=("drawn",), **more)


SQUASHED_CASES = (
    squashed_case(SMALLEST, "drawn 0: tanh has slope 1 there", [[0.0]], [[0.5]], [0.0]),
    squashed_case(SMALLEST, "drawn 1, at the mean, σ = 1", [[1.0]], [[1.0]], [0.0]),
    squashed_case(SPREADS, "drawn −1, mean 0.5, σ = 2", [[-1.0]], [[0.5]], [LOG_2]),
    squashed_case(SPREADS, "drawn 0.4, mean −0.5, σ = 1/2", [[0.4]], [[-0.5]], [-LOG_2]),
    squashed_case(DIMENSIONS, "two dimensions", [[1.0, -0.5]], [[0.0, 0.5]], [0.0, LOG_2]),
    squashed_case(
        DIMENSIONS, "three actions, one dimension", [[1.0], [0.0], [-2.0]], [[0.5]] * 3, [0.5]
    ),
    squashed_case(
        DIMENSIONS,
        "two actions, three dimensions",
        [[1.0, 0.5, -0.3], [0.2, -2.0, 1.1]],
        [[0.0, 0.5, 0.4], [1.0, -1.0, 0.7]],
        [0.5, -1.0, 0.2],
    ),
    squashed_case(FAR, "drawn 9", [[9.0]], [[8.0]], [0.0]),
    squashed_case(FAR, "drawn 30: the tanh is 1 in a float", [[30.0]], [[29.0]], [0.0]),
    squashed_case(FAR, "drawn −30", [[-30.0, 0.5]], [[-29.0, 0.0]], [0.0, 0.5]),
    squashed_case(GRADIENTS, "one action", [[1.0]], [[0.5]], [LOG_2], gradients=True),
    squashed_case(GRADIENTS, "far out", [[30.0]], [[29.0]], [0.5], gradients=True),
    squashed_case(
        GRADIENTS,
        "two actions, two dimensions",
        [[1.0, 0.5], [0.2, -2.0]],
        [[0.0, 0.4], [1.0, -1.0]],
        [0.5, -1.0],
        gradients=True,
    ),
    squashed_case(
        SEEDED,
        "5 actions, 3 dimensions",
        draw(Random(15), 5, 3),
        draw(Random(16), 5, 3),
        draw(Random(17), 3, low=-1, high=0.6),
        gradients=True,
    ),
    squashed_case(
        SEEDED,
        "float32, 3 actions, 4 dimensions",
        draw(Random(18), 3, 4),
        draw(Random(19), 3, 4),
        draw(Random(20), 4, low=-0.7, high=0.6),
        gradients=True,
        dtype=torch.float32,
    ),
)


def cut_case(
    stage: str,
    name: str,
    means: Any,
    log_stds: Sequence[float],
    noise: Any,
    limits: tuple[float, float] = (-2.0, 2.0),
    **more: Any,
) -> Case:
    """One call with means [B, A], log_stds [A] and noise [B, A]; the limits by keyword."""
    inputs = {"means": means, "log_stds": list(log_stds), "noise": noise}
    options = {"low": limits[0], "high": limits[1]}
    return Case(stage=stage, name=name, inputs=inputs, options=options, **more)


CUT_CASES = (
    cut_case(SMALLEST, "inside the limits", [[0.5]], [0.0], [[1.0]]),
    cut_case(CUTS, "above", [[1.5]], [0.0], [[1.0]]),
    cut_case(CUTS, "below", [[-1.5]], [0.0], [[-2.0]]),
    cut_case(CUTS, "above, σ = 2", [[1.0]], [LOG_2], [[1.5]]),
    cut_case(CUTS, "a mean beyond the limit", [[3.0]], [0.0], [[0.5]]),
    cut_case(CUTS, "a mean beyond, the action back inside", [[3.0]], [0.0], [[-1.5]]),
    cut_case(DIMENSIONS, "one of two beyond", [[0.0, 1.5]], [0.0, LOG_2], [[0.5, 1.0]]),
    cut_case(
        DIMENSIONS,
        "three actions, two dimensions",
        [[0.0, 1.5], [-1.0, -1.0], [3.0, 0.2]],
        [0.25, -LOG_2],
        [[2.5, 0.2], [-2.0, 0.5], [0.5, -0.4]],
    ),
    cut_case(EDGES, "other limits", [[0.5]], [0.0], [[1.5]], (-1.0, 1.0)),
    cut_case(EDGES, "limits from 0 to 3", [[0.25]], [0.0], [[-1.5]], (0.0, 3.0)),
    cut_case(
        SEEDED, "6 actions, 3 dimensions", draw(Random(21), 6, 3),
        draw(Random(22), 3, low=-0.5, high=0.8), draw(Random(23), 6, 3),
    ),
    cut_case(
        SEEDED, "float32, 3 actions, 5 dimensions", draw(Random(24), 3, 5),
        draw(Random(25), 5, low=-0.5, high=0.8), draw(Random(26), 3, 5), (-1.5, 1.5),
        dtype=torch.float32,
    ),
)  # fmt: skip


# --- cases: what is scaled -----------------------------------------------------------------


def moments_case(
    stage: str,
    name: str,
    before: tuple[float, Sequence[float], Sequence[float]],
    observations: Any,
    **more: Any,
) -> Case:
    """One call with count, mean [F] and m2 [F] of before, and observations [B, F]."""
    count, mean, m2 = before
    inputs = {"count": count, "mean": list(mean), "m2": list(m2), "observations": observations}
    return Case(stage=stage, name=name, inputs=inputs, **more)


NOTHING = (0.0, [0.0], [0.0])
MOMENTS_CASES = (
    moments_case(SMALLEST, "the first batch, one number", NOTHING, [[3.0]]),
    moments_case(SMALLEST, "the first batch, two numbers", NOTHING, [[1.0], [5.0]]),
    moments_case(WEIGHTS, "one before, one more", (1.0, [2.0], [0.0]), [[6.0]]),
    moments_case(WEIGHTS, "two before, one more", (2.0, [2.0], [2.0]), [[8.0]]),
    moments_case(WEIGHTS, "two before, three more", (2.0, [0.0], [2.0]), [[4.0], [5.0], [9.0]]),
    moments_case(
        WEIGHTS, "the same mean, another spread", (4.0, [2.0], [8.0]), [[-1.0], [5.0]]
    ),
    moments_case(WEIGHTS, "many before, two more", (1000.0, [1.0], [500.0]), [[3.0], [9.0]]),
    moments_case(
        DIMENSIONS, "two features", (2.0, [1.0, 10.0], [0.5, 8.0]), [[3.0, -2.0], [7.0, 0.0]]
    ),
    moments_case(
        DIMENSIONS,
        "three features, two observations",
        (5.0, [1.0, 0.0, -3.0], [4.0, 10.0, 1.0]),
        [[2.0, 2.0, 0.0], [4.0, 8.0, 1.0]],
    ),
    moments_case(
        DIMENSIONS,
        "one feature, four observations",
        (3.0, [0.5], [1.5]),
        [[2.0], [4.0], [0.0], [-1.0]],
    ),
    moments_case(EDGES, "observations that do not vary", (3.0, [4.0], [6.0]), [[7.0], [7.0]]),
    moments_case(EDGES, "far from 0", (3.0, [1000.0], [6.0]), [[1003.0], [1006.0]]),
    moments_case(
        SEEDED,
        "9 observations, 3 features",
        (12.0, [0.4, -1.2, 2.5], [6.0, 9.5, 14.0]),
        draw(Random(27), 9, 3, low=-3, high=4),
    ),
    moments_case(
        SEEDED,
        "float32, 5 observations, 4 features",
        (7.0, [0.4, -1.2, 1.5, 0.0], [6.0, 9.5, 4.0, 7.5]),
        draw(Random(28), 5, 4, low=-3, high=4),
        dtype=torch.float32,
    ),
)  # fmt: skip


def scaled_case(
    stage: str, name: str, rewards: Any, ended: Any, gamma: float = 0.5, **more: Any
) -> Case:
    """One call with rewards [T, N] and ended [T, N]; gamma by keyword."""
    inputs = {"rewards": rewards, "ended": ended}
    return Case(stage=stage, name=name, inputs=inputs, options={"gamma": gamma}, **more)


def column(*values: Any) -> list[list[Any]]:
    """Give values of one environment, one under the other."""
    return [[value] for value in values]


def ends_at(num_steps: int, num_envs: int, *places: tuple[int, int]) -> list[list[bool]]:
    """Flags that are True at some steps of some environments."""
    return [[(t, n) in places for n in range(num_envs)] for t in range(num_steps)]


SCALED_CASES = (
    scaled_case(SMALLEST, "two steps, no end", column(1.0, 3.0), ends_at(2, 1)),
    scaled_case(SMALLEST, "three steps, no end", column(2.0, 0.0, 4.0), ends_at(3, 1)),
    scaled_case(ENDS, "the first step ends", column(2.0, 4.0), ends_at(2, 1, (0, 0))),
    scaled_case(ENDS, "an end between", column(2.0, 4.0, 1.0, 3.0), ends_at(4, 1, (1, 0))),
    scaled_case(ENDS, "an end at the last step", column(2.0, 4.0, 1.0), ends_at(3, 1, (2, 0))),
    scaled_case(
        DIMENSIONS,
        "two environments, one ends",
        [[1.0, 2.0], [3.0, -1.0], [2.0, 6.0]],
        ends_at(3, 2, (1, 1)),
    ),
    scaled_case(
        DIMENSIONS,
        "more environments than steps",
        [[1.0, 2.0, -3.0, 0.0], [3.0, -1.0, 0.5, 2.0]],
        ends_at(2, 4, (0, 2)),
    ),
    scaled_case(EDGES, "losses only", column(-5.0, -7.0, -3.0), ends_at(3, 1)),
    scaled_case(EDGES, "γ 0", column(1.0, 3.0, 8.0), ends_at(3, 1, (1, 0)), 0.0),
    scaled_case(EDGES, "γ 1", column(1.0, 3.0, 8.0), ends_at(3, 1, (1, 0)), 1.0),
    scaled_case(
        EDGES, "small rewards", column(0.02, 0.01, 0.07, 0.03), ends_at(4, 1, (1, 0)), 0.9
    ),
    scaled_case(
        SEEDED,
        "8 steps, 3 environments",
        draw(Random(29), 8, 3, low=-3, high=1),
        ends_at(8, 3, (2, 0), (5, 1), (6, 0)),
        0.9,
    ),
    scaled_case(
        SEEDED,
        "float32, 12 steps, 2 environments",
        draw(Random(30), 12, 2, low=-3, high=1),
        ends_at(12, 2, (3, 0), (8, 1)),
        0.95,
        dtype=torch.float32,
    ),
)  # fmt: skip


# --- what goes wrong -----------------------------------------------------------------------

NOT_SUMMED = (
    "It gives one number for each dimension. An action is one draw: the logarithms of its "
    "dimensions add up to one number."
)
LOG_PROB_MISTAKES = {
    "not_summed": NOT_SUMMED,
    "averaged_over_the_dimensions": "It averages over the dimensions. Densities of independent "
    "dimensions are multiplied, so their logarithms are added.",
    "summed_over_the_batch": "It adds up the actions of the batch. The sum goes over the "
    "dimensions of one action: the last axis.",
    "everything_summed": "It adds up the whole batch. Each action has its own log-probability.",
    "log_std_forgotten": "The term −log σ is missing: a wide policy is flat, and lower at its "
    "mean. Without that term the spread gets a gradient of one sign only.",
    "log_std_added": "log σ has the wrong sign. A wider density is a lower one.",
    "half_of_the_log_std": "It subtracts half of log σ. The factor in front of the density is "
    "1/σ, the root of 1/σ².",
    "constant_forgotten": "The constant ½·log 2π is missing. It cancels in a ratio, yet not in a "
    "log that is compared with another library's.",
    "constant_once_for_all": "The constant ½·log 2π is subtracted once. Each dimension has one.",
    "constant_not_halved": "It subtracts log 2π. The factor in front of the density is 1 over the "
    "root of 2π.",
    "deviation_not_squared": "It divides the square by σ. Divide the distance by σ first, and then "
    "square.",
    "variance_for_the_deviation": "It takes exp(log_stds) for a variance. It is σ itself: the "
    "square of the distance is divided by its square.",
    "log_std_for_the_deviation": "It uses log σ as if it were σ. Take exp first.",
    "deviation_multiplied": "It multiplies the distance by σ. Divide: far is what is many σ away.",
    "half_forgotten": "The half in front of the square is missing.",
    "distance_not_squared": "It takes the distance itself, not its square. That is another "
    "distribution, with a peak at its mean.",
    "sign_of_the_square": "The square has the wrong sign: what is far from the mean came out as "
    "more likely.",
    "sign_turned": "The sign is that of a loss. A log-probability grows as the action becomes "
    "more likely.",
    "density_itself": "This is the density. Asked for is its logarithm.",
    "densities_multiplied": "It multiplies densities and takes the logarithm at the end. Far out "
    "the product is 0 in a float and its logarithm −∞. Add logarithms instead.",
    "probability_below": "It gives the probability of what lies below the action. Asked for is the "
    "density at the action.",
    "means_cut_off": "No gradient reaches the means, so the policy cannot move them.",
    "spread_cut_off": "No gradient reaches log_stds, so the policy keeps its spread for ever.",
}
SCORE_MISTAKES = {
    "divided_by_the_deviation_once": "By the mean, it divides the distance by σ. Take the slope of "
    "½·((a − μ)/σ)² by μ: the inner slope brings one more σ.",
    "not_divided": "By the mean, it gives the bare distance. A narrow policy is pushed harder by "
    "the same distance.",
    "multiplied_by_the_variance": "By the mean, it multiplies by σ². The slope is larger where the "
    "policy is narrower.",
    "by_the_deviation": "The second is the slope by σ. Asked for is the slope by log σ: one more "
    "factor σ, by the chain rule.",
    "by_the_variance": "The second is the slope by σ². Asked for is the slope by log σ.",
    "by_the_log_variance": "The second is the slope by the logarithm of σ², half of what is asked "
    "for.",
    "minus_one_forgotten": "By log σ, the term −log σ has a slope too: at the mean, a wider policy "
    "is a worse explanation.",
    "one_added": "By log σ, the 1 has the wrong sign: at the mean the slope is below 0.",
    "distance_not_squared": "By log σ, the distance in units of σ enters as a square.",
    "distance_not_scaled": "By log σ, the distance is not divided by σ before it is squared.",
    "half_the_square": "By log σ, half of the square is left. The slope of ½·x² brings a 2.",
    "sign_of_the_first": "The slope by the mean has the wrong sign: an action above the mean "
    "becomes more likely as the mean rises.",
    "signs_turned": "Both have the sign of a loss. Asked for are slopes of log π.",
    "order_of_the_two": "The two are in the other order: by the means first.",
    "summed_over_the_dimensions": "It adds up the dimensions. Each has a mean and a log σ of its "
    "own, so each has slopes of its own.",
    "summed_over_the_batch": "By log σ, it adds up the batch, as a backward pass would since all "
    "rows share one log σ. Asked for is the slope of each action.",
    "averaged_over_the_batch": "It divides by the size of the batch. Asked for is the slope of "
    "each action's own log-probability.",
    "log_std_for_the_deviation": "It uses log σ as if it were σ. Take exp first.",
    "variance_for_the_deviation": "It takes exp(log_stds) for σ². It is σ.",
}
SQUASHED_MISTAKES = {
    "correction_forgotten": "This is the log-probability of what was drawn. The tanh presses the "
    "draws together, so the density of the action is another one.",
    "correction_added": "The correction has the wrong sign: where the tanh presses draws together, "
    "the density of the action rises.",
    "naive_logarithm": "The formula is right and the number is not: far out the tanh is 1 in a "
    "float, 1 − tanh² is 0, and its logarithm −∞. Rewrite it so that nothing is subtracted from 1.",
    "small_number_added": "A small number inside the logarithm avoids −∞ and gives a wrong value "
    "far out: 30 away it is off by more than 40. Rewrite the logarithm instead.",
    "correction_averaged": "The correction is averaged over the dimensions. Each dimension brings "
    "its own; they add up.",
    "correction_of_the_first_dimension": "Only the first dimension is corrected. Each is squashed.",
    "correction_not_summed": "It sums first and corrects then: one number for each dimension is "
    "left. Correct each dimension, then sum.",
    "not_summed": NOT_SUMMED,
    "averaged_over_the_dimensions": "It averages over the dimensions. Logarithms of densities add "
    "up.",
    "squashed_action_in_the_density": "It puts tanh of the draw into the Gaussian density. The "
    "Gaussian knows the draw itself.",
    "square_forgotten": "The slope of tanh is 1 − tanh². The square is missing.",
    "slope_not_its_logarithm": "It subtracts the slope of the tanh. Log-probabilities are "
    "corrected by its logarithm.",
    "correction_halved": "The correction is half as large as it should be. Write "
    "1 − tanh² = 4 / (eᵘ + e⁻ᵘ)² and take the logarithm: the square brings a 2.",
    "log_2_forgotten": "The term log 2 of the rewritten correction is missing. At a draw of 0 the "
    "slope is 1, so the correction must be 0 there.",
    "softplus_of_the_other_sign": "The softplus has the wrong sign inside: it fits for one side "
    "of 0 only if the term in front changes too.",
    "correction_at_the_mean": "It corrects by the slope at the mean. The slope counts where the "
    "draw is.",
    "inverse_taken": "It takes the inverse of tanh of what it gets. It gets the draw before the "
    "tanh, so nothing is to be inverted.",
    "draw_had_back_from_the_action": "It computes the action and takes its inverse to get the draw "
    "back. Far out the tanh is 1 in a float, and the draw is lost. Use the draw that is given.",
    "log_std_forgotten": "The Gaussian part lacks −log σ.",
    "constant_forgotten": "The Gaussian part lacks ½·log 2π in each dimension.",
}
CUT_MISTAKES = {
    "cut_action_stored": "The cut action is stored. It was not drawn: its density says nothing of "
    "how often the edge is sent, and the gradient pulls the mean back from the edge. Which of the "
    "two did the policy draw?",
    "cut_stored_with_the_log_prob_of_the_drawn": "Stored are the cut action and the "
    "log-probability of the drawn one. The next evaluation sees another action: the ratio is not 1 "
    "before any step.",
    "drawn_stored_with_the_log_prob_of_the_cut": "The log-probability is that of the cut action. "
    "The ratio is not 1 before any step. It belongs to what is stored.",
    "uncut_action_sent": "The action is sent as drawn. The environment takes what lies within its "
    "limits.",
    "upper_limit_only": "What lies below the lower limit is sent as it is.",
    "lower_limit_only": "What lies above the upper limit is sent as it is.",
    "mean_cut": "The mean is cut. The policy may put its mean anywhere; what is sent is cut.",
    "noise_cut": "The noise is cut. Then what was drawn is no Gaussian draw any more.",
    "squashed": "It sends a tanh between the limits. Asked for is a cut: inside the limits the "
    "action is sent unchanged.",
    "mirrored_at_the_limit": "What lies beyond a limit is mirrored back. Asked for is the limit "
    "itself.",
    "noise_not_scaled": "The noise is not multiplied by σ.",
    "noise_times_log_std": "The noise is multiplied by log σ. Take exp first.",
    "noise_times_variance": "The noise is multiplied by σ². The draw is μ + σ·noise.",
    "log_std_forgotten": "The log-probability lacks −log σ.",
    "log_prob_not_summed": NOT_SUMMED,
    "mass_beyond_the_limit": "At a limit it gives the logarithm of all probability beyond. That is "
    "a right way to treat the cut action as the action; here the drawn one is stored.",
    "symmetric_limits_assumed": "It cuts at −high. The lower limit is `low`.",
}
MOMENTS_MISTAKES = {
    "distance_of_the_means_forgotten": "The two sums of squares are added and nothing else. Each "
    "was taken around its own mean; around the common one both are larger.",
    "distance_not_squared": "The distance of the two means enters as it is. It enters squared.",
    "distance_with_the_wrong_weight": "The squared distance of the means has the wrong weight. Two "
    "groups of one number each, 2 and 6: their squares around 4 sum to 8.",
    "distance_with_the_old_count": "The squared distance of the means is multiplied by the old "
    "count alone. Both groups move to the common mean.",
    "mean_updated_first": "The mean is overwritten before the distance is taken: the distance is "
    "then that to the new mean.",
    "squares_around_the_old_mean": "The new squares are taken around the old mean, and the old "
    "ones are kept. Both must be around the common mean.",
    "squares_around_the_new_mean_only": "The new squares are taken around the common mean, and the "
    "old ones stay around the old mean.",
    "sample_variance_of_the_batch": "The sum of squares of the batch comes from a variance that "
    "was divided by n − 1, and is multiplied by n. It is too large.",
    "variance_for_the_sum": "The variance of the batch is added where its sum of squares belongs.",
    "variance_returned": "It returns the variance as m2. Asked for is the sum of squares, so that "
    "the next batch can be added.",
    "mean_of_the_two_means": "It averages the two means as if both groups were equally large.",
    "weights_swapped": "The new mean has the weights the wrong way round: the larger group counts "
    "more.",
    "batch_alone": "It returns the moments of the batch. What was counted before is lost.",
    "mean_kept": "The mean stays where it was. New observations move it, by their share of all.",
    "counted_as_one": "The batch is counted as one observation. It has as many as it has rows.",
    "features_mixed": "It takes one mean over all features. Each has its own unit, mean and "
    "spread.",
    "forgetting_average": "It mixes with a fixed weight, and forgets. Here every observation "
    "counts the same, however old.",
    "entries_counted": "It counts entries. Rows are counted: each is one observation.",
}
SCALED_MISTAKES = {
    "mean_of_the_returns_removed": "It takes the mean away. A constant added to all rewards "
    "changes what a long episode is worth: only scale.",
    "mean_of_the_rewards_removed": "It takes the mean of the rewards away. That pays for long or "
    "for short episodes, which the task does not. Only scale.",
    "spread_of_the_rewards": "It divides by the spread of the rewards. The critic learns returns, "
    "so their spread is brought to about 1.",
    "variance_for_the_deviation": "It divides by the variance. Rewards in cents would not come out "
    "like rewards in euros.",
    "ends_ignored": "The running return goes on behind an end. The next row belongs to another "
    "episode.",
    "reset_one_step_early": "The running return starts anew at the step that ends. That step still "
    "belongs to its episode: the next one starts anew. At terminated steps gymnasium 1.4 "
    "does the same.",
    "gamma_forgotten": "The running return is not discounted.",
    "gamma_on_the_reward": "The discount is on the new reward. It is on what was there before.",
    "looks_ahead": "It sums what comes after each step. The running return sums what came before, "
    "since that is known while the steps are taken.",
    "sample_deviation": "It divides by n − 1 inside the deviation. Here the mean square over all "
    "n returns is taken.",
    "each_environment_alone": "Each environment is divided by a spread of its own. They share one.",
    "each_step_alone": "Each step is divided by a spread of its own. All returns share one.",
    "environments_mixed": "The running return goes from one environment to the next. Time is the "
    "first axis.",
    "returns_scaled": "It gives the scaled running returns. Asked for are the scaled rewards.",
    "multiplied": "It multiplies by the spread. Large rewards become smaller when divided.",
    "root_mean_square": "It divides by the root of the mean square. The mean is taken away inside "
    "the deviation, and only there.",
    "spread_so_far": "Each step is divided by the spread of what came before it. That is what runs "
    "during training; here the whole rollout is known, and one spread is asked for.",
    "largest_return": "It divides by the largest running return. One outlier would then decide.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="continuous.gaussian_log_probs",
        cases=LOG_PROB_CASES,
        gives="tensor",
        returns=ONE_PER_ACTION,
        learns=("means", "log_stds"),
        mistakes=LOG_PROB_MISTAKES,
        hints=(
            "Write the density of one dimension first: a factor in front, and an exponential. Then "
            "take its logarithm, and only then think of several dimensions.",
            "Three terms for each dimension: the square of the distance in units of σ, the "
            "logarithm of σ, a constant. Independent dimensions add up.",
            "log π(a) = Σ ( −½·((a − μ)/σ)² − log σ − ½·log 2π )",
        ),
    ),
    FunctionExercise(
        id="continuous.gaussian_scores",
        cases=SCORE_CASES,
        gives="several",
        parts=("by_means", "by_log_stds"),
        mistakes=SCORE_MISTAKES,
        hints=(
            "Only two of the three terms of log π contain μ or σ. Take the slopes one dimension at "
            "a time.",
            "Write x for the distance in units of σ. How does x change with μ, and how with log σ? "
            "The second answer is −x.",
            "∂/∂μ = (a − μ)/σ²,   ∂/∂log σ = ((a − μ)/σ)² − 1",
        ),
    ),
    FunctionExercise(
        id="continuous.squashed_log_probs",
        cases=SQUASHED_CASES,
        gives="tensor",
        returns=ONE_PER_ACTION,
        learns=("means", "log_stds"),
        mistakes=SQUASHED_MISTAKES,
        hints=(
            "A small piece of draws and its image hold the same probability. How much shorter is "
            "the image?",
            "The density is divided by the slope of tanh, so its logarithm is subtracted, in each "
            "dimension. For the float: 1 − tanh² u = 4 / (eᵘ + e⁻ᵘ)².",
            "log(1 − tanh² u) = 2·(log 2 − u − log(1 + e⁻²ᵘ)),   log(1 + eˣ) = softplus x",
        ),
    ),
    FunctionExercise(
        id="continuous.mended_actions",
        cases=CUT_CASES,
        gives="several",
        parts=("sent", "stored", "log_probs_old"),
        starts_with="cut_action_stored",
        mistakes=CUT_MISTAKES,
        hints=(
            "There are two actions here: one that the policy drew, one that the environment got. "
            "Which of them does the policy know the density of?",
            "The ratio compares how likely the draw is now and then. What the environment does "
            "with it afterwards is the environment's affair, like its dynamics.",
            "stored: a = μ + σ·noise;   sent: min(max(a, low), high);   log π_old(a), not of what "
            "was sent",
        ),
    ),
    FunctionExercise(
        id="continuous.merge_moments",
        cases=MOMENTS_CASES,
        gives="several",
        parts=("count", "mean", "m2"),
        mistakes=MOMENTS_MISTAKES,
        hints=(
            "Compute count, mean and sum of squares of the batch alone. Then merge two groups that "
            "know no single number any more.",
            "Moving a group of n numbers from its own mean to another raises its sum of squares by "
            "n times the square of the move. How far does each group move?",
            "m2 = m2_a + m2_b + d²·n_a·n_b/(n_a + n_b),   d = mean_b − mean_a",
        ),
    ),
    FunctionExercise(
        id="continuous.scaled_rewards",
        cases=SCALED_CASES,
        gives="tensor",
        mistakes=SCALED_MISTAKES,
        hints=(
            "Walk forward in time and keep one number for each environment. Then one number for "
            "the whole rollout, and one division.",
            "The running return of a step is its reward plus γ times the running return before it; "
            "behind an end there is none. The spread is that of all running returns together.",
            "R_t = r_t + γ·R_{t−1} (R_{t−1} = 0 behind an end);   r_t / √( mean(R²) − mean(R)² )",
        ),
    ),
)
