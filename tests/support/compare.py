"""Comparison of the device's results with the CPU's.

The CPU rounds as well, and in 16 bits its sums and counts depend on the number of threads. So
floats narrower than float64 are compared with the CPU's results in float64 for the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tests.support.dtypes import refuses_float64

# Maximum differences from the reference: relative, absolute. For 16 bits one unit in the last
# place.
TOLERANCES = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (4e-6, 1e-6),
    torch.float16: (2**-10, 2**-12),
    torch.bfloat16: (2**-7, 2**-9),
    torch.complex64: (4e-6, 1e-6),
    torch.complex128: (1e-12, 1e-12),
}
WIDENED = (torch.float32, torch.float16, torch.bfloat16)


def to_device(value: Any, device: torch.device | str, widen: bool = False) -> Any:
    """A copy of `value` with every tensor in it on `device`, as leaves with the same strides and
    offset.

    With `widen` narrower floats become float64.
    """
    if isinstance(value, torch.Tensor):
        dtype = torch.float64 if widen and value.dtype in WIDENED else value.dtype
        return _copy(value.detach(), device, dtype).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device, widen) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item, device, widen) for key, item in value.items()}
    return value


def _copy(x: torch.Tensor, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    if x.layout != torch.strided or x.is_nested or x.is_neg() or x.is_conj():
        return x.to(device, dtype, copy=True)
    storage = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
    return storage.to(device, dtype, copy=True).as_strided(x.size(), x.stride(), x.storage_offset())


def assert_same(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    exact: Any = None,
    terms: float = 1.0,
) -> None:
    """Assert that the device's result is as expected: value, dtype, shape; NaN equals NaN.

    With `exact`, the same result in float64, the values are compared with that, and only the dtypes
    with `expected`. If elements are sums that cancel, their errors are relative to the terms:
    `terms`, the size of these, multiplies the absolute tolerance.
    """
    if isinstance(expected, torch.Tensor):
        dtype = expected.dtype
        relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
        actual, expected = actual.detach().cpu(), expected.detach()
        assert actual.dtype == dtype, f"{actual.dtype} instead of {dtype}"
        if exact is not None and dtype in WIDENED:
            actual, expected = actual.double(), _overflowed(exact.detach(), dtype)
        torch.testing.assert_close(
            actual,
            expected,
            rtol=relative if rtol is None else rtol,
            atol=absolute * terms if atol is None else atol,
            equal_nan=True,
        )
    elif isinstance(expected, (list, tuple)):
        for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
            assert_same(one, other, rtol, atol, None if exact is None else exact[index], terms)
    else:
        assert actual == expected or (actual != actual and expected != expected)


def _overflowed(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Numbers out of the range of `dtype` are infinite."""
    exact = exact.double()
    rounded = exact.to(dtype).double()
    return torch.where(rounded.isinf(), rounded, exact)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Sets the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def assert_matches_cpu(
    function: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float | None = None,
    device: torch.device | str = "dml",
    widen: bool = True,
    terms: float = 1.0,
    **kwargs: Any,
) -> Any:
    """Run `function` on copies of its arguments on the device, and compare with the CPU in float64.

    If an argument requires a gradient, gradients are compared too: those of the sum of all results,
    where each element has a different weight (with equal ones the gradients of many functions
    vanish, for example normalisation's). With `widen=False` the reference is the CPU's result in
    the arguments' own dtypes, for functions that compute something else in another dtype
    (nextafter, random weights). `terms` is as for `assert_same`. Returns the device's result.
    """
    given = (args, kwargs)
    cpu, dml = to_device(given, "cpu"), to_device(given, device)
    wide = _widened(given) if widen else None
    expected, actual = function(*cpu[0], **cpu[1]), function(*dml[0], **dml[1])
    exact = None if wide is None else _in_float64(function, wide)
    assert_same(actual, expected, rtol, atol, exact, terms)
    leaves = [index for index, tensor in enumerate(tensors(given)) if tensor.requires_grad]
    if leaves:
        weights = [cosines(part) for part in tensors(expected) if part.requires_grad]
        for result in (expected, actual, exact):
            parts = [part for part in tensors(result) if part.requires_grad]
            if parts:
                pairs = zip(parts, weights, strict=True)
                torch.autograd.backward(parts, [weight.to(part.device, part.dtype) for part, weight in pairs])
        for index in leaves:
            theirs, ours = tensors(cpu)[index].grad, tensors(dml)[index].grad
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                exactly = None if wide is None else tensors(wide)[index].grad
                assert_same(ours, theirs, rtol, atol, exactly, terms)
    return actual


def assert_same_outcome(function: Callable[..., Any], *args: Any, widen: bool = True, strides: bool = True) -> None:
    """Like `assert_matches_cpu` without gradients; strides and the type of an exception are
    compared too.
    """
    expected, actual = (_outcome(function, to_device(args, device)) for device in ("cpu", "dml"))
    if isinstance(actual, Exception) and refuses_float64(actual):
        raise actual
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert type(actual) is type(expected), f"dml: {actual!r}; cpu: {expected!r}"
        return
    wide = _widened((args, {})) if widen else None
    assert_same(actual, expected, exact=None if wide is None else _in_float64(function, wide))
    for ours, theirs in zip(tensors(actual), tensors(expected), strict=True):
        assert not strides or ours.stride() == theirs.stride(), f"strides {ours.stride()}; cpu: {theirs.stride()}"


def _outcome(function: Callable[..., Any], args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return error


def _widened(given: Any) -> Any:
    """Copies of arguments with floats in float64, or None if no float is narrower than that."""
    return to_device(given, "cpu", widen=True) if any(tensor.dtype in WIDENED for tensor in tensors(given)) else None


def _in_float64(function: Callable[..., Any], given: Any) -> Any:
    with default_dtype(torch.float64):
        return function(*given[0], **given[1])


def assert_same_error(function: Callable[..., Any], *args: Any, words: bool = True) -> None:
    """The device raises the CPU's error: the same type of exception and, if `words`, the same first
    line.
    """
    with pytest.raises(Exception) as expected:
        function(*to_device(args, "cpu"))
    with pytest.raises(expected.type) as actual:
        function(*to_device(args, "dml"))
        torch.dml.synchronize()
    if words:
        assert str(actual.value).splitlines()[0] == str(expected.value).splitlines()[0]


def cosines(like: torch.Tensor) -> torch.Tensor:
    """The cosines of 0, 1, 2, ... with a tensor's shape, dtype and device; computed on the CPU, so
    that devices agree.
    """
    angles = torch.arange(like.numel(), dtype=torch.float64).reshape(like.shape)
    return angles.cos().to(like.dtype).to(like.device)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []
