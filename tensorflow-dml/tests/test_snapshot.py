"""Copies that Grappler makes of products with 1."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from compare import compare


def test_snapshot(rng) -> None:
    compare(lambda x: tf.raw_ops.Snapshot(input=x), rng.standard_normal((3, 4)).astype("f4"), ulps=0)
    compare(lambda x: tf.raw_ops.Snapshot(input=x), np.zeros((0, 4), "f4"), ulps=0)
