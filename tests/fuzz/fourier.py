"""Calls of Fourier transforms: torch.fft, the operators of which it is composed, stft and istft."""

from __future__ import annotations

import random
from typing import Any

import torch

from ..support.names import words
from . import tensors, values
from .calls import BACKWARD, DOUBLE, FORWARD, Call

# Lengths for one pass, for several, with large primes, and powers of two.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 30, 31, 32, 37, 49, 60, 64, 97, 100, 121, 128, 256, 360, 509, 1000, 1024)
LONG = (2048, 2187, 4096, 4099, 6000, 8192, 10007, 16384)
ONE = words("fft ifft rfft irfft hfft ihfft")
SEVERAL = words("fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn")
SHIFTS = words("fftshift ifftshift")
NAMES = (
    *(f"torch.fft.{name}" for name in (*ONE, *SEVERAL, *SHIFTS)),
    *(f"torch._fft_{name}" for name in words("c2c r2c c2r")),
    "torch.stft",
    "torch.istft",
)
# Transforms of real numbers.
OF_REALS = words("rfft rfft2 rfftn ihfft ihfft2 ihfftn r2c")
NORMS = (None, "forward", "backward", "ortho")


def make(rng: random.Random, name: str) -> Call:
    """A call of one of these functions."""
    stage = rng.choices((FORWARD, BACKWARD, DOUBLE), (6, 3, 1))[0]
    base = name.rpartition(".")[2].removeprefix("_fft_")
    maker = {"stft": _stft, "istft": _istft}.get(base, _transform)
    args, kwargs = maker(rng, base)
    call = Call(name, args, kwargs, stage, rng.getrandbits(31))
    if stage != FORWARD:
        args[0].requires_grad_()
    return call


def _numbers(rng: random.Random, sizes: tensors.Shape, complex_too: bool) -> torch.Tensor:
    dtype = rng.choice((torch.float32, torch.float32, torch.float64))
    if complex_too and rng.random() < 0.85:
        dtype = dtype.to_complex()
    return tensors.tensor(rng, sizes, dtype, rng.choice(values.COMPLEX_BOUNDED))


def _shape(rng: random.Random, least: int) -> tensors.Shape:
    rank = rng.choice((1, 1, 2, 2, 3, 4))
    if rank == 1 or (rank == 2 and rng.random() < 0.1):
        length = rng.choice(LONG) if rng.random() < 0.1 else rng.choice(LENGTHS)
        sizes: tensors.Shape = (*[rng.choice((1, 2, 3))] * (rank - 1), length)
    else:
        sizes = tuple(rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 16, 37)) for _ in range(rank))
    if rng.random() < 0.03:
        sizes = tensors.replaced(sizes, rng.randrange(len(sizes)), 0)
    return (*[rng.choice((2, 3))] * max(least - len(sizes), 0), *sizes)


def _length(rng: random.Random, size: int) -> int | None:
    """The size to which a dimension is cut or padded."""
    return rng.choice((None, None, size, max(size - 1, 1), size + 3, rng.choice(LENGTHS), -1 if size else 1))


def _transform(rng: random.Random, base: str) -> tuple[list[Any], dict[str, Any]]:
    x = _numbers(rng, _shape(rng, 2 if base.endswith("2") else 1), base not in OF_REALS)
    several = rng.sample(range(x.dim()), rng.randint(1, min(x.dim(), 3)))
    dims = [dim - x.dim() if rng.random() < 0.5 else dim for dim in several]
    if base in ("c2c", "r2c", "c2r"):
        # The CPU's operators do not check what torch.fft checks.
        x = x if x.numel() else _numbers(rng, (6, 5), base != "r2c")
        dims = sorted({dim % x.dim() for dim in dims})
        if base != "r2c" and not x.is_complex():
            x = torch.complex(x, x)
        last: Any = rng.random() < 0.5
        if base == "c2r":
            size = x.shape[dims[-1]]
            last = max(2 * (size - 1) + rng.choice((0, 1)), 1)
        return [x, dims, rng.choice((0, 1, 2)), last], {}
    if base in SHIFTS:
        return [x], {"dim": rng.choice((None, dims, dims[0]))}
    if base in ONE:
        return [x], {"n": _length(rng, x.shape[dims[0]]), "dim": dims[0], "norm": rng.choice(NORMS)}
    if base.endswith("2"):
        dims = (dims * 2)[:2] if rng.random() < 0.03 else rng.sample(range(x.dim()), 2)
    lengths = [rng.choice((-1, x.shape[dim], x.shape[dim] + 1, rng.choice((2, 5, 8)))) for dim in dims]
    given = rng.choice((None, lengths)) if rng.random() < 0.9 else lengths[:1]
    named = base.endswith("2") or given is not None or rng.random() < 0.8
    return [x], {"s": given, "dim": dims if named else None, "norm": rng.choice(NORMS)}


def _window(rng: random.Random, size: int, like: torch.Tensor) -> torch.Tensor | None:
    real = like.dtype.to_real()
    return rng.choice((None, torch.hann_window(size, dtype=real), torch.rand(size, dtype=real) * 0.5 + 0.5))


def _stft(rng: random.Random, base: str) -> tuple[list[Any], dict[str, Any]]:
    size = rng.choice((4, 7, 16, 25, 64))
    length = size + rng.choice((1, 10, 33, 100))
    x = _numbers(rng, rng.choice(((length,), (2, length))), True)
    torch.manual_seed(rng.getrandbits(31))
    inner = rng.choice((size, max(size // 2, 1)))
    return [x], {
        "n_fft": size,
        "hop_length": rng.choice((None, 1, 3, max(size // 2, 1))),
        "win_length": inner,
        "window": _window(rng, inner, x),
        "center": rng.random() < 0.7,
        "pad_mode": rng.choice(("reflect", "constant", "replicate")),
        "normalized": rng.random() < 0.4,
        "onesided": None if x.is_complex() else rng.choice((None, True, False)),
        "return_complex": True,
    }


def _istft(rng: random.Random, base: str) -> tuple[list[Any], dict[str, Any]]:
    size = rng.choice((4, 8, 16, 30))
    onesided = rng.random() < 0.6
    frames = rng.choice((3, 5, 9))
    sizes = (size // 2 + 1 if onesided else size, frames)
    x = _numbers(rng, rng.choice((sizes, (2, *sizes))), False).to(
        torch.float32 if rng.random() < 0.7 else torch.float64
    )
    x = torch.complex(x, x.flip(-1))
    torch.manual_seed(rng.getrandbits(31))
    hop = max(size // 4, 1)
    window = rng.choice((None, torch.rand(size, dtype=x.dtype.to_real()) * 0.5 + 0.5))
    return [x], {
        "n_fft": size,
        "hop_length": hop,
        "window": window,
        "center": rng.random() < 0.8,
        "normalized": rng.random() < 0.4,
        "onesided": onesided,
        "length": rng.choice((None, hop * (frames - 1))),
        "return_complex": not onesided and rng.random() < 0.5,
    }
