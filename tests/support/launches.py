"""The number of commands that are enqueued."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_dml


def launches(work: Callable[[], object]) -> int:
    """Launches and copies that `work` enqueues after its kernels are compiled."""
    work()
    torch.dml.synchronize()
    before = torch_dml.engine.queue_stats(0)["commands"]
    work()
    return torch_dml.engine.queue_stats(0)["commands"] - before
