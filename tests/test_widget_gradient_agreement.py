"""GradientAgreement: its numbers against slow enumerations in fractions, and what a hand does."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest
import torch
from browsing import disagreements

from ppo_lessons.mdp import enumerate_trajectories, policy_gradient, softmax_policy
from ppo_lessons.widgets import GradientAgreement, gradient_agreement
from ppo_lessons.widgets.gradient_agreement import BATCH_SIZES, ESTIMATORS, SITUATIONS, ground

HALF = Fraction(1, 2)
# Written down from the drawing in `two_state`: where a move leads, what each action pays.
LEADS = {("valley", "move"): "hill", ("hill", "move"): "valley"}
PAYS = {("valley", "stay"): 0, ("valley", "move"): -1, ("hill", "stay"): 2, ("hill", "move"): 0}


def following(state, action):
    if action == "stay":
        return [(Fraction(1), state)]
    return [(HALF, state), (HALF, LEADS[state, action])]


@cache
def value(state, left, bonus):
    """V of a state with `left` steps to go, both actions equally likely."""
    if left == 0:
        return Fraction(0)
    return sum(
        HALF * (PAYS[state, action] + bonus + chance * value(after, left - 1, bonus))
        if chance == 1
        else HALF * chance * (PAYS[state, action] + bonus + value(after, left - 1, bonus))
        for action in ("stay", "move")
        for chance, after in following(state, action)
    )


def episodes(bonus, state="valley", left=3):
    """All episodes: probability, and the steps (state, action, reward, V of the state)."""
    if left == 0:
        yield Fraction(1), []
        return
    for action in ("stay", "move"):
        for chance, after in following(state, action):
            step = (state, action, PAYS[state, action] + bonus, value(state, left, bonus))
            for probability, rest in episodes(bonus, after, left - 1):
                yield HALF * chance * probability, [step, *rest]


def slow_estimates(estimator, bonus):
    """Probability and estimate of each episode, in the logits of "stay", by the definitions."""
    found = []
    for probability, steps in episodes(bonus):
        rewards = [reward for _, _, reward, _ in steps]
        vector = {"valley": Fraction(0), "hill": Fraction(0)}
        for t, (state, action, _, expected) in enumerate(steps):
            weight = {
                "full_return": sum(rewards),
                "reward_to_go": sum(rewards[t:]),
                "baseline": sum(rewards[t:]) - expected,
            }[estimator]
            vector[state] += (HALF if action == "stay" else -HALF) * weight
        found.append((probability, (vector["valley"], vector["hill"])))
    return found


def slow_noise_scale(estimator, bonus):
    drawn = slow_estimates(estimator, bonus)
    mean = [sum(p * vector[k] for p, vector in drawn) for k in (0, 1)]
    spread = sum(p * (vector[k] - mean[k]) ** 2 for p, vector in drawn for k in (0, 1))
    return spread / sum(each**2 for each in mean)


def slow_cosines(estimator, bonus, most):
    """Expected cosine of two batches of 1, 2, ... episodes: ‖E u‖², since both are independent."""
    drawn = slow_estimates(estimator, bonus)
    sums, cosines = {(Fraction(0), Fraction(0)): 1.0}, []
    for _ in range(most):
        grown = {}
        for (x, y), probability in sums.items():
            for chance, (dx, dy) in drawn:
                place = (x + dx, y + dy)
                grown[place] = grown.get(place, 0.0) + probability * float(chance)
        sums = grown
        mean = [0.0, 0.0]
        for (x, y), probability in sums.items():
            length = math.hypot(x, y)
            for k, part in enumerate((x, y)):
                mean[k] += probability * float(part) / length if length else 0.0
        cosines.append(mean[0] ** 2 + mean[1] ** 2)
    return cosines


# --- exact numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_has_the_gradient_of_j_as_its_mean(situation, estimator):
    here = ground(situation)
    mean = here.episodes.probabilities @ here.estimates[estimator]
    exact = policy_gradient(here.mdp, here.logits, gamma=1.0)[:, 0]
    torch.testing.assert_close(mean, exact, rtol=0, atol=1e-12)
    torch.testing.assert_close(here.mean, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("situation", "bonus"), [("first", 0), ("bonus", 1)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_noise_scale_is_that_of_a_slow_enumeration(situation, bonus, estimator):
    slow = slow_noise_scale(estimator, bonus)
    assert ground(situation).noise_scale[estimator] == pytest.approx(float(slow), rel=1e-12)


def test_the_noise_scales_by_name():
    scales = {name: ground(name).noise_scale for name in SITUATIONS}
    rounded = {
        name: [round(found[each], 2) for each in ESTIMATORS] for name, found in scales.items()
    }
    assert rounded["first"] == [11.41, 8.65, 5.95]
    assert rounded["bonus"] == [42.72, 27.95, 5.95]  # V takes the bonus away, exactly
    assert rounded["later"] == [49.2, 35.95, 41.37]  # and there V is not the best weight


def test_two_numbers_are_the_whole_gradient():
    here = ground("later")
    policy = softmax_policy(here.mdp, here.logits)
    episodes_listed = enumerate_trajectories(here.mdp, policy)
    weights = gradient_agreement.weights_of("reward_to_go", here.mdp, policy, episodes_listed)
    full = gradient_agreement.gradient_estimates(here.mdp, here.logits, episodes_listed, weights)
    short = full[:, [0, 2]]
    one, two = (full @ full.T).flatten(), 2 * (short @ short.T).flatten()
    torch.testing.assert_close(one, two, rtol=0, atol=1e-12)  # so every cosine is the same


# --- measured numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_measured_cosine_is_the_exact_one_of_small_batches(estimator):
    exact = slow_cosines(estimator, 0, 4)
    measured = gradient_agreement.agreement()["grid"]["first"][estimator]["cosine"]
    # 8192 batches: one standard error is below 0.006; the mean over pairs hardly adds to it
    assert measured[:4] == pytest.approx(exact, abs=0.02)
    noise = float(slow_noise_scale(estimator, 0))
    closed = [size / (size + noise) for size in (1, 2, 3, 4)]
    assert measured[:4] != pytest.approx(closed, abs=0.02)  # no closed form has this curve


@pytest.mark.parametrize(
    ("estimator", "before", "enough"),
    [("full_return", 6, 8), ("reward_to_go", 4, 6), ("baseline", 3, 4)],
)
def test_enough_is_where_the_exact_cosine_reaches_one_half(estimator, before, enough):
    exact = slow_cosines(estimator, 0, enough)
    assert exact[before - 1] < 0.5 <= exact[enough - 1]
    assert GradientAgreement(estimator=estimator).enough == enough


def test_a_bonus_for_each_step_hurts_all_but_the_one_that_subtracts_v():
    enough = {
        estimator: GradientAgreement(situation="bonus", estimator=estimator).enough
        for estimator in ESTIMATORS
    }
    assert enough == {"full_return": 48, "reward_to_go": 24, "baseline": 4}


def test_the_mean_over_all_pairs_is_that_of_a_double_loop():
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(8, 2, generator=generator, dtype=torch.float64)
    counts = torch.eye(8, dtype=torch.float64)
    found = gradient_agreement._agree([counts], vectors)["cosine"][0]
    cosines = [
        torch.nn.functional.cosine_similarity(one, two, dim=0).item()
        for i, one in enumerate(vectors)
        for j, two in enumerate(vectors)
        if i != j
    ]
    assert found == pytest.approx(sum(cosines) / len(cosines), abs=1e-4)  # stored with 4 digits


def test_batches_are_nested_and_of_their_size():
    probabilities = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    counts = gradient_agreement._drawn_counts(probabilities)
    assert [float(each[0].sum()) for each in counts] == list(map(float, BATCH_SIZES))
    assert all((after >= before).all() for before, after in pairwise(counts))
    shares = counts[-1].mean(0) / BATCH_SIZES[-1]
    torch.testing.assert_close(shares, probabilities, rtol=0, atol=2e-3)


def without_direction():
    """A pair of which one batch holds a single episode that earned nothing in all."""
    for pair in range(gradient_agreement.PAIRS):
        shown = GradientAgreement(num_episodes=1, pair=pair, revealed=True)
        if None in shown._pair():
            return shown
    raise AssertionError("no such pair")


def test_a_batch_without_a_direction_counts_as_zero():
    assert gradient_agreement.cosine_between(None, 100) == 0
    assert gradient_agreement.cosine_between(0, 600) == pytest.approx(0.5)
    assert gradient_agreement._tenths(torch.zeros(1, 2, dtype=torch.float64)) == [None]
    shown = without_direction()
    assert None in shown._pair()
    assert shown.pair_cosine == 0


def test_the_same_batches_are_drawn_each_time():
    again = gradient_agreement.agreement.__wrapped__()
    assert again == gradient_agreement.agreement()


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("one === null || two === null ? 0", "one === null || two === null ? 1"),
        ("(one - two) / 10", "(one + two) / 10"),
        ("cosine >= target", "cosine > 0.9 * target"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [GradientAgreement(), without_direction()]
    shown += [GradientAgreement.at(name) for name in list(GradientAgreement.STATES)[1:]]
    shown = [GradientAgreement(**(each.state() | {"revealed": True})) for each in shown]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_another_pair_turns_the_arrows_and_no_number_of_the_curve(visit):
    with visit(GradientAgreement(), state="full_return") as seen:
        seen.button("Another pair").click()
        assert seen.status() == repr(GradientAgreement(pair=1))


def test_the_slider_reaches_every_measured_size(visit):
    with visit(GradientAgreement(), state="full_return") as seen:
        slider = seen.page.get_by_role("slider", name="episodes in each batch")
        slider.focus()
        seen.page.keyboard.press("Home")
        for size in BATCH_SIZES:
            assert seen.status() == repr(GradientAgreement(num_episodes=size))
            seen.page.keyboard.press("ArrowRight")


def test_the_guess_is_drawn_beside_what_is_enough(visit):
    with visit(GradientAgreement()) as seen:
        seen.page.locator(".ppo-guess input").first.fill("2")
        seen.button("Reveal").click()
        names = seen.page.locator(".ppo-panels text:visible").all_text_contents()
        assert {"your guess", "enough"} <= set(names)
        assert "You said 2; 8 are enough." in seen.page.locator("main").inner_text()
