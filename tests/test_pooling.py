"""Pooling against the CPU: windows, memory formats, gradients."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from conftest import assert_matches_cpu

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": (5, 4), "stride": 3, "padding": 2, "ceil_mode": True},
    {"kernel_size": 1, "stride": 3},
]


def images(*sizes, dtype=torch.float32):
    return torch.randn(*sizes).to(dtype).requires_grad_()


def same_format(function, *args):
    """Compares with the CPU, the strides of the results too."""
    result = assert_matches_cpu(function, *args)
    expected = function(*args)
    for ours, theirs in zip(result, expected, strict=True) if isinstance(result, tuple) else [(result, expected)]:
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("window", [*WINDOWS, {"kernel_size": 2, "stride": 2, "dilation": 3, "padding": 1}])
def test_max_pool(window):
    pool = lambda x: F.max_pool2d(x, return_indices=True, **window)  # noqa: E731
    assert_matches_cpu(pool, images(2, 3, 9, 11))
    assert_matches_cpu(pool, images(3, 9, 11))
    assert_matches_cpu(lambda x: F.max_pool2d(x, **window) * 2, images(2, 3, 9, 11))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_max_pool_dtypes(dtype):
    x = (torch.randn(2, 3, 8, 8) * 10).to(dtype)
    if dtype.is_floating_point:
        x.requires_grad_()
    assert_matches_cpu(lambda x: torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1]), x)


def test_max_pool_special_values():
    x = torch.randn(1, 1, 6, 6)
    x[0, 0, 1, 1] = x[0, 0, 0, 1] = math.nan
    x[0, 0, 2:4] = -math.inf
    x[0, 0, 4:] = 7
    assert_matches_cpu(lambda x: F.max_pool2d(x, 2, return_indices=True), x)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("options", [{}, {"count_include_pad": False}, {"divisor_override": 5}])
def test_avg_pool(window, options):
    pool = lambda x: F.avg_pool2d(x, **window, **options)  # noqa: E731
    assert_matches_cpu(pool, images(2, 3, 9, 11))
    assert_matches_cpu(lambda x: pool(x) * 2, images(3, 9, 11))


@pytest.mark.parametrize("dtype", FLOATS)
def test_average_dtypes(dtype):
    x = images(2, 3, 8, 8, dtype=dtype)
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), x)
    assert_matches_cpu(lambda x: F.avg_pool2d(x.long(), 2), x.detach())


@pytest.mark.parametrize("size", [1, 2, 3, (5, 1), (4, 7), (9, 11), (13, 12), (None, 3)])
def test_adaptive_avg_pool(size):
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, size), images(2, 3, 9, 11))
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, size), images(3, 9, 11))


def test_memory_formats():
    x = torch.randn(2, 3, 8, 9)
    for view in (
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3),
        lambda x: x[:, 1:, ::2, 1:],
        lambda x: x[:1].expand(4, 3, 8, 9),
    ):
        same_format(lambda x, view=view: F.max_pool2d(view(x), 3, 2, 1, return_indices=True), x)
        same_format(lambda x, view=view: F.avg_pool2d(view(x), 3, 2, 1), x)
        same_format(lambda x, view=view: F.adaptive_avg_pool2d(view(x), 3), x)
    last = x.to(memory_format=torch.channels_last).requires_grad_()
    for pool in (lambda x: F.max_pool2d(x, 2), lambda x: F.avg_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, 2)):
        assert_matches_cpu(pool, last)
        on_device = last.detach().to("dml").requires_grad_()
        pool(on_device).sum().backward()
        assert on_device.grad.is_contiguous(memory_format=torch.channels_last)


def test_one_dimension():
    x = images(2, 3, 20)
    assert_matches_cpu(lambda x: F.max_pool1d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.avg_pool1d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool1d(x, 6), x)


def test_empty_batch():
    x = torch.zeros(0, 3, 5, 5)
    assert_matches_cpu(lambda x: F.max_pool2d(x, 2), x)
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 2), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, 2), x)


def test_out():
    def run(x):
        values, indices = torch.empty(0, device=x.device), torch.empty(0, dtype=torch.int64, device=x.device)
        torch.ops.aten.max_pool2d_with_indices.out(x, [2, 2], out=values, indices=indices)
        average = torch.empty(0, device=x.device)
        torch.ops.aten.avg_pool2d.out(x, [2, 2], out=average)
        return values, indices, average

    assert_matches_cpu(run, torch.randn(2, 3, 6, 6))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, (2, 2, 2)),
        lambda x: F.max_pool2d(x, 20),
        lambda x: F.max_pool2d(x, 2, padding=2),
        lambda x: F.max_pool2d(x, 2, stride=0),
        lambda x: F.avg_pool2d(x, 20),
        lambda x: F.avg_pool2d(x, 2, padding=-1),
        lambda x: F.avg_pool2d(x, 2, divisor_override=0),
        lambda x: F.avg_pool2d(x.int(), 2),
        lambda x: torch.ops.aten._adaptive_avg_pool2d(x[0, 0], [2, 2]),
        lambda x: torch.ops.aten._adaptive_avg_pool2d(x.long(), [2, 2]),
        lambda x: torch.ops.aten.max_pool2d_with_indices(x[:, :0], [2, 2]),
        lambda x: torch.ops.aten.max_pool2d_with_indices(x > 0, [2, 2]),
    ],
)
def test_errors(function):
    x = torch.randn(2, 3, 8, 9)
    with pytest.raises(Exception) as expected:
        function(x)
    with pytest.raises(type(expected.value)) as actual:
        function(x.to("dml"))
    assert str(actual.value).splitlines()[0] == str(expected.value).splitlines()[0]
