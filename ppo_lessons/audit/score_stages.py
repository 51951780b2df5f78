"""Audit what is scored: next values, TD errors, advantages, returns."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ppo_lessons.audit.explain import Explanation, Prediction, explain
from ppo_lessons.audit.findings import finding, not_enough
from ppo_lessons.audit.intake import Facts
from ppo_lessons.audit.loss_rules import TARGET, standardised
from ppo_lessons.audit.losses import Target
from ppo_lessons.audit.report import Finding
from ppo_lessons.audit.rules import Rule
from ppo_lessons.audit.scan import Scan, rows_below
from ppo_lessons.audit.scan_rules import SCAN, earlier, later


def nothing(stage: object) -> Iterator[object]:
    """For rules that are found in another way than by changing a stage."""
    yield from ()


NORMALIZED = Rule(
    "normalized_already", "The advantages are normalised over the whole batch.", "", "gae", nothing
)
OTHER_SETTINGS = Rule(
    "other_settings", "They follow from another γ or λ than was given.",
    "Find out which γ and λ the loop really uses.", "gae", nothing,
)  # fmt: skip
LAMBDA_ONE = Rule(
    "sums_of_rewards",
    "The targets are discounted sums of rewards, with V behind the last: λ = 1.",
    "", "gae", nothing,
)  # fmt: skip
LAMBDA_ZERO = Rule(
    "one_step_targets", "The targets are r + γ·V', one step ahead: λ = 0.", "", "gae", nothing
)
FLAGS_BESIDE = Rule(
    "flags_late", "The flags stand one row after the step that ended the episode.",
    "Store the flag beside the reward of the same step.", "rollout", nothing,
)  # fmt: skip
FLAGS_BEFORE = Rule(
    "flags_early", "The flags stand one row before the step that ended the episode.",
    "Store the flag beside the reward of the same step.", "rollout", nothing,
)  # fmt: skip
AFTER_THE_RESET = next(rule for rule in SCAN.rules if rule.name == "next_value_after_the_reset")
SAME_STATE = next(rule for rule in SCAN.rules if rule.name == "next_value_is_this_value")


# --- the facts ----------------------------------------------------------------------------------


def two_flags(facts: Facts) -> tuple[Tensor, Tensor] | None:
    """`terminated` and `truncated`, out of whatever flags were given; None if there are none."""
    rows = facts.rows
    terminated, truncated, ended = (rows.get(name) for name in ("terminated", "truncated", "ended"))
    if ended is None and "starts" in rows and terminated is None:
        last = facts.columns.get("last_ended", torch.zeros_like(rows["starts"][0]))
        ended = later(rows["starts"], last)
    if terminated is None and ended is not None:
        truncated = torch.zeros_like(ended) if truncated is None else truncated
        terminated = ended & ~truncated
    if truncated is None and terminated is not None and ended is not None:
        truncated = ended & ~terminated
    if terminated is None or truncated is None:
        return None  # half of the facts: rows that it says nothing about would seem wrong
    return terminated, truncated


def lacking(facts: Facts) -> tuple[str, ...]:
    """What a scan needs and was not given."""
    needs = list(facts.missing("values", "gamma", "gae_lambda"))
    if "rewards" not in facts and "bootstrapped_rewards" not in facts:
        needs.insert(0, "rewards")
    if two_flags(facts) is None:
        needs.append("truncated" if "terminated" in facts else "terminated and truncated")
    elif "starts" in facts and not ({"terminated", "ended", "last_ended"} & given_names(facts)):
        needs.append("last_ended")
    return tuple(needs)


def given_names(facts: Facts) -> set[str]:
    """All names of rows and columns."""
    return {*facts.rows, *facts.columns}


def build_scan(facts: Facts, *, gae_lambda: float | None = None) -> Scan:
    """The right way to compute advantages from these facts; nothing may be lacking."""
    flags = two_flags(facts)
    assert flags is not None
    terminated, truncated = flags
    rewards = facts.rows.get("rewards")
    if rewards is None:  # the future of a time limit is in them
        rewards, terminated = facts.rows["bootstrapped_rewards"], terminated | truncated
        truncated = torch.zeros_like(truncated)
    values = facts.rows["values"]
    known, last_known = torch.ones_like(terminated), True
    next_values = facts.rows.get("next_values")
    if next_values is None:
        last_known = "last_values" in facts
        last = facts.columns.get("last_values", torch.zeros_like(values[0]))
        next_values = later(values, last)
        known &= ~(truncated & ~terminated)
        known[-1] &= last_known | terminated[-1]
    gamma = facts.settings["gamma"]
    gae_lambda = facts.settings["gae_lambda"] if gae_lambda is None else gae_lambda
    return Scan(
        rewards=rewards, values=values, next_values=next_values.nan_to_num(),
        terminated=terminated, truncated=truncated,
        cut_future=terminated, cut_trace=terminated | truncated,
        known=known, last_known=last_known, gamma=gamma, gae_lambda=gae_lambda,
        discount=gamma, carried=gamma * gae_lambda,
        rounding=facts.rounding("values", "next_values", "advantages", "returns", "td_errors"),
        after=rows_below(values.shape), written=torch.ones_like(terminated),
    )  # fmt: skip


def counting(facts: Facts, predict: Callable[[Scan], Prediction]) -> Callable[[Scan], Prediction]:
    """Leave rows that are no steps out of every comparison."""
    valid = facts.rows.get("valid")
    if valid is None:
        return predict

    def masked(scan: Scan) -> Prediction:
        seen = predict(scan)
        known = valid if seen.known is None else valid & seen.known
        return replace(seen, known=known)

    return masked


# --- next values --------------------------------------------------------------------------------


def audit_next_values(facts: Facts) -> Finding | None:
    """V' is V of the row after, as long as the episode goes on; behind its end it is not."""
    flags = two_flags(facts)
    if "next_values" not in facts or "values" not in facts or flags is None:
        return None
    values, next_values = facts.rows["values"], facts.rows["next_values"]
    terminated, truncated = flags
    following = later(values, next_values[-1])
    slack = 20 * facts.rounding("values", "next_values") * (1 + values.abs() + following.abs())
    apart = ~((next_values - following).abs() <= slack) & real_pairs(facts, values)
    ended = terminated | truncated
    right = Prediction(following, slack, ~ended & real_pairs(facts, values))
    if not (apart & ~ended).any():
        cut = truncated & ~terminated & real_pairs(facts, values)
        cut[-1] = False
        varies = bool((values.max() - values.min()) > slack.max())
        if cut.any() and varies and not (apart & cut).any():
            wrong = Prediction(next_values, slack, ~cut)
            return finding("next_values", next_values, wrong, Explanation((AFTER_THE_RESET,)))
        return finding("next_values", next_values, right, Explanation(()))
    return finding("next_values", next_values, right, shifted(facts, apart, ended))


