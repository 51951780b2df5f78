"""The run of PureJaxRL's `ppo.py`, by the Python of an environment of its own.

Nothing of the course is imported here. XLA runs on the one core to which the process is pinned. Its
whole training is one compiled call: it is called once before the clock starts, so neither the
compilation nor a first time is counted.
"""

import hashlib
import importlib
import sys
import time
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("jax", "jaxlib", "flax", "optax", "distrax", "gymnax")


def speed(*, path: str, num_envs: int, num_steps: int, iterations: int) -> dict[str, Any]:
    """Train with its own settings, but for N and T.

    Args:
        path: the folder that holds `purejaxrl/ppo.py`.
        num_envs: N.
        num_steps: T.
        iterations: of the compiled call.

    Returns:
        Steps and seconds, and what the compilation took.
    """
    sys.path.insert(0, path)
    stand_in("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix")
    import jax  # pyright: ignore[reportMissingImports]

    ppo = importlib.import_module("purejaxrl.ppo")
    env_steps = num_envs * num_steps * iterations
    config = {
        "LR": 2.5e-4, "NUM_ENVS": num_envs, "NUM_STEPS": num_steps, "TOTAL_TIMESTEPS": env_steps,
        "UPDATE_EPOCHS": 4, "NUM_MINIBATCHES": 4, "GAMMA": 0.99, "GAE_LAMBDA": 0.95,
        "CLIP_EPS": 0.2, "ENT_COEF": 0.01, "VF_COEF": 0.5, "MAX_GRAD_NORM": 0.5,
        "ACTIVATION": "tanh", "ENV_NAME": "CartPole-v1", "ANNEAL_LR": True, "DEBUG": False,
    }  # fmt: skip
    key = jax.random.PRNGKey(1)
    began = time.process_time()
    compiled = jax.jit(ppo.make_train(config)).lower(key).compile()
    compilation = time.process_time() - began
    jax.block_until_ready(compiled(key))
    cpu, wall = time.process_time(), time.perf_counter()
    jax.block_until_ready(compiled(key))
    return {
        "env_steps": env_steps,
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "compilation_cpu_seconds": compilation,
        "versions": {
            "purejaxrl/ppo.py": digest(path),
            **{name: version(name) for name in PACKAGES},
        },
    }


def stand_in(*names: str) -> None:
    """Let an import pass of what PureJaxRL's wrappers name and CartPole does not use."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            module: Any = types.ModuleType(name)
            module.__path__ = []
            for unused in ("envs", "EpisodeWrapper", "AutoResetWrapper"):
                setattr(module, unused, None)
            sys.modules[name] = module


def digest(path: str) -> str:
    """What the file is: it has no version, so its first digits of SHA-256."""
    content = (Path(path) / "purejaxrl" / "ppo.py").read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]
