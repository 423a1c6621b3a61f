"""Windows of tensors, compared with the CPU: nn.Unfold and nn.Fold, Tensor.unfold, pixel and
channel shuffles, and composites of movement.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, assert_same_outcome
from tests.support.dtypes import FLOATS, dtypes, leaf

WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "stride": (2, 1)},
    {"kernel_size": 3, "padding": 1, "dilation": (1, 2)},
    {"kernel_size": (2, 3), "stride": 3, "padding": (2, 1), "dilation": 2},
    {"kernel_size": 1, "stride": 2},
]


@pytest.mark.smoke
@pytest.mark.parametrize("window", WINDOWS)
def test_unfold_and_fold(window):
    unfold = lambda x: F.unfold(x, **window)  # noqa: E731
    assert_matches_cpu(lambda x: unfold(x) * 2, leaf(2, 3, 8, 9))
    assert_matches_cpu(unfold, leaf(3, 8, 9))
    columns = unfold(torch.randn(2, 3, 8, 9))
    fold = lambda x: F.fold(x, (8, 9), **window)  # noqa: E731
    assert_matches_cpu(lambda x: fold(x) * 2, torch.randn_like(columns).requires_grad_())
    assert_matches_cpu(fold, columns[0])


@dtypes(FLOATS)
def test_dtypes(dtype):
    assert_matches_cpu(lambda x: F.unfold(x, 3, padding=1), leaf(2, 3, 5, 6, dtype=dtype))
    assert_matches_cpu(lambda x: F.fold(x, (5, 6), 2, stride=2), leaf(2, 12, 6, dtype=dtype))
    assert_matches_cpu(lambda x: F.unfold(x, 2), torch.randn(2, 3, 5, 6) > 0)
    assert_matches_cpu(lambda x: F.fold(x, (5, 6), 2), torch.randn(2, 12, 20) > 1)


def test_memory_formats_out_and_empty():
    x = torch.randn(2, 4, 6, 6)
    for view in (
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3),
        lambda x: x[:, 1:, ::2],
        lambda x: x[:1].expand(3, 4, 6, 6),
    ):
        assert_matches_cpu(lambda x, view=view: F.unfold(view(x), 2), x)
    columns = torch.randn(2, 16, 25)
    for view in (lambda x: x.transpose(1, 2).contiguous().transpose(1, 2), lambda x: x[:1].expand(3, 16, 25)):
        assert_matches_cpu(lambda x, view=view: F.fold(view(x), 6, 2), columns)

    run = lambda x, y: (  # noqa: E731
        torch.ops.aten.im2col.out(x, [2, 2], [1, 1], [0, 0], [1, 1], out=torch.empty(0, device=x.device)),
        torch.ops.aten.col2im.out(y, [6, 6], [2, 2], [1, 1], [0, 0], [1, 1], out=torch.empty(0, device=x.device)),
    )
    assert_matches_cpu(run, x, torch.randn(2, 16, 25))
    # The CPU writes such a result as if it were contiguous.
    strided = torch.empty(2, 25, 16, device="dml").transpose(1, 2)
    torch.ops.aten.im2col.out(x.to("dml"), [2, 2], [1, 1], [0, 0], [1, 1], out=strided)
    assert_same(strided, F.unfold(x, 2))
    assert_matches_cpu(lambda x: F.unfold(x, 2), torch.zeros(0, 3, 4, 4))
    assert_matches_cpu(lambda x: F.fold(x, (4, 4), 2), torch.zeros(0, 12, 9))


def test_tensor_unfold():
    x = leaf(3, 8, 5)
    for dim, size, step in ((0, 2, 1), (1, 3, 2), (2, 5, 1), (-1, 1, 3)):
        assert_matches_cpu(lambda x, d=dim, n=size, s=step: x.unfold(d, n, s) * 2, x)
    assert_matches_cpu(lambda x: x.unfold(1, 3, 2).unfold(2, 2, 1).sum(-1), x)


@dtypes(FLOATS, torch.int64, torch.uint8)
def test_shuffles(dtype):
    x = (torch.randn(2, 8, 6, 4) * 10).to(dtype)
    flat = (torch.randn(1, 1, 6, 6) * 10).to(dtype)  # contiguous and channels last
    for view in (x, x[0], x.transpose(1, 2), x.to(memory_format=torch.channels_last), flat.mT, flat):
        assert_same_outcome(lambda x: F.pixel_unshuffle(x, 2), view)
        assert_same_outcome(lambda x: F.pixel_shuffle(x, 2), view)
    for bad in (x[0, 0], x[:, :3]):
        assert_same_error(lambda x: F.pixel_shuffle(x, 2), bad)
        assert_same_error(lambda x: F.pixel_unshuffle(x, 4), bad)
    for factor in (0, -2):
        assert_same_error(lambda x, n=factor: F.pixel_shuffle(x, n), x)
        assert_same_error(lambda x, n=factor: F.pixel_unshuffle(x, n), x)
    for groups in (1, 2, 4, 8):
        shuffle = lambda x, groups=groups: F.channel_shuffle(x, groups)  # noqa: E731
        for view in (
            x,
            x[0].transpose(0, 1),
            x.to(memory_format=torch.channels_last),
            x.transpose(0, 3)[:, :, 1:],
            x[:0],
        ):
            assert assert_matches_cpu(shuffle, view).stride() == shuffle(view).stride()
    if dtype.is_floating_point:
        assert_matches_cpu(lambda x: F.channel_shuffle(x, 4) * 2, leaf(2, 8, 3, 3, dtype=dtype))
        assert_matches_cpu(lambda x: F.pixel_shuffle(x, 2) * 2, leaf(2, 8, 3, 3, dtype=dtype))


def test_movement_composites():
    x = leaf(2, 3, 4)
    for function in (
        lambda x: torch.rot90(x, 1, (0, 2)),
        lambda x: torch.rot90(x, -2, (1, 2)),
        lambda x: torch.tile(x, (2, 1, 3)),
        lambda x: torch.kron(x[0], x[1]),
        lambda x: torch.roll(x, (1, -2), (0, 2)),
        lambda x: x.flip(0, 2),
        torch.fliplr,
        torch.flipud,
    ):
        assert_matches_cpu(lambda x, function=function: function(x) * 2, x)


def test_response_norms():
    x = leaf(2, 7, 5, 4)
    for module in (torch.nn.LocalResponseNorm(3), torch.nn.LocalResponseNorm(4, alpha=0.1, k=2.0)):
        assert_matches_cpu(lambda x, module=module: module(x) * 2, x)
        assert_matches_cpu(lambda x, module=module: module(x), leaf(2, 7, 5))
    assert_matches_cpu(lambda x: torch.nn.CrossMapLRN2d(3)(x) * 2, x)


A = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda x: A.im2col(x, [2], [1, 1], [0, 0], [1, 1]),
        lambda x: A.im2col(x, [2, 2], [1], [0, 0], [1, 1]),
        lambda x: A.im2col(x, [0, 2], [1, 1], [0, 0], [1, 1]),
        lambda x: A.im2col(x, [2, 2], [0, 1], [0, 0], [1, 1]),
        lambda x: A.im2col(x, [2, 2], [1, 1], [-1, 0], [1, 1]),
        lambda x: A.im2col(x, [2, 2], [1, 1], [0, 0], [0, 1]),
        lambda x: A.im2col(x[:, :0], [2, 2], [1, 1], [0, 0], [1, 1]),
        lambda x: F.unfold(x[0, 0, 0, 0], 2),
        lambda x: F.unfold(x[0, 0, 0], 2),
        lambda x: F.unfold(x[0, 0], 2),
        lambda x: A.im2col(x, [20, 2], [1, 1], [0, 0], [1, 1]),
        lambda x: A.im2col(x.int(), [2, 2], [1, 1], [0, 0], [1, 1]),
        lambda x: A.col2im(x[0], [8], [1, 1], [1, 1], [0, 0], [1, 1]),
        lambda x: A.col2im(x[0], [8, 9], [5, 1], [1, 1], [0, 0], [1, 1]),
        lambda x: A.col2im(x[0], [8, 9], [1, 1], [1, 1], [0, 0], [1, 1]),
        lambda x: A.col2im(x[0, 0, 0], [8, 9], [1, 1], [1, 1], [0, 0], [1, 1]),
        lambda x: A.col2im(x[0].int(), [3, 3], [1, 1], [1, 1], [0, 0], [1, 1]),
        lambda x: F.channel_shuffle(x, 2),
        lambda x: F.channel_shuffle(x, 0),
        lambda x: F.channel_shuffle(x[0, 0], 1),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: x.unfold(3, 10, 1),
    ],
)
def test_errors(function):
    x = torch.randn(2, 3, 8, 9)
    assert_same_error(function, x)
