"""Look into squeeze stages: who is dealt into which minibatch, and where each ratio goes.

    python -m benchmarks.squeeze

Two widgets of lesson 08 show what this recorded in `ppo_lessons/recorded`: BatchLedger
`batch_ledger.json`, small first batches squeezed in many ways, and LifeOfATransition
`life_of_a_transition.json`, four samples of a later batch, from the step that made them to the end.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.record import RECORDED, write_result
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.envs import make_envs
from ppo_lessons.networks import make_networks
from ppo_lessons.rollout import collect_rollout, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, make_optimizer
from ppo_lessons.training_loop.parts import clipped_gradient_step, shuffled_minibatches
from ppo_lessons.training_loop.train import TrainState, iterate, score, start
from ppo_lessons.training_loop.update import update
from ppo_lessons.types import Batch, Rollout

COMMAND = "python -m benchmarks.squeeze"
NUM_ENVS, NUM_STEPS, NUM_MINIBATCHES, NUM_EPOCHS = (4, 8), (8, 16), (1, 2, 4, 8), 8
SEED = 11
SHARES = (0.0, 0.1, 0.9, 1.0)  # of the ratios that lie below what is recorded
LIFE = PPOConfig(seed=5, num_envs=16, num_steps=16, num_epochs=8, num_minibatches=4)
ITERATIONS_BEFORE = 12  # by then the critic has learned something


# --- the ledger --------------------------------------------------------------------------------


def squeeze(num_envs: int, num_steps: int, num_minibatches: int) -> dict[str, Any]:
    """Collect one small batch with a fresh policy, and learn from it for 8 epochs.

    Args:
        num_envs: N.
        num_steps: T.
        num_minibatches: M.

    Returns:
        `dealt`, for each epoch one digit for each of the T·N samples, time first: the minibatch
        that it was in; `ratios`, before the first step and after each, those below which none, a
        tenth, nine tenths and all of the ratios lie.
    """
    config = PPOConfig(
        seed=SEED, num_envs=num_envs, num_steps=num_steps, num_epochs=NUM_EPOCHS,
        num_minibatches=num_minibatches, total_steps=num_envs * num_steps,
    )  # fmt: skip
    generator = Generator().manual_seed(config.seed)
    envs = make_envs(config.env, num_envs)
    networks = make_networks((4,), 2, hidden_sizes=config.hidden_sizes, generator=generator)
    carry = start_carry(envs, seed=config.seed)
    rollout, _ = collect_rollout(
        envs, networks.policy, carry, num_steps=num_steps, generator=generator
    )
    batch = score(rollout, networks, config, Parts())
    dealt: list[str] = []
    spread = [[1.0] * len(SHARES)]

    def deal(num_rows: int, num_minibatches: int, *, generator: Generator) -> Iterator[Tensor]:
        hands = list(shuffled_minibatches(num_rows, num_minibatches, generator=generator))
        places = torch.empty(num_rows, dtype=torch.int64)
        for number, rows in enumerate(hands):
            places[rows] = number
        dealt.append("".join(map(str, places.tolist())))
        return iter(hands)

    def step(loss: Tensor, networks: Any, optimizer: Any, *, max_grad_norm: float) -> Tensor:
        norm = clipped_gradient_step(loss, networks, optimizer, max_grad_norm=max_grad_norm)
        spread.append(_shares(_ratios(networks, batch)))
        return norm

    optimizer = make_optimizer(networks, learning_rate=config.learning_rate)
    parts = Parts(minibatches=deal, gradient_step=step)
    update(networks, optimizer, batch, config, parts=parts, generator=generator)
    return {"dealt": dealt, "ratios": spread}


@torch.no_grad()
def _ratios(networks: Any, batch: Batch) -> Tensor:
    log_probs, _ = networks.policy.evaluate(batch.observations, batch.actions)
    return (log_probs - batch.log_probs_old).exp()


def _shares(ratios: Tensor) -> list[float]:
    return [round(each, 4) for each in ratios.quantile(torch.tensor(SHARES)).tolist()]


def ledger() -> dict[str, Any]:
    """Squeeze each batch in each way; the key is "N,T,M"."""
    return {
        "clip_epsilon": PPOConfig().clip_epsilon,
        "num_epochs": NUM_EPOCHS,
        "squeezes": {
            f"{num_envs},{num_steps},{num_minibatches}": squeeze(
                num_envs, num_steps, num_minibatches
            )
            for num_envs in NUM_ENVS
            for num_steps in NUM_STEPS
            for num_minibatches in NUM_MINIBATCHES
        },
    }


# --- four lives --------------------------------------------------------------------------------


def lives() -> dict[str, Any]:
    """Train for a while, then follow four samples of one batch through all stages.

    Returns:
        γ, λ, ε, the iteration, and `samples`, by name: "good" and "bad", which always push;
        "clipped", which falls silent and is still good; "last", the step with which a pole fell.
    """
    config = replace(LIFE, total_steps=40 * LIFE.batch_size)
    state = start(config, None, Parts())
    for _ in range(ITERATIONS_BEFORE):
        iterate(state, Parts())
    parts, visits = _watched(config)
    iterate(state, parts)
    assert state.rollout is not None
    assert state.batch is not None
    found = _choose(visits, state.rollout, state.batch)
    return {
        "gamma": config.gamma,
        "gae_lambda": config.gae_lambda,
        "clip_epsilon": config.clip_epsilon,
        "num_epochs": config.num_epochs,
        "num_minibatches": config.num_minibatches,
        "batch_size": config.batch_size,
        "iteration": state.iteration,
        "samples": {name: _life(row, state, visits[row]) for name, row in found.items()},
    }


def _watched(config: PPOConfig) -> tuple[Parts, list[list[dict[str, float]]]]:
    """Make parts that write down each visit of each sample."""
    visits: list[list[dict[str, float]]] = [[] for _ in range(config.batch_size)]
    rows: list[Tensor] = []

    def deal(num_rows: int, num_minibatches: int, *, generator: Generator) -> Iterator[Tensor]:
        for each in shuffled_minibatches(num_rows, num_minibatches, generator=generator):
            rows.append(each)
            yield each

    def loss(
        log_probs: Tensor, log_probs_old: Tensor, advantages: Tensor, *, clip_epsilon: float
    ) -> Tensor:
        for row, new, normalized in zip(
            rows[-1].tolist(), log_probs.tolist(), advantages.tolist(), strict=True
        ):
            minibatch = (len(rows) - 1) % config.num_minibatches
            visits[row].append(
                {"minibatch": minibatch, "log_prob": new, "normalized_advantage": normalized}
            )
        return clipped_surrogate_loss(
            log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon
        )

    return Parts(minibatches=deal, policy_loss=loss), visits


def silent(ratio: float, advantage: float, epsilon: float) -> bool:
    """Say whether the clip removed the gradient of a sample."""
    return (ratio > 1 + epsilon and advantage > 0) or (ratio < 1 - epsilon and advantage < 0)


def _choose(visits: list[list[dict[str, float]]], rollout: Rollout, batch: Batch) -> dict[str, int]:
    """Choose four rows: each the one with the largest advantage of its kind, early in time."""
    advantages, old = batch.advantages.tolist(), batch.log_probs_old.tolist()
    ended, terminated = rollout.ended, rollout.terminated.flatten().tolist()
    num_envs = rollout.rewards.shape[1]
    epsilon = LIFE.clip_epsilon
    kinds: dict[str, list[int]] = {name: [] for name in ("good", "bad", "clipped", "last")}
    for row, seen in enumerate(visits):
        ratios = torch.tensor([each["log_prob"] - old[row] for each in seen]).exp().tolist()
        off = [
            silent(ratio, each["normalized_advantage"], epsilon)
            for ratio, each in zip(ratios, seen, strict=True)
        ]
        signs = {each["normalized_advantage"] > 0 for each in seen}
        if len(signs) > 1:
            continue  # its sign would depend on the minibatch
        t, n = divmod(row, num_envs)
        if terminated[row]:
            kinds["last"].append(row)
        elif t > 9 or ended[t : t + 4, n].any():
            continue  # too short a future to be worth a picture
        elif 3 <= sum(off) <= 5 and not off[-1] and advantages[row] > 0:
            kinds["clipped"].append(row)
        elif not any(off) and advantages[row] > 0 and ratios[-1] > 1.05:
            kinds["good"].append(row)
        elif not any(off) and advantages[row] < 0 and ratios[-1] < 0.95:
            kinds["bad"].append(row)
    return {name: max(rows, key=lambda row: abs(advantages[row])) for name, rows in kinds.items()}


def _life(row: int, state: TrainState, seen: list[dict[str, float]]) -> dict[str, Any]:
    """Write down what happened to one sample in each stage."""
    rollout, batch, networks = state.rollout, state.batch, state.networks
    assert rollout is not None
    assert batch is not None
    t, n = divmod(row, rollout.rewards.shape[1])
    end = rollout.ended[t:, n].nonzero()
    stop = t + int(end[0]) + 1 if len(end) else len(rollout.rewards)
    rest = slice(t, stop)
    values = batch.values_old.view_as(rollout.rewards)
    with torch.no_grad():
        log_probs, _ = networks.policy.evaluate(batch.observations, batch.actions)
    # what stands behind a final state is left out by td_errors; it is recorded as 0
    following = [values[i + 1, n] for i in range(t, stop - 1)]
    following.append(_value_after(rollout, batch, stop - 1, n))
    return {
        "t": t,
        "n": n,
        "observation": _six(rollout.observations[t, n]),
        "next_observation": _six(rollout.next_observations[t, n]),
        "action": int(rollout.actions[t, n]),
        "log_prob_old": round(batch.log_probs_old[row].item(), 6),
        "rewards": _six(rollout.rewards[rest, n]),
        "values": _six(values[rest, n]),
        "next_values": _six(torch.stack(following)),
        "terminated": bool(rollout.terminated[stop - 1, n]),
        "advantage": round(batch.advantages[row].item(), 6),
        "return": round(batch.returns[row].item(), 6),
        "visits": [{name: round(value, 6) for name, value in visit.items()} for visit in seen],
        "log_prob_new": round(log_probs[row].item(), 6),
    }


def _value_after(rollout: Rollout, batch: Batch, t: int, n: int) -> Tensor:
    """What the critic had said of the state after row t: the advantage there tells it.

    A_t = r + γ·V' − V on the last row of an episode or of a rollout.
    """
    if rollout.terminated[t, n]:
        return torch.zeros(())
    values, advantages = (x.view_as(rollout.rewards) for x in (batch.values_old, batch.advantages))
    return (advantages[t, n] - rollout.rewards[t, n] + values[t, n]) / LIFE.gamma


def _six(numbers: Tensor) -> list[float]:
    return [round(each, 6) for each in numbers.tolist()]


def main() -> None:
    """Record both."""
    torch.set_num_threads(1)
    print(write_result("batch_ledger", COMMAND, ledger(), folder=RECORDED))
    print(write_result("life_of_a_transition", COMMAND, lives(), folder=RECORDED))


if __name__ == "__main__":
    main()
