"""torch.profiler with the device: which kernels ran, when, and for which operator."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from tests.support.environment import needs_timestamps

pytestmark = needs_timestamps

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


@pytest.fixture(scope="module")
def step():
    """A training step of a small network, run once so that its kernels are compiled."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)).to("dml")
    optimizer = torch.optim.Adam(model.parameters())
    inputs, wanted = torch.randn(16, 8).to("dml"), torch.randn(16, 4).to("dml")

    def run() -> torch.Tensor:
        optimizer.zero_grad()
        with record_function("outer"):
            with record_function("forward"):
                loss = nn.functional.mse_loss(model(inputs), wanted)
            loss.backward()
        optimizer.step()
        return loss

    run().item()
    return run


def device_events(profiler: profile) -> list:
    return [e for e in profiler.profiler.kineto_results.events() if e.device_type() == DeviceType.PrivateUse1]


@pytest.mark.smoke
def test_kernels_have_names_and_times(step):
    with profile(activities=BOTH) as profiler:
        step().item()
    events = device_events(profiler)
    assert all(e.duration_ns() > 0 and e.name().startswith("dml::") for e in events)
    names = {e.name() for e in events}
    assert {"dml::tanh", "dml::mse_loss_backward", "dml::download"} <= names
    assert any(name.startswith("dml::gemm") for name in names)
    # There is one queue: kernels do not overlap.
    times = sorted((e.start_ns(), e.start_ns() + e.duration_ns()) for e in events)
    assert all(first[1] <= second[0] + 1 for first, second in pairwise(times))


def test_operators_have_their_kernels_times(step):
    with profile(activities=BOTH) as profiler:
        step()
    rows = {row.key: row for row in profiler.key_averages()}
    for name in ("aten::tanh", "aten::addmm", "aten::mm", "aten::tanh_backward", "aten::mse_loss"):
        assert rows[name].self_device_time_total > 0, name
    assert rows["aten::tanh"].self_device_time_total == pytest.approx(rows["dml::tanh"].self_device_time_total)
    # The time of called operators counts in the total; launches are on the host.
    assert rows["aten::linear"].device_time_total == pytest.approx(rows["aten::addmm"].device_time_total)
    assert rows["dml_launch"].cpu_time_total > 0 and rows["dml_launch"].count >= 10
    assert "Self DML" in profiler.key_averages().table(sort_by="self_device_time_total")


def test_nested_ranges_sum_up(step):
    with profile(activities=BOTH) as profiler:
        step()
    rows = {row.key: row for row in profiler.key_averages() if row.device_type == DeviceType.CPU}
    assert 0 < rows["forward"].device_time_total < rows["outer"].device_time_total
    assert rows["forward"].self_device_time_total == 0
    assert rows["aten::mse_loss"].device_time_total < rows["forward"].device_time_total


def test_kernels_lie_between_their_launch_and_the_synchronisation(step):
    """The device's clock is converted to the host's."""
    with profile(activities=BOTH) as profiler:
        step().item()
        with record_function("late"):
            pass
    events = profiler.profiler.kineto_results.events()
    slack = 1_000_000
    starts = {e.correlation_id(): e.start_ns() for e in events if e.device_type() == DeviceType.CPU}
    (late,) = [e.start_ns() for e in events if e.name() == "late"]
    linked = [e for e in device_events(profiler) if e.linked_correlation_id() > 0]
    assert len(linked) >= 20
    for event in linked:
        assert event.start_ns() + slack >= starts[event.linked_correlation_id()], event.name()
        assert event.start_ns() + event.duration_ns() <= late + slack, event.name()


def test_chrome_trace(step, tmp_path: Path):
    with profile(activities=BOTH, record_shapes=True, with_stack=True) as profiler:
        step().item()
    target = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(target))
    events = json.loads(target.read_text(encoding="utf-8"))["traceEvents"]
    (tanh,) = [e for e in events if e["name"] == "dml::tanh"]
    assert tanh["cat"] == "kernel" and tanh["ph"] == "X" and tanh["dur"] > 0
    assert tanh["args"]["operator"] == "aten::tanh"
    assert len(tanh["args"]["grid"]) == 3 and tanh["args"]["block"] == [256, 1, 1]
    assert tanh["args"]["bytes read"] == tanh["args"]["bytes written"] == 16 * 64 * 4
    # The operator of the kernel, on another track, with its shapes.
    (operator,) = [
        e for e in events if e.get("cat") == "cpu_op" and e["args"].get("External id") == tanh["args"]["External id"]
    ]
    assert operator["name"] == "aten::tanh" and operator["args"]["Input Dims"] == [[16, 64]]
    assert (operator["pid"], operator["tid"]) != (tanh["pid"], tanh["tid"])
    tracks = {e["args"].get("name") for e in events if e["name"] == "process_name" and e["pid"] == tanh["pid"]}
    assert tracks == {"dml:0"}
    arrows = {e["ph"] for e in events if e.get("cat") == "ac2g" and e["ts"] in (tanh["ts"], operator["ts"])}
    assert arrows == {"f"}
    assert [e["cat"] for e in events if e["name"] == "dml::download"] == ["gpu_memcpy"]
    assert any(e.get("cat") == "python_function" for e in events)


