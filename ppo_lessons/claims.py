"""Does the sentence hold, and does a changed sentence fail?

    claim("clip.capped", "At ratio 4 the objective is 1.2.", objective == 1.2,
          control=("At ratio 4 it is 4.", objective == 4.0))

A claim carries its own negative control: the same sentence with a sign, a number or a quantifier
changed. If the claim does not hold, or the changed one does, the cell fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ppo_lessons.quizzes import check_id


@dataclass(frozen=True)
class Claim:
    """A sentence that was found to hold, beside one that was found not to.

    Args:
        id: `lesson.item`, as in "clip.capped".
        text: the sentence.
        control: the changed sentence.
    """

    id: str
    text: str
    control: str

    def __repr__(self) -> str:
        return f"✔ {self.text}\n✘ {self.control}   (a changed claim; it fails, as it must)"

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> Mapping[str, str]:
        html = (
            f'<div>✔ {escape(self.text)}</div><div style="opacity: 0.65">✘ {escape(self.control)} '
            "<small>(a changed claim; it fails, as it must)</small></div>"
        )
        return {"text/plain": repr(self), "text/html": html}


def claim(id: str, text: str, holds: object, *, control: tuple[str, object]) -> Claim:
    """Check a sentence and its negative control.

    Args:
        id: `lesson.item`; every id stands in one place of the course only.
        text: the sentence, ending in a full stop.
        holds: whether it holds: a bool, or something of one element like a tensor's comparison.
        control: a changed sentence, and whether that one holds.

    Returns:
        The claim; end the cell with it.

    Raises:
        AssertionError: if the sentence does not hold, or the changed one does.
        ValueError: if the id is not of the form `lesson.item`, a sentence is missing, or the
            changed sentence is the same.
        TypeError: if a condition is neither true nor false, or the control is no pair.
    """
    check_id(id)
    if not isinstance(control, tuple) or len(control) != 2:
        raise TypeError(
            f"control of {id} is {control!r}; expected a pair: a changed sentence, and whether it "
            "holds"
        )
    changed, changed_holds = control
    if changed == text:
        raise ValueError(f"control of {id} is the sentence itself; expected a changed one.")
    for name, sentence in (("text", text), ("control", changed)):
        if not isinstance(sentence, str) or len(sentence.split()) < 3 or not sentence.endswith("."):
            raise ValueError(
                f"{name} of {id} is {sentence!r}; expected a sentence that ends in a full stop. "
                "Write out what holds."
            )
    if not truth(id, "holds", holds):
        raise AssertionError(f"claim {id} does not hold: {text}")
    if truth(id, "control", changed_holds):
        raise AssertionError(
            f"the negative control of claim {id} holds, so the claim says nothing: {changed}"
        )
    return Claim(id, text, changed)


def truth(id: str, name: str, condition: object) -> bool:
    """Turn a condition into a bool.

    Raises:
        TypeError: if it is not of one element, or no condition at all.
    """
    item = getattr(condition, "item", None)
    try:
        value = item() if callable(item) else condition
    except (RuntimeError, ValueError):
        value = condition
    if not isinstance(value, bool):
        raise TypeError(
            f"{name} of claim {id} is {type(condition).__name__} {condition!r}; expected true or "
            "false. Reduce it first, for instance with .all()."
        )
    return value
