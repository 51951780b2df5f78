"""Write down what other libraries answer, so that parity is proved where they are not installed.

    python tools/make_golden.py

`tests/test_parity.py` compares the package with `tests/golden/parity.json` and, where the libraries
are installed, with the libraries themselves, by the functions of this file. Inputs are drawn here
from seeds and stored with the answers; the versions that answered stand in the file.
"""

import importlib
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "parity.json"
GAMMA, GAE_LAMBDA, CLIP_EPSILON = 0.97, 0.9, 0.2
Tensors = dict[str, Tensor]


def draw_rollout(seed: int, *, with_truncation: bool) -> Tensors:
    """Draw 12 steps of 3 environments, in numbers that float32 holds exactly.

    Inside an episode `next_values[t]` is `values[t + 1]`.
    """
    generator = torch.Generator().manual_seed(seed)
    rewards, values, next_values = (
        torch.randint(-400, 400, (12, 3), generator=generator) / 128 for _ in range(3)
    )
    terminated, truncated = (torch.rand(12, 3, generator=generator) < 0.2 for _ in range(2))
    truncated &= with_truncation
    inside = ~(terminated | truncated)[:-1]
    next_values[:-1] = torch.where(inside, values[1:], next_values[:-1])
    names = ("rewards", "values", "next_values", "terminated", "truncated")
    return dict(zip(names, (rewards, values, next_values, terminated, truncated), strict=True))


def draw_choices(seed: int) -> Tensors:
    """Draw logits of 64 choices among 4 actions, a third of the ratios outside the clip."""
    generator = torch.Generator().manual_seed(seed)
    logits_old = torch.randn(64, 4, generator=generator, dtype=torch.float64)
    logits = logits_old + 0.4 * torch.randn(64, 4, generator=generator, dtype=torch.float64)
    actions = torch.multinomial(logits_old.softmax(-1), 1, generator=generator).squeeze(-1)
    advantages = torch.randn(64, generator=generator, dtype=torch.float64)
    return {
        "logits": logits,
        "logits_old": logits_old,
        "actions": actions,
        "advantages": advantages,
    }


def draw_boards(seed: int, count: int) -> Tensors:
    """Draw states of Breakout and actions (0 stay, 1 left, 2 right), most of them odd.

    Boards are full, half full, nearly empty or empty. `bricks` is one number: bit 10·(row − 1) +
    column is the brick there.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> Tensor:
        return torch.randint(low, high, (count,), generator=generator)

    share = torch.tensor([1.0, 0.5, 0.02, 0.0])[draw(0, 4)]
    row, column = draw(0, 9), draw(0, 10)
    there = torch.rand(count, 30, generator=generator) < share[:, None]
    beside = (column + draw(-1, 2)).clamp(0, 9)  # half of the paddles are near the ball
    return {
        "row": row,
        "column": column,
        "trail_row": draw(0, 9),
        "trail_column": draw(0, 10),
        "direction": draw(0, 4),
        "paddle": torch.where(draw(0, 2) == 1, beside, draw(0, 10)),
        "struck": draw(0, 4) == 0,
        "bricks": (there.long() << torch.arange(30)).sum(-1),
        "actions": draw(0, 3),
    }


def draw_regression(seed: int) -> Tensors:
    """Draw values and returns that agree in part."""
    generator = torch.Generator().manual_seed(seed)
    returns = torch.randn(50, generator=generator, dtype=torch.float64)
    values = returns + 0.5 * torch.randn(50, generator=generator, dtype=torch.float64)
    return {"values": values, "returns": returns}


def ask_sb3_for_gae(rollout: Tensors) -> Tensors:
    """Ask Stable-Baselines3's rollout buffer, in float32, fed as its `collect_rollouts` feeds it.

    It has one flag, of the row after the end, and hides a truncated future in the reward:
    r ← r + γ·V(last observation).
    """
    buffers = importlib.import_module("stable_baselines3.common.buffers")
    spaces = importlib.import_module("gymnasium.spaces")
    num_steps, num_envs = rollout["rewards"].shape
    buffer = buffers.RolloutBuffer(
        num_steps,
        spaces.Discrete(2),
        spaces.Discrete(2),
        device="cpu",
        gamma=GAMMA,
        gae_lambda=GAE_LAMBDA,
        n_envs=num_envs,
    )
    only_truncated = rollout["truncated"] & ~rollout["terminated"]
    ended = (rollout["truncated"] | rollout["terminated"]).float()
    patched = rollout["rewards"] + GAMMA * rollout["next_values"] * only_truncated
    zeros = torch.zeros(num_envs)
    starts = torch.cat([torch.ones(1, num_envs), ended[:-1]])
    for t in range(num_steps):
        buffer.add(
            zeros.numpy(),
            zeros.numpy(),
            patched[t].numpy(),
            starts[t].numpy(),
            rollout["values"][t],
            zeros,
        )
    buffer.compute_returns_and_advantage(rollout["next_values"][-1], ended[-1].numpy())
    return {
        "advantages": torch.from_numpy(buffer.advantages),
        "returns": torch.from_numpy(buffer.returns),
    }


def ask_torchrl_for_gae(rollout: Tensors) -> Tensors:
    """Ask torchrl's plain loop on float64: time second last, a last axis of 1, two flags."""
    functional = importlib.import_module("torchrl.objectives.value.functional")
    wide = {
        name: table.T.unsqueeze(-1).to(torch.float64 if table.is_floating_point() else torch.bool)
        for name, table in rollout.items()
    }
    advantages, returns = functional.generalized_advantage_estimate(
        GAMMA,
        GAE_LAMBDA,
        wide["values"],
        wide["next_values"],
        wide["rewards"],
        done=wide["terminated"] | wide["truncated"],
        terminated=wide["terminated"],
    )
    return {"advantages": advantages.squeeze(-1).T, "returns": returns.squeeze(-1).T}


