"""What are the personal questions asked with? Neither constants nor answers stand here.

The kernel of a student finds this file, and not `items/<lesson>.py`. The inputs know nothing of
the student's constants, so they are drawn widely enough to lie on both sides of each edge.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.exercises import Case, Exercise, FunctionExercise, NumbersExercise
from ppo_lessons.checks.gae import next_values_of

SMALL, SIDES, MANY, PULLS = "few numbers", "each side of each edge", "many numbers", "gradients"
ENDS, WIDE = "ends of episodes", "several environments"
COUNTS = {SMALL: 6, SIDES: 6, MANY: 3, PULLS: 5, ENDS: 4, WIDE: 3}  # cases of a stage
TOLERANCE = 0.0005

Draw = Callable[[Random, str], Mapping[str, Any]]


# --- what is drawn -------------------------------------------------------------------------


def signed(random: Random, low: float, high: float) -> float:
    """Draw a number of either sign."""
    return random.choice((-1, 1)) * random.uniform(low, high)


def row(random: Random, count: int, one: Callable[[], float]) -> list[float]:
    """Draw some numbers with four digits."""
    return [round(one(), 4) for _ in range(count)]


def size(random: Random, stage: str) -> int:
    """How many numbers a case of a stage has."""
    return {SMALL: 1, MANY: random.randint(8, 16)}.get(stage, random.randint(2, 4))


def shape(random: Random, stage: str) -> tuple[int, int]:
    """How many steps and environments a rollout of a stage has."""
    steps = {SMALL: random.randint(1, 3), MANY: random.randint(10, 16)}.get(stage)
    return steps or random.randint(4, 6), random.randint(2, 3) if stage == WIDE else 1


def grid(random: Random, steps: int, envs: int) -> list[list[float]]:
    """Draw a table of numbers with three digits."""
    return [[round(random.uniform(-3.0, 3.0), 3) for _ in range(envs)] for _ in range(steps)]


def flags(random: Random, steps: int, envs: int, often: float) -> list[list[bool]]:
    """Draw ends that are so frequent."""
    return [[random.random() < often for _ in range(envs)] for _ in range(steps)]


def often(stage: str) -> float:
    """How frequent ends are in a stage."""
    return {SMALL: 0.0, ENDS: 0.4}.get(stage, 0.2)


def whole_episodes(random: Random, stage: str) -> dict[str, Any]:
    """Draw rewards of episodes that all end within the rollout."""
    steps, envs = shape(random, stage)
    ended = flags(random, steps, envs, often(stage))
    ended[-1] = [True] * envs
    return {"rewards": grid(random, steps, envs), "ended": ended}


def cut_rollout(random: Random, stage: str) -> dict[str, Any]:
    """Draw a rollout with ends of both kinds, whose last row is cut off unless it has ended."""
    steps, envs = shape(random, stage)
    rewards, values, reached = (grid(random, steps, envs) for _ in range(3))
    terminated = flags(random, steps, envs, often(stage))
    truncated = flags(random, steps, envs, often(stage))
    ended = [
        [a or b for a, b in zip(*both, strict=True)]
        for both in zip(terminated, truncated, strict=True)
    ]
    return {
        "rewards": rewards,
        "values": values,
        "next_values": next_values_of(values, reached, ended),
        "terminated": terminated,
        "truncated": truncated,
    }


def moved(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw log-probabilities before and after an update that went a little or far."""
    count = size(random, stage)
    old = row(random, count, lambda: random.uniform(-3.0, -0.1))
    steps = row(random, count, lambda: signed(random, 0.05, 3.5))
    new = [round(a + b, 4) for a, b in zip(old, steps, strict=True)]
    return {"log_probs": new, "log_probs_old": old}


