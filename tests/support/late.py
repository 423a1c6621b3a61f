"""Device tensors whose values arrive late: code that reads their memory without waiting for the
device finds zeros.

On an adapter whose addresses are host addresses, such as Mesa's software adapter, this makes a read
by address visible.
"""

from __future__ import annotations

from typing import Any

import torch

# Size of a product that keeps the device busy for some milliseconds before it writes the values.
SIZE = 256


def late(values: Any, device: torch.device) -> Any:
    """A copy of nested lists, tuples and dictionaries, in which strided tensors are on the device
    and late.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    there = _moved(values, device, pairs)
    busy = torch.ones(SIZE, SIZE, device=device)
    torch.get_device_module(device).synchronize()
    for _ in range(2):
        busy = busy @ busy
    for to, source in pairs:
        to.copy_(source)
    return there


def _moved(value: Any, device: torch.device, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    if isinstance(value, torch.Tensor):
        source = value.to(device)
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            return source
        to = torch.zeros_like(source)
        pairs.append((to, source))
        return to
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device, pairs) for item in value)
    if isinstance(value, dict):
        return {key: _moved(item, device, pairs) for key, item in value.items()}
    return value
