"""Studies: what is refused, what is kept, what goes on after it was stopped, what is pooled."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from ppo_lessons import cli
from ppo_lessons.ablations import (
    Run,
    Setting,
    Study,
    StudyResult,
    chunks,
    merge_studies,
    run_study,
)
from ppo_lessons.ablations import run as running
from ppo_lessons.ablations.chunks import Stopped, boiled_down, cut_study, run_chunk
from ppo_lessons.ablations.command import parse_seeds
from ppo_lessons.ablations.studies import STUDIES
from ppo_lessons.ablations.study import as_row, describe
from ppo_lessons.envs import BatchedEnvs, CartPole
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.trust_region import AdaptivePenalty, penalty_loss, stop_on_kl
from ppo_lessons.types import History

CONFIG = PPOConfig(
    num_envs=2, num_steps=16, total_steps=6 * 32, num_epochs=1, num_minibatches=2, hidden_sizes=(8,)
)


def no_clip(log_probs, log_probs_old, advantages):
    return surrogate_loss(log_probs, log_probs_old, advantages)


USUAL = (Setting("clip", CONFIG), Setting("no clip", CONFIG, Parts(policy_loss=no_clip)))


def small(seeds=(1, 2), settings=USUAL, **changes):
    return Study(
        **{
            "name": "small", "question": "Which?", "expectation": "Neither.",
            "settings": settings, "seeds": seeds, "time_limit": 10, "num_points": 10,
        } | changes
    )  # fmt: skip


run_here = partial(run_study, workers=1, progress=False)


# --- what a study is -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"expectation": " "}, "the expectation of the study is empty; expected a sentence"),
        ({"settings": ()}, "has no settings"),
        ({"seeds": ()}, "has no seeds"),
        ({"seeds": (1, 2, 1)}, "a seed stands twice"),
        ({"seeds": (-1,)}, "seeds holds -1; expected numbers from 0"),
        ({"settings": [Setting("a", CONFIG), Setting("a", CONFIG)]}, "two settings are called 'a'"),
        (
            {"settings": [Setting("a", CONFIG), Setting("b", replace(CONFIG, total_steps=320))]},
            "total_steps differ: {'a': 192, 'b': 320}; expected one budget",
        ),
        ({"task": "CartPole-v1"}, "there is no task 'CartPole-v1'; expected one of CartPole,"),
        ({"time_limit": 0}, "time_limit is 0; expected whole steps"),
        ({"num_points": 5}, "num_points is 5; expected at least 10"),
    ],
)
def test_a_table_that_cannot_be_run_is_refused(changes, sentence):
    given = {"settings": [Setting("clip", CONFIG)], "seeds": (1,), **changes}
    with pytest.raises(ValueError, match=sentence):
        small(**given)


@pytest.mark.messages
def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="the config of a setting is 3, a int; expected PPOConfig"):
        Setting("a", 3)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match="seeds holds '1', a str"):
        small(seeds=("1",))
    with pytest.raises(ValueError, match="workers is 0; expected at least 1"):
        run_study(small(), workers=0)


def test_functions_are_told_apart_by_source_and_numbers():
    def other(log_probs, log_probs_old, advantages):
        return 2 * surrogate_loss(log_probs, log_probs_old, advantages)

    def weighted(weight):
        return lambda log_probs, log_probs_old, advantages: weight * advantages.mean()

    functions = [
        *(no_clip, other, penalty_loss, partial(penalty_loss, beta=1.0)),
        *(partial(penalty_loss, beta=2.0), AdaptivePenalty(1.0, 0.1), AdaptivePenalty(1.0, 0.2)),
        *(weighted(1.0), weighted(2.0)),
    ]
    said = [json.dumps(describe(function)) for function in functions]
    assert len(set(said)) == len(functions)
    assert describe(no_clip) == describe(no_clip)


def test_a_row_holds_what_is_unusual_and_no_seed():
    row = as_row(Setting("x", replace(CONFIG, seed=7), Parts(policy_loss=no_clip)))
    assert row["parts"].keys() == {"policy_loss"}
    assert not {"seed", "env"} & row["config"].keys()
    assert as_row(Setting("x", CONFIG))["parts"] == {}


# --- score and curve, by hand --------------------------------------------------------------


def test_score_and_curve_by_hand():
    # 10 iterations of 32 steps, 10 points; sums of returns and numbers of episodes
    study = small(settings=[Setting("clip", replace(CONFIG, total_steps=320))], seeds=(1,))
    finished = [(0.0, 0), (10.0, 2), (0.0, 0), (6.0, 1), *[(4.0, 1)] * 4, (9.0, 3), (30.0, 4)]
    rows: list[dict[str, float | None]]
    rows = [{name: float(i) for name in chunks.METRICS} for i in range(10)]
    rows[0]["ev_monte_carlo"] = None
    run = boiled_down(study, 0, 1, History(None, None, rows), finished)
    assert run.returns == [None, 5.0, 5.0, 6.0, 4.0, 4.0, 4.0, 4.0, 3.0, 7.5]
    assert run.score == 7.5
    assert run.metrics["kl_k3"] == 4.5
    assert run.metrics["ev_monte_carlo"] == 5.0  # over the nine that have one
    assert run.broke_at is None


def test_a_run_that_broke_off_keeps_the_last_score_it_had():
    study = small(settings=[Setting("clip", replace(CONFIG, total_steps=320))], seeds=(1,))
    rows = [dict.fromkeys(chunks.METRICS, 1.0)] * 3
    history = History(None, None, rows, stopped="not finite")
    run = boiled_down(study, 0, 1, history, [(10.0, 2), (6.0, 3), (0.0, 0)])
    assert (run.score, run.broke_at) == (2.0, 96)
    assert run.returns == [5.0, *[2.0] * 9]


def test_scores_are_those_of_lone_runs(tmp_path):
    study = small()
    result = run_here(study, cache=tmp_path)
    for setting in study.settings:
        for seed, score in zip(study.seeds, result.scores(setting.name).tolist(), strict=True):
            last = []

            def look(state, last=last):
                ended = state.rollout.ended
                if state.env_steps > 0.9 * study.total_steps:
                    last.extend(state.rollout.episode_returns[ended].tolist())

            envs = BatchedEnvs(CartPole(time_limit=10), 2)
            train(replace(CONFIG, seed=seed), envs=envs, parts=setting.parts, on_iteration=look)
            assert score == pytest.approx(sum(last) / len(last), rel=1e-4)


def test_a_setting_without_a_batch_is_trained_alone(tmp_path):
    stopping = Parts(stop_epochs=partial(stop_on_kl, max_kl=1e-9))
    study = small(settings=[Setting("clip", CONFIG), Setting("stops", CONFIG, stopping)])
    cut = cut_study(study)
    assert sorted((chunk.batched, len(chunk.runs)) for chunk in cut) == [
        (False, 1), (False, 1), (True, 2),
    ]  # fmt: skip
    assert len(run_here(study, cache=tmp_path).scores("stops")) == 2


def test_settings_of_one_shape_run_together_and_each_run_once():
    cut = cut_study(STUDIES["map"])
    runs = [run for chunk in cut for run in chunk.runs]
    assert len(runs) == len(set(runs)) == STUDIES["map"].num_runs
    for chunk in cut:
        epochs = {STUDIES["map"].settings[index].config.num_epochs for index, _ in chunk.runs}
        assert len(epochs) == 1


# --- kept, and gone on with ----------------------------------------------------------------


def test_what_has_been_run_is_read_and_not_run_again(tmp_path, monkeypatch):
    first = run_here(small(), cache=tmp_path)
    asked = []

    def recorded(study, chunk, **given):
        asked.extend((study.settings[index].name, seed) for index, seed in chunk.runs)
        return run_chunk(study, chunk, **given)

    monkeypatch.setattr(running, "run_chunk", recorded)
    assert run_here(small(), cache=tmp_path).runs == first.runs
    assert asked == []
    more = small(
        seeds=(1, 2, 3),
        settings=[
            Setting("another name", CONFIG),
            Setting("no clip", CONFIG, Parts(policy_loss=surrogate_loss)),
        ],
    )
    result = run_here(more, cache=tmp_path)
    # the name is no part of a run; another function is another run
    assert sorted(asked) == [("another name", 3), ("no clip", 1), ("no clip", 2), ("no clip", 3)]
    assert result.scores("another name")[:2].tolist() == first.scores("clip").tolist()


def test_a_damaged_file_is_run_again(tmp_path):
    first = run_here(small(), cache=tmp_path)
    paths = sorted(tmp_path.glob("??/*.json"))
    assert len(paths) == 4
    paths[0].write_text('{"half', encoding="utf-8")
    paths[1].write_text("[]", encoding="utf-8")
    assert run_here(small(), cache=tmp_path).runs == first.runs


def test_a_stopped_chunk_goes_on_where_it_was(tmp_path):
    study = small()
    (chunk,) = cut_study(study)
    file = tmp_path / "half.pt"
    whole = run_chunk(study, chunk, partial=tmp_path / "x.pt", device="cpu", tell=lambda _: False)
    told = []

    def after_three(steps):
        told.append(steps)
        return len(told) > 3  # the first call tells where it begins

    with pytest.raises(Stopped):
        run_chunk(study, chunk, partial=file, device="cpu", tell=after_three)
    assert file.exists()
    rest = []

    def go_on(steps):
        rest.append(steps)
        return False

    found = run_chunk(study, chunk, partial=file, device="cpu", tell=go_on)
    assert rest[0] == sum(told) == 3 * 4 * 32
    assert sum(rest) == study.num_runs * study.total_steps
    assert found == whole
    file.write_bytes(b"damaged")
    assert run_chunk(study, chunk, partial=file, device="cpu", tell=lambda _: False) == whole


def test_two_processes_give_what_one_gives(tmp_path):
    settings = [Setting("clip", CONFIG), Setting("long", replace(CONFIG, num_epochs=2))]
    study = small(settings=settings)
    ours = run_study(study, cache=tmp_path / "two", workers=2, progress=False)
    assert ours.runs == run_here(study, cache=tmp_path / "one").runs


@pytest.mark.messages
def test_what_goes_wrong_in_a_process_is_said(tmp_path):
    def shapeless(log_probs, log_probs_old, advantages):
        return advantages

    settings = [
        Setting("wrong", replace(CONFIG, num_epochs=k), Parts(policy_loss=shapeless))
        for k in (1, 2)
    ]
    settings = [replace(setting, name=f"wrong {k}") for k, setting in enumerate(settings)]
    with pytest.raises(ValueError, match=r"TypeError: Parts\.policy_loss gave a Tensor of shape"):
        run_study(small(settings=settings), cache=tmp_path, workers=2, progress=False)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from test_ablations_study import CONFIG, Setting, run_study, small
long = replace(CONFIG, total_steps=32 * 4000)
settings = [Setting(str(k), replace(long, num_epochs=k)) for k in (1, 2)]
from ppo_lessons.ablations import chunks
chunks.SECONDS_BETWEEN_CHECKPOINTS = 0.2
print("begins", flush=True)
run_study(small(settings=settings), cache={cache!r}, workers={workers}, progress=False)
"""


