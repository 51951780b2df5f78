"""Personal questions: nobody has another's constants, and each right answer is right by hand."""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from ppo_lessons.checks.exercises import FunctionExercise
from ppo_lessons.grading.ask import cases_of, lines_of, predictions_of
from ppo_lessons.grading.items.deal import Item, default_secret_path, personal_items, read_secret
from ppo_lessons.grading.items.questions import OWN, TOLERANCE, asked
from ppo_lessons.grading.sources import split_solution

SECRET = b"thirty-two bytes that nobody has"
LESSONS = (
    *("01_reinforce", "02_importance", "03_trust_region", "04_clip", "05_critic", "06_gae"),
    *("07_rollout", "08_training_loop", "09_continuous", "10_gpu_run"),
    *("11_ablations", "12_debugging", "13_tokens", "14_rlhf", "15_variants"),
    *("16_staleness", "17_evidence"),
)
WITHOUT_GRADIENTS = ("01", "06", "07", "10", "11", "12", "14", "15", "16", "17")
WITH_GRADIENTS = [stem for stem in LESSONS if stem[:2] not in WITHOUT_GRADIENTS]
STUDENTS = [f"s{number:02d}" for number in range(12)]


def items(stem: str, student: str, secret: bytes = SECRET) -> tuple[Item, Item]:
    function, numbers = personal_items(stem, student, secret)
    return function, numbers


def solved(item: Item) -> Any:
    names: dict[str, Any] = {}
    exec(split_solution(item.answer, number=1, count=0, blank=False)[0], names)
    return names[item.exercise.name]


def printed(item: Item, answer: Any, seed: int = 5) -> list[str]:
    exercise = item.exercise
    if isinstance(exercise, FunctionExercise):
        return lines_of(exercise, answer, cases_of(exercise, seed=seed))
    return predictions_of(exercise, answer)  # pyright: ignore[reportArgumentType]


# --- the numbers, by hand ------------------------------------------------------------------


def two_rooms_alike(*, stop_a, go_a, stop_b, go_b, p, gamma):
    value_b = (1 - p) * stop_b + p * go_b
    go_on = go_a + gamma * value_b
    value_a = (1 - p) * stop_a + p * go_on
    first, second = go_on - stop_a, p * (go_b - stop_b)
    slope = p * (1 - p)
    return [
        *(value_b, value_a, go_on - value_a),
        *(slope * (first + gamma * second), slope * (first + second)),
    ]


def three_arms(*, old, new, pays):
    mean = sum(q * pay for q, pay in zip(new, pays, strict=True))
    second = sum(q * q / p * pay * pay for p, q, pay in zip(old, new, pays, strict=True))
    return [
        new[1] / old[1],
        mean,
        second - mean**2,
        1 / sum(q * q / p for p, q in zip(old, new, strict=True)),
        sum(p * math.log(p / q) for p, q in zip(old, new, strict=True)),
    ]


def fence(*, old, new, gamma, fence, pay):
    def kl(p, q):
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    rooms, visits = [kl(p, q) for p, q in zip(old, new, strict=True)], gamma * old[0]
    fisher = old[0] * (1 - old[0])
    return [
        *rooms,
        visits,
        (rooms[0] + visits * rooms[1]) / (1 + visits),
        math.sqrt(2 * fence / fisher),
        pay * fisher / (fisher * math.sqrt(2 * fence / fisher)),
    ]


def five_samples(*, old, new, advantages, epsilon):
    ratios = [b / a for a, b in zip(old, new, strict=True)]
    plain = [ratio * each for ratio, each in zip(ratios, advantages, strict=True)]
    held = [min(max(ratio, 1 - epsilon), 1 + epsilon) for ratio in ratios]
    objective = [min(a, b * c) for a, b, c in zip(plain, held, advantages, strict=True)]
    outside = [ratio != kept for ratio, kept in zip(ratios, held, strict=True)]
    silent = [
        away and (ratio > 1) == (each > 0)
        for away, ratio, each in zip(outside, ratios, advantages, strict=True)
    ]
    slope = 0.0 if silent[-1] else -plain[-1] / 5
    return [
        *(sum(objective) / 5, sum(plain) / 5),
        sum(ratio for ratio, away in zip(ratios, outside, strict=True) if away),
        sum(each for each, still in zip(advantages, silent, strict=True) if still),
        slope,
    ]


