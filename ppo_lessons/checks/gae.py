"""Lesson 06: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Mapping, Sequence
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

ENDS, DISCOUNT, LAMBDA = "ends of episodes", "discount", "the two ends of λ"
SCALE, MASKS, TARGETS = "scale", "rows that do not count", "targets"


# --- numbers that are drawn ----------------------------------------------------------------


def draw_flags(random: Random, num_steps: int, num_envs: int, *, often: float) -> list[list[bool]]:
    """Draw flags, each of which is True so often."""
    return [[random.random() < often for _ in range(num_envs)] for _ in range(num_steps)]


def column(*values: Any) -> list[list[Any]]:
    """Steps of one environment: [T, 1]."""
    return [[value] for value in values]


def flags_at(num_steps: int, *steps: int) -> list[list[bool]]:
    """Flags of one environment, True at some steps."""
    return [[t in steps] for t in range(num_steps)]


def either(first: Any, second: Any) -> list[list[bool]]:
    """Where one flag is True, or the other."""
    return [
        [a or b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)
    ]


def next_values_of(values: Any, reached: Any, ended: Any) -> Any:
    """Give V of the next row; at an end, and in the last row, V of what was reached.

    Args:
        values: of the states in which the actions were chosen, [T, N].
        reached: of the states that the steps reached, [T, N]; used at ends and in the last row.
        ended: where an episode ended, [T, N].
    """
    last = len(values) - 1
    return [
        [
            reached[t][n] if t == last or ended[t][n] else values[t + 1][n]
            for n in range(len(values[t]))
        ]
        for t in range(len(values))
    ]


# --- cases ---------------------------------------------------------------------------------


def scored(
    rewards: Any, values: Any, reached: Any, terminated: Any = None, truncated: Any = None
) -> dict[str, Any]:
    """Make a scored rollout; without flags nothing ends in it."""
    terminated = terminated or [[False] * len(row) for row in rewards]
    truncated = truncated or [[False] * len(row) for row in rewards]
    return {
        "rewards": rewards,
        "values": values,
        "next_values": next_values_of(values, reached, either(terminated, truncated)),
        "terminated": terminated,
        "truncated": truncated,
    }


def drawn_rollout(seed: int, num_steps: int, num_envs: int, *, often: float = 0.25) -> dict:
    """Draw a scored rollout in which ends of both kinds are so frequent."""
    random, shape = Random(seed), (num_steps, num_envs)
    rewards, values, reached = (draw(random, *shape) for _ in range(3))
    terminated, truncated = (draw_flags(random, *shape, often=often) for _ in range(2))
    return scored(rewards, values, reached, terminated, truncated)


# One environment, unless the name says otherwise. Behind an end stands a number that is found out.
ONE = scored([[3.0]], [[2.0]], [[4.0]])
ONE_TERMINATED = scored([[3.0]], [[2.0]], [[40.0]], [[True]])
ONE_TRUNCATED = scored([[3.0]], [[2.0]], [[4.0]], None, [[True]])
ONE_BOTH = scored([[3.0]], [[2.0]], [[40.0]], [[True]], [[True]])
TWO = scored(column(1.0, 2.0), column(4.0, 6.0), column(0.0, 8.0))
TWO_FINISHED = scored(column(1.0, 2.0), column(4.0, 6.0), column(0.0, 8.0), flags_at(2, 1))
THREE = scored(column(0.0, 0.0, 8.0), column(4.0, 2.0, 6.0), column(0.0, 0.0, 9.0), flags_at(3, 2))
FOUR = scored(column(0.0, 0.0, 0.0, 8.0), column(0.0, 0.0, 0.0, 0.0), column(0.0, 0.0, 0.0, 0.0))
TWO_GAMES = scored(
    column(1.0, 4.0, 2.0, 6.0),
    column(5.0, 6.0, 1.0, 3.0),
    column(0.0, 20.0, 0.0, 7.0),
    flags_at(4, 1),
)
CUT_BETWEEN = scored(
    column(1.0, 4.0, 2.0, 6.0),
    column(5.0, 6.0, 1.0, 3.0),
    column(0.0, 20.0, 0.0, 7.0),
    None,
    flags_at(4, 1),
)
BOTH_BETWEEN = scored(
    column(1.0, 4.0, 2.0),
    column(5.0, 6.0, 1.0),
    column(0.0, 20.0, 7.0),
    flags_at(3, 1),
    flags_at(3, 1),
)
SIDE_BY_SIDE = scored(
    [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]],
    [[5.0, 0.0], [4.0, 10.0], [1.0, 20.0]],
    [[0.0, 50.0], [8.0, 0.0], [6.0, 40.0]],
    [[False, True], [False, False], [False, False]],
    [[False, False], [True, False], [False, False]],
)
WIDE = scored(
    [[1.0, 0.0, -1.0], [1.0, 2.0, 4.0]],
    [[2.0, -3.0, 0.5], [1.0, 5.0, 2.0]],
    [[9.0, 7.0, 5.0], [3.0, 1.0, -4.0]],
    [[False, True, False], [False, False, True]],
)


def td_case(stage: str, name: str, rollout: Mapping[str, Any], gamma: float, **more: Any) -> Case:
    """One call with the four that a TD error needs."""
    inputs = {key: rollout[key] for key in ("rewards", "values", "next_values", "terminated")}
    return Case(stage=stage, name=name, inputs=inputs, options={"gamma": gamma}, **more)


TD_CASES = (
    td_case(SMALLEST, "one step, γ 1", ONE, 1.0),
    td_case(DISCOUNT, "one step, γ 0.5", ONE, 0.5),
    td_case(DISCOUNT, "γ 0", ONE, 0.0),
    td_case(ENDS, "the step ends the game", ONE_TERMINATED, 0.5),
    td_case(ENDS, "the game goes on, unseen", ONE_TRUNCATED, 0.5),
    td_case(EDGES, "two steps", TWO, 0.5),
    td_case(EDGES, "two games, one after the other", TWO_GAMES, 0.5),
    td_case(EDGES, "a game that is cut, then another one", CUT_BETWEEN, 0.5),
    td_case(EDGES, "two environments", SIDE_BY_SIDE, 0.5),
    td_case(EDGES, "more environments than steps", WIDE, 0.9),
    td_case(SEEDED, "7 steps, 3 environments", drawn_rollout(1, 7, 3), 0.9),
    td_case(
        SEEDED,
        "float32, 5 steps, 4 environments",
        drawn_rollout(2, 5, 4),
        0.99,
        dtype=torch.float32,
    ),
)


def gae_case(
    stage: str, name: str, rollout: Mapping[str, Any], gamma: float, gae_lambda: float, **more: Any
) -> Case:
    """One call with the five tables of a scored rollout."""
    options = {"gamma": gamma, "gae_lambda": gae_lambda}
    return Case(stage=stage, name=name, inputs=rollout, options=options, **more)


GAE_CASES = (
    gae_case(SMALLEST, "one step", ONE, 1.0, 1.0),
    gae_case(SMALLEST, "one step, γ 0.5", ONE, 0.5, 1.0),
    gae_case(SMALLEST, "one step, γ 0.5, λ 0", ONE, 0.5, 0.0),
    gae_case(ENDS, "one step that ends the game", ONE_TERMINATED, 0.5, 1.0),
    gae_case(ENDS, "one step, then nobody watches", ONE_TRUNCATED, 0.5, 1.0),
    gae_case(ENDS, "both at once", ONE_BOTH, 0.5, 1.0),
    gae_case(LAMBDA, "two steps, γ 1, λ 1", TWO, 1.0, 1.0),
    gae_case(LAMBDA, "two steps, γ 1, λ 0", TWO, 1.0, 0.0),
    gae_case(LAMBDA, "two steps, γ 1, λ 0.5", TWO, 1.0, 0.5),
    gae_case(DISCOUNT, "two steps, γ 0.5, λ 1", TWO, 0.5, 1.0),
    gae_case(DISCOUNT, "two steps, γ 0.5, λ 0.5", TWO, 0.5, 0.5),
    gae_case(DISCOUNT, "a surprise three steps later", FOUR, 0.5, 0.5),
    gae_case(ENDS, "the sacrifice of the lesson", THREE, 1.0, 0.5),
    gae_case(ENDS, "two games, one after the other", TWO_GAMES, 0.5, 1.0),
    gae_case(ENDS, "a game that is cut, then another one", CUT_BETWEEN, 0.5, 1.0),
    gae_case(ENDS, "a game that ends as it is cut", BOTH_BETWEEN, 0.5, 1.0),
    gae_case(EDGES, "two environments that end at other times", SIDE_BY_SIDE, 0.5, 0.5),
    gae_case(EDGES, "more environments than steps", WIDE, 0.9, 0.8),
    gae_case(SEEDED, "9 steps, 3 environments", drawn_rollout(3, 9, 3), 0.9, 0.8),
    gae_case(
        SEEDED,
        "float32, 12 steps, 2 environments",
        drawn_rollout(4, 12, 2, often=0.1),
        0.99,
        0.95,
        dtype=torch.float32,
    ),
)


def normal_case(stage: str, name: str, advantages: Any, mask: Any = None, **more: Any) -> Case:
    """One call with advantages of any shape, with or without a mask."""
    options = {} if mask is None else {"mask": mask}
    return Case(stage=stage, name=name, inputs={"advantages": advantages}, options=options, **more)


NORMAL_CASES = (
    normal_case(SMALLEST, "a pair", [1.0, 3.0]),
    normal_case(SMALLEST, "a pair, far from 0", [104.0, 108.0]),
    normal_case(SCALE, "three advantages", [5.0, 4.0, -9.0]),
    normal_case(SCALE, "the same in another unit", [500.0, 400.0, -900.0]),
    normal_case(SCALE, "small ones", [0.25, 0.5, 0.75]),
    normal_case(EDGES, "one advantage alone", [7.0]),
    normal_case(EDGES, "all the same", [5.0, 5.0, 5.0]),
    normal_case(EDGES, "two axes", [[1.0, 2.0, 6.0], [3.0, -5.0, 8.0]]),
    normal_case(MASKS, "all of them count", [1.0, 3.0, 8.0], [True, True, True]),
    normal_case(MASKS, "the last does not count", [1.0, 3.0, 8.0], [True, True, False]),
    normal_case(MASKS, "what does not count is huge", [1.0, 500.0, 5.0], [True, False, True]),
    normal_case(MASKS, "only one counts", [7.0, 7.0], [False, True]),
    normal_case(
        MASKS,
        "two axes",
        [[1.0, 2.0, 6.0], [3.0, -5.0, 8.0]],
        [[True, False, True], [True, True, False]],
    ),
    normal_case(
        SEEDED,
        "4 steps, 3 environments",
        draw(Random(5), 4, 3, low=-3, high=5),
        draw_flags(Random(6), 4, 3, often=0.7),
    ),
    normal_case(
        SEEDED, "float32, 20 rows", draw(Random(7), 20, low=2, high=9), dtype=torch.float32
    ),
)


def critic_case(
    stage: str, name: str, values: Any, values_old: Any, advantages: Any, **more: Any
) -> Case:
    """One call with what the critic says now, what it said, and raw advantages."""
    inputs = {"values": values, "values_old": values_old, "advantages": advantages}
    return Case(stage=stage, name=name, inputs=inputs, **more)


CRITIC_CASES = (
    critic_case(SMALLEST, "one state, no surprise", [7.0], [4.0], [0.0]),
    critic_case(SMALLEST, "the critic has not moved yet", [4.0], [4.0], [2.0]),
    critic_case(TARGETS, "it has moved by half of the way", [5.0], [4.0], [2.0]),
    critic_case(TARGETS, "it is where it should be", [6.0], [4.0], [2.0]),
    critic_case(TARGETS, "it has moved away", [3.0], [4.0], [2.0]),
    critic_case(TARGETS, "two states, V 100 in both", [100.0, 100.0], [100.0, 100.0], [5.0, 3.0]),
    critic_case(TARGETS, "worse than expected", [2.0, 4.0], [2.0, 5.0], [-3.0, -1.0]),
    critic_case(TARGETS, "errors of opposite sign", [1.0, 1.0], [1.0, 1.0], [2.0, -2.0]),
    critic_case(EDGES, "the same two states twice", [1.0, 3.0] * 2, [0.0, 2.0] * 2, [4.0, 6.0] * 2),
    critic_case(
        EDGES,
        "two axes",
        [[1.0, 2.0, 0.0], [3.0, 1.0, 5.0]],
        [[0.0, 2.0, 1.0], [1.0, 1.0, 4.0]],
        [[3.0, -1.0, 2.0], [0.5, 2.0, -4.0]],
    ),
    critic_case(GRADIENTS, "one state", [4.0], [4.0], [2.0], gradients=True),
    critic_case(GRADIENTS, "two states", [5.0, 2.0], [4.0, 3.0], [2.0, 1.0], gradients=True),
    critic_case(
        SEEDED,
        "10 states",
        draw(Random(8), 10, low=0, high=6),
        draw(Random(9), 10, low=0, high=6),
        draw(Random(10), 10, low=-4, high=4),
        gradients=True,
    ),
    critic_case(
        SEEDED,
        "float32, 3 steps, 4 environments",
        draw(Random(11), 3, 4, low=0, high=6),
        draw(Random(12), 3, 4, low=0, high=6),
        draw(Random(13), 3, 4, low=-4, high=4),
        gradients=True,
        dtype=torch.float32,
    ),
)


def without_values(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Give the cases of another exercise without V of the states themselves."""
    return tuple(
        Case(
            stage=each.stage,
            name=each.name,
            inputs={name: value for name, value in each.inputs.items() if name != "values"},
            options=each.options,
            dtype=each.dtype,
        )
        for each in cases
    )


