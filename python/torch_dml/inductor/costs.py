"""Which functions take long."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Functions of a few instructions. All others take longer than a load: exact division has 120.
SHORT = {
    *("abs", "add", "add_alpha", "addcmul", "identity", "leaky_relu_backward", "maximum", "minimum"),
    *("mul", "neg", "relu", "sub", "sub_alpha", "where"),
}

_CALL = re.compile(r"= call (\w+)")


def long_calls(lines: Sequence[str]) -> int:
    """Return the number of calls in lines of a kernel of functions that are not short."""
    return sum(match[1] not in SHORT for line in lines for match in _CALL.finditer(line))
