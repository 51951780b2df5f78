"""Lesson 17: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Sequence
from random import Random

from ppo_lessons.checks.exercises import (
    EDGES,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
)

NONE_OR_ALL, SURER, MANY = "none or all", "another z", "many answers"
TRIES, PROMPTS = "several tries", "several prompts"
JUDGES, FEW = "other judges", "few labels"
DIFFER, AGREE = "prompts that differ", "prompts that agree"
LOSSES, NOISE = "a gain, a loss", "different noise"


def flags(hits: int, total: int) -> list[bool]:
    """Give so many true ones of so many, spread out."""
    return [place * hits // total != (place + 1) * hits // total for place in range(total)]


def flags_drawn(seed: int, count: int, share: float) -> list[bool]:
    """Draw flags."""
    random = Random(seed)
    return [random.random() < share for _ in range(count)]


# --- an interval for a share --------------------------------------------------------------


def share_case(stage: str, name: str, right: list[bool], z: float = 2.0) -> Case:
    """Some answers that were verified."""
    return Case(stage=stage, name=name, inputs={"right": right}, options={"z": z})


WILSON_CASES = (
    share_case(SMALLEST, "one answer, right", [True]),
    share_case(SMALLEST, "one of two", [True, False]),
    share_case(NONE_OR_ALL, "none of ten", flags(0, 10)),
    share_case(NONE_OR_ALL, "all of six", flags(6, 6)),
    share_case(NONE_OR_ALL, "one of ten", flags(1, 10)),
    share_case(SURER, "3 of 8, z = 1", flags(3, 8), 1.0),
    share_case(SURER, "3 of 8, z = 3", flags(3, 8), 3.0),
    share_case(SURER, "7 of 9, z = 1.5", flags(7, 9), 1.5),
    share_case(MANY, "40 of 100", flags(40, 100)),
    share_case(MANY, "290 of 300", flags(290, 300), 1.5),
    share_case(SEEDED, "23 answers", flags_drawn(3, 23, 0.7), 1.3),
    share_case(SEEDED, "57 answers", flags_drawn(4, 57, 0.1), 2.6),
)
WILSON_MISTAKES = {
    "root_at_the_observed_share": "The noise is taken at the observed share: for none of ten it is "
    "0, and nothing is certain after ten answers.",
    "middle_not_moved": "The width is Wilson's, and its middle is k/n. The middle lies nearer to "
    "one half: (k + z²/2) / (n + z²).",
    "width_at_the_observed_share": "The middle is Wilson's, and the width is that of the usual "
    "formula. z²/4 is missing under the root.",
    "divided_by_n": "Both ends are divided by n. It is n + z².",
    "z_not_squared": "z stands where z² belongs, in the middle and under the root.",
    "whole_z_squared_in_the_root": "Under the root stands z². It is z²/4.",
    "one_z_forgotten": "The root is not multiplied by z: that is the interval for z = 1.",
    "wrong_ones_counted": "You counted the wrong answers. Count those that are right.",
    "ends_exchanged": "The upper end stands first. Give the lower end, then the upper.",
    "half_the_width": "The interval is half as wide as it should be: z·root on each side.",
}

# --- one of k tries ---------------------------------------------------------------------------


def tries_case(stage: str, name: str, right: list[list[bool]], k: int) -> Case:
    """Several answers to each of some prompts."""
    return Case(stage=stage, name=name, inputs={"right": right}, options={"k": k})


def table_drawn(seed: int, prompts: int, samples: int) -> list[list[bool]]:
    """Draw answers to prompts that are unequally hard."""
    random = Random(seed)
    rows = []
    for _ in range(prompts):
        share = random.random()
        rows.append([random.random() < share for _ in range(samples)])
    return rows


PASS_CASES = (
    tries_case(SMALLEST, "one prompt, one of two right, one try", [flags(1, 2)], 1),
    tries_case(SMALLEST, "one prompt, one of two right, two tries", [flags(1, 2)], 2),
    tries_case(TRIES, "one of four, two tries", [flags(1, 4)], 2),
    tries_case(TRIES, "two of five, three tries", [flags(2, 5)], 3),
    tries_case(TRIES, "four of five, two tries", [flags(4, 5)], 2),
    tries_case(TRIES, "the right one comes last", [[False, False, False, True]], 2),
    tries_case(PROMPTS, "an easy one and a hard one", [flags(4, 4), flags(0, 4)], 2),
    tries_case(PROMPTS, "three of several kinds", [flags(1, 6), flags(3, 6), flags(5, 6)], 3),
    tries_case(EDGES, "none right", [flags(0, 3), flags(0, 3)], 2),
    tries_case(EDGES, "as many tries as answers", [flags(1, 5), flags(0, 5)], 5),
    tries_case(SEEDED, "7 prompts, 6 answers", table_drawn(5, 7, 6), 3),
    tries_case(SEEDED, "11 prompts, 9 answers", table_drawn(6, 11, 9), 4),
)
PASS_MISTAKES = {
    "put_back": "Each answer is put back before the next is drawn: 1 − (1 − c/n)^k. Too low.",
    "first_k_only": "You looked at the first k answers. Average over all ways to choose k.",
    "share_times_k": "k tries do not have k times the chance of one: two tries may both be right.",
    "share_of_one": "That is the share of right answers, pass@1, whatever k is.",
    "all_tries_right": "You gave the probability that all k are right. One is enough.",
    "none_right_given": "You gave the probability that none of the k is right.",
    "prompts_pooled": "The answers of all prompts lie in one heap. Each prompt has its own pass@k, "
    "and then comes the mean.",
    "right_and_wrong_exchanged": "C(c, k) counts the ways to draw right ones only. Ways to draw "
    "wrong ones only are C(n − c, k).",
    "summed_over_prompts": "The prompts are added up. Average over them.",
}

# --- a judge who errs ------------------------------------------------------------------------


def judge_case(stage: str, name: str, labels: list[bool], accuracy: float) -> Case:
    """Some labels of a judge."""
    return Case(stage=stage, name=name, inputs={"labels": labels}, options={"accuracy": accuracy})


JUDGE_CASES = (
    judge_case(SMALLEST, "one label", [True], 0.9),
    judge_case(SMALLEST, "one of two", [True, False], 0.8),
    judge_case(JUDGES, "6 of 8, a judge who is never wrong", flags(6, 8), 1.0),
    judge_case(JUDGES, "6 of 8, accuracy 0.85", flags(6, 8), 0.85),
    judge_case(JUDGES, "6 of 8, accuracy 0.6", flags(6, 8), 0.6),
    judge_case(FEW, "all of four", flags(4, 4), 0.9),
    judge_case(FEW, "none of five", flags(0, 5), 0.75),
    judge_case(FEW, "one of ten", flags(1, 10), 0.9),
    judge_case(MANY, "40 of 100", flags(40, 100), 0.85),
    judge_case(SEEDED, "64 labels", flags_drawn(7, 64, 0.6), 0.8),
    judge_case(SEEDED, "31 labels", flags_drawn(8, 31, 0.2), 0.95),
)
JUDGE_MISTAKES = {
    "judge_believed": "That is the judge's share. Its errors pull it towards one half.",
    "divided_by_accuracy": "You divided by the accuracy, as if the judge called no wrong answer "
    "right.",
    "errors_not_taken_away": "What the judge calls right by error, 1 − a of the wrong ones, is "
    "still in it.",
    "accuracy_taken_away": "You took a away. What nothing right would give is 1 − a.",
    "not_stretched": "You took the errors away and did not stretch: divide by 2a − 1.",
    "noise_of_a_sure_judge": "The standard error is that of a judge who never errs. It grows by "
    "1 / (2a − 1), too.",
    "noise_stretched_twice": "The standard error is divided by 2a − 1 twice.",
    "noise_by_accuracy": "The standard error is divided by a in place of 2a − 1.",
    "certain_if_all_agree": "Labels that all agree leave a standard error of 0. Take (k + 1) / "
    "(n + 2) under the root.",
    "variance_given": "The second number is a variance: the root is missing.",
    "results_exchanged": "The two numbers are exchanged: success first.",
}

# --- the same prompts -------------------------------------------------------------------------


def pair_case(
    stage: str, name: str, baseline: Sequence[bool], candidate: Sequence[bool], z: float = 2.0
) -> Case:
    """Two models on the same prompts."""
    inputs = {"baseline_right": list(baseline), "candidate_right": list(candidate)}
    return Case(stage=stage, name=name, inputs=inputs, options={"z": z})


def pair_of(gained: int, lost: int, both: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Lay out how two models answered."""
    kinds = [(False, True)] * gained + [(True, False)] * lost
    kinds += [(True, True)] * both + [(False, False)] * neither
    Random(len(kinds)).shuffle(kinds)
    baseline, candidate = zip(*kinds, strict=True)
    return list(baseline), list(candidate)


