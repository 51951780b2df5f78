"""Results as tables for a terminal."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 100


def tables(content: Mapping[str, Any]) -> str:
    """Write all sections for people to read.

    Args:
        content: as in the JSON.

    Returns:
        The text.
    """
    parts = [section(each) for each in content["sections"].values()]
    about = content["machine"]
    core = about["pinned_to_core"]
    pinned = "" if core is None else f" pinned to core {core}"
    foot = [
        f"{about['processor']}, {about['cores']} cores, one thread{pinned}; "
        f"load {about['load_before']} before, {about['load_after']} after; "
        f"commit {content['commit']}",
        "; ".join(f"{name} {content['peers'][name]}" for name in sorted(content["peers"])),
    ]
    doubts = content["not_to_be_quoted_because"]
    foot.append("Do not quote these numbers: " + "; ".join(doubts) + "." if doubts else "")
    wrapped = "\n".join(textwrap.fill(line, WIDTH) for line in foot if line)
    return "\n\n".join([*parts, wrapped]) + "\n"


def section(about: Mapping[str, Any]) -> str:
    """Write one section: its lines, its ratios, what was left out, what to know.

    Args:
        about: as in the JSON.

    Returns:
        The text.
    """
    lines = [about["title"], ""]
    if about["medians"]:
        lines += columns(heads(about), [line(*each) for each in about["medians"].items()])
    if about["ratios"]:
        head = ["ratio", "median", "lowest", "highest", "target", "floor", "reached"]
        lines += ["", *columns(head, [ratio_line(each) for each in about["ratios"]])]
    for name, reason in about["not_measured"].items():
        lines += textwrap.wrap(f"{name}: {reason}", WIDTH, initial_indent="  not measured: ",
                               subsequent_indent="    ")  # fmt: skip
    for note in about["notes"] if about["medians"] else []:
        lines += textwrap.wrap(note, WIDTH, initial_indent="  · ", subsequent_indent="    ")
    return "\n".join(lines)


def heads(about: Mapping[str, Any]) -> list[str]:
    """The columns of a section."""
    race = any("solved" in row for row in about["medians"].values())
    extra = ["steps", "seeds solved"] if race else []
    return [about["unit"], "median", "lowest", "highest", *extra, "peak MiB"]


def line(name: str, row: Mapping[str, Any]) -> list[str]:
    """One contender's line."""
    extra = []
    if "solved" in row:
        extra = [written(row["env_steps"]), f"{row['solved']} of {row['seeds']}"]
    spread = [written(row[key]) for key in ("median", "lowest", "highest")]
    return [name, *spread, *extra, written(row["peak_mib"])]


def ratio_line(row: Mapping[str, Any]) -> list[str]:
    """One ratio's line; memory's goal is a most, not a least."""
    keys = ("median", "lowest", "highest", "target", "floor")
    return [row["name"], *(written(row[key]) for key in keys), row["reached"] or ""]


def written(value: int | float | None) -> str:
    """A number as it is printed; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align: names to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [
        "  " + row[0].ljust(widths[0]) + "".join(
            "  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
        )
        for row in [head, *rows]
    ]  # fmt: skip
