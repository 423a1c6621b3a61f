"""Shapes and strides of results on the device, where torch does not know them."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_dml.backend import DEVICE

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

    library = torch.library.Library("aten", "IMPL")
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward", _attention_backward, "Meta")
    own = torch.library.Library("torch_dml", "FRAGMENT")
    torch.library.register_fake("torch_dml::convolution_then", _convolution_then, lib=own)
    torch.library.register_fake("torch_dml::product_then", _product_then, lib=own)
    _library.extend((library, own))


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
