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
attack(
    "connection_file_rewritten",
    "right answers after the connection file was rewritten, then replaced by a link",
    """
    import os
    from ipykernel.connect import get_connection_file
    _path = get_connection_file()
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
    "sockets_removed",
    "right answers, and the files of the sockets are removed or replaced by links",
    """
    import os
    from ipykernel.connect import get_connection_file
    import json
    _about = json.load(open(get_connection_file()))
    for _port in range(1, 10):
        _path = f"{_about['ip']}-{_port}"
        try:
            os.remove(_path)
            os.symlink("/etc/passwd", _path)
        except OSError:
            pass
    """,
    right=True,
    rest=ANY,
    statuses=(*STUCK, "infrastructure-error"),
    slow=True,
)
attack(
    "shared_folder_filled",
    "right answers, unless the folder of the sockets takes 200 MB or 5,000 files",
    ESCAPED
    + """
import json, os
from ipykernel.connect import get_connection_file
_about = json.load(open(get_connection_file()))
_known = get_connection_file(), os.path.abspath(_about["ip"])
for _folder in {*map(os.path.dirname, _known)}:
    _size = _count = 0
    try:
        for _count in range(5000):
            open(f"{_folder}/TRACE_{_count}", "wb").close()
    except OSError:
        pass
    try:
        for _number in range(40):
            with open(f"{_folder}/TRACE_{_number}", "wb") as _file:
                for _ in range(5):
                    _size += _file.write(bytes(1_000_000)); _file.flush()
    except OSError:
        pass
    _tmpfs = [line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "tmpfs"]
    _inside = any(_folder == each or _folder.startswith(each.rstrip("/") + "/") for each in _tmpfs)
    if _size > 150_000_000 or (_count > 4000 and not _inside):
        raise Escaped(f"{_size} bytes in {_count} files in {_folder}")
""",
    right=True,
    runs=False,
)
