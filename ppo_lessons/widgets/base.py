"""What all widgets share: script and style as text, state, static picture, one page, the end.

A widget here is an `anywidget`: a few traits of plain JSON, a script that draws them, and a
picture for places where no script runs.
"""

import base64
import io
import json
import sys
import weakref
from typing import Any, ClassVar

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        "widgets need anywidget, which is not installed. Run: pip install 'ppo-lessons[course]'"
    ) from error

from ppo_lessons.widgets.messages import say
from ppo_lessons.widgets.page import STYLE, page

# Traits that anywidget adds: script, style and the name of the class.
HIDDEN = {"_esm", "_css", "_anywidget_id"}
# Frames of IPython that keep what a cell returned: the copy there would keep a widget alive.
KEPT_RESULTS = ("_", "__", "___")

# The cell that made a widget -> the run of that cell, and the widgets of that run.
_made_in: dict[str, tuple[str, "weakref.WeakSet[Widget]"]] = {}


class Widget(anywidget.AnyWidget):
    """A widget with a name, named states, a sentence and a static twin.

    Subclasses give `NAME`, `STATE` (the traits that make up a state), `STATES` (what the stepping
    goes through) and `sentence()`; `figure()` where there is something to draw.
    """

    NAME: ClassVar[str] = ""
    STATE: ClassVar[tuple[str, ...]] = ()
    STATES: ClassVar[dict[str, dict[str, Any]]] = {}
    # A static picture is compared with nothing and read at this size.
    DOTS_PER_INCH: ClassVar[int] = 110

    _css = STYLE
    language = traitlets.Unicode("en").tag(sync=True)
    large = traitlets.Bool(False).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        _close_former_run(self)

    def state(self) -> dict[str, Any]:
        """Give the state, so that `type(widget)(**widget.state())` is an equal widget."""
        return {name: json.loads(json.dumps(getattr(self, name))) for name in self.STATE}

    def synced(self) -> list[str]:
        """List the traits that the script reads: ours, without those of every widget."""
        names = self.trait_names(sync=True)
        return sorted(set(names) - set(anywidget.AnyWidget.class_trait_names()) - HIDDEN)

    def sentence(self) -> str:
        """Say what the picture shows: the alternative text, and the text of the output."""
        raise NotImplementedError

    def figure(self) -> Any:
        """Draw the static twin, a matplotlib `Figure`; None where text is enough."""
        return None

    def title(self) -> str:
        """Name the widget for people."""
        return say(self.NAME, "title", language=self.language)

    def state_titles(self) -> dict[str, str]:
        """Name the states for people."""
        return {name: say(self.NAME, f"state_{name}") for name in self.STATES}

    def to_html(self) -> str:
        """Write this widget as one page that needs no kernel and no network.

        Returns:
            The page; `#name` behind its address opens a named state.
        """
        return page([self], title=self.title())

    def close(self) -> None:
        """End the widget and its layout, which ipywidgets would keep."""
        layout = self._trait_values.get("layout")
        super().close()
        if layout is not None:
            layout.close()

    def __repr__(self) -> str:
        return self.sentence()

    def _static_parts(self) -> dict[str, str]:
        """Give what is shown where no script runs, by type."""
        picture = self.figure()
        if picture is None:
            return {}
        buffer = io.BytesIO()
        # Software=None: matplotlib would write its version into the file.
        picture.savefig(buffer, format="png", dpi=self.DOTS_PER_INCH, metadata={"Software": None})
        return {"image/png": base64.b64encode(buffer.getvalue()).decode("ascii")}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        plain = self.sentence()
        parts = {"text/plain": plain, **self._static_parts()}
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        about = {"image/png": {"alt": plain}} if "image/png" in parts else {}
        return {**parts, "application/vnd.jupyter.widget-view+json": view}, about


def _close_former_run(widget: Widget) -> None:
    """Close what the same cell made when it ran before; a cell run 50 times leaves one widget."""
    shell = _running_shell()
    if shell is None:
        return
    request = shell.get_parent() or {}
    run = request.get("header", {}).get("msg_id", "")
    code = request.get("content", {}).get("code", "")
    cell = request.get("metadata", {}).get("cellId") or f"code:{code}"
    former_run, widgets = _made_in.get(cell, ("", weakref.WeakSet()))
    if former_run != run:
        for former in list(widgets):
            former.close()
            _forget(shell, former)
        widgets = weakref.WeakSet()
        _made_in[cell] = (run, widgets)
    widgets.add(widget)


def _running_shell() -> Any:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "get_parent") else None


def _forget(shell: Any, widget: Widget) -> None:
    """Take a closed widget out of IPython's memory of results: `Out[3]`, `_3`, `_`."""
    results = shell.user_ns.get("_oh", {})
    for number in [number for number, result in results.items() if result is widget]:
        del results[number]
    for names in (shell.user_ns, shell.user_ns_hidden):
        for name, value in list(names.items()):
            if value is widget and name.startswith("_"):
                del names[name]
    for name in KEPT_RESULTS:
        if getattr(shell.displayhook, name, None) is widget:
            setattr(shell.displayhook, name, None)
