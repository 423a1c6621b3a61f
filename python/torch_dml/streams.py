"""Streams and events.

A device runs its work in the order it was asked for, whatever the stream: streams of a device are
names of one queue. What is asked of a stream holds, and more: its work waits for that of the other
streams too, and so does `query`.

`Stream(...)` and `Event(...)` make torch.Stream and torch.Event: torch refuses subclasses of them
in places.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_dml.backend import DEVICE, DEVICE_TYPE
from torch_dml.device import DeviceLike, index_of


class _OfDevice(type):
    """Lets isinstance(x, Stream) tell a torch.Stream of a dml device, and the same for events."""

    base: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.base) and instance.device.type == DEVICE  # type: ignore[attr-defined]


class Stream(metaclass=_OfDevice):
    """A stream of a dml device."""

    base = torch.Stream

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> torch.Stream:  # type: ignore[misc]
        """Make a stream on `device`, the current one when left out."""
        if "stream_id" in kwargs:
            return torch.Stream(priority=priority, **kwargs)
        return torch.Stream(device=torch.device(DEVICE, index_of(device)), priority=priority)


class Event(metaclass=_OfDevice):
    """A mark in a stream, to wait for or to measure time with."""

    base = torch.Event

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        """Make an event; `enable_timing` allows `elapsed_time`."""
        return torch.Event(device=DEVICE, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the stream that work on a device goes to."""
    return torch.accelerator.current_stream(index_of(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the stream that a device starts with."""
    return torch.Stream(stream_id=0, device_index=index_of(device), device_type=DEVICE_TYPE)


def set_stream(stream: torch.Stream) -> None:
    """Let work go to a stream from now on."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """Lets work go to a stream, and to its device, inside the `with`; a stream of None changes
    nothing.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        """Take a stream, or None."""
        self.stream = stream

    def __enter__(self) -> None:
        """Make the stream current."""
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        """Make the stream that was current before current again."""
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Let work go to a stream inside the `with`; None changes nothing."""
    return StreamContext(stream)
