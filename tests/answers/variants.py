"""Answers to the exercises of lesson 15."""

import math
from statistics import fmean, stdev

import torch
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import variants

EXERCISES = (
    "compared_in_group",
    "compared_with_others",
    "mended_mean",
    "policy_preference_loss",
    "unseen_method",
    "variants_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
RIGHT["compared_in_group"]["package"] = variants.group_advantages
RIGHT["compared_with_others"]["package"] = variants.rloo_advantages
RIGHT["policy_preference_loss"]["package"] = variants.dpo_loss


def group_by_group(of_one):
    """Apply a function to the scores of each group."""

    def function(scores, groups, **options):
        found = torch.zeros_like(scores)
        for group in groups.unique():
            found[groups == group] = of_one(scores[groups == group], **options)
        return found

    return function


def row_by_row(of_one):
    """Apply a function to as many rows as there are groups, cut in the order given."""

    def function(scores, groups, **options):
        count = len(groups.unique())
        rows = torch.arange(len(scores)) * count // len(scores)
        return group_by_group(of_one)(scores, rows, **options)

    return function


# --- GRPO --------------------------------------------------------------------------------------


@passes("compared_in_group")
def by_loops(scores, groups, *, added_spread):
    listed, found = groups.tolist(), []
    for score, group in zip(scores.tolist(), listed, strict=True):
        own = [other for other, its in zip(scores.tolist(), listed, strict=True) if its == group]
        found.append((score - fmean(own)) / (stdev(own) + added_spread))
    return torch.tensor(found, dtype=scores.dtype)


@passes("compared_in_group")
def by_a_matrix(scores, groups, added_spread=1e-4):
    same = (groups.unsqueeze(0) == groups.unsqueeze(1)).to(scores.dtype)
    count = same.sum(1)
    centred = scores - same @ scores / count
    return centred / ((same @ centred.square() / (count - 1)).sqrt() + added_spread)


RIGHT["compared_in_group"]["with_std"] = group_by_group(
    lambda own, *, added_spread: (own - own.mean()) / (own.std() + added_spread)
)


def compared(
    baseline=lambda own: own.mean(), scale=lambda own, added: own.std() + added, *, sign=1
):
    """Right but for one thing, within a group."""
    return lambda own, *, added_spread: sign * (own - baseline(own)) / scale(own, added_spread)


def of_the_batch(scores, groups, *, added_spread):
    centred = group_by_group(lambda own: own - own.mean())(scores, groups)
    return centred / (scores.std() + added_spread)


def batch_mean(scores, groups, *, added_spread):
    spread = group_by_group(lambda own: own.std())(scores, groups)
    return (scores - scores.mean()) / (spread + added_spread)


WRONG["compared_in_group"] |= {
    "divided_by_n": group_by_group(
        compared(scale=lambda own, added: own.std(unbiased=False) + added)
    ),
    "spread_of_the_batch": of_the_batch,
    "mean_of_the_batch": batch_mean,
    "spread_left_out": group_by_group(compared(scale=lambda own, added: 1)),
    "nothing_added": group_by_group(compared(scale=lambda own, added: own.std())),
    "divided_by_the_variance": group_by_group(compared(scale=lambda own, added: own.var() + added)),
    "added_under_the_root": group_by_group(
        compared(scale=lambda own, added: (own.var() + added).sqrt())
    ),
    "sign_turned": group_by_group(compared(sign=-1)),
    "rows_for_groups": row_by_row(compared()),
    "own_score_left_out": group_by_group(
        compared(baseline=lambda own: (own.sum() - own) / (len(own) - 1))
    ),
}

# --- RLOO --------------------------------------------------------------------------------------


@passes("compared_with_others")
def one_left_out(scores, groups):
    found = []
    for place, score in enumerate(scores):
        mates = groups == groups[place]
        mates[place] = False
        found.append(score - scores[mates].mean())
    return torch.stack(found)


@passes("compared_with_others")
def by_sums_of_groups(scores, groups):
    names, place = groups.unique(return_inverse=True)
    sums = torch.zeros(len(names), dtype=scores.dtype).index_add(0, place, scores)
    counts = torch.bincount(place)
    return scores - (sums[place] - scores) / (counts[place] - 1)


RIGHT["compared_with_others"]["by_the_factor"] = group_by_group(
    lambda own: len(own) / (len(own) - 1) * (own - own.mean())
)


def others_mean(own):
    return (own.sum() - own) / (len(own) - 1)


def best_other(own):
    places = range(len(own))
    return torch.stack([max(own[j] for j in places if j != i) for i in places])


WRONG["compared_with_others"] |= {
    "own_score_in_the_mean": group_by_group(lambda own: own - own.mean()),
    "others_divided_by_all": group_by_group(lambda own: own - (own.sum() - own) / len(own)),
    "factor_upside_down": group_by_group(
        lambda own: (len(own) - 1) / len(own) * (own - own.mean())
    ),
    "others_of_the_batch": lambda scores, groups: (
        scores - (scores.sum() - scores) / (len(scores) - 1)
    ),
    "others_added_up": group_by_group(lambda own: own - (own.sum() - own)),
    "baseline_given": group_by_group(others_mean),
    "sign_turned": group_by_group(lambda own: others_mean(own) - own),
    "rows_for_groups": row_by_row(lambda own: own - others_mean(own)),
    "best_of_the_others": group_by_group(lambda own: own - best_other(own)),
    "divided_by_the_spread": group_by_group(
        lambda own: (own - others_mean(own)) / (own.std() + 1e-4)
    ),
}

# --- the weight of a token ---------------------------------------------------------------------


@passes("mended_mean")
def chosen_and_averaged(terms, mask):
    return terms[mask].mean()


@passes("mended_mean")
def by_aggregate(terms, mask):
    return variants.aggregate(terms, mask, mode="token_mean")


@passes("mended_mean")
def token_by_token(terms, mask):
    total, count = terms.new_zeros(()), 0
    for row, kept in zip(terms, mask, strict=True):
        for term, counts in zip(row, kept, strict=True):
            if counts:
                total, count = total + term, count + 1
    return total / count


def chosen(terms, mask):
    return terms.masked_fill(~mask, 0)


def pieces_averaged(terms, mask):
    half = max(len(terms) // 2, 1)
    pieces = [terms[:half][mask[:half]], terms[half:][mask[half:]]]
    return torch.stack([piece.mean() for piece in pieces if len(piece)]).mean()


WRONG["mended_mean"] |= {
    "mean_of_means": lambda terms, mask: (chosen(terms, mask).sum(1) / mask.sum(1)).mean(),
    "means_added_up": lambda terms, mask: (chosen(terms, mask).sum(1) / mask.sum(1)).sum(),
    "divided_by_answers": lambda terms, mask: chosen(terms, mask).sum() / len(terms),
    "padding_counted": lambda terms, mask: chosen(terms, mask).mean(),
    "padding_in_the_sum": lambda terms, mask: terms.sum() / mask.sum(),
    "added_up": lambda terms, mask: chosen(terms, mask).sum(),
    "junk_multiplied": lambda terms, mask: (terms * mask).sum() / mask.sum(),
    "sign_turned": lambda terms, mask: -terms[mask].mean(),
    "pieces_averaged": pieces_averaged,
    "cut_from_the_terms": lambda terms, mask: terms.detach()[mask].mean(),
}

# --- DPO ---------------------------------------------------------------------------------------


@passes("policy_preference_loss")
def as_softplus(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    moved = (rejected - chosen) - (rejected_reference - chosen_reference).detach()
    return functional.softplus(beta * moved).mean()


@passes("policy_preference_loss")
def as_cross_entropy(chosen, rejected, chosen_reference, rejected_reference, beta=0.1):
    with torch.no_grad():
        start = torch.stack([chosen_reference, rejected_reference], dim=1)
    logits = beta * (torch.stack([chosen, rejected], dim=1) - start)
    return functional.cross_entropy(logits, torch.zeros(len(chosen), dtype=torch.int64))


@passes("policy_preference_loss")
def pair_by_pair(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    total = chosen.new_zeros(())
    for place in range(len(chosen)):
        up = chosen[place] - chosen_reference[place].item()
        down = rejected[place] - rejected_reference[place].item()
        total = total - functional.logsigmoid(beta * (up - down))
    return total / len(chosen)


def preference(
    margin=lambda up, down, beta: beta * (up - down),
    *,
    loss=lambda margin: -functional.logsigmoid(margin),
    result=torch.mean,
):
    """Right but for one thing."""

    def function(chosen, rejected, chosen_reference, rejected_reference, *, beta):
        up, down = chosen - chosen_reference.detach(), rejected - rejected_reference.detach()
        return result(loss(margin(up, down, beta)))

    return function


def reference_left_out(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    return -functional.logsigmoid(beta * (chosen - rejected)).mean()


def references_crossed(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    return preference()(chosen, rejected, rejected_reference, chosen_reference, beta=beta)


def beta_outside(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    return beta * preference()(chosen, rejected, chosen_reference, rejected_reference, beta=1.0)


def two_losses(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    up = beta * (chosen - chosen_reference.detach())
    down = beta * (rejected - rejected_reference.detach())
    return -(functional.logsigmoid(up) + functional.logsigmoid(-down)).mean() / 2


def reference_that_learns(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    margin = (chosen - chosen_reference) - (rejected - rejected_reference)
    return -functional.logsigmoid(beta * margin).mean()


WRONG["policy_preference_loss"] |= {
    "reference_left_out": reference_left_out,
    "pair_swapped": preference(lambda up, down, beta: beta * (down - up)),
    "beta_outside": beta_outside,
    "divided_by_beta": preference(lambda up, down, beta: (up - down) / beta),
    "references_crossed": references_crossed,
    "pairs_added_up": preference(result=torch.sum),
    "two_losses": two_losses,
    "margin_given": preference(loss=lambda margin: -margin),
    "probability_given": preference(loss=torch.sigmoid),
    "chosen_imitated": lambda chosen, rejected, chosen_reference, rejected_reference, *, beta: (
        -chosen.mean()
    ),
    "reference_that_learns": reference_that_learns,
    "logarithm_of_a_sigmoid": preference(loss=lambda margin: -margin.sigmoid().log()),
}

# --- predictions -------------------------------------------------------------------------------

CLASSIFIED = {"a": 3.0, "b": 2.0, "c": 4.0, "d": 1.0, "e": 1.3, "f": 0.0, "g": 3.0}
RIGHT["unseen_method"] = {
    "by_hand": CLASSIFIED,
    "a_list": list(CLASSIFIED.values()),
    "a_tensor": torch.tensor(list(CLASSIFIED.values()), dtype=torch.float64),
}
WRONG["unseen_method"] = {
    "own_score_counted": CLASSIFIED | {"a": 2.0},
    "compared_with_the_batch": CLASSIFIED | {"a": 4.0},
    "spread_of_its_group": CLASSIFIED | {"b": 1.0},
    "scale_overlooked": CLASSIFIED | {"b": 3.0},
    "tokens_alike": CLASSIFIED | {"c": 1.0},
    "means_within_answers": CLASSIFIED | {"c": 2.0},
    "ratio_of_the_answer": CLASSIFIED | {"d": 2.0},
    "usual_upper_edge": CLASSIFIED | {"e": 1.2},
    "no_upper_edge": CLASSIFIED | {"e": 0.0},
    "usual_lower_edge": CLASSIFIED | {"f": 0.8},
    "lower_edge_by_symmetry": CLASSIFIED | {"f": 0.7},
    "charged_in_the_reward": CLASSIFIED | {"g": 1.0},
}
SOLVED = {
    "a": 0.5 / math.sqrt(1 / 3),
    "b": -2 / 3,
    "c": 0.52,
    "d": 0.125,
    "e": 1 / 12,
    "f": -0.2,
    "g": math.log(9) / 0.2,
    "h": -5.0,
}
RIGHT["variants_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["variants_by_hand"] = {
    "spread_by_n": SOLVED | {"a": 1.0},
    "not_divided": SOLVED | {"a": 0.5},
    "own_score_in": SOLVED | {"b": -0.5},
    "sign_lost": SOLVED | {"b": 2 / 3},
    "only_all_right": SOLVED | {"c": 0.512},
    "silence_exchanged": SOLVED | {"c": 0.48},
    "places_counted": SOLVED | {"d": 1 / 12},
    "batch_not_divided": SOLVED | {"e": 1 / 6},
    "other_answer": SOLVED | {"e": 0.25},
    "half_forgotten": SOLVED | {"f": -0.4},
    "wrong_way": SOLVED | {"f": 0.2},
    "beta_forgotten": SOLVED | {"g": math.log(9)},
    "beta_multiplied": SOLVED | {"g": 0.2 * math.log(9)},
    "cut_like_a_good_one": SOLVED | {"h": -2.4},
    "limit_reached": SOLVED | {"h": -6.0},
}

# --- slow definitions --------------------------------------------------------------------------


def mates(scores, groups, place):
    return [
        other
        for index, (other, its) in enumerate(zip(scores, groups, strict=True))
        if its == groups[place] and index != place
    ]


def slow_compared(scores, groups, *, added_spread):
    found = []
    for place, score in enumerate(scores):
        own = [*mates(scores, groups, place), score]
        mean = sum(own) / len(own)
        spread = math.sqrt(sum((each - mean) ** 2 for each in own) / (len(own) - 1))
        found.append((score - mean) / (spread + added_spread))
    return found


def slow_others(scores, groups):
    found = []
    for place, score in enumerate(scores):
        others = mates(scores, groups, place)
        found.append(score - sum(others) / len(others))
    return found


def slow_mean(terms, mask):
    pairs = zip(terms, mask, strict=True)
    kept = [term for row, on in pairs for term, counts in zip(row, on, strict=True) if counts]
    return sum(kept) / len(kept)


def slow_preference(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    total = 0.0
    for pair in zip(chosen, rejected, chosen_reference, rejected_reference, strict=True):
        margin = beta * (pair[0] - pair[2] - (pair[1] - pair[3]))
        total += max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))
    return total / len(chosen)


ORACLES = {
    "compared_in_group": slow_compared,
    "compared_with_others": slow_others,
    "mended_mean": slow_mean,
    "policy_preference_loss": slow_preference,
}
