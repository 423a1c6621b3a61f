"""Operators on lists of tensors, compared with the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome, to_device
from tests.support.dtypes import ALL, FLOATS, HALVES, dtypes
from tests.support.environment import TORCH
from tests.support.launches import launches
from tests.support.names import words
from tests.support.processes import run_python

SHAPES = [(3, 4), (), (257,), (0,), (2, 1, 5)]
UNARY = words(
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)


def lists(dtype: torch.dtype = torch.float32, count: int = 3) -> list[list[torch.Tensor]]:
    if not dtype.is_floating_point:
        return [[torch.randint(1, 9, s).to(dtype) for s in SHAPES] for _ in range(count)]
    return [[(torch.rand(s) * 0.8 + 0.1).to(dtype) for s in SHAPES] for _ in range(count)]


def agree(name: str, *args: Any, **kwargs: Any) -> None:
    """The functional and the in-place form."""
    ours, more = to_device(args, "dml"), to_device(kwargs, "dml")
    function = getattr(torch, "_foreach_" + name)
    expected, actual = function(*args, **kwargs), function(*ours, **more)
    assert isinstance(actual, (list, tuple))
    for a, b in zip(actual, expected, strict=True):
        assert_same(a, b)
        assert a.stride() == b.stride()
    in_place = getattr(torch, f"_foreach_{name}_")
    if all(a.dtype == b.dtype for a, b in zip(args[0], expected, strict=True)):
        in_place(*ours, **more)
        assert_same(ours[0], list(expected))
    else:
        with pytest.raises(RuntimeError):
            in_place(*ours, **more)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    agree(name, lists()[0])
    agree(name, [x.t() if x.dim() == 2 else x for x in lists(torch.float64)[0]])


@pytest.mark.smoke
@dtypes(torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "clamp_min", "clamp_max"])
def test_two_operands(name: str, dtype: torch.dtype) -> None:
    a, b, _ = lists(dtype)
    agree(name, a, b)
    agree(name, a, 2)
    agree(name, a, [3, 1, 2, 1, 4])
    if dtype.is_floating_point:
        agree(name, a, 0.5)
        agree(name, a, [0.5, 1.5, 2.0, 1.0, 3.0])
    if name in ("add", "sub"):
        agree(name, a, b, alpha=2)


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_a_tensor_for_all(name: str) -> None:
    a = lists()[0]
    agree(name, a, torch.tensor(2.5))
    function, ours = getattr(torch, "_foreach_" + name), to_device(a, "dml")
    assert_same(list(function(ours, torch.tensor(2.5))), list(function(a, torch.tensor(2.5))))
    if name == "add":
        agree(name, a, torch.tensor(2.5), alpha=3)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_three_lists(name: str) -> None:
    a, b, c = lists()
    agree(name, a, b, c)
    agree(name, a, b, c, value=0.5)
    agree(name, a, b, c, [0.5, 1.0, 2.0, 3.0, -1.0])
    numbers = torch.tensor([0.5, 1.0, 2.0, 3.0, -1.0])
    function = getattr(torch, "_foreach_" + name)
    ours = to_device((a, b, c), "dml")
    assert_same(list(function(*ours, numbers)), list(function(a, b, c, numbers)))


def test_powers_that_float32_has_no_room_for() -> None:
    x = [torch.tensor([-1.5, -0.5, 2.0, 0.9]), torch.tensor([-2.0, -1.0]), torch.tensor([3])]
    for exponents in ([2147483647, 2.0, 1], [16777217, 1.5, 2], [2147483647.0, 0.5, 3]):
        agree("pow", x, exponents)


def test_lerp() -> None:
    a, b, c = lists()
    agree("lerp", a, b, 0.3)
    agree("lerp", a, b, c)
    agree("lerp", a, b, [0.1, 0.9, 0.5, 0.2, 0.7])


@pytest.mark.parametrize("weight", [torch.bool, torch.int64, torch.float16, torch.float32, torch.float64], ids=str)
def test_lerp_by_numbers_of_other_dtypes(weight: torch.dtype) -> None:
    for dtype in (torch.float16, torch.float32):
        x, y = torch.tensor([1.0, 2.0], dtype=dtype), torch.tensor([3.0, 5.0], dtype=dtype)
        for w in (torch.tensor(1, dtype=weight), torch.tensor([1, 0], dtype=weight)):
            assert_same_outcome(lambda x, y, w: list(torch._foreach_lerp([x, x], [y, y], [w, w])), x, y, w)


def test_zero_copy_norm_and_powers() -> None:
    a, b, _ = lists()
    ours, others = to_device(a, "dml"), to_device(b, "dml")
    torch._foreach_copy_(ours, others)
    assert_same(ours, b)
    torch._foreach_copy_(ours, a)
    assert_same(ours, a)
    assert_same(list(torch._foreach_pow(2.0, ours)), list(torch._foreach_pow(2.0, a)))
    torch._foreach_zero_(ours)
    assert_same(ours, [torch.zeros_like(x) for x in a])


def test_gradient_clipping() -> None:
    a = [x for x in lists()[0] if x.numel()]
    ours = to_device(a, "dml")
    for parameters in (a, ours):
        for p in parameters:
            p.requires_grad_()
            p.grad = p.detach() * 10
    assert_same(torch.nn.utils.clip_grad_norm_(ours, 1.0), torch.nn.utils.clip_grad_norm_(a, 1.0))
    assert_same([p.grad for p in ours], [p.grad for p in a])


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: torch._foreach_add(a, b[:2]),
        lambda a, b: torch._foreach_add(a, [1.0, 2.0]),
        lambda a, b: torch._foreach_add_(a, [x.unsqueeze(0).expand(2, *x.shape) for x in b]),
        lambda a, b: torch._foreach_addcmul(a, b, b, [1.0]),
        lambda a, b: torch._foreach_mul_([x.long() for x in a], 0.5),
        lambda a, b: torch._foreach_pow([x.long() for x in a], -1),
        lambda a, b: torch._foreach_copy_(a, [x.new_zeros(7, *x.shape) for x in b]),
        lambda a, b: torch._foreach_norm(a, True),
        lambda a, b: torch._foreach_addcmul(a, b, b, value=1e114),
        lambda a, b: torch._foreach_addcmul(a, b, b, torch.full((5,), 1e114, dtype=torch.float64)),
        lambda a, b: torch._foreach_addcdiv_(a, b, b, [1.0, 1.0, 1.0, 1.0, -1e114]),
        lambda a, b: torch.addcmul(a[0], b[0], b[0], value=1e114),
        lambda a, b: torch.addcdiv(a[0], b[0], b[0], value=1e114),
    ],
)
def test_errors(call: Callable[..., Any]) -> None:
    a, b, _ = lists()
    assert_same_error(call, a, b, words=False)


@dtypes(torch.float64, torch.float32, torch.bfloat16)
def test_products_beyond_the_range(dtype: torch.dtype) -> None:
    large = torch.finfo(dtype).max
    a = [torch.tensor([-large, large, -math.inf, math.nan, 1.0, large], dtype=dtype)]
    b = [torch.tensor([large, -large, large, large, large, 0.5], dtype=dtype)]
    c = [torch.tensor([2.0, 2.0, 4.0, 4.0, 8.0, large], dtype=dtype)]
    want = torch.tensor([large, -large, -math.inf, math.nan, math.inf, math.inf], dtype=dtype)
    a, b, c = to_device([a, b, c], "dml")
    for got in (torch._foreach_addcmul(a, b, c)[0], torch.addcmul(a[0], b[0], c[0])):
        assert_same(got, want, rtol=0, atol=0)
    for got in (torch._foreach_add(a, b, alpha=2)[0], torch.add(a[0], b[0], alpha=2)):
        assert_same(got[:4], want[:4], rtol=0, atol=0)


@dtypes(torch.float64, torch.float32)
def test_interpolation_beyond_the_range(dtype: torch.dtype) -> None:
    large = torch.finfo(dtype).max
    start = torch.tensor([large, large, -large, -1.0], dtype=dtype)
    end = torch.tensor([-large, large / 2, 0.0, -0.0], dtype=dtype)
    weights = torch.tensor([0.5, -1.0, 1.5, 1.0], dtype=dtype)
    given = to_device([start, end, weights], "dml")
    want = torch.tensor([0.0, math.inf, large / 2, 0.0], dtype=dtype)
    assert_same(torch._foreach_lerp([given[0]], [given[1]], [given[2]])[0], want)
    assert_same(torch.lerp(*given), want)


def test_exponents_of_each() -> None:
    x = torch.tensor([-0.0, -math.inf, 4.0, -2.0, math.inf, math.nan])
    agree("pow", [x, x, x.double(), x, x, x], [0.5, -0.5, 0.5, 2.0, 3.0, 2.5])


@pytest.mark.parametrize("place", ["cpu", "dml"])
def test_numbers_in_a_tensor(place: str) -> None:
    a, b, c = lists()
    numbers = torch.arange(1.0, len(a) + 1)
    for name in ("addcmul", "addcdiv"):
        function = getattr(torch, "_foreach_" + name)
        assert_same(function(*to_device([a, b, c], "dml"), numbers.to(place)), function(a, b, c, numbers))
        with pytest.raises(RuntimeError, match="contiguous"):
            function(*to_device([a, b, c], "dml"), numbers.repeat(2).to(place)[::2])


# ---- one launch for many tensors


def same_bits(actual: Any, expected: Any) -> None:
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
        assert torch.equal(*(x.cpu().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)))


SIZES = [(64, 64), (), (1,), (3, 5), (0,), (1025,), (7, 1, 9), (70000,), (4096,)]


def many(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [(torch.rand(s) * 4 + 0.25).to(dtype).to("dml") for s in SIZES]


@dtypes(torch.float32, torch.float64)
def test_negation_keeps_subnormals(dtype: torch.dtype) -> None:
    x = torch.tensor([torch.finfo(dtype).smallest_normal / 4, 0.0, -0.0, 1.0], dtype=dtype)
    same_bits(torch._foreach_neg([x.to("dml")]), [-x])


@pytest.mark.smoke
@dtypes(torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32)
def test_the_bits_are_those_of_single_operators(dtype: torch.dtype) -> None:
    a, b, c = many(dtype), many(dtype), many(dtype)
    numbers = [float(i % 5) / 2 for i in range(len(a))] if dtype.is_floating_point else [i % 5 for i in range(len(a))]
    three = numbers[3]
    same_bits(torch._foreach_add(a, b, alpha=3), [x.add(y, alpha=3) for x, y in zip(a, b, strict=True)])
    same_bits(torch._foreach_mul(a, numbers), [x * n for x, n in zip(a, numbers, strict=True)])
    same_bits(torch._foreach_sub(a, three), [x - three for x in a])
    same_bits(torch._foreach_div(a, b), [x / y for x, y in zip(a, b, strict=True)])
    same_bits(torch._foreach_maximum(a, b), [x.maximum(y) for x, y in zip(a, b, strict=True)])
    same_bits(torch._foreach_neg(a), [-x for x in a])
    same_bits(torch._foreach_sqrt(a), [x.sqrt() for x in a])
    same_bits(torch._foreach_exp(a), [x.exp() for x in a])
    for exponent in (2, 3, 5):
        same_bits(torch._foreach_pow(a, exponent), [x**exponent for x in a])
    torch._foreach_addcmul_(a, b, c, 2)
    if dtype.is_floating_point:
        same_bits(
            torch._foreach_addcdiv(a, b, c, numbers),
            [x.addcdiv(y, z, value=n) for x, y, z, n in zip(a, b, c, numbers, strict=True)],
        )
        same_bits(torch._foreach_lerp(a, b, 0.1), [x.lerp(y, 0.1) for x, y in zip(a, b, strict=True)])
        same_bits(torch._foreach_lerp(a, b, c), [x.lerp(y, z) for x, y, z in zip(a, b, c, strict=True)])


@pytest.mark.smoke
def test_a_list_is_one_launch() -> None:
    a, b = many(), many()
    scalar = torch.tensor(1.5, device="dml")
    assert launches(lambda: torch._foreach_add_(a, b)) == 1
    assert launches(lambda: torch._foreach_mul_(a, 0.5)) == 1
    assert launches(lambda: torch._foreach_mul_(a, scalar)) == 1
    assert launches(lambda: torch._foreach_mul_(a, [0.5] * len(a))) == 1
    assert launches(lambda: torch._foreach_sqrt(a)) == 1
    assert launches(lambda: torch._foreach_copy_(a, b)) == 1
    assert launches(lambda: torch._foreach_zero_(a)) == 1
    assert launches(lambda: torch._foreach_add_(a[:1], b[:1])) == 1
    assert launches(lambda: torch._foreach_add_([a[4]], [b[4]])) == 0
    found = torch.zeros(1, device="dml")
    assert launches(lambda: torch._amp_foreach_non_finite_check_and_unscale_(a, found, scalar.reshape(1))) == 1


def test_dtypes_and_alignments_are_grouped() -> None:
    def make(device: str) -> list[torch.Tensor]:
        torch.manual_seed(1)
        mixed = [torch.rand(40).to(t) for t in (torch.float32, torch.float16, torch.float32, torch.float64)]
        # Dense, but not aligned to 16 bytes.
        return [t.to(device) for t in mixed] + [torch.rand(41).to(device)[1:] for _ in range(2)]

    ours, theirs = make("dml"), make("cpu")
    assert launches(lambda: torch._foreach_mul(ours, 3)) == 4
    assert_same(list(torch._foreach_mul(ours, 3)), list(torch._foreach_mul(theirs, 3)))
    torch._foreach_addcmul_(ours, ours, ours, 0.5)
    torch._foreach_addcmul_(theirs, theirs, theirs, 0.5)
    assert_same(ours, theirs)


@pytest.mark.parametrize("seed", range(4))
def test_any_strides(seed: int) -> None:
    def make(device: str) -> list[list[torch.Tensor]]:
        torch.manual_seed(seed)
        channels_last = [torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
        return [
            [x.to(device) for x in one]
            for one in (
                [torch.rand(6, 7).t(), torch.rand(8), channels_last[0], torch.rand(5, 3), torch.rand(4, 4)],
                [torch.rand(6, 7).t(), torch.rand(8), channels_last[1], torch.rand(3, 5).t(), torch.rand(4, 1)],
            )
        ]

    def strided(lists: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
        base = [torch.arange(40.0, device=x.device) + i for i, x in enumerate((lists[0][0], lists[1][0]))]
        return [[*x, b[::2], b[1::2], b[3:7]] for x, b in zip(lists, base, strict=True)]

    (a, b), (x, y) = strided(make("dml")), strided(make("cpu"))
    for ours, theirs in zip(torch._foreach_mul(a, b), torch._foreach_mul(x, y), strict=True):
        assert_same(ours, theirs)
        assert ours.stride() == theirs.stride()
    torch._foreach_sub_(a, b, alpha=2)
    torch._foreach_sub_(x, y, alpha=2)
    assert_same(a, x)


def test_tensors_that_share_memory_are_worked_on_in_order() -> None:
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(2)
        x, y, z = (torch.rand(100).to(device) for _ in range(3))
        torch._foreach_add_([x, x, y], 1)
        torch._foreach_mul_([x, y, z], [y, z, x])
        torch._foreach_add_([x[:50], x[25:75], x[50:]], [y[:50], z[:50], y[50:]])
        torch._foreach_copy_([x[:10], y[:10]], [y[:10], x[:10]])
        torch._foreach_mul_([x[0], x[1], x[2]], x[0])
        torch._foreach_lerp_([x, y], [y, x], 0.25)
        torch._foreach_addcmul_([x, y, z], [x, x, x], [x, y, z], 0.5)
        return [x, y, z]

    assert_same(run("dml"), run("cpu"))


def test_partial_overlap_inside_a_row_is_refused() -> None:
    for device in ("cpu", "dml"):
        x, y = torch.ones(10, device=device), torch.ones(9, device=device)
        with pytest.raises(RuntimeError, match="single memory location"):
            torch._foreach_add_([y, x[1:]], [y, x[:-1]])


def test_one_element_for_all() -> None:
    """Like the bias corrections of an optimizer that counts its steps on the device."""
    a = many()
    ones = [torch.rand((), device="dml") + 1 for _ in a]
    expected = [x.cpu() / y.cpu() for x, y in zip(a, ones, strict=True)]
    assert_same(list(torch._foreach_div(a, ones)), expected)
    assert launches(lambda: torch._foreach_div(a, ones)) == 1
    cpu = [y.cpu() for y in ones]
    assert_same(list(torch._foreach_div(a, cpu)), expected)
    mixed = [y if i % 2 else y.cpu() for i, y in enumerate(ones)]
    torch._foreach_div_(a, mixed)
    assert_same(a, expected)


def test_more_tensors_than_a_launch_takes() -> None:
    a = list(torch.arange(2500.0, device="dml").unbind())
    b = [torch.full((i % 7,), float(i), device="dml") for i in range(2500)]
    result = torch._foreach_mul(b, 2)
    assert_same(list(result), [torch.full((i % 7,), 2.0 * i) for i in range(2500)])
    assert launches(lambda: torch._foreach_mul_(a, 1.0)) == 3
    torch._foreach_add_(a, 1)
    assert_same(torch.stack(a), torch.arange(1.0, 2501.0))


def test_large_tensors_are_cut() -> None:
    a = [torch.rand(n).to("dml") for n in (3_000_001, 17, 1 << 20, 999_999)]
    b = [torch.rand_like(x) for x in a]
    same_bits(torch._foreach_add(a, b), [x + y for x, y in zip(a, b, strict=True)])
    odd = [x[1:] for x in a]
    same_bits(torch._foreach_mul(odd, 3), [x * 3 for x in odd])


def test_payloads_of_nan_are_copied() -> None:
    for dtype, bits, one in ((torch.float32, torch.int32, 0x7F800123), (torch.float16, torch.int16, 0x7C05)):
        source = [torch.full((n,), one, dtype=bits).view(dtype).to("dml") for n in (9, 40)]
        to = [torch.zeros_like(x) for x in source]
        torch._foreach_copy_(to, source)
        same_bits(to, source)
    doubles = [torch.zeros(9, dtype=torch.float64, device="dml"), torch.zeros(40, dtype=torch.float64, device="dml")]
    torch._foreach_copy_(doubles, [torch.full_like(x, 1.5, dtype=torch.float32) for x in doubles])
    assert_same(doubles, [torch.full((9,), 1.5).double(), torch.full((40,), 1.5).double()])


def test_one_by_one_gives_the_same_bits() -> None:
    code = """
