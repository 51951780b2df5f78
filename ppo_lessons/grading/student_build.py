"""Which package does a graded answer find? One without what it is asked to write."""

import shutil
from pathlib import Path

from ppo_lessons.grading.types import Manifest
from ppo_lessons.lessons import LESSONS, find_lesson

PACKAGE = Path(__file__).resolve().parents[1]
# Other people's solutions; none of them is needed.
FOREIGN = (
    *("cleanrl", "cleanrl_utils", "minatar", "sb3_contrib", "stable_baselines3", "tianshou"),
    *("torchrl", "trl", "verl"),
)
# Parts of the course that an answer does not need, and that hold or show solutions.
NOT_NEEDED = ("audit", "bench", "claims", "cli", "figures", "runs", "widgets")
# What is left of the grader: what a check cell calls.
KERNEL_SIDE = ("__init__", "ask", "fresh", "types", "items", "items.__init__", "items.questions")
# `mdp` solves what these lessons ask for; the trust region of lesson 03 stands on it.
WITHOUT_MDP = ("reinforce", "importance", "trust_region")
# Modules that hold an answer to a later lesson, and what stands on them; a test tries every
# function that is left.
ALSO = {
    "gae": ("critic",),
    "rollout": ("gae",),
    "continuous": ("networks", "envs", "rollout"),
    "tokens": ("shapes",),
    "variants": ("shapes",),
}
STUB = '''"""Not there while this is graded."""

raise ImportError({message!r})
'''


def forbidden(lesson: str) -> tuple[str, ...]:
    """List the modules that must be missing while a lesson is graded.

    Args:
        lesson: its name, as `clip`.

    Returns:
        Dotted names: those of the package begin with `ppo_lessons.`, all others are site packages.

    Raises:
        ValueError: if there is no such lesson.
    """
    number = find_lesson(lesson).number
    later = [each.name for each in LESSONS[number:] if exists(each.name)]
    names = {*later, *ALSO.get(lesson, ()), *NOT_NEEDED, "training_loop"}
    if lesson in WITHOUT_MDP:
        names.add("mdp")
    names |= {f"grading.{name}" for name in grader_modules() if name not in KERNEL_SIDE}
    return (*sorted(f"ppo_lessons.{name}" for name in names if exists(name)), *FOREIGN)


def grader_modules() -> list[str]:
    """List the modules of the grader, dotted; of a package that goes as a whole only its name."""
    folder = PACKAGE / "grading"
    found = [path.relative_to(folder).with_suffix("") for path in sorted(folder.rglob("*.py"))]
    names = [".".join(path.parts) for path in found]
    packages = {name.removesuffix(".__init__") for name in names if name.endswith(".__init__")}
    hidden = packages - set(KERNEL_SIDE)
    inside = [name for name in names if name.rpartition(".")[0] not in hidden]
    return sorted({*inside, *hidden})


def exists(name: str) -> bool:
    """Whether the package has such a module."""
    path = PACKAGE.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def student_build(manifest: Manifest, folder: Path) -> Path:
    """Copy the package to `folder/ppo_lessons`; forbidden modules raise an `ImportError` there.

    Args:
        manifest: of the assignment.
        folder: where the copy goes; one that lies there is replaced.

    Returns:
        `folder/ppo_lessons`, to be bound over the package.
    """
    copy = Path(folder) / PACKAGE.name
    if copy.exists():
        shutil.rmtree(copy)
    left_out = shutil.ignore_patterns(
        "__pycache__", "*.pyc", "recorded", "*.js", "*.css", "py.typed"
    )
    shutil.copytree(PACKAGE, copy, ignore=left_out)
    for module in manifest.forbid:
        if module.startswith(f"{PACKAGE.name}."):
            replace_by_stub(copy, module, lesson=manifest.assignment)
    return copy


def replace_by_stub(copy: Path, module: str, *, lesson: str) -> None:
    """Put a module that raises where a module or package was."""
    path = copy.joinpath(*module.split(".")[1:])
    message = (
        f"{module} is not there while lesson {lesson[:2]} is graded: write what you need yourself"
    )
    if path.is_dir():
        shutil.rmtree(path)
    path.with_suffix(".py").write_text(STUB.format(message=message), encoding="utf-8")
