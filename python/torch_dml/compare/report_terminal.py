"""A report as tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from torch_dml.compare.judging import Error
from torch_dml.compare.report import Call, Report, where


def show(report: Report, console: Console, rows: int) -> None:
    """Print the operators and modules with the largest errors, the drift, and the finding; at most
    `rows` of each.
    """
    for part in _parts(report, rows):
        console.print(part)


def operators(report: Report) -> list[tuple[str, list[Call]]]:
    """The calls by operator: first those with findings, then by the ratio of the device's error to
    the CPU's.
    """
    found: dict[str, list[Call]] = {}
    for call in report.calls:
        if call.errors:
            found.setdefault(call.operator, []).append(call)
    return sorted(
        found.items(), key=lambda entry: (not any(call.wrong for call in entry[1]), -_relative(entry[1], report.device))
    )


def worst(calls: Iterable[Call], run: str) -> Error:
    """The largest error of some calls in a run."""
    largest = Error()
    for call in calls:
        if run in call.errors:
            largest.widen(call.errors[run])
    return largest


def runs_text(report: Report) -> str:
    """Whether runs agree bit for bit."""
    if report.runs_alike is None:
        return "not compared"
    return "all runs agree" if report.runs_alike else report.runs_detail


def _relative(calls: list[Call], run: str) -> float:
    return worst(calls, run).relative


def _parts(report: Report, rows: int) -> Iterable[RenderableType]:
    yield (
        f"[bold]{escape(report.model)}[/] ({escape(report.chosen)}) on {report.device}, "
        f"{escape(report.device_name)}: {report.steps} step(s), {len(report.calls):,} calls, seed {report.seed}"
    )
    yield _operator_table(report, rows)
    if report.modules:
        yield _module_table(report, rows)
    if report.drift:
        yield _drift_table(report)
    yield f"bit for bit: {escape(runs_text(report))}"
    skipped = [call for call in report.calls if call.note]
    if skipped:
        yield f"not compared: {len(skipped)} calls, the first {skipped[0].operator}: {escape(skipped[0].note)}"
    if report.fallbacks:
        yield f"on the CPU for want of a kernel: {escape(', '.join(report.fallbacks))}"
    for note in report.notes:
        yield f"note: {escape(note)}"
    if report.finding is not None:
        yield from _finding(report)
    style = "green" if report.healthy else "red"
    yield f"[bold]stands out:[/] [{style}]{escape(report.verdict)}[/]"


def _finding(report: Report) -> Iterable[RenderableType]:
    finding = report.finding
    assert finding is not None
    yield f"[bold red]{escape(finding.call.operator)}[/] {escape(where(finding.call))}"
    yield f"  {escape(str(finding.wrong))}"
    table = Table("input", "min", "max", "NaN", "inf", "subnormal", "zero", title="its inputs", title_justify="left")
    for one in finding.inputs:
        numbers = (one.nan, one.infinite, one.subnormal, one.zero)
        table.add_row(escape(one.text), f"{one.minimum:.4g}", f"{one.maximum:.4g}", *(f"{n:,}" for n in numbers))
    yield table
    others = len(report.standing_out) - 1
    if others:
        yield f"  {others} more calls stand out"
    if finding.script is not None:
        yield f"  alone: python {escape(finding.script)}"


def _operator_table(report: Report, rows: int) -> Table:
    runs = [run for run in dict.fromkeys(run for call in report.calls for run in call.errors)]
    table = Table(title="each operator from the same inputs, largest error against float64", title_justify="left")
    table.add_column("operator")
    table.add_column("calls", justify="right")
    for run in runs:
        table.add_column(f"{run} ulp", justify="right")
        table.add_column(f"{run} relative", justify="right")
    table.add_column("stands out", justify="right")
    found = operators(report)
    for name, calls in found[:rows]:
        errors = [worst(calls, run) for run in runs]
        numbers = [text for error in errors for text in (f"{error.ulp:.3g}", f"{error.relative:.2g}")]
        wrong = sum(call.wrong is not None for call in calls)
        table.add_row(escape(name), f"{len(calls):,}", *numbers, f"[red]{wrong}[/]" if wrong else "")
    if len(found) > rows:
        table.add_row(f"{len(found) - rows} more", *[""] * (2 + 2 * len(runs)))
    return table


def _module_table(report: Report, rows: int) -> Table:
    runs = list(report.modules[0].errors)
    table = Table(title="whole runs, first step: outputs of modules, then gradients", title_justify="left")
    table.add_column("module or parameter")
    table.add_column("kind")
    for run in runs:
        table.add_column(f"{run} relative", justify="right")
    for one in report.modules[:rows]:
        numbers = [f"{one.errors.get(run, Error()).relative:.2g}" for run in runs]
        table.add_row(escape(one.name), escape(one.kind), *numbers)
    if len(report.modules) > rows:
        table.add_row(f"{len(report.modules) - rows} more", *[""] * (1 + len(runs)))
    return table


def _drift_table(report: Report) -> Table:
    runs = list(report.drift[0].distances)
    table = Table(
        "step", *runs, "furthest parameter", "times explained", title="the weights' distance from float64's run"
    )
    table.title_justify = "left"
    for one in report.drift:
        distances = [f"{one.distances[run]:.2g}" for run in runs]
        style = "red" if one.excess > report.drift_allowed else ""
        table.add_row(str(one.step), *distances, escape(one.furthest), f"{one.excess:.2g}", style=style)
    return table
