"""8-bit floats: stored, moved and converted bit for bit as on the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_same, assert_same_error, assert_same_outcome, to_device
from tests.support.dtypes import FLOATS, INTEGERS, dtypes
from tests.support.environment import TORCH
from tests.support.layouts import lay_out, layouts

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
HALF_BITS = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16)


def every(dtype: torch.dtype) -> torch.Tensor:
    """All elements of the dtype."""
    return torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().view(torch.uint8)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The CPU's conversion.

    From torch 2.13 on it converts numbers out of e4m3fn's range to the largest number; the device
    converts them to NaN, as earlier versions did.
    """
    result = x.to(dtype)
    if TORCH < (2, 13) or dtype != torch.float8_e4m3fn:
        return result
    values = x.float()
    nan = torch.where(values.signbit(), 0xFF, 0x7F).to(torch.uint8)
    return torch.where(values.abs() > 464, nan, bits(result)).view(dtype)


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert torch.equal(bits(actual), bits(expected))


def test_round_trip() -> None:
    for dtype in FLOAT8:
        assert_same_bits(every(dtype).to("dml"), every(dtype))
        assert_same_bits(every(dtype).to("dml").clone(), every(dtype))


@pytest.mark.smoke
@dtypes(FLOAT8)
def test_casts_to_floats(dtype: torch.dtype) -> None:
    x = every(dtype)
    for to in FLOATS:
        expected, actual = x.to(to), x.to("dml").to(to).cpu()
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(actual.signbit()[~expected.isnan()], expected.signbit()[~expected.isnan()])


@pytest.mark.smoke
@dtypes(FLOAT8)
def test_casts_of_floats(dtype: torch.dtype) -> None:
    """All halves; and for other floats numbers close to the midpoints between neighbours, and far
    out of range.
    """
    for source in (torch.float16, torch.bfloat16):
        x = HALF_BITS.view(source)
        assert_same_bits(x.to("dml").to(dtype), rounded(x, dtype))
    finite = every(dtype).float()
    finite = finite[finite.isfinite()].sort().values
    middles = (finite[1:] + finite[:-1]) / 2
    edges = [middles, middles.nextafter(torch.tensor(1e30)), middles.nextafter(torch.tensor(-1e30)), finite]
    special = torch.tensor(
        [float("inf"), float("nan"), 1e30, 3.4e38, 464.0, 480.0, 61440.0, 65536.0, 1e-30, 1e-45, 0.0]
    )
    x = torch.cat([*edges, special, -special, torch.randn(1000) * 100])
    assert_same_bits(x.to("dml").to(dtype), rounded(x, dtype))
    if torch.float64 in FLOATS:
        wide = x.double() * (1 + 2**-40)
        assert_same_bits(wide.to("dml").to(dtype), rounded(wide, dtype))


@dtypes(FLOAT8)
def test_casts_of_integers(dtype: torch.dtype) -> None:
    for source in (*INTEGERS, torch.bool, torch.uint16):
        x = torch.tensor([0, 1, 2, 3, 17, 100, 127]).to(source)
        assert_same_bits(x.to("dml").to(dtype), x.to(dtype))
    numbers = every(dtype).float().nan_to_num(0).clamp(-100, 100).to(dtype)
    for to in (torch.int8, torch.int16, torch.int32, torch.int64):
        assert torch.equal(numbers.to("dml").to(to).cpu(), numbers.to(to))
    assert torch.equal(every(dtype).to("dml").bool().cpu(), every(dtype).bool())


def test_casts_between_formats() -> None:
    for source in FLOAT8:
        for to in FLOAT8:
            expected = every(source) if source == to else rounded(every(source), to)
            assert_same_bits(every(source).to("dml").to(to), expected)


@layouts()
def test_copies_of_layouts(layout: str) -> None:
    x = lay_out(torch.randn(2, 3, 4, 5), layout)
    for dtype in FLOAT8[:2]:
        expected, actual = x.to(dtype), x.to("dml").to(dtype)
        assert_same_bits(actual, expected)
        assert torch.equal(actual.float().cpu(), expected.float())
        assert_same_bits(actual.flatten()[1::2].contiguous(), expected.flatten()[1::2].contiguous())


