"""Calls of operators as text: an operator, and descriptions of its arguments without their values.

A tensor is described by dtype, shape, strides and offset. What was called once can be called again
on any device, with tensors that hold nothing in particular.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def described(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The call as a line of JSON; None if no argument is on the device, or one cannot be
    described.
    """
    seen: list[str] = []
    try:
        call = [str(operator), [_text(value, seen) for value in args], {k: _text(v, seen) for k, v in kwargs.items()}]
    except TypeError:
        return None
    return json.dumps(call, separators=(",", ":")) if "dml" in seen else None


def _text(value: Any, seen: list[str]) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or type(value) not in (torch.Tensor, torch.nn.Parameter) or value.is_quantized:
            raise TypeError(type(value))
        seen.append(value.device.type)
        place = [value.device.type, str(value.dtype).removeprefix("torch.")]
        return {"t": [*place, list(value.shape), list(value.stride()), value.storage_offset()]}
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"f": str(value)}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        seen.append(value.type)
        return {"d": value.type}
    if isinstance(value, complex):
        return {"c": [_text(value.real, seen), _text(value.imag, seen)]}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_text(item, seen) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(type(value))


def needs_float64(line: str) -> bool:
    """Whether a call is left out on a GPU without float64: in software, its powers are compiled for
    minutes.
    """
    return '"float64"' in line or '"complex128"' in line


def repeat(line: str) -> None:
    """Make the call of a line. Raises what the operator raises."""
    name, args, kwargs = json.loads(line)
    space, packet, overload = name.split(".")
    operator = getattr(getattr(getattr(torch.ops, space), packet), overload)
    operator(*map(_value, args), **{key: _value(value) for key, value in kwargs.items()})


def _value(text: Any) -> Any:
    if isinstance(text, list):
        return [_value(item) for item in text]
    if not isinstance(text, dict):
        return text
    ((kind, value),) = text.items()
    match kind:
        case "t":
            return _tensor(*value)
        case "f":
            return _SPECIAL[value]
        case "c":
            return complex(*map(_value, value))
        case "d":
            return torch.device(value)
        case _:
            return getattr(torch, value)


def _tensor(device: str, dtype: str, shape: list[int], strides: list[int], offset: int) -> torch.Tensor:
    extent = offset + 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    storage = torch.empty(extent if 0 not in shape else offset, dtype=getattr(torch, dtype), device=device)
    return storage.as_strided(shape, strides, offset)


class Recording(TorchDispatchMode):
    """Writes the calls of operators that are made within it."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; a call that raises is not recorded."""
        line = described(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if line is not None:
            self.calls.add(line)
        return result


class Calls:
    """The calls that this process has seen, in a file."""

    def __init__(self, file: TextIO) -> None:
        self.seen: set[str] = set()
        self.file = file

    def add(self, line: str) -> None:
        """Write a call unless it is known."""
        if line not in self.seen:
            self.seen.add(line)
            self.file.write(line + "\n")
            self.file.flush()
