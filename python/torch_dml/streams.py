"""Streams and events.

A device runs its work in order, whatever the stream: all streams of a device are names of one
queue. Guarantees of streams hold, and more: a stream's work also waits for that of other streams,
and so does `query`.

`Stream(...)` and `Event(...)` create torch.Stream and torch.Event, since torch refuses subclasses
of them in some places.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_dml.backend import DEVICE, DEVICE_TYPE
from torch_dml.device import DeviceLike, index_of


class _OfDevice(type):
    """Lets isinstance(x, Stream) recognise a torch.Stream of a dml device, and the same for
    events.
    """

    base: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.base) and instance.device.type == DEVICE  # type: ignore[attr-defined]


class Stream(metaclass=_OfDevice):
    """A stream of a dml device."""

    base = torch.Stream

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> torch.Stream:  # type: ignore[misc]
        """Create a stream on `device`, the current one by default."""
        if "stream_id" in kwargs:
            return torch.Stream(priority=priority, **kwargs)
        return torch.Stream(device=torch.device(DEVICE, index_of(device)), priority=priority)


class Event(metaclass=_OfDevice):
    """A marker in a stream, for waiting or for measuring time."""

    base = torch.Event

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        """Create an event; `enable_timing` allows `elapsed_time`."""
        return torch.Event(device=DEVICE, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the current stream of a device."""
    return torch.accelerator.current_stream(index_of(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the default stream of a device."""
    return torch.Stream(stream_id=0, device_index=index_of(device), device_type=DEVICE_TYPE)


def set_stream(stream: torch.Stream) -> None:
    """Make a stream current."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """Makes a stream, and its device, current inside the `with`; a stream of None changes
    nothing.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        """`stream` is a stream or None."""
        self.stream = stream

    def __enter__(self) -> None:
        """Make the stream current."""
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        """Make the previously current stream current again."""
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Make a stream current inside the `with`; None changes nothing."""
    return StreamContext(stream)
