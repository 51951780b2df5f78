"""What students do who mean no harm: each earns what its answers are worth, to the point."""

from submissions import (
    ALL,
    ANY,
    EXERCISES,
    NONE,
    Notebook,
    Odd,
    answer_of,
    blank,
    changes,
    check_cells,
    code_cell,
    edited,
    enter,
    instead,
    place_of,
    put_answer,
    source_of,
    variant,
)

enter(Odd(name="solved", make=edited(lambda notebook: None), about="the solution itself"))
enter(Odd(name="untouched", make=edited(lambda _: blank()), about="the blank", rest=NONE))


@changes("half_done", "three answers, three blanks", shares=dict.fromkeys(EXERCISES[3:], NONE))
def _half(notebook: Notebook) -> None:
    given = blank()
    for exercise in EXERCISES[3:]:
        put_answer(notebook, exercise, answer_of(given, exercise))


# --- what is said and shown ----------------------------------------------------------------

variant(
    "prints_everywhere",
    "debug prints beside the function, and in it",
    """
    import sys
    print("here", flush=True)
    print("there", file=sys.stderr)
    display("shown")
    "the value of the cell"
    """,
)
variant(
    "prints_inside",
    "debug prints in the function",
    """
    print("ratios", ratios, "advantages", advantages)
    import sys
    print("and again", file=sys.stderr)
    """,
    where="inside",
)
variant("prints_much", "two thousand lines", "for i in range(2000): print('line', i, i * i)")
variant(
    "prints_much_inside",
    "a forgotten loop with prints in the function",
    "for i in range(300): print('line', i, ratios)",
    where="inside",
)
variant(
    "warns",
    "warnings outside and inside",
    """
    import warnings
    warnings.warn("outside")
    import torch
    torch.tensor(torch.ones(1))
    """,
)
variant("warnings_as_errors", "a strict student", "import warnings; warnings.simplefilter('error')")
variant(
    "logs",
    "logging to the standard error at debug level",
    """
    import logging
    logging.basicConfig(level=logging.DEBUG)
    logging.debug("so far so good")
    """,
)
variant(
    "progress_bar",
    "a bar of tqdm",
    """
    from tqdm.auto import tqdm
    for _ in tqdm(range(3)):
        pass
    """,
)
variant(
    "plots",
    "a picture before the answer",
    """
    %matplotlib inline
    import matplotlib.pyplot as plt
    plt.plot([0.5, 1.0, 1.5], [0.5, 1.0, 1.2])
    plt.show()
    """,
)
variant(
    "magics",
    "magics and a shell command",
    """
    %time sum(range(10))
    !echo hello
    %load_ext autoreload
    """,
    where="cell",
)

# --- global state --------------------------------------------------------------------------

variant("double_by_default", "float64", "import torch; torch.set_default_dtype(torch.float64)")
variant(
    "options_of_printing",
    "other options of printing",
    """
    import numpy, torch
    torch.set_printoptions(precision=2, sci_mode=True, threshold=3)
    numpy.set_printoptions(precision=1, suppress=True)
    """,
)
variant(
    "seeds",
    "seeds everywhere",
    "import random, numpy, torch; random.seed(0); numpy.random.seed(0); torch.manual_seed(0)",
)
variant("gradients_off", "gradients switched off", "import torch; torch.set_grad_enabled(False)")
variant(
    "strict_arithmetic",
    "anomalies and numpy's errors raised",
    """
    import numpy, torch
    numpy.seterr(all="raise")
    torch.autograd.set_detect_anomaly(True)
    torch.set_num_threads(1)
    """,
)
variant(
    "names_of_ours",
    "variables that happen to be called as the checks' own names",
    "ask = tell = seed = stage = id = _ = __ = print",
    where="cell",
)
variant("stars", "everything from numpy", "from numpy import *", where="cell")
variant("quits", "quit and exit in cells, as people end a session", "quit()\nexit()")
variant(
    "other_folder",
    "works in a folder of its own",
    "import os, tempfile; os.chdir(tempfile.mkdtemp())",
    where="cell",
)
variant(
    "package_for_other_things",
    "imports earlier lessons and the checks, as the notebook itself does",
    """
    from ppo_lessons import check, hint, setup
    from ppo_lessons.importance import importance_ratios
    setup()
    """,
)

# --- other ways to write an answer ---------------------------------------------------------

