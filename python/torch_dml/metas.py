"""Shapes and strides of results on the device, where torch does not know them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from torch_dml.backend import DEVICE
from torch_dml.on_import import when_imported

_library: list[torch.library.Library] = []


def install() -> None:
    """Tell torch, once. Whatever traces with fake tensors asks."""
    of_convolution = torch._C._conv_determine_backend_memory_format

    @functools.wraps(of_convolution)
    def memory_format(input: torch.Tensor, weight: torch.Tensor, backend: Any) -> torch.memory_format:
        if input.device.type != DEVICE:
            return of_convolution(input, weight, backend)
        from torch._prims_common import suggest_memory_format

        formats = [suggest_memory_format(tensor) for tensor in (input, weight)]
        return next((found for found in formats if found != torch.contiguous_format), torch.contiguous_format)

    torch._C._conv_determine_backend_memory_format = memory_format

    when_imported("torch._subclasses.fake_impls", _transforms)
    library = torch.library.Library("aten", "IMPL")
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward", _attention_backward, "Meta")
    own = torch.library.Library("torch_dml", "FRAGMENT")
    torch.library.register_fake("torch_dml::convolution_then", _convolution_then, lib=own)
    torch.library.register_fake("torch_dml::product_then", _product_then, lib=own)
    _library.extend((library, own))


def _transforms(fake_impls: ModuleType) -> None:
    """Tell the strides of Fourier transforms, whose transformed dimensions are innermost."""
    aten = torch.ops.aten

    def fake(result: Callable[..., torch.Tensor]) -> Callable[..., Any]:
        def implementation(mode: Any, operator: Any, x: torch.Tensor, dim: list[int], *args: Any, **kwargs: Any) -> Any:
            if x.device.type != DEVICE or not dim or kwargs:
                return NotImplemented
            with mode:
                return result(x, [d % x.dim() for d in dim], *args)

        return implementation

    def to_complex(x: torch.Tensor, dim: list[int], normalization: int, onesided: bool) -> torch.Tensor:
        sizes = list(x.shape)
        if onesided:
            sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1
        axes = [*_by_strides(dim[:-1], x.stride()), dim[-1]]
        return x.new_empty_strided(sizes, _innermost(sizes, x.stride(), axes), dtype=x.dtype.to_complex())

    def of_complex(x: torch.Tensor, dim: list[int], normalization: int, forward: bool) -> torch.Tensor:
        return x.new_empty_strided(x.shape, _innermost(x.shape, x.stride(), _by_strides(dim, x.stride())))

    def to_real(x: torch.Tensor, dim: list[int], normalization: int, last: int) -> torch.Tensor:
        others, strides = _by_strides(dim[:-1], x.stride()), x.stride()
        if others:
            strides = _innermost(x.shape, strides, others)
        sizes = [*x.shape[: dim[-1]], last, *x.shape[dim[-1] + 1 :]]
        return x.new_empty_strided(sizes, _innermost(sizes, strides, dim[-1:]), dtype=x.dtype.to_real())

    for operator, result in (
        (aten._fft_r2c.default, to_complex),
        (aten._fft_c2c.default, of_complex),
        (aten._fft_c2r.default, to_real),
    ):
        fake_impls.register_op_impl(operator)(fake(result))


def _by_strides(axes: Sequence[int], strides: Sequence[int]) -> list[int]:
    return sorted(axes, key=lambda d: -strides[d])


def _innermost(sizes: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose innermost dimensions are some axes, and whose
    others are in the order of strides.
    """
    order = [*_by_strides([d for d in range(len(sizes)) if d not in axes], strides), *axes]
    found, step = [0] * len(sizes), 1
    for d in reversed(order):
        found[d] = step
        step = step * max(sizes[d], 1)
    return tuple(found)


def _convolution_then(
    image: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    tensors: list[torch.Tensor],
    then: str,
) -> torch.Tensor:
    """The result is the convolution's."""
    return torch.convolution(image, weight, bias, stride, padding, dilation, False, [0], groups)


def _product_then(
    a: torch.Tensor,
    b: torch.Tensor,
    addend: torch.Tensor | None,
    tensors: list[torch.Tensor],
    then: str,
    dtype: torch.dtype,
    **options: Any,
) -> torch.Tensor:
    """The result is contiguous."""
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)


def _attention_backward(
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *arguments: Any,
    scale: float | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """The gradients have the layouts of their inputs; there is none of a mask."""
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None
