"""`ppo-lessons study run | merge | show`: studies from a shell."""

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Generator

from ppo_lessons.ablations.merge import merge_studies
from ppo_lessons.ablations.run import run_study
from ppo_lessons.ablations.statistics import interquartile_mean, stratified_bootstrap
from ppo_lessons.ablations.studies import STUDIES
from ppo_lessons.ablations.study import SCORE, Study, StudyResult

RESAMPLES, CONFIDENCE = 2000, 0.95


def main(rest: Sequence[str], program: str = "ppo-lessons") -> int:
    """Run, merge or show studies.

    Args:
        rest: the command line behind `study`.
        program: what the reader typed before it.

    Returns:
        0 if all went well.

    Raises:
        ValueError: if a study, a file or a seed cannot be used, with what to do.
    """
    options = make_parser(program).parse_args(list(rest))
    if options.action == "run":
        return run_command(options, program)
    if options.action == "merge":
        result = merge_studies(options.files)
        print(f"{len(result.runs)} runs → {result.to_json(free_path(options.out))}")
        return 0
    print(result_table(StudyResult.from_json(options.file)))
    return 0


def make_parser(program: str) -> argparse.ArgumentParser:
    """Say what the command line may hold."""
    parser = argparse.ArgumentParser(
        prog=f"{program} study", description="Run many learners at once, and compare settings."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="train every setting with every seed")
    known = f"{', '.join(STUDIES)}; or a Python file with STUDY = Study(...)"
    run.add_argument("study", help=known)
    run.add_argument("--seeds", help="as 1-16 or 3,5,8; those of the study if left out")
    run.add_argument("--out", type=Path, help="file of the result; NAME.json if left out")
    run.add_argument("--cache", type=Path, help="folder in which finished runs are kept")
    run.add_argument("--workers", type=int, help="processes of one thread; at most 2 if left out")
    run.add_argument("--device", default="cpu", help="cpu, or cuda")
    merge = actions.add_parser("merge", help="join files of one study with different seeds")
    merge.add_argument("files", nargs="+", type=Path)
    merge.add_argument("--out", type=Path, required=True, help="file of the joint result")
    show = actions.add_parser("show", help="print the table of a result, with intervals")
    show.add_argument("file", type=Path)
    return parser


def run_command(options: argparse.Namespace, program: str) -> int:
    """Run a study, write its result, print its table."""
    study = find_study(options.study)
    if options.seeds is not None:
        study = replace(study, seeds=parse_seeds(options.seeds))
    path = free_path(options.out or Path(f"{study.name}.json"))
    print(f"{study.question}\nexpected: {study.expectation}")
    print(
        f"{len(study.settings)} settings, {len(study.seeds)} seeds, "
        f"{study.total_steps:,} steps of {study.task} each",
        flush=True,
    )
    try:
        result = run_study(
            study, cache=options.cache, workers=options.workers, device=options.device
        )
    except KeyboardInterrupt:
        print(f"stopped; go on with the same command: {program} study run ...", file=sys.stderr)
        raise
    print(result_table(result))
    print(f"→ {result.to_json(path)}")
    return 0


def find_study(name: str) -> Study:
    """A study of the course by its name, or the one of a Python file.

    Raises:
        ValueError: if there is none.
    """
    if name in STUDIES:
        return STUDIES[name]
    path = Path(name)
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(
            f"there is no study {name!r}; expected one of {', '.join(STUDIES)}, or a Python file. "
            "Write STUDY = Study(...) into a file, and give its path."
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that processes and error messages find its functions
    spec.loader.exec_module(module)
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise ValueError(
            f"{path} holds no STUDY; expected a Study under that name. Add STUDY = Study(...)."
        )
    return study


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read seeds as 1-16, or 3,5,8, or both.

    Raises:
        ValueError: if it is written in another way.
    """
    seeds: list[int] = []
    for piece in text.split(","):
        low, dash, high = piece.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ValueError(
                f"--seeds has {piece!r}; expected numbers or ranges. Write 1-16, or 3,5,8."
            )
        seeds += range(int(low), int(high if dash else low) + 1)
    return tuple(seeds)


def free_path(path: Path) -> Path:
    """A path at which nothing stands yet.

    Raises:
        ValueError: if something does.
    """
    if path.exists():
        raise ValueError(
            f"{path} is there already; expected a new file, since results are never overwritten. "
            "Choose another --out."
        )
    return path


def result_table(result: StudyResult) -> str:
    """The table of a study: interquartile mean of each setting's scores, with its interval."""
    width = max(map(len, result.settings))
    lines = [f"{result.name}: {SCORE}", f"{'':{width}}  runs     IQM   {CONFIDENCE:.0%} interval"]
    for setting in result.settings:
        scores = result.scores(setting)
        scores = scores[~scores.isnan()]
        if not len(scores):
            lines.append(f"{setting:{width}}  {0:4}  no episode has ended")
            continue
        generator = Generator().manual_seed(0)
        low, high = stratified_bootstrap(
            scores.unsqueeze(0), interquartile_mean,
            resamples=RESAMPLES, confidence=CONFIDENCE, generator=generator,
        )  # fmt: skip
        middle = interquartile_mean(scores).item()
        broken = sum(run.broke_at is not None for run in result.of(setting))
        note = f"   {broken} broke off" if broken else ""
        lines.append(
            f"{setting:{width}}  {len(scores):4}  {middle:6.1f}   {low:.1f} to {high:.1f}{note}"
        )
    return "\n".join(lines)
