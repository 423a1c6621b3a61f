"""What Keras 3 needs to know of the device."""

from __future__ import annotations

import functools
from typing import Any

from tensorflow_dml import library


def adapt(trainer: Any) -> None:
    """Make `jit_compile="auto"`, the default of `Model.compile`, mean no XLA where the device is
    one that XLA has no compiler for.
    """
    supports_jit = trainer.model_supports_jit
    if getattr(supports_jit, "_knows_tensorflow_dml", False):
        return

    @functools.wraps(supports_jit)
    def supports_jit_here(model: Any) -> bool:
        return bool(supports_jit(model)) and not has_device_without_xla()

    supports_jit_here._knows_tensorflow_dml = True  # type: ignore[attr-defined]
    trainer.model_supports_jit = supports_jit_here


def has_device_without_xla() -> bool:
    """Return whether Keras runs on TensorFlow, and that has a device of a plugin."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return False
    return library.is_loaded()
