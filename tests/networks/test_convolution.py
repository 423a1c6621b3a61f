"""Convolutions and their gradients, compared with float64 on the CPU."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_error
from tests.support.dtypes import dtypes

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}

# Input, weight, options.
TWO = [
    ((2, 3, 9, 8), (5, 3, 3, 3), {}),
    ((2, 4, 9, 8), (8, 4, 3, 2), {"stride": 2, "padding": 1}),
    ((1, 4, 8, 8), (20, 4, 3, 3), {"padding": 2, "dilation": 2}),
    ((3, 8, 6, 5), (8, 4, 3, 3), {"groups": 2, "padding": (1, 0)}),
    ((2, 6, 7, 7), (12, 1, 3, 3), {"groups": 6, "stride": (2, 1), "padding": 1}),
    ((2, 16, 4, 4), (24, 16, 1, 1), {}),
    ((2, 1, 12, 12), (8, 1, 5, 5), {}),
]


def run(function, x, w, b, device, dtype, last):
    leaves = [t.to(dtype).to(device) for t in (x, w, b)]
    if last:
        leaves[0] = leaves[0].contiguous(memory_format=LAST[x.dim()])
        leaves[1] = leaves[1].contiguous(memory_format=LAST[x.dim()])
    leaves = [t.detach().requires_grad_() for t in leaves]
    y = function(*leaves)
    torch.manual_seed(1)
    y.backward(torch.randn(y.shape, dtype=torch.float64).to(dtype).to(device))
    return [y] + [leaf.grad for leaf in leaves]


def check(function, x, w, b, dtype=torch.float32, last=False):
    x, w, b = (torch.randn(s, dtype=torch.float64).to(dtype) for s in (x, w, b))
    expected = run(function, x, w, b, "cpu", torch.float64, False)
    got = run(function, x, w, b, "dml", dtype, last)
    for g, e in zip(got, expected, strict=True):
        assert g.device.type == "dml" and g.dtype == dtype and g.shape == e.shape
        # The output gradient is rounded to dtype too.
        tolerance = max(torch.finfo(dtype).eps, 3e-7 if dtype == torch.float32 else 0)
        scale = e.abs().max().item() + 1
        torch.testing.assert_close(g.detach().cpu().double(), e.detach(), rtol=0, atol=8 * tolerance * scale)
    return got[0]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", range(len(TWO)))
def test_conv2d(case, last):
    x, w, options = TWO[case]
    y = check(lambda x, w, b: F.conv2d(x, w, b, **options), x, w, w[0], last=last)
    if last and x[1] > 1:
        assert y.is_contiguous(memory_format=torch.channels_last)


@dtypes(torch.float16, torch.bfloat16, torch.float64)
def test_dtypes(dtype):
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 4, 6, 6), (8, 4, 3, 3), 8, dtype)


def test_other_ranks():
    check(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1), (2, 3, 13), (8, 3, 3), 8)
    check(lambda x, w, b: F.conv3d(x, w, b, padding=1), (1, 2, 3, 4, 5), (4, 2, 2, 3, 2), 4)


def test_transposed():
    check(lambda x, w, b: F.conv_transpose2d(x, w, b), (2, 3, 5, 4), (3, 6, 3, 3), 6)
    options = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
    check(lambda x, w, b: F.conv_transpose2d(x, w, b, **options), (2, 4, 5, 4), (4, 3, 3, 3), 6)
    check(lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3), (2, 4, 5), (4, 3, 4), 3)


def test_no_bias_no_batch_and_nothing_at_all():
    assert_matches_cpu(lambda x, w: F.conv2d(x, w), torch.randn(2, 3, 5, 5), torch.randn(4, 3, 2, 2))
    assert_matches_cpu(lambda x, w: F.conv2d(x, w), torch.randn(3, 5, 5), torch.randn(4, 3, 2, 2))
    assert_matches_cpu(lambda x, w: F.conv2d(x, w), torch.randn(0, 3, 5, 5), torch.randn(4, 3, 2, 2))


def test_strides():
    w = torch.randn(4, 3, 3, 3)
    assert_matches_cpu(lambda x, w: F.conv2d(x[:, :, ::2, 1:], w), torch.randn(2, 3, 10, 7), w)
    x = torch.randn(2, 1, 6, 6)
    assert_matches_cpu(lambda x, w: F.conv2d(x.expand(2, 3, 6, 6), w[:, :1].expand(4, 3, 3, 3)), x, w)
    assert_matches_cpu(lambda x, w: F.conv2d(x.transpose(2, 3), w.transpose(2, 3)), torch.randn(2, 3, 6, 7), w)


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_only_the_gradients_that_are_asked_for(frozen):
    grads = []
    torch.manual_seed(2)
    tensors = [torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(4)]
    for device in ("cpu", "dml"):
        leaves = [t.clone().to(device).requires_grad_(i != frozen) for i, t in enumerate(tensors)]
        F.conv2d(*leaves).sum().backward()
        grads.append([None if leaf.grad is None else leaf.grad.cpu() for leaf in leaves])
    for i, (expected, got) in enumerate(zip(*grads, strict=True)):
        if i == frozen:
            assert got is None
        else:
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_the_same_bits_every_time():
    x, w = torch.randn(8, 3, 20, 20, device="dml"), torch.randn(4, 3, 3, 3, device="dml", requires_grad=True)

    def once():
        return torch.autograd.grad(F.conv2d(x, w).sum(), w)[0].cpu()

    first = once()
    assert all(torch.equal(first, once()) for _ in range(3))


def test_transposed_volumes_and_dilation():
    check(lambda x, w, b: F.conv_transpose3d(x, w, b, stride=2), (1, 2, 3, 2, 4), (2, 3, 2, 3, 2), 3)
    options = {"stride": 3, "padding": 2, "output_padding": 2, "dilation": (2, 1)}
    check(lambda x, w, b: F.conv_transpose2d(x, w, b, **options), (2, 2, 5, 4), (2, 3, 3, 3), 3)
    check(lambda x, w, b: F.conv3d(x, w, b, dilation=2, groups=2), (1, 4, 5, 5, 5), (4, 2, 2, 2, 2), 4, last=True)


def test_padding_by_name():
    for padding in ("same", "valid"):
        check(lambda x, w, b, p=padding: F.conv2d(x, w, b, padding=p), (2, 3, 7, 6), (4, 3, 4, 3), 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1),
        lambda x, w, b: F.conv2d(x, w[:, :1], b, groups=2),
    ],
)
def test_second_derivatives(function):
    leaves = [
        torch.randn(s, device="dml", dtype=torch.float64, requires_grad=True)
        for s in ((1, 2, 4, 4), (2, 2, 3, 3), (2,))
    ]
    torch.autograd.gradcheck(function, leaves, fast_mode=True)
    torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


NAMED = [
    ("_slow_conv2d_forward", (2, 3, 6, 5), (4, 3, 3, 2), [(2, 1), (1, 0)]),
    ("slow_conv_dilated2d", (2, 3, 6, 5), (4, 3, 2, 2), [(2, 1), (1, 0), (2, 2)]),
    ("slow_conv_dilated2d", (3, 6, 5), (4, 3, 2, 2), [(1, 1), (0, 0), (2, 2)]),
    ("slow_conv_dilated3d", (2, 3, 4, 5, 4), (4, 3, 2, 2, 2), [(1, 1, 1), (1, 0, 0), (2, 2, 1)]),
    ("slow_conv_transpose2d", (2, 3, 4, 5), (3, 4, 2, 3), [(2, 2), (1, 1), (1, 0), (1, 2)]),
    ("slow_conv_transpose3d", (2, 3, 2, 3, 2), (3, 4, 2, 2, 2), [(2, 1, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]),
    ("slow_conv3d_forward", (2, 3, 4, 5, 4), (4, 3, 2, 2, 2), [(1, 1, 1), (1, 0, 0)]),
]


@pytest.mark.parametrize("case", range(len(NAMED)))
def test_convolutions_by_other_names(case):
    name, x, w, rest = NAMED[case]
    operator = getattr(torch.ops.aten, name)
    x, w = torch.randn(x), torch.randn(w)
    b = torch.randn(w.shape[1] if "transpose" in name else w.shape[0])
    assert_matches_cpu(lambda x, w, b: operator(x, w, w.shape[2:], b, *rest), x, w, b)
    out = {"_slow_conv2d_forward": "output", "slow_conv3d_forward": "output"}.get(name, "out")
    if "dilated" not in name:
        overload = getattr(operator, out)
        assert_matches_cpu(
            lambda x, w, b: overload(x, w, w.shape[2:], b, *rest, **{out: x.new_empty(0)}),
            x,
            w,
            b,
        )


def test_gradients_by_other_names():
    x, w, g = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 2), torch.randn(2, 4, 3, 4)
    backward = torch.ops.aten._slow_conv2d_backward
    rest = [(3, 2), (2, 1), (1, 0)]
    assert_matches_cpu(lambda g, x, w: backward(g, x, w, *rest, (True, True, True)), g, x, w)
    first, second, third = backward(g.to("dml"), x.to("dml"), w.to("dml"), *rest, (False, True, False))
    assert first is None and second is not None and third is None


def test_a_group_a_channel_by_other_names():
    # CUDA's names: the CPU only has the plain convolution.
    x, w, b = (torch.randn(s, device="dml") for s in ((2, 3, 6, 5), (6, 1, 3, 2), (6,)))
    got = torch.ops.aten._conv_depthwise2d(x, w, (3, 2), b, (2, 1), (1, 0), (1, 2))
    expected = F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 3)
    assert got.equal(expected)
    out = torch.empty_like(expected)
    torch.ops.aten._conv_depthwise2d.out(x, w, (3, 2), b, (2, 1), (1, 0), (1, 2), out=out)
    assert out.equal(expected)
    x, w = torch.randn(2, 3, 3, 4, 5, device="dml"), torch.randn(3, 1, 2, 2, 2, device="dml")
    got = torch.ops.aten.conv_depthwise3d(x, w, (2, 2, 2), None, (1, 1, 1), (0, 1, 0), (1, 1, 1))
    assert got.equal(F.conv3d(x, w, None, 1, (0, 1, 0), 1, 3))


WRONG = [
    lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
    lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 3, 3, 3, device=d).double()),
    lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 3, 3, 3, device=d), torch.ones(5, device=d)),
    lambda d: F.conv2d(torch.ones(1, 3, 2, 2, device=d), torch.ones(4, 3, 3, 3, device=d)),
    lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 3, 3, 3, device=d), stride=0),
    lambda d: F.conv2d(torch.ones(8, 8, device=d), torch.ones(4, 3, 3, 3, device=d)),
    *(
        lambda d, rank=rank, stride=stride, padding=padding, dilation=dilation: getattr(F, f"conv_transpose{rank}d")(
            torch.ones(1, 2, *[5] * rank, device=d),
            torch.ones(2, 3, *[3] * rank, device=d),
            None,
            stride,
            0,
            padding,
            1,
            dilation,
        )
        for rank in (1, 2, 3)
        for stride, padding, dilation in ((1, 1, 1), (2, 2, 1), (1, 2, 2), (2, 3, 3))
    ),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_are_the_cpu_s(wrong):
    assert_same_error(lambda x: wrong(x.device), torch.empty(0))
