"""Resampling of images, compared with the CPU: every mode and rank, scales, memory formats,
gradients.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_error
from tests.support.dtypes import FLOATS, dtypes, leaf

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
SHAPES = {1: (2, 3, 7), 2: (2, 3, 7, 5), 3: (2, 2, 4, 5, 3)}


def outputs(rank):
    sizes = {"same": SHAPES[rank][2:], "down": (3, 2, 2)[:rank], "up": (9, 11, 8)[:rank], "one": (1, 1, 1)[:rank]}
    return [*sizes.values(), tuple(2 * n for n in SHAPES[rank][2:]), (2, 9, 3)[:rank]]


@pytest.mark.smoke
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest(mode, rank):
    for size in outputs(rank):
        assert_matches_cpu(lambda x, size=size: F.interpolate(x, size, mode=mode) * 2, leaf(*SHAPES[rank]))
    for factor in (1.7, 0.6, 3):
        assert_matches_cpu(
            lambda x, factor=factor: F.interpolate(x, scale_factor=factor, mode=mode) * 2, leaf(*SHAPES[rank])
        )


@pytest.mark.smoke
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("align_corners", [False, True])
def test_linear(rank, align_corners):
    options = {"mode": LINEAR[rank], "align_corners": align_corners}
    for size in outputs(rank):
        x = leaf(*SHAPES[rank])
        assert_matches_cpu(lambda x, size=size: F.interpolate(x, size, **options) * 2, x, terms=8)
    for factor in (1.7, 0.6, 3):
        for again in (None, True):
            scale = {"scale_factor": factor, "recompute_scale_factor": again}
            assert_matches_cpu(
                lambda x, scale=scale: F.interpolate(x, **scale, **options) * 2,
                leaf(*SHAPES[rank]),
                terms=8,
            )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    "options", [{"mode": "bicubic"}, {"mode": "bilinear", "antialias": True}, {"mode": "bicubic", "antialias": True}]
)
def test_cubic_and_antialias(options, align_corners):
    for shape, size in (((2, 3, 7, 5), None), ((2, 2, 33, 40), (7, 3)), ((1, 2, 4, 30), (1, 2)), ((1, 1, 3, 2), 40)):
        for target in outputs(2) if size is None else [size]:
            x = leaf(*shape)
            assert_matches_cpu(
                lambda x, target=target: F.interpolate(x, target, align_corners=align_corners, **options) * 2,
                x,
                terms=8,
            )
    for factor in (1.7, 0.6, (0.3, 2.5)):
        assert_matches_cpu(
            lambda x, factor=factor: F.interpolate(x, scale_factor=factor, align_corners=align_corners, **options) * 2,
            leaf(2, 3, 12, 9),
            terms=8,
        )


@dtypes(FLOATS)
def test_dtypes(dtype):
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        x = leaf(2, 3, 6, 7, dtype=dtype)
        assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, (9, 4), mode=mode), x)
        assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, (12, 14), mode=mode), x)
    if dtype in (torch.float32, torch.float64):
        for mode in ("bilinear", "bicubic"):
            x = leaf(2, 3, 6, 7, dtype=dtype)
            assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, (4, 3), mode=mode, antialias=True), x, terms=8)
    x = leaf(2, 3, 6, dtype=dtype)
    assert_matches_cpu(lambda x: F.interpolate(x, 4, mode="linear"), x)
    assert_matches_cpu(lambda x: F.interpolate(x, 9, mode="nearest"), x)


def test_bytes():
    x = torch.randint(0, 256, (2, 3, 9, 7), dtype=torch.uint8)
    for mode in ("nearest", "nearest-exact"):
        assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, (5, 11), mode=mode), x)
        assert_matches_cpu(lambda x, mode=mode: F.interpolate(x[:, :, 0], 11, mode=mode), x)
    # The nearest integers: the CPU's vector code also rounds weights and intermediate rows, but its
    # scalar code does not.
    for mode in ("bilinear", "bicubic"):
        for antialias in (False, True):
            for size in ((5, 11), (3, 3), (20, 30)):
                exact = F.interpolate(x.double(), size, mode=mode, antialias=antialias).clamp(0, 255)
                actual = F.interpolate(x.to("dml"), size, mode=mode, antialias=antialias).cpu()
                assert actual.dtype == torch.uint8
                assert (actual - exact).abs().max() < 0.5001


def test_large_windows():
    """More elements to combine than one invocation processes in one pass."""
    x = leaf(2, 3, 1, 1)
    assert_matches_cpu(lambda x: F.interpolate(x, (40, 50), mode="bilinear") * 2, x, terms=8)
    assert_matches_cpu(lambda x: F.interpolate(x, (40, 50), mode="nearest") * 2, x)
    grow = lambda x: F.interpolate(x, (13, 15, 9), mode="trilinear", align_corners=True)  # noqa: E731
    assert_matches_cpu(grow, leaf(1, 2, 2, 3, 2, dtype=torch.float16), terms=8)


def test_memory_formats():
    x = torch.randn(2, 5, 8, 9)
    views = (
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3),
        lambda x: x[:, 1:, ::2, 1:],
        lambda x: x[:1].expand(4, 5, 8, 9),
    )
    for view in views:
        for mode in ("nearest", "bilinear", "bicubic"):
            function = lambda x, view=view, mode=mode: F.interpolate(view(x), (5, 13), mode=mode)  # noqa: E731
            assert assert_matches_cpu(function, x, terms=8).stride() == function(x).stride()
    last = torch.randn(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).requires_grad_()
    for mode in ("nearest", "trilinear"):
        out = assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, (3, 7, 9), mode=mode), last)
        assert out.is_contiguous(memory_format=torch.channels_last_3d)
    grad = torch.randn(2, 5, 4, 4).to(memory_format=torch.channels_last)
    backward = lambda g: torch.ops.aten.upsample_bilinear2d_backward(g, [4, 4], [2, 5, 3, 6], False)  # noqa: E731
    assert assert_matches_cpu(backward, grad).stride() == backward(grad).stride()


def test_out_and_empty():
    def run(x):
        out = torch.empty(0, device=x.device)
        torch.ops.aten.upsample_nearest2d.out(x, [3, 5], out=out)
        linear = torch.empty(2, 3, 5, 3, device=x.device).transpose(2, 3)
        torch.ops.aten.upsample_bilinear2d.out(x, [3, 5], True, out=linear)
        grad = torch.empty(0, device=x.device)
        torch.ops.aten.upsample_bicubic2d_backward.grad_input(x, [6, 6], [2, 3, 4, 4], False, grad_input=grad)
        return out, linear, grad

    assert_matches_cpu(run, torch.randn(2, 3, 6, 6))
    assert_matches_cpu(lambda x: F.interpolate(x, (4, 5)), torch.zeros(0, 3, 2, 2))
    assert_matches_cpu(lambda x: F.interpolate(x, 7, mode="linear"), torch.zeros(0, 3, 2))


def test_special_values():
    x = torch.tensor([1.0, math.inf, -math.inf, math.nan, 2.0, 3.0, 4.0]).reshape(1, 1, 7)
    for mode in ("nearest", "linear"):
        assert_matches_cpu(lambda x, mode=mode: F.interpolate(x, 14, mode=mode), x)


def test_modules_and_deterministic_gradients():
    x = leaf(2, 3, 6, 6)
    for module in (
        torch.nn.Upsample(scale_factor=2),
        torch.nn.UpsamplingBilinear2d(scale_factor=2),
        torch.nn.UpsamplingNearest2d((9, 5)),
        torch.nn.Upsample((9, 5), mode="bicubic"),
    ):
        assert_matches_cpu(lambda x, module=module: module(x) * 2, x, terms=8)
    torch.use_deterministic_algorithms(True)
    try:
        y = x.detach().to("dml").requires_grad_()
        F.interpolate(y, scale_factor=3, mode="bilinear").sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_double_backward():
    for options in ({"mode": "nearest"}, {"mode": "bilinear"}, {"mode": "bicubic", "align_corners": True}):
        x = torch.randn(1, 2, 3, 4, dtype=torch.float64, device="dml", requires_grad=True)
        assert torch.autograd.gradcheck(lambda x, o=options: F.interpolate(x, (5, 3), **o), x)
        assert torch.autograd.gradgradcheck(lambda x, o=options: F.interpolate(x, (5, 3), **o), x)


A = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda x: A.upsample_nearest1d(x, [4]),
        lambda x: A.upsample_nearest2d(x[0], [4, 4]),
        lambda x: A.upsample_nearest2d(x, [4]),
        lambda x: A.upsample_nearest2d(x, [4, 0]),
        lambda x: A.upsample_nearest2d(x[:, :0], [4, 4]),
        lambda x: A.upsample_nearest1d(x[0], [0]),
        lambda x: A.upsample_linear1d(x[:, 0, :0], [3], False),
        lambda x: A.upsample_nearest3d(x[None], [4, 0, 3]),
        lambda x: A.upsample_bilinear2d(x.int(), [4, 4], False),
        lambda x: A.upsample_linear1d(x[0].byte(), [4], False),
        lambda x: A.upsample_nearest1d(x[0].int(), [4]),
        lambda x: A.upsample_nearest2d_backward(x, [5, 9], [2, 3, 3, 3]),
        lambda x: A.upsample_nearest2d_backward(x, [8, 9], [2, 4, 3, 3]),
        lambda x: A.upsample_nearest2d_backward(x[0], [8, 9], [2, 3, 3, 3]),
        lambda x: A.upsample_bilinear2d_backward(x, [8, 9], [3, 3, 3], False),
        lambda x: A.upsample_linear1d_backward(x[0], [8], [3, 8, 4], False),
        lambda x: A.upsample_bilinear2d_backward(x.byte(), [8, 9], [2, 3, 3, 3], False),
        lambda x: A.upsample_nearest2d.out(x, [4, 4], out=torch.empty(0, dtype=torch.float64, device=x.device)),
    ],
)
def test_errors(function):
    x = torch.randn(2, 3, 8, 9)
    assert_same_error(function, x)
