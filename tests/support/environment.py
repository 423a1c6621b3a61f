"""The environment of the tests: the repository, and the running torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_dml import module as dml

from .torch_versions import number

ROOT = Path(__file__).resolve().parents[2]

# The running torch, as (major, minor).
TORCH = number(torch.__version__)

# For tests of kernel times, which some adapters cannot measure.
needs_timestamps = pytest.mark.skipif(
    not dml.is_available() or not dml.get_device_properties(0).timestamps,
    reason="the adapter has no timestamps",
)
