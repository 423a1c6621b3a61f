"""Work on a device that is captured once and replayed: one interface for the graphs of `torch.dml`
and
CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Graphed:
    """Calls a function without arguments whose effects and result are in tensors that persist.

    The first call runs the function, which creates lazily made objects (an optimizer's state). The
    second captures it as a graph; this and all later calls replay the graph. On devices without
    graphs every call runs the function. The results are bit-identical either way.
    """

    def __init__(
        self, function: Callable[[], Tensor], device: torch.device, enabled: bool, *generators: torch.Generator
    ) -> None:
        """Take the function, and the generators that it uses in addition to the device's default
        one.
        """
        self._function, self._generators = function, generators
        self._module: Any = getattr(torch, device.type) if enabled and device.type in ("cuda", "dml") else None
        self._graph: Any = None
        self._result: Tensor | None = None
        self._ran = False

    def __call__(self) -> Tensor:
        """Run or enqueue the work; return its result, which the next call may overwrite."""
        if self._module is None:
            return self._function()
        if not self._ran:
            self._ran = True
            return self._first()
        if self._graph is None:
            self._capture()
        self._graph.replay()
        assert self._result is not None
        return self._result

    def _first(self) -> Tensor:
        if self._module is not torch.cuda:
            return self._function()
        # CUDA: autograd remembers the stream on which gradients are first accumulated; a capture
        # may not wait for it.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            found = self._function()
        torch.cuda.current_stream().wait_stream(side)
        return found

    def _capture(self) -> None:
        graph = self._module.CUDAGraph() if self._module is torch.cuda else self._module.Graph()
        for generator in self._generators:
            if self._module is torch.cuda:
                graph.register_generator_state(generator)
        with self._module.graph(graph):
            self._result = self._function()
        self._graph = graph
