"""
Whether what the device gave is what the CPU gave.

Shape, dtype, strides, and which numbers are infinite, NaN or negative zeros, always count. Finite floats are right when
they are within a few units in the last place of what the CPU gave or of the result in float64; where those of the CPU's
own dtype are further away, within a multiple of the CPU's error; and where the operator is no pointwise one, within
units of the largest element, or a multiple of what rounding the inputs changes. That multiple is also for pointwise
ones in float64, where there is nothing better than the CPU to compare with. Of a device that may flush subnormal
numbers an element is right with zeros in place of them too, in the inputs, in the result, or in both. Integers and
bools are equal. Strides of dimensions of size 1 are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .calls import Variant
from .outcome import Flat, Outcome
from .values import flushed

# Largest distances from the reference, in units of a dtype's rounding; 2.0 is one unit in the last place.
UNITS = {torch.float64: 16.0, torch.float32: 8.0, torch.float16: 2.0, torch.bfloat16: 2.0}
EPSILON = {dtype: torch.finfo(dtype).eps / 2 for dtype in UNITS}
# Allowed multiples of the CPU's own error, and of what a rounding of the inputs changes.
OF_CPU, OF_PERTURBED = 4.0, 16.0
PERTURBATIONS = 3
# What a rounding of the input of a pointwise function is taken to change at most, relative to the result.
CAP = {torch.float64: 2.0**-40, torch.float32: 2.0**-16}


@dataclass(frozen=True)
class Difference:
    """A kind, by which differences are grouped, and what it is about."""

    kind: str
    message: str


@dataclass(frozen=True)
class Rules:
    """What is compared, and with what."""

    reference: Callable[[Variant], Outcome]  # the call on the CPU
    pointwise: bool = False
    values: bool = True  # not of random results
    strides: bool = True
    cancels: bool = False  # whether a pointwise function has zeros, or tails, near which its terms cancel
    precision: torch.dtype | None = None  # of the computation, if it is coarser than that of a result
    flushes: bool = False  # whether the device may take zeros for subnormal numbers

    def differences(self, want: Outcome, got: Outcome) -> Iterator[Difference]:
        """What is wrong with `got`; neither has raised."""
        for name in ("results", "gradients", "second", "storages"):
            expected, actual = getattr(want, name), getattr(got, name)
            label = {"results": "", "second": "second gradient: ", "storages": "argument: "}.get(name, "gradient: ")
            if (expected is None) != (actual is None) or len(expected or ()) != len(actual or ()):
                yield Difference(f"{label}count", f"{_count(actual)} {name}, want {_count(expected)}")
                continue
            for index, (one, other) in enumerate(zip(expected or (), actual or (), strict=True)):
                for difference in self._one(name, index, one, other):
                    yield Difference(label + difference.kind, f"{name} {index}: {difference.message}")

    def _one(self, name: str, index: int, want: Flat | float | None, got: Flat | float | None) -> Iterator[Difference]:
        if not isinstance(want, Flat) or not isinstance(got, Flat):
            if isinstance(want, Flat) or isinstance(got, Flat) or (want is None) != (got is None):
                yield Difference("count", f"{_brief(got)}, want {_brief(want)}")
            elif self.values and not (want == got or (want != want and got != got)):
                want, got = (_of_number(number) for number in (want, got) if number is not None)
                yield from self._values(name, index, want, got)
            return
        yield from _form(want, got, self.strides and name in ("results", "gradients"))
        if self.values and want.shape == got.shape and want.dtype == got.dtype and want.data != got.data:
            yield from self._values(name, index, want, got)

    def _values(self, name: str, index: int, want: Flat, got: Flat) -> Iterator[Difference]:
        expected, actual = want.values, got.values
        wrong = ~same(expected, actual)
        if want.dtype in UNITS:
            wrong &= ~near(expected.double(), actual.double(), self._tolerance(want.dtype), want.dtype)
            if wrong.any():
                wrong &= ~self._near_exact(name, index, want, got)
            if self.flushes and wrong.any():
                wrong &= ~self._near_flushed(name, index, want, got)
        if wrong.any():
            yield _described(expected, actual, wrong)

    def _near_exact(self, name: str, index: int, want: Flat, got: Flat) -> torch.Tensor:
        """Where the device is as near to the result in float64 as can be expected."""
        expected, actual = want.values.double(), got.values.double()
        tolerance = self._tolerance(want.dtype)
        right = torch.zeros(actual.shape, dtype=torch.bool)
        exact = expected if want.dtype == torch.float64 else self._exact(name, index, Variant(wide=True), want)
        if exact is None:
            return right
        right |= near(rounded(exact, want.dtype), actual, tolerance, want.dtype)
        # Infinities and signs of zeros are right or wrong, not near.
        comparable = actual.isfinite() & exact.isfinite() & ~_other_zeros(exact, actual)
        error = (expected - exact).abs()
        distance = torch.where(comparable, (actual - exact).abs(), torch.inf)
        right |= distance <= OF_CPU * error
        pointwise = self.pointwise and name in ("results", "storages")  # gradients may be sums
        exempt = want.dtype == torch.float64 or (self.cancels and want.dtype == torch.float32)
        if right.all() or (pointwise and not exempt):
            return right
        if not pointwise:
            right |= distance <= torch.maximum(OF_CPU * _largest(error), tolerance * _largest(exact))
        change = torch.zeros_like(distance)
        for number in range(1, PERTURBATIONS + 1):
            moved = self._exact(name, index, Variant(wide=True, perturbed=number), want)
            if moved is not None:
                change = torch.maximum(change, (moved - exact).abs().nan_to_num(0, 0, 0))
        if pointwise:  # Of functions with steps a rounding changes everything.
            change = torch.minimum(change, CAP[want.dtype] * exact.abs())
        return right | (distance <= OF_PERTURBED * change)

    def _near_flushed(self, name: str, index: int, want: Flat, got: Flat) -> torch.Tensor:
        """Where the device is right with zeros in place of subnormal numbers."""
        actual, tolerance = flushed(got.values).double(), self._tolerance(want.dtype)
        right = near(flushed(want.values).double(), actual, tolerance, want.dtype)
        for variant in (Variant(flushed=True), Variant(flushed=True, wide=True)):
            exact = self._exact(name, index, variant, want)
            if exact is not None:
                right |= near(flushed(exact.to(want.dtype)).double(), actual, tolerance, want.dtype)
        return right

    def _tolerance(self, dtype: torch.dtype) -> float:
        return max(UNITS[one] * EPSILON[one] for one in (dtype, self.precision or dtype))

    def _exact(self, name: str, index: int, variant: Variant, like: Flat) -> torch.Tensor | None:
        """The result in float64, or None where there is none such."""
        outcome = self.reference(variant)
        found = getattr(outcome, name) or []
        if outcome.error is not None or index >= len(found) or not isinstance(found[index], Flat):
            return None
        flat: Flat = found[index]
        return flat.values.double() if flat.shape == like.shape else None


def _form(want: Flat, got: Flat, strides: bool) -> Iterator[Difference]:
    if want.shape != got.shape:
        yield Difference("shape", f"shape {got.shape}, want {want.shape}")
    elif strides and 0 not in want.shape:
        pairs = zip(want.shape, want.strides, got.strides, strict=True)
        if any(one != other for size, one, other in pairs if size != 1):
            yield Difference("strides", f"strides {got.strides}, want {want.strides} (shape {want.shape})")
    if want.dtype != got.dtype:
        yield Difference("dtype", f"{got.dtype}, want {want.dtype}")


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where numbers are the same: NaN and NaN, zeros of the same sign."""
    equal = one == other
    if one.is_floating_point():
        equal &= torch.signbit(one) == torch.signbit(other)
        equal |= one.isnan() & other.isnan()
    return equal


