"""Read the real thing: verl's `fit()` and TRL's trainers in our four stages, settings both ways.

    collect   answers            gen                        _generate
    score     four models        reward, old_log_prob, ref, values, adv
    squeeze   optimiser steps    update_critic, update_actor
    renew     new weights        update_weights, testing, save_checkpoint

A translation says what it could not carry over. Two libraries that share a word need not share its
meaning: verl counts `ppo_mini_batch_size` in prompts, and its dual clip is always on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from ppo_lessons.rlhf import RLHFConfig

Stage = Literal["collect", "score", "squeeze", "renew"]
Library = Literal["verl", "TRL"]
Settings = dict[str, Any]

# The timers of verl's fit(), in the order in which an iteration meets them (January 2026), and the
# steps of TRL's PPO trainer.
STAGES: Mapping[str, Mapping[str, Stage]] = {
    "verl": {
        "gen": "collect",
        "reward": "score",
        "old_log_prob": "score",
        "ref": "score",
        "values": "score",
        "adv": "score",
        "update_critic": "squeeze",
        "update_actor": "squeeze",
        "update_weights": "renew",
        "testing": "renew",
        "save_checkpoint": "renew",
    },
    "TRL": {
        "generate": "collect",
        "policy log-probs": "score",
        "reference log-probs": "score",
        "reward model": "score",
        "values": "score",
        "KL in the reward": "score",
        "GAE": "score",
        "policy and value loss": "squeeze",
        "weights for generation": "renew",
    },
}


def stage_of(name: str, library: Library) -> Stage:
    """Say which of our four stages a step of a library belongs to.

    Args:
        name: of a timer in verl's fit(), or of a step in TRL's PPO trainer, as in `STAGES`.
        library: "verl" or "TRL".

    Returns:
        The stage.

    Raises:
        ValueError: if there is no such step, with the nearest one.
    """
    steps = STAGES[known(library, STAGES, "library")]
    return steps[known(name, steps, f"step of {library}")]


@dataclass(frozen=True)
class Names:
    """What one of our settings is called elsewhere.

    Attributes:
        keys: all that must be set to the same value.
        there: our value → theirs, given our whole config.
        here: their value → ours, given all their settings.
    """

    keys: tuple[str, ...]
    there: Callable[[Any, RLHFConfig], Any] = lambda value, config: value
    here: Callable[[Any, Settings], Any] = lambda value, settings: value


@dataclass(frozen=True)
class Translation:
    """Settings in another library's words.

    Attributes:
        settings: by their dotted names.
        lost: sentences on what has no counterpart, or another meaning there.
    """

    settings: Settings
    lost: tuple[str, ...]


ACTOR = "actor_rollout_ref.actor"
BATCH = "data.train_batch_size"


def times(settings: Mapping[str, Any], whole: str, part: str) -> int:
    """Give how many parts make a whole; our own number of prompts where a library's is left out.

    Raises:
        ValueError: if they do not make it.
    """
    usual = RLHFConfig().num_prompts
    total, size = settings.get(whole, usual), settings.get(part, usual)
    if size < 1 or total % size:
        raise ValueError(
            f"{whole} is {total} and {part} is {size}; expected a multiple of at least 1, since "
            "nothing is left over here. Choose sizes that divide."
        )
    return total // size


TO_VERL: Mapping[str, Names] = {
    "num_prompts": Names((BATCH,)),
    "group_size": Names(("actor_rollout_ref.rollout.n",)),
    "max_new_tokens": Names(("data.max_response_length",)),
    "temperature": Names(("actor_rollout_ref.rollout.temperature",)),
    "num_iterations": Names(("trainer.total_training_steps",)),
    "beta": Names(("algorithm.kl_ctrl.kl_coef",)),
    "gamma": Names(("algorithm.gamma",)),
    "gae_lambda": Names(("algorithm.lam",)),
    "num_epochs": Names((f"{ACTOR}.ppo_epochs", "critic.ppo_epochs")),
    "num_minibatches": Names(
        (f"{ACTOR}.ppo_mini_batch_size",),
        there=lambda value, config: config.num_prompts // value,
        here=lambda value, settings: times(settings, BATCH, f"{ACTOR}.ppo_mini_batch_size"),
    ),
    "learning_rate": Names((f"{ACTOR}.optim.lr",)),
    "critic_learning_rate": Names(("critic.optim.lr",)),
    "clip_epsilon": Names(
        (f"{ACTOR}.clip_ratio", f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high")
    ),
    "entropy_coef": Names((f"{ACTOR}.entropy_coeff",)),
    "max_grad_norm": Names((f"{ACTOR}.grad_clip", "critic.grad_clip")),
}

TO_TRL: Mapping[str, Names] = {
    "seed": Names(("seed",)),
    "num_prompts": Names(("per_device_train_batch_size",)),
    "num_iterations": Names(
        ("total_episodes",),
        there=lambda value, config: value * config.num_prompts,
        here=lambda value, settings: times(
            settings, "total_episodes", "per_device_train_batch_size"
        ),
    ),
    "max_new_tokens": Names(("response_length",)),
    "temperature": Names(("temperature",)),
    "beta": Names(("kl_coef",)),
    "gamma": Names(("gamma",)),
    "gae_lambda": Names(("lam",)),
    "num_epochs": Names(("num_ppo_epochs",)),
    "num_minibatches": Names(("num_mini_batches",)),
    "learning_rate": Names(("learning_rate",)),
    "clip_epsilon": Names(("cliprange",)),
    "value_coef": Names(("vf_coef",)),
    "max_grad_norm": Names(("max_grad_norm",)),
}

# What a library does whatever our settings say, or has no word for.
LOST: Mapping[Library, tuple[tuple[str, str], ...]] = {
    "verl": (
        ("seed", "the seed of a run is set where the data are read, not here"),
        ("value_coef", "actor and critic have an optimiser each, so the losses are not added up"),
        ("reward_limit", "scores are cut in the reward function"),
    ),
    "TRL": (
        (
            "group_size",
            "its PPO draws one answer to a prompt; num_generations is GRPO's and RLOO's",
        ),
        ("critic_learning_rate", "policy and critic share one optimiser and one learning rate"),
        ("entropy_coef", "its PPO has no entropy bonus"),
        ("reward_limit", "scores are cut in the reward model"),
    ),
}


def to_verl(config: RLHFConfig) -> Translation:
    """Write a PPO run in verl's words.

    Args:
        config: of `train_tokens` with a critic.

    Returns:
        Settings for `main_ppo`, and what they do not say.

    Raises:
        ValueError: if the prompts cannot be dealt into equal minibatches, as verl wants them.
    """
    if config.num_prompts % config.num_minibatches:
        raise ValueError(
            f"{config.num_prompts} prompts make no {config.num_minibatches} equal minibatches; "
            "expected a divisor, since verl counts ppo_mini_batch_size in prompts. Change "
            "num_prompts or num_minibatches."
        )
    fixed = {
        "algorithm.adv_estimator": "gae",
        "algorithm.use_kl_in_reward": config.beta > 0,
        "algorithm.kl_penalty": "kl",
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.loss_agg_mode": "token-mean",
    }
    always = ("dual clip: for a bad token the loss stops at clip_ratio_c = 3 times its advantage",)
    return translated(config, TO_VERL, "verl", fixed, always)


def to_trl(config: RLHFConfig) -> Translation:
    """Write a PPO run in TRL's words.

    Args:
        config: of `train_tokens` with a critic.

    Returns:
        Settings for `PPOConfig`, and what they do not say.
    """
    fixed = {"kl_estimator": "k1", "whiten_rewards": False, "gradient_accumulation_steps": 1}
    always = (
        "the score is added one place after the last token, and the critic's mask is one longer",
        "the value loss is clipped by cliprange_value",
    )
    return translated(config, TO_TRL, "TRL", fixed, always)


def translated(
    config: RLHFConfig,
    names: Mapping[str, Names],
    library: Library,
    fixed: Settings,
    always: tuple[str, ...],
) -> Translation:
    """Put a config into a library's words."""
    settings = dict(fixed)
    for field, name in names.items():
        value = name.there(getattr(config, field), config)
        settings |= dict.fromkeys(name.keys, value)
    ordinary = RLHFConfig()
    lost = tuple(
        f"{field} = {getattr(config, field)!r}: {sentence}"
        for field, sentence in LOST[library]
        if field == "seed" or getattr(config, field) != getattr(ordinary, field)
    )
    return Translation(settings, lost + always)


