"""The results of a comparison."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch_dml.compare.judging import Error, Wrong


@dataclass
class Range:
    """The range of an operator's input."""

    text: str  # its dtype and shape
    minimum: float
    maximum: float
    nan: int
    infinite: int
    subnormal: int
    zero: int


@dataclass
class Call:
    """One call of an operator on the device, with the errors of the same call from the same inputs
    on other devices.
    """

    number: int
    step: int
    phase: str  # "forward", "backward", "step" or "" outside of these
    module: str
    operator: str
    shapes: str
    errors: dict[str, Error] = field(default_factory=dict)  # own errors, by device
    accumulated: dict[str, Error] = field(default_factory=dict)  # errors of the runs so far, by device
    wrong: str | None = None  # what float32 does not explain
    repeats: bool = True  # whether a second call with the same inputs gave the same bits
    note: str = ""  # why it was not compared


@dataclass
class Finding:
    """The first call with an unexplained error."""

    call: Call
    wrong: Wrong
    inputs: list[Range]
    script: str | None = None  # a file that reproduces it in isolation


@dataclass
class ModuleError:
    """The accumulated errors of a module's output, or of a parameter's gradient, in the first
    step.
    """

    name: str
    kind: str  # the class, or "gradient"
    errors: dict[str, Error]


@dataclass
class Drift:
    """The distance of the weights from those of the float64 run after a step, relative to their
    norm, by run.
    """

    step: int
    distances: dict[str, float]
    furthest: str = ""  # the parameter that is furthest beyond what the CPU's runs explain
    excess: float = 0.0  # by which factor


@dataclass
class Report:
    """The results of a comparison; `verdict` summarises them in a line."""

    model: str
    chosen: str  # why this model was chosen
    device: str
    device_name: str
    torch: str
    torch_dml: str
    seed: int
    steps: int
    calls: list[Call] = field(default_factory=list)
    modules: list[ModuleError] = field(default_factory=list)
    drift: list[Drift] = field(default_factory=list)
    finding: Finding | None = None
    unlike: Call | None = None  # the first call that gave other bits when it was repeated
    runs_alike: bool | None = None  # whether whole runs agree bit for bit; None where there was only one
    runs_detail: str = ""
    drift_allowed: float = 0.0  # as a multiple of the CPU's own
    fallbacks: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def standing_out(self) -> list[Call]:
        """Every call with an error that float32 does not explain."""
        return [call for call in self.calls if call.wrong is not None]

    @property
    def drift_unexplained(self) -> Drift | None:
        """The first step whose weights are further off than chaos explains."""
        return next((one for one in self.drift if one.excess > self.drift_allowed), None)

    @property
    def healthy(self) -> bool:
        """Whether there are no findings: no operator, no drift, and no difference between runs."""
        found = self.finding is not None or self.unlike is not None or self.drift_unexplained is not None
        return not found and self.runs_alike is not False

    @property
    def verdict(self) -> str:
        """The finding in a line; "none" if there is none."""
        parts = []
        if self.finding is not None:
            call = self.finding.call
            parts.append(f"{call.operator} {where(call)} is off by more than its precision explains")
        if self.unlike is not None:
            parts.append(f"{self.unlike.operator} {where(self.unlike)} gives other bits when it is repeated")
        if self.drift_unexplained is not None:
            one = self.drift_unexplained
            parts.append(f"the weights are {one.excess:.3g} times as far off after step {one.step} as chaos explains")
        if self.runs_alike is False and self.unlike is None:
            parts.append(f"two runs differ although no operator does: {self.runs_detail}")
        return "; ".join(parts) or "none"

    def to_dict(self) -> dict[str, Any]:
        """The report as types that JSON supports; infinities and NaN are text."""
        found = asdict(self)
        found |= {"verdict": self.verdict, "healthy": self.healthy}
        return _plain(found)  # type: ignore[no-any-return]

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a self-contained HTML page."""
        from torch_dml.compare import report_html

        Path(path).write_text(report_html.page(self), encoding="utf-8")


def where(call: Call) -> str:
    """The position of a call in the program."""
    place = f"in {call.module}" if call.module else "outside of the modules"
    return f"{place}, {call.phase or 'between'}, call {call.number} (step {call.step})"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
