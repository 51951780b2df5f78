"""How is my run doing? Its curves, while it trains: `train(config, on_iteration=board)`.

Messages to the page flow while a cell is busy; there are at most ten a second. What is kept of a
long run is thinned here, and nothing is printed or drawn from another thread.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from ppo_lessons.figures.training_loop import diagnostics
from ppo_lessons.notebook import Pace, line_of
from ppo_lessons.training_loop import PPOConfig
from ppo_lessons.widgets.base import Widget
from ppo_lessons.widgets.messages import say

METRICS = (
    *("env_steps", "episode_return", "kl_k3", "fraction_outside", "fraction_zero_gradient"),
    *("entropy", "value_loss", "ev_lambda", "ev_monte_carlo"),
)
MOST_POINTS = 2000  # of all metrics together
MOST_ROWS = MOST_POINTS // len(METRICS)


def thinned(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Keep the rows of a run that are drawn: every one, every second, every fourth ...

    Args:
        rows: of a history, from the first iteration on.

    Returns:
        A list for each of `METRICS`, at most `MOST_ROWS` long, the newest row last; numbers have
        four significant digits, except the environment steps.
    """
    stride = 1
    while (len(rows) - 1) // stride + 2 > MOST_ROWS:
        stride *= 2  # so that a point that is drawn stays where it is, or goes
    kept = [*rows[: len(rows) - 1 : stride], *rows[-1:]]
    points = {name: [_short(row.get(name)) for row in kept] for name in METRICS}
    return points | {"env_steps": [row["env_steps"] for row in kept]}


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.4g}")


class LiveDashboard(Widget):
    """Show a run while it trains.

        board = LiveDashboard(config)
        history = train(config, on_iteration=board)

    It appears with the first iteration, or where it is displayed before. Given to several runs, it
    shows the newest. In a terminal it prints a line instead, as `Watch` does.

    Args:
        config: of the run that will come; only its length is used, until the run has begun.
        pace: says when to send.
    """

    NAME = "live_dashboard"

    points = traitlets.Dict().tag(sync=True)
    now = traitlets.Dict().tag(sync=True)

    def __init__(
        self, config: PPOConfig | None = None, *, pace: Pace | None = None, **state: Any
    ) -> None:
        self._stop_listening: Callable[[], None] = lambda: None
        super().__init__(**state)
        config = config or PPOConfig()
        self._pace = pace or Pace()
        self._rows: Sequence[Mapping[str, Any]] = []
        self._sent = self._pictured = 0
        self._handle: Any = None
        self._stop_listening = _after_each_cell(self)
        self.points = thinned([])
        self.now = {
            "iteration": 0,
            "num_iterations": config.num_iterations,
            "total_steps": config.num_iterations * config.batch_size,
            "speed": 0,
            "running": False,
        }

    def __call__(self, state: Any) -> None:
        """Take the newest row of a run, a `TrainState`, and show it if it is time."""
        self._rows = state.history.rows
        if not self._pace.due(state):
            return
        total = state.config.num_iterations * state.config.batch_size
        self._tell(
            num_iterations=state.config.num_iterations,
            total_steps=total,
            speed=round(self._pace.steps_per_second),
            running=state.iteration < state.config.num_iterations,
        )
        if _in_kernel() is None:
            print(line_of(state, speed=self._pace.steps_per_second))
        elif self._handle is None:
            self._ipython_display_()

    def _tell(self, **changes: Any) -> None:
        """Tell the page everything in one message."""
        with self.hold_sync():
            self.points = thinned(self._rows)
            self.now = {**self.now, **changes, "iteration": len(self._rows)}
        self._sent = len(self._rows)

    def finish(self) -> None:
        """Show the last row and put the static picture in place, after a cell has ended.

        A run that was interrupted may have ended between two messages.
        """
        if self.now["running"] or self._sent != len(self._rows):
            self._tell(running=False)
        if self._handle is not None and self._pictured != len(self._rows):
            self._pictured = len(self._rows)
            parts, about = self._repr_mimebundle_()
            self._handle.update(parts, raw=True, metadata=about)

    def sentence(self) -> str:
        """Say how long the run is, and nothing that depends on the machine."""
        return say(self.NAME, "sentence", language=self.language, number=len(self._rows))

    def figure(self) -> Any:
        """Draw the static twin: the six panels."""
        points = thinned(self._rows)
        return diagnostics(points["env_steps"], points)

    def close(self) -> None:
        """End the widget."""
        self._stop_listening()
        super().close()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        parts, about = self._repr_mimebundle_()
        self._pictured = len(self._rows)
        self._handle = display(parts, raw=True, metadata=about, display_id=True)


def _in_kernel() -> Any:
    """Give the running IPython, if there is one."""
    import sys

    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _after_each_cell(board: LiveDashboard) -> Callable[[], None]:
    """Call `finish` whenever a cell ends, also one that was interrupted; give what ends that."""
    shell = _in_kernel()
    if shell is None:
        return lambda: None
    reference = weakref.ref(board)

    def ended(*_: Any) -> None:
        alive = reference()
        if alive is not None:
            alive.finish()

    shell.events.register("post_run_cell", ended)

    def stop() -> None:
        if ended in shell.events.callbacks["post_run_cell"]:
            shell.events.unregister("post_run_cell", ended)

    weakref.finalize(board, stop)
    return stop
