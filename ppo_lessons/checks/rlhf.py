"""Lesson 14: what the answers to its exercises must satisfy, and the usual mistakes in words."""

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
    draw,
)

PAIRS, FAR = "several pairs", "scores far apart"
LENGTHS, JUNK, TURNS = "answers of other lengths", "what stands in the padding", "several turns"
DISCOUNT, SIGNS, WHITE = "γ and λ", "tokens of either kind", "what is whitened"
INSIDE, OUTSIDE, SPEED = "near the target", "far from the target", "how fast"
INFINITE = float("inf")
TABLE = list[list[float]]


def told(*rows: str) -> list[list[bool]]:
    """Read rows of 1 and 0, as in "1100"."""
    return [[letter == "1" for letter in row] for row in rows]


def nats(random: Random, rows: int, length: int) -> TABLE:
    """Draw log-probabilities."""
    return draw(random, rows, length, low=-3.0, high=-0.1)


# --- preferences ---------------------------------------------------------------------------


def pair_case(
    stage: str, name: str, chosen: list[float], rejected: list[float], **more: object
) -> Case:
    """Scores of some pairs."""
    inputs = {"chosen": chosen, "rejected": rejected}
    return Case(stage=stage, name=name, inputs=inputs, **more)  # pyright: ignore[reportArgumentType]


PREFERENCE_CASES = (
    pair_case(SMALLEST, "one pair, the right way round", [1.5], [0.5]),
    pair_case(SMALLEST, "one pair, the wrong way round", [-0.5], [1.5]),
    pair_case(PAIRS, "equal scores", [1.5], [1.5]),
    pair_case(PAIRS, "one each way", [2.0, -1.0], [0.5, 1.5]),
    pair_case(PAIRS, "three pairs", [0.5, 3.0, -1.0], [1.0, 0.2, -1.3]),
    pair_case(FAR, "sure, and wrong", [-600.0], [600.0]),
    pair_case(FAR, "sure, and right", [600.0], [-600.0]),
    pair_case(FAR, "a usual pair and a far one", [3.0, -700.0], [1.0, 650.0]),
    pair_case(GRADIENTS, "gradients", [0.5, 2.0, -1.0], [1.5, 0.3, -1.4], gradients=True),
    pair_case(
        SEEDED, "7 pairs", draw(Random(1), 7), draw(Random(2), 7), gradients=True
    ),
    pair_case(
        SEEDED, "12 pairs", draw(Random(3), 12), draw(Random(4), 12), dtype=torch.float32
    ),
)  # fmt: skip
PREFERENCE_MISTAKES = {
    "pair_swapped": "The rejected answer is taught to score higher.",
    "agreement_given": "That is the mean logarithm itself, which is below 0. Training makes a loss "
    "smaller, and this one would make the judge worse.",
    "loss_added_up": "You added the pairs up. Average, or the step grows with the batch.",
    "logarithm_of_a_sigmoid": "The sigmoid becomes 0 for a pair far the wrong way, and its "
    "logarithm infinite. Take both in one function.",
    "probability_given": "That is the mean probability of the preference. Asked for is minus its "
    "logarithm.",
    "probability_of_the_other": "That is the mean probability of the other preference. Asked for "
    "is minus the logarithm of this one's.",
    "margin_only": "The difference is widened without end: a pair that is settled pushes like any "
    "other. Where is σ?",
    "silent_beyond_one": "A pair whose scores differ by 1 or more no longer counts. In this model "
    "of preferences every pair counts, the settled ones a little.",
    "each_score_alone": "You judge each answer for itself, as if 0 were the border between good "
    "and bad. Only the difference of the two was judged.",
    "pulled_to_one_and_zero": "You pull the scores towards 1 and 0. Nobody said which scores; only "
    "their difference was judged.",
    "mean_before_the_logarithm": "The mean is taken of the differences, and the loss of that. "
    "Take the loss of each pair, then the mean.",
    "rejected_held_still": "The number is right, and no gradient reaches the rejected scores. The "
    "judge is to lower them, too.",
}

# --- one reward per token ------------------------------------------------------------------


