"""The settings of a run of RLHF: every number in one frozen place, with its unit and range."""

from dataclasses import dataclass

from ppo_lessons.rlhf.checks import check_at_least_zero, check_whole
from ppo_lessons.shapes import check_positive
from ppo_lessons.tokens.language import RESPONSE_LENGTH
from ppo_lessons.training_loop import PPOConfig


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
    temperature: int | float = 1.0
    """At which answers are drawn and rated, above 0."""
    beta: int | float = 0.3
    """β, price of one nat of KL(π ‖ π_ref), at least 0 (reward per nat)."""
    reward_limit: int | float | None = None
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
        check_whole(
            num_iterations=self.num_iterations, num_prompts=self.num_prompts,
            group_size=self.group_size, max_new_tokens=self.max_new_tokens,
        )  # fmt: skip
        check_positive(
            temperature=float(self.temperature),
            critic_learning_rate=float(self.critic_learning_rate),
        )
        check_at_least_zero(beta=self.beta)
        if self.reward_limit is not None:
            check_positive(reward_limit=float(self.reward_limit))
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
