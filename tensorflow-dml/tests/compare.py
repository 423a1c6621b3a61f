"""Comparisons of the device with TensorFlow's CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

DEVICE = "GPU:0"

# Units of the last place, relative to the largest element of a result.
_EPSILON = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "float32": 2**-23,
    "float64": 2**-52,
    "complex64": 2**-23,
    "complex128": 2**-52,
}


def _tensors(device: str, arrays: Sequence[Any]) -> list[tf.Tensor]:
    with tf.device(device):
        return [tf.constant(a) if isinstance(a, np.ndarray) else tf.identity(a) for a in arrays]


def _run(device: str, function: Callable[..., Any], arrays: Sequence[Any], gradient: bool) -> list[tf.Tensor]:
    tensors = _tensors(device, arrays)
    with tf.device(device), tf.GradientTape() as tape:
        watched = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        for t in watched:
            tape.watch(t)
        results = [r for r in tf.nest.flatten(function(*tensors)) if r is not None]
    with tf.device(device):
        if not gradient:
            return results
        targets = [r for r in results if r.dtype.is_floating or r.dtype.is_complex]
        # Weights that differ from element to element, the same on both devices.
        weights = [
            tf.constant(
                np.cos(np.arange(max(r.shape.num_elements(), 1)))[: r.shape.num_elements()]
                .reshape(r.shape)
                .astype("float32")
            )
            for r in targets
        ]
        weights = [tf.cast(w, r.dtype) for w, r in zip(weights, targets, strict=True)]
        gradients = tape.gradient(targets, watched, output_gradients=weights)
        return results + [tf.convert_to_tensor(g) for g in gradients if g is not None]


def assert_equal(actual: tf.Tensor, expected: tf.Tensor, ulps: float) -> None:
    """Equal shapes, dtypes and elements: integers exactly, floats within `ulps` of the largest
    element.
    """
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    epsilon = _EPSILON.get(expected.dtype.name)
    a, b = actual.numpy(), expected.numpy()
    if epsilon is None:
        np.testing.assert_array_equal(a, b)
        return
    wide = np.complex128 if expected.dtype.is_complex else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite], b[~finite])
    scale = float(np.abs(b[finite]).max(initial=0.0))
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    limit = ulps * epsilon * max(scale, float(np.finfo(np.float32).tiny))
    assert worst <= limit, f"{worst} apart, {limit} allowed ({worst / max(scale, 1e-300) / epsilon:.1f} ulps)"


def compare(function: Callable[..., Any], *arrays: Any, ulps: float = 4, gradient: bool = False) -> None:
    """A function of tensors gives on the device what it gives on the CPU; with `gradient`, its
    gradients too.

    The arrays are NumPy's, or tensors for dtypes that NumPy lacks. On the device every operator
    must have a kernel.
    """
    actual = _run(DEVICE, function, arrays, gradient)
    expected = _run("CPU:0", function, arrays, gradient)
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert_equal(a, b, ulps)


def refuses(function: Callable[..., Any], *arrays: Any) -> None:
    """A function raises the same type of error on the device as on the CPU."""
    raised = []
    for device in ("CPU:0", DEVICE):
        try:
            _run(device, function, arrays, False)
            raised.append(None)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raised.append(type(error))
    assert raised[0] is not None and raised[0] == raised[1], raised
