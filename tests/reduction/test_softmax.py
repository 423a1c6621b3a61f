"""softmax and log_softmax, compared with the CPU."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same_outcome
from tests.support.dtypes import FLOATS, dtypes

FUNCTIONS = [torch.softmax, torch.log_softmax]


def reference(function, x, dim):
    return function(x.double(), dim)


@pytest.mark.parametrize("function", FUNCTIONS)
@dtypes(FLOATS)
def test_dtypes_and_dims(function, dtype):
    x = (torch.randn(3, 5, 7, dtype=torch.float64) * 3).to(dtype)
    for dim in (0, 1, 2, -1, -3):
        assert_matches_cpu(lambda x, dim=dim: function(x, dim), x)
    assert_matches_cpu(lambda x: function(x, 0), x[0, 0, 0])
    assert_matches_cpu(lambda x: function(x, -1), x[:, :0])
    assert_matches_cpu(lambda x: function(x, 1), x[:, :0])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [1, 2, 10, 64, 100, 1000, 4096, 5000, 70000])
def test_rows_of_every_length(function, n):
    x = torch.randn(3, n) * 4
    y = function(x.to("dml"), 1).cpu()
    torch.testing.assert_close(y.double(), reference(function, x, 1), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 10, 3), (1, 200, 40), (2, 600, 33), (3, 4097, 2)])
def test_columns(function, shape):
    x = torch.randn(shape) * 4
    y = function(x.to("dml"), 1).cpu()
    torch.testing.assert_close(y.double(), reference(function, x, 1), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_strides(function):
    x = torch.randn(4, 6, 5, 3)
    assert_matches_cpu(lambda x: function(x.transpose(0, 2), 1), x)
    assert_matches_cpu(lambda x: function(x.to(memory_format=torch.channels_last), 1), x)
    assert_matches_cpu(lambda x: function(x[::2, 1:], -1), x)
    assert_matches_cpu(lambda x: function(x[:, :1].expand(4, 6, 5, 3), 1), x)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [8, 6000])
def test_special_values(function, n):
    x = torch.randn(7, n)
    x[0, 3] = math.nan
    x[1] = -math.inf
    x[2, 1] = math.inf
    x[3, 1:] = -math.inf
    x[4] = 1e30
    x[5] *= 1000
    x[6, ::2] = -math.inf
    assert_matches_cpu(lambda x: function(x, 1), x)


@pytest.mark.parametrize("function", FUNCTIONS)
@dtypes(FLOATS)
def test_gradients(function, dtype):
    for shape, dim in (((3, 5), 1), ((3, 5, 4), 1), ((4, 5), 0), ((2, 5000), 1), ((1, 2000, 2), 1)):
        x = torch.randn(shape).to(dtype).requires_grad_()
        weight = torch.randn(shape).to(dtype)
        assert_matches_cpu(lambda x, w, dim=dim: function(x, dim) * w, x, weight, terms=4)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_half_to_float(function):
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(4, 9, dtype=torch.float32).to(dtype).requires_grad_()
        assert_matches_cpu(lambda x: function(x, 1, dtype=torch.float32) * 0.5, x)
    raw = {torch.softmax: torch._softmax, torch.log_softmax: torch._log_softmax}[function]
    half = torch.randn(4, 9).half()
    y = raw(half.to("dml"), 1, True)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y.cpu(), function(half.float(), 1))


@dtypes(torch.int64, torch.bool)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_integers_that_there_are_none_of(function, dtype):
    for shape in ((0, 3), (3, 0), (), (2, 3)):
        assert_same_outcome(lambda x: function(x, -1), torch.zeros(shape, dtype=dtype))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_out_and_errors(function):
    def run(x):
        out = torch.empty(0, device=x.device)
        assert function(x, 1, out=out) is out
        strided = torch.zeros(5, 3, device=x.device).t()
        function(x, 1, out=strided)
        return out, strided

    assert_matches_cpu(run, torch.randn(3, 5))
    x = torch.ones(2, 2, device="dml")
    with pytest.raises(IndexError, match="Dimension out of range"):
        function(x, 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        function(x.long(), 1)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double"):
        function(x, 1, out=torch.empty(2, 2, dtype=torch.float64, device="dml"))


@pytest.mark.parametrize("function", FUNCTIONS)
@dtypes(torch.float16, torch.float32, torch.float64)
def test_bits_do_not_depend_on_the_address(function, dtype):
    """Rows that are not aligned to 16 bytes are loaded element by element, and distributed like
    aligned ones.
    """
    for n in (8, 48, 1024, 4096, 8192):
        x = torch.randn(3, n, device="dml", dtype=dtype)
        apart = torch.empty(3 * n + 1, device="dml", dtype=dtype)[1:].view(3, n).copy_(x)
        assert torch.equal(function(apart, 1), function(x, 1))
