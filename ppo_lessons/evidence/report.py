"""May it ship? A report that compares with the unmodified model, on prompts that chose nothing.

A checkpoint was chosen because it did well on the gate's prompts, so its success there is too high.
The report is made on a second held-out set, and refused without the versions of all that was used.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from jaxtyping import Bool, Int
from torch import Tensor

from ppo_lessons.ablations.statistics import Interval
from ppo_lessons.evidence.counting import (
    Comparison,
    check_right,
    compare_on_same_prompts,
    count_right,
    mean_pass_at_k,
    wilson,
)
from ppo_lessons.shapes import check_same_shape

Verdict = Literal["ship", "do not ship", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class Versions:
    """What a report is about; all of it must be named.

    Attributes:
        actor: checkpoint that is to be shipped.
        rollout: policy that made the data it learned from.
        reference: policy that the KL is measured from.
        reward: reward model, or verifier.
        tokenizer_sha256: of the vocabulary, `vocabulary_sha256`.
        seed: of the run.
    """

    actor: str
    rollout: str
    reference: str
    reward: str
    tokenizer_sha256: str
    seed: int

    def __post_init__(self) -> None:
        """Check that nothing is left out.

        Raises:
            ValueError: with all that is missing.
        """
        missing = [each.name for each in fields(self) if getattr(self, each.name) in (None, "")]
        if missing:
            raise ValueError(
                f"no version is given of: {', '.join(missing)}; expected all six. Without them "
                "nobody can make this checkpoint again, or say what it was compared with."
            )
        digits = self.tokenizer_sha256
        if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
            raise ValueError(
                f"tokenizer_sha256 is {digits!r}; expected 64 hexadecimal digits. Take "
                "vocabulary_sha256(VOCABULARY)."
            )


def vocabulary_sha256(vocabulary: Sequence[str]) -> str:
    """Give a fingerprint of a vocabulary: its tokens in their order.

    Args:
        vocabulary: the tokens; the place of each is its id.

    Returns:
        64 hexadecimal digits.
    """
    return hashlib.sha256(json.dumps(list(vocabulary)).encode()).hexdigest()


@dataclass(frozen=True)
class Answered:
    """What one model did on the held-out prompts, several answers to each.

    Attributes:
        right: whether each answer is right.
        answers: the tokens of each answer, padded alike.
        score: mean proxy reward (reward).
        kl_reference: mean KL from the reference (nats per answer).
        length: mean length (tokens).
        no_eos: share of answers without an end.
    """

    right: Bool[Tensor, "prompts samples"]
    answers: Int[Tensor, "prompts samples T"]
    score: float
    kl_reference: float
    length: float
    no_eos: float


@dataclass(frozen=True)
class Slice:
    """A part of the prompts.

    Attributes:
        name: which part.
        comparison: of the two models on it.
    """

    name: str
    comparison: Comparison


@dataclass(frozen=True)
class Report:
    """Everything that speaks for and against a checkpoint.

    Attributes:
        verdict: "ship" only where the gain is sure and no slice surely loses.
        reasons: sentences behind it.
        versions: of all that was used.
        comparison: first answers of both models on the same prompts.
        success: of baseline and candidate, with intervals.
        slices: the same by part.
        rows: further numbers of baseline and candidate, by name.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    versions: Versions
    comparison: Comparison
    success: Mapping[str, tuple[float, Interval]]
    slices: tuple[Slice, ...]
    rows: Mapping[str, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and text, for JSON."""
        return json.loads(json.dumps(asdict(self)))

    def to_markdown(self) -> str:
        """All of it as a page."""
        low, high = self.comparison.difference
        lines = [
            f"# Release report: {self.verdict}",
            "",
            *(f"- {reason}" for reason in self.reasons),
            "",
            "| | version |",
            "| --- | --- |",
            *(f"| {name} | {value} |" for name, value in asdict(self.versions).items()),
            "",
            f"{self.comparison.total} held-out prompts, the same for both: "
            f"{self.comparison.gained} gained, {self.comparison.lost} lost, McNemar's p "
            f"{self.comparison.p_value:.2g}; difference {low:+.3f} to {high:+.3f} (95 %).",
            "",
            "| | baseline | candidate |",
            "| --- | ---: | ---: |",
            "| success, with 95 % | "
            + " | ".join(share_as_text(*pair) for pair in self.success.values())
            + " |",
            *(f"| {name} | {old:.3g} | {new:.3g} |" for name, (old, new) in self.rows.items()),
            "",
            "| slice | prompts | gained | lost | difference, 95 % |",
            "| --- | ---: | ---: | ---: | --- |",
            *(slice_as_text(part) for part in self.slices),
        ]
        return "\n".join(lines) + "\n"


def share_as_text(share: float, interval: Interval) -> str:
    """Write a share with its interval."""
    return f"{share:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def slice_as_text(part: Slice) -> str:
    """Write a slice as a row of a table."""
    found = part.comparison
    low, high = found.difference
    cells = part.name, found.total, found.gained, found.lost, f"{low:+.3f} to {high:+.3f}"
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def distinct_share(answers: Int[Tensor, "prompts samples T"]) -> float:
    """Say how many different answers a prompt gets: 1 if all differ, 1/samples if all are alike.

    Args:
        answers: tokens, padded alike.

    Returns:
        Mean over prompts of (different answers / answers).

    Raises:
        ValueError: if answers are not [prompts, samples, T] with at least one of each.
    """
    if answers.ndim != 3 or 0 in answers.shape:
        raise ValueError(
            f"answers has shape {tuple(answers.shape)}; expected [prompts, samples, T]. Stack the "
            "tokens of several answers to each prompt."
        )
    return sum(len(each.unique(dim=0)) / len(each) for each in answers) / len(answers)


def release_report(
    baseline: Answered,
    candidate: Answered,
    *,
    versions: Versions,
    prompts: Sequence[Any],
    used_before: Sequence[Any],
    slices: Mapping[str, Bool[Tensor, " prompts"]],
    confidence: float = 0.95,
    least_diversity: float = 0.5,
) -> Report:
    """Compare a candidate with the unmodified model, and say whether it may ship.

    Args:
        baseline: what the unmodified model did.
        candidate: what the trained one did on the same prompts.
        versions: of all that was used.
        prompts: the held-out prompts, in the order of the rows.
        used_before: prompts that training, the reward model or the gate has seen.
        slices: for each part of the prompts, which belong to it.
        confidence: of the intervals, in (0, 1).
        least_diversity: smallest `distinct_share` of the candidate, as a share of the baseline's.

    Returns:
        The report.

    Raises:
        ValueError: if prompts were used before, rows do not match, or a slice is empty.
        TypeError: if something is no tensor of booleans.
    """
    check_fresh(prompts, used_before)
    check_same_shape(baseline=baseline.right, candidate=candidate.right)
    if len(baseline.right) != len(prompts):
        raise ValueError(
            f"right has {len(baseline.right)} rows for {len(prompts)} prompts; expected one for "
            "each. Answer all prompts."
        )
    old, new = baseline.right[:, 0], candidate.right[:, 0]  # one answer each, as a user gets it
    whole = compare_on_same_prompts(old, new, confidence=confidence)
    parts = []
    for name, members in slices.items():
        check_right(f"slices[{name!r}]", members)
        if not members.any():
            raise ValueError(
                f"slice {name!r} holds no prompt; expected at least one. Leave it out, or draw "
                "prompts that belong to it."
            )
        found = compare_on_same_prompts(old[members], new[members], confidence=confidence)
        parts.append(Slice(name, found))
    diversity = distinct_share(baseline.answers), distinct_share(candidate.answers)
    verdict, reasons = judge_release(whole, parts, diversity, least_diversity, 1 - confidence)
    counts = {"baseline": count_right(old), "candidate": count_right(new)}
    samples = baseline.right.shape[1]
    return Report(
        verdict=verdict,
        reasons=reasons,
        versions=versions,
        comparison=whole,
        success={
            name: (count.share, wilson(count, confidence=confidence))
            for name, count in counts.items()
        },
        slices=tuple(parts),
        rows={
            f"pass@{samples}": (
                mean_pass_at_k(baseline.right, samples), mean_pass_at_k(candidate.right, samples),
            ),
            "different answers to a prompt": diversity,
            **{
                words: (getattr(baseline, name), getattr(candidate, name))
                for name, words in (
                    ("score", "score"),
                    ("kl_reference", "KL from the reference, nats"),
                    ("length", "length, tokens"),
                    ("no_eos", "answers without an end"),
                )
            },
        },
    )  # fmt: skip


def check_fresh(prompts: Sequence[Any], used_before: Sequence[Any]) -> None:
    """Require prompts that chose nothing.

    Raises:
        ValueError: if there are none, or some were used before.
    """
    if not prompts:
        raise ValueError("there is no prompt; expected held-out ones. Draw the release split.")
    seen = {repr(plain(each)) for each in used_before}
    twice = sum(repr(plain(each)) in seen for each in prompts)
    if twice:
        raise ValueError(
            f"{twice} of {len(prompts)} prompts were used before; expected a second held-out set. "
            "The best of many checkpoints looks better on the prompts that chose it. Draw the "
            "release split."
        )


def plain(prompt: Any) -> Any:
    """Give a prompt as text, number, or tuple of such; 1.0 is 1."""
    if isinstance(prompt, Tensor):
        return plain(prompt.tolist())
    if isinstance(prompt, list | tuple):
        return tuple(map(plain, prompt))
    whole = isinstance(prompt, float) and prompt.is_integer()
    return int(prompt) if whole else prompt


def judge_release(
    whole: Comparison,
    parts: Sequence[Slice],
    diversity: tuple[float, float],
    least_diversity: float,
    largest_p: float,
) -> tuple[Verdict, tuple[str, ...]]:
    """Say what the numbers allow, and why."""
    low, high = whole.difference
    against = []
    if high < 0:
        against.append(f"success falls by {-high:.3f} to {-low:.3f}")
    against += [
        f"slice {part.name!r} loses {-part.comparison.difference.high:.3f} to "
        f"{-part.comparison.difference.low:.3f}"
        for part in parts
        if part.comparison.difference.high < 0
    ]
    before, after = diversity
    if after < least_diversity * before:
        against.append(f"different answers to a prompt fall from {before:.2f} to {after:.2f}")
    if against:
        return "do not ship", tuple(against)
    if low > 0 and whole.p_value > largest_p:  # a few prompts, all gained: no interval shows it
        return "inconclusive", (
            f"{whole.gained} of {whole.total} prompts are gained and {whole.lost} lost, which luck "
            f"alone does with p = {whole.p_value:.3f}; more prompts would tell",
        )
    if low > 0:
        return "ship", (f"success rises by {low:.3f} to {high:.3f}, and no slice surely loses",)
    return "inconclusive", (
        f"the difference lies between {low:+.3f} and {high:+.3f}; more prompts would tell",
    )