def games_and_arms(*, values, returns, p, pays):
    def variance(numbers):
        mean = sum(numbers) / len(numbers)
        return sum((number - mean) ** 2 for number in numbers) / len(numbers)

    errors = [a - b for a, b in zip(returns, values, strict=True)]
    value = (1 - p) * pays[0] + p * pays[1]
    # scores are -p and 1 - p, so the estimate's mean is p(1 - p)(pay 2 - pay 1)
    weights = [(1 - p) * p**2, p * (1 - p) ** 2]
    best = sum(w * pay for w, pay in zip(weights, pays, strict=True)) / sum(weights)
    second = sum(w * (pay - value) ** 2 for w, pay in zip(weights, pays, strict=True))
    mean = p * (1 - p) * (pays[1] - pays[0])
    return [
        sum(error**2 for error in errors) / 8,
        1 - variance(errors) / variance(returns),
        sum(returns[1:]) / 3,
        *(value, best, second - mean**2),
    ]


def advantages_by_sum(rewards, values, next_values, terminated, ended, gamma, gae_lambda):
    """The double sum: each row adds up what follows until an end."""
    errors = [
        reward + gamma * (0.0 if over else following) - value
        for reward, value, following, over in zip(
            rewards, values, next_values, terminated, strict=True
        )
    ]
    found = []
    for start in range(len(rewards)):
        total = 0.0
        for later in range(start, len(rewards)):
            total += (gamma * gae_lambda) ** (later - start) * errors[later]
            if ended[later]:
                break
        found.append(total)
    return found


def four_rows(*, rewards, values, after, end, gamma, gae_lambda):
    over = [row == end for row in range(4)]
    found = advantages_by_sum(rewards, values, [*values[1:], after], over, over, gamma, gae_lambda)
    return [*found, found[0] + values[0]]


def two_ends(*, rewards, values, final, after, truncated_first, gamma, gae_lambda):
    true_end, limit = (3, 1) if truncated_first else (1, 3)
    following = [*values[1:], after]
    following[limit] = final
    over = [row == true_end for row in range(5)]
    found = advantages_by_sum(
        rewards, values, following, over, [row in (1, 3) for row in range(5)], gamma, gae_lambda
    )
    rest = final if truncated_first else 0.0
    return [
        *(found[row] for row in (0, 2, 3, 4)),
        rewards[0] + gamma * (rewards[1] + gamma * rest),
    ]


def own_run(**given):
    samples = given["num_envs"] * given["num_steps"]
    iterations = math.floor(given["total_steps"] / samples)
    updates = iterations * given["num_epochs"] * given["num_minibatches"]
    collecting = iterations * samples * given["step_ms"]

    def time(steps: int, epochs: int, price: float) -> float:
        return (
            steps * price + steps / samples * epochs * given["num_minibatches"] * given["update_ms"]
        )

    low, high = 0.0, 1000.0  # by halving: few steps with few epochs are cheaper when steps are
    for _ in range(100):
        middle = (low + high) / 2
        dear = time(given["few"], given["epochs"][0], middle) > time(
            given["many"], given["epochs"][1], middle
        )
        low, high = (low, middle) if dear else (middle, high)
    share = collecting / (collecting + updates * given["update_ms"])
    return [samples, iterations, updates, share, low]


def two_dimensions(*, means, sigmas, action, step, limit):
    def density(actions, means):
        found = 1.0
        for a, mean, sigma in zip(actions, means, sigmas, strict=True):
            found *= math.exp(-((a - mean) ** 2) / (2 * sigma**2)) / math.sqrt(
                2 * math.pi * sigma**2
            )
        return found

    before, moved = density(action, means), [means[0] + step, means[1]]
    sent = [max(-limit, min(limit, each)) for each in action]
    return [
        *(math.log(before), density(action, moved) / before),
        step**2 / (2 * sigmas[0] ** 2),
        math.log(2 * math.pi * math.e * sigmas[0] * sigmas[1]),
        density(sent, means) / before,
    ]


