"""A report as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from torch_dml.compare.judging import Error
from torch_dml.compare.plots import plot
from torch_dml.compare.report import Call, Report, where
from torch_dml.compare.report_terminal import operators, runs_text, worst

# Maximum number of calls in the plot; calls with findings are always among them.
_POINTS = 3000
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: .6em 0; font-size: 13px; }
th, td { padding: .2em .7em; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child, td.text { text-align: left; }
svg { width: 100%; font-size: 11px; } .grid { stroke: #e3e3e3; } .wrong td, .bad { color: #b03020; font-weight: 600; }
.good { color: #1e7d46; font-weight: 600; } code { background: #f4f4f4; padding: 0 .2em; } details { margin: .6em 0; }
"""


def page(report: Report) -> str:
    """The page."""
    title = f"{report.model} on {report.device}"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        *_summary(report),
        *_finding(report),
        "<h2>Operators</h2><p>Each call from the same inputs: largest error against float64, relative to the "
        "result's largest element.</p>",
        _calls_plot(report),
        _operators(report),
        *_modules(report),
        *_drift(report),
        *_calls(report),
    ]
    return "".join([*parts, "</body></html>\n"])


def _table(heads: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """A table; the marked rows are highlighted."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr{' class=wrong' if marked else ''}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for marked, cells in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _summary(report: Report) -> Iterable[str]:
    kind = "good" if report.healthy else "bad"
    yield f'<p>Stands out: <span class="{kind}">{escape(report.verdict)}</span></p>'
    facts = [
        ("model", f"{report.model}: {report.chosen}"),
        ("device", f"{report.device}, {report.device_name}"),
        ("versions", f"torch {report.torch}, torch-dml {report.torch_dml}"),
        ("steps", f"{report.steps}, seed {report.seed}, {len(report.calls):,} calls"),
        ("bit for bit", runs_text(report)),
        *(("note", note) for note in report.notes),
    ]
    skipped = [call for call in report.calls if call.note]
    if skipped:
        facts.append(("not compared", f"{len(skipped)} calls, the first {skipped[0].operator}: {skipped[0].note}"))
    if report.fallbacks:
        facts.append(("on the CPU for want of a kernel", ", ".join(report.fallbacks)))
    rows = "".join(f'<tr><td>{escape(name)}</td><td class="text">{escape(text)}</td></tr>' for name, text in facts)
    yield f"<table>{rows}</table>"


def _finding(report: Report) -> Iterable[str]:
    finding = report.finding
    if finding is None:
        return
    yield f"<h2>{escape(finding.call.operator)} {escape(where(finding.call))}</h2>"
    yield f"<p>{escape(str(finding.wrong))}</p>"
    yield _table(
        ["input", "min", "max", "NaN", "inf", "subnormal", "zero"],
        [(False, [one.text, f"{one.minimum:.4g}", f"{one.maximum:.4g}", *_counts(one)]) for one in finding.inputs],
    )
    if finding.script is not None:
        yield f"<p>Alone: <code>python {escape(finding.script)}</code></p>"


def _counts(one: object) -> list[str]:
    return [f"{getattr(one, name):,}" for name in ("nan", "infinite", "subnormal", "zero")]


def _runs(report: Report) -> list[str]:
    return list(dict.fromkeys(run for call in report.calls for run in call.errors))


def _calls_plot(report: Report) -> str:
    compared = [call for call in report.calls if call.errors]
    every = max(1, -(-len(compared) // _POINTS))
    shown = [call for number, call in enumerate(compared) if number % every == 0 or call.wrong or not call.repeats]
    series = {run: [call.errors.get(run, Error()).relative for call in shown] for run in _runs(report)}
    labels = [f"call {call.number}, {call.operator} in {call.module or '-'} ({call.phase})" for call in shown]
    marked = [number for number, call in enumerate(shown) if call.wrong]
    return plot(series, "calls in order", labels, lines=False, marked=marked)


def _operators(report: Report) -> str:
    runs = _runs(report)
    rows = []
    for name, calls in operators(report):
        errors = [worst(calls, run) for run in runs]
        wrong = sum(call.wrong is not None for call in calls)
        cells = [text for error in errors for text in (f"{error.ulp:.3g}", f"{error.relative:.2g}")]
        unlike = sum(not call.repeats for call in calls)
        rows.append((bool(wrong or unlike), [name, f"{len(calls):,}", *cells, str(wrong or ""), str(unlike or "")]))
    heads = [text for run in runs for text in (f"{run} ulp", f"{run} relative")]
    return _table(["operator", "calls", *heads, "stand out", "do not repeat"], rows)


def _modules(report: Report) -> Iterable[str]:
    if not report.modules:
        return
    runs = list(report.modules[0].errors)
    yield "<h2>Modules</h2><p>Whole runs, first step: the outputs of modules, then the gradients of parameters, "
    yield "relative to the tensor's largest element.</p>"
    series = {run: [one.errors.get(run, Error()).relative for one in report.modules] for run in runs}
    yield plot(series, "modules and gradients in order", [f"{m.name} ({m.kind})" for m in report.modules], lines=True)
    heads = [text for run in runs for text in (f"{run} ulp", f"{run} relative")]
    rows = []
    for one in report.modules:
        errors = [one.errors.get(run, Error()) for run in runs]
        cells = [text for error in errors for text in (f"{error.ulp:.3g}", f"{error.relative:.2g}")]
        rows.append((False, [f"{one.name} ({one.kind})", *cells]))
    yield f"<details><summary>all of them</summary>{_table(['module or parameter', *heads], rows)}</details>"


def _drift(report: Report) -> Iterable[str]:
    if not report.drift:
        return
    runs = list(report.drift[0].distances)
    yield "<h2>Drift</h2><p>The distance of all weights from those of the run in float64, relative to their norm. "
    yield "“One ulp” is the CPU's run from weights changed by one unit in their last place: what chaos makes of it, no "
    yield f"fault has to explain. More than {report.drift_allowed:g} times the CPU's distance counts as a fault.</p>"
    if len(report.drift) > 1:
        series = {run: [one.distances[run] for one in report.drift] for run in runs}
        yield plot(series, "steps", [f"step {one.step}" for one in report.drift], lines=True)
    rows = [
        (
            one.excess > report.drift_allowed,
            [str(one.step), *(f"{one.distances[run]:.3g}" for run in runs), one.furthest, f"{one.excess:.3g}"],
        )
        for one in report.drift
    ]
    yield _table(["step", *runs, "furthest parameter", "times explained"], rows)


def _calls(report: Report) -> Iterable[str]:
    out: list[Call] = [call for call in report.calls if call.wrong or not call.repeats]
    if not out:
        return
    yield f"<h2>Calls that stand out</h2><p>{len(out):,}; the first 200.</p>"
    rows = [
        (False, [str(c.number), c.operator, c.module, c.phase, c.shapes, c.wrong or "", "" if c.repeats else "no"])
        for c in out[:200]
    ]
    yield _table(["call", "operator", "module", "phase", "inputs", "what is wrong", "repeats"], rows)
