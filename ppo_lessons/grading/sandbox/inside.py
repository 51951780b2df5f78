"""What runs first inside the sandbox: limits, then a kernel on sockets that are open already.

A file of its own, which is started by its path: it imports nothing of the package, since that is
the students' here. Standard input brings a JSON object:

    key      signs messages
    files    numbers of open files: listening sockets "shell", "iopub", "control", "stdin"
    paths    where modules are looked for first
    more     where they are looked for last, as in the user's own folder of packages
    limits   for `setrlimit`, by name, as "AS"
    output   bytes of text that one message may carry; the rest is cut
    filter   whether this is a sandbox, in which system calls that no answer needs are refused
    parent   number of the process that started this
"""

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
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
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38

# System calls that no answer needs: numbers on x86_64 and on aarch64. They hold memory that is
# counted nowhere, look into other processes, or are seldom used parts of Linux with a history.
CALLS = {
    **{"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271)},
    **{"kcmp": (312, 272), "pidfd_getfd": (438, 438), "perf_event_open": (298, 241)},
    **{"memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194)},
    **{"semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "vmsplice": (278, 75)},
    **{"userfaultfd": (323, 282), "bpf": (321, 280), "io_uring_setup": (425, 425)},
    **{"io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217)},
    **{"request_key": (249, 218), "keyctl": (250, 219), "unshare": (272, 97)},
    **{"setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41)},
    **{"chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429)},
    **{"fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432)},
    **{"fspick": (433, 433), "mount_setattr": (442, 442), "kexec_load": (246, 104)},
    **{"kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273)},
    **{"delete_module": (176, 106), "open_by_handle_at": (304, 265), "syslog": (103, 116)},
    **{"fanotify_init": (300, 262)},
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, number in Linux


class CuttingSession(Session):
    """Cuts text that is too long, so that it never is on its way."""

    longest = 1_000_000

    def send(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, stream: Any, msg_or_type: Any, content: Any = None, *given: Any, **named: Any
    ) -> Any:
        """Send a message as the base class does."""
        if isinstance(msg_or_type, dict):
            msg_or_type = {**msg_or_type, "content": self.cut(msg_or_type.get("content"))}
        content = self.cut(content)
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


def refuse_calls() -> None:
    """Let Linux refuse some system calls from now on, for good; on other machines do nothing."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return
    code = filter_of(*MACHINES[platform.machine()])
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls")


def filter_of(column: int, machine: int) -> bytes:
    """Write the program that looks at each system call: machine, number, and then yes or no."""
    numbers = [row[column] for row in CALLS.values()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    steps = [(load, 0, 0, 4), (equal, 0, len(numbers) + 3, machine), (load, 0, 0, 0)]
    steps.append((at_least, len(numbers) + 1, 0, 0x40000000))  # the same calls by other numbers
    steps += [(equal, len(numbers) - n, 0, number) for n, number in enumerate(numbers)]
    steps += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000 | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def end_with_parent(parent: int) -> None:
    """Die when whoever started this does; where there is no sandbox, nobody else sees to it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it had died already
        sys.exit(1)


def main() -> None:
    """Start the kernel."""
    told = json.load(sys.stdin)
    if not told["filter"]:
        end_with_parent(told["parent"])
    limit(told["limits"])
    if told["filter"]:
        refuse_calls()
    sys.path[:0] = told["paths"]
    sys.path += [each for each in told["more"] if each not in sys.path]
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
    # `quit()` would end the kernel after its cell, and the next question would pay for it
    vars(app.shell)["ask_exit"] = lambda: None
    app.start()


if __name__ == "__main__":
    main()