def reward_case(
    stage: str,
    name: str,
    scores: list[float],
    log_probs: TABLE,
    log_probs_reference: TABLE,
    mask: list[list[bool]],
    *,
    beta: float = 0.5,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Some answers with their scores."""
    inputs = {
        "scores": scores,
        "log_probs": log_probs,
        "log_probs_reference": log_probs_reference,
        "mask": mask,
    }
    return Case(stage=stage, name=name, inputs=inputs, options={"beta": beta}, dtype=dtype)


def rewards_drawn(seed: int, *rows: str, beta: float, dtype: torch.dtype = torch.float64) -> Case:
    """Draw answers of several lengths."""
    random, length = Random(seed), len(rows[0])
    return reward_case(
        SEEDED,
        f"{len(rows)} answers of up to {length} tokens",
        draw(random, len(rows)),
        nats(random, len(rows), length),
        nats(random, len(rows), length),
        told(*rows),
        beta=beta,
        dtype=dtype,
    )


REWARD_CASES = (
    reward_case(SMALLEST, "one token", [2.0], [[-1.0]], [[-1.5]], told("1")),
    reward_case(
        SMALLEST, "three tokens", [2.0], [[-0.2, -0.5, -0.1]], [[-0.4, -2.5, -0.3]], told("111")
    ),
    reward_case(
        LENGTHS, "two of four columns", [1.5], [[-0.2, -0.5, -1.0, -0.7]],
        [[-0.7, -0.4, -2.0, -0.2]], told("1100"), beta=0.2,
    ),
    reward_case(
        LENGTHS, "one, three and four tokens", [1.0, -2.0, 3.0],
        [[-0.3, -1.0, -0.5, -2.0], [-1.2, -0.4, -0.8, -0.3], [-0.6, -0.9, -0.2, -1.1]],
        [[-0.8, -0.5, -1.5, -1.0], [-0.7, -1.4, -0.6, -2.3], [-1.6, -0.4, -0.9, -0.5]],
        told("1000", "1110", "1111"),
    ),
    reward_case(
        JUNK, "logarithms of 0 in the padding", [1.0, 2.0],
        [[-0.5, -INFINITE, -INFINITE], [-0.4, -0.8, -0.3]],
        [[-1.0, -INFINITE, -2.0], [-0.9, -0.3, -1.3]],
        told("100", "111"),
    ),
    reward_case(
        JUNK, "a million in the padding", [1.0, -1.0],
        [[-0.5, -0.4, 1e6], [-0.4, 1e6, 2.0]], [[-1.0, -0.2, -1.0], [-0.9, 3.0, 1e6]],
        told("110", "100"), beta=0.3,
    ),
    reward_case(
        TURNS, "a tool speaks in between", [2.0], [[-0.3, -0.6, -1.0, -0.4, -0.8]],
        [[-0.8, -0.5, -2.0, -1.4, -0.5]], told("11010"),
    ),
    reward_case(
        TURNS, "a gap, and none", [2.0, -1.5],
        [[-0.3, -0.6, -1.0, -0.4], [-0.9, -0.2, -0.5, -0.7]],
        [[-0.8, -0.5, -2.0, -1.4], [-0.3, -1.1, -1.3, -0.2]],
        told("1011", "1110"), beta=0.2,
    ),
    rewards_drawn(5, "111100", "110000", "111111", "100000", beta=0.3),
    rewards_drawn(6, "11111000", "11111111", "11000000", beta=0.15, dtype=torch.float32),
)  # fmt: skip
REWARD_MISTAKES = {
    "score_on_the_first_pad": "The score is paid one place after the last token, where no mask "
    "will ever look.",
    "score_in_the_last_column": "The score is paid in the last column, wherever the answer ended.",
    "score_where_the_mask_counts_to": "You took the number of tokens for the place of the last "
    "one. That is wrong where somebody else speaks in between.",
    "score_on_the_first_token": "The score is paid at the first token. The judge speaks when the "
    "answer is complete.",
    "score_on_every_token": "Each token is paid the score: a longer answer earns it more often.",
    "score_replaces_the_price": "At the last token stands the score alone. That token pays its "
    "price like all others.",
    "distance_rewarded": "The sign of the price is turned: each step away from the reference is "
    "paid for.",
    "distance_priced_in_padding": "The padding pays a price. Nobody chose what stands there.",
    "multiplied_by_the_mask": "You multiplied by the mask, and ∞ times 0 is no number. Replace "
    "what does not count.",
    "whole_distance_on_the_last_token": "The last token pays for the whole answer. The sum is "
    "right, and who pays is not.",
    "beta_forgotten": "β has no effect: the price is 1 per nat.",
    "beta_on_the_score": "The score is multiplied by β, too. β is the price of distance.",
    "never_paid_back": "A token that the reference likes better than the policy gets nothing. Its "
    "difference is below 0, and its reward is above 0: only so is the mean a KL.",
    "probabilities_compared": "You compared probabilities. The price is by nats, the difference of "
    "the logarithms.",
    "averaged_over_the_answer": "The price is divided by the tokens of the answer: then a long one "
    "may go farther for the same price.",
}

# --- advantages of tokens ------------------------------------------------------------------


def advantage_case(
    stage: str,
    name: str,
    rewards: TABLE,
    values: TABLE,
    mask: list[list[bool]],
    *,
    gamma: float = 1.0,
    gae_lambda: float = 0.95,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Rewards and values of some answers."""
    return Case(
        stage=stage,
        name=name,
        inputs={"rewards": rewards, "values": values, "mask": mask},
        options={"gamma": gamma, "gae_lambda": gae_lambda},
        dtype=dtype,
    )


def advantages_drawn(
    seed: int, *rows: str, gamma: float, gae_lambda: float, dtype: torch.dtype = torch.float64
) -> Case:
    """Draw answers of several lengths."""
    random, length = Random(seed), len(rows[0])
    return advantage_case(
        SEEDED,
        f"{len(rows)} answers of up to {length} tokens",
        draw(random, len(rows), length),
        draw(random, len(rows), length),
        told(*rows),
        gamma=gamma,
        gae_lambda=gae_lambda,
        dtype=dtype,
    )


SHORT_REWARDS = [[-0.2, 1.5, 9.0, -4.0], [2.0, 7.0, 3.0, -6.0], [-0.1, 0.3, -0.4, 2.0]]
SHORT_VALUES = [[0.5, 1.2, 5.0, -3.0], [0.7, -4.0, 2.0, 8.0], [0.2, 0.6, 1.1, 1.4]]
ADVANTAGE_CASES = (
    advantage_case(SMALLEST, "one token", [[2.0]], [[0.5]], told("1")),
    advantage_case(SMALLEST, "two tokens", [[-0.1, 2.0]], [[0.5, 1.0]], told("11")),
    advantage_case(LENGTHS, "two of four columns", SHORT_REWARDS[:1], SHORT_VALUES[:1],
                   told("1100")),
    advantage_case(LENGTHS, "one token of four columns", SHORT_REWARDS[1:2], SHORT_VALUES[1:2],
                   told("1000")),
    advantage_case(LENGTHS, "three lengths", SHORT_REWARDS, SHORT_VALUES,
                   told("1100", "1000", "1111")),
    advantage_case(
        JUNK, "infinities in the padding",
        [[-0.2, 1.5, INFINITE], [0.4, -0.3, 1.0]], [[0.5, 1.2, INFINITE], [0.1, 0.9, 0.3]],
        told("110", "111"),
    ),
    advantage_case(
        JUNK, "a million in the padding",
        [[1.5, 1e6, -1e6], [0.4, 1.2, 1e6]], [[0.5, -1e6, 1e6], [0.1, 0.9, 1e6]],
        told("100", "110"),
    ),
    advantage_case(DISCOUNT, "λ = 1: all that follows", SHORT_REWARDS, SHORT_VALUES,
                   told("1110", "1000", "1111"), gae_lambda=1.0),
    advantage_case(DISCOUNT, "λ = 0: one step", SHORT_REWARDS, SHORT_VALUES,
                   told("1110", "1000", "1111"), gae_lambda=0.0),
    advantage_case(DISCOUNT, "γ = 0.8", SHORT_REWARDS, SHORT_VALUES,
                   told("1110", "1100", "1111"), gamma=0.8, gae_lambda=0.7),
    advantages_drawn(7, "111100", "110000", "111111", "100000", gamma=0.97, gae_lambda=0.9),
    advantages_drawn(8, "11111000", "11111111", "11000000", gamma=0.9, gae_lambda=0.8,
                     dtype=torch.float32),
)  # fmt: skip
ADVANTAGE_MISTAKES = {
    "value_after_the_end": "The last token expects what the critic says of the padding. Nothing "
    "comes after the end.",
    "mask_one_short": "The last token is left out. There the score is paid, and to stop was a "
    "choice.",
    "junk_left_in_padding": "In the padding stand numbers. There it is 0.",
    "multiplied_by_the_mask": "You multiplied by the mask, and ∞ times 0 is no number. Replace "
    "what does not count.",
    "answers_taken_for_time": "The recursion runs down the rows, from answer to answer. Time runs "
    "along a row.",
    "forwards": "The recursion runs from the first token to the last. An advantage is made of what "
    "comes after it.",
    "gamma_left_out_of_the_trace": "Each step back weighs by λ alone. It is γ·λ.",
    "lambda_left_out_of_the_trace": "Each step back weighs by γ alone. It is γ·λ.",
    "one_step_only": "That is δ of each token. The later ones are missing.",
    "returns_given": "V is added again: those are the targets of the critic.",
    "value_not_taken_away": "V of the token itself is not taken away.",
    "next_value_left_out": "V of the next token is missing in δ.",
    "whitened": "You took away the mean and divided by the spread. That comes later, and not here.",
    "score_for_all": "Each token gets what the whole answer earned minus V. What was paid before a "
    "token is none of its doing.",
}

# --- how far whole answers are -------------------------------------------------------------


def distance_case(
    stage: str,
    name: str,
    log_probs: TABLE,
    log_probs_reference: TABLE,
    mask: list[list[bool]],
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Answers that the policy drew, scored twice."""
    inputs = {"log_probs": log_probs, "log_probs_reference": log_probs_reference, "mask": mask}
    return Case(stage=stage, name=name, inputs=inputs, dtype=dtype)


def distances_drawn(seed: int, *rows: str, dtype: torch.dtype = torch.float64) -> Case:
    """Draw answers of several lengths."""
    random, length = Random(seed), len(rows[0])
    tables = nats(random, len(rows), length), nats(random, len(rows), length)
    name = f"{len(rows)} answers of up to {length} tokens"
    return distance_case(SEEDED, name, *tables, told(*rows), dtype)


DISTANCE_CASES = (
    distance_case(SMALLEST, "one token", [[-0.5]], [[-1.5]], told("1")),
    distance_case(SMALLEST, "two tokens", [[-0.5, -0.2]], [[-1.5, -0.8]], told("11")),
    distance_case(SIGNS, "one that the reference likes better", [[-1.5]], [[-0.4]], told("1")),
    distance_case(SIGNS, "one of each kind", [[-1.5, -0.3]], [[-0.6, -1.9]], told("11")),
    distance_case(
        SIGNS, "the same policy but for one token", [[-0.7, -1.2, -0.3]], [[-0.7, -2.0, -0.3]],
        told("111"),
    ),
    distance_case(
        LENGTHS, "one token and three", [[-0.5, -1.0, -1.0], [-0.4, -0.9, -0.2]],
        [[-1.7, -0.3, -2.0], [-1.1, -0.5, -1.4]], told("100", "111"),
    ),
    distance_case(
        LENGTHS, "three lengths",
        [[-0.3, -1.0, -0.5, -2.0], [-1.2, -0.4, -0.8, -0.3], [-0.6, -0.9, -0.2, -1.1]],
        [[-1.8, -0.5, -1.5, -1.0], [-0.7, -1.4, -0.6, -2.3], [-1.6, -0.4, -0.9, -0.5]],
        told("1000", "1100", "1111"),
    ),
    distance_case(
        JUNK, "logarithms of 0 in the padding",
        [[-0.5, -INFINITE, -INFINITE], [-0.4, -0.8, -0.3]],
        [[-1.0, -INFINITE, -2.0], [-0.9, -0.3, -1.6]],
        told("100", "111"),
    ),
    distance_case(
        JUNK, "a thousand in the padding", [[-0.5, -0.4, 1e3], [-0.4, 2.0, 1e3]],
        [[-1.0, -0.1, -1.0], [-1.3, 3.0, 1e3]], told("110", "100"),
    ),
    distances_drawn(9, "111100", "110000", "111111", "100000"),
    distances_drawn(10, "11111000", "11111111", "11000000", dtype=torch.float32),
)  # fmt: skip
DISTANCE_MISTAKES = {
    "mean_over_tokens": "You averaged over all tokens. Asked for is the KL of whole answers: add "
    "up along each, then average over answers.",
    "mean_of_row_means": "You averaged along each answer. Add up along it.",
    "added_over_answers": "The answers are added up. Average over them.",
    "padding_counted": "What stands in the padding counts, too.",
    "multiplied_by_the_mask": "You multiplied by the mask, and ∞ times 0 is no number. Replace "
    "what does not count.",
    "reference_minus_policy": "The difference is turned round, in both.",
    "ratio_upside_down": "k1 is right. In k3 stands π / π_ref where π_ref / π belongs.",
    "k3_of_the_whole_answer": "k1 is right. k3 is taken of the sum over the answer; take it of "
    "each token, then add up.",
    "half_a_square": "k1 is right. The second number is k2, half a square.",
    "never_negative": "You took the absolute value in k1. A token may pay back what another one "
    "went too far.",
    "results_exchanged": "The two numbers are exchanged: k1 first.",
    "one_not_taken_away": "k1 is right. In k3 the 1 is not taken away: it must be 0 where both "
    "agree.",
    "distance_left_out_of_k3": "k1 is right. In k3 the difference itself is missing, which makes "
    "it never negative.",
}

# --- an adaptive price ---------------------------------------------------------------------


def price_case(
    stage: str,
    name: str,
    beta: float,
    kl: float,
    target_kl: float,
    num_samples: int = 80,
    kl_horizon: int = 100,
) -> Case:
    """One change of the price, with Python numbers."""
    options = {
        "beta": beta,
        "kl": kl,
        "target_kl": target_kl,
        "num_samples": num_samples,
        "kl_horizon": kl_horizon,
    }
    return Case(stage=stage, name=name, inputs={}, options=options)


PRICE_CASES = (
    price_case(SMALLEST, "as wanted", 1.0, 4.0, 4.0),
    price_case(SMALLEST, "twice as far as wanted", 1.0, 8.0, 4.0),
    price_case(INSIDE, "a little too far", 3.0, 4.4, 4.0),
    price_case(INSIDE, "a little too near", 3.0, 3.5, 4.0),
    price_case(INSIDE, "a small target", 3.0, 0.56, 0.5),
    price_case(OUTSIDE, "much too far", 5.0, 60.0, 2.0),
    price_case(OUTSIDE, "too far", 5.0, 2.9, 2.0),
    price_case(OUTSIDE, "too near", 5.0, 0.9, 2.0),
    price_case(SPEED, "few answers", 8.0, 7.0, 2.0, 40, 160),
    price_case(SPEED, "more answers than the horizon", 8.0, 0.7, 2.0, 150, 60),
    price_case(SPEED, "a slow one", 20.0, 2.3, 2.0, 90, 120),
    price_case(EDGES, "an estimate of 0", 4.0, 0.0, 3.0),
    price_case(EDGES, "an estimate below 0", 4.0, -0.8, 3.0),
    price_case(EDGES, "a high price", 500.0, 5.0, 3.0, 70, 100),
    price_case(SEEDED, "some numbers", 6.4, 5.9, 5.3, 64, 90),
    price_case(SEEDED, "others", 12.7, 1.3, 3.1, 128, 110),
)
PRICE_MISTAKES = {
    "error_not_limited": "The error is taken as it is: one wild batch throws β anywhere. It is cut "
    "to ± 0.2.",
    "limited_above_only": "The error is limited above only. Below −0.2 it is cut as well.",
    "limited_below_only": "The error is limited below only. Above 0.2 it is cut as well.",
    "step_limited": "You limited the whole step. It is the error that is cut, before it is "
    "multiplied by the answers.",
    "moved_the_wrong_way": "The price falls when the policy is too far away.",
    "difference_not_relative": "You took KL − target. Divide by the target, or its size changes "
    "the speed.",
    "target_over_kl": "The quotient is upside down: KL over target.",
    "samples_forgotten": "All batches move the price alike, however many answers they have.",
    "horizon_forgotten": "The horizon has no effect. It says how slowly the price moves.",
    "horizon_over_samples": "Horizon and answers are exchanged: so few answers would move "
    "the price more than many do.",
    "added": "The step is added to β. It multiplies: a price of 100 moves by more than one of 1.",
    "factor_given": "You gave the factor. Multiply β by it.",
    "doubled_or_halved": "That is the controller of lesson 03, which doubles and halves.",
}

# --- scoring with a bug --------------------------------------------------------------------


def scoring_case(
    stage: str,
    name: str,
    seed: int,
    *rows: str,
    beta: float = 0.4,
    gae_lambda: float = 0.9,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Draw answers with scores, values and log-probabilities."""
    random, length = Random(seed), len(rows[0])
    inputs = {
        "scores": draw(random, len(rows), low=0.5, high=3.0),
        "log_probs": nats(random, len(rows), length),
        "log_probs_reference": nats(random, len(rows), length),
        "values": draw(random, len(rows), length),
        "mask": told(*rows),
    }
    options = {"beta": beta, "gae_lambda": gae_lambda}
    return Case(stage=stage, name=name, inputs=inputs, options=options, dtype=dtype)


SCORING_CASES = (
    scoring_case(SMALLEST, "one answer of two tokens", 11, "11"),
    scoring_case(WHITE, "one answer of four tokens", 12, "1111"),
    scoring_case(WHITE, "two answers of three", 13, "111", "111"),
    scoring_case(LENGTHS, "two tokens and four", 14, "1100", "1111"),
    scoring_case(LENGTHS, "three lengths", 15, "1000", "1110", "1111"),
    scoring_case(DISCOUNT, "λ = 1", 16, "110", "111", gae_lambda=1.0),
    scoring_case(DISCOUNT, "λ = 0", 17, "110", "111", gae_lambda=0.0),
    scoring_case(DISCOUNT, "a high price", 18, "1110", "1111", beta=2.0),
    scoring_case(SEEDED, "4 answers of up to 6", 19, "111100", "110000", "111111", "100000"),
    scoring_case(
        SEEDED, "3 answers of up to 7", 20, "1111100", "1111111", "1100000", beta=0.7,
        gae_lambda=0.8, dtype=torch.float32,
    ),
)  # fmt: skip
SCORING_MISTAKES = {
    "returns_of_whitened_advantages": "The critic's targets are made of whitened advantages: "
    "their unit is gone, and they change with whatever else is in the batch.",
    "returns_without_the_value": "The critic's targets are the advantages. V is missing.",
    "value_taken_away_twice": "V is taken away from the advantages where it is added back.",
    "returns_whitened": "The targets are whitened. The critic is to learn rewards as they are.",
    "returns_are_sums_of_rewards": "The targets are the rewards to come, whatever λ is.",
    "not_whitened": "The advantages are not whitened. That was no bug.",
    "only_centred": "The advantages are centred and not divided by their spread.",
    "divided_by_the_variance": "The advantages are divided by their variance, not by the spread.",
    "whitened_with_the_padding": "Mean and spread are taken with the zeros of the padding. It "
    "was right to look at real tokens only.",
    "mean_left_in_the_padding": "In the padding of the advantages stands what was taken away. "
    "There it is 0.",
    "value_in_padding_is_a_target": "In the padding of the targets stand the critic's own words. "
    "There it is 0.",
    "price_forgotten": "The distance from the reference costs nothing.",
}

# --- by hand -------------------------------------------------------------------------------

HAND_MISTAKES = {
    "distance_rewarded": "In a and b the sign of the price is turned.",
    "beta_forgotten": "In a and b the price is 1 per nat. It is β.",
    "score_left_out": "In b the score is missing, which is paid at the last token.",
    "price_left_out": "In b the price is missing: what is paid at one token is not given back.",
    "value_added": "In c, V is taken away, not added.",
    "only_the_score": "In c, the first token earns what is left of the answer, the price included.",
    "next_value_left_out": "In d, V of the next token is missing: it is expected after the first.",
    "last_token_looked_at": "In d, the first token does not see the score yet.",
    "share_of_scores": "e is no share of the scores: a score has no zero of its own.",
    "other_one": "e is the probability of the first, not of the second.",
    "reference_left_out": "In f, the reference is missing: the formula tilts it.",
    "reward_times_beta": "In f, the reward is divided by β. A low price lets the policy go far.",
    "not_normalised": "In f, Z is missing: both probabilities must add up to one.",
    "error_not_limited": "In g, the error is cut before it moves the price.",
    "samples_forgotten": "In g, the step depends on how many answers there were.",
    "lowered": "In g, the policy is too far away: the price rises.",
    "all_four_learn": "In h, two of the four are only asked.",
    "copy_forgotten": "In h, a model that learns needs more than its weights and their gradients.",
}

EXERCISES = (
    FunctionExercise(
        id="rlhf.preference_loss",
        cases=PREFERENCE_CASES,
        gives="scalar",
        learns=("chosen", "rejected"),
        mistakes=PREFERENCE_MISTAKES,
        hints=(
            "What probability does the model give to what the rater did? A good judge makes it "
            "large, so its logarithm should be large as well.",
            "σ of a number far below 0 is 0 in a computer, and the logarithm of 0 is −∞. There is "
            "a function that takes both steps at once.",
            "loss = −mean( log σ(chosen − rejected) ) = mean( log(1 + e^(rejected − chosen)) )",
        ),
    ),
    FunctionExercise(
        id="rlhf.token_rewards",
        cases=REWARD_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of log_probs",
        mistakes=REWARD_MISTAKES,
        hints=(
            "Two things are paid: a price at every token that was chosen, and the score once. "
            "Begin with the price.",
            "The last token is the last place where the mask is True. Somebody else may have "
            "spoken before it, so it is no count.",
            "r_t = −β·(log π − log π_ref)_t·[mask_t] + score·[t = last]",
        ),
    ),
    FunctionExercise(
        id="rlhf.token_advantages",
        cases=ADVANTAGE_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of rewards",
        mistakes=ADVANTAGE_MISTAKES,
        hints=(
            "It is the recursion of lesson 06, along a row. What must stand in the padding so that "
            "it does no harm there?",
            "Put zeros where the mask is False, in rewards and values, before anything else. Then "
            "walk from the last column to the first.",
            "δ_t = r_t + γ·V_{t+1} − V_t,   Â_t = δ_t + γ·λ·Â_{t+1},   V = Â = 0 behind the end",
        ),
    ),
    FunctionExercise(
        id="rlhf.kl_of_answers",
        cases=DISTANCE_CASES,
        gives="two numbers",
        mistakes=DISTANCE_MISTAKES,
        hints=(
            "Three steps: a number for each token, a sum along each answer, a mean over answers.",
            "Both are made of d = log π − log π_ref of the token. Where the two agree, d is 0, and "
            "so must be k1 and k3.",
            "k1 = d,   k3 = e⁻ᵈ − 1 + d,   KL ≈ (Σ over all tokens) / number of answers",
        ),
    ),
    FunctionExercise(
        id="rlhf.next_price",
        cases=PRICE_CASES,
        gives="number",
        mistakes=PRICE_MISTAKES,
        hints=(
            "How far off is the KL, as a share of the target? That share is cut on both sides.",
            "A batch of as many answers as the horizon moves the price by the whole error; a "
            "smaller one by less.",
            "β ← β·(1 + error·answers / horizon),   −0.2 ≤ error = KL/target − 1 ≤ 0.2",
        ),
    ),
    FunctionExercise(
        id="rlhf.mended_scoring",
        cases=SCORING_CASES,
        gives="several",
        parts=("advantages", "returns"),
        mistakes=SCORING_MISTAKES,
        starts_with="returns_of_whitened_advantages",
        hints=(
            "Double all scores, prices and values. What should become of the critic's targets? "
            "And what does become of them?",
            "Whitening is for the policy: it takes the unit away. Which line needs that unit?",
            "returns = Â + V, with Â before its mean is taken away",
        ),
    ),
    NumbersExercise(
        id="rlhf.rewards_by_hand",
        questions={
            "a": ("reward of the second token", "The price of that token, by its difference."),
            "b": ("sum of the three rewards", "Score, and the price of the whole answer."),
            "c": (
                "advantage of the first token, λ = 1",
                "What the answer still earns from there on, and what was expected.",
            ),
            "d": (
                "advantage of the first token, λ = 0",
                "One reward, what is expected after it, and what was expected before.",
            ),
            "e": ("probability that the first is preferred", "σ of a difference."),
            "f": (
                "probability of the second answer under the best policy",
                "Weigh each answer of the reference with its own factor, then normalise.",
            ),
            "g": ("the next price", "First the error and where it is cut, then the share of it."),
            "h": ("memory of the four models (GB)", "Which of them learn?"),
        },
        tolerance=0.002,
        mistakes=HAND_MISTAKES,
        hints=(
            "Write down the three differences log π − log π_ref first.",
            "f: tilt both, add them up, divide. h: two learn and two are asked.",
            "π* = π_ref·e^(r/β) / Z;  P = 1/(1 + e^(s₂ − s₁));  Â(λ = 1) = Σ r − V",
        ),
    ),
)
