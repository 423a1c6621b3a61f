"""The networks of `demo` and `bench`, without importing the package: that would register dml, after
which PyTorch's autograd does not support CUDA tensors.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from torch import nn


def networks() -> dict[str, Callable[[], nn.Module]]:
    """Return the networks of torch_dml.cli.models by name."""
    package = find_spec("torch_dml")
    if package is None or package.origin is None:
        raise ImportError("torch_dml is not installed")
    return runpy.run_path(str(Path(package.origin).parent / "cli" / "models.py"))
