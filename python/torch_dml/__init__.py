"""torch-dml: the PyTorch device "dml" on any GPU that has a Vulkan driver.

Importing this module makes `torch.device("dml")` and the module `torch.dml` available. `import torch` alone does the
same where torch has no accelerator of its own (see torch_dml_autoload).
"""

from __future__ import annotations

import sys

from torch_dml._version import __version__
from torch_dml.fallback import fallback_count, fallbacks, reset_fallbacks
from torch_dml.loader import is_loaded, load, supported_torch

__all__ = [
    "__version__",
    "fallback_count",
    "fallbacks",
    "is_loaded",
    "load",
    "reset_fallbacks",
    "supported_torch",
]


def _is_command_line() -> bool:
    # `python -m torch_dml` imports this file first, with "-m" in argv[0]. `doctor` must run where loading fails.
    return sys.argv[:1] == ["-m"] and sys.orig_argv[1:3] == ["-m", "torch_dml"]


if not _is_command_line():
    load()
