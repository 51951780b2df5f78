"""Everything that is to be known of a GPU, in one call of less than nine minutes.

    python -m benchmarks.gpu                      on cuda, writes benchmarks/results/gpu.json
    python -m benchmarks.gpu --dry                every section, tiny, on the CPU; writes nothing
    python -m benchmarks.gpu --only speed,equal   some sections
    python -m benchmarks.gpu --cleanrl PATH       CleanRL's ppo.py beside it

Each section has seconds of its own, and what one cannot do costs the others nothing: its error
stands in the result instead. The result is written again after each section.
"""

import argparse
import copy
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.record import RESULTS, write_result
from ppo_lessons.envs import TASKS, BatchedEnvs
from ppo_lessons.gpu_run import (
    DEFAULTS,
    Iteration,
    captured,
    iteration_cost,
    ledger,
    limits,
    memory_needed,
    start_on_device,
    time_stages,
)
from ppo_lessons.gpu_run.graphs import WARM_UP
from ppo_lessons.gpu_run.pinned import Pinned
from ppo_lessons.gpu_run.timing import wait_for
from ppo_lessons.rlhf import RLHFConfig, train_tokens
from ppo_lessons.tokens import (
    GPU,
    SMALL,
    LanguageModel,
    Prompts,
    ReferenceConfig,
    Responses,
    TokenCritic,
    draw_prompts,
    generate,
    is_correct,
    score_responses,
    train_reference,
)
from ppo_lessons.training_loop import PPOConfig, TrainState, evaluate, iterate

FOR_EVER = 10**12  # environment steps: the step size stays what it is
SOLVED = 475.0


@dataclass(frozen=True)
class Bench:
    """What every section is given.

    Attributes:
        device: where it runs.
        dry: tiny, to see that it runs at all.
        cleanrl: path of CleanRL's ppo.py, or None.
    """

    device: torch.device
    dry: bool
    cleanrl: Path | None

    def seconds(self, wanted: float) -> float:
        """How long something is measured."""
        return 0.05 if self.dry else wanted

    def config(self, task: str, **changes: Any) -> PPOConfig:
        """Settings of a task; tiny in a dry run."""
        if self.dry:
            changes |= {"num_envs": 8, "num_steps": 8, "num_minibatches": 2, "num_epochs": 1}
        return replace(DEFAULTS[task], **{"total_steps": FOR_EVER} | changes)

    def sizes(self, *wanted: int) -> tuple[int, ...]:
        """Numbers of environments; one in a dry run."""
        return (8,) if self.dry else wanted


@dataclass(frozen=True)
class Section:
    """One thing that is measured.

    Attributes:
        name: in the result.
        seconds: how long it may take, roughly.
        measure: gives what stands in the result.
    """

    name: str
    seconds: int
    measure: Callable[[Bench], Any]


def looped(state: TrainState, parts: Any, graphs: bool) -> Callable[[], None]:
    """One iteration of a run, with its row."""
    return captured(state, parts) if graphs else partial(iterate, state, parts)


def speed(bench: Bench, task: str, config: PPOConfig, graphs: bool, seconds: float) -> dict:
    """Training steps per second, warm, rows and all; what getting warm took; peak memory."""
    on_cuda = bench.device.type == "cuda"
    if on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(bench.device)
    began = time.perf_counter()
    state, parts = start_on_device(config, task, device=bench.device)
    once = looped(state, parts, graphs)
    for _ in range(WARM_UP + 2):
        once()
    wait_for(bench.device)
    warm_up = time.perf_counter() - began
    rate, count = rate_of(bench, once, config.batch_size, seconds)
    bare = None
    if isinstance(once, Iteration):
        bare, _ = rate_of(bench, once.advance, config.batch_size, seconds / 4)
    space = state.envs.single_observation_space
    dtype = torch.bool if space.dtype == bool else torch.float32
    needed = memory_needed(config, tuple(space.shape or ()), dtype)["total"]
    peak = torch.cuda.max_memory_allocated(bench.device) if on_cuda else None
    return {
        "num_envs": config.num_envs,
        "num_steps": config.num_steps,
        "graphs": graphs,
        "steps_per_second": rate,
        "steps_per_second_without_rows": bare,
        "milliseconds_per_iteration": 1e3 * config.batch_size / rate,
        "iterations_measured": count,
        "warm_up_seconds": warm_up,
        "capture_seconds": once.capture_seconds if isinstance(once, Iteration) else None,
        "peak_bytes": peak,
        "estimated_bytes": needed,
    }


