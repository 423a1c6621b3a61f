"""Writes docs/reference/libraries.md."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable

from .cases import LIBRARIES
from .judging import Known, Verdict

HEAD = """# Libraries

Programs of the libraries that people use, as their users write them, in tiny configurations with random weights: what
they compute on the device is compared with what they compute on the CPU. Made by `make test-libraries`; do not edit.

- `cuda`: started with `python -m torch_dml run`, the device in CUDA's place ([guide](../guide/from-cuda.md)). The
  program says `"cuda"`, or leaves the choice to its library.
- `dml`: started with `python`, the device found by `import torch`. The program leaves the choice to PyTorch or its
  library, which `torch_dml.integrations` helps to find it.

"works": on the device, the CPU's numbers, no operator on the CPU. An empty cell: the program asks for CUDA by name, and
so has no second mode. The programs are in [tests/libraries/programs](../../tests/libraries/programs).

"""


def render(verdicts: Iterable[Verdict], known: Iterable[Known], adapter: str) -> str:
    """Return the page with the results of all cases on an adapter."""
    verdicts = list(verdicts)
    cells: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        cells.setdefault(verdict.case.name, {})[verdict.mode] = verdict
    reasons: list[str] = []
    lines = ["| library | program | what it does | `cuda` | `dml` |", "|---|---|---|---|---|"]
    for row in cells.values():
        case = next(iter(row.values())).case
        name = LIBRARIES[case.library]
        program = " ".join((case.program.stem.removeprefix(f"{case.library}_"), *case.arguments))
        marks = [_cell(row.get(mode), reasons) for mode in ("cuda", "dml")]
        lines.append(f"| {name} | {program} | {case.what} | {' | '.join(marks)} |")
    notes = [f"{index}. {reason}" for index, reason in enumerate(reasons, 1)]
    notes += [
        f"- {', '.join(f'`{name}`' for name in one.fallbacks)}: {one.why}"
        for one in known
        if any(name in one.fallbacks and one.covers(v.case, v.mode) for v in verdicts for name in v.fallbacks)
    ]
    parts = [f"{HEAD}{_versions()}, on {adapter}.\n", "\n".join(lines) + "\n"]
    if notes:
        parts.append("## Why\n\n" + "\n".join(notes) + "\n")
    return "\n".join(parts)


def _versions() -> str:
    versions = []
    for name in sorted(set(LIBRARIES.values())):
        try:
            versions.append(f"{name} {importlib.metadata.version(name).partition('+')[0]}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(versions)


def _cell(verdict: Verdict | None, reasons: list[str]) -> str:
    if verdict is None:
        return ""
    if verdict.fault:
        reason = verdict.why or f"not explained: {' '.join(verdict.fault.split())[-200:]}"
        if reason not in reasons:
            reasons.append(reason)
        return f"no ({reasons.index(reason) + 1})"
    if verdict.fallbacks:
        return f"falls back: {', '.join(f'`{name}`' for name in verdict.fallbacks)}"
    return "works"
