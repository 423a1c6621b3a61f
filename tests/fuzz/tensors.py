"""Tensors of random shape and layout."""

from __future__ import annotations

import math
import random

import torch

from . import values

LENGTHS = (1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 100, 129, 257, 1000, 1025)
Shape = tuple[int, ...]
# More elements than one dimension of a grid of workgroups.
LARGE: tuple[Shape, ...] = (
    (65537,),
    (3, 30000),
    (300, 257),
    (70001, 1),
    (1, 66000),
    (2, 3, 11000),
    (131073,),
)

# Maximum product of the elements of two tensors, which may be the size of their broadcast result:
# two large tensors would have one of 20 GB.
MOST_TOGETHER = 1 << 26


def shape(rng: random.Random, least: int = 0, most: int = 8) -> Shape:
    """Sizes of a tensor of `least` to `most` dimensions."""
    kind = rng.random()
    if kind < 0.08:
        rank = 0
    elif kind < 0.28:
        rank = 1
    elif kind < 0.9:
        rank = rng.choice((2, 2, 3, 3, 4))
    else:
        rank = rng.randint(5, 8)
    rank = min(max(rank, least), most)
    if kind > 0.28 and rng.random() < 0.03:
        large = rng.choice(LARGE)
        if least <= len(large) <= most:
            return large
    sizes: Shape
    if rank == 1:
        sizes = (rng.choice(LENGTHS),)
    else:
        sizes = tuple(rng.choice((1, 2, 3, 4, 5, 6, 9) if rank < 5 else (1, 1, 2, 3)) for _ in range(rank))
    if rank and rng.random() < 0.06:
        sizes = replaced(sizes, rng.randrange(rank), 0)
    return sizes


def replaced(sizes: Shape, dimension: int, size: int) -> Shape:
    """The sizes with one dimension replaced."""
    return (*sizes[:dimension], size, *sizes[dimension + 1 :])


def broadcast(rng: random.Random, sizes: Shape) -> Shape:
    """Sizes that mostly broadcast with the given ones."""
    kind = rng.random()
    if kind < 0.55:
        return sizes
    if kind < 0.58:
        other = shape(rng)
        return other if math.prod(sizes) * math.prod(other) <= MOST_TOGETHER else sizes
    kept = sizes[rng.randrange(len(sizes) + 1) :]
    return tuple(1 if rng.random() < 0.3 else size for size in kept)


def strides(rng: random.Random, sizes: Shape) -> Shape:
    """Strides for these sizes: contiguous, permuted, channels last, with steps, or expanded."""
    rank, kind = len(sizes), rng.random()
    order, steps = list(range(rank)), [1] * rank
    if kind < 0.45:
        pass
    elif kind < 0.6:
        rng.shuffle(order)
    elif kind < 0.7 and rank in (4, 5):
        order = [0, *range(2, rank), 1]
    elif kind < 0.85:
        steps = [rng.choice((1, 1, 2, 3)) for _ in range(rank)]
        if rng.random() < 0.3:
            rng.shuffle(order)
    elif kind < 0.93:
        steps = [rng.choice((1, 0)) for _ in range(rank)]
    found, extent = [0] * rank, 1
    for dimension in reversed(order):
        found[dimension] = extent * steps[dimension]
        if steps[dimension]:
            extent = found[dimension] * max(sizes[dimension], 1)
    return tuple(found)


def placed(rng: random.Random, content: torch.Tensor, distinct: bool = False) -> torch.Tensor:
    """The elements of `content` in another layout, not at the beginning of a storage, whose other
    elements are random.

    If it is expanded, the last one of the elements at one address wins; with `distinct` it is not
    expanded.
    """
    sizes, extent = tuple(content.shape), 0
    layout = strides(rng, sizes)
    if distinct and 0 in layout:
        layout = content.contiguous().stride()
    if content.numel():
        extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, layout, strict=True))
    offset = rng.choice((0, 0, 0, 1, 2, 3, 8)) if rng.random() < 0.5 else 0
    storage = values.numbers(rng, offset + extent + rng.choice((0, 0, 1, 5)), content.dtype, "whole")
    placed = storage.as_strided(sizes, layout, offset)
    if content.numel():
        placed.copy_(content) if 0 not in layout else _copy_expanded(placed, content)
    return placed


def _copy_expanded(target: torch.Tensor, content: torch.Tensor) -> None:
    for dimension, stride in enumerate(target.stride()):
        if stride == 0:
            target, content = target.narrow(dimension, 0, 1), content.narrow(dimension, 0, 1)
    target.copy_(content)


def tensor(
    rng: random.Random, sizes: Shape, dtype: torch.dtype, palette: str | None = None, plain: bool = False
) -> torch.Tensor:
    """A tensor; with `plain` a contiguous one."""
    content = values.numbers(rng, math.prod(sizes), dtype, palette or values.palette(rng)).reshape(sizes)
    return content if plain else marked(rng, placed(rng, content))


def marked(rng: random.Random, tensor: torch.Tensor) -> torch.Tensor:
    """For complex numbers sometimes a view with the conjugate or negative bit, and the inverse
    applied to the elements.
    """
    if tensor.is_complex() and rng.random() < 0.25:
        tensor = tensor.conj()
    if tensor.is_complex() and rng.random() < 0.05:
        tensor = torch._neg_view(tensor)
    return tensor


def indices(rng: random.Random, sizes: Shape, below: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Indices from 0 to `below`; sometimes one is out of range."""
    draw = torch.Generator().manual_seed(rng.getrandbits(62))
    content = torch.randint(0, max(below, 1), sizes, generator=draw)
    if content.numel() and rng.random() < 0.03:
        content.view(-1)[rng.randrange(content.numel())] = rng.choice((below, -below - 1, 2**31))
    return placed(rng, content.to(dtype))
