"""Does my PPO agree with the formulas, and if not, which mistake gives its numbers?

`audit` takes the tensors of any PPO, recomputes what can be recomputed from them, and names the
mistake whose formula reproduces what was given. Read `names`, `scan`, `scan_rules`, `losses`,
`loss_rules`, `explain`, in this order.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.audit.intake import Facts, read
from ppo_lessons.audit.loss_rules import MEAN, NORM, RATIO, SQUARES, SURROGATE, TARGET, TOTAL
from ppo_lessons.audit.loss_stages import (
    audit_entropy,
    audit_normalized,
    audit_policy_loss,
    audit_ratios,
    audit_total,
    audit_value_loss,
)
from ppo_lessons.audit.names import CLEANRL, LIBRARIES, MEANINGS, SB3
from ppo_lessons.audit.report import Finding, Report
from ppo_lessons.audit.rules import Rule
from ppo_lessons.audit.scan_rules import SCAN
from ppo_lessons.audit.score_stages import (
    audit_advantages,
    audit_errors,
    audit_next_values,
    audit_returns,
    build_scan,
    lacking,
    real_pairs,
    two_flags,
)

__all__ = ["CLEANRL", "LIBRARIES", "MEANINGS", "RULES", "SB3", "Finding", "Report", "audit"]

# The quantity that each table of rules is about, and the rules.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "advantages": tuple(SCAN.rules),
    "returns": tuple(TARGET.rules),
    "normalized_advantages": tuple(NORM.rules),
    "ratios": tuple(RATIO.rules),
    "policy_loss": tuple(SURROGATE.rules),
    "value_loss": tuple(SQUARES.rules),
    "entropy": tuple(MEAN.rules),
    "total_loss": tuple(TOTAL.rules),
}


@torch.no_grad()
def audit(
    tensors: Mapping[str, Any] | str | Path, *, names: Mapping[str, str] | None = None
) -> Report:
    """Say of each quantity of a PPO whether it agrees, or which mistake reproduces it.

    Each quantity is computed from those that stand before it, as they were given: one mistake
    gives one finding, and what is built on it still agrees. Nothing is changed.

    Args:
        tensors: tensors, arrays, lists or numbers under the names of `MEANINGS`, or the path of an
            `.npz` file with them. Tables are [T, N] or [T]; what you do not have, you leave out.
        names: ours → theirs, for entries under another name, as `{"ended": "dones"}`; `SB3` and
            `CLEANRL` are two. With it, entries that mean nothing here are passed over.

    Returns:
        The report; print it.

    Raises:
        ValueError: if a file, a name, a shape or a setting cannot be used, with what to do.
        TypeError: if an entry holds no numbers.
    """
    facts = read(tensors, names)
    if not facts.side_known:
        turned = read(tensors, names, turned=True)
        if fits_better(turned, facts):
            facts = turned
    advantages, ratios = audit_advantages(facts), audit_ratios(facts)
    value_loss, entropy = audit_value_loss(facts), audit_entropy(facts)
    findings = (
        audit_next_values(facts),
        audit_errors(facts),
        advantages,
        audit_returns(facts, advantages),
        audit_normalized(facts),
        ratios,
        audit_policy_loss(facts, ratios),
        value_loss,
        entropy,
        audit_total(facts, value_loss, entropy),
    )
    return Report(tuple(found for found in findings if found), tuple(remarks(facts)))


def fits_better(turned: Facts, facts: Facts) -> bool:
    """Whether the tables make more sense as [N, T]: most rows fit, where most did not."""
    return misfit(facts) > 0.5 and misfit(turned) < 0.5 * misfit(facts)


def misfit(facts: Facts) -> float:
    """Share of the rows that do not fit the row after: by V' if that is given, else by Â."""
    if {"values", "next_values"} <= facts.rows.keys():
        values, next_values = facts.rows["values"][1:], facts.rows["next_values"][:-1]
        apart = (values - next_values).abs() > 1e-4 * (1 + values.abs())
        return apart.double().mean().item() if len(apart) else 0.0
    if "advantages" not in facts or lacking(facts):
        return 0.0
    given = facts.rows["advantages"]
    return build_scan(facts).predict(given).parts_from(given).double().mean().item()


def remarks(facts: Facts) -> list[str]:
    """How the tensors were read, and what they leave open."""
    said = list(facts.remarks)
    flags = two_flags(facts)
    if flags is not None and not {"terminated", "truncated"} <= facts.rows.keys():
        said.append(
            "there is one flag for both kinds of end, so nobody can see whether time limits keep "
            "their bootstrap; give terminated and truncated."
        )
    if flags is not None and "rewards" in facts and looks_like_reset_rows(facts):
        said.append(
            "every row after an end earns exactly 0: these look like rows in which the "
            "environment only reset itself (gymnasium's NEXT_STEP). They are no steps; give "
            "`valid`, and leave them out of the losses."
        )
    unknown = unchecked_rows(facts)
    if unknown:
        said.append(
            f"{unknown} rows could not be checked in full: V of their last observation was not "
            "given; give next_values [T, N], or last_values for the row after the last."
        )
    if facts.not_read:
        said.append(f"not read: {', '.join(facts.not_read[:8])}"
                    f"{', ...' if len(facts.not_read) > 8 else ''}.")  # fmt: skip
    return said


def unchecked_rows(facts: Facts) -> int:
    """How many rows have a V' that the facts do not give."""
    if "advantages" not in facts or lacking(facts):
        return 0
    return int((~build_scan(facts).known).sum())


def looks_like_reset_rows(facts: Facts) -> bool:
    """Whether the rows after ends, three or more, earn 0 and nearly no other row does."""
    flags = two_flags(facts)
    if flags is None or "valid" in facts:
        return False
    ended, rewards = flags[0] | flags[1], facts.rows["rewards"]
    after = torch.cat([torch.zeros_like(ended[:1]), ended[:-1]])
    if int(after.sum()) < 3 or after.all():
        return False
    others = (rewards[~after] != 0).double().mean()
    return bool((rewards[after] == 0).all() and others > 0.9 and real_pairs(facts, rewards).all())
