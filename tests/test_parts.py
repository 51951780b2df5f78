"""The slots of the loop: what fits, what is handed over, and what is refused before training."""

from dataclasses import FrozenInstanceError, dataclass, fields
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import Adam

from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.training_loop import Parts, make_optimizer, use_all_epochs
from ppo_lessons.training_loop.parts import OFFERED


def refusal(**parts) -> str:
    with pytest.raises(TypeError, match="expected") as raised:
        Parts(**parts)
    return str(raised.value)


def test_every_slot_says_what_it_offers():
    assert set(OFFERED) == {slot.name for slot in fields(Parts)}


def test_every_slot_is_explained_with_what_it_offers():
    for slot, (positional, keywords) in OFFERED.items():
        bar = f" | {', '.join(keywords.split())}" if keywords else ""
        promise = f"{slot}: ({', '.join(positional.split())}{bar}) →"
        assert promise in (Parts.__doc__ or ""), promise


def test_the_slots_of_the_package_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        Parts().advantages = None  # type: ignore[misc]


# --- What is handed over -------------------------------------------------------------------------


def heard(function_of_seen, slot="policy_loss", positional=(1, 2, 3), **offered):
    seen = {}
    Parts(**{slot: function_of_seen(seen)}).call(slot, *positional, **offered)
    return seen


def test_keywords_go_only_to_functions_that_name_them():
    def takes_one(seen):
        return lambda a, b, c, clip_epsilon: seen.update(clip_epsilon=clip_epsilon)

    def takes_none(seen):
        return lambda a, b, c: seen.update(positional=(a, b, c))

    def takes_all(seen):
        return lambda *positional, **named: seen.update(named, positional=positional)

    offered = {"clip_epsilon": 0.2, "mask": None}
    assert heard(takes_one, **offered) == {"clip_epsilon": 0.2}
    assert heard(takes_none, **offered) == {"positional": (1, 2, 3)}
    assert heard(takes_all, **offered) == {**offered, "positional": (1, 2, 3)}


def test_positional_arguments_may_have_any_name():
    found = Parts(policy_loss=lambda new, old, weight: new - old + weight)
    assert found.call("policy_loss", 5, 3, 1, clip_epsilon=0.2, mask=None) == 3


def test_parts_know_which_keywords_a_function_takes():
    parts = Parts(value_loss=lambda values, returns: 0)
    assert not parts.names("value_loss", "mask")
    assert parts.names("policy_loss", "mask")
    assert Parts(value_loss=clipped_value_loss).names("value_loss", "values_old")
    assert Parts(value_loss=lambda values, returns, **rest: 0).names("value_loss", "mask")
    assert not Parts(value_loss=lambda values, returns, **rest: 0).names("value_loss", "anything")


class Callable3:
    def __call__(self, log_probs, log_probs_old, advantages, *, clip_epsilon):
        return clip_epsilon

    def method(self, log_probs, log_probs_old, advantages):
        return advantages


@dataclass
class Penalty:
    """A loss with a setting of its own; as a dataclass with `eq` it cannot be hashed."""

    weight: float

    def __call__(self, log_probs, log_probs_old, advantages):
        return self.weight


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Callable3(), 0.2),
        (Callable3().method, 3),
        (Penalty(7.0), 7.0),
        (partial(lambda scale, a, b, c: scale * c, 10), 30),
        (lambda log_probs, log_probs_old, advantages, *, weight=4: weight, 4),
    ],
    ids=["object", "method", "unhashable object", "partial", "own default"],
)
def test_anything_that_can_be_called_fits(function, expected):
    parts = Parts(policy_loss=function)
    assert parts.call("policy_loss", 1, 2, 3, clip_epsilon=0.2, mask=None) == expected


# --- What is refused -----------------------------------------------------------------------------


@pytest.mark.messages
def test_a_missing_argument_is_refused_with_slot_given_and_expected():
    def two_arguments(log_probs, advantages):
        return 0

    assert refusal(policy_loss=two_arguments) == (
        "Parts.policy_loss is two_arguments(log_probs, advantages), which does not fit (too many "
        "positional arguments); expected a function of (log_probs, log_probs_old, advantages | "
        "clip_epsilon, mask), where those after the bar are optional. Rename or add its arguments."
    )


@pytest.mark.messages
def test_an_argument_that_is_not_offered_is_refused():
    def wants_more(values, returns, *, temperature):
        return 0

    assert refusal(value_loss=wants_more) == (
        "Parts.value_loss is wants_more(values, returns, *, temperature), which does not fit "
        "(missing a required argument: 'temperature'); expected a function of (values, returns | "
        "values_old, clip_epsilon, mask), where those after the bar are optional. Rename or add "
        "its arguments."
    )


@pytest.mark.messages
def test_a_result_in_place_of_a_function_is_refused():
    assert refusal(advantages=3.0) == (
        "Parts.advantages is 3.0; expected a function of (rewards, values, next_values, "
        "terminated, truncated | gamma, gae_lambda). Pass the function itself, without calling it."
    )


@pytest.mark.parametrize("slot", OFFERED)
def test_every_slot_refuses_a_function_without_arguments(slot):
    with pytest.raises(TypeError, match=rf"^Parts\.{slot} is "):
        Parts(**{slot: lambda: None})


def test_a_positional_argument_with_the_name_of_a_keyword_is_refused():
    with pytest.raises(TypeError, match="multiple values for argument 'mask'"):
        Parts(policy_loss=lambda mask, log_probs_old, advantages: 0)


def test_what_a_partial_has_fixed_stays_fixed():
    loss = partial(clipped_surrogate_loss, clip_epsilon=0.9)
    new, old = torch.log(torch.tensor([1.5])), torch.zeros(1)
    found = Parts(policy_loss=loss).call(
        "policy_loss", new, old, torch.ones(1), clip_epsilon=0.2, mask=None
    )
    assert found.item() == pytest.approx(-1.5)  # 0.2 would give -1.2

    def passes_on(log_probs, log_probs_old, advantages, **settings):
        return clipped_surrogate_loss(log_probs, log_probs_old, advantages, **settings)

    found = Parts(policy_loss=partial(passes_on, clip_epsilon=0.9)).call(
        "policy_loss", new, old, torch.ones(1), clip_epsilon=0.2, mask=None
    )
    assert found.item() == pytest.approx(-1.5)


# --- The package's own ---------------------------------------------------------------------------


def test_the_optimizer_is_adam_with_the_epsilon_of_ppo_code():
    optimizer = make_optimizer(nn.Linear(2, 1), learning_rate=3e-4)
    assert type(optimizer) is Adam
    (group,) = optimizer.param_groups
    assert group["eps"] == 1e-5
    assert group["lr"] == 3e-4
    assert len(group["params"]) == 2


def test_no_epoch_is_left_out_unless_asked():
    assert not any(use_all_epochs(kl_k1) for kl_k1 in (-1.0, 0.0, 100.0))
