"""What students do who want points for nothing, or harm: against shell, output, oracle, host."""

from typing import Any

from ppo_lessons.checks import find_exercise
from ppo_lessons.checks.exercises import FunctionExercise, data_of
from submissions import (
    ANY,
    EXERCISES,
    FUNCTIONS,
    LESSON,
    NONE,
    STUCK,
    VISIBLE,
    Notebook,
    attack,
    changes,
    check_cells,
    code_cell,
    printed,
    put_answer,
    source_of,
)

# --- the file says that all is well --------------------------------------------------------


@changes("outputs_cleared", "wrong, never run", right=False, hostile=True, rest=NONE)
def _outputs_cleared(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None


@changes("own_outputs_stored", "wrong, its outputs stored", right=False, hostile=True, rest=NONE)
def _own_outputs(notebook: Notebook) -> None:
    for cell in check_cells(notebook):
        cell["outputs"], cell["execution_count"] = printed("✔ passed\n"), 1


@changes("checks_deleted", "no check cells", right=False, hostile=True, rest=NONE)
def _checks_deleted(notebook: Notebook) -> None:
    checks = [*check_cells(notebook)]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in checks]


@changes("checks_edited", "checks that print success", right=False, hostile=True, rest=NONE)
def _checks_edited(notebook: Notebook) -> None:
    for cell in check_cells(notebook):
        cell["source"] = "print('✔ passed')"
        cell["outputs"] = printed("✔ passed\n")


