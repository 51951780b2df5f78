# ruff: noqa: E501 - the lines of the loops are those of their style
"""Four loops in the styles that people publish, and bugs of one line planted in them.

A loop is a text: a bug replaces one line of it, which must occur once, and the changed text is run.
Its style, names and order of axes are those of its kind; that is why they stand in strings. Facts
that a loop has no use for (which flag it was, V of a last observation) are written down beside it.
"""

import ast
import copy
import inspect
import re
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Categorical, Normal

from ppo_lessons import cli
from ppo_lessons.audit import CLEANRL, MEANINGS, RULES, SB3, Report, audit
from ppo_lessons.envs import GymEnvs
from ppo_lessons.gae import compute_gae
from ppo_lessons.networks import make_networks
from ppo_lessons.rollout import collect_rollout, score_values, start_carry

CLEANRL_STYLE = """
obs = torch.zeros((args.num_steps, args.num_envs) + envs.single_observation_space.shape)
actions = torch.zeros((args.num_steps, args.num_envs))
logprobs = torch.zeros((args.num_steps, args.num_envs))
rewards = torch.zeros((args.num_steps, args.num_envs))
dones = torch.zeros((args.num_steps, args.num_envs))
values = torch.zeros((args.num_steps, args.num_envs))
next_obs = torch.Tensor(envs.reset(seed=args.seed)[0])
next_done = torch.zeros(args.num_envs)
for step in range(args.num_steps):
    obs[step] = next_obs
    dones[step] = next_done
    with torch.no_grad():
        action, logprob, _, value = agent.get_action_and_value(next_obs)
        values[step] = value.flatten()
    actions[step] = action
    logprobs[step] = logprob
    next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
    next_done = np.logical_or(terminations, truncations)
    rewards[step] = torch.tensor(reward).view(-1)
    next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(next_done)
with torch.no_grad():
    next_value = agent.get_value(next_obs).reshape(1, -1)
    advantages = torch.zeros_like(rewards)
    lastgaelam = 0
    for t in reversed(range(args.num_steps)):
        if t == args.num_steps - 1:
            nextnonterminal = 1.0 - next_done
            nextvalues = next_value
        else:
            nextnonterminal = 1.0 - dones[t + 1]
            nextvalues = values[t + 1]
        delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
        advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
    returns = advantages + values
b_obs = obs.reshape((-1,) + envs.single_observation_space.shape)
b_logprobs = logprobs.reshape(-1)
b_actions = actions.reshape(-1)
b_advantages = advantages.reshape(-1)
b_returns = returns.reshape(-1)
b_values = values.reshape(-1)
b_inds = np.arange(args.batch_size)
for epoch in range(args.update_epochs):
    np.random.default_rng(epoch).shuffle(b_inds)
    for start in range(0, args.batch_size, args.minibatch_size):
        end = start + args.minibatch_size
        mb_inds = b_inds[start:end]
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions[mb_inds])
        logratio = newlogprob - b_logprobs[mb_inds]
        ratio = logratio.exp()
        mb_advantages = b_advantages[mb_inds]
        mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
        pg_loss1 = -mb_advantages * ratio
        pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        newvalue = newvalue.view(-1)
        v_loss_unclipped = (newvalue - b_returns[mb_inds]) ** 2
        v_clipped = b_values[mb_inds] + torch.clamp(newvalue - b_values[mb_inds], -args.clip_coef, args.clip_coef)
        v_loss_clipped = (v_clipped - b_returns[mb_inds]) ** 2
        v_loss = 0.5 * torch.max(v_loss_unclipped, v_loss_clipped).mean()
        entropy_loss = entropy.mean()
        loss = pg_loss - args.ent_coef * entropy_loss + v_loss * args.vf_coef
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
"""

SPINNING_UP_STYLE = """
def discount_cumsum(x, discount):
    out, total = np.zeros(len(x)), 0.0
    for i in reversed(range(len(x))):
        total = x[i] + discount * total
        out[i] = total
    return out

class PPOBuffer:
    def __init__(self, size):
        self.rew_buf, self.val_buf, self.logp_buf = (np.zeros(size, dtype=np.float32) for _ in range(3))
        self.adv_buf, self.ret_buf = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
        self.ptr, self.path_start_idx = 0, 0

    def store(self, rew, val, logp):
        self.rew_buf[self.ptr] = rew
        self.val_buf[self.ptr] = val
        self.logp_buf[self.ptr] = logp
        self.ptr += 1

    def finish_path(self, last_val=0):
        path_slice = slice(self.path_start_idx, self.ptr)
        rews = np.append(self.rew_buf[path_slice], last_val)
        vals = np.append(self.val_buf[path_slice], last_val)
        deltas = rews[:-1] + gamma * vals[1:] - vals[:-1]
        self.adv_buf[path_slice] = discount_cumsum(deltas, gamma * lam)
        self.ret_buf[path_slice] = discount_cumsum(rews, gamma)[:-1]
        self.path_start_idx = self.ptr

buf, observed, acted = PPOBuffer(steps_per_epoch), [], []
o, _ = env.reset(seed=seed)
for t in range(steps_per_epoch):
    a, v, logp = ac.step(torch.as_tensor(o))
    next_o, r, terminated, timeout, _ = env.step(a)
    buf.store(r, v, logp)
    observed.append(o)
    acted.append(a)
    o = next_o
    epoch_ended = t == steps_per_epoch - 1
    terminal = terminated or timeout
    if terminal or epoch_ended:
        if timeout or epoch_ended:
            _, v, _ = ac.step(torch.as_tensor(o))
        if terminated:
            v = 0
        buf.finish_path(v)
        o, _ = env.reset()
raw_adv = buf.adv_buf.copy()
adv = (buf.adv_buf - buf.adv_buf.mean()) / buf.adv_buf.std()
data = {k: torch.as_tensor(np.array(x)) for k, x in dict(o=observed, a=acted, adv=adv, ret=buf.ret_buf, logp=buf.logp_buf).items()}
for i in range(train_pi_iters):
    pi, logp = ac.pi(data["o"], data["a"])
    ratio = torch.exp(logp - data["logp"])
    clip_adv = torch.clamp(ratio, 1 - clip_ratio, 1 + clip_ratio) * data["adv"]
    loss_pi = -(torch.min(ratio * data["adv"], clip_adv)).mean()
    new_v = ac.v(data["o"])
    loss_v = ((new_v - data["ret"]) ** 2).mean()
    optimizer.zero_grad()
    (loss_pi + loss_v).backward()
    optimizer.step()
"""