def pair_drawn(seed: int, prompts: int) -> tuple[list[bool], list[bool]]:
    """Draw two models who often agree."""
    random = Random(seed)
    baseline = [random.random() < 0.5 for _ in range(prompts)]
    return baseline, [each ^ (random.random() < 0.3) for each in baseline]


PAIR_CASES = (
    pair_case(SMALLEST, "one prompt, gained", [False], [True]),
    pair_case(SMALLEST, "two prompts, one gained", [False, True], [True, True]),
    pair_case(DIFFER, "three gained, one lost", *pair_of(3, 1, 0, 0)),
    pair_case(DIFFER, "one gained, four lost", *pair_of(1, 4, 0, 0)),
    pair_case(DIFFER, "two gained, two lost", *pair_of(2, 2, 1, 1)),
    pair_case(AGREE, "three gained, most solved by both", *pair_of(3, 0, 9, 0)),
    pair_case(AGREE, "three gained, most solved by neither", *pair_of(3, 1, 1, 11)),
    pair_case(AGREE, "nothing differs", *pair_of(0, 0, 4, 3)),
    pair_case(SURER, "z = 1", *pair_of(4, 1, 3, 3), 1.0),
    pair_case(SURER, "z = 3", *pair_of(2, 5, 6, 1), 3.0),
    pair_case(SEEDED, "41 prompts", *pair_drawn(9, 41), 1.6),
    pair_case(SEEDED, "80 prompts", *pair_drawn(10, 80), 2.4),
)
PAIR_MISTAKES = {
    "compared_as_strangers": "You took two shares of two sets of prompts. The prompts are the "
    "same: take the differences first.",
    "sign_turned": "The difference is baseline minus candidate. A gain is to be above 0.",
    "gains_only": "Only gained prompts count. Lost ones are subtracted.",
    "over_those_that_differ": "You divided by the prompts that differ. All prompts count.",
    "mean_square_not_taken_away": "The square of the mean difference is still in the variance.",
    "sum_for_the_mean": "You gave the interval of gained − lost, not divided by the prompts.",
    "root_of_n_forgotten": "That is the spread of one prompt's difference. The mean of n has one "
    "that is √n times smaller.",
    "one_z_forgotten": "The root is not multiplied by z.",
    "sorted_first": "Each model's answers were sorted. Then nobody knows which prompt was which.",
    "ends_exchanged": "The upper end stands first. Give the lower end, then the upper.",
}

