"""What became of the engine's operators in the running torch."""

from __future__ import annotations

import json
from dataclasses import dataclass

from torch_dml import loader


@dataclass(frozen=True)
class ChangedSchema:
    """An operator that the running torch has with another schema than the engine: it runs on the
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
    """How many run on the device."""
    changed: tuple[ChangedSchema, ...]
    """Those whose schema differs: not registered, they fall back to the CPU."""
    unknown: tuple[str, ...]
    """Those that this torch does not have."""
    composite: tuple[str, ...]
    """Those that this torch composes of others by itself."""


def report() -> OperatorReport:
    """Return what the plugin found when it compared the engine's operators with torch's; load it if
    needed.
    """
    found = json.loads(loader.plugin().dml_plugin_operators_json())
    return OperatorReport(
        registered=found["registered"],
        changed=tuple(ChangedSchema(**schemas) for schemas in found["changed"]),
        unknown=tuple(found["unknown"]),
        composite=tuple(found["composite"]),
    )
