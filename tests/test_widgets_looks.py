"""Every widget looks right in a browser: nothing cut, nothing covered, nothing pale.

Its author looks at the pictures:

    PPO_LESSONS_PICTURES=/tmp/pictures python -m pytest tests/test_widgets_looks.py -k picture
"""

import os
from pathlib import Path

import pytest
from browsing import CONTRAST, LOOKS, OVERLAPS, TEACHING

from ppo_lessons.widgets import find_widget

PICTURES = os.environ.get("PPO_LESSONS_PICTURES")
FULL = pytest.mark.full
# Colours move no label, and the projector below has large text too: these are tried less often.
FOR_THE_EYE = () if PICTURES else ("dark", "grey", "large")
LOOKS_TRIED = [pytest.param(look, marks=FULL if look in FOR_THE_EYE else ()) for look in LOOKS]


@pytest.fixture(params=TEACHING)
def made(request):
    """The class of each widget that teaches."""
    return find_widget(request.param)


@pytest.mark.parametrize("look", LOOKS_TRIED)
def test_in_every_picture_no_label_is_cut_covered_or_pale(visit, made, look):
    with visit(made(), **LOOKS[look]) as seen:
        if look == "large":
            seen.button("Large text").click()
            seen.page.mouse.move(0, 0)
        if look == "grey":
            seen.page.add_style_tag(content="html { filter: grayscale(1); }")
        for state in made.STATES:
            seen.open(state)
            assert seen.page.evaluate(OVERLAPS) == [], state
            if look == "light":
                assert seen.page.evaluate(CONTRAST) == [], state  # words 4.5, curves 3 (WCAG AA)
            if PICTURES:
                name = f"{made.NAME}_{state}_{look}.png"
                seen.page.screenshot(path=Path(PICTURES) / name, full_page=True)


@pytest.mark.parametrize("size", [(1280, 720), pytest.param((1600, 900), marks=FULL)])
def test_large_text_fits_a_projector_and_leaves_room_for_the_plot(visit, made, size):
    width, height = size
    with visit(made(), viewport={"width": width, "height": height}) as seen:
        for state in made.STATES:
            seen.open(f"{state}?large")
            assert seen.page.evaluate(OVERLAPS) == [], state
            assert seen.page.evaluate("document.documentElement.scrollHeight") <= height, state
            panels = seen.page.locator(".ppo-panels").bounding_box()
            assert panels["height"] > 0.5 * height, state


def test_words_and_curves_stand_out_in_the_dark_too(visit, made):
    with visit(made(), **LOOKS["dark"]) as seen:
        for state in made.STATES:
            seen.open(state)
            assert seen.page.evaluate(CONTRAST) == [], state


def test_the_theme_of_the_notebook_comes_first(visit):
    with visit(find_widget("clip_region")()) as seen:
        seen.page.evaluate(
            "document.body.classList.remove('ppo-page');"
            "document.body.dataset.jpThemeLight = 'false';"
            "document.body.style.setProperty('--jp-layout-color0', 'rgb(17, 17, 17)')"
        )
        style = "getComputedStyle(document.querySelector('.ppo'))"
        assert seen.page.evaluate(f"{style}.backgroundColor") == "rgb(17, 17, 17)"
        assert seen.page.evaluate(f"{style}.colorScheme") == "dark"
