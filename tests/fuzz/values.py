"""The elements of tensors, and scalar arguments."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
# Relative frequencies of the dtypes: floats more often than integers.
WEIGHTS = (6, 3, 4, 3, 3, 2, 1, 1, 1, 2)


# Whether calls are made with complex numbers instead of the ten real dtypes.
_complex = ContextVar("complex", default=False)


@contextmanager
def complex_numbers() -> Iterator[None]:
    """Most tensors that are created in this context are complex, with numbers whose functions are
    bounded.
    """
    token = _complex.set(True)
    try:
        yield
    finally:
        _complex.reset(token)


def are_complex() -> bool:
    """Whether `complex_numbers` are made."""
    return _complex.get()


def dtype(rng: random.Random) -> torch.dtype:
    """One of the ten dtypes."""
    if are_complex():
        return rng.choices((*COMPLEX, torch.float32, torch.float64, torch.int64, torch.bool), (12, 5, 1, 1, 1, 1))[0]
    return rng.choices(DTYPES, WEIGHTS)[0]


def other_dtype(rng: random.Random, one: torch.dtype) -> torch.dtype:
    """Mostly the same dtype."""
    return one if rng.random() < 0.75 else dtype(rng)


def special(dtype: torch.dtype) -> list[float]:
    """The numbers of a dtype for which functions are most often wrong."""
    if dtype == torch.bool:
        return [0, 1]
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        extreme = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2]
        return [number for number in (0, 1, -1, 2, -2, 7, *extreme) if number >= limits.min]
    limit = torch.finfo(dtype)
    smallest = limit.tiny * limit.eps
    positive = [
        *(0.0, smallest, 3 * smallest, limit.tiny / 2, limit.tiny, limit.eps, 0.5, 1.0, 1 + limit.eps, 1.5, 2.0),
        *(math.pi, 10.0, 2 / limit.eps, limit.max / 2, limit.max, math.inf),
    ]
    return [*positive, *(-number for number in positive), math.nan]


def flushed(numbers: torch.Tensor) -> torch.Tensor:
    """A copy with subnormal numbers replaced by zeros of the same sign; those of float16 are normal
    in float32, in which it is computed.
    """
    if numbers.dtype == torch.float16 or not numbers.is_floating_point():
        return numbers.clone()
    return torch.where(numbers.abs() < torch.finfo(numbers.dtype).tiny, numbers * 0, numbers)


def _normal(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(count, dtype=torch.float64, generator=draw) * rng.choice((1, 1, 8))
    return torch.randint(-9 if dtype.is_signed else 0, 10, (count,), generator=draw)


def _unit(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    return torch.rand(count, dtype=torch.float64, generator=draw)


def _whole(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    return torch.randint(-3 if dtype.is_signed else 0, 4, (count,), generator=draw)


def _wide(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    if not dtype.is_floating_point:
        bits = torch.iinfo(dtype).bits
        high = torch.randint(-(2**31), 2**31, (count,), generator=draw) << 32
        return (high + torch.randint(0, 2**32, (count,), generator=draw)) >> (64 - bits)
    least, most = (math.log2(number) for number in (torch.finfo(dtype).tiny, torch.finfo(dtype).max))
    exponents = torch.rand(count, dtype=torch.float64, generator=draw) * (most - least) + least
    signs = torch.randint(0, 2, (count,), generator=draw) * 2 - 1
    return signs * exponents.exp2().clamp_max(torch.finfo(dtype).max)


def _special(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    choices = torch.tensor(special(dtype), dtype=wide)
    return choices[torch.randint(0, len(choices), (count,), generator=draw)]


def _sprinkled(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    mask = torch.rand(count, generator=draw) < 0.1
    return torch.where(mask, _special(rng, count, dtype, draw), _normal(rng, count, dtype, draw))


def _odd(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    found = _normal(rng, count, dtype, draw)
    if dtype.is_floating_point:
        odd = torch.tensor([math.inf, -math.inf, math.nan, -0.0, 0.0, 1.0], dtype=torch.float64)
        chosen = odd[torch.randint(0, len(odd) if rng.random() < 0.5 else 2, (count,), generator=draw)]
        found = torch.where(torch.rand(count, generator=draw) < 0.1, chosen, found)
    return found


def _constant(rng: random.Random, count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    return _special(rng, 1, dtype, draw).expand(count)


PALETTES: dict[str, tuple[int, Callable[..., torch.Tensor]]] = {
    "normal": (9, _normal),
    "unit": (3, _unit),
    "whole": (4, _whole),
    "wide": (3, _wide),
    "special": (3, _special),
    "sprinkled": (5, _sprinkled),
    "odd": (1, _odd),
    "constant": (1, _constant),
}
# Numbers whose sums and products do not overflow, and so do not depend on the order.
BOUNDED = ("normal", "normal", "unit", "whole", "odd")
# For complex numbers, for which infinities and NaN depend on the implementation: C99's annex G
# leaves much unspecified.
COMPLEX_BOUNDED = ("normal", "normal", "unit", "whole")


def palette(rng: random.Random, bounded: bool = False) -> str:
    """The name of a way to choose numbers; with `bounded` one whose numbers can be summed."""
    if are_complex():
        return rng.choice(COMPLEX_BOUNDED)
    if bounded:
        return rng.choice(BOUNDED)
    return rng.choices(list(PALETTES), [weight for weight, _ in PALETTES.values()])[0]


def numbers(rng: random.Random, count: int, dtype: torch.dtype, palette: str) -> torch.Tensor:
    """`count` numbers."""
    draw = torch.Generator().manual_seed(rng.getrandbits(62))
    if dtype == torch.bool:
        return torch.rand(count, generator=draw) < rng.choice((0.5, 0.5, 0.05, 1.0))
    if dtype.is_complex:
        parts = [PALETTES[palette][1](rng, count, dtype.to_real(), draw).double() for _ in range(2)]
        return torch.complex(parts[0], parts[1]).to(dtype)
    return PALETTES[palette][1](rng, count, dtype, draw).to(dtype)


def scalar(rng: random.Random, dtype: torch.dtype) -> float | complex:
    """A Python number: often in the dtype's range, sometimes of another kind."""
    kind = rng.random()
    if dtype.is_complex and kind < 0.5:
        return complex(rng.choice((0.5, 2.0, -1.5)), rng.choice((0.25, -3.0, 1.0)))
    if are_complex():
        return rng.choice((0, 1, 2, 3, -1, 0.5, -2.25, rng.uniform(-4, 4)))
    if kind < 0.06:
        return rng.random() < 0.5
    if (dtype.is_floating_point and kind < 0.75) or kind < 0.2:
        return rng.choice([0.5, 1.5, -2.25, 3.0, 0.1, rng.uniform(-4, 4), rng.choice(special(torch.float32))])
    return rng.choice([0, 1, 2, 3, -1, -7, rng.choice((100, 127, 255, -128, 2**31 - 1))])
