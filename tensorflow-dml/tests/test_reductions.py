"""Reductions along axes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, compare, refuses

SHAPES = [
    ((3, 4), [0]),
    ((3, 4), [-1]),
    ((2, 3, 4), [0, 2]),
    ((5,), [0]),
    ((), []),
    ((2, 3), []),
    ((0, 3), [0]),
    ((0, 3), [1]),
    ((1, 1), [0, 1]),
    ((65, 3), [0]),
    ((2, 700), [1]),
]
FLOATS = ["float32", "float16", "bfloat16", "float64"]


def numbers(rng, shape, dtype: str) -> tf.Tensor:
    dtype = tf.as_dtype(dtype)
    if dtype.is_complex:
        return tf.cast(tf.complex(rng.standard_normal(shape), rng.standard_normal(shape)), dtype)
    if dtype == tf.bool:
        return tf.constant(rng.random(shape) < 0.7)
    x = rng.standard_normal(shape) * (1 if dtype.is_floating else 9)
    return tf.cast(np.abs(x) if dtype.is_unsigned else x, dtype)


def reduce(name: str, axes, keep: bool, index: str = "int32"):
    operator = getattr(tf.raw_ops, name)
    return lambda x: operator(input=x, axis=tf.constant(np.array(axes, index)), keep_dims=keep)


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128", "int64"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize("name", ["Sum", "Mean", "Prod", "EuclideanNorm", "Max", "Min"])
def test_numbers(rng, name: str, shape, axes, dtype: str) -> None:
    if (dtype == "int64" and name in ("Mean", "EuclideanNorm")) or (dtype[0] == "c" and name in ("Max", "Min")):
        pytest.skip("no kernel on CUDA either")
    # TensorFlow's CPU adds 16-bit floats in 16 bits; the errors of products add up.
    wide = dtype in ("float16", "bfloat16") or name == "Prod"
    for keep in (False, True):
        compare(
            reduce(name, axes, keep, "int64" if keep else "int32"), numbers(rng, shape, dtype), ulps=64 if wide else 8
        )


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_gradients(rng, name: str) -> None:
    function = {
        "Sum": tf.reduce_sum,
        "Mean": tf.reduce_mean,
        "Max": tf.reduce_max,
        "Min": tf.reduce_min,
        "Prod": tf.reduce_prod,
    }[name]
    # Their gradients are made of operators of other families, such as Equal; that of Prod has some
    # on the CPU.
    tf.config.set_soft_device_placement(name in ("Prod", "Max", "Min"))
    try:
        compare(lambda x: function(x, axis=[0, 2]), numbers(rng, (2, 3, 4), "float32"), gradient=True, ulps=16)
    finally:
        tf.config.set_soft_device_placement(False)


@pytest.mark.parametrize("name", ["All", "Any"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_truth(rng, name: str, shape, axes) -> None:
    compare(reduce(name, axes, False), numbers(rng, shape, "bool"))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", ["Max", "Min"])
def test_extrema_of_integers(rng, name: str, dtype: str) -> None:
    compare(reduce(name, [1], False), numbers(rng, (3, 5), dtype))
    compare(reduce(name, [1], False), numbers(rng, (3, 0), dtype))


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max"])
def test_int32(rng, name: str) -> None:
    compare(reduce(name, [0], True), rng.integers(-9, 9, (3, 2), "i4"))
    compare(reduce(name, [0, 1], False), np.full((3, 2), 2**30, "i4"))


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_nan_and_infinities(name: str) -> None:
    x = np.array([[1, np.nan, 2], [np.inf, 3, -np.inf], [np.inf, 1, 2], [-np.inf, -np.inf, -np.inf]], "f4")
    compare(reduce(name, [1], False), x)
    compare(reduce(name, [0], False), x)


def test_axes_that_are_refused() -> None:
    x = np.ones((3, 4), "f4")
    for axes in ([2], [-3], [0, 0], [0, -2]):
        refuses(reduce("Sum", axes, False), x)


@pytest.mark.parametrize("dtype", [*FLOATS, "bool"])
@pytest.mark.parametrize("output", ["int32", "int64"])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_positions(rng, name: str, output: str, dtype: str) -> None:
    operator = getattr(tf.raw_ops, name)
    for shape, axis in [((3, 4), 0), ((3, 4), -1), ((2, 3, 700), 2), ((5,), 0), ((0, 3), 1)]:
        compare(
            lambda x, axis=axis: operator(input=x, dimension=axis, output_type=tf.as_dtype(output)),
            numbers(rng, shape, dtype),
        )


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_positions_of_equal_elements_and_nan(name: str) -> None:
    operator = getattr(tf.raw_ops, name)
    x = np.array(
        [
            [1, 3, 3, 1],
            [np.nan, 1, 2, np.nan],
            [np.nan] * 4,
            [-np.inf] * 4,
            [np.inf] * 4,
            [0, -0.0, 0, 0],
            [np.nan, -np.inf, np.nan, np.inf],
        ],
        "f4",
    )
    compare(lambda x: operator(input=x, dimension=1), x)


def test_positions_that_are_refused() -> None:
    refuses(lambda x: tf.raw_ops.ArgMax(input=x, dimension=2), np.ones((3, 4), "f4"))
    refuses(lambda x: tf.raw_ops.ArgMax(input=x, dimension=1), np.ones((3, 0), "f4"))


def test_the_sum_of_shapes_is_on_the_host() -> None:
    with tf.device(DEVICE):
        assert "CPU" not in tf.raw_ops.Sum(input=tf.constant([1, 2]), axis=0).device
