"""Lesson 10: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from torch import Tensor

from ppo_lessons.checks.exercises import (
    EDGES,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    Made,
    NumbersExercise,
    draw,
)

ENDS, COPIES = "ends of episodes", "several copies"
PASSES, LAYERS, DEEP = "how often each network is asked", "layers", "other networks"
BETWEEN, COUNTS = "ranks that differ", "ranks of other sizes"
LONG = "a gradient that is too long"
CONSTANT, VARIES = "the same decay everywhere", "decays that differ"


# --- a step that starts anew ---------------------------------------------------------------


def as_numbers(
    answer: Callable[..., Any],
    reached: Tensor,
    fresh: Tensor,
    terminated: Tensor,
    elapsed: Tensor,
    *,
    time_limit: int,
) -> Any:
    """Call an answer, and read flags and clocks as numbers."""
    returned = answer(reached, fresh, terminated, elapsed, time_limit=time_limit)
    if not isinstance(returned, (tuple, list)):
        return returned
    return tuple(each.double() if isinstance(each, Tensor) else each for each in returned)


def reset_case(
    stage: str,
    name: str,
    terminated: Sequence[bool],
    elapsed: Sequence[int],
    time_limit: int,
    *,
    seed: int,
    features: int = 2,
) -> Case:
    """One step of some copies; what they reached and where they would start is drawn."""
    random = Random(seed)
    return Case(
        stage=stage,
        name=name,
        inputs={
            "reached": draw(random, len(elapsed), features, low=1.0, high=5.0),
            "fresh": draw(random, len(elapsed), features, low=-0.5, high=-0.1),
            "terminated": list(terminated),
            "elapsed": list(elapsed),
        },
        options={"time_limit": time_limit},
        integers=("elapsed",),
    )


def steps_drawn(seed: int, copies: int, time_limit: int) -> tuple[list[bool], list[int]]:
    """Draw which copies terminated, and their clocks."""
    random = Random(seed)
    flags = [random.random() < 0.3 for _ in range(copies)]
    return flags, [random.randrange(time_limit) for _ in range(copies)]


RESET_CASES = (
    reset_case(SMALLEST, "one copy, nothing ends", [False], [3], 10, seed=1),
    reset_case(SMALLEST, "two copies, nothing ends", [False] * 2, [0, 4], 10, seed=2),
    reset_case(ENDS, "it terminated", [True], [3], 10, seed=3),
    reset_case(ENDS, "the limit is reached", [False], [9], 10, seed=4),
    reset_case(ENDS, "one step before the limit", [False], [8], 10, seed=5),
    reset_case(ENDS, "it terminated at the limit", [True], [9], 10, seed=6),
    reset_case(COPIES, "one of two terminated", [True, False], [2, 5], 10, seed=7),
    reset_case(COPIES, "one of three reached the limit", [False] * 3, [5, 5, 1], 6, seed=8),
    reset_case(COPIES, "one of each kind", [True, False, False, True], [1, 7, 2, 7], 8, seed=9),
    reset_case(EDGES, "a limit of one step", [False, True], [0, 0], 1, seed=10),
    reset_case(EDGES, "a limit far away", [True, False], [600, 998], 1000, seed=11, features=3),
    reset_case(SEEDED, "12 copies", *steps_drawn(12, 12, 4), 4, seed=12, features=3),
    reset_case(SEEDED, "9 copies", *steps_drawn(13, 9, 5), 5, seed=13, features=1),
)

# --- arithmetic of a step ------------------------------------------------------------------


def sizes(*widths: int) -> Made:
    """Give the widths of a network's layers, from its inputs to its outputs."""
    return Made(words=str(list(widths)), make=lambda: list(widths))


def flops_case(
    stage: str, name: str, policy: Sequence[int], critic: Sequence[int], num_epochs: int
) -> Case:
    """One pair of networks."""
    return Case(
        stage=stage,
        name=name,
        inputs={"policy_sizes": sizes(*policy), "critic_sizes": sizes(*critic)},
        options={"num_epochs": num_epochs},
    )


