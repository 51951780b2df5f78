"""Collect, score, squeeze, renew, on answers of a language model; squeeze is lesson 08's.

collect   the policy answers prompts                     Responses [B, T]
score     reward, reference and critic rate the answers  Batch [B], its columns [B, T]
squeeze   `update`: K epochs of minibatches, the clip    UpdateStats [K, M]
renew     the new policy answers next; β may move
"""

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from ppo_lessons.critic import explained_variance
from ppo_lessons.rlhf.advantages import critic_advantages, token_gae
from ppo_lessons.rlhf.controller import keep_beta
from ppo_lessons.rlhf.models import (
    AnsweringPolicy,
    NoCritic,
    TokenNetworks,
    TokenPolicy,
    TokenValues,
    pack,
)
from ppo_lessons.rlhf.rewards import answer_kl, check_answers, check_at_least_zero, token_rewards
from ppo_lessons.shapes import check_finite, check_positive, check_same_shape
from ppo_lessons.tokens.generate import Responses, generate_greedy
from ppo_lessons.tokens.language import (
    BANG,
    EOS,
    RESPONSE_LENGTH,
    Prompts,
    draw_prompts,
    is_correct,
)
from ppo_lessons.tokens.model import LanguageModel
from ppo_lessons.training_loop import Parts, PPOConfig, update
from ppo_lessons.training_loop.train import deferred_interrupt, one_thread, wants_to_stop
from ppo_lessons.types import Batch, History, UpdateStats

Reward = Callable[[Prompts, Responses], Tensor]
"""(prompts, responses) → one score per answer: a reward model or a verifier."""
Verifier = Callable[[Prompts, Tensor, Tensor], Tensor]
"""(prompts, tokens, mask) → whether each answer is right: what the score stands in for."""


@dataclass(frozen=True, kw_only=True)
class RLHFConfig:
    """All numbers of a run. What they switch is not here: a variant is another function in a slot.

    The defaults are those of the lesson's task on one CPU core.
    """

    seed: int = 0
    """Seed of prompts, answers and minibatches, at least 0."""
    num_iterations: int = 40
    """Times that the four stages run, at least 1."""
    num_prompts: int = 128
    """Prompts of one iteration, at least 1."""
    group_size: int = 1
    """G, answers to each prompt, at least 1."""
    max_new_tokens: int = RESPONSE_LENGTH
    """T, tokens of the longest answer, at least 1."""
    temperature: float = 1.0
    """At which answers are drawn and rated, above 0."""
    beta: float = 0.3
    """β, price of one nat of KL(π ‖ π_ref), at least 0 (reward per nat)."""
    reward_limit: float | None = None
    """Scores beyond ±limit are cut to it, above 0 (reward); None leaves them as they are."""
    gamma: float = 1.0
    """γ, discount per token, in [0, 1]."""
    gae_lambda: float = 0.95
    """λ, in [0, 1]."""
    num_epochs: int = 2
    """K, passes over each batch, at least 1."""
    num_minibatches: int = 2
    """M, gradient steps per epoch, from 1 to B."""
    learning_rate: float = 2e-4
    """Adam's step size for the policy, above 0."""
    critic_learning_rate: float = 1e-3
    """Adam's step size for the critic, above 0."""
    clip_epsilon: float = 0.2
    """ε, the change of a ratio up to which the objective pays, above 0."""
    value_coef: float = 0.5
    """c1, weight of the value loss, at least 0 (1 / reward)."""
    entropy_coef: float = 0.0
    """c2, weight of the entropy, at least 0 (reward / nat)."""
    max_grad_norm: float = 1.0
    """Longest gradient that is applied as it is, above 0; longer ones are shortened."""

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ValueError: with the first field that is out of its range.
            TypeError: with the first field of another type.
        """
        for whole in ("num_iterations", "num_prompts", "group_size", "max_new_tokens"):
            number = getattr(self, whole)
            if not isinstance(number, int) or isinstance(number, bool):
                raise TypeError(
                    f"{whole} is {number!r}, a {type(number).__name__}; expected int. Give {whole} "
                    "as a whole number."
                )
            check_positive(**{whole: number})
        check_positive(temperature=self.temperature, critic_learning_rate=self.critic_learning_rate)
        check_at_least_zero(beta=self.beta)
        if self.reward_limit is not None:
            check_positive(reward_limit=self.reward_limit)
        self.of_update()  # checks the rest

    @property
    def batch_size(self) -> int:
        """B = prompts times answers to each, answers per iteration."""
        return self.num_prompts * self.group_size

    def of_update(self) -> PPOConfig:
        """Give the settings in the form that `update` reads: lesson 08's own."""
        return PPOConfig(
            seed=self.seed,
            num_envs=self.batch_size,
            num_steps=1,
            total_steps=self.batch_size * self.num_iterations,
            num_epochs=self.num_epochs,
            num_minibatches=self.num_minibatches,
            learning_rate=self.learning_rate,
            final_learning_rate=1.0,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            clip_epsilon=self.clip_epsilon,
            value_coef=self.value_coef,
            entropy_coef=self.entropy_coef,
            max_grad_norm=self.max_grad_norm,
        )


