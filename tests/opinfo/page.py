"""docs/operators.md: what a run of all tasks found."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from .differences import Difference, explanation
from .results import Result, Subject, Verdict
from .tasks import DTYPES, Task

NATIVE, FALLBACK = "native", "cpu"
MARKS = {
    Verdict.FAIL: "differs",
    Verdict.UNIMPLEMENTED: "no",
    Verdict.ERROR: "error",
    Verdict.TIMEOUT: "slow",
    Verdict.CRASH: "crash",
}

# What `tests/test_schemas.py` proves of each torch that it is run on.
SCHEMAS = [
    "Every operator carries its schema, which is compared with the running torch's when the device loads: one whose",
    "schema differs runs on the CPU, and `python -m torch_dml doctor` names it. Compared with torch 2.11, 2.12, 2.13,",
    "2.14 and 2.15: none differs. (`_cdist_backward` and `_pdist_backward` are listed with two schemas each.)",
]


def mark(result: Result) -> str:
    """What a cell of the table says of a result; nothing where there was nothing to compare with."""
    if result.verdict is Verdict.PASS:
        return NATIVE if result.native else FALLBACK
    return MARKS.get(result.verdict, "")


def render(results: Iterable[Result], known: list[Difference], subject: Subject) -> str:
    """The text of the page."""
    results = sorted((result for result in results if mark(result)), key=lambda result: _row_order(result.task))
    counts = Counter(mark(result) for result in results)
    errors = sum(counts[MARKS[verdict]] for verdict in (Verdict.ERROR, Verdict.TIMEOUT, Verdict.CRASH))
    lines = [
        "# Operators",
        "",
        f"PyTorch's own OpInfo database, torch {subject.torch}, on {subject.adapter}: every sample of every operator,",
        "compared with the CPU, forward and (float32) backward. Made by `make opinfo`; do not edit.",
        "",
        f"{len(results)} tasks: {counts[NATIVE]} native;",
        f"{counts[FALLBACK]} right through a fallback to the CPU (`cpu`: most of linalg);",
        f"{counts[MARKS[Verdict.FAIL]]} that differ from the CPU as explained below;",
        f"{counts[MARKS[Verdict.UNIMPLEMENTED]]} not supported (`no`);",
        f"{errors} errors.",
        "",
        *SCHEMAS,
        "",
        "## What differs, and why",
        "",
        *(_reasons(results, known) or ["Nothing."]),
        "",
        "## The table",
        "",
        *_table(results),
        "",
    ]
    return "\n".join(lines)


def read_marks(path: Path) -> dict[Task, str]:
    """The cells of the page's table, the inverse of `render`."""
    _, _, table = path.read_text().partition("## The table")
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {
        Task(operator, dtype): cell
        for operator, *cells in rows
        for dtype, cell in zip(header[1:], cells, strict=True)
        if cell
    }


def read_torch(path: Path) -> str:
    """The torch that the page is about: "2.11"."""
    found = re.search(r"OpInfo database, torch ([\d.]+),", path.read_text())
    assert found is not None, f"{path} names no torch"
    return found.group(1)


def _reasons(results: Iterable[Result], known: list[Difference]) -> list[str]:
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        difference = explanation(result.task, known)
        if result.differs and difference is not None:
            reasons[difference.why][result.task.operator].append(result.task.dtype)
    return [
        f"- {why}: " + "; ".join(f"`{name}` ({', '.join(dtypes)})" for name, dtypes in operators.items()) + "."
        for why, operators in reasons.items()
    ]


def _table(results: Iterable[Result]) -> list[str]:
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for result in results:
        rows[result.task.operator][result.task.dtype] = mark(result)
    return [
        "| operator | " + " | ".join(DTYPES) + " |",
        "|---" * (len(DTYPES) + 1) + "|",
        *(f"| {name} | " + " | ".join(row.get(dtype, "") for dtype in DTYPES) + " |" for name, row in rows.items()),
    ]


def _row_order(task: Task) -> tuple[str, str, int]:
    return task.operator.lower(), task.operator, DTYPES.index(task.dtype)
