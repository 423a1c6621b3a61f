"""Suite `linalg`: decompositions of one large matrix and of many small ones, in float32."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_dml.cli.bench.measure import Bench, Row

_Work = Callable[[torch.Tensor], object]


def run(bench: Bench) -> list[Row]:
    """Measure each. Operations are those of the textbook algorithms, whatever an implementation
    does.
    """
    large, middle, count, small = (64, 16, 8, 8) if bench.quick else (4096, 512, 10_000, 32)
    generator = torch.Generator().manual_seed(0)
    rows, cases = [], []
    for sizes in ((large, large), (count, small, small)):
        n = sizes[-1]
        general = torch.randn(sizes, generator=generator)
        positive = general @ general.mT / n + torch.eye(n)
        # Operations for a matrix of n rows, divided by n^3.
        for name, matrix, operations, work in (
            ("cholesky", positive, 1 / 3, torch.linalg.cholesky),
            ("lu_factor", general, 2 / 3, torch.linalg.lu_factor),
            ("qr", general, 4 / 3, torch.linalg.qr),
            ("solve", general, 8 / 3, _solve),
        ):
            rows.append(Row(f"{name} of {_named(sizes)}", "GFLOP/s", more_is_better=True, bound="float32"))
            cases.append((matrix, operations * matrix.numel() * n / 1e9, work))
    general = torch.randn(middle, middle, generator=generator)
    symmetric = general + general.T
    for name, matrix, work in (
        ("svd", general, torch.linalg.svd),
        ("svdvals", general, torch.linalg.svdvals),
        ("eigh", symmetric, torch.linalg.eigh),
        ("eigvalsh", symmetric, torch.linalg.eigvalsh),
    ):
        rows.append(Row(f"{name} of {_named(matrix.shape)}", "matrices/s", more_is_better=True))
        cases.append((matrix, 1.0, work))
    for device in bench.devices:
        for row, (matrix, amount, work) in zip(rows, cases, strict=True):
            bench.take(row, device, _on(matrix.to(device), work), amount)
    return rows


def _on(matrix: torch.Tensor, work: _Work) -> Callable[[], object]:
    return lambda: work(matrix)


def _solve(matrix: torch.Tensor) -> object:
    """Solve for as many right-hand sides as there are rows."""
    return torch.linalg.solve(matrix, matrix.mT)


def _named(sizes: tuple[int, ...] | torch.Size) -> str:
    *batch, m, n = sizes
    return "".join(f"{count:,} of " for count in batch) + f"{m:,}x{n:,}"
