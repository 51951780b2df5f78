"""Read whatever was given into float64 tensors of one layout, or say what is wrong with it."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppo_lessons.audit.names import (
    COLUMNS,
    FLAGS,
    MEANINGS,
    RESULTS,
    ROWS,
    SAMPLES,
    SCORED_VALUES,
    SETTINGS,
)

# How far apart two ways to compute the same sum may be, relative to its terms.
PRECISIONS = {torch.float64: 1e-10, torch.float32: 5e-6, torch.bfloat16: 5e-2, torch.float16: 5e-3}


@dataclass
class Facts:
    """What was given, in one layout.

    Attributes:
        rows: [T, N] float64 or bool.
        samples: [B] or [B, A] float64.
        numbers: settings and results; a loss may have one number per sample.
        precision: relative rounding error of each name.
        not_read: entries that mean nothing to the audit.
        remarks: what was done to bring them into this layout.
        side_known: "TN" or "NT" if the shapes say which axis is time, else empty.
    """

    rows: dict[str, Tensor] = field(default_factory=dict)
    columns: dict[str, Tensor] = field(default_factory=dict)
    samples: dict[str, Tensor] = field(default_factory=dict)
    numbers: dict[str, Tensor] = field(default_factory=dict)
    settings: dict[str, float] = field(default_factory=dict)
    indices: Tensor | None = None
    precision: dict[str, float] = field(default_factory=dict)
    not_read: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)
    side_known: str = ""

    def __contains__(self, name: str) -> bool:
        """Whether it was given."""
        groups = (self.rows, self.columns, self.samples, self.numbers, self.settings)
        return any(name in group for group in groups)

    def missing(self, *names: str) -> tuple[str, ...]:
        """Those of the names that were not given."""
        return tuple(name for name in names if name not in self)

    def rounding(self, *names: str) -> float:
        """The coarsest rounding of those that were given."""
        return max(
            (self.precision[name] for name in names if name in self.precision), default=1e-10
        )


def read(
    tensors: Mapping[str, Any] | str | Path,
    names: Mapping[str, str] | None = None,
    *,
    turned: bool = False,
) -> Facts:
    """Read a mapping, or an `.npz` file, into `Facts`.

    Args:
        tensors: arrays, tensors, lists or numbers; entries that are None are left out.
        names: ours → theirs, for entries under another name.
        turned: the tables are [N, T].

    Returns:
        The facts.

    Raises:
        ValueError: if a file, a name, a shape or a number cannot be read, with what to do.
        TypeError: if something is no array.
    """
    if isinstance(tensors, (str, Path)):
        tensors = load(Path(tensors))
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"tensors is a {type(tensors).__name__}; expected a dictionary from names to tensors, "
            "or the path of an .npz file. Collect what you have: audit({'rewards': rewards, ...})."
        )
    chosen, not_read = choose(tensors, names or {})
    arrays = {name: to_tensor(name, entry) for name, entry in chosen.items()}
    if SCORED_VALUES in arrays:  # then `values` are those of the loss, as in docs/notation.md
        if "new_values" not in arrays and "values" in arrays:
            arrays["new_values"] = arrays.pop("values")
        arrays["values"] = arrays.pop(SCORED_VALUES)
    facts = Facts(not_read=not_read)
    facts.precision = {name: precision_of(tensor) for name, tensor in arrays.items()}
    for name in SETTINGS.keys() & arrays.keys():
        facts.settings[name] = one_number(name, arrays[name])
    if "indices" in arrays:
        facts.indices = arrays["indices"].flatten().long()
    split_last_row(arrays)
    facts.side_known = side_of(arrays)
    if turned or facts.side_known == "NT":
        arrays = turn(arrays)
        facts.remarks.append("the tables are [N, T], environments first; read turned")
    place_rows(facts, arrays)
    place_samples(facts, arrays)
    return facts


def load(path: Path) -> dict[str, Any]:
    """Open an `.npz` file.

    Raises:
        ValueError: if there is none, or it is another kind of file.
    """
    if not path.is_file():
        raise ValueError(f"{path} is no file; expected an .npz file. Write one with np.savez.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, AttributeError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); expected an .npz file of plain arrays. Write one: "
            "np.savez('rollout.npz', rewards=rewards, values=values, ...)."
        ) from None


def choose(
    tensors: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Find each of our names; an entry that `names` claims is not read under its own name too.

    Raises:
        ValueError: if a name does not exist, an entry is missing, or nothing is left to audit.
    """
    known = [*MEANINGS, SCORED_VALUES]
    for ours, theirs in names.items():
        if ours not in known:
            raise ValueError(
                f"names has {ours!r}; expected one of {', '.join(known)}."
                f"{did_you_mean(ours, known)} Write names={{ours: theirs}}."
            )
        if theirs not in tensors and (hint := did_you_mean(theirs, list(map(str, tensors)))):
            raise ValueError(
                f"names says that {ours} is {theirs!r}, and there is no such entry.{hint} Write "
                "the name that your program uses."
            )
    names = {ours: theirs for ours, theirs in names.items() if theirs in tensors}
    claimed = set(names.values())
    chosen = {name: tensors[name] for name in known if name in tensors and name not in claimed}
    rest = [str(name) for name in tensors if name not in claimed and name not in chosen]
    chosen |= {ours: tensors[theirs] for ours, theirs in names.items()}
    for name in rest:
        if not names and (hint := did_you_mean(name, known)):
            raise ValueError(
                f"the audit knows no {name!r}.{hint} Rename it, or say what it is: "
                f"names={{'...': {name!r}}}."
            )
    chosen = {name: entry for name, entry in chosen.items() if entry is not None}
    if not chosen.keys() - SETTINGS.keys():
        raise ValueError(
            f"nothing of {', '.join(map(str, tensors)) or 'an empty dictionary'} can be audited; "
            f"expected some of {', '.join(known)}. Say what is what: names={{'ended': 'dones'}}."
        )
    return chosen, tuple(name for name in rest if not name.startswith("_"))


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint, where a name is nearly one that we know."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f" Did you mean {close[0]!r}?" if close else ""


