"""Suite `matmul`: the speed of matrix products, and their error against float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from torch_dml.cli.bench.measure import Bench, Row

_SAMPLES = 256
_HALVES = (torch.float16, torch.bfloat16)
# For each operand, whether it is transposed in memory ("t") or not ("n").
_LAYOUTS = ("nn", "nt", "tn", "tt")


@dataclass(frozen=True)
class _Case:
    """[batch, m, k] by [batch, k, n]; a batch of 0 means `mm`."""

    dtype: torch.dtype
    m: int
    n: int
    k: int
    layout: str = "nn"
    batch: int = 0
    precision: str = "highest"

    @property
    def name(self) -> str:
        """The row's name."""
        kind = str(self.dtype).removeprefix("torch.")
        batch = f"{self.batch} of " if self.batch else ""
        layout = "" if self.layout == "nn" else f" {self.layout}"
        precision = "" if self.precision == "highest" else f' "{self.precision}"'
        return f"{batch}{self.m}x{self.k}x{self.n} {kind}{layout}{precision}"

    @property
    def is_few(self) -> bool:
        """Whether it has few rows, so that reading the matrix takes longer than computing."""
        return self.m * 8 < self.n


def run(bench: Bench) -> list[Row]:
    """Measure square products of increasing size, their memory layouts, batches, and few rows.

    A device's series ends at a size that is too slow. "high" is compared with the other devices'
    "highest", since it has to be as accurate, and "medium" with their "medium".
    """
    rows = []
    too_slow: set[tuple[torch.device, torch.dtype]] = set()
    for case in _cases(bench.quick):
        rows += _product(bench, case, too_slow)
    return rows


def _cases(quick: bool) -> Iterator[_Case]:
    sizes = (256, 512) if quick else (256, 512, 1024, 2000, 2048, 4096, 8192)
    halves = (256,) if quick else (1024, 2048, 4096, 8192)
    layouts = 256 if quick else 4096
    yield from (_Case(torch.float32, n, n, n) for n in sizes)
    for precision in ("high", "medium"):
        yield from (_Case(torch.float32, n, n, n, precision=precision) for n in halves)
    yield from (_Case(dtype, n, n, n) for dtype, n in itertools.product(_HALVES, halves))
    for dtype, layout in itertools.product((torch.float32, *_HALVES), _LAYOUTS[1:]):
        yield _Case(dtype, layouts, layouts, layouts, layout)
    for dtype in (torch.float32, *_HALVES):
        # Batches of squares, and the products of attention for 8 sequences of 12 heads: scores, and
        # weights times values.
        batch, length = (2, 64) if quick else (96, 1024)
        for layout in _LAYOUTS:
            yield _Case(dtype, length // 2, length // 2, length // 2, layout, batch)
        yield _Case(dtype, length, length, 64, "nt", batch)
        yield _Case(dtype, length, 64, length, "nn", batch)
        yield from (_Case(dtype, m, layouts, layouts, "nt") for m in (1, 16))


def _product(bench: Bench, case: _Case, too_slow: set[tuple[torch.device, torch.dtype]]) -> list[Row]:
    dtype, m, n, k = case.dtype, case.m, case.n, case.k
    batch = max(case.batch, 1)
    bound = "memory" if case.is_few else "float32" if dtype == torch.float32 and case.precision == "highest" else "half"
    speed = Row(case.name, "GB/s" if case.is_few else "TFLOP/s", more_is_better=True, bound=bound)
    error = Row(f"{case.name}, worst of {_SAMPLES}", "error", more_is_better=False)
    sizes = ((case.batch,) if case.batch else ()) + (m, k), ((case.batch,) if case.batch else ()) + (k, n)
    a, b = (torch.randn(size).to(dtype) for size in sizes)
    amount = batch * (m * k + k * n + m * n) * dtype.itemsize / 1e9 if case.is_few else 2 * batch * m * n * k / 1e12
    for device in bench.devices:
        if (device, dtype) in too_slow:
            continue
        x, y = (_lying(t.to(device), order) for t, order in zip((a, b), case.layout, strict=True))
        with _precision(case.precision if case.precision != "high" or device.type == "dml" else "highest"):
            bench.take(speed, device, lambda x=x, y=y: x @ y, amount)  # type: ignore[misc]
            if str(device) not in speed.values:
                too_slow.add((device, dtype))
                continue
            error.values[str(device)] = sampled_error(a, b, (x @ y).cpu())
    return [speed, error]


@contextmanager
def _precision(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _lying(matrix: torch.Tensor, order: str) -> torch.Tensor:
    return matrix.mT.contiguous().mT if order == "t" else matrix


def sampled_error(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor) -> float:
    """Return the largest error of sampled elements against float64, relative to the elements' root
    mean square.
    """
    if product.dim() == 3:  # for a batch, sample its last matrix
        a, b, product = a[-1], b[-1], product[-1]
    n, m = product.shape
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(n, (_SAMPLES,), generator=generator)
    j = torch.randint(m, (_SAMPLES,), generator=generator)
    exact = (a[i].double() * b[:, j].T.double()).sum(1)
    worst = (product[i, j].double() - exact).abs().max()
    return float(worst / exact.square().mean().sqrt())
