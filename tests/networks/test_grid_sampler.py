"""grid_sample and affine_grid, compared with the CPU: modes, padding, ranks, gradients."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_error
from tests.support.dtypes import FLOATS, dtypes

MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


def problem(*sizes, points=None, dtype=torch.float32, reach=1.4):
    """An image, and a grid with points outside of it."""
    rank = len(sizes) - 2
    points = (4, 5, 3)[:rank] if points is None else points
    image = torch.randn(sizes).to(dtype).requires_grad_()
    return image, ((torch.rand(sizes[0], *points, rank) * 2 - 1) * reach).to(dtype).requires_grad_()


@pytest.mark.smoke
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(MODES, PADDINGS)))
def test_images(mode, padding, align_corners):
    run = lambda x, g: F.grid_sample(x, g, mode, padding, align_corners) * 2  # noqa: E731
    for reach in (0.9, 1.4, 6.0):
        assert_matches_cpu(run, *problem(2, 3, 5, 7, reach=reach), terms=100)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(MODES[:2], PADDINGS)))
def test_volumes(mode, padding, align_corners):
    run = lambda x, g: F.grid_sample(x, g, mode, padding, align_corners) * 2  # noqa: E731
    for reach in (0.9, 3.0):
        assert_matches_cpu(run, *problem(2, 2, 4, 5, 3, reach=reach), terms=100)


@dtypes(FLOATS)
def test_dtypes(dtype):
    for mode, padding in (("bilinear", "zeros"), ("bicubic", "border"), ("bilinear", "reflection")):
        run = lambda x, g, m=mode, p=padding: F.grid_sample(x, g, m, p, False)  # noqa: E731
        assert_matches_cpu(run, *problem(2, 3, 5, 6, dtype=dtype), terms=100)


def test_exact_points():
    """Corners, borders, centres and midpoints."""
    line = torch.tensor([-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0])
    grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)[None]
    for mode, padding, align_corners in itertools.product(MODES, PADDINGS, (False, True)):
        run = lambda x, g, m=mode, p=padding, a=align_corners: F.grid_sample(x, g, m, p, a)  # noqa: E731
        assert_matches_cpu(run, torch.randn(1, 2, 4, 5), grid)
        assert_matches_cpu(run, torch.randn(1, 2, 1, 3), grid)


def test_special_coordinates():
    image = torch.randn(1, 1, 3, 3)
    grid = torch.tensor([math.nan, math.inf, -math.inf, 1e30, -1e30, 3e9]).reshape(1, 6, 1, 1).expand(1, 6, 1, 2)
    for mode, padding in itertools.product(MODES, PADDINGS[:2]):
        assert_matches_cpu(lambda x, g, m=mode, p=padding: F.grid_sample(x, g, m, p, False), image, grid)
    volume = torch.randn(1, 1, 3, 3, 3)
    points = torch.cartesian_prod(*[torch.tensor([math.nan, math.inf, -math.inf, 0.3, 1e30])] * 3).reshape(
        1, 5, 5, 5, 3
    )
    for mode, padding in itertools.product(MODES[:2], PADDINGS[:2]):
        assert_matches_cpu(lambda x, g, m=mode, p=padding: F.grid_sample(x, g, m, p, False), volume, points)
    # A mirrored coordinate so far outside has no digits left.
    for mode in MODES:
        assert F.grid_sample(image.to("dml"), grid.to("dml"), mode, "reflection", False).cpu().shape == (1, 1, 6, 1)


def test_strides_and_empty():
    image, grid = (t.detach() for t in problem(2, 3, 6, 6, points=(5, 5)))
    views = (
        lambda x, g: (x.to(memory_format=torch.channels_last), g),
        lambda x, g: (x.transpose(2, 3), g.transpose(1, 2)),
        lambda x, g: (x[:, 1:, ::2, 1:], g.flip(3)[:, 1:]),
        lambda x, g: (x[:1].expand(3, 3, 6, 6), g[:1].expand(3, 5, 5, 2)),
    )
    for view in views:
        run = lambda x, g, view=view: F.grid_sample(*view(x, g), align_corners=False) * 2  # noqa: E731
        assert_matches_cpu(run, image.clone().requires_grad_(), grid.clone().requires_grad_(), terms=100)
    sample = lambda x, g: F.grid_sample(x, g, align_corners=False)  # noqa: E731
    assert_matches_cpu(sample, image[:0], grid[:0])
    assert_matches_cpu(sample, image[:, :0], grid)
    assert_matches_cpu(sample, image.clone().requires_grad_(), grid[:, :0].clone().requires_grad_())


def test_many_points_of_one_pixel():
    """Sums of many reads: deterministic, and in the order of the points."""
    image = torch.randn(1, 2, 3, 3, requires_grad=True)
    grid = torch.rand(1, 60, 70, 2) * 4 + 1
    run = lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True)  # noqa: E731
    assert_matches_cpu(run, image, grid)
    torch.use_deterministic_algorithms(True)
    try:
        x = image.detach().to("dml").requires_grad_()
        run(x, grid.to("dml")).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_one_gradient():
    image, grid = (t.detach() for t in problem(1, 2, 4, 4))
    assert_matches_cpu(lambda x, g: F.grid_sample(x, g, align_corners=False), image.clone().requires_grad_(), grid)
    assert_matches_cpu(lambda x, g: F.grid_sample(x, g, align_corners=False), image, grid.clone().requires_grad_())


def test_affine_grid():
    for sizes in ((2, 3, 4, 5), (2, 1, 3, 4, 5)):
        rank = len(sizes) - 2
        theta = torch.randn(2, rank, rank + 1, requires_grad=True)
        for align_corners in (False, True):
            grid = lambda t, s=sizes, a=align_corners: F.affine_grid(t, s, a)  # noqa: E731
            assert_matches_cpu(lambda t, grid=grid: grid(t) * 2, theta)
            image = torch.randn(sizes)
            run = lambda x, t, grid=grid, a=align_corners: F.grid_sample(x, grid(t), align_corners=a)  # noqa: E731
            assert_matches_cpu(run, image, theta)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_points_at_infinity_in_depth(padding, number, axis):
    """Elements outside of an image contribute nothing to gradients either."""
    point = torch.tensor([0.3, -0.4, 0.2])
    point[axis] = number
    image, grid = torch.randn(1, 2, 2, 3, 4).requires_grad_(), point.view(1, 1, 1, 1, 3).requires_grad_()
    assert_matches_cpu(lambda x, g: F.grid_sample(x, g, padding_mode=padding, align_corners=False), image, grid)


A = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda x, g: A.grid_sampler_2d(x, g[:1], 0, 0, False),
        lambda x, g: A.grid_sampler_2d(x, g[..., :1], 0, 0, False),
        lambda x, g: A.grid_sampler_2d(x[..., :0], g, 0, 0, False),
        lambda x, g: A.grid_sampler_2d(x, g.double(), 0, 0, False),
        lambda x, g: A.grid_sampler_2d(x.int(), g.int(), 0, 0, False),
        lambda x, g: A.grid_sampler_3d(x, g, 0, 0, False),
        lambda x, g: F.grid_sample(x, g[0], align_corners=False),
        lambda x, g: F.grid_sample(x[0], g[0], align_corners=False),
        lambda x, g: F.grid_sample(x[0, 0, 0, 0], g, align_corners=False),
    ],
)
def test_errors(function):
    image, grid = (t.detach() for t in problem(2, 3, 5, 6))
    assert_same_error(function, image, grid)