def test_nothing_is_recorded_when_off(step):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step().item()
    assert device_events(profiler) == []
    assert not any(row.key.startswith("dml") for row in profiler.key_averages())
    step().item()
    with profile(activities=BOTH) as profiler:
        pass
    assert device_events(profiler) == []


def test_device_only(step):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        step().item()
    events = profiler.profiler.kineto_results.events()
    assert any(e.name() == "dml::tanh" for e in events)
    assert not any(e.name().startswith("aten::") for e in events)


def test_work_before_and_after_is_not_recorded():
    x = torch.ones(100, device="dml")
    x.exp()  # not yet submitted when the profile starts
    with profile(activities=BOTH) as profiler:
        x.sin()
    x.cos()
    torch.dml.synchronize()
    assert [e.name() for e in device_events(profiler)] == ["dml::sin"]


def test_a_schedule_tells_its_active_steps_only():
    x = torch.ones(100, device="dml")
    seen: list[list[str]] = []
    with profile(
        activities=BOTH,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append([e.name() for e in device_events(p)]),
    ) as profiler:
        for _ in range(8):
            x.sin()
            profiler.step()
    assert seen == [["dml::sin"] * 2] * 2


def test_more_than_the_query_pools_hold():
    x = torch.ones(100, device="dml")
    with profile(activities=BOTH) as profiler:
        for _ in range(1000):
            x.sin()
    events = device_events(profiler)
    assert len(events) == 1000 and all(e.duration_ns() > 0 for e in events)


def test_backward_threads_keep_their_operators():
    x = torch.randn(32, 32, device="dml", requires_grad=True)
    (x @ x).sum().backward()
    with profile(activities=BOTH) as profiler:
        (x @ x).sum().backward()
    rows = {row.key: row for row in profiler.key_averages()}
    assert rows["MmBackward0"].device_time_total > 0
    assert rows["aten::mm"].count == 3 and rows["aten::mm"].self_device_time_total > 0


def test_a_lone_operator_runs_while_the_host_is_idle():
    """Without any further work the queue submits by itself."""
    x = torch.ones(100, device="dml")
    x.sin()
    with profile(activities=BOTH) as profiler:
        for _ in range(3):
            x.sin()
            with record_function("idle"):
                time.sleep(0.4)
    idle = sorted(
        (e.start_ns(), e.start_ns() + e.duration_ns())
        for e in profiler.profiler.kineto_results.events()
        if e.name() == "idle"
    )
    ran = sorted(e.start_ns() + e.duration_ns() for e in device_events(profiler))
    assert len(ran) == len(idle) == 3
    assert all(end < until for end, (_, until) in zip(ran, idle, strict=True))


def test_a_replay_of_a_graph_is_one_kernel_with_its_time(tmp_path: Path):
    weight, x = torch.randn(64, 64, device="dml"), torch.zeros(64, 64, device="dml")
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = (x @ weight).softmax(1) @ weight
    with profile(activities=BOTH) as profiler:
        x.fill_(1)
        for _ in range(3):
            graph.replay()
        y.cos()
    events = sorted(device_events(profiler), key=lambda e: e.start_ns())
    assert [e.name() for e in events] == ["dml::fill", *["dml::graph replay"] * 3, "dml::cos"]
    assert all(e.duration_ns() > 0 for e in events)
    assert all(a.start_ns() + a.duration_ns() <= b.start_ns() + 1 for a, b in pairwise(events))
    (row,) = [row for row in profiler.key_averages() if row.key == "dml::graph replay"]
    assert row.count == 3 and row.self_device_time_total > 0
    target = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(target))
    traced = json.loads(target.read_text(encoding="utf-8"))["traceEvents"]
    replays = [e for e in traced if e["name"] == "dml::graph replay"]
    assert [e["args"]["launches"] for e in replays] == [3] * 3 and {e["cat"] for e in replays} == {"kernel"}
    torch.testing.assert_close(y, (torch.ones_like(x) @ weight).softmax(1) @ weight)
