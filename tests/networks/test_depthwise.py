"""Depthwise convolutions and their gradients, compared with float64 on the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from tests.support.dtypes import FLOATS, HALVES, dtypes
from tests.support.launches import launches

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def convolve(x, w, b=None, transposed=False, **options):
    function = (
        (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d) if transposed else (F.conv1d, F.conv2d, F.conv3d)
    )
    return function[x.dim() - 3](x, w, b, groups=x.shape[1], **options)


def laid_out(t, last):
    return t.contiguous(memory_format=LAST[t.dim()]) if last and t.dim() in LAST else t


def check(x, kernel, dtype=torch.float32, last=False, bias=True, **options):
    """All three passes of a convolution with an input of shape `x`, and the gradient of the
    bias.
    """
    channels = x[1]
    given = [torch.randn(x), torch.randn(channels, 1, *kernel), torch.randn(channels) if bias else None]
    given = [None if t is None else t.to(dtype) for t in given]
    wide = [None if t is None else t.double().clone().requires_grad_() for t in given]
    expected = convolve(*wide, **options)
    gradient = torch.randn(expected.shape).to(dtype)
    expected.backward(gradient.double())
    leaves = [None if t is None else laid_out(t.to("dml"), last).requires_grad_() for t in given]
    result = convolve(*leaves, **options)
    result.backward(laid_out(gradient.to("dml"), last))
    if last and channels > 1 and result.numel() and max(result.shape[2:]) > 1:
        assert result.is_contiguous(memory_format=LAST[result.dim()])
    close(result, expected, dtype)
    for leaf, wanted in zip(leaves, wide, strict=True):
        if leaf is not None:
            close(leaf.grad, wanted.grad, dtype, terms=gradient.numel() / channels)


def close(actual, expected, dtype, terms=1):
    assert actual.device.type == "dml" and actual.dtype == dtype and actual.shape == expected.shape
    if expected.numel() == 0:
        return
    # One rounding to 16 bits, and the rounding errors of a sum, whose size is the root of its
    # number of terms.
    last = {torch.float16: 2**-11, torch.bfloat16: 2**-8}.get(dtype, 0.0)
    sums = 2**-50 if dtype == torch.float64 else 2**-21
    scale = max(1.0, expected.detach().abs().max().item(), terms**0.5)
    torch.testing.assert_close(actual.detach().cpu().double(), expected.detach(), rtol=1.01 * last, atol=sums * scale)


KERNELS = [(1, 1), (2, 2), (3, 3), (4, 3), (5, 5), (7, 7), (1, 7), (11, 2)]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel, last):
    check((2, 4, 15, 13), kernel, last=last, padding=tuple(k // 2 for k in kernel))
    check((1, 3, 12, 14), kernel, last=last, stride=2)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_strides_and_dilations(stride, last):
    for dilation, padding in itertools.product((1, 2, 3), (0, 1, 3)):
        check((2, 4, 9, 10), (3, 3), last=last, stride=stride, dilation=dilation, padding=padding)
    check((1, 5, 9, 10), (3, 2), last=last, stride=(stride, 1), dilation=(1, 2), padding=(2, 0))
    check((1, 5, 9, 10), (2, 3), last=last, stride=(1, stride), dilation=(2, 1), padding=(0, 1))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 8, 31, 64, 67])
def test_channels(channels, last):
    check((3, channels, 6, 5), (3, 3), last=last, padding=1)
    check((1, channels, 5, 6), (5, 5), last=last, padding=2, stride=2, bias=False)


@dtypes(FLOATS)
def test_dtypes(dtype):
    for last in (False, True):
        check((2, 8, 9, 7), (3, 3), dtype, last, padding=1)
        check((2, 8, 9, 7), (5, 4), dtype, last, padding=2, stride=2)


@dtypes(FLOATS)
def test_transposed(dtype):
    for last in (False, True):
        check((2, 4, 5, 6), (3, 3), dtype, last, transposed=True, padding=1)
        check((2, 4, 5, 6), (4, 3), dtype, last, transposed=True, stride=2, padding=1, output_padding=1)
        check((1, 3, 4, 5), (2, 3), dtype, last, transposed=True, stride=3, dilation=(3, 2))


def test_other_ranks():
    check((2, 6, 37), (4,), padding=3)
    check((2, 6, 37), (7,), stride=2, dilation=2)
    check((2, 3, 11), (3,), transposed=True, stride=3)
    for last in (False, True):
        check((2, 4, 5, 6, 7), (3, 3, 3), last=last, padding=1)
        check((1, 3, 5, 6, 7), (2, 3, 1), last=last, stride=(1, 2, 2), dilation=(2, 1, 1), padding=(1, 2, 0))
        check((1, 3, 3, 4, 3), (2, 3, 2), last=last, transposed=True, stride=(2, 1, 3))


def test_large_kernels():
    """More taps than a kernel unrolls, with and without a divisor of their number."""
    check((1, 2, 40, 9), (37, 3), padding=(18, 1))
    check((1, 2, 80, 3), (66, 1), stride=2)
    check((2, 2, 90), (45,), stride=1)
    check((1, 8, 40, 3), (34, 1), last=True, padding=(3, 0))


def test_every_size():
    """Whole and partial tiles."""
    for size in (1, 2, 3, 7, 8, 14, 15, 17, 29):
        check((2, 3, size, 3), (3, 3), padding=1)
        check((1, 4, size, 2), (3, 3), last=True, padding=2, stride=2)
        check((1, 2, size), (3,), padding=1)


def test_no_images():
    check((0, 3, 5, 5), (3, 3))
    check((0, 3, 5, 5), (3, 3), last=True, padding=1, stride=2)


def test_one_image_without_a_batch():
    x, w = torch.randn(3, 6, 7), torch.randn(3, 1, 3, 3)
    expected = F.conv2d(x.double(), w.double(), groups=3)
    close(F.conv2d(x.to("dml"), w.to("dml"), groups=3), expected, torch.float32)


def test_sliced_and_expanded():
    x, w = torch.randn(2, 6, 11, 9), torch.randn(3, 1, 3, 3)
    for view in (lambda t: t[:, ::2, 1:, ::2], lambda t: t[:, :1].expand(2, 3, 11, 9), lambda t: t[:, 1:4].mT):
        expected = F.conv2d(view(x.double()), w.double(), groups=3)
        close(F.conv2d(view(x.to("dml")), w.to("dml"), groups=3), expected, torch.float32)
        expected = F.conv2d(view(x.double()), w.double().mT, groups=3)
        close(F.conv2d(view(x.to("dml")), w.to("dml").mT, groups=3), expected, torch.float32)


def test_several_filters_a_channel():
    x, w = torch.randn(2, 4, 7, 6), torch.randn(8, 1, 3, 3)
    expected = F.conv2d(x.double(), w.double(), groups=4, padding=1)
    close(F.conv2d(x.to("dml"), w.to("dml"), groups=4, padding=1), expected, torch.float32)


@pytest.mark.parametrize("last", [False, True])
def test_what_is_not_a_number_stays_in_its_windows(last):
    x, w = torch.randn(1, 4, 17, 9), torch.randn(4, 1, 3, 3)
    x[0, 1, 15, 4], x[0, 2, 0, 0], x[0, 3, 16, 8] = torch.nan, torch.inf, -torch.inf
    for options in ({"padding": 1}, {"stride": 2}):
        leaves = [t.clone().requires_grad_() for t in (x.double(), w.double())]
        expected = F.conv2d(*leaves, groups=4, **options)
        expected.sum().backward()
        ours = [laid_out(t.to("dml"), last).requires_grad_() for t in (x, w)]
        result = F.conv2d(*ours, groups=4, **options)
        result.sum().backward()
        pairs = [(result, expected), *((a.grad, b.grad) for a, b in zip(ours, leaves, strict=True))]
        for actual, wanted in pairs:
            torch.testing.assert_close(
                actual.detach().cpu().double(), wanted.detach(), rtol=1e-5, atol=1e-5, equal_nan=True
            )


def test_sums_over_many_places():
    """The weight's gradient is as accurate as pairwise sums."""
    torch.manual_seed(3)
    for last in (False, True):
        x, g = torch.rand(4, 4, 96, 97), torch.rand(4, 4, 96, 97)
        arguments = [[1, 1], [1, 1], [1, 1], False, [0, 0], 4, [False, True, False]]
        w = torch.zeros(4, 1, 3, 3)
        backward = torch.ops.aten.convolution_backward
        expected = backward(g.double(), x.double(), w.double(), None, *arguments)[1]
        actual = backward(*(laid_out(t.to("dml"), last) for t in (g, x)), w.to("dml"), None, *arguments)[1]
        assert ((actual.cpu().double() - expected) / expected).abs().max() < 2**-22


