"""Checkpoints in which the device has another of its names.

torch-directml writes "privateuseone:0"; and a file that was written as "dml" is also read in CUDA's
place.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.serialization

from torch_dml.backend import DEVICE

_OTHER_NAMES = {"dml", "privateuseone"} - {DEVICE}
# After those of torch, which know its own names.
_PRIORITY = 100


def install() -> None:
    """Have `torch.load` put what is on the device by another name on the device."""
    register: Callable[..., None] = torch.serialization.register_package
    register(_PRIORITY, _tag, _restore)


def _tag(_: torch.storage.UntypedStorage) -> None:
    # Written is the name that torch gives it.
    return None


def _restore(storage: torch.storage.UntypedStorage, location: str) -> torch.storage.UntypedStorage | None:
    name, _, index = location.partition(":")
    if name not in _OTHER_NAMES:
        return None
    restore: Callable[..., torch.storage.UntypedStorage] = torch.serialization.default_restore_location
    return restore(storage, f"{DEVICE}:{index or 0}")
