"""Calls of products of matrices and vectors."""

from __future__ import annotations

import random
from typing import Any

import torch

from . import tensors, values
from .arguments import call, plain
from .calls import BACKWARD, DOUBLE, FORWARD, Call
from .schemas import Overload

# The sizes of each argument: b batches, an n x k matrix times a k x m one.
SIZES: dict[str, dict[str, str]] = {
    "mm": {"self": "nk", "mat2": "km"},
    "bmm": {"self": "bnk", "mat2": "bkm"},
    "mv": {"self": "nk", "vec": "k"},
    "dot": {"self": "k", "tensor": "k"},
    "vdot": {"self": "k", "other": "k"},
    "addmm": {"self": "nm", "mat1": "nk", "mat2": "km"},
    "_addmm_activation": {"self": "nm", "mat1": "nk", "mat2": "km"},
    "addmv": {"self": "n", "mat": "nk", "vec": "k"},
    "addr": {"self": "nm", "vec1": "n", "vec2": "m"},
    "addbmm": {"self": "nm", "batch1": "bnk", "batch2": "bkm"},
    "baddbmm": {"self": "bnm", "batch1": "bnk", "batch2": "bkm"},
}
LENGTHS = (0, 1, 1, 2, 3, 4, 5, 8, 16, 17, 31, 33, 64, 65, 100, 257)


def stage(rng: random.Random) -> str:
    """Whether gradients are computed, and how."""
    return rng.choices((FORWARD, BACKWARD, DOUBLE), (6, 3, 1))[0]


def make(rng: random.Random, overload: Overload) -> Call:
    """A call of one of these overloads, mostly with compatible sizes."""
    lengths = {letter: rng.choice(LENGTHS) for letter in "nkm"} | {"b": rng.choice((0, 1, 2, 3, 5))}
    if rng.random() < 0.03:
        lengths["k"] = rng.choice((1000, 5000))
    dtype = values.dtype(rng)
    given: dict[str, Any] = {}
    like = torch.empty(0, dtype=dtype)
    for argument in overload.arguments:
        name = argument.name
        if argument in overload.outs:
            continue
        if argument.type == "Tensor":
            sizes = tuple(lengths[letter] for letter in SIZES[overload.base][name])
            if name == "self" and "add" in overload.base and not overload.in_place and rng.random() < 0.4:
                sizes = tensors.broadcast(rng, sizes)
            if rng.random() < 0.02:
                sizes = tensors.shape(rng)
            chosen = dtype if rng.random() < 0.97 else values.dtype(rng)
            given[name] = tensors.tensor(rng, sizes, chosen, values.palette(rng, bounded=True))
        elif name in ("alpha", "beta"):
            given[name] = rng.choice((0, 1, 1, 2, -1, 0.5, values.scalar(rng, dtype)))
        else:
            given[name] = plain(rng, argument, like)
    return call(rng, overload, given, stage)