@pytest.mark.full
@pytest.mark.parametrize(("number", "workers"), [("INT", 1), ("INT", 2), ("KILL", 1), ("KILL", 2)])
def test_a_process_that_is_stopped_or_killed_leaves_what_it_had(tmp_path, number, workers):
    tests = str(Path(__file__).parent)
    code = SCRIPT.format(tests=tests, cache=str(tmp_path), workers=workers)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 120
    while len(list(tmp_path.glob("unfinished/*.pt"))) < workers and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(process.pid, getattr(signal, f"SIG{number}"))
    assert process.wait(60) != 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # workers whose parent was killed end by themselves
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.2)
    else:
        pytest.fail("a worker outlived its parent")
    halves = sorted(tmp_path.glob("unfinished/*.pt"))
    assert len(halves) == workers
    assert all(torch.load(half, weights_only=True)["iteration"] > 0 for half in halves)


# --- results -------------------------------------------------------------------------------


def made(seeds, **changes):
    study = small(seeds=seeds)
    rows = [as_row(setting) for setting in study.settings]
    runs = [
        Run(setting.name, seed, float(seed + index), [None, *[1.0] * 9], {"kl_k3": 0.1 * seed})
        for index, setting in enumerate(study.settings)
        for seed in reversed(seeds)
    ]
    given = {
        "name": "small", "question": "Which?", "expectation": "Neither.", "task": "CartPole",
        "time_limit": 10, "env_steps": list(range(10)), "rows": rows, "runs": runs,
        "code": "abc", "machines": [{"python": "3"}],
    }  # fmt: skip
    return StudyResult(**given | changes)


