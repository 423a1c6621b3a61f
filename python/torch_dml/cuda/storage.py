"""Storages of "cuda", which torch's own code would allocate with CUDA's allocator."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

from torch_dml import engine, multiprocessing
from torch_dml.backend import DEVICE


def install(library: ctypes.CDLL) -> None:
    """Let untyped storages of the device be created and resized by its own operators."""
    base = torch.UntypedStorage
    make, resize = base.__new__, base.resize_

    @functools.wraps(make)
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != DEVICE:
            return make(cls, *args, **kwargs)
        (content,) = args or (0,)
        if isinstance(content, int):
            return torch.empty(content, dtype=torch.uint8, device=device).untyped_storage()
        return torch.tensor(list(content), dtype=torch.uint8, device=device).untyped_storage()

    @functools.wraps(resize)
    def resized(self: torch.UntypedStorage, nbytes: int) -> torch.UntypedStorage:
        if self.device.type != DEVICE:
            resize(self, nbytes)
            return self
        status = library.dml_plugin_resize_storage(self._cdata, nbytes)
        if status != 0:
            raise engine.error_of("dml_plugin_resize_storage", status)
        return self

    # Called by torch.multiprocessing for a CUDA tensor.
    base._share_cuda_ = multiprocessing.refuse  # type: ignore[method-assign,assignment]
    base.__new__ = new  # type: ignore[method-assign,assignment]
    base.resize_ = resized  # type: ignore[method-assign,assignment]
