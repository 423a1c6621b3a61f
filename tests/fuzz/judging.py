"""Whether the device's outcome agrees with the CPU's.

Shape, dtype, strides, and which numbers are infinite, NaN or negative zeros, always count. Finite
floats are right if they are within a few units in the last place of the CPU's result or of the
result in float64; if the CPU's own error is larger, within a multiple of it; and if the operator is
not pointwise, within units of the largest element, more of them for longer sums, or a multiple of
the effect of rounding the inputs. That multiple also applies to pointwise operators in float64, for
which there is no better reference than the CPU. Complex numbers are compared in the same way by
their distances in the plane, pointwise ones also within the effect of rounding the inputs; a number
that is not finite has to be so in both, in either part. Random numbers are compared by their
distribution alone. The distance of the CPU's float32 from float64 is the measure of the accuracy of
sums in both. Zero is right for any number that is close enough to it; the sign of a zero that
results from cancellation is not compared, nor that of any zero in sums of products. For a device
that may flush subnormal numbers, an element is also right if it is so with zeros in place of
subnormal numbers: in the inputs, in the result, and in intermediate results, as when the CPU
flushes them itself (flushing.py); but a finite result must not become infinite or NaN that way.
Integers and bools have to be equal. Strides of dimensions of size 1 are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import torch

from .calls import Variant
from .outcome import Flat, Outcome
from .values import flushed

# Maximum distances from the reference, in units of a dtype's rounding; 2.0 is one unit in the last
# place.
UNITS = {torch.float64: 16.0, torch.float32: 8.0, torch.float16: 2.0, torch.bfloat16: 2.0}
EPSILON = {dtype: torch.finfo(dtype).eps / 2 for dtype in UNITS}
# Allowed multiples of the CPU's own error, and of the effect of rounding the inputs.
OF_CPU, OF_PERTURBED = 4.0, 16.0
PERTURBATIONS = 4
# The ratio of float64's errors to float32's.
NARROW = EPSILON[torch.float64] / EPSILON[torch.float32]
# Probability at which samples are considered to be from two distributions.
CHANCE = 1e-8
# Numbers smaller than this, relative to other gradients in float64, are rounding errors of terms
# that cancel.
VANISHED = 2.0**-40
# Upper bound of the effect of rounding the input of a pointwise function, relative to the result,
# or to the function nearby if terms cancel.
CAP = {torch.float64: 2.0**-40, torch.float32: 2.0**-16}


@dataclass(frozen=True)
class Difference:
    """A difference: its kind, by which differences are grouped, and a message."""

    kind: str
    message: str


@dataclass(frozen=True)
class Rules:
    """What is compared, and how."""

    reference: Callable[[Variant], Outcome]  # the call on the CPU
    pointwise: bool = False
    values: bool = True  # whether values are compared; not for random results
    strides: bool = True
    cancels: bool = False  # whether a pointwise function has zeros, or tails, near which its terms cancel
    chooses: bool = False  # whether it selects elements, so that a rounding of the inputs may change everything
    sums: bool = False  # whether elements are sums of products, which may start with zero or with the first product
    multiples: bool = False  # whether it is the sum of a term and a multiple of another
    precision: torch.dtype | None = None  # of the computation, if it is lower than that of a result
    zero_signs: bool = True  # whether the signs of zeros are compared
    flushes: bool = False  # whether the device may flush subnormal numbers to zero
    terms: int = 1  # number of terms of the longest sums
    drawn: bool = False  # whether results are random numbers, of which only the distribution is compared

    def differences(self, want: Outcome, got: Outcome) -> Iterator[Difference]:
        """The differences of `got`; neither outcome is an error."""
        for name in ("results", "gradients", "second", "storages"):
            expected, actual = getattr(want, name), getattr(got, name)
            label = {"results": "", "second": "second gradient: ", "storages": "argument: "}.get(name, "gradient: ")
            if name == "storages" and not self.strides and _lie_otherwise(want, got):
                continue  # Its bytes are the results' elements in another order.
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
        if self.drawn:
            yield from _drawn(want, got)
            return
        if want.dtype.is_complex:
            yield from self._complex_values(name, index, want, got)
            return
        expected, actual = self._signed(want.values), self._signed(got.values)
        wrong = ~same(expected, actual)
        if want.dtype in UNITS:
            wrong &= ~near(expected.double(), actual.double(), self._tolerance(want.dtype), self._smallest(want.dtype))
            if wrong.any():
                wrong &= ~self._near_exact(name, index, want, got)
            if self.flushes and wrong.any():
                wrong &= ~self._near_flushed(name, index, want, got)
        yield from _described(expected, actual, wrong)

    def _complex_values(self, name: str, index: int, want: Flat, got: Flat) -> Iterator[Difference]:
        expected, actual = want.values.to(torch.complex128), got.values.to(torch.complex128)
        wide = want.dtype == torch.complex128
        exact = expected if wide else self._exact(name, index, Variant(wide=True), want)
        exact = expected if exact is None else exact
        finite = _finite(expected) & _finite(actual) & _finite(exact)
        distance = torch.where(finite, (actual - exact).abs(), torch.inf)
        error = torch.where(finite, (expected - exact).abs(), 0.0)
        unit = torch.float64 if wide else torch.float32
        tolerance = UNITS[unit] * EPSILON[unit]
        right = (distance <= tolerance * exact.abs() + 2 * self._smallest(unit)) | (distance <= OF_CPU * error)
        # Which part of a non-finite number is NaN and which infinite depends on the implementation.
        right |= ~_finite(actual) & (~_finite(expected) | ~_finite(exact))
        pointwise = self.pointwise and name in ("results", "storages")
        if not pointwise and not bool(right.all()):
            roundings = math.sqrt(self.terms) * EPSILON[unit] * (2 if wide else 1)
            own = _largest(torch.where(finite, exact.abs(), 0.0))
            right |= distance <= torch.maximum(OF_CPU * _largest(error), max(tolerance, roundings) * own)
        if not bool(right.all()):
            change, inexact = self._changes(name, index, exact, want)
            right |= distance <= OF_PERTURBED * change
            if not pointwise:
                right |= distance <= OF_CPU * _largest(inexact)
        for at in (~right).nonzero()[:1].flatten().tolist():
            kind = "value" if bool(_finite(actual[at]) & _finite(expected[at])) else "infinity"
            numbers = f"{actual[at].item()!r}, want {expected[at].item()!r} at {at}"
            yield Difference(kind, f"{numbers}; {int((~right).sum())} of {right.numel()} elements")

    def _near_exact(self, name: str, index: int, want: Flat, got: Flat) -> torch.Tensor:
        """Where the device is as close to the result in float64 as can be expected."""
        expected, actual = (self._signed(flat.values.double()) for flat in (want, got))
        tolerance = self._tolerance(want.dtype)
        right = torch.zeros(actual.shape, dtype=torch.bool)
        exact = expected if want.dtype == torch.float64 else self._exact(name, index, Variant(wide=True), want)
        if exact is None:
            return right
        right |= near(rounded(exact, want.dtype), actual, tolerance, self._smallest(want.dtype))
        pointwise = self.pointwise and name in ("results", "storages")  # gradients may be sums
        # Infinities and signs of zeros are right or wrong, not close; a sum near zero may have
        # either sign.
        other_zeros = _other_zeros(exact, actual) if pointwise else _other_zeros(exact, actual) & (exact == actual)
        comparable = actual.isfinite() & exact.isfinite() & ~other_zeros
        error = (expected - exact).abs()
        distance = torch.where(comparable, (actual - exact).abs(), torch.inf)
        right |= distance <= OF_CPU * error
        exempt = want.dtype == torch.float64 or self.multiples or (self.cancels and want.dtype == torch.float32)
        if right.all() or (pointwise and not exempt):
            return right
        if not pointwise:
            # If the CPU's partial sums overflow, the device's may overflow in other elements: it
            # depends on the order of terms.
            large = exact.isfinite() & (exact.abs() >= torch.finfo(want.dtype).max / (4 * self.terms))
            right |= large & ~actual.isfinite() & (large & ~expected.isfinite()).any()
            # A sequential sum has an error of as many roundings as the root of its number of terms;
            # so has the float64 reference.
            roundings = math.sqrt(self.terms) * min(EPSILON[want.dtype], EPSILON[torch.float32])
            roundings *= 2 if want.dtype == torch.float64 else 1
            right |= distance <= torch.maximum(
                OF_CPU * _largest(error), max(tolerance, roundings) * self._scale(name, exact)
            )
        if self.chooses:
            return right
        change, inexact = self._changes(name, index, exact, want)
        if pointwise and self.multiples:  # For 16-bit floats, the sum is in float32.
            change = change * min(1.0, EPSILON[torch.float32] / EPSILON[want.dtype])
        elif pointwise:  # In functions with steps a rounding changes everything.
            cap = max(CAP.get(dtype, CAP[torch.float32]) for dtype in (want.dtype, self.precision or want.dtype))
            size = self._amplitude(name, index, exact, want) if self.cancels else exact.abs()
            change = torch.minimum(change, cap * size)
        else:
            right |= distance <= OF_CPU * _largest(inexact)
            # A zero that a rounding changes is the result of cancellation, and its sign is not
            # compared.
            right |= (actual == 0) & (exact == 0) & ((change > 0) | self.sums)
        return right | (distance <= OF_PERTURBED * change)

    def _changes(self, name: str, index: int, exact: torch.Tensor, want: Flat) -> tuple[torch.Tensor, torch.Tensor]:
        """The largest effect of rounding the inputs, and the allowed error of float32, or of
        float64 for its results.
        """
        change, inexact = torch.zeros_like(exact.abs()), torch.zeros_like(exact.abs())
        for number in range(1, PERTURBATIONS + 1):
            moved = self._exact(name, index, Variant(wide=True, perturbed=number), want)
            if moved is not None:
                change = torch.maximum(change, (moved - exact).abs().nan_to_num(0, 0, 0))
            narrow = self._exact(name, index, Variant(narrow=True, perturbed=number), want)
            if narrow is not None:
                inexact = torch.maximum(inexact, (narrow - exact).abs().nan_to_num(0, 0, 0))
        if want.dtype not in (torch.float64, torch.complex128):
            return change, inexact
        return torch.maximum(change, inexact * NARROW), inexact * NARROW

    def _amplitude(self, name: str, index: int, exact: torch.Tensor, want: Flat) -> torch.Tensor:
        """The size of a function near its arguments: where it vanishes, terms of that size
        cancel.
        """
        size = exact.abs()
        for number in range(1, PERTURBATIONS + 1):
            moved = self._exact(name, index, Variant(wide=True, perturbed=number, coarse=True), want)
            if moved is not None:
                size = torch.maximum(size, moved.abs().nan_to_num(0, 0, 0))
        return size

    def _scale(self, name: str, exact: torch.Tensor) -> torch.Tensor:
        """The largest element; for gradients that vanish because all terms cancel, that of the
        other gradients.
        """
        own = _largest(exact)
        if name not in ("gradients", "second"):
            return own
        found = getattr(self.reference(Variant(wide=True)), name) or []
        others = [_largest(flat.values.abs().double()) for flat in found if isinstance(flat, Flat) and flat.data]
        scale = max([own, *others])
        return scale if own <= VANISHED * scale else own

    def _near_flushed(self, name: str, index: int, want: Flat, got: Flat) -> torch.Tensor:
        """Where the device is right with zeros in place of subnormal numbers."""
        actual, tolerance = self._signed(flushed(got.values).double()), self._tolerance(want.dtype)
        right = near(self._signed(flushed(want.values).double()), actual, tolerance, self._smallest(want.dtype))

        def agrees(variant: Variant) -> torch.Tensor:
            exact = self._exact(name, index, variant, want)
            if exact is None:
                return torch.zeros_like(right)
            return near(
                self._signed(flushed(exact.to(want.dtype)).double()), actual, tolerance, self._smallest(want.dtype)
            )

        for variant in (Variant(flushed=True), Variant(flushed=True, wide=True)):
            right |= agrees(variant)
        # A kernel must not return an infinity or NaN because of numbers that it flushes itself.
        composed = not self.pointwise or name in ("gradients", "second")
        for inputs, sparing in product((False, True), repeat=2):
            right |= agrees(Variant(flushed=inputs, flushing=True, sparing=sparing)) & (composed | actual.isfinite())
        # The last step may lose up to the smallest normal number.
        expected = self._signed(want.values.double())
        if want.dtype != torch.float16:
            off = (actual - expected).abs() < torch.finfo(want.dtype).tiny
            right |= off & ((actual != 0) | (expected != 0))
        return right

    def _tolerance(self, dtype: torch.dtype) -> float:
        return max(UNITS[one] * EPSILON[one] for one in (dtype.to_real(), (self.precision or dtype).to_real()))

    def _smallest(self, dtype: torch.dtype) -> float:
        """The smallest normal number of the dtype, or of the dtype of the computation if that is
        larger.
        """
        return max(torch.finfo(one).tiny * torch.finfo(one).eps for one in (dtype, self.precision or dtype))

    def _exact(self, name: str, index: int, variant: Variant, like: Flat) -> torch.Tensor | None:
        """The result in float64; None if it does not exist."""
        outcome = self.reference(variant)
        found = getattr(outcome, name) or []
        if outcome.error is not None or index >= len(found) or not isinstance(found[index], Flat):
            return None
        flat: Flat = found[index]
        wide = flat.values.to(torch.complex128 if flat.dtype.is_complex else torch.float64)
        return (
            self._signed(wide) if flat.shape == like.shape and flat.dtype.is_complex == like.dtype.is_complex else None
        )

    def _signed(self, numbers: torch.Tensor) -> torch.Tensor:
        """The numbers, with the signs of zeros if those are compared."""
        return numbers if self.zero_signs or not numbers.is_floating_point() else numbers + 0


def _finite(numbers: torch.Tensor) -> torch.Tensor:
    """Where both parts of complex numbers are finite."""
    return numbers.real.isfinite() & numbers.imag.isfinite()


def _drawn(want: Flat, got: Flat) -> Iterator[Difference]:
    """Whether columns of samples have the same distributions, by Smirnov's test."""
    one, other = (flat.values.reshape(flat.shape).double().flatten(1) for flat in (want, got))
    for column, (mine, its) in enumerate(zip(one.T, other.T, strict=True)):
        if bool(mine.isnan().all()) and bool(its.isnan().all()):
            continue
        distance, limit = smirnov(mine, its), smirnov_limit(len(mine), len(its))
        if not distance <= limit:
            means = f"means {its.mean().item():g} and {mine.mean().item():g}"
            yield Difference("distribution", f"{distance:.4f} apart, at most {limit:.4f}, {means}, of column {column}")
            return


