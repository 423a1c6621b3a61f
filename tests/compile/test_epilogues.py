"""Products of compiled graphs with the operators that follow them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code
from torch_dml.inductor import roundings

from tests.compile.compiled import compiled, same_bits

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]

a, b, column = torch.randn(12, 20), torch.randn(20, 16), torch.randn(12, 1)
bias, residual = torch.randn(16), torch.randn(12, 16)

CASES: dict[str, Callable[..., torch.Tensor]] = {
    "activation": lambda a, b, bias, r, c: torch.addmm(bias, a, b).relu(),
    "several": lambda a, b, bias, r, c: (torch.addmm(bias, a, b).sigmoid() * 0.5 + r).tanh() * c,
    "residual": lambda a, b, bias, r, c: r - a @ b,
    "of itself": lambda a, b, bias, r, c: F.silu(a @ b).square() / 3,
    "alpha": lambda a, b, bias, r, c: torch.add(torch.addmm(bias, a, b, beta=0.5, alpha=2), r, alpha=1.5),
    "gradient": lambda a, b, bias, r, c: torch.ops.aten.silu_backward(a @ b, r),
}


def on_device(dtype: torch.dtype) -> list[torch.Tensor]:
    return [x.to("dml", dtype) for x in (a, b, bias, residual, column)]


def fused(function: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Any, int]:
    """The result of a compiled function, and the number of its products with an epilogue."""
    result, codes = run_and_get_code(compiled(function, **options), *inputs)
    return result, "".join(codes).count("torch_dml.product_then.default(")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.smoke] * (name == "several")) for name in CASES]
)
def test_operators_join_the_product(name: str, dtype: torch.dtype) -> None:
    inputs = on_device(dtype)
    found, count = fused(CASES[name], *inputs)
    assert count == (dtype != torch.float64) and same_bits(found, CASES[name](*inputs))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_gelu(dtype: torch.dtype) -> None:
    inputs = on_device(dtype)
    for approximate in ("none", "tanh"):
        found, count = fused(
            lambda a, b, bias, *_, by=approximate: F.gelu(torch.addmm(bias, a, b), approximate=by), *inputs
        )
        expected = F.gelu(torch.addmm(*(inputs[i] for i in (2, 0, 1))), approximate=approximate)
        assert count == (dtype == torch.float32) and same_bits(found, expected)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_long_functions_of_large_results(dtype: torch.dtype) -> None:
    a, b = torch.randn(600, 8).to("dml", dtype), torch.randn(8, 600).to("dml", dtype)
    for function, joins in ((torch.sigmoid, 0), (lambda x: x / 3, 0), (torch.relu, 1), (lambda x: 1 - x.abs() * 2, 1)):
        found, count = fused(lambda a, b, function=function: function(a @ b), a, b)
        assert count == joins and same_bits(found, function(a @ b))


def test_rows_of_several_dimensions() -> None:
    linear = torch.nn.Linear(20, 16).to("dml")
    x, r = torch.randn(3, 4, 20, device="dml"), torch.randn(3, 4, 16, device="dml")
    scale, rows = torch.randn(16, device="dml"), torch.randn(3, 4, 1, device="dml")

    def function(x: torch.Tensor) -> torch.Tensor:
        return (linear(x).relu() + r) * scale * rows

    for grad in (torch.no_grad, torch.enable_grad):
        with grad():
            found, _ = fused(function, x)
            assert same_bits(found, function(x))
    with torch.no_grad():
        assert fused(function, x)[1] == 1


def test_batches() -> None:
    x, y, r = torch.randn(3, 5, 7), torch.randn(3, 7, 9), torch.randn(3, 5, 9)
    x, y, r = x.to("dml"), y.to("dml"), r.to("dml")
    for function in (lambda: torch.bmm(x, y) * 2 + r, lambda: torch.baddbmm(r, x, y).relu() + r[:1]):
        found, count = fused(function)
        assert count == 1 and same_bits(found, function())


def test_what_else_reads_a_product() -> None:
    inputs = on_device(torch.float32)

    def function(a: torch.Tensor, b: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        product = a @ b
        return product, product.relu() + 1

    found, count = fused(function, *inputs)
    assert count == 0 and same_bits(found, function(*inputs))


def test_tensors_that_do_not_broadcast_to_a_product() -> None:
    x, y, r = torch.randn(4, 5, device="dml"), torch.randn(5, 1, device="dml"), torch.randn(4, 6, device="dml")
    other = torch.randn(2, 4, 1, device="dml")
    for function in (lambda: (x @ y) + r, lambda: (x @ y) * other, lambda: (x @ y).relu().expand(4, 6) * r):
        assert same_bits(fused(function)[0], function())


def test_weights_are_rounded_by_the_product() -> None:
    linear = torch.nn.Linear(20, 16).to("dml")

    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("dml", torch.bfloat16):
            return linear(x).relu()

    x = torch.randn(12, 20, device="dml")
    with torch.no_grad():
        result, codes = run_and_get_code(compiled(function), x)
        assert "rounded=torch.bfloat16" in codes[0] and "dml_kernel_0" not in codes[0]
        assert same_bits(result, function(x))


def test_training() -> None:
    def losses(run: Callable[[torch.nn.Module], Any]) -> list[float]:
        torch.manual_seed(3)
        module = torch.nn.Sequential(
            torch.nn.Linear(20, 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 32),
            torch.nn.Sigmoid(),
            torch.nn.Linear(32, 4),
        ).to("dml")
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        forward, found = run(module), []
        for _ in range(3):
            loss = F.cross_entropy(forward(inputs), torch.arange(12, device="dml") % 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    inputs = a.to("dml")
    assert losses(compiled) == pytest.approx(losses(lambda module: module), rel=1e-5)


def test_sizes_that_change() -> None:
    linear = torch.nn.Linear(20, 16).to("dml")
    run = compiled(lambda x, r: linear(x).relu() + r, dynamic=True)
    with torch.no_grad():
        for rows in (3, 12, 5):
            x, r = torch.randn(2, rows, 20, device="dml"), torch.randn(2, rows, 16, device="dml")
            assert same_bits(run(x, r), linear(x).relu() + r)


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ("", "expected expr"),
        ("expr %s, %t { %y = add %s, %t }", "0 tensors"),
        ("expr %s { %y = bitwise_not %s }", "floats"),
    ],
)
def test_expressions_that_are_none(then: str, message: str) -> None:
    x, y, *_ = on_device(torch.float32)
    with pytest.raises(ValueError, match=message):
        torch.ops.torch_dml.product_then(x, y, None, [], then, torch.float32)
    with pytest.raises(TypeError, match="computed"):
        torch.ops.torch_dml.product_then(x, y, None, [], "expr %s { %y = relu %s }", torch.int32)


def test_convolutions() -> None:
    torch.manual_seed(5)
    convolution = torch.nn.Conv2d(4, 8, 3, padding=1, groups=2).to("dml")
    norm = torch.nn.BatchNorm2d(8).to("dml").eval()
    for parameter in (norm.weight, norm.bias, norm.running_mean):
        torch.nn.init.normal_(parameter)

    def block(x: torch.Tensor, r: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return (norm(convolution(x)) + r).relu() * c

    for layout in (torch.contiguous_format, torch.channels_last):
        for batch in (1, 3):
            x, r = torch.randn(batch, 4, 6, 7), torch.randn(batch, 8, 6, 7)
            x, r = (t.to("dml", memory_format=layout) for t in (x, r))
            c = torch.randn(batch, 8, 1, 1, device="dml")
            with torch.no_grad():
                result, codes = run_and_get_code(compiled(block), x, r, c)
                torch.testing.assert_close(result, block(x, r, c), rtol=1e-5, atol=1e-5)
                assert result.stride() == block(x, r, c).stride()
            assert codes[0].count("convolution_then.default(") == 1 and "dml_kernel_0" not in codes[0]


def finished(convolution: Callable[..., Any], x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    return ((convolution(x) * others[2] + others[0]) * 0.5 - others[1]).sigmoid()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 5, 3), (4, 1, 1)], ids=str)
@pytest.mark.parametrize("kernel", [1, 3, (2, 3)], ids=str)
def test_convolutions_have_the_same_bits(kernel: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    batch, *pixels = shape
    for groups, channels in ((1, 12), (4, 12), (12, 12)):
        convolution = torch.nn.Conv2d(12, channels, kernel, padding=1, groups=groups).to("dml", dtype)
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(batch, 12, *pixels).to("dml", dtype, memory_format=layout)
            with torch.no_grad():
                like = convolution(x)
                others = torch.randn_like(like), like[:1] * 2, torch.randn(12, 1, 1, device="dml", dtype=dtype)

                result, codes = run_and_get_code(compiled(finished), convolution, x, *others)
                assert codes[0].count("convolution_then.default(") == 1
                assert same_bits(result, finished(convolution, x, *others))
                assert result.is_contiguous(memory_format=layout) == like.is_contiguous(memory_format=layout)


def test_weights_are_rounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [torch.nn.Linear(16, 16) for _ in range(6)]
    model = torch.nn.Sequential(*layers).to("dml")
    x = torch.randn(8, 16, device="dml")

    def step(run: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        model.zero_grad()
        with torch.autocast("dml", torch.bfloat16):
            y = run(x)
        y.float().sum().backward()
        return [y, *(parameter.grad for parameter in model.parameters())]

    expected = step(model)
    for most, calls in ((1 << 26, 1), (16 * 16 * 2 * 4, 2)):
        monkeypatch.setattr(roundings, "MOST_BYTES", most)
        torch.compiler.reset()
        found, codes = run_and_get_code(lambda: step(compiled(model)))
        assert codes[0].count("= torch.ops.torch_dml.rounded.default(") == calls
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
        assert same_bits(found[0], expected[0])
