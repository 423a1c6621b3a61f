"""Parameters of PyTorch's functions whose default is the device "cuda": their default becomes this
device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.storage

from torch_dml.backend import DEVICE
from torch_dml.on_import import when_imported


def install() -> None:
    """Let these functions use the device if no device is given, as they would use CUDA."""
    for function in _functions():
        _point_to_device(function)
    when_imported("torch.nn.attention.experimental._paged_attention", _paged_attention)


def _functions() -> Iterator[Callable[..., Any]]:
    yield torch.amp.GradScaler.__init__  # type: ignore[attr-defined]
    yield torch.autograd.graph.save_on_cpu.__init__
    # From torch 2.13 on the accelerator is the default.
    yield torch.random.fork_rng.__wrapped__  # type: ignore[attr-defined]
    for storage in (torch.storage._StorageBase, torch.storage.TypedStorage):
        yield storage.is_pinned
        yield storage.pin_memory


def _paged_attention(module: ModuleType) -> None:
    _point_to_device(module.PagedAttention.__init__)


def _point_to_device(function: Any) -> None:
    # The function object stays the same, wherever it was imported to.
    function.__defaults__ = tuple(DEVICE if value == "cuda" else value for value in function.__defaults__ or ())
