"""Call the functions of `Parts` for all replicas at once: each formula stays where it is.

Replicas with the same functions and numbers form a group, and `torch.vmap` lays a replica axis
around one call for all of them. So a loss is reduced for each replica by itself. A function that
vmap cannot take is called once for each replica: slower, and the same numbers.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.training_loop import Parts, PPOConfig

Rows = slice | Tensor  # which replicas form a group


def identity(function: Any) -> Hashable:
    """Functions with the same identity compute the same, whichever of them is called."""
    if isinstance(function, partial):
        given = tuple(sorted((name, frozen(value)) for name, value in function.keywords.items()))
        return identity(function.func), tuple(map(frozen, function.args)), given
    if is_dataclass(function) and not isinstance(function, type):
        remembered = tuple(frozen(getattr(function, part.name)) for part in fields(function))
        return type(function), remembered
    return frozen(function)


def frozen(value: Any) -> Hashable:
    """A value that can be compared and looked up; what cannot be is only itself."""
    return value if isinstance(value, Hashable) else id(value)


def key_of(config: PPOConfig, parts: Parts, slots: str, numbers: str) -> Hashable:
    """What replicas of one group have in common: some of the functions, some of the numbers."""
    functions = tuple(identity(getattr(parts, slot)) for slot in slots.split())
    return functions, tuple(getattr(config, number) for number in numbers.split())


def groups(keys: Sequence[Hashable]) -> list[Rows]:
    """Which replicas have the same key: neighbours as a slice, others as indices."""
    members: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        members.setdefault(key, []).append(index)
    return [
        slice(found[0], found[-1] + 1)
        if found[-1] - found[0] + 1 == len(found)
        else torch.tensor(found)
        for found in members.values()
    ]


def first_of(rows: Rows) -> int:
    """The first replica of a group."""
    return rows.start if isinstance(rows, slice) else int(rows[0])


def gathered(rows: Sequence[Rows], results: Sequence[Tensor]) -> Tensor:
    """Put the results of the groups into the order of the replicas."""
    if len(results) == 1:
        return results[0]
    together = torch.cat(list(results))
    if all(isinstance(found, slice) for found in rows):
        return together
    order = torch.cat([torch.arange(len(together))[found] for found in rows])
    return together[order.argsort().to(together.device)]


class ForEach:
    """Calls functions on each entry of the first axis of their tensors, each entry by itself.

    It remembers which functions vmap has refused.
    """

    def __init__(self) -> None:
        self._refused: set[Hashable] = set()

    def __call__(
        self, key: Hashable, function: Callable[..., Mapping[str, Tensor]], *tensors: Tensor
    ) -> Mapping[str, Tensor]:
        """Call a function that gives several numbers by name.

        Args:
            key: says which function it is.
            function: of tensors without the first axis.
            *tensors: its arguments.

        Returns:
            What it gives, with that axis.
        """
        if key not in self._refused:
            try:
                return torch.vmap(function)(*tensors)
            except (RuntimeError, ValueError):  # it looks at numbers, draws some, works in place,
                self._refused.add(key)  # or is wrong, and says so below
        each = [function(*given) for given in zip(*tensors, strict=True)]
        return {name: torch.stack([found[name] for found in each]) for name in each[0]}


class ByColumns:
    """Calls functions of [T, columns] that treat columns one by one, for all replicas at once.

    The first time it tries out whether the function does; if not, each replica has its own call.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, bool] = {}

    def __call__(self, key: Hashable, function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        """Call a function on [R, T, N]; so is what it gives.

        Args:
            key: says which function it is.
            function: of tensors [T, columns].
            *tensors: its arguments.
        """
        if self._known.get(key, True):
            together = side_by_side(function, *tensors)
            if key not in self._known:
                alone = function(*(tensor[0] for tensor in tensors))
                self._known[key] = torch.allclose(together[0], alone, rtol=1e-5, atol=1e-6)
            if self._known[key]:
                return together
        return torch.stack([function(*given) for given in zip(*tensors, strict=True)])


def side_by_side(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """Call a function of [T, columns] with the columns of all replicas: [R, T, N] in and out."""
    together = function(*(tensor.movedim(0, 1).flatten(1, 2) for tensor in tensors))
    several = together if isinstance(together, tuple) else (together,)
    apart = tuple(rows.unflatten(1, (len(tensors[0]), -1)).movedim(1, 0) for rows in several)
    return apart if isinstance(together, tuple) else apart[0]
