"""Tanh by way of a sigmoid: its values, its gradient, and the same bits in every batch."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ppo_lessons.activations import WHOLE_VECTORS, Tanh, TanhBySigmoid, tanh_by_sigmoid

tanh = Tanh()


def numbers(*shape: int, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_values_are_those_of_tanh_over_the_whole_range():
    # Two units in the last place of float32 near 1 are 1.2e-7 each.
    for widest in (1e-3, 1.0, 20.0, 1e30):
        x = torch.linspace(-widest, widest, 64 * 1000)
        assert (tanh(x).double() - x.double().tanh()).abs().max() < 2.4e-7
    assert (torch.linspace(-1, 1, 64).sin() - torch.linspace(-1, 1, 64).tanh()).abs().max() > 1e-3


def test_it_never_leaves_the_interval_and_ends_are_ends():
    ends = torch.tensor([float("inf"), -float("inf"), 1e38, -1e38, 0.0, -0.0] + [9.0] * 26)
    assert tanh(ends)[:5].tolist() == [1, -1, 1, -1, 0]
    assert tanh(torch.full((32,), float("nan"))).isnan().all()
    assert tanh(torch.linspace(-50, 50, 3200)).abs().max() <= 1


def test_it_is_another_function_than_the_sigmoid_alone():
    x = numbers(64)
    assert not torch.allclose(tanh(x), x.sigmoid(), atol=0.1)
    assert not torch.allclose(tanh(x), 2 * x.sigmoid() - 1, atol=0.1)


def test_the_gradient_is_one_minus_the_square():
    x = numbers(16, 64).requires_grad_()
    (gradient,) = torch.autograd.grad(tanh(x).sum(), x)
    assert_close(gradient, (1 - x.detach().double().tanh() ** 2).float(), rtol=0, atol=5e-7)


def test_gradients_of_both_orders_agree_with_differences():
    # The layer takes this way in float32 only; here in float64, since differences need its digits.
    x = numbers(3, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(TanhBySigmoid.apply, x)
    assert torch.autograd.gradgradcheck(TanhBySigmoid.apply, x)


def test_with_and_without_gradient_the_bits_are_the_same():
    x = numbers(5, 64)
    assert torch.equal(tanh(x), tanh(x.clone().requires_grad_()).detach())


def test_a_row_gives_the_same_bits_in_a_batch_of_any_size():
    # Only so is the ratio of a policy to itself exactly 1.
    for width in (WHOLE_VECTORS, 2 * WHOLE_VECTORS, 7):
        x = numbers(33, width)
        for size in (1, 3, 8):
            assert torch.equal(tanh(x)[:size], tanh(x[:size].clone()))


@pytest.mark.parametrize("x", [numbers(4, 64, dtype=torch.float64), numbers(4, 7), numbers(())])
def test_elsewhere_it_is_the_tanh_of_torch(x):
    assert torch.equal(tanh(x), x.tanh())


def test_what_goes_in_stays_as_it_was():
    x = numbers(4, 64)
    before = x.clone()
    tanh(x), tanh_by_sigmoid(x), tanh(x.requires_grad_())
    assert torch.equal(x, before)


def test_it_is_saved_and_printed_like_the_layer_that_it_replaces():
    assert not tanh.state_dict()
    assert repr(tanh) == repr(nn.Tanh())
