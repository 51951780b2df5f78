"""What is measured, what is compared with what, and how good it must be."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ppo_lessons.bench.measure import Run

SEEDS = 5  # of the races to 475
GIVE_UP = 100_000  # environment steps of a race
TUNED = {"gamma": 0.98, "gae_lambda": 0.9}  # the rest as in the preset `quick`
PEERS = {  # name -> what it needs, where it comes from
    "sb3": (
        "Stable-Baselines3",
        "install it beside the course: pip install -e '.[bench]'",
    ),
    "cleanrl": (
        "CleanRL",
        "get the file cleanrl/ppo.py from https://github.com/vwxyzjn/cleanrl and give its path, "
        "--cleanrl PATH; it also needs: pip install tensorboard",
    ),
    "purejaxrl": (
        "PureJaxRL",
        "clone https://github.com/luchris429/purejaxrl, make an environment for it (pip install "
        "'jax[cpu]' flax distrax optax chex gymnax==0.0.9), and give both: "
        "--purejaxrl PATH --python ITS_PYTHON",
    ),
}

Quantity = Literal["speed", "memory", "seconds"]


@dataclass(frozen=True)
class Contender:
    """One line of a table.

    Attributes:
        name: as it is printed.
        run: what is run.
        quick: options that differ under `--quick`; None leaves it out there.
        peer: one of `PEERS`, or empty.
        seeded: whether each round is another seed.
    """

    name: str
    run: Run
    quick: dict[str, Any] | None = field(default_factory=dict)
    peer: str = ""
    seeded: bool = False


@dataclass(frozen=True)
class Comparison:
    """A ratio, and how large it should be.

    Attributes:
        ours: name of a contender.
        peers: names of others; ours is compared with the best of them.
        quantity: "speed" and "seconds" say how many times better ours is, "memory" how many times
            as much it takes.
        target: what we want.
        floor: what must be reached; at most that, for memory.
    """

    ours: str
    peers: tuple[str, ...]
    quantity: Quantity = "speed"
    target: int | float | None = None
    floor: int | float | None = None

    @property
    def name(self) -> str:
        """As it is printed."""
        other = self.peers[0] if len(self.peers) == 1 else f"the better of {', '.join(self.peers)}"
        kind = ", memory" if self.quantity == "memory" else ""
        return f"{self.ours} / {other}{kind}"


@dataclass(frozen=True)
class Section:
    """A table, and the ratios below it.

    Attributes:
        name: for `--only`.
        title: what was measured, with its unit.
        unit: of the first column.
        clock: which seconds count.
        contenders: its lines, in the order in which they take turns.
        comparisons: its ratios.
        notes: what a reader must know to read it rightly.
        gpu: whether it needs a GPU.
    """

    name: str
    title: str
    unit: str
    contenders: tuple[Contender, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
    clock: Literal["cpu_seconds", "wall_seconds"] = "cpu_seconds"
    gpu: bool = False

    @property
    def race(self) -> bool:
        """Whether what counts is the time until something is reached."""
        return any(contender.seeded for contender in self.contenders)


@dataclass(frozen=True)
class Places:
    """Where peers lie that are given by path.

    Attributes:
        cleanrl: its `ppo.py`.
        purejaxrl: the folder that holds `purejaxrl/ppo.py`.
        python: the Python that PureJaxRL is installed for.
    """

    cleanrl: Path | None = None
    purejaxrl: Path | None = None
    python: Path | None = None

    def has(self, peer: str) -> bool:
        """Whether it is worth a try; one that is imported tells by itself."""
        needed = {"cleanrl": self.cleanrl, "purejaxrl": self.purejaxrl}
        return needed.get(peer, Path()) is not None


def sections(places: Places) -> tuple[Section, ...]:
    """All that can be measured.

    Args:
        places: of the peers.

    Returns:
        The sections, in the order in which they are run.
    """
    return (training(places), racing(places), replicas(), environments(), advantages(), device())


def training(places: Places) -> Section:
    """CartPole from end to end, and the memory that it takes."""
    ours_64, ours_1024 = "ours, 64 × 32", "ours, 1,024 × 32"
    classic, sb3, sb3_64 = "ours, 4 × 128", "SB3, 4 × 128", "SB3, 64 × 32"
    cleanrl, purejaxrl = "CleanRL, 4 × 128", "PureJaxRL, 64 × 32"
    contenders = (
        Contender(
            ours_64,
            Run("ours", "speed", batch(64, 32, iterations=128) | {"batched": True}),
            quick={"iterations": 24},
        ),
        Contender(
            ours_1024,
            Run("ours", "speed", batch(1024, 32, iterations=17) | {"batched": True}),
            quick={"iterations": 4},
        ),
        Contender(
            classic,
            Run("ours", "speed", batch(4, 128, iterations=81) | {"batched": False}),
            quick={"iterations": 16},
        ),
        Contender(
            sb3,
            Run("sb3", "speed", batch(4, 128, iterations=81)),
            quick={"iterations": 16},
            peer="sb3",
        ),
        Contender(
            sb3_64,
            Run("sb3", "speed", batch(64, 32, iterations=25)),
            quick=None,
            peer="sb3",
        ),
        Contender(
            cleanrl,
            Run("cleanrl", "speed", {"path": str(places.cleanrl), "iterations": 81}),
            quick={"iterations": 16},
            peer="cleanrl",
        ),
        Contender(
            purejaxrl,
            Run(
                "purejaxrl",
                "speed",
                batch(64, 32, iterations=512) | {"path": str(places.purejaxrl)},
                python=str(places.python),
            ),
            quick={"iterations": 32},
            peer="purejaxrl",
        ),
    )
    return Section(
        name="train",
        title="CartPole-v1, training from end to end",
        unit="steps per CPU second",
        contenders=contenders,
        comparisons=(
            Comparison(ours_64, (sb3,), target=7.5, floor=5),
            Comparison(ours_64, (sb3_64,)),
            Comparison(classic, (sb3,)),
            Comparison(ours_64, (cleanrl,), target=8, floor=5),
            Comparison(ours_1024, (cleanrl,), target=15, floor=12),
            Comparison(classic, (cleanrl,), target=1.3, floor=1.0),
            Comparison(ours_64, (purejaxrl,)),
            Comparison(ours_1024, (purejaxrl,), target=0.6, floor=0.45),
            Comparison(ours_64, (sb3,), "memory", target=0.97, floor=1.1),
            Comparison(classic, (sb3,), "memory", target=0.97, floor=1.1),
        ),
        notes=(
            "N × T: environments × steps of a rollout. All alike: 4 epochs of 4 minibatches, two "
            "networks of 64 and 64 units, clipped value loss.",
            "Ours at 4 × 128, SB3 and CleanRL step gymnasium's CartPole, copy by copy; ours at 64 "
            "and more steps the course's batched one, PureJaxRL gymnax's.",
            "CleanRL's ppo.py runs unmodified. Under gymnasium's default today it resets in a step "
            "of its own, which the file takes for a step of the task.",
            "From the end of the first iteration to the end of the last, for all; of PureJaxRL the "
            "second call of its compiled training. Start-up and compilation are left out.",
        ),
    )


def batch(num_envs: int, num_steps: int, *, iterations: int) -> dict[str, Any]:
    """Options of a run that trains."""
    return {"num_envs": num_envs, "num_steps": num_steps, "iterations": iterations}


def racing(places: Places) -> Section:
    """How long until CartPole is solved."""
    tuned = "ours, batched, tuned"
    ours, own_gym = "ours, batched, preset quick", "ours, preset quick"
    sb3, cleanrl = "SB3, settings of RL Zoo", "CleanRL"
    limit = {"total_steps": GIVE_UP}
    quick: dict[str, Any] = limit | {"preset": "quick", "batched": True}
    runs = (
        (tuned, "", Run("ours", "solve", quick | TUNED)),
        (ours, "", Run("ours", "solve", quick)),
        (own_gym, "", Run("ours", "solve", quick | {"batched": False})),
        (sb3, "sb3", Run("sb3", "solve", limit)),
        (cleanrl, "cleanrl", Run("cleanrl", "solve", limit | {"path": str(places.cleanrl)})),
    )
    contenders = tuple(
        Contender(name, run, quick=None, peer=peer, seeded=True) for name, peer, run in runs
    )
    return Section(
        name="solve",
        title="CartPole-v1, until the mean of 100 greedy episodes is at least 475",
        unit="CPU seconds",
        contenders=contenders,
        comparisons=(
            Comparison(tuned, (sb3, cleanrl), "seconds", target=3, floor=2),
            Comparison(ours, (sb3, cleanrl), "seconds"),
            Comparison(own_gym, (sb3, cleanrl), "seconds"),
        ),
        notes=(
            "The first test that is passed; one every 2,048 steps, the same 100 episodes for all, "
            "played outside of the clock. The ratio is that of medians, and only of contenders "
            "whose every seed solved it.",
            "Ours: 32 × 64, 8 epochs of 4 minibatches, step size 0.002; tuned: gamma 0.98 and "
            "lambda 0.9 in place of 0.99 and 0.95, chosen on other seeds than those measured here.",
            "SB3: 8 × 32, 20 epochs, minibatch 256, step size 0.001 and clip 0.2 both falling to "
            "0, gamma 0.98, lambda 0.8. CleanRL: its own defaults.",
            "CleanRL's ppo.py runs unmodified; its SyncVectorEnv is replaced by one that resets "
            "within the same step, as when the file was written, and that tests its agent.",
        ),
    )


def replicas() -> Section:
    """Many small learners at once."""
    many, lone, one = "ours, 32 of 8 × 64", "one alone, 8 × 64", "one, 256 × 64"
    batched = {"batched": True}
    contenders = (
        Contender(
            many,
            Run("ours", "replicas", batch(8, 64, iterations=12) | {"num_replicas": 32}),
            quick={"iterations": 4},
        ),
        Contender(
            lone, Run("ours", "speed", batch(8, 64, iterations=60) | batched), {"iterations": 20}
        ),
        Contender(
            one, Run("ours", "speed", batch(256, 64, iterations=12) | batched), {"iterations": 4}
        ),
    )
    return Section(
        name="replicas",
        title="CartPole, 32 learners in one batched run",
        unit="steps per CPU second",
        contenders=contenders,
        comparisons=(
            Comparison(many, (lone,), target=5, floor=4),
            Comparison(many, (one,), target=0.8),
        ),
        notes=(
            "Steps of all 32 together. 32 runs alone, one after the other, are as fast as one.",
            "All alike: batched environments, 4 epochs of 4 minibatches, two networks of 64 and 64 "
            "units, clipped value loss.",
        ),
    )


def environments() -> Section:
    """CartPole without a learner."""
    contenders: list[Contender] = []
    comparisons: list[Comparison] = []
    for num_envs in (64, 256, 1024):
        ours = f"ours, torch, {num_envs:,}"
        sync, arrays = f"gymnasium SyncVectorEnv, {num_envs:,}", f"gymnasium arrays, {num_envs:,}"
        options = {"num_envs": num_envs, "seconds": 1.5}
        kinds = ((sync, {"kind": "sync"}), (arrays, {"kind": "vector_entry_point"}))
        quick = {"seconds": 0.4} if num_envs == 256 else None
        contenders.append(Contender(ours, Run("ours", "envs", options), quick))
        contenders.extend(
            Contender(name, Run("ours", "gym_envs", options | kind), quick) for name, kind in kinds
        )
        target, floor = (14, 8) if num_envs == 256 else (None, None)
        comparisons += [
            Comparison(ours, (sync,), target=target, floor=floor),
            Comparison(ours, (arrays,)),
        ]
    return Section(
        name="envs",
        title="CartPole-v1 alone, random actions",
        unit="steps per CPU second",
        contenders=tuple(contenders),
        comparisons=tuple(comparisons),
        notes=(
            "gymnasium arrays: its own batched CartPole in numpy (vector_entry_point).",
            "Ours is stepped in torch.inference_mode, since nobody learns here.",
        ),
    )


def advantages() -> Section:
    """The recursion of GAE."""
    loop, fused = "as the formula reads, 128 × 64", "compute_gae, 128 × 64"
    long_loop, scan = "as the formula reads, 2,048 × 8", "gae_by_scan, 2,048 × 8"
    runs = (
        (loop, "gae_by_the_book", 128, 64),
        (fused, "compute_gae", 128, 64),
        (long_loop, "gae_by_the_book", 2048, 8),
        (scan, "gae_by_scan", 2048, 8),
    )
    contenders = tuple(
        Contender(
            name,
            Run(
                "ours",
                "gae",
                {"function": function, "num_steps": steps, "num_envs": envs, "seconds": 1.5},
            ),
            quick={"seconds": 0.4} if name in (loop, fused) else None,
        )
        for name, function, steps, envs in runs
    )
    return Section(
        name="gae",
        title="Advantages of a rollout, T × N",
        unit="steps per CPU second",
        contenders=contenders,
        comparisons=(
            Comparison(fused, (loop,), target=6, floor=3),
            Comparison(scan, (long_loop,)),
        ),
    )


def device() -> Section:
    """The same loop on a GPU."""
    cpu, eager, graphs = "ours, CPU, one thread", "ours, GPU", "ours, GPU, CUDA graphs"
    runs = ((cpu, "cpu", False, 4), (eager, "cuda", False, 65), (graphs, "cuda", True, 129))
    contenders = tuple(
        Contender(
            name,
            Run(
                "ours",
                "on_device",
                batch(4096, 32, iterations=iterations) | {"device": place, "graphs": replayed},
                gpu=place == "cuda",
            ),
            quick={"iterations": max(2, iterations // 4)},
        )
        for name, place, replayed, iterations in runs
    )
    return Section(
        name="gpu",
        title="CartPole, training on a GPU, 4,096 × 32",
        unit="steps per second",
        contenders=contenders,
        comparisons=(
            Comparison(graphs, (eager,), target=2, floor=2),
            Comparison(eager, (cpu,), target=50, floor=50),
        ),
        clock="wall_seconds",
        gpu=True,
    )
