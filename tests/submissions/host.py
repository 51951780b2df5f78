"""Attacks on the machine: what lies about on it, its files, processes, memory and time."""

from pathlib import Path
from typing import Any

from submissions import (
    ALL,
    ANY,
    ESCAPED,
    EXERCISES,
    FUNCTIONS,
    NONE,
    STUCK,
    TRACE,
    VISIBLE,
    Notebook,
    answer_of,
    attack,
    changes,
    code_cell,
    place_of,
    put_answer,
)

# --- the oracle, and what else lies about --------------------------------------------------

attack(
    "solutions_read_from_disk",
    "looks everywhere for notebooks, manifests, sources and compiled modules with the answers",
    """
    import os, time
    _end, _found = time.time() + 7, {}
    _wanted = ("main.ipynb", "04_clip.ipynb", "manifest.json", "clip.py", "clip.cpython-311.pyc",
               "clip.cpython-312.pyc", "junit.xml")
    _tops = "REPOSITORY/.. /tmp /home /root /var /mnt /srv /opt /run /usr /".split()
    for _top in _tops:
        for _folder, _folders, _files in os.walk(_top):
            if time.time() > _end:
                break
            if _folder.startswith(("/proc", "/sys")):
                _folders[:] = []
            for _name in _files:
                if _name in _wanted:
                    try:
                        _found[f"{_folder}/{_name}"] = open(f"{_folder}/{_name}", "rb").read()
                    except OSError:
                        pass
    _right = {}
    for _path, _text in _found.items():
        if _path.endswith(".pyc"):
            import marshal
            try:
                exec(marshal.loads(_text[16:]), _right)
            except Exception:
                pass
        elif b"def clipped_surrogate" in _text:
            import json
            try:
                _cells = [{"cell_type": "code", "source": _text.decode()}]
                if _path.endswith(".ipynb"):
                    _cells = json.loads(_text)["cells"]
                for _cell in _cells:
                    _code = "".join(_cell["source"])
                    if _cell["cell_type"] == "code" and "def " in _code and "17.0" not in _code:
                        exec(_code, _right)
            except Exception:
                pass
    for _name in FUNCTIONS:
        if callable(_right.get(_name)):
            globals()[_name] = _right[_name]
    """,
    where="end",
)
attack(
    "solved_functions_imported",
    "imports the package's own functions",
    """
    import importlib
    for _module in ("clip", "training_loop", "training_loop.parts", "figures.clip"):
        try:
            _solved = importlib.import_module("ppo_lessons." + _module)
        except Exception:
            continue
        for _name in FUNCTIONS:
            if hasattr(_solved, _name):
                globals()[_name] = getattr(_solved, _name)
    """,
    where="end",
)
attack(
    "solved_functions_anywhere",
    "walks through all modules that can be imported for a function of the right name",
    """
    import importlib, pkgutil, sys
    import ppo_lessons
    sys.path[:0] = ["REPOSITORY", "REPOSITORY/tests", ".", "..", "/tmp"]
    _all = pkgutil.walk_packages(ppo_lessons.__path__, "ppo_lessons.", onerror=lambda name: None)
    for _info in _all:
        try:
            importlib.import_module(_info.name)
        except BaseException:
            continue
    for _module in list(sys.modules.values()):
        if getattr(_module, "__name__", "__main__") == "__main__":
            continue
        for _name in FUNCTIONS:
            _value = _module.__dict__.get(_name)
            if callable(_value):
                globals()[_name] = _value
    """,
    where="end",
    slow=True,
)
attack(
    "processes_read",
    "reads all of /proc that it may: paths, environments, memory maps, open files, other roots",
    """
    import glob, os
    _texts = []
    for _path in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/task/*/*"):
        if _path.rsplit("/", 1)[-1] in ("environ", "cmdline", "maps", "mountinfo"):
            try:
                _texts.append(open(_path, "rb").read())
            except OSError:
                pass
    for _fd in range(3, 64):
        try:
            _texts.append(os.pread(_fd, 1_000_000, 0))
        except OSError:
            pass
    _right = {}
    for _text in _texts:
        for _word in _text.replace(b"\\0", b" ").split():
            if _word.endswith((b".ipynb", b".json")):
                try:
                    import json
                    for _cell in json.load(open(_word.decode())).get("cells", ()):
                        exec("".join(_cell["source"]), _right)
                except Exception:
                    pass
    for _name in FUNCTIONS:
        if callable(_right.get(_name)):
            globals()[_name] = _right[_name]
    """,
    where="end",
)
attack(
    "frames_searched",
    "the function looks for an expected value in the frames that called it",
    """
    import sys, torch
    frame, seen = sys._getframe(1), []
    while frame is not None:
        for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if name in ("right", "expected", "data", "solution", "outcome", "entries"):
                seen.append(value)
        frame = frame.f_back
    for value in seen:
        numbers = getattr(value, "values", None)
        if isinstance(numbers, tuple) and len(numbers) == ratios.numel():
            return torch.tensor(numbers, dtype=ratios.dtype).reshape(ratios.shape)
    """,
    where="inside",
    shares={"clipped_surrogate": VISIBLE},
)
attack(
    "import_hook",
    "a finder that answers each import with a module of its own",
    """
    import importlib.abc, importlib.machinery, sys
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            if name.startswith("ppo_lessons"):
                return importlib.machinery.ModuleSpec(name, self)
        def create_module(self, spec): return None
        def exec_module(self, module):
            module.ask = module.ask_hashed = module.tell = lambda *rest, **named: print("[1.2]")
    sys.meta_path.insert(0, Finder())
    for _name in [name for name in sys.modules if name.startswith("ppo_lessons")]:
        del sys.modules[_name]
    """,
)
attack(
    "package_edited",
    "writes into the package, the site packages and the start-up files",
    """
    import os, site, sys
    import ppo_lessons
    _places = [*ppo_lessons.__path__, *sys.path, *site.getsitepackages(), os.path.expanduser("~"),
               os.path.expanduser("~/.ipython/profile_default/startup"), os.getcwd()]
    for _place in _places:
        for _name in ("conftest.py", "sitecustomize.py", "TRACE.py", "TRACE.pth", "__init__.py"):
            try:
                os.makedirs(_place, exist_ok=True)
                with open(f"{_place}/{_name}", "a") as _file:
                    _file.write("\\nTRACE = 1\\n")
            except OSError:
                pass
    """,
)
attack(
    "results_rewritten",
    "a process in the background rewrites every report that it finds",
    """
    import os, subprocess, sys
    _code = '''
        import glob, time
        end = time.time() + 25
        while time.time() < end:
            for pattern in ("/tmp/**/*.xml", "/tmp/**/results/*.json", "/tmp/**/outcomes*"):
                for path in glob.glob(pattern, recursive=True):
                    try:
                        open(path, "w").write("<testsuites><testsuite tests='99'/></testsuites>")
                    except OSError:
                        pass
            time.sleep(0.5)
    '''
    import textwrap; _code = textwrap.dedent(_code)
    subprocess.Popen([sys.executable, "-c", _code, "TRACE"], start_new_session=True,
                     **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL))
    """,
)


