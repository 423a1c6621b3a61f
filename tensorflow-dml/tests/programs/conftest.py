"""Programs run with soft placement; what fell back to the CPU is printed with `pytest -rP`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import keras
import pytest
import tensorflow as tf
import tensorflow_dml
import tensorflow_dml_autoload
from tensorflow.python.framework import op_callbacks

tensorflow_dml_autoload.start()


@pytest.fixture(autouse=True)
def _fallbacks() -> Iterator[None]:
    tf.config.set_soft_device_placement(True)
    tensorflow_dml.reset_fallbacks()
    tensorflow_dml.watch_fallbacks()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "tensorflow-dml has no kernel", RuntimeWarning)
        yield
    op_callbacks.clear_op_callbacks()
    print("fallbacks:", dict(sorted(tensorflow_dml.fallbacks().items())))
    keras.mixed_precision.set_global_policy("float32")
    tf.config.set_soft_device_placement(False)


@pytest.fixture
def no_fallbacks() -> Iterator[None]:
    """No operator of the program may run on the CPU for lack of a kernel."""
    yield
    assert not tensorflow_dml.fallbacks(), "operators ran on the CPU"
