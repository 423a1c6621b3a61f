"""Calls of operators that take indices or masks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch

from ..support.names import words
from . import tensors, values
from .arguments import call, plain
from .calls import BACKWARD, DOUBLE, FORWARD, Call
from .schemas import Overload

Given = dict[str, Any]
OPERATORS = set(
    words(
        """
        gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_reduce index
        _index_put_impl take put masked_select masked_scatter searchsorted bucketize isin repeat_interleave cat
        """
    )
)


def stage(rng: random.Random) -> str:
    """Whether gradients are computed, and how."""
    return rng.choices((FORWARD, BACKWARD, DOUBLE), (6, 3, 1))[0]


def make(rng: random.Random, overload: Overload) -> Call:
    """A call of one of these overloads."""
    dtype, palette = values.dtype(rng), values.palette(rng, bounded=True)
    first = tensors.tensor(rng, tensors.shape(rng), dtype, palette)
    dimension = rng.randrange(-first.dim(), first.dim()) if first.dim() else 0
    given = MAKERS[overload.base](rng, first, dimension)
    for argument in overload.arguments:
        if argument.name not in given and argument not in overload.outs:
            given[argument.name] = plain(rng, argument, first)
    if "reduce" in given:
        older = overload.base == "scatter"  # whose reductions have other names than those of scatter_reduce
        given["reduce"] = rng.choice(("add", "multiply") if older else ("sum", "prod", "mean", "amax", "amin"))
        if overload.base == "index_reduce":
            given["reduce"] = rng.choice(("prod", "mean", "amax", "amin"))
    for argument in overload.arguments:
        if argument.type == "Scalar" and isinstance(given.get(argument.name), torch.Tensor):
            given[argument.name] = values.scalar(rng, dtype)
    names = {argument.name for argument in overload.arguments}
    return call(rng, overload, {name: value for name, value in given.items() if name in names}, stage)


def _size(first: torch.Tensor, dimension: int) -> int:
    return first.size(dimension) if first.dim() else 1


def _like(rng: random.Random, first: torch.Tensor, sizes: tensors.Shape) -> torch.Tensor:
    dtype = first.dtype if rng.random() < 0.93 else values.dtype(rng)
    return tensors.tensor(rng, sizes, dtype, values.palette(rng, bounded=True))


def _index_dtype(rng: random.Random) -> torch.dtype:
    return rng.choice((torch.int64, torch.int64, torch.int64, torch.int32))


def _distinct(rng: random.Random, sizes: tensors.Shape, dimension: int, below: int) -> torch.Tensor:
    """Distinct indices along a dimension, so that each element is written once."""
    draw = torch.Generator().manual_seed(rng.getrandbits(62))
    if not sizes:
        return torch.zeros((), dtype=torch.int64)
    scores = torch.rand(tensors.replaced(sizes, dimension % len(sizes), below), generator=draw)
    return tensors.placed(rng, scores.argsort(dimension).narrow(dimension, 0, sizes[dimension]), distinct=True)


def _gather(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    sizes = tuple(rng.randint(0 if rng.random() < 0.1 else min(1, size), size) for size in first.shape)
    if first.dim():
        sizes = tensors.replaced(sizes, dimension % first.dim(), rng.randint(0, 2 * _size(first, dimension) + 1))
    index = tensors.indices(rng, sizes, _size(first, dimension), _index_dtype(rng))
    return {"self": first, "dim": dimension, "index": index}


def _scatter(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    sizes = tuple(rng.randint(min(1, size), size) for size in first.shape)
    index = _distinct(rng, sizes, dimension, _size(first, dimension))
    source = _like(rng, first, tuple(size + rng.choice((0, 0, 1)) for size in sizes))
    return {"self": first, "dim": dimension, "index": index, "src": source, "value": source}


def _scatter_with_sums(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    given = _gather(rng, first, dimension)
    sizes = tuple(given["index"].shape)
    return {**given, "src": _like(rng, first, tuple(size + rng.choice((0, 0, 1)) for size in sizes))}


def _along(rng: random.Random, first: torch.Tensor, dimension: int, distinct: bool) -> Given:
    size = _size(first, dimension)
    count = rng.randint(0 if rng.random() < 0.1 else min(1, size), size) if distinct else rng.randint(0, size + 2)
    free = tensors.indices(rng, (count,), size, _index_dtype(rng))
    index = _distinct(rng, (count,), 0, size) if distinct else free
    sizes = tensors.replaced(tuple(first.shape), dimension % first.dim(), count) if first.dim() else ()
    value = _like(rng, first, ())
    source = _like(rng, first, sizes)
    return {"self": first, "dim": dimension, "index": index, "source": source, "value": value}


def _advanced(rng: random.Random, first: torch.Tensor, dimension: int, distinct: bool = False) -> Given:
    """x[i], x[:, i, j], x[mask]."""
    common = tensors.shape(rng, most=3) if not distinct else (1,)
    chosen: list[torch.Tensor | None] = []
    for size in first.shape:
        if rng.random() < 0.4:
            chosen.append(None)
        else:
            sizes = common if rng.random() < 0.7 or distinct else tensors.broadcast(rng, common)
            chosen.append(tensors.indices(rng, sizes, size, _index_dtype(rng)))
    if first.dim() and rng.random() < 0.3:
        chosen = [values.numbers(rng, math.prod(first.shape), torch.bool, "normal").reshape(first.shape)]
    if first.dim() and all(index is None for index in chosen):
        chosen = [tensors.indices(rng, common, first.shape[0])]
    return {"self": first, "indices": chosen[: rng.randint(1, len(chosen))] if chosen else []}


def _put(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    given = _advanced(rng, first, dimension, distinct=True)
    return {**given, "values": _like(rng, first, ()), "unsafe": False}


def _take(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    index = tensors.indices(rng, tensors.shape(rng), first.numel())
    return {"self": first, "index": index}


def _put_flat(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    index = _distinct(rng, (rng.randint(0, min(first.numel(), 300)),), 0, first.numel())
    return {"self": first, "index": index, "source": _like(rng, first, tuple(index.shape))}


def _masked(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    mask = tensors.tensor(rng, tensors.broadcast(rng, tuple(first.shape)), torch.bool)
    count = int(mask.sum()) if mask.shape == first.shape else first.numel()
    source = _like(rng, first, (max(0, count + rng.choice((0, 0, 3, -1))),))
    return {"self": first, "mask": mask, "source": source}


def _search(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    last = rng.choice((0, 1, 5, 100))
    sequence = _like(rng, first, (*first.shape[:-1], last) if rng.random() < 0.5 else (last,)).sort().values
    return {
        "sorted_sequence": sequence,
        "boundaries": _like(rng, first, (last,)).sort().values,
        "self": first,
        "sorter": None,
    }


def _isin(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    other = _like(rng, first, tensors.shape(rng))
    return {"elements": first, "element": first, "test_elements": other, "test_element": other}


def _repeat(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    repeats = tensors.indices(rng, (rng.choice((0, 1, 4, 100)),), 5, rng.choice((torch.int64, torch.int32)))
    return {"repeats": repeats, "output_size": None}


def _cat(rng: random.Random, first: torch.Tensor, dimension: int) -> Given:
    parts = [first]
    for _ in range(rng.choice((0, 1, 2, 3, 12))):
        sizes = tuple(first.shape)
        if first.dim():
            sizes = tensors.replaced(sizes, dimension % first.dim(), rng.randint(0, 4))
        parts.append(_like(rng, first, sizes if rng.random() < 0.95 else (0,)))
    return {"tensors": parts, "dim": dimension}


MAKERS: dict[str, Callable[[random.Random, torch.Tensor, int], Given]] = {
    "gather": _gather,
    "scatter": _scatter,
    "scatter_add": _scatter_with_sums,
    "scatter_reduce": _scatter_with_sums,
    "index_select": lambda rng, first, dimension: _along(rng, first, dimension, distinct=False),
    "index_add": lambda rng, first, dimension: _along(rng, first, dimension, distinct=False),
    "index_copy": lambda rng, first, dimension: _along(rng, first, dimension, distinct=True),
    "index_fill": lambda rng, first, dimension: _along(rng, first, dimension, distinct=False),
    "index_reduce": lambda rng, first, dimension: _along(rng, first, dimension, distinct=False),
    "index": _advanced,
    "_index_put_impl": _put,
    "take": _take,
    "put": _put_flat,
    "masked_select": _masked,
    "masked_scatter": _masked,
    "searchsorted": _search,
    "bucketize": _search,
    "isin": _isin,
    "repeat_interleave": _repeat,
    "cat": _cat,
}
