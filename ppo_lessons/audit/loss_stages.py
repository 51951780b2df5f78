"""Audit what one minibatch makes: normalised advantages, ratios, losses, their sum."""

import torch
from torch import Tensor

from ppo_lessons.audit.explain import Explanation, explain
from ppo_lessons.audit.findings import finding, not_enough
from ppo_lessons.audit.intake import Facts
from ppo_lessons.audit.loss_rules import MEAN, NORM, RATIO, SQUARES, SURROGATE, TOTAL
from ppo_lessons.audit.losses import Mean, Norm, Ratio, Squares, Surrogate, Total
from ppo_lessons.audit.report import Finding
from ppo_lessons.audit.rules import Rule
from ppo_lessons.audit.score_stages import nothing

ELSEWHERE = Rule(
    "normalized_by_other_samples",
    "Mean and deviation are not those of these samples; right if they are those of the batch.",
    "", "gae", nothing,
)  # fmt: skip
OTHER_STATISTICS = Rule(
    "normalized_by_other_numbers", "Mean and deviation are not those of these advantages.",
    "Take mean and deviation of the samples that the loss uses.", "gae", nothing,
)  # fmt: skip


def of_rows(facts: Facts, name: str) -> Tensor | None:
    """What a table of rows holds for the samples."""
    table = facts.rows.get(name)
    if table is None:
        return None
    flat = table.flatten()
    return flat if facts.indices is None else flat[facts.indices]


def batch_shape(facts: Facts) -> torch.Size | None:
    """(T, N), where the samples are the whole batch in its order."""
    if facts.indices is not None or not facts.rows:
        return None
    return next(iter(facts.rows.values())).shape


def audit_normalized(facts: Facts) -> Finding | None:
    """(Â − mean) / (deviation + 10⁻⁸)."""
    name = "normalized_advantages"
    if name not in facts:
        return None
    advantages, given = of_rows(facts, "advantages"), facts.samples[name]
    if advantages is None:
        return not_enough(name, ("advantages",))
    mask = of_rows(facts, "valid")
    norm = Norm(
        advantages, advantages if mask is None else advantages[mask],
        rounding=facts.rounding("advantages", name), mask=mask,
        batch=facts.rows["advantages"].flatten() if facts.indices is not None else None,
        table=facts.rows["advantages"] if facts.indices is None and mask is None else None,
    )  # fmt: skip
    seen = explain(given, norm, lambda stage: stage.predict(), NORM.rules)
    if seen.found is None and shifted_and_scaled(given, advantages, norm.rounding):
        whole = norm.table is not None and norm.table.shape[-1] > 1
        seen = Explanation((OTHER_STATISTICS if whole else ELSEWHERE,))
    return finding(name, given, norm.predict(), seen)


def shifted_and_scaled(given: Tensor, advantages: Tensor, rounding: float) -> bool:
    """Whether there is any mean and any deviation that lead from one to the other."""
    centred = advantages - advantages.mean()
    if not centred.abs().max() > 0:
        return False
    slope = (centred * given).sum() / centred.square().sum()
    apart = (given - given.mean() - slope * centred).abs().max()
    scaled = slope > 0 and abs(float(slope) - 1) > 1e-4
    return bool(scaled and apart <= 10 * rounding * (1 + given.abs().max()))


def log_differences(facts: Facts) -> Tensor | None:
    """Give log π − log π_old of each dimension of an action; None where only sums are known."""
    new, old = facts.samples.get("log_probs"), facts.samples.get("log_probs_old")
    if new is None or old is None or new.shape != old.shape or new.ndim < 2:
        return None
    return new - old


def per_sample(facts: Facts, name: str) -> Tensor:
    """One number per sample: dimensions of an action are summed."""
    numbers = facts.samples[name]
    return numbers.sum(-1) if numbers.ndim > 1 else numbers


def ratio_stage(facts: Facts) -> Ratio:
    """The right ratios."""
    return Ratio(
        per_sample(facts, "log_probs"), per_sample(facts, "log_probs_old"),
        rounding=facts.rounding("log_probs", "log_probs_old", "ratios"),
        differences=log_differences(facts),
        clip_epsilon=facts.settings.get("clip_epsilon", 1.0),
    )  # fmt: skip


def audit_ratios(facts: Facts) -> Finding | None:
    """exp(log π − log π_old)."""
    if "ratios" not in facts:
        return None
    if needs := facts.missing("log_probs", "log_probs_old"):
        return not_enough("ratios", needs)
    given, stage = facts.samples["ratios"], ratio_stage(facts)
    seen = explain(given, stage, lambda made: made.predict(), RATIO.rules)
    return finding("ratios", given, stage.predict(), seen)


def audit_policy_loss(facts: Facts, ratios: Finding | None) -> Finding | None:
    """−mean( min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â ) )."""
    name = "policy_loss"
    if name not in facts:
        return None
    needs = list(facts.missing("clip_epsilon"))
    if "ratios" not in facts:
        needs += facts.missing("log_probs", "log_probs_old")
    if "advantages" not in facts and "normalized_advantages" not in facts:
        needs.append("normalized_advantages")
    if needs:
        return not_enough(name, tuple(needs))
    stage = surrogate_stage(facts, ratios)
    given = facts.numbers[name]
    seen = explain(given, stage, lambda made: made.predict(), SURROGATE.rules)
    return finding(name, given, stage.predict(), seen)