def run_by_numbers(**given):
    boards = 0
    for _ in range(given["num_steps"]):
        boards += 2 * given["num_envs"]
    updates = given["num_epochs"] * given["num_minibatches"]
    first, second = given["counts"]
    share = first / (first + second)
    a, b = given["means"]
    inside = [spread**2 for spread in given["spreads"]]
    # within the ranks, and between them
    variance = share * inside[0] + (1 - share) * inside[1] + share * (1 - share) * (a - b) ** 2
    return [
        *(boards * given["cells"] * each / 1e6 for each in (4, 1)),
        1e6 / (boards / 2) * updates,
        share * a + (1 - share) * b,
        math.sqrt(variance),
    ]


def study_by_numbers(*, first, second, chance, comparisons, seeds, width, more):
    kept = sorted(first)
    for _ in range(len(first) // 4):
        kept = kept[1:-1]
    pairs = [(x > y) + (x == y) / 2 for x in first for y in second]
    none = 1.0
    for _ in range(comparisons):
        none *= 1 - chance
    return [
        *(sum(kept) / len(kept), sum(second) / len(second), sum(pairs) / len(pairs)),
        *(1 - none, width / math.sqrt(more / seeds)),
    ]


def batch_of_responses(*, probabilities, sharpness, columns, lengths, entropies):
    powers = [each**sharpness for each in probabilities]
    counted = [entropy for n, entropy in zip(lengths, entropies, strict=True) for _ in range(n)]
    return [
        powers[0] / sum(powers),
        probabilities[2] * sum(powers) / powers[2],
        math.log(1 - min(probabilities)),
        sum(counted) / len(counted),
        sum(counted) / (3 * columns),
    ]


def learned_by_rounds(*, pays, gamma, night, limit):
    def settle(targets):
        values = [0.0] * 3
        for _ in range(500):  # each round puts the mean of the targets in place of the value
            values = targets(values)
        return values

    right = settle(lambda v: [pays[t] + gamma * (0.0, *v[:0:-1])[2 - t] for t in range(3)])
    late = settle(lambda v: [pays[t - 1] + gamma * (0.0, *v[:0:-1])[2 - t] for t in range(3)])
    room = settle(lambda v: [night + gamma * v[0]] * 3)
    cut = settle(lambda v: [sum(night + gamma * v[0] * (t > 0) for t in range(limit)) / limit] * 3)
    return [right[0], late[0], room[0], cut[0], sum(right) / 3]


def iteration_by_hand(**given):
    beta, factor = given["beta"], given["gae_lambda"]
    gaps = [new - old for new, old in zip(given["log_probs"], given["reference"], strict=True)]
    rewards = [-beta * gap for gap in gaps]
    rewards[2] += given["score"]
    over = [False, False, True]
    values = given["values"]
    advantages = advantages_by_sum(rewards, values, [*values[1:], 0.0], over, over, 1.0, factor)
    odds = given["share"] / (1 - given["share"]) * math.exp(given["pays"] / beta)
    first, second = map(math.exp, given["judged"])
    cut = sorted((0.8, given["kl"] / given["target"], 1.2))[1]
    return [
        *(given["score"] - beta * sum(gaps), advantages[0]),
        *(first / (first + second), odds / (1 + odds)),
        beta + beta * (cut - 1) * given["answers"] / given["horizon"],
    ]


def old_data_by_hand(**given):
    weight = given["proximal"] / given["behaviour"]
    weight = given["cap"] if weight > given["cap"] else weight
    edge, advantage = 1 + given["epsilon"], given["advantage"]
    ratio, stale = given["now"] / given["proximal"], given["now"] / given["behaviour"]
    answer = 1.0
    for _ in range(given["length"]):
        answer *= math.exp(given["drift"])
    mean = sum(given["weights"]) / 4
    return [
        *(weight, weight * (edge if ratio > edge else ratio) * advantage),
        *((edge if stale > edge else stale) * advantage, answer),
        mean**2 / (sum(each * each for each in given["weights"]) / 4),
    ]


def group_by_numbers(**given):
    size, right, drawn = given["size"], given["right"], given["drawn"]
    scores = [1.0] * right + [0.0] * (size - right)
    mean = sum(scores) / size
    variance = sum((score - mean) ** 2 for score in scores) / (size - 1)
    others = sum(scores[:-1]) / (size - 1)  # of the last, which is wrong
    alike, other = 1.0, 1.0
    for _ in range(drawn):
        alike, other = alike * given["chance"], other * (1 - given["chance"])
    first, second = math.exp(given["beta"] * given["up"]), math.exp(given["beta"] * given["down"])
    return [
        *((scores[0] - mean) / math.sqrt(variance), scores[-1] - others),
        *(alike + other, (1 / given["short"]) / (1 / given["long"]), first / (first + second)),
    ]


def release_by_numbers(**given):
    total, gained, lost = given["total"], given["gained"], given["lost"]
    share = (given["both"] + gained) / total
    inside, outside = (
        share,
        0.0,
    )  # halve the way to the last share that the count does not contradict
    for _ in range(100):
        middle = (inside + outside) / 2
        near = abs(share - middle) <= 2 * math.sqrt(middle * (1 - middle) / total)
        inside, outside = (middle, outside) if near else (inside, middle)
    flips = gained + lost
    uneven = sum(
        math.comb(flips, k) for k in range(flips + 1) if abs(2 * k - flips) >= gained - lost
    )
    gaps = [1] * gained + [-1] * lost + [0] * (total - flips)
    mean = sum(gaps) / total
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps)) / total
    wrong = 1 - given["accuracy"]
    none = 1.0
    for drawn in range(given["tries"]):
        none *= (given["samples"] - given["hits"] - drawn) / (given["samples"] - drawn)
    return [
        *(inside, uneven / 2**flips, mean - 2 * spread),
        (given["called"] - wrong) / (given["accuracy"] - wrong),
        1 - none,
    ]


