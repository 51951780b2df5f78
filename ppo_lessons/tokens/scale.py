"""How much a lesson asks for: chosen from the device, so that a GPU is not left waiting."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes that grow with the device. A GPU needs a thousand rows before it is faster.

    Attributes:
        name: "small" or "gpu".
        device: where models and tokens live.
        num_responses: responses of one iteration.
        num_evaluations: held-out prompts of one evaluation.
    """

    name: str
    device: str
    num_responses: int
    num_evaluations: int


SMALL = Scale(name="small", device="cpu", num_responses=128, num_evaluations=512)
GPU = Scale(name="gpu", device="cuda", num_responses=2048, num_evaluations=4096)


def choose_scale(device: str | torch.device | None = None) -> Scale:
    """Choose the sizes for a device.

    Args:
        device: "cpu" or "cuda"; the GPU if there is one, when left out.

    Returns:
        `GPU` on CUDA, `SMALL` elsewhere.

    Raises:
        ValueError: if CUDA is asked for and not there.
    """
    if device is None:
        return GPU if torch.cuda.is_available() else SMALL
    if torch.device(device).type != "cuda":
        return SMALL
    if not torch.cuda.is_available():
        raise ValueError(
            f"device is {str(device)!r}, and no CUDA device is there; expected 'cpu'. Leave device "
            "out to take what is there."
        )
    return GPU
