"""What runs first inside the sandbox: limits, then a kernel on sockets that are open already.

A file of its own, which is started by its path: it imports nothing of the package, since that is
the students' here. Standard input brings a JSON object:

    key      signs messages
    files    numbers of open files: listening sockets "shell", "iopub", "control", "stdin"
    paths    where modules are looked for first
    limits   for `setrlimit`, by name, as "AS"
    output   bytes of text that one message may carry; the rest is cut
    filter   whether system calls that no answer needs are refused
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from typing import Any

sys.modules["debugpy"] = None  # type: ignore[assignment]  # nobody debugs here; it starts slowly
import zmq  # noqa: E402  after the line above
from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402
from jupyter_client.session import Session  # noqa: E402
from traitlets.config import Config  # noqa: E402

PORTS = {"shell": 1, "iopub": 2, "control": 3, "stdin": 4}
PR_SET_PDEATHSIG = 1


class CuttingSession(Session):
    """Cuts text that is too long, so that it never is on its way."""

    longest = 1_000_000

    def send(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, stream: Any, msg_or_type: Any, content: Any = None, *given: Any, **named: Any
    ) -> Any:
        """Send a message as the base class does."""
        if isinstance(content, dict):
            content = {key: self.cut(value) for key, value in content.items()}
        return super().send(stream, msg_or_type, content, *given, **named)

    def cut(self, value: Any) -> Any:
        """Shorten strings, in dictionaries and lists too."""
        if isinstance(value, str):
            return value[: self.longest]
        if isinstance(value, dict):
            return {key: self.cut(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.cut(each) for each in value]
        return value


class KernelOnOpenSockets(IPKernelApp):
    """A kernel that binds nothing: whoever started it did so before."""

    files: dict[int, int]

    def init_connection_file(self) -> None:
        """Take no file."""
        self.transport, self.ip = "ipc", "kernel"
        for name, port in PORTS.items():
            setattr(self, f"{name}_port", port)

    def write_connection_file(self, **kwargs: Any) -> None:
        """Write no file."""

    def init_heartbeat(self) -> None:
        """Have none: the process itself is watched."""

    def _try_bind_socket(self, s: Any, port: int) -> int:
        s.setsockopt(zmq.USE_FD, self.files[port])
        s.setsockopt(zmq.SNDHWM, 0)  # what is printed fast is not lost
        s.bind(f"ipc://kernel-{port}")
        return port

    def init_control(self, context: Any) -> None:
        """Leave out the debugger's way back to the shell socket, which has no path here."""
        super().init_control(context)
        with contextlib.suppress(zmq.ZMQError):
            self.debug_shell_socket.disconnect(b"ipc://kernel-1")


def limit(limits: dict[str, int]) -> None:
    """Set limits that no process of this kernel can lift."""
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            now = resource.getrlimit(kind)[1]
            most = most if now == resource.RLIM_INFINITY else min(most, now)
            resource.setrlimit(kind, (most, most))


def end_with_parent() -> None:
    """Die when whoever started this does; where there is no sandbox, nobody else sees to it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main() -> None:
    """Start the kernel."""
    told = json.load(sys.stdin)
    if not told["limits"].get("NPROC"):
        end_with_parent()
    limit(told["limits"])
    sys.path[:0] = told["paths"]
    CuttingSession.longest = told["output"]
    app = KernelOnOpenSockets.instance(
        session=CuttingSession(key=told["key"].encode()),
        kernel_class=IPythonKernel,
        log_level=50,
        config=Config(
            HistoryManager={"enabled": False},
            InteractiveShell={"colors": "nocolor", "cache_size": 0},
        ),
    )
    app.files = {PORTS[name]: number for name, number in told["files"].items()}
    speak = os.dup(2)
    os.set_inheritable(speak, False)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    try:
        app.initialize([])
    except BaseException:
        os.write(speak, traceback.format_exc()[-4000:].encode())
        raise
    os.close(speak)
    app.start()


if __name__ == "__main__":
    main()