FLOPS_CASES = (
    flops_case(SMALLEST, "one layer each, one epoch", (2, 3), (2, 1), 1),
    flops_case(SMALLEST, "one layer each, two epochs", (3, 2), (3, 1), 2),
    flops_case(PASSES, "a large policy, a small critic", (5, 7), (5, 1), 1),
    flops_case(PASSES, "a small policy, a large critic", (2, 2), (2, 40, 1), 3),
    flops_case(LAYERS, "one hidden layer", (4, 8, 2), (4, 8, 1), 1),
    flops_case(LAYERS, "two hidden layers", (4, 8, 6, 2), (4, 5, 7, 1), 2),
    flops_case(DEEP, "CartPole", (4, 64, 64, 2), (4, 64, 64, 1), 4),
    flops_case(DEEP, "three hidden layers", (6, 16, 12, 10, 3), (6, 9, 9, 9, 1), 5),
    flops_case(DEEP, "a critic of its own shape", (4, 32, 2), (4, 16, 16, 16, 1), 8),
    flops_case(SEEDED, "some widths", (11, 23, 17, 5), (11, 19, 1), 6),
    flops_case(SEEDED, "other widths", (3, 31, 2), (3, 13, 29, 1), 10),
)

# --- statistics of several ranks -----------------------------------------------------------


def moments_case(stage: str, name: str, *moments: tuple[float, float, float], **more: Any) -> Case:
    """Count, mean and sum of squared deviations of each rank."""
    inputs = {"moments": [list(map(float, row)) for row in moments]}
    return Case(stage=stage, name=name, inputs=inputs, **more)


def moments_drawn(seed: int, ranks: int) -> list[tuple[float, float, float]]:
    """Draw the statistics of some ranks."""
    random = Random(seed)
    return [
        (
            random.randint(2, 40),
            round(random.uniform(-3, 3), 2),
            round(random.uniform(0.5, 30), 2),
        )
        for _ in range(ranks)
    ]


MOMENTS_CASES = (
    moments_case(SMALLEST, "one rank", (4, 1.5, 5.0)),
    moments_case(SMALLEST, "two ranks that are alike", (4, 1.5, 5.0), (4, 1.5, 5.0)),
    moments_case(BETWEEN, "two ranks, other means", (4, 1.0, 3.0), (4, 3.0, 5.0)),
    moments_case(BETWEEN, "no spread within a rank", (5, -1.0, 0.0), (5, 2.0, 0.0)),
    moments_case(COUNTS, "one rank is three times as large", (2, 1.0, 3.0), (6, 3.0, 5.0)),
    moments_case(COUNTS, "three ranks", (10, 0.5, 4.0), (3, -2.0, 1.5), (7, 1.0, 9.0)),
    moments_case(EDGES, "a rank without a sample", (0, 0.0, 0.0), (6, 2.0, 5.0), (3, -1.0, 2.0)),
    moments_case(EDGES, "a mean that is far from 0", (8, 50.0, 2.0), (4, 53.0, 1.0)),
    moments_case(EDGES, "one sample each", (1, 4.0, 0.0), (1, -2.0, 0.0), (1, 1.0, 0.0)),
    moments_case(SEEDED, "four ranks", *moments_drawn(1, 4)),
    moments_case(SEEDED, "eight ranks", *moments_drawn(2, 8)),
)

# --- one gradient for all ------------------------------------------------------------------


def gradient_case(
    stage: str, name: str, gradients: Sequence[Sequence[float]], limit: float, **more: Any
) -> Case:
    """The flat gradients of some ranks."""
    inputs = {"gradients": [list(row) for row in gradients]}
    return Case(stage=stage, name=name, inputs=inputs, options={"max_grad_norm": limit}, **more)


def gradients_drawn(seed: int, ranks: int, numbers: int) -> list[list[float]]:
    """Draw the gradients of some ranks."""
    return draw(Random(seed), ranks, numbers, low=-3.0, high=3.0)