instead(
    "as_a_lambda",
    "a lambda",
    """
    clipped_surrogate = lambda ratios, advantages, *, clip_epsilon: (
        (ratios * advantages.detach()).minimum(
            ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages.detach()
        )
    )
    """,
)
instead(
    "as_an_object",
    "an object of a class",
    """
    import torch

    class Surrogate:
        def __call__(self, ratios, advantages, *, clip_epsilon):
            a = advantages.detach()
            return torch.min(ratios * a, ratios.clip(1 - clip_epsilon, 1 + clip_epsilon) * a)

    clipped_surrogate = Surrogate()
    """,
)
instead(
    "as_a_partial",
    "functools.partial, and a module of torch",
    """
    from functools import partial
    import torch

    def general(minimum, ratios, advantages, *, clip_epsilon):
        a = advantages.detach()
        return minimum(ratios * a, ratios.clip(1 - clip_epsilon, 1 + clip_epsilon) * a)

    clipped_surrogate = partial(general, torch.minimum)
    """,
)
instead(
    "in_single_precision",
    "float32 whatever comes in",
    """
    import torch

    def clipped_surrogate(ratios, advantages, *, clip_epsilon):
        r, a = ratios.float(), advantages.detach().float()
        return torch.min(r * a, r.clamp(1 - clip_epsilon, 1 + clip_epsilon) * a)
    """,
)
instead(
    "in_double_precision",
    "float64 whatever comes in",
    """
    import torch

    def clipped_surrogate(ratios, advantages, *, clip_epsilon):
        r, a = ratios.double(), advantages.detach().double()
        return torch.min(r * a, r.clamp(1 - clip_epsilon, 1 + clip_epsilon) * a)
    """,
)
instead(
    "slow_but_finite",
    "a tenth of a second for each call, and one second beside it",
    """
    import time
    import torch

    time.sleep(1)

    def clipped_surrogate(ratios, advantages, *, clip_epsilon):
        time.sleep(0.1)
        a = advantages.detach()
        return torch.min(ratios * a, ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * a)
    """,
)
instead(
    "numbers_as_a_list",
    "the six signs as a list",
    "gradient_signs = [1, 0, 1, -1, 0, -1]",
    exercise="gradient_signs",
)
instead(
    "calls_another_answer",
    "exercise 2 calls the answer to exercise 1",
    """
    def clipped_surrogate_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
        ratios = (log_probs - log_probs_old.detach()).exp()
        return -clipped_surrogate(ratios, advantages.detach(), clip_epsilon=clip_epsilon).mean()
    """,
    exercise="clipped_surrogate_loss",
)
instead(
    "typed_and_tested",
    "annotations, asserts, a check in the answer's own cell, a main guard",
    '''
    import torch
    from ppo_lessons import check

    def clipped_surrogate(
        ratios: torch.Tensor, advantages: torch.Tensor, *, clip_epsilon: float = 0.2
    ) -> torch.Tensor:
        """Ω: as in the paper."""
        ε, Â = clip_epsilon, advantages.detach()
        return torch.min(ratios * Â, ratios.clamp(1 - ε, 1 + ε) * Â)

    if __name__ == "__main__":
        assert clipped_surrogate(torch.ones(1), torch.ones(1)).item() == 1
        check.clipped_surrogate(clipped_surrogate)
    ''',
)


# --- cells ---------------------------------------------------------------------------------


@changes("helper_cell", "a cell of its own")
def _helper_cell(notebook: Notebook) -> None:
    place = place_of(notebook, "clip_fractions")
    helper = """
        import torch

        def my_ratios(new, old):
            return torch.exp(new - old)
    """
    theirs = "torch.exp(log_probs - log_probs_old)"
    answer = answer_of(notebook, "clip_fractions").replace(
        theirs, "my_ratios(log_probs, log_probs_old)"
    )
    put_answer(notebook, "clip_fractions", answer)
    assert "my_ratios" in answer_of(notebook, "clip_fractions")
    notebook["cells"].insert(place, code_cell(helper, "mine"))


@changes("helper_cell_after", "a helper defined below its use")
def _helper_cell_after(notebook: Notebook) -> None:
    _helper_cell(notebook)
    cells = notebook["cells"]
    helper = cells.pop(place_of(notebook, "clip_fractions") - 1)
    cells.insert(place_of(notebook, "clip_fractions") + 1, helper)


@changes("scratch_at_the_end", "a broken cell after the last answer")
def _scratch_at_the_end(notebook: Notebook) -> None:
    notebook["cells"].append(code_cell("1 / 0", "scratch"))


