"""Counts, a judge who errs, the gate and the report, against enumeration and numbers by hand."""

import json
from dataclasses import replace
from itertools import combinations, product
from math import comb, isnan, nan, sqrt

import pytest
import torch
from mistakes import under_test

from ppo_lessons import evidence
from ppo_lessons.evidence import (
    STAGES,
    Answered,
    Count,
    Evaluation,
    Gate,
    GateConfig,
    RecordedRun,
    Versions,
    calibrate,
    distinct_share,
    draw_count,
    from_trl,
    from_verl,
    judge_labels,
    release_report,
    replay,
    stage_of,
    to_trl,
    to_verl,
    vocabulary_sha256,
)
from ppo_lessons.rlhf import RLHFConfig

wilson = under_test(evidence.wilson)
mcnemar = under_test(evidence.mcnemar)
pass_at_k = under_test(evidence.pass_at_k)
estimate_success = under_test(evidence.estimate_success)
compare_on_same_prompts = under_test(evidence.compare_on_same_prompts)

Z95 = 1.959963984540054


def right(*flags):
    return torch.tensor(flags, dtype=torch.bool)


# --- counts ---------------------------------------------------------------------------------------


def test_the_ends_of_wilsons_interval_are_shares_that_the_count_only_just_contradicts(wilson):
    for hits, total in [(1, 7), (5, 10), (30, 64), (511, 512)]:
        for p in wilson(Count(hits, total), confidence=0.95):
            assert abs(hits / total - p) == pytest.approx(Z95 * sqrt(p * (1 - p) / total), abs=1e-9)


def test_none_of_ten_does_not_make_it_impossible(wilson):
    low, high = wilson(Count(0, 10), confidence=0.95)
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(3.841458820694124 / 13.841458820694124, abs=1e-9)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.85])
def test_wilsons_interval_holds_the_truth_about_as_often_as_it_says(wilson, share):
    total, held = 64, 0.0
    for hits in range(total + 1):
        low, high = wilson(Count(hits, total), confidence=0.95)
        if low <= share <= high:
            held += comb(total, hits) * share**hits * (1 - share) ** (total - hits)
    assert 0.92 < held < 0.985


def test_mcnemar_by_hand(mcnemar):
    assert mcnemar(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar(5, 0) == pytest.approx(2 / 32)
    assert mcnemar(0, 0) == 1
    assert mcnemar(3, 3) == 1


def test_mcnemar_is_the_share_of_coin_throws_that_are_as_uneven(mcnemar):
    gained, lost = 7, 2
    throws = list(product((0, 1), repeat=gained + lost))
    as_uneven = [t for t in throws if abs(2 * sum(t) - len(t)) >= gained - lost]
    assert mcnemar(gained, lost) == pytest.approx(len(as_uneven) / len(throws))


def test_mcnemar_does_not_care_which_model_is_called_the_baseline(mcnemar):
    assert mcnemar(9, 3) == mcnemar(3, 9)


def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_answer(pass_at_k):
    for num_right, num_samples, k in [(1, 5, 2), (2, 6, 3), (0, 4, 2), (4, 4, 1), (3, 8, 6)]:
        answers = [True] * num_right + [False] * (num_samples - num_right)
        draws = list(combinations(answers, k))
        expected = sum(any(draw) for draw in draws) / len(draws)
        assert pass_at_k(num_right, num_samples, k) == pytest.approx(expected, abs=1e-12)


def test_pass_at_k_is_right_on_average(pass_at_k):
    share, num_samples, k = 0.3, 8, 4
    mean = sum(
        comb(num_samples, c) * share**c * (1 - share) ** (num_samples - c)
        * pass_at_k(c, num_samples, k)
        for c in range(num_samples + 1)
    )  # fmt: skip
    assert mean == pytest.approx(1 - (1 - share) ** k, abs=1e-12)


def test_the_mean_of_pass_at_k_is_taken_over_prompts():
    answers = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    assert evidence.mean_pass_at_k(answers, 2) == pytest.approx((0.5 + 0) / 2)


def test_prompts_are_compared_one_by_one(compare_on_same_prompts):
    baseline = right(1, 1, 0, 0, 0, 0, 1, 0)
    candidate = right(1, 0, 1, 1, 1, 0, 1, 0)
    found = compare_on_same_prompts(baseline, candidate, confidence=0.95)
    assert (found.gained, found.lost, found.total) == (3, 1, 8)
    assert found.p_value == pytest.approx(2 * (1 + 4) / 16)


def test_what_is_hard_for_both_cancels_in_the_interval(compare_on_same_prompts):
    generator = torch.Generator().manual_seed(0)
    baseline = torch.rand(400, generator=generator) < 0.5
    candidate = baseline.clone()
    candidate[:20] = True
    found = compare_on_same_prompts(baseline, candidate, confidence=0.95)
    gaps = candidate.double() - baseline.double()
    half = Z95 * sqrt(gaps.var(unbiased=False).item() / len(gaps))
    assert found.difference.low == pytest.approx(gaps.mean().item() - half, abs=1e-12)
    assert found.difference.high == pytest.approx(gaps.mean().item() + half, abs=1e-12)
    assert found.difference.low > 0


def test_the_order_of_prompts_is_of_no_matter(compare_on_same_prompts):
    generator = torch.Generator().manual_seed(1)
    baseline, candidate = torch.rand(2, 50, generator=generator) < 0.5
    for _ in range(5):
        order = torch.randperm(50, generator=generator)
        assert compare_on_same_prompts(baseline, candidate, confidence=0.9) == (
            compare_on_same_prompts(baseline[order], candidate[order], confidence=0.9)
        )


@pytest.mark.messages
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evidence.wilson(Count(3, 2), confidence=0.95), "3 of 2"),
        (lambda: evidence.wilson(Count(0, 0), confidence=0.95), "at least one"),
        (lambda: evidence.wilson(Count(1, 2), confidence=95), "0.95 is usual"),
        (lambda: evidence.mcnemar(-1, 2), "at least 0"),
        (lambda: evidence.pass_at_k(1, 3, 4), "at least k answers"),
        (lambda: evidence.mean_pass_at_k(right(1, 0), 1), "prompts, samples"),
        (lambda: evidence.count_right(right()), "at least one prompt"),
        (
            lambda: evidence.compare_on_same_prompts(right(1), right(1, 0), confidence=0.95),
            "expected",
        ),
    ],
)
def test_a_count_that_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.messages
def test_numbers_for_booleans_are_refused():
    with pytest.raises(TypeError, match=r"torch\.bool"):
        evidence.count_right(torch.tensor([1.0, 0.0]))


