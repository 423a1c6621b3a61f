"""Suite `ops`: the cost of single operators."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_dml.cli.bench.measure import Bench, Row

_MIB = 1 << 20


def run(bench: Bench) -> list[Row]:
    """Measure small operators (host time), large ones (bandwidth) and reading results back to the
    host.
    """
    return [*_small(bench), *_round_trip(bench), *_big(bench)]


def _small(bench: Bench) -> list[Row]:
    times = 2_000 if bench.quick else 20_000
    host = Row(f"x + y, 16 elements, {times:,} in a row: host", "µs", more_is_better=False)
    total = Row(f"x + y, 16 elements, {times:,} in a row: total", "µs", more_is_better=False)
    for device in bench.devices:
        bench.tell(f"x + y on {device}")
        x, y = torch.rand(16).to(device), torch.rand(16).to(device)
        taken = bench.host_and_total(device, lambda x=x, y=y: x + y, times)  # type: ignore[misc]
        if taken:
            host.values[str(device)], total.values[str(device)] = (seconds * 1e6 for seconds in taken)
    return [host, total]


def _round_trip(bench: Bench) -> list[Row]:
    row = Row("(x + 1).item()", "µs", more_is_better=False)
    for device in bench.devices:
        bench.tell(f"item on {device}")
        x = torch.rand(1).to(device)
        seconds = bench.seconds(device, lambda x=x: (x + 1).item(), 50 if bench.quick else 500)  # type: ignore[misc]
        if seconds is not None:
            bench.put(row, device, seconds * 1e6)
    return [row]


def _big(bench: Bench) -> list[Row]:
    size = 16 * _MIB if bench.quick else 256 * _MIB
    count = size // 4
    label = f"{size // _MIB} MiB"
    # Name, bytes read and written, and the operator on two matrices of 1,024 columns.
    cases: list[tuple[str, int, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = [
        (f"a + b, {label} each", 3 * size, lambda a, b: a + b),
        (f"exp(a), {label}", 2 * size, lambda a, _: a.exp()),
        (f"a.sum(), {label}", size, lambda a, _: a.sum()),
        (f"a.mean(1), {label}, 1,024 columns", size, lambda a, _: a.mean(1)),
        (f"a.sum(0), {label}, 1,024 columns", size, lambda a, _: a.sum(0)),
        (f"softmax(a, 1), {label}, 1,024 columns", 2 * size, lambda a, _: a.softmax(1)),
    ]
    rows = [Row(name, "GB/s", more_is_better=True) for name, _, _ in cases]
    for device in bench.devices:
        a = torch.rand(count // 1024, 1024).to(device)
        b = torch.rand(count // 1024, 1024).to(device)
        for row, (name, moved, work) in zip(rows, cases, strict=True):
            bench.tell(f"{name} on {device}")
            seconds = bench.seconds(device, lambda a=a, b=b, work=work: work(a, b), 3 if bench.quick else 10)  # type: ignore[misc]
            if seconds is not None:
                bench.put(row, device, moved / seconds / 1e9)
    return rows
