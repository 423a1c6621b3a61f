"""Sending tensors to other processes. Memory of a device is one process's."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from torch_dml.loader import DEVICE


def install() -> None:
    """Make `torch.multiprocessing` refuse dml tensors with words that help."""
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)


def _reduce_storage(storage: torch.UntypedStorage) -> Any:
    if storage.device.type == DEVICE:
        raise RuntimeError(
            f"a tensor on {storage.device} cannot be shared with another process: send tensor.cpu(), and move what "
            f'arrives to "{DEVICE}" there'
        )
    return reductions.reduce_storage(storage)  # type: ignore[no-untyped-call]
