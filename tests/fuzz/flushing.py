"""The CPU as a device that flushes subnormal numbers to zero, as in docs/reference/numerics.md."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Functions that are exact on every adapter: those that use tables, and those that move, compare and
# select numbers.
EXACT = re.compile(
    r"(div|true_divide|reciprocal|r?sqrt|exp[2m1]*|sigmoid|tanh|log(10|1p|2)?|erf(c|inv)?|a?(sin|cos|tan)|atan2|sinh|cosh"
    r"|pow|fmod|remainder|(special_)?(erfcx|ndtri|[ijk][01]e?|\w+bessel\w+)|lgamma|digamma|hypot|abs|neg|sgn|sign|copysign"
    r"|eq|ne|lt|le|gt|ge|where|maximum|minimum|fmax|fmin|clamp(_min|_max)?|relu|threshold(_backward)?|masked_fill|logical_\w+"
    r"|_to_copy|copy|clone|fill|zero|\w*_like|is\w+)_?"
)


class Flushing:
    """A context in which the processor flushes subnormal numbers to zero, in this thread; with
    `sparing` not in functions that are exact on every adapter.

    Under a dispatch mode PyTorch composes some gradients of other steps, so a device may do either.
    """

    def __init__(self, sparing: bool) -> None:
        self.mode: Any = Sparing() if sparing else None  # type: ignore[no-untyped-call]

    def __enter__(self) -> None:
        torch.set_flush_denormal(True)
        if self.mode is not None:
            self.mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.mode is not None:
            self.mode.__exit__(*error)
        torch.set_flush_denormal(False)


class Sparing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Does not flush subnormal numbers in the exact functions."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator; composite operators arrive as their parts."""
        exact = EXACT.fullmatch(func.overloadpacket.__name__) is not None
        torch.set_flush_denormal(not exact)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            torch.set_flush_denormal(True)
