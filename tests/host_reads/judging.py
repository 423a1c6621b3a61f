"""Whether the device's result agrees with the CPU's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..fuzz.outcome import Flat


@dataclass(frozen=True)
class Outcome:
    """The results of a call, as plain data; or its error."""

    results: tuple[Flat | float | str | None, ...] = ()
    error: str = ""  # the type of the exception
    message: str = ""


def judged(want: Outcome, got: Outcome, values: bool) -> tuple[str, str] | None:
    """What is wrong with an outcome: its kind, and a message. `values` says whether results are
    compared.
    """
    if want.error and not got.error:
        return "accepts", f"no {want.error}: {want.message[:120]}"
    if want.error != got.error:
        return ("error" if want.error else "refuses"), f"{got.error}: {got.message[:150]}, want {want.error or 'none'}"
    if not want.error and values and not alike(want.results, got.results):
        return "value", f"{brief(got.results)}, want {brief(want.results)}"
    return None


def alike(want: tuple[Any, ...], got: tuple[Any, ...]) -> bool:
    """Whether results are equal up to rounding."""
    if len(want) != len(got):
        return False
    for one, other in zip(want, got, strict=True):
        if isinstance(one, Flat) and isinstance(other, Flat):
            if one.shape != other.shape or one.dtype != other.dtype or not near(one.values, other.values):
                return False
        elif isinstance(one, float) and isinstance(other, float):
            if not near(torch.tensor(one), torch.tensor(other)):
                return False
        elif one != other:
            return False
    return True


def brief(results: tuple[Any, ...]) -> str:
    """A short description of the results."""
    shown = (
        f"{one.dtype} {one.shape} {one.values[:6].tolist()}" if isinstance(one, Flat) else repr(one) for one in results
    )
    return ", ".join(shown)[:200]


def near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether tensors of one dtype are equal up to rounding; the other suites test accuracy."""
    if one.dtype.is_complex:
        return near(torch.view_as_real(one), torch.view_as_real(other))
    if not one.dtype.is_floating_point:
        return torch.equal(one, other)
    return torch.allclose(one.double(), other.double(), rtol=0.02, atol=0.02, equal_nan=True)
