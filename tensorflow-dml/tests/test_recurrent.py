"""cuDNN's recurrent networks, beside the same networks of simple operators in float64 on the
CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal, compare

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
        for option in ({"num_proj": 2}, {"input_mode": "skip_input"}):
            layers = {"input_h": np.ones((2, 3, 5), "f4"), "input_c": np.ones((2, 3, 5), "f4")}
            params = {"params": np.ones(4 * 5 * 11 + 4 * 5 * 12, "f4")}
            with pytest.raises(tf.errors.UnimplementedError):
                tf.raw_ops.CudnnRNNV3(**(good | layers | params), **option)


@pytest.mark.parametrize("directions", [1, 2])
def test_dropout_between_layers(directions: int) -> None:
    """Weights of 1 for the input and 0 for the states: the result is the input times the factors of
    dropout, and the gradient is the factors.
    """
    time, batch, units, layers, share = 6, 50, 8, 3, 0.25
    rng = np.random.default_rng(4)
    x = rng.uniform(1, 2, (time, batch, units)).astype("f4")
    weights = []
    for layer in range(layers):
        width = units if layer == 0 else directions * units
        eye = np.eye(units, width, dtype="f4")
        weights += [eye, np.zeros((units, units), "f4")]
        weights += [np.eye(units, width, units if layer else 0, dtype="f4"), weights[1]] * (directions - 1)
    params = np.concatenate([w.ravel() for w in weights] + [np.zeros(2 * units * layers * directions, "f4")])
    h = tf.zeros((layers * directions, batch, units))
    direction = "bidirectional" if directions == 2 else "unidirectional"

    def run(seed: int, trains: bool):
        @tf.function
        def network(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                found = tf.raw_ops.CudnnRNNV2(
                    input=x,
                    input_h=h,
                    input_c=tf.zeros(()),
                    params=tf.constant(params),
                    rnn_mode="rnn_relu",
                    direction=direction,
                    dropout=share,
                    seed=seed,
                    seed2=5,
                    is_training=trains,
                )
            # A call that does not train keeps nothing for a gradient.
            return found.output, tape.gradient(found.output, x) if trains else found.output

        with tf.device(DEVICE):
            return [t.numpy() for t in network(tf.constant(x))]

    output, gradient = run(3, True)
    factors = output.reshape(time, batch, directions, units) / x[:, :, None]
    keep = 1 - share
    assert set(np.unique(factors.round(3)).astype("f4")) == set(
        np.array([0, keep ** (1 - layers)]).round(3).astype("f4")
    )
    assert abs((factors > 0).mean() - keep ** (layers - 1)) < 0.05
    np.testing.assert_allclose(gradient, factors.sum(2), rtol=1e-5)
    np.testing.assert_array_equal(run(3, True)[0], output)
    assert (run(4, True)[0] != output).any()
    np.testing.assert_array_equal(run(3, False)[0].reshape(factors.shape), np.repeat(x[:, :, None], directions, 2))


def _block_arguments(rng, batch: int, width: int, units: int, steps: int = 0) -> dict[str, tf.Tensor]:
    def some(*shape: int) -> tf.Tensor:
        return tf.constant(rng.standard_normal(shape).astype("f4"))

    return {
        "x": some(steps, batch, width) if steps else some(batch, width),
        "cs_prev": some(batch, units),
        "h_prev": some(batch, units),
        "w": some(width + units, 4 * units),
        "wci": some(units),
        "wcf": some(units),
        "wco": some(units),
        "b": some(4 * units),
    }


@pytest.mark.parametrize("peephole", [False, True])
def test_cells_of_block_lstm(rng, peephole: bool) -> None:
    given = _block_arguments(rng, 3, 4, 5)
    for limit in (-1.0, 0.3):
        kept = {}

        def cell(*tensors, limit=limit, kept=kept):
            found = tf.raw_ops.LSTMBlockCell(
                **dict(zip(given, tensors, strict=True)), forget_bias=0.5, cell_clip=limit, use_peephole=peephole
            )
            kept.update(found._asdict())
            return list(found)

        compare(cell, *given.values(), ulps=16)
        gates = {name: kept[name] for name in ("i", "cs", "f", "o", "ci", "co")}
        gradients = {name: tf.constant(rng.standard_normal((3, 5)).astype("f4")) for name in ("cs_grad", "h_grad")}
        everything = given | gates | gradients

        def gradient(*tensors, everything=everything):
            found = tf.raw_ops.LSTMBlockCellGrad(**dict(zip(everything, tensors, strict=True)), use_peephole=peephole)
            # Without peepholes the CPU leaves their gradients as they are.
            return list(found) if peephole else list(found[:2])

        compare(gradient, *everything.values(), ulps=16)


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("version", ["", "V2"])
def test_block_lstm(rng, version: str, peephole: bool) -> None:
    operator = getattr(tf.raw_ops, f"BlockLSTM{version}")
    backward = getattr(tf.raw_ops, f"BlockLSTMGrad{version}")
    given = _block_arguments(rng, 3, 4, 5, steps=6)
    options = {"use_peephole": peephole, "cell_clip": 0.0} | ({} if version else {"forget_bias": 0.5})
    for steps in (6, 4, 0):
        most, kept = tf.constant(steps, tf.int64), {}

        def cells(*tensors, most=most, kept=kept):
            found = operator(seq_len_max=most, **dict(zip(given, tensors, strict=True)), **options)
            kept.update(found._asdict())
            # Of the steps that are left out, the CPU sets these alone to 0.
            return [found.cs, found.h, *(gate[: int(most)] for gate in found)]

        compare(cells, *given.values(), ulps=32)
        gates = {name: kept[name] for name in ("i", "cs", "f", "o", "ci", "co", "h")}
        gradients = {name: tf.constant(rng.standard_normal((6, 3, 5)).astype("f4")) for name in ("cs_grad", "h_grad")}
        everything = given | gates | gradients

        def gradient(*tensors, most=most, everything=everything):
            return list(
                backward(seq_len_max=most, **dict(zip(everything, tensors, strict=True)), use_peephole=peephole)
            )

        compare(gradient, *everything.values(), ulps=32)


def test_cells_of_block_gru(rng) -> None:
    def some(*shape: int) -> tf.Tensor:
        return tf.constant(rng.standard_normal(shape).astype("f4"))

    given = {"x": some(3, 4), "h_prev": some(3, 5), "w_ru": some(9, 10), "w_c": some(9, 5)}
    given |= {"b_ru": some(10), "b_c": some(5)}
    kept = {}

    def cell(*tensors):
        found = tf.raw_ops.GRUBlockCell(**dict(zip(given, tensors, strict=True)))
        kept.update(found._asdict())
        return list(found)

    compare(cell, *given.values(), ulps=16)
    everything = given | {name: kept[name] for name in ("r", "u", "c")} | {"d_h": some(3, 5)}
    compare(
        lambda *tensors: list(tf.raw_ops.GRUBlockCellGrad(**dict(zip(everything, tensors, strict=True)))),
        *everything.values(),
        ulps=16,
    )
