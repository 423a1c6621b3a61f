"""Transcendental and special functions."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from test_arithmetic import COMPLEX, FLOATS, numbers, unary

from compare import compare, refuses

EVERYWHERE = ["Exp", "Expm1", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh"]
RIGHT = ["Log", "Log1p", "Acosh"]
BETWEEN = ["Asin", "Acos", "Atanh"]


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", EVERYWHERE + RIGHT + BETWEEN)
def test_transcendental(rng, name: str, dtype: str) -> None:
    low, high = (1.1, 4) if name in RIGHT else (-0.9, 0.9) if name in BETWEEN else (-3, 3)
    x = numbers(rng, (3, 5), dtype, low, high)
    # NumPy's complex functions are the CPU's, with a few units in the last place of their own.
    compare(unary(name), x, ulps=16 if dtype in COMPLEX else 4)
    compare(unary(name), x, ulps=64, gradient=dtype in ("float32", "float64"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EVERYWHERE + RIGHT + BETWEEN + ["Erf", "Erfc", "Sqrt", "Rsqrt", "Lgamma", "Sigmoid"])
def test_special_values(name: str, dtype: str) -> None:
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]
    if name in ("Sin", "Cos", "Tan"):
        values = values[2:]
    if (name, dtype) == ("Erf", "float64"):
        values = values[2:]  # The CPU gives NaN of infinity.
    compare(unary(name), np.array(values, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["Erf", "Erfc", "Lgamma", "Digamma"])
def test_special(rng, name: str, dtype: str) -> None:
    if name in ("Lgamma", "Digamma") and dtype == "bfloat16":
        pytest.skip("the CPU has no kernel")
    compare(
        unary(name),
        numbers(rng, (3, 5), dtype, 0.2, 3),
        ulps=16,
        gradient=dtype in ("float32", "float64") and name != "Digamma",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Erfinv", "Ndtri"])
def test_inverses_of_distributions(rng, name: str, dtype: str) -> None:
    low = -0.95 if name == "Erfinv" else 0.05
    compare(unary(name), numbers(rng, (3, 5), dtype, low, 0.95), ulps=64, gradient=True)
    compare(unary(name), np.array([0.0, 1.0, -1.0, 2.0, np.nan], dtype), ulps=8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Zeta", "Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad"])
def test_of_two(rng, name: str, dtype: str) -> None:
    function = getattr(tf.raw_ops, name)
    first, second = list(function.__signature__.parameters)[:2]
    low = 1.5 if name == "Zeta" else 0.3
    a, b = numbers(rng, (4, 5), dtype, low, 5), numbers(rng, (5,), dtype, 0.3, 5)
    # TensorFlow's float32 algorithms are good to about 1e-6.
    compare(lambda x, y: function(**{first: x, second: y}), a, b, ulps=64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma(rng, dtype: str) -> None:
    n = tf.cast([0.0, 1.0, 2.0, 5.0, -1.0, 1.5], dtype)
    compare(lambda n, x: tf.raw_ops.Polygamma(a=n, x=x), n, numbers(rng, (4, 1), dtype, 0.5, 5), ulps=64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Igamma", "Igammac"])
def test_gradients_of_incomplete_gamma_functions(rng, name: str, dtype: str) -> None:
    compare(
        lambda a, x: getattr(tf.raw_ops, name)(a=a, x=x),
        numbers(rng, (4, 5), dtype, 0.5, 5),
        numbers(rng, (4, 5), dtype, 0.5, 5),
        ulps=256,
        gradient=True,
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["I0", "I0e", "I1", "I1e", "J0", "J1", "K0", "K0e", "K1", "K1e", "Y0", "Y1"])
def test_bessel(rng, name: str, dtype: str) -> None:
    compare(unary("Bessel" + name), numbers(rng, (3, 5), dtype, 0.2, 8), ulps=32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_next_after(rng, dtype: str) -> None:
    compare(
        lambda x, y: tf.raw_ops.NextAfter(x1=x, x2=y), numbers(rng, (4, 5), dtype), numbers(rng, (5,), dtype), ulps=0
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_betainc(rng, dtype: str) -> None:
    betainc = lambda a, b, x: tf.raw_ops.Betainc(a=a, b=b, x=x)
    a, b = numbers(rng, (4, 5), dtype, 0.2, 9), numbers(rng, (4, 5), dtype, 0.2, 9)
    x = numbers(rng, (4, 5), dtype, 0.01, 0.99)
    compare(betainc, a, b, x, ulps=64)
    compare(betainc, a, tf.cast(2, dtype), x, ulps=64)
    compare(betainc, a[:1, :3], b[:1, :3], tf.cast([[0.0, 1.0, 2.0]], dtype), ulps=64)
    refuses(betainc, a, b[:2], x)
