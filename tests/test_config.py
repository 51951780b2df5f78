"""Settings: each field has a type and a range, and says so."""

import dataclasses
import re

import pytest

from ppo_lessons.training_loop import PPOConfig

INTEGERS = ["seed", "total_steps", "num_envs", "num_steps", "num_epochs", "num_minibatches"]
NUMBERS = [
    "learning_rate",
    "final_learning_rate",
    "gamma",
    "gae_lambda",
    "clip_epsilon",
    "value_coef",
    "entropy_coef",
    "max_grad_norm",
]


def refusal(kind: type[Exception], **settings) -> str:
    with pytest.raises(kind, match="expected") as raised:
        PPOConfig(**settings)
    return str(raised.value)


def test_every_field_is_named_here():
    names = {field.name for field in dataclasses.fields(PPOConfig)}
    assert names == {*INTEGERS, *NUMBERS, "env", "hidden_sizes"}


@pytest.mark.messages
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("seed", -1, "at least 0"),
        ("num_envs", 0, "at least 1"),
        ("num_steps", 0, "at least 1"),
        ("num_epochs", 0, "at least 1"),
        ("num_minibatches", 0, "at least 1"),
        ("num_minibatches", 2049, "at most num_steps·num_envs = 2048"),
        ("total_steps", 2047, "at least num_steps·num_envs = 2048"),
        ("total_steps", -1, "at least num_steps·num_envs = 2048"),
        ("learning_rate", 0.0, "above 0"),
        ("learning_rate", float("inf"), "finite"),
        ("learning_rate", float("nan"), "finite"),
        ("clip_epsilon", 0.0, "above 0"),
        ("clip_epsilon", float("inf"), "finite"),
        ("max_grad_norm", -0.5, "above 0"),
        ("max_grad_norm", float("nan"), "above 0"),
        ("value_coef", -0.1, "at least 0"),
        ("value_coef", float("inf"), "finite"),
        ("entropy_coef", -0.1, "at least 0"),
        ("entropy_coef", float("inf"), "finite"),
        ("gamma", 1.01, "in [0, 1]"),
        ("gamma", -0.01, "in [0, 1]"),
        ("gamma", float("nan"), "in [0, 1]"),
        ("gae_lambda", 1.01, "in [0, 1]"),
        ("final_learning_rate", 2.0, "in [0, 1]"),
        ("hidden_sizes", (64, 0), "widths of at least 1"),
    ],
)
def test_a_field_out_of_its_range_is_refused(name, value, expected):
    assert refusal(ValueError, **{name: value}) == (
        f"{name} is {value}; expected {expected}. Choose {name} in that range."
    )


@pytest.mark.messages
@pytest.mark.parametrize("name", INTEGERS)
def test_a_count_must_be_an_integer(name):
    for value, kind in ((1.0, "float"), ("1", "str"), (True, "bool"), (None, "NoneType")):
        assert refusal(TypeError, **{name: value}) == (
            f"{name} is {value!r}, a {kind}; expected int. Give {name} as int."
        )


@pytest.mark.messages
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_must_be_a_number(name):
    for value, kind in (("0.5", "str"), (False, "bool"), (None, "NoneType")):
        assert refusal(TypeError, **{name: value}) == (
            f"{name} is {value!r}, a {kind}; expected float. Give {name} as float."
        )


@pytest.mark.messages
def test_the_environment_is_given_by_its_name():
    assert refusal(TypeError, env=3) == "env is 3, a int; expected str. Give env as str."


@pytest.mark.messages
def test_hidden_sizes_are_a_tuple_of_integers():
    assert refusal(TypeError, hidden_sizes=[64]) == (
        "hidden_sizes is [64], a list; expected tuple. Give hidden_sizes as tuple."
    )
    assert refusal(TypeError, hidden_sizes=(64, 64.0)) == (
        "hidden_sizes holds 64.0, a float; expected int. Give hidden_sizes as integers, like "
        "(64, 64)."
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 0.0, "gae_lambda": 0.0, "final_learning_rate": 0.0},
        {"gamma": 1.0, "gae_lambda": 1.0, "final_learning_rate": 1.0},
        {"num_envs": 1, "num_steps": 1, "num_minibatches": 1, "num_epochs": 1, "total_steps": 1},
        {"num_minibatches": 2048, "total_steps": 2048},
        {"seed": 0, "value_coef": 0.0, "entropy_coef": 0.0, "hidden_sizes": ()},
        {"max_grad_norm": float("inf")},
    ],
)
def test_the_edges_of_the_ranges_are_allowed(settings):
    assert dataclasses.asdict(PPOConfig(**settings)).items() >= settings.items()


@pytest.mark.messages  # no message, but beartype takes no int for a float
def test_an_integer_may_stand_for_a_number():
    assert PPOConfig(gamma=1, learning_rate=1).learning_rate_at(0) == 1


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PPOConfig().gamma = 0.5  # type: ignore[misc]


@pytest.mark.messages
def test_a_replaced_field_is_checked_again():
    with pytest.raises(ValueError, match=re.escape("gamma is 2; expected in [0, 1]")):
        dataclasses.replace(PPOConfig(), gamma=2)


def test_sizes_follow_from_the_fields():
    config = PPOConfig(num_envs=3, num_steps=7, total_steps=100, num_minibatches=2)
    assert config.batch_size == 21
    assert config.num_iterations == 4  # 4·21 = 84 of 100 steps; 16 are left out


@pytest.mark.parametrize(
    ("final", "rates"),
    [(1.0, [0.1] * 5), (0.0, [0.1, 0.08, 0.06, 0.04, 0.02]), (0.5, [0.1, 0.09, 0.08, 0.07, 0.06])],
)
def test_the_learning_rate_is_a_straight_line(final, rates):
    config = PPOConfig(
        num_envs=2, num_steps=5, total_steps=50, learning_rate=0.1, final_learning_rate=final
    )
    assert [config.learning_rate_at(k) for k in range(5)] == pytest.approx(rates)
    # What would come after the last iteration is the final rate itself.
    assert config.learning_rate_at(5) == pytest.approx(0.1 * final)
