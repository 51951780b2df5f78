"""Collect, score, squeeze, renew, on answers of a language model; squeeze is lesson 08's.

collect   the policy answers prompts                     Responses [B, T]
score     reward, reference and critic rate the answers  Batch [B], its columns [B, T]
squeeze   `update`: K epochs of minibatches, the clip    UpdateStats [K, M]
renew     the new policy answers next; β may move
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, nn
from torch.optim import Optimizer

from ppo_lessons.critic import explained_variance
from ppo_lessons.rlhf.advantages import critic_advantages, token_gae
from ppo_lessons.rlhf.config import RLHFConfig
from ppo_lessons.rlhf.controller import keep_beta
from ppo_lessons.rlhf.evaluate import Verifier, said
from ppo_lessons.rlhf.models import TokenNetworks, as_policy, as_values, check_apart
from ppo_lessons.rlhf.rewards import answer_kl
from ppo_lessons.rlhf.stages import Answers, Reward, Scored, collect, score
from ppo_lessons.tokens.language import Prompts, draw_prompts, is_correct
from ppo_lessons.training_loop import Parts, update
from ppo_lessons.training_loop.train import deferred_interrupt, one_thread, wants_to_stop
from ppo_lessons.types import History, UpdateStats


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
    Ctrl-C ends the run after the iteration that is under way, as in `train`.

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
    if torch.is_inference_mode_enabled():
        raise ValueError(
            "torch.inference_mode is on; expected it off, since training needs gradients. Call "
            "train_tokens outside of it."
        )
    slots = Slots(reward, advantages, parts, next_beta, draw, verifier)
    with one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:
        state = start(config, policy=policy, reference=reference, critic=critic, parts=parts)
        state.history.stopped = run(state, slots, on_iteration, interrupted)
    return state.history


def run(
    state: TokenState,
    slots: Slots,
    on_iteration: Callable[[TokenState], object] | None,
    interrupted: threading.Event,
) -> str:
    """Iterate until all iterations are done or something says stop; say which."""
    try:
        while state.iteration < state.config.num_iterations:
            iterate(state, slots)
            if on_iteration is not None and wants_to_stop(on_iteration(state)):
                return "on_iteration"
            if interrupted.is_set() and state.iteration < state.config.num_iterations:
                return "interrupted"
    except KeyboardInterrupt:
        return "interrupted"
    return "finished"


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
    acting = as_policy(policy, "policy", temperature=config.temperature)
    asked = as_policy(reference, "reference", temperature=config.temperature)
    check_apart(policy=acting, reference=asked)
    rating = as_values(critic, max_new_tokens=config.max_new_tokens)
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
        beta=float(config.beta),
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
        scored.rewards, torch.zeros_like(scored.rewards), mask, gamma=config.gamma, gae_lambda=1.0
    )
    for name, target in {"ev_lambda": batch.returns, "ev_monte_carlo": to_go}.items():
        share = explained_variance(batch.values_old[mask], target[mask]).item()
        row[name] = None if math.isnan(share) else share
    return row


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