@dataclass(frozen=True)
class Answers:
    """What one collect gave: prompts, answers, and which belong together.

    Attributes:
        prompts: each repeated once per answer.
        responses: the answers, with log π_old of each token.
        groups: the number of the prompt that each answer belongs to.
    """

    prompts: Prompts
    responses: Responses
    groups: Int[Tensor, " B"]

    @property
    def observations(self) -> Int[Tensor, "B 2 L"]:
        """Prompts and answers, packed for policy and critic."""
        return pack(self.prompts, self.responses)


@dataclass(frozen=True)
class Scored:
    """What the other three models said of the answers.

    Attributes:
        scores: of each answer, as the reward function gave it (reward).
        log_probs_reference: log π_ref of each token (nats).
        rewards: r_t, the price of distance included (reward).
        batch: what the squeeze stage learns from.
    """

    scores: Float[Tensor, " B"]
    log_probs_reference: Float[Tensor, "B T"]
    rewards: Float[Tensor, "B T"]
    batch: Batch


@dataclass
class TokenState:
    """Everything that a run is at the end of an iteration; `on_iteration` is given it.

    Attributes:
        config: the settings.
        networks: policy and critic.
        reference: π_ref; never changed.
        optimizer: over the networks' parameters.
        generator: the only source of randomness.
        beta: β of the next iteration (reward per nat).
        history: one row of metrics per finished iteration.
        answers: of this iteration.
        scored: of this iteration.
        stats: of this iteration.
    """

    config: RLHFConfig
    networks: TokenNetworks
    reference: Any
    optimizer: Optimizer
    generator: Generator
    beta: float
    history: History
    has_critic: bool = True
    answers: Answers | None = None
    scored: Scored | None = None
    stats: UpdateStats | None = None

    @property
    def policy(self) -> Any:
        """The policy that is trained: it answers, and rates answers."""
        return self.networks.policy

    @property
    def iteration(self) -> int:
        """The number of finished iterations."""
        return len(self.history)


@dataclass(frozen=True)
class Slots:
    """The functions of a run beside `Parts`: what pays, compares, asks, verifies and prices."""

    reward: Reward
    advantages: Callable[..., Any] = critic_advantages
    parts: Parts = field(default_factory=Parts)
    next_beta: Callable[..., float] = keep_beta
    draw: Callable[..., Prompts] = draw_prompts
    verifier: Verifier | None = is_correct