@dtypes(FLOAT8)
def test_creation(dtype: torch.dtype) -> None:
    for make in (torch.zeros, torch.ones):
        assert_same_bits(make(3, 5, dtype=dtype, device="dml"), make(3, 5, dtype=dtype))
    for value in (0.0, -0.0, 3, 2.7, True, 200.0, float("nan")):
        assert_same_bits(torch.full((7,), value, dtype=dtype, device="dml"), torch.full((7,), value, dtype=dtype))
    for value in (1e3, 1e9, float("inf"), -float("inf")):
        assert_same_outcome(lambda x, v=value: torch.full((7,), v, dtype=dtype, device=x.device).float(), torch.ones(1))
    x = torch.empty(4, dtype=dtype, device="dml")
    assert_same_bits(x.fill_(torch.tensor(2.3, device="dml")), torch.empty(4, dtype=dtype).fill_(torch.tensor(2.3)))
    assert_same_bits(x.zero_(), torch.zeros(4, dtype=dtype))
    assert_same_bits(torch.tensor([1.0, 2.3], dtype=dtype, device="dml"), torch.tensor([1.0, 2.3], dtype=dtype))
    assert torch.full((), 2.3, dtype=dtype, device="dml").item() == torch.full((), 2.3, dtype=dtype).item()
    assert repr(every(dtype).to("dml")[:3].cpu()) == repr(every(dtype)[:3])


@dtypes(FLOAT8)
def test_movement(dtype: torch.dtype) -> None:
    x = every(dtype).view(16, 16)
    rows, mask = torch.tensor([3, 0, -1, 3]), torch.rand(16, 16) > 0.5
    functions = [
        lambda x, rows, mask: torch.cat([x, x[:3], x.t()]),
        lambda x, rows, mask: torch.stack([x, x], -1),
        lambda x, rows, mask: x[rows],
        lambda x, rows, mask: x[rows, rows],
        lambda x, rows, mask: x[mask],
        lambda x, rows, mask: x.masked_select(mask),
        lambda x, rows, mask: x.index_select(1, rows % 16),
        lambda x, rows, mask: x.roll(3, 0),
        lambda x, rows, mask: x.repeat(2, 3),
        lambda x, rows, mask: torch.where(mask, x, x.t()),
        lambda x, rows, mask: torch.where(mask, x, 1.3),
        lambda x, rows, mask: x.clone().index_put_((rows[:3],), x[4:7]),
        lambda x, rows, mask: torch.nn.functional.pad(x, (1, 2)),
        lambda x, rows, mask: x[2:9, 1::3].contiguous(),
        lambda x, rows, mask: x.view(torch.uint8),
        lambda x, rows, mask: torch.nn.functional.embedding(rows % 16, x),
    ]
    for function in functions:
        expected, actual = function(x, rows, mask), function(*to_device((x, rows, mask), "dml"))
        if expected.dtype == dtype:
            # A NaN that is not moved, but selected with a number, is the format's own.
            same = bits(actual) == bits(expected)
            assert (same | expected.isnan()).all()
            assert torch.equal(actual.isnan().cpu(), expected.isnan())
        else:
            assert torch.equal(actual.cpu(), expected)


@dtypes(FLOAT8)
def test_what_computes(dtype: torch.dtype) -> None:
    x, y = every(dtype), every(dtype).roll(7)
    for function in (torch.eq, torch.ne):
        assert_same_outcome(lambda x, y, f=function: f(x.view(dtype), y.view(dtype)), bits(x), bits(y))
        assert_same_outcome(lambda x, f=function: f(x.view(dtype), 2.3), bits(x))
        assert_same_outcome(lambda x, f=function: f(x.view(dtype), 1), bits(x))
    for function in (torch.isnan, torch.any, torch.all):
        assert_same_outcome(lambda x, f=function: f(x.view(dtype)), bits(x))
    assert_same_bits(x.to("dml").abs(), x.abs())
    assert_same_bits(x.to("dml").abs_(), x.abs())
    product, expected = x.to("dml") * y.to("dml"), rounded(x.float() * y.float(), dtype)
    assert torch.equal(product.isnan().cpu(), expected.isnan())
    assert torch.equal(bits(product)[~expected.isnan()], bits(expected)[~expected.isnan()])


