"""Calls of sparse tensors, which are created on the device from indices and values, and compared by
their components.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from . import tensors, values
from .calls import BACKWARD, FORWARD, Call

# Expressions of indices i, values v and a size s, and of the other arguments a and b.
COO = "torch.sparse_coo_tensor(i, v, s)"
CSR = f"{COO}.coalesce().to_sparse_csr()"
CSC = f"{COO}.coalesce().to_sparse_csc()"
LAYOUTS = {"coo": COO, "coalesced": f"{COO}.coalesce()", "csr": CSR, "csc": CSC}
# For one matrix: a name, the expression, and the layouts to which it applies.
UNARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "create": ("m", ("coo",)),
    "coalesce": ("m.coalesce()", ("coo",)),
    "to_dense": ("m.to_dense()", ("coo", "coalesced", "csr", "csc")),
    "to_csr": ("m.to_sparse_csr()", ("coalesced", "csc")),
    "to_csc": ("m.to_sparse_csc()", ("coalesced", "csr")),
    "to_coo": ("m.to_sparse()", ("csr", "csc")),
    "transpose": ("m.t().coalesce()", ("coo",)),
    "transposed rows": ("m.t().to_dense()", ("csr", "csc")),
    "neg": ("-m", ("coalesced", "csr", "csc")),
    "abs": ("m.abs()", ("coalesced", "csr")),
    "sin": ("m.sin()", ("coalesced", "csr")),
    "scale": ("m * 2.5", ("coo", "csr")),
    "divide": ("m / 2", ("coo", "coalesced")),
    "sum": ("torch.sparse.sum(m)", ("coo", "coalesced")),
    "sum of rows": ("torch.sparse.sum(m, 1).to_dense()", ("coo",)),
    "sum of columns": ("torch.sparse.sum(m, 0).to_dense()", ("coalesced",)),
    "clone": ("m.clone()", ("coo", "csr", "csc")),
    "detached": ("m.detach()", ("coo", "csr")),
    "to_double": ("m.to(torch.float64)", ("coo", "csr")),
    "index_select": ("m.index_select(0, torch.arange(0, s[0], 2, device=v.device)).to_dense()", ("coo",)),
    "narrow": ("m.to_dense()[: s[0] // 2]", ("coo",)),
    "zero": ("m.zero_()", ("coo",)),
    "unsqueeze": ("m.unsqueeze(0)", ("coo",)),
    "cat": ("torch.cat([m, m], 0)", ("coo", "coalesced")),
    "sparse_mask": ("m.to_dense().sin().sparse_mask(m.coalesce())", ("coo",)),
}
# For a matrix n x k and dense ones: a is k x m, b is n x m, d is n x k.
BINARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "mm": ("torch.mm(m, a)", ("coo", "coalesced", "csr", "csc")),
    "sparse.mm": ("torch.sparse.mm(m, a)", ("coo", "coalesced", "csr")),
    "matmul": ("m @ a", ("coo", "csr", "csc")),
    "mv": ("m @ a[:, 0]", ("coo", "csr")),
    "dense mm": ("a.t() @ m.t()", ("coo", "csr")),
    "addmm": ("torch.addmm(b, m, a, beta=beta, alpha=alpha)", ("coo", "csr", "csc")),
    "sparse.addmm": ("torch.sparse.addmm(b, m, a, beta=beta, alpha=alpha)", ("coo", "coalesced")),
    "add dense": ("torch.add(d, m, alpha=alpha)", ("coo", "coalesced", "csr")),
    "add_ dense": ("d.clone().add_(m)", ("coo", "csr")),
    "mul dense": ("m * d", ("coalesced", "csr")),
    # Whether entries with equal indices are merged depends on the backend: the CPU merges them if
    # the indices are equal, CUDA never does.
    "add": ("torch.add(m, m.t().t(), alpha=alpha).coalesce()", ("coo", "coalesced")),
    "add compressed": ("torch.add(m, m * 2, alpha=alpha)", ("csr",)),
    "sub": ("(m - m * 3).coalesce()", ("coo", "coalesced")),
    "mul": ("(m.coalesce() * (m * 2).coalesce()).coalesce()", ("coo",)),
    "sampled_addmm": ("torch.sparse.sampled_addmm(m, b, a.t(), beta=beta, alpha=alpha)", ("csr",)),
}
NAMES = tuple(f"sparse {name}" for name in (*UNARY, *BINARY, "hybrid", "blocks"))
SIZES = (1, 1, 2, 3, 5, 8, 16, 33, 64, 129)


def make(rng: random.Random, name: str) -> Call:
    """A call of one of these expressions."""
    name = name.removeprefix("sparse ")
    if name in ("hybrid", "blocks"):
        return _blocks(rng) if name == "blocks" else _hybrid(rng)
    expression, layouts = UNARY[name] if name in UNARY else BINARY[name]
    layout = rng.choice(layouts)
    rows, columns, width = (rng.choice(SIZES) for _ in range(3))
    dtype = _dtype(rng)
    indices, entries = _entries(rng, (rows, columns), dtype)
    made = LAYOUTS[layout]
    args: list[Any] = [indices, entries, [rows, columns]]
    text = f"(lambda m: {expression})({made})"
    stage = (
        rng.choice((FORWARD, FORWARD, BACKWARD)) if name in ("mm", "sparse.mm", "addmm", "to_dense", "mul") else FORWARD
    )
    # PyTorch has few derivatives for some layouts and for complex entries.
    if layout == "csc" or not dtype.is_floating_point:
        stage = FORWARD
    if name in UNARY:
        call = Call(f"lambda i, v, s: {text}", args, {}, stage, rng.getrandbits(31))
    else:
        palette = rng.choice(values.COMPLEX_BOUNDED)
        dense = [
            tensors.tensor(rng, sizes, dtype, palette) for sizes in ((columns, width), (rows, width), (rows, columns))
        ]
        beta, alpha = rng.choice((0, 1, 2, 0.5)), rng.choice((1, 1, 2, -0.5))
        # An expanded tensor cannot be written.
        text = f"lambda i, v, s, a, b, d, beta, alpha: {text}"
        args = [*args, *dense, beta, alpha]
        if name == "sampled_addmm":  # b is n x m, a.t() is m x k with a as k x m.
            args[3], args[4] = dense[0], dense[1]
        call = Call(text, args, {}, stage, rng.getrandbits(31))
    if stage != FORWARD:
        entries.requires_grad_()
        for value in args[3:]:
            if isinstance(value, torch.Tensor) and rng.random() < 0.7:
                value.requires_grad_()
    return call


def _dtype(rng: random.Random) -> torch.dtype:
    return rng.choices((torch.float32, torch.float64, torch.complex64, torch.int64), (8, 3, 2, 1))[0]


def _entries(
    rng: random.Random, sizes: tuple[int, ...], dtype: torch.dtype, inner: tuple[int, ...] = ()
) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices, some of which occur twice, and values."""
    count = rng.choice((0, 1, 3, 10, 40, 200))
    draw = torch.Generator().manual_seed(rng.getrandbits(62))
    rows = [torch.randint(0, size, (count,), generator=draw) for size in sizes]
    indices = torch.stack(rows)
    if rng.random() < 0.2:
        indices = indices[:, torch.argsort(indices[0], stable=True)]
    return indices.contiguous(), values.numbers(rng, count * _product(inner), dtype, "normal").reshape(count, *inner)


