"""Matrices for tests of linear algebra, and the comparison of residuals."""

from __future__ import annotations

import mpmath
import torch

from tests.support.dtypes import dtypes

REALS = dtypes(torch.float32, torch.float64)
COMPLEXES = dtypes(torch.complex64, torch.complex128)

# Empty, one element, within a block, at its edge, several blocks, batches of those.
SQUARES = [(0, 0), (1, 1), (7, 7), (32, 32), (33, 33), (130, 130), (0, 3, 3), (2, 0, 0), (3, 5, 5), (2, 3, 40, 40)]

# Around the edges of the blocks and panels of decompositions, and batches that share workgroups or
# need many.
EDGES = [(1, 1), (2, 2), (3, 7, 7), (8, 8), (500, 8, 8), (9, 9), (3, 16, 16), (17, 17), (3, 31, 31), (500, 32, 32)]
EDGES += [(3, 33, 33), (63, 63), (2, 64, 64), (65, 65), (129, 129), (300, 300), (600, 600)]


def general(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    """Matrices of normally distributed numbers."""
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)), dtype=dtype)


def wide(x: torch.Tensor) -> torch.Tensor:
    """The same numbers in float64 or complex128."""
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def positive_definite(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    """Symmetric or Hermitian positive-definite matrices."""
    x = general(*sizes, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    return (x @ x.mH / max(sizes[-1], 1) + 0.1 * torch.eye(sizes[-1], dtype=torch.float64)).to(dtype)


def triangular(*sizes: int, upper: bool, dtype: torch.dtype) -> torch.Tensor:
    """Well-conditioned triangular matrices, with NaN where nothing may be read."""
    x = general(*sizes, dtype=dtype) / max(sizes[-1], 1) + 2 * torch.eye(sizes[-1], dtype=dtype)
    x = x.triu() if upper else x.tril()
    beyond = torch.ones_like(x, dtype=torch.bool)
    return x.masked_fill(beyond.tril(-1) if upper else beyond.triu(1), torch.nan)


def singular_values(a: torch.Tensor) -> torch.Tensor:
    """The singular values of real matrices in float64, descending: those of float64 matrices by
    mpmath, since LAPACK's may be wrong by more than is tested.
    """
    if a.dtype != torch.float64:
        return torch.linalg.svdvals(a.double())
    with mpmath.workprec(80):
        values = [
            [float(x) for x in mpmath.svd_r(mpmath.matrix(m.tolist()), compute_uv=False)]
            for m in a.reshape(-1, *a.shape[-2:])
        ]
    return torch.tensor(values, dtype=torch.float64).reshape(*a.shape[:-2], -1)


def assert_no_worse(
    error: torch.Tensor, of_cpu: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype, roundings: float = 4
) -> None:
    """Assert that a residual (both in 64-bit floats) is at most twice the CPU's, or `roundings`
    roundings of `scale`.
    """
    if error.numel():
        norm = lambda x: torch.linalg.vector_norm(wide(x), dim=(-2, -1))  # noqa: E731
        least = roundings * torch.finfo(dtype).eps * norm(scale)
        bound = torch.maximum(2 * norm(of_cpu), least)
        assert (norm(error) <= bound).all(), (norm(error) / bound).max()
