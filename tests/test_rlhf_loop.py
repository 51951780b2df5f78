"""The loop over answers: what it hands to lesson 08's update, and what it refuses.

Models are a quarter of the lesson's width, so that each run takes a fraction of a second.
"""

import copy
import math
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Generator
from torch.testing import assert_close

from ppo_lessons import rlhf, tokens, training_loop, variants
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.rlhf import (
    AnswerTree,
    RLHFConfig,
    TokenPolicy,
    TreeCritic,
    TreePolicy,
    adaptive_beta,
    collect,
    evaluate_answers,
    loop,
    pack,
    regularized_return,
    score,
    tilted_log_probs,
    train_tokens,
    unpack,
)
from ppo_lessons.tokens import (
    EOS,
    LanguageModel,
    ModelConfig,
    Responses,
    TokenCritic,
    draw_prompts,
    is_correct,
    score_responses,
)
from ppo_lessons.training_loop import Parts
from ppo_lessons.types import Batch

SMALL = ModelConfig(width=16, num_heads=2, num_layers=1)
CONFIG = RLHFConfig(num_prompts=12, num_iterations=2, learning_rate=1e-2)


def reference(seed: int = 0):
    return LanguageModel(SMALL, Generator().manual_seed(seed))


def long_is_good(prompts, responses):
    return responses.mask.sum(dim=1).float()


def run(config=CONFIG, **changed):
    """Train from a fresh reference; give the history and the reference."""
    first = reference()
    arguments = {
        "policy": copy.deepcopy(first),
        "reference": first,
        "reward": long_is_good,
        "critic": TokenCritic(first),
    }
    return train_tokens(config, **{**arguments, **changed}), first


def scored(config=CONFIG, junk=None, mask=None, **changed):
    """Collect and score once; with junk in padding, or another mask, if wanted."""
    first = reference()
    policy, asked = TokenPolicy(copy.deepcopy(first)), TokenPolicy(first)
    answers = collect(policy, config, generator=Generator().manual_seed(1))
    responses = answers.responses
    if mask is not None:
        responses = replace(responses, mask=mask(responses.mask))
    if junk is not None:
        tokens, log_probs = (
            column.masked_fill(~responses.mask, filler)
            for column, filler in ((responses.tokens, junk[0]), (responses.log_probs, junk[1]))
        )
        responses = Responses(tokens, responses.mask, log_probs)
    answers = replace(answers, responses=responses)
    arguments = {"reward": long_is_good, "critic": None, "advantages": rewards_as_they_are}
    found = score(
        answers, config, beta=config.beta, reference=asked, **{**arguments, **changed}
    )  # fmt: skip
    return policy, found


def rewards_as_they_are(rewards, values, mask, groups):
    return rewards, None


# --- the same update -----------------------------------------------------------------------------


def test_the_update_is_the_one_of_lesson_08():
    assert loop.update is training_loop.update


def test_ratios_are_1_before_the_first_step_of_each_iteration():
    history, _ = run()
    assert max(history["first_ratio_deviation"]) <= 1e-5
    assert min(history["max_ratio_deviation"]) > 1e-3  # and then the policy moves


def test_a_loss_of_ones_own_sees_tokens_and_their_mask():
    seen = []

    def spy(log_probs, log_probs_old, advantages, *, clip_epsilon, mask):
        seen.append((log_probs.shape, mask.clone()))
        chosen = clipped_surrogate_loss(
            log_probs[mask], log_probs_old[mask], advantages[mask], clip_epsilon=clip_epsilon
        )
        whole = clipped_surrogate_loss(
            log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon, mask=mask
        )
        assert_close(chosen, whole)
        return whole

    run(replace(CONFIG, num_iterations=1), parts=Parts(policy_loss=spy))
    assert len(seen) == CONFIG.num_epochs * CONFIG.num_minibatches
    assert all(shape == (6, CONFIG.max_new_tokens) for shape, _ in seen)
    assert all((~mask).any() for _, mask in seen)


def test_a_loss_that_knows_no_mask_is_refused_by_the_update():
    def blind(log_probs, log_probs_old, advantages):
        return -(log_probs * advantages).mean()

    with pytest.raises(ValueError, match="takes no mask"):
        run(parts=Parts(policy_loss=blind))