def test_the_same_bits_every_time():
    x, w = torch.randn(4, 6, 33, 31, device="dml"), torch.randn(6, 1, 3, 3, device="dml", requires_grad=True)

    def once():
        return torch.autograd.grad(F.conv2d(x, w, groups=6).square().sum(), w)[0].cpu()

    first = once()
    assert all(torch.equal(first, once()) for _ in range(3))


@dtypes(torch.float32, torch.float16)
def test_the_same_bits_wherever_channels_begin(dtype):
    """Adjacent channels are loaded together if they are aligned; sums are the same if they are
    not.
    """
    sizes, strides = (2, 8, 11, 9), (8 * 99, 1, 8 * 9, 8)
    x, g = (torch.randn(2 * 8 * 99 + 1, device="dml", dtype=dtype)[1:].as_strided(sizes, strides) for _ in range(2))
    w = torch.randn(8, 1, 3, 3, device="dml", dtype=dtype)

    def gradients(x, g):
        arguments = [[1, 1], [1, 1], [1, 1], False, [0, 0], 8, [True, True, False]]
        return torch.ops.aten.convolution_backward(g, x, w, None, *arguments)[:2]

    for one, other in zip(gradients(x, g), gradients(x.clone(), g.clone()), strict=True):
        assert torch.equal(one, other)


