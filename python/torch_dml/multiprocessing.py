"""Sending tensors to other processes. A device's memory belongs to one process."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import torch
from torch.multiprocessing import reductions

from torch_dml.backend import DEVICE


def install() -> None:
    """Let `torch.multiprocessing` refuse tensors of the device with a helpful message."""
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)


def refuse(storage: torch.UntypedStorage) -> NoReturn:
    """Raise RuntimeError: the memory cannot be shared."""
    raise RuntimeError(
        f"a tensor on {storage.device} cannot be shared with another process: send tensor.cpu(), and move what "
        f'arrives to "{DEVICE}" there'
    )


def _reduce_storage(storage: torch.UntypedStorage) -> Any:
    if storage.device.type == DEVICE:
        refuse(storage)
    return reductions.reduce_storage(storage)  # type: ignore[no-untyped-call]
