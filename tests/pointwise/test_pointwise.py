"""Operators that compute each element from the corresponding elements of their inputs, compared
with the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import ALL, FLOATS, INTEGERS, dtypes, sample
from tests.support.environment import TORCH
from tests.support.layouts import lay_out, layouts
from tests.support.names import words

RAGGED = [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000]
UNARY = words(
    "exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh sigmoid erf "
    "erfc asinh acosh atanh sinc logit abs sign sgn floor ceil trunc round frac neg square logical_not bitwise_not "
    "isposinf isneginf signbit isnan isinf isfinite relu nan_to_num deg2rad positive"
)
ACTIVATIONS = words(
    "relu relu6 silu gelu softplus elu selu celu hardswish hardsigmoid hardtanh mish logsigmoid leaky_relu "
    "softshrink hardshrink softsign tanhshrink"
)
BINARY = words(
    "add sub mul div maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and "
    "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor_divide remainder fmod pow atan2 hypot xlogy "
    "copysign heaviside gcd lcm logaddexp logaddexp2"
)


def values(dtype: torch.dtype) -> torch.Tensor:
    """Numbers of every kind that a dtype has."""
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    if dtype.is_floating_point:
        special = [-7.5, -3, -2.5, -1, -0.5, -0.0, 0, 0.25, 0.75, 1, 2.5, 3, 7.25, 40, float("inf"), -float("inf")]
        return torch.tensor([*special, float("nan")], dtype=dtype)
    ends = torch.iinfo(dtype)
    return torch.cat([torch.arange(max(ends.min, -5), 9, dtype=dtype), torch.tensor([ends.max, ends.min], dtype=dtype)])


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    v = values(dtype)
    return v.repeat_interleave(len(v)), v.repeat(len(v))


@dtypes(FLOATS, torch.int64, torch.uint8, torch.bool)
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name: str, dtype: torch.dtype) -> None:
    # nan_to_num replaces infinity by a number that depends on the dtype.
    assert_same_outcome(getattr(torch, name), values(dtype), widen=name != "nan_to_num")


@dtypes(FLOATS, torch.int64, torch.uint8, torch.bool)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: torch.dtype) -> None:
    if name == "hardtanh" and dtype == torch.uint8 and TORCH < (2, 15):
        pytest.skip("this torch refuses negative limits for unsigned numbers")
    x = values(dtype)
    # The CPU's vector code gives NaN where its scalar code, and the definition, give infinity.
    assert_same_outcome(getattr(F, name), x[~x.isinf()] if name == "gelu" else x)


@dtypes(FLOATS)
@pytest.mark.parametrize("limits", [(math.nan, 1), (-1, math.nan), (math.nan, math.nan), (-0.0, 0.0), (-1, -0.0)])
def test_limits_of_hardtanh(limits: tuple[float, float], dtype: torch.dtype) -> None:
    """Limits that are NaN, or zeros of either sign."""
    x = torch.tensor([-2, 0.0, -0.0, 0.5, 3, math.nan, math.inf], dtype=dtype)
    assert_same(F.hardtanh(x.to("dml"), *limits), F.hardtanh(x, *limits))
    assert_same(torch.clamp(x.to("dml"), *limits), torch.clamp(x, *limits))


@dtypes(torch.float32, torch.float64)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_activations(name: str, dtype: torch.dtype) -> None:
    x = torch.linspace(-6, 6, 49, dtype=dtype, requires_grad=True)
    # The CPU uses 1/6 in float32.
    assert_matches_cpu(getattr(F, name), x, rtol=1e-7 if name == "hardsigmoid" else None)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: F.elu(x, 0.5) * F.elu(x.clone(), 1.5, inplace=True),
        lambda x: F.softplus(x, 2.0, 3.0),
        lambda x: F.threshold(x, 0.5, -2),
        lambda x: F.prelu(x.reshape(1, 7, 7), torch.arange(7, dtype=x.dtype).to(x.device)),
        lambda x: torch.logit(torch.sigmoid(x), 1e-3),
        lambda x: x**3 + x**2 + (x * x + 1) ** -0.5 + (x * x + 1) ** 1.7,
        lambda x: torch.clamp(x, -1, 2) * torch.where(x > 1, x, -x),
        lambda x: torch.atan2(x, x + 1) + torch.hypot(x, x + 2) + torch.xlogy(x, x.abs() + 1),
        lambda x: torch.addcdiv(x, x, x * x + 1, value=0.3) + torch.lerp(x, -x, 0.7),
    ],
)
def test_gradients_of_compositions(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert_matches_cpu(function, torch.linspace(-4, 4, 49).requires_grad_())


@dtypes(FLOATS, torch.int64, torch.int8, torch.uint8, torch.bool)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name: str, dtype: torch.dtype) -> None:
    a, b = pairs(dtype)
    if dtype in INTEGERS and name in ("floor_divide", "remainder", "fmod", "gcd", "lcm"):
        # The CPU traps if there is no result, and its gcd and lcm of the smallest integer are not
        # positive.
        keep = (b != 0) & (a != torch.iinfo(dtype).min) & (b != torch.iinfo(dtype).min)
        a, b = a[keep], b[keep]
    if dtype in INTEGERS and name == "pow":
        b = b.clamp(max=20)
    assert_same_outcome(getattr(torch, name), a, b)


@pytest.mark.parametrize("number", [2, -1, 0.5, 3.0, True, 0])
@pytest.mark.parametrize("name", words("add sub mul div eq lt ge pow remainder floor_divide bitwise_and rsub xlogy"))
def test_python_numbers(name: str, number: float) -> None:
    function = getattr(torch, name)
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        assert_same_outcome(function, values(dtype), number)
    if name not in ("rsub", "eq", "lt", "ge"):
        for dtype in (torch.float32, torch.int32, torch.uint8):
            v = values(dtype)
            v = v.clamp(-3, 8)[v != 0] if dtype != torch.float32 else v
            assert_same_outcome(lambda x, f=function: f(torch.tensor(number).to(x.device), x), v)


@pytest.mark.smoke
@pytest.mark.parametrize("mode", [None, "floor", "trunc", "nearest"])
def test_division_modes(mode: str | None) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.int8, torch.uint8):
        a, b = pairs(dtype)
        if not dtype.is_floating_point:
            keep = (b != 0) & (a != torch.iinfo(dtype).min)
            a, b = a[keep], b[keep]
        assert_same_outcome(lambda x, y: torch.div(x, y, rounding_mode=mode), a, b)


@pytest.mark.parametrize("name", words("floor trunc remainder fmod"))
@dtypes(torch.float16, torch.bfloat16)
def test_divisions_round_where_the_cpu_does(name: str, dtype: torch.dtype, device: torch.device) -> None:
    """Half a rounding of a quotient can change the integer."""
    modes = {mode: lambda x, y, m=mode: torch.div(x, y, rounding_mode=m) for mode in ("floor", "trunc")}
    function = modes.get(name) or getattr(torch, name)
    a = torch.cat([torch.randn(3000) * 8, torch.randint(-300, 300, (3000,))]).to(dtype)
    b = torch.cat([torch.randn(3000) * 2, torch.randint(1, 40, (3000,))]).to(dtype)
    b = torch.where(b == 0, 1, b)
    pairs = [(a, b), (a, 2.3), (a, b[:1]), (a, b[1]), (torch.tensor(37.3, dtype=dtype), b), (a, b[:2000].repeat(3))]
    for x, y in pairs if name == "fmod" else [*pairs, (37.3, b)]:
        want = function(x, y)
        got = function(*(t.to(device) if isinstance(t, torch.Tensor) else t for t in (x, y))).cpu()
        wrong = (got != want) | (got.signbit() != want.signbit())
        assert not wrong.any(), f"{int(wrong.sum())} differ, the first {got[wrong][0]}, not {want[wrong][0]}"
    cpu_numbers = [(torch.tensor(37.3), b), (a, torch.tensor(2.3))]  # which the device treats as scalars too
    for x, y in cpu_numbers:
        got = function(*(t.to(device) if t.dim() else t for t in (x, y))).cpu()
        assert torch.equal(got, function(x, y))


def test_division_by_an_integer_zero() -> None:
    x = torch.arange(3)
    for function in (lambda t: t // 0, lambda t: t % 0, lambda t: torch.div(t, 0, rounding_mode="trunc")):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(x.to("dml"))


@pytest.mark.parametrize("name", words("floor_divide remainder fmod trunc"))
@dtypes(torch.int64, torch.int32, torch.int8, torch.uint8)
def test_division_by_an_integer_zero_in_device_memory(name: str, dtype: torch.dtype) -> None:
    """The device detects it later: it raises the CPU's error when the result is read, and continues
    to work.
    """
    function = getattr(torch, name) if name != "trunc" else lambda x, y: torch.div(x, y, rounding_mode="trunc")
    for count in (3, 1001):
        x, divisor = (torch.ones(count, dtype=dtype, device="dml") for _ in range(2))
        divisor[count // 2] = 0
        for y in (divisor, divisor[0:0].new_zeros(()), divisor.flip(0)[:1].expand(count).mul(0)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                function(x, y).cpu()
        divisor[count // 2] = 1
        assert_same(function(x, divisor), function(x.cpu(), divisor.cpu()))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        function(torch.ones(3, dtype=dtype), torch.zeros(3, dtype=dtype))
    zero = torch.zeros(3, device="dml")
    function(torch.ones(3, device="dml"), zero).cpu()


@pytest.mark.parametrize("n", RAGGED)
def test_ragged_sizes_and_unaligned_offsets(n: int) -> None:
    for dtype in (torch.float32, torch.float16, torch.uint8, torch.float64):
        storage = torch.arange(n + 9).remainder(50).to(dtype)
        ours = storage.to("dml")
        for offset in (0, 1, 3, 8):
            x, y = storage[offset : offset + n], ours[offset : offset + n]
            assert_same(y + y, x + x)
            assert_same((y == 3).to(torch.int32), (x == 3).to(torch.int32))
            target, expected = ours.clone(), storage.clone()
            target[offset : offset + n].mul_(2)
            expected[offset : offset + n].mul_(2)
            assert_same(target, expected)


def views(x: torch.Tensor) -> list[torch.Tensor]:
    """Views of a tensor of sizes [4, 6, 5, 3]."""
    return [
        x,
        x.transpose(0, 3),
        x.permute(2, 0, 3, 1),
        x[:, ::2],
        x[1:, :, 2:, 1:],
        x[:, :1].expand(-1, 6, -1, -1),
        x[0, 0, 0].expand(4, 6, 5, 3),
        x.contiguous(memory_format=torch.channels_last),
        x[:2].contiguous(memory_format=torch.channels_last)[:, 1:4],
        x[:1, :, :1].permute(1, 0, 3, 2),
        x[:, :0],
        x[1, 2, 3, 1],
    ]


@pytest.mark.smoke
def test_views_give_the_strides_of_the_cpu() -> None:
    x = torch.randn(4, 6, 5, 3)
    for a, b in zip(views(x), views(x.to("dml")), strict=True):
        for function in (
            lambda t: t + 1,
            torch.exp,
            lambda t: t * t,
            lambda t: t > 0,
            lambda t: torch.where(t > 0, t, 0),
        ):
            expected, actual = function(a), function(b)
            assert_same(actual, expected)
            assert actual.stride() == expected.stride(), (a.shape, a.stride())


def test_resized_results_get_the_strides_of_the_cpu() -> None:
    x = torch.randn(4, 6, 5, 3)
    for view in views(x):
        assert_same_outcome(lambda t, out: torch.exp(t, out=out), view, torch.empty(0))
        assert_same_outcome(lambda t, out: torch.add(t, t.flip(0) if t.dim() else t, out=out), view, torch.empty(0))
        assert_same_outcome(lambda t, out: torch.gt(t, 0, out=out), view, torch.empty(0))


@pytest.mark.parametrize("seed", range(12))
def test_random_layouts(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def pick(n: int) -> int:
        return int(torch.randint(n, (), generator=generator))

    rank = pick(5) + 1
    sizes = [1 + pick(4) for _ in range(rank)]

    def operand() -> Callable[[torch.Tensor], torch.Tensor]:
        order = torch.randperm(rank, generator=generator).tolist()
        inverse = [order.index(d) for d in range(rank)]
        kept = [1 if pick(4) == 0 else n for n in sizes]
        step = 1 + pick(2)
        laid = [kept[d] for d in order]
        laid[-1] *= step
        data = torch.randn(laid, generator=generator)
        return lambda device: data.to(device)[..., ::step].permute(inverse)

    a, b, c = operand(), operand(), operand()
    for function in (torch.add, torch.mul, torch.lt):
        expected, actual = function(a("cpu"), b("cpu")), function(a("dml"), b("dml"))
        assert_same(actual, expected)
        assert actual.stride() == expected.stride()
    expected, actual = torch.addcmul(a("cpu"), b("cpu"), c("cpu")), torch.addcmul(a("dml"), b("dml"), c("dml"))
    assert_same(actual, expected)
    assert actual.stride() == expected.stride()


def test_broadcasting_to_rank_twelve() -> None:
    x = torch.randn(2, 1, 3, 1, 2, 1, 2, 1, 3, 1, 2, 1)
    y = torch.randn(1, 3, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)
    assert_matches_cpu(torch.add, x, y)
    assert_matches_cpu(torch.mul, x.transpose(0, 2).transpose(5, 3), y)


def test_many_workgroups() -> None:
    x = torch.randint(0, 256, (20_000_003,), dtype=torch.uint8)
    y = x.to("dml")
    assert torch.equal((y + 1).cpu(), x + 1)
    assert torch.equal((y[1:] ^ y[:-1]).cpu(), x[1:] ^ x[:-1])


@dtypes(INTEGERS)
def test_integers_wrap(dtype: torch.dtype) -> None:
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.max, ends.min, 1], dtype=dtype)
    for function in (
        lambda t: t + 1,
        lambda t: t - 1,
        lambda t: t * 3,
        lambda t: -t,
        lambda t: t.abs(),
        lambda t: ~t,
        torch.sign,
    ):
        assert_matches_cpu(function, x)


def test_nan_passes() -> None:
    x = torch.tensor([float("nan"), 1.0, float("nan")])
    y = torch.tensor([1.0, float("nan"), float("nan")])
    for function in (torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.clamp_min, torch.clamp_max):
        assert_matches_cpu(function, x, y)
    assert_matches_cpu(lambda t: torch.clamp(t, 0, 2), x)
    assert_matches_cpu(lambda t: torch.clamp(t, float("nan"), 2), x)
    assert_matches_cpu(lambda t: torch.clamp(t, 3, 2), y)


@pytest.mark.smoke
def test_in_place_and_out() -> None:
    x, y = torch.randn(3, 4), torch.randn(4)
    a, b = x.to("dml"), y.to("dml")
    same = a
    a += b
    a.mul_(2).sub_(b, alpha=0.5).div_(3).clamp_(-1, 1).abs_().sqrt_()
    assert a is same
    assert_same(a, (((x + y) * 2 - 0.5 * y) / 3).clamp(-1, 1).abs().sqrt())
    out = torch.empty(0, device="dml")
    assert torch.add(a, b, out=out) is out
    assert_same(out, a.cpu() + y)
    with pytest.warns(UserWarning, match="resized"):
        torch.mul(a, b, out=torch.empty(5, device="dml"))
    strided = torch.empty(4, 3, device="dml").t()
    torch.exp(a, out=strided)
    assert strided.stride() == (1, 3)
    assert_same(strided, a.cpu().exp())
    wide = torch.empty(3, 4, dtype=torch.float64, device="dml")
    torch.add(a, b, out=wide)
    assert_same(wide, (a.cpu() + y).double())
    flags = torch.zeros(3, 4, device="dml")
    torch.gt(a, 0.5, out=flags)
    assert_same(flags, (a.cpu() > 0.5).float())


def test_errors_are_those_of_the_cpu() -> None:
    def on(device: torch.device | str) -> list[Callable[[], Any]]:
        x, y = torch.ones(3, 4, device=device), torch.ones(2, 5, device=device)
        n, f = torch.arange(3, device=device), torch.ones(3, dtype=torch.bool, device=device)
        return [
            lambda: x + y,
            lambda: x[0].add_(x),
            lambda: n.add_(0.5),
            lambda: n.div_(2),
            lambda: f.add_(1),
            lambda: torch.add(x, x, out=torch.empty(3, 4, dtype=torch.int32, device=device)),
            lambda: f - f,
            lambda: -f,
            lambda: n.clone().add_(n, alpha=0.5),
            lambda: x[0].expand(3, 4).add_(1),
            lambda: x.view(-1)[1:].add_(x.view(-1)[:-1]),
            lambda: torch.exp(x.view(-1)[:-1], out=x.view(-1)[1:]),
            lambda: torch.ones(3, 3, device=device).t().add_(torch.ones(2, device=device)),
            lambda: n**-1,
            lambda: torch.clamp(x),
            lambda: x & x,
            lambda: torch.bitwise_not(x),
            lambda: torch.where(x, x, x),
            lambda: x.masked_fill(x, 1),
            lambda: torch.addcdiv(n, n, n),
            lambda: torch.lerp(n, n, 0.5),
            lambda: torch.heaviside(x, n[:1]),
            lambda: torch.div(x, x, rounding_mode="up"),
            lambda: torch.atan2(x, y),
        ]

    for index in range(len(on("cpu"))):
        assert_same_error(lambda x, index=index: on(x.device)[index](), torch.empty(0), words=False)
    x = torch.ones(3, 4, device="dml")
    with pytest.raises(RuntimeError, match=r"\(4\) must match .* \(5\) at non-singleton dimension 1"):
        x + torch.ones(2, 5, device="dml")
    with pytest.raises(RuntimeError, match=r"dml:0 and cpu|cpu and dml:0"):
        x + torch.ones(3, 4)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_products_and_quotients_of_bools_are_refused(name: str) -> None:
    """A kernel that computed with bools once reached the driver, which crashed the process."""
    f, on = torch.tensor([True, False, True]), {"words": False}
    for value in (1, True, 0.5):
        assert_same_error(lambda x, value=value: getattr(torch, name)(x, x, x, value=value), f, **on)
        assert_same_error(lambda x, value=value: getattr(x, f"{name}_")(x, x, value=value), f, **on)
    assert_same_error(lambda x: getattr(torch, name)(x, x, x, out=torch.empty_like(x)), f, **on)
    assert_same_error(lambda x: getattr(torch, f"_foreach_{name}")([x], [x], [x]), f, **on)
    # Bools with numbers are promoted to numbers.
    for dtype in (torch.float32, torch.float16, torch.int32):
        assert_same_outcome(lambda x, y: getattr(torch, name)(x, y, x, value=2), torch.ones(3, dtype=dtype), f)
    assert torch.logical_and(f.to("dml"), f.to("dml")).tolist() == f.tolist()


def test_ldexp_in_place_does_not_grow() -> None:
    exponents = (
        torch.ones(2, 3),
        torch.ones(2, 1, 3),
        torch.ones(4),
        torch.ones(0, 3),
        torch.ones(2, 3, dtype=torch.int32),
    )
    for y in exponents:
        assert_same_error(lambda x, y: x.ldexp_(y), torch.ones(3), y)
    assert_same_error(lambda x, y: x.ldexp_(y), torch.ones(1), torch.ones(3))
    assert_same_error(lambda x, y: x.ldexp_(y), torch.ones(3, dtype=torch.int32), torch.ones(3))
    assert_matches_cpu(lambda x, y: x.clone().ldexp_(y), torch.ones(2, 3), torch.arange(3))


@dtypes(torch.float32, torch.float16, torch.bfloat16, torch.float64)
def test_ldexp_of_integers(dtype: torch.dtype) -> None:
    """PyTorch has a kernel for them on each device, and composes the function for other dtypes."""
    x, k = torch.randn(4, 6).to(dtype), torch.randint(-9, 9, (4, 6))
    for y in (k, k.int(), k.to(torch.int8), k[0], k[:, :1], k.t().contiguous().t(), k[0, 0], k[:, ::2].repeat(1, 2)):
        assert_same_outcome(torch.ldexp, x, y)
        assert_same_outcome(lambda x, y: x.clone().ldexp_(y), x, y)
        assert_same_outcome(lambda x, y: torch.ldexp(x, y, out=torch.empty_like(x)), x, y)
    assert_same_outcome(torch.ldexp, x[:0], k[:1])
    assert_same_outcome(torch.ldexp, x.t(), k.t())
    assert_same_outcome(torch.ldexp, x, k.bool())
    complex_numbers = torch.rand(4, 6, dtype=torch.complex128 if dtype == torch.float64 else torch.complex64)
    for y in (k.float() / 2, complex_numbers):
        assert_same_outcome(torch.ldexp, x, y)
    assert_same_outcome(torch.ldexp, k, k.abs())
    if dtype not in (torch.float16, torch.bfloat16):
        assert_matches_cpu(lambda x: torch.ldexp(x, k.to(x.device)) ** 2, x.clone().requires_grad_())


def test_writing_where_elements_do_not_overlap() -> None:
    x = torch.arange(12.0)
    y = x.to("dml")
    y[:6].add_(y[6:])
    y[::2].mul_(y[1::2])
    x[:6].add_(x[6:])
    x[::2].mul_(x[1::2])
    assert_same(y, x)
    y.mul_(y)
    assert_same(y, x * x)


def test_cpu_scalars_take_part() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    y = x.to("dml")
    for number in (torch.tensor(2.5), torch.tensor(3), torch.tensor(0.1, dtype=torch.float64), torch.tensor(True)):
        assert_same(y + number, x + number)
        assert_same(number * y, number * x)
        assert_same(torch.where(y > number, y, number), torch.where(x > number, x, number))
        assert_same(y.masked_fill(y > 2, number), x.masked_fill(x > 2, number))
    n = torch.arange(3)
    assert_same(n.to("dml") * torch.tensor(1.5), n * torch.tensor(1.5))


def test_negative_views() -> None:
    x = torch.randn(3, 4)
    assert_same(torch._neg_view(x.to("dml")) + 1, 1 - x)
    assert_same(torch._neg_view(x.to("dml")).resolve_neg(), -x)
    assert x.to("dml").conj().is_conj() is False


@dtypes(torch.float32, torch.int64, torch.float16)
def test_three_operands(dtype: torch.dtype) -> None:
    a, b, c = (torch.randint(1, 9, (3, 4)).to(dtype) for _ in range(3))
    assert_same_outcome(lambda x, y, z: torch.addcmul(x, y[:1], z, value=2), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.addcdiv(x, y, z, value=2), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.lerp(x, y, z), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.clamp(x, y, z), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.clamp(x, min=y), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.where(x > y, x, z[:, :1]), a, b, c)
    assert_same_outcome(lambda x, y, z: x.masked_fill(y > 4, 3), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.addr(x, y[:, 0], z[0], beta=2, alpha=3), a, b, c)
    assert_same_outcome(lambda x, y, z: torch.addr(x / 0, y[:, 0], z[0], beta=0), a, b, c)
    assert_same_outcome(
        lambda x, y, z: torch.sub(x, y, alpha=3) + torch.rsub(x, y, alpha=2) + torch.add(x, z, alpha=4), a, b, c
    )


@dtypes(torch.float32, torch.float64, torch.float16)
def test_rounding_and_replacement(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 3.14159, 271.828, -0.0, 1e4], dtype=dtype)
    for decimals in (0, 2, -2):
        assert_same_outcome(lambda t, d=decimals: torch.round(t, decimals=d), x)
    assert_same_outcome(lambda t: torch.nan_to_num(t, 1.0, 2.0, -3.0), values(dtype))
    assert_same_outcome(lambda t: torch.special.entr(t), values(dtype))
    assert_same_outcome(lambda t: torch.special.xlog1py(t, t), values(dtype))


@pytest.mark.parametrize("name", words("exp log sin cos tanh sigmoid erf sqrt expm1 log1p atan asinh acosh atanh gelu"))
def test_accuracy_against_doubles(name: str) -> None:
    x = torch.rand(4096) * 0.98 + (1.0 if name == "acosh" else 0.01)
    function = getattr(torch, name, None) or getattr(F, name)
    error = (function(x.to("dml")).cpu().double() - function(x.double())).abs()
    spacing = torch.finfo(torch.float32).eps * function(x.double()).abs()
    assert (error <= 4 * spacing + 1e-9).all(), float((error / spacing).max())


@layouts()
@dtypes(ALL)
def test_conj_physical(dtype: torch.dtype, layout: str) -> None:
    def into(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.conj_physical(x, out=out)

    x = lay_out(sample(2, 3, 4, 5, dtype=dtype), layout)
    assert_same_outcome(into, x, x.new_empty(0))
    assert_same_outcome(into, x, torch.zeros_like(x))
    assert_same_outcome(into, x, x.new_zeros(*x.shape, 2)[..., 1])
    if layout != "empty":
        with pytest.warns(UserWarning, match="resized"):
            assert_same_outcome(into, x, x.new_empty(7))
    ours = values(dtype).to("dml")
    assert torch.conj_physical(ours, out=ours) is ours
    assert_same(ours, values(dtype), rtol=0, atol=0)


def test_errors_of_conj_physical() -> None:
    def into(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return torch.conj_physical(x, out=torch.empty_like(x, dtype=dtype))

    assert_same_error(into, torch.ones(3), torch.float64)
    assert_same_error(into, torch.ones(3, dtype=torch.bool), torch.int64)
    x = torch.ones(2, 3)
    assert_same_error(lambda x: torch.conj_physical(x, out=x[:1].expand(2, 3)), x)
    assert_same_error(lambda x: torch.conj_physical(x.view(-1)[:-1], out=x.view(-1)[1:]), x)
    with pytest.raises(RuntimeError, match="same device"):
        torch.conj_physical(x, out=torch.empty(2, 3, device="dml"))


@dtypes(FLOATS)
def test_glu(dtype: torch.dtype) -> None:
    x = torch.randn(4, 6, 2).to(dtype).requires_grad_()
    for dim in (0, 1, -1):
        assert_matches_cpu(lambda t, dim=dim: F.glu(t, dim), x)
    assert_matches_cpu(lambda t: F.glu(t.transpose(0, 1)[:, 1:3], 1), x)
    assert_matches_cpu(F.glu, torch.randn(0, 4, dtype=dtype))
    out = torch.empty(0, dtype=dtype, device="dml")
    torch._C._nn.glu(x.detach().to("dml"), 1, out=out)
    assert_same(out, F.glu(x, 1))


def test_glu_derivatives_of_derivatives() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, device="dml", requires_grad=True)
    assert torch.autograd.gradcheck(F.glu, (x,))
    assert torch.autograd.gradgradcheck(F.glu, (x,), check_fwd_over_rev=True)
    assert_matches_cpu(lambda t: torch.func.jvp(F.glu, (t,), (t.sin(),))[1], torch.randn(3, 4))


def test_glu_refuses_what_cpu_refuses() -> None:
    for x in (torch.ones(3), torch.ones(2, dtype=torch.int64), torch.tensor(1.0)):
        errors = []
        for device in ("cpu", "dml"):
            with pytest.raises((RuntimeError, NotImplementedError)) as error:
                F.glu(x.to(device))
            errors.append((error.type, str(error.value)))
        assert errors[0] == errors[1]


@dtypes(torch.float32, torch.float64, torch.bfloat16)
def test_rrelu(dtype: torch.dtype) -> None:
    x = torch.randn(1000).to(dtype).to("dml").requires_grad_()
    assert_matches_cpu(lambda t: F.rrelu(t, 0.1, 0.5), x.detach().cpu().requires_grad_())
    y = F.rrelu(x, 0.1, 0.5, training=True)
    y.sum().backward()
    below = x.detach() <= 0
    slopes = y.detach()[below].double() / x.detach()[below].double()
    assert torch.equal(y[~below], x[~below]) and (x.grad[~below] == 1).all()
    assert slopes.min() > 0.09 and slopes.max() < 0.51 and 0.27 < slopes.mean() < 0.33
    torch.testing.assert_close(x.grad[below].double(), slopes, rtol=2e-2, atol=0)
    z = x.detach().clone()
    F.rrelu_(z, training=True)
    assert not torch.equal(z, F.rrelu(x.detach(), training=True))
    with pytest.raises(RuntimeError, match="Lower bound"):
        F.rrelu(z, 0.5, 0.1, training=True)


def test_cross() -> None:
    a, b = torch.randn(4, 3, 5, requires_grad=True), torch.randn(4, 3, 1, requires_grad=True)
    assert_matches_cpu(lambda x, y: torch.linalg.cross(x, y, dim=1), a, b)
    assert_matches_cpu(lambda x, y: torch.cross(x.transpose(0, 1), y.transpose(0, 1), dim=0), a, b)
    assert_matches_cpu(torch.linalg.cross, torch.randint(-9, 9, (2, 3)), torch.randint(-9, 9, (2, 3)))
    x, y = torch.randn(3), torch.randn(3)
    ours = x.to("dml")
    torch.linalg.cross(ours, y.to("dml"), out=ours)
    assert_same(ours, torch.linalg.cross(x, y))
    for pair in ((torch.ones(2), torch.ones(2)), (torch.ones(3), torch.ones(2, 3))):
        with pytest.raises(RuntimeError, match=r"linalg\.cross"):
            torch.linalg.cross(*(t.to("dml") for t in pair))


def test_trace() -> None:
    for shape in ((4, 4), (3, 7), (0, 3)):
        assert_matches_cpu(torch.trace, torch.randn(shape, requires_grad=True))
        assert_matches_cpu(torch.trace, torch.randint(0, 9, shape, dtype=torch.int8))
        # The CPU refuses f16.
        half = torch.randn(shape).half()
        assert_same(torch.trace(half.to("dml")), torch.trace(half.float()).half())
    assert_matches_cpu(lambda t: torch.trace(t.t()[1:, ::2]), torch.randn(7, 8))
    with pytest.raises(RuntimeError, match="expected a matrix"):
        torch.trace(torch.ones(2, device="dml"))


@pytest.mark.parametrize("name", words("mse_loss smooth_l1_loss huber_loss"))
def test_losses_promote(name: str) -> None:
    """A target of integers or bools with an input of floats."""
    function, x = getattr(F, name), torch.randn(5)
    for target in (torch.arange(5), torch.arange(5) > 2, torch.arange(5.0).double()):
        for reduction in ("none", "mean", "sum"):
            if target.dtype == torch.float64 and name == "huber_loss":
                continue
            assert_matches_cpu(lambda t, y, reduction=reduction: function(t, y, reduction=reduction), x, target)
    for given in ((torch.ones(3).long(), torch.ones(3).long()), (torch.ones(3).bool(), torch.ones(3).bool())):
        with pytest.raises(NotImplementedError) as theirs:
            function(*given)
        with pytest.raises(NotImplementedError) as ours:
            function(*(t.to("dml") for t in given))
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compared_numbers_are_rounded(name: str, dtype: torch.dtype) -> None:
    """A number that a dtype does not represent is rounded to the nearest before it is compared."""
    x = torch.tensor([0.1, -0.1, 0.3, 1 / 3, 1.0], dtype=dtype)
    for number in (0.1, -0.1, 0.3, 1 / 3, 1.0001):
        assert_matches_cpu(lambda x, n=number: getattr(torch, name)(x, n), x)
        assert_matches_cpu(lambda x, n=number: getattr(torch, name)(x, torch.tensor(n)), x)


def test_multiples_beyond_the_range_in_sums() -> None:
    """A product may be out of range although the sum to which it is added is not."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        large, inf = torch.finfo(dtype).max, float("inf")
        x = torch.tensor([-large, -inf, inf, large, -large, 1.0, inf, -inf, float("nan")], dtype=dtype)
        y = torch.tensor([large * 0.75, large, -large, -large * 0.75, large, large, inf, inf, large], dtype=dtype)
        assert_matches_cpu(lambda x, y: torch.add(x, y, alpha=1.5), x, y)
        assert_matches_cpu(lambda x, y: torch.sub(x, -y, alpha=1.5), x, y)
        assert_matches_cpu(lambda x, y: torch.rsub(-y, x, alpha=1.5), x, y)
        assert_matches_cpu(lambda x, y: torch.addcmul(x, y, torch.full_like(y, 1.5)), x, y)
        assert_matches_cpu(lambda x, y: torch._foreach_add([x], [y], alpha=1.5)[0], x, y)
    far = torch.tensor([-0.5 * torch.finfo(torch.float64).max], dtype=torch.float64)
    assert_matches_cpu(lambda end: torch.lerp(torch.ones_like(end), end, -1.5), far)