def test_launches():
    """One for each pass in channels-first order; in channels-last order the filters are copied
    first.
    """
    x, w = torch.randn(1, 4, 8, 8, device="dml"), torch.randn(4, 1, 3, 3, device="dml")
    assert launches(lambda: F.conv2d(x, w, groups=4)) == 1
    last = x.contiguous(memory_format=torch.channels_last)
    assert launches(lambda: F.conv2d(last, w, groups=4)) == 2


@pytest.mark.parametrize("transposed", [False, True])
def test_second_derivatives(transposed):
    for options in ({"padding": 1}, {"stride": 2, "dilation": 2, "padding": 1}):
        leaves = [
            torch.randn(s, device="dml", dtype=torch.float64, requires_grad=True)
            for s in ((2, 3, 5, 6), (3, 1, 2, 3), (3,))
        ]

        def function(x, w, b, options=options):
            return convolve(x, w, b, transposed, **options)

        torch.autograd.gradcheck(function, leaves, fast_mode=True)
        torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@dtypes(HALVES)
def test_autocast(dtype):
    x, w = torch.randn(1, 4, 9, 9), torch.randn(4, 1, 3, 3)
    with torch.autocast("dml", dtype=dtype):
        result = F.conv2d(x.to("dml"), w.to("dml"), groups=4, padding=1)
    expected = F.conv2d(x.to(dtype).double(), w.to(dtype).double(), groups=4, padding=1)
    close(result, expected, dtype)