def moved_far_or_near(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw what a penalty is computed from: a policy that stayed near, or one that went far."""
    count = max(2, size(random, stage))
    far = random.random() < 0.5
    old = row(random, count, lambda: random.uniform(-2.0, -0.3))
    steps = row(random, count, lambda: signed(random, 0.6, 1.1) if far else signed(random, 0, 0.09))
    return {
        "log_probs": [round(a + b, 4) for a, b in zip(old, steps, strict=True)],
        "log_probs_old": old,
        "advantages": row(random, count, lambda: signed(random, 0.3, 2.5)),
    }


def ratios(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw ratios from rare to frequent, and advantages from weak to strong."""
    count = size(random, stage)

    def one() -> float:
        low, high = random.choice(((0.1, 0.55), (0.55, 1.0), (1.0, 1.6), (1.6, 7.0)))
        return random.uniform(low, high)

    return {
        "ratios": row(random, count, one),
        "advantages": row(random, count, lambda: signed(random, 0.2, 4.0)),
    }


def guesses(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw values and returns that lie near each other or far apart."""
    count = size(random, stage)
    values = row(random, count, lambda: random.uniform(-3.0, 3.0))
    errors = row(random, count, lambda: signed(random, *random.choice(((0.1, 0.5), (1.5, 5.0)))))
    returns = [round(a + b, 4) for a, b in zip(values, errors, strict=True)]
    return {"values": values, "returns": returns}


def three_losses(random: Random, stage: str) -> dict[str, Any]:
    """Draw the three numbers of a minibatch, and how much of the run is over."""
    over = {SMALL: (0.0, 0.0), PULLS: (0.2, 0.8)}.get(stage, (0.05, 1.0))
    return {
        "policy_loss": round(random.uniform(-1.0, 1.0), 4),
        "value_loss": round(random.uniform(0.1, 9.0), 4),
        "entropy": round(random.choice((random.uniform(0.05, 0.35), random.uniform(1.1, 2.0))), 4),
        "progress": round(random.uniform(*over), 3),
    }


def near_and_far(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw means, and actions on both sides of them, near and far."""
    count = size(random, stage)
    means = row(random, count, lambda: random.uniform(-2.0, 2.0))
    apart = row(random, count, lambda: signed(random, *random.choice(((0.1, 1.2), (2.5, 6.0)))))
    return {"actions": [round(a + b, 4) for a, b in zip(means, apart, strict=True)], "means": means}


def pieces_of_work(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw pieces of work that are large in one respect and small in the others."""
    found: dict[str, list[float]] = {"flops": [], "moved": [], "launches": []}
    for _ in range(size(random, stage)):
        large = random.choice(sorted(found))
        for name, least in (("flops", 20), ("moved", 6), ("launches", 100)):
            most = 40 if name == large else 1
            found[name].append(round(least * random.uniform(0.5, 1) * most, 3))
    return found


def labelled_models(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw how many labels some models got, and how many say "right"."""
    given = [float(random.randint(20, 400)) for _ in range(size(random, stage))]
    shares = [random.choice((random.uniform(0, 0.3), random.uniform(0.3, 1))) for _ in given]
    called = [float(round(share * each)) for share, each in zip(shares, given, strict=True)]
    return {"called": called, "given": given}


def scored_group(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw the scores of a group of two answers or more."""
    count = {SMALL: 2, MANY: random.randint(8, 16)}.get(stage, random.randint(3, 5))
    return {"scores": row(random, count, lambda: random.uniform(-2.0, 3.0))}


def some_runs(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw the scores of six runs or more, low ones and high ones."""
    count = {SMALL: 6, MANY: random.randint(12, 20)}.get(stage, random.randint(6, 9))
    return {"scores": row(random, count, lambda: random.uniform(-2.0, 9.0))}


def two_logits(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw logits of a word that was chosen, likely or not, and of another one."""
    count = size(random, stage)

    def chosen() -> float:
        return random.choice((random.uniform(-4.0, -1.2), random.uniform(-0.3, 3.0)))

    other = row(random, count, lambda: random.uniform(-0.5, 1.5))
    return {"chosen": row(random, count, chosen), "other": other}


def drawn_tokens(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw tokens that the policy likes better than the reference, or less, a little or by far."""
    drawn = moved(random, stage)
    return {"log_probs": drawn["log_probs"], "log_probs_reference": drawn["log_probs_old"]}


def old_samples(random: Random, stage: str) -> dict[str, list[float]]:
    """Draw samples that the policy would draw more often by now, or less, a little or by far."""
    drawn = moved(random, stage)
    return {
        "log_probs_proximal": drawn["log_probs"],
        "log_probs_behaviour": drawn["log_probs_old"],
    }


def without_values(random: Random, stage: str) -> dict[str, Any]:
    """Draw a rollout of which only what was reached is valued."""
    rollout = cut_rollout(random, stage)
    del rollout["values"]
    return rollout


# --- the questions -------------------------------------------------------------------------

NO_HINTS = ("", "", "")
_DRAWS: dict[str, Draw] = {}


def drawn_cases(exercise: FunctionExercise, stage: str, random: Random) -> tuple[Case, ...]:
    """Draw new inputs for one stage of a personal question.

    Args:
        exercise: one of `OWN`.
        stage: one of its stages.
        random: where the numbers come from.
    """
    return tuple(
        _case(exercise.id, stage, random, pulls=_pulls(exercise)) for _ in range(COUNTS[stage])
    )


def _pulls(exercise: FunctionExercise) -> bool:
    return bool(exercise.learns)


def _case(id: str, stage: str, random: Random, *, pulls: bool) -> Case:
    given = dict(_DRAWS[id](random, stage))
    options = {"progress": given.pop("progress")} if "progress" in given else {}
    return Case(
        stage=stage,
        name="a personal question",
        inputs=given,
        options=options,
        gradients=pulls and stage == PULLS,
    )


def function(
    lesson: str, draw: Draw, stages: tuple[str, ...], *, gives: Any, learns: tuple[str, ...] = ()
) -> FunctionExercise:
    """Make a question for a function with constants inside."""
    id = f"{lesson}.own_function"
    _DRAWS[id] = draw
    random = Random(id)
    return FunctionExercise(
        id=id,
        cases=tuple(_case(id, stage, random, pulls=bool(learns)) for stage in stages),
        gives=gives,
        learns=learns,
        mistakes={},
        hints=NO_HINTS,
    )


def numbers(lesson: str, *asked: str) -> NumbersExercise:
    """Make a question for predictions; the words name no number."""
    return NumbersExercise(
        id=f"{lesson}.own_numbers",
        questions={letter: (words, "") for letter, words in zip("abcdefgh", asked, strict=False)},
        tolerance=TOLERANCE,
        mistakes={},
        hints=NO_HINTS,
    )


FLAT = (SMALL, SIDES, MANY)
ROLLOUT = (SMALL, ENDS, WIDE, MANY)
OWN: tuple[FunctionExercise | NumbersExercise, ...] = (
    function("reinforce", whole_episodes, ROLLOUT, gives="same shape"),
    numbers(
        "reinforce",
        "the value of B",
        "the value of A",
        "the advantage of going on, at A",
        "the slope of J",
        "the usual update",
    ),
    function("importance", moved, (*FLAT, PULLS), gives="same shape", learns=("log_probs",)),
    numbers(
        "importance",
        "the ratio of the second arm",
        "the mean pay under the new policy",
        "the variance of one weighted pay",
        "the share of the batch that is left",
        "the KL, old policy first",
    ),
    function(
        "trust_region", moved_far_or_near, (*FLAT, PULLS), gives="scalar", learns=("log_probs",)
    ),
    numbers(
        "trust_region",
        "the KL at A",
        "the KL at B",
        "how often B is visited",
        "the mean KL",
        "the step inside the fence",
        "the price of the same step",
    ),
    function("clip", ratios, (*FLAT, PULLS), gives="same shape", learns=("ratios",)),
    numbers(
        "clip",
        "the clipped objective",
        "the plain objective",
        "the ratios outside",
        "the advantages without gradient",
        "the slope of the last sample",
    ),
    function("critic", guesses, (*FLAT, PULLS), gives="scalar", learns=("values",)),
    numbers(
        "critic",
        "the loss of the critic",
        "the explained variance",
        "the mean of the others",
        "the value",
        "the best baseline",
        "the variance that is left",
    ),
    function("gae", cut_rollout, ROLLOUT, gives="same shape"),
    numbers(
        "gae",
        "the advantage of row 0",
        "the advantage of row 1",
        "the advantage of row 2",
        "the advantage of row 3",
        "the return of row 0",
    ),
    function("rollout", without_values, ROLLOUT, gives="same shape"),
    numbers(
        "rollout",
        "the advantage of row 0",
        "the advantage of row 2",
        "the advantage of row 3",
        "the advantage of row 4",
        "the return of row 0",
    ),
    function(
        "training_loop",
        three_losses,
        (*FLAT, PULLS),
        gives="scalar",
        learns=("policy_loss", "value_loss", "entropy"),
    ),
    numbers(
        "training_loop",
        "the samples of an iteration",
        "the iterations",
        "the steps of the optimiser",
        "the share of collecting",
        "the price at which both are equally fast",
    ),
    function(
        "continuous",
        near_and_far,
        (*FLAT, PULLS),
        gives="same shape",
        learns=("actions", "means"),
    ),
    numbers(
        "continuous",
        "the log-probability",
        "the ratio after the step",
        "the KL of the step",
        "the entropy",
        "the ratio of the stored action",
    ),
    function("gpu_run", pieces_of_work, FLAT, gives="same shape"),
    numbers(
        "gpu_run",
        "the bytes as real numbers",
        "the bytes as true and false",
        "the steps of the optimiser",
        "the mean of both ranks",
        "the standard deviation of both ranks",
    ),
    function("ablations", some_runs, FLAT, gives="scalar"),
    numbers(
        "ablations",
        "the interquartile mean of the first",
        "the mean of the second",
        "the probability of improvement",
        "the chance that at least one is called apart",
        "the width with more seeds",
    ),
    function("debugging", moved_far_or_near, FLAT, gives="scalar"),
    numbers(
        "debugging",
        "the value at the start",
        "the value with late rewards",
        "the value of the room",
        "the value with merged flags",
        "the value of all against all",
    ),
    function("tokens", two_logits, (*FLAT, PULLS), gives="same shape", learns=("chosen", "other")),
    numbers(
        "tokens",
        "the sharper probability",
        "the ratio of the third word",
        "the mean log-ratio of the cut sampler",
        "the mean over tokens",
        "the mean over columns",
    ),
    function("rlhf", drawn_tokens, FLAT, gives="same shape"),
    numbers(
        "rlhf",
        "the sum of the rewards",
        "the advantage of the first token",
        "the probability of the preference",
        "the probability under the best policy",
        "the next price",
    ),
    function("staleness", old_samples, FLAT, gives="same shape"),
    numbers(
        "staleness",
        "the weight of the sample",
        "its decoupled objective",
        "its clipped objective",
        "the ratio of the answer",
        "the share that is left",
    ),
    function("variants", scored_group, FLAT, gives="tensor"),
    numbers(
        "variants",
        "the advantage of a right answer",
        "the advantage of a wrong one",
        "the share of silent groups",
        "how many times less",
        "the probability of the preference",
    ),
    function("evidence", labelled_models, FLAT, gives="same shape"),
    numbers(
        "evidence",
        "the lower end for the candidate",
        "the p-value",
        "the lower end of the difference",
        "the success of the third model",
        "the chance that a try is right",
    ),
)


def is_own(id: str) -> bool:
    """Whether a question is a personal one."""
    return id in _DRAWS or any(each.id == id for each in OWN)


def asked(id: str) -> Exercise:
    """Look up what may be asked: an exercise of a lesson, or a personal question.

    Args:
        id: `lesson.exercise`, `lesson.own_function` or `lesson.own_numbers`.

    Raises:
        ValueError: if there is no such question.
    """
    known = {**all_exercises(), **{each.id: each for each in OWN}}
    if id not in known:
        raise ValueError(f"no question {id!r}; expected one of {', '.join(known)}")
    return known[id]
