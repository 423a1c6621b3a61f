"""Dtypes, types of values and literals in the kernel language."""

from __future__ import annotations

import math

import torch

from torch_dml.inductor.errors import MissingKernelError

# A dtype's name in memory, and the type of a value that is computed with.
_STORED: dict[torch.dtype, tuple[str, str]] = {
    torch.bool: ("bool", "bool"),
    torch.uint8: ("u8", "i32"),
    torch.int8: ("i8", "i32"),
    torch.int16: ("i16", "i32"),
    torch.uint16: ("u16", "i32"),
    torch.int32: ("i32", "i32"),
    torch.uint32: ("u32", "u32"),
    torch.int64: ("i64", "i64"),
    torch.uint64: ("u64", "u64"),
    torch.float16: ("f16", "f32"),
    torch.bfloat16: ("bf16", "f32"),
    torch.float32: ("f32", "f32"),
    torch.float64: ("f64", "f64"),
    torch.float8_e4m3fn: ("f8e4m3fn", "f32"),
    torch.float8_e5m2: ("f8e5m2", "f32"),
    torch.float8_e4m3fnuz: ("f8e4m3fnuz", "f32"),
    torch.float8_e5m2fnuz: ("f8e5m2fnuz", "f32"),
}


def _of(dtype: torch.dtype) -> tuple[str, str]:
    if dtype not in _STORED:
        raise MissingKernelError(f"elements of {dtype}")
    return _STORED[dtype]


# What stands for elements that are only moved.
_MOVED = {torch.complex32: "u32", torch.complex64: "u64"}


def stored(dtype: torch.dtype) -> str:
    """Return a dtype's name in memory: `bf16`; of complex numbers, that of as many bits."""
    return _MOVED.get(dtype) or _of(dtype)[0]


def computed(dtype: torch.dtype) -> str:
    """Return the type of a dtype's values in a kernel: `f32` of bfloat16."""
    return _of(dtype)[1]


def is_known(dtype: torch.dtype) -> bool:
    """Return whether a kernel can have tensors of a dtype."""
    return dtype in _STORED


def is_narrow(dtype: torch.dtype) -> bool:
    """Return whether values have to be decoded when they are loaded: they are stored in less than
    32 bits.
    """
    return dtype.itemsize < 4


def is_rounded(dtype: torch.dtype) -> bool:
    """Return whether results have to be rounded, or wrapped, to be values of the dtype."""
    return is_narrow(dtype) and dtype != torch.bool


def literal(value: bool | float, dtype: torch.dtype) -> str:
    """Return a number as a literal with its type."""
    kind = computed(dtype)
    if kind == "bool":
        return "true" if value else "false"
    if not dtype.is_floating_point:
        return f"{int(value)}:{kind}"
    number = float(value)
    if math.isnan(number):
        return f"nan:{kind}"
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}inf:{kind}"
    return f"{number!r}:{kind}"


def lowest(dtype: torch.dtype) -> bool | float:
    """Return the identity of the maximum."""
    if dtype == torch.bool:
        return False
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def highest(dtype: torch.dtype) -> bool | float:
    """Return the identity of the minimum."""
    if dtype == torch.bool:
        return True
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max
