"""What all widgets share: script and style as text, state, static picture, one page, the end.

A widget here is an `anywidget`: a few traits of plain JSON, a script that draws them, and a
picture for places where no script runs.
"""

import base64
import io
import json
import sys
import weakref
from dataclasses import dataclass
from typing import Any, ClassVar, Self

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        "widgets need anywidget, which is not installed. Run: pip install 'ppo-lessons[course]'"
    ) from error

from ppo_lessons.progress import predict
from ppo_lessons.widgets.messages import say
from ppo_lessons.widgets.page import STYLE, page, script_of

# Traits that anywidget adds: script, style and the name of the class.
HIDDEN = {"_esm", "_css", "_anywidget_id"}
# Frames of IPython that keep what a cell returned: the copy there would keep a widget alive.
KEPT_RESULTS = ("_", "__", "___")

# The cell that made a widget -> the run of that cell, and the widgets of that run.
_made_in: dict[str, tuple[str, "weakref.WeakSet[Widget]"]] = {}


@dataclass(frozen=True)
class Drag:
    """What the benchmark drags, and how far.

    Args:
        state: name of the state in which it starts.
        handle: selector of the handle, a `.ppo-handle` or an input of type range.
        start: first place of the pointer, as a fraction of the panel (of the input's width).
        end: last place.
        along: "x" from left to right or "y" from bottom to top.
        index: which of the handles that the selector finds.
        values: how many different values the 50 places give.
    """

    state: str
    handle: str
    start: float
    end: float
    along: str = "x"
    index: int = 0
    values: int = 50


class Widget(anywidget.AnyWidget):
    """A widget with a name, named states, a sentence and a static twin.

    Subclasses give `NAME`, `STATE` (the traits that make up a state), `STATES` (what the stepping
    goes through; each names every trait of `STATE`) and `sentence()`; `figure()` where there is
    something to draw; `numbers()` for what the script computes, too; `DRAGS` where a hand moves
    something; `PARTS` if the script is more than `<NAME>.js`.
    """

    NAME: ClassVar[str] = ""
    STATE: ClassVar[tuple[str, ...]] = ()
    STATES: ClassVar[dict[str, dict[str, Any]]] = {}
    PARTS: ClassVar[tuple[str, ...]] = ()
    DRAGS: ClassVar[tuple[Drag, ...]] = ()
    # A static picture is compared with nothing and read at this size.
    DOTS_PER_INCH: ClassVar[int] = 110

    _css = STYLE
    language = traitlets.Unicode("en").tag(sync=True)
    large = traitlets.Bool(False).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init_subclass__(cls, **options: Any):
        # anywidget makes a class for each instance, too: those take the script of theirs.
        if cls.__dict__.get("NAME"):
            cls._esm = script_of(cls.NAME, cls.STATES, parts=cls.PARTS or (cls.NAME,))
        super().__init_subclass__(**options)

    def __init__(self, **state: Any):
        if unknown := [name for name in state if not self.has_trait(name)]:
            raise ValueError(
                f"{type(self).__name__} got {', '.join(unknown)}; expected some of "
                f"{', '.join(self.settings())}"
            )
        super().__init__(**state)
        _close_former_run(self)

    @classmethod
    def at(cls, name: str, **changes: Any) -> Self:
        """Open a named state.

        Args:
            name: one of `STATES`.
            changes: traits that differ from it.

        Returns:
            The widget.

        Raises:
            ValueError: if there is no such state.
        """
        if name not in cls.STATES:
            raise ValueError(
                f"{cls.__name__} has no state {name!r}; its states are {', '.join(cls.STATES)}"
            )
        return cls(**{**cls.STATES[name], **changes})

    @classmethod
    def settings(cls) -> list[str]:
        """List what may be given: the traits of the state, and those of every widget."""
        return [*cls.STATE, "large", "language"]

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

    def numbers(self) -> dict[str, Any]:
        """Compute what the script's `compute` must give for the same state, to 1e-12."""
        return {}

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

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the page sends; what is refused is said on the page, not in a log."""
        try:
            super().set_state(sync_data)
        except Exception as problem:
            self.error = str(problem)
        else:
            self.error = ""

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


class TeachingWidget(Widget):
    """A widget that asks for a guess before it reveals.

    Subclasses put "guess" and "revealed" into `STATE`, give the trait `guess` (a `Number`,
    `Whole` or `Choice` with the default None), `GUESS_UNIT` and `answer`.
    """

    GUESS_UNIT: ClassVar[str] = ""

    guess = traitlets.Any(None, allow_none=True).tag(sync=True)
    revealed = traitlets.Bool(False).tag(sync=True)
    keep_as = traitlets.Unicode("")

    @classmethod
    def settings(cls) -> list[str]:
        """List what may be given: the traits of the state, `keep_as`, those of every widget."""
        return [*super().settings(), "keep_as"]

    @property
    def answer(self) -> Any:
        """What the guess is compared with."""
        raise NotImplementedError

    @traitlets.observe("guess", "revealed")
    def _keep_guess(self, _: Any) -> None:
        # May run on another thread while a cell is busy: it stores, and touches nothing else.
        if self.keep_as and self.revealed and self.guess is not None:
            predict(self.keep_as, self.guess, unit=self.GUESS_UNIT)


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
