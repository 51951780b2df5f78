"""How much memory a run needs, before it is asked for."""

from dataclasses import replace
from math import prod
from pathlib import Path

import torch

from ppo_lessons.networks import FILTER, NUM_FILTERS
from ppo_lessons.training_loop import PPOConfig

FLOAT, LONG, FLAG = 4, 8, 1  # bytes
ROW = 3 * FLOAT + LONG + 3 * FLAG  # reward, log-prob, return and length so far, three flags

HEAD = 24  # numbers of a sample in losses and ratios, besides the layers


def memory_needed(
    config: PPOConfig,
    observation_shape: tuple[int, ...],
    dtype: torch.dtype,
    *,
    action_size: int = 0,
) -> dict[str, int]:
    """Give the bytes of a run by what they hold.

    Rollout and batch stay; of score and squeeze only the greater counts, since one follows the
    other. What the libraries themselves take (a CUDA context has some hundred MB) is not in it.

    Args:
        config: T, N, M and the widths of the layers.
        observation_shape: of one observation.
        dtype: of observations; torch.bool for boards.
        action_size: numbers in a real action; 0 for counted ones.

    Returns:
        "rollout", "batch", "score", "squeeze" and "total" (bytes).
    """
    samples = config.batch_size
    minibatch = -(-samples // config.num_minibatches)
    observation = prod(observation_shape) * dtype.itemsize
    action = action_size * FLOAT or LONG
    looked_at = layer_bytes(config, observation_shape, dtype)
    bytes_of = {
        "rollout": samples * (2 * observation + action + ROW),
        "batch": samples * (3 * FLOAT + LONG),  # values, advantages, returns; the shuffled order
        # Without gradients a layer's input is free once the next layer has its output.
        "score": samples * (2 * max(looked_at) + 2 * FLOAT),
        # With them, policy and critic keep all layers, and two gradients are under way.
        "squeeze": minibatch
        * (observation + action + HEAD * FLOAT + 2 * sum(looked_at) + 2 * max(looked_at)),
    }
    stays = bytes_of["rollout"] + bytes_of["batch"]
    return bytes_of | {"total": stays + max(bytes_of["score"], bytes_of["squeeze"])}


def layer_bytes(
    config: PPOConfig, observation_shape: tuple[int, ...], dtype: torch.dtype
) -> list[int]:
    """Give the bytes of each layer's output in one network, for one sample."""
    numbers = []
    if not dtype.is_floating_point:
        numbers.append(prod(observation_shape))  # as real numbers
    if len(observation_shape) == 3:
        height, width, _ = observation_shape
        numbers.append(NUM_FILTERS * (height - FILTER + 1) * (width - FILTER + 1))
    return [FLOAT * number for number in (*numbers, *config.hidden_sizes, 1)]


def check_memory(
    config: PPOConfig,
    observation_shape: tuple[int, ...],
    dtype: torch.dtype,
    free: int | None,
    *,
    action_size: int = 0,
) -> None:
    """Require that a run fits.

    Args:
        config: the settings of the run.
        observation_shape: of one observation.
        dtype: of observations.
        free: bytes that the device has left; None if that is not known.
        action_size: numbers in a real action; 0 for counted ones.

    Raises:
        ValueError: with how much is needed, how much is free, and which setting to lower.
    """
    if free is None:
        return

    def needed(tried: PPOConfig) -> int:
        bytes_of = memory_needed(tried, observation_shape, dtype, action_size=action_size)
        return bytes_of["total"]

    if needed(config) <= free:
        return
    fitting = config.num_envs
    while fitting > 1 and needed(lowered(config, fitting)) > free:
        fitting //= 2
    raise ValueError(
        f"the run needs about {needed(config) / 1e9:.2f} GB for num_envs={config.num_envs}, "
        f"num_steps={config.num_steps}, num_minibatches={config.num_minibatches}, and the device "
        f"has {free / 1e9:.2f} GB free; expected a run that fits. Lower num_envs "
        f"(num_envs={fitting} would fit) or num_steps, or choose more num_minibatches."
    )


def lowered(config: PPOConfig, num_envs: int) -> PPOConfig:
    """The same settings with fewer environments, and no more minibatches than samples."""
    most = num_envs * config.num_steps
    return replace(
        config, num_envs=num_envs, num_minibatches=min(config.num_minibatches, most),
        total_steps=max(config.total_steps, most),
    )  # fmt: skip


def free_memory(device: torch.device) -> int | None:
    """Bytes that a device has left; None where nobody tells."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    table = Path("/proc/meminfo")  # Linux only
    for line in table.read_text(encoding="utf-8").splitlines() if table.is_file() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def out_of_memory(error: Exception, config: PPOConfig) -> ValueError:
    """Say it with the settings that decide, where a device ran out after all."""
    reason = str(error).splitlines()[0]
    return ValueError(
        f"the device ran out of memory ({reason}) with num_envs={config.num_envs}, "
        f"num_steps={config.num_steps}, num_minibatches={config.num_minibatches}; expected a run "
        "that fits. Lower num_envs or num_steps, or choose more num_minibatches."
    )
