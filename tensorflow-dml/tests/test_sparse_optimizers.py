"""Steps of optimizers with a gradient for some rows."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_optimizers import ALL, NUMBERS, OPTIMIZERS, _cast, _start

from compare import DEVICE, assert_equal

SPARSE = (
    *("ProximalGradientDescent", "Momentum", "KerasMomentum", "Adagrad", "AdagradV2", "AdagradDA"),
    *("ProximalAdagrad", "Adadelta", "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlV2"),
)
CASES = [(name, options) for name, options in ALL if name in SPARSE]


def _values(rng, name: str, rows: int, width: int, indices: list[int]) -> tuple[dict, dict]:
    variables, arguments, _ = OPTIMIZERS[name]
    start = {v: _start(rng, v, (rows, width)) * (0.2 if v == "mg" else 1) for v in variables}
    grad = rng.standard_normal((len(indices), width))
    # The sparse operators call every gradient "grad".
    return start, {
        ("grad" if a in ("grad", "delta") else a): (grad if a in ("grad", "delta") else NUMBERS.get(a))
        for a in arguments
    }


def _run(device: str, name: str, start, given, indices, dtype: str, options, index_type=tf.int32):
    with tf.device(device):
        variables = {v: tf.Variable(_cast(x, dtype)) for v, x in start.items()}
        numbers = {a: _cast(x, dtype) for a, x in given.items() if a != "global_step"}
        numbers |= {a: tf.constant(3, tf.int64) for a in given if a == "global_step"}
        handles = {v: variable.handle for v, variable in variables.items()}
        operator = getattr(tf.raw_ops, f"ResourceSparseApply{name}")
        for _ in range(2):
            operator(**handles, **numbers, indices=tf.constant(indices, index_type), **options)
        return [v.read_value() for v in variables.values()]


@pytest.mark.parametrize("indices", [[3, 0, 5], [2, 2, 0, 2, 0], []])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_rows(rng, name: str, options: dict, indices: list[int]) -> None:
    start, given = _values(rng, name, 6, 5, indices)
    actual = _run(DEVICE, name, start, given, indices, "float32", options)
    expected = _run("CPU:0", name, start, given, indices, "float32", options)
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, 8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_and_indices_of_64_bits(rng, dtype: str) -> None:
    indices = [1, 4, 1]
    start, given = _values(rng, "Adagrad", 6, 5, indices)
    start, given = ({n: _cast(_cast(x, dtype), "float64").numpy() for n, x in d.items()} for d in (start, given))
    actual = _run(DEVICE, "Adagrad", start, given, indices, dtype, {}, tf.int64)
    expected = _run("CPU:0", "Adagrad", start, given, indices, "float64", {}, tf.int64)
    # Four steps of one row, each of which is rounded.
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, _cast(b, dtype), 4)


def test_many_rows_of_one_index(rng) -> None:
    indices = list(rng.integers(0, 7, 300))
    start, given = _values(rng, "Momentum", 9, 33, indices)
    actual = _run(DEVICE, "Momentum", start, given, indices, "float32", {})
    expected = _run("CPU:0", "Momentum", start, given, indices, "float32", {})
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, 16)


def test_references(rng) -> None:
    indices = [3, 0, 3]
    start, given = _values(rng, "Adagrad", 5, 4, indices)
    found = []
    for device in ("CPU:0", DEVICE):
        with tf.Graph().as_default(), tf.device(device):
            v, accum = (
                tf.compat.v1.get_variable(n, initializer=_cast(x, "float32"), use_resource=False)
                for n, x in start.items()
            )
            step = tf.raw_ops.SparseApplyAdagrad(
                var=v._ref(), accum=accum._ref(), lr=0.1, grad=_cast(given["grad"], "float32"), indices=indices
            )
            with tf.compat.v1.Session() as session:
                session.run(tf.compat.v1.global_variables_initializer())
                session.run(step.op)
                found.append(session.run([v, accum]))
    for a, b in zip(found[1], found[0], strict=True):
        assert_equal(tf.constant(a), tf.constant(b), 4)


def test_a_value_that_is_read_stays_as_it_was() -> None:
    with tf.device(DEVICE):
        v, accum = (tf.Variable(np.ones((3, 2), "f4")) for _ in range(2))
        before = v.read_value()
        grad = tf.constant(np.ones((1, 2), "f4"))
        tf.raw_ops.ResourceSparseApplyAdagrad(var=v.handle, accum=accum.handle, lr=1.0, grad=grad, indices=[1])
        np.testing.assert_array_equal(before.numpy(), np.ones((3, 2)))
        assert v.numpy()[1, 0] < 1
        np.testing.assert_array_equal(v.numpy()[[0, 2]], np.ones((2, 2)))


@pytest.mark.parametrize(("grad", "indices"), [((2, 4), [0, 1]), ((2, 2), [0]), ((1, 2), [[0]]), ((2,), [0, 1])])
def test_shapes_that_do_not_match(grad, indices) -> None:
    for device in ("CPU:0", DEVICE):
        with tf.device(device):
            v, accum = (tf.Variable(np.ones((3, 2), "f4")) for _ in range(2))
            with pytest.raises(tf.errors.InvalidArgumentError):
                tf.raw_ops.ResourceSparseApplyAdagrad(
                    var=v.handle, accum=accum.handle, lr=1.0, grad=np.ones(grad, "f4"), indices=indices
                )
