"""What is said about an answer: the mistakes that any function can make, and numbers in words."""

import inspect
import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.compare import all_close, close, same_values, wrong_gradients
from ppo_lessons.checks.exercises import Case, FunctionExercise, Outcome

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
    "wrong_dtype": "It returns a tensor of {}; expected floating-point numbers.",
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
    """Write nested lists of numbers as Python would read them."""
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(list_text, values)) + "]"
    return number_text(float(values))


def call_text(inputs: Mapping[str, Any], options: Mapping[str, float]) -> str:
    """Write the arguments of a call; long ones are cut."""
    texts = [f"{name} {text}" for name, text in ((n, list_text(v)) for n, v in inputs.items())]
    texts += [f"{name} {number_text(value)}" for name, value in options.items()]
    return ", ".join(text if len(text) < 120 else f"{text[:110]} ..." for text in texts)


def difference(
    exercise: FunctionExercise, case: Case, outcome: Outcome, right: Outcome
) -> list[tuple[str, str]]:
    """Show the smallest input that tells the two apart, expected against got."""
    if outcome.shape != right.shape:
        return [
            ("input", call_text(case.inputs, case.options)),
            ("expected", f"shape {right.shape}"),
            ("got", f"shape {outcome.shape}"),
        ]
    if not all_close(outcome.values, right.values):
        return [*show_values(exercise, case, outcome.values, right.values, "")]
    name = wrong_gradients(outcome, right)[0]
    size = len(flat(case.inputs[name]))
    got, wanted = (each.gradients.get(name) or (0.0,) * size for each in (outcome, right))
    return show_values(exercise, case, got, wanted, f"gradient to {name} ")


def show_values(
    exercise: FunctionExercise,
    case: Case,
    got: Sequence[float],
    wanted: Sequence[float],
    prefix: str,
) -> list[tuple[str, str]]:
    """Show one element where elements are independent, else the whole call."""
    inputs = {name: flat(value) for name, value in case.inputs.items()}
    if exercise.gives == "same shape":
        place = next(i for i, pair in enumerate(zip(got, wanted, strict=True)) if not close(*pair))
        inputs = {name: [values[place]] for name, values in inputs.items()}
        got, wanted = [got[place]], [wanted[place]]
    single = len(wanted) == 1
    expected, found = (list_text(row[0] if single else row) for row in (wanted, got))
    return [
        ("input", call_text(inputs, case.options)),
        ("expected", prefix + expected),
        ("got", prefix + found),
    ]


def flat(value: Any) -> list[float]:
    """Flatten nested lists of numbers."""
    if isinstance(value, (list, tuple)):
        return [number for each in value for number in flat(each)]
    return [float(value)]
