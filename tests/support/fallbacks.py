"""Whether an operator ran on the CPU because the device has no kernel for it."""

from __future__ import annotations

import torch_dml

from tests.support.dtypes import says_no_float64


def assert_nothing_fell_back() -> None:
    """Assert that no operator has run on the CPU since the counts were last reset, but for what an
    adapter without float64 cannot run.
    """
    gaps = {
        name: unexcused
        for name, reasons in torch_dml.fallback_reasons().items()
        if (unexcused := {reason: count for reason, count in reasons.items() if not says_no_float64(reason)})
    }
    assert gaps == {}, f"operators fell back to the CPU: {gaps}"
