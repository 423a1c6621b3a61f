"""Calls of operators on lists of tensors: torch._foreach_* and the fused optimizers."""

from __future__ import annotations

import random
from typing import Any

import torch

from . import tensors, values
from .arguments import call, plain
from .calls import BACKWARD, FORWARD, Call
from .schemas import Overload

# Arguments of optimizers that are numbers of an ordinary size.
RATES = {"lr": 0.01, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "beta1": 0.9, "beta2": 0.99, "momentum": 0.9}


def is_of_lists(overload: Overload) -> bool:
    """Whether the overload is one of these."""
    return overload.name.startswith(("_foreach_", "_fused_ad", "_fused_sgd", "_amp_foreach_"))


def stage(rng: random.Random) -> str:
    """Whether gradients are computed, and how."""
    return rng.choices((FORWARD, BACKWARD), (5, 1))[0]


def make(rng: random.Random, overload: Overload) -> Call:
    """A call with lists of one length, mostly of the same shapes and dtypes."""
    optimizer = not overload.name.startswith("_foreach_")
    count = rng.choice((0, 1, 2, 3, 5, 40)) if rng.random() < 0.5 else rng.randint(1, 4)
    shapes = [tensors.shape(rng) for _ in range(min(count, 5))] * (count // 5 + 1)
    dtype = rng.choice(values.FLOATS) if optimizer and rng.random() < 0.95 else values.dtype(rng)
    palette = values.palette(rng, bounded=optimizer)
    # The CPU's optimizer kernels check nothing, and assume that every tensor is contiguous.
    mixed, plain_layout = not optimizer and rng.random() < 0.15, rng.random() < 0.6

    def make_list(argument_name: str) -> list[torch.Tensor]:
        length = count if optimizer or rng.random() < 0.98 else count + 1
        if argument_name == "state_steps":
            return [torch.tensor(float(rng.randint(0, 5))) for _ in range(length)]
        chosen = values.other_dtype(rng, dtype) if not optimizer and rng.random() < 0.1 else dtype
        return [
            tensors.tensor(
                rng,
                sizes if optimizer or rng.random() < 0.98 else tensors.broadcast(rng, sizes),
                values.other_dtype(rng, dtype) if mixed else chosen,
                "unit" if argument_name.endswith(("_sqs", "_sums")) else palette,
                plain_layout or optimizer,
            )
            for sizes in (shapes * 2)[:length]
        ]

    given: dict[str, Any] = {}
    like = torch.empty(0, dtype=dtype)
    for argument in overload.arguments:
        name, kind = argument.name, argument.type.removesuffix("?")
        if kind == "Tensor[]":
            given[name] = make_list(name)
        elif kind == "Scalar[]":
            given[name] = [values.scalar(rng, dtype) for _ in range(count if rng.random() < 0.97 else count + 1)]
        elif name in ("grad_scale", "found_inf") and "?" in argument.type:
            given[name] = None
        elif kind == "Tensor" and optimizer:
            given[name] = torch.tensor(rng.choice((0.0, 0.5, 1.0)))
        elif kind == "Tensor":
            sizes = rng.choice(((), (), (), (1,), (count,)))
            given[name] = tensors.tensor(rng, sizes, values.other_dtype(rng, dtype), palette)
        elif name in RATES:
            given[name] = RATES[name] if rng.random() < 0.8 else 0.0
        else:
            given[name] = plain(rng, argument, like)
    if given.get("amsgrad") is False:
        given["max_exp_avg_sqs"] = []
    return call(rng, overload, given, stage)