# --- the judge ------------------------------------------------------------------------------------


def mean_over_labels(estimate_success, success, accuracy, total):
    """The mean estimate, over all that a judge may say, each with its probability."""
    said = success * accuracy + (1 - success) * (1 - accuracy)
    return sum(
        comb(total, k) * said**k * (1 - said) ** (total - k)
        * estimate_success(Count(k, total), accuracy=accuracy).success
        for k in range(total + 1)
    )  # fmt: skip


@pytest.mark.parametrize("success", [0.0, 0.35, 0.9])
@pytest.mark.parametrize("accuracy", [0.6, 0.85, 1.0])
def test_the_errors_of_the_judge_cancel_on_average(estimate_success, success, accuracy):
    mean = mean_over_labels(estimate_success, success, accuracy, total=20)
    assert mean == pytest.approx(success, abs=1e-12)


def test_the_standard_error_is_that_of_many_judgements(estimate_success):
    generator = torch.Generator().manual_seed(0)
    counts = [
        draw_count(0.6, num_labels=64, accuracy=0.85, generator=generator) for _ in range(4000)
    ]
    found = [estimate_success(count, accuracy=0.85) for count in counts]
    spread = torch.tensor([each.success for each in found]).std().item()
    claimed = torch.tensor([each.standard_error for each in found]).mean().item()
    assert claimed == pytest.approx(spread, rel=0.05)


def test_labels_that_all_agree_are_not_certain(estimate_success):
    assert estimate_success(Count(64, 64), accuracy=0.85).standard_error > 0.01


def test_a_judge_errs_on_right_and_wrong_answers_alike():
    answers = right(1, 0).repeat(20_000)
    labels = judge_labels(answers, accuracy=0.8, generator=torch.Generator().manual_seed(0))
    found = calibrate(labels, answers)
    assert found.sensitivity == pytest.approx(0.8, abs=0.01)
    assert found.specificity == pytest.approx(0.8, abs=0.01)


def test_a_judge_of_accuracy_one_is_the_verifier():
    answers = right(1, 0, 1)
    labels = judge_labels(answers, accuracy=1.0, generator=torch.Generator().manual_seed(0))
    assert torch.equal(labels, answers)


