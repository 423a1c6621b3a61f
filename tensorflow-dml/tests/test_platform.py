"""What programs ask TensorFlow of the device itself: details, memory, limits, loss, threads,
log.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_dml_autoload

from compare import DEVICE
from processes import run

tensorflow_dml_autoload.start()


def test_details_before_there_is_a_context() -> None:
    done = run("""
from tensorflow.python.eager import context
device = tf.config.list_physical_devices("GPU")[0]
details = tf.config.experimental.get_device_details(device)
assert context.context()._context_handle is None
assert details["device_name"], details
print("details", details)
""")
    assert "details" in done.stdout


def test_memory_info_counts_tensors() -> None:
    before = tf.config.experimental.get_memory_info(DEVICE)["current"]
    with tf.device(DEVICE):
        x = tf.zeros((1 << 20,)) + 1.0
    held = tf.config.experimental.get_memory_info(DEVICE)
    assert held["current"] >= before + (4 << 20)
    assert held["peak"] >= held["current"]
    del x
    after = tf.config.experimental.get_memory_info(DEVICE)
    assert after["current"] <= held["current"] - (4 << 20)
    assert after["peak"] >= held["peak"]
    tf.config.experimental.reset_memory_stats(DEVICE)
    assert tf.config.experimental.get_memory_info(DEVICE)["peak"] < held["peak"]


LIMITED = """
device = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(memory_limit=64)])
with tf.device("GPU:0"):
    kept = tf.zeros((2 << 20,)) + 1.0  # 8 MiB
    try:
        tf.zeros((32 << 20,)) + 1.0  # 128 MiB
    except tf.errors.ResourceExhaustedError:
        print("refused")
    assert float(tf.reduce_sum(kept)) == 2 << 20
"""


@pytest.mark.parametrize("allocator", ["", "bfc"])
def test_a_memory_limit_is_kept(allocator: str) -> None:
    assert run(LIMITED, TF_DML_ALLOCATOR=allocator).stdout.split() == ["refused"]


def test_a_device_is_not_divided() -> None:
    done = run("""
device = tf.config.list_physical_devices("GPU")[0]
try:
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(memory_limit=64)] * 2)
except ValueError as error:
    print(error)
""")
    assert "TORCH_DML_DEVICES_PER_ADAPTER=2" in done.stdout


def test_the_allocator_of_tensorflow() -> None:
    done = run(
        """
with tf.device("GPU:0"):
    x = tf.constant(np.arange(1000, dtype="f4"))
    for _ in range(50):
        x = x * 1.5 - x * 0.5
    assert np.array_equal(x.numpy(), np.arange(1000))
info = tf.config.experimental.get_memory_info("GPU:0")
assert 0 < info["current"] <= info["peak"], info
print("bfc")
""",
        TF_DML_ALLOCATOR="bfc",
    )
    assert done.stdout.strip() == "bfc"


def test_a_lost_device_is_an_internal_error_everywhere() -> None:
    done = run(
        """
import ctypes
with tf.device("GPU:0"):
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    y = x + 1.0
with tf.device("GPU:1"):
    other = tf.constant([1.0, 2.0])
library = ctypes.CDLL(os.environ["TENSORFLOW_DML_LIBRARY"])
assert library.dml_tensorflow_simulate_loss(0)
calls = {
    "kernel": lambda: (x + 1.0).numpy(),
    "copy to the host": lambda: x.numpy(),
    "copy to the device": lambda: (tf.constant(np.ones(9, "f4")) * 2.0).numpy(),
    "variable": lambda: v.assign_add([1.0, 1.0]).numpy(),
    "function": lambda: tf.function(lambda: tf.matmul(x[None], x[:, None]))().numpy(),
}
for name, call in calls.items():
    with tf.device("GPU:0"):
        try:
            call()
        except tf.errors.InternalError as error:
            assert "was lost" in str(error), (name, error)
        else:
            raise AssertionError(name)
with tf.device("GPU:1"):
    assert (other * 2.0).numpy().tolist() == [2.0, 4.0]
print("lost")
""",
        TORCH_DML_DEVICES_PER_ADAPTER="2",
    )
    assert done.stdout.strip() == "lost"


def test_several_threads(rng) -> None:
    a = rng.standard_normal((8, 16, 16)).astype("f4")
    step = tf.function(lambda x: tf.nn.softmax(tf.matmul(x, x)) - tf.reduce_mean(x))

    def work(number: int) -> np.ndarray:
        with tf.device(DEVICE):
            x = tf.constant(a[number])
            for _ in range(20):
                x = step(x) if number % 2 else tf.nn.softmax(tf.matmul(x, x)) - tf.reduce_mean(x)
            return x.numpy()

    alone = [work(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(8)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_log_is_written_to_stderr() -> None:
    body = 'with tf.device("GPU:0"):\n    print((tf.constant([1.0]) + 1.0).numpy()[0])\n'
    quiet, told = run(body, TORCH_DML_LOG=""), run(body, TORCH_DML_LOG="dml_engine=trace")
    assert quiet.stdout == told.stdout == "2.0\n"
    assert "TRACE" not in quiet.stderr
    assert "TRACE dml_engine" in told.stderr and "AddV2" in told.stderr
