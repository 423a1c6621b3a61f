"""Decompositions of matrices."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import numbers

from compare import DEVICE, compare, refuses

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (2, 5, 5), (1, 1), (0, 2, 2), (40, 40)]
RAW = tf.raw_ops


def regular(rng, shape, dtype: str) -> tf.Tensor:
    """Matrices far from singular ones."""
    with tf.device("CPU:0"):
        return numbers(rng, shape, dtype, -1, 1) + tf.cast(3 * shape[-1] ** 0.5 * np.eye(shape[-1]), dtype)


def positive(rng, shape, dtype: str) -> tf.Tensor:
    with tf.device("CPU:0"):
        a = numbers(rng, shape, dtype, -1, 1)
        return tf.matmul(a, a, adjoint_b=True) + tf.cast(np.eye(shape[-1]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky(rng, shape, dtype: str) -> None:
    compare(lambda a: RAW.Cholesky(input=a), positive(rng, shape, dtype), ulps=64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_inverse_and_solution(rng, shape, adjoint: bool, dtype: str) -> None:
    a, b = regular(rng, shape, dtype), numbers(rng, (*shape[:-1], 2), dtype)
    compare(lambda a: RAW.MatrixInverse(input=a, adjoint=adjoint), a, ulps=64)
    compare(lambda a, b: RAW.MatrixSolve(matrix=a, rhs=b, adjoint=adjoint), a, b, ulps=64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    "shapes", [((3, 3), (3, 2)), ((2, 1, 4, 4), (3, 4, 2)), ((40, 40), (40, 9)), ((0, 2, 2), (0, 2, 1))]
)
def test_triangular_solution(rng, shapes, lower: bool, adjoint: bool, dtype: str) -> None:
    a, b = regular(rng, shapes[0], dtype), numbers(rng, shapes[1], dtype)
    compare(lambda a, b: RAW.MatrixTriangularSolve(matrix=a, rhs=b, lower=lower, adjoint=adjoint), a, b, ulps=64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_determinants(rng, shape, dtype: str) -> None:
    a = regular(rng, shape, dtype) / (4.0 * shape[-1] ** 0.5)
    compare(lambda a: RAW.MatrixDeterminant(input=a), a, ulps=256)
    compare(lambda a: RAW.LogMatrixDeterminant(input=a), a, ulps=256)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(rng, shape, index: str, dtype: str) -> None:
    a = numbers(rng, shape, dtype)
    if a.dtype.is_floating:
        compare(lambda a: RAW.Lu(input=a, output_idx_type=index), a, ulps=256)
        return
    # A complex pivot is the largest by the sum of its parts, as in LAPACK; the CPU takes the
    # magnitude.
    with tf.device(DEVICE):
        lu, p = RAW.Lu(input=a, output_idx_type=index)
    lu, p = lu.numpy(), p.numpy()
    product = (np.tril(lu, -1) + np.eye(shape[-1])) @ np.triu(lu)
    np.testing.assert_allclose(product, np.take_along_axis(a.numpy(), p[..., None].astype("i8"), -2), atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (0, 3, 2)])
def test_qr(rng, shape, full: bool, dtype: str) -> None:
    compare(lambda a: RAW.Qr(input=a, full_matrices=full), numbers(rng, shape, dtype), ulps=64)


def _product(*factors):
    result = factors[0]
    for factor in factors[1:]:
        result = result @ factor
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5)])
def test_svd(rng, shape, full: bool, dtype: str) -> None:
    a = numbers(rng, shape, dtype)
    compare(lambda a: RAW.Svd(input=a, compute_uv=False)[0], a, ulps=64)
    with tf.device(DEVICE):
        s, u, v = [x.numpy() for x in RAW.Svd(input=a, full_matrices=full)]
    k = min(shape[-2:])
    rebuilt = _product(u[..., :k] * s[..., None, :].astype(u.dtype), np.swapaxes(v[..., :k], -1, -2).conj())
    np.testing.assert_allclose(rebuilt, a.numpy(), atol=1e-4)
    assert u.shape[-1] == (shape[-2] if full else k) and v.shape[-1] == (shape[-1] if full else k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (0, 2, 2), (40, 40)])
def test_eigenvalues(rng, shape, dtype: str) -> None:
    a = positive(rng, shape, dtype)
    compare(lambda a: RAW.SelfAdjointEigV2(input=a, compute_v=False)[0], a, ulps=64)
    with tf.device(DEVICE):
        e, v = [x.numpy() for x in RAW.SelfAdjointEigV2(input=a)]
    rebuilt = _product(v * e[..., None, :], np.swapaxes(v, -1, -2).conj())
    np.testing.assert_allclose(rebuilt, a.numpy(), rtol=1e-3, atol=1e-3)


def test_matrices_without_a_result() -> None:
    zeros = np.zeros((2, 2), "f4")
    compare(lambda a: RAW.Cholesky(input=a), np.stack([np.eye(2, dtype="f4"), -np.eye(2, dtype="f4")]))
    refuses(lambda a: RAW.MatrixInverse(input=a), zeros)
    refuses(lambda a: RAW.MatrixSolve(matrix=a, rhs=a), zeros)
    refuses(lambda a: RAW.Cholesky(input=a), np.ones((2, 3), "f4"))
    refuses(lambda a: RAW.MatrixInverse(input=a), np.ones((2, 3), "f4"))
    refuses(lambda a: RAW.MatrixDeterminant(input=a), np.ones((3,), "f4"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients(rng, dtype: str) -> None:
    a, b = regular(rng, (3, 3), dtype), numbers(rng, (3, 2), dtype)
    compare(tf.linalg.inv, a, ulps=256, gradient=True)
    compare(tf.linalg.solve, a, b, ulps=256, gradient=True)
    compare(tf.linalg.det, a, ulps=256, gradient=True)
    compare(lambda a: tf.linalg.triangular_solve(a, b), a, ulps=256, gradient=True)