def test_calibration_by_hand():
    found = calibrate(right(1, 1, 0, 0, 1), right(1, 1, 1, 0, 0))
    assert (found.accuracy, found.sensitivity, found.specificity) == (
        pytest.approx(3 / 5), pytest.approx(2 / 3), pytest.approx(1 / 2),
    )  # fmt: skip
    assert calibrate(right(1), right(1)).specificity is None


@pytest.mark.messages
def test_a_judge_who_knows_nothing_is_refused():
    with pytest.raises(ValueError, match="knows nothing"):
        evidence.estimate_success(Count(3, 4), accuracy=0.5)


@pytest.mark.messages
def test_a_success_above_one_is_refused():
    with pytest.raises(ValueError, match=r"success is 1\.5"):
        draw_count(1.5, num_labels=1, accuracy=1.0, generator=torch.Generator())


# --- the gate -------------------------------------------------------------------------------------

SURE = GateConfig(num_labels=1000, accuracy=1.0, limits={})


def labels(success):
    return Count(round(1000 * success), 1000)


def watch(gate, rows, fresh=None):
    """Show a gate rows of (score, success of 1,000 labels); give its decisions.

    Fresh labels say the same, unless `fresh` says otherwise: {iteration: success}.
    """
    truth = {0: 0.4} | {number: success for number, (_, success) in enumerate(rows, start=1)}
    truth |= fresh or {}
    decisions = []
    for number, (score, success) in enumerate(rows, start=1):
        seen = Evaluation(number, score, labels(success))
        decisions.append(gate.update(seen, lambda iteration: labels(truth[iteration])))
        if decisions[-1].action == "roll back":
            break
    return decisions


def sure_gate(**changes):
    return Gate(replace(SURE, **changes), baseline=Count(400, 1000), score=0.0)


def test_a_proxy_that_rises_while_success_falls_is_rolled_back_to_the_best():
    decisions = watch(sure_gate(), [(0.3, 0.6), (0.9, 0.59), (1.5, 0.5)])
    assert [each.action for each in decisions] == ["continue", "continue", "roll back"]
    assert decisions[-1].best == 1
    assert "while the judged success fell from 0.60 to 0.50" in decisions[-1].reasons[0]


def test_a_loss_that_fresh_labels_do_not_see_stops_nothing():
    decisions = watch(sure_gate(), [(0.3, 0.6), (0.9, 0.5), (1.0, 0.6)], fresh={2: 0.6})
    assert [each.action for each in decisions] == ["continue"] * 3


def test_a_best_that_was_luck_stops_nothing():
    gate = sure_gate()
    decisions = watch(gate, [(0.3, 0.8), (0.9, 0.6), (1.0, 0.6)], fresh={1: 0.6})
    assert [each.action for each in decisions] == ["continue"] * 3


def test_success_that_falls_with_the_proxy_is_found_by_the_baseline():
    decisions = watch(sure_gate(), [(0.3, 0.6), (-0.5, 0.2)])
    assert decisions[-1].action == "roll back"
    assert decisions[-1].best == 1
    assert "below 0.40, that of the unmodified model" in decisions[-1].reasons[0]


def test_success_below_the_best_alone_does_not_stop_a_run():
    decisions = watch(sure_gate(), [(0.5, 0.6), (0.4, 0.5), (0.4, 0.5), (0.4, 0.5)])
    assert all(each.action == "continue" for each in decisions)


def test_the_best_is_worth_what_fresh_labels_say():
    gate = sure_gate()
    watch(gate, [(0.3, 0.7)], fresh={1: 0.55})
    assert gate.best.success == pytest.approx(0.55)


def test_fresh_labels_are_asked_for_only_where_something_hangs_on_them():
    gate, asked = sure_gate(), []

    def relabel(iteration):
        asked.append(iteration)
        return {0: labels(0.4), 1: labels(0.6)}.get(iteration, labels(0.3))

    gate.update(Evaluation(1, 0.3, labels(0.6)), relabel)
    gate.update(Evaluation(2, 0.2, labels(0.55)), relabel)
    assert asked == [1]
    gate.update(Evaluation(3, 0.9, labels(0.5)), relabel)
    assert asked == [1, 3, 1]


@pytest.mark.messages
def test_a_limit_stops_at_once_and_a_missing_metric_is_named():
    gate = sure_gate(limits={"no_eos": (0.0, 0.2)})
    with pytest.raises(ValueError, match="no metric 'no_eos'"):
        gate.update(Evaluation(1, 0.1, labels(0.5)), lambda _: labels(0.5))
    seen = Evaluation(1, 0.1, labels(0.5), {"no_eos": 0.4})
    decision = gate.update(seen, lambda _: labels(0.5))
    assert decision.action == "roll back"
    assert decision.reasons == ("no_eos is 0.4, outside of 0 to 0.2",)


