"""The runs that are compared with the device's: each of its tensors has a shadow in every lane,
computed from that lane's shadows.

A lane is a device and a precision. Shadows belong to storages, not to tensors, so that views,
writes into views and tensors that autograd creates find theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torch_dml.compare import calls, equivalents

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
# Number of new storages after which shadows of freed storages are removed.
_PURGE_EVERY = 256


@dataclass(frozen=True)
class Lane:
    """The device and precision of calls: `exact` in float64, `nudged` from weights changed by one
    ulp.
    """

    name: str
    device: torch.device
    exact: bool = False
    nudged: bool = False

    def dtype(self, dtype: torch.dtype) -> torch.dtype:
        """The lane's dtype in place of a dtype."""
        return WIDE.get(dtype, dtype) if self.exact else dtype

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of a tensor on the lane's device, in the lane's dtype."""
        return tensor.detach().to(device=self.device, dtype=self.dtype(tensor.dtype), copy=True)

    def call(self, func: Any, args: Any, kwargs: Any, take: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        """Call an operator with `take` of each tensor; return the results as `calls.results`
        does.
        """

        def change(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return take(leaf)
            if isinstance(leaf, torch.dtype):
                return self.dtype(leaf)
            return self.device if isinstance(leaf, torch.device) else leaf

        args, kwargs = calls.mapped(change, args, kwargs)
        with _default_dtype(torch.float64 if self.exact else torch.get_default_dtype()):
            return calls.results(func, args, kwargs, equivalents.on_cpu(func)(*args, **kwargs))


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Shadows:
    """The shadows of one lane. `weights` are the addresses of the storages to nudge."""

    def __init__(self, lane: Lane, weights: set[int]) -> None:
        """Start without shadows."""
        self.lane = lane
        self._weights = weights
        self._held: dict[int, tuple[StorageWeakRef, torch.dtype, torch.Tensor]] = {}
        self._generator = torch.Generator().manual_seed(0)
        self._since_purge = 0

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The shadow of a tensor, which shares memory with the shadows of its views; a copy of the
        device's tensor if there is none.
        """
        flat = self._known(tensor)
        if flat is None:
            length = tensor.untyped_storage().nbytes() // tensor.element_size()
            flat = self._keep(tensor, self.lane.copy(tensor.detach().as_strided((length,), (1,), 0)))
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def put(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Set the shadow of a tensor that the device has just computed."""
        if self._known(tensor) is not None:
            return  # It is a view of an argument, and the value is a view of that argument's shadow.
        length = tensor.untyped_storage().nbytes() // tensor.element_size()
        flat = torch.zeros(length, dtype=self.lane.dtype(tensor.dtype), device=self.lane.device)
        flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(value)
        self._keep(tensor, flat)

    def forget(self, tensor: torch.Tensor) -> None:
        """Discard the shadow, so that the next one is a copy of the device's values."""
        self._held.pop(tensor.untyped_storage()._cdata, None)

    def _known(self, tensor: torch.Tensor) -> torch.Tensor | None:
        storage = tensor.untyped_storage()
        reference, dtype, flat = self._held.get(storage._cdata, (None, None, None))
        if reference is None or flat is None or reference.expired() or dtype != tensor.dtype:
            return None
        return flat if flat.numel() == storage.nbytes() // tensor.element_size() else None

    def _keep(self, tensor: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        self._since_purge += 1
        if self._since_purge == _PURGE_EVERY:
            self._since_purge = 0
            self._held = {key: entry for key, entry in self._held.items() if not entry[0].expired()}
        storage = tensor.untyped_storage()
        if self.lane.nudged and storage._cdata in self._weights and flat.is_floating_point():
            flat = self._changed_by_one_ulp(flat)
        # The weak reference keeps the address from being reused by another storage.
        self._held[storage._cdata] = StorageWeakRef(storage), tensor.dtype, flat
        return flat

    def _changed_by_one_ulp(self, flat: torch.Tensor) -> torch.Tensor:
        up = torch.rand(flat.shape, generator=self._generator).to(flat.device) < 0.5
        return torch.nextafter(flat, torch.where(up, torch.inf, -torch.inf).to(flat.dtype))
