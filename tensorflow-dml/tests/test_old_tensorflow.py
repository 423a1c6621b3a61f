"""TensorFlow 2.20 and 2.21, which lack what a plugin needs. TENSORFLOW_DML_OLD_TENSORFLOW is a
folder that has one: `pip install --target FOLDER tensorflow-cpu==2.21.0`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FOLDER = os.environ.get("TENSORFLOW_DML_OLD_TENSORFLOW", "")

PROGRAM = """
import os
import tensorflow as tf
from tensorflow.python.framework import load_library
assert tf.__version__.startswith(("2.20.", "2.21.")), tf.__version__
load_library.load_pluggable_device_library(os.environ["TENSORFLOW_DML_LIBRARY"])
assert tf.config.list_physical_devices("GPU") == []
x = tf.constant([[1.0, 2.0]])
v = tf.Variable(x)
v.assign_add(tf.matmul(x, x, transpose_b=True) + x)
print(v.numpy().tolist(), v.device)
"""


@pytest.mark.skipif(not FOLDER, reason="TENSORFLOW_DML_OLD_TENSORFLOW names no TensorFlow 2.20 or 2.21")
def test_one_line_says_why_there_is_no_device_and_the_cpu_computes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": FOLDER, "TF_CPP_MIN_LOG_LEVEL": "3"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("[[7.0, 9.0]]") and "CPU:0" in done.stdout
    ours = [line for line in done.stderr.splitlines() if "tensorflow-dml" in line]
    assert len(ours) == 1 and "functions for variables" in ours[0], done.stderr
