"""Learn PPO: the small tested package behind the notebooks."""

__version__ = "0.1.0"
