"""Pooling: maxima and means over windows, positions of maxima, and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal, compare, refuses

FLOATS = ["float32", "float16", "bfloat16", "float64"]
raw = tf.raw_ops

# Input, window, strides, padding.
CASES = {
    "2x2": ((2, 6, 4, 3), (2, 2), (2, 2), "VALID"),
    "3x3 stride 2": ((1, 7, 8, 4), (3, 3), (2, 2), "SAME"),
    "3x3": ((2, 5, 6, 2), (3, 3), (1, 1), "SAME"),
    "odd": ((1, 9, 7, 1), (2, 3), (3, 1), "SAME"),
    "empty": ((0, 6, 4, 3), (2, 2), (2, 2), "VALID"),
}


def values(rng, shape, dtype: str) -> tf.Tensor:
    """Few different numbers, so that windows have equal maxima."""
    return tf.cast(rng.integers(-6, 6, shape), dtype)


def windows(case: str) -> dict:
    _, size, strides, padding = CASES[case]
    return {"ksize": [1, *size, 1], "strides": [1, *strides, 1], "padding": padding}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_max_pool(rng, case: str, dtype: str) -> None:
    x = values(rng, CASES[case][0], dtype)
    arguments = windows(case)
    compare(lambda x: raw.MaxPool(input=x, **arguments), x, ulps=0)
    with tf.device("CPU:0"):
        y = raw.MaxPool(input=x, **arguments)
        g, gg = tf.cast(rng.standard_normal(y.shape), dtype), tf.cast(rng.standard_normal(x.shape), dtype)
    compare(lambda x, y, g: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **arguments), x, y, g)
    if dtype != "bfloat16":
        compare(
            lambda x, y, gg: raw.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=gg, **arguments), x, y, gg, ulps=0
        )


@pytest.mark.parametrize("case", CASES)
def test_max_pool_with_windows_as_inputs(rng, case: str) -> None:
    x = values(rng, CASES[case][0], "float32")
    arguments = windows(case)
    with tf.device("CPU:0"):
        y = raw.MaxPool(input=x, **arguments)
        g, gg = (tf.cast(rng.standard_normal(t.shape), "float32") for t in (y, x))
    compare(lambda x: raw.MaxPoolV2(input=x, **arguments), x, ulps=0)
    compare(lambda x, y, g: raw.MaxPoolGradV2(orig_input=x, orig_output=y, grad=g, **arguments), x, y, g)
    compare(lambda x, y, g: raw.MaxPoolGradGradV2(orig_input=x, orig_output=y, grad=g, **arguments), x, y, gg, ulps=0)


@pytest.mark.parametrize("in_batch", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_positions(rng, case: str, in_batch: bool) -> None:
    if case == "empty":
        refuses(lambda x: raw.MaxPoolWithArgmax(input=x, **windows(case)), np.zeros(CASES[case][0], "f4"))
        return
    x = values(rng, CASES[case][0], "float32")
    arguments = {**windows(case), "include_batch_in_index": in_batch}
    compare(lambda x: raw.MaxPoolWithArgmax(input=x, **arguments), x, ulps=0)
    with tf.device("CPU:0"):
        y, argmax = raw.MaxPoolWithArgmax(input=x, **arguments)
        g, gg = (tf.cast(rng.standard_normal(t.shape), "float32") for t in (y, x))
        flat = argmax.numpy()
        if not in_batch and x.shape[0]:
            flat = flat + np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * int(np.prod(x.shape[1:]))
        expected = np.zeros(int(np.prod(x.shape)), "f4")
        np.add.at(expected, flat.ravel(), g.numpy().ravel())
        second = tf.constant(gg.numpy().ravel()[flat.ravel()].reshape(y.shape))
        expected = tf.constant(expected.reshape(x.shape))
    with tf.device(DEVICE):
        x, g, gg, argmax = (tf.identity(t) for t in (x, g, gg, argmax))
        actual = raw.MaxPoolGradWithArgmax(input=x, grad=g, argmax=argmax, **arguments)
        actual_second = raw.MaxPoolGradGradWithArgmax(input=x, grad=gg, argmax=argmax, **arguments)
    assert_equal(actual, expected, 4)
    assert_equal(actual_second, second, 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_avg_pool(rng, case: str, dtype: str) -> None:
    x = tf.cast(rng.standard_normal(CASES[case][0]), dtype)
    arguments = windows(case)
    compare(lambda x: raw.AvgPool(value=x, **arguments), x)
    with tf.device("CPU:0"):
        g = tf.cast(rng.standard_normal(raw.AvgPool(value=x, **arguments).shape), dtype)
    compare(lambda g: raw.AvgPoolGrad(orig_input_shape=list(x.shape), grad=g, **arguments), g, ulps=8)


@pytest.mark.parametrize("case", CASES)
def test_channels_first_is_channels_last(rng, case: str) -> None:
    x = values(rng, CASES[case][0], "float32")
    last = windows(case)
    first = {**last, "data_format": "NCHW"}
    for name in ("ksize", "strides"):
        first[name] = [1, 1, *last[name][1:3]]
    with tf.device("CPU:0"):
        g = tf.constant(rng.standard_normal(raw.MaxPool(input=x, **last).shape).astype("f4"))
    with tf.device(DEVICE):
        x, g = tf.identity(x), tf.identity(g)

    def turned(t, order):
        with tf.device("CPU:0"):
            t = tf.transpose(tf.identity(t), order)
        with tf.device(DEVICE):
            return tf.identity(t)

    def all_results(x, g, arguments):
        y = raw.MaxPool(input=x, **arguments)
        return [
            y,
            raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **arguments),
            raw.AvgPool(value=x, **arguments),
            raw.AvgPoolGrad(orig_input_shape=list(x.shape), grad=g, **arguments),
            raw.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=x, **arguments),
        ]

    with tf.device(DEVICE):
        expected = all_results(x, g, last)
        actual = all_results(turned(x, [0, 3, 1, 2]), turned(g, [0, 3, 1, 2]), first)
    for a, b in zip(actual, expected, strict=True):
        assert_equal(turned(a, [0, 2, 3, 1]), b, 1)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_three_dimensions(rng, padding: str) -> None:
    # Of equal maxima the CPU's gradient goes to all, unlike that in two dimensions, and unlike
    # CUDA's.
    x = tf.constant(rng.permutation(2 * 5 * 6 * 4 * 3).reshape(2, 5, 6, 4, 3).astype("f4"))
    arguments = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": padding}
    with tf.device("CPU:0"):
        y = raw.MaxPool3D(input=x, **arguments)
        g = tf.cast(rng.standard_normal(y.shape), "float32")
    compare(lambda x: [raw.MaxPool3D(input=x, **arguments), raw.AvgPool3D(input=x, **arguments)], x)
    compare(lambda x, y, g: raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=g, **arguments), x, y, g)
    compare(lambda x, y: raw.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=x, **arguments), x, y)
    compare(lambda g: raw.AvgPool3DGrad(orig_input_shape=list(x.shape), grad=g, **arguments), g, ulps=8)


def test_explicit_padding(rng) -> None:
    x = values(rng, (2, 6, 7, 2), "float32")
    arguments = {
        "ksize": [1, 3, 3, 1],
        "strides": [1, 2, 2, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0],
    }
    compare(lambda x: raw.MaxPool(input=x, **arguments), x, ulps=0)


@pytest.mark.parametrize(("shape", "size"), [((1, 2, 2, 1), 4), ((2, 2, 1), 1), ((1, 2, 2, 1), 0)])
def test_refusals(shape, size: int) -> None:
    refuses(
        lambda x: raw.MaxPool(input=x, ksize=[1, size, size, 1], strides=[1] * 4, padding="VALID"), np.ones(shape, "f4")
    )
