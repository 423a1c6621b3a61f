"""Softmax, losses of logits, biases."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import FLOATS, numbers

from compare import DEVICE, compare, refuses


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), (7,), (2, 3, 130), (0, 4)])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_softmax(rng, name: str, shape, dtype: str) -> None:
    compare(lambda x: getattr(tf.raw_ops, name)(logits=x), numbers(rng, shape, dtype), ulps=8)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_gradients_of_softmax(rng, name: str) -> None:
    compare(lambda x: getattr(tf.raw_ops, name)(logits=x), numbers(rng, (3, 5), "float32"), ulps=16, gradient=True)


def test_softmax_of_a_scalar() -> None:
    with tf.device(DEVICE), pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.Softmax(logits=tf.constant(1.0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shapes", [((4, 7), (4, 7)), ((4, 7), (1, 7)), ((1, 7), (4, 7)), ((0, 3), (0, 3))])
def test_cross_entropy(rng, shapes, dtype: str) -> None:
    logits = numbers(rng, shapes[0], dtype)
    labels = tf.nn.softmax(numbers(rng, shapes[1], "float64"))
    compare(
        lambda x, y: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=y),
        logits,
        tf.cast(labels, dtype),
        ulps=8,
    )


def test_gradients_of_cross_entropy(rng) -> None:
    logits, labels = numbers(rng, (4, 7), "float32"), tf.nn.softmax(numbers(rng, (4, 7), "float32"))
    compare(
        lambda x, y: tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x), logits, labels, ulps=16, gradient=True
    )


def test_shapes_of_cross_entropy() -> None:
    function = lambda x, y: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=y)
    refuses(function, np.ones((3, 4), "f4"), np.ones((2, 4), "f4"))
    refuses(function, np.ones((3, 4, 2), "f4"), np.ones((3, 4, 2), "f4"))


@pytest.mark.parametrize("labels", ["int32", "int64"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4, 7), (3, 1000), (0, 3)])
def test_sparse_cross_entropy(rng, shape, dtype: str, labels: str) -> None:
    classes = rng.integers(0, shape[1], shape[0]).astype(labels)
    compare(
        lambda x, y: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y),
        numbers(rng, shape, dtype),
        classes,
        ulps=8,
    )


def test_gradients_of_sparse_cross_entropy(rng) -> None:
    classes = rng.integers(0, 7, 4)
    compare(
        lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        numbers(rng, (4, 7), "float32"),
        classes,
        ulps=16,
        gradient=True,
    )


def test_classes_that_do_not_exist(rng) -> None:
    """NaN, as TensorFlow documents it for GPUs."""
    with tf.device(DEVICE):
        loss, gradient = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=tf.constant(rng.standard_normal((3, 4)), "float32"), labels=tf.constant([1, 4, -1])
        )
    assert np.isfinite(loss.numpy()[0]) and np.isnan(loss.numpy()[1:]).all()
    assert np.isfinite(gradient.numpy()[0]).all() and np.isnan(gradient.numpy()[1:]).all()


def test_shapes_of_sparse_cross_entropy() -> None:
    function = lambda x, y: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)
    refuses(function, np.ones((3, 4), "f4"), np.ones((2,), "i4"))
    refuses(function, np.ones((3, 4), "f4"), np.ones((3, 1), "i4"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 50), (), (0, 2), (1000,)])
def test_l2_loss(rng, shape, dtype: str) -> None:
    compare(lambda t: tf.raw_ops.L2Loss(t=t), numbers(rng, shape, dtype), ulps=32 if dtype == "float64" else 8)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 4, 5, 3), (2, 3, 2, 3, 4), (0, 3)])
def test_bias_add(rng, shape, layout: str, dtype: str) -> None:
    channels = shape[1] if layout == "NCHW" else shape[-1]

    def add(x, y):
        return tf.raw_ops.BiasAdd(value=x, bias=y, data_format=layout)

    compare(add, numbers(rng, shape, dtype), numbers(rng, (channels,), dtype), ulps=1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 4, 5, 3), (2, 3, 2, 3, 4)])
def test_bias_add_grad(rng, shape, layout: str, dtype: str) -> None:
    compare(lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x, data_format=layout), numbers(rng, shape, dtype), ulps=8)


def test_shapes_of_biases() -> None:
    add = lambda x, y: tf.raw_ops.BiasAdd(value=x, bias=y)
    refuses(add, np.ones((3, 4), "f4"), np.ones((3,), "f4"))
    refuses(add, np.ones((4,), "f4"), np.ones((4,), "f4"))
    compare(lambda x, y: tf.raw_ops.BiasAddV1(value=x, bias=y), np.ones((2, 4), "f4"), np.ones((4,), "f4"))
