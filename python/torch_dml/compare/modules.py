"""The module to which a call belongs, also in the backward pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

Finished = Callable[[str, nn.Module, Any], None]


class Modules:
    """Follows a model's modules while it runs. `finished` is called with each module's name, the
    module and its output; `running` means that the model's call has already begun.

    Autograd numbers its nodes in the order in which they are created, so the nodes of a module have
    the numbers between its beginning and its end.
    """

    def __init__(self, model: nn.Module, finished: Finished, *, running: bool = False) -> None:
        """Follow the model from now on."""
        self._finished = finished
        self._names = {id(module): name or "(model)" for name, module in model.named_modules()}
        self._running: list[str] = []
        self._from: list[int] = []
        self._owner: list[str] = []
        self._handles: list[RemovableHandle] = []
        for module in model.modules():
            self._handles.append(module.register_forward_pre_hook(self._begin))
            self._handles.append(module.register_forward_hook(self._end, always_call=True))
        if running:  # Its own hook comes too late for this call.
            self._begin(model, None)

    def remove(self) -> None:
        """Stop following the model."""
        for handle in self._handles:
            handle.remove()

    def restart(self) -> None:
        """Discard what belongs to earlier steps."""
        self._from.clear()
        self._owner.clear()

    def current(self) -> tuple[str, str]:
        """The phase, "forward", "backward" or "", and the name of the running module, which may be
        "".
        """
        node = torch._C._current_autograd_node()
        if self._running:
            return "forward" if node is None else "backward", self._running[-1]
        if node is None:
            return "", ""
        at = bisect_right(self._from, node._sequence_nr()) - 1
        # Nodes that accumulate the gradients of leaves have the highest of all numbers.
        return "backward", self._owner[at] if at >= 0 and "AccumulateGrad" not in node.name() else ""

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        self._running.append(self._names.get(id(module), ""))
        self._mark()

    def _end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        name = self._running.pop() if self._running else ""
        self._mark()
        self._finished(name, module, output)

    def _mark(self) -> None:
        self._from.append(torch._C._autograd._get_sequence_nr())
        self._owner.append(self._running[-1] if self._running else "")
