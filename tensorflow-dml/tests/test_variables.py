"""Variables: resources and references."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from compare import DEVICE


def test_a_value_that_is_read_stays_as_it_was(rng) -> None:
    x = rng.integers(-9, 9, (3, 4)).astype("f4")
    with tf.device(DEVICE):
        v = tf.Variable(x)
        before = v.read_value()
        v.assign_add(x)
        v.assign_sub(2 * x)
        np.testing.assert_array_equal(before.numpy(), x)
        np.testing.assert_array_equal(v.numpy(), np.zeros_like(x))


def test_references_in_a_graph(rng) -> None:
    x = rng.integers(-9, 9, (3, 4)).astype("f4")
    with tf.Graph().as_default(), tf.device(DEVICE):
        v = tf.compat.v1.get_variable("v", initializer=x, use_resource=False)
        step = tf.compat.v1.assign_sub(tf.compat.v1.assign_add(v, 2 * x), x)
        with tf.compat.v1.Session() as session:
            session.run(v.initializer)
            assert v.op.type == "VariableV2"
            np.testing.assert_array_equal(session.run(step), 2 * x)
            np.testing.assert_array_equal(session.run(v), 2 * x)