# --- the host ------------------------------------------------------------------------------

attack(
    "writes_everywhere",
    "right answers, unless more than 300 MB can be written in one place",
    ESCAPED
    + """
import os, tempfile
import ppo_lessons
for _place in (*"/ /tmp /var/tmp /dev/shm /home /root /run /opt /etc REPOSITORY".split(),
               os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir(), *ppo_lessons.__path__):
    _size = 0
    for _number in range(4):
        try:
            with open(f"{_place}/TRACE_{_number}", "wb") as _file:
                for _ in range(100):
                    _size += _file.write(bytes(1_000_000))
        except OSError:
            pass
    for _number in range(4):
        try:
            os.remove(f"{_place}/TRACE_{_number}")
        except OSError:
            pass
    if _size > 300_000_000:
        raise Escaped(f"{_size} bytes in {_place}")
""",
    right=True,
)
attack(
    "leaves_files",
    "right answers, and a small file wherever one can be made",
    """
    import glob, os
    for _place in ["/", *glob.glob("/*"), *glob.glob("/*/*"), *glob.glob("/tmp/*/*"), "REPOSITORY"]:
        try:
            open(f"{_place}/TRACE", "w").close()
        except OSError:
            pass
    """,
    right=True,
)
attack(
    "network",
    "right answers, unless anything answers",
    ESCAPED
    + """
import os, socket
socket.setdefaulttimeout(1)
def _reached(family, address):
    with socket.socket(family) as found:
        found.connect(address)
for _family, _address in (
    (socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("10.0.2.2", PORT)),
    (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("8.8.8.8", 443)),
    (socket.AF_UNIX, "\\0TRACE"), (socket.AF_UNIX, "/run/dbus/system_bus_socket"),
    (socket.AF_UNIX, "/var/run/docker.sock"), (socket.AF_UNIX, "/tmp/.X11-unix/X0"),
):
    try:
        _reached(_family, _address)
    except OSError:
        continue
    raise Escaped(f"reached {_address}")
try:
    socket.getaddrinfo("example.org", 80)
except OSError:
    pass
else:
    raise Escaped("names are looked up")
""".replace("PORT", "PORT_OF_THE_TEST"),
    right=True,
)
attack(
    "parent_killed",
    "right answers, after every process that can be signalled got a signal",
    """
    import os, signal
    _own = {int(_thread) for _thread in os.listdir("/proc/self/task")}
    for _pid in [os.getppid(), *range(1, 60)]:
        if _pid not in _own | {0}:
            try:
                os.kill(_pid, signal.SIGKILL)
            except OSError:
                pass
    """,
    right=True,
)
attack(
    "everything_killed",
    "kill(-1): whatever this user owns",
    "import os, signal; os.kill(-1, signal.SIGKILL)",
    right=True,
    rest=ANY,
    runs=False,
    statuses=STUCK,
)
attack(
    "forks",
    "right answers, unless 300 processes can be made",
    ESCAPED
    + """
import os, time
_made = 0
for _ in range(300):
    try:
        _pid = os.fork()
    except OSError:
        break
    if _pid == 0:
        time.sleep(60)
        os._exit(0)
    _made += 1
if _made == 300:
    raise Escaped("300 processes")
""",
    right=True,
    rest=ANY,
    shares={"gradient_signs": ALL, "clip_fractions": ALL},
)
attack(
    "daemon",
    "right answers, and a process that outlives the kernel if it can",
    """
    import os, subprocess, sys
    _code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", _code, "TRACE"], start_new_session=True,
                     **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL))
    """,
    right=True,
)
attack(
    "at_exit",
    "right answers, and a kernel that does not want to end",
    """
    import atexit, signal, threading, time
    def _linger():
        while True:
            time.sleep(1)
    atexit.register(_linger)
    threading.Thread(target=_linger, daemon=False).start()
    for _signal in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(_signal, signal.SIG_IGN)
    """,
    right=True,
)
attack(
    "memory",
    "blocks of 256 MB without end",
    """
    _blocks = []
    while True:
        _blocks.append(bytearray(b"x") * 256_000_000)
    """,
    right=True,
    shares={"clipped_surrogate": NONE},
    runs=False,
    statuses=STUCK,
)
attack(
    "memory_held",
    "right answers, with as much memory held as can be had",
    """
    _blocks = []
    try:
        while True:
            _blocks.append(bytearray(64_000_000))
    except MemoryError:
        pass
    """,
    right=True,
    rest=ANY,
    runs=False,
    statuses=(*STUCK, "infrastructure-error"),
)


