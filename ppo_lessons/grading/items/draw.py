"""What do the personal questions of all lessons share? How constants are drawn and written."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import torch

from ppo_lessons.checks.exercises import Exercise
from ppo_lessons.grading.ask import SHIFT, far_from_edges
from ppo_lessons.grading.items.deal import Item
from ppo_lessons.grading.items.questions import TOLERANCE
from ppo_lessons.mdp import MDP

T = TypeVar("T")
TRIES = 2000
# Right answers lie at least so many tolerances away from where their text changes.
SPARE = 1.2
STEP = 10 * TOLERANCE  # `ask_hashed` prints predictions on a grid of this width


def two_digits(random: Random, low: float, high: float) -> float:
    """Draw a number with two digits after the point."""
    return round(random.uniform(low, high), 2)


def until_tidy(draw: Callable[[], tuple[T, Mapping[str, float]]]) -> tuple[T, dict[str, float]]:
    """Draw constants until each right answer may be off by the tolerance and is printed alike.

    Args:
        draw: gives constants, and the right answers by letter.

    Returns:
        Both, of the first draw that is tidy.

    Raises:
        ValueError: if none is.
    """
    for _ in range(TRIES):
        constants, numbers = draw()
        if all(tidy(number) for number in numbers.values()) and apart(numbers):
            return constants, dict(numbers)
    raise ValueError(f"no constants in {TRIES} draws keep off the edges; widen their range")


def until_printable(
    draw: Callable[[], tuple[Mapping[str, float], Sequence[float]]],
) -> dict[str, float]:
    """Draw the constants of a function until what it gives again and again is far from an edge.

    A value at a cap is the same in each case that reaches it. Were it near an edge of rounding, no
    hidden inputs would ever do.

    Args:
        draw: gives constants, and such values.

    Raises:
        ValueError: if no draw will do.
    """
    for _ in range(TRIES):
        constants, repeated = draw()
        if all(far_from_edges(number, SHIFT) for number in repeated):
            return dict(constants)
    raise ValueError(f"no constants in {TRIES} draws keep off the edges; widen their range")


def tidy(number: float) -> bool:
    """Whether a number lies in the middle of its step of the grid."""
    places = number / STEP
    return abs(places - math.floor(places + 0.5)) < 0.5 - SPARE * TOLERANCE / STEP


def apart(numbers: Mapping[str, float]) -> bool:
    """Whether no two answers are the same, so that a swap is seen."""
    values = sorted(numbers.values())
    return all(b - a > 4 * STEP for a, b in pairwise(values))


def numbers_item(
    exercise: Exercise,
    *,
    title: str,
    difficulty: int,
    importance: int,
    text: str,
    numbers: Mapping[str, float],
    constants: Mapping[str, Any],
) -> Item:
    """Make a question whose answer is a row of numbers, each named by a letter.

    Args:
        exercise: how it is asked.
        title: its heading.
        difficulty: from 1 to 5.
        importance: from 1 to 5.
        text: what is given, and what each letter stands for.
        numbers: the right ones.
        constants: what was drawn, by name.
    """
    head = f"*Difficulty {difficulty} of 5, importance {importance} of 5, 15 minutes.*"
    told = f"""
{head}

Nothing to program; a pocket calculator helps.

{text.strip()}

Numbers may be off by {TOLERANCE}."""
    answer = numbers_answer(numbers)
    return Item(exercise=exercise, title=title, text=told, answer=answer, constants=constants)


def numbers_answer(numbers: Mapping[str, float]) -> str:
    """Write the answer cell of a row of predictions."""
    blank = ", ".join(f'"{letter}": None' for letter in numbers)
    right = ", ".join(f'"{letter}": {number:.6g}' for letter, number in numbers.items())
    return (
        f"### BEGIN SOLUTION stub: own_numbers = {{{blank}}}\n"
        f"own_numbers = {{{right}}}\n"
        "### END SOLUTION"
    )


def function_answer(signature: str, words: str, body: str, *, imports: str = "") -> str:
    """Write the answer cell of a function.

    Args:
        signature: as `ratios, advantages`.
        words: its docstring.
        body: of the solution, not indented.
        imports: line in front of it.
    """
    lines = [f"    {line}" if line else "" for line in body.strip().splitlines()]
    head = f"{imports}\n\n\n" if imports else ""
    return "\n".join(
        [
            f'{head}def own_function({signature}):\n    """{words}"""',
            "    ### BEGIN SOLUTION: with your constants",
            *lines,
            "    ### END SOLUTION",
        ]
    )


def run_solution(answer: str) -> Callable[..., Any]:
    """Execute the solution of a question of ours, to show what it gives in one case."""
    names: dict[str, Any] = {}
    exec(answer, names)
    return names["own_function"]


def shown(value: Any) -> str:
    """Write a result for a text, to four digits."""
    tensor = value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value)
    return ", ".join(f"{number + 0.0:.4g}" for number in tensor.flatten().tolist())


def column(values: list[Any]) -> torch.Tensor:
    """Make a rollout of one environment, [T, 1]."""
    made = torch.tensor(values)
    return (made.double() if made.is_floating_point() else made)[:, None]


def table(heads: list[str], rows: list[list[Any]]) -> str:
    """Write a table in Markdown; the first column holds words."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(written, line)) + " |" for line in lines)


def written(value: Any) -> str:
    """Write a table's cell: flags in words, numbers without trailing zeros."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}".replace("-", "−") if isinstance(value, (int, float)) else str(value)


def two_rooms(
    stop_a: float, go_a: float, stop_b: float, go_b: float, *, alike: bool = False
) -> MDP:
    """Make the game of two of the questions: in room A stop, or go on to room B, which is the end.

    Args:
        stop_a: pay for stopping in A, which ends the game.
        go_a: pay for going on to B.
        stop_b: pay for stopping in B.
        go_b: pay for going on in B, which ends the game too.
        alike: whether both rooms look alike, so that the policy has one row of logits.
    """
    transitions = torch.zeros(2, 2, 2, dtype=torch.float64)
    transitions[0, 1, 1] = 1.0
    return MDP(
        name="two rooms",
        transitions=transitions,
        rewards=torch.tensor([[stop_a, go_a], [stop_b, go_b]], dtype=torch.float64),
        initial=torch.tensor([1.0, 0.0], dtype=torch.float64),
        observation_of=torch.tensor([0, 0 if alike else 1]),
    )
