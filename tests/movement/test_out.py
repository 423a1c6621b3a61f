"""`out=` tensors: dtypes to which the CPU casts or which it refuses, and overlap with inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support.compare import assert_same_outcome
from tests.support.names import words

aten = torch.ops.aten
Operator = Callable[..., Any]

# Operators of a single tensor.
ALONE = words(
    "abs angle ceil elu erf exp floor frac gelu hardshrink hardsigmoid hardswish hardtanh isinf leaky_relu logical_not "
    "mish neg reciprocal relu round sgn sigmoid sign signbit silu softplus softshrink sqrt tanh trunc"
)
# Operators of [3, 4] and an `out=` tensor.
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
    """Without the warning that an `out=` tensor was resized."""

    def run(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return run


# For these the CPU reports either that integers are not supported, or that the result has another
# dtype.
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


# Operators of 0-5 as [3, 2], with results that overlap the input in a way that is not allowed.
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
    "one element": lambda x: x.add_(x.view(-1)[0]),
    "one element as a row": lambda x: torch.maximum(x[0], x[0, :1], out=x[0]),
    "one element, another view": lambda x: x[0, :1].view(1, 1).mul_(x[0, 0]),
    "itself": lambda x: x.mul_(x),
    "take, expanded and resized": lambda x: torch.take(x, x.new_tensor([0, 1]), out=x.new_zeros(1).expand(5)),
    "rsub into what is subtracted": lambda x: aten.rsub.Tensor_out(x, x[0, 0], alpha=3, out=x),
    "rsub into a part of both": lambda x: aten.rsub.Tensor_out(x[:2], x[1:], out=x.view(-1)[1:5].view(2, 2)),
    "expanded and resized": lambda x: torch.add(x, 1, out=x.new_zeros(1, 2).expand(4, 2)),
    "expanded and resized, divided": lambda x: torch.div(
        x, x + 1, rounding_mode="floor", out=x.new_zeros(1, 2).expand(4, 2)
    ),
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


# Operators of [3, 4] and an `out=` tensor, which they check as it is given: some before it is
# resized.
JUDGED: dict[str, Operator] = {
    "abs": lambda x, out: aten.abs.out(x, out=out),
    "add": lambda x, out: aten.add.out(x, x, out=out),
    "atan2": lambda x, out: aten.atan2.out(x, x, out=out),
    "frexp": lambda x, out: aten.frexp.Tensor_out(x, mantissa=out, exponent=x.new_empty(0, dtype=torch.int32))[0],
    "pow of a number": lambda x, out: aten.pow.Scalar_out(2, x, out=out),
    "pow of 1": lambda x, out: aten.pow.Scalar_out(1, x, out=out),
    "relu": lambda x, out: aten.relu.out(x, out=out),
    "rsub of a number": lambda x, out: aten.rsub.Scalar_out(x, 2, out=out),
    "tanh_backward": lambda x, out: aten.tanh_backward.grad_input(x, x, grad_input=out),
    "threshold": lambda x, out: aten.threshold.out(x, 0, 1, out=out),
    "threshold_backward": lambda x, out: aten.threshold_backward.grad_input(x, x, 0, grad_input=out),
}


@pytest.mark.parametrize("name", JUDGED)
def test_expanded_results_of_other_shapes(name: str) -> None:
    x = torch.tensor([[1.0, 0.5, -1.0, 2.0]] * 3).t().contiguous().t()
    run = quiet(lambda x, out: JUDGED[name](x, out.expand(2, 5)))
    assert_same_outcome(run, x, torch.zeros(5))
    assert_same_outcome(quiet(lambda x, out: JUDGED[name](x, out)), x, torch.zeros(7))


@pytest.mark.parametrize("other", [torch.float32, torch.bool, torch.int64], ids=str)
def test_powers_of_one_are_of_every_dtype(other: torch.dtype) -> None:
    for dtype in (torch.float32, torch.bool, torch.int32):
        x = torch.ones(3, dtype=dtype)
        assert_same_outcome(quiet(JUDGED["pow of 1"]), x, torch.zeros(3, dtype=other))


def test_places_of_one_element() -> None:
    """As on the CPU, a single element is only considered the same memory if it has the same
    strides.
    """
    for view in (
        lambda x: x[2:3],
        lambda x: x[2],
        lambda x: x[2:3].view(1, 1),
        lambda x: x[2:3].as_strided((1,), (7,)),
    ):
        for function in (torch.Tensor.eq_, torch.Tensor.atan2_, torch.Tensor.add_):
            assert_same_outcome(lambda x, f=function, v=view: f(x[2:], v(x)), torch.arange(5.0))
            assert_same_outcome(lambda x, f=function, v=view: f(x[2:3], v(x)), torch.arange(5.0))


def test_two_results_of_which_one_is_resized() -> None:
    x = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(1)).permute(2, 0, 1)
    for exponent in (torch.empty(2, 4, 3, dtype=torch.int32), torch.empty(3, 2, 4, dtype=torch.int32).permute(1, 2, 0)):
        assert_same_outcome(
            quiet(lambda x, m, e: aten.frexp.Tensor_out(x, mantissa=m, exponent=e)), x, torch.empty(5), exponent
        )


ORDER: dict[str, Operator] = {
    "renorm, dimension": lambda x, out: aten.renorm.out(x, 2, 9, 1.5, out=out),
    "renorm of integers": lambda x, out: aten.renorm.out(x.int(), 2, 0, 1.5, out=out),
    "hash_tensor, dimension": lambda x, out: aten.hash_tensor.out(x, [9], out=out),
    "hash_tensor, mode": lambda x, out: aten.hash_tensor.out(x, [0], mode=3, out=out),
    "index, nothing there": lambda x, out: aten.index.Tensor_out(x[:0], [x[0, :1].long()], out=out),
    "index, mask": lambda x, out: aten.index.Tensor_out(x, [x[0] > 0], out=out),
    "index, floats": lambda x, out: aten.index.Tensor_out(x, [x[0]], out=out),
    "index, shapes": lambda x, out: aten.index.Tensor_out(x, [x[0, :2].long(), x[0].long()], out=out),
    "nan_to_num of integers": lambda x, out: aten.nan_to_num.out(x.int(), out=out),
}


@pytest.mark.parametrize("name", ORDER)
def test_which_of_two_errors(name: str) -> None:
    """The dtype and the memory of the result are checked before the arguments, or after them, as on
    the CPU.
    """
    x = torch.ones(2, 3)
    for out in (torch.empty(0, dtype=torch.int16), torch.empty(0), torch.empty(0, dtype=torch.int32)):
        assert_same_outcome(quiet(ORDER[name]), x, out)
    for dtype in (torch.float32, torch.int32):
        for size in (2, 4):
            run = quiet(lambda x, out, size=size: ORDER[name](x, out.expand(size, 3)))
            assert_same_outcome(run, x, torch.zeros(1, 3, dtype=dtype))


def test_integers_without_nan_into_themselves() -> None:
    for view in (lambda x: x.expand(2, 3), lambda x: x[1:]):
        assert_same_outcome(lambda x, v=view: (y := v(x), aten.nan_to_num.out(y, out=y))[1], torch.arange(3))
    assert_same_outcome(lambda x: aten.nan_to_num.out(x[1:], out=x[:2]), torch.arange(3))


def test_log_sigmoid_into_a_resized_result() -> None:
    x = torch.rand(3, 2, 4).permute(2, 0, 1)
    run = quiet(lambda x, out: aten.log_sigmoid_forward.output(x, output=out, buffer=torch.empty_like(out))[0])
    for out in (torch.empty(0), torch.empty(2, 4, 3).permute(1, 2, 0), torch.empty(40)):
        assert_same_outcome(run, x, out)
