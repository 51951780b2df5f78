"""What is said about an answer: the mistakes that any function can make, and numbers in words."""

import inspect
import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.compare import all_close, close, same_values, wrong_gradients
from ppo_lessons.checks.exercises import Case, FunctionExercise, Made, Outcome, leaves

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

# What can go wrong with any answer: {} is filled in.
GENERAL = {
    "not_written": "Replace the line that raises NotImplementedError, or the None, by your "
    "answer. Run that cell, then the check again.",
    "not_a_function": "The check wants the function itself, by its name and without brackets; it "
    "got {}.",
    "wrong_signature": "It cannot be called as the task says: {}. Keep the line with `def` as it "
    "stood.",
    "raises": "It stopped with {}",
    "too_slow": "It took longer than {} s. Is there a loop that never ends?",
    "returns_nothing": "It returns None. Is the `return` missing?",
    "wrong_type": "It returns {}; expected {}.",
    "wrong_dtype": "It returns a tensor of {}; expected {}.",
    "wrong_shape": "The result must be {}.",
    "changes_its_inputs": "It changed {} in place. The caller still needs those numbers: work on "
    "a copy, or use the version of the operation without the underscore.",
    "gradient_lost": "The numbers are right, and no gradient reaches {}: somewhere the result was "
    "cut off from its inputs (.item(), .detach(), torch.tensor(...), numpy, no_grad).",
    "gradient_into_constants": "The numbers are right, and a gradient flows into {}: constants, "
    "as the task says. Detach each of them.",
    "constant_factor": "Every number is {} times the right one.",
    "python_choice": "Python's `if`, `and`, `min` and `max` want one yes or no, and a tensor holds "
    "many. Use torch.where, `&`, torch.minimum, torch.maximum.",
    "mean_of_booleans": "A mean needs floating-point numbers, and these are yes and no. Write "
    ".float() first.",
    "name_missing": "{} An answer cell holds all that it needs, imports included.",
    "sign_turned": "The sign is turned: multiply by −1.",
    "not_exact_enough": "You are near, and not near enough: compute with more digits. Each number "
    "may be off by {}.",
    "gives_nan": "It gives NaN: 0/0, ∞ − ∞ or the logarithm of a negative number.",
}

# What torch and Python say -> the general mistake behind it.
ERRORS = {
    re.compile("is ambiguous"): "python_choice",
    re.compile("could not infer output dtype"): "mean_of_booleans",
    re.compile("^NameError: name '.*' is not defined"): "name_missing",
    re.compile(r"Can't call numpy\(\)"): "gradient_lost",
}


def general_sentence(exercise: FunctionExercise, problem: str, detail: str) -> str:
    """Fill the sentence of a general mistake."""
    if problem == "wrong_type":
        return GENERAL[problem].format(detail, exercise.expects)
    if problem == "wrong_dtype":
        return GENERAL[problem].format(detail, exercise.kind)
    if problem == "wrong_shape":
        return GENERAL[problem].format(exercise.expects)
    if problem == "gradient_lost":
        return GENERAL[problem].format(" or ".join(exercise.learns))
    return GENERAL[problem].format(detail)


def general_name(exercise: FunctionExercise, outcome: Outcome, right: Outcome) -> str | None:
    """Recognise a mistake that any function can make."""
    if any(math.isnan(value) for value in outcome.values):
        return "gives_nan"
    lost = [name for name in exercise.learns if outcome.gradients.get(name) is None]
    if right.gradients and len(lost) == len(exercise.learns) and same_values(outcome, right):
        return "gradient_lost"
    if right.gradients and same_values(outcome, right) and leaks(exercise, outcome, right):
        return "gradient_into_constants"
    return None


def leaks(exercise: FunctionExercise, outcome: Outcome, right: Outcome) -> list[str]:
    """List the constants that a gradient reaches."""
    return [name for name in wrong_gradients(outcome, right) if name not in exercise.learns]


def kind_of(value: Any) -> str:
    """Name a type with its article."""
    if type(value) in (Tensor, torch.nn.Parameter):
        return f"a tensor of shape {tuple(value.shape)}"
    name = "numpy array" if type(value).__name__ == "ndarray" else type(value).__name__
    article = "an" if name[:1].lower() in tuple("aeiou") else "a"
    length = f" of {len(value)}" if type(value) in (tuple, list) else ""
    if length and value and type(value[0]) in (Tensor, tuple, list):
        length += f", the first of them {kind_of(value[0])}"
    return "None" if value is None else f"{article} {name}{length}"