def _product(sizes: tuple[int, ...]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def _hybrid(rng: random.Random) -> Call:
    """With more or fewer than two sparse dimensions, and with dense ones."""
    sizes = tuple(rng.choice((1, 2, 4, 7)) for _ in range(rng.choice((1, 2, 3))))
    inner = tuple(rng.choice((1, 2, 5)) for _ in range(rng.choice((0, 1, 2))))
    indices, entries = _entries(rng, sizes, _dtype(rng), inner)
    expression = rng.choice(
        (
            "m",
            "m.coalesce()",
            "m.to_dense()",
            "(m + m).coalesce()",
            "m * 3",
            "torch.sparse.sum(m)",
            "-m.coalesce()",
            "m.clone()",
        )
    )
    text = f"lambda i, v, s: (lambda m: {expression})({COO})"
    return Call(text, [indices, entries, [*sizes, *inner]], {}, FORWARD, rng.getrandbits(31))


def _blocks(rng: random.Random) -> Call:
    """From dense matrices with zeros: conversions, and products of blocks."""
    block = rng.choice((1, 2, 3))
    rows, columns, width = block * rng.choice((1, 2, 5)), block * rng.choice((1, 3, 4)), rng.choice((1, 4, 17))
    dtype = rng.choice((torch.float32, torch.float32, torch.float64))
    dense = values.numbers(rng, rows * columns, dtype, "whole").reshape(rows, columns)
    a = tensors.tensor(rng, (columns, width), dtype, "normal")
    b = tensors.tensor(rng, (rows, width), dtype, "normal")
    made = rng.choice(
        (f"x.to_sparse_bsr(({block}, {block}))", "x.to_sparse_csr()", "x.to_sparse_csc()", "x.to_sparse()")
    )
    expression = rng.choice(("m", "m.to_dense()", "m @ a", "torch.addmm(b, m, a)", "m.values()"))
    if expression == "m.values()" and made == "x.to_sparse()":
        expression = "m._values()"
    text = f"lambda x, a, b: (lambda m: {expression})({made})"
    return Call(text, [dense, a, b], {}, FORWARD, rng.getrandbits(31))