BY_HAND: Mapping[str, Callable[..., list[float]]] = {
    "01_reinforce": two_rooms_alike,
    "02_importance": three_arms,
    "03_trust_region": fence,
    "04_clip": five_samples,
    "05_critic": games_and_arms,
    "06_gae": four_rows,
    "07_rollout": two_ends,
    "08_training_loop": own_run,
    "09_continuous": two_dimensions,
    "10_gpu_run": run_by_numbers,
    "11_ablations": study_by_numbers,
    "12_debugging": learned_by_rounds,
    "13_tokens": batch_of_responses,
    "14_rlhf": iteration_by_hand,
    "16_staleness": old_data_by_hand,
    "15_variants": group_by_numbers,
    "17_evidence": release_by_numbers,
}


@pytest.mark.parametrize("stem", LESSONS)
def test_numbers_are_those_found_by_hand(stem):
    for student in STUDENTS:
        _, item = items(stem, student)
        right = BY_HAND[stem](**item.constants)
        assert list(solved(item).values()) == pytest.approx(right, rel=1e-5, abs=1e-5)


# --- the functions, by hand ----------------------------------------------------------------


def felt_sums(rewards, ended, *, gamma, dislike, most):
    sums = torch.zeros_like(rewards)
    for t in range(rewards.shape[0]):
        for n in range(rewards.shape[1]):
            for k in range(t, rewards.shape[0]):
                reward = float(rewards[k, n])
                sums[t, n] += gamma ** (k - t) * (
                    dislike * reward if reward < 0 else min(reward, most)
                )
                if ended[k, n]:
                    break
    return sums


def softened(log_probs, log_probs_old, *, power, most, gain):
    return [
        gain * min((math.exp(a) / math.exp(b)) ** power, most)
        for a, b in zip(log_probs.tolist(), log_probs_old.tolist(), strict=True)
    ]


def late_price(log_probs, log_probs_old, advantages, *, price, limit, weight):
    pairs = zip(log_probs.tolist(), log_probs_old.tolist(), strict=True)
    ratios = [math.exp(a - b) for a, b in pairs]
    kl = sum(ratio - 1 - math.log(ratio) for ratio in ratios) / len(ratios)
    surrogate = sum(a * b for a, b in zip(ratios, advantages.tolist(), strict=True)) / len(ratios)
    return -weight * surrogate + (price * (kl - limit) if kl > limit else 0.0)


def own_clip(ratios, advantages, *, low, high, bound, most):
    found = []
    for ratio, advantage in zip(ratios.tolist(), advantages.tolist(), strict=True):
        counted = math.copysign(min(abs(advantage), most), advantage)
        if counted > 0:
            found.append(counted * min(ratio, 1 + high))
        else:
            found.append(counted * min(max(ratio, 1 - low), bound))
    return found


