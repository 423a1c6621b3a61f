"""Suite `sparse`: products of sparse and dense matrices, coalescing, training steps of an embedding
with sparse gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from torch_dml.cli.bench.measure import Bench, Row

_Work = Callable[[], object]
_Case = tuple[Row, Callable[[torch.device], _Work], float]


def run(bench: Bench) -> list[Row]:
    """Measure the operators of graph networks and recommenders. The operations of a product are the
    multiplications and additions of its nonzeros.
    """
    generator = torch.Generator().manual_seed(0)
    cases = [*_products(bench, generator), _coalesce(bench, generator), *_embedding(bench, generator)]
    for device in bench.devices:
        for row, prepare, amount in cases:
            bench.take(row, device, prepare(device), amount)
    return [row for row, *_ in cases]


def _products(bench: Bench, generator: torch.Generator) -> list[_Case]:
    """A random matrix with ten nonzeros a row, times dense ones, and the gradient with respect to
    these.
    """
    n, each = (1_000 if bench.quick else 100_000), 10
    crow = torch.arange(0, each * n + 1, each)
    col = torch.randint(0, n, (n, each), generator=generator).sort(1).values.flatten()
    csr = torch.sparse_csr_tensor(crow, col, torch.rand(each * n, generator=generator), (n, n))
    coo = csr.to_sparse()
    cases: list[_Case] = []
    for width in (64, 256):
        dense = torch.rand(n, width, generator=generator)
        work, label = 2 * each * n * width / 1e9, f"{n:,} x {n:,}, {each} a row, times {width} columns"
        for name, sparse in (("CSR", csr), ("COO", coo)):
            row = Row(f"{name} {label}", "GFLOP/s", more_is_better=True)
            cases.append((row, partial(_product, sparse, dense), work))
        row = Row(f"CSR {label}, gradient", "GFLOP/s", more_is_better=True)
        cases.append((row, partial(_gradient, csr, dense), work))
    return cases


def _product(sparse: torch.Tensor, dense: torch.Tensor, device: torch.device) -> _Work:
    return partial(torch.sparse.mm, sparse.to(device), dense.to(device))


def _gradient(sparse: torch.Tensor, dense: torch.Tensor, device: torch.device) -> _Work:
    leaf = dense.to(device, copy=True).requires_grad_()
    product, weights = torch.sparse.mm(sparse.to(device), leaf), dense.to(device)
    return lambda: torch.autograd.grad(product, leaf, weights, retain_graph=True)


def _coalesce(bench: Bench, generator: torch.Generator) -> _Case:
    """Entries of a square matrix, about half of which have the position of another one."""
    entries = 10_000 if bench.quick else 1_000_000
    side = int(entries**0.5)
    indices, values = (
        torch.randint(0, side, (2, entries), generator=generator),
        torch.rand(entries, generator=generator),
    )
    row = Row(f"COO coalesce, {entries:,} entries", "M entries/s", more_is_better=True)
    x = torch.sparse_coo_tensor(indices, values, (side, side))

    def prepare(device: torch.device) -> _Work:
        there = x.to(device)
        return lambda: there.coalesce()

    return row, prepare, entries / 1e6


def _embedding(bench: Bench, generator: torch.Generator) -> list[_Case]:
    """Training steps of an embedding table of which a batch uses few rows."""
    rows, width, batch = (1_000, 16, 64) if bench.quick else (1_000_000, 64, 8_192)
    weight = torch.randn(rows, width, generator=generator)
    tokens = torch.randint(0, rows, (batch,), generator=generator)
    kinds: dict[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
        "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        "SparseAdam": lambda parameters: torch.optim.SparseAdam(parameters, lr=0.1),
    }

    def prepare(kind: Callable[..., torch.optim.Optimizer], device: torch.device) -> _Work:
        table = torch.nn.Embedding.from_pretrained(weight, freeze=False, sparse=True).to(device)
        optimizer, batch_there = kind(list(table.parameters())), tokens.to(device)

        def step() -> None:
            optimizer.zero_grad()
            table(batch_there).square().sum().backward()
            optimizer.step()

        return step

    return [
        (
            Row(
                f"{name} step of a sparse embedding, {rows:,} x {width}, {batch:,} tokens",
                "steps/s",
                more_is_better=True,
            ),
            partial(prepare, kind),
            1.0,
        )
        for name, kind in kinds.items()
    ]
