"""Lesson 12: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Sequence
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
    draw,
)

STRETCHES, SIDES, NEVER = "stretches", "both sides", "no alarm"
MASKS, STILL = "rows that are no steps", "nothing moved"
ENDS, EPOCHS = "ends", "several epochs"
Row = list[float]


# --- the first alarm -----------------------------------------------------------------------


def alarm_case(
    stage: str, name: str, metric: Row, healthy: list[Row], patience: int, **more: Any
) -> Case:
    """One run beside healthy ones."""
    inputs = {"metric": metric, "healthy": healthy}
    return Case(stage=stage, name=name, inputs=inputs, options={"patience": patience}, **more)


def alarm_drawn(random: Random, iterations: int, seeds: int, patience: int) -> dict[str, Any]:
    """Draw healthy runs, and one that leaves their band now and then, and at last for good."""
    middle = draw(random, iterations, low=-1.0, high=1.0)
    healthy = [
        [round(each + random.uniform(-0.4, 0.4), 3) for each in middle] for _ in range(seeds)
    ]
    columns = list(zip(*healthy, strict=True))
    leaves_at = random.randint(patience, iterations)
    metric = []
    for t, column in enumerate(columns):
        low, high = min(column), max(column)
        out = t >= leaves_at or (random.random() < 0.35 and t % patience != 0)
        side = random.choice([low - 0.3, high + 0.3]) if out else (low + high) / 2
        metric.append(round(side + random.uniform(-0.02, 0.02), 3))
    return {"metric": metric, "healthy": healthy}


def seeded_alarm(seed: int, iterations: int, seeds: int, patience: int, **more: Any) -> Case:
    """A drawn run."""
    made = alarm_drawn(Random(seed), iterations, seeds, patience)
    name = f"{iterations} iterations, {seeds} healthy seeds"
    return alarm_case(SEEDED, name, made["metric"], made["healthy"], patience, **more)


FLAT = [[0.0] * 6, [1.0] * 6]
RISING = [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.5, 3.0, 4.5, 5.0, 6.5], [0.5, 1.5, 3.5, 4, 6, 6]]
ALARM_CASES = (
    alarm_case(SMALLEST, "outside from the second on", [0.5, 2, 2], [[0, 0, 0], [1, 1, 1]], 1),
    alarm_case(SMALLEST, "never outside", [0.5, 0.2, 0.9], [[0, 0, 0], [1, 1, 1]], 1),
    alarm_case(STRETCHES, "one peak, later a stretch", [0.5, 3, 0.5, 3, 3, 3], FLAT, 2),
    alarm_case(STRETCHES, "three single peaks", [3, 0.5, 3, 0.5, 3, 0.5], FLAT, 2),
    alarm_case(STRETCHES, "a stretch that is too short", [0.5, 3, 3, 0.5, 3, 3], FLAT, 3),
    alarm_case(STRETCHES, "a stretch at the end", [0.5, 0.5, 0.5, 3, 3, 3], FLAT, 3),
    alarm_case(STRETCHES, "a stretch from the start", [3, 3, 3, 3, 0.5, 3], FLAT, 4),
    alarm_case(SIDES, "below", [-1, -1, 0.5, -1, -1, -1], FLAT, 3),
    alarm_case(SIDES, "above", [0.5, 2, 2, 2, 0.5, 0.5], FLAT, 3),
    alarm_case(SIDES, "below, then above", [0.5, -1, 2, -1, 0.5, 0.5], FLAT, 3),
    alarm_case(SIDES, "it stays low while the others rise", [0.5, 0.9, 1, 1, 1, 1], RISING, 2),
    alarm_case(SIDES, "between the seeds", [0.7, 1.2, 2.2, 3.1, 4.2, 6.2], RISING, 1),
    alarm_case(EDGES, "on the edge", [1, 1, 0, 0, 1, 0], FLAT, 1),
    alarm_case(EDGES, "a little beyond it", [1, 1.01, -0.01, 0, 1, 0], FLAT, 2),
    alarm_case(EDGES, "one healthy run", [2, 2, 3, 2, 2], [[2, 2, 2, 2, 2]], 1),
    alarm_case(
        EDGES,
        "one healthy run far from the others",
        [2.0, 2.0, 2.0, 0.5],
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [3, 3, 3, 1]],
        2,
    ),
    alarm_case(NEVER, "longer patience than the run", [3, 3], [[0, 0], [1, 1]], 3),
    alarm_case(NEVER, "at the first iteration", [3, 3, 0.5], [[0, 0, 0], [1, 1, 1]], 2),
    alarm_case(NEVER, "it comes back each time", [3, 3, 0.5, 3, 3, 0.5], FLAT, 3),
    seeded_alarm(1, 12, 4, 3),
    seeded_alarm(2, 20, 5, 4),
    seeded_alarm(3, 16, 3, 2, dtype=torch.float32),
)

# --- agreement -----------------------------------------------------------------------------


def agreement_case(
    stage: str, name: str, new: Row, old: Row, advantages: Row, valid: str = "", **more: Any
) -> Case:
    """One batch after an update; `valid` has a 1 for each row that is a step, 0 for the others."""
    flags = [each == "1" for each in valid or "1" * len(new)]
    rows = {"log_probs": new, "log_probs_old": old, "advantages": advantages, "valid": flags}
    return Case(stage=stage, name=name, inputs=rows, **more)


def batch_drawn(random: Random, rows: int) -> dict[str, Row]:
    """Draw a batch whose policy has moved about as it was asked to."""
    old = draw(random, rows, low=-2.5, high=-0.3)
    advantages = draw(random, rows)
    moves = [0.15 * each + random.uniform(-0.2, 0.2) for each in advantages]
    new = [round(min(a + b, -0.01), 3) for a, b in zip(old, moves, strict=True)]
    return {"log_probs": new, "log_probs_old": old, "advantages": advantages}


def seeded_agreement(seed: int, rows: int, share: float, **more: Any) -> Case:
    """A drawn batch, a share of whose rows are steps."""
    random = Random(seed)
    made = batch_drawn(random, rows)
    valid = "".join("1" if random.random() < share else "0" for _ in range(rows))
    new, old, advantages = made.values()
    return agreement_case(SEEDED, f"{rows} rows", new, old, advantages, valid, **more)


AGREEMENT_CASES = (
    agreement_case(SMALLEST, "both as asked", [-0.5, -1.0], [-0.7, -0.8], [1.0, -1.0]),
    agreement_case(SMALLEST, "both against it", [-0.7, -0.8], [-0.5, -1.0], [1.0, -1.0]),
    agreement_case(
        SMALLEST, "three rows", [-0.5, -1.0, -1.5], [-0.8, -1.1, -1.1], [2.0, -0.5, -1.0]
    ),
    agreement_case(
        EDGES, "all rose, the good ones more", [-0.5, -0.9, -1.0], [-1.5, -1.3, -1.3], [2, 0.3, 0.5]
    ),
    agreement_case(
        EDGES,
        "far moves",
        [-0.1, -3.0, -2.0, -0.4],
        [-2.0, -1.0, -1.9, -0.6],
        [3.0, -1.0, 0.2, 0.1],
    ),
    agreement_case(
        EDGES, "rare actions", [-4.0, -6.0, -0.1, -5.0], [-5.0, -5.5, -0.2, -5.2], [1.0, -2, -1, 3]
    ),
    agreement_case(
        EDGES, "no agreement", [-0.9, -1.1, -0.9, -1.1], [-1.0, -1.0, -1.0, -1.0], [1, 1, -1, -1]
    ),
    agreement_case(
        MASKS, "one row is no step", [-0.5, -1.0, -9.0], [-0.7, -0.8, -1.0], [1, -1.5, 40], "110"
    ),
    agreement_case(
        MASKS,
        "two of five",
        [-0.5, -2.0, -1.2, -1.6, -0.3],
        [-0.7, -0.8, -1.0, -1.9, -0.9],
        [1.0, 7.0, -0.5, 2.5, -8.0],
        "10110",
    ),
    agreement_case(STILL, "the policy did not move", [-0.5, -1.0], [-0.5, -1.0], [1.0, -1.0]),
    agreement_case(STILL, "all advantages are alike", [-0.5, -1.0], [-0.7, -0.8], [0.5, 0.5]),
    agreement_case(STILL, "one row alone", [-0.5, -1.0], [-0.75, -0.5], [0.5, 2.0], "10"),
    seeded_agreement(1, 12, 1.0),
    seeded_agreement(2, 20, 0.6),
    seeded_agreement(3, 30, 0.8, dtype=torch.float32),
)

# --- an iteration with a bug ---------------------------------------------------------------


def iteration_case(
    stage: str,
    name: str,
    logits: list[Row],
    critic: Row,
    steps: Sequence[tuple[int, int, int, float, str]],
    num_epochs: int,
    *,
    gamma: float = 0.9,
    gae_lambda: float = 0.8,
    epsilon: float = 0.2,
    learning_rate: float = 0.5,
    **more: Any,
) -> Case:
    """One iteration; a step is (state, action, state reached, reward, how it ended)."""
    states, actions, reached, rewards, ends = map(list, zip(*steps, strict=True))
    inputs = {
        "logits": logits,
        "critic": critic,
        "states": states,
        "next_states": reached,
        "actions": actions,
        "rewards": rewards,
        "terminated": [end == "terminated" for end in ends],
        "truncated": [end == "truncated" for end in ends],
    }
    options = {
        "gamma": gamma,
        "gae_lambda": gae_lambda,
        "clip_epsilon": epsilon,
        "num_epochs": num_epochs,
        "learning_rate": learning_rate,
    }
    integers = ("states", "next_states", "actions")
    return Case(stage=stage, name=name, inputs=inputs, options=options, integers=integers, **more)


def steps_drawn(random: Random, count: int) -> list[tuple[int, int, int, float, str]]:
    """Draw steps of a chain of three states."""
    steps, state = [], 0
    for _ in range(count):
        reached, end = (state + 1) % 3, random.choice(["", "", "terminated", "truncated"])
        reward = round(random.uniform(-1, 3), 2)
        steps.append((state, random.randrange(2), reached, reward, end))
        state = 0 if end else reached
    return steps


def seeded_iteration(seed: int, count: int, num_epochs: int, **more: Any) -> Case:
    """Drawn steps and tables."""
    random = Random(seed)
    logits, critic = draw(random, 3, 2, low=-0.5, high=0.5), draw(random, 3)
    name = f"{count} steps, {num_epochs} epochs"
    steps = steps_drawn(random, count)
    return iteration_case(SEEDED, name, logits, critic, steps, num_epochs, **more)


ONE, TWO = [[0.0, 0.0]], [[0.0, 0.0], [0.2, -0.3]]
PAIR = [(0, 0, 0, 1.0, "terminated"), (0, 1, 0, -1.0, "terminated")]
LINE = [(0, 0, 1, 0.0, ""), (1, 1, 0, 2.0, "terminated"), (0, 1, 1, 0.5, ""), (1, 0, 0, 1.0, "")]
LIMIT = [(0, 0, 1, 1.0, ""), (1, 1, 1, 1.0, "truncated"), (0, 1, 1, 1.0, ""), (1, 1, 1, 2.0, "")]
ITERATION_CASES = (
    iteration_case(SMALLEST, "one epoch, one state", ONE, [0.5], PAIR, 1),
    iteration_case(SMALLEST, "one epoch, two states", TWO, [1.0, 0.5], LINE, 1),
    iteration_case(ENDS, "a time limit", TWO, [3.0, 4.0], LIMIT, 1),
    iteration_case(ENDS, "a time limit, long traces", TWO, [3.0, 4.0], LIMIT, 1, gae_lambda=1.0),
    iteration_case(ENDS, "a task that ended", TWO, [1.0, 2.0], LINE, 1, gae_lambda=0.3),
    iteration_case(EPOCHS, "two epochs, one state", ONE, [0.5], PAIR, 2),
    iteration_case(EPOCHS, "five epochs, one state", ONE, [0.5], PAIR, 5),
    iteration_case(EPOCHS, "four epochs, two states", TWO, [1.0, 0.5], LINE, 4),
    iteration_case(EPOCHS, "four epochs, a time limit", TWO, [3.0, 4.0], LIMIT, 4),
    iteration_case(EDGES, "small steps", TWO, [0.0, 0.0], LINE, 6, epsilon=0.1, learning_rate=0.1),
    iteration_case(EDGES, "a wide clip", TWO, [0.5, -0.5], LIMIT, 3, epsilon=0.9),
    iteration_case(EDGES, "no discount", TWO, [0.5, -0.5], LINE, 3, gamma=1.0),
    seeded_iteration(1, 8, 3),
    seeded_iteration(2, 10, 5, learning_rate=0.8),
    seeded_iteration(3, 9, 4, dtype=torch.float32),
)

# --- mistakes in words ---------------------------------------------------------------------

VALUE_MISTAKES = {
    "own_reward_discounted": "You discounted the reward of the step itself. V counts it whole; "
    "what follows is discounted once for each step between.",
    "not_discounted": "You added the rewards as they are. What comes a step later counts half.",
    "next_reward_only": "You looked one step ahead and stopped. The episode has one step more.",
    "limit_is_the_end": "You stopped counting at the limit. It ends your watching and not the "
    "world: V counts all that would have come.",
    "rewards_counted": "You counted the steps up to the limit. V is discounted, and goes on behind "
    "the limit.",
    "last_night_only": "You took the step before the limit for all of them. The critic cannot tell "
    "them apart, so one number stands for all.",
    "averaged_over_the_clock": "You averaged what is left until the limit. A critic with λ = 0 "
    "does not see that: it asks for a number that is right for itself.",
    "one_more_step": "You took the limit for one step longer than it is.",
    "still_discounted": "You discounted. This program has forgotten γ.",
    "first_row_earns_nothing": "You gave the first row of an episode no reward. The rows stand in "
    "one long list: it gets the reward of the row before, from the last episode.",
    "moved_the_other_way": "You moved the rewards the other way. Each row gets what the row before "
    "it earned.",
    "likeliest_action_alone": "You took the likelier action for certain. The policy draws, and "
    "sometimes draws the other.",
    "bad_action_counts_nothing": "You let the other action earn nothing. It costs 1.",
    "mean_of_the_rewards": "You averaged the rewards. What is averaged are the targets, the "
    "discounted returns of all three observations.",
    "value_of_the_start": "You gave the value of the first observation. All three have one value "
    "here, the one with the least squared error.",
}
ALARM_MISTAKES = {
    "one_is_enough": "It sounds at the first iteration outside. Wait until as many in a row are "
    "outside as patience says.",
    "low_side_only": "It looks for numbers that are too low. Too high is outside, too.",
    "high_side_only": "It looks for numbers that are too high. Too low is outside, too.",
    "edges_of_the_whole_run": "The band has the same edges all along. What is healthy in a late "
    "iteration may be sick in an early one: take the seeds at each iteration.",
    "two_deviations": "The band is mean plus and minus two deviations. Asked for is the range from "
    "the lowest healthy seed to the highest.",
    "distance_from_the_mean": "Whatever differs from the mean of the healthy seeds is outside. "
    "They differ from it themselves.",
    "first_seed_only": "It looks at one healthy seed. The band is that of all of them.",
    "not_in_a_row": "It counts iterations outside wherever they are. Only those in one stretch "
    "count; one inside starts the count anew.",
    "end_of_the_stretch": "It gives the iteration at which the stretch is long enough. Asked for "
    "is where that stretch began.",
    "one_iteration_fewer": "It sounds one iteration too soon. A stretch holds as many as patience "
    "says.",
    "one_iteration_more": "It waits for one iteration more than patience says.",
    "edge_counts_as_outside": "A number equal to a healthy one counts as outside. On the edge is "
    "inside.",
    "counted_from_one": "It counts iterations from one. The first has the index 0.",
    "zero_for_never": "Where there is no alarm it gives 0, which is the first iteration. Give −1.",
    "length_for_never": "Where there is no alarm it gives the length of the run. Give −1.",
    "inside_for_outside": "It sounds while the run is inside the band.",
}
AGREEMENT_MISTAKES = {
    "old_minus_new": "The sign is turned: a policy that does as it was asked gets −1. The move is "
    "new minus old.",
    "not_divided": "It has the size of the moves and of the advantages in it. Divide by both "
    "spreads.",
    "not_centred": "The means are not taken away. If all drawn actions become likelier alike, none "
    "has been told from another.",
    "slope_for_correlation": "It divides by the variance of the advantages: that is a slope, and "
    "grows with the learning rate. Divide by both spreads.",
    "ratios_compared": "It compares ratios. Asked for are their logarithms, in which twice as "
    "likely and half as likely lie equally far from 0.",
    "probabilities_compared": "It compares changes of probabilities. For a rare action these are "
    "tiny, however far its log-probability moved.",
    "new_policy_alone": "It compares advantages with the new log-probabilities. What counts is how "
    "far they moved from the old ones.",
    "valid_ignored": "Rows that are no steps count. Leave them out, of the means and spreads, too.",
    "mask_turned": "It keeps the rows that are no steps, and leaves out the others.",
    "rows_zeroed": "Rows that are no steps are set to 0, and still counted in means and spreads.",
    "nan_when_still": "Where one of the two does not vary it divides 0 by 0. Give 0 there.",
    "one_when_still": "Where one of the two does not vary it gives 1. A policy that stands still "
    "agrees with nothing: give 0.",
    "share_of_equal_signs": "It counts equal signs. How far each moved is to count, too.",
    "squared": "It is squared, so that doing the opposite looks like doing well.",
    "absolute_value": "The sign is lost, so that doing the opposite looks like doing well.",
    "ranks_compared": "It compares ranks. Asked for is the correlation of the numbers themselves.",
    "two_kinds_of_spread": "The one mean divides by the number of rows, the spreads by one less. "
    "Use the same for both.",
}
DIAGNOSIS_MISTAKES = {
    "return_looked_at_alone": "The return rises, yes. Now look at the value loss: half a squared "
    "error, while returns are in the tens. Whose unit is that?",
    "critic_that_learns_called_untrained": "A critic that is not trained explains nothing. This "
    "one explains its own targets well. What is wrong is the size of its loss.",
    "both_networks_called_still": "The policy stands still, yes. Does the critic, too? Look at its "
    "loss and at ev_lambda.",
    "policy_called_still_alone": "The policy stands still, yes. The critic as well: its loss stays "
    "where it was, and ev_lambda is 0.",
    "mean_taken_for_nothing": "It explains nothing, yes. But its loss is not that of a critic that "
    "says 0: it follows the mean, and gradients are larger than a policy's alone.",
    "nothing_taken_for_the_mean": "It explains nothing, yes. But the gradient is as small as that "
    "of a policy alone: nothing comes from a critic.",
    "units_of_the_loss_mistaken": "There the value loss would stay near one half. Here it is that "
    "of a critic that says next to 0.",
    "healthy_run_accused": "A step that is too long shows in kl_k3 at every iteration, and the "
    "return falls again. Here it does not.",
    "healthy_critic_accused": "ev_lambda near 0 is no illness where all returns are alike. Look at "
    "the value loss beside it, and at the iterations before.",
    "floor_of_the_entropy_missed": "The entropy stands still far above 0, and so does the return. "
    "What is the least entropy that this policy can have?",
    "critic_accused_of_the_entropy": "There the value loss would stay near one half. Look at the "
    "entropy: it stops falling, and the return stops rising.",
    "certainty_taken_for_long_steps": "With steps that are too long kl_k3 is large. Here it is "
    "small, and the policy goes steadily where it should not go.",
    "clip_accused": "Without an end to the push most ratios are outside. Here few are; but look "
    "what share of those is silent.",
}
ITERATION_MISTAKES = {
    "target_follows_the_critic": "The critic's target runs away from it by each step that it "
    "makes: its error never shrinks. A target is written down once, before the first epoch.",
    "returns_from_normalized_advantages": "The target holds normalised advantages. A return has "
    "the unit of the rewards: use the advantages as they were.",
    "advantages_for_returns": "The target is the advantage alone. What the critic had said must be "
    "added back.",
    "rewards_for_returns": "The target is the reward of the step alone. The future is missing.",
    "advantages_not_normalized": "The policy learns from advantages as they are. In the given "
    "lines they were normalised, and that was right.",
    "neither_normalized_nor_mended": "The two kinds of advantages are exchanged: the policy gets "
    "those as they are, the target the normalised ones.",
    "flags_merged": "A time limit cuts the bootstrap. In the given lines that was right: only "
    "`terminated` does.",
    "truncated_ignored": "The sum runs through a time limit. In the given lines that was right: "
    "both flags cut it.",
    "no_bootstrap_at_the_cut": "Nothing counts behind the last row. In the given lines that was "
    "right.",
    "old_policy_renewed": "The old log-probabilities are renewed, so all ratios are 1. In the "
    "given lines they stayed as they were.",
    "climbs_down": "The sign of the policy's loss is turned. It was right in the given lines.",
    "whole_square": "The value loss is the whole square. The half was right in the given lines.",
    "minimum_forgotten": "The minimum is gone. It was right in the given lines.",
    "clip_forgotten": "The clip is gone. It was right in the given lines.",
    "sample_deviation": "The deviation divides by one row less. It was right in the given lines.",
    "scored_anew_each_epoch": "Advantages are computed anew in each epoch. That is a variant of "
    "its own; here they are computed once, and one line alone is wrong.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    NumbersExercise(
        id="debugging.probe_values",
        questions={
            "a": ("V at observation 1", "Its own reward, and half of what comes a step later."),
            "b": ("V at observation 0", "Its own reward, and half of V at observation 1."),
            "c": ("V in the room", "V = 1 + γ·V: the world goes on behind the limit."),
            "d": (
                "V in the room with the flags merged",
                "At three of four steps V = 1 + γ·V, at the fourth V = 1. One number must do.",
            ),
            "e": ("V at observation 0 without a discount", "Add up what the episode pays."),
            "f": (
                "V at observation 0 with late rewards",
                "Write the rewards of two episodes in one list, and move it down by a row.",
            ),
            "g": ("V of a policy that is right in 80 %", "A mean over both actions."),
            "h": (
                "V everywhere if the loss compares all with all",
                "The one number nearest to the targets of all three observations.",
            ),
        },
        tolerance=0.002,
        mistakes=VALUE_MISTAKES,
        hints=(
            "Begin at the end of the episode. The last observation is worth its own reward.",
            "For d, write an equation for V whose right side holds V. At λ = 0 a target is one "
            "reward and γ times what the critic says of the next observation.",
            "V(2) = 1;  V(1) = 2 + γ·V(2);  merged: V = 1 + γ·¾·V",
        ),
    ),
    FunctionExercise(
        id="debugging.first_alarm",
        cases=ALARM_CASES,
        gives="number",
        returns="one number: the index of an iteration, or −1",
        mistakes=ALARM_MISTAKES,
        hints=(
            "First find for each iteration whether the run is outside: below all healthy seeds, or "
            "above all of them.",
            "Then walk through the iterations and count how many in a row are outside. One inside "
            "starts the count anew.",
            "first t ≥ 0 with  m(t+k) < min over seeds  or  m(t+k) > max over seeds  for k = 0, …, "
            "patience − 1",
        ),
    ),
    FunctionExercise(
        id="debugging.update_agreement",
        cases=AGREEMENT_CASES,
        gives="scalar",
        mistakes=AGREEMENT_MISTAKES,
        hints=(
            "Two columns: how far each log-probability moved, and what its advantage asked for. "
            "Leave out the rows that are no steps, before anything else.",
            "Take the mean away from both columns, multiply them row by row, add up, and divide by "
            "the lengths of the two columns. What if a length is 0?",
            "Σ(x − x̄)(y − ȳ) / √( Σ(x − x̄)²·Σ(y − ȳ)² ),  x = log π − log π_old,  y = Â",
        ),
    ),
    NumbersExercise(
        id="debugging.diagnoses",
        questions={
            letter: (f"the cause of run {letter.upper()}", words)
            for letter, words in {
                "a": "What size has the value loss, and what size have the returns?",
                "b": "Which network moves? kl_k3 is about the one, the value loss about the other.",
                "c": "What does a critic say that explains nothing, and yet has a loss that moves?",
                "d": "Compare with what a healthy run does when all episodes reach the limit.",
                "e": "Where does the entropy stop, and what does that say of the policy?",
                "f": "Which network moves? And how long is the gradient?",
                "g": "Of the samples outside, how many are silent?",
                "h": "Who sends the gradient whose length you see?",
            }.items()
        },
        tolerance=0.1,
        mistakes=DIAGNOSIS_MISTAKES,
        hints=(
            "Ask of each run first: does the policy move (kl_k3, entropy)? Does the critic learn "
            "(value loss, explained variance)?",
            "Then sort. Still policies: two. Critics that explain nothing though returns differ: "
            "three, one of them among the still ones. What is left has an odd size, an odd floor, "
            "an odd share, or nothing odd at all.",
            "dead policy: k3 ≈ 0;  dead critic: ev ≈ 0 ∧ loss ≈ ½·mean(R²);  mean only: ev ≈ 0 ∧ "
            "loss ≈ ½·Var(R);  turned round: silent / outside ≪ ½",
        ),
    ),
    FunctionExercise(
        id="debugging.mended_iteration",
        cases=ITERATION_CASES,
        gives="several",
        parts=("logits", "critic"),
        mistakes=ITERATION_MISTAKES,
        starts_with="target_follows_the_critic",
        hints=(
            "Print the value loss of each epoch. What should it do while the critic learns?",
            "Which numbers are written down once, before the first epoch, and which are computed "
            "in each? One of the second kind belongs to the first.",
            "target = Â + V_old, the same in every epoch",
        ),
    ),
)