def one_sided(values, returns, *, over, under, knee):
    total = 0.0
    for value, came in zip(values.tolist(), returns.tolist(), strict=True):
        error = value - came
        loss = error**2 / 2 if abs(error) <= knee else knee * abs(error) - knee**2 / 2
        total += (over if value > came else under) * loss
    return total / len(values)


def cut_off(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda, most):
    found = torch.zeros_like(rewards)
    for n in range(rewards.shape[1]):
        for t in range(rewards.shape[0]):
            for k in range(t, rewards.shape[0]):
                future = 0.0 if terminated[k, n] else gamma * float(next_values[k, n])
                error = float(rewards[k, n]) + future - float(values[k, n])
                found[t, n] += (gamma * gae_lambda) ** (k - t) * max(-most, min(most, error))
                if terminated[k, n] or truncated[k, n]:
                    break
    return found


def believed_in_part(rewards, next_values, terminated, truncated, *, gamma, at_limit, at_cut):
    found = torch.zeros_like(rewards)
    last = rewards.shape[0] - 1
    for n in range(rewards.shape[1]):
        for t in range(last + 1):
            for k in range(t, last + 1):
                found[t, n] += gamma ** (k - t) * float(rewards[k, n])
                if terminated[k, n]:
                    break
                if truncated[k, n] or k == last:
                    trust = at_limit if truncated[k, n] else at_cut
                    found[t, n] += gamma ** (k - t + 1) * trust * float(next_values[k, n])
                    break
    return found


def fading(policy_loss, value_loss, entropy, *, progress, value_coef, first, last, enough):
    weight = (1 - progress) * first + progress * last
    bonus = weight * min(float(entropy), enough)
    return float(policy_loss) + value_coef * float(value_loss) - bonus


def two_widths(actions, means, *, below, above, most):
    found = []
    for action, mean in zip(actions.tolist(), means.tolist(), strict=True):
        sigma = below if action < mean else above
        far = min(abs(action - mean) / sigma, most)
        # half of each bell: their areas add up to 1
        peak = 1 / (math.sqrt(2 * math.pi) * (below + above) / 2)
        found.append(math.log(peak * math.exp(-(far**2) / 2)))
    return found


def three_limits(flops, moved, launches, *, speed, width, launch):
    rows = zip(flops.tolist(), moved.tolist(), launches.tolist(), strict=True)
    return [
        1e3 * max(a * 1e6 / (speed * 1e9), b * 1e6 / (width * 1e9), c * launch * 1e-6)
        for a, b, c in rows
    ]


def groups_rule(scores, *, lowest, highest, floor, price):
    runs = sorted(max(run, floor) for run in scores.tolist())
    for _ in range(int(lowest)):
        runs.remove(min(runs))
    for _ in range(int(highest)):
        runs.remove(max(runs))
    return sum(runs) / len(runs) - price * (max(runs) - min(runs))


def with_a_floor(chosen, other, *, temperature, third, floor):
    found = []
    for one, two in zip(chosen.tolist(), other.tolist(), strict=True):
        odds = [math.exp(logit / temperature) for logit in (one, two, third)]
        found.append(max(math.log(odds[0] / sum(odds)), floor))
    return found


def as_asked(log_probs, log_probs_old, advantages, *, farthest, largest, price):
    rows = zip(log_probs.tolist(), log_probs_old.tolist(), advantages.tolist(), strict=True)
    total = 0.0
    for new, old, wish in rows:
        move = min(max(new - old, -farthest), farthest)
        total += move * math.copysign(min(abs(wish), largest), wish) - price * abs(move)
    return total / len(advantages)


def own_price(log_probs, log_probs_reference, *, price, given_back, most):
    found = []
    for new, old in zip(log_probs.tolist(), log_probs_reference.tolist(), strict=True):
        if new > old:
            found.append(-price * min(new - old, most))
        else:
            found.append(given_back * price * (old - new))
    return found


def giving_way(log_probs_proximal, log_probs_behaviour, *, power, cap, share):
    found = []
    for new, old in zip(log_probs_proximal.tolist(), log_probs_behaviour.tolist(), strict=True):
        weight = (math.exp(new) / math.exp(old)) ** power
        found.append(weight if weight < cap else (1 - share) * cap + share * weight)
    return found


