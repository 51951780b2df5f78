"""Submissions as students hand them in: odd ones, wrong ones, hostile ones; and what they earn.

Each is a function of the solved exercise of lesson 04. `OF` lists them by name: `honest` and
`files` hold what harmless people do, `attacks`, `messages` and `host` what others try. What a
submission earns is written down as the share of each exercise's points, from the least to the
most: for an honest variant both are 1, an attack may be worth less, and never more.

Code that gets out of the sandbox tells so: it raises `Escaped` in its answer, so that the
exercise that was expected to be right is not.
"""

import copy
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STEM, LESSON = "04_clip", "clip"
EXERCISES = (
    "clipped_surrogate",
    "clipped_surrogate_loss",
    "clip_fractions",
    "gradient_signs",
    "mended_loss",
    "asymmetric_dual_clip",
)
FUNCTIONS = tuple(exercise for exercise in EXERCISES if exercise != "gradient_signs")
FIRST = EXERCISES[0]  # where attacks put their code, if they do not say otherwise
Notebook = dict[str, Any]
Share = tuple[float, float]  # the least and the most of an exercise's points
ALL, NONE, ANY = (1.0, 1.0), (0.0, 0.0), (0.0, 1.0)
VISIBLE = (0.0, 0.2)  # what is known to everyone is worth no more
GRADED = ("graded",)
STUCK = ("graded", "timeout")  # of a kernel that does not answer any more
ESCAPED = "class Escaped(Exception): pass\n"
# A name that attacks give to every file they write: none may be there afterwards.
TRACE = "ppo_lessons_was_here"

WRONG = {
    "clipped_surrogate": """
        def clipped_surrogate(ratios, advantages, *, clip_epsilon):
            return ratios * 0 + 17.0
    """,
    "clipped_surrogate_loss": """
        def clipped_surrogate_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
            return (log_probs * 0 + 17.0).mean()
    """,
    "clip_fractions": """
        def clip_fractions(log_probs, log_probs_old, advantages, *, clip_epsilon):
            return 0.987, 0.989
    """,
    "gradient_signs": """
        gradient_signs = {"a": -1, "b": 1, "c": -1, "d": 1, "e": 1, "f": 1}
    """,
    "mended_loss": """
        def mended_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
            return (log_probs * 0 + 17.0).mean()
    """,
    "asymmetric_dual_clip": """
        def asymmetric_dual_clip(ratios, advantages, *, epsilon_low, epsilon_high, bound):
            return ratios * 0 + 17.0
    """,
}


@dataclass(frozen=True, kw_only=True)
class Odd:
    """One submission, and what may become of it.

    Args:
        name: also the student's id, in one word.
        make: gives the bytes of the file.
        about: what it does, in a sentence.
        hostile: whether it was meant to harm; honest ones must get what they get alone.
        statuses: those that its result may have.
        shares: of the points, by exercise; `rest` for all others.
        says: a word that a note or the reason must hold.
        runs: whether its code must run to the end without an error; an attack that fails by a slip
            of its own shows nothing.
        slow: whether it waits for a limit of time.
        ending: of the file's name.
    """

    name: str
    make: Callable[[], bytes]
    about: str = ""
    hostile: bool = False
    statuses: tuple[str, ...] = GRADED
    shares: Mapping[str, Share] = field(default_factory=dict)
    rest: Share = ALL
    says: str = ""
    runs: bool = False
    slow: bool = False
    ending: str = ".ipynb"

    @property
    def student(self) -> str:
        """Who hands it in."""
        return self.name.replace("_", "")

    @property
    def file(self) -> str:
        """What the file is called."""
        return self.student + self.ending

    def share(self, exercise: str) -> Share:
        """Between which shares of its points an exercise may get."""
        return self.shares.get(exercise, self.rest)

    def write(self, folder: Path) -> Path:
        """Hand it in."""
        path = folder / self.file
        path.write_bytes(self.make())
        return path


OF: dict[str, Odd] = {}


def enter(odd: Odd) -> Odd:
    """Put a submission on the list."""
    assert odd.name not in OF, f"two submissions are called {odd.name}"
    OF[odd.name] = odd
    return odd


# --- notebooks -----------------------------------------------------------------------------


def solved() -> Notebook:
    """Read the solved exercise, as a student's file that was run."""
    return json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))


def blank() -> Notebook:
    """Read the exercise as it is given out."""
    return json.loads((ROOT / "exercises" / f"{STEM}.ipynb").read_text(encoding="utf-8"))


def source_of(cell: Mapping[str, Any]) -> str:
    """Give the text of a cell."""
    return "".join(cell["source"])


def place_of(notebook: Notebook, exercise: str) -> int:
    """Find the answer cell of an exercise."""
    marker = f"# answer: {LESSON}.{exercise}"
    places = [
        place
        for place, cell in enumerate(notebook["cells"])
        if source_of(cell).splitlines()[:1] == [marker]
    ]
    assert len(places) == 1, (exercise, places)
    return places[0]