def test_interpolation_of_small_numbers_by_an_infinite_weight() -> None:
    small = torch.tensor([2.0**-126, -(2.0**-126), -(2.0**-126), 1.0])
    end, weight = torch.tensor([2.0**-127, -3e-45, -0.0, 2.0]), torch.tensor([-1.0, 1.0, 1.0, -1.0]) * float("inf")
    assert torch.lerp(*(t.to("dml") for t in (small, end, weight))).tolist()[::3] == [float("inf"), -float("inf")]
    if torch.dml.get_device_properties().subnormals:
        assert_matches_cpu(torch.lerp, small, end, weight)


def test_weights_that_are_one_number() -> None:
    aten = torch.ops.aten
    x, y = torch.tensor([1.0, 2.0], dtype=torch.float16), torch.tensor([3.0, 5.0], dtype=torch.float16)
    for weight in (torch.tensor(0.25), torch.tensor(2), torch.tensor(0.25, dtype=torch.float64), torch.tensor(True)):
        assert_same_outcome(lambda x, y, w: torch.lerp(x, y, w), x, y, weight)
        assert_same_outcome(lambda x, y, w: torch.lerp(x[0], y[0], w), x, y, weight)
        assert_same_outcome(lambda x, y, w, out: aten.lerp.Tensor_out(x, y, w, out=out), x, y, weight, torch.empty(2))
        assert_same_outcome(lambda x, y, w: torch.lerp(x.long(), y.long(), w), x, y, weight)
        assert_same_outcome(lambda x, y, w: torch.lerp(x, y, w.expand(2)), x, y, weight)


