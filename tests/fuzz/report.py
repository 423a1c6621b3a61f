"""The findings of a run, by cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from rich.table import Table

from .trial import Finding

EXAMPLES = 4


def groups(findings: Iterable[Finding]) -> list[tuple[tuple[str, str], list[Finding]]]:
    """Findings by operator and kind of difference."""
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.operator, finding.kind].append(finding)
    return sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))


def table(findings: Iterable[Finding]) -> Table:
    """Groups of findings, with examples to reproduce them."""
    made = Table("kind", "operator", "cases", "dtypes", "examples", "the first one", expand=True)
    for (operator, kind), members in groups(findings):
        dtypes = ", ".join(sorted({finding.dtype for finding in members}))
        numbers = " ".join(str(finding.number) for finding in members[:EXAMPLES])
        made.add_row(kind, operator, str(len(members)), dtypes, numbers, members[0].message[:240])
    return made


def summary(findings: Iterable[Finding]) -> Table:
    """The number of cases of each kind."""
    made = Table("kind", "cases", "operators")
    operators: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.kind] += 1
        operators[finding.kind].add(finding.operator)
    for kind, count in counts.most_common():
        made.add_row(kind, str(count), str(len(operators[kind])))
    return made
