"""Products of matrices."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import compare, refuses


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 7, 1), (64, 33, 65), (2, 0, 3), (0, 2, 2)])
def test_mat_mul(rng, sizes, transposed, dtype: str) -> None:
    m, k, n = sizes
    a, b = rng.standard_normal((k, m) if transposed[0] else (m, k)), rng.standard_normal((n, k) if transposed[1] else (k, n))

    def product(a, b):
        return tf.raw_ops.MatMul(a=a, b=b, transpose_a=transposed[0], transpose_b=transposed[1])

    compare(product, tf.cast(a, dtype), tf.cast(b, dtype), ulps=8)


def test_sizes_that_do_not_match() -> None:
    refuses(lambda a, b: tf.raw_ops.MatMul(a=a, b=b), np.ones((3, 4), "f4"), np.ones((3, 4), "f4"))
