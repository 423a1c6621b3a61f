"""Whether an operator ran on the CPU because the device has no kernel for it."""

from __future__ import annotations

import torch_dml


def assert_nothing_fell_back() -> None:
    """Assert that no operator has run on the CPU since the count was last reset."""
    fallbacks = torch_dml.fallbacks()
    assert fallbacks == {}, f"operators fell back to the CPU: {fallbacks}"
