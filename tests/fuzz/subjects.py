"""What is called: an operator, with a function that creates calls, and how results are compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from .calls import Call


@dataclass(frozen=True)
class Subject:
    """An operator, and the function that creates its calls."""

    name: str
    make: Callable[[random.Random], Call]
    is_pointwise: Callable[[], bool] = lambda: False
    strides: bool = True  # whether the strides of results are compared
    zero_signs: bool = True  # whether the signs of zeros are compared
    drawn: bool = False  # whether results are random numbers, compared by their distribution

    @property
    def base(self) -> str:
        """The operator's name without overload: sort for aten::sort.stable, std for
        std.unbiased.
        """
        return self.name.removeprefix("complex ").removeprefix("aten::").partition(".")[0]