# --- a loss beyond noise ----------------------------------------------------------------------


def loss_case(
    stage: str,
    name: str,
    best: list[bool],
    now: list[bool],
    *,
    accuracy: float = 0.8,
    z: float = 2.0,
) -> Case:
    """Labels of the best checkpoint and of the one at hand."""
    return Case(
        stage=stage,
        name=name,
        inputs={"best_labels": best, "labels": now},
        options={"accuracy": accuracy, "z": z},
    )


LOSS_CASES = (
    loss_case(SMALLEST, "two labels each", [True, True], [False, False]),
    loss_case(SMALLEST, "the same labels", [True, False], [True, False]),
    loss_case(LOSSES, "fewer right than before", flags(14, 16), flags(5, 16)),
    loss_case(LOSSES, "more right than before", flags(5, 16), flags(14, 16)),
    loss_case(LOSSES, "nothing right any more", flags(12, 16), flags(3, 16)),
    loss_case(NOISE, "the best has more labels", flags(52, 64), flags(5, 9)),
    loss_case(NOISE, "the one at hand has more", flags(7, 8), flags(20, 50)),
    loss_case(JUDGES, "a judge who is never wrong", flags(9, 10), flags(4, 10), accuracy=1.0),
    loss_case(JUDGES, "a judge who errs often", flags(9, 10), flags(4, 10), accuracy=0.65),
    loss_case(SURER, "z = 1", flags(12, 20), flags(6, 20), z=1.0),
    loss_case(SURER, "z = 3", flags(12, 20), flags(6, 20), z=3.0),
    loss_case(
        SEEDED, "64 and 32 labels", flags_drawn(11, 64, 0.7), flags_drawn(12, 32, 0.4),
        accuracy=0.85, z=1.7,
    ),
    loss_case(
        SEEDED, "40 and 90 labels", flags_drawn(13, 40, 0.6), flags_drawn(14, 90, 0.5),
        accuracy=0.9, z=2.3,
    ),
)  # fmt: skip
LOSS_MISTAKES = {
    "errors_added": "The two standard errors are added up. Independent noises add their squares.",
    "noise_of_the_best_only": "Only the best checkpoint's noise counts. Both are estimates.",
    "noise_of_now_only": "Only the noise of the checkpoint at hand counts. The best is an "
    "estimate, too, and one that was chosen for being high.",
    "gain_for_loss": "The sign is turned: a loss is best − now.",
    "judge_believed": "The judge's raw shares were compared. Its errors make every loss smaller.",
    "noise_not_stretched": "The noise is that of a judge who never errs.",
    "noise_added_on": "The noise is added to the loss. A loss must exceed it.",
    "z_forgotten": "The noise is not multiplied by z.",
    "variances_not_rooted": "The noise is a variance: the root is missing.",
    "labels_in_one_heap": "The labels of both were put together for the noise. They are two "
    "samples, each with its own share.",
}