def to_tensor(name: str, entry: Any) -> Tensor:
    """Make one tensor on the CPU, of the dtype that was given.

    Raises:
        TypeError: if it holds no numbers.
    """
    try:
        if isinstance(entry, (list, tuple)) and len(entry) and isinstance(entry[0], Tensor):
            entry = torch.stack([part.detach() for part in entry])
        if isinstance(entry, Tensor):
            return entry.detach().cpu()
        return torch.as_tensor(np.asarray(entry))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} is a {type(entry).__name__} that makes no tensor ({error}); expected numbers "
            f"in an array, a tensor or nested lists of equal length. Convert {name}, or leave it "
            "out."
        ) from None


def precision_of(tensor: Tensor) -> float:
    """How many digits were computed: float64 that fits into float32 came from there."""
    if not tensor.is_floating_point():
        return PRECISIONS[torch.float64]
    if tensor.dtype == torch.float64 and bool((tensor.float() == tensor).all()):
        return PRECISIONS[torch.float32]
    return PRECISIONS.get(tensor.dtype, PRECISIONS[torch.float32])


def one_number(name: str, tensor: Tensor) -> float:
    """A setting as a number.

    Raises:
        ValueError: if it is more than one, or not finite.
    """
    if tensor.numel() != 1 or not bool(torch.isfinite(tensor.double()).all()):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)} and is {tensor.tolist()}; expected one finite "
            f"number. Pass the {name} of this rollout."
        )
    return float(tensor)


def split_last_row(arrays: dict[str, Tensor]) -> None:
    """Take T + 1 rows apart where a buffer keeps what came after the last row below it."""
    for name, below in (("values", "last_values"), ("starts", "last_ended")):
        rewards = arrays.get("rewards", arrays.get("bootstrapped_rewards"))
        if rewards is None or name not in arrays or rewards.ndim == 0:
            continue
        if arrays[name].ndim == rewards.ndim and len(arrays[name]) == len(rewards) + 1:
            arrays.setdefault(below, arrays[name][-1])
            arrays[name] = arrays[name][:-1]
    rewards, next_values = arrays.get("rewards"), arrays.get("next_values")
    if rewards is None or next_values is None or "last_values" in arrays:
        return
    if next_values.ndim < rewards.ndim or next_values.numel() == 1 < len(rewards):
        arrays["last_values"] = arrays.pop("next_values")


def table_shape(arrays: Mapping[str, Tensor]) -> torch.Size | None:
    """Shape of the first table with two axes."""
    shapes = (arrays[name].shape[:2] for name in ROWS | FLAGS if name in arrays)
    return next((shape for shape in shapes if len(shape) == 2), None)


def side_of(arrays: Mapping[str, Tensor]) -> str:
    """Which axis is time, as far as the columns tell: each has one entry per environment."""
    shape = table_shape(arrays)
    if shape is None or 1 in shape:
        return "TN"
    sizes = {arrays[name].numel() for name in COLUMNS if name in arrays}
    if shape[0] == shape[1] or len(sizes) != 1:
        return ""
    return {shape[1]: "TN", shape[0]: "NT"}.get(sizes.pop(), "")


