"""The picture of the staircase: what is drawn, and what waits for its lesson."""

import matplotlib.pyplot as plt
import pytest

from ppo_lessons.figures.staircase import staircase
from ppo_lessons.notebook import recorded

STUDY = recorded("staircase")


def lines(picture, panel, row):
    """Dots and bars of one row in one panel: how many dots, and where the bar stands."""
    dots, bar = 0, None
    for line in picture.axes[panel].lines:
        heights = line.get_ydata()
        if len(heights) and abs(sum(heights) / len(heights) - row) < 0.3:
            if line.get_marker() == "o":
                dots = len(heights)
            elif line.get_linestyle() == "-":
                bar = line.get_xdata()[0]
    return dots, bar


@pytest.fixture(scope="module")
def picture():
    drawn = staircase(STUDY, upto="+ GAE")
    yield drawn
    plt.close(drawn)


def test_every_seed_of_a_stair_that_is_reached_has_a_dot(picture):
    assert lines(picture, 0, 0)[0] == 16
    assert lines(picture, 0, 2)[0] == 16
    assert lines(picture, 0, 3) == (0, None), "a later stair only has its name"


def test_seeds_that_were_not_solved_have_no_dot_and_count_in_the_median(picture):
    for row, (name, runs) in enumerate(list(STUDY["runs"].items())[:3]):
        solved = sorted(run["steps_to_solve"] for run in runs if run["steps_to_solve"])
        dots, bar = lines(picture, 1, row)
        assert dots == len(solved)
        if len(solved) <= 8:
            assert bar is None, name
        else:
            assert bar == pytest.approx(solved[8] / 1000), name


def test_an_unknown_stair_is_refused():
    with pytest.raises(ValueError, match="Choose a stair"):
        staircase(STUDY, upto="+ luck")