def from_verl(settings: Mapping[str, Any]) -> tuple[RLHFConfig, tuple[str, ...]]:
    """Read a PPO run that was written for verl.

    Args:
        settings: by their dotted names; those left out keep our defaults.

    Returns:
        Our config, and the settings that it has no place for.

    Raises:
        ValueError: if the run is no PPO with a critic, or two names of one setting disagree.
    """
    estimator = settings.get("algorithm.adv_estimator", "gae")
    if estimator != "gae":
        raise ValueError(
            f"algorithm.adv_estimator is {estimator!r}; expected 'gae', PPO with a critic. The "
            "board of lesson 15 says what the others change."
        )
    given = dict(settings)
    if not given.get("algorithm.use_kl_in_reward", False):
        given["algorithm.kl_ctrl.kl_coef"] = 0.0  # verl ignores the coefficient then
    return read_back(given, TO_VERL)


def from_trl(settings: Mapping[str, Any]) -> tuple[RLHFConfig, tuple[str, ...]]:
    """Read a PPO run that was written for TRL's PPO trainer.

    Args:
        settings: fields of its `PPOConfig`; those left out keep our defaults.

    Returns:
        Our config, and the settings that it has no place for.

    Raises:
        ValueError: if a value does not fit ours.
    """
    return read_back(dict(settings), TO_TRL)


def read_back(settings: Settings, names: Mapping[str, Names]) -> tuple[RLHFConfig, tuple[str, ...]]:
    """Put a library's settings into our words."""
    found: Settings = {}
    used: set[str] = set()
    for field, name in names.items():
        given = {key: settings[key] for key in name.keys if key in settings}
        if len(set(given.values())) > 1:
            told = ", ".join(f"{key} = {value!r}" for key, value in given.items())
            raise ValueError(
                f"{told}; expected one value, for they are one setting here. Two edges of the clip "
                "are `asymmetric_surrogate`'s, lesson 15."
            )
        if given:
            found[field] = name.here(next(iter(given.values())), settings)
            used |= set(given)
    assert set(found) <= {each.name for each in fields(RLHFConfig)}
    return RLHFConfig(**found), tuple(sorted(set(settings) - used))


def known(name: str, names: Mapping[str, Any], kind: str) -> Any:
    """Require a name that exists.

    Raises:
        ValueError: with the nearest one.
    """
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "names are: " + ", ".join(names) + "."
    raise ValueError(f"no {kind} {name!r}; expected one that is listed; {hint}")