BY_HAND = """
states, log_probs, values, rewards, masks, cuts, after, actions = [], [], [], [], [], [], [], []
state, _ = env.reset(seed=seed)
for _ in range(num_steps):
    with torch.no_grad():
        dist, value = model(torch.FloatTensor(state))
    action = dist.sample()
    next_state, reward, terminated, truncated, _ = env.step(action.numpy())
    states.append(torch.FloatTensor(state))
    actions.append(action)
    log_probs.append(dist.log_prob(action))
    values.append(value)
    rewards.append(float(reward))
    masks.append(1 - terminated)
    cuts.append(1 - (terminated or truncated))
    after.append(model(torch.FloatTensor(next_state))[1].detach())
    state = next_state
    if terminated or truncated:
        state, _ = env.reset()
gae, advantages = 0, []
for step in reversed(range(len(rewards))):
    delta = rewards[step] + gamma * after[step] * masks[step] - values[step]
    gae = delta + gamma * tau * cuts[step] * gae
    advantages.insert(0, gae)
advantages = torch.stack(advantages).squeeze(-1)
values = torch.stack(values).squeeze(-1)
returns = advantages + values
states, actions, old = torch.stack(states), torch.stack(actions), torch.stack(log_probs).sum(-1)
scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-5)
for _ in range(ppo_epochs):
    dist, value = model(states)
    per_dimension = dist.log_prob(actions)
    new = per_dimension.sum(-1)
    ratio = (new - old).exp()
    surr1 = ratio * scaled
    surr2 = torch.clamp(ratio, 1.0 - eps, 1.0 + eps) * scaled
    actor_loss = -torch.min(surr1, surr2).mean()
    critic_loss = (returns - value.squeeze(-1)).pow(2).mean()
    entropy = dist.entropy().sum(-1).mean()
    loss = 0.5 * critic_loss + actor_loss - 0.001 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


class Bug(NamedTuple):
    """One line of one loop, what it becomes, and what the audit has to call it."""

    loop: str
    old: str
    new: str
    quantity: str
    name: str
    seed: int = 1


def plant(text: str, old: str, new: str) -> str:
    """Replace one line; it must be there, once."""
    assert text.count(old) == 1, f"{text.count(old)} times: {old}"
    return text.replace(old, new)


# --- small agents, with the methods that each style expects -------------------------------------


def layers(*sizes: int) -> nn.Sequential:
    stack = []
    for a, b in pairwise(sizes):
        stack += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*stack[:-1])


class Agent(nn.Module):
    """What CleanRL calls an agent."""

    def __init__(self, num_inputs: int, num_actions: int):
        super().__init__()
        self.actor, self.critic = layers(num_inputs, 16, num_actions), layers(num_inputs, 16, 1)

    def get_value(self, observations):
        return self.critic(observations)

    def get_action_and_value(self, observations, actions=None):
        policy = Categorical(logits=self.actor(observations))
        actions = policy.sample() if actions is None else actions
        return actions, policy.log_prob(actions), policy.entropy(), self.critic(observations)


class ActorCritic(nn.Module):
    """What Spinning Up calls an actor-critic."""

    def __init__(self, num_inputs: int, num_actions: int):
        super().__init__()
        self.actor, self.critic = layers(num_inputs, 16, num_actions), layers(num_inputs, 16, 1)

    @torch.no_grad()
    def step(self, observations):
        policy = Categorical(logits=self.actor(observations))
        action = policy.sample()
        return action.item(), self.v(observations).item(), policy.log_prob(action).item()

    def pi(self, observations, actions):
        policy = Categorical(logits=self.actor(observations))
        return policy, policy.log_prob(actions)

    def v(self, observations):
        return self.critic(observations).squeeze(-1)


class Gaussian(nn.Module):
    """A distribution over two real numbers, and a value."""

    def __init__(self, num_inputs: int, num_dimensions: int):
        super().__init__()
        self.actor, self.critic = layers(num_inputs, 16, num_dimensions), layers(num_inputs, 16, 1)
        self.log_std = nn.Parameter(torch.zeros(num_dimensions))

    def forward(self, observations):
        mean = self.actor(observations)
        return Normal(mean, self.log_std.exp().expand_as(mean)), self.critic(observations)


class Drift(gym.Env):
    """A point in the plane: far from the origin it is lost; two actions, always a new reward."""

    observation_space = gym.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gym.spaces.Box(-9, 9, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2).astype(np.float32)
        return self.place, {}

    def step(self, action):
        noise = self.np_random.normal(size=2)
        self.place = (0.9 * self.place + 0.4 * action + 0.3 * noise).astype(np.float32)
        distance = float(np.abs(self.place).sum())
        return self.place, 1.0 - distance, distance > 2.5, False, {}


class Noted(gym.Wrapper):
    """Writes down what a loop may throw away: which flag it was, and what each step led to."""

    def __init__(self, env):
        super().__init__(env)
        self.rewards, self.flags, self.reached = [], [], []

    def step(self, action):
        answer = self.env.step(action)
        self.reached.append(np.array(answer[0]))
        self.rewards.append(answer[1])
        self.flags.append(answer[2:4])
        return answer

    def facts(self, critic):
        """Rewards, flags and V' as they were, whatever the loop made of them."""
        terminated, truncated = np.array(self.flags).T
        with torch.no_grad():
            next_values = critic(torch.as_tensor(np.array(self.reached)).float()).squeeze(-1)
        return {
            "rewards": np.array(self.rewards), "terminated": terminated, "truncated": truncated,
            "next_values": next_values,
        }  # fmt: skip


