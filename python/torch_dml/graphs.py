"""Graphs: work that is captured once and replayed at almost no cost for the host, like torch.cuda's
graphs.

docs/guide/graphs.md explains how to use them and what can be captured.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from torch_dml import engine
from torch_dml.backend import DEVICE
from torch_dml.device import current_device, is_available
from torch_dml.graphed import make_graphed_callables

__all__ = [
    "Graph",
    "GraphPool",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

# The threads that are capturing. The hook of optimizers' steps reads this: a hook that is added and
# removed with each capture would change the hooks while other threads step.
_capturing: list[int] = []


def is_current_stream_capturing() -> bool:
    """Return whether this thread is capturing a graph on the current device."""
    return is_available() and engine.is_capturing(torch.accelerator.current_device_index())


class GraphPool:
    """Memory from which graphs allocate while they are captured.

    Graphs may share a pool if they are replayed in the order in which they were captured, and if
    the outputs of each are used before the next replay, since one graph may overwrite the memory of
    another.
    """

    def __init__(self, device: int) -> None:
        """Create a pool on the device with this index; it allocates no memory yet."""
        handle = ctypes.c_uint64(0)
        engine.call("dml_graph_pool_new", device, ctypes.byref(handle))
        self._handle = handle.value
        _free_with(self, "dml_graph_pool_free", handle.value)


def graph_pool_handle() -> GraphPool:
    """Return a memory pool on the current device, which several graphs can share."""
    return GraphPool(current_device())


class Graph:
    """Captured work of one device; the counterpart of torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        """Create an empty graph."""
        self._capture = 0
        self._graph = 0
        self._pool: GraphPool | None = None
        self._while_capturing = contextlib.ExitStack()
        self._finalizer: Any = None
        self._replay = engine.library().dml_graph_replay

    def capture_begin(self, pool: GraphPool | None = None, capture_error_mode: str = "thread_local") -> None:
        """Begin to capture what this thread does on the current device; :class:`graph` does so in a
        `with`.

        `pool` is one that :func:`graph_pool_handle` or another graph's `pool` returned. Errors
        always belong to the capturing thread alone: what CUDA calls "thread_local"; the other modes
        are accepted and mean the same.
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed", "default"):
            raise ValueError(f"unknown capture_error_mode {capture_error_mode!r}")
        if self._capture or self._graph:
            raise RuntimeError("this graph holds a capture already: reset() it first, or make another one")
        pool = GraphPool(current_device()) if pool is None else pool
        handle = ctypes.c_uint64(0)
        engine.call("dml_graph_begin", current_device(), pool._handle, ctypes.byref(handle))
        self._own("dml_graph_discard", handle.value)
        self._capture, self._pool = handle.value, pool
        # Only this thread is captured: a backward pass has to run on it, and not on the threads of
        # autograd.
        threads = torch._C._is_multithreading_enabled()  # type: ignore[attr-defined]
        self._while_capturing.callback(torch._C._set_multithreading_enabled, threads)  # type: ignore[attr-defined]
        torch._C._set_multithreading_enabled(False)  # type: ignore[attr-defined]
        thread = threading.get_ident()
        _capturing.append(thread)
        self._while_capturing.callback(_capturing.remove, thread)

    def capture_end(self) -> None:
        """End the capture, on the thread that began it; raise an error if something could not be
        captured.
        """
        if not self._capture:
            raise RuntimeError("no capture of this graph is in progress")
        capture, self._capture = self._capture, 0
        self._disown()
        self._while_capturing.close()
        handle = ctypes.c_uint64(0)
        try:
            engine.call("dml_graph_end", capture, ctypes.byref(handle))
        except BaseException:
            self._pool = None
            raise
        self._graph = handle.value
        self._own("dml_graph_free", handle.value)

    def replay(self) -> None:
        """Enqueue the captured work, after everything that was enqueued before."""
        status = self._replay(self._graph)
        if status != 0:
            raise engine.error_of("dml_graph_replay", status)

    def reset(self) -> None:
        """Discard the captured work and release its memory; tensors in that memory remain valid. A
        capture in progress is discarded.
        """
        self._while_capturing.close()
        if self._finalizer is not None:
            self._finalizer()
        self._capture = self._graph = 0
        self._finalizer = self._pool = None

    def pool(self) -> GraphPool:
        """Return the pool of the graph's memory, for other graphs to share."""
        if self._pool is None:
            raise RuntimeError("a graph has a pool from its capture on")
        return self._pool

    def stats(self) -> dict[str, int]:
        """Return how many launches were captured (`captured`), and how many launches and barriers a
        replay has.

        The latter are `launches`, after consecutive pointwise launches were fused, and `barriers`;
        `barriers_in_order` is the number of barriers without reordering.
        """
        return engine.graph_stats(self._graph)

    def _own(self, free: str, handle: int) -> None:
        self._finalizer = _free_with(self, free, handle)

    def _disown(self) -> None:
        self._finalizer.detach()
        self._finalizer = None


class graph:
    """Context manager that captures what this thread does on the current device into a
    :class:`Graph`.

    An exception in the block discards the capture. `stream` is accepted for compatibility with
    CUDA: a device has one stream.
    """

    def __init__(
        self,
        graph: Graph,
        pool: GraphPool | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "thread_local",
    ) -> None:
        """`graph` is the graph to fill, `pool` optionally the memory pool that it shares."""
        self._graph, self._pool, self._mode = graph, pool, capture_error_mode
        self._stream: Any = contextlib.nullcontext() if stream is None else stream

    def __enter__(self) -> None:
        """Begin the capture."""
        self._stream.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException:
            self._stream.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *_: Any) -> None:
        """End the capture, or discard it after an exception."""
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                self._graph.reset()
        finally:
            self._stream.__exit__(None, None, None)


def _free_with(owner: Any, free: str, handle: int) -> Any:
    """Free a handle when its owner is destroyed; not at the process's end."""
    finalizer = weakref.finalize(owner, getattr(engine.library(), free), handle)
    finalizer.atexit = False
    return finalizer


def _check_optimizer(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Refuse to capture a step whose number is counted by the host: each replay would repeat the
    same step number. What torch.compile makes of a step counts on the device.
    """
    if torch.compiler.is_compiling():
        return
    if threading.get_ident() not in _capturing or not is_current_stream_capturing():
        return
    for group in optimizer.param_groups:
        counted = "capturable" in group and not group["capturable"] and not group.get("fused")
        if counted and any(parameter.device.type == DEVICE for parameter in group["params"]):
            name = type(optimizer).__name__
            raise RuntimeError(f"a graph cannot capture a step of {name} that is not made with capturable=True")


register_optimizer_step_pre_hook(_check_optimizer)
