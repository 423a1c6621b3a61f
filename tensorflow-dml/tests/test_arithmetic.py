"""Arithmetic: elementwise, rounded, of many tensors."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, compare, refuses

FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int64", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]


def numbers(rng, shape, dtype: str, low: float = -4.0, high: float = 4.0) -> tf.Tensor:
    """Random numbers of any dtype; whole ones of integers."""
    kind = tf.as_dtype(dtype)
    with tf.device("CPU:0"):
        if kind.is_complex:
            return tf.cast(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape), kind)
        if kind.is_floating:
            return tf.cast(rng.uniform(low, high, shape), kind)
        low = max(low, 0) if kind.is_unsigned else low
        return tf.cast(rng.integers(int(low), int(high) + 1, shape), kind)


def binary(name: str):
    function = getattr(tf.raw_ops, name)
    return lambda x, y: function(x=x, y=y)


def unary(name: str):
    function = getattr(tf.raw_ops, name)
    argument = next(iter(function.__signature__.parameters))
    return lambda x: function(**{argument: x})


SHAPES = [((3, 4), (3, 4)), ((2, 1, 5), (4, 1)), ((), (3,)), ((0, 4), (1, 4))]


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", ["Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"])
def test_binary(rng, name: str, shapes, dtype: str) -> None:
    if dtype in COMPLEX and name in ("Maximum", "Minimum"):
        pytest.skip("complex numbers have no order")
    arrays = [numbers(rng, shape, dtype, 0.5) for shape in shapes]
    compare(binary(name), *arrays, ulps=2)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "name", ["AddV2", "Sub", "Mul", "Maximum", "Minimum", "Div", "TruncateDiv", "FloorDiv", "FloorMod"]
)
def test_binary_of_integers(rng, name: str, dtype: str) -> None:
    x, y = numbers(rng, (3, 1, 7), dtype, -100, 100), numbers(rng, (5, 1), dtype, 1, 9)
    signs = tf.cast([[1], [-1], [1], [-1], [1]], dtype) if not tf.as_dtype(dtype).is_unsigned else 1
    compare(binary(name), x, y * signs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["Div", "FloorDiv", "FloorMod", "TruncateMod", "Mod"])
def test_division_of_floats(rng, name: str, dtype: str) -> None:
    if name in ("TruncateMod", "Mod") and dtype in ("float16", "bfloat16"):
        pytest.skip("the CPU has no kernel")
    x = numbers(rng, (6, 5), dtype, -9, 9)
    y = tf.cast([2.5, -2.5, 0.75, -0.125, 3.0], dtype)
    compare(binary(name), x, y, ulps=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["FloorDiv", "FloorMod", "RealDiv", "DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py"]
)
def test_special_values(name: str, dtype: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan], dtype)
    compare(binary(name), special[:, None], special[None, :], ulps=2)


@pytest.mark.parametrize("name", ["Div", "FloorDiv", "FloorMod", "TruncateDiv"])
def test_integers_are_not_divided_by_zero(name: str) -> None:
    def divided(x: tf.Tensor, y: tf.Tensor) -> np.ndarray:
        return binary(name)(x, y).numpy()

    arrays = np.array([1, 2], "i8"), np.array([1, 0], "i8")
    if name != "TruncateDiv":
        refuses(divided, *arrays)
        return
    # The CPU calls this one an internal error.
    with tf.device(DEVICE), pytest.raises(tf.errors.InvalidArgumentError):
        divided(*map(tf.constant, arrays))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", ["DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py"])
def test_results_in_place_of_nan(rng, name: str, dtype: str) -> None:
    if name == "MulNoNan" and dtype == "bfloat16":
        pytest.skip("the CPU has no kernel")
    x, y = numbers(rng, (4, 5), dtype, 0.5), numbers(rng, (4, 5), dtype, 0.5)
    mask = tf.cast(rng.integers(0, 2, (4, 5)), dtype)
    compare(binary(name), x * mask if name[0] == "X" else x, y if name[0] == "X" else y * mask, ulps=8)
    compare(binary(name), x, y, ulps=8, gradient=True)


@pytest.mark.parametrize("name", ["AddV2", "Sub", "Mul", "Xdivy", "Less", "Pow", "SquaredDifference"])
def test_shapes_that_do_not_broadcast(name: str) -> None:
    refuses(binary(name), np.ones((3, 4), "f4"), np.ones((4, 3), "f4"))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + ["int64", "int16", "int8"])
@pytest.mark.parametrize("name", ["Neg", "Abs", "Sign", "Square"])
def test_signs(rng, name: str, dtype: str) -> None:
    if name == "Abs" and dtype in COMPLEX:
        pytest.skip("ComplexAbs")
    x = numbers(rng, (3, 5), dtype)
    x = tf.concat([x, x - x], 0)
    compare(unary(name), x, ulps=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["Floor", "Ceil", "Round", "Rint"])
def test_rounding(name: str, dtype: str) -> None:
    if name == "Rint" and dtype in ("bfloat16", "float16"):
        pytest.skip("the CPU has no kernel")
    compare(unary(name), tf.cast([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.25, -3.75, np.inf, np.nan, 0.0], dtype), ulps=0)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rounding_of_integers(rng, dtype: str) -> None:
    compare(unary("Round"), numbers(rng, (7,), dtype, -100, 100))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", ["Reciprocal", "Inv", "Sqrt", "Rsqrt", "Square"])
def test_powers(rng, name: str, dtype: str) -> None:
    compare(unary(name), numbers(rng, (3, 5), dtype, 0.5), ulps=8, gradient=True)


def test_reciprocals_of_integers() -> None:
    # The CPU has no kernel.
    with tf.device(DEVICE):
        result = tf.raw_ops.Reciprocal(x=tf.constant([1, -1, 2, -3], "int64"))
    np.testing.assert_array_equal(result.numpy(), [1, -1, 0, 0])


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + ["int64"])
def test_squared_difference(rng, dtype: str) -> None:
    arrays = [numbers(rng, shape, dtype) for shape in [(3, 4), (4,)]]
    compare(binary("SquaredDifference"), *arrays, ulps=4, gradient=tf.as_dtype(dtype).is_floating)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + ["int64", "int16", "int8"])
def test_pow(rng, dtype: str) -> None:
    x, y = numbers(rng, (4, 5), dtype, 0.5), numbers(rng, (5,), dtype, 0, 3)
    compare(binary("Pow"), x, y, ulps=32 if dtype in COMPLEX else 8, gradient=dtype in ("float32", "float64"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pow_of_special_values(dtype: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, np.inf, -np.inf, np.nan], dtype)
    compare(binary("Pow"), special[:, None], special[None, :], ulps=4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_atan2(rng, dtype: str) -> None:
    compare(
        binary("Atan2"),
        numbers(rng, (4, 5), dtype),
        numbers(rng, (5,), dtype),
        ulps=8,
        gradient=dtype in ("float32", "float64"),
    )


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + ["int64", "uint8"])
@pytest.mark.parametrize("count", [1, 2, 5, 7, 8, 20])
def test_add_n(rng, count: int, dtype: str) -> None:
    arrays = [numbers(rng, (3, 5), dtype) for _ in range(count)]
    compare(lambda *x: tf.raw_ops.AddN(inputs=x), *arrays, ulps=8)


def test_add_n_of_scalars_and_of_nothing() -> None:
    add = lambda *x: tf.raw_ops.AddN(inputs=x)
    compare(add, np.float32(2), np.float32(3))
    compare(add, np.ones((0, 3), "f4"), np.ones((0, 3), "f4"))
    refuses(add, np.ones((2, 3), "f4"), np.ones((3, 2), "f4"))