@changes("checks_skipped", "nbval told to skip", right=False, hostile=True, rest=NONE)
def _checks_skipped(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            lines = source_of(cell).splitlines(keepends=True)
            marks = "# NBVAL_SKIP\n#NBVAL_IGNORE_OUTPUT\n#PYTEST_VALIDATE_IGNORE_OUTPUT\n"
            cell["source"] = "".join([*lines[:1], marks, *lines[1:]])
            cell["metadata"]["tags"] = [
                "nbval-skip",
                "nbval-ignore-output",
                "nbval-raises-exception",
            ]


@changes(
    "pretends_to_be_a_check",
    "cells with the ids, metadata and names of check cells",
    right=False,
    hostile=True,
    rest=NONE,
)
def _pretends(notebook: Notebook) -> None:
    about = {"role": "check", "check": True, "points": 100, "answer": "clip.clipped_surrogate"}
    for place in range(12):
        cell = code_cell("print(1)", f"check-{place}", ppo_lessons=about, nbgrader={"points": 100})
        notebook["cells"].append(cell | {"execution_count": 1, "outputs": printed("1\n")})


# --- what everybody may know ---------------------------------------------------------------


def table_of(exercise: str) -> dict[str, Any]:
    """List what the public data of the checks expects, by the input."""
    public = find_exercise(f"{LESSON}.{exercise}")
    assert isinstance(public, FunctionExercise)
    data = data_of(LESSON)[public.numbers_of or public.id]["cases"]
    found = {}
    for case, entry in zip(public.cases, data, strict=True):
        inputs, options = case.arguments()
        key = repr([*(tensor.tolist() for tensor in inputs.values()), sorted(options.items())])
        found[key] = entry["expected"]
    return found


LOOK_UP = """
import json
TABLE_{name} = json.loads({table!r})

def {name}(*inputs, **options):
    import torch
    key = repr([*(each.tolist() for each in inputs), sorted(options.items())])
    found = TABLE_{name}.get(key)
    if found is None:
        return inputs[0] * 0 + 17.0
    numbers = [float(number) for number in found["values"]]
    if {two}:
        return tuple(numbers)
    result = torch.tensor(numbers, dtype=inputs[0].dtype).reshape(found["shape"])
    for each, slopes in zip(inputs, (found.get("gradients") or {{}}).values()):
        if slopes is not None:
            slopes = torch.tensor(slopes, dtype=each.dtype).reshape(each.shape)
            moved = slopes * (each - each.detach())
            result = result + (moved.sum() if result.ndim == 0 else moved)
    return result
"""


def looked_up(exercise: str) -> str:
    """Write the answer that knows the public cases by heart."""
    import json

    two = exercise == "clip_fractions"
    return LOOK_UP.format(name=exercise, table=json.dumps(table_of(exercise)), two=two)


@changes(
    "public_values_by_heart",
    "a table of the public cases, gradients included",
    right=False,
    hostile=True,
    runs=True,
    rest=VISIBLE,
    shares={"gradient_signs": NONE},
)
def _by_heart(notebook: Notebook) -> None:
    for exercise in FUNCTIONS:
        put_answer(notebook, exercise, looked_up(exercise))


attack(
    "public_data_read",
    "reads the expected values that the checks of the package carry",
    """
    from ppo_lessons.checks.exercises import data_of
    try:
        found = data_of("clip")
    except Exception:
        found = {}
    _cases = [case["expected"] for case in found.get("clip.clipped_surrogate", {}).get("cases", [])]
    def clipped_surrogate(ratios, advantages, *, clip_epsilon):
        import torch
        for case in list(_cases):
            if len(case["values"]) == ratios.numel():
                _cases.remove(case)
                values = torch.tensor(case["values"], dtype=ratios.dtype)
                return values.reshape(ratios.shape) + 0 * ratios
        return ratios * 0 + 17.0
    """,
    where="after",
    shares={"clipped_surrogate": VISIBLE},
)
# Six signs have 729 values: who has the check can try them all, at home as well as here. Numbers
# that are the student's own are what helps against it.
attack(
    "signs_by_trying_all",
    "asks the public check for each of the 729 answers",
    """
    from itertools import product
    from ppo_lessons.checks import find_exercise
    from ppo_lessons.checks.judge import judge
    _signs = find_exercise("clip.gradient_signs")
    for _six in product((-1, 0, 1), repeat=6):
        gradient_signs = dict(zip("abcdef", _six))
        if judge(_signs, gradient_signs).passed:
            break
    """,
    where="after",
    exercise="gradient_signs",
    shares={"gradient_signs": ANY},
)


# --- the shell -----------------------------------------------------------------------------

attack(
    "shell_shows_no_errors",
    "patches run_code and showtraceback",
    """
    shell = get_ipython()
    async def run_code(self, code_obj, result=None, *, async_=False):
        return False
    type(shell).showtraceback = lambda self, *rest, **named: None
    type(shell).run_code = run_code
    """,
    where="after",
)
attack(
    "shell_does_nothing",
    "patches run_cell and run_cell_async: later cells say ok",
    """
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
    shell = get_ipython()
    def run_cell(raw_cell, *rest, **named):
        return ExecutionResult(ExecutionInfo(raw_cell, False, False, False, None))
    async def run_cell_async(raw_cell, *rest, **named):
        return run_cell(raw_cell)
    shell.run_cell, shell.run_cell_async = run_cell, run_cell_async
    """,
    where="after",
)
attack(
    "kernel_does_nothing",
    "patches do_execute of the kernel",
    """
    kernel = get_ipython().kernel
    async def do_execute(self, code, silent, *rest, **named):
        self.send_response(self.iopub_socket, "stream", {"name": "stdout", "text": "[1.0]\\n"})
        return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}
    type(kernel).do_execute = do_execute
    """,
    where="after",
)
attack(
    "source_of_checks_rewritten",
    "an input transformer puts another answer into each check",
    """
    def _other(lines):
        return [line.replace("clipped_surrogate_loss", "max") for line in lines]
    get_ipython().input_transformers_cleanup.append(lambda lines: ["pass\\n"])
    get_ipython().input_transformers_post.append(_other)
    """,
)
attack(
    "hooks_of_the_display",
    "replaces displayhook, display_pub, formatters, events",
    """
    import sys
    shell = get_ipython()
    sys.displayhook = lambda value: print("[1.0]")
    shell.display_pub.publish = lambda *rest, **named: None
    shell.display_formatter.format = lambda *rest, **named: ({"text/plain": "[1.0]"}, {})
    shell.events.register("pre_run_cell", lambda info: print("[1.0]"))
    shell.events.register("post_run_cell", lambda result: setattr(result, "error_in_exec", None))
    """,
)
attack(
    "ask_replaced_by_name",
    "own functions called ask and tell",
    """
    ask = _ask = _ask_hashed = lambda *rest, **named: print("[1.0]")
    tell = _tell = lambda *rest, **named: print('{"mistake": null, "stage": null}')
    """,
)
attack(
    "ask_replaced_in_its_module",
    "replaces the code of ask in the package",
    """
    import ppo_lessons.grading.ask as _ask_module
    def _fake(*rest, **named):
        print("shape (1,)  [1.0]")
    for _name in ("ask", "ask_hashed", "tell"):
        _old = getattr(_ask_module, _name, None)
        if hasattr(_old, "__code__"):
            _old.__code__ = _fake.__code__
            _old.__kwdefaults__ = None
        setattr(_ask_module, _name, _fake)
    """,
)
attack(
    "checks_replaced",
    "replaces judge, call, agree: whatever is asked, it agrees",
    """
    import ppo_lessons.checks.compare as _compare, ppo_lessons.checks.judge as _judge
    from ppo_lessons.checks.exercises import CheckResult, Outcome
    _yes = lambda *rest, **named: True
    for _module in (_compare, _judge):
        for _name in ("agree", "same_values", "unchanged"):
            if hasattr(_module, _name):
                setattr(_module, _name, _yes)
    _judge.judge = lambda exercise, answer: CheckResult(exercise=exercise.id, passed=True)
    _judge.call = lambda *rest, **named: Outcome(shape=(1,), values=(1.0,))
    """,
)
attack(
    "answer_found_among_the_cells",
    "looks for another definition in history, memory and modules",
    """
    import gc, types
    _mine, _shell = {}, get_ipython()
    for _text in [*_shell.user_ns.get("In", []), *_shell.user_ns.values()]:
        if isinstance(_text, str) and "def clipped_surrogate" in _text and "17.0" not in _text:
            exec(_text, _mine)
    for _each in gc.get_objects():
        if isinstance(_each, types.FunctionType) and _each.__name__ == "clipped_surrogate":
            if _each.__module__ not in ("__main__", None):
                _mine["clipped_surrogate"] = _each
    clipped_surrogate = _mine.get("clipped_surrogate", clipped_surrogate)
    """,
    where="after",
)


# --- what is printed -----------------------------------------------------------------------

attack(
    "printed_output_replayed",
    "keeps what the first check printed and prints it for all later ones",
    """
    import builtins, sys
    _kept, _print = [], builtins.print
    def _replay(*words, **named):
        _kept.append(words)
        _print(*_kept[0], **{key: value for key, value in named.items() if key != "file"})
    builtins.print = _replay
    """,
)
attack(
    "printing_replaced",
    "replaces print, sys.stdout, json, round, format, Tensor.__repr__, tolist",
    """
    import builtins, io, json, sys
    import torch
    class Better(io.TextIOBase):
        def __init__(self, under): self.under = under
        def write(self, words): return self.under.write(words.replace("17.0", "1.2"))
        def flush(self): self.under.flush()
    sys.stdout = Better(sys.stdout)
    json.dumps = lambda *rest, **named: '{"mistake": null}'
    builtins.round = lambda number, digits=None: 1.2
    builtins.format = lambda *rest: "1.2"
    torch.Tensor.__repr__ = torch.Tensor.__str__ = lambda self, **named: "tensor([1.2])"
    torch.Tensor.tolist = lambda self: [1.2]
    """,
)
attack(
    "always_true",
    "objects that equal everything, and an allclose that agrees",
    """
    import torch
    class AlwaysTrue:
        def __getattr__(self, name): return self
        def __call__(self, *rest, **named): return self
        def __eq__(self, other): return True
        def __hash__(self): return 0
        def __bool__(self): return True
        def __float__(self): return 1.2
        def __iter__(self): return iter(())
    torch.allclose = torch.equal = torch.isclose = lambda *rest, **named: True
    """,
)


@changes(
    "always_true_returned",
    "every function gives an object that equals everything",
    right=False,
    hostile=True,
    rest=NONE,
)
def _always_true(notebook: Notebook) -> None:
    for exercise in FUNCTIONS:
        put_answer(
            notebook,
            exercise,
            f"""
            class Yes:
                shape, dtype, ndim, requires_grad = (), None, 0, False
                def __getattr__(self, name): return lambda *rest, **named: self
                def __eq__(self, other): return True
                def __hash__(self): return 0
                def __float__(self): return float("nan")
                def __repr__(self): return "1.2"
            {exercise} = lambda *inputs, **options: Yes()
            """,
        )


@changes(
    "lying_tensors",
    "a subclass of Tensor that tells each reader what it likes to hear",
    right=False,
    hostile=True,
    rest=NONE,
)
def _lying_tensors(notebook: Notebook) -> None:
    put_answer(
        notebook,
        EXERCISES[0],
        """
        import torch
        class Liar(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                plain = lambda x: x.as_subclass(torch.Tensor) if isinstance(x, cls) else x
                result = function(*map(plain, args), **(kwargs or {}))
                return torch.ones_like(result) if isinstance(result, torch.Tensor) else result
        def clipped_surrogate(ratios, advantages, *, clip_epsilon):
            return (ratios * advantages).nan_to_num().as_subclass(Liar)
        """,
    )


attack(
    "thread_prints_later",
    "a thread prints into the cells that come later",
    """
    import threading, time
    def _later():
        for _ in range(400):
            time.sleep(0.02)
            print("shape (1,)  [1.2]", flush=True)
    threading.Thread(target=_later, daemon=True).start()
    """,
)
attack(
    "thread_prints_for_ever",
    "right answers, and a thread that floods whatever runs",
    """
    import threading
    def _flood():
        while True:
            print("x" * 10_000, flush=True)
    threading.Thread(target=_flood, daemon=True).start()
    """,
    right=True,
    rest=ANY,
    statuses=STUCK,
    slow=True,
)
attack(
    "prints_60_MB",
    "right answers after 60 MB of prints in the first cell",
    "for _ in range(60): print('x' * 1_000_000)",
    right=True,
)
attack(
    "prints_800_MB",
    "right answers after 800 MB of prints in the first cell",
    "for _ in range(80): print('x' * 10_000_000)",
    right=True,
    statuses=STUCK,
    shares={"clipped_surrogate": ANY},
    runs=False,
    slow=True,
)
attack(
    "one_message_of_300_MB",
    "right answers after a single huge message",
    """
    kernel = get_ipython().kernel
    kernel.session.send(
        kernel.iopub_socket, "stream", {"name": "stdout", "text": "x" * 300_000_000},
        parent=kernel.get_parent("shell"), ident=kernel._topic("stream"),
    )
    """,
    right=True,
    statuses=STUCK,
    shares={"clipped_surrogate": ANY},
    runs=False,
    slow=True,
)
attack(
    "surrogates_printed",
    "right answers, and characters that no file can hold",
    r"""
    import sys
    for _stream in (sys.stdout, sys.stderr):
        try:
            _stream.write("\ud800 \udfff \x00 \x1b[2J \u202e \ufffe\n")
        except UnicodeError:
            pass
    try:
        display({"text/plain": "\ud800"}, raw=True)
    except UnicodeError:
        pass
    """,
    right=True,
)
attack(
    "traceback_full_of_markup",
    "an error whose words are HTML, ANSI sequences, Markdown and control characters",
    r"""
    class Error(Exception):
        pass
    Error.__name__ = Error.__qualname__ = "<img src=x onerror=alert(1)>"
    raise Error(
        "<script>alert('ppo')</script></pre></body>"
        "\x1b[31m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\n# heading\n"
        "[x](javascript:alert(1))\n![x](http://evil.example/x.png)\n```\n=HYPERLINK(1)\u202e\x00"
        + "y" * 5000
    )
    """,
    right=True,
    shares={"clipped_surrogate": NONE},
    runs=False,
)
attack(
    "mistakes_forged",
    "prints what looks like the name of a mistake, in JSON, with markup",
    """
    import ppo_lessons.checks.judge as _judge
    from ppo_lessons.checks.exercises import CheckResult
    _judge.judge = lambda exercise, answer: CheckResult(
        exercise=exercise.id, passed=False, stage="<b>", mistake="<script>alert('ppo')</script>"
    )
    import ppo_lessons.grading.ask as _ask
    _ask.judge = _judge.judge
    _tell = lambda *rest, **named: print('{"mistake": ["<script>"], "points": 60}')
    _ask.tell.__code__ = _tell.__code__
    """,
)
