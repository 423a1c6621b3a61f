"""The loss of connectionist temporal classification. The CPU has its first version alone, whose
blank is the last label.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal

raw = tf.raw_ops


def targets():
    labels = [[1, 2, 2], [3], [4, 1, 4, 1]]
    indices = np.array([[b, i] for b, row in enumerate(labels) for i in range(len(row))], "i8")
    return indices, np.array([label for row in labels for label in row], "i4")


@pytest.mark.parametrize("ignored", [False, True])
def test_ctc(rng, ignored: bool) -> None:
    x = rng.standard_normal((9, 3, 5)).astype("f4")
    indices, labels = targets()
    lengths = np.array([9, 4, 3 if ignored else 6], "i4")
    arguments = {"ignore_longer_outputs_than_inputs": ignored}
    with tf.device("CPU:0"):
        # The blank is moved from the end to the front.
        loss, grad = raw.CTCLoss(
            inputs=np.roll(x, -1, 2),
            labels_indices=indices,
            labels_values=labels - 1,
            sequence_length=lengths,
            **arguments,
        )
        grad = tf.constant(np.roll(grad.numpy(), 1, 2))
    with tf.device(DEVICE):
        x = tf.constant(x)
    with tf.device("CPU:0"):
        host = [tf.constant(t) for t in (indices, labels, lengths)]
    with tf.device(DEVICE):
        actual = raw.CTCLossV2(
            inputs=x, labels_indices=host[0], labels_values=host[1], sequence_length=host[2], **arguments
        )
    assert_equal(actual[0], loss, 32)
    assert_equal(actual[1], grad, 64)


def test_too_few_frames(rng) -> None:
    indices, labels = targets()
    with tf.device(DEVICE), pytest.raises(tf.errors.InvalidArgumentError):
        raw.CTCLossV2(
            inputs=tf.constant(rng.standard_normal((9, 3, 5)).astype("f4")),
            labels_indices=indices,
            labels_values=labels,
            sequence_length=np.array([9, 4, 3], "i4"),
        )
