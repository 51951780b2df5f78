"""Where does each microsecond go? Three limits of an iteration on CartPole, on three machines.

What an iteration does was counted, and what a core can do was measured, once:
`throughput_ledger.json` in `ppo_lessons/recorded`, from `python -m benchmarks.ledger`. Of the GPUs
there are published peak speeds only; what a launch costs on them is the reader's assumption.
"""

from functools import cache
from typing import Any, ClassVar

import traitlets

from ppo_lessons.figures.throughput_ledger import throughput_ledger_figure
from ppo_lessons.gpu_run.memory import FLOAT, HEAD, LONG, ROW
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, OneOf, Whole

NUM_ENVS = tuple(2**power for power in range(3, 17))
NUM_STEPS, NUM_MINIBATCHES = (16, 32, 64, 128), (1, 2, 4, 8, 16, 32)
HIDDEN, LAUNCH_US = (32, 64, 128, 256, 512), (1.5, 5.0, 10.0)
STAGES, LIMITS = ("collect", "score", "squeeze"), ("arithmetic", "memory", "launches")
# Published by NVIDIA: float32 without tensor cores, and memory bandwidth. Not measured here.
PEAKS = {
    "t4": {"flops_per_second": 8.1e12, "bytes_per_second": 320e9},
    "h200": {"flops_per_second": 67e12, "bytes_per_second": 4.8e12},
}
# Bytes of a sample besides its layers, as `memory_needed` counts them: what stays, and what its row
# in a minibatch takes.
OBSERVED = 4 * FLOAT
STAYS = 2 * OBSERVED + LONG + ROW + 3 * FLOAT + LONG
LEARNED = OBSERVED + LONG + HEAD * FLOAT


@cache
def recording() -> dict[str, Any]:
    """Read what was counted and measured.

    Returns:
        `launches` and `widths`, costs of an iteration; `machines` by name, with the measured core
        among them; `stays` and `learned`, bytes of a sample.
    """
    found = recorded("throughput_ledger")
    core = {name: number for name, number in found["core"].items() if name != "device"}
    return {
        "launches": found["launches"],
        "widths": found["widths"],
        "machines": {"core": core, **PEAKS},
        "stays": STAYS,
        "learned": LEARNED,
    }


def _start(**changes: Any) -> dict[str, Any]:
    state = {"num_envs": 64, "num_steps": 32, "num_epochs": 4, "num_minibatches": 4, "hidden": 64}
    return state | {"device": "core", "launch_us": 5.0, "guess": None, "revealed": True} | changes


