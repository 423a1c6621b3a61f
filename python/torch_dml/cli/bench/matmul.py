"""Suite `matmul`: products of square float32 matrices, their speed and their error against float64."""

from __future__ import annotations

import torch

from torch_dml.cli.bench.measure import Bench, Row

_SAMPLES = 256


def run(bench: Bench) -> list[Row]:
    """Measure products of growing size; a size that takes longer than the limit ends a device's series."""
    sizes = (256, 512) if bench.quick else (256, 512, 1024, 2000, 2048, 4096)
    rows = []
    too_slow: set[torch.device] = set()
    for n in sizes:
        speed = Row(f"{n}x{n} float32", "TFLOP/s", more_is_better=True)
        error = Row(f"{n}x{n} float32, worst of {_SAMPLES}", "error", more_is_better=False)
        a, b = torch.randn(n, n), torch.randn(n, n)
        for device in bench.devices:
            if device in too_slow:
                continue
            bench.tell(f"{n}x{n} on {device}")
            x, y = a.to(device), b.to(device)
            seconds = bench.seconds(device, lambda x=x, y=y: x @ y, 1 if n > 2048 else 3)  # type: ignore[misc]
            if seconds is None:
                too_slow.add(device)
                continue
            speed.values[str(device)] = 2 * n**3 / seconds / 1e12
            error.values[str(device)] = sampled_error(a, b, (x @ y).cpu())
        rows += [speed, error]
    return rows


def sampled_error(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor) -> float:
    """Return the largest error of sampled elements against float64, relative to the elements' root mean square."""
    n, m = product.shape
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(n, (_SAMPLES,), generator=generator)
    j = torch.randint(m, (_SAMPLES,), generator=generator)
    exact = (a[i].double() * b[:, j].T.double()).sum(1)
    worst = (product[i, j].double() - exact).abs().max()
    return float(worst / exact.square().mean().sqrt())