def test_each_answer_ends_with_the_score_and_pays_for_its_way():
    _, found = scored(reward=lambda prompts, responses: torch.full((12,), 4.0))
    # the policy is its reference: nothing to pay yet, and the score at the last token
    sums = found.rewards.sum(dim=1)
    assert_close(sums, torch.full((12,), 4.0), atol=1e-5, rtol=0)
    last = found.batch.valid.sum(dim=1) - 1
    assert (found.rewards.argmax(dim=1) == last).all()


def test_what_stands_in_padding_changes_nothing_that_is_learned():
    def weights_after(junk):
        policy, found = scored(junk=junk)
        networks = loop.TokenNetworks(policy, loop.as_values(None, max_new_tokens=10))
        optimizer = torch.optim.SGD(networks.parameters(), lr=0.1)
        training_loop.update(
            networks, optimizer, found.batch, CONFIG.of_update(), parts=Parts(),
            generator=Generator().manual_seed(2),
        )  # fmt: skip
        return torch.cat([p.detach().flatten() for p in policy.parameters()])

    clean = weights_after((0, 0.0))
    for junk in ((7, 1e6), (14, float("nan")), (EOS, float("-inf"))):
        assert_close(weights_after(junk), clean, rtol=0, atol=0)


def test_packed_observations_hold_tokens_and_mask():
    prompts = draw_prompts(3, generator=Generator().manual_seed(0))
    policy = TokenPolicy(reference())
    responses = policy.respond(prompts, max_new_tokens=10, generator=Generator().manual_seed(1))
    tokens, mask = unpack(pack(prompts, responses))
    assert tokens.tolist() == torch.cat([prompts.tokens, responses.tokens], 1).tolist()
    assert mask.tolist() == torch.cat([prompts.mask, responses.mask], 1).tolist()
    log_probs, entropies = policy.evaluate(pack(prompts, responses), responses.tokens)
    theirs = score_responses(policy.model, prompts, responses.tokens, responses.mask)
    for ours, expected in zip((log_probs, entropies), theirs, strict=True):
        assert_close(ours.masked_fill(~responses.mask, 0), expected)


def test_answers_are_drawn_and_rated_at_one_temperature():
    config = replace(CONFIG, temperature=0.7, num_iterations=1)
    history, _ = run(config)
    assert history["first_ratio_deviation"][0] <= 1e-5
    with pytest.raises(ValueError, match="Draw and rate at one temperature"):
        run(policy=TokenPolicy(reference(), temperature=0.7))


# --- who learns, who is asked --------------------------------------------------------------------


def test_policy_and_critic_learn_and_the_reference_stays():
    first, asked = reference(), reference()
    policy, critic = copy.deepcopy(first), TokenCritic(first)
    untouched = copy.deepcopy(critic)
    run(policy=policy, reference=asked, critic=critic)
    for before, after in zip(asked.parameters(), first.parameters(), strict=True):
        assert torch.equal(before, after)
    assert not torch.equal(policy.head.weight, first.head.weight)
    assert not torch.equal(critic.body.head.weight, untouched.body.head.weight)


def test_the_critic_has_a_step_size_of_its_own():
    seen = []
    run(on_iteration=lambda state: seen.append([g["lr"] for g in state.optimizer.param_groups]))
    assert seen == [[1e-2, 1e-3]] * 2


