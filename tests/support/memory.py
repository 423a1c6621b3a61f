"""Memory that a test compares with itself: what earlier tests left must not be freed in between."""

from __future__ import annotations

import gc

import torch


def allocated() -> int:
    """Bytes of live tensors, once cycles of earlier tests are collected and the device is idle."""
    gc.collect()
    torch.dml.synchronize()
    return int(torch.dml.memory_allocated())
