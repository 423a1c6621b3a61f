"""`torch.dml.FloatTensor` and similar types, which older programs use like
`torch.cuda.FloatTensor`.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_dml.backend import DEVICE

_DTYPES = {
    "BFloat16Tensor": torch.bfloat16,
    "BoolTensor": torch.bool,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "DoubleTensor": torch.float64,
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "ShortTensor": torch.int16,
}


class _TensorType(type):
    """The type of tensor types: calling one creates a tensor, and isinstance compares dtype and
    device.
    """

    dtype: torch.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:  # type: ignore[override]
        # Sizes, a sequence or nothing, as for Tensor.new.
        return torch.empty(0, dtype=cls.dtype, device=DEVICE).new(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and instance.dtype == cls.dtype and instance.device.type == DEVICE


def tensor_types() -> dict[str, type]:
    """Return the types by name."""
    place = {"__module__": f"torch.{DEVICE}", "__doc__": "Makes tensors of one dtype on the current device."}
    return {name: _TensorType(name, (), {**place, "dtype": dtype}) for name, dtype in _DTYPES.items()}
