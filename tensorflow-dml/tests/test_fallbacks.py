"""Counts of what ran on the CPU for lack of a kernel."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf
import tensorflow_dml

from compare import DEVICE


@pytest.fixture(autouse=True)
def _watched():
    from tensorflow.python.framework import op_callbacks

    tf.config.set_soft_device_placement(True)
    tensorflow_dml.reset_fallbacks()
    tensorflow_dml.watch_fallbacks()
    yield
    op_callbacks.clear_op_callbacks()
    tensorflow_dml.reset_fallbacks()
    tf.config.set_soft_device_placement(False)


def _only_the_cpu_has(x: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.RaggedBincount(splits=[0, 2], values=x, size=4, weights=tf.constant([], tf.float32))


def test_eager_operators_are_counted_and_warned_of_once() -> None:
    x = tf.constant([1, 2], tf.int64)
    with pytest.warns(RuntimeWarning, match="no kernel of RaggedBincount"):
        _only_the_cpu_has(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _only_the_cpu_has(x)
    assert tensorflow_dml.fallbacks()["RaggedBincount"] == 2


def test_operators_of_a_function_are_counted_when_it_is_traced() -> None:
    f = tf.function(_only_the_cpu_has)
    with pytest.warns(RuntimeWarning, match="RaggedBincount"):
        f(tf.constant([1, 2], tf.int64))
    f(tf.constant([1, 3], tf.int64))
    assert tensorflow_dml.fallbacks() == {"RaggedBincount": 1}


def test_what_is_asked_of_the_cpu_is_no_fallback() -> None:
    with tf.device("CPU:0"):
        _only_the_cpu_has(tf.constant([1, 2], tf.int64))
        tf.function(_only_the_cpu_has)(tf.constant([1, 2], tf.int64))
    assert tensorflow_dml.fallbacks() == {}


def test_what_the_device_computes_and_datasets_are_no_fallbacks() -> None:
    with tf.device(DEVICE):
        x = tf.constant([[1.0, 2.0]])
        tf.matmul(x + x, x, transpose_b=True)
    list(tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: tf.math.lgamma(x)))
    assert tensorflow_dml.fallbacks() == {}


def test_attributes_that_are_no_dtypes_are_left_out() -> None:
    @tf.function
    def f(x):
        return tf.nn.conv2d(x, tf.ones((1, 1, 1, 1)), 1, "SAME")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(tf.ones((1, 2, 2, 1)))


def test_graphs_of_sessions_are_watched() -> None:
    with tf.Graph().as_default():
        y = tf.constant([1.0, 2.0]) * 2.0
        with tf.compat.v1.Session() as session:
            assert session.run(y).tolist() == [2, 4]
    assert tensorflow_dml.fallbacks() == {}
