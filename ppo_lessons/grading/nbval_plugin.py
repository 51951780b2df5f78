"""The trusted side of a kernel: a plugin of pytest, on top of nbval.

nbval starts kernels and reads what they send as if they were friends. This puts another class in
the place of its `RunningKernel`: the kernel is started in the sandbox, its messages are taken from
four sockets that are made here, what is too much is cut while it comes, and a kernel that dies is
noticed and replaced. Each outcome is written to a file at once.

It runs in a process of its own, which knows what the cells should print. The kernel does not.
"""

import contextlib
import ctypes
import inspect
import json
import os
import re
import resource
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import nbval.kernel
import nbval.plugin
import pytest
import zmq
from jupyter_client.session import DELIM, Session

CHANNELS = ("shell", "iopub", "control", "stdin")
POLL = 0.5  # seconds between two looks at whether the kernel lives
GRACE = 5.0  # seconds that an interrupted cell has to come to an end
SILENCE = 2.0  # seconds after the reply without a message: its end was lost on the way
STRETCH = 8.0  # a busy processor makes time at most so many times as long
LARGEST = 4_000_000  # bytes of one part of a message; a connection that sends more is closed
OURS = 4_000_000_000  # bytes of memory for the trusted process
QUEUE = 50  # messages that may wait here
SAID = 16_000  # characters of what is kept of a failure, or of what a cell told
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SHOWN = ("stream", "execute_result", "display_data", "error")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class KernelLost(RuntimeError):
    """The kernel died, or was ended because it used too much."""


class NoKernel(RuntimeError):
    """A kernel could not be started: the machine failed, not the student."""


class NotRun(RuntimeError):
    """A cell was left out; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one notebook is to be run; `run.py` writes it.

    Args:
        name: under which its outcomes are reported.
        command: starts the kernel.
        told: what the kernel is told on standard input, without key and sockets.
        roles: "setup", "answer", "tell" or "check" by cell id.
        groups: id of the question that a cell belongs to, by cell id.
        limits: as in `sandbox.Limits`.
    """

    name: str
    command: Sequence[str]
    told: Mapping[str, Any]
    roles: Mapping[str, str]
    groups: Mapping[str, str]
    limits: Mapping[str, Any]


