"""docs/reference/tensorflow_tests.md: the results of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from .known import Failure, explanation
from .results import Result, Test, Verdict, libraries

HEAD = """# TensorFlow's tests of operators

Files of `tensorflow/python/kernel_tests` and `tensorflow/python/ops`, unmodified, with the plugin as TensorFlow's GPU.
Made by `python -m upstream` (`make tensorflow-upstream`); do not edit.

No wheel has these files: they come from a source tree (`--tensorflow`). `skipped` are also the tests that TensorFlow
expects to fail. What went wrong ran again on the CPU, without the plugin: `wrong on the CPU too` are those of the
failed, crashed and too slow that say nothing of the device. `through the CPU`: tests in which an operator with a kernel
for the CPU had none for the device, which TensorFlow then runs on the CPU.
"""

COUNTED = ("passed", "failed", "skipped", "crashed", "too slow", "wrong on the CPU too", "through the CPU")


def counts(results: Sequence[Result]) -> list[int]:
    """The counts of `COUNTED`."""
    verdicts = Counter(result.verdict for result in results)
    return [
        *(verdicts[one] for one in (Verdict.PASS, Verdict.FAIL, Verdict.SKIP, Verdict.CRASH, Verdict.SLOW)),
        sum(result.shared for result in results),
        sum(bool(result.fallbacks) for result in results),
    ]


def render(
    results: Iterable[Result],
    families: dict[str, list[str]],
    known: Sequence[Failure],
    subject: str,
    missing: int,
) -> str:
    """The text of the page: the results of whole files, by family; `missing` are the files that
    were not run.
    """
    results = sorted(results, key=lambda result: result.test)
    wrong = [result for result in results if result.wrong]
    shared = [result.test for result in wrong if result.shared]
    explained = [(why, result) for result in wrong if (why := explanation(result, known)) is not None]
    unexplained = [result for result in wrong if result.questionable and explanation(result, known) is None]
    several = "; by several builds of the plugin" if len(libraries(results)) > 1 else ""
    lines = [
        HEAD,
        f"{subject}{several}.",
        "",
        *([f"**Not run**: {missing} other files of these families.", ""] if missing else []),
        *_table(results, families),
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
        "Operators without a kernel for the device, and the number of tests that have them.",
        "",
        *(_on_cpu(results) or ["Nothing."]),
        "",
    ]
    return "\n".join(lines)


def _table(results: Sequence[Result], families: dict[str, list[str]]) -> list[str]:
    lines = [f"| file | {' | '.join(COUNTED)} |", "|---" * (len(COUNTED) + 1) + "|"]
    files: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        files[result.test.file].append(result)
    for family, names in families.items():
        found = [result for name in names for result in files.get(name, [])]
        if found:
            lines.append(f"| **{family}** | {' | '.join(f'**{count}**' for count in counts(found))} |")
        for name in names:
            if name in files:
                lines.append(f"| {name} | {' | '.join(map(str, counts(files[name])))} |")
    lines.append(f"| **all** | {' | '.join(f'**{count}**' for count in counts(results))} |")
    return lines


def _reasons(explained: Iterable[tuple[Failure, Result]]) -> list[str]:
    """A line for each reason: the number of its tests, and which they are."""
    found: dict[str, list[Test]] = defaultdict(list)
    for failure, result in explained:
        found[failure.why].append(result.test)
    return [f"- {why} ({len(tests)}): {_named(tests)}." for why, tests in found.items()]


def _named(tests: Sequence[Test], limit: int = 8) -> str:
    names = ", ".join(f"`{test.name}`" for test in tests[:limit])
    return f"{names} and {len(tests) - limit} more" if len(tests) > limit else names


def _on_cpu(results: Iterable[Result]) -> list[str]:
    found = Counter(name for result in results for name in result.fallbacks)
    return [f"- `{name}`: {count}" for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def _cell(result: Result) -> str:
    """What went wrong, escaped as one line of Markdown."""
    return f"{result.verdict.value}: {result.summary[:200]}".replace("<", "\\<").replace("|", "\\|")
