"""Lesson 08. How do the parts fit?

    collect  the policy acts; what happens is written down        Rollout [T, N]
    score    the critic says what it expected; GAE compares       Batch [B]
    squeeze  K epochs of minibatches, ratios and the clip         UpdateStats [K, M]
    renew    the new policy becomes the old one; the data goes

The modules in the order in which they are best read: config, parts, update, train, evaluate,
checkpoint.
"""

from ppo_lessons.training_loop.checkpoint import config_of, read_checkpoint, write_checkpoint
from ppo_lessons.training_loop.config import PPOConfig
from ppo_lessons.training_loop.evaluate import evaluate, record_episode
from ppo_lessons.training_loop.parts import (
    Parts,
    clipped_gradient_step,
    make_optimizer,
    ppo_loss,
    shuffled_minibatches,
    use_all_epochs,
)
from ppo_lessons.training_loop.presets import PRESETS, Preset
from ppo_lessons.training_loop.train import TrainState, iterate, score, train
from ppo_lessons.training_loop.update import minibatch_loss, squeeze, update

__all__ = [
    "PRESETS",
    "PPOConfig",
    "Parts",
    "Preset",
    "TrainState",
    "clipped_gradient_step",
    "config_of",
    "evaluate",
    "iterate",
    "make_optimizer",
    "minibatch_loss",
    "ppo_loss",
    "read_checkpoint",
    "record_episode",
    "score",
    "shuffled_minibatches",
    "squeeze",
    "train",
    "update",
    "use_all_epochs",
    "write_checkpoint",
]
