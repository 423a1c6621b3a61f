"""torch.fft, stft and istft: values, accuracy, strides, gradients and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from tests.support.compare import TOLERANCES, assert_same_error, to_device
from tests.support.environment import TORCH

COMPLEX = [torch.complex64, torch.complex128]
NORMS = ("backward", "ortho", "forward")
# Relative rounding error of a number: errors below a few multiples are unavoidable.
EPSILON = {torch.complex64: 2.0**-24, torch.complex128: 2.0**-53}
WIDE = {torch.complex64: torch.complex128, torch.float32: torch.float64}


def complex_dtypes() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dtype", COMPLEX, ids=lambda dtype: str(dtype).removeprefix("torch."))


def relative_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """The root mean square of the errors, relative to that of the values."""
    exact = exact.detach()
    difference = actual.detach().cpu().to(exact.dtype) - exact
    return float(torch.linalg.vector_norm(difference) / torch.linalg.vector_norm(exact).clamp_min(1e-300))


def assert_accurate(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    """The device's result has the CPU's strides, and is as accurate.

    float32 is compared with float64.
    """
    expected, actual = function(x), function(to_device(x, "dml"))
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    exact = function(x.to(WIDE[x.dtype]))
    assert relative_error(actual, exact) <= 2 * relative_error(expected, exact) + 4e-8


def random(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype)


@pytest.mark.parametrize("first", range(1, 65, 16))
def test_every_short_length(first: int) -> None:
    for n in range(first, first + 16):
        assert_accurate(torch.fft.fft, random(3, n, dtype=torch.complex64))


@pytest.mark.parametrize("n", [1, 2, 3, 9, 14, 31, 37, 60])
def test_short_spectra_of_reals(n: int) -> None:
    assert_accurate(torch.fft.rfft, torch.randn(3, n))
    assert_accurate(torch.fft.fft, torch.randn(3, n))
    assert_accurate(lambda z: torch.fft.irfft(z, n), random(3, n // 2 + 1, dtype=torch.complex64))


@pytest.mark.parametrize("n", [121, 1000, 1024, 4096, 5000, 10007, 44100, 1 << 16])
def test_lengths(n: int) -> None:
    z = random(2, n, dtype=torch.complex64)
    assert_accurate(torch.fft.fft, z)
    assert_accurate(torch.fft.rfft, z.real.contiguous())
    assert_accurate(lambda z: torch.fft.irfft(z, n), z[:, : n // 2 + 1].contiguous())


@pytest.mark.parametrize("n", [1, 2, 13, 30, 74, 1000, 2048, 1009, 1 << 14])
def test_double_precision(n: int) -> None:
    """As accurate as the CPU, if NumPy has longer floats."""
    z = random(2, n, dtype=torch.complex128)
    half = z[:, : n // 2 + 1].contiguous()
    for ours, exactly, given in (
        (torch.fft.fft, numpy.fft.fft, z),
        (lambda z: torch.fft.irfft(z, n), lambda z: numpy.fft.irfft(z, n), half),
    ):
        exact = exactly(given.numpy().astype(numpy.clongdouble))
        errors = [float(numpy.linalg.norm(ours(given.to(device)).cpu().numpy() - exact)) for device in ("dml", "cpu")]
        assert errors[0] <= 2 * errors[1] + 1e-16 * float(numpy.linalg.norm(exact))


def test_three_passes() -> None:
    """If shared memory is small; otherwise two passes are enough."""
    n = 3 * 5**8
    z = random(n, dtype=torch.complex64)
    assert_accurate(torch.fft.fft, z)
    assert_accurate(torch.fft.rfft, z.real.contiguous())
    assert_accurate(lambda z: torch.fft.irfft(z, n), z[: n // 2 + 1])


@pytest.mark.parametrize(("n", "dim"), [(6, 0), (6, 1), (6, 2), (74, 1), (360, 1), (20000, 0), (20000, 1)])
def test_dimensions(n: int, dim: int) -> None:
    sizes = [3, 5, 2]
    sizes[dim] = n
    z = random(*sizes, dtype=torch.complex64)
    for t in (z, z.permute(1, 2, 0).contiguous().permute(2, 0, 1)[:, ::2]):
        assert_accurate(lambda t: torch.fft.fft(t, dim=dim), t)
        assert_accurate(lambda t: torch.fft.rfft(t, dim=dim), t.real)
        assert_accurate(lambda t: torch.fft.irfft(t, dim=dim), t)


SEVERAL: dict[str, Callable[[torch.Tensor], Any]] = {
    "fft2": torch.fft.fft2,
    "ifft2": lambda z: torch.fft.ifft2(z, norm="ortho"),
    "fftn": torch.fft.fftn,
    "fftn of some": lambda z: torch.fft.fftn(z, dim=(2, 0)),
    "ifftn": lambda z: torch.fft.ifftn(z, s=(4, 9), dim=(0, 1)),
    "rfft2": lambda z: torch.fft.rfft2(z.real),
    "rfftn": lambda z: torch.fft.rfftn(z.real, dim=(2, 0, 1), norm="forward"),
    "fftn of reals": lambda z: torch.fft.fftn(z.imag, dim=(0, 1)),
    "irfft2": torch.fft.irfft2,
    "irfftn": lambda z: torch.fft.irfftn(z, s=(7, 8, 11)),
    "irfftn of some": lambda z: torch.fft.irfftn(z, dim=(1, 0)),
    "hfft": torch.fft.hfft,
    "hfft2": lambda z: torch.fft.hfft2(z, norm="ortho"),
    "hfftn": torch.fft.hfftn,
    "ihfft": lambda z: torch.fft.ihfft(z.real),
    "ihfft2": lambda z: torch.fft.ihfft2(z.real),
    "ihfftn": lambda z: torch.fft.ihfftn(z.real, norm="ortho"),
    "fftshift": torch.fft.fftshift,
    "ifftshift": lambda z: torch.fft.ifftshift(z, dim=(0, 2)),
    "conjugate": lambda z: torch.fft.fft(z.conj()),
    "negative": lambda z: torch.fft.fft(z.conj().imag),
    "expanded": lambda z: torch.fft.fft(z[:1].expand(5, -1, -1), dim=1),
    "trimmed": lambda z: torch.fft.fft(z, 3),
    "lengthened": lambda z: torch.fft.rfft(z.real, 40, dim=1),
}


@pytest.mark.parametrize("name", SEVERAL)
@complex_dtypes()
def test_functions(name: str, dtype: torch.dtype) -> None:
    z = random(6, 10, 15, dtype=dtype)
    function = SEVERAL[name]
    expected, actual = function(z), function(to_device(z, "dml"))
    assert actual.stride() == expected.stride()
    assert actual.dtype == expected.dtype
    assert relative_error(actual, expected) <= 6 * EPSILON[dtype]


@pytest.mark.parametrize("norm", NORMS)
def test_norms(norm: str) -> None:
    z = random(4, 12, dtype=torch.complex64)
    for function in (torch.fft.fft, torch.fft.ifft, torch.fft.hfft, torch.fft.irfft, torch.fft.fft2, torch.fft.irfft2):
        assert_accurate(lambda z, function=function: function(z, norm=norm), z)
    for function in (torch.fft.rfft, torch.fft.ihfft, torch.fft.rfft2):
        assert_accurate(lambda z, function=function: function(z, norm=norm), z.real.contiguous())


def test_frequencies() -> None:
    for n in (1, 8, 9):
        for function in (torch.fft.fftfreq, torch.fft.rfftfreq):
            torch.testing.assert_close(function(n, 0.5, device="dml").cpu(), function(n, 0.5))


def test_half_spectra_ignore_what_reals_have_not() -> None:
    """The imaginary parts of the first and of the middle number are ignored."""
    for n in (8, 9, 34, 8192, 10000, 1 << 15):
        z = random(n // 2 + 1, dtype=torch.complex64)
        spoilt = z.clone()
        spoilt.imag[0] = float("nan")
        if n % 2 == 0:
            spoilt.imag[-1] = float("nan")
        clean = torch.fft.irfft(z.to("dml"), n)
        assert torch.equal(torch.fft.irfft(spoilt.to("dml"), n), clean)
        assert relative_error(clean, torch.fft.irfft(z, n)) <= 1e-6


def test_spectra_of_reals_are_symmetric() -> None:
    for n in (15, 64, 1 << 15, 30000):
        spectrum = torch.fft.fft(torch.randn(n).to("dml")).cpu()
        mirrored = spectrum.roll(-1).flip(0).conj()
        assert relative_error(mirrored, spectrum) <= 1e-6
        if n > 8192:  # With several passes both halves are computed from the same numbers.
            assert float((mirrored - spectrum)[1:].abs().max()) <= 1e-4


def test_a_result_does_not_depend_on_the_others() -> None:
    z = random(300, 48, dtype=torch.complex64).to("dml")
    every = torch.fft.fft(z)
    assert torch.equal(torch.fft.fft(z[17]), every[17])
    spoilt = z.clone()
    spoilt[18] = float("nan")
    assert torch.equal(torch.fft.fft(spoilt)[17], every[17])
    assert torch.fft.fft(spoilt)[18].isnan().all()


def test_nothing_and_one() -> None:
    for function in (torch.fft.fft, torch.fft.ifft, torch.fft.rfft, torch.fft.ihfft):
        empty = function(torch.empty(0, 5, device="dml"))
        assert empty.shape[0] == 0
        assert empty.is_complex()
    assert torch.fft.irfft(torch.empty(2, 0, 5, dtype=torch.complex64, device="dml")).shape == (2, 0, 8)
    one = torch.tensor([3 - 4j], device="dml")
    assert torch.fft.fft(one).item() == 3 - 4j
    assert torch.fft.ifft(one, norm="forward").item() == 3 - 4j
    assert torch.fft.irfft(one, 1).item() == 3
    assert torch.fft.rfft(torch.tensor([2.5], device="dml")).item() == 2.5
    assert torch.fft.fft(torch.arange(4, device="dml")).tolist() == [6, -2 + 2j, -2, -2 - 2j]
    assert torch.fft.fftn(one, dim=()).item() == 3 - 4j


def test_out() -> None:
    z = random(4, 10, dtype=torch.complex64)
    ours = z.to("dml")
    for function, given in (
        (torch.fft.fft, ours),
        (torch.fft.irfft, ours),
        (torch.fft.rfft, ours.real),
        (torch.fft.fft, ours.real),
        (torch.fft.fft2, ours),
        (torch.fft.irfft2, ours),
    ):
        plain = function(given)
        for out in (
            torch.empty_like(plain),
            torch.empty(0, dtype=plain.dtype, device="dml"),
            torch.empty(plain.shape[::-1], dtype=plain.dtype, device="dml").mT,
            torch.empty(plain.shape, dtype=torch.promote_types(plain.dtype, torch.float64), device="dml"),
        ):
            pointer = out.data_ptr()
            assert function(given, out=out) is out
            assert out.data_ptr() == pointer or pointer == 0
            assert torch.equal(out.to(plain.dtype), plain)
    same = ours.clone()
    assert torch.equal(torch.fft.fft(same, out=same), torch.fft.fft(ours))
    long = random(20000, dtype=torch.complex64).to("dml")
    same = long.clone()
    assert torch.equal(torch.fft.fft(same, out=same), torch.fft.fft(long))


GRADIENTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "fft": lambda z, x: torch.fft.fft(z),
    "fft of reals": lambda z, x: torch.fft.fft(x, norm="ortho"),
    "rfft": lambda z, x: torch.fft.rfft(x),
    "rfft trimmed": lambda z, x: torch.fft.rfft(x, 7),
    "irfft": lambda z, x: torch.fft.irfft(z),
    "irfft odd": lambda z, x: torch.fft.irfft(z, 15),
    "fft2": lambda z, x: torch.fft.fft2(z),
    "rfft2": lambda z, x: torch.fft.rfft2(x, norm="forward"),
    "irfft2": lambda z, x: torch.fft.irfft2(z),
    "hfft": lambda z, x: torch.fft.hfft(z),
    "ihfftn": lambda z, x: torch.fft.ihfftn(x),
    "convolution": lambda z, x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x.flip(1)), 10),
    "stft": lambda z, x: torch.stft(x, 4, 2, window=torch.hann_window(4, device=x.device), return_complex=True),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    z, x = random(4, 8, dtype=torch.complex64), random(4, 10, dtype=torch.float32)
    weights = None
    gradients = []
    for device in ("cpu", "dml"):
        leaves = [t.to(device, copy=True).requires_grad_() for t in (z, x)]
        result = GRADIENTS[name](*leaves)
        weights = torch.randn_like(result.detach().cpu()) if weights is None else weights
        (result * weights.to(device)).abs().square().sum().backward()
        gradients.append([t.grad for t in leaves])
    for theirs, ours in zip(*gradients, strict=True):
        assert (theirs is None) == (ours is None)
        if theirs is not None and ours is not None:
            assert relative_error(ours, theirs) <= 2e-6


def test_second_gradients() -> None:
    x = torch.randn(9)
    results = []
    for device in ("cpu", "dml"):
        t = x.to(device, copy=True).requires_grad_()
        (first,) = torch.autograd.grad(torch.fft.rfft(t).abs().pow(3).sum(), t, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), t)[0])
    assert relative_error(results[1], results[0]) <= 2e-6


@pytest.mark.parametrize("centred", [True, False])
def test_short_time(centred: bool) -> None:
    x, window = torch.randn(2, 1000), torch.hann_window(64)

    def spectra(x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 64, 16, window=window, center=centred, return_complex=True)

    expected, actual = spectra(x, window), spectra(x.to("dml"), window.to("dml"))
    assert actual.stride() == expected.stride()
    assert relative_error(actual, expected) <= 1e-6
    twosided = torch.stft(
        x.to("dml"), 64, window=window.to("dml"), onesided=False, return_complex=True, normalized=True
    )
    theirs = torch.stft(x, 64, window=window, onesided=False, return_complex=True, normalized=True)
    assert relative_error(twosided, theirs) <= 1e-6
    if centred:
        back = torch.istft(actual, 64, 16, window=window.to("dml"), length=1000)
        assert relative_error(back, x) <= 1e-6


def test_errors() -> None:
    z = random(4, 6, dtype=torch.complex64)
    for function in (
        lambda z: torch.fft.fft(z, 0),
        lambda z: torch.fft.irfft(z, 0),
        lambda z: torch.fft.fft(z, dim=2),
        lambda z: torch.fft.fft2(z, dim=(0, 0)),
        lambda z: torch.fft.rfft(z),
        lambda z: torch.fft.fft(z, norm="other"),
        lambda z: torch.fft.fft(z, out=torch.empty(0, device=z.device)),
        lambda z: torch.fft.fft(z[0], out=z[0, :1].expand(6)),
        lambda z: torch.ops.aten._fft_c2c(z.real, [0], 0, True),
        lambda z: torch.ops.aten._fft_c2r(z.real, [0], 0, 4),
        lambda z: torch.ops.aten._fft_r2c(z.real, [], 0, True),
    ):
        assert_same_error(function, z)
    # The CPU raises a TypeError from torch 2.15 on.
    with pytest.raises(RuntimeError, match="Only supports floating-point dtypes, but found: ComplexFloat"):
        torch.ops.aten._fft_r2c(z.to("dml"), [0], 0, True)
    with pytest.raises(RuntimeError, match="are not the spectrum"):
        torch.ops.aten._fft_c2r(z.to("dml"), [1], 0, 5)


def test_tolerances_are_those_of_other_operators() -> None:
    """Products in the frequency domain are convolutions."""
    x, kernel = torch.randn(3, 200), torch.randn(3, 31)
    through = torch.fft.irfft(torch.fft.rfft(x.to("dml"), 230) * torch.fft.rfft(kernel.to("dml"), 230), 230)
    direct = torch.nn.functional.conv1d(x[None], kernel.flip(1)[:, None], padding=30, groups=3)[0]
    relative, _ = TOLERANCES[torch.float32]
    assert relative_error(through, direct) <= relative


def test_graphs_find_their_roots_of_unity() -> None:
    """A length that is first used in a capture, in one pass, in several, and as a convolution."""
    for n in (330, 3 << 13, 82):
        x = torch.zeros(n, dtype=torch.complex64, device="dml")
        graph = torch.dml.Graph()
        with torch.dml.graph(graph):
            y = torch.fft.fft(x)
        for _ in range(2):
            values = random(n, dtype=torch.complex64)
            x.copy_(values)
            graph.replay()
            assert relative_error(y, torch.fft.fft(values)) <= 1e-6
        plain = torch.fft.fft(values.to("dml"))
        assert torch.equal(y, plain)


HALVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fft": torch.fft.fft,
    "ifft": lambda x: torch.fft.ifft(x, 12, norm="ortho"),
    "rfft": torch.fft.rfft,
    "irfft": torch.fft.irfft,
    "hfft": torch.fft.hfft,
    "ihfft": torch.fft.ihfft,
    "fft2": torch.fft.fft2,
    "irfft2": lambda x: torch.fft.irfft2(x, (6, 7)),
    "hfft2": torch.fft.hfft2,
    "ihfft2": torch.fft.ihfft2,
    "rfftn": lambda x: torch.fft.rfftn(x, dim=(2, 0)),
    "ifftn": torch.fft.ifftn,
    "hfftn": torch.fft.hfftn,
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_of_any_length_are_those_of_float32_rounded(name: str) -> None:
    x = torch.randn(4, 6, 15, device="dml").half()
    got, wide = HALVES[name](x), HALVES[name](x.float())
    assert got.dtype == (torch.complex32 if wide.is_complex() else torch.float16)
    assert torch.equal(got.cpu().to(wide.dtype), wide.cpu().to(got.dtype).to(wide.dtype))
    z = torch.complex(x.float(), x.float().flip(0)).to(torch.complex32)
    if name not in ("rfft", "ihfft", "ihfft2", "rfftn"):
        got, wide = HALVES[name](z), HALVES[name](z.to(torch.complex64))
        torch.testing.assert_close(got.cpu().to(wide.dtype), wide.cpu(), rtol=2e-3, atol=2e-2)


def test_gradients_of_halves() -> None:
    def gradient(dtype: torch.dtype) -> torch.Tensor:
        x = torch.linspace(-1, 1, 30, device="dml").to(dtype).requires_grad_()
        torch.fft.irfft(2 * torch.fft.rfft(x), 30).square().sum().backward()
        assert x.grad is not None and x.grad.dtype == dtype
        return x.grad.float().cpu()

    torch.testing.assert_close(gradient(torch.float16), gradient(torch.float32), rtol=2e-2, atol=2e-2)


@pytest.mark.allow_fallback
def test_bfloat16_is_refused_as_on_cuda() -> None:
    assert_same_error(torch.fft.fft, torch.ones(8, dtype=torch.bfloat16))
    # From torch 2.15 on the CPU raises a NotImplementedError, and so does the device.
    error = NotImplementedError if TORCH >= (2, 15) else RuntimeError
    with pytest.raises(error, match="tensors of type: BFloat16"):
        torch.stft(torch.ones(16, dtype=torch.bfloat16, device="dml"), 4, 2, return_complex=True)