def ask_torchrl_for_the_clip(choices: Tensors) -> Tensors:
    """Ask torchrl's ClipPPOLoss, of a policy that hands its logits through."""
    objectives = importlib.import_module("torchrl.objectives")
    modules = importlib.import_module("torchrl.modules")
    nn = importlib.import_module("tensordict.nn")
    distributions = importlib.import_module("torch.distributions")
    tensordict = importlib.import_module("tensordict")
    log_probs_old = log_probs_of(choices["logits_old"], choices["actions"])
    logits = choices["logits"].clone().requires_grad_()
    actor = modules.ProbabilisticActor(
        nn.TensorDictModule(torch.nn.Identity(), in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=distributions.Categorical,
        return_log_prob=True,
    )
    loss = objectives.ClipPPOLoss(
        actor, None, clip_epsilon=CLIP_EPSILON, entropy_bonus=False, normalize_advantage=False
    )
    answer = loss(
        tensordict.TensorDict(
            {
                "observation": logits,
                "action": choices["actions"],
                "action_log_prob": log_probs_old,
                "advantage": choices["advantages"].unsqueeze(-1),
            },
            batch_size=[len(logits)],
        )
    )
    (slope,) = torch.autograd.grad(answer["loss_objective"], logits)
    return {
        "loss": answer["loss_objective"].detach(),
        "slope": slope,
        "fraction_outside": answer["clip_fraction"],
        "kl_k1": answer["kl_approx"],
        "effective_share": answer["ESS"].detach().squeeze(),
    }


def ask_sb3_for_explained_variance(regression: Tensors) -> Tensors:
    """Ask Stable-Baselines3 for the explained variance of predictions."""
    utils = importlib.import_module("stable_baselines3.common.utils")
    share = utils.explained_variance(regression["values"].numpy(), regression["returns"].numpy())
    return {"explained_variance": torch.tensor(float(share), dtype=torch.float64)}


def log_probs_of(logits: Tensor, actions: Tensor) -> Tensor:
    """Give log π(a | s) of the actions that were taken."""
    return logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def ask_minatar_for_a_step(given: Tensors) -> Tensors:
    """Let MinAtar's Breakout take one step from each state."""
    game = importlib.import_module("minatar.environments.breakout").Env()
    rows = [
        dict(zip(given, numbers, strict=True))
        for numbers in zip(*write(given).values(), strict=True)
    ]
    answers = [one_step(game, row) for row in rows]
    return {name: torch.tensor([answer[name] for answer in answers]) for name in answers[0]}


def one_step(game: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Set MinAtar's game to a state, act, and read the state that was reached."""
    game.ball_y, game.ball_x = row["row"], row["column"]
    game.last_y, game.last_x = row["trail_row"], row["trail_column"]
    game.ball_dir, game.pos = row["direction"], row["paddle"]
    game.brick_map[:] = 0
    for place in range(30):
        game.brick_map[1 + place // 10, place % 10] = row["bricks"] >> place & 1
    game.strike, game.terminal = row["struck"], False
    reward, terminal = game.act((0, 1, 3)[row["actions"]])
    bricks = game.brick_map[1:4].flatten().tolist()
    return {
        "row": game.ball_y,
        "column": game.ball_x,
        "trail_row": game.last_y,
        "trail_column": game.last_x,
        "direction": game.ball_dir,
        "paddle": game.pos,
        "struck": bool(game.strike),
        "bricks": sum(int(brick) << place for place, brick in enumerate(bricks)),
        "rewards": float(reward),
        "terminated": bool(terminal),
        "seen": sum(int(each) << n % 62 for n, each in enumerate(game.state().flatten().tolist())),
    }


# name of a case: the library asked, how it is asked, and about what
CASES: dict[str, tuple[str, Callable[[Tensors], Tensors], Callable[[], Tensors]]] = {
    "gae, terminations": (
        "stable-baselines3",
        ask_sb3_for_gae,
        lambda: draw_rollout(1, with_truncation=False),
    ),
    "gae, truncations in the rewards": (
        "stable-baselines3",
        ask_sb3_for_gae,
        lambda: draw_rollout(2, with_truncation=True),
    ),
    "gae, two flags": (
        "torchrl",
        ask_torchrl_for_gae,
        lambda: draw_rollout(3, with_truncation=True),
    ),
    "clipped surrogate": ("torchrl", ask_torchrl_for_the_clip, lambda: draw_choices(4)),
    "explained variance": (
        "stable-baselines3",
        ask_sb3_for_explained_variance,
        lambda: draw_regression(5),
    ),
    "breakout": ("minatar", ask_minatar_for_a_step, lambda: draw_boards(6, 400)),
}


def write(tensors: Tensors) -> dict[str, Any]:
    """Tensors as lists."""
    return {name: tensor.tolist() for name, tensor in tensors.items()}


def main() -> None:
    """Ask every library and write all answers."""
    libraries = ("torch", *sorted({library for library, _, _ in CASES.values()}))
    golden = {
        "written by": "tools/make_golden.py",
        "versions": {name: version(name) for name in libraries},
        "settings": {"gamma": GAMMA, "gae_lambda": GAE_LAMBDA, "clip_epsilon": CLIP_EPSILON},
        "cases": {
            name: {"library": library, "given": write(draw()), "answer": write(ask(draw()))}
            for name, (library, ask, draw) in CASES.items()
        },
    }
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {len(CASES)} cases to {GOLDEN.relative_to(GOLDEN.parents[2])}")


if __name__ == "__main__":
    main()