def test_gradients_of_results_need_slopes_that_are_not_negative() -> None:
    aten = torch.ops.aten
    x = torch.tensor([-1.0, 0.5, 2.0])
    for slope in (-0.5, 0.0, 0.5, float("nan")):
        for of_result in (False, True):
            assert_same_outcome(lambda x, s=slope, r=of_result: aten.leaky_relu_backward(x, x, s, r), x)
            assert_same_outcome(lambda x, s=slope, r=of_result: aten.elu_backward(x, s, 1, 1, r, x), x)


def test_the_gradient_of_tanh_near_one() -> None:
    y = 1 - torch.logspace(-7, -1, 50)
    exact = 1 - y.double() ** 2
    got = torch.ops.aten.tanh_backward(torch.ones(50).to("dml"), y.to("dml")).cpu()
    assert ((got.double() - exact).abs() <= 1.5e-7 * exact).all()


def test_results_that_are_laid_out_or_typed_as_the_cpu_does() -> None:
    aten = torch.ops.aten
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1)).permute(2, 0, 1)
    assert aten.log_sigmoid_forward(x.to("dml"))[0].stride() == aten.log_sigmoid_forward(x)[0].stride()
    for dtype in (torch.float32, torch.float16, torch.int64):
        assert_same_outcome(lambda x, d=dtype: aten.mish_backward(x, x.to(d)), torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_threshold_beyond_halves(dtype):
    x = torch.tensor([1.0, -math.inf, math.inf, 6e4], dtype=dtype)
    for threshold in (2147483647, -3.4e38, 70000.0):
        assert_matches_cpu(lambda t, n=threshold: F.threshold(t, n, -2), x)


LIMITED: dict[str, Callable[..., Any]] = {
    "softshrink": lambda x, n: torch.ops.aten.softshrink(x, n),
    "softshrink_backward": lambda x, n: torch.ops.aten.softshrink_backward(x, x, n),
    "softshrink_backward of integers": lambda x, n: torch.ops.aten.softshrink_backward(x, x[0].int(), n),
    "hardshrink": lambda x, n: torch.ops.aten.hardshrink(x, n),
    "hardshrink_backward": lambda x, n: torch.ops.aten.hardshrink_backward(x, x, n),
    "hardtanh_backward": lambda x, n: torch.ops.aten.hardtanh_backward(x, x, -n, n),
    "leaky_relu": lambda x, n: torch.ops.aten.leaky_relu(x, n),
    "leaky_relu_backward": lambda x, n: torch.ops.aten.leaky_relu_backward(x, x, n, False),
    "elu": lambda x, n: torch.ops.aten.elu(x, 1, n),
    "elu_backward": lambda x, n: torch.ops.aten.elu_backward(x, 1, n, 1, False, x),
    "softplus": lambda x, n: torch.ops.aten.softplus(x, 1, n),
    "softplus_backward": lambda x, n: torch.ops.aten.softplus_backward(x, x, 1, n),
    "threshold": lambda x, n: torch.ops.aten.threshold(x, n, 0),
    "threshold_backward": lambda x, n: torch.ops.aten.threshold_backward(x, x, n),
    "logit": lambda x, n: torch.logit(x, n),
    "logit_backward": lambda x, n: torch.ops.aten.logit_backward(x, x, n),
}


@pytest.mark.parametrize("name", LIMITED)
@dtypes(FLOATS)
def test_numbers_that_a_dtype_cannot_hold(name: str, dtype: torch.dtype) -> None:
    for number in (1e5, 1e39, 0.5, math.inf, math.nan):
        assert_same_outcome(lambda x, n=number: LIMITED[name](x, n), torch.tensor([1.0, -2.0, 7.5], dtype=dtype))
