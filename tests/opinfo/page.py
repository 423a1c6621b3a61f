"""docs/reference/operators.md: the results of a run of all tasks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from .differences import Difference, explanation
from .results import Result, Subject, Verdict
from .tasks import COMMON_DTYPES, DTYPES, Task

NATIVE, FALLBACK = "native", "cpu"
MARKS = {
    Verdict.FAIL: "differs",
    Verdict.UNIMPLEMENTED: "no",
    Verdict.ERROR: "error",
    Verdict.TIMEOUT: "slow",
    Verdict.CRASH: "crash",
}

# The beginning of a task's message if it is about a sample.
SAMPLE = re.compile(r"^sample \d+: ")

# What `tests/package/test_schemas.py` proves for each torch with which it is run.
SCHEMAS = [
    "Every operator carries its schema, which is compared with the running torch's when the device loads: one whose",
    "schema differs runs on the CPU, and `python -m torch_dml doctor` names it. Compared with torch 2.11, 2.12, 2.13,",
    "2.14 and 2.15: none differs. (`_cdist_backward` and `_pdist_backward` are listed with two schemas each.)",
]


def mark(result: Result) -> str:
    """The cell of the table for a result; empty if there was nothing to compare with."""
    if result.verdict is Verdict.PASS:
        return NATIVE if result.native else FALLBACK
    return MARKS.get(result.verdict, "")


def render(results: Iterable[Result], known: list[Difference], subject: Subject) -> str:
    """The text of the page."""
    results = sorted(results, key=lambda result: _row_order(result.task))
    lines = [
        "# Operators",
        "",
        f"PyTorch's own OpInfo database, torch {subject.torch}, on {subject.adapter}: every sample of every operator,",
        "compared with the CPU, forward and (float32) backward. Made by `make opinfo`; do not edit.",
        "",
        "A task is an operator and a dtype: `native` if every sample is right and nothing ran on the CPU, `cpu` if it",
        "is right and something did, `no` if it is not supported. Where the CPU cannot do it either, there is nothing",
        "to compare with, and the task is never native: the most that can be are those of the column `possible`.",
        "",
        *_counts(results),
        "",
        *SCHEMAS,
        "",
        "## What differs, and why",
        "",
        *(_reasons(results, known) or ["Nothing."]),
        "",
        "## What ran on the CPU",
        "",
        *(_on_cpu(results) or ["Nothing."]),
        "",
        "## What there is nothing to compare with",
        "",
        *(_skipped(results) or ["Nothing."]),
        "",
        "## The table",
        "",
        *_table(result for result in results if mark(result)),
        "",
    ]
    return "\n".join(lines)


def read_marks(path: Path) -> dict[Task, str]:
    """The cells of the page's table, the inverse of `render`; empty if there is no page yet."""
    if not path.exists():
        return {}
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


def _counts(results: list[Result]) -> list[str]:
    """A row for each dtype, and for the groups of dtypes."""
    groups = {**{dtype: (dtype,) for dtype in DTYPES}, ", ".join(COMMON_DTYPES): COMMON_DTYPES, "all": DTYPES}
    marks = [NATIVE, FALLBACK, *MARKS.values()]
    lines = [
        "| dtypes | tasks | possible | " + " | ".join(marks) + " |",
        "|---" * (len(marks) + 3) + "|",
    ]
    for name, dtypes in groups.items():
        counts = Counter(mark(result) for result in results if result.task.dtype in dtypes)
        cells = [counts.total(), counts.total() - counts[""], *(counts[text] for text in marks)]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return lines


def _reasons(results: Iterable[Result], known: list[Difference]) -> list[str]:
    found = ((explanation(result.task, known), result.task) for result in results if result.differs)
    return _grouped((difference.why, task) for difference, task in found if difference is not None)


def _on_cpu(results: Iterable[Result]) -> list[str]:
    """The operators that fell back, and the tasks in which they did."""
    tasks = ((result.task, result.fallbacks) for result in results if mark(result) == FALLBACK)
    return _grouped((", ".join(f"`{name}`" for name in sorted(names)), task) for task, names in tasks)


def _skipped(results: Iterable[Result]) -> list[str]:
    """The first sentence of the error of the CPU, or of OpInfo, for the first sample: results
    contain the beginning of a message.
    """
    tasks = (result for result in results if not mark(result))
    said = ((SAMPLE.sub("", result.message), result.task) for result in tasks)
    return _grouped((text.partition(". ")[0].removesuffix(".") or "no samples", task) for text, task in said)


def _grouped(tasks: Iterable[tuple[str, Task]]) -> list[str]:
    """A line for each reason, with its operators and dtypes."""
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for reason, task in tasks:
        reasons[reason][task.operator].append(task.dtype)
    return [
        f"- {reason}: " + "; ".join(f"`{name}` ({', '.join(dtypes)})" for name, dtypes in operators.items()) + "."
        for reason, operators in reasons.items()
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
