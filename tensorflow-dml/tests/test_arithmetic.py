"""Elementwise functions."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import compare, refuses

FLOATS = ["float32", "float16", "bfloat16", "float64"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((2, 1, 5), (4, 1)), ((), (3,)), ((0, 4), (1, 4))])
@pytest.mark.parametrize("name", ["AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"])
def test_binary(rng, name: str, shapes, dtype: str) -> None:
    function = getattr(tf.raw_ops, name)
    arrays = [tf.cast(rng.standard_normal(shape) + 2, dtype) for shape in shapes]
    compare(lambda x, y: function(x=x, y=y), *arrays, ulps=1)


@pytest.mark.parametrize("name", ["AddV2", "Sub", "Mul"])
def test_shapes_that_do_not_broadcast(name: str) -> None:
    function = getattr(tf.raw_ops, name)
    refuses(lambda x, y: function(x=x, y=y), np.ones((3, 4), "f4"), np.ones((4, 3), "f4"))
