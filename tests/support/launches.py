"""How many commands work enqueues."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_dml


def launches(work: Callable[[], object]) -> int:
    """Launches and copies that `work` enqueues, once its kernels are made."""
    work()
    torch.dml.synchronize()
    before = torch_dml.engine.queue_stats(0)["commands"]
    work()
    return torch_dml.engine.queue_stats(0)["commands"] - before