class NotedVector(gym.vector.VectorWrapper):
    """The same for a vector environment."""

    def __init__(self, env):
        super().__init__(env)
        self.rewards, self.flags, self.reached = [], [], []

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        reached = observations.copy()
        for n in np.flatnonzero(terminated | truncated):
            reached[n] = infos["final_obs"][n]
        self.rewards.append(rewards)
        self.flags.append((terminated, truncated))
        self.reached.append(reached)
        return observations, rewards, terminated, truncated, infos

    def facts(self, critic):
        terminated, truncated = np.array(self.flags).swapaxes(0, 1)
        with torch.no_grad():
            next_values = critic(torch.Tensor(np.array(self.reached))).squeeze(-1)
        return {"terminated": terminated, "truncated": truncated, "next_values": next_values}


# --- running them -------------------------------------------------------------------------------


def cartpole(limit: int):
    return gym.make("CartPole-v1", max_episode_steps=limit)


def run_cleanrl(text: str, seed: int, limit: int = 500, **changed: Any) -> dict[str, Any]:
    torch.manual_seed(seed)
    envs = NotedVector(
        SyncVectorEnv([lambda: cartpole(limit)] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    )
    agent = Agent(4, 2)
    before = copy.deepcopy(agent)
    args = SimpleNamespace(
        num_steps=64, num_envs=4, seed=seed, gamma=0.97, gae_lambda=0.9, batch_size=256,
        minibatch_size=64, update_epochs=3, clip_coef=0.2, ent_coef=0.01, vf_coef=0.5,
    )  # fmt: skip
    scope: dict[str, Any] = {
        "torch": torch, "nn": nn, "np": np, "envs": envs, "agent": agent, "args": args,
        "optimizer": torch.optim.Adam(agent.parameters(), lr=0.02),
    }  # fmt: skip
    exec(text, scope)
    own = {"noted": envs.facts(before.get_value), "value_clip_epsilon": args.clip_coef}
    return scope | vars(args) | own


def audit_cleanrl(text: str, seed: int) -> Report:
    """With what such a loop has: one flag, one row late."""
    return audit(run_cleanrl(text, seed), names=CLEANRL)


def audit_cleanrl_with_both_flags(text: str, seed: int) -> Report:
    """With what its environment knows besides; one episode in two runs into a time limit."""
    scope = run_cleanrl(text, seed, limit=22)
    own = ("starts", "last_ended", "last_values")
    names = {ours: theirs for ours, theirs in CLEANRL.items() if ours not in own}
    return audit(scope | scope["noted"], names=names)


def audit_cleanrl_with_its_environment(text: str, seed: int, limit: int = 500) -> Report:
    """With flags and rewards as the environment gave them, whatever the buffers hold."""
    scope = run_cleanrl(text, seed, limit)
    own = ("starts", "last_ended", "last_values")
    names = {ours: theirs for ours, theirs in CLEANRL.items() if ours not in own}
    return audit(scope | scope["noted"] | {"rewards": scope["envs"].rewards}, names=names)


def audit_spinning_up(text: str, seed: int) -> Report:
    torch.manual_seed(seed)
    env, model = Noted(cartpole(22)), ActorCritic(4, 2)
    before = copy.deepcopy(model)
    scope: dict[str, Any] = {
        "torch": torch, "np": np, "env": env, "ac": model, "seed": seed, "steps_per_epoch": 150,
        "gamma": 0.97, "lam": 0.9, "clip_ratio": 0.2, "train_pi_iters": 6,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.02),
    }  # fmt: skip
    exec(text, scope)
    buffer = scope["buf"]
    return audit(
        env.facts(before.v)
        | {
            "values": buffer.val_buf, "advantages": scope["raw_adv"], "returns": buffer.ret_buf,
            "log_probs_old": scope["data"]["logp"], "log_probs": scope["logp"],
            "ratios": scope["ratio"], "normalized_advantages": scope["data"]["adv"],
            "policy_loss": scope["loss_pi"], "value_loss": scope["loss_v"],
            "new_values": scope["new_v"], "gamma": 0.97, "gae_lambda": 0.9, "clip_epsilon": 0.2,
        }
    )  # fmt: skip


