"""Attacks on what kernel and grader say to each other: forged, malformed and huge messages."""

import textwrap

from submissions import (
    ANY,
    ESCAPED,
    STUCK,
    attack,
)

# --- messages of the kernel ----------------------------------------------------------------

SENDS = """
kernel = get_ipython().kernel
def _send(kind, content, parent=None):
    parent, ident = parent or kernel.get_parent("shell"), kernel._topic(kind)
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, ident=ident)
"""


def sending(code: str) -> str:
    """Put the function that sends before code."""
    return SENDS + textwrap.dedent(code)


attack(
    "messages_forged",
    "before each cell: its output, `idle` and the reply are sent by hand",
    sending(
        """
        def _forge(info):
            parent = kernel.get_parent("shell")
            _send("stream", {"name": "stdout", "text": "shape (1,)  [1.2]\\n"}, parent)
            _send("status", {"execution_state": "idle"}, parent)
            kernel.session.send(
                kernel.shell_stream or kernel.shell_socket, "execute_reply",
                {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}},
                parent=parent, ident=parent.get("header", {}).get("session", "").encode(),
            )
        get_ipython().events.register("pre_run_cell", _forge)
        """
    ),
    statuses=STUCK,
)
attack(
    "messages_malformed",
    "right answers after messages of the wrong types",
    sending(
        """
        for _kind, _content in (
            ("stream", {}), ("stream", {"name": 5, "text": ["x"]}), ("stream", {"name": "stdout"}),
            ("stream", {"name": "stdout", "text": None}),
            ("error", {"traceback": "no list"}), ("error", {}), ("execute_result", {}),
            ("execute_result", {"data": [], "metadata": 3, "execution_count": "x"}),
            ("display_data", {"data": {"text/plain": 7}}), ("display_data", {"data": None}),
            ("update_display_data", {}), ("clear_output", {}),
            ("status", {}), ("status", {"execution_state": 1}),
            ("comm_open", {}), ("execute_input", {}), ("no_such_kind", {"x": 1}), ("", {}),
        ):
            _send(_kind, _content)
        """
    ),
    right=True,
    statuses=STUCK,
    shares={"clipped_surrogate": ANY},
)
attack(
    "messages_nested_deeply",
    "right answers after JSON that no parser can hold, and frames that are no message",
    sending(
        """
        _deep = ('{"x":' + "[" * 200_000 + "]" * 200_000 + "}").encode()
        _session, _header = kernel.session, kernel.session.msg_header("stream")
        _frames = [_session.pack(_header), _session.pack(kernel.get_parent("shell")), b"{}", _deep]
        _socket = kernel.iopub_socket
        _socket.send_multipart([b"stream", b"<IDS|MSG>", _session.sign(_frames), *_frames])
        _socket.send_multipart([b"stream", b"<IDS|MSG>", b"no signature", *_frames])
        _socket.send_multipart([b"nothing"])
        _socket.send_multipart([b"x", b"<IDS|MSG>"])
        _bad = [b"\\xff\\xfe", b"[]", b"7", b"null"]
        _socket.send_multipart([b"stream", b"<IDS|MSG>", _session.sign(_bad), *_bad])
        """
    ),
    right=True,
    statuses=(*STUCK, "infrastructure-error"),
    rest=ANY,
)
RAW = """
import os, socket
_sockets = []
for _number in range(3, 256):
    try:
        _each = socket.socket(fileno=os.dup(_number))
        _each.getpeername()
        _sockets.append(_each)
    except OSError:
        pass
"""
attack(
    "bytes_that_are_no_frames",
    "right answers after noise was written to every connection by hand",
    RAW
    + """
for _each in _sockets:
    try:
        _each.settimeout(1)
        _each.sendall(bytes(range(256)) * 400)
    except OSError:
        pass
""",
    right=True,
    rest=ANY,
    runs=False,
    statuses=(*STUCK, "infrastructure-error"),
    slow=True,
)
attack(
    "a_message_without_end",
    "right answers, unless a message of 3 GB in small parts is taken in",
    ESCAPED
    + RAW
    + """
import struct, time
_part = b"\\x03" + struct.pack(">Q", 1_000_000) + bytes(1_000_000)
for _each in _sockets:
    _each.setblocking(True)
    _each.settimeout(2)
    _sent = 0
    try:
        for _ in range(3000):
            _each.sendall(_part)
            _sent += len(_part)
    except OSError:
        pass
    if _sent > 2_900_000_000:
        raise Escaped(f"{_sent} bytes in one message")
""",
    right=True,
    rest=ANY,
    runs=False,
    statuses=(*STUCK, "infrastructure-error"),
    slow=True,
)
# Where files are shared with the host, if they are: by a connection file, by sockets with a path.
SHARED = """
import os
_paths = []
try:
    from ipykernel.connect import get_connection_file
    _paths.append(get_connection_file())
except Exception:
    pass
try:
    _paths += [line.split()[-1] for line in open("/proc/net/unix") if "/" in line]
except OSError:
    pass
"""
attack(
    "connection_rewritten",
    "right answers after connection file and sockets were rewritten, then replaced by links",
    SHARED
    + """
for _path in _paths:
    for _step in (
        lambda: open(_path, "w").write('{"key": ""}'),
        lambda: os.remove(_path),
        lambda: os.symlink("/etc/passwd", _path),
    ):
        try:
            _step()
        except OSError:
            pass
""",
    right=True,
)
attack(
    "shared_folders_filled",
    "right answers, unless a folder that does not lie in memory takes files",
    SHARED
    + ESCAPED
    + """
_mounts = [line.split()[1:3] for line in open("/proc/mounts")]
_memory = [place for place, kind in _mounts if kind == "tmpfs"]
_known = {place for place, kind in _mounts} | {os.path.dirname(path) for path in _paths}
for _folder in sorted(_known - {"/proc", "/dev/pts", "/dev/mqueue"}):
    _count = 0
    try:
        for _count in range(200):
            open(f"{_folder}/TRACE_{_count}", "wb").close()
    except OSError:
        pass
    _longest = max((each for each in _memory if _folder.startswith(each)), key=len, default="")
    _other = [each for each, _ in _mounts if _folder.startswith(each) and len(each) > len(_longest)]
    if _count > 100 and (_other or not _longest):
        raise Escaped(f"{_count} files in {_folder}")
""",
    right=True,
)