def surrogate_stage(facts: Facts, ratios: Finding | None) -> Surrogate:
    """The right loss for the ratios and advantages that were given."""
    raw, advantages = of_rows(facts, "advantages"), facts.samples.get("normalized_advantages")
    if advantages is None:
        assert raw is not None
        advantages, raw = raw, None
    clipped = ratios is not None and "clipped_ratios" in ratios.names
    if "ratios" in facts and not clipped:
        shares = facts.samples["ratios"]
    else:
        shares = ratio_stage(facts).numbers()
    mask = of_rows(facts, "valid")
    if shares.ndim > 1:  # one ratio for each dimension: that is the finding about ratios
        pairs = shares.shape[-1] == len(advantages)
        advantages, raw, mask = advantages[None] if pairs else advantages[:, None], None, None
    epsilon = facts.settings["clip_epsilon"]
    return Surrogate(
        shares, advantages, 1 - epsilon, 1 + epsilon, epsilon,
        rounding=facts.rounding("log_probs", "ratios", "normalized_advantages", "policy_loss"),
        log_probs=per_sample(facts, "log_probs") if "log_probs" in facts else None,
        differences=log_differences(facts), raw=raw, returns=of_rows(facts, "returns"),
        table=batch_shape(facts), mask=mask, per_sample=facts.numbers["policy_loss"].ndim > 0,
    )  # fmt: skip


def audit_value_loss(facts: Facts) -> Finding | None:
    """½·mean( (V − return)² )."""
    name = "value_loss"
    if name not in facts:
        return None
    needs = () if "new_values" in facts or "values" in facts else ("new_values",)
    needs += facts.missing("returns")
    if needs:
        return not_enough(name, needs)
    old, targets = of_rows(facts, "values"), of_rows(facts, "returns")
    new = per_sample(facts, "new_values") if "new_values" in facts else old
    assert new is not None
    assert targets is not None
    given, epsilon = facts.numbers[name], facts.settings.get("value_clip_epsilon")
    clipped = epsilon is not None and old is not None and "new_values" in facts
    stage = Squares(
        new, targets, rounding=facts.rounding("values", "new_values", "returns", name),
        values=old if "new_values" in facts else None,
        advantages=of_rows(facts, "advantages"), rewards=of_rows(facts, "rewards"),
        clip_epsilon=epsilon if clipped else facts.settings.get("clip_epsilon"),
        clipped=clipped,
        square="max" if clipped else "plain",
        value_coef=facts.settings.get("value_coef"),
        table=batch_shape(facts), mask=of_rows(facts, "valid"), per_sample=given.ndim > 0,
    )  # fmt: skip
    seen = explain(given, stage, lambda made: made.predict(), SQUARES.rules)
    if seen.found is None and "new_values" not in facts:
        return not_enough(name, ("new_values",))
    return finding(name, given, stage.predict(), seen)


def audit_entropy(facts: Facts) -> Finding | None:
    """The mean of the entropies."""
    if "entropy" not in facts:
        return None
    if "entropies" not in facts:
        return not_enough("entropy", ("entropies",))
    given = facts.numbers["entropy"]
    stage = Mean(
        per_sample(facts, "entropies"), rounding=facts.rounding("entropies", "entropy"),
        mask=of_rows(facts, "valid"),
    )  # fmt: skip
    seen = explain(given, stage, lambda made: made.predict(), MEAN.rules)
    return finding("entropy", given, stage.predict(), seen)


def audit_total(
    facts: Facts, value_loss: Finding | None, entropy: Finding | None
) -> Finding | None:
    """policy_loss + c₁·value_loss − c₂·entropy."""
    name = "total_loss"
    if name not in facts:
        return None
    value_coef = facts.settings.get("value_coef")
    entropy_coef = facts.settings.get("entropy_coef")
    needs = facts.missing("policy_loss", "value_coef", "entropy_coef")
    needs += facts.missing("value_loss") if value_coef else ()
    needs += facts.missing("entropy") if entropy_coef and "entropies" not in facts else ()
    if needs or value_coef is None or entropy_coef is None:
        return not_enough(name, needs)
    zero = torch.zeros((), dtype=torch.float64)
    bonus = facts.numbers.get("entropy")
    if bonus is None:
        bonus = per_sample(facts, "entropies").mean() if "entropies" in facts else zero
    elif entropy is not None and "entropy_as_a_loss" in entropy.names:
        bonus = -bonus
    stage = Total(
        facts.numbers["policy_loss"].mean(), facts.numbers.get("value_loss", zero).mean(),
        bonus.mean(), rounding=0.2 * facts.rounding("policy_loss", "value_loss", name),
        policy=1.0, value=value_coef, bonus=-entropy_coef,
        value_coef=value_coef, entropy_coef=entropy_coef,
        value_loss_holds_coef=value_loss is not None and "coefficient_inside" in value_loss.names,
    )  # fmt: skip
    given = facts.numbers[name].mean()
    seen = explain(given, stage, lambda made: made.predict(), TOTAL.rules)
    return finding(name, given, stage.predict(), seen)