# --- by hand -----------------------------------------------------------------------------------

HAND_MISTAKES = {
    "certain_at_none": "a is 0 by the usual formula. It takes the noise at the observed share.",
    "half_of_z_squared": "In a, the upper end of none is z²/(n + z²): the two halves add up.",
    "right_ones_only": "In b, the judge also calls wrong answers right, now and then.",
    "errors_exchanged": "In b, a is the probability of a correct label, not of a wrong one.",
    "divided_by_accuracy": "In c, the share was divided by a. Take 1 − a away, divide by 2a − 1.",
    "not_stretched": "In c, the errors were taken away, and the rest was not stretched.",
    "noise_for_labels": "d is the factor of the noise. Labels grow with its square.",
    "by_accuracy": "In d, the noise grows by 1/(2a − 1), not by 1/a.",
    "one_side": "In e, five gained and none lost is as uneven as none gained and five lost.",
    "put_back": "In f, the first answer was put back before the second was drawn.",
    "twice_the_share": "f is not twice the share: both tries may be right.",
    "both_right": "f is not the probability that both are right. One is enough.",
    "all_prompts_given": "g is the number of all prompts then. Asked for are those added.",
    "root_of_ten": "In g, the difference shrinks with the number of prompts, not with its root.",
}

EXERCISES = (
    FunctionExercise(
        id="evidence.share_interval",
        cases=WILSON_CASES,
        gives="two numbers",
        mistakes=WILSON_MISTAKES,
        hints=(
            "Which shares p would make this count no surprise? The noise of a count belongs to p, "
            "not to what was observed.",
            "|k/n − p| ≤ z·√(p(1 − p)/n), squared, is a quadratic inequality in p. Its two roots "
            "are the ends.",
            "(k + z²/2 ± z·√(k·(n − k)/n + z²/4)) / (n + z²)",
        ),
    ),
    FunctionExercise(
        id="evidence.one_of_k",
        cases=PASS_CASES,
        gives="number",
        returns="one number: the mean over prompts",
        mistakes=PASS_MISTAKES,
        hints=(
            "One prompt first. In how many ways can you take k of its n answers? In how many of "
            "them is none right?",
            "`math.comb(n, k)` counts ways; it is 0 where k is larger than n.",
            "pass@k = 1 − C(n − c, k) / C(n, k), then the mean over prompts",
        ),
    ),
    FunctionExercise(
        id="evidence.judged_success",
        cases=JUDGE_CASES,
        gives="two numbers",
        mistakes=JUDGE_MISTAKES,
        hints=(
            "Write down which share a judge of accuracy a calls right if p of the answers are, and "
            "solve for p.",
            "A number that is stretched by a factor has a standard error that is stretched by it.",
            "p̂ = (k/n − (1 − a)) / (2a − 1);  q̃ = (k + 1)/(n + 2);  se = √(q̃(1 − q̃)/n) / (2a − 1)",
        ),
    ),
    FunctionExercise(
        id="evidence.paired_interval",
        cases=PAIR_CASES,
        gives="two numbers",
        mistakes=PAIR_MISTAKES,
        hints=(
            "Make one number of each prompt: 1 if it was gained, −1 if it was lost, 0 otherwise.",
            "The mean of n numbers is as uncertain as their standard deviation over √n.",
            "d̄ = (gained − lost)/n;  variance = (gained + lost)/n − d̄²;  d̄ ± z·√(variance/n)",
        ),
    ),
    FunctionExercise(
        id="evidence.mended_excess",
        cases=LOSS_CASES,
        gives="number",
        returns="one number: above 0 where the loss exceeds the noise",
        mistakes=LOSS_MISTAKES,
        starts_with="noise_of_now_only",
        hints=(
            "What is uncertain here? Try the function with four labels of the best checkpoint, and "
            "then with four hundred: should the result be the same?",
            "Two estimates from different labels err independently of each other.",
            "p̂_best − p̂_now − z·√(se_best² + se_now²)",
        ),
    ),
    NumbersExercise(
        id="evidence.evidence_by_hand",
        questions={
            "a": (
                "upper end for none of 16, z = 2",
                "With k = 0, Wilson's ends are 0 and z²/(n + z²).",
            ),
            "b": (
                "share that the judge calls right",
                "Right answers it sees, and wrong ones that it takes for right.",
            ),
            "c": ("success behind a share of 0.58", "Turn the formula of b around."),
            "d": (
                "how many times as many labels as a judge who is never wrong",
                "The standard error grows by 1/(2a − 1), and it falls with the root of n.",
            ),
            "e": ("p-value of 5 gained, none lost", "Twice the probability of five equal throws."),
            "f": (
                "pass@2 with 2 of 5 right",
                "How many pairs are there, how many hold wrong ones only?",
            ),
            "g": (
                "prompts that both models solve, added to make the difference ten times smaller",
                "The difference is divided by all prompts.",
            ),
        },
        tolerance=0.002,
        mistakes=HAND_MISTAKES,
        hints=(
            "Each of them is one line. Write the formula first, then the numbers.",
            "b: p·a + (1 − p)·(1 − a). d: labels grow with the square of the noise.",
            "a = z²/(n + z²);  d = 1/(2a − 1)²;  e = 2/2⁵;  f = 1 − C(3, 2)/C(5, 2)",
        ),
    ),
)