def answer_of(notebook: Notebook, exercise: str) -> str:
    """Give the answer to an exercise, without its marker."""
    return source_of(notebook["cells"][place_of(notebook, exercise)]).partition("\n")[2]


def put_answer(notebook: Notebook, exercise: str, answer: str) -> None:
    """Write an answer under its marker."""
    cell = notebook["cells"][place_of(notebook, exercise)]
    cell["source"] = f"# answer: {LESSON}.{exercise}\n{text(answer)}"


def text(code: str) -> str:
    """Take away the indentation that code has here, and fill in what it cannot know."""
    known = {"TRACE": TRACE, "REPOSITORY": str(ROOT), "FUNCTIONS": repr(FUNCTIONS)}
    lines = textwrap.dedent(code).strip("\n") + "\n"
    for word, value in known.items():
        lines = lines.replace(word, value)
    return lines


def code_cell(source: str, identity: str = "", **metadata: Any) -> Notebook:
    """Make a cell of code."""
    cell: Notebook = {"cell_type": "code", "execution_count": None, "metadata": metadata}
    return cell | {"outputs": [], "source": text(source)} | ({"id": identity} if identity else {})


def printed(words: str) -> list[Notebook]:
    """Make the output of a cell that printed something."""
    return [{"output_type": "stream", "name": "stdout", "text": words}]


def check_cells(notebook: Notebook) -> Iterator[Notebook]:
    """Go through the student's own check cells."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "\ncheck." in "\n" + source_of(cell):
            yield cell


def with_wrong_answers(notebook: Notebook) -> Notebook:
    """Put an answer that is wrong for every input into each answer cell."""
    for exercise, answer in WRONG.items():
        put_answer(notebook, exercise, answer)
    return notebook


def as_bytes(notebook: Any) -> bytes:
    """Write a notebook as Jupyter does."""
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


# --- how the lists are written -------------------------------------------------------------


def edited(
    change: Callable[[Notebook], Notebook | None], *, right: bool = True
) -> Callable[[], bytes]:
    """Make the bytes of a solved (or wrong) notebook after a change."""

    def make() -> bytes:
        notebook = solved() if right else with_wrong_answers(solved())
        notebook = copy.deepcopy(notebook)
        changed = change(notebook)
        return as_bytes(notebook if changed is None else changed)

    return make


def inserted(
    code: str, *, where: str = "before", exercise: str = FIRST, answer: str | None = None
) -> Callable[[Notebook], None]:
    """Give the change that puts code into a notebook.

    Args:
        code: to be put in.
        where: `before` or `after` the answer in its cell; `cell` for a cell of its own before it;
            `inside` as the first lines of the function; `end` for a last cell; `start` for a first.
        exercise: whose answer it is about.
        answer: what stands there instead of the right one.
    """

    def change(notebook: Notebook) -> None:
        if answer is not None:
            put_answer(notebook, exercise, answer)
        own, lines = answer_of(notebook, exercise), text(code)
        if where in ("before", "after"):
            put_answer(notebook, exercise, lines + own if where == "before" else own + lines)
        elif where == "inside":
            head, colon, body = own.partition("):\n")
            put_answer(notebook, exercise, head + colon + textwrap.indent(lines, "    ") + body)
        else:
            last = len(notebook["cells"])
            place = {"cell": place_of(notebook, exercise), "end": last, "start": 0}[where]
            notebook["cells"].insert(place, code_cell(lines, f"added-{place}"))

    return change


def attack(
    name: str,
    about: str,
    code: str,
    *,
    right: bool = False,
    where: str = "before",
    exercise: str = FIRST,
    **more: Any,
) -> Odd:
    """Enter an attack that is code: with wrong answers it wants points, with right ones to harm."""
    more = {"rest": ALL if right else NONE, "runs": where != "inside"} | more
    make = edited(inserted(code, where=where, exercise=exercise), right=right)
    return enter(Odd(name=name, make=make, about=about, hostile=True, **more))


def variant(
    name: str,
    about: str,
    code: str,
    *,
    where: str = "before",
    exercise: str = FIRST,
    **more: Any,
) -> Odd:
    """Enter an honest submission that differs from the solution by some code."""
    make = edited(inserted(code, where=where, exercise=exercise))
    return enter(Odd(name=name, make=make, about=about, **more))


def instead(name: str, about: str, answer: str, *, exercise: str = FIRST, **more: Any) -> Odd:
    """Enter an honest submission with another answer to one exercise."""
    make = edited(lambda notebook: put_answer(notebook, exercise, answer))
    return enter(Odd(name=name, make=make, about=about, **more))


def changes(
    name: str, about: str, *, right: bool = True, **more: Any
) -> Callable[[Callable[[Notebook], Notebook | None]], Callable[[Notebook], Notebook | None]]:
    """Enter the submission that the decorated function makes of a notebook."""

    def register(
        change: Callable[[Notebook], Notebook | None],
    ) -> Callable[[Notebook], Notebook | None]:
        enter(Odd(name=name, make=edited(change, right=right), about=about, **more))
        return change

    return register


for _name in ("honest", "files", "attacks", "messages", "host"):
    import_module(f"submissions.{_name}")
