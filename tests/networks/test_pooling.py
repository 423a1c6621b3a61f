"""Pooling, compared with the CPU: windows, memory formats, gradients."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import FLOATS, HALVES, dtypes, leaf
from tests.support.environment import TORCH

WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": (5, 4), "stride": 3, "padding": 2, "ceil_mode": True},
    {"kernel_size": 1, "stride": 3},
]


def same_format(function, *args):
    """Compares with the CPU, including the strides of the results."""
    result = assert_matches_cpu(function, *args)
    expected = function(*args)
    for ours, theirs in zip(result, expected, strict=True) if isinstance(result, tuple) else [(result, expected)]:
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("window", [*WINDOWS, {"kernel_size": 2, "stride": 2, "dilation": 3, "padding": 1}])
def test_max_pool(window):
    pool = lambda x: F.max_pool2d(x, return_indices=True, **window)  # noqa: E731
    assert_matches_cpu(pool, leaf(2, 3, 9, 11))
    assert_matches_cpu(pool, leaf(3, 9, 11))
    assert_matches_cpu(lambda x: F.max_pool2d(x, **window) * 2, leaf(2, 3, 9, 11))


@dtypes(FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
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
    assert_matches_cpu(pool, leaf(2, 3, 9, 11))
    assert_matches_cpu(lambda x: pool(x) * 2, leaf(3, 9, 11))


@dtypes(FLOATS)
def test_average_dtypes(dtype):
    x = leaf(2, 3, 8, 8, dtype=dtype)
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), x)
    assert_matches_cpu(lambda x: F.avg_pool2d(x.long(), 2), x.detach())


@pytest.mark.parametrize("size", [1, 2, 3, (5, 1), (4, 7), (9, 11), (13, 12), (None, 3)])
def test_adaptive_avg_pool(size):
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, size), leaf(2, 3, 9, 11))
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, size), leaf(3, 9, 11))


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
    x = leaf(2, 3, 20)
    assert_matches_cpu(lambda x: F.max_pool1d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.avg_pool1d(x, 3, 2, 1), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool1d(x, 6), x)


def test_empty_batch():
    x = torch.zeros(0, 3, 5, 5)
    assert_matches_cpu(lambda x: F.max_pool2d(x, 2), x)
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 2), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, 2), x)


def test_adaptive_pools_of_integers():
    """A dtype is refused unless the result is empty."""
    x = torch.zeros(2, 3, 4, 4, dtype=torch.int64)
    for view, size in itertools.product((x, x[:0], x[0]), (0, (0, 2), (2, 2), (1, 1))):
        assert_same_outcome(lambda x, n=size: F.adaptive_avg_pool2d(x, n), view)
    assert_same_outcome(lambda x: F.adaptive_avg_pool1d(x, 0), x[0])
    assert_same_outcome(lambda x: F.adaptive_avg_pool3d(x, (0, 1, 1)), x)


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
        lambda x: F.avg_pool2d(x[0, 0, 0, 0], 2),
        lambda x: F.avg_pool2d(x[0, 0], 2),
        lambda x: F.lp_pool2d(x[0, 0, 0, 0], 2.0, 2),
        lambda x: F.max_pool2d(x[0, 0, 0, 0], 2),
        lambda x: F.max_pool1d(x[0, 0, 0, 0], 2),
        lambda x: F.avg_pool1d(x[0, 0, 0, 0], 2),
        lambda x: F.adaptive_avg_pool2d(x[0, 0, 0, 0], 2),
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
    assert_same_error(function, x)


# ---- three dimensions

VOLUMES = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2, 1), "stride": (2, 1, 3), "padding": (1, 0, 0)},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
]


@pytest.mark.smoke
@pytest.mark.parametrize("window", [*VOLUMES, {"kernel_size": 2, "stride": 2, "dilation": 3, "padding": 1}])
def test_max_pool3d(window):
    pool = lambda x: F.max_pool3d(x, return_indices=True, **window)  # noqa: E731
    assert_matches_cpu(pool, leaf(2, 3, 5, 6, 7))
    assert_matches_cpu(pool, leaf(3, 5, 6, 7))
    assert_matches_cpu(lambda x: F.max_pool3d(x, **window) * 2, leaf(2, 3, 5, 6, 7))


@pytest.mark.parametrize("window", VOLUMES)
@pytest.mark.parametrize("options", [{}, {"count_include_pad": False}, {"divisor_override": 5}])
def test_avg_pool3d(window, options):
    pool = lambda x: F.avg_pool3d(x, **window, **options)  # noqa: E731
    assert_matches_cpu(pool, leaf(2, 3, 5, 6, 7))
    assert_matches_cpu(lambda x: pool(x) * 2, leaf(3, 5, 6, 7))


@pytest.mark.parametrize("size", [1, 2, (3, 1, 4), (5, 6, 7), (6, 7, 9), (None, 2, None)])
def test_adaptive_pool3d(size):
    for pool in (F.adaptive_avg_pool3d, lambda x, n: F.adaptive_max_pool3d(x, n, return_indices=True)):
        assert_matches_cpu(lambda x, pool=pool: pool(x, size), leaf(2, 3, 5, 6, 7))
        assert_matches_cpu(lambda x, pool=pool: pool(x, size), leaf(3, 5, 6, 7))


@pytest.mark.parametrize("size", [1, 3, (5, 1), (9, 11), (13, 12)])
def test_adaptive_max_pool(size):
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), leaf(2, 3, 9, 11))
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, size) * 2, leaf(3, 9, 11))
    assert_matches_cpu(lambda x: F.adaptive_max_pool1d(x, 4, return_indices=True), leaf(2, 3, 9))


@dtypes(FLOATS)
def test_dtypes_of_other_pools(dtype):
    volume = leaf(2, 3, 5, 6, 7, dtype=dtype)
    assert_matches_cpu(lambda x: F.max_pool3d(x, 2, return_indices=True), volume)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool3d(x, 2), volume)
    assert_matches_cpu(lambda x: F.adaptive_max_pool3d(x, 2), volume)
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, 2), leaf(2, 3, 6, 7, dtype=dtype))
    if dtype in (torch.float32, torch.float64):
        assert_matches_cpu(lambda x: F.avg_pool3d(x, 2, 1), volume)
        assert_matches_cpu(lambda x: F.lp_pool2d(x, 2.0, 3, 2), leaf(2, 3, 9, 9, dtype=dtype))
        assert_matches_cpu(lambda x: F.lp_pool3d(x, 2.0, 2), volume)
    else:
        # The CPU refuses the dtype, so the results are compared with float32's, rounded.
        reference = F.avg_pool3d(volume.detach().float(), 2, 1).to(dtype)
        assert_same(F.avg_pool3d(volume.detach().to("dml"), 2, 1), reference)


def test_max_pool_of_a_window_in_the_padding():
    """Dilated windows may have no element of the image."""
    for dtype in (torch.float32, torch.int8, torch.int64):
        x = torch.ones(1, 1, 2, 1, dtype=dtype)
        pool = lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2, 1], [1, 1], [1, 0], [3, 1])[0]  # noqa: E731
        assert_matches_cpu(pool, x)


def test_zeros_by_a_negative_divisor():
    x = torch.tensor([0.0, -0.0, 1.0, -1.0]).reshape(1, 1, 1, 2, 2).expand(1, 1, 2, 2, 2)
    for value in (x, x[..., :1], x * 0):
        assert_matches_cpu(lambda x: 1 / F.avg_pool2d(x[:, 0], (2, 1), divisor_override=-2), value)
        assert_matches_cpu(lambda x: 1 / F.avg_pool3d(x, (2, 2, 1), divisor_override=-2), value)


def test_special_values_of_other_pools():
    x = torch.randn(1, 2, 4, 6, 6)
    x[0, 0, 1, 1, 1] = x[0, 0, 0, 0, 1] = math.nan
    x[0, 0, 2:] = -math.inf
    x[0, 1] = 7
    assert_matches_cpu(lambda x: F.max_pool3d(x, 2, return_indices=True), x)
    assert_matches_cpu(lambda x: F.adaptive_max_pool3d(x, 3, return_indices=True), x)
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x[0], 4, return_indices=True), x)


def test_memory_formats_of_other_pools():
    x = torch.randn(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d)
    window = torch.full((2, 3, 3), 0.3)
    for pool in (
        lambda x, s: F.max_pool3d(x, 2, return_indices=True),
        lambda x, s: F.avg_pool3d(x, 2),
        lambda x, s: F.adaptive_avg_pool3d(x, 2),
        lambda x, s: F.adaptive_max_pool3d(x, 2, return_indices=True),
        lambda x, s: F.fractional_max_pool3d(x, 2, 2, _random_samples=s, return_indices=True),
    ):
        same_format(pool, x, window)
        same_format(pool, x.transpose(2, 4)[:, :, 1:], window)
    x, window = torch.randn(2, 3, 6, 7).to(memory_format=torch.channels_last), window[..., :2].contiguous()
    for pool in (
        lambda x, s: F.adaptive_max_pool2d(x, 3, return_indices=True),
        lambda x, s: F.fractional_max_pool2d(x, 2, 3, _random_samples=s, return_indices=True),
        lambda x, s: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(6, 7)),
    ):
        same_format(pool, x, window)


@dtypes(FLOATS)
def test_fractional(dtype):
    for rank, sizes in ((2, (17, 13)), (3, (9, 8, 11))):
        pool = F.fractional_max_pool2d if rank == 2 else F.fractional_max_pool3d
        for kernel, output in ((2, 3), (3, 5), (1, 5), (2, 1)):
            # The positions of windows depend on rounding: in 16 bits these samples are exact.
            samples = torch.rand(2, 3, rank, dtype=dtype)
            samples = (samples * 4).floor() / 4 if dtype in HALVES else samples
            run = lambda x, s, k=kernel, o=output, pool=pool: pool(x, k, o, _random_samples=s, return_indices=True)  # noqa: E731
            assert_matches_cpu(run, leaf(2, 3, *sizes, dtype=dtype), samples)
            assert_matches_cpu(run, leaf(3, *sizes, dtype=dtype), samples[:1])
    pool = torch.nn.FractionalMaxPool2d(3, output_ratio=0.5)
    assert pool(torch.randn(2, 3, 10, 12, device="dml")).shape == (2, 3, 5, 6)


@dtypes(FLOATS)
def test_unpool(dtype):
    for pool, unpool, sizes in (
        (F.max_pool1d, F.max_unpool1d, (8,)),
        (F.max_pool2d, F.max_unpool2d, (6, 7)),
        (F.max_pool3d, F.max_unpool3d, (5, 6, 4)),
    ):
        run = lambda x, p=pool, u=unpool, n=sizes: u(*p(x, 2, return_indices=True), 2, output_size=n) * 2  # noqa: E731
        assert_matches_cpu(run, leaf(2, 3, *sizes, dtype=dtype))
        assert_matches_cpu(run, leaf(3, *sizes, dtype=dtype))
    # Overlapping windows: several elements have one destination.
    run = lambda x: F.max_unpool2d(*F.max_pool2d(x, 3, 1, return_indices=True), 3, 1)  # noqa: E731
    assert_matches_cpu(run, leaf(1, 2, 9, 9, dtype=dtype))


def test_unpool_of_one_place():
    """Of several elements with one destination the last wins; on the CPU any may win."""
    x, places = torch.arange(1.0, 13.0).reshape(1, 2, 2, 3), torch.tensor([0, 3, 0, 3, 1, 0]).repeat(2)
    out = torch.ops.aten.max_unpool2d(x.to("dml"), places.reshape(x.shape).to("dml"), [2, 2])
    assert out.tolist() == [[[[6, 5], [0, 4]], [[12, 11], [0, 10]]]]


def test_unpool_of_a_place_outside():
    x, places = torch.randn(1, 1, 2, 2, device="dml"), torch.tensor([[[[0, 1], [2, 99]]]], device="dml")
    with pytest.raises(IndexError, match="99"):
        F.max_unpool2d(x, places, 2).cpu()


def test_out_of_other_pools():
    A = torch.ops.aten

    def run(x, s):
        values, places = torch.empty(0, device=x.device), torch.empty(0, dtype=torch.int64, device=x.device)
        A.max_pool3d_with_indices.out(x, [2, 2, 2], out=values, indices=places)
        fresh = lambda: torch.empty(0, device=x.device)  # noqa: E731
        indices = lambda: torch.empty(0, dtype=torch.int64, device=x.device)  # noqa: E731
        return (
            values,
            places,
            A.avg_pool3d.out(x, [2, 2, 2], out=fresh()),
            A.adaptive_avg_pool3d.out(x, [2, 2, 2], out=fresh()),
            A.adaptive_max_pool3d.out(x, [2, 2, 2], out=fresh(), indices=indices()),
            A.fractional_max_pool3d.output(x, [2, 2, 2], [2, 2, 2], s, output=fresh(), indices=indices()),
            A.max_unpool3d.out(values, places, [4, 4, 4], [2, 2, 2], [0, 0, 0], out=fresh()),
            A.avg_pool3d_backward.grad_input(
                values, x, [2] * 3, [2] * 3, [0] * 3, False, True, None, grad_input=fresh()
            ),
            A.adaptive_avg_pool3d_backward.grad_input(values, x, grad_input=fresh()),
        )

    assert_matches_cpu(run, torch.randn(2, 3, 4, 4, 4), torch.rand(2, 3, 3))


def test_empty_batch_of_other_pools():
    x, s = torch.zeros(0, 3, 5, 5, 5), torch.zeros(0, 3, 3)
    assert_matches_cpu(lambda x: F.max_pool3d(x, 2), x)
    assert_matches_cpu(lambda x: F.avg_pool3d(x, 2), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool3d(x, 2), x)
    assert_matches_cpu(lambda x: F.adaptive_max_pool3d(x, 2), x)
    assert_matches_cpu(lambda x, s: F.fractional_max_pool3d(x, 2, 2, _random_samples=s), x, s)


def test_images_without_channels():
    """Accepted if there is no batch dimension."""
    image, volume = torch.zeros(0, 5, 5, requires_grad=True), torch.zeros(0, 5, 5, 5, requires_grad=True)
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, 2), image)
    assert_matches_cpu(lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=x.new_zeros(1, 0, 2)), image)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool3d(x, 2), volume)
    assert_matches_cpu(lambda x: F.adaptive_max_pool3d(x, 2), volume)
    assert_matches_cpu(lambda x: F.fractional_max_pool3d(x, 2, 2, _random_samples=x.new_zeros(1, 0, 3)), volume)


def test_gradients_are_deterministic():
    """They equal the CPU's, have the same bits each time, and there is no warning of
    nondeterminism.
    """

    def pools(x):
        return F.max_pool3d(x, 3, 1).sum() + F.adaptive_avg_pool3d(x, 4).sum() + F.adaptive_max_pool3d(x, 4).sum()

    x = torch.randn(2, 3, 6, 6, 6, requires_grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        assert_matches_cpu(pools, x)
        ours = x.detach().to("dml").requires_grad_()
        first, second = (torch.autograd.grad(pools(ours), ours)[0] for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(first.cpu(), second.cpu())


B = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda x: B.max_pool3d_with_indices(x, [2, 2]),
        lambda x: B.max_pool3d_with_indices(x, [2], [2, 2]),
        lambda x: B.max_pool3d_with_indices(x, [2], [2], [1, 1]),
        lambda x: B.max_pool3d_with_indices(x, [2], [2], [0], [1, 1]),
        lambda x: B.max_pool3d_with_indices(x, [2], [-1, 1, 1]),
        lambda x: B.max_pool3d_with_indices(x, [2], [2], [2]),
        lambda x: B.max_pool3d_with_indices(x, [20]),
        lambda x: B.max_pool3d_with_indices(x[0, 0], [2]),
        lambda x: B.max_pool3d_with_indices(x > 0, [2]),
        lambda x: B.avg_pool3d(x, [2, 2]),
        lambda x: B.avg_pool3d(x, [2], [2, 2]),
        lambda x: B.avg_pool3d(x, [20]),
        lambda x: B.avg_pool3d(x[0, 0], [2]),
        lambda x: B.avg_pool3d(x.int(), [2]),
        lambda x: B.avg_pool3d(x, [2], divisor_override=0),
        lambda x: B._adaptive_avg_pool3d(x, [2, 2]),
        lambda x: B._adaptive_avg_pool3d(x[:, :0], [2, 2, 2]),
        lambda x: B._adaptive_avg_pool3d(x.int(), [2, 2, 2]),
        lambda x: B._adaptive_avg_pool3d_backward(x[0], x),
        lambda x: B._adaptive_avg_pool2d_backward(x[0].double(), x[0]),
        lambda x: B.adaptive_max_pool2d(x[0, 0, 0], [2, 2]),
        lambda x: B.adaptive_max_pool2d(x[0, :, :, :0], [2, 2]),
        lambda x: B.adaptive_max_pool2d(x[0], [2]),
        lambda x: B.adaptive_max_pool3d(x, [-1, 2, 2]),
        lambda x: B.adaptive_max_pool3d(x.int(), [2, 2, 2]),
        lambda x: B.adaptive_max_pool3d_backward(x.double(), x, x.long()),
        lambda x: B.fractional_max_pool2d(x[0], [2], [2, 2], x[0, ..., :2]),
        lambda x: B.fractional_max_pool2d(x[0], [2, 2], [9, 9], x[0, ..., :2]),
        lambda x: B.fractional_max_pool2d(x[0], [2, 2], [2, 2], x[0, 0]),
        lambda x: B.fractional_max_pool2d(x[0], [2, 2], [2, 2], x[0, ..., :2]),
        lambda x: B.fractional_max_pool3d(x, [2] * 3, [5] * 3, x[0]),
        lambda x: B.max_unpool2d(x[0], x[0].int(), [9, 9]),
        lambda x: B.max_unpool2d(x[0], x[0].long(), [9]),
        lambda x: B.max_unpool2d(x[0], x.long(), [9, 9]),
        lambda x: B.max_unpool3d(x, x.long(), [9] * 3, [0] * 3, [0] * 3),
    ],
)
def test_errors_of_other_pools(function):
    x = torch.randn(2, 3, 5, 6, 6)
    assert_same_error(function, x)


def test_errors_of_empty_volumes():
    """Before torch 2.15 the CPU's message has a size in place of the dimension; both are 0 for an
    image without channels.
    """
    for function in (
        lambda x: B.max_pool3d_with_indices(x, [2]),
        lambda x: B.avg_pool3d(x, [2]),
    ):
        assert_same_error(function, torch.zeros(0, 5, 6, 6))
        assert_same_error(function, torch.zeros(2, 0, 5, 6, 6), words=TORCH >= (2, 15))


@pytest.mark.allow_fallback
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool1d(x, 70_000),
        lambda x: F.avg_pool1d(x, 70_000),
        lambda x: F.adaptive_avg_pool1d(x, 2),
        lambda x: F.adaptive_max_pool1d(x, 2),
    ],
)
def test_long_windows(function):
    """On Mesa's software adapter these run on the CPU: before version 23 it ends loops of more than
    65,535 iterations.
    """
    x = torch.arange(150_000.0)[None, None] / 1e4
    torch.testing.assert_close(function(x.to("dml")).cpu(), function(x), rtol=1e-4, atol=0)
