"""Random numbers: the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import FLOATS

from compare import DEVICE, compare, refuses

SHAPES = [(7,), (3, 5), (), (0, 2), (1030,)]
RAW = tf.raw_ops


@pytest.mark.parametrize("seed", ["int32", "int64"])
def test_keys_and_counters(seed: str) -> None:
    for pair in [(1, 2), (-5, 2**31 - 1), (0, 0)]:
        compare(lambda s: RAW.StatelessRandomGetKeyCounter(seed=s), np.array(pair, seed))
        compare(lambda s: RAW.StatelessRandomGetKeyCounterAlg(seed=s)[:2], np.array(pair, seed))


# Sines, cosines and logarithms differ in their last digits.
ULPS = {"Uniform": 0, "Normal": 4, "Truncated": 4}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["Uniform", "Normal", "Truncated"])
def test_stateless(kind: str, shape, dtype: str) -> None:
    name = {
        "Uniform": "StatelessRandomUniform",
        "Normal": "StatelessRandomNormal",
        "Truncated": "StatelessTruncatedNormal",
    }
    first, second = getattr(RAW, name[kind]), getattr(RAW, name[kind] + "V2")
    compare(lambda s: first(shape=shape, seed=s, dtype=dtype), np.array([3, -4]), ulps=ULPS[kind])
    compare(
        lambda k, c: second(shape=shape, key=k, counter=c, alg=1, dtype=dtype),
        np.array([12345678901], "u8"),
        np.array([2**64 - 3, 2**64 - 1], "u8"),
        ulps=ULPS[kind],
    )


# The CPU computes in float64, and a small shape is the power of a number with as large an exponent.
GAMMA_ULPS = {"float64": 64, "float32": 64, "float16": 2}


@pytest.mark.parametrize("dtype", GAMMA_ULPS)
def test_stateless_gammas(dtype: str) -> None:
    for values, shape in [
        ([0.3, 1.0, 2.5], [50, 3]),
        ([[0.7], [30.0]], [40, 2, 1]),
        (5.0, [513]),
        ([1.0, 0.9], [2]),
        ([0.5], [0, 1]),
    ]:
        alpha = tf.constant(values, dtype)
        compare(
            lambda s, a, n=shape: RAW.StatelessRandomGammaV2(shape=n, seed=s, alpha=a),
            np.array([3, -4]),
            alpha,
            ulps=GAMMA_ULPS[dtype],
        )
        compare(
            lambda k, c, a, n=shape: RAW.StatelessRandomGammaV3(shape=n, key=k, counter=c, alg=1, alpha=a),
            np.array([12345678901], "u8"),
            np.array([2**64 - 3, 2**64 - 1], "u8"),
            alpha,
            ulps=GAMMA_ULPS[dtype],
        )
    refuses(lambda s, a: RAW.StatelessRandomGammaV2(shape=[3], seed=s, alpha=a), np.array([3, 4]), np.ones(2, "f4"))


def test_gammas_of_shapes_that_are_not_positive() -> None:
    with tf.device(DEVICE):
        alpha = tf.constant([0.0, -1.0, np.nan, 1.0])
        found = RAW.StatelessRandomGammaV2(shape=[2, 4], seed=[1, 2], alpha=alpha).numpy()
    assert np.isnan(found[:, :3]).all() and np.isfinite(found[:, 3]).all()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_stateless_bits(shape, dtype: str) -> None:
    compare(lambda s: RAW.StatelessRandomUniformFullInt(shape=shape, seed=s, dtype=dtype), np.array([3, -4]))
    compare(
        lambda k, c: RAW.StatelessRandomUniformFullIntV2(shape=shape, key=k, counter=c, alg=1, dtype=dtype),
        np.array([5], "u8"),
        np.array([7, 8], "u8"),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("ends", [(-3, 9), (0, 1), (-(2**31), 2**31 - 1)])
def test_stateless_ranges(ends, dtype: str) -> None:
    low, high = [tf.constant(end, dtype) for end in ends]
    compare(lambda s: RAW.StatelessRandomUniformInt(shape=[33], seed=s, minval=low, maxval=high), np.array([3, -4]))
    compare(
        lambda k, c: RAW.StatelessRandomUniformIntV2(shape=[33], key=k, counter=c, alg=1, minval=low, maxval=high),
        np.array([5], "u8"),
        np.array([7, 8], "u8"),
    )


def test_ranges_that_are_empty() -> None:
    refuses(lambda s: RAW.StatelessRandomUniformInt(shape=[3], seed=s, minval=3, maxval=3), np.array([3, 4]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_with_a_state(name: str, dtype: str) -> None:
    """Each call goes on where the one before has ended."""
    draw = lambda: getattr(RAW, name)(shape=[37], seed=11, seed2=29, dtype=dtype)
    compare(lambda: [draw(), draw(), draw()], ulps=0 if name == "RandomUniform" else 4)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_ranges_with_a_state(dtype: str) -> None:
    low, high = tf.constant(-5, dtype), tf.constant(1000, dtype)
    draw = lambda: RAW.RandomUniformInt(shape=[37], minval=low, maxval=high, seed=11, seed2=30)
    compare(lambda: [draw(), draw()])


def test_without_seeds() -> None:
    with tf.device(DEVICE):
        first, second = [tf.random.uniform([100]).numpy() for _ in range(2)]
        assert not np.array_equal(first, second)
        normal = tf.random.normal([10000]).numpy()
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05


def _of_generator(device: str):
    with tf.device(device):
        generator = tf.random.Generator.from_seed(1234, alg="philox")
        drawn = [
            generator.uniform([5]),
            generator.normal([7]),
            generator.truncated_normal([3], dtype=tf.float64),
            generator.uniform([4], 0, 100, tf.int64),
            generator.uniform_full_int([4], tf.uint32),
        ]
        drawn.append(RAW.StatefulUniform(resource=generator.state.handle, algorithm=1, shape=[9]))
        drawn.append(RAW.StatefulStandardNormalV2(resource=generator.state.handle, algorithm=1, shape=[9]))
        drawn.append(
            RAW.StatefulUniformInt(
                resource=generator.state.handle,
                algorithm=1,
                shape=[9],
                minval=tf.constant(1, tf.int64),
                maxval=tf.constant(50, tf.int64),
            )
        )
        RAW.RngSkip(resource=generator.state.handle, algorithm=1, delta=5)
        drawn.append(RAW.StatefulUniformFullInt(resource=generator.state.handle, algorithm=1, shape=[9]))
        drawn.append(generator.state.read_value())
        return [value.numpy() for value in drawn]


def test_generators() -> None:
    for actual, expected in zip(_of_generator(DEVICE), _of_generator("CPU:0"), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("output", ["int32", "int64"])
def test_multinomial(output: str, dtype: str) -> None:
    shares = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])
    with tf.device(DEVICE), np.errstate(divide="ignore"):
        logits = tf.constant(np.log(shares), dtype)
        for draw in (
            lambda n: RAW.Multinomial(logits=logits, num_samples=n, seed=3, seed2=4, output_dtype=output),
            lambda n: RAW.StatelessMultinomial(logits=logits, num_samples=n, seed=[3, 4], output_dtype=output),
        ):
            drawn = draw(4000)
            assert drawn.dtype == output and drawn.shape == (2, 4000)
            counted = np.stack([np.bincount(row, minlength=4) for row in drawn.numpy()]) / 4000
            np.testing.assert_allclose(counted, shares, atol=0.04)
            assert counted[0, 1] == 0
            assert draw(0).shape == (2, 0)
