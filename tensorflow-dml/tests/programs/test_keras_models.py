"""Small models of Keras, trained with `fit`."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

from programs.training import as_on_the_cpu, fitted


def _images(classes: int, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.random((16, size, size, 3)).astype("f4"), rng.integers(0, classes, 16).astype("i4")


def _cnn() -> keras.Model:
    model = keras.Sequential(
        [
            layers.Input((16, 16, 3)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False),
            layers.Activation("relu"),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def test_cnn() -> None:
    as_on_the_cpu(lambda device: fitted(_cnn, *_images(5), device))


def test_cnn_in_mixed_precision() -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    losses = fitted(_cnn, *_images(5), "GPU:0")
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_resnet50() -> None:
    """In float64: normalised by the variances of few pixels, rounding errors of float32 grow to a
    tenth of a loss.
    """

    def make() -> keras.Model:
        model = keras.applications.ResNet50(weights=None, classes=4, input_shape=(32, 32, 3))
        model.compile(keras.optimizers.SGD(0.0002), "sparse_categorical_crossentropy")
        return model

    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.mixed_precision.set_global_policy("float64")
    try:
        x, y = _images(4, 32)
        as_on_the_cpu(lambda device: fitted(make, x[:4], y[:4], device), tolerance=1e-7)
    finally:
        keras.config.set_floatx(before)
        keras.mixed_precision.set_global_policy(before)


def _encoder() -> keras.Model:
    """Tokens and positions, two layers of attention and a feed-forward network, a class."""
    tokens = layers.Input((10,), dtype="int32")
    h = layers.Embedding(50, 16)(tokens) + layers.Embedding(10, 16)(keras.ops.arange(10))
    h = layers.LayerNormalization()(h)
    for _ in range(2):
        h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 8)(h, h))
        h = layers.LayerNormalization()(h + layers.Dense(16)(layers.Dense(32, activation="gelu")(h)))
    pooled = layers.Dense(16, activation="tanh")(h[:, 0])
    model = keras.Model(tokens, layers.Dense(3, activation="softmax")(pooled))
    model.compile(keras.optimizers.AdamW(1e-3), "sparse_categorical_crossentropy")
    return model


def test_bert_like_encoder() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 50, (16, 10)).astype("i4"), rng.integers(0, 3, 16).astype("i4")
    as_on_the_cpu(lambda device: fitted(_encoder, x, y, device))


@pytest.mark.parametrize("layer", [layers.LSTM, layers.GRU])
def test_text_in_both_directions(layer) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(1, 50, (16, 9)).astype("i4"), rng.random((16, 1)).astype("f4")
    for i in range(16):
        x[i, 1 + i % 9 :] = 0  # padding, which is masked

    def train(device: str) -> list[float]:
        # Keras chooses the fused kernel wherever there is a GPU; the CPU has none.
        options = {} if device == "GPU:0" else {"use_cudnn": False}

        def make() -> keras.Model:
            model = keras.Sequential(
                [
                    layers.Input((9,), dtype="int32"),
                    layers.Embedding(50, 6, mask_zero=True),
                    layers.Bidirectional(layer(5, **options)),
                    layers.Dense(1),
                ]
            )
            model.compile("rmsprop", "mse")
            return model

        return fitted(make, x, y, device)

    as_on_the_cpu(train)


def _detector() -> keras.Model:
    """A small backbone with a neck of two scales, and boxes, objectness and classes of each."""

    def convolution(h, filters: int, strides: int = 1):
        h = layers.Conv2D(filters, 3, strides, padding="same", use_bias=False)(h)
        return layers.LeakyReLU(0.1)(layers.BatchNormalization()(h))

    image = layers.Input((32, 32, 3))
    fine = convolution(convolution(image, 4, 2), 8, 2)
    coarse = convolution(fine, 8, 2)
    up = layers.Concatenate()([layers.UpSampling2D()(coarse), fine])
    heads = [layers.Conv2D(7, 1)(up), layers.Conv2D(7, 1)(coarse)]
    flat = [layers.Reshape((-1, 7))(head) for head in heads]
    model = keras.Model(image, layers.Concatenate(axis=1)(flat))

    def loss(truth, found):
        place = keras.ops.sum(keras.ops.square(keras.ops.sigmoid(found[..., :2]) - truth[..., :2]), -1)
        size = keras.ops.sum(keras.ops.abs(keras.ops.exp(found[..., 2:4] * 0.1) - truth[..., 2:4]), -1)
        rest = keras.losses.binary_crossentropy(truth[..., 4:], found[..., 4:], from_logits=True)
        return place + size + rest

    model.compile(keras.optimizers.Adam(1e-3), loss)
    return model


def test_yolo_like_detector() -> None:
    rng = np.random.default_rng(4)
    x, truth = rng.random((16, 32, 32, 3)).astype("f4"), rng.random((16, 80, 7)).astype("f4")
    as_on_the_cpu(lambda device: fitted(_detector, x, truth.round(), device))