def test_an_estimator_without_a_critic_gets_rewards_mask_and_groups():
    seen = {}

    def leave_it(rewards, values, mask, groups):
        seen.update(values=values, groups=groups, shape=rewards.shape)
        return rewards, None

    history, _ = run(replace(CONFIG, num_prompts=3, group_size=4), critic=None, advantages=leave_it)
    assert seen["values"] is None
    assert seen["groups"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert seen["shape"] == (12, 10)
    assert history["value_loss"] == [None, None]
    assert history["ev_lambda"] == [None, None]


def test_answers_of_a_group_share_their_prompt():
    config = replace(CONFIG, num_prompts=3, group_size=4)
    answers = collect(TokenPolicy(reference()), config, generator=Generator().manual_seed(0))
    for group in range(3):
        same = answers.prompts.tokens[answers.groups == group]
        assert len(same) == 4
        assert (same == same[0]).all()


def test_a_price_holds_the_policy_back():
    config = replace(CONFIG, num_iterations=8, num_prompts=32, learning_rate=2e-3)
    free, _ = run(replace(config, beta=0))
    held, _ = run(replace(config, beta=2))
    # over three seeds the free one went 3.7, 5.3 and 6.6 times as far
    assert free["kl_reference"][-1] > 2 * held["kl_reference"][-1]


# --- what comes back -----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_run_and_leaves_global_randomness_alone():
    state = torch.get_rng_state()
    one, other = (run()[0] for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for row, again in zip(one.rows, other.rows, strict=True):
        for metric in row:
            assert metric.startswith("seconds") or row[metric] == again[metric]
    assert run(replace(CONFIG, seed=1))[0]["score"] != one["score"]


def test_every_metric_of_a_run_is_in_the_vocabulary():
    from test_vocabulary import ENTRIES

    history, _ = run(replace(CONFIG, num_iterations=1))
    named = {entry.name for entry in ENTRIES}
    assert named & set(history.rows[0])
    stages = {"seconds_score", "seconds_squeeze", "seconds_renew"}  # named in one row
    assert not set(history.rows[0]) - named - stages


def test_metrics_are_what_their_names_say():
    states = []
    history, _ = run(on_iteration=lambda state: states.append(copy.copy(state)))
    row, state = history.rows[-1], states[-1]
    answers, said = state.answers, state.scored
    mask = answers.responses.mask
    assert row["length"] == pytest.approx(mask.sum().item() / 12)
    ends = [EOS in tokens[real].tolist() for tokens, real in zip(
        answers.responses.tokens, mask, strict=True)]  # fmt: skip
    assert row["no_eos"] == pytest.approx(1 - sum(ends) / 12)
    assert row["score"] == pytest.approx(said.scores.mean().item())
    distance = (answers.responses.log_probs - said.log_probs_reference)[mask].sum().item() / 12
    assert row["kl_reference"] == pytest.approx(distance, rel=1e-5)
    paid = said.rewards.sum().item() / 12
    assert paid == pytest.approx(row["score"] - row["beta"] * distance, rel=1e-4)
    assert row["num_answers"] == 24


def test_the_four_stages_take_all_the_time():
    history, _ = run()
    for row in history.rows:
        parts = [row[f"seconds_{stage}"] for stage in ("collect", "score", "squeeze", "renew")]
        assert all(part > 0 for part in parts)
        assert sum(parts) == pytest.approx(row["seconds"], rel=1e-6)


def test_the_run_stops_when_it_is_told_to():
    history, _ = run(on_iteration=lambda state: state.iteration == 1)
    assert len(history) == 1
    assert history.stopped == "on_iteration"


def test_a_second_interrupt_leaves_what_is_finished():
    def impatient(state):
        if state.iteration == 1:
            raise KeyboardInterrupt

    history, _ = run(on_iteration=impatient)
    assert history.stopped == "interrupted"
    assert len(history) == 1


def test_an_adaptive_price_follows_the_distance():
    moves = partial(adaptive_beta, target_kl=1e-3, kl_horizon=24)
    history, _ = run(replace(CONFIG, num_iterations=4), next_beta=moves)
    rows = history.rows
    for before, after in pairwise(rows):
        by_hand = min(max(before["kl_reference"] / 1e-3 - 1, -0.2), 0.2)
        assert after["beta"] == pytest.approx(before["beta"] * (1 + by_hand / 2))


def test_half_precision_stays_finite():
    first = reference().bfloat16()
    history = train_tokens(
        CONFIG, policy=copy.deepcopy(first), reference=first, reward=long_is_good,
        critic=TokenCritic(first).bfloat16(),
    )  # fmt: skip
    numbers = [value for row in history.rows for value in row.values() if value is not None]
    assert all(math.isfinite(number) for number in numbers)


def test_an_evaluation_learns_nothing_and_names_what_was_asked_for():
    first = reference()
    before = copy.deepcopy(first.state_dict())
    prompts = draw_prompts(20, generator=Generator().manual_seed(0), split="gate")
    found = evaluate_answers(
        first, prompts, config=CONFIG, generator=Generator().manual_seed(0),
        reference=reference(), reward=long_is_good,
    )  # fmt: skip
    assert found["score"] == pytest.approx(found["length"])
    assert found["kl_reference"] == pytest.approx(0, abs=1e-5)
    assert 0 <= found["greedy_success"] <= 1
    assert all(torch.equal(before[name], now) for name, now in first.state_dict().items())


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.messages
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"parts": Parts(collect=lambda envs, policy, carry: None)}, "Parts.collect was replaced"),
        ({"reward": lambda p, y: torch.full((12,), float("nan"))}, "scores holds nan"),
        ({"reward": lambda p, y: torch.zeros(12, 10)}, "one score for each answer"),
        ({"critic": None}, "values is None"),
        ({"advantages": rewards_as_they_are}, "None as returns"),
        (
            {"advantages": lambda rewards, v, m, g: (rewards[:, :3], rewards)},
            "advantages has shape",
        ),
    ],
)
def test_what_does_not_fit_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        run(**changed)


