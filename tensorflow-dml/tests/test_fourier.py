"""Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import numbers

from compare import DEVICE, assert_equal, compare, refuses

SHAPES = {1: [(8,), (3, 5), (2, 3, 16), (0, 4)], 2: [(4, 6), (2, 3, 5)], 3: [(2, 3, 4), (2, 4, 2, 6)]}
CASES = [(rank, shape) for rank, shapes in SHAPES.items() for shape in shapes]


def named(name: str, rank: int):
    return getattr(tf.raw_ops, name + ("" if rank == 1 else f"{rank}D"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["FFT", "IFFT"])
def test_complex(rng, name: str, case, dtype: str) -> None:
    rank, shape = case
    compare(lambda x: named(name, rank)(input=x), numbers(rng, shape, dtype), ulps=16)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("change", [0, -1])
def test_real(rng, change: int, case, dtype: str) -> None:
    rank, shape = case
    lengths = [max(n + change, 1) for n in shape[-rank:]]
    compare(
        lambda x: named("RFFT", rank)(
            input=x, fft_length=lengths, Tcomplex="complex64" if dtype == "float32" else "complex128"
        ),
        numbers(rng, shape, dtype),
        ulps=16,
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("change", [0, -1])
def test_back_to_real(rng, change: int, case, dtype: str) -> None:
    rank, shape = case
    lengths = [max(n + change, 1) for n in shape[-rank:]]
    lengths[-1] = max(2 * (shape[-1] - 1) + change, 1)
    real = "float32" if dtype == "complex64" else "float64"
    # Of a spectrum of real numbers: what is not one has no one result.
    with tf.device("CPU:0"):
        whole = numbers(rng, (*shape[:-1], 2 * (shape[-1] - 1)), real)
        spectrum = named("RFFT", rank)(input=whole, fft_length=whole.shape[-rank:], Tcomplex=dtype)
    compare(lambda x: named("IRFFT", rank)(input=x, fft_length=lengths, Treal=real), spectrum, ulps=16)


@pytest.mark.parametrize("axes", [[0], [2, 0], [-1, 1], [0, 1, 2]])
@pytest.mark.parametrize("change", [0, 1, -1])
def test_along_given_dimensions(rng, change: int, axes) -> None:
    shape = (3, 4, 6)
    lengths = [shape[d] + change for d in axes]
    raw = tf.raw_ops
    z, x = numbers(rng, shape, "complex64"), numbers(rng, shape, "float32")
    # The CPU has no kernels for these.
    with tf.device(DEVICE):
        forward = raw.FFTND(input=z, fft_length=lengths, axes=axes)
        inverse = raw.IFFTND(input=z, fft_length=lengths, axes=axes)
        halved = raw.RFFTND(input=x, fft_length=lengths, axes=axes)
    assert_equal(forward, tf.constant(np.fft.fftn(z, lengths, axes), "complex64"), 16)
    assert_equal(inverse, tf.constant(np.fft.ifftn(z, lengths, axes), "complex64"), 16)
    assert_equal(halved, tf.constant(np.fft.rfftn(x, lengths, axes), "complex64"), 16)


def test_gradients(rng) -> None:
    compare(tf.signal.rfft, numbers(rng, (3, 8), "float32"), ulps=32, gradient=True)
    compare(tf.signal.fft, numbers(rng, (3, 8), "complex64"), ulps=32, gradient=True)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_inputs_that_are_too_short(rng, rank: int) -> None:
    lengths = [4, 4, 5][-rank:]
    refuses(lambda x: named("RFFT", rank)(input=x, fft_length=lengths), numbers(rng, (4, 4, 4), "float32"))
    lengths[-1] = 8
    refuses(lambda x: named("IRFFT", rank)(input=x, fft_length=lengths), numbers(rng, (4, 4, 4), "complex64"))


def test_too_few_dimensions() -> None:
    refuses(lambda x: tf.raw_ops.FFT2D(input=x), np.ones((4,), "c8"))
    refuses(lambda x: tf.raw_ops.RFFT(input=x, fft_length=[4, 4]), np.ones((4,), "f4"))
