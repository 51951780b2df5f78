"""What lessons are there, in which order, and which route leads through them?

The order exists once, in `LESSONS`: the position of a lesson is its number. Numbered files are
opened (`notebooks/08_training_loop.ipynb`), unnumbered files are imported
(`ppo_lessons.training_loop`), so inserting a lesson renames no code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson and the parts of it that exist.

    Args:
        name: identifier, equal to the name of the lesson's module.
        title: heading for people.
        question: what the lesson answers.
        minutes: time to read and run the notebook, without its exercises.
        prerequisites: names of the lessons whose ideas this one uses.
        module: `ppo_lessons/<name>.py` exists.
        notebook: `notebooks/NN_<name>.ipynb` and its source exist.
        exercise: the exercise, its source and its solution exist.
        widgets: names of the widgets that belong to the lesson: `ppo_lessons/widgets/<widget>.py`
            and its static twin `ppo_lessons/figures/<widget>.py` exist.
        figures: `ppo_lessons/figures/<name>.py` exists.
        checks: `ppo_lessons/checks/<name>.py` exists.
    """

    name: str
    title: str
    question: str
    minutes: int
    prerequisites: tuple[str, ...] = ()
    module: bool = False
    notebook: bool = False
    exercise: bool = False
    widgets: tuple[str, ...] = ()
    figures: bool = False
    checks: bool = False

    @property
    def number(self) -> int:
        """Position in `LESSONS`."""
        return [lesson.name for lesson in LESSONS].index(self.name)

    @property
    def stem(self) -> str:
        """File name without its ending, as in `08_training_loop`."""
        return f"{self.number:02d}_{self.name}"

    @property
    def status(self) -> str:
        """Say "ready" when there is a notebook to open, else "planned"."""
        return "ready" if self.notebook else "planned"

    def files(self) -> tuple[str, ...]:
        """List the files of this lesson that exist, relative to the project's root.

        Returns:
            Paths with forward slashes. A module that outgrew its page is a package: there the
            file named here is `<name>.py`, and `<name>/__init__.py` stands for it.
        """
        parts = {
            f"ppo_lessons/{self.name}.py": self.module,
            f"notebooks/source/{self.stem}.py": self.notebook,
            f"notebooks/{self.stem}.ipynb": self.notebook,
            f"exercises/source/{self.stem}.py": self.exercise,
            f"exercises/{self.stem}.ipynb": self.exercise,
            f"solutions/{self.stem}.ipynb": self.exercise,
            f"ppo_lessons/figures/{self.name}.py": self.figures,
            f"ppo_lessons/checks/{self.name}.py": self.checks,
        }
        twins = ("ppo_lessons/widgets", "ppo_lessons/figures")
        widgets = tuple(f"{folder}/{widget}.py" for widget in self.widgets for folder in twins)
        return tuple(path for path, exists in parts.items() if exists) + widgets


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        name="start_here",
        title="Start here",
        question="Is my set-up fine, and how does this course work?",
        minutes=15,
        notebook=True,
    ),
    Lesson(
        name="reinforce",
        title="REINFORCE",
        question="How can a return push a probability?",
        minutes=50,
        module=True,
        widgets=("gradient_agreement", "return_horizon"),
        notebook=True,
        figures=True,
        exercise=True,
        checks=True,
    ),
    Lesson(
        name="importance",
        title="Importance sampling",
        question="May I reuse old data?",
        minutes=45,
        prerequisites=("reinforce",),
        module=True,
        widgets=("ratio_from_logits",),
        notebook=True,
        figures=True,
        exercise=True,
        checks=True,
    ),
    Lesson(
        name="trust_region",
        title="Trust region",
        question="How far may I trust the surrogate?",
        minutes=50,
        prerequisites=("importance",),
        module=True,
        widgets=("trust_region_map",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="clip",
        title="The clip",
        question="What does one line buy?",
        minutes=30,
        prerequisites=("importance", "trust_region"),
        module=True,
        widgets=("clip_region",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="critic",
        title="The critic",
        question="Who tells me what to expect?",
        minutes=60,
        prerequisites=("reinforce",),
        module=True,
        widgets=("baseline_variance", "value_fit"),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="gae",
        title="Advantages (GAE)",
        question="How much do I trust the critic?",
        minutes=45,
        prerequisites=("critic",),
        module=True,
        widgets=("gae_scan", "lambda_tradeoff"),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="rollout",
        title="Rollouts",
        question="Where does an episode end?",
        minutes=60,
        prerequisites=("gae",),
        module=True,
        widgets=("end_kinds",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="training_loop",
        title="The training loop",
        question="How do the parts fit?",
        minutes=60,
        prerequisites=("clip", "gae", "rollout"),
        module=True,
        widgets=("batch_ledger", "life_of_a_transition", "run_scrubber"),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="continuous",
        title="Continuous actions",
        question="What if actions are real numbers?",
        minutes=55,
        prerequisites=("training_loop",),
        module=True,
        widgets=("gaussian_policy",),
        notebook=True,
        figures=True,
        exercise=True,
        checks=True,
    ),
    Lesson(
        name="gpu_run",
        title="A full run",
        question="How do I run the whole thing, fast?",
        minutes=45,
        prerequisites=("training_loop",),
        module=True,
        notebook=True,
        exercise=True,
        widgets=("throughput_ledger",),
        figures=True,
        checks=True,
    ),
    Lesson(
        name="ablations",
        title="Ablations",
        question="Which parts matter?",
        minutes=45,
        prerequisites=("training_loop",),
        module=True,
        notebook=True,
        exercise=True,
        checks=True,
        widgets=("seed_count",),
        figures=True,
    ),
    Lesson(
        name="debugging",
        title="Debugging",
        question="Why does mine not learn?",
        minutes=40,
        prerequisites=("training_loop",),
        exercise=True,
        checks=True,
        module=True,
        notebook=True,
        figures=True,
        widgets=("which_bug",),
    ),
    Lesson(
        name="tokens",
        title="Tokens",
        question="What is a state, an action for a language model?",
        minutes=45,
        prerequisites=("clip", "gae"),
        module=True,
        widgets=("token_strip",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="rlhf",
        title="RLHF",
        question="Who are the four models?",
        minutes=50,
        prerequisites=("tokens", "trust_region", "training_loop"),
        module=True,
        widgets=("beta_slider",),
        notebook=True,
        exercise=True,
        checks=True,
        figures=True,
    ),
    Lesson(
        name="variants",
        title="Variants",
        question="Which part did they replace?",
        minutes=45,
        prerequisites=("rlhf",),
        module=True,
        widgets=("part_swap",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
    Lesson(
        name="staleness",
        title="Stale rollouts",
        question="What if rollouts are old?",
        minutes=30,
        prerequisites=("importance", "rlhf"),
        module=True,
        widgets=("staleness_timeline",),
        notebook=True,
        exercise=True,
        checks=True,
        figures=True,
    ),
    Lesson(
        name="evidence",
        title="Evidence",
        question="May it ship?",
        minutes=45,
        prerequisites=("rlhf", "variants"),
        module=True,
        widgets=("which_run",),
        notebook=True,
        exercise=True,
        figures=True,
        checks=True,
    ),
)


def find_lesson(key: int | str) -> Lesson:
    """Look a lesson up by number or name.

    Args:
        key: a number (`8`, `"08"`), a name (`"training_loop"`) or a file's stem
            (`"08_training_loop"`).

    Returns:
        The lesson.

    Raises:
        ValueError: if there is no such lesson.
    """
    text = str(key)
    known: dict[str, Lesson] = {}
    for number, lesson in enumerate(LESSONS):
        for spelling in (str(number), f"{number:02d}", lesson.name, f"{number:02d}_{lesson.name}"):
            known[spelling] = lesson
    if text in known:
        return known[text]
    names = [lesson.name for lesson in LESSONS]
    near = get_close_matches(text, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "names are: " + ", ".join(names) + "."
    last = len(LESSONS) - 1
    raise ValueError(f"no lesson {key!r}; expected a number from 0 to {last} or a name; {hint}")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One way through the course.

    Args:
        name: identifier.
        title: heading for people.
        lessons: names of lessons, in the order of `LESSONS`.
        assumed: for each prerequisite that the route leaves out, the one sentence to take
            from it on trust.
        skips: for each lesson that the route does not read whole, the headings of the sections
            that it leaves out.
        saved: minutes that leaving them out saves, by lesson.
    """

    name: str
    title: str
    lessons: tuple[str, ...]
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    skips: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    saved: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def minutes(self) -> int:
        """Sum of the minutes of its lessons, without the sections that it leaves out."""
        whole = sum(find_lesson(name).minutes for name in self.lessons)
        return whole - sum(self.saved.values())


ROUTES: tuple[Route, ...] = (
    Route(
        name="ninety_minutes",
        title="Ninety minutes",
        lessons=("reinforce", "clip", "gae", "training_loop"),
        assumed=MappingProxyType(
            {
                "importance": "Multiplying by π_new/π_old corrects for data that an older policy "
                "collected, while the two stay close.",
                "trust_region": "How far two policies are apart is measured by their KL, and what "
                "the old data promise is to be trusted only near the policy that collected them.",
                "critic": "Subtracting what a critic expected keeps the mean of the gradient and "
                "lowers its noise.",
                "rollout": "Terminated means that the future is worth nothing; truncated means "
                "that we stopped watching.",
            }
        ),
        skips=MappingProxyType(
            {
                "reinforce": (
                    "Three questions first",
                    "How far to look",
                    "The loss that is none",
                    "Two arrows, with your hands",
                    "What breaks it",
                    "Questions",
                    "The stair",
                ),
                "clip": (
                    "Three questions first",
                    "The edge that is never reached",
                    "What was not drawn",
                    "A lower bound, but of what?",
                    "A fence beside it: stop on KL",
                    "What breaks it",
                    "Exercises",
                    "Questions",
                ),
                "gae": ("A sentence that is half true", "Which λ, then?", "What breaks it"),
                "training_loop": (
                    "Four more lives",
                    "How often can you squeeze?",
                    "Frozen, or computed anew?",
                    "Which number warns you first?",
                    "One run is no run",
                    "What breaks it",
                    "Exercises",
                    "Questions",
                    "The stair",
                ),
            }
        ),
        saved=MappingProxyType({"reinforce": 24, "clip": 13, "gae": 22, "training_loop": 36}),
    ),
    Route(
        name="language_models",
        title="Language-model engineer",
        lessons=(
            "reinforce",
            "importance",
            "trust_region",
            "clip",
            "critic",
            "gae",
            "tokens",
            "rlhf",
            "variants",
            "staleness",
            "evidence",
        ),
        assumed=MappingProxyType(
            {
                "training_loop": "One iteration is four stages: collect data, score it, squeeze "
                "it for several epochs, renew it.",
            }
        ),
    ),
    Route(
        name="everything",
        title="Everything",
        lessons=tuple(lesson.name for lesson in LESSONS),
    ),
)


class MarkdownText(str):
    """Text that a notebook renders as Markdown and a terminal prints as it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)


def lesson_table(*, folder: str = "notebooks") -> MarkdownText:
    """Tabulate the lessons for the README and the start page.

    Args:
        folder: where the notebooks lie, seen from the page that shows the table; "" or "."
            when the page lies beside them.

    Returns:
        A Markdown table: number, title (a link when there is a notebook), question, minutes
        and status.
    """
    prefix = "" if folder in ("", ".") else folder.rstrip("/") + "/"
    rows = ["| # | lesson | question | minutes | status |", "| ---: | --- | --- | ---: | --- |"]
    for number, lesson in enumerate(LESSONS):
        link = f"[{lesson.title}]({prefix}{lesson.stem}.ipynb)"
        title = link if lesson.notebook else lesson.title
        cells = f"{number:02d} | {title} | {lesson.question} | {lesson.minutes} | {lesson.status}"
        rows.append(f"| {cells} |")
    return MarkdownText("\n".join(rows))


def route_table() -> MarkdownText:
    """Tabulate the routes for the README and the start page.

    Returns:
        A Markdown table: title, lessons by number and name, hours and minutes, and how many of
        the lessons have a notebook; below it, the sections that a route leaves out.
    """
    rows = ["| route | lessons | time | ready today |", "| --- | --- | ---: | ---: |"]
    for route in ROUTES:
        steps = " → ".join(f"{find_lesson(name).number:02d}\u00a0{name}" for name in route.lessons)
        if len(route.lessons) == len(LESSONS):
            steps = f"00 to {len(LESSONS) - 1:02d}, in order"
        hours, minutes = divmod(route.minutes, 60)
        ready = sum(find_lesson(name).notebook for name in route.lessons)
        cells = f"{route.title} | {steps} | {hours} h {minutes:02d} min"
        rows.append(f"| {cells} | {ready} of {len(route.lessons)} |")
    for route in ROUTES:
        for name, headings in route.skips.items():
            left_out = ", ".join(f"*{heading}*" for heading in headings)
            rows += ["", f"{route.title} leaves out of {find_lesson(name).stem}: {left_out}."]
    return MarkdownText("\n".join(rows))