def train_tokens(
    config: RLHFConfig,
    *,
    policy: Any,
    reference: Any,
    reward: Reward,
    critic: nn.Module | None = None,
    advantages: Callable[..., Any] = critic_advantages,
    parts: Parts = Parts(),  # noqa: B008  (frozen, so one instance may serve all calls)
    next_beta: Callable[..., float] = keep_beta,
    draw: Callable[..., Prompts] = draw_prompts,
    verifier: Verifier | None = is_correct,
    on_iteration: Callable[[TokenState], object] | None = None,
) -> History:
    """Train a language model on rewards for whole answers: RLHF, with the update of lesson 08.

    Four models take part: the policy and its critic learn, the reference and the reward model are
    asked. With critic=None there are three; `advantages` must then be a function that needs none.

    Args:
        config: every number of the run.
        policy: a `LanguageModel`, or whatever answers and rates as `AnsweringPolicy` says; changed
            in place, so give a copy of the reference.
        reference: π_ref, the same kind of thing; never changed.
        reward: (prompts, responses) → one score per answer.
        critic: a `TokenCritic`, or a module that maps packed observations to V before each token;
            changed in place.
        advantages: (rewards [B, T], values [B, T] or None, mask, groups [B] | gamma, gae_lambda) →
            advantages and returns, both [B, T]; returns may be None where there is no critic.
        parts: the slots of `update`: optimizer, minibatches, normalize, policy_loss, value_loss,
            total_loss, gradient_step, stop_epochs. The others have no place here.
        next_beta: (β, measured KL | num_samples) → β of the next iteration.
        draw: (count | generator) → prompts.
        verifier: (prompts, tokens, mask) → whether each answer is right, for the metric `success`
            only; None leaves it out.
        on_iteration: called with the `TokenState` after each iteration; returns true to stop.

    Returns:
        One row of metrics per iteration, and the trained networks.

    Raises:
        ValueError: if policy and reference share weights, a part has no place here, or what the
            functions give back does not fit or is not finite.
        TypeError: if a model can neither answer nor be wrapped.
    """
    slots = Slots(reward, advantages, parts, next_beta, draw, verifier)
    with one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:
        state = start(config, policy=policy, reference=reference, critic=critic, parts=parts)
        state.history.stopped = "finished"
        while state.iteration < config.num_iterations:
            iterate(state, slots)
            if on_iteration is not None and wants_to_stop(on_iteration(state)):
                state.history.stopped = "on_iteration"
                break
            if interrupted.is_set() and state.iteration < config.num_iterations:
                state.history.stopped = "interrupted"
                break
    return state.history


def start(
    config: RLHFConfig, *, policy: Any, reference: Any, critic: nn.Module | None, parts: Parts
) -> TokenState:
    """Make everything that a run needs, beside the models themselves.

    Args:
        config: the settings.
        policy: as for `train_tokens`.
        reference: as for `train_tokens`.
        critic: as for `train_tokens`.
        parts: the slots of `update`.

    Returns:
        The state before the first iteration.

    Raises:
        ValueError: as `train_tokens`.
        TypeError: as `train_tokens`.
    """
    check_parts(parts)
    acting = as_policy(policy, "policy", config)
    asked = as_policy(reference, "reference", config)
    check_apart(policy=acting, reference=asked)
    if critic is None:
        rating: nn.Module = NoCritic(max_new_tokens=config.max_new_tokens)
    elif takes_tokens(critic):
        rating = TokenValues(critic, max_new_tokens=config.max_new_tokens)
    else:
        rating = critic
    check_apart(policy=acting, critic=rating)
    networks = TokenNetworks(acting, rating)
    optimizer = parts.call("optimizer", networks, learning_rate=config.learning_rate)
    set_critic_rate(optimizer, rating, config.critic_learning_rate)
    device = next(acting.parameters()).device
    return TokenState(
        config=config,
        networks=networks,
        reference=asked,
        optimizer=optimizer,
        generator=Generator(device).manual_seed(config.seed),
        beta=config.beta,
        history=History(config=config, networks=networks),
        has_critic=critic is not None,
    )