@pytest.mark.messages
def test_one_model_cannot_be_policy_and_reference():
    both = reference()
    with pytest.raises(ValueError, match="policy and reference share"):
        run(policy=both, reference=both)


@pytest.mark.messages
def test_an_estimator_must_give_two_tensors():
    with pytest.raises(TypeError, match="expected two tensors"):
        run(advantages=lambda rewards, values, mask, groups: rewards)


@pytest.mark.messages
def test_something_that_cannot_answer_is_no_policy():
    with pytest.raises(TypeError, match="policy is a Linear"):
        run(policy=torch.nn.Linear(2, 2))


@pytest.mark.messages
def test_a_prompt_that_is_all_padding_is_named():
    def blank(count, *, generator):
        prompts = draw_prompts(count, generator=generator)
        return replace(prompts, mask=torch.zeros_like(prompts.mask))

    with pytest.raises(ValueError, match="all false"):
        run(draw=blank)


@pytest.mark.messages
def test_training_without_gradients_is_refused():
    with torch.inference_mode(), pytest.raises(ValueError, match="inference_mode is on"):
        run()


@pytest.mark.messages
def test_an_empty_answer_is_named():
    def emptied(mask):
        return mask & (torch.arange(len(mask)) != 3).unsqueeze(1)

    with pytest.raises(ValueError, match="answer 3 is empty"):
        scored(mask=emptied)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("group_size", 0, "group_size is 0"),
        ("beta", -1.0, "beta is -1.0"),
        ("temperature", 0.0, "temperature is 0.0"),
        ("reward_limit", 0.0, "reward_limit is 0.0"),
        ("clip_epsilon", 0.0, "clip_epsilon is 0.0"),
        ("num_minibatches", 999, "num_minibatches is 999"),
    ],
)
def test_a_setting_out_of_range_is_named(field, value, message):
    with pytest.raises(ValueError, match=message):
        RLHFConfig(**{field: value})


@pytest.mark.messages
def test_a_whole_number_is_asked_for():
    with pytest.raises(TypeError, match=r"num_prompts is 2\.5"):
        RLHFConfig(num_prompts=2.5)  # type: ignore[arg-type]


# --- all answers listed --------------------------------------------------------------------------


def test_a_tree_lists_every_answer_once_and_their_probabilities_add_up():
    tree = AnswerTree(num_words=2, num_tokens=3)
    assert len(tree) == 1 + 2 + 4 + 8
    policy = TreePolicy(tree, torch.randn(7, 3, generator=Generator().manual_seed(0)))
    assert policy.answer_log_probs().exp().sum().item() == pytest.approx(1, abs=1e-6)
    assert tree.index(tree.tokens, tree.mask).tolist() == list(range(15))


def test_drawn_answers_of_a_tree_come_as_often_as_their_probability():
    tree = AnswerTree(num_words=2, num_tokens=3)
    policy = TreePolicy(tree, torch.randn(7, 3, generator=Generator().manual_seed(0)))
    prompts = tree.prompts(20_000)
    responses = policy.respond(prompts, max_new_tokens=3, generator=Generator().manual_seed(1))
    drawn = tree.index(responses.tokens, responses.mask)
    shares = drawn.bincount(minlength=15) / 20_000
    assert (shares - policy.answer_log_probs().exp().detach()).abs().max() < 0.015  # 4 spreads
    again, entropies = policy.evaluate(pack(prompts, responses), responses.tokens)
    assert_close(again.masked_fill(~responses.mask, 0), responses.log_probs)
    assert (entropies >= 0).all()


