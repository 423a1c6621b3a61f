"""Where and why results on the device differ from the CPU's.

`torch_dml.compare(model, inputs, loss)` runs a model's training steps on the device while each
operator is also called with the same inputs on the CPU, in float32 and in float64, and reports the
first whose error its precision does not explain. `python -m torch_dml compare SCRIPT` does so for a
script. docs/guide/compare.md has examples.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from torch_dml.compare.report import Report
from torch_dml.compare.running import compare
from torch_dml.compare.watching import watch

__all__ = ["Report", "compare", "watch"]


class _Callable(ModuleType):
    """A module that can be called, so that both `torch_dml.compare()` and `torch_dml.compare.watch`
    exist.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Report:
        return compare(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
