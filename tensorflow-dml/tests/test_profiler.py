"""TensorFlow's profiler: what it writes has the device's kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from compare import DEVICE


def _planes(folder: Path) -> list[xplane_pb2.XPlane]:
    (written,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(written.read_bytes())
    return [plane for plane in space.planes if plane.name.startswith("/device:GPU:")]


def _work(size: int) -> None:
    with tf.device(DEVICE):
        x = tf.constant(np.ones((size, size), "f4"))
        tf.matmul(x, x).numpy()


def test_kernels_have_names_and_times(tmp_path) -> None:
    _work(32)
    tf.profiler.experimental.start(str(tmp_path))
    _work(32)
    tf.profiler.experimental.stop()
    (plane,) = _planes(tmp_path)
    assert plane.name == "/device:GPU:0"
    (line,) = plane.lines
    stats = {key: metadata.name for key, metadata in plane.stat_metadata.items()}

    def read(event: xplane_pb2.XEvent) -> dict[str, object]:
        return {stats[stat.metadata_id]: getattr(stat, stat.WhichOneof("value")) for stat in event.stats}

    events = [(plane.event_metadata[event.metadata_id].name, event, read(event)) for event in line.events]
    names = [name for name, _, _ in events]
    assert "upload" in names and "download" in names
    (product, facts), *_ = [(event, facts) for _, event, facts in events if facts["tf_op"] == "MatMul:MatMul"]
    assert product.duration_ps > 0
    assert facts["bytes_written"] >= 32 * 32 * 4
    assert str(facts["kernel_details"]).startswith("grid:")
    # In order, one after the other.
    ends = 0
    for event in line.events:
        assert event.offset_ps >= ends
        ends = event.offset_ps + event.duration_ps


def test_a_second_profile_has_only_its_own_work(tmp_path) -> None:
    def profiled(name: str, size: int) -> int:
        tf.profiler.experimental.start(str(tmp_path / name))
        if size:
            _work(size)
        tf.profiler.experimental.stop()
        return sum(len(line.events) for plane in _planes(tmp_path / name) for line in plane.lines)

    once = profiled("first", 16)
    assert once > 0
    assert profiled("second", 0) == 0
    assert profiled("third", 16) == once
