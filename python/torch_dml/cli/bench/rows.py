"""Suite `rows`: operators that should run at the speed of memory: norms, softmax, losses, random
numbers, sorting; lists.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch.nn import functional

from torch_dml.cli.bench.measure import Bench, Row

_Work = Callable[[torch.Tensor, torch.Tensor], object]

# Lists of tensors like those of an optimizer, with this many elements each.
_ELEMENTS = 64
_LISTS: dict[str, Callable[[list[torch.Tensor], list[torch.Tensor]], object]] = {
    "_foreach_add_ of a number": lambda x, _: torch._foreach_add_(x, 1.0),
    "_foreach_add of lists": torch._foreach_add,
    "_foreach_addcmul_": lambda x, y: torch._foreach_addcmul_(x, y, y, 0.5),
    "_foreach_norm": lambda x, _: torch._foreach_norm(x),
}


def run(bench: Bench) -> list[Row]:
    """Measure each on a matrix of 4,096 columns. Bytes are those that have to be read and written
    at least, whatever an implementation does.
    """
    height, width = (64, 512) if bench.quick else (16_384, 4_096)
    size = height * width * 4
    weight, classes = torch.rand(width), torch.randint(width, (height,))
    shape = f"{height:,}x{width:,}"
    cases: list[tuple[str, int, _Work]] = [
        ("softmax", 2 * size, lambda x, _: x.softmax(1)),
        ("layer_norm", 2 * size, lambda x, w: functional.layer_norm(x, (width,), w, w)),
        ("rms_norm", 2 * size, lambda x, w: functional.rms_norm(x, (width,), w)),
        ("bias add", 2 * size, lambda x, w: x + w),
        ("dropout", 2 * size + size // 4, lambda x, _: torch.native_dropout(x, 0.1, True)),
        ("cumsum", 2 * size, lambda x, _: x.cumsum(1)),
        ("randn", size, lambda x, _: torch.randn_like(x)),
        ("cross_entropy and its gradient", 3 * size, _cross_entropy(classes)),
        ("topk(64)", size, lambda x, _: x.topk(64, 1)),
        ("sort", 4 * size, lambda x, _: x.sort(1)),
        ("sort of one row", 4 * size, lambda x, _: x.view(-1).sort()),
        ("cat of 64 pieces", 2 * size, lambda x, _: torch.cat(x.chunk(64))),
        ("cat of 64 pieces, by columns", 2 * size, lambda x, _: torch.cat(x.chunk(64, 1), 1)),
        ("x.t().contiguous()", 2 * size, lambda x, _: x.t().contiguous()),
    ]
    rows = [Row(f"{name}, {shape}", "GB/s", more_is_better=True, bound="memory") for name, _, _ in cases]
    count = 100 if bench.quick else 10_000
    kind = f"{count:,} tensors of {_ELEMENTS}"
    lists = [Row(f"{name}, {kind}", "M tensors/s", more_is_better=True) for name in _LISTS]
    for device in bench.devices:
        x, w = torch.randn(height, width).to(device), weight.to(device)
        for row, (_, moved, work) in zip(rows, cases, strict=True):
            bench.take(row, device, lambda x=x, w=w, work=work: work(x, w), moved / 1e9)  # type: ignore[misc]
        one, other = ([torch.rand(_ELEMENTS, device=device) for _ in range(count)] for _ in range(2))
        for row, on_lists in zip(lists, _LISTS.values(), strict=True):
            bench.take(row, device, functools.partial(on_lists, one, other), count / 1e6)
    return rows + lists


def _cross_entropy(classes: torch.Tensor) -> _Work:
    on = functools.cache(classes.to)

    def work(x: torch.Tensor, _: torch.Tensor) -> object:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(functional.cross_entropy(x, on(x.device)), x)

    return work
