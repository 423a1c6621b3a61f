"""Fake quantisation and products with quantised weights, compared with the CPU or float64."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.quantization import _quantized_conversions as conversions

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome, to_device
from tests.support.dtypes import FLOATS, HALVES, dtypes
from tests.support.environment import TORCH
from tests.support.layouts import lay_out, layouts
from tests.support.processes import run_python

SPECIAL = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1e30, -1e30])


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed numbers, including midpoints between levels, which round to even."""
    x = torch.randn(sizes) * 3
    return torch.where(torch.rand(sizes) < 0.3, (x * 2).round() / 2, x).to(dtype)


@pytest.mark.smoke
@dtypes(FLOATS)
def test_fake_quantize_per_tensor(dtype: torch.dtype) -> None:
    x = numbers(7, 33, dtype=dtype)
    x.flatten()[: len(SPECIAL)] = SPECIAL.to(dtype)
    for scale, zero, low, high in [(1.0, 0, -128, 127), (0.1, 3, 0, 255), (0.037, -5, -8, 7), (2.5, 0, 0, 0)]:
        function = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask
        assert_same_outcome(lambda x, p=(scale, zero, low, high), f=function: f(x, *p), x, widen=False)


@layouts()
def test_fake_quantize_of_layouts(layout: str) -> None:
    x = lay_out(numbers(2, 3, 4, 5), layout)
    assert_same_outcome(lambda x: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, -8, 7), x)
    if x.dim() > 1:
        scale, zero = torch.rand(x.shape[1]) + 0.1, torch.randint(-4, 4, (x.shape[1],), dtype=torch.int32)
        function = torch.ops.aten.fake_quantize_per_channel_affine_cachemask
        assert_same_outcome(lambda x, s, z: function(x, s, z, 1, -8, 7), x, scale, zero, widen=False)


@dtypes(FLOATS)
def test_fake_quantize_of_tensors(dtype: torch.dtype) -> None:
    function = torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    x = numbers(5, 9, dtype=dtype)
    x.flatten()[: len(SPECIAL)] = SPECIAL.to(dtype)
    for zero in (torch.tensor([3], dtype=torch.int32), torch.tensor(-2), torch.tensor([1.75])):
        for on in (torch.tensor([1]), torch.tensor([0]), torch.tensor(1, dtype=torch.uint8)):
            scale = torch.tensor([0.3])
            assert_same_outcome(lambda *t, f=function: f(*t, -10, 12), x, scale, zero, on, widen=False)


@dtypes(FLOATS)
def test_fake_quantize_per_channel(dtype: torch.dtype) -> None:
    function = torch.ops.aten.fake_quantize_per_channel_affine_cachemask
    x = numbers(4, 6, 5, dtype=dtype)
    x.flatten()[: len(SPECIAL)] = SPECIAL.to(dtype)
    for axis in range(3):
        size = x.shape[axis]
        scale, integers = torch.rand(size) + 0.05, torch.randint(-8, 8, (size,), dtype=torch.int32)
        for zero in (integers, integers.float(), integers.half()):
            assert_same_outcome(lambda *t, a=axis, f=function: f(*t, a, -8, 7), x, scale, zero, widen=False)


def test_gradients_of_fake_quantize() -> None:
    x = numbers(3, 4, 5).requires_grad_()
    assert_matches_cpu(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 2, -8, 7), x, widen=False)
    scale, zero = torch.rand(4) + 0.05, torch.randint(-8, 8, (4,), dtype=torch.int32)
    assert_matches_cpu(
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, -8, 7), x, scale, zero, widen=False
    )


def test_learnt_quantisation_per_tensor() -> None:
    x = numbers(6, 7).requires_grad_()
    for scale, zero, factor in [(0.4, 1.3, 1.0), (0.05, -3.5, 0.25), (1.0, 40.0, 2.0)]:
        parameters = [torch.tensor([value]).requires_grad_() for value in (scale, zero)]
        assert_matches_cpu(
            lambda x, s, z, f=factor: torch._fake_quantize_learnable_per_tensor_affine(x, s, z, -8, 7, f),
            x,
            *parameters,
            widen=False,
            terms=10.0,
        )


def test_learnt_quantisation_per_channel() -> None:
    for axis in range(3):
        x = numbers(3, 4, 5).requires_grad_()
        scale = (torch.rand(x.shape[axis]) + 0.1).requires_grad_()
        zero = (torch.randn(x.shape[axis]) * 3).requires_grad_()
        assert_matches_cpu(
            lambda x, s, z, a=axis: torch._fake_quantize_learnable_per_channel_affine(x, s, z, a, -8, 7, 0.5),
            x,
            scale,
            zero,
            widen=False,
            terms=10.0,
        )