def to_the_optimum(beta, iterations=60):
    """Train on a tree whose best policy is known; give the KL to it before and after."""
    tree = AnswerTree(num_words=2, num_tokens=3)
    draws = Generator().manual_seed(3)
    first = TreePolicy(tree, torch.randn(7, 3, generator=draws))
    rewards = torch.randn(len(tree), generator=draws)
    policy = copy.deepcopy(first)
    best = tilted_log_probs(first.answer_log_probs().detach(), rewards, beta=0.5)

    def distance():
        log_probs = policy.answer_log_probs().detach()
        return (log_probs.exp() * (log_probs - best)).sum().item()

    before = distance()
    train_tokens(
        RLHFConfig(
            num_prompts=256, max_new_tokens=3, beta=beta, num_iterations=iterations,
            learning_rate=0.03, critic_learning_rate=0.1, num_minibatches=1, num_epochs=4,
        ),
        policy=policy, reference=first, reward=tree.paying(rewards), critic=TreeCritic(tree),
        draw=tree.prompts, verifier=None,
    )  # fmt: skip
    log_probs, asked = policy.answer_log_probs().detach(), first.answer_log_probs().detach()
    earned = regularized_return(log_probs, asked, rewards, beta=0.5)
    return before, distance(), earned, regularized_return(best, asked, rewards, beta=0.5)


def test_ppo_comes_near_the_policy_that_has_a_formula():
    before, after, earned, most = to_the_optimum(beta=0.5)
    assert before > 0.3
    assert after < 0.03
    assert most - 0.02 < earned <= most + 1e-6
    _, elsewhere, less, _ = to_the_optimum(beta=0.05)  # the control: another price, another optimum
    assert elsewhere > 0.3
    assert less < earned


def test_every_column_of_a_batch_is_one_row_per_answer():
    _, found = scored()
    for column in fields(Batch):
        assert len(getattr(found.batch, column.name)) == 12
    assert is_correct is loop.is_correct


@pytest.mark.messages
def test_prompts_answers_and_functions_that_do_not_fit_are_refused():
    generator = torch.Generator().manual_seed(0)
    model = tokens.LanguageModel(tokens.ModelConfig(), generator)
    prompts = tokens.encode_prompts([[3, 1, 2], [4, 0, 9, 7, 7]])
    said = tokens.generate(model, prompts, max_new_tokens=5, temperature=1.0, generator=generator)
    turned = tokens.Prompts(prompts.tokens.flip(1), prompts.mask.flip(1))
    for refuse in (
        lambda: tokens.score_responses(model, turned, said.tokens, said.mask),
        lambda: rlhf.pack(turned, said),
    ):
        with pytest.raises(ValueError, match="prompt 0 ends with padding"):
            refuse()
    policy, packed = rlhf.TokenPolicy(model), rlhf.pack(prompts, said)
    with pytest.raises(ValueError, match="observations end otherwise there"):
        policy.evaluate(packed, (said.tokens + 1) % 15)
    with pytest.raises(ValueError, match=r"prompt 0 is \[1.5, 2\]; expected digits"):
        tokens.encode_prompts([[1.5, 2]])
    asked = {"config": rlhf.RLHFConfig(max_new_tokens=5), "generator": generator}
    for wrong, words in (
        ({"reward": lambda *_: torch.ones(7)}, "has shape"),
        ({"reward": lambda *_: torch.full((2,), torch.nan)}, "scores holds nan"),
        ({"verifier": lambda *_: torch.ones(7)}, "has shape"),
    ):
        with pytest.raises(ValueError, match=words):
            rlhf.evaluate_answers(policy, prompts, **asked, **wrong)
    with pytest.raises(ValueError, match="right is nan; expected a finite number"):
        rlhf.RewardModelConfig(right=float("nan"))
    with pytest.raises(ValueError, match="num_samples is 1"):
        rlhf.RewardModelConfig(num_samples=1)
    with pytest.raises(ValueError, match="there are 2 responses to 1 prompts"):
        variants.train_accepted(
            model, prompts.rows(torch.tensor([0])), said, learning_rate=1e-3, num_epochs=1,
            minibatch_size=2, generator=generator,
        )  # fmt: skip