class ThroughputLedger(TeachingWidget):
    """Show how many environment steps a second arithmetic, memory and launches allow.

        w = ThroughputLedger(keep_as="gpu_run.what_binds_here")
        w.flops, w.launches, w.steps_per_second, w.binds

    Args:
        num_envs: N, a power of two from 8 to 65536.
        num_steps: T, 16, 32, 64 or 128.
        num_epochs: K, from 1 to 8.
        num_minibatches: M, a power of two up to 32.
        hidden: width of the two hidden layers of each network.
        device: "core", as measured; "t4" or "h200", by published peak speeds.
        launch_us: what a launch costs on a GPU, an assumption (µs).
        guess: the limit that binds, as the reader said; None while there is no guess.
        revealed: whether the ledger is shown.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "throughput_ledger"
    STATE = (
        *("num_envs", "num_steps", "num_epochs", "num_minibatches", "hidden", "device"),
        *("launch_us", "guess", "revealed"),
    )
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "few": _start(num_envs=8),
        "many": _start(num_envs=4096),
        "wide": _start(num_envs=4096, hidden=512),
        "gpu_few": _start(num_envs=64, device="h200"),
        "gpu_many": _start(num_envs=65536, device="h200"),
        "gpu_graph": _start(num_envs=4096, device="h200", launch_us=1.5),
        "gpu_small": _start(num_envs=4096, device="t4"),
    }
    PARTS = ("grid_slider", "throughput_ledger")
    DRAGS: ClassVar = (Drag("many", "input[type=range]", 0.01, 0.99, index=0, values=12),)

    num_envs = OneOf(64, options=NUM_ENVS)
    num_steps = OneOf(32, options=NUM_STEPS)
    num_epochs = Whole(4, low=1, high=8)
    num_minibatches = OneOf(4, options=NUM_MINIBATCHES)
    hidden = OneOf(64, options=HIDDEN)
    device = Choice("core", options=("core", *PEAKS))
    launch_us = OneOf(5.0, options=LAUNCH_US)
    guess = Choice(None, options=LIMITS)
    recording = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.recording = recording()

    def _work(self, num_envs: int) -> dict[str, list[int]]:
        """FLOPs, bytes and launches of an iteration, by stage."""
        width = self.recording["widths"][str(self.hidden)]
        launches, steps = self.recording["launches"], str(self.num_steps)
        samples = self.num_steps * num_envs
        uses = (samples, samples, samples * self.num_epochs)
        passes = (self.num_steps, 1, self.num_epochs * self.num_minibatches)
        per_epoch = launches["epoch"] + self.num_minibatches * launches["minibatch"]
        return {
            "flops": [use * each for use, each in zip(uses, width["flops"], strict=True)],
            "bytes": [
                use * each + times * weights
                for use, each, times, weights in zip(
                    uses, width["bytes"], passes, width["bytes_of_weights"], strict=True
                )
            ],
            "launches": [
                launches["collect"][steps],
                launches["score"][steps],
                launches["squeeze"] + self.num_epochs * per_epoch,
            ],
        }

    def _micros(self, num_envs: int) -> list[list[float]]:
        """Least µs for each environment step: stages, then all; arithmetic, memory, launches."""
        machine = self.recording["machines"][self.device]
        launch = machine.get("seconds_per_launch", self.launch_us / 1e6)
        work, samples = self._work(num_envs), self.num_steps * num_envs
        rows = [
            [
                1e6 * flops / machine["flops_per_second"] / samples,
                1e6 * bytes_ / machine["bytes_per_second"] / samples,
                1e6 * launches * launch / samples,
            ]
            for flops, bytes_, launches in zip(*work.values(), strict=True)
        ]
        return [*rows, [sum(column) for column in zip(*rows, strict=True)]]

    @property
    def flops(self) -> int:
        """Of one iteration."""
        return sum(self._work(self.num_envs)["flops"])

    @property
    def launches(self) -> int:
        """Of one iteration."""
        return sum(self._work(self.num_envs)["launches"])

    @property
    def flops_per_step(self) -> int:
        """FLOPs of one environment step."""
        return self.flops // (self.num_steps * self.num_envs)

    @property
    def micros(self) -> list[list[float]]:
        """Least µs for each environment step: collect, score, squeeze, all; each limit."""
        return self._micros(self.num_envs)

    @property
    def binds(self) -> str:
        """The limit that allows the fewest steps a second."""
        whole = self.micros[-1]
        return LIMITS[whole.index(max(whole))]

    @property
    def steps_per_second(self) -> float:
        """Environment steps a second that all limits allow."""
        return 1e6 / max(self.micros[-1])

    @property
    def megabytes(self) -> float:
        """Memory of the run, in millions of bytes; `memory_needed` counts the same."""
        samples = self.num_steps * self.num_envs
        minibatch = -(-samples // self.num_minibatches)
        numbers = 8 * self.hidden + 4  # bytes of the layers of one network
        score = samples * (8 * self.hidden + 8)
        squeeze = minibatch * (LEARNED + 2 * numbers + 8 * self.hidden)
        return (samples * STAYS + max(score, squeeze)) / 1e6

    @property
    def curve(self) -> list[list[float]]:
        """Steps a second that each limit allows, for every N."""
        return [[1e6 / each for each in self._micros(num_envs)[-1]] for num_envs in NUM_ENVS]

    @property
    def answer(self) -> str:
        """What the guess is compared with: `binds`."""
        return self.binds

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        names = ("flops", "launches", "flops_per_step", "micros", "binds", "steps_per_second")
        return {name: getattr(self, name) for name in (*names, "megabytes", "curve")}

    def sentence(self) -> str:
        """Say what the picture shows."""
        return self._say(
            "sentence",
            num_envs=self.num_envs,
            num_steps=self.num_steps,
            machine=self._say(f"device_{self.device}"),
            binds=self._say(f"limit_{self.binds}"),
            rate=self._large(self.steps_per_second),
            cost=self._large(self.flops_per_step),
            megabytes=written(self.megabytes, 1),
        )

    def _large(self, number: float) -> str:
        """Write a large number with a word."""
        key, unit = ("million", 1e6) if number >= 1e6 else ("thousand", 1e3)
        return self._say(key, number=written(number / unit, 1))

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return throughput_ledger_figure(
            self.micros,
            self.curve,
            all_num_envs=NUM_ENVS,
            num_envs=self.num_envs,
            stages=[self._say(f"stage_{name}") for name in (*STAGES, "all")],
            limits=[self._say(f"short_{name}") for name in LIMITS],
            machine=self._say(f"device_{self.device}"),
        )
