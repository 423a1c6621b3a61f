"""Where the tests run: the repository, and the running torch."""

from __future__ import annotations

from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]

# The running torch, as (major, minor).
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