import hashlib
import torch
import torch_dml
torch.manual_seed(3)
p = [torch.randn(s).to("dml").requires_grad_() for s in ((64, 64), (), (1,), (3, 5), (1025,), (70001,))]
for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD):
    for options in ({"foreach": True}, {"fused": True}):
        optimizer = make(p, 0.01, weight_decay=0.1, **options)
        for x in p:
            x.grad = torch.randn(x.shape).to("dml")
        for _ in range(3):
            optimizer.step()
print(hashlib.sha256(b"".join(t.detach().cpu().numpy().tobytes() for x in p for t in (x, x.grad))).hexdigest())
"""
    outputs = [run_python("-c", code, TORCH_DML_FOREACH=way) for way in ("", "single")]
    assert [run.returncode for run in outputs] == [0, 0], outputs
    assert outputs[0].stdout == outputs[1].stdout


def calls(dtype: torch.dtype) -> dict[str, Callable[[Any, Any], Any]]:
    """Calls with two lists: every operator with every kind of operand."""
    operands: dict[str, Callable[[Any], Any]] = {
        "list": lambda y: y,
        "tensor": lambda y: y[1][0].clone(),
        **{str(value): (lambda y, value=value: value) for value in (2, 1.5, -1, 300, True, [2, 1], [1.5, 2.5])},
    }
    all_calls: dict[str, Callable[[Any, Any], Any]] = {}
    for name in (*UNARY, "lgamma"):
        all_calls[name] = lambda x, y, name=name: getattr(torch, f"_foreach_{name}")(x)
        all_calls[name + "_"] = lambda x, y, name=name: (getattr(torch, f"_foreach_{name}_")(x), x)[1]
    for name in words("add sub mul div clamp_min clamp_max maximum minimum pow"):
        for kind, operand in operands.items():
            all_calls[f"{name} {kind}"] = lambda x, y, name=name, operand=operand: getattr(torch, f"_foreach_{name}")(
                x, operand(y)
            )
            all_calls[f"{name}_ {kind}"] = lambda x, y, name=name, operand=operand: (
                getattr(torch, f"_foreach_{name}_")(x, operand(y)),
                x,
            )[1]
    for name in ("addcmul", "addcdiv"):
        for value in (2, 1.5, [2, 1], [1.5, 2.5]):
            all_calls[f"{name} {value}"] = lambda x, y, name=name, value=value: getattr(torch, f"_foreach_{name}")(
                x, y, y, value
            )
            all_calls[f"{name}_ {value}"] = lambda x, y, name=name, value=value: (
                getattr(torch, f"_foreach_{name}_")(x, y, y, value),
                x,
            )[1]
    floats = [[v.float() for v in part] for part in lists_of(dtype)]
    all_calls |= {
        "add alpha": lambda x, y: torch._foreach_add(x, y, alpha=2),
        "sub alpha": lambda x, y: torch._foreach_sub(x, y, alpha=1.5),
        "addcdiv of floats": lambda x, y: torch._foreach_addcdiv([v.float() for v in x], y, y),
        "addcdiv by floats": lambda x, y: torch._foreach_addcdiv(x, [v.float() for v in y], y),
        "lerp": lambda x, y: torch._foreach_lerp(x, y, 0.25),
        "lerp lists": lambda x, y: torch._foreach_lerp(x, y, y),
        "lerp numbers": lambda x, y: torch._foreach_lerp(x, y, [0.5, 0.25]),
        "lerp to floats": lambda x, y: torch._foreach_lerp(x, [v.float() for v in y], 0.5),
        "lerp by floats": lambda x, y: torch._foreach_lerp(x, y, [v.float() for v in y]),
        "pow of a number": lambda x, y: torch._foreach_pow(2, x),
        "pow of true": lambda x, y: torch._foreach_pow(True, x),
        "pow of a number, transposed": lambda x, y: torch._foreach_pow(2, [torch.stack([v, v]).mT for v in x]),
        "pow to a large odd number": lambda x, y: torch._foreach_pow([-v.float() for v in x], 2.0**30 + 1),
        "pow -1": lambda x, y: torch._foreach_pow([v + v for v in x], -1),
        "pow [2, -1]": lambda x, y: torch._foreach_pow(x, [2, -1]),
        "pow_ [-1, 2]": lambda x, y: (torch._foreach_pow_(x, [-1, 2]), x)[1],
        "pow [1000, 2]": lambda x, y: torch._foreach_pow(x, [1000, 2]),
        "clamp_min 1e10": lambda x, y: torch._foreach_clamp_min(x, 1e10),
        "add alpha 1e10": lambda x, y: torch._foreach_add(x, y, alpha=1e10),
        "addcmul 1e10": lambda x, y: torch._foreach_addcmul(x, y, y, 1e10),
        "div_ a row": lambda x, y: torch._foreach_div_(x, y[0]),
        "mul_ an empty row": lambda x, y: torch._foreach_mul_(x, y[0][:0]),
        "norm": lambda x, y: torch._foreach_norm(x),
        "copy": lambda x, y: torch._foreach_copy_(x, to_device(floats[1], x[0].device)),
    }
    return all_calls


def lists_of(dtype: torch.dtype) -> list[list[torch.Tensor]]:
    """Two lists of small numbers."""
    return [[torch.tensor(row).to(dtype) for row in rows] for rows in ([[1, 0, 3], [2, 1]], [[1, 1, 2], [1, 3]])]


@dtypes(ALL)
def test_what_is_refused(dtype: torch.dtype) -> None:
    """Every operator accepts and refuses for lists what it does for tensors."""
    for name, call in calls(dtype).items():
        if TORCH >= (2, 15) and name.startswith(("clamp_m", "maximum", "minimum")) and not dtype.is_floating_point:
            continue  # It compares the limits as numbers; dml follows the earlier versions.
        try:
            assert_same_outcome(call, *lists_of(dtype), widen=False)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@dtypes(FLOATS)
def test_norms(dtype: torch.dtype) -> None:
    """For tensors of several shapes, dense or not, unaligned and with one element, and for an empty
    list.
    """
    memory = torch.randn(50_000).to(dtype)
    tensors = [memory[:40_000], memory[1:8], memory[3], memory[:600].view(20, 30).t(), memory[:100:3], memory[:8]]
    for order in (0, 1, 2, 3.5, float("inf"), -float("inf")):
        assert_matches_cpu(lambda *t, p=order: torch._foreach_norm(t, p), *tensors)
    if dtype in HALVES:
        assert_matches_cpu(lambda *t: torch._foreach_norm(t, 2, torch.float32), *tensors, widen=False)


def test_the_norm_of_one_element_is_its_magnitude() -> None:
    """Also if its powers are out of range."""
    lone = [torch.tensor(-1e-30), torch.tensor([1e30]), torch.tensor([[-0.08]])]
    for order in (0, 1, 2, 3.5, 255, float("inf")):
        assert_matches_cpu(lambda *t, p=order: torch._foreach_norm(t, p), *lone)


def test_norms_of_many_tensors() -> None:
    tensors = [torch.randn(1 + i % 50) for i in range(1100)]
    tensors[7] = torch.randn(9, dtype=torch.float16)
    tensors[8] = torch.tensor([1.0, float("nan"), float("inf")])
    for order in (1, 2, float("inf")):
        assert_matches_cpu(lambda *t, p=order: torch._foreach_norm(t, p), *tensors)
    assert torch._foreach_norm([torch.randn(3, 2, device="dml").fill_(2)])[0].item() == pytest.approx(24**0.5)


def test_norms_of_empty_and_complex_tensors() -> None:
    empty, z = torch.empty(0, 3), torch.randn(5, dtype=torch.complex64)
    assert_matches_cpu(lambda x, y: torch._foreach_norm([x, y]), empty, torch.randn(4))
    assert_same_error(lambda x, y: torch._foreach_norm([x, y], float("inf")), torch.randn(4), empty)
    assert_same_error(lambda x: torch._foreach_norm([x]), torch.arange(3))
    assert_same(torch._foreach_norm([z.to("dml"), z[:2].to("dml")]), torch._foreach_norm([z, z[:2]]))
