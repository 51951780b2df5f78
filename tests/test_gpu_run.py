"""Several ranks learn what one process learns from all samples: as threads, in float64.

Each claim takes the function it is about; the battery runs it on the named mistakes as well.
"""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from fellows import together
from mistakes import under_test
from torch.optim import SGD, Adam
from torch.testing import assert_close

from ppo_lessons import gpu_run
from ppo_lessons.gae import normalize_advantages
from ppo_lessons.networks import make_networks
from ppo_lessons.training_loop import Parts, PPOConfig, clipped_gradient_step, squeeze
from ppo_lessons.types import Batch

reduced_gradient_step = under_test(gpu_run.reduced_gradient_step)
normalize_over_ranks = under_test(gpu_run.normalize_over_ranks)
rank_seed = under_test(gpu_run.rank_seed)

EXACT = {"rtol": 1e-12, "atol": 1e-12}  # float64 algebra
ROWS = 48
CONFIG = PPOConfig(num_envs=ROWS, num_steps=1, num_epochs=2, num_minibatches=4, total_steps=ROWS)


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def networks():
    return make_networks((3,), 2, hidden_sizes=(5,), generator=generator()).double()


def batch(rows=ROWS):
    """Samples whose two halves differ: a rank's own statistics are not those of all."""
    draw = generator(2)
    normal = [torch.randn(rows, generator=draw, dtype=torch.float64) for _ in range(4)]
    advantages = normal[0] * torch.linspace(0.5, 3, rows, dtype=torch.float64) + 2 * (
        torch.arange(rows) < rows // 2
    )
    return Batch(
        observations=torch.randn(rows, 3, generator=draw, dtype=torch.float64),
        actions=torch.randint(2, (rows,), generator=draw),
        log_probs_old=-0.7 + 0.05 * normal[1],
        values_old=normal[2],
        advantages=advantages,
        returns=normal[3],
        valid=None,
    )


def halves(whole):
    indices = torch.arange(len(whole)).chunk(2)
    return [whole.rows(each) for each in indices]


def weights(trained):
    return torch.cat([parameter.detach().flatten() for parameter in trained.parameters()])


def one_step(step, model, rows, optimizer, *, max_grad_norm):
    """The critic's error on these rows, one step; the gradient's norm and the weights."""
    loss = (model.critic(rows.observations) - rows.returns).square().mean()
    loss = (
        loss - (model.policy.evaluate(rows.observations, rows.actions)[0] * rows.advantages).mean()
    )
    norm = step(loss, model, optimizer(model), max_grad_norm=max_grad_norm)
    return norm, weights(model)


def adam(model):
    return Adam(model.parameters(), lr=1e-2, eps=1e-5)


def sgd(model):
    return SGD(model.parameters(), lr=0.1)


@pytest.fixture
def whole():
    return batch()


def test_two_halves_step_like_the_whole(reduced_gradient_step):
    for optimizer in (sgd, adam):
        for longest in (1e9, 0.1):
            alone = one_step(
                clipped_gradient_step, networks(), batch(), optimizer, max_grad_norm=longest
            )
            parts = halves(batch())
            for result in together(
                lambda rank, parts=parts, optimizer=optimizer, longest=longest: one_step(
                    reduced_gradient_step, networks(), parts[rank], optimizer, max_grad_norm=longest
                )
            ):
                assert_close(result, alone, **EXACT)


def test_the_norm_is_that_of_the_mean_gradient(reduced_gradient_step):
    """Opposite gradients cancel: there is nothing to clip, however long each of them is."""

    def opposite(rank):
        layer = torch.nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            layer.weight.fill_(3.0)
        loss = (1 - 2 * rank) * 100 * layer.weight.sum()
        norm = reduced_gradient_step(
            loss, layer, torch.optim.SGD(layer.parameters(), lr=1.0), max_grad_norm=0.5
        )
        return norm.item(), layer.weight.item()

    assert together(opposite) == [(0.0, 3.0)] * 2


def test_all_samples_have_one_mean_and_one_deviation(normalize_over_ranks):
    whole = batch().advantages
    expected = (whole - whole.mean()) / (whole.std(correction=0) + 1e-8)
    got = together(lambda rank: normalize_over_ranks(whole.chunk(2)[rank]))
    assert_close(torch.cat(got), expected, **EXACT)


