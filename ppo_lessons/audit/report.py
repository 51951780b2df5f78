"""What the audit says: one finding for each quantity, and the page that a reader gets."""

import textwrap
from dataclasses import dataclass
from typing import Literal

from ppo_lessons.lessons import find_lesson

Verdict = Literal[
    "agrees", "agrees, by another convention", "mistake", "differs", "not enough given"
]

# What no tensor of numbers shows.
INVISIBLE = (
    "Gradients leave no trace in these numbers: whether Â, returns and old log-probabilities are "
    "constants in the loss, and whether the optimiser steps on all of it, is for a test of yours."
)


@dataclass(frozen=True)
class Finding:
    """What the audit says about one quantity.

    Attributes:
        quantity: its name, as in `docs/notation.md`.
        verdict: one of the five.
        names: of the mistakes, or of the conventions, that reproduce the numbers.
        sentence: what these numbers do.
        change: what to change; empty if nothing.
        place: smallest index at which given and expected part; (t, n) for a table.
        given: the number there.
        expected: what the course's formula gives there.
        lesson: name of the lesson to read; empty if none.
        also: mistakes that give the same numbers on these data.
        unseen: mistakes that these data could not have shown.
        needs: what was not given.
    """

    quantity: str
    verdict: Verdict
    names: tuple[str, ...] = ()
    sentence: str = ""
    change: str = ""
    place: tuple[int, ...] | None = None
    given: float | None = None
    expected: float | None = None
    lesson: str = ""
    also: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether something is wrong."""
        return self.verdict in ("mistake", "differs")

    def __str__(self) -> str:
        """The finding as a paragraph."""
        lines = [f"{self.quantity}: {self.headline}"]
        if self.alarm and self.given is not None:
            expected = "not known" if self.expected is None else f"{self.expected:.6g}"
            lines.append(f"{self.where}given {self.given:.6g}, expected {expected}.")
        lines += [self.sentence] if self.sentence else []
        lines += [f"To do: {self.change}"] if self.change else []
        if self.also:
            lines.append(f"The same numbers come from: {', '.join(self.also)}.")
        if self.lesson:
            lesson = find_lesson(self.lesson)
            lines.append(f"Read: lesson {lesson.number:02d}, {lesson.title}.")
        if self.verdict == "agrees" and self.unseen:
            lines.append(f"These data could not show: {', '.join(self.unseen)}.")
        indents = ["", *["  "] * (len(lines) - 1)]
        return "\n".join(
            textwrap.fill(line, 92, initial_indent=indent, subsequent_indent="    ")
            for line, indent in zip(lines, indents, strict=True)
        )

    @property
    def headline(self) -> str:
        """Verdict and names in one line."""
        if self.verdict == "not enough given":
            return f"not enough given: needs {', '.join(self.needs)}"
        return f"{self.verdict}: {' and '.join(self.names)}" if self.names else self.verdict

    @property
    def where(self) -> str:
        """The place, in words."""
        if self.place is None:
            return ""
        axes = {1: ("sample",), 2: ("t", "n")}.get(len(self.place), ())
        if not axes:
            return f"At {self.place}: "
        return f"At {', '.join(f'{a} = {i}' for a, i in zip(axes, self.place, strict=True))}: "


@dataclass(frozen=True)
class Report:
    """The findings, in the order in which a loop computes the quantities.

    Attributes:
        findings: one for each quantity that was given, or lacks little.
        remarks: how the tensors were read, and what they cannot show.
    """

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()

    def __getitem__(self, quantity: str) -> Finding:
        """The finding about one quantity.

        Raises:
            KeyError: if it was not audited, with those that were.
        """
        for finding in self.findings:
            if finding.quantity == quantity:
                return finding
        audited = ", ".join(finding.quantity for finding in self.findings)
        raise KeyError(f"no finding about {quantity!r}; there are: {audited}")

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """The findings that something is wrong."""
        return tuple(finding for finding in self.findings if finding.alarm)

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The names of all mistakes found."""
        return tuple(name for finding in self.alarms for name in finding.names)

    def __str__(self) -> str:
        """The report as a page."""
        blocks = [str(finding) for finding in self.findings]
        blocks += [textwrap.fill(f"Note: {remark}", 90) for remark in self.remarks]
        count = len(self.alarms)
        wrong = {0: "Nothing is wrong", 1: "One thing is wrong"}.get(
            count, f"{count} things are wrong"
        )
        return "\n".join([*blocks, textwrap.fill(INVISIBLE, 90), f"{wrong}."])
