"""Keras 3 over PyTorch: a convolutional network, an LSTM and attention, compile, fit, evaluate,
predict, the weights saved and loaded.
"""

import json
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(0)
images = rng.normal(size=(16, 12, 12, 3)).astype(np.float32)
tokens = rng.integers(0, 20, size=(16, 6))
labels = np.arange(16) % 4


def convolutional():
    return keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(4),
        ]
    )


def recurrent():
    return keras.Sequential([layers.Embedding(20, 8), layers.LSTM(8), layers.Dense(4)])


def attention():
    inputs = keras.Input((6,), dtype="int32")
    x = layers.Embedding(20, 8)(inputs)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


numbers = []
for build, inputs in ((convolutional, images), (recurrent, tokens), (attention, tokens)):
    model = build()
    model.build(inputs.shape)
    # Drawn on the host: a device's random numbers are its own.
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape).astype(np.float32))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
    numbers += model.fit(inputs, labels, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
    numbers.append(model.evaluate(inputs, labels, verbose=0)[0])
    model.save_weights("model.weights.h5")
    before = model.predict(inputs, verbose=0)
    again = build()
    again.build(inputs.shape)
    again.load_weights("model.weights.h5")
    assert np.allclose(again.predict(inputs, verbose=0), before, atol=1e-5)
    numbers += before.flatten().tolist()
print(json.dumps({"device": str(model.trainable_variables[0].value.device), "numbers": numbers, "tolerance": 2e-3}))
