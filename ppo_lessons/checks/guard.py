"""How is code of a learner called, so that nothing it does outlives the call?

`state_kept` puts global state back, `limited` ends what takes too long, `silent` swallows prints.
"""

import builtins
import contextlib
import ctypes
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch


class OutOfTime(BaseException):
    """The learner's code took longer than it may; no `except Exception` of theirs holds it."""


class Interrupted(BaseException):
    """The reader pressed stop."""


class Sink(io.TextIOBase):
    """A stream that forgets what is written to it."""

    def write(self, text: str, /) -> int:
        """Take text and keep nothing."""
        return len(text)

    def writable(self) -> bool:
        """Say yes."""
        return True


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Hide what is printed or warned about inside."""
    streams = contextlib.redirect_stdout(Sink()), contextlib.redirect_stderr(Sink())
    with streams[0], streams[1], warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- global state --------------------------------------------------------------------------


@contextlib.contextmanager
def state_kept(*namespaces: dict[str, Any]) -> Iterator[None]:
    """Put global state back at the end, whatever happened inside.

    Args:
        *namespaces: dictionaries of names, as a function's globals; names deleted from them come
            back.
    """
    states = [(load, save()) for save, load in _STATES]
    own = [(space, dict(space)) for space in namespaces]
    try:
        with names_kept():
            yield
    finally:
        for space, before in own:
            for name, value in before.items():
                space.setdefault(name, value)
        for load, state in states:
            load(state)


@contextlib.contextmanager
def names_kept() -> Iterator[None]:
    """Undo what is done inside to the names of `builtins`, `torch` and `torch.Tensor`.

    Code of a learner is called within, so that the lines after it can rely on `len`.
    """
    modules = [(space, _copy(space)) for space in (_BUILTINS, torch.__dict__)]
    methods = dict(vars(torch.Tensor))
    try:
        yield
    finally:  # nothing that could be missing now is called here
        for space, before in modules:
            for name in before:
                if space.get(name, _ABSENT) is not before[name]:
                    space[name] = before[name]
        now = torch.Tensor.__dict__
        if now.keys() != methods.keys():
            for name in [name for name in now if name not in methods]:
                _delete(torch.Tensor, name)
        for name in methods:
            if now.get(name, _ABSENT) is not methods[name]:
                _set(torch.Tensor, name, methods[name])


_ABSENT = object()
_BUILTINS = builtins.__dict__
_copy, _set, _delete = dict.copy, type.__setattr__, type.__delattr__


def _numpy_state() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random.get_state()


def _set_numpy_state(state: Any) -> None:
    if state is not None:
        sys.modules["numpy"].random.set_state(state)


def _environment() -> dict[str, str]:
    return dict(os.environ)


def _set_environment(before: dict[str, str]) -> None:
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


def _set_filters(filters: list[Any]) -> None:
    if warnings.filters != filters:
        warnings.filters[:] = filters  # pyright: ignore[reportIndexIssue]
        warnings._filters_mutated()  # pyright: ignore[reportAttributeAccessIssue]


def _set_streams(streams: tuple[Any, Any]) -> None:
    sys.stdout, sys.stderr = streams


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return None


def _set_folder(folder: str | None) -> None:
    if folder is not None and folder != _folder():
        os.chdir(folder)


def _set_threads(count: int) -> None:
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def _set_anomaly(mode: bool) -> None:
    torch.autograd.set_detect_anomaly(mode)


def _set_device(device: torch.device) -> None:
    if torch.get_default_device() != device:
        torch.set_default_device(device)


# what to write down before, and how to put it back
_STATES: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_device, _set_device),
    (torch.get_rng_state, torch.set_rng_state),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, _set_threads),
    (torch.is_anomaly_enabled, _set_anomaly),
    (_numpy_state, _set_numpy_state),
    (random.getstate, random.setstate),
    (lambda: list(warnings.filters), _set_filters),
    (lambda: (sys.stdout, sys.stderr), _set_streams),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (_environment, _set_environment),
    (_folder, _set_folder),
)


# --- time ----------------------------------------------------------------------------------


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` inside when the time is over.

    A timer signal on the main thread, which also ends a sleep; elsewhere, and on Windows, an
    exception that is sent to this thread, which ends loops.

    Args:
        seconds: how long the body may take.

    Raises:
        OutOfTime: when it is over.
        Interrupted: when the reader stops it; a `KeyboardInterrupt` is then the code's own.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and hasattr(signal, "setitimer"):
        with _limited_by_signal(seconds):
            yield
    else:
        with _limited_by_thread(seconds):
            yield


@contextlib.contextmanager
def _limited_by_signal(seconds: float) -> Iterator[None]:
    over = False

    def on_alarm(number: int, frame: FrameType | None) -> None:
        if not over:
            raise OutOfTime

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    handlers = {
        number: signal.signal(number, handler)
        for number, handler in ((signal.SIGALRM, on_alarm), (signal.SIGINT, on_interrupt))
    }
    start = time.monotonic()
    # again and again: a bare `except:` may swallow the first
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        while not over:
            with contextlib.suppress(OutOfTime):  # it may come before this block stops the timer
                over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if left:  # somebody's timer was running; it goes on
            passed = time.monotonic() - start
            signal.setitimer(signal.ITIMER_REAL, max(left - passed, 0.001), interval)


@contextlib.contextmanager
def _limited_by_thread(seconds: float) -> Iterator[None]:
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    finished = threading.Event()
    fired = over = False

    def send() -> None:
        nonlocal fired
        wait = seconds
        while not finished.wait(wait):
            with lock:
                if over:
                    return
                fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTime))
            wait = 0.2

    threading.Thread(target=send, daemon=True).start()
    try:
        yield
    finally:
        while True:  # an exception may be under way to this very block
            try:
                with lock:
                    over = True
                finished.set()
                if fired:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
                break
            except OutOfTime:
                continue
