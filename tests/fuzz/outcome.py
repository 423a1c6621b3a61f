"""The outcome of a call, as plain data that can be sent between processes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Flat:
    """A tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    data: bytes  # the elements, contiguous

    @property
    def values(self) -> torch.Tensor:
        """The elements, as a 1-dim tensor."""
        if not self.data:
            return torch.empty(0, dtype=self.dtype)
        return torch.frombuffer(bytearray(self.data), dtype=self.dtype)


def flat(tensor: torch.Tensor) -> Flat:
    """A dense tensor as plain data."""
    there = tensor.detach()
    # A zero tensor of PyTorch's autograd has no storage.
    dense = torch.zeros_like(there) if there._is_zerotensor() else there  # type: ignore[no-untyped-call]
    here = dense.cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    data = here.reshape(-1).view(torch.uint8).numpy().tobytes() if here.numel() else b""
    return Flat(there.dtype, tuple(there.shape), there.stride(), there.device.type, data)


@dataclass(frozen=True)
class Error:
    """An exception."""

    type: str
    message: str


@dataclass
class Outcome:
    """The results, changed storages and gradients of a call; or its error."""

    error: Error | None = None
    results: list[Flat | float | None] = field(default_factory=list)
    gradients: list[Flat | None] | None = None
    second: list[Flat | None] | None = None
    storages: list[Flat | None] = field(default_factory=list)  # those that were changed
    fallbacks: tuple[str, ...] = ()  # names of the operators that ran on the CPU instead of the device
