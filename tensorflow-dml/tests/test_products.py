"""Products of matrices, and sums of products."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import COMPLEX, FLOATS, numbers

from compare import DEVICE, compare, refuses


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 7, 1), (64, 33, 65), (2, 0, 3), (0, 2, 2)])
def test_mat_mul(rng, sizes, transposed, dtype: str) -> None:
    m, k, n = sizes
    shapes = [(k, m) if transposed[0] else (m, k), (n, k) if transposed[1] else (k, n)]

    def product(a, b):
        return tf.raw_ops.MatMul(a=a, b=b, transpose_a=transposed[0], transpose_b=transposed[1])

    compare(product, *[numbers(rng, shape, dtype) for shape in shapes], ulps=8)


def test_sizes_that_do_not_match() -> None:
    refuses(lambda a, b: tf.raw_ops.MatMul(a=a, b=b), np.ones((3, 4), "f4"), np.ones((3, 4), "f4"))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("adjoint", [(False, False), (True, True)])
@pytest.mark.parametrize("batches", [((2, 3), (2, 3)), ((3,), (2, 1)), ((), (4,)), ((2, 1), (1, 3)), ((0,), (0,))])
def test_batch_mat_mul(rng, batches, adjoint, dtype: str) -> None:
    shapes = [batches[0] + ((5, 4) if adjoint[0] else (4, 5)), batches[1] + ((6, 5) if adjoint[1] else (5, 6))]
    arrays = [numbers(rng, shape, dtype) for shape in shapes]
    compare(lambda x, y: tf.raw_ops.BatchMatMulV2(x=x, y=y, adj_x=adjoint[0], adj_y=adjoint[1]), *arrays, ulps=8)
    if batches[0] == batches[1]:
        compare(lambda x, y: tf.raw_ops.BatchMatMul(x=x, y=y, adj_x=adjoint[0], adj_y=adjoint[1]), *arrays, ulps=8)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_batch_mat_mul_of_three_dtypes(rng, dtype: str) -> None:
    arrays = [numbers(rng, (2, 3, 4), dtype), numbers(rng, (2, 4, 3), dtype)]
    compare(lambda x, y: tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.as_dtype(dtype)), *arrays, ulps=8)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_of_batch_mat_mul(rng, dtype: str) -> None:
    compare(tf.matmul, numbers(rng, (2, 3, 4), dtype), numbers(rng, (4, 3), dtype), ulps=16, gradient=True)


def test_batches_that_do_not_match() -> None:
    function = lambda x, y: tf.raw_ops.BatchMatMulV2(x=x, y=y)
    refuses(function, np.ones((3, 2, 2), "f4"), np.ones((2, 2, 2), "f4"))
    refuses(function, np.ones((2,), "f4"), np.ones((2, 2), "f4"))
    refuses(function, np.ones((2, 3), "f4"), np.ones((2, 3), "f4"))


EQUATIONS = [
    ("ab,bc->ac", (3, 4), (4, 5)),
    ("abc,acd->abd", (2, 3, 4), (2, 4, 5)),
    ("abcd,aecd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("...ab,...bc->...ac", (2, 3, 4), (4, 5)),
    ("...ab,bc->...ac", (2, 1, 3, 4), (4, 5)),
    ("ab...,b...->a...", (3, 4, 2), (4, 2)),
    ("ab,cd->dcba", (2, 3), (4, 5)),
    ("ab,ab->", (3, 4), (3, 4)),
    ("a,a->a", (5,), (5,)),
    ("ab,c->b", (3, 4), (5,)),
    ("aab,bc->ac", (3, 3, 4), (4, 2)),
    ("ab,b->aa", (3, 4), (4,)),
    ("ab->ba", (3, 4)),
    ("aab->b", (3, 3, 4)),
    ("aa->", (4, 4)),
    ("a->aa", (4,)),
    ("abc->", (2, 3, 4)),
    ("...a->a...", (2, 3, 4)),
    ("ab,bc->ac", (0, 4), (4, 5)),
    ("ab,bc->ac", (3, 0), (0, 5)),
    (",ab->ab", (), (2, 3)),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0])
def test_einsum(rng, case, dtype: str) -> None:
    equation, *shapes = case
    compare(
        lambda *x: tf.raw_ops.Einsum(inputs=x, equation=equation),
        *[numbers(rng, shape, dtype) for shape in shapes],
        ulps=8,
    )


@pytest.mark.parametrize("equation", ["abc,acd->abd", "abcd,aecd->acbe"])
def test_gradients_of_einsum(rng, equation: str) -> None:
    shapes = {"abc,acd->abd": ((2, 3, 4), (2, 4, 5)), "abcd,aecd->acbe": ((2, 3, 4, 5), (2, 6, 4, 5))}[equation]
    compare(
        lambda *x: tf.einsum(equation, *x),
        *[numbers(rng, shape, "float32") for shape in shapes],
        ulps=16,
        gradient=True,
    )


def test_einsum_of_other_sizes() -> None:
    refuses(
        lambda x, y: tf.raw_ops.Einsum(inputs=[x, y], equation="ab,bc->ac"),
        np.ones((2, 3), "f4"),
        np.ones((2, 3), "f4"),
    )
    refuses(lambda x: tf.raw_ops.Einsum(inputs=[x], equation="abc->a"), np.ones((2, 3), "f4"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", *FLOATS])
@pytest.mark.parametrize("shape", [(3,), (2, 4, 3), (0, 3)])
def test_cross(rng, shape, dtype: str) -> None:
    cross = lambda a, b: tf.raw_ops.Cross(a=a, b=b)
    compare(cross, numbers(rng, shape, dtype), numbers(rng, shape, dtype))
    refuses(cross, np.ones((2,), "f4"), np.ones((2,), "f4"))


@pytest.mark.parametrize("activation", ["", "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"])
def test_fused_mat_mul(rng, activation: str) -> None:
    """Against the product, the sum and the function one by one: the CPU's fused operator is for its
    own optimiser.
    """
    a, b, bias = [rng.standard_normal(shape).astype("f4") for shape in [(3, 4), (4, 5), (5,)]]
    with tf.Graph().as_default(), tf.device(DEVICE):
        graph = tf.compat.v1.get_default_graph()
        operands = [tf.constant(x) for x in (a, b, bias)]
        names = ["BiasAdd", activation] if activation else ["BiasAdd"]
        operation = graph.create_op(
            "_FusedMatMul",
            operands,
            [tf.float32],
            name="fused",
            attrs={"T": _type(tf.float32), "num_args": _int(1), "fused_ops": _strings(names)},
        )
        with tf.compat.v1.Session() as session:
            result = session.run(operation.outputs[0])
    expected = a @ b + bias
    function = {
        "": tf.identity,
        "Relu": tf.nn.relu,
        "Relu6": tf.nn.relu6,
        "Elu": tf.nn.elu,
        "Tanh": tf.tanh,
        "LeakyRelu": tf.nn.leaky_relu,
        "Sigmoid": tf.sigmoid,
    }[activation]
    with tf.device("CPU:0"):
        np.testing.assert_allclose(result, function(expected).numpy(), rtol=1e-5, atol=1e-6)


def _attribute(**value):
    from tensorflow.core.framework import attr_value_pb2

    return attr_value_pb2.AttrValue(**value)


def _type(dtype):
    return _attribute(type=dtype.as_datatype_enum)


def _int(value: int):
    return _attribute(i=value)


def _strings(values):
    from tensorflow.core.framework import attr_value_pb2

    return _attribute(list=attr_value_pb2.AttrValue.ListValue(s=[value.encode() for value in values]))
