"""Batch normalisation, its gradients, and the forms that graphs are rewritten to."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context, execute

from compare import DEVICE, assert_equal, compare, refuses

raw = tf.raw_ops
ULPS = {"float32": 32, "float16": 4, "bfloat16": 4}


def inputs(rng, shape, dtype: str, data_format: str = "NHWC"):
    channels = shape[1] if data_format == "NCHW" else shape[-1]
    x = tf.cast(rng.standard_normal(shape) * 2 + 3, dtype)
    vectors = [rng.standard_normal(channels).astype("f4") for _ in range(3)]
    return [x, *vectors, np.abs(rng.standard_normal(channels)).astype("f4") + 0.5]


@pytest.mark.parametrize("share", [1.0, 0.25])
@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (1, 1, 1, 3), (2, 7, 1, 1)])
def test_forward(rng, shape, dtype: str, is_training: bool, share: float) -> None:
    def normalized(x, scale, offset, mean, variance):
        # The third reserved tensor is not used by anybody.
        return raw.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            epsilon=1e-3,
            is_training=is_training,
            exponential_avg_factor=share,
        )[:5]

    if is_training and share == 1.0 and shape != (4, 3, 5, 6):
        pytest.skip("one case is enough")
    tensors = inputs(rng, shape, dtype)
    compare(lambda *t: normalized(*t)[0], *tensors, ulps=ULPS[dtype])
    if is_training:
        compare(lambda *t: normalized(*t)[1:], *tensors, ulps=32)
        return
    with tf.device(DEVICE):
        actual = normalized(*map(tf.identity, tensors))[1:]
    with tf.device("CPU:0"):
        # In float16, a CPU without its instructions does not write these.
        expected = normalized(tf.cast(tensors[0], "float32"), *tensors[1:])[1:]
        for a, b in zip(actual, expected, strict=True):
            assert_equal(tf.identity(a), b, 32)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("dtype", ULPS)
def test_gradient(rng, dtype: str, is_training: bool) -> None:
    x, scale, mean, _, variance = inputs(rng, (4, 3, 5, 6), dtype)
    g = tf.cast(rng.standard_normal(x.shape), dtype)
    if is_training:
        wide = tf.cast(x, "float64").numpy()
        mean, variance = wide.mean((0, 1, 2)).astype("f4"), wide.var((0, 1, 2)).astype("f4")

    def gradients(g, x, scale, mean, variance):
        return raw.FusedBatchNormGradV3(
            y_backprop=g,
            x=x,
            scale=scale,
            reserve_space_1=mean,
            reserve_space_2=variance,
            reserve_space_3=mean,
            epsilon=1e-3,
            is_training=is_training,
        )[:3]

    compare(lambda *t: gradients(*t)[0], g, x, scale, mean, variance, ulps=ULPS[dtype])
    compare(lambda *t: gradients(*t)[1:], g, x, scale, mean, variance, ulps=32)


def test_gradient_of_a_tape(rng) -> None:
    x, scale, offset, *_ = inputs(rng, (4, 3, 5, 6), "float32")

    def normalized(x, scale, offset):
        empty = tf.constant([], tf.float32)
        return raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=empty, variance=empty, epsilon=1e-3)[0]

    compare(normalized, x, scale, offset, ulps=32, gradient=True)


@pytest.mark.parametrize("name", ["FusedBatchNorm", "FusedBatchNormV2"])
def test_older_versions(rng, name: str) -> None:
    function = getattr(raw, name)
    x, scale, offset, mean, variance = inputs(rng, (4, 3, 5, 6), "float32")
    compare(
        lambda *t: function(x=t[0], scale=t[1], offset=t[2], mean=t[3], variance=t[4], is_training=False),
        x,
        scale,
        offset,
        mean,
        variance,
        ulps=32,
    )
    gradient = getattr(raw, name.replace("Norm", "NormGrad"))
    compare(
        lambda g, x, *t: gradient(y_backprop=g, x=x, scale=t[0], reserve_space_1=t[1], reserve_space_2=t[2]),
        x,
        x,
        scale,
        mean,
        variance,
        ulps=32,
    )


@pytest.mark.parametrize("is_training", [False, True])
def test_channels_first_and_volumes(rng, is_training: bool) -> None:
    x, *vectors = inputs(rng, (2, 5, 6, 3), "float32")
    g = tf.cast(rng.standard_normal(x.shape), "float32")

    def run(x, g, data_format):
        arguments = {"epsilon": 1e-3, "is_training": is_training, "data_format": data_format}
        scale, offset, mean, variance = vectors
        y, *rest = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=variance, **arguments)
        grads = raw.FusedBatchNormGradV3(
            y_backprop=g,
            x=x,
            scale=scale,
            reserve_space_1=rest[2],
            reserve_space_2=rest[3],
            reserve_space_3=rest[4],
            **arguments,
        )
        return [y, grads[0], *rest[:4], *grads[1:3]]

    with tf.device("CPU:0"):
        expected = run(x, g, "NHWC")
        first = [tf.transpose(t, [0, 3, 1, 2]) for t in (x, g)]
    with tf.device(DEVICE):
        volumes = run(*(tf.identity(tf.reshape(t, (2, 5, 2, 3, 3))) for t in (x, g)), "NDHWC")
        planes = run(*(tf.identity(t) for t in first), "NCHW")
    with tf.device("CPU:0"):
        volumes[:2] = [tf.reshape(tf.identity(t), x.shape) for t in volumes[:2]]
        planes[:2] = [tf.transpose(tf.identity(t), [0, 2, 3, 1]) for t in planes[:2]]
    for results in (volumes, planes):
        for a, b in zip(results, expected, strict=True):
            assert_equal(a, b, 32)


def test_empty(rng) -> None:
    x, *vectors = inputs(rng, (0, 3, 5, 6), "float32")
    compare(lambda *t: raw.FusedBatchNormV3(x=t[0], scale=t[1], offset=t[2], mean=t[3], variance=t[4])[:3], x, *vectors)


def fused(name: str, outputs: int, inputs: list, **attributes) -> list:
    """Runs an operator that only Grappler makes."""
    flat = [n for pair in attributes.items() for n in pair]
    return execute.execute(name.encode(), outputs, inputs=inputs, attrs=tuple(flat), ctx=context.context())


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("activation", ["Identity", "Relu"])
def test_with_an_activation(rng, activation: str, side: bool) -> None:
    x, *vectors = inputs(rng, (4, 3, 5, 4), "float32")
    added, g = (tf.cast(rng.standard_normal(x.shape), "float32") for _ in range(2))
    attributes = {
        "T": tf.float32.as_datatype_enum,
        "U": tf.float32.as_datatype_enum,
        "epsilon": 1e-3,
        "num_side_inputs": int(side),
        "activation_mode": activation.encode(),
        "data_format": b"NHWC",
        "is_training": True,
    }
    with tf.device("CPU:0"):
        y, *rest = raw.FusedBatchNormV3(
            x=x, scale=vectors[0], offset=vectors[1], mean=vectors[2], variance=vectors[3], epsilon=1e-3
        )
        y = y + added if side else y
        y = tf.nn.relu(y) if activation == "Relu" else y
        of_side = tf.where(y > 0, g, 0.0) if activation == "Relu" else g
        expected = raw.FusedBatchNormGradV3(
            y_backprop=of_side,
            x=x,
            scale=vectors[0],
            reserve_space_1=rest[2],
            reserve_space_2=rest[3],
            reserve_space_3=rest[4],
            epsilon=1e-3,
        )
    with tf.device(DEVICE):
        on = [tf.identity(t) for t in (x, *vectors, added, g)]
        x, scale, offset, mean, variance, added, g = on
        results = fused(
            "_FusedBatchNormEx",
            6,
            [x, scale, offset, mean, variance, *([added] if side else [])],
            exponential_avg_factor=1.0,
            **attributes,
        )
        assert_equal(results[0], y, 32)
        if activation == "Relu":
            grads = fused(
                "_FusedBatchNormGradEx", 5 + side, [g, x, scale, *results[3:6], offset, results[0]], **attributes
            )
            for a, b in zip(grads[:3], expected[:3], strict=True):
                assert_equal(a, b, 64)
            if side:
                assert_equal(grads[5], of_side, 0)


@pytest.mark.parametrize(("shape", "channels"), [((2, 3, 4), 4), ((2, 3, 4, 5), 4)])
def test_refusals(shape, channels: int) -> None:
    v = np.ones(channels, "f4")
    refuses(lambda x, v: raw.FusedBatchNormV3(x=x, scale=v, offset=v, mean=v, variance=v), np.ones(shape, "f4"), v)
