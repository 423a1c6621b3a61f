"""Call PyTorch's operators for which the engine has no kernel with tensors of the device, and list
what is wrong.

Arguments are drawn from the schemas until the CPU computes with some. The device is then called
with the same, also with some of the tensors left on the CPU, and with gradients. The exit status is
1 if a process crashed, or if results were computed before the values had arrived. Other differences
from the CPU are counted, and stored with --findings: tests/fuzz and tests/opinfo decide which of
them are right.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

# Mesa's software adapter compiles without optimisation: most kernels run a few times.
os.environ.setdefault("GALLIVM_PERF", "nopt")

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from ..support import workers
from ..support.shards import Shard
from .arguments import KINDS
from .registry import of_engine, operators
from .trial import FATAL, Finding, OnCpu, OnDevice, Result, Task

# After this number of crashes of an operator's CPU kernel, no more draws are tried.
ENDS = 4


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.host_reads", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_argument_group("which operators")
    which.add_argument("--operators", default="", metavar="REGEX", help="those whose name has a match")
    which.add_argument("--all", action="store_true", help="the engine's, too")
    which.add_argument("--shard", type=Shard.parse, metavar="I/N", help="the I-th of N parts, from 0")
    how = parser.add_argument_group("how they are called")
    how.add_argument(
        "--kinds",
        default=KINDS[0],
        metavar="A,B",
        help=f"with tensors of these kinds, of {', '.join(KINDS)} (default: %(default)s)",
    )
    how.add_argument("--late", action="store_true", help="also with values that arrive late")
    how.add_argument("--tries", type=int, default=300, metavar="N", help="draws of arguments (default: %(default)s)")
    how.add_argument("--calls", type=int, default=4, metavar="N", help="those that return (default: %(default)s)")
    how.add_argument("--device", default="dml", help="the device (default: %(default)s)")
    how.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)")
    how.add_argument("--timeout", type=float, default=60, metavar="S", help="for an operator (default: %(default)s)")
    how.add_argument("--findings", type=Path, metavar="FILE", help="keep every difference as a line of JSON")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    for kind in set(options.kinds) - set(KINDS):
        parser.error(f"--kinds: there is no {kind!r}; there are {', '.join(KINDS)}")
    return options


def _tasks(options: argparse.Namespace) -> list[Task]:
    names = [
        name
        for name, operator in operators().items()
        if operator.reaches_devices
        and re.search(options.operators, name)
        and (options.all or name not in of_engine())
        and (options.shard is None or name in options.shard)
    ]
    return [Task(name, kind) for kind in options.kinds for name in names]


def _on_cpu(tasks: list[Task], options: argparse.Namespace) -> Iterator[Result]:
    """The tasks with calls for the device; if the CPU crashes its process, the calls that were
    found before are lost.
    """
    work = OnCpu(options.tries, options.calls)
    ended: Counter[Task] = Counter()
    while tasks:
        again = []
        for result in workers.run(work, [iter(tasks)] * options.jobs, options.timeout):
            task = replace(result.task, start=0)
            if result.ended is not None:
                ended[task] += 1
                if ended[task] < ENDS:
                    again.append(replace(task, start=result.ended + 1))
                    continue
            yield result
        tasks = again


def main() -> int:
    """Find arguments, call the device, and list what is wrong."""
    options, console = _options(), Console()
    tasks = _tasks(options)
    ready: list[Task] = []
    findings: list[Finding] = []
    counts: Counter[str] = Counter()
    columns = (
        TextColumn("{task.description}: {task.completed} of {task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[counts]}"),
    )
    kept = options.findings.open("w") if options.findings else None
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        os.chdir(folder)  # Some operators write files.
        bar = progress.add_task("CPU", total=len(tasks), counts="")
        for result in _on_cpu(tasks, options):
            ready.append(replace(result.task, calls=result.calls))
            progress.update(bar, advance=1)
        bar = progress.add_task(options.device, total=len(ready), counts="")
        work = OnDevice(options.device, options.late)
        for result in workers.run(work, [iter(ready)] * options.jobs, options.timeout):
            for finding in result.findings:
                findings.append(finding)
                counts[finding.what] += 1
                if kept is not None:
                    print(json.dumps(asdict(finding)), file=kept, flush=True)
                if finding.what in FATAL:
                    where = f"{finding.operator} [{finding.kind}, {finding.way}, draw {finding.number}]"
                    progress.console.print(f"{finding.what} in {where}: {finding.message}", markup=False)
            text = ", ".join(f"{number} {what}" for what, number in counts.most_common())
            progress.update(bar, advance=1, counts=text)
        os.chdir(here)
    computed = sum(any(not call.want.error for call in task.calls) for task in ready)
    fatal = sum(counts[what] for what in FATAL)
    console.print(f"{len(tasks)} operators, of which the CPU computed {computed}; {fatal} ends or late values")
    return int(fatal > 0)


if __name__ == "__main__":
    sys.exit(main())