def audit_by_hand(text: str, seed: int) -> Report:
    torch.manual_seed(seed)
    env, model = Noted(gym.wrappers.TimeLimit(Drift(), 9)), Gaussian(2, 2)
    before = copy.deepcopy(model)
    scope: dict[str, Any] = {
        "torch": torch, "env": env, "model": model, "seed": seed, "num_steps": 121,
        "gamma": 0.95, "tau": 0.9, "eps": 0.2, "ppo_epochs": 5,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.01),
    }  # fmt: skip
    exec(text, scope)
    return audit(
        env.facts(before.critic)
        | {
            "values": scope["values"], "advantages": scope["advantages"],
            "returns": scope["returns"], "log_probs": scope["per_dimension"],
            "log_probs_old": scope["log_probs"], "ratios": scope["ratio"],
            "normalized_advantages": scope["scaled"], "new_values": scope["value"],
            "policy_loss": scope["actor_loss"], "value_loss": scope["critic_loss"],
            "entropy": scope["entropy"], "entropies": scope["dist"].entropy(),
            "total_loss": scope["loss"], "gamma": 0.95, "gae_lambda": 0.9, "clip_epsilon": 0.2,
            "value_coef": 0.5, "entropy_coef": 0.001,
        }
    )  # fmt: skip


def patched(method: Any, old: str, new: str) -> Any:
    """The same method with one line changed, made from its source; unchanged where `old` is not."""
    text = textwrap.dedent(inspect.getsource(method))
    scope: dict[str, Any] = {}
    exec(plant(text, old, new) if old and old in text else text, method.__globals__, scope)
    return scope[method.__name__]