def shifted(facts: Facts, apart: Tensor, ended: Tensor) -> Explanation:
    """Why V' parts from V of the row after where the flags say that the episode goes on."""
    values, next_values = facts.rows["values"], facts.rows["next_values"]
    real = real_pairs(facts, values)
    if bool(((next_values - values).abs() <= 1e-5 * (1 + values.abs()))[real & ~ended].all()):
        return Explanation((SAME_STATE,))
    none = torch.zeros_like(ended[0])
    if not ((apart & real & ~later(ended, none))[:-1]).any():
        return Explanation((FLAGS_BESIDE,))
    if not (apart & real & ~earlier(ended, none)).any():
        return Explanation((FLAGS_BEFORE,))
    return Explanation(None)


def real_pairs(facts: Facts, like: Tensor) -> Tensor:
    """Rows that are steps, and whose row after is one."""
    valid = facts.rows.get("valid", torch.ones_like(like, dtype=torch.bool))
    return valid & later(valid, valid[-1])


# --- advantages ---------------------------------------------------------------------------------


def audit_errors(facts: Facts) -> Finding | None:
    """δ = r + γ·V' − V."""
    if "td_errors" not in facts:
        return None
    needs = tuple(name for name in lacking(facts) if name != "gae_lambda")
    if needs:
        return not_enough("td_errors", needs)
    given = facts.rows["td_errors"]
    scan = build_scan(facts, gae_lambda=facts.settings.get("gae_lambda", 1.0))
    predict = counting(facts, lambda stage: stage.predict_errors(given))
    seen = explain(given, scan, predict, SCAN.rules)
    return finding("td_errors", given, predict(scan), seen)


def audit_advantages(facts: Facts) -> Finding | None:
    """Â = δ + γ·λ·Â of the row after."""
    if "advantages" not in facts:
        return None
    needs = lacking(facts)
    if "rewards" in needs and len(needs) > 2:  # a minibatch: nobody expects rewards in it
        return None
    if needs:
        return not_enough("advantages", needs)
    given, scan = facts.rows["advantages"], build_scan(facts)
    seen = explain_scan(facts, given, scan)
    right = counting(facts, lambda stage: stage.predict(given))(scan)
    return finding("advantages", given, right, seen)


def explain_scan(facts: Facts, given: Tensor, scan: Scan) -> Explanation:
    """By one rule or two; by a normalisation afterwards; by another γ or λ."""
    predict = counting(facts, lambda stage: stage.predict(given))
    at = places(given, predict(scan))
    seen = explain(
        given, scan, predict, SCAN.rules, hopeful=lambda stage: stage.may_reproduce(given, at)
    )
    if seen.found is not None:
        return seen
    stages = [((), scan)]
    stages += [((rule,), stage) for rule in SCAN.rules for stage in rule.vary(scan)]
    for rules, stage in stages:
        if normalized(given, stage, predict):
            return Explanation((NORMALIZED, *rules))
    for rules, stage in stages:
        if rule := other_settings(given, stage, predict):
            return Explanation((rule, *rules))
    return seen