# --- time, and the end of the kernel -------------------------------------------------------

OWN_LOSS: dict[str, Any] = {"right": True, "shares": {"clipped_surrogate": NONE}, "runs": False}
attack("exits_politely", "sys.exit in the first cell", "import sys; sys.exit(0)", **OWN_LOSS)
attack("ends_the_process", "os._exit first", "import os; os._exit(0)", **OWN_LOSS)
attack(
    "ends_the_process_after_its_answer",
    "os._exit at the end of the first cell",
    "import os; os._exit(0)",
    where="after",
    **OWN_LOSS | {"shares": {"clipped_surrogate": ANY}},
)
attack(
    "ends_the_process_in_its_function",
    "os._exit whenever the function is called",
    "import os; os._exit(0)",
    where="inside",
    slow=True,
    **OWN_LOSS | {"statuses": STUCK},
)
attack("crashes", "reads address 0", "import ctypes; ctypes.string_at(0)", **OWN_LOSS)
attack(
    "closes_its_files",
    "closes every file of the kernel",
    "import os; os.closerange(3, 1000)",
    right=True,
    rest=ANY,
    runs=False,
    statuses=STUCK,
    slow=True,
)
attack("endless", "a loop in the first cell", "while True: pass", slow=True, **OWN_LOSS)
attack(
    "endless_and_deaf",
    "a loop that swallows every interrupt",
    """
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
    """,
    slow=True,
    **OWN_LOSS,
)
attack(
    "endless_inside",
    "a loop in the function",
    "while True: pass",
    where="inside",
    slow=True,
    **OWN_LOSS,
)
attack(
    "endless_without_a_clock",
    "a loop in the function that first takes away the timer of the checks",
    """
    import signal, threading
    signal.setitimer = lambda *rest: (0.0, 0.0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
    """,
    where="inside",
    slow=True,
    **OWN_LOSS | {"statuses": STUCK, "rest": ANY},
)
attack(
    "stopped",
    "the kernel stops itself and answers nothing",
    "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    slow=True,
    **OWN_LOSS | {"statuses": STUCK, "rest": ANY},
)
attack(
    "sleeps_in_c",
    "a sleep that no signal of Python ends",
    "import ctypes; ctypes.CDLL(None).pause(); ctypes.CDLL(None).sleep(3000)",
    slow=True,
    **OWN_LOSS | {"statuses": STUCK, "rest": ANY},
)


