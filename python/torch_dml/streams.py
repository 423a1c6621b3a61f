"""Streams and events. A device runs its work in the order it was asked for: it has one stream."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from torch_dml.device import DeviceLike, index_of


class Stream(torch.Stream):
    """A stream of a dml device."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> Stream:
        """Make a stream on `device`, the current one when left out."""
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, device=torch.device("dml", index_of(device)), priority=priority)


class Event(torch.Event):
    """A mark in a stream, to wait for or to measure time with."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """Make an event; `enable_timing` allows `elapsed_time`."""
        return super().__new__(
            cls, device="dml", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the stream that work on a device goes to."""
    return torch.accelerator.current_stream(index_of(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """Return the stream that a device starts with."""
    return current_stream(device)


def set_stream(stream: torch.Stream) -> None:
    """Let work go to a stream from now on."""
    torch.accelerator.set_stream(stream)


@contextlib.contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Let work go to a stream inside the `with`; None changes nothing."""
    if stream is None:
        yield
        return
    with stream:
        yield
