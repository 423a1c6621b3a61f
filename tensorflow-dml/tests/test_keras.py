"""What Keras and TensorFlow's own programs ask of a device."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_dml_autoload
from keras import layers

from compare import DEVICE

tensorflow_dml_autoload.start()


@pytest.fixture(autouse=True)
def _soft_placement():
    tf.config.set_soft_device_placement(True)
    yield
    tf.config.set_soft_device_placement(False)
    keras.mixed_precision.set_global_policy("float32")


def _regression(rng, policy: str = "float32") -> tuple[keras.Model, list[float]]:
    keras.utils.set_random_seed(1)
    keras.mixed_precision.set_global_policy(policy)
    x = rng.standard_normal((32, 8)).astype("f4")
    model = keras.Sequential([layers.Input((8,)), layers.Dense(8, activation="relu"), layers.Dense(1, dtype="float32")])
    model.compile("adam", "mse")
    return model, model.fit(x, x[:, :1], epochs=3, verbose=0, batch_size=16).history["loss"]


def test_fit_without_a_word_about_xla(rng) -> None:
    model, losses = _regression(rng)
    assert not model.jit_compile
    assert losses[-1] < losses[0]
    assert all("GPU:0" in v.value.device for v in model.trainable_variables)


def test_losses_are_the_cpus() -> None:
    losses = {}
    for device in ("CPU:0", DEVICE):
        with tf.device(device):
            losses[device] = _regression(np.random.default_rng(3))[1]
    np.testing.assert_allclose(losses[DEVICE], losses["CPU:0"], rtol=1e-4)


def test_mixed_float16(rng) -> None:
    model, losses = _regression(rng, "mixed_float16")
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


@pytest.mark.parametrize("layer", [layers.LSTM, layers.GRU, layers.SimpleRNN])
def test_recurrent_layers(layer) -> None:
    losses = {}
    for device in ("CPU:0", DEVICE):
        with tf.device(device):
            keras.utils.set_random_seed(1)
            x = np.random.default_rng(5).standard_normal((16, 6, 4)).astype("f4")
            # On a machine with a GPU the fused kernel is Keras' choice on the CPU too, where there
            # is none.
            options = {"use_cudnn": False} if device != DEVICE and layer is not layers.SimpleRNN else {}
            model = keras.Sequential([layers.Input((6, 4)), layer(5, **options), layers.Dense(1)])
            model.compile("sgd", "mse")
            losses[device] = model.fit(x, x.sum((1, 2)), epochs=2, verbose=0, batch_size=8).history["loss"]
    np.testing.assert_allclose(losses[DEVICE], losses["CPU:0"], rtol=1e-4)


def test_saved_model(tmp_path: Path) -> None:
    with tf.device(DEVICE):
        module = tf.Module()
        module.v = tf.Variable([1.0, 2.0])
        module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([2])])
        tf.saved_model.save(module, str(tmp_path))
        loaded = tf.saved_model.load(str(tmp_path))
        np.testing.assert_array_equal(loaded.f(tf.constant([3.0, 4.0])), [3.0, 8.0])


def test_checkpoint(tmp_path: Path) -> None:
    with tf.device(DEVICE):
        v = tf.Variable([1.0, 2.0])
        checkpoint = tf.train.Checkpoint(v=v)
        path = checkpoint.save(str(tmp_path / "checkpoint"))
        v.assign([0.0, 0.0])
        checkpoint.restore(path)
        np.testing.assert_array_equal(v, [1.0, 2.0])
        assert "GPU:0" in v.device


def test_keras_file(rng, tmp_path: Path) -> None:
    model, _ = _regression(rng)
    x = rng.standard_normal((4, 8)).astype("f4")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


def test_prefetch_to_device() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype="f4")).batch(2)
    data = data.apply(tf.data.experimental.prefetch_to_device(f"/{DEVICE}"))
    found = list(data)
    assert all("GPU:0" in batch.device for batch in found)
    np.testing.assert_array_equal(np.concatenate([batch.numpy() for batch in found]), np.arange(6))


def test_copy_to_device() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype="f4")).batch(2)
    data = data.apply(tf.data.experimental.copy_to_device(f"/{DEVICE}")).prefetch(1)
    np.testing.assert_array_equal(np.concatenate([batch.numpy() for batch in data]), np.arange(6))


def test_graphs_without_the_remapper(rng) -> None:
    """A bias and an activation after a product stay nodes of their own."""
    a, b, c = (tf.constant(rng.standard_normal(s).astype("f4")) for s in ((3, 4), (4, 5), (5,)))

    @tf.function
    def f(a, b, c):
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(a, b), c))

    with tf.device("CPU:0"):
        expected = f(tf.identity(a), tf.identity(b), tf.identity(c)).numpy()
    with tf.device(DEVICE):
        np.testing.assert_allclose(f(a, b, c).numpy(), expected, rtol=1e-5, atol=1e-6)