def smirnov(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest distance between the distribution functions of two samples."""
    if bool(one.isnan().any()) or bool(other.isnan().any()):
        return math.nan
    points = torch.cat((one, other)).unique()
    below = (torch.searchsorted(sample.sort().values, points, right=True) / len(sample) for sample in (one, other))
    first, second = below
    return float((first - second).abs().max())


def smirnov_limit(one: int, other: int) -> float:
    """The distance that two samples of these sizes exceed with probability 1e-8."""
    return math.sqrt(-math.log(CHANCE / 2) / 2 * (one + other) / (one * other))


def _form(want: Flat, got: Flat, strides: bool) -> Iterator[Difference]:
    if want.shape != got.shape:
        yield Difference("shape", f"shape {got.shape}, want {want.shape}")
    elif strides and 0 not in want.shape:
        pairs = zip(want.shape, want.strides, got.strides, strict=True)
        if any(one != other for size, one, other in pairs if size != 1):
            yield Difference("strides", f"strides {got.strides}, want {want.strides} (shape {want.shape})")
    if want.dtype != got.dtype:
        yield Difference("dtype", f"{got.dtype}, want {want.dtype}")


def _lie_otherwise(want: Outcome, got: Outcome) -> bool:
    """Whether results of the same shapes have different strides."""
    pairs = zip(want.results, got.results, strict=False)
    return any(isinstance(a, Flat) and isinstance(b, Flat) and any(_form(a, b, strides=True)) for a, b in pairs)


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where numbers are the same, including NaN, and zeros with the same sign."""
    equal = one == other
    if one.is_floating_point():
        equal &= torch.signbit(one) == torch.signbit(other)
        equal |= one.isnan() & other.isnan()
    return equal


def near(expected: torch.Tensor, actual: torch.Tensor, tolerance: float, smallest: float) -> torch.Tensor:
    """Where float64 numbers differ by at most a relative tolerance, or two smallest numbers."""
    close = (expected - actual).abs() <= expected.abs() * tolerance + 2 * smallest
    return same(expected, actual) | (close & expected.isfinite() & ~_other_zeros(expected, actual))


def _other_zeros(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where at least one number is zero, and the signs differ."""
    return ((one == 0) | (other == 0)) & (one.signbit() != other.signbit())


def rounded(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to a dtype: numbers out of its range become infinite, numbers closest to zero become
    zero.
    """
    there = exact.to(dtype).double()
    return torch.where(there.isinf() | (there == 0), there, exact)


def _largest(numbers: torch.Tensor) -> torch.Tensor:
    """The largest of the finite numbers; 0 if there are none."""
    return numbers.abs().nan_to_num(0, 0, 0).amax(0)


def _described(expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor) -> Iterator[Difference]:
    """A difference for each kind among the wrong elements: the first such element, and their
    number.
    """
    kinds: dict[str, torch.Tensor] = {}
    if expected.is_floating_point():
        kinds["nan"] = expected.isnan() != actual.isnan()
        kinds["infinity"] = expected.isinf() != actual.isinf()
        tiny = torch.finfo(expected.dtype).tiny
        kinds["value"] = (expected.abs() >= tiny) | (actual.abs() >= tiny)
        kinds["subnormal"] = (expected != 0) | (actual != 0)
        kinds["zero sign"] = wrong
    else:
        kinds["value"] = wrong
    left = wrong
    for kind, members in kinds.items():
        found = left & members
        left = left & ~members
        if found.any():
            position = int(found.nonzero()[0])
            numbers = f"{actual[position].item()!r}, want {expected[position].item()!r} at {position}"
            yield Difference(kind, f"{numbers}; {int(found.sum())} of {wrong.numel()} elements")


def _of_number(number: float) -> Flat:
    value = torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else torch.int64)
    return Flat(value.dtype, (), (), "", value.reshape(1).view(torch.uint8).numpy().tobytes())


def _count(values: object) -> int:
    return len(values) if isinstance(values, list) else 0


def _brief(value: object) -> str:
    return f"a tensor of {value.shape}" if isinstance(value, Flat) else str(value)
