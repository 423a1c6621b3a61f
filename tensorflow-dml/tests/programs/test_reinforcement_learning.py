"""Proximal policy optimisation on a cart with a pole, which NumPy simulates."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from programs.training import as_on_the_cpu

ENVIRONMENTS, STEPS = 4, 32


class _Carts:
    """Carts that are pushed to either side and have to keep their poles upright (A. Barto,
    R. Sutton, C. Anderson, "Neuronlike adaptive elements that can solve difficult learning control
    problems", 1983). A cart that has lost its pole starts anew.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.state = self._start(ENVIRONMENTS)

    def _start(self, count: int) -> np.ndarray:
        return self._rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push, for a fiftieth of a second. Returns rewards, and whether poles were lost."""
        _, speed, angle, turn = self.state.T
        force = np.where(actions == 1, 10.0, -10.0)
        shared = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        turning = (9.8 * np.sin(angle) - np.cos(angle) * shared) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moving = shared - 0.05 * turning * np.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.stack([speed, moving, turn, turning], 1)
        lost = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.2095)
        self.state[lost] = self._start(int(lost.sum()))
        return np.ones(ENVIRONMENTS), lost


def _advantages(rewards: np.ndarray, values: np.ndarray, lost: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Generalised advantage estimation."""
    found, running = np.zeros_like(rewards), np.zeros(ENVIRONMENTS)
    for t in reversed(range(STEPS)):
        later = (last if t == STEPS - 1 else values[t + 1]) * ~lost[t]
        running = rewards[t] + 0.99 * later - values[t] + 0.99 * 0.95 * running * ~lost[t]
        found[t] = running
    return found


def _optimised(device: str) -> list[float]:
    keras.utils.set_random_seed(11)
    rng = np.random.default_rng(11)
    carts = _Carts(np.random.default_rng(12))
    with tf.device(device):
        state = layers.Input((4,))
        policy = layers.Dense(2)(layers.Dense(32, "tanh")(layers.Dense(32, "tanh")(state)))
        value = layers.Dense(1)(layers.Dense(32, "tanh")(layers.Dense(32, "tanh")(state)))
        model = keras.Model(state, [policy, value])
        optimizer = keras.optimizers.Adam(3e-3, epsilon=1e-5)
        variables = model.trainable_variables
        optimizer.build(variables)

        @tf.function
        def look(states):
            logits, values = model(states)
            return tf.nn.log_softmax(logits), values[:, 0]

        @tf.function
        def step(states, actions, before, advantages, returns):
            with tf.GradientTape() as tape:
                logits, values = model(states, training=True)
                logs = tf.nn.log_softmax(logits)
                ratio = tf.exp(tf.gather(logs, actions, batch_dims=1) - before)
                scaled = (advantages - tf.reduce_mean(advantages)) / (tf.math.reduce_std(advantages) + 1e-8)
                clipped = tf.clip_by_value(ratio, 0.8, 1.2)
                gain = tf.reduce_mean(tf.minimum(ratio * scaled, clipped * scaled))
                error = tf.reduce_mean(tf.square(values[:, 0] - returns))
                entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(logs) * logs, -1))
                loss = 0.5 * error - gain - 0.01 * entropy
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        losses = []
        for _ in range(2):
            states, actions, logs, values, rewards, lost = [], [], [], [], [], []
            for _ in range(STEPS):
                now = carts.state.astype("f4")
                of_actions, of_state = (t.numpy() for t in look(tf.constant(now)))
                action = (rng.random(ENVIRONMENTS) > np.exp(of_actions[:, 0])).astype("i4")
                reward, is_lost = carts.step(action)
                for kept, one in zip(
                    (states, actions, logs, values, rewards, lost),
                    (now, action, of_actions[np.arange(ENVIRONMENTS), action], of_state, reward, is_lost),
                    strict=True,
                ):
                    kept.append(one)
            last = look(tf.constant(carts.state.astype("f4")))[1].numpy()
            advantages = _advantages(np.array(rewards), np.array(values), np.array(lost), last)
            returns = advantages + np.array(values)
            data = [np.concatenate(one) for one in (states, actions, logs, advantages, returns)]
            data = [one.astype("i4" if one.dtype == np.int32 else "f4") for one in data]
            for _ in range(2):
                order = rng.permutation(ENVIRONMENTS * STEPS).reshape(2, -1)
                losses += [float(step(*(tf.constant(one[part]) for one in data))) for part in order]
        return losses


@pytest.mark.usefixtures("no_fallbacks")
def test_proximal_policy_optimisation() -> None:
    as_on_the_cpu(_optimised)