# --- the hooks of pytest -------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file with the plans."""
    parser.addoption("--ppo-batch", metavar="FILE", help="plans of the notebooks, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Put the guarded kernel in the place of nbval's."""
    if strange := changes_of_nbval():
        raise pytest.UsageError("nbval is not the one that this was made for: " + strange)
    file = Path(str(config.getoption("--ppo-batch")))
    told = json.loads(file.read_text("utf-8"))
    plans = {folder: Plan(**plan) for folder, plan in told["plans"].items()}
    adopt()
    limit_ourselves()
    config.pluginmanager.register(Guard(plans, Path(told["report"])), "ppo-guard")


class Guard:
    """The hooks that need the plans.

    Args:
        plans: by the notebook's folder.
        report: file that gets a line of JSON for each thing that happens.
    """

    def __init__(self, plans: Mapping[str, Plan], report: Path):
        self.plans, self.report = plans, report.open("a", encoding="utf-8")
        for place, name, ours in (
            (nbval.plugin, "RunningKernel", self.start),
            (nbval.plugin.IPyNbCell, "format_output_compare", say_that_it_differs),
        ):
            setattr(place, name, ours)

    def start(self, kernel_name: str, cwd: str, startup_timeout: float) -> "GuardedKernel":
        """Start the kernel of the notebook in a folder, as `RunningKernel` would."""
        plan = self.plans[cwd]
        self.say(plan, event="started")
        return GuardedKernel(plan, lambda **news: self.say(plan, **news))

    def say(self, plan: Plan, **news: Any) -> None:
        """Write a line into the report."""
        self.report.write(json.dumps({"name": plan.name, "at": time.time(), **news}) + "\n")
        self.report.flush()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Let only check cells be compared, whatever sources and tags say; skip none."""
        for item in items:
            role = self.plan_of(item).roles[item.cell["id"]]
            item.options = {"check": role == "check", "skip": False, "check_exception": False}

    def plan_of(self, item: Any) -> Plan:
        """Give the plan of a cell's notebook."""
        return self.plans[str(item.path.parent)]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        """See to it that each cell finds a kernel that waits for it."""
        kernel = item.parent.kernel
        kernel.prepare(item, [each for each in item.session.items if each.parent is item.parent])
        try:
            return (yield)
        finally:
            kernel.finish()
            item.parent.timed_out = False  # nbval would expect all cells after it to fail

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        """Write down what became of a cell."""
        report = yield
        if call.when == "call" or (call.when == "setup" and not report.passed):
            cell = item.cell["id"]
            state, said = report.outcome, ""
            if call.excinfo is not None:
                state, said = outcome_of(call.excinfo.value)
            elif self.plan_of(item).roles[cell] == "tell":
                said = printed(item.test_outputs)
            self.say(self.plan_of(item), event="cell", cell=cell, state=state, said=said[:SAID])
        return report


def outcome_of(error: BaseException) -> tuple[str, str]:
    """Say what became of a cell that did not pass."""
    if isinstance(error, NotRun):
        return error.args[1], error.args[0]
    if isinstance(error, nbval.plugin.NbCellError):
        if str(error).startswith("Cell outputs differ"):
            return "failed", "It printed something else."
        return "failed", ESCAPES.sub("", error.inner_traceback or str(error)).strip("\n")
    return "failed", str(error)


def printed(outputs: Sequence[Mapping[str, Any]] | None) -> str:
    """Give what a cell printed."""
    return "".join(each["text"] for each in outputs or () if each["output_type"] == "stream")


def say_that_it_differs(cell: Any, key: str, left: Any, right: Any) -> None:
    """Neither compare long texts line by line, nor write down what was expected."""
    cell.comparison_traceback.append("the texts differ")


def changes_of_nbval() -> str:
    """Say which of the things that are used here nbval no longer has; empty if all are there."""
    wanted: dict[str, tuple[Any, str]] = {
        "RunningKernel": (nbval.kernel.RunningKernel.__init__, "self kernel_name cwd timeout"),
        "await_reply": (nbval.kernel.RunningKernel.await_reply, "self msg_id timeout"),
        "format_output_compare": (
            nbval.plugin.IPyNbCell.format_output_compare,
            "self key left right",
        ),
    }
    wrong = [
        name
        for name, (function, names) in wanted.items()
        if len(inspect.signature(function).parameters) != len(names.split())
    ]
    used = {
        "start of a kernel": (nbval.plugin.IPyNbFile.setup, ["RunningKernel(", "cwd=str("]),
        "run of a cell": (
            nbval.plugin.IPyNbCell.runtest,
            ["options['skip']", "await_reply(", "interrupt()", "options['check']", "unrun"],
        ),
        "comparison": (nbval.plugin.IPyNbCell.compare_outputs, ["format_output_compare("]),
    }
    for name, (function, words) in used.items():
        source = inspect.getsource(function)
        wrong += [f"{name} ({word})" for word in words if word not in source]
    return ", ".join(wrong)


# --- one kernel ----------------------------------------------------------------------------


class GuardedKernel:
    """What nbval calls a running kernel, with limits, and with others in reserve.

    Args:
        plan: how its notebook is to be run.
        say: writes news into the report.
    """

    language = "python"

    def __init__(self, plan: Plan, say: Callable[..., None]):
        self.plan, self.say, self.limits = plan, say, plan.limits
        self.restarts = self.timeouts = 0
        self.used = 0.0  # seconds of cells from the first answer on
        self.given_up: tuple[str, str] | None = None  # why, and the state of cells that are left
        self.lost: set[str] = set()  # cells in which a kernel was lost
        self.session = Session(key=secrets.token_hex(16).encode())
        self.wire: Wire | None = None
        self.begin("", self.limits["start"])
        self.launch()

    # what happens around a cell

    def prepare(self, item: Any, items: Sequence[Any]) -> None:
        """Make ready for a cell.

        Args:
            item: the cell.
            items: all cells of its notebook.

        Raises:
            NotRun: if it is left out.
        """
        cell = item.cell["id"]
        if self.given_up:
            raise NotRun(*self.given_up)
        group = self.plan.groups.get(cell)
        if group and any(self.plan.groups.get(each) == group for each in self.lost):
            raise NotRun("The kernel had died in an earlier cell of this question.", "failed")
        while not self.is_alive():
            self.revive(items[: items.index(item)])
        self.begin(cell, self.seconds_for(cell))

    def begin(self, cell: str, seconds: float) -> None:
        """Start the clock of a cell."""
        self.cell, self.seconds = cell, seconds
        self.messages: deque[dict[str, Any]] = deque()
        self.kept = self.count = 0
        self.asked, self.replied, self.heard, self.idle = "", 0.0, 0.0, True
        self.clock = Clock(self.wire.main if self.wire else None)

    def seconds_for(self, cell: str) -> float:
        """How long a cell may take.

        Raises:
            NotRun: if all the time is used up.
        """
        if self.plan.roles[cell] == "setup":
            return self.limits["start"]
        left = self.limits["notebook"] - self.used
        if left <= 0:
            self.give_up("The time of the notebook was over.", "absent")
        return min(self.limits["cell"], left)

    def give_up(self, reason: str, state: str) -> None:
        """Leave out all cells that are left.

        Raises:
            NotRun: always.
        """
        self.given_up = (reason, state)
        self.stop()
        raise NotRun(reason, state)

    def finish(self) -> None:
        """Stop the clock of a cell, and end a kernel that is not through with it."""
        if self.plan.roles.get(self.cell) != "setup":
            self.used += self.clock.passed()
        if not self.idle or not self.is_alive():
            self.lose()
        if self.timeouts >= self.limits["timeouts"] and not self.given_up:
            self.given_up = ("Too many cells had run out of time.", "absent")

    def lose(self) -> None:
        """Note that the kernel was lost in this cell."""
        self.stop()
        if self.cell and self.cell not in self.lost:
            self.lost.add(self.cell)
            self.say(event="lost", cell=self.cell)

    def revive(self, before: Sequence[Any]) -> None:
        """Start a fresh kernel, and run in it what setup and answers hold.

        Cells in which a kernel was lost are left out. If it is lost again, it is not alive then.

        Raises:
            NotRun: if there were too many already.
        """
        if self.restarts >= self.limits["restarts"]:
            self.give_up("Too many kernels had died.", "failed")
        self.restarts += 1
        self.begin("", self.limits["start"])
        self.launch()
        for each in before:
            cell = each.cell["id"]
            if self.plan.roles[cell] in ("setup", "answer") and cell not in self.lost:
                self.begin(cell, self.seconds_for(cell))
                with contextlib.suppress(KernelLost):
                    self.replay(each.cell.source)
                self.finish()
                if not self.is_alive():
                    return

    def replay(self, source: str) -> None:
        """Run a cell without looking at what it shows."""
        asked = self.execute_cell_input(source)
        try:
            self.await_reply(asked)
        except Empty:
            self.interrupt()
        with contextlib.suppress(Empty):
            self.await_idle(asked, GRACE)

    # what nbval calls

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send a cell; gives the id of the message."""
        content = {
            **{"code": cell_input, "silent": False, "store_history": False},
            **{"user_expressions": {}, "allow_stdin": False, "stop_on_error": False},
        }
        return self.ask("shell", "execute_request", content)

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait until a cell has run, and take in what it shows meanwhile.

        Raises:
            Empty: if its time is over.
            KernelLost: if the kernel is.
        """
        while not self.replied:
            if self.clock.passed() >= self.seconds:
                raise Empty
            self.pump(POLL)

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """Give the next message of what a cell shows.

        Raises:
            Empty: if there is none in time.
            KernelLost: if the kernel is.
        """
        over = time.monotonic() + (GRACE if timeout is None else timeout)
        over = min(over, self.clock.start + STRETCH * self.seconds + 2 * GRACE)
        while not self.messages:
            now = time.monotonic()
            if self.replied and now - max(self.replied, self.heard) > SILENCE:
                self.stop()  # what it sent was so much that the connection was closed
                raise KernelLost("The kernel fell silent.")
            if now >= over:
                raise Empty
            self.pump(min(POLL, over - now))
        message = self.messages.popleft()
        content = message["content"]
        if message["msg_type"] == "status":
            self.idle = True
        elif message["msg_type"] == "stream":
            content["text"] = "".join(content["text"])
        return message

    def await_idle(self, parent_id: str, timeout: float) -> None:
        """Take messages until the cell's end.

        Raises:
            Empty: if it does not come in time.
            KernelLost: if the kernel is lost.
        """
        while not self.idle:
            self.get_message("iopub", timeout)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.wire is not None and self.wire.process.poll() is None

    def interrupt(self) -> None:
        """Ask the kernel to let go of a cell whose time is over."""
        self.timeouts += 1
        self.say(event="timeout", cell=self.cell)
        self.send("control", "interrupt_request", {})

    def stop(self) -> None:
        """End the kernel and all that it started."""
        if self.wire is not None:
            self.wire.close()
            self.wire = None

    # messages

    def launch(self) -> None:
        """Start a kernel, and wait until it answers and is heard.

        Raises:
            NoKernel: if it does not.
        """
        try:
            self.wire = Wire(self.plan, self.session.key.decode())
            self.clock = Clock(None)
            while self.clock.passed() < self.limits["start"]:
                self.ask("shell", "kernel_info_request", {})
                with contextlib.suppress(Empty):
                    self.await_reply(self.asked)
                    self.await_idle(self.asked, 1.0)
                    self.wire.settle()
                    return
            problem = "it did not answer in time"
        except (KernelLost, OSError) as error:
            problem = str(error)
        self.stop()
        self.say(event="no kernel", said=problem[-SAID:])
        raise NoKernel(problem)

    def ask(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        """Send a message whose answer is awaited; gives its id."""
        self.replied, self.idle = 0.0, False
        self.asked = self.send(channel, kind, content)
        return self.asked

    def send(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        """Send a message; gives its id."""
        message = self.session.msg(kind, content)
        parts = self.session.serialize(message)
        with contextlib.suppress(zmq.Again):  # a kernel that takes nothing runs out of time
            if self.wire is not None:
                self.wire.sockets[channel].send_multipart(parts, flags=zmq.NOBLOCK)
        return message["header"]["msg_id"]

    def pump(self, seconds: float) -> None:
        """Take what the kernel sends.

        Raises:
            KernelLost: if it died, or was ended since it used too much.
        """
        if self.wire is None:
            raise KernelLost("there is no kernel")
        for channel in self.wire.ready(seconds):
            for parts in self.wire.receive(channel):
                self.heard = time.monotonic()
                with contextlib.suppress(Exception):  # whatever is no message is nothing
                    self.take(channel, parts)
        if problem := self.wire.problem(self.limits["resident"]):
            problem = f"{problem} {self.wire.said()}".strip()
            self.stop()
            raise KernelLost(problem)

    def take(self, channel: str, parts: list[bytes]) -> None:
        """Look at a message, and keep what is of use."""
        _, head, parent, _, content = parts[parts.index(DELIM) + 1 :][:5]
        if len(head) + len(parent) > 20_000:
            return
        kind, about = json.loads(head)["msg_type"], json.loads(parent).get("msg_id")
        if about != self.asked:
            return
        if channel == "shell":
            if kind in ("execute_reply", "kernel_info_reply"):
                self.replied = time.monotonic()
        elif channel == "iopub" and kind == "status":
            if json.loads(content)["execution_state"] == "idle":
                self.messages.append(end_of(self.asked))
        elif channel == "iopub" and kind in SHOWN and self.left() > 0:
            self.keep(kind, json.loads(content))

    def left(self) -> int:
        """How many characters this cell may still show."""
        if self.count >= self.limits["messages"]:
            return 0
        return max(self.limits["output"] - self.kept, 0)

    def keep(self, kind: str, content: Mapping[str, Any]) -> None:
        """Keep what a cell shows, until it is too much; then it is cut."""
        plain: dict[str, Any]
        if kind == "stream":
            if content["name"] != "stdout":  # warnings are nobody's answer
                return
            text, last = self.cut(content["text"]), self.messages[-1] if self.messages else None
            if last is not None and last["msg_type"] == "stream":
                last["content"]["text"].append(text)
                return
            plain = {"name": "stdout", "text": [text]}
        elif kind == "error":
            named = {name: self.cut(content[name])[:2000] for name in ("ename", "evalue")}
            plain = {**named, "traceback": [self.cut(line) for line in content["traceback"][:200]]}
        else:
            shown = {str(name)[:99]: self.cut(str(each)) for name, each in content["data"].items()}
            plain = {"data": shown, "metadata": {}, "execution_count": None}
        self.count += 1
        parent = {"msg_id": self.asked}
        self.messages.append({"msg_type": kind, "parent_header": parent, "content": plain})

    def cut(self, text: str) -> str:
        """Take as much of a text as is left."""
        text = text[: self.left()]
        self.kept += len(text)
        return text


def end_of(asked: str) -> dict[str, Any]:
    """Make the message that says that a cell is through."""
    content = {"execution_state": "idle"}
    return {"msg_type": "status", "parent_header": {"msg_id": asked}, "content": content}


class Clock:
    """Seconds since it was made, less those in which a process, or ours, waited for a processor.

    Ours reads what the other one says: where it has to wait, a kernel that prints much waits too.

    Args:
        process: its number; None if only the clock on the wall counts.
    """

    def __init__(self, process: int | None):
        self.process, self.start = process, time.monotonic()
        self.before = self.waited()

    def waited(self) -> float:
        """Seconds for which the two have been ready to run, and did not."""
        if self.process is None:
            return 0.0
        return sum(waited_by(number) for number in (self.process, os.getpid()))

    def passed(self) -> float:
        """Seconds that count; at least an eighth of those that have passed."""
        wall = time.monotonic() - self.start
        return max(wall - max(self.waited() - self.before, 0.0), wall / STRETCH)


def waited_by(process: int) -> float:
    """Seconds for which a process has been ready to run, and did not; 0 if that is not known."""
    try:
        text = Path(f"/proc/{process}/schedstat").read_text("ascii")
        return int(text.split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Wire:
    """A kernel's process, and the four sockets to it.

    The sockets are made here, in a folder that nobody else can open. The kernel inherits them, so
    that it needs no folder in common with us. Its process group is ours.

    Args:
        plan: how it is started.
        key: signs messages.
    """

    context: zmq.Context[Any] | None = None

    def __init__(self, plan: Plan, key: str):
        self.folder = tempfile.TemporaryDirectory(prefix="k-")
        self.main: int | None = None
        self.looked, self.spoken = 0.0, b""
        listening = {name: self.listen(name) for name in CHANNELS}
        files = {name: each.fileno() for name, each in listening.items()}
        self.process = subprocess.Popen(
            list(plan.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=list(files.values()),
        )
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        with contextlib.suppress(OSError), self.process.stdin as told:
            told.write(
                json.dumps(
                    {**plan.told, "key": key, "files": files, "parent": os.getpid()}
                ).encode()
            )
        for each in listening.values():
            each.close()
        self.own = resident(os.getpid())
        Wire.context = Wire.context or zmq.Context()
        self.sockets = {name: self.connect(Wire.context, name) for name in CHANNELS[:3]}
        self.poller = zmq.Poller()
        for each in self.sockets.values():
            self.poller.register(each, zmq.POLLIN)

    def listen(self, name: str) -> socket.socket:
        """Make a socket that a kernel can take over."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(f"{self.folder.name}/{name}")
        made.listen(8)
        return made

    def connect(self, context: "zmq.Context[Any]", name: str) -> "zmq.Socket[Any]":
        """Connect to a kernel's socket."""
        made = context.socket(zmq.SUB if name == "iopub" else zmq.DEALER)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.RCVHWM, QUEUE)
        made.setsockopt(zmq.MAXMSGSIZE, LARGEST)
        if name == "iopub":
            made.setsockopt(zmq.SUBSCRIBE, b"")
        made.connect(f"ipc://{self.folder.name}/{name}")
        return made

    def settle(self) -> None:
        """Note which process the kernel itself is: the last of those that started each other."""
        self.main = family(self.process.pid)[-1]

    def ready(self, seconds: float) -> list[str]:
        """List the channels that have something to say, at the latest after some seconds."""
        found = dict(self.poller.poll(int(max(seconds, 0.0) * 1000)))
        return [name for name, each in self.sockets.items() if each in found]

    def receive(self, channel: str) -> Iterator[list[bytes]]:
        """Take messages, a few at a time."""
        with contextlib.suppress(zmq.Again):
            for _ in range(QUEUE):
                yield self.sockets[channel].recv_multipart(zmq.NOBLOCK)

    def problem(self, most: int) -> str:
        """Say why this kernel is at its end; empty if it is not.

        Args:
            most: bytes that its processes may hold together.
        """
        now = time.monotonic()
        if now - self.looked < POLL / 2:
            return ""
        self.looked = now
        if self.process.poll() is not None:
            return "The kernel died."
        if held(family(self.process.pid), most) > most:
            return "The kernel was ended: it used too much memory."
        if resident(os.getpid()) > self.own + 2 * QUEUE * LARGEST:
            return "The kernel was ended: it sent too much."
        return ""

    def said(self) -> str:
        """Give what was said before the kernel ran, as by a sandbox that could not be made."""
        assert self.process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            self.spoken += self.process.stderr.read(4000) or b""
        return self.spoken[-2000:].decode(errors="replace").strip()

    def close(self) -> None:
        """End the kernel and all that it started, and wait until nothing of it is left."""
        over = time.monotonic() + GRACE
        while (members := family(os.getpid())[1:]) and time.monotonic() < over:
            for member in members:
                with contextlib.suppress(OSError):
                    os.kill(member, signal.SIGKILL)
            self.process.poll()
            with contextlib.suppress(ChildProcessError):  # what it left behind is ours now
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.005)
        for each in self.sockets.values():
            each.close()
        for stream in (self.process.stdin, self.process.stderr):
            if stream is not None:
                stream.close()
        self.folder.cleanup()


def family(process: int) -> list[int]:
    """List a process and all that it started, each after its parent."""
    found = [process]
    for member in found:
        with contextlib.suppress(OSError, ValueError):
            for task in Path(f"/proc/{member}/task").iterdir():
                found += [int(word) for word in (task / "children").read_text("ascii").split()]
    return found


def resident(process: int) -> int:
    """Bytes of memory that a process has for itself; 0 if that can't be told."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text("ascii").split()
        return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def held(processes: Sequence[int], most: int) -> int:
    """Bytes of memory that some processes have together; exact only if it is more than `most`.

    Copies of a process share what none of them has changed. To take that into account takes time.
    """
    upper = sum(map(resident, processes))
    return upper if upper <= most else sum(map(share, processes))


def share(process: int) -> int:
    """Bytes of a process, where those that n processes share count a n-th."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text("ascii")
        return 1024 * int(text.split("Pss:")[1].split()[0])
    except (OSError, ValueError, IndexError):
        return resident(process)


def limit_ourselves() -> None:
    """Fail rather than take all memory; the kernels lift this again to what is theirs."""
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = OURS if most == resource.RLIM_INFINITY else min(OURS, most)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def adopt() -> None:
    """Become the parent of all that a kernel leaves behind, so that it can be found and ended.

    And end with the grader itself, whatever ends that: nothing may run on unattended.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