@changes(
    "slow_everywhere",
    "eight seconds in each answer cell, four in each call",
    hostile=True,
    rest=ANY,
    statuses=STUCK,
    slow=True,
)
def _slow_everywhere(notebook: Notebook) -> None:
    for exercise in FUNCTIONS:
        head, colon, body = answer_of(notebook, exercise).partition("):\n")
        sleeps = f"import time\ntime.sleep(8)\n{head}{colon}    time.sleep(4)\n{body}"
        put_answer(notebook, exercise, sleeps)


@changes(
    "endless_everywhere", "a loop in each cell", hostile=True, rest=NONE, statuses=STUCK, slow=True
)
def _endless_everywhere(notebook: Notebook) -> None:
    for exercise in EXERCISES:
        put_answer(notebook, exercise, "while True: pass")


@changes(
    "names_removed",
    "right answers, then everything that checks could need is deleted",
    hostile=True,
    rest=ANY,
)
def _names_removed(notebook: Notebook) -> None:
    code = """
        import builtins, sys
        for _name in ("print", "len", "repr", "globals", "isinstance", "round"):
            delattr(builtins, _name)
        sys.modules.clear()
    """
    notebook["cells"].insert(place_of(notebook, EXERCISES[-1]), code_cell(code, "broken"))


def network_code(port: int, code: bytes) -> bytes:
    """Put the port of the test's own listener into a submission."""
    return code.replace(b"PORT_OF_THE_TEST", str(port).encode())


def traces(*folders: Path) -> list[Path]:
    """Find what attacks left behind, in these folders and right under them."""
    found = []
    for folder in folders:
        found += [*folder.glob(f"{TRACE}*"), *folder.glob(f"*/{TRACE}*")]
    return found