def audit_sb3(old: str, new: str, seed: int, env: Any = None) -> Report:
    """The installed Stable-Baselines3: its buffer by a subclass, its `train` by a patch."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.buffers import RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback

    score = patched(RolloutBuffer.compute_returns_and_advantage, old, new)
    looked = plant(
        textwrap.dedent(inspect.getsource(PPO.train)),
        "            loss.backward()", "            self.seen = dict(locals()); loss.backward()",
    )  # fmt: skip
    scope: dict[str, Any] = {}
    in_train = bool(old) and old in looked
    assert not old or in_train or old in inspect.getsource(RolloutBuffer)
    exec(plant(looked, old, new) if in_train else looked, PPO.train.__globals__, scope)

    class Look(BaseCallback):
        def _on_rollout_end(self):
            buffer, now = self.locals["rollout_buffer"], self.locals
            tables = {name: np.copy(getattr(buffer, name)) for name in (
                "rewards", "episode_starts", "values", "log_probs", "advantages", "returns",
            )}  # fmt: skip
            last = {"last_values": now["values"].flatten(), "last_ended": now["dones"]}
            self.model.tables = tables | last | {"gamma": 0.97, "gae_lambda": 0.9}

        def _on_step(self):
            return True

    buffer_class = type("Buffer", (RolloutBuffer,), {"compute_returns_and_advantage": score})
    model_class = type("Model", (PPO,), {"train": scope["train"]})
    model = model_class(
        "MlpPolicy", env or cartpole(30), n_steps=128, batch_size=64, n_epochs=3, gamma=0.97,
        gae_lambda=0.9, ent_coef=0.01, seed=seed, learning_rate=0.01, device="cpu",
        rollout_buffer_class=buffer_class,
    )  # fmt: skip
    model.learn(128, callback=Look())
    rollout, seen = audit(model.tables, names=SB3), model.seen
    minibatch = audit(
        {
            "log_probs": seen["log_prob"], "log_probs_old": seen["rollout_data"].old_log_prob,
            "ratios": seen["ratio"], "advantages": seen["rollout_data"].advantages,
            "normalized_advantages": seen["advantages"], "policy_loss": seen["policy_loss"],
            "new_values": seen["values"], "values": seen["rollout_data"].old_values,
            "returns": seen["rollout_data"].returns, "value_loss": seen["value_loss"],
            "entropies": seen["entropy"], "entropy": seen["entropy_loss"],
            "total_loss": seen["loss"], "clip_epsilon": 0.2, "value_coef": 0.5,
            "entropy_coef": 0.01,
        }
    )  # fmt: skip
    return Report(rollout.findings + minibatch.findings, rollout.remarks + minibatch.remarks)


LOOPS: dict[str, tuple[str, Callable[[str, int], Report]]] = {
    "CleanRL": (CLEANRL_STYLE, audit_cleanrl),
    "CleanRL, both flags": (CLEANRL_STYLE, audit_cleanrl_with_both_flags),
    "CleanRL, its environment": (CLEANRL_STYLE, audit_cleanrl_with_its_environment),
    "CleanRL, short episodes": (
        CLEANRL_STYLE,
        lambda text, seed: audit_cleanrl_with_its_environment(text, seed, 22),
    ),
    "Spinning Up": (SPINNING_UP_STYLE, audit_spinning_up),
    "by hand": (BY_HAND, audit_by_hand),
}


def run_bug(bug: Bug) -> Report:
    if bug.loop == "SB3":
        if find_spec("stable_baselines3") is None:
            pytest.skip("stable-baselines3 is not installed")
        return audit_sb3(bug.old, bug.new, bug.seed)
    text, run = LOOPS[bug.loop]
    return run(plant(text, bug.old, bug.new), bug.seed)


# --- the planted bugs ---------------------------------------------------------------------------

C, L, U, H, S = "CleanRL", "CleanRL, both flags", "Spinning Up", "by hand", "SB3"
MINIBATCH_ADVANTAGES = (
    "mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)"
)
BUGS = [
    Bug(L, "lastgaelam = 0", "lastgaelam = 0", "advantages", "flags_merged"),
    Bug(C, "1.0 - dones[t + 1]", "1.0 - dones[t]", "advantages", "flags_late"),
    Bug(C, "nextvalues * nextnonterminal - values[t]", "nextvalues - values[t]",
        "advantages", "bootstrap_kept_at_termination"),
    Bug(C, "args.gae_lambda * nextnonterminal * lastgaelam", "args.gae_lambda * lastgaelam",
        "advantages", "trace_not_reset"),
    Bug(C, "args.gamma * args.gae_lambda * next", "args.gae_lambda * next",
        "advantages", "gamma_left_out"),
    Bug(C, "nextvalues = values[t + 1]", "nextvalues = values[t]",
        "advantages", "next_value_is_this_value"),
    Bug(C, "nextvalues = next_value\n", "nextvalues = 0\n",
        "advantages", "no_bootstrap_at_the_cut"),
    Bug(C, "in reversed(range(args.num_steps)):", "in reversed(range(args.num_steps - 1)):",
        "advantages", "last_row_left_out"),
    Bug(C, "delta = rewards[t] +", "delta = rewards[t - 1] * 0 +",
        "advantages", "rewards_left_out"),
    Bug(C, "returns = advantages + values",
        "returns = (advantages - advantages.mean()) / (advantages.std() + 1e-8) + values",
        "returns", "returns_from_normalized_advantages"),
    Bug(C, "returns = advantages + values", "returns = advantages",
        "returns", "advantages_for_returns"),
    Bug(C, "logratio = newlogprob - b_logprobs[mb_inds]",
        "logratio = b_logprobs[mb_inds] - newlogprob", "ratios", "old_and_new_swapped"),
    Bug(C, "ratio = logratio.exp()", "ratio = logratio", "ratios", "exponential_left_out"),
    Bug(C, "torch.max(pg_loss1, pg_loss2)", "torch.min(pg_loss1, pg_loss2)",
        "policy_loss", "maximum_for_minimum"),
    Bug(C, "torch.max(pg_loss1, pg_loss2).mean()", "pg_loss2.mean()",
        "policy_loss", "minimum_left_out"),
    Bug(C, "torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)",
        "torch.clamp(ratio, -args.clip_coef, args.clip_coef)",
        "policy_loss", "clip_around_zero"),
    Bug(C, "newvalue = newvalue.view(-1)", "newvalue = newvalue",
        "value_loss", "column_against_row"),
    Bug(C, "0.5 * torch.max(v_loss", "0.5 * torch.min(v_loss",
        "value_loss", "minimum_for_maximum"),
    Bug(C, "loss = pg_loss - args.ent_coef", "loss = pg_loss + args.ent_coef",
        "total_loss", "entropy_sign_turned"),
    Bug(C, "args.ent_coef * entropy_loss + v_loss * args.vf_coef",
        "args.vf_coef * entropy_loss + v_loss * args.ent_coef",
        "total_loss", "coefficients_swapped"),
    Bug(C, "entropy_loss = entropy.mean()", "entropy_loss = entropy.sum()",
        "entropy", "entropies_summed"),
    Bug(C, MINIBATCH_ADVANTAGES, "mb_advantages = mb_advantages / (mb_advantages.std() + 1e-8)",
        "normalized_advantages", "not_centred"),
    Bug(U, "        if timeout or epoch_ended:", "        if epoch_ended and not timeout:",
        "advantages", "next_value_of_the_state_before"),
    Bug(U, "        if terminated:", "        if terminated or timeout:",
        "advantages", "flags_merged"),
    Bug(U, "        if terminated:", "        if terminated or epoch_ended:",
        "advantages", "no_bootstrap_at_the_cut"),
    Bug(U, "rews[:-1] + gamma * vals[1:]", "rews[:-1] + vals[1:]",
        "advantages", "gamma_left_out"),
    Bug(U, "discount_cumsum(deltas, gamma * lam)", "discount_cumsum(deltas, gamma)",
        "advantages", "lambda_left_out"),
    Bug(U, "discount_cumsum(rews, gamma)[:-1]", "discount_cumsum(rews[:-1], gamma)",
        "returns", "flags_merged no_bootstrap_at_the_cut"),
    Bug(U, "-(torch.min(ratio", "(torch.min(ratio", "policy_loss", "loss_sign_turned"),
    Bug(U, "1 - clip_ratio, 1 + clip_ratio)", "1 - clip_ratio, 1)",
        "policy_loss", "clip_at_one_edge"),
    Bug(U, "-(torch.min(ratio * data[\"adv\"], clip_adv)).mean()",
        "-torch.where(data[\"adv\"] > 0, torch.min(ratio * data[\"adv\"], clip_adv), "
        "torch.max(ratio * data[\"adv\"], clip_adv)).mean()",
        "policy_loss", "clip_on_the_wrong_side"),
    Bug(U, "loss_v = ((new_v - data[\"ret\"]) ** 2).mean()",
        "loss_v = ((new_v - data[\"adv\"]) ** 2).mean()",
        "value_loss", "advantages_for_targets"),
    Bug(H, "1 - terminated)", "1 - (terminated or truncated))", "advantages", "flags_merged"),
    Bug(H, "cuts.append(1 - (terminated or truncated))", "cuts.append(1 - terminated)",
        "advantages", "truncated_ignored"),
    Bug(H, "delta + gamma * tau", "delta + gamma * gamma", "advantages", "other_settings"),
    Bug(H, "gamma * after[step] * masks", "tau * after[step] * masks",
        "advantages", "gamma_and_lambda_swapped"),
    Bug(H, "- values[step]", "+ values[step]", "advantages", "value_added"),
    Bug(H, "ratio = (new - old).exp()",
        "ratio = (per_dimension - torch.stack(log_probs)).mean(-1).exp()",
        "ratios", "log_probs_averaged"),
    Bug(H, "(advantages.std() + 1e-5)", "(advantages.var() + 1e-5)",
        "normalized_advantages", "variance_for_deviation"),
    Bug(H, "torch.min(surr1, surr2).mean()", "torch.min(surr1, surr2).sum()",
        "policy_loss", "sum_for_mean"),
    Bug(H, "value.squeeze(-1)).pow(2)", "value).pow(2)", "value_loss", "column_against_row"),
    Bug(H, "0.5 * critic_loss + actor_loss", "actor_loss", "total_loss", "value_loss_left_out"),
    Bug(S, "1.0 - self.episode_starts[step + 1]", "1.0 - self.episode_starts[step]",
        "advantages", "flags_late"),
    Bug(S, "self.gae_lambda * next_non_terminal * last", "self.gae_lambda * last",
        "advantages", "trace_not_reset"),
    Bug(S, "next_non_terminal = 1.0 - dones.astype(np.float32)", "next_non_terminal = 1.0",
        "advantages", "last_flag_ignored", 24),
    Bug(S, "self.returns = self.advantages + self.values",
        "self.returns = self.advantages - self.values", "returns", "values_subtracted"),
    Bug(S, "th.exp(log_prob - rollout_data.old_log_prob)",
        "th.exp(log_prob - log_prob.detach())", "ratios", "log_probs_recomputed"),
    Bug(S, "-th.min(policy_loss_1, policy_loss_2).mean()", "-policy_loss_1.mean()",
        "policy_loss", "clip_left_out"),
    Bug(S, "F.mse_loss(rollout_data.returns, values_pred)",
        "F.mse_loss(rollout_data.returns[:, None], values_pred[None])",
        "value_loss", "column_against_row"),
    Bug(S, "self.ent_coef * entropy_loss", "-self.ent_coef * entropy_loss",
        "total_loss", "entropy_sign_turned"),
]  # fmt: skip


def named(bug: Bug, report: Report) -> bool:
    """Whether the alarms begin with the bug's quantity, and all have the bug's name alone."""
    alarms = report.alarms
    return bool(alarms) and alarms[0].quantity == bug.quantity and all(
        " ".join(found.names) == bug.name for found in alarms
    )  # fmt: skip


# Ten bugs that others reported, planted after the audit was finished; each with its thread.
FRESH = {
    "RoboVerseOrg/RoboVerse#814": Bug(
        "CleanRL, its environment",
        "    next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(next_done)\n",
        "    next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(next_done)\n"
        "    dones[step] = next_done\n",
        "advantages", "flags_early"),
    "AI4Finance-Foundation/ElegantRL#183": Bug(
        C, "nextnonterminal - values[t]", "nextnonterminal - values[t] * nextnonterminal",
        "advantages", "value_masked_too"),
    "alessiodm/drl-zh#13": Bug(
        C, "args.gae_lambda * nextnonterminal * lastgaelam",
        "args.gae_lambda * nextnonterminal * lastgaelam\n"
        "        lastgaelam = lastgaelam * nextnonterminal",
        "advantages", "trace_cut_a_row_early_too"),
    "EdanToledo/Stoix#142": Bug(
        H, "gae = delta + gamma", "gae = delta * (1 - masks[step] + cuts[step]) + gamma",
        "advantages", "last_step_left_out"),
    "pytorch/rl#1033": Bug(
        H, "surr1 = ratio * scaled", "surr1 = ratio * advantages",
        "policy_loss", "half_of_it_normalized"),
    "JuliaReinforcementLearning/ReinforcementLearningZoo.jl#169": Bug(
        C, "logratio = newlogprob - b_logprobs", "logratio = newlogprob.view(-1, 1) - b_logprobs",
        "ratios", "ratios_of_all_pairs"),
    "kscalelabs/ksim#3": Bug(
        C, "b_values[mb_inds] + torch.clamp(newvalue - b_values[mb_inds],",
        "b_returns[mb_inds] + torch.clamp(newvalue - b_returns[mb_inds],",
        "value_loss", "values_not_clipped"),
    "tensorflow/agents#352": Bug(
        C, "b_values[mb_inds] + torch.clamp(newvalue - b_values[mb_inds],",
        "newvalue.detach() + torch.clamp(newvalue - newvalue.detach(),",
        "value_loss", "values_not_clipped"),
    "DexForce/EmbodiChain#610": Bug(
        "CleanRL, short episodes",
        "    rewards[step] = torch.tensor(reward).view(-1)\n",
        "    rewards[step] = torch.tensor(reward).view(-1)\n"
        "    rewards[step] += args.gamma * values[step] * torch.tensor(truncations)\n",
        "advantages", "next_value_of_the_state_before"),
    "openai/spinningup#233": Bug(
        U, "        if terminated:", "        if terminated and not epoch_ended:",
        "advantages", "last_flag_ignored", 32),
}  # fmt: skip


# Ten more from other threads, planted after those ten had been mended.
FRESHER = {
    "openai/spinningup#50": Bug(
        H, "rewards.append(float(reward))",
        "rewards.append(late if rewards else 0.0)\n    late = float(reward)",
        "advantages", "rewards_late"),
    "takuseno/ppo#3": Bug(
        H, "torch.min(surr1, surr2)",
        "(torch.min(ratio, torch.clamp(ratio, 1.0 - eps, 1.0 + eps)) * scaled)",
        "policy_loss", "clip_on_the_wrong_side"),
    "Omegastick/pytorch-cpp-rl#14": Bug(
        H, "torch.min(surr1, surr2).mean()",
        "torch.min(ratio * scaled.mean(), surr2.mean()).mean()",
        "policy_loss", "mean_before_the_minimum"),
    "Omegastick/pytorch-cpp-rl#14, normalising": Bug(
        H, "(advantages - advantages.mean()) / (advantages.std() + 1e-5)",
        "(advantages - advantages.mean() / (advantages.std() + 1e-5))",
        "normalized_advantages", "parenthesis_left_out"),
    "RLinf/RLinf#1568": Bug(
        C, "b_returns = returns.reshape(-1)", "b_returns = returns.reshape(-1, 1)",
        "value_loss", "column_against_row"),
    "Lizhi-sjtu/DRL-code-pytorch#10": Bug(
        H, "(returns - value.squeeze(-1))",
        "(advantages + value.detach().squeeze(-1) - value.squeeze(-1))",
        "value_loss", "target_follows_the_critic"),
    "ray-project/ray#37334": Bug(
        H, "torch.min(surr1, surr2)",
        "(scaled.sign() * torch.min(surr1 * scaled.sign(), surr2 * scaled.sign()))",
        "policy_loss", "clip_on_the_wrong_side"),
    "jvmncs/safe-grid-agents#28": Bug(
        U, "-(torch.min(ratio * data[\"adv\"], clip_adv)).mean()",
        "(torch.min(-ratio * data[\"adv\"], -clip_adv)).mean()",
        "policy_loss", "maximum_for_minimum"),
    "google/trax#396": Bug(
        H, "surr2 = torch.clamp(ratio, 1.0 - eps, 1.0 + eps) * scaled",
        "surr2 = torch.clamp(ratio, 1.0 - eps, 1.0 + eps)",
        "policy_loss", "advantage_left_out"),
    "LuEE-C/PPO-Keras#3": Bug(
        U, "    for i in reversed(range(len(x))):", "    for i in range(len(x)):",
        "advantages", "sum_over_the_past"),
}  # fmt: skip


def identity(bug: Bug) -> str:
    return f"{bug.loop}: {bug.name}"


def marked(number: int) -> Any:
    """One bug per loop and quantity runs each time, the others and those of a library in full."""
    bug, earlier = BUGS[number], {(bug.loop, bug.quantity) for bug in BUGS[:number]}
    full = [pytest.mark.full] if (bug.loop, bug.quantity) in earlier else []
    marks = [pytest.mark.parity] if bug.loop == S else full
    return pytest.param(bug, marks=marks, id=identity(bug))


@pytest.mark.parametrize("bug", [marked(number) for number in range(len(BUGS))])
def test_a_planted_bug_is_named(bug):
    report = run_bug(bug)
    assert named(bug, report), str(report)


# When they were planted, 4 of these 10 were named; the kinds of the other six came in afterwards.
# Of the next ten it named 4 (one under another name that means the same), and one made it stumble.
@pytest.mark.parametrize("thread", FRESH | FRESHER)
def test_a_bug_that_others_reported_is_named(thread):
    bug = (FRESH | FRESHER)[thread]
    report = run_bug(bug)
    if thread in FRESH:
        assert named(bug, report), str(report)
    found = report[bug.quantity]
    # two of them give the numbers of another mistake as well: then they stand beside it
    assert bug.name in (*found.names, *found.also), str(report)
    assert report.alarms[0].quantity == bug.quantity


def keep_time_limits(text: str) -> str:
    """The same loop, mended: V of the last observation is paid with the reward."""
    return plant(
        text,
        "    rewards[step] = torch.tensor(reward).view(-1)\n",
        "    rewards[step] = torch.tensor(reward).view(-1)\n"
        "    for n in np.flatnonzero(truncations & ~terminations):\n"
        "        last = torch.Tensor(infos['final_obs'][n])\n"
        "        rewards[step, n] += args.gamma * agent.get_value(last).item()\n",
    )


@pytest.mark.parametrize("seed", [3, 4, 5])
@pytest.mark.parametrize("loop", [C, U, H, "CleanRL, mended"])
def test_a_clean_loop_raises_no_alarm(loop, seed):
    if loop == "CleanRL, mended":
        report = audit_cleanrl_with_both_flags(keep_time_limits(CLEANRL_STYLE), seed)
        assert report["advantages"].names == ("time_limit_in_the_rewards",)
    else:
        text, run = LOOPS[loop]
        report = run(text, seed)
    assert not report.alarms, str(report)
    assert len(report.findings) >= 7


@pytest.mark.parity
@pytest.mark.parametrize("env", ["CartPole, 30 steps", "CartPole", "Pendulum"])
def test_stable_baselines3_raises_no_alarm(env):
    if find_spec("stable_baselines3") is None:
        pytest.skip("stable-baselines3 is not installed")
    made = {"CartPole": None, "Pendulum": gym.make("Pendulum-v1", max_episode_steps=40)}.get(
        env, cartpole(30)
    )
    report = audit_sb3("", "", 3, made)
    assert not report.alarms, str(report)
    assert len(report.findings) >= 9


def test_at_least_thirty_bugs_are_planted_in_four_styles():
    assert len(BUGS) >= 30
    assert {bug.loop for bug in BUGS} == {C, L, U, H, S}


# --- the recipes of docs/audit.md -----------------------------------------------------------------

PAGE = (Path(__file__).parents[1] / "docs" / "audit.md").read_text(encoding="utf-8")


def recipe(heading: str) -> str:
    """The Python of one section, as it stands there."""
    section = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert len(ast.parse(code).body) <= 3  # statements; a long one may be folded
    return code


@pytest.mark.parity
def test_the_recipe_for_stable_baselines3_runs(capsys):
    if find_spec("stable_baselines3") is None:
        pytest.skip("stable-baselines3 is not installed")
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", cartpole(30), n_steps=96, batch_size=32, seed=1, device="cpu")
    exec(recipe("Stable-Baselines3"), {"model": model, "audit": audit, "SB3": SB3})
    out = capsys.readouterr().out
    assert "advantages: agrees" in out
    assert "returns: agrees" in out
    assert "Nothing is wrong." in out


def test_the_recipe_for_cleanrl_runs(capsys):
    scope = run_cleanrl(CLEANRL_STYLE, 2)
    exec(recipe("CleanRL"), scope)
    out = capsys.readouterr().out
    assert len(re.findall(r"^\w+: agrees", out, re.MULTILINE)) == 8
    assert "Nothing is wrong." in out


def test_the_recipe_for_a_loop_by_hand_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    env, model = Noted(gym.wrappers.TimeLimit(Drift(), 9)), Gaussian(2, 2)
    before = copy.deepcopy(model)
    scope: dict[str, Any] = {
        "torch": torch, "np": np, "env": env, "model": model, "seed": 1, "num_steps": 60,
        "gamma": 0.99, "tau": 0.95, "eps": 0.2, "ppo_epochs": 1,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.01),
    }  # fmt: skip
    exec(BY_HAND, scope)
    exec(recipe("A loop by hand"), scope | env.facts(before.critic))
    assert cli.main(["audit", "rollout.npz"]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out


def test_the_page_lists_every_rule_and_every_name():
    for rules in RULES.values():
        for rule in rules:
            mark = " *(a convention)*" if rule.convention else ""
            assert f"| `{rule.name}`{mark} | {rule.sentence} |" in PAGE
    for name, meaning in MEANINGS.items():
        assert f"| `{name}` | {meaning} |" in PAGE
    assert f"plant {len(BUGS)} bugs" in PAGE


# --- the course's own loop ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_our_own_loop_raises_no_alarm_in_either_mode_of_reset(mode):
    envs = GymEnvs(SyncVectorEnv([lambda: cartpole(15)] * 3, autoreset_mode=mode))
    generator = torch.Generator().manual_seed(1)
    networks = make_networks((4,), 2, hidden_sizes=(16,), generator=generator)
    rollout, _ = collect_rollout(
        envs, networks.policy, start_carry(envs, seed=1), num_steps=60, generator=generator
    )
    values, next_values = score_values(networks.critic, rollout)
    facts = {
        "rewards": rollout.rewards, "terminated": rollout.terminated, "valid": rollout.valid,
        "truncated": rollout.truncated, "values": values, "next_values": next_values,
    }  # fmt: skip
    settings = {"gamma": 0.99, "gae_lambda": 0.95}
    flags = (rollout.terminated, rollout.truncated)
    advantages = compute_gae(rollout.rewards, values, next_values, *flags, **settings)
    given = facts | settings | {"advantages": advantages, "returns": advantages + values}
    report = audit(given)
    assert [found.verdict for found in report.findings] == ["agrees"] * 3, str(report)
    assert rollout.valid.all() == (mode == AutoresetMode.SAME_STEP)
    merged = compute_gae(
        rollout.rewards, values, next_values, flags[0] | flags[1], flags[1], **settings
    )
    assert audit(given | {"advantages": merged})["advantages"].names == ("flags_merged",)
