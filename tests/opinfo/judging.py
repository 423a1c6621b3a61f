"""Whether the device's outcome agrees with the CPU's.

Floats have to agree to the tolerance of their dtype, or the largest that OpInfo itself allows for
the operator; integers and bools exactly, floats computed from them to FROM_INTEGERS. NaN equals
NaN. Shape and dtype are always compared, strides are not.

Values are not compared for random results (those that another seed changes on the CPU) and for OPEN
operators. Indices are compared by the elements that they select, since the order of equal elements
is not specified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo

from .execution import tensors

# Operators, by full name, whose values may differ between devices: uninitialised memory,
# factorisations and indices that are not unique, conversions and shifts that are undefined in C++.
OPEN = {
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    "as_strided.partial_views",
    *("mode", "unique"),
    *("linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "lu", "pca_lowrank", "svd_lowrank"),
    *("bitwise_left_shift", "bitwise_right_shift", "byte", "char", "int", "long", "short"),
}
# Operators whose last output is indices of elements of the input.
NAMES_ELEMENTS = {"argsort", "kthvalue", "sort", "topk"}
# Operators of which only the first output is compared: what they save for backward is internal to
# each backend.
FIRST_OUTPUT_ONLY = {"_native_batch_norm_legit", "native_batch_norm"}


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference of floats: |got - want| <= absolute + relative * |want|."""

    absolute: float
    relative: float


EXACT = Tolerance(0.0, 0.0)
FROM_INTEGERS = Tolerance(1e-5, 1e-5)
TOLERANCES = {
    torch.float64: Tolerance(1e-7, 1e-7),
    torch.complex128: Tolerance(1e-7, 1e-7),
    torch.float32: Tolerance(1e-4, 1e-4),
    torch.complex64: Tolerance(1e-4, 1e-4),
    torch.float16: Tolerance(1e-3, 4e-3),
    torch.bfloat16: Tolerance(1e-2, 1.6e-2),
}


def tolerance(op: OpInfo, dtype: torch.dtype) -> Tolerance:
    """The tolerance of a dtype, or the largest that the operator's own tests have for it."""
    allowed = TOLERANCES.get(dtype, EXACT)
    for entry in op.decorators:
        for decorator in entry.decorators if isinstance(entry, DecorateInfo) else [entry]:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                override = decorator.d[dtype]
                allowed = Tolerance(max(allowed.absolute, override.atol), max(allowed.relative, override.rtol))
    return allowed


@dataclass(frozen=True)
class Rules:
    """What is compared of a result."""

    device: torch.device
    tolerance: Tolerance
    values: bool = True
    dtypes: bool = True
    first_output_only: bool = False

    def difference(self, want: Any, got: Any) -> str | None:
        """A short description of what is wrong with `got`, or None."""
        expected, actual = tensors(want), tensors(got)
        if self.first_output_only:
            expected, actual = expected[:1], actual[:1]
        if len(expected) != len(actual):
            return f"{len(actual)} output tensors, want {len(expected)}"
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            why = self._tensor_difference(one, other)
            if why is not None:
                return f"output {index}{why}"
        if self.values and type(want) in (int, float, bool):
            bound = self.tolerance.absolute + self.tolerance.relative * abs(want)
            if abs(want - got) > bound:
                return f"result {got}, want {want}"
        return None

    def difference_by_elements(self, source: torch.Tensor, want: Any, got: Any) -> str | None:
        """`difference`, for results whose last output is indices into `source`."""
        expected, actual = tensors(want), tensors(got)
        why = replace(self, values=True).difference(expected[:-1], actual[:-1])
        why = why or replace(self, values=False).difference(expected[-1], actual[-1])
        if why or not expected[-1].numel():
            return why
        pairs = zip(named(source, expected[-1]), named(source, actual[-1]), strict=True)
        if any(a is not None and b is not None and _identical(a, b) for a, b in pairs):
            return None
        return "the indices name other elements"

    def _tensor_difference(self, want: torch.Tensor, got: torch.Tensor) -> str | None:
        if got.device.type != self.device.type:
            return f" is on {got.device}"
        if want.shape != got.shape:
            return f" shape {tuple(got.shape)}, want {tuple(want.shape)}"
        if self.dtypes and want.dtype != got.dtype:
            return f" dtype {got.dtype}, want {want.dtype}"
        if not self.values:
            return None
        want, got = want.detach().resolve_conj().resolve_neg(), got.detach().cpu()
        if not self.dtypes:
            want = want.to(got.dtype)
        if got.dtype is torch.complex32:  # for which the CPU has no comparisons
            want, got = want.to(torch.complex64), got.to(torch.complex64)
        inexact = want.is_floating_point() or want.is_complex()
        allowed = FROM_INTEGERS if inexact and not self.tolerance.absolute else self.tolerance
        try:
            torch.testing.assert_close(
                got,
                want,
                atol=allowed.absolute,
                rtol=allowed.relative,
                equal_nan=True,
                check_device=False,
                check_stride=False,
                check_layout=False,
            )
        except AssertionError as error:
            return ": " + " ".join(str(error).split())[:200]
        return None


def named(source: torch.Tensor, indices: torch.Tensor) -> list[torch.Tensor | None]:
    """The elements that the indices select along each dimension of `source`; None if shape or range
    do not fit.
    """
    source, indices = source.detach().cpu(), indices.detach().cpu()
    if source.dim() == 0:
        return [source]
    return [_taken(source, indices, dimension) for dimension in range(source.dim())]


def _taken(source: torch.Tensor, indices: torch.Tensor, dimension: int) -> torch.Tensor | None:
    if indices.dim() != source.dim():
        indices = indices.unsqueeze(dimension)
    # Checked here, since take_along_dim broadcasts, and would then read outside of the source.
    fits = all(source.size(other) == indices.size(other) for other in range(source.dim()) if other != dimension)
    if not fits or indices.min() < 0 or indices.max() >= source.size(dimension):
        return None
    return torch.take_along_dim(source, indices, dimension)


def _identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num())


def is_random(one: Any, other: Any) -> bool:
    """Whether two runs on the CPU with different seeds gave different results."""
    try:
        return any(
            a.shape != b.shape or not torch.allclose(_wide(a), _wide(b), equal_nan=True)
            for a, b in zip(tensors(one), tensors(other), strict=False)
        )
    except Exception:  # Sparse and nested tensors, which allclose does not support, are considered not random.
        return False


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.is_complex() else tensor.detach().double()


def half_tolerance(allowed: Tolerance, exact: Any, rounded: Any) -> Tolerance:
    """The tolerance against the float32 result `exact`: twice the error of the CPU's own
    half-precision result.
    """
    errors = [
        2 * float((one - other.float()).abs().nan_to_num(0, 0, 0).max())
        for one, other in zip(tensors(exact), tensors(rounded), strict=False)
        if one.shape == other.shape and one.numel() and one.is_floating_point()
    ]
    return replace(allowed, absolute=max([allowed.absolute, *errors]))