def test_fake_quantize_of_nothing() -> None:
    x = torch.zeros(0, 3)
    assert_same_outcome(lambda x: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, -8, 7), x)
    function = torch._fake_quantize_learnable_per_tensor_affine
    assert_matches_cpu(
        lambda x, s, z: function(x, s, z, -8, 7),
        x.requires_grad_(),
        torch.ones(1).requires_grad_(),
        torch.zeros(1).requires_grad_(),
        widen=False,
    )


def test_errors_of_fake_quantize() -> None:
    x, scale, zero = torch.randn(3, 4), torch.rand(4), torch.zeros(4, dtype=torch.int32)
    tensor = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask
    channel = torch.ops.aten.fake_quantize_per_channel_affine_cachemask
    assert_same_error(lambda x: tensor(x, 1.0, 0, 3, 2), x)
    assert_same_error(lambda x: tensor(x, 1.0, 9, 0, 7), x)
    assert_same_error(lambda x: tensor(x, 1.0, 0, 0, 7), x.long())
    assert_same_error(lambda *t: channel(*t, 1, 3, 2), x, scale, zero)
    assert_same_error(lambda *t: channel(*t, 1, 1, 7), x, scale, zero)
    assert_same_error(lambda *t: channel(*t, 0, 0, 7), x, scale, zero)
    assert_same_error(lambda *t: channel(*t, 1, 0, 7), x, scale.double(), zero)
    assert_same_error(lambda *t: channel(*t, 1, 0, 7), x, scale, zero.long())
    assert_same_error(lambda *t: channel(*t, 1, 0, 7), x, scale[None], zero)
    assert_same_error(lambda *t: channel(*t, 1, 0, 7), x, scale[:3], zero)


def observed(x: torch.Tensor, *state: torch.Tensor, rows: bool, symmetric: bool, low: int, high: int) -> list:
    """Three batches, the last one much wider: results, and the final state."""
    results = []
    for factor in (1.0, 0.5, 20.0):
        results += torch.ops.aten._fused_moving_avg_obs_fq_helper(
            x * factor, *state, 0.1, low, high, 0, rows, symmetric
        )
        results += [t.clone() for t in state]
    return results


def state_of(channels: int, observing: int = 1, quantizing: int = 1) -> list[torch.Tensor]:
    infinite = torch.full((channels,), float("inf"))
    switches = [torch.tensor([observing]), torch.tensor([quantizing])]
    return [*switches, infinite, -infinite, torch.ones(channels), torch.zeros(channels, dtype=torch.int32)]