def test_a_metric_that_is_no_number_is_beyond_its_limit():
    gate = sure_gate(limits={"entropy": (0.0, 9.0)})
    decision = gate.update(Evaluation(1, 0.1, labels(0.5), {"entropy": nan}), lambda _: labels(0.5))
    assert isnan(nan)
    assert decision.action == "roll back"


@pytest.mark.messages
def test_a_gate_that_has_stopped_says_so():
    gate = sure_gate()
    watch(gate, [(0.3, 0.6), (0.9, 0.3)])
    with pytest.raises(ValueError, match="has stopped this run"):
        gate.update(Evaluation(4, 0.3, labels(0.6)), lambda _: labels(0.6))


def flat_run(success, evaluations=21):
    """A healthy run: the proxy creeps up, success stays where it is."""
    steps = range(1, evaluations + 1)
    return RecordedRun(
        iterations=[2 * step for step in steps],
        scores=[0.02 * step for step in steps],
        successes=[success] * evaluations,
        metrics={},
        baseline_score=0.0,
        baseline_success=0.37,
    )


def alarms(config, run, replays=300, gate=Gate):
    tools = {"baseline_labels": 256, "generator": torch.Generator().manual_seed(7), "gate": gate}
    found = [replay(run, config, **tools) for _ in range(replays)]
    return sum(each is not None for each in found) / replays


class OneLookOnly(Gate):
    """Believes the labels by which a checkpoint was chosen, or condemned."""

    def update(self, evaluation, relabel):
        self.seen = getattr(self, "seen", {0: Count(24, 64)}) | {
            evaluation.iteration: evaluation.labels
        }
        return super().update(evaluation, self.seen.__getitem__)


def test_a_second_look_raises_fewer_false_alarms():
    config = GateConfig(limits={})
    ours = alarms(config, flat_run(0.65))
    believed = alarms(config, flat_run(0.65), gate=OneLookOnly)
    assert ours < 0.06
    assert believed > 0.25


def test_a_hacked_run_is_stopped_although_the_judge_errs():
    steps = range(1, 21)
    hacked = RecordedRun(
        iterations=[2 * step for step in steps],
        scores=[0.2 * step for step in steps],
        successes=[0.56, 0.63, 0.59, 0.54, 0.34, 0.18, 0.06, 0.02, *[0.0] * 12],
        metrics={},
        baseline_score=0.0,
        baseline_success=0.37,
    )
    config, generator = GateConfig(limits={}), torch.Generator().manual_seed(3)
    for _ in range(50):
        decision = replay(hacked, config, baseline_labels=256, generator=generator)
        assert decision is not None
        assert decision.best <= 10