def test_a_result_is_read_by_seed_and_setting():
    result = made((3, 1, 2))
    assert result.seeds == (1, 2, 3)
    assert result.scores("no clip").tolist() == [2.0, 3.0, 4.0]
    assert result.metric("clip", "kl_k3").tolist() == pytest.approx([0.1, 0.2, 0.3])
    steps, returns = result.curves("clip")
    assert (steps.shape, returns.shape) == ((10,), (3, 10))
    assert returns[:, 0].isnan().all()
    assert result.config("clip") == CONFIG
    for call in (result.scores, result.curves, result.config):
        with pytest.raises(ValueError, match="there is no setting 'clap'; expected one of clip"):
            call("clap")
    with pytest.raises(ValueError, match="there is no metric 'kl'; expected one of kl_k3"):
        result.metric("clip", "kl")


def test_a_result_survives_json(tmp_path):
    result = made((1, 2))
    path = result.to_json(tmp_path / "new" / "x.json")
    assert StudyResult.from_json(path).as_dict() == result.as_dict()
    assert StudyResult.from_json(json.loads(path.read_text("utf-8"))).runs == result.runs
    assert max(map(len, path.read_text("utf-8").splitlines())) < 400
    path.write_text('{"format": "other"}', encoding="utf-8")
    with pytest.raises(ValueError, match="is no study of ppo-lessons"):
        StudyResult.from_json(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        StudyResult.from_json(path)
    with pytest.raises(ValueError, match="does not exist"):
        StudyResult.from_json(tmp_path / "none.json")


def test_files_of_several_machines_are_pooled(tmp_path):
    files = [made((1, 2)).to_json(tmp_path / "a.json"), made((3,)).to_json(tmp_path / "b.json")]
    pooled = merge_studies(files)
    assert pooled.seeds == (1, 2, 3)
    assert pooled.scores("clip").tolist() == [1.0, 2.0, 3.0]
    assert len(pooled.machines) == 2


def altered(part, **entries):
    row = dict(made((3,)).rows[0])
    return {"rows": [{**row, part: {**row[part], **entries}}, made((3,)).rows[1]]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"expectation": "Both."}, "has the expectation 'Both.', small has 'Neither.'"),
        ({"code": "abe"}, "has the version of the course's code 'abe'"),
        ({"time_limit": None}, "has the time limit None, small has 10"),
        (altered("config", clip_epsilon=0.3), "'clip' differs: small has clip_epsilon = 0.3 inst"),
        (altered("parts", normalize={"function": "mine"}), "'clip' differs: small has normalize ="),
        ({"rows": list(reversed(made((3,)).rows))}, "has the settings no clip, clip; small has"),
    ],
)
def test_files_of_another_study_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=f"{sentence}.*expected one study on all machines"):
        merge_studies([made((1, 2)), made((3,), **changes)])