def rate_of(
    bench: Bench, once: Callable[[], object], steps: int, seconds: float
) -> tuple[float, int]:
    """Steps per second of something that is done again and again, and how often it was."""
    wait_for(bench.device)
    began, count = time.perf_counter(), 0
    while count < 2 or time.perf_counter() - began < seconds:
        once()
        count += 1
        if count % 4 == 0:
            wait_for(bench.device)  # or the host would run far ahead of the clock
    wait_for(bench.device)
    return count * steps / (time.perf_counter() - began), count


def machine_limits(bench: Bench) -> dict[str, Any]:
    """What the device can do at best."""
    return asdict(limits(bench.device, seconds=bench.seconds(6)))


def equality(bench: Bench) -> dict[str, Any]:
    """The same run eagerly and from graphs: the largest difference of a weight after it."""
    found = {}
    for task, normalize in (("CartPole", False), ("Pendulum", True), ("Breakout", False)):
        weights = []
        for graphs in (False, True):
            config = bench.config(task, num_envs=64)
            state, parts = start_on_device(config, task, device=bench.device, normalize=normalize)
            once = looped(state, parts, graphs)
            for _ in range(WARM_UP + 6):
                once()
            each = [parameter.detach().flatten() for parameter in state.networks.parameters()]
            weights.append(torch.cat(each))
        apart = (weights[0] - weights[1]).abs().max().item()
        found[task] = {"largest_difference": apart, "equal": torch.equal(*weights)}
    return found


def no_waiting(bench: Bench) -> dict[str, str]:
    """One iteration of each task while PyTorch refuses whatever waits for the device."""
    found = {}
    for task in TASKS:
        state, parts = start_on_device(bench.config(task, num_envs=64), task, device=bench.device)
        iteration = captured(state, parts)
        for _ in range(2):
            iteration.once()
        try:
            with refusing_waits(bench.device):
                iteration.once()
            found[task] = "nothing waits" if bench.device.type == "cuda" else "not asked on a CPU"
        except RuntimeError as error:
            found[task] = str(error).splitlines()[0]
    return found


@contextmanager
def refusing_waits(device: torch.device) -> Any:
    """On CUDA, turn each wait into an error."""
    on_cuda = device.type == "cuda"
    if on_cuda:
        torch.cuda.synchronize(device)
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if on_cuda:
            torch.cuda.set_sync_debug_mode("default")


def cart_pole_speed(bench: Bench) -> list[dict]:
    """CartPole, eagerly and from graphs, for several numbers of environments."""
    rows = []
    for num_envs in bench.sizes(1024, 4096, 16_384, 65_536):
        num_steps = 16 if num_envs > 16_384 else 32
        config = bench.config("CartPole", num_envs=num_envs, num_steps=num_steps)
        for graphs in (False, True):
            rows.append(speed(bench, "CartPole", config, graphs, bench.seconds(4)))
    return rows


def cart_pole_solved(bench: Bench) -> dict[str, Any]:
    """Seconds until 100 greedy episodes earn 475 on average; tests do not count."""
    runs = [solve(bench, seed) for seed in ((1,) if bench.dry else (1, 2, 3, 4, 5))]
    warm = [run["seconds_without_capture"] for run in runs if run["solved"]]
    median = statistics.median(warm) if len(warm) == len(runs) else None
    return {"runs": runs, "median_seconds_without_capture": median}


def solve(bench: Bench, seed: int) -> dict[str, Any]:
    """One run up to the goal, at most as long as its settings say."""
    config = bench.config("CartPole", seed=seed, total_steps=DEFAULTS["CartPole"].total_steps)
    most = 3 if bench.dry else config.num_iterations
    state, parts = start_on_device(config, "CartPole", device=bench.device)
    once = captured(state, parts)
    seconds, returned = 0.0, 0.0
    for _ in range(most):
        began = time.perf_counter()
        once()
        wait_for(bench.device)
        seconds += time.perf_counter() - began
        recent = state.history.rows[-1]["episode_return"] or 0.0
        if recent > 300 or state.iteration % 10 == 0:
            returned = played(bench, "CartPole", state, 100, greedy=True)
            if returned >= SOLVED:
                break
    return {
        "seed": seed, "solved": returned >= SOLVED, "mean_return": returned,
        "env_steps": state.env_steps, "seconds": seconds,
        "seconds_without_capture": seconds - once.capture_seconds,
    }  # fmt: skip