def iterate(state: TokenState, slots: Slots) -> None:
    """Go once through the four stages, and write down one row of metrics.

    Args:
        state: the run; moved on by one iteration.
        slots: the functions of the run.
    """
    config, clock = state.config, [time.perf_counter()]
    # Collect: the policy answers.
    answers = collect(state.policy, config, draw=slots.draw, generator=state.generator)
    clock.append(waited(state))
    # Score: reward, reference and critic are asked once.
    scored = score(
        answers, config, beta=state.beta, reference=state.reference, reward=slots.reward,
        critic=state.networks.critic if state.has_critic else None, advantages=slots.advantages,
    )  # fmt: skip
    clock.append(waited(state))
    # Squeeze: lesson 08's, as it stands.
    state.stats = update(
        state.networks, state.optimizer, scored.batch, config.of_update(),
        parts=slots.parts, generator=state.generator,
    )  # fmt: skip
    clock.append(waited(state))
    # Renew: the policy that was just trained answers next, at the price of tomorrow.
    state.answers, state.scored = answers, scored
    row = metrics_row(state, slots.verifier)
    check_row(row)
    state.beta = float(
        slots.next_beta(state.beta, row["kl_reference"], num_samples=config.batch_size)
    )
    clock.append(time.perf_counter())
    stages = ("collect", "score", "squeeze", "renew")
    spent = {f"seconds_{stage}": clock[i + 1] - clock[i] for i, stage in enumerate(stages)}
    state.history.rows.append(row | {"seconds": clock[-1] - clock[0]} | spent)


def collect(
    policy: AnsweringPolicy,
    config: RLHFConfig,
    *,
    draw: Callable[..., Prompts] = draw_prompts,
    generator: Generator,
) -> Answers:
    """Draw prompts, and let the policy answer each of them G times.

    Args:
        policy: answers.
        config: how many prompts, answers and tokens.
        draw: where prompts come from.
        generator: the only source of randomness.

    Returns:
        Prompts, answers and groups.
    """
    prompts = draw(config.num_prompts, generator=generator)
    numbers = torch.arange(len(prompts.tokens), device=prompts.tokens.device)
    prompts, groups = (
        prompts.repeated(config.group_size),
        numbers.repeat_interleave(config.group_size),
    )
    responses = policy.respond(prompts, max_new_tokens=config.max_new_tokens, generator=generator)
    return Answers(prompts, responses, groups)


@torch.no_grad()
def score(
    answers: Answers,
    config: RLHFConfig,
    *,
    beta: float,
    reference: AnsweringPolicy,
    reward: Reward,
    critic: nn.Module | None,
    advantages: Callable[..., Any] = critic_advantages,
) -> Scored:
    """Ask reward, reference and critic once, and lay everything out for the update.

    Args:
        answers: what the policy said.
        config: γ, λ and the limit of the reward.
        beta: β of this iteration (reward per nat).
        reference: gives log π_ref.
        reward: gives one score per answer.
        critic: packed observations to V before each token, or None.
        advantages: the estimator.

    Returns:
        Scores, log π_ref, rewards per token, and the batch.

    Raises:
        ValueError: if what a function gives back does not fit, or is not finite where it counts.
    """
    responses, observations = answers.responses, answers.observations
    mask = responses.mask
    check_answers(mask)
    scores = reward(answers.prompts, responses)
    check_finite(scores=scores)
    log_probs_reference, _ = reference.evaluate(observations, responses.tokens)
    rewards = token_rewards(
        scores.float(), responses.log_probs, log_probs_reference, mask,
        beta=beta, reward_limit=config.reward_limit,
    )  # fmt: skip
    values = None if critic is None else critic(observations)
    found = call_offered(
        advantages, rewards, values, mask, answers.groups,
        gamma=config.gamma, gae_lambda=config.gae_lambda,
    )  # fmt: skip
    estimated, returns = check_estimate(found, mask, critic is not None)
    nothing = torch.zeros_like(rewards)
    batch = Batch(
        observations=observations,
        actions=responses.tokens,
        log_probs_old=responses.log_probs,
        values_old=nothing if values is None else values,
        advantages=estimated,
        returns=nothing if returns is None else returns,
        valid=mask,
    )
    return Scored(scores, log_probs_reference, rewards, batch)