def places(given: Tensor, right: Prediction) -> Tensor:
    """Where a quick look pays: some of the places that part, and some of all that count."""
    known = torch.ones_like(given, dtype=torch.bool) if right.known is None else right.known
    apart = torch.nonzero((right.parts_from(given)).flatten()).flatten()
    every = torch.nonzero(known.flatten()).flatten()
    return torch.cat([some[:: max(1, len(some) // 100)] for some in (apart, every)])


def normalized(given: Tensor, scan: Scan, predict: Callable[[Scan], Prediction]) -> bool:
    """Whether the numbers are this stage's, shifted and scaled over the whole batch."""
    usual = torch.equal(scan.after, rows_below(given.shape))
    if not usual or not scan.known.all() or abs(float(given.mean())) > 1e-3:
        return False
    advantages = scan.advantages()
    slack = 4 * scan.rounding * (1 + given.abs())
    return any(Prediction(made, slack).reproduces(given) for made in standardised(advantages))


def other_settings(given: Tensor, scan: Scan, predict: Callable[[Scan], Prediction]) -> Rule | None:
    """γ and γ·λ by least squares; believed only if they then reproduce every number."""
    if isinstance(scan.baseline, Tensor) or scan.scale != 1.0:
        return None
    after = scan.row_after(given, torch.zeros_like(given)).masked_fill(scan.cut_trace, 0)
    columns = torch.stack([scan.futures.flatten(), after.flatten()], dim=1)
    goal = (given - scan.rewards + scan.baseline * scan.values).flatten()
    kept = (scan.known & scan.written).flatten()
    if int(kept.sum()) < 8 or not (columns[kept] != 0).any(dim=0).all():
        return None
    discount, carried = torch.linalg.lstsq(columns[kept], goal[kept, None]).solution[:, 0].tolist()
    if not 0 < discount <= 1.0001 or not 0 <= carried <= 1.0001:
        return None
    stage = replace(scan, discount=discount, carried=carried, rounding=4 * scan.rounding)
    if not predict(stage).reproduces(given):
        return None
    numbers = f"They follow from γ = {discount:.4g} and λ = {carried / discount:.4g}."
    return replace(OTHER_SETTINGS, sentence=numbers)


# --- returns ------------------------------------------------------------------------------------


def audit_returns(facts: Facts, advantages: Finding | None) -> Finding | None:
    """Hold that returns = Â + V, with the Â from before any normalisation."""
    if "returns" not in facts:
        return None
    raw = raw_advantages(facts, advantages)
    if "values" not in facts or (raw is None and lacking(facts)):
        needs = lacking(facts) or ("values",)
        return None if "rewards" in needs and len(needs) > 2 else not_enough("returns", needs)
    given, values = facts.rows["returns"], facts.rows["values"]
    if raw is None:
        seen, right = explain_targets(facts, given - values)
        return finding("returns", given, replace(right, numbers=right.numbers + values), seen)
    target = Target(
        raw, values, facts.rows.get("next_values"), new_values(facts),
        rounding=facts.rounding("values", "advantages", "returns"), known=facts.rows.get("valid"),
    )  # fmt: skip
    seen = explain(given, target, lambda stage: stage.predict(), TARGET.rules)
    if seen.found is None and not lacking(facts):
        other, _ = explain_targets(facts, given - values)
        seen = other if other.found is not None else seen
    return finding("returns", given, target.predict(), seen)


def explain_targets(facts: Facts, implied: Tensor) -> tuple[Explanation, Prediction]:
    """How the advantages came about that are implied by targets: with λ, with 1, or with 0."""
    scan = build_scan(facts)
    right = counting(facts, lambda stage: stage.predict(implied))(scan)
    tried: list[tuple[Explanation, tuple[Rule, ...]]] = [(explain_scan(facts, implied, scan), ())]
    if tried[0][0].found == ():
        return tried[0][0], right
    for gae_lambda, rule in ((1.0, LAMBDA_ONE), (0.0, LAMBDA_ZERO)):
        if scan.gae_lambda != gae_lambda:
            other = build_scan(facts, gae_lambda=gae_lambda)
            tried.append((explain_scan(facts, implied, other), (rule,)))
    explained = [(seen, rules) for seen, rules in tried if seen.found is not None]
    if not explained:
        return tried[0][0], right
    seen, rules = min(explained, key=lambda pair: len(pair[0].found or ()))
    return replace(seen, found=rules + (seen.found or ())), right


def raw_advantages(facts: Facts, advantages: Finding | None) -> Tensor | None:
    """The advantages from before any normalisation; None if they cannot be known."""
    if "advantages" not in facts:
        return None
    if advantages is None or "normalized_already" not in advantages.names:
        return facts.rows["advantages"]
    return build_scan(facts).advantages()


def new_values(facts: Facts) -> Tensor | None:
    """The values of the loss in the shape of the rows, if they are for all of them."""
    table, given = facts.rows["values"], facts.samples.get("new_values")
    return given.reshape(table.shape) if given is not None and given.shape == (
        table.numel(),
    ) else None  # fmt: skip
