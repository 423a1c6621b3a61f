"""Run programs of popular libraries on the device and on the CPU, and compare them.

The exit status is 1 if a case fails, or falls back to the CPU, and known.toml does not explain it,
or if known.toml explains something that no longer happens.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console

from . import cases, judging, page
from .cases import MODES, Case
from .judging import Known, Verdict
from .running import run


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(text.split(","))
    if not set(modes) <= set(MODES):
        raise ValueError(text)
    return modes


def _shard(text: str) -> tuple[int, int]:
    part, parts = map(int, text.split("/"))
    if not 0 <= part < parts:
        raise ValueError(text)
    return part, parts


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.libraries", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name has a match")
    parser.add_argument("--modes", type=_modes, default=MODES, metavar="A,B", help=f"of {', '.join(MODES)}")
    parser.add_argument(
        "--shard",
        type=_shard,
        default=os.environ.get("TEST_SHARD", "0/1"),
        metavar="I/N",
        help="part I of N (TEST_SHARD)",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at once (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of a program (default: %(default)s)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page here, if all ran")
    parser.add_argument("--list", action="store_true", help="list the cases, instead")
    return parser.parse_args()


def _judge(case: Case, modes: tuple[str, ...], timeout: float, known: list[Known]) -> list[Verdict]:
    """Run a case on the CPU, with which the other modes are compared, and in the requested
    modes.
    """
    reference = run(case, "cpu", timeout)
    found = []
    for mode in modes:
        if mode in case.modes:
            outcome = reference if mode == "cpu" or reference.error else run(case, mode, timeout)
            found.append(judging.judge(case, mode, reference, outcome, known))
    return found


def _adapter() -> str:
    import torch_dml  # noqa: F401
    from torch_dml import engine

    return engine.device_properties(0).name


def main() -> int:
    """Run the cases, print the result of each, and write the page."""
    options, console = _options(), Console(highlight=False, soft_wrap=True)
    everything = cases.read()
    part, parts = options.shard
    chosen = [case for case in everything[part::parts] if re.search(options.only, case.name)]
    if options.list:
        console.print(*(f"{case.name}: {case.what}" for case in chosen), sep="\n", markup=False)
        return 0
    absent = {case.name: case.missing() for case in chosen}
    runnable = [case for case in chosen if not absent[case.name]]
    for name, packages in absent.items():
        if packages:
            console.print(f"{name}: not run, {', '.join(packages)} is not installed", markup=False)

    known = judging.read()
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        work = partial(_judge, modes=options.modes, timeout=options.timeout, known=known)
        results: Iterator[list[Verdict]] = pool.map(work, runnable)
        for found in results:
            for verdict in found:
                console.print(f"{verdict.case.name} [{verdict.mode}] {verdict.seconds:.0f} s: {verdict}", markup=False)
            verdicts += found
    complete = runnable == everything and set(options.modes) == set(MODES)
    outdated = judging.outdated(verdicts, known) if complete else []
    for line in outdated:
        console.print(f"no longer so: {line}", markup=False)
    bad = [verdict for verdict in verdicts if not verdict.good]
    console.print(
        f"{len(verdicts)} ran, {len(bad)} unexplained: {', '.join(sorted({v.case.name for v in bad}))}", markup=False
    )
    if options.write is not None and complete:
        options.write.write_text(page.render(verdicts, known, _adapter()), encoding="utf-8")
    return int(bool(bad or outdated))


if __name__ == "__main__":
    sys.exit(main())
