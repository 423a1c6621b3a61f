"""torch.profiler with the device."""

from __future__ import annotations

import json

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def work() -> None:
    x = torch.ones(1000, device="dml", requires_grad=True)
    with record_function("a block"):
        (x * 2).sum().backward()
    x.grad.cpu()


@pytest.mark.parametrize("activities", [None, ACTIVITIES, ACTIVITIES[:1]], ids=["all", "both", "cpu"])
def test_operators_are_recorded(activities, tmp_path):
    with profile(activities=activities, record_shapes=True, with_stack=True) as profiler:
        work()
    names = {event.key for event in profiler.key_averages()}
    assert {"aten::mul", "aten::sum", "a block"} <= names
    assert "aten::mul" in profiler.key_averages().table(sort_by="self_cpu_time_total")
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_memory_is_recorded():
    with profile(activities=ACTIVITIES, profile_memory=True) as profiler:
        x = torch.empty(5 << 20, dtype=torch.uint8, device="dml")
        del x
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [e.nbytes() for e in events if e.device_type() == DeviceType.PrivateUse1]
    assert sizes == [5 << 20, -(5 << 20)]
    with profile(profile_memory=True) as profiler:
        y = torch.zeros(3 << 20, dtype=torch.uint8, device="dml")
    (empty,) = [e for e in profiler.key_averages() if e.key == "aten::empty"]
    assert empty.device_memory_usage == 3 << 20 and y.is_dml
    if not torch.cuda.is_available():  # with two accelerators torch's table shows CUDA
        assert "DML Mem" in profiler.key_averages().table()


def test_out_of_memory_while_profiling():
    with profile(profile_memory=True), pytest.raises(torch.OutOfMemoryError, match="65536"):
        torch.empty(1 << 46, dtype=torch.uint8, device="dml")


def test_a_schedule():
    ready = []
    plan = schedule(wait=1, warmup=1, active=2)
    with profile(
        activities=ACTIVITIES, schedule=plan, on_trace_ready=lambda p: ready.append(len(p.events()))
    ) as profiler:
        for _ in range(4):
            work()
            profiler.step()
    assert len(ready) == 1 and ready[0] > 0


def test_the_older_profiler_times_operators():
    with torch.autograd.profiler.profile(use_device="dml") as profiler:
        x = torch.ones(512, 512, device="dml")
        for _ in range(3):
            x = x @ x
    (matmul,) = [e for e in profiler.key_averages() if e.key == "aten::mm"]
    assert matmul.count == 3 and matmul.device_time_total > 0
