"""Loads the plugin: TENSORFLOW_DML_LIBRARY, else what `cargo build --package dml-tensorflow` made
last.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf
from tensorflow.python.framework import load_library

ROOT = Path(__file__).resolve().parents[2]


def _library() -> Path:
    if named := os.environ.get("TENSORFLOW_DML_LIBRARY"):
        return Path(named)
    built = [ROOT / "target" / profile / "libtensorflow_dml.so" for profile in ("debug", "release")]
    return max((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime)


def pytest_configure() -> None:
    # For processes that tests start.
    os.environ["TENSORFLOW_DML_LIBRARY"] = str(_library())
    if not tf.config.list_physical_devices("GPU"):
        load_library.load_pluggable_device_library(str(_library()))
    assert tf.config.list_physical_devices("GPU"), "the plugin offers no device"
    # An operator without a kernel for the device is an error.
    tf.config.set_soft_device_placement(False)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> tf.random.Generator:
    """NumPy's generator, seeded by the test's name."""
    import zlib

    import numpy as np

    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
