"""The one wording of every error about shapes, types and ranges, and the masked mean.

Each check says three things: what was given, what was expected, what to do. The functions of the
lessons call them in their first lines, so a mistake is met where it was made and not forty
operations later.
"""

import math

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor


def check_same_shape(**tensors: Tensor | None) -> None:
    """Require that all tensors have the shape of the first; `None` is passed over.

    Equal shapes are required, not broadcastable ones: `(N, 1)` against `(N,)` would broadcast to
    `(N, N)` and train a critic towards the mean of all returns.

    Args:
        **tensors: the tensors, each under the name its caller knows it by.

    Raises:
        TypeError: if one of them is no tensor.
        ValueError: if a shape differs from the first.
    """
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    for name, tensor in given.items():
        check_tensor(name, tensor)
    first, reference = next(iter(given.items()))
    for name, tensor in given.items():
        if tensor.shape != reference.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; expected {tuple(reference.shape)} "
                f"like {first}. Reshape {name} so that both describe the same samples."
            )


def check_tensor(name: str, value: object) -> None:
    """Require a tensor.

    Raises:
        TypeError: otherwise, with the type that was given.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a torch.Tensor. "
            f"Convert it with torch.as_tensor({name})."
        )


def check_floating(**tensors: Tensor | None) -> None:
    """Require floating-point tensors.

    Raises:
        TypeError: if one has another dtype.
    """
    for name, tensor in tensors.items():
        if tensor is not None and not tensor.is_floating_point():
            raise TypeError(
                f"{name} has dtype {tensor.dtype}; expected a floating-point dtype. "
                f"Convert it with {name}.float()."
            )


def check_bool(**tensors: Tensor | None) -> None:
    """Require boolean tensors: flags and masks are facts, not numbers.

    Raises:
        TypeError: if one has another dtype.
    """
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dtype != torch.bool:
            raise TypeError(
                f"{name} has dtype {tensor.dtype}; expected torch.bool. "
                f"Convert it with {name}.bool()."
            )


def check_has_steps(**tensors: Tensor) -> None:
    """Require at least one time step along the first axis.

    Raises:
        ValueError: if there is none.
    """
    for name, tensor in tensors.items():
        if tensor.ndim == 0 or len(tensor) == 0:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; expected at least one time step along "
                f"the first axis. Collect some steps first, or unsqueeze {name}."
            )


def at_hand(tensor: Tensor) -> bool:
    """Say whether a value can be looked at for free: on an accelerator that waits for the device.

    The loop does not wait before an iteration is over, so that a device never runs dry.
    """
    return tensor.device.type == "cpu"


def check_finite(**tensors: Tensor) -> None:
    """Require finite numbers; on an accelerator the check is left out, since it would wait for it.

    Raises:
        ValueError: if a value is NaN or infinite, with the first place where it stands.
    """
    for name, tensor in tensors.items():
        # A sum of finite numbers is finite: one cheap look, and a closer one only if it is not.
        if not at_hand(tensor) or math.isfinite(tensor.sum().item()):
            continue
        if not torch.isfinite(tensor).all():
            place = tuple(torch.nonzero(~torch.isfinite(tensor))[0].tolist())
            raise ValueError(
                f"{name} holds {tensor[place].item()} at index {place}; expected finite numbers. "
                f"Look at what produced {name} at that place."
            )


def check_unit_interval(**numbers: float) -> None:
    """Require numbers in [0, 1].

    Raises:
        ValueError: if one is outside, or NaN.
    """
    for name, number in numbers.items():
        if not 0.0 <= number <= 1.0:
            raise ValueError(
                f"{name} is {number}; expected a number in [0, 1]. Choose {name} in that range."
            )


def check_positive(**numbers: float) -> None:
    """Require finite numbers above zero.

    Raises:
        ValueError: if one is zero, negative, infinite or NaN.
    """
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(
                f"{name} is {number}; expected a finite number above 0. Choose {name} above 0."
            )


def stop_masked(
    values: Shaped[Tensor, "*batch"], mask: Bool[Tensor, "*batch"] | None
) -> Shaped[Tensor, "*batch"]:
    """Keep all numbers, and let no gradient into the entries that do not count.

    `masked_mean` alone sends them the gradient 0; on its way back through an infinite ratio, or a
    target that is NaN, it would become 0·∞ = NaN.

    Args:
        values: what is to be learned, any unit.
        mask: true where an entry counts; None if all do.

    Raises:
        ValueError: if the shapes differ.
        TypeError: if mask is not boolean.
    """
    if mask is None:
        return values
    check_same_shape(values=values, mask=mask)
    check_bool(mask=mask)
    return torch.where(mask, values, values.detach())


def masked_mean(
    values: Shaped[Tensor, "*batch"], mask: Bool[Tensor, "*batch"] | None = None
) -> Shaped[Tensor, ""]:
    """Average over the entries that count.

        mean = Σ mask·values / max(1, Σ mask)

    What stands in masked entries has no effect, not even NaN, and no gradient flows to them.

    Args:
        values: any shape, any unit.
        mask: true where an entry counts; all count when it is left out.

    Returns:
        The mean, in the unit of values; 0 if no entry counts.

    Raises:
        ValueError: if the shapes differ.
        TypeError: if mask is not boolean.
    """
    if mask is None:
        return values.mean()
    check_same_shape(values=values, mask=mask)
    check_bool(mask=mask)
    return values.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)
