"""What the recorded study of Breakout has reached, and that a short run learns the same way."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.breakout import KINDS, mean_return, random_return
from ppo_lessons.envs import BatchedEnvs, Breakout
from ppo_lessons.figures.gpu_run import bricks_struck, pack_boards, unpack_boards
from ppo_lessons.notebook import recorded
from ppo_lessons.training_loop import train

STUDY = recorded("breakout")
FLOOR = 40.0  # bricks a game; the worst of three seeds had 51 when it was recorded


def test_every_seed_stays_above_the_floor_within_its_fifteen_minutes():
    runs = STUDY["flat"]["runs"]
    assert len(runs) == 3
    assert min(run["final_sampled"] for run in runs) > FLOOR
    assert max(run["cpu_seconds"] for run in runs) < 901


def test_a_player_at_random_earns_less_than_a_brick():
    assert STUDY["random_return"] == pytest.approx(random_return(), abs=0.2)
    assert STUDY["random_return"] < 1


def test_curves_go_forward_in_steps_and_seconds():
    for run in STUDY["flat"]["runs"]:
        for over in ("env_steps", "cpu_seconds"):
            assert (np.diff([point[over] for point in run["points"]]) > 0).all()


# --- the recorded game -----------------------------------------------------------------------


def played():
    return unpack_boards(STUDY["flat"]["game"]["boards"])


def test_each_board_of_the_game_has_one_paddle_one_ball_and_one_trail():
    boards = played()
    assert (boards[:, :, :, :3].sum(axis=(1, 2)) == 1).all()
    assert (boards[:, 9, :, 0].sum(axis=1) == 1).all()
    assert not boards[:, 4:, :, 3].any()  # bricks hang below the ceiling


def test_the_game_keeps_the_rules_the_paddle_moves_by_one_and_the_ball_along_diagonals():
    boards = played()
    paddle = boards[:, 9, :, 0].argmax(axis=1)
    assert (abs(np.diff(paddle)) <= 1).all()
    ball = np.array([np.argwhere(board[..., 1])[0] for board in boards])
    trail = np.array([np.argwhere(board[..., 2])[0] for board in boards])
    assert (abs(np.diff(ball, axis=0)) <= 1).all()
    assert (trail[1:] == ball[:-1]).all()


def test_at_most_one_brick_goes_in_a_step():
    struck = bricks_struck(played())
    assert set(np.diff(struck)) <= {0, 1}
    assert struck[-1] > FLOOR / 2


def test_boards_come_back_as_they_were_packed():
    boards = np.random.default_rng(0).random((7, 10, 10, 4)) < 0.3
    assert (unpack_boards(pack_boards(boards)) == boards).all()
    assert not (unpack_boards(pack_boards(boards)) == ~boards).any()


# --- learning --------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_short_run_beats_a_player_at_random_five_times(kind):
    torch.set_num_threads(1)
    config = replace(KINDS[kind].config, total_steps=200_000)
    envs = BatchedEnvs(Breakout(), config.num_envs)
    history = train(config, envs=envs, parts=KINDS[kind].parts)
    assert mean_return(history.networks.policy, seed=3, greedy=False) > 5 * STUDY["random_return"]