@pytest.mark.messages
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_labels": 0}, "num_labels is 0"),
        ({"accuracy": 0.5}, "knows nothing"),
        ({"z": 0.0}, "z is 0"),
        ({"limits": {"length": (3.0, 1.0)}}, "low ≤ high"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        GateConfig(**changes)


@pytest.mark.messages
def test_a_run_with_columns_of_other_lengths_is_refused():
    run = replace(flat_run(0.5), scores=[0.1])
    with pytest.raises(ValueError, match="one entry for each"):
        replay(run, SURE, baseline_labels=10, generator=torch.Generator())


# --- the report -----------------------------------------------------------------------------------

VERSIONS = Versions(
    actor="run 3, iteration 20",
    rollout="run 3, iteration 19",
    reference="sft 0",
    reward="verifier 1",
    tokenizer_sha256=vocabulary_sha256(["a", "b"]),
    seed=3,
)
PROMPTS = [(number,) for number in range(200)]


def answered(share, *, samples=4, kinds=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    given = torch.arange(samples).remainder(kinds).expand(len(PROMPTS), samples)
    return Answered(
        right=torch.rand(len(PROMPTS), samples, generator=generator) < share,
        answers=given.unsqueeze(-1).contiguous(),
        score=share,
        kl_reference=1.0,
        length=5.0,
        no_eos=0.0,
    )


def report(old=0.4, new=0.8, **changes):
    given = {
        "versions": VERSIONS,
        "prompts": PROMPTS,
        "used_before": [(1000,)],
        "slices": {"first half": torch.arange(200) < 100},
    } | changes
    return release_report(answered(old, seed=1), answered(new, seed=2), **given)


def test_a_sure_gain_ships_and_a_sure_loss_does_not():
    assert report(0.4, 0.8).verdict == "ship"
    assert report(0.8, 0.4).verdict == "do not ship"
    assert report(0.6, 0.6).verdict == "inconclusive"


def test_a_slice_that_loses_holds_the_release():
    old, new = answered(0.4, seed=1), answered(0.9, seed=2)
    losing = torch.arange(200) < 40
    old.right[losing], new.right[losing] = True, False
    found = release_report(
        old, new, versions=VERSIONS, prompts=PROMPTS, used_before=[], slices={"first": losing}
    )
    assert found.comparison.difference.low > 0
    assert found.verdict == "do not ship"
    assert "'first'" in found.reasons[0]


def test_answers_that_become_all_alike_hold_the_release():
    found = release_report(
        answered(0.4, seed=1), answered(0.9, kinds=1, seed=2), versions=VERSIONS, prompts=PROMPTS,
        used_before=[], slices={},
    )  # fmt: skip
    assert found.verdict == "do not ship"
    assert "from 1.00 to 0.25" in found.reasons[0]


def test_different_answers_are_counted_per_prompt():
    answers = torch.tensor([[[1, 2], [1, 2], [1, 3], [1, 2]], [[0, 0]] * 4])
    assert distinct_share(answers) == pytest.approx((2 / 4 + 1 / 4) / 2)


@pytest.mark.messages
@pytest.mark.parametrize("name", ["actor", "rollout", "reference", "reward", "tokenizer_sha256"])
def test_a_report_without_a_version_is_refused(name):
    with pytest.raises(ValueError, match=rf"no version is given of: {name}"):
        replace(VERSIONS, **{name: ""})
    with pytest.raises(ValueError, match="no version is given of: seed"):
        replace(VERSIONS, seed=None)


@pytest.mark.messages
def test_a_tokenizer_is_named_by_its_fingerprint():
    assert vocabulary_sha256(["a", "b"]) != vocabulary_sha256(["b", "a"])
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        replace(VERSIONS, tokenizer_sha256="tokenizer v2")


@pytest.mark.messages
def test_prompts_that_chose_the_checkpoint_are_refused():
    with pytest.raises(ValueError, match="2 of 200 prompts were used before"):
        report(used_before=[[3], torch.tensor([5]), (777,)])


@pytest.mark.messages
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prompts": []}, "held-out"),
        ({"prompts": PROMPTS[:3]}, "200 rows for 3 prompts"),
        ({"slices": {"none": torch.zeros(200, dtype=torch.bool)}}, "holds no prompt"),
    ],
)
def test_a_report_on_other_rows_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        report(**changes)


def test_a_report_can_be_kept_and_read():
    found = report()
    assert json.loads(json.dumps(found.to_dict()))["versions"]["seed"] == 3
    page = found.to_markdown()
    assert page.startswith("# Release report: ship\n")
    for words in ("| tokenizer_sha256 |", "McNemar's p", "| first half | 100 |", "pass@4"):
        assert words in page


# --- the real thing -------------------------------------------------------------------------------

CONFIG = RLHFConfig(
    num_prompts=96, group_size=4, num_iterations=33, max_new_tokens=9, temperature=0.7, beta=0.05,
    gamma=0.99, gae_lambda=0.9, num_epochs=3, num_minibatches=4, learning_rate=1e-4,
    critic_learning_rate=3e-4, clip_epsilon=0.1, entropy_coef=0.01, max_grad_norm=0.7,
)  # fmt: skip


def test_a_run_in_verls_words_and_back_is_the_same_run():
    there = to_verl(CONFIG)
    back, left = from_verl(there.settings)
    assert back == CONFIG
    assert left == (
        "actor_rollout_ref.actor.loss_agg_mode", "actor_rollout_ref.actor.use_kl_loss",
        "algorithm.adv_estimator", "algorithm.kl_penalty", "algorithm.use_kl_in_reward",
    )  # fmt: skip


@pytest.mark.messages
def test_verl_counts_minibatches_in_prompts():
    assert to_verl(CONFIG).settings["actor_rollout_ref.actor.ppo_mini_batch_size"] == 96 / 4
    with pytest.raises(ValueError, match="96 prompts make no 5 equal minibatches"):
        to_verl(replace(CONFIG, num_minibatches=5))


