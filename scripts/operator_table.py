"""Write docs/operators.md from the results of PyTorch's OpInfo database on the device.

The results are JSON lines, one a task: `op`, `dtype`, `verdict` (pass, fail, unimplemented, error, timeout, crash,
skip), `fallback` (operators that ran on the CPU), `msg`. Every task that fails needs an explanation in the TOML
file; one that has none makes the script fail.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import tomllib

DTYPES = ["float32", "float16", "bfloat16", "int64", "bool"]
ROOT = Path(__file__).resolve().parents[1]
MARKS = {
    "pass": "native",
    "fail": "differs",
    "unimplemented": "no",
    "error": "error",
    "timeout": "slow",
    "crash": "crash",
}


def mark(task: dict[str, Any]) -> str:
    """What a cell says of a task."""
    verdict = task["verdict"]
    if verdict == "pass" and task["fallback"]:
        return "cpu"
    return MARKS.get(verdict, "")


def explanation(task: dict[str, Any], known: list[dict[str, Any]]) -> str | None:
    """The first explanation that names the task's operator and dtype."""
    for entry in known:
        if task["op"] in entry["operators"] and task["dtype"] in entry.get("dtypes", DTYPES):
            return str(entry["why"]).strip()
    return None


def table(tasks: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table: an operator a row, a dtype a column."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for task in tasks:
        cells[task["op"]][task["dtype"]] = mark(task)
    lines = ["| operator | " + " | ".join(DTYPES) + " |", "|---" * (len(DTYPES) + 1) + "|"]
    lines += [
        f"| {op} | " + " | ".join(row.get(dtype, "") for dtype in DTYPES) + " |"
        for op, row in sorted(cells.items(), key=lambda item: item[0].lower())
    ]
    return lines


def differences(tasks: list[dict[str, Any]], known: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The lines that explain what differs, and the tasks that nothing explains."""
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    missing = []
    for task in tasks:
        if task["verdict"] in ("fail", "error", "timeout", "crash"):
            why = explanation(task, known)
            if why is None:
                missing.append(f"{task['op']} {task['dtype']}: {task['verdict']}: {task['msg'][:200]}")
            else:
                reasons[why][task["op"]].append(task["dtype"])
    lines = []
    for why, operators in reasons.items():
        names = (f"`{op}` ({', '.join(dtypes)})" for op, dtypes in sorted(operators.items()))
        lines.append(f"- {why}: {'; '.join(names)}.")
    return lines, missing


def main() -> int:
    """Write the page; return 1 if a task that fails is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results, JSON lines")
    parser.add_argument("--explanations", type=Path, default=ROOT / "docs" / "operator_differences.toml")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "operators.md")
    parser.add_argument("--torch", default="2.11", help="the torch version that was tested (default: %(default)s)")
    parser.add_argument("--adapter", default="Mesa lavapipe", help="where it ran (default: %(default)s)")
    options = parser.parse_args()

    tasks = [json.loads(line) for line in options.results.read_text().splitlines() if line.strip()]
    tasks = [task for task in tasks if task.get("op") and task["verdict"] != "skip"]
    known = tomllib.loads(options.explanations.read_text())["difference"]
    lines, missing = differences(tasks, known)
    counts = Counter(mark(task) for task in tasks)
    text = [
        "# Operators",
        "",
        f"PyTorch's own OpInfo database, torch {options.torch}, on {options.adapter}: every sample of every operator,",
        "compared with the CPU, forward and (float32) backward. Made by `scripts/operator_table.py`; do not edit.",
        "",
        f"{len(tasks)} tasks: {counts['native']} native; {counts['cpu']} right through a fallback to the CPU (`cpu`:",
        "complex numbers, fft, most of linalg);",
        f"{counts['differs']} that differ from the CPU as explained below; {counts['no']} not supported (`no`);",
        f"{counts['error'] + counts['slow'] + counts['crash']} errors.",
        "",
        "## What differs, and why",
        "",
        *(lines or ["Nothing."]),
        "",
        "## The table",
        "",
        *table(tasks),
        "",
    ]
    if missing:
        print(
            f"{len(missing)} tasks have no explanation in {options.explanations}:", *missing, sep="\n", file=sys.stderr
        )
        return 1
    options.output.write_text("\n".join(text))
    print(f"{options.output}: {counts['native']} of {len(tasks)} native")
    return 0


if __name__ == "__main__":
    sys.exit(main())