def check_estimate(
    found: Any, mask: Bool[Tensor, "B T"], has_critic: bool
) -> tuple[Tensor, Tensor | None]:
    """Require advantages, and returns where there is a critic, of the mask's shape.

    Raises:
        TypeError: if the estimator gave no pair.
        ValueError: if a shape differs, a number that counts is not finite, or returns are missing.
    """
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(
            f"advantages gave back a {type(found).__name__}; expected two tensors, advantages and "
            "returns. Return both; returns may be None where there is no critic."
        )
    estimated, returns = found
    check_same_shape(mask=mask, advantages=estimated, returns=returns)
    if has_critic and returns is None:
        raise ValueError(
            "advantages gave back None as returns; expected the critic's targets, since there is "
            "a critic. Return advantages + values, or train with critic=None."
        )
    check_finite(advantages=estimated.masked_fill(~mask, 0))
    return estimated, returns


def call_offered(function: Callable[..., Any], *positional: Any, **offered: Any) -> Any:
    """Call a function with those keywords that it names, as `Parts` does."""
    parameters = inspect.signature(function).parameters.values()
    fixed = function.keywords if isinstance(function, partial) else {}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        named = {p.name for p in parameters}
        offered = {name: value for name, value in offered.items() if name in named}
    return function(
        *positional, **{name: value for name, value in offered.items() if name not in fixed}
    )


@torch.no_grad()
def metrics_row(state: TokenState, verifier: Verifier | None) -> dict[str, Any]:
    """What is worth keeping of an iteration, under the names of `docs/notation.md`."""
    answers, scored, stats, config = state.answers, state.scored, state.stats, state.config
    assert answers is not None
    assert scored is not None
    assert stats is not None
    responses, batch = answers.responses, scored.batch
    kl = answer_kl(responses.log_probs, scored.log_probs_reference, responses.mask, estimator="k1")
    row = {
        "iteration": state.iteration + 1,
        "num_answers": (state.iteration + 1) * config.batch_size,
        **said(answers, verifier),
        "score": scored.scores.mean().item(),
        "kl_reference": kl.mean().item(),
        "beta": state.beta,
        "num_epochs": len(stats.kl_k1),
        **stats.last_epoch(),
        "first_ratio_deviation": stats.max_ratio_deviation[0, 0].item(),
    }
    if not state.has_critic:
        return row | {"value_loss": None, "ev_lambda": None, "ev_monte_carlo": None}
    mask = responses.mask
    to_go = token_gae(
        scored.rewards, torch.zeros_like(scored.rewards), mask, gamma=config.gamma, gae_lambda=1
    )
    for name, target in {"ev_lambda": batch.returns, "ev_monte_carlo": to_go}.items():
        share = explained_variance(batch.values_old[mask], target[mask]).item()
        row[name] = None if math.isnan(share) else share
    return row


def said(answers: Answers, verifier: Verifier | None) -> dict[str, float | None]:
    """Describe answers: how many are right, how long they are, how many do not end."""
    responses = answers.responses
    right = None
    if verifier is not None:
        right = verifier(answers.prompts, responses.tokens, responses.mask).float().mean().item()
    ends = ((responses.tokens == EOS) & responses.mask).any(dim=1)
    bangs = ((responses.tokens == BANG) & responses.mask).sum(dim=1)
    return {
        "success": right,
        "length": responses.mask.sum(dim=1).float().mean().item(),
        "no_eos": 1 - ends.float().mean().item(),
        "bangs": bangs.float().mean().item(),
    }


