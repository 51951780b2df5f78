"""What was tried to make the loop faster, what each attempt gave, and what was kept.

    python -m benchmarks.speed [--compile]

An attempt is a pair of ways to the same numbers. Single operations are timed alternately and the
least of many repeats counts: on a busy machine it is the only number that repeats. Whole iterations
are timed alternately in CPU seconds, and their lower quartile counts. One thread. The table lies in
`benchmarks/results/speed_attempts.json`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import Adam, Optimizer

from benchmarks.record import write_result
from ppo_lessons.activations import Tanh
from ppo_lessons.clip import clip_fractions
from ppo_lessons.envs import BatchedEnvs, CartPole, make_envs
from ppo_lessons.gae import compute_gae, gae_by_scan, gae_by_the_book
from ppo_lessons.importance import approximate_kl, importance_ratios
from ppo_lessons.networks import Networks, make_networks
from ppo_lessons.training_loop import PRESETS, Parts, PPOConfig, minibatch_loss
from ppo_lessons.training_loop.train import TrainState, iterate, score, start
from ppo_lessons.types import Batch

COMMAND = "python -m benchmarks.speed"
UPDATE = import_module("ppo_lessons.training_loop.update")


@dataclass(frozen=True)
class Attempt:
    """One attempt: microseconds before and after, and what became of it."""

    name: str
    before_us: float
    after_us: float
    kept: bool
    note: str

    @property
    def gain(self) -> float:
        """How many times as fast."""
        return self.before_us / self.after_us


def least(*functions: Callable[[], object], seconds: float = 0.25) -> list[float]:
    """Time functions in turn, and give the least CPU time of each (microseconds)."""
    found = [float("inf")] * len(functions)
    until = time.process_time() + seconds * len(functions)
    while time.process_time() < until:
        for number, function in enumerate(functions):
            began = time.process_time()
            function()
            found[number] = min(found[number], time.process_time() - began)
    return [1e6 * each for each in found]


def attempt(
    name: str, before: Callable[[], object], after: Callable[[], object], kept: bool, note: str
) -> Attempt:
    """Time both ways."""
    first, second = least(before, after)
    made = Attempt(name, round(first, 1), round(second, 1), kept, note)
    print(f"{name:60s} {first:9.1f} {second:9.1f}  x{made.gain:.2f}", flush=True)
    return made


# --- single operations -----------------------------------------------------------------------


def of_gae() -> Iterator[Attempt]:
    """Three ways to the same advantages."""
    for num_steps, num_envs in ((128, 64), (2048, 8), (128, 1024)):
        source = Generator().manual_seed(0)
        tables = [torch.randn(num_steps, num_envs, generator=source) for _ in range(3)]
        flags = [torch.rand(num_steps, num_envs, generator=source) < 0.02 for _ in range(2)]
        book, fused, scan = (
            partial(way, *tables, *flags, gamma=0.99, gae_lambda=0.95)
            for way in (gae_by_the_book, compute_gae, gae_by_scan)
        )
        size = f"T {num_steps} x N {num_envs}"
        yield attempt(f"GAE, {size}: one fused operation a row", book, fused, True, "the default")
        yield attempt(
            f"GAE, {size}: log-step scan", book, scan, True,
            "optional: few long rollouts, and accelerators",
        )  # fmt: skip


def body(activation: Callable[[], nn.Module]) -> nn.Sequential:
    """One of the two networks of CartPole."""
    return nn.Sequential(
        nn.Linear(4, 64), activation(), nn.Linear(64, 64), activation(), nn.Linear(64, 1)
    )


class NaiveTanh(nn.Module):
    """2·σ(2x) − 1, left to autograd."""

    def forward(self, x: Tensor) -> Tensor:
        """Give tanh(x)."""
        return 2 * torch.sigmoid(2 * x) - 1


def of_tanh() -> Iterator[Attempt]:
    """A network with each tanh, forwards and backwards."""
    for rows in (4, 128, 512, 2048, 8192):
        x = torch.randn(rows, 4, generator=Generator().manual_seed(0))

        def both_ways(network: nn.Module, x: Tensor = x) -> None:
            network(x).sum().backward()

        theirs, naive, own = (body(each) for each in (nn.Tanh, NaiveTanh, Tanh))
        ways = [partial(both_ways, network) for network in (theirs, naive, own)]
        yield attempt(
            f"network, {rows} rows: 2·sigmoid(2x) − 1 by autograd", ways[0], ways[1], False,
            "four more nodes on the way back",
        )  # fmt: skip
        yield attempt(
            f"network, {rows} rows: the same in place, own backward", ways[0], ways[2], True,
            "activations.Tanh; costs a little below 256 rows",
        )  # fmt: skip


class Twins(nn.Module):
    """Actor and critic as one batched product."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 128)
        self.weights = nn.Parameter(torch.randn(2, 64, 64) / 8)
        self.biases = nn.Parameter(torch.zeros(2, 1, 64))
        self.heads = nn.Parameter(torch.randn(2, 64, 2) / 8)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, and V twice."""
        hidden = self.first(x).tanh().view(-1, 2, 64).transpose(0, 1)
        return torch.baddbmm(self.biases, hidden, self.weights).tanh() @ self.heads


def of_twins() -> Iterator[Attempt]:
    """One batched network against two."""
    for rows in (128, 512, 8192):
        x = torch.randn(rows, 4, generator=Generator().manual_seed(0))
        one, other, twins = body(nn.Tanh), body(nn.Tanh), Twins()

        def apart(x: Tensor = x, one: nn.Module = one, other: nn.Module = other) -> None:
            (one(x).sum() + other(x).sum()).backward()

        def together(x: Tensor = x, twins: nn.Module = twins) -> None:
            twins(x).sum().backward()

        yield attempt(
            f"actor and critic as one batched product, {rows} rows", apart, together, False,
            "two networks under two names can be shown; one tensor of both cannot",
        )  # fmt: skip


def of_thin_products() -> Iterator[Attempt]:
    """The first layer has 4 inputs: its gradient is a thin product, slow the way autograd takes."""
    for rows in (512, 2048):
        x = torch.randn(rows, 4, generator=Generator().manual_seed(0))
        plain, turned = nn.Linear(4, 64), nn.Linear(4, 64)
        turned.weight.data = turned.weight.data.t().contiguous().t()

        def both_ways(layer: nn.Module, x: Tensor = x) -> None:
            layer(x).sum().backward()

        yield attempt(
            f"first layer, {rows} rows: weights laid out input by input",
            partial(both_ways, plain), partial(both_ways, turned), False,
            "about 5 % of an update; weights that lie so refuse view(-1) all over",
        )  # fmt: skip


def of_optimizer(networks: Networks) -> Iterator[Attempt]:
    """Adam's step, and the gradient's norm."""
    weights = list(networks.parameters())
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    plain = Adam(weights, lr=1e-6, eps=1e-5).step
    many = Adam(weights, lr=1e-6, eps=1e-5, foreach=True).step
    fused = Adam(weights, lr=1e-6, eps=1e-5, fused=True).step
    yield attempt("Adam: foreach", plain, many, False, "fused is faster")
    yield attempt("Adam: fused", plain, fused, True, "and its counter asks for no value")

    def by_parts() -> None:
        nn.utils.clip_grad_norm_(networks.parameters(), 0.5)

    def at_once() -> None:
        nn.utils.clip_grad_norm_(networks.parameters(), 0.5, foreach=True)

    def by_hand() -> None:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        norm = torch.stack([each.norm() for each in gradients]).norm()
        scale = (0.5 / (norm + 1e-6)).clamp(max=1)
        for each in gradients:
            each.mul_(scale)

    yield attempt("gradient norm: foreach", by_parts, at_once, False, "no gain on a CPU")
    yield attempt(
        "gradient norm: by hand", by_parts, by_hand, False, "torch's own line is known to all"
    )


def of_batch(state: TrainState) -> Iterator[Attempt]:
    """How rows are gathered, what masks cost, what is measured."""
    config, parts = state.config, Parts()
    assert state.batch is not None
    masked, free = state.batch, UPDATE.real_rows(state.batch)
    order = torch.randperm(len(free))
    hands = order.tensor_split(config.num_minibatches)
    columns = [x for name, x in vars(free).items() if name != "valid"]
    size = len(free) // config.num_minibatches

    def by_index() -> None:
        for rows in hands:
            free.rows(rows)

    def by_select() -> None:
        for rows in hands:
            [x.index_select(0, rows) for x in columns]

    def once() -> None:
        shuffled = [x.index_select(0, order) for x in columns]
        for k in range(len(hands)):
            [x[k * size : (k + 1) * size] for x in shuffled]

    rows = f"{len(free)} rows"
    small = "below 1 % of an epoch; the slot gives out minibatches one by one"
    yield attempt(f"rows of an epoch, {rows}: index_select", by_index, by_select, False, small)
    yield attempt(f"rows of an epoch, {rows}: gathered once", by_index, once, False, small)
    full, bare = masked.rows(hands[0]), free.rows(hands[0])
    yield attempt(
        f"losses of {len(bare)} rows: no mask where all rows are real",
        lambda: minibatch_loss(state.networks, full, config, parts),
        lambda: minibatch_loss(state.networks, bare, config, parts),
        True, "known from one look at the whole batch",
    )  # fmt: skip
    log_probs = bare.log_probs_old + 0.1 * torch.randn(len(bare))
    given = log_probs, bare.log_probs_old, bare.advantages, 0.2, None
    yield attempt(
        f"measures of {len(bare)} rows: each ratio once",
        lambda: plain_measure(*given), lambda: UPDATE.measure(*given), True,
        "tested equal to the lessons' functions",
    )  # fmt: skip
    numbers, two = torch.randn(512), torch.tensor(2.0)
    yield attempt(
        "512 numbers times two: a tensor instead of a number of Python",
        lambda: numbers * 2.0, lambda: numbers * two, False,
        "unreadable in formulas; used inside Tanh",
    )  # fmt: skip
    yield attempt(
        "finite? a sum instead of isfinite",
        lambda: bool(numbers.isfinite().all()), lambda: numbers.sum().item(), True,
        "shapes.check_finite; a closer look only if the sum is not finite",
    )  # fmt: skip


def plain_measure(
    log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor, epsilon: float, mask: Any
) -> dict[str, Tensor]:
    """What `measure` gives, by the functions of the lessons."""
    given = log_probs, log_probs_old
    outside, silent = clip_fractions(*given, advantages, clip_epsilon=epsilon, mask=mask)
    return {
        "kl_k1": approximate_kl(*given, estimator="k1", mask=mask),
        "kl_k3": approximate_kl(*given, estimator="k3", mask=mask),
        "fraction_outside": outside,
        "fraction_zero_gradient": silent,
        "max_ratio_deviation": (importance_ratios(*given) - 1).abs().max(),
    }


def of_allocator() -> Iterator[Attempt]:
    """One process gives freed memory back to the system, one keeps it."""
    keeps = {"MALLOC_TRIM_THRESHOLD_": str(2**29), "MALLOC_MMAP_THRESHOLD_": str(2**29)}
    code = (
        "import torch; torch.set_num_threads(1); from benchmarks.speed import *; "
        "n, x = body(Tanh), torch.randn(8192, 4); "
        "print(*least(lambda: n(x).sum().backward(), seconds=2.0))"
    )
    gives, kept = (
        float(
            subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, **more},
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for more in ({}, keeps)
    )  # fmt: skip
    yield Attempt(
        "network, 8192 rows: glibc told to keep freed memory", round(gives, 1), round(kept, 1),
        False, "saves page faults, which count for little; and it is one C library's",
    )  # fmt: skip


def of_cache(networks: Networks) -> list[dict[str, float]]:
    """Microseconds a row, forwards and backwards, by the size of a minibatch."""
    table = []
    for rows in (128, 512, 2048, 8192, 32768):
        x = torch.randn(rows, 4, generator=Generator().manual_seed(0))

        def both(x: Tensor = x) -> None:
            networks.zero_grad()
            (networks.policy.body(x).sum() + networks.critic(x).sum()).backward()

        (time_of_one,) = least(both, seconds=1.0)
        table.append({"rows": rows, "us_per_row": round(time_of_one / rows, 3)})
        print(table[-1], flush=True)
    return table


def of_compile(state: TrainState) -> Iterator[Attempt]:
    """The loss of a minibatch, compiled; needs a C++ compiler."""
    assert state.batch is not None
    batch: Batch = UPDATE.real_rows(state.batch)
    minibatch = batch.rows(torch.arange(len(batch) // state.config.num_minibatches))
    networks, config, parts = state.networks, state.config, Parts()

    def loss(observations: Tensor, actions: Tensor) -> Tensor:
        given = replace(minibatch, observations=observations, actions=actions)
        return minibatch_loss(networks, given, config, parts)[0]

    began = time.process_time()
    compiled = torch.compile(loss, dynamic=False)
    columns = minibatch.observations, minibatch.actions
    compiled(*columns).backward()
    spent = time.process_time() - began
    yield attempt(
        f"loss and gradient of {len(minibatch)} rows: torch.compile",
        lambda: loss(*columns).backward(), lambda: compiled(*columns).backward(), False,
        f"{spent:.0f} s to compile, and the compiler's own processes; it needs a C++ compiler",
    )  # fmt: skip


# --- whole iterations --------------------------------------------------------------------------


def unfused(networks: nn.Module, *, learning_rate: float) -> Optimizer:
    """Adam as it was before."""
    return Adam(networks.parameters(), lr=learning_rate, eps=1e-5)


def tanh_of_torch(*given: Any, **named: Any) -> Networks:
    """The networks with torch's tanh."""
    networks = make_networks(*given, **named)
    for network in (networks.policy.body, networks.critic.body):
        for number, layer in enumerate(network):
            if isinstance(layer, Tanh):
                network[number] = nn.Tanh()
    return networks


