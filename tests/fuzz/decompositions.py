"""Calls of linear algebra, compared by the properties of results where they are not unique.

Signs, phases and the order of pivots differ between backends, so an expression combines the factors
of a decomposition: their product, the products of orthogonal factors with themselves, and unique
results, such as singular values.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from . import tensors, values
from .calls import BACKWARD, FORWARD, Call

GRAM = "{0}.mH @ {0}"
# An expression of a matrix a (and a right-hand side b), the kind of matrix, and whether its
# gradients are unique.
EXPRESSIONS: dict[str, tuple[str, str, bool]] = {
    "cholesky": ("torch.linalg.cholesky(a)", "positive", True),
    "cholesky upper": ("torch.linalg.cholesky(a, upper=True)", "positive", True),
    "cholesky_ex": ("torch.linalg.cholesky_ex(a)", "positive", True),
    "cholesky_inverse": ("torch.cholesky_inverse(torch.linalg.cholesky(a))", "positive", True),
    "cholesky_solve": ("torch.cholesky_solve(b, torch.linalg.cholesky(a))", "positive", True),
    "lu": (
        "(lambda p, l, u: (p @ l @ u, u.tril(-1), l.triu(1), l.diagonal(0, -2, -1)))(*torch.linalg.lu(a))",
        "any",
        False,
    ),
    "lu_factor": ("(lambda f, p: torch.linalg.lu_solve(f, p, b))(*torch.linalg.lu_factor(a))", "square", True),
    "lu_solve transposed": (
        "(lambda f, p: torch.linalg.lu_solve(f, p, b, adjoint=True))(*torch.linalg.lu_factor(a))",
        "square",
        True,
    ),
    "lu_unpack": ("(lambda p, l, u: p @ l @ u)(*torch.lu_unpack(*torch.linalg.lu_factor(a)))", "any", False),
    "qr": (f"(lambda q, r: (q @ r, {GRAM.format('q')}, r.tril(-1)))(*torch.linalg.qr(a))", "any", False),
    "qr complete": (
        f"(lambda q, r: (q @ r, {GRAM.format('q')}))(*torch.linalg.qr(a, mode='complete'))",
        "any",
        False,
    ),
    "qr r": ("torch.linalg.qr(a, mode='r')[1].abs()", "tall", False),
    "householder_product": (
        f"(lambda q: (q @ a.new_zeros(()) if False else {GRAM.format('q')}))"
        "(torch.linalg.householder_product(*torch.geqrf(a)))",
        "tall",
        False,
    ),
    "ormqr": ("torch.ormqr(*torch.geqrf(a), b, transpose=True).norm(dim=-2)", "square", False),
    "eigh": (
        f"(lambda l, v: (l, v @ torch.diag_embed(l).to(v.dtype) @ v.mH, {GRAM.format('v')}))(*torch.linalg.eigh(a))",
        "symmetric",
        False,
    ),
    "eigvalsh": ("torch.linalg.eigvalsh(a)", "symmetric", True),
    "svd": (
        f"(lambda u, s, v: (s, (u * s.unsqueeze(-2)) @ v, {GRAM.format('u')}, v @ v.mH))"
        "(*torch.linalg.svd(a, full_matrices=False))",
        "any",
        False,
    ),
    "svd full": (
        f"(lambda u, s, v: (s, {GRAM.format('u')}, v @ v.mH))(*torch.linalg.svd(a, full_matrices=True))",
        "any",
        False,
    ),
    "svdvals": ("torch.linalg.svdvals(a)", "any", True),
    "solve": ("torch.linalg.solve(a, b)", "square", True),
    "solve left": ("torch.linalg.solve(a, b.mT, left=False)", "square", True),
    "solve vector": ("torch.linalg.solve(a, b[..., :1]).squeeze(-1)", "square", True),
    "solve_ex": ("torch.linalg.solve_ex(a, b)[0]", "square", True),
    "solve_triangular": ("torch.linalg.solve_triangular(a.triu(), b, upper=True)", "dominant", True),
    "solve_triangular lower": (
        "torch.linalg.solve_triangular(a.tril(), b, upper=False, unitriangular=True)",
        "small",
        True,
    ),
    "triangular_solve": ("torch.triangular_solve(b, a, upper=False, transpose=True)[0]", "dominant", True),
    "det": ("torch.linalg.det(a)", "square", True),
    "slogdet": ("torch.linalg.slogdet(a)", "square", True),
    "logdet": ("torch.logdet(a)", "positive", True),
    "inv": ("torch.linalg.inv(a)", "square", True),
    "inv_ex": ("torch.linalg.inv_ex(a)[0]", "square", True),
    "pinv": ("torch.linalg.pinv(a)", "any", False),
    "lstsq": ("torch.linalg.lstsq(a, b)[0]", "tall", False),
    "matrix_exp": ("torch.linalg.matrix_exp(a)", "small", True),
    "matrix_power": ("torch.linalg.matrix_power(a, 3)", "square", True),
    "matrix_power negative": ("torch.linalg.matrix_power(a, -2)", "dominant", True),
    "matrix_rank": ("torch.linalg.matrix_rank(a)", "low rank", False),
    "matrix_norm": ("torch.linalg.matrix_norm(a)", "any", True),
    "matrix_norm nuclear": ("torch.linalg.matrix_norm(a, 'nuc')", "any", False),
    "matrix_norm 2": ("torch.linalg.matrix_norm(a, 2)", "any", False),
    "cond": ("torch.linalg.cond(a)", "dominant", False),
    "ldl": ("(lambda f, p: torch.linalg.ldl_solve(f, p, b))(*torch.linalg.ldl_factor(a))", "symmetric", False),
    "multi_dot": ("torch.linalg.multi_dot([a, b, b.mT])", "one square", True),
    "tensorinv": ("torch.linalg.tensorinv(a.unsqueeze(-1), ind=1)", "one dominant", True),
    "vander": ("torch.linalg.vander(a[..., 0], N=3)", "small", True),
}
NAMES = tuple(f"linalg {name}" for name in EXPRESSIONS)
SIZES = (1, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 48, 65)
BATCHES: tuple[tuple[int, ...], ...] = ((), (), (), (1,), (2,), (3,), (2, 2), (0,))


def make(rng: random.Random, name: str) -> Call:
    """A call of one of these expressions."""
    expression, kind, smooth = EXPRESSIONS[name.removeprefix("linalg ")]
    dtype = rng.choice((torch.float32, torch.float32, torch.float64))
    batch = () if kind.startswith("one ") else rng.choice(BATCHES)
    rows = columns = rng.choice(SIZES)
    if kind in ("any", "tall"):
        columns = rng.choice(SIZES)
        rows = max(rows, columns) if kind == "tall" else rows
    a = _matrix(rng, kind.removeprefix("one "), (*batch, rows, columns), dtype)
    b = tensors.tensor(rng, (*batch, rows, rng.choice((1, 2, 5, 17))), dtype, "normal")
    takes = "a, b" if " b" in expression or "(b" in expression else "a"
    args: list[Any] = [a, b] if takes == "a, b" else [a]
    stage = BACKWARD if smooth and rng.random() < 0.3 else FORWARD
    if stage != FORWARD:
        for tensor in args:
            tensor.requires_grad_()
    return Call(f"lambda {takes}: {expression}", args, {}, stage, rng.getrandbits(31))


def _matrix(rng: random.Random, kind: str, sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A matrix of a kind, far enough from those for which a decomposition is undefined."""
    count = 1
    for size in sizes:
        count *= size
    plain = values.numbers(rng, count, torch.float64, "normal").reshape(sizes)
    plain = plain / max(float(plain.abs().max()), 1.0) if plain.numel() else plain
    size = sizes[-1]
    eye = torch.eye(size, dtype=torch.float64)
    if kind == "positive":
        plain = plain @ plain.mT / size + eye * rng.choice((1.0, 0.3))
    elif kind == "symmetric":
        plain = plain + plain.mT + torch.diag(torch.arange(size).double()) * 0.5
    elif kind in ("square", "dominant"):
        plain = plain + eye * (2.0 if kind == "dominant" else 1.0) * max(size**0.5 / 2, 1.0)
    elif kind == "small":
        plain = plain / size
    elif kind == "low rank" and size > 1:
        plain = plain[..., : size // 2] @ plain[..., : size // 2].mT
    scaled = plain * rng.choice((1.0, 1.0, 16.0, 0.125))
    return tensors.placed(rng, scaled.to(dtype), distinct=True)
