"""nn.DataParallel: what PyTorch's C++ does between CUDA devices, implemented with copies."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.parallel import comm

from torch_dml.backend import AS_CUDA, DEVICE

Devices = Sequence[Any]


def install() -> None:
    """Let torch.nn.parallel's scatter, gather, broadcast and reduce accept tensors of the
    device.
    """
    for name, own in (
        ("scatter", scatter),
        ("gather", gather),
        ("broadcast", broadcast),
        ("broadcast_coalesced", broadcast_coalesced),
        ("reduce_add", reduce_add),
        ("reduce_add_coalesced", reduce_add_coalesced),
    ):
        setattr(comm, name, _for_own_tensors(own, getattr(comm, name)))
    if not AS_CUDA:
        _leave_models_of_the_cpu_alone()


def _leave_models_of_the_cpu_alone() -> None:
    """Let a model on the CPU run there, as on a machine without the device."""
    forward = torch.nn.DataParallel.forward

    @functools.wraps(forward)
    def undisturbed(self: torch.nn.DataParallel[Any], *inputs: Any, **named: Any) -> Any:
        first = next(itertools.chain(self.module.parameters(), self.module.buffers()), None)
        if first is not None and first.device.type == "cpu":
            return self.module(*inputs, **named)
        return forward(self, *inputs, **named)

    torch.nn.DataParallel.forward = undisturbed  # type: ignore[method-assign]


def _for_own_tensors(own: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def chosen(tensors: Any, *arguments: Any, **named: Any) -> Any:
        first = tensors
        while not isinstance(first, torch.Tensor) and first:
            first = first[0]
        return (own if _is_for_device(first) else original)(tensors, *arguments, **named)

    return chosen


def _is_for_device(tensor: Any) -> bool:
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
        return isinstance(tensor, torch.Tensor) and tensor.device.type == DEVICE
    # A CPU tensor is scattered to the process's accelerator.
    accelerator = torch.accelerator.current_accelerator()
    return accelerator is not None and accelerator.type == DEVICE


def _device(device: Any) -> torch.device:
    if device is None:
        return torch.device(DEVICE, torch.accelerator.current_device_index())
    if isinstance(device, int):
        return torch.device("cpu") if device < 0 else torch.device(DEVICE, device)
    return torch.device(device)


def scatter(
    tensor: torch.Tensor,
    devices: Devices | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[torch.Tensor] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Split a tensor along `dim`, one piece for each device; `chunk_sizes` are equal by default."""
    if out is not None:
        pieces = torch.split(tensor, [piece.size(dim) for piece in out], dim)
        for piece, part in zip(out, pieces, strict=True):
            piece.copy_(part)
        return tuple(out)
    assert devices is not None
    pieces = torch.split(tensor, list(chunk_sizes), dim) if chunk_sizes is not None else tensor.chunk(len(devices), dim)
    return tuple(piece.to(_device(device)).contiguous() for piece, device in zip(pieces, devices, strict=False))


def gather(
    tensors: Sequence[torch.Tensor], dim: int = 0, destination: Any = None, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Concatenate tensors of several devices along `dim`, on `destination`: the current device if
    None.
    """
    device = out.device if out is not None else _device(destination)
    pieces = [tensor.to(device) for tensor in tensors]
    return torch.cat(pieces, dim) if out is None else torch.cat(pieces, dim, out=out)


def broadcast(
    tensor: torch.Tensor, devices: Devices | None = None, *, out: Sequence[torch.Tensor] | None = None
) -> tuple[torch.Tensor, ...]:
    """Copy a tensor to each device."""
    if out is not None:
        for copy in out:
            copy.copy_(tensor)
        return tuple(out)
    assert devices is not None
    return tuple(tensor.to(_device(device)) for device in devices)


def broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Devices, buffer_size: int = 0
) -> list[tuple[torch.Tensor, ...]]:
    """Copy tensors to each device; return a tuple of them for each device."""
    return [tuple(tensor.to(_device(device)) for tensor in tensors) for device in devices]


def reduce_add(inputs: Sequence[torch.Tensor], destination: Any = None) -> torch.Tensor:
    """Add the tensors of several devices, in their order, on `destination`."""
    device = _device(destination)
    total = inputs[0].to(device)
    for other in inputs[1:]:
        total = total + other.to(device)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[torch.Tensor]], destination: Any = None, buffer_size: int = 0
) -> tuple[torch.Tensor, ...]:
    """Add lists of tensors, one list for each device, element by element, on `destination`."""
    return tuple(reduce_add(same, destination) for same in zip(*inputs, strict=True))