def played(bench: Bench, task: str, state: TrainState, episodes: int, *, greedy: bool) -> float:
    """Mean return of whole episodes in fresh environments."""
    envs = BatchedEnvs(TASKS[task](), episodes, device=bench.device)
    returns = evaluate(state.networks.policy, envs, seed=1000, greedy=greedy)
    return returns.mean().item()


def breakout_speed(bench: Bench) -> list[dict]:
    """Breakout with a small convolutional network, eagerly and from graphs."""
    return [
        speed(bench, "Breakout", bench.config("Breakout", num_envs=n), graphs, bench.seconds(4))
        for n in bench.sizes(1024, 4096)
        for graphs in (False, True)
    ]


def breakout_minute(bench: Bench) -> dict[str, Any]:
    """What Breakout's policy earns after 60 seconds of training from graphs, capture and all."""
    wanted = bench.seconds(60)
    config = bench.config("Breakout", total_steps=DEFAULTS["Breakout"].total_steps)
    state, parts = start_on_device(config, "Breakout", device=bench.device)
    once = captured(state, parts)
    curve, began = [], time.perf_counter()
    while time.perf_counter() - began < wanted and state.iteration < config.num_iterations:
        once()
        row = state.history.rows[-1]
        if state.iteration % 20 == 0:
            seconds = time.perf_counter() - began
            curve.append([seconds, row["env_steps"], row["episode_return"]])
    seconds = time.perf_counter() - began
    episodes = 8 if bench.dry else 1000
    return {
        "seconds": seconds,
        "env_steps": state.env_steps,
        "mean_return_drawn": played(bench, "Breakout", state, episodes, greedy=False),
        "mean_return_greedy": played(bench, "Breakout", state, episodes, greedy=True),
        "curve": curve,
    }


def environments_alone(bench: Bench) -> list[dict]:
    """Steps per second of environments without a policy, eagerly and from a graph of 32 steps."""
    rows = []
    for task, sizes in (("CartPole", (4096, 65_536)), ("Breakout", (4096, 65_536))):
        for num_envs in bench.sizes(*sizes):
            for graphs in (False, True):
                rate = env_rate(bench, task, num_envs, graphs)
                rows.append(
                    {"task": task, "num_envs": num_envs, "graphs": graphs, "steps_per_second": rate}
                )
    return rows


def env_rate(bench: Bench, task: str, num_envs: int, graphs: bool) -> float:
    """Steps per second of one task with the same actions again and again."""
    envs = BatchedEnvs(TASKS[task](), num_envs, device=bench.device)
    envs.reset(1)
    actions = torch.randint(2, (num_envs,), device=bench.device)
    pinned, length = Pinned(envs), 32

    def some() -> None:
        for _ in range(length):
            envs.step(actions)
        pinned.settle()

    once: Callable[[], object] = some
    if graphs and bench.device.type == "cuda":
        stream = torch.cuda.Stream(bench.device)
        stream.wait_stream(torch.cuda.current_stream(bench.device))
        with torch.cuda.stream(stream):
            some()
        torch.cuda.current_stream(bench.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        for generator in pinned.generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph, stream=stream):
            some()
        once = graph.replay
    else:
        some()
    return rate_of(bench, once, length * num_envs, bench.seconds(1.5))[0]


