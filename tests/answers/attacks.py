"""Answers to the first exercise that do what no answer should, and what each is called."""

import torch

COMPUTES = "return ratios * advantages"


def answer(*body):
    """Make an answer from the lines of its body."""
    names = {"torch": torch}
    text = "\n    ".join(line for lines in body for line in lines.splitlines())
    exec(f"def answer(ratios, advantages, *, clip_epsilon):\n    {text}", names)
    return names["answer"]


class HostileError(Exception):
    def __str__(self):
        raise ValueError("no words")


def raise_hostile(ratios, advantages, *, clip_epsilon):
    raise HostileError


class HostileObject:
    """Answers no question, not even after its class."""

    def __getattribute__(self, name):
        raise RuntimeError("look elsewhere")


class HostileTensor(torch.Tensor):
    """A tensor whose every operation ends the process, if nothing catches it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise SystemExit(1)


async def coroutine(ratios, advantages, *, clip_epsilon):
    return ratios


def generator_function(ratios, advantages, *, clip_epsilon):
    yield ratios


ENDLESS = answer("while True:", "    pass")
DELETES_GLOBALS = answer("globals().clear()", COMPUTES)

# no function, or none that fits: the kind of mistake it is called
UNFIT = {
    "none_itself": (None, "not_written"),
    "a_number": (1.2, "not_a_function"),
    "a_result": (torch.ones(1), "not_a_function"),
    "a_hostile_object": (HostileObject(), "not_a_function"),
    "a_class": (dict, "raises"),
    "no_arguments": (lambda: 1, "wrong_signature"),
    "other_keyword": (lambda ratios, advantages, *, epsilon: ratios, "wrong_signature"),
}
RETURNS = {
    "nothing": (answer("pass"), "returns_nothing"),
    "blank": (answer("raise NotImplementedError"), "not_written"),
    "tuple": (answer("return ratios, advantages"), "wrong_type"),
    "list": (answer("return (ratios * advantages).tolist()"), "wrong_type"),
    "numpy": (answer("return (ratios * advantages).numpy()"), "wrong_type"),
    "python_number": (answer("return 1.1"), "wrong_type"),
    "text": (answer("return 'ratios'"), "wrong_type"),
    "coroutine": (coroutine, "wrong_type"),
    "generator": (generator_function, "wrong_type"),
    "hostile_object": (lambda ratios, advantages, *, clip_epsilon: HostileObject(), "raises"),
    "hostile_tensor": (
        lambda ratios, advantages, *, clip_epsilon: ratios.as_subclass(HostileTensor),
        "raises",
    ),
    "integers": (answer("return (ratios * advantages).long()"), "wrong_dtype"),
    "booleans": (answer("return ratios > 1"), "wrong_dtype"),
    "nan": (answer("return ratios * advantages * float('nan')"), "gives_nan"),
    "other_shape": (answer("return torch.ones(3, 3)"), "wrong_shape"),
    "empty": (answer("return torch.ones(0)"), "wrong_shape"),
    "sparse": (answer("return (ratios * advantages).to_sparse()"), "raises"),
    "other_device": (answer("return (ratios * advantages).to('meta')"), "raises"),
}
RAISES = {
    name: (answer(*body), "raises")
    for name, body in {
        "value_error": ["raise ValueError('no')"],
        "system_exit": ["raise SystemExit(0)"],
        "keyboard_interrupt": ["raise KeyboardInterrupt"],
        "generator_exit": ["raise GeneratorExit"],
        "stop_iteration": ["raise StopIteration"],
        "memory_error": ["raise MemoryError"],
        "exit": ["import sys", "sys.exit(0)"],
        "recursion": ["def again(x):", "    return again(x) + 1", "return again(ratios)"],
        "backward_inside": ["(ratios * advantages).sum().backward()", "return ratios"],
    }.items()
} | {
    "hostile_error": (raise_hostile, "raises"),
    "name_error": (answer("return ratoi * advantages"), "name_missing"),
    "ambiguous": (answer("return min(torch.stack([ratios, ratios]), 1)"), "python_choice"),
    "booleans": (answer("return (ratios > 1).mean()"), "mean_of_booleans"),
}
CHANGES = {
    name: (answer(*body), "changes_its_inputs")
    for name, body in {
        "ratios": ["ratios.clamp_(0.8, 1.2)", COMPUTES],
        "advantages": ["advantages *= ratios", "return advantages"],
        "the_size": ["ratios.resize_(5)", "return ratios"],
        "the_wish_for_one": ["ratios.requires_grad_()", COMPUTES],
        "the_storage": ["ratios.data = torch.zeros(1)", "return ratios"],
    }.items()
}
SLOW = {
    "endless": (ENDLESS, "too_slow"),
    "endless_with_except": (
        answer("while True:", "    try:", "        sum(range(10))", "    except Exception: pass"),
        "too_slow",
    ),
    "swallows_once": (
        answer(
            *("try:", "    while True: pass", "except BaseException: pass", "while True:"),
            "    pass",
        ),
        "too_slow",
    ),
    "sleeps": (answer("import time", "time.sleep(60)"), "too_slow"),
}
# They compute ratio times advantage, and do something else besides.
BESIDES = {
    name: (answer(*body, COMPUTES), "no_clip")
    for name, body in {
        "prints": ["print('x' * 1_000_000)"],
        "writes_errors": ["import sys", "sys.stderr.write('x')"],
        "warns": ["import warnings", "warnings.warn('w')"],
        "gradients_off": ["torch.set_grad_enabled(False)"],
        "torch_seed": ["torch.manual_seed(0)"],
        "numpy_seed": ["import numpy", "numpy.random.seed(0)"],
        "python_seed": ["import random", "random.seed(0)"],
        "default_dtype": ["torch.set_default_dtype(torch.float64)"],
        "threads": ["torch.set_num_threads(2)"],
        "anomaly": ["torch.autograd.set_detect_anomaly(True)"],
        "device": ["torch.set_default_device('meta')"],
        "alarm": ["import signal", "signal.signal(signal.SIGALRM, signal.SIG_IGN)"],
        "interrupt": ["import signal", "signal.signal(signal.SIGINT, signal.SIG_IGN)"],
        "filters": ["import warnings", "warnings.filters[:] = []"],
        "streams": ["import sys", "sys.stdout = sys.stderr = None"],
        "recursion_limit": ["import sys", "sys.setrecursionlimit(5000)"],
        "folder": ["import os", "os.chdir('/')"],
        "environment": ["import os", "os.environ['PPO_X'] = '1'", "os.environ.pop('PATH', None)"],
        "patches_torch": ["torch.minimum = torch.Tensor.clamp = None"],
    }.items()
} | {"deletes_globals": (DELETES_GLOBALS, "no_clip")}
# Here the name of the mistake is not promised.
NAMELESS = {
    "patches_builtins": (answer("import builtins", "builtins.len = None", COMPUTES), None),
    "deletes_builtins": (answer("import builtins", "del builtins.len", COMPUTES), None),
}
ATTACKS = UNFIT | {
    f"{kind}_{name}": attack
    for kind, attacks in {
        "returns": RETURNS,
        "raises": RAISES,
        "changes": CHANGES,
        "slow": SLOW,
        "besides": BESIDES,
        "nameless": NAMELESS,
    }.items()
    for name, attack in attacks.items()
}
