"""The ledger of memory against the toy's real tensors."""

import copy

import pytest
import torch
from torch import Generator

from ppo_lessons.rlhf import (
    FULL,
    MIXED,
    TRANSFORMERS,
    RewardModel,
    activation_bytes,
    cache_bytes,
    model_memory,
    saved_bytes,
    tensor_bytes,
    transformer_of,
)
from ppo_lessons.tokens import LanguageModel, ModelConfig, TokenCritic
from ppo_lessons.tokens.model import Cache
from ppo_lessons.training_loop import make_optimizer

CONFIG = ModelConfig()
SHAPE = transformer_of(CONFIG)
ROWS, TOKENS = 8, 17


def toy():
    return LanguageModel(CONFIG, Generator().manual_seed(0))


def ledger(**changed):
    arguments = {"num_answers": ROWS, "micro_batch": ROWS, "num_tokens": TOKENS, "precision": FULL}
    rows = model_memory(SHAPE, **{**arguments, **changed})
    return {row.model: row for row in rows}


def sequences():
    tokens = torch.randint(5, 15, (ROWS, TOKENS), generator=Generator().manual_seed(0))
    return tokens, torch.ones(ROWS, TOKENS, dtype=torch.bool)


@pytest.mark.parametrize(("name", "kind"), [("policy", lambda m: m), ("critic", TokenCritic)])
def test_what_a_learning_model_holds_is_what_the_ledger_says(name, kind):
    model = kind(toy())
    optimizer = make_optimizer(model, learning_rate=1e-3)
    model(*sequences()).sum().backward()
    optimizer.step()
    row = ledger()[name]
    assert row.weights == tensor_bytes(model.parameters())
    assert row.gradients == tensor_bytes(p.grad for p in model.parameters())
    moments = [
        state[moment] for state in optimizer.state.values() for moment in ("exp_avg", "exp_avg_sq")
    ]
    assert row.optimizer == tensor_bytes(moments)


def test_models_that_are_asked_hold_their_weights_and_nothing_else():
    rows = ledger()
    reference, judge = toy(), RewardModel(toy())
    assert rows["reference"].total == tensor_bytes(reference.parameters())
    assert rows["reward model"].total == tensor_bytes(judge.parameters())


def test_the_cache_is_as_large_as_the_real_one():
    model = toy()
    cache = Cache(CONFIG, ROWS, TOKENS, model.head.weight)
    assert ledger()["policy"].cache == cache.stored.nbytes
    assert cache_bytes(SHAPE, num_answers=ROWS, num_tokens=TOKENS, bytes_each=4) == (
        cache.stored.nbytes
    )


def test_activations_are_estimated_to_a_third():
    model, (tokens, mask) = toy(), sequences()
    measured = saved_bytes(lambda: model(tokens, mask))
    estimate = ledger(checkpointing=False)["policy"].activations
    assert 0.67 < estimate / measured < 1.5


def test_what_is_kept_grows_with_the_batch_and_is_nothing_without_gradients():
    model, (tokens, mask) = toy(), sequences()
    half = saved_bytes(lambda: model(tokens[:4], mask[:4]))
    assert 1.8 < saved_bytes(lambda: model(tokens, mask)) / half < 2.1
    frozen = copy.deepcopy(model).requires_grad_(False)
    assert saved_bytes(lambda: frozen(tokens, mask)) == 0


def test_sixteen_bytes_for_each_weight_that_learns_and_two_for_one_that_is_asked():
    big = TRANSFORMERS["70 B"]
    policy, critic, reference, judge = model_memory(
        big, num_answers=1, micro_batch=1, num_tokens=1, precision=MIXED
    )
    weights = 70_553_706_496
    held = policy.weights + policy.gradients + policy.optimizer
    assert held == 16 * weights
    assert reference.total == 2 * weights
    learning = policy.total + critic.total
    assert 7.9 < learning / (reference.total + judge.total) < 8.1
    # two models that learn do not fit into thirty accelerators of 80 GB, before any activation
    assert learning + reference.total + judge.total > 30 * 80e9


def test_checkpoints_trade_memory_for_a_second_pass():
    shape = TRANSFORMERS["8 B"]
    whole = activation_bytes(shape, micro_batch=1, num_tokens=2048, checkpointing=False)
    few = activation_bytes(shape, micro_batch=1, num_tokens=2048, checkpointing=True)
    by_hand = 32 * (34 * 2048 * 4096 + 5 * 32 * 2048**2)
    assert whole == by_hand
    assert few == by_hand // 32 + 32 * 2 * 2048 * 4096


@pytest.mark.messages
def test_a_ledger_of_no_answers_is_refused():
    with pytest.raises(ValueError, match="num_answers is 0"):
        ledger(num_answers=0)