def against_cpu(bench: Bench) -> dict[str, Any]:
    """The same training on one thread of this machine's CPU."""
    cpu = replace(bench, device=torch.device("cpu"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return speed(cpu, "CartPole", cpu.config("CartPole"), False, bench.seconds(12))
    finally:
        torch.set_num_threads(before)


def where_the_time_goes(bench: Bench) -> dict[str, Any]:
    """The ledger of an iteration: measured, against arithmetic, memory and launches."""
    machine, found = limits(bench.device, seconds=bench.seconds(3)), {}
    for task, outputs in (("CartPole", 2), ("Breakout", 3)):
        config, rules = bench.config(task), TASKS[task]()
        size = rules.observation_space.shape
        assert size is not None
        cost = iteration_cost(config, torch.Size(size).numel(), outputs, rules)
        state, parts = start_on_device(config, task, device=bench.device)
        for _ in range(2):
            iterate(state, parts)
        seconds = time_stages(state, parts, 2 if bench.dry else 20)
        found[task] = {
            "env_steps": cost.env_steps,
            "stages": {name: asdict(stage) for name, stage in cost.stages.items()},
            "ledger": [
                {**asdict(entry), "binds": entry.binds} for entry in ledger(cost, machine, seconds)
            ],
        }
    return found


def language_model(bench: Bench) -> dict[str, Any]:
    """RLHF's loop on lesson 13's model: answers per second at both scales of the lessons."""
    trained = ReferenceConfig(num_steps=2 if bench.dry else 160)
    reference = train_reference(trained, seed=0, device=bench.device)
    both = {torch.device("cpu"): copy.deepcopy(reference).cpu(), bench.device: reference}
    sizes = (8,) if bench.dry else (SMALL.num_responses, GPU.num_responses)
    rows = [
        answers_per_second(model, num_prompts, 2 if bench.dry else 5)
        for model in both.values()
        for num_prompts in sizes
    ]
    generator = torch.Generator().manual_seed(0)
    prompts = draw_prompts(8 if bench.dry else 512, generator=generator)
    drawn = generate(
        both[torch.device("cpu")], prompts, max_new_tokens=10, temperature=1.0, generator=generator
    )
    with torch.no_grad():
        scored = [
            score_responses(
                model, prompts.to(device), drawn.tokens.to(device), drawn.mask.to(device)
            )[0].cpu()
            for device, model in both.items()
        ]
    apart = (scored[0] - scored[-1]).abs().max().item()
    return {"rows": rows, "largest_log_prob_difference": apart}


def answers_per_second(reference: LanguageModel, num_prompts: int, iterations: int) -> dict:
    """Collect, score, squeeze and renew, the first iteration left out."""
    config = RLHFConfig(num_iterations=iterations, num_prompts=num_prompts)

    def verified(prompts: Prompts, responses: Responses) -> torch.Tensor:
        return is_correct(prompts, responses.tokens, responses.mask).float()

    history = train_tokens(
        config, policy=copy.deepcopy(reference), reference=reference, reward=verified,
        critic=TokenCritic(reference),
    )  # fmt: skip
    return {
        "device": reference.head.weight.device.type,
        "num_prompts": num_prompts,
        "answers_per_second": num_prompts / statistics.median(history["seconds"][1:]),
        "stages": {
            stage: statistics.median(history[f"seconds_{stage}"][1:])
            for stage in ("collect", "score", "squeeze")
        },
        "largest_first_ratio_deviation": max(history["first_ratio_deviation"]),
    }


def peers(bench: Bench) -> dict[str, Any]:
    """SB3 and CleanRL on the same machine's CPU, in processes of their own."""
    from ppo_lessons.bench.measure import Run, measure

    small = 2 if bench.dry else 12
    runs = {
        "SB3, 4 x 128": Run("sb3", "speed", {"num_envs": 4, "num_steps": 128, "iterations": small}),
        "SB3, 64 x 32": Run("sb3", "speed", {"num_envs": 64, "num_steps": 32, "iterations": small}),
    }
    if bench.cleanrl is not None:
        arguments = {"path": str(bench.cleanrl), "iterations": small}
        runs["CleanRL ppo.py, 4 x 128"] = Run("cleanrl", "speed", arguments)
    found: dict[str, Any] = {}
    for name, run in runs.items():
        try:
            found[name] = measure(run)
        except Exception as error:  # a peer that is not installed costs nothing else
            found[name] = {"error": f"{type(error).__name__}: {error}"}
    return found


SECTIONS = (
    Section("limits", 10, machine_limits),
    Section("equal", 25, equality),
    Section("waits", 15, no_waiting),
    Section("speed", 70, cart_pole_speed),
    Section("solved", 45, cart_pole_solved),
    Section("breakout_speed", 45, breakout_speed),
    Section("breakout_minute", 75, breakout_minute),
    Section("environments", 25, environments_alone),
    Section("ledger", 25, where_the_time_goes),
    Section("tokens", 40, language_model),
    Section("cpu", 35, against_cpu),
    Section("peers", 70, peers),
)
ALLOWED = 500  # seconds in all: a section that would begin later is left out


def run_all(bench: Bench, names: list[str], write: Callable[[dict[str, Any]], object]) -> dict:
    """Measure the sections one after the other, and write what is known after each."""
    content: dict[str, Any] = {"device": describe(bench.device), "dry": bench.dry, "sections": {}}
    began = time.perf_counter()
    for section in SECTIONS:
        if names and section.name not in names:
            continue
        passed = time.perf_counter() - began
        if passed + section.seconds > ALLOWED:
            result: Any = {"left_out": f"{passed:.0f} s have passed"}
        else:
            result = measured(section, bench)
        content["sections"][section.name] = result
        content["summary"] = summary(content["sections"])
        taken = time.perf_counter() - began - passed
        print(f"{section.name}: {taken:.1f} s   {headline(result)}", flush=True)
        write(content)
    return content


def summary(sections: dict[str, Any]) -> dict[str, float | None]:
    """The few numbers that the goals are about; None where a section did not give them."""
    found = {name: each.get("result") for name, each in sections.items()}
    rows = found.get("speed") or []

    def best(graphs: bool, rows: list[dict]) -> float | None:
        rates = [row["steps_per_second"] for row in rows if row["graphs"] == graphs]
        return max(rates, default=None)

    def at_4096(graphs: bool) -> float | None:
        return best(graphs, [row for row in rows if row["num_envs"] == 4096])

    def ratio(one: float | None, other: float | None) -> float | None:
        return one / other if one and other else None

    solved, minute = found.get("solved") or {}, found.get("breakout_minute") or {}
    cpu = (found.get("cpu") or {}).get("steps_per_second")
    return {
        "cart_pole_eager": best(False, rows),
        "cart_pole_graphs": best(True, rows),
        "graphs_over_eager_at_4096": ratio(at_4096(True), at_4096(False)),
        "gpu_eager_over_cpu_at_4096": ratio(at_4096(False), cpu),
        "seconds_to_475_warm": solved.get("median_seconds_without_capture"),
        "breakout_graphs": best(True, found.get("breakout_speed") or []),
        "breakout_return_after_a_minute": minute.get("mean_return_drawn"),
    }


def measured(section: Section, bench: Bench) -> Any:
    """What a section gives, or what went wrong."""
    began = time.perf_counter()
    try:
        result = {"result": section.measure(bench)}
    except Exception as error:  # the other sections must not be lost
        where = traceback.format_exc(limit=-4)
        result = {"error": f"{type(error).__name__}: {error}", "where": where}
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
    return {**result, "seconds": time.perf_counter() - began}


def describe(device: torch.device) -> dict[str, Any]:
    """The device's name, memory and drivers."""
    if device.type != "cuda":
        return {"type": device.type}
    about = torch.cuda.get_device_properties(device)
    return {
        "type": "cuda",
        "name": about.name,
        "bytes": about.total_memory,
        "capability": f"{about.major}.{about.minor}",
        "cuda": torch.version.cuda,
        "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
    }


def headline(result: Any) -> str:
    """One short line of a result."""
    if "result" not in result:
        return result.get("error") or result.get("left_out", "")
    found = result["result"]
    if isinstance(found, list):
        rates = [f"{row['steps_per_second'] / 1e6:.3g}M" for row in found]
        return f"steps/s: {', '.join(rates)}"
    return str(found)[:160]


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dry", action="store_true", help="tiny, on the CPU")
    parser.add_argument("--device", default=None, help="cuda if left out; cpu in a dry run")
    parser.add_argument("--only", default="", help="names of sections, with commas")
    parser.add_argument("--cleanrl", type=Path, default=None, help="path of its ppo.py")
    parser.add_argument("--out", type=Path, default=None, help="folder of the result")
    given = parser.parse_args(arguments)
    device = torch.device(given.device or ("cpu" if given.dry else "cuda"))
    if device.type == "cuda" and not torch.cuda.is_available():
        print("there is no CUDA device here; try --dry", file=sys.stderr)
        return 2
    names = [name for name in given.only.split(",") if name]
    unknown = sorted(set(names) - {section.name for section in SECTIONS})
    if unknown:
        known = ", ".join(section.name for section in SECTIONS)
        print(f"--only names {', '.join(unknown)}; expected some of {known}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    folder = given.out or (None if given.dry else RESULTS)
    command = " ".join(["python -m benchmarks.gpu", *(arguments or sys.argv[1:])])

    def write(content: dict[str, Any]) -> None:
        if folder is not None:
            write_result("gpu", command, content, folder=folder)

    began = time.perf_counter()
    content = run_all(Bench(device, given.dry, given.cleanrl), names, write)
    print(f"{time.perf_counter() - began:.0f} s in all; {content.get('summary')}")
    return int(any("error" in result for result in content["sections"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