GRADIENT_CASES = (
    gradient_case(SMALLEST, "one rank, short", [[0.2, 0.1]], 0.5),
    gradient_case(SMALLEST, "two ranks, short", [[0.2, 0.1, 0.3], [0.1, 0.3, 0.1]], 0.8),
    gradient_case(LONG, "one rank", [[3.0, -4.0]], 1.0),
    gradient_case(LONG, "two ranks, both long", [[3.0, -4.0, 1.0], [5.0, 2.0, -2.0]], 0.5),
    gradient_case(LONG, "one of two is long", [[6.0, 8.0, 2.0], [0.3, -0.1, 0.2]], 2.0),
    gradient_case(BETWEEN, "they nearly cancel", [[3.0, -4.0, 2.0], [-2.9, 4.2, -1.8]], 1.0),
    gradient_case(
        BETWEEN, "each is long, the mean is not", [[2.0, 1.0], [-1.0, 1.5], [0.5, -2.0]], 1.5
    ),
    gradient_case(EDGES, "more ranks than numbers", [[1.0], [2.0], [-0.5], [4.0]], 1.0),
    gradient_case(EDGES, "a limit that is far away", [[1.0, 2.0], [3.0, -1.0]], 50.0),
    gradient_case(SEEDED, "four ranks", gradients_drawn(1, 4, 6), 0.7),
    gradient_case(SEEDED, "five ranks, short", gradients_drawn(2, 5, 3), 9.0),
)

# --- a recurrence in a few passes ----------------------------------------------------------


def scan_case(
    stage: str,
    name: str,
    td_errors: Sequence[Sequence[float]],
    decays: Sequence[Sequence[float]],
    **more: Any,
) -> Case:
    """What surprised, and how much of what follows counts."""
    inputs = {
        "td_errors": [list(row) for row in td_errors],
        "decays": [list(row) for row in decays],
    }
    return Case(stage=stage, name=name, inputs=inputs, **more)


def across(*numbers: float) -> list[list[float]]:
    """One environment."""
    return [[number] for number in numbers]


def scan_drawn(seed: int, steps: int, envs: int) -> tuple[Any, Any]:
    """Draw a table of each; some rows are ends."""
    random = Random(seed)
    decays = [
        [
            0.0 if random.random() < 0.15 else round(random.uniform(0.5, 0.95), 2)
            for _ in range(envs)
        ]
        for _ in range(steps)
    ]
    return draw(random, steps, envs), decays


SCAN_CASES = (
    scan_case(SMALLEST, "one row", across(2.0), across(0.5)),
    scan_case(SMALLEST, "two rows", across(2.0, 4.0), across(0.5, 0.5)),
    scan_case(CONSTANT, "four rows", across(1.0, 2.0, -1.0, 4.0), across(*[0.5] * 4)),
    scan_case(
        CONSTANT, "seven rows", across(1.0, 2.0, -1.0, 4.0, 3.0, -2.0, 1.5), across(*[0.9] * 7)
    ),
    scan_case(
        ENDS, "an end in the second row", across(1.0, 2.0, -1.0, 4.0), across(0.5, 0.0, 0.5, 0.5)
    ),
    scan_case(
        ENDS,
        "two ends",
        across(1.0, 2.0, -1.0, 4.0, 3.0, -2.0),
        across(0.9, 0.9, 0.0, 0.9, 0.0, 0.9),
    ),
    scan_case(ENDS, "the last row is an end", across(1.0, 2.0, 5.0), across(0.8, 0.8, 0.0)),
    scan_case(VARIES, "three rows", across(1.0, 2.0, 3.0), across(0.9, 0.5, 0.2)),
    scan_case(
        VARIES,
        "six rows",
        across(1.0, 2.0, 3.0, -4.0, 5.0, 2.5),
        across(0.9, 0.5, 0.2, 0.8, 0.6, 0.7),
    ),
    scan_case(
        EDGES,
        "two environments",
        [[1.0, 4.0], [2.0, -1.0], [3.0, 2.0], [-2.0, 1.0], [1.5, 0.5]],
        [[0.9, 0.0], [0.9, 0.9], [0.0, 0.9], [0.9, 0.9], [0.9, 0.9]],
    ),
    scan_case(EDGES, "rows that all are ends", across(1.0, 2.0, 3.0), across(0.0, 0.0, 0.0)),
    scan_case(SEEDED, "9 steps, 3 environments", *scan_drawn(1, 9, 3)),
    scan_case(SEEDED, "16 steps, 2 environments", *scan_drawn(2, 16, 2)),
)

# --- mistakes in words ---------------------------------------------------------------------

