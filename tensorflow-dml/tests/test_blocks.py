"""Blocks of networks, forward and backward, and convolutions with what follows them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context, execute

from compare import DEVICE, assert_equal, compare

raw = tf.raw_ops


def weights(rng, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype("f4")


def normalized(x, scale, offset):
    empty = tf.constant([], tf.float32)
    return raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=empty, variance=empty, epsilon=1e-3)[0]


def test_a_residual_block(rng) -> None:
    x = rng.standard_normal((2, 8, 8, 8)).astype("f4")
    filters = [weights(rng, 1, 1, 8, 4), weights(rng, 3, 3, 4, 4), weights(rng, 1, 1, 4, 16), weights(rng, 1, 1, 8, 16)]
    vectors = [rng.random(n).astype("f4") + 0.5 for n in (4, 4, 4, 4, 16, 16, 16, 16)]

    def block(x, a, b, c, d, *v):
        y = raw.Relu(features=normalized(tf.nn.conv2d(x, a, 1, "SAME"), v[0], v[1]))
        y = raw.Relu(features=normalized(tf.nn.conv2d(y, b, 2, "SAME"), v[2], v[3]))
        y = normalized(tf.nn.conv2d(y, c, 1, "VALID"), v[4], v[5])
        shortcut = normalized(tf.nn.conv2d(x, d, 2, "SAME"), v[6], v[7])
        return raw.MaxPool(input=raw.AddV2(x=y, y=shortcut), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")

    compare(block, x, *filters, *vectors, ulps=256, gradient=True)


def test_a_pyramid_of_pools(rng) -> None:
    x = rng.standard_normal((1, 8, 8, 4)).astype("f4")
    filters = [weights(rng, 1, 1, 4, 8), weights(rng, 3, 3, 8, 8), weights(rng, 3, 3, 8, 1)]

    def block(x, a, b, c):
        y = tf.nn.conv2d(x, a, 1, "SAME")
        pooled = raw.MaxPool(input=y, ksize=[1, 5, 5, 1], strides=[1] * 4, padding="SAME")
        again = raw.MaxPool(input=pooled, ksize=[1, 9, 9, 1], strides=[1] * 4, padding="SAME")
        down = tf.nn.conv2d(raw.AddV2(x=pooled, y=again), b, 2, "SAME")
        by_channel = raw.DepthwiseConv2dNative(input=y, filter=c, strides=[1] * 4, padding="SAME")
        up = raw.ResizeNearestNeighbor(images=down, size=(8, 8), half_pixel_centers=True)
        return raw.AvgPool(
            value=raw.AddV2(x=up, y=by_channel), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
        )

    compare(block, x, *filters, ulps=64, gradient=True)


FUSED = [
    (["BiasAdd"], 1),
    (["BiasAdd", "Relu"], 1),
    (["BiasAdd", "Relu6"], 1),
    (["BiasAdd", "Elu"], 1),
    (["BiasAdd", "LeakyRelu"], 1),
    (["BiasAdd", "Tanh"], 1),
    (["BiasAdd", "Sigmoid"], 1),
    (["BiasAdd", "Add"], 2),
    (["BiasAdd", "Add", "Relu"], 2),
    (["FusedBatchNorm"], 4),
    (["FusedBatchNorm", "Relu"], 4),
]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("steps", "count"), FUSED)
def test_fused_convolutions(rng, steps, count: int, data_format: str) -> None:
    x, w = rng.standard_normal((2, 5, 6, 3)).astype("f4"), weights(rng, 3, 3, 3, 4)
    vectors = [rng.random(4).astype("f4") + 0.1 for _ in range(4)]
    added = rng.standard_normal((2, 5, 6, 4)).astype("f4")
    activations = {
        "Relu": tf.nn.relu,
        "Relu6": tf.nn.relu6,
        "Elu": tf.nn.elu,
        "Tanh": tf.tanh,
        "Sigmoid": tf.sigmoid,
        "LeakyRelu": lambda y: tf.nn.leaky_relu(y, 0.25),
    }
    with tf.device("CPU:0"):
        y = tf.nn.conv2d(x, w, 1, "SAME")
        if steps[0] == "BiasAdd":
            y = y + vectors[0]
        else:
            scale, offset, mean, variance = vectors
            y = (y - mean) / np.sqrt(variance + np.float32(1e-3)) * scale + offset
        y = y + added if "Add" in steps else y
        y = activations[steps[-1]](y) if steps[-1] in activations else y
    arguments = vectors if count == 4 else vectors[:1]
    turned = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    if "Add" in steps:
        arguments = [*arguments, np.transpose(added, turned).copy()]
    kind = tf.float32.as_datatype_enum
    attributes = {
        "T": kind,
        "TArgs": [kind] * count,
        "num_args": count,
        "num_host_args": 0,
        "strides": [1] * 4,
        "padding": b"SAME",
        "explicit_paddings": [],
        "data_format": data_format.encode(),
        "filter_format": b"HWIO",
        "dilations": [1] * 4,
        "use_cudnn_on_gpu": True,
        "fused_ops": [s.encode() for s in steps],
        "epsilon": 1e-3,
        "leakyrelu_alpha": 0.25,
    }
    with tf.device(DEVICE):
        tensors = [tf.constant(t) for t in (np.transpose(x, turned).copy(), w, *arguments)]
        flat = tuple(n for pair in attributes.items() for n in pair)
        [actual] = execute.execute(b"_FusedConv2D", 1, inputs=tensors, attrs=flat, ctx=context.context())
    with tf.device("CPU:0"):
        actual = tf.identity(actual)
        actual = tf.transpose(actual, (0, 2, 3, 1)) if data_format == "NCHW" else actual
    assert_equal(actual, y, 16)