def loss_by_formula(
    policy_loss: Tensor, value_loss: Tensor, entropy: Tensor, *, value_coef: float,
    entropy_coef: float,
) -> Tensor:  # fmt: skip
    """Give what `ppo_loss` gives, with a gradient of 0 for an entropy of weight 0."""
    return policy_loss + value_coef * value_loss - entropy_coef * entropy


@contextmanager
def patched(**functions: Any) -> Iterator[None]:
    """Put other functions into `update`'s module for a while."""
    before = {name: getattr(UPDATE, name) for name in functions}
    for name, function in functions.items():
        setattr(UPDATE, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(UPDATE, name, function)


Variant = tuple[dict[str, Any], dict[str, Any]]  # parts, and functions of update's module
WITHOUT: dict[str, Variant] = {
    "as it is": ({}, {}),
    "torch's tanh": ({"networks": tanh_of_torch}, {}),
    "Adam not fused": ({"optimizer": unfused}, {}),
    "a mask though all rows are real": ({}, {"real_rows": lambda batch: batch}),
    "ratios computed for each measure": ({}, {"measure": plain_measure}),
    "GAE by the book": ({"advantages": gae_by_the_book}, {}),
    "a gradient for an entropy of weight 0": ({"total_loss": loss_by_formula}, {}),
}
WITHOUT["none of them"] = (
    {name: part for parts, _ in WITHOUT.values() for name, part in parts.items()},
    {name: function for _, functions in WITHOUT.values() for name, function in functions.items()},
)
SIZES = {"classic": (4, 20), "64": (64, 20), "1024": (1024, 6)}  # environments, rounds


def learn(state: TrainState, parts: Parts) -> None:
    """Score and squeeze the rollout that is there once more."""
    assert state.rollout is not None
    batch = score(state.rollout, state.networks, state.config, parts)
    UPDATE.update(
        state.networks, state.optimizer, batch, state.config,
        parts=parts, generator=state.generator,
    )  # fmt: skip


def timed(function: Callable[[TrainState, Parts], object], *given: Any) -> float:
    """Call once, and give the milliseconds of CPU."""
    began = time.process_time()
    function(*given)
    return 1e3 * (time.process_time() - began)


def whole(size: str) -> dict[str, Any]:
    """Time score and squeeze with each improvement taken away in turn, and a whole iteration."""
    num_envs, rounds = SIZES[size]
    if size == "classic":
        config, common = PRESETS["classic"]
    else:
        config = PPOConfig(
            num_envs=num_envs, num_steps=32, num_epochs=4, learning_rate=2.5e-3,
            total_steps=num_envs * 32 * 1000,
        )  # fmt: skip
        common = Parts()
    variants = WITHOUT
    runs: dict[str, tuple[TrainState, Parts]] = {}
    spent: dict[str, list[float]] = {name: [] for name in variants}
    whole_iterations = []
    for name, (parts, _) in variants.items():
        envs = make_envs(config.env, 4) if size == "classic" else BatchedEnvs(CartPole(), num_envs)
        mine = replace(common, **parts)
        runs[name] = start(config, envs, mine), mine
        iterate(*runs[name])  # it warms up, and leaves a rollout
    for _ in range(rounds):
        whole_iterations.append(timed(iterate, *runs["as it is"]))
        for name, run in runs.items():
            functions = variants[name][1]
            with patched(**functions) if functions else nullcontext():
                spent[name].append(timed(learn, *run))
    quartile = {name: lower_quartile(times) for name, times in spent.items()}
    best = quartile["as it is"]
    table = {
        name: {"ms": round(each, 2), "times_as_long": round(each / best, 3)}
        for name, each in quartile.items()
    }
    iteration = lower_quartile(whole_iterations)
    print(size, iteration, table, flush=True)
    return {
        "iteration_ms": round(iteration, 2),
        "steps_per_cpu_second": round(1e3 * config.batch_size / iteration),
        "score_and_squeeze_without": table,
    }


def lower_quartile(times: list[float]) -> float:
    """The time that a quarter of all stay below."""
    return sorted(times)[len(times) // 4]


def main() -> None:
    """Try everything, and write the table."""
    torch.set_num_threads(1)
    config = PPOConfig(num_envs=64, num_steps=32, num_epochs=4, total_steps=64 * 32 * 1000)
    state = start(config, BatchedEnvs(CartPole(), 64), Parts())
    iterate(state, Parts())
    tries = [*of_gae(), *of_tanh(), *of_twins(), *of_thin_products(), *of_batch(state)]
    if "--compile" in sys.argv[1:]:
        tries += of_compile(state)
    tries += [*of_optimizer(state.networks), *of_allocator()]
    fresh = make_networks((4,), 2, hidden_sizes=(64, 64), generator=Generator().manual_seed(0))
    content = {
        "unit": "CPU microseconds, the least of many; whole iterations: CPU milliseconds",
        "attempts": [{**asdict(each), "gain": round(each.gain, 2)} for each in tries],
        "rows_of_a_minibatch": of_cache(fresh),
        "iterations": {size: whole(size) for size in SIZES},
    }
    print(write_result("speed_attempts", " ".join([COMMAND, *sys.argv[1:]]), content))


if __name__ == "__main__":
    main()