@pytest.mark.allow_fallback
@dtypes(FLOAT8)
def test_what_is_refused(dtype: torch.dtype) -> None:
    x, y = every(dtype)[:8], torch.randn(8)
    for function in (
        lambda x, y: x.to(dtype) + x.to(dtype),
        lambda x, y: x.to(dtype) == y,
        lambda x, y: x.to(dtype) * y,
        lambda x, y: torch.cat([x.to(dtype), y]),
        lambda x, y: x.to(dtype).sum(),
        lambda x, y: x.to(dtype).exp(),
        lambda x, y: x.to(dtype).sort(),
    ):
        assert_same_error(function, x.float().nan_to_num(1), y)


def scaled(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(sizes).to(dtype)


@pytest.mark.smoke
@dtypes(FLOAT8)
def test_scaled_mm(dtype: torch.dtype) -> None:
    one, other = torch.tensor(0.37), torch.tensor([2.5])
    for m, k, n in [(1, 64, 48), (3, 33, 7), (4, 16, 3), (48, 64, 32), (17, 40, 9), (0, 16, 16), (16, 0, 16)]:
        a, b = scaled(m, k, dtype=dtype), scaled(k, n, dtype=dtype)
        exact = (a.double() * one.double()) @ (b.double() * other.double())
        bias = torch.randn(n)
        for columns in (b, b.t().contiguous().t()):
            ours = [t.to("dml") for t in (a, columns, one, other)]
            actual = torch._scaled_mm(*ours, out_dtype=torch.float32)
            assert_same(actual, exact.float(), exact=exact, terms=8.0)
        actual = torch._scaled_mm(*ours, bias=bias.to("dml"), out_dtype=torch.bfloat16)
        wanted = exact + bias.double()
        assert_same(actual, wanted.bfloat16(), exact=wanted, terms=8.0)
        assert torch._scaled_mm(*ours).dtype == dtype
        rows, columns = torch.rand(m, 1) + 0.5, torch.rand(1, n) + 0.5
        exact = (a.double() @ b.double()) * rows.double() * columns.double()
        ours = [t.to("dml") for t in (a, b, rows, columns)]
        assert_same(torch._scaled_mm(*ours, out_dtype=torch.float32), exact.float(), exact=exact, terms=8.0)
        out = torch.empty(m, n, device="dml")
        assert torch._scaled_mm(*ours, out_dtype=torch.float32, out=out) is out
        assert_same(out, exact.float(), exact=exact, terms=8.0)


def test_scaled_mm_of_two_formats() -> None:
    a, b = scaled(20, 32, dtype=torch.float8_e5m2), scaled(32, 24, dtype=torch.float8_e4m3fn)
    one = torch.tensor(1.0)
    exact = a.double() @ b.double()
    ours = [t.to("dml") for t in (a, b, one, one)]
    assert_same(torch._scaled_mm(*ours, out_dtype=torch.float32), exact.float(), exact=exact, terms=8.0)


def test_errors_of_scaled_mm() -> None:
    a, b, one = torch.randn(4, 8), torch.randn(8, 6), torch.tensor(1.0)

    def multiply(a: torch.Tensor, b: torch.Tensor, *rest: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        dtype = torch.float8_e4m3fn
        return torch._scaled_mm(a.to(dtype), b.to(dtype), *rest, **options)

    words = TORCH < (2, 13)  # then others
    assert_same_error(multiply, a, b[:4], one, one, words=words)
    assert_same_error(multiply, a[0], b, one, one, words=words)
    assert_same_error(multiply, a, b[0], one, one, words=words)
    assert_same_error(lambda *t: multiply(*t[:4], bias=t[4]), a, b, one, one, torch.ones(3), words=words)
    if words:
        assert_same_error(torch._scaled_mm, a, b, one, one)
    with pytest.raises(RuntimeError, match="Float8"):
        torch._scaled_mm(*to_device((a, b, one, one), "dml"))
