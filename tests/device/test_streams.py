"""Streams and events. All streams of a device are one queue, so the guarantees of one hold for
all.
"""

from __future__ import annotations

import threading
import time

import pytest
import torch


def some_work() -> torch.Tensor:
    x = torch.ones(256, 256, device="dml")
    for _ in range(20):
        x = x @ x * 1e-3
    return x


def test_streams_have_identities():
    one, other = torch.Stream(device="dml"), torch.dml.Stream()
    low, high = torch.Stream("dml", priority=0), torch.dml.Stream(priority=-1)
    default = torch.dml.default_stream()
    assert len({one, other, low, high, default}) == 5
    assert one == one and one != other and default == torch.dml.default_stream("dml:0")
    assert default.stream_id == 0 and one.device == torch.device("dml:0")
    assert isinstance(one, torch.dml.Stream) and isinstance(one, torch.Stream)
    assert not isinstance(torch.dml.Event(), torch.dml.Stream)
    assert "dml" in repr(one)
    again = torch.dml.Stream(stream_id=one.stream_id, device_index=0, device_type=one.device_type)
    assert again == one


def test_the_current_stream():
    default = torch.dml.default_stream()
    stream, inner = torch.Stream(device="dml"), torch.dml.Stream()
    assert torch.dml.current_stream() == torch.accelerator.current_stream() == default
    with stream:
        assert torch.accelerator.current_stream() == stream
        with torch.dml.stream(inner):
            assert torch.dml.current_stream() == inner
            assert torch.dml.default_stream() == default
        with torch.dml.StreamContext(None):
            assert torch.dml.current_stream() == stream
    assert torch.dml.current_stream() == default
    torch.accelerator.set_stream(stream)
    assert torch.dml.current_stream(0) == stream
    torch.dml.set_stream(default)
    assert torch.dml.current_stream("dml:0") == default


def test_the_current_stream_is_a_threads_own():
    seen = []
    with torch.dml.Stream():
        thread = threading.Thread(target=lambda: seen.append(torch.dml.current_stream().stream_id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_a_stream_of_another_device_brings_the_device():
    stream = torch.dml.Stream("dml:1")
    assert stream.device == torch.device("dml:1")
    with torch.dml.stream(stream):
        assert torch.dml.current_device() == 1 and torch.ones(1, device="dml").get_device() == 1
        assert torch.dml.current_stream() == stream and torch.dml.current_stream(0) != stream
    assert torch.dml.current_device() == 0


def test_order_across_streams():
    a, b = torch.dml.Stream(), torch.dml.Stream()
    with a:
        x = torch.zeros(1 << 16, device="dml")
        for _ in range(50):
            x += 1
    b.wait_stream(a)
    with b:
        y = x * 2
        x.record_stream(b)
    event = b.record_event()
    assert isinstance(event, torch.Event)
    torch.dml.current_stream().wait_event(event)
    assert y.eq(100).all().item()
    for stream in (a, b):
        stream.synchronize()
        assert stream.query()


def test_memory_freed_in_one_stream_is_not_taken_too_soon_by_another():
    a, b = torch.dml.Stream(), torch.dml.Stream()
    for _ in range(20):
        with a:
            x = torch.full((1 << 14,), 3.0, device="dml")
            y = x * 2
        with b:
            del x
            torch.full((1 << 14,), 7.0, device="dml")
        assert y.eq(6).all().item()


def test_events():
    event = torch.dml.Event()
    assert event.query()  # nothing was recorded
    event.synchronize()
    some_work()
    event.record()
    event.wait()
    event.wait(torch.dml.Stream())
    event.synchronize()
    assert event.query()
    event.record(torch.dml.Stream())
    event.synchronize()
    assert isinstance(event, torch.dml.Event) and event.device == torch.device("dml:0")
    assert torch.Event("dml").device.type == "dml"


def test_query_becomes_true_without_waiting():
    some_work()
    event = torch.dml.current_stream().record_event()
    deadline = time.monotonic() + 60
    while not event.query():
        assert time.monotonic() < deadline
    assert torch.dml.current_stream().query()


def test_elapsed_time_is_milliseconds():
    start, end = (torch.Event("dml", enable_timing=True) for _ in range(2))
    some_work().sum().item()  # compiled
    began = time.perf_counter()
    start.record()
    for _ in range(5):
        some_work()
    end.record()
    end.synchronize()
    elapsed = (time.perf_counter() - began) * 1e3
    assert 0 < start.elapsed_time(end) <= elapsed * 1.05
    start.record()  # again
    end.record()
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < elapsed


def test_what_elapsed_time_refuses():
    timed, other, plain = torch.dml.Event(enable_timing=True), torch.dml.Event(enable_timing=True), torch.dml.Event()
    with pytest.raises(ValueError, match="recorded"):
        timed.elapsed_time(other)
    timed.record()
    plain.record()
    torch.dml.synchronize()
    with pytest.raises(ValueError, match="enable_timing=True"):
        timed.elapsed_time(plain)
    elsewhere = torch.Event("dml:1", enable_timing=True)
    elsewhere.record(torch.dml.default_stream(1))
    elsewhere.synchronize()
    with pytest.raises((RuntimeError, ValueError), match="device"):
        timed.elapsed_time(elsewhere)


def test_events_cannot_leave_the_process():
    event = torch.dml.Event(interprocess=True)
    event.record()
    with pytest.raises(NotImplementedError):
        event.ipc_handle()


def test_accelerator():
    accelerator = torch.accelerator
    assert accelerator.current_accelerator() == torch.device("dml") and accelerator.is_available()
    assert accelerator.device_count() == torch.dml.device_count() >= 2
    assert accelerator.current_device_index() == 0
    some_work()
    accelerator.synchronize()
    accelerator.synchronize("dml:0")
    accelerator.synchronize(1)
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1
    accelerator.set_device_index(0)
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated() == torch.dml.memory_allocated()
    assert accelerator.max_memory_reserved() == accelerator.memory_reserved() == torch.dml.memory_reserved()
    assert torch.float16 in accelerator.get_device_capability()["supported_dtypes"]
    for refuse in (accelerator.set_device_index, accelerator.synchronize, torch.dml.synchronize, torch.dml.Stream):
        with pytest.raises((RuntimeError, ValueError), match="31"):
            refuse(31)
    assert accelerator.current_device_index() == 0
