"""The registration of the engine's operators in the running torch."""

from __future__ import annotations

import json
from dataclasses import dataclass

from torch_dml import loader


@dataclass(frozen=True)
class ChangedSchema:
    """An operator whose schema in the running torch differs from the engine's: it runs on the
    CPU.
    """

    engine: str
    torch: str

    @property
    def name(self) -> str:
        """The overload, as in aten::add.Tensor."""
        return self.engine.partition("(")[0]


@dataclass(frozen=True)
class OperatorReport:
    """The engine's operators in the running torch, by overload name."""

    registered: int
    """The number of operators registered for the device."""
    changed: tuple[ChangedSchema, ...]
    """Operators whose schema differs: not registered, they fall back to the CPU."""
    unknown: tuple[str, ...]
    """Operators that this torch does not have."""
    composite: tuple[str, ...]
    """Operators that are composite in this torch."""


def report() -> OperatorReport:
    """Return the plugin's comparison of the engine's operators with torch's; load the plugin if
    needed.
    """
    found = json.loads(loader.plugin().dml_plugin_operators_json())
    return OperatorReport(
        registered=found["registered"],
        changed=tuple(ChangedSchema(**schemas) for schemas in found["changed"]),
        unknown=tuple(found["unknown"]),
        composite=tuple(found["composite"]),
    )