@changes("scratch_in_between", "a broken cell between two answers")
def _scratch_in_between(notebook: Notebook) -> None:
    place = place_of(notebook, "clip_fractions")
    notebook["cells"].insert(place, code_cell("print(undefined_thing)", "scratch"))


@changes("one_cell_for_two", "answer and check joined into one cell")
def _one_cell_for_two(notebook: Notebook) -> None:
    place = place_of(notebook, "clipped_surrogate")
    below = notebook["cells"].pop(place + 1)
    cell = notebook["cells"][place]
    cell["source"] = source_of(cell) + "\n" + source_of(below)


@changes("all_answers_in_one_cell", "all answers under the first marker, the others deleted")
def _all_in_one(notebook: Notebook) -> None:
    answers = [answer_of(notebook, exercise) for exercise in EXERCISES]
    for exercise in EXERCISES[1:]:
        del notebook["cells"][place_of(notebook, exercise)]
    put_answer(notebook, EXERCISES[0], "\n\n".join(answers))


@changes(
    "syntax_error_in_one",
    "a syntax error in the second answer",
    shares={"clipped_surrogate_loss": NONE},
)
def _syntax_error(notebook: Notebook) -> None:
    put_answer(notebook, "clipped_surrogate_loss", "def clipped_surrogate_loss(:\n    return\n")


@changes("checks_with_hints", "hints uncommented in the check cells")
def _with_hints(notebook: Notebook) -> None:
    for cell in check_cells(notebook):
        cell["source"] = source_of(cell).replace("# hint(", "hint(")


@changes("answer_with_other_arguments", "settings with defaults, by position or keyword", rest=ALL)
def _other_arguments(notebook: Notebook) -> None:
    answer = answer_of(notebook, "mended_loss")
    put_answer(notebook, "mended_loss", answer.replace("*, clip_epsilon", "clip_epsilon=0.2"))


# --- habits that a strict grader would punish -------------------------------------------------


@changes("cell_magic_above_the_marker", "%%time stands in the first line of the answer's cell")
def _cell_magic(notebook: Notebook) -> None:
    for exercise, magic in (("clipped_surrogate", "%%time"), ("mended_loss", "%%capture")):
        cell = notebook["cells"][place_of(notebook, exercise)]
        cell["source"] = magic + "\n" + source_of(cell)


@changes("marker_written_otherwise", "the marker was touched: spaces, a capital letter")
def _marker_touched(notebook: Notebook) -> None:
    cell = notebook["cells"][place_of(notebook, "clipped_surrogate")]
    cell["source"] = source_of(cell).replace("# answer: clip.", "#Answer:  clip.", 1)


@changes("slow_experiments", "two cells of the student's own that take longer than a cell may")
def _slow_experiments(notebook: Notebook) -> None:
    for exercise in ("clip_fractions", "mended_loss"):
        cell = code_cell("import time\nfor _ in range(150):\n    time.sleep(0.1)", "own")
        notebook["cells"].insert(place_of(notebook, exercise), cell)


@changes(
    "imports_in_the_first_cell",
    "an import was added to the cell that is given, against the rules",
    shares={"clipped_surrogate": ANY},
)
def _imports_above(notebook: Notebook) -> None:
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["source"] = "import math\n" + source_of(cell)
    answer = answer_of(notebook, "clipped_surrogate")
    put_answer(notebook, "clipped_surrogate", answer + "\nhalf = math.exp(-math.log(2))\n")


@changes("own_test_fails", "an assert of the student's own fails below a right answer")
def _own_test_fails(notebook: Notebook) -> None:
    answer = answer_of(notebook, "clipped_surrogate")
    put_answer(notebook, "clipped_surrogate", answer + "\nassert 1 + 1 == 3, 'hm'\n")


@changes("checks_not_there", "right answers, the check cells deleted")
def _checks_not_there(notebook: Notebook) -> None:
    checks = [*check_cells(notebook)]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in checks]


variant(
    "plots_inside",
    "a picture in the function",
    """
    import matplotlib.pyplot as plt
    plt.plot(ratios.detach().flatten(), advantages.detach().flatten(), "o")
    plt.show()
    """,
    where="inside",
)
variant("asks_for_input", "a cell that waits for a key", "input('go on?')", where="cell")
variant(
    "compares_with_the_package",
    "a cell that imports what is not there while answers are graded",
    "from ppo_lessons.clip import clipped_surrogate as theirs\nprint(theirs)",
    where="cell",
)
