"""What is called: an operator, with what makes calls of it and how they are compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from .calls import Call


@dataclass(frozen=True)
class Subject:
    """An operator, and what makes calls of it."""

    name: str
    make: Callable[[random.Random], Call]
    is_pointwise: Callable[[], bool] = lambda: False
    strides: bool = True  # whether the strides of results count
    zero_signs: bool = True  # whether the signs of zeros count
    drawn: bool = False  # whether results are random numbers, compared by their distribution

    @property
    def base(self) -> str:
        """The operator's name without overload: sort of aten::sort.stable, std of std.unbiased."""
        return self.name.removeprefix("complex ").removeprefix("aten::").partition(".")[0]
