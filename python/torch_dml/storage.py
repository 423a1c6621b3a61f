"""Storages: methods that torch implements for host memory only."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from torch_dml.backend import DEVICE


def install() -> None:
    """Let `UntypedStorage.byteswap` support the device; torch would swap the bytes at a host
    address.
    """
    base = torch.UntypedStorage
    swap: Callable[[torch.UntypedStorage, int], None] = base._byteswap

    @functools.wraps(swap)
    def swapped(self: torch.UntypedStorage, element_size: int) -> None:
        if self.device.type != DEVICE:
            swap(self, element_size)
            return
        host = self.cpu()
        swap(host, element_size)
        self.copy_(host)

    base._byteswap = swapped  # type: ignore[method-assign,assignment]
