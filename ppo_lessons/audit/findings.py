"""From an explanation to what is said about it."""

from torch import Tensor

from ppo_lessons.audit.explain import Explanation, Prediction, first_place
from ppo_lessons.audit.report import Finding


def not_enough(quantity: str, needs: tuple[str, ...]) -> Finding:
    """Say what is lacking."""
    return Finding(quantity, "not enough given", needs=needs)


def finding(quantity: str, given: Tensor, right: Prediction, seen: Explanation) -> Finding:
    """Put an explanation into words, with the first place where the numbers part."""
    unseen = tuple(rule.name for rule in seen.unseen)
    if seen.found == ():
        return Finding(quantity, "agrees", unseen=unseen)
    rules = seen.found or ()
    wrong = [rule for rule in rules if not rule.convention]
    names = tuple(rule.name for rule in wrong or rules)
    sentence = " ".join(rule.sentence for rule in rules)
    if rules and not wrong:
        return Finding(quantity, "agrees, by another convention", names, sentence)
    place, there, expected = parting(given, right)
    if not rules:
        sentence = f"None of {seen.tried} known mistakes, nor two of them together, reproduces it."
        sentence = sentence if seen.tried else "No known mistake reproduces it."
    return Finding(
        quantity,
        "mistake" if rules else "differs",
        names=names,
        sentence=sentence,
        change=" ".join(dict.fromkeys(rule.change for rule in wrong)),
        place=place,
        given=there,
        expected=expected,
        lesson=wrong[0].lesson if wrong else "",
        also=tuple(rule.name for rule in seen.also),
    )


def parting(
    given: Tensor, right: Prediction
) -> tuple[tuple[int, ...] | None, float | None, float | None]:
    """Place, given and expected where the numbers part; without expected if nobody can know it."""
    if given.shape != right.numbers.shape:
        return None, None, None
    if given.ndim == 0:
        return None, given.item(), right.numbers.item()
    place = first_place(right.parts_from(given))
    if place is not None:
        return place, given[place].item(), right.numbers[place].item()
    place = None if right.known is None else first_place(~right.known)
    return (None, None, None) if place is None else (place, given[place].item(), None)