def own_baseline(scores, *, share, usual, added, blame):
    listed, found = scores.tolist(), []
    mean = sum(listed) / len(listed)
    spread = math.sqrt(sum((score - mean) ** 2 for score in listed) / (len(listed) - 1))
    for place, score in enumerate(listed):
        others = listed[:place] + listed[place + 1 :]
        left = score - share * sum(others) / len(others) - (1 - share) * usual
        found.append(left / (spread + added) * (blame if left < 0 else 1))
    return found


def unequal_judge(called, given, *, found, refused, floor):
    result = []
    for k, n in zip(called.tolist(), given.tolist(), strict=True):
        at_none, at_all = 1 - refused, found
        success = (k / n - at_none) / (at_all - at_none)
        result.append(min(max(success, floor), 1.0))
    return result


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "01_reinforce": felt_sums,
    "02_importance": softened,
    "03_trust_region": late_price,
    "04_clip": own_clip,
    "05_critic": one_sided,
    "06_gae": cut_off,
    "07_rollout": believed_in_part,
    "08_training_loop": fading,
    "09_continuous": two_widths,
    "10_gpu_run": three_limits,
    "11_ablations": groups_rule,
    "12_debugging": as_asked,
    "13_tokens": with_a_floor,
    "14_rlhf": own_price,
    "16_staleness": giving_way,
    "15_variants": own_baseline,
    "17_evidence": unequal_judge,
}


@pytest.mark.parametrize("stem", LESSONS)
def test_functions_give_what_a_slow_one_gives(stem):
    for student in STUDENTS[:3]:
        item, _ = items(stem, student)
        assert isinstance(item.exercise, FunctionExercise)
        for case in cases_of(item.exercise, seed=3):
            given, options = case.arguments()
            right = FUNCTIONS[stem](
                *(each.detach() for each in given.values()), **options, **item.constants
            )
            found = solved(item)(*given.values(), **options)
            assert found.detach().flatten().tolist() == pytest.approx(
                torch.as_tensor(right, dtype=torch.float64).flatten().tolist(), abs=1e-9
            )


@pytest.mark.parametrize("stem", WITH_GRADIENTS)
def test_gradients_reach_what_learns_and_nothing_else(stem):
    item, _ = items(stem, "ada")
    exercise = item.exercise
    assert isinstance(exercise, FunctionExercise)
    reached = set()
    for line in printed(item, solved(item)):
        reached |= {name for name, row in re.findall(r"\| (\w+): (\S+)", line) if row != "none"}
    assert reached == set(exercise.learns)


# --- one student, one question -------------------------------------------------------------


@pytest.mark.parametrize("stem", LESSONS)
def test_the_same_student_gets_the_same_questions(stem):
    assert items(stem, "ada") == items(stem, "ada")


@pytest.mark.parametrize("stem", LESSONS)
def test_no_two_of_a_class_have_the_same_constants(stem):
    for kind in (0, 1):
        texts = {items(stem, student)[kind].text for student in STUDENTS}
        assert len(texts) == len(STUDENTS)


def test_five_hundred_students_share_no_question():
    dealt = [items("06_gae", f"student{number}") for number in range(500)]
    assert len({item.text for item, _ in dealt}) == len({item.text for _, item in dealt}) == 500


@pytest.mark.parametrize("stem", LESSONS)
def test_another_secret_gives_other_constants(stem):
    other = items(stem, "ada", b"another secret, also long enough")
    assert all(a.text != b.text for a, b in zip(items(stem, "ada"), other, strict=True))


@pytest.mark.parametrize("stem", LESSONS)
def test_a_neighbours_answers_do_not_fit(stem):
    mine, theirs = items(stem, "ada"), items(stem, "max")
    function = [
        a != b
        for a, b in zip(
            printed(mine[0], solved(mine[0])), printed(mine[0], solved(theirs[0])), strict=True
        )
    ]
    assert sum(function) > len(function) / 2
    numbers = zip(
        printed(mine[1], solved(mine[1])), printed(mine[1], solved(theirs[1])), strict=True
    )
    assert all(a != b for a, b in numbers)


@pytest.mark.parametrize("stem", LESSONS)
def test_the_text_holds_every_constant(stem):
    for item in items(stem, "ada"):
        for constant in item.constants.values():
            for number in constant if isinstance(constant, list) else [constant]:
                if not isinstance(number, bool) and number not in (0, 1, 2, 3):
                    shown = (f"{number:g}", f"{number:,}", f"{number:g}".replace("-", "−"))
                    assert any(text in item.text for text in shown), (item.exercise.id, number)


