"""Suite `matmul`: products of matrices, their speed, and their error against float64."""

from __future__ import annotations

import itertools

import torch

from torch_dml.cli.bench.measure import Bench, Row

_SAMPLES = 256
_HALVES = (torch.float16, torch.bfloat16)


def run(bench: Bench) -> list[Row]:
    """Measure square products of growing size, their layouts, and few rows; too slow a size ends a device's series."""
    sizes = (256, 512) if bench.quick else (256, 512, 1024, 2000, 2048, 4096)
    shapes = [(torch.float32, n, n, "nn") for n in sizes]
    halves = (256,) if bench.quick else (1024, 2048, 4096)
    shapes += [(dtype, n, n, "nn") for dtype, n in itertools.product(_HALVES, halves)]
    large = halves[-1]
    shapes += [
        (dtype, large, large, layout) for dtype in (torch.float32, torch.float16) for layout in ("nt", "tn", "tt")
    ]
    shapes += [(dtype, m, large, "nt") for dtype in (torch.float32, *_HALVES) for m in (1, 16)]
    rows = []
    too_slow: set[tuple[torch.device, torch.dtype]] = set()
    for dtype, m, n, layout in shapes:
        rows += _product(bench, dtype, m, n, layout, too_slow)
    return rows


def _product(
    bench: Bench, dtype: torch.dtype, m: int, n: int, layout: str, too_slow: set[tuple[torch.device, torch.dtype]]
) -> list[Row]:
    """Measure [m, n] by [n, n]; `layout` says of each operand whether it lies transposed ("t") or not ("n")."""
    # Few rows read a matrix for little work.
    few = m * 8 < n
    kind = str(dtype).removeprefix("torch.")
    name = f"{m}x{n}x{n} {kind}" + ("" if layout == "nn" else f" {layout}")
    bound = "memory" if few else "float32" if dtype == torch.float32 else "half"
    speed = Row(name, "GB/s" if few else "TFLOP/s", more_is_better=True, bound=bound)
    error = Row(f"{name}, worst of {_SAMPLES}", "error", more_is_better=False)
    a, b = torch.randn(m, n).to(dtype), torch.randn(n, n).to(dtype)
    amount = (m * n + n * n + m * n) * dtype.itemsize / 1e9 if few else 2 * m * n * n / 1e12
    for device in bench.devices:
        if (device, dtype) in too_slow:
            continue
        x, y = (_lying(t.to(device), order) for t, order in zip((a, b), layout, strict=True))
        times = 20 if few else 1 if n > 2048 else 3
        bench.take(speed, device, lambda x=x, y=y: x @ y, amount, times)  # type: ignore[misc]
        if str(device) not in speed.values:
            too_slow.add((device, dtype))
            continue
        error.values[str(device)] = sampled_error(a, b, (x @ y).cpu())
    return [speed, error]


def _lying(matrix: torch.Tensor, order: str) -> torch.Tensor:
    return matrix.t().contiguous().t() if order == "t" else matrix


def sampled_error(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor) -> float:
    """Return the largest error of sampled elements against float64, relative to the elements' root mean square."""
    n, m = product.shape
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(n, (_SAMPLES,), generator=generator)
    j = torch.randint(m, (_SAMPLES,), generator=generator)
    exact = (a[i].double() * b[:, j].T.double()).sum(1)
    worst = (product[i, j].double() - exact).abs().max()
    return float(worst / exact.square().mean().sqrt())
