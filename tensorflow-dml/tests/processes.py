"""Programs in processes of their own, which have the device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python"

HEAD = """
import os
import numpy as np
import tensorflow_dml_autoload
import tensorflow as tf
from tensorflow.python.framework import load_library
if not tf.config.list_physical_devices("GPU"):
    load_library.load_pluggable_device_library(os.environ["TENSORFLOW_DML_LIBRARY"])
"""


def run(body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program after HEAD, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", HEAD + body],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done
