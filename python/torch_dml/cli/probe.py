"""The steps that `doctor` runs in a child process. Each prints one line of JSON, last."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def run(step: str) -> int:
    """Run one step, print its result, and return the exit status."""
    try:
        result = {"ok": True, "value": _STEPS[step]()}
    except Exception as error:
        result = {"ok": False, "error": f"{error}" or type(error).__name__, "type": type(error).__name__}
    print(json.dumps(result))
    return 0


def _engine() -> str:
    from torch_dml import engine

    engine.library()
    return engine.version()


def _devices() -> dict[str, Any]:
    from torch_dml import engine
    from torch_dml.cli.devices import descriptions

    engine.device_count()
    return {"devices": descriptions(), "unsupported": engine.unsupported_adapters()}


def _kernels() -> list[str]:
    """Compute 1 + 2 on every device with the engine alone; return the error for each, "" if there
    is none.
    """
    from torch_dml import engine

    problems = []
    for index in range(engine.device_count()):
        try:
            engine.call("dml_self_test", index)
            problems.append("")
        except Exception as error:
            problems.append(str(error))
    return problems


def _torch() -> str:
    import torch

    return str(torch.__version__)


def _plugin() -> str:
    import torch_dml

    torch_dml.load()
    return ", ".join(torch_dml.supported_torch())


def _tensors() -> list[str]:
    """Compute 1 + 2 on every device with torch."""
    import torch

    import torch_dml
    from torch_dml import engine

    torch_dml.load()
    problems = []
    for index in range(engine.device_count()):
        try:
            three = torch.tensor([1.0], device=f"dml:{index}") + torch.tensor([2.0], device=f"dml:{index}")
            problems.append("" if three.item() == 3.0 else f"1 + 2 gave {three.item()}")
        except Exception as error:
            problems.append(str(error))
    return problems


def _operators() -> dict[str, Any]:
    """Return how many operators the plugin registered, and the names of those whose schemas this
    torch has changed.
    """
    from torch_dml import operators

    report = operators.report()
    return {"registered": report.registered, "changed": [changed.name for changed in report.changed]}


_STEPS: dict[str, Callable[[], Any]] = {
    "engine": _engine,
    "devices": _devices,
    "kernels": _kernels,
    "torch": _torch,
    "plugin": _plugin,
    "tensors": _tensors,
    "operators": _operators,
}
