"""Training on the device beside the CPU: same losses, variables where they belong."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from compare import DEVICE

Losses = list[float]


def fitted(make: Callable[[], keras.Model], x: np.ndarray, y: np.ndarray, device: str, **options) -> Losses:
    """The losses of a model that `make` makes and compiles, trained on a device."""
    with tf.device(device):
        keras.utils.set_random_seed(7)
        model = make()
        losses = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, **options).history["loss"]
        name = device.split(":")[0]
        assert all(f"{name}:0" in v.value.device for v in model.trainable_variables)
    return losses


def as_on_the_cpu(train: Callable[[str], Losses], tolerance: float = 1e-3) -> None:
    """`train` has the same losses on the device and on the CPU."""
    losses = {device: train(device) for device in ("CPU:0", DEVICE)}
    assert np.isfinite(losses[DEVICE]).all()
    np.testing.assert_allclose(losses[DEVICE], losses["CPU:0"], rtol=tolerance)