# --- predictions ---------------------------------------------------------------------------


@pytest.mark.parametrize("stem", LESSONS)
def test_numbers_within_the_tolerance_are_printed_alike(stem):
    random = Random(stem)
    for student in STUDENTS:
        _, item = items(stem, student)
        right = solved(item)
        off = {
            letter: number + random.choice((-1, 1)) * TOLERANCE for letter, number in right.items()
        }
        assert printed(item, off) == printed(item, right)


@pytest.mark.parametrize("stem", LESSONS)
def test_numbers_far_outside_the_tolerance_are_not(stem):
    for student in STUDENTS:
        _, item = items(stem, student)
        right = solved(item)
        for sign in (-1, 1):
            off = {letter: number + sign * 12 * TOLERANCE for letter, number in right.items()}
            pairs = zip(printed(item, off), printed(item, right), strict=True)
            assert all(a != b for a, b in pairs)


@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("06_gae", {"gamma": 1.0}),
        ("06_gae", {"gae_lambda": 1.0}),
        ("07_rollout", {"final": 0.0}),
        ("01_reinforce", {"gamma": 1.0}),
        ("04_clip", {"epsilon": 0.9}),
        ("09_continuous", {"limit": 9.0}),
        ("10_gpu_run", {"counts": [1, 1]}),
        ("11_ablations", {"comparisons": 1}),
        ("12_debugging", {"limit": 1}),
        ("13_tokens", {"sharpness": 1.0}),
        ("14_rlhf", {"beta": 1.0}),
        ("16_staleness", {"cap": 9.0}),
        ("15_variants", {"beta": 1.0}),
        ("17_evidence", {"accuracy": 1.0}),
    ],
)
def test_a_usual_slip_changes_the_text(stem, change):
    for student in STUDENTS:
        _, item = items(stem, student)
        letters = solved(item)
        slipped = dict(zip(letters, BY_HAND[stem](**{**item.constants, **change}), strict=True))
        assert printed(item, slipped) != printed(item, letters)


@pytest.mark.parametrize("stem", LESSONS)
def test_the_blank_prints_no_number(stem):
    for item in items(stem, "ada"):
        names: dict[str, Any] = {}
        exec(split_solution(item.answer, number=1, count=0, blank=True)[0], names)
        assert all(line.endswith("no answer") for line in printed(item, names[item.exercise.name]))


@pytest.mark.parametrize("answer", [{"a": math.inf}, {"a": math.nan}, [1], "abc", None, {"a": "1"}])
def test_odd_predictions_are_printed_and_do_not_raise(answer):
    _, item = items("04_clip", "ada")
    assert len(printed(item, answer)) == 5


# --- what the kernel of a student finds ----------------------------------------------------


def test_questions_know_no_constants():
    for exercise in OWN:
        assert asked(exercise.id) is exercise
        words = " ".join(text for text, _ in getattr(exercise, "questions", {}).values())
        assert not re.search(r"[1-9]\.|\.\d", words)


def test_an_unknown_question_is_refused():
    with pytest.raises(ValueError, match="no question"):
        asked("clip.own_poem")


# --- the secret ----------------------------------------------------------------------------


def test_a_missing_secret_is_made_once_and_for_its_owner_only(tmp_path):
    path = tmp_path / "settings" / "secret"
    made = read_secret(path)
    assert len(made) >= 32
    assert read_secret(path) == made
    assert path.stat().st_mode & 0o077 == 0
    assert read_secret(tmp_path / "other") != made


def test_the_secret_lies_in_the_users_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_secret(None) == default_secret_path().read_bytes().strip()
    assert default_secret_path().is_relative_to(tmp_path)


def test_a_secret_in_the_project_or_a_short_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match="outside"):
        read_secret(Path(__file__).parent / "secret")
    (tmp_path / "short").write_text("abc")
    with pytest.raises(ValueError, match="at least 16"):
        read_secret(tmp_path / "short")
    with pytest.raises(ValueError, match="at least 16"):
        read_secret(b"abc")


def test_a_lesson_without_personal_questions_says_so():
    with pytest.raises(ValueError, match="no personal questions"):
        personal_items("00_start_here", "ada", SECRET)