@torch.no_grad()
def evaluate_answers(
    policy: Any,
    prompts: Prompts,
    *,
    config: RLHFConfig,
    generator: Generator,
    reference: Any = None,
    reward: Reward | None = None,
    verifier: Verifier = is_correct,
) -> dict[str, float]:
    """Ask a policy held-out prompts, once by drawing and once greedily; nothing is learned.

    Args:
        policy: a `LanguageModel` or a `TokenPolicy`.
        prompts: that were never trained on: `draw_prompts(..., split="gate")`.
        config: temperature and the length of answers.
        generator: the only source of randomness.
        reference: for `kl_reference`; left out without it.
        reward: for `score`; left out without it.
        verifier: says what is right.

    Returns:
        success, greedy_success, length, no_eos, bangs, and score and kl_reference where asked for.
    """
    acting = as_policy(policy, "policy", config)
    responses = acting.respond(prompts, max_new_tokens=config.max_new_tokens, generator=generator)
    answers = Answers(prompts, responses, torch.arange(len(prompts.tokens)))
    found = {name: number for name, number in said(answers, verifier).items() if number is not None}
    greedy = generate_greedy(acting.model, prompts, max_new_tokens=config.max_new_tokens)
    found["greedy_success"] = verifier(prompts, greedy.tokens, greedy.mask).float().mean().item()
    if reward is not None:
        found["score"] = reward(prompts, responses).mean().item()
    if reference is not None:
        asked = as_policy(reference, "reference", config)
        log_probs_reference, _ = asked.evaluate(answers.observations, responses.tokens)
        kl = answer_kl(responses.log_probs, log_probs_reference, responses.mask, estimator="k1")
        found["kl_reference"] = kl.mean().item()
    return found


def as_policy(model: Any, name: str, config: RLHFConfig) -> Any:
    """Take a policy as it is, and put a language model into a `TokenPolicy`.

    Raises:
        TypeError: if it is neither.
        ValueError: if its temperature is not the one of the config.
    """
    if isinstance(model, AnsweringPolicy):
        if getattr(model, "temperature", config.temperature) != config.temperature:
            raise ValueError(
                f"{name} has temperature {getattr(model, 'temperature', None)}; expected "
                f"config.temperature = {config.temperature}. Draw and rate at one temperature."
            )
        return model
    if isinstance(model, LanguageModel):
        return TokenPolicy(model, temperature=config.temperature)
    raise TypeError(
        f"{name} is a {type(model).__name__}; expected a LanguageModel, or an object with respond "
        "and evaluate. Give cached_reference(), or a copy of it."
    )


def takes_tokens(critic: nn.Module) -> bool:
    """Say whether a critic wants tokens and mask, two arguments, instead of packed observations."""
    wanted = [
        p
        for p in inspect.signature(critic.forward).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(wanted) >= 2


def check_apart(**models: Any) -> None:
    """Require that two models share no weight.

    Raises:
        ValueError: if they do.
    """
    (first, one), (second, other) = models.items()
    shared = {id(p) for p in one.parameters()} & {
        id(p) for p in getattr(other, "parameters", list)()
    }
    if shared:
        raise ValueError(
            f"{first} and {second} share {len(shared)} weight tensors; expected two models of "
            f"their own, since only one of them may move. Give {first} a copy: "
            "copy.deepcopy(model)."
        )


def check_parts(parts: Parts) -> None:
    """Require that no part was replaced that this loop does not use.

    Raises:
        ValueError: with the first that was.
    """
    usual = Parts()
    for slot in ("networks", "collect", "score", "advantages"):
        if getattr(parts, slot) is not getattr(usual, slot):
            raise ValueError(
                f"Parts.{slot} was replaced; expected it left alone, since train_tokens collects "
                "and scores answers itself. Use the arguments draw, reward, critic and advantages "
                "of train_tokens."
            )


def set_critic_rate(optimizer: Optimizer, critic: nn.Module, learning_rate: float) -> None:
    """Give the critic's parameters a step size of their own, in a group of their own.

    Args:
        optimizer: over policy and critic; changed in place.
        critic: whose parameters are moved.
        learning_rate: theirs.
    """
    own = {id(parameter) for parameter in critic.parameters()}
    for group in list(optimizer.param_groups):
        moved = [parameter for parameter in group["params"] if id(parameter) in own]
        if not moved:
            continue
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in own]
        optimizer.add_param_group({**group, "params": moved, "lr": learning_rate})
    optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]


def check_row(row: dict[str, Any]) -> None:
    """Require finite metrics.

    Raises:
        ValueError: with the iteration and the metric.
    """
    for name, value in row.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(
                f"iteration {row['iteration']}: {name} is {value}; expected a finite number. Lower "
                "learning_rate, raise beta, or look at what reward and advantages give back."
            )


def waited(state: TokenState) -> float:
    """Give the time, after everything asked of an accelerator is finished."""
    if state.generator.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
