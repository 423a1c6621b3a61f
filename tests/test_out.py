"""Tensors that are given for results: dtypes that the CPU casts to or refuses, and memory shared with inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.compare import assert_same_outcome
from support.names import words

aten = torch.ops.aten
Operator = Callable[..., Any]

# Of one tensor and nothing else.
ALONE = words(
    "abs angle ceil elu erf exp floor frac gelu hardshrink hardsigmoid hardswish hardtanh isinf leaky_relu logical_not "
    "mish neg reciprocal relu round sgn sigmoid sign signbit silu softplus softshrink sqrt tanh trunc"
)
# Operators of [3, 4] and a tensor for the result.
INTO: dict[str, Operator] = {name: getattr(aten, name).out for name in ALONE if hasattr(getattr(aten, name), "out")} | {
    "clamp": lambda x, out: aten.clamp.out(x, 0, 1, out=out),
    "clamp_min": lambda x, out: aten.clamp_min.out(x, 0, out=out),
    "clamp_max of a tensor": lambda x, out: aten.clamp_max.Tensor_out(x, x, out=out),
    "glu": lambda x, out: aten.glu.out(x, 1, out=out),
    "hardtanh_backward": lambda x, out: aten.hardtanh_backward.grad_input(x, x, 0, 1, grad_input=out),
    "lerp": lambda x, out: aten.lerp.Scalar_out(x, x, 0.5, out=out),
    "lerp of tensors": lambda x, out: aten.lerp.Tensor_out(x, x, x, out=out),
    "log_sigmoid": lambda x, out: aten.log_sigmoid_forward.output(x, output=out, buffer=x.new_empty(0))[0],
    "nansum": lambda x, out: aten.nansum.out(x, [1], out=out),
    "nonzero_static": lambda x, out: aten.nonzero_static.out(x, size=2, out=out),
    "round to decimals": lambda x, out: aten.round.decimals_out(x, decimals=1, out=out),
    "where": lambda x, out: aten.where.self_out(x > 0, x, x, out=out),
    "rsub": lambda x, out: aten.rsub.Tensor_out(x, x, out=out),
    "rsub of a number": lambda x, out: aten.rsub.Scalar_out(x, 2, out=out),
    "threshold": lambda x, out: aten.threshold.out(x, 0, 1, out=out),
}


def quiet(function: Operator) -> Operator:
    """Without the warning that a result was resized."""

    def run(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return run


# Of these the CPU says either that it does not take integers, or that the result is of another dtype.
ONLY_FLOATS = {"lerp of tensors", "round to decimals"} | set(
    words(
        "elu frac gelu glu hardshrink hardsigmoid hardswish hardtanh_backward leaky_relu lerp log_sigmoid mish silu "
        "softplus softshrink"
    )
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, torch.float32) for name in INTO] + [(name, torch.int64) for name in INTO if name not in ONLY_FLOATS],
)
def test_dtypes(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=dtype)
    for other in (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool):
        assert_same_outcome(quiet(lambda x, out: INTO[name](x, out=out)), x, torch.empty(0, dtype=other))


# Operators of 0-5 as [3, 2], and where their results may not be.
SHARING: dict[str, Operator] = {
    "max values": lambda x: torch.max(x, 1, out=(x.view(-1)[:3], torch.empty_like(x[:, 0]))),
    "min indices": lambda x: torch.min(x, 1, out=(torch.empty_like(x[:, 0]), x.view(-1)[3:])),
    "aminmax": lambda x: torch.aminmax(x, dim=1, out=(torch.empty_like(x[:, 0]), x.view(-1)[:3])),
    "median": lambda x: torch.median(x, 1, out=(x.view(-1)[:3], torch.empty_like(x[:, 0]))),
    "nanmedian": lambda x: torch.nanmedian(x, 1, out=(torch.empty_like(x[:, 0]), x.view(-1)[:3])),
    "mode": lambda x: torch.mode(x, 1, out=(x.view(-1)[:3], torch.empty_like(x[:, 0]))),
    "kthvalue": lambda x: torch.kthvalue(x, 1, 1, out=(x.view(-1)[:3], torch.empty_like(x[:, 0]))),
    "topk": lambda x: torch.topk(x, 1, 0, out=(x[:1], torch.empty_like(x[:1]))),
    "sort": lambda x: torch.sort(x[:2], 1, out=(x.view(-1)[1:5].view(2, 2), torch.empty_like(x[:2]))),
    "sort in place": lambda x: torch.sort(x, 1, descending=True, out=(x, torch.empty_like(x))),
    "cumsum": lambda x: torch.cumsum(x[:2], 1, out=x.view(-1)[1:5].view(2, 2)),
    "cumprod": lambda x: torch.cumprod(x[:2], 1, out=x.view(-1)[1:5].view(2, 2)),
    "cumsum in place": lambda x: torch.cumsum(x, 1, out=x),
    "nonzero": lambda x: torch.nonzero(x[:2], out=x.view(-1)[1:4].view(3, 1)),
    "cross": lambda x: torch.linalg.cross(x.view(-1)[:3], x.view(-1)[3:], out=x.view(-1)[1:4]),
}


@pytest.mark.parametrize("name", SHARING)
def test_shared_memory(name: str) -> None:
    assert_same_outcome(quiet(SHARING[name]), torch.arange(6).view(3, 2))


@pytest.mark.parametrize("name", ["logcumsumexp", "renorm"])
def test_shared_memory_of_floats(name: str) -> None:
    numbers = [1] if name == "logcumsumexp" else [1, 1, 1]
    function = lambda x: getattr(torch, name)(x[:2], *numbers, out=x.view(-1)[1:5].view(2, 2))  # noqa: E731
    assert_same_outcome(function, torch.arange(6.0).view(3, 2))
