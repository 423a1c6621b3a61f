"""Convolutions and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal, compare, refuses

FLOATS = ["float32", "float16", "bfloat16", "float64"]
# Sums of products: TensorFlow's CPU sums 16-bit floats in their dtype or in float32, in its own
# order.
ULPS = {"float32": 16, "float16": 8, "bfloat16": 8, "float64": 16}


def images(rng, shape, dtype: str) -> tf.Tensor:
    return tf.cast(rng.standard_normal(shape), dtype)


# Input, filter, strides, dilations, padding.
CASES = {
    "3x3": ((2, 7, 6, 3), (3, 3, 3, 4), (1, 1), (1, 1), "SAME"),
    "stride": ((1, 8, 7, 4), (3, 3, 4, 8), (2, 2), (1, 1), "SAME"),
    "even window": ((2, 6, 5, 2), (2, 4, 2, 3), (1, 2), (1, 1), "SAME"),
    "valid": ((2, 9, 8, 5), (3, 2, 5, 2), (2, 3), (1, 1), "VALID"),
    "pointwise": ((2, 4, 5, 8), (1, 1, 8, 4), (1, 1), (1, 1), "VALID"),
    "pointwise with stride": ((1, 5, 5, 4), (1, 1, 4, 4), (2, 2), (1, 1), "SAME"),
    "dilation": ((1, 11, 9, 2), (3, 3, 2, 2), (1, 1), (2, 3), "SAME"),
    "explicit": ((2, 6, 7, 2), (3, 3, 2, 3), (2, 1), (1, 1), [[0, 0], [1, 2], [0, 3], [0, 0]]),
    "one channel": ((2, 6, 7, 1), (5, 5, 1, 1), (1, 1), (1, 1), "SAME"),
    "one output": ((1, 6, 7, 3), (3, 3, 3, 1), (1, 1), (1, 1), "VALID"),
    "empty batch": ((0, 6, 7, 3), (3, 3, 3, 2), (1, 1), (1, 1), "SAME"),
}


def lists(strides, dilations, padding, data_format="NHWC"):
    def full(pair):
        return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]

    arguments = {"strides": full(strides), "dilations": full(dilations), "data_format": data_format}
    if isinstance(padding, str):
        return {**arguments, "padding": padding}
    pairs = padding if data_format == "NHWC" else [padding[0], padding[3], padding[1], padding[2]]
    return {**arguments, "padding": "EXPLICIT", "explicit_paddings": [n for pair in pairs for n in pair]}


def gradients(x, w, g, arguments):
    return [
        tf.raw_ops.Conv2D(input=x, filter=w, **arguments),
        tf.raw_ops.Conv2DBackpropInput(input_sizes=x.shape, filter=w, out_backprop=g, **arguments),
        tf.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=w.shape, out_backprop=g, **arguments),
    ]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_conv_2d(rng, case: str, dtype: str) -> None:
    x, w, strides, dilations, padding = CASES[case]
    arguments = lists(strides, dilations, padding)
    if 0 in x and dtype != "float64":
        pytest.skip("oneDNN's kernels give an empty result the input's shape")
    if case == "dilation" and dtype == "float64":
        pytest.skip("without oneDNN the CPU has no gradients of dilated convolutions")
    x, w = images(rng, x, dtype), images(rng, w, dtype)
    with tf.device("CPU:0"):
        g = images(rng, tf.raw_ops.Conv2D(input=x, filter=w, **arguments).shape, dtype)
        try:
            gradients(x, w, g, arguments)
        except tf.errors.InvalidArgumentError:
            assert (case, dtype) == ("dilation", "float16")
            pytest.skip("a CPU without instructions for float16 has no gradients of dilated convolutions of it")
    compare(lambda *t: gradients(*t, arguments), x, w, g, ulps=ULPS[dtype])


@pytest.mark.parametrize("case", CASES)
def test_channels_first_is_channels_last(rng, case: str) -> None:
    x, w, strides, dilations, padding = CASES[case]
    if 0 in x:
        pytest.skip("oneDNN's kernels give an empty result the input's shape")
    last, first = (lists(strides, dilations, padding, f) for f in ("NHWC", "NCHW"))
    x, w = images(rng, x, "float32"), images(rng, w, "float32")
    with tf.device("CPU:0"):
        g = images(rng, tf.raw_ops.Conv2D(input=x, filter=w, **last).shape, "float32")
        expected = gradients(x, w, g, last)
        x, g = (tf.transpose(t, [0, 3, 1, 2]) for t in (x, g))
    with tf.device(DEVICE):
        actual = gradients(tf.identity(x), tf.identity(w), tf.identity(g), first)
    with tf.device("CPU:0"):
        actual = [*(tf.transpose(tf.identity(t), [0, 2, 3, 1]) for t in actual[:2]), tf.identity(actual[2])]
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, 16)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_groups(rng, data_format: str) -> None:
    x, w, g = (
        images(rng, (2, 5, 6, 6), "float32"),
        images(rng, (3, 3, 2, 9), "float32"),
        images(rng, (2, 5, 6, 9), "float32"),
    )
    arguments = lists((1, 1), (1, 1), "SAME")
    parts = [(x[..., 2 * i : 2 * i + 2], w[..., 3 * i : 3 * i + 3], g[..., 3 * i : 3 * i + 3]) for i in range(3)]
    with tf.device("CPU:0"):
        results = [gradients(*part, arguments) for part in parts]
        expected = [tf.concat(list(of_part), -1) for of_part in zip(*results, strict=True)]
        if data_format == "NCHW":
            x, g = (tf.transpose(t, [0, 3, 1, 2]) for t in (x, g))
    with tf.device(DEVICE):
        actual = gradients(*(tf.identity(t) for t in (x, w, g)), lists((1, 1), (1, 1), "SAME", data_format))
    with tf.device("CPU:0"):
        if data_format == "NCHW":
            actual[:2] = [tf.transpose(tf.identity(t), [0, 2, 3, 1]) for t in actual[:2]]
        for a, b in zip(actual, expected, strict=True):
            assert_equal(tf.identity(a), b, 16)


def test_integers(rng) -> None:
    x, w = rng.integers(-9, 9, (1, 5, 6, 3)).astype("i4"), rng.integers(-9, 9, (3, 3, 3, 2)).astype("i4")
    compare(lambda x, w: tf.raw_ops.Conv2D(input=x, filter=w, strides=[1, 1, 2, 1], padding="SAME"), x, w)


def test_gradient_of_a_convolution(rng) -> None:
    x, w = images(rng, (2, 6, 5, 3), "float32"), images(rng, (3, 3, 3, 4), "float32")
    compare(lambda x, w: tf.nn.conv2d(x, w, 2, "SAME"), x, w, ulps=16, gradient=True)


DEPTHWISE = {
    "3x3": ((2, 7, 6, 3), (3, 3, 3, 1), (1, 1), (1, 1), "SAME"),
    "wide": ((1, 9, 8, 16), (3, 3, 16, 1), (1, 1), (1, 1), "SAME"),
    "stride": ((2, 8, 7, 4), (3, 3, 4, 1), (2, 2), (1, 1), "SAME"),
    "multiplier": ((2, 6, 5, 3), (3, 2, 3, 2), (1, 1), (1, 1), "SAME"),
    "multiplier of one channel": ((2, 6, 5, 1), (3, 3, 1, 4), (1, 1), (1, 1), "VALID"),
    "explicit": ((2, 6, 7, 2), (3, 3, 2, 1), (1, 1), (1, 1), [[0, 0], [1, 2], [0, 2], [0, 0]]),
    "empty batch": ((0, 6, 7, 3), (3, 3, 3, 2), (1, 1), (1, 1), "SAME"),
}


def depthwise(x, w, g, arguments):
    raw = tf.raw_ops
    return [
        raw.DepthwiseConv2dNative(input=x, filter=w, **arguments),
        raw.DepthwiseConv2dNativeBackpropInput(input_sizes=x.shape, filter=w, out_backprop=g, **arguments),
        raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=w.shape, out_backprop=g, **arguments),
    ]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise(rng, case: str, dtype: str) -> None:
    x, w, strides, dilations, padding = DEPTHWISE[case]
    arguments = lists(strides, dilations, padding)
    if 0 in x:
        pytest.skip("the CPU's gradient of the filter has no values")
    x, w = images(rng, x, dtype), images(rng, w, dtype)
    with tf.device("CPU:0"):
        shape = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=w, **arguments).shape
    compare(lambda *t: depthwise(*t, arguments), x, w, images(rng, shape, dtype), ulps=ULPS[dtype])


@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_channels_first(rng, case: str) -> None:
    x, w, strides, dilations, padding = DEPTHWISE[case]
    if 0 in x:
        pytest.skip("oneDNN's kernels give an empty result the input's shape")
    last, first = (lists(strides, dilations, padding, f) for f in ("NHWC", "NCHW"))
    x, w = images(rng, x, "float32"), images(rng, w, "float32")
    with tf.device("CPU:0"):
        g = images(rng, tf.raw_ops.DepthwiseConv2dNative(input=x, filter=w, **last).shape, "float32")
        expected = depthwise(x, w, g, last)
        x, g = (tf.transpose(t, [0, 3, 1, 2]) for t in (x, g))
    with tf.device(DEVICE):
        actual = depthwise(tf.identity(x), tf.identity(w), tf.identity(g), first)
    with tf.device("CPU:0"):
        actual = [*(tf.transpose(tf.identity(t), [0, 2, 3, 1]) for t in actual[:2]), tf.identity(actual[2])]
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, 16)


def test_gradient_of_a_filter_that_nothing_passed() -> None:
    with tf.device(DEVICE):
        x, g = (tf.constant(np.zeros((0, 6, 7, n), "f4")) for n in (3, 6))
        arguments = lists((1, 1), (1, 1), "SAME")
        of_filter = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=(3, 3, 3, 2), out_backprop=g, **arguments
        )
    np.testing.assert_array_equal(of_filter.numpy(), np.zeros((3, 3, 3, 2), "f4"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1, 1), (1, 2, 2)])
def test_conv_3d(rng, strides, padding: str) -> None:
    arguments = {"strides": [1, *strides, 1], "padding": padding}
    x, w = images(rng, (2, 4, 5, 6, 3), "float32"), images(rng, (2, 3, 3, 3, 4), "float32")
    with tf.device("CPU:0"):
        g = images(rng, tf.raw_ops.Conv3D(input=x, filter=w, **arguments).shape, "float32")

    def all_three(x, w, g):
        raw = tf.raw_ops
        return [
            raw.Conv3D(input=x, filter=w, **arguments),
            raw.Conv3DBackpropInputV2(input_sizes=x.shape, filter=w, out_backprop=g, **arguments),
            raw.Conv3DBackpropFilterV2(input=x, filter_sizes=w.shape, out_backprop=g, **arguments),
        ]

    compare(all_three, x, w, g, ulps=16)


@pytest.mark.parametrize("shape", [(2, 5, 6, 3), (2, 3, 5, 6, 3)])
def test_conv(rng, shape) -> None:
    rank = len(shape) - 2
    x, w = images(rng, shape, "float32"), images(rng, (*[3] * rank, 3, 2), "float32")
    compare(lambda x, w: tf.raw_ops.Conv(input=x, filter=w, strides=[1] * (rank + 2), padding="SAME"), x, w, ulps=16)


def test_conv_of_several_batch_dimensions(rng) -> None:
    x, w = images(rng, (2, 3, 5, 6, 3), "float32"), images(rng, (3, 3, 3, 2), "float32")
    compare(
        lambda x, w: tf.raw_ops.Conv(input=x, filter=w, strides=[1] * 4, padding="SAME", batch_dims=2), x, w, ulps=16
    )


@pytest.mark.parametrize(
    ("x", "w", "padding"),
    [((1, 2, 2, 3), (4, 4, 3, 2), "VALID"), ((1, 5, 5, 4), (3, 3, 3, 2), "SAME"), ((5, 5, 3), (3, 3, 3, 2), "SAME")],
)
def test_refusals(x, w, padding: str) -> None:
    refuses(
        lambda x, w: tf.raw_ops.Conv2D(input=x, filter=w, strides=[1] * 4, padding=padding),
        np.ones(x, "f4"),
        np.ones(w, "f4"),
    )
