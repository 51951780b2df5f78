"""`ppo-lessons <verb>`: the course from a shell.

train                          train PPO, with a progress bar and a run folder
check                          say which answers of an exercise notebook pass
html                           write the widgets as pages that need no kernel and no network
grade                          hand out, grade and report assignments; preview one's own notebook
bench                          measure speed and memory beside other implementations
audit                          say which mistake gives the numbers of a PPO
diagnose                       say what looks wrong in the metrics of a run
study                          run many learners at once, and compare settings
lab, test, reset, ...          the same as `./course <verb>`, in the Python that is active
"""

import argparse
import difflib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

COURSE_VERBS = ("lab", "test", "reset", "doctor", "update")
# How the reader called us: the launcher says so, since its package is on nobody's PATH.
PROGRAM = os.environ.get("PPO_LESSONS_CALL", "ppo-lessons")
USAGE = f"""usage: {PROGRAM} <verb> [options]

  train     train PPO on a gymnasium environment     {PROGRAM} train --help
  check     check the answers of a lesson            {PROGRAM} check 04
  html      write the widgets as offline pages       {PROGRAM} html --out DIR
  grade     preview, hand out, grade assignments     {PROGRAM} grade --help
  bench     speed and memory beside other PPOs       {PROGRAM} bench --quick
  audit     find the mistake in tensors of any PPO   {PROGRAM} audit FILE.npz
  diagnose  what looks wrong in a run's metrics      {PROGRAM} diagnose runs/RUN
  study     compare settings over many seeds         {PROGRAM} study run parts
  {", ".join(COURSE_VERBS)}
            the same as ./course <verb>, in this Python
"""
RUNS = Path("runs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        arguments: the command line without the program's name; that of the process if left out.

    Returns:
        The exit status: 0 if all went well, 130 after Ctrl-C, 2 if the input was wrong.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a sign shows ? for it
            stream.reconfigure(errors="replace")
    verb, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if verb in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if verb in COURSE_VERBS:
        return run_course(verb, rest)
    commands = {
        "train": train_command,
        "check": check_command,
        "html": html_command,
        "grade": grade_command,
        "bench": bench_command,
        "audit": audit_command,
        "diagnose": diagnose_command,
        "study": study_command,
    }
    if verb not in commands:
        known = [*commands, *COURSE_VERBS]
        close = difflib.get_close_matches(verb, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"See {PROGRAM} --help."
        return refuse(f"there is no verb {verb!r}; expected one of {', '.join(known)}. {hint}")
    try:
        return commands[verb](rest)
    except (ValueError, TypeError, OSError) as error:
        return refuse(str(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def refuse(reason: str) -> int:
    """Say why nothing was done."""
    print(f"{PROGRAM}: {reason}", file=sys.stderr)
    return 2


def run_course(verb: str, rest: Sequence[str]) -> int:
    """Let the launcher do it, in this Python instead of an environment of its own."""
    launcher = Path(__file__).resolve().parents[1] / "course"
    if not launcher.is_file():
        return refuse(
            f"{verb} needs the course's files, and the package was installed without them; "
            "expected a checkout. Clone the repository and run: pip install -e '.[course,test]'."
        )
    try:
        return subprocess.call([sys.executable, str(launcher), "--here", verb, *rest])
    except KeyboardInterrupt:
        return 130


def check_command(rest: Sequence[str]) -> int:
    """Check the answers of exercise notebooks.

    Args:
        rest: numbers or names of lessons, or paths.

    Returns:
        0 if every answer passes, 1 if one does not, 2 if there is nothing to check.
    """
    if not rest or rest[0] in ("-h", "--help"):
        print(f"usage: {PROGRAM} check NN | path/to/notebook.ipynb ...")
        return 0 if rest else 2
    from ppo_lessons.checks.run import check_notebook

    return check_notebook(rest)


def html_command(rest: Sequence[str]) -> int:
    """Write the offline pages, and say where the index is.

    Args:
        rest: the command line behind `html`.

    Returns:
        The exit status.
    """
    own = Path("my_work")
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} html", description="Write each widget as one page without a network."
    )
    parser.add_argument("--out", type=Path, default=(own if own.is_dir() else Path()) / "html")
    folder = parser.parse_args(list(rest)).out
    try:
        from ppo_lessons.widgets.html import write_pages

        pages = write_pages(folder)
    except (ImportError, OSError) as error:
        return refuse(str(error))
    print(f"{len(pages)} pages; open {pages[-1]}")
    return 0


def grade_command(rest: Sequence[str]) -> int:
    """Hand out, grade and report assignments.

    Args:
        rest: the command line behind `grade`.

    Returns:
        The exit status.
    """
    from ppo_lessons.grading.cli import main as grade

    return grade(rest)


def bench_command(rest: Sequence[str]) -> int:
    """Measure this course's PPO beside others, in turn.

    Args:
        rest: the command line behind `bench`.

    Returns:
        The exit status.
    """
    from ppo_lessons.bench.cli import main as bench

    return bench(rest)


def audit_command(rest: Sequence[str]) -> int:
    """Say whether the tensors of a PPO agree, or which mistake gives their numbers.

    Args:
        rest: the command line behind `audit`.

    Returns:
        0 if nothing is wrong, 1 if something is.
    """
    from ppo_lessons.audit.cli import main as report

    return report(rest, PROGRAM)


def diagnose_command(rest: Sequence[str]) -> int:
    """Say what looks wrong in the metrics of a run, by which number, and where to read on.

    Args:
        rest: the command line behind `diagnose`.

    Returns:
        0 if nothing looks wrong, 1 if something does.
    """
    from ppo_lessons.diagnose.cli import main as report

    return report(rest, PROGRAM)


def study_command(rest: Sequence[str]) -> int:
    """Run, merge or show studies over many seeds.

    Args:
        rest: the command line behind `study`.

    Returns:
        The exit status.
    """
    from ppo_lessons.ablations.command import main as study

    return study(rest, PROGRAM)


def train_command(rest: Sequence[str]) -> int:
    """Train as the command line says; the run's folder stays whatever happens.

    Args:
        rest: the command line behind `train`.

    Returns:
        The exit status.
    """
    from ppo_lessons.runs import RunFolder, remove_if_empty
    from ppo_lessons.training_loop import PRESETS, train

    arguments, config = parse_train(rest)
    path = run_path(arguments, config)
    folder = RunFolder(path, config, arguments.preset)
    parts = PRESETS[arguments.preset].parts
    print(f"{config.env}, seed {config.seed}, preset {arguments.preset}, one torch thread → {path}")
    print(f"{config.num_iterations} iterations of {config.batch_size:,} steps", flush=True)
    try:
        with Progress(config) as progress:

            def on_iteration(state: Any) -> None:
                folder.on_iteration(state)
                progress.show(state)

            history = train(config, parts=parts, on_iteration=on_iteration, resume=arguments.resume)
        folder.finish()
    finally:
        remove_if_empty(path)
    if history.stopped == "interrupted":
        print("stopped", end="")
        print(f"; go on with: {PROGRAM} train --resume {path}" if folder.saved_iteration else "")
        return 130
    last = history["episode_return"][-1] if history.rows else None
    if last is None:
        print("no episode has ended yet, so there is no return")
    else:
        print(f"mean return of the last 100 episodes: {last:.1f}")
    return 0


def run_path(arguments: Any, config: Any) -> Path:
    """Make the run's folder, or go on in the resumed one; never in one that holds another run.

    Raises:
        ValueError: if the folder holds another run.
    """
    from ppo_lessons.runs import holds_run, new_run_folder

    own = arguments.resume.parent if arguments.resume else None
    path = arguments.run_dir or own or new_run_folder(config, RUNS)
    if holds_run(path) and (own is None or path.resolve() != own.resolve()):
        raise ValueError(
            f"{path} already holds a run; expected a new folder. Choose another --run-dir, or go "
            f"on with that run: --resume {path}."
        )
    path.mkdir(parents=True, exist_ok=True)
    return path


def parse_train(rest: Sequence[str]) -> tuple[Any, Any]:
    """Turn the command line into arguments and a config, checked.

    The preset or the resumed run gives the defaults, so it is looked for first.
    """
    import tyro

    from ppo_lessons.training_loop import PRESETS, PPOConfig

    @dataclass(frozen=True)
    class Train:
        """Train PPO on a gymnasium environment, in a run folder of its own."""

        config: tyro.conf.OmitArgPrefixes[PPOConfig]
        preset: Literal[*PRESETS]  # type: ignore[valid-type]
        """Where the defaults of the config come from."""
        run_dir: Path | None = None
        """Folder of the run; a new one under runs/ if left out."""
        resume: Path | None = None
        """Folder of a run to go on from; its settings are then the defaults."""

    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", choices=list(PRESETS), default="quick")
    first.add_argument("--resume", type=Path, default=None)
    early, _ = first.parse_known_args(rest)
    preset, config, checkpoint = early.preset, PRESETS[early.preset].config, None
    if early.resume is not None:
        preset, config, checkpoint = saved_run(early.resume)
    default = Train(config=config, preset=preset)
    arguments = tyro.cli(Train, prog=f"{PROGRAM} train", args=list(rest), default=default)
    if checkpoint is not None:
        if arguments.preset != preset:
            raise ValueError(
                f"--preset is {arguments.preset}; expected {preset}, that of the saved run. "
                "Leave --preset out."
            )
        arguments = Train(arguments.config, preset, arguments.run_dir, checkpoint)
    return arguments, arguments.config


def saved_run(path: Path) -> tuple[str, Any, Path]:
    """Preset, config and checkpoint of a run, given by its folder or its checkpoint."""
    from ppo_lessons.training_loop import PRESETS, config_of, read_checkpoint

    checkpoint = path / "checkpoint.pt" if path.is_dir() else path
    config = config_of(read_checkpoint(checkpoint))
    settings = checkpoint.parent / "config.json"
    try:
        preset = json.loads(settings.read_text(encoding="utf-8"))["preset"]
    except (OSError, ValueError, KeyError, TypeError):
        preset = None
    if preset not in PRESETS:
        raise ValueError(
            f"{settings} names no preset; expected one of {', '.join(PRESETS)}. Give the folder of "
            "a run that `ppo-lessons train` wrote."
        )
    return preset, config, checkpoint


class Progress:
    """A bar with return, KL, speed and time left; plain lines where no terminal is.

    Args:
        config: of the run, for its length.
    """

    def __init__(self, config: Any):
        from tqdm import tqdm

        self.bar = tqdm(
            total=config.num_iterations * config.batch_size,
            unit=" steps",
            unit_scale=True,
            dynamic_ncols=True,
            disable=None,  # only where standard error is a terminal
        )
        self.every = max(1, config.num_iterations // 10)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def show(self, state: Any) -> None:
        """Show the newest row of a `TrainState`."""
        row = state.history.rows[-1]
        reward = "—" if row["episode_return"] is None else f"{row['episode_return']:.1f}"
        if self.bar.disable:
            if state.iteration % self.every == 0:
                print(
                    f"{row['env_steps']:>10,} steps   return {reward}   kl_k3 {row['kl_k3']:.4f}   "
                    f"{state.config.batch_size / row['seconds']:,.0f} steps/s",
                    flush=True,
                )
            return
        if state.resumed and self.bar.n == 0:
            self.bar.write(f"note: {state.resumed}")
        if self.bar.n == 0 and state.iteration > 1:  # resumed: these steps took no time now
            self.bar.initial = self.bar.n = row["env_steps"] - state.config.batch_size
        self.bar.set_postfix_str(f"return {reward}, kl_k3 {row['kl_k3']:.4f}", refresh=False)
        self.bar.update(row["env_steps"] - self.bar.n)