def describe(error: BaseException, function: Callable[..., Any]) -> str:
    """Say what was raised and where in the answer, the same in every run."""
    try:
        first = (ADDRESS.sub("", str(error)).strip().splitlines() or [""])[0][:200]
        file = inspect.unwrap(function).__code__.co_filename
        frames = traceback.extract_tb(error.__traceback__, limit=100)
        lines = [frame.line for frame in frames if frame.filename == file and frame.line]
    except BaseException:  # even the message may be code of the learner's
        first, lines = "", []
    if isinstance(error, RecursionError):
        first = "it calls itself without end"
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    return f"{text} The line: {lines[-1]}" if lines else text


# --- a difference in words -----------------------------------------------------------------


def number_text(value: float) -> str:
    """Write a number shortly; a negative zero is a zero."""
    return f"{value + 0.0:.6g}" if math.isfinite(value) else str(value)


def list_text(values: Any) -> str:
    """Write nested lists of numbers as Python would read them; what is no number in its words."""
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(list_text, values)) + "]"
    if isinstance(values, Made):
        return values.words
    if values is None or isinstance(values, (bool, str)):
        return repr(values)
    return number_text(float(values))


def call_text(inputs: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Write the arguments of a call; long ones are cut."""
    texts = [f"{name} {list_text(value)}" for name, value in (*inputs.items(), *options.items())]
    return ", ".join(text if len(text) < 120 else f"{text[:110]} ..." for text in texts)


def difference(
    exercise: FunctionExercise, case: Case, outcome: Outcome, right: Outcome
) -> list[tuple[str, str]]:
    """Show the smallest input that tells the two apart, expected against got."""
    if outcome.shape != right.shape:
        word = "shapes" if exercise.gives == "several" else "shape"
        return [
            ("input", call_text(case.inputs, case.options)),
            ("expected", f"{word} {right.shape}"),
            ("got", f"{word} {outcome.shape}"),
        ]
    if exercise.gives == "several":
        return different_part(exercise, case, outcome, right)
    if not all_close(outcome.values, right.values):
        return show_values(exercise, case, outcome.values, right.values, right.shape, "")
    name = wrong_gradients(outcome, right)[0]
    given = {**case.inputs, **case.options}[name]
    size = len(flat(given))
    got, wanted = (each.gradients.get(name) or (0.0,) * size for each in (outcome, right))
    return show_values(exercise, case, got, wanted, sizes_of(given), f"gradient to {name} ")


def different_part(
    exercise: FunctionExercise, case: Case, outcome: Outcome, right: Outcome
) -> list[tuple[str, str]]:
    """Show the first of several results that differs; or the gradient, if none does."""
    start = 0
    for name, shape in zip(exercise.parts, right.shape, strict=True):
        place = slice(start, start + math.prod(shape))
        if not all_close(outcome.values[place], right.values[place]):
            got, wanted = outcome.values[place], right.values[place]
            return show_values(exercise, case, got, wanted, shape, f"{name} ")
        start = place.stop
    parts = (replace(each, shape=(), values=()) for each in (outcome, right))
    return difference(replace(exercise, gives="tensor"), case, *parts)


def show_values(
    exercise: FunctionExercise,
    case: Case,
    got: Sequence[float],
    wanted: Sequence[float],
    shape: Sequence[int],
    prefix: str,
) -> list[tuple[str, str]]:
    """Show one element, or one row, where these are independent; else the whole call."""
    inputs = dict(case.inputs)
    place = next(i for i, pair in enumerate(zip(got, wanted, strict=True)) if not close(*pair))
    if exercise.gives == "same shape":
        inputs = {name: [leaves(value)[place]] for name, value in inputs.items()}
        shape, got, wanted = (1,), [got[place]], [wanted[place]]
    elif exercise.gives == "one per row":
        width = math.prod(shape[1:])
        row = place // width
        inputs = {name: [value[row]] for name, value in inputs.items()}
        shape = (1, *shape[1:])
        got, wanted = (each[row * width : (row + 1) * width] for each in (got, wanted))
    if len(wanted) == 1:
        shape = ()
    if exercise.kind == "yes or no" and not prefix.startswith("gradient"):
        got, wanted = list(map(bool, got)), list(map(bool, wanted))
    return [
        ("input", call_text(inputs, case.options)),
        ("expected", prefix + list_text(nested(wanted, shape))),
        ("got", prefix + list_text(nested(got, shape))),
    ]


def flat(value: Any) -> list[float]:
    """Flatten nested lists of numbers."""
    return [float(leaf) for leaf in leaves(value)]


def sizes_of(value: Any) -> tuple[int, ...]:
    """Give the shape of nested lists."""
    return (len(value), *sizes_of(value[0])) if isinstance(value, list) and value else ()


def nested(values: Sequence[Any], shape: Sequence[int]) -> Any:
    """Cut a row of numbers into nested lists of a shape."""
    if not shape:
        return values[0]
    width = math.prod(shape[1:])
    return [nested(values[i * width : (i + 1) * width], shape[1:]) for i in range(shape[0])]
