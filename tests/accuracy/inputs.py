"""The inputs of measured functions: the same on every machine."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Domain:
    """The domain of an argument.

    Half of the numbers are uniform from `usual[0]` to `usual[1]`; for the others the exponents are
    uniform, from the first of `exponents` to the last, within the dtype and the bounds.
    """

    usual: tuple[float, float] = (-10.0, 10.0)
    low: float = -math.inf
    high: float = math.inf
    exponents: tuple[int, int] = (-40, 40)
    whole: bool = False  # integers only, from the usual range


ANY = Domain()
POSITIVE = Domain(usual=(0.0, 10.0), low=0.0)
UNIT = Domain(usual=(-1.0, 1.0), low=-1.0, high=1.0, exponents=(-40, 0))
PROBABILITY = Domain(usual=(0.0, 1.0), low=0.0, high=1.0, exponents=(-40, 0))


def generator(*names: str) -> torch.Generator:
    """A generator whose numbers depend on the names alone."""
    return torch.Generator().manual_seed(zlib.crc32(" ".join(names).encode()))


def numbers(domain: Domain, dtype: torch.dtype, count: int, random: torch.Generator) -> torch.Tensor:
    """Numbers in a domain, on the CPU; numbers that rounding to the dtype moves out of it are
    replaced by its middle.
    """
    info = torch.finfo(dtype)
    low, high = domain.usual
    usual = torch.rand(count, generator=random, dtype=torch.float64) * (high - low) + low
    if domain.whole:
        return usual.round().to(dtype)
    first, last = domain.exponents
    first, last = max(first, math.ceil(math.log2(info.tiny))), min(last, math.floor(math.log2(info.max)))
    magnitudes = (torch.rand(count, generator=random, dtype=torch.float64) * (last - first) + first).exp2()
    signs = torch.where(torch.rand(count, generator=random) < 0.5, -1.0, 1.0)
    spread = magnitudes * (signs if domain.low < 0 else 1.0)
    found = torch.where(torch.arange(count) % 2 == 0, usual, spread).to(dtype)
    inside = (found >= domain.low) & (found <= domain.high)
    return torch.where(inside, found, torch.full_like(found, (low + high) / 2))


def rows(kind: str, shape: tuple[int, ...], dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """Inputs for sums and products, on the CPU.

    `normal` is the normal distribution, `wide` is it times powers of two from 2^-6 to 2^6,
    `near one` is the exponential of a twentieth of it.
    """
    found = torch.randn(shape, generator=random, dtype=torch.float64)
    if kind == "wide":
        found *= torch.randint(-6, 7, shape, generator=random).double().exp2()
    elif kind == "near one":
        found = (found * 0.05).exp()
    return found.to(dtype)
