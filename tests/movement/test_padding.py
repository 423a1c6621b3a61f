"""Padding, compared with the CPU: every mode and rank, negative amounts, memory formats,
gradients.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_error
from tests.support.dtypes import NUMBERS, dtypes, leaf
from tests.support.environment import TORCH

SHAPES = {1: (2, 3, 5), 2: (2, 3, 5, 4), 3: (2, 3, 4, 5, 3)}
AMOUNTS = {
    1: [(1, 1), (4, 0), (0, 3), (-1, 2), (2, -2), (-1, -1), (0, 0)],
    2: [(1, 1, 1, 1), (3, 0, 4, 2), (-1, 2, 0, -1), (2, 3, 1, 4)],
    3: [(1, 1, 1, 1, 1, 1), (2, 0, 4, 1, 3, 2), (-1, 1, 0, 2, -1, 3)],
}


@pytest.mark.smoke
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_pad(mode, rank):
    for amounts in AMOUNTS[rank]:
        ramp = torch.arange(1.0, SHAPES[rank][-1] + amounts[0] + amounts[1] + 1)
        run = lambda x, weights, amounts=amounts: F.pad(x, amounts, mode) * weights  # noqa: E731
        assert_matches_cpu(run, leaf(*SHAPES[rank]), ramp)
        assert_matches_cpu(run, leaf(*SHAPES[rank][1:]), ramp)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_replicate_far(rank):
    """Unlike reflection, replication has no limit."""
    amounts = (7, 9, 0, 6, 5, 1)[: 2 * rank]
    assert_matches_cpu(lambda x: F.pad(x, amounts, "replicate") * 2, leaf(*SHAPES[rank]))
    assert_matches_cpu(lambda x: F.pad(x, amounts, "replicate") * 2, leaf(2, 3, *[1] * rank))


@dtypes(NUMBERS)
def test_dtypes(dtype):
    for rank in (1, 2, 3):
        x = (torch.randn(SHAPES[rank]) * 10).to(dtype)
        if dtype.is_floating_point:
            x.requires_grad_()
        for mode in ("reflect", "replicate", "circular", "constant"):
            assert_matches_cpu(lambda x, m=mode, r=rank: F.pad(x, AMOUNTS[r][0], m), x, terms=20)


def test_constant():
    x = torch.randn(3, 4)
    for amounts in ((1, 2), (-1, 2), (1, 0, 2, 3), (0, 0), (-2, -1, 5, -3)):
        assert_matches_cpu(lambda x, a=amounts: F.pad(x, a, value=2.5), x)
        assert_matches_cpu(lambda x, a=amounts: torch.constant_pad_nd(x.t(), a, 7), x)
    assert_matches_cpu(lambda x: F.pad(x, (1, 1), value=True), x > 0)
    assert_matches_cpu(lambda x: F.pad(x, (1, 1), value=3), torch.zeros(0, 2))


def test_memory_formats():
    x = torch.randn(2, 3, 5, 4)
    views = (
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3),
        lambda x: x[:, 1:, ::2],
        lambda x: x[:1].expand(4, 3, 5, 4),
    )
    for mode in ("reflect", "replicate"):
        for view in views:
            run = lambda x, view=view, mode=mode: F.pad(view(x), (1, 2, 2, 1), mode)  # noqa: E731
            assert assert_matches_cpu(run, x).stride() == run(x).stride()
        last = torch.randn(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).requires_grad_()
        run = lambda x, mode=mode: F.pad(x, (1, 2, 2, 1, 0, 3), mode)  # noqa: E731
        assert assert_matches_cpu(run, last).stride() == run(last).stride()
        for name in ("reflection_pad2d", "replication_pad2d"):
            backward = getattr(torch.ops.aten, f"{name}_backward")
            run = lambda g, x, f=backward: f(g, x, [1, 1, 1, 1])  # noqa: E731
            both = torch.randn(2, 3, 7, 6), x.to(memory_format=torch.channels_last)
            assert assert_matches_cpu(run, *both).stride() == run(*both).stride()


def test_out_and_empty():
    A = torch.ops.aten

    def run(x, g):
        fresh = lambda: torch.empty(0, device=x.device)  # noqa: E731
        return (
            A.reflection_pad1d.out(x[0], [1, 2], out=fresh()),
            A.replication_pad2d.out(x, [1, 2, 0, 3], out=fresh()),
            A.reflection_pad2d.out(x, [1, 2, 0, 3], out=torch.empty(2, 3, 9, 8, device=x.device).transpose(2, 3)),
            A.replication_pad1d_backward.grad_input(g[0, :, :5], x[0], [1, 1], grad_input=fresh()),
            A.reflection_pad2d_backward.grad_input(g, x, [1, 1, 2, 1], grad_input=fresh()),
        )

    assert_matches_cpu(run, torch.randn(2, 3, 5, 6), torch.randn(2, 3, 8, 8))
    for rank in (1, 2, 3):
        for mode in ("reflect", "replicate"):
            assert_matches_cpu(lambda x, m=mode, r=rank: F.pad(x, AMOUNTS[r][0], m), torch.zeros(0, *SHAPES[rank][1:]))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_nothing_left_of_a_dimension(mode):
    for shape, amounts in (
        ((2, 4, 5), (-5, 0, 1, 1)),
        ((1, 2, 3, 4, 5), (0, 0, -4, 0)),
        ((1, 2, 3, 4, 5), (1, 1, 1, 1, -3, 0)),
    ):
        amounts = amounts + (0,) * (2 * (len(shape) - 2) - len(amounts))
        if TORCH >= (2, 15):
            assert_same_error(lambda x, a=amounts: F.pad(x, a, mode), torch.randn(shape))
            continue
        assert_matches_cpu(lambda x, a=amounts: F.pad(x, a, mode), torch.randn(shape))
        # Not compared: some of the CPU's gradients of empty results are uninitialised.
        x = torch.randn(shape, device="dml", requires_grad=True)
        F.pad(x, amounts, mode).sum().backward()
        assert not x.grad.any()
    for amounts in ((-5, 0), (-5, 0, -4, 0), (0, 0, 0, 0, -4, 0), (-5, 0, -4, 0, -3, 0)):
        rank = max(len(amounts) // 2, 1)
        images = torch.randn(1, 2, 3, 4, 5)[(0,) * (3 - rank)]
        assert_same_error(lambda x, a=amounts: F.pad(x, a, mode), images, words=False)  # The CPU's commas differ.


def test_modules_and_deterministic_gradients():
    nn = torch.nn
    for rank in (1, 2, 3):
        for name in ("ReflectionPad", "ReplicationPad", "ZeroPad", "ConstantPad", "CircularPad"):
            module = getattr(nn, f"{name}{rank}d")
            module = module(1, 3.5) if name == "ConstantPad" else module(1)
            assert_matches_cpu(lambda x, m=module: m(x) * 2, leaf(*SHAPES[rank]))
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.randn(2, 3, 4, 4, device="dml", requires_grad=True)
        (F.pad(x, (1, 1, 1, 1), "reflect").sum() + F.pad(x, (1, 1, 1, 1), "replicate").sum()).backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_double_backward():
    for mode in ("reflect", "replicate"):
        x = torch.randn(1, 2, 3, 4, dtype=torch.float64, device="dml", requires_grad=True)
        assert torch.autograd.gradcheck(lambda x, m=mode: F.pad(x, (1, 2, 2, 1), m), x)
        assert torch.autograd.gradgradcheck(lambda x, m=mode: F.pad(x, (1, 2, 2, 1), m), x)


A = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda x: A.reflection_pad1d(x, [1, 1]),
        lambda x: A.reflection_pad2d(x, [1]),
        lambda x: A.reflection_pad2d(x, [1, 1, 1, 5]),
        lambda x: A.reflection_pad2d(x, [9, 1, 1, 1]),
        lambda x: A.reflection_pad2d(x[:, :0], [1, 1, 1, 1]),
        lambda x: A.reflection_pad1d(x[0], [-3, -3]),
        lambda x: A.reflection_pad3d(x[0, 0], [1] * 6),
        lambda x: A.reflection_pad2d(x > 0, [1] * 4),
        lambda x: A.replication_pad1d(x, [1, 1]),
        lambda x: A.replication_pad2d(x[..., :0], [1] * 4),
        lambda x: A.replication_pad1d(x[0], [-3, -3]),
        lambda x: A.replication_pad2d(x > 0, [1] * 4),
        lambda x: A.reflection_pad1d_backward(x[0], x[0], [1, 1]),
        lambda x: A.reflection_pad2d_backward(x.int(), x.int(), [0, 0, 0, 0]),
        lambda x: F.pad(x, (1, 1, 1)),
        lambda x: F.pad(x, (-3, -3)),
        lambda x: F.pad(x, (6, 1), "circular"),
    ],
)
def test_errors(function):
    x = torch.randn(2, 3, 5, 5)
    assert_same_error(function, x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: A.replication_pad2d(x, [1] * 2),
        lambda x: A.reflection_pad2d(x, [-3, -3, -3, -3]),
        lambda x: A.reflection_pad2d_backward(x, x, [1, 1, 1, 1]),
        lambda x: A.replication_pad2d_backward(x, x, [0, 0, 1, 1]),
        lambda x: A.replication_pad2d_backward(x, x, [0, 0]),
    ],
)
def test_errors_worded_as_from_torch_2_15(function):
    x = torch.randn(2, 3, 5, 5)
    assert_same_error(function, x, words=TORCH >= (2, 15))
