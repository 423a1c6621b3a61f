"""The errors of one subject and dtype on several devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch_dml import fallback_count

from . import exact, inputs
from .measure import Error, Exact, by_norm, in_places
from .subjects import Aggregate, Function, widened

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Tolerance: the maximum error may be `TIMES` times the larger of the CPU's and CUDA's plus `SLACK`
# units; more for a sum or a product, whose order of additions differs between devices.
SLACK = 0.5
TIMES = 1.1
SUMS = 2.0


@dataclass(frozen=True)
class Settings:
    """How much is measured, and on which devices."""

    devices: tuple[str, ...] = ("dml", "cpu")
    points: int = 20_000  # for a function, in dtypes whose reference is float64
    exact_points: int = 300  # for float64, whose reference is mpmath


@dataclass(frozen=True)
class Row:
    """Errors by device; without devices that have no kernel for the dtype."""

    name: str
    dtype: torch.dtype
    errors: dict[str, Error]
    sums: bool = False

    @property
    def is_worse(self) -> bool:
        """Whether dml's error is larger than the larger of the others', by more than the
        tolerance.
        """
        others = [error.worst for device, error in self.errors.items() if device != "dml"]
        if "dml" not in self.errors or not others:
            return False
        return self.errors["dml"].worst > max(others) * (SUMS if self.sums else TIMES) + SLACK


def measure(subject: Function | Aggregate, dtype: torch.dtype, settings: Settings) -> Row:
    """Measure a subject in a dtype on all devices."""
    trials = _aggregate(subject, dtype) if isinstance(subject, Aggregate) else _function(subject, dtype, settings)
    errors: dict[str, Error] = {}
    for device in settings.devices:
        found = []
        for arguments, reference in trials:
            got = _run(subject.run, arguments, device)
            if got is not None:
                norm = isinstance(subject, Aggregate) and subject.by_norm
                found.append((by_norm if norm else in_places)(got, reference))
        if found:
            errors[device] = Error(max(one.worst for one in found), sum(one.mean for one in found) / len(found))
    return Row(subject.name, dtype, errors, sums=isinstance(subject, Aggregate))


Trial = tuple[list[torch.Tensor], Exact]


def _function(function: Function, dtype: torch.dtype, settings: Settings) -> list[Trial]:
    wide = dtype == torch.float64 and function.exact is not None
    count = settings.exact_points if wide else settings.points
    random = inputs.generator(function.name, str(dtype))
    points = [inputs.numbers(domain, dtype, count, random) for domain in function.domains]
    if wide and function.exact is not None:
        return [(points, exact.of_function(function.exact, points))]
    # The result of nextafter depends on the dtype.
    narrow = function.run is torch.nextafter
    return [(points, Exact(function.run(*(points if narrow else [x.double() for x in points])).double()))]


def _aggregate(aggregate: Aggregate, dtype: torch.dtype) -> list[Trial]:
    random, trials = inputs.generator(aggregate.name, str(dtype)), []
    for kind in aggregate.kinds:
        arguments = [inputs.rows(kind, shape, dtype, random) for shape in aggregate.shapes]
        trials.append((arguments, exact.of_wide(widened(aggregate, arguments))))
    return trials


def _run(call: Callable[..., torch.Tensor], arguments: list[torch.Tensor], device: str) -> torch.Tensor | None:
    """The result, on the CPU; None if the device has no kernel, so that dml would fall back to the
    CPU.
    """
    before = fallback_count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(*(argument.to(device) for argument in arguments)).cpu()
        except (NotImplementedError, RuntimeError) as error:
            if "not implemented" in str(error) or isinstance(error, NotImplementedError):
                return None
            raise
    return None if fallback_count() != before else found.reshape(-1) if found.dim() == 0 else found
