"""What may be sent to an environment: whether actions fit its space, and the cut to its box.

A Gaussian policy draws any real number. The policy's own draw is what the rollout keeps, since its
log-probability belongs to it; the environment takes the nearest action that it allows.
"""

import math

import torch
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Shaped
from torch import Tensor


def check_action_space(space: Space) -> None:  # type: ignore[type-arg]  # any element type
    """Require `Discrete` actions counted from 0, or real ones in a `Box` with one axis.

    Raises:
        ValueError: otherwise, with the space that was found.
    """
    if isinstance(space, Discrete) and space.start == 0:
        return
    if isinstance(space, Box) and len(space.shape) == 1 and space.dtype.kind == "f":
        return
    raise ValueError(
        f"the action space is {space}; expected Discrete actions counted from 0, or real numbers "
        "in a Box with one axis. Choose an environment like CartPole-v1 or Pendulum-v1, or wrap "
        "this one so that its actions are a short list or a vector."
    )


def check_actions(actions: Tensor, space: Space, num_envs: int) -> None:  # type: ignore[type-arg]  # any element type
    """Require one action for each environment, of the kind that the space holds.

    Args:
        actions: what the policy gave.
        space: of one environment's action.
        num_envs: N.

    Raises:
        ValueError: if the shape or the kind of number is another.
    """
    expected = (num_envs, *(space.shape or ()))
    real = isinstance(space, Box)
    fits = actions.is_floating_point() if real else actions.dtype in INTEGERS
    if tuple(actions.shape) != expected or not fits:
        raise ValueError(
            f"actions have shape {tuple(actions.shape)} and dtype {actions.dtype}; expected "
            f"{expected} and {'real numbers' if real else 'integers'}, for the action space "
            f"{space}. Choose networks whose policy draws such actions: Parts(networks=...)."
        )


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_action_values(actions: Tensor, space: Space) -> None:  # type: ignore[type-arg]  # any element type
    """Require actions that are there to be chosen: counted ones below n, real ones finite.

    Raises:
        ValueError: with the first that is not.
    """
    if isinstance(space, Discrete):
        bad, expected = (actions < 0) | (actions >= int(space.n)), f"0 to {int(space.n) - 1}"
        hint = "Choose networks whose policy has as many actions as the space"
    else:
        if math.isfinite(actions.sum().item()):  # a sum of finite numbers is finite
            return
        bad, expected = ~torch.isfinite(actions), "a finite number"
        hint = "Look at the policy's means and log_stds; a smaller learning_rate may keep them"
    if bad.any():
        place = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"the action of environment {place[0]} is {actions[place].item()}; expected "
            f"{expected}, for the action space {space}. {hint}: Parts(networks=...)."
        )


def box_limits(
    space: Space,  # type: ignore[type-arg]  # any element type
    device: torch.device,
) -> tuple[Float[Tensor, " A"], Float[Tensor, " A"]] | None:
    """Give the least and the greatest action of a `Box`; None for actions that are counted."""
    if not isinstance(space, Box):
        return None
    low, high = (torch.as_tensor(limit, device=device).float() for limit in (space.low, space.high))
    return low, high


def cut(
    actions: Shaped[Tensor, " N *action"],
    limits: tuple[Float[Tensor, " A"], Float[Tensor, " A"]] | None,
) -> Shaped[Tensor, " N *action"]:
    """Give the nearest action that a box allows, in each dimension; counted ones as they are."""
    return actions if limits is None else actions.clamp(*limits)
