"""A fixture for the tests of the checks."""

import pytest

from ppo_lessons import progress
from ppo_lessons.checks import desk


@pytest.fixture
def fresh_kernel(monkeypatch):
    """As in a new notebook: no store, nothing tried, no hints given."""
    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    monkeypatch.setattr(desk, "_tried", set())
    monkeypatch.setattr(desk, "_hints_given", {})
    monkeypatch.setattr(progress, "_session", {section: {} for section in progress.SECTIONS})