LONG = scored(column(0.0, 0.0, 0.0, 8.0), column(4.0, 2.0, 6.0, 12.0), column(0.0, 0.0, 0.0, 16.0))
MIXTURE_CASES = (
    *without_values(GAE_CASES[:12]),
    *without_values(
        [
            gae_case(LAMBDA, "four steps, γ 1, λ 0.5", LONG, 1.0, 0.5),
            gae_case(LAMBDA, "four steps, γ 0.5, λ 0.5", LONG, 0.5, 0.5),
        ]
    ),
    *without_values(GAE_CASES[12:]),
)

# --- mistakes in words ---------------------------------------------------------------------

TD_MISTAKES = {
    "value_counted_behind_the_end": "It counts a future behind a final state. Where the task has "
    "ended nothing comes: that V is worth 0, whatever stands there.",
    "reward_lost_at_the_end": "It drops the reward of the step that ended the game. The flag "
    "removes what comes after the step, not what the step earned.",
    "own_value_lost_at_the_end": "At an end it also drops what the critic expected. The critic "
    "spoke before the step, so a game that ends can surprise it.",
    "zero_at_the_end": "It gives 0 where the game ended. There the surprise may be largest: reward "
    "against what was expected.",
    "flag_turned": "It counts the future only where the game ended. The flag is used the wrong "
    "way round.",
    "gamma_left_out": "The next value is not discounted. It lies one step ahead, so it counts γ.",
    "gamma_on_both_values": "It discounts both values. What the critic expected before the step is "
    "subtracted in full.",
    "gamma_on_the_reward": "It discounts the reward too. The step's own reward counts in full.",
    "values_swapped": "It takes the value before the step for the one after it, and the other way "
    "round.",
    "sign_turned": "The sign is turned: a step that went better than expected must come out "
    "positive.",
    "value_not_subtracted": "It says what the step was worth, reward and future. What the critic "
    "had expected is still to be subtracted.",
    "reward_left_out": "The reward is missing: it compares two guesses of the critic.",
    "future_left_out": "It compares the reward alone with what was expected of the whole rest of "
    "the game. The value of what the step led to is missing.",
    "next_row_for_the_next_value": "It takes the value of the next row. In the last row there is "
    "none, and behind an end it belongs to another game: use next_values.",
    "flag_late_by_one": "It reads the flag of the row before. A flag at t says that the step at t "
    "was the last.",
    "flag_early_by_one": "It reads the flag of the row behind. Some programs store it there, "
    "beside the observation that follows; here the flag at t is about the step at t.",
    "squared": "It squares the surprise and loses its sign.",
    "environments_end_together": "The end of one environment ends all of them. Each column has its "
    "own flags.",
}
GAE_MISTAKES = {
    "flags_merged": "It takes a truncation for the end of the game. There the future exists, "
    "though nobody watches: next_values holds what it is worth.",
    "truncated_ignored": "Its sum runs on over a truncation. The row behind it belongs to another "
    "game, whose surprises are none of this one's.",
    "truncated_ignored_after_the_reset": "It does not look at `truncated`: both the next value and "
    "the sum come from the game that begins in the next row.",
    "next_value_after_the_reset": "Where a game was cut it takes the value of the next row. That "
    "is the start of another game; next_values holds the state that was reached.",
    "flags_late_by_one": "It reads the flags of the row before. A flag at t says that the step at "
    "t was the last of its game.",
    "flags_early_by_one": "It reads the flags of the row behind. Some programs store them there, "
    "beside the observation that follows; here the flags at t are about the step at t.",
    "trace_not_reset": "The TD errors are right, and the sum runs through every end. What comes in "
    "the next game says nothing about this one.",
    "missing_parenthesis": "A TD error l steps later counts γ·λˡ here; it must count (γλ)ˡ. "
    "Compare at λ = 0: the result must be the TD error itself.",
    "no_bootstrap_at_the_last_row": "Behind the last row it counts nothing. The rollout ends "
    "there, the game does not.",
    "bootstrap_kept_at_termination": "The sum stops at a final state, but a future behind it is "
    "counted. Where the game is over nothing comes.",
    "flattened_too_early": "It runs through the table as through one long column. Each environment "
    "is a world of its own: time is the first axis.",
    "whitened_inside": "The advantages are normalised. That comes later, when the critic's targets "
    "have been built from the raw ones.",
    "truncation_wins_over_termination": "Where a step is both, it counts a future. The game is "
    "over, whether anybody watches or not.",
    "values_added": "These are the targets of the critic: advantage plus V. Asked for is the "
    "advantage.",
    "td_error_alone": "It gives each step its own TD error. What comes after it counts too, each "
    "step later once more times γλ.",
    "lambda_left_out": "It carries the sum on with γ alone. That is what λ = 1 means.",
    "gamma_left_out_of_the_trace": "It carries the sum on with λ alone. A step later counts both "
    "factors, γ and λ.",
    "gamma_left_out_of_the_error": "The next value is not discounted inside the TD error.",
    "next_error_only": "It adds the next TD error and no later one. The sum goes on to the end of "
    "the game.",
    "forwards_in_time": "It runs forwards: each step collects the surprises before it. It must "
    "collect those after it.",
    "lambda_turned": "It uses 1 − λ for λ: λ = 0 must give the TD error, λ = 1 waits for all that "
    "comes.",
    "one_minus_lambda_in_front": "It multiplies by 1 − λ. That belongs to the weights of n-step "
    "returns; a TD error l steps later counts (γλ)ˡ.",
    "environments_end_together": "The end of one environment ends all of them. Each column has its "
    "own flags.",
    "ends_give_zero": "A step that ends a game gets 0. The flag cuts what comes after the step; "
    "its own TD error stays.",
    "sign_turned": "The sign is turned: a step after which things went better than expected must "
    "come out positive.",
    "value_not_subtracted": "What the critic expected of the state itself is not subtracted.",
}
NORMAL_MISTAKES = {
    "sample_deviation": "It divides by the number of samples minus 1 inside the deviation. One "
    "sample then has none, and every weight of the network becomes NaN.",
    "scaled_but_not_centred": "It scales and does not shift. The mean of the result must be 0.",
    "variance_for_deviation": "It divides by the variance. The deviation is its square root, and "
    "has the unit of the advantages.",
    "padding_in_the_mean": "What does not count pulls the mean and the deviation. The mask says "
    "what counts.",
    "padding_in_the_deviation": "The mean leaves out what does not count; the deviation does not.",
    "padding_taken_for_zeros": "What does not count enters as zeros and is counted as samples. "
    "Divide by the number of those that count.",
    "centred_only": "It shifts and does not scale. The deviation of the result must be 1.",
    "each_column_on_its_own": "It normalises along one axis. All entries belong together, whatever "
    "the shape is.",
    "nothing_added": "Where all advantages are equal it divides 0 by 0. Add a small number to the "
    "deviation.",
    "one_added": "It adds 1 to the deviation, which is far too much: the number keeps 0/0 away, "
    "and must change nothing else.",
    "largest_becomes_one": "It divides by the largest size. Mean 0 and deviation 1 are asked for.",
    "squeezed_between_0_and_1": "It maps the smallest to 0 and the largest to 1. Mean 0 and "
    "deviation 1 are asked for.",
    "mean_size_for_deviation": "It divides by the mean distance from the mean. The deviation is "
    "the root of the mean square.",
    "deviation_before_the_shift": "It divides by the root of the mean square of the raw "
    "advantages. The deviation is measured from their mean.",
    "mask_turned": "It uses the mask the wrong way round: True says that an entry counts.",
    "left_out_of_the_result": "The result holds only what counts. It must keep the shape of the "
    "advantages: what does not count is shifted and scaled with the same two numbers.",
    "set_to_zero": "What does not count is set to 0. No harm is done, but here it is shifted and "
    "scaled with the same two numbers as the rest.",
    "sign_lost": "It loses the sign: what was worse than the average must stay below 0.",
}
CRITIC_MISTAKES = {
    "normalised_first": "It normalises the advantages before the targets are built. They lose "
    "their unit, and the critic is taught to say what it says already.",
    "advantages_for_returns": "The advantages themselves are its targets. A critic says how much "
    "is to come, so V has to be added back.",
    "target_moves_with_the_critic": "It adds the advantages to what the critic says *now*. The "
    "target then moves on with each optimiser step: use the values of the score stage.",
    "old_values_for_targets": "It draws the critic to what it said before. The advantages are "
    "missing: by how much it was wrong.",
    "advantages_subtracted": "It subtracts the advantages. What came is what was expected plus the "
    "surprise.",
    "half_forgotten": "The ½ is missing. With it the slope is the error itself.",
    "summed": "It adds up over the states, so the step grows with the batch. Take the mean.",
    "not_averaged": "It gives one number per state. Asked for is one number: the mean.",
    "errors_averaged_first": "It averages the errors and then squares. Errors of opposite sign "
    "cancel there: square each first.",
    "absolute_errors": "It takes the size of the errors. Its best guess is the median of the "
    "returns, and V is their mean.",
    "objective_for_a_loss": "The sign is that of an objective. A loss is minimised: it is never "
    "below 0.",
    "root_taken": "It takes the root of the mean square. Asked for is half of the mean square.",
    "gradient_into_the_targets": "The numbers are right, and a gradient flows into the targets. "
    "They are constants, whatever computed them.",
    "change_clipped": "It lets the critic's change count only up to a bound. That is a variant; "
    "here the plain squared error is asked for.",
    "centred": "It subtracts the mean of the errors: a critic that is wrong by the same number "
    "everywhere would never learn it.",
    "last_axis_only": "It averages over one axis. The mean goes over all states, whatever the "
    "shape is.",
    "large_errors_tamed": "Large errors count linearly. That is a variant; here the plain squared "
    "error is asked for.",
}
MIXTURE_MISTAKES = {
    "gae_without_values": "It counts V of the next state in full, and what comes later on top: the "
    "future is counted twice. The two share the weight, 1 − λ and λ.",
    "lambda_turned": "It uses 1 − λ for λ: λ = 0 must give the 1-step return, λ = 1 the longest.",
    "weights_do_not_sum_to_one": "The longest return gets (1 − λ)·λⁿ⁻¹ like all others. No return "
    "is longer, so it takes all the weight that is left.",
    "all_lengths_alike": "It gives all n-step returns the same weight. They count (1 − λ)·λⁿ⁻¹.",
    "weights_shifted_by_one": "The 1-step return gets the weight (1 − λ)·λ; it must get 1 − λ.",
    "value_discounted_too_little": "V at the end of an n-step return is discounted like the last "
    "reward. It lies one step further ahead.",
    "value_not_discounted": "V at the end of an n-step return is not discounted. It lies n steps "
    "ahead.",
    "rewards_not_discounted": "The rewards of an n-step return are not discounted. One that comes "
    "k steps later counts γᵏ.",
    "flags_merged": "It takes a truncation for the end of the game. There the future exists, "
    "though nobody watches: next_values holds what it is worth.",
    "truncated_ignored": "Its returns run on over a truncation, into another game. The longest "
    "return stops where the watching stopped.",
    "trace_not_reset": "Its returns run through every end. The longest return stops at the end of "
    "the game.",
    "value_counted_behind_the_end": "It counts a future behind a final state. Where the game is "
    "over nothing comes.",
    "nothing_behind_the_last_row": "Behind the last row it counts nothing. The rollout ends there, "
    "the game does not.",
    "longest_return_only": "It gives the longest return: that is what λ = 1 means.",
    "one_step_return_only": "It gives the 1-step return: that is what λ = 0 means.",
    "truncation_wins_over_termination": "Where a step is both, it counts a future. The game is "
    "over, whether anybody watches or not.",
    "flags_late_by_one": "It reads the flags of the row before. A flag at t says that the step at "
    "t was the last of its game.",
    "environments_end_together": "The end of one environment ends all of them. Each column has its "
    "own flags.",
    "weights_of_td_errors": "It weighs the n-step returns with λⁿ⁻¹, without the 1 − λ. Those are "
    "the weights of TD errors; weights of returns sum to 1.",
    "last_reward_left_out": "An n-step return has n rewards. Here the last of them is missing.",
}
NUMBER_MISTAKES = {
    "missing_parenthesis": "You weighted a TD error l steps later by γ·λˡ. It counts (γλ)ˡ: at "
    "λ = 0 the TD error itself must come out.",
    "trace_not_reset": "Your sum runs on into the second game. The first one ends with row 2.",
    "value_counted_behind_the_end": "You counted a future behind row 2. The game is over there, "
    "and the next row is the start of another.",
    "no_bootstrap_at_the_last_row": "Behind row 3 you counted nothing. You stopped watching, and "
    "the game goes on: there the critic speaks.",
    "gamma_left_out_of_the_trace": "You carried the sum on with λ alone. A step later counts both "
    "factors, γ and λ.",
    "lambda_left_out": "You carried the sum on with γ alone, whatever λ is.",
    "gamma_left_out_of_the_error": "You left γ out of the TD errors: the value after the step "
    "counts γ.",
    "gamma_left_out": "You left γ out everywhere. It stands in the TD error and in the trace.",
    "ends_swapped": "You swapped the ends of λ. λ = 0 believes the critic after one step, λ = 1 "
    "waits for all that comes.",
    "average_of_the_ends": "At λ = 0.5 you took the middle between the two ends. Each step later "
    "counts once more times γλ.",
    "next_error_only": "You added the next TD error and no later one. The sum goes on to the end "
    "of the game.",
    "value_not_subtracted": "You did not subtract what the critic expected before the step.",
    "return_for_the_advantage": "You gave what came. The advantage is what came minus what was "
    "expected.",
    "end_gives_zero": "You gave row 2 nothing. The end cuts what comes after it; its own TD error "
    "stays.",
    "advantage_for_the_target": "You gave the advantage as the target. The critic should say how "
    "much is to come: add what it said.",
    "value_subtracted_from_the_target": "You subtracted V a second time. A target is the advantage "
    "plus V.",
    "one_step_target": "Your target is that of λ = 0. Asked for is λ = 0.5.",
    "target_without_the_critic": "Your target is that of λ = 1, the discounted sum of the rewards. "
    "Asked for is λ = 0.5.",
    "plain_sum_of_rewards": "You added up what was earned for the target. At λ = 0.5 the critic "
    "has a say, and later rewards are discounted.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="gae.td_errors",
        cases=TD_CASES,
        gives="same shape",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=TD_MISTAKES,
        hints=(
            "Before the step the critic expected one number. After it you have a reward, and what "
            "the critic expects from there on. Compare.",
            "What comes after a step is discounted once. Where `terminated` is True nothing comes "
            "after it.",
            "δ = r + γ·(1 − terminated)·V(s′) − V(s)",
        ),
    ),
    FunctionExercise(
        id="gae.compute_gae",
        cases=GAE_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=GAE_MISTAKES,
        hints=(
            "First all TD errors, as in exercise 1. Then one pass from the last row to the first: "
            "what follows a step is known before the step is looked at.",
            "Carry one number for each environment. At each row it is the TD error plus γλ times "
            "itself, unless the step was the last of its game, for whichever reason.",
            "Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1},  ended = terminated or truncated",
        ),
    ),
    FunctionExercise(
        id="gae.normalize_advantages",
        cases=NORMAL_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the advantages",
        mistakes=NORMAL_MISTAKES,
        hints=(
            "Two numbers describe the advantages that count: their mean and their deviation. What "
            "is left when you take out both?",
            "The variance is the mean of the squared distances from the mean; divide by how many "
            "count, not by one fewer. The deviation is its root. One sample has the deviation 0.",
            "(Â − μ) / (σ + 10⁻⁸),  σ² = Σ_counts (Â − μ)² / n",
        ),
    ),
    FunctionExercise(
        id="gae.value_loss_from_advantages",
        cases=CRITIC_CASES,
        gives="scalar",
        learns=("values",),
        mistakes=CRITIC_MISTAKES,
        hints=(
            "What should the critic have said in each state? It said V, and the advantage says by "
            "how much that was too little.",
            "The target is made of two things that were fixed when the rollout was scored. Then "
            "comes an ordinary regression: half of the mean squared error.",
            "½·mean( (V − (Â + V_old))² ),  Â + V_old constant",
        ),
    ),
    NumbersExercise(
        id="gae.nine_numbers",
        questions={
            "a": ("row 0 at λ = 0", "One TD error."),
            "b": ("row 0 at λ = 0.5", "Begin at row 2 and go backwards."),
            "c": ("row 0 at λ = 1", "What came, discounted, against what was expected."),
            "d": ("row 1 at λ = 0", "One TD error."),
            "e": ("row 1 at λ = 0.5", "Its TD error, and γλ times the advantage of row 2."),
            "f": ("row 1 at λ = 1", "What came, discounted, against what was expected."),
            "g": ("row 2 at λ = 0.5", "The game ends here. What can still follow?"),
            "h": ("row 3 at λ = 0.5", "The game goes on, unseen."),
            "i": ("the critic's target in row 0 at λ = 0.5", "What should the critic have said?"),
        },
        tolerance=0.001,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "Compute the four TD errors first. They do not depend on λ.",
            "Then go backwards from row 2. Each advantage is its TD error plus γλ times the "
            "advantage of the row below, within the same game.",
            "Â_t = δ_t + γλ·Â_{t+1},  target = Â_t + V(s_t)",
        ),
    ),
    FunctionExercise(
        id="gae.mended_gae",
        cases=GAE_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=GAE_MISTAKES,
        numbers_of="gae.compute_gae",
        starts_with="missing_parenthesis",
        hints=(
            "Call it at an end of the scale where you know what must come out: at λ = 0 each "
            "advantage is the TD error of its step.",
            "The TD errors are right, and so is where the sum stops. Which weight does a TD error "
            "get that comes at once, which one a step later?",
            "Â_t = Σ_l (γλ)ˡ·δ_{t+l}",
        ),
    ),
    FunctionExercise(
        id="gae.lambda_returns",
        cases=MIXTURE_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=MIXTURE_MISTAKES,
        hints=(
            "Either you form all n-step returns of a step and weigh them, or you look for a "
            "recursion: after one step the critic speaks with weight 1 − λ, else you wait on.",
            "No return is longer than the game, or than the rollout. The longest takes all the "
            "weight that is left, λⁿ⁻¹; in the recursion only the critic can speak there.",
            "R_t = r_t + γ·(1 − terminated_t)·[ (1 − λ)·V(s_{t+1}) + λ·R_{t+1} ]",
        ),
    ),
)
