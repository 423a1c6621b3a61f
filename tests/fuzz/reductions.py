"""Calls of operators that take one tensor and dimensions: reductions, scans, sorting,
rearranging.
"""

from __future__ import annotations

import random
from typing import Any

from ..support.names import words
from . import tensors, values
from .arguments import call, plain
from .calls import BACKWARD, DOUBLE, FORWARD, Call
from .schemas import Overload

OPERATORS = set(
    words(
        """
        all any amax amin aminmax argmax argmin count_nonzero max min mean median nanmedian mode nansum norm
        linalg_vector_norm prod std std_mean sum var var_mean cumsum cumprod _logcumsumexp _softmax _log_softmax sort
        topk kthvalue flip roll tril triu trace renorm nonzero nonzero_static unique_consecutive unique_dim
        unique_dim_consecutive _unique _unique2 bincount histc glu _aminmax hash_tensor
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
    if overload.base == "bincount":
        first = tensors.indices(rng, (rng.choice((0, 1, 5, 300)),), rng.choice((1, 7, 400)))
    given: dict[str, Any] = {}
    for argument in overload.arguments:
        if argument in overload.outs:
            continue
        kind, name = argument.type.removesuffix("?"), argument.name
        if kind == "Tensor":
            given[name] = None if "?" in argument.type and rng.random() < 0.5 else first
        elif name == "k":
            # For a 0-dim tensor the CPU's topk with k=0 returns an uninitialised element.
            given[name] = rng.choice((0, 1, 2, rng.randint(0, max(first.shape)))) if first.dim() else 1
        elif name in ("p", "ord"):
            given[name] = rng.choice((0, 1, 2, 2, 3, 0.5, -1, float("inf"), -float("inf"), 2.5))
        elif name in ("size", "bins", "minlength"):
            given[name] = rng.choice((0, 1, 3, 10, 100))
        elif name == "shifts":
            given["shifts"] = [rng.randint(-9, 9) for _ in range(rng.randint(1, max(first.dim(), 1)))]
        elif name == "dims" and "shifts" in given:
            given["dims"] = rng.sample(range(first.dim()), min(len(given["shifts"]), first.dim()))
        else:
            given[name] = plain(rng, argument, first)
    if overload.base == "topk":  # otherwise unordered
        given["sorted"] = True
    if "weights" in given and given["weights"] is not None:
        given["weights"] = tensors.tensor(rng, tuple(first.shape), values.dtype(rng), "normal")
    return call(rng, overload, given, stage)
