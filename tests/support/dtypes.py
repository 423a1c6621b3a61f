"""The dtypes that operators are tested in, and tensors of them."""

from __future__ import annotations

import pytest
import torch

# If float64 is computed in software, large kernels are refused.
HAS_FLOAT64 = bool(torch.dml.get_device_properties(0).f64) if torch.dml.is_available() else True

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
HALVES = [torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
NUMBERS = [*FLOATS, *INTEGERS]
ALL = [*NUMBERS, torch.bool]


def dtypes(*lists: list[torch.dtype] | torch.dtype) -> pytest.MarkDecorator:
    """Runs a test once for each dtype in the lists, as its argument `dtype`."""
    every = [dtype for part in lists for dtype in (part if isinstance(part, list) else [part])]
    return pytest.mark.parametrize("dtype", every, ids=lambda dtype: str(dtype).removeprefix("torch."))


def says_no_float64(message: str) -> bool:
    """Whether the device reported that it lacks float64 for a call, in the one sentence that names
    the adapter.
    """
    said = f"needs 64-bit floating point (float64), which {torch.dml.get_device_name(0)} does not have"
    return not HAS_FLOAT64 and said in message


def refuses_float64(error: BaseException) -> bool:
    """Whether an error says that the device lacks float64 for a call, or for a compiled graph."""
    is_compiling = type(error).__name__ == "BackendCompilerFailed"
    return (isinstance(error, NotImplementedError) or is_compiling) and says_no_float64(str(error))


def sample(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed floats, integers from -9 to 8 (0 to 8 if unsigned), or bools."""
    if dtype == torch.bool:
        return torch.rand(sizes) > 0.5
    if dtype.is_floating_point:
        return torch.randn(sizes, dtype=torch.float64).to(dtype)
    return torch.randint(-9 if dtype.is_signed else 0, 9, sizes).to(dtype)


def sample_with_ties(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Like `sample`, with floats that are multiples of a half, so that many are equal."""
    if dtype.is_floating_point:
        return (torch.randn(sizes) * 4).round().to(dtype) / 2
    return sample(*sizes, dtype=dtype)


def leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed floats that require a gradient."""
    return torch.randn(*sizes).to(dtype).requires_grad_()
