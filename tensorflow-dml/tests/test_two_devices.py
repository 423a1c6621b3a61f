"""Two devices on one adapter, in a process of their own: the number is read once."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os
import tensorflow as tf
from tensorflow.python.framework import load_library
if not tf.config.list_physical_devices("GPU"):
    load_library.load_pluggable_device_library(os.environ["TENSORFLOW_DML_LIBRARY"])
strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
assert strategy.num_replicas_in_sync == 2
with strategy.scope():
    v = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.SUM)

@tf.function
def step():
    def replica():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        v.assign_sub(0.25 * tape.gradient(loss, v))
        return loss
    return strategy.reduce("SUM", strategy.run(replica), axis=None)

assert step().numpy() == 10.0
for copy in strategy.experimental_local_results(v):
    assert copy.numpy().tolist() == [0.0, 0.0], copy
with tf.device("GPU:0"):
    x = tf.constant([1.0, 2.0]) + 1.0
with tf.device("GPU:1"):
    y = x + x
assert "GPU:1" in y.device and y.numpy().tolist() == [4.0, 6.0]
print("two devices")
"""


def test_mirrored_strategy_and_copies() -> None:
    environment = os.environ | {"TORCH_DML_DEVICES_PER_ADAPTER": "2", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0 and "two devices" in done.stdout, done.stderr[-3000:]
