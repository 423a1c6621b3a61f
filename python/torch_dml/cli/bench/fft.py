"""Suite `fft`: Fourier transforms of complex64 and of float32: one long one, batches of short ones,
and images.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_dml.cli.bench.measure import Bench, Row

_Transform = Callable[[torch.Tensor], torch.Tensor]


def run(bench: Bench) -> list[Row]:
    """Measure transforms out of place. Bytes are those that have to be read and written at least,
    whatever an implementation does.
    """
    most = 1 << (12 if bench.quick else 24)
    sides = (16,) if bench.quick else (64, 256, 1024)
    cases: list[tuple[str, tuple[int, ...], torch.dtype, _Transform]] = []
    for power in range(10, most.bit_length(), 2):
        n = 1 << power
        cases.append((f"fft of {n:,}, {most // n:,} times", (most // n, n), torch.complex64, torch.fft.fft))
        cases.append((f"fft of {n:,}", (n,), torch.complex64, torch.fft.fft))
    for n in (1000, 1009) if bench.quick else (1000, 44_100, 10_007):
        cases.append((f"fft of {n:,}, {most // n:,} times", (most // n, n), torch.complex64, torch.fft.fft))
    for side in sides:
        count = max(most // side**2, 1)
        images = (count, side, side)
        cases.append((f"fft2 of {side:,}x{side:,}, {count:,} times", images, torch.complex64, torch.fft.fft2))
        cases.append((f"rfft2 of {side:,}x{side:,}, {count:,} times", images, torch.float32, torch.fft.rfft2))
    cases.append((f"rfft of {most:,}", (most,), torch.float32, torch.fft.rfft))
    cases.append((f"irfft to {most:,}", (most // 2 + 1,), torch.complex64, torch.fft.irfft))
    rows = [Row(name, "GB/s", more_is_better=True, bound="memory") for name, *_ in cases]
    for device in bench.devices:
        for row, (_, sizes, dtype, transform) in zip(rows, cases, strict=True):
            x = torch.randn(sizes, dtype=dtype).to(device)
            moved = x.nbytes + transform(x).nbytes
            bench.take(row, device, lambda x=x, f=transform: f(x), moved / 1e9)  # type: ignore[misc]
    return rows