def test_a_run_that_stands_in_two_files_is_refused(tmp_path):
    file = made((2, 3)).to_json(tmp_path / "b.json")
    with pytest.raises(ValueError, match=r"'clip' with seed 2 stands in small and in .*b\.json"):
        merge_studies([made((1, 2)), file])
    with pytest.raises(ValueError, match="there is no file to merge"):
        merge_studies([])


# --- from a shell --------------------------------------------------------------------------

MINE = """
from test_ablations_study import small
STUDY = small()
"""


def test_the_verb_runs_merges_and_shows(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    for seeds, name in (("1-2", "a"), ("3,4", "b")):
        out = str(tmp_path / f"{name}.json")
        given = ["--cache", str(tmp_path / "cache"), "--workers", "1", "--seeds", seeds]
        command = ["study", "run", str(tmp_path / "mine.py"), "--out", out, *given]
        assert cli.main(command) == 0
        assert "expected: Neither." in capsys.readouterr().out
    assert cli.main(command) == 2
    assert "is there already; expected a new file" in capsys.readouterr().err
    files = [str(tmp_path / f"{name}.json") for name in "ab"]
    assert cli.main(["study", "merge", *files, "--out", str(tmp_path / "all.json")]) == 0
    assert cli.main(["study", "show", str(tmp_path / "all.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(" 4 " in line and " to " in line for line in lines[-2:])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["run", "nothing"], "there is no study 'nothing'; expected one of map, sparse, parts"),
        (["run", "parts", "--seeds", "1-"], "--seeds has '1-'; expected numbers or ranges"),
        (["show", "none.json"], "none.json does not exist; expected a study"),
        (["merge", "none.json", "--out", "x.json"], "none.json does not exist"),
    ],
)
def test_the_verb_says_what_is_wrong(command, sentence, capsys):
    assert cli.main(["study", *command]) == 2
    assert sentence in capsys.readouterr().err


def test_seeds_are_read_as_ranges():
    assert parse_seeds("1-3,7") == (1, 2, 3, 7)
    for text in ("", "a", "3-", "-3", "1;2"):
        with pytest.raises(ValueError, match="expected numbers or ranges"):
            parse_seeds(text)


def test_the_studies_of_the_course_can_be_run_and_say_what_they_expect():
    for name, study in STUDIES.items():
        assert name == study.name
        assert all(chunk.batched for chunk in cut_study(study))
