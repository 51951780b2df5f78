"""One torch thread, and properties without a clock: both keep a busy machine from failing tests."""

import sys
from pathlib import Path

import torch
from hypothesis import settings

# The tree under test comes first, whatever is installed; `tools` is no installed package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

torch.set_num_threads(1)
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")