def test_without_its_switch_verls_price_of_kl_is_nothing():
    back, _ = from_verl({"algorithm.kl_ctrl.kl_coef": 0.3})
    assert back.beta == 0
    back, _ = from_verl({"algorithm.kl_ctrl.kl_coef": 0.3, "algorithm.use_kl_in_reward": True})
    assert back.beta == 0.3


def test_a_run_in_trls_words_and_back_keeps_what_trl_has_a_word_for():
    there = to_trl(CONFIG)
    back, _ = from_trl(there.settings)
    ordinary = RLHFConfig()
    kept = replace(
        CONFIG,
        group_size=ordinary.group_size,
        critic_learning_rate=ordinary.critic_learning_rate,
        entropy_coef=ordinary.entropy_coef,
    )
    assert back == kept
    for words in ("group_size = 4", "critic_learning_rate = 0.0003", "entropy_coef = 0.01"):
        assert any(sentence.startswith(words) for sentence in there.lost)


def test_what_every_run_of_a_library_does_is_said():
    assert any("dual clip" in sentence for sentence in to_verl(RLHFConfig()).lost)
    assert any("one place after" in sentence for sentence in to_trl(RLHFConfig()).lost)


@pytest.mark.messages
def test_settings_of_a_library_that_disagree_are_refused():
    edges = {
        "actor_rollout_ref.actor.clip_ratio_low": 0.2,
        "actor_rollout_ref.actor.clip_ratio_high": 0.28,
    }
    with pytest.raises(ValueError, match="asymmetric_surrogate"):
        from_verl(edges)
    with pytest.raises(ValueError, match="'grpo'; expected 'gae'"):
        from_verl({"algorithm.adv_estimator": "grpo"})


@pytest.mark.messages
def test_each_step_of_fit_has_its_stage_and_the_stages_come_in_order():
    order = ["collect", "score", "squeeze", "renew"]
    for library, steps in STAGES.items():
        found = [stage_of(name, library) for name in steps]
        assert found == sorted(found, key=order.index)
        assert set(found) == set(order)
    assert stage_of("adv", "verl") == "score"
    with pytest.raises(ValueError, match="did you mean 'update_actor'"):
        stage_of("update_actr", "verl")


@pytest.mark.messages
def test_scores_that_are_none_and_sizes_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="score is nan; expected a finite number"):
        evidence.Evaluation(iteration=2, score=float("nan"), labels=evidence.Count(40, 64))
    with pytest.raises(ValueError, match="score is inf"):
        evidence.Gate(evidence.GateConfig(), baseline=evidence.Count(100, 256), score=float("inf"))
    with pytest.raises(ValueError, match="total_episodes is 100 and per_device_train_batch_size"):
        evidence.from_trl({"total_episodes": 100, "per_device_train_batch_size": 30})


def test_sizes_that_a_library_leaves_out_are_ours():
    mini = "actor_rollout_ref.actor.ppo_mini_batch_size"
    assert evidence.from_verl({mini: 32})[0].num_minibatches == 4  # of 128 prompts
    assert evidence.from_trl({"total_episodes": 1280})[0].num_iterations == 10


def test_three_prompts_that_are_all_gained_ship_nothing():
    lost, won = torch.zeros(3, 2, dtype=torch.bool), torch.ones(3, 2, dtype=torch.bool)
    named = {"score": 0.0, "kl_reference": 0.0, "length": 5.0, "no_eos": 0.0}
    tokens = torch.arange(12).reshape(3, 2, 2)
    sides = [evidence.Answered(right, tokens, **named) for right in (lost, won)]
    versions = evidence.Versions(
        actor="a", rollout="b", reference="c", reward="d", tokenizer_sha256="0" * 64, seed=0
    )
    asked = {"versions": versions, "used_before": [[9, 9, 9]], "slices": {}}
    few = evidence.release_report(*sides, prompts=[[1], [2], [3]], **asked)
    assert few.comparison.difference.low > 0  # no interval shows that three are few
    assert few.verdict == "inconclusive"
    assert "p = 0.250" in few.to_markdown()
    many = [
        evidence.Answered(each.right.repeat(8, 1), each.answers.repeat(8, 1, 1), **named)
        for each in sides
    ]
    prompts = [[number] for number in range(24)]
    assert evidence.release_report(*many, prompts=prompts, **asked).verdict == "ship"


def test_a_prompt_is_the_same_prompt_as_numbers_of_another_kind():
    for before in ([1.0, 2.0], [torch.tensor(1.0)], [torch.tensor([1])[0]]):
        with pytest.raises(ValueError, match="were used before"):
            evidence.report.check_fresh([1, 4], before)
