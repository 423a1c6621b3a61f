"""The engine's overloads that cases reach on the device, directly or indirectly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import cases, samples
from .calls import execute
from .schemas import overloads


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every overload that is called."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the name, and call the overload."""
        self.names.add(str(function).removeprefix("aten.").removesuffix(".default"))
        return function(*args, **(kwargs or {}))


def reached(numbers: Iterable[int], device: torch.device) -> set[str]:
    """The names of the engine's overloads that these cases call."""
    recorder = Recorder()
    for number in numbers:
        try:
            call = cases.make(number).call
        except samples.NoSamples:
            continue
        with recorder:
            execute(call, device)
    return recorder.names & set(overloads())
