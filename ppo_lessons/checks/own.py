"""Which functions of the training loop are the learner's own by now?

    own = own_functions(globals())          # those of this notebook, then those that are kept
    train(config, parts=Parts(**own.functions))

Each is judged once more, so a file that was edited since, and broken, is found and named.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ppo_lessons.checks.answers import answer_path, load_answer
from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.exercises import CheckResult
from ppo_lessons.checks.judge import judge
from ppo_lessons.lessons import find_lesson

# A slot of `Parts`, and the exercise whose answer has exactly its arguments.
SLOTS: Mapping[str, str] = {
    "advantages": "gae.compute_gae",
    "normalize": "gae.normalize_advantages",
    "minibatches": "training_loop.shuffled_minibatches",
    "policy_loss": "clip.clipped_surrogate_loss",
    "value_loss": "critic.value_loss",
    "total_loss": "training_loop.ppo_loss",
    "gradient_step": "training_loop.clipped_gradient_step",
    "stop_epochs": "training_loop.stop_epochs",
}


@dataclass(frozen=True)
class Own:
    """What was found for each slot.

    Args:
        functions: the learner's functions, by slot; where one is missing there is no entry, and
            the package's own is used.
        rows: slot, exercise, and where its function comes from, in words.
    """

    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    rows: tuple[tuple[str, str, str], ...] = ()

    @property
    def verdict(self) -> str:
        """How many are the learner's own."""
        return f"{len(self.functions)} of {len(self.rows)} functions are your own"

    def __repr__(self) -> str:
        lines = [f"  {slot:<14} {id:<36} {words}" for slot, id, words in self.rows]
        return "\n".join([self.verdict, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(f'<td style="text-align:left">{escape(text)}</td>' for text in row)
            + "</tr>"
            for row in self.rows
        )
        heads = "".join(
            f'<th style="text-align:left">{head}</th>' for head in ("slot", "exercise", "function")
        )
        return f"<div><strong>{self.verdict}</strong><table><tr>{heads}</tr>{rows}</table></div>"


def own_functions(names: Mapping[str, Any] | None = None) -> Own:
    """Find the learner's own function for each slot of the loop that an exercise asks for.

    Args:
        names: of the notebook, such as `globals()`: a right answer there goes first, then the one
            that is kept in `my_work/answers/`. What was imported from the package is no answer.

    Returns:
        The functions by slot, and a table that says of each slot whose function it gets.
    """
    functions: dict[str, Callable[..., Any]] = {}
    rows = []
    for slot, id in SLOTS.items():
        function, words = find_own(id, names or {})
        rows.append((slot, id, words))
        if function is not None:
            functions[slot] = function
    return Own(functions, tuple(rows))


def find_own(id: str, names: Mapping[str, Any]) -> tuple[Callable[..., Any] | None, str]:
    """Find the right answer to one exercise, or say why the package's own function is used."""
    exercise = all_exercises().get(id)
    if exercise is None:
        return None, "the package's: this exercise does not exist yet"
    here = names.get(exercise.name)
    imported = str(getattr(here, "__module__", "")).startswith("ppo_lessons.")
    if callable(here) and not imported and judge(exercise, here).passed:
        return here, "yours, from this notebook"
    try:
        kept = load_answer(id)
    except Exception as error:  # the file is the learner's: anything may be in it
        file = getattr(answer_path(id), "name", id)
        return None, f"the package's: {file} cannot be imported ({type(error).__name__})"
    if kept is None:
        where = f"exercises/{find_lesson(exercise.lesson).stem}.ipynb"
        return None, f"the package's: no right answer yet, see {where}"
    result = judge(exercise, kept)
    if result.passed:
        return kept, f"yours, my_work/answers/{id}.py"
    return None, f"the package's: your kept answer does not pass any more ({cause(result)})"


def cause(result: CheckResult) -> str:
    """Name what a refused answer does wrong."""
    return result.mistake or f"stage: {result.stage}"
