"""Where the tests run: the repository, and the running torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]

# The running torch, as (major, minor).
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

_dml = torch.get_device_module("dml")

# For tests of when kernels ran, which some adapters cannot tell.
needs_timestamps = pytest.mark.skipif(
    not _dml.is_available() or not _dml.get_device_properties(0).timestamps,
    reason="the adapter has no timestamps",
)
