"""The known differences from the CPU, with their reasons: docs/data/operator_differences.toml."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..support import torch_versions
from .results import Result
from .tasks import Task

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Difference:
    """Operators whose results differ from the CPU's in these dtypes, and the reason."""

    why: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]

    def covers(self, task: Task) -> bool:
        """Whether this explains a difference of the task."""
        return task.operator in self.operators and task.dtype in self.dtypes


def read(path: Path, torch: str) -> list[Difference]:
    """The differences in a TOML file that apply to a version of torch, such as "2.11"."""
    return [
        Difference(entry["why"].strip(), tuple(entry["operators"]), tuple(entry["dtypes"]))
        for entry in tomllib.loads(path.read_text())["difference"]
        if torch_versions.holds(entry, torch)
    ]


def explanation(task: Task, known: Iterable[Difference]) -> Difference | None:
    """The first difference that covers the task."""
    return next((difference for difference in known if difference.covers(task)), None)


def unexplained(results: Iterable[Result], known: list[Difference]) -> list[Result]:
    """The results with differences that nothing explains."""
    return [result for result in results if result.differs and explanation(result.task, known) is None]


def outdated(results: Iterable[Result], known: Iterable[Difference], tasks: Iterable[Task]) -> list[str]:
    """The operators with explanations all of whose tasks (of `tasks`, which is the complete list)
    ran without a difference.
    """
    differing = {result.task: result.differs for result in results}
    found = []
    for difference in known:
        covered = [task for task in tasks if difference.covers(task)]
        for operator in difference.operators:
            states = [differing.get(task) for task in covered if task.operator == operator]
            if not any(state is None or state for state in states):
                found.append(f"{operator} no longer differs: {difference.why}")
    return found