RESET_MISTAKES = {
    "final_observation_lost": "next_observations show the new episode. They are what the step "
    "reached, before any reset: the critic must see the end of the old one.",
    "new_episode_not_seen": "observations are those of the old episode where it ended. The next "
    "action is chosen in the new one.",
    "results_exchanged": "The two tables are exchanged: observations are what the next action is "
    "chosen on.",
    "clock_not_counted": "The clock stands still. This step counts, too.",
    "clock_not_reset": "The clock of a new episode goes on from the old one. It starts at 0.",
    "clock_reset_at_limits_only": "The clock starts anew at time limits only, and not where the "
    "task ended.",
    "clock_reset_at_terminations_only": "The clock starts anew where the task ended only, and not "
    "at time limits.",
    "clock_starts_at_one": "The clock of a new episode starts at 1. It has made no step yet.",
    "limit_one_step_late": "One step too many fits into an episode. Count this step before you "
    "compare with the limit.",
    "limit_one_step_early": "An episode ends one step before its limit.",
    "never_truncated": "No step is ever truncated. A time limit is not the end of the task, so it "
    "has a flag of its own.",
    "ended_for_truncated": "truncated is set where the task ended, too. Then nobody can tell "
    "whether there is a future.",
    "truncated_unless_terminated": "truncated is taken back where the task ended in the same "
    "step. Both may hold; who counts the future looks at terminated.",
    "all_start_anew_together": "One copy ended, and all start anew. Choose row by row.",
    "only_the_terminated_start_anew": "Copies that reached their limit go on in the old episode.",
    "only_the_truncated_start_anew": "Copies whose task ended go on in the old episode.",
    "turned": "Those start anew that go on, and those that ended do not.",
    "reached_kept_at_ends_only": "next_observations are right where an episode ended and 0 "
    "elsewhere. They are what each step reached.",
}
FLOPS_MISTAKES = {
    "multiply_add_counted_once": "A multiplication and an addition are two operations.",
    "backward_forgotten": "The squeeze goes forwards only. It needs gradients, too.",
    "backward_as_dear_as_forward": "Backwards each layer has two products to make: for the slope "
    "of its weights, and for that of its inputs.",
    "first_layer_in_full": "Nobody asks for the slope of the observations: the first layer needs "
    "one product backwards, not two.",
    "epochs_forgotten": "Each sample is used once in each epoch. You counted one epoch.",
    "epochs_on_everything": "Only the squeeze is repeated. Collecting and scoring happen once.",
    "critic_asked_once": "While scoring, the critic is asked twice: about the state, and about the "
    "one that the step reached.",
    "critic_never_squeezed": "The critic learns, too: it is in the squeeze like the policy.",
    "policy_never_squeezed": "The policy is missing in the squeeze.",
    "collect_forgotten": "To draw the action, the policy was asked once.",
    "score_forgotten": "The critic is asked before the squeeze, for values.",
    "last_layer_forgotten": "The layer that gives the outputs is missing.",
    "widths_added": "A layer from m to n numbers has m times n weights.",
    "policy_asked_with_the_critic": "While scoring, only the critic is asked.",
}
MOMENTS_MISTAKES = {
    "means_averaged": "The mean of means counts a small rank like a large one. Weigh each with its "
    "count.",
    "spread_between_forgotten": "The ranks' means differ, and that is spread as well: to what lies "
    "within the ranks comes what lies between them.",
    "spread_between_not_weighted": "Each rank's distance from the mean of all counts as often as "
    "it has samples.",
    "spread_around_zero": "The distance between ranks is taken from 0. Take it from the mean of "
    "all.",
    "spread_subtracted": "What lies between the ranks is subtracted. It comes on top.",
    "counts_averaged": "The count is that of an average rank. The union has all samples.",
    "count_of_ranks": "You counted ranks. Asked for are samples.",
    "spread_averaged": "The sums of squares are averaged over the ranks. Add them up.",
    "variance_for_the_sum": "The third number is divided by the count. Asked for is the sum of "
    "squared deviations.",
    "sum_for_the_mean": "The second number is the sum of all samples. Divide by their count.",
    "largest_rank_only": "You gave the numbers of the largest rank.",
    "distance_not_squared": "The distance between a rank's mean and that of all must be squared.",
}
GRADIENT_MISTAKES = {
    "summed": "The gradients are added up and not averaged: with more ranks the steps would grow.",
    "clipped_before_averaging": "Each rank is shortened by itself. Average first: what is "
    "shortened is the gradient of all samples.",
    "never_clipped": "A gradient that is too long stays so.",
    "each_number_clipped": "Each number is cut by itself, and so the direction turns.",
    "own_gradient_only": "The gradient of the first rank is used, and the others learn nothing.",
    "always_at_the_limit": "A short gradient is made longer. Only those beyond the limit change.",
    "divided_twice": "It divides by the number of ranks twice.",
    "limit_times_ranks": "The limit grows with the number of ranks. An average does not.",
    "length_of_the_largest_number": "The length is the root of the sum of squares, not the largest "
    "number.",
    "averaged_over_numbers": "The average runs over the numbers of each gradient. It runs over the "
    "ranks.",
    "length_of_all_ranks": "The length is taken over the gradients of all ranks together, before "
    "they are averaged.",
    "squared_length": "It compares the square of the length with the limit.",
}
SCAN_MISTAKES = {
    "weights_squared": "The weight of a longer stretch is made of one place only. It is the "
    "product of two neighbouring stretches, and these differ as soon as the decays do.",
    "weights_kept": "The weights stay those of one row, while the stretches get longer.",
    "weights_moved_first": "The weights are those of the longer stretch already when the sums are "
    "joined.",
    "distance_grows_by_one": "The stretches double, so the distance must double as well.",
    "one_pass_only": "It joins neighbours once, and stops.",
    "one_pass_too_few": "The last pass is missing: the stretches do not reach the end yet.",
    "wraps_around": "Behind the last row it goes on with the first. Behind the last row there is "
    "nothing.",
    "runs_forwards": "It adds up what came before. An advantage looks at what follows.",
    "decay_of_the_next_row": "The decay of the next row is used. What row t keeps of its future is "
    "decays[t].",
    "decays_left_out": "What follows counts in full: the decays are left out.",
    "nothing_added": "It gives the TD errors as they are.",
    "ends_ignored": "It runs through ends as if they had the decay of the other rows.",
    "decays_squared": "Each decay counts twice: it is squared before anything is joined.",
    "first_distance_two": "It begins with a distance of two, so that neighbours never meet.",
}
LEDGER_MISTAKES = {
    "reached_boards_forgotten": "You counted one table of boards. The rollout also keeps what each "
    "step reached.",
    "channels_forgotten": "You counted cells of one channel. A board has four.",
    "powers_of_two": "You divided by 1,024 twice. A megabyte here is a million bytes.",
    "bits_for_bytes": "You counted one bit for each cell. A bool takes a byte.",
    "doubles": "A float32 takes four bytes, not eight.",
    "arithmetic_per_iteration": "You took the operations for those of all copies together. They "
    "are per step of one.",
    "multiply_adds": "You halved the operations. They are operations already.",
    "launch_per_step": "You let each step of each copy be a launch. One launch serves all copies.",
    "steps_of_one_copy": "You counted the steps of one copy. All of them step.",
    "graph_without_nodes": "You paid for one node. The graph holds all of them.",
    "difference_of_launches": "You subtracted the two costs of a launch. In a graph the cheaper "
    "one is paid instead.",
    "environment_alone": "You gave the speed of the environment alone.",
    "slower_of_the_two": "You gave the speed of the slower part. Both must be done, one after the "
    "other: add the times.",
    "speeds_averaged": "You averaged speeds. Times add up, speeds do not.",
    "ratio_of_the_parts": "You divided the parts by each other. What is left is the learning.",
    "share_added": "You added the share of the environment to 1. Divide the old time by the new "
    "one.",
    "reduction_free": "You forgot that the two GPUs must talk to each other.",
    "one_reduction": "You counted one reduction. There is one for each optimiser step.",
    "work_split": "You split the work of one. Here each GPU has as many copies as the one had.",
    "per_gpu": "You gave the speed of each of the two. Asked for is that of both together.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="gpu_run.autoreset",
        cases=RESET_CASES,
        gives="several",
        parts=("observations", "next_observations", "truncated (1 yes, 0 no)", "elapsed"),
        through=as_numbers,
        mistakes=RESET_MISTAKES,
        hints=(
            "Count first, then decide who ended, then choose row by row. One table is not changed "
            "at all.",
            "A choice between two rows, made for all copies at once, wants a condition with as "
            "many axes as the rows: the flag of a copy is to stand beside all its numbers.",
            "clock = elapsed + 1;  truncated ⇔ clock ≥ limit;  next = reached;  "
            "ended = terminated ∨ truncated;  clock of an ended copy = 0",
        ),
    ),
    FunctionExercise(
        id="gpu_run.flops_per_env_step",
        cases=FLOPS_CASES,
        gives="number",
        returns="one number: floating-point operations per environment step",
        mistakes=FLOPS_MISTAKES,
        hints=(
            "Write down first what one network costs forwards, and what it costs backwards. Then "
            "list who is asked when.",
            "Forwards a layer from m to n numbers makes m·n multiplications and as many additions. "
            "Backwards it makes twice as many of both, the first layer once.",
            "policy forwards + 2·critic forwards + K·(forwards + backwards of both); "
            "forwards = Σ 2·m·n;  backwards = 2·forwards − 2·m₁·n₁",
        ),
    ),
    FunctionExercise(
        id="gpu_run.combine_moments",
        cases=MOMENTS_CASES,
        gives="tensor",
        returns="a torch.Tensor with three numbers: count, mean, sum of squared deviations",
        mistakes=MOMENTS_MISTAKES,
        hints=(
            "Put all samples into one heap in your mind. How many are there, and what is their "
            "mean?",
            "The squared deviations from the mean of all have two sources: within each rank, and "
            "between a rank's mean and that of all.",
            "n = Σ nᵢ;  mean = Σ nᵢ·meanᵢ / n;  m2 = Σ ( m2ᵢ + nᵢ·(meanᵢ − mean)² )",
        ),
    ),
    FunctionExercise(
        id="gpu_run.averaged_gradient",
        cases=GRADIENT_CASES,
        gives="tensor",
        returns="a torch.Tensor with one number for each parameter",
        mistakes=GRADIENT_MISTAKES,
        hints=(
            "Which gradient would one process have that held the samples of all ranks?",
            "Two steps, and their order matters: what is measured and shortened is the gradient "
            "that all ranks will apply.",
            "g = Σ gᵢ / R over R ranks;  then g·min(1, c / |g|)",
        ),
    ),
    FunctionExercise(
        id="gpu_run.mended_scan",
        cases=SCAN_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of td_errors",
        mistakes=SCAN_MISTAKES,
        starts_with="weights_squared",
        hints=(
            "After a pass, sums[t] holds a stretch of rows from t on, and weights[t] says how much "
            "of what lies behind that stretch counts. Try it by hand with four rows and one end.",
            "Two stretches are joined: the first one's, and the one that begins where it ends. "
            "What lies behind both counts by the product of their two weights.",
            "(s, w) joined with (s', w') is (s + w·s', w·w')",
        ),
    ),
    NumbersExercise(
        id="gpu_run.ledger_by_hand",
        questions={
            "a": (
                "MB of boards in the rollout, as bool",
                "Which two tables hold boards, how many boards has each, how many numbers a board?",
            ),
            "b": ("MB of boards in the rollout, as float32", "Bytes of one number."),
            "c": (
                "thousand steps a second that the arithmetic allows",
                "Operations a second over operations a step.",
            ),
            "d": (
                "million steps a second that the launches allow",
                "Steps of an iteration over the time of its launches.",
            ),
            "e": (
                "million steps a second that the nodes of a graph allow",
                "As before, with what a node of a graph costs.",
            ),
            "f": (
                "thousand steps a second of the whole",
                "How long does one step take, environment and learning together?",
            ),
            "g": (
                "how many times as fast it gets if the environment takes no time",
                "The old time of a step over the new one.",
            ),
            "h": (
                "how many times as many steps a second two GPUs make",
                "Twice the steps, in the time of one iteration and its reductions.",
            ),
        },
        tolerance=0.002,
        mistakes=LEDGER_MISTAKES,
        hints=(
            "Write the time first, never the speed. Times of things that follow each other add up.",
            "For a and b multiply out steps, copies, numbers of a board, and two tables. For d and "
            "e one launch serves all copies at once.",
            "a = 2·T·N·400 / 10⁶;  d = T·N / (launches·µs);  f = 1 / (t₁ + t₂);  "
            "h = 2·t / (t + steps·r)",
        ),
    ),
)
