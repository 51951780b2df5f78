"""Breakout: MinAtar's game, one step at a time, through every branch.

The states, and what MinAtar made of them, stand in `golden/parity.json`, where `test_parity.py`
compares every number; here is what those states are worth, and what is not MinAtar's.
"""

import numpy as np
import pytest
import torch
from test_parity import EXACT, GOLDEN, agree, our_breakout, read

from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.envs import breakout as module
from ppo_lessons.envs.breakout import BALL, BRICKS, PADDLE, TRAIL, Breakout

GIVEN = read(GOLDEN["cases"]["breakout"]["given"])
ANSWER = read(GOLDEN["cases"]["breakout"]["answer"])


def count(condition) -> int:
    return int(condition.sum())


def test_the_stored_states_go_through_every_branch():
    turned = ANSWER["direction"] != GIVEN["direction"]
    at_paddle = (ANSWER["row"] == GIVEN["row"]) & (GIVEN["row"] == 8) & (GIVEN["direction"] > 1)
    straight = (ANSWER["direction"] == 3 - GIVEN["direction"]) & at_paddle
    back = (ANSWER["direction"] == (GIVEN["direction"] + 2) % 4) & at_paddle
    branches = {
        "ceiling": (GIVEN["row"] == 0) & (GIVEN["direction"] < 2) & turned,
        "brick": ANSWER["rewards"] == 1,
        "a second brick in a row": ANSWER["struck"] & (ANSWER["rewards"] == 0),
        "paddle below": straight,
        "paddle ahead": back,
        "lost": ANSWER["terminated"],
        "new bricks": (GIVEN["bricks"] == 0) & (ANSWER["bricks"] == 2**30 - 1),
        "left wall": (GIVEN["column"] == 0) & (ANSWER["column"] == 0) & turned,
        "right wall": (GIVEN["column"] == 9) & (ANSWER["column"] == 9) & turned,
    }
    assert {name: count(at_work) for name, at_work in branches.items() if count(at_work) < 3} == {}


class AlwaysBreaks(Breakout):
    """A ball that may break two bricks in a row."""

    def advance(self, state, actions, *, generator):
        forgotten = state | {"struck": torch.zeros_like(state["struck"])}
        return super().advance(forgotten, actions, generator=generator)


class PaddleAfterBall(Breakout):
    """A paddle that moves only when the ball has passed."""

    def advance(self, state, actions, *, generator):
        stay = super().advance(state, torch.zeros_like(actions), generator=generator)
        moved, _, _ = super().advance(state, actions, generator=generator)
        return stay[0] | {"paddle": moved["paddle"]}, *stay[1:]


@pytest.mark.parametrize("wrong", [AlwaysBreaks, PaddleAfterBall])
def test_a_wrong_rule_is_found(wrong, monkeypatch):
    monkeypatch.setattr("test_parity.Breakout", wrong)
    with pytest.raises(AssertionError):
        agree(our_breakout(GIVEN), ANSWER, EXACT)


@pytest.mark.parametrize("table", ["TURNED_AT_A_SIDE", "TURNED_UPSIDE_DOWN", "TURNED_BACK"])
def test_a_ball_that_is_turned_otherwise_is_found(table, monkeypatch):
    monkeypatch.setattr(module, table, (0, 1, 2, 3))
    with pytest.raises(AssertionError, match="direction"):
        agree(our_breakout(GIVEN), ANSWER, EXACT)


def test_the_first_board_by_hand():
    envs = BatchedEnvs(Breakout(), 64)
    boards = envs.reset(seed=0)
    corners = boards[:, 3, 0, BALL], boards[:, 3, 9, BALL]
    assert (corners[0] ^ corners[1]).all()
    assert all(corner.any() for corner in corners), "both corners are drawn"
    assert torch.equal(boards[..., TRAIL], boards[..., BALL])
    assert boards[:, 9, 4, PADDLE].all()
    assert count(boards[..., PADDLE]) == 64
    assert boards[:, 1:4, :, BRICKS].all()
    assert count(boards[..., BRICKS]) == 64 * 30


def test_what_an_episode_reached_is_kept_and_the_next_begins():
    envs = BatchedEnvs(Breakout(sticky=0), 8)
    envs.reset(seed=0)
    for _ in range(20):  # standing still, the ball is soon lost
        step = envs.step(torch.zeros(8, dtype=torch.int64))
        if step.terminated.any():
            break
    lost = step.terminated
    assert step.next_observations[lost][:, 9, :, BALL].any(dim=1).all(), "it reached the floor"
    assert step.observations[lost][:, 3, :, BALL].any(dim=1).all(), "and starts in a corner"
    assert torch.equal(step.observations[~lost], step.next_observations[~lost])


@pytest.mark.parametrize("sticky", [0.0, 0.1, 1.0])
def test_the_last_action_sticks_as_often_as_it_is_told(sticky):
    task = Breakout(sticky=sticky)
    generator = torch.Generator().manual_seed(0)
    state = task.start(20_000, generator=generator, dtype=torch.float32)
    state["action"] = torch.ones_like(state["action"])  # left
    reached, _, _ = task.advance(state, torch.full((20_000,), 2), generator=generator)
    stuck = (reached["action"] == 1).double().mean().item()
    assert abs(stuck - sticky) <= 4 * np.sqrt(sticky * (1 - sticky) / 20_000)
    assert torch.equal(reached["paddle"] == 3, reached["action"] == 1)


def test_a_probability_above_1_is_refused():
    with pytest.raises(ValueError, match="probability"):
        Breakout(sticky=1.5)