def test_ranks_of_unequal_samples_count_by_their_samples(normalize_over_ranks):
    whole = batch().advantages
    masks = [torch.arange(ROWS // 2) < count for count in (20, 5)]
    got = together(
        lambda rank: normalize_over_ranks(whole.chunk(2)[rank], mask=masks[rank])[masks[rank]]
    )
    both = torch.cat([half[mask] for half, mask in zip(whole.chunk(2), masks, strict=True)])
    expected = (both - both.mean()) / (both.std(correction=0) + 1e-8)
    assert_close(torch.cat(got), expected, **EXACT)


def test_a_large_mean_costs_no_digits(normalize_over_ranks):
    whole = batch().advantages.float()
    expected = normalize_advantages(whole)
    got = together(lambda rank: normalize_over_ranks(whole.chunk(2)[rank] + 1e4))
    assert_close(torch.cat(got), expected, rtol=0, atol=5e-3)  # float32 keeps 1e-3 of 1e4


def test_each_rank_draws_other_numbers(rank_seed):
    seeds = [rank_seed(seed, rank) for seed in (1, 2, 3) for rank in range(4)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_rank_0_plays_the_seed_of_the_job(rank_seed):
    """A job of one rank is a run of one process; other ranks depend on the seed of the job."""
    assert rank_seed(7, 0) == 7
    assert rank_seed(7, 1) == gpu_run.rank_seed(7, 1)


def test_equal_advantages_are_normalised_to_nothing():
    """Rounding of the mean must not be blown up to ±1."""
    for value in (0.1, 1000.1, -3e4):
        got = together(
            lambda rank, value=value: gpu_run.normalize_over_ranks(torch.full((7,), value))
        )
        assert_close(torch.cat(got), torch.zeros(14))


def test_moments_of_a_union_by_hand():
    # 1, 3 | 8: mean 4, squares 9 + 1 + 16
    moments = torch.tensor([[2.0, 2.0, 2.0], [1.0, 8.0, 0.0]])
    assert_close(gpu_run.combine_moments(moments), torch.tensor([3.0, 4.0, 26.0]))


def test_one_process_alone_steps_and_normalises_as_without_ranks(whole):
    results = [
        one_step(step, networks(), whole, adam, max_grad_norm=0.5)
        for step in (clipped_gradient_step, gpu_run.reduced_gradient_step)
    ]
    assert torch.equal(results[0][1], results[1][1])
    both = [f(whole.advantages) for f in (normalize_advantages, gpu_run.normalize_over_ranks)]
    assert torch.equal(*both)


ORDERS = [
    [torch.randperm(ROWS // 2, generator=generator(10 * rank + epoch)) for epoch in range(2)]
    for rank in range(2)
]


def squeezed_on_a_rank(rank, num_minibatches):
    """Two epochs over half of the rows, in a fixed order: weights and gradient norms."""
    epochs = iter(ORDERS[rank])
    half = replace(
        CONFIG, num_envs=ROWS // 2, total_steps=ROWS // 2, num_minibatches=num_minibatches
    )
    parts = gpu_run.rank_parts(
        Parts(minibatches=lambda rows, number: iter(next(epochs).tensor_split(number)))
    )
    model, rows = networks(), halves(batch())[rank]
    stats = squeeze(model, adam(model), rows, half, parts=parts, generator=generator())
    return weights(model), stats.gradient_norm


def squeezed_alone(num_minibatches):
    """The same epochs in one process: each minibatch is the union of the ranks' minibatches."""
    epochs = iter(zip(*ORDERS, strict=True))

    def union(rows, number):
        first, second = (order.tensor_split(number) for order in next(epochs))
        return iter([torch.cat([a, b + rows // 2]) for a, b in zip(first, second, strict=True)])

    config, model = replace(CONFIG, num_minibatches=num_minibatches), networks()
    stats = squeeze(
        model, adam(model), batch(), config, parts=Parts(minibatches=union), generator=generator()
    )
    return weights(model), stats.gradient_norm


@pytest.mark.parametrize("num_minibatches", [1, 4])
def test_a_squeeze_on_two_ranks_is_that_of_the_union_of_their_rows(num_minibatches):
    """Two epochs, ratios and clip at work; processes: `test_gpu_run_ranks.py`."""
    for result in together(lambda rank: squeezed_on_a_rank(rank, num_minibatches)):
        assert_close(result, squeezed_alone(num_minibatches), **EXACT)


def test_parts_of_ones_own_that_ranks_cannot_share_are_refused():
    step = lambda loss, networks, optimizer: loss  # noqa: E731
    for parts in (
        Parts(gradient_step=step),
        Parts(normalize=lambda advantages: advantages),
        Parts(stop_epochs=lambda kl_k1: kl_k1 > 0.02),
    ):
        with pytest.raises(ValueError, match="expected the standard one with several ranks"):
            gpu_run.rank_parts(parts)


def test_environments_are_shared_out():
    config = PPOConfig(num_envs=64, num_steps=8, total_steps=64 * 8 * 5, seed=3)
    shares = [gpu_run.Ranks(rank, 4).share(config) for rank in range(4)]
    assert {share.num_envs for share in shares} == {16}
    assert {share.num_iterations for share in shares} == {5}
    assert len({share.seed for share in shares}) == 4
    assert gpu_run.Ranks(0, 1).share(config) == config


@pytest.mark.messages
def test_environments_that_do_not_divide_are_refused():
    config = PPOConfig(num_envs=65, num_steps=8, total_steps=6500)
    with pytest.raises(ValueError, match=r"num_envs is 65 for 2 ranks.*Choose num_envs=64"):
        gpu_run.Ranks(1, 2).share(config)
    config = PPOConfig(num_envs=2, num_steps=2, num_minibatches=4, total_steps=6500)
    with pytest.raises(ValueError, match="num_minibatches is 4 for 2 samples on each of 2 ranks"):
        gpu_run.Ranks(1, 2).share(config)


def test_the_threads_that_play_ranks_add_up():
    """The stand-in itself, by hand."""
    from ppo_lessons.gpu_run import ranks

    def program(rank):
        numbers = torch.tensor([1.0, 10.0]) * (rank + 1)
        return ranks.gathered(numbers).tolist(), ranks.summed(numbers).tolist()

    assert together(program) == [([[1, 10], [2, 20]], [3, 30])] * 2
    model = networks()
    assert torch.equal(weights(deepcopy(model)), weights(model))
