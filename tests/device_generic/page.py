"""docs/reference/device_generic.md: the results of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..support.shards import Shard
from .differences import Difference, explanation
from .results import INTERRUPTED, LATER, Result, Subject, Test, Verdict
from .sources import PYTORCH_FILES

HEAD = """# PyTorch's device-generic tests

What `instantiate_device_type_tests` of PyTorch makes of its test classes, for `"dml"`. Made by
`python -m tests.device_generic`; do not edit.

- `test_*.py` are PyTorch's own files. No wheel has them: they come from a source tree of the same release
  (`--pytorch`; `make device-generic PYTORCH=folder`).
- `suites/*.py` are this project's, on PyTorch's machinery and databases (`op_db`, `module_db`, `optim_db`, the
  operators with a NumPy reference), with their samples, tolerances and expected failures:
  [tests/device_generic/suites](../../tests/device_generic/suites).

`skipped` are also the tests that PyTorch expects to fail, and that do. What went wrong ran again on the CPU: `wrong on
the CPU too` are those of the failed, crashed and too slow that say nothing of the device. `through the CPU`: tests in
which an operator fell back to the CPU.
"""

# The columns of `counts`.
COUNTED = ("passed", "failed", "skipped", "crashed", "too slow", "wrong on the CPU too", "through the CPU")


def render(
    results: Iterable[Result],
    everything: Iterable[Test],
    known: Sequence[Difference],
    subject: Subject,
    shard: Shard | None,
) -> str:
    """The text of the page."""
    results = sorted(results, key=lambda result: result.test)
    totals = Counter(test.file for test in everything)
    missing = [name for name in PYTORCH_FILES if name not in totals]
    wrong = [result for result in results if result.wrong]
    explained = [(why, result) for result in wrong if (why := explanation(result, known)) is not None]
    unexplained = [result for result in wrong if result.questionable and explanation(result, known) is None]
    shared = [result.test for result in wrong if result.shared]
    share = f"part {shard} of the tests, chosen by their names" if shard else "all tests of the files below"
    later = "; some of them again with a later build" if LATER in subject.libraries else ""
    lines = [
        HEAD,
        f"torch {subject.torch}, on {subject.adapter}; {subject.sources}; {share}{later}.",
        "",
        *([f"**Not run**, for want of a source tree: {', '.join(missing)}.", ""] if missing else []),
        *_table(results, totals),
        "",
        "## What fails, and why",
        "",
        *([f"- wrong on the CPU too ({len(shared)}): {_named(shared)}."] if shared else []),
        *_reasons(explained),
        *([] if wrong else ["Nothing."]),
        "",
        *(["Not explained:", "", *(f"- `{one.test}`: {_cell(one)}" for one in unexplained), ""] if unexplained else []),
        "## What ran on the CPU",
        "",
        *(_on_cpu(results) or ["Nothing."]),
        "",
    ]
    return "\n".join(lines)


def _table(results: Sequence[Result], totals: Counter[str]) -> list[str]:
    lines = [f"| file | tests | run | {' | '.join(COUNTED)} |", "|---" * (len(COUNTED) + 3) + "|"]
    files: dict[str, list[Result]] = {name: [] for name in sorted(totals)}
    for result in results:
        files[result.test.file].append(result)
    for name, found in [*files.items(), *([("all", list(results))] if len(files) > 1 else [])]:
        total = totals[name] if name in totals else totals.total()
        lines.append(f"| {name} | {total} | {len(found)} | {' | '.join(map(str, counts(found)))} |")
    return lines


def counts(results: Sequence[Result]) -> list[int]:
    """The counts of `COUNTED`."""
    verdicts = Counter(result.verdict for result in results)
    return [
        verdicts[Verdict.PASS],
        verdicts[Verdict.FAIL] + verdicts[Verdict.ERROR],
        verdicts[Verdict.SKIP],
        *(verdicts[verdict] for verdict in INTERRUPTED),
        sum(result.shared for result in results),
        sum(bool(result.fallbacks) for result in results),
    ]


def _reasons(explained: Iterable[tuple[Difference, Result]]) -> list[str]:
    """A line for each reason: the number of its tests, and which they are."""
    found: dict[str, list[Test]] = defaultdict(list)
    for difference, result in explained:
        found[difference.why].append(result.test)
    return [f"- {why} ({len(tests)}): {_named(tests)}." for why, tests in found.items()]


def _named(tests: Sequence[Test], limit: int = 8) -> str:
    names = ", ".join(f"`{test.name}`" for test in tests[:limit])
    return f"{names} and {len(tests) - limit} more" if len(tests) > limit else names


def _on_cpu(results: Iterable[Result]) -> list[str]:
    """Each operator that fell back, and the number of tests in which it did."""
    found = Counter(name for result in results for name in result.fallbacks)
    return [f"- `{name}`: {count}" for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def _cell(result: Result) -> str:
    """The message, escaped as one line of Markdown."""
    return f"{result.verdict.value}: {result.message[:200]}".replace("<", "\\<").replace("|", "\\|")
