"""Which questions close a lesson? One module of data per lesson, named like the lesson.

A module here holds `QUIZZES`, a tuple of `Quiz`:

    QUIZZES = (
        Quiz(
            id="clip.upper_edge",
            question="The ratio is 1.3, ε is 0.2 and the advantage is positive. The gradient is",
            options={
                "a": ("zero", "Past 1 + ε the clipped term is smaller, and flat.", True),
                "b": ("smaller", "Nothing is scaled: the clipped term is a constant.", False),
            },
        ),
    )
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ppo_lessons.lessons import find_lesson

ID_PATTERN = re.compile(r"[a-z][a-z0-9_]*\.[a-z0-9][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """One question with its options.

    Args:
        id: `lesson.item`, as in "clip.upper_edge".
        question: what is asked.
        options: for each letter from "a" on, in order: the option's text, why it is right or
            wrong, and whether it is the right one.
    """

    id: str
    question: str
    options: Mapping[str, tuple[str, str, bool]]

    def __post_init__(self) -> None:
        check_id(self.id)
        letters = "".join(self.options)
        if len(letters) < 2 or letters != "abcdefghij"[: len(letters)]:
            raise ValueError(
                f"quiz {self.id} has the options {list(self.options)}; expected a, b, ... in order"
            )
        right = [letter for letter, (_, _, is_right) in self.options.items() if is_right]
        if len(right) != 1:
            raise ValueError(
                f"quiz {self.id} has {len(right)} right options {right}; expected exactly one"
            )
        if not self.question.strip():
            raise ValueError(f"quiz {self.id} asks nothing; expected a question")
        self._check_words()

    def _check_words(self) -> None:
        for letter, (text, explanation, _) in self.options.items():
            if not text.strip() or not explanation.strip():
                raise ValueError(
                    f"quiz {self.id}, option {letter}: text is {text!r} and explanation is "
                    f"{explanation!r}; expected words in both"
                )

    @property
    def lesson(self) -> str:
        """Name of the lesson that the quiz belongs to."""
        return self.id.partition(".")[0]


def check_id(id: str) -> str:
    """Check that an id reads `lesson.item`.

    Args:
        id: the id of a quiz, a prediction or a check.

    Returns:
        The id.

    Raises:
        ValueError: if it does not, or if no lesson has that name.
    """
    if not isinstance(id, str) or not ID_PATTERN.fullmatch(id):
        raise ValueError(
            f"id is {id!r}; expected lesson.item in small letters, digits and underscores, "
            "as in 'clip.upper_edge'"
        )
    name = id.partition(".")[0]
    if find_lesson(name).name != name:
        raise ValueError(f"id is {id!r}; expected a lesson's name before the dot")
    return id


def collect(quizzes: Iterable[Quiz], *, lesson: str | None = None) -> dict[str, Quiz]:
    """Index quizzes by id.

    Args:
        quizzes: the quizzes.
        lesson: when given, the lesson that all of them must belong to.

    Returns:
        The quizzes by id, in the order given.

    Raises:
        ValueError: if two share an id, or one belongs to another lesson.
    """
    found: dict[str, Quiz] = {}
    for quiz in quizzes:
        if quiz.id in found:
            raise ValueError(f"two quizzes have the id {quiz.id!r}; expected ids to be unique")
        if lesson is not None and quiz.lesson != lesson:
            raise ValueError(f"quiz {quiz.id!r} stands among those of {lesson}; move it or rename")
        found[quiz.id] = quiz
    return found


@cache
def all_quizzes() -> Mapping[str, Quiz]:
    """Load the quizzes of all lessons.

    Returns:
        The quizzes by id.

    Raises:
        ValueError: if a module has no lesson's name, or a quiz in it is malformed.
    """
    found: dict[str, Quiz] = {}
    for name in sorted(module.name for module in iter_modules(__path__)):
        lesson = find_lesson(name).name
        found |= collect(import_module(f"{__name__}.{name}").QUIZZES, lesson=lesson)
    return found
