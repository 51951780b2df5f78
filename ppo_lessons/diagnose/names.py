"""What a metric is called elsewhere, and how it becomes ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Meaning:
    """One of our metrics, written by another program.

    Attributes:
        metric: our name.
        factor: ours = factor · theirs.
    """

    metric: str
    factor: float = 1.0


# Stable-Baselines3, in TensorBoard and in progress.csv. Its value loss is the whole square, its
# entropy is written as a loss, and its losses are means over all epochs, not over the last.
SB3: Mapping[str, Meaning] = MappingProxyType(
    {
        "rollout/ep_rew_mean": Meaning("episode_return"),
        "rollout/ep_len_mean": Meaning("episode_length"),
        "train/approx_kl": Meaning("kl_k3"),
        "train/clip_fraction": Meaning("fraction_outside"),
        "train/clip_range": Meaning("clip_epsilon"),
        "train/entropy_loss": Meaning("entropy", -1.0),
        "train/explained_variance": Meaning("ev_lambda"),
        "train/learning_rate": Meaning("learning_rate"),
        "train/policy_gradient_loss": Meaning("policy_loss"),
        "train/value_loss": Meaning("value_loss", 0.5),
        "time/total_timesteps": Meaning("env_steps"),
    }
)

# CleanRL's ppo files. The losses and the two KLs are those of the last minibatch alone.
CLEANRL: Mapping[str, Meaning] = MappingProxyType(
    {
        "charts/episodic_return": Meaning("episode_return"),
        "charts/episodic_length": Meaning("episode_length"),
        "charts/learning_rate": Meaning("learning_rate"),
        "losses/value_loss": Meaning("value_loss"),
        "losses/policy_loss": Meaning("policy_loss"),
        "losses/entropy": Meaning("entropy"),
        "losses/old_approx_kl": Meaning("kl_k1"),
        "losses/approx_kl": Meaning("kl_k3"),
        "losses/clipfrac": Meaning("fraction_outside"),
        "losses/explained_variance": Meaning("ev_lambda"),
    }
)

OURS = (
    *("iteration", "env_steps", "episode_return", "episode_length", "num_episodes"),
    *("learning_rate", "clip_epsilon", "policy_loss", "value_loss", "entropy", "kl_k1", "kl_k3"),
    *("fraction_outside", "fraction_zero_gradient", "max_ratio_deviation", "gradient_norm"),
    *("ev_lambda", "ev_monte_carlo"),
)

MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {**{name: Meaning(name) for name in OURS}, **SB3, **CLEANRL}
)
