"""The data that flows through the loop."""

import dataclasses
import inspect

import pytest
import torch

from ppo_lessons import types
from ppo_lessons.types import Batch, Carry, History, Rollout, UpdateStats


def rollout(num_steps: int = 2, num_envs: int = 3) -> Rollout:
    shape = (num_steps, num_envs)
    no = torch.zeros(shape, dtype=torch.bool)
    return Rollout(
        observations=torch.zeros(*shape, 4),
        next_observations=torch.zeros(*shape, 4),
        actions=torch.zeros(shape, dtype=torch.int64),
        rewards=torch.zeros(shape),
        terminated=no.clone(),
        truncated=no.clone(),
        log_probs_old=torch.zeros(shape),
        valid=~no,
        episode_returns=torch.zeros(shape),
        episode_lengths=torch.zeros(shape, dtype=torch.int64),
    )


def batch(rows: int, *tokens: int) -> Batch:
    numbers = torch.arange(float(rows)).reshape(rows, *[1] * len(tokens)).expand(rows, *tokens)
    return Batch(
        observations=torch.arange(rows * 2.0).reshape(rows, 2),
        actions=torch.arange(rows).reshape(rows, *[1] * len(tokens)).expand(rows, *tokens),
        log_probs_old=-numbers,
        values_old=numbers + 0.1,
        advantages=numbers + 0.2,
        returns=numbers + 0.3,
        valid=numbers != 1,
    )


def stats(**changes: torch.Tensor) -> UpdateStats:
    nothing = {field.name: torch.zeros(2, 2) for field in dataclasses.fields(UpdateStats)}
    return UpdateStats(**{**nothing, **changes})


def history(*rows: dict) -> History:
    return History(config=None, networks=torch.nn.Linear(1, 1), rows=list(rows))


def test_a_step_ended_if_it_was_terminated_or_truncated():
    facts = rollout()
    facts.terminated[0, 0] = facts.truncated[0, 1] = True
    facts.terminated[1, 2] = facts.truncated[1, 2] = True
    assert facts.ended.tolist() == [[True, True, False], [False, False, True]]


def test_ended_is_a_new_tensor_that_may_be_written_into():
    facts = rollout()
    facts.ended[:] = True
    assert not facts.terminated.any()
    assert not facts.truncated.any()


def test_write_copies_one_time_step():
    facts, row = rollout(), torch.tensor([1.0, 2.0, 3.0])
    facts.write(1, rewards=row)
    row.fill_(9.0)
    assert facts.rewards.tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]


def test_rows_takes_the_same_rows_of_every_field():
    part = batch(4).rows(torch.tensor([3, 1]))
    assert len(part) == 2
    assert part.observations.tolist() == [[6.0, 7.0], [2.0, 3.0]]
    assert part.actions.tolist() == [3, 1]
    assert part.log_probs_old.tolist() == [-3.0, -1.0]
    assert part.values_old.tolist() == pytest.approx([3.1, 1.1])
    assert part.advantages.tolist() == pytest.approx([3.2, 1.2])
    assert part.returns.tolist() == pytest.approx([3.3, 1.3])
    assert part.valid.tolist() == [True, False]


def test_a_row_of_a_batch_may_be_many_tokens():
    part = batch(4, 5).rows(torch.tensor([2]))
    assert part.advantages.shape == part.valid.shape == (1, 5)


@pytest.mark.parametrize("kind", [Rollout, Carry, Batch, UpdateStats])
def test_facts_cannot_be_exchanged(kind):
    assert kind.__dataclass_params__.frozen


def test_a_rollout_holds_facts_only():
    names = {field.name for field in dataclasses.fields(Rollout)}
    assert not names & {"values", "next_values", "advantages", "returns"}


def test_the_last_epoch_is_averaged_over_its_minibatches():
    measured = stats(kl_k1=torch.tensor([[8.0, 8.0], [1.0, 2.0]])).last_epoch()
    assert measured["kl_k1"] == 1.5
    assert measured["entropy"] == 0.0
    assert list(measured) == [field.name for field in dataclasses.fields(UpdateStats)]


def test_a_history_gives_metrics_by_name_and_rows_in_order():
    seen = history({"entropy": 0.6, "seconds": 1}, {"entropy": None, "seconds": 2})
    assert len(seen) == 2
    assert seen["entropy"] == [0.6, None]
    assert [row["seconds"] for row in seen] == [1, 2]


def test_a_history_of_nothing_has_no_numbers():
    assert history()["entropy"] == []
    assert list(history()) == []


@pytest.mark.messages
def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(KeyError) as raised:
        history({"seconds": 1, "entropy": 0.5})["entropie"]
    assert raised.value.args == ("no metric 'entropie'; there are: entropy, seconds",)


def test_a_history_is_one_sentence():
    seen = history({"entropy": 0.5})
    assert repr(seen) == "History of 1 iterations (finished)"


def test_every_field_is_explained():
    for kind in (Rollout, Carry, Batch):
        text = inspect.getdoc(kind) or ""
        assert all(f"\n    {field.name}: " in text for field in dataclasses.fields(kind)), kind
    assert types.__doc__
