"""Floats that are rounded to those which integers of few bits represent."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal, compare, refuses

raw = tf.raw_ops
RANGES = [(-6.0, 6.0), (0.0, 1.0), (0.3, 2.0), (-3.0, -1.0), (-0.1, 12.7), (0.0, 0.0)]


@pytest.mark.parametrize("narrow_range", [False, True])
@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize("bounds", RANGES)
def test_fake_quantization(rng, bounds, bits: int, narrow_range: bool) -> None:
    arguments = {"num_bits": bits, "narrow_range": narrow_range}
    x, g = rng.standard_normal((4, 33)).astype("f4") * 4, rng.integers(-9, 9, (4, 33)).astype("f4")
    low, high = map(np.float32, bounds)
    if low < high:
        # Levels are multiples of their distance. Where a number lies between two, a last bit
        # decides for one of them.
        place = x.astype("f8") * ((1 << bits) - 1 - narrow_range) / (high - low) % 1
        x[np.abs(place - 0.5) < 0.02] = 0
    vars_ = {"min": low, "max": high}
    compare(lambda x: raw.FakeQuantWithMinMaxVars(inputs=x, **vars_, **arguments), x, ulps=2)
    compare(lambda g, x: raw.FakeQuantWithMinMaxVarsGradient(gradients=g, inputs=x, **vars_, **arguments), g, x, ulps=8)
    if low < high:
        args = {"min": bounds[0], "max": bounds[1]}
        compare(lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x, **args, **arguments), x, ulps=2)
        compare(
            lambda g, x: raw.FakeQuantWithMinMaxArgsGradient(gradients=g, inputs=x, **args, **arguments), g, x, ulps=0
        )


def test_fake_quantization_of_channels(rng) -> None:
    low, high = (np.array(pair, "f4") for pair in zip(*RANGES, strict=True))
    x, g = rng.standard_normal((3, 7, 6)).astype("f4") * 4, rng.standard_normal((3, 7, 6)).astype("f4")
    compare(lambda x: raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=low, max=high), x, ulps=2)
    compare(
        lambda g, x: raw.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=g, inputs=x, min=low, max=high),
        g,
        x,
        ulps=8,
    )
    refuses(lambda x: raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=low[:2], max=high[:2]), x)


def of_channels(x: np.ndarray, arguments: dict) -> None:
    """Ranges given for slices, which the CPU refuses: each slice by itself."""
    low, high = arguments["input_min"], arguments["input_max"]
    with tf.device("CPU:0"):
        parts = [
            raw.QuantizeAndDequantizeV2(
                input=x[:, i], **{**arguments, "axis": -1, "input_min": low[i], "input_max": high[i]}
            )
            for i in range(x.shape[1])
        ]
        expected = tf.stack(parts, 1)
    with tf.device(DEVICE):
        actual = raw.QuantizeAndDequantizeV2(input=tf.constant(x), **arguments)
    assert_equal(actual, expected, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("range_given", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_quantize_and_dequantize(rng, signed: bool, range_given: bool, axis: int, dtype: str) -> None:
    x = (rng.standard_normal((4, 3, 5)) * 3).astype(dtype)
    count = () if axis < 0 else (3,)
    low, high = (np.asarray(rng.random(count) + n, dtype) for n in (-2, 2))
    arguments = {"input_min": low, "input_max": high, "signed_input": signed, "range_given": range_given, "axis": axis}
    for mode in ("HALF_TO_EVEN", "HALF_UP"):
        for narrow in (False, True):
            more = {"round_mode": mode, "narrow_range": narrow, **arguments}
            if axis >= 0 and range_given:
                of_channels(x, more)
                continue
            compare(lambda x: raw.QuantizeAndDequantizeV2(input=x, **more), x, ulps=2)
            compare(lambda x: raw.QuantizeAndDequantizeV4(input=x, **more), x, ulps=2)
    if axis < 0 or not range_given:
        compare(lambda x: raw.QuantizeAndDequantizeV3(input=x, num_bits=6, **arguments), x, ulps=2)
    g = rng.standard_normal(x.shape).astype(dtype)
    compare(
        lambda g, x: raw.QuantizeAndDequantizeV4Grad(gradients=g, input=x, input_min=low, input_max=high, axis=axis),
        g,
        x,
        ulps=0,
    )
