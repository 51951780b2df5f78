"""What the diagnosis says: findings, each with its number and where to read on."""

import textwrap
from dataclasses import dataclass

from ppo_lessons.lessons import find_lesson


@dataclass(frozen=True)
class Finding:
    """One thing that looks wrong, or is worth knowing.

    Attributes:
        name: of the bug that such numbers are known from, or of what is seen.
        metric: the number that shows it.
        sentence: what it does, with the numbers of this run, and what that means.
        lesson: name of the lesson that explains it.
        suspects: names of `BUGS` that give such numbers, the likeliest first.
        alarm: false for a remark: something to know that need not be a bug.
    """

    name: str
    metric: str
    sentence: str
    lesson: str
    suspects: tuple[str, ...] = ()
    alarm: bool = True

    @property
    def where_to_read(self) -> str:
        """The lesson, with its number."""
        lesson = find_lesson(self.lesson)
        return f"lesson {lesson.number:02d}, {lesson.title}"

    def __str__(self) -> str:
        """The finding as a paragraph."""
        others = [name for name in self.suspects if name != self.name]
        lines = [f"{self.name} (by {self.metric})" + ("" if self.alarm else ": a remark")]
        lines += [self.sentence]
        if others:
            lines.append(f"Such numbers are also known from: {', '.join(others)}.")
        lines.append(f"Read: {self.where_to_read}.")
        indents = ["", *["  "] * (len(lines) - 1)]
        return "\n".join(
            textwrap.fill(line, 92, initial_indent=indent, subsequent_indent="  " + indent)
            for line, indent in zip(lines, indents, strict=True)
        )
