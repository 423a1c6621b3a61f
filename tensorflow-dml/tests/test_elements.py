"""Comparisons, bits, choices, conversions, complex numbers, activations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import COMPLEX, FLOATS, INTEGERS, binary, numbers, unary

from compare import DEVICE, compare, refuses

RAW = tf.raw_ops
NOT_INT32 = [*FLOATS, *INTEGERS, "bool", *COMPLEX]


def any_of(rng, shape, dtype: str) -> tf.Tensor:
    return tf.constant(rng.integers(0, 2, shape) > 0) if dtype == "bool" else numbers(rng, shape, dtype)


@pytest.mark.parametrize("dtype", NOT_INT32)
@pytest.mark.parametrize("name", ["Equal", "NotEqual"])
def test_equality(rng, name: str, dtype: str) -> None:
    x = any_of(rng, (3, 4), dtype)
    with tf.device("CPU:0"):
        y = tf.concat([x[:2], any_of(rng, (1, 4), dtype)], 0)
    compare(binary(name), x, y)
    compare(binary(name), x, y[:1])


@pytest.mark.parametrize("name", ["Equal", "NotEqual"])
def test_equality_of_other_shapes(name: str) -> None:
    function = getattr(RAW, name)
    x, y = np.ones((2, 3), "f4"), np.ones((3, 2), "f4")
    compare(lambda x, y: function(x=x, y=y, incompatible_shape_error=False), x, y)
    refuses(lambda x, y: function(x=x, y=y), x, y)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", ["Less", "LessEqual", "Greater", "GreaterEqual"])
def test_order(rng, name: str, dtype: str) -> None:
    x = numbers(rng, (3, 4), dtype, -3, 3)
    compare(binary(name), x, x[::-1])


@pytest.mark.parametrize("name", ["Less", "GreaterEqual", "Equal", "NotEqual", "Maximum", "Minimum"])
def test_order_of_special_values(name: str) -> None:
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], "f4")
    compare(binary(name), special[:, None], special[None, :])


def test_approximate_equality() -> None:
    x, y = np.array([1.0, 2.0, np.nan, np.inf], "f4"), np.array([1.005, 2.5, np.nan, np.inf], "f4")
    compare(lambda x, y: RAW.ApproximateEqual(x=x, y=y, tolerance=0.01), x, y)
    refuses(lambda x, y: RAW.ApproximateEqual(x=x, y=y), np.ones((2, 3), "f4"), np.ones((3,), "f4"))


def test_logic() -> None:
    x, y = np.array([[True], [False]]), np.array([True, False])
    compare(binary("LogicalAnd"), x, y)
    compare(binary("LogicalOr"), x, y)
    compare(unary("LogicalNot"), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["IsNan", "IsInf", "IsFinite"])
def test_kinds_of_floats(name: str, dtype: str) -> None:
    with tf.device("CPU:0"):
        x = tf.cast([0.0, 1.0, np.inf, -np.inf, np.nan], dtype)
    compare(unary(name), x)


@pytest.mark.parametrize("dtype", ["int32", *INTEGERS])
def test_bits(rng, dtype: str) -> None:
    info = np.iinfo(dtype)
    x, y = [rng.integers(info.min, info.max, (3, 4), dtype, endpoint=True) for _ in range(2)]
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        compare(binary(name), x, y)
    compare(unary("Invert"), x)
    if dtype not in ("uint32", "uint64"):
        compare(unary("PopulationCount"), x)
    distances = rng.integers(0, 8 * x.dtype.itemsize, (4,)).astype(dtype)
    compare(binary("LeftShift"), x, distances)
    compare(binary("RightShift"), x, distances)


@pytest.mark.parametrize("dtype", ["int32", *NOT_INT32])
def test_select(rng, dtype: str) -> None:
    condition = rng.integers(0, 2, (3, 4)) > 0
    x, y = any_of(rng, (3, 4), dtype), any_of(rng, (3, 4), dtype)
    select = lambda c, x, y: RAW.Select(condition=c, x=x, y=y)
    for c in (condition, condition[:, 0], condition[0, 0]):
        compare(select, c, x, y)
    select_v2 = lambda c, t, e: RAW.SelectV2(condition=c, t=t, e=e)
    compare(select_v2, condition, x, y)
    compare(select_v2, condition[:, :1], x[0], y[:, 1:2])
    compare(select_v2, condition[0, 0], x, y[0, 0])
    compare(select_v2, condition[:0], x[:0], y[:0])


def test_select_of_other_shapes() -> None:
    x = np.ones((3, 4), "f4")
    select = lambda c, x, y: RAW.Select(condition=c, x=x, y=y)
    refuses(select, np.ones((4,), bool), x, x)
    refuses(select, np.ones((3,), bool), x, x[:2])
    refuses(lambda c, t, e: RAW.SelectV2(condition=c, t=t, e=e), np.ones((2,), bool), x, x)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int16", "int8", "uint8", "uint16"])
def test_clip(rng, dtype: str) -> None:
    clip = lambda t, low, high: RAW.ClipByValue(t=t, clip_value_min=low, clip_value_max=high)
    t = numbers(rng, (3, 4), dtype, -9, 9)
    low, high = tf.cast(1, dtype), tf.cast(4, dtype)
    compare(clip, t, low, high)
    compare(clip, t, tf.ones_like(t), 3 * tf.ones_like(t))
    refuses(clip, t, low, tf.ones_like(t)[0])


CAST = ["int32", *NOT_INT32]


@pytest.mark.parametrize("target", CAST)
@pytest.mark.parametrize("source", CAST)
def test_cast(rng, source: str, target: str) -> None:
    x = any_of(rng, (3, 4), source)
    kinds = tf.as_dtype(source), tf.as_dtype(target)
    if kinds[1].is_unsigned and not kinds[0].is_integer and source != "bool":
        with tf.device("CPU:0"):
            x = tf.cast(tf.abs(x), source)  # Others are undefined.
    compare(lambda x: RAW.Cast(x=x, DstT=target), x, ulps=0)


@pytest.mark.parametrize(
    "pair",
    [
        ("float32", "float16"),
        ("float32", "bfloat16"),
        ("float64", "float32"),
        ("float64", "float16"),
        ("float64", "bfloat16"),
        ("float16", "bfloat16"),
        ("complex128", "complex64"),
    ],
)
def test_truncating_cast(rng, pair) -> None:
    compare(lambda x: RAW.Cast(x=x, DstT=pair[1], Truncate=True), numbers(rng, (20,), pair[0]), ulps=0)


def test_special_values_of_casts() -> None:
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-20, 65520.0, 3e38], "f4")
    for target in ("float16", "bfloat16", "float64", "bool"):
        compare(lambda x, target=target: RAW.Cast(x=x, DstT=target), special, ulps=0)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(rng, dtype: str) -> None:
    z = numbers(rng, (3, 4), dtype)
    real = z.dtype.real_dtype
    for name in ("Real", "Imag", "Angle"):
        compare(lambda z, name=name: getattr(RAW, name)(input=z, Tout=real), z)
    compare(lambda z: RAW.ComplexAbs(x=z, Tout=real), z)
    compare(lambda z: RAW.Conj(input=z), z)
    x = numbers(rng, (3, 4), real.name)
    compare(lambda x, y: RAW.Complex(real=x, imag=y, Tout=z.dtype), x, x[0])


def test_gradients_of_complex_numbers(rng) -> None:
    z = numbers(rng, (3, 4), "complex64")
    for function in (tf.math.real, tf.math.imag, tf.math.conj, tf.math.abs, tf.math.angle):
        compare(function, z, ulps=8, gradient=True)


ACTIVATIONS = ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "Sigmoid", "LeakyRelu"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(rng, name: str, dtype: str) -> None:
    x = numbers(rng, (3, 40), dtype, -9, 9)
    compare(unary(name), x, gradient=True)


@pytest.mark.parametrize("name", ["Elu", "Selu", "Softplus", "Softsign", "Sigmoid"])
def test_activations_of_special_values(name: str) -> None:
    compare(unary(name), np.array([np.inf, -np.inf, np.nan, 0.0, 1e-30, 200.0, -200.0], "f4"))


GRADIENTS = {
    "ReluGrad": "gradients",
    "Relu6Grad": "gradients",
    "LeakyReluGrad": "gradients",
    "EluGrad": "gradients",
    "SeluGrad": "gradients",
    "SoftplusGrad": "gradients",
    "SoftsignGrad": "gradients",
    "SigmoidGrad": "y",
    "TanhGrad": "y",
    "InvGrad": "y",
    "ReciprocalGrad": "y",
    "SqrtGrad": "y",
    "RsqrtGrad": "y",
}


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(rng, name: str, dtype: str) -> None:
    first = GRADIENTS[name]
    if dtype in COMPLEX and first == "gradients":
        pytest.skip("of real numbers")
    second = "dy" if first == "y" else "outputs" if name in ("EluGrad", "SeluGrad") else "features"
    x, y = numbers(rng, (3, 4), dtype), numbers(rng, (3, 4), dtype)
    compare(lambda x, y: getattr(RAW, name)(**{first: x, second: y}), x, y, ulps=8)
    refuses(lambda x, y: getattr(RAW, name)(**{first: x, second: y}), x, y[:2])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_relu_of_integers(rng, dtype: str) -> None:
    compare(unary("Relu"), numbers(rng, (3, 4), dtype, -9, 9))
    compare(unary("Relu6"), numbers(rng, (3, 4), dtype, -9, 9))


def test_a_nan_passes_relu() -> None:
    with tf.device(DEVICE):
        assert np.isnan(tf.nn.relu([np.nan]).numpy()).all() and np.isnan(tf.nn.relu6([np.nan]).numpy()).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_that_are_checked(rng, dtype: str) -> None:
    x = numbers(rng, (3, 4), dtype)
    for check in (RAW.CheckNumerics, RAW.CheckNumericsV2):
        compare(lambda x, c=check: c(tensor=x, message="here"), x)
        compare(lambda x, c=check: c(tensor=x, message="here"), tf.zeros((0, 2), dtype))
        for bad in ([np.nan], [np.inf], [-np.inf], [np.inf, np.nan], [-np.inf, np.inf, np.nan]):
            with tf.device("CPU:0"):
                t = tf.concat([x[0], tf.constant(bad, dtype)], 0)
            messages = []
            for device in ("CPU:0", DEVICE):
                with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError) as raised:
                    check(tensor=tf.identity(t), message="here")
                messages.append(raised.value.message.split(" [Op:")[0].split("}} ")[-1])
            assert messages[0] == messages[1]