@pytest.mark.smoke
@pytest.mark.parametrize("rows", [False, True], ids=["tensor", "rows"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["affine", "symmetric"])
def test_observer(rows: bool, symmetric: bool) -> None:
    x = numbers(6, 11)
    for low, high in [(0, 255), (-128, 127), (-8, 7)]:
        for shift in (0.0, 5.0, -5.0):
            assert_same_outcome(
                lambda *t, a=low, b=high: observed(*t, rows=rows, symmetric=symmetric, low=a, high=b),
                x + shift,
                *state_of(6 if rows else 1),
                widen=False,
            )


def test_observer_of_narrow_ranges() -> None:
    for x in (numbers(4, 5) * 1e-6, numbers(4, 5).abs() * 1e-6, -numbers(4, 5).abs() * 1e-6, torch.zeros(4, 5)):
        for rows in (False, True):
            assert_same_outcome(
                lambda *t, r=rows: observed(*t, rows=r, symmetric=False, low=0, high=255),
                x,
                *state_of(4 if rows else 1),
                widen=False,
            )


@pytest.mark.parametrize(("observing", "quantizing"), [(0, 1), (1, 0), (0, 0)])
def test_switches_of_the_observer(observing: int, quantizing: int) -> None:
    for rows in (False, True):
        state = state_of(6 if rows else 1, observing, quantizing)
        state[2:4] = [torch.full_like(state[2], -2.0), torch.full_like(state[3], 3.0)]
        assert_same_outcome(
            lambda *t, r=rows: observed(*t, rows=r, symmetric=False, low=0, high=255),
            numbers(6, 11),
            *state,
            widen=False,
        )


def test_gradients_of_the_observer() -> None:
    x = numbers(6, 11).requires_grad_()
    for rows in (False, True):
        state = state_of(6 if rows else 1)
        state[0] = torch.tensor([0])
        state[2:4] = [torch.full_like(state[2], -1.0), torch.full_like(state[3], 1.0)]
        assert_matches_cpu(
            lambda x, *t, r=rows: torch.fused_moving_avg_obs_fake_quant(x, *t, 0.1, 0, 255, 0, r, False),
            x,
            *state,
            widen=False,
        )


def test_observer_sizes_its_state() -> None:
    """Rows along another dimension, and a state that is empty at first, as on CUDA."""
    x = numbers(3, 5, 4)
    state = [t.to("dml") for t in state_of(0)]
    y, mask = torch.ops.aten._fused_moving_avg_obs_fq_helper(x.to("dml"), *state, 0.1, -128, 127, 1, True, False)
    expected = state_of(5)
    flat = x.transpose(0, 1).flatten(1)
    of_rows, _ = torch.ops.aten._fused_moving_avg_obs_fq_helper(flat, *expected, 0.1, -128, 127, 0, True, False)
    assert_same(y, of_rows.view(5, 3, 4).transpose(0, 1))
    assert mask.all()
    for ours, theirs in zip(state, expected, strict=True):
        assert_same(ours, theirs)


@pytest.mark.smoke
def test_int_mm() -> None:
    for m, k, n in [(3, 5, 7), (1, 64, 9), (33, 40, 1), (70, 130, 66), (0, 3, 4), (4, 0, 3)]:
        a = torch.randint(-128, 128, (m, k), dtype=torch.int8)
        b = torch.randint(-128, 128, (k, n), dtype=torch.int8)
        assert_same_outcome(torch._int_mm, a, b)
        assert_same_outcome(torch._int_mm, a, b.t().contiguous().t())
        out = torch.empty(m, n, dtype=torch.int32)
        assert_same_outcome(lambda a, b, out: torch._int_mm(a, b, out=out), a, b, out)


INT8 = """
import torch

torch.manual_seed(0)
for m, k, n in ((32, 80, 48), (33, 61, 19)):
    a, b = (torch.randint(-128, 128, size, dtype=torch.int8) for size in ((m, k), (k, n)))
    a[0], b[:, 0] = -128, -128
    expected = torch._int_mm(a, b)
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            left_there = torch.empty_strided(left.shape, left.stride(), dtype=torch.int8, device="dml").copy_(left)
            right_there = torch.empty_strided(right.shape, right.stride(), dtype=torch.int8, device="dml").copy_(right)
            product = torch._int_mm(left_there, right_there).cpu()
            assert torch.equal(product, torch._int_mm(left, right)), (m, k, n, left.stride(), right.stride())
    batches = torch.stack([a, a]).to("dml") @ torch.stack([b, b]).to("dml")
    assert torch.equal(batches[1].cpu(), expected.to(torch.int8)), (m, k, n)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["0", "1", "emulate"])
def test_int_mm_on_matrix_units(mode: str) -> None:
    """On the adapter's units if it has any, on emulated ones, and without: the same integers, for
    all layouts.
    """
    done = run_python("-c", INT8, TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr


def test_errors_of_int_mm() -> None:
    a, b = torch.ones(4, 5, dtype=torch.int8), torch.ones(5, 6, dtype=torch.int8)
    words = TORCH < (2, 15)  # then others
    assert_same_error(torch._int_mm, a[0], b, words=words)
    assert_same_error(torch._int_mm, a, a, words=words)
    assert_same_error(torch._int_mm, a.int(), b, words=words)
    assert_same_error(torch._int_mm, a, b.float(), words=words)
    for out in (torch.empty(4, 6), torch.empty(4, 7, dtype=torch.int32), torch.empty(6, 4, dtype=torch.int32).t()):
        assert_same_error(lambda a, b, out: torch._int_mm(a, b, out=out), a, b, out, words=words)


@dtypes(HALVES, torch.float32)
def test_int8_weights(dtype: torch.dtype) -> None:
    for m, k, n in [(1, 64, 40), (3, 33, 17), (4, 100, 2), (20, 64, 48), (2, 7, 5)]:
        x, scales = torch.randn(m, k).to(dtype), torch.rand(n).to(dtype)
        w = torch.randint(-128, 128, (n, k), dtype=torch.int8)
        exact = (x.double() @ w.double().t()) * scales.double()
        actual = torch._weight_int8pack_mm(*to_device((x, w, scales), "dml"))
        assert_same(actual, exact.to(dtype), exact=exact, terms=float(exact.abs().max()))


def test_errors_of_int8_weights() -> None:
    x, w, scales = torch.randn(4, 8), torch.ones(16, 8, dtype=torch.int8), torch.rand(16)
    function = torch._weight_int8pack_mm
    assert_same_error(function, x.double(), w, scales)
    assert_same_error(function, x[:, ::2], w, scales)
    assert_same_error(function, x, w.short(), scales)
    assert_same_error(function, x[:, :4].contiguous(), w, scales)
    assert_same_error(function, x, w, scales[:3])


@dtypes(HALVES, torch.float32)
@pytest.mark.parametrize("tiles", [2, 4, 8])
def test_int4_weights(dtype: torch.dtype, tiles: int) -> None:
    for m, k, n, group in [(1, 128, 40, 32), (4, 256, 17, 64), (3, 384, 24, 128), (20, 256, 48, 256)]:
        levels = torch.randint(0, 16, (n, k))
        packed = ((levels[:, ::2] << 4) | levels[:, 1::2]).to(torch.uint8)
        padded = -(-n // 8) * 8
        parameters = torch.randn(k // group, padded, 2).to(dtype)
        x = torch.randn(m, k).to(dtype)
        scale, offset = parameters.double().repeat_interleave(group, 0).unbind(-1)
        weights = ((levels.t().double() - 8) * scale[:, :n] + offset[:, :n]).to(dtype)
        exact = x.double() @ weights.double()
        inside = torch._convert_weight_to_int4pack(packed.to("dml"), tiles)
        assert inside.shape == (padded // 8, k // (16 * tiles), 32, tiles // 2) and inside.dtype == torch.int32
        actual = torch._weight_int4pack_mm(x.to("dml"), inside, group, parameters.to("dml"))
        assert actual.shape == (m, padded)
        assert_same(actual[:, :n], exact.to(dtype), exact=exact, terms=float(exact.abs().max()))


def test_int4_weights_of_unaligned_rows() -> None:
    memory = torch.randn(1 + 2 * 64)
    x = memory[1:].view(2, 64)
    packed = torch.randint(0, 256, (8, 32), dtype=torch.uint8)
    parameters = torch.randn(2, 8, 2)
    inside = torch._convert_weight_to_int4pack(packed.to("dml"), 2)
    expected = torch._weight_int4pack_mm(x.to("dml"), inside, 32, parameters.to("dml"))
    unaligned = memory.to("dml")[1:].view(2, 64)
    assert torch.equal(torch._weight_int4pack_mm(unaligned, inside, 32, parameters.to("dml")), expected)


def reordered(weight: torch.Tensor, dtype: torch.dtype, transpose: bool) -> torch.Tensor:
    """PyTorch's own order of CUDA's weights, for a CPU tensor, which its function refuses."""
    source = inspect.getsource(conversions.quantized_weight_reorder_for_mixed_dtypes_linear_cutlass)
    names = dict(vars(conversions))
    exec(source.replace('"cuda"', '"cpu"'), names)
    return names["quantized_weight_reorder_for_mixed_dtypes_linear_cutlass"](weight, dtype, transpose)


@dtypes(HALVES)
@pytest.mark.parametrize("quantized", [torch.int8, torch.quint4x2], ids=["int8", "int4"])
def test_mixed_dtypes_linear(dtype: torch.dtype, quantized: torch.dtype) -> None:
    bits4 = quantized == torch.quint4x2
    low, high = (-8, 8) if bits4 else (-128, 128)
    for lead, n, k in [((8,), 64, 64), ((2, 3), 128, 192), ((1,), 64, 128)]:
        weight = torch.randint(low, high, (n, k), dtype=torch.int8)
        x, scale, bias = torch.rand(*lead, k) - 0.5, torch.rand(n) / high, torch.randn(n)
        x, scale, bias = x.to(dtype), scale.to(dtype), bias.to(dtype)
        scaled = (weight.double() * scale.double()[:, None]).to(dtype).double()
        exact = x.double() @ scaled.t()
        for transpose, given in ((True, weight), (False, weight.t().contiguous())):
            packed = reordered(conversions.pack_int4_to_int8(given) if bits4 else given, quantized, transpose)
            ours = to_device((x, packed, scale, bias), "dml")
            assert_same(torch._mixed_dtypes_linear(*ours[:3]), exact.to(dtype), exact=exact, terms=8.0)
            for name, activation in [("none", lambda y: y), ("relu", torch.relu), ("silu", torch.nn.functional.silu)]:
                wanted = activation(exact + bias.double())
                actual = torch._mixed_dtypes_linear(*ours[:3], bias=ours[3], activation=name)
                assert_same(actual, wanted.to(dtype), exact=wanted, terms=8.0)


def test_errors_of_mixed_dtypes_linear() -> None:
    x = torch.rand(8, 64, dtype=torch.float16, device="dml")
    weight = torch.zeros(64, 64, dtype=torch.uint8, device="dml")
    scale = torch.rand(64, dtype=torch.float16, device="dml")
    with pytest.raises(RuntimeError, match="not supported"):
        torch._mixed_dtypes_linear(x.float(), weight, scale)
    with pytest.raises(RuntimeError, match="Expected input argument to have 64 columns"):
        torch._mixed_dtypes_linear(x[:, :32], weight, scale)
    with pytest.raises(RuntimeError, match='Activation "tanh" is not supported'):
        torch._mixed_dtypes_linear(x, weight, scale, activation="tanh")
