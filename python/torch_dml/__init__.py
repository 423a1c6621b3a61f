"""torch-dml: the PyTorch device "dml" on any GPU that has a Vulkan driver.

Importing this module makes `torch.device("dml")` and the module `torch.dml` available.
`import torch` alone does the same where torch has no accelerator of its own (see
torch_dml_autoload).
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from torch_dml._version import __version__
from torch_dml.fallback import fallback_count, fallback_reasons, fallbacks, reset_fallbacks
from torch_dml.loader import is_loaded, load, supported_torch

if TYPE_CHECKING:
    from torch_dml.batch_size import auto_batch_size
    from torch_dml.compare import compare
    from torch_dml.policy_runner import PolicyRunner
    from torch_dml.text_kernel import Kernel, kernel
    from torch_dml.trees import to_device

__all__ = [
    "Kernel",
    "PolicyRunner",
    "__version__",
    "auto_batch_size",
    "compare",
    "fallback_count",
    "fallback_reasons",
    "fallbacks",
    "is_loaded",
    "kernel",
    "load",
    "reset_fallbacks",
    "supported_torch",
    "to_device",
]

# Imported on first use, since they import torch, which the command line works without.
_LATER = {
    "Kernel": "torch_dml.text_kernel",
    "PolicyRunner": "torch_dml.policy_runner",
    "auto_batch_size": "torch_dml.batch_size",
    "kernel": "torch_dml.text_kernel",
    "to_device": "torch_dml.trees",
}


def __getattr__(name: str) -> Any:
    if name == "compare":  # A callable module.
        return importlib.import_module("torch_dml.compare")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def _is_command_line() -> bool:
    # `python -m torch_dml` imports this file first, with "-m" in argv[0]. `doctor` has to run even
    # if loading fails.
    return sys.argv[:1] == ["-m"] and sys.orig_argv[1:3] == ["-m", "torch_dml"]


if not _is_command_line():
    load()
