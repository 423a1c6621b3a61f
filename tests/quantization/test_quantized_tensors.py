"""Quantised tensors and the linear layers that quantise their input."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.compare import assert_same_error
from tests.support.memory import allocated

# Quantisation in eager mode warns that it moves to another package.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.ao.quantization is deprecated.*"),
    pytest.mark.filterwarnings("ignore:.*For migrations of users.*"),
    pytest.mark.filterwarnings("ignore:.*torch.per_tensor_.*"),
]
DTYPES = [torch.qint8, torch.quint8, torch.qint32]


def assert_same_quantised(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """The same integers, scales, zero points and layout."""
    assert ours.device.type == "dml" and ours.is_quantized and ours.dtype == theirs.dtype
    assert (ours.shape, ours.stride(), ours.qscheme()) == (theirs.shape, theirs.stride(), theirs.qscheme())
    if theirs.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        assert (ours.q_scale(), ours.q_zero_point()) == (theirs.q_scale(), theirs.q_zero_point())
    else:
        assert ours.q_per_channel_axis() == theirs.q_per_channel_axis()
        assert torch.equal(ours.q_per_channel_scales().cpu(), theirs.q_per_channel_scales())
        assert torch.equal(ours.q_per_channel_zero_points().cpu(), theirs.q_per_channel_zero_points())
    integers, numbers = ours.int_repr(), ours.dequantize()
    assert integers.device.type == numbers.device.type == "dml"
    assert torch.equal(integers.cpu(), theirs.int_repr()) and integers.stride() == theirs.int_repr().stride()
    assert torch.equal(numbers.cpu(), theirs.dequantize()) and numbers.stride() == theirs.dequantize().stride()


def numbers(*sizes: int) -> torch.Tensor:
    """Numbers, some of them midpoints between two integers with scale 0.25, some out of range."""
    x = 8 * torch.randn(sizes)
    flat = x.view(-1)
    count = min(40, flat.numel())
    flat[:count] = (torch.arange(count) - 20) * 0.125
    flat[-3:] = torch.tensor([1e6, -1e6, 0.0])
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("zero", [0, 3, 100])
def test_one_scale(dtype: torch.dtype, zero: int) -> None:
    x = numbers(7, 33)
    for view in (x, x.t(), x[:, ::2], x[0], x[0, 0], x[:0], x.view(1, 7, 3, 11).to(memory_format=torch.channels_last)):
        ours = torch.quantize_per_tensor(view.to("dml"), 0.25, zero, dtype)
        assert_same_quantised(ours, torch.quantize_per_tensor(view, 0.25, zero, dtype))


def test_far_from_zero() -> None:
    x = torch.tensor([float("inf"), -float("inf"), 3e38, 2147483500.0, -2147483648.0, 1e9])
    for dtype in DTYPES:
        ours = torch.quantize_per_tensor(x.to("dml"), 1.0, 0, dtype)
        assert_same_quantised(ours, torch.quantize_per_tensor(x, 1.0, 0, dtype))
    q = torch.quantize_per_tensor(torch.tensor([5e8, 1.0]), 1.0, 123_456_789, torch.qint32)
    assert torch.equal(q.to("dml").dequantize().cpu(), q.dequantize())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_and_strange_scales(dtype: torch.dtype) -> None:
    x = torch.full((35,), torch.nan)
    assert_same_quantised(
        torch.quantize_per_tensor(x.to("dml"), 0.1, 2, dtype), torch.quantize_per_tensor(x, 0.1, 2, dtype)
    )
    # PyTorch's CPU kernel for float zero points crashes the process with int32.
    for zeros in (torch.zeros(1, dtype=torch.int64), torch.zeros(1))[: 1 if dtype == torch.qint32 else 2]:
        ours = torch.quantize_per_channel(x[None].to("dml"), torch.ones(1), zeros, 0, dtype)
        theirs = torch.quantize_per_channel(x[None], torch.ones(1), zeros, 0, dtype)
        assert torch.equal(ours.int_repr().cpu(), theirs.int_repr())
    for scale in (0.0, -0.5, 1e-42, 1e38):
        y = torch.randn(40)
        ours = torch.quantize_per_tensor(y.to("dml"), scale, 0, dtype)
        assert torch.equal(ours.int_repr().cpu(), torch.quantize_per_tensor(y, scale, 0, dtype).int_repr())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scales_known_as_tensors(dtype: torch.dtype) -> None:
    x, scale, zero = numbers(5, 7), torch.tensor(0.25), torch.tensor(2)
    ours = torch.quantize_per_tensor(x.to("dml"), scale.to("dml"), zero.to("dml"), dtype)
    assert_same_quantised(ours, torch.quantize_per_tensor(x, scale, zero, dtype))
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    both = torch.quantize_per_tensor([x.to("dml"), x.t().to("dml")], scales.to("dml"), zeros.to("dml"), dtype)
    for one, other in zip(both, torch.quantize_per_tensor([x, x.t()], scales, zeros, dtype), strict=True):
        assert_same_quantised(one, other)


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8], ids=str)
@pytest.mark.parametrize("reduce_range", [False, True])
def test_a_scale_from_the_range(dtype: torch.dtype, reduce_range: bool) -> None:
    x = torch.randn(9, 13)
    ours = torch.quantize_per_tensor_dynamic(x.to("dml"), dtype, reduce_range)
    assert_same_quantised(ours, torch.quantize_per_tensor_dynamic(x, dtype, reduce_range))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_scale_a_channel(dtype: torch.dtype, axis: int) -> None:
    x = numbers(3, 4, 5)
    scales = torch.rand(x.shape[axis], dtype=torch.float64) + 0.01
    zeros = torch.arange(x.shape[axis])
    ours = torch.quantize_per_channel(x.to("dml"), scales.to("dml"), zeros.to("dml"), axis, dtype)
    assert ours.q_per_channel_scales().device.type == "dml"
    assert_same_quantised(ours, torch.quantize_per_channel(x, scales, zeros, axis, dtype))


def test_zero_points_that_are_floats() -> None:
    x, scales, zeros = torch.randn(6, 8), torch.rand(6) + 0.05, torch.rand(6) * 4
    ours = torch.quantize_per_channel(x.to("dml"), scales.to("dml"), zeros.to("dml"), 0, torch.quint8)
    assert_same_quantised(ours, torch.quantize_per_channel(x, scales, zeros, 0, torch.quint8))


def per_tensor() -> torch.Tensor:
    return torch.quantize_per_tensor(numbers(4, 6), 0.25, 3, torch.quint8)


def per_channel() -> torch.Tensor:
    return torch.quantize_per_channel(numbers(4, 6), torch.rand(4) + 0.1, torch.arange(4), 0, torch.qint8)


@pytest.mark.parametrize("make", [per_tensor, per_channel])
def test_copies(make: Callable[[], torch.Tensor]) -> None:
    q = make()
    ours = q.to("dml")
    assert_same_quantised(ours, q)
    assert_same_quantised(ours.clone(), q)
    assert_same_quantised(copy.deepcopy(ours), q)
    back = ours.cpu()
    assert back.is_quantized and torch.equal(back.int_repr(), q.int_repr()) and back.qscheme() == q.qscheme()
    empty = torch.empty_quantized([4, 6], ours, device="dml")
    assert_same_quantised(empty.copy_(q), q)
    assert_same_quantised(torch.empty_like(ours).copy_(ours), q)
    assert str(q.int_repr().tolist()) == str(ours.int_repr().tolist()) and "size=(4, 6)" in repr(ours)


def test_copies_of_floats_are_quantised() -> None:
    x = numbers(4, 6)
    q = torch._empty_affine_quantized([4, 6], scale=0.25, zero_point=3, dtype=torch.quint8)
    ours = torch._empty_affine_quantized([4, 6], scale=0.25, zero_point=3, dtype=torch.quint8, device="dml")
    assert_same_quantised(ours.copy_(x.to("dml")), q.copy_(x))
    assert_same_error(lambda t: torch.empty_like(t.dequantize()).copy_(t), q)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda q: q.view(2, 12),
    "reshape": lambda q: q.t().reshape(3, 8),
    "transpose": lambda q: q.t(),
    "slice": lambda q: q[1:3, ::2],
    "select": lambda q: q[1],
    "unsqueeze": lambda q: q.unsqueeze(1),
    "squeeze": lambda q: q.unsqueeze(1).squeeze(1),
    "expand": lambda q: q.unsqueeze(0).expand(3, 4, 6),
    "as_strided": lambda q: q.as_strided((2, 2), (1, 3), 2),
    "contiguous": lambda q: q.t().contiguous(),
    "unfold": lambda q: q.unfold(1, 2, 2),
    "detach": lambda q: q.detach(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    q = per_tensor()
    assert_same_quantised(VIEWS[name](q.to("dml")), VIEWS[name](q))


def test_integers_become_quantised_tensors() -> None:
    levels = torch.randint(-100, 100, (4, 6), dtype=torch.int8)
    scales, zeros = torch.rand(6) + 0.1, torch.arange(6)
    assert_same_quantised(
        torch._make_per_tensor_quantized_tensor(levels.to("dml"), 0.5, 3),
        torch._make_per_tensor_quantized_tensor(levels, 0.5, 3),
    )
    assert_same_quantised(
        torch._make_per_channel_quantized_tensor(levels.to("dml"), scales.to("dml"), zeros.to("dml"), 1),
        torch._make_per_channel_quantized_tensor(levels, scales, zeros, 1),
    )


@pytest.mark.allow_fallback
def test_other_operators_run_on_the_cpu() -> None:
    q = per_tensor()
    assert_same_quantised(torch.relu(q.to("dml")), torch.relu(q))
    ours = torch.ops.quantized.add(q.to("dml"), q.to("dml"), 0.5, 1)
    assert_same_quantised(ours, torch.ops.quantized.add(q, q, 0.5, 1))
    assert_same_quantised(torch.cat([q.to("dml"), q.to("dml")]), torch.cat([q, q]))
    rows = torch.tensor([2, 0])
    assert_same_quantised(q.to("dml")[rows.to("dml")], q[rows])
    assert_same_quantised(q.to("dml").fill_(1.5), q.clone().fill_(1.5))
    assert_same_quantised(q.to("dml").sort()[0], q.sort()[0])
    for wrong in (lambda t: t + t, lambda t: t.zero_()):
        assert_same_error(wrong, q)
        with pytest.raises(NotImplementedError, match=r"Could not run 'aten::(add|zero_)"):
            wrong(q.to("dml"))


def test_resize() -> None:
    q = per_tensor()
    assert torch.equal(q.to("dml").resize_(2, 3).int_repr().cpu(), q.clone().resize_(2, 3).int_repr())
    assert q.to("dml").resize_(9, 9).dequantize().shape == (9, 9)


def test_errors() -> None:
    x = torch.randn(3, 4)
    assert_same_error(lambda t: torch.quantize_per_tensor(t, 0.1, 300, torch.quint8), x)
    assert_same_error(lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.int8), x)
    assert_same_error(lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8), x.double())
    assert_same_error(lambda t: torch.quantize_per_channel(t, torch.ones(5), torch.zeros(5), 0, torch.qint8), x)
    for zero in (-1, 256):
        zeros = torch.tensor([0, zero, 0])
        assert_same_error(lambda t, z=zeros: torch.quantize_per_channel(t, torch.ones(3), z, 0, torch.quint8), x)
        empty = partial(
            torch._empty_per_channel_affine_quantized,
            [3, 4],
            scales=torch.ones(3),
            zero_points=zeros,
            axis=0,
            dtype=torch.quint8,
        )
        assert_same_error(lambda t, empty=empty: empty(device=t.device).copy_(t), x)
    for dtype in (torch.float64, torch.complex64, torch.float8_e5m2):
        for make in (per_tensor, per_channel):
            assert_same_error(lambda t, dtype=dtype: t.copy_(x[:1, :1].to(t.device, dtype)), make())
    assert_same_error(lambda t: t.copy_(x[:1, :2].to(t.device)), per_tensor())
    assert_same_error(lambda t: t.copy_(per_channel().to(t.device)), per_tensor())
    nibbles = torch.quantize_per_channel(x, torch.rand(3) + 0.1, torch.rand(3), 0, torch.quint4x2)
    for refused in (
        lambda: nibbles.to("dml"),
        lambda: torch.quantize_per_tensor(x.to("dml"), 0.1, 0, torch.quint4x2),
        lambda: torch.quantize_per_channel(x.to("dml"), torch.rand(3), torch.rand(3), 0, torch.quint4x2),
    ):
        with pytest.raises(NotImplementedError, match="QUInt4x2 are not supported on dml"):
            refused()


def quantised(model: nn.Module, dtype: torch.dtype = torch.qint8) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=dtype)


@pytest.mark.parametrize("rows", [(1,), (5,), (70,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_dynamic_linear(rows: tuple[int, ...], bias: bool) -> None:
    layer = quantised(nn.Sequential(nn.Linear(37, 21, bias=bias)))
    x = torch.randn(*rows, 37)
    expected, got = layer(x), layer(x.to("dml"))
    assert got.device.type == "dml" and got.shape == expected.shape and got.stride() == expected.stride()
    # Some of the CPU's kernels quantise the input more finely than requested.
    step = 2 * float(x.max() - x.min()) / 127 if x.numel() else 0.0
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=step * 0.3 + 1e-5)
    with_scale = torch.quantize_per_tensor_dynamic(x, torch.quint8, True).dequantize() if x.numel() else x
    weight, biases = layer[0].weight(), layer[0].bias()  # type: ignore[operator]
    exact = torch.nn.functional.linear(
        with_scale.double(), weight.dequantize().double(), biases.double() if bias else None
    )
    torch.testing.assert_close(got.cpu().double(), exact, rtol=1e-5, atol=1e-5)


def test_dynamic_linear_with_zero_points_and_relu() -> None:
    x, weight, bias = torch.randn(6, 16), torch.randn(8, 16), torch.randn(8)
    one = torch.quantize_per_tensor(weight, 0.03, 7, torch.qint8)
    each = torch.quantize_per_channel(weight, torch.rand(8) / 50 + 0.02, torch.arange(8) - 4, 0, torch.qint8)
    for quantised_weight in (one, each):
        packed = torch.ops.quantized.linear_prepack(quantised_weight, bias)
        for function, finish in (
            (torch.ops.quantized.linear_dynamic, lambda y: y),
            (torch.ops.quantized.linear_relu_dynamic, torch.relu),
        ):
            got = function(x.to("dml"), packed, False)
            rounded = torch.quantize_per_tensor_dynamic(x, torch.quint8, False).dequantize().double()
            exact = finish(torch.nn.functional.linear(rounded, quantised_weight.dequantize().double(), bias.double()))
            torch.testing.assert_close(got.cpu().double(), exact, rtol=1e-5, atol=1e-5)


def test_dynamic_linear_of_float16() -> None:
    layer = quantised(nn.Sequential(nn.Linear(37, 21), nn.ReLU()), torch.float16)
    x = torch.randn(5, 37)
    torch.testing.assert_close(layer(x.to("dml")).cpu(), layer(x), rtol=1e-5, atol=1e-5)


def test_a_storage_of_another_device_is_refused() -> None:
    q = torch.quantize_per_tensor(torch.randn(4), 0.1, 2, torch.qint8).to("dml")
    other = torch.zeros(4, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="different device"):
        q.set_(other.untyped_storage(), 0, (4,), (1,))
    q.set_(other.to("dml").untyped_storage(), 1, (2,), (1,))
    assert q.int_repr().tolist() == [0, 0]


def test_the_weights_and_not_the_operator_say_what_a_dynamic_layer_computes() -> None:
    x, weight, run = torch.randn(6, 16), torch.randn(8, 16), torch.ops.quantized
    of_int8 = run.linear_prepack(torch.quantize_per_tensor(weight, 0.03, 7, torch.qint8), None)
    of_float16 = run.linear_prepack_fp16(weight, None)
    there = x.to("dml")
    for packed in (of_int8, of_float16):
        want = run.linear_dynamic(there, packed).cpu()
        assert torch.equal(run.linear_dynamic_fp16(there, packed).cpu(), want)
        assert torch.equal(run.linear_relu_dynamic(there, packed).cpu(), want.relu())
        assert torch.equal(run.linear_relu_dynamic_fp16(there, packed).cpu(), want.relu())
        torch.testing.assert_close(want, run.linear_dynamic(x, packed), rtol=1e-5, atol=0.05)


def test_weights_go_with_their_layer() -> None:
    x = torch.randn(4, 16, device="dml")

    quantised(nn.Sequential(nn.Linear(16, 8)))(x)
    before = allocated()
    layer = quantised(nn.Sequential(nn.Linear(16, 4096)))
    layer(x)
    assert allocated() >= before + 16 * 4096
    alive = weakref.ref(layer)
    del layer
    assert allocated() >= before and alive() is None
    quantised(nn.Sequential(nn.Linear(16, 8)))(x)  # The next layer's weights reuse their memory.
    assert allocated() < before + 16 * 4096


def test_dynamic_linear_of_a_transposed_input() -> None:
    layer, x = quantised(nn.Sequential(nn.Linear(37, 21))), torch.randn(37, 5)
    assert torch.equal(layer(x.to("dml").t()), layer(x.t().contiguous().to("dml")))


def test_dynamic_linear_has_no_gradient() -> None:
    layer = quantised(nn.Sequential(nn.Linear(8, 4)))
    x = torch.randn(2, 8, device="dml", requires_grad=True)
    with pytest.warns(UserWarning, match="does not have|not registered|autograd kernel"):
        layer(x).sum().backward()
    assert x.grad is None


def test_dynamic_linear_refuses_other_sizes_and_dtypes() -> None:
    layer = quantised(nn.Sequential(nn.Linear(16, 8)))
    with pytest.raises(RuntimeError, match="of 16 inputs"):
        layer(torch.randn(2, 15, device="dml"))
    with pytest.raises(RuntimeError, match="larger than or equal to 2"):
        layer(torch.randn(16, device="dml"))
    with pytest.raises(RuntimeError, match="Float"):
        layer(torch.randn(2, 16, device="dml", dtype=torch.float16))
