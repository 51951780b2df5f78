"""Tensors that go into an iteration and come out of it as the same objects.

A CUDA graph reads and writes fixed addresses. Environments make new tensors at each step, so at the
end of an iteration what they reached is copied to where the iteration began.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Generator, Tensor

from ppo_lessons.types import Carry

Path = tuple[Any, ...]


class Pinned:
    """What environments and carry hold, at fixed places: `settle` brings everything back to them.

    Args:
        owners: objects whose tensors are to stay; those inside dictionaries, tuples and other
            environments too. Each tensor gets memory of its own, since two names may share one.
    """

    def __init__(self, *owners: Any):
        self.owners = owners
        for number, owner in enumerate(owners):
            rebuild(owner, (number,), lambda _, tensor: tensor.clone())
        found = list(self._found())
        self.places = {path: thing for path, thing in found if isinstance(thing, Tensor)}
        self.generators = [thing for _, thing in found if isinstance(thing, Generator)]

    def settle(self) -> None:
        """Copy what was reached to the fixed places, and put the tensors there back.

        Raises:
            ValueError: if a tensor is new, gone, or of another shape than before.
        """
        reached = {path: found for path, found in self._found() if isinstance(found, Tensor)}
        check_same_places(self.places, reached)
        fixed = {memory(place) for place in self.places.values()}
        moved = {
            # one place may hold what another held before: take it along before that is overwritten
            path: found.clone() if memory(found) in fixed else found
            for path, found in reached.items()
            if found is not self.places[path]
        }
        for path, found in moved.items():
            self.places[path].copy_(found)
        for number, owner in enumerate(self.owners):
            rebuild(owner, (number,), lambda path, _: self.places[path])

    def _found(self) -> Iterator[tuple[Path, Any]]:
        for number, owner in enumerate(self.owners):
            yield from each_inside(owner, (number,))


def each_inside(thing: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Find the tensors and generators below a thing, always in the same order."""
    if isinstance(thing, (Tensor, Generator)):
        yield path, thing
    for name, inside in parts_of(thing):
        yield from each_inside(inside, (*path, name))


def rebuild(thing: Any, path: Path, change: Callable[[Path, Tensor], Tensor]) -> Any:
    """Replace each tensor below a thing; give the thing, or its like where it cannot be changed."""
    if isinstance(thing, Tensor):
        return change(path, thing)
    inside = parts_of(thing)
    changed = {name: rebuild(part, (*path, name), change) for name, part in inside}
    if isinstance(thing, dict):
        thing.update(changed)
    elif isinstance(thing, (list, tuple)):
        made = list(changed.values())
        return type(thing)(*made) if hasattr(thing, "_fields") else type(thing)(made)
    else:
        for name, part in inside:
            if changed[name] is not part:
                object.__setattr__(thing, name, changed[name])  # a frozen dataclass too
    return thing


def memory(tensor: Tensor) -> int:
    """Where a tensor's memory begins: equal for two that share it."""
    return tensor.untyped_storage().data_ptr()


def parts_of(thing: Any) -> list[tuple[Any, Any]]:
    """What a thing is made of, by name; nothing for what cannot hold tensors of an iteration."""
    if isinstance(thing, dict):
        return list(thing.items())
    if isinstance(thing, (list, tuple)):
        return list(enumerate(thing))
    ours = type(thing).__module__.startswith("ppo_lessons.envs") or isinstance(thing, Carry)
    return list(vars(thing).items()) if ours and hasattr(thing, "__dict__") else []


def check_same_places(before: dict[Path, Tensor], after: dict[Path, Tensor]) -> None:
    """Require that an iteration leaves as many tensors, of the same kind, as it found.

    Raises:
        ValueError: with the place that differs.
    """
    kinds = [
        {path: (tuple(found.shape), found.dtype) for path, found in places.items()}
        for places in (before, after)
    ]
    for path in {**before, **after}:
        was, now = (kind.get(path, "nothing") for kind in kinds)
        if was != now:
            name = ".".join(str(step) for step in path[1:])
            raise ValueError(
                f"{name} was {was} before the iteration and is {now} after it; expected the same "
                "shape and dtype, since a graph writes to fixed places. Let Task.advance give "
                "tensors like those of Task.start."
            )
