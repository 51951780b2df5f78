"""Lesson 05: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Mapping, Sequence
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

DRAWS, SCORES, ROWS = "how often it is drawn", "how hard it pushes", "several questions"
ERRORS, SHIFTS, SPREADS = "errors", "what is forgiven", "spreads"
MOVED, ACTIONS, WEIGHTS = "which way it moved", "actions", "weights"


# --- numbers that are drawn ----------------------------------------------------------------


def draw_chances(random: Random, count: int) -> list[float]:
    """Draw probabilities with three digits that sum to 1."""
    weights = [random.uniform(0.2, 2) for _ in range(count)]
    row = [round(weight / sum(weights), 3) for weight in weights[1:]]
    return [round(1 - sum(row), 3), *row]


# --- cases ---------------------------------------------------------------------------------


def baseline_case(
    stage: str,
    name: str,
    chances: Sequence[float],
    scores: Any,
    returns: Sequence[float],
    **more: Any,
) -> Case:
    """One call with N possible draws: probabilities [N], scores [N, P], returns [N]."""
    inputs = {"probabilities": list(chances), "scores": scores, "returns": list(returns)}
    return Case(stage=stage, name=name, inputs=inputs, **more)


BASELINE_CASES = (
    baseline_case(SMALLEST, "one draw that is sure", [1.0], [[2.0]], [3.0]),
    baseline_case(SMALLEST, "two draws that push equally", [0.5, 0.5], [[1.0], [-1.0]], [2.0, 4.0]),
    baseline_case(DRAWS, "three times as likely", [0.75, 0.25], [[1.0], [-1.0]], [2.0, 6.0]),
    baseline_case(
        SCORES, "one pushes three times as hard", [0.5, 0.5], [[-1.0], [3.0]], [0.0, 5.0]
    ),
    baseline_case(SCORES, "rare and hard", [0.75, 0.25], [[-0.25], [0.75]], [1.0, 5.0]),
    baseline_case(SCORES, "returns below 0", [0.75, 0.25], [[-0.25], [0.75]], [-1.0, -5.0]),
    baseline_case(
        SCORES,
        "two parameters",
        [0.5, 0.25, 0.25],
        [[1.0, 0.0], [0.0, 2.0], [-2.0, -2.0]],
        [1.0, 2.0, 8.0],
    ),
    baseline_case(
        EDGES, "a draw that does not push", [0.5, 0.25, 0.25], [[0.0], [1.0], [2.0]], [50.0, 1, 2]
    ),
    baseline_case(
        EDGES, "a draw that never comes", [0.0, 0.5, 0.5], [[9.0], [1.0], [2.0]], [50.0, 1, 2]
    ),
    baseline_case(
        EDGES, "a sample: 1/N each", [0.25] * 4, [[1.0], [1.0], [-3.0], [1.0]], [2.0, 0, 1, 6]
    ),
    baseline_case(
        EDGES, "all returns larger by 100", [0.75, 0.25], [[-0.25], [0.75]], [101.0, 105.0]
    ),
    baseline_case(
        SEEDED,
        "6 draws, 4 parameters",
        draw_chances(Random(1), 6),
        draw(Random(2), 6, 4),
        draw(Random(3), 6, low=-3, high=9),
    ),
    baseline_case(
        SEEDED,
        "float32, 5 draws, 2 parameters",
        draw_chances(Random(4), 5),
        draw(Random(5), 5, 2),
        draw(Random(6), 5, low=-3, high=9),
        dtype=torch.float32,
    ),
)


def others_case(stage: str, name: str, returns: Any, **more: Any) -> Case:
    """One call with returns [B, k]."""
    return Case(stage=stage, name=name, inputs={"returns": returns}, **more)


OTHERS_CASES = (
    others_case(SMALLEST, "two draws", [[1.0, 3.0]]),
    others_case(SMALLEST, "three draws", [[0.0, 3.0, 6.0]]),
    others_case(ROWS, "two questions, two draws", [[1.0, 3.0], [10.0, 30.0]]),
    others_case(ROWS, "two questions, three draws", [[0.0, 3.0, 6.0], [9.0, 9.0, 0.0]]),
    others_case(ROWS, "three questions, two draws", [[1.0, 3.0], [-2.0, 4.0], [0.0, 8.0]]),
    others_case(EDGES, "all draws equal", [[5.0, 5.0, 5.0, 5.0]]),
    others_case(EDGES, "one success among four", [[0.0, 0.0, 1.0, 0.0]]),
    others_case(EDGES, "losses", [[-1.0, -4.0, -7.0, 2.0]]),
    others_case(EDGES, "large returns", [[1000.0, 1003.0, 1006.0]]),
    others_case(SEEDED, "4 questions, 5 draws", draw(Random(7), 4, 5, low=-3, high=9)),
    others_case(
        SEEDED,
        "float32, 3 questions, 8 draws",
        draw(Random(8), 3, 8, low=-3, high=9),
        dtype=torch.float32,
    ),
)


def loss_case(stage: str, name: str, values: Any, returns: Any, **more: Any) -> Case:
    """One call with values and returns of the same shape."""
    return Case(stage=stage, name=name, inputs={"values": values, "returns": returns}, **more)


ROW = [2.0, 4.0, 6.0, 8.0]
LOSS_CASES = (
    loss_case(SMALLEST, "one value, too low by 2", [1.0], [3.0]),
    loss_case(ERRORS, "too high by 4", [5.0], [1.0]),
    loss_case(ERRORS, "too high by a half", [1.5], [1.0]),
    loss_case(ERRORS, "two values", [1.0, 2.0], [4.0, 0.0]),
    loss_case(ERRORS, "two values, off by the same", [1.0, 2.0], [4.0, 5.0]),
    loss_case(ERRORS, "four values, all right", ROW, ROW),
    loss_case(EDGES, "the same two samples twice", [1.0, 2.0] * 2, [4.0, 0.0] * 2),
    loss_case(EDGES, "large returns", [480.0, 500.0], [500.0, 470.0]),
    loss_case(EDGES, "two axes", [[1.0, 2, 3], [0, 1, -1]], [[4.0, 0, 3], [1, 1, 2]]),
    loss_case(GRADIENTS, "too low", [1.0], [3.0], gradients=True),
    loss_case(GRADIENTS, "two values", [1.0, 2.0], [4.0, 0.0], gradients=True),
    loss_case(
        GRADIENTS,
        "two axes",
        [[1.0, 2], [0, 1], [5, 5]],
        [[4.0, 0], [3, 1], [1, 2]],
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "12 samples",
        draw(Random(9), 12),
        draw(Random(10), 12, low=-4, high=6),
        gradients=True,
    ),
    loss_case(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(11), 4, 3),
        draw(Random(12), 4, 3, low=-4, high=6),
        gradients=True,
        dtype=torch.float32,
    ),
)


def whole_case(
    stage: str, name: str, observations: Any, weights: Any, returns: Any, **more: Any
) -> Case:
    """One call with observations [B, F], weights [F, 1] and returns [B]."""
    inputs = {"observations": observations, "weights": weights, "returns": returns}
    return Case(stage=stage, name=name, inputs=inputs, constants=("observations",), **more)


def column(*numbers: float) -> list[list[float]]:
    """Numbers below one another."""
    return [[number] for number in numbers]


FOUR = (column(1, 2, 3, 4), column(2.0), ROW)
WHOLE_CASES = (
    whole_case(SMALLEST, "one sample", [[1.0]], [[1.0]], [3.0]),
    whole_case(SMALLEST, "two samples, both right", column(1.0, 2.0), [[2.0]], [2.0, 4.0]),
    whole_case(ERRORS, "four samples, all right", *FOUR),
    whole_case(ERRORS, "two samples, both too low", column(1.0, 2.0), [[1.0]], [3.0, 4.0]),
    whole_case(ERRORS, "one too high, one too low", column(1.0, 2.0), [[2.0]], [1.0, 7.0]),
    whole_case(
        EDGES, "two features", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[2.0], [-1.0]], [1.0, 1, 1]
    ),
    whole_case(EDGES, "the same twice", column(1.0, 2.0, 1.0, 2.0), [[2.0]], [1.0, 7.0, 1.0, 7.0]),
    whole_case(EDGES, "returns from large to small", column(1, 2, 3), [[1.0]], [9.0, 4.0, 1.0]),
    whole_case(GRADIENTS, "one sample", [[2.0]], [[1.0]], [3.0], gradients=True),
    whole_case(GRADIENTS, "four samples, all right", *FOUR, gradients=True),
    whole_case(
        GRADIENTS,
        "one too high, one too low",
        column(1.0, 2.0),
        [[2.0]],
        [1.0, 7.0],
        gradients=True,
    ),
    whole_case(
        SEEDED,
        "6 samples, 3 features",
        draw(Random(13), 6, 3),
        draw(Random(14), 3, 1),
        draw(Random(15), 6, low=-3, high=5),
        gradients=True,
    ),
    whole_case(
        SEEDED,
        "float32, 5 samples, 2 features",
        draw(Random(16), 5, 2),
        draw(Random(17), 2, 1),
        draw(Random(18), 5, low=-3, high=5),
        gradients=True,
        dtype=torch.float32,
    ),
)


def clip_case(
    stage: str, name: str, values: Any, returns: Any, old: Any, epsilon: float = 0.5, **more: Any
) -> Case:
    """One call with values, returns, and the values of before by keyword."""
    return Case(
        stage=stage,
        name=name,
        inputs={"values": values, "returns": returns},
        options={"values_old": old, "clip_epsilon": epsilon},
        **more,
    )


CLIP_CASES = (
    clip_case(SMALLEST, "nothing has moved", [5.0], [7.0], [5.0]),
    clip_case(SMALLEST, "moved by less than ε", [5.25], [7.0], [5.0]),
    clip_case(MOVED, "far towards the return", [6.0], [10.0], [5.0]),
    clip_case(MOVED, "far away from the return", [4.0], [10.0], [5.0]),
    clip_case(MOVED, "down, towards the return", [3.0], [0.0], [5.0]),
    clip_case(MOVED, "up, away from the return", [7.0], [0.0], [5.0]),
    clip_case(MOVED, "at the return", [7.0], [7.0], [5.0]),
    clip_case(MOVED, "past the return", [9.0], [7.0], [5.0]),
    clip_case(EDGES, "another ε", [7.0], [10.0], [5.0], 1.5),
    clip_case(EDGES, "values below 0", [-4.0], [-1.0], [-5.0]),
    clip_case(EDGES, "a value of before that was 0", [1.0], [4.0], [0.0]),
    clip_case(EDGES, "two samples", [6.0, 4.0], [10.0, 10.0], [5.0, 5.0]),
    clip_case(EDGES, "one moved, one not", [6.0, 2.0], [10.0, 3.0], [5.0, 2.0]),
    clip_case(EDGES, "the same two twice", [6.0, 4.0] * 2, [10.0] * 4, [5.0] * 4),
    clip_case(EDGES, "two axes", [[6.0, 4, 1]] * 2, [[10.0, 10, 0], [0, 3, 4]], [[5.0, 5, 3]] * 2),
    *(
        clip_case(GRADIENTS, name, [value], [target], [5.0], gradients=True)
        for name, value, target in (
            ("moved by less than ε", 5.25, 7.0),
            ("far towards the return", 6.0, 10.0),
            ("far away from the return", 4.0, 10.0),
            ("down, towards the return", 3.0, 0.0),
            ("up, away from the return", 7.0, 0.0),
            ("far past the return", 12.0, 7.0),
        )
    ),
    clip_case(
        SEEDED,
        "12 samples",
        draw(Random(19), 12, low=-3, high=3),
        draw(Random(20), 12, low=-6, high=6),
        draw(Random(21), 12, low=-3, high=3),
        0.8,
        gradients=True,
    ),
    clip_case(
        SEEDED,
        "float32, 4 steps, 3 environments",
        draw(Random(22), 4, 3, low=-3, high=3),
        draw(Random(23), 4, 3, low=-6, high=6),
        draw(Random(24), 4, 3, low=-3, high=3),
        1.3,
        gradients=True,
        dtype=torch.float32,
    ),
)
GRADE_CASES = (
    loss_case(SMALLEST, "all right", ROW, ROW),
    loss_case(SHIFTS, "100 too high", [102.0, 104.0, 106.0, 108.0], ROW),
    loss_case(SHIFTS, "always the same", [5.0, 5.0, 5.0, 5.0], ROW),
    loss_case(SPREADS, "two levels", [3.0, 3.0, 7.0, 7.0], ROW),
    loss_case(SPREADS, "half as large", [1.0, 2.0, 3.0, 4.0], ROW),
    loss_case(SPREADS, "twice as large", [4.0, 8.0, 12.0, 16.0], ROW),
    loss_case(SPREADS, "turned round", [8.0, 6.0, 4.0, 2.0], ROW),
    loss_case(SPREADS, "two samples, the wrong way round", [1.0, 0.0], [0.0, 2.0]),
    loss_case(EDGES, "returns near 500", [480.0, 500.0, 520.0], [490.0, 500.0, 500.0]),
    loss_case(EDGES, "two axes", [[1.0, 2, 3], [10, 11, 12]], [[1.0, 3, 2], [10, 14, 12]]),
    loss_case(SEEDED, "12 samples", draw(Random(25), 12), draw(Random(26), 12, low=-4, high=6)),
    loss_case(
        SEEDED,
        "float32, 5 steps, 4 environments",
        draw(Random(27), 5, 4),
        draw(Random(28), 5, 4, low=-4, high=6),
        dtype=torch.float32,
    ),
)


def both_case(
    stage: str,
    name: str,
    logits: Any,
    values: Sequence[float],
    actions: Sequence[int],
    returns: Sequence[float],
    value_coef: float = 1.0,
    **more: Any,
) -> Case:
    """One call with a batch, for the gradients of both networks."""
    inputs = {
        "logits": logits,
        "values": list(values),
        "actions": list(actions),
        "returns": list(returns),
    }
    options = {"value_coef": value_coef}
    return Case(
        stage=stage, name=name, inputs=inputs, options=options, integers=("actions",), **more
    )


LOG_3 = round(log(3), 6)
BOTH_CASES = (
    both_case(SMALLEST, "one sample, better than expected", [[0.0, 0.0]], [1.0], [0], [3.0]),
    both_case(ACTIONS, "the other action", [[0.0, 0.0]], [1.0], [1], [3.0]),
    both_case(ACTIONS, "probabilities 1/4 and 3/4", [[0.0, LOG_3]], [1.0], [1], [5.0]),
    both_case(ACTIONS, "three actions", [[0.0, 1.0, -1.0]], [1.0], [2], [2.0]),
    both_case(WEIGHTS, "worse than expected", [[0.0, LOG_3]], [4.0], [1], [1.0]),
    both_case(WEIGHTS, "as expected", [[0.0, LOG_3]], [4.0], [1], [4.0]),
    both_case(WEIGHTS, "a coefficient of 0.5", [[0.0, LOG_3]], [1.0], [1], [5.0], 0.5),
    both_case(
        EDGES, "two samples", [[0.0, 0.0], [0.0, LOG_3]], [1.0, 2.0], [0, 1], [3.0, 6.0], 0.5
    ),
    both_case(
        EDGES,
        "the same two twice",
        [[0.0, 0.0], [0.0, LOG_3]] * 2,
        [1.0, 2.0] * 2,
        [0, 1] * 2,
        [3.0, 6.0] * 2,
        0.5,
    ),
    both_case(EDGES, "large logits", [[1000.0, 999.0]], [1.0], [1], [3.0]),
    both_case(
        SEEDED,
        "5 samples, 3 actions",
        draw(Random(29), 5, 3),
        draw(Random(30), 5),
        [0, 2, 1, 1, 0],
        draw(Random(31), 5, low=-3, high=4),
        0.25,
    ),
    both_case(
        SEEDED,
        "float32, 3 samples, 4 actions",
        draw(Random(32), 3, 4),
        draw(Random(33), 3),
        [3, 0, 1],
        draw(Random(34), 3, low=-3, high=4),
        0.7,
        dtype=torch.float32,
    ),
)

# --- mistakes in words ---------------------------------------------------------------------

BASELINE_MISTAKES = {
    "value_taken_for_the_optimum": "It is V, the mean return. A draw that pushes hard makes more "
    "noise, so it must count for more.",
    "score_not_squared": "A draw counts by the length of its score. The variance contains the "
    "square.",
    "probabilities_forgotten": "The probabilities are missing: a rare draw counts like a frequent "
    "one.",
    "not_divided_by_the_scores": "It is not divided by the mean squared score. A baseline is a "
    "mean of the returns: if all returns are 3, it is 3.",
    "returns_squared": "The weights contain the returns. They are probability times squared score, "
    "and nothing else.",
    "returns_without_weights": "It is the plain mean of the returns. Each counts by its "
    "probability and by the square of its score.",
    "entries_added_before_squaring": "The entries of a score are added up, then squared. Its "
    "length is meant: square first, so that entries cannot cancel.",
    "one_for_each_parameter": "There is one baseline for each parameter (or their mean). Asked for "
    "is the one number that serves all: add up the squares over the parameters.",
    "upside_down": "The fraction is upside down. If all returns are 4, the baseline is 4.",
    "short_scores_count_more": "It divides by the squared score where it should multiply: what "
    "pushes hard counts for more.",
    "probabilities_squared": "The probabilities are squared too. They weight the mean once.",
    "score_times_return": "It is the slope of the return over the score. The score in the "
    "numerator is squared as well.",
    "largest_return": "It takes the return of the draw that weighs most. All of them count.",
    "length_of_the_parameters": "The squared scores are not added up over the parameters: an axis "
    "was mixed up. One number for each draw, from its row.",
}
OTHERS_MISTAKES = {
    "itself_included": "It is the mean of all draws. A draw must not be part of its own baseline: "
    "the gradient would shrink by (k − 1)/k.",
    "divided_by_all": "The draw itself is left out of the sum and not of the count. There are "
    "k − 1 others.",
    "itself_counted_and_not_counted": "The draw itself is in the sum and not in the count. Leave "
    "it out of both.",
    "all_rows_thrown_together": "It takes the draws of other rows, too. Those answer another "
    "question.",
    "itself_alone": "Each draw gets its own return. Nothing would be left to learn from.",
    "one_for_the_row": "There is one number per row. Each draw has others of its own: the result "
    "has the shape of the returns.",
    "subtracted_already": "It gives return minus baseline. Asked for is the baseline alone.",
    "over_the_questions": "It leaves out a draw and averages over the rows. Draws of one question "
    "lie along the last axis.",
    "median_of_the_others": "It takes the median of the others. Asked for is the mean.",
    "best_of_the_others": "It takes the best of the others. Asked for is the mean.",
    "next_draw_only": "It takes one other draw. All the others count.",
    "sum_of_the_others": "It adds the others up. Divide by how many there are.",
    "earlier_draws_only": "It averages over the draws before. Those after it know nothing of it "
    "either: all others count.",
    "weighted_by_the_others": "It is normalised by the spread of the row. Asked for is the mean of "
    "the others.",
}
COLUMN = (
    "Every value is held against every return: a column [B, 1] minus a row [B] is a table [B, B]. "
    "The shapes must be equal before you subtract, or all values are pulled to the mean."
)
TARGETS = (
    "The numbers are right, and a gradient flows into the returns: the targets would move towards "
    "the values. They are constants."
)
HALF = "The half is missing. With it the slope is the error itself."
SUMMED = "It adds up over the batch, so the step grows with the batch. Take the mean."
LOSS_MISTAKES = {
    "column_against_row": COLUMN,
    "gradient_through_the_targets": TARGETS,
    "half_forgotten": HALF,
    "summed_over_the_batch": SUMMED,
    "targets_learn_instead": "The values are detached and the returns are not: the targets learn "
    "from the critic. It is the other way round.",
    "absolute_error": "It takes the size of the error. That leads to the median of the returns; V "
    "is their mean, which the square leads to.",
    "huber": "Large errors count by their size only (a Huber loss). A rare large return would be "
    "heard too little: V is the mean, which the square leads to.",
    "root_of_the_mean": "It takes the root at the end. The slope would no longer be the error.",
    "mean_error_squared": "It averages first and squares the mean: errors of both signs cancel. "
    "Square first.",
    "spread_of_the_errors": "It subtracts the mean of the errors: a critic that is 100 too high "
    "everywhere would not be corrected.",
    "not_squared": "The error is not squared: a value that is too low lowers the loss without end.",
    "not_averaged": "It gives one number per sample. Asked for is one number: the mean.",
    "sign_turned": "The sign is that of an objective. An error is made small: no minus.",
    "halved_twice": "It halves twice. One half is enough: with it the slope is the error itself.",
    "relative_error": "The error is divided by the return. Where returns are small, that is all "
    "that would count.",
    "returns_normalised": "The returns are normalised first. Then the critic learns other numbers "
    "than those that followed.",
    "averaged_over_one_axis": "It averages over one axis. The mean goes over all samples, whatever "
    "the shape is.",
}
WHOLE_MISTAKES = {
    "column_against_row": "The line still makes a table [B, B]: every value against every return. "
    "Look at the shapes of both before the minus.",
    "values_averaged_first": "It averages the values first. Each is held against its own return.",
    "returns_averaged_first": "It averages the returns first, so all values are still pulled to "
    "one number. Each value has a return of its own.",
    "first_return_for_all": "All values are held against the first return. Each has its own.",
    "first_value_for_all": "The first value is held against all returns. Each has its own.",
    "returns_sorted": "The returns are in another order than the values. Row i goes with row i.",
    "returns_turned_round": "The returns are in the reversed order. Row i goes with row i.",
    "gradient_through_the_targets": TARGETS,
    "critic_cut_off": "The numbers are right, and no gradient reaches the weights: the critic "
    "would learn nothing. Keep the values attached.",
    "summed_over_the_table": "It adds up over one axis of the table. There should be no table: "
    "first give both the same shape.",
    "half_forgotten": "The half is gone. It was right in the given lines.",
    "summed_over_the_batch": "It adds up; the given lines took the mean, and were right.",
    "errors_added_up": "The errors are added up before they are squared. Square each.",
    "absolute_error": "It takes the size of the error. The square was right.",
}
CLIP_MISTAKES = {
    "minimum_for_maximum": "It takes the smaller error. A value that strayed from its return is "
    "then not called back: here a loss is minimised, so the larger one counts.",
    "clipped_error_only": "It takes the clipped error alone. Outside the interval it is flat in "
    "both directions; the larger of the two errors calls strayed values back.",
    "clip_as_a_ratio": "It clips a ratio of values, as for the policy. Values may be 0 or below: "
    "the difference is clipped, to ±ε.",
    "targets_and_old_values_with_gradient": "The numbers are right, and gradients flow into "
    "returns and values_old. Both are constants.",
    "old_values_with_gradient": "The numbers are right, and a gradient flows into values_old: "
    "what the critic said before is a constant.",
    "gradient_through_the_returns": TARGETS,
    "half_forgotten": HALF,
    "summed_over_the_batch": SUMMED,
    "no_clip": "It is the value loss without a clip: ε has no effect.",
    "clipped_around_the_return": "The value is clipped around the return. It is clipped around "
    "what the critic said before, values_old.",
    "clipped_around_zero": "The value itself is clipped to ±ε. What is clipped is how far it has "
    "moved from values_old.",
    "returns_clipped": "The return is clipped around values_old. What is clipped is the value.",
    "errors_clipped": "The error is cut off at ε. What is clipped is how far the value has moved.",
    "epsilon_ignored": "It uses 0.2 whatever ε is given. Use the argument clip_epsilon.",
    "old_value_for_the_clipped": "The second error is that of values_old itself. It is that of "
    "values_old plus the clipped move.",
    "means_compared": "It compares two means. The larger error is taken sample by sample; the mean "
    "comes last.",
    "move_taken_for_the_value": "The second error compares the clipped move with the return. Add "
    "the move to values_old first.",
    "half_of_the_gradient": "The numbers are right. The clipped term is detached, so inside the "
    "interval, where both errors are equal, half of the gradient is lost.",
    "one_sided": "Only moves upwards are clipped. The interval has two edges, ±ε.",
    "errors_added": "It adds the two errors (or averages them). The larger one is taken.",
    "sign_turned": "The sign is that of an objective. An error is made small: no minus.",
    "column_against_row": COLUMN,
}
GRADE_MISTAKES = {
    "mean_not_removed": "It takes the mean squared error above. A variance removes the mean of "
    "the errors: a critic that is 100 too high everywhere explains all.",
    "share_that_was_missed": "It is the share that was not explained. Take 1 minus it.",
    "divided_by_the_critics_spread": "It divides by the variance of the values. What is to be "
    "explained are the returns.",
    "share_of_the_critics_spread": "It compares the two spreads. Noise of the right size would "
    "explain all: the variance of the errors belongs above.",
    "squared_correlation": "It is the squared correlation, which forgives a wrong scale: values "
    "twice too large must get 0 here.",
    "correlation": "It is the correlation, which forgives a wrong scale and a shift.",
    "deviations_for_variances": "It divides standard deviations. Explained is a share of the "
    "variance.",
    "counts_differ": "One variance divides by N, the other by N − 1. Use the same for both.",
    "means_of_squares": "Nothing is centred: squares of errors over squares of returns. Returns "
    "near 500 would be explained by any critic near 500.",
    "never_below_zero": "It cuts off at 0. A critic that is worse than a constant has less than 0, "
    "and you want to see that.",
    "column_by_column": "It takes a grade for each column and averages. All samples together are "
    "asked for.",
    "column_against_row": COLUMN,
    "percent": "It gives percent. A perfect critic has 1.",
    "absolute_errors": "It compares sizes of errors. Explained is a share of the variance.",
    "upside_down": "The fraction is upside down: the variance of the errors stands above.",
    "sums_not_differences": "The values are added to the returns. Errors are differences.",
}
NUMBER_MISTAKES = {
    "pays_averaged": "For V you took the plain mean of the two pays. Lever 1 is pulled once in "
    "four times.",
    "slope_to_the_probability": "You gave the slope by p. The parameter is the logit: one more "
    "factor, p·(1 − p).",
    "good_lever_only": "You left the push of lever 0 out. It is small, and comes three times of "
    "four.",
    "score_of_one": "The score of a lever is not 1 or 0: subtract the probability of lever 1.",
    "square_of_the_mean_forgotten": "You gave the mean of the squared push. The variance is that "
    "minus the square of the mean push.",
    "deviation_for_the_variance": "You gave standard deviations. The variance is the square.",
    "chances_forgotten": "You counted both levers alike in the variance. One comes three times as "
    "often.",
    "value_taken_for_the_optimum": "You took V for the best baseline. The best one weights each "
    "pay by the squared score.",
    "score_not_squared": "You weighted the pays by the length of the score. Square it.",
    "probabilities_forgotten": "You weighted the pays by the squared scores and forgot how often "
    "each lever is pulled.",
    "not_divided_by_the_scores": "You did not divide by the mean squared score.",
    "own_mean_is_harmless": "A draw is a part of the mean of its batch, so a part of the return is "
    "subtracted from itself. How large is that part?",
    "own_part_only": "You gave the part that is lost. Asked for is the mean push that is left.",
    "one_draw_more": "Of k draws, one is the draw itself. What is left is the share of the others "
    "among all.",
    "mean_not_removed": "You took the mean squared error. A variance removes the mean of the "
    "errors first.",
    "share_that_was_missed": "You gave the share that is not explained. Take 1 minus it.",
    "deviations_for_variances": "You divided standard deviations. Explained is a share of the "
    "variance.",
    "spreads_compared": "You compared the spread of the values with that of the returns. The "
    "variance of the errors belongs above.",
}
BOTH_MISTAKES = {
    "critic_pulled_by_the_policy_loss": "The policy's loss pulls at the values: the advantage is "
    "not held constant. The critic would end too high, wherever the policy is undecided.",
    "critic_cut_off": "The values get no gradient. In the value loss they are no constants.",
    "returns_for_the_advantage": "The policy is pushed by the return. Subtract what was expected.",
    "uphill": "The gradient to the logits is that of an objective. The loss has a minus in front.",
    "critic_uphill": "The gradient to the values has the wrong sign: it leads away from the "
    "returns.",
    "not_divided_by_the_batch": "It adds up over the batch. Both losses are means.",
    "half_forgotten": "The half of the value loss is missing: the gradient to the values is twice "
    "as large as it should be.",
    "coefficient_forgotten": "The coefficient has no effect. It multiplies the value loss.",
    "coefficient_on_both": "The coefficient is at the policy's loss, too. It multiplies the value "
    "loss alone.",
    "coefficient_on_the_policy": "The coefficient is at the policy's loss. It multiplies the value "
    "loss.",
    "expectation_not_subtracted": "The probabilities are missing in the score. It is [a = taken] − "
    "π(a), so the entries of a row sum to 0.",
    "taken_action_only": "Only the taken action's logit gets a gradient. The others fall in "
    "exchange: the entries of a row sum to 0.",
    "probability_not_its_logarithm": "It is the gradient of the probability: one factor π(a) too "
    "many. The loss contains its logarithm.",
    "advantages_normalised": "The advantages are normalised. That comes later; here they are taken "
    "as they are.",
    "advantages_centred": "The mean of the batch is subtracted from the advantages. Here they are "
    "taken as they are.",
    "order_exchanged": "The two are in the other order: logits first, then values.",
    "softmax_over_the_batch": "The probabilities sum to 1 over the batch. They must sum to 1 over "
    "the actions: the last axis.",
    "exponential_overflows": "The exponential of a large logit is infinite, and ∞/∞ is NaN. Use a "
    "softmax, which subtracts the largest logit first.",
    "first_action": "It pushes the first action everywhere. The actions are given.",
}

# --- exercises -----------------------------------------------------------------------------

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "a": ("V", "Each pay counts by how often its lever is pulled."),
    "b": ("the mean push", "Two pushes, score times pay, and their probabilities."),
    "c": ("the variance without a baseline", "Mean of the squared push, minus the mean squared."),
    "d": ("the variance with V subtracted", "Only the pays change; the mean push stays."),
    "e": ("the best baseline", "Weight each pay by probability times squared score."),
    "f": ("the variance with the best baseline", "Write down the two pushes."),
    "g": (
        "the mean push with the mean of the batch subtracted",
        "Which part of the mean is the draw's own return?",
    ),
    "h": ("the explained variance", "List the four errors, then take two variances."),
}
EXERCISES = (
    FunctionExercise(
        id="critic.optimal_baseline",
        cases=BASELINE_CASES,
        gives="number",
        mistakes=BASELINE_MISTAKES,
        hints=(
            "It is a mean of the returns. What is new is how much each of them counts.",
            "A draw counts by its probability and by the squared length of its score: the sum of "
            "the squares over the parameters. Divide by the sum of these weights.",
            "b* = Σ_n p_n·|score_n|²·R_n / Σ_n p_n·|score_n|²",
        ),
    ),
    FunctionExercise(
        id="critic.leave_one_out_baseline",
        cases=OTHERS_CASES,
        gives="one per row",
        returns="a torch.Tensor of shape [B, k], one baseline for each draw",
        mistakes=OTHERS_MISTAKES,
        hints=(
            "Each draw gets another number. You need no loop: what do all draws of a row have in "
            "common?",
            "The sum over the row, minus the draw itself, divided by how many others there are. "
            "Keep the axis when you add up.",
            "b_i = ( Σ_j R_j − R_i ) / (k − 1)",
        ),
    ),
    FunctionExercise(
        id="critic.value_loss",
        cases=LOSS_CASES,
        gives="scalar",
        learns=("values",),
        mistakes=LOSS_MISTAKES,
        hints=(
            "An error for each sample, and one number for all of them.",
            "Square, mean, half. The values learn, and the returns are constants.",
            "½·mean( (V − R)² )",
        ),
    ),
    FunctionExercise(
        id="critic.mended_value_loss",
        cases=WHOLE_CASES,
        gives="scalar",
        learns=("weights",),
        mistakes=WHOLE_MISTAKES,
        starts_with="column_against_row",
        hints=(
            "Give it the four samples, and print the shape of every line.",
            "The mean and the half are right, and so is what is detached. How many errors should "
            "four samples have?",
            "error_i = V_i − R_i,   i = 1 … B",
        ),
    ),
    FunctionExercise(
        id="critic.clipped_value_loss",
        cases=CLIP_CASES,
        gives="scalar",
        learns=("values",),
        mistakes=CLIP_MISTAKES,
        hints=(
            "Two errors for each sample: that of the value, and that of where the value would be "
            "if it had moved by at most ε.",
            "Clip the move, not the value: values minus values_old. Then the larger of the two "
            "squared errors, the mean, the half. Two of the three tensors are constants.",
            "V' = V_old + clip(V − V_old, −ε, ε);   ½·mean( max( (V − R)², (V' − R)² ) )",
        ),
    ),
    FunctionExercise(
        id="critic.explained_variance",
        cases=GRADE_CASES,
        gives="number",
        mistakes=GRADE_MISTAKES,
        hints=(
            "Two variances: one of what the critic leaves unexplained, one of what there was to "
            "explain.",
            "Both over all samples, both with the same count below. Their quotient is the share "
            "that was missed.",
            "EV = 1 − Var(R − V) / Var(R)",
        ),
    ),
    NumbersExercise(
        id="critic.eight_numbers",
        questions=QUESTIONS,
        tolerance=0.001,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "For a to f make a table with two rows, one for each lever: probability, score, pay, "
            "push.",
            "A push is score times (pay minus baseline). The variance is the mean of its square "
            "minus the square of its mean, and the mean does not depend on the baseline.",
            "Var = E[score²·(R − b)²] − (E[score·R])²;   EV = 1 − Var(R − V) / Var(R)",
        ),
    ),
    FunctionExercise(
        id="critic.actor_critic_gradients",
        cases=BOTH_CASES,
        gives="several",
        parts=("to_logits", "to_values"),
        mistakes=BOTH_MISTAKES,
        hints=(
            "Two losses, and each network is pulled by one of them. Which path must be cut so that "
            "this is true?",
            "By autograd: the advantage is a constant in the policy's loss, and the values are "
            "none in the value loss. By hand: score times advantage, and the error.",
            "to logits: −( [a = taken] − π(a) )·(R − V) / B;   to values: c·(V − R) / B",
        ),
    ),
)
