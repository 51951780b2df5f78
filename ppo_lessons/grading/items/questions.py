"""What are the personal questions asked with? Neither constants nor answers stand here.

The kernel of a student finds this file, and not `items/<lesson>.py`.
"""

from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.exercises import Exercise

OWN: tuple[Exercise, ...] = ()


def asked(id: str) -> Exercise:
    """Look up what may be asked: an exercise of a lesson, or a personal question.

    Args:
        id: `lesson.exercise`, `lesson.own_function` or `lesson.own_numbers`.

    Raises:
        ValueError: if there is no such question.
    """
    known = {**all_exercises(), **{each.id: each for each in OWN}}
    if id not in known:
        raise ValueError(f"no question {id!r}; expected one of {', '.join(known)}")
    return known[id]
