"""cuDNN's recurrent networks, beside the same networks of simple operators in float64 on the
CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@pytest.fixture(autouse=True)
def _soft_placement():
    """These operators have no kernels on the CPU; those between them in gradients may run there."""
    tf.config.set_soft_device_placement(True)
    yield
    tf.config.set_soft_device_placement(False)


def _widths(layers: int, directions: int, width: int, hidden: int) -> list[int]:
    return [width if layer == 0 else directions * hidden for layer in range(layers) for _ in range(directions)]


def _split(params, mode: str, widths: list[int], hidden: int):
    wide, at, weights = GATES[mode] * hidden, 0, []

    def take(*sizes: int):
        nonlocal at
        at += int(np.prod(sizes))
        return tf.reshape(params[at - int(np.prod(sizes)) : at], sizes)

    weights = [(take(wide, width), take(wide, hidden)) for width in widths]
    return weights, [(take(wide), take(wide)) for _ in widths]


def _step(mode: str, of_input, of_state, h, c):
    x, s = (tf.split(t, GATES[mode], axis=1) for t in (of_input, of_state))
    if mode == "lstm":
        i, f, o = (tf.sigmoid(x[k] + s[k]) for k in (0, 1, 3))
        c = f * c + i * tf.tanh(x[2] + s[2])
        return o * tf.tanh(c), c
    if mode == "gru":
        z, r = (tf.sigmoid(x[k] + s[k]) for k in (0, 1))
        n = tf.tanh(x[2] + r * s[2])
        return z * h + (1 - z) * n, c
    return (tf.tanh if mode == "rnn_tanh" else tf.nn.relu)(x[0] + s[0]), c


def _reference(x, h0, c0, params, mode: str, directions: int, lengths):
    time, hidden = x.shape[0], h0.shape[2]
    layers = h0.shape[0] // directions
    widths = _widths(layers, directions, x.shape[2], hidden)
    weights, biases = _split(params, mode, widths, hidden)
    below, last_h, last_c = [x[t] for t in range(time)], [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            (w, r), (bw, br) = weights[k], biases[k]
            h, c = h0[k], c0[k] if mode == "lstm" else None
            states = [None] * time
            for t in range(time) if direction == 0 else reversed(range(time)):
                has_step = tf.constant((t < np.array(lengths))[:, None])
                of_input, of_state = (
                    tf.matmul(below[t], w, transpose_b=True) + bw,
                    tf.matmul(h, r, transpose_b=True) + br,
                )
                new_h, new_c = _step(mode, of_input, of_state, h, c)
                h = tf.where(has_step, new_h, h)
                c = tf.where(has_step, new_c, c) if c is not None else None
                states[t] = tf.where(has_step, new_h, tf.zeros_like(new_h))
            outputs.append(states)
            last_h.append(h)
            last_c.append(c)
        below = [tf.concat([states[t] for states in outputs], axis=1) for t in range(time)]
    found = [tf.stack(below), tf.stack(last_h)]
    return [*found, tf.stack(last_c)] if mode == "lstm" else found


def _gradients(results, tape, watched):
    weights = [np.cos(np.arange(r.shape.num_elements())).reshape(r.shape) for r in results]
    weights = [tf.constant(w.astype(r.dtype.as_numpy_dtype)) for w, r in zip(weights, results, strict=True)]
    return tape.gradient(results, watched, output_gradients=weights)


def _check(rng, mode, layers, directions, sizes, dtype="float32", lengths=None, time_major=True, ulps=32) -> None:
    time, batch, width, hidden = sizes
    count = layers * directions
    total = sum(GATES[mode] * hidden * (w + hidden + 2) for w in _widths(layers, directions, width, hidden))
    shapes = [(time, batch, width), (count, batch, hidden), (count, batch, hidden), (total,)]
    arrays = [(rng.standard_normal(s) * 0.6).astype(dtype) for s in shapes]
    given = [tf.constant(a.astype("f8")) for a in arrays]
    with tf.device("CPU:0"), tf.GradientTape() as tape:
        watched = [t for i, t in enumerate(given) if i != 2 or mode == "lstm"]
        tape.watch(watched)
        results = _reference(*given, mode, directions, lengths or [time] * batch)
        gradients = _gradients(results, tape, watched)
    own = (lambda a: a) if time_major else (lambda a: np.swapaxes(a, 0, 1))
    with tf.device(DEVICE), tf.GradientTape() as tape:
        given = [tf.constant(np.ascontiguousarray(own(a)) if a.ndim == 3 else a) for a in arrays]
        if mode != "lstm":
            given[2] = tf.constant(np.zeros((), dtype))
        watched = [t for i, t in enumerate(given) if i != 2 or mode == "lstm"]
        tape.watch(watched)
        x, h, c, params = given
        found = tf.raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=c,
            params=params,
            sequence_lengths=tf.constant(lengths or [time] * batch, tf.int32),
            rnn_mode=mode,
            direction="bidirectional" if directions == 2 else "unidirectional",
            time_major=time_major,
        )
        actual = [found.output, found.output_h, *([found.output_c] if mode == "lstm" else [])]
        weights = [
            np.cos(np.arange(r.shape.num_elements())).reshape(e.shape) for r, e in zip(actual, results, strict=True)
        ]
        weights = [tf.constant(np.ascontiguousarray(own(w)).astype(dtype)) for w in weights]
        actual_gradients = tape.gradient(actual, watched, output_gradients=weights)
    for a, b in zip([*actual, *actual_gradients], [*results, *gradients], strict=True):
        b = b.numpy()
        assert_equal(a, tf.constant(np.ascontiguousarray(own(b) if b.ndim == 3 else b).astype(dtype)), ulps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", GATES)
def test_one_layer(rng, mode: str, dtype: str) -> None:
    _check(rng, mode, 1, 1, (5, 3, 4, 6), dtype)


@pytest.mark.parametrize("mode", GATES)
def test_two_layers_in_both_directions(rng, mode: str) -> None:
    _check(rng, mode, 2, 2, (4, 3, 5, 4))


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_batch_major(rng, mode: str) -> None:
    _check(rng, mode, 2, 1, (4, 3, 5, 4), time_major=False)


@pytest.mark.parametrize("lengths", [[4, 2, 1], [1, 4, 3], [2, 1, 2]])
@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_sequences_of_different_lengths(rng, mode: str, lengths: list[int]) -> None:
    _check(rng, mode, 2, 2, (4, 3, 5, 4), lengths=lengths)
    _check(rng, mode, 1, 1, (4, 3, 5, 4), lengths=lengths, time_major=False)


def _canonical(rng, mode: str, layers: int, directions: int, width: int, hidden: int):
    widths = _widths(layers, directions, width, hidden)
    weights = [
        rng.standard_normal((hidden, w)).astype("f4")
        for width in widths
        for w in [width] * GATES[mode] + [hidden] * GATES[mode]
    ]
    return weights, [rng.standard_normal(hidden).astype("f4") for _ in range(2 * GATES[mode] * len(widths))]


@pytest.mark.parametrize("mode", GATES)
def test_canonical_parameters_and_back(rng, mode: str) -> None:
    weights, biases = _canonical(rng, mode, 2, 2, 5, 4)
    sizes = {"num_layers": 2, "num_units": 4, "input_size": 5, "rnn_mode": mode, "direction": "bidirectional"}
    with tf.device(DEVICE):
        size = tf.raw_ops.CudnnRNNParamsSize(T=tf.float32, S=tf.int32, **sizes)
        params = tf.raw_ops.CudnnRNNCanonicalToParamsV2(
            weights=[tf.constant(w) for w in weights], biases=[tf.constant(b) for b in biases], **sizes
        )
        assert params.shape == size.numpy()
        found = tf.raw_ops.CudnnRNNParamsToCanonicalV2(
            params=params, num_params_weights=len(weights), num_params_biases=len(biases), **sizes
        )
    for a, b in zip([*found.weights, *found.biases], [*weights, *biases], strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(
        np.sort(params.numpy()), np.sort(np.concatenate([w.ravel() for w in weights + biases]))
    )


def test_what_does_not_fit() -> None:
    x, h = np.ones((2, 3, 4), "f4"), np.ones((1, 3, 5), "f4")
    good = {"input": x, "input_h": h, "input_c": h, "params": np.ones(4 * 5 * 11, "f4"), "sequence_lengths": [2, 2, 2]}
    bad = [
        {"input": x[0]},
        {"input_h": h[:, :2]},
        {"input_c": h[:, :2]},
        {"params": np.ones(7, "f4")},
        {"sequence_lengths": [2, 3, 1]},
        {"sequence_lengths": [2, 0, 1]},
        {"sequence_lengths": [2, 2]},
    ]
    with tf.device(DEVICE):
        tf.raw_ops.CudnnRNNV3(**good)
        for change in bad:
            with pytest.raises(tf.errors.InvalidArgumentError):
                tf.raw_ops.CudnnRNNV3(**(good | change))
        for option in ({"dropout": 0.5}, {"num_proj": 2}, {"input_mode": "skip_input"}):
            layers = {"input_h": np.ones((2, 3, 5), "f4"), "input_c": np.ones((2, 3, 5), "f4")}
            params = {"params": np.ones(4 * 5 * 11 + 4 * 5 * 12, "f4")}
            with pytest.raises(tf.errors.UnimplementedError):
                tf.raw_ops.CudnnRNNV3(**(good | layers | params), **option)