def turn(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Swap the first two axes of everything that has the shape of the tables."""
    shape = table_shape(arrays)
    return {
        name: tensor.transpose(0, 1) if tensor.ndim > 1 and tensor.shape[:2] == shape else tensor
        for name, tensor in arrays.items()
    }


def place_rows(facts: Facts, arrays: dict[str, Tensor]) -> None:
    """Bring what belongs to time and environment to [T, N].

    Raises:
        ValueError: if shapes do not fit together, or a fact is not finite.
    """
    shape, first = None, ""
    for name in ROWS | FLAGS:
        if name not in arrays:
            continue
        table = two_axes(name, arrays[name])
        if shape is None:
            shape, first = table.shape, name
        if table.shape != shape and table.T.shape == shape:
            facts.remarks.append(f"{name} is [N, T] where {first} is [T, N]; read turned")
            table = table.T
        if table.shape != shape:
            raise ValueError(
                f"{name} has shape {tuple(arrays[name].shape)}; expected "
                f"{tuple(arrays[first].shape)} like {first}. Give both for the same steps, before "
                "they are flattened or shuffled; or audit one minibatch by itself."
            )
        facts.rows[name] = as_flags(name, table) if name in FLAGS else table.double()
    for name in COLUMNS.keys() & arrays.keys():
        column = arrays[name].flatten()
        if shape is None or len(column) != shape[1]:
            raise ValueError(
                f"{name} has shape {tuple(arrays[name].shape)}; expected one entry for each "
                f"environment{'' if shape is None else f' of {first} {tuple(shape)}'}. Give it "
                "together with the rollout that it ends."
            )
        facts.columns[name] = (
            as_flags(name, column) if name in FLAGS or name == "last_ended" else (column.double())
        )
    check_facts_finite(facts)


def two_axes(name: str, tensor: Tensor) -> Tensor:
    """[T, N] of [T], [T, N] or [T, N, 1].

    Raises:
        ValueError: for any other shape.
    """
    table = tensor.squeeze(-1) if tensor.ndim == 3 and tensor.shape[-1] == 1 else tensor
    if table.ndim == 1:
        table = table.unsqueeze(-1)
    if table.ndim != 2 or table.numel() == 0:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; expected (T, N) or (T,), with at least one "
            "step. Leave out other axes."
        )
    return table


def as_flags(name: str, tensor: Tensor) -> Tensor:
    """Booleans of zeros and ones.

    Raises:
        ValueError: if something else is in there.
    """
    wrong = (tensor != 0) & (tensor != 1)
    if wrong.any():
        place = tuple(torch.nonzero(wrong)[0].tolist())
        raise ValueError(
            f"{name} holds {tensor[place].item()} at index {place}; expected true or false, 1 or 0."
            f" Check which array you passed as {name}."
        )
    return tensor.bool()


def check_facts_finite(facts: Facts) -> None:
    """Require finite rewards and values; results may be broken, that is for the audit to say.

    Raises:
        ValueError: with the first place of a number that is not finite.
    """
    for name in ("rewards", "bootstrapped_rewards", "values"):
        if name in facts.rows and not bool(torch.isfinite(facts.rows[name]).all()):
            place = tuple(torch.nonzero(~torch.isfinite(facts.rows[name]))[0].tolist())
            raise ValueError(
                f"{name} holds {facts.rows[name][place].item()} at index {place}; expected finite "
                "numbers. Look at the observations and the network there: no formula of PPO "
                "mends that."
            )


def place_samples(facts: Facts, arrays: dict[str, Tensor]) -> None:
    """Bring what belongs to samples to [B] or [B, A].

    Raises:
        ValueError: if there are not as many samples as rows.
    """
    present = [name for name in SAMPLES if name in arrays]
    size = next(iter(facts.rows.values())).numel() if facts.rows else None
    if facts.indices is not None:
        check_indices(facts.indices, size)
        if "log_probs_old" in arrays and arrays["log_probs_old"].numel() == size:
            arrays["log_probs_old"] = arrays["log_probs_old"].flatten()[facts.indices]
        size = len(facts.indices)
    if size is None and present:
        size = min(arrays[name].numel() for name in present)
    for name in present:
        tensor = arrays[name].double()
        if tensor.numel() == size:
            facts.samples[name] = tensor.flatten()
        elif size and tensor.ndim > 1 and tensor.shape[:-1].numel() == size:
            facts.samples[name] = tensor.reshape(size, -1)
        else:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; expected {size} samples like the others. "
                "Audit a minibatch by itself, or give `indices`: which rows it holds."
            )
    for name in RESULTS.keys() & arrays.keys():
        tensor = arrays[name].double()
        facts.numbers[name] = tensor.reshape(()) if tensor.numel() == 1 else tensor.flatten()


def check_indices(indices: Tensor, size: int | None) -> None:
    """Require that a minibatch consists of rows of the batch.

    Raises:
        ValueError: otherwise.
    """
    if size is None or len(indices) == 0 or int(indices.min()) < 0 or int(indices.max()) >= size:
        raise ValueError(
            f"indices has {len(indices)} entries, from {indices.tolist()[:3]} on; expected rows of "
            f"a batch of {size or 'unknown size'}. Give them together with the rollout, numbered "
            "with time first: t·N + n."
        )
