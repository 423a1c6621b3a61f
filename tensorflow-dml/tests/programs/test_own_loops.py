"""Programs with loops of their own: `tf.function` and a tape."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from programs.training import as_on_the_cpu


def _variational(device: str) -> list[float]:
    """An autoencoder of images; its noise is given, so that it is the same on both devices."""
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    with tf.device(device):
        encoder = keras.Sequential([layers.Input((64,)), layers.Dense(32, "relu"), layers.Dense(8)])
        decoder = keras.Sequential([layers.Input((4,)), layers.Dense(32, "relu"), layers.Dense(64)])
        optimizer = keras.optimizers.Adam(1e-2)
        variables = encoder.trainable_variables + decoder.trainable_variables
        optimizer.build(variables)

        @tf.function
        def step(x, noise):
            with tf.GradientTape() as tape:
                mean, log_variance = tf.split(encoder(x), 2, axis=1)
                found = decoder(mean + tf.exp(0.5 * log_variance) * noise)
                likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=found), 1)
                divergence = -0.5 * tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance), 1)
                loss = tf.reduce_mean(likelihood + divergence)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        batches = [(rng.random((8, 64)).astype("f4"), rng.standard_normal((8, 4)).astype("f4")) for _ in range(3)]
        return [float(step(tf.constant(x), tf.constant(noise))) for x, noise in batches]


def test_variational_autoencoder() -> None:
    as_on_the_cpu(_variational)


def _adversarial(device: str) -> list[float]:
    keras.utils.set_random_seed(6)
    rng = np.random.default_rng(6)
    with tf.device(device):
        generator = keras.Sequential(
            [
                layers.Input((8,)),
                layers.Dense(4 * 4 * 4, use_bias=False),
                layers.Reshape((4, 4, 4)),
                layers.BatchNormalization(),
                layers.LeakyReLU(),
                layers.Conv2DTranspose(1, 4, 2, padding="same", activation="tanh"),
            ]
        )
        critic = keras.Sequential(
            [
                layers.Input((8, 8, 1)),
                layers.Conv2D(4, 3, 2, padding="same"),
                layers.LeakyReLU(),
                layers.Flatten(),
                layers.Dense(1),
            ]
        )
        optimizers = [keras.optimizers.Adam(1e-3, beta_1=0.5) for _ in range(2)]
        for optimizer, model in zip(optimizers, (generator, critic), strict=True):
            optimizer.build(model.trainable_variables)
        entropy = keras.losses.BinaryCrossentropy(from_logits=True)

        @tf.function
        def step(images, noise):
            with tf.GradientTape() as of_generator, tf.GradientTape() as of_critic:
                real, fake = critic(images), critic(generator(noise, training=True))
                loss = entropy(tf.ones_like(fake), fake)
                against = entropy(tf.ones_like(real), real) + entropy(tf.zeros_like(fake), fake)
            for tape, value, model, optimizer in (
                (of_generator, loss, generator, optimizers[0]),
                (of_critic, against, critic, optimizers[1]),
            ):
                variables = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
            return loss, against

        losses = []
        for _ in range(2):
            images, noise = rng.random((4, 8, 8, 1)).astype("f4"), rng.standard_normal((4, 8)).astype("f4")
            losses += [float(value) for value in step(tf.constant(images), tf.constant(noise))]
        return losses


def test_adversarial_network() -> None:
    as_on_the_cpu(_adversarial)