def near(expected: torch.Tensor, actual: torch.Tensor, tolerance: float, dtype: torch.dtype) -> torch.Tensor:
    """Where float64 numbers differ by no more than a relative tolerance, or two of the dtype's smallest numbers."""
    smallest = torch.finfo(dtype).tiny * torch.finfo(dtype).eps
    close = (expected - actual).abs() <= expected.abs() * tolerance + 2 * smallest
    return same(expected, actual) | (close & expected.isfinite() & ~_other_zeros(expected, actual))


def _other_zeros(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where one number or both are zero, and their signs differ."""
    return ((one == 0) | (other == 0)) & (one.signbit() != other.signbit())


def rounded(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is beyond the dtype's range is infinite, what is nearest to zero is zero."""
    there = exact.to(dtype).double()
    return torch.where(there.isinf() | (there == 0), there, exact)


def _largest(numbers: torch.Tensor) -> torch.Tensor:
    """The largest of the finite numbers, which may be none."""
    return numbers.abs().nan_to_num(0, 0, 0).amax(0)


def _described(expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor) -> Difference:
    position = int(wrong.nonzero()[0])
    one, other = expected[wrong], actual[wrong]
    kind = "value"
    if one.is_floating_point():
        tiny = torch.finfo(one.dtype).tiny
        if ((one == 0) & (other == 0)).all():
            kind = "zero sign"
        elif (one.isnan() != other.isnan()).any():
            kind = "nan"
        elif (one.isinf() != other.isinf()).any():
            kind = "infinity"
        elif ((one.abs() < tiny) & (other.abs() < tiny)).all():
            kind = "subnormal"
    count = f"{int(wrong.sum())} of {wrong.numel()}"
    return Difference(kind, f"{other[0].item()!r}, want {one[0].item()!r} at {position}; {count} elements")


def _of_number(number: float) -> Flat:
    value = torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else torch.int64)
    return Flat(value.dtype, (), (), "", value.reshape(1).view(torch.uint8).numpy().tobytes())


def _count(values: object) -> int:
    return len(values) if isinstance(values, list) else 0


def _brief(value: object) -> str:
    return f"a tensor of {value.shape}" if isinstance(value, Flat) else str(value)
