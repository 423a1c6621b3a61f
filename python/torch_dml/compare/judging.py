"""The distance of a result from the same call in float64, and whether float32 explains it.

An element is right if it equals the CPU's, if it is within UNITS roundings of the result in
float64, or within a multiple of the CPU's own error there. Otherwise each argument in turn is
rounded at random a few times, and the call repeated in float64: the error of a correct kernel is a
multiple of the combined changes, which grows with the root of the number of terms that are added.
Sums may also be off by a multiple of the CPU's largest error in the same tensor. Which of several
equal elements an operator selects is not specified, so integers are compared only if they depend on
integers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_dml.compare import calls

UNITS = {torch.float64: 16.0, torch.float32: 8.0, torch.float16: 4.0, torch.bfloat16: 4.0}
OF_CPU, OF_ROUNDED = 4.0, 16.0
ROUNDINGS = 4
# Sums of up to this number of terms are expected to be as accurate as a pointwise operator's chain
# of steps.
FEW_TERMS = 64
# Tensors are compared in pieces of this number of elements.
_PIECE = 1 << 20

Results = list[torch.Tensor | None]


@dataclass
class Error:
    """The distance from the result in float64."""

    ulp: float = 0.0  # the largest of any element, in units of that element's last place
    relative: float = 0.0  # the largest, relative to the tensor's largest element

    def widen(self, other: Error) -> None:
        """Take the larger of both."""
        self.ulp, self.relative = max(self.ulp, other.ulp), max(self.relative, other.relative)


@dataclass
class Wrong:
    """The element that is furthest beyond what float32 explains."""

    output: int
    index: list[int]
    value: float
    exact: float
    cpu: float
    allowed: float  # the largest distance that is explained
    elements: int  # how many of the tensor's elements are not explained
    of: int

    def __str__(self) -> str:
        """The element, and its correct value."""
        return (
            f"output {self.output}{self.index}: {self.value!r}, in float64 {self.exact!r}, cpu {self.cpu!r}; "
            f"off by {abs(self.value - self.exact):.3g}, explained {self.allowed:.3g}; "
            f"{self.elements:,} of {self.of:,} elements"
        )


def error(exact: torch.Tensor, got: torch.Tensor) -> Error:
    """The error of floating-point (or complex) `got`; infinite if exactly one of the two is
    finite.
    """
    exact, got, dtype = _real(exact), _real(got), _real_dtype(got.dtype)
    worst, largest, size = 0.0, 0.0, 0.0
    for want, have in zip(exact.split(_PIECE), got.split(_PIECE), strict=True):
        distance, want = _distance(want, have, dtype)
        units = torch.ldexp(torch.ones_like(want), torch.frexp(want).exponent - 1) * torch.finfo(dtype).eps
        units = units.nan_to_num(torch.inf, torch.inf).clamp_min(
            torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        )
        if want.numel():
            worst = max(worst, float((distance / units).nan_to_num(torch.inf, torch.inf).max()))
            largest = max(largest, float(distance.max()))
            size = max(size, float(want.abs().nan_to_num(0, 0, 0).max()))
    return Error(worst, largest / size if size else (0.0 if largest == 0 else math.inf))


def judge(
    func: Any,
    args: Any,
    kwargs: Any,
    got: Results,
    cpu: Results,
    exact: Results,
    rounded: Callable[[int, int], Results],
) -> Wrong | None:
    """What float32 does not explain of a call: its worst element, or None.

    `rounded(a, n)` repeats the call in float64 with argument `a` rounded in the way of number `n`;
    keyword arguments are numbered after the positional ones.
    """
    pointwise = calls.is_pointwise(func)
    roundings: list[list[Results]] = []
    inexact = [
        number
        for number, value in enumerate([*args, *kwargs.values()])
        if any(one.is_floating_point() or one.is_complex() for one in calls.tensors(value))
    ]
    for output, (have, narrow, want) in enumerate(zip(got, cpu, exact, strict=False)):
        if have is None or narrow is None or want is None or have.shape != want.shape:
            continue
        if not (have.is_floating_point() or have.is_complex()):
            wrong = None if _chooses(args, kwargs, have) else _unequal(output, have, narrow, want)
        else:

            def changed(output: int = output) -> list[list[torch.Tensor]]:
                if not roundings:
                    # Separately, so that the changes of terms that cancel do not cancel too.
                    roundings.extend([rounded(each, number) for number in range(ROUNDINGS)] for each in inexact)
                return [[one for made in of_one if (one := made[output]) is not None] for of_one in roundings]

            allowance = (
                OF_ROUNDED if pointwise else OF_ROUNDED * max(1.0, math.sqrt(terms(args, kwargs, got) / FEW_TERMS))
            )
            wrong = _unexplained(output, have, narrow, want, changed, allowance, pointwise)
        if wrong is not None:
            return wrong
    return None


def terms(args: Any, kwargs: Any, got: Results) -> int:
    """Upper bound of the number of terms of a call's sums, from the shapes alone."""
    given = calls.tensors((args, kwargs))
    made = [one.numel() for one in got if one is not None and one.is_floating_point() and one.numel()]
    if not given or not made:
        return 1
    largest = max(one.numel() for one in given)
    longest = max([size for one in given for size in one.shape], default=1)
    # For a convolution the weights of a filter; for its gradients the positions of one channel.
    channels = [one.numel() // one.shape[side] for one in given if one.dim() > 2 for side in (0, 1) if one.shape[side]]
    return max([1, longest, largest // min(made), *channels])


def _unexplained(
    output: int,
    got: torch.Tensor,
    cpu: torch.Tensor,
    exact: torch.Tensor,
    changed: Callable[[], list[list[torch.Tensor]]],
    allowance: float,
    pointwise: bool,
) -> Wrong | None:
    dtype, shape = _real_dtype(got.dtype), got.shape
    have, narrow, want = _real(got), _real(cpu), _real(exact)
    off, rounded_want = _distance(want, have, dtype)
    cpu_off, _ = _distance(want, narrow, dtype)
    smallest = torch.finfo(dtype).smallest_normal
    # A device may flush subnormal numbers to zero.
    allowed = rounded_want.abs().nan_to_num(0, 0, 0) * (UNITS[dtype] * torch.finfo(dtype).eps / 2) + smallest
    allowed = torch.maximum(allowed, OF_CPU * cpu_off)
    right = (off <= allowed) | (have == narrow) | (have.isnan() & narrow.isnan())
    if bool(right.all()):
        return None
    if not pointwise:
        allowed = torch.clamp_min(allowed, OF_CPU * float(cpu_off.nan_to_num(0, 0, 0).max()))
    together = torch.zeros_like(want)
    for of_one in changed():
        changes = [_distance(want, _real(other), torch.float64)[0].nan_to_num(0, 0, 0) for other in of_one]
        together += torch.stack(changes).amax(0)
    allowed = torch.maximum(allowed, allowance * together)
    right |= off <= allowed
    if bool(right.all()):
        return None
    excess = torch.where(right, 0.0, off / allowed).nan_to_num(torch.inf, torch.inf)
    at = int(excess.argmax())
    shape = torch.Size([*shape, 2]) if got.is_complex() else shape
    return Wrong(
        output,
        [int(one) for one in torch.unravel_index(torch.tensor(at), shape)],
        float(have[at]),
        float(want[at]),
        float(narrow[at]),
        float(allowed[at]),
        int((~right).sum()),
        right.numel(),
    )


def _chooses(args: Any, kwargs: Any, got: torch.Tensor) -> bool:
    """Whether integers may be indices of elements of a floating-point argument."""
    return got.dtype == torch.int64 and any(one.is_floating_point() for one in calls.tensors((args, kwargs)))


def _unequal(output: int, got: torch.Tensor, cpu: torch.Tensor, exact: torch.Tensor) -> Wrong | None:
    different = ((got != cpu) & (got != exact)).flatten()
    if not bool(different.any()):
        return None
    at = int(different.int().argmax())
    index = [int(one) for one in torch.unravel_index(torch.tensor(at), got.shape)]
    value, want, narrow = (float(one.flatten()[at]) for one in (got, exact, cpu))
    return Wrong(output, index, value, want, narrow, 0.0, int(different.sum()), different.numel())


def _distance(want: torch.Tensor, got: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Distances, and `want` with infinities where it is beyond the dtype's range."""
    narrow = want.to(dtype).double()
    want = torch.where(narrow.isinf(), narrow, want)
    have = got.double()
    distance = (have - want).abs()
    distance = torch.where((have == want) | (have.isnan() & want.isnan()), 0.0, distance)
    return distance.nan_to_num(torch.inf, torch.inf), want


def _real(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)


def _real_dtype(dtype: torch.dtype) -> torch.dtype:
    return {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}.get(
        dtype, dtype
    )
