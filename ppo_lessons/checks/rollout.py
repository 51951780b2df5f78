"""Lesson 07: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Mapping
from random import Random
from typing import Any

import torch

from ppo_lessons.checks.exercises import (
    EDGES,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
)
from ppo_lessons.checks.gae import (
    BOTH_BETWEEN,
    CUT_BETWEEN,
    GAE_CASES,
    GAE_MISTAKES,
    ONE,
    ONE_BOTH,
    ONE_TERMINATED,
    ONE_TRUNCATED,
    SIDE_BY_SIDE,
    TWO,
    TWO_GAMES,
    WIDE,
    column,
    draw,
    drawn_rollout,
    flags_at,
    scored,
)

ENDS, DISCOUNT, CARRY = "ends of episodes", "discount", "what the last rollout left"


# --- cases ---------------------------------------------------------------------------------


def blank_but(table: Any, *flags: Any) -> Any:
    """Keep a table where a flag is True and in the last row; 0 elsewhere."""
    last = len(table) - 1
    return [
        [
            number if t == last or any(each[t][n] for each in flags) else 0.0
            for n, number in enumerate(row)
        ]
        for t, row in enumerate(table)
    ]


def next_case(stage: str, name: str, rollout: Mapping[str, Any], **more: Any) -> Case:
    """One call with V of all rows, V of what was reached at ends and in the last row, and flags."""
    flags = rollout["terminated"], rollout["truncated"]
    inputs = {
        "values": rollout["values"],
        "final_values": blank_but(rollout["next_values"], *flags),
        "terminated": flags[0],
        "truncated": flags[1],
    }
    return Case(stage=stage, name=name, inputs=inputs, **more)


CUT_AT_THE_LAST = scored(column(1.0, 1.0), column(4.0, 6.0), column(0.0, 8.0), None, flags_at(2, 1))
NEXT_CASES = (
    next_case(SMALLEST, "one row, no end", ONE),
    next_case(SMALLEST, "two rows, no end", TWO),
    next_case(ENDS, "one row, truncated", ONE_TRUNCATED),
    next_case(ENDS, "one row, terminated", ONE_TERMINATED),
    next_case(ENDS, "the last row is truncated", CUT_AT_THE_LAST),
    next_case(ENDS, "an episode is truncated, then another one", CUT_BETWEEN),
    next_case(ENDS, "an episode is terminated, then another one", TWO_GAMES),
    next_case(ENDS, "terminated and truncated at once", BOTH_BETWEEN),
    next_case(EDGES, "two environments that end at other times", SIDE_BY_SIDE),
    next_case(EDGES, "more environments than steps", WIDE),
    next_case(SEEDED, "8 steps, 3 environments", drawn_rollout(21, 8, 3)),
    next_case(
        SEEDED, "float32, 6 steps, 4 environments", drawn_rollout(22, 6, 4), dtype=torch.float32
    ),
)


def returns_case(
    stage: str, name: str, rollout: Mapping[str, Any], gamma: float, **more: Any
) -> Case:
    """One call with rewards, flags, and V of the states that were reached."""
    inputs = {key: rollout[key] for key in ("rewards", "terminated", "truncated", "next_values")}
    return Case(stage=stage, name=name, inputs=inputs, options={"gamma": gamma}, **more)


RETURNS_CASES = (
    returns_case(SMALLEST, "one row, γ 1", ONE, 1.0),
    returns_case(DISCOUNT, "one row, γ 0.5", ONE, 0.5),
    returns_case(ENDS, "one row, terminated", ONE_TERMINATED, 0.5),
    returns_case(ENDS, "one row, truncated", ONE_TRUNCATED, 0.5),
    returns_case(ENDS, "both at once", ONE_BOTH, 0.5),
    returns_case(DISCOUNT, "two rows, no end, γ 1", TWO, 1.0),
    returns_case(DISCOUNT, "two rows, no end, γ 0.5", TWO, 0.5),
    returns_case(ENDS, "an episode is truncated, then another one", CUT_BETWEEN, 0.5),
    returns_case(ENDS, "an episode is terminated, then another one", TWO_GAMES, 0.5),
    returns_case(ENDS, "terminated and truncated at once", BOTH_BETWEEN, 0.5),
    returns_case(EDGES, "γ 0", CUT_BETWEEN, 0.0),
    returns_case(EDGES, "two environments that end at other times", SIDE_BY_SIDE, 0.5),
    returns_case(EDGES, "more environments than steps", WIDE, 0.9),
    returns_case(SEEDED, "9 steps, 3 environments", drawn_rollout(23, 9, 3), 0.9),
    returns_case(
        SEEDED,
        "float32, 12 steps, 2 environments",
        drawn_rollout(24, 12, 2, often=0.1),
        0.99,
        dtype=torch.float32,
    ),
)


def no_flags(table: Any) -> Any:
    """Flags of the same shape, all False."""
    return [[False] * len(row) for row in table]


def valid_case(
    stage: str, name: str, terminated: Any, truncated: Any, ended_before: list[bool]
) -> Case:
    """One call with flags [T, N], and whether the row before the rollout ended an episode, [N]."""
    inputs = {"terminated": terminated, "truncated": truncated, "ended_before": ended_before}
    return Case(stage=stage, name=name, inputs=inputs)


def resets_drawn(seed: int, num_steps: int, num_envs: int) -> tuple[Any, Any, list[bool]]:
    """Draw ends as NEXT_STEP environments have them: the row behind an end ends nothing."""
    random = Random(seed)
    before = [random.random() < 0.5 for _ in range(num_envs)]
    terminated, truncated, over = [], [], before
    for _ in range(num_steps):
        kinds = [None if end else random.choice("tu...") for end in over]
        terminated.append([kind == "t" for kind in kinds])
        truncated.append([kind == "u" for kind in kinds])
        over = [kind in ("t", "u") for kind in kinds]
    return terminated, truncated, before


NONE_OF_FIVE = flags_at(5)
VALID_CASES = (
    valid_case(SMALLEST, "one row, nothing before it", [[False]], [[False]], [False]),
    valid_case(SMALLEST, "one row that ends an episode", [[True]], [[False]], [False]),
    valid_case(SMALLEST, "two rows, the first is terminated", flags_at(2, 0), flags_at(2), [False]),
    valid_case(ENDS, "two rows, the first is truncated", flags_at(2), flags_at(2, 0), [False]),
    valid_case(ENDS, "five rows, one end", flags_at(5, 1), NONE_OF_FIVE, [False]),
    valid_case(ENDS, "five rows, two ends", flags_at(5, 0), flags_at(5, 3), [False]),
    valid_case(ENDS, "the last row ends", NONE_OF_FIVE, flags_at(5, 4), [False]),
    valid_case(CARRY, "an episode ended before the first row", flags_at(2), flags_at(2), [True]),
    valid_case(
        EDGES,
        "two environments",
        [[False, True], [False, False], [False, False]],
        [[False, False], [True, False], [False, False]],
        [True, False],
    ),
    valid_case(
        EDGES,
        "more environments than steps",
        [[False, True, False], [False, False, True]],
        [[False, False, False], [True, False, False]],
        [False, False, True],
    ),
    valid_case(EDGES, "no end at all", flags_at(4), flags_at(4), [False]),
    valid_case(SEEDED, "9 steps, 3 environments", *resets_drawn(25, 9, 3)),
    valid_case(SEEDED, "6 steps, 5 environments", *resets_drawn(26, 6, 5)),
)


def running_case(
    stage: str,
    name: str,
    rewards: Any,
    terminated: Any = None,
    truncated: Any = None,
    valid: Any = None,
    carried: list[float] | None = None,
    **more: Any,
) -> Case:
    """One call with a rollout [T, N] and the sums of the episodes under way, [N]."""
    inputs = {
        "rewards": rewards,
        "terminated": terminated or no_flags(rewards),
        "truncated": truncated or no_flags(rewards),
        "valid": valid or [[True] * len(row) for row in rewards],
        "carried": carried or [0.0] * len(rewards[0]),
    }
    return Case(stage=stage, name=name, inputs=inputs, **more)


def running_drawn(name: str, seed: int, num_steps: int, num_envs: int, **more: Any) -> Case:
    """One call with drawn numbers, from NEXT_STEP environments."""
    terminated, truncated, before = resets_drawn(seed, num_steps, num_envs)
    rows = [before] + [
        [a or b for a, b in zip(*row, strict=True)]
        for row in zip(terminated, truncated, strict=True)
    ]
    random = Random(seed + 100)
    return running_case(
        SEEDED,
        name,
        draw(random, num_steps, num_envs, low=-1, high=3),
        terminated,
        truncated,
        [[not end for end in row] for row in rows[:-1]],
        [0.0 if end else draw(random, low=1, high=9) for end in before],
        **more,
    )


JUNK = [[True], [True], [False], [True]]
RUNNING_CASES = (
    running_case(SMALLEST, "one row", [[3.0]]),
    running_case(SMALLEST, "three rows, no end", column(1.0, 2.0, 4.0)),
    running_case(CARRY, "an episode is under way", column(1.0, 2.0), carried=[10.0]),
    running_case(ENDS, "the last row is terminated", column(1.0, 2.0), flags_at(2, 1)),
    running_case(ENDS, "the last row is truncated", column(1.0, 2.0), None, flags_at(2, 1)),
    running_case(ENDS, "terminated, then another one", column(1.0, 2.0, 4.0), flags_at(3, 1)),
    running_case(ENDS, "truncated, then another one", column(1.0, 2.0, 4.0), None, flags_at(3, 1)),
    running_case(
        CARRY, "one under way ends", column(1.0, 2.0, 4.0), flags_at(3, 1), carried=[10.0]
    ),
    running_case(
        EDGES,
        "a row that is no step",
        column(1.0, 2.0, 50.0, 4.0),
        flags_at(4, 1),
        None,
        JUNK,
        [10.0],
    ),
    running_case(
        EDGES,
        "the first row is no step",
        column(50.0, 2.0),
        None,
        None,
        [[False], [True]],
    ),
    running_case(
        EDGES,
        "two environments",
        [[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]],
        [[False, True], [False, False], [False, False]],
        [[False, False], [True, False], [False, False]],
        carried=[100.0, 200.0],
    ),
    running_case(
        EDGES,
        "more environments than steps",
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        [[True, False, False], [False, False, True]],
        carried=[7.0, -8.0, 9.0],
    ),
    running_drawn("9 steps, 3 environments", 27, 9, 3),
    running_drawn("float32, 7 steps, 4 environments", 28, 7, 4, dtype=torch.float32),
)

# --- mistakes in words ---------------------------------------------------------------------

NEXT_MISTAKES = {
    "next_row_everywhere": "It takes V of the next row everywhere. Behind an end that row is the "
    "start of another episode, which this step did not reach.",
    "terminated_only": "It looks at `terminated` alone. Behind a truncated row, too, the next row "
    "is another episode.",
    "truncated_only": "It looks at `truncated` alone. Behind a terminated row, too, the next row "
    "is another episode.",
    "nothing_behind_the_last_row": "Behind the last row it puts 0. The rollout ends there, the "
    "episode does not.",
    "last_row_repeated": "Behind the last row it puts V of that row itself. Its step led on, to a "
    "state that final_values has.",
    "last_row_wraps_around": "Behind the last row it puts V of the first row. Time is no circle.",
    "final_values_everywhere": "It gives final_values in all rows. Where the next row goes on with "
    "the same episode nobody asked the critic twice: there stands a 0.",
    "terminated_counts_zero": "It puts 0 behind a terminated row. The table says what the critic "
    "thinks of each state; whether it counts is decided later, by the mask in the TD error.",
    "ended_counts_zero": "It puts 0 behind each end. A truncation hides the future, and "
    "final_values says what it is worth.",
    "own_value_at_an_end": "At an end it puts V of the row itself: of the state before the step, "
    "not of the one that was reached.",
    "final_value_one_row_late": "It puts the final value into the row behind the end. The flag and "
    "the final value belong to the row whose step ended the episode.",
    "values_of_the_row": "It gives V of the row itself. Asked for is V of the state that the step "
    "reached.",
    "row_before": "It gives V of the row before. The step leads to the row behind.",
    "environments_end_together": "The end of one environment is taken for the end of all. Each "
    "column has its own flags.",
    "added_up": "At an end it adds the two values. One of them belongs to another episode.",
}
RETURNS_MISTAKES = {
    "returns_end_at_truncation": "Behind a truncation it counts nothing. The episode goes on, "
    "unseen, and next_values says what that is worth.",
    "returns_run_through_truncation": "Its sum runs on behind a truncation. The next row belongs "
    "to another episode.",
    "returns_end_at_the_last_row": "Behind the last row it counts nothing. The rollout ends there, "
    "the episode does not.",
    "one_step_targets": "It lets V stand for the rest after every step. Here all rewards that were "
    "seen count, and V speaks only where the seeing stops.",
    "returns_run_through_every_end": "Its sum runs through all ends. Behind each of them another "
    "episode begins.",
    "value_counted_behind_the_end": "It counts V behind a final state. Where the task is over "
    "nothing comes.",
    "truncation_wins_over_termination": "Where a step is both, it counts V. The task is over, "
    "whoever watches.",
    "value_at_every_step": "It adds V at every step, and the rewards that follow on top. The "
    "future is counted again and again.",
    "value_not_discounted": "V of the state that was reached lies one step ahead of the reward. It "
    "counts γ.",
    "gamma_left_out": "Nothing is discounted. What comes k steps later counts γᵏ.",
    "flags_late_by_one": "It reads the flags of the row before. A flag at t says that the step at "
    "t was the last of its episode.",
    "value_and_next_row": "At a truncation it counts V and the next row as well. One of the two "
    "belongs to another episode.",
    "last_row_never_ends": "In the last row it does not look at the flag. If that step terminated, "
    "nothing comes.",
    "environments_end_together": "The end of one environment is taken for the end of all. Each "
    "column has its own flags.",
}
VALID_MISTAKES = {
    "row_of_the_end_left_out": "It leaves out the row that ended the episode. That was a step, "
    "with an action and a reward. The row behind it is none.",
    "row_before_the_end": "It leaves out the row before the end. In NEXT_STEP the reset comes "
    "after it.",
    "two_rows_late": "It leaves out the second row behind an end. The reset comes at once.",
    "first_row_always_valid": "It takes the first row for a step, always. If the row before the "
    "rollout ended an episode, the first row is the reset.",
    "first_row_never_valid": "It takes the first row for no step. It is none only if the row "
    "before the rollout ended an episode.",
    "last_row_wraps_around": "Whether the first row is a step it reads from the last row. What was "
    "before the rollout stands in ended_before.",
    "terminated_only": "It looks at `terminated` alone. A truncated episode is reset as well.",
    "truncated_only": "It looks at `truncated` alone. A terminated episode is reset as well.",
    "both_at_once_only": "It looks for rows that are terminated *and* truncated. One of the two is "
    "enough.",
    "turned": "True and False are swapped: True says that the row was a step.",
    "valid_until_the_first_end": "Behind the first end it takes nothing for a step any more. The "
    "next episode begins one row later.",
    "environments_end_together": "The end of one environment makes the row behind it invalid for "
    "all. Each column has its own flags.",
    "before_counts_for_all_rows": "What was before the rollout concerns the first row only.",
    "all_valid": "It takes all rows for steps. The row behind an end is none.",
    "rows_dropped": "It gives another number of rows. Asked for is a flag for each row of the "
    "rollout, [T, N].",
}
RUNNING_MISTAKES = {
    "carry_ignored": "It begins with 0. An episode that is under way has earned something before: "
    "`carried`.",
    "carry_in_every_episode": "It adds `carried` to all episodes. Only the one that was under way "
    "at the first row has earned it.",
    "carry_in_every_row": "It adds `carried` again in each row.",
    "carry_not_reset": "What it hands over still holds the sum of an episode that has ended. The "
    "next rollout would count it twice.",
    "carry_given_back": "It hands over what it was given. The next rollout needs the sum as it is "
    "after the last row.",
    "not_reset_at_an_end": "The sum runs on into the next episode.",
    "reset_a_row_early": "The sum is set to 0 before the last reward of the episode has been "
    "added. That row shows what the whole episode has earned.",
    "reset_a_row_late": "The first reward of the next episode is still added to the old sum.",
    "terminated_only": "It resets where `terminated` is True, and nowhere else. A truncated "
    "episode is over for the counter as well.",
    "truncated_only": "It resets where `truncated` is True, and nowhere else.",
    "rows_of_the_reset_counted": "A row that is not valid is no step. Its reward must not count, "
    "whatever it is.",
    "only_at_ends": "It writes the sum only where an episode ends. Each row shows what has been "
    "earned up to and including it.",
    "zero_at_ends": "The row of an end shows 0. It must show what the whole episode has earned; "
    "the reset comes after it.",
    "only_the_carry": "It gives the rewards as they came. Each row shows a sum.",
    "environments_added_up": "It adds up over the environments. Each column is a world of its own.",
    "environments_end_together": "The end of one environment resets all of them. Each column has "
    "its own flags.",
    "results_swapped": "It gives the carry first. Asked for are the table, then the carry.",
    "own_reward_left_out": "Each row shows the sum before its own reward.",
}
NUMBER_MISTAKES = {
    "flags_merged": "You took the truncation for the end of the task. Behind row 1 the future "
    "exists: the critic says what it is worth.",
    "truncated_ignored": "Your sum runs on behind row 1. Row 2 belongs to another episode.",
    "truncated_ignored_after_the_reset": "You did not look at the truncation: value and sum both "
    "come from row 2, which belongs to another episode.",
    "next_value_after_the_reset": "Behind row 1 you took V of row 2. That is the start of another "
    "episode; the table says which V the step reached.",
    "nothing_behind_the_last_row": "Behind row 4 you counted nothing. The rollout ends there, the "
    "episode does not.",
    "value_counted_behind_the_end": "You counted a future behind the terminated row.",
    "terminated_row_runs_on": "Your sum runs on behind the terminated row. The next one belongs to "
    "another episode.",
    "trace_not_reset": "Your sum runs through both ends.",
    "masks_swapped": "You swapped the two jobs: you cut the bootstrap at the truncation and kept "
    "it at the termination.",
    "flags_late_by_one": "You let each flag act one row late. A flag says that the step of its own "
    "row was the last.",
    "missing_parenthesis": "You weighted a TD error l steps later by γ·λˡ. It counts (γλ)ˡ.",
    "lambda_left_out": "You carried the sum on with γ alone. A step later counts γλ.",
    "gamma_left_out": "You left γ out. It stands in the TD error and in the trace.",
    "td_errors_alone": "You gave the TD errors. What follows in the same episode counts too.",
    "all_rows_valid": "You counted the rows of the reset. They are no steps.",
    "unfinished_episode_reset": "You left out a row for the last episode, too. It has not ended "
    "yet, so it has not been reset.",
    "ends_left_out": "You left out the rows that end an episode. They are steps; the rows behind "
    "them are none.",
    "limit_taken_for_the_end": "You added up what can be seen until the limit. The lamp burns on.",
    "tonight_forgotten": "You left out tonight. The lamp pays at once, too.",
    "merged_as_a_sum": "You added up five nights. A critic that sees no clock gives all nights one "
    "value: one in five is followed by nothing.",
    "merged_as_a_mean": "You averaged over what is left at each night. That is what λ = 1 would "
    "give; at λ = 0 the value stands on itself.",
    "merged_off_by_one": "You took one night in six for the last. Five nights are seen, and one of "
    "them is the last.",
    "merged_without_effect": "You gave the truth. With merged flags one night in five is followed "
    "by nothing.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="rollout.next_values",
        cases=NEXT_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the values, [T, N]",
        mistakes=NEXT_MISTAKES,
        hints=(
            "Where is the state that a step reached? In the next row, most of the time. When is "
            "it not there?",
            "Shift the values up by one row. Then find all rows for which that is wrong: those "
            "that ended, for whichever reason, and the last one.",
            "V(s_{t+1}) = values_{t+1}, or final_values_t if ended_t or t = T − 1",
        ),
    ),
    FunctionExercise(
        id="rollout.bootstrapped_returns",
        cases=RETURNS_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=RETURNS_MISTAKES,
        hints=(
            "Backwards, as for rewards-to-go. What changes is what may stand for the future of a "
            "row: nothing, V, or the return of the next row.",
            "Ask of each row, in this order: is the task over? If not, does the next row go on "
            "with the same episode? If not, the critic speaks.",
            "G_t = r_t + γ·(0 if terminated_t, V(s_{t+1}) if truncated_t or t = T − 1, else "
            "G_{t+1})",
        ),
    ),
    FunctionExercise(
        id="rollout.valid_rows",
        cases=VALID_CASES,
        gives="tensor",
        returns="a torch.Tensor of booleans, [T, N]",
        kind="yes or no",
        mistakes=VALID_MISTAKES,
        hints=(
            "In NEXT_STEP the call after an end does nothing but reset. Which row of the rollout "
            "does this call fill?",
            "A row is a step unless the row before it ended an episode. For the first row that "
            "row lies in the rollout before.",
            "valid_t = ¬ended_{t−1}, where ended_{−1} = ended_before",
        ),
    ),
    NumbersExercise(
        id="rollout.ends_by_hand",
        questions={
            "a": ("the advantage of row 0", "Its TD error, and γλ times the advantage of row 1."),
            "b": ("the advantage of row 1", "Is its future counted? Does the sum go on?"),
            "c": ("the advantage of row 2", "A new episode. Begin at its end."),
            "d": ("the advantage of row 3", "Is its future counted? Does the sum go on?"),
            "e": ("the advantage of row 4", "No flag stands here. What comes behind the row?"),
            "f": ("the valid rows", "Write the rows down: four steps, a reset, four steps, …"),
            "g": ("the lamp, as it is", "What is a night worth that is followed by one like it?"),
            "h": (
                "the lamp with merged flags",
                "Write V as tonight's 1, and γ times V as often as another night follows.",
            ),
        },
        tolerance=0.001,
        mistakes=NUMBER_MISTAKES,
        hints=(
            "For the table compute the five TD errors first; `terminated` alone decides what they "
            "count. Then go backwards, and start anew behind each end.",
            "For the rows: how many does one episode take with its reset? For the lamp: V stands "
            "on both sides of the equation.",
            "δ_t = r_t + γ·(1 − terminated_t)·V′_t − V_t,  Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1};  "
            "V = 1 + γ·p·V",
        ),
    ),
    FunctionExercise(
        id="rollout.mended_ends",
        cases=GAE_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of the rewards, [T, N]",
        mistakes=GAE_MISTAKES,
        starts_with="truncated_ignored",
        hints=(
            "Ask the three questions of the lesson. Change the rewards behind a reset: does an "
            "advantage before it move?",
            "There are two masks, for two jobs. Which one belongs where?",
            "Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1},  ended = terminated or truncated",
        ),
    ),
    FunctionExercise(
        id="rollout.episode_returns",
        cases=RUNNING_CASES,
        gives="several",
        parts=("episode_returns", "carry"),
        returns="two tensors: the running sums, [T, N], and what is carried on, [N]",
        mistakes=RUNNING_MISTAKES,
        hints=(
            "Here time runs forwards: the sum of a row is that of the row before, plus its reward.",
            "For each row three things, in this order: add what was earned, if the row is a step; "
            "write the sum down; set it to 0 if the episode has ended.",
            "S_t = C_t + valid_t·r_t,  C_{t+1} = (1 − ended_t)·S_t,  C_0 = carried",
        ),
    ),
)
