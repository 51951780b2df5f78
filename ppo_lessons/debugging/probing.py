"""Which bug fails on which probe? Environments whose answer is known before anything is trained."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from ppo_lessons.debugging.bugs import BUGS
from ppo_lessons.envs import PROBES, Probe
from ppo_lessons.envs.probes import ProbeRule
from ppo_lessons.envs.protocol import EnvStep
from ppo_lessons.training_loop import Parts, PPOConfig, train

# 40 iterations of 64 steps: half a second. All probes that end by themselves are learned by then.
PROBE_CONFIG = PPOConfig(
    total_steps=64 * 40,
    num_envs=8,
    num_steps=8,
    num_epochs=4,
    num_minibatches=2,
    learning_rate=2e-2,
    entropy_coef=0.05,
    gamma=0.9,
    hidden_sizes=(16,),
)
LARGEST_ERROR = 0.1  # of a value, as a share of the largest value of the probe
LEAST_CHANCE = 0.95  # of the best action
LEAST_ENTROPY = 0.25  # nats, on average, of two actions that are worth the same; at most ln 2

ENDLESS = ProbeRule(
    question="Is a time limit told apart from the end of the task?",
    starts=(0.0,),
    length=4,
    reward=lambda observations, actions: (observations == 2.0).float(),
    values={
        0.0: lambda gamma: gamma**2 / (1 - gamma),
        1.0: lambda gamma: gamma / (1 - gamma),
        2.0: lambda gamma: 1 / (1 - gamma),
    },
    actions={},
)


class EndlessProbe(Probe):
    """Walk from 0 to 2, stay there and earn 1 per step for ever; we stop watching after 4 steps.

    Args:
        num_envs: N, at least 1.
    """

    def __init__(self, num_envs: int):
        super().__init__("two_step_discount", num_envs)
        self.rule = ENDLESS

    def step(self, actions: Int[Tensor, " N"]) -> EnvStep:
        """Take one action in each copy; no step terminates."""
        step = super().step(actions)
        self._observations = self._observations.clamp(max=2)
        return step._replace(
            observations=step.observations.clamp(max=2),
            next_observations=step.next_observations.clamp(max=2),
            terminated=torch.zeros_like(step.terminated),
            truncated=step.terminated,
        )


@dataclass(frozen=True)
class Question:
    """What a probe asks, how long it trains, and whether the answer is right.

    Attributes:
        question: in words.
        make: N → environments.
        answered: networks → whether they hold what had to be learned.
        num_iterations: of training.
    """

    question: str
    make: Callable[[int], Any]
    answered: Callable[[Any], bool]
    num_iterations: int = 40


def _learned(rule: ProbeRule) -> Callable[[Any], bool]:
    """Whether the values are those of the best policy, and the best actions are likely."""
    gamma = PROBE_CONFIG.gamma
    places = torch.tensor([[place] for place in rule.values])
    values = torch.tensor([value(gamma) for value in rule.values.values()])
    choices = torch.tensor([[place] for place in rule.actions])
    best = torch.tensor(list(rule.actions.values()))

    def learned(networks: Any) -> bool:
        errors = (networks.critic(places) - values).abs()
        if errors.max() > LARGEST_ERROR * max(1.0, values.abs().max().item()):
            return False
        if not len(choices):
            return True
        log_probs, _ = networks.policy.evaluate(choices, best)
        return bool(log_probs.exp().min() > LEAST_CHANCE)

    return learned


def _undecided(networks: Any) -> bool:
    """Whether two actions that are worth the same are both taken, as a bonus wants it.

    Normalised advantages are noise of size 1 there, and carry the policy about: seen were 0.46 to
    0.54 nats with the bonus, 0.03 to 0.13 where it has the wrong sign.
    """
    places = torch.tensor([[-1.0], [1.0]])
    _, entropies = networks.policy.evaluate(places, torch.zeros(2, dtype=torch.int64))
    return entropies.mean().item() > LEAST_ENTROPY


def _from_the_list(name: str) -> Question:
    rule = PROBES[name]
    return Question(rule.question, lambda num_envs: Probe(name, num_envs), _learned(rule))


# The five of `ppo_lessons.envs.probes`, in their order, and two that ask what those cannot.
QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        **{name: _from_the_list(name) for name in PROBES},
        "endless": Question(ENDLESS.question, EndlessProbe, _learned(ENDLESS), num_iterations=80),
        "no_difference": Question(
            "Does the policy stay undecided where actions make no difference?",
            lambda num_envs: Probe("reward_by_observation", num_envs),
            _undecided,
        ),
    }
)


@torch.no_grad()
def probe_passes(question: str, parts: Parts, *, seed: int) -> bool:
    """Train on one probe, and look at what was learned.

    Args:
        question: one of `QUESTIONS`.
        parts: the loop that is asked.
        seed: of the run.

    Returns:
        Whether the values are within a tenth of the largest, and the best actions are likelier
        than 0.95.

    Raises:
        ValueError: if there is no such probe.
    """
    if question not in QUESTIONS:
        raise ValueError(
            f"question is {question!r}; expected one of {', '.join(QUESTIONS)}. Choose one."
        )
    asked = QUESTIONS[question]
    config = replace(
        PROBE_CONFIG, seed=seed, total_steps=PROBE_CONFIG.batch_size * asked.num_iterations
    )
    history = train(config, envs=asked.make(config.num_envs), parts=parts)
    return asked.answered(history.networks)


def probe_table(
    bugs: Iterable[str] = tuple(BUGS), *, seeds: Iterable[int] = (1,)
) -> dict[str, dict[str, int]]:
    """Run every probe with every bug, and count the seeds that fail.

    Args:
        bugs: names of `BUGS`; all if left out. "" is the loop without a bug.
        seeds: of the runs.

    Returns:
        For each bug and probe, on how many seeds the probe was not learned.

    Source: Jones 2021, "Debugging reinforcement learning systems", for the first five probes.
    """
    seeds = tuple(seeds)
    return {
        bug: {
            question: sum(
                not probe_passes(question, BUGS[bug].parts if bug else Parts(), seed=seed)
                for seed in seeds
            )
            for question in QUESTIONS
        }
        for bug in bugs
    }
