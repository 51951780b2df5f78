"""Lesson 15: what the answers to its exercises must satisfy, and the usual mistakes in words."""

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

GROUPS, MIXED = "several groups", "groups in any order"
LENGTHS, JUNK, PAIRS, FAR = "lengths", "what stands in the padding", "several pairs", "far apart"
INFINITE = float("inf")
PER_ANSWER = "one advantage for each answer, in the order given"


# --- groups ------------------------------------------------------------------------------------


def group_case(
    stage: str,
    name: str,
    scores: list[float],
    groups: list[int],
    options: dict[str, float],
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Scores of some answers, and which prompt each belongs to."""
    inputs = {"scores": scores, "groups": groups}
    return Case(
        stage=stage, name=name, inputs=inputs, options=options, integers=("groups",), dtype=dtype
    )


def group_cases(**options: float) -> tuple[Case, ...]:
    """The same groups for both exercises."""
    return (
        group_case(SMALLEST, "one prompt, two answers", [1.0, 0.0], [0, 0], options),
        group_case(SMALLEST, "one prompt, three answers", [1.0, 0.0, 0.5], [0, 0, 0], options),
        group_case(GROUPS, "an easy one and a hard one", [1.0, 0.8, 1.0, 0.0, 0.3, 0.0],
                   [0, 0, 0, 1, 1, 1], options),
        group_case(GROUPS, "three and two answers", [0.2, 1.0, 0.4, 3.0, 1.0], [0, 0, 0, 1, 1],
                   options),
        group_case(MIXED, "shuffled", [1.0, 0.0, 0.6, 0.2, 1.4, -0.5], [0, 1, 0, 1, 1, 0],
                   options),
        group_case(MIXED, "numbers that are no places", [2.0, 0.5, 1.0, 0.1], [7, 3, 7, 3],
                   options),
        group_case(EDGES, "a group of equal scores", [1.0, 1.0, 0.25, 0.75], [0, 0, 1, 1],
                   options),
        group_case(SEEDED, "9 answers", draw(Random(5), 9), [0, 1, 2, 0, 1, 2, 2, 1, 2], options),
        group_case(SEEDED, "12 answers", draw(Random(6), 12), [4, 4, 1, 1, 0, 4, 0, 1, 0, 0, 4, 1],
                   options, torch.float32),
    )  # fmt: skip


COMPARED_MISTAKES = {
    "divided_by_n": "The spread is taken with n in the denominator. Asked for is n − 1.",
    "spread_of_the_batch": "One spread for all groups. Each group has its own.",
    "mean_of_the_batch": "One mean for all groups: easy prompts are praised for being easy.",
    "spread_left_out": "The difference from the mean is right, and nothing is divided.",
    "nothing_added": "`added_spread` is missing: equal scores become 0 / 0, all others grow.",
    "divided_by_the_variance": "You divided by the variance. The root is missing.",
    "added_under_the_root": "`added_spread` stands under the root. It is added to the spread.",
    "sign_turned": "The sign is turned: better than the group is to be above 0.",
    "rows_for_groups": "The groups were cut from the order of rows. `groups` says who belongs "
    "together.",
    "own_score_left_out": "The baseline leaves the own score out: that is RLOO. Here it is the "
    "mean of the whole group.",
}
OTHERS_MISTAKES = {
    "own_score_in_the_mean": "The own score is part of the baseline. Take the mean of the others.",
    "others_divided_by_all": "You added the others up and divided by G. There are G − 1 of them.",
    "factor_upside_down": "The factor between the two means is G / (G − 1), not its inverse.",
    "others_of_the_batch": "The others of the whole batch were taken. Take those of the prompt.",
    "others_added_up": "The others were added up and not averaged.",
    "baseline_given": "That is the baseline. Subtract it from the score.",
    "sign_turned": "The sign is turned: better than the others is to be above 0.",
    "rows_for_groups": "The groups were cut from the order of rows. `groups` says who belongs "
    "together.",
    "best_of_the_others": "You compared with the best of the others. Take their mean.",
    "divided_by_the_spread": "You divided by the group's spread. RLOO does not.",
}

# --- the weight of a token ---------------------------------------------------------------------


def told(*rows: str) -> list[list[bool]]:
    """Read rows of 1 and 0, as in "1100"."""
    return [[letter == "1" for letter in row] for row in rows]


def terms_case(
    stage: str,
    name: str,
    terms: list[list[float]],
    *rows: str,
    gradients: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Terms of some answers, and which of them count."""
    inputs = {"terms": terms, "mask": told(*rows)}
    return Case(stage=stage, name=name, inputs=inputs, gradients=gradients, dtype=dtype)


MEAN_CASES = (
    terms_case(SMALLEST, "one answer of two tokens", [[1.0, 3.0]], "11"),
    terms_case(SMALLEST, "one token and three", [[2.0, 0.0, 0.0], [1.0, 1.0, 4.0]], "100", "111"),
    terms_case(LENGTHS, "a short good one, a long bad one",
               [[1.0, 0.0, 0.0, 0.0], [-1.0, -1.0, -1.0, -1.0]], "1000", "1111"),
    terms_case(LENGTHS, "two, four and one tokens",
               [[0.5, 2.0, 0.0, 0.0], [1.0, -3.0, 2.0, 0.25], [4.0, 0.0, 0.0, 0.0]],
               "1100", "1111", "1000"),
    terms_case(JUNK, "numbers in the padding", [[1.0, 50.0, -70.0], [2.0, 5.0, 900.0]],
               "100", "110"),
    terms_case(JUNK, "an infinite number in the padding", [[1.0, INFINITE], [2.0, 0.5]],
               "10", "11"),
    terms_case(GRADIENTS, "gradients", [[1.0, 2.0, 0.5], [-1.0, 0.7, 3.0]], "110", "111",
               gradients=True),
    terms_case(SEEDED, "4 answers of up to 5 tokens", draw(Random(7), 4, 5), "11000", "11111",
               "10000", "11110", gradients=True),
    terms_case(SEEDED, "3 answers of up to 6 tokens", draw(Random(8), 3, 6), "111000", "110000",
               "111110", dtype=torch.float32),
)  # fmt: skip
MEAN_MISTAKES = {
    "mean_of_means": "The mean is taken within each answer, then over answers: a token of a long "
    "answer counts less.",
    "means_added_up": "The means of the answers are added up.",
    "divided_by_answers": "You divided by the number of answers. Count tokens.",
    "padding_counted": "You divided by all places, padding included.",
    "padding_in_the_sum": "The padding's terms are in the sum.",
    "added_up": "The tokens are added up and nothing is divided.",
    "junk_multiplied": "You multiplied by the mask. What is infinite times 0 is not 0: choose, do "
    "not multiply.",
    "sign_turned": "The sign is turned. The terms are a loss already.",
    "pieces_averaged": "You took the mean of the first half of the rows and of the second, and "
    "averaged the two. They have different numbers of tokens.",
    "cut_from_the_terms": "The number is right, and no gradient reaches the terms.",
}

# --- preferences of a policy -------------------------------------------------------------------


def pair_case(
    stage: str,
    name: str,
    chosen: list[float],
    rejected: list[float],
    chosen_reference: list[float],
    rejected_reference: list[float],
    *,
    beta: float = 0.5,
    gradients: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Log-probabilities of pairs under the policy and under the reference."""
    inputs = {
        "chosen": chosen,
        "rejected": rejected,
        "chosen_reference": chosen_reference,
        "rejected_reference": rejected_reference,
    }
    return Case(
        stage=stage,
        name=name,
        inputs=inputs,
        options={"beta": beta},
        gradients=gradients,
        dtype=dtype,
    )


def pairs_drawn(seed: int, count: int, **more: object) -> Case:
    """Draw pairs."""
    random = Random(seed)
    columns = [draw(random, count, low=-9.0, high=-0.5) for _ in range(4)]
    return pair_case(SEEDED, f"{count} pairs", *columns, **more)  # pyright: ignore[reportArgumentType]


PAIR_CASES = (
    pair_case(SMALLEST, "one pair, moved the right way", [-2.0], [-4.0], [-3.0], [-3.5]),
    pair_case(SMALLEST, "one pair, moved the wrong way", [-4.0], [-2.0], [-3.0], [-3.5]),
    pair_case(PAIRS, "the reference itself", [-3.0, -1.0], [-1.5, -4.0], [-3.0, -1.0],
              [-1.5, -4.0]),
    pair_case(PAIRS, "three pairs", [-1.0, -2.5, -6.0], [-3.0, -2.0, -1.0], [-1.5, -2.0, -5.0],
              [-2.0, -4.0, -1.5], beta=0.3),
    pair_case(PAIRS, "both less likely", [-12.0], [-15.0], [-3.0], [-4.0], beta=0.1),
    pair_case(FAR, "sure, and wrong", [-900.0], [-2.0], [-3.0], [-700.0], beta=1.0),
    pair_case(FAR, "sure, and right", [-2.0], [-900.0], [-700.0], [-3.0], beta=1.0),
    pair_case(GRADIENTS, "gradients", [-1.0, -3.0], [-2.0, -1.0], [-1.4, -2.0], [-1.0, -1.8],
              beta=0.7, gradients=True),
    pairs_drawn(9, 7, beta=0.4, gradients=True),
    pairs_drawn(10, 11, beta=0.15, dtype=torch.float32),
)  # fmt: skip
PAIR_MISTAKES = {
    "reference_left_out": "The reference is missing: what it preferred already counts as learned.",
    "pair_swapped": "The rejected answer is taught to be likelier.",
    "beta_outside": "β multiplies the loss. It belongs to the margin.",
    "divided_by_beta": "The margin is divided by β. The implied reward is β times a log-ratio.",
    "references_crossed": "The references are added, or each answer was compared with the other "
    "one's: their difference has the wrong sign.",
    "pairs_added_up": "The pairs are added up. Average them.",
    "two_losses": "Each answer has a loss of its own. Only the margin counts.",
    "margin_given": "That is minus the mean margin: a settled pair pushes like any other.",
    "probability_given": "That is the mean probability of the preference. Asked for is minus its "
    "logarithm.",
    "chosen_imitated": "You imitate the chosen answers. The rejected ones are part of the loss.",
    "reference_that_learns": "The number is right, and a gradient reaches the reference. It is a "
    "constant.",
    "logarithm_of_a_sigmoid": "The sigmoid becomes 0 for a pair far the wrong way, and its "
    "logarithm infinite. Take both in one function.",
}

# --- a method that nobody has named ------------------------------------------------------------

UNSEEN_MISTAKES = {
    "own_score_counted": "In a: does `others` hold the own score? See what is subtracted.",
    "compared_with_the_batch": "In a: `same` chooses who is compared.",
    "spread_of_its_group": "In b: over which scores is the spread taken?",
    "scale_overlooked": "In b: something divides the advantages.",
    "tokens_alike": "In c: by what is the sum divided? It must not depend on the lengths.",
    "means_within_answers": "In c: nothing is averaged within an answer.",
    "ratio_of_the_answer": "In d: is anything added up before the exponential?",
    "usual_upper_edge": "In e: read the clamp. It is not the usual 1.2.",
    "no_upper_edge": "In e: there is one. Which of the two terms is smaller, beyond it?",
    "usual_lower_edge": "In f: the clamp has no lower end.",
    "lower_edge_by_symmetry": "In f: an upper edge of 1.3 does not make a lower one of 0.7.",
    "charged_in_the_reward": "In g: does the reference appear anywhere?",
}

# --- by hand -----------------------------------------------------------------------------------

HAND_MISTAKES = {
    "spread_by_n": "In a, the spread is taken with n − 1.",
    "not_divided": "In a, the difference from the mean is still to be divided by the spread.",
    "own_score_in": "In b, the baseline is the mean of the three others.",
    "sign_lost": "In b, a wrong answer is worth less than the others.",
    "only_all_right": "In c, a group that is always wrong is silent, too.",
    "silence_exchanged": "c is the share of groups with equal scores, not of the others.",
    "places_counted": "In d, you counted the places of the padding, too.",
    "batch_not_divided": "In e, the mean over the two answers comes on top.",
    "other_answer": "In e, you took a token of the short answer.",
    "half_forgotten": "In f, the slope holds σ(0), which is one half.",
    "wrong_way": "In f, the loss falls where the chosen one rises.",
    "beta_forgotten": "In g, the margin is β times the difference.",
    "beta_multiplied": "In g, the margin is divided by β.",
    "cut_like_a_good_one": "In h, the clip's minimum keeps the larger punishment.",
    "limit_reached": "In h, the ratio is below c, so the limit does not act.",
}

EXERCISES = (
    FunctionExercise(
        id="variants.compared_in_group",
        cases=group_cases(added_spread=0.1),
        gives="tensor",
        returns=PER_ANSWER,
        mistakes=COMPARED_MISTAKES,
        hints=(
            "One group first: subtract its mean, divide by its spread plus a little.",
            "`scores[groups == group]` picks the answers to one prompt, wherever they stand.",
            "Â = (score − mean) / (spread + added_spread), per group; a spread by n − 1",
        ),
    ),
    FunctionExercise(
        id="variants.compared_with_others",
        cases=group_cases(),
        gives="tensor",
        returns=PER_ANSWER,
        mistakes=OTHERS_MISTAKES,
        hints=(
            "In a group of G, how do you get the sum of the others from the sum of all?",
            "Mean of the others: (sum − own score) / (G − 1).",
            "The same: G / (G − 1) times the difference from the mean of all.",
        ),
    ),
    FunctionExercise(
        id="variants.mended_mean",
        cases=MEAN_CASES,
        gives="scalar",
        learns=("terms",),
        mistakes=MEAN_MISTAKES,
        starts_with="mean_of_means",
        hints=(
            "Try one answer of one token and one of three. By what is each of the four weighed?",
            "Every token that counts has the same weight: 1 / number of such tokens.",
            "Σ of the terms that count / number of places that count, in one quotient",
        ),
    ),
    FunctionExercise(
        id="variants.policy_preference_loss",
        cases=PAIR_CASES,
        gives="scalar",
        learns=("chosen", "rejected"),
        mistakes=PAIR_MISTAKES,
        hints=(
            "Put β·(log π − log π_ref) where the score of the reward model stood in lesson 14.",
            "−log σ(x) has a function of its own that does not overflow.",
            "margin = β·((chosen − its reference) − (rejected − its reference)); "
            "loss = mean of −log σ(margin)",
        ),
    ),
    NumbersExercise(
        id="variants.unseen_method",
        questions={
            "a": ("number of the baseline", "What is subtracted from a score?"),
            "b": ("number of the scale", "What are advantages divided by, over which scores?"),
            "c": ("number of the weight", "Answers of other lengths: does a token's weight move?"),
            "d": ("number of the ratio", "Is anything summed before the exponential?"),
            "e": ("ratio above which a good token is silent", "0 if there is no such edge."),
            "f": ("ratio below which a bad token is silent", "0 if there is no such edge."),
            "g": ("number of the place of the KL", "Where would the reference appear?"),
        },
        tolerance=0.002,
        mistakes=UNSEEN_MISTAKES,
        hints=(
            "Ask the code as the board does: add 1 to all scores of a group. What stays?",
            "For e and f take a bad token: ratio times a negative advantage, and the minimum.",
            "weight = 1 / (rows · 512); expected = (sum of the group − own score) / (G − 1)",
        ),
    ),
    NumbersExercise(
        id="variants.variants_by_hand",
        questions={
            "a": ("GRPO's advantage of a right answer", "Mean first, then the spread by n − 1."),
            "b": ("RLOO's advantage of a wrong answer", "What is the mean of the three others?"),
            "c": ("share of silent groups", "All right, or all wrong."),
            "d": ("weight in the mean over tokens", "Count the tokens of both."),
            "e": ("weight in the mean of means", "Within its answer, then over two answers."),
            "f": ("slope of DPO's loss by the chosen", "−β·(1 − σ(0))."),
            "g": ("difference of the two log-ratios", "σ(x) = 0.9 at x = log 9."),
            "h": ("objective of the bad token", "Which is smaller, ratio·Â or clipped·Â?"),
        },
        tolerance=0.002,
        mistakes=HAND_MISTAKES,
        hints=(
            "Each of them is one line. Write the formula first, then the numbers.",
            "a: 0.5 over √(4·0.25/3). c: p³ + (1 − p)³.",
            "b = −2/3;  d = 1/8;  e = 1/(2·6);  g = log 9 / β",
        ),
    ),
)
