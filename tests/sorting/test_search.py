"""searchsorted, bucketize, isin, bincount and histc, compared with the CPU."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same_error
from tests.support.dtypes import FLOATS, INTEGERS, NUMBERS, dtypes, sample_with_ties


@dtypes(NUMBERS)
def test_searchsorted_of_dtypes(dtype):
    rows, values = sample_with_ties(3, 20, dtype=dtype).sort(1)[0], sample_with_ties(3, 9, dtype=dtype)
    for right in (False, True):
        side = "right" if right else "left"
        for int32 in (False, True):
            flags = {"right": right, "out_int32": int32}
            assert_matches_cpu(lambda s, v, f=flags: torch.searchsorted(s, v, **f), rows, values)
            assert_matches_cpu(lambda s, v, f=flags: torch.searchsorted(s[1], v, **f), rows, values)
            assert_matches_cpu(lambda s, v, f=flags: torch.bucketize(v, s[1], **f), rows, values)
        assert_matches_cpu(lambda s, v, side=side: torch.searchsorted(s, v, side=side), rows, values)
        assert_matches_cpu(lambda s, r=right: (torch.searchsorted(s[0], 1, right=r), torch.bucketize(1, s[0])), rows)


def test_searchsorted_with_a_sorter():
    rows, values = torch.randn(4, 50), torch.randn(4, 7)
    sorter = rows.argsort(1)
    assert_matches_cpu(lambda s, v, o: torch.searchsorted(s, v, sorter=o), rows, values, sorter)
    assert_matches_cpu(lambda s, v, o: torch.searchsorted(s[0], v, sorter=o[0], right=True), rows, values, sorter)
    with pytest.raises(RuntimeError, match="index 51 is out of bounds"):
        torch.searchsorted(rows.to("dml"), values.to("dml"), sorter=sorter.to("dml") + 2 * (sorter == 49).to("dml"))
        torch.dml.synchronize()


def test_searchsorted_of_shapes():
    rows, values = torch.randn(2, 3, 1000).sort(2)[0], torch.randn(2, 3, 5)
    assert_matches_cpu(torch.searchsorted, rows, values)
    assert_matches_cpu(lambda s, v: torch.searchsorted(s, v.transpose(0, 1).contiguous().transpose(0, 1)), rows, values)
    assert_matches_cpu(lambda s, v: torch.searchsorted(s[0, 0, ::3], v), rows, values)
    assert_matches_cpu(
        lambda s, v: (torch.searchsorted(s[..., :0], v), torch.searchsorted(s, v[..., :0])), rows, values
    )
    assert_matches_cpu(lambda s, v: torch.searchsorted(s[0, 0], v[0, 0, 0]), rows, values)
    # Promotion: a Python number counts less than a tensor, a 0-dim tensor less than one with
    # dimensions.
    steps = torch.arange(5)
    assert_matches_cpu(lambda s: (torch.searchsorted(s, 1.5), torch.bucketize(2.5, s)), steps)
    assert_matches_cpu(lambda s, v: torch.searchsorted(s, v), steps, torch.tensor([1.5, 2.0]))

    def out(s, v):
        row = torch.empty(0, dtype=torch.int64, device=s.device)
        wide = torch.zeros(3, 2, 5, dtype=torch.int32, device=s.device).transpose(0, 1)
        torch.searchsorted(s, v, out=row)
        torch.bucketize(v, s[0, 0], out_int32=True, out=wide)
        return row, wide

    assert_matches_cpu(out, rows, values)


def test_searchsorted_of_nan():
    row = torch.tensor([-math.inf, -1.0, 0.0, 3.0, math.inf, math.nan, math.nan])
    values = torch.tensor([math.nan, -math.inf, math.inf, 0.0, -0.0, 2.0])
    for right in (False, True):
        assert_matches_cpu(lambda s, v, r=right: torch.searchsorted(s, v, right=r), row, values)


@dtypes(NUMBERS)
def test_isin(dtype):
    elements, tests = sample_with_ties(4, 30, dtype=dtype), sample_with_ties(6, dtype=dtype)
    for invert in (False, True):
        assert_matches_cpu(lambda e, t, i=invert: torch.isin(e, t, invert=i), elements, tests)
        assert_matches_cpu(lambda e, t, i=invert: torch.isin(e, t.repeat(600), invert=i), elements, tests)
        assert_matches_cpu(lambda e, i=invert: (torch.isin(e, 2, invert=i), torch.isin(2, e, invert=i)), elements)
        assert_matches_cpu(lambda e, i=invert: torch.isin(e, e[:0], invert=i), elements)
    assert_matches_cpu(lambda e, t: torch.isin(e.t(), t, assume_unique=True), elements.unique().reshape(1, -1), tests)


def test_isin_of_special_values():
    x = torch.tensor([math.nan, 0.0, -0.0, math.inf, 1.0])
    assert_matches_cpu(lambda x: (torch.isin(x, x[:2]), torch.isin(x, -0.0), torch.isin(x, x)), x)
    whole = torch.tensor([1, 2, 3])
    assert_matches_cpu(lambda w, x: (torch.isin(w, x), torch.isin(w, 1.0), torch.isin(x, w)), whole, x)
    assert_matches_cpu(lambda x: torch.isin(x, x[:2], out=torch.zeros(5, dtype=torch.bool, device=x.device)), x)


@dtypes(INTEGERS)
def test_bincount(dtype):
    x = torch.randint(0, 100, (5000,)).to(dtype)
    assert_matches_cpu(lambda x: (x.bincount(), x.bincount(minlength=7), x[:3].bincount(minlength=120)), x)
    assert_matches_cpu(lambda x: (x[::3].bincount(), x[:0].bincount(), x[:0].bincount(minlength=4)), x)


@dtypes(FLOATS, torch.int64, torch.uint8)
def test_bincount_with_weights(dtype):
    x, weights = torch.randint(0, 30, (5000,)), sample_with_ties(5000, dtype=dtype)
    assert_matches_cpu(lambda x, w: (x.bincount(w), x[:99].bincount(w[:99], 40), x[::2].bincount(w[::2])), x, weights)


@dtypes(FLOATS)
def test_histc(dtype):
    x = torch.rand(4, 700, dtype=torch.float64).to(dtype) * 4
    # Where rounding decides on an element's bin, it is the CPU's. 16-bit dtypes can count to at
    # least 256.
    for bins, low, high in ((4, 0, 4), (10, 1, 3), (16, -2, 6)):
        assert_matches_cpu(lambda x, b=bins, low=low, high=high: x.histc(b, low, high), x[:, :60], widen=False)
    assert_matches_cpu(lambda x: (x.histc(4, 0, 4), x.histc(8, 1, 3)), x)
    assert_matches_cpu(lambda x: (x.round().histc(8), x[:, :5].t().histc(3), torch.ones_like(x[:, :50]).histc(6)), x)
    assert_matches_cpu(lambda x: (x[:0].histc(5), x[0, 0].histc(3)), x)
    assert_matches_cpu(lambda x: torch.histc(x, 8, 0, 4, out=x.new_zeros(16)[::2]), x)
    special = torch.tensor([math.nan, math.inf, -math.inf, 0.0, 1.0, 2.0, 0.5], dtype=dtype)
    assert_matches_cpu(lambda x: x.histc(4, 0, 2), special)


@dtypes(INTEGERS)
def test_histc_of_integers(dtype):
    """Counted as on CUDA; the CPU does not support it."""
    x = torch.randint(0, 100, (3, 500)).to(dtype)
    for bins, low, high in ((10, 0, 100), (7, 3, 90), (100, 0, 0), (3, 5, 5), (300, 10, 20)):
        least, largest = (low, high) if low != high else (int(x.min()), int(x.max())) if low == 0 else (4, 6)
        given = x if low != high or low == 0 else torch.full_like(x, 5)
        counts = [0] * bins
        for number in given.flatten().tolist():
            if least <= number <= largest:
                counts[min((number - least) * bins // (largest - least), bins - 1)] += 1
        result = given.to("dml").histc(bins, low, high)
        assert result.dtype == dtype
        assert result.cpu().tolist() == torch.tensor(counts).to(dtype).tolist()
    assert x[:, :0].to("dml").histc(4).tolist() == [0, 0, 0, 0]


def test_histc_limits_beyond_the_dtype():
    for low, high in ((-7, 255), (0, 256), (-7, 0)):
        assert_same_error(lambda x, low=low, high=high: x.histc(3, low, high), torch.arange(5, dtype=torch.uint8))
    # Fractions are compared before the conversion to integers.
    assert_same_error(lambda x: x.histc(10, 0.1, 0), torch.arange(5, dtype=torch.int8))
    for dtype, low, high in ((torch.float16, -16777216.0, 0), (torch.bfloat16, 0, 1e39), (torch.float32, 0, 1e39)):
        assert_same_error(lambda x, low=low, high=high: x.histc(3, low, high), torch.rand(5).to(dtype))


def test_histc_of_wide_integers():
    wide = torch.tensor([-(2**62), 2**62 - 1, 0], device="dml")
    assert wide.histc(1).tolist() == [3]
    assert (wide // 4).histc(4).tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.isin(x.bool(), x),
        lambda x: torch.isin(True, x),
        lambda x: torch.isin(x, False),
    ],
)
def test_isin_takes_no_flags(function):
    assert_same_error(function, torch.arange(3))


def test_errors():
    x, whole = torch.ones(2, 3, device="dml"), torch.tensor([1, 2], device="dml")
    for call, error, text in (
        (lambda: torch.searchsorted(x, 1.5), RuntimeError, "can be a scalar only"),
        (lambda: torch.searchsorted(x, x[0]), RuntimeError, "must match"),
        (lambda: torch.searchsorted(x[0], x, side="middle"), RuntimeError, "side can only be"),
        (lambda: torch.searchsorted(x[0], x, side="left", right=True), RuntimeError, "opposites"),
        (lambda: torch.searchsorted(x[0], x, sorter=whole), RuntimeError, "same size"),
        (lambda: torch.searchsorted(x[0], x, out=x), RuntimeError, "dtype is wrong"),
        (lambda: torch.bucketize(x, x), RuntimeError, "1 dimension"),
        (lambda: torch.isin(x > 0, x > 0), RuntimeError, "isin"),
        (lambda: torch.bincount(-whole), RuntimeError, "non-negative"),
        (lambda: torch.bincount(x), RuntimeError, "not implemented"),
        (lambda: torch.bincount(whole, x[0]), RuntimeError, "same length"),
        (lambda: x.histc(0), RuntimeError, "bins must be"),
        (lambda: x.histc(3, 2, 1), RuntimeError, "larger than min"),
        (lambda: (x * math.nan).histc(3), RuntimeError, "not finite"),
        (lambda: (whole > 1).histc(3), RuntimeError, "not implemented"),
        (lambda: whole.histc(3, 2, 1), RuntimeError, "larger than min"),
        (lambda: whole.int().histc(3, 0, 2**31), RuntimeError, "without overflow"),
        (lambda: whole.histc(3, -(2**62), 2**62), RuntimeError, "beyond 64-bit"),
    ):
        with pytest.raises(error, match=text):
            call()
